"""What the benchmarks of judging share: a server in a process of its own, and runs of any size."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from judgelab.study.freeze import freeze
from judgelab.study.protocol import parse_study
from judgelab.study.run import Run

__all__ = ["Loopback", "load", "make_run", "project", "server_module", "serving", "unseen"]

SERVER = Path(__file__).resolve().parents[1] / "tests" / "judging" / "misbehaving.py"
PASSES = ("pairwise_original",)


class Loopback:
    """A running server."""

    def __init__(self, port: int) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.base_url = f"{self.address}/v1"

    def log(self) -> dict[str, Any]:
        """What the server has seen."""
        return self._get("log")

    def requests(self) -> int:
        """How many requests it has seen."""
        return self._get("requests")

    def _get(self, name: str) -> Any:
        with urllib.request.urlopen(f"{self.address}/{name}") as answer:
            return json.load(answer)

    def judge(self, **changes: Any) -> dict[str, Any]:
        """The configuration of a judge behind this server."""
        return {"name": "served", "kind": "chat", "model": "m-1", "base_url": self.base_url} | changes


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[Loopback]:
    """The server of the tests, in a process of its own."""
    command = [sys.executable, str(SERVER), "--options", json.dumps(options)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Loopback(int(process.stdout.readline()))
        finally:
            process.stdin.close()


def server_module() -> ModuleType:
    """The server's module: it knows which fault comes when, and every verdict."""
    found = importlib.util.spec_from_file_location("judging_misbehaving", SERVER)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["judging_misbehaving"] = module
    found.loader.exec_module(module)
    return module


@contextlib.contextmanager
def unseen() -> Iterator[None]:
    """Progress bars are drawn, but not on the terminal."""
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
        yield


@contextlib.contextmanager
def project() -> Iterator[Path]:
    """An empty project in a temporary folder."""
    before = {name: os.environ.get(name) for name in ("JUDGELAB_ROOT", "JUDGELAB_OUTPUTS")}
    with tempfile.TemporaryDirectory(prefix="judgelab-benchmark-") as folder:
        for name in ("params", "notebooks", "outputs"):
            (Path(folder) / name).mkdir()
        os.environ["JUDGELAB_ROOT"] = folder
        os.environ.pop("JUDGELAB_OUTPUTS", None)
        try:
            yield Path(folder)
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


_WORDS = [
    "order",
    "sent",
    "on",
    "monday",
    "and",
    "the",
    "refund",
    "takes",
    "five",
    "days",
    "please",
    "write",
    "to",
    "us",
]


def make_run(folder: Path, items: int, judges: list[dict[str, Any]], *, name: str = "bench", **changes: Any) -> Run:
    """A frozen run with this many items, each with two answers of some forty words."""
    source = random.Random(items)

    def text(words: int) -> str:
        return " ".join(source.choices(_WORDS, k=words))

    with (folder / "params" / "items.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(items):
            answers = {"ALPHA": text(40), "BETA": text(40)}
            task = f"Question {number}: {text(20)}?"
            row = {"item_id": f"i{number:06d}", "category": "all", "task": task, "answers": answers}
            lines.write(json.dumps(row | {"reference_context": text(30)}) + "\n")
    study = {
        "study_id": name, "sampling_rule": "made for the benchmark", "items": {"path": "params/items.jsonl"},
        "systems": {"ALPHA": {}, "BETA": {}}, "rubric_version": "r1", "direct_tie_margin": 0.25, "random_seed": 7,
        "direct_scale": {"criteria": ["correctness", "clarity"]}, "judges": judges, "passes": list(PASSES),
        "position_test": {"enabled": False},
    }  # fmt: skip
    return freeze(name, parse_study(study | changes))


def load() -> str:
    """What else runs: the load average of the last minute, and the number of processors."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
