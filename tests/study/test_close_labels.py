"""Labels that are made in the study: a run is frozen without them, and they are frozen when they are closed."""

from __future__ import annotations

import pandas as pd
import pytest

from judgelab.errors import DataError, DriftError, ProtocolError, RunError
from judgelab.study.freeze import close_labels, freeze, open_run
from judgelab.study.labels import COLUMNS

LABELLING = {"human_labels": {"provenance": "human"}, "human_review": {"labelling": {"training": 0}}}


def label(item_id, reviewer, preference, *, adjudicated=False, systems=("ALPHA", "BETA"), repeat=1):
    scores = (float("nan"), float("nan"))
    return (item_id, reviewer, *systems, preference, *scores, adjudicated, repeat)


def labels(*rows):
    return pd.DataFrame(rows, columns=[*COLUMNS, "repeat"])


GIVEN = labels(
    label("i00", "anna", "ALPHA"),
    label("i00", "ben", "BETA"),
    label("i00", "anna", "ALPHA", repeat=2),
    label("i00", "cleo", "BETA", adjudicated=True),
    label("i01", "anna", "TIE"),
)


@pytest.fixture
def run(project):
    project.write_items(3)
    return freeze("small", project.study(**LABELLING))


def test_a_run_is_frozen_before_anybody_labels(run, project):
    assert run.labels_open
    assert run.frozen["human_labels_sha256"] is None
    assert not run.path("human_labels.csv").exists()
    assert run.labels().empty
    assert run.repeats().empty
    assert run.reference()["rule"].tolist() == ["unlabelled"] * 3
    assert run.provenance == "open"
    assert run.inputs == ["params/small/items.jsonl"]
    assert open_run("small", project.study(**LABELLING)).labels_open


def test_closed_labels_are_frozen_and_measured(run):
    closed = close_labels(run, GIVEN)
    assert not closed.labels_open
    assert closed.provenance == "human"
    for each in (closed, open_run("small")):
        assert each.reference()["human"].fillna("").tolist() == ["BETA", "TIE", ""]
        assert each.reference()["rule"].tolist() == ["adjudicated", "majority", "unlabelled"]
        assert each.repeats()["repeat"].tolist() == [1, 2]
    text = closed.path("human_labels.csv").read_text(encoding="utf-8")
    assert text.splitlines()[0].startswith(
        "item_id,reviewer_id,alpha_score,beta_score,preference,is_adjudicated,provenance"
    )


def test_freezing_again_leaves_them_closed(run, project):
    close_labels(run, GIVEN)
    before = {path.name: path.read_bytes() for path in run.folder.iterdir()}
    again = freeze("small", project.study(**LABELLING))
    assert not again.labels_open
    assert {path.name: path.read_bytes() for path in run.folder.iterdir()} == before


def test_closed_labels_cannot_be_closed_again(run):
    close_labels(run, GIVEN)
    with pytest.raises(RunError, match="closed already; label in a run of another name"):
        close_labels(run, GIVEN)  # of a notebook that was opened before


def test_closed_labels_cannot_be_edited(run):
    path = close_labels(run, GIVEN).path("human_labels.csv")
    path.write_text(path.read_text(encoding="utf-8").replace("TIE", "ALPHA"), encoding="utf-8")
    with pytest.raises(DriftError, match=r"human_labels\.csv was changed after freezing"):
        open_run("small").labels()


def test_nothing_to_close(run):
    with pytest.raises(RunError, match="there is no label to close"):
        close_labels(run, GIVEN.iloc[:0])


def test_a_wrong_label_is_refused_and_leaves_the_labels_open(run):
    with pytest.raises(DataError, match="1 of 2 rows have a preference outside ALPHA, BETA, TIE"):
        close_labels(run, labels(label("i00", "anna", "GAMMA"), label("i01", "anna", "TIE")))
    with pytest.raises(DataError, match="1 of 1 rows label an item that is not in the items"):
        close_labels(run, labels(label("i99", "anna", "TIE")))
    assert open_run("small").labels_open
    assert not run.path("human_labels.csv").exists()


def test_labels_of_a_file_are_not_closed(project):
    project.write_items(2)
    project.label_all(2)
    run = freeze("small", project.study())
    assert not run.labels_open
    with pytest.raises(RunError, match="its labels are not made in the study"):
        close_labels(run, GIVEN)


def test_ranks_of_reviewers_are_the_experts_ranks(project):
    names = ("ONE", "TWO", "THREE")
    answers = {name: f"I am number {place}." for place, name in enumerate(names)}
    record = {"item_id": "i00", "category": "c", "task": "Who?", "reference_context": "", "answers": answers}
    project.write_items([record])
    study = project.study(
        systems={name: {} for name in names},
        human_labels={"provenance": "human"},
        human_review={"labelling": {"mode": "ranking", "training": 0}},
    )
    run = freeze("small", study)
    assert run.expert_ranks() is None
    ranks = pd.DataFrame({"item_id": "i00", "reviewer_id": "anna", "system": list(names), "rank": [1, 2, 2]})
    pairs = [label("i00", "anna", "ONE", systems=pair) for pair in (("ONE", "TWO"), ("ONE", "THREE"))]
    closed = close_labels(run, labels(*pairs, label("i00", "anna", "TIE", systems=("TWO", "THREE"))), ranks)
    assert pd.read_csv(closed.expert_ranks())["rank"].tolist() == [1, 2, 2]
    assert closed.labels()["preference"].tolist() == ["ONE", "ONE", "TIE"]
    closed.path("expert_ranks.csv").write_text("item_id,reviewer_id,system,rank\n", encoding="utf-8")
    with pytest.raises(DriftError, match=r"expert_ranks\.csv was changed after freezing"):
        open_run("small").expert_ranks()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"human_labels": {}}, "human_labels: name the file of the labels in path"),
        ({"human_labels": None, "human_review": {"labelling": {}}}, "it needs human_labels"),
        ({"human_review": {"labelling": {}}}, "human_labels.path and human_review.labelling exclude each other"),
        (
            {"human_labels": {}, "human_review": {"labelling": {"mode": "ranking", "criterion_scores": True}}},
            "criterion_scores goes with mode pairs",
        ),
        (
            {
                "human_labels": {},
                "human_review": {"labelling": {"mode": "ranking"}},
                "ranking": {"expert_ranks": {"path": "a.csv"}},
            },
            "ranking.expert_ranks and human_review.labelling with mode ranking exclude each other",
        ),
        ({"human_labels": {}, "human_review": {"labelling": {"repeats_share": 0.6}}}, "repeats_share"),
    ],
)
def test_sources_of_labels_that_do_not_go_together(project, changes, told):
    with pytest.raises(ProtocolError, match=told):
        project.study(**changes)


def test_a_protocol_without_labelling_keeps_its_hash(project):
    values = project.study().model_dump(mode="json")
    assert "labelling" not in values["human_review"]
    assert values["human_labels"]["path"] == "params/small/human_labels.csv"


def test_what_its_owner_has_not_written_is_not_frozen(project):
    project.write_items(2)
    with pytest.raises(ProtocolError, match=r"run small: 1 texts of the protocol are placeholders still: title;"):
        freeze("small", project.study(**LABELLING, title="REPLACE with a title for the report"))
    project.write_items([project.item(0), project.item(1, task="REPLACE with what the systems were asked")])
    with pytest.raises(ProtocolError, match=r"run small: 1 items are placeholders still: i01;"):
        freeze("small", project.study(**LABELLING))
    assert not (project.outputs / "small").exists()
