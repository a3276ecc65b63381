"""Judging by provider batches: half the price and no rate limits, for results that come within a day.

The open calls of a judge are written into batches, each noted in the ledger before and after it is sent. Their results
are merged by key, a batch in one transaction, and read as live replies are. What failed is sent again in a next batch,
as often as the protocol's retries allow. A process that was killed leaves its batches at the provider; the next one
fetches them and sends nothing twice.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import IO, Any

from tqdm import tqdm as tqdm_terminal

from judgelab.errors import JudgeError
from judgelab.judging import batch_polling
from judgelab.judging.asking import Terms
from judgelab.judging.batch_chunks import Chunk, cut_chunk
from judgelab.judging.batch_ledger import Batch, BatchLedger
from judgelab.judging.batch_polling import Polling, find, holds_any, patiently
from judgelab.judging.batch_results import BatchResults
from judgelab.judging.budget import Amount
from judgelab.judging.judges.base import Call, JudgeClient, TransientError
from judgelab.judging.judges.batches import provider_for
from judgelab.judging.judges.batches.base import BatchLimits, BatchProvider, BatchState
from judgelab.judging.ledger import Ledger
from judgelab.judging.passes import planned_call
from judgelab.judging.progress import BatchProgress
from judgelab.judging.work import Work
from judgelab.study.protocol import Study
from judgelab.study.terms import Prices

__all__ = ["batch_prices", "settle_in_batches", "waiting"]

TURNED_AWAY = {429, 503, 529}
HALF = 0.5  # what OpenAI and Anthropic both charge for a batched token, of its price in a live call


def batch_prices(prices: Prices) -> Prices:
    """What the provider charges for the tokens of a batch."""
    cached = prices.cached_input_per_million
    return prices.model_copy(
        update={
            "input_per_million": prices.input_per_million * HALF,
            "output_per_million": prices.output_per_million * HALF,
            "cached_input_per_million": None if cached is None else cached * HALF,
        }
    )


def waiting(work: Sequence[Work], ledger: Ledger) -> bool:
    """Whether an earlier run left batches at the provider that hold calls of this work."""
    return any(_is_of(batch, part) for part in work for batch in BatchLedger(ledger).open(part.judge.name))


def _tell(text: str) -> None:
    tqdm_terminal.write(text, file=sys.stderr)


async def settle_in_batches(
    study: Study,
    client: JudgeClient,
    work: Sequence[Work],
    terms: Terms,
    ledger: Ledger,
    *,
    send: bool = True,
    limits: BatchLimits | None = None,
    polling: Polling | None = None,
    say: Callable[[str], None] = _tell,
) -> None:
    """Settle the open calls of one judge in batches, those that an earlier run left at the provider first.

    Parameters
    ----------
    study, client, ledger
        The frozen protocol, the judge's client with its capabilities known, and the run's ledger.
    work
        Passes of one judge.
    terms
        On what terms it is asked, by :func:`batch_prices`.
    send
        False: only fetch what is at the provider.
    limits
        The most that one batch may hold. None: what the provider allows.
    polling
        How often the provider is looked at. None: ``batch_polling.POLLING``.
    say
        Called with what a user should know: batches found again, lines that were ignored.

    Raises
    ------
    BudgetReached
        If calls are left that the judge's caps do not allow to send. All others are settled.
    JudgeError
        If the provider takes no batches, or cannot be reached. What is at the provider is fetched by the next run.
    """
    judge = work[0].judge
    async with provider_for(judge, client) as provider:
        asker = _BatchAsker(study, judge, work, provider, terms, ledger, limits, polling or batch_polling.POLLING, say)
        with asker.bar:
            await asker.settle(send=send)


class _BatchAsker:
    """All batches of one judge in this process."""

    def __init__(
        self,
        study: Study,
        judge: Any,
        work: Sequence[Work],
        provider: BatchProvider,
        terms: Terms,
        ledger: Ledger,
        limits: BatchLimits | None,
        polling: Polling,
        say: Callable[[str], None],
    ) -> None:
        self._study, self._judge, self._work, self._provider = study, judge, work, provider
        self._terms, self._budget, self._book = terms, terms.budget, BatchLedger(ledger)
        self._limits, self._polling, self._say = limits or provider.limits, polling, say
        self._open: dict[str, dict[bytes, Call]] = {part.pass_name: self._digests(part) for part in work}
        self._malformed = {part.pass_name: self._book.malformed(*_place(part)) for part in work}
        self._failures: Counter[bytes] = Counter()
        self._sent: set[bytes] = set()
        self._reserved: dict[str, Amount] = {}
        self._too_much: Amount | None = None  # of the first call that does not fit into the caps
        self._queue_was_full = 0
        self.bar = BatchProgress(judge.name, terms.budget.show)

    async def settle(self, *, send: bool) -> None:
        """Round after round: send what is open, wait for it, merge it."""
        earlier = await self._earlier()
        while True:
            tasks = [asyncio.create_task(self._fetch(batch)) for batch in earlier]
            try:
                if send:
                    async for batch in self._submissions():
                        tasks.append(asyncio.create_task(self._fetch(batch)))
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            if not send or not any(self._open.values()):
                return
            if not tasks and self._too_much is not None:
                await self._budget.reserve(self._too_much)  # says why it cannot
            earlier = []

    # --- sending

    async def _submissions(self) -> AsyncIterator[Batch]:
        """Send what is open, batch by batch, until a cap is reached."""
        for part in self._work:
            calls = [pair for pair in self._open[part.pass_name].items() if pair[0] not in self._sent]
            start = 0
            while start < len(calls):
                chunk = cut_chunk(self._study, part, calls[start:], self._provider, self._terms, self._limits)
                self._too_much = chunk.too_much
                with chunk.lines:
                    if chunk.batch.calls:
                        yield await self._submit(chunk)
                start += len(chunk.batch.calls)
                if self._too_much is not None:
                    left = sum(len(calls) for calls in self._open.values())
                    fit = sum(digest in self._sent for calls in self._open.values() for digest in calls)
                    if fit:
                        self._say(
                            f"judge {self._judge.name}: {fit} of {left} open calls fit its caps and are sent for now"
                        )
                    return

    async def _submit(self, chunk: Chunk) -> Batch:
        """Send one batch. It is in the ledger before, and with the provider's id after."""
        batch = chunk.batch
        self._book.add(batch)
        self._reserved[batch.token] = await self._budget.reserve(chunk.amount)
        self._sent.update(batch.calls)
        number = 0
        while True:
            try:
                batch_id = await self._provider.submit(chunk.lines, chunk.size, batch.token)
                break
            except TransientError as error:
                # unless it was turned away, it may have arrived all the same
                found = None if error.status in TURNED_AWAY else await self._find(batch)
                if found is not None:
                    batch_id = found
                    break
                number += 1
                if number > self._study.retries.transient_error:
                    self._void(batch, "it could not be sent")
                    raise JudgeError(f"judge {self._judge.name}: a batch cannot be sent: {error}") from None
                wait = self._polling.wait(number - 1)
                await asyncio.sleep(wait if error.retry_after is None else error.retry_after)
            except JudgeError:
                self._void(batch, "the provider did not take it")
                raise
        self._book.submitted(batch, batch_id)
        self.bar.look(batch, 0)
        return replace(batch, batch_id=batch_id, status="submitted")

    # --- fetching

    async def _earlier(self) -> list[Batch]:
        """What an earlier run left at the provider. Batches of other passes are left there, but count for the caps.

        They are found before anything is sent: a batch that is being sent could be taken for a lost one.
        """
        earlier = []
        for batch in self._book.open(self._judge.name):
            amount = self._budget.hold(Amount(len(batch.calls), batch.tokens, batch.cost))
            if any(_is_of(batch, part) for part in self._work):
                self._reserved[batch.token] = amount
                self._sent.update(batch.calls)
                self.bar.look(batch, 0)
                batch_id = batch.batch_id or await self._find_again(batch, set())
                if batch_id is not None:
                    earlier.append(replace(batch, batch_id=batch_id))
            else:
                self._budget.settle(amount, amount)
        return earlier

    async def _fetch(self, batch: Batch) -> None:
        """Wait for one batch and merge its results."""
        part = next(part for part in self._work if _is_of(batch, part))
        batch_id, not_these = batch.batch_id, set[str]()
        while batch_id is not None:
            state = await self._ended(batch, batch_id)
            if state.problem is not None:
                await self._failed_whole(batch, state)
                return
            with await patiently(batch.judge, self._polling, partial(self._provider.results, state)) as lines:
                # one that was found by its number of requests may be somebody else's
                if self._provider.named or holds_any(self._provider, batch, lines):
                    self._merge(part, batch, batch_id, lines)
                    return
            not_these.add(batch_id)
            self._say(f"judge {batch.judge}: batch {batch_id} holds no result of ours; it is left alone")
            batch_id = await self._find_again(batch, not_these)

    async def _find_again(self, batch: Batch, not_these: set[str]) -> str | None:
        """Look for a batch of which an earlier run wrote down that it would be sent, and no more."""
        batch_id = await self._find(batch, not_these)
        if batch_id is None:
            self._say(
                f"judge {batch.judge}: an earlier run was broken off when it was to send a batch of {len(batch.calls)} "
                "calls; the provider does not have it, so its calls are open again"
            )
            self._void(batch, "it never reached the provider")
            return None
        self._book.submitted(batch, batch_id)
        self._say(
            f"judge {batch.judge}: batch {batch_id} of {len(batch.calls)} calls was found at the provider; an earlier "
            "run was broken off while it was sent"
        )
        return batch_id

    async def _find(self, batch: Batch, not_these: set[str] | frozenset[str] = frozenset()) -> str | None:
        found = await find(self._provider, batch, self._polling, self._book.known_ids() | not_these)
        return None if found is None else found.batch_id

    async def _ended(self, batch: Batch, batch_id: str) -> BatchState:
        """Look until the batch has ended."""
        number, done = 0, 0
        while True:
            state = await patiently(batch.judge, self._polling, partial(self._provider.state, batch_id))
            if state.done != done:
                done = state.done
                self._book.counted(batch, done)
                self.bar.look(batch, done)
            if state.ended:
                return state
            await asyncio.sleep(self._polling.wait(number))
            number += 1

    async def _failed_whole(self, batch: Batch, state: BatchState) -> None:
        """The provider took none of the batch's requests. Where only its queue was full, it is sent again."""
        self._void(batch, state.problem or "")
        if state.busy and self._queue_was_full < self._study.retries.transient_error:
            self._queue_was_full += 1
            self._say(f"judge {batch.judge}: {state.problem}; its calls are sent again later")
            await asyncio.sleep(self._polling.longest)
            return
        raise JudgeError(f"judge {batch.judge}: batch {state.batch_id} failed at the provider: {state.problem}")

    def _merge(self, part: Work, batch: Batch, batch_id: str, lines: IO[bytes]) -> None:
        """Write the results of one batch into the ledger."""
        open_ = self._open[part.pass_name]
        results = BatchResults(
            study=self._study,
            provider=self._provider,
            contract=part.contract(self._study),
            terms=self._terms,
            batch=batch,
            batch_id=batch_id,
            open=open_,
            malformed=self._malformed[part.pass_name],
            failures=self._failures,
        )
        self._book.merge(batch, results.entries(lines))
        part.settled += results.finished
        for digest in results.settled:
            del open_[digest]
        self._release(batch, results.taken)
        self.bar.look(batch, len(batch.calls))
        if results.odd:
            told = ", ".join(f"{count} {what}" for what, count in sorted(results.odd.items()))
            self._say(f"judge {batch.judge}: batch {batch_id}: ignored {told}")
        if results.fatal is not None:
            raise results.fatal

    # --- counting

    def _digests(self, part: Work) -> dict[bytes, Call]:
        """The open calls of a pass by their keys' digests."""
        plan = (planned_call(self._study, part.judge.name, part.config_sha256, call) for call in part.todo)
        return {planned.key.digest(): planned.call for planned in plan}

    def _void(self, batch: Batch, note: str) -> None:
        self._book.void(batch, note)
        self._release(batch, Amount())
        self.bar.forget(batch)

    def _release(self, batch: Batch, taken: Amount) -> None:
        """The batch is settled: its calls that are open still may be sent again, its reservation is free."""
        self._sent.difference_update(batch.calls)
        self._budget.settle(self._reserved.pop(batch.token), taken)


def _place(part: Work) -> tuple[str, str, str, str]:
    judge, strategy, pass_ = part.place
    return judge, part.config_sha256, strategy, pass_


def _is_of(batch: Batch, part: Work) -> bool:
    return (batch.judge, batch.config_sha256, batch.strategy, batch.pass_) == _place(part)
