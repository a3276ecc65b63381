"""The studies that come with the project."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from judgelab.study.items import read_items
from judgelab.study.protocol import load_params

from .conftest import ROOT, outputs_at

FILES = sorted((ROOT / "params").glob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_study_is_valid_and_named_as_its_file(path: Path, tmp_path):
    with outputs_at(tmp_path):
        run, study = load_params(path)
    assert run == path.stem
    assert study.human_labels is not None
    assert study.human_labels.provenance == ("human" if run.startswith("llmbar") else "simulated")


def test_the_issue_s_studies_are_there():
    names = {path.stem for path in FILES}
    assert names >= {"demo", "quickstart", "llmbar-natural", "llmbar-adversarial", "llmbar-live"}


def test_demo_and_quickstart_differ_only_in_run_and_first_judge():
    demo, quickstart = (
        yaml.safe_load((ROOT / f"params/{name}.yaml").read_text(encoding="utf-8")) for name in ("demo", "quickstart")
    )
    first, second = demo["study"]["judges"].pop(0), quickstart["study"]["judges"].pop(0)
    assert (demo.pop("run"), quickstart.pop("run")) == ("demo", "quickstart")
    assert demo == quickstart
    assert (first["kind"], second["kind"]) == ("recorded", "embedded")
    assert first["name"] == second["name"]


def test_the_demo_s_items_are_as_the_protocol_says(tmp_path):
    with outputs_at(tmp_path):
        _, study = load_params(ROOT / "params/demo.yaml")
        found = read_items(study)
    assert found.excluded.empty
    assert 24 <= len(found.items) <= 32
    assert len({item.category for item in found.items}) == 5
    assert sum(item.split == "development" for item in found.items) == 5
    assert all(item.reference_context for item in found.items)
