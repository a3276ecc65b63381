"""What a run writes: tables, figures and preferences, each the same bytes for the same input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from judgelab.errors import RunError
from judgelab.study.freeze import freeze
from judgelab.study.humans import read_labels
from judgelab.study.items import read_items


@pytest.fixture
def run(project):
    project.write_items(2)
    project.label_all(2)
    return freeze("small", project.study())


def normalized(**changes):
    row = {
        "judge": "coin",
        "item_id": "i00",
        "category": "even",
        "system_x": "ALPHA",
        "system_y": "BETA",
        "human": "ALPHA",
        "direct": None,
        "pair_original": "TIE",
        "pair_swapped": "BETA",
        "original_first": "BETA",
        "words_x": 3,
        "words_y": 12,
    }
    return row | changes


def test_tables_carry_the_provenance_and_come_back(run):
    frame = pd.DataFrame({"judge": ["a", "b"], "estimate": [1 / 3, np.nan], "note": ["", "why"]}, index=[5, 6])
    saved = run.save_table(frame, "agreement")
    assert saved.columns.tolist() == ["judge", "estimate", "note", "provenance"]
    assert run.path("tables", "agreement.csv").read_text() == (
        "judge,estimate,note,provenance\na,0.333333333333,,human\nb,,why,human\n"
    )
    back = run.table("agreement")
    pd.testing.assert_frame_equal(run.save_table(back, "again"), back)


def test_a_study_without_labels_has_no_provenance_column(project):
    project.write_items(1)
    run = freeze("small", project.study(human_labels=None))
    assert run.save_table(pd.DataFrame({"a": [1]}), "t").columns.tolist() == ["a"]


def test_simulated_labels_are_told_in_every_table(project):
    project.write_items(2)
    project.label_all(2)
    labels = {"path": "params/small/human_labels.csv", "provenance": "simulated"}
    run = freeze("small", project.study(human_labels=labels))
    assert run.provenance == "simulated"
    assert run.save_table(pd.DataFrame({"a": [1, 2]}), "t")["provenance"].tolist() == ["simulated", "simulated"]
    assert run.path("human_labels.csv").read_text().count(",simulated\n") == 6


def test_normalized_results_of_two_systems(run):
    frame = pd.DataFrame([normalized(item_id="i01", direct="BETA"), normalized()])
    run.save_normalized("coin", frame)
    assert run.path("normalized_results", "coin.csv").read_text() == (
        "item_id,human,direct,pair_original,pair_swapped,original_first,alpha_words,beta_words\n"
        "i00,ALPHA,,TIE,BETA,BETA,3,12\n"
        "i01,ALPHA,BETA,TIE,BETA,BETA,3,12\n"
    )


def test_normalized_results_of_more_systems(project):
    project.write_items([{"item_id": "x", "task": "t", "answers": {"a": "1", "b": "2", "c": "3"}}])
    run = freeze("small", project.study(systems={"a": {}, "b": {}, "c": {}}, human_labels=None))
    rows = [normalized(system_x="b", system_y="c"), normalized(system_x="a", system_y="b", human=None)]
    run.save_normalized("coin", pd.DataFrame(rows))
    lines = run.path("normalized_results", "coin.csv").read_text().splitlines()
    assert lines == [
        "item_id,system_x,system_y,human,direct,pair_original,pair_swapped,original_first,words_x,words_y",
        "i00,a,b,,,TIE,BETA,BETA,3,12",
        "i00,b,c,ALPHA,,TIE,BETA,BETA,3,12",
    ]


def test_preferences_of_another_judge_are_refused(run):
    with pytest.raises(RunError, match="rows of other among the preferences of coin"):
        run.save_normalized("coin", pd.DataFrame([normalized(), normalized(judge="other")]))


def test_equal_figures_give_equal_bytes_without_version(run):
    contents = []
    for _ in range(2):
        figure = Figure(figsize=(1, 1))
        figure.subplots().plot([0, 1])
        run.save_figure(figure, "plot")
        contents.append(run.path("figures", "plot.png").read_bytes())
    assert contents[0] == contents[1]
    assert contents[0].startswith(b"\x89PNG")
    assert b"Software" not in contents[0]


def test_saved_labels_are_the_frozen_ones(run, project):
    before = run.path("human_labels.csv").read_bytes()
    run.save_labels(read_labels(run.study, read_items(run.study)).labels)
    assert run.path("human_labels.csv").read_bytes() == before


def test_labels_of_more_systems_keep_the_long_layout(project):
    project.write_items([{"item_id": "x", "task": "t", "answers": {"a": "1", "b": "2", "c": "3"}}])
    project.write_labels("item_id,reviewer_id,system_x,system_y,preference,score_x,score_y\nx,r,c,a,c,2,1\n")
    run = freeze("small", project.study(systems={"a": {}, "b": {}, "c": {}}))
    assert run.path("human_labels.csv").read_text() == (
        "item_id,reviewer_id,system_x,system_y,preference,score_x,score_y,is_adjudicated,provenance\n"
        "x,r,a,c,c,1,2,false,human\n"
    )
    assert run.labels()["preference"].tolist() == ["c"]
    assert run.reference()["rule"].tolist() == ["unlabelled", "majority", "unlabelled"]
