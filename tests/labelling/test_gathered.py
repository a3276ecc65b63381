"""What journals of a run hold, all together."""

from __future__ import annotations

import json
import math
import shutil

import pytest

from judgelab.errors import LabelError, RunError
from judgelab.labelling.adjudication import AdjudicationSession
from judgelab.labelling.closing import closed_by
from judgelab.labelling.gathered import gathered_labels
from judgelab.labelling.journal import Journal
from judgelab.labelling.pair_session import PairSession
from judgelab.labelling.ranking_session import RankingSession
from judgelab.labelling.tasks import labelling_order
from judgelab.measure.labelling_progress import agreement_so_far, progress_table
from judgelab.study.freeze import close_labels, freeze, open_run
from judgelab.study.labels import COLUMNS

SCORES = {"left": {"correctness": 4}, "right": {"correctness": 2}}


def frozen(project, items=6, *, systems=2, adjudicate=True, development=0.0, **labelling):
    names = ["ALPHA", "BETA", "GAMMA"][:systems]
    if systems == 2:
        project.write_items(items)
    else:
        answers = {name: f"Answer of number {place}." for place, name in enumerate(names)}
        keys = ("answer_alpha", "answer_beta")
        records = [{k: v for k, v in project.item(n).items() if k not in keys} for n in range(items)]
        project.write_items([record | {"answers": answers} for record in records])
    review = {
        "adjudicate_disagreement": adjudicate,
        "labelling": {"training": 0, "repeats_share": 0, **labelling},
    }
    study = project.study(
        human_labels={"provenance": "human"},
        human_review=review,
        systems={name: {} for name in names},
        split={"development_share": development},
    )
    return freeze("small", study)


def label(session, name, choose, *, most=99):
    """Decide up to so many tasks; ``choose`` gives a preferred system, TIE, or None for cannot judge."""
    view = session.handle({"action": "start", "reviewer": name, "confirmed": True})
    for _ in range(most):
        if view["screen"] == "done":
            break
        task = session.tasks[view["progress"]["done"]]
        wanted = choose(task)
        sides = {"TIE": "tie", None: "cannot_judge"}
        choice = sides[wanted] if wanted in sides else ("left", "right")[task.shown.index(wanted)]
        scores = SCORES if view["scale"] and wanted else {}
        values = {"choice": choice, "seconds": 3, "reason": "hard", "note": f"{name} on {task.item_id}"}
        view = session.handle({"action": "decide", "token": view["token"], "scores": scores, **values})
        assert view["problem"] == ""
        view = session.handle({"action": "next", "token": view["token"]})
    session.close()


def test_nothing_yet(project):
    run = frozen(project)
    gathered = gathered_labels(run)
    assert list(gathered.labels.columns) == [*COLUMNS, "repeat"]
    assert len(gathered.labels) == len(gathered.decisions) == len(gathered.planned) == len(gathered.open_pairs) == 0
    assert gathered.ranks is None
    assert gathered.notes == gathered.problems == ()
    assert gathered.unfinished == ("0 of 2 reviewers have begun",)
    assert progress_table(gathered.decisions, gathered.planned).empty
    with pytest.raises(LabelError, match="no label yet"):
        closed_by(run, confirmed=True)


def test_labels_of_everybody_in_the_order_of_the_items(project):
    run = frozen(project, 8, development=0.25, training=2, repeats_share=0.5, criterion_scores=True)
    label(PairSession(run), "ben", lambda task: "ALPHA")
    label(PairSession(run), "anna", lambda task: "BETA" if task.item_id == "i05" else "ALPHA", most=9)
    before = gathered_labels(run)
    assert len(before.open_pairs) <= 1
    label(AdjudicationSession(run), "cleo", lambda task: "TIE")
    gathered = gathered_labels(run)
    labels = gathered.labels
    evaluated = [item.item_id for item in run.evaluation_items()]
    assert list(dict.fromkeys(labels["item_id"])) == evaluated
    assert set(gathered.decisions["kind"]) == {"training", "label", "repeat"}
    assert set(gathered.pair_decisions["item_id"]) == set(evaluated)
    bens = labels[labels["reviewer_id"] == "ben"]
    assert len(bens) == 9
    assert bens["preference"].eq("ALPHA").all()
    assert bens["repeat"].value_counts().to_dict() == {1: 6, 2: 3}
    assert set(labels.loc[labels["reviewer_id"] == "ben", "score_x"]) == {4.0, 2.0}
    planned = gathered.planned
    assert planned["reviewer_id"].value_counts().to_dict() == {"anna": 11, "ben": 11}
    assert gathered.unfinished == ("anna has 2 of 9 tasks left",)
    progress = progress_table(gathered.decisions, planned)
    whole = progress[progress["category"] == "all"].set_index("reviewer_id")
    assert whole.loc["ben", ["planned", "done", "repeats_planned", "repeats_done"]].tolist() == [6, 6, 3, 3]
    agreement = agreement_so_far(
        gathered.pair_decisions, labels_allowed=run.study.labels, ci_level=0.95, resamples=20, seed=1
    )
    assert not math.isnan(agreement["estimate"].iloc[0])


def test_closing_writes_exactly_what_was_gathered(project):
    run = frozen(project, 4)
    label(PairSession(run), "anna", lambda task: "ALPHA")
    label(PairSession(run), "ben", lambda task: {"i01": "BETA", "i02": None}.get(task.item_id, "ALPHA"))
    assert gathered_labels(run).open_pairs.to_numpy().tolist() == [["i01", "ALPHA", "BETA"]]
    told = closed_by(run, confirmed=False)
    assert "reviewers: 2, initial labels: 7, adjudicated labels: 0, repeats: 0" in told
    assert "Unfinished: pairs of answers whose initial labels differ and that are not adjudicated: 1." in told
    assert open_run("small").labels_open
    label(AdjudicationSession(run), "cleo", lambda task: "BETA")
    wanted = gathered_labels(run)
    assert wanted.open_pairs.empty
    assert "adjudicated labels: 1" in closed_by(run, confirmed=True)
    closed = open_run("small")
    assert not closed.labels_open
    assert closed.reference()["human"].tolist() == ["ALPHA", "BETA", "ALPHA", "ALPHA"]
    assert closed.reference()["rule"].tolist() == ["majority", "adjudicated", "majority", "majority"]
    assert closed.labels()[COLUMNS].to_csv() == wanted.labels[COLUMNS].to_csv()
    with pytest.raises(RunError, match="closed already"):
        closed_by(closed, confirmed=True)


def test_rankings_give_ranks_and_the_labels_that_they_imply(project):
    run = frozen(project, 3, systems=3, mode="ranking")
    for name, ranks in (("anna", [1, 2, 2]), ("ben", [1, 2, 3])):
        session = RankingSession(run)
        view = session.handle({"action": "start", "reviewer": name})
        while view["screen"] != "done":
            view = session.handle({"action": "decide", "token": view["token"], "ranks": ranks, "seconds": 1})
            assert view["problem"] == ""
            view = session.handle({"action": "next", "token": view["token"]})
        session.close()
    gathered = gathered_labels(run)
    assert len(gathered.ranks) == 2 * 3 * 3
    assert gathered.ranks["item_id"].tolist() == [f"i{n:02d}" for n in range(3) for _ in range(6)]
    assert len(gathered.labels) == len(gathered.pair_decisions) == 2 * 3 * 3
    assert len(gathered.decisions) == len(gathered.planned) == 2 * 3
    assert gathered.unfinished[-1].startswith("pairs of answers whose initial labels differ")
    session = AdjudicationSession(run)
    label(session, "cleo", lambda task: task.pair[0])
    assert gathered_labels(run).unfinished == ()
    closed_by(run, confirmed=True)
    assert open_run("small").expert_ranks() is not None


def test_a_copy_of_a_journal_and_bad_lines_are_told(project):
    run = frozen(project, 2)
    label(PairSession(run), "anna", lambda task: "ALPHA")
    folder = run.path("labelling")
    shutil.copy(folder / "anna.jsonl", folder / "anna (copy).jsonl")
    with (folder / "anna.jsonl").open("a", encoding="utf-8") as file:
        file.write("what?\n")
    gathered = gathered_labels(run)
    assert len(gathered.labels) == 2
    assert len(gathered.problems) == 2
    assert "'anna (copy)'" in gathered.problems[0]
    assert "line 5: not a whole JSON object" in gathered.problems[1]


def test_labels_of_development_items_are_left_out(project):
    run = frozen(project, 4, development=0.25)
    label(PairSession(run), "anna", lambda task: "ALPHA")
    path = run.path("labelling", "anna.jsonl")
    (development,) = [item.item_id for item in run.items() if item.split == "development"]
    line = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    path.write_text(
        path.read_text(encoding="utf-8") + json.dumps(line | {"item_id": development, "record": 90}) + "\n",
        encoding="utf-8",
    )
    gathered = gathered_labels(run)
    assert len(gathered.labels) == 3
    assert gathered.notes == ("1 of 4 labels are of development items, and left out",)
    assert development not in set(gathered.pair_decisions["item_id"])


def test_a_run_with_a_label_file_has_nothing_to_gather(project):
    project.write_items(2)
    project.label_all(2)
    with pytest.raises(LabelError, match="are not made in the study"):
        gathered_labels(freeze("filed", project.study()))


def test_development_items_are_labelled_where_the_protocol_wants_it(project):
    """All but those that reviewers train on; agreement so far looks at the evaluation alone."""
    project.write_items(12)
    labelling = {"training": 2, "repeats_share": 0.0, "label_development": True}
    study = project.study(
        human_labels={"provenance": "human"}, human_review={"labelling": labelling}, split={"development_share": 0.5}
    )
    run = freeze("small", study)
    development = {item.item_id for item in run.items() if item.split == "development"}
    order = labelling_order(study, run.items(), "anna", training=2, repeats_share=0.0)
    trained = {task.item_id for task in order if task.kind == "training"}
    assert len(trained) == 2
    assert {task.item_id for task in order if task.kind == "label"} == {item.item_id for item in run.items()} - trained
    with Journal.open(run.path("labelling"), "anna", "one", study=study) as journal:
        for task in order:
            journal.show(task)
            journal.decide(task, "left", seconds=1.0)
    gathered = gathered_labels(run)
    assert set(gathered.labels["item_id"]) == {item.item_id for item in run.items()} - trained
    assert set(gathered.of_evaluation()["item_id"]) == {item.item_id for item in run.items()} - development
    closed = close_labels(run, gathered.labels)
    assert len(closed.reference("development").dropna(subset=["human"])) == len(development) - 2
    assert closed.labels()["item_id"].nunique() == 12 - len(development)
