"""Adjudication: only what reviewers disagree on, blind to who said it."""

from __future__ import annotations

import json

import pytest

from judgelab.errors import LabelError
from judgelab.labelling.adjudication import AdjudicationSession, adjudicated, adjudicated_labels
from judgelab.labelling.gathered import gathered_labels
from judgelab.labelling.journal import Journal
from judgelab.labelling.tasks import LabelTask, labelling_order
from judgelab.study.freeze import close_labels, freeze, open_run
from judgelab.study.labels import COLUMNS

AB = ("ALPHA", "BETA")
SIDES = {"TIE": "tie", None: "cannot_judge"}


def frozen(project, items=8, *, adjudicate=True, **labelling):
    project.write_items(items)
    review = {
        "adjudicate_disagreement": adjudicate,
        "labelling": {"training": 0, "repeats_share": 0, "adjudication_rule": "Facts first.", **labelling},
    }
    return freeze("small", project.study(human_labels={"provenance": "human"}, human_review=review))


def given(run, name, preferences, *, scores=None):
    """Initial labels of a reviewer: preference by item; others prefer ALPHA."""
    order = labelling_order(run.study, run.items(), name, training=0, repeats_share=0)
    with Journal.open(run.path("labelling"), name, "s", study=run.study) as journal:
        for task in order:
            preference = preferences.get(task.item_id, "ALPHA")
            side = SIDES[preference] if preference in SIDES else ("left", "right")[task.shown.index(preference)]
            by_side = {} if scores is None else {
                place: {"correctness": scores[name]} for place, name in zip(("left", "right"), task.shown, strict=True)
            }  # fmt: skip
            journal.decide(task, side, seconds=1, reason="r", note=f"note on {preference}", scores=by_side)


def started(run, name="cleo"):
    session = AdjudicationSession(run)
    return session, session.handle({"action": "start", "reviewer": name, "confirmed": True})


def say(session, action, **values):
    return session.handle({"action": action, "token": session.token, **values})


def settle(run, name, system, *, most=99):
    """An adjudicator who prefers one system everywhere; None cannot judge."""
    session, view = started(run, name)
    for _ in range(most):
        if view["screen"] == "done":
            break
        task = session.tasks[view["progress"]["done"]]
        side = "cannot_judge" if system is None else ("left", "right")[task.shown.index(system)]
        assert say(session, "decide", choice=side, seconds=1, reason="r", note="by the rule")["problem"] == ""
        view = say(session, "next")
    session.close()
    return session


def test_only_pairs_whose_initial_labels_differ(project):
    run = frozen(project)
    given(run, "anna", {"i01": "BETA", "i02": "TIE", "i03": None, "i04": "BETA"})
    given(run, "ben", {"i02": "BETA", "i03": "BETA", "i04": "BETA"})
    session, view = started(run)
    assert (view["screen"], view["mode"], view["rule"]) == ("task", "adjudication", "Facts first.")
    assert view["progress"] == {"done": 0, "total": 2, "text": "Item 1 of 2"}
    assert {task.item_id for task in session.tasks} == {"i01", "i02"}
    assert view["scale"] is None


def test_labels_are_shown_by_letter_and_tell_no_name(project):
    run = frozen(project, 12)
    everything = {f"i{number:02d}": "BETA" for number in range(12)}
    given(run, "anna", everything, scores={"ALPHA": 2, "BETA": 4})
    given(run, "ben", {})
    given(run, "zoe", dict.fromkeys(everything, "TIE"))
    session, view = started(run)
    first = set()
    for task in session.tasks:
        assert [label["text"] for label in view["labels"]] == ["A is better", "B is better", "Tie"]
        assert [label["label"] for label in view["labels"]] == [1, 2, 3]
        by_text = {label["text"]: label for label in view["labels"]}
        beta = "A is better" if task.shown[0] == "BETA" else "B is better"
        assert by_text[beta]["note"] == "note on BETA"
        assert by_text[beta]["scores"] == ("A: 4, B: 2" if task.shown[0] == "BETA" else "A: 2, B: 4")
        assert by_text["Tie"]["scores"] == ""
        first.add(view["labels"][0]["note"])
        told = json.dumps({key: value for key, value in view.items() if key != "labels"})
        assert not [name for name in ("anna", "ben", "zoe", "ALPHA", "BETA") if name in told]
        view = say(session, "decide", choice="left", seconds=1)
        assert len(view["labels"]) == 3
        view = say(session, "next")
    assert first == {"note on ALPHA", "note on BETA"}
    assert view["labels"] == []


def test_sides_are_drawn_anew_for_each_adjudicator(project):
    run = frozen(project, 20)
    given(run, "anna", {f"i{number:02d}": "BETA" for number in range(20)})
    given(run, "ben", {})
    own = {
        task.key: task.shown for task in labelling_order(run.study, run.items(), "anna", training=0, repeats_share=0)
    }
    sides, orders = [], []
    for name in ("anna", "cleo"):
        session, view = started(run, name)
        sides.append({task.key: task.shown for task in session.tasks})
        orders.append([task.item_id for task in session.tasks])
        assert ("is also a reviewer" in view["message"]) == (name == "anna")
        before = session.tasks
        again, _ = started(run, name)
        assert again.tasks == before
    assert sides[0] != sides[1]
    assert sides[0] != own
    assert orders[0] != orders[1]
    assert len({*sides[0].values()}) == 2


def test_an_adjudicator_goes_on_where_it_stopped_and_leaves_out_what_another_decided(project):
    run = frozen(project)
    given(run, "anna", dict.fromkeys(["i01", "i02", "i03"], "BETA"))
    given(run, "ben", {})
    settle(run, "cleo", "BETA", most=1)
    session, view = started(run, "cleo")
    assert view["progress"]["done"] == 1
    assert say(session, "back")["labels"]
    session.close()
    other, view = started(run, "dora")
    assert view["progress"] == {"done": 0, "total": 2, "text": "Item 1 of 2"}
    assert view["reviewers"] == []
    assert other.reviewers() == ["cleo", "dora"]
    other.close()
    settle(run, "dora", None)
    session = settle(run, "cleo", "ALPHA")
    assert len(session.tasks) == 3
    labels = adjudicated_labels(run)
    assert list(labels.columns) == COLUMNS
    assert labels["item_id"].tolist() == ["i01", "i02", "i03"]
    assert sorted(labels["preference"]) == ["ALPHA", "ALPHA", "BETA"]
    assert labels["reviewer_id"].eq("cleo").all()
    assert labels["is_adjudicated"].all()


def test_of_two_decisions_on_one_pair_the_earliest_counts(project):
    run = frozen(project)
    given(run, "anna", {"i01": "BETA", "i02": "BETA"})
    given(run, "ben", {})
    task = LabelTask("i01", AB, AB, "label", 1)
    folder = run.path("labelling", "adjudication")
    for name, choice in (("zoe", "left"), ("cleo", "right")):
        with Journal.open(folder, name, "s", study=run.study) as journal:
            journal.decide(task, choice, seconds=1)
            journal.decide(
                LabelTask("i02", AB, AB, "label", 2), "cannot_judge" if name == "zoe" else "tie", seconds=1, reason="r"
            )
    found = adjudicated(run)
    rows = found.labels[["item_id", "reviewer_id", "preference"]].to_numpy().tolist()
    assert rows == [["i01", "zoe", "ALPHA"], ["i02", "cleo", "TIE"]]
    (note,) = found.notes
    assert note == (
        "outputs/small/labelling/adjudication: item i01 (ALPHA, BETA) was adjudicated again by cleo; "
        "the earliest decision counts"
    )


def test_scores_are_asked_for_where_reviewers_gave_them(project):
    run = frozen(project, criterion_scores=True)
    given(run, "anna", {"i01": "BETA"})
    given(run, "ben", {})
    session, view = started(run)
    assert view["scale"] == {"minimum": 1, "maximum": 5}
    assert "2 of 2 scores are missing" in say(session, "decide", choice="left", seconds=1)["problem"]
    scores = {"left": {"correctness": 5}, "right": {"correctness": 1}}
    assert say(session, "decide", choice="left", seconds=1, scores=scores)["problem"] == ""
    assert set(adjudicated_labels(run)[["score_x", "score_y"]].iloc[0]) == {1.0, 5.0}


def test_nothing_to_adjudicate(project):
    run = frozen(project)
    session, view = started(run)
    assert (view["screen"], view["progress"]["total"]) == ("done", 0)
    assert "nothing is to be decided" in view["message"]
    assert say(session, "stop")["screen"] == "start"
    given(run, "anna", {})
    given(run, "ben", {})
    assert started(run)[1]["screen"] == "done"
    assert adjudicated_labels(run).empty
    assert list(adjudicated_labels(run).columns) == COLUMNS


def test_a_study_that_does_not_adjudicate(project):
    run = frozen(project, adjudicate=False)
    given(run, "anna", {"i01": "BETA"})
    given(run, "ben", {})
    session, view = started(run)
    assert (view["screen"], session.tasks) == ("closed", ())
    assert view["message"] == "This study does not adjudicate (human_review.adjudicate_disagreement is false)."
    with Journal.open(run.path("labelling", "adjudication"), "cleo", "s", study=run.study) as journal:
        journal.decide(LabelTask("i01", AB, AB, "label", 1), "left", seconds=1)
    assert adjudicated_labels(run).empty


def test_closed_labels_close_adjudication(project):
    run = frozen(project)
    given(run, "anna", {"i01": "BETA"})
    given(run, "ben", {})
    session, _ = started(run)
    close_labels(run, gathered_labels(run).labels)
    assert say(session, "decide", choice="left", seconds=1)["screen"] == "closed"
    assert adjudicated_labels(run).empty


def test_the_last_adjudicator_may_close_the_labels(project):
    run = frozen(project)
    given(run, "anna", {"i01": "BETA"})
    given(run, "ben", {})
    session, view = started(run)
    assert not view["can"]["close_labels"]
    say(session, "decide", choice="tie", seconds=1)
    assert say(session, "next")["can"]["close_labels"]
    assert "initial labels: 16, adjudicated labels: 1" in say(session, "close_labels")["message"]
    assert say(session, "close_labels", confirmed=True)["screen"] == "closed"
    assert open_run("small").reference()["human"].tolist() == ["ALPHA", "TIE", *["ALPHA"] * 6]


def test_a_run_with_a_label_file_has_no_adjudication(project):
    project.write_items(2)
    project.label_all(2)
    with pytest.raises(LabelError, match="are not made in the study"):
        AdjudicationSession(freeze("filed", project.study()))
