"""A study looked at while it runs: intervals that hold at every look, so that stopping early does not lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import excluded_note
from judgelab.measure.estimates import Place
from judgelab.measure.intervals import wilson
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import frame, joined
from judgelab.measure.sequential import binomial_test_row, difference_sequence, rate_sequence
from judgelab.measure.views import JudgeCodes, each_judge

__all__ = ["decisive_table", "monitor_table"]

NAN = float("nan")
PASSES = ("direct", "original")
RATE = "beta-binomial confidence sequence, holds at every number of items at once"
DIFFERENCE = "pairwise minus direct, confidence sequence by betting, holds at every number of items at once"
EMPTY = "no interval: the items so far refute every value"
DRIFT = "the items so far have their mean outside of it: does their order depend on their outcome?"


def monitor_table(
    normalized: pd.DataFrame, *, labels: Sequence[str], looks: Sequence[int], ci_level: float
) -> pd.DataFrame:
    """Rates and differences after the first 50, 100, ... items, with intervals for a study that may stop at any time.

    ==================================  ==================================================================
    measure (pass)                      what it is
    ==================================  ==================================================================
    exact_agreement_anytime (direct,    items' share of pairs on which judge and people agree
      original)
    exact_agreement_difference_anytime  pairwise minus direct on the same items
      (original)
    win_rate_anytime (direct, original; share of pairs in which a system is preferred, a tie being no win; judge ""
      judge "": people)                 for the human labels; slice ``system=<s>, first=<n>``
    ==================================  ==================================================================

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`. The order of its rows is the order of the study; it must
        not depend on labels or verdicts (shuffle before, not after).
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    looks : sequence of int
        Numbers of items after which rows are wanted, 1 or more; those that a measure has not reached are left out, and
        the last item is always a look.
    ci_level : float
        Coverage at all looks at once.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`, slice ``first=<n>``; ``n`` counts items with a usable value.
        The note gives Wilson's interval at this n for comparison, where an item has one pair.

    Raises
    ------
    ValueError
        If a look is below 1, a preference is not one of ``labels``, or a column is missing.

    Notes
    -----
    See :func:`judgelab.measure.sequential.rate_sequence` and
    :func:`judgelab.measure.sequential.difference_sequence`. Several pairs of an item are averaged: an item is one
    observation.
    """
    if min(looks, default=1) < 1:
        raise ValueError(f"looks are {list(looks)}; allowed is 1 and more")
    if not 0 < ci_level < 1:
        raise ValueError(f"ci_level is {ci_level}; allowed is above 0 and below 1")
    lines: list[dict[str, Any]] = []
    for number, codes in enumerate(each_judge(normalized, labels)):
        if number == 0:
            everything = np.ones(len(codes.items), dtype=bool)
            lines += _win_rows(codes, Place(), codes.human, everything, labels, looks, ci_level)
        for name in PASSES:
            chosen = codes.planned[name]
            if chosen.any():
                view = codes.view(name)
                values = np.where(view.valid, view.human == view.judged, NAN)
                lines += _rate_rows("exact_agreement_anytime", view.place, view.items, values, looks, ci_level)
                lines += _win_rows(codes, view.place, getattr(codes, name), chosen, labels, looks, ci_level)
        lines += _difference_rows(codes, looks, ci_level)
    return frame(lines)


def decisive_table(normalized: pd.DataFrame, *, labels: Sequence[str], ci_level: float) -> pd.DataFrame:
    """Is one system preferred more often than the other, ties apart? A plain binomial test for a fixed sample.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`; studies with more than two systems have no rows.
    labels : sequence of str
        Allowed preferences: the two systems, then ``TIE``.
    ci_level : float
        Coverage of the intervals.

    Returns
    -------
    DataFrame
        For people (judge ""), and for each judge and pass (direct, original), slice ``system=<first system>``:
        ``decisive_win_rate`` = preferred / preferences without a tie, with Wilson's interval, and ``decisive_win_p``,
        the exact two-sided binomial test of 1/2. Undefined without a decisive preference.

    Notes
    -----
    Both hold for a number of items that was fixed beforehand. Looked at again and again and stopped at the first
    p below 0.05, the test finds a winner where there is none in far more than 5 % of studies; :func:`monitor_table` is
    for that, and pays for it with wider intervals.
    """
    lines: list[dict[str, Any]] = []
    if len(labels) != 3:
        return frame(lines)
    for number, codes in enumerate(each_judge(normalized, labels)):
        sources = [(Place(slice_=f"system={labels[0]}"), codes.human)] if number == 0 else []
        for name in PASSES:
            if codes.planned[name].any():
                place = codes.view(name).place
                where = Place(place.judge, place.strategy, place.pass_, f"system={labels[0]}")
                sources.append((where, getattr(codes, name)[codes.planned[name]]))
        for place, given in sources:
            wins, losses, other = (int((given == code).sum()) for code in (0, 1, 2))
            left_out = len(given) - wins - losses
            note = excluded_note(len(given), "items", tied=other, without_preference=left_out - other)
            trials = wins + losses
            common: dict[str, Any] = {"n_used": trials, "n_excluded": left_out, "ci_level": ci_level}
            common |= {"numerator": wins, "denominator": trials, "method": "Wilson"}
            if trials:
                bounds = wilson(wins, trials, ci_level)
                lines.append(place.row("decisive_win_rate", wins / trials, interval=bounds, note=note, **common))
            else:
                reason = joined("undefined: no decisive preference", note)
                lines.append(place.row("decisive_win_rate", NAN, note=reason, **common))
            lines.append(binomial_test_row("decisive_win_p", place, wins, trials, null=0.5, n_excluded=left_out))
    return frame(lines)


def _win_rows(
    codes: JudgeCodes,
    place: Place,
    judged: Ints,
    chosen: Any,
    labels: Sequence[str],
    looks: Sequence[int],
    level: float,
) -> Iterator[dict[str, Any]]:
    first = np.where(codes.original_first == codes.system_y, codes.other, codes.original_first)
    for number, system in enumerate(labels):
        own = chosen & ((first == number) | (codes.system_y == number))
        if own.any():
            values = np.where(judged[own] >= 0, judged[own] == number, NAN)
            prefix = f"system={system}, "
            yield from _rate_rows("win_rate_anytime", place, codes.items[own], values, looks, level, prefix)


def _in_order(items: Ints, values: Floats) -> Floats:
    """Mean value of each item that has one, in order of the items' first rows."""
    given = ~np.isnan(values)
    codes, names = pd.factorize(items[given])
    sums = np.bincount(codes, values[given], minlength=len(names))
    result: Floats = sums / np.bincount(codes, minlength=len(names))
    return result


def _reached(looks: Sequence[int], n: int) -> list[int]:
    return sorted({*(look for look in looks if look < n), n})


def _rate_rows(
    measure: str, place: Place, items: Ints, values: Floats, looks: Sequence[int], level: float, prefix: str = ""
) -> Iterator[dict[str, Any]]:
    one_each = len(np.unique(items)) == len(items)
    observed = _in_order(items, values)
    n_planned, n = len(np.unique(items)), len(observed)
    left_out = excluded_note(n_planned, "items", without_usable_value=n_planned - n)
    common: dict[str, Any] = {"ci_level": level, "n_excluded": n_planned - n, "method": RATE}
    if not n:
        yield _at(place, f"{prefix}first=0").row(
            measure, NAN, n_used=0, note=joined("undefined: no item with a usable value", left_out), **common
        )
        return
    bounds = rate_sequence(observed, level=level)
    for look in _reached(looks, n):
        total = float(observed[:look].sum())
        fixed = wilson(total, look, level)
        compared = f"Wilson, if {look} was fixed beforehand: {fixed[0]:.3f} to {fixed[1]:.3f}" if one_each else ""
        counts = {"numerator": total, "denominator": look} if one_each else {}
        yield _at(place, f"{prefix}first={look}").row(
            measure,
            total / look,
            interval=(bounds[look - 1, 0], bounds[look - 1, 1]),
            n_used=look,
            note=joined(compared, left_out if look == n else ""),
            **counts,
            **common,
        )


def _difference_rows(codes: JudgeCodes, looks: Sequence[int], level: float) -> Iterator[dict[str, Any]]:
    planned = codes.planned["direct"] & codes.planned["original"]
    if not planned.any():
        return
    items, human = codes.items[planned], codes.human[planned]
    direct, original = codes.direct[planned], codes.original[planned]
    valid = (human >= 0) & (direct >= 0) & (original >= 0)
    gap = (original == human).astype(float) - (direct == human)
    observed = _in_order(items, np.where(valid, gap, NAN))
    n_planned, n = len(np.unique(items)), len(observed)
    left_out = excluded_note(n_planned, "items", without_reference_and_both_verdicts=n_planned - n)
    measure, place = "exact_agreement_difference_anytime", Place(codes.judge, "pairwise", "original")
    common: dict[str, Any] = {"ci_level": level, "n_excluded": n_planned - n, "method": DIFFERENCE}
    if not n:
        note = joined("undefined: no item with a reference and both verdicts", left_out)
        yield _at(place, "first=0").row(measure, NAN, n_used=0, note=note, **common)
        return
    reached = _reached(looks, n)
    for look, (low, high) in zip(reached, difference_sequence(observed, level=level, at=reached), strict=True):
        mean = float(observed[:look].mean())
        doubt = EMPTY if np.isnan(low) else "" if low <= mean <= high else DRIFT
        note = joined(doubt, left_out if look == n else "")
        yield _at(place, f"first={look}").row(measure, mean, interval=(low, high), n_used=look, note=note, **common)


def _at(place: Place, slice_: str) -> Place:
    return Place(place.judge, place.strategy, place.pass_, slice_)
