"""The leaderboard: every system with its rank set, its tied group, both ratings with intervals, and its matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student

from judgelab.measure.comparability import named
from judgelab.measure.consensus import consensus
from judgelab.measure.elo_gaps import band, elo_ranking
from judgelab.measure.matches import Matches
from judgelab.measure.paired_comparison import Strengths, Ties, Undefined, fit_strengths
from judgelab.measure.rank_sets import rank_sets, tied_groups
from judgelab.measure.resampling import Floats, generator
from judgelab.measure.rows import joined
from judgelab.measure.strength_table import strength_table_of
from judgelab.measure.win_matrix import win_rates

__all__ = ["Leaderboard", "LeaderboardOptions", "leaderboard"]

COLUMNS = [
    *("system", "rank", "rank_low", "rank_high", "letters", "strength_elo", "strength_low", "strength_high"),
    *("elo", "elo_low", "elo_high", "elo_spread", "win_rate", "win_low", "win_high"),
    *("wins", "losses", "ties", "matches", "undecided", "items", "few", "note"),
]
SAME = 1e-12  # a difference whose variance over all resamples is less does not vary


class LeaderboardOptions(TypedDict, total=False):
    """Options of :func:`leaderboard`, as a protocol fixes them; see there."""

    threshold: float | None
    start: float
    k: float
    scale: float
    permutations: int
    ties: Ties
    undefined: Undefined
    prior_sd: float
    tied: float
    strong: float
    minimum_matches: int


@dataclass(frozen=True)
class Leaderboard:
    """A ranking and all that it is made of.

    Attributes
    ----------
    table : DataFrame
        See :func:`leaderboard`.
    rows : DataFrame
        Every estimate in the one shape: strengths, ranks, Elo ratings and win rates.
    gaps : DataFrame
        Neighbours by Elo: see :func:`judgelab.measure.elo_gaps.elo_gaps`, with the column ``band``.
    fit : Strengths
        The fitted model of Bradley and Terry.
    matches : DataFrame
        The matches that were ranked, after the panel's consensus.
    """

    table: pd.DataFrame
    rows: pd.DataFrame
    gaps: pd.DataFrame
    fit: Strengths
    matches: pd.DataFrame


def leaderboard(
    matches: pd.DataFrame,
    *,
    ci_level: float,
    resamples: int,
    seed: int,
    judge: str = "panel",
    **options: Unpack[LeaderboardOptions],
) -> Leaderboard:
    """Rank the systems of some matches: by Bradley and Terry's strengths, with Elo and win rates beside them.

    Parameters
    ----------
    matches : DataFrame
        The verdicts of one judge or of a panel, a row each: judge, item_id, system_x, system_y, preference (one of the
        two, ``TIE`` or missing), optionally category, pass, first, words_x, words_y.
    ci_level, resamples, seed, judge
        Coverage of the intervals, resamples of whole items, the protocol's seed, and the name in the rows.
    threshold : float or None
        Share of a pair's verdicts from which the panel agrees, see :func:`judgelab.measure.consensus.consensus`; None
        (default): every verdict is a match.
    start, k, scale, permutations
        Of Elo (1000, 32, 400, 1000); ``start`` and ``scale`` also put the strengths on the scale of Elo.
    ties, undefined, prior_sd
        Of the model, see :func:`judgelab.measure.paired_comparison.fit_strengths`.
    tied, strong : float
        Gaps in Elo points below which neighbours are tied and above which they differ strongly (50, 150).
    minimum_matches : int
        Systems with fewer decided matches are marked ``few`` (10).

    Returns
    -------
    Leaderboard
        ``table`` has one row a system, best first, those without a strength last: system, rank (ties share their mean),
        rank_low, rank_high (the rank set, simultaneous over all systems), letters (systems that share one are not told
        apart), strength_elo, strength_low, strength_high, elo (mean over the orders), elo_low, elo_high, elo_spread
        (over the orders alone), win_rate, win_low, win_high, wins, losses, ties, matches (decided), undecided, items,
        few, note.

    Raises
    ------
    ValueError
        If a column or an option cannot be used; with ``undefined="error"`` also if strengths do not exist.

    Notes
    -----
    Rank sets and letters come from the bootstrap over items, with two changes. Of a system that the data alone give no
    strength (undefeated, winless, joined to no other), and of one whose difference from another is the same in every
    resample, resampling says too little: its draws get the noise of the fit's normal approximation besides, in which
    all verdicts on the same pair and item count as one. And a bootstrap of few items varies too little: all draws
    are spread by √(n / (n − 1)) and by Student's t with n − 1 degrees of freedom against the normal, for n items at the
    level of one of all pairs. Without that, 4 equal systems were told apart in 31 % of studies of 5 items.

    Examples
    --------
    >>> table = pd.DataFrame({"judge": "j", "item_id": range(8), "system_x": "a", "system_y": "b",
    ...                       "preference": list("aaaaaabb")})
    >>> made = leaderboard(table, ci_level=0.95, resamples=200, seed=1, permutations=50)
    >>> made.table[["system", "rank", "rank_low", "rank_high", "letters", "wins", "matches", "few"]].values.tolist()
    [['a', 1.0, 1.0, 2.0, 'a', 6, 8, True], ['b', 2.0, 1.0, 2.0, 'a', 2, 8, True]]
    """
    settled = consensus(matches, options.get("threshold"), judge=judge)
    intervals: dict[str, Any] = {"ci_level": ci_level, "resamples": resamples, "seed": seed, "judge": judge}
    start, scale = options.get("start", 1000.0), options.get("scale", 400.0)
    fit = fit_strengths(
        settled,
        ties=options.get("ties", "half"),
        undefined=options.get("undefined", "penalise"),
        prior_sd=options.get("prior_sd", 2.0),
        **intervals,
    )
    rated = elo_ranking(
        settled,
        permutations=options.get("permutations", 1000),
        initial=start,
        k=options.get("k", 32.0),
        scale=scale,
        **intervals,
    )
    draws, how = _draws(settled, fit, seed)
    ranks = rank_sets(fit.systems, fit.level, draws, ci_level=ci_level, judge=judge, method_name=how)
    rates = win_rates(settled, **intervals)
    strengths = strength_table_of(fit, judge=judge, start=start, scale=scale)
    gaps = rated.gaps.copy()
    bands = {"tied": options.get("tied", 50.0), "strong": options.get("strong", 150.0)}
    gaps["band"] = [
        band(gap, **bands) if measure == "elo_gap" else ""
        for gap, measure in zip(gaps["estimate"], gaps["measure"], strict=True)
    ]
    rows = pd.concat([strengths, ranks, rated.table, rates], ignore_index=True)
    letters = tied_groups(fit.systems, fit.level, draws, ci_level=ci_level).set_index("system")["letters"]
    table = _table(settled, fit, rows, letters, options.get("minimum_matches", 10))
    return Leaderboard(table, rows, gaps, fit, settled)


def _draws(settled: pd.DataFrame, fit: Strengths, seed: int) -> tuple[Floats, str]:
    """Draws of the strengths for the rank sets, and how they were made; see the notes of :func:`leaderboard`."""
    method = f"strengths by {fit.method}; bootstrap over items"
    rated = np.flatnonzero(np.isfinite(fit.level))
    drawn = fit.draws[:, rated] - fit.level[rated]
    known = drawn[np.isfinite(drawn).all(axis=1)]
    if len(rated) < 2 or len(known) < 2:
        return fit.draws, method
    common = np.cov(known, rowvar=False)
    spread = np.diag(common)[:, np.newaxis] + np.diag(common) - 2 * common  # variance of each difference
    unvarying = (spread <= SAME) & ~np.eye(len(rated), dtype=bool)
    odd = unvarying.any(axis=1) | np.array([bool(fit.reasons[system]) for system in rated])
    if odd.any():
        covariance = _repeats(settled) * fit.covariance[np.ix_(rated[odd], rated[odd])]
        rng = generator(seed, "rank sets", "normal approximation")
        drawn[:, odd] += rng.multivariate_normal(np.zeros(len(covariance)), covariance, size=len(drawn), method="eigh")
        names = named([fit.systems[system] for system in rated[odd]])
        method = joined(method, f"with the normal approximation for {names}, of which resampling says too little")
    items, pairs = max(fit.n_items, 2), len(rated) * (len(rated) - 1) / 2
    tail = (1 - fit.settings.ci_level) / 2 / pairs
    widened = np.sqrt(items / (items - 1)) * float(student.isf(tail, items - 1) / norm.isf(tail))
    made = fit.draws.copy()
    made[:, rated] = fit.level[rated] + widened * drawn
    return made, joined(method, f"{widened:.3f} times as wide, for {fit.n_items} items")


def _repeats(settled: pd.DataFrame) -> float:
    """Decided matches for each pair of systems on an item that has one; 1 after a consensus."""
    decided = settled[settled["preference"].notna()]
    sides = np.sort(decided[["system_x", "system_y"]].astype(str).to_numpy(), axis=1)
    polls = pd.DataFrame({"item_id": decided["item_id"].to_numpy(), "a": sides[:, 0], "b": sides[:, 1]})
    return len(polls) / max(len(polls.drop_duplicates()), 1)


def _table(
    settled: pd.DataFrame, fit: Strengths, rows: pd.DataFrame, letters: pd.Series, minimum_matches: int
) -> pd.DataFrame:
    """One row a system from the rows of the one shape, and its matches counted."""
    read = Matches.of(settled)
    found = rows[rows["slice"].str.startswith("system=")]
    of = {measure: part.set_index("slice") for measure, part in found.groupby("measure")}
    items = pd.concat([settled.set_index(settled[side].astype(str))["item_id"] for side in ("system_x", "system_y")])
    seen = items.groupby(level=0).nunique()
    lines = []
    for place, system in enumerate(fit.systems):
        won = _wins(read, read.systems.index(system))
        line: dict[str, Any] = {"system": system, "letters": letters.get(system, "")}
        for measure, name in (("rank", "rank"), ("strength_elo", "strength"), ("elo", "elo"), ("win_rate", "win")):
            row = of[measure].loc[f"system={system}"]
            line |= {f"{name}_estimate": row["estimate"], f"{name}_low": row["ci_low"], f"{name}_high": row["ci_high"]}
        line["elo_spread"] = of["elo_order_spread"].loc[f"system={system}"]["estimate"]
        line |= won | {"items": int(seen.get(system, 0)), "few": won["matches"] < minimum_matches}
        line["note"] = _note(fit, place)
        lines.append(line)
    names = {"rank_estimate": "rank", "strength_estimate": "strength_elo", "elo_estimate": "elo"}
    table = pd.DataFrame(lines).rename(columns={**names, "win_estimate": "win_rate"})
    if not lines:
        return pd.DataFrame(columns=COLUMNS)
    return table[COLUMNS].sort_values("rank", kind="stable", na_position="last").reset_index(drop=True)


def _wins(read: Matches, system: int) -> dict[str, int]:
    as_x, as_y = read.x == system, read.y == system
    wins = int((read.score[as_x] == 1).sum() + (read.score[as_y] == 0).sum())
    ties = int((read.score[as_x | as_y] == 0.5).sum())
    matches = int(as_x.sum() + as_y.sum())
    return {
        "wins": wins,
        "losses": matches - wins - ties,
        "ties": ties,
        "matches": matches,
        "undecided": int(read.undecided[system]),
    }


def _note(fit: Strengths, place: int) -> str:
    reason = fit.reasons[place]
    if np.isnan(fit.level[place]):
        return f"undefined: {reason or 'no finite maximum'}"
    return joined(reason, "strength by a prior" if fit.penalised else "")
