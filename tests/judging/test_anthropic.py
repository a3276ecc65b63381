"""The Anthropic adapter: the Messages API."""

from __future__ import annotations

import json

import pytest

from judgelab.errors import ProtocolError
from judgelab.judging.judges.base import RefusedError, TransientError

KEY = "sk-ant-a-key-that-must-never-be-seen-0123456789"
GOOD = '{"winner": "A", "confidence": "high", "reason_codes": []}'
CLAUDE = {"kind": "anthropic", "base_url": "https://api.example"}


def test_the_body_and_headers(exchange, wire, monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    headers = {"anthropic-beta": "x-2025"}
    exchange(
        wire.anthropic_response(GOOD, tool=True), **CLAUDE, api_key_env="SOME_KEY", headers=headers, temperature=1.5
    )
    (request,), (body,) = exchange.requests, exchange.bodies
    assert str(request.url) == "https://api.example/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert request.headers["anthropic-beta"] == "x-2025"
    assert "authorization" not in request.headers
    system, user, schema = wire.read_anthropic_request(body)
    assert (system, user) == (exchange.prompt.system, exchange.prompt.user)
    assert schema["required"] == ["winner", "confidence", "reason_codes"]
    assert (body["model"], body["max_tokens"], body["temperature"]) == ("m-1", 400, 1.0)


def test_an_address_that_ends_in_v1(exchange, wire):
    exchange(wire.anthropic_response(GOOD), kind="anthropic", base_url="https://api.example/v1/")
    assert str(exchange.requests[0].url) == "https://api.example/v1/messages"


def test_plain_text_and_thinking(exchange, wire):
    exchange(wire.anthropic_response(GOOD), **CLAUDE, response_format="none")
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    reply = exchange(wire.anthropic_response(GOOD, reasoning="B?"), **CLAUDE, max_tokens=2000, extra_body=thinking)
    plain, thought = exchange.bodies
    assert wire.read_anthropic_request(plain)[2] is None
    assert plain["temperature"] == 0
    assert wire.read_anthropic_request(thought)[2] is None  # thinking allows no forced tool
    assert thought["thinking"]["budget_tokens"] == 1024
    assert (reply.text, reply.reasoning) == (GOOD, "B?")


def test_without_a_system_role(exchange, wire):
    exchange(wire.anthropic_response(GOOD), **CLAUDE, system_prompt=False)
    system, user, _ = wire.read_anthropic_request(exchange.bodies[0])
    assert (system, user) == (None, f"{exchange.prompt.system}\n\n{exchange.prompt.user}")


def test_what_is_read(exchange, wire):
    reply = exchange(wire.anthropic_response(GOOD, tool=True, tokens_cached=60, tokens_cache_creation=10), **CLAUDE)
    assert json.loads(reply.text) == json.loads(GOOD)
    assert (reply.model, reply.finish_reason, reply.reasoning) == ("served-model", "stop", None)
    assert (reply.tokens_in, reply.tokens_out, reply.tokens_cached) == (100, 20, 60)


def test_a_tool_input_that_was_cut_off_is_left_open(exchange, wire):
    reply = exchange(wire.anthropic_response(GOOD, tool=True, stop_reason="max_tokens"), **CLAUDE)
    assert reply.finish_reason == "length"
    with pytest.raises(ValueError, match=r"delimiter|Expecting"):
        json.loads(reply.text)


def test_text_that_was_cut_off(exchange, wire):
    reply = exchange(wire.anthropic_response(GOOD[:20], stop_reason="max_tokens"), **CLAUDE)
    assert (reply.text, reply.finish_reason) == (GOOD[:20], "length")


def test_a_refusal(exchange, wire):
    with pytest.raises(RefusedError) as error:
        exchange(wire.anthropic_response("I", stop_reason="refusal"), **CLAUDE)
    assert (error.value.reason, error.value.reply.text, error.value.reply.tokens_in) == ("content_filter", "I", 100)


@pytest.mark.parametrize(
    "body",
    [
        {}, [], None, {"content": []}, {"content": "text"}, {"content": [{"text": "no type"}]},
        {"content": [{"type": "text"}], "stop_reason": "end_turn"},
    ],
)  # fmt: skip
def test_what_is_no_message_is_transient(exchange, body):
    with pytest.raises(TransientError, match="not a message"):
        exchange(body, **CLAUDE)


def test_an_empty_answer_is_an_answer(exchange):
    assert exchange({"content": [], "stop_reason": "end_turn", "usage": 3}, **CLAUDE).text is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "the Messages API has none of them"),
        ({"capabilities": {"logprobs": 2}}, "the Messages API has none of them"),
        ({"response_format": "json_object"}, "json_schema, none, or probe"),
        ({"extra_body": {"system": "x"}}, "system is set by judgelab"),
    ],
)
def test_what_the_api_does_not_have(exchange, changes, message):
    with pytest.raises(ProtocolError, match=message):
        exchange({}, **CLAUDE, **changes)
