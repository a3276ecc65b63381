"""The spot check in the notebook."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from judgelab.errors import LabelError
from judgelab.labelling.journal import Journal
from judgelab.labelling.spot_check import SpotCheckSession, spot_check_labels
from judgelab.labelling.tasks import LabelTask
from judgelab.measure.spot_check import spot_check_agreement, spot_check_sample
from judgelab.study.freeze import freeze

AB = ("ALPHA", "BETA")


@pytest.fixture
def run(project):
    project.write_items(6)
    project.label_all(6)
    return freeze("small", project.study())


@pytest.fixture
def sample():
    rows = [
        {"judge": "j", "item_id": f"i{n:02d}", "category": "c", "pass": each, "preference": "ALPHA"}
        for n in range(6)
        for each in ("pairwise_original", "pairwise_swapped")
    ]
    table = pd.DataFrame(rows).assign(system_x="ALPHA", system_y="BETA")
    return spot_check_sample(table, size=10, seed=7)


def say(session, action, **values):
    view = session.handle({"action": action, "token": session.token, **values})
    assert view["problem"] == ""
    return view


def test_verdicts_are_judged_blind_again(run, sample):
    assert spot_check_labels(run, sample.sheet).empty
    session = SpotCheckSession(run, sample.sheet)
    assert session.view()["screen"] == "start"
    view = say(session, "start", reviewer="anna")
    items = {item.item_id: item for item in run.items()}
    for row in sample.sheet.to_dict("records"):
        answers = [answer["content"]["text"] for answer in view["texts"]["answers"]]
        assert answers == [items[row["item_id"]].answers[row[place]] for place in ("shown_first", "shown_second")]
        assert view["texts"]["task"]["text"] == items[row["item_id"]].task
        told = json.dumps(view)
        assert not [word for word in ("ALPHA", "BETA", "pairwise", row["check_id"]) if word in told]
        side = "left" if row["shown_first"] == "ALPHA" else "right"
        say(session, "decide", choice=side, seconds=2)
        view = say(session, "next")
    assert (view["screen"], view["mode"]) == ("done", "spot_check")
    labels = spot_check_labels(run, sample.sheet)
    assert labels["check_id"].tolist() == sample.sheet["check_id"].tolist()
    rows = spot_check_agreement(sample.key, labels, ci_level=0.95, judge="j")
    assert rows["estimate"].iloc[0] == 1
    assert run.path("labelling", "spot_check", "anna.jsonl").exists()


def test_one_goes_on_and_what_is_not_decided_is_not_there(run, sample):
    session = SpotCheckSession(run, sample.sheet)
    say(session, "start", reviewer="anna")
    say(session, "decide", choice="cannot_judge", seconds=2, reason="no idea")
    say(session, "next")
    say(session, "decide", choice="tie", seconds=2)
    session.close()
    again = SpotCheckSession(run, sample.sheet)
    view = say(again, "start", reviewer="anna")
    assert "anna has 2 of 10 decisions" in view["message"]
    assert say(again, "start", reviewer="anna")["progress"]["done"] == 2
    labels = spot_check_labels(run, sample.sheet)
    assert labels["check_id"].tolist() == sample.sheet["check_id"].tolist()[:2]
    assert labels["preference"].isna().tolist() == [True, False]
    assert labels["preference"].iloc[1] == "TIE"
    rows = spot_check_agreement(sample.key, labels, ci_level=0.95, judge="j")
    assert rows["n_used"].iloc[0] == 1


def test_of_two_people_the_earliest_that_could_judge_counts(run, sample):
    one, two = sample.sheet["check_id"].tolist()[:2]
    places = {row["check_id"]: (row["shown_first"], row["shown_second"]) for row in sample.sheet.to_dict("records")}
    for name, choices in (("zoe", ["left", "cannot_judge"]), ("anna", ["right", "right"])):
        with Journal.open(run.path("labelling", "spot_check"), name, "s", study=run.study) as journal:
            for number, (check, choice) in enumerate(zip((one, two), choices, strict=True), start=1):
                task = LabelTask(check, AB, places[check], "label", number)
                journal.decide(task, choice, seconds=1, reason="r")
    labels = spot_check_labels(run, sample.sheet).set_index("check_id")["preference"].to_dict()
    assert labels == {one: places[one][0], two: places[two][1]}


def test_decisions_of_another_sheet_are_left_out(run, sample):
    with Journal.open(run.path("labelling", "spot_check"), "anna", "s", study=run.study) as journal:
        journal.decide(LabelTask("other", AB, AB, "label", 1), "left", seconds=1)
    assert spot_check_labels(run, sample.sheet).empty
    session = SpotCheckSession(run, sample.sheet)
    view = session.handle({"action": "start", "reviewer": "anna", "confirmed": True})
    assert "1 line of the journal cannot be used" in view["message"]
    assert view["progress"] == {"done": 0, "total": 10, "text": "Item 1 of 10"}


def test_an_empty_sheet_is_done_at_once(run, sample):
    session = SpotCheckSession(run, sample.sheet.iloc[:0])
    assert say(session, "start", reviewer="anna")["screen"] == "done"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda sheet: sheet.drop(columns="shown_first"), "lacks shown_first"),
        (lambda sheet: pd.concat([sheet, sheet]), "twice"),
        (lambda sheet: sheet.assign(item_id="none"), "item 'none' is not in run small"),
        (lambda sheet: sheet.assign(shown_first="GAMMA"), "no two of ALPHA, BETA"),
        (lambda sheet: sheet.assign(shown_first=sheet["shown_second"]), "no two of ALPHA, BETA"),
    ],
)
def test_a_sheet_of_another_run_is_refused(run, sample, change, told):
    for made in (SpotCheckSession, spot_check_labels):
        with pytest.raises(LabelError, match=told):
            made(run, change(sample.sheet))
