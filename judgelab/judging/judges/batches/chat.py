"""Batches in OpenAI's dialect: a file of requests is uploaded, a batch is made of it, results are files again.

Groq and others speak it, too. The results are up to two files: what was answered, and what was not.
"""

from __future__ import annotations

import json
from typing import IO, Any, ClassVar
from urllib.parse import quote

from judgelab.judging.judges.base import TransientError
from judgelab.judging.judges.batches.base import BatchLimits, BatchProvider, BatchState, Result, as_count

__all__ = ["ChatBatches"]

WINDOW = "24h"  # the only one that is offered everywhere
NAME = "judgelab"  # the key of the metadata that holds our token
_ENDED = {"completed", "failed", "expired", "cancelled"}
_QUEUE_FULL = "token_limit_exceeded"  # more tokens are waiting in the account's batches than it may have


class ChatBatches(BatchProvider):
    """``POST files``, ``POST batches``, ``GET batches/ID``, ``GET files/ID/content`` below ``base_url``."""

    limits: ClassVar[BatchLimits] = BatchLimits(requests=50_000, size=200_000_000)
    named: ClassVar[bool] = True
    after: ClassVar[str] = "after"

    @property
    def _target(self) -> str:
        """The address of a single call, as a line of a batch names it: from the API's version on."""
        path = self._judge.path.partition("?")[0].lstrip("/")
        return f"/v1/{path}" if self._judge.base_url.rstrip("/").endswith("/v1") else f"/{path}"

    def _address(self, *parts: str) -> str:
        base = self._judge.base_url.rstrip("/")
        query = self._judge.path.partition("?")[2]
        path = "/".join(quote(part, safe="") for part in parts)
        return f"{base}/{path}?{query}" if query else f"{base}/{path}"

    def _batches(self, *parts: str) -> str:
        return self._address("batches", *parts)

    def line(self, custom_id: str, body: bytes) -> bytes:
        head = json.dumps({"custom_id": custom_id, "method": "POST", "url": self._target}, separators=(",", ":"))
        return head[:-1].encode() + b',"body":' + body + b"}\n"

    async def submit(self, lines: IO[bytes], size: int, token: str) -> str:
        lines.seek(0)
        files = {"file": (f"{NAME}-{token}.jsonl", lines, "application/jsonl")}
        uploaded = await self._send("POST", self._address("files"), data={"purpose": "batch"}, files=files)
        if not isinstance(uploaded, dict) or not isinstance(uploaded.get("id"), str):
            raise TransientError("transient_error", "the provider gave the uploaded file no id")
        wanted = {
            "input_file_id": uploaded["id"],
            "endpoint": self._target,
            "completion_window": WINDOW,
            "metadata": {NAME: token},
        }
        return self._as_state(await self._send("POST", self._batches(), json=wanted)).batch_id

    def _state(self, body: Any) -> BatchState:
        counts, status, metadata = body.get("request_counts") or {}, body["status"], body.get("metadata") or {}
        found = (body.get("errors") or {}).get("data") or []
        codes = {error.get("code") for error in found}
        problem = None
        if status == "failed":
            problem = "; ".join(str(error.get("message")) for error in found[:3]) or "the provider does not say why"
        files = [body.get(name) for name in ("output_file_id", "error_file_id")]
        return BatchState(
            batch_id=str(body["id"]),
            ended=status in _ENDED,
            total=as_count(counts.get("total")),
            done=as_count(counts.get("completed")) + as_count(counts.get("failed")),
            created=float(body["created_at"]),
            token=metadata.get(NAME),
            problem=None if problem is None else self._client._clean(problem)[:310],
            busy=_QUEUE_FULL in codes,
            files=tuple(self._address("files", file, "content") for file in files if file),
        )

    def _result(self, line: Any) -> Result:
        custom_id, response, error = str(line["custom_id"]), line.get("response"), line.get("error")
        if isinstance(response, dict) and 200 <= as_count(response.get("status_code")) < 600:
            return Result(custom_id, response["status_code"], response.get("body"))
        told = f"{error.get('code')}: {error.get('message')}" if isinstance(error, dict) else "no response"
        return Result(custom_id, failure=told)
