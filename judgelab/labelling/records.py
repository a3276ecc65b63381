"""One line of a reviewer's journal, and which of its decisions is the initial one.

A line is a JSON object: record (its running number), event, reviewer, session, number, kind, item_id, system_x,
system_y, shown (left, right), choice, reason, scores (by side and criterion), note, seconds, at (UTC), undo_of. There
are three events:

========  =============================================================================
decision  a choice
undo      takes back the decision of the record ``undo_of``, which stays where it is
shown     the pair was put before the reviewer
========  =============================================================================
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, TypeGuard, cast

from judgelab.labelling.tasks import KINDS, Key, Kind
from judgelab.study.protocol import TIE, HumanLabels, Study

__all__ = ["CHOICES", "EVENTS", "SIDES", "LabelRecord", "Rules", "Standing", "read_record"]

EVENTS = ("decision", "undo", "shown")
CHOICES = ("left", "right", "tie", "cannot_judge")
SIDES = ("left", "right")
Scores = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class LabelRecord:
    """One line of a journal. ``choice`` is empty where nothing was decided; ``scores`` may be."""

    record: int
    event: str
    reviewer: str
    session: str
    number: int
    kind: Kind
    item_id: str
    system_x: str
    system_y: str
    shown: tuple[str, str]
    choice: str
    reason: str
    scores: Scores
    note: str
    seconds: float
    at: str
    undo_of: int | None

    @property
    def key(self) -> Key:
        """What was decided: kind, item_id, system_x, system_y."""
        return (self.kind, self.item_id, self.system_x, self.system_y)

    @property
    def preference(self) -> str | None:
        """The preferred system or ``TIE``; None where the reviewer could not judge, or nothing was decided."""
        by_choice = {"left": self.shown[0], "right": self.shown[1], "tie": TIE}
        return by_choice.get(self.choice)

    def total(self, system: str, weights: Mapping[str, float]) -> float:
        """The weighted mean of a system's scores; NaN unless there is one for each criterion of ``weights``."""
        given = self.scores.get(SIDES[self.shown.index(system)], {})
        if set(given) != set(weights):
            return float("nan")
        return math.fsum(weights[name] * given[name] for name in weights) / math.fsum(weights.values())

    @property
    def line(self) -> bytes:
        """The record as a line of UTF-8; half a surrogate pair in a note stands as its JSON escape."""
        text = json.dumps(asdict(self), ensure_ascii=False, allow_nan=False)
        return text.encode("utf-8", errors="backslashreplace") + b"\n"


@dataclass(frozen=True)
class Rules:
    """What a record may hold in one study. ``known``: every item id that may be labelled; None: any."""

    systems: tuple[str, ...]
    criteria: tuple[str, ...]
    scale: tuple[float, float]
    known: Collection[str] | None = None

    @classmethod
    def of(cls, study: Study, known: Collection[str] | None = None) -> Rules:
        """The rules of a protocol; scores are on the scale of its human labels, without such on its direct scale."""
        direct = study.direct_scale
        source = study.human_labels or HumanLabels(path="", score_minimum=direct.minimum, score_maximum=direct.maximum)
        known = None if known is None else frozenset(known)
        return cls(study.system_names, tuple(direct.weights), (source.score_minimum, source.score_maximum), known)


def read_record(values: Any, rules: Rules) -> LabelRecord:
    """A parsed line as a record.

    Raises
    ------
    ValueError
        Saying the first thing that is wrong with it. Keys that are not known are ignored.
    """
    if not isinstance(values, dict):
        raise ValueError(f"holds {type(values).__name__}, an object is needed")
    fields = _Fields(values)
    event = fields.one_of("event", EVENTS)
    record = LabelRecord(
        record=fields.whole("record"),
        event=event,
        reviewer=fields.text("reviewer"),
        session=fields.text("session"),
        number=fields.whole("number"),
        kind=cast(Kind, fields.one_of("kind", KINDS)),
        item_id=fields.text("item_id"),
        system_x=fields.one_of("system_x", rules.systems),
        system_y=fields.one_of("system_y", rules.systems),
        shown=_sides(values),
        choice=fields.one_of("choice", CHOICES) if event == "decision" else "",
        reason=fields.text("reason", needed=event == "decision" and values.get("choice") == "cannot_judge"),
        scores=_scores(values.get("scores") or {}, rules),
        note=fields.text("note", needed=False),
        seconds=fields.seconds(),
        at=fields.moment(),
        undo_of=fields.whole("undo_of") if event == "undo" else None,
    )
    if rules.systems.index(record.system_x) >= rules.systems.index(record.system_y):
        raise ValueError(
            f"system_x {record.system_x!r} must stand before system_y {record.system_y!r} in {', '.join(rules.systems)}"
        )
    if sorted(record.shown) != sorted((record.system_x, record.system_y)):
        raise ValueError(f"shown is {list(record.shown)}; it must hold {record.system_x} and {record.system_y}")
    if rules.known is not None and record.item_id not in rules.known:
        raise ValueError(f"item_id {_short(record.item_id)} is not an item of the study")
    return record


@dataclass(frozen=True)
class _Fields:
    """The keys of a line, each read by its type."""

    values: Mapping[str, Any]

    def text(self, name: str, *, needed: bool = True) -> str:
        value = self.values.get(name, None if needed else "")
        if not isinstance(value, str):
            raise ValueError(f"{name} is {_short(value)}; a text is needed")
        if needed and not value.strip():
            raise ValueError(f"{name} is empty")
        return value

    def one_of(self, name: str, allowed: Collection[str]) -> str:
        value = self.values.get(name)
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name} is {_short(value)}; allowed are {', '.join(allowed)}")
        return value

    def whole(self, name: str) -> int:
        value = self.values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} is {_short(value)}; a whole number from 1 is needed")
        return value

    def seconds(self) -> float:
        value = self.values.get("seconds")
        if not _is_number(value) or not 0 <= float(value) < math.inf:
            raise ValueError(f"seconds is {_short(value)}; a number from 0 is needed")
        return float(value)

    def moment(self) -> str:
        value = self.text("at")
        try:
            zoned = datetime.fromisoformat(value).tzinfo is not None
        except ValueError:
            zoned = False
        if not zoned:
            raise ValueError(f"at is {_short(value)}; a time such as 2024-07-19T09:30:00+00:00 is needed")
        return value


def _sides(values: Mapping[str, Any]) -> tuple[str, str]:
    shown = values.get("shown")
    if not isinstance(shown, list | tuple) or len(shown) != 2 or not all(isinstance(name, str) for name in shown):
        raise ValueError(f"shown is {_short(shown)}; the left and the right system are needed")
    return shown[0], shown[1]


def _scores(given: Any, rules: Rules) -> dict[str, dict[str, float]]:
    """Scores by side and criterion; a side or a criterion may be left out."""
    if not isinstance(given, Mapping) or not set(given) <= set(SIDES):
        raise ValueError(f"scores is {_short(given)}; scores by criterion are needed under left and right")
    low, high = rules.scale
    for side, scores in given.items():
        if not isinstance(scores, Mapping) or not set(scores) <= set(rules.criteria):
            allowed = ", ".join(rules.criteria)
            raise ValueError(f"scores, {side}, is {_short(scores)}; allowed are scores for {allowed}")
        for name, score in scores.items():
            if not _is_number(score) or not low <= float(score) <= high:
                raise ValueError(f"scores, {side}, {name} is {_short(score)}; allowed is {low:g} to {high:g}")
    return {side: dict(scores) for side, scores in given.items()}


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


@dataclass
class Standing:
    """Which decisions count, record by record.

    The initial decision on a pair is the first that was not undone before another pair was shown. A pair counts as
    shown from its record ``shown`` on or, without one, from the decision on it. What is decided after that, or undone
    after that, is kept and changes nothing.
    """

    decisions: dict[Key, list[LabelRecord]] = field(default_factory=lambda: defaultdict(list))
    _fixed: dict[Key, LabelRecord] = field(default_factory=dict)
    _current: Key | None = None
    _open: list[LabelRecord] = field(default_factory=list)
    _standing: dict[int, LabelRecord] = field(default_factory=dict)

    @property
    def last(self) -> LabelRecord | None:
        """The last decision that was not undone."""
        return next(reversed(self._standing.values()), None)

    def initial(self) -> dict[Key, LabelRecord]:
        """The initial decision on each pair that has one, in the order of their records."""
        both = dict(self._fixed)
        if self._current is not None and self._open:
            both.setdefault(self._current, self._open[0])
        return dict(sorted(both.items(), key=lambda entry: entry[1].record))

    def is_decided(self, key: Key) -> bool:
        """Whether a pair has an initial decision."""
        return key in self._fixed or (key == self._current and bool(self._open))

    def later(self, key: Key) -> list[LabelRecord]:
        """The decisions on a pair that came after the initial one, undone or not."""
        first = self._fixed.get(key) or (self._open[0] if key == self._current and self._open else None)
        own = self.decisions.get(key, [])
        return own[own.index(first) + 1 :] if first else []

    def add(self, record: LabelRecord) -> None:
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
        """Another pair is shown: the first decision that stands on the current one is its initial decision."""
        if self._current is not None and self._open:
            self._fixed.setdefault(self._current, self._open[0])
        self._open = []


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
