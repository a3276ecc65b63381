"""The Gemini adapter: generateContent."""

from __future__ import annotations

import pytest

from judgelab.judging.judges.base import RefusedError, TransientError
from judgelab.judging.judges.gemini import gemini_schema

KEY = "AIzaSy-a-key-that-must-never-be-seen-0123456789"
GOOD = '{"winner": "A", "confidence": "high", "reason_codes": []}'
GEMINI = {"kind": "gemini", "base_url": "https://api.example/v1beta"}


def test_the_body_and_the_key(exchange, wire, monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    exchange(wire.gemini_response(GOOD), **GEMINI, api_key_env="SOME_KEY", seed=4)
    (request,), (body,) = exchange.requests, exchange.bodies
    assert str(request.url) == "https://api.example/v1beta/models/m-1:generateContent"
    assert request.headers["x-goog-api-key"] == KEY
    system, user, schema = wire.read_gemini_request(body)
    assert (system, user) == (exchange.prompt.system, exchange.prompt.user)
    assert schema["properties"]["winner"] == {"type": "STRING", "enum": ["A", "B", "TIE"]}
    config = body["generationConfig"]
    assert (config["temperature"], config["maxOutputTokens"], config["seed"]) == (0, 400, 4)


def test_scores_become_a_range(exchange, wire):
    exchange(wire.gemini_response("{}"), strategy="direct", **GEMINI)
    _, _, schema = wire.read_gemini_request(exchange.bodies[0])
    assert schema["properties"]["clarity"] == {"type": "INTEGER", "minimum": 1, "maximum": 5}
    assert schema["properties"]["critical_error"] == {"type": "BOOLEAN"}
    assert schema["propertyOrdering"] == ["correctness", "clarity", "critical_error", "reason_codes"]


@pytest.mark.parametrize(
    ("changes", "has", "has_not"),
    [
        ({"response_format": "json_object"}, {"responseMimeType": "application/json"}, {"responseSchema"}),
        ({"response_format": "none"}, {}, {"responseSchema", "responseMimeType"}),
        ({"capabilities": {"reasoning": True}}, {}, {"temperature"}),
        ({"capabilities": {"logprobs": 3}}, {"responseLogprobs": True, "logprobs": 3}, set()),
        (
            {"extra_body": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}},
            {"thinkingConfig": {"thinkingBudget": 0}, "maxOutputTokens": 400}, set(),
        ),
    ],
)  # fmt: skip
def test_what_the_protocol_changes_in_the_body(exchange, wire, changes, has, has_not):
    exchange(wire.gemini_response(GOOD), **GEMINI, **changes)
    wire.read_gemini_request(exchange.bodies[0])
    config = exchange.bodies[0]["generationConfig"]
    assert has.items() <= config.items()
    assert not has_not & set(config)


def test_a_tuned_model_and_no_system_role(exchange, wire):
    exchange(wire.gemini_response(GOOD), **GEMINI | {"model": "tunedModels/x"}, system_prompt=False)
    assert str(exchange.requests[0].url).endswith("/v1beta/tunedModels/x:generateContent")
    assert wire.read_gemini_request(exchange.bodies[0])[0] is None


def test_what_is_read(exchange, wire):
    reply = exchange(
        wire.gemini_response(GOOD, reasoning="B?", tokens_out=50, tokens_reasoning=30, tokens_cached=64), **GEMINI
    )
    assert (reply.text, reply.reasoning) == (GOOD, "B?")
    assert (reply.model, reply.finish_reason) == ("served-model", "stop")
    assert (reply.tokens_in, reply.tokens_out, reply.tokens_cached, reply.tokens_reasoning) == (100, 50, 64, 30)


def test_a_reply_that_was_cut_off(exchange, wire):
    reply = exchange(wire.gemini_response(GOOD[:9], finish_reason="MAX_TOKENS"), **GEMINI)
    assert (reply.text, reply.finish_reason) == (GOOD[:9], "length")
    assert exchange(wire.gemini_response(None, finish_reason="MAX_TOKENS"), **GEMINI).text is None


@pytest.mark.parametrize("finish", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT"])
def test_a_withheld_reply(exchange, wire, finish):
    with pytest.raises(RefusedError, match=f"content_filter: reply withheld: {finish}") as error:
        exchange(wire.gemini_response(None, finish_reason=finish), **GEMINI)
    assert error.value.reply.tokens_in == 100


def test_a_blocked_prompt(exchange):
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 7}}
    with pytest.raises(RefusedError, match="content_filter: prompt blocked: SAFETY") as error:
        exchange(blocked, **GEMINI)
    assert error.value.reply.tokens_in == 7


@pytest.mark.parametrize("body", [{}, [], None, {"candidates": []}, {"candidates": [{}]}, {"candidates": [7]}])
def test_what_is_no_response_is_transient(exchange, body):
    with pytest.raises(TransientError, match="not a response of generateContent"):
        exchange(body, **GEMINI)


def test_the_verdict_tokens_probabilities_are_kept(exchange, wire):
    chosen = [{"token": token, "logProbability": -0.1} for token in ('{"winner": ', '"', "B", '"}')]
    tops = [{"candidates": [{"token": "A", "logProbability": -2.0}]} for _ in chosen[:3]]
    result = {"chosenCandidates": chosen, "topCandidates": tops}
    reply = exchange(wire.gemini_response('{"winner": "B"}', logprobs=result), **GEMINI, capabilities={"logprobs": 1})
    assert reply.logprobs == [
        {"key": "winner", "token": "B", "logprob": -0.1, "top": [{"token": "A", "logprob": -2.0}]}
    ]


def test_the_schema_subset():
    schema = {
        "type": "object", "additionalProperties": False, "$schema": "x", "required": ["a"],
        "properties": {
            "a": {"type": ["string", "null"], "description": "d", "default": 1}, "b": {"const": "x"},
            "c": {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"enum": [True, False]}]},
            "d": {"type": "array", "items": {"enum": ["X"]}, "maxItems": 2},
        },
    }  # fmt: skip
    assert gemini_schema(schema) == {
        "type": "OBJECT", "required": ["a"], "propertyOrdering": ["a", "b", "c", "d"],
        "properties": {
            "a": {"type": "STRING", "nullable": True, "description": "d"}, "b": {"type": "STRING", "enum": ["x"]},
            "c": {"anyOf": [{"type": "INTEGER"}, {"type": "BOOLEAN"}]},
            "d": {"type": "ARRAY", "items": {"type": "STRING", "enum": ["X"]}, "maxItems": 2},
        },
    }  # fmt: skip
