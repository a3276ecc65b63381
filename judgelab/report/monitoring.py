"""Sentences on stopping early: what an interval that holds at every look says, beside one for a fixed sample."""

from __future__ import annotations

import pandas as pd

from judgelab.report.picking import one, rows_of
from judgelab.report.sentences import Sentences
from judgelab.report.words import interval_text, number_text, p_text, percent, plural, reason_text

__all__ = ["LOOKS", "stopping_sentences"]

LOOKS = (10, 25, 50, 100, 250, 500, 1000)


def stopping_sentences(
    monitor: pd.DataFrame, decisive: pd.DataFrame, *, judge: str, minimum_agreement: float
) -> Sentences:
    """Whether the study could have been stopped before its end, and the test that holds only at its end.

    Parameters
    ----------
    monitor, decisive
        Rows of ``measure.monitoring.monitor_table`` and ``decisive_table``.
    judge
        The judge.
    minimum_agreement
        The protocol's threshold.
    """
    found = []
    for pass_, name in (("direct", "direct"), ("original", "pairwise, original")):
        rows = rows_of(monitor, judge=judge, pass_=pass_, measure="exact_agreement_anytime")
        if rows.empty:
            continue
        found.append(f"{judge}, {name}: {_agreement_text(rows, minimum_agreement)}.")
    test = one(decisive, judge=judge, measure="decisive_win_p", pass_="original")
    rate = one(decisive, judge=judge, measure="decisive_win_rate", pass_="original")
    if test is not None and rate is not None:
        found.append(f"{judge}, pairwise, original: {_test_text(test, rate)}.")
    return Sentences(found or [f"{judge}: nothing was judged (n = 0 items)."])


def _agreement_text(rows: pd.DataFrame, minimum: float) -> str:
    last = rows.iloc[-1]
    if pd.isna(last["estimate"]):
        return f"agreement is undefined (n = {plural(last['n_used'], 'item')}: {reason_text(last)})"
    decided = rows[(rows["ci_low"] >= minimum) | (rows["ci_high"] < minimum)]
    bound = f"the threshold {number_text(minimum)}"
    level, n = percent(float(last["ci_level"])), plural(last["n_used"], "item")
    held = f"the {level} interval that holds at every look is {interval_text(last)} at n = {n}"
    if decided.empty:
        return f"{held}, and at no look does it leave {bound}: the study could not have been stopped early"
    first = decided.iloc[0]
    side = "above" if float(first["ci_low"]) >= minimum else "below"
    if int(first["n_used"]) == int(last["n_used"]):
        return f"{held}, {side} {bound} at the last look only: the study could not have been stopped earlier"
    return (
        f"{held}; it lay {side} {bound} from the look at n = {plural(first['n_used'], 'item')} on, where the study "
        "could have been stopped"
    )


def _test_text(test: pd.Series, rate: pd.Series) -> str:
    if pd.isna(test["estimate"]):
        return f"no binomial test of who is preferred (n = {plural(test['n_used'], 'item')}: {reason_text(test)})"
    system = str(rate["slice"]).removeprefix("system=")
    return (
        f"{system} is preferred in {int(rate['numerator'])} of {int(rate['denominator'])} preferences that are no tie "
        f"(n = {plural(rate['n_used'], 'item')}), binomial test of 1/2 {p_text(float(test['estimate']))}; it "
        "holds for a number of items fixed beforehand and not for who stops when it is small"
    )
