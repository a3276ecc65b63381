"""A real HTTP server on loopback that answers chat completions by a script."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

__all__ = ["Answer", "ScriptedServer", "completion"]

GOOD = {
    "pairwise": {"winner": "A", "confidence": "high", "reason_codes": []},
    "direct": {"correctness": 4, "clarity": 3, "critical_error": False, "reason_codes": []},
}


@dataclass
class Answer:
    """What one request gets. ``reset`` breaks the connection, ``delay`` comes before the answer."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    reset: bool = False


def completion(text: Any, **extra: Any) -> Answer:
    """A chat completion with this content."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    return Answer({"model": "served-model", "choices": [choice], "usage": usage, "system_fingerprint": "fp"} | extra)


class ScriptedServer:
    """``script(body, number)`` answers the ``number``-th request (from 0) for the same messages."""

    Answer = Answer
    completion = staticmethod(completion)

    def __init__(self) -> None:
        self.script: Callable[[dict[str, Any], int], Answer] = lambda body, number: self.good(body)
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.times: list[float] = []
        self.most_at_once = 0
        self._now = 0
        self._seen: Counter[str] = Counter()
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                owner.handle(self)

            def log_message(self, *args: Any) -> None:
                pass

        self._http = _Quiet(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @staticmethod
    def good(body: dict[str, Any]) -> Answer:
        """A valid verdict of the strategy that was asked for."""
        text = body["messages"][-1]["content"]
        return completion(json.dumps(GOOD["pairwise" if "ANSWER A" in text else "direct"]))

    def judge(self, **changes: Any) -> dict[str, Any]:
        """The configuration of a judge behind this server."""
        return {"name": "served", "kind": "chat", "model": "m-1", "base_url": self.base_url} | changes

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        with self._lock:
            key = json.dumps(body["messages"])
            number = self._seen[key]
            self._seen[key] += 1
            self.bodies.append(body)
            self.headers.append({name.lower(): value for name, value in request.headers.items()})
            self.paths.append(request.path)
            self.times.append(time.monotonic())
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        answer = self.script(body, number)
        time.sleep(answer.delay)
        with self._lock:
            self._now -= 1
        self._send(request, answer)

    @staticmethod
    def _send(request: BaseHTTPRequestHandler, answer: Answer) -> None:
        if answer.reset:
            linger = struct.pack("ii", 1, 0)
            request.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            request.close_connection = True
            request.connection.close()
            return
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        content = text.encode()
        try:
            request.send_response(answer.status)
            for name, value in answer.headers.items():
                request.send_header(name, value)
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            request.wfile.write(content)
        except OSError:  # the client has gone, as after its time-out
            request.close_connection = True


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass
