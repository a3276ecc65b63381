"""Do the judges rank the systems alike? Rank correlations between the rankings of every two judges."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, norm, spearmanr

from judgelab.measure.coding import check_columns
from judgelab.measure.consensus import single_judges
from judgelab.measure.paired_comparison import Undefined, fit_strengths
from judgelab.measure.rows import joined

__all__ = ["COLUMNS", "judge_rankings"]

NAN = float("nan")
DIGITS = 9  # strengths that agree to so many digits are tied, whatever the last rounding of the fit says
LEAST = 4  # systems that an interval needs
COLUMNS = ["judge_a", "judge_b", "spearman", "ci_low", "ci_high", "kendall", "systems", "note"]


def judge_rankings(
    matches: pd.DataFrame, *, undefined: Undefined = "penalise", prior_sd: float = 2.0, ci_level: float
) -> pd.DataFrame:
    """Spearman's and Kendall's correlation of the rankings of every two judges.

    Each judge ranks by Bradley and Terry's strengths, ties as half a win, fitted to its own matches.

    Parameters
    ----------
    matches : DataFrame
        One row a match: judge, system_x, system_y, preference (one of the two, ``TIE`` or missing).
    undefined, prior_sd
        What is done where strengths do not exist, see :func:`judgelab.measure.paired_comparison.fit_strengths`.
    ci_level : float
        Coverage of the interval.

    Returns
    -------
    DataFrame
        One row a pair of judges, in order of appearance: judge_a, judge_b, spearman, ci_low, ci_high, kendall (τ_b),
        systems (with a strength by both), note. NaN with the reason in the note: fewer than three systems in common, or
        a judge that ranks them all alike.

    Raises
    ------
    ValueError
        If a column is missing or a row is no match.

    Notes
    -----
    The interval takes the systems as drawn from a population of systems and is Fisher's, with the standard error of
    Bonett and Wright, "Sample size requirements for estimating Pearson, Kendall and Spearman correlations", 2000:
    √((1 + ρ²/2) / (n − 3)). It does not hold the uncertainty of the matches. Strengths equal to 9 digits are tied.

    Examples
    --------
    Both judges put a before b before c.

    >>> table = pd.DataFrame({"judge": list("iiijjj"), "system_x": list("abaaba"), "system_y": list("bccbcc"),
    ...                       "preference": list("abaaba")})
    >>> judge_rankings(table, ci_level=0.95)[["judge_a", "judge_b", "spearman", "systems"]].values.tolist()
    [['i', 'j', 1.0, 3]]
    """
    check_columns(matches, ["judge", "system_x", "system_y", "preference"], "matches")
    own = single_judges(matches)
    names = [str(name) for name in pd.unique(matches["judge"])]
    levels = {}
    for name in names:
        fit = fit_strengths(
            own[name], undefined=undefined, prior_sd=prior_sd, ci_level=ci_level, resamples=1, seed=0, judge=name
        )
        note = f"{name}: strengths by a prior" if fit.penalised else ""
        levels[name] = (pd.Series(fit.level, index=pd.Index(fit.systems, dtype=object)).dropna().round(DIGITS), note)

    def made() -> Iterator[tuple[object, ...]]:
        for a, b in combinations(names, 2):
            both = pd.concat([levels[a][0], levels[b][0]], axis=1, join="inner").to_numpy()
            told = joined(levels[a][1], levels[b][1])
            yield (a, b, *_correlation(both, told, ci_level))

    return pd.DataFrame(list(made()), columns=COLUMNS)


def _correlation(both: np.ndarray, told: str, ci_level: float) -> tuple[object, ...]:
    n = len(both)
    if n < 3:
        return NAN, NAN, NAN, NAN, n, joined(f"undefined: {n} systems ranked by both, 3 are needed", told)
    if (np.ptp(both, axis=0) == 0).any():
        return NAN, NAN, NAN, NAN, n, joined("undefined: a judge ranks all systems alike", told)
    rho = float(spearmanr(both[:, 0], both[:, 1]).statistic)
    tau = float(kendalltau(both[:, 0], both[:, 1]).statistic)
    low = high = NAN
    if n >= LEAST and abs(rho) < 1:
        half = float(norm.ppf((1 + ci_level) / 2)) * np.sqrt((1 + rho**2 / 2) / (n - 3))
        low, high = (float(np.tanh(np.arctanh(rho) + side * half)) for side in (-1, 1))
    elif n < LEAST:
        told = joined(f"no interval: {n} systems", told)
    else:
        told = joined("no interval: the two orders are the same or the reverse", told)
    return rho, low, high, tau, n, told
