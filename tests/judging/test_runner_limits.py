"""The runner within a judge's limits: caps, money, what the endpoint asks for, and one writer a run."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time

import pytest

from judgelab.errors import JudgeError, RunError
from judgelab.judging import passes
from judgelab.judging.caps import raise_cap
from judgelab.judging.evidence import verdicts
from judgelab.judging.ledger import Ledger
from judgelab.judging.locks import HELD, hold_judge, hold_run
from judgelab.judging.runner import run_passes

ORIGINAL = ("pairwise_original",)
COIN = {"name": "coin", "kind": "control", "rule": "coin"}
PRICES = {"input_per_million": 10_000, "output_per_million": 50_000, "currency": "EUR"}
# a reply of the server says 100 tokens in and 20 out: 100 x 0.01 + 20 x 0.05
COST = 2.0

pytestmark = pytest.mark.usefixtures("quick")


def ask(run, names=ORIGINAL):
    return asyncio.run(run_passes(run, names))


def ledger_of(run):
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        return ledger.calls(), ledger.attempts()


def spent(run):
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        return ledger.spent("served")


def test_what_a_call_cost_is_in_the_ledger_and_in_the_table(make_run, server):
    server.script = lambda body, number: server.good(body) if number else server.completion("Hm.")
    run = make_run([server.judge(prices=PRICES), COIN])
    ask(run)
    calls, attempts = ledger_of(run)
    served = calls[calls["judge"] == "served"]
    assert served["cost"].tolist() == [2 * COST] * 4  # the malformed reply is paid for too
    assert set(served["currency"]) == {"EUR"}
    assert calls.loc[calls["judge"] == "coin", "cost"].isna().all()
    used = attempts.loc[attempts["judge"] == "served", ["tokens_in", "tokens_out", "cost", "estimated"]]
    assert used.drop_duplicates().to_numpy().tolist() == [[100, 20, COST, 0]]
    table = verdicts(run)
    asked = table[table["status"] == "verdict"]
    assert asked.groupby("judge")["cost"].sum().to_dict() == {"coin": 0.0, "served": 8 * COST}
    assert "reasoning" not in table
    assert verdicts(run, reasoning=True)["reasoning"].isna().all()


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"max_calls": 5}, r"limits\.max_calls is 5; spent so far 5, and the next request may take up to 1"),
        ({"max_tokens": 3000}, r"limits\.max_tokens is 3000; spent so far \d+, and the next request may take up to"),
        ({"max_cost": 60.0}, r"limits\.max_cost is 60 EUR; spent so far \d+ EUR, and the next request may take up to"),
    ],
)
def test_a_cap_is_never_passed_and_the_message_says_the_way_on(make_run, server, limits, told, concurrency):
    judge = server.judge(prices=PRICES, limits={"concurrency": concurrency, **limits}, max_tokens=400)
    run = make_run([judge, COIN], items=30)
    with pytest.raises(JudgeError, match=told) as caught:
        ask(run)
    calls, _ = ledger_of(run)
    served = calls[calls["judge"] == "served"]
    assert len(served) == len(server.bodies) > 3  # all that was in flight is kept
    assert len(calls) - len(served) == 30  # the other judge goes on
    assert spent(run).calls <= limits.get("max_calls", 99)
    assert spent(run).tokens <= limits.get("max_tokens", 10**9)
    assert spent(run).cost <= limits.get("max_cost", 1e9)
    message = str(caught.value)
    assert f"{30 - len(served)} of its 30 calls in pairwise_original are open" in message
    (key,) = limits
    assert f"judgelab ledger small --raise served.{key}=VALUE" in message


def test_a_resumed_run_does_not_start_at_zero_and_a_raised_cap_lets_it_go_on(make_run, server):
    run = make_run([server.judge(limits={"concurrency": 2, "max_calls": 5})], items=8)
    for _ in range(2):
        with pytest.raises(JudgeError, match="spent so far 5"):
            ask(run)
    assert len(server.bodies) == 5
    raise_cap(run, "served.max_calls=7")
    with pytest.raises(JudgeError, match="max_calls is 7; spent so far 7"):
        ask(run)
    assert len(server.bodies) == 7
    raise_cap(run, "served.max_calls=100")
    assert ask(run)["verdicts"].tolist() == [8]
    assert len(server.bodies) == 8


def test_failed_requests_count_as_requests(make_run, server):
    server.script = lambda body, number: server.Answer("busy", 503)
    run = make_run([server.judge(limits={"concurrency": 1, "max_calls": 4})], items=4)
    with pytest.raises(JudgeError, match="spent so far 4"):
        ask(run)
    calls, attempts = ledger_of(run)
    assert len(server.bodies) == len(attempts) == 4
    assert calls["status"].tolist() == ["failed"] * 2
    assert sorted(calls["attempts"]) == [1, 3]
    assert "not asked again: judge served: limits.max_calls is 4" in calls.set_index("attempts").loc[1, "detail"]


def test_a_reply_without_usage_counts_as_estimated_where_there_is_a_cap(make_run, server):
    def script(body, number):
        answer = server.good(body)
        del answer.body["usage"]
        return answer

    server.script = script
    limits = {"concurrency": 1, "max_tokens": 100_000}
    run = make_run([server.judge(limits=limits, max_tokens=50), server.judge(name="free")], items=1)
    ask(run)
    _, attempts = ledger_of(run)
    capped, free = (attempts[attempts["judge"] == name].iloc[0] for name in ("served", "free"))
    prompt = server.bodies[0]["messages"]
    assert capped["tokens_in"] >= sum(len(message["content"]) for message in prompt) // 3
    assert (capped["tokens_out"], capped["estimated"]) == (50, 1)
    assert free[["tokens_in", "tokens_out", "cost"]].isna().all()
    assert free["estimated"] == 0


def test_one_retry_after_holds_every_worker(make_run, server):
    told = []

    def script(body, number):
        if len(server.bodies) >= 3 and not told:
            told.append(body)
            return server.Answer("slow down", 429, {"Retry-After": "0.4"})
        answer = server.good(body)
        answer.delay = 0.02
        return answer

    server.script = script
    run = make_run([server.judge(concurrency=2)], items=12)
    assert ask(run)["verdicts"].tolist() == [12]
    gaps = [later - before for before, later in zip(server.times, server.times[1:], strict=False)]
    assert max(gaps) > 0.35  # nobody asked meanwhile
    assert sum(gap > 0.35 for gap in gaps) == 1


def test_what_a_probe_found_is_asked_for_once_and_recorded(make_run, server):
    server.script = lambda body, number: (
        server.completion('{"winner": "A"}') if "in the alphabet" in json.dumps(body) else server.good(body)
    )
    judge = server.judge(capabilities={"response_format": "probe"})
    run = make_run([judge], items=2)
    ask(run)
    probes = len(server.bodies) - 2
    assert probes >= 1
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        (text,) = ledger.judges()["capabilities"]
    assert json.loads(text)["response_format"] == "json_schema"
    ask(run, run.study.passes)
    assert len(server.bodies) == probes + 2 + 2 * 2 + 2  # direct and swapped, no second probe


def test_a_finished_pass_is_opened_without_rendering_a_prompt(make_run, server, monkeypatch):
    run = make_run([server.judge(), COIN], items=5)
    wanted = ask(run, run.study.passes)
    with monkeypatch.context() as patch:
        patch.setattr(passes, "render", lambda *given: pytest.fail("a prompt was rendered"))
        again = ask(run, run.study.passes)
    assert again["already"].tolist() == again["planned"].tolist() == wanted["planned"].tolist()
    assert again["verdicts"].tolist() == wanted["verdicts"].tolist()
    assert len(server.bodies) == 20


def test_other_code_of_the_prompts_is_noticed(make_run, server, monkeypatch):
    run = make_run([server.judge()], items=3)
    ask(run)
    rendered = []
    real = passes.render
    with monkeypatch.context() as patch:
        patch.setattr(passes, "_code_sha256", lambda: "another version")
        patch.setattr(passes, "render", lambda *given: rendered.append(given) or real(*given))
        assert ask(run)["already"].tolist() == [3]  # rendered anew, and found to be the same
        assert len(rendered) == 3
        rendered.clear()
        ask(run)
        assert rendered == []


def test_a_pass_with_failures_is_not_taken_for_complete(make_run, server):
    server.script = lambda body, number: (
        server.Answer("busy", 503) if "What is 1 " in json.dumps(body) else server.good(body)
    )
    run = make_run([server.judge()], items=3)
    assert ask(run)["failed"].tolist() == [1]
    server.script = lambda body, number: server.good(body)
    assert ask(run)[["already", "asked", "verdicts"]].to_numpy().tolist() == [[2, 1, 3]]


OTHER = """
import sys, time
from judgelab.judging.locks import hold_run
from judgelab.study.freeze import open_run
with hold_run(open_run("small").folder):
    print("held", flush=True)
    sys.stdin.read()
"""
ASKING = """
import asyncio, sys
from judgelab.errors import RunError
from judgelab.judging.runner import run_passes
from judgelab.study.freeze import open_run
try:
    asyncio.run(run_passes(open_run("small"), ["pairwise_original"]))
except RunError as error:
    print(error)
"""


def test_a_second_process_on_one_run_is_told_so_and_touches_nothing(make_run, server):
    run = make_run([server.judge()])
    holder = subprocess.Popen(
        [sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunError, match=r"outputs/small is in use by another judgelab run; nothing was touched"):
            ask(run)
        assert server.bodies == []
        assert not run.path("ledger.sqlite").exists()
    finally:
        holder.communicate("")
    assert ask(run)["verdicts"].tolist() == [4]  # the lock ended with its process


def test_a_notebook_beside_a_run_is_told_too(make_run, server):
    run = make_run([server.judge()])
    with hold_run(run.folder):
        done = subprocess.run([sys.executable, "-c", ASKING], capture_output=True, text=True, check=True)
    assert done.stdout == "outputs/small is in use by another judgelab run; nothing was touched\n"
    assert server.bodies == []


def test_kernels_of_one_pipeline_share_its_lock(make_run, server, monkeypatch):
    run = make_run([server.judge()])
    with hold_run(run.folder):
        monkeypatch.setenv(HELD, str(run.folder.resolve()))
        assert ask(run)["verdicts"].tolist() == [4]
        monkeypatch.setenv(HELD, str(run.folder.parent))
        with pytest.raises(RunError, match="in use"):
            ask(run)


def test_one_judge_is_asked_by_one_kernel_at_a_time(make_run, server):
    run = make_run([server.judge(), COIN])
    released = []

    async def main():
        async with hold_judge(run.folder, "served"):
            task = asyncio.create_task(run_passes(run, ORIGINAL))
            await asyncio.sleep(0.3)
            assert server.bodies == []
            released.append(time.monotonic())
        return await task

    assert asyncio.run(main())["verdicts"].tolist() == [4, 4]
    assert server.times[0] >= released[0]


def test_a_run_folder_that_cannot_be_written(make_run, server):
    run = make_run([server.judge()])
    run.path(".lock").mkdir()
    with pytest.raises(RunError, match="cannot write outputs/small: Is a directory"):
        ask(run)
