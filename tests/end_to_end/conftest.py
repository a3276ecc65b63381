"""The command line in this process, an endpoint on loopback, and runs that many tests look at.

A run takes half a minute, so each is made once a session. Tests that change a run change a copy of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from judgelab import cli
from judgelab.study.freeze import freeze
from judgelab.study.protocol import load_params
from judgelab.study.tables import read_table

ROOT = Path(__file__).resolve().parents[2]
LABELS = ("ALPHA", "BETA", "TIE")
SECRET = "sk-test-5b1f0c7e-never-written"
SECRET_VARIABLE = "JUDGELAB_TEST_KEY"


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str


@contextlib.contextmanager
def outputs_at(outputs: Path) -> Iterator[None]:
    """This project with its outputs in another folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGELAB_ROOT", str(ROOT))
        patch.setenv("JUDGELAB_OUTPUTS", str(outputs))
        yield


def command(outputs: Path, *arguments: object) -> Outcome:
    """``judgelab ...`` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with outputs_at(outputs), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["judgelab", *map(str, arguments)])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
            cli.main()
    assert isinstance(ended.value.code, int)
    return Outcome(ended.value.code, out.getvalue(), err.getvalue())


def succeeded(outcome: Outcome) -> Outcome:
    assert outcome.code == 0, outcome.out + outcome.err
    return outcome


def tables_of(run: Path) -> dict[str, bytes]:
    """Name and bytes of every table and every normalized result of a run."""
    paths = [*run.glob("tables/*.csv"), *run.glob("normalized_results/*.csv")]
    return {path.name: path.read_bytes() for path in sorted(paths)}


def one(table: pd.DataFrame, **where: Any) -> pd.Series:
    """The one row with these values; ``pass_`` is the column ``pass``, and the slice is ``all`` if none is given."""
    wanted = {"slice": "all"} | {name.rstrip("_"): value for name, value in where.items()}
    chosen = table
    for name, value in wanted.items():
        chosen = chosen[chosen[name] == value]
    assert len(chosen) == 1, f"{len(chosen)} rows with {wanted}"
    return chosen.iloc[0]


def judges_of(params: str, *, kind: str | None = None) -> list[str]:
    """Names of a study's judges, or of those of one kind."""
    document = yaml.safe_load((ROOT / "params" / params).read_text(encoding="utf-8"))
    return [judge["name"] for judge in document["study"]["judges"] if kind in (None, judge["kind"])]


@dataclass(frozen=True)
class Printed:
    """What ``reference_analysis.py`` prints for one judge."""

    agreement: dict[str, tuple[int, int]]
    kappa: dict[str, float]
    confusion: dict[str, dict[tuple[str, str], int]]
    swap_consistency: tuple[int, int]
    first_position: tuple[int, int]
    interval: tuple[float, float]


def reference_analysis(shared: Path, file: Path) -> Printed:
    """Run the published script on one file of ``normalized_results`` and read what it prints."""
    done = subprocess.run(
        [sys.executable, str(shared / "seeds" / "reference_analysis.py"), str(file)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    text = done.stdout

    def count(label: str) -> tuple[int, int]:
        found = re.search(rf"^{label} (\d+) / (\d+) = ", text, re.MULTILINE)
        assert found, label
        return int(found[1]), int(found[2])

    confusion: dict[str, dict[tuple[str, str], int]] = {}
    kappa = {}
    for name in ("direct", "pair_original"):
        found = re.search(rf"^{name} kappa (\S+)$", text, re.MULTILINE)
        assert found
        kappa[name] = float(found[1])
        block = text.split(f"{name} confusion\n")[1].splitlines()[:3]
        confusion[name] = {}
        for line in block:
            human, counts = line.split(" ", 1)
            confusion[name] |= {(human, judged): k for judged, k in zip(LABELS, json.loads(counts), strict=True)}
    interval = re.search(r"difference interval \[(\S+), (\S+)\]", text)
    assert interval
    return Printed(
        {name: count(f"{name} agreement") for name in kappa}, kappa, confusion, count("swap consistency"),
        count("original first-position selections"), (float(interval[1]), float(interval[2])),
    )  # fmt: skip


def check_reference(shared: Path, run: Path, judge: str) -> None:
    """Everything that the published script prints for a judge stands in the run's tables."""
    printed = reference_analysis(shared, run / "normalized_results" / f"{judge}.csv")
    agreement, position, confusion = (
        read_table(run / "tables" / f"{name}.csv") for name in ("agreement", "position", "confusion")
    )
    passes = {"direct": "direct", "pair_original": "original"}
    planned = set(agreement.loc[agreement["judge"] == judge, "pass"])
    for name, pass_ in passes.items():
        own = confusion[(confusion["judge"] == judge) & (confusion["pass"] == pass_)]
        if pass_ not in planned:  # the judge was not asked for this pass: the script has nothing, and neither have we
            assert printed.agreement[name] == (0, 0)
            assert own.empty
            continue
        counts = dict(zip(zip(own["human"], own["judged"], strict=True), own["count"], strict=True))
        extra = {cell: k for cell, k in counts.items() if cell not in printed.confusion[name]}
        assert {cell: counts.get(cell) for cell in printed.confusion[name]} == printed.confusion[name]
        assert not any(set(cell) <= set(LABELS) for cell in extra)
        row = one(agreement, judge=judge, pass_=pass_, measure="exact_agreement")
        assert (row["numerator"], row["denominator"]) == printed.agreement[name]
        ours = one(agreement, judge=judge, pass_=pass_, measure="cohen_kappa")["estimate"]
        assert ours == pytest.approx(printed.kappa[name], abs=5.1e-5, nan_ok=True)
    row = one(position, judge=judge, measure="swap_consistency", pass_="both")
    assert (row["numerator"], row["denominator"]) == printed.swap_consistency
    row = one(position, judge=judge, measure="first_position_rate", pass_="original")
    assert (row["numerator"], row["denominator"]) == printed.first_position
    check_interval(agreement, read_table(run / "normalized_results" / f"{judge}.csv"), judge, printed.interval)


def check_interval(
    agreement: pd.DataFrame, preferences: pd.DataFrame, judge: str, printed: tuple[float, float]
) -> None:
    """Our interval of the difference lies within 0.01 of the script's.

    With n items the difference moves in steps of 1/n. Where a step is wider than 0.01 and the exact distribution of
    the resampled difference comes to 2.5 % almost at a step, two samples of 10,000 may fall on either side of it.
    """
    rows = agreement[(agreement["judge"] == judge) & (agreement["measure"] == "exact_agreement_difference")]
    rows = rows[rows["slice"] == "all"]
    if pd.isna(printed[0]):  # no item with both verdicts
        assert rows["ci_low"].isna().all()
        return
    row = rows.iloc[0]
    if printed[0] == printed[1] and pd.isna(row["ci_low"]):  # no variation: the script has a point, we have a note
        assert row["estimate"] == pytest.approx(printed[0], abs=5.1e-5)
        assert "every resample" in row["note"]
        return
    below = exact_distribution(preferences)
    for ours, theirs, tail in zip((row["ci_low"], row["ci_high"]), printed, (0.025, 0.975), strict=True):
        if abs(ours - theirs) <= 0.01 + 1e-9:
            continue
        step = 1 / row["n_used"]
        assert abs(ours - theirs) <= step + 5.1e-5
        noise = 4 * (0.025 * 0.975 / 10_000) ** 0.5  # four standard errors of a share of 10,000 resamples
        assert abs(below[round(min(ours, theirs) / step)] - tail) < noise, f"{judge}: {ours} and {theirs}"


def exact_distribution(preferences: pd.DataFrame) -> dict[int, float]:
    """P(difference of matches <= k) when n items are drawn again: the n-fold convolution of the items' differences."""
    columns = ["human", "direct", "pair_original"]
    rows = preferences[preferences[columns].isin(LABELS).all(axis=1)]
    gains = (rows["human"] == rows["pair_original"]).astype(int) - (rows["human"] == rows["direct"]).astype(int)
    n = len(rows)
    one_item = np.array([(gains == gain).mean() for gain in (-1, 0, 1)])
    distribution = np.array([1.0])
    for _ in range(n):
        distribution = np.convolve(distribution, one_item)
    return dict(zip(range(-n, n + 1), distribution.cumsum(), strict=True))


class Background:
    """Runs that are made one after the other while the tests go on: kernels leave the second core idle."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._running: subprocess.Popen[str] | None = None
        self._runs: dict[str, Future[Path]] = {}

    def start(self, name: str, outputs: Path, *commands: Sequence[object], **environment: str) -> None:
        self._runs[name] = self._pool.submit(self._make, outputs, commands, environment)

    def finished(self, name: str) -> Path:
        return self._runs[name].result()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._running is not None and self._running.poll() is None:
            self._running.terminate()
        self._pool.shutdown()

    def _make(self, outputs: Path, commands: Sequence[Sequence[object]], environment: dict[str, str]) -> Path:
        for arguments in commands:
            self._running = process(outputs, *arguments, **environment)
            out, err = self._running.communicate()
            assert self._running.returncode == 0, out + err
        return outputs


def process(outputs: Path, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """``judgelab ...`` as a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", "from judgelab.cli import main; main()", *map(str, arguments)],
        env={**os.environ, "JUDGELAB_ROOT": str(ROOT), "JUDGELAB_OUTPUTS": str(outputs), **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.fixture(scope="session")
def background(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Background]:
    """Those of the long runs that the chosen tests ask for, in the order in which they ask."""
    wanted = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    made = Background()
    if "fresh" in wanted:
        made.start("fresh", tmp_path_factory.mktemp("fresh"), ["run", ROOT / "params/demo.yaml", "--jobs", 2])
    if "llmbar" in wanted:
        folder = request.getfixturevalue("shared") / "data/llmbar_natural"
        made.start(
            "llmbar",
            tmp_path_factory.mktemp("llmbar"),
            ["import", "llmbar", folder, "--run", "llmbar-natural"],
            ["run", ROOT / "params/llmbar-natural.yaml"],
        )
    if "unbroken" in wanted:
        study, outputs = request.getfixturevalue("quiet_chat"), tmp_path_factory.mktemp("unbroken")
        study.freeze(outputs)
        made.start("unbroken", outputs, ["run", study.params, "--from", "04", "--to", "06"], **study.environment)
    yield made
    made.close()


@pytest.fixture(scope="session")
def demo(background: Background, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outputs with one run of the demo, made in this process. Nobody changes it."""
    outputs = tmp_path_factory.mktemp("demo")
    succeeded(command(outputs, "run", ROOT / "params/demo.yaml"))
    return outputs


@pytest.fixture(scope="session")
def fresh(background: Background) -> Path:
    """Outputs with another run of the demo, two notebooks at a time."""
    return background.finished("fresh")


@pytest.fixture(scope="session")
def llmbar(shared: Path, background: Background) -> Path:
    """Outputs with LLMBar Natural, imported and run."""
    return background.finished("llmbar")


class HashJudge:
    """An endpoint whose verdict is a function of the prompt alone. It can fall silent after a number of replies."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.authorizations: set[str | None] = set()
        self.silent_after: int | None = None
        self._lock, self._closing = threading.Lock(), threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                owner.answer(self, json.dumps(body["messages"]))

            def log_message(self, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads, block_on_close = True, False

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._http = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def close(self) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def forget(self, *, silent_after: int | None = None) -> None:
        """Count anew, and answer all calls or only the first ones."""
        self.asked, self.answered, self.silent_after = Counter(), Counter(), silent_after

    def answer(self, request: BaseHTTPRequestHandler, messages: str) -> None:
        with self._lock:
            self.authorizations.add(request.headers.get("Authorization"))
            self.asked[messages] += 1
            silent = self.silent_after is not None and self.answered.total() >= self.silent_after
            if not silent:
                self.answered[messages] += 1
        if silent:
            self._closing.wait(60)
            return
        time.sleep(0.03)
        winner = "AB"[hashlib.sha256(messages.encode()).digest()[0] % 2]
        verdict = json.dumps({"winner": winner, "confidence": "high", "reason_codes": []})
        choice = {"index": 0, "message": {"role": "assistant", "content": verdict}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 20}
        content = json.dumps({"model": "hash-1", "choices": [choice], "usage": usage}).encode()
        with contextlib.suppress(OSError):  # the client may have been killed
            request.send_response(200)
            request.send_header("Content-Length", str(len(content)))
            request.end_headers()
            request.wfile.write(content)


@dataclass
class ChatStudy:
    """The demo's items before one judge of kind chat, both pairwise passes."""

    params: Path
    server: HashJudge
    planned: int  # calls in one pass
    environment: dict[str, str]  # the key of the endpoint

    def freeze(self, outputs: Path) -> None:
        """Stage 01 without its notebook."""
        with outputs_at(outputs):
            freeze(*load_params(self.params))

    def start(self, outputs: Path, *options: str) -> subprocess.Popen[str]:
        """``judgelab run`` as a process group of its own."""
        return process(outputs, "run", self.params, *options, **self.environment)

    def finish(self, outputs: Path, *options: str) -> tuple[int, str, str]:
        process = self.start(outputs, *options)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err


def chat_study(folder: Path) -> ChatStudy:
    document = yaml.safe_load((ROOT / "params/demo.yaml").read_text(encoding="utf-8"))
    server = HashJudge()
    judge = {
        "kind": "chat", "name": "served", "model": "m", "base_url": server.base_url, "concurrency": 2,
        "api_key_env": SECRET_VARIABLE,
    }  # fmt: skip
    document["run"] = "chat"
    del document["study"]["repairs"]  # they speak of judges that this study does not have
    document["study"] |= {
        "probes": {"run": ["repetition", "padding"], "items": 4, "judges": ["longest"]},
        "judges": [judge, {"kind": "control", "name": "longest", "rule": "longest"}],
        "passes": ["pairwise_original", "pairwise_swapped"],
        "measures": {"resamples": 500},
    }
    params = folder / "chat.yaml"
    params.write_text(yaml.safe_dump(document), encoding="utf-8")
    return ChatStudy(params, server, 27, {SECRET_VARIABLE: SECRET})


@pytest.fixture(scope="session")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatStudy]:
    """A study with a judge behind HTTP, for runs that are broken off."""
    study = chat_study(tmp_path_factory.mktemp("chat"))
    yield study
    study.server.close()


@pytest.fixture(scope="session")
def quiet_chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChatStudy]:
    """The same study with an endpoint of its own."""
    study = chat_study(tmp_path_factory.mktemp("quiet_chat"))
    yield study
    study.server.close()


@pytest.fixture(scope="session")
def unbroken(background: Background) -> Path:
    """Outputs with the stages 04 to 06 of `quiet_chat`, which nothing interrupted."""
    return background.finished("unbroken")
