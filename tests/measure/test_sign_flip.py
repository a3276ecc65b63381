"""Exact sign-flip and exchange tests: by hand, all sums enumerated, second libraries, level, size, misuse."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, permutation_test, wilcoxon

from judgelab.measure.sign_flip import exchange_p, sign_flip_p, sign_flip_quantile

small = st.lists(st.integers(-4, 4), max_size=8)


def all_sums(values):
    return [
        sum(s * v for s, v in zip(signs, values, strict=True))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]


def test_by_hand():
    assert sign_flip_p([1, 1, 1, 1, 1]) == 2 / 32  # all up or all down
    assert sign_flip_p([2, 1]) == 1 / 2  # 3 and -3 of 3 1 -1 -3
    assert sign_flip_p([2, -1]) == 1.0
    # 0 with 6/16, 2 and -2 with 4/16 each, 4 and -4 with 1/16 each
    assert [sign_flip_quantile([1] * 4, level) for level in (0.37, 0.375, 0.38, 0.875, 0.88)] == [0, 0, 2, 2, 4]


@given(small)
@settings(max_examples=60, deadline=None)
def test_equals_enumeration(values):
    sums = np.abs(all_sums(values))
    assert sign_flip_p(values) == pytest.approx(np.mean(sums >= abs(sum(values))), abs=1e-14)
    for level in (0.5, 0.9, 0.95):
        b = sign_flip_quantile(values, level)
        assert np.mean(sums <= b) >= level
        assert b == 0 or np.mean(sums <= b - 1) < level


@given(st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=1, max_size=5))
@settings(max_examples=40, deadline=None)
def test_exchange_equals_enumeration(rows):
    sums = [sum(choice) for choice in itertools.product(*rows)]
    expected = np.mean(np.abs(sums) >= abs(sum(row[0] for row in rows)))
    assert exchange_p(rows) == pytest.approx(expected, abs=1e-12)


@given(small, st.randoms())
@settings(max_examples=40, deadline=None)
def test_invariances(values, random):
    p = sign_flip_p(values)
    assert sign_flip_p([-v for v in values]) == p
    assert sign_flip_p([*values, 0, 0]) == p
    assert sign_flip_p([3 * v for v in values]) == p
    shuffled = random.sample(values, len(values))
    assert sign_flip_p(shuffled) == pytest.approx(p, abs=1e-15)
    signs = [random.choice((1, -1)) * v for v in values]
    assert sign_flip_quantile(signs, 0.9) == sign_flip_quantile(values, 0.9)


@pytest.mark.parametrize(("ups", "downs"), [(3, 0), (7, 2), (5, 5), (60, 40)])
def test_ones_are_the_sign_test(ups, downs):
    assert sign_flip_p([1] * ups + [-1] * downs) == pytest.approx(binomtest(ups, ups + downs).pvalue, rel=1e-12)


def test_second_libraries():
    rng = np.random.default_rng(4)
    values = rng.integers(-5, 6, 10)
    both = permutation_test((values,), np.sum, permutation_type="samples", n_resamples=np.inf).pvalue
    assert sign_flip_p(values) == pytest.approx(both, abs=1e-12)
    ranks = np.arange(1, 31) * np.where(rng.random(30) < 0.7, 1, -1)
    assert sign_flip_p(ranks) == pytest.approx(wilcoxon(ranks, method="exact").pvalue, rel=1e-9)


def test_thousands_are_fast_and_small_chances_keep_their_digits():
    began = time.perf_counter()
    values = np.random.default_rng(1).choice([-2, -1, 0, 1, 2], 5_000)
    p = sign_flip_p(values)
    assert time.perf_counter() - began < 2
    z = abs(values.sum()) / math.sqrt((values**2).sum())
    assert p == pytest.approx(math.erfc(z / math.sqrt(2)), abs=0.01)  # normal for so many
    assert sign_flip_p([1] * 300) == pytest.approx(2.0**-299, rel=1e-9)
    assert sign_flip_quantile([1] * 1_000, 0.95) == 2 * binom.ppf(0.975, 1_000, 0.5) - 1_000


def test_level_is_kept_where_variants_share_a_call():
    # Flips of 3 exchangeable calls with rate 0.1, the first being compared with both others. All 8 outcomes of an
    # item; the sum of the two differences is skewed, which a sign flip would take for symmetric.
    outcomes = np.array(list(itertools.product((0, 1), repeat=3)))
    chance = np.prod(np.where(outcomes == 1, 0.1, 0.9), axis=1)
    choices = outcomes.sum(axis=1, keepdims=True) - 3 * outcomes
    rng = np.random.default_rng(0)
    drawn = rng.choice(8, (1_000, 40), p=chance)
    rotated = np.mean([exchange_p(choices[row]) <= 0.05 for row in drawn])
    assert rotated <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1_000)


@pytest.mark.parametrize("values", [[], [0], [0, 0, 0]])
def test_nothing_moved(values):
    assert sign_flip_p(values) == 1.0
    assert sign_flip_quantile(values, 0.95) == 0
    assert exchange_p([[v, -v] for v in values]) == 1.0


@pytest.mark.parametrize("values", [[0.5, 1], [1, float("nan")], [float("inf")], [[1, 2], [3, 4]]])
def test_refused(values):
    with pytest.raises(ValueError, match=r"whole numbers|dimensions"):
        sign_flip_p(values)


@pytest.mark.parametrize("level", [0, 1, -0.1, 95])
def test_level_refused(level):
    with pytest.raises(ValueError, match="above 0 and below 1"):
        sign_flip_quantile([1], level)
