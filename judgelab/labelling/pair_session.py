"""Labelling of pairs: training, then every evaluation item and pair of systems, with repeats among them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from judgelab.errors import LabelError
from judgelab.labelling.closing import closed_by, thanks
from judgelab.labelling.pair_form import LABELS, PairForm, letters_of
from judgelab.labelling.records import Rules
from judgelab.labelling.tasks import LabelTask, labelling_order
from judgelab.study.run import Run
from judgelab.study.training_key import read_training_key

__all__ = ["PairSession"]


class PairSession(PairForm):
    """One reviewer's session of labelling; see :class:`judgelab.labelling.session.Session`.

    Parameters
    ----------
    run : Run
        A frozen run whose reviewers label pairs (``human_review.labelling``, mode pairs).

    Raises
    ------
    LabelError
        If the labels of the run are not made in it, or its reviewers rank.
    DataError
        If the key to the training items cannot be used.
    """

    mode = "pairs"
    title = "Labelling"

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        labelling = self.study.human_review.labelling
        if labelling is None or labelling.mode != "pairs":
            what = "are not made in the study" if labelling is None else "are rankings"
            raise LabelError(f"the labels of run {run.name} {what}; pairs are labelled with human_review.labelling")
        self._labelling = labelling
        self._key = read_training_key(self.study, tuple(self.items.values()))

    @property
    def folder(self) -> Path:
        """``outputs/<run>/labelling``."""
        return self.run.path("labelling")

    def known(self) -> Collection[str]:
        """The items of both splits."""
        return self.items.keys()

    def order(self, reviewer: str) -> Sequence[LabelTask]:
        """Training, labels and repeats, drawn for this reviewer."""
        wanted = self._labelling
        return labelling_order(
            self.study,
            tuple(self.items.values()),
            reviewer,
            training=wanted.training,
            repeats_share=wanted.repeats_share,
        )

    def progress_text(self, place: int) -> str:
        """Training is counted apart; a repeat is one more item."""
        training = sum(task.kind == "training" for task in self.tasks)
        if place < training:
            return f"Training {place + 1} of {training}"
        return f"Item {place + 1 - training} of {len(self.tasks) - training}"

    def scale(self) -> tuple[float, float] | None:
        """The scale of the human labels, where the protocol asks for scores."""
        return Rules.of(self.study).scale if self._labelling.criterion_scores else None

    def feedback(self, task: LabelTask) -> dict[str, Any] | None:
        """What the key expects of a training task."""
        expected = self._key.get((task.item_id, task.pair)) if task.kind == "training" else None
        if expected is None:
            return None
        wanted = letters_of(expected.preference, task.shown)
        decided = self.decided(task) or {}
        return {
            "agrees": LABELS.get(decided.get("choice", "")) == wanted,
            "expected": wanted,
            "explanation": expected.explanation,
        }

    def may_close(self) -> bool:
        """Whether this reviewer has decided everything and nobody adjudicates; else the adjudicator closes."""
        return self.screen == "done" and not self.study.human_review.adjudicate_disagreement

    def thanks(self) -> str:
        """What is said when everything is decided."""
        return thanks(self.study)

    def close_labels(self, confirmed: bool) -> str:
        """Close the labels of the run with what all reviewers and adjudicators decided."""
        return closed_by(self.run, confirmed=confirmed)
