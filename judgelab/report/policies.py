"""Sentences on whether a conclusion depends on how the replies without a verdict are counted."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from judgelab.report.picking import one, rows_of
from judgelab.report.sentences import Sentences, compare, estimate_text
from judgelab.report.style import SERIES
from judgelab.report.words import listed, number_text, rate_text

__all__ = ["policy_sentences"]

PREFIX = "exact_agreement_unusable_"
NAMES = {
    "dropped": "if dropped",
    "as_wrong": "as wrong",
    "as_tie": "as tie",
    "worst_case": "at worst",
    "best_case": "at best",
}
Rows = Mapping[str, pd.Series]


def policy_sentences(
    policies: pd.DataFrame, *, judge: str, minimum_agreement: float, minimum_items: int = 1
) -> Sentences:
    """For each strategy and pass of a judge, its agreement under the policies, and whether they change the conclusion.

    Where both strategies ran and something is missing, the last sentence says the same of which of them agrees better.

    Parameters
    ----------
    policies
        Rows of ``measure.policies.policy_table``.
    judge
        The judge.
    minimum_agreement
        The protocol's threshold, 0 to 1.
    minimum_items
        The fewest items on which something is concluded.
    """
    found, by_pass = [], {}
    for series in SERIES:
        rows = _rows(policies, judge, series.strategy, series.pass_)
        if rows:
            by_pass[series.pass_] = rows
            told = _told(rows, minimum_agreement, minimum_items)
            found.append(f"{judge}, {series.name}: {told}.")
    if not found:
        return Sentences([f"{judge}: agreement was not measured (n = 0 items): too little data."])
    if "direct" in by_pass and "original" in by_pass and any(map(_missing, by_pass.values())):
        found.append(f"{judge}: {_which_is_better(by_pass['direct'], by_pass['original'])}.")
    return Sentences(found)


def _rows(policies: pd.DataFrame, judge: str, strategy: str, pass_: str) -> Rows:
    chosen = rows_of(policies, judge=judge, strategy=strategy, pass_=pass_, slice_="all")
    found = {name: one(chosen, measure=PREFIX + name) for name in NAMES}
    return {name: row for name, row in found.items() if row is not None}


def _missing(rows: Rows) -> int:
    """How many judgments with a human label have no usable verdict."""
    return int(rows["as_wrong"]["denominator"]) - int(rows["dropped"]["denominator"])


def _told(rows: Rows, minimum: float, minimum_items: int) -> str:
    """One pass: the numbers, then what they mean for the threshold."""
    planned, missing = int(rows["as_wrong"]["denominator"]), _missing(rows)
    if planned == 0:
        return "no judgment has a human label (n = 0 items): too little data"
    if missing == 0:
        return (
            f"all {planned} judgments with a human label have a verdict, so that no policy for unusable replies "
            f"matters: exact agreement is {estimate_text(rows['dropped'])}"
        )
    policies = listed(f"{_value(rows[name])} {NAMES[name]}" for name in ("as_wrong", "as_tie"))
    ends = f"from {_value(rows['worst_case'])} to {_value(rows['best_case'])} whatever they would have been"
    numbers = f"with them dropped exact agreement is {estimate_text(rows['dropped'])}, {policies}, and {ends}"
    return f"{missing} of {planned} judgments are unusable; {numbers}; {_conclusion(rows, minimum, minimum_items)}"


def _value(row: pd.Series) -> str:
    return f"{rate_text(row)} = {number_text(float(row['estimate']))}"


def _conclusion(rows: Rows, minimum: float, minimum_items: int) -> str:
    """Whether every policy says the same of the threshold."""
    outcomes = {name: compare(row, low=minimum, minimum_n=minimum_items) for name, row in rows.items()}
    bound = f"the threshold (at least {number_text(minimum)})"
    if len(set(outcomes.values())) == 1:
        return f"the conclusion about {bound} does not depend on the policy: {outcomes['dropped']}"
    names: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        names.setdefault(outcome, []).append(NAMES[name])
    parts = "; ".join(f"{outcome} {listed(group)}" for outcome, group in names.items())
    return f"the conclusion about {bound} depends on the policy: {parts}"


def _which_is_better(direct: Rows, pairwise: Rows) -> str:
    """Whether the policy decides which strategy has the higher estimate; the ends are taken against each other."""
    what = "which strategy has the higher estimate"
    ahead = {name: _ahead(direct[name], pairwise[name]) for name in ("dropped", "as_wrong", "as_tie")}
    if "unknown" in ahead.values():
        return f"{what} cannot be said, for one of them has no usable verdict"
    ends = {
        _ahead(direct["worst_case"], pairwise["best_case"]),
        _ahead(direct["best_case"], pairwise["worst_case"]),
    }
    if len(set(ahead.values())) > 1:
        parts = listed(f"{best} {NAMES[name]}" for name, best in ahead.items())
        return f"{what} depends on the policy: {parts}"
    same = f"{what} is the same with unusable replies dropped, as wrong or as tie: {ahead['dropped']}"
    if ends == set(ahead.values()):
        return f"{same}; no verdicts in their place could have changed that"
    return f"{same}; verdicts in their place could have changed that"


def _ahead(direct: pd.Series, pairwise: pd.Series) -> str:
    one_, other = float(direct["estimate"]), float(pairwise["estimate"])
    if math.isnan(one_) or math.isnan(other):
        return "unknown"
    return "both the same" if one_ == other else "direct" if one_ > other else "pairwise"
