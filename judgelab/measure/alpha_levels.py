"""Levels of measurement: what the ratings of an item add to Krippendorff's alpha, and alpha from their sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from judgelab.measure.resampling import Floats, Ints, ItemTable

__all__ = ["LEVELS", "Level", "alpha_from_totals", "prepare", "unit_features"]

NAN = float("nan")
Level = Literal["nominal", "ordinal", "interval", "ratio"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")
Statistic = Callable[[Floats], Floats]
ROUNDING = 1e-12
FEW = 20  # distinct values up to which items with equal ratings are counted together
BLOCK = 500  # values whose distances to all others are held at once


def unit_features(units: Ints, codes: Ints, n_labels: int) -> tuple[Ints, Floats]:
    """What each unit adds to the coincidence matrix.

    A unit u with mᵤ ≥ 2 labels, of which nᵤ(c) are c, adds nᵤ(c) (nᵤ(k) − [c = k]) / (mᵤ − 1) to the coincidence of
    c and k. For the nominal level only the row sums, which are nᵤ(c), and the sum off the diagonal are needed.

    Parameters
    ----------
    units : array of shape (n,)
        Unit of each label, coded 0, 1, ...
    codes : array of shape (n,)
        Label codes, 0 .. n_labels − 1.
    n_labels : int
        Number of allowed labels.

    Returns
    -------
    pairable : array of shape (U,)
        The units with two labels or more.
    features : array of shape (U, n_labels + 1)
        nᵤ(c) for each label, then the unit's sum off the diagonal.
    """
    n_units = int(units.max()) + 1 if len(units) else 0
    counts = np.bincount(units * n_labels + codes, minlength=n_units * n_labels).reshape(n_units, n_labels)
    sizes = counts.sum(axis=1)
    pairable = np.flatnonzero(sizes >= 2)
    counts, sizes = counts[pairable].astype(np.float64), sizes[pairable].astype(np.float64)
    unequal = (sizes**2 - (counts**2).sum(axis=1)) / (sizes - 1)
    return pairable.astype(np.int64), np.column_stack([counts, unequal])


def alpha_from_totals(totals: Floats) -> NDArray[np.float64]:
    """α = 1 − (n − 1) D / (n² − Σ n(c)²) from summed :func:`unit_features`.

    n(c) counts pairable labels c, n is their sum, and D the coincidences off the diagonal.

    Parameters
    ----------
    totals : array of shape (b, n_labels + 1)

    Returns
    -------
    array of shape (b,)
        At most 1; NaN where only one label occurs or nothing can be paired.

    Notes
    -----
    Source: Krippendorff, "Computing Krippendorff's alpha-reliability", 2011, section C. Equal to
    ``krippendorff.alpha(level_of_measurement="nominal")``, with which it is tested.
    """
    frequencies, unequal = totals[:, :-1], totals[:, -1]
    n = frequencies.sum(axis=1)
    expected = n * n - (frequencies**2).sum(axis=1)
    alpha = np.full(len(totals), NAN)
    np.divide((n - 1) * unequal, expected, out=alpha, where=expected > 0)
    return 1 - alpha


def prepare(items: Ints, units: Ints, codes: Ints, scale: Floats, level: Level) -> tuple[ItemTable, Statistic]:
    """What the items contribute, and alpha, shape (1, b), as a function of its sums over b samples of items.

    Parameters
    ----------
    items : array of shape (U,)
        Item of each unit.
    units, codes : arrays of shape (n,)
        Unit of each rating, 0 .. U − 1, each with two ratings or more; place of its value in ``scale``.
    scale : array of shape (V,)
        The values that occur, in ascending order.
    level : {"nominal", "ordinal", "interval", "ratio"}
    """
    shape = (len(items), len(scale))
    counts = sparse.csr_array(sparse.coo_array((np.ones(len(units)), (units, codes)), shape=shape))
    if level == "interval":
        return ItemTable.of(items, _interval_features(counts, scale)), _interval
    if level == "ordinal":
        return _ordinal_few(items, counts) if len(scale) <= FEW else _ordinal_many(items, counts)
    if level == "nominal":
        unequal = (counts.sum(axis=1) ** 2 - (counts**2).sum(axis=1)) / (counts.sum(axis=1) - 1)
        return _by_item(items, counts, unequal), lambda totals: alpha_from_totals(totals)[np.newaxis, :]
    return _by_item(items, counts, _ratio_within(units, scale[codes])), lambda totals: _ratio(totals, scale)


def _by_item(items: Ints, counts: Any, more: Floats) -> ItemTable:
    """Counts of the values and one more sum, by item; a sparse table where the values are many."""
    if counts.shape[1] <= FEW:
        return ItemTable.of(items, np.column_stack([counts.toarray(), more]))
    _, own = np.unique(items, return_inverse=True)
    membership = sparse.csr_array((np.ones(len(own)), (own, np.arange(len(own)))))
    rows = membership @ sparse.hstack([counts, sparse.csr_array(more[:, np.newaxis])], format="csr")
    return ItemTable(rows, np.ones(rows.shape[0], dtype=np.int64))


def _interval_features(counts: Any, scale: Floats) -> Floats:
    """Σ_{i≠j} (vᵢ − vⱼ)² = 2 (m Σ v² − (Σ v)²), for a unit and for all ratings: four sums are enough.

    They are taken from the values' counts, so that units with the same ratings have the very same sums.
    """
    frequencies = counts.sum(axis=0)
    # From a value near the mean: alpha does not change, squares stay small, and whole numbers stay whole.
    centred = scale - scale[np.abs(scale - frequencies @ scale / frequencies.sum()).argmin()]
    m, total, squares = counts.sum(axis=1), counts @ centred, counts @ centred**2
    within = (m * squares - total**2) / (m - 1)
    return np.column_stack([m, total, squares, within])


def _interval(totals: Floats) -> Floats:
    n, total, squares, within = totals.T
    return _one_minus(n - 1, within, n * squares - total**2, n * squares)


def _ordinal_few(items: Ints, counts: Any) -> tuple[ItemTable, Statistic]:
    """The interval level on mid-ranks, which differ in every sample: Dₒ needs the coincidences of all values."""
    given = counts.toarray()
    n_values = given.shape[1]
    upper = np.triu_indices(n_values)
    same = upper[0] == upper[1]
    pairs = given[:, upper[0]] * given[:, upper[1]]
    pairs[:, same] -= given
    coincidences = pairs / (given.sum(axis=1, keepdims=True) - 1)
    twice = np.where(same, 1.0, 2.0)

    def statistic(totals: Floats) -> Floats:
        frequencies, together = totals[:, :n_values], totals[:, n_values:]
        ranks = _centred_ranks(frequencies)
        products = (together * (ranks[:, upper[0]] * ranks[:, upper[1]]) * twice).sum(axis=1)
        return _ordinal(frequencies, ranks, (frequencies * ranks**2).sum(axis=1) - products)

    return ItemTable.of(items, np.hstack([given, coincidences])), statistic


def _ordinal_many(items: Ints, counts: Any) -> tuple[ItemTable, Statistic]:
    """As for few values, with each unit's own sums of ranks, since nearly every unit is unlike the others."""
    _, own = np.unique(items, return_inverse=True)
    membership = sparse.csr_array((np.ones(len(own)), (own, np.arange(len(own)))))
    sizes = counts.sum(axis=1)
    of_unit = sparse.csr_array(counts.T)

    def statistic(drawn: Floats) -> Floats:
        frequencies = np.asarray(drawn @ counts)
        ranks = _centred_ranks(frequencies)
        within = (sizes * np.asarray(ranks**2 @ of_unit) - np.asarray(ranks @ of_unit) ** 2) / (sizes - 1)
        return _ordinal(frequencies, ranks, (drawn * within).sum(axis=1))

    return ItemTable(membership, np.ones(membership.shape[0], dtype=np.int64)), statistic


def _centred_ranks(frequencies: Floats) -> Floats:
    """Mid-rank of each value in each sample, from the middle of all ranks, which keeps the squares small."""
    n = frequencies.sum(axis=1, keepdims=True)
    ranks: Floats = np.cumsum(frequencies, axis=1) - frequencies / 2 - n / 2
    return ranks


def _ordinal(frequencies: Floats, ranks: Floats, within: Floats) -> Floats:
    n, squares = frequencies.sum(axis=1), (frequencies * ranks**2).sum(axis=1)
    # Ranks of values that do not occur play no part. With one value its mid-rank is the middle, 0.
    varies = (frequencies > 0).sum(axis=1) > 1
    alpha = np.full(len(n), NAN)
    np.divide((n - 1) * within, n * squares, out=alpha, where=varies)
    return (1 - alpha)[np.newaxis, :]


def _ratio_within(units: Ints, values: Floats) -> Floats:
    """Σ_{i≠j} δ²(vᵢ, vⱼ) / (m − 1) of each unit, from pairs of ratings that are 1, 2, ... places apart."""
    order = np.argsort(units, kind="stable")
    unit, value = units[order], values[order]
    sizes = np.bincount(unit)
    sums = np.zeros(len(sizes))
    for places in range(1, int(sizes.max())):
        same = unit[places:] == unit[:-places]
        apart = _ratio_distance(value[places:][same], value[:-places][same])
        sums += 2 * np.bincount(unit[places:][same], apart, minlength=len(sizes))
    return sums / (sizes - 1)


def _ratio_distance(first: Floats, second: Floats) -> Floats:
    """((c − k) / (c + k))²; 0 if both are 0."""
    total = first + second
    share: Floats = np.divide(first - second, total, out=np.zeros(total.shape), where=total > 0)
    return share**2


def _ratio(totals: Floats, scale: Floats) -> Floats:
    frequencies, within = totals[:, :-1], totals[:, -1]
    expected = np.zeros(len(totals))
    for start in range(0, len(scale), BLOCK):
        block = slice(start, start + BLOCK)
        apart = _ratio_distance(scale[block, np.newaxis], scale[np.newaxis, :])
        expected += ((frequencies[:, block] @ apart) * frequencies).sum(axis=1)
    return _one_minus(frequencies.sum(axis=1) - 1, within, expected, expected)


def _one_minus(factor: Floats, observed: Floats, expected: Floats, terms: Floats) -> Floats:
    """1 − factor · observed / expected, shape (1, b); NaN where nothing varies.

    ``expected`` is a difference of ``terms`` and something equal to them where nothing varies, up to rounding.
    """
    alpha = np.full(len(expected), NAN)
    np.divide(factor * observed, expected, out=alpha, where=expected > ROUNDING * terms)
    return (1 - alpha)[np.newaxis, :]
