"""Self-consistency: by hand, against loops and the package krippendorff, degenerate input, and Prometheus."""

from __future__ import annotations

import itertools

import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.repeats import self_consistency_table
from judgelab.measure.rows import COLUMNS
from judgelab.study.sources import read_prometheus

from .conftest import pick

FEW = {"ci_level": 0.95, "resamples": 100, "seed": 3}


def make_repeats(by_rater, **more):
    """{rater: [ratings of item 0, ratings of item 1, ...]}, None for no rating."""
    rows = [
        {"rater": rater, "item_id": item, "repeat": number, "value": value}
        for rater, items in by_rater.items()
        for item, values in enumerate(items)
        for number, value in enumerate(values, start=1)
    ]
    return pd.DataFrame(rows, columns=["rater", "item_id", "repeat", "value"]).assign(**more)


def row(table, measure, slice_):
    return pick(table, measure, "", slice_, judge="")


def test_by_hand():
    table = self_consistency_table(make_repeats({"r": ["aaa", "aab", "abc", "b", "cc"]}), **FEW)
    line = row(table, "all_equal", "rater=r")
    # aaa and cc of aaa, aab, abc, cc; item 3 was rated once
    assert (line["numerator"], line["denominator"], line["n_used"], line["n_excluded"]) == (2, 4, 4, 1)
    assert line["note"] == "1 of 5 units left out: 1 rated once"
    assert (line["ci_low"], line["ci_high"]) == pytest.approx(proportion_confint(2, 4, method="wilson"))
    # equal pairs: 3 of 3, 1 of 3, 0 of 3, 1 of 1; the mean over units is (1 + 1/3 + 0 + 1) / 4
    assert row(table, "pairwise_consistency", "rater=r")["estimate"] == pytest.approx(7 / 12, abs=1e-15)
    assert set(table["slice"]) == {"rater=r"}
    assert tuple(table.columns) == COLUMNS


ratings = st.lists(st.lists(st.sampled_from([1, 2, 3, None]), min_size=1, max_size=4), min_size=1, max_size=8)


@profile(max_examples=60)
@given(ratings, ratings)
def test_equals_loops_and_the_package(one, two):
    table = self_consistency_table(make_repeats({"r": one, "s": two}), **(FEW | {"resamples": 5}), level="ordinal")
    raters = {"rater=r": one, "rater=s": two, "all": [*one, *two]}
    for slice_, items in raters.items():
        if slice_ not in set(table["slice"]):
            continue  # no rating of this rater, or of the other one, at all
        units = [[value for value in values if value is not None] for values in items]
        several = [values for values in units if len(values) > 1]
        line = row(table, "all_equal", slice_)
        assert line["denominator"] == len(several)
        assert line["numerator"] == sum(len(set(values)) == 1 for values in several)
        shares = [np.mean([a == b for a, b in itertools.combinations(values, 2)]) for values in several]
        line = row(table, "pairwise_consistency", slice_)
        assert line["estimate"] == (
            pytest.approx(np.mean(shares), abs=1e-12) if shares else pytest.approx(np.nan, nan_ok=True)
        )
        line = row(table, "krippendorff_alpha_repeats", slice_)
        used = {value for values in several for value in values}
        if len(used) < 2:
            assert np.isnan(line["estimate"])
            assert line["note"].startswith("undefined: ")
            continue
        matrix = np.full((4, len(units)), np.nan)
        for unit, values in enumerate(units):
            matrix[: len(values), unit] = values
        expected = krippendorff.alpha(matrix, level_of_measurement="ordinal")
        assert line["estimate"] == pytest.approx(expected, abs=1e-9)


def test_order_and_names_change_nothing():
    rng = np.random.default_rng(1)
    given_ = {name: [list(rng.choice(list("ab"), 3)) for _ in range(20)] for name in ("r", "s")}
    repeats = make_repeats(given_)
    expected = self_consistency_table(repeats, **FEW)
    shuffled = self_consistency_table(repeats.sample(frac=1, random_state=1), **FEW)
    keys = ["slice", "measure"]
    columns = [*keys, "estimate", "numerator", "denominator"]
    pd.testing.assert_frame_equal(
        expected.sort_values(keys)[columns].reset_index(drop=True),
        shuffled.sort_values(keys)[columns].reset_index(drop=True),
    )
    turned = self_consistency_table(repeats.replace({"value": {"a": "b", "b": "a"}}), **FEW)
    np.testing.assert_allclose(turned["estimate"], expected["estimate"], atol=1e-12)


def test_a_rater_is_compared_with_himself_only():
    # Both repeat themselves perfectly and never agree with each other.
    table = self_consistency_table(make_repeats({"r": ["aa", "bb"] * 5, "s": ["bb", "aa"] * 5}), **FEW)
    for measure in ("all_equal", "pairwise_consistency", "krippendorff_alpha_repeats"):
        assert row(table, measure, "all")["estimate"] == 1


def test_pairs_of_an_item_are_units_of_their_own_and_stay_together():
    pairs = make_repeats({"r": ["aa", "ab"] * 10})
    both = pd.concat([pairs.assign(system_x="x", system_y=name) for name in ("y", "z")], ignore_index=True)
    line = row(self_consistency_table(both, **(FEW | {"resamples": 2000})), "all_equal", "rater=r")
    assert (line["numerator"], line["denominator"], line["n_used"]) == (20, 40, 20)
    assert line["method"].startswith("percentile bootstrap over items")
    # as wide as for 20 items: 2 · 1.96 · √(0.25 / 20) = 0.438
    assert line["ci_high"] - line["ci_low"] == pytest.approx(0.438, abs=0.07)


@pytest.mark.parametrize(
    ("by_rater", "measure", "reason"),
    [
        ({}, "all_equal", "undefined"),
        ({"r": ["a", "b"], "s": ["a", "c"]}, "all_equal", "undefined: no judgment to count; 4 of 4 units left out"),
        ({"r": ["a", "b"], "s": ["a", "c"]}, "krippendorff_alpha_repeats", "undefined: nothing was rated twice"),
        ({"r": ["aa", "aa"], "s": ["aa"]}, "krippendorff_alpha_repeats", "undefined: every label is the same"),
    ],
)
def test_what_is_not_defined(by_rater, measure, reason):
    line = row(self_consistency_table(make_repeats(by_rater), **FEW), measure, "all")
    assert np.isnan(line["estimate"])
    assert line["note"].startswith(reason)


def test_input_that_cannot_be_used_is_refused():
    repeats = make_repeats({"r": ["aa", "ab"]})
    twice = pd.concat([repeats, repeats.tail(1)], ignore_index=True)
    with pytest.raises(ValueError, match=r"1 of 5 ratings repeat .*first rater r, item 1, repeat 2"):
        self_consistency_table(twice, **FEW)
    with pytest.raises(ValueError, match="missing column repeat"):
        self_consistency_table(repeats.drop(columns="repeat"), **FEW)
    with pytest.raises(ValueError, match="level is 'real'; allowed are nominal, ordinal, interval, ratio"):
        self_consistency_table(repeats, level="real", **FEW)
    with pytest.raises(ValueError, match="values are not a finite number"):
        self_consistency_table(repeats, level="interval", **FEW)


@pytest.mark.parametrize(("dataset", "equal", "alpha"), [("vicuna", 62.2, 0.8075), ("mt_bench", 44.1, 0.8510)])
def test_prometheus_published_figures(shared, dataset, equal, alpha):
    # ../shared/data/README.md: all equal 62.2 % / 44.1 %, interval alpha .8075 / .8510
    scores = read_prometheus(shared / "data/prometheus_gpt4_repeats")
    own = scores[scores["dataset"] == dataset].assign(rater="gpt-4")
    table = self_consistency_table(own, level="interval", **FEW)
    line = row(table, "all_equal", "rater=gpt-4")
    assert (round(100 * line["estimate"], 1), line["denominator"]) == (equal, 320)
    assert round(row(table, "krippendorff_alpha_repeats", "rater=gpt-4")["estimate"], 4) == alpha
