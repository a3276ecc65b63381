"""What a reviewer is shown, in which order and on which side: drawn anew for each reviewer, apart from the judges.

Every draw is SHA-256 of the protocol's seed, words of its own, the reviewer and the item (see
:mod:`judgelab.study.randomisation`): it tells nothing of the order in which a judge saw the same answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import pandas as pd

from judgelab.errors import LabelError
from judgelab.study.items import Item, Pair, pairs
from judgelab.study.protocol import Study

__all__ = [
    "KINDS",
    "MOST_REPEATS",
    "Key",
    "Kind",
    "LabelTask",
    "check_reviewer",
    "items_to_label",
    "labelling_order",
    "planned_table",
]

Kind = Literal["training", "label", "repeat"]
Key = tuple[str, str, str, str]  # kind, item_id, system_x, system_y

KINDS: tuple[Kind, ...] = ("training", "label", "repeat")
MOST_REPEATS = 0.5  # of more, not every one finds a place a third of the list after its first showing
LONGEST_NAME = 80
PLANNED = ["reviewer_id", "item_id", "category", "system_x", "system_y", "kind", "number"]


@dataclass(frozen=True)
class LabelTask:
    """One pair of answers for one reviewer.

    Attributes
    ----------
    item_id : str
        The item.
    pair : tuple of str
        system_x and system_y, in the protocol's order.
    shown : tuple of str
        The same two systems: the left one, the right one. Not for the reviewer's eyes.
    kind : {"training", "label", "repeat"}
        Training is no part of the evaluation; a repeat shows a pair of the list again.
    number : int
        The place in the reviewer's list, from 1.
    """

    item_id: str
    pair: Pair
    shown: Pair
    kind: Kind
    number: int

    @property
    def key(self) -> Key:
        """What the task is of, wherever it stands in the list: kind, item_id, system_x, system_y."""
        return (self.kind, self.item_id, *self.pair)


def labelling_order(
    study: Study, items: Sequence[Item], reviewer_id: str, *, training: int, repeats_share: float
) -> list[LabelTask]:
    """The list of one reviewer: training, then every item to label and pair of systems with planted repeats.

    Parameters
    ----------
    study : Study
        The protocol: its seed and its systems.
    items : sequence of Item
        Items of both splits, in any order.
    reviewer_id : str
        The reviewer; see :func:`check_reviewer`.
    training : int
        Development items to train on, 0 or more; all of them where there are fewer. They are the same for every
        reviewer, one pair each.
    repeats_share : float
        Share of the pairs to label that are shown again, 0 to :data:`MOST_REPEATS`; rounded half up, and 0 where
        there is one pair only.

    Returns
    -------
    list of LabelTask
        Numbered from 1. Which of two tasks of kind ``label`` comes first, and on which side an answer stands, depends
        on the seed, the reviewer, and those tasks alone. With L labels and repeats, a repeat stands at least L / 3
        places, and at least two, after the first showing of its pair; its sides are drawn again (and are the same in
        half of all cases). Empty without items.

    Raises
    ------
    LabelError
        If the reviewer has no usable name, or ``training`` or ``repeats_share`` is out of range.
    """
    check_reviewer(reviewer_id)
    if training < 0:
        raise LabelError(f"training is {training}; allowed is 0 and more")
    if not 0 <= repeats_share <= MOST_REPEATS:
        raise LabelError(f"repeats_share is {repeats_share}; allowed is 0 to {MOST_REPEATS:g}")
    every = pairs(study.system_names)
    first = [
        _task(study.random_seed, reviewer_id, item_id, pair, "training")
        for item_id, pair in _training(study.random_seed, items, every, training)
    ]
    labels = [
        _task(study.random_seed, reviewer_id, item.item_id, pair, "label")
        for item in items_to_label(study, items)
        for pair in every
    ]
    first, labels = (_in_order(study.random_seed, reviewer_id, tasks) for tasks in (first, labels))
    listed = first + _with_repeats(study.random_seed, reviewer_id, labels, repeats_share)
    return [replace(task, number=number) for number, task in enumerate(listed, start=1)]


def items_to_label(study: Study, items: Sequence[Item]) -> list[Item]:
    """The items whose labels count: those of the evaluation, and where the protocol wants it of the development split.

    Of the latter, those that reviewers train on are left out: somebody has told what was expected.
    """
    labelling = study.human_review.labelling
    if labelling is None or not labelling.label_development:
        return [item for item in items if item.split == "evaluation"]
    trained = _training(study.random_seed, items, pairs(study.system_names), labelling.training)
    told = {item_id for item_id, _ in trained}
    return [item for item in items if item.item_id not in told]


def planned_table(orders: Mapping[str, Sequence[LabelTask]], items: Sequence[Item]) -> pd.DataFrame:
    """The lists of several reviewers as a table, without the sides.

    Parameters
    ----------
    orders
        The list of each reviewer, by name.
    items
        The items, for their categories.

    Returns
    -------
    DataFrame
        One row a reviewer and task: reviewer_id, item_id, category, system_x, system_y, kind, number.
    """
    categories = {item.item_id: item.category for item in items}
    rows = [
        (name, task.item_id, categories[task.item_id], *task.pair, task.kind, task.number)
        for name, order in orders.items()
        for task in order
    ]
    table = pd.DataFrame(rows, columns=PLANNED)
    return table.astype(dict.fromkeys(PLANNED[:-1], "str") | {"number": "int64"})


def check_reviewer(reviewer_id: str) -> None:
    """A reviewer's name is also a file's: letters, digits, ``_ . -``, and no way out of its folder.

    Raises
    ------
    LabelError
        If it is not.
    """
    plain = reviewer_id.isascii() and 0 < len(reviewer_id) <= LONGEST_NAME and reviewer_id[0].isalnum()
    if not plain or not all(char.isalnum() or char in "_.-" for char in reviewer_id):
        raise LabelError(
            f"reviewer {reviewer_id[:LONGEST_NAME]!r}: allowed are up to {LONGEST_NAME} letters (a to z), digits, "
            "'_', '.', '-', starting with a letter or digit"
        )


def _training(seed: int, items: Sequence[Item], every: Sequence[Pair], most: int) -> list[tuple[str, Pair]]:
    """The development items that every reviewer trains on, each with one of its pairs."""
    development = [item.item_id for item in items if item.split == "development"]
    drawn = sorted(development, key=lambda item_id: _digest(seed, "labelling training", item_id))[:most]
    return [(name, every[_number(seed, "labelling training pair", name) % len(every)]) for name in drawn]


def _task(seed: int, reviewer_id: str, item_id: str, pair: Pair, kind: Kind) -> LabelTask:
    """A task with its sides, by a fair coin of its own; which system is named first does not matter."""
    left, right = sorted(pair)
    if _number(seed, "labelling side", reviewer_id, kind, item_id, left, right) & 1:
        left, right = right, left
    return LabelTask(item_id, pair, (left, right), kind, 0)


def _in_order(seed: int, reviewer_id: str, tasks: Sequence[LabelTask]) -> list[LabelTask]:
    words = "labelling order"
    return sorted(
        tasks, key=lambda task: _digest(seed, words, reviewer_id, task.kind, task.item_id, *sorted(task.pair))
    )


def _with_repeats(seed: int, reviewer_id: str, labels: Sequence[LabelTask], share: float) -> list[LabelTask]:
    """The labels in their order, with repeats in places drawn from those that are far enough behind.

    With d the distance, the k-th repeat (from 1) stands at place d + k − 1 or later (from 0), so that k labels at
    least stand d or more places before it, and k − 1 of them have been repeated: there is always one to repeat.
    """
    count = _rounded(len(labels), share) if len(labels) > 1 else 0
    length = len(labels) + count
    distance = max(2, -(-length // 3))

    def by_lot(place: int) -> bytes:
        return _digest(seed, "labelling repeat place", reviewer_id, place)

    lots = {
        task.key: _digest(seed, "labelling repeat", reviewer_id, task.item_id, *sorted(task.pair)) for task in labels
    }
    places = set(sorted(range(distance, length), key=by_lot)[:count])
    listed: list[LabelTask] = []
    waiting = iter(labels)
    repeated: set[Key] = set()
    for place in range(length):
        if place not in places:
            listed.append(next(waiting))
            continue
        free = [task for task in listed[: place - distance + 1] if task.kind == "label" and task.key not in repeated]
        chosen = min(free, key=lambda task: lots[task.key])
        repeated.add(chosen.key)
        listed.append(_task(seed, reviewer_id, chosen.item_id, chosen.pair, "repeat"))
    return listed


def _rounded(count: int, share: float) -> int:
    """A share of a count, half up: of the decimal that was written, not of its binary neighbour."""
    return int(count * Fraction(str(share)) + Fraction(1, 2))


def _number(*parts: Any) -> int:
    return int.from_bytes(_digest(*parts), "big")


def _digest(*parts: Any) -> bytes:
    """SHA-256 of the parts, kept apart from each other by JSON."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).digest()
