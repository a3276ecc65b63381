"""Every class of failure in each dialect: what may pass, is refused, or stops a judge. No key in any message."""

from __future__ import annotations

import json
import traceback

import httpx
import pytest

from judgelab.errors import JudgeError
from judgelab.judging.judges.base import RateHint, RefusedError, TransientError
from judgelab.judging.judges.http import UnsupportedError
from judgelab.judging.judges.rates import rate_hint, retry_after, seconds_until

KEY = "sk-a-key-that-must-never-be-seen-0123456789"
BASES = {
    "chat": "https://api.example/v1", "anthropic": "https://api.example", "gemini": "https://api.example/v1beta",
}  # fmt: skip


def ask(exchange, monkeypatch, kind, answer):
    monkeypatch.setenv("SOME_KEY", KEY)
    return exchange(answer, kind=kind, base_url=BASES[kind], api_key_env="SOME_KEY")


def error_body(wire, kind, message, status):
    if kind == "chat":
        return wire.chat_error(message)
    if kind == "anthropic":
        return wire.anthropic_error(message)
    return wire.gemini_error(message, code=status)


@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("status", [408, 409, 425, 429, 498, 500, 502, 503, 504, 529])
def test_what_may_pass(exchange, wire, monkeypatch, kind, status):
    body = error_body(wire, kind, f"busy, {KEY}", status)
    with pytest.raises(TransientError) as error:
        ask(exchange, monkeypatch, kind, httpx.Response(status, json=body, headers={"Retry-After": "2"}))
    assert (error.value.reason, error.value.retry_after, error.value.status) == ("transient_error", 2.0, status)
    assert error.value.detail.startswith(f"HTTP {status}: ")
    assert KEY not in str(error.value)


FATAL = {401: "does not accept the key", 402: "no credit left", 403: "may not use this model", 404: "does not exist"}


@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("status", FATAL)
def test_what_stops_a_judge(exchange, wire, monkeypatch, kind, status):
    body = error_body(wire, kind, f"No. Your key was {KEY}", status)
    with pytest.raises(JudgeError, match=f"judge j: .*{FATAL[status]}; check SOME_KEY, base_url and model") as error:
        ask(exchange, monkeypatch, kind, httpx.Response(status, json=body))
    assert KEY not in "".join(traceback.format_exception(error.value))


CASES = [
    # the same failure under the statuses and words of the providers
    ("chat", 400, {"error": {"message": "x", "code": "context_length_exceeded"}}, "context_too_long"),
    ("chat", 400, {"error": {"message": "This model's maximum context length is 8192 tokens."}}, "context_too_long"),
    ("chat", 400, {"error": {"message": "x", "type": "exceed_context_size_error"}}, "context_too_long"),
    ("chat", 500, {"error": {"message": "the request exceeds the available context size"}}, "context_too_long"),
    ("chat", 413, {}, "context_too_long"),
    ("chat", 400, {"error": {"message": "x", "metadata": {"raw": "prompt is too long: 9 tokens"}}}, "context_too_long"),
    ("chat", 422, {"message": "Prompt contains 40 tokens, too large for model with 30"}, "context_too_long"),
    ("anthropic", 400, {"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8"}},
     "context_too_long"),
    ("anthropic", 413, {"error": {"type": "request_too_large", "message": "x"}}, "context_too_long"),
    ("gemini", 400, {"error": {"message": "The input token count (9) exceeds the maximum number of tokens (8)."}},
     "context_too_long"),
    ("chat", 400, {"error": {"message": "x", "code": "content_filter"}}, "content_filter"),
    ("chat", 400, {"error": {"code": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, "content_filter"),
    ("chat", 400, {"error": {"message": "flagged as potentially violating our usage policy"}}, "content_filter"),
    ("chat", 403, {"error": {"message": "m requires moderation. Your input was flagged for x"}}, "content_filter"),
    ("anthropic", 400, {"error": {"message": "Output blocked by content filtering policy"}}, "content_filter"),
    ("chat", 400, {"error": {"message": "something about this message"}}, "refused_by_endpoint"),
    # some endpoints echo the request: words of an answer are not words of the error
    ("chat", 422, {"detail": [{"msg": "unknown field", "input": "maximum context, content_filter, invalid model"}]},
     "refused_by_endpoint"),
    ("chat", 401, {"error": {"message": "x"}}, "key"),
    ("gemini", 400, {"error": {"message": "API key not valid.", "details": [{"reason": "API_KEY_INVALID"}]}}, "key"),
    ("anthropic", 400, {"error": {"message": "Your credit balance is too low to access the API"}}, "credit"),
    ("chat", 429, {"error": {"message": "x", "code": "insufficient_quota"}}, "credit"),
    ("chat", 400, {"error": {"message": "x/y is not a valid model ID", "code": 400}}, "model does not exist"),
    ("chat", 400, {"message": "Invalid model: x", "type": "invalid_model", "code": "1500"}, "model does not exist"),
    ("chat", 400, {"error": {"message": "The model `x` does not exist"}}, "model does not exist"),
    ("anthropic", 404, {"error": {"type": "not_found_error", "message": "model: x"}}, "model does not exist"),
    ("chat", 400, {"error": {"message": "x", "code": "unsupported_parameter"}}, "field"),
    ("chat", 400, {"error": {"message": "'response_format' of type json_schema is not supported"}}, "form"),
    ("anthropic", 400, {"error": {"message": "top_q: Extra inputs are not permitted"}}, "form"),
    ("gemini", 400, {"error": {"message": 'Invalid JSON payload received. Unknown name "x" at y'}}, "form"),
    ("chat", 429, {"error": {"message": "maximum context, content_filter"}}, "transient"),
    ("chat", 413, {"error": {"message": "Request too large, tokens per minute: limit 6000"}}, "transient"),
    ("anthropic", 400, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, "transient"),
    ("gemini", 429, {"error": {"status": "RESOURCE_EXHAUSTED", "message": "quota"}}, "transient"),
]  # fmt: skip
REFUSED = {"context_too_long", "content_filter", "refused_by_endpoint"}


@pytest.mark.parametrize(("kind", "status", "body", "what"), CASES)
def test_the_words_of_an_error_go_before_its_status(exchange, monkeypatch, kind, status, body, what):
    wanted = RefusedError if what in REFUSED else TransientError if what == "transient" else JudgeError
    with pytest.raises(wanted) as error:
        ask(exchange, monkeypatch, kind, httpx.Response(status, json=body))
    if what in REFUSED:
        assert error.value.reason == what
    elif wanted is JudgeError:
        assert what in str(error.value)
        assert isinstance(error.value, UnsupportedError) == (what in ("field", "form"))


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({"error": {"code": 502, "message": "provider down"}}, TransientError),
        ({"error": {"code": 400, "message": "maximum context length"}}, RefusedError),
        ({"error": {"code": 402, "message": "credits"}}, JudgeError),
        ({"error": {"code": "odd", "message": "?"}, "choices": []}, TransientError),
    ],
)
def test_an_error_inside_a_good_status(exchange, body, wanted):
    with pytest.raises(wanted):
        exchange(body)


@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(200, text="<html>Sign in</html>"),
        httpx.Response(200, content=b'{"choices": [{"mess'),
        httpx.Response(200, content='{"model": "é"}'.encode("latin-1"), headers={"Content-Type": "application/json"}),
        httpx.Response(200, content=b"[" * 100_000),
        httpx.Response(200, content=b"{}", headers={"Content-Type": "text/x; charset=none-such"}),
        httpx.Response(200, content=b"<html>", headers={"Content-Type": "text/html; charset=utf-16"}),
    ],
)
def test_what_is_no_json_is_transient(exchange, monkeypatch, kind, response):
    with pytest.raises(TransientError, match="not a "):
        ask(exchange, monkeypatch, kind, response)


def test_json_is_utf8_whatever_the_header_says(exchange, wire):
    content = json.dumps(wire.chat_response("é"), ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json; charset=utf-16"}
    assert exchange(httpx.Response(200, content=content, headers=headers)).text == "é"


@pytest.mark.parametrize(
    ("error", "reason", "detail"),
    [
        (httpx.ConnectTimeout("slow"), "timeout", "no connection within 3 s"),
        (httpx.ReadTimeout("slow"), "timeout", "no reply within 9 s"),
        (httpx.ConnectError(f"refused {KEY}"), "transient_error", "ConnectError: refused [key]"),
        (httpx.RemoteProtocolError("cut"), "transient_error", "RemoteProtocolError: cut"),
    ],
)
def test_a_broken_connection(exchange, monkeypatch, error, reason, detail):
    monkeypatch.setenv("SOME_KEY", KEY)
    limits = {"connect_timeout_seconds": 3, "read_timeout_seconds": 9}
    with pytest.raises(TransientError) as raised:
        exchange(error, api_key_env="SOME_KEY", limits=limits)
    assert (raised.value.reason, raised.value.detail) == (reason, detail)
    assert KEY not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize(
    "told", [KEY, json.dumps(KEY), "sk-a-k*****************6789", "x" * 270 + KEY, "sk-a-key-that-must-never-be"]
)
def test_a_key_that_is_sent_back_is_not_shown(exchange, monkeypatch, kind, told):
    with pytest.raises(JudgeError) as error:
        ask(exchange, monkeypatch, kind, httpx.Response(401, text=f"Incorrect key: {told}"))
    assert "sk-a-k" not in str(error.value)


def test_a_key_that_a_model_repeats_does_not_reach_the_reply(exchange, wire, monkeypatch):
    reply = ask(exchange, monkeypatch, "chat", wire.chat_response(f"Your key is {KEY}.", reasoning=KEY, model=KEY))
    assert (reply.text, reply.reasoning, reply.model) == ("Your key is [key].", "[key]", "[key]")


def test_a_short_key_does_not_cut_holes_into_replies(exchange, wire, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "EMPTY")
    assert exchange(wire.chat_response("EMPTY"), api_key_env="SOME_KEY").text == "EMPTY"


def test_a_redirect_names_the_address(exchange):
    moved = httpx.Response(301, headers={"Location": "https://api.example/v2"})
    with pytest.raises(JudgeError, match=r"redirects to https://api\.example/v2; set base_url"):
        exchange(moved)


NOW = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2.5"}, 2.5), ({"retry-after": "0"}, 0.0), ({"retry-after": "100000"}, 600.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0),  # is past
        # the server's clock is ten minutes ahead of ours, and it means 5 s
        ({"retry-after": "Tue, 14 Nov 2023 22:23:25 GMT", "date": "Tue, 14 Nov 2023 22:23:20 GMT"}, 5.0),
        ({"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}, None), ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None), ({"retry-after": "nan"}, None), ({"retry-after": ""}, None), ({}, None),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
    ],
)  # fmt: skip
def test_retry_after(headers, seconds):
    assert retry_after(headers, now=NOW) == seconds


def test_google_says_in_the_body_how_long_to_wait(exchange, wire, monkeypatch):
    body = wire.gemini_error("quota", code=429, status="RESOURCE_EXHAUSTED", retry_seconds=1.5)
    with pytest.raises(TransientError) as error:
        ask(exchange, monkeypatch, "gemini", httpx.Response(429, json=body))
    assert error.value.retry_after == 1.5


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1s", 1.0), ("6m0s", 360.0), ("120ms", 0.12), ("1h2m3.5s", 3723.5), ("7", 7.0), ("1700000009", 9.0),
        ("1700000009000", 9.0), ("2023-11-14T22:13:26Z", 6.0), ("2023-11-14T22:13:26", 6.0),
        ("2023-11-14T22:00:00Z", 0.0), ("2099-01-01T00:00:00Z", None), ("later", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_resets(value, seconds):
    assert seconds_until(value, now=NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "hint"),
    [
        ({}, None),
        ({"x-ratelimit-limit-requests": "9"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"}, RateHint(0, None, 1.0, None)),
        ({"x-ratelimit-remaining": "3", "x-ratelimit-reset": "20"}, RateHint(3, None, 20.0, None)),
        (
            {
                "anthropic-ratelimit-requests-remaining": "49",
                "anthropic-ratelimit-requests-reset": "2023-11-14T22:13:21Z",
                "anthropic-ratelimit-input-tokens-remaining": "9000",
                "anthropic-ratelimit-input-tokens-reset": "2023-11-14T22:13:30Z",
                "anthropic-ratelimit-output-tokens-remaining": "800",
                "anthropic-ratelimit-output-tokens-reset": "2023-11-14T22:13:40Z",
            },
            RateHint(49, 800, 1.0, 20.0),
        ),
        ({"x-ratelimit-remaining-requests": "many", "x-ratelimit-remaining-tokens": "-1"}, None),
    ],
)  # fmt: skip
def test_rate_headers(headers, hint):
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    assert rate_hint(raw, now=NOW) == hint


def test_a_transient_error_carries_the_rate_headers(exchange):
    with pytest.raises(TransientError) as error:
        exchange(httpx.Response(429, text="slow", headers={"X-RateLimit-Remaining-Requests": "0"}))
    assert error.value.rate == RateHint(0, None, None, None)
