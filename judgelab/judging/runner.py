"""The runner: asks the judges with bounded concurrency and writes each result to the ledger as it arrives.

Running again resumes: finished calls are read from the ledger, failed and missing ones are asked. A judge is asked at
the pace of its limits and stopped before it passes one of its caps; the others go on.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from tenacity import wait_exponential, wait_random_exponential

from judgelab.errors import JudgeError
from judgelab.judging.asking import Asker, Terms, Usage, attempt, entry, read_reply
from judgelab.judging.batch import batch_prices, settle_in_batches, waiting
from judgelab.judging.batch_ledger import BATCHES
from judgelab.judging.budget import Budget, BudgetReached, TokenEstimate
from judgelab.judging.entries import Entry
from judgelab.judging.judges import client_for
from judgelab.judging.judges.base import Call, JudgeClient, RefusedError, TransientError
from judgelab.judging.judges.batches import has_batches
from judgelab.judging.judges.http import UnsupportedError
from judgelab.judging.ledger import Ledger
from judgelab.judging.ledger_writer import LedgerWriter
from judgelab.judging.limits import Limiter
from judgelab.judging.locks import hold_judge, hold_run
from judgelab.judging.passes import PassPlan, PlannedCall, planned_call
from judgelab.judging.progress import Progress
from judgelab.judging.replies import Contract
from judgelab.judging.work import Work, note_complete, open_calls, planned_work, summary
from judgelab.study.configuration import asks_a_model
from judgelab.study.protocol import Study
from judgelab.study.run import Run
from judgelab.study.terms import Capabilities

__all__ = ["run_passes"]

BATCH = 500  # results of judges that ask no model are written in batches of this size
_wait = wait_exponential(multiplier=0.25, max=30) + wait_random_exponential(multiplier=0.25, max=30)


@dataclass
class _State:
    """What `tenacity`'s wait strategies look at."""

    attempt_number: int


async def run_passes(run: Run, passes: Sequence[str | PassPlan], batch: bool | None = None) -> pd.DataFrame:
    """Ask every judge of the protocol for the given passes.

    Parameters
    ----------
    run
        A frozen run.
    passes
        Names of passes of the protocol (``direct``, ``pairwise_original``, ``pairwise_swapped``), or plans of passes,
        such as those of the probes and the repairs.
    batch
        Whether judges whose provider has batches are asked through them. None: as the environment variable
        ``JUDGELAB_BATCH`` says (``1``: yes), which ``judgelab run --batch`` sets.

    Returns
    -------
    pandas.DataFrame
        One row per judge and pass: ``planned``, ``already`` finished before, ``asked`` now, ``verdicts`` and
        ``unusable`` (of all planned), ``failed`` (will be asked again by the next run). ``attrs["refused"]`` lists the
        repairs whose requests an endpoint does not take, with its words.

    Raises
    ------
    JudgeError
        After all other judges have finished, if one could not be asked at all or has reached a cap.
    LedgerError
        If the ledger cannot be written. What it holds is kept.
    RunError
        If another process is judging in this run. Nothing was touched.
    """
    batch = os.environ.get(BATCHES) == "1" if batch is None else batch
    with hold_run(run.folder), Ledger(run.path("ledger.sqlite")) as ledger:
        work = planned_work(run, passes, ledger)
        refused: list[str] = []
        stopped = await _ask_all(run, work, ledger, batch, refused)
        for part in work:
            note_complete(run, part, ledger)
        rows = [summary(part, ledger) for part in work]
    if stopped:
        raise JudgeError("; ".join(stopped) + ". What was judged is in the ledger; run again to continue")
    table = pd.DataFrame(
        rows, columns=["judge", "pass", "planned", "already", "asked", "verdicts", "unusable", "failed"]
    )
    table.attrs["refused"] = refused
    return table


async def _ask_all(run: Run, work: list[Work], ledger: Ledger, batch: bool, refused: list[str]) -> list[str]:
    """Ask judge after judge; those in batches wait for their providers side by side. Why judges were stopped.

    A repair's request that an endpoint does not take (for log-probabilities, say) stops nothing: it is ``refused``.
    """

    async def ask(judge: Any, parts: list[Work]) -> str | None:
        try:
            await _ask_judge(run, judge, parts, ledger, batch)
        except BudgetReached as error:
            return _capped(error, run, parts, ledger)
        except UnsupportedError as error:
            if judge in run.study.judges or parts[0].strategy == "generation":
                return str(error)
            refused.append(f"{', '.join(part.pass_name for part in parts)}: {error}")
        except JudgeError as error:
            return str(error)
        return None

    left = [part for part in work if part.todo]
    judges = list({(part.judge.name, part.config_sha256): part.judge for part in left}.values())
    open_ = [(judge, [part for part in left if part.judge == judge]) for judge in judges]
    side_by_side = [asyncio.create_task(ask(judge, parts)) for judge, parts in open_ if batch and has_batches(judge)]
    try:
        stopped = [await ask(judge, parts) for judge, parts in open_ if not (batch and has_batches(judge))]
        stopped += await asyncio.gather(*side_by_side)
    finally:
        for task in side_by_side:
            task.cancel()
        await asyncio.gather(*side_by_side, return_exceptions=True)
    return [message for message in stopped if message is not None]


def _capped(error: BudgetReached, run: Run, parts: list[Work], ledger: Ledger) -> str:
    """What a cap has left undone, and the way on."""
    counts = [summary(part, ledger) for part in parts]
    planned = sum(part.planned for part in parts)
    left = planned - sum(count["verdicts"] + count["unusable"] for count in counts)
    way = f"raise the cap with `judgelab ledger {run.name} --raise {error.judge}.{error.key}=VALUE`"
    if parts[0].strategy == "generation":  # before a run is frozen its protocol may be changed
        way = f"raise generated.model.limits.{error.key} of this system in the protocol"
    open_ = f"{left} of its {planned} calls in {', '.join(part.pass_name for part in parts)} are open"
    return f"{error}; {open_}. To go on, {way}"


async def _ask_judge(run: Run, judge: Any, work: list[Work], ledger: Ledger, batch: bool) -> None:
    """Ask one judge, pass after pass, with as many calls in flight as it allows, or all passes in batches."""
    study = run.study
    async with AsyncExitStack() as stack:
        if asks_a_model(judge):
            await stack.enter_async_context(hold_judge(run.folder, judge.name))
        client = await stack.enter_async_context(client_for(judge, study))
        ledger.see_judge(judge.name, work[0].config_sha256)
        if not client.asks_a_model:
            for part in work:
                await _ask_rule(study, client, part, ledger)
            return
        await _learn_capabilities(study, client, judge, work[0].config_sha256, ledger)
        if has_batches(judge) and (batch or waiting(work, ledger)):
            # what an earlier run left at the provider is fetched in any case: it is paid for
            await settle_in_batches(study, client, work, _terms(judge, ledger, in_batches=True), ledger, send=batch)
            if batch:
                return
            for part in work:
                part.todo, part.settled = open_calls(study, judge, part.todo, ledger), 0
        terms = _terms(judge, ledger)
        for part in work:
            if part.todo:
                await _ask_model(study, client, part, terms, ledger)


def _terms(judge: Any, ledger: Ledger, *, in_batches: bool = False) -> Terms:
    """On what terms a judge is asked from here on. A batch waits at its provider, so it needs no pace of ours."""
    limits, before = judge.limits, ledger.spent(judge.name)
    # what an earlier version did not price was asked live
    unpriced = judge.prices.cost(before.unpriced_in, None, before.unpriced_out)
    before = replace(before, cost=before.cost + unpriced, unpriced_in=0, unpriced_out=0)
    prices = batch_prices(judge.prices) if in_batches else judge.prices
    return Terms(
        limiter=Limiter() if in_batches else Limiter(limits.requests_per_minute, limits.tokens_per_minute),
        budget=Budget(judge.name, limits, prices, before, ledger.caps(judge.name)),
        estimate=TokenEstimate(judge.max_tokens),
        prices=prices,
    )


async def _ask_rule(study: Study, client: JudgeClient, part: Work, ledger: Ledger) -> None:
    """Ask a judge that asks no model: its results cost nothing and are written in large batches."""
    contract = part.contract(study)
    for batch in _batches(part.todo, BATCH):
        planned = (planned_call(study, part.judge.name, part.config_sha256, call) for call in batch)
        entries = [await _look_up(client, each, contract) for each in planned]
        ledger.record_all(entries)
        part.count(entries)


async def _learn_capabilities(study: Study, client: JudgeClient, judge: Any, config: str, ledger: Ledger) -> None:
    """Find out once what an endpoint can do, where the protocol asks for it; a resumed run asks in the same way."""
    if not client.needs_probe:
        ledger.see_judge(judge.name, config, client.capabilities.model_dump(mode="json"))
        return
    known = ledger.capabilities(judge.name, config)
    if known is not None:
        client.capabilities = Capabilities.model_validate(known)
        return
    for number in range(1, study.retries.transient_error + 2):
        try:
            found = await client.probe()
        except TransientError as error:
            if number > study.retries.transient_error:
                raise JudgeError(f"judge {judge.name}: cannot find out what the endpoint can do: {error}") from None
            await asyncio.sleep(_seconds_to_wait(number) if error.retry_after is None else error.retry_after)
        else:
            client.capabilities = found
            ledger.see_judge(judge.name, config, found.model_dump(mode="json"))
            return


async def _ask_model(study: Study, client: JudgeClient, part: Work, terms: Terms, ledger: Ledger) -> None:
    """A pool of workers over one queue. One fatal error stops all of them; what has arrived is kept.

    A cap that is reached stops the queue only: what is in flight is waited for.
    """
    asker = Asker(
        client=client,
        contract=part.contract(study),
        terms=terms,
        retries=study.retries,
        wait=_seconds_to_wait,
    )
    title = f"{part.judge.name} {part.pass_name}"
    queue, caps = iter(part.todo), list[BudgetReached]()
    with Progress(title, part.planned, part.planned - len(part.todo), terms.budget.show) as bar:

        def written(entries: Sequence[Entry]) -> None:
            part.count(entries)
            bar.settled(entries)

        writer = LedgerWriter(ledger, written)

        async def worker(calls: Iterator[Call]) -> None:
            for call in calls:
                if caps:
                    return
                planned = planned_call(study, part.judge.name, part.config_sha256, call)
                try:
                    writer.put(await asker.settle(planned))
                except BudgetReached as error:
                    caps.append(error)

        workers = [asyncio.create_task(worker(queue)) for _ in range(min(client.concurrency, len(part.todo)))]
        gc.freeze()  # items and plan stay: looking through them again and again costs several per cent of a call
        try:
            await asyncio.gather(*workers)
        finally:
            gc.unfreeze()
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            writer.flush()
    if caps:
        raise caps[0]


async def _look_up(client: JudgeClient, planned: PlannedCall, contract: Contract) -> Entry:
    """The result of a judge that asks no model: asked once, it would say the same again."""
    started = time.perf_counter()
    try:
        reply = await client.ask(planned.call, planned.prompt)
    except RefusedError as error:
        tried = attempt("refused", started, reason=error.reason, detail=error.detail)
        return entry(planned, "unusable", [tried], reason=error.reason, detail=error.detail)
    reading = read_reply(reply, contract, planned.prompt)
    tried = attempt(
        "verdict" if reading.usable else "malformed",
        started,
        Usage(reply.tokens_in, reply.tokens_out),
        reply=reply.text,
        reason=reading.reason,
        detail=reading.detail or None,
    )
    return entry(planned, "verdict" if reading.usable else "unusable", [tried], reply=reply, reading=reading)


def _seconds_to_wait(number: int) -> float:
    """Exponential backoff with jitter before the ``number``-th retry: workers that failed together return apart."""
    return _wait(_State(number))  # type: ignore[arg-type]


def _batches(calls: list[Call], size: int) -> Iterator[list[Call]]:
    for start in range(0, len(calls), size):
        yield calls[start : start + size]
