"""Scores as probabilities on evaluation answers, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from judgelab.measure.recalibrated import curve_table, recalibration_table

NAN = float("nan")
OPTIONS = {"ci_level": 0.95, "resamples": 200, "seed": 1}
# Two judges, four answers of four items each. j: totals 1 to 4 on a scale of 1 to 5, so raw 0, 1/4, 1/2, 3/4.
ANSWERS = pd.DataFrame(
    {
        "judge": ["j"] * 4 + ["k"] * 4,
        "item_id": ["a", "b", "c", "d"] * 2,
        "system": "S",
        "total": [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, NAN, 1.0],
        "accepted": [0.0, 1.0, 1.0, NAN, 1.0, 0.0, 1.0, 0.0],
        "probability": [0.0, 0.25, 0.5, 0.75, 1.0, 1.0, NAN, 0.0],
        "recalibrated": [0.0, 1.0, 1.0, 1.0, NAN, NAN, NAN, NAN],
    }
)
CHOICES = pd.DataFrame({"judge": ["j"], "what": "acceptance threshold", "value": [2.0], "default": [4.0]})


def pick(table, judge, slice_, measure):
    rows = table[(table["judge"] == judge) & (table["slice"] == slice_) & (table["measure"] == measure)]
    assert len(rows) == 1
    return rows.iloc[0]


def test_by_hand():
    made = recalibration_table(ANSWERS, CHOICES, **OPTIONS)
    # j raw: (0² + 0.75² + 0.5²) / 3 over the three labelled answers; recalibrated: all as accepted
    assert pick(made, "j", "reading=raw", "brier_score")["estimate"] == pytest.approx((0.75**2 + 0.5**2) / 3)
    assert pick(made, "j", "reading=isotonic", "brier_score")["estimate"] == 0
    # k raw: 1 against 1, 1 against 0, 0 against 0
    assert pick(made, "k", "reading=raw", "brier_score")["estimate"] == pytest.approx(1 / 3)
    # at the protocol's 4 j accepts none of the two that people accept, at the chosen 2 both; the bad one never
    for name, hits in (("protocol", 0), ("chosen", 2)):
        positive = pick(made, "j", f"threshold={name}", "true_positive_rate")
        assert (positive["numerator"], positive["denominator"]) == (hits, 2)
        assert pick(made, "j", f"threshold={name}", "true_negative_rate")["estimate"] == 1
    assert not ((made["judge"] == "k") & made["slice"].str.startswith("threshold=")).any()


def test_what_was_not_recalibrated_is_undefined_with_a_reason():
    row = pick(recalibration_table(ANSWERS, CHOICES, **OPTIONS), "k", "reading=isotonic", "brier_score")
    assert np.isnan(row["estimate"])
    assert row["note"].startswith("undefined: ")


def test_the_curve_counts_every_labelled_answer_once():
    curve = curve_table(ANSWERS, ci_level=0.95, bins=4)
    counts = curve.groupby(["judge", "reading"])["n"].sum()
    assert counts.to_dict() == {("j", "raw"): 3, ("j", "isotonic"): 3, ("k", "raw"): 3, ("k", "isotonic"): 0}
    assert curve.groupby(["judge", "reading"])["accepted"].sum()["j", "raw"] == 2


def test_no_answers():
    empty = ANSWERS.head(0)
    assert recalibration_table(empty, CHOICES.head(0), **OPTIONS).empty
    assert curve_table(empty, ci_level=0.95).empty
    assert list(curve_table(empty, ci_level=0.95).columns) == list(curve_table(ANSWERS, ci_level=0.95).columns)
