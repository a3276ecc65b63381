"""Replies: what a judge must send back, one contract a strategy, and how a reply is read.

A reply yields a verdict only if it holds exactly one verdict that meets its contract (keys, types, labels that were
offered, scores in range). Anything else is *unusable*, with one of the reasons below. Where a reply holds several
complete verdicts, the last one counts, unless they contradict each other.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from judgelab.study.protocol import Study

__all__ = ["REASONS", "REASON_CODES", "Contract", "Reading", "contract_for"]

_BEGUN = re.compile(r'\{\s*(?:"|$)')  # what begins as a JSON object does; "{x, y}" in prose does not
_BRACE = re.compile(r"[{}]")

REASONS = {
    "empty_reply": "the reply holds no text",
    "no_json": "the reply holds no valid JSON object",
    "truncated_json": "the reply breaks off inside a JSON object",
    "missing_key": "a key of the contract is missing",
    "unknown_key": "the reply has a key that the contract does not know",
    "wrong_type": "a value has another type than the contract says",
    "label_not_offered": "the winner or confidence is not among the offered labels",
    "score_out_of_range": "a score is outside the scale",
    "contradicting_verdicts": "the reply holds two complete verdicts that differ",
    "context_too_long": "the prompt does not fit the model",
    "content_filter": "the provider withheld the reply",
    "refused_by_endpoint": "the endpoint refused the request",
    "transient_error": "the endpoint failed each time it was asked",
    "timeout": "no reply within the protocol's time-out",
    "not_recorded": "the record holds no such call",
    "not_judged": "the call has not been made",
}

REASON_CODES = {
    "direct": ("CORRECT", "WRONG_CLAIM", "OFF_TOPIC", "INCOMPLETE", "UNSAFE", "UNVERIFIED", "UNCLEAR"),
    "pairwise": ("MORE_CORRECT", "MORE_RELEVANT", "MORE_COMPLETE", "SAFER", "CLEARER", "NO_DIFFERENCE"),
}


@dataclass(frozen=True)
class Reading:
    """What came of a reply: a verdict, or the reason why there is none."""

    verdict: dict[str, Any] | None
    reason: str | None = None
    detail: str = ""

    @property
    def usable(self) -> bool:
        """Whether the reply yielded a verdict."""
        return self.verdict is not None


@dataclass(frozen=True)
class Contract:
    """What a strategy's reply must hold."""

    strategy: str
    model: type[BaseModel]
    schema: dict[str, Any]
    labels: tuple[str, ...] = ()

    def read(self, text: str | None) -> Reading:
        """Read a raw reply."""
        if text is None or not text.strip():
            return Reading(None, "empty_reply")
        objects, broken = _json_objects(_without_thinking(text))
        if not objects:
            return Reading(None, "truncated_json" if broken else "no_json")
        readings = [self.check(value) for value in objects]
        usable = [reading for reading in readings if reading.usable]
        if not usable:
            return readings[-1]
        if any(self._decision(reading) != self._decision(usable[-1]) for reading in usable):
            return Reading(None, "contradicting_verdicts")
        if broken:
            return Reading(None, "truncated_json")
        return usable[-1]

    def check(self, value: Any) -> Reading:
        """Check an already decoded object against the contract."""
        if isinstance(value, dict) and self.strategy == "pairwise":
            value = {key: _offered(entry, key, self.labels) for key, entry in value.items()}
        try:
            checked = self.model.model_validate(value)
        except ValidationError as error:
            problem = error.errors()[0]
            return Reading(None, _reason(problem), f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}")
        return Reading(checked.model_dump(mode="json"))

    def check_parsed(self, value: dict[str, Any]) -> Reading:
        """Check a verdict that its source has parsed: the deciding part must hold, the rest may be unknown."""
        unknown: dict[str, Any] = (
            {"confidence": "low"} if self.strategy == "pairwise" else {"critical_error": False}
        ) | {"reason_codes": []}
        reading = self.check({**unknown, **value})
        if reading.verdict is None:
            return reading
        return Reading({key: reading.verdict[key] if key in value else None for key in reading.verdict})

    def _decision(self, reading: Reading) -> Any:
        """The part of a verdict that decides: the winner, or the scores."""
        verdict = reading.verdict or {}
        if self.strategy == "pairwise":
            return verdict["winner"]
        return {key: value for key, value in verdict.items() if key not in ("reason_codes", "critical_error")}


def contract_for(study: Study, strategy: str) -> Contract:
    """The contract of one strategy under one protocol."""
    codes = {"type": "array", "items": {"enum": list(REASON_CODES[strategy])}, "maxItems": 2}
    if strategy == "pairwise":
        labels = study.pairwise_labels
        properties: dict[str, Any] = {
            "winner": {"enum": list(labels)},
            "confidence": {"enum": ["low", "medium", "high"]},
            "reason_codes": codes,
        }
        fields: dict[str, Any] = {
            "winner": (str, Field(pattern=f"^({'|'.join(labels)})$")),
            "confidence": (str, Field(pattern="^(low|medium|high)$")),
        }
    else:
        labels = ()
        scale = study.direct_scale
        properties = {name: {"enum": list(range(scale.minimum, scale.maximum + 1))} for name in scale.weights}
        properties |= {"critical_error": {"type": "boolean"}, "reason_codes": codes}
        fields = {name: (int, Field(ge=scale.minimum, le=scale.maximum)) for name in scale.weights}
        fields |= {"critical_error": (bool, ...)}
    # any length, but half a surrogate pair is no text: only a str with a constraint is looked at by pydantic
    fields |= {"reason_codes": (list[Annotated[str, Field(min_length=0)]], Field(max_length=20))}
    model: type[BaseModel] = create_model(
        f"{strategy.title()}Reply", __config__=ConfigDict(extra="forbid", strict=True), **fields
    )
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return Contract(strategy=strategy, model=model, schema=schema, labels=labels)


def _without_thinking(text: str) -> str:
    """The reply without a thinking draft; a draft that never ends leaves nothing.

    Some chat templates put the opening tag into the prompt, so all that stands before a closing tag is draft.
    """
    text = re.split(r"</think(?:ing)?>", text, flags=re.IGNORECASE)[-1]
    return re.split(r"<think(?:ing)?>", text, maxsplit=1, flags=re.IGNORECASE)[0]


def _json_objects(text: str) -> tuple[list[Any], bool]:
    """Every complete top-level JSON object in the text, and whether an unfinished one follows the last."""
    decoder = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    found: list[Any] = []
    position, broken = 0, False
    while (start := text.find("{", position)) >= 0:
        try:
            value, position = decoder.raw_decode(text, start)
            found.append(value)
            broken = False
        except (ValueError, RecursionError):
            begun = _BEGUN.match(text, start) is not None
            end = _closed(text, start) if begun else start + 1
            broken = begun and end is None
            position = len(text) if end is None else end
    return found, broken


def _closed(text: str, start: int) -> int | None:
    """Where an object that is not valid JSON ends; None if it never does. What is nested in it is no reply."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _offered(entry: Any, key: str, labels: tuple[str, ...]) -> Any:
    """A label in the case in which it was offered: ``tie`` for ``TIE``, ``High`` for ``high``."""
    offered = labels if key == "winner" else ("low", "medium", "high") if key == "confidence" else ()
    if isinstance(entry, str):
        return next((label for label in offered if label.lower() == entry.strip().lower()), entry)
    return entry


def _reason(problem: Any) -> str:
    """The reason for a pydantic problem."""
    return {
        "missing": "missing_key",
        "extra_forbidden": "unknown_key",
        "string_pattern_mismatch": "label_not_offered",
        "greater_than_equal": "score_out_of_range",
        "less_than_equal": "score_out_of_range",
    }.get(problem["type"], "wrong_type")
