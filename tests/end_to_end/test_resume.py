"""A run that is broken off in the middle of the swapped pass loses at most the calls in flight."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from judgelab.judging.runner import run_passes
from judgelab.study.freeze import open_run

from .conftest import ChatStudy, outputs_at, tables_of

pytestmark = pytest.mark.slow
SWAPPED_BEFORE_THE_END = 8
CONCURRENCY = 2


def finished(outputs: Path, pass_: str) -> int:
    """Calls of the served judge in the ledger."""
    path = outputs / "chat/ledger.sqlite"
    if not path.exists():
        return 0
    database = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        query = "SELECT count(*) FROM calls WHERE judge = 'served' AND pass = ? AND status = 'verdict'"
        return database.execute(query, (pass_,)).fetchone()[0]
    except sqlite3.OperationalError:  # the ledger is being made
        return 0
    finally:
        database.close()


@pytest.fixture
def frozen(chat: ChatStudy, tmp_path: Path) -> Path:
    """Outputs with the frozen study, so that each run below need not start with stage 01."""
    chat.freeze(tmp_path)
    return tmp_path


@pytest.fixture
def stuck(chat: ChatStudy, frozen: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that has got as far as the eighth swapped call, and waits for the endpoint."""
    chat.server.forget(silent_after=chat.planned + SWAPPED_BEFORE_THE_END)
    process = chat.start(frozen, "--from", "04", "--to", "04")
    try:
        deadline = time.monotonic() + 120
        while finished(frozen, "swapped") < SWAPPED_BEFORE_THE_END:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "the run has not come to the swapped pass"
            time.sleep(0.02)
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def stop(process: subprocess.Popen[str], sent: signal.Signals) -> tuple[int, str]:
    """Send a signal to the process group; status and stderr once every process has ended, the kernel too."""
    below = psutil.Process(process.pid).children(recursive=True)
    assert below, "no kernel is running"
    os.killpg(process.pid, sent)
    _, err = process.communicate(timeout=60)
    left = psutil.wait_procs(below, timeout=15)[1]
    for orphan in left:
        orphan.kill()
    assert left == [], "the kernel outlives the run"
    return process.returncode, err


def check_nothing_was_paid_twice(chat: ChatStudy, first: dict[str, int]) -> None:
    """``first``: what was asked before the break. Only what was in flight may have been asked again."""
    again = [prompt for prompt, count in chat.server.asked.items() if count + first.get(prompt, 0) > 1]
    assert len(again) <= CONCURRENCY
    assert chat.server.asked.total() == chat.planned - SWAPPED_BEFORE_THE_END


def test_kill_9_and_the_same_command_again_give_the_tables_of_an_unbroken_run(chat, unbroken, frozen, stuck):
    status, _ = stop(stuck, signal.SIGKILL)
    assert status == -signal.SIGKILL
    assert finished(frozen, "original") == chat.planned
    assert finished(frozen, "swapped") == SWAPPED_BEFORE_THE_END
    asked = dict(chat.server.asked)
    chat.server.forget()
    code, out, err = chat.finish(frozen, "--from", "04", "--to", "06")
    assert code == 0, out + err
    check_nothing_was_paid_twice(chat, asked)
    ours, theirs = tables_of(frozen / "chat"), tables_of(unbroken / "chat")
    assert ours == theirs
    assert {"agreement.csv", "position.csv", "served.csv"} <= set(ours)


def test_ctrl_c_ends_with_a_sentence_and_the_run_goes_on(chat, unbroken, frozen, stuck):
    status, err = stop(stuck, signal.SIGINT)
    assert status in (2, 130)
    assert "Traceback" not in err
    assert "interrupted" in err
    assert "run the same command to go on" in err
    assert finished(frozen, "swapped") == SWAPPED_BEFORE_THE_END
    asked = dict(chat.server.asked)
    chat.server.forget()
    code, out, err = chat.finish(frozen, "--from", "04", "--to", "04")
    assert code == 0, out + err
    check_nothing_was_paid_twice(chat, asked)
    for name in ("pairwise_original.jsonl", "pairwise_swapped.jsonl"):
        ours, theirs = ((outputs / "chat" / name).read_text("utf-8") for outputs in (frozen, unbroken))
        assert len(ours.splitlines()) == len(theirs.splitlines()) == 2 * chat.planned


def test_a_finished_run_asks_nothing_more(quiet_chat, unbroken):
    """At the level of the runner; the demo shows it for the command."""
    assert quiet_chat.server.asked.total() == 2 * quiet_chat.planned
    with outputs_at(unbroken):
        run = open_run("chat")
        summary = asyncio.run(run_passes(run, run.study.passes))
    assert quiet_chat.server.asked.total() == 2 * quiet_chat.planned
    assert set(summary["asked"]) == {0}
    assert set(summary["verdicts"]) == {quiet_chat.planned}
