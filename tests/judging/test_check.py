"""A study is checked before its first run: all that is missing is told, in order; nothing is sent or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgelab.judging.check import Finding, check_study
from judgelab.study.template import write_study

from .study_files import Files


@pytest.fixture
def files(project: Path) -> Files:
    return Files(project)


def test_a_complete_study_is_ready_and_told_in_order(files):
    found = files.check()
    assert {finding.level for finding in found} == {"ok"}
    assert not any(finding.blocks or finding.mend for finding in found)
    assert [finding.what.partition(": ")[0] for finding in found] == [
        *("params/small.yaml", "params/items.jsonl", "answers", "items", "categories", "blindness"),
        *("params/labels.csv", "human labels", "human labels", "calls"),
    ]
    assert found[-1].what.startswith("calls: 32 are planned, 0 of them to a model")


# the parameter file


def test_no_file(project):
    found = check_study(project / "params/none.yaml")
    assert found == [Finding("missing", "params/none.yaml: no such file", "write one: `judgelab new NAME`")]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "a mapping with the keys run and study is needed"),
        (b"run: [", "not valid YAML"),
        (b"caf\xe9: 1", "not UTF-8 (byte 3)"),
        (b"run: x\nstudy: 3", "the key study holds int, a mapping is needed"),
        (b"run: x\nstudy: [1]", "the key study holds list, a mapping is needed"),
        (b"run: ../x\nstudy: {}", "run is '../x'"),
        (b"run: x", "study_id: is missing"),
        (b"run: x\nmore: 1", "unknown key more; allowed are run, study"),
        (b'run: x\nstudy: {matches: "\\0"}', "study_id: is missing"),
        (b"run: x\nstudy: {matches: 3}", "matches: 3 is not allowed"),
    ],
)
def test_a_parameter_file_that_cannot_be_used(project, content, told):
    path = project / "params/x.yaml"
    path.write_bytes(content)
    found = check_study(path)
    assert [finding.level for finding in found if finding.blocks] == ["wrong"] * sum(each.blocks for each in found)
    assert any(told in finding.what for finding in found)
    assert all(finding.mend for finding in found if finding.blocks)


def test_a_folder_in_its_place(project):
    assert [finding.level for finding in check_study(project / "params")] == ["wrong"]


def test_outside_of_a_project(tmp_path, monkeypatch):
    monkeypatch.delenv("JUDGELAB_ROOT", raising=False)
    monkeypatch.chdir(tmp_path)
    (found,) = check_study(Path("x.yaml"))
    assert found.level == "wrong"
    assert "no judgelab project at" in found.what


def test_every_problem_of_the_protocol_is_a_finding(files):
    files.protocol(random_seed="soon", tie_meaning="", radom=1)
    assert [what.partition(": ")[2].partition(":")[0] for _, what in files.blocking()] == [
        "tie_meaning",
        "random_seed",
        "radom",
    ]
    assert files.advice() == ["params/small.yaml: the files that it names are checked once it is valid"]


@pytest.mark.parametrize("key", ["items", "human_labels"])
@pytest.mark.parametrize("path", ["a\0b", "a" * 5000, "\ud83d", "", "/", "params"])
def test_paths_that_no_system_has(files, key, path):
    files.protocol(**{key: {"path": path}})
    found = files.blocking()
    assert found
    assert str(files.root) not in repr(found)


def test_a_new_study_tells_its_placeholders_in_order(project):
    path = write_study("mine", seed=1, judge="chat", systems=("X", "Y", "Z"), labels="file")[0]
    found = [finding.what for finding in check_study(path) if finding.level == "missing"]
    assert found == [
        "params/mine.yaml: 5 placeholders: title, question, sampling_rule, judges.0.model, judges.0.base_url",
        "params/mine/items.jsonl: placeholders in 2 of 2 items: item_001, item_002",
        "params/mine/human_labels.csv: placeholders in 1 of 1 labels; first line 2",
        "judge my-judge: the environment variable JUDGE_API_KEY is not set",
    ]


# items


def test_no_items(files):
    files.items_path.unlink()
    assert files.blocking() == [("missing", "params/items.jsonl: no such file")]
    files.items_path.write_text(" \n", encoding="utf-8")
    assert files.blocking() == [("wrong", "params/items.jsonl: the file is empty")]
    files.items_path.write_bytes("{}".encode("utf-16"))
    ((level, what),) = files.blocking()
    assert level == "wrong"
    assert "begins as UTF-16 does" in what


def test_few_lines_that_cannot_be_used_are_advice(files):
    files.items([*(files.item(number) for number in range(4)), "{broken"])
    assert files.blocking() == []
    (told,) = files.advice()
    assert told.startswith("params/items.jsonl: 1 of 5 lines: the line is not valid JSON; first line 5: ")


def test_many_lines_that_cannot_be_used_are_wrong(files):
    silent = {"answers": {"ALPHA": "Yes.", "BETA": " "}}
    files.items([files.item(0), files.item(1), files.item(2, **silent), files.item(3, answers={"ALPHA": "Yes."})])
    told = [what for level, what in files.blocking() if level == "wrong"]
    assert told == [
        "params/items.jsonl: 2 of 4 lines can be used; items.max_excluded_share is 20%",
        "params/items.jsonl: 1 of 4 lines: a system's answer is empty; first line 3: BETA's answer has no words",
        "params/items.jsonl: 1 of 4 lines: a system has no answer; first line 4: no answer_beta, nor answers.BETA",
    ]


def test_a_protocol_that_refuses_bad_lines(files):
    files.protocol(items={"path": "params/items.jsonl", "on_invalid": "refuse", "max_excluded_share": 1})
    files.items([*(files.item(number) for number in range(4)), "[]"])
    assert files.blocking()[0][1] == "params/items.jsonl: 4 of 5 lines can be used; items.on_invalid is refuse"
    files.protocol(items={"path": "params/items.jsonl", "max_excluded_share": 1})
    files.items(["[]"])
    assert files.blocking()[0][1].startswith("params/items.jsonl: 0 of 1 lines can be used; ")


def test_too_few_items_without_categories(files):
    files.protocol(decision={"minimum_items": 5}, split={"development_share": 0.25})
    files.items([files.item(number, category="") for number in range(4)])
    assert files.blocking() == []
    few, unnamed = files.advice()
    assert few == "items: 3 to be judged, 1 set aside for development; decision.minimum_items is 5"
    assert unnamed == "categories: none is named, so no result can be told by kind of task"


def test_answers_that_tell_who_wrote_them(files):
    told = {"answers": {"ALPHA": "As an AI language model I say yes.", "BETA": "ALPHA is wrong."}}
    files.items([files.item(0, **told), *(files.item(number) for number in range(1, 4))])
    (found,) = files.advice()
    assert found.startswith("blindness: 2 places in 1 of 4 items may tell who wrote an answer: the first in i0, ALPHA:")


# human labels


def test_no_labels(files):
    files.labels_path.unlink()
    assert files.blocking() == [("missing", "params/labels.csv: no such file")]
    files.protocol(human_labels=None)
    assert files.blocking() == []
    assert files.advice()[0].startswith("human labels: the study has none")


def test_every_kind_of_problem_of_the_labels(files):
    files.labels("i0,r1,4,3,GAMMA,false\ni0,,4,9,ALPHA,false\n")
    told = [what for _, what in files.blocking()]
    assert len(told) == 3
    assert all(what.startswith("params/labels.csv: 1 of 2 rows have ") for what in told)


def test_labels_of_unknown_items(files):
    files.labels("i0,r1,4,3,ALPHA,false\nx9,r1,4,3,ALPHA,false\n")
    ((level, what),) = files.blocking()
    assert level == "wrong"
    assert what.startswith(
        "params/labels.csv: 1 of 2 rows label an item that is not in the items; first 'x9' in line 3"
    )


def test_labels_without_items_to_hold_them_against(files):
    files.items_path.unlink()
    files.labels("x9,r1,4,3,ALPHA,false\n")
    assert [level for level, _ in files.blocking()] == ["missing"]
    assert "params/labels.csv: 1 labels, not yet held against the items" in [each.what for each in files.check()]


def test_reviewers_coverage_and_disagreement(files):
    files.labels("i0,r1,4,3,ALPHA,false\ni0,r2,3,4,BETA,false\ni1,r1,4,3,ALPHA,false\n")
    assert files.blocking() == []
    assert files.advice() == [
        "human labels: 3 of 4 items have fewer than 2 reviewers (human_review.reviewers_per_item): i1, i2, i3",
        "human labels: on 1 of 4 items the reviewers differ and nothing decides: i0",
        "human labels: 1 of 4 items have a reference",
    ]
    files.labels("i0,r1,4,3,ALPHA,false\ni0,r2,3,4,BETA,false\n")
    assert files.blocking() == [("missing", "human labels: none of 4 items has a reference")]


def test_simulated_labels_are_told(files):
    files.protocol(human_labels={"path": "params/labels.csv", "provenance": "simulated"})
    (told,) = files.advice()
    assert told == "params/labels.csv: 8 labels of 2 reviewers (r1, r2), simulated"


# labels that are made in the study


def test_labels_that_are_made_in_the_study_are_counted(files):
    """They are not missing: people label once the study is frozen."""
    labelling = {"training": 2, "repeats_share": 0.25}
    files.protocol(human_labels={}, human_review={"labelling": labelling}, split={"development_share": 0.0})
    assert files.blocking() == []
    found = {finding.level: finding.what for finding in files.check() if finding.what.startswith("human labels")}
    n = len(files.items_path.read_text().splitlines())
    assert found["advice"].startswith("human labels: reviewers train on 0 of the 2 items")
    assert found["ok"] == (
        f"human labels: made in the study, after it is frozen: {n} labels of each reviewer, and 25% of them again"
    )


def test_a_key_to_the_training_items_that_is_not_there(files):
    labelling = {"training": 1, "training_key": "params/key.csv"}
    files.protocol(human_labels={}, human_review={"labelling": labelling})
    assert [what for _, what in files.blocking()] == ["params/key.csv: no such file"]
