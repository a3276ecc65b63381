"""Rankings of systems from preferences between two: Elo in the order of the matches, and Bradley and Terry's model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from judgelab.measure.coding import excluded_note
from judgelab.measure.comparability import comparable, named, part_note, reasons
from judgelab.measure.elo_options import EloOptions
from judgelab.measure.estimates import Place
from judgelab.measure.matches import Matches
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import frame, joined
from judgelab.measure.strengths import groups, strengths
from judgelab.measure.views import Flags

__all__ = ["Matches", "bradley_terry", "by_system", "elo", "groups", "strengths"]

NAN = float("nan")


def elo(
    matches: pd.DataFrame, *, initial: float = 1000.0, k: float = 4.0, base: float = 10.0, scale: float = 400.0
) -> pd.DataFrame:
    """Elo ratings, updated match by match in the order of the table.

    Everybody starts at ``initial``. A match of x and y moves x by k w (s − e) and y by the opposite, where s is what x
    got (1, 1/2, 0), w the weight of the match, and e what x was expected to get from the ratings before it::

        e = 1 / (1 + base^((R_y − R_x) / scale))

    Parameters
    ----------
    matches : DataFrame
        One row a match: ``system_x``, ``system_y``, ``preference`` (one of the two, ``TIE``, or missing: no match),
        optionally ``weight`` (above 0).
    initial, k, base, scale : float
        Starting rating; largest change by one match; ``scale`` points of difference are odds of ``base`` to 1.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`: ``elo`` with the slice ``system=<s>``, best first. Higher is
        better; the mean over the systems stays ``initial``. ``n_used`` counts the system's matches, ``n_excluded``
        those without a preference. A system without a match is undefined. No interval.

    Raises
    ------
    ValueError
        See :meth:`Matches.of`; or if an option is out of range.

    Notes
    -----
    The order of the matches changes the ratings, and later matches count more: on judgments that were all made of
    finished systems, :func:`bradley_terry` uses the same data without that. Where no chain of matches joins two
    groups of systems, their ratings share a start and nothing else, which the note says.

    Source: Elo, *The Rating of Chessplayers, Past and Present*, 1978 (whose table follows the normal
    curve; the logistic one is today's use). Checked against ``evalica.elo`` and the golden ratings of LLMFAO's crowd.

    Examples
    --------
    Two equal systems: the first to win takes 4 · (1 − 1/2) points from the other.

    >>> table = pd.DataFrame({"system_x": ["a"], "system_y": ["b"], "preference": ["b"]})
    >>> by_system(elo(table)).to_dict()
    {'b': 1002.0, 'a': 998.0}
    """
    options = EloOptions(initial, k, base, scale)
    read = Matches.of(matches)
    ratings = [float(initial)] * len(read.systems)
    rows = (column.tolist() for column in (read.x, read.y, read.score, read.weight))
    for x, y, score, weight in zip(*rows, strict=True):
        expected = _expected(ratings[x], ratings[y], base, scale)
        change = k * weight * (score - expected)
        ratings[x] += change
        ratings[y] -= change
    estimates = np.where(read.played > 0, ratings, NAN)
    notes = _apart(read)
    method = f"Elo in the order of the matches, {options.method}"
    return _rows("elo", read, estimates, read.played, read.undecided, notes, method)


def _expected(own: float, other: float, base: float, scale: float) -> float:
    """1 / (1 + base^((other − own) / scale)), without overflow."""
    exponent = (other - own) / scale * float(np.log(base))
    return 1 / (1 + float(np.exp(min(exponent, 700.0))))


def _apart(read: Matches) -> list[str]:
    """What must be said of each system whose matches do not join it to all the others."""
    n_groups, group = connected_components(read.wins + read.wins.T, directed=False)
    notes = []
    for system, played in enumerate(read.played):
        others = [name for name, of in zip(read.systems, group, strict=True) if of != group[system]]
        apart = f"no chain of matches joins it to {named(others)}: not comparable with them"
        notes.append("undefined: no match" if not played else apart if n_groups > 1 else "")
    return notes


def bradley_terry(matches: pd.DataFrame) -> pd.DataFrame:
    """Strengths of systems under the model of Bradley and Terry, where they exist.

    The model: i wins against j with probability πᵢ / (πᵢ + πⱼ). A tie counts as half a win of each. The strengths
    maximise the likelihood and sum to 1; the order of the matches does not matter.

    Finite strengths exist, and only one set of them, if every system has won (or tied) against every other directly
    or over a chain of others (Ford, 1957): no split of the systems into two parts leaves one part without a win
    against the other. Otherwise the likelihood grows for ever as an undefeated system's strength grows, and whatever
    number a program prints is that of its last step. Here the largest group within which strengths exist is
    estimated from the matches inside it; a system outside is undefined, and the note says why: undefeated, winless,
    in a part that is, or joined to the group by no match. If the largest group is not the only one of its size, or
    has one system, all are undefined.

    Parameters
    ----------
    matches : DataFrame
        See :func:`elo`; a row of weight w counts as w matches.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`: ``bradley_terry`` with the slice ``system=<s>``, best first,
        the undefined ones last. Each in (0, 1), sum 1. ``n_used`` counts the system's matches that were used,
        ``n_excluded`` those without a preference or with systems outside the group. No interval.

    Raises
    ------
    ValueError
        See :meth:`Matches.of`.

    Notes
    -----
    Fitted by Newton's method on the log strengths to 1e-12. Source: Bradley and Terry, "Rank analysis of incomplete
    block designs: I", 1952; existence: Ford, "Solution of a ranking problem from binary comparisons", 1957, and
    Hunter, "MM algorithms for generalized Bradley-Terry models", 2004, assumption 1. Checked against
    ``evalica.bradley_terry`` run to convergence (its scores have geometric mean 1) and the golden scores of LLMFAO's
    crowd (sum 1).

    Examples
    --------
    Won 3 of 4, so that the odds are 3 to 1; c never lost.

    >>> table = pd.DataFrame({"system_x": list("aaaac"), "system_y": list("bbbba"), "preference": list("aaabc")})
    >>> ranking = bradley_terry(table)
    >>> by_system(ranking).round(12).to_dict()
    {'a': 0.75, 'b': 0.25, 'c': nan}
    >>> ranking["note"].iloc[2]
    'undefined: undefeated in its 1 match: its strength has no upper bound'
    """
    read = Matches.of(matches)
    wins = read.wins
    group, rated = comparable(wins)
    estimates = np.full(len(read.systems), NAN)
    estimates[rated] = strengths(wins[np.ix_(rated, rated)])
    inside = rated[read.x] & rated[read.y]
    used = np.bincount(np.concatenate([read.x[inside], read.y[inside]]), minlength=len(read.systems))
    notes = _notes(read, wins, group, rated)
    method = "Bradley-Terry, maximum likelihood, ties as half a win, sum 1"
    excluded = read.undecided + read.played - used
    return _rows("bradley_terry", read, estimates, used, excluded, notes, method)


def _notes(read: Matches, wins: Floats, group: Ints, rated: Flags) -> list[str]:
    """Why a system has no strength; for the others, that only a part of the systems could be compared."""
    part = part_note(read.systems, rated)
    return [f"undefined: {why}" if why else part for why in reasons(read, wins, group, rated)]


def _rows(
    measure: str, read: Matches, estimates: Floats, used: Ints, excluded: Ints, notes: list[str], method: str
) -> pd.DataFrame:
    """One row a system, best first, undefined last, equals in order of appearance."""

    def made() -> Iterator[dict[str, Any]]:
        for system in np.argsort(-np.asarray(estimates), kind="stable"):
            missing = int(read.undecided[system])
            total = missing + int(read.played[system])
            left_out = excluded_note(total, "matches", without_preference=missing)
            note = notes[system]
            if np.isnan(estimates[system]) and not note:
                note = "undefined: the strengths lie too far apart to be found"
            yield Place(slice_=f"system={read.systems[system]}").row(
                measure,
                float(estimates[system]),
                n_used=int(used[system]),
                n_excluded=int(excluded[system]),
                method=method,
                note=joined(note, left_out),
            )

    return frame(made())


def by_system(ranking: pd.DataFrame) -> pd.Series:
    """The estimates of a ranking by the name of the system, in its order."""
    names = ranking["slice"].str.removeprefix("system=").to_numpy(dtype=object)
    return pd.Series(ranking["estimate"].to_numpy(), index=pd.Index(names, dtype=object), name="score")
