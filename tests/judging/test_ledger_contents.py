"""What the ledger says of money, judges and counts, and the writer that commits in groups."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from judgelab.errors import LedgerError
from judgelab.judging.entries import IMPORTED, Attempt, CallKey, Entry, Spent
from judgelab.judging.ledger import Ledger
from judgelab.judging.ledger_writer import LedgerWriter

KEY = CallKey("judge", "i1", "pairwise", "original", ("ALPHA", "BETA"), "config", "prompt")


def key(number, **changes):
    return dataclasses.replace(KEY, item_id=f"i{number}", **changes)


def attempt(outcome="verdict", **values):
    return Attempt(**({"outcome": outcome, "finished_at": "2024-01-01T00:00:00+00:00"} | values))


def entry(number=1, status="verdict", *attempts, **values):
    tried = attempts or (attempt({"verdict": "verdict", "unusable": "malformed", "failed": "transient"}[status]),)
    return Entry(key(number), status, {"winner": "A"} if status == "verdict" else None, attempts=tried, **values)


@pytest.fixture
def path(project):
    return project / "outputs" / "ledger.sqlite"


def test_all_that_is_known_of_a_reply_comes_back(path):
    known = {
        "reasoning": "Let me see \ud83d.", "tokens_cached": 64, "tokens_reasoning": 9, "cost": 0.25, "currency": "EUR",
        "logprobs": [{"token": "A", "logprob": -0.1, "top": []}], "batch_id": "batch_1",
    }  # fmt: skip
    with Ledger(path) as ledger:
        ledger.record(entry(1, "verdict", attempt(tokens_in=1, tokens_out=2, cost=0.25, estimated=True), **known))
        call, tried = ledger.calls().iloc[0], ledger.attempts().iloc[0]
    assert call[["tokens_cached", "tokens_reasoning", "cost", "currency", "batch_id"]].tolist() == [
        64, 9, 0.25, "EUR", "batch_1",
    ]  # fmt: skip
    assert call["reasoning"] == r"Let me see \ud83d."
    assert call["logprobs"] == '[{"token": "A", "logprob": -0.1, "top": []}]'
    assert tried[["tokens_in", "tokens_out", "cost", "estimated"]].tolist() == [1, 2, 0.25, 1]


def test_the_cost_of_failed_attempts_stays_when_the_call_succeeds_later(path):
    with Ledger(path) as ledger:
        ledger.record(entry(1, "failed", attempt("transient", cost=0.5, tokens_in=10), cost=0.5))
        ledger.record(entry(1, "failed"))  # nothing charged
        ledger.record(entry(1, "verdict", attempt(cost=0.25, tokens_in=5, tokens_out=1), cost=0.25))
        assert ledger.calls()["cost"].tolist() == [0.75]
        assert ledger.spent("judge") == Spent(calls=3, tokens=16, cost=0.75)
        assert ledger.progress().empty
        ledger.set_plan("judge", "pairwise", "original", 2)
        assert ledger.progress()["cost"].tolist() == [0.75]


def test_what_was_imported_or_asked_by_another_judge_is_not_spent(path):
    with Ledger(path) as ledger:
        ledger.record(entry(1, "verdict", attempt(finished_at=IMPORTED, tokens_in=10)))
        other = dataclasses.replace(entry(2), key=key(2, judge="other"))
        ledger.record(other)
        assert ledger.spent("judge") == Spent()
        assert ledger.spent("other").calls == 1


def test_counts_by_judge_pass_and_status(path):
    with Ledger(path) as ledger:
        assert ledger.counts().empty
        for number, seconds in enumerate((0.1, 0.4, 0.2)):
            tried = (attempt("malformed", tokens_in=10, tokens_out=1), attempt(tokens_in=10, tokens_out=2))
            ledger.record(entry(number, "verdict", *tried, latency_seconds=seconds, cost=0.5, currency="EUR"))
        ledger.record(entry(9, "unusable", latency_seconds=3.0))
        counts = ledger.counts()
        assert ledger.pass_counts("judge", "config", "pairwise", "original") == {"unusable": 1, "verdict": 3}
        assert ledger.pass_counts("judge", "other", "pairwise", "original") == {}
    columns = ["judge", "strategy", "pass", "status", "calls", "requests", "tokens_in", "tokens_out", "latency_seconds"]
    assert counts[columns].to_numpy().tolist() == [
        ["judge", "pairwise", "original", "unusable", 1, 1, 0, 0, 3.0],
        ["judge", "pairwise", "original", "verdict", 3, 6, 60, 9, 0.2],
    ]
    assert counts["cost"].isna().tolist() == [True, False]
    assert counts["cost"].tolist()[1] == 1.5


def test_a_judge_is_noted_once_and_keeps_what_was_found_out(path):
    with Ledger(path) as ledger:
        assert ledger.capabilities("judge", "c") is None
        ledger.see_judge("judge", "c")
        assert ledger.capabilities("judge", "c") is None
        ledger.see_judge("judge", "c", {"seed": True})
        ledger.see_judge("judge", "c")
        ledger.see_judge("judge", "d", {"seed": False})
        assert ledger.capabilities("judge", "c") == {"seed": True}
        assert sorted(ledger.judges()["config_sha256"]) == ["c", "d"]


def test_raised_caps_belong_to_one_judge(path):
    with Ledger(path) as ledger:
        ledger.raise_cap("a.b", "max_cost", 2.5)
        ledger.raise_cap("a.b", "max_cost", 3)
        ledger.raise_cap("a", "max_calls", 7)
        assert (ledger.caps("a.b"), ledger.caps("a"), ledger.caps("c")) == ({"max_cost": 3.0}, {"max_calls": 7.0}, {})


def test_the_plan_remembers_what_was_complete(path):
    with Ledger(path) as ledger:
        assert ledger.completed("judge", "direct", "direct") == (None, 0)
        ledger.set_plan("judge", "direct", "direct", 5, complete_sha256="sha")
        assert ledger.completed("judge", "direct", "direct") == ("sha", 5)
        ledger.set_plan("judge", "direct", "direct", 6)
        assert ledger.completed("judge", "direct", "direct") == (None, 6)


def test_results_that_arrive_together_are_committed_together_and_only_then_told(path):
    told, transactions = [], []

    async def main(ledger):
        real = ledger.record_all
        ledger.record_all = lambda entries: (transactions.append(len(entries)), real(entries))

        def written(entries):
            with Ledger(path, read_only=True) as reader:  # another connection sees them: they are committed
                assert {each.key.item_id for each in entries} <= set(reader.calls()["item_id"])
            told.extend(each.key.item_id for each in entries)

        writer = LedgerWriter(ledger, written, seconds=0.02, most=50)
        for number in range(30):
            writer.put(entry(number))
        assert told == []
        await asyncio.sleep(0.1)
        assert len(told) == 30
        for number in range(100, 160):
            writer.put(entry(number))
        assert len(told) == 80  # at fifty the writer does not wait
        writer.flush()
        writer.flush()

    with Ledger(path) as ledger:
        asyncio.run(main(ledger))
    assert len(told) == 90
    assert transactions == [30, 50, 10]


def test_a_result_that_cannot_be_written_is_never_told_and_stops_the_writer(path):
    told = []

    async def main(ledger):
        writer = LedgerWriter(ledger, told.extend, seconds=0.001)
        writer.put(entry(1))
        await asyncio.sleep(0.05)  # written by the timer; here nobody can hear an error
        with pytest.raises(LedgerError, match="finished already"):
            writer.put(entry(2))
        with pytest.raises(LedgerError, match="finished already"):
            writer.flush()

    with Ledger(path) as ledger:
        ledger.record(entry(1))
        asyncio.run(main(ledger))
    assert told == []
