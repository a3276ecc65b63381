"""Holm and Benjamini-Yekutieli: by hand, against their definitions, missing tests, misuse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from judgelab.measure.multiplicity import benjamini_yekutieli, holm

p_values = st.lists(st.floats(0, 1) | st.just(float("nan")), max_size=12)


def naive_holm(p):
    """The i-th smallest times (m - i + 1), never below one before it, at most 1."""
    order = sorted((i for i in range(len(p)) if not np.isnan(p[i])), key=lambda i: p[i])
    adjusted, largest = [float("nan")] * len(p), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, p[i] * (len(order) - rank)))
        adjusted[i] = largest
    return adjusted


def naive_yekutieli(p, q):
    """All up to the last place i at which the i-th smallest is at most i q / (m (1 + 1/2 + ... + 1/m))."""
    order = sorted((i for i in range(len(p)) if not np.isnan(p[i])), key=lambda i: p[i])
    m = len(order)
    below = [k for k in range(m) if p[order[k]] <= (k + 1) * q / (m * sum(1 / j for j in range(1, m + 1)))]
    chosen = set(order[: below[-1] + 1]) if below else set()
    return [i in chosen for i in range(len(p))]


def test_holm_by_hand():
    # 0.005 x 4, 0.01 x 3, 0.03 x 2, and 0.04 x 1, which must not fall below 0.06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02], abs=1e-15)


def test_yekutieli_by_hand():
    # m = 4, c = 25/12: the bounds are i 0.05 / (25/3) = 0.006, 0.012, 0.018, 0.024. The third is below its own, so
    # that the second is rejected with it although it is above its own.
    assert benjamini_yekutieli([0.9, 0.0179, 0.0125, 0.001], 0.05).tolist() == [False, True, True, True]
    assert benjamini_yekutieli([0.9, 0.0181, 0.0125, 0.001], 0.05).tolist() == [False, False, False, True]


@given(p_values)
def test_holm_equals_its_definition(p):
    assert holm(p) == pytest.approx(naive_holm(p), nan_ok=True, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_holm_equals_statsmodels(seed):
    # few: statsmodels collects the garbage of the whole process in each call
    p = np.random.default_rng(seed).choice(np.linspace(0, 1, 30), 8) ** 3
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-15)


@given(st.lists(st.sampled_from([0.001, 0.0031, 0.007, 0.011, 0.02, 0.3, 0.9, float("nan")]), max_size=10))
def test_yekutieli_equals_its_definition(p):
    assert benjamini_yekutieli(p, 0.05).tolist() == naive_yekutieli(p, 0.05)


@given(p_values, st.randoms())
def test_order_changes_nothing(p, random):
    order = list(range(len(p)))
    random.shuffle(order)
    shuffled = [p[i] for i in order]
    assert holm(shuffled).tolist() == pytest.approx(holm(p)[order].tolist(), nan_ok=True)
    assert benjamini_yekutieli(shuffled, 0.1).tolist() == benjamini_yekutieli(p, 0.1)[order].tolist()


def test_a_test_that_was_not_made_does_not_count():
    nan = float("nan")
    assert holm([0.02, nan, 0.01]).tolist() == pytest.approx([0.02, nan, 0.02], nan_ok=True)
    # m = 2, c = 1.5: bounds 0.05 / 3 and 0.1 / 3; with a third test that counted both would fail
    assert benjamini_yekutieli([0.03, nan, 0.02], 0.05).tolist() == [True, False, True]
    assert not benjamini_yekutieli([0.03, 1.0, 0.02], 0.05).any()


def test_nothing_to_correct():
    assert holm([]).tolist() == []
    assert benjamini_yekutieli([], 0.05).tolist() == []
    assert np.isnan(holm([float("nan")])).all()
    assert not benjamini_yekutieli([float("nan")], 0.05).any()
    assert holm([0.2]).tolist() == [0.2]


@pytest.mark.parametrize("p", [[0.1, -0.01], [1.5], [float("inf")]])
def test_no_probability_is_refused(p):
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm(p)
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_yekutieli(p, 0.05)


@pytest.mark.parametrize("q", [0, 1, -0.1, float("nan")])
def test_a_level_that_is_none_is_refused(q):
    with pytest.raises(ValueError, match="allowed is above 0 and below 1"):
        benjamini_yekutieli([0.1], q)
