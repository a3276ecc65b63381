"""Correlation of a judge's scores with people's, over all answers, within each item, and between systems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import kendalltau, pearsonr, rankdata, spearmanr

from judgelab.measure.association import MINIMUM_ANSWERS, Points, why_undefined
from judgelab.measure.coding import check_columns, excluded_note
from judgelab.measure.estimates import Place, Settings, mean_row, table_row
from judgelab.measure.resampling import Floats, Ints, ItemTable
from judgelab.measure.rows import frame, joined

__all__ = ["CORRELATIONS", "correlation_rows", "correlation_table"]

NAN = float("nan")
CORRELATIONS: dict[str, Callable[..., Any]] = {"pearson": pearsonr, "spearman": spearmanr, "kendall": kendalltau}
ROUNDING = 1e-12
Leveled = Iterator[tuple[str, dict[str, Any]]]


def correlation_table(scores: pd.DataFrame, *, ci_level: float, resamples: int, seed: int) -> pd.DataFrame:
    """Pearson, Spearman and Kendall (τ_b) of two sets of scores of the same answers, at three levels.

    ========  ===========================================================================================
    level     what is correlated
    ========  ===========================================================================================
    data_set  all answers pooled: differences between items count as well as those between their answers
    document  the answers of one item, then the mean over items; items with fewer than three answers, or
              with answers that one side scores all alike, are left out and counted
    system    the systems' mean scores; three systems or more. The systems are taken as given, and the items resampled
    ========  ===========================================================================================

    The three answer different questions and often differ a lot: a number without its level says little.

    Parameters
    ----------
    scores : DataFrame
        One row an answer: item_id, human, judge (numbers or missing), optionally ``system`` (needed for the level
        system) and ``dimension`` (then all is computed by dimension).
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` and ``level``; slice ``all`` or ``dimension=<d>``. From −1 to 1;
        NaN with the reason where a side does not vary or too little is there. Intervals: bootstrap over whole items.

    Raises
    ------
    ValueError
        If a column is missing, a score is infinite or no number, or a system answers an item twice.

    Notes
    -----
    Sources: Pearson, 1895; Spearman, 1904; Kendall, 1945 (ties). Estimates are those of scipy.stats, and reproduce
    UniEval's published tables.
    """
    check_columns(scores, ["item_id", "human", "judge"], "scores")
    for name in ("item_id", "dimension"):
        if name in scores and scores[name].isna().any():
            raise ValueError(f"scores, column {name}: {int(scores[name].isna().sum())} of {len(scores)} are missing")
    settings = Settings(ci_level, resamples, seed)
    parts = [("all", scores)]
    if "dimension" in scores:
        parts = [(f"dimension={name}", part) for name, part in scores.groupby("dimension", sort=False)]
    lines, levels = [], []
    for slice_, part in parts:
        for level, line in correlation_rows(Place(slice_=slice_), part, settings=settings):
            lines.append(line)
            levels.append(level)
    return frame(lines).assign(level=levels)


def correlation_rows(place: Place, scores: pd.DataFrame, *, settings: Settings) -> Leveled:
    """Level and row of each correlation of one set of answers; see :func:`correlation_table`."""
    human, judge = (_numbers(scores, name) for name in ("human", "judge"))
    items = pd.factorize(scores["item_id"])[0].astype(np.int64)
    valid = ~np.isnan(human) & ~np.isnan(judge)
    note = excluded_note(len(valid), "answers", without_both_scores=int((~valid).sum()))
    if "system" in scores:
        _check_answers(scores)
    systems = scores["system"] if "system" in scores else pd.Series(np.nan, index=scores.index, dtype=object)
    codes = pd.factorize(systems)[0]
    yield from _pooled(place, items, human, judge, valid, settings, note)
    yield from _within(place, items, human, judge, valid, settings, note)
    yield from _between(place, items, codes, human, judge, valid, settings, note)


def _numbers(scores: pd.DataFrame, side: str) -> Floats:
    """One side's scores; NaN where there is none."""
    values = scores[side]
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.isinf(numbers) | (np.isnan(numbers) & values.notna().to_numpy())
    if wrong.any():
        first, item = (scores[name].astype(object).to_numpy()[wrong][0] for name in (side, "item_id"))
        raise ValueError(
            f"scores, column {side}: {int(wrong.sum())} of {len(scores)} are not a finite number; "
            f"first {first!r}, item {item}"
        )
    return numbers


def _check_answers(scores: pd.DataFrame) -> None:
    """An item has one answer of a system; answers without a named system cannot be told apart and are not looked at."""
    twice = (scores.duplicated(["item_id", "system"]) & scores["system"].notna()).to_numpy()
    if twice.any():
        where = scores[twice].iloc[0]
        raise ValueError(
            f"scores: {int(twice.sum())} of {len(scores)} answers repeat an item and system; "
            f"first item {where['item_id']}, system {where['system']}"
        )


def _common(items: Ints, valid: NDArray[np.bool_], settings: Settings) -> dict[str, Any]:
    used, all_items = len(np.unique(items[valid])), len(np.unique(items))
    return {"ci_level": settings.ci_level, "n_used": used, "n_excluded": all_items - used}


def _pooled(
    place: Place, items: Ints, human: Floats, judge: Floats, valid: NDArray[np.bool_], settings: Settings, note: str
) -> Leveled:
    common, told = _common(items, valid, settings), joined(f"over {int(valid.sum())} answers", note)
    x, y = human[valid], judge[valid]
    reason = why_undefined(x, y)
    if reason:
        for measure in CORRELATIONS:
            yield "data_set", place.row(measure, NAN, note=joined(f"undefined: {reason}", told), **common)
        return
    centred = [each - each.mean() for each in (x, y)]
    products = [np.ones(len(x)), *centred, centred[0] ** 2, centred[1] ** 2, centred[0] * centred[1]]
    table = ItemTable.of(items[valid], np.column_stack(products))
    line = table_row("pearson", place, table, _pearson_of, settings=settings, note=told, undefined="constant", **common)
    yield "data_set", line | {"estimate": float(pearsonr(x, y).statistic)}
    points = Points(items[valid], x, y)
    for measure in ("spearman", "kendall"):
        yield "data_set", points.row(measure, place, settings, told, common)


def _pearson_of(totals: Floats) -> Floats:
    n, x, y, xx, yy, xy = totals.T
    spread = (n * xx - x**2, n * yy - y**2)
    varies = (spread[0] > ROUNDING * n * xx) & (spread[1] > ROUNDING * n * yy)
    result = np.full(len(n), NAN)
    np.divide(n * xy - x * y, np.sqrt(np.maximum(spread[0] * spread[1], 0.0)), out=result, where=varies)
    return np.clip(result, -1.0, 1.0)[np.newaxis, :]


def _within(
    place: Place, items: Ints, human: Floats, judge: Floats, valid: NDArray[np.bool_], settings: Settings, note: str
) -> Leveled:
    names = np.unique(items)
    order = np.argsort(np.where(valid, items, -1), kind="stable")
    starts = np.searchsorted(np.where(valid, items, -1)[order], [*names, len(names)])
    rows = [order[start:end] for start, end in pairwise(starts)]
    reasons = [why_undefined(human[row], judge[row]) for row in rows]
    few = sum(len(row) < MINIMUM_ANSWERS for row in rows)
    constant = sum(bool(reason) for reason in reasons) - few
    told = joined(excluded_note(len(names), "items", with_fewer_than_3_answers=few, with_one_score=constant), note)
    for measure, function in CORRELATIONS.items():
        values = [
            NAN if reason else float(function(human[row], judge[row]).statistic)
            for row, reason in zip(rows, reasons, strict=True)
        ]
        line = mean_row(f"{measure}_document", place, names, np.asarray(values), settings=settings, note=told)
        yield "document", line | {"measure": measure, "method": joined("mean over items", line["method"])}


def _between(
    place: Place,
    items: Ints,
    systems: NDArray[Any],
    human: Floats,
    judge: Floats,
    valid: NDArray[np.bool_],
    settings: Settings,
    note: str,
) -> Leveled:
    chosen = valid & (systems >= 0)
    common = _common(items, chosen, settings)
    kept, codes = np.unique(systems[chosen], return_inverse=True)
    onehot = np.eye(len(kept))[codes]
    values = [onehot, onehot * human[chosen][:, np.newaxis], onehot * judge[chosen][:, np.newaxis]]
    x, y = (_untied(each.sum(axis=0) / onehot.sum(axis=0)) for each in values[1:])
    reason = why_undefined(x, y, "systems") if len(kept) else "no system is named"
    table = None if reason else ItemTable.of(items[chosen], np.hstack(values))
    told = joined(f"over {len(kept)} systems", note)
    for measure, function in CORRELATIONS.items():
        if table is None:
            yield "system", place.row(measure, NAN, note=joined(f"undefined: {reason}", told), **common)
            continue
        line = table_row(
            f"{measure}_system",
            place,
            table,
            partial(_of_means, n_systems=len(kept), measure=measure),
            settings=settings,
            note=told,
            undefined="constant",
            **common,
        )
        yield "system", line | {"measure": measure, "estimate": float(function(x, y).statistic)}


def _untied(means: Floats) -> Floats:
    """Means without the last digits, in which equal means differ by the rounding of their sums."""
    scale = np.nanmax(np.abs(means), initial=0.0, axis=-1, keepdims=True)
    digits = np.divide(means, scale, out=np.zeros(means.shape), where=scale > 0)
    return np.where(np.isnan(means), NAN, np.round(digits, 12) * scale)


def _of_means(totals: Floats, *, n_systems: int, measure: str) -> Floats:
    """A correlation of the systems' means in each sample; NaN where a system has no answer in it or nothing varies."""
    counts, *sums = (totals[:, k * n_systems : (k + 1) * n_systems] for k in range(3))
    x, y = (np.divide(each, counts, out=np.full(each.shape, NAN), where=counts > 0) for each in sums)
    x, y = (_untied(each) for each in (x, y))
    if measure == "spearman":
        x, y = (rankdata(each, axis=1, nan_policy="propagate") for each in (x, y))
    if measure == "kendall":
        x, y = (np.sign(each[:, :, np.newaxis] - each[:, np.newaxis, :]) for each in (x, y))
        x, y = (each.reshape(len(each), n_systems * n_systems) for each in (x, y))
    else:
        x, y = (each - each.mean(axis=1, keepdims=True) for each in (x, y))
    spread = (x**2).sum(axis=1) * (y**2).sum(axis=1)
    result = np.full(len(totals), NAN)
    np.divide((x * y).sum(axis=1), np.sqrt(spread), out=result, where=spread > 0)
    return np.clip(result, -1.0, 1.0)[np.newaxis, :]
