"""Settling one call of a judge that asks a model: pace, caps, retries, and what each attempt took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from judgelab.judging.budget import Amount, Budget, BudgetReached, TokenEstimate
from judgelab.judging.entries import Attempt, Entry
from judgelab.judging.judges.base import JudgeClient, RefusedError, Reply, TransientError
from judgelab.judging.limits import Limiter
from judgelab.judging.passes import PlannedCall
from judgelab.judging.prompts import Prompt
from judgelab.judging.replies import Contract, Reading
from judgelab.study.protocol import Retries
from judgelab.study.terms import Prices

__all__ = ["Asker", "Terms", "Usage", "attempt", "entry", "read_reply"]

BUSY = {429, 529}  # of an endpoint that is busy for the whole judge, not for one call


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost of one attempt; ``estimated`` where the provider did not report them."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    estimated: bool = False


NOTHING = Usage()


@dataclass
class Terms:
    """On what terms one judge is asked in this process: its pace, its caps, its prices."""

    limiter: Limiter
    budget: Budget
    estimate: TokenEstimate
    prices: Prices

    @property
    def counts(self) -> bool:
        """Whether tokens must be estimated before a request is sent."""
        return self.budget.capped or self.limiter.counts_tokens

    def expected(self, prompt: Prompt) -> tuple[int, int]:
        """Tokens in and out that one request may take; zero where nobody counts them."""
        return self.estimate.of(prompt.system, prompt.user) if self.counts else (0, 0)

    def of_reply(self, reply: Reply, expected: tuple[int, int]) -> Usage:
        """What a reply took: as reported, else (where there is a cap to mind) as estimated."""
        tokens_in, tokens_out = reply.tokens_in, reply.tokens_out
        unknown = tokens_in is None or tokens_out is None
        if unknown and self.counts:
            tokens_in = expected[0] if tokens_in is None else tokens_in
            tokens_out = expected[1] if tokens_out is None else tokens_out
        if tokens_in is None and tokens_out is None:
            return NOTHING
        cost = self.prices.cost(tokens_in, reply.tokens_cached, tokens_out) if self.prices.known else None
        return Usage(tokens_in, tokens_out, cost, estimated=unknown and self.counts)

    def of_timeout(self, expected: tuple[int, int]) -> Usage:
        """A request that was given up may be charged in full."""
        if not self.budget.capped:
            return NOTHING
        return Usage(*expected, self.prices.cost(expected[0], None, expected[1]), estimated=True)

    def learn(self, prompt: Prompt, reply: Reply) -> None:
        """Correct the estimates by what a reply took."""
        if self.counts:
            self.estimate.learn((prompt.system, prompt.user), reply.tokens_in, reply.tokens_out)

    @staticmethod
    def amount(usage: Usage) -> Amount:
        """One request that took this."""
        return Amount(1, (usage.tokens_in or 0) + (usage.tokens_out or 0), usage.cost or 0.0)


@dataclass
class _Tried:
    """What came of asking once: a reply with its reading, a refusal, or a failure that may pass."""

    attempt: Attempt
    reply: Reply | None = None
    reading: Reading | None = None
    failure: TransientError | None = None


@dataclass
class Asker:
    """Asks one judge, call by call, in the way that the protocol says. ``wait``: seconds before the n-th retry."""

    client: JudgeClient
    contract: Contract
    terms: Terms
    retries: Retries
    wait: Callable[[int], float]

    async def settle(self, planned: PlannedCall) -> Entry:
        """Ask until there is a verdict, or the protocol's retries are used up. Each retry sends the same input.

        Raises
        ------
        BudgetReached
            If the call could not be asked once. Where a retry could not be, it is failed: asked again by a later run.
        JudgeError
            If the judge cannot be asked at all.
        """
        attempts: list[Attempt] = []
        failed = 0
        currency = self.terms.prices.currency
        while True:
            try:
                tried = await self._try(planned)
            except BudgetReached as error:
                if not attempts:
                    raise
                why = f"not asked again: {error}"
                return entry(planned, "failed", attempts, reason=attempts[-1].reason, detail=why, currency=currency)
            attempts.append(tried.attempt)
            if tried.failure is None:
                status = self._status(tried, sum(each.outcome == "malformed" for each in attempts))
                if status is not None:
                    return _entry_of(planned, status, attempts, tried, currency)
                continue
            failed += 1
            if failed > self.retries.transient_error:
                return _entry_of(planned, "failed", attempts, tried, currency)
            await self._pause(tried.failure, failed)

    def _status(self, tried: _Tried, malformed: int) -> str | None:
        """The call's status after this attempt; None: ask again."""
        if tried.attempt.outcome == "malformed" and malformed <= self.retries.malformed_output:
            return None
        return "verdict" if tried.attempt.outcome == "verdict" else "unusable"

    async def _try(self, planned: PlannedCall) -> _Tried:
        """Ask once, within the judge's caps and at its pace."""
        terms, usage = self.terms, NOTHING
        expected = terms.expected(planned.prompt)
        reserved = await terms.budget.reserve(terms.budget.amount(*expected))
        try:
            ticket = await terms.limiter.acquire(sum(expected))
            started = time.perf_counter()
            try:
                reply = await self.client.ask(planned.call, planned.prompt)
            except RefusedError as error:
                usage = NOTHING if error.reply is None else terms.of_reply(error.reply, expected)
                reading = Reading(None, error.reason, error.detail)
                tried = _Tried(_attempt_of("refused", started, usage, None, reading), error.reply, reading)
            except TransientError as failure:
                usage = terms.of_timeout(expected) if failure.reason == "timeout" else NOTHING
                reading = Reading(None, failure.reason, failure.detail)
                terms.limiter.observe(failure.rate)
                tried = _Tried(_attempt_of("transient", started, usage, None, reading), None, reading, failure)
            else:
                usage = terms.of_reply(reply, expected)
                terms.learn(planned.prompt, reply)
                terms.limiter.observe(reply.rate)
                reading = read_reply(reply, self.contract, planned.prompt)
                outcome = "verdict" if reading.usable else "malformed"
                tried = _Tried(_attempt_of(outcome, started, usage, reply.text, reading), reply, reading)
            terms.limiter.settle(ticket, (usage.tokens_in or 0) + (usage.tokens_out or 0))
            return tried
        finally:
            terms.budget.settle(reserved, terms.amount(usage))

    async def _pause(self, failure: TransientError, number: int) -> None:
        """Wait before a retry; where the endpoint is busy, the whole judge waits."""
        if failure.retry_after is not None:
            self.terms.limiter.hold(failure.retry_after)
        elif failure.status in BUSY:
            self.terms.limiter.hold(self.wait(number))
        else:
            await asyncio.sleep(self.wait(number))


def read_reply(reply: Reply, contract: Contract, prompt: Prompt) -> Reading:
    """The verdict in a reply, or in a record whose source parsed it already."""
    if reply.reason is not None:
        return Reading(None, reply.reason)
    if reply.verdict is not None:
        return contract.check_parsed(reply.verdict)
    return contract.read(reply.text, answers=prompt.answers)


def attempt(outcome: str, started: float, usage: Usage = NOTHING, **values: Any) -> Attempt:
    """One attempt that began at ``started`` (of ``time.perf_counter``) and ends now."""
    return Attempt(
        outcome=outcome,
        finished_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        latency_seconds=round(time.perf_counter() - started, 4),
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        cost=usage.cost,
        estimated=usage.estimated,
        **values,
    )


def _attempt_of(outcome: str, started: float, usage: Usage, reply: str | None, reading: Reading) -> Attempt:
    told = reading.detail or None
    return attempt(outcome, started, usage, reply=reply, reason=reading.reason, detail=told)


def _entry_of(planned: PlannedCall, status: str, attempts: list[Attempt], tried: _Tried, currency: str) -> Entry:
    return entry(planned, status, attempts, reply=tried.reply, reading=tried.reading, currency=currency)


def entry(
    planned: PlannedCall,
    status: str,
    attempts: list[Attempt],
    *,
    reply: Reply | None = None,
    reading: Reading | None = None,
    reason: str | None = None,
    detail: str | None = None,
    currency: str | None = None,
    batch_id: str | None = None,
) -> Entry:
    """The ledger's entry for a settled call. Its cost is that of all attempts."""
    reply = reply or Reply(text=None)
    reading = reading or Reading(None, reason, detail or "")
    costs = [each.cost for each in attempts if each.cost is not None]
    return Entry(
        key=planned.key,
        status=status,
        verdict=reading.verdict,
        reason=reading.reason,
        detail=reading.detail or None,
        reply=reply.text,
        reasoning=reply.reasoning,
        frame_sha256=planned.prompt.frame_sha256,
        model=reply.model,
        fingerprint=reply.fingerprint,
        finish_reason=reply.finish_reason,
        tokens_in=reply.tokens_in,
        tokens_out=reply.tokens_out,
        tokens_cached=reply.tokens_cached,
        tokens_reasoning=reply.tokens_reasoning,
        cost=sum(costs) if costs else None,
        currency=currency if costs else None,
        logprobs=reply.logprobs,
        batch_id=batch_id,
        latency_seconds=attempts[-1].latency_seconds if attempts else None,
        attempts=tuple(attempts),
    )
