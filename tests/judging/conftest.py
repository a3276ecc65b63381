"""A project in a temporary folder, small studies in it, and a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from judgelab.judging import runner
from judgelab.judging.judges import client_for
from judgelab.judging.judges.base import Call, Reply
from judgelab.judging.prompts import render
from judgelab.study.freeze import freeze
from judgelab.study.items import Item
from judgelab.study.protocol import Study, parse_study
from judgelab.study.run import Run

_found = importlib.util.spec_from_file_location("judging_server", Path(__file__).with_name("server.py"))
assert _found is not None
assert _found.loader is not None
server_module = importlib.util.module_from_spec(_found)
sys.modules["judging_server"] = server_module  # where dataclasses look for it
_found.loader.exec_module(server_module)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project."""
    for name in ("params", "notebooks", "outputs"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("JUDGELAB_ROOT", str(tmp_path))
    monkeypatch.delenv("JUDGELAB_OUTPUTS", raising=False)
    return tmp_path


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait between retries, except where the endpoint says how long."""
    monkeypatch.setattr(runner, "_wait", lambda state: 0.0)


def _raw_item(number: int, **changes: Any) -> dict[str, Any]:
    """An item for any number of systems; ALPHA's answer is the longer one."""
    return {
        "item_id": f"i{number:05d}",
        "category": "even" if number % 2 == 0 else "odd",
        "task": f"What is {number} plus one?",
        "reference_context": f"The sum is {number + 1}.",
        "answers": {"ALPHA": f"It is {number + 1}, no doubt about that.", "BETA": f"{number + 2}"},
    } | changes


def _study_of(judges: list[dict[str, Any]], **changes: Any) -> Study:
    """A small protocol for these judges."""
    values = {
        "study_id": "small",
        "sampling_rule": "all of them",
        "items": {"path": "params/items.jsonl"},
        "systems": {"ALPHA": {}, "BETA": {}},
        "rubric_version": "r1",
        "direct_scale": {"criteria": ["correctness", "clarity"]},
        "direct_tie_margin": 0.25,
        "random_seed": 7,
        "judges": judges,
    }
    return parse_study(values | changes)


@pytest.fixture(scope="session")
def raw_item() -> Callable[..., dict[str, Any]]:
    """Maker of one line of an items file."""
    return _raw_item


@pytest.fixture(scope="session")
def study_of() -> Callable[..., Study]:
    """Maker of a small protocol."""
    return _study_of


@pytest.fixture
def make_run(project: Path) -> Callable[..., Run]:
    """Write items and freeze a run of a study."""

    def make(judges: list[dict[str, Any]], items: Any = 4, *, name: str = "small", **changes: Any) -> Run:
        rows = [_raw_item(number) for number in range(items)] if isinstance(items, int) else items
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (project / "params" / "items.jsonl").write_text(text, encoding="utf-8")
        return freeze(name, _study_of(judges, **changes))

    return make


@pytest.fixture
def write_records(project: Path) -> Callable[..., dict[str, Any]]:
    """Write a file of records and return the configuration of the judge that reads it."""

    def write(records: list[Any], *, name: str = "old", **changes: Any) -> dict[str, Any]:
        path = project / "params" / f"{name}.jsonl"
        lines = [row if isinstance(row, str) else json.dumps(row) for row in records]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return {"name": name, "kind": "recorded", "path": f"params/{name}.jsonl"} | changes

    return write


@pytest.fixture
def server() -> Iterator[Any]:
    """An endpoint that speaks OpenAI chat completions; `server.script` says how each request is answered."""
    with server_module.ScriptedServer() as running:
        yield running


@pytest.fixture(scope="session")
def wire() -> Any:
    """The three dialects as pure functions (dialects.py)."""
    if "judging_dialects" not in sys.modules:
        found = importlib.util.spec_from_file_location("judging_dialects", Path(__file__).with_name("dialects.py"))
        assert found is not None
        assert found.loader is not None
        sys.modules["judging_dialects"] = module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
    return sys.modules["judging_dialects"]


class Exchange:
    """Asks one judge through httpx.MockTransport. ``requests`` and ``bodies`` hold what was sent."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.bodies: list[dict[str, Any]] = []
        self.client: Any = None

    def __call__(self, answer: Any, *, strategy: str = "pairwise", times: int = 1, **judge: Any) -> Reply:
        """The last of ``times`` replies. ``answer`` is a body, a response, an error, or a function of a request."""

        def respond(request: httpx.Request) -> httpx.Response:
            self.requests.append(request)
            self.bodies.append(json.loads(request.content))
            given = answer(request) if callable(answer) else answer
            if isinstance(given, Exception):
                raise given
            return given if isinstance(given, httpx.Response) else httpx.Response(200, json=given)

        return asyncio.run(self._asked(httpx.MockTransport(respond), strategy, times, judge))

    async def _asked(self, transport: Any, strategy: str, times: int, judge: dict[str, Any]) -> Reply:
        values = {"name": "j", "kind": "chat", "model": "m-1", "base_url": "https://api.example/v1"}
        study = _study_of([values | {"api_key_env": None} | judge])
        item = _item_of(_raw_item(1))
        shown = ("ALPHA", "BETA") if strategy == "pairwise" else ("ALPHA",)
        self.call = call = Call(strategy, "original" if strategy == "pairwise" else "direct", item, shown)
        self.prompt = render(study, item, strategy, shown)
        self.client = client_for(study.judges[0], study)
        self.client._transport = transport
        async with self.client as client:
            for _ in range(times):
                reply = await client.ask(call, self.prompt)
        return reply


def _item_of(raw: dict[str, Any]) -> Item:
    return Item(
        item_id=raw["item_id"], task=raw["task"], reference_context=raw["reference_context"],
        category=raw["category"], answers=raw["answers"], sha256="0" * 64,
    )  # fmt: skip


@pytest.fixture
def exchange() -> Exchange:
    """Ask one judge through a mock transport; what was sent is kept."""
    return Exchange()
