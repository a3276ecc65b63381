"""Bootstrap over whole items, vectorised over the resamples.

An item contributes a row of numbers (counts of contingency cells, a sum and a count, ...) and every statistic here
is a function of the sums of these rows over the resampled items. Items with equal rows are interchangeable, so a
resample of n items is a multinomial draw over the distinct rows: its cost depends on how many distinct rows there
are, not on n. Where nearly every item has a row of its own, items are drawn one by one instead. Both are the
ordinary bootstrap over items (Efron, 1979; Davison and Hinkley, 1997, chapter 2); the rows of one item are
always drawn together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = [
    "Contingency",
    "ItemTable",
    "bootstrap",
    "generator",
    "kappa_from_sums",
    "percentile_interval",
    "rater_kappa",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NAN = float("nan")
CHUNK = 2_000_000  # numbers held at once, so that memory does not grow with the resamples
ROWS = 1_000  # resamples at once: small products, for which BLAS starts no threads that would only wait
DENSE = 2_000_000  # cells of a table of items that is compressed to its distinct rows
MAXIMUM_UNDEFINED = 0.05  # share of undefined resamples above which an interval is not given


def generator(seed: int, *names: str) -> np.random.Generator:
    """Random numbers of one statistic: a function of the protocol's seed and the statistic's and judge's names.

    So a judge that is added, or a measure computed before, changes no other interval.
    """
    digest = hashlib.sha256("\x1f".join(names).encode()).digest()
    return np.random.default_rng([seed, *np.frombuffer(digest, dtype="<u4").tolist()])


@dataclass(frozen=True)
class ItemTable:
    """Distinct rows that items contribute, and how many items have each.

    Attributes
    ----------
    rows : array or sparse array of shape (P, K), or None
        The distinct rows. None stands for the identity: each kind of item is one contingency cell.
    counts : array of shape (P,)
        How many items contribute each row.
    """

    rows: Any
    counts: Ints

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.counts.sum())

    @property
    def totals(self) -> Floats:
        """Sum of the rows over all items, shape (1, K): what a statistic is estimated from."""
        weights = self.counts.astype(np.float64)[np.newaxis, :]
        return weights if self.rows is None else np.asarray(weights @ self.rows)

    @classmethod
    def of(cls, items: NDArray[Any], values: Floats) -> ItemTable:
        """Sum rows ``values`` (n, K) by item; ``items`` (n,) names the item of each row."""
        _, codes = np.unique(items, return_inverse=True)
        n_items = int(codes.max()) + 1 if len(codes) else 0
        sums: Floats = np.column_stack(
            [np.bincount(codes, column, minlength=n_items).astype(np.float64) for column in values.T]
        )
        return cls._distinct(sums)

    @classmethod
    def _distinct(cls, sums: Floats) -> ItemTable:
        rows, counts = np.unique(sums, axis=0, return_counts=True)
        return cls(rows, counts.astype(np.int64))


@dataclass(frozen=True)
class Contingency:
    """The non-empty cells of the table of several raters' labels, by item.

    Attributes
    ----------
    cells : array of shape (C, R)
        Label codes of the R raters in each non-empty cell.
    n_labels : int
        Number of allowed labels.
    table : ItemTable
        What each kind of item contributes to the C cells.
    """

    cells: Ints
    n_labels: int
    table: ItemTable

    @classmethod
    def of(cls, codes: Ints, items: NDArray[Any] | None, n_labels: int) -> Contingency:
        """Count label codes ``codes`` (n, R), each in 0 .. n_labels − 1; ``items`` None means one row an item."""
        n_raters = codes.shape[1]
        flat = np.zeros(len(codes), dtype=np.int64)
        for rater in range(n_raters):
            flat = flat * n_labels + codes[:, rater]
        used, where, counts = _distinct_codes(flat, n_labels**n_raters)
        cells = np.column_stack([used // n_labels**power % n_labels for power in reversed(range(n_raters))])
        if items is None:
            return cls(cells, n_labels, ItemTable(None, counts))
        names, item_codes = np.unique(items, return_inverse=True)
        if len(names) == len(items):
            return cls(cells, n_labels, ItemTable(None, counts))
        shape = (len(names), len(used))
        ones = np.ones(len(where))
        by_item = sparse.csr_array(sparse.coo_array((ones, (item_codes, where)), shape=shape))
        if shape[0] * shape[1] <= DENSE:
            return cls(cells, n_labels, ItemTable._distinct(by_item.toarray()))
        return cls(cells, n_labels, ItemTable(by_item, np.ones(shape[0], dtype=np.int64)))


def _distinct_codes(flat: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """The codes that occur, the place of each row among them, and their counts."""
    if size > 100_000:
        used, where, counts = np.unique(flat, return_inverse=True, return_counts=True)
        return used, where.astype(np.int64), counts.astype(np.int64)
    frequencies = np.bincount(flat, minlength=size)
    used = np.flatnonzero(frequencies).astype(np.int64)
    place = np.zeros(size, dtype=np.int64)
    place[used] = np.arange(len(used))
    return used, place[flat], frequencies[used].astype(np.int64)


def bootstrap(
    table: ItemTable, statistic: Callable[[Floats], Floats], *, resamples: int, rng: np.random.Generator
) -> Floats:
    """Values of a statistic in resamples of whole items.

    Parameters
    ----------
    table : ItemTable
        What the items contribute; at least one item.
    statistic : callable
        Takes sums over resampled items, shape (b, K), and returns values of shape (S, b).
    resamples : int
        Number of resamples B.
    rng : numpy.random.Generator
        See :func:`generator`.

    Returns
    -------
    array of shape (S, B)
        NaN where a statistic is undefined in a resample.
    """
    parts = [statistic(totals) for totals in _resampled_totals(table, resamples, rng)]
    return np.concatenate(parts, axis=1)


def _resampled_totals(table: ItemTable, resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    n, kinds = table.n_items, len(table.counts)
    over_kinds = kinds <= 64 or 5 * kinds <= n
    width = max(kinds, 1 if over_kinds else n, 1 if table.rows is None else table.rows.shape[1])
    step = min(ROWS, max(1, CHUNK // width))
    shares = table.counts / n
    owner = None if over_kinds else np.repeat(np.arange(kinds), table.counts)
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        if owner is None:
            weights = rng.multinomial(n, shares, size=size).astype(np.float64)
        else:
            weights = _item_draws(owner, kinds, size, rng)
        yield weights if table.rows is None else np.asarray(weights @ table.rows)


def _item_draws(owner: Ints, kinds: int, size: int, rng: np.random.Generator) -> Floats:
    """How often each kind of item was drawn, shape (size, kinds), drawing items one by one."""
    drawn = owner[rng.integers(0, len(owner), size=(size, len(owner)))]
    drawn += kinds * np.arange(size)[:, np.newaxis]
    return np.bincount(drawn.ravel(), minlength=size * kinds).reshape(size, kinds).astype(np.float64)


def percentile_interval(values: Floats, level: float) -> tuple[float, float, str]:
    """Percentile interval of bootstrap values, as order statistics.

    Of the m defined values in ascending order, numbered from 0, the bounds are those at ``round((m − 1) p)`` for
    p = (1 − level) / 2 and p = (1 + level) / 2, Python's rounding: no interpolation, the rule of the protocol's
    own analysis script.

    Parameters
    ----------
    values : array of shape (B,)
        NaN where a resample was undefined; such are left out and counted in the note.
    level : float
        Coverage, above 0 and below 1.

    Returns
    -------
    low, high : float
        NaN if more than 5 % of the resamples are undefined.
    note : str
        How many resamples were left out; empty if none.
    """
    defined = values[~np.isnan(values)]
    undefined = len(values) - len(defined)
    note = f"{undefined} of {len(values)} resamples undefined and left out" if undefined else ""
    if len(defined) == 0 or undefined > MAXIMUM_UNDEFINED * len(values):
        return NAN, NAN, f"no interval: {undefined} of {len(values)} resamples undefined"
    tail = (1 - level) / 2
    places = [round((len(defined) - 1) * p) for p in (tail, 1 - tail)]
    ordered = np.partition(defined, places)
    return float(ordered[places[0]]), float(ordered[places[1]]), note


def rater_kappa(totals: Floats, first: Ints, second: Ints, n_labels: int) -> Floats:
    """Cohen's kappa of two raters from counts of contingency cells, vectorised.

    κ = (pₒ − pₑ) / (1 − pₑ); with N judgments, M matches and S = Σₖ n₁(k) n₂(k) this is (N M − S) / (N² − S),
    in whole numbers, so that pₑ = 1 is recognised exactly.

    Parameters
    ----------
    totals : array of shape (b, C)
        Counts of the C cells in each of b samples.
    first, second : arrays of shape (C,)
        Label codes of the two raters in each cell.
    n_labels : int
        Number of labels.

    Returns
    -------
    array of shape (b,)
        Kappa in [−1, 1]; NaN where pₑ = 1 (both raters used one and the same label) or there is no judgment.

    Notes
    -----
    Source: Cohen, "A coefficient of agreement for nominal scales", 1960, equation 1. Checked against
    ``sklearn.metrics.cohen_kappa_score``.
    """
    identity = np.eye(n_labels)
    n = totals.sum(axis=1)
    matches = totals @ (first == second).astype(np.float64)
    expected = ((totals @ identity[first]) * (totals @ identity[second])).sum(axis=1)
    return kappa_from_sums(n, matches, expected)


def kappa_from_sums(n: Floats, matches: Floats, expected: Floats) -> Floats:
    """(N M − S) / (N² − S), NaN where N² = S; see :func:`rater_kappa`."""
    room = n * n - expected
    kappa = np.full(len(n), NAN)
    np.divide(n * matches - expected, room, out=kappa, where=room > 0)
    return kappa
