"""Comparisons of two systems on one item, and who answers them.

A *comparison* is one item and one unordered pair of systems. What it costs in calls (two where both presentations are
judged, times the judges) is the caller's matter. An answer comes from an *oracle*, ``answer(item, x, y)``, which
returns one of the two systems, ``TIE``, or None where there is no usable verdict: a look-up in a finished table
(:func:`oracle_of`) or a judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import pandas as pd

from judgelab.measure.coding import TIE, check_columns
from judgelab.measure.matches import Matches

__all__ = ["Answer", "Comparison", "Oracle", "check_names", "items_of_pairs", "oracle_of"]

Answer = Callable[[str, str, str], str | None]


class Comparison(NamedTuple):
    """One item and one pair of systems, in the order in which the systems were given."""

    item: str
    x: str
    y: str


class Oracle:
    """Answers of a finished table: callable as ``answer(item, x, y)`` in either order of the two systems.

    Attributes
    ----------
    systems, items : tuples of str
        In order of appearance.
    comparisons : tuple of Comparison
        What can be asked, in order of appearance.

    Raises
    ------
    KeyError
        When called with an item and a pair that the table does not hold.
    """

    def __init__(self, answers: dict[Comparison, str | None]) -> None:
        self._answers = answers
        self.comparisons = tuple(answers)
        self.systems = tuple(dict.fromkeys(name for _, x, y in answers for name in (x, y)))
        self.items = tuple(dict.fromkeys(item for item, _, _ in answers))

    def __call__(self, item: str, x: str, y: str) -> str | None:
        for key in (Comparison(item, x, y), Comparison(item, y, x)):
            if key in self._answers:
                return self._answers[key]
        raise KeyError(f"no match of {x} and {y} on item {item}: it cannot be asked")


def oracle_of(matches: pd.DataFrame) -> Oracle:
    """The oracle of a table of matches: the panel's result on each item and pair.

    Parameters
    ----------
    matches : DataFrame
        ``item_id``, ``system_x``, ``system_y``, ``preference``, optionally ``weight``; one row a match.

    Returns
    -------
    Oracle
        For each item and pair the answer with the greatest weight among the two systems and ``TIE``, ``TIE`` where two
        share the greatest; None where no row has a preference.

    Raises
    ------
    ValueError
        See :meth:`judgelab.measure.matches.Matches.of`; or if ``item_id`` is not there or missing in a row.

    Examples
    --------
    >>> table = pd.DataFrame({"item_id": ["i", "i", "j"], "system_x": list("aba"), "system_y": list("bab"),
    ...                       "preference": ["a", "b", "b"]})
    >>> answer = oracle_of(table)
    >>> answer("i", "a", "b"), answer("j", "b", "a")
    ('TIE', 'b')
    """
    check_columns(matches, ["item_id"], "matches")
    Matches.of(matches)
    if matches["item_id"].isna().any():
        raise ValueError(f"matches: {int(matches['item_id'].isna().sum())} of {len(matches)} rows have no item_id")
    weights = matches["weight"] if "weight" in matches else pd.Series(1.0, index=matches.index)
    columns = (matches[name].tolist() for name in ("item_id", "system_x", "system_y", "preference"))
    votes: dict[Comparison, Counter[str]] = {}
    for item, x, y, preference, weight in zip(*columns, weights.tolist(), strict=True):
        swapped = Comparison(str(item), str(y), str(x))
        key = swapped if swapped in votes else Comparison(str(item), str(x), str(y))
        counted = votes.setdefault(key, Counter())
        if not pd.isna(preference):
            counted[str(preference)] += weight
    return Oracle({key: _most(counted) for key, counted in votes.items()})


def _most(counted: Counter[str]) -> str | None:
    """The answer with most votes, TIE where two share them, None without votes."""
    best = [name for name, votes in counted.items() if votes == max(counted.values())]
    return None if not best else best[0] if len(best) == 1 else TIE


def check_names(systems: Sequence[str], items: Iterable[str]) -> None:
    """Refuse systems or items that are named twice, and a system called ``TIE``.

    Raises
    ------
    ValueError
        Naming the first such.
    """
    for what, names in (("systems", list(systems)), ("items", list(items))):
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ValueError(f"{what}: {twice[0]!r} is named twice")
    if TIE in systems:
        raise ValueError(f"systems: none can be called {TIE}")


def items_of_pairs(
    systems: Sequence[str], items: Iterable[str], held: Iterable[Comparison] | None
) -> dict[tuple[str, str], list[str]]:
    """The items on which each pair can be asked: every item, or those of ``held``; fresh lists.

    The two of a pair stand in the order of ``systems``.
    """
    if held is None:
        every = list(items)
        return {pair: every.copy() for pair in combinations(systems, 2)}
    place = {name: number for number, name in enumerate(systems)}
    found: dict[tuple[str, str], list[str]] = {}
    for item, x, y in held:
        found.setdefault((x, y) if place[x] < place[y] else (y, x), []).append(item)
    return found
