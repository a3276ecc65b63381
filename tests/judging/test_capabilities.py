"""What a protocol says of a judge (limits, capabilities, prices, no keys), and the probe that finds out the rest."""

from __future__ import annotations

import httpx
import pytest
from pydantic import TypeAdapter

from judgelab.errors import JudgeError, ProtocolError
from judgelab.judging.judges.base import TransientError
from judgelab.study.configuration import Judge, Prices, asks_a_model

KEY = "sk-a-key-that-must-never-be-seen-0123456789"
CHAT = {"name": "j", "kind": "chat", "model": "m", "base_url": "https://api.example/v1"}
GOOD = '{"winner": "A", "confidence": "high", "reason_codes": []}'


def judge(**values):
    return TypeAdapter(Judge).validate_python(values)


# --- the configuration


def test_old_keys_fill_their_groups_and_the_hashes_stay():
    chat = CHAT | {"base_url": "http://x/v1"}
    plain = judge(**chat)
    old = judge(**chat, concurrency=4, response_format="none", system_prompt=False, api_key_env="K", seed=3)
    groups = {"limits": {"concurrency": 4}, "capabilities": {"response_format": "none", "system_prompt": False}}
    assert old == judge(**chat, **groups, api_key_env="K", seed=3)
    assert (old.limits.concurrency, old.capabilities.response_format) == (4, "none")
    # as judgelab 0.1.0 hashed them, before there were groups
    assert (old.sha256[:16], plain.sha256[:16]) == ("5c4d0d70480ab13e", "b3d5e811877fcb56")
    assert judge(name="e", kind="embedded").sha256[:16] == "936cb3fb99415426"
    assert judge(name="e", kind="embedded", response_format="none").sha256[:16] == "574b13b77cc4700e"


def test_the_dump_has_no_unused_new_keys_and_reads_back():
    dumped = judge(**CHAT).model_dump(mode="json")
    assert set(dumped) == {
        "name", "kind", "family", "passes", "prices", "temperature", "max_tokens", "seed", "response_format", "model",
        "base_url", "api_key_env", "concurrency", "system_prompt",
    }  # fmt: skip
    assert set(dumped["prices"]) == {"input_per_million", "output_per_million", "currency"}


SAMPLES = [
    CHAT,
    CHAT | {"limits": {"max_calls": 3, "concurrency": 2}, "capabilities": {"logprobs": 4, "reasoning": True}},
    CHAT
    | {"headers": {"X-Title": "lab"}, "extra_body": {"a": {"b": [1]}}, "reply_format": "text", "temperature": None},
    {"name": "a", "kind": "anthropic", "model": "m"},
    {"name": "a", "kind": "anthropic", "model": "m", "capabilities": {"response_format": "none"}, "concurrency": 3},
    {"name": "g", "kind": "gemini", "model": "m", "api_key_env": None, "limits": {"tokens_per_minute": 9}},
    {"name": "e", "kind": "embedded", "limits": {"max_calls": 9}, "capabilities": {"logprobs": 1}},
]


@pytest.mark.parametrize("values", SAMPLES)
@pytest.mark.parametrize("exclude", [True, False])
def test_a_judge_survives_its_dump(values, exclude):
    once = judge(**values)
    again = judge(**once.model_dump(mode="json", exclude_defaults=exclude))
    assert again == once
    assert again.sha256 == once.sha256


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"limits": {"concurrency": 1, "max_cost": 3}, "prices": {"input_per_million": 1}}, True),
        ({"api_key_env": "OTHER"}, True), ({"auth": "none"}, True), ({"family": "x"}, True),
        ({"prices": {"cached_input_per_million": 1}}, True),
        ({"headers": {"X-Title": "lab"}}, False), ({"extra_body": {"top_k": 1}}, False),
        ({"reply_format": "text"}, False),
        ({"capabilities": {"logprobs": 1}}, False), ({"capabilities": {"reasoning": True}}, False),
        ({"path": "v2/chat"}, False), ({"token_field": "max_tokens"}, False), ({"temperature": None}, False),
    ],
)  # fmt: skip
def test_only_what_can_change_a_reply_is_hashed(change, same):
    assert (judge(**CHAT, **change).sha256 == judge(**CHAT).sha256) == same


def test_the_kinds_hash_differently():
    hashes = {judge(**CHAT | {"kind": kind}).sha256 for kind in ("chat", "anthropic", "gemini")}
    assert len(hashes) == 3


def test_which_judges_ask_a_model():
    kinds = [
        judge(**values)
        for values in (CHAT, {"name": "e", "kind": "embedded"}, {"name": "c", "kind": "control", "rule": "coin"})
    ]
    assert [asks_a_model(one) for one in kinds] == [True, True, False]


def test_prices():
    prices = Prices(input_per_million=2, cached_input_per_million=0.5, output_per_million=8)
    # (1000 - 400) * 2 + 400 * 0.5 + 50 * 8 = 1800 millionths
    assert prices.cost(1000, 400, 50) == pytest.approx(0.0018)
    assert Prices(input_per_million=2).cost(1000, 400, 50) == pytest.approx(0.002)  # cached at the full price
    assert prices.cost(None, 7, None) == 0.0
    assert prices.cost(10, 99, 0) == pytest.approx(5e-6)  # not more from the cache than there is


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"concurrency": 4, "limits": {"concurrency": 5}}, "concurrency is given twice"),
        ({"limits": {"max_cost": 1}}, "limits.max_cost needs prices above 0"),
        ({"limits": {"max_call": 1}}, "unknown key"),
        ({"limits": {"requests_per_minute": 0}}, "requests_per_minute"),
        ({"limits": 3}, "limits"),
        ({"capabilities": {"logprobs": 21}}, "logprobs"),
        ({"base_url": "ftp://x"}, "needed is an http:// or https:// address"),
        ({"base_url": "https://x/v1?a=b"}, "kind chat takes the query in path"),
        ({"path": "https://other/chat"}, "needed is a path below base_url"),
        ({"headers": {"a b": "c"}}, "'a b' is not a header"),
        ({"headers": {"X-A": "c\nd"}}, "'X-A' is not a header"),
        ({"headers": {"Content-Type": "text/plain"}}, "Content-Type is set by judgelab"),
    ],
)
def test_what_a_protocol_may_not_say(study_of, changes, message):
    with pytest.raises(ProtocolError) as error:
        study_of([CHAT | changes])
    assert message in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"headers": {"Authorization": "anything-at-all-1234"}},
        {"headers": {"api-key": "anything-at-all-1234"}},
        {"headers": {"X-Goog-Api-Key": "anything-at-all-1234"}},
        {"headers": {"X-Session-Token": "anything-at-all-1234"}},
        {"headers": {"X-Note": f"Bearer {KEY}"}},
        {"headers": {"X-Note": KEY}},
        {"extra_body": {"provider": {"keys": [KEY]}}},
        {"api_key_env": KEY},
        {"api_key_env": "gsk_0123456789abcdef"},
        {"headers_env": {"X-Gate": KEY}},
        {"base_url": f"https://user:{KEY}@api.example/v1"},
        {"base_url": f"https://api.example/v1?key={KEY}"},
        {"path": f"chat/completions?api_key={KEY}"},
    ],
)
def test_a_key_in_a_protocol_is_refused_and_not_repeated(study_of, changes):
    with pytest.raises(ProtocolError) as error:
        study_of([CHAT | changes])
    told = str(error.value)
    assert "1 problem in the protocol" in told
    assert not any(secret in told for secret in (KEY, "anything-at-all", "gsk_0123"))


def test_the_names_of_variables_that_people_use():
    for name in ("OPENAI_API_KEY", "HF_TOKEN", "ANTHROPIC_API_KEY", "sk", "_x", "GSK_KEY"):
        assert judge(**CHAT, api_key_env=name).api_key_env == name


def test_the_embedded_model_answers_one_at_a_time(study_of):
    with pytest.raises(ProtocolError, match="each embedded server answers one call at a time"):
        study_of([{"name": "e", "kind": "embedded", "limits": {"concurrency": 2}}])


# --- the probe


def formats(wire, kind, bodies):
    read = {
        "chat": wire.read_chat_request,
        "anthropic": wire.read_anthropic_request,
        "gemini": wire.read_gemini_request,
    }
    found = []
    for body in bodies:
        schema = read[kind](body)[2]
        json_mode = "response_format" in body or "responseMimeType" in body.get("generationConfig", {})
        found.append("json_schema" if schema else "json_object" if json_mode else "none")
    return found


def respond(wire, kind, text):
    return {"chat": wire.chat_response, "anthropic": wire.anthropic_response, "gemini": wire.gemini_response}[kind](
        text
    )


BASES = {"chat": "https://api.example/v1", "anthropic": "https://api.example", "gemini": "https://api.example/v1beta"}


@pytest.mark.parametrize("kind", BASES)
def test_the_first_format_that_works_is_kept(exchange, wire, kind):
    exchange(respond(wire, kind, GOOD), kind=kind, base_url=BASES[kind], response_format="probe", times=2)
    assert formats(wire, kind, exchange.bodies) == ["json_schema"] * 3  # one probe, two calls
    assert exchange.client.capabilities.response_format == "json_schema"
    assert not exchange.client.needs_probe


@pytest.mark.parametrize(
    ("kind", "tried"),
    [
        ("chat", ["json_schema", "json_object", "none"]), ("gemini", ["json_schema", "json_object", "none"]),
        ("anthropic", ["json_schema", "none"]),
    ],
)  # fmt: skip
def test_formats_that_are_refused_are_left(exchange, wire, kind, tried):
    def answer(request):
        number = len(exchange.bodies)
        if number < len(tried):
            return httpx.Response(400, json={"error": {"message": "response_format: json is not supported"}})
        return httpx.Response(200, json=respond(wire, kind, GOOD))

    exchange(answer, kind=kind, base_url=BASES[kind], response_format="probe")
    assert formats(wire, kind, exchange.bodies) == [*tried, "none"]


def test_a_format_that_is_taken_but_ignored_is_left(exchange, wire):
    def answer(request):
        text = GOOD if len(exchange.bodies) > 1 else "The letter A comes first."
        return httpx.Response(200, json=wire.chat_response(text))

    exchange(answer, response_format="probe")
    assert exchange.client.capabilities.response_format == "json_object"


@pytest.mark.parametrize(("status", "wanted"), [(503, TransientError), (401, JudgeError), (400, JudgeError)])
def test_a_probe_that_finds_nothing_out_is_made_again(exchange, status, wanted):
    with pytest.raises(wanted):
        exchange(httpx.Response(status, text="no"), response_format="probe")
    assert exchange.client.needs_probe
    assert len(exchange.bodies) == (3 if status == 400 else 1)


def test_an_earlier_finding_is_taken_without_a_probe(exchange, wire):
    exchange(wire.chat_response(GOOD), response_format="json_object")
    assert len(exchange.bodies) == 1


def test_plain_text_needs_no_probe(exchange, wire):
    exchange(wire.chat_response("Winner: A"), response_format="probe", reply_format="text")
    assert formats(wire, "chat", exchange.bodies) == ["none"]
