"""The studies that come with the project."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from judgelab.judging.generation import generation_plans
from judgelab.judging.judges.recorded import records_of
from judgelab.judging.probes import probe_plans
from judgelab.judging.repairs import repair_plans, repairs_left_out
from judgelab.study.candidates import planned_items, tasks_of
from judgelab.study.freeze import freeze
from judgelab.study.items import read_items
from judgelab.study.match_study import is_match_study, parse_match_study
from judgelab.study.protocol import load_params, read_params

from .conftest import ROOT, outputs_at

FILES = sorted((ROOT / "params").glob("*.yaml"))


MATCHES = [path for path in FILES if is_match_study(read_params(path).get("study"))]
STUDIES = [path for path in FILES if path not in MATCHES]
UNLABELLED = {"candidates", "ladder"}  # only ranked: no judge is held against people


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_is_valid_and_named_as_its_file(path: Path, tmp_path):
    with outputs_at(tmp_path):
        run, study = load_params(path)
    assert run == path.stem
    if run in UNLABELLED:
        assert study.human_labels is None
        assert study.ranking is not None
    else:
        assert study.human_labels is not None
        assert study.human_labels.provenance == ("human" if run.startswith("llmbar") else "simulated")


@pytest.mark.parametrize("path", MATCHES, ids=lambda path: path.stem)
def test_every_study_of_matches_is_valid_and_named_as_its_file(path: Path, tmp_path):
    with outputs_at(tmp_path):
        document = read_params(path)
        study = parse_match_study(document["study"], where=path.name)
    assert document["run"] == study.study_id == path.stem


def test_the_issue_s_studies_are_there():
    names = {path.stem for path in FILES}
    assert names >= {"demo", "quickstart", "quickstart-probes", "llmbar-natural", "llmbar-adversarial", "llmbar-live"}
    assert names >= {"candidates", "ladder", "llmfao"}


def test_the_candidates_are_given_and_generated(tmp_path):
    with outputs_at(tmp_path):
        _, study = load_params(ROOT / "params/candidates.yaml")
        tasks = tasks_of(study)
        calls = [sum(len(plan.calls(item)) for item in tasks.items) for plan in generation_plans(study)]
        items = planned_items("candidates", study).items
    assert study.system_names == ("ALPHA", "BETA", "cool", "warm.1", "warm.2")
    assert calls == [6, 12]  # a model each: one answer an item, and two
    assert all(list(item.answers) == ["ALPHA", "BETA"] for item in tasks.items)
    assert all(len(item.answers) == 5 for item in items)


def read(name):
    return yaml.safe_load((ROOT / f"params/{name}.yaml").read_text(encoding="utf-8"))


def test_demo_and_quickstart_differ_only_in_run_first_judge_and_battery():
    demo, quickstart = read("demo"), read("quickstart")
    assert {"probes", "repairs"} <= set(demo["study"])
    del demo["study"]["probes"], demo["study"]["repairs"]
    first, second = demo["study"]["judges"].pop(0), quickstart["study"]["judges"].pop(0)
    assert (demo.pop("run"), quickstart.pop("run")) == ("demo", "quickstart")
    assert demo == quickstart
    assert (first["kind"], second["kind"]) == ("recorded", "embedded")
    assert first["name"] == second["name"]


def test_the_live_battery_is_the_demo_s_on_a_few_items():
    demo, live, quickstart = read("demo"), read("quickstart-probes"), read("quickstart")
    for key in ("probes", "repairs"):
        assert live["study"][key].pop("items") < 10
        assert live["study"].pop(key) == demo["study"][key]
    assert (live.pop("run"), quickstart.pop("run")) == ("quickstart-probes", "quickstart")
    assert live == quickstart


def test_the_demo_s_record_holds_every_call_of_its_battery(tmp_path):
    with outputs_at(tmp_path):
        run = freeze(*load_params(ROOT / "params/demo.yaml"))
        plans = [*probe_plans(run), *repair_plans(run)]
        (judge,) = (judge for judge in run.study.judges if judge.kind == "recorded")
        records = records_of(judge)
        planned = [
            (call.item.item_id, call.strategy, call.pass_, call.presentation, call.repeat)
            for plan in plans
            if plan.judge.name == judge.name
            for item in run.items()
            if item.split == plan.split
            for call in plan.calls(item)
        ]
        assert len(planned) == len(set(planned)) == 1306
        assert set(planned) <= set(records)
        assert len(records) == 1306 + 108
        assert repairs_left_out(run).empty


def test_the_demo_s_items_are_as_the_protocol_says(tmp_path):
    with outputs_at(tmp_path):
        _, study = load_params(ROOT / "params/demo.yaml")
        found = read_items(study)
    assert found.excluded.empty
    assert 24 <= len(found.items) <= 32
    assert len({item.category for item in found.items}) == 5
    assert sum(item.split == "development" for item in found.items) == 5
    assert all(item.reference_context for item in found.items)
