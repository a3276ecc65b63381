"""One line of a journal of rankings, and that journal: ``outputs/<run>/labelling/ranks/<reviewer>.jsonl``.

A line is a JSON object as :mod:`judgelab.labelling.records` has it, with these differences: no system_x, system_y and
scores; shown holds all n systems in the sequence in which their answers stood; ranks holds n ranks in that sequence
(empty where nothing was put in order); choice is ``ranked`` or ``cannot_judge``.

Ranks are competition ranks: 1 is best, equal answers share a rank, and an answer's rank is one more than the number of
better ones (1, 2, 2, 4).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgelab.errors import LabelError
from judgelab.labelling.journal import JournalBase
from judgelab.labelling.rank_tasks import NO_PAIR, RankTask
from judgelab.labelling.records import Fields, brief, line_of
from judgelab.labelling.tasks import Key, Kind
from judgelab.study.protocol import Study

__all__ = ["RANK_CHOICES", "RankJournal", "RankRecord", "RankRules", "normalised", "read_rank_record"]

RANK_CHOICES = ("ranked", "cannot_judge")


@dataclass(frozen=True)
class RankRecord:
    """One line of a journal of rankings. ``choice`` and ``ranks`` are empty where nothing was put in order."""

    record: int
    event: str
    reviewer: str
    session: str
    number: int
    kind: Kind
    item_id: str
    shown: tuple[str, ...]
    choice: str
    reason: str
    ranks: tuple[int, ...]
    note: str
    seconds: float
    at: str
    undo_of: int | None

    @property
    def key(self) -> Key:
        """What was decided: kind, item_id, and no pair."""
        return (self.kind, self.item_id, *NO_PAIR)

    @property
    def task(self) -> RankTask:
        """What was decided, as it stood in the reviewer's list."""
        return RankTask(self.item_id, self.shown, self.kind, self.number)

    @property
    def rank_of(self) -> dict[str, int]:
        """The rank of each system; empty where the reviewer could not judge, or nothing was decided."""
        return dict(zip(self.shown, self.ranks, strict=True)) if self.ranks else {}

    @property
    def line(self) -> bytes:
        """The record as a line of the journal; see :func:`judgelab.labelling.records.line_of`."""
        return line_of(self)


@dataclass(frozen=True)
class RankRules:
    """What a record may hold in one study. ``known``: every item id that may be labelled; None: any."""

    systems: tuple[str, ...]
    known: Collection[str] | None = None

    @classmethod
    def of(cls, study: Study, known: Collection[str] | None = None) -> RankRules:
        """The rules of a protocol."""
        return cls(study.system_names, None if known is None else frozenset(known))

    def read(self, values: Any) -> RankRecord:
        """As :func:`read_rank_record`."""
        return read_rank_record(values, self)


class RankJournal(JournalBase[RankRecord, RankTask]):
    """A reviewer's journal of rankings, open for one session; see :class:`judgelab.labelling.journal.JournalBase`."""

    def decide(
        self,
        task: RankTask,
        choice: str,
        *,
        seconds: float,
        reason: str = "",
        ranks: Sequence[int] = (),
        note: str = "",
    ) -> RankRecord:
        """Record a decision; it is on the disk when this returns.

        Parameters
        ----------
        task : RankTask
            What was decided. A task may be decided again: that is a later decision.
        choice : {"ranked", "cannot_judge"}
            Whether the answers could be put in order.
        seconds : float
            How long it took.
        reason : str
            Why it cannot be judged; needed for ``cannot_judge``.
        ranks : sequence of int
            The rank of each answer in the sequence of ``task.shown``, 1 to n, with ties and gaps as the reviewer gave
            them: they are recorded as :func:`normalised` makes them. None with ``cannot_judge``.
        note : str
            A note, of any length, in any script.

        Raises
        ------
        LabelError
            If the decision is not allowed, or cannot be written (a full disk): it is not recorded then. What was
            recorded before is kept.
        """
        try:
            kept = normalised(_whole(ranks, len(task.shown)))
        except ValueError as error:
            raise LabelError(f"this cannot be recorded for {self.reviewer}: {error}") from None
        record = self._record(
            "decision", task, choice=choice, seconds=seconds, reason=reason, ranks=list(kept), note=note
        )
        self._append(record)
        return record

    @classmethod
    def _rules(cls, study: Study, known: Collection[str] | None) -> RankRules:
        return RankRules.of(study, known)

    @staticmethod
    def _shown(task: RankTask) -> dict[str, Any]:
        return {"shown": task.shown}

    @staticmethod
    def _task(record: RankRecord) -> RankTask:
        return record.task


def normalised(ranks: Sequence[int]) -> tuple[int, ...]:
    """Competition ranks in the order of any numbers: equal numbers are ties, gaps and their size say nothing.

    Examples
    --------
    >>> normalised([1, 3, 3]), normalised([1, 2, 2, 3]), normalised([5, 2]), normalised([])
    ((1, 2, 2), (1, 2, 2, 4), (2, 1), ())
    """
    in_order = sorted(ranks)
    return tuple(in_order.index(rank) + 1 for rank in ranks)


def read_rank_record(values: Any, rules: RankRules) -> RankRecord:
    """A parsed line as a record.

    Raises
    ------
    ValueError
        Saying the first thing that is wrong with it; ranks that are no competition ranks are. Keys that are not known
        are ignored.
    """
    fields = Fields.of(values)
    common = fields.common(RANK_CHOICES, rules.known)
    shown = _systems(fields.values, rules)
    ranks = _whole(fields.values.get("ranks") or (), len(shown))
    if ranks != normalised(ranks):
        wanted = ", ".join(str(rank) for rank in normalised(ranks))
        raise ValueError(f"ranks is {brief(list(ranks))}; as competition ranks (1, 2, 2, 4) it would be {wanted}")
    if ranks and common["choice"] != "ranked":
        raise ValueError(f"ranks is {brief(list(ranks))}; it must be empty unless choice is ranked")
    if not ranks and common["choice"] == "ranked":
        raise ValueError(f"ranks is empty; {len(shown)} whole numbers from 1 to {len(shown)} are needed")
    return RankRecord(**common, shown=shown, ranks=ranks)


def _systems(values: Mapping[str, Any], rules: RankRules) -> tuple[str, ...]:
    shown = values.get("shown")
    names = tuple(shown) if isinstance(shown, list | tuple) and all(isinstance(name, str) for name in shown) else ()
    if sorted(names) != sorted(rules.systems):
        raise ValueError(f"shown is {brief(shown)}; each of {', '.join(rules.systems)} is needed once")
    return names


def _whole(given: Any, n: int) -> tuple[int, ...]:
    """Ranks as they were given, if there are none or n whole numbers from 1 to n."""
    if not isinstance(given, list | tuple):
        raise ValueError(f"ranks is {brief(given)}; {n} whole numbers from 1 to {n} are needed")
    for place, rank in enumerate(given, start=1):
        if not isinstance(rank, int) or isinstance(rank, bool) or not 1 <= rank <= n:
            raise ValueError(f"the rank in place {place} is {brief(rank)}; allowed are whole numbers from 1 to {n}")
    if given and len(given) != n:
        raise ValueError(f"there are {len(given)} ranks; {n} are needed, one for each answer")
    return tuple(given)
