"""Wilson's interval."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.intervals import wilson


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95]))
def test_equals_statsmodels(counts, level):
    successes, trials = counts
    expected = proportion_confint(successes, trials, alpha=1 - level, method="wilson")
    assert wilson(successes, trials, level) == pytest.approx(expected, abs=1e-12)


def test_published_example():
    # Newcombe, 1998, Statistics in Medicine 17, table I, method 3 (score, no correction): 81/263, 15/148, 0/20, 1/29.
    for counts, bounds in {
        (81, 263): (0.2553, 0.3662),
        (15, 148): (0.0624, 0.1605),
        (0, 20): (0.0000, 0.1611),
        (1, 29): (0.0061, 0.1718),
    }.items():
        assert wilson(*counts, 0.95) == pytest.approx(bounds, abs=5e-5)


def test_ends_are_exact_and_mirror_each_other():
    assert wilson(0, 7, 0.95)[0] == 0
    assert wilson(7, 7, 0.95)[1] == 1
    assert wilson(2, 7, 0.9)[0] == pytest.approx(1 - wilson(5, 7, 0.9)[1], abs=1e-15)


def test_no_trials_is_undefined():
    assert all(math.isnan(bound) for bound in wilson(0, 0, 0.95))


@pytest.mark.parametrize("arguments", [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0), (1, 2, 0.0)])
def test_impossible_input_is_refused(arguments):
    with pytest.raises(ValueError, match="allowed is"):
        wilson(*arguments)
