"""Judges of kind ``gemini``: Google's generateContent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import httpx

from judgelab.judging.judges.base import RefusedError, Reply
from judgelab.judging.judges.bodies import count, text_or_none
from judgelab.judging.judges.http import HttpClient, Question
from judgelab.study.configuration import GeminiJudge
from judgelab.study.protocol import Study

__all__ = ["GeminiClient", "gemini_schema"]

_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}  # the vocabulary of the chat dialect
_WITHHELD = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"}
# the part of OpenAPI's schema that the API takes; it answers any other key with an error
_KEPT = ("title", "description", "nullable", "minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength")


class GeminiClient(HttpClient):
    """Asks ``POST {base_url}/models/{model}:generateContent``. The key goes in a header, never in the address."""

    what: ClassVar[str] = "response of generateContent"

    def __init__(self, judge: GeminiJudge, study: Study, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        super().__init__(judge, study, transport=transport)
        self._gemini = judge

    def _path(self) -> str:
        model = self._gemini.model
        return f"{model if '/' in model else f'models/{model}'}:generateContent"  # tunedModels/x is whole already

    def _key_header(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def _compose(self, question: Question) -> dict[str, Any]:
        user = question.user if self.capabilities.system_prompt else f"{question.system}\n\n{question.user}"
        body: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": user}]}]}
        if self.capabilities.system_prompt:
            body["systemInstruction"] = {"parts": [{"text": question.system}]}
        body["generationConfig"] = self._generation(question)
        return body

    def _generation(self, question: Question) -> dict[str, Any]:
        judge, able = self._gemini, self.capabilities
        config: dict[str, Any] = {"maxOutputTokens": judge.max_tokens, "candidateCount": 1}
        if judge.temperature is not None and not able.reasoning:
            config["temperature"] = judge.temperature
        if judge.seed is not None and able.seed:
            config["seed"] = question.seed(judge)
        if able.response_format != "none":
            config["responseMimeType"] = "application/json"
        if able.response_format == "json_schema":
            config["responseSchema"] = gemini_schema(question.schema)
        if able.logprobs:
            config |= {"responseLogprobs": True, "logprobs": able.logprobs}
        return config

    def _read(self, body: Any) -> Reply:
        usage = _usage(body.get("usageMetadata"))
        model = text_or_none(body.get("modelVersion"))
        feedback = body.get("promptFeedback")
        blocked = feedback.get("blockReason") if isinstance(feedback, dict) else None
        if blocked:
            raise RefusedError("content_filter", f"prompt blocked: {blocked}", reply=Reply(None, model, **usage))
        candidate = body["candidates"][0]
        finish = text_or_none(candidate.get("finishReason"))
        content = candidate.get("content")
        parts = content.get("parts") or () if isinstance(content, dict) else ()
        if finish is None and not parts:
            raise ValueError("a candidate without content or finishReason")
        reply = Reply(
            text=_joined(parts, thought=False),
            model=model,
            finish_reason=_FINISH.get(finish, finish.lower()) if finish else None,
            reasoning=_joined(parts, thought=True),
            logprobs=_logprobs(candidate.get("logprobsResult")),
            **usage,
        )
        if finish in _WITHHELD:
            raise RefusedError("content_filter", f"reply withheld: {finish}", reply=reply)
        return reply


def gemini_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema in Gemini's subset: every part has a type, enums are of texts, and no further keys are named.

    Enums of integers become their range; what the range lets through beside them, the contract refuses.
    """
    kept: dict[str, Any] = {key: schema[key] for key in _KEPT if key in schema}
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if "anyOf" in schema:
        return {**kept, "anyOf": [gemini_schema(part) for part in schema["anyOf"]]}
    if values is not None:
        return {**kept, **_enum(values)}
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        kept["nullable"] = "null" in kind
        kind = next(name for name in kind if name != "null")
    kept["type"] = kind.upper()
    if "items" in schema:
        kept["items"] = gemini_schema(schema["items"])
    if "properties" in schema:
        kept["properties"] = {name: gemini_schema(part) for name, part in schema["properties"].items()}
        kept["required"] = list(schema.get("required", ()))
        kept["propertyOrdering"] = list(schema["properties"])
    return kept


def _enum(values: list[Any]) -> dict[str, Any]:
    if all(isinstance(value, bool) for value in values):
        return {"type": "BOOLEAN"}
    if all(isinstance(value, int) for value in values):
        return {"type": "INTEGER", "minimum": min(values), "maximum": max(values)}
    return {"type": "STRING", "enum": [str(value) for value in values]}


def _joined(parts: Any, *, thought: bool) -> str | None:
    """The text of the answer's parts, or of the thoughts'."""
    texts = [part["text"] for part in parts if "text" in part and bool(part.get("thought")) == thought]
    return "".join(texts) or None


def _usage(usage: Any) -> dict[str, Any]:
    """Tokens; the API counts thoughts apart from the candidates', and charges for them as for those."""
    if not isinstance(usage, dict):
        return {}
    made, thoughts = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
    return {
        "tokens_in": count(usage.get("promptTokenCount")),
        "tokens_out": None if made is None and thoughts is None else (made or 0) + (thoughts or 0),
        "tokens_cached": count(usage.get("cachedContentTokenCount")),
        "tokens_reasoning": thoughts,
    }


def _logprobs(result: Any) -> list[dict[str, Any]] | None:
    """Token by token: the token, its log-probability, and the alternatives."""
    chosen = result.get("chosenCandidates") if isinstance(result, dict) else None
    if not chosen:
        return None
    tops = result.get("topCandidates") or []
    return [
        {
            "token": str(entry["token"]),
            "logprob": entry["logProbability"],
            "top": [
                {"token": str(other["token"]), "logprob": other["logProbability"]}
                for other in (tops[place].get("candidates") or () if place < len(tops) else ())
            ],
        }
        for place, entry in enumerate(chosen)
    ]
