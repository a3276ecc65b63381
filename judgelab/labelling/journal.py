"""The journal of one reviewer: ``outputs/<run>/labelling/<reviewer>.jsonl``, to which lines are only ever added.

A decision is on the disk before :meth:`Journal.decide` returns. One session at a time writes under one name; the lock
is ``flock`` on a file beside the journal and ends with the process that holds it, however it ends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pandas as pd

from judgelab.errors import LabelError
from judgelab.labelling.journal_file import (
    JournalFile,
    check_case,
    lock_file,
    mend_end,
    read_journal,
    read_journals,
    sync_folder,
)
from judgelab.labelling.records import LabelRecord, Rules, read_record
from judgelab.labelling.tasks import LabelTask, check_reviewer
from judgelab.project import shown
from judgelab.study.labels import COLUMNS
from judgelab.study.protocol import Study

__all__ = ["DECISIONS", "Journal", "JournalFile", "decisions_of", "labels_of", "read_journals"]

REPEATS = {"training": 1, "label": 1, "repeat": 2}
DECISIONS = [*COLUMNS, "repeat", "kind", "number", "choice", "reason", "note", "seconds", "later"]


class Journal:
    """A reviewer's journal, open for one session. Get it from :meth:`open`; close it, or use it in ``with``.

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

    def __init__(self, file: JournalFile, session: str, rules: Rules, notes: Sequence[str], handles: tuple[int, int]):
        self.path, self.reviewer, self.session = file.path, file.reviewer, session
        self.file, self.notes = file, tuple(notes)
        self._rules = rules
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
        rules = Rules.of(study, known)
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

    def show(self, task: LabelTask) -> None:
        """Record that a task was put before the reviewer: the decision on the one before it is initial from now on.

        Without a call, a task counts as shown from the decision on it.

        Raises
        ------
        LabelError
            As :meth:`decide`.
        """
        self._append(self._record("shown", task))

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

    def undo(self) -> LabelRecord | None:
        """Take back the last decision that stands, in a record of its own. None if there is none.

        The decision's line stays as it is. Undone before another task was shown, it does not count; after that it
        remains the initial decision.
        """
        last = self.file.standing.last
        if last is None:
            return None
        task = LabelTask(last.item_id, (last.system_x, last.system_y), last.shown, last.kind, last.number)
        self._append(self._record("undo", task, undo_of=last.record))
        return last

    def next_task(self, order: Sequence[LabelTask]) -> LabelTask | None:
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

    def _record(self, event: str, task: LabelTask, **values: Any) -> LabelRecord:
        """A record as it is read back from the journal: only what a journal may hold is written to it."""
        given = {
            "record": self.file.last_record + 1,
            "event": event,
            "reviewer": self.reviewer,
            "session": self.session,
            "number": task.number,
            "kind": task.kind,
            "item_id": task.item_id,
            "system_x": task.pair[0],
            "system_y": task.pair[1],
            "shown": task.shown,
            "seconds": 0.0,
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        try:
            return read_record(given | values, self._rules)
        except ValueError as error:
            raise LabelError(f"this cannot be recorded for {self.reviewer}: {error}") from None

    def _append(self, record: LabelRecord) -> None:
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


def decisions_of(journals: Iterable[JournalFile], study: Study) -> pd.DataFrame:
    """The initial decisions of several reviewers, each reviewer's in the order in which they were made.

    Returns
    -------
    DataFrame
        One row a decision with the columns :data:`DECISIONS`. preference is NaN where the reviewer could not judge.
        score_x and score_y are weighted means over the criteria, NaN unless each has a score. repeat is 2 for a
        planted repeat, else 1. later counts the decisions on the same task after the initial one.

    Raises
    ------
    LabelError
        If two journals are of one reviewer.
    """
    weights = study.direct_scale.weights
    rows, seen = [], set()
    for journal in journals:
        if journal.reviewer in seen:
            raise LabelError(f"two journals are of reviewer {journal.reviewer}; the second is {journal.where}")
        seen.add(journal.reviewer)
        for key, first in journal.standing.initial().items():
            rows.append(
                (
                    *(first.item_id, journal.reviewer, first.system_x, first.system_y, first.preference),
                    *(first.total(first.system_x, weights), first.total(first.system_y, weights), False),
                    *(REPEATS[first.kind], first.kind, first.number, first.choice, first.reason, first.note),
                    *(first.seconds, len(journal.standing.later(key))),
                )
            )
    frame = pd.DataFrame(rows, columns=DECISIONS)
    names = ("item_id", "reviewer_id", "system_x", "system_y", "preference", "kind", "choice", "reason", "note")
    numbers = dict.fromkeys(("repeat", "number", "later"), "int64")
    floats = dict.fromkeys(("score_x", "score_y", "seconds"), "float64")
    return frame.astype({**dict.fromkeys(names, "str"), **numbers, **floats, "is_adjudicated": "bool"})


def labels_of(journals: Iterable[JournalFile], study: Study) -> pd.DataFrame:
    """The initial labels of several reviewers, in the columns of a label file and ``repeat``.

    Training is left out, and what a reviewer could not judge (:func:`decisions_of` has both). So is a repeat whose
    first showing has no label: there is nothing that it repeats.

    Raises
    ------
    LabelError
        If two journals are of one reviewer.
    """
    decisions = decisions_of(journals, study)
    given = decisions[(decisions["kind"] != "training") & decisions["preference"].notna()]
    of = ["item_id", "system_x", "system_y", "reviewer_id"]
    has_first = given["repeat"].eq(1).groupby([given[name] for name in of]).transform("any").astype(bool)
    return given.loc[has_first, [*COLUMNS, "repeat"]].reset_index(drop=True)
