"""What the batch interfaces of all providers share: requests with the judge's headers, failures, spooled lines.

Requests and responses of single calls are those of the judge's own client, so that a batched call and a live one are
the same: its bodies, its headers, its reading of failures, its care for keys.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Any, ClassVar, Self

import httpx

from judgelab.errors import JudgeError
from judgelab.judging.judges.base import Call, RefusedError, Reply, TransientError
from judgelab.judging.judges.bodies import decoded, encoded
from judgelab.judging.judges.http import HttpClient
from judgelab.judging.judges.rates import rate_hint
from judgelab.judging.prompts import Prompt

__all__ = ["BatchLimits", "BatchProvider", "BatchState", "Result", "as_count", "spool"]

# JSON may hold these as they are, but readers that split lines as Python does would cut a line at them
_LINE_ENDS = {char.encode(): f"\\u{ord(char):04x}".encode() for char in ("\x85", "\u2028", "\u2029")}


@dataclass(frozen=True)
class BatchLimits:
    """How much one batch may hold: requests, and bytes of all of them together."""

    requests: int
    size: int


@dataclass(frozen=True)
class BatchState:
    """One batch as the provider reports it. ``problem``: why it failed as a whole; ``files``: where its results are.

    ``done`` of ``total`` requests are settled. ``token`` is what we named it by, where the provider keeps that;
    ``busy`` says that a failed batch may be sent again later.
    """

    batch_id: str
    ended: bool
    total: int
    done: int
    created: float
    token: str | None = None
    problem: str | None = None
    busy: bool = False
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """What came of one request: a response (``status`` and ``body``), or ``failure``, which may pass."""

    custom_id: str
    status: int = 0
    body: Any = None
    failure: str | None = None


class BatchProvider:
    """The batches of one provider. Use as an async context manager.

    A method raises TransientError where the same request may be sent again, and JudgeError where it may not.
    """

    limits: ClassVar[BatchLimits]
    named: ClassVar[bool]  # whether the provider keeps a name that we give a batch

    def __init__(self, judge: Any, client: HttpClient) -> None:
        self._judge, self._client = judge, client

    # --- what a dialect says

    def line(self, custom_id: str, body: bytes) -> bytes:
        """One request of a batch; ``body`` is what the live request would send."""
        raise NotImplementedError

    async def submit(self, lines: IO[bytes], size: int, token: str) -> str:
        """Send a batch of lines (``size`` bytes); the provider's id of it."""
        raise NotImplementedError

    def _state(self, body: Any) -> BatchState:
        """A batch in the provider's words. Any LookupError, TypeError or ValueError means that it is none."""
        raise NotImplementedError

    def _result(self, line: Any) -> Result:
        """One line of a file of results; errors as for ``_state``."""
        raise NotImplementedError

    def _address(self, *parts: str) -> str:
        """An address of the batch interface."""
        raise NotImplementedError

    def _batches(self, *parts: str) -> str:
        """The address of all batches, or of one."""
        raise NotImplementedError

    after: ClassVar[str]  # the query that asks for the next page of a list

    # --- the connection

    async def __aenter__(self) -> Self:
        client = self._client
        wait = client.timeout_seconds
        connect = min(self._judge.limits.connect_timeout_seconds, wait)
        self._http = httpx.AsyncClient(
            headers={**client._static_headers(), **client._secret_headers()},
            # a file of 200 MB takes longer to send than one call may take
            timeout=httpx.Timeout(max(wait, 300.0), connect=connect),
            transport=client._transport,
            trust_env=client.trust_env,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    # --- single calls

    def request(self, custom_id: str, call: Call, prompt: Prompt) -> bytes:
        """The line that asks this call, with the body that a live request has."""
        line = self.line(custom_id, encoded(self._client.compose(call, prompt)))
        for char, escape in _LINE_ENDS.items():
            line = line.replace(char, escape)
        return line

    def read(self, call: Call, result: Result) -> Reply:
        """The reply in a result; raises what ``JudgeClient.ask`` raises."""
        if result.failure is not None:
            raise TransientError("transient_error", self._client._clean(result.failure)[:310])
        return self._client.read(call, result.status, result.body)

    # --- batches

    async def state(self, batch_id: str) -> BatchState:
        """How far a batch is.

        Raises
        ------
        JudgeError
            Also if the provider does not know it, as with the key of another account.
        """
        try:
            return self._as_state(await self._send("GET", self._batches(batch_id)))
        except _MissingError as error:
            raise JudgeError(
                f"judge {self._judge.name}: the provider does not know batch {batch_id}, which was sent to it by an "
                f"earlier run; was it sent with the key of another account, or deleted there? ({error.detail})"
            ) from None

    async def recent(self, since: float) -> AsyncIterator[BatchState]:
        """The batches that were made since then (seconds since the epoch), the latest first."""
        last: str | None = None
        while True:
            query = {"limit": "100"} | ({} if last is None else {self.after: last})
            page = await self._send("GET", self._batches(), params=query)
            try:
                entries, more = page["data"], bool(page.get("has_more"))
            except (LookupError, TypeError, AttributeError):
                raise TransientError("transient_error", "not a list of batches") from None
            for entry in entries:
                state = self._as_state(entry)
                if state.created < since:
                    return
                last = state.batch_id
                yield state
            if not more or not entries:
                return

    async def results(self, state: BatchState) -> IO[bytes]:
        """Every line of a batch's results, in a temporary file."""
        lines = spool()
        for address in state.files:
            try:
                async with self._http.stream("GET", address) as response:
                    if response.status_code != 200:
                        await response.aread()
                        self._checked(response)
                    async for part in response.aiter_bytes():
                        lines.write(part)
            except httpx.HTTPError as error:
                lines.close()
                raise self._broken(error) from None
            except BaseException:
                lines.close()
                raise
            lines.write(b"\n")
        lines.seek(0)
        return lines

    def parsed(self, lines: IO[bytes]) -> Iterator[Result | None]:
        """The results in a file, one by one; None for a line that is none."""
        for line in lines:
            if line.strip():
                try:
                    yield self._result(json.loads(line))
                except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
                    yield None

    # --- requests

    def _as_state(self, body: Any) -> BatchState:
        try:
            return self._state(body)
        except (LookupError, TypeError, ValueError, AttributeError):
            told = self._client._clean(json.dumps(body))[:200]
            raise TransientError("transient_error", f"not a batch: {told}") from None

    async def _send(self, method: str, address: str, **request: Any) -> Any:
        """One request; its decoded response."""
        try:
            response = await self._http.request(method, address, **request)
        except httpx.HTTPError as error:
            raise self._broken(error) from None
        except (httpx.InvalidURL, ValueError) as error:
            raise JudgeError(f"judge {self._judge.name}: {self._client._clean(str(error))}") from None
        return self._checked(response)

    def _broken(self, error: httpx.HTTPError) -> TransientError:
        reason = "timeout" if isinstance(error, httpx.TimeoutException) else "transient_error"
        return TransientError(reason, self._client._clean(f"{type(error).__name__}: {error}"))

    def _checked(self, response: httpx.Response) -> Any:
        """The body of a good response; the error that a bad one is."""
        status, body = response.status_code, decoded(response.content)
        if status < 300:
            return body
        text = response.content.decode("utf-8", "replace")
        detail = self._client._clean(f"HTTP {status}: {text}")[:310]
        if status in (404, 405, 410):
            raise _MissingError(
                f"judge {self._judge.name}: the endpoint has no batches at {response.url.path}; run it without "
                f"--batch, or check base_url ({detail})",
                detail,
            )
        if 300 <= status < 400:
            raise JudgeError(f"judge {self._judge.name}: the endpoint redirects; set base_url to its final address")
        rate = rate_hint((name.lower(), value) for name, value in response.headers.raw)
        error = self._client._failed(status, body, text, response.headers, rate)
        if isinstance(error, RefusedError):
            raise JudgeError(f"judge {self._judge.name}: the provider refuses the batch ({detail})")
        raise error


class _MissingError(JudgeError):
    """There is nothing at this address."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(message)
        self.detail = detail


def spool() -> IO[bytes]:
    """A temporary file without a name: a batch may be larger than memory likes."""
    return tempfile.TemporaryFile()


def as_count(value: Any) -> int:
    """A count as a provider reports it; anything else is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
