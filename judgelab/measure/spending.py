"""How many calls a ranking needs: each schedule, run on judged matches, against the ranking from all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.stats import rankdata

from judgelab.measure.adaptive import PRIOR_SD
from judgelab.measure.comparisons import Oracle, oracle_of
from judgelab.measure.estimates import Place, Settings
from judgelab.measure.resampling import Floats, generator, percentile_interval
from judgelab.measure.rows import frame, joined
from judgelab.measure.schedule_runs import SCHEDULES, Schedule, ratings_among, ratings_at, wins_among

__all__ = ["BUDGETS", "rank_correlation", "reached", "spending"]

NAN = float("nan")
BUDGETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
DIGITS = 8  # of a log strength, a digit fewer than the fit has: systems with equal records are tied


def spending(
    matches: pd.DataFrame,
    *,
    budgets: Sequence[float] = BUDGETS,
    repeats: int = 20,
    calls_per_comparison: int = 2,
    target: float = 0.95,
    schedules: Sequence[Schedule] = SCHEDULES,
    ci_level: float,
    resamples: int,
    seed: int,
    judge: str = "panel",
) -> pd.DataFrame:
    """What a ranking from fewer calls is worth, by schedule and budget.

    Each schedule asks a table of finished matches as if it were the judge, until the budget is spent. The ratings from
    what it asked (log strengths of :func:`~judgelab.measure.adaptive.penalised`: Bradley and Terry's model with a weak
    normal prior, ties as half a win; for merge sort its own order) are compared with those from all the matches.

    **The ranking from all the matches shares its matches with the cheaper ones**: at a budget of 1 the rank
    correlation is 1 by construction, not by merit. It says how soon a schedule arrives where the whole table would
    lead, not how near either is to the truth.

    Parameters
    ----------
    matches : DataFrame
        ``item_id``, ``system_x``, ``system_y``, ``preference``, optionally ``weight``: see
        :func:`~judgelab.measure.comparisons.oracle_of`, which makes one answer of each item and pair. A pair that the
        table does not hold on an item is not asked.
    budgets : sequence of float
        Shares of the comparisons that the table holds (of the whole round robin, where it is complete), above 0 and up
        to 1.
    repeats : int
        How often each schedule is run, with other random numbers each time.
    calls_per_comparison : int
        2 where both presentations are judged, times the judges.
    target : float
        Mean rank correlation to reach.
    schedules : sequence of str
        Those to run.
    ci_level, resamples, seed : float, int, int
        As ``study.intervals`` gives them.
    judge : str
        Name of the judge or panel.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`.

        ``rank_correlation``, slices ``schedule=<s>:calls=<N>``: mean over the repeats of Spearman's correlation with
        the ranking from all the matches. The interval holds the central ``ci_level`` of the single runs: how good or
        bad the luck of one run may be. ``n_used`` counts repeats, ``n_excluded`` those in which a ranking had no two
        different ranks. Merge sort cannot spend just any budget: it is run with the most votes a comparison that
        cannot exceed it, and the note says what it spent on average.

        ``calls_to_reach`` and ``share_to_reach``, slices ``schedule=<s>``: the smallest of the budgets at which the
        mean rank correlation is at ``target`` or above and stays there at all larger ones, in calls and as a share of
        all calls (of merge sort's budget it may leave some). The interval is the percentile bootstrap over the repeats.
        Undefined if it is never reached.

    Raises
    ------
    ValueError
        See :meth:`judgelab.measure.matches.Matches.of`; or if an option is out of range.

    Notes
    -----
    All is undefined where no chain of decided matches joins two systems, or where all have equal ratings. An answer
    without a usable verdict costs its calls and tells nothing.
    """
    settings = Settings(ci_level, resamples, seed)
    _check(budgets, repeats, calls_per_comparison, target, schedules)
    oracle = oracle_of(matches)
    full = len(oracle.comparisons)
    steps = sorted({max(1, round(share * full)) for share in budgets}) if full else []
    reference = ratings_among(oracle, oracle.comparisons)
    problem = _problem(oracle, reference)

    def made() -> Iterator[dict[str, Any]]:
        for schedule in schedules:
            values, spent = np.full((2, repeats, len(steps)), NAN)
            for repeat in range(0 if problem else repeats):
                own = int(generator(seed, "spending", judge, str(repeat)).integers(2**31))
                ratings, spent[repeat] = ratings_at(oracle, schedule, steps, seed=own)
                values[repeat] = [rank_correlation(row, reference) for row in ratings]
            place = _Schedule(schedule, judge, settings, [step * calls_per_comparison for step in steps], problem)
            yield from place.rows(values, spent * calls_per_comparison, full * calls_per_comparison, target)

    return frame(made())


def _check(
    budgets: Sequence[float], repeats: int, calls_per_comparison: int, target: float, schedules: Sequence[str]
) -> None:
    if not budgets or not all(0 < share <= 1 for share in budgets):
        raise ValueError(f"budgets are {list(budgets)}; allowed are shares above 0 and up to 1, at least one")
    for name, value in (("repeats", repeats), ("calls_per_comparison", calls_per_comparison)):
        if value < 1:
            raise ValueError(f"{name} is {value}; allowed is 1 and more")
    if not -1 < target <= 1:
        raise ValueError(f"target is {target}; allowed is above -1 and up to 1")
    unknown = [name for name in schedules if name not in SCHEDULES]
    if unknown:
        raise ValueError(f"schedules: {unknown[0]!r} is unknown; there are {', '.join(SCHEDULES)}")


def _problem(oracle: Oracle, reference: Floats) -> str:
    """Why there is no ranking from all the matches; empty if there is one."""
    decided = [asked for asked in oracle.comparisons if oracle(*asked) is not None]
    if not decided:
        return "no decided match"
    if connected_components(wins_among(oracle, decided), directed=False)[0] > 1:
        return "no chain of decided matches joins all the systems"
    return "all systems have equal ratings" if np.ptp(np.round(reference, DIGITS)) == 0 else ""


def rank_correlation(ratings: Floats, reference: Floats) -> float:
    """Spearman's correlation of two ratings (n,) of the same systems; NaN where one of them has no two ranks.

    Examples
    --------
    >>> rank_correlation(np.array([1.0, 2.0, 9.0]), np.array([1.0, 3.0, 2.0]))
    0.5
    """
    ranks = [rankdata(np.round(values, DIGITS)) for values in (ratings, reference)]
    centred = [values - values.mean() for values in ranks]
    room = float((centred[0] ** 2).sum() * (centred[1] ** 2).sum()) if not np.isnan(ratings).any() else 0.0
    return float(centred[0] @ centred[1] / np.sqrt(room)) if room > 0 else NAN


def reached(means: Floats, calls: Sequence[int], target: float) -> NDArray[np.float64]:
    """The smallest number of calls from which on the means stay at or above the target; infinite if none.

    Parameters
    ----------
    means : array of shape (..., len(calls))
        Mean rank correlations; NaN counts as below.
    calls : sequence of int
        Ascending.

    Examples
    --------
    >>> reached(np.array([[0.96, 0.9, 0.95, 0.97], [0.9, 0.9, 0.9, 0.9]]), [10, 20, 30, 40], 0.95).tolist()
    [30.0, inf]
    """
    below = ~(np.asarray(means) >= target - 1e-12)
    last = np.where(below.any(axis=-1), below.shape[-1] - np.argmax(below[..., ::-1], axis=-1), 0)
    return np.asarray(np.append(np.asarray(calls, dtype=np.float64), np.inf)[last])


class _Schedule:
    """The rows of one schedule."""

    def __init__(self, name: str, judge: str, settings: Settings, calls: list[int], problem: str) -> None:
        self.name, self.judge, self.settings, self.calls = name, judge, settings, calls
        self.problem = f"undefined: {problem}" if problem else ""
        rated = f"Bradley-Terry with ties as half a win, normal prior of sd {PRIOR_SD:g}"
        own = "its own order" if name == "merge_sort" else rated
        self.method = f"Spearman of {own} and the ranking from all the matches (it contains these; {rated})"

    def _place(self, more: str = "") -> Place:
        return Place(self.judge, "pairwise", "both", f"schedule={self.name}{more}")

    def rows(self, values: Floats, spent: Floats, full: int, target: float) -> Iterator[dict[str, Any]]:
        """One row a budget, and the two of what the target needs; ``values`` and ``spent`` (repeats, budgets)."""
        repeats, level = len(values), self.settings.ci_level
        defined = ~np.isnan(values)
        totals = np.where(defined, values, 0.0).sum(axis=0)
        means = np.divide(totals, defined.sum(axis=0), out=np.full(len(totals), NAN), where=defined.any(axis=0))
        for place, calls in enumerate(self.calls):
            used = int(defined[:, place].sum())
            low, high, trouble = percentile_interval(values[:, place], level) if repeats > 1 else (NAN, NAN, "")
            note = trouble
            if not used:
                short = self.name == "merge_sort" and not spent[:, place].any()
                reason = "fewer calls than a merge sort may need" if short else "no run has two different ranks"
                note = self.problem or f"undefined: {reason}"
            elif self.name == "merge_sort":
                note = joined(f"spent {spent[:, place].mean():.0f} calls on average", trouble)
            yield self._place(f":calls={calls}").row(
                "rank_correlation",
                float(means[place]),
                interval=(low, high) if used else (NAN, NAN),
                ci_level=level,
                n_used=used,
                n_excluded=repeats - used,
                method=f"{self.method}; mean over {repeats} repeats and the central interval of single ones",
                note=note,
            )
        yield from self._needed(values, means, full, target)

    def _needed(self, values: Floats, means: Floats, full: int, target: float) -> Iterator[dict[str, Any]]:
        repeats = len(values)
        calls = float(reached(means, self.calls, target)) if self.calls else float("inf")
        low, high, note = NAN, NAN, self.problem or f"undefined: a mean of {target:g} is not reached at the budgets"
        if np.isfinite(calls):
            note = "the smallest budget: fewer calls may do" if calls == self.calls[0] else ""
            draws = (
                self._place()
                .rng("calls_to_reach", self.settings)
                .integers(0, repeats, (self.settings.resamples, repeats))
            )
            counts = np.stack([np.bincount(drawn, minlength=repeats) for drawn in draws])
            sums, n = counts @ np.nan_to_num(values), counts @ ~np.isnan(values)
            sampled = reached(sums / np.maximum(n, 1), self.calls, target)
            low, high, _ = percentile_interval(sampled, self.settings.ci_level) if repeats > 1 else (NAN, NAN, "")
            if not np.isfinite(high):
                low, high = NAN, NAN
                note = joined(note, "no interval: some resamples of the repeats do not reach the target")
        method = f"smallest budget from which on the mean rank correlation stays at {target:g} or above; {self.method}"
        method += f"; percentile bootstrap over {repeats} repeats, {self.settings.resamples} resamples"
        for measure, unit in (("calls_to_reach", 1), ("share_to_reach", full)):
            unit = max(1, unit)
            yield self._place().row(
                measure,
                calls / unit if np.isfinite(calls) else NAN,
                interval=(low / unit, high / unit),
                ci_level=self.settings.ci_level,
                numerator=calls if measure == "share_to_reach" and np.isfinite(calls) else None,
                denominator=full if measure == "share_to_reach" else None,
                n_used=repeats if not self.problem else 0,
                n_excluded=0 if not self.problem else repeats,
                method=method,
                note=note,
            )
