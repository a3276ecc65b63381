"""Judging by provider batches, in both dialects, against a real server on loopback."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from judgelab import pipeline
from judgelab.cli import app
from judgelab.errors import JudgeError
from judgelab.judging import batch, batch_polling, runner
from judgelab.judging.batch import batch_prices
from judgelab.judging.batch_ledger import BATCHES, Batch, BatchLedger
from judgelab.judging.batch_polling import Polling
from judgelab.judging.evidence import verdicts
from judgelab.judging.judges.batches.base import BatchLimits
from judgelab.judging.judges.batches.chat import ChatBatches
from judgelab.judging.ledger import Ledger
from judgelab.judging.progress import LedgerWatch
from judgelab.judging.runner import run_passes
from judgelab.judging.tell import ledger_lines
from judgelab.study.terms import Prices

_found = importlib.util.spec_from_file_location("judging_batches", Path(__file__).with_name("batch_server.py"))
batch_server = importlib.util.module_from_spec(_found)
_found.loader.exec_module(batch_server)

ORIGINAL = ("pairwise_original",)
KEY = "sk-a-key-that-must-never-be-seen-0123456789"
PRICES = {"input_per_million": 10, "output_per_million": 50}  # a reply of 100 + 20 tokens: 0.002, batched 0.001
SAME = ["judge", "strategy", "pass", "item_id", "system", "first", "verdict", "status", "reason", "reply", "attempts"]


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Look at batches every few milliseconds, do not wait between retries of live calls, keep what users are told."""
    monkeypatch.setattr(batch_polling, "POLLING", Polling(first=0.005, longest=0.02, patience=8))
    monkeypatch.setattr(runner, "_wait", lambda state: 0.0)
    monkeypatch.delenv(BATCHES, raising=False)


@pytest.fixture
def told(monkeypatch):
    """What users are told."""
    lines = []
    monkeypatch.setattr(batch.tqdm_terminal, "write", lambda text, file: lines.append(text))
    return lines


class Provider:
    """A provider of one dialect: its server, its batches, and a judge behind it."""

    def __init__(self, server, dialect, wire):
        self.server, self.dialect, self.wire = server, dialect, wire
        self.batches = batch_server.Batches(server, dialect)
        self.script(self.by_item)

    def judge(self, **changes):
        base = {"kind": self.dialect, "api_key_env": None}
        if self.dialect == "anthropic":
            base["base_url"] = self.server.address
        return self.server.judge(**(base | changes))

    def script(self, text):
        """``text(prompt, number)``: the reply to a prompt, or an Answer."""

        def answer(body, number):
            given = text(body["messages"][-1]["content"], number)
            if not isinstance(given, str):
                return given
            if self.dialect == "chat":
                return self.server.Answer(self.wire.chat_response(given))
            tool = "tools" in body and given.startswith("{")
            return self.server.Answer(self.wire.anthropic_response(given, tool=tool))

        self.server.script = answer

    @staticmethod
    def by_item(prompt, number):
        """Verdicts that differ from item to item and from one presentation to the other."""
        if "ANSWER A" not in prompt:
            score = 1 + len(prompt) % 5
            return json.dumps({"correctness": score, "clarity": 3, "critical_error": False, "reason_codes": []})
        winner = "A" if prompt.index("no doubt") < len(prompt) - 200 else "B"
        return json.dumps({"winner": winner, "confidence": "high", "reason_codes": []})

    def answers(self, status, message):
        """An error of a single request."""
        return self.server.Answer(self.wire.chat_error(message), status=status)


@pytest.fixture(params=["chat", "anthropic"])
def provider(request, server, wire):
    return Provider(server, request.param, wire)


@pytest.fixture
def chat(server, wire):
    return Provider(server, "chat", wire)


def ask(run, passes=ORIGINAL, batch=True):
    return asyncio.run(run_passes(run, passes, batch))


def ledger_of(run):
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        return ledger.calls(), ledger.attempts(), ledger._frame("SELECT * FROM batches ORDER BY created")


def item_of(body_or_prompt):
    text = body_or_prompt if isinstance(body_or_prompt, str) else body_or_prompt["messages"][-1]["content"]
    return int(text.split("What is ")[1].split(" ")[0])


# --- the good way


def test_a_batched_run_is_the_live_run(make_run, provider):
    judge = provider.judge(prices=PRICES)
    live = make_run([judge], items=6, name="live")
    ask(live, live.study.passes, batch=False)
    sent = [json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() for body in provider.server.bodies]
    assert provider.batches.made == []

    run = make_run([judge], items=6, name="batched")
    table = ask(run, run.study.passes)
    assert table[["planned", "asked", "verdicts", "failed"]].to_numpy().tolist() == [
        [12, 12, 12, 0], [6, 6, 6, 0], [6, 6, 6, 0],
    ]  # fmt: skip
    assert verdicts(run)[SAME].equals(verdicts(live)[SAME])
    assert Counter(provider.batches.bodies) == Counter(sent)
    assert [len(made["requests"]) for made in provider.batches.made] == [12, 6, 6]  # a batch a pass

    calls, attempts, batches = ledger_of(run)
    assert set(batches["status"]) == {"merged"}
    assert set(calls["batch_id"]) == {made["id"] for made in provider.batches.made}
    assert calls["latency_seconds"].isna().all()
    assert calls["cost"].tolist() == pytest.approx([0.001] * 24)
    assert ledger_of(live)[0]["cost"].tolist() == pytest.approx([0.002] * 24)
    assert set(attempts["outcome"]) == {"verdict"}
    before = list(provider.batches.asked)
    assert ask(run, run.study.passes)["asked"].tolist() == [0, 0, 0]
    assert provider.batches.asked == before


def test_the_environment_of_the_notebooks_asks_for_batches(make_run, chat, monkeypatch):
    monkeypatch.setenv(BATCHES, "1")
    run = make_run([chat.judge()])
    ask(run, batch=None)
    assert len(chat.batches.made) == 1


def test_judges_without_batches_are_asked_live_meanwhile(make_run, chat):
    coin = {"name": "coin", "kind": "control", "rule": "coin"}
    other = chat.judge(name="other", model="m-2")
    table = ask(make_run([coin, chat.judge(), other]))
    assert table["verdicts"].tolist() == [4, 4, 4]
    assert len(chat.batches.made) == 2
    # side by side: both were sent before either had ended
    assert chat.batches.asked.index("GET results") > [i for i, k in enumerate(chat.batches.asked) if "POST" in k][-1]


@pytest.mark.parametrize("limits", [BatchLimits(3, 10**9), BatchLimits(10**6, 1), BatchLimits(10**6, 6000)])
def test_chunks_keep_the_providers_limits(make_run, provider, monkeypatch, limits):
    monkeypatch.setattr(type(batch.provider_for(*_judge_of(provider, make_run))), "limits", limits)
    run = make_run([provider.judge()], items=7)
    assert ask(run)["verdicts"].tolist() == [7]
    sizes = [len(made["requests"]) for made in provider.batches.made]
    assert sum(sizes) == 7
    if limits.requests == 3:
        assert sizes == [3, 3, 1]
    elif limits.size == 1:  # one that is larger alone is sent alone
        assert sizes == [1] * 7
    else:
        assert len(sizes) > 1


def _judge_of(provider, make_run):
    from judgelab.judging.judges import client_for

    study = make_run([provider.judge()], name="other").study
    return study.judges[0], client_for(study.judges[0], study)


def test_characters_that_some_readers_take_for_line_ends(make_run, raw_item, provider):
    items = [raw_item(1, task="What is 1 \u2028 or\x85 one \u2029?")]
    run = make_run([provider.judge()], items=items)
    assert ask(run)["verdicts"].tolist() == [1]
    (made,) = provider.batches.made
    (body,) = made["requests"].values()
    assert "What is 1 \u2028 or\x85 one \u2029?" in body["messages"][-1]["content"]


def test_half_the_price():
    half = batch_prices(Prices(input_per_million=2, cached_input_per_million=0.5, output_per_million=8))
    assert half.cost(1000, 400, 50) == pytest.approx(0.0018 / 2)
    assert batch_prices(Prices(input_per_million=2)).cached_input_per_million is None


# --- what fails is sent again, and nothing else


@pytest.mark.parametrize("fate", ["expired", "canceled", "lost"])
def test_only_what_was_not_answered_is_sent_again(make_run, provider, fate):
    provider.batches.fate = lambda body, number: fate if number == 0 and item_of(body) in (1, 4) else None
    run = make_run([provider.judge()], items=6)
    assert ask(run)["verdicts"].tolist() == [6]
    first, second = provider.batches.made
    assert len(first["requests"]) == 6
    assert sorted(item_of(body) for body in second["requests"].values()) == [1, 4]
    calls, attempts, _ = ledger_of(run)
    assert calls["attempts"].tolist() == [1, 2, 1, 1, 2, 1]
    bad = attempts[attempts["outcome"] != "verdict"]
    assert set(bad["outcome"]) == {"transient"}
    assert set(bad["reason"]) == {"transient_error"}
    assert calls["batch_id"].tolist() == ["batch_0", "batch_1", "batch_0", "batch_0", "batch_1", "batch_0"]


def test_errors_of_single_requests_mean_what_they_mean_live(make_run, provider):
    def reply(prompt, number):
        status = {1: 500, 2: 429, 3: 400}.get(item_of(prompt))
        if status == 400:
            return provider.answers(400, "prompt is too long: 9 tokens > 8 maximum")
        if status is not None and number == 0:
            return provider.answers(status, "later")
        return provider.by_item(prompt, number)

    provider.script(reply)
    run = make_run([provider.judge()], items=5)
    table = ask(run)
    assert table[["verdicts", "unusable", "failed"]].to_numpy().tolist() == [[4, 1, 0]]
    calls, _, _ = ledger_of(run)
    assert calls["reason"].tolist()[3] == "context_too_long"
    assert calls["attempts"].tolist() == [1, 2, 2, 1, 1]
    assert len(provider.batches.made) == 2


def test_what_never_succeeds_is_failed_and_left_for_the_next_run(make_run, provider):
    provider.batches.fate = lambda body, number: "expired" if item_of(body) == 2 else None
    run = make_run([provider.judge()], items=3, retries={"transient_error": 2, "malformed_output": 1})
    assert ask(run)[["verdicts", "failed"]].to_numpy().tolist() == [[2, 1]]
    assert [len(made["requests"]) for made in provider.batches.made] == [3, 1, 1]  # once, and twice again
    provider.batches.fate = lambda body, number: None
    assert ask(run)[["asked", "verdicts", "failed"]].to_numpy().tolist() == [[1, 3, 0]]


def test_malformed_replies_are_asked_for_once_more_and_then_unusable(make_run, provider):
    def reply(prompt, number):
        item = item_of(prompt)
        if item == 1 or (item == 2 and number == 0):
            return "I cannot decide."
        return provider.by_item(prompt, number)

    provider.script(reply)
    judge = provider.judge(response_format="none")
    run = make_run([judge], items=4, retries={"transient_error": 2, "malformed_output": 1})
    live = make_run([judge], items=4, retries={"transient_error": 2, "malformed_output": 1}, name="live")
    table = ask(run)
    assert table[["verdicts", "unusable", "failed"]].to_numpy().tolist() == [[3, 1, 0]]
    assert [len(made["requests"]) for made in provider.batches.made] == [4, 2]
    provider.server._seen.clear()
    ask(live, batch=False)
    assert verdicts(run)[SAME].equals(verdicts(live)[SAME])
    ours, theirs = (ledger_of(each)[1] for each in (run, live))
    names = ["item_id", "number", "outcome", "reason", "detail", "reply"]
    assert ours[names].equals(theirs[names])


def test_malformed_replies_are_counted_across_runs(make_run, provider):
    """Broken off while the second batch is at the provider: the first malformed reply is not forgotten."""
    provider.script(lambda prompt, number: "Hm." if item_of(prompt) == 1 else provider.by_item(prompt, number))

    def after(kind):
        if kind == "POST batches" and len(provider.batches.made) == 2 and not provider.batches.trouble:
            provider.batches.trouble = [("GET batch", provider.server.Answer({}, status=500))] * 8

    provider.batches.after = after
    run = make_run([provider.judge(response_format="none")], items=3)
    with pytest.raises(JudgeError, match="cannot be reached"):
        ask(run)
    calls, _, _ = ledger_of(run)
    assert calls["status"].tolist() == ["verdict", "failed", "verdict"]
    assert ask(run)[["verdicts", "unusable"]].to_numpy().tolist() == [[2, 1]]
    assert [len(made["requests"]) for made in provider.batches.made] == [3, 1]
    assert ledger_of(run)[0]["attempts"].tolist() == [1, 2, 1]


def test_lines_that_belong_to_nothing_are_ignored_and_told(make_run, provider, told):
    def edit(lines):
        if not lines:  # the second file, which has no errors to tell
            return []
        foreign = lines[0] | {"custom_id": "someone-elses"}
        unknown = lines[0] | {"custom_id": lines[0]["custom_id"].rpartition("-")[0] + "-" + "00" * 16}
        return [*lines, lines[0], foreign, unknown, "not json", '["nor this"]', ""]

    provider.batches.edit = edit
    run = make_run([provider.judge()], items=3)
    assert ask(run)["verdicts"].tolist() == [3]
    assert ledger_of(run)[0]["attempts"].tolist() == [1, 1, 1]
    (line,) = told
    assert line == (
        "judge served: batch batch_0: ignored 4 lines that are no result of this batch, 1 second results of one call"
    )


# --- a provider in trouble


@pytest.mark.parametrize("kind", ["GET batch", "GET results"])
def test_trouble_while_polling_is_waited_out(make_run, provider, kind):
    answer = provider.server.Answer
    wrong = [
        answer({"error": {"message": "slow down"}}, status=429, headers={"retry-after": "0"}),
        answer("<html>502</html>", status=502), answer(reset=True), answer({"error": {}}, status=500),
    ]  # fmt: skip
    if kind == "GET batch":
        wrong += [answer("[]"), answer('{"id": "batch_0"')]
    provider.batches.trouble = [(kind, each) for each in wrong]
    run = make_run([provider.judge()])
    assert ask(run)["verdicts"].tolist() == [4]
    assert provider.batches.trouble == []
    assert len(provider.batches.made) == 1


def test_a_provider_that_stays_away_keeps_its_batches_for_the_next_run(make_run, provider):
    provider.batches.trouble = [("GET batch", provider.server.Answer({}, status=500))] * 8
    run = make_run([provider.judge()])
    with pytest.raises(JudgeError, match=r"judge served: the provider of its batches cannot be reached .*HTTP 500"):
        ask(run)
    assert ask(run)["verdicts"].tolist() == [4]
    assert len(provider.batches.made) == 1


def test_a_submission_that_was_turned_away_is_repeated(make_run, provider):
    answer = provider.server.Answer
    first = "POST files" if provider.dialect == "chat" else "POST batches"
    provider.batches.trouble = [
        (first, answer({"error": {"message": "slow down"}}, status=429)),
        ("POST batches", answer({"error": {"message": "oops"}}, status=500)),
    ]
    run = make_run([provider.judge()])
    assert ask(run)["verdicts"].tolist() == [4]
    assert len(provider.batches.made) == 1


def test_a_submission_whose_answer_was_lost_is_not_repeated(make_run, provider):
    provider.batches.trouble = [("POST batches", lambda: provider.server.Answer(reset=True))]
    run = make_run([provider.judge()])
    assert ask(run)["verdicts"].tolist() == [4]
    assert len(provider.batches.made) == 1


def test_a_fatal_error_stops_the_judge_and_leaves_no_open_batch(make_run, provider):
    kind = "POST files" if provider.dialect == "chat" else "POST batches"
    bad = provider.server.Answer({"error": {"message": "no", "type": "authentication_error"}}, status=401)
    provider.batches.trouble = [(kind, bad)]
    run = make_run([provider.judge()])
    with pytest.raises(JudgeError, match="does not accept the key"):
        ask(run)
    assert ledger_of(run)[2]["status"].tolist() == ["void"]
    assert ask(run)["verdicts"].tolist() == [4]


def test_an_endpoint_without_batches_says_so(make_run, server):
    server.script = lambda body, number: server.Answer({"detail": "Not Found"}, status=404)
    run = make_run([server.judge()])
    with pytest.raises(JudgeError, match=r"the endpoint has no batches at /v1/files; run it without --batch"):
        ask(run)


def test_a_fatal_error_of_one_request_keeps_the_others(make_run, provider):
    provider.script(
        lambda prompt, number: (
            provider.answers(404, "no such model") if item_of(prompt) == 1 else provider.by_item(prompt, number)
        )
    )
    run = make_run([provider.judge()])
    with pytest.raises(JudgeError, match="the endpoint or the model does not exist"):
        ask(run)
    assert len(ledger_of(run)[0]) == 3
    provider.script(provider.by_item)
    assert ask(run)[["asked", "verdicts"]].to_numpy().tolist() == [[1, 4]]


def test_a_full_queue_is_waited_for_and_a_bad_batch_is_an_error(make_run, chat, told):
    chat.batches.whole = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached"}]
    run = make_run([chat.judge()])
    assert ask(run)["verdicts"].tolist() == [4]
    assert ledger_of(run)[2]["status"].tolist() == ["void", "merged"]
    assert told == ["judge served: Enqueued token limit reached; its calls are sent again later"]
    chat.batches.whole = [{"code": "invalid_json_line", "message": "Line 1 is not JSON"}]
    with pytest.raises(JudgeError, match="batch batch_2 failed at the provider: Line 1 is not JSON"):
        ask(make_run([chat.judge()], name="other"))


# --- broken off and resumed

SCRIPT = """
import asyncio, sys
from judgelab.judging import batch_polling
from judgelab.judging.runner import run_passes
from judgelab.study.freeze import open_run
batch_polling.POLLING = batch_polling.Polling(first=0.01, longest=0.02)
run = open_run("small")
asyncio.run(run_passes(run, ("pairwise_original",), True))
"""


@pytest.mark.parametrize(
    ("provider", "kind"),
    [("chat", "POST files")]
    + [(dialect, kind) for dialect in ("chat", "anthropic") for kind in ("POST batches", "GET batch", "GET results")],
    indirect=["provider"],
)
def test_killed_and_resumed_one_batch_is_submitted_in_all(make_run, provider, told, kind):
    """Killed while the provider works on the request of this kind, which it carries out."""
    run = make_run([provider.judge()], items=5)
    there, gone = threading.Event(), threading.Event()

    def hold(asked):
        if asked == kind and not there.is_set():
            there.set()
            gone.wait(20)

    provider.batches.after = hold
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], env=dict(os.environ), stderr=subprocess.PIPE, text=True)
    try:
        assert there.wait(20), process.communicate(timeout=5)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        gone.set()
    assert process.returncode == -signal.SIGKILL
    assert ledger_of(run)[0].empty
    table = ask(run)
    assert table[["asked", "verdicts"]].to_numpy().tolist() == [[5, 5]]
    assert len(provider.batches.made) == 1
    assert ledger_of(run)[0]["attempts"].tolist() == [1] * 5
    said = " ".join(told)
    if kind == "POST files":
        assert "the provider does not have it, so its calls are open again" in said
        assert ledger_of(run)[2]["status"].tolist() == ["void", "merged"]
    elif kind == "POST batches":
        assert "batch batch_0 of 5 calls was found at the provider" in said
    else:
        assert said == ""


def test_a_live_run_fetches_what_was_left_at_the_provider_and_asks_the_rest(make_run, chat):
    chat.batches.trouble = [("GET batch", chat.server.Answer({}, status=500))] * 8
    chat.batches.fate = lambda body, number: "expired" if item_of(body) == 2 else None
    run = make_run([chat.judge()], items=5)
    with pytest.raises(JudgeError):
        ask(run)
    assert ask(run, batch=False)["verdicts"].tolist() == [5]
    assert len(chat.batches.made) == 1
    assert [item_of(body) for body in chat.server.bodies if "messages" in body] == [2]


def test_a_batch_of_another_pass_is_left_where_it_is(make_run, chat):
    chat.batches.trouble = [("GET batch", chat.server.Answer({}, status=500))] * 8
    run = make_run([chat.judge()], items=3)
    with pytest.raises(JudgeError):
        ask(run)
    ask(run, ("pairwise_swapped",))
    assert ledger_of(run)[2]["status"].tolist() == ["submitted", "merged"]
    ask(run)
    assert ledger_of(run)[2]["status"].tolist() == ["merged", "merged"]
    assert len(chat.batches.made) == 2


@pytest.mark.parametrize("looks", [2, -3])
def test_a_batch_of_somebody_else_with_as_many_requests(make_run, server, wire, told, looks):
    """Anthropic keeps no name for a batch: one that looks like ours is given back once its results are seen."""
    provider = Provider(server, "anthropic", wire)
    ask(make_run([provider.judge()], name="theirs"))
    provider.batches.made[0]["looks"] = looks  # it has ended, or is still at work
    run = make_run([provider.judge()])
    with Ledger(run.path("ledger.sqlite")) as ledger:
        (work,) = runner.planned_work(run, ORIGINAL, ledger)
        keys = tuple(
            runner.planned_call(run.study, "served", work.config_sha256, call).key.digest() for call in work.todo
        )
        BatchLedger(ledger).add(
            Batch("lost", "served", work.config_sha256, "pairwise", "original", keys, 0, 0.0, time.time())
        )
    assert ask(run)["verdicts"].tolist() == [4]
    assert len(provider.batches.made) == 2
    assert ledger_of(run)[0]["attempts"].tolist() == [1] * 4
    assert ledger_of(run)[2]["status"].tolist() == ["void", "merged"]
    assert "does not have it" in told[-1]
    assert ["batch batch_0 holds no result of ours" in line for line in told].count(True) == (looks < 0)


def test_results_of_calls_that_were_finished_meanwhile(make_run, chat, told):
    """As by a judge whose verdicts were imported between two runs."""
    run = make_run([chat.judge()], items=3)
    chat.batches.trouble = [("GET batch", chat.server.Answer({}, status=500))] * 8
    with pytest.raises(JudgeError):
        ask(run)
    other = make_run([chat.judge()], items=3, name="other")
    ask(other, batch=False)
    with Ledger(run.path("ledger.sqlite")) as ledger:
        ledger._db.execute("ATTACH ? AS o", (str(other.path("ledger.sqlite")),))
        ledger._db.execute("INSERT INTO calls SELECT * FROM o.calls WHERE item_id = 'i00001'")
    assert ask(run)[["already", "verdicts"]].to_numpy().tolist() == [[1, 3]]
    assert told == ["judge served: batch batch_0: ignored 1 results of calls that are finished or not planned any more"]


# --- money and keys


def test_a_cap_is_kept_before_anything_is_sent(make_run, provider, told):
    run = make_run([provider.judge(limits={"max_calls": 5})], items=8)
    with pytest.raises(JudgeError, match=r"limits.max_calls is 5; spent so far 5, .*3 of its 8 calls .* are open"):
        ask(run)
    assert [len(made["requests"]) for made in provider.batches.made] == [5]
    assert told == ["judge served: 5 of 8 open calls fit its caps and are sent for now"]
    assert len(ledger_of(run)[0]) == 5


def test_what_a_batch_took_less_than_estimated_is_sent_in_a_next_one(make_run, provider):
    """A call is estimated at its max_tokens and takes 20 tokens: more calls fit once the first are back."""
    judge = provider.judge(prices=PRICES, max_tokens=400)
    run = make_run([judge | {"limits": {"max_cost": 0.05}}], items=12)
    assert ask(run)["verdicts"].tolist() == [12]
    sizes = [len(made["requests"]) for made in provider.batches.made]
    assert len(sizes) > 1
    assert sizes[0] < 12
    assert ledger_of(run)[0]["cost"].sum() == pytest.approx(0.012)


def test_a_cap_counts_what_is_still_at_the_provider(make_run, chat):
    chat.batches.trouble = [("GET batch", chat.server.Answer({}, status=500))] * 8
    run = make_run([chat.judge(limits={"max_calls": 6})], items=4)
    with pytest.raises(JudgeError, match="cannot be reached"):
        ask(run)
    with pytest.raises(JudgeError, match=r"limits.max_calls is 6; spent so far 6"):
        ask(run, ("pairwise_swapped",))
    assert [len(made["requests"]) for made in chat.batches.made] == [4, 2]


def test_the_key_is_sent_and_never_kept(make_run, provider, monkeypatch, told):
    monkeypatch.setenv("A_KEY", KEY)

    def echo(prompt, number):
        if item_of(prompt) == 1:
            return provider.answers(400, f"bad key {KEY}")
        return f"{provider.by_item(prompt, number)}" if item_of(prompt) else f"key {KEY}"

    provider.script(echo)
    answer = provider.server.Answer
    provider.batches.trouble = [("GET batch", answer({"error": {"message": KEY}}, status=500))] * 3
    run = make_run([provider.judge(api_key_env="A_KEY", response_format="none")])
    ask(run)
    header = "authorization" if provider.dialect == "chat" else "x-api-key"
    assert all(KEY in head[header] for head in provider.batches.heads)
    provider.batches.trouble = [(provider.batches.asked[0], answer({"error": {"message": KEY}}, status=401))]
    with pytest.raises(JudgeError) as error:
        ask(make_run([provider.judge(api_key_env="A_KEY")], name="other"))
    assert KEY not in str(error.value)
    assert KEY not in "".join(told)
    files = [path.read_bytes() for path in run.folder.parent.rglob("*") if path.is_file()]
    assert len(files) > 4
    assert not any(KEY.encode() in content for content in files)


# --- the command line


def test_the_option_reaches_the_kernels_and_nothing_after_them(chat, make_run, project, monkeypatch):
    run = make_run([chat.judge()])
    study = yaml.safe_dump({"run": "small", "study": run.study.model_dump(mode="json", exclude_defaults=True)})
    (project / "params/small.yaml").write_text(study)
    seen = []
    monkeypatch.setattr(pipeline, "_run_wave", lambda *given: seen.append(os.environ.get(BATCHES)))
    monkeypatch.setattr(pipeline, "publish", lambda run: run.path("report"))
    monkeypatch.setattr(pipeline, "write_manifest", lambda run: None)
    for options in ([], ["--batch"]):
        done = CliRunner().invoke(app, ["run", str(project / "params/small.yaml"), *options])
        assert done.exit_code == 0, done.output
    assert set(seen[: len(seen) // 2]) == {None}
    assert set(seen[len(seen) // 2 :]) == {"1"}
    assert BATCHES not in os.environ


def test_what_is_at_the_provider_is_shown(make_run, chat):
    chat.batches.looks = 100
    chat.batches.trouble = [("GET batch", lambda: chat.server.Answer(chat.batches._shown(chat.batches.made[0])))] + [
        ("GET batch", chat.server.Answer({}, status=500))
    ] * 8
    run = make_run([chat.judge()])
    with pytest.raises(JudgeError):
        ask(run)
    assert "at the provider: served pairwise original: batch_0, 1 of 4 calls done" in list(ledger_lines(run))
    watch = LedgerWatch(run.path("ledger.sqlite"), run.study.judges, ["pairwise"])
    assert watch._look() == (4, 0, "in 1 batches 1 of 4 done")
    chat.batches.looks = 0
    ask(run)
    assert not [line for line in ledger_lines(run) if line.startswith("at the provider")]


# --- small parts


def test_custom_ids_name_a_call_of_one_batch():
    made = Batch("0123456789ab", "j", "c", "direct", "direct", (), 0, 0.0, 0.0)
    digest = bytes(range(16))
    assert batch_server.CUSTOM_ID.fullmatch(made.custom_id(digest))
    assert made.digest(made.custom_id(digest)) == digest
    assert made.digest(f"ffffffffffff-{digest.hex()}") is None
    assert made.digest("0123456789ab-nothex") is None


@pytest.mark.parametrize(
    ("base_url", "path", "target", "files"),
    [
        ("https://h/v1", "chat/completions", "/v1/chat/completions", "https://h/v1/files"),
        ("https://h/openai/v1/", "chat/completions", "/v1/chat/completions", "https://h/openai/v1/files"),
        ("https://h/openai", "chat/completions?api-version=1", "/chat/completions", "https://h/openai/files?api-version=1"),
    ],
)  # fmt: skip
def test_addresses(study_of, base_url, path, target, files):
    judge = {"name": "j", "kind": "chat", "model": "m", "base_url": base_url, "path": path, "api_key_env": None}
    made = ChatBatches(study_of([judge]).judges[0], None)
    assert made._target == target
    assert made._address("files") == files
    assert made._batches("a/b?c").endswith("a%2Fb%3Fc" + files.partition("files")[2])


def test_polling_grows_to_its_longest():
    waits = [Polling(first=5, growth=1.5, longest=120).wait(number) for number in range(1000)]
    assert waits[:3] == [5, 7.5, 11.25]
    assert waits[-1] == 120
