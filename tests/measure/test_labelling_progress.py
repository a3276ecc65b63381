"""Progress, agreement so far, and what is left to adjudicate."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from judgelab.measure.labelling_progress import (
    NOT_PLANNED,
    PEEKING,
    agreement_so_far,
    progress_table,
    to_adjudicate,
)
from judgelab.measure.reliability import reviewer_table

ALPHA_BETA = ("ALPHA", "BETA", "TIE")


def decisions(rows):
    """Rows of reviewer, item, kind, preference (None: cannot judge), seconds, note."""
    table = pd.DataFrame(rows, columns=["reviewer_id", "item_id", "kind", "preference", "seconds", "note"])
    table["preference"] = table["preference"].astype("str")
    table["system_x"], table["system_y"], table["is_adjudicated"] = "ALPHA", "BETA", False
    table["repeat"] = np.where(table["kind"] == "repeat", 2, 1)
    table["choice"] = np.where(table["preference"].isna(), "cannot_judge", "left")
    table["score_x"] = table["score_y"] = np.nan
    return table


def plan(rows):
    """Rows of reviewer, item, kind, category."""
    table = pd.DataFrame(rows, columns=["reviewer_id", "item_id", "kind", "category"])
    table["system_x"], table["system_y"] = "ALPHA", "BETA"
    return table


PLAN = plan(
    [
        ("r1", "d1", "training", "x"),
        ("r1", "i1", "label", "x"),
        ("r1", "i2", "label", "x"),
        ("r1", "i3", "label", "y"),
        ("r1", "i1", "repeat", "x"),
        ("r2", "i1", "label", "x"),
        ("r2", "i3", "label", "y"),
    ]
)
GIVEN = decisions(
    [
        ("r1", "d1", "training", "ALPHA", 99.0, ""),
        ("r1", "i1", "label", "ALPHA", 10.0, ""),
        ("r1", "i2", "label", None, 30.0, ""),
        ("r1", "i1", "repeat", "BETA", 5.0, ""),
        ("r2", "i9", "label", "BETA", 8.0, ""),
    ]
)


def test_progress_by_hand():
    table = progress_table(GIVEN, PLAN)
    told = table.set_index(["reviewer_id", "category"])
    assert list(told.index) == [
        *(("r1", "all"), ("r1", "x"), ("r1", "y")),
        *(("r2", "all"), ("r2", NOT_PLANNED), ("r2", "x"), ("r2", "y")),
    ]
    counts = ["planned", "done", "cannot_judge", "repeats_planned", "repeats_done"]
    assert told.loc[("r1", "all"), counts].tolist() == [3, 2, 1, 1, 1]
    assert told.loc[("r1", "x"), counts].tolist() == [2, 2, 1, 1, 1]
    assert told.loc[("r1", "y"), counts].tolist() == [1, 0, 0, 0, 0]
    assert told.loc[("r2", "all"), counts].tolist() == [2, 1, 0, 0, 0]
    assert told.loc[("r2", NOT_PLANNED), counts].tolist() == [0, 1, 0, 0, 0]
    assert told.loc[("r1", "all"), "median_seconds"] == 20.0  # of 10 and 30; neither training nor repeat
    assert np.isnan(told.loc[("r1", "y"), "median_seconds"])


def test_progress_before_the_first_decision_and_without_a_plan():
    table = progress_table(GIVEN[:0], PLAN)
    assert table["done"].tolist() == [0] * 6
    assert table["median_seconds"].isna().all()
    alone = progress_table(GIVEN, PLAN[:0])
    assert set(alone["category"]) == {"all", NOT_PLANNED}
    assert alone["planned"].tolist() == [0] * 4
    nothing = progress_table(GIVEN[:0], PLAN[:0])
    assert nothing.empty
    assert list(nothing.columns) == list(table.columns)


def test_progress_refuses_a_task_twice_and_a_missing_column():
    with pytest.raises(ValueError, match="labels: 1 of 6 rows repeat a reviewer and task; first reviewer r1, item d1"):
        progress_table(pd.concat([GIVEN, GIVEN[:1]]), PLAN)
    with pytest.raises(ValueError, match="planned: 7 of 14 rows repeat"):
        progress_table(GIVEN, pd.concat([PLAN, PLAN]))
    with pytest.raises(ValueError, match="planned: missing column category"):
        progress_table(GIVEN, PLAN.drop(columns="category"))


def both(preferences, notes=None):
    """Two reviewers' preferences, item by item."""
    notes = notes or [("", "")] * len(preferences)
    return decisions(
        [
            (reviewer, f"i{number}", "label", given, 1.0, note)
            for number, (pair, words) in enumerate(zip(preferences, notes, strict=True))
            for reviewer, given, note in zip(("r1", "r2"), pair, words, strict=True)
        ]
    )


def test_agreement_so_far_is_that_of_stage_02_with_a_warning(options):
    labels = both([("ALPHA", "ALPHA"), ("ALPHA", "BETA"), ("TIE", "TIE"), ("BETA", "BETA"), ("BETA", None)])
    extra = decisions([("r1", "i0", "repeat", "BETA", 1.0, ""), ("r1", "d1", "training", "BETA", 1.0, "")])
    table = agreement_so_far(pd.concat([labels, extra]), labels_allowed=ALPHA_BETA, **options)
    assert table.loc[0, ["measure", "numerator", "denominator"]].tolist() == ["exact_agreement", 3, 4]
    assert set(table["measure"]) == {"exact_agreement", "cohen_kappa", "krippendorff_alpha", "gwet_ac1"}
    assert table["note"].str.endswith(PEEKING).all()
    whole = reviewer_table(labels.drop(columns=["score_x", "score_y"]), labels_allowed=ALPHA_BETA, **options)
    same = whole[whole["measure"].isin(set(table["measure"]))].reset_index(drop=True)
    pd.testing.assert_frame_equal(table.drop(columns="note"), same.drop(columns="note"))


@pytest.mark.parametrize("preferences", [[], [("ALPHA", None)], [(None, None)]])
def test_agreement_before_there_is_any(options, preferences):
    table = agreement_so_far(both(preferences), labels_allowed=ALPHA_BETA, **options)
    assert {"exact_agreement", "krippendorff_alpha"} <= set(table["measure"])
    assert table["estimate"].isna().all()
    assert table["note"].str.contains("with initial labels").all()


def test_adjudication_shows_what_differs_without_names():
    labels = both(
        [("ALPHA", "ALPHA"), ("TIE", "ALPHA"), ("ALPHA", "BETA"), ("BETA", None)],
        [("same", "same"), ("r1 thinks", "sources"), ("", "wrong date"), ("", "")],
    )
    repeat = decisions([("r1", "i0", "repeat", "BETA", 1.0, "again")])
    table = to_adjudicate(pd.concat([labels, repeat]))
    assert list(table.columns) == [
        *("item_id", "system_x", "system_y", "label", "preference", "score_x", "score_y", "note"),
    ]
    assert table[["item_id", "label", "preference", "note"]].to_numpy().tolist() == [
        ["i1", 1, "ALPHA", "sources"],
        ["i1", 2, "TIE", "r1 thinks"],
        ["i2", 1, "ALPHA", ""],
        ["i2", 2, "BETA", "wrong date"],
    ]


def test_who_said_it_changes_nothing_in_the_adjudication():
    labels = both([("TIE", "ALPHA"), ("ALPHA", "BETA")], [("one", "two"), ("three", "four")])
    names = {"r1": "r2", "r2": "r1"}
    swapped = labels.assign(reviewer_id=labels["reviewer_id"].map(names))
    pd.testing.assert_frame_equal(to_adjudicate(labels), to_adjudicate(swapped))
    pd.testing.assert_frame_equal(to_adjudicate(labels), to_adjudicate(labels[::-1]))


def test_what_is_adjudicated_is_done():
    labels = both([("TIE", "ALPHA"), ("ALPHA", "BETA")])
    decided = decisions([("adj", "i1", "label", "BETA", 1.0, "")]).assign(is_adjudicated=True)
    assert to_adjudicate(pd.concat([labels, decided]))["item_id"].unique().tolist() == ["i0"]


def test_a_label_file_without_notes_can_be_adjudicated():
    labels = both([("TIE", "ALPHA")])[["item_id", "reviewer_id", "system_x", "system_y", "preference"]]
    table = to_adjudicate(labels.assign(is_adjudicated=False))
    assert table["note"].tolist() == ["", ""]
    assert table["score_x"].isna().all()


def test_nothing_to_adjudicate():
    for labels in (both([]), both([("ALPHA", "ALPHA")]), both([("ALPHA", None)])):
        table = to_adjudicate(labels)
        assert table.empty
        assert "note" in table


def test_adjudication_refuses_a_label_twice():
    labels = both([("TIE", "ALPHA")])
    with pytest.raises(ValueError, match="labels: 1 of 3 initial labels repeat an item and reviewer; first item i0"):
        to_adjudicate(pd.concat([labels, labels[:1]]))
