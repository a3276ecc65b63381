"""Human labels: two layouts, every problem told at once, and the rule that makes the reference."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgelab.errors import DataError
from judgelab.study.humans import read_labels, reference, reviewers
from judgelab.study.items import comparisons, read_items

HEADER = "item_id,reviewer_id,alpha_score,beta_score,preference,is_adjudicated\n"
THREE = {"red": {}, "GREEN": {}, "blue": {}}


def read(project, text, items=3, **changes):
    if isinstance(items, int):
        project.write_items(items)
    project.write_labels(text)
    study = project.study(**changes)
    return read_labels(study, read_items(study))


def refused(project, text, items=3, **changes):
    with pytest.raises(DataError) as caught:
        read(project, text, items, **changes)
    return str(caught.value)


def test_the_protocols_own_layout(project):
    rows = "i01,r01,4.2,3.4,ALPHA,false\ni01,r02,4.0,,TIE,False\ni01,adj,4.1,3.6,ALPHA,true\n"
    found = read(project, HEADER + rows)
    assert found.labels.to_dict("records")[0] == {
        "item_id": "i01",
        "reviewer_id": "r01",
        "system_x": "ALPHA",
        "system_y": "BETA",
        "preference": "ALPHA",
        "score_x": 4.2,
        "score_y": 3.4,
        "is_adjudicated": False,
    }
    assert found.labels["is_adjudicated"].tolist() == [False, False, True]
    assert np.isnan(found.labels["score_y"][1])
    assert found.notes == ["params/small/human_labels.csv: 2 of 3 items have no label"]
    assert reviewers(found.labels) == ("r01", "r02")


def test_scores_may_be_left_out(project):
    found = read(project, "item_id,reviewer_id,preference,is_adjudicated\ni00,r,BETA,false\n", items=1)
    assert found.labels["score_x"].isna().all()
    assert found.notes == []


def test_bom_crlf_and_another_order_of_columns(project):
    text = "preference,is_adjudicated,reviewer_id,item_id\r\nTIE,false,r,i00\r\n"
    found = read(project, b"\xef\xbb\xbf" + text.encode(), items=1)
    assert found.labels["preference"].tolist() == ["TIE"]


def write_three(project):
    answers = {"red": "r", "GREEN": "g", "blue": "b"}
    project.write_items([{"item_id": "x", "task": "t", "answers": answers}])


def test_the_long_layout_brings_pairs_to_protocol_order(project):
    write_three(project)
    text = (
        "item_id,reviewer_id,system_x,system_y,preference,score_x,score_y\n"
        "x,r,blue,red,blue,5,1\nx,r,red,GREEN,TIE,2,3\n"
    )
    found = read(project, text, None, systems=THREE)
    assert found.labels.drop(columns=["item_id", "reviewer_id", "is_adjudicated"]).to_numpy().tolist() == [
        ["red", "blue", "blue", 1.0, 5.0],
        ["red", "GREEN", "TIE", 2.0, 3.0],
    ]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from([("red", "GREEN"), ("red", "blue"), ("GREEN", "blue")]),
            st.integers(0, 2),
            st.integers(1, 5),
            st.integers(1, 5),
        ),
        unique_by=lambda row: row[0],
        min_size=1,
    )
)
def test_exchanging_the_systems_of_a_row_changes_nothing(fresh_project, rows):
    with fresh_project() as project:
        write_three(project)
        header = "item_id,reviewer_id,system_x,system_y,preference,score_x,score_y\n"
        plain = "".join(f"x,r,{x},{y},{(x, y, 'TIE')[p]},{a},{b}\n" for (x, y), p, a, b in rows)
        turned = "".join(f"x,r,{y},{x},{(x, y, 'TIE')[p]},{b},{a}\n" for (x, y), p, a, b in rows)
        one = read(project, header + plain, None, systems=THREE).labels
        other = read(project, header + turned, None, systems=THREE).labels
        pd.testing.assert_frame_equal(one, other)


def test_more_than_two_systems_need_the_long_layout(project):
    write_three(project)
    told = refused(project, HEADER + "x,r,1,2,red,false\n", None, systems=THREE)
    assert "2 of 5 needed columns are missing: system_x, system_y" in told


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        ("item_id,reviewer_id,alpha_score,beta_score,is_adjudicated", "preference"),
        ("item_id,reviewer_id,alpha_score,preference,is_adjudicated", "beta_score"),
        ("reviewer_id,preference", "item_id, is_adjudicated"),
    ],
)
def test_a_missing_column(project, header, missing):
    told = refused(project, f"{header}\n{','.join('x' for _ in header.split(','))}\n")
    assert told.startswith("params/small/human_labels.csv: ")
    assert f"needed columns are missing: {missing}; the file has {header.replace(',', ', ')}" in told


def test_an_unknown_label_with_a_blank(project):
    rows = "i00,r01,4,3,ALPHA,false\ni01,r01,4,3,alpha ,false\ni02,r01,4,3,ALPHA ,false\n"
    assert refused(project, HEADER + rows) == (
        "params/small/human_labels.csv: 2 of 3 rows have a preference outside ALPHA, BETA, TIE; "
        "first 'alpha ' in line 3"
    )


@pytest.mark.parametrize(
    ("score", "told"),
    [
        ("5.1", "1 of 1 rows have a score outside 1 to 5; first '5.1' in line 2"),
        ("-inf", "1 of 1 rows have a score outside 1 to 5; first '-inf' in line 2"),
        ("NaN", "1 of 1 rows have a score that is not a number; first 'NaN' in line 2"),
        ("4;2", "1 of 1 rows have a score that is not a number; first '4;2' in line 2"),
    ],
)
def test_a_score_that_is_none(project, score, told):
    assert refused(project, f"{HEADER}i00,r01,{score},3,ALPHA,false\n").endswith(told)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("i00,r,1,1,TIE,no\n", "1 of 1 rows have an is_adjudicated other than true and false; first 'no' in line 2"),
        ("i00,,1,1,TIE,false\n", "1 of 1 rows have no reviewer_id; first '' in line 2"),
        ("i00,r,1,1,,false\n", "1 of 1 rows have a preference outside ALPHA, BETA, TIE; first '' in line 2"),
        (
            "i00,r,1,1,TIE,false\ni00,r,1,1,ALPHA,false\n",
            "1 of 2 rows repeat a label of the same item, pair and reviewer; first 'i00' in line 3",
        ),
        (
            "i00,a,1,1,TIE,true\ni00,b,1,1,TIE,true\n",
            "1 of 2 rows are a second adjudicated label of an item and pair; first 'i00' in line 3",
        ),
        ("i77,r,1,1,TIE,false\n", "1 of 1 rows label an item that is not in the items; first 'i77' in line 2"),
    ],
)
def test_a_wrong_row(project, rows, told):
    assert refused(project, HEADER + rows) == f"params/small/human_labels.csv: {told}"


def test_one_reviewer_may_also_adjudicate(project):
    found = read(project, HEADER + "i00,r,1,1,TIE,false\ni00,r,2,1,ALPHA,true\n")
    assert len(found.labels) == 2


def test_another_provenance_than_the_protocols(project):
    header = "item_id,reviewer_id,preference,is_adjudicated,provenance\n"
    told = refused(project, header + "i00,r,TIE,false,simulated\n")
    assert "1 of 1 rows have another provenance than the protocol's human_labels.provenance 'human'" in told
    source = {"path": "params/small/human_labels.csv", "provenance": "simulated"}
    assert len(read(project, header + "i00,r,TIE,false,simulated\n", human_labels=source).labels) == 1


def test_systems_of_the_long_layout_are_checked(project):
    write_three(project)
    header = "item_id,reviewer_id,system_x,system_y,preference\n"
    told = refused(project, f"{header}x,r,red,pink,red\nx,r,red,red,red\nx,r,red,blue,GREEN\n", None, systems=THREE)
    assert "name a system outside red, GREEN, blue; first 'pink' in line 2" in told
    assert "compare a system with itself; first 'red' in line 3" in told
    assert "prefer a system that is not of the row's pair; first 'GREEN' in line 4" in told


def test_every_kind_of_problem_is_told_in_one_message(project):
    rows = "i00,r,9,1,alpha,false\ni99,r,1,1,TIE,false\ni01,r,8,1,TIE,maybe\n"
    assert refused(project, HEADER + rows).split("\n  ") == [
        "params/small/human_labels.csv: 4 kinds of problem",
        "2 of 3 rows have a score outside 1 to 5; first '9' in line 2",
        "1 of 3 rows have a preference outside ALPHA, BETA, TIE; first 'alpha' in line 2",
        "1 of 3 rows have an is_adjudicated other than true and false; first 'maybe' in line 4",
        "1 of 3 rows label an item that is not in the items; first 'i99' in line 3",
    ]


def test_other_columns_are_noted(project):
    text = "item_id,reviewer_id,preference,is_adjudicated,minutes\ni00,r,TIE,false,3\n"
    assert read(project, text, items=1).notes == ["params/small/human_labels.csv: columns that are not used: minutes"]


def test_latin1_and_empty_files(project):
    told = refused(project, (HEADER + "i00,José,1,1,TIE,false\n").encode("latin-1"))
    assert "human_labels.csv: not UTF-8: byte 0xe9" in told
    assert refused(project, "").endswith("human_labels.csv: the file is empty")
    assert refused(project, HEADER).endswith("there is a header, but no label")


def test_labels_of_excluded_items_stand_apart(project):
    project.write_items([project.item(0), project.item(1, answer_alpha=""), *map(project.item, range(2, 8))])
    found = read(project, HEADER + "i00,r,1,1,TIE,false\ni01,r,1,1,TIE,false\n", None)
    assert found.labels["item_id"].tolist() == ["i00"]
    assert found.apart["item_id"].tolist() == ["i01"]
    assert "1 of 2 labels are of items that are left out of the items; kept apart" in found.notes[0]


def test_a_label_may_belong_to_a_line_without_readable_id(project):
    """A broken line hides its id: as many strange labels as there are such lines are let pass, no more."""
    project.write_lines(["{broken", *(json.dumps(project.item(number)) for number in range(1, 9))])
    found = read(project, HEADER + "i00,r,1,1,TIE,false\n", None)
    assert found.apart["item_id"].tolist() == ["i00"]
    assert "lines of the items without a readable id may be those" in found.notes[0]
    told = refused(project, HEADER + "i00,r,1,1,TIE,false\nzz,r,1,1,TIE,false\n", None)
    assert "2 of 2 rows label an item that is not in the items" in told


def test_labels_of_items_that_were_not_sampled_stand_apart(project):
    project.label_all(20)
    project.write_items(20)
    study = project.study(items={"path": "params/small/items.jsonl", "limit": 5})
    found = read_labels(study, read_items(study))
    assert found.labels["item_id"].nunique() == 5
    assert found.notes == [
        "params/small/human_labels.csv: 45 of 60 labels are of items that are not sampled; kept apart"
    ]


def test_a_missing_import_says_how_to_make_it(project):
    project.write_items(1)
    study = project.study(human_labels={"path": "outputs/lb/source/human_labels.csv"})
    with pytest.raises(DataError, match="make it with `judgelab import FORMAT FOLDER --run lb`"):
        read_labels(study, read_items(study))


def test_a_study_without_labels(project):
    project.write_items(1)
    study = project.study(human_labels=None)
    with pytest.raises(DataError, match="no human labels"):
        read_labels(study, read_items(study))


# -- the reference ---------------------------------------------------------------------------------------------


def reference_of(project, rows, rule=("adjudicated", "majority")):
    found = read(project, HEADER + rows, items=1)
    study = project.study()
    (row,) = reference(found.labels, comparisons(read_items(study).items, study), rule).to_dict("records")
    return row


@pytest.mark.parametrize(
    ("rows", "human", "rule", "scores"),
    [
        # the adjudicated label wins over two that agree, with its own scores
        ("i00,r1,5,1,ALPHA,false\ni00,r2,5,1,ALPHA,false\ni00,a,2,3,BETA,true\n", "BETA", "adjudicated", (2, 3)),
        # two of three: the scores are the mean of those two
        ("i00,r1,5,1,ALPHA,false\ni00,r2,4,2,ALPHA,false\ni00,r3,1,5,BETA,false\n", "ALPHA", "majority", (4.5, 1.5)),
        # one reviewer is a majority of one
        ("i00,r1,3,3,TIE,false\n", "TIE", "majority", (3, 3)),
        # half is not a majority
        ("i00,r1,5,1,ALPHA,false\ni00,r2,1,5,BETA,false\n", None, "unresolved", (None, None)),
    ],
)
def test_the_reference_rule(project, rows, human, rule, scores):
    row = reference_of(project, rows)
    assert (row["human"] if isinstance(row["human"], str) else None) == human
    assert row["rule"] == rule
    assert row["n_initial"] == rows.count("false")
    found = (row["human_score_x"], row["human_score_y"])
    assert tuple(None if np.isnan(score) else score for score in found) == scores


def test_the_first_rule_that_gives_a_label_decides(project):
    rows = "i00,r1,5,1,ALPHA,false\ni00,r2,5,1,ALPHA,false\ni00,a,2,3,BETA,true\n"
    assert reference_of(project, rows, ("majority", "adjudicated"))["human"] == "ALPHA"
    assert reference_of(project, rows, ("majority",))["human"] == "ALPHA"


def test_majority_alone_leaves_an_adjudicated_disagreement_unresolved(project):
    rows = "i00,r1,5,1,ALPHA,false\ni00,r2,1,5,BETA,false\ni00,a,2,3,BETA,true\n"
    assert reference_of(project, rows, ("majority",))["rule"] == "unresolved"


def test_an_item_without_labels_is_unlabelled(project):
    found = read(project, HEADER + "i00,r,1,1,TIE,false\n", items=2)
    study = project.study()
    frame = reference(found.labels, comparisons(read_items(study).items, study), ("adjudicated", "majority"))
    assert frame["rule"].tolist() == ["majority", "unlabelled"]
    assert frame["human"].isna().tolist() == [False, True]
    assert frame["n_initial"].tolist() == [1, 0]


VOTES = st.lists(st.sampled_from(["ALPHA", "BETA", "TIE"]), max_size=7)


@given(VOTES)
def test_majority_as_a_naive_twin_counts_it(votes):
    frame = pd.DataFrame(
        {
            "item_id": "x",
            "system_x": "ALPHA",
            "system_y": "BETA",
            "reviewer_id": [f"r{number}" for number in range(len(votes))],
            "preference": votes,
            "score_x": 1.0,
            "score_y": 1.0,
            "is_adjudicated": False,
        }
    )
    pair = pd.DataFrame([{"item_id": "x", "system_x": "ALPHA", "system_y": "BETA"}])
    (row,) = reference(frame, pair, ("majority",)).to_dict("records")
    winners = [name for name in ("ALPHA", "BETA", "TIE") if votes.count(name) > len(votes) / 2]
    assert ([row["human"]] if isinstance(row["human"], str) else []) == winners
    assert row["rule"] == ("majority" if winners else "unresolved" if votes else "unlabelled")
