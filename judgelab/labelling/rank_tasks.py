"""What a reviewer puts in order: all answers of an item at once, in a sequence drawn anew for each reviewer and task.

Every draw is SHA-256 of the protocol's seed, words of its own, the reviewer and the item: it tells nothing of the
order in which a judge saw the same answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from judgelab.errors import LabelError
from judgelab.labelling.tasks import Key, Kind, LabelTask, labelling_order, planned_table
from judgelab.study.items import Item, Pair
from judgelab.study.protocol import MOST_RANKED, Study

__all__ = ["NO_PAIR", "RankTask", "planned_rankings", "ranking_order"]

NO_PAIR: Pair = ("", "")  # where tables of tasks name a pair, and the task is of all answers
ONE_PAIR = ("all answers", "in order")


@dataclass(frozen=True)
class RankTask:
    """All answers of one item for one reviewer.

    Attributes
    ----------
    item_id : str
        The item.
    shown : tuple of str
        The n systems in the sequence in which their answers are shown. Not for the reviewer's eyes.
    kind : {"training", "label", "repeat"}
        Training is no part of the evaluation; a repeat shows an item of the list again.
    number : int
        The place in the reviewer's list, from 1.
    """

    item_id: str
    shown: tuple[str, ...]
    kind: Kind
    number: int

    @property
    def key(self) -> Key:
        """What the task is of, wherever it stands in the list: kind, item_id, and no pair."""
        return (self.kind, self.item_id, *NO_PAIR)


def ranking_order(
    study: Study, items: Sequence[Item], reviewer_id: str, *, training: int, repeats_share: float
) -> list[RankTask]:
    """The list of one reviewer: training, then every evaluation item with planted repeats.

    Parameters
    ----------
    study, items, reviewer_id, training
        As for :func:`judgelab.labelling.tasks.labelling_order`.
    repeats_share : float
        Share of the items to label that are shown again, as there.

    Returns
    -------
    list of RankTask
        One task an item and repeat, numbered from 1; drawn as :func:`~judgelab.labelling.tasks.labelling_order` draws
        items of one pair. The sequence of the answers depends on the seed, the reviewer, the kind, the item and the
        systems alone, and not on their order in the protocol; every sequence is as likely as any other. A repeat has
        its sequence drawn again. Empty without items.

    Raises
    ------
    LabelError
        If the study has fewer than 2 or more than :data:`judgelab.study.protocol.MOST_RANKED` systems, the reviewer
        has no usable name, or ``training`` or ``repeats_share`` is out of range.
    """
    n = len(study.systems)
    if not 2 <= n <= MOST_RANKED:
        raise LabelError(f"{n} answers of an item to put in order; allowed are 2 to {MOST_RANKED}")
    as_pairs = study.model_copy(update={"systems": dict.fromkeys(ONE_PAIR)})
    order = labelling_order(as_pairs, items, reviewer_id, training=training, repeats_share=repeats_share)
    return [RankTask(task.item_id, _sequence(study, reviewer_id, task), task.kind, task.number) for task in order]


def planned_rankings(orders: Mapping[str, Sequence[RankTask]], items: Sequence[Item]) -> pd.DataFrame:
    """The lists of several reviewers as a table, without the sequences.

    Returns
    -------
    DataFrame
        As :func:`judgelab.labelling.tasks.planned_table`: one row a reviewer and task, which is an item (not its
        pairs). system_x and system_y are empty.
    """
    as_pairs = {
        name: [LabelTask(task.item_id, NO_PAIR, NO_PAIR, task.kind, task.number) for task in order]
        for name, order in orders.items()
    }
    return planned_table(as_pairs, items)


def _sequence(study: Study, reviewer_id: str, task: LabelTask) -> tuple[str, ...]:
    """The systems by lot, each by a draw of its own."""

    def lot(system: str) -> bytes:
        parts = (study.random_seed, "labelling rank sequence", reviewer_id, task.kind, task.item_id, system)
        return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).digest()

    return tuple(sorted(study.system_names, key=lot))
