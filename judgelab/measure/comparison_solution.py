"""The maximum of a paired comparison's likelihood and its resamples, or why there is none."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from judgelab.measure.comparison_fit import SMALL, Likelihood, fit_samples
from judgelab.measure.estimates import Settings
from judgelab.measure.match_counts import Cells, MatchCounts
from judgelab.measure.resampling import CHUNK, Floats, ItemTable, bootstrap, generator
from judgelab.measure.tie_rules import BINARY, DAVIDSON, RAO_KUPPER
from judgelab.measure.views import Flags

__all__ = ["Solution", "solved"]

NAN = float("nan")
EXACT, CLOSE = 1e-11, 1e-9  # last steps of the estimate and of a resample


class Solution(NamedTuple):
    """What was found; P parameters: log strengths of the systems kept, varying terms, the tie parameter if any.

    Attributes
    ----------
    cells : Cells
        The matches between the systems that are kept.
    parameters, covariance, draws, carrying : arrays of shape (P,), (P, P), (P, resamples), (P,)
        NaN where there is no maximum; ``carrying``: items that carry each parameter's variance.
    varied : array of bool, shape (T,)
        Terms that are not 0 in every match; the others are not in the model.
    tied : bool
        Whether the tie parameter is among the parameters.
    cause : str
        Why the likelihood has no finite maximum; empty if it has.
    prior : array of shape (P,)
        Precisions of the priors.
    odd : int
        Resamples that had no maximum with these priors.
    """

    cells: Cells
    parameters: Floats
    covariance: Floats
    draws: Floats
    carrying: Floats
    varied: Flags
    tied: bool
    cause: str
    prior: Floats
    odd: int


def solved(
    counts: MatchCounts,
    keep: Flags,
    ties: str,
    apart: str,
    penalise: bool,
    prior_sd: float,
    settings: Settings,
    judge: str,
) -> Solution:
    """The maximum and its resamples; NaN where there is none and no prior makes one.

    Parameters
    ----------
    counts : MatchCounts
    keep : array of bool, shape (systems,)
        The systems to be fitted.
    ties : str
        See :func:`~judgelab.measure.paired_comparison.fit_strengths`.
    apart : str
        Why the kept systems have no finite strengths, or empty.
    penalise : bool
        Whether priors may be used: on the strengths, and where that does not suffice on all parameters.
    prior_sd, settings, judge
        See there.
    """
    cells = counts.cells(keep)
    size, varied = int(keep.sum()), np.abs(cells.terms).sum(axis=0) > 0
    totals = np.ascontiguousarray(cells.items.totals.T) if cells.matches else np.zeros((0, 1))
    rule = {"davidson": DAVIDSON, "rao_kupper": RAO_KUPPER}.get(ties, BINARY)
    tied = rule is not BINARY and bool(totals[2 * len(cells.x) :].any())
    # Without a tie, the parameter is at its bound, which leaves Bradley and Terry's model.
    own = Likelihood(size, cells.x, cells.y, cells.terms[:, varied], rule if tied else BINARY)
    none = np.full(own.size, NAN)
    empty = np.full((own.size, settings.resamples), NAN)
    nothing = Solution(cells, none, np.diag(none), empty, none, varied, tied, apart, none, 0)
    if not cells.matches:
        return nothing
    items = cells.items if tied or rule is BINARY else _without_ties(cells)
    totals = totals[: own.rule.columns * len(cells.x)]
    start = np.zeros(own.size)
    if tied:
        share = float(totals[2 * len(cells.x) :].sum() / totals.sum())
        start[-1] = rule.start(np.array(min(max(share, 0.001), 0.9)))
    priors = _priors(own, prior_sd) if penalise else [np.zeros(own.size)]
    priors = priors[1:] if apart else priors
    cause, found = apart, np.zeros(1, dtype=bool)
    while not found.all() and priors:
        prior = priors.pop(0)
        at, found = fit_samples(own, totals, start, prior=prior, inverse=None, tolerance=EXACT)
        if not found.all() and not prior.any():
            cause = _cause(own, totals, [name for name, has in zip(counts.names, varied, strict=True) if has])
    if not found.all():
        return nothing._replace(cause=cause)
    inverse = np.linalg.inv(own.information(at, totals, prior)[0])
    odd: list[int] = []

    def drawn(sums: Floats) -> Floats:
        sampled = np.ascontiguousarray(sums.T)
        values, exists = fit_samples(own, sampled, at[:, 0], prior=prior, inverse=inverse, tolerance=CLOSE)
        odd.append(int((~exists).sum()))
        for other in priors:
            left = np.flatnonzero(~exists)
            if len(left):
                options: dict[str, Any] = {"prior": other, "inverse": None, "tolerance": CLOSE}
                values[:, left], exists[left] = fit_samples(own, sampled[:, left], at[:, 0], **options)
        return values

    rng = generator(settings.seed, "paired_comparison", judge)
    draws = bootstrap(items, drawn, resamples=settings.resamples, rng=rng)
    centre = np.eye(own.size)
    centre[:size, :size] -= 1 / size
    covariance = centre @ inverse @ centre.T
    carrying = _carrying(own, items, at, covariance)
    return Solution(cells, at[:, 0], covariance, draws, carrying, varied, tied, cause, prior, sum(odd))


def _without_ties(cells: Cells) -> ItemTable:
    """The items' contributions without the (empty) columns of ties."""
    return ItemTable(cells.items.rows[:, : 2 * len(cells.x)], cells.items.counts)


def _priors(likelihood: Likelihood, prior_sd: float) -> list[Floats]:
    """Precisions: none, on the strengths, on all parameters."""
    on_strengths = np.where(np.arange(likelihood.size) < likelihood.n_systems, prior_sd**-2, 0.0)
    return [np.zeros(likelihood.size), on_strengths, np.full(likelihood.size, prior_sd**-2)]


def _cause(likelihood: Likelihood, totals: Floats, names: list[str]) -> str:
    """Why comparable systems have no finite maximum: a term does it."""
    if names:
        values, vectors = np.linalg.eigh(likelihood.left(totals)[0])
        if values[0] <= SMALL:
            alike = [name for name, share in zip(names, vectors[:, 0], strict=True) if abs(share) > SMALL]
            return f"{' and '.join(alike)} cannot be told from the strengths (collinear)"
    direction = likelihood.separating(totals)
    terms = direction[likelihood.n_systems :] if direction is not None else np.ones(likelihood.size)
    involved = [name for name, move in zip([*names, "ties"], terms, strict=False) if abs(move) > SMALL]
    if direction is None and len(likelihood.x):
        return f"the fit does not converge with {' and '.join(involved)}"
    return f"{' and '.join(involved)} decide{'s' * (len(involved) == 1)} matches without error (separation)"


def _carrying(likelihood: Likelihood, items: Any, at: Floats, covariance: Floats) -> Floats:
    """Effective number of items that carry each parameter's variance, from first-order influences."""
    cells, columns = len(likelihood.x), likelihood.rule.columns
    if cells * columns * likelihood.size > 10 * CHUNK or items.n_items * likelihood.size > 10 * CHUNK:
        return np.full(likelihood.size, NAN)
    eta, tie = likelihood.predictors(at)
    scores = []
    for column in range(columns):
        unit = [np.full((cells, 1), float(column == other)) for other in range(columns)]
        slope, of_tie = likelihood.rule.slopes(eta, tie, unit)
        scores.append(np.asarray((likelihood.design.multiply(slope)).todense()))
        if of_tie is not None:
            scores[-1] = np.column_stack([scores[-1], of_tie])
    influences = np.asarray(items.rows @ (np.vstack(scores) @ covariance))
    shares = (items.counts / items.n_items)[:, np.newaxis]
    influences = influences - (shares * influences).sum(axis=0)
    second, fourth = ((shares * influences**power).sum(axis=0) for power in (2, 4))
    found = np.full(likelihood.size, NAN)
    np.divide(items.n_items * second**2, fourth, out=found, where=fourth > 1e-60)
    return found
