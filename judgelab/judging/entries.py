"""What the ledger holds of a call: its key, its result, its attempts, and what a judge has spent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

__all__ = ["IMPORTED", "KEY_COLUMNS", "Attempt", "CallKey", "Entry", "Spent", "key_digest"]

KEY_COLUMNS = ("judge", "item_id", "strategy", "pass", "presentation", "config_sha256", "prompt_sha256", "repeat")
IMPORTED = "imported"  # in place of the time of an attempt that was made elsewhere: it used up nothing here


@dataclass(frozen=True)
class CallKey:
    """What makes a call the same call."""

    judge: str
    item_id: str
    strategy: str
    pass_: str
    presentation: tuple[str, ...]
    config_sha256: str
    prompt_sha256: str
    repeat: int = 0

    def values(self) -> tuple[Any, ...]:
        """The key in the order of the ledger's columns."""
        return (
            self.judge,
            self.item_id,
            self.strategy,
            self.pass_,
            _spelled(self.presentation),
            self.config_sha256,
            self.prompt_sha256,
            self.repeat,
        )

    def digest(self) -> bytes:
        """The key in 16 bytes, to compare many of them."""
        return key_digest(self.values())


@dataclass(frozen=True)
class Attempt:
    """One time that a judge was asked: ``verdict``, ``malformed``, ``transient`` or ``refused``.

    ``tokens_in``, ``tokens_out`` and ``cost`` are of this attempt alone. ``estimated`` says that the provider did
    not report them (a reply without usage, a time-out that may be charged) and that they are upper estimates.
    """

    outcome: str
    finished_at: str
    reply: str | None = None
    reason: str | None = None
    detail: str | None = None
    latency_seconds: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    estimated: bool = False


@dataclass(frozen=True)
class Entry:
    """What came of a call. Tokens are of the last reply; ``cost`` is of all attempts, in ``currency``."""

    key: CallKey
    status: str
    verdict: dict[str, Any] | None = None
    reason: str | None = None
    detail: str | None = None
    reply: str | None = None
    reasoning: str | None = None
    frame_sha256: str | None = None
    model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None
    cost: float | None = None
    currency: str | None = None
    logprobs: list[Any] | None = None
    batch_id: str | None = None
    latency_seconds: float | None = None
    attempts: tuple[Attempt, ...] = field(default=())

    def values(self) -> tuple[Any, ...]:
        """The result in the order of the ledger's columns."""
        verdict = None if self.verdict is None else json.dumps(self.verdict, ensure_ascii=False)
        logprobs = None if self.logprobs is None else json.dumps(self.logprobs)
        return (
            *(self.status, verdict, self.reason, self.detail, self.reply, self.reasoning, self.frame_sha256),
            *(self.model, self.fingerprint, self.finish_reason, self.tokens_in, self.tokens_out, self.tokens_cached),
            *(self.tokens_reasoning, self.cost, self.currency, logprobs, self.batch_id, self.latency_seconds),
            len(self.attempts),
        )


@dataclass(frozen=True)
class Spent:
    """What the ledger holds of one judge: requests sent, tokens in and out, and their cost.

    Attempts whose cost was not recorded (by an earlier version) are in ``unpriced_in`` and ``unpriced_out`` too.
    """

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    unpriced_in: int = 0
    unpriced_out: int = 0


@lru_cache(maxsize=1024)
def _spelled(presentation: tuple[str, ...]) -> str:
    """A presentation as the ledger's column holds it; a study has few of them."""
    return json.dumps(presentation, ensure_ascii=False)


def key_digest(key: Iterable[Any]) -> bytes:
    """A call's key, as the ledger's columns hold it, in 16 bytes."""
    return hashlib.blake2b("\x00".join(map(str, key)).encode(errors="surrogatepass"), digest_size=16).digest()
