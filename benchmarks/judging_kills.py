"""A run that is killed with SIGKILL again and again and taken up each time ends with the ledger of an unbroken run.

A part of the provider's replies are never a verdict, so the ledger holds unusable calls and second attempts too.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd

from benchmarks.loopback import Loopback, load, make_run, project, serving
from judgelab.judging.ledger import Ledger
from judgelab.study.run import Run

KILLS, SEED, CONCURRENCY, LATENCY = 50, 20_240_719, 8, 0.04
CALLS_PER_KILL, SECONDS = 120, 1.6  # a life is too short for its share of the calls: the last kill meets open calls
ONCE = """
import asyncio, sys
from judgelab.judging.runner import run_passes
from judgelab.study.freeze import open_run
run = open_run(sys.argv[1], None)
print("ready", flush=True)
asyncio.run(run_passes(run, ("pairwise_original",)))
"""
OWN = ["latency_seconds", "batch_id"]  # what may differ from run to run


def started(run: Run) -> subprocess.Popen[str]:
    """A process that judges this run."""
    return subprocess.Popen(
        [sys.executable, "-c", ONCE, run.name],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).resolve().parents[1],
    )


def finished(run: Run) -> None:
    """Judge a run without breaking it."""
    with started(run) as process:
        process.communicate()
    if process.returncode:
        raise SystemExit(f"the run {run.name} ended with status {process.returncode}")


def killed(run: Run, seconds: float) -> int:
    """Start a run and kill it so many seconds after it began to open its ledger; its exit status."""
    with started(run) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
    return process.returncode


def ledger_of(run: Run) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Calls and attempts but for what may differ."""
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        calls, attempts = ledger.calls(), ledger.attempts()
    return calls.drop(columns=[c for c in OWN if c in calls]), attempts.drop(columns=[c for c in OWN if c in attempts])


def main(scale: float = 1.0) -> None:
    """Kill, resume, compare and print."""
    kills = max(int(KILLS * scale), 3)
    calls = kills * CALLS_PER_KILL
    print(f"{kills} kills (SIGKILL) of a run of {calls} calls, concurrency {CONCURRENCY}; {load()}")
    with project() as folder, serving(latency=LATENCY, unusable_share=0.1) as server:
        judges = [server.judge(concurrency=CONCURRENCY)]
        unbroken = make_run(folder, calls, judges, name="unbroken")
        finished(unbroken)
        before = server.requests()
        broken = make_run(folder, calls, judges, name="broken")
        died, asking = kill_again_and_again(broken, kills, server)
        finished(broken)
        repeated = server.requests() - 2 * before
        wanted, found = ledger_of(unbroken), ledger_of(broken)
    equal = [left.equals(right) for left, right in zip(wanted, found, strict=True)]
    print(f"  {died} kills met a run at work, {asking} of them after it had sent requests")
    print(f"  {repeated} of {before} requests were sent twice: they were in flight at a kill, or not yet written")
    print(f"  {len(found[0])} calls {'equal' if equal[0] else 'DIFFER FROM'} the unbroken run's, call for call")
    print(f"  {len(found[1])} attempts {'equal' if equal[1] else 'DIFFER FROM'} the unbroken run's")
    if not all(equal) or died < kills:
        raise SystemExit("the ledger of the killed run differs, or too few kills met it at work")


def kill_again_and_again(run: Run, kills: int, server: Loopback) -> tuple[int, int]:
    """How many processes were killed before they had finished, and how many of those had sent requests."""
    moments, died, asking = random.Random(SEED), 0, 0
    for _ in range(kills):
        before = server.requests()
        died += killed(run, moments.uniform(0, SECONDS)) == -signal.SIGKILL
        asking += server.requests() > before
    return died, asking


if __name__ == "__main__":
    main()
