"""Do a judge's scores order answers as people's do, and how far are they apart?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import kendalltau, spearmanr

from judgelab.measure.coding import check_columns, excluded_note
from judgelab.measure.estimates import Place, Settings, mean_row, table_row
from judgelab.measure.resampling import Floats, Ints, ItemTable
from judgelab.measure.rows import frame, joined

__all__ = ["association_rows", "score_table"]

NAN = float("nan")
MAXIMUM_POINTS = 2_000  # Kendall's interval compares every two distinct points: 2,000 cost a few seconds
MINIMUM_ANSWERS = 3


def score_table(normalized: pd.DataFrame, *, ci_level: float, resamples: int, seed: int) -> pd.DataFrame:
    """Judges' direct totals against the reviewers' mean scores; one point an answer of an item.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`; judges without planned direct calls have no rows.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows with strategy and pass ``direct``:

        - ``spearman``, ``kendall`` (τ_b): rank correlation over answers of the whole study, −1 to 1; NaN with fewer
          than three answers or a constant side;
        - ``mean_absolute_difference``: mean |judge − human| in units of the scale;
        - ``mean_difference``: mean (judge − human); above 0 the judge is lenient;
        - ``mean_score`` and ``sd_score`` (n − 1) of the judge's totals, by ``system=<s>``.

        Intervals: bootstrap over whole items; ``n_used`` counts items, the note the answers.

    Raises
    ------
    ValueError
        If a column is missing.

    Notes
    -----
    The two scales are compared as they are: a difference means something only if people and judge used one scale.
    Sources: Spearman, 1904; Kendall, 1945 (ties). Estimates are those of scipy.stats.
    """
    needed = ["judge", "item_id", "planned_direct"]
    needed += [f"{name}_{side}" for name in ("system", "total", "human_score") for side in "xy"]
    check_columns(normalized, needed, "normalized")
    settings = Settings(ci_level, resamples, seed)
    planned = normalized[normalized["planned_direct"].to_numpy(dtype=bool)]
    lines: list[dict[str, Any]] = []
    for judge, group in planned.groupby("judge", sort=False):
        answers = _answers(group)
        items = pd.factorize(answers["item_id"])[0].astype(np.int64)
        human, total = answers["human"].to_numpy(), answers["judge"].to_numpy()
        place = Place(str(judge), "direct", "direct")
        lines += association_rows(place, items, human, total, settings=settings)
        lines += _spread_rows(place, items, answers["system"].to_numpy(), total, settings)
    return frame(lines)


def _answers(group: pd.DataFrame) -> pd.DataFrame:
    """One row an answer (item, system): the mean human score and the judge's total."""
    sides = [
        pd.DataFrame(
            {
                "item_id": group["item_id"],
                "system": group[f"system_{side}"].astype(object),
                "human": pd.to_numeric(group[f"human_score_{side}"]).astype(float),
                "judge": pd.to_numeric(group[f"total_{side}"]).astype(float),
            }
        )
        for side in "xy"
    ]
    stacked = pd.concat(sides, ignore_index=True)
    return stacked.groupby(["item_id", "system"], sort=False, as_index=False)[["human", "judge"]].mean()


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
    reason = _why_undefined(first[valid], second[valid])
    if reason:
        for measure in ("spearman", "kendall"):
            yield place.row(measure, NAN, note=joined(f"undefined: {reason}", note), **common)
    else:
        points = _Points(items[valid], first[valid], second[valid])
        yield _correlation_row("spearman", place, points, settings, note, common)
        yield _correlation_row("kendall", place, points, settings, note, common)
    gap = np.where(valid, second - first, NAN)
    yield mean_row("mean_absolute_difference", place, items, np.abs(gap), settings=settings, note=note)
    yield mean_row("mean_difference", place, items, gap, settings=settings, note=note)


def _why_undefined(first: Floats, second: Floats) -> str:
    if len(first) < MINIMUM_ANSWERS:
        return f"{len(first)} answers with both scores, {MINIMUM_ANSWERS} are needed"
    return "one side gives every answer the same score" if np.ptp(first) == 0 or np.ptp(second) == 0 else ""


class _Points:
    """Distinct pairs of scores, and how often each item has them."""

    def __init__(self, items: Ints, first: Floats, second: Floats) -> None:
        self.first, self.second = first, second
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


def _correlation_row(
    measure: str, place: Place, points: _Points, settings: Settings, note: str, common: dict[str, Any]
) -> dict[str, Any]:
    library, mine = (spearmanr, points.spearman) if measure == "spearman" else (kendalltau, points.kendall)
    estimate = float(library(points.first, points.second).statistic)
    if measure == "kendall" and len(points.codes[0]) > MAXIMUM_POINTS:
        reason = f"no interval: more than {MAXIMUM_POINTS} distinct points"
        return place.row(measure, estimate, note=joined(reason, note), **common)
    line = table_row(measure, place, points.table, mine, settings=settings, note=note, undefined="constant", **common)
    return line | {"estimate": estimate}


def _spread_rows(
    place: Place, items: Ints, systems: NDArray[Any], totals: Floats, settings: Settings
) -> Iterator[dict[str, Any]]:
    for system in pd.unique(pd.Series(systems, dtype=object)):
        chosen = systems == system
        values, of = totals[chosen], items[chosen]
        where = Place(place.judge, place.strategy, place.pass_, f"system={system}")
        note = excluded_note(len(values), "answers", without_usable_verdict=int(np.isnan(values).sum()))
        yield mean_row("mean_score", where, of, values, settings=settings, note=note)
        scored = values[~np.isnan(values)]
        common = {"n_used": len(scored), "n_excluded": len(values) - len(scored)}
        if len(scored) < 2:
            reason = joined(f"undefined: {len(scored)} answers, 2 are needed", note)
            yield where.row("sd_score", NAN, note=reason, **common)
        else:
            method = "sample standard deviation (n - 1), no interval"
            yield where.row("sd_score", float(scored.std(ddof=1)), method=method, note=note, **common)
