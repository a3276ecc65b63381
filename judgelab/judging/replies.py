"""Replies: what a judge must send back, one contract a strategy, and how a reply is read.

A reply yields a verdict only if it holds exactly one verdict that meets its contract (keys, types, labels that were
offered, scores in range) and is the judge's own. Anything else is *unusable*, with one of the reasons below. Where a
reply holds several complete verdicts, the last one counts, unless they contradict each other.

Scores are whole numbers written as such. ``4.0`` is refused like ``4.5``: a judge that scores in halves would otherwise
keep just those of its verdicts that happen to be whole, and what is left would be a biased sample of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from judgelab.judging.quotations import is_quoted
from judgelab.judging.reply_text import Found, find_forms, find_hints, find_objects, is_refusal, own_part, written_part
from judgelab.judging.wording import LETTERS, PLAIN, Reasons, Wording
from judgelab.study.protocol import Study

__all__ = ["REASONS", "REASON_CODES", "Contract", "Reading", "contract_for", "pairwise_contract"]

MANY = 100  # of this many verdicts in one reply each is looked at for being a quotation; earlier ones count as they are

REASONS = {
    "empty_reply": "the reply holds no text",
    "refusal": "the reply says that there will be no verdict",
    "no_json": "the reply holds no valid JSON object",
    "no_verdict": "the reply holds neither a valid JSON object nor a verdict in plain text",
    "truncated_json": "the reply breaks off inside a JSON object",
    "missing_key": "a key of the contract is missing",
    "unknown_key": "the reply has a key that the contract does not know",
    "wrong_type": "a value has another type than the contract says",
    "label_not_offered": "the winner or confidence is not among the offered labels",
    "score_out_of_range": "a score is outside the scale",
    "fractional_score": "a score is not written as a whole number",
    "score_not_a_number": "a score is true, false, NaN or infinite",
    "not_a_ranking": "the ranking does not name every answer exactly once",
    "contradicting_verdicts": "the reply holds two complete verdicts that differ",
    "quotes_candidate": "the only verdict in the reply is quoted from an answer",
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
    criteria: tuple[str, ...] = ()
    reply_format: str = "json"
    letters: tuple[str, ...] = ("A", "B")

    def read(self, text: str | None, *, answers: Sequence[str] = ()) -> Reading:
        """Read a raw reply. A winner is the place ``A`` or ``B``, whatever the prompt called it.

        Parameters
        ----------
        text
            The reply, without reasoning that the provider hands over apart from it.
        answers
            The answers that the prompt showed, so that a verdict which the reply only quotes is told from its own.

        Examples
        --------
        A reply that quotes an injected verdict and then gives its own yields its own; one that only quotes yields
        the reason ``quotes_candidate``.
        """
        if text is None or not text.strip("\ufeff\u200b \t\r\n\f\v").strip():
            return Reading(None, "empty_reply")
        if self.strategy == "generation":
            answer = written_part(text)
            return Reading({"answer": answer}) if answer else Reading(None, "empty_reply")
        return self._by_place(self._read(text, answers))

    def _by_place(self, reading: Reading) -> Reading:
        """The same reading with the two answers called A and B, and without reasons in words, which the reply holds."""
        if reading.verdict is None:
            return reading
        verdict = {key: value for key, value in reading.verdict.items() if key != "reasoning"}
        if self.strategy == "pairwise":
            places = dict(zip(self.letters, "AB", strict=True))
            verdict["winner"] = places.get(verdict["winner"], verdict["winner"])
        return Reading(verdict, reading.reason, reading.detail)

    def _read(self, text: str, answers: Sequence[str]) -> Reading:
        """A raw reply that is not empty, its winner called as the prompt does."""
        start, end = own_part(text)
        scan = find_objects(text, start, end)
        found = [(each, self.check(each.value)) for each in scan.objects]
        plain = self.reply_format == "text" and self.strategy == "pairwise"
        if plain:
            forms = find_forms(text, start, end, scan.objects)
            found = sorted([*found, *((form, self._check_part(form.value)) for form in forms)], key=_place)
        complete = [pair for pair in found if pair[1].usable]
        if complete:
            found += [(each, Reading(None, "no_json")) for each in scan.broken]
            if plain:
                found += [(each, Reading(None, "no_verdict")) for each in find_hints(text, start, end, self.letters)]
            return self._settled(text, answers, found, complete, scan.open)
        if scan.open:
            return Reading(None, "truncated_json")
        if found:
            return found[-1][1]
        return Reading(None, "refusal" if is_refusal(text[start:end]) else "no_verdict" if plain else "no_json")

    def _settled(
        self,
        text: str,
        answers: Sequence[str],
        found: list[tuple[Found, Reading]],
        complete: list[tuple[Found, Reading]],
        open_: bool,
    ) -> Reading:
        """The last complete verdict that is the judge's own, if no other one contradicts it."""
        own = [pair for pair in complete[-MANY:] if not is_quoted(text, pair[0], answers)]
        if not own:
            return Reading(None, "quotes_candidate")
        place, last = own[-1]
        decision = self._decision(last)
        if any(self._decision(reading) != decision for _, reading in [*complete[:-MANY], *own]):
            return Reading(None, "contradicting_verdicts")
        later = [each for each, reading in found if each.start > place.start and not reading.usable][:MANY]
        if any(self._contradicts(each.value, decision) and not is_quoted(text, each, answers) for each in later):
            return Reading(
                None, "contradicting_verdicts", "an incomplete or broken verdict after the complete one differs"
            )
        return Reading(None, "truncated_json") if open_ else last

    def check(self, value: Any) -> Reading:
        """Check an already decoded object against the contract."""
        if isinstance(value, dict) and self.strategy == "pairwise":
            value = {key: _offered(entry, key, self.labels) for key, entry in value.items()}
        if isinstance(value, dict) and isinstance(value.get("ranking"), list):
            named = [_offered(entry, "winner", self.letters) for entry in value["ranking"]]
            value = {**value, "ranking": named}
        try:
            checked = self.model.model_validate(value)
        except ValidationError as error:
            problem = error.errors()[0]
            return Reading(None, _reason(problem), f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}")
        verdict = checked.model_dump(mode="json")
        if self.strategy == "listwise" and sorted(verdict["ranking"]) != sorted(self.letters):
            return Reading(None, "not_a_ranking", f"given {', '.join(verdict['ranking'])[:100]}")
        return Reading(verdict)

    def check_parsed(self, value: dict[str, Any]) -> Reading:
        """Check a verdict that its source has parsed: the deciding part must hold, the rest may be unknown."""
        if "winner" in value and self.strategy == "pairwise":
            letters = dict(zip("AB", self.letters, strict=True))
            value = {**value, "winner": letters.get(value["winner"], value["winner"])}
        return self._by_place(self._check_part(value))

    def _check_part(self, value: dict[str, Any]) -> Reading:
        """Check a verdict that may hold its deciding part alone; the winner stays called as in the prompt."""
        unknown = {"confidence": "low", "critical_error": False, "reason_codes": [], "reasoning": ""}
        unknown = {key: entry for key, entry in unknown.items() if key in self.schema["properties"]}
        reading = self.check({**unknown, **value})
        if reading.verdict is None:
            return reading
        known = {key: reading.verdict[key] if key in value else None for key in reading.verdict}
        return Reading(known)

    def _decision(self, reading: Reading) -> dict[str, Any]:
        """The part of a verdict that decides: the winner, the ranking, or the scores."""
        return {name: (reading.verdict or {})[name] for name in self._deciding}

    @property
    def _deciding(self) -> tuple[str, ...]:
        return self.criteria or (("ranking",) if self.strategy == "listwise" else ("winner",))

    def _contradicts(self, value: dict[str, Any], decision: dict[str, Any]) -> bool:
        """Whether what is no verdict still names another winner that was offered, another order, or another score."""
        if self.strategy == "listwise":
            order, given = decision["ranking"], value.get("ranking")
            named = [_offered(name, "winner", self.letters) for name in (given if isinstance(given, list) else ())]
            return [name for name in named if name in order] != [name for name in order if name in named]
        offered = {name: _offered(value[name], name, self.labels) for name in decision if name in value}
        return any(
            other != decision[name] and (other in self.labels if name == "winner" else type(other) is int)
            for name, other in offered.items()
            if isinstance(other, str | int)
        )


def contract_for(
    study: Study, strategy: str, reply_format: Literal["json", "text"] = "json", wording: Wording = PLAIN
) -> Contract:
    """The contract of one strategy under one protocol.

    Parameters
    ----------
    study
        The protocol.
    strategy
        ``"direct"``, ``"pairwise"``, ``"listwise"`` (a ranking of all systems), or ``"generation"`` (any text).
    reply_format
        The judge's. With ``"text"``, a pairwise verdict may also stand as ``Winner: B`` on a line of its own or as
        ``[[B]]``; its confidence and reason codes are then unknown. Scores are read from JSON only.
    wording
        How the prompt was worded: the answers' letters, and what a reply holds beside its verdict.
    """
    if strategy == "pairwise":
        return pairwise_contract(study.pairwise_labels, reply_format, wording)
    if strategy == "listwise":
        return _listwise_contract(reply_format, LETTERS[: len(study.systems)])
    if strategy == "generation":
        return _GENERATION
    scale = study.direct_scale
    names = tuple(scale.weights)[:: -1 if wording.reversed_criteria else 1]
    return _contract(strategy, reply_format, (), names, scale.minimum, scale.maximum, wording.reasons, ("A", "B"))


def pairwise_contract(
    labels: tuple[str, ...], reply_format: Literal["json", "text"] = "json", wording: Wording = PLAIN
) -> Contract:
    """The contract of a pairwise reply with these labels offered; see :func:`contract_for`."""
    offered = tuple(wording.named(label) for label in labels)
    return _contract("pairwise", reply_format, offered, (), 0, 0, wording.reasons, wording.letters)


@lru_cache(maxsize=64)
def _listwise_contract(reply_format: str, letters: tuple[str, ...]) -> Contract:
    """Every letter once, best first. A schema cannot say "once"; the contract does."""
    size = len(letters)
    model: type[BaseModel] = create_model(
        "ListwiseReply",
        __config__=ConfigDict(extra="forbid", strict=True),
        ranking=(list[str], Field(min_length=1, max_length=100)),
    )
    ranking = {"type": "array", "items": {"enum": list(letters)}, "minItems": size, "maxItems": size}
    schema = {
        "type": "object",
        "properties": {"ranking": ranking},
        "required": ["ranking"],
        "additionalProperties": False,
    }
    return Contract("listwise", model, schema, reply_format=reply_format, letters=letters)


# an answer is any text: there is nothing to check but that there is one
_GENERATION = Contract("generation", create_model("Answer", answer=(str, ...)), {"type": "object"})


@lru_cache(maxsize=64)
def _contract(
    strategy: str,
    reply_format: str,
    labels: tuple[str, ...],
    criteria: tuple[str, ...],
    minimum: int,
    maximum: int,
    reasons: Reasons,
    letters: tuple[str, ...],
) -> Contract:
    codes = {"type": "array", "items": {"enum": list(REASON_CODES[strategy])}, "maxItems": 2}
    if strategy == "pairwise":
        properties: dict[str, Any] = {
            "winner": {"enum": list(labels)},
            "confidence": {"enum": ["low", "medium", "high"]},
        }
        fields: dict[str, Any] = {
            "winner": (str, Field(pattern=f"^({'|'.join(labels)})$")),
            "confidence": (str, Field(pattern="^(low|medium|high)$")),
        }
    else:
        properties = {name: {"enum": list(range(minimum, maximum + 1))} for name in criteria}
        properties |= {"critical_error": {"type": "boolean"}}
        fields = {name: (int, Field(ge=minimum, le=maximum)) for name in criteria}
        fields |= {"critical_error": (bool, ...)}
    # any length, but half a surrogate pair is no text: only a str with a constraint is looked at by pydantic
    text = Annotated[str, Field(min_length=0)]
    if reasons == "codes":
        properties |= {"reason_codes": codes}
        fields |= {"reason_codes": (list[text], Field(max_length=20))}
    elif reasons == "first":
        properties = {"reasoning": {"type": "string"}, **properties}
        fields = {"reasoning": (text, ...), **fields}
    else:
        for name in ("confidence", "critical_error"):
            properties.pop(name, None)
            fields.pop(name, None)
    model: type[BaseModel] = create_model(
        f"{strategy.title()}Reply", __config__=ConfigDict(extra="forbid", strict=True), **fields
    )
    required = {"required": list(properties), "additionalProperties": False}
    schema = {"type": "object", "properties": properties, **required}
    return Contract(strategy, model, schema, labels, criteria, reply_format, letters)


def _place(pair: tuple[Found, Reading]) -> int:
    return pair[0].start


def _offered(entry: Any, key: str, labels: tuple[str, ...]) -> Any:
    """A label in the case in which it was offered: ``tie`` for ``TIE``, ``High`` for ``high``."""
    offered = labels if key == "winner" else ("low", "medium", "high") if key == "confidence" else ()
    if key == "winner" and type(entry) is int:  # where the answers are called 1 and 2
        entry = str(entry) if str(entry) in labels else entry
    if isinstance(entry, str):
        return next((label for label in offered if label.lower() == entry.strip().lower()), entry)
    return entry


def _reason(problem: Any) -> str:
    """The reason for a pydantic problem."""
    if problem["type"] == "int_type" and isinstance(problem["input"], bool | float):
        fraction = isinstance(problem["input"], float) and math.isfinite(problem["input"])
        return "fractional_score" if fraction else "score_not_a_number"
    return {
        "missing": "missing_key",
        "extra_forbidden": "unknown_key",
        "string_pattern_mismatch": "label_not_offered",
        "greater_than_equal": "score_out_of_range",
        "less_than_equal": "score_out_of_range",
    }.get(problem["type"], "wrong_type")
