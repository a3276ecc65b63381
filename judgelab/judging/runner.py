"""The runner: asks the judges with bounded concurrency and writes each result to the ledger as it arrives.

Running again resumes: finished calls are read from the ledger, failed and missing ones are asked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd
from tenacity import wait_exponential, wait_random

from judgelab.errors import JudgeError
from judgelab.judging.judges import client_for
from judgelab.judging.judges.base import JudgeClient, RefusedError, Reply, TransientError
from judgelab.judging.ledger import Attempt, Entry, Ledger
from judgelab.judging.passes import PASSES, PlannedCall, config_sha256, plan_pass
from judgelab.judging.progress import Progress
from judgelab.judging.replies import Contract, Reading, contract_for
from judgelab.study.protocol import Study
from judgelab.study.run import Run

__all__ = ["run_passes"]

BATCH = 500  # results of judges that ask no model are written in batches of this size
_wait = wait_exponential(multiplier=0.5, max=30) + wait_random(0, 0.5)


@dataclass
class _State:
    """What `tenacity`'s wait strategies look at."""

    attempt_number: int


async def run_passes(run: Run, passes: Sequence[str]) -> pd.DataFrame:
    """Ask every judge of the protocol for the given passes.

    Parameters
    ----------
    run
        A frozen run.
    passes
        Names of passes of the protocol: ``direct``, ``pairwise_original``, ``pairwise_swapped``.

    Returns
    -------
    pandas.DataFrame
        One row per judge and pass: ``planned``, ``already`` finished before, ``asked`` now, ``verdicts`` and
        ``unusable`` (of all planned), ``failed`` (will be asked again by the next run).

    Raises
    ------
    JudgeError
        After all other judges have finished, if one could not be asked at all.
    LedgerError
        If the ledger cannot be written. What it holds is kept.
    """
    rows, stopped = [], []
    with Ledger(run.path("ledger.sqlite")) as ledger:
        work = _planned(run, passes, ledger)
        for judge in run.study.judges:
            todo = [entry for entry in work if entry.judge is judge and entry.todo]
            if todo:
                try:
                    await _ask_judge(run.study, judge, todo, ledger)
                except JudgeError as error:
                    stopped.append(str(error))
        calls = ledger.calls()
        rows = [_summary(entry, calls) for entry in work]
    if stopped:
        raise JudgeError("; ".join(stopped) + ". What was judged is in the ledger; run again to continue")
    return pd.DataFrame(
        rows, columns=["judge", "pass", "planned", "already", "asked", "verdicts", "unusable", "failed"]
    )


@dataclass
class _Work:
    judge: Any
    pass_name: str
    planned: list[PlannedCall]
    todo: list[PlannedCall]


def _planned(run: Run, passes: Sequence[str], ledger: Ledger) -> list[_Work]:
    """What must be asked, pass by pass within each judge."""
    work = []
    for judge in run.study.judges:
        finished = ledger.finished(judge.name, config_sha256(judge))
        for pass_name in passes:
            if pass_name not in run.study.passes_of(judge):
                continue
            planned = plan_pass(run, judge, pass_name)
            todo = [entry for entry in planned if entry.key.values() not in finished]
            ledger.set_plan(judge.name, *PASSES[pass_name], len(planned))
            work.append(_Work(judge, pass_name, planned, todo))
    return work


async def _ask_judge(study: Study, judge: Any, work: list[_Work], ledger: Ledger) -> None:
    """Ask one judge, pass after pass, with as many calls in flight as it allows."""
    async with client_for(judge, study) as client:
        for part in work:
            contract = contract_for(study, PASSES[part.pass_name][0])
            if client.asks_a_model:
                await _ask_model(study, client, part, contract, ledger)
            else:
                for batch in _batches(part.todo, BATCH):
                    ledger.record_all([await _settle(study, client, planned, contract) for planned in batch])


async def _ask_model(study: Study, client: JudgeClient, part: _Work, contract: Contract, ledger: Ledger) -> None:
    """A pool of workers over one queue. One fatal error stops all of them; what has arrived is kept."""
    queue = iter(part.todo)
    with Progress(f"{part.judge.name} {part.pass_name}", len(part.planned), len(part.planned) - len(part.todo)) as bar:

        async def worker(calls: Iterator[PlannedCall]) -> None:
            for planned in calls:
                entry = await _settle(study, client, planned, contract)
                ledger.record(entry)
                bar.step(entry.status)

        workers = [asyncio.create_task(worker(queue)) for _ in range(min(client.concurrency, len(part.todo)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)


async def _settle(study: Study, client: JudgeClient, planned: PlannedCall, contract: Contract) -> Entry:
    """Ask until there is a verdict, or the protocol's retries are used up. Each retry sends the same input."""
    attempts: list[Attempt] = []
    malformed = transient = 0
    while True:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(study.timeout_seconds):
                reply = await client.ask(planned.call, planned.prompt)
        except RefusedError as error:
            attempts.append(_attempt("refused", started, reason=error.reason, detail=error.detail))
            return _entry(planned, "unusable", attempts, reason=error.reason, detail=error.detail)
        except (TransientError, TimeoutError) as error:
            reason, why, wait = _transient(error, study)
            attempts.append(_attempt("transient", started, reason=reason, detail=why))
            transient += 1
            if transient > study.retries.transient_error:
                return _entry(planned, "failed", attempts, reason=reason, detail=why)
            await asyncio.sleep(wait if wait is not None else _wait(_State(transient)))  # type: ignore[arg-type]
            continue
        reading = _read(reply, contract)
        outcome = "verdict" if reading.usable else "malformed"
        told = reading.detail or None
        attempts.append(_attempt(outcome, started, reply=reply.text, reason=reading.reason, detail=told))
        if reading.usable:
            return _entry(planned, "verdict", attempts, reply=reply, reading=reading)
        malformed += 1
        if malformed > study.retries.malformed_output or not client.asks_a_model:
            return _entry(planned, "unusable", attempts, reply=reply, reading=reading)


def _read(reply: Reply, contract: Contract) -> Reading:
    """The verdict in a reply, or in a record whose source parsed it already."""
    if reply.reason is not None:
        return Reading(None, reply.reason)
    if reply.verdict is not None:
        return contract.check_parsed(reply.verdict)
    return contract.read(reply.text)


def _transient(error: TransientError | TimeoutError, study: Study) -> tuple[str, str, float | None]:
    if isinstance(error, TransientError):
        return error.reason, error.detail, error.retry_after
    return "timeout", f"no reply within {study.timeout_seconds:g} s", None


def _attempt(outcome: str, started: float, **values: Any) -> Attempt:
    return Attempt(
        outcome=outcome,
        finished_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        latency_seconds=round(time.perf_counter() - started, 4),
        **values,
    )


def _entry(
    planned: PlannedCall,
    status: str,
    attempts: list[Attempt],
    *,
    reply: Reply | None = None,
    reading: Reading | None = None,
    reason: str | None = None,
    detail: str | None = None,
) -> Entry:
    """The ledger's entry for a settled call."""
    reply = reply or Reply(text=None)
    reading = reading or Reading(None, reason, detail or "")
    return Entry(
        key=planned.key,
        status=status,
        verdict=reading.verdict,
        reason=reading.reason,
        detail=reading.detail or None,
        reply=reply.text,
        frame_sha256=planned.prompt.frame_sha256,
        model=reply.model,
        fingerprint=reply.fingerprint,
        finish_reason=reply.finish_reason,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        latency_seconds=attempts[-1].latency_seconds,
        attempts=tuple(attempts),
    )


def _batches(calls: list[PlannedCall], size: int) -> Iterator[list[PlannedCall]]:
    for start in range(0, len(calls), size):
        yield calls[start : start + size]


def _summary(work: _Work, calls: pd.DataFrame) -> dict[str, Any]:
    """Counts for one judge and pass."""
    strategy, pass_ = PASSES[work.pass_name]
    own = calls[
        (calls["judge"] == work.judge.name)
        & (calls["strategy"] == strategy)
        & (calls["pass"] == pass_)
        & (calls["config_sha256"] == config_sha256(work.judge))
    ]
    counts = own["status"].value_counts()
    return {
        "judge": work.judge.name,
        "pass": work.pass_name,
        "planned": len(work.planned),
        "already": len(work.planned) - len(work.todo),
        "asked": len(work.todo),
        "verdicts": int(counts.get("verdict", 0)),
        "unusable": int(counts.get("unusable", 0)),
        "failed": int(counts.get("failed", 0)),
    }
