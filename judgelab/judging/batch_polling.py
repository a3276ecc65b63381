"""Waiting for a provider's batches: how long between two looks, through failures, and finding one that was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import IO, TypeVar

from judgelab.errors import JudgeError
from judgelab.judging.batch_ledger import Batch
from judgelab.judging.judges.base import TransientError
from judgelab.judging.judges.batches.base import BatchProvider, BatchState

__all__ = ["POLLING", "Polling", "find", "holds_any", "patiently"]

CLOCKS_DIFFER = 3600.0  # seconds by which our clock and the provider's may differ
T = TypeVar("T")


@dataclass(frozen=True)
class Polling:
    """Seconds between two looks: ``first``, then ``growth`` times longer each time, up to ``longest``.

    A provider that fails ``patience`` times in a row is given up for this run; its batches stay.
    """

    first: float = 5.0
    growth: float = 1.5
    longest: float = 120.0
    patience: int = 60

    def wait(self, number: int) -> float:
        """Seconds before the look with this number, counted from 0."""
        return min(self.longest, self.first * self.growth ** min(number, 100))


POLLING = Polling()


async def patiently(judge: str, polling: Polling, ask: Callable[[], Awaitable[T]]) -> T:
    """Ask until there is an answer, through failures that may pass.

    Raises
    ------
    JudgeError
        If the provider failed too often in a row, or cannot be asked at all.
    """
    for number in range(polling.patience):
        try:
            return await ask()
        except TransientError as error:
            failure = error
            wait = polling.wait(number)
            await asyncio.sleep(wait if error.retry_after is None else max(wait, error.retry_after))
    raise JudgeError(
        f"judge {judge}: the provider of its batches cannot be reached ({failure}); they stay there, and the next run "
        "fetches them"
    )


async def find(
    provider: BatchProvider, batch: Batch, polling: Polling, not_these: Collection[str]
) -> BatchState | None:
    """A batch that may have reached the provider although nobody heard so; None if it did not.

    It is known by our token, or where the provider keeps none, by its time and number of requests, and by its results
    once it has ended: one that has not is taken on trust until then.
    """
    for look in range(2):  # a provider may list a batch a moment after it took it
        found = await patiently(batch.judge, polling, partial(_look, provider, batch, not_these))
        if found is not None:
            return found
        if look == 0:
            await asyncio.sleep(polling.first)
    return None


async def _look(provider: BatchProvider, batch: Batch, not_these: Collection[str]) -> BatchState | None:
    async for state in provider.recent(batch.created - CLOCKS_DIFFER):
        if provider.named:
            if state.token == batch.token:
                return state
        elif state.batch_id not in not_these and state.total == len(batch.calls):
            if not state.ended:
                return state
            with await provider.results(state) as lines:
                if holds_any(provider, batch, lines):
                    return state
    return None


def holds_any(provider: BatchProvider, batch: Batch, lines: IO[bytes]) -> bool:
    """Whether these results hold one of this batch."""
    found = any(result is not None and batch.digest(result.custom_id) for result in provider.parsed(lines))
    lines.seek(0)
    return found
