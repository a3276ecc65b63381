"""Judges of kind ``anthropic``: the Messages API."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import httpx

from judgelab.judging.judges.base import RefusedError, Reply
from judgelab.judging.judges.bodies import count, text_or_none
from judgelab.judging.judges.http import HttpClient, Question
from judgelab.study.configuration import AnthropicJudge
from judgelab.study.protocol import Study
from judgelab.study.terms import ResponseFormat

__all__ = ["AnthropicClient"]

TOOL = "verdict"
# The vocabulary of the ledger's finish_reason is that of the chat dialect, so that judges can be compared.
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class AnthropicClient(HttpClient):
    """Asks ``POST {base_url}/v1/messages``. A schema is kept by a tool that the model must use."""

    what: ClassVar[str] = "message"
    formats: ClassVar[tuple[ResponseFormat, ...]] = ("json_schema", "none")

    def __init__(
        self, judge: AnthropicJudge, study: Study, *, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        super().__init__(judge, study, transport=transport)
        self._anthropic = judge

    def _path(self) -> str:
        return "messages" if self._base_url.rstrip("/").endswith("/v1") else "v1/messages"

    def _key_header(self, key: str) -> dict[str, str]:
        return {"x-api-key": key}

    def _static_headers(self) -> dict[str, str]:
        return {"anthropic-version": self._anthropic.anthropic_version, **super()._static_headers()}

    def _compose(self, question: Question) -> dict[str, Any]:
        judge = self._anthropic
        body: dict[str, Any] = {"model": judge.model, "max_tokens": judge.max_tokens}
        if self.capabilities.system_prompt:
            body["system"] = question.system
            user = question.user
        else:
            user = f"{question.system}\n\n{question.user}"
        body["messages"] = [{"role": "user", "content": user}]
        if judge.temperature is not None and not self._thinks:
            body["temperature"] = min(judge.temperature, 1.0)  # the API's scale ends at 1
        # a model that thinks may not be made to use a tool
        if self.capabilities.response_format == "json_schema" and not self._thinks:
            body["tools"] = [{"name": TOOL, "description": "Give the verdict.", "input_schema": dict(question.schema)}]
            body["tool_choice"] = {"type": "tool", "name": TOOL, "disable_parallel_tool_use": True}
        return body

    @property
    def _thinks(self) -> bool:
        thinking = self._anthropic.extra_body.get("thinking")
        return self.capabilities.reasoning or (
            isinstance(thinking, dict) and thinking.get("type", "disabled") != "disabled"
        )

    def _read(self, body: Any) -> Reply:
        stop = text_or_none(body.get("stop_reason"))
        blocks = body["content"]
        if stop is None and not blocks:
            raise ValueError("a message without content or stop_reason")
        thoughts = "".join(block.get("thinking") or "" for block in blocks if block["type"] == "thinking")
        reply = Reply(
            text=_answer(blocks, cut=_FINISH.get(stop or "") == "length"),
            model=text_or_none(body.get("model")),
            finish_reason=_FINISH.get(stop, stop) if stop else None,
            reasoning=thoughts or None,
            **_usage(body.get("usage")),
        )
        if stop == "refusal":  # not the model's own words: the provider's classifiers broke the reply off
            raise RefusedError("content_filter", "the provider stopped the reply (refusal)", reply=reply)
        return reply


def _answer(blocks: list[dict[str, Any]], *, cut: bool) -> str | None:
    """The input of the tool as JSON, or else the text.

    The input of a tool arrives as an object even if generation was cut off in it; then it is left open, so that it is
    read as what it is: JSON that breaks off.
    """
    inputs = [block["input"] for block in blocks if block["type"] == "tool_use" and block.get("name") == TOOL]
    if inputs:
        whole = "\n".join(json.dumps(value, ensure_ascii=False) for value in inputs)
        return whole[:-1] if cut else whole
    return "".join(block["text"] for block in blocks if block["type"] == "text") or None


def _usage(usage: Any) -> dict[str, Any]:
    """Tokens; ``input_tokens`` leaves out what was written to and read from the cache."""
    if not isinstance(usage, dict):
        return {}
    read, written = (count(usage.get(f"cache_{way}_input_tokens")) for way in ("read", "creation"))
    rest = count(usage.get("input_tokens"))
    return {
        "tokens_in": None if rest is None else rest + (read or 0) + (written or 0),
        "tokens_out": count(usage.get("output_tokens")),
        "tokens_cached": read,
    }
