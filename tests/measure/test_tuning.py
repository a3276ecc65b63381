"""Choices on development items by hand, against naive twins and scikit-learn, and where there is nothing to choose."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, roc_curve

from judgelab.measure.preferences import preference_from_totals
from judgelab.measure.tuning import MARGIN_RULE, THRESHOLD_RULE, choose_margin, choose_threshold

A, B, T = "ALPHA", "BETA", "TIE"


def threshold(scores, accepted, default=4.0):
    return choose_threshold(np.array(scores, dtype=float), np.array(accepted, dtype=float), default=default)


def margin(totals, human, default=0.25, x=A, y=B):
    totals = np.array(totals, dtype=float).reshape(-1, 2)
    return choose_margin(totals[:, 0], totals[:, 1], np.array(human, dtype=object), x, y, default=default)


# the cut


def test_threshold_by_hand():
    # Accepted from 3 on: TP 3 of 4 (one accepted answer has 2), TN 3 of 4 (one refused answer has 3): 3/4.
    # From 2 on: 4/4 and 2/4: 3/4, too, but farther from 4. From 4 on: 2/4 and 4/4: 3/4, the protocol's own.
    scores, accepted = [1, 1, 2, 2, 3, 3, 4, 5], [0, 0, 0, 1, 0, 1, 1, 1]
    choice = threshold(scores, accepted)
    assert (choice.value, choice.score, choice.default_score, choice.n) == (4, 0.75, 0.75, 8)
    assert choice.rule == THRESHOLD_RULE
    assert choice.note == "chosen on 8 answers only, fewer than 20"
    # From the protocol's 5 on TP is 1 of 4: 5/8. Cuts 2, 3 and 4 reach 3/4; 4 is the nearest.
    assert (threshold(scores, accepted, 5).value, threshold(scores, accepted, 5).default_score) == (4, 0.625)
    # 2.5 rejects and accepts as 3 does and reaches the highest itself: it stands.
    assert threshold(scores, accepted, 2.5).value == 2.5


def test_threshold_of_equal_distance_is_the_higher():
    # Default 3 reaches (1/2 + 1/2) / 2; cuts 2 (2/2, 1/2) and 4 (1/2, 2/2) reach 3/4, each 1 away.
    choice = threshold([1, 2, 3, 4], [0, 1, 0, 1], 3)
    assert (choice.value, choice.score, choice.default_score) == (4, 0.75, 0.5)


def test_thresholds_that_differ_by_rounding_are_one():
    third = 0.1 + 0.2  # 0.30000000000000004
    choice = threshold([0.1, third, 0.3, 0.5], [0, 1, 1, 1], 0.5)
    assert (choice.value, choice.score) == (0.3, 1)


def naive_threshold(scores, accepted, default):
    pairs = [(s, a) for s, a in zip(scores, accepted, strict=True) if not math.isnan(s) and not math.isnan(a)]
    labels = [a for _, a in pairs]
    if len(set(labels)) < 2:
        return default, math.nan, math.nan
    reached = {}
    for cut in {s for s, _ in pairs} | {default}:
        reached[cut] = balanced_accuracy_score(labels, [float(s >= cut - 1e-9) for s, _ in pairs])
    best = max(reached.values())
    cuts = [cut for cut, value in reached.items() if value > best - 1e-12]
    return min(cuts, key=lambda cut: (abs(cut - default), -cut)), best, reached[default]


quarter = st.integers(4, 12).map(lambda k: k / 4)
missing = st.just(math.nan)


@profile(max_examples=150, deadline=None)
@given(st.lists(st.tuples(quarter | missing, st.sampled_from([0.0, 1.0, math.nan])), max_size=14), quarter)
def test_threshold_against_a_naive_twin(pairs, default):
    scores, accepted = [s for s, _ in pairs], [a for _, a in pairs]
    choice = threshold(scores, accepted, default)
    value, best, own = naive_threshold(scores, accepted, default)
    assert choice.value == value
    assert (choice.score, choice.default_score) == pytest.approx((best, own), abs=1e-12, nan_ok=True)
    assert choice.n == sum(not math.isnan(s + a) for s, a in pairs)
    assert not choice.score < choice.default_score


def test_threshold_is_youdens_of_scikit_learns_roc():
    rng = np.random.default_rng(1)
    accepted = (rng.random(300) < 0.6).astype(float)
    scores = accepted + rng.normal(size=300)
    false, true, _ = roc_curve(accepted, scores)
    choice = threshold(scores, accepted, 9)
    assert choice.score == pytest.approx(((true - false).max() + 1) / 2, abs=1e-12)
    assert (choice.default_score, choice.n, choice.note) == (0.5, 300, "")


def test_threshold_finds_the_planted_cut():
    rng = np.random.default_rng(2)
    scores = rng.integers(4, 21, 400) / 4
    accepted = np.where(rng.random(400) < 0.1, scores < 3.25, scores >= 3.25)
    assert threshold(scores, accepted, 4).value == 3.25


@pytest.mark.parametrize(
    ("scores", "accepted", "n", "note"),
    [
        ([], [], 0, "undefined: no development answer has both; the protocol's 4 stands"),
        (
            [math.nan, 2, math.nan],
            [1, math.nan, math.nan],
            0,
            "undefined: no development answer has both; the protocol's 4 stands; "
            "3 of 3 answers left out: 2 without label, 1 without score",
        ),
        ([1, 2], [1, 1], 2, "undefined: people accept all of 2; the protocol's 4 stands"),
        ([1, 2, 3], [0, 0, 0], 3, "undefined: people accept none of 3; the protocol's 4 stands"),
    ],
)
def test_threshold_without_a_choice(scores, accepted, n, note):
    choice = threshold(scores, accepted)
    assert (choice.value, choice.n, choice.note) == (4, n, note)
    assert math.isnan(choice.score)
    assert math.isnan(choice.default_score)


def test_threshold_of_equal_scores():
    choice = threshold([3] * 30, [0, 1] * 15)
    assert (choice.value, choice.score, choice.default_score) == (4, 0.5, 0.5)
    assert choice.note == "nothing to choose from: every cut reaches the same; the protocol's 4 stands"


@pytest.mark.parametrize(
    ("scores", "accepted", "default", "message"),
    [
        ([1, 2], [1], 4, "not as many: 2, 1"),
        ([1, math.inf], [1, 0], 4, "1 of 2 scores are infinite, first inf"),
        ([1, 2], [1, 2], 4, "1 of 2 outcomes are none of 0, 1 and NaN, first 2"),
        ([1, 2], [1, 0], math.nan, "default is nan"),
    ],
)
def test_threshold_refuses(scores, accepted, default, message):
    with pytest.raises(ValueError, match=message):
        threshold(scores, accepted, default)


# the margin


def test_margin_by_hand():
    # Differences 0, 0.5, −0.5, 1, −2 with people saying tie, tie, tie, x, y. At 0.25: 1 + 2 = 3 of 5; at 0.5: 5 of 5.
    totals = [[4, 4], [4.5, 4], [3, 3.5], [5, 4], [2, 4]]
    choice = margin(totals, [T, T, T, A, B])
    assert (choice.value, choice.score, choice.default_score, choice.n) == (0.5, 1, 0.6, 5)
    assert choice.rule == MARGIN_RULE
    assert choice.note == "chosen on 5 pairs only, fewer than 20"
    # People see every difference: 0 and the protocol's 0.25 reach 5 of 5; the protocol's stands.
    assert margin(totals, [T, A, B, A, B]).value == 0.25
    # With the protocol's 1.5 (tie, tie, tie, tie, y) 0 is the only candidate below 0.5.
    assert margin(totals, [T, A, B, A, B], 1.5).value == 0


def test_margin_of_equal_distance_is_the_smaller():
    # Differences 0.25, 0.5, −0.75, 1.5; what each margin makes of them, and how many of 4 are as people say:
    totals = [[1, 0.75], [1, 0.5], [0, 0.75], [2, 0.5]]
    human = [T, A, T, A]
    # 0: x x y x: 2. 0.25: T x y x: 3. 0.5: T T y x: 2. 0.75: T T T x: 3. 1.5: 2.
    choice = margin(totals, human, 0.5)
    assert (choice.value, choice.score, choice.default_score) == (0.25, 0.75, 0.5)


def test_margin_of_decimal_totals():
    # 4.2 − 3.95 is 0.25000000000000044; the margin is 0.25, which makes it a tie, as everywhere.
    choice = margin([[4.2, 3.95], [4, 3]], [T, A], 0)
    assert (choice.value, choice.score) == (0.25, 1)


def naive_margin(rows, default):
    """Every margin anew, by the function that judges with it."""
    rows = [(x, y, h) for x, y, h in rows if not math.isnan(x - y) and isinstance(h, str)]
    if not rows:
        return default, math.nan, math.nan
    x, y, human = (list(column) for column in zip(*rows, strict=True))
    reached = {}
    for size in {0.0, default} | {abs(a - b) for a, b, _ in rows}:
        made = preference_from_totals(np.array(x), np.array(y), A, B, size)
        reached[size] = sum(one == two for one, two in zip(made, human, strict=True)) / len(rows)
    best = max(reached.values())
    sizes = [size for size, value in reached.items() if value == best]
    return min(sizes, key=lambda size: (abs(size - default), size)), best, reached[default]


pair = st.tuples(quarter | missing, quarter | missing, st.sampled_from([A, B, T, math.nan]))


@profile(max_examples=100, deadline=None)
@given(st.lists(pair, max_size=10), st.sampled_from([0.0, 0.125, 0.25, 0.5, 3.0]))
def test_margin_against_a_naive_twin(rows, default):
    choice = margin([[x, y] for x, y, _ in rows], [h for *_, h in rows], default)
    value, best, own = naive_margin(rows, default)
    assert choice.value == value
    assert (choice.score, choice.default_score) == pytest.approx((best, own), abs=1e-12, nan_ok=True)
    assert not choice.score < choice.default_score
    swapped = margin([[y, x] for x, y, _ in rows], [h for *_, h in rows], default, B, A)
    assert repr(swapped) == repr(choice)  # NaN is not NaN


def test_margin_of_a_table():
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.integers(4, 21, (200, 2)) / 4, columns=["total_x", "total_y"])
    table["system_x"], table["system_y"] = "A", "B"
    table.loc[100:, ["system_x", "system_y"]] = ["C", "A"]
    difference = table["total_x"] - table["total_y"]
    human = np.where(difference > 0.75, table["system_x"], np.where(difference < -0.75, table["system_y"], T))
    table["human"] = pd.Series(human, dtype=object).where(rng.random(200) < 0.95)
    columns = ["total_x", "total_y", "human", "system_x", "system_y"]
    choice = choose_margin(*(table[name] for name in columns), default=0.25)
    n = int(table["human"].notna().sum())
    assert (choice.value, choice.score, choice.n) == (0.75, 1, n)
    assert choice.note == f"{200 - n} of 200 pairs left out: {200 - n} without label"
    shuffled = table.sample(frac=1, random_state=1)
    assert choose_margin(*(shuffled[name] for name in columns), default=0.25) == choice
    names = {"A": "X", "B": "Y", "C": "Z"}
    renamed = table.replace(names)
    assert choose_margin(*(renamed[name] for name in columns), default=0.25) == choice


def test_margin_without_a_choice():
    none = margin([[1, math.nan], [2, 3]], [A, None])
    assert (none.value, none.n) == (0.25, 0)
    assert none.note == (
        "undefined: no development pair has both; the protocol's 0.25 stands; "
        "2 of 2 pairs left out: 1 without label, 1 without both totals"
    )
    assert math.isnan(none.score)
    assert margin([], []).note == "undefined: no development pair has both; the protocol's 0.25 stands"
    equal = margin([[4, 4]] * 30, [T, A] * 15)
    assert (equal.value, equal.score, equal.default_score) == (0.25, 0.5, 0.5)
    assert equal.note == "nothing to choose from: every margin reaches the same; the protocol's 0.25 stands"


@pytest.mark.parametrize(
    ("totals", "human", "default", "message"),
    [
        ([[1, 2]], ["GAMMA"], 0.25, "1 of 1 human labels are neither a system of their pair nor TIE, first 'GAMMA'"),
        ([[1, 2]], [A, B], 0.25, "1 pairs, 2 human labels"),
        ([[1, math.inf]], [A], 0.25, "1 of 1 pairs have an infinite total"),
        ([[1, 2]], [A], -0.1, "default is -0.1"),
        ([[1, 2]], [A], math.nan, "default is nan"),
    ],
)
def test_margin_refuses(totals, human, default, message):
    with pytest.raises(ValueError, match=message):
        margin(totals, human, default)


def test_margin_refuses_totals_of_another_length():
    with pytest.raises(ValueError, match="1 totals of x, 2 of y"):
        choose_margin([1.0], [1.0, 2.0], [A, B], A, B, default=0.25)


def test_ten_thousand_pairs_are_quick():
    rng = np.random.default_rng(4)
    totals = rng.normal(size=(10_000, 2))
    human = np.where(totals[:, 0] > totals[:, 1], A, B)
    choice = margin(totals, human, 0.5)
    assert (choice.value, choice.score) == (pytest.approx(0, abs=1e-3), 1)
