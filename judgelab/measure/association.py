"""Rank correlation and distance of two raters' scores of the same answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import kendalltau, spearmanr

from judgelab.measure.coding import excluded_note
from judgelab.measure.estimates import Place, Settings, mean_row, table_row
from judgelab.measure.resampling import Floats, Ints, ItemTable
from judgelab.measure.rows import joined

__all__ = ["Points", "association_rows", "why_undefined"]

NAN = float("nan")
MAXIMUM_POINTS = 2_000  # Kendall's interval compares every two distinct points: 2,000 cost a few seconds
MINIMUM_ANSWERS = 3
ROUNDING = 1e-12  # scores that differ by a smaller share of themselves differ by the rounding of their means


def association_rows(
    place: Place, items: Ints, first: Floats, second: Floats, *, settings: Settings
) -> Iterator[dict[str, Any]]:
    """Rank correlations and differences (second minus first) of two raters' scores of the same answers.

    Parameters
    ----------
    items : array of shape (n,)
        Item of each answer; items are resampled whole.
    first, second : arrays of shape (n,)
        Scores, NaN where there is none; answers without both are left out.
    """
    valid = ~np.isnan(first) & ~np.isnan(second)
    n_items = len(np.unique(items[valid]))
    note = joined(
        f"over {int(valid.sum())} answers",
        excluded_note(len(valid), "answers", without_both_scores=int((~valid).sum())),
    )
    common = {
        "ci_level": settings.ci_level,
        "n_used": n_items,
        "n_excluded": len(np.unique(items)) - n_items,
    }
    reason = why_undefined(first[valid], second[valid])
    if reason:
        for measure in ("spearman", "kendall"):
            yield place.row(measure, NAN, note=joined(f"undefined: {reason}", note), **common)
    else:
        points = Points(items[valid], first[valid], second[valid])
        yield points.row("spearman", place, settings, note, common)
        yield points.row("kendall", place, settings, note, common)
    gap = np.where(valid, second - first, NAN)
    yield mean_row("mean_absolute_difference", place, items, np.abs(gap), settings=settings, note=note)
    yield mean_row("mean_difference", place, items, gap, settings=settings, note=note)


def why_undefined(first: Floats, second: Floats, what: str = "answers") -> str:
    """Why two raters' scores have no correlation; empty if they have one."""
    if len(first) < MINIMUM_ANSWERS:
        return f"{len(first)} {what} with both scores, {MINIMUM_ANSWERS} are needed"
    constant = any(np.ptp(side) <= ROUNDING * np.abs(side).max() for side in (first, second))
    return f"one side gives every {what.removesuffix('s')} the same score" if constant else ""


class Points:
    """Distinct pairs of scores, and how often each item has them."""

    def __init__(self, items: Ints, first: Floats, second: Floats) -> None:
        self.given = (first, second)
        distinct, where = np.unique(np.column_stack([first, second]), axis=0, return_inverse=True)
        self.codes = [np.unique(column, return_inverse=True)[1] for column in distinct.T]
        _, rows = np.unique(items, return_inverse=True)
        shape = (int(rows.max()) + 1, len(distinct))
        counts = sparse.coo_array((np.ones(len(rows)), (rows, where.ravel())), shape=shape)
        self.table = ItemTable(sparse.csr_array(counts), np.ones(shape[0], dtype=np.int64))

    def spearman(self, totals: Floats) -> Floats:
        """Pearson's correlation of mid-ranks, each point weighted by how often it was drawn."""
        n = totals.sum(axis=1, keepdims=True)
        ranks = [_mid_ranks(totals, codes) - (n + 1) / 2 for codes in self.codes]
        products = (totals * ranks[0] * ranks[1]).sum(axis=1)
        spread = [(totals * rank * rank).sum(axis=1) for rank in ranks]
        return _bounded(products, spread[0] * spread[1])[np.newaxis, :]

    def kendall(self, totals: Floats) -> Floats:
        """τ_b = (C − D) / √((C + D + T₁)(C + D + T₂)), over weighted pairs of points."""
        signs = [np.sign(codes[:, np.newaxis] - codes[np.newaxis, :]) for codes in self.codes]
        concordance = ((totals @ (signs[0] * signs[1]).astype(np.float64)) * totals).sum(axis=1)
        n = totals.sum(axis=1)
        untied = [n * n - (_by_value(totals, codes) ** 2).sum(axis=1) for codes in self.codes]
        return _bounded(concordance, untied[0] * untied[1])[np.newaxis, :]

    def row(self, measure: str, place: Place, settings: Settings, note: str, common: dict[str, Any]) -> dict[str, Any]:
        """``spearman`` or ``kendall`` with its interval; Kendall's has none where there are too many points."""
        library, mine = (spearmanr, self.spearman) if measure == "spearman" else (kendalltau, self.kendall)
        estimate = float(library(*self.given).statistic)
        if measure == "kendall" and len(self.codes[0]) > MAXIMUM_POINTS:
            reason = f"no interval: more than {MAXIMUM_POINTS} distinct points"
            return place.row(measure, estimate, note=joined(reason, note), **common)
        line = table_row(measure, place, self.table, mine, settings=settings, note=note, undefined="constant", **common)
        return line | {"estimate": estimate}


def _bounded(numerator: Floats, squared: Floats) -> Floats:
    """numerator / √squared, within [−1, 1] against rounding; NaN where a side does not vary."""
    result = np.full(len(numerator), NAN)
    np.divide(numerator, np.sqrt(squared), out=result, where=squared > 0)
    return np.clip(result, -1.0, 1.0)


def _by_value(totals: Floats, codes: NDArray[Any]) -> Floats:
    """How often each distinct value was drawn, shape (b, values)."""
    onehot = sparse.csr_array((np.ones(len(codes)), (np.arange(len(codes)), codes)))
    return np.asarray(totals @ onehot)


def _mid_ranks(totals: Floats, codes: NDArray[Any]) -> Floats:
    """Mid-rank of each point in each sample: the values below it plus half of those equal to it."""
    counts = _by_value(totals, codes)
    ranks = np.cumsum(counts, axis=1) - (counts - 1) / 2
    return np.asarray(ranks[:, codes])
