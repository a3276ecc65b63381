"""What every judge is: something that turns a call and its prompt into a reply, or says why it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from judgelab.judging.prompts import Prompt
from judgelab.judging.wording import PLAIN, Wording
from judgelab.study.items import Item
from judgelab.study.terms import Capabilities

__all__ = ["Call", "JudgeClient", "RateHint", "RefusedError", "Reply", "TransientError"]


@dataclass(frozen=True)
class Call:
    """One question to one judge. ``presentation`` holds one system (direct) or two in the order shown.

    ``repeat`` counts the calls that differ in nothing else. ``probe`` is the probe that the call belongs to, and
    ``manipulated`` the system whose answer it changed in ``item``, if it did.
    """

    strategy: str
    pass_: str
    item: Item
    presentation: tuple[str, ...]
    repeat: int = 0
    wording: Wording = PLAIN
    probe: str = ""
    manipulated: str = ""


@dataclass(frozen=True)
class RateHint:
    """What an endpoint says is left of its rate limits, and in how many seconds each is whole again.

    None where the endpoint says nothing.
    """

    remaining_requests: int | None = None
    remaining_tokens: int | None = None
    reset_requests_seconds: float | None = None
    reset_tokens_seconds: float | None = None


@dataclass(frozen=True)
class Reply:
    """What came back.

    ``text`` is the answer alone; what a model thought before it is ``reasoning``, which is kept but never read for a
    verdict. ``tokens_in`` counts the whole prompt (``tokens_cached`` of it from a cache), ``tokens_out`` all that was
    generated (``tokens_reasoning`` of it before the answer), in every dialect. ``logprobs`` is one entry for each
    token of the answer, ``{"token", "logprob", "top": [{"token", "logprob"}, ...]}``.

    ``verdict`` is set only where a record holds no raw reply; ``reason`` there, and where the model refused in a
    field of its own (``refusal``).
    """

    text: str | None
    model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    verdict: dict[str, Any] | None = None
    reason: str | None = None
    reasoning: str | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    logprobs: list[dict[str, Any]] | None = None
    rate: RateHint | None = None


class TransientError(Exception):
    """The endpoint failed in a way that may pass: busy, broken connection, time-out.

    ``retry_after`` is how many seconds the endpoint wants to be left alone; ``status`` its HTTP status, if it had one.
    """

    def __init__(
        self,
        reason: str,
        detail: str,
        *,
        retry_after: float | None = None,
        status: int | None = None,
        rate: RateHint | None = None,
    ) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail, self.retry_after = reason, detail, retry_after
        self.status, self.rate = status, rate


class RefusedError(Exception):
    """The endpoint will not answer this call, however often it is asked.

    ``reply`` holds what was reported beside the refusal (model, tokens): a withheld reply is charged for too.
    """

    def __init__(self, reason: str, detail: str, *, reply: Reply | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail, self.reply = reason, detail, reply


class JudgeClient:
    """The interface of a judge. Used as an async context manager; ``ask`` starts from a clean context.

    ``capabilities`` is what the endpoint can do: as the protocol states it, or as ``probe`` found it. Whoever has
    the record of an earlier probe sets it instead of probing again, so that a resumed run asks in the same way.
    """

    asks_a_model = False
    concurrency = 1
    capabilities: Capabilities = Capabilities(response_format="none")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    @property
    def needs_probe(self) -> bool:
        """Whether ``probe`` must be called, or its earlier finding be set, before the first call."""
        return self.capabilities.response_format == "probe"

    async def probe(self) -> Capabilities:
        """Find out what the endpoint can do; needed once, where the protocol says ``response_format: probe``.

        Raises
        ------
        TransientError, JudgeError
            As for ``ask``.
        """
        return self.capabilities

    async def ask(self, call: Call, prompt: Prompt) -> Reply:
        """Ask once.

        Raises
        ------
        TransientError
            The same call may be sent again.
        RefusedError
            The same call would be refused again; it is unusable, with this reason.
        JudgeError
            This judge cannot be asked at all.
        """
        raise NotImplementedError
