"""What is sent to people who label elsewhere: a list of tasks without systems, and the words that go with it.

A task has an opaque id, which says neither item nor system, nor that a pair comes twice. What came back is compared
with the texts that were sent, blank space and characters that cannot be printed left aside.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Generic, Protocol, TypeVar

from judgelab.errors import LabelError
from judgelab.labelling.journal import Task
from judgelab.labelling.records import Rules
from judgelab.labelling.tasks import LabelTask, labelling_order
from judgelab.study.human_review import Labelling
from judgelab.study.protocol import Study
from judgelab.study.run import Run

__all__ = [
    "EVERYBODY",
    "TEXTS",
    "WORDS",
    "Sent",
    "ShownTask",
    "TaskT",
    "choice_of",
    "common_tasks",
    "criteria",
    "labelling_of",
    "rubric_lines",
    "same_text",
    "sent_out",
    "tasks_of",
    "text_columns",
    "wants_scores",
    "words_of",
]

EVERYBODY = "all-annotators"  # in whose name the order and the sides are drawn where all see the same task
TEXTS = ("task", "context", "answer_A", "answer_B")


class ShownTask(Task, Protocol):
    """A task whose answers stand in a sequence: of a pair, or of all answers."""

    @property
    def shown(self) -> tuple[str, ...]:
        """The systems in the sequence of their answers."""


TaskT = TypeVar("TaskT", bound=ShownTask)
WORDS = {"A": "left", "B": "right", "TIE": "tie", "CANNOT JUDGE": "cannot_judge"}
BLANK = re.compile("[\\s\x00-\x1f\x7f\u2400-\u2421\ufffd\ufeff\ufffe\uffff\ud800-\udfff]+")


@dataclass(frozen=True)
class Sent(Generic[TaskT]):
    """One task as it is sent out.

    Attributes
    ----------
    task : LabelTask or RankTask
        What is to be decided; the answer that is shown first is A. Not for the reviewer's eyes.
    place : int
        Its place in the list that is sent, from 1.
    task_id : str
        Its opaque id: ``t-`` and ten characters.
    texts : mapping
        The texts by :func:`text_columns`.
    """

    task: TaskT
    place: int
    task_id: str
    texts: Mapping[str, str]

    @property
    def check(self) -> str:
        """A short hash of id and texts, sent along: ``c-`` and ten characters."""
        return f"c-{_hash(self.task_id, *map(_plain, self.texts.values()))}"


def labelling_of(run: Run, what: str) -> Labelling:
    """How the run's labels are made, if it is by comparing pairs.

    Raises
    ------
    LabelError
        If the labels come from a file, or answers are put in order; saying what of this does not go.
    """
    labelling = run.study.human_review.labelling
    if labelling is None:
        raise LabelError(
            f"{what}: labels of run {run.name} are not made in the study: its protocol has no human_review.labelling"
        )
    if labelling.mode == "ranking":
        raise LabelError(
            f"{what} goes with human_review.labelling.mode pairs; run {run.name} has mode ranking, whose answers are "
            "put in order in notebook 02 or in sheets"
        )
    return labelling


def tasks_of(run: Run, reviewer: str) -> list[Sent[LabelTask]]:
    """The list of one reviewer as the notebook has it, planted repeats among it, without training.

    Raises
    ------
    LabelError
        If the reviewer's name cannot be used.
    """
    labelling = labelling_of(run, "a reviewer's list")
    order = labelling_order(
        run.study, run.items(), reviewer, training=labelling.training, repeats_share=labelling.repeats_share
    )
    return sent_out(run, reviewer, [task for task in order if task.kind != "training"])


def common_tasks(run: Run) -> list[Sent[LabelTask]]:
    """One list for tools in which all see the same task: every item to label and pair once.

    Order and sides are drawn by the protocol's seed in the name of :data:`EVERYBODY`, apart from those of any judge.
    """
    labelling_of(run, "a list for everybody")
    return sent_out(run, EVERYBODY, labelling_order(run.study, run.items(), EVERYBODY, training=0, repeats_share=0))


def same_text(one: str, other: str) -> bool:
    """Whether two texts are the same but for blank space and characters that cannot be printed."""
    return _plain(one) == _plain(other)


def choice_of(text: str) -> str | None:
    """The choice that a word of :data:`WORDS` stands for, in small letters or with other gaps, too; None: no such."""
    return WORDS.get(" ".join(re.split(r"[\s_-]+", text.strip().upper())))


def words_of(study: Study) -> list[str]:
    """The words that a label may be in a study: without TIE where it allows no ties."""
    return [word for word in WORDS if word != "TIE" or "TIE" in study.pairwise_labels]


def wants_scores(run: Run) -> bool:
    """Whether each answer also gets a score a criterion."""
    labelling = run.study.human_review.labelling
    return labelling is not None and labelling.criterion_scores


def criteria(run: Run) -> tuple[str, ...]:
    """The criteria of the scores that are asked for; none where none are."""
    return tuple(run.study.direct_scale.weights) if wants_scores(run) else ()


def rubric_lines(run: Run) -> list[str]:
    """What a reviewer is to know, line by line: criteria, labels, ties, scores. It names no system."""
    study = run.study
    low, high = Rules.of(study).scale
    named = [f"{each.name}: {each.description}".removesuffix(": ") for each in study.direct_scale.criteria]
    lines = [
        "Read the task, its context where there is one, and both answers. Which answer is better?",
        "Decide by these criteria alone:",
        *(f"  - {line}" for line in named),
        "Labels:",
        "  A: answer A is better",
        "  B: answer B is better",
    ]
    if "TIE" in words_of(study):
        lines.append(f"  TIE: {study.tie_meaning}")
    lines.append("  CANNOT JUDGE: it cannot be decided; say why in reason")
    if wants_scores(run):
        lines.append(f"Scores: a number from {low:g} to {high:g} for each answer and criterion.")
    return [*lines, "The order of the answers was drawn by lot. Decide alone, and do not ask others."]


def text_columns(count: int) -> tuple[str, ...]:
    """The names of a task's texts with so many answers: task, context, answer_A, answer_B, ..."""
    return ("task", "context", *(f"answer_{letter}" for letter in ascii_uppercase[:count]))


def sent_out(run: Run, reviewer: str, order: Sequence[TaskT]) -> list[Sent[TaskT]]:
    """Tasks with their ids and texts, numbered as they stand in ``order``."""
    items = {item.item_id: item for item in run.items()}
    sent: list[Sent[TaskT]] = []
    for place, task in enumerate(order, start=1):
        item = items[task.item_id]
        texts = (item.task, item.reference_context, *(item.answers[system] for system in task.shown))
        task_id = f"t-{_hash('label task', str(run.study.random_seed), reviewer, *task.key)}"
        sent.append(Sent(task, place, task_id, dict(zip(text_columns(len(task.shown)), texts, strict=True))))
    return sent


def _plain(text: str) -> str:
    return BLANK.sub("", text)


def _hash(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:10]
