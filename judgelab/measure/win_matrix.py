"""Who beats whom, and how often: win rates of every system against every other and against all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import excluded_note
from judgelab.measure.estimates import Place, Settings, rate_row
from judgelab.measure.polls import Polls
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import frame, joined

__all__ = ["win_matrix", "win_rates"]

NAN = float("nan")
SCORES = np.array([NAN, 1.0, 0.0, 0.5])  # what x gets for NOBODY, X, Y, TIED
COLUMNS = (
    "system",
    "opponent",
    "wins",
    "losses",
    "ties",
    "matches",
    "win_rate",
    "ci_low",
    "ci_high",
    "ci_level",
    "undecided",
    "items",
    "method",
    "note",
)


def win_matrix(
    matches: pd.DataFrame, *, ci_level: float, resamples: int, seed: int, judge: str = "panel"
) -> pd.DataFrame:
    """How often each system beats each other one.

    Parameters
    ----------
    matches : DataFrame
        One row a match: ``item_id``, ``system_x``, ``system_y``, ``preference`` (one of the two, ``TIE``, or missing:
        undecided). Verdicts of several judges or presentations are matches of their own; one a pair and item is what
        :func:`judgelab.measure.consensus.consensus` gives. Further: :class:`judgelab.measure.polls.Polls`.
    ci_level, resamples, seed
        See :class:`judgelab.measure.estimates.Settings`.
    judge : str
        Name of the judge or panel; the random numbers depend on it.

    Returns
    -------
    DataFrame
        One row an ordered pair of systems: ``system``, ``opponent``; ``wins``, ``losses``, ``ties`` and their sum
        ``matches``; ``win_rate`` = (wins + ties / 2) / matches, in [0, 1]; ``ci_low``, ``ci_high``, ``ci_level``;
        ``undecided`` (matches without a preference); ``items`` with a decided match; ``method``; ``note``. Systems in
        order of their overall win rate, equals by name, those without a match last; opponents likewise. Two systems
        without a decided match have NaN, and the note says why. The rate and interval of (b, a) mirror those of
        (a, b).

    Raises
    ------
    ValueError
        See :meth:`judgelab.measure.polls.Polls.of`.

    Notes
    -----
    Interval: Wilson's where each item has one match of the two and none is tied, otherwise the percentile bootstrap
    over the items on which they met; see :func:`judgelab.measure.estimates.rate_row`.

    Examples
    --------
    >>> table = pd.DataFrame({"item_id": [1, 2, 3], "system_x": "a", "system_y": "b", "preference": ["a", "b", "b"]})
    >>> matrix = win_matrix(table, ci_level=0.95, resamples=100, seed=1)
    >>> matrix[["system", "wins", "matches"]].values.tolist()
    [['b', 2, 3], ['a', 1, 3]]
    """
    settings = Settings(ci_level, resamples, seed)
    polls = Polls.of(matches)
    met: dict[tuple[str, str], Ints] = {}
    pairs = polls.pair[polls.poll]
    order = np.argsort(pairs, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(pairs[order])) + 1) if len(order) else []:
        first = polls.head.iloc[polls.poll[rows[0]]]
        met[str(first["system_x"]), str(first["system_y"])] = rows
    names = _best_first(polls)
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for pair in combinations(sorted(names), 2):  # by name, so that the order of the table changes no interval
        turned = pair[::-1] in met
        rows = met.get(pair[::-1] if turned else pair, np.zeros(0, dtype=np.int64))
        lines[pair], lines[pair[::-1]] = _both(pair, polls, rows, turned, settings, judge)
    ordered = [lines[a, b] for a in names for b in names if a != b]
    table = pd.DataFrame(ordered, columns=list(COLUMNS))
    counts = ["wins", "losses", "ties", "matches", "undecided", "items"]
    rates = ["win_rate", "ci_low", "ci_high", "ci_level"]
    return table.astype(dict.fromkeys(counts, np.int64) | dict.fromkeys(rates, np.float64))


def _both(
    pair: tuple[str, str], polls: Polls, rows: Ints, turned: bool, settings: Settings, judge: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows of (a, b) and (b, a); ``turned`` if b is the polls' x."""
    scores = SCORES[polls.side[rows]]
    scores = 1 - scores if turned else scores
    items = polls.item[polls.poll[rows]]
    place = Place(judge, "pairwise", "both", f"pair={pair[0]}|{pair[1]}")
    rate = rate_row("win_rate", place, items, scores, settings=settings)
    wins, losses, ties = (int((scores == score).sum()) for score in (1.0, 0.0, 0.5))
    undecided = len(scores) - wins - losses - ties
    note = rate["note"]
    if wins + losses + ties == 0:
        never = "the two never met" if undecided == 0 else f"none of their {undecided} matches was decided"
        note = f"undefined: {never}"
    low, high, estimate = rate["ci_low"], rate["ci_high"], rate["estimate"]
    common = {
        "ties": ties,
        "matches": wins + losses + ties,
        "ci_level": settings.ci_level,
        "undecided": undecided,
        "items": rate["n_used"],
        "method": rate["method"],
        "note": note,
    }
    own = {"wins": wins, "losses": losses, "win_rate": estimate, "ci_low": low, "ci_high": high}
    other = {"wins": losses, "losses": wins, "win_rate": 1 - estimate, "ci_low": 1 - high, "ci_high": 1 - low}
    return (
        {"system": pair[0], "opponent": pair[1]} | own | common,
        {"system": pair[1], "opponent": pair[0]} | other | common,
    )


def _by_system(polls: Polls) -> dict[str, tuple[Ints, Floats]]:
    """Item and score of each system's matches; NaN where there is no preference."""
    scores, items = SCORES[polls.side], polls.item[polls.poll]
    x, y = (polls.head[name].astype(str).to_numpy(dtype=object)[polls.poll] for name in ("system_x", "system_y"))
    codes, names = pd.factorize(np.concatenate([x, y]))
    order = np.argsort(codes, kind="stable")
    both = np.concatenate([items, items])[order], np.concatenate([scores, 1 - scores])[order]
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    split = (np.split(column, ends[:-1]) for column in both)
    return {str(name): (own, score) for name, own, score in zip(names, *split, strict=True)} if len(names) else {}


def _best_first(polls: Polls) -> list[str]:
    """Systems by win rate, equals by name, those without a decided match last."""

    def rank(name: str) -> tuple[float, str]:
        scores = of[name][1]
        decided = scores[~np.isnan(scores)]
        return (-float(decided.mean()) if len(decided) else 1.0), name

    of = _by_system(polls)
    return sorted(of, key=rank)


def win_rates(
    matches: pd.DataFrame, *, ci_level: float, resamples: int, seed: int, judge: str = "panel"
) -> pd.DataFrame:
    """How often each system wins, over all its matches.

    Parameters
    ----------
    matches, ci_level, resamples, seed, judge
        See :func:`win_matrix`.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` with the slice ``system=<s>``, each in [0, 1], best first, equals
        by name, those without a match last:

        * ``win_rate``: (wins + ties / 2) / decided matches. The numerator is missing where it is not whole; the
          method has the counts;
        * ``tie_rate``: ties / decided matches.

        Bootstrap over the items of the system's matches (Wilson where each item has one and none is tied). Undefined
        for a system without a decided match.

    Raises
    ------
    ValueError
        See :meth:`judgelab.measure.polls.Polls.of`.

    Notes
    -----
    Where systems met different opponents, their rates are not comparable: that is what a model such as
    :func:`judgelab.measure.ranking.bradley_terry` is for.

    Examples
    --------
    >>> table = pd.DataFrame({"item_id": [1, 2], "system_x": "a", "system_y": "b", "preference": ["a", "TIE"]})
    >>> rates = win_rates(table, ci_level=0.95, resamples=100, seed=1)
    >>> rates.loc[rates["measure"] == "win_rate", ["slice", "estimate"]].values.tolist()
    [['system=a', 0.75], ['system=b', 0.25]]
    """
    settings = Settings(ci_level, resamples, seed)
    polls = Polls.of(matches)
    of = _by_system(polls)

    def made() -> Iterator[dict[str, Any]]:
        for name in _best_first(polls):
            items, scores = of[name]
            place = Place(judge, "pairwise", "both", f"system={name}")
            missing = int(np.isnan(scores).sum())
            note = excluded_note(len(scores), "matches", without_preference=missing)
            wins, ties = int((scores == 1).sum()), int((scores == 0.5).sum())
            line = rate_row("win_rate", place, items, scores, settings=settings, note=note)
            if ties:
                how = f"({wins} wins + {ties} ties / 2) / {len(scores) - missing} matches"
                line["method"] = joined(how, line["method"])
                line["numerator"] = wins + ties // 2 if ties % 2 == 0 else None
            yield line
            tied = np.where(np.isnan(scores), NAN, (scores == 0.5).astype(np.float64))
            yield rate_row("tie_rate", place, items, tied, settings=settings, note=note)

    return frame(made())
