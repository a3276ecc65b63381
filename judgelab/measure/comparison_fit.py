"""Likelihoods of paired comparisons and their maxima, for many samples at once.

Arrays have one column a sample: parameters (P, b), counts (K, b). The parameters are the log strengths of S systems,
T coefficients of terms and, for a rule with ties, its parameter. All likelihoods here are concave, so that Newton's
steps, halved where they would lower one, lead to its maximum, if there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.tie_rules import BINARY, Parts, Rule
from judgelab.measure.views import Flags

__all__ = ["Likelihood", "fit_samples"]

STEPS = 60  # Newton's method needs about ten
CHORDS = 25  # steps with the curvature of the estimate, before Newton's own
SHRINKS = 0.3  # a chord step that is not that much shorter than the last is left to Newton
FAR = 35.0  # log odds above which a maximum counts as infinite: odds of 1e15
SMALL = 1e-6  # of a term's variation: what the strengths leave of it
FLAT = 1e-12  # least curvature, relative: where a maximum lies at infinity, steps end only when all is rounding
MANY = 20_000  # cells above which the separating term is not looked for


@dataclass(frozen=True)
class Likelihood:
    """The log likelihood of counts by cell and outcome.

    Attributes
    ----------
    n_systems : int
    x, y : arrays of int, shape (C,)
        The systems of each cell, sorted by pair.
    terms : array of shape (C, T)
    rule : Rule
        The counts have ``rule.columns`` · C rows: x won, y won, and ties where the rule knows them.
    """

    n_systems: int
    x: Ints
    y: Ints
    terms: Floats
    rule: Rule

    @property
    def linear(self) -> int:
        """Number of log strengths and coefficients."""
        return self.n_systems + self.terms.shape[1]

    @property
    def size(self) -> int:
        """Number of parameters P."""
        return self.linear + (self.rule.columns == 3)

    @cached_property
    def design(self) -> Any:
        """Sparse (C, S + T): η is its product with the log strengths and coefficients."""
        columns, values = self._entries
        rows = np.repeat(np.arange(len(self.x)), columns.shape[1])
        return sparse.csr_array((values.ravel(), (rows, columns.ravel())), shape=(len(self.x), self.linear))

    @cached_property
    def back(self) -> Any:
        """The design's transpose."""
        return sparse.csr_array(self.design.T)

    @cached_property
    def squares(self) -> Any:
        """Sparse ((S + T)², C): the information is its product with the bends."""
        columns, values = self._entries
        place = columns[:, :, np.newaxis] * self.linear + columns[:, np.newaxis, :]
        entries = values[:, :, np.newaxis] * values[:, np.newaxis, :]
        cells = np.repeat(np.arange(len(self.x)), columns.shape[1] ** 2)
        return sparse.csr_array((entries.ravel(), (place.ravel(), cells)), shape=(self.linear**2, len(self.x)))

    @cached_property
    def _entries(self) -> tuple[Ints, Floats]:
        """Columns and values of the design that are not 0."""
        ones = np.ones(len(self.x))
        of_terms = np.broadcast_to(np.arange(self.n_systems, self.linear), self.terms.shape)
        return np.column_stack([self.x, self.y, of_terms]), np.column_stack([ones, -ones, self.terms])

    def parts(self, totals: Floats) -> Parts:
        """The counts by outcome."""
        return np.split(totals, self.rule.columns)

    def predictors(self, at: Floats) -> tuple[Floats, Any]:
        """η of each cell and the tie parameter."""
        return self.design @ at[: self.linear], at[-1] if self.size > self.linear else None

    def value(self, at: Floats, totals: Floats, prior: Floats) -> Floats:
        """Log likelihood (b,) less Σ prior · parameter² / 2; prior (P,) holds precisions."""
        cells = self.rule.value(*self.predictors(at), self.parts(totals))
        return np.asarray(cells.sum(axis=0) - prior @ at**2 / 2)

    def gradient(self, at: Floats, totals: Floats, prior: Floats) -> Floats:
        """Its derivatives (P, b)."""
        slope, of_tie = self.rule.slopes(*self.predictors(at), self.parts(totals))
        found = self.back @ slope
        if of_tie is not None:
            found = np.vstack([found, of_tie.sum(axis=0)])
        return np.asarray(found - prior[:, np.newaxis] * at)

    def information(self, at: Floats, totals: Floats, prior: Floats) -> Floats:
        """Minus its second derivatives (b, P, P); the shift of all strengths, which has none, gets some."""
        bend, cross, of_tie = self.rule.bends(*self.predictors(at), self.parts(totals))
        size, last = self.linear, self.size
        found = np.zeros((at.shape[1], last, last))
        found[:, :size, :size] = (self.squares @ bend).T.reshape(-1, size, size)
        if of_tie is not None:
            found[:, -1, :size] = found[:, :size, -1] = (self.back @ cross).T
            found[:, -1, -1] = of_tie.sum(axis=0)
        found += np.diag(prior)
        own = found[:, : self.n_systems, : self.n_systems]
        own += (np.trace(own, axis1=1, axis2=2) / self.n_systems**2)[:, np.newaxis, np.newaxis]
        return found

    def connected(self, totals: Floats) -> Flags:
        """Samples (b,) in which every system has won or tied against every other, directly or over a chain."""
        parts = self.parts(totals)
        ties = parts[2] > 0 if len(parts) == 3 else np.zeros(1, dtype=bool)
        code = self.x * self.n_systems + self.y
        starts = np.flatnonzero(np.diff(code, prepend=-1))
        beats = np.zeros((self.n_systems, self.n_systems, totals.shape[1]), dtype=bool)
        for won, winner, loser in ((parts[0], self.x, self.y), (parts[1], self.y, self.x)):
            beats[winner[starts], loser[starts]] = np.logical_or.reduceat((won > 0) | ties, starts, axis=0)
        found = np.ones(totals.shape[1], dtype=bool)
        for way in (beats, beats.transpose(1, 0, 2)):
            reached, before = np.zeros((self.n_systems, totals.shape[1]), dtype=bool), -1
            reached[0] = True
            while before < int(reached.sum()) < reached.size:
                before = int(reached.sum())
                reached |= (way & reached[:, np.newaxis]).any(axis=0)
            found &= reached.all(axis=0)
        return found

    def left(self, totals: Floats) -> Floats:
        """What of the terms' variation (b, T, T) the strengths leave, each term's own variation being 1."""
        size, n = self.n_systems, np.asarray(sum(self.parts(totals)))
        square = (self.squares @ n).T.reshape(-1, self.linear, self.linear)
        own, mixed, terms = square[:, :size, :size].copy(), square[:, :size, size:], square[:, size:, size:]
        mean = np.trace(own, axis1=1, axis2=2)[:, np.newaxis, np.newaxis] / size
        own += mean / size + mean * SMALL**2 * np.eye(size)
        rest = terms - mixed.transpose(0, 2, 1) @ np.linalg.solve(own, mixed)
        scale = np.sqrt(np.maximum(np.diagonal(terms, axis1=1, axis2=2), 1e-300))
        return np.asarray(rest / scale[:, :, np.newaxis] / scale[:, np.newaxis, :])

    def separating(self, totals: Floats) -> Floats | None:
        """Parameters (P,) along which the likelihood never falls, if there are such; None where not looked for.

        No outcome may become less likely: a win needs dη ≥ max(0, dt), a tie |dη| ≤ dt, in the tie parameter of Rao
        and Kupper (Davidson's ln ν is half of it).
        """
        if len(self.x) > MANY:
            return None
        parts, blocks = self.parts(totals), []
        for part, sign in ((parts[0], 1.0), (parts[1], -1.0)):
            rows = sign * self.design[np.flatnonzero(part[:, 0] > 0)]
            blocks.append(_widened(rows, 0.0) if self.size > self.linear else rows)
            blocks += [_widened(rows, -1.0)] if self.size > self.linear else []
        if self.size > self.linear:
            rows = self.design[np.flatnonzero(parts[2][:, 0] > 0)]
            blocks += [_widened(rows, 1.0), _widened(-rows, 1.0)]
        never = sparse.vstack(blocks, format="csr")
        found = linprog(-never.sum(axis=0), A_ub=-never, b_ub=np.zeros(never.shape[0]), bounds=(-1, 1), method="highs")
        return np.asarray(found.x) if found.status == 0 and -found.fun > SMALL else None


def _widened(rows: Any, value: float) -> Any:
    """Rows with one more column of one value."""
    return sparse.hstack([rows, np.full((rows.shape[0], 1), value)], format="csr")


def fit_samples(
    likelihood: Likelihood, totals: Floats, start: Floats, *, prior: Floats, inverse: Floats | None, tolerance: float
) -> tuple[Floats, Flags]:
    """The parameters that maximise the likelihood of each sample.

    Parameters
    ----------
    likelihood : Likelihood
    totals : array of shape (K, b)
        Counts of each sample.
    start : array of shape (P,)
    prior : array of shape (P,)
        Precisions of normal priors of mean 0; 0 for none.
    inverse : array of shape (P, P) or None
        Inverse of the information near the maxima: steps with it are tried first, they cost no solution of equations.
    tolerance : float
        Size of the last step.

    Returns
    -------
    parameters : array of shape (P, b)
        Log strengths with mean 0; a tie parameter of −inf (Davidson) or 0 (Rao and Kupper) where nobody tied.
    found : array of bool, shape (b,)
        False where there is no finite maximum (or no single one); the parameters are NaN.
    """
    size, cells = likelihood.n_systems, len(likelihood.x)
    result, found = np.full((likelihood.size, totals.shape[1]), np.nan), np.zeros(totals.shape[1], dtype=bool)
    tied: Flags = np.ones(len(found), dtype=bool)
    if likelihood.size > likelihood.linear:
        tied = np.asarray(totals[2 * cells :].any(axis=0), dtype=bool)
    if not tied.all():
        binary = replace(likelihood, rule=BINARY)
        options: dict[str, Any] = {"prior": prior[:-1], "inverse": None, "tolerance": tolerance}
        result[:-1, ~tied], found[~tied] = fit_samples(binary, totals[: 2 * cells, ~tied], start[:-1], **options)
        result[-1, ~tied & found] = likelihood.rule.nothing
    may: Flags = tied.copy()
    if not prior[:size].all():
        may[tied] = likelihood.connected(totals[:, tied])
    if likelihood.terms.shape[1] and not prior[size : likelihood.linear].all():
        # With a prior on the strengths only, a term needs variation of its own; without, also beside the strengths.
        left = likelihood.left(totals[:, may])
        alone = prior[:size].all()
        may[may] = np.linalg.eigvalsh(left)[:, 0] > SMALL if not alone else _varied(likelihood, totals[:, may])
    columns = np.flatnonzero(may)
    if len(columns):
        counts = totals if len(columns) == totals.shape[1] else np.ascontiguousarray(totals[:, columns])
        result[:, columns], found[columns] = _maxima(likelihood, counts, start, prior, inverse, tolerance)
    result[:size] -= result[:size].mean(axis=0)
    return result, found


def _varied(likelihood: Likelihood, totals: Floats) -> Flags:
    """Samples in which no term is 0 throughout."""
    n = np.asarray(sum(likelihood.parts(totals)))
    return np.asarray((np.abs(likelihood.terms).T @ n > 0).all(axis=0))


def _maxima(
    likelihood: Likelihood, totals: Floats, start: Floats, prior: Floats, inverse: Floats | None, tolerance: float
) -> tuple[Floats, Flags]:
    """Chord steps while they shrink fast, then Newton's for the samples that are left."""
    at = np.repeat(start[:, np.newaxis], totals.shape[1], axis=1)
    done = np.zeros(totals.shape[1], dtype=bool)
    if inverse is not None:
        last, slow = np.full(len(done), 1 / SHRINKS), np.zeros(len(done), dtype=bool)
        with np.errstate(all="ignore"):
            for _ in range(CHORDS):
                step = inverse @ likelihood.gradient(at, totals, prior)
                moved = np.abs(step).max(axis=0)
                slow = slow | ~(moved <= np.maximum(SHRINKS * last, tolerance))
                at += np.where(slow, 0.0, step)
                done, last = ~slow & (moved <= tolerance), moved
                if (done | slow).all():
                    break
        at[:, ~done] = start[:, np.newaxis]
    newton = left = np.flatnonzero(~done)
    for _ in range(STEPS if len(left) else 0):
        own, counts = at[:, left], totals[:, left]
        step = _newton_step(likelihood, own, counts, prior)
        at[:, left] = own + step
        moved = np.abs(step).max(axis=0)
        done[left] = moved <= tolerance
        left = left[(moved > tolerance) & ~_far(likelihood, at[:, left])]
        if not len(left):
            break
    newton = newton[done[newton]]
    done[newton] = _curved(likelihood.information(at[:, newton], totals[:, newton], prior))
    done &= ~_far(likelihood, at)
    at[:, ~done] = np.nan
    return at, done


def _curved(matrices: Floats) -> Flags:
    """Matrices (b, P, P) that are not singular but for rounding: else the steps ended where the likelihood is flat."""
    scale = 1 / np.sqrt(np.maximum(np.diagonal(matrices, axis1=1, axis2=2), 1e-300))
    least = np.linalg.eigvalsh(matrices * scale[:, :, np.newaxis] * scale[:, np.newaxis, :])[:, 0]
    return np.asarray(least > FLAT)


def _far(likelihood: Likelihood, at: Floats) -> Flags:
    """Samples whose parameters, times the largest value they are multiplied with, are out of reach."""
    reach = np.ones(likelihood.size)
    reach[likelihood.n_systems : likelihood.linear] = np.abs(likelihood.terms).max(axis=0)
    return np.asarray(~(np.abs(at * reach[:, np.newaxis]).max(axis=0) < FAR))


def _newton_step(likelihood: Likelihood, at: Floats, totals: Floats, prior: Floats) -> Floats:
    """Newton's step, halved until the likelihood does not fall; a small one is taken whole. NaN if there is none."""
    with np.errstate(all="ignore"):
        step = _solved(likelihood.information(at, totals, prior), likelihood.gradient(at, totals, prior))
        before = likelihood.value(at, totals, prior)
        for _ in range(STEPS):
            after = likelihood.value(at + step, totals, prior)
            large = np.abs(step).max(axis=0) > 1e-3
            low = np.isnan(after) | (large & ~(after >= before))
            if not (low & np.isfinite(step).all(axis=0)).any():
                break
            step[:, low] /= 2
    return step


def _solved(matrices: Floats, right: Floats) -> Floats:
    """Solutions (P, b) of b systems of equations; NaN where there is none."""
    try:
        return np.asarray(np.linalg.solve(matrices, right.T[:, :, np.newaxis])[:, :, 0].T)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.full(right.shape, np.nan)
        halves = (slice(None, len(matrices) // 2), slice(len(matrices) // 2, None))
        return np.concatenate([_solved(matrices[half], right[:, half]) for half in halves], axis=1)
