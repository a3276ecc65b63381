"""Krippendorff's alpha at the nominal level, resampled over whole items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from judgelab.measure.resampling import Floats, Ints

__all__ = ["alpha_from_totals", "unit_features"]

NAN = float("nan")


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
