"""Ratings against experts' ranks: by hand, scipy, naive permutations, invariances, ties, degenerate input."""

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from judgelab.measure.concordance import reviewer_concordance
from judgelab.measure.expert_ranks import COLUMNS, MEAN_RANK, correlation_rows, expert_correlations
from judgelab.measure.expert_table import correlation_table
from judgelab.measure.rows import COLUMNS as ROWS

NAN = float("nan")
OPTIONS = {"ci_level": 0.95, "resamples": 200, "seed": 5}


def study(*groups, reviewer="r"):
    """Ratings and ranks of groups given as (ratings, ranks of one reviewer or of several by name)."""
    ratings, ranks = [], []
    for g, (rating, given_ranks) in enumerate(groups):
        names = [f"s{k}" for k in range(len(rating))]
        ratings.append(pd.DataFrame({"group": f"g{g}", "system": names, "rating": rating}))
        reviewers = given_ranks if isinstance(given_ranks, dict) else {reviewer: given_ranks}
        for name, rank in reviewers.items():
            ranks.append(pd.DataFrame({"group": f"g{g}", "reviewer_id": name, "system": names, "rank": rank}))
    return pd.concat(ratings, ignore_index=True), pd.concat(ranks, ignore_index=True)


def one(rating, ranks):
    return expert_correlations(*study((rating, ranks))).iloc[0]


def summary(by_group, slice_="all", **options):
    rows = correlation_rows(by_group, slice_=slice_, judge="panel", **(OPTIONS | options))
    assert tuple(rows.columns) == ROWS
    return rows.set_index("measure")


def naive_p(x, y, statistic):
    """Share of all orders that are as far from 0 as the one that was seen."""
    seen = abs(statistic(x, y))
    values = [abs(statistic(x, order)) for order in permutations(y)]
    return sum(value >= seen - 1e-9 for value in values) / len(values)


def spearman(x, y):
    return np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1]


def kendall(x, y):
    return sum(np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]) for i in range(len(x)) for j in range(i))


def test_one_swap_among_five_by_hand():
    # Σ d² = 2: ρ = 1 − 6 · 2 / (5 · 24) = 0.9; 9 pairs agree, 1 does not: τ = 8/10.
    # Orders with ρ >= 0.9 (Σ d² <= 2) or τ >= 0.8 (at most one inversion): the identity and 4 swaps of neighbours;
    # with those turned round 10 of 120.
    line = one([50, 40, 30, 10, 20], [1, 2, 3, 4, 5])
    assert (line["spearman"], line["kendall"]) == pytest.approx((0.9, 0.8), abs=1e-15)
    assert line["p_spearman"] == line["p_kendall"] == pytest.approx(10 / 120, abs=1e-15)
    assert line["n_ranked"] == 5
    assert line["p_method"] == "exact, 120 orders"
    assert (line["expert_ranks"], line["rating_ranks"]) == ("1 2 3 4 5", "1 2 3 5 4")
    assert line["reason"] == ""
    assert stats.spearmanr([1, 2, 3, 4, 5], [1, 2, 3, 5, 4]).pvalue == pytest.approx(0.037, abs=5e-4)  # the docstring


def test_direction_higher_ratings_should_have_lower_ranks():
    assert one([3, 2, 1], [1, 2, 3])["spearman"] == 1.0
    assert one([1, 2, 3], [1, 2, 3])["spearman"] == -1.0
    # of 6 orders only two are perfect: no p below 1/3
    assert one([3, 2, 1], [1, 2, 3])["p_kendall"] == pytest.approx(1 / 3, abs=1e-15)


@settings(max_examples=15, deadline=None)
@given(st.integers(3, 5), st.data())
def test_equals_scipy_and_naive_permutations_with_ties(size, data):
    numbers = st.lists(st.integers(1, size), min_size=size, max_size=size).filter(lambda v: len(set(v)) > 1)
    rating, ranks = data.draw(numbers), data.draw(numbers)
    line, lower = one(rating, ranks), [-value for value in rating]
    assert line["spearman"] == pytest.approx(stats.spearmanr(lower, ranks).statistic, abs=1e-12)
    assert line["kendall"] == pytest.approx(stats.kendalltau(lower, ranks).statistic, abs=1e-12)
    assert line["p_spearman"] == pytest.approx(naive_p(lower, ranks, spearman), abs=1e-12)
    assert line["p_kendall"] == pytest.approx(naive_p(lower, ranks, kendall), abs=1e-12)


@pytest.mark.parametrize("size", [3, 5, 7])
def test_exact_p_equals_scipy(size):
    rng = np.random.default_rng(size)
    rating, ranks = rng.permutation(size), rng.permutation(size) + 1
    line = one(rating, ranks)
    assert line["p_kendall"] == pytest.approx(stats.kendalltau(rating, ranks, method="exact").pvalue, abs=1e-12)
    if size < 7:
        test = stats.permutation_test(
            (rating,), lambda x: stats.spearmanr(x, ranks).statistic, permutation_type="pairings", n_resamples=np.inf
        )
        assert line["p_spearman"] == pytest.approx(test.pvalue, abs=1e-12)


def test_eight_and_more_are_scipys_and_say_so():
    rng = np.random.default_rng(0)
    rating, ranks = rng.permutation(9), rng.permutation(9) + 1
    line = one(rating, ranks)
    assert line["p_spearman"] == pytest.approx(stats.spearmanr(-rating, ranks).pvalue, abs=1e-12)
    assert line["p_kendall"] == pytest.approx(stats.kendalltau(-rating, ranks, method="exact").pvalue, abs=1e-12)
    assert line["p_method"] == "scipy: Spearman t approximation, Kendall exact"
    ranks[1] = ranks[0]
    tied = one(rating, ranks)
    assert tied["p_kendall"] == pytest.approx(stats.kendalltau(-rating, ranks).pvalue, abs=1e-12)
    assert tied["p_method"] == "scipy: Spearman t approximation, Kendall normal"


def test_undefined_says_why():
    few = one([2, 1, NAN, NAN], [1, 2, 3, 4])
    assert (few["n_ranked"], few["reason"]) == (2, "2 systems with both scores, 3 are needed")
    constant = one([7.0, 7.0, 7.0], [1, 2, 3])
    assert constant["reason"] == "one side gives every system the same score"
    assert one([1, 2, 3], [1, 1, 1])["reason"] == constant["reason"]
    for line in (few, constant):
        assert line[["spearman", "kendall", "p_spearman", "p_kendall"]].isna().all()
    assert constant["rating_ranks"] == "2 2 2"


def test_groups_and_systems_on_one_side_only():
    ratings, ranks = study(([3, 2, 1, 0], [1, 2, 3, NAN]), ([1, 2, 3], [1, 2, 3]))
    line = expert_correlations(ratings[ratings["group"] == "g0"], ranks)
    assert line["n_ranked"].tolist() == [3, 0]
    assert line["reason"].tolist() == ["", "0 systems with both scores, 3 are needed"]
    assert expert_correlations(ratings, ranks[ranks["group"] == "g1"])["group"].tolist() == ["g1"]
    assert expert_correlations(ratings.astype({"rating": "Int64"}), ranks)["spearman"].tolist() == [1.0, -1.0]


def test_ratings_that_differ_by_rounding_are_tied():
    assert one([0.3, 0.1 + 0.2, 0.9], [2, 3, 1])["rating_ranks"] == "1 2.5 2.5"


def test_several_reviewers_and_their_mean_rank():
    # A ranks 1 2 3 4, B 2 1 3 4: the mean is 1.5 1.5 3 4. C ranked nothing and does not count.
    reviewers = {"A": [1, 2, 3, 4], "B": [2, 1, 3, 4], "C": [NAN] * 4}
    made = expert_correlations(*study(([9, 8, 7, 6], reviewers)))
    assert tuple(made.columns) == COLUMNS
    assert made["reviewer_id"].tolist() == ["A", "B", "C", MEAN_RANK]
    assert made["n_ranked"].tolist() == [4, 4, 0, 4]
    assert made["expert_ranks"].tolist() == ["1 2 3 4", "1 2 3 4", "", "1.5 1.5 3 4"]
    assert summary(made).loc["spearman_mean", "estimate"] == made["spearman"].tolist()[3]


def test_mean_rank_is_among_the_systems_all_ranked():
    # B ranked s2, s3, s4 only, as 1 2 3. Among those A has 1 2 3, too: s0 and s1 leave the mean, no rank 1 of three is
    # averaged with a rank 3 of five.
    reviewers = {"A": [1, 2, 3, 4, 5], "B": [NAN, NAN, 1, 2, 3]}
    made = expert_correlations(*study(([9, 8, 5, 6, 7], reviewers)))
    assert made["n_ranked"].tolist() == [5, 3, 3]
    assert made["spearman"].tolist()[1:] == [-1.0, -1.0]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6))
def test_rows_names_and_scale_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    ratings, ranks = study(*((rng.integers(0, 6, 5), {"A": rng.permutation(5), "B": rng.permutation(5)}) for _ in "ab"))
    plain = expert_correlations(ratings, ranks)
    renamed = {f"s{k}": name for k, name in enumerate(rng.permutation(list("vwxyz")))}
    ratings_moved, ranks_moved = (
        table.sample(frac=1, random_state=seed).assign(system=lambda t: t["system"].map(renamed))
        for table in (ratings, ranks)
    )
    moved = expert_correlations(
        ratings_moved.assign(rating=np.exp(ratings_moved["rating"])),
        ranks_moved.assign(rank=3.0 * ranks_moved["rank"] - 2).sort_values(["group", "reviewer_id"], kind="stable"),
    )
    pd.testing.assert_frame_equal(plain, moved)
    # ratings turned round: the signs change, the p-values stay
    turned = expert_correlations(ratings.assign(rating=-ratings["rating"]), ranks)
    assert turned["spearman"].to_numpy() == pytest.approx(-plain["spearman"].to_numpy(), nan_ok=True)
    assert turned["p_kendall"].to_numpy() == pytest.approx(plain["p_kendall"].to_numpy(), nan_ok=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r, k: (r.drop(columns="rating"), k), "ratings: missing column rating"),
        (lambda r, k: (r, k.drop(columns="reviewer_id")), "ranks: missing column reviewer_id"),
        (lambda r, k: (pd.concat([r, r]), k), "ratings: 3 of 6 rows repeat a group and system"),
        (lambda r, k: (r, pd.concat([k, k])), "repeat a group and reviewer_id and system"),
        (lambda r, k: (r.assign(rating=np.inf), k), "no finite number"),
        (lambda r, k: (r, k.assign(rank="first")), "no finite number"),
        (lambda r, k: (r, k.assign(reviewer_id=MEAN_RANK)), "call a reviewer 'mean rank'"),
        (lambda r, k: (r, k.assign(system=None)), "lack a name"),
    ],
)
def test_misuse(change, message):
    with pytest.raises(ValueError, match=message):
        expert_correlations(*change(*study(([1, 2, 3], [1, 2, 3]))))


def test_summary_by_hand():
    # ρ = 0.9, 1 and −1, τ = 0.8, 1 and −1; a group of two and one with equal ratings are left out
    groups = [
        ([5, 4, 3, 1, 2], [1, 2, 3, 4, 5]), ([3, 2, 1], [1, 2, 3]), ([1, 2, 3], [1, 2, 3]), ([1, 2], [1, 2]),
        ([1, 1, 1], [1, 2, 3]),
    ]  # fmt: skip
    rows = summary(expert_correlations(*study(*groups)), "threshold=0.9")
    assert rows.loc["spearman_mean", "estimate"] == pytest.approx(0.3, abs=1e-12)
    assert rows.loc["spearman_sd", "estimate"] == pytest.approx(np.std([0.9, 1, -1], ddof=1), abs=1e-12)
    assert rows.loc["kendall_mean", "estimate"] == pytest.approx(0.8 / 3, abs=1e-12)
    assert rows.loc["kendall_sd", "estimate"] == pytest.approx(np.std([0.8, 1, -1], ddof=1), abs=1e-12)
    assert rows.loc["spearman_p_mean", "estimate"] == pytest.approx((1 / 12 + 2 / 3) / 3, abs=1e-12)
    assert rows.loc["kendall_p_mean", "estimate"] == pytest.approx((1 / 12 + 2 / 3) / 3, abs=1e-12)
    assert rows.loc[["ranked_min", "ranked_max"], "estimate"].tolist() == [3, 5]
    assert (rows["n_used"] == 3).all()
    assert (rows["n_excluded"] == 2).all()
    assert (rows["judge"] == "panel").all()
    told = "2 of 5 groups left out: 1 with fewer than 3 ranked, 1 ranked all alike"
    assert rows["note"].str.contains(told).all()
    low, high = rows.loc["spearman_mean", ["ci_low", "ci_high"]]
    assert -1 <= low < 0.3 < high <= 1
    assert rows.loc["spearman_mean", "method"] == "percentile bootstrap over groups, 200 resamples, seed 5"
    assert "exact, 120 orders; exact, 6 orders" in rows.loc["spearman_p_mean", "method"]


def naive_combined(groups):
    """All orders of all groups at once."""
    seen = abs(sum(spearman(x, y) for x, y in groups))
    parts = [[spearman(x, order) for order in permutations(y)] for x, y in groups]
    sums = [abs(sum(choice)) for choice in product(*parts)]
    return sum(value >= seen - 1e-9 for value in sums) / len(sums)


@pytest.mark.parametrize(
    "groups",
    [
        [([1, 2, 3], [1, 3, 2]), ([1, 2, 3, 4], [1, 2, 4, 3])],
        [([1, 1, 2, 3], [1, 2, 3, 3]), ([1, 2, 3], [1, 2, 2]), ([1, 2, 3], [3, 2, 1])],
        [([1, 2, 3, 4], [4, 3, 2, 1])],
    ],
)
def test_combined_p_equals_all_orders(groups):
    made = expert_correlations(*study(*(([-value for value in x], y) for x, y in groups)))
    row = summary(made).loc["spearman_p_combined"]
    assert row["estimate"] == pytest.approx(naive_combined(groups), abs=1e-12)
    assert row["method"] == "exact, all orders of each group"
    if len(groups) == 1:
        assert row["estimate"] == pytest.approx(made["p_spearman"].iloc[0], abs=1e-12)


def test_combined_p_tells_what_single_groups_cannot():
    # ρ = 0.9 in ten groups of five: each p is 0.083, their mean too; together hardly chance
    rows = summary(expert_correlations(*study(*[([5, 4, 3, 1, 2], [1, 2, 3, 4, 5])] * 10)))
    assert rows.loc["spearman_p_mean", "estimate"] == pytest.approx(1 / 12, abs=1e-12)
    assert 0 < rows.loc["spearman_p_combined", "estimate"] < 1e-8
    # a normal twin where nothing is found: the variance of ρ of five is 1/4
    groups = [([5, 4, 3, 2, 1], [1, 3, 5, 2, 4])] * 10 + [([5, 4, 3, 2, 1], [5, 4, 3, 2, 1])] * 2
    rows = summary(expert_correlations(*study(*groups)))
    total = abs(12 * rows.loc["spearman_mean", "estimate"])
    # a step of the sum is 0.1: half of it as continuity correction
    assert rows.loc["spearman_p_combined", "estimate"] == pytest.approx(
        2 * stats.norm.sf((total - 0.05) / np.sqrt(12 / 4)), abs=0.01
    )


def test_combined_p_of_large_groups_is_drawn_and_repeats():
    rng = np.random.default_rng(0)
    groups = [(-rng.permutation(8), rng.permutation(8)) for _ in range(4)]
    made = expert_correlations(*study(*groups))
    row = summary(made).loc["spearman_p_combined"]
    assert row["method"] == "9999 random orders of each group"
    assert row["estimate"] == summary(made.iloc[::-1]).loc["spearman_p_combined", "estimate"]  # whatever the order
    assert row["estimate"] != summary(made, seed=6).loc["spearman_p_combined", "estimate"]
    total = abs(made["spearman"].sum())
    assert row["estimate"] == pytest.approx(2 * stats.norm.sf(total / np.sqrt(4 / 7)), abs=0.04)
    best = summary(expert_correlations(*study(*[(-np.arange(8), np.arange(8))] * 4)))
    assert best.loc["spearman_p_combined", "estimate"] == 1 / 10_000  # never 0


def test_combined_p_is_a_p_value_under_chance():
    # at most 20 % of 100 studies of three groups at 0.2 or below: 20, and four standard deviations of 4
    rng = np.random.default_rng(11)
    made = expert_correlations(*study(*((rng.permutation(4), rng.permutation(4)) for _ in range(300))))
    studies = [made.iloc[start : start + 3] for start in range(0, 300, 3)]
    found = sum(summary(each, resamples=1).loc["spearman_p_combined", "estimate"] <= 0.2 for each in studies)
    assert 6 <= found <= 36


def test_too_many_different_values_are_drawn_instead(monkeypatch):
    monkeypatch.setattr("judgelab.measure.expert_ranks.SUPPORT", 10)
    made = expert_correlations(*study(([4, 3, 2, 1], [1, 2, 3, 4]), ([4, 3, 2, 1], [1, 2, 4, 3])))
    drawn = summary(made).loc["spearman_p_combined"]
    monkeypatch.undo()
    exact = summary(made).loc["spearman_p_combined"]
    assert (drawn["method"][:4], exact["method"][:5]) == ("9999", "exact")
    assert drawn["estimate"] == pytest.approx(exact["estimate"], abs=0.01)


def test_no_group_one_group():
    ratings, ranks = study(([1, 2], [1, 2]))
    for by_group in (expert_correlations(ratings, ranks), expert_correlations(ratings, ranks.iloc[:0])):
        rows = summary(by_group)
        assert rows["estimate"].isna().all()
        assert rows["note"].str.startswith("undefined: ").all()
    one_group = summary(expert_correlations(*study(([3, 2, 1], [1, 2, 3]))))
    assert one_group.loc["spearman_mean", "note"] == "no interval: 1 group"
    assert one_group.loc["spearman_sd", "note"] == "undefined: fewer than two groups"
    with pytest.raises(ValueError, match="missing column"):
        summary(pd.DataFrame({"group": []}))


def test_table_in_the_shape_of_the_paper():
    full = expert_correlations(*study(([5, 4, 3, 1, 2], [1, 2, 3, 4, 5]), ([6, 5, 4, 3, 2, 1], [1, 2, 3, 4, 5, 6])))
    part = expert_correlations(*study(([5, 4, 3, 1, 2], [1, 2, 3, 4, 5]), ([2, 1], [1, 2])))
    none = expert_correlations(*study(([2, 1], [1, 2])))
    rows = pd.concat(
        [
            correlation_rows(table, slice_=slice_, judge="panel", **OPTIONS)
            for slice_, table in [
                ("threshold=none", full), ("threshold=0.75", full), ("threshold=1.0", none), ("all", full),
                ("threshold=0.9", part),
            ]
        ]
    )  # fmt: skip
    table = correlation_table(rows)
    assert table.columns.tolist() == [
        "threshold", "Spearman", "Kendall", "p (Spearman / Kendall)", "groups", "ranked per group",
    ]  # fmt: skip
    # ρ = 0.9 and 1: mean 0.95, deviation 0.1 / √2; τ = 0.8 and 1; p = 1/12 and 2/720
    both = ["0.950 ± 0.071", "0.900 ± 0.141", "0.043 / 0.043", "2", "5 to 6"]
    assert table.to_numpy().tolist() == [
        ["1.0", "undefined", "undefined", "undefined", "0 of 1", ""],
        ["0.9", "0.900", "0.800", "0.083 / 0.083", "1 of 2", "5"],
        ["0.75", *both],
        ["No T.", *both],
        ["all", *both],
    ]
    assert len(correlation_table(rows.iloc[:0])) == 0
    for wrong in (pd.concat([rows, rows]), pd.concat([rows, rows.assign(judge="other")])):
        with pytest.raises(ValueError, match="one judge or panel"):
            correlation_table(wrong)


def concordance(*reviewers):
    _, ranks = study(*(([0] * len(next(iter(each.values()))), each) for each in reviewers))
    rows = reviewer_concordance(ranks, **OPTIONS)
    assert tuple(rows.columns) == ROWS
    return rows


def test_concordance_by_hand():
    # A 1 2 3, B 1 3 2, C 1 2 3: sums 3 7 8, mean 6, S = 9 + 1 + 4 = 14; W = 12 · 14 / (9 · 24) = 7/9
    first = {"A": [1, 2, 3], "B": [1, 3, 2], "C": [1, 2, 3]}
    # ρ = 0.9 of two: W = 0.95
    second = {"A": [1, 2, 3, 4, 5], "B": [1, 2, 3, 5, 4]}
    rows = concordance(first, second)
    assert rows["slice"].tolist() == ["group=g0", "group=g1", "all"]
    assert rows["estimate"].tolist() == pytest.approx([7 / 9, 0.95, (7 / 9 + 0.95) / 2], abs=1e-12)
    assert rows["n_used"].tolist() == [3, 5, 2]
    assert rows["measure"].tolist() == ["kendall_w", "kendall_w", "kendall_w_mean"]
    assert rows["method"].iloc[0] == "3 reviewers, ties corrected"
    assert rows["method"].iloc[2] == "percentile bootstrap over groups, 200 resamples, seed 5"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(3, 6), st.integers(3, 5))
def test_concordance_equals_friedmans_statistic(seed, systems, reviewers):
    rng = np.random.default_rng(seed)
    ranks = rng.integers(1, systems + 1, (reviewers, systems))
    ranks[0] = np.arange(systems)  # not all tied
    w = concordance({f"r{k}": own for k, own in enumerate(ranks)})["estimate"].iloc[0]
    assert w == pytest.approx(stats.friedmanchisquare(*ranks.T).statistic / (reviewers * (systems - 1)), abs=1e-12)
    assert -1e-12 <= w <= 1 + 1e-12


def test_concordance_undefined():
    rows = concordance(
        {"A": [1, 2, 3]},
        {"A": [1, 2, 3], "B": [NAN, NAN, NAN]},
        {"A": [1, 2, 3], "B": [NAN, 1, 2]},
        {"A": [1, 1, 1], "B": [2, 2, 2]},
    )
    assert rows["note"].tolist() == [
        "undefined: 1 reviewer, 2 are needed",
        "undefined: 1 reviewer, 2 are needed",
        "undefined: 2 systems ranked by all reviewers, 3 are needed",
        "undefined: every reviewer ranks all systems alike",
        "undefined: no group to count; 4 of 4 groups left out: 4 without concordance",
    ]
    assert rows["estimate"].isna().all()
    assert rows["n_excluded"].tolist() == [0, 0, 1, 0, 4]
    _, ranks = study(([1, 2, 3], [1, 2, 3]))
    empty = reviewer_concordance(ranks.iloc[:0], **OPTIONS)
    assert empty["note"].tolist() == ["undefined: no group to count"]
