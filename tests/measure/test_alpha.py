"""Krippendorff's alpha at each level: the canonical example, two packages, invariances, published alphas."""

from __future__ import annotations

import evalica
import krippendorff
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from judgelab.measure.alpha import LEVELS, alpha_table
from judgelab.measure.resampling import percentile_interval
from judgelab.measure.rows import COLUMNS
from judgelab.study.sources import read_judgebench, read_prometheus

NUMERIC = LEVELS[1:]
GAP = np.nan
# Krippendorff, "Computing Krippendorff's alpha-reliability", 2011, section C to E: 4 observers x 12 units
CANONICAL = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, GAP, GAP, GAP],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, GAP, 3],
        [GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, GAP],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, GAP],
    ]
)
# nothing is drawn: the estimate only
FEW_DRAWN = {"ci_level": 0.95, "resamples": 1, "seed": 1}


def long(matrix):
    """Raters x items as one row a rating; a gap is a missing value."""
    rater, item = np.indices(np.shape(matrix))
    return pd.DataFrame({"item_id": item.ravel(), "rater": rater.ravel(), "value": np.ravel(matrix)})


def line_of(ratings, level, **options):
    table = alpha_table(ratings, level=level, **{**FEW_DRAWN, **options})
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == 1
    return table.iloc[0]


def estimate(matrix, level):
    return line_of(long(np.asarray(matrix)), level)["estimate"]


def varies(matrix):
    """Whether two different values can be paired: elsewhere alpha is undefined, and the packages raise."""
    pairable = matrix[:, (~np.isnan(matrix)).sum(axis=0) >= 2]
    return len(np.unique(pairable[~np.isnan(pairable)])) > 1


@st.composite
def matrices(draw):
    """2 to 4 raters, 2 to 9 items, gaps, 0 among the values."""
    raters, items = draw(st.integers(2, 4)), draw(st.integers(2, 9))
    values = st.sampled_from([0.0, 1.0, 2.0, 3.0, 7.5, 100.0])
    rows = st.lists(st.one_of(st.just(GAP), values, values), min_size=items, max_size=items)
    matrix = np.array(draw(st.lists(rows, min_size=raters, max_size=raters)))
    assume(varies(matrix))
    return matrix


def many_values(n_values, seed, shape=(4, 40)):
    """Ratings with gaps around each item's own quality, of up to ``n_values`` distinct values."""
    rng = np.random.default_rng(seed)
    given = rng.random(shape[1]) + rng.normal(0, 0.2, shape)
    matrix = np.round(np.clip(given, 0, 1) * (n_values - 1))
    matrix[rng.random(shape) < 0.2] = GAP
    return matrix


# What alpha is


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_the_canonical_example(level, published):
    line = line_of(long(CANONICAL), level)
    assert round(line["estimate"], 3) == published
    # item 12 has one rating
    assert (line["n_used"], line["n_excluded"], line["measure"]) == (11, 1, "krippendorff_alpha")
    assert "1 of 12 items left out: 1 with one rating" in line["note"]
    assert line["method"].startswith(f"{level} level; percentile bootstrap over items")


@pytest.mark.parametrize("level", LEVELS)
@given(matrix=matrices())
@settings(max_examples=30)
def test_random_tables_equal_krippendorff_and_evalica(level, matrix):
    ours = estimate(matrix, level)
    assert ours == pytest.approx(krippendorff.alpha(matrix, level_of_measurement=level), abs=1e-9)
    assert ours == pytest.approx(evalica.alpha(pd.DataFrame(matrix), level).alpha, abs=1e-9)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_values", [2, 19, 20, 21, 101, 10_001])
def test_many_distinct_values_equal_krippendorff_and_evalica(level, n_values):
    matrix = many_values(n_values, seed=n_values)
    ours = estimate(matrix, level)
    assert ours == pytest.approx(krippendorff.alpha(matrix, level_of_measurement=level), abs=1e-9)
    assert ours == pytest.approx(evalica.alpha(pd.DataFrame(matrix), level).alpha, abs=1e-9)


def test_text_at_the_nominal_level():
    names = np.array(["ALPHA", "BETA", "TIE", "ALPHA ", "none"], dtype=object)
    text = long(CANONICAL)
    text["value"] = [np.nan if np.isnan(value) else names[int(value) - 1] for value in text["value"]]
    assert line_of(text, "nominal")["estimate"] == estimate(CANONICAL, "nominal")


@pytest.mark.parametrize("level", LEVELS)
def test_items_of_several_units_pair_within_units_only(level):
    """Alpha of items with units is that of the units; the interval is one of items."""
    ratings = long(CANONICAL)
    nested = ratings.assign(item_id=ratings["item_id"] // 3, unit=ratings["item_id"] % 3)
    line = line_of(nested, level)
    assert line["estimate"] == pytest.approx(estimate(CANONICAL, level), abs=1e-12)
    assert (line["n_used"], line["n_excluded"]) == (4, 0)


# What alpha does not depend on


@given(matrix=matrices(), seed=st.integers(0, 2**32), level=st.sampled_from(LEVELS))
@settings(max_examples=30)
def test_names_and_order_of_raters_and_items_do_not_matter(matrix, seed, level):
    expected = estimate(matrix, level)
    rng = np.random.default_rng(seed)
    n_raters, n_items = matrix.shape
    permuted = matrix[rng.permutation(n_raters)][:, rng.permutation(n_items)]
    assert estimate(permuted, level) == pytest.approx(expected, abs=1e-9)
    shuffled = long(matrix).sample(frac=1, random_state=int(seed % 2**31))
    shuffled = shuffled.assign(rater="r" + shuffled["rater"].astype(str), item_id=-5 * shuffled["item_id"])
    assert line_of(shuffled, level)["estimate"] == pytest.approx(expected, abs=1e-9)


@given(matrix=matrices(), level=st.sampled_from(LEVELS))
@settings(max_examples=15)
def test_raters_of_an_item_may_change_places(matrix, level):
    """Alpha treats raters alike: who gave a rating does not matter, and neither estimate nor interval changes."""
    ratings = long(matrix)
    turned = long(np.column_stack([np.roll(column, place) for place, column in enumerate(matrix.T)]))
    assert estimate(turned["value"].to_numpy().reshape(matrix.shape), level) == pytest.approx(
        line_of(ratings, level)["estimate"], abs=1e-9
    )


@given(matrix=matrices(), order=st.permutations([5.0, -2.0, 0.5, 12.0, 3.0, 8.0]))
@settings(max_examples=15)
def test_nominal_values_may_be_renamed(matrix, order):
    values = [0.0, 1.0, 2.0, 3.0, 7.5, 100.0]
    renamed = matrix.copy()
    for old, new in zip(values, order, strict=True):
        renamed[matrix == old] = new
    assert estimate(renamed, "nominal") == pytest.approx(estimate(matrix, "nominal"), abs=1e-9)


@given(matrix=matrices())
@settings(max_examples=15)
def test_ordinal_values_may_change_monotonically(matrix):
    expected = estimate(matrix, "ordinal")
    assert estimate(np.log1p(matrix), "ordinal") == pytest.approx(expected, abs=1e-9)
    assert estimate(matrix**3 - 7, "ordinal") == pytest.approx(expected, abs=1e-9)
    assert estimate(-matrix, "ordinal") == pytest.approx(expected, abs=1e-9)


@given(matrix=matrices(), shift=st.floats(-1e6, 1e6), factor=st.floats(1e-3, 1e6))
@settings(max_examples=15)
def test_interval_values_may_be_shifted_and_scaled(matrix, shift, factor):
    expected = estimate(matrix, "interval")
    assert estimate(matrix * factor, "interval") == pytest.approx(expected, abs=1e-9)
    assert estimate(matrix + shift, "interval") == pytest.approx(expected, abs=1e-6)
    assert estimate(-matrix, "interval") == pytest.approx(expected, abs=1e-9)


@given(matrix=matrices(), factor=st.floats(1e-6, 1e6))
@settings(max_examples=15)
def test_ratio_values_may_be_scaled_and_not_shifted(matrix, factor):
    assert estimate(matrix * factor, "ratio") == pytest.approx(estimate(matrix, "ratio"), abs=1e-9)
    assert estimate(CANONICAL + 1, "ratio") != pytest.approx(estimate(CANONICAL, "ratio"), abs=1e-3)


@pytest.mark.parametrize("level", LEVELS)
def test_two_values_are_the_same_at_nominal_ordinal_and_interval_level(level):
    two = np.where(np.isnan(CANONICAL), GAP, 1.0 + (CANONICAL > 2))
    expected = krippendorff.alpha(two, level_of_measurement="nominal")
    assert estimate(two, level) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("level", LEVELS)
def test_perfect_and_chance_agreement(level):
    rng = np.random.default_rng(5)
    column = rng.integers(1, 6, 2_000).astype(float)
    assert estimate([column, column, column], level) == pytest.approx(1, abs=1e-12)
    unrelated = rng.integers(1, 6, (3, 2_000)).astype(float)
    assert abs(estimate(unrelated, level)) < 0.04
    assert estimate([[1, 2, 1, 2], [2, 1, 2, 1]], level) < 0


# Degenerate input


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("matrix", "reason"),
    [
        ([[1.0, 2.0, 3.0]], "1 rater, no unit with two ratings"),
        ([[1.0, 2.0, GAP, GAP], [GAP, GAP, 3.0, 1.0]], "2 raters, no unit with two ratings"),
        ([[GAP, GAP], [GAP, GAP]], "0 raters, no unit with two ratings"),
        ([[4.0, 4.0, 4.0], [4.0, 4.0, GAP]], "is the same"),
        ([[0.0, 0.0], [0.0, 0.0]], "is the same"),
        ([[0.1, 0.1, 0.1], [0.1, 0.1, 0.1], [0.1, 0.1, 0.1]], "is the same"),
        # the two that differ have no partner
        ([[3.0, 3.0, 1.0, GAP], [3.0, 3.0, GAP, 2.0]], "is the same"),
    ],
)
def test_without_pairs_or_variation_alpha_is_undefined(level, matrix, reason):
    line = line_of(long(np.array(matrix)), level)
    assert np.isnan([line["estimate"], line["ci_low"], line["ci_high"]]).all()
    assert line["note"].startswith("undefined: ")
    assert reason in line["note"]


@pytest.mark.parametrize("level", LEVELS)
def test_an_empty_table_is_undefined(level):
    for empty in (long(CANONICAL).iloc[:0], pd.DataFrame(columns=["item_id", "rater", "value"])):
        line = line_of(empty, level)
        assert np.isnan(line["estimate"])
        assert (line["note"], line["n_used"]) == ("undefined: 0 raters, no unit with two ratings", 0)


@pytest.mark.parametrize("level", LEVELS)
def test_two_items_have_an_estimate_and_one_has_no_interval(level):
    two = line_of(long([[1.0, 3.0], [2.0, 3.0]]), level, resamples=200)
    expected = krippendorff.alpha([[1, 3], [2, 3]], level_of_measurement=level)
    assert two["estimate"] == pytest.approx(expected, abs=1e-12)
    # a quarter of the resamples draws the item with equal ratings twice
    assert np.isnan(two["ci_low"])
    assert "resamples undefined" in two["note"]
    one = line_of(long([[1.0], [2.0]]), level, resamples=200)
    assert one["estimate"] == pytest.approx(0, abs=1e-12)
    assert np.isnan(one["ci_low"])
    assert "no interval: 1 item" in one["note"]


@pytest.mark.parametrize("level", LEVELS)
def test_equal_raters_have_no_interval(level):
    line = line_of(long([[1.0, 2.0, 3.0, 4.0] * 5] * 2), level, resamples=100)
    assert line["estimate"] == pytest.approx(1, abs=1e-12)
    assert np.isnan(line["ci_low"])
    assert "no interval: every resample gives the same value" in line["note"]


def changed(values):
    """The canonical example with its first ratings replaced."""
    ratings = long(CANONICAL).astype({"value": object})
    ratings.loc[: len(values) - 1, "value"] = np.array(values, dtype=object)
    return ratings


@pytest.mark.parametrize("level", NUMERIC)
@pytest.mark.parametrize("values", [[np.inf, -np.inf], ["good", "poor"], [np.inf, "bad"]])
def test_what_is_no_finite_number_is_refused_and_counted(level, values):
    with pytest.raises(ValueError, match=f"2 of 41 values are not a finite number.* {level} level needs; first"):
        line_of(changed(values), level)
    assert np.isfinite(line_of(changed(values), "nominal")["estimate"])


def test_below_zero_is_refused_at_the_ratio_level_only():
    with pytest.raises(ValueError, match=r"1 of 41 values are not a finite number of 0 or more.*first -0\.5"):
        line_of(changed([-0.5]), "ratio")
    for level in ("nominal", "ordinal", "interval"):
        assert np.isfinite(line_of(changed([-0.5]), level)["estimate"])


def test_numbers_as_text_are_numbers():
    ratings = long(CANONICAL)
    text = ratings.assign(value=ratings["value"].map(lambda value: None if np.isnan(value) else f"{value:.0f}"))
    assert line_of(text, "interval")["estimate"] == estimate(CANONICAL, "interval")


def named(matrix):
    """Items and raters with names."""
    ratings = long(matrix)
    return ratings.assign(item_id="i" + ratings["item_id"].astype(str), rater="r" + ratings["rater"].astype(str))


@pytest.mark.parametrize("level", LEVELS)
def test_a_rater_who_rates_a_unit_twice_is_refused(level):
    ratings = named(CANONICAL)
    twice = pd.concat([ratings, ratings.iloc[[1, 2]]])
    with pytest.raises(ValueError, match="2 of 43 ratings repeat a rater and unit; first item i1, rater r0"):
        line_of(twice, level)
    units = twice.assign(unit=["a"] * len(ratings) + ["b", "a"])
    with pytest.raises(ValueError, match="1 of 43 ratings repeat a rater and unit; first item i2, unit a, rater r0"):
        line_of(units, level)
    # a second gap is no second rating
    assert np.isfinite(line_of(pd.concat([ratings, ratings.iloc[[9]]]), level)["estimate"])


@pytest.mark.xfail(reason="the message takes whole numbers through a row of floats: item 1.0, rater 0.0", strict=True)
def test_a_repeated_rating_is_named_as_it_is_in_the_table():
    ratings = long(CANONICAL)
    with pytest.raises(ValueError, match=r"first item 1, rater 0$"):
        line_of(pd.concat([ratings, ratings.iloc[[1]]]), "interval")


@pytest.mark.parametrize("column", ["item_id", "rater", "unit"])
def test_ratings_without_a_name_are_refused(column):
    ratings = long(CANONICAL).assign(unit="u").astype({"item_id": object, "rater": object})
    ratings.loc[[0, 3], column] = None
    with pytest.raises(ValueError, match=f"2 of 41 ratings do not name their .*first without {column} in row 0"):
        line_of(ratings, "nominal")


def test_columns_and_options_are_checked():
    ratings = long(CANONICAL)
    for column in ratings:
        with pytest.raises(ValueError, match=column):
            line_of(ratings.drop(columns=column), "nominal")
    with pytest.raises(ValueError, match="level is 'metric'; allowed are nominal, ordinal, interval, ratio"):
        line_of(ratings, "metric")
    for options in ({"ci_level": 1.0}, {"resamples": 0}):
        with pytest.raises(ValueError, match="allowed is"):
            line_of(ratings, "nominal", **options)


# The interval


@pytest.mark.parametrize(
    ("level", "n_values"),
    [("nominal", 5), ("ordinal", 5), ("ordinal", 25), ("interval", 5), ("ratio", 5), ("ratio", 25)],
)
def test_the_interval_is_that_of_a_plain_loop_over_items(level, n_values):
    """60 items of two units each, three raters with gaps; both draw 2,000 times, each with its own numbers."""
    rng = np.random.default_rng(11)
    quality = np.repeat(rng.normal(3, 1.2, 60), 2) + rng.normal(0, 0.3, 120)
    given = np.clip((quality + rng.normal(0, 0.7, (3, 120)) - 1) / 4, 0, 1)
    matrix = 1 + np.round(given * (n_values - 1))
    matrix[rng.random(matrix.shape) < 0.1] = GAP
    ratings = long(matrix)
    ratings = ratings.assign(unit=ratings["item_id"] % 2, item_id=ratings["item_id"] // 2)
    line = line_of(ratings, level, resamples=2_000, seed=3)
    domain = np.unique(matrix[~np.isnan(matrix)])
    counts = (matrix.T[:, :, np.newaxis] == domain).sum(axis=1)
    values = []
    for _ in range(2_000):
        drawn = rng.integers(0, 60, 60)
        sample = counts[np.concatenate([2 * drawn, 2 * drawn + 1])]
        values.append(krippendorff.alpha(value_counts=sample, value_domain=domain, level_of_measurement=level))
    low, high, _ = percentile_interval(np.array(values), 0.95)
    assert (line["ci_low"], line["ci_high"]) == pytest.approx((low, high), abs=0.02)
    assert line["ci_low"] < line["estimate"] < line["ci_high"]


@pytest.mark.parametrize("level", LEVELS)
def test_the_interval_depends_on_the_seed_only(level):
    ratings = long(many_values(5, seed=2))
    options = {"resamples": 300}
    one, again, other = (line_of(ratings, level, seed=seed, **options) for seed in (1, 1, 2))
    bounds = ["ci_low", "ci_high"]
    assert one[bounds].tolist() == again[bounds].tolist()
    assert one[bounds].tolist() != other[bounds].tolist()
    renamed = line_of(ratings.assign(rater=9 - ratings["rater"]), level, seed=1, **options)
    assert renamed[bounds].tolist() == pytest.approx(one[bounds].tolist(), abs=1e-12)


# Published alphas


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("recipes", [0.415127, 0.432398, 0.399142, 0.398558, 0.362716, 0.435101]),
        ("newsroom", [0.284873, 0.115121, -0.015808, 0.064972]),
    ],
)
def test_the_ordinal_alphas_of_judgebench(shared, name, published):
    found = read_judgebench(shared / f"data/judgebench_illc_{name}")
    ratings = found.ratings.rename(columns={"position": "rater"})
    by_metric = {metric: line_of(part, "ordinal") for metric, part in ratings.groupby("metric", sort=False)}
    metrics = found.results["metric"].drop_duplicates()
    assert [round(by_metric[metric]["estimate"], 6) for metric in metrics] == published


@pytest.mark.data
def test_the_interval_alphas_of_prometheus(shared):
    scores = read_prometheus(shared / "data/prometheus_gpt4_repeats").rename(columns={"repeat": "rater"})
    for name, published in (("vicuna", 0.8075), ("mt_bench", 0.8510)):
        part = scores[scores["dataset"] == name]
        line = line_of(part, "interval", resamples=200)
        assert round(line["estimate"], 4) == published
        assert line["n_used"] == part["item_id"].nunique()
        assert line["ci_low"] < published < line["ci_high"]
