"""Krippendorff's alpha at four levels: published values, two packages, a naive twin, and input that has none."""

import itertools

import evalica
import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from judgelab.measure import alpha_levels
from judgelab.measure.alpha import LEVELS, alpha_table
from judgelab.measure.alpha_levels import prepare
from judgelab.measure.resampling import bootstrap, generator

# Krippendorff, "Computing Krippendorff's alpha-reliability", 2011, section C: four observers, twelve units.
CANONICAL = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""
# The same source, sections C to E.
PUBLISHED = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849, "ratio": 0.797}


def canonical():
    rows = [line.split() for line in CANONICAL.strip().splitlines()]
    return np.array([[np.nan if value == "." else float(value) for value in row] for row in rows])


def as_rows(ratings):
    rater, item = np.indices(ratings.shape)
    return pd.DataFrame({"item_id": item.ravel(), "rater": rater.ravel(), "value": ratings.ravel()})


def alpha(ratings, level, options, **more):
    return alpha_table(ratings, level=level, **options, **more).iloc[0]


@pytest.mark.parametrize("level", LEVELS)
def test_the_canonical_example_gives_the_published_values(level, options):
    line = alpha(as_rows(canonical()), level, options)
    assert round(line["estimate"], 3) == PUBLISHED[level]
    assert line["estimate"] == pytest.approx(krippendorff.alpha(canonical(), level_of_measurement=level), abs=1e-12)
    assert line["estimate"] == pytest.approx(evalica.alpha(pd.DataFrame(canonical()), level).alpha, abs=1e-12)
    assert line["ci_low"] < line["estimate"] < line["ci_high"]
    # Unit 12 has one rating: of its twelve units eleven can be paired.
    assert (line["n_used"], line["n_excluded"]) == (11, 1)
    assert "1 of 12 items left out: 1 with one rating" in line["note"]
    assert line["method"].startswith(f"{level} level; percentile bootstrap over items")


tables = st.integers(2, 4).flatmap(
    lambda raters: st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, 4.5, np.nan]), min_size=raters, max_size=raters),
        min_size=2,
        max_size=12,
    )
)


def pairable(ratings):
    """Values of the units with two ratings or more."""
    counted = ratings[:, (~np.isnan(ratings)).sum(axis=0) >= 2]
    return counted[~np.isnan(counted)]


@given(tables)
@settings(max_examples=1000)
def test_every_level_equals_both_packages(units):
    ratings = np.array(units).T
    assume(len(np.unique(pairable(ratings))) > 1)
    for level in LEVELS:
        line = alpha(as_rows(ratings), level, {"ci_level": 0.95, "resamples": 1, "seed": 1})
        assert line["estimate"] == pytest.approx(krippendorff.alpha(ratings, level_of_measurement=level), abs=1e-9)
        assert line["estimate"] == pytest.approx(evalica.alpha(pd.DataFrame(ratings), level).alpha, abs=1e-9)


def naive(ratings, level):
    """Observed and expected distance over every two ratings, one by one."""
    units = [[value for value in unit if not np.isnan(value)] for unit in ratings.T]
    units = [unit for unit in units if len(unit) >= 2]
    every = [value for unit in units for value in unit]

    def rank(value):
        return sum(other < value for other in every) + sum(other == value for other in every) / 2

    distance = {
        "nominal": lambda a, b: float(a != b),
        "ordinal": lambda a, b: (rank(a) - rank(b)) ** 2,
        "interval": lambda a, b: (a - b) ** 2,
        "ratio": lambda a, b: ((a - b) / (a + b)) ** 2 if a + b else 0.0,
    }[level]
    n = len(every)
    observed = sum(sum(distance(a, b) for a, b in itertools.permutations(u, 2)) / (len(u) - 1) for u in units) / n
    expected = sum(distance(a, b) for a, b in itertools.permutations(every, 2)) / (n * (n - 1))
    return 1 - observed / expected if expected else np.nan


@pytest.mark.parametrize("few", [20, 0])  # values counted together, and as for many distinct values
@pytest.mark.parametrize("level", LEVELS)
def test_resampled_alpha_equals_a_naive_twin_on_the_drawn_items(level, few, monkeypatch):
    monkeypatch.setattr(alpha_levels, "FEW", few)
    rng = np.random.default_rng(3)
    ratings = rng.choice([0.0, 1.0, 2.0, 3.5], (3, 14))
    ratings[0, rng.random(14) < 0.3] = np.nan
    items = np.arange(14) // 2  # two units an item, which stay together
    units, raters = np.nonzero(~np.isnan(ratings.T))
    scale, codes = np.unique(ratings[raters, units], return_inverse=True)
    table, statistic = prepare(items, units, codes, scale, level)
    rows = np.eye(len(table.counts)) if table.rows is None else table.rows
    rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
    for _ in range(8):
        drawn = rng.integers(0, 7, 7)
        # Each item's own row is that of the table of it alone.
        sums = np.zeros((1, rows.shape[1]))
        for item in drawn:
            if few == 0 and level != "interval":
                sums += rows[item]
            else:
                mine = np.isin(units, np.flatnonzero(items == item))
                sums += _row_of(items, units, codes, scale, level, mine, rows)
        expected = naive(np.concatenate([ratings[:, items == item] for item in drawn], axis=1), level)
        assert statistic(sums)[0, 0] == pytest.approx(expected, abs=1e-9)


def _row_of(items, units, codes, scale, level, mine, rows):
    """What one item contributes: what the totals lose without it. The interval level measures from one centre."""
    if level == "interval":
        counts = np.bincount(codes, minlength=len(scale))
        centred = (scale - scale[np.abs(scale - counts @ scale / counts.sum()).argmin()])[codes]
        parts = np.zeros(4)
        for unit in np.unique(units[mine]):
            values = centred[units == unit]
            m = len(values)
            parts += [m, values.sum(), (values**2).sum(), (m * (values**2).sum() - values.sum() ** 2) / (m - 1)]
        return parts
    _, places = np.unique(units[mine], return_inverse=True)
    alone, _ = prepare(np.zeros(places.max() + 1, dtype=np.int64), places, codes[mine], scale, level)
    assert any(np.allclose(alone.totals[0], row) for row in rows)
    return alone.totals


@pytest.mark.parametrize("level", ["ordinal", "ratio"])
def test_many_distinct_values_give_the_same_estimate(level, options):
    # The package holds units x values x values at once: 60 x 180 x 180.
    ratings = np.random.default_rng(5).gamma(2.0, 3.0, (1, 60)) + np.random.default_rng(6).random((3, 60))
    line = alpha(as_rows(ratings), level, options)
    expected = krippendorff.alpha(ratings, level_of_measurement=level)
    assert line["estimate"] == pytest.approx(expected, abs=1e-9)
    assert line["ci_low"] < line["estimate"] < line["ci_high"]


def test_too_many_distinct_values_have_no_interval_at_the_ratio_level(options, monkeypatch):
    monkeypatch.setattr("judgelab.measure.alpha.MAXIMUM_VALUES", 4)
    line = alpha(as_rows(canonical()), "ratio", options)
    assert round(line["estimate"], 3) == PUBLISHED["ratio"]
    assert "no interval: more than 4 distinct values; 1 of 12 items left out" in line["note"]


@pytest.mark.parametrize("level", ["nominal", "ordinal", "ratio"])
def test_both_ways_of_counting_have_one_interval(level, monkeypatch):
    ratings = as_rows(np.random.default_rng(7).integers(1, 5, (3, 60)).astype(float))
    options = {"ci_level": 0.95, "resamples": 4_000, "seed": 1}
    one = alpha(ratings, level, options)
    monkeypatch.setattr(alpha_levels, "FEW", 0)
    two = alpha(ratings, level, options)
    assert one["estimate"] == pytest.approx(two["estimate"], abs=1e-12)
    # Other random numbers, the same distribution: bounds of 4,000 resamples differ by their own error.
    assert [one["ci_low"], one["ci_high"]] == pytest.approx([two["ci_low"], two["ci_high"]], abs=0.02)


def test_units_of_an_item_are_resampled_together():
    units, codes = np.repeat(np.arange(4), 2), np.array([0, 0, 1, 1, 0, 1, 0, 1])
    table, statistic = prepare(np.array([0, 0, 1, 1]), units, codes, np.arange(2.0), "nominal")
    values = bootstrap(table, statistic, resamples=200, rng=generator(1, "test"))
    # One item agrees on both units, one on none. Drawn twice they give 1 and 1 - 7 * 8 / 32, together 1 - 7 * 4 / 32.
    assert set(np.round(np.unique(values), 12)) == {-0.75, 0.125, 1.0}


@pytest.mark.parametrize("level", LEVELS)
def test_order_of_rows_and_names_of_raters_change_nothing(level, options):
    rows = as_rows(canonical())
    turned = rows.sample(frac=1, random_state=2).assign(rater=lambda table: "r" + (9 - table["rater"]).astype(str))
    assert alpha(rows, level, options).equals(alpha(turned, level, options))


def test_what_each_level_does_not_see(options):
    rows = as_rows(canonical())
    base = {level: alpha(rows, level, options)["estimate"] for level in LEVELS}

    def same(level, change):
        changed = alpha(rows.assign(value=change(rows["value"])), level, options)["estimate"]
        return changed == pytest.approx(base[level], abs=1e-9)

    assert same("nominal", lambda value: value.map({1: "e", 2: "a", 3: "c", 4: "b", 5: "d"}))
    assert same("ordinal", lambda value: value**3)
    assert same("interval", lambda value: 1e6 + 7 * value)
    assert same("ratio", lambda value: 7 * value)
    assert not same("interval", lambda value: value**3)
    assert not same("ratio", lambda value: 1 + value)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([[1, 1, 1], [1, 1, 1]], "is the same"),
        ([[1, 1, 2], [1, 1, np.nan]], "is the same"),  # the 2 is alone in its unit
        ([[1, 2, 1]], "1 rater, no unit with two ratings"),
        ([[1, np.nan], [np.nan, 2]], "2 raters, no unit with two ratings"),
        ([[np.nan], [np.nan]], "0 raters, no unit with two ratings"),
        (np.zeros((2, 0)), "0 raters"),
        ([[0.1 + 0.2, 0.1 + 0.2], [0.1 + 0.2, 0.1 + 0.2]], "is the same"),
        ([[0, 0], [0, 0]], "is the same"),
    ],
)
def test_without_variation_or_pairs_alpha_is_undefined(level, values, reason, options):
    line = alpha(as_rows(np.array(values, dtype=float)), level, options)
    assert np.isnan(line["estimate"])
    assert np.isnan(line["ci_low"])
    assert line["note"].startswith("undefined: ")
    assert reason in line["note"]


def test_perfect_agreement_and_few_items(options):
    line = alpha(as_rows(np.array([[1.0, 2.0, 3.0] * 5] * 2)), "interval", options)
    assert line["estimate"] == 1
    assert "no interval: every resample gives the same value" in line["note"]
    line = alpha(as_rows(np.array([[1.0], [2.0]])), "interval", options)
    assert (line["estimate"], line["n_used"]) == (0, 1)  # one unit: the observed distance is the expected one
    assert "no interval: 1 item" in line["note"]


@pytest.mark.parametrize(
    ("change", "level", "message"),
    [
        ({"rater": [0, 0, 1, 0]}, "nominal", "1 of 4 ratings repeat a rater and unit; first item 0, rater 0"),
        ({"value": [1, np.inf, 2, 3]}, "ordinal", "1 of 4 values are not a finite number.*first inf"),
        ({"value": [1, "much", 2, 3]}, "interval", "1 of 4 values are not a finite number.*first 'much'"),
        ({"value": [1, -1, 2, -3]}, "ratio", "2 of 4 values are not a finite number of 0 or more.*first -1"),
        ({"rater": [0, 1, None, 1]}, "nominal", "1 of 4 ratings do not name their item_id, rater; first without rater"),
        ({}, "metric", "level is 'metric'; allowed are nominal, ordinal, interval, ratio"),
    ],
)
def test_input_that_cannot_be_used_is_refused(change, level, message, options):
    rows = pd.DataFrame({"item_id": [0, 0, 0, 1], "rater": [0, 1, 2, 0], "value": [1, 2, 2, 1]}).assign(**change)
    with pytest.raises(ValueError, match=message):
        alpha_table(rows, level=level, **options)


def test_missing_columns_and_bad_options_are_refused(options):
    rows = as_rows(canonical())
    with pytest.raises(ValueError, match="missing column rater"):
        alpha_table(rows.drop(columns="rater"), level="nominal", **options)
    with pytest.raises(ValueError, match="resamples is 0"):
        alpha_table(rows, level="nominal", **options | {"resamples": 0})


def test_a_unit_may_be_smaller_than_an_item(options):
    rows = pd.concat([as_rows(canonical()).assign(unit="a"), as_rows(canonical()[::-1]).assign(unit="b")])
    line = alpha(rows, "nominal", options)
    both = np.concatenate([canonical(), canonical()[::-1]], axis=1)
    assert line["estimate"] == pytest.approx(krippendorff.alpha(both, level_of_measurement="nominal"), abs=1e-12)
    assert line["n_used"] == 11


def test_the_interval_holds_the_true_alpha():
    rng = np.random.default_rng(11)

    def study(n):
        return np.clip(np.round(rng.normal(3, 1, n) + rng.normal(0, 1, (3, n))), 1, 5)

    truth = krippendorff.alpha(study(40_000), level_of_measurement="ordinal")
    options = {"ci_level": 0.95, "resamples": 300, "seed": 1}
    lines = [alpha(as_rows(study(60)), "ordinal", options) for _ in range(120)]
    covered = sum(line["ci_low"] <= truth <= line["ci_high"] for line in lines)
    # Binomial(120, 0.95): 107 or fewer has probability 0.009; benchmarks/alpha_bootstrap.py counts more of them.
    assert covered >= 108


@pytest.mark.data
def test_prometheus_repeats_give_the_published_alpha(shared, options):
    from judgelab.study.sources.prometheus import read_prometheus

    scores = read_prometheus(shared / "data/prometheus_gpt4_repeats").rename(columns={"repeat": "rater"})
    published = {"vicuna": 0.8075, "mt_bench": 0.8510}  # shared/data/README.md
    for name, own in scores.groupby("dataset"):
        assert alpha(own, "interval", options)["estimate"] == pytest.approx(published[str(name)], abs=5e-5)


@pytest.mark.data
def test_judgebench_gives_the_published_ordinal_alphas(shared, options):
    from judgelab.study.sources.judgebench import read_judgebench

    published = {  # shared/data/README.md, in the order of the metrics in the file
        "recipes": [0.415127, 0.432398, 0.399142, 0.398558, 0.362716, 0.435101],
        "newsroom": [0.284873, 0.115121, -0.015808, 0.064972],
    }
    for name, expected in published.items():
        ratings = read_judgebench(shared / f"data/judgebench_illc_{name}").ratings
        ours = [
            alpha(own.rename(columns={"position": "rater"}), "ordinal", options | {"resamples": 20})["estimate"]
            for _, own in ratings.groupby("metric", sort=False)
        ]
        assert [round(value, 6) for value in ours] == expected
