"""Which systems can be compared: the largest group within which strengths exist, and why the others are outside."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from judgelab.measure.matches import Matches
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.strengths import groups
from judgelab.measure.views import Flags

__all__ = ["comparable", "named", "part_note", "reasons"]

NAMED = 5  # systems named in a note


def comparable(wins: Floats) -> tuple[Ints, Flags]:
    """The group of each system (see :func:`~judgelab.measure.strengths.groups`) and who is in the largest.

    Parameters
    ----------
    wins : array of shape (systems, systems)
        Wins of the row over the column, ties as half.

    Returns
    -------
    group : array of int, shape (systems,)
    rated : array of bool, shape (systems,)
        Nobody, if the largest group is not the only one of its size or has one system.

    Examples
    --------
    a and b beat each other, c never lost.

    >>> comparable(np.array([[0.0, 3, 0], [1, 0, 0], [1, 0, 0]]))[1].tolist()
    [True, True, False]
    """
    group = groups(wins)
    sizes = np.bincount(group)
    rated = np.zeros(len(wins), dtype=bool)
    if len(sizes) and sizes.max() > 1 and (sizes == sizes.max()).sum() == 1:
        rated = group == int(sizes.argmax())
    return group, rated


def reasons(read: Matches, wins: Floats, group: Ints, rated: Flags) -> list[str]:
    """Why each system is outside the group that has strengths; empty for those in it.

    Parameters
    ----------
    read : Matches
        The matches.
    wins, group, rated : arrays
        See :func:`comparable`.
    """
    joined_to = connected_components(wins + wins.T, directed=False)[1] if len(wins) else group
    return ["" if rated[own] else _reason(own, read, wins, group, rated, joined_to) for own in range(len(wins))]


def part_note(systems: tuple[str, ...], rated: Flags) -> str:
    """That only a part of the systems has strengths; empty if all have."""
    outside = np.array(systems, dtype=object)[~rated]
    return f"strengths of {int(rated.sum())} of {len(rated)} systems; undefined for {named(outside)}" * bool(
        len(outside)
    )


def named(names: Any) -> str:
    """The first five names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(str(name) for name in list(names)[:NAMED]) + more


def _reason(system: int, read: Matches, wins: Floats, group: Ints, rated: Any, joined_to: Ints) -> str:
    """Why one system is outside."""
    own, played = group == group[system], int(read.played[system])
    if not played:
        return "no match"
    counted = "1 match" if played == 1 else f"{played} matches"
    if wins[:, system].sum() == 0:
        return f"undefeated in its {counted}: its strength has no upper bound"
    if wins[system].sum() == 0:
        return f"winless in its {counted}: its strength has no lower bound"
    with_it = f"with {named(np.array(read.systems, dtype=object)[own & (np.arange(len(own)) != system)])} "
    with_it = with_it if own.sum() > 1 else ""
    if rated.any() and not (joined_to[rated] == joined_to[system]).any():
        return f"no chain of matches joins it {with_it}to the systems that have strengths"
    if wins[np.ix_(~own, own)].sum() + wins[np.ix_(own, ~own)].sum() == 0:
        return f"no chain of matches joins it {with_it}to the others"
    if wins[np.ix_(~own, own)].sum() == 0:
        return f"{with_it}undefeated by all the others".strip()
    if wins[np.ix_(own, ~own)].sum() == 0:
        return f"{with_it}winless against all the others".strip()
    return f"no chain of wins leads from it {with_it}to the others and back"
