"""Rank sets and letters: planted studies, a naive twin, by hand, invariances, degenerate input."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgelab.measure.rank_sets import _groups, _names, rank_sets, surely_above, tied_groups
from judgelab.measure.rows import COLUMNS

NAN = float("nan")


def names(size):
    return [f"s{k}" for k in range(size)]


def planted(seed, size, *, draws=199, gap=1.0):
    rng = np.random.default_rng(seed)
    estimates = rng.normal(size=size) * gap
    return names(size), estimates, estimates + rng.normal(size=(draws, size)) * rng.uniform(0.2, 1.0, size)


def rows(systems, estimates, draws, ci_level=0.95):
    table = rank_sets(systems, estimates, draws, ci_level=ci_level, judge="panel", method_name="planted")
    assert tuple(table.columns) == COLUMNS
    return table.set_index(table["slice"].str.removeprefix("system=")).loc[list(systems)]


def naive_above(estimates, draws, level):
    """Pair by pair from the definition."""
    size = len(estimates)
    spread = {}
    for j, k in combinations(range(size), 2):
        differences = [draw[j] - draw[k] for draw in draws]
        mean = sum(differences) / len(differences)
        spread[j, k] = math.sqrt(sum((d - mean) ** 2 for d in differences) / (len(differences) - 1))
    largest = sorted(
        max(abs(draw[j] - draw[k] - (estimates[j] - estimates[k])) / spread[j, k] for j, k in spread) for draw in draws
    )
    place = next(i for i in range(1, len(draws) + 1) if i >= level * (len(draws) + 1) - 1e-9)
    critical = largest[place - 1]
    above = [[False] * size for _ in range(size)]
    for j, k in spread:
        above[j][k] = estimates[j] - estimates[k] > critical * spread[j, k]
        above[k][j] = estimates[k] - estimates[j] > critical * spread[j, k]
    return above


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([0.8, 0.9, 0.95]))
def test_equals_its_definition(seed, size, level):
    systems, estimates, draws = planted(seed, size, draws=99, gap=2.0)
    naive = naive_above(estimates, draws, level)
    assert surely_above(systems, estimates, draws, ci_level=level).tolist() == naive
    table = rows(systems, estimates, draws, level)
    for j, system in enumerate(systems):
        assert table.loc[system, "ci_low"] == 1 + sum(naive[k][j] for k in range(size))
        assert table.loc[system, "ci_high"] == size - sum(naive[j])


def test_critical_value_by_hand():
    # One pair, B = 19 draws of the difference: d + {−9, ..., 9}; s = √(2 · 285 / 18) = 5.6273. Order statistic
    # number ⌈0.9 · 20⌉ = 18 of the |d* − d| (0, 1, 1, ..., 9, 9) is 9: B is told apart from A if d > c s = 9.
    noise = np.arange(-9, 10.0)
    for gap, apart in [(8.999, False), (9.001, True)]:
        draws = np.column_stack([np.zeros(19), gap + noise])
        assert surely_above(["A", "B"], [0.0, gap], draws, ci_level=0.9)[1, 0] == apart
    # level 0.8: number 16 of 19 is 8
    draws = np.column_stack([np.zeros(19), 8.001 + noise])
    assert surely_above(["A", "B"], [0.0, 8.001], draws, ci_level=0.8)[1, 0]


def test_two_normal_systems_as_the_z_test():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=20_000)
    for z, apart in [(1.92, False), (2.0, True)]:
        draws = np.column_stack([z + noise, np.zeros(20_000)])
        assert surely_above(["A", "B"], [z, 0.0], draws, ci_level=0.95)[0, 1] == apart


def planted_study(rng, truth, covariance):
    """Estimates of a study and draws that know the spread but not the truth."""
    estimates = rng.multivariate_normal(truth, covariance)
    return estimates, rng.multivariate_normal(estimates, covariance, size=399)


def test_planted_order_is_covered_by_all_sets_at_once():
    # 200 studies at 95 %: 190 expected at least; four standard deviations of √(200 · 0.95 · 0.05) = 3.1 below
    rng = np.random.default_rng(20240601)
    truth = np.array([0.0, 0.2, 0.25, 1.0, 1.1, 2.5])
    covariance = 0.15 * (np.eye(6) + 0.5)  # the same items: correlated
    covered, size_sum = 0, 0.0
    for _ in range(200):
        table = rows(names(6), *planted_study(rng, truth, covariance))
        true_rank = 6 - np.arange(6)
        covered += bool(((table["ci_low"] <= true_rank) & (true_rank <= table["ci_high"])).all())
        size_sum += float((table["ci_high"] - table["ci_low"]).sum())
    assert covered >= 178
    assert size_sum / 200 < 22  # of 30 if nothing were told apart: the sets say something


def test_equal_systems_are_rarely_told_apart():
    # at most 5 % of 200 studies: 10, and four standard deviations above
    rng = np.random.default_rng(7)
    told = sum(
        surely_above(names(5), *planted_study(rng, np.zeros(5), np.eye(5)), ci_level=0.95).any() for _ in range(200)
    )
    assert told <= 22


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.randoms(use_true_random=False))
def test_order_names_shift_and_scale_do_not_matter(seed, size, random):
    systems, estimates, draws = planted(seed, size, gap=2.0)
    plain = rows(systems, estimates, draws)
    order = random.sample(range(size), size)
    moved = rows([f"x{systems[k]}" for k in order], 3 * estimates[order] + 7, 3 * draws[:, order] + 7)
    columns = ["estimate", "ci_low", "ci_high"]
    assert moved[columns].to_numpy().tolist() == plain[columns].to_numpy()[order].tolist()
    # turned round: the best is the worst
    turned = rows(systems, -estimates, -draws)
    assert (turned["estimate"] == size + 1 - plain["estimate"]).all()
    assert (turned["ci_low"] == size + 1 - plain["ci_high"]).all()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7))
def test_sets_hold_the_rank_and_shrink_with_the_level(seed, size):
    systems, estimates, draws = planted(seed, size, gap=2.0)
    wide, narrow = (rows(systems, estimates, draws, level) for level in (0.99, 0.8))
    for table in (wide, narrow):
        assert ((table["ci_low"] <= table["estimate"]) & (table["estimate"] <= table["ci_high"])).all()
    assert ((wide["ci_low"] <= narrow["ci_low"]) & (narrow["ci_high"] <= wide["ci_high"])).all()


def test_rows_come_best_first_and_say_how():
    systems, estimates, draws = names(3), np.array([1.0, 9.0, 1.0]), np.random.default_rng(0).normal(size=(199, 3))
    table = rank_sets(systems, estimates, draws + estimates, ci_level=0.9, judge="panel", method_name="win rate")
    assert table["slice"].tolist() == ["system=s1", "system=s0", "system=s2"]
    assert table["estimate"].tolist() == [1.0, 2.5, 2.5]  # ties share the mean rank
    first = table.iloc[0]
    assert (first["judge"], first["strategy"], first["pass"], first["measure"]) == ("panel", "pairwise", "both", "rank")
    assert (first["n_used"], first["n_excluded"], first["ci_level"], first["note"]) == (3, 0, 0.9, "")
    assert first["method"] == "win rate; rank set: simultaneous over all pairs, max |t|, 199 draws"


def test_letters_show_who_is_told_apart():
    # A > C and D, B > D, nothing else: largest groups without two told apart are AB, BC and CD
    above = np.zeros((4, 4), dtype=bool)
    above[0, [2, 3]] = above[1, 3] = True
    assert _groups(above, [0, 1, 2, 3]) == [[0, 1], [1, 2], [2, 3]]
    # Piepho (2004), the idea of insert and absorb: only 0 > 3 among four gives 012 and 123
    above = np.zeros((4, 4), dtype=bool)
    above[0, 3] = True
    assert _groups(above, [0, 1, 2, 3]) == [[0, 1, 2], [1, 2, 3]]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.data())
def test_letters_are_the_largest_groups(size, data):
    pairs = list(combinations(range(size), 2))
    above = np.zeros((size, size), dtype=bool)
    for j, k in data.draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []:
        above[j, k] = True
    found = _groups(above, list(range(size)))
    alike = [
        set(part)
        for count in range(1, size + 1)
        for part in combinations(range(size), count)
        if not any(above[j, k] for j, k in combinations(part, 2))
    ]
    largest = [part for part in alike if not any(part < other for other in alike)]
    assert sorted(found) == sorted(sorted(part) for part in largest)


def test_tied_groups_table():
    rng = np.random.default_rng(3)
    systems, estimates = ["low", "none", "top", "mid", "mid2"], np.array([0.0, NAN, 9.0, 4.0, 4.1])
    draws = estimates + 0.3 * rng.normal(size=(399, 5))
    table = tied_groups(systems, estimates, draws, ci_level=0.95)
    assert table.columns.tolist() == ["system", "estimate", "rank", "low", "high", "letters"]
    assert table["system"].tolist() == ["top", "mid2", "mid", "low", "none"]
    assert table["letters"].tolist() == ["a", "b", "b", "c", ""]
    assert table["rank"].tolist()[:4] == [1, 2, 3, 4]
    assert table["low"].tolist()[:4] == [1, 2, 2, 4]
    assert table["high"].tolist()[:4] == [1, 3, 3, 4]
    assert table.iloc[4][["rank", "low", "high"]].isna().all()


def test_sixty_systems_told_apart_have_sixty_letters():
    estimates = np.arange(60.0)
    draws = estimates + 0.01 * np.random.default_rng(0).normal(size=(199, 60))
    letters = tied_groups(names(60), estimates, draws, ci_level=0.95)["letters"].tolist()
    assert letters[:2] == ["a", "b"]
    assert letters[51:54] == ["Z", "a2", "b2"]
    assert len(set(letters)) == 60
    made = _names()
    assert [next(made) for _ in range(105)][-1] == "a3"


def test_a_system_without_an_estimate_may_stand_anywhere():
    rng = np.random.default_rng(0)
    estimates = np.array([5.0, NAN, 0.0])
    draws = np.array([5.0, 0.0, 0.0]) + rng.normal(size=(199, 3)) * 0.1
    draws[:150, 1] = NAN  # draws of a system that is left out take nothing away
    table = rows(names(3), estimates, draws)
    assert table["estimate"].tolist()[::2] == [1.0, 2.0]
    assert table.loc["s1", ["estimate", "ci_low", "ci_high"]].isna().all()
    assert table.loc["s1", "note"] == "undefined: no estimate"
    assert table.loc["s0", "note"] == "rank among the 2 with an estimate; 1 without may stand anywhere"
    assert (table["n_used"] == 2).all()
    assert (table["n_excluded"] == 1).all()
    assert not surely_above(names(3), estimates, draws, ci_level=0.95)[1].any()


def test_undefined_draws_are_left_out_and_counted():
    systems, estimates, draws = names(2), np.array([5.0, 0.0]), np.random.default_rng(0).normal(size=(200, 2))
    draws = 0.1 * draws + estimates
    draws[:10, 0], draws[10, 1] = NAN, math.inf
    few = rows(systems, estimates, draws[2:])  # 9 of 198: below 5 %
    assert few.loc["s0", "note"] == "9 of 198 draws undefined and left out"
    assert few["ci_high"].tolist() == [1, 2]
    assert few["method"].str.endswith("189 draws").all()
    many = rows(systems, estimates, draws)  # 11 of 200: more
    assert many.loc["s0", "note"] == "nothing is told apart: 11 of 200 draws undefined"
    assert many[["ci_low", "ci_high"]].to_numpy().tolist() == [[1, 2], [1, 2]]


@pytest.mark.parametrize("draws", [0, 1, 2, 18])
def test_too_few_draws_tell_nothing_apart(draws):
    sampled = np.array([9.0, 0.0]) + np.random.default_rng(0).normal(size=(draws, 2)) * 1e-3
    table = rows(names(2), [9.0, 0.0], sampled)
    assert table[["ci_low", "ci_high"]].to_numpy().tolist() == [[1, 2], [1, 2]]
    assert (table["note"] == f"nothing is told apart: {draws} draws are too few").all()


def test_nineteen_draws_are_enough_at_95_percent():
    sampled = np.array([9.0, 0.0]) + np.random.default_rng(0).normal(size=(19, 2)) * 1e-3
    assert surely_above(names(2), [9.0, 0.0], sampled, ci_level=0.95)[0, 1]


def test_a_difference_without_spread_tells_nothing():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(199, 2)) * 0.1
    # s0 and s1 are the same in every draw, s2 is always 1 above s0, s3 is far away and varies on its own
    draws = np.column_stack([noise[:, 0], noise[:, 0], noise[:, 0] + 1.0, noise[:, 1] + 9.0])
    estimates = [0.0, 0.0, 1.0, 9.0]
    above = surely_above(names(4), estimates, draws, ci_level=0.95)
    assert above[3].tolist() == [True, True, True, False]
    assert not above[:3].any()
    table = rows(names(4), estimates, draws)
    assert table["estimate"].tolist() == [3.5, 3.5, 2.0, 1.0]
    assert table.loc["s2", "note"] == "the same difference in every draw, so not told apart from s0, s1"
    assert table.loc["s0", "note"] == "the same difference in every draw, so not told apart from s2"
    assert table.loc["s3", "note"] == ""
    assert tied_groups(names(4), estimates, draws, ci_level=0.95)["letters"].tolist() == ["a", "b", "b", "b"]


def test_identical_systems_only():
    draws = np.tile(np.random.default_rng(0).normal(size=(99, 1)), 3)
    table = rows(names(3), [0.1, 0.1, 0.1], draws)
    assert table[["estimate", "ci_low", "ci_high"]].to_numpy().tolist() == [[2, 1, 3]] * 3
    assert (table["note"] == "").all()


def test_estimates_that_differ_by_rounding_are_tied():
    draws = np.random.default_rng(0).normal(size=(99, 2))
    assert rows(["A", "B"], [0.3, 0.1 + 0.2], draws)["estimate"].tolist() == [1.5, 1.5]
    assert rows(["A", "B"], [0.0, 0.0], draws)["estimate"].tolist() == [1.5, 1.5]


def test_one_system_and_none():
    one = rows(["A"], [1.0], np.ones((99, 1)))
    assert one[["estimate", "ci_low", "ci_high"]].to_numpy().tolist() == [[1, 1, 1]]
    assert one["note"].tolist() == ["one system, nothing to compare"]
    assert tied_groups(["A"], [1.0], np.ones((99, 1)), ci_level=0.95)["letters"].tolist() == ["a"]
    assert len(rank_sets([], [], np.ones((99, 0)), ci_level=0.95, judge="j", method_name="")) == 0
    assert surely_above([], [], np.ones((99, 0)), ci_level=0.95).shape == (0, 0)
    assert len(tied_groups([], [], np.ones((99, 0)), ci_level=0.95)) == 0
    nothing = rows(["A", "B"], [NAN, NAN], np.full((99, 2), NAN))
    assert (nothing["note"] == "undefined: no estimate").all()
    assert tied_groups(["A", "B"], [NAN, NAN], np.full((99, 2), NAN), ci_level=0.95)["letters"].tolist() == ["", ""]


@pytest.mark.parametrize(
    ("systems", "estimates", "draws", "level", "message"),
    [
        (["A", "A"], [1.0, 2.0], np.ones((9, 2)), 0.95, "a name is used twice"),
        (["A", "B"], [1.0], np.ones((9, 2)), 0.95, "estimates have shape"),
        (["A", "B"], [1.0, 2.0], np.ones((2, 9)), 0.95, "draws have shape"),
        (["A", "B"], [1.0, 2.0], np.ones(2), 0.95, "draws have shape"),
        (["A", "B"], [1.0, 2.0], np.ones((9, 2)), 1.0, "ci_level is 1.0"),
    ],
)
def test_misuse(systems, estimates, draws, level, message):
    with pytest.raises(ValueError, match=message):
        surely_above(systems, estimates, draws, ci_level=level)
