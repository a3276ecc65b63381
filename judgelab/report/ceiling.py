"""Sentences on the human ceiling: a judge in a reviewer's place, and whether it may stay there."""

from __future__ import annotations

import pandas as pd

from judgelab.report.picking import one, rows_of
from judgelab.report.sentences import Sentences, estimate_text
from judgelab.report.style import SERIES
from judgelab.report.words import interval_text, number_text, percent, plural, reason_text

__all__ = ["ceiling_sentences", "replacement_sentences"]

WINNING = 0.5


def ceiling_sentences(
    ceiling: pd.DataFrame, *, judge: str, minimum_items: int = 1, passes: tuple[str, ...] = ("direct", "original")
) -> Sentences:
    """What a reviewer reaches, and for each pass of the judge the gap to that, on the very same labels.

    Parameters
    ----------
    ceiling
        Rows of ``measure.ceiling.ceiling_table``.
    judge
        The judge.
    minimum_items
        The fewest items on which something is concluded.
    passes
        The passes spoken of.
    """
    people = one(ceiling, judge="", measure="leave_one_out_agreement", slice_="all")
    if people is None or pd.isna(people["estimate"]):
        why = "no label" if people is None else reason_text(people)
        return Sentences([f"The human ceiling is unknown (n = 0 items): {why}."])
    found = [f"A reviewer agrees with the others in {estimate_text(people)}: the ceiling for any judge."]
    for series in SERIES:
        where = {"judge": judge, "strategy": series.strategy, "pass_": series.pass_, "slice_": "all"}
        gap = one(ceiling, measure="human_gap", **where)
        if gap is None or series.pass_ not in passes:
            continue
        found.append(f"{judge}, {series.name}: {_gap_text(gap, minimum_items)}.")
    return Sentences(found)


def _gap_text(gap: pd.Series, minimum_items: int) -> str:
    if pd.isna(gap["estimate"]):
        return f"the gap to a reviewer is undefined (n = {plural(gap['n_used'], 'item')}: {reason_text(gap)})"
    value = number_text(abs(float(gap["estimate"])))
    side = "below" if float(gap["estimate"]) < 0 else "above"
    level, n = percent(float(gap["ci_level"])), plural(gap["n_used"], "item")
    size = f"it agrees with people {value} {side} what a reviewer does ({level} interval {interval_text(gap)}, n = {n})"
    if int(gap["n_used"]) < minimum_items:
        return f"{size}; with fewer than the {minimum_items} items that the protocol requires: too little data"
    if pd.isna(gap["ci_low"]):
        return f"{size}; undecided"
    if float(gap["ci_high"]) < 0:
        return f"{size}; the whole interval lies below 0: worse than a reviewer"
    if float(gap["ci_low"]) > 0:
        return f"{size}; the whole interval lies above 0: better than a reviewer"
    return f"{size}; the interval holds 0: no difference is shown"


def replacement_sentences(alternative: pd.DataFrame, *, judge: str, epsilon: float) -> Sentences:
    """Whether the judge may replace a reviewer by the alternative annotator test.

    Parameters
    ----------
    alternative
        Rows of ``measure.alternative_annotator.alternative_annotator_table``.
    judge
        The judge.
    epsilon
        The protocol's allowance.
    """
    found = []
    for series in SERIES:
        row = one(alternative, judge=judge, strategy=series.strategy, pass_=series.pass_, measure="winning_rate")
        if row is None or series.pass_ == "swapped":
            continue
        who = f"{judge}, {series.name}"
        if pd.isna(row["estimate"]):
            found.append(f"{who}: the alternative annotator test is undefined (n = {_n(row)}: {reason_text(row)}).")
            continue
        rows = rows_of(alternative, judge=judge, pass_=series.pass_)
        average = one(rows, measure="average_advantage_probability")
        passed = float(row["estimate"]) >= WINNING
        verdict = "it may replace a reviewer" if passed else "it may not replace a reviewer"
        told = "" if average is None else f"; it does at least as well as a reviewer in {estimate_text(average)}"
        found.append(
            f"{who}: by the alternative annotator test (ε = {epsilon:g}) it wins against "
            f"{int(row['numerator'])} of {plural(row['denominator'], 'reviewer')} (n = {_n(row)}): {verdict}{told}."
        )
    return Sentences(found or [f"{judge}: the alternative annotator test was not made (n = 0 items)."])


def _n(row: pd.Series) -> str:
    return plural(row["n_used"], "item")
