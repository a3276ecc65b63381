"""Anthropic's message batches: the requests are one body, the results one file of JSON lines.

The provider keeps no name for a batch. One whose submission was broken off is looked for by its time and its number of
requests, and known for certain by the ids in its results.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from datetime import datetime
from typing import IO, Any, ClassVar
from urllib.parse import quote

from judgelab.judging.judges.batches.base import BatchLimits, BatchProvider, BatchState, Result, as_count

__all__ = ["AnthropicBatches"]

PIECE = 1 << 20  # bytes of a body that are read and sent at a time
_HEAD, _TAIL = b'{"requests":[', b"]}"
# the status that a live response with this error has
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatches(BatchProvider):
    """``POST v1/messages/batches``, ``GET v1/messages/batches/ID`` and its ``results``."""

    limits: ClassVar[BatchLimits] = BatchLimits(requests=100_000, size=256_000_000)
    named: ClassVar[bool] = False
    after: ClassVar[str] = "after_id"

    def _address(self, *parts: str) -> str:
        base = self._judge.base_url.rstrip("/")
        start = base if base.endswith("/v1") else f"{base}/v1"
        return "/".join([start, *(quote(part, safe="") for part in parts)])

    def _batches(self, *parts: str) -> str:
        return self._address("messages", "batches", *parts)

    def line(self, custom_id: str, body: bytes) -> bytes:
        return b'{"custom_id":"' + custom_id.encode() + b'","params":' + body + b"}\n"

    async def submit(self, lines: IO[bytes], size: int, token: str) -> str:
        # the newline behind each request becomes the comma between two; the last one is left out
        length = len(_HEAD) + max(size - 1, 0) + len(_TAIL)
        headers = {"Content-Type": "application/json", "Content-Length": str(length)}
        made = await self._send("POST", self._batches(), content=_body(lines), headers=headers)
        return self._as_state(made).batch_id

    def _state(self, body: Any) -> BatchState:
        counts = body.get("request_counts") or {}
        done = sum(as_count(counts.get(name)) for name in ("succeeded", "errored", "canceled", "expired"))
        # not the address in `results_url`: the key goes nowhere but below base_url
        return BatchState(
            batch_id=str(body["id"]),
            ended=body["processing_status"] == "ended",
            total=done + as_count(counts.get("processing")),
            done=done,
            created=datetime.fromisoformat(body["created_at"]).timestamp(),
            files=(self._batches(str(body["id"]), "results"),),
        )

    def _result(self, line: Any) -> Result:
        custom_id, result = str(line["custom_id"]), line["result"]
        if result["type"] == "succeeded":
            return Result(custom_id, 200, result["message"])
        if result["type"] != "errored":
            return Result(custom_id, failure=f"the request was {result['type']} at the provider")
        error = result["error"]
        inner = error["error"] if isinstance(error.get("error"), dict) else error
        return Result(custom_id, _STATUS.get(inner.get("type"), 500), {"type": "error", "error": inner})


async def _body(lines: IO[bytes]) -> AsyncIterator[bytes]:
    """The body around the lines, piece by piece."""
    lines.seek(0, os.SEEK_END)
    left = max(lines.tell() - 1, 0)
    lines.seek(0)
    yield _HEAD
    while left:
        piece = lines.read(min(PIECE, left))
        left -= len(piece)
        yield piece.replace(b"\n", b",")
    yield _TAIL
