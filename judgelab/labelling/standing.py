"""Which of a reviewer's decisions is the initial one, whatever was decided: the better of two answers, or an order."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from judgelab.labelling.tasks import Key

__all__ = ["Reader", "Record", "RecordT", "Standing"]


class Record(Protocol):
    """What the journal needs of a line, whatever was decided in it."""

    @property
    def record(self) -> int:
        """Its running number."""

    @property
    def event(self) -> str:
        """One of :data:`EVENTS`."""

    @property
    def reviewer(self) -> str:
        """Whose line it is."""

    @property
    def undo_of(self) -> int | None:
        """The record that an undo takes back."""

    @property
    def key(self) -> Key:
        """What was decided."""

    @property
    def line(self) -> bytes:
        """The record as it stands in the file."""


RecordT = TypeVar("RecordT", bound=Record)
ReadT = TypeVar("ReadT", bound=Record, covariant=True)


class Reader(Protocol[ReadT]):
    """Turns a parsed line into a record of one sort, or raises ValueError."""

    def read(self, values: Any) -> ReadT:
        """A parsed line as a record."""


@dataclass
class Standing(Generic[RecordT]):
    """Which decisions count, record by record.

    The initial decision on a task is the first that was not undone before another task was shown. A task counts as
    shown from its record ``shown`` on or, without one, from the decision on it. What is decided after that, or undone
    after that, is kept and changes nothing.
    """

    decisions: dict[Key, list[RecordT]] = field(default_factory=lambda: defaultdict(list))
    _fixed: dict[Key, RecordT] = field(default_factory=dict)
    _current: Key | None = None
    _open: list[RecordT] = field(default_factory=list)
    _standing: dict[int, RecordT] = field(default_factory=dict)

    @property
    def last(self) -> RecordT | None:
        """The last decision that was not undone."""
        return next(reversed(self._standing.values()), None)

    def stands(self, key: Key) -> RecordT | None:
        """The last decision on a task that was not undone, initial or not."""
        own = self.decisions.get(key, [])
        return next((each for each in reversed(own) if each.record in self._standing), None)

    def initial(self) -> dict[Key, RecordT]:
        """The initial decision on each task that has one, in the order of their records."""
        both = dict(self._fixed)
        if self._current is not None and self._open:
            both.setdefault(self._current, self._open[0])
        return dict(sorted(both.items(), key=lambda entry: entry[1].record))

    def is_decided(self, key: Key) -> bool:
        """Whether a task has an initial decision."""
        return key in self._fixed or (key == self._current and bool(self._open))

    def later(self, key: Key) -> list[RecordT]:
        """The decisions on a task that came after the initial one, undone or not."""
        first = self._fixed.get(key) or (self._open[0] if key == self._current and self._open else None)
        own = self.decisions.get(key, [])
        return own[own.index(first) + 1 :] if first else []

    def add(self, record: RecordT) -> None:
        """Take one record.

        Raises
        ------
        ValueError
            If it undoes what is no decision, or is undone already.
        """
        if record.event == "undo":
            undone = self._standing.pop(record.undo_of or 0, None)
            if undone is None:
                raise ValueError(f"undo_of is {record.undo_of}; no decision of that record stands before it")
            self._open = [each for each in self._open if each.record != undone.record]
            return
        if record.key != self._current:
            self._close()
            self._current = record.key
        if record.event == "decision":
            self._open.append(record)
            self.decisions[record.key].append(record)
            self._standing[record.record] = record

    def _close(self) -> None:
        """Another task is shown: the first decision that stands on the current one is its initial decision."""
        if self._current is not None and self._open:
            self._fixed.setdefault(self._current, self._open[0])
        self._open = []
