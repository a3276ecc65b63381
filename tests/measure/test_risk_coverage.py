"""Risk and coverage by hand, against naive twins and other libraries, under what must change nothing, and planted."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.estimates import Place, Settings
from judgelab.measure.risk_coverage import CURVE, confidence_signals, risk_coverage, risk_coverage_table
from judgelab.measure.rows import COLUMNS

from .conftest import ALPHA_BETA, make_normalized

A, B, T = ALPHA_BETA
SETTINGS = Settings(0.95, 200, 7)
OPTIONS = {"ci_level": 0.95, "resamples": 50, "seed": 7}
PLACE = Place("j", "pairwise", "original")
LETTERS = {A: "A", B: "B", T: T}


def measured(confidence, right, items=None, settings=SETTINGS, place=PLACE):
    confidence, right = (np.array(values, dtype=float) for values in (confidence, right))
    items = np.arange(len(right)) if items is None else np.array(items)
    curve, rows = risk_coverage(confidence, right, items, place=place, signal="stated", settings=settings)
    assert tuple(curve.columns) == CURVE
    area, gain = rows
    assert (area["measure"], gain["measure"]) == ("area_under_risk_coverage", "risk_coverage_gain")
    assert tuple(area) == COLUMNS
    return curve, area, gain


def calls_of(judge, name, preferred, first=A, **columns):
    """Pairwise calls that show ``first`` first; a preference None is an unusable reply."""
    letters = [None if p is None else {first: "A", T: T}.get(p, "B") for p in preferred]
    table = pd.DataFrame({"judge": judge, "strategy": "pairwise", "pass": name, "item_id": range(len(preferred))})
    table["system_x"], table["system_y"] = A, B
    table["verdict"] = pd.Series(letters, dtype=object)
    table["status"] = ["unusable" if p is None else "verdict" for p in preferred]
    return table.assign(**{key: pd.Series(list(values), dtype=object) for key, values in columns.items()})


HUMAN = [A, A, B, T, None]
ORIGINAL = {"a": [A, B, B, T, A], "b": [A, A, None, T, B], "c": [B, B, B, B, A]}
SWAPPED = {"a": [A, A, B, None, A], "b": [A, A, B, T, B]}


@pytest.fixture
def normalized():
    parts = [make_normalized(HUMAN, None, given, SWAPPED.get(judge), judge=judge) for judge, given in ORIGINAL.items()]
    return pd.concat(parts, ignore_index=True)


@pytest.fixture
def verdicts():
    stated = {"a": ["high", "low", "medium", None, "high"], "b": ["low"] * 5, "c": [None] * 5}
    parts = [calls_of(judge, "original", ORIGINAL[judge], confidence=stated[judge]) for judge in ORIGINAL]
    parts += [calls_of(judge, "swapped", SWAPPED[judge], B, confidence=["low"] * 5) for judge in SWAPPED]
    return pd.concat(parts, ignore_index=True)


def signal_of(table, judge, signal, pass_="original", column="confidence"):
    chosen = (table["judge"] == judge) & (table["signal"] == signal) & (table["pass"] == pass_)
    return [None if math.isnan(value) else value for value in table[chosen].sort_values("item_id")[column]]


# the curve and its area


def test_by_hand():
    confidence = [3, 3, 2, 2, 2, 1, math.nan, 3]
    right = [1, 1, 1, 0, 1, 0, 1, math.nan]
    curve, area, gain = measured(confidence, right)
    assert curve["threshold"].tolist() == [3, 2, 1]
    assert curve["n_decided"].tolist() == curve["denominator"].tolist() == [2, 5, 6]
    assert curve["numerator"].tolist() == [2, 4, 4]
    assert curve["coverage"].tolist() == [2 / 6, 5 / 6, 1]
    assert curve["agreement"].tolist() == [1, 4 / 5, 4 / 6]
    # 2/6 · 0 + 3/6 · 1/5 + 1/6 · 2/6 = 28/180
    assert area["estimate"] == pytest.approx(28 / 180, abs=1e-15)
    assert gain["estimate"] == pytest.approx(2 / 6 - 28 / 180, abs=1e-15)
    assert (area["n_used"], area["n_excluded"]) == (6, 2)
    assert area["note"].endswith("2 of 8 verdicts left out: 1 without verdict or reference, 1 without confidence")
    assert area["method"].startswith("step function over 3 distinct confidences; percentile bootstrap over items")
    assert (area["judge"], area["pass"], area["slice"]) == ("j", "original", "signal=stated")


def test_intervals_of_the_curve_are_wilsons_where_an_item_has_one_verdict():
    rng = np.random.default_rng(1)
    curve, *_ = measured(rng.integers(0, 5, 80), rng.random(80) < 0.7)
    for _, point in curve.iterrows():
        expected = proportion_confint(point["numerator"], point["denominator"], method="wilson")
        assert (point["ci_low"], point["ci_high"]) == pytest.approx(expected, abs=1e-12)


def naive(confidence, right):
    """Every threshold anew, over plain lists."""
    pairs = [(c, r) for c, r in zip(confidence, right, strict=True) if not math.isnan(c) and not math.isnan(r)]
    points, area, before = [], 0.0, 0
    for threshold in sorted({c for c, _ in pairs}, reverse=True):
        decided = [r for c, r in pairs if c >= threshold]
        points.append((threshold, len(decided) / len(pairs), sum(decided), len(decided)))
        area += (len(decided) - before) / len(pairs) * (1 - sum(decided) / len(decided))
        before = len(decided)
    return points, area if pairs else math.nan


outcome = st.tuples(st.sampled_from([0.0, 0.25, 1.0, math.nan]), st.sampled_from([0.0, 1.0, math.nan]))


@profile(max_examples=60, deadline=None)
@given(st.lists(outcome, max_size=14), st.integers(1, 3))
def test_against_a_naive_twin(pairs, per_item):
    confidence, right = [c for c, _ in pairs], [r for _, r in pairs]
    items = [number // per_item for number in range(len(pairs))]
    curve, area, gain = measured(confidence, right, items, Settings(0.95, 10, 1))
    points, expected = naive(confidence, right)
    got = curve[["threshold", "coverage", "numerator", "n_decided"]].to_numpy().tolist()
    assert got == [list(point) for point in points]
    assert area["estimate"] == pytest.approx(expected, abs=1e-12, nan_ok=True)
    if points:
        full = 1 - points[-1][2] / points[-1][3]
        assert gain["estimate"] == pytest.approx(full - expected, abs=1e-12)
        assert 0 <= area["estimate"] <= 1


def test_without_ties_it_is_the_mean_error_rate_of_the_most_confident():
    rng = np.random.default_rng(2)
    confidence, right = rng.random(50), rng.random(50) < 0.6
    errors = 1 - right[np.argsort(-confidence)]
    expected = (np.cumsum(errors) / np.arange(1, 51)).mean()
    assert measured(confidence, right)[1]["estimate"] == pytest.approx(expected, abs=1e-12)


def test_the_best_order_puts_every_error_last():
    right = [1] * 6 + [0] * 4
    best, worst = (measured(np.arange(10)[::step], right)[1]["estimate"] for step in (-1, 1))
    rng = np.random.default_rng(3)
    others = [measured(rng.permutation(10), right, settings=Settings(0.95, 1, 1))[1]["estimate"] for _ in range(50)]
    assert best == pytest.approx(sum(errors / (6 + errors) for errors in range(1, 5)) / 10, abs=1e-12)
    assert best < min(others) < max(others) < worst


def test_the_sign_of_the_gain_is_that_of_scikit_learns_auc():
    rng = np.random.default_rng(4)
    for slope in (-1.5, 1.5):
        right = rng.random(400) < 0.6
        confidence = slope * right + rng.normal(size=400)
        gain = measured(confidence, right, settings=Settings(0.95, 20, 1))[2]["estimate"]
        assert np.sign(gain) == np.sign(roc_auc_score(right, confidence) - 0.5) == np.sign(slope)


def test_planted_truth():
    # Right with probability c, c uniform on (0, 1): the surest share x errs with x/2, so A = 1/4 and the gain 1/4.
    rng = np.random.default_rng(5)
    confidence = rng.random(1500)
    right = rng.random(1500) < confidence
    _, area, gain = measured(confidence, right, settings=Settings(0.95, 100, 1))
    assert area["ci_low"] < 0.25 < area["ci_high"]
    assert gain["ci_low"] < 0.25 < gain["ci_high"]
    assert area["estimate"] == pytest.approx(0.25, abs=0.03)
    _, area, gain = measured(rng.permutation(confidence), right, settings=Settings(0.95, 100, 1))
    assert gain["ci_low"] < 0 < gain["ci_high"]


def test_only_the_order_of_the_confidences_counts():
    rng = np.random.default_rng(6)
    confidence, right = rng.integers(1, 6, 60).astype(float), rng.random(60) < 0.7
    one, two = measured(confidence, right), measured(np.exp(confidence) - 50, right)
    assert one[1:] == two[1:]
    pd.testing.assert_frame_equal(one[0].drop(columns="threshold"), two[0].drop(columns="threshold"))


@pytest.mark.parametrize("per_item", [1, 3])
def test_the_order_of_the_verdicts_counts_for_nothing(per_item):
    rng = np.random.default_rng(7)
    confidence, right = rng.integers(1, 6, 60).astype(float), rng.random(60) < 0.7
    items = np.repeat(np.arange(60 // per_item), per_item)
    order = rng.permutation(60)
    one, two = measured(confidence, right, items), measured(confidence[order], right[order], items[order])
    assert one[1:] == two[1:]
    pd.testing.assert_frame_equal(one[0], two[0])


def test_verdicts_of_one_item_are_resampled_together():
    rng = np.random.default_rng(8)
    confidence, right = np.repeat(rng.integers(1, 4, 40), 5), np.repeat(rng.random(40) < 0.7, 5)
    whole, single = (measured(confidence, right, items) for items in (np.repeat(np.arange(40), 5), None))
    assert whole[1]["estimate"] == single[1]["estimate"]
    assert whole[1]["ci_high"] - whole[1]["ci_low"] > 1.5 * (single[1]["ci_high"] - single[1]["ci_low"])
    assert whole[0][["ci_low", "agreement", "ci_high"]].apply(lambda point: point.is_monotonic_increasing, axis=1).all()
    width = [(curve["ci_high"] - curve["ci_low"]).to_numpy() for curve, *_ in (whole, single)]
    assert (width[0] > width[1]).all()


def test_many_thresholds_take_the_sparse_table(monkeypatch):
    rng = np.random.default_rng(9)
    confidence, right, items = rng.random(90), rng.random(90) < 0.7, np.repeat(np.arange(30), 3)
    one = measured(confidence, right, items)
    monkeypatch.setattr("judgelab.measure.risk_coverage.DENSE", 0)
    two = measured(confidence, right, items)
    assert one[1]["estimate"] == two[1]["estimate"]
    assert (one[1]["ci_low"], one[1]["ci_high"]) == pytest.approx((two[1]["ci_low"], two[1]["ci_high"]), abs=0.05)
    monkeypatch.setattr("judgelab.measure.risk_coverage.MAXIMUM_THRESHOLDS", 10)
    assert measured(confidence, right, items)[0]["ci_low"].isna().all()


def test_all_equally_sure():
    curve, area, gain = measured([2] * 10, [1] * 7 + [0] * 3)
    assert len(curve) == 1
    assert area["estimate"] == pytest.approx(0.3, abs=1e-15)
    assert gain["estimate"] == 0
    assert "every verdict has the same confidence" in area["note"]


@pytest.mark.parametrize(("right", "expected"), [([0] * 6, 1), ([1] * 6, 0)])
def test_all_wrong_and_all_right(right, expected):
    curve, area, gain = measured([1, 2, 3, 4, 5, 6], right)
    assert (area["estimate"], gain["estimate"]) == (expected, 0)
    assert (curve["agreement"] == 1 - expected).all()
    assert "no interval: every resample gives the same value" in area["note"]


@pytest.mark.parametrize(
    ("confidence", "right"),
    [([], []), ([math.nan] * 3, [1, 0, 1]), ([1, 2, 3], [math.nan] * 3), ([1, math.nan], [math.nan, 1])],
)
def test_nothing_to_count(confidence, right):
    curve, *rows = measured(confidence, right)
    assert len(curve) == 0
    for row in rows:
        assert math.isnan(row["estimate"])
        assert row["note"].startswith("undefined: no verdict with a confidence and a label")
        assert (row["n_used"], row["n_excluded"]) == (0, len(right))


def test_the_slice_of_a_place_is_kept():
    _, area, _ = measured([1, 2], [0, 1], place=Place("j", slice_="category=c"))
    assert area["slice"] == "category=c, signal=stated"


def test_misuse():
    with pytest.raises(ValueError, match="2 confidences, 1 outcomes, 1 items: not as many"):
        measured([1, 2], [1])
    with pytest.raises(ValueError, match="1 of 2 confidences are infinite, first inf"):
        measured([1, math.inf], [1, 0])
    with pytest.raises(ValueError, match=r"1 of 2 outcomes are none of 0, 1 and NaN, first 0\.5"):
        measured([1, 2], [1, 0.5])


# signals


def test_signals_by_hand(verdicts, normalized):
    table = confidence_signals(verdicts, normalized, labels=ALPHA_BETA)
    expected = ["judge", "pass", "item_id", "system_x", "system_y", "signal", "confidence", "right"]
    assert table.columns.tolist() == expected
    assert signal_of(table, "a", "stated") == [3, 1, 2, None, 3]
    assert signal_of(table, "a", "stated", column="right") == [1, 0, 1, 1, None]
    assert signal_of(table, "b", "stated") == [1, 1, None, 1, 1]  # 2 is unusable
    assert signal_of(table, "b", "stated", column="right") == [1, 1, None, 1, None]
    assert signal_of(table, "c", "stated") == []  # states nothing
    # a: A B B T A against b: A A - T B and c: B B B B A
    assert signal_of(table, "a", "panel_spread") == [1 / 2, 1 / 2, 1, 1 / 2, 1 / 2]
    assert signal_of(table, "b", "panel_spread") == [1 / 2, 0, None, 1 / 2, 0]
    assert signal_of(table, "a", "panel_spread", "swapped") == [1, 1, 1, None, 0]
    assert signal_of(table, "a", "swap_stability") == [1, 0, 1, None, 1]
    assert signal_of(table, "a", "swap_stability", "swapped") == [1, 0, 1, None, 1]
    assert signal_of(table, "b", "swap_stability") == [1, 1, None, 1, 1]
    assert signal_of(table, "c", "swap_stability") == []
    assert set(table["signal"]) == {"stated", "panel_spread", "swap_stability"}


def test_a_judge_outside_the_panel_has_a_spread_and_no_vote(verdicts, normalized):
    table = confidence_signals(verdicts, normalized, labels=ALPHA_BETA, panel=["a", "b"])
    assert signal_of(table, "a", "panel_spread") == [1, 0, None, 1, 0]
    assert signal_of(table, "c", "panel_spread") == [0, 1 / 2, 1, 0, 1 / 2]


def test_log_probabilities_where_there_are_any(verdicts, normalized):
    given = verdicts.assign(logprob_margin=np.where(verdicts["judge"] == "b", np.arange(len(verdicts)) / 2, np.nan))
    table = confidence_signals(given, normalized, labels=ALPHA_BETA)
    assert signal_of(table, "b", "logprob_margin") == [2.5, 3, None, 4, 4.5]
    assert signal_of(table, "a", "logprob_margin") == []


def test_direct_verdicts_have_only_a_spread(verdicts):
    parts = [make_normalized([A, B], given, judge=judge) for judge, given in (("a", [A, A]), ("b", [A, T]))]
    table = confidence_signals(verdicts.iloc[:0], pd.concat(parts, ignore_index=True), labels=ALPHA_BETA)
    assert table[["judge", "pass", "signal", "confidence", "right"]].to_numpy().tolist() == [
        ["a", "direct", "panel_spread", 1, 1],
        ["a", "direct", "panel_spread", 0, 0],
        ["b", "direct", "panel_spread", 1, 1],
        ["b", "direct", "panel_spread", 0, 0],
    ]


preference = st.sampled_from([A, B, T, None])


@profile(max_examples=12, deadline=None)
@given(st.lists(st.tuples(preference, preference, preference, preference), min_size=1, max_size=8))
def test_spread_against_a_naive_twin(rows):
    human, *given_ = (list(column) for column in zip(*rows, strict=True))
    parts = [make_normalized(human, None, values, judge=judge) for judge, values in zip("abc", given_, strict=True)]
    verdicts = pd.concat([calls_of(j, "original", v) for j, v in zip("abc", given_, strict=True)], ignore_index=True)
    table = confidence_signals(verdicts, pd.concat(parts, ignore_index=True), labels=ALPHA_BETA)
    for number, judge in enumerate("abc"):
        expected = []
        for _, *preferred in rows:
            own, others = preferred[number], [p for n, p in enumerate(preferred) if n != number and p is not None]
            expected.append(sum(p == own for p in others) / len(others) if own is not None and others else None)
        got = signal_of(table, judge, "panel_spread")
        assert got == (expected if any(value is not None for value in expected) else [])


def test_misuse_of_signals(verdicts, normalized):
    def refused(match, calls=verdicts, **options):
        with pytest.raises(ValueError, match=match):
            confidence_signals(calls, normalized, labels=ALPHA_BETA, **options)

    refused("1 of 2 judges unknown, first 'x'", panel=["a", "x"])
    refused("1 of 2 judges named twice, first 'a'", panel=["a", "a"])
    refused("missing column status", verdicts.drop(columns="status"))
    refused(
        "1 of 15 calls occur twice in a pass; first judge a, item 0",
        pd.concat([verdicts, verdicts.head(1)]),
    )
    sure = verdicts.assign(confidence=["certain", *verdicts["confidence"].iloc[1:]])
    refused("1 of 23 stated confidences are unknown, first 'certain'; allowed are low, medium, high", sure)
    refused("23 of 23 margins are infinite, first inf", verdicts.assign(logprob_margin=math.inf))


# the table


def table_of(verdicts, normalized, **options):
    return risk_coverage_table(verdicts, normalized, **{"labels": ALPHA_BETA} | OPTIONS | options)


def test_table_by_hand(verdicts, normalized):
    curves, rows = table_of(verdicts, normalized)
    assert tuple(rows.columns) == COLUMNS
    assert curves.columns.tolist() == ["judge", "pass", *CURVE]
    assert set(rows["pass"]) == set(curves["pass"]) == {"original"}
    found = rows[rows["measure"] == "area_under_risk_coverage"]
    assert found[["judge", "slice"]].to_numpy().tolist() == [
        ["a", "signal=stated"],
        ["a", "signal=panel_spread"],
        ["a", "signal=swap_stability"],
        ["b", "signal=stated"],
        ["b", "signal=panel_spread"],
        ["b", "signal=swap_stability"],
        ["c", "signal=panel_spread"],
    ]
    # a, stated: high right, medium right, low wrong; 3 without a confidence, 4 without a label: 1/3 · 1/3
    assert found["estimate"].iloc[0] == pytest.approx(1 / 9, abs=1e-15)
    assert (found["n_used"].iloc[0], found["n_excluded"].iloc[0]) == (3, 2)
    # a, spread: 2 at 1 right, 0 1 3 at 1/2 with one wrong: 3/4 · 1/4
    assert found["estimate"].iloc[1] == pytest.approx(3 / 16, abs=1e-15)
    stated = curves[(curves["judge"] == "a") & (curves["signal"] == "stated")]
    assert stated["numerator"].tolist() == [1, 2, 2]


def test_names_and_order_change_nothing(verdicts, normalized):
    names = {A: "zeta", B: "eta"}
    turned = normalized.replace(names).sample(frac=1, random_state=1)
    calls = verdicts.replace(names).sample(frac=1, random_state=2)
    one, two = table_of(verdicts, normalized), table_of(calls, turned, labels=("zeta", "eta", T))
    for left, right in zip(one, two, strict=True):
        pd.testing.assert_frame_equal(left, right)


def test_one_judge_has_no_spread_and_nothing_planned_has_no_rows(verdicts, normalized):
    alone = normalized[normalized["judge"] == "a"]
    _, rows = table_of(verdicts, alone)
    assert set(rows["slice"]) == {"signal=stated", "signal=swap_stability"}
    for table in (make_normalized([]), make_normalized([A, B], [A, B])):
        curves, rows = table_of(verdicts.iloc[:0], table)
        assert (len(curves), len(rows)) == (0, 0)
        assert curves.columns.tolist() == ["judge", "pass", *CURVE]
        assert tuple(rows.columns) == COLUMNS


def test_no_human_label(verdicts, normalized):
    curves, rows = table_of(verdicts, normalized.assign(human=pd.Series([np.nan] * len(normalized), dtype=object)))
    assert len(curves) == 0
    assert rows["estimate"].isna().all()
    assert rows["note"].str.startswith("undefined: no verdict with a confidence and a label").all()
