"""What a judge may use up: calls, tokens and money, reserved before a request is sent and settled after it.

A reservation is an upper estimate. A request is sent only if all that was spent, all that is in flight and this one
together stay within each cap; so a cap is reached from below and never passed. What an earlier run spent counts.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

from judgelab.errors import JudgeError
from judgelab.judging.entries import Spent
from judgelab.study.terms import Limits, Prices

__all__ = ["CAPS", "Amount", "Budget", "BudgetReached", "TokenEstimate"]

CAPS = ("max_calls", "max_tokens", "max_cost")
ROUNDING = 1 + 1e-9  # three times 0.1 are not above 0.3


@dataclass(frozen=True, slots=True)
class Amount:
    """Requests, tokens (in and out) and cost."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class BudgetReached(JudgeError):  # noqa: N818
    """The next request of a judge could pass one of its caps.

    Attributes
    ----------
    judge, key
        The judge's name and the key of the cap in its limits: ``max_calls``, ``max_tokens`` or ``max_cost``.
    """

    def __init__(self, judge: str, key: str, cap: str, spent: str, needed: str) -> None:
        super().__init__(
            f"judge {judge}: limits.{key} is {cap}; spent so far {spent}, and the next request may take up to {needed}"
        )
        self.judge, self.key = judge, key


class TokenEstimate:
    """Upper estimates of what a request takes, before it is sent.

    Characters of English prose make about 4 to a token and here 3; other scripts are taken at half a token a byte.
    A judge that reports more than was estimated raises all later estimates in proportion. The reply is taken at the
    cap that is sent with the request.
    """

    FRAME = 24  # tokens of a chat layout around the messages

    def __init__(self, max_tokens: int) -> None:
        self._out = max_tokens
        self._factor = 1.0

    def of(self, *texts: str) -> tuple[int, int]:
        """Tokens in and out of one request with these messages."""
        return math.ceil(self._plain(texts) * self._factor), self._out

    def learn(self, texts: tuple[str, ...], tokens_in: int | None, tokens_out: int | None) -> None:
        """Take notice of what a request took."""
        if tokens_in is not None:
            self._factor = max(self._factor, tokens_in / self._plain(texts))
        if tokens_out is not None:
            self._out = max(self._out, tokens_out)

    def _plain(self, texts: tuple[str, ...]) -> float:
        return self.FRAME + sum(
            len(text) / 3 if text.isascii() else len(text.encode(errors="surrogatepass")) / 2 for text in texts
        )


class Budget:
    """The caps of one judge.

    Parameters
    ----------
    judge
        The judge's name, for the message.
    limits, prices
        As the protocol says.
    before
        What the ledger holds of this judge already.
    caps
        Caps that were raised since the protocol was frozen, by key.
    """

    def __init__(
        self, judge: str, limits: Limits, prices: Prices, before: Spent, caps: dict[str, float] | None = None
    ) -> None:
        raised = caps or {}
        self._judge, self._prices = judge, prices
        self.max_calls = raised.get("max_calls", limits.max_calls)
        self.max_tokens = raised.get("max_tokens", limits.max_tokens)
        self.max_cost = raised.get("max_cost", limits.max_cost)
        self.calls, self.tokens = before.calls, before.tokens
        self.cost = before.cost + prices.cost(before.unpriced_in, None, before.unpriced_out)
        self._in_flight: list[Amount] = []
        self._settled = asyncio.Event()

    @property
    def capped(self) -> bool:
        """Whether there is any cap to mind."""
        return any(cap is not None for cap in (self.max_calls, self.max_tokens, self.max_cost))

    def amount(self, tokens_in: int, tokens_out: int) -> Amount:
        """One request of this many tokens, at the price of tokens that no cache holds."""
        dearest = max(0, *(self._prices.cost(tokens_in, cached, tokens_out) for cached in (0, tokens_in)))
        return Amount(1, tokens_in + tokens_out, dearest)

    async def reserve(self, wanted: Amount) -> Amount:
        """Set this much aside; wait while what is in flight may turn out to have taken less.

        Raises
        ------
        BudgetReached
            If it does not fit although nothing is in flight.
        """
        while (over := self._passed(wanted)) is not None:
            if not self._in_flight:
                raise self._reached(over, wanted)
            self._settled.clear()
            await self._settled.wait()
        self._in_flight.append(wanted)
        return wanted

    def fits(self, wanted: Amount) -> bool:
        """Whether this much may be sent now."""
        return self._passed(wanted) is None

    def hold(self, sent: Amount) -> Amount:
        """Set aside what an earlier process has sent already, whether it fits or not."""
        self._in_flight.append(sent)
        return sent

    def settle(self, reserved: Amount, taken: Amount) -> None:
        """Put what a request took in place of what was reserved for it."""
        self._in_flight.remove(reserved)
        self.calls += taken.calls
        self.tokens += taken.tokens
        self.cost += taken.cost
        self._settled.set()

    def show(self) -> str:
        """Spent and cap in a few words, for a progress bar; empty where there is nothing to count."""
        parts = []
        if self.max_calls is not None:
            parts.append(f"{self.calls}/{self.max_calls:.0f} requests")
        if self.max_tokens is not None:
            parts.append(f"{self.tokens}/{self.max_tokens:.0f} tokens")
        if self._prices.known:
            cap = "" if self.max_cost is None else f"/{self.max_cost:g}"
            parts.append(f"{self.cost:.4g}{cap} {self._prices.currency}")
        return ", ".join(parts)

    def _passed(self, wanted: Amount) -> str | None:
        """The first cap that this request could pass."""
        for key, field in (("max_calls", "calls"), ("max_tokens", "tokens"), ("max_cost", "cost")):
            cap = getattr(self, key)
            if cap is None:
                continue
            in_flight = sum(getattr(amount, field) for amount in self._in_flight)
            if getattr(self, field) + in_flight + getattr(wanted, field) > cap * ROUNDING:
                return key
        return None

    def _reached(self, key: str, wanted: Amount) -> BudgetReached:
        field = key.removeprefix("max_")
        cap, spent, needed = (getattr(place, name) for place, name in ((self, key), (self, field), (wanted, field)))
        if field == "cost":
            told = [f"{value:.6g} {self._prices.currency}" for value in (cap, spent, needed)]
        else:
            told = [f"{value:.0f}" for value in (cap, spent, needed)]
        return BudgetReached(self._judge, key, *told)
