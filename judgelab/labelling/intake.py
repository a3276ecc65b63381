"""Decisions that were made elsewhere go into the reviewers' journals: all of a file, or nothing."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from judgelab.errors import DataError, LabelError
from judgelab.labelling.journal import Journal, JournalFile, read_journals
from judgelab.labelling.records import LabelRecord, Rules
from judgelab.labelling.sending import words_of
from judgelab.labelling.tasks import Key, LabelTask, check_reviewer
from judgelab.project import shown
from judgelab.study.protocol import TIE
from judgelab.study.run import Run

__all__ = ["MOST_TOLD", "Given", "Read", "raise_if_any", "read_score", "same_but_case", "take_in"]

MOST_TOLD = 100


@dataclass(frozen=True)
class Given:
    """One decision of a file.

    ``where`` says where it stands there; ``choice``, ``scores`` and the others are as in
    :meth:`judgelab.labelling.journal.Journal.decide`. ``adjudicated``: it is an adjudicator's. ``seconds`` is 0
    where the file does not say how long it took.
    """

    where: str
    reviewer: str
    task: LabelTask
    choice: str
    reason: str = ""
    note: str = ""
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    seconds: float = 0.0
    adjudicated: bool = False

    @property
    def decision(self) -> str:
        """The preferred system, ``TIE``, or ``cannot_judge``."""
        return _decision(self.choice, self.task)

    @property
    def told(self) -> str:
        """The choice as it is told to people, without the sides."""
        return "cannot judge" if self.choice == "cannot_judge" else self.decision


GivenT = TypeVar("GivenT")


@dataclass
class Read(Generic[GivenT]):
    """What a reader found in a file: decisions, problems (``where: what``), notes, and how many rows there were."""

    given: list[GivenT] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    total: int = 0

    def wrong(self, where: str, what: str) -> None:
        """Add a problem."""
        self.problems.append(f"{where}: {what}")


def read_score(text: str, run: Run) -> tuple[float | None, str]:
    """A score as a person wrote it (4, 4.5, or 4,5), and what is wrong with it; None without a score.

    Returns
    -------
    float or None, str
        The score, and an empty text; or None and the problem. Both are empty for blank text.
    """
    if not text.strip():
        return None, ""
    low, high = Rules.of(run.study).scale
    try:
        value = float(text.strip().replace(",", "."))
    except ValueError:
        return None, f"{_short(text)} is not a number; allowed is {low:g} to {high:g}, or empty"
    if not math.isfinite(value) or not low <= value <= high:
        return None, f"{_short(text)} is out of range; allowed is {low:g} to {high:g}, or empty"
    return value, ""


def take_in(run: Run, read: Read[Given], path: Path) -> list[str]:
    """Check a file's decisions once more, against the journals, and add those that are new.

    A task that its reviewer has decided already keeps its decision: the same one in the file is counted as there
    already, another one is a problem. The journals' names are locked, so that no session writes meanwhile. If the disk
    fills up on the way, the same import can be run again: it goes on where it stopped.

    Returns
    -------
    list of str
        The reader's notes, and how many decisions of each reviewer were taken in.

    Raises
    ------
    DataError
        Telling every problem with its place; nothing was written then.
    LabelError
        If the labels of the run are closed, or a journal is in use.
    """
    where = shown(path)
    if not run.labels_open:
        raise LabelError(f"the labels of run {run.name} are closed: {where} was not imported")
    problems = list(read.problems)
    problems += [f"{each.where}: {told}" for each in read.given for told in _wrong(run, each)]
    problems += _twice(read.given)
    raise_if_any(problems, read, path)
    before = {adjudicated: read_journals(_folder(run, adjudicated), study=run.study) for adjudicated in (False, True)}
    for adjudicated, files in before.items():
        given = [each for each in read.given if each.adjudicated == adjudicated]
        problems += [*same_but_case(files, {each.reviewer for each in given}), *_conflicts(files, given)]
    raise_if_any(problems, read, path)
    return [*read.notes, *_write(run, read, path, before)]


def same_but_case(files: Sequence[JournalFile[Any]], reviewers: Collection[str]) -> list[str]:
    """A problem for each name that differs from a journal's in upper and lower case only."""
    there = {file.reviewer.lower(): file.reviewer for file in files}
    return [
        f"reviewer {name}: the journal of {there[name.lower()]} differs in upper and lower case only; take that name "
        "with --reviewer OLD=NEW"
        for name in sorted(reviewers)
        if there.get(name.lower(), name) != name
    ]


def raise_if_any(problems: Sequence[str], read: Read[Any], path: Path) -> None:
    """Refuse a file that has problems, telling them: all, or the first :data:`MOST_TOLD`.

    Raises
    ------
    DataError
        If there are any.
    """
    if not problems:
        return
    more = [f"and {len(problems) - MOST_TOLD} more"] if len(problems) > MOST_TOLD else []
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    told = "\n  ".join([*problems[:MOST_TOLD], *more])
    raise DataError(f"{shown(path)}: {count} in {read.total} rows; nothing was imported:\n  {told}")


def _write(
    run: Run, read: Read[Given], path: Path, before: Mapping[bool, Sequence[JournalFile[LabelRecord]]]
) -> list[str]:
    """Lock the journals of those who have new decisions, look again, and add them; tell what was done."""
    known = [item.item_id for item in run.items()]
    there = Counter[tuple[str, bool]]()
    new: dict[tuple[str, bool], list[Given]] = {}
    for each in read.given:
        done = _decided(before[each.adjudicated], each)
        if done:
            there[each.reviewer, each.adjudicated] += 1
        else:
            new.setdefault((each.reviewer, each.adjudicated), []).append(each)
    notes: list[str] = []
    with contextlib.ExitStack() as stack:
        journals = {
            (reviewer, adjudicated): stack.enter_context(
                Journal.open(
                    _folder(run, adjudicated), reviewer, f"import of {path.name}", study=run.study, known=known
                )
            )
            for reviewer, adjudicated in sorted(new, key=lambda key: (not _journal(run, *key).exists(), key))
        }
        for key, journal in journals.items():
            raise_if_any(_conflicts([journal.file], new[key]), read, path)
        for (reviewer, adjudicated), journal in journals.items():
            notes += journal.notes
            added = 0
            for each in new[reviewer, adjudicated]:
                if journal.file.standing.is_decided(each.task.key):
                    there[reviewer, adjudicated] += 1
                    continue
                journal.decide(
                    each.task,
                    each.choice,
                    seconds=each.seconds,
                    reason=each.reason,
                    note=each.note,
                    scores=each.scores,
                )
                added += 1
            new[reviewer, adjudicated] = new[reviewer, adjudicated][:added]
    for reviewer, adjudicated in sorted({*new, *there}):
        added, old = len(new.get((reviewer, adjudicated), [])), there[reviewer, adjudicated]
        what = "adjudicated labels" if adjudicated else "decisions"
        notes.append(f"{reviewer}: {added} {what} taken in" + (f", {old} were there already" if old else ""))
    return notes or [f"{shown(path)}: no decision was found; nothing was taken in"]


def _wrong(run: Run, given: Given) -> list[str]:
    """What a journal would refuse of a decision."""
    told = []
    try:
        check_reviewer(given.reviewer)
    except LabelError as error:
        told.append(f"{error}; give another name with --reviewer OLD=NEW")
    if given.choice == "tie" and "TIE" not in words_of(run.study):
        told.append(f"a tie; the study allows {', '.join(words_of(run.study))}")
    if given.choice == "cannot_judge" and not given.reason.strip():
        told.append("cannot judge without a reason; say in reason why")
    return told


def _twice(given: Sequence[Given]) -> list[str]:
    first: dict[tuple[str, bool, Key], str] = {}
    problems = []
    for each in given:
        key = (each.reviewer, each.adjudicated, each.task.key)
        if first.setdefault(key, each.where) != each.where:
            problems.append(f"{each.where}: {each.reviewer} decides the same as in {first[key]} once more")
    return problems


def _conflicts(files: Sequence[JournalFile[LabelRecord]], given: Sequence[Given]) -> list[str]:
    """Decisions that differ from what a journal holds: the reviewer's own, of adjudicators any."""
    problems = []
    for each in given:
        record = _decided(files, each)
        if record is None:
            continue
        old = _decision(record.choice, record.task)
        name = each.task.item_id
        if old != each.decision:
            told = "cannot judge" if old == "cannot_judge" else old
            problems.append(
                f"{each.where}: {each.reviewer} has {each.told} on item {name}, but the journal of "
                f"{record.reviewer} has {told} already; a decision is never changed"
            )
        elif each.scores and _by_system(each.scores, each.task) != _by_system(record.scores, record.task):
            problems.append(
                f"{each.where}: {each.reviewer} has other scores on item {name} than the journal of {record.reviewer}"
            )
    return problems


def _decided(files: Sequence[JournalFile[LabelRecord]], given: Given) -> LabelRecord | None:
    """The initial decision on the same task; on an adjudicated one whoever made it."""
    for file in files:
        if given.adjudicated or file.reviewer == given.reviewer:
            record = file.standing.initial().get(given.task.key)
            if record is not None:
                return record
    return None


def _by_system(scores: Mapping[str, Mapping[str, float]], task: LabelTask) -> dict[str, dict[str, float]]:
    named = zip(("left", "right"), task.shown, strict=True)
    return {system: dict(scores[side]) for side, system in named if scores.get(side)}


def _decision(choice: str, task: LabelTask) -> str:
    return {"left": task.shown[0], "right": task.shown[1], "tie": TIE}.get(choice, choice)


def _journal(run: Run, reviewer: str, adjudicated: bool) -> Path:
    return _folder(run, adjudicated) / f"{reviewer}.jsonl"


def _folder(run: Run, adjudicated: bool) -> Path:
    return run.path("labelling", "adjudication") if adjudicated else run.path("labelling")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
