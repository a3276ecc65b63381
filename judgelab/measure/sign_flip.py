"""Exact tests of calls that can be exchanged: what would the sum over items be, had each item's calls changed roles?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from judgelab.measure.resampling import Floats, Ints

__all__ = ["exchange_p", "sign_flip_p", "sign_flip_quantile"]

ROUNDING = 1e-12  # of a sum of probabilities


def sign_flip_p(values: Sequence[float] | Ints | Floats) -> float:
    """Exact two-sided sign-flip test that each item's value is symmetric about 0.

    The statistic is |Σ dᵢ|; the p-value is the share of all 2ⁿ choices of signs for which |Σ ±dᵢ| is as large or
    larger. Zeros do not matter.

    Parameters
    ----------
    values : array-like of shape (n,)
        One whole number an item, for instance judgments that moved towards minus judgments that moved away.

    Returns
    -------
    float
        In (0, 1]; 1.0 without items and where all values are 0.

    Raises
    ------
    ValueError
        If a value is missing or no whole number, or there is more than one dimension.

    Notes
    -----
    Exact for a manipulation of a judge's input: if it does nothing, the plain and the manipulated call of an item are
    exchangeable, whatever the judge's noise, its preference for a place and the item's difficulty, and exchanging
    them changes the sign of the item's value. Nothing is assumed of items being alike. With |dᵢ| = 1 it is the exact
    sign test, with signed ranks Wilcoxon's. Source: Fisher, *The Design of Experiments*, 1935, section 21; Pitman,
    "Significance tests which may be applied to samples from any populations", 1937. The distribution comes from
    adding one item after the other, in n Σ|dᵢ| steps at most. Checked against ``scipy.stats.permutation_test``.

    Examples
    --------
    Of the 8 sums ±2 ±1 ±1 only 4 and −4 are as far from 0 as 4.

    >>> sign_flip_p([2, 1, 1, 0])
    0.25
    """
    whole = _whole(values, 1)
    return exchange_p(np.column_stack([whole, -whole]))


def exchange_p(choices: Sequence[Sequence[float]] | Ints | Floats) -> float:
    """Exact two-sided test of k calls an item that are exchangeable: the sign-flip test for more than two calls.

    Where several variants share one plain call, an item's sum over the variants is *not* symmetric about 0 even if
    they do nothing: the plain call counts in each term. Rotating the roles of the k = variants + 1 calls is what may
    be done then.

    Parameters
    ----------
    choices : array-like of shape (n, k)
        Per item the whole number that it would contribute under each of k equally probable exchanges of its calls,
        that which was seen in column 0. The exchanges must form a group (rotations do).

    Returns
    -------
    float
        Probability that |Σ one of each row, drawn at random| is at least |Σ of column 0|, in (0, 1]. Without items 1.

    Raises
    ------
    ValueError
        If a value is missing or no whole number, or there are not two dimensions.

    Notes
    -----
    Source: Lehmann and Romano, *Testing Statistical Hypotheses*, 2005, theorem 15.2.1, with all elements of the group
    and no random ties, so that the level is kept and not always used up.

    Examples
    --------
    Two variants flipped and the repetition did not, in one item and in another: 2 + 2, of the nine sums of two of
    2, −1, −1 the only one of this size.

    >>> round(exchange_p([[2, -1, -1], [2, -1, -1]]), 4)
    0.1111
    """
    table = _whole(choices, 2)
    sums, chances = _distribution(table)
    extreme = np.abs(sums) >= abs(int(table[:, 0].sum()))
    return 1.0 if extreme.all() else min(1.0, float(chances[extreme].sum()))


def sign_flip_quantile(values: Sequence[float] | Ints | Floats, level: float) -> int:
    """Smallest whole b with P(|Σ ±dᵢ| ≤ b) ≥ ``level`` if all signs are equally probable.

    Parameters
    ----------
    values : array-like of shape (n,)
        One whole number an item.
    level : float
        Above 0 and below 1.

    Returns
    -------
    int
        From 0 to Σ|dᵢ|; 0 without items.

    Raises
    ------
    ValueError
        As :func:`sign_flip_p`, and if ``level`` is out of range.

    Examples
    --------
    Of four ±1 the sum is 0 with probability 6/16, ±2 with 8/16 and ±4 with 2/16.

    >>> sign_flip_quantile([1, -1, 1, 1], 0.8), sign_flip_quantile([1, -1, 1, 1], 0.95)
    (2, 4)
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; allowed is above 0 and below 1")
    whole = _whole(values, 1)
    sums, chances = _distribution(np.column_stack([whole, -whole]))
    sizes, place = np.unique(np.abs(sums), return_inverse=True)
    reached = np.cumsum(np.bincount(place, chances))
    return int(sizes[np.flatnonzero(reached >= level - ROUNDING)[0]])


def _whole(values: Any, dimensions: int) -> Ints:
    """The values as integers."""
    given = np.asarray(values, dtype=np.float64)
    if given.size == 0:
        return np.zeros((0,) if dimensions == 1 else (0, 2), dtype=np.int64)
    if given.ndim != dimensions:
        raise ValueError(f"values of shape {given.shape}; {dimensions} dimensions are needed")
    broken = given[~np.isfinite(given) | (given != np.round(given))]
    if broken.size:
        raise ValueError(f"{broken.size} of {given.size} values are no whole numbers, first {broken[0]}")
    return given.astype(np.int64)


def _distribution(choices: Ints) -> tuple[Ints, Floats]:
    """All sums of one number of each row, in ascending order, and their probabilities.

    Only positive numbers are added, so that small probabilities keep their digits.
    """
    low = choices.min(axis=1)
    shifts = choices - low[:, np.newaxis]
    shifts = shifts[shifts.any(axis=1)]
    step = int(np.gcd.reduce(shifts.ravel())) or 1
    shifts = shifts[np.argsort(shifts.max(axis=1))] // step
    chances = np.ones(1)
    for row in shifts:
        wider = np.zeros(len(chances) + int(row.max()))
        for shift in row:
            wider[shift : shift + len(chances)] += chances
        chances = wider / len(row)
    return int(low.sum()) + step * np.arange(len(chances)), chances
