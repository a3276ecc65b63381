"""The three dialects as pure functions: requests are read and checked, responses and errors are built.

A ``read_`` function takes a request body, refuses one that the provider would refuse (AssertionError), and returns
``(system, user, schema or None)``. Nothing here comes from judgelab, so that the adapters are checked against it.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Any

__all__ = [
    "DIALECTS",
    "anthropic_error",
    "anthropic_response",
    "chat_error",
    "chat_response",
    "dialect_of",
    "gemini_error",
    "gemini_response",
    "read_anthropic_request",
    "read_chat_request",
    "read_gemini_request",
]

DIALECTS = ("chat", "anthropic", "gemini")

_numbers = count(1)  # a provider gives every response an id of its own

Parts = tuple[str | None, str, dict[str, Any] | None]


def dialect_of(path: str) -> str:
    """Which dialect a request's path belongs to."""
    plain = path.partition("?")[0]
    if plain.endswith("/v1/messages"):
        return "anthropic"
    if plain.endswith(":generateContent"):
        return "gemini"
    return "chat"


# --- requests


def read_chat_request(body: dict[str, Any]) -> Parts:
    """Messages and schema of an OpenAI-compatible request."""
    assert isinstance(body["model"], str)
    assert not {"max_tokens", "max_completion_tokens"} <= set(body), "one of the two token fields, not both"
    messages = body["messages"]
    roles = [message["role"] for message in messages]
    assert roles in (["system", "user"], ["user"]), roles
    assert all(isinstance(message["content"], str) for message in messages)
    system = messages[0]["content"] if roles[0] == "system" else None
    wanted = body.get("response_format", {"type": "text"})
    assert wanted["type"] in ("json_schema", "json_object", "text")
    schema = None
    if wanted["type"] == "json_schema":
        assert wanted["json_schema"]["name"]
        assert wanted["json_schema"]["strict"] is True
        schema = wanted["json_schema"]["schema"]
        assert schema["additionalProperties"] is False
    if "top_logprobs" in body:
        assert body["logprobs"] is True
        assert 0 <= body["top_logprobs"] <= 20
    return system, messages[-1]["content"], schema


def read_anthropic_request(body: dict[str, Any]) -> Parts:
    """Messages and schema (of the forced tool) of a request to Anthropic's Messages API."""
    known = {
        "model", "max_tokens", "messages", "system", "temperature", "tools", "tool_choice", "thinking", "metadata",
        "top_p", "top_k", "stop_sequences", "service_tier", "output_config",
    }  # fmt: skip
    assert set(body) <= known, f"extra inputs are not permitted: {set(body) - known}"
    assert isinstance(body["model"], str)
    assert isinstance(body["max_tokens"], int), "max_tokens is required"
    assert [message["role"] for message in body["messages"]] == ["user"], "system is a top-level field"
    thinking = body.get("thinking", {}).get("type", "disabled") != "disabled"
    if thinking:
        assert "temperature" not in body, "thinking takes no temperature"
        assert body["thinking"].get("budget_tokens", 0) < body["max_tokens"]
    assert 0 <= body.get("temperature", 0) <= 1
    schema = None
    if "tools" in body:
        (tool,) = body["tools"]
        assert not thinking, "thinking allows no forced tool"
        assert body["tool_choice"]["type"] == "tool"
        assert body["tool_choice"]["name"] == tool["name"]
        schema = tool["input_schema"]
        assert schema["type"] == "object"
    return body.get("system"), _joined(body["messages"][0]["content"]), schema


GEMINI_SCHEMA_KEYS = {
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required",
    "minimum", "maximum", "minLength", "maxLength", "pattern", "anyOf", "propertyOrdering", "items",
}  # fmt: skip


def read_gemini_request(body: dict[str, Any]) -> Parts:
    """Contents and schema of a request to Gemini's generateContent."""
    assert set(body) <= {"contents", "systemInstruction", "generationConfig", "safetySettings", "tools", "labels"}
    (content,) = body["contents"]
    assert content["role"] == "user"
    config = body.get("generationConfig", {})
    schema = config.get("responseSchema")
    if schema is not None:
        assert config["responseMimeType"] == "application/json", "a schema needs the type application/json"
        _check_gemini_schema(schema)
    if "logprobs" in config:
        assert config["responseLogprobs"] is True
    system = (
        "".join(part["text"] for part in body["systemInstruction"]["parts"]) if "systemInstruction" in body else None
    )
    return system, "".join(part["text"] for part in content["parts"]), schema


def _check_gemini_schema(schema: dict[str, Any]) -> None:
    """The subset of OpenAPI that Gemini takes: every part typed, enums of texts only."""
    assert set(schema) <= GEMINI_SCHEMA_KEYS, f"Unknown name: {set(schema) - GEMINI_SCHEMA_KEYS}"
    assert "anyOf" in schema or schema["type"] in ("OBJECT", "ARRAY", "STRING", "INTEGER", "NUMBER", "BOOLEAN")
    if "enum" in schema:
        assert schema["type"] == "STRING"
        assert all(isinstance(value, str) for value in schema["enum"])
    for below in [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]:
        _check_gemini_schema(below)
    if "items" in schema:
        _check_gemini_schema(schema["items"])


def _joined(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


# --- responses


def chat_response(
    text: Any,
    *,
    tokens_in: int = 100,
    tokens_out: int = 20,
    tokens_cached: int = 0,
    tokens_reasoning: int = 0,
    model: str = "served-model",
    finish_reason: str = "stop",
    reasoning: str | None = None,
    refusal: str | None = None,
    logprobs: Any = None,
    **extra: Any,
) -> dict[str, Any]:
    """A chat completion; ``extra`` replaces top-level fields."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if refusal is not None:
        message["refusal"] = refusal
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish_reason}
    if logprobs is not None:
        choice["logprobs"] = {"content": logprobs}
    usage: dict[str, Any] = {
        "prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out,
    }  # fmt: skip
    if tokens_cached:
        usage["prompt_tokens_details"] = {"cached_tokens": tokens_cached}
    if tokens_reasoning:
        usage["completion_tokens_details"] = {"reasoning_tokens": tokens_reasoning}
    return {
        "id": f"chatcmpl-{next(_numbers)}", "object": "chat.completion", "model": model, "choices": [choice],
        "usage": usage, "system_fingerprint": "fp",
    } | extra  # fmt: skip


def anthropic_response(
    text: str,
    *,
    tokens_in: int = 100,
    tokens_out: int = 20,
    tokens_cached: int = 0,
    tokens_cache_creation: int = 0,
    model: str = "served-model",
    stop_reason: str | None = None,
    reasoning: str | None = None,
    tool: bool = False,
    **extra: Any,
) -> dict[str, Any]:
    """A message; with ``tool`` the text, which must be JSON, is the input of the tool.

    ``tokens_in`` is the whole prompt as in the other dialects; the API reports what came from the cache apart.
    """
    content: list[dict[str, Any]] = []
    if reasoning is not None:
        content.append({"type": "thinking", "thinking": reasoning, "signature": "c2ln"})
    if tool:
        content.append({"type": "tool_use", "id": "toolu_1", "name": "verdict", "input": json.loads(text)})
    else:
        content.append({"type": "text", "text": text})
    usage = {
        "input_tokens": tokens_in - tokens_cached - tokens_cache_creation, "output_tokens": tokens_out,
        "cache_read_input_tokens": tokens_cached, "cache_creation_input_tokens": tokens_cache_creation,
    }  # fmt: skip
    return {
        "id": f"msg_{next(_numbers)}", "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": stop_reason or ("tool_use" if tool else "end_turn"), "stop_sequence": None, "usage": usage,
    } | extra  # fmt: skip


def gemini_response(
    text: str | None,
    *,
    tokens_in: int = 100,
    tokens_out: int = 20,
    tokens_cached: int = 0,
    tokens_reasoning: int = 0,
    model: str = "served-model",
    finish_reason: str = "STOP",
    reasoning: str | None = None,
    logprobs: Any = None,
    **extra: Any,
) -> dict[str, Any]:
    """A response of generateContent. ``tokens_out`` counts the reasoning too; the API reports it apart."""
    parts: list[dict[str, Any]] = []
    if reasoning is not None:
        parts.append({"text": reasoning, "thought": True})
    if text is not None:
        parts.append({"text": text})
    candidate: dict[str, Any] = {
        "content": {"parts": parts, "role": "model"}, "finishReason": finish_reason, "index": 0,
    }  # fmt: skip
    if logprobs is not None:
        candidate["logprobsResult"] = logprobs
    usage = {
        "promptTokenCount": tokens_in, "candidatesTokenCount": tokens_out - tokens_reasoning,
        "totalTokenCount": tokens_in + tokens_out,
    }  # fmt: skip
    if tokens_cached:
        usage["cachedContentTokenCount"] = tokens_cached
    if tokens_reasoning:
        usage["thoughtsTokenCount"] = tokens_reasoning
    return {
        "candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": f"r{next(_numbers)}",
    } | extra  # fmt: skip


# --- errors


def chat_error(message: str, *, type_: str = "invalid_request_error", code: str | None = None) -> dict[str, Any]:
    """An error body as OpenAI sends it."""
    return {"error": {"message": message, "type": type_, "param": None, "code": code}}


def anthropic_error(message: str, *, type_: str = "invalid_request_error") -> dict[str, Any]:
    """An error body as Anthropic sends it."""
    return {"type": "error", "error": {"type": type_, "message": message}, "request_id": "req_1"}


def gemini_error(
    message: str, *, code: int = 400, status: str = "INVALID_ARGUMENT", retry_seconds: float | None = None
) -> dict[str, Any]:
    """An error body as Google sends it; ``retry_seconds`` as its RetryInfo, for there is no header."""
    details = []
    if retry_seconds is not None:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{retry_seconds:g}s"})
    return {"error": {"code": code, "message": message, "status": status, "details": details}}
