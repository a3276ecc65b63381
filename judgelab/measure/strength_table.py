"""Strengths of systems as rows for people: on the log scale, as Elo points and as shares, with what was held."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.estimates import Place, interval_of
from judgelab.measure.paired_comparison import PRIOR_SD, Effect, Strengths, Ties, Undefined, fit_strengths
from judgelab.measure.resampling import Floats
from judgelab.measure.rows import frame, joined

__all__ = ["strength_table", "strength_table_of"]

NAN = float("nan")


def strength_table(
    matches: pd.DataFrame,
    *,
    judge: str,
    ties: Ties = "half",
    first_position: bool = False,
    covariates: Sequence[str] = (),
    undefined: Undefined = "penalise",
    prior_sd: float = PRIOR_SD,
    start: float = 1000.0,
    scale: float = 400.0,
    base: float = 10.0,
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Fit strengths and show them: :func:`~judgelab.measure.paired_comparison.fit_strengths`, then the rows.

    Parameters and errors: see there and :func:`strength_table_of`.

    Examples
    --------
    Odds of 3 to 1 are 400 · log₁₀ 3 = 190.85 points of Elo.

    >>> table = pd.DataFrame({"system_x": list("aaaa"), "system_y": list("bbbb"), "preference": list("aaab")})
    >>> rows = strength_table(table, judge="j", ci_level=0.95, resamples=100, seed=1)
    >>> elo = rows.loc[rows["measure"] == "strength_elo", "estimate"]
    >>> round(float(elo.iloc[0] - elo.iloc[1]), 2)
    190.85
    """
    fit = fit_strengths(
        matches,
        ties=ties,
        first_position=first_position,
        covariates=covariates,
        undefined=undefined,
        prior_sd=prior_sd,
        ci_level=ci_level,
        resamples=resamples,
        seed=seed,
        judge=judge,
    )
    return strength_table_of(fit, judge=judge, start=start, scale=scale, base=base)


def strength_table_of(
    fit: Strengths, *, judge: str, start: float = 1000.0, scale: float = 400.0, base: float = 10.0
) -> pd.DataFrame:
    """Rows of a fit that is at hand.

    For every system, slice ``system=<s>``, best first and those without a strength last:

    ===================  ==============================================================================
    measure              what it is
    ===================  ==============================================================================
    log_strength         θ, mean 0: the log odds of two systems are the difference of theirs
    log_strength_se      its standard error from the information, matches taken as independent
    strength_elo         start + scale / ln(base) · θ: ``scale`` points are odds of ``base`` to 1
    strength_share       e^θ over the sum of all, in (0, 1), sum 1
    ===================  ==============================================================================

    Then, where they are in the model: ``first_position_effect`` (log odds of the first place between equals),
    ``tie_parameter`` (Davidson's ν ≥ 0, Rao and Kupper's θ ≥ 1), ``covariate_effect`` with the slice
    ``covariate=<name>`` (log odds by one unit).

    Parameters
    ----------
    fit : Strengths
    judge : str
        Name of the judge or panel in the rows.
    start, scale, base : float
        Of the Elo scale; ``scale`` above 0, ``base`` above 1.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`, strategy ``pairwise``, pass ``both``. ``n_used`` and
        ``n_excluded`` count matches: of the system, or all. Intervals are percentiles over resamples of whole items.
        Where a prior made the strengths finite, every row says so and names the systems.

    Raises
    ------
    ValueError
        If the scale is out of range.
    """
    for name, value in (("scale", scale), ("base - 1", base - 1)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}; allowed is above 0")
    if not np.isfinite(start):
        raise ValueError(f"start is {start}; allowed is a finite number")
    return frame(_rows(fit, judge, start, scale, base))


def _rows(fit: Strengths, judge: str, start: float, scale: float, base: float) -> Iterator[dict[str, Any]]:
    points = scale / float(np.log(base))
    shares, share_draws = _shares(fit.level), _shares(fit.draws).copy()
    elo = f"{start:g} + {scale:g} / ln {base:g} · log strength"
    for system in np.argsort(-np.asarray(fit.level), kind="stable"):
        place = Place(judge, "pairwise", "both", f"system={fit.systems[system]}")
        counted = {"n_used": int(fit.played[system]), "n_excluded": int(fit.excluded[system])}
        level, draws, why = float(fit.level[system]), fit.draws[:, system], fit.reasons[system]
        note = joined(f"undefined: {why}" if np.isnan(level) else why, *fit.notes)
        carrying = float(fit.carrying[system])
        common: dict[str, Any] = {"fit": fit, "place": place, "note": note, "counted": counted, "carrying": carrying}
        if why and not np.isnan(level):
            # it wins, or loses, in every resample: these say nothing of how far a prior has let its strength go
            common["note"] = joined(note, "no interval: a prior made its strength finite")
            draws = np.full_like(draws, NAN)
            share_draws[:, system] = NAN
        yield _row("log_strength", level, draws, **common)
        error = float(np.sqrt(fit.covariance[system, system]))
        how = joined("from the information, matches independent", fit.method)
        yield place.row("log_strength_se", error, method=how, note=note, **counted)
        yield _row("strength_elo", start + points * level, start + points * draws, how=elo, **common)
        yield _row("strength_share", float(shares[system]), share_draws[:, system], how="sum 1", **common)
    yield from _effect_rows(fit, judge)


def _effect_rows(fit: Strengths, judge: str) -> Iterator[dict[str, Any]]:
    """The parameters beside the strengths."""
    named = [("first_position_effect", "all", fit.first_position), ("tie_parameter", "all", fit.tie_parameter)]
    named += [("covariate_effect", f"covariate={name}", effect) for name, effect in fit.covariates.items()]
    counted = {"n_used": fit.n_used, "n_excluded": fit.n_excluded}
    for measure, slice_, effect in named:
        if isinstance(effect, Effect):
            place = Place(judge, "pairwise", "both", slice_)
            note = joined(effect.note, *fit.notes)
            common: dict[str, Any] = {"note": note, "counted": counted, "carrying": effect.carrying}
            yield _row(measure, effect.estimate, effect.draws, fit=fit, place=place, **common)


def _row(
    measure: str,
    estimate: float,
    draws: Floats,
    *,
    fit: Strengths,
    place: Place,
    note: str,
    counted: dict[str, int],
    carrying: float,
    how: str = "",
) -> dict[str, Any]:
    """A number with its interval over the resamples."""
    common = {"ci_level": fit.settings.ci_level, **counted}
    if np.isnan(estimate) or not np.isfinite(draws).any():
        return place.row(measure, estimate, method=joined(how, fit.method), note=note, **common)
    made = interval_of(draws, estimate, fit.n_items, "coefficient", fit.settings, carrying=carrying)
    made["method"], made["note"] = joined(how, fit.method, made["method"]), joined(note, made["note"])
    return place.row(measure, estimate, **made, **common)


def _shares(level: Floats) -> Floats:
    """e^θ over the sum, along the last axis; NaN stays."""
    if level.shape[-1] == 0:
        return level
    defined = ~np.isnan(level)
    top = np.where(defined, level, -np.inf).max(axis=-1, keepdims=True)
    powers = np.exp(level - np.where(np.isfinite(top), top, 0.0))
    total = np.where(defined, powers, 0.0).sum(axis=-1, keepdims=True)
    return np.asarray(powers / np.where(total > 0, total, 1.0))
