"""How sure a judge's tokens are: from the answer over the ledger to a column of the verdicts."""

from __future__ import annotations

import asyncio
import json
import math

import pytest

from judgelab.judging.evidence import verdicts, write_evidence
from judgelab.judging.judges.logprobs import winner_margin
from judgelab.judging.runner import run_passes

TOKENS = ['{"winner": "', "A", '", "confidence": "low", "reason_codes": []}']


def kept(token, logprob, *top, key="winner"):
    return {"key": key, "token": token, "logprob": logprob, "top": [{"token": t, "logprob": p} for t, p in top]}


def test_the_margin_is_that_to_the_next_other_token():
    assert winner_margin([kept("A", -0.25, ("A", -0.25), ("B", -1.75), ("TIE", -3.0))]) == 1.5
    # alternatives without the token itself, as some endpoints give them
    assert winner_margin([kept("B", -0.75, ("TIE", -3.0))]) == 2.25
    # the same label written otherwise is no rival
    assert winner_margin([kept("A", -0.25, (" A", -0.5), ('"a', -0.75), ("B", -2.25))]) == 2.0
    # an unlikely token was drawn
    assert winner_margin([kept("B", -2.0, ("A", -0.25), ("B", -2.0))]) == -1.75
    # of several answers the last counts
    assert winner_margin([kept("A", -0.5, ("B", -1.0)), kept("B", -0.5, ("A", -4.5))]) == 4.0


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        [kept("A", -0.1)],
        [kept("A", -0.1, (" A", -2.0))],
        [kept("4", -0.1, ("3", -2.0), key="correctness")],
        [kept("A", None, ("B", -2.0))],
        [kept("A", -0.1, ("B", float("-inf")))],
    ],
)
def test_without_an_alternative_there_is_no_margin(tokens):
    assert math.isnan(winner_margin(tokens))


@pytest.mark.usefixtures("quick")
def test_verdicts_have_margins_if_asked(make_run, server):
    def answer(body, number):
        if "ANSWER A" not in body["messages"][-1]["content"]:
            return server.good(body)
        top = [{"token": "A", "logprob": -0.125}, {"token": "B", "logprob": -2.125}]
        content = [
            {"token": token, "logprob": -0.125, "top_logprobs": top if place == 1 else []}
            for place, token in enumerate(TOKENS)
        ]
        message = {"role": "assistant", "content": "".join(TOKENS)}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": content}}
        return server.completion("", choices=[choice])

    server.script = answer
    run = make_run([server.judge(capabilities={"logprobs": 2}), {"name": "coin", "kind": "control", "rule": "coin"}])
    asyncio.run(run_passes(run, run.study.passes))
    plain, table = verdicts(run), verdicts(run, margins=True)
    assert list(table.columns) == [*plain.columns, "logprob_margin"]
    served = table[table["judge"] == "served"]
    assert served.loc[served["strategy"] == "pairwise", "logprob_margin"].tolist() == [2.0] * 8
    assert served.loc[served["strategy"] == "direct", "logprob_margin"].isna().all()
    assert table.loc[table["judge"] == "coin", "logprob_margin"].isna().all()
    write_evidence(run, plain)  # the evidence files know nothing of it
    lines = run.path("pairwise_original.jsonl").read_text().splitlines()
    assert lines
    assert not any("logprob" in json.dumps(json.loads(line)) for line in lines)
