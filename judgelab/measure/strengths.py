"""Strengths of systems under the model of Bradley and Terry, from a matrix of wins."""

from __future__ import annotations

import numpy as np
from scipy.sparse.csgraph import connected_components

from judgelab.measure.resampling import Floats, Ints

__all__ = ["groups", "strengths"]

NAN = float("nan")
STEPS = 200  # Newton's method needs about ten; one more for each factor e between the strongest and the weakest
SMALL = 1e-12  # a last step of this size in log strength leaves an error of its square


def groups(wins: Floats) -> Ints:
    """The group of each system: two are in one if each has won against the other, directly or over a chain.

    Parameters
    ----------
    wins : array of shape (systems, systems)
        Wins of the row over the column, ties as half.
    """
    if len(wins) == 0:
        return np.zeros(0, dtype=np.int64)
    codes = connected_components(wins > 0, directed=True, connection="strong")[1]
    return np.asarray(codes, dtype=np.int64)


def strengths(wins: Floats) -> Floats:
    """Bradley and Terry's strengths, sum 1, of systems that form one group (see :func:`groups`).

    With log strengths β, σ(t) = 1 / (1 + e⁻ᵗ) and wᵢⱼ wins of i over j, the gradient of the log likelihood is
    Σⱼ (wᵢⱼ σ(βⱼ − βᵢ) − wⱼᵢ σ(βᵢ − βⱼ)), its curvature (wᵢⱼ + wⱼᵢ) σ(βᵢ − βⱼ) σ(βⱼ − βᵢ). It is concave, so that
    Newton's steps, halved where they would lower it, lead to the one maximum.

    Parameters
    ----------
    wins : array of shape (systems, systems)
        Wins of the row over the column, ties as half.

    Returns
    -------
    array of shape (systems,)
        NaN where the strengths do not exist or lie so far apart that Newton's method does not reach them.
    """
    size = len(wins)
    undefined = np.full(size, NAN)
    if size == 0 or groups(wins).max() > 0:
        return undefined
    level = np.zeros(size)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(level[np.newaxis, :] - level[:, np.newaxis]))
        gradient = (wins * chance.T - wins.T * chance).sum(axis=1)
        bend = (wins + wins.T) * chance * chance.T
        curvature = np.diag(bend.sum(axis=1)) - bend
        # Strengths are relative: the direction (1, ..., 1) has no curvature of its own and gets some.
        try:
            step = np.linalg.solve(curvature + np.trace(curvature) / size**2, gradient)
        except np.linalg.LinAlgError:
            return undefined
        step -= step.mean()
        level = level + _shortened(step, level, wins)
        if float(np.abs(step).max()) <= SMALL:
            powers = np.exp(level - level.max())
            return np.asarray(powers / powers.sum())
    return undefined


def _shortened(step: Floats, level: Floats, wins: Floats) -> Floats:
    """The step, halved until the likelihood does not fall; a small step is near the maximum and is taken whole."""
    before = _log_likelihood(level, wins)
    while float(np.abs(step).max()) > 1e-3 and not _log_likelihood(level + step, wins) >= before:
        step = step / 2
    return step


def _log_likelihood(level: Floats, wins: Floats) -> float:
    return -float((wins * np.logaddexp(0.0, level[np.newaxis, :] - level[:, np.newaxis])).sum())
