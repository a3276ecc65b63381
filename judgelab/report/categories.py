"""Sentences on categories: where a judge does worse, and whether that is more than chance."""

from __future__ import annotations

import pandas as pd

from judgelab.report.picking import one, rows_of
from judgelab.report.sentences import Sentences, estimate_text
from judgelab.report.style import SERIES
from judgelab.report.words import p_text, plural, slice_text

__all__ = ["category_sentences"]

GAP = "exact_agreement_gap"


def category_sentences(
    agreement: pd.DataFrame, *, judge: str, level: float = 0.05, passes: tuple[str, ...] = ("direct", "original")
) -> Sentences:
    """For each pass, the category with the smallest adjusted p-value, and whether any differs from the rest.

    Parameters
    ----------
    agreement
        Rows of ``measure.agreement.agreement_table`` with the gaps by category.
    judge
        The judge.
    level
        Adjusted p-value below which a category is said to differ.
    passes
        The passes spoken of.
    """
    found = []
    for series in SERIES:
        if series.pass_ not in passes:
            continue
        rows = rows_of(agreement, judge=judge, strategy=series.strategy, pass_=series.pass_)
        tests = rows_of(rows, measure=f"{GAP}_p_holm")
        if tests.empty:
            continue
        found.append(f"{judge}, {series.name}: {_told(rows, tests, level)}.")
    return Sentences(found or [f"{judge}: fewer than two categories (n = 0 comparisons), nothing to compare."])


def _told(rows: pd.DataFrame, tests: pd.DataFrame, level: float) -> str:
    known = tests[tests["estimate"].notna()]
    n = plural(len(tests), "category", "categories")
    if known.empty:
        return f"no category can be tested against the others (n = {n})"
    lowest = known.sort_values("estimate", kind="stable").iloc[0]
    gap = one(rows, measure=GAP, slice_=str(lowest["slice"]))
    size = "" if gap is None else f", difference {estimate_text(gap)}"
    name, p = slice_text(str(lowest["slice"])), p_text(float(lowest["estimate"]))
    if float(lowest["estimate"]) < level:
        differ = known[known["estimate"] < level]
        names = ", ".join(slice_text(str(value)) for value in differ["slice"])
        outcome = f"of n = {n}, {names} differ from the others after Holm's correction"
    else:
        outcome = f"of n = {n} none differs from the others after Holm's correction"
    return f"{outcome}; the clearest is {name} ({p}{size})"
