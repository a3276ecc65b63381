"""Calibration by hand, against scikit-learn and naive twins, under what must change nothing, and on planted truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.estimates import Place, Settings
from judgelab.measure.reliability_curve import CALIBRATION_MEASURES, CURVE, calibration_rows, reliability_curve
from judgelab.measure.rows import COLUMNS

SETTINGS = Settings(0.95, 200, 7)
PLACE = Place("j", "direct", "direct", "repair=recalibration")
BRIER, SKILL, ERROR, GAP, RATE = CALIBRATION_MEASURES
# The forecaster of Flach and Perello Nieto's tutorial on classifier calibration: 0.1 twice, 0.4 twice, 0.7 three times
# and 0.9 once, after which it rained 0, 1, 2 and 1 times.
FORECAST = ([0.1] * 2 + [0.4] * 2 + [0.7] * 3 + [0.9], [0, 0, 0, 1, 0, 1, 1, 1])


def measured(probabilities, accepted, items=None, bins=10, settings=SETTINGS, place=PLACE):
    items = np.arange(len(probabilities)) if items is None else np.array(items)
    p, y = (np.array(values, dtype=float) for values in (probabilities, accepted))
    rows = list(calibration_rows(place, items, p, y, bins=bins, settings=settings))
    assert tuple(row["measure"] for row in rows) == CALIBRATION_MEASURES
    assert all(tuple(row) == COLUMNS for row in rows)
    return {row["measure"]: row for row in rows}


def curve_of(probabilities, accepted, items=None, bins=10, ci_level=0.95):
    items = np.arange(len(probabilities)) if items is None else np.array(items)
    p, y = (np.array(values, dtype=float) for values in (probabilities, accepted))
    curve = reliability_curve(p, y, items, bins=bins, ci_level=ci_level)
    assert tuple(curve.columns) == CURVE
    assert len(curve) == bins
    return curve


def study(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, (rng.random(n) < np.clip(p - shift, 0, 1)).astype(float)


def estimates(rows):
    return [row["estimate"] for row in rows.values()]


def test_by_hand():
    rows = measured(*FORECAST)
    # (2 · 0.01 + 0.16 + 0.36 + 0.49 + 2 · 0.09 + 0.01) / 8 = 1.22 / 8; the rate is 4/8, so its own score is 1/4.
    assert rows[BRIER]["estimate"] == pytest.approx(0.1525, abs=1e-12)
    assert rows[SKILL]["estimate"] == pytest.approx(1 - 0.1525 / 0.25, abs=1e-12)
    # |0.2 − 0| + |0.8 − 1| + |2.1 − 2| + |0.9 − 1| = 0.6 over 8; without the signs 0.2 − 0.2 + 0.1 − 0.1 = 0.
    assert rows[ERROR]["estimate"] == pytest.approx(0.075, abs=1e-12)
    assert rows[GAP]["estimate"] == pytest.approx(0, abs=1e-12)
    assert (rows[RATE]["estimate"], rows[RATE]["numerator"], rows[RATE]["denominator"]) == (0.5, 4, 8)
    # √(2/π) (√0.18 + √0.48 + √0.63 + √0.09) / 8 = 0.7979 · (0.4243 + 0.6928 + 0.7937 + 0.3) / 8 = 0.2205
    assert rows[ERROR]["note"].endswith("biased upward, as is its interval: true probabilities would give about 0.220")
    assert rows[ERROR]["method"].startswith("10 bins of equal width; percentile bootstrap over items")
    assert rows[RATE]["method"] == "Wilson"
    assert {row["slice"] for row in rows.values()} == {"repair=recalibration"}
    assert all(row["n_used"] == 8 and row["n_excluded"] == 0 for row in rows.values())


def test_curve_by_hand():
    curve = curve_of(*FORECAST)
    assert curve["bin"].tolist() == list(range(1, 11))
    assert curve["n"].tolist() == [2, 0, 0, 2, 0, 0, 3, 0, 1, 0]
    assert curve["accepted"].tolist() == [0, 0, 0, 1, 0, 0, 2, 0, 1, 0]
    filled = curve[curve["n"] > 0]
    assert filled["rate"].tolist() == [0, 0.5, 2 / 3, 1]
    assert filled["mean_probability"].to_numpy() == pytest.approx([0.1, 0.4, 0.7, 0.9], abs=1e-12)
    empty = curve[curve["n"] == 0]
    assert empty[["mean_probability", "rate", "ci_low", "ci_high"]].isna().all(axis=None)
    assert set(empty["note"]) == {"undefined: no answer"}
    assert set(filled["note"]) == {""}
    assert (curve["low"].iloc[3], curve["high"].iloc[3]) == (0.3, 0.4)


def test_bounds_belong_to_the_bin_below():
    tenths = [0.0] + [k / 10 for k in range(1, 11)] + [0.1 + 0.2, 1 - 0.3]
    assert curve_of(tenths, [0] * 13)["n"].tolist() == [2, 1, 2, 1, 1, 1, 2, 1, 1, 1]


@pytest.mark.parametrize("bins", [1, 5, 10, 15])
def test_against_scikit_learn(bins):
    p, y = study(500, bins, 0.1)
    rows, curve = measured(p, y, bins=bins), curve_of(p, y, bins=bins)
    assert rows[BRIER]["estimate"] == pytest.approx(brier_score_loss(y, p), abs=1e-12)
    rate, mean = calibration_curve(y, p, n_bins=bins)
    assert curve["rate"].to_numpy() == pytest.approx(rate, abs=1e-12)
    assert curve["mean_probability"].to_numpy() == pytest.approx(mean, abs=1e-12)
    expected = (np.abs(rate - mean) * curve["n"]).sum() / 500
    assert rows[ERROR]["estimate"] == pytest.approx(expected, abs=1e-12)
    for _, point in curve.iterrows():
        bounds = proportion_confint(point["accepted"], point["n"], method="wilson")
        assert (point["ci_low"], point["ci_high"]) == pytest.approx(bounds, abs=1e-12)


def naive(probabilities, accepted, bins):
    """The five measures over plain lists, bin by bin with its bounds; bounds are exact for 2, 4 and 8 bins."""
    pairs = [(p, y) for p, y in zip(probabilities, accepted, strict=True) if not math.isnan(p) and not math.isnan(y)]
    if not pairs:
        return [math.nan] * 5
    n = len(pairs)
    rate = sum(y for _, y in pairs) / n
    brier = sum((p - y) ** 2 for p, y in pairs) / n
    error = 0.0
    for number in range(bins):
        low, high = number / bins, (number + 1) / bins
        here = [(p, y) for p, y in pairs if low < p <= high or (number == 0 and p == 0)]
        if here:
            gap = sum(p for p, _ in here) / len(here) - sum(y for _, y in here) / len(here)
            error += len(here) / n * abs(gap)
    skill = 1 - brier / (rate * (1 - rate)) if 0 < rate < 1 else math.nan
    return [brier, skill, error, sum(p for p, _ in pairs) / n - rate, rate]


answer = st.tuples(st.sampled_from([k / 16 for k in range(17)] + [math.nan]), st.sampled_from([0.0, 1.0, math.nan]))


@profile(max_examples=60, deadline=None)
@given(st.lists(answer, max_size=14), st.sampled_from([1, 2, 4, 8]), st.integers(1, 3))
def test_against_a_naive_twin(answers, bins, per_item):
    p, y = [one for one, _ in answers], [two for _, two in answers]
    items = [number // per_item for number in range(len(p))]
    rows = measured(p, y, items, bins, Settings(0.95, 10, 1))
    assert estimates(rows) == pytest.approx(naive(p, y, bins), abs=1e-12, nan_ok=True)
    used = {item for item, (one, two) in zip(items, answers, strict=True) if not math.isnan(one + two)}
    assert all(row["n_used"] == len(used) for row in rows.values())
    assert all(row["n_excluded"] == len(set(items)) - len(used) for row in rows.values())


def test_planted_truth():
    # p uniform and people accept with probability max(p − 0.2, 0): the gap is 0.2 − ∫₀^0.2 (0.2 − p) = 0.2 − 0.02.
    rows = measured(*study(2000, 1, 0.2), settings=Settings(0.95, 300, 1))
    assert rows[GAP]["ci_low"] < 0.18 < rows[GAP]["ci_high"]
    assert rows[ERROR]["ci_low"] < 0.18 < rows[ERROR]["ci_high"]


def test_intervals_cover_planted_truth():
    # True uniform probabilities: the Brier score is E p (1 − p) = 1/6 and the skill 1 − (1/6) / (1/4) = 1/3.
    truth = {BRIER: 1 / 6, SKILL: 1 / 3, GAP: 0, RATE: 0.5}
    studies = [measured(*study(300, seed)) for seed in range(40)]
    for measure, value in truth.items():
        covered = [rows[measure]["ci_low"] <= value <= rows[measure]["ci_high"] for rows in studies]
        assert sum(covered) >= 34  # a level of 0.95 gives fewer about once in 300 times


def test_what_true_probabilities_would_give_is_about_right():
    given = [measured(*study(100, seed), settings=Settings(0.95, 1, 1))[ERROR] for seed in range(60)]
    told = np.mean([float(row["note"].split("about ")[1].split(";")[0]) for row in given])
    assert np.mean([row["estimate"] for row in given]) == pytest.approx(told, rel=0.1)
    assert told > 0.05


def test_the_bootstrap_adds_the_bias_once_more():
    row = measured(*study(200, 3))[ERROR]
    assert (row["ci_low"] + row["ci_high"]) / 2 > row["estimate"]


@pytest.mark.parametrize("per_item", [1, 3])
def test_the_order_of_answers_and_the_names_of_items_count_for_nothing(per_item):
    (p, y), items = study(60, 4), np.repeat(np.arange(60 // per_item), per_item)
    order = np.random.default_rng(4).permutation(60)
    one, two = measured(p, y, items), measured(p[order], y[order], [f"item {items[k]:02d}" for k in order])
    for measure in CALIBRATION_MEASURES:
        assert two[measure]["estimate"] == pytest.approx(one[measure]["estimate"], abs=1e-12)
        assert two[measure]["note"] == one[measure]["note"]
    one, two = curve_of(p, y, items), curve_of(p[order], y[order], items[order])
    np.testing.assert_allclose(one.iloc[:, :9].to_numpy(float), two.iloc[:, :9].to_numpy(float), atol=1e-12)


def test_turned_round_the_gap_changes_its_sign_and_nothing_else():
    p, y = study(200, 5, 0.1)
    one, two = measured(p, y), measured(1 - p, 1 - y)
    for measure, sign in ((BRIER, 1), (SKILL, 1), (ERROR, 1), (GAP, -1)):
        assert two[measure]["estimate"] == pytest.approx(sign * one[measure]["estimate"], abs=1e-12)


def test_one_bin_is_the_size_of_the_gap():
    rows = measured(*study(100, 6, 0.2), bins=1)
    assert rows[ERROR]["estimate"] == pytest.approx(abs(rows[GAP]["estimate"]), abs=1e-12)


def test_answers_of_one_item_are_resampled_together():
    p, y = study(60, 7)
    single, whole = measured(p, y), measured(np.repeat(p, 4), np.repeat(y, 4), np.repeat(np.arange(60), 4))
    assert estimates(whole) == pytest.approx(estimates(single), abs=1e-12)
    apart = measured(np.repeat(p, 4), np.repeat(y, 4))
    for measure in (BRIER, GAP, RATE):
        width = [rows[measure]["ci_high"] - rows[measure]["ci_low"] for rows in (single, whole, apart)]
        assert width[1] == pytest.approx(width[0], rel=0.25)
        assert width[1] > 1.5 * width[2]


def test_curve_of_several_answers_an_item():
    # Items of 3 and 1 answers: 4² / (3² + 1²) = 1.6 effective answers, of rate 3/4.
    curve = curve_of([0.5] * 4, [1, 1, 1, 0], [1, 1, 1, 2], bins=1)
    bounds = proportion_confint(0.75 * 1.6, 1.6, method="wilson")
    assert tuple(curve.loc[0, ["ci_low", "ci_high"]]) == pytest.approx(bounds, abs=1e-12)
    assert curve["note"].tolist() == ["interval as of 1.6 answers: 4 answers of 2 items"]
    # Copies of an answer say nothing more.
    p, y = study(60, 8)
    one, two = curve_of(p, y), curve_of(np.repeat(p, 3), np.repeat(y, 3), np.repeat(np.arange(60), 3))
    columns = ["mean_probability", "rate", "ci_low", "ci_high"]
    np.testing.assert_allclose(one[columns], two[columns], atol=1e-12)


@pytest.mark.parametrize("outcome", [0, 1])
def test_people_accept_all_or_none(outcome):
    rows = measured([0.2, 0.4, 0.9], [outcome] * 3)
    assert math.isnan(rows[SKILL]["estimate"])
    assert rows[SKILL]["note"] == "undefined: people accept all of the answers or none"
    assert rows[RATE]["estimate"] == outcome
    assert rows[GAP]["estimate"] == pytest.approx(0.5 - outcome, abs=1e-12)


def test_perfect_probabilities():
    rows = measured([0, 1] * 10, [0, 1] * 10)
    assert estimates(rows) == [0, 1, 0, 0, 0.5]
    assert "true probabilities would give about 0.000" in rows[ERROR]["note"]
    assert "no interval: every resample gives the same value" in rows[BRIER]["note"]


def test_one_item_has_no_interval():
    rows = measured([0.2, 0.6], [0, 1], [1, 1])
    for row in rows.values():
        assert math.isnan(row["ci_low"])
        assert "no interval: 1 item" in row["note"]


@pytest.mark.parametrize(("p", "y"), [([], []), ([math.nan] * 2, [0, 1]), ([0.1, math.nan], [math.nan, 1])])
def test_nothing_to_count(p, y):
    rows = measured(p, y)
    for row in rows.values():
        assert math.isnan(row["estimate"])
        assert row["note"].startswith("undefined: no answer with a probability and a label")
        assert (row["n_used"], row["n_excluded"]) == (0, len(p))
    assert (rows[RATE]["numerator"], rows[RATE]["denominator"]) == (0, 0)
    assert curve_of(p, y)["n"].tolist() == [0] * 10


def test_what_is_left_out_is_told():
    rows = measured([0.2, math.nan, 0.6, 0.8], [0, 1, 1, math.nan])
    told = "2 of 4 answers left out: 1 without label, 1 without probability"
    assert all(row["note"].endswith(told) for row in rows.values())


@pytest.mark.parametrize(
    ("p", "y", "items", "bins", "message"),
    [
        ([0.1, 1.1], [0, 1], [1, 2], 10, "1 of 2 probabilities lie outside 0 to 1, first 1.1"),
        ([0.1, math.inf], [0, 1], [1, 2], 10, "1 of 2 probabilities are infinite"),
        ([0.1, 0.2], [0, 3], [1, 2], 10, "1 of 2 outcomes are none of 0, 1 and NaN, first 3"),
        ([0.1, 0.2], [0], [1, 2], 10, "probabilities, outcomes and items are not as many: 2, 1, 2"),
        ([0.1, 0.2], [0, 1], [1, 2], 0, "bins is 0"),
    ],
)
def test_refuses(p, y, items, bins, message):
    with pytest.raises(ValueError, match=message):
        measured(p, y, items, bins)
    with pytest.raises(ValueError, match=message):
        curve_of(p, y, items, bins)


def test_curve_refuses_a_level():
    with pytest.raises(ValueError, match="ci_level is 1"):
        curve_of([], [], ci_level=1)
