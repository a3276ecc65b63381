"""Is a repair of a judge worth its calls? Every repair against the unrepaired judge, on the same evaluation items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import TIE, check_columns, excluded_note
from judgelab.measure.decided_gain import decided_gain_row
from judgelab.measure.estimates import Place, Settings, rate_row
from judgelab.measure.multiplicity import holm
from judgelab.measure.repair_gains import (
    NO_PASSES,
    Side,
    bias_change_row,
    bias_size_row,
    gain_rows,
    measured_biases,
    repaired_sides,
)
from judgelab.measure.resampling import Floats
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import Flags

__all__ = ["buying_order", "repair_table"]

NAN = float("nan")
DECIDED = "decided_agreement_gain"
NO_CALLS = 1e-12  # calls per decision that are only the rounding of a quotient
FREE = "undefined: free, no calls beyond the baseline's"
Costs = dict[tuple[str, str], dict[str, Any]]
BASELINES = ("pairwise", "direct")
DECISIONS = ["judge", "repair", "baseline", "item_id", "system_x", "system_y", "human", "decision", "original"]
DECISIONS += ["swapped", "original_first", "words_x", "words_y"]
COSTS = ["judge", "repair", "calls", "tokens_in", "tokens_out", "cost", "currency", "tuning_calls", "pairs"]
ORDER = ["judge", "repair", "gain", "gain_low", "gain_high", "p_holm", "right_rate_gain", DECIDED, "coverage"]
ORDER += ["extra_calls_per_decision", "gain_per_1000_calls", "verdict"]
PLACES = {"buy": 0, "free: take": 0, "undecided": 1, "harms": 2, "too little data": 3}


def repair_table(
    decisions: pd.DataFrame,
    costs: pd.DataFrame,
    *,
    labels: Sequence[str],
    families: Mapping[str, Sequence[str]] | None = None,
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """What every repair of every judge gains over its baseline, what it does to the judge's bias, and what it costs.

    ====================================  ==================================================================
    measure                               what it is
    ====================================  ==================================================================
    exact_agreement                       decision of people / pairs decided and labelled
    right_rate                            decision of people / all labelled pairs: a pair that is abstained
                                          from or unusable is not right
    coverage, unusable_rate               decided (a tie is decided), without a usable decision / all pairs
    exact_agreement_gain                  repair minus baseline, on labelled pairs that both decide
    right_rate_gain                       repair minus baseline, on all labelled pairs that both were asked
    decided_agreement_gain                share right of what the repair decides minus of what the baseline does
    swap_consistency (pass both)          same preference twice / pairs with valid verdicts in both passes
    swap_consistency_gain (pass both)     repair minus ``pairwise``, on pairs with both verdicts in both
    ``<gain>_p``, ``<gain>_p_holm``       exact test of each gain; the same over all repairs of the judge
    bias_size, bias_size_change           size of the strongest bias of ``pairwise`` (``method`` names it);
                                          repair minus its own baseline, below 0 is better
    calls_per_decision,                   spent / pairs that it was spent on; without the calls of tuning
      tokens_per_decision,
      cost_per_decision
    tuning_calls                          calls on development items, spent once (a count)
    gain_per_1000_calls                   1000 · exact_agreement_gain / (calls per decision beyond the
                                          baseline's): pairs won by 1000 further calls
    ====================================  ==================================================================

    Parameters
    ----------
    decisions : DataFrame
        One row for each judge, repair, item and pair: judge, repair, baseline (``pairwise`` or ``direct``; those two
        repairs are the unrepaired judge), item_id, system_x, system_y, human (a label or NaN), decision (a label,
        ``ABSTAIN``, or NaN where unusable), original and swapped (preferences of the two passes, NaN where there is
        none), original_first (system shown first in the original pass), words_x, words_y.
    costs : DataFrame
        One row for each judge and repair: judge, repair, calls, tokens_in, tokens_out, cost (NaN without a price),
        currency, tuning_calls, pairs (decisions that they were spent on). Rows without decisions are not read.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    families : mapping of str to sequence of str, optional
        Systems of every judge's own family, by judge.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`: slice ``repair=<name>``, strategy the baseline's, pass ``""`` or
        ``both``. Baselines have no gains. Rates as in :func:`judgelab.measure.estimates.rate_row`, gains as in
        :func:`judgelab.measure.repair_gains.gain_rows`. Costs are totals and have no interval. What cannot be
        computed is NaN with the reason: no baseline, no common pair, no pass, no price, no further call.

    Raises
    ------
    ValueError
        If a column is missing, a label is unknown, a pair has several rows in one repair or several human labels, a
        repair has several rows of costs, or a baseline is none.

    Notes
    -----
    The biases looked at are :func:`first-position rate − 1/2 <judgelab.measure.position.position_table>` over both
    passes, and the length and family error gaps of :func:`judgelab.measure.bias.bias_table`, of the decisions. The
    strongest is the one with the largest \\|estimate\\| / half width of its interval. Having been chosen for its size
    on these items it is likely to be overestimated, and any second measurement to find it smaller: a bias that was
    measured on other items is the better choice where there are such. The position bias is one of the two passes; a
    rule that only combines them (the conservative one) leaves it as it is, whatever it does to the decisions.

    Pairing on the same items removes what makes items hard from the comparison (McNemar, 1947; Newcombe, 1998);
    Holm, 1979, keeps the chance that any useless repair of a judge looks useful below 1 − ``ci_level``.
    """
    check_columns(decisions, DECISIONS, "decisions")
    check_columns(costs, COSTS, "costs")
    settings = Settings(ci_level, resamples, seed)
    spent = _by_repair(costs)
    systems = [label for label in labels if label != TIE]
    tie = list(labels).index(TIE) if TIE in labels else len(labels)
    lines: list[dict[str, Any]] = []
    for judge, group in decisions.groupby("judge", sort=False):
        family = list((families or {}).get(str(judge), ()))
        unknown = [name for name in family if name not in systems]
        if unknown:
            raise ValueError(f"family of {judge}: unknown system {unknown[0]!r}; allowed are {', '.join(systems)}")
        sides = {side.repair: side for side in repaired_sides(str(judge), group, labels, family)}
        found = [line for side in sides.values() for line in _rows(side, sides, spent, settings)]
        lines += [*found, *_adjusted(found), *_bias_rows(sides, tie, settings)]
    return frame(lines)


def _by_repair(costs: pd.DataFrame) -> Costs:
    """Each row of costs by judge and repair."""
    lines = [{str(name): value for name, value in line.items()} for line in costs.to_dict("records")]
    spent = {(str(line["judge"]), str(line["repair"])): line for line in lines}
    if len(spent) < len(costs):
        raise ValueError(f"costs: {len(costs)} rows for {len(spent)} repairs of judges; allowed is one row each")
    return spent


def _rows(side: Side, sides: Mapping[str, Side], spent: Costs, settings: Settings) -> Iterator[dict[str, Any]]:
    """All rows of one repair but the biases and the adjusted p-values."""
    yield from _rate_rows(side, settings)
    cost, base = (list(_cost_rows(side, spent.get((side.place.judge, name)))) for name in (side.repair, side.baseline))
    yield from cost
    if side.repair not in BASELINES:
        gains = _all_gains(side, sides, settings)
        yield from gains
        yield _price_row(gains[0], cost[0]["estimate"] - base[0]["estimate"])


def _rate_rows(side: Side, settings: Settings) -> Iterator[dict[str, Any]]:
    """How often the decisions are right, are made at all, are usable, and survive the swap."""
    n, labelled, decided = len(side.items), side.labelled, side.decision >= 0
    without = {"without_reference": int((~labelled).sum())}
    undecided = {
        "abstained": int((labelled & (side.decision < -1)).sum()),
        "unusable": int((labelled & (side.decision == -1)).sum()),
    }
    every = np.ones(n, dtype=bool)
    rates: list[tuple[str, Flags, Floats, str]] = [
        ("exact_agreement", labelled & decided, side.right, excluded_note(n, "pairs", **without, **undecided)),
        ("right_rate", labelled, side.right, excluded_note(n, "pairs", **without)),
        ("coverage", every, decided.astype(np.float64), ""),
        ("unusable_rate", every, (side.decision == -1).astype(np.float64), ""),
    ]
    for measure, counts, successes, note in rates:
        values = np.where(counts, successes, NAN)
        yield rate_row(measure, side.place, side.items, values, settings=settings, note=note)
    place = _both(side)
    if not side.has_passes:
        left_out = {"n_used": 0, "n_excluded": len(np.unique(side.items))}
        yield place.row("swap_consistency", NAN, ci_level=settings.ci_level, note=NO_PASSES, **left_out)
        return
    note = excluded_note(n, "pairs", without_two_usable_verdicts=int((~side.twice).sum()))
    values = np.where(side.twice, side.consistent, NAN)
    yield rate_row("swap_consistency", place, side.items, values, settings=settings, note=note)


def _both(side: Side) -> Place:
    return Place(side.place.judge, side.place.strategy, "both", side.place.slice_)


def _all_gains(side: Side, sides: Mapping[str, Side], settings: Settings) -> list[dict[str, Any]]:
    """The three gains with their p-values."""
    lines: list[dict[str, Any]] = []
    own = side.baseline
    for measure, name in (("exact_agreement", own), ("right_rate", own), ("swap_consistency", "pairwise")):
        missing = "" if name in sides else f"undefined: no decisions of the baseline {name}"
        mine, theirs = side.common(sides.get(name, side))
        alone = excluded_note(len(side.items), "pairs", not_asked_of_the_baseline=len(side.items) - len(mine.items))
        labelled, n = mine.labelled, len(mine.items)
        place, one, other, why = side.place, mine.right, theirs.right, missing
        if measure == "swap_consistency":
            place, one, other = _both(side), mine.consistent, theirs.consistent
            counts = mine.twice & theirs.twice
            left = excluded_note(n, "pairs", without_two_usable_verdicts_of_both=int((~counts).sum()))
            why = missing or ("" if mine.has_passes and theirs.has_passes else f"{NO_PASSES} of both")
        else:
            decided = (mine.decision >= 0) & (theirs.decision >= 0) | (measure == "right_rate")
            counts = labelled & decided
            without = {"without_reference": int((~labelled).sum())}
            left = excluded_note(n, "pairs", **without, not_decided_by_both=int((labelled & ~decided).sum()))
        options: dict[str, Any] = {"than": name, "settings": settings, "note": joined(left, alone), "reason": why}
        lines += gain_rows(f"{measure}_gain", place, mine.items, one, other, counts, **options)
        if measure == "exact_agreement":
            made = (labelled & (mine.decision >= 0), labelled & (theirs.decision >= 0))
            options["note"] = joined(excluded_note(n, "pairs", without_reference=int((~labelled).sum())), alone)
            decided_gain = decided_gain_row(DECIDED, place, mine.items, (one, other), made, **options)
    return [*lines, decided_gain]


def _cost_rows(side: Side, cost: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    """What a decision costs; the calls first."""
    n_items = len(np.unique(side.items))
    spent = cost or {}
    pairs = float(spent.get("pairs", NAN))
    tokens = float(spent.get("tokens_in", NAN)) + float(spent.get("tokens_out", NAN))
    currency = "" if pd.isna(spent.get("currency")) else str(spent["currency"])
    totals = (
        ("calls", float(spent.get("calls", NAN)), "calls are not known", "calls"),
        ("tokens", tokens, "tokens are not known", "tokens in and out"),
        ("cost", float(spent.get("cost", NAN)), "no price", currency),
    )
    nothing = "undefined: no row of costs"
    for name, total, reason, unit in totals:
        measure, value = f"{name}_per_decision", total / pairs if pairs > 0 else NAN
        if np.isnan(value):
            why = f"undefined: {reason if pairs > 0 else 'no decision that it was spent on'}" if spent else nothing
            yield side.place.row(measure, NAN, n_used=0, n_excluded=n_items, note=why)
            continue
        counts = {} if name == "cost" else {"numerator": round(total), "denominator": round(pairs)}
        method = joined(f"total over {pairs:.0f} pairs", unit)
        yield side.place.row(measure, value, n_used=n_items, method=method, **counts)
    tuning = float(spent.get("tuning_calls", NAN))
    why = "" if np.isfinite(tuning) else "undefined: not known" if spent else nothing
    yield side.place.row("tuning_calls", tuning, n_used=n_items, method="count on development items, once", note=why)


def _price_row(gain: Mapping[str, Any], extra: float) -> dict[str, Any]:
    """Pairs won by 1000 calls beyond those of the baseline."""
    scale = 1000.0 / extra if extra > NO_CALLS else NAN
    line = {**gain, **{key: gain[key] * scale for key in ("estimate", "ci_low", "ci_high")}}
    line |= {"measure": "gain_per_1000_calls", "method": f"1000 × gain / {extra:.4g} further calls per decision"}
    if np.isnan(scale) and not np.isnan(gain["estimate"]):
        reason = "undefined: calls are not known" if np.isnan(extra) else FREE
        line["note"] = joined(reason, gain["note"])
    return line if np.isfinite(line["estimate"]) else {**line, "method": ""}


def _adjusted(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Holm's p-values of the repairs of one judge, for each gain."""
    for measure in ("exact_agreement_gain_p", "right_rate_gain_p", "swap_consistency_gain_p"):
        tests = [line for line in lines if line["measure"] == measure]
        values = holm([line["estimate"] for line in tests])
        made = int((~np.isnan(values)).sum())
        for line, p in zip(tests, values, strict=True):
            method = f"Holm over {made} tested repairs of the judge" if np.isfinite(p) else ""
            yield {**line, "measure": f"{measure}_holm", "estimate": float(p), "method": method}


def _bias_rows(sides: Mapping[str, Side], tie: int, settings: Settings) -> Iterator[dict[str, Any]]:
    """Size of the unrepaired judge's strongest bias, for the baselines and every repair, and its change."""
    strengths: dict[str, float] = {}
    if "pairwise" in sides:
        for name, line in measured_biases(sides["pairwise"], tie, settings).items():
            half_width = (line["ci_high"] - line["ci_low"]) / 2
            if half_width > 0:
                strengths[name] = abs(line["estimate"]) / half_width
    strongest = max(strengths, key=lambda name: strengths[name], default="")
    others = ", ".join(f"{name} {value:.2f}" for name, value in strengths.items())
    method = f"strongest of pairwise by |estimate| / half width: {others}"
    reason = "no bias of pairwise has an interval" if "pairwise" in sides else "no decisions of the baseline pairwise"
    for side in sides.values():
        blank = {"ci_level": settings.ci_level, "n_used": 0, "n_excluded": len(np.unique(side.items))}
        repaired = side.repair not in BASELINES
        signed = measured_biases(side, tie, settings).get(strongest)
        if signed is None:
            why = f"undefined: {f'no pair on which {strongest} can be measured' if strongest else reason}"
            yield side.place.row("bias_size", NAN, note=why, **blank)
        else:
            yield bias_size_row(signed, method)
        if repaired and strongest and side.baseline in sides:
            yield bias_change_row(strongest, side, sides[side.baseline], tie, settings)
        elif repaired:
            why = f"undefined: {f'no decisions of the baseline {side.baseline}' if strongest else reason}"
            yield side.place.row("bias_size_change", NAN, note=why, **blank)


def buying_order(table: pd.DataFrame) -> pd.DataFrame:
    """The repairs of all judges in the order in which to buy them, with a verdict by a stated rule.

    ==================  ====================================================================================
    verdict             rule (p is ``exact_agreement_gain_p_holm``, the interval that of the gain)
    ==================  ====================================================================================
    buy                 p < 1 − ci_level and the interval lies above 0
    free: take          the same, and the repair needs no calls beyond the baseline's
    harms               p < 1 − ci_level and the interval lies below 0
    undecided           neither: the gain may be 0 (with ``p_holm`` NaN: no pair tells the two apart)
    too little data     the gain or its interval is undefined
    ==================  ====================================================================================

    Parameters
    ----------
    table : DataFrame
        From :func:`repair_table`.

    Returns
    -------
    DataFrame
        judge, repair, gain (of exact agreement) with gain_low and gain_high, p_holm, right_rate_gain,
        decided_agreement_gain and coverage (a repair may gain on what it decides by deciding less),
        extra_calls_per_decision (NaN where not known), gain_per_1000_calls (NaN where free or not known), verdict.
        Proven ones first by gain per call (free ones before all), then undecided by gain, then harms, then too
        little data. No rows without a repair.
    """
    values = {(line["judge"], line["slice"], line["measure"]): line for line in table.to_dict("records")}

    def of(judge: str, repair: str, measure: str) -> float:
        return float(values.get((judge, f"repair={repair}", measure), {"estimate": NAN})["estimate"])

    lines = []
    for (judge, slice_, measure), gain in values.items():
        if measure != "exact_agreement_gain":
            continue
        repair = str(slice_).removeprefix("repair=")
        calls = [of(judge, name, "calls_per_decision") for name in (repair, gain["strategy"])]
        line = {"judge": judge, "repair": repair, "gain": gain["estimate"], "gain_low": gain["ci_low"]}
        line |= {"gain_high": gain["ci_high"], "p_holm": of(judge, repair, "exact_agreement_gain_p_holm")}
        line |= {
            name: of(judge, repair, name) for name in ("right_rate_gain", DECIDED, "coverage", "gain_per_1000_calls")
        }
        line["extra_calls_per_decision"] = calls[0] - calls[1]
        lines.append({**line, "verdict": _verdict(line, 1 - gain["ci_level"])})
    lines.sort(key=_rank)
    return pd.DataFrame(lines, columns=ORDER)


def _verdict(line: Mapping[str, Any], level: float) -> str:
    if np.isnan([line["gain"], line["gain_low"], line["gain_high"]]).any():
        return "too little data"
    if line["p_holm"] < level and line["gain_low"] > 0:
        return "free: take" if line["extra_calls_per_decision"] <= NO_CALLS else "buy"
    return "harms" if line["p_holm"] < level and line["gain_high"] < 0 else "undecided"


def _rank(line: Mapping[str, Any]) -> tuple[int, float, float]:
    """Sorting key: kind of verdict, gain per call where proven, gain."""
    per_call = {"free: take": np.inf, "buy": line["gain_per_1000_calls"]}.get(line["verdict"], 0.0)
    per_call, gain = (-np.inf if np.isnan(value) else float(value) for value in (per_call, line["gain"]))
    return PLACES[line["verdict"]], -per_call, -gain
