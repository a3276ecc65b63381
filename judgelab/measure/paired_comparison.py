"""Strengths of systems from paired comparisons, with ties, the first place and covariates held: the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from judgelab.measure.coding import excluded_note
from judgelab.measure.comparability import comparable, named, part_note, reasons
from judgelab.measure.comparison_solution import Solution, solved
from judgelab.measure.estimates import Settings
from judgelab.measure.match_counts import FIRST, MatchCounts
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import joined
from judgelab.measure.views import Flags

__all__ = ["PRIOR_SD", "Effect", "Strengths", "fit_strengths"]

NAN = float("nan")
PRIOR_SD = 2.0  # two thirds of the systems within odds of e² (7 to 1) of the mean; a prior that data soon outweigh
Ties = Literal["half", "dropped", "davidson", "rao_kupper"]
Undefined = Literal["penalise", "name", "error"]
TIES = {
    "half": "a tie half a win each",
    "dropped": "ties dropped",
    "davidson": "ties by Davidson",
    "rao_kupper": "ties by Rao and Kupper",
}


@dataclass(frozen=True)
class Effect:
    """A parameter beside the strengths.

    Attributes
    ----------
    estimate, se : float
        NaN where undefined; the standard error is from the information, matches taken as independent.
    draws : array of shape (resamples,)
        Its values in resamples of whole items.
    note : str
        Why it is undefined, or what to know.
    carrying : float
        Number of items that carry its variance, see :func:`judgelab.measure.carriers.carriers`; to first order.
    """

    estimate: float
    se: float
    draws: Floats
    note: str
    carrying: float


@dataclass(frozen=True)
class Strengths:
    """Fitted strengths of S systems, in order of appearance.

    Attributes
    ----------
    systems : tuple of str
    level : array of shape (S,)
        Log strengths, mean 0 over those that have one; NaN where undefined.
    covariance : array of shape (S, S)
        Of the levels: inverse information under the constraint that they sum to 0, matches taken as independent.
    draws : array of shape (resamples, S)
        Levels in resamples of whole items, each with mean 0.
    first_position, tie_parameter : Effect or None
        Log odds of the first place between equals; Davidson's ν or Rao and Kupper's θ. None where not in the model.
    covariates : dict of str to Effect
        Change of the log odds by one unit of a covariate.
    reasons : tuple of str
        Why the data alone give a system no strength; empty where they do.
    notes : tuple of str
        What holds for every number of the fit.
    penalised : bool
        Whether the likelihood has no finite maximum and a prior made one.
    n_used, n_excluded, n_items : int
        Matches used and not used, items of those used.
    played, excluded : arrays of int, shape (S,)
        The same by system.
    carrying : array of shape (S,)
        See :class:`Effect`.
    settings : Settings
        Level, resamples and seed of the intervals.
    method : str
        How the fit was made.
    """

    systems: tuple[str, ...]
    level: Floats
    covariance: Floats
    draws: Floats
    first_position: Effect | None
    tie_parameter: Effect | None
    covariates: dict[str, Effect]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    penalised: bool
    n_used: int
    n_excluded: int
    n_items: int
    played: Ints
    excluded: Ints
    carrying: Floats
    settings: Settings
    method: str


def fit_strengths(
    matches: pd.DataFrame,
    *,
    ties: Ties = "half",
    first_position: bool = False,
    covariates: Sequence[str] = (),
    undefined: Undefined = "penalise",
    prior_sd: float = PRIOR_SD,
    ci_level: float,
    resamples: int,
    seed: int,
    judge: str = "",
) -> Strengths:
    """Fit log strengths θ, sum 0, by maximum likelihood.

    The log odds of x against y are::

        η = θ_x − θ_y + γ · (x shown first: +1, second: −1, unknown: 0) + β · z

    With ``ties="half"`` (a tie is half a win of each) or ``"dropped"``, P(x) = 1 / (1 + e^−η): Bradley and Terry. With
    ``"davidson"``, P(x) ∝ e^(η/2), P(y) ∝ e^(−η/2), P(tie) ∝ ν. With ``"rao_kupper"``, P(x) = 1 / (1 + θ e^−η),
    P(y) = 1 / (1 + θ e^η), the rest a tie; θ ≥ 1, and 1 where nobody ties. γ is the log odds of the first place
    between equals: odds that both sides of a swap differ by are e^(2γ).

    Parameters
    ----------
    matches : DataFrame
        One row a match: ``system_x``, ``system_y``, ``preference`` (one of the two, ``TIE`` or missing: left out);
        optionally ``weight`` (above 0) and ``item_id``; ``first`` for ``first_position``, ``words_x``, ``words_y`` for
        the covariate ``length``.
    ties, first_position, covariates
        See above and :meth:`~judgelab.measure.match_counts.MatchCounts.of`. A match whose first is unknown stays in.
    undefined : {"penalise", "name", "error"}
        What to do where the likelihood has no finite maximum: a system (or a part of them) is undefeated, winless or
        joined by no match; or the place or a covariate decides matches without error, or cannot be told from the
        strengths. ``name`` fits the largest group of systems that can be compared, the others are NaN; if it is a
        term that fails, all are. ``error`` raises. ``penalise`` puts a normal prior (mean 0) on the log strengths of
        all systems with a match, and only where that does not suffice on the other parameters; the notes say so.
    prior_sd : float
        Standard deviation of that prior, in log odds. Not used where there is a finite maximum.
    ci_level, resamples, seed
        Kept in ``settings``. Items (``item_id``; none: each match) are resampled whole. A resample without a finite
        maximum gets the prior (``penalise``) or is NaN; the notes count them.
    judge : str
        Enters the random numbers only.

    Raises
    ------
    ValueError
        If an option is out of range, see :meth:`~judgelab.measure.match_counts.MatchCounts.of`, or with
        ``undefined="error"``, naming the systems and why.

    Notes
    -----
    Newton's method on counts by cell. Standard errors take ties as half as one match of outcome 1/2, which makes them
    somewhat too large, and matches of an item as independent, which may make them too small: intervals are to be
    taken from ``draws``. Sources: Bradley and Terry, 1952; Rao and Kupper, "Ties in paired-comparison experiments",
    1967; Davidson, "On extending the Bradley-Terry model to accommodate ties", 1970; the place, Davidson and Beaver,
    1977; existence, Ford, 1957, and Albert and Anderson, 1984. Checked against ``ranking.bradley_terry``, evalica,
    statsmodels' GLM and scipy's optimiser.

    Examples
    --------
    Odds of 3 to 1: the log strengths differ by ln 3.

    >>> table = pd.DataFrame({"system_x": list("aaaa"), "system_y": list("bbbb"), "preference": list("aaab")})
    >>> fit_strengths(table, ci_level=0.95, resamples=100, seed=1).level.round(6).tolist()
    [0.549306, -0.549306]
    """
    settings = Settings(ci_level, resamples, seed)
    for name, value, allowed in (("ties", ties, get_args(Ties)), ("undefined", undefined, get_args(Undefined))):
        if value not in allowed:
            raise ValueError(f"{name} is {value!r}; allowed are {', '.join(allowed)}")
    if not (np.isfinite(prior_sd) and prior_sd > 0):
        raise ValueError(f"prior_sd is {prior_sd}; allowed is above 0")
    counts = MatchCounts.of(matches, ties=ties, first_position=first_position, covariates=covariates)
    wins = counts.read.wins
    group, rated = comparable(wins)
    why = reasons(counts.read, wins, group, rated)
    names = counts.read.systems
    texts = [f"{name} {reason}" for name, reason in zip(names, why, strict=True) if reason]
    if undefined == "error" and texts:
        raise ValueError(f"no finite strengths: {named(texts)}")
    played = counts.read.played > 0
    keep = played if undefined == "penalise" else rated
    apart = [text for text, meets in zip(texts, played[~rated], strict=True) if meets]
    method = joined(f"Bradley-Terry, maximum likelihood, {TIES[ties]}", *(f"{name} held" for name in counts.names))
    penalise = undefined == "penalise"
    solution = solved(counts, keep, ties, named(apart) if penalise else "", penalise, prior_sd, settings, judge)
    if undefined == "error" and solution.cause:
        raise ValueError(f"no finite strengths: {solution.cause}")
    return _strengths(counts, keep, why, solution, ties, settings, method, undefined, prior_sd)


def _strengths(
    counts: MatchCounts,
    keep: Flags,
    why: list[str],
    solution: Solution,
    ties: Ties,
    settings: Settings,
    method: str,
    undefined: Undefined,
    prior_sd: float,
) -> Strengths:
    """The solution by the systems and terms of the table."""
    size, kept, total = int(keep.sum()), np.flatnonzero(keep), len(keep)
    cells, penalised = solution.cells, bool(np.nan_to_num(solution.prior).any())
    level, carrying = np.full(total, NAN), np.full(total, NAN)
    covariance, draws = np.full((total, total), NAN), np.full((settings.resamples, total), NAN)
    level[kept], carrying[kept] = solution.parameters[:size], solution.carrying[:size]
    covariance[np.ix_(kept, kept)] = solution.covariance[:size, :size]
    draws[:, kept] = solution.draws[:size].T
    outside = counts.read.played - cells.played
    left_out = counts.left_out | {"with_systems_outside_the_group": len(counts.read.x) - cells.matches}
    inside = keep[counts.read.x] & keep[counts.read.y]
    unplaced = int((counts.terms[inside, 0] == 0).sum()) if FIRST in counts.names else 0
    on = "all parameters" if penalised and solution.prior[size:].any() else "the log strengths"
    fitted = f"no finite maximum: {solution.cause}; fitted with a normal prior of mean 0 and sd {prior_sd:g} on {on}"
    lost = "have no finite maximum and are left out"
    if undefined == "penalise":
        lost = "needed the prior on all parameters" if penalised else "have no finite maximum and got the prior"
    notes = (
        fitted if penalised else "",
        part_note(counts.read.systems, keep) if keep.any() and not solution.cause else "",
        f"{solution.odd} of {settings.resamples} resamples {lost}" if solution.odd else "",
        f"{unplaced} of {cells.matches} matches without a known first do not enter its effect" if unplaced else "",
        excluded_note(counts.total, "matches", **left_out),
    )
    failed = "" if penalised or not solution.cause else solution.cause
    return Strengths(
        systems=counts.read.systems,
        level=level,
        covariance=covariance,
        draws=draws,
        carrying=carrying,
        reasons=tuple(reason or failed for reason in why),
        notes=tuple(note for note in notes if note),
        penalised=penalised,
        n_used=cells.matches,
        n_excluded=counts.total - cells.matches,
        n_items=cells.items.n_items,
        played=cells.played,
        excluded=counts.excluded + outside,
        settings=settings,
        method=joined(method, f"normal prior of sd {prior_sd:g} on {on}" if penalised else ""),
        **_effects(counts, solution, size, ties, settings),
    )


def _effects(counts: MatchCounts, solution: Solution, size: int, ties: Ties, settings: Settings) -> dict[str, Any]:
    """The parameters beside the strengths."""
    blank = np.full(settings.resamples, NAN)
    errors = np.sqrt(np.maximum(np.diag(solution.covariance), 0.0))
    effects: dict[str, Effect] = {}
    place = size
    fitted = bool(solution.cells.matches) and bool(np.isfinite(solution.parameters).all())
    why = "" if fitted else f"undefined: {solution.cause or 'no match'}"
    for name, varied in zip(counts.names, solution.varied, strict=True):
        if not varied:
            known = "no match has a known first" if name == FIRST else f"{name} is 0 in every match"
            effects[name] = Effect(
                NAN, NAN, blank, f"undefined: {known if solution.cells.matches else 'no match'}", NAN
            )
            continue
        numbers = float(solution.parameters[place]), float(errors[place]), solution.draws[place]
        effects[name] = Effect(*numbers, why, float(solution.carrying[place]))
        place += 1
    tie = None
    if solution.tied:
        value, draws = float(np.exp(solution.parameters[-1])), np.exp(solution.draws[-1])
        tie = Effect(value, value * float(errors[-1]), draws, why, float(solution.carrying[-1]))
    elif ties in ("davidson", "rao_kupper"):
        bound = NAN if why else (0.0 if ties == "davidson" else 1.0)
        tie = Effect(bound, NAN, blank + bound, why or "no match is a tie: at its bound", NAN)
    first = effects.pop(FIRST, None)
    return {"first_position": first, "covariates": effects, "tie_parameter": tie}
