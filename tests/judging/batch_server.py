"""Batches in both dialects on a scripted server: the requests of a batch are answered by the server's own script.

A batch ends after it was looked at ``looks`` times. What goes wrong is set by the test: ``fate`` says of a request
(its body, and how often it was in a batch before) whether it is ``expired``, ``canceled``, ``lost`` (no result) or
answered (None), ``trouble`` holds answers that come in place of the next requests, by method and kind of address.
Requests are checked as a provider checks them.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from email.parser import BytesParser
from typing import Any

__all__ = ["Batches"]

CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ANTHROPIC_ERRORS = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error", 500: "api_error"}


class Batches:
    """The batch interface of a provider, mounted on a ``ScriptedServer``."""

    def __init__(self, server: Any, dialect: str) -> None:
        self.server, self.dialect = server, dialect
        self.looks = 2
        self.fate: Callable[[dict[str, Any], int], str | None] = lambda body, number: None
        self.trouble: list[tuple[str, Any]] = []  # ("GET batch", Answer), taken in order
        self.after: Callable[[str], None] = lambda kind: None  # called before each answer is sent
        self.edit: Callable[[list[dict[str, Any]]], list[Any]] = lambda lines: lines  # the results, changed
        self.whole: list[dict[str, Any]] = []  # errors with which the next batches fail as a whole (OpenAI)
        self.made: list[dict[str, Any]] = []  # every batch, the latest last
        self.bodies: list[bytes] = []  # of single requests, as they stand in the batches
        self.asked: list[str] = []  # kinds of requests, as they came
        self.heads: list[dict[str, str]] = []
        self._files: dict[str, bytes] = {}
        self._seen: Counter[str] = Counter()
        self._answered: Counter[str] = Counter()
        self._mount()

    def _mount(self) -> None:
        top = "/v1/batches" if self.dialect == "chat" else "/v1/messages/batches"
        routes = {
            ("POST", rf"{top}"): ("POST batches", self._create),
            ("GET", rf"{top}(\?.*)?"): ("GET batches", self._list),
            ("GET", rf"{top}/[^/?]+"): ("GET batch", self._get),
        }
        if self.dialect == "chat":
            routes |= {
                ("POST", "/v1/files"): ("POST files", self._upload),
                ("GET", "/v1/files/[^/]+/content"): ("GET results", self._content),
            }
        else:
            routes[("GET", rf"{top}/[^/]+/results")] = ("GET results", self._content)
        for key, (kind, route) in routes.items():
            self.server.routes[key] = self._guarded(kind, route)

    def _guarded(self, kind: str, route: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def answer(request: Any) -> Any:
            self.asked.append(kind)
            self.heads.append(request.headers)
            if self.trouble and self.trouble[0][0] == kind:
                wrong = self.trouble.pop(0)[1]
                if callable(wrong):  # the request is carried out, and its answer is another
                    route(request)
                    return wrong()
                return wrong
            body = route(request)
            self.after(kind)
            return body if isinstance(body, self.server.Answer) else self.server.Answer(body)

        return answer

    # --- requests

    def _upload(self, request: Any) -> Any:
        head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
        form = BytesParser().parsebytes(head + request.body)
        parts = {part.get_param("name", header="content-disposition"): part for part in form.get_payload()}
        assert parts["purpose"].get_payload() == "batch"
        assert parts["file"].get_filename().endswith(".jsonl")
        name = f"file-{len(self._files)}"
        start = request.body.index(b"\r\n\r\n", request.body.index(b'name="file"')) + 4
        self._files[name] = request.body[start : request.body.rindex(b"\r\n--")]
        return {"id": name, "object": "file", "purpose": "batch"}

    def _create(self, request: Any) -> Any:
        wanted, requests = request.json(), {}
        if self.dialect == "chat":
            assert wanted["completion_window"] == "24h"
            for line in self._files[wanted["input_file_id"]].splitlines():
                entry = json.loads(line)
                assert entry["method"] == "POST"
                assert entry["url"] == wanted["endpoint"] == "/v1/chat/completions"
                requests[entry["custom_id"]] = entry["body"]
                self.bodies.append(line[line.index(b'"body":') + 7 : -1])
        else:
            for entry in wanted["requests"]:
                requests[entry["custom_id"]] = entry["params"]
                self.bodies.append(json.dumps(entry["params"], ensure_ascii=False, separators=(",", ":")).encode())
        assert requests
        assert all(CUSTOM_ID.fullmatch(custom_id) for custom_id in requests)
        batch = {
            "id": f"batch_{len(self.made)}", "requests": requests, "looks": 0, "created": time.time(),
            "metadata": wanted.get("metadata"), "whole": self.whole.pop(0) if self.whole else None,
        }  # fmt: skip
        self.made.append(batch)
        return self._shown(batch)

    def _get(self, request: Any) -> Any:
        name = request.path.rpartition("/")[2]
        batch = next((batch for batch in self.made if batch["id"] == name), None)
        if batch is None:
            return self.server.Answer({"error": {"message": f"No batch found with id '{name}'."}}, status=404)
        batch["looks"] += 1
        return self._shown(batch)

    def _list(self, request: Any) -> Any:
        after = re.search(r"after(?:_id)?=([^&]+)", request.path)
        known = self.made[::-1]
        start = 0 if after is None else 1 + [batch["id"] for batch in known].index(after[1])
        page = known[start : start + 2]  # short pages, so that they are turned
        more = len(known) > start + 2
        return {"data": [self._shown(batch) for batch in page], "has_more": more, "last_id": "unused"}

    def _content(self, request: Any) -> Any:
        name = request.path.split("/")[-2]
        batch_id, _, which = name.partition(".")
        batch = next(batch for batch in self.made if batch["id"] == batch_id)
        if "lines" not in batch:  # made once, however often they are fetched
            batch["lines"] = self._results(batch)
        lines = batch["lines"]
        if which:
            lines = [
                line for line in lines if (self._is_error(line) if which == "errors" else not self._is_error(line))
            ]
        lines = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in self.edit(lines)]
        return self.server.Answer("".join(f"{line}\n" for line in lines[::-1]))  # in another order than they were sent

    @staticmethod
    def _is_error(line: dict[str, Any]) -> bool:
        return line["response"] is None or line["response"]["status_code"] != 200

    # --- what a batch is

    def _shown(self, batch: dict[str, Any]) -> dict[str, Any]:
        total, ended = len(batch["requests"]), batch["looks"] >= self.looks
        if self.dialect == "chat":
            failed = ended and batch["whole"] is not None
            return {
                "id": batch["id"], "object": "batch", "created_at": int(batch["created"]),
                "metadata": batch["metadata"],
                "status": "failed" if failed else "completed" if ended else "in_progress",
                "errors": {"data": [batch["whole"]]} if failed else None,
                "output_file_id": f"{batch['id']}.output" if ended and not failed else None,
                "error_file_id": f"{batch['id']}.errors" if ended and not failed else None,
                "request_counts": {"total": total, "completed": total if ended else batch["looks"] and 1, "failed": 0},
            }  # fmt: skip
        return {
            "id": batch["id"], "type": "message_batch", "processing_status": "ended" if ended else "in_progress",
            "created_at": datetime.fromtimestamp(batch["created"], UTC).isoformat(),
            "request_counts": {
                "processing": 0 if ended else total, "succeeded": total if ended else 0, "errored": 0, "canceled": 0,
                "expired": 0,
            },
            "results_url": f"http://elsewhere.invalid/{batch['id']}" if ended else None,
        }  # fmt: skip

    def _results(self, batch: dict[str, Any]) -> list[dict[str, Any]]:
        lines = [self._result(custom_id, body) for custom_id, body in batch["requests"].items()]
        return [line for line in lines if line is not None]

    def _result(self, custom_id: str, body: dict[str, Any]) -> dict[str, Any] | None:
        key = json.dumps(body["messages"])
        fate = self.fate(body, self._seen[key])
        self._seen[key] += 1
        if fate == "lost":
            return None
        if fate is not None:
            return self._unanswered(custom_id, fate)
        answer = self.server.script(body, self._answered[key])
        self._answered[key] += 1
        if self.dialect == "chat":
            response = {"status_code": answer.status, "request_id": "req", "body": answer.body}
            return {"id": "batch_req", "custom_id": custom_id, "response": response, "error": None}
        if answer.status == 200:
            return {"custom_id": custom_id, "result": {"type": "succeeded", "message": answer.body}}
        error = {"type": ANTHROPIC_ERRORS[answer.status], "message": str(answer.body)}
        return {"custom_id": custom_id, "result": {"type": "errored", "error": {"type": "error", "error": error}}}

    def _unanswered(self, custom_id: str, fate: str) -> dict[str, Any]:
        if self.dialect == "chat":
            error = {"code": f"batch_{fate}", "message": "This request could not be executed."}
            return {"id": "batch_req", "custom_id": custom_id, "response": None, "error": error}
        return {"custom_id": custom_id, "result": {"type": fate}}
