"""The runner against a real HTTP server on loopback: retries, failures, resuming, and what the server is sent."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from judgelab.errors import JudgeError, JudgelabError
from judgelab.judging.evidence import verdicts, write_evidence
from judgelab.judging.ledger import Ledger
from judgelab.judging.runner import run_passes

ORIGINAL = ("pairwise_original",)
KEY = "sk-a-key-that-must-never-be-seen-0123456789"
SYSTEM_NAMES = ("ALPHA", "BETA")
COIN = {"name": "coin", "kind": "control", "rule": "coin"}

pytestmark = pytest.mark.usefixtures("quick")


def ask(run, passes=ORIGINAL):
    return asyncio.run(run_passes(run, passes))


def ledger_of(run):
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        return ledger.calls(), ledger.attempts()


def invalid_of(run):
    write_evidence(run, verdicts(run))
    return [json.loads(line) for line in run.path("invalid_outputs.jsonl").read_text().splitlines()]


def all_bytes(run):
    return b"".join(path.read_bytes() for path in run.folder.rglob("*") if path.is_file())


def test_good_replies_and_no_second_request(make_run, server):
    run = make_run([server.judge()])
    table = ask(run, run.study.passes)
    assert table[["pass", "planned", "already", "asked", "verdicts", "unusable", "failed"]].to_numpy().tolist() == [
        ["direct", 8, 0, 8, 8, 0, 0], ["pairwise_original", 4, 0, 4, 4, 0, 0], ["pairwise_swapped", 4, 0, 4, 4, 0, 0],
    ]  # fmt: skip
    assert len(server.bodies) == 16
    calls, _ = ledger_of(run)
    assert set(calls["attempts"]) == {1}
    assert set(calls["model"]) == {"served-model"}
    assert calls[["tokens_in", "tokens_out"]].drop_duplicates().to_numpy().tolist() == [[100, 20]]
    again = ask(run, run.study.passes)
    assert again["asked"].tolist() == [0, 0, 0]
    assert again["verdicts"].tolist() == [8, 4, 4]
    assert len(server.bodies) == 16


def test_malformed_once_then_good(make_run, server):
    server.script = lambda body, number: server.good(body) if number else server.completion("Hm.")
    run = make_run([server.judge()])
    assert ask(run)["verdicts"].tolist() == [4]
    calls, attempts = ledger_of(run)
    assert calls["attempts"].tolist() == [2] * 4
    assert attempts["outcome"].tolist() == ["malformed", "verdict"] * 4
    sent = [json.dumps(body) for body in server.bodies]
    assert sorted(sent) == sorted(list(set(sent)) * 2)  # the same input both times
    assert [row["reply"] for row in invalid_of(run)] == ["Hm."] * 4


def test_malformed_twice_is_unusable_and_stored_apart(make_run, server):
    server.script = lambda body, number: (
        server.good(body) if "What is 0 " in json.dumps(body) else server.completion(f"Hm {number}.")
    )
    run = make_run([server.judge()])
    assert ask(run)[["verdicts", "unusable", "failed"]].to_numpy().tolist() == [[1, 3, 0]]
    invalid = invalid_of(run)
    assert [(row["number"], row["reply"], row["reason"]) for row in invalid] == [
        (1, "Hm 0.", "no_json"), (2, "Hm 1.", "no_json"),
    ] * 3  # fmt: skip
    table = verdicts(run).query("strategy == 'pairwise' and `pass` == 'original'")
    assert table["status"].tolist() == ["verdict"] + ["unusable"] * 3
    assert table["verdict"].isna().tolist() == [False, True, True, True]
    assert len(run.path("pairwise_original.jsonl").read_text().splitlines()) == 1
    assert ask(run)["asked"].tolist() == [0]  # unusable is an outcome


def test_500_twice_then_good(make_run, server):
    server.script = lambda body, number: server.good(body) if number == 2 else server.Answer("busy", 500)
    run = make_run([server.judge()])
    assert ask(run)["verdicts"].tolist() == [4]
    _, attempts = ledger_of(run)
    assert attempts["outcome"].tolist() == ["transient", "transient", "verdict"] * 4
    assert attempts["detail"].dropna().unique().tolist() == ["HTTP 500: busy"]


def test_500_three_times_is_failed_and_only_that_is_asked_again(make_run, server):
    down = True

    def script(body, number):
        return server.Answer("down", 500) if down and "What is 2 " in json.dumps(body) else server.good(body)

    server.script = script
    run = make_run([server.judge()])
    assert ask(run)[["verdicts", "unusable", "failed"]].to_numpy().tolist() == [[3, 0, 1]]
    assert verdicts(run).query("status == 'failed'")[["item_id", "reason", "attempts"]].to_numpy().tolist() == [
        ["i00002", "transient_error", 3]
    ]
    before, down = len(server.bodies), False
    table = ask(run)
    assert table[["already", "asked", "verdicts", "failed"]].to_numpy().tolist() == [[3, 1, 4, 0]]
    assert len(server.bodies) == before + 1
    calls, attempts = ledger_of(run)
    assert calls.set_index("item_id").loc["i00002", ["status", "attempts"]].tolist() == ["verdict", 4]
    assert len(attempts) == 7


def test_retry_after_is_obeyed(make_run, server, monkeypatch):
    monkeypatch.setattr("judgelab.judging.runner._wait", lambda state: pytest.fail("the endpoint says how long"))
    server.script = lambda body, number: (
        server.good(body) if number else server.Answer("slow down", 429, {"Retry-After": "0.3"})
    )
    run = make_run([server.judge()], items=1)
    ask(run)
    assert 0.3 <= server.times[1] - server.times[0] < 2


@pytest.mark.parametrize("header", ["Wed, 21 Oct 2099 07:28:00 GMT", "soon", "-5", "nan", ""])
def test_a_retry_after_that_is_no_number_of_seconds(make_run, server, header):
    server.script = lambda body, number: (
        server.good(body) if number else server.Answer("slow down", 429, {"Retry-After": header})
    )
    assert ask(make_run([server.judge()], items=1))["verdicts"].tolist() == [1]


def test_time_out(make_run, server):
    def script(body, number):
        answer = server.good(body)
        answer.delay = 0.6 if number == 0 else 0.0
        return answer

    server.script = script
    run = make_run([server.judge()], items=1, timeout_seconds=0.2)
    assert ask(run)["verdicts"].tolist() == [1]
    _, attempts = ledger_of(run)
    assert attempts[["outcome", "reason"]].iloc[0].tolist() == ["transient", "timeout"]
    assert attempts["detail"].iloc[0] == "no reply within 0.2 s"


FATAL = {401: "does not accept the key", 402: "no credit left", 403: "may not use this model", 404: "does not exist"}


@pytest.mark.parametrize("status", FATAL)
def test_a_judge_that_cannot_be_asked_does_not_stop_the_others(make_run, server, monkeypatch, status):
    monkeypatch.setenv("SOME_KEY", KEY)
    server.script = lambda body, number: server.Answer(f"No. Your key was {KEY}", status)
    run = make_run([server.judge(api_key_env="SOME_KEY", concurrency=2), COIN])
    with pytest.raises(
        JudgeError, match=f"judge served: .*{FATAL[status]}; check SOME_KEY, base_url and model"
    ) as error:
        ask(run)
    assert KEY not in str(error.value)
    assert "run again to continue" in str(error.value)
    assert len(server.bodies) <= 2  # the first refusal stops the judge
    calls, _ = ledger_of(run)
    assert calls["judge"].tolist() == ["coin"] * 4
    assert KEY.encode() not in all_bytes(run)


def test_a_fatal_answer_stops_the_other_workers_and_keeps_what_arrived(make_run, server):
    def script(body, number):
        if len(server.bodies) >= 5:
            return server.Answer("no", 401)
        answer = server.good(body)
        answer.delay = 0.05
        return answer

    server.script = script
    run = make_run([server.judge(concurrency=2)], items=30)
    with pytest.raises(JudgeError, match="check base_url, model and api_key_env"):
        ask(run)
    assert len(server.bodies) <= 7
    calls, _ = ledger_of(run)
    assert 2 <= len(calls) <= 6
    server.script = lambda body, number: server.good(body)
    assert ask(run)[["already", "verdicts"]].to_numpy().tolist() == [[len(calls), 30]]


def test_a_redirect_names_the_address(make_run, server):
    server.script = lambda body, number: server.Answer("", 301, {"Location": "https://api.example/v2/chat"})
    with pytest.raises(JudgeError, match=r"redirects to https://api\.example/v2/chat; set base_url"):
        ask(make_run([server.judge()]))


NO_COMPLETION = {
    "HTML": "<html><body>Sign in</body></html>",
    "no choices": {"choices": []},
    "another layout": {"output": "A"},
    "a list": [],
    "null": None,
    "choice without message": {"choices": [{"text": "A"}]},
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("name", NO_COMPLETION)
def test_what_is_no_completion_is_failed(make_run, server, name):
    server.script = lambda body, number: server.Answer(NO_COMPLETION[name])
    run = make_run([server.judge()], items=1)
    assert ask(run)["failed"].tolist() == [1]
    calls, attempts = ledger_of(run)
    assert calls["detail"].iloc[0].startswith("not a chat completion: ")
    assert len(attempts) == 3


def test_odd_values_beside_a_good_reply_do_no_harm(make_run, server):
    odd = {"usage": [1], "system_fingerprint": {"a": 1}, "model": 7}
    server.script = lambda body, number: server.completion(
        json.dumps({"winner": "B", "confidence": "low", "reason_codes": []}), **odd
    )
    run = make_run([server.judge()], items=1)
    assert ask(run)["verdicts"].tolist() == [1]
    odd = {"usage": {"prompt_tokens": 10**30, "completion_tokens": "20"}}
    run = make_run([server.judge()], items=1, name="second")
    assert ask(run)["verdicts"].tolist() == [1]


@pytest.mark.parametrize("text", [None, "", "a \ud83d b", '{"winner": "A", "confidence": "low", "\ud83d": 1}'])
def test_replies_without_a_verdict_reach_the_evidence(make_run, server, text):
    server.script = lambda body, number: server.completion(text)
    run = make_run([server.judge()], items=1)
    assert ask(run)["unusable"].tolist() == [1]
    shown = text if text is None else text.replace("\ud83d", "\\ud83d")
    assert [row["reply"] for row in invalid_of(run)] == [shown, shown]


def test_a_reset_connection_is_tried_again(make_run, server):
    server.script = lambda body, number: server.good(body) if number else server.Answer(reset=True)
    run = make_run([server.judge()])
    assert ask(run)["verdicts"].tolist() == [4]
    _, attempts = ledger_of(run)
    assert attempts["outcome"].tolist() == ["transient", "verdict"] * 4


def test_a_broken_encoding_is_tried_again(make_run, server):
    server.script = lambda body, number: (
        server.good(body) if number else server.Answer("no gzip", 200, {"Content-Encoding": "gzip"})
    )
    assert ask(make_run([server.judge()], items=1))["verdicts"].tolist() == [1]


def test_nobody_listens(make_run, server):
    run = make_run([server.judge(base_url="http://127.0.0.1:9/v1")], items=1)
    assert ask(run)["failed"].tolist() == [1]
    assert ledger_of(run)[0]["detail"].iloc[0].startswith("ConnectError: ")


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (400, "This model's maximum context length is 8192 tokens", "context_too_long"),
        (400, "the request exceeds the available context size", "context_too_long"),
        (400, '{"error": {"code": "content_filter"}}', "content_filter"),
        (422, "unknown field", "refused_by_endpoint"),
    ],
)
def test_a_call_that_the_endpoint_refuses_is_unusable(make_run, server, status, message, reason):
    server.script = lambda body, number: (
        server.Answer(message, status) if "What is 1 " in json.dumps(body) else server.good(body)
    )
    run = make_run([server.judge()])
    assert ask(run)[["verdicts", "unusable"]].to_numpy().tolist() == [[3, 1]]
    assert len(server.bodies) == 4  # a refusal is not asked again
    calls, _ = ledger_of(run)
    assert calls["reason"].dropna().tolist() == [reason]


def test_a_withheld_reply_is_unusable(make_run, server):
    filtered = [{"message": {"content": ""}, "finish_reason": "content_filter"}]
    server.script = lambda body, number: server.Answer({"choices": filtered})
    run = make_run([server.judge()], items=1)
    ask(run)
    assert ledger_of(run)[0]["reason"].tolist() == ["content_filter"]


def test_what_the_server_is_sent(make_run, server, monkeypatch):
    monkeypatch.setenv("SOME_KEY", f"  {KEY}\n")
    monkeypatch.setenv("OPENAI_API_KEY", "another-key")
    run = make_run([server.judge(seed=5, temperature=0.5, max_tokens=77, api_key_env="SOME_KEY")], items=2)
    ask(run, run.study.passes)
    assert set(server.paths) == {"/v1/chat/completions"}
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    for body in server.bodies:
        assert {name: body[name] for name in ("model", "temperature", "max_tokens", "seed")} == {
            "model": "m-1", "temperature": 0.5, "max_tokens": 77, "seed": 5,
        }  # fmt: skip
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert not any(name.lower() in json.dumps(body).lower() for name in SYSTEM_NAMES)
        wanted = body["response_format"]["json_schema"]
        assert wanted["strict"] is True
        properties = wanted["schema"]["properties"]
        if wanted["name"] == "pairwise_verdict":
            assert properties["winner"] == {"enum": ["A", "B", "TIE"]}
        else:
            assert properties["clarity"] == {"enum": [1, 2, 3, 4, 5]}
    assert KEY.encode() not in all_bytes(run)


def test_other_ways_to_ask(make_run, server):
    judges = [
        server.judge(name="plain", response_format="none", system_prompt=False),
        server.judge(name="object", response_format="json_object"),
    ]
    ask(make_run(judges, items=1))
    plain, json_object = server.bodies
    assert "response_format" not in plain
    assert "seed" not in plain
    assert [message["role"] for message in plain["messages"]] == ["user"]
    assert json_object["response_format"] == {"type": "json_object"}
    assert all("authorization" not in headers for headers in server.headers)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "SOME_KEY is not set"), ("  ", "SOME_KEY is not set"),
        ("sk-one\nsk-two", "more than a key"), ("sk-…", "more than a key"),
    ],
)  # fmt: skip
def test_a_key_that_cannot_be_used(make_run, server, monkeypatch, value, message):
    monkeypatch.delenv("SOME_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("SOME_KEY", value)
    with pytest.raises(JudgeError, match=message) as error:
        ask(make_run([server.judge(api_key_env="SOME_KEY")]))
    assert "sk-" not in str(error.value)
    assert server.bodies == []


def test_a_key_is_cut_out_before_a_message_is_shortened(make_run, server, monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    server.script = lambda body, number: server.Answer("x" * 270 + KEY, 500)
    run = make_run([server.judge(api_key_env="SOME_KEY")], items=1)
    ask(run)
    detail = ledger_of(run)[0]["detail"].iloc[0]
    assert detail.endswith("[key]")
    assert KEY[:8].encode() not in all_bytes(run)


def test_an_address_that_is_none(make_run, server):
    with pytest.raises(JudgeError, match=r"base_url http://127\.0\.0\.1:port"):
        ask(make_run([server.judge(base_url="http://127.0.0.1:port")]))


@pytest.mark.parametrize("concurrency", [1, 3])
def test_as_many_calls_in_flight_as_the_judge_allows(make_run, server, concurrency):
    def script(body, number):
        answer = server.good(body)
        answer.delay = 0.05
        return answer

    server.script = script
    ask(make_run([server.judge(concurrency=concurrency)], items=9))
    assert server.most_at_once == concurrency
    assert len(server.bodies) == 9


def by_item(server):
    """Replies that differ from item to item, and are malformed for some."""

    def script(body, number):
        value = sum(map(ord, json.dumps(body["messages"]))) % 4
        if value == 3:
            return server.completion("Hm.")
        return server.completion(
            json.dumps({"winner": ["A", "B", "TIE"][value], "confidence": "low", "reason_codes": []})
        )

    return script


DECIDED = ["item_id", "first", "verdict", "status", "reason", "attempts"]


def test_a_cancelled_run_keeps_what_arrived_and_resumes_to_the_same(make_run, server):
    unbroken = make_run([server.judge()], items=12, name="unbroken")
    server.script = by_item(server)
    passes = ("pairwise_original", "pairwise_swapped")
    ask(unbroken, passes)
    wanted = verdicts(unbroken)[DECIDED]
    assert wanted["verdict"].nunique() > 1

    run = make_run([server.judge(concurrency=2)], items=12, name="broken")
    plain, answered, held = by_item(server), [], threading.Event()

    def script(body, number):
        if len(answered) >= 9:
            held.wait(5)
        answered.append(body)
        return plain(body, number)

    server.script = script

    async def cancelled():
        task = asyncio.create_task(run_passes(run, passes))
        while len(answered) < 9:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1  # this one: no worker is left behind

    asyncio.run(cancelled())
    held.set()
    calls, attempts = ledger_of(run)
    assert 5 <= len(calls) <= 9
    assert len(attempts) <= 9
    before = len(server.bodies)
    ask(run, passes)
    assert len(server.bodies) < before + 2 * 24 - len(calls)
    table = verdicts(run)[DECIDED]
    assert table[DECIDED[:-1]].equals(wanted[DECIDED[:-1]])
    assert table["attempts"].tolist() == wanted["attempts"].tolist()


def test_an_error_of_the_ledger_stops_the_run_with_its_message(make_run, server):
    run = make_run([server.judge(), COIN])
    run.path("ledger.sqlite").write_text("not a ledger " * 100)
    with pytest.raises(JudgelabError, match=r"outputs/small/ledger\.sqlite: file is not a database"):
        ask(run)
    assert server.bodies == []


def test_a_judge_runs_only_the_passes_that_it_names(make_run):
    run = make_run([COIN | {"passes": ["direct"]}, COIN | {"name": "other"}])
    table = ask(run, run.study.passes)
    assert table[["judge", "pass"]].to_numpy().tolist() == [
        ["coin", "direct"], ["other", "direct"], ["other", "pairwise_original"], ["other", "pairwise_swapped"],
    ]  # fmt: skip
