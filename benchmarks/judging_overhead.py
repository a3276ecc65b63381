"""What the runner, the ledger and the parser cost beside the network: against the ideal, and against bare httpx.

With latency: ``N x latency / concurrency`` is the time that N calls take if asking costs nothing. Without: calls per
second of a run, over those of a loop that sends the same bodies through httpx and decodes the replies' JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import Iterator
from typing import Any

import httpx

from benchmarks.loopback import PASSES, Loopback, load, make_run, project, serving, unseen
from judgelab.judging.passes import plan_pass
from judgelab.judging.runner import run_passes
from judgelab.study.run import Run

CALLS, LATENCY, CONCURRENCY, ROUNDS = 10_000, 0.05, 64, 3


def judged(run: Run) -> float:
    """Seconds that `run_passes` takes, from planning to the last transaction."""
    start = time.perf_counter()
    with unseen():  # the progress bar is drawn unseen
        table = asyncio.run(run_passes(run, PASSES))
    seconds = time.perf_counter() - start
    assert table["verdicts"].tolist() == table["planned"].tolist(), table
    return seconds


def bodies_of(run: Run) -> list[dict[str, Any]]:
    """The bodies that the runner sends, but for the schema of the reply."""
    judge = run.study.judges[0]
    common = {"model": "m-1", "temperature": 0.0, "max_tokens": 400}
    return [{"messages": call.prompt.messages(), **common} for call in plan_pass(run, judge, PASSES[0])]


def bare(server: Loopback, bodies: list[dict[str, Any]], clients: int) -> float:
    """Seconds that a plain loop over httpx takes for the same requests, with its connections in so many clients."""
    each = CONCURRENCY // clients
    limits = httpx.Limits(max_connections=each, max_keepalive_connections=each)
    options = {"base_url": server.base_url, "limits": limits, "timeout": 60, "verify": httpx.create_ssl_context()}

    async def worker(client: httpx.AsyncClient, queue: Iterator[dict[str, Any]]) -> None:
        for body in queue:
            (await client.post("/chat/completions", json=body)).json()["choices"][0]["message"]["content"]

    async def loop() -> None:
        queue = iter(bodies)
        async with contextlib.AsyncExitStack() as stack:
            made = [await stack.enter_async_context(httpx.AsyncClient(**options)) for _ in range(clients)]
            await asyncio.gather(*(worker(made[number % clients], queue) for number in range(CONCURRENCY)))

    start = time.perf_counter()
    asyncio.run(loop())
    return time.perf_counter() - start


def with_latency(calls: int) -> None:
    """Against the time that the calls take if asking costs nothing."""
    with project() as folder, serving(latency=LATENCY) as server:
        run = make_run(folder, calls, [server.judge(concurrency=CONCURRENCY)])
        work, seconds = time.process_time(), judged(run)
        work, ideal = time.process_time() - work, calls * LATENCY / CONCURRENCY
        held = server.log()["mean_held"]
    print(f"  {LATENCY * 1000:.0f} ms latency: {seconds:.2f} s, ideal {ideal:.2f} s, ratio {seconds / ideal:.3f}")
    print(
        f"    ({work / calls * 1000:.2f} ms of processor time a call; the server held an answer {held * 1000:.1f} ms "
        f"on average, and with that as the latency the ratio is {seconds / ideal * LATENCY / held:.3f})"
    )


def without_latency(calls: int) -> None:
    """Against bare httpx: as one client with all connections, and as a client a connection, which is its fastest."""
    rates: dict[str, list[float]] = {"judged": [], "one client": [], "a client a connection": []}
    with project() as folder, serving(plain=True) as server:
        for number in range(ROUNDS):  # by turns, so that what else runs on the machine is met by all
            run = make_run(folder, calls, [server.judge(concurrency=CONCURRENCY)], name=f"round-{number}")
            bodies = bodies_of(run)
            rates["one client"].append(calls / bare(server, bodies, 1))
            rates["judged"].append(calls / judged(run))
            rates["a client a connection"].append(calls / bare(server, bodies, CONCURRENCY))
    ours = rates.pop("judged")
    print(f"  no latency: {statistics.median(ours):.0f} calls/s (median of {ROUNDS} rounds)")
    for name, theirs in rates.items():
        ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
        print(f"    bare httpx, {name}: {statistics.median(theirs):.0f} calls/s, ratio {ratio:.2f}")


def main(scale: float = 1.0) -> None:
    """Measure and print."""
    calls = max(int(CALLS * scale), 4 * CONCURRENCY)
    print(f"judging overhead, {calls} calls, concurrency {CONCURRENCY}; {load()}", flush=True)
    with_latency(calls)
    without_latency(calls)


if __name__ == "__main__":
    main()
