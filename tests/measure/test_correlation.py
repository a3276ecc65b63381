"""Correlations at three levels: UniEval's published tables, scipy, loops, and what has none."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, spearmanr

from judgelab.measure.correlation import CORRELATIONS, correlation_table
from judgelab.measure.rows import COLUMNS

LIBRARY = {"pearson": pearsonr, "spearman": spearmanr, "kendall": kendalltau}

# UniEval, reproduce/README.md: Pearson, Spearman, Kendall by dimension, all answers pooled.
TOPICAL_CHAT = {
    "naturalness": (0.443666, 0.513986, 0.373973),
    "coherence": (0.595143, 0.612942, 0.465915),
    "engagingness": (0.55651, 0.604739, 0.455941),
    "groundedness": (0.536209, 0.574954, 0.451533),
    "understandability": (0.380038, 0.467807, 0.360741),
    "overall": (0.632796, 0.662583, 0.487272),
}
SFHOT = {
    "naturalness": (0.397428, 0.319813, 0.237635),
    "informativeness": (0.357353, 0.249329, 0.191217),
    "overall": (0.406425, 0.320721, 0.236024),
}


def value(table, measure, level, slice_="all"):
    found = table[(table["measure"] == measure) & (table["level"] == level) & (table["slice"] == slice_)]
    assert len(found) == 1
    return found.iloc[0]


def made(n_items, n_systems, seed=1, noise=1.0):
    """Scores 1 .. 5 of a judge that follows people's."""
    rng = np.random.default_rng(seed)
    item, system = (each.ravel() for each in np.indices((n_items, n_systems)))
    quality = rng.normal(3, 0.7, n_items)[item] + 0.5 * system + rng.normal(0, 0.7, len(item))
    scores = [np.clip(np.round(quality + rng.normal(0, noise, len(item))), 1, 5) for _ in range(2)]
    return pd.DataFrame({"item_id": item, "system": system, "human": scores[0], "judge": scores[1]})


@pytest.mark.data
@pytest.mark.parametrize(("dataset", "published"), [("topical_chat", TOPICAL_CHAT), ("sfhot", SFHOT)])
def test_unieval_to_six_decimals(dataset, published, shared):
    from judgelab.study.sources.unieval import read_unieval

    scores = read_unieval(shared / "data/unieval")
    table = correlation_table(scores[scores["dataset"] == dataset], ci_level=0.95, resamples=2, seed=1)
    for dimension, expected in published.items():
        got = [value(table, name, "data_set", f"dimension={dimension}")["estimate"] for name in LIBRARY]
        assert [round(each, 6) for each in got] == list(expected)
    if dataset == "topical_chat":
        # Trap 4: within a dialogue the same scores correlate differently.
        overall = scores[(scores["dataset"] == dataset) & (scores["dimension"] == "overall")]
        within = value(table, "spearman", "document", "dimension=overall")
        assert within["estimate"] == pytest.approx(by_loops(overall, "spearman")["document"], abs=1e-12)
        assert abs(within["estimate"] - TOPICAL_CHAT["overall"][1]) > 0.01
        assert within["n_used"] + within["n_excluded"] == 60

        assert "over 6 systems" in value(table, "kendall", "system", "dimension=overall")["note"]


def by_loops(scores, name):
    """The three levels as their definitions say; NaN where there is none."""
    function = LIBRARY[name]

    def one(x, y):
        if len(x) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
            return np.nan
        return function(x, y).statistic

    scores = scores.dropna(subset=["human", "judge"])
    within = [one(list(part["human"]), list(part["judge"])) for _, part in scores.groupby("item_id")]
    within = [each for each in within if not np.isnan(each)]
    means = scores.groupby("system")[["human", "judge"]].mean().round(10)
    return {
        "data_set": one(list(scores["human"]), list(scores["judge"])),
        "document": np.mean(within) if within else np.nan,
        "system": one(list(means["human"]), list(means["judge"])),
    }


cell = st.tuples(st.sampled_from([1.0, 2.0, 3.0, 4.5, np.nan]), st.sampled_from([1.0, 2.0, 4.0, np.nan]))


@given(st.lists(st.lists(cell, min_size=4, max_size=4), min_size=1, max_size=6))
@settings(max_examples=60)
def test_every_level_equals_loops_over_scipy(cells):
    item, system = (each.ravel() for each in np.indices((len(cells), 4)))
    human, judge = np.array(cells).reshape(-1, 2).T
    scores = pd.DataFrame({"item_id": item, "system": system, "human": human, "judge": judge})
    table = correlation_table(scores, ci_level=0.95, resamples=2, seed=1)
    for name in CORRELATIONS:
        for level, expected in by_loops(scores, name).items():
            assert value(table, name, level)["estimate"] == pytest.approx(expected, nan_ok=True, abs=1e-9)


def test_resampled_values_equal_loops_over_the_drawn_items():
    """Two items: a resample is one of them twice, or both, so that every bound is one of three numbers."""
    scores = made(2, 8, seed=3)
    table = correlation_table(scores, ci_level=0.95, resamples=400, seed=1)
    parts = [scores[scores["item_id"] == item] for item in (0, 1)]
    for name in CORRELATIONS:
        for level in ("data_set", "system"):
            possible = [by_loops(pd.concat(drawn), name)[level] for drawn in ([parts[0]] * 2, parts, [parts[1]] * 2)]
            line = value(table, name, level)
            assert line["ci_low"] == pytest.approx(min(possible), abs=1e-9)
            assert line["ci_high"] == pytest.approx(max(possible), abs=1e-9)


def test_shape_and_what_is_counted():
    scores = made(12, 4)
    scores.loc[[0, 1, 2], "judge"] = np.nan
    scores.loc[4:7, "human"] = 3.0
    table = correlation_table(scores, ci_level=0.95, resamples=50, seed=1)
    assert list(table.columns) == [*COLUMNS, "level"]
    assert list(table["level"]) == ["data_set"] * 3 + ["document"] * 3 + ["system"] * 3
    pooled, within, between = (value(table, "kendall", level) for level in ("data_set", "document", "system"))
    assert pooled["note"].endswith("over 45 answers; 3 of 48 answers left out: 3 without both scores")
    assert "2 of 12 items left out: 1 with fewer than 3 answers, 1 with one score" in within["note"]
    assert (within["n_used"], within["n_excluded"]) == (10, 2)
    assert within["method"].startswith("mean over items; percentile bootstrap over items")
    assert "over 4 systems" in between["note"]


def test_order_of_rows_names_and_units_change_nothing():
    scores, options = made(20, 4), {"ci_level": 0.95, "resamples": 50, "seed": 1}
    base = correlation_table(scores, **options)
    names = {0: "d", 1: "c", 2: "b", 3: "a"}
    turned = scores.sample(frac=1, random_state=1).assign(
        system=lambda table: table["system"].map(names),
        item_id=lambda table: "i" + table["item_id"].astype(str),
        judge=lambda table: 10 + 2 * table["judge"],
    )
    for _, line in correlation_table(turned, **options).iterrows():
        assert line["estimate"] == pytest.approx(value(base, line["measure"], line["level"])["estimate"], abs=1e-9)
    swapped = scores.rename(columns={"human": "judge", "judge": "human"})
    for _, line in correlation_table(swapped, **options).iterrows():
        assert line["estimate"] == pytest.approx(value(base, line["measure"], line["level"])["estimate"], abs=1e-9)
    down = correlation_table(scores.assign(judge=-scores["judge"]), **options)
    for _, line in down.iterrows():
        assert line["estimate"] == pytest.approx(-value(base, line["measure"], line["level"])["estimate"], abs=1e-9)


def test_levels_can_disagree():
    """Within each item the judge is wrong, between items right: the pooled number hides it."""
    item, place = (each.ravel() for each in np.indices((30, 3)))
    scores = pd.DataFrame(
        {"item_id": item, "system": place, "human": 10.0 * item + place, "judge": 10.0 * item - place}
    )
    table = correlation_table(scores, ci_level=0.95, resamples=50, seed=1)
    assert value(table, "pearson", "data_set")["estimate"] > 0.99
    assert value(table, "pearson", "document")["estimate"] == pytest.approx(-1)
    assert value(table, "kendall", "system")["estimate"] == pytest.approx(-1)


def test_equal_means_are_ties_whatever_their_last_digit():
    # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in binary: systems 0 and 1 have equal means.
    human = [[0.1, 0.3, 1.0], [0.2, 0.2, 1.0], [0.3, 0.1, 1.0]]
    item, system = (each.ravel() for each in np.indices((3, 3)))
    judge = np.array([1.0, 2.0, 3.0])[system]
    scores = pd.DataFrame({"item_id": item, "system": system, "human": np.ravel(human), "judge": judge})
    table = correlation_table(scores, ci_level=0.95, resamples=20, seed=1)
    # Two of three pairs concordant, one tied in human: 2 / sqrt(2 * 3).
    assert value(table, "kendall", "system")["estimate"] == pytest.approx(2 / np.sqrt(6))


@pytest.mark.parametrize(
    ("change", "level", "reason"),
    [
        ({"human": 3.0}, "data_set", "one side gives every answer the same score"),
        ({"judge": np.repeat([1.0, 2.0, 3.0], 4)}, "document", "3 of 3 items left out: 3 with one score"),
        ({"judge": np.tile([2.0], 12)}, "system", "one side gives every system the same score"),
        ({"human": np.nan}, "data_set", "0 answers with both scores, 3 are needed"),
        ({"human": np.nan}, "system", "no system is named"),
        ({"system": np.nan}, "system", "no system is named"),
        ({"system": np.nan}, "document", ""),
        ({"human": 0.1 + 0.2}, "data_set", "one side gives every answer the same score"),
        ({"human": [0.3, 0.1 + 0.2] * 6}, "data_set", "one side gives every answer the same score"),
    ],
)
def test_degenerate_scores_are_undefined_with_a_reason(change, level, reason):
    table = correlation_table(made(3, 4).assign(**change), ci_level=0.95, resamples=20, seed=1)
    for name in CORRELATIONS:
        line = value(table, name, level)
        assert np.isnan(line["estimate"]) == bool(reason)
        assert reason in line["note"]
        assert not reason or line["note"].startswith("undefined: ")


def test_two_systems_or_two_answers_have_no_correlation_of_their_own():
    table = correlation_table(made(10, 2), ci_level=0.95, resamples=20, seed=1)
    assert "2 systems with both scores, 3 are needed" in value(table, "pearson", "system")["note"]
    assert "10 with fewer than 3 answers" in value(table, "pearson", "document")["note"]
    assert value(table, "pearson", "data_set")["estimate"] > 0


def test_empty_table_is_undefined():
    table = correlation_table(made(3, 4).iloc[:0], ci_level=0.95, resamples=20, seed=1)
    assert table["estimate"].isna().all()
    assert table["note"].str.startswith("undefined: ").all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judge": np.inf}, "column judge: 12 of 12 are not a finite number; first inf, item 0"),
        ({"human": "good"}, "column human: 12 of 12 are not a finite number; first 'good', item 0"),
        ({"item_id": np.nan}, "column item_id: 12 of 12 are missing"),
        ({"dimension": None}, "column dimension: 12 of 12 are missing"),
        ({"system": "S"}, "9 of 12 answers repeat an item and system; first item 0, system S"),
    ],
)
def test_input_that_cannot_be_used_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        correlation_table(made(3, 4).assign(**change), ci_level=0.95, resamples=20, seed=1)
    with pytest.raises(ValueError, match="missing column judge"):
        correlation_table(made(3, 4).drop(columns="judge"), ci_level=0.95, resamples=20, seed=1)


def test_the_interval_holds_the_true_value():
    rng = np.random.default_rng(13)
    covered = 0
    for _ in range(120):
        shared_part = rng.normal(0, 1, 100)
        sides = [shared_part + rng.normal(0, 1, 100) for _ in range(2)]  # Pearson 1 / 2
        scores = pd.DataFrame({"item_id": np.arange(100), "human": sides[0], "judge": sides[1]})
        table = correlation_table(scores, ci_level=0.95, resamples=200, seed=1)
        line = value(table, "pearson", "data_set")
        covered += line["ci_low"] <= 0.5 <= line["ci_high"]
    # Binomial(120, 0.95): 107 or fewer has probability 0.009.
    assert covered >= 108
