"""The chat adapter: what it sends to the many OpenAI-compatible endpoints, and what it reads from them."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from judgelab.errors import ProtocolError
from judgelab.judging.evidence import verdicts
from judgelab.judging.judges.base import RateHint, RefusedError, TransientError
from judgelab.judging.judges.bodies import encoded, merged
from judgelab.judging.judges.logprobs import deciding_tokens
from judgelab.judging.runner import run_passes

KEY = "sk-a-key-that-must-never-be-seen-0123456789"
GOOD = '{"winner": "A", "confidence": "high", "reason_codes": []}'


def test_the_body(exchange, wire):
    exchange(wire.chat_response(GOOD), seed=5, temperature=0.5, max_tokens=77)
    (request,), (body,) = exchange.requests, exchange.bodies
    assert str(request.url) == "https://api.example/v1/chat/completions"
    system, user, schema = wire.read_chat_request(body)
    assert (system, user) == (exchange.prompt.system, exchange.prompt.user)
    assert schema["properties"]["winner"] == {"enum": ["A", "B", "TIE"]}
    rest = {key: value for key, value in body.items() if key not in ("messages", "response_format")}
    assert rest == {"model": "m-1", "temperature": 0.5, "max_tokens": 77, "seed": 5}


@pytest.mark.parametrize(
    ("changes", "has", "has_not"),
    [
        ({"capabilities": {"reasoning": True}}, {"max_completion_tokens": 400}, {"temperature", "max_tokens"}),
        ({"capabilities": {"reasoning": True}, "token_field": "max_tokens"}, {"max_tokens": 400}, {"temperature"}),
        ({"token_field": "max_completion_tokens"}, {"max_completion_tokens": 400, "temperature": 0}, {"max_tokens"}),
        ({"temperature": None}, {"max_tokens": 400}, {"temperature"}),
        ({"seed": 3, "capabilities": {"seed": False}}, {}, {"seed"}),
        ({"capabilities": {"logprobs": 5}}, {"logprobs": True, "top_logprobs": 5}, set()),
        ({"response_format": "json_object"}, {"response_format": {"type": "json_object"}}, set()),
        ({"response_format": "none"}, {}, {"response_format"}),
        ({"reply_format": "text"}, {}, {"response_format"}),
        ({"extra_body": {"top_k": 1, "provider": {"order": ["x"]}}}, {"top_k": 1, "provider": {"order": ["x"]}}, set()),
    ],
)
def test_what_the_protocol_changes_in_the_body(exchange, wire, changes, has, has_not):
    exchange(wire.chat_response(GOOD), **changes)
    wire.read_chat_request(exchange.bodies[0])
    assert has.items() <= exchange.bodies[0].items()
    assert not has_not & set(exchange.bodies[0])


def test_without_a_system_role_there_is_one_message(exchange, wire):
    exchange(wire.chat_response(GOOD), system_prompt=False)
    system, user, _ = wire.read_chat_request(exchange.bodies[0])
    assert system is None
    assert user == f"{exchange.prompt.system}\n\n{exchange.prompt.user}"


def test_azure(exchange, wire, monkeypatch):
    monkeypatch.setenv("AZURE_KEY", KEY)
    exchange(
        wire.chat_response(GOOD), api_key_env="AZURE_KEY", auth="api-key",
        base_url="https://x.openai.azure.com/openai/deployments/judge/",
        path="chat/completions?api-version=2024-10-21",
    )  # fmt: skip
    (request,) = exchange.requests
    assert str(request.url) == (
        "https://x.openai.azure.com/openai/deployments/judge/chat/completions?api-version=2024-10-21"
    )
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers


def test_headers_and_keys(exchange, wire, monkeypatch):
    monkeypatch.setenv("SOME_KEY", f" {KEY}\n")
    monkeypatch.setenv("GATE", "gate-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    changes = {"headers": {"HTTP-Referer": "https://lab.example"}, "headers_env": {"X-Gate": "GATE"}}
    exchange(wire.chat_response(GOOD), api_key_env="SOME_KEY", **changes)
    exchange(wire.chat_response(GOOD), api_key_env="SOME_KEY", auth="none")
    exchange(wire.chat_response(GOOD))
    first, *without = exchange.requests
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.headers["http-referer"] == "https://lab.example"
    assert first.headers["x-gate"] == "gate-secret"
    assert all("authorization" not in request.headers for request in without)
    assert KEY not in repr(exchange.client) + str(first.url)


def test_what_is_read(exchange, wire):
    reply = exchange(wire.chat_response(GOOD, tokens_cached=64, tokens_reasoning=7, reasoning="Hm, B? No."), times=2)
    assert (reply.text, reply.reasoning, reply.reason) == (GOOD, "Hm, B? No.", None)
    assert (reply.model, reply.fingerprint, reply.finish_reason) == ("served-model", "fp", "stop")
    assert (reply.tokens_in, reply.tokens_out, reply.tokens_cached, reply.tokens_reasoning) == (100, 20, 64, 7)
    assert (reply.logprobs, reply.rate) == (None, None)


def with_message(wire, **message):
    body = wire.chat_response(GOOD)
    body["choices"][0]["message"] = message
    return body


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": GOOD, "reasoning": "said by OpenRouter"}, GOOD, "said by OpenRouter"),
        ({"content": GOOD, "reasoning_content": ""}, GOOD, None),
        ({"content": GOOD, "reasoning": {"a": 1}}, GOOD, None),
        ({"content": [{"type": "text", "text": "{"}, {"type": "text", "text": "}"}]}, "{}", None),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "so"}]}, "x"]},
            "x", "so",
        ),
        ({"content": [{"type": "image_url", "image_url": {}}]}, None, None),
        ({"content": None}, None, None),
        ({"content": 7}, None, None),
    ],
)  # fmt: skip
def test_text_and_reasoning_are_kept_apart(exchange, wire, message, text, reasoning):
    reply = exchange(with_message(wire, **message))
    assert (reply.text, reply.reasoning) == (text, reasoning)


def test_a_refusal_is_kept_with_its_reason(exchange, wire):
    reply = exchange(wire.chat_response(None, refusal="I cannot judge this."))
    assert (reply.text, reply.reason, reply.tokens_in) == ("I cannot judge this.", "refusal", 100)
    reply = exchange(wire.chat_response(GOOD, refusal=""))
    assert (reply.text, reply.reason) == (GOOD, None)


def test_a_withheld_reply_says_what_it_cost(exchange, wire):
    with pytest.raises(RefusedError) as error:
        exchange(wire.chat_response("", finish_reason="content_filter"))
    assert error.value.reason == "content_filter"
    assert error.value.reply.tokens_in == 100


def test_a_truncated_text_stays_readable(exchange, wire):
    reply = exchange(wire.chat_response(GOOD[:20], finish_reason="length"))
    assert (reply.text, reply.finish_reason) == (GOOD[:20], "length")


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 3, "prompt_cache_hit_tokens": 4}, (9, 3, 4, None)),  # DeepSeek
        (  # xAI: the reasoning is beside completion_tokens
            {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 17,
             "completion_tokens_details": {"reasoning_tokens": 5}}, (9, 8, None, 5),
        ),
        (  # OpenAI: it is among them
            {"prompt_tokens": 9, "completion_tokens": 8, "total_tokens": 17,
             "completion_tokens_details": {"reasoning_tokens": 5}}, (9, 8, None, 5),
        ),
        ({"prompt_tokens": "9", "completion_tokens": 10**30, "prompt_tokens_details": [1]}, (None,) * 4),
        ([1], (None,) * 4),
        (None, (None,) * 4),
    ],
)  # fmt: skip
def test_usage(exchange, wire, usage, tokens):
    reply = exchange(wire.chat_response(GOOD, **{"usage": usage}))
    assert (reply.tokens_in, reply.tokens_out, reply.tokens_cached, reply.tokens_reasoning) == tokens


@pytest.mark.parametrize(
    "body",
    [
        {"choices": []}, {"choices": None}, {}, [], None, {"choices": [{"text": "A"}]},
        {"choices": [{"message": None}]}, {"choices": [{"message": {"content": ["x", 3]}}]},
    ],
)  # fmt: skip
def test_what_is_no_completion_is_transient(exchange, body):
    with pytest.raises(TransientError, match="not a chat completion"):
        exchange(body)


def test_half_a_surrogate_pair_can_be_sent():
    assert encoded({"a": "ü\ud83d"}) == b'{"a":"\\u00fc\\ud83d"}'
    assert encoded({"a": "ü"}) == '{"a":"ü"}'.encode()


TOKENS = ['{"', "winner", '":', ' "', "A", '",', ' "winner', '": "', "B", '"}']


def test_the_verdict_tokens_probabilities_are_kept(exchange, wire):
    entries = [
        {"token": token, "logprob": -place / 10, "top_logprobs": [{"token": "TIE", "logprob": -3.0, "bytes": None}]}
        for place, token in enumerate(TOKENS)
    ]
    reply = exchange(wire.chat_response("".join(TOKENS), logprobs=entries), capabilities={"logprobs": 1})
    assert reply.logprobs == [
        {"key": "winner", "token": "B", "logprob": -0.8, "top": [{"token": "TIE", "logprob": -3.0}]}
    ]


def test_deciding_tokens_of_scores_and_of_plain_text():
    tokens = [{"token": part} for part in ['{"correctness', '": ', "4", ', "clarity', '":', "3", "}"]]
    assert deciding_tokens(tokens, ("correctness", "clarity")) == [
        {"key": "correctness", "token": "4"}, {"key": "clarity", "token": "3"},
    ]  # fmt: skip
    assert deciding_tokens([{"token": "**Winner:** "}, {"token": "B"}], ("winner",)) == [
        {"key": "winner", "token": "B"}
    ]
    assert deciding_tokens([{"token": "none"}], ("winner",)) is None


def test_rate_headers_reach_the_reply(exchange, wire):
    headers = {
        "x-ratelimit-remaining-requests": "12", "x-ratelimit-reset-requests": "6m0s",
        "x-ratelimit-remaining-tokens": "3400", "x-ratelimit-reset-tokens": "120ms",
    }  # fmt: skip
    reply = exchange(httpx.Response(200, json=wire.chat_response(GOOD), headers=headers))
    assert reply.rate == RateHint(12, 3400, 360.0, 0.12)


def test_merged_groups():
    assert merged({"a": {"b": 1, "c": 2}, "d": 1}, {"a": {"b": 3}, "d": {"e": 1}}) == {
        "a": {"b": 3, "c": 2},
        "d": {"e": 1},
    }


@pytest.mark.parametrize("field", ["model", "messages", "stream", "n"])
def test_extra_body_may_not_replace_what_is_recorded(exchange, wire, field):
    with pytest.raises(ProtocolError, match=f"extra_body: {field} is set by judgelab"):
        exchange(wire.chat_response(GOOD), extra_body={field: "x"})


def test_a_malformed_reply_that_groq_sends_as_an_error_is_a_reply(exchange):
    error = {"message": "Failed to generate JSON", "code": "json_validate_failed", "failed_generation": "A wins."}
    reply = exchange(httpx.Response(400, json={"error": error}))
    assert (reply.text, reply.finish_reason) == ("A wins.", "json_validate_failed")


def test_a_body_and_a_reply_without_a_request(exchange, wire):
    """As a batch uses them."""
    exchange(wire.chat_response(GOOD), capabilities={"logprobs": 1})
    client, call = exchange.client, exchange.call
    assert client.compose(call, exchange.prompt) == exchange.bodies[0]
    entries = [{"token": token, "logprob": 0.0} for token in TOKENS]
    reply = client.read(call, 200, wire.chat_response(GOOD, logprobs=entries))
    assert (reply.text, reply.logprobs[0]["token"], reply.rate) == (GOOD, "B", None)
    with pytest.raises(TransientError, match="HTTP 500"):
        client.read(call, 500, {"error": {"message": "down"}})
    with pytest.raises(TransientError, match="not a chat completion"):
        client.read(call, 200, None)


def test_a_response_that_is_sent_twice_costs_no_request_more(make_run, server, wire):
    """Its second copy must not answer the next request on the connection, which is closed instead."""

    def script(body, number):
        label = "A" if "What is 1 " in body["messages"][-1]["content"] else "B"
        answer = wire.chat_response(f'{{"winner": "{label}", "confidence": "low", "reason_codes": []}}')
        return server.Answer(answer, again=0)

    server.script = script
    run = make_run([server.judge(concurrency=1)], items=5)
    asyncio.run(run_passes(run, ["pairwise_original"]))
    table = verdicts(run).query("strategy == 'pairwise' and `pass` == 'original'")
    assert table.set_index("item_id")["verdict"].to_dict() == {
        f"i{number:05d}": "A" if number == 1 else "B" for number in range(5)
    }
    assert len(server.bodies) == 5
