"""The import of PandaLM: small files of its layout, and the published ones where they are."""

from __future__ import annotations

import json

import pytest

from judgelab.errors import DataError, ProtocolError
from judgelab.judging.match_files import read_matches
from judgelab.measure.reliability import reviewer_table
from judgelab.report.runnable import stage_lines
from judgelab.study.freeze import freeze
from judgelab.study.protocol import load_params
from judgelab.study.sources import import_pandalm

TESTSET = "testset-v1.json"


def entry(idx, labels=(1, 1, 0), **changes):
    return {
        "idx": idx,
        "motivation_app": "Letters",
        "cmp_key": "oak-7b_elm-7b" if idx % 2 else "ash-7b_elm-7b",
        "instruction": f"Write letter {idx}.",
        "input": "To a friend." if idx % 2 else "",
        "response1": f"Dear friend number {idx},",
        "response2": "Hello",
        **{f"annotator{number}": label for number, label in enumerate(labels, start=1)},
    } | changes


@pytest.fixture
def made(project):
    def make(files, run="panda"):
        folder = project.root / "given"
        folder.mkdir(exist_ok=True)
        for name, entries in files.items():
            (folder / name).write_text(json.dumps(entries, indent=1))
        return import_pandalm(folder, run)

    return make


def records(project, run="panda"):
    text = (project.outputs / run / "source" / "records.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def results(key, *values):
    return [{"idx": idx, key: value} for idx, value in enumerate(values)]


GOOD = {
    TESTSET: [entry(0), entry(1, (2, 2, 2)), entry(2, (0, 1, 2))],
    "gpt-3.5-turbo-testset-v1.json": results("gpt_result", "1", "Tie", "garbage"),
    "pandalm-7b-testset-v1.json": results("pandalm_result", 2, "0", 1),
}


def test_annotators_are_reviewers_and_verdicts_have_one_order(made, project):
    params, notes = made(GOOD)
    name, study = load_params(params)
    run = freeze(name, study)
    labels = run.labels()
    assert sorted(set(labels["reviewer_id"])) == ["annotator1", "annotator2", "annotator3"]
    assert labels["preference"].tolist() == [
        *("ALPHA", "ALPHA", "TIE"),
        *("BETA", "BETA", "BETA"),
        *("TIE", "ALPHA", "BETA"),
    ]
    assert run.provenance == "human"
    assert run.reference()["human"].fillna("-").tolist() == ["ALPHA", "BETA", "-"]
    assert [item.task for item in run.items()] == [
        "Write letter 0.",
        "Write letter 1.\n\nTo a friend.",
        "Write letter 2.",
    ]
    assert run.items()[1].metadata == {"written_by": {"ALPHA": "oak-7b", "BETA": "elm-7b"}}
    found = [(one["record"], one["item_id"], one["first"], one["verdict"]) for one in records(project)]
    assert found == [
        ("gpt-3.5-turbo", "000", "ALPHA", "A"),
        ("gpt-3.5-turbo", "001", "ALPHA", "TIE"),
        ("gpt-3.5-turbo", "002", "ALPHA", None),
        ("pandalm-7b", "000", "ALPHA", "B"),
        ("pandalm-7b", "001", "ALPHA", "TIE"),
        ("pandalm-7b", "002", "ALPHA", "A"),
    ]
    assert notes[:4] == [
        "read: 6 verdicts of 2 judges and 9 labels of 3 annotators on 3 items, from 3 files",
        "no verdict: 1 of gpt-3.5-turbo (garbage in the file)",
        "left out: nothing",
        "one order only: response1 was always shown first",
    ]
    assert stage_lines(params) == [
        "stages that can run: 01, 02, 04, 05, 07, 09, 10",
        "03 cannot be answered: the file holds no scores of single answers",
        "06 cannot be answered: the file holds one order only (n = 0 of 3 items judged in both orders)",
        "08 cannot be answered: no repair can be computed: each needs both orders, or new verdicts",
    ]


def test_the_systems_by_name_are_matches(made, project):
    _, notes = made(GOOD)
    matches = read_matches(project.outputs / "panda-systems" / "source" / "matches.csv")
    assert len(matches) == 15
    assert (
        matches.iloc[0][["system_x", "system_y", "first", "preference"]].tolist()
        == ["ash-7b", "elm-7b"] + ["ash-7b"] * 2
    )
    people = matches[matches["judge"].str.startswith("annotator")]
    assert people["first"].isna().all()
    assert (project.root / "params" / "panda-systems.yaml").is_file()
    assert "the systems by name are ranked in a study of their own, panda-systems: 15 matches" in notes
    assert stage_lines(project.root / "params" / "panda-systems.yaml") == [
        "stages that can run: 09",
        "06 cannot be answered: the file holds one order only (n = 0 of 15 comparisons judged in both orders)",
        "01 to 05, 07, 08, 10 cannot run: no answers, no rubric and no reference are in a study of matches",
    ]


def test_items_that_cannot_be_judged_are_left_out_and_told(made, project):
    odd = [entry(0, response1=""), entry(1, response1=True), entry(2, instruction="", input="Only this."), entry(3)]
    verdicts = [*results("x_result", 1, 1, 1, 2), {"idx": 9, "x_result": 1}]
    _, notes = made({TESTSET: odd, "x.json": verdicts})
    items = [json.loads(line) for line in (project.outputs / "panda/source/items.jsonl").read_text().splitlines()]
    assert [(item["item_id"], item["task"], item["answers"]["ALPHA"]) for item in items][:2] == [
        ("001", "Write letter 1.\n\nTo a friend.", "True"),
        ("002", "Only this.", "Dear friend number 2,"),
    ]
    assert "true and false in place of an answer: read as these words, in 1 item" in notes
    assert [note for note in notes if note.startswith("left out")] == [
        "left out: 1 x an item with an empty task or answer",
        "left out: 1 x a verdict on such an item",
        "left out: 1 x a verdict on an item that is not in the files",
    ]


def test_verdicts_may_stand_with_the_items_or_be_missing(made, project):
    _, notes = made({"all.json": [entry(0, gpt_result="2"), entry(1, gpt_result="Tie")]})
    assert [(one["record"], one["verdict"]) for one in records(project)] == [("gpt", "B"), ("gpt", "TIE")]
    (project.root / "given" / "all.json").unlink()
    params, notes = made({TESTSET: [entry(0), entry(1)]}, run="people")
    assert notes[0] == "read: 0 verdicts of 0 judges and 6 labels of 3 annotators on 2 items, from 1 file"
    assert stage_lines(params)[0] == "stages that can run: 01, 02"
    assert "04 cannot be answered: the file holds no verdict of a judge; name your own under judges" in stage_lines(
        params
    )
    assert freeze(*load_params(params)).study.controls == ("always-first", "longest", "coin")


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({TESTSET: [entry(0), entry(1) | {"idx": "1"}]}, "entry 2: idx is '1'; allowed are whole numbers from 0"),
        ({TESTSET: [entry(0, cmp_key="oak")]}, "cmp_key is 'oak'; allowed are the names of two systems as x_y"),
        ({TESTSET: [entry(0, cmp_key="oak_tie")]}, "cmp_key, y is 'tie'; no system can be called so"),
        ({TESTSET: [entry(0, (1, 2, 3))]}, "annotator3 is 3; allowed are 0 (a tie), 1 and 2"),
        ({TESTSET: [entry(0, (1, 2, True))]}, "annotator3 is True; allowed are"),
        ({TESTSET: [entry(0, response2=None)]}, "response2 is None; allowed is text"),
        (
            {TESTSET: [entry(0)], "x.json": results("x_result", 3)},
            "x_result is 3; allowed are 0, 1, 2, Tie and garbage",
        ),
        ({TESTSET: [entry(0)], "x.json": results("x_result", True)}, "x_result is True; allowed are"),
        ({TESTSET: [entry(0)], "x.json": [{"idx": 0}]}, "neither an item (response1, response2) nor a verdict"),
        ({TESTSET: [entry(0), entry(0)]}, "1 of 1 values of idx have two items; first 000"),
        ({TESTSET: [entry(0), entry(1, (1, 1))]}, "1 of 2 items have other annotators than annotator1, annotator2"),
        ({TESTSET: [entry(0)], "x.json": results("x_result", 1) * 2}, "1 of 1 items have two verdicts of one judge"),
        ({"x.json": results("x_result", 1)}, "no item (response1, response2, cmp_key) in given/x.json"),
        ({TESTSET: [entry(0, response1=" ")]}, "0 of 1 items have a task and two answers"),
    ],
)
def test_what_is_not_as_described_is_refused(made, project, files, told):
    with pytest.raises(DataError) as caught:
        made(files)
    assert told in str(caught.value)
    assert "nothing was written" in str(caught.value)
    assert not project.outputs.exists()


def test_both_runs_need_a_name(made, project):
    with pytest.raises(ProtocolError, match="-systems'"):
        made(GOOD, run="p" * 75)
    assert not project.outputs.exists()


def test_the_published_files(shared, project):
    params, notes = import_pandalm(shared / "data" / "pandalm", "published")
    assert notes[0] == "read: 1890 verdicts of 2 judges and 2835 labels of 3 annotators on 945 items, from 3 files"
    assert "left out: 54 x an item with an empty task or answer" in notes
    run = freeze(*load_params(params))
    table = reviewer_table(run.labels(), labels_allowed=run.study.labels, ci_level=0.95, resamples=100, seed=1)
    kappas = table[(table["measure"] == "cohen_kappa") & (table["slice"] != "all")]["estimate"]
    assert kappas.between(0.83, 0.90).all()  # published on all 999: 0.85, 0.86, 0.88
    assert len(kappas) == 3
    matches = read_matches(project.outputs / "published-systems" / "source" / "matches.csv")
    assert len(matches) == 5 * 999
