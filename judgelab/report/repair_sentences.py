"""Sentences on repairs: what to buy first and for how much, what was tuned, and what recalibration did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from judgelab.report.effects import caution, effect_text
from judgelab.report.picking import one, rows_of
from judgelab.report.sentences import Sentences, estimate_text
from judgelab.report.words import interval_text, listed, number_text, plural, reason_text

__all__ = ["buying_sentences", "recalibration_sentences", "tuning_sentences"]

SCORES = {"brier_score": "Brier score", "expected_calibration_error": "expected calibration error"}
READINGS = {"raw": "as the judge gave it", "isotonic": "after isotonic recalibration"}
FEW, UNDECIDED, HARMS = "too little data", "undecided", "harms"
SPOKEN_OF = 3  # of the repairs that prove nothing, so many with their numbers; the table has them all


def buying_sentences(
    order: pd.DataFrame,
    repairs: pd.DataFrame,
    *,
    judge: str,
    minimum_items: int = 1,
    left_out: pd.DataFrame | None = None,
) -> Sentences:
    """What to buy first for a judge, for how much, what is free, what is undecided, and what harms.

    Parameters
    ----------
    order
        From ``measure.repairs.buying_order(repairs)``: repairs in the order in which to buy them.
    repairs
        Rows of ``measure.repairs.repair_table``.
    judge
        The judge.
    minimum_items
        The fewest items on which a repair is judged.
    left_out
        Repairs that the judge cannot have: judge, repair, reason. None if that is not known.

    Returns
    -------
    Sentences
        What is free; what to buy, best per call first, or that nothing is proven to gain; what is undecided, with the
        widest gain that the intervals leave open; what harms; what has too little data, with the reason; what was not
        tried. Each repair with its gain in exact agreement, interval, number of items and Holm's p.
    """
    own = rows_of(order, judge=judge)
    lines = [_Line(row, rows_of(repairs, judge=judge), minimum_items) for _, row in own.iterrows()]
    by = {verdict: [line for line in lines if line.verdict == verdict] for verdict in _VERDICTS}
    if not lines:
        found = [f"{judge}: no repair was tried (n = 0 items)."]
    else:
        told = [_VERDICTS[verdict](chosen) for verdict, chosen in by.items() if chosen or verdict == "buy"]
        if by["free: take"] and not by["buy"]:
            told = [text for text in told if not text.startswith("no repair")]
        found = [f"{judge}: {text}." for text in told]
    return Sentences([*found, *_left_out(left_out, judge)])


def tuning_sentences(choices: pd.DataFrame, *, judge: str) -> Sentences:
    """The settings that were chosen on development items, beside the protocol's.

    Parameters
    ----------
    choices
        One row for each choice: judge, repair, what ("tie margin", "threshold"), value, default, score,
        default_score, n, note (see ``measure.tuning.Choice``).
    judge
        The judge.

    Returns
    -------
    Sentences
        One for each choice, with the caution that what it reaches on the items it was chosen on is too good.
    """
    found = [_choice(row, judge) for _, row in rows_of(choices, judge=judge).iterrows()]
    return Sentences(found or [f"{judge}: nothing was tuned on development items (n = 0)."])


def recalibration_sentences(rows: pd.DataFrame, *, judge: str) -> Sentences:
    """Whether recalibrated probabilities are nearer to what people accept than those that the judge gave.

    Parameters
    ----------
    rows
        ``brier_score`` and ``expected_calibration_error`` with the slices ``reading=raw`` and ``reading=isotonic``.
    judge
        The judge.

    Returns
    -------
    Sentences
        One for each measure. Better or worse only if the two intervals have no value in common, which is stricter
        than a test of the difference; else undecided.
    """
    own = rows_of(rows, judge=judge)
    found = []
    for measure, name in SCORES.items():
        raw, made = (one(own, measure=measure, slice_=f"reading={reading}") for reading in READINGS)
        if raw is None and made is None:
            continue
        told = [
            f"{words} {'not measured (n = 0 items)' if row is None else estimate_text(row)}"
            for row, words in ((raw, READINGS["raw"]), (made, READINGS["isotonic"]))
        ]
        found.append(f"{judge}, {name} (lower is better): {told[0]}, {told[1]}; {_better(raw, made)}.")
    return Sentences(found or [f"{judge}: its scores were not recalibrated (n = 0 items)."])


class _Line:
    """A repair in the buying order, with its rows."""

    def __init__(self, line: pd.Series, repairs: pd.DataFrame, minimum_items: int) -> None:
        self.line = line
        self.name = str(line["repair"])
        self.rows = rows_of(repairs, slice_=f"repair={self.name}")
        self.gain = one(self.rows, measure="exact_agreement_gain")
        self.few = self.gain is not None and int(self.gain["n_used"]) < minimum_items
        self.verdict = FEW if self.few else str(line["verdict"])

    def value(self, name: str) -> float:
        return float(self.line[name])

    def text(self, *, price: bool = False) -> str:
        """Name, gain with interval, n and p; for a proven gain what it costs and what it leaves undecided."""
        p = one(self.rows, measure="exact_agreement_gain_p_holm")
        told = f"{self.name.replace('_', ' ')}, exact agreement {effect_text(self.gain, p, p_name='Holm')}"
        return f"{told}{self._price() if price else ''}{self._abstains()}{caution(self.gain).replace(';', ',', 1)}"

    def _price(self) -> str:
        """Calls and money."""
        extra, won = self.value("extra_calls_per_decision"), self.value("gain_per_1000_calls")
        parts = [
            f"{number_text(extra, 2)} further calls per decision" if math.isfinite(extra) else "calls not known",
            f"{number_text(won, 1)} pairs won by 1000 further calls" if math.isfinite(won) and extra > 0 else "",
        ]
        cost = one(self.rows, measure="cost_per_decision")
        if cost is None or pd.isna(cost["estimate"]):
            parts.append("without a price")
        else:
            currency = str(cost["method"]).rpartition("; ")[2] if "; " in str(cost["method"]) else ""
            parts.append(f"{float(cost['estimate']):.3g} {currency} per decision in all".replace("  ", " "))
        tuning = one(self.rows, measure="tuning_calls")
        if tuning is not None and pd.notna(tuning["estimate"]) and float(tuning["estimate"]) > 0:
            parts.append(f"{int(tuning['estimate'])} calls once for tuning")
        return f" for {', '.join(part for part in parts if part)}"

    def _abstains(self) -> str:
        """A gain on what it decides may come from deciding less."""
        coverage, whole = self.value("coverage"), one(self.rows, measure="right_rate_gain")
        if not coverage < 1 or whole is None or pd.isna(whole["estimate"]):
            return ""
        changed = f"on all of them the share of right decisions changes by {effect_text(whole)}"
        decided = one(self.rows, measure="decided_agreement_gain")
        own = "" if decided is None else f"; right on what it decides against the plain judge's: {effect_text(decided)}"
        return f", but it decides {number_text(coverage)} of the pairs, and {changed}{own}"


def _buy(lines: Sequence[_Line]) -> str:
    if not lines:
        return "no repair that costs further calls is proven to gain agreement with people"
    first, *others = [line.text(price=True) for line in lines]
    return f"buy first {first}{''.join(f'; then {text}' for text in others)}"


def _free(lines: Sequence[_Line]) -> str:
    return f"free, to be taken: {'; '.join(line.text(price=True) for line in lines)}"


def _undecided(lines: Sequence[_Line]) -> str:
    """What may gain nothing, and how much it may gain at most."""
    widest = max(lines, key=lambda line: line.value("gain_high"))
    return (
        f"undecided, for the gain may be nothing: {'; '.join(line.text() for line in lines[:SPOKEN_OF])}"
        f"{_others(lines)}; a gain of up to "
        f"{number_text(widest.value('gain_high'))} ({widest.name.replace('_', ' ')}) remains compatible"
    )


def _harms(lines: Sequence[_Line]) -> str:
    return f"harmful, not to be taken: {'; '.join(line.text() for line in lines)}"


def _too_few(lines: Sequence[_Line]) -> str:
    few = [f"{line.text()}{' [fewer items than the protocol requires]' if line.few else ''}" for line in lines]
    return f"too little data to judge {'; '.join(few[:SPOKEN_OF])}{_others(lines)}"


def _others(lines: Sequence[_Line]) -> str:
    """The repairs that are only named."""
    named = [line.name.replace("_", " ") for line in lines[SPOKEN_OF:]]
    return f"; and {listed(named)} (see the table)" if named else ""


_VERDICTS: dict[str, Any] = {
    "free: take": _free,
    "buy": _buy,
    UNDECIDED: _undecided,
    HARMS: _harms,
    FEW: _too_few,
}


def _left_out(left_out: pd.DataFrame | None, judge: str) -> list[str]:
    """Repairs that were not tried, by their reason."""
    if left_out is None or (own := left_out[left_out["judge"] == judge]).empty:
        return []
    told = [
        f"{listed(str(name).replace('_', ' ') for name in part['repair'])} ({reason})"
        for reason, part in own.groupby("reason", sort=False)
    ]
    return [f"{judge}: not tried, so that nothing is known of them (n = 0 items): {'; '.join(told)}."]


def _choice(row: pd.Series, judge: str) -> str:
    """One setting, what it reaches and what to be careful with."""
    value, default = (number_text(float(row[name])) for name in ("value", "default"))
    n, what = int(row["n"]), str(row["what"])
    unit = "development pair" if "margin" in what else "development answer"
    where = f"{judge}, {str(row['repair']).replace('_', ' ')}: the {what}"
    if pd.isna(row["score"]):
        return f"{where} stays at the protocol's {default} (n = {plural(n, unit)}): {reason_text(row)}."
    note = "" if pd.isna(row["note"]) or not str(row["note"]) else f"; {row['note']}"
    stays = "stays at the protocol's" if value == default else f"is {value} instead of the protocol's"
    reached = f"{number_text(float(row['score']))} against {number_text(float(row['default_score']))}"
    measure = "exact agreement" if "margin" in what else "balanced accuracy"
    return (
        f"{where} {stays} {default}, chosen on n = {plural(n, unit)} by {measure} ({reached} of the protocol's, no "
        f"interval: chosen for being the highest there, it is too good for other items){note}."
    )


def _better(raw: pd.Series | None, made: pd.Series | None) -> str:
    """Whether the two intervals are apart."""
    if raw is None or made is None or pd.isna(raw["estimate"]) or pd.isna(made["estimate"]):
        return "the two cannot be compared: too little data"
    if "none" in (interval_text(raw), interval_text(made)):
        return "without both intervals: undecided"
    if float(made["ci_high"]) < float(raw["ci_low"]):
        return "the intervals do not meet: recalibration is better"
    if float(made["ci_low"]) > float(raw["ci_high"]):
        return "the intervals do not meet: recalibration is worse"
    return "the intervals meet: undecided"
