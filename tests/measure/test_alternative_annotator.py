"""The alternative annotator test: by hand, against a loop written from the paper, and its tests' true level."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from scipy.stats import binom, ttest_1samp, ttest_rel
from scipy.stats import t as student
from statsmodels.stats.multitest import multipletests

from judgelab.measure.alternative_annotator import alternative_annotator_scores, alternative_annotator_table
from judgelab.measure.noninferiority import advantage_test, exact_advantage_p, score_statistic
from judgelab.measure.rows import COLUMNS
from judgelab.study.sources import read_pandalm

from .conftest import ALPHA_BETA, make_normalized, pick

A, B, T = ALPHA_BETA
FEW = {"ci_level": 0.95, "resamples": 50, "seed": 3}
NAMES = ("r1", "r2", "r3", "r4")


def make_labels(by_reviewer):
    rows = [
        {"item_id": item, "reviewer_id": name, "system_x": "ALPHA", "system_y": "BETA", "preference": value}
        for name, values in by_reviewer.items()
        for item, value in enumerate(values)
        if value is not None
    ]
    columns = ["item_id", "reviewer_id", "system_x", "system_y", "preference"]
    frame = pd.DataFrame(rows, columns=columns).assign(score_x=np.nan, score_y=np.nan, is_adjudicated=False)
    return frame.astype({"is_adjudicated": bool})


def table_of(labels, normalized, epsilon=0.1, rate=0.05, **options):
    return alternative_annotator_table(
        labels,
        normalized,
        labels_allowed=ALPHA_BETA,
        epsilon=epsilon,
        false_discovery_rate=rate,
        **(FEW | options),
    )


def random_study(n, seed, people=0.7, judge=0.8, missing=0.0):
    """Four reviewers and a judge that know the truth in a share of the items and guess in the others."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(ALPHA_BETA, n)

    def noisy(share):
        made = np.where(rng.random(n) < share, truth, rng.choice(ALPHA_BETA, n)).astype(object)
        made[rng.random(n) < missing] = None
        return list(made)

    return {name: noisy(people) for name in NAMES}, noisy(judge)


def from_the_paper(people, judge, score, epsilon):
    """Sections 3.1 to 3.3 as a loop: rho and p of each annotator, winning rate, mean rho."""
    rhos, p_values = {}, {}
    for name, own in people.items():
        wins, differences = [], []
        for i, (mine, its) in enumerate(zip(own, judge, strict=True)):
            others = [values[i] for other, values in people.items() if other != name and values[i] is not None]
            if mine is None or its is None or not others:
                continue
            of_judge, of_human = score(its, others), score(mine, others)
            wins.append(of_judge >= of_human)
            differences.append(int(of_human >= of_judge) - int(of_judge >= of_human))
        rhos[name] = np.mean(wins)
        p_values[name] = ttest_1samp(differences, epsilon, alternative="less").pvalue
    rejected = multipletests(list(p_values.values()), alpha=0.05, method="fdr_by")[0]
    return rhos, p_values, rejected.mean(), np.mean(list(rhos.values()))


def accuracy(label, others):
    return np.mean([label == other for other in others])


def negative_rmse(value, others):
    return -math.sqrt(np.mean([(value - other) ** 2 for other in others]))


def check(table, people, judge, score, epsilon, prefix=""):
    rhos, p_values, winning, mean = from_the_paper(people, judge, score, epsilon)
    for name in people:
        slice_ = f"{prefix}reviewer={name}"
        line = pick(table, "advantage_probability", "direct", slice_)
        assert line["estimate"] == pytest.approx(rhos[name], abs=1e-12)
        assert pick(table, "alternative_annotator_p", "direct", slice_)["estimate"] == pytest.approx(
            p_values[name], abs=1e-12
        )
    whole = prefix.rstrip(",") or "all"
    assert pick(table, "winning_rate", "direct", whole)["estimate"] == pytest.approx(winning)
    line = pick(table, "average_advantage_probability", "direct", whole)
    assert line["estimate"] == pytest.approx(mean, abs=1e-12)
    assert line["ci_low"] < line["estimate"] < line["ci_high"]


def test_by_hand():
    # 40 items, the same 4 ten times. Shares of the other two with the label of (judge, r1):
    # A | A A A: 1, 1      B | A B B: 1, 0      A | B B A: 1/2, 1/2      T | A A B: 0, 1/2
    judge, r1, r2, r3 = ([A, B, A, T] * 10, [A, A, B, A] * 10, [A, B, B, A] * 10, [A, B, A, B] * 10)
    table = table_of(make_labels({"r1": r1, "r2": r2, "r3": r3}), make_normalized([None] * 40, judge))
    line = pick(table, "advantage_probability", "direct", "reviewer=r1")
    assert (line["numerator"], line["denominator"]) == (30, 40)
    # d = 0, -1, 0, 1: mean 0, s² = 20 / 39; t = (0 - 0.1) √40 / s = -0.1 √78, 39 degrees of freedom
    line = pick(table, "alternative_annotator_p", "direct", "reviewer=r1")
    assert line["estimate"] == pytest.approx(student.cdf(-0.1 * math.sqrt(78), 39), abs=1e-12)
    assert line["method"] == "t test, H₁: the reviewer's advantage is below 0.1"
    assert tuple(table.columns) == COLUMNS


@pytest.mark.parametrize(("seed", "people", "judge"), [(1, 0.7, 0.8), (2, 0.9, 0.5), (3, 0.5, 0.5), (4, 0.6, 0.9)])
def test_labels_equal_the_papers_loop(seed, people, judge):
    labels, its = random_study(70, seed, people, judge, missing=0.1)
    for epsilon in (0.0, 0.1, 0.2):
        table = table_of(make_labels(labels), make_normalized([None] * 70, its), epsilon)
        check(table, labels, its, accuracy, epsilon)


def test_scores_equal_the_papers_loop():
    rng = np.random.default_rng(8)
    n = 80
    truth = rng.uniform(1, 5, n)
    people = {name: list(np.clip(np.round(truth + rng.normal(0, 0.8, n)), 1, 5)) for name in NAMES}
    people["r2"][5] = people["r4"][5] = people["r4"][6] = None
    judge = list(np.round(truth + rng.normal(0, 0.7, n), 1))
    rows = [
        {"item_id": i, "reviewer_id": name, "preference": A, "score_x": values[i], "score_y": np.nan}
        for name, values in people.items()
        for i in range(n)
    ]
    labels = pd.DataFrame(rows).assign(system_x="ALPHA", system_y="BETA", is_adjudicated=False)
    normalized = make_normalized([None] * n, [A] * n).assign(total_x=judge)
    options = {"epsilon": 0.15, "false_discovery_rate": 0.05, **FEW}
    table = alternative_annotator_scores(labels, normalized, **options)
    check(table, people, judge, negative_rmse, 0.15, "scores,")
    # the distances do not care for the unit of the scores
    scaled = labels.assign(score_x=labels["score_x"] * 10 + 3)
    turned = alternative_annotator_scores(scaled, normalized.assign(total_x=np.array(judge) * 10 + 3), **options)
    pd.testing.assert_frame_equal(turned, table)


def test_scores_of_both_answers_stay_in_their_item():
    rng = np.random.default_rng(9)
    rows = [
        {
            "item_id": i,
            "reviewer_id": name,
            "preference": A,
            "score_x": rng.integers(1, 6),
            "score_y": rng.integers(1, 6),
        }
        for name in NAMES[:3]
        for i in range(40)
    ]
    labels = pd.DataFrame(rows).assign(system_x="ALPHA", system_y="BETA", is_adjudicated=False)
    totals = {"total_x": rng.integers(1, 6, 40).astype(float), "total_y": rng.integers(1, 6, 40).astype(float)}
    normalized = make_normalized([None] * 40, [A] * 40).assign(**totals)
    table = alternative_annotator_scores(labels, normalized, epsilon=0.1, false_discovery_rate=0.05, **FEW)
    line = pick(table, "advantage_probability", "direct", "scores,reviewer=r1")
    assert (line["denominator"], line["n_used"]) == (80, 40)
    line = pick(table, "alternative_annotator_p", "direct", "scores,reviewer=r1")
    assert line["method"].startswith("t test of sums over items")


def test_a_judge_as_good_as_people_may_replace_one_and_a_bad_one_may_not():
    labels, good = random_study(200, 5, people=0.7, judge=0.9)
    table = table_of(make_labels(labels), make_normalized([None] * 200, good), 0.1)
    line = pick(table, "winning_rate", "direct")
    assert (line["estimate"], line["numerator"], line["denominator"]) == (1, 4, 4)
    labels, bad = random_study(200, 6, people=0.8, judge=0.2)
    assert (
        pick(table_of(make_labels(labels), make_normalized([None] * 200, bad)), "winning_rate", "direct")["estimate"]
        == 0
    )


def test_order_and_names_change_nothing():
    labels, judge = random_study(60, 7, missing=0.05)
    table = table_of(make_labels(labels), make_normalized([None] * 60, judge))
    frame, normalized = make_labels(labels), make_normalized([None] * 60, judge)
    shuffled = table_of(frame.sample(frac=1, random_state=1), normalized.sample(frac=1, random_state=2))
    columns = ["slice", "measure", "estimate", "numerator", "denominator"]
    pd.testing.assert_frame_equal(shuffled[columns], table[columns])
    swap = {A: B, B: A, T: T}
    turned = table_of(
        frame.assign(preference=frame["preference"].map(swap)),
        normalized.assign(direct=[swap.get(label) for label in judge]),
    )
    pd.testing.assert_frame_equal(turned[columns], table[columns])


@pytest.mark.parametrize("names", [(), ("r1",), ("r1", "r2")])
def test_fewer_than_three_reviewers(names):
    labels, judge = random_study(40, 1)
    table = table_of(make_labels({name: labels[name] for name in names}), make_normalized([None] * 40, judge))
    for measure in ("winning_rate", "average_advantage_probability"):
        line = pick(table, measure, "direct")
        assert np.isnan(line["estimate"])
        assert f"{len(names)} reviewer{'s' * (len(names) != 1)}, 3 are needed" in line["note"]
    assert table.loc[table["measure"] == "alternative_annotator_p", "estimate"].isna().all()


def test_fewer_than_thirty_units():
    labels, judge = random_study(29, 1)
    table = table_of(make_labels(labels), make_normalized([None] * 29, judge))
    line = pick(table, "winning_rate", "direct")
    assert np.isnan(line["estimate"])
    assert line["note"] == "undefined: 29 units, 30 are needed"
    assert pick(table, "average_advantage_probability", "direct")["estimate"] > 0


def test_a_reviewer_with_fewer_units_has_the_exact_test():
    labels, judge = random_study(60, 11)
    labels["r4"] = [*labels["r4"][:20], *[None] * 40]
    table = table_of(make_labels(labels), make_normalized([None] * 60, judge))
    assert pick(table, "alternative_annotator_p", "direct", "reviewer=r4")["method"].startswith("exact score test")
    assert pick(table, "alternative_annotator_p", "direct", "reviewer=r1")["method"].startswith("t test")
    assert pick(table, "winning_rate", "direct")["denominator"] == 4


def test_a_judge_that_is_everybodys_equal_is_tested_too():
    # Everybody says the same: no spread, so no t test. No share makes 40 times nothing likelier than 0.9^40, but others
    # make outcomes as low likelier: p is a little above. Three equal p are rejected by Benjamini-Yekutieli at or
    # below 0.05 / (1 + 1/2 + 1/3) = 0.0273.
    same = [A, B] * 20
    table = table_of(make_labels(dict.fromkeys(NAMES[:3], same)), make_normalized([None] * 40, same))
    line = pick(table, "alternative_annotator_p", "direct", "reviewer=r1")
    assert line["estimate"] == exact_advantage_p(0, 0, 40, 0.1)
    assert 0.9**40 < line["estimate"] < 0.0273
    assert pick(table, "winning_rate", "direct")["estimate"] == 1
    nothing = table_of(make_labels(dict.fromkeys(NAMES[:3], same)), make_normalized([None] * 40, same), 0.0)
    line = pick(nothing, "winning_rate", "direct")
    assert np.isnan(line["estimate"])
    assert "no reviewer could be tested" in line["note"]
    line = pick(nothing, "alternative_annotator_p", "direct", "reviewer=r1")
    assert line["note"] == "undefined: no unit separates the two, and ε is 0"


def test_no_verdict_at_all():
    labels, _ = random_study(40, 1)
    table = table_of(make_labels(labels), make_normalized([None] * 40, [None] * 40))
    assert table["estimate"].isna().all()
    assert table["note"].str.contains("undefined").all()


@pytest.mark.parametrize("epsilon", [-0.1, 1.0, float("nan")])
def test_epsilon_is_checked(epsilon):
    labels, judge = random_study(40, 1)
    with pytest.raises(ValueError, match=r"epsilon is .*; allowed is 0 to below 1"):
        table_of(make_labels(labels), make_normalized([None] * 40, judge), epsilon)
    with pytest.raises(ValueError, match="q is 0; allowed is above 0 and below 1"):
        table_of(make_labels(labels), make_normalized([None] * 40, judge), rate=0)


def test_infinite_scores_are_refused():
    labels, judge = random_study(30, 1)
    frame = make_labels(labels).assign(score_x=1.0)
    frame.loc[3, "score_x"] = np.inf
    normalized = make_normalized([None] * 30, judge)
    with pytest.raises(ValueError, match="1 of 240 scores are infinite; first item 3, reviewer r1"):
        alternative_annotator_scores(frame, normalized, epsilon=0.1, false_discovery_rate=0.05, **FEW)


# --- the test of one reviewer


def test_t_test_is_the_paired_one():
    rng = np.random.default_rng(1)
    one, two = rng.integers(0, 2, 50), rng.integers(0, 2, 50)
    p, method, reason = advantage_test((one - two).astype(float), np.arange(50), 0.2)
    assert p == pytest.approx(ttest_rel(one - 0.2, two, alternative="less").pvalue, abs=1e-12)
    assert (method, reason) == ("t test", "")


def test_units_of_an_item_are_not_counted_as_independent():
    differences = np.random.default_rng(2).choice([-1.0, 0.0, 1.0], 40)
    once = advantage_test(differences, np.arange(40), 0.1)[0]
    thrice = advantage_test(np.repeat(differences, 3), np.repeat(np.arange(40), 3), 0.1)
    assert thrice[0] == pytest.approx(once, abs=1e-12)
    assert thrice[1] == "t test of sums over items"
    few = advantage_test(np.repeat(differences[:10], 3), np.repeat(np.arange(10), 3), 0.1)
    assert np.isnan(few[0])
    assert few[2] == "10 items with several units, 30 are needed"
    assert advantage_test(np.zeros(0), np.zeros(0, dtype=np.int64), 0.1)[2] == "no unit"


def likelihood(first, second, neither, epsilon, share):
    return sum(
        count * math.log(p)
        for count, p in ((first, share + epsilon), (second, share), (neither, 1 - epsilon - 2 * share))
        if count
    )


@profile(max_examples=60)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.floats(0.01, 0.5))
def test_score_statistic_is_at_the_maximum_of_the_likelihood(first, second, neither, epsilon):
    n = first + second + neither
    statistic = score_statistic(np.array([first]), np.array([second]), n, epsilon)[0]
    share = (
        ((first - second - n * epsilon) ** 2 / (statistic**2 * n) - epsilon * (1 - epsilon)) / 2 if statistic else None
    )
    if share is None or abs(first - second - n * epsilon) < 1e-6:
        return
    best = likelihood(first, second, neither, epsilon, share)
    for other in (share * 0.999, min(share * 1.001, (1 - epsilon) / 2 * 0.99999)):
        assert best >= likelihood(first, second, neither, epsilon, other) - 1e-9


def test_exact_p_equals_a_loop_over_outcomes():
    n, epsilon = 7, 0.2
    for first, second in ((0, 0), (1, 3), (3, 1), (0, 7), (7, 0), (2, 2)):
        seen = score_statistic(np.array([first]), np.array([second]), n, epsilon)[0]
        largest = 0.0
        for share in np.linspace(0, (1 - epsilon) / 2, 401):
            total = 0.0
            for b, c in itertools.product(range(n + 1), repeat=2):
                if b + c <= n and score_statistic(np.array([b]), np.array([c]), n, epsilon)[0] <= seen + 1e-9:
                    ways = math.comb(n, b) * math.comb(n - b, c)
                    total += ways * (share + epsilon) ** b * share**c * (1 - epsilon - 2 * share) ** (n - b - c)
            largest = max(largest, total)
        assert exact_advantage_p(first, second, n, epsilon) == pytest.approx(largest, abs=1e-12)


def test_exact_p_at_epsilon_0_is_close_to_the_sign_test():
    # The sign test conditions on the discordant items, and so is never more certain at its own q.
    p = exact_advantage_p(2, 10, 25, 0.0)
    assert p == pytest.approx(binom.cdf(2, 12, 0.5), abs=0.01)


@pytest.mark.parametrize(("n", "shares"), [(20, (0.2, 0.1)), (25, (0.15, 0.05)), (12, (0.35, 0.25))])
def test_exact_test_keeps_its_level(n, shares):
    # E d = 0.1 = ε: H₀ is true. Every outcome with its probability; no simulation.
    first, second = shares
    level = 0.0
    for b, c in itertools.product(range(n + 1), repeat=2):
        if b + c <= n and exact_advantage_p(b, c, n, 0.1) <= 0.05:
            ways = math.comb(n, b) * math.comb(n - b, c)
            level += ways * first**b * second**c * (1 - first - second) ** (n - b - c)
    assert 0.01 < level <= 0.05


def test_large_studies_without_spread_have_the_approximation():
    p, method, _ = advantage_test(np.zeros(400), np.arange(400), 0.01)
    # z = -n ε / sqrt(n ε (1 - ε)) = -sqrt(400 · 0.01 / 0.99) = -2.0101
    assert p == pytest.approx(0.022212, abs=1e-6)
    assert method == "score test, normal approximation"


def test_pandalm(shared):
    # The paper does not use this set: counted by the loop above. Neither judge comes near the three annotators.
    data = read_pandalm(shared / "data/pandalm")
    wide = data.labels.set_index(["item_id", "reviewer_id"])["preference"].unstack()  # noqa: PD010
    verdicts = data.verdicts.set_index(["item_id", "judge"])["preference"].unstack()  # noqa: PD010
    people = {str(name): list(wide[name]) for name in wide}
    labels = data.labels.assign(is_adjudicated=False, score_x=np.nan, score_y=np.nan)
    systems = sorted({*labels["system_x"], *labels["system_y"]})
    place = labels.drop_duplicates("item_id").set_index("item_id").loc[wide.index]
    for judge, mean in (("gpt-3.5-turbo", 0.758), ("pandalm-7b", 0.715)):
        its = [None if pd.isna(label) else label for label in verdicts[judge]]
        normalized = make_normalized([None] * len(its), its, items=list(wide.index))
        normalized[["system_x", "system_y"]] = place[["system_x", "system_y"]].to_numpy()
        normalized["original_first"] = normalized["system_x"]
        table = alternative_annotator_table(
            labels, normalized, labels_allowed=[*systems, T], epsilon=0.2, false_discovery_rate=0.05, **FEW
        )
        check(table, people, its, accuracy, 0.2)
        line = pick(table, "winning_rate", "direct")
        assert (line["estimate"], line["denominator"]) == (0, 3)
        assert round(pick(table, "average_advantage_probability", "direct")["estimate"], 3) == mean
