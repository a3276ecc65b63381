"""Closed-form intervals of a plain rate."""

from __future__ import annotations

import math

from scipy.stats import norm

__all__ = ["wilson"]

NAN = float("nan")


def wilson(successes: float, trials: float, level: float) -> tuple[float, float]:
    """Wilson's score interval of a binomial rate.

    With p = successes / trials, n = trials and z the standard normal quantile at (1 + level) / 2::

        (p + z²/2n  ±  z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n)

    Parameters
    ----------
    successes : float
        Number of successes, 0 to ``trials``. Need not be whole (a share times a number of items).
    trials : float
        Number of independent trials.
    level : float
        Coverage of the interval, above 0 and below 1.

    Returns
    -------
    tuple of float
        Lower and upper bound, both in [0, 1]; NaN twice for 0 trials.

    Raises
    ------
    ValueError
        If ``successes`` lies outside [0, ``trials``] or ``level`` outside (0, 1).

    Notes
    -----
    Checked against ``statsmodels.stats.proportion.proportion_confint(method="wilson")``.
    Source: Wilson, "Probable inference, the law of succession, and statistical inference", 1927, p. 209;
    recommended for small samples by Brown, Cai and DasGupta, 2001.

    Examples
    --------
    >>> [round(bound, 4) for bound in wilson(8, 10, 0.95)]
    [0.4902, 0.9433]
    """
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; allowed is above 0 and below 1")
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials; allowed is 0 to the number of trials")
    if trials == 0:
        return NAN, NAN
    z = float(norm.ppf((1 + level) / 2))
    rate, spread = successes / trials, z * z / trials
    centre = rate + spread / 2
    half = z * math.sqrt(rate * (1 - rate) / trials + spread / (4 * trials))
    low, high = (centre - half) / (1 + spread), (centre + half) / (1 + spread)
    # At the ends the bounds are 0 and 1 exactly; the subtraction leaves a rounding error there.
    return (0.0 if successes == 0 else low), (1.0 if successes == trials else high)
