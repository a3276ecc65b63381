"""The plain format: a table of one verdict a row becomes a full study where it holds the texts, else matches."""

from __future__ import annotations

import asyncio
import csv
import json

import pytest
from typer.testing import CliRunner

from judgelab.cli import app
from judgelab.errors import DataError
from judgelab.judging.evidence import verdicts
from judgelab.judging.match_files import read_matches
from judgelab.judging.ranking_data import open_ranking
from judgelab.judging.runner import run_passes
from judgelab.report.runnable import stage_lines
from judgelab.study.freeze import freeze
from judgelab.study.protocol import load_params
from judgelab.study.sources import import_plain

KEY = "sk-" + "abcdefghijklmnop"  # has the form of a provider's key


def verdict(item=1, preference="oak", **changes):
    row = {"judge": "warden", "item_id": f"q{item}", "system_x": "oak", "system_y": "elm", "first": "oak"}
    return row | {"preference": preference} | changes


def whole(item=1, preference="oak", **changes):
    texts = {"task": f"Name {item} trees.", "answer_x": "An oak and an elm.", "answer_y": "Elm", "category": "trees"}
    return verdict(item, preference, **texts) | changes


def person(item=1, preference="oak", who="r1", **changes):
    return whole(item, preference, by="person", judge=who, first="") | changes


@pytest.fixture
def made(project):
    def make(rows, name="verdicts.csv", run="mine"):
        return import_plain(write(project.root / name, rows), run)

    return make


def write(path, rows):
    if path.suffix == ".csv":
        columns = list(dict.fromkeys(key for row in rows for key in row))
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="")
            writer.writeheader()
            writer.writerows(rows)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def records(project, run="mine"):
    text = (project.outputs / run / "source" / "records.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_without_texts_it_is_a_study_of_matches(made, project):
    rows = [
        verdict(),
        verdict(first="elm", **{"pass": "swapped"}),
        verdict(2, "TIE"),
        verdict(3, "", reason="refusal"),
        verdict(4, "system_y", judge="guard", first="", words="7"),
        verdict(5, "Draw", by="person", judge="r1"),
    ]
    params, notes = made(rows)
    matches = read_matches(project.outputs / "mine" / "source" / "matches.csv")
    assert matches["preference"].fillna("-").tolist() == ["oak", "oak", "TIE", "-", "elm", "TIE"]
    assert matches["first"].fillna("-").tolist() == ["oak", "elm", "oak", "oak", "-", "oak"]
    assert matches["reason"].tolist() == ["", "", "", "refusal", "", ""]
    assert len(open_ranking("mine", {}).matches) == 6
    assert notes == [
        "read: 6 matches of 2 systems on 5 items by 3 judges, from 1 file",
        "ties: 2 of 6 matches",
        "no preference: 1 of 6 matches (1 refusal)",
        "left out: nothing",
        "both orders: there for 1 of 4 comparisons",
        "columns not read: words",
        "written: matches.csv in outputs/mine/source",
        "tasks and answers are not in these files: the stages that need them cannot run",
        "written: params/mine.yaml",
    ]
    assert stage_lines(params)[0] == "stages that can run: 06, 09"


def test_other_names_of_columns_and_json_lines(made, project):
    row = {"item_id": 1, "model_a": "oak", "model_b": "elm", "winner": "model_b", "shown_first": "model_b", "repeat": 0}
    made([row], name="verdicts.jsonl")
    match = read_matches(project.outputs / "mine" / "source" / "matches.csv").iloc[0]
    assert match[["judge", "item_id", "system_x", "first", "preference"]].tolist() == ["", "1", "oak", "elm", "elm"]
    with pytest.raises(DataError, match="preference stands there under two names"):
        made([row | {"preference": "oak"}], name="both.jsonl", run="both")


def test_with_texts_it_is_a_full_study(made, project):
    rows = [
        whole(),
        whole(first="elm"),
        whole(1, "elm", first="elm", repeat="1"),
        whole(2, "tie", system_x="elm", system_y="oak", answer_x="Elm", answer_y="An oak and an elm."),
        whole(2, "", first="elm", reason="refusal"),
        whole(2, "", first="", score_x=4, score_y="2"),
        whole(1, first="", judge="GPT 4"),
        person(1, who="anna", score_x="4.5", score_y="1"),
        person(1, "elm", who="anna"),
        person(2, "TIE", who="anna"),
        person(2, "", who="ben"),
    ]
    params, notes = made(rows)
    name, study = load_params(params)
    assert study.passes == ("direct", "pairwise_original", "pairwise_swapped")
    assert [judge.name for judge in study.judges if judge.kind == "recorded"] == ["warden"]
    run = freeze(name, study)
    assert [dict(item.answers) for item in run.items()] == [{"oak": "An oak and an elm.", "elm": "Elm"}] * 2
    assert run.items()[0].category == "trees"
    assert run.reference()["human"].tolist() == ["oak", "TIE"]
    assert len(run.repeats()) == 2
    asyncio.run(run_passes(run, ["direct", "pairwise_original", "pairwise_swapped"]))
    calls = verdicts(run)
    own = calls[(calls["judge"] == "warden") & (calls["strategy"] == "pairwise")]
    found = own[["item_id", "pass", "first", "verdict", "reason"]].astype(object).where(own.notna(), None)
    assert found.to_numpy().tolist() == [
        ["q1", "original", "oak", "A", None],
        ["q2", "original", "oak", "TIE", None],
        ["q1", "swapped", "elm", "B", None],
        ["q2", "swapped", "elm", None, "refusal"],
    ]
    scores = calls[(calls["judge"] == "warden") & (calls["strategy"] == "direct") & calls["total"].notna()]
    assert scores[["item_id", "system", "total"]].to_numpy().tolist() == [["q2", "elm", 2.0], ["q2", "oak", 4.0]]
    assert notes[0] == "read: 6 verdicts of 1 judge and 3 labels of 2 people on 2 items and 2 systems, from 1 file"
    assert [note for note in notes if note.startswith("left out")] == [
        "left out: 1 x a verdict whose order shown is not known, which no pass can hold",
        "left out: 1 x a verdict of a judge, pair and order that were there before (a full study asks once)",
        "left out: 1 x a person's row without a preference",
    ]
    assert "scores: 2 of single answers, taken to be on a scale from 1 to 5" in notes
    assert stage_lines(params) == ["stages that can run: 01 to 10"]


def test_three_systems_need_every_answer(made):
    third = {"system_y": "ash", "answer_y": "Ash"}
    params, _ = made([whole(), whole(preference="ash", **third)], run="three")
    assert load_params(params)[1].system_names == ("oak", "elm", "ash")
    _, notes = made([whole(), whole(2, "ash", **third)], run="few")
    told = "a full study needs the task and the answers of all 3 systems for every item; for 2 of 2 items they are not "
    assert f"{told}in these files: the stages that need them cannot run" in notes


def test_names_become_those_that_a_protocol_may_hold(made):
    params, notes = made([whole(preference="GPT 4", system_x="GPT 4", first="GPT 4", judge="coin")])
    study = load_params(params)[1]
    assert study.system_names == ("GPT-4", "elm")
    assert study.judges[0].name == "coin-2"
    assert "called GPT-4 here: 'GPT 4'" in notes
    assert "called coin-2 here: 'coin'" in notes


def test_one_order_and_no_labels(made):
    params, _ = made([whole(), whole(2)])
    study = load_params(params)[1]
    assert (study.position_test.enabled, study.human_labels) == (False, None)
    assert stage_lines(params) == [
        "stages that can run: 01, 04, 07, 09",
        "02 cannot be answered: there are no labels of people in the file",
        "03 cannot be answered: the file holds no scores of single answers",
        "05 cannot be answered: there are no labels of people in the file",
        "06 cannot be answered: the file holds one order only (n = 0 of 2 items judged in both orders)",
        "08 cannot be answered: no repair can be computed: each needs both orders, or new verdicts",
        "10 cannot be answered: there are no labels of people in the file, so that no use is supported",
    ]


def test_scores_alone(made, project):
    rows = [whole(item, "", first="", score_x=item, score_y=9) for item in (1, 2)]
    params, _ = made(rows)
    study = load_params(params)[1]
    assert (study.passes, study.direct_scale.minimum, study.direct_scale.maximum) == (("direct",), 0, 10)
    assert {one["strategy"] for one in records(project)} == {"direct"}
    assert "06 cannot be answered: the file holds no comparison of two answers" in stage_lines(params)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"item_id": ""}, "no item_id"),
        ({"system_x": "tie"}, "system_x is 'tie'; no system can be called so"),
        ({"system_y": ""}, "system_y is missing"),
        ({"preference": "ash"}, "preference is 'ash'; allowed are oak, elm, TIE and nothing"),
        ({"first": "ash"}, "first is 'ash'; allowed are oak, elm and nothing"),
        ({"pass": "second"}, "pass is 'second'; allowed are original, swapped and nothing"),
        ({"repeat": "-1"}, "repeat is '-1'; allowed are whole numbers from 0"),
        ({"by": "crowd"}, "by is 'crowd'; allowed are judge and person"),
        ({"score_x": "good"}, "score_x is 'good'; allowed are numbers"),
        ({"score_y": "nan"}, "score_y is 'nan'; allowed are numbers"),
        ({"judge": "a\tb"}, "judge is 'a\\tb'; it must be one line without control characters"),
        ({"judge": KEY}, "judge has what looks like a key, which no study must hold (not shown)"),
    ],
)
def test_one_bad_field(made, project, change, told):
    with pytest.raises(DataError) as caught:
        made([verdict(), verdict() | change])
    message = str(caught.value)
    assert "1 of 2 entries are not as the format has them; nothing was written" in message
    assert f"verdicts.csv line 3: {told}" in message
    assert KEY not in message
    assert not project.outputs.exists()


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([whole(), whole(task="Other.")], "line 3: the task on q1 differs from that in"),
        ([whole(), whole(first="elm", answer_y="Ash")], "line 3: the answer of elm on q1 differs from that in"),
        ([whole(score_x="4.5")], "1 of 1 rows have a judge's score that is no whole number"),
        ([whole(score_x="-3")], "scores go from -3 to -3; allowed are 0 to 100"),
    ],
)
def test_what_a_full_study_cannot_hold(made, project, rows, told):
    with pytest.raises(DataError) as caught:
        made(rows)
    assert told in str(caught.value)
    assert "nothing was written" in str(caught.value)
    assert not project.outputs.exists()


def test_bad_lines_are_counted_and_a_broken_table_is_told(made, project):
    with pytest.raises(DataError) as caught:
        made([verdict(), *(verdict(preference="?") for _ in range(7))])
    told = str(caught.value).split("\n  ")
    assert (len(told), told[-1]) == (7, "and 2 more")
    path = project.root / "broken.csv"
    path.write_text("item_id,system_x,system_y,preference\nq1,oak,elm\n")
    with pytest.raises(DataError, match="1 of 1 rows do not have the 4 fields of the header"):
        import_plain(path, "broken")
    with pytest.raises(DataError, match="no preference"):
        made([{"item_id": "q1", "system_x": "oak", "system_y": "elm"}])


def test_the_command_says_what_was_read_and_what_can_run(project):
    path = write(project.root / "verdicts.csv", [verdict(), verdict(system_y="oak")])
    done = CliRunner().invoke(app, ["import", "plain", str(path), "--run", "mine"])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[:2] == [
        "read: 1 match of 2 systems on 1 item by 1 judge, from 1 file",
        "left out: 1 x a system compared with itself",
    ]
    assert done.output.splitlines()[-4:] == [
        "stages that can run: 09",
        "06 cannot be answered: the file holds one order only (n = 0 of 1 comparison judged in both orders)",
        "01 to 05, 07, 08, 10 cannot run: no answers, no rubric and no reference are in a study of matches",
        "next: judgelab run params/mine.yaml",
    ]
