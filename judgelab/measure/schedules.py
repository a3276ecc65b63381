"""Which comparison to judge next: complete, balanced and sparse, adaptive, and by merge sort.

A schedule is pure: it names comparisons (:mod:`judgelab.measure.comparisons`) and takes answers. The first two are
lists made before any answer, :class:`Adaptive` asks in batches, :func:`merge_sort` calls a comparator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np

from judgelab.measure.adaptive import PRIOR_SD, Adaptive, penalised
from judgelab.measure.coding import TIE
from judgelab.measure.comparisons import Answer, Comparison, Oracle, check_names, items_of_pairs, oracle_of
from judgelab.measure.resampling import generator

__all__ = [
    "PRIOR_SD",
    "Adaptive",
    "Answer",
    "Comparison",
    "Oracle",
    "balanced_sparse",
    "majority",
    "merge_sort",
    "merge_sort_most",
    "oracle_of",
    "penalised",
    "round_robin",
]


def round_robin(systems: Sequence[str], items: Sequence[str], *, seed: int) -> list[Comparison]:
    """Every pair on every item, in random order.

    Returns
    -------
    list of Comparison
        n (n − 1) / 2 comparisons an item, each once; empty with fewer than two systems. A function of the seed.

    Raises
    ------
    ValueError
        If a system or an item is named twice, or a system is called ``TIE``.
    """
    check_names(systems, items)
    every = [Comparison(item, x, y) for item in items for x, y in combinations(systems, 2)]
    return [every[place] for place in generator(seed, "round_robin").permutation(len(every))]


def balanced_sparse(
    systems: Sequence[str],
    items: Sequence[str],
    *,
    comparisons: int | None = None,
    pairs_per_item: float | None = None,
    seed: int,
) -> list[Comparison]:
    """A balanced design of as many comparisons as can be paid for; each start of it is balanced, too.

    The systems are shuffled on a circle, and all their pairs are dealt round after round so that after each
    comparison no system has met others more than once more often than another: with an even number of systems
    rounds of disjoint pairs (the circle method of tournaments), with an odd number closed walks through all systems
    (Walecki's), every second step of the walk first. n systems are joined after n − 1 comparisons, the fewest that
    can join them. The items are dealt round, so that no item is used more than once more often than another, and no
    pair meets twice on an item.

    Parameters
    ----------
    systems, items : sequences of str
        Distinct names.
    comparisons, pairs_per_item : number
        Size of the design, or its size per item (``round(pairs_per_item · items)``): give one of them; more than
        there are gives all.
    seed : int
        Which systems stand where on the circle, order of rounds and items.

    Returns
    -------
    list of Comparison
        Each at most once; empty with fewer than two systems or without items.

    Raises
    ------
    ValueError
        As :func:`round_robin`; or if not exactly one size is given, or it is negative.

    Notes
    -----
    Rounds after the second are in random order: neighbouring rounds of the circle join the systems into long chains,
    in which the ranks of distant systems are badly known. Source of the rounds: Lucas, *Récréations
    mathématiques* II, 1883, which gives Walecki's walks.

    Examples
    --------
    >>> len(balanced_sparse("abcd", ["i", "j"], pairs_per_item=2, seed=1))
    4
    """
    check_names(systems, items)
    given = [
        size
        for size in (comparisons, None if pairs_per_item is None else pairs_per_item * len(items))
        if size is not None
    ]
    if len(given) != 1 or not given[0] >= 0:
        raise ValueError(f"comparisons is {comparisons}, pairs_per_item {pairs_per_item}; give one, 0 and more")
    rng = generator(seed, "balanced_sparse")
    circle = [systems[place] for place in rng.permutation(len(systems))]
    rounds = _rounds(len(systems))
    order = [*range(min(2, len(rounds))), *(2 + rng.permutation(max(0, len(rounds) - 2)))]
    pairs = [pair for place in order for pair in rounds[place]]
    shuffled = [items[place] for place in rng.permutation(len(items))]
    n_pairs, n_items = len(pairs), len(items)
    # Comparison t is of pair t mod P on item t mod I. After lcm(P, I) both start anew together: the items then move on
    # by one, at a moment when all were used equally often, so that pairs and items meet anew.
    period = int(np.lcm(n_pairs, n_items)) if n_pairs and n_items else 1
    size = min(round(given[0]), n_pairs * n_items)
    made = []
    place_of = {name: place for place, name in enumerate(systems)}
    for t in range(size):
        x, y = sorted((circle[end] for end in pairs[t % n_pairs]), key=place_of.__getitem__)
        made.append(Comparison(shuffled[(t + t // period) % n_items], x, y))
    return made


def _rounds(n: int) -> list[list[tuple[int, int]]]:
    """All pairs of 0 .. n − 1 in rounds; see :func:`balanced_sparse`. The last number is the hub of the circle."""
    size = n - 1  # on the circle
    if n < 2:
        return []
    if n % 2 == 0:
        spokes = [[(size, turn)] for turn in range(size)]
        chords = [[((turn + k) % size, (turn - k) % size) for k in range(1, n // 2)] for turn in range(size)]
        return [spoke + chord for spoke, chord in zip(spokes, chords, strict=True)]
    zigzag = [(k + 1) // 2 * (1 if k % 2 else -1) for k in range(size)]
    walks = [[size, *((turn + step) % size for step in zigzag)] for turn in range(size // 2)]
    # Of a walk's n steps (n is odd) every second, then the one back to the hub, then the others.
    order = [*range(0, n - 1, 2), n - 1, *range(1, n - 1, 2)]
    return [[(walk[k], walk[(k + 1) % n]) for k in order] for walk in walks]


def majority(
    answer: Answer,
    systems: Sequence[str],
    items: Sequence[str],
    *,
    votes: int,
    seed: int,
    held: Iterable[Comparison] | None = None,
) -> Callable[[str, str], str]:
    """A comparator for :func:`merge_sort`: the majority of the answers on ``votes`` random items.

    The items of a pair are the same in whichever order it is given. It stops asking as soon as the rest cannot
    change the result. A tie or a missing answer is a vote for neither; equally many for both, or no item to ask, is a
    ``TIE``.

    Raises
    ------
    ValueError
        If ``votes`` is below 1.
    """
    if votes < 1:
        raise ValueError(f"votes is {votes}; allowed is 1 and more")
    of_pairs = items_of_pairs(systems, items, held)

    def compare(x: str, y: str) -> str:
        pair = (x, y) if (x, y) in of_pairs else (y, x)
        left = of_pairs.get(pair, [])
        drawn = generator(seed, "majority", *pair).permutation(len(left))[:votes]
        lead = 0
        for asked, place in enumerate(drawn):
            if abs(lead) > len(drawn) - asked:
                break
            preference = answer(left[place], *pair)
            lead += (preference == x) - (preference == y)
        return x if lead > 0 else y if lead < 0 else TIE

    return compare


def merge_sort(systems: Sequence[str], compare: Callable[[str, str], str | None]) -> list[str]:
    """The systems, best first, by merging sorted runs of 1, 2, 4, ... systems.

    Parameters
    ----------
    systems : sequence of str
        In the order in which equals stay.
    compare : callable
        ``compare(x, y)`` returns the better one; anything else (``TIE``, None) keeps their order. It may contradict
        itself: no pair is compared twice, and the sort ends after at most :func:`merge_sort_most` comparisons.

    Examples
    --------
    >>> merge_sort("cabd", min)
    ['a', 'b', 'c', 'd']
    """
    runs = [[system] for system in systems]
    while len(runs) > 1:
        pairs = [runs[start : start + 2] for start in range(0, len(runs), 2)]
        runs = [_merged(pair[0], pair[1], compare) if len(pair) == 2 else pair[0] for pair in pairs]
    return runs[0] if runs else []


def _merged(left: list[str], right: list[str], compare: Callable[[str, str], str | None]) -> list[str]:
    made: list[str] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if compare(left[i], right[j]) == right[j]:
            made.append(right[j])
            j += 1
        else:
            made.append(left[i])
            i += 1
    return made + left[i:] + right[j:]


def merge_sort_most(n: int) -> int:
    """The most comparisons that :func:`merge_sort` makes of n systems; below n ⌈log₂ n⌉.

    Examples
    --------
    >>> [merge_sort_most(n) for n in (0, 1, 2, 3, 4, 30)]
    [0, 0, 1, 3, 5, 119]
    """
    runs, most = [1] * n, 0
    while len(runs) > 1:
        most += sum(sum(runs[start : start + 2]) - 1 for start in range(0, len(runs) - 1, 2))
        runs = [sum(runs[start : start + 2]) for start in range(0, len(runs), 2)]
    return most
