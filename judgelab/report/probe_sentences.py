"""Sentences on the battery of probes: what moves a judge, what does not show, and what was not asked.

A probe's effect stands if its p-value (Holm over the judge's probes) is below 1 − level and its size is above the noise
floor, the largest effect that repetition alone reaches. Of probes that only count changes of verdict (without an
answer that they favour) the effect is what they change more often than repetition, so only one above 0 stands.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from judgelab.report.effects import caution, effect_text, left_open
from judgelab.report.picking import one, rows_of
from judgelab.report.plots_bias import PROBE_NAMES
from judgelab.report.sentences import Sentences, estimate_text
from judgelab.report.words import listed, number_text, percent, plural, reason_text

__all__ = ["battery_sentences"]

NET, EXCESS = "net_flip_rate", "excess_flip_rate"
REPETITION, IDENTICAL = "repetition", "identical"
SPOKEN_OF = 3  # of the probes that prove nothing, so many with their numbers; the table has them all


def battery_sentences(
    bias: pd.DataFrame,
    *,
    judge: str,
    ci_level: float,
    minimum_items: int = 1,
    left_out: pd.DataFrame | None = None,
) -> Sentences:
    """What the probes say of a judge.

    Parameters
    ----------
    bias
        Rows of ``measure.probes.probe_table``, slices ``probe=<name>``; rows of variants are not read.
    judge
        The judge.
    ci_level
        The protocol's level; a test is decided at 1 − ``ci_level``.
    minimum_items
        The fewest items on which something is concluded of a probe.
    left_out
        Probes that were not asked: judge, probe, reason. None if that is not known.

    Returns
    -------
    Sentences
        The probes whose effect stands, worst first, or that none does; those that do not show, with the largest
        effect that stays compatible; those with too few items; those without a value, with the reason; the noise
        floor; identical answers; probes that were not asked.
    """
    rows = rows_of(bias, judge=judge)
    rows = rows[rows["slice"].astype(str).str.startswith("probe=")]
    unasked = _left_out(left_out, judge)
    if rows.empty:
        return Sentences([f"{judge}: no probe was asked (n = 0 items): too little data.", *unasked])
    floor = one(rows, slice_=f"probe={REPETITION}", measure="noise_floor")
    probes = list(_probes(rows))
    known = [probe for probe in probes if probe.known]
    few = [probe for probe in known if probe.n < minimum_items]
    enough = sorted((probe for probe in known if probe.n >= minimum_items), key=lambda probe: -probe.size)
    standing = [probe for probe in enough if probe.stands(1 - ci_level, floor)]
    unshown = [probe for probe in enough if probe not in standing]
    found = [
        _standing(standing, floor, ci_level) if enough else "no probe was tested on enough items: too little data",
        _unshown(unshown, floor, 1 - ci_level) if unshown else "",
        _few(few, minimum_items) if few else "",
        _undefined([probe for probe in probes if not probe.known]),
        _noise(rows, floor),
        _identical(rows, minimum_items),
    ]
    return Sentences([*(f"{judge}: {text}." for text in found if text), *unasked])


@dataclass(frozen=True, eq=False)
class _Probe:
    """The rows of one probe: its effect, the test of it, and the counts of moves where it favours an answer."""

    name: str
    effect: pd.Series
    p: pd.Series | None
    towards: pd.Series | None
    away: pd.Series | None

    @property
    def known(self) -> bool:
        """Whether there is an effect and a test of it."""
        return pd.notna(self.effect["estimate"]) and self.p is not None and pd.notna(self.p["estimate"])

    @property
    def n(self) -> int:
        return int(self.effect["n_used"])

    @property
    def size(self) -> float:
        return abs(float(self.effect["estimate"]))

    def stands(self, alpha: float, floor: pd.Series | None) -> bool:
        """Whether the effect stands by the rule of the module."""
        value = float(self.effect["estimate"])
        counts = value if self.effect["measure"] == EXCESS else abs(value)
        small = self.p is not None and float(self.p["estimate"]) < round(alpha, 12)
        least = _floor(floor)
        return bool(small and counts > (least if math.isfinite(least) else 0.0))

    def text(self) -> str:
        """The probe with its effect, its direction, its counts, its interval, n and p."""
        value, more = float(self.effect["estimate"]), ""
        way = ""
        if self.effect["measure"] == EXCESS:
            way = " more changes than by repetition" if value > 0 else ""
        elif value:
            goal = "the first place" if self.name == IDENTICAL else "the answer that it favours"
            goal = goal if value > 0 or self.name != IDENTICAL else "the second place"
            way = f" {'away from' if value < 0 and self.name != IDENTICAL else 'towards'} {goal}"
        if self.towards is not None and self.away is not None:
            counts = [int(row["numerator"]) for row in (self.towards, self.away)]
            of = plural(self.towards["denominator"], "judgment")
            more = f"{counts[0]} towards and {counts[1]} away of {of}"
        told = effect_text(self.effect, self.p, p_name="Holm", more=more)
        return f"{_name(self.name)}{way} {told}{caution(self.effect).replace(';', ',', 1)}"


def _probes(rows: pd.DataFrame) -> Iterable[_Probe]:
    """Every probe with an effect, in order of appearance."""
    for slice_, own in rows.groupby("slice", sort=False):
        name = str(slice_).removeprefix("probe=")
        effects = rows_of(own, measure=[NET, EXCESS])
        if ":" in name or name == REPETITION or effects.empty:
            continue
        rates = (one(own, measure=measure) for measure in ("probe_p_holm", "flip_towards_rate", "flip_away_rate"))
        yield _Probe(name, effects.iloc[0], *rates)


def _standing(probes: Sequence[_Probe], floor: pd.Series | None, ci_level: float) -> str:
    rule = f"Holm p below {number_text(1 - ci_level)}"
    size = _floor(floor)
    rule += f" and above the noise floor of {number_text(size)}" if math.isfinite(size) else "; there is no noise floor"
    if not probes:
        return f"no probe's effect stands ({rule})"
    stand = "the effect of this probe stands" if len(probes) == 1 else "the effects of these probes stand, worst first"
    return f"{stand} ({rule}): {'; '.join(probe.text() for probe in probes)}"


def _unshown(probes: Sequence[_Probe], floor: pd.Series | None, alpha: float) -> str:
    """Probes that do not show, and the largest effect that their intervals leave open."""
    told = [f"{probe.text()}{_why_not(probe, floor, alpha)}" for probe in probes[:SPOKEN_OF]]
    bounds = [(left_open(probe.effect), probe) for probe in probes]
    largest, which = max(bounds, key=lambda pair: pair[0] if math.isfinite(pair[0]) else -1.0)
    no_proof = "which is no proof that there is none"
    left = (
        f"effects of up to {number_text(largest)} ({_short(which.name)}) remain compatible"
        if math.isfinite(largest)
        else "without an interval no size can be ruled out"
    )
    return f"no effect shows of {'; '.join(told)}{_others(probes)}; {no_proof}: {left}"


def _why_not(probe: _Probe, floor: pd.Series | None, alpha: float) -> str:
    """Where the test alone would say otherwise."""
    if not probe.stands(alpha, None):
        return ""
    return f" [within the noise floor of {number_text(_floor(floor))}]"


def _few(probes: Sequence[_Probe], minimum_items: int) -> str:
    ranked = sorted(probes, key=lambda probe: -probe.size)
    told = "; ".join(probe.text() for probe in ranked[:SPOKEN_OF])
    return (
        f"with fewer than the {minimum_items} items that the protocol requires, nothing is concluded; the largest "
        f"effects are of {told}{_others(ranked)}"
    )


def _others(probes: Sequence[_Probe]) -> str:
    """The probes that are only named."""
    named = [_short(probe.name) for probe in probes[SPOKEN_OF:]]
    return f"; and, smaller, {listed(named)} (see the table)" if named else ""


def _undefined(probes: Sequence[_Probe]) -> str:
    """Probes without an effect or a test, with the reason."""
    told = []
    for probe in probes:
        row = probe.effect if probe.p is None or pd.isna(probe.effect["estimate"]) else probe.p
        reason = reason_text(row) if pd.isna(row["estimate"]) else "no test"
        told.append(f"{_name(probe.name)} (n = {plural(row['n_used'], 'item')}: {reason})")
    return f"undefined: {'; '.join(told)}" if told else ""


def _noise(rows: pd.DataFrame, floor: pd.Series | None) -> str:
    """How often the verdict changes when nothing is changed."""
    flips = one(rows, slice_=f"probe={REPETITION}", measure="flip_rate")
    if flips is None:
        return "nothing was asked again (n = 0 items), so that there is no noise floor and only the tests decide"
    told = f"asked the same again, it changes its preference in {estimate_text(flips)}"
    if floor is None or pd.isna(floor["estimate"]):
        why = "it was not computed" if floor is None else reason_text(floor)
        return f"{told}; the noise floor is undefined ({why}), so that only the tests decide"
    share = f" in {percent(float(flips['ci_level']))} of such studies" if pd.notna(flips["ci_level"]) else ""
    return f"{told}; repetition alone makes an effect of at most {number_text(_floor(floor))}{share} (the noise floor)"


def _identical(rows: pd.DataFrame, minimum_items: int) -> str:
    """What it says of two copies of one answer."""
    row = one(rows, slice_=f"probe={IDENTICAL}", measure="decisive_rate")
    if row is None:
        return ""
    told = f"shown the same answer twice, it prefers one of the two in {estimate_text(row)}"
    if pd.isna(row["estimate"]):
        return f"{told}: too little data"
    if int(row["n_used"]) < minimum_items:
        return f"{told}; fewer than the {minimum_items} items that the protocol requires: too little data"
    if int(row["numerator"]) == 0:
        return f"{told}; it never did, a rate of up to {number_text(float(row['ci_high']))} remains compatible"
    return f"{told}, where neither is better"


def _left_out(left_out: pd.DataFrame | None, judge: str) -> list[str]:
    """Probes that were not asked, by their reason."""
    if left_out is None or (own := left_out[left_out["judge"] == judge]).empty:
        return []
    reasons = [
        f"{listed(_short(str(name)) for name in part['probe'])} ({reason})"
        for reason, part in own.groupby("reason", sort=False)
    ]
    return [f"{judge}: not asked, so that nothing is known of them (n = 0 items): {'; '.join(reasons)}."]


def _floor(floor: pd.Series | None) -> float:
    """The noise floor; NaN if there is none."""
    return float("nan") if floor is None else abs(float(floor["estimate"]))


def _name(probe: str) -> str:
    """``padding, longer without content:``, from the name of the probe."""
    name, _, what = PROBE_NAMES.get(probe, probe.replace("_", " ")).partition(": ")
    return f"{name}, {what}," if what else name


def _short(probe: str) -> str:
    return PROBE_NAMES.get(probe, probe.replace("_", " ")).partition(": ")[0]
