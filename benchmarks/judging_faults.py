"""Ten thousand calls to a provider that misbehaves in 30 % of its answers, in each of the ways that do not end a run.

What must come of each call follows from its faults and the protocol's retries, so the ledger and the server's log are
checked call for call: the outcome, the verdict, the number of requests.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import Any

from benchmarks.loopback import PASSES, load, make_run, project, server_module, serving, unseen
from judgelab.judging.ledger import Ledger
from judgelab.judging.passes import plan_pass
from judgelab.judging.runner import run_passes
from judgelab.study.run import Run

CALLS, SHARE, CONCURRENCY, TIMEOUT, RUNS = 10_000, 0.3, 64, 1.0, 10


def main(scale: float = 1.0) -> None:
    """Run until no call has failed, check, and print."""
    calls = max(int(CALLS * scale), 100)
    module = server_module()
    faults = {"kinds": module.OFTEN, "share": SHARE, "seed": 7}
    print(f"judging with faults in {SHARE:.0%} of the answers, {calls} calls, concurrency {CONCURRENCY}; {load()}")
    with project() as folder, serving(faults=faults, slow=1.6 * TIMEOUT) as server:
        run = make_run(folder, calls, [server.judge(concurrency=CONCURRENCY)], timeout_seconds=TIMEOUT)
        start, failed = time.perf_counter(), []
        with unseen():
            while not failed or (failed[-1] and len(failed) < RUNS):
                failed.append(int(asyncio.run(run_passes(run, PASSES))["failed"].iloc[0]))
        seconds, seen = time.perf_counter() - start, server.log()
        problems, statuses = check(run, seen["by_key"], module, len(failed))
    met = Counter(fault for one in seen["by_key"].values() for fault in one if fault)
    print(
        f"  {seen['requests']} requests in {seconds:.0f} s, {sum(met.values())} of them with one of {len(met)} faults"
    )
    print(f"  failed after each run (the next asks them again): {', '.join(map(str, failed))}")
    print(f"  in the end: {', '.join(f'{count} {status}' for status, count in sorted(statuses.items()))}")
    for name, count in problems.items():
        print(f"  {name}: {count}")
    if sum(problems.values()):
        raise SystemExit("the ledger differs from what the faults and the retries allow")


def check(run: Run, seen: dict[str, list[str | None]], module: Any, runs: int) -> tuple[dict[str, int], Counter[str]]:
    """Compare every call of the ledger with the faults that it met."""
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        table = ledger.calls()
    rows = {row["item_id"]: row for row in table.to_dict("records")}
    planned = plan_pass(run, run.study.judges[0], PASSES[0])
    problems = {
        "calls in the ledger twice": len(table) - len(rows),
        "calls lost": len({call.call.item.item_id for call in planned} - set(rows)),
        "calls without a verdict or a reason": sum(
            row["verdict"] is None and row["reason"] is None for row in rows.values()
        ),
        "verdicts of another call": 0,
        "calls with another outcome than their faults allow": 0,
        "calls with more or fewer requests than the retries allow": 0,
    }
    for call in planned:
        row, key = rows[call.call.item.item_id], module.call_key(call.prompt.user)
        met = seen[f"chat {key}"]
        status, requests = _policy(met, module, run, runs)
        problems["calls with another outcome than their faults allow"] += row["status"] != status
        problems["calls with more or fewer requests than the retries allow"] += (
            not requests == len(met) == row["attempts"]
        )
        if row["status"] == "verdict":
            own = module.verdict_for(call.prompt.system, key)
            problems["verdicts of another call"] += json.loads(row["verdict"]) != own
    return problems, Counter(row["status"] for row in rows.values())


def _policy(met: list[str | None], module: Any, run: Run, runs: int) -> tuple[str, int]:
    """The outcome and the number of requests of a call over all runs: a failed call is asked again by the next."""
    retries, used = run.study.retries, 0
    for _ in range(runs):
        status, _fault, requests = module.settled(
            met[used:], malformed=retries.malformed_output, transient=retries.transient_error
        )
        used += requests
        if status != "failed":
            break
    return status, used


if __name__ == "__main__":
    main()
