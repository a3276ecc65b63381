"""What a session of one mode says: where its journals are, what is decided in which order, and how a task looks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple

from judgelab.errors import LabelError
from judgelab.labelling.journal import JournalBase, TaskT
from judgelab.study.freeze import open_run
from judgelab.study.run import Run

__all__ = ["CANNOT_JUDGE", "LookedAt", "SessionMode"]

CANNOT_JUDGE = {"value": "cannot_judge", "key": "c", "label": "Cannot judge"}


class LookedAt(NamedTuple):
    """What a journal holds before it is opened: decided tasks, planned tasks, and the day of the last decision."""

    decided: int
    total: int
    last: str


class SessionMode(ABC, Generic[TaskT]):
    """The part of :class:`judgelab.labelling.session.Session` that each mode writes for itself.

    Parameters
    ----------
    run : Run
        The frozen run.

    Attributes
    ----------
    mode, title : str
        The mode's name in the view, and what stands above the form.
    tasks : sequence
        What the person decides who is here; empty without one.
    journal : JournalBase, optional
        The open journal; None without a person.
    """

    mode: ClassVar[str]
    title: ClassVar[str]

    def __init__(self, run: Run) -> None:
        self.run, self.study = run, run.study
        self.tasks: Sequence[TaskT] = ()
        self.journal: JournalBase[Any, TaskT] | None = None
        self._stamp, self._is_open = (0, 0, 0), True

    @property
    @abstractmethod
    def folder(self) -> Path:
        """Where the journals are."""

    @abstractmethod
    def open_journal(self, reviewer: str) -> JournalBase[Any, TaskT]:
        """Open a person's journal; LabelError where it cannot be."""

    @abstractmethod
    def order(self, reviewer: str) -> Sequence[TaskT]:
        """What a person decides, one after the other."""

    @abstractmethod
    def look(self, reviewer: str) -> LookedAt:
        """What a person's journal holds, read without a lock. Called only where there is one."""

    @abstractmethod
    def texts(self, task: TaskT) -> tuple[str, str, Sequence[str]]:
        """The task, its context (empty: none) and the answers, in the places in which they are shown."""

    @abstractmethod
    def choices(self) -> list[dict[str, str]]:
        """The buttons: value, key, label."""

    @abstractmethod
    def record(self, task: TaskT, message: Mapping[str, Any], seconds: float) -> None:
        """Record what a message decides; LabelError, and nothing recorded, where it cannot be."""

    @abstractmethod
    def decision(self, record: Any) -> dict[str, Any]:
        """A recorded decision as the form shows it: choice, scores, reason, note, ranks."""

    def progress_text(self, place: int) -> str:
        """Where in the list a task stands; it must not tell a repeat."""
        return f"Item {place + 1} of {len(self.tasks)}"

    def scale(self) -> tuple[float, float] | None:
        """The scale of the scores that are wanted beside a choice; None: no scores."""
        return None

    def feedback(self, task: TaskT) -> dict[str, Any] | None:
        """What was expected of a training task that has just been decided; None: nothing is told."""
        return None

    def extra(self, task: TaskT) -> dict[str, Any]:
        """Further keys of a task's view: ``labels`` and ``rule``."""
        return {}

    def why_closed(self) -> str:
        """Why nothing can be decided here; empty where it can."""
        told = "The labels of this study are closed: nothing can be added. Run the study again to measure with them."
        return "" if self.labels_open() else told

    def welcome(self, reviewer: str) -> str:
        """A message for the first view after the start."""
        return ""

    def thanks(self) -> str:
        """What is said when everything is decided."""
        return "Everything is decided: thank you."

    def close_labels(self, confirmed: bool) -> str:
        """Close the study's labels, or say what that means before it is confirmed; LabelError where it cannot be."""
        raise LabelError("The labels cannot be closed here.")

    def may_close(self) -> bool:
        """Whether the labels can be closed from the screen that is shown."""
        return False

    def labels_open(self) -> bool:
        """Whether the labels of the run are open, looked up again whenever its protocol was written."""
        found = self.run.path("protocol.yaml").stat()
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp != self._stamp:
            self._is_open, self._stamp = open_run(self.run.name).labels_open, stamp
        return self._is_open
