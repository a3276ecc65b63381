"""The penalised fit, what a comparison tells against its definition, and the adaptive schedule."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from judgelab.measure.adaptive import Adaptive, _gains, penalised
from judgelab.measure.comparisons import Comparison

few = settings(max_examples=25, deadline=None)


def names(n, letter="s"):
    return [f"{letter}{number}" for number in range(n)]


def played(schedule, answer):
    """Everything that an adaptive schedule asks, answered."""
    asked = []
    while batch := schedule.ask():
        for one in batch:
            schedule.tell(one, answer(*one))
        asked += batch
    return asked


# --- the fit and what a comparison tells


@few
@given(st.integers(2, 5), st.integers(0, 99))
def test_penalised_is_the_maximum_of_its_definition(n, seed):
    wins = np.random.default_rng(seed).integers(0, 4, (n, n)) / 2.0
    np.fill_diagonal(wins, 0)
    levels, covariance = penalised(wins, prior_sd=1.5)

    def loss(t):
        return (wins * np.log1p(np.exp(t[None, :] - t[:, None]))).sum() + (t**2).sum() / (2 * 1.5**2)

    assert levels == pytest.approx(minimize(loss, np.zeros(n), tol=1e-10, method="BFGS").x, abs=1e-4)
    assert levels.sum() == pytest.approx(0, abs=1e-8)
    step = 1e-3 * np.eye(n)  # the curvature by differences
    bent = [[loss(levels + a + b) - loss(levels + a - b) - loss(levels - a + b) + loss(levels - a - b) for a in step]
            for b in step]  # fmt: skip
    assert np.linalg.inv(covariance) == pytest.approx(np.array(bent) / 4e-6, abs=1e-3)


def test_penalised_by_hand():
    # one win of the first, sd 3: the levels are t and −t with 1 / (1 + e^(2t)) = t / 9; t = 1.0303...
    (first, second), _ = penalised(np.array([[0.0, 1.0], [0.0, 0.0]]), prior_sd=3.0)
    assert first == -second
    assert 1 / (1 + np.exp(2 * first)) == pytest.approx(first / 9, abs=1e-12)


def test_the_start_and_swapped_systems_change_nothing():
    wins = np.random.default_rng(1).integers(0, 9, (6, 6)).astype(float)
    np.fill_diagonal(wins, 0)
    levels, covariance = penalised(wins)
    again, _ = penalised(wins, start=np.linspace(-8, 8, 6))
    assert again == pytest.approx(levels, abs=1e-12)
    turned, turned_covariance = penalised(wins[::-1, ::-1])
    assert turned[::-1] == pytest.approx(levels, abs=1e-12)
    assert turned_covariance[::-1, ::-1] == pytest.approx(covariance, abs=1e-12)


def test_penalised_is_defined_for_an_undefeated_system_and_for_none():
    levels, _ = penalised(np.array([[0.0, 5000.0], [0.0, 0.0]]))
    assert 0 < levels[0] < 50
    assert penalised(np.zeros((0, 0)))[0].shape == (0,)
    with pytest.raises(ValueError, match="prior_sd"):
        penalised(np.zeros((2, 2)), prior_sd=0)


def test_the_gain_is_the_fall_of_the_weighted_variance():
    # the naive twin: add p (1 − p) to the curvature of one pair, invert anew, and sum the weighted variances
    wins = np.random.default_rng(2).integers(0, 4, (5, 5)).astype(float)
    np.fill_diagonal(wins, 0)
    levels, covariance = penalised(wins)
    gains = _gains(levels, covariance)

    def variances(c):
        return {(i, j): c[i, i] + c[j, j] - 2 * c[i, j] for i, j in combinations(range(5), 2)}

    before = variances(covariance)
    weights = {pair: norm.pdf(0, levels[pair[0]] - levels[pair[1]], np.sqrt(v)) for pair, v in before.items()}
    for i, j in before:
        p = 1 / (1 + np.exp(levels[j] - levels[i]))
        d = np.eye(5)[i] - np.eye(5)[j]
        after = variances(np.linalg.inv(np.linalg.inv(covariance) + p * (1 - p) * np.outer(d, d)))
        fall = sum(weights[pair] * (before[pair] - after[pair]) for pair in before)
        assert gains[i, j] == pytest.approx(fall * np.sqrt(2 * np.pi))  # the density without its constant
        assert gains[i, j] == pytest.approx(gains[j, i])


# --- the adaptive schedule


@few
@given(n=st.integers(2, 9), n_items=st.integers(1, 4), seed=st.integers(0, 99), batch=st.sampled_from([None, 1, 3]))
def test_adaptive_asks_each_comparison_once(n, n_items, seed, batch):
    systems, items = names(n), names(n_items, "i")
    rng = np.random.default_rng(seed)
    asked = played(
        Adaptive(systems, items, seed=seed, batch=batch), lambda _, x, y: rng.choice(np.array([x, y, "TIE", None]))
    )
    assert len(asked) == len(set(asked))
    assert set(asked) == {(item, x, y) for item in items for x, y in combinations(systems, 2)}


def test_a_batch_holds_no_system_twice_and_the_seed_decides():
    made = [Adaptive(names(12), names(3, "i"), seed=seed, batch=99).ask() for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
    assert len({name for _, x, y in made[0] for name in (x, y)}) == 12
    assert len(Adaptive(names(12), ["i"], seed=1).ask()) == 2
    assert len(Adaptive(names(12), ["i"], seed=1, batch=9).ask(4)) == 4


def test_it_asks_on_while_answers_are_pending_and_turns_to_others():
    schedule = Adaptive(names(3), names(9, "i"), seed=1, batch=1)
    pairs = [schedule.ask()[0][1:] for _ in range(3)]
    assert len(set(pairs)) == 3  # what is asked counts as known: no pair twice before the others


def test_it_prefers_close_systems():
    # a far above b and c, which are equal: many answers later, b and c are compared most
    order = {"a": 0, "b": 1, "c": 1}
    schedule = Adaptive("abc", names(60, "i"), seed=1)
    met = {}
    for _ in range(40):
        ((item, x, y),) = schedule.ask()
        met[x + y] = met.get(x + y, 0) + 1
        schedule.tell(Comparison(item, x, y), x if order[x] < order[y] else "TIE")
    assert met["bc"] > 3 * max(met["ab"], met["ac"])
    assert schedule.ratings()[0] > 1
    assert schedule.ratings()[1] == pytest.approx(schedule.ratings()[2], abs=0.5)


def test_only_what_is_held_is_asked_in_either_order():
    held = [Comparison("i", "b", "a"), Comparison("j", "a", "c")]
    asked = played(Adaptive("abc", "ij", seed=1, held=held), lambda *_: None)
    assert set(asked) == {Comparison("i", "a", "b"), Comparison("j", "a", "c")}


def test_no_usable_verdict_tells_nothing():
    schedule = Adaptive("ab", "ij", seed=1)
    for one in schedule.ask():
        schedule.tell(one, None)
    assert schedule.wins.sum() == 0
    assert len(schedule.ask()) == 1


def test_ties_only_leave_all_equal():
    schedule = Adaptive(names(5), names(3, "i"), seed=1)
    played(schedule, lambda *_: "TIE")
    assert schedule.ratings() == pytest.approx(0, abs=1e-9)


def test_wrong_answers_are_refused():
    schedule = Adaptive("ab", "i", seed=1)
    (one,) = schedule.ask()
    with pytest.raises(ValueError, match="preference is 'c'"):
        schedule.tell(one, "c")
    schedule.tell(one, "a")
    with pytest.raises(ValueError, match="was not asked or is answered"):
        schedule.tell(one, "a")
    with pytest.raises(ValueError, match="batch"):
        Adaptive("ab", "i", seed=1, batch=0)
