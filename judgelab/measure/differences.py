"""Closed-form intervals of the difference of two rates, of separate and of the same items."""

from __future__ import annotations

import math

from judgelab.measure.intervals import wilson

__all__ = ["newcombe_paired", "newcombe_separate"]

NAN = float("nan")


def newcombe_separate(successes: tuple[int, int], trials: tuple[int, int], level: float) -> tuple[float, float]:
    """Newcombe's hybrid score interval of p₁ − p₂, two rates of separate items.

    With Wilson's bounds lᵢ, uᵢ of each rate::

        p₁ − p₂ − √((p₁ − l₁)² + (u₂ − p₂)²),  p₁ − p₂ + √((u₁ − p₁)² + (p₂ − l₂)²)

    Parameters
    ----------
    successes, trials : two int
        Of the first and of the second rate.
    level : float
        Coverage, above 0 and below 1.

    Returns
    -------
    tuple of float
        Within [−1, 1]; NaN twice where one of the rates has no trial.

    Raises
    ------
    ValueError
        As :func:`judgelab.measure.intervals.wilson`.

    Notes
    -----
    Source: Newcombe, "Interval estimation for the difference between independent proportions", 1998, method 10.
    Checked against ``statsmodels.stats.proportion.confint_proportions_2indep(method="newcomb")``.

    Examples
    --------
    The paper's example (a), 56 of 70 against 48 of 80.

    >>> [round(bound, 4) for bound in newcombe_separate((56, 48), (70, 80), 0.95)]
    [0.0524, 0.3339]
    """
    bounds = [wilson(k, n, level) for k, n in zip(successes, trials, strict=True)]
    if 0 in trials:
        return NAN, NAN
    p, q = (k / n for k, n in zip(successes, trials, strict=True))
    (low, high), (other_low, other_high) = bounds
    return p - q - math.hypot(p - low, other_high - q), p - q + math.hypot(high - p, q - other_low)


def newcombe_paired(both: int, first: int, second: int, neither: int, level: float) -> tuple[float, float]:
    """Newcombe's square-and-add score interval of p₁ − p₂, two rates of the same items.

    As :func:`newcombe_separate`, with the correlation φ of the two successes in the 2 × 2 table (a, b, c, d)::

        p₁ − p₂ − √(δ² − 2 φ δ ε + ε²),  δ = p₁ − l₁,  ε = u₂ − p₂;  likewise upwards
        φ = (a d − b c) / √((a + b)(c + d)(a + c)(b + d))

    where a d − b c above 0 is lowered by n / 2, to no less than 0, and φ is 0 where a margin is empty.

    Parameters
    ----------
    both, first, second, neither : int
        Items on which both (a), only the first (b), only the second (c), and neither (d) is a success.
    level : float
        Coverage, above 0 and below 1.

    Returns
    -------
    tuple of float
        NaN twice without an item.

    Notes
    -----
    Unlike the bootstrap it has a width where no item separates the two. Source: Newcombe, "Improved confidence
    intervals for the difference between binomial proportions based on paired data", 1998, method 10.

    Examples
    --------
    21 children before and after a treatment, as compared by Fagerland, Lydersen and Laake, 2014.

    >>> [round(bound, 3) for bound in newcombe_paired(1, 1, 7, 12, 0.95)]
    [-0.507, -0.026]
    """
    n = both + first + second + neither
    if n == 0:
        return NAN, NAN
    bounds = wilson(both + first, n, level), wilson(both + second, n, level)
    p, q = (both + first) / n, (both + second) / n
    margins = (both + first) * (second + neither) * (both + second) * (first + neither)
    cross = float(both * neither - first * second)
    cross = max(cross - n / 2, 0.0) if cross > 0 else cross
    phi = cross / math.sqrt(margins) if margins else 0.0
    down = _side(p - bounds[0][0], bounds[1][1] - q, phi)
    up = _side(bounds[0][1] - p, q - bounds[1][0], phi)
    return (first - second) / n - down, (first - second) / n + up


def _side(own: float, other: float, phi: float) -> float:
    return math.sqrt(max(own * own - 2 * phi * own * other + other * other, 0.0))
