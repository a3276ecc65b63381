"""Elo over many seeded orders of the matches, played side by side; and one such ranking for every group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.coding import check_columns
from judgelab.measure.elo_options import EloOptions
from judgelab.measure.matches import Matches
from judgelab.measure.resampling import Floats, Ints, generator

__all__ = [
    "Orders",
    "Resamples",
    "check_permutations",
    "elo_by_group",
    "elo_orders",
    "match_orders",
    "play",
    "play_orders",
]

NAN = float("nan")
LANES = 2_000  # orders played side by side: their ratings stay in the processor's cache
CELLS = 50_000_000  # matches of all orders held at once (4 bytes each)
STEPS = 64  # matches of each order that are looked up at once
KEYS = 65_536  # random keys sorted at once
Rows = NDArray[np.int32]


@dataclass(frozen=True)
class Orders:
    """Ratings after the same matches in many orders.

    Attributes
    ----------
    systems : tuple of str
        The systems in order of appearance.
    ratings : array of shape (permutations, systems)
        Rating of each system at the end of each order; NaN for a system without a decided match.
    played, undecided : arrays of int, shape (systems,)
        Matches of each system with and without a preference.
    """

    systems: tuple[str, ...]
    ratings: Floats
    played: Ints
    undecided: Ints


def match_orders(n: int, *, permutations: int, seed: int) -> Rows:
    """The orders that :func:`elo_orders` plays.

    Parameters
    ----------
    n : int
        Number of decided matches.
    permutations, seed : int
        Number of orders (1 and more); the study's seed.

    Returns
    -------
    array of int32, shape (permutations, n)
        Each row is a uniform random order of 0 .. n − 1, drawn on its own: the first rows stay the same when more
        are drawn. Every position gets a random key, and the keys are sorted.

    Raises
    ------
    ValueError
        If ``permutations`` is below 1.

    Examples
    --------
    >>> sorted(match_orders(4, permutations=2, seed=1)[1].tolist())
    [0, 1, 2, 3]
    """
    check_permutations(permutations)
    return _random_orders(n, permutations, generator(seed, "elo_orders"))


def check_permutations(permutations: int) -> None:
    """Refuse fewer than one order with a ValueError."""
    if permutations < 1:
        raise ValueError(f"permutations is {permutations}; allowed is 1 and more")


def _random_orders(n: int, lanes: int, rng: np.random.Generator) -> Rows:
    """Uniform random orders by sorted keys: as fast as a shuffle, and raw bits are the same in every numpy."""
    orders = np.empty((lanes, n), dtype=np.int32)
    low = np.uint64((1 << n.bit_length()) - 1)  # the low bits of a key hold the position, all others are random
    position = np.arange(n, dtype=np.uint64)
    step = max(1, KEYS // max(n, 1))
    for start in range(0, lanes, step):
        part = orders[start : start + step]
        keys = np.asarray(rng.bit_generator.random_raw(part.size)).reshape(part.shape)
        keys &= ~low
        keys |= position
        keys.sort(axis=1)
        keys &= low
        np.copyto(part, keys, casting="unsafe")
    return orders


def elo_orders(
    matches: pd.DataFrame,
    *,
    permutations: int = 1000,
    seed: int,
    initial: float = 1000.0,
    k: float = 32.0,
    base: float = 10.0,
    scale: float = 400.0,
) -> Orders:
    """Elo ratings after seeded random orders of the matches, all orders played side by side.

    Parameters
    ----------
    matches : DataFrame
        See :func:`judgelab.measure.ranking.elo`; ``weight`` multiplies ``k``.
    permutations : int
        Number of orders; see :func:`match_orders`.
    seed : int
        Seed of the orders.
    initial, k, base, scale : float
        See :func:`judgelab.measure.ranking.elo`.

    Returns
    -------
    Orders
        Each row of ``ratings`` is what :func:`judgelab.measure.ranking.elo` gives for the decided matches in that
        order. The mean over the systems stays ``initial``.

    Raises
    ------
    ValueError
        See :meth:`Matches.of`; or if an option is out of range.

    Notes
    -----
    A table of finished answers has no order of its own, so that one order's ratings are one draw; the mean over many
    is what is reported (Boubdir et al., "Elo Uncovered: Robustness and Best Practices in Language Model Evaluation",
    2023). Checked against ``evalica.elo`` on every order.

    Examples
    --------
    a beats b and b beats a: who won last is ahead by 32 / (1 + 10^(−32/400)) − 16 = 1.47 points, 0.74 each.

    >>> table = pd.DataFrame({"system_x": ["a", "a"], "system_y": ["b", "b"], "preference": ["a", "b"]})
    >>> ratings = elo_orders(table, permutations=50, seed=1).ratings
    >>> np.unique(ratings[:, 0].round(2)).tolist()
    [998.53, 1001.47]
    """
    options = EloOptions(initial, k, base, scale)
    check_permutations(permutations)
    read = Matches.of(matches)
    return Orders(read.systems, play_orders(read, permutations, seed, options), read.played, read.undecided)


def play_orders(read: Matches, permutations: int, seed: int, options: EloOptions) -> Floats:
    """Ratings of shape (permutations, systems) after seeded orders of the matches; NaN for a system without a match."""
    rng, n = generator(seed, "elo_orders"), len(read.x)
    ratings = play(read, permutations, options, lambda lanes: _random_orders(n, lanes, rng))
    ratings[:, read.played == 0] = NAN
    return ratings


def play(read: Matches, lanes: int, options: EloOptions, orders: Callable[[int], Rows]) -> Floats:
    """Ratings of shape (lanes, systems), so many orders at once as fit; orders are drawn one after the other."""
    step = max(1, min(LANES, CELLS // max(len(read.x), 1)))
    parts = [_play(read, orders(min(step, lanes - start)), options) for start in range(0, lanes, step)]
    return np.concatenate(parts)


def _play(read: Matches, orders: Rows, options: EloOptions) -> Floats:
    """Ratings, shape (lanes, systems), after the matches ``orders`` (lanes, steps); the match n is none.

    In units of half the log odds, x expects (1 + tanh(x − y)) / 2 and gains g (2s − 1) − g tanh(x − y) with
    g = k w / 2. The ratings of one system in all lanes lie side by side: match by match, one look-up of both ratings
    in all lanes, the arithmetic in place, one store.
    """
    lanes, steps = orders.shape
    size = len(read.systems)
    gain = options.k / 2 / options.unit * read.weight
    even = len(set(read.weight.tolist())) <= 1
    # Short rows are filled up with a tie of two equals that are not among the systems: it changes nothing.
    first, second = (np.append(column, size + at) * lanes for at, column in enumerate((read.x, read.y)))
    got, gains = np.append(gain * (2 * read.score - 1), 0.0), np.append(gain, 0.0)
    ratings, both = np.zeros((size + 2) * lanes), np.empty((2, lanes))
    own, other = both
    change, lane = np.empty(lanes), np.arange(lanes)
    match, place = np.empty((STEPS, lanes), dtype=np.intp), np.empty((STEPS, 2, lanes), dtype=np.intp)
    found, scores, factors = np.empty_like(match), np.empty((STEPS, lanes)), np.empty((STEPS, lanes))
    take, subtract, multiply, add = ratings.take, np.subtract, np.multiply, np.add
    for start in range(0, steps, STEPS):
        now = min(STEPS, steps - start)
        rows = match[:now]
        np.copyto(rows, orders[:, start : start + STEPS].T)
        for at, column in enumerate((first, second)):
            column.take(rows, out=found[:now], mode="clip")
            add(found[:now], lane, out=place[:now, at])
        got.take(rows, out=scores[:now], mode="clip")
        if not even:
            gains.take(rows, out=factors[:now], mode="clip")
        by: Any = [gains[0]] * now if even else factors
        for where, score, factor in zip(place[:now], scores, by, strict=False):
            take(where, None, both, "clip")  # "clip" writes without a copy; no index is out of range
            subtract(own, other, change)
            np.tanh(change, change)
            multiply(change, factor, change)
            subtract(score, change, change)
            add(own, change, own)
            subtract(other, change, other)
            ratings[where] = both
    return options.initial + options.unit * ratings.reshape(size + 2, lanes)[:size].T


class Resamples:
    """Random orders of the matches of whole items that are drawn with replacement.

    A match is in the order as often as its item was drawn. Each resample gives ``per`` orders, one after the other.
    ``present`` holds, for every call of :meth:`orders`, which systems each of its orders has, shape (lanes, systems).
    """

    def __init__(self, read: Matches, items: Ints, n_items: int, rng: np.random.Generator, per: int = 1) -> None:
        self.read, self.n_items, self.rng, self.per = read, n_items, rng, per
        self.waiting: list[Rows] = []
        self.by_item = np.argsort(items, kind="stable")
        self.sizes = np.bincount(items, minlength=n_items)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.present: list[NDArray[np.bool_]] = []

    def orders(self, lanes: int) -> Rows:
        """The next orders, shape (lanes, longest), short ones filled up with no match."""
        while len(self.waiting) < lanes:
            self.waiting += self._one()
        lines, self.waiting = self.waiting[:lanes], self.waiting[lanes:]
        orders = np.full((lanes, max(map(len, lines))), len(self.read.x), dtype=np.int32)
        present = np.zeros((lanes, len(self.read.systems)), dtype=bool)
        for lane, line in enumerate(lines):
            orders[lane, : len(line)] = line
            present[lane, self.read.x[line]] = True
            present[lane, self.read.y[line]] = True
        self.present.append(present)
        return orders

    def _one(self) -> list[Rows]:
        """One resample in its orders."""
        drawn = self.rng.integers(0, self.n_items, size=self.n_items)
        sizes = self.sizes[drawn]
        before = np.cumsum(sizes) - sizes
        rows = self.by_item[np.repeat(self.starts[drawn] - before, sizes) + np.arange(int(sizes.sum()))]
        return [rows[order].astype(np.int32) for order in _random_orders(len(rows), self.per, self.rng)]


def elo_by_group(
    matches: pd.DataFrame,
    *,
    group: str,
    permutations: int = 1000,
    seed: int,
    initial: float = 1000.0,
    k: float = 32.0,
    base: float = 10.0,
    scale: float = 400.0,
) -> pd.DataFrame:
    """One ranking for every value of a column, for example ``item_id``.

    Parameters
    ----------
    matches : DataFrame
        See :func:`elo_orders`, and the column ``group``.
    group : str
        The column.
    permutations, seed, initial, k, base, scale
        See :func:`elo_orders`. A group's ratings depend on the seed and its own matches, not on other groups.

    Returns
    -------
    DataFrame
        Columns ``group``, ``system``, ``elo`` (mean over the orders), ``elo_spread`` (standard deviation over the
        orders, NaN for one order), ``matches`` (decided ones of the system in the group). Groups in order of
        appearance, best system first. A system is listed where it has a match; where none of them is decided, both
        numbers are NaN and it comes last.

    Raises
    ------
    ValueError
        See :func:`elo_orders`; if the column is missing or a row has no group.

    Examples
    --------
    >>> table = pd.DataFrame({"item_id": [1, 2], "system_x": "a", "system_y": "b", "preference": ["a", "b"]})
    >>> elo_by_group(table, group="item_id", permutations=2, seed=1)[["group", "system", "elo"]].values.tolist()
    [[1, 'a', 1016.0], [1, 'b', 984.0], [2, 'b', 1016.0], [2, 'a', 984.0]]
    """
    options = EloOptions(initial, k, base, scale)
    check_permutations(permutations)
    check_columns(matches, [group], "matches")
    if (unnamed := int(matches[group].isna().sum())) > 0:
        raise ValueError(f"matches: {unnamed} of {len(matches)} rows have no {group}")
    read = Matches.of(matches)
    met_in_row = matches[["system_x", "system_y"]].astype(object).to_numpy()
    systems = pd.factorize(met_in_row.ravel())[0].reshape(-1, 2)  # numbered as in `read`: in order of appearance
    decided = matches["preference"].notna().to_numpy(dtype=bool)
    groups, names = pd.factorize(matches[group].astype(object))
    line, parts = np.cumsum(decided) - 1, []
    ends = np.cumsum(np.bincount(groups, minlength=len(names)))[:-1]
    for name, rows in zip(names, np.split(np.argsort(groups, kind="stable"), ends), strict=bool(len(names))):
        met, used = np.unique(systems[rows]), line[rows[decided[rows]]]
        columns = {column: getattr(read, column)[used] for column in ("x", "y", "score", "weight")}
        mine = replace(read, **columns)
        ratings = play_orders(mine, permutations, seed, options)[:, met]
        mean, spread = ratings.mean(axis=0), np.full(len(met), NAN)
        if permutations > 1:
            spread = ratings.std(axis=0, ddof=1)
        best = np.argsort(-mean.round(9), kind="stable")
        parts += [(name, read.systems[met[at]], mean[at], spread[at], int(mine.played[met[at]])) for at in best]
    return pd.DataFrame(parts, columns=["group", "system", "elo", "elo_spread", "matches"])
