"""Opening a run whose calls are all finished: how long it takes, and how much memory, to find nothing to do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.loopback import PASSES, load, make_run, project
from judgelab.judging.entries import Attempt, Entry
from judgelab.judging.ledger import Ledger
from judgelab.judging.passes import plan_pass
from judgelab.study.run import Run

CALLS, BATCH = 100_000, 1_000
REPLY = json.dumps({"winner": "A", "confidence": "high", "reason_codes": []})
AGAIN = """
import asyncio, json, pathlib, resource, sys, time
start = time.perf_counter()
from judgelab.judging.runner import run_passes
from judgelab.study.freeze import open_run
loaded = time.perf_counter()
run = open_run("bench", None)
opened = time.perf_counter()
table = asyncio.run(run_passes(run, ("pairwise_original",)))
assert table["asked"].tolist() == [0], table
status = pathlib.Path("/proc/self/status")
if status.exists():  # ru_maxrss would count what the process was forked from
    peak = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 2**10
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
now = time.perf_counter()
print(json.dumps({"imports": loaded - start, "opening": opened - loaded, "nothing to do": now - opened,
                  "whole": now - start, "already": int(table["already"].iloc[0]), "peak": peak}))
"""


def finish(run: Run) -> None:
    """Write a verdict for every call, as a finished run has it."""
    planned = plan_pass(run, run.study.judges[0], PASSES[0])
    attempt = Attempt("verdict", "2026-01-01T00:00:00.000+00:00", reply=REPLY, latency_seconds=0.5)
    with Ledger(run.path("ledger.sqlite")) as ledger:
        for start in range(0, len(planned), BATCH):
            ledger.record_all(
                Entry(
                    call.key,
                    "verdict",
                    json.loads(REPLY),
                    reply=REPLY,
                    frame_sha256=call.prompt.frame_sha256,
                    model="served-model",
                    tokens_in=100,
                    tokens_out=20,
                    latency_seconds=0.5,
                    attempts=(attempt,),
                )
                for call in planned[start : start + BATCH]
            )


def main(scale: float = 1.0) -> None:
    """Measure in a fresh process, and print."""
    calls = max(int(CALLS * scale), 100)
    with project() as folder:
        judge = {"name": "served", "kind": "chat", "model": "m-1", "base_url": "http://127.0.0.1:9/v1"}
        run = make_run(folder, calls, [judge])
        finish(run)
        print(f"reopening a run of {calls} finished calls, each time in a fresh process; {load()}")
        # as after a kill: the ledger does not say that the pass is complete, so every call is planned and compared
        again("every call compared with the ledger", calls)
        again("known to be complete", calls)


def again(title: str, calls: int) -> None:
    """Open the run, find nothing to do, and print what that took."""
    done = subprocess.run([sys.executable, "-c", AGAIN], check=True, capture_output=True, text=True, cwd=_root())
    found = json.loads(done.stdout)
    assert found["already"] == calls
    parts = ", ".join(f"{name} {found[name]:.2f} s" for name in ("imports", "opening", "nothing to do"))
    print(f"  {title}: {found['whole']:.2f} s ({parts}), peak memory {found['peak']:.0f} MB", flush=True)


def _root() -> Path:
    return Path(__file__).resolve().parents[1]


if __name__ == "__main__":
    main()
