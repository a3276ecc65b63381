"""What every judge is: something that turns a call and its prompt into a reply, or says why it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from judgelab.judging.prompts import Prompt
from judgelab.study.items import Item

__all__ = ["Call", "JudgeClient", "RefusedError", "Reply", "TransientError"]


@dataclass(frozen=True)
class Call:
    """One question to one judge. ``presentation`` holds one system (direct) or two in the order shown."""

    strategy: str
    pass_: str
    item: Item
    presentation: tuple[str, ...]
    repeat: int = 0


@dataclass(frozen=True)
class Reply:
    """What came back. ``verdict`` and ``reason`` are set only where a record holds no raw reply."""

    text: str | None
    model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    verdict: dict[str, Any] | None = None
    reason: str | None = None


class TransientError(Exception):
    """The endpoint failed in a way that may pass: busy, broken connection, time-out."""

    def __init__(self, reason: str, detail: str, *, retry_after: float | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail, self.retry_after = reason, detail, retry_after


class RefusedError(Exception):
    """The endpoint will not answer this call, however often it is asked."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


class JudgeClient:
    """The interface of a judge. Used as an async context manager; ``ask`` starts from a clean context."""

    asks_a_model = False
    concurrency = 1

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

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
