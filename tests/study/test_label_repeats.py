"""Labels that a reviewer gave again: read strictly, kept in the run, and no part of any other measure."""

from __future__ import annotations

import pandas as pd
import pytest

from judgelab.errors import DataError
from judgelab.measure.repeats import self_consistency_table
from judgelab.study.freeze import freeze, open_run
from judgelab.study.humans import read_labels, reference, reviewers
from judgelab.study.items import comparisons, read_items
from judgelab.study.labels import COLUMNS

HEADER = "item_id,reviewer_id,alpha_score,beta_score,preference,is_adjudicated,repeat\n"
# r01 labels i00 three times, i01 once; r02 labels i00 twice; the adjudicator once
ROWS = (
    "i00,r01,4.0,3.0,ALPHA,false,1\n"
    "i00,r01,3.0,3.0,TIE,false,2\n"
    "i00,r01,4.0,3.0,ALPHA,false,3\n"
    "i00,r02,2.0,3.0,BETA,false,1\n"
    "i00,r02,2.0,3.0,BETA,false,2\n"
    "i01,r01,4.0,3.0,ALPHA,false,1\n"
    "i00,adj,4.0,3.0,ALPHA,true,1\n"
)


def frozen(project, text):
    project.write_items(2)
    project.write_labels(text)
    return freeze("small", project.study())


def refused(project, rows):
    project.write_items(2)
    project.write_labels(HEADER + rows)
    study = project.study()
    with pytest.raises(DataError) as caught:
        read_labels(study, read_items(study))
    return str(caught.value)


def test_repeats_are_kept_apart_from_the_labels_that_count(project):
    run = frozen(project, HEADER + ROWS)
    labels = run.labels()
    assert list(labels.columns) == COLUMNS
    assert labels["reviewer_id"].tolist() == ["r01", "r02", "adj", "r01"]
    assert labels["preference"].tolist() == ["ALPHA", "BETA", "ALPHA", "ALPHA"]
    assert reviewers(labels) == ("r01", "r02")
    repeats = run.repeats()
    assert list(repeats.columns) == [*COLUMNS, "repeat"]
    told = repeats[["item_id", "reviewer_id", "preference", "repeat"]].to_numpy().tolist()
    assert told == [
        ["i00", "r01", "ALPHA", 1], ["i00", "r01", "TIE", 2], ["i00", "r01", "ALPHA", 3],
        ["i00", "r02", "BETA", 1], ["i00", "r02", "BETA", 2],
    ]  # fmt: skip
    # the reference is that of the first labels: two initial ones on i00, adjudicated
    assert run.reference()[["item_id", "human", "n_initial"]].to_numpy().tolist() == [
        ["i00", "ALPHA", 2],
        ["i01", "ALPHA", 1],
    ]


def test_repeats_come_back_from_the_frozen_file(project):
    run = frozen(project, HEADER + ROWS)
    again = open_run("small")
    pd.testing.assert_frame_equal(again.repeats(), run.repeats())
    assert freeze("small", project.study()).frozen == run.frozen
    header = run.path("human_labels.csv").read_text().splitlines()[0]
    assert header == "item_id,reviewer_id,alpha_score,beta_score,preference,is_adjudicated,provenance,repeat"


def test_the_reference_counts_first_labels_only(project):
    # four more labels for TIE by the same reviewer would be a majority of their own
    rows = "i00,r01,,,ALPHA,false,1\n" + "".join(f"i00,r01,,,TIE,false,{number}\n" for number in range(2, 6))
    project.write_items(2)
    project.write_labels(HEADER + rows)
    study = project.study()
    items = read_items(study)
    found = reference(read_labels(study, items).labels, comparisons(items.items, study), ["majority"])
    assert found["human"].iloc[0] == "ALPHA"
    assert found["n_initial"].iloc[0] == 1


def test_without_repeats_the_frozen_file_has_the_same_bytes(project):
    plain = [",".join(line.split(",")[:-1]) for line in (HEADER + ROWS).splitlines()]
    once = [line for line, full in zip(plain, (HEADER + ROWS).splitlines(), strict=True) if full[-1] in "1t"]
    run = frozen(project, "\n".join(once) + "\n")
    expected = run.path("human_labels.csv").read_bytes()
    assert b"repeat" not in expected
    assert run.repeats().empty
    assert list(run.repeats().columns) == [*COLUMNS, "repeat"]
    for path in sorted(run.folder.rglob("*"), reverse=True):
        path.unlink()
    with_ones = [f"{line},{'repeat' if number == 0 else 1}" for number, line in enumerate(once)]
    assert frozen(project, "\n".join(with_ones) + "\n").path("human_labels.csv").read_bytes() == expected


def test_the_long_layout_has_repeats_too(project):
    answers = {"red": "r", "green": "g", "blue": "b"}
    project.write_items([{"item_id": "i00", "task": "t", "answers": answers}])
    project.write_labels(
        "item_id,reviewer_id,system_x,system_y,preference,repeat\n"
        "i00,r,blue,red,blue,1\ni00,r,red,blue,red,2\ni00,r,red,green,TIE,1\ni00,r,red,green,TIE,2\n"
    )
    run = freeze("small", project.study(systems={"red": {}, "green": {}, "blue": {}}))
    assert len(run.labels()) == 2
    repeats = run.repeats().rename(columns={"reviewer_id": "rater", "preference": "value"})
    table = self_consistency_table(repeats, ci_level=0.95, resamples=20, seed=1)
    # blue then red on one pair, TIE twice on the other
    assert table.loc[0, ["measure", "numerator", "denominator", "n_used"]].tolist() == ["all_equal", 1, 2, 1]


def test_a_study_without_labels_has_no_repeats(project):
    project.write_items(2)
    run = freeze("small", project.study(human_labels=None))
    assert run.repeats().empty
    assert list(run.repeats().columns) == [*COLUMNS, "repeat"]


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "", "two", "²", "1" * 5000])
def test_a_repeat_is_a_whole_number_from_1(project, value):
    told = refused(project, f"i00,r01,,,ALPHA,false,1\ni01,r01,,,ALPHA,false,{value}\n")
    assert "1 of 2 rows have a repeat that is not a whole number from 1; first" in told
    assert "in line 3" in told


def test_the_same_repeat_twice_is_refused(project):
    told = refused(project, ROWS + "i00,r01,,,BETA,false,3\n")
    assert "1 of 8 rows repeat a label of the same item, pair and reviewer; first 'i00' in line 9" in told


def test_a_repeat_without_a_first_label_is_refused(project):
    told = refused(project, "i00,r01,,,ALPHA,false,2\ni01,r01,,,ALPHA,false,1\n")
    assert "1 of 2 rows repeat a label that has no repeat 1; first 'i00' in line 2" in told


def test_an_adjudicated_label_is_not_repeated(project):
    told = refused(project, ROWS + "i00,adj,,,ALPHA,true,2\n")
    assert "are adjudicated and a repeat; first '2' in line 9" in told
