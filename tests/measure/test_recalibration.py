"""Isotonic recalibration by hand, against SciPy and a naive twin, and on answers that teach nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from sklearn.metrics import brier_score_loss

from judgelab.measure.recalibration import Recalibration, as_probability, fit_isotonic


def fit(scores, accepted, items=None):
    items = np.arange(len(scores)) if items is None else np.array(items)
    return fit_isotonic(np.array(scores, dtype=float), np.array(accepted, dtype=float), items)


def test_by_hand():
    # Rates by score: 1: 0/2, 2: 1/1, 3: 1/3, 4: 1/1. 2 and 3 fall: pooled to (1 + 1) / (1 + 3) = 1/2.
    made = fit([1, 1, 2, 3, 3, 3, 4], [0, 0, 1, 0, 1, 0, 1], [1, 1, 2, 2, 3, 3, 3])
    assert made.predict(np.array([1, 2, 3, 4])).tolist() == [0, 0.5, 0.5, 1]
    # Half way between 1 and 2 and between 3 and 4; beyond the ends; missing.
    assert made.predict(np.array([1.5, 3.5, -9, 9])).tolist() == [0.25, 0.75, 0, 1]
    assert np.isnan(made.predict(np.array([math.nan, 2]))).tolist() == [True, False]
    assert (made.n_answers, made.n_items) == (7, 3)
    assert made.note == "learned on 7 answers only, fewer than 20"


def naive(scores, accepted):
    """Pool adjacent violators over plain lists; the value at each distinct score."""
    blocks = []
    for score in sorted(set(scores)):
        here = [a for s, a in zip(scores, accepted, strict=True) if s == score]
        blocks.append([sum(here), len(here), [score]])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            last = blocks.pop()
            blocks[-1] = [one + two for one, two in zip(blocks[-1], last, strict=True)]
    return {score: total / n for total, n, names in blocks for score in names}


answer = st.tuples(st.integers(1, 7).map(lambda k: k / 2), st.sampled_from([0.0, 1.0]))


@profile(max_examples=100, deadline=None)
@given(st.lists(answer, min_size=1, max_size=20))
def test_against_a_naive_twin(answers):
    scores, accepted = ([one[k] for one in answers] for k in (0, 1))
    made, expected = fit(scores, accepted), naive(scores, accepted)
    assert made.predict(np.array(list(expected))) == pytest.approx(np.array(list(expected.values())), abs=1e-12)
    assert list(made.thresholds) == sorted(set(made.thresholds))
    assert all(0 <= low <= high <= 1 for low, high in zip(made.values, made.values[1:], strict=False))


def test_against_scipy():
    rng = np.random.default_rng(1)
    scores = rng.integers(4, 21, 300) / 4
    accepted = (rng.random(300) < scores / 6).astype(float)
    levels, where, weights = np.unique(scores, return_inverse=True, return_counts=True)
    rates = np.bincount(where, accepted) / weights
    expected = isotonic_regression(rates, weights=weights).x
    made = fit(scores, accepted)
    assert made.predict(levels) == pytest.approx(expected, abs=1e-12)
    assert made.note == ""
    # Pooling keeps the sum: the mean prediction is the acceptance rate.
    assert made.predict(scores).mean() == pytest.approx(accepted.mean(), abs=1e-12)


def test_recovers_a_planted_curve_on_other_answers():
    rng = np.random.default_rng(2)

    def study(n):
        scores = rng.integers(4, 21, n) / 4
        truth = ((scores - 1) / 4) ** 3  # the judge is far too kind
        return scores, truth, (rng.random(n) < truth).astype(float)

    scores, _, accepted = study(4000)
    made = fit(scores, accepted)
    scores, truth, accepted = study(1000)
    found = made.predict(scores)
    assert np.abs(found - truth).max() < 0.1
    assert brier_score_loss(accepted, found) < brier_score_loss(accepted, as_probability(scores, 1, 5)) - 0.05


def test_the_order_of_answers_and_the_scale_count_for_nothing():
    rng = np.random.default_rng(3)
    scores = rng.integers(1, 6, 60).astype(float)
    accepted, order = (rng.random(60) < scores / 6).astype(float), rng.permutation(60)
    made = fit(scores, accepted)
    assert fit(scores[order], accepted[order], order) == made
    other = fit(10 * scores - 3, accepted)
    assert other.predict(10 * scores - 3) == pytest.approx(made.predict(scores), abs=1e-12)


def test_scores_that_differ_by_rounding_are_one():
    made = fit([0.3, 0.1 + 0.2, 1, 1], [0, 1, 1, 1])
    assert made.thresholds == (0.3, 1)
    assert made.values == (0.5, 1)


def test_missing_scores_and_labels_are_left_out_and_told():
    made = fit([1, 2, math.nan, 3, math.nan], [0, 1, 1, math.nan, math.nan], [1, 1, 2, 3, 4])
    assert (made.n_answers, made.n_items) == (2, 1)
    assert made.note == (
        "learned on 2 answers only, fewer than 20; 3 of 5 answers left out: 2 without label, 1 without score"
    )


@pytest.mark.parametrize(
    ("scores", "accepted", "value", "note"),
    [
        ([3] * 20, [0, 1, 1, 1] * 5, 0.75, "all scores are equal: every score gets the acceptance rate"),
        ([1, 2] * 10, [1, 1] * 10, 1, "all answers were accepted: every score gets probability 1"),
        ([1, 2] * 10, [0, 0] * 10, 0, "no answer was accepted: every score gets probability 0"),
        (
            [1, 2] * 10,
            [1, 0] * 10,
            0.5,
            "acceptance does not rise with the score: every score gets the acceptance rate",
        ),
    ],
)
def test_nothing_to_tell_apart(scores, accepted, value, note):
    made = fit(scores, accepted)
    assert made.predict(np.array([-5.0, 1.0, 1.5, 9.0])).tolist() == [value] * 4
    assert made.note == note


def test_one_answer():
    made = fit([3], [1])
    assert made.predict(np.array([1, 5])).tolist() == [1, 1]
    assert made.note.endswith("learned on 1 answers only, fewer than 20")


@pytest.mark.parametrize(("scores", "accepted"), [([], []), ([math.nan, 2], [1, math.nan])])
def test_no_answer(scores, accepted):
    made = fit(scores, accepted)
    assert made.note.startswith("undefined: no answer with a score and a label")
    assert (made.thresholds, made.n_answers, made.n_items) == ((), 0, 0)
    assert np.isnan(made.predict(np.array([1.0, 2.0]))).all()
    assert made.predict(np.array([])).shape == (0,)


@pytest.mark.parametrize(
    ("scores", "accepted", "items", "message"),
    [
        ([1, 2], [1], [1, 2], "not as many: 2, 1, 2"),
        ([1, 2], [1, 0], [1], "not as many: 2, 2, 1"),
        ([1, -math.inf], [1, 0], [1, 2], "1 of 2 scores are infinite, first -inf"),
        ([1, 2], [1, 0.5], [1, 2], "1 of 2 outcomes are none of 0, 1 and NaN, first 0.5"),
    ],
)
def test_refuses(scores, accepted, items, message):
    with pytest.raises(ValueError, match=message):
        fit(scores, accepted, items)


def test_predict_refuses_infinite_scores():
    with pytest.raises(ValueError, match="1 of 2 scores are infinite"):
        Recalibration((1.0,), (0.5,), 1, 1).predict(np.array([1, math.inf]))


def test_as_probability():
    found = as_probability(np.array([1, 3, 5, math.nan, 5 + 1e-12]), 1, 5)
    assert found[[0, 1, 2, 4]].tolist() == [0, 0.5, 1, 1]
    assert math.isnan(found[3])
    for scale in ((1, 1), (5, 1), (1, math.inf), (math.nan, 5)):
        with pytest.raises(ValueError, match="allowed is a finite minimum below a finite maximum"):
            as_probability(np.array([1.0]), *scale)
    with pytest.raises(ValueError, match="2 of 3 scores lie off the scale 1 to 5, first 0"):
        as_probability(np.array([0.0, 3.0, 6.0]), 1, 5)
