"""Which ranks a system may have: rank sets from the bootstrap, and letters that show who is not told apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from judgelab.measure.estimates import Place
from judgelab.measure.resampling import MAXIMUM_UNDEFINED, Floats
from judgelab.measure.rows import frame, joined

__all__ = ["rank_sets", "surely_above", "tied_groups"]

NAN = float("nan")
ROUNDING = 1e-12  # of the larger of two estimates: differences that spread by less differ by rounding
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
Flags = NDArray[np.bool_]


def rank_sets(
    systems: Sequence[str], estimates: ArrayLike, draws: ArrayLike, *, ci_level: float, judge: str, method_name: str
) -> pd.DataFrame:
    """For each system the ranks that the data allow, right for all systems at once.

    System j is surely above k if the interval of their difference, simultaneous over all pairs, lies above 0 (see
    :func:`surely_above`). Of S systems, j may have the ranks ::

        1 + #{k surely above j}  ...  S − #{k surely below j}

    Parameters
    ----------
    systems : sequence of str
        S different names.
    estimates : array-like of shape (S,)
        Strengths, win rates, ...; higher is better. A system whose estimate is not finite is not compared.
    draws : array-like of shape (B, S)
        Bootstrap draws of the estimates, all systems of a row from one resample. Not finite: undefined.
    ci_level : float
        Chance, at least, that all true ranks lie in their sets at once; above 0 and below 1.
    judge : str
        Name of the judge or panel.
    method_name : str
        How estimates and draws were made; it is put before the method.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`, best first, equals in the order given, systems without an
        estimate last. Measure ``rank``, slice ``system=<s>``: ``estimate`` is the rank by estimate (1 best, ties share
        their mean rank), ``ci_low`` and ``ci_high`` bound the rank set, ``n_used`` and ``n_excluded`` count the systems
        that are compared and that have no estimate.

    Raises
    ------
    ValueError
        If names repeat, shapes do not fit or ``ci_level`` is out of range.

    Notes
    -----
    Source: Mogstad, Romano, Shaikh and Wilhelm, "Inference for Ranks with Applications to Mobility across
    Neighbourhoods and Academic Achievement across Countries", 2024: their two-sided simultaneous set with one
    step. (Their stepwise method can make sets smaller; R's ``csranks`` has it as its default.)

    Degenerate input, always with a note:

    * A system without an estimate has no rank; it may stand anywhere, so that each rank of the others is one among
      those compared.
    * A draw in which a compared system is undefined is left out. If those are more than 5 % of all, or no draw is
      left, nothing is told apart: the sets are 1 ... S.
    * A difference that is the same in all draws has a bootstrap standard deviation of 0, which says nothing of its
      uncertainty: such a pair is not told apart, whether the difference is 0 or not.
    * One system has the rank 1.

    Examples
    --------
    A is far above B and C, which are about equal.

    >>> noise = np.random.default_rng(0).normal(size=(999, 3))
    >>> made = rank_sets(["A", "B", "C"], [9.0, 1.1, 1.0], noise + [9.0, 1.1, 1.0], ci_level=0.95, judge="panel",
    ...                  method_name="planted")
    >>> made[["slice", "estimate", "ci_low", "ci_high"]].values.tolist()
    [['system=A', 1.0, 1.0, 1.0], ['system=B', 2.0, 2.0, 3.0], ['system=C', 3.0, 2.0, 3.0]]
    """
    made = _Comparison.of(systems, estimates, draws, ci_level)
    method = joined(method_name, f"rank set: simultaneous over all pairs, max |t|, {made.n_draws} draws")
    place = {"judge": judge, "strategy": "pairwise", "pass_": "both"}
    compared = int(made.kept.sum())
    lines = []
    for j in np.argsort(made.rank, kind="stable"):  # NaN last
        lines.append(
            Place(slice_=f"system={made.systems[j]}", **place).row(
                "rank",
                made.rank[j],
                interval=(made.low[j], made.high[j]),
                ci_level=ci_level,
                n_used=compared,
                n_excluded=len(made.kept) - compared,
                method=method,
                note=made.note(j),
            )
        )
    return frame(lines)


def surely_above(systems: Sequence[str], estimates: ArrayLike, draws: ArrayLike, *, ci_level: float) -> Flags:
    """Whether the row's system is surely above the column's, with one error rate for all pairs.

    With d the difference of two estimates, d* that of their draws and s the standard deviation of d*, j is surely
    above k if dⱼₖ > c sⱼₖ. The critical value c is the quantile at ``ci_level`` over the draws of the largest
    |d* − d| / s of all pairs, as the order statistic number ⌈ci_level (B + 1)⌉ of B; with fewer than
    ci_level / (1 − ci_level) draws there is none, and nothing is told apart.

    Parameters
    ----------
    systems, estimates, draws, ci_level
        As for :func:`rank_sets`, where degenerate input is described, too.

    Returns
    -------
    array of bool, shape (S, S)
        False on the diagonal and for systems without an estimate.

    Raises
    ------
    ValueError
        As :func:`rank_sets`.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(999, 2))
    >>> surely_above(["A", "B"], [0.0, 9.0], noise + [0.0, 9.0], ci_level=0.95).tolist()
    [[False, False], [True, False]]
    """
    return _Comparison.of(systems, estimates, draws, ci_level).above


def tied_groups(systems: Sequence[str], estimates: ArrayLike, draws: ArrayLike, *, ci_level: float) -> pd.DataFrame:
    """The ranking with letters: systems that share a letter are not told apart, others are.

    Parameters
    ----------
    systems, estimates, draws, ci_level
        As for :func:`rank_sets`.

    Returns
    -------
    DataFrame
        One row a system, best first: system, estimate, rank, low, high (the rank set) and letters. ``a`` is a group of
        the best. Systems without an estimate stand last, without rank and letters. From the 53rd group on a letter is
        followed by a number: ``a2``.

    Raises
    ------
    ValueError
        As :func:`rank_sets`.

    Notes
    -----
    Source: Piepho, "An algorithm for a letter-based representation of all-pairwise comparisons", 2004: insert and
    absorb. Each letter is a largest group of which no two members are told apart. Being told apart is no equivalence:
    a system may share letters with two others that share none.

    Examples
    --------
    B is told apart from neither A nor C.

    >>> noise = np.random.default_rng(0).normal(size=(999, 3))
    >>> made = tied_groups(["A", "B", "C"], [5.0, 2.5, 0.0], noise + [5.0, 2.5, 0.0], ci_level=0.95)
    >>> made[["system", "low", "high", "letters"]].values.tolist()
    [['A', 1.0, 2.0, 'a'], ['B', 1.0, 3.0, 'ab'], ['C', 2.0, 3.0, 'b']]
    """
    made = _Comparison.of(systems, estimates, draws, ci_level)
    order = np.argsort(made.rank, kind="stable")  # NaN last
    compared = order[: int(made.kept.sum())]
    letters = [""] * len(order)
    for name, members in zip(_names(), _groups(made.above, compared.tolist()), strict=False):
        for j in members:
            letters[j] += name
    table = pd.DataFrame(
        {
            "system": pd.Series(made.systems, dtype=object),
            "estimate": made.estimates,
            "rank": made.rank,
            "low": made.low,
            "high": made.high,
            "letters": pd.Series(letters, dtype=object),
        }
    )
    return table.iloc[order].reset_index(drop=True)


@dataclass(frozen=True)
class _Comparison:
    """All pairs of systems compared: who is surely above whom, and what must be said about it."""

    systems: tuple[str, ...]
    estimates: Floats
    kept: Flags  # (S,) systems with an estimate
    n_draws: int  # draws used
    undefined: int  # draws left out
    critical: float  # NaN: too many draws left out; infinite: too few draws
    above: Flags  # (S, S)
    unvarying: Flags  # (S, S) pairs with another difference than 0 that is the same in all draws

    @classmethod
    def of(cls, systems: Sequence[str], estimates: ArrayLike, draws: ArrayLike, ci_level: float) -> _Comparison:
        """Compare; see :func:`surely_above`."""
        values = np.array(estimates, dtype=np.float64)
        sampled = np.array(draws, dtype=np.float64)
        _check(systems, values, sampled, ci_level)
        kept = np.isfinite(values)
        size = len(values)
        n_draws = len(sampled)
        sampled = sampled[np.isfinite(sampled[:, kept]).all(axis=1)]
        undefined = n_draws - len(sampled)
        usable = len(sampled) > 1 and undefined <= MAXIMUM_UNDEFINED * n_draws
        spread = np.full((size, size), NAN)
        unvarying = np.zeros((size, size), dtype=bool)
        largest = np.zeros(len(sampled))
        for j in np.flatnonzero(kept) if usable else []:
            others = np.flatnonzero(kept & (np.arange(size) > j))
            pairs = sampled[:, [j]] - sampled[:, others]  # one system at a time: memory grows with S, not S²
            own = pairs.std(axis=0, ddof=1)
            scale = np.maximum(np.abs(sampled[:, j]).max(), np.abs(sampled[:, others]).max(axis=0))
            varies = own > ROUNDING * scale
            gaps = values[j] - values[others]
            same = ~varies & (np.abs(gaps) > ROUNDING * scale)
            unvarying[j, others] = unvarying[others, j] = same
            spread[j, others] = spread[others, j] = np.where(varies, own, NAN)
            t = np.abs(pairs - gaps)[:, varies] / own[varies]
            largest = np.maximum(largest, t.max(axis=1, initial=0.0))
        unknown = NAN if undefined else math.inf
        critical = _quantile(largest, ci_level) if usable else unknown
        gaps = np.where(kept, values, NAN)[:, np.newaxis] - np.where(kept, values, NAN)
        above = gaps > critical * spread  # False where one side is NaN
        np.fill_diagonal(above, False)
        return cls(
            tuple(str(name) for name in systems), values, kept, len(sampled), undefined, critical, above, unvarying
        )

    @property
    def rank(self) -> Floats:
        """Rank by estimate, 1 best, ties share the mean rank; NaN without an estimate."""
        ranks = np.full(len(self.kept), NAN)
        known = self.estimates[self.kept]
        scale = np.abs(known).max(initial=0.0) or 1.0
        ranks[self.kept] = rankdata(-np.round(known / scale, 12))  # equal strengths differ by rounding
        return ranks

    @property
    def low(self) -> Floats:
        """Best rank of each system's set."""
        return np.where(self.kept, 1.0 + self.above.sum(axis=0), NAN)

    @property
    def high(self) -> Floats:
        """Worst rank of each system's set."""
        return np.where(self.kept, float(self.kept.sum()) - self.above.sum(axis=1), NAN)

    def note(self, j: int) -> str:
        """What must be said about system j's rank."""
        if not self.kept[j]:
            return "undefined: no estimate"
        compared, total = int(self.kept.sum()), self.n_draws + self.undefined
        missing = len(self.kept) - compared
        alike = ", ".join(self.systems[k] for k in np.flatnonzero(self.unvarying[j]))
        drawn = ""
        if np.isnan(self.critical):
            drawn = f"nothing is told apart: {self.undefined} of {total} draws undefined"
        elif np.isinf(self.critical):
            drawn = f"nothing is told apart: {self.n_draws} draws are too few"
        elif self.undefined:
            drawn = f"{self.undefined} of {total} draws undefined and left out"
        return joined(
            "one system, nothing to compare" if compared == 1 else drawn,
            f"the same difference in every draw, so not told apart from {alike}" if alike else "",
            f"rank among the {compared} with an estimate; {missing} without may stand anywhere" if missing else "",
        )


def _check(systems: Sequence[str], values: Floats, sampled: Floats, ci_level: float) -> None:
    """Refuse what does not fit together."""
    size = len(systems)
    if len({str(name) for name in systems}) < size:
        raise ValueError(f"systems {list(systems)}: a name is used twice")
    if values.shape != (size,):
        raise ValueError(f"estimates have shape {values.shape}, needed is ({size},): one a system")
    if sampled.ndim != 2 or sampled.shape[1] != size:
        raise ValueError(f"draws have shape {sampled.shape}, needed is (draws, {size})")
    if not 0 < ci_level < 1:
        raise ValueError(f"ci_level is {ci_level}; allowed is above 0 and below 1")


def _quantile(values: Floats, level: float) -> float:
    """Order statistic number ⌈level (B + 1)⌉ of B values; infinite where that is more than there are."""
    place = math.ceil(level * (len(values) + 1) - 1e-9)
    return float(np.partition(values, place - 1)[place - 1]) if place <= len(values) else math.inf


def _groups(above: Flags, order: list[int]) -> list[list[int]]:
    """Largest groups without two members told apart: insert and absorb, best group first, members best first."""
    told_apart = above | above.T
    columns = [frozenset(order)] if order else []
    for place, j in enumerate(order):
        for k in order[place + 1 :]:
            if not told_apart[j, k]:
                continue
            split = [part for column in columns if {j, k} <= column for part in (column - {j}, column - {k})]
            whole = [column for column in columns if not {j, k} <= column]
            distinct = list(dict.fromkeys(whole + split))
            columns = [column for column in distinct if not any(column < other for other in distinct)]
    places = {j: place for place, j in enumerate(order)}
    return sorted((sorted(column, key=places.__getitem__) for column in columns), key=lambda g: [places[j] for j in g])


def _names() -> Iterator[str]:
    """a ... z, A ... Z, a2 ... Z2, a3 ..."""
    yield from LETTERS
    number = 2
    while True:
        yield from (f"{letter}{number}" for letter in LETTERS)
        number += 1
