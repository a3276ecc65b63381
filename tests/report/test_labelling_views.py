"""What notebook 02 shows of labelling, with nobody there, with two reviewers under way, and when labels are closed."""

from __future__ import annotations

import pytest

from judgelab.labelling.adjudication import AdjudicationSession
from judgelab.labelling.form import LabellingForm
from judgelab.labelling.gathered import labels_so_far
from judgelab.labelling.pair_session import PairSession
from judgelab.measure.labelling_progress import agreement_so_far, progress_table
from judgelab.report.labelling_sentences import labelling_sentences
from judgelab.report.labelling_views import adjudication_view, labelling_view, spot_check_view
from judgelab.report.sentences import Sentences
from judgelab.study.freeze import freeze, open_run

LABELLING = {
    "human_labels": {"provenance": "human"},
    "human_review": {"labelling": {"training": 0, "repeats_share": 0.0}},
    "measures": {"resamples": 200},
}


@pytest.fixture
def run(project):
    project.write_items(4)
    return freeze("small", project.study(**LABELLING))


def label_all(run, reviewer, choose, session=PairSession):
    """A session that decides everything by ``choose`` (of the answers in the places shown), and its last view."""
    made = session(run)
    view = made.handle({"action": "start", "reviewer": reviewer})
    while view["screen"] in ("task", "saved"):
        message = {"action": "next"}
        if view["screen"] == "task":
            answers = [each["content"]["text"] for each in view["texts"]["answers"]]
            message = {"action": "decide", "choice": choose(answers), "seconds": 12.0, "note": "", "reason": ""}
        view = made.handle(message | {"token": view["token"]})
        assert view["problem"] == ""
    made.close()
    return view


def yes(answers):
    return "left" if answers[0].startswith("Yes") else "right"


def no_to_the_second(answers):
    return "tie" if "1 times" in answers[0] + answers[1] else yes(answers)


def sentences(run):
    so_far = labels_so_far(run)
    progress = progress_table(so_far.decisions, so_far.planned)
    agreement = agreement_so_far(so_far.of_evaluation(), labels_allowed=run.study.labels, **run.study.intervals)
    return list(labelling_sentences(so_far, progress, agreement, run))


def test_nobody_has_labelled_yet(run):
    told = sentences(run)
    assert told[0] == "Nobody has labelled yet (0 reviewers)."
    assert "exact agreement is undefined (n = 0 items" in told[1]
    assert "Looking does not end a study" in told[3]
    assert told[4:] == ["0 of 0 comparisons that two or more reviewers labelled have labels that differ."]


def test_two_reviewers_under_way_and_an_adjudicator(run):
    label_all(run, "anna", yes)
    label_all(run, "ben", no_to_the_second)
    told = sentences(run)
    assert told[0] == "anna: 4 of 4 decided; half of those with a time took 12 s or less."
    assert "exact agreement is 3/4 = 0.750 (95 % interval [" in told[2]
    assert told[5] == "1 of 4 comparisons that two or more reviewers labelled have labels that differ."
    assert told[6] == "0 of 1 is adjudicated, 1 to go."
    label_all(run, "cleo", yes, AdjudicationSession)
    assert sentences(run)[6] == "1 of 1 is adjudicated, 0 to go."


def test_a_form_where_labels_are_open_and_a_sentence_for_whoever_only_reads(run):
    form = labelling_view(run)
    assert isinstance(form, LabellingForm)
    data, _ = form._repr_mimebundle_()
    assert data["text/plain"] == "People label here, in JupyterLab; so far 0 reviewers began."
    assert form.view["mode"] == "pairs"
    assert adjudication_view(run).view["mode"] == "adjudication"


def test_closing_from_the_form_ends_the_labelling(run):
    label_all(run, "anna", yes)
    label_all(run, "ben", yes)
    session = AdjudicationSession(run)
    view = session.handle({"action": "start", "reviewer": "cleo"})
    assert (view["screen"], view["can"]["close_labels"]) == ("done", True)
    view = session.handle({"action": "close_labels", "token": view["token"]})
    assert "reviewers: 2, initial labels: 8" in view["message"]
    assert open_run("small").labels_open
    view = session.handle({"action": "close_labels", "confirmed": True, "token": view["token"]})
    assert view["screen"] == "closed"
    closed = open_run("small")
    assert not closed.labels_open
    assert closed.reference()["human"].tolist() == ["ALPHA"] * 4
    assert labelling_view(closed)[0].startswith("The labels of this study were made here and are closed")
    assert isinstance(adjudication_view(closed), Sentences)


def test_a_study_whose_labels_are_not_made_here(project):
    project.write_items(2)
    project.label_all(2)
    filed = freeze("small", project.study())
    assert list(labelling_view(filed)) == [
        "The labels come from params/small/human_labels.csv: nothing is labelled in this notebook."
    ]
    assert sentences(filed) == ["Nobody labels in this notebook (0 reviewers)."]
    assert isinstance(adjudication_view(filed), Sentences)
    assert labels_so_far(filed).open_pairs.empty
    none = freeze("none", project.study(human_labels=None))
    assert labels_so_far(none).open_pairs.empty
    assert labelling_view(none)[0].startswith("This study has no human labels")


def test_a_spot_check_without_verdicts(run):
    sheet = labels_so_far(run).labels.iloc[:0]
    assert list(spot_check_view(run, sheet)) == ["There is no verdict here whose answers a person could look at."]


def test_labels_of_a_file_that_differ_are_listed_where_nobody_adjudicated(project):
    project.write_items(2)
    header = "item_id,reviewer_id,preference,is_adjudicated"
    rows = [f"i0{item},{who},{said},false" for item in (0, 1) for who, said in (("r01", "ALPHA"), ("r02", "BETA"))]
    project.write_labels("\n".join([header, *rows, "i01,adj,BETA,true", ""]))
    assert labels_so_far(freeze("small", project.study())).open_pairs["item_id"].tolist() == ["i00"]
