"""One line of a reviewer's journal.

A line is a JSON object: record (its running number), event, reviewer, session, number, kind, item_id, system_x,
system_y, shown (left, right), choice, reason, scores (by side and criterion), note, seconds, at (UTC), undo_of. There
are three events:

========  =============================================================================
decision  a choice
undo      takes back the decision of the record ``undo_of``, which stays where it is
shown     the task was put before the reviewer
========  =============================================================================

That is a line on a pair of answers. One on all answers of an item, put in order, is
:class:`judgelab.labelling.rank_records.RankRecord`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, TypeGuard, cast

from judgelab.labelling.standing import Standing
from judgelab.labelling.tasks import KINDS, Key, Kind, LabelTask
from judgelab.study.protocol import TIE, HumanLabels, Study

__all__ = [
    "CHOICES",
    "EVENTS",
    "SIDES",
    "Fields",
    "LabelRecord",
    "Rules",
    "Standing",
    "brief",
    "is_number",
    "line_of",
    "read_record",
]

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
    def task(self) -> LabelTask:
        """What was decided, as it stood in the reviewer's list."""
        return LabelTask(self.item_id, (self.system_x, self.system_y), self.shown, self.kind, self.number)

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
        return line_of(self)


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

    def read(self, values: Any) -> LabelRecord:
        """As :func:`read_record`."""
        return read_record(values, self)


def read_record(values: Any, rules: Rules) -> LabelRecord:
    """A parsed line as a record.

    Raises
    ------
    ValueError
        Saying the first thing that is wrong with it. Keys that are not known are ignored.
    """
    fields = Fields.of(values)
    record = LabelRecord(
        **fields.common(CHOICES, rules.known),
        system_x=fields.one_of("system_x", rules.systems),
        system_y=fields.one_of("system_y", rules.systems),
        shown=_sides(values),
        scores=_scores(values.get("scores") or {}, rules),
    )
    if rules.systems.index(record.system_x) >= rules.systems.index(record.system_y):
        raise ValueError(
            f"system_x {record.system_x!r} must stand before system_y {record.system_y!r} in {', '.join(rules.systems)}"
        )
    if sorted(record.shown) != sorted((record.system_x, record.system_y)):
        raise ValueError(f"shown is {list(record.shown)}; it must hold {record.system_x} and {record.system_y}")
    return record


def line_of(record: Any) -> bytes:
    """The fields of a record as a line of UTF-8; half a surrogate pair in a note stands as its JSON escape."""
    text = json.dumps(asdict(record), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", errors="backslashreplace") + b"\n"


@dataclass(frozen=True)
class Fields:
    """The keys of a line, each read by its type. ValueError where a value is not what it must be."""

    values: Mapping[str, Any]

    @classmethod
    def of(cls, values: Any) -> Fields:
        """The keys of a parsed line, if it is an object."""
        if not isinstance(values, dict):
            raise ValueError(f"holds {type(values).__name__}, an object is needed")
        return cls(values)

    def common(self, choices: Collection[str], known: Collection[str] | None) -> dict[str, Any]:
        """What records of every sort hold, by name; ``known``: every item id that there may be, None: any."""
        event = self.one_of("event", EVENTS)
        cannot = event == "decision" and self.values.get("choice") == "cannot_judge"
        common = {
            "record": self.whole("record"),
            "event": event,
            "reviewer": self.text("reviewer"),
            "session": self.text("session"),
            "number": self.whole("number"),
            "kind": cast(Kind, self.one_of("kind", KINDS)),
            "item_id": self.text("item_id"),
            "choice": self.one_of("choice", choices) if event == "decision" else "",
            "reason": self.text("reason", needed=cannot),
            "note": self.text("note", needed=False),
            "seconds": self.seconds(),
            "at": self.moment(),
            "undo_of": self.whole("undo_of") if event == "undo" else None,
        }
        if known is not None and common["item_id"] not in known:
            raise ValueError(f"item_id {brief(common['item_id'])} is not an item of the study")
        return common

    def text(self, name: str, *, needed: bool = True) -> str:
        """A text; ``needed``: not an empty one."""
        value = self.values.get(name, None if needed else "")
        if not isinstance(value, str):
            raise ValueError(f"{name} is {brief(value)}; a text is needed")
        if needed and not value.strip():
            raise ValueError(f"{name} is empty")
        return value

    def one_of(self, name: str, allowed: Collection[str]) -> str:
        """One of the texts that are allowed."""
        value = self.values.get(name)
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name} is {brief(value)}; allowed are {', '.join(allowed)}")
        return value

    def whole(self, name: str) -> int:
        """A whole number from 1."""
        value = self.values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} is {brief(value)}; a whole number from 1 is needed")
        return value

    def seconds(self) -> float:
        """A time from 0."""
        value = self.values.get("seconds")
        if not is_number(value) or not 0 <= float(value) < math.inf:
            raise ValueError(f"seconds is {brief(value)}; a number from 0 is needed")
        return float(value)

    def moment(self) -> str:
        """A time of day with its zone, as ISO 8601."""
        value = self.text("at")
        try:
            zoned = datetime.fromisoformat(value).tzinfo is not None
        except ValueError:
            zoned = False
        if not zoned:
            raise ValueError(f"at is {brief(value)}; a time such as 2024-07-19T09:30:00+00:00 is needed")
        return value


def _sides(values: Mapping[str, Any]) -> tuple[str, str]:
    shown = values.get("shown")
    if not isinstance(shown, list | tuple) or len(shown) != 2 or not all(isinstance(name, str) for name in shown):
        raise ValueError(f"shown is {brief(shown)}; the left and the right system are needed")
    return shown[0], shown[1]


def _scores(given: Any, rules: Rules) -> dict[str, dict[str, float]]:
    """Scores by side and criterion; a side or a criterion may be left out."""
    if not isinstance(given, Mapping) or not set(given) <= set(SIDES):
        raise ValueError(f"scores is {brief(given)}; scores by criterion are needed under left and right")
    low, high = rules.scale
    for side, scores in given.items():
        if not isinstance(scores, Mapping) or not set(scores) <= set(rules.criteria):
            allowed = ", ".join(rules.criteria)
            raise ValueError(f"scores, {side}, is {brief(scores)}; allowed are scores for {allowed}")
        for name, score in scores.items():
            if not is_number(score) or not low <= float(score) <= high:
                raise ValueError(f"scores, {side}, {name} is {brief(score)}; allowed is {low:g} to {high:g}")
    return {side: dict(scores) for side, scores in given.items()}


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether a value of a line is a number that can be reckoned with: no truth value, no infinity."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def brief(value: object) -> str:
    """A value as an error shows it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
