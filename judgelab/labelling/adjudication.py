"""Adjudication: pairs of answers whose initial labels differ are decided by the protocol's rule, blind to names."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.errors import LabelError
from judgelab.labelling.adjudicated import Adjudicated, adjudicated, adjudicated_labels, adjudication_folder
from judgelab.labelling.closing import closed_by
from judgelab.labelling.gathered import gathered_labels
from judgelab.labelling.messages import whole_text
from judgelab.labelling.pair_form import LABELS, PairForm, letters_of
from judgelab.labelling.records import Rules
from judgelab.labelling.tasks import LabelTask, items_to_label
from judgelab.measure.labelling_progress import to_adjudicate
from judgelab.study.items import Pair
from judgelab.study.run import Run

__all__ = ["Adjudicated", "AdjudicationSession", "adjudicated", "adjudicated_labels"]

NOT_HERE = "This study does not adjudicate (human_review.adjudicate_disagreement is false)."
Question = tuple[str, Pair]


class AdjudicationSession(PairForm):
    """One adjudicator's session; see :class:`judgelab.labelling.session.Session`.

    What there is to decide is looked up when the session is started: pairs on which initial labels differ, without
    those that another adjudicator has decided. Which answer stands on which side is drawn anew for the adjudicator.

    Parameters
    ----------
    run : Run
        A frozen run with ``human_review.labelling``. Where reviewers rank, the pairs that their ranks imply are
        adjudicated. Where the study does not adjudicate, the session is closed from the start.

    Raises
    ------
    LabelError
        If the labels of the run are not made in it.
    """

    mode = "adjudication"
    title = "Adjudication"

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        labelling = self.study.human_review.labelling
        if labelling is None:
            raise LabelError(
                f"the labels of run {run.name} are not made in the study (human_review.labelling is empty)"
            )
        self._labelling = labelling
        self._initial: dict[Question, list[dict[str, Any]]] = {}
        self._labellers: frozenset[str] = frozenset()

    @property
    def folder(self) -> Path:
        """``outputs/<run>/labelling/adjudication``."""
        return adjudication_folder(self.run)

    def known(self) -> Collection[str]:
        """The items that are labelled."""
        return {item.item_id for item in items_to_label(self.study, tuple(self.items.values()))}

    def why_closed(self) -> str:
        """Also a study that does not adjudicate is closed."""
        return super().why_closed() if self.study.human_review.adjudicate_disagreement else NOT_HERE

    def order(self, reviewer: str) -> Sequence[LabelTask]:
        """Every pair on which initial labels differ, in an order and on sides drawn for this adjudicator."""
        decisions = gathered_labels(self.run).pair_decisions
        self._labellers = frozenset(decisions["reviewer_id"])
        rows: dict[Question, list[dict[str, Any]]] = defaultdict(list)
        for row in to_adjudicate(decisions).to_dict("records"):
            rows[row["item_id"], (row["system_x"], row["system_y"])].append({str(k): row[k] for k in row})
        self._initial = dict(rows)
        others = adjudicated_labels(self.run)
        others = others[others["reviewer_id"] != reviewer]
        done = {(item, (x, y)) for item, x, y in others[["item_id", "system_x", "system_y"]].itertuples(index=False)}
        questions = sorted(
            (each for each in rows if each not in done), key=lambda each: self._draw("order", reviewer, each)
        )
        return [self._task_of(each, reviewer, number) for number, each in enumerate(questions, start=1)]

    def scale(self) -> tuple[float, float] | None:
        """The scale of the human labels, where the protocol asks for scores."""
        return Rules.of(self.study).scale if self._labelling.criterion_scores else None

    def welcome(self, reviewer: str) -> str:
        """Whether there is anything to decide, and whether the adjudicator is one of the reviewers."""
        if not self.tasks:
            return "Initial labels differ nowhere so far, or all such pairs are adjudicated: nothing is to be decided."
        if reviewer in self._labellers:
            return f"{reviewer} is also a reviewer of this study; an adjudicator should be somebody else."
        return ""

    def extra(self, task: LabelTask) -> dict[str, Any]:
        """The initial labels in terms of the letters shown, sorted by what they say; and the written rule."""
        said = sorted(
            (
                letters_of(row["preference"], task.shown),
                _scores(row, task),
                whole_text(str(row["note"])),
            )
            for row in self._initial.get((task.item_id, task.pair), [])
        )
        in_order = sorted(said, key=lambda label: list(LABELS.values()).index(label[0]))
        labels = [
            {"label": number, "text": text, "note": note, "scores": scores}
            for number, (text, scores, note) in enumerate(in_order, start=1)
        ]
        return {"labels": labels, "rule": self._labelling.adjudication_rule}

    def may_close(self) -> bool:
        """Whether this adjudicator has decided everything."""
        return self.screen == "done"

    def thanks(self) -> str:
        """What is said when everything is decided."""
        return "Everything is decided. When all reviewers are done, close the labels."

    def close_labels(self, confirmed: bool) -> str:
        """Close the labels of the run with what all reviewers and adjudicators decided."""
        return closed_by(self.run, confirmed=confirmed)

    def _task_of(self, question: Question, reviewer: str, number: int) -> LabelTask:
        item_id, pair = question
        left, right = sorted(pair)
        if self._draw("side", reviewer, question)[-1] & 1:
            left, right = right, left
        return LabelTask(item_id, pair, (left, right), "label", number)

    def _draw(self, what: str, reviewer: str, question: Question) -> bytes:
        """SHA-256 of the seed, the adjudicator and the pair: apart from what the reviewers and the judges saw."""
        parts = [self.study.random_seed, f"adjudication {what}", reviewer, question[0], *sorted(question[1])]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).digest()


def _scores(row: dict[str, Any], task: LabelTask) -> str:
    """Both total scores by letter; empty without."""
    by_system = dict(zip(task.pair, (row["score_x"], row["score_y"]), strict=True))
    left, right = (by_system[name] for name in task.shown)
    return "" if pd.isna(left) or pd.isna(right) else f"A: {left:.3g}, B: {right:.3g}"
