"""Rank correlation by calls: hand-made tables, what is 1 by construction, degenerate tables."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from judgelab.measure.rows import COLUMNS
from judgelab.measure.schedule_runs import SCHEDULES, ratings_at
from judgelab.measure.schedules import merge_sort_most, oracle_of, penalised
from judgelab.measure.spending import rank_correlation, reached, spending

OPTIONS = {"ci_level": 0.9, "resamples": 200, "seed": 7}


def judged(n=6, items=8, noise=1.0, band=0.2):
    rng = np.random.default_rng(1)
    quality = rng.standard_normal(n) * 2
    rows = []
    for item in range(items):
        for x, y in combinations(range(n), 2):
            seen = quality[x] - quality[y] + noise * rng.logistic()
            won = "TIE" if abs(seen) < band else f"s{x}" if seen > 0 else f"s{y}"
            rows.append((f"i{item}", f"s{x}", f"s{y}", won))
    return pd.DataFrame(rows, columns=["item_id", "system_x", "system_y", "preference"])


def of(rows, measure):
    return rows[rows["measure"] == measure].set_index("slice")


@pytest.fixture(scope="module")
def rows():
    return spending(judged(), budgets=(0.1, 0.3, 1.0), repeats=6, **OPTIONS)


def test_shape(rows):
    assert list(rows.columns) == list(COLUMNS)
    assert set(rows["judge"]) == {"panel"}
    # 15 pairs on 8 items: 120 comparisons, 240 calls
    assert list(of(rows, "rank_correlation").index) == [
        f"schedule={name}:calls={calls}" for name in SCHEDULES for calls in (24, 72, 240)
    ]
    assert rows["note"][rows["estimate"].isna()].str.startswith("undefined: ").all()


def test_all_the_matches_give_1_by_construction(rows):
    found = of(rows, "rank_correlation")
    for name in ("round_robin", "balanced_sparse", "adaptive"):
        whole = found.loc[f"schedule={name}:calls=240"]
        assert whole[["estimate", "ci_low", "ci_high"]].tolist() == pytest.approx([1.0, 1.0, 1.0])
        assert "it contains these" in whole["method"]


def test_intervals_hold_the_mean_and_merge_sort_says_what_it_spent(rows):
    found = of(rows, "rank_correlation").dropna(subset="estimate")
    assert (found["ci_low"] <= found["estimate"]).all()
    assert (found["estimate"] <= found["ci_high"]).all()
    assert (found["n_used"] + found["n_excluded"] == 6).all()
    assert found.loc["schedule=merge_sort:calls=240", "note"].startswith("spent ")


def test_calls_to_reach(rows):
    calls, shares = of(rows, "calls_to_reach"), of(rows, "share_to_reach")
    for name in ("round_robin", "balanced_sparse", "adaptive"):
        means = of(rows, "rank_correlation").filter(like=f"{name}:", axis=0)["estimate"].to_numpy()
        expected = reached(means, [24, 72, 240], 0.95)
        share = shares.loc[f"schedule={name}"]
        assert calls.loc[f"schedule={name}", "estimate"] == expected
        assert (share["numerator"], share["denominator"]) == (expected, 240)
        assert share["estimate"] == expected / 240


def test_the_same_seed_gives_the_same_rows_and_other_names_the_same_numbers():
    table = judged(n=4, items=4)
    options = {"budgets": (0.2, 1.0), "repeats": 3, **OPTIONS}
    once, again = spending(table, **options), spending(table, **options)
    pd.testing.assert_frame_equal(once, again)
    renamed = table.replace({f"s{k}": f"t{k}" for k in range(4)})
    other = spending(renamed, **options, schedules=SCHEDULES[:3])
    assert other["estimate"].to_numpy() == pytest.approx(once["estimate"][: len(other)].to_numpy())


def test_calls_scale_with_the_calls_of_a_comparison():
    options = {"budgets": (0.5, 1.0), "repeats": 3, "schedules": ["round_robin"], **OPTIONS}
    one, six = (spending(judged(), calls_per_comparison=calls, **options) for calls in (1, 6))
    assert six.loc[2, "estimate"] == 6 * one.loc[2, "estimate"]
    assert six.loc[3, "estimate"] == one.loc[3, "estimate"]
    assert six["estimate"][:2].tolist() == one["estimate"][:2].tolist()


@pytest.mark.parametrize("schedule", SCHEDULES[:3])
def test_ratings_are_those_of_the_fit_to_what_was_asked(schedule):
    # the naive twin: count what the oracle is asked, fit once
    table = judged(n=5, items=3)
    oracle = oracle_of(table)
    asked = []

    class Watched(type(oracle)):
        def __call__(self, item, x, y):
            preference = super().__call__(item, x, y)
            asked.append((x, y, preference))
            return preference

    watched = Watched(oracle._answers)
    ratings, spent = ratings_at(watched, schedule, [4, 11], seed=3)
    assert spent.tolist() == [4, 11]
    assert len(asked) == 11
    for row, size in zip(ratings, (4, 11), strict=True):
        wins = np.zeros((5, 5))
        for x, y, preference in asked[:size]:
            i, j = int(x[1]), int(y[1])
            score = 0.5 if preference == "TIE" else float(preference == x)
            wins[i, j] += score
            wins[j, i] += 1 - score
        assert row == pytest.approx(penalised(wins)[0], abs=1e-9)


def test_merge_sort_stays_within_its_budget_and_finds_a_clear_order():
    table = judged(n=9, items=5, noise=1e-9, band=0)
    oracle = oracle_of(table)
    most = merge_sort_most(9)
    ratings, spent = ratings_at(oracle, "merge_sort", [most - 1, most, 3 * most, 9 * most], seed=1)
    assert np.isnan(ratings[0]).all()
    assert spent[0] == 0
    assert (spent <= [0, most, 3 * most, 5 * most]).all()
    reference = ratings_at(oracle, "round_robin", [180], seed=1)[0][0]
    assert [rank_correlation(one, reference) for one in ratings[1:]] == pytest.approx([1.0] * 3)


def test_rank_correlation_is_spearmans():
    rng = np.random.default_rng(1)
    for _ in range(20):
        a, b = rng.integers(0, 5, (2, 8)).astype(float)
        assert rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic)
    assert np.isnan(rank_correlation(np.zeros(3), np.arange(3.0)))
    assert np.isnan(rank_correlation(np.full(3, np.nan), np.arange(3.0)))


@pytest.mark.parametrize(
    ("means", "result"),
    [
        ([0.95, 0.95, 0.96], 10), ([0.9, 0.96, 0.97], 20), ([0.96, 0.9, 0.97], 30), ([0.96, 0.97, 0.9], np.inf),
        ([np.nan, 0.97, 0.97], 20), ([np.nan] * 3, np.inf),
    ],
)  # fmt: skip
def test_reached_and_stays(means, result):
    assert reached(np.array(means), [10, 20, 30], 0.95) == result


# --- degenerate tables


def test_two_systems_and_one_item():
    table = pd.DataFrame({"item_id": ["i"], "system_x": ["a"], "system_y": ["b"], "preference": ["b"]})
    found = spending(table, budgets=(0.5, 1.0), repeats=2, **OPTIONS)
    assert of(found, "rank_correlation")["estimate"].tolist() == [1.0] * 4
    assert set(of(found, "calls_to_reach")["estimate"]) == {2.0}
    assert "fewer calls may do" in of(found, "calls_to_reach")["note"].iloc[0]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (judged().assign(preference="TIE"), "all systems have equal ratings"),
        (judged().assign(preference=None), "no decided match"),
        (judged().head(0), "no decided match"),
        (judged()[lambda t: t["system_x"].isin(["s0", "s4"]) & t["system_y"].isin(["s1", "s5"])], "no chain"),
    ],
)
def test_undefined(table, reason):
    if reason == "no chain":  # s0 – s1, s0 – s5, s4 – s5 are joined; without s0 – s5 they are not
        table = table[~((table["system_x"] == "s0") & (table["system_y"] == "s5"))]
    found = spending(table, repeats=2, **OPTIONS)
    assert found["estimate"].isna().all()
    assert found["note"].str.startswith(f"undefined: {reason}").all()
    assert set(found["measure"]) >= {"calls_to_reach", "share_to_reach"}
    assert (found["n_used"] == 0).all()


def test_a_pair_that_the_table_does_not_hold_is_not_asked():
    table = judged()
    table = table[~((table["system_x"] == "s0") & (table["system_y"] == "s1"))]
    table = table.drop(index=table.index[3])
    found = spending(table, budgets=(0.5, 1.0), repeats=2, **OPTIONS)
    whole = of(found, "rank_correlation").filter(like=f"calls={2 * len(table)}", axis=0)
    assert whole["estimate"].iloc[:3].tolist() == pytest.approx([1.0] * 3)


def test_no_usable_verdict_costs_its_calls():
    table = judged()
    table.loc[::2, "preference"] = None
    found = spending(table, budgets=(1.0,), repeats=2, **OPTIONS)
    assert of(found, "rank_correlation").index[0] == "schedule=round_robin:calls=240"
    assert of(found, "rank_correlation")["estimate"].iloc[0] == pytest.approx(1.0)


def test_a_target_out_of_reach_and_one_repeat():
    found = spending(judged(), budgets=(0.02,), repeats=1, target=1.0, **OPTIONS)
    calls = of(found, "calls_to_reach")
    assert calls["estimate"].isna().all()
    assert of(found, "rank_correlation")["ci_low"].isna().all()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"budgets": ()}, "budgets"), ({"budgets": (0.0,)}, "budgets"), ({"budgets": (1.1,)}, "budgets"),
        ({"repeats": 0}, "repeats"), ({"calls_per_comparison": 0}, "calls_per_comparison"), ({"target": 2}, "target"),
        ({"schedules": ["swiss"]}, "swiss"), ({"ci_level": 1.0}, "ci_level"),
    ],
)  # fmt: skip
def test_options_are_checked(options, problem):
    with pytest.raises(ValueError, match=problem):
        spending(judged(), **(OPTIONS | options))
