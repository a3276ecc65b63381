"""How fast a judge may be asked: requests and tokens per minute, and what the endpoint itself asks for.

The limit is a sliding window: in no span of 60 seconds are more requests sent, or more tokens reserved, than the
protocol allows. Whoever asks first goes first. What an endpoint says (``Retry-After``, nothing remaining) holds back
every call of the judge, not only the one that was told.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from judgelab.judging.judges.base import RateHint

__all__ = ["HOLD_AT_MOST", "WINDOW", "Limiter", "Ticket"]

WINDOW = 60.0
MARGIN = 0.002  # of a window: clocks are floats, and timers may fire a moment early
HOLD_AT_MOST = 600.0  # an endpoint that asks for more is asked again after this time


@dataclass
class Ticket:
    """One request that may be sent: when it was let through, and the tokens reserved for it."""

    at: float
    tokens: int
    counted: bool = False  # whether it is in the window


class Limiter:
    """Lets one judge's requests through at the pace of its limits.

    Parameters
    ----------
    requests_per_minute, tokens_per_minute
        None: no limit of our own; the endpoint's wishes are obeyed all the same.
    clock
        Seconds that never run backwards. None: the clock of the running event loop.
    """

    def __init__(
        self,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._requests, self._most_tokens = requests_per_minute, tokens_per_minute
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._window: deque[Ticket] = deque()
        self._tokens = 0  # the sum over the window
        self._held_until = float("-inf")
        self._turn = asyncio.Lock()  # first come, first served
        self._changed = asyncio.Event()
        self.counts_tokens = tokens_per_minute is not None

    async def acquire(self, tokens: int = 0) -> Ticket:
        """Wait until one more request with this many tokens may be sent.

        A request of more tokens than a whole minute allows is sent when nothing else was sent in the last minute.
        """
        if self._requests is None and self._most_tokens is None and self._held_until <= self._clock():
            return Ticket(0.0, tokens)
        async with self._turn:
            while (delay := self._delay(tokens)) > 0:
                await self._sleep(delay)
            ticket = Ticket(self._clock(), tokens, counted=self._requests is not None or self._most_tokens is not None)
            if ticket.counted:
                self._window.append(ticket)
                self._tokens += tokens
            return ticket

    def settle(self, ticket: Ticket, tokens: int) -> None:
        """Say how many tokens a request took in the end; what was reserved too much is free at once."""
        if ticket.counted:
            self._tokens += tokens - ticket.tokens
            ticket.tokens = tokens
            self._changed.set()

    def hold(self, seconds: float) -> None:
        """Send nothing for this many seconds, as the endpoint asks."""
        self._held_until = max(self._held_until, self._clock() + min(seconds, HOLD_AT_MOST))

    def observe(self, rate: RateHint | None) -> None:
        """Obey an endpoint that says that nothing remains: wait for its reset."""
        if rate is None:
            return
        if rate.remaining_requests == 0 and rate.reset_requests_seconds:
            self.hold(rate.reset_requests_seconds)
        if rate.remaining_tokens == 0 and rate.reset_tokens_seconds:
            self.hold(rate.reset_tokens_seconds)

    def _delay(self, tokens: int) -> float:
        """Seconds until a request of this many tokens may be sent; 0: now."""
        now = self._clock()
        while self._window and self._expiry(self._window[0]) <= now:
            gone = self._window.popleft()
            self._tokens -= gone.tokens
            gone.counted = False
        waits = [self._held_until - now]
        if self._requests is not None and len(self._window) >= self._requests:
            waits.append(self._expiry(self._window[len(self._window) - self._requests]) - now)
        if self._most_tokens is not None:
            waits.append(self._until_room(tokens, self._most_tokens) - now)
        return max(0.0, *waits)

    def _until_room(self, tokens: int, most: int) -> float:
        """When enough of the window has passed for this many tokens; -inf: it has room already."""
        excess, when = self._tokens + tokens - most, float("-inf")
        for ticket in self._window:
            if excess <= 0:
                break
            excess -= ticket.tokens
            when = self._expiry(ticket)
        return when

    @staticmethod
    def _expiry(ticket: Ticket) -> float:
        return ticket.at + WINDOW + MARGIN

    async def _sleep(self, seconds: float) -> None:
        """Sleep, or less if room was made meanwhile."""
        self._changed.clear()
        try:
            async with asyncio.timeout(seconds + MARGIN / 2):
                await self._changed.wait()
        except TimeoutError:
            return
