"""One run of a schedule of comparisons: who is asked in which order, and the ratings after so many comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from judgelab.measure.adaptive import Adaptive, penalised
from judgelab.measure.coding import TIE
from judgelab.measure.comparisons import Comparison, Oracle
from judgelab.measure.resampling import Floats, generator
from judgelab.measure.schedules import balanced_sparse, majority, merge_sort, merge_sort_most, round_robin

__all__ = ["SCHEDULES", "Schedule", "ratings_among", "ratings_at", "wins_among"]

NAN = float("nan")
Schedule = Literal["round_robin", "balanced_sparse", "adaptive", "merge_sort"]
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)


def ratings_at(oracle: Oracle, schedule: Schedule, steps: Sequence[int], *, seed: int) -> tuple[Floats, Floats]:
    """Run one schedule once and rate the systems after each number of comparisons.

    Parameters
    ----------
    oracle : Oracle
        Who answers.
    schedule : str
        One of :data:`SCHEDULES`.
    steps : sequence of int
        Numbers of comparisons, ascending; at most as many as the oracle holds.
    seed : int
        Random numbers of the run.

    Returns
    -------
    ratings : array of shape (len(steps), systems)
        Higher is better. NaN where merge sort cannot be sure to finish.
    spent : array of shape (len(steps),)
        Comparisons that were asked.
    """
    if schedule == "merge_sort":
        most = max(1, merge_sort_most(len(oracle.systems)))
        votes = [min(step // most, len(oracle.items)) for step in steps]
        sorts = {number: _sorted(oracle, number, seed) for number in dict.fromkeys(votes)}
        return np.array([sorts[number][0] for number in votes]), np.array([float(sorts[number][1]) for number in votes])
    if schedule == "adaptive":
        return _adaptive(oracle, steps, seed), np.array(steps, dtype=np.float64)
    asked = _order(oracle, schedule, seed)
    wins, ratings, level = np.zeros((len(oracle.systems),) * 2), [], None
    for start, step in zip([0, *steps[:-1]], steps, strict=True):
        wins += wins_among(oracle, asked[start:step])
        level = penalised(wins, start=level)[0]
        ratings.append(level)
    return np.array(ratings), np.array(steps, dtype=np.float64)


def _order(oracle: Oracle, schedule: Schedule, seed: int) -> list[Comparison]:
    """All comparisons that the oracle holds, in the order of a schedule that does not look at the answers.

    Where every item has every pair, these are the schedule's own; else what the table holds is put in order: by lot, or
    always the comparison whose two systems were met least, by lot among equals.
    """
    systems, items = oracle.systems, oracle.items
    if len(oracle.comparisons) == len(systems) * (len(systems) - 1) // 2 * len(items):
        if schedule == "round_robin":
            return round_robin(systems, items, seed=seed)
        full = len(oracle.comparisons)
        return balanced_sparse(systems, items, comparisons=full, seed=seed)
    drawn = generator(seed, "held", schedule).permutation(len(oracle.comparisons))
    held = [oracle.comparisons[place] for place in drawn]
    if schedule == "round_robin":
        return held
    number = {name: place for place, name in enumerate(systems)}
    x, y = (np.array([number[getattr(one, side)] for one in held], dtype=np.int64) for side in ("x", "y"))
    met, left, order = np.zeros(len(systems)), np.ones(len(held), dtype=bool), []
    for _ in held:
        chosen = int(np.argmin(np.where(left, met[x] + met[y], np.inf)))
        left[chosen] = False
        met[[x[chosen], y[chosen]]] += 1
        order.append(held[chosen])
    return order


def _adaptive(oracle: Oracle, steps: Sequence[int], seed: int) -> Floats:
    schedule = Adaptive(oracle.systems, oracle.items, seed=seed, held=oracle.comparisons)
    asked, ratings = 0, []
    for step in steps:
        while asked < step and (batch := schedule.ask(step - asked)):
            for one in batch:
                schedule.tell(one, oracle(*one))
            asked += len(batch)
        ratings.append(schedule.ratings())
    return np.array(ratings)


def _sorted(oracle: Oracle, votes: int, seed: int) -> tuple[Floats, int]:
    """Merge sort with the majority of so many items, from a random start; NaN without votes."""
    n = len(oracle.systems)
    if votes < 1:
        return np.full(n, NAN), 0
    spent = 0

    def counted(item: str, x: str, y: str) -> str | None:
        nonlocal spent
        spent += 1
        return oracle(item, x, y)

    systems, items = oracle.systems, oracle.items
    complete = len(oracle.comparisons) == n * (n - 1) // 2 * len(items)
    held = None if complete else oracle.comparisons
    compare = majority(counted, systems, items, votes=votes, seed=seed, held=held)
    start = generator(seed, "merge_sort").permutation(n)
    order = merge_sort([systems[place] for place in start], compare)
    place = {name: number for number, name in enumerate(order)}
    return np.array([-float(place[name]) for name in systems]), spent


def wins_among(oracle: Oracle, asked: Sequence[Comparison]) -> Floats:
    """Wins of the row over the column, shape (systems, systems), among what was asked; a tie is half a win of each.

    A comparison without a usable verdict counts for nothing.
    """
    place = {name: number for number, name in enumerate(oracle.systems)}
    wins = np.zeros((len(place), len(place)))
    for item, x, y in asked:
        preference = oracle(item, x, y)
        if preference is not None:
            score = 0.5 if preference == TIE else float(preference == x)
            wins[place[x], place[y]] += score
            wins[place[y], place[x]] += 1 - score
    return wins


def ratings_among(oracle: Oracle, asked: Sequence[Comparison]) -> Floats:
    """The ratings from what was asked, shape (systems,): see :func:`~judgelab.measure.adaptive.penalised`."""
    return penalised(wins_among(oracle, asked))[0]
