"""What every test may use: a project in a temporary folder with makers of small files, and the public data."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from judgelab.study.protocol import Study, parse_study

# A slow machine is no failure, and CI runs the same examples every time.
settings.register_profile("judgelab", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("judgelab")


# Folders and files whose tests share runs, a server, a browser, or the one model: each group stays on one worker.
TOGETHER = {"tests/end_to_end": "runs", "tests/judging/test_embedded.py": "runs", "tests/browser": "browser"}


class ByWhatTestsShare(LoadScopeScheduling):
    """Tests of one file, or of one group of :data:`TOGETHER`, run on one worker and in their order."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((group for path, group in TOGETHER.items() if file.startswith(path)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByWhatTestsShare:
    """With ``-n 2`` the runs of tests/end_to_end are made once, beside all other tests."""
    return ByWhatTestsShare(config, log)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the public data sets and the reference script, next to the repository.

    Tests that need it skip where it is absent, unless JUDGELAB_REQUIRE_DATA=1 forbids skipping.
    """
    folder = Path(__file__).resolve().parents[2] / "shared"
    if (folder / "seeds").is_dir() and (folder / "data").is_dir():
        return folder
    reason = "the folder shared with seeds and data is not next to the repository"
    if os.environ.get("JUDGELAB_REQUIRE_DATA") == "1":
        pytest.fail(f"{reason}, and JUDGELAB_REQUIRE_DATA=1 forbids skipping")
    pytest.skip(reason)


def study_values(**changes: Any) -> dict[str, Any]:
    """A small valid protocol; keyword arguments replace its keys."""
    values: dict[str, Any] = {
        "study_id": "small",
        "sampling_rule": "every ticket of one week",
        "items": {"path": "params/small/items.jsonl"},
        "systems": {"ALPHA": {}, "BETA": {}},
        "human_labels": {"path": "params/small/human_labels.csv"},
        "rubric_version": "rubric-v1",
        "direct_scale": {"criteria": ["correctness"]},
        "direct_tie_margin": 0.25,
        "random_seed": 7,
        "judges": [{"name": "coin", "kind": "control", "rule": "coin"}],
    }
    return values | changes


def item(number: int, **changes: Any) -> dict[str, Any]:
    """A usable item in the two-system layout."""
    record: dict[str, Any] = {
        "item_id": f"i{number:02d}",
        "category": "even" if number % 2 == 0 else "odd",
        "task": f"Question {number}?",
        "reference_context": "",
        "answer_alpha": f"Yes, {number} times.",
        "answer_beta": f"No, and {number} is not a number that I would try again.",
    }
    return record | changes


class Project:
    """Writes the files of a study and reads its protocol."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.outputs = root / "outputs"
        self.items_path = root / "params" / "small" / "items.jsonl"
        self.labels_path = root / "params" / "small" / "human_labels.csv"
        for folder in (root / "notebooks", self.items_path.parent):
            folder.mkdir(parents=True)

    def study(self, **changes: Any) -> Study:
        return parse_study(study_values(**changes))

    def values(self, **changes: Any) -> dict[str, Any]:
        return study_values(**changes)

    def item(self, number: int, **changes: Any) -> dict[str, Any]:
        return item(number, **changes)

    def write_items(self, records: list[dict[str, Any]] | int) -> None:
        given = [item(number) for number in range(records)] if isinstance(records, int) else records
        self.write_lines([json.dumps(record) for record in given])

    def write_lines(self, lines: list[str | bytes]) -> None:
        encoded = [line if isinstance(line, bytes) else line.encode() for line in lines]
        self.items_path.write_bytes(b"\n".join(encoded) + b"\n")

    def write_labels(self, text: str | bytes) -> None:
        self.labels_path.write_bytes(text if isinstance(text, bytes) else text.encode())

    def label_all(self, number: int) -> None:
        """Two reviewers and an adjudicator who agree on ALPHA for every item."""
        header = "item_id,reviewer_id,alpha_score,beta_score,preference,is_adjudicated\n"
        rows = [
            f"i{place:02d},{reviewer},4.0,3.5,ALPHA,{adjudicated}\n"
            for place in range(number)
            for reviewer, adjudicated in (("r01", "false"), ("r02", "false"), ("adj", "true"))
        ]
        self.write_labels(header + "".join(rows))


@pytest.fixture
def fresh_project() -> Callable[[], AbstractContextManager[Project]]:
    """A new project for each example of a Hypothesis test, which a fixture is not."""

    @contextmanager
    def make() -> Iterator[Project]:
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUDGELAB_ROOT", folder)
            patch.setenv("JUDGELAB_OUTPUTS", f"{folder}/outputs")
            yield Project(Path(folder))

    return make


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("JUDGELAB_ROOT", str(tmp_path))
    monkeypatch.setenv("JUDGELAB_OUTPUTS", str(tmp_path / "outputs"))
    return Project(tmp_path)
