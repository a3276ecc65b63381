"""The journal of one reviewer: ``outputs/<run>/labelling/<reviewer>.jsonl``, to which lines are only ever added.

A decision is on the disk before :meth:`Journal.decide` returns. One session at a time writes under one name; the lock
is ``flock`` on a file beside the journal and ends with the process that holds it, however it ends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from judgelab.errors import LabelError
from judgelab.labelling.decisions import DECISIONS, decisions_of, labels_of
from judgelab.labelling.journal_file import (
    JournalFile,
    check_case,
    lock_file,
    mend_end,
    read_journal,
    read_journals,
    sync_folder,
)
from judgelab.labelling.records import LabelRecord, Rules
from judgelab.labelling.standing import Reader, RecordT
from judgelab.labelling.tasks import Key, Kind, LabelTask, check_reviewer
from judgelab.project import shown
from judgelab.study.protocol import Study

__all__ = [
    "DECISIONS",
    "Journal",
    "JournalBase",
    "JournalFile",
    "Task",
    "TaskT",
    "decisions_of",
    "labels_of",
    "read_journals",
]


class Task(Protocol):
    """What the journal needs of a task of either mode."""

    @property
    def item_id(self) -> str:
        """The item."""

    @property
    def kind(self) -> Kind:
        """Training, label or repeat."""

    @property
    def number(self) -> int:
        """The place in the reviewer's list."""

    @property
    def key(self) -> Key:
        """What the task is of."""


TaskT = TypeVar("TaskT", bound=Task)


class JournalBase(Generic[RecordT, TaskT]):
    """A reviewer's journal, open for one session, whatever is decided in it; see :class:`Journal`.

    A journal of one mode says how its lines are read, what of a task they hold, and what a decision is.

    Attributes
    ----------
    reviewer, session : str
        Who decides, and in which session.
    path : Path
        The journal.
    notes : tuple of str
        What happened on opening: a session that was taken over, a half-written line that was set aside.
    file : JournalFile
        What it holds, kept up to date with every decision.
    """

    def __init__(
        self,
        file: JournalFile[RecordT],
        session: str,
        rules: Reader[RecordT],
        notes: Sequence[str],
        handles: tuple[int, int],
    ):
        self.path, self.reviewer, self.session = file.path, file.reviewer, session
        self.file, self.notes = file, tuple(notes)
        self._reader = rules
        self._handle, self._lock = handles

    @classmethod
    def open(
        cls, folder: Path, reviewer: str, session: str, *, study: Study, known: Collection[str] | None = None
    ) -> Self:
        """Lock a reviewer's journal, mend its end, and read what is there.

        Parameters
        ----------
        folder : Path
            ``outputs/<run>/labelling``; made if it is not there.
        reviewer, session : str
            The reviewer (see :func:`judgelab.labelling.tasks.check_reviewer`), and a name for this session.
        study : Study
            The protocol, for its systems, criteria and scale.
        known : collection of str, optional
            Every item id that may be labelled; None: any.

        Raises
        ------
        LabelError
            If another session writes under this name (who, and since when), there is a name that differs in case
            only, or the folder cannot be written. Nothing was touched.
        """
        check_reviewer(reviewer)
        if not session.strip():
            raise LabelError("a session needs a name")
        path = folder / f"{reviewer}.jsonl"
        rules = cls._rules(study, known)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            check_case(folder, reviewer)
            lock, taken = lock_file(folder / f".{reviewer}.lock", path, session)
            try:
                notes = [*taken, *mend_end(path)]
                file = read_journal(path, reviewer, rules)
                handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
                sync_folder(folder)
            except BaseException:
                os.close(lock)
                raise
        except OSError as error:
            raise LabelError(f"cannot open {shown(path)}: {error.strerror or error}; nothing was lost") from None
        return cls(file, session, rules, notes, (handle, lock))

    def show(self, task: TaskT) -> None:
        """Record that a task was put before the reviewer: the decision on the one before it is initial from now on.

        Without a call, a task counts as shown from the decision on it.

        Raises
        ------
        LabelError
            As :meth:`decide`.
        """
        self._append(self._record("shown", task))

    def undo(self) -> RecordT | None:
        """Take back the last decision that stands, in a record of its own. None if there is none.

        The decision's line stays as it is. Undone before another task was shown, it does not count; after that it
        remains the initial decision.
        """
        last = self.file.standing.last
        if last is None:
            return None
        self._append(self._record("undo", self._task(last), undo_of=last.record))
        return last

    def next_task(self, order: Sequence[TaskT]) -> TaskT | None:
        """The first task of a list that has no initial decision yet: where to go on. None at the end."""
        return next((task for task in order if not self.file.standing.is_decided(task.key)), None)

    def close(self) -> None:
        """Release the name. Closing twice does nothing."""
        if self._lock >= 0:
            os.close(self._handle)
            with contextlib.suppress(OSError):
                os.ftruncate(self._lock, 0)  # an empty lock file: the session ended on purpose
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:  # a cell that is run again forgets the journal that it had opened
        if hasattr(self, "_lock"):
            self.close()

    @classmethod
    def _rules(cls, study: Study, known: Collection[str] | None) -> Reader[RecordT]:
        """How a line is read."""
        raise NotImplementedError

    @staticmethod
    def _shown(task: TaskT) -> dict[str, Any]:
        """What a line holds of a task beside item_id, kind and number."""
        raise NotImplementedError

    @staticmethod
    def _task(record: RecordT) -> TaskT:
        """The task of a record."""
        raise NotImplementedError

    def _record(self, event: str, task: TaskT, **values: Any) -> RecordT:
        """A record as it is read back from the journal: only what a journal may hold is written to it."""
        given = {
            "record": self.file.last_record + 1,
            "event": event,
            "reviewer": self.reviewer,
            "session": self.session,
            "number": task.number,
            "kind": task.kind,
            "item_id": task.item_id,
            "seconds": 0.0,
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        try:
            return self._reader.read(given | self._shown(task) | values)
        except ValueError as error:
            raise LabelError(f"this cannot be recorded for {self.reviewer}: {error}") from None

    def _append(self, record: RecordT) -> None:
        if self._lock < 0:
            raise LabelError(f"{self.file.where}: this session ({self.session}) is closed; open the journal again")
        self._check_place()
        line, before = record.line, os.fstat(self._handle).st_size
        try:
            if os.write(self._handle, line) != len(line):
                raise OSError("the disk is full")
            os.fsync(self._handle)
        except OSError as error:
            self._take_back(before)
            raise LabelError(
                f"cannot write {self.file.where}: {error.strerror or error}; this decision is not recorded, "
                "what was recorded before is kept"
            ) from None
        except BaseException:  # an interrupt: whether the line is there, the next opening will see
            self.close()
            raise
        self.file.standing.add(record)
        self.file.last_record = record.record

    def _take_back(self, size: int) -> None:
        """Remove half a line. If that fails, too, close the session: the next opening sets it aside."""
        try:
            os.ftruncate(self._handle, size)
        except OSError:
            self.close()

    def _check_place(self) -> None:
        """An editor may have put another file in the journal's place: what is written to the old one would be lost."""
        try:
            same = os.path.samestat(self.path.stat(), os.fstat(self._handle))
        except OSError:
            same = False
        if not same:
            raise LabelError(
                f"{self.file.where} was replaced or removed while session {self.session} was writing to it; "
                "this decision is not recorded. Close the session and open it again"
            )


class Journal(JournalBase[LabelRecord, LabelTask]):
    """A reviewer's journal of pairs, open for one session. Get it from :meth:`open`; close it, or use it in ``with``.

    Attributes are those of :class:`JournalBase`.
    """

    def decide(
        self,
        task: LabelTask,
        choice: str,
        *,
        seconds: float,
        reason: str = "",
        scores: Mapping[str, Mapping[str, float]] | None = None,
        note: str = "",
    ) -> LabelRecord:
        """Record a decision; it is on the disk when this returns.

        Parameters
        ----------
        task : LabelTask
            What was decided. A task may be decided again: that is a later decision.
        choice : {"left", "right", "tie", "cannot_judge"}
            The side that was preferred.
        seconds : float
            How long it took.
        reason : str
            Why it cannot be judged; needed for ``cannot_judge``.
        scores : mapping
            Scores by side (``left``, ``right``) and criterion, on the scale of the study's human labels.
        note : str
            A note, of any length, in any script.

        Raises
        ------
        LabelError
            If the decision is not allowed, or cannot be written (a full disk): it is not recorded then. What was
            recorded before is kept.
        """
        record = self._record(
            "decision", task, choice=choice, seconds=seconds, reason=reason, scores=scores or {}, note=note
        )
        self._append(record)
        return record

    @classmethod
    def _rules(cls, study: Study, known: Collection[str] | None) -> Rules:
        return Rules.of(study, known)

    @staticmethod
    def _shown(task: LabelTask) -> dict[str, Any]:
        return {"system_x": task.pair[0], "system_y": task.pair[1], "shown": task.shown}

    @staticmethod
    def _task(record: LabelRecord) -> LabelTask:
        return record.task
