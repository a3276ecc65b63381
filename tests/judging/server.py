"""A real HTTP/1.1 server on loopback, written for speed, and a wrapper that answers requests by a script.

It runs on an event loop in a thread of its own. What it may do wrong is part of an `Answer`: wait, break the
connection, send part of the body, send the answer twice.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Self

__all__ = ["Answer", "HttpServer", "Request", "ScriptedServer", "completion"]

GOOD = {
    "pairwise": {"winner": "A", "confidence": "high", "reason_codes": []},
    "direct": {"correctness": 4, "clarity": 3, "critical_error": False, "reason_codes": []},
}


@dataclass
class Answer:
    """What one request gets. ``reset`` breaks the connection, ``drop`` closes it, ``delay`` comes before the answer.

    ``body`` is sent as it is if it is bytes or text, else as JSON. ``cut`` resets the connection after so many bytes
    of the body. ``drip`` is the time between the headers and each quarter of the body. ``again`` sends the whole
    answer a second time, that many seconds after the first. ``close`` ends the connection after the answer.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    reset: bool = False
    drop: bool = False
    cut: int | None = None
    drip: float = 0.0
    again: float | None = None
    close: bool = False

    def content(self) -> bytes:
        """The body's bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()

    def head(self, length: int) -> bytes:
        """The status line and headers."""
        headers = {"Content-Type": "application/json", **self.headers, "Content-Length": str(length)}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} -\r\n{lines}\r\n".encode("latin-1")


@dataclass(slots=True)
class Request:
    """One request as it came in. Names of headers are in lower case."""

    method: str
    path: str
    head: bytes
    body: bytes

    @property
    def headers(self) -> dict[str, str]:
        """The headers; only few readers want them, so they are parsed when asked for."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def json(self) -> Any:
        """The decoded body; nothing if it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return {}


_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)


class _Connection(asyncio.Protocol):
    """One connection: takes requests one after another and hands each to the server."""

    def __init__(self, server: HttpServer) -> None:
        self._server, self._received, self._busy = server, b"", False
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._server.lost(self)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._busy:
            self._next()

    def _next(self) -> None:
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._received[:end]
        found = _LENGTH.search(head)
        stop = end + 4 + (int(found[1]) if found else 0)
        if len(self._received) < stop:
            return
        body, self._received = self._received[end + 4 : stop], self._received[stop:]
        method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        self._busy = True
        self._server.receive(Request(method, path, head, body), self)

    def write(self, data: bytes) -> None:
        """Send a whole answer, and take the next request."""
        self._put(data)
        self._busy = False
        if self._received:
            self._next()

    def _put(self, data: bytes) -> None:
        if not self.transport.is_closing():  # the client may have gone, as after its time-out
            self.transport.write(data)

    async def send(self, answer: Answer) -> None:
        """Send an answer with all that is wrong with it."""
        content = answer.content()
        if self.transport.is_closing():
            return
        if answer.drop:
            self.transport.close()
            return
        if answer.reset or answer.cut is not None:
            if answer.cut is not None:
                self._put(answer.head(len(content)) + content[: answer.cut])
                await asyncio.sleep(0.01)  # what was written leaves before the connection breaks
            self._reset()
            return
        if answer.drip:
            self._put(answer.head(len(content)))
            quarter = -(-len(content) // 4)
            for start in range(0, len(content), quarter):
                await asyncio.sleep(answer.drip)
                self._put(content[start : start + quarter])
            self.write(b"")
            return
        whole = answer.head(len(content)) + content
        if answer.again is None:
            self.write(whole)
        elif answer.again == 0:
            self.write(whole + whole)
        else:
            self.write(whole)
            await asyncio.sleep(answer.again)
            self._put(whole)
        if answer.close:
            self.transport.close()

    def _reset(self) -> None:
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


class HttpServer:
    """Serves from a thread of its own. A subclass says how: ``receive`` is called on the loop for each request."""

    def __init__(self) -> None:
        self.connections: set[_Connection] = set()
        self.loop = asyncio.new_event_loop()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def receive(self, request: Request, connection: _Connection) -> None:
        """Answer one request, now or later."""
        self.spawn(self._answer(request, connection))

    def lost(self, connection: _Connection) -> None:
        """A connection has ended, by whichever side."""

    async def _answer(self, request: Request, connection: _Connection) -> None:
        raise NotImplementedError

    def spawn(self, work: Any) -> None:
        """Run a coroutine on the server's loop; what is still running at the end is cancelled."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self._tasks: set[asyncio.Task[Any]] = set()
        serving = self.loop.create_server(lambda: _Connection(self), sock=self._socket)
        listener = self.loop.run_until_complete(serving)
        try:
            self.loop.run_forever()
        finally:
            listener.close()
            for connection in tuple(self.connections):
                connection.transport.abort()
            tasks = tuple(self._tasks)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(asyncio.sleep(0))
            self.loop.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()


def completion(text: Any, **extra: Any) -> Answer:
    """A chat completion with this content."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    return Answer({"model": "served-model", "choices": [choice], "usage": usage, "system_fingerprint": "fp"} | extra)


class ScriptedServer(HttpServer):
    """``script(body, number)`` answers the ``number``-th request (from 0) for the same messages.

    ``routes`` maps (method, regular expression over the whole path) to a function of the request; it comes first.
    """

    Answer = Answer
    completion = staticmethod(completion)

    def __init__(self) -> None:
        super().__init__()
        self.script: Callable[[dict[str, Any], int], Answer] = lambda body, number: self.good(body)
        self.routes: dict[tuple[str, str], Callable[[Request], Answer]] = {}
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.times: list[float] = []
        self.most_at_once = 0
        self._now = 0
        self._seen: Counter[str] = Counter()
        self._pool = ThreadPoolExecutor(64)  # a script may block

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    @staticmethod
    def good(body: dict[str, Any]) -> Answer:
        """A valid verdict of the strategy that was asked for."""
        text = body["messages"][-1]["content"]
        return completion(json.dumps(GOOD["pairwise" if "ANSWER A" in text else "direct"]))

    def judge(self, **changes: Any) -> dict[str, Any]:
        """The configuration of a judge behind this server."""
        return {"name": "served", "kind": "chat", "model": "m-1", "base_url": self.base_url} | changes

    async def _answer(self, request: Request, connection: _Connection) -> None:
        body = request.json()
        body = body if isinstance(body, dict) else {}
        key = json.dumps(body.get("messages", body))
        number = self._seen[key]
        self._seen[key] += 1
        self.bodies.append(body)
        self.headers.append(request.headers)
        self.paths.append(request.path)
        self.times.append(time.monotonic())
        self._now += 1
        self.most_at_once = max(self.most_at_once, self._now)
        work: tuple[Any, ...] = (self.script, body, number)
        for (method, pattern), route in self.routes.items():
            if method == request.method and re.fullmatch(pattern, request.path):
                work = (route, request)
        try:
            answer: Answer = await self._in_thread(*work)
        except Exception:  # a script that fails must not leave its client waiting
            answer = Answer(reset=True)
        await asyncio.sleep(answer.delay)
        self._now -= 1
        await connection.send(answer)

    def _in_thread(self, function: Callable[..., Answer], *values: Any) -> Awaitable[Answer]:
        return self.loop.run_in_executor(self._pool, function, *values)
