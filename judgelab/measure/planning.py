"""Is this enough data? What a study of n items can see, and how many more it needs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binom

from judgelab.measure.intervals import wilson
from judgelab.measure.resampling import Ints

__all__ = [
    "items_for_difference",
    "items_for_width",
    "paired_power",
    "power_of_minimum",
    "smallest_difference",
    "smallest_n_for_limit",
    "smallest_truth_for_minimum",
]

NAN = float("nan")
MOST = 100_000_000  # no study is larger: searches end here
TAIL = 1e-12  # probability of discordant counts that are left out, on either side
PRECISION = 1e-10


def paired_power(n: int, difference: float, *, discordant: float, level: float) -> float:
    """Chance that McNemar's exact test finds a difference between two strategies judged on the same n items.

    Let ψ (``discordant``) be the share of items on which exactly one of the two is right, and d the true difference
    of their agreements. The number m of such items is binomial (n, ψ), the number on which the better one is right is
    binomial (m, (1 + d/ψ)/2), and the test is the two-sided sign test at 1 − ``level``; its power is summed over all
    m, so that it is exact and not conditional.

    Parameters
    ----------
    n : int
        Items, 1 or more.
    difference : float
        d, from −ψ to ψ.
    discordant : float
        ψ, above 0 and at most 1.
    level : float
        1 − the test's size.

    Returns
    -------
    float
        Between 0 and 1. It is no more than 1 − ``level`` where d is 0.

    Raises
    ------
    ValueError
        If a number is outside its range.

    Notes
    -----
    Source: McNemar, "Note on the sampling error of the difference between correlated proportions or percentages",
    1947; the exact test and its unconditional power: Duffy, "Asymptotic and exact power for the McNemar test and its
    analogue with R controls per case", 1984. Checked by full enumeration with
    ``statsmodels.stats.contingency_tables.mcnemar``.

    Examples
    --------
    With n = 6, all discordant and one strategy always right, p = 2 / 2⁶ = 0.031 is below 0.05, so that the
    difference is always found; with n = 5, p = 0.0625, never.

    >>> float(paired_power(6, 1.0, discordant=1.0, level=0.95)), float(paired_power(5, 1.0, discordant=1.0, level=0.95))
    (1.0, 0.0)
    """
    _check(n=(n, 1, MOST), discordant=(discordant, PRECISION, 1), level=(level, PRECISION, 1 - PRECISION))
    _check(difference=(difference, -discordant, discordant))
    low, high = int(binom.ppf(TAIL, n, discordant)), int(binom.isf(TAIL, n, discordant))
    counts = np.arange(max(low, 0), high + 1, dtype=np.int64)
    critical = _critical(counts, 1 - level)
    share = (1 + difference / discordant) / 2
    found = binom.cdf(critical, counts, share) + binom.cdf(critical, counts, 1 - share)
    return float(min(1.0, (binom.pmf(counts, n, discordant) * found).sum()))


def _critical(counts: Ints, size: float) -> Ints:
    """Largest c with 2 P(X ≤ c) ≤ size for X binomial (m, ½); −1 where there is none."""
    guess = binom.ppf(size / 2, counts, 0.5)
    guess = np.where(2 * binom.cdf(guess, counts, 0.5) <= size, guess, guess - 1)
    result: Ints = np.maximum(guess, -1).astype(np.int64)
    return result


def smallest_difference(n: int, *, discordant: float, level: float, power: float) -> float:
    """Smallest difference of two agreements on the same n items that is found with probability ``power``.

    The least d with :func:`paired_power` (n, d) at least ``power``. NaN where not even d = ψ, one strategy right on
    every item on which they differ, is found so often.

    Parameters
    ----------
    n : int
        Items with a reference and both verdicts.
    discordant : float
        ψ, the share of items on which exactly one strategy is right. Not known before judging: look at several.
    level, power : float
        1 − the test's size; the wanted probability, above 1 − ``level`` and below 1.

    Raises
    ------
    ValueError
        If a number is outside its range.

    Notes
    -----
    Compared with the normal approximation d = (z √ψ + z' √(ψ − d²)) / √n (Connor, "Sample size for testing
    differences in proportions for the paired-sample design", 1987), which is smaller, because the exact test is
    conservative.

    Examples
    --------
    >>> round(smallest_difference(100, discordant=0.2, level=0.95, power=0.8), 3)
    0.128
    """
    _check(power=(power, 1 - level + PRECISION, 1 - PRECISION))
    if paired_power(n, discordant, discordant=discordant, level=level) < power:
        return NAN

    def missing(difference: float) -> float:
        return paired_power(n, difference, discordant=discordant, level=level) - power

    return float(brentq(missing, 0.0, discordant, xtol=PRECISION))


def items_for_difference(difference: float, *, discordant: float, level: float, power: float) -> int:
    """A number of items from which on a difference of two agreements is found with probability ``power``.

    The least n with :func:`paired_power` (m, d) at least ``power`` for m = n and, the exact test's power being a saw,
    the 20 numbers above it.

    Raises
    ------
    ValueError
        If a number is outside its range; ``difference`` must be above 0 and at most ``discordant``.

    Examples
    --------
    >>> items_for_difference(0.1, discordant=0.2, level=0.95, power=0.8)
    168
    """
    _check(difference=(difference, PRECISION, discordant), power=(power, 1 - level + PRECISION, 1 - PRECISION))

    def enough(n: int) -> bool:
        return paired_power(n, difference, discordant=discordant, level=level) >= power

    start = _first(enough)  # the saw may be above the line before and below it after
    for n in range(max(1, start - 50), MOST):
        if enough(n) and all(enough(n + more) for more in range(1, 21)):
            return n
    raise ValueError(f"difference {difference:g}: more than {MOST} items are needed")


def items_for_width(rate: float, width: float, level: float) -> int:
    """Fewest items with which Wilson's interval of an observed rate is no wider than ``width`` (bound to bound).

    Parameters
    ----------
    rate : float
        The rate that is expected, 0 to 1; 1/2 is the worst case.
    width : float
        Above 0 and below 1.
    level : float
        Coverage.

    Raises
    ------
    ValueError
        If a number is outside its range.

    Notes
    -----
    Wilson's width falls with n at every rate, so that the number is exact. For rates in the middle it is near
    4 z² p (1 − p) / width². The rate need not be a whole number of items.

    Examples
    --------
    >>> items_for_width(0.5, 0.2, 0.95), items_for_width(0.8, 0.1, 0.95)
    (93, 245)
    """
    _check(rate=(rate, 0, 1), width=(width, 1e-4, 1 - PRECISION))

    def enough(n: int) -> bool:
        low, high = wilson(rate * n, n, level)
        return high - low <= width

    return _first(enough)


def smallest_n_for_limit(limit: float, level: float, *, failures: int = 0) -> int:
    """Fewest calls, ``failures`` of them failed, with which Wilson's upper bound of the failure rate meets ``limit``.

    Without a failure the bound is z² / (n + z²), so that n is z² (1 − limit) / limit, rounded up.

    Raises
    ------
    ValueError
        If ``limit`` is not above 0 and below 1, or ``failures`` is negative.

    Examples
    --------
    >>> smallest_n_for_limit(0.05, 0.95), smallest_n_for_limit(0.05, 0.95, failures=1)
    (73, 110)
    """
    _check(limit=(limit, 1e-6, 1 - PRECISION), failures=(failures, 0, MOST))
    return _first(lambda n: n >= failures and wilson(failures, n, level)[1] <= limit)


def power_of_minimum(n: int, truth: float, minimum: float, level: float) -> float:
    """Chance that a study of n items shows a rate to be ``minimum`` or above, if its true value is ``truth``.

    Shown means what the protocol's decision demands: the lower bound of Wilson's interval is at ``minimum`` or above.
    The chance is the binomial probability of all numbers of successes for which it is.

    Parameters
    ----------
    n : int
        Items with one judgment each.
    truth, minimum : float
        True rate and the protocol's threshold, 0 to 1.
    level : float
        Coverage of the interval.

    Raises
    ------
    ValueError
        If a number is outside its range.

    Notes
    -----
    The bound rises with the number of successes, so that the least one is looked for. Clusters (several pairs an
    item) make the true chance smaller. A truth of exactly ``minimum`` is shown in about (1 − level) / 2 of studies.

    Examples
    --------
    Of 10 items 10 successes have the lower bound 0.722, 9 have 0.596: to show 0.7, all must succeed.

    >>> round(power_of_minimum(10, 0.9, 0.7, 0.95), 6), round(0.9**10, 6)
    (0.348678, 0.348678)
    """
    _check(n=(n, 1, MOST), truth=(truth, 0, 1), minimum=(minimum, 0, 1))
    least = _least_successes(n, minimum, level)
    return float(binom.sf(least - 1, n, truth))


def _least_successes(n: int, minimum: float, level: float) -> int:
    """Fewest successes whose lower bound is at the minimum or above; n + 1 where there are none."""
    low, high = 0, n + 1
    while low < high:
        middle = (low + high) // 2
        if middle == n + 1 or wilson(middle, n, level)[0] >= minimum:
            high = middle
        else:
            low = middle + 1
    return low


def smallest_truth_for_minimum(n: int, minimum: float, *, level: float, power: float) -> float:
    """How good a judge must truly be, so that n items show it to be at ``minimum`` or above with chance ``power``.

    NaN where not even n successes of n show it (see :func:`smallest_n_for_limit` of 1 − ``minimum``).

    Raises
    ------
    ValueError
        If a number is outside its range.

    Examples
    --------
    >>> round(smallest_truth_for_minimum(10, 0.7, level=0.95, power=0.8), 6), round(0.8**0.1, 6)
    (0.977933, 0.977933)
    """
    _check(n=(n, 1, MOST), minimum=(minimum, 0, 1), power=(power, PRECISION, 1 - PRECISION))
    least = _least_successes(n, minimum, level)
    if least > n:
        return NAN
    if least == 0:
        return 0.0
    return float(brentq(lambda truth: binom.sf(least - 1, n, truth) - power, 0.0, 1.0, xtol=PRECISION))


def _first(enough: Callable[[int], bool]) -> int:
    """The least n from 1 on for which a condition holds that, once true, stays true."""
    high = 1
    while not enough(high):
        if high > MOST:
            raise ValueError(f"more than {MOST} items are needed")
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check(**numbers: tuple[float, float, float]) -> None:
    for name, (value, low, high) in numbers.items():
        if not (math.isfinite(value) and low <= value <= high):
            raise ValueError(f"{name} is {value:g}; allowed is {low:g} to {high:g}")
