"""A new study's files: they parse, they are explained, they are no data, and they overwrite nothing."""

from __future__ import annotations

import json
from typing import get_args

import pytest
import yaml

from judgelab.errors import ProtocolError, RunError
from judgelab.study.blindness import scan_text
from judgelab.study.items import read_items
from judgelab.study.labels import read_label_file
from judgelab.study.lines import read_entries
from judgelab.study.protocol import Study, load_params, parse_study
from judgelab.study.template import (
    CRITERIA,
    JudgeKind,
    is_placeholder,
    items_template,
    labels_template,
    study_template,
    write_study,
)

THREE = ("one", "two", "three")


def parsed(name: str = "mine", **options) -> Study:
    document = yaml.safe_load(study_template(name, **{"seed": 7, **options}))
    assert list(document) == ["run", "study"]
    assert document["run"] == name
    return parse_study(document["study"])


@pytest.mark.parametrize("labels", ["notebook", "file", "none"])
@pytest.mark.parametrize("kind", get_args(JudgeKind))
def test_every_kind_of_judge_parses(project, kind, labels):
    study = parsed(judge=kind, labels=labels)
    assert [judge.kind for judge in study.judges] == [kind, "control", "control", "control"]
    assert study.random_seed == 7
    assert study.system_names == ("ALPHA", "BETA")
    assert study.direct_scale.weights == dict.fromkeys(CRITERIA, 1.0)
    assert study.items.path == "params/mine/items.jsonl"
    assert (study.human_labels is not None) is (labels != "none")
    assert (study.human_review.labelling is not None) is (labels == "notebook")
    assert (study.judges[0].kind == "recorded") is (getattr(study.judges[0], "path", "") == "params/mine/records.jsonl")


@pytest.mark.parametrize("kind", get_args(JudgeKind))
def test_every_line_to_decide_has_a_comment(project, kind):
    text = study_template("mine", seed=7, judge=kind)
    assert max(map(len, text.splitlines())) <= 120
    plain = [line for line in text.splitlines() if "#" not in line]
    keys = {line.strip().removeprefix("- ").partition(":")[0] for line in plain}
    # names, texts and lists that say what they are, and what stands below a comment of its own
    assert keys <= {
        *("study", "study_id", "title", "question", "sampling_rule", "items", "systems", "ALPHA", "BETA"),
        *("human_labels", "human_review", "minimum", "maximum", "{name", "tie_meaning", "split", "timeout_seconds"),
        *("judges", "{kind", "name", "model", "base_url", "temperature", "prices", "path", "provenance", "blindness"),
        *("measures", "adjudication_rule"),
    }


def test_names_that_yaml_would_read_as_something_else(project):
    study = parsed("007", systems=("1.5", "yes", "a:b", "2024-01-02"), criteria=("correctness", "yes", "tone"))
    assert study.system_names == ("1.5", "yes", "a:b", "2024-01-02")
    assert study.study_id == "007"
    described = {criterion.name: criterion.description for criterion in study.direct_scale.criteria}
    assert described["correctness"] == CRITERIA["correctness"]
    assert is_placeholder(described["tone"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "../mine"}, "run is '../mine'"),
        ({"name": ""}, "run is ''"),
        ({"systems": ()}, "two systems or more; named is none"),
        ({"systems": ("ALPHA",)}, "two systems or more; named is ALPHA"),
        ({"systems": ("ALPHA", "BETA", "ALPHA")}, "systems named more than once: ALPHA"),
        ({"systems": ("alpha", "ALPHA")}, "differ only in upper and lower case"),
        ({"systems": ("TIE", "ALPHA")}, "cannot be named TIE"),
        ({"systems": ("a b", "c")}, "'a b' is not allowed"),
        ({"systems": ("", "c")}, "'' is not allowed"),
        ({"systems": ("a\n  b: {}", "c")}, "is not allowed"),
        ({"criteria": ()}, "no criterion is named"),
        ({"criteria": ("Tone",)}, "'Tone' is not allowed"),
        ({"criteria": ("tone", "tone")}, "criteria named more than once: tone"),
        ({"seed": -1}, "random_seed: -1 is not allowed"),
        ({"judge": "gpt"}, "no judge of kind 'gpt'; allowed are embedded, chat, anthropic, gemini, recorded"),
    ],
)
def test_what_is_not_allowed(project, options, told):
    with pytest.raises(ProtocolError, match=told.replace("(", r"\(")):
        study_template(options.pop("name", "mine"), **{"seed": 7, **options})


@pytest.mark.parametrize("systems", [("ALPHA", "BETA"), THREE])
def test_templates_can_be_read_and_are_placeholders(project, systems):
    study = project.study(systems={name: {} for name in systems})
    project.items_path.write_text(items_template(systems), encoding="utf-8")
    accepted, excluded, n_lines = read_entries(project.items_path, study)
    assert (len(accepted), excluded, n_lines) == (2, [], 2)
    for entry in accepted:
        assert list(entry.answers) == list(systems)
        texts = [entry.task, entry.reference_context, entry.category, *entry.answers.values()]
        assert all(map(is_placeholder, texts))
        assert scan_text(" ".join(texts), study).empty
    project.write_labels(labels_template(systems))
    file = read_label_file(project.labels_path, study, known=[entry.item_id for entry in accepted])
    assert file.notes == ()
    assert file.labels["reviewer_id"].map(is_placeholder).tolist() == [True]
    assert file.labels["score_x"].tolist() == [4.0]


@pytest.mark.parametrize(
    ("text", "anywhere", "expected"),
    [
        ("REPLACE with a task", False, True),
        ("  REPLACE-with-a-name", False, True),
        ("https://REPLACE-with-the-endpoint.example/v1", True, True),
        ("https://REPLACE-with-the-endpoint.example/v1", False, False),
        ("REPLACE INTO t VALUES (1)", False, False),
        ("Use sed to REPLACE with nothing", False, False),
        ("replace with a spoon", True, False),
        ("REPLACE without", True, False),
        ("", True, False),
    ],
)
def test_what_a_placeholder_is(text, anywhere, expected):
    assert is_placeholder(text, anywhere=anywhere) is expected


def test_files_are_written_where_the_protocol_looks_for_them(project):
    files = write_study("mine", seed=7, labels="file")
    named = ["params/mine.yaml", "params/mine/items.jsonl", "params/mine/human_labels.csv"]
    assert [path.relative_to(project.root).as_posix() for path in files] == named
    name, study = load_params(files[0])
    assert name == "mine"
    assert len(read_items(study).items) == 2


@pytest.mark.parametrize("labels", ["none", "notebook"])
def test_labels_that_are_not_there_have_no_file(project, labels):
    files = write_study("mine", seed=7, labels=labels)
    assert [path.name for path in files] == ["mine.yaml", "items.jsonl"]
    source = load_params(files[0])[1].human_labels
    assert (source is None) is (labels == "none")
    assert source is None or source.path is None


@pytest.mark.parametrize("there", ["mine.yaml", "mine/items.jsonl", "mine/human_labels.csv"])
def test_nothing_is_overwritten(project, there):
    path = project.root / "params" / there
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine", encoding="utf-8")
    before = sorted(project.root.rglob("*"))
    with pytest.raises(RunError, match=f"params/{there}: already there, and nothing is overwritten; .* move it away"):
        write_study("mine", seed=7, labels="file")
    assert path.read_text(encoding="utf-8") == "mine"
    assert sorted(project.root.rglob("*")) == before


def test_a_link_to_nowhere_is_there_too(project):
    (project.root / "params/mine.yaml").symlink_to(project.root / "gone")
    with pytest.raises(RunError, match=r"^params/mine\.yaml: already there"):
        write_study("mine", seed=7)
    assert not (project.root / "gone").exists()


def test_a_refused_study_writes_nothing(project):
    before = sorted(project.root.rglob("*"))
    with pytest.raises(ProtocolError):
        write_study("mine", seed=7, systems=("ALPHA",))
    assert sorted(project.root.rglob("*")) == before


def test_lines_of_the_items_template_are_json():
    records = [json.loads(line) for line in items_template(THREE).splitlines()]
    assert [record["item_id"] for record in records] == ["item_001", "item_002"]
    assert all(list(record["answers"]) == list(THREE) for record in records)
