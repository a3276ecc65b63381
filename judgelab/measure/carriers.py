"""How many items carry a statistic's variance, and the warning where they are too few for its interval."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from judgelab.measure.resampling import CHUNK, Floats, ItemTable

__all__ = ["ENOUGH", "carriers", "few_carriers"]

NAN = float("nan")
ENOUGH = 18.0  # with fewer, percentile intervals were seen to cover 90 to 94 %, rarely less (docs/coverage.md)


def carriers(table: ItemTable, statistic: Callable[[Floats], Floats]) -> Floats:
    """Effective number of items that carry the variance of each statistic.

    With dᵢ the change of the statistic when item i is left out, minus the mean change::

        m = (Σ dᵢ²)² / Σ dᵢ⁴

    m is n if all items matter equally, and about k if k of many items matter (k disagreements in a study of many
    agreements; k discordant items of a difference): 1/m is the kurtosis of the influences over n. The bootstrap of m
    such items is about that of m coin tosses, so its percentile interval is too short and too symmetric if m is
    small, however large n is.

    Parameters
    ----------
    table : ItemTable
        What the items contribute.
    statistic : callable
        As for :func:`judgelab.measure.resampling.bootstrap`.

    Returns
    -------
    array of shape (S,)
        0 where the statistic is undefined without some one item; NaN where no item changes it, for a single item, or
        where the table has so many different items that they are not looked at.

    Notes
    -----
    Influences by leaving out: Efron, *The Jackknife, the Bootstrap and Other Resampling Plans*, 1982, chapter 3.

    Examples
    --------
    A rate of 97 in 100: three items differ.

    >>> table = ItemTable.of(np.arange(100), np.array([[0.0, 1.0]] * 3 + [[1.0, 1.0]] * 97))
    >>> float(carriers(table, lambda totals: (totals[:, 0] / totals[:, 1])[np.newaxis, :]).round(2)[0])
    3.19
    """
    kinds = len(table.counts)
    width = kinds if table.rows is None else table.rows.shape[1]
    if table.n_items < 2 or kinds * width > CHUNK:
        return np.full(len(statistic(table.totals)), NAN)
    rows = np.eye(kinds) if table.rows is None else np.asarray(table.rows @ np.eye(width))
    without = statistic(table.totals - rows)
    shares = table.counts / table.n_items
    changes = without - (without * shares).sum(axis=1, keepdims=True)
    second, fourth = ((changes**power * shares).sum(axis=1) for power in (2, 4))
    found = np.full(len(without), NAN)
    np.divide(table.n_items * second**2, fourth, out=found, where=fourth > 1e-60)
    found[np.isnan(without).any(axis=1)] = 0.0
    return found


def few_carriers(number: float) -> str:
    """The warning of an interval on few carriers; empty if they are enough or not known."""
    if not number < ENOUGH:
        return ""
    return (
        f"the interval may cover less than its level: about {number:.0f} items carry the variance, see docs/coverage.md"
    )
