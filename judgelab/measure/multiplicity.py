"""Many tests at once: p-values that keep their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.multitest import multipletests

from judgelab.measure.resampling import Floats

__all__ = ["benjamini_yekutieli", "holm"]


def holm(p: Sequence[float] | Floats) -> Floats:
    """Holm's adjusted p-values: the chance of any false alarm stays below what they are compared with.

    Parameters
    ----------
    p : array-like of shape (m,)
        p-values in [0, 1]; NaN for a test that could not be made, which does not count among the m.

    Returns
    -------
    array of shape (m,)
        Adjusted p-values, NaN where p is.

    Raises
    ------
    ValueError
        If a p-value lies outside [0, 1].

    Notes
    -----
    The i-th smallest of m times m − i + 1, at most 1 and never below one before it. Source: Holm, "A simple
    sequentially rejective multiple test procedure", 1979. Checked against
    ``statsmodels.stats.multitest.multipletests``, which is not called because it collects the garbage of the whole
    process each time (30 ms and more).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    values, given = _checked(p)
    order = np.flatnonzero(given)[np.argsort(values[given], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted = np.full(len(values), np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return adjusted


def benjamini_yekutieli(p: Sequence[float] | Floats, q: float) -> NDArray[np.bool_]:
    """Which tests are rejected with a false-discovery rate of at most q, however they depend on each other.

    Parameters
    ----------
    p : array-like of shape (m,)
        p-values in [0, 1]; NaN is never rejected and does not count among the m.
    q : float
        Allowed expected share of false ones among the rejected, above 0 and below 1.

    Raises
    ------
    ValueError
        If a p-value or q is out of range.

    Notes
    -----
    Source: Benjamini and Yekutieli, "The control of the false discovery rate in multiple testing under dependency",
    2001, theorem 1.3. Computed by ``statsmodels.stats.multitest.multipletests``.

    Examples
    --------
    Of m = 3 the i-th smallest is compared with i q / (m c), c = 1 + 1/2 + 1/3; here 2 · 0.05 / 5.5 = 0.018.

    >>> benjamini_yekutieli([0.017, 0.002, 0.4], 0.05).tolist()
    [True, True, False]
    """
    if not 0 < q < 1:
        raise ValueError(f"q is {q}; allowed is above 0 and below 1")
    values, given = _checked(p)
    rejected = np.zeros(len(values), dtype=bool)
    if given.any():
        rejected[given] = multipletests(values[given], alpha=q, method="fdr_by")[0]
    return rejected


def _checked(p: Any) -> tuple[Floats, NDArray[np.bool_]]:
    """The p-values, and which of them are given."""
    values = np.asarray(p, dtype=np.float64)
    given = ~np.isnan(values)
    if ((values[given] < 0) | (values[given] > 1)).any():
        raise ValueError(f"p-values {values[given].tolist()}: each must lie between 0 and 1")
    return values, given
