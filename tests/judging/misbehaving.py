"""A provider on loopback that speaks three dialects and misbehaves by seed.

A verdict is a function of the prompt's text alone (without the fence words, which differ from call to call), so any
run gives the same tables. What goes wrong is a function of the seed, the prompt and how often it was asked before, so
it does not depend on the order in which requests arrive, and a test can work out beforehand what must come of a call.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import itertools
import json
import re
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["DIALECTS", "Dialect", "Logged", "MisbehavingServer", "dialect_of"]


def _sibling(name: str) -> ModuleType:
    """A module of this folder, which is no package."""
    known = sys.modules.get(f"judging_{name}")
    if known is not None:
        return known
    found = importlib.util.spec_from_file_location(f"judging_{name}", Path(__file__).with_name(f"{name}.py"))
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[f"judging_{name}"] = module
    found.loader.exec_module(module)
    return module


http = _sibling("server")
wire = _sibling("dialects")
Answer, HttpServer = http.Answer, http.HttpServer

faults_module = _sibling("faults")
Faults, settled = faults_module.Faults, faults_module.settled
call_key, verdict_for = faults_module.call_key, faults_module.verdict_for
DUPLICATES, FATAL, HARMLESS = faults_module.DUPLICATES, faults_module.FATAL, faults_module.HARMLESS
MALFORMED, OFTEN = faults_module.MALFORMED, faults_module.OFTEN
REFUSED, TRANSIENT = faults_module.REFUSED, faults_module.TRANSIENT


_numbers = itertools.count()


@dataclass(frozen=True)
class Dialect:
    """One dialect: how a request is read, and how answers look. The bodies come from ``dialects.py``."""

    name: str
    read: Callable[[dict[str, Any]], tuple[str | None, str, Any]]
    response: Callable[..., dict[str, Any]]
    id: str  # the name of the field for a response's id
    stop: str  # and of the one for why the model stopped
    early: str
    withheld: str
    nothing: dict[str, Any]
    filtered: tuple[int, dict[str, Any]]
    rate: dict[str, str]

    def reply(self, body: dict[str, Any], text: str, stopped: str | None = None) -> dict[str, Any]:
        """A good answer to this request with an id of its own, or one that stopped for this reason."""
        options: dict[str, Any] = {self.id: f"{self.name}-{next(_numbers):020d}"}
        if stopped is not None:
            options[self.stop] = stopped
        if self.name == "anthropic" and "tools" in body and stopped is None and text.startswith("{"):
            options["tool"] = True
        return self.response(text, **options)

    def error(self, status: int, kind: str, message: str) -> dict[str, Any]:
        """The body of an error."""
        if self.name == "chat":
            codes = {"too_long": "context_length_exceeded", "404": "model_not_found", "401": "invalid_api_key"}
            return wire.chat_error(message, code=codes.get(kind))
        if self.name == "anthropic":
            return wire.anthropic_error(message, type_=_ANTHROPIC.get(status, "api_error"))
        wait = 0.05 if kind == "429_retry_after" else None
        return wire.gemini_error(message, code=status, status=_GOOGLE.get(status, "UNKNOWN"), retry_seconds=wait)


_ANTHROPIC = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    429: "rate_limit_error", 503: "overloaded_error",
}  # fmt: skip
_GOOGLE = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE",
}  # fmt: skip
DIALECTS = {
    "chat": Dialect(
        "chat", wire.read_chat_request, wire.chat_response, "id", "finish_reason", "length", "content_filter",
        nothing={"model": "served-model", "choices": []},
        filtered=(400, wire.chat_error("The prompt was flagged", code="content_filter")),
        rate={
            "x-ratelimit-remaining-requests": "1000", "x-ratelimit-remaining-tokens": "1000000",
            "x-ratelimit-reset-requests": "10ms", "x-ratelimit-reset-tokens": "6ms",
        },
    ),
    "anthropic": Dialect(
        "anthropic", wire.read_anthropic_request, wire.anthropic_response, "id", "stop_reason", "max_tokens", "refusal",
        nothing={"type": "message", "role": "assistant", "model": "served-model", "content": []},
        filtered=(400, wire.anthropic_error("Output blocked by content filtering policy")),
        rate={
            "anthropic-ratelimit-requests-remaining": "1000", "anthropic-ratelimit-tokens-remaining": "1000000",
            "anthropic-ratelimit-requests-reset": "2099-01-01T00:00:00Z",
        },
    ),
    "gemini": Dialect(
        "gemini", wire.read_gemini_request, wire.gemini_response, "responseId", "finish_reason", "MAX_TOKENS", "SAFETY",
        nothing={"candidates": [], "modelVersion": "served-model"},
        filtered=(200, {"promptFeedback": {"blockReason": "SAFETY"}, "modelVersion": "served-model"}),
        rate={},
    ),
}  # fmt: skip


def dialect_of(path: str) -> Dialect | None:
    """Which dialect an address belongs to."""
    plain = path.partition("?")[0]
    known = plain.endswith(("/chat/completions", "/v1/messages", ":generateContent"))
    return DIALECTS[wire.dialect_of(path)] if known else None


@dataclass(slots=True)
class Logged:
    """One request as the log holds it: no values of headers, for a key may be among them."""

    key: str
    dialect: str
    path: str
    header_names: tuple[str, ...]
    time: float
    fault: str | None
    held: float = 0.0


_MESSAGES = {
    "too_long": (400, "prompt is too long: maximum context length is 8192 tokens, the input exceeds the context size"),
    "401": (401, "the key is not valid"),
    "403": (403, "this key may not use this model"),
    "404": (404, "the model m-1 does not exist (model not found)"),
    "429": (429, "slow down"),
    "429_retry_after": (429, "slow down for a while"),
    "500": (500, "internal error"),
    "503": (503, "overloaded"),
}


class MisbehavingServer(HttpServer):  # type: ignore[misc, valid-type]
    """Gives each prompt its verdict after ``latency`` seconds, but for the faults.

    Parameters
    ----------
    faults
        What goes wrong.
    latency
        Seconds between a request and a good answer.
    slow
        Seconds by which the slow faults are late.
    expire_after
        From this request on the key is refused.
    unusable_share
        Share of the prompts that never get a verdict, whenever they are asked.
    plain
        Keep no log and no count: the fastest answer, to measure clients with.
    """

    def __init__(
        self,
        faults: Faults | None = None,
        *,
        latency: float = 0.0,
        slow: float = 2.0,
        expire_after: int | None = None,
        unusable_share: float = 0.0,
        plain: bool = False,
    ) -> None:
        super().__init__()
        self.faults = faults or Faults()
        self.latency, self.slow, self.expire_after, self.plain = latency, slow, expire_after, plain
        self.unusable = f"{int(unusable_share * 16**8):08x}"
        self.routes: dict[tuple[str, str], Callable[[Any], Any]] = {
            ("GET", "/log"): self._log,
            ("GET", "/requests"): lambda request: Answer(len(self.log)),
        }
        self.rewrite: Callable[[str, str], str] = lambda user, text: text  # what is made of the verdict on a prompt
        self.echo = ""  # stands in every error and in every reply that is none, as some endpoints quote the key
        self.log: list[Logged] = []
        self.by_key: dict[str, list[str | None]] = {}
        self.most_at_once = 0
        self._waiting: set[Any] = set()  # connections whose client waits for an answer

    @property
    def base_urls(self) -> dict[str, str]:
        """The base URL of each kind of judge."""
        return {"chat": f"{self.address}/v1", "anthropic": self.address, "gemini": f"{self.address}/v1beta"}

    def judge(self, kind: str = "chat", **changes: Any) -> dict[str, Any]:
        """The configuration of a judge of one kind behind this server."""
        return {
            "name": kind, "kind": kind, "model": "m-1", "base_url": self.base_urls[kind], "api_key_env": None,
        } | changes  # fmt: skip

    def receive(self, request: Any, connection: Any) -> None:
        dialect = dialect_of(request.path) if request.method == "POST" else None
        if dialect is None:
            connection.write(_bytes(self._routed(request)))
            return
        body = json.loads(request.body)
        system, user, _ = dialect.read(body)
        key = call_key(user)
        fault, entry = (None, None) if self.plain else self._note(request, connection, dialect, key)
        text = json.dumps(verdict_for(system or user, key)) if key[-8:] >= self.unusable else "I cannot say."
        text = self.rewrite(user, text)
        if fault is None:
            answer = _bytes(Answer(dialect.reply(body, text)))
            if self.latency:
                self.loop.call_later(self.latency, self._finish, connection, answer, entry)
            else:
                self._finish(connection, answer, entry)
            return
        self.spawn(self._misbehave(connection, self._wrong(dialect, body, fault, text)))

    def _note(self, request: Any, connection: Any, dialect: Dialect, key: str) -> tuple[str | None, Logged]:
        name = f"{dialect.name} {key}"
        before = self.by_key.setdefault(name, [])
        expired = self.expire_after is not None and len(self.log) >= self.expire_after
        fault = "401" if expired else self.faults.of(name, len(before))
        before.append(fault)
        self._waiting.add(connection)
        self.most_at_once = max(self.most_at_once, len(self._waiting))
        names = tuple(request.headers)
        entry = Logged(key, dialect.name, request.path, names, time.monotonic(), fault)
        self.log.append(entry)
        return fault, entry

    def _finish(self, connection: Any, answer: bytes, entry: Logged | None) -> None:
        if entry is not None:
            self._waiting.discard(connection)
            entry.held = time.monotonic() - entry.time
        if not connection.transport.is_closing():
            connection.write(answer)

    async def _misbehave(self, connection: Any, answer: Any) -> None:
        await asyncio.sleep(answer.delay)
        self._waiting.discard(connection)
        await connection.send(answer)

    def lost(self, connection: Any) -> None:
        self._waiting.discard(connection)

    def _wrong(self, dialect: Dialect, body: dict[str, Any], fault: str, text: str) -> Any:
        """The answer with this fault."""
        good = json.dumps(dialect.reply(body, text)).encode()
        if fault in _MESSAGES:
            status, message = _MESSAGES[fault]
            headers = {"Retry-After": "0.05"} if fault == "429_retry_after" and dialect.name != "gemini" else {}
            return Answer(dialect.error(status, fault, f"{message} {self.echo}".strip()), status, headers)
        half = dialect.reply(body, text[: len(text) // 2], dialect.early)
        latin = json.dumps(dialect.reply(body, "\xe9 " + text), ensure_ascii=False).encode("latin-1")
        return {
            "filtered": Answer(dialect.filtered[1], dialect.filtered[0]),
            "slow_first_byte": Answer(good, delay=self.slow),
            "slow_body": Answer(good, drip=self.slow / 3),
            "reset": Answer(reset=True),
            "reset_in_body": Answer(good, cut=len(good) // 2),
            "closed": Answer(drop=True),
            "cut_json": Answer(good[: len(good) // 2]),
            "html": Answer(f"<!doctype html><p>Sign in {self.echo}</p>", headers={"Content-Type": "text/html"}),
            "wrong_charset": Answer(good, headers={"Content-Type": "application/json; charset=utf-16"}),
            "latin1": Answer(latin),
            "no_choices": Answer(dialect.nothing),
            "prose": Answer(dialect.reply(body, f"I would rather not say. {self.echo}")),
            "stopped_early": Answer(half),
            "withheld": Answer(dialect.reply(body, "", dialect.withheld)),
            "duplicate": Answer(good, again=0),
            "late_duplicate": Answer(good, again=0.02),
            "close_after": Answer(good, close=True),
            "rate_headers": Answer(good, headers=dialect.rate),
        }[fault]

    def _routed(self, request: Any) -> Any:
        for (method, pattern), route in self.routes.items():
            if method == request.method and re.fullmatch(pattern, request.path):
                return route(request)
        return Answer({"error": {"message": f"no such address {request.path}"}}, 404)

    def _log(self, request: Any) -> Any:
        held = [entry.held for entry in self.log if entry.held]
        return Answer(
            {
                "requests": len(self.log), "by_key": self.by_key, "most_at_once": self.most_at_once,
                "mean_held": sum(held) / len(held) if held else 0.0, "faults": asdict(self.faults),
            }
        )  # fmt: skip


def _bytes(answer: Any) -> bytes:
    content = answer.content()
    return answer.head(len(content)) + content


def main() -> None:
    """Serve until standard input ends; the first line printed is the port."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--options", default="{}", help="JSON of the server's options")
    values = json.loads(parser.parse_args().options)
    faults = values.pop("faults", {})
    faults["kinds"] = tuple(faults.get("kinds", ()))
    with MisbehavingServer(Faults(**faults), **values) as server:
        print(server.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
