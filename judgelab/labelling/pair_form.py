"""What every session that compares two answers has in common: labelling of pairs, adjudication, spot check."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from judgelab.errors import LabelError
from judgelab.labelling.journal import Journal
from judgelab.labelling.journal_file import read_journal
from judgelab.labelling.messages import check_scores, choice_of, text_of
from judgelab.labelling.records import SIDES, LabelRecord, Rules
from judgelab.labelling.session import CANNOT_JUDGE, LETTERS, LookedAt, Session
from judgelab.labelling.tasks import LabelTask
from judgelab.study.items import Item
from judgelab.study.protocol import TIE
from judgelab.study.run import Run

__all__ = ["LABELS", "PairForm", "letters_of"]

LABELS = {"left": "A is better", "right": "B is better", "tie": "Tie"}


class PairForm(Session[LabelTask]):
    """A session about two answers, of which the left one is A and the right one B.

    Raises
    ------
    DriftError
        If the items of the run were changed after freezing.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.items = {item.item_id: item for item in run.items()}

    @abstractmethod
    def known(self) -> Collection[str]:
        """Every id that may be decided here."""

    def item(self, task: LabelTask) -> Item:
        """The item of a task."""
        return self.items[task.item_id]

    def open_journal(self, reviewer: str) -> Journal:
        """Open a person's journal; LabelError where it cannot be."""
        return Journal.open(self.folder, reviewer, f"{self.mode}-{self.name}", study=self.study, known=self.known())

    def look(self, reviewer: str) -> LookedAt:
        """What a person's journal holds, read without a lock."""
        rules = Rules.of(self.study, self.known())
        standing = read_journal(self.folder / f"{reviewer}.jsonl", reviewer, rules).standing
        order = self.order(reviewer)
        decided = sum(standing.is_decided(task.key) for task in order)
        return LookedAt(decided, len(order), standing.last.at[:10] if standing.last else "")

    def texts(self, task: LabelTask) -> tuple[str, str, Sequence[str]]:
        """The task, its context, and the two answers."""
        item = self.item(task)
        return item.task, item.reference_context, [item.answers[name] for name in task.shown]

    def choices(self) -> list[dict[str, str]]:
        """A, B, a tie where the protocol has it, and cannot judge."""
        tie = [("tie", "t")] if TIE in self.study.pairwise_labels else []
        keys = [("left", "a"), ("right", "b"), *tie]
        return [*({"value": value, "key": key, "label": LABELS[value]} for value, key in keys), dict(CANNOT_JUDGE)]

    def record(self, task: LabelTask, message: Mapping[str, Any], seconds: float) -> None:
        """Record a choice with its scores, reason and note.

        Raises
        ------
        LabelError
            If nothing is chosen, what is chosen is not allowed, scores are missing where the protocol wants them
            (nobody is asked for them with ``cannot_judge``) or there where it does not, or there is no reason for
            ``cannot_judge``. Nothing is recorded.
        """
        choice = choice_of(message, [each["value"] for each in self.choices()])
        reason, note = text_of(message, "reason"), text_of(message, "note")
        scores = message.get("scores") or {}
        if choice == "cannot_judge" and not reason.strip():
            raise LabelError("Say in the reason why it cannot be judged.")
        if self.scale() is None and scores:
            raise LabelError("Scores are not asked for here.")
        if self.scale() is not None and choice != "cannot_judge":
            check_scores(scores, dict(zip(SIDES, LETTERS, strict=False)), tuple(self.study.direct_scale.weights))
        if not isinstance(self.journal, Journal):
            raise LabelError("No session is open: say who you are, and start.")
        self.journal.decide(task, choice, seconds=seconds, reason=reason, scores=scores, note=note)

    def decision(self, record: LabelRecord) -> dict[str, Any]:
        """A recorded decision as the form shows it."""
        scores = {side: dict(by_name) for side, by_name in record.scores.items()}
        return {"choice": record.choice, "scores": scores, "reason": record.reason, "note": record.note, "ranks": []}


def letters_of(preference: str, shown: Sequence[str]) -> str:
    """A preference in terms of the letters under which two systems were shown."""
    return {shown[0]: LABELS["left"], shown[1]: LABELS["right"]}.get(preference, LABELS["tie"])
