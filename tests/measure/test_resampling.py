"""The bootstrap against full enumeration, a plain loop and second libraries."""

import itertools
import random
import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judgelab.measure import resampling
from judgelab.measure.paired import paired_statistics
from judgelab.measure.resampling import (
    Contingency,
    ItemTable,
    bootstrap,
    generator,
    percentile_interval,
    rater_kappa,
)

RESAMPLES = 40_000


def naive_kappa(pairs):
    """Kappa straight from its definition; None where it is undefined."""
    n = len(pairs)
    observed = sum(a == b for a, b in pairs) / n
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    if len(first) == len(second) == 1 and set(first) == set(second):
        return None
    expected = sum(first[label] * second[label] for label in first) / n**2
    return (observed - expected) / (1 - expected)


label_pairs = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30)


@given(label_pairs)
def test_kappa_equals_its_definition(pairs):
    cells = Contingency.of(np.array(pairs), None, 3)
    ours = rater_kappa(cells.table.totals, cells.cells[:, 0], cells.cells[:, 1], 3)[0]
    expected = naive_kappa(pairs)
    assert np.isnan(ours) if expected is None else ours == pytest.approx(expected, abs=1e-12)


@given(label_pairs)
def test_kappa_equals_scikit_learn(pairs):
    first, second = zip(*pairs, strict=True)
    cells = Contingency.of(np.array(pairs), None, 3)
    ours = rater_kappa(cells.table.totals, cells.cells[:, 0], cells.cells[:, 1], 3)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns where kappa is undefined
        theirs = cohen_kappa_score(first, second, labels=[0, 1, 2])
    assert ours == pytest.approx(theirs, nan_ok=True, abs=1e-12)


def test_kappa_of_the_textbook_table():
    # The textbook example of 50 grant proposals, two readers: both yes 20, both no 15, yes-no 5, no-yes 10.
    # p_o = 35/50, p_e = (25/50)(30/50) + (25/50)(20/50) = 1/2, kappa = (0.7 - 0.5) / 0.5 = 0.4.
    counts = {(0, 0): 20, (0, 1): 5, (1, 0): 10, (1, 1): 15}
    pairs = np.array([pair for pair, count in counts.items() for _ in range(count)])
    cells = Contingency.of(pairs, None, 2)
    assert rater_kappa(cells.table.totals, *cells.cells.T, 2)[0] == pytest.approx(0.4, abs=1e-15)


def frequencies(values):
    return {key: count / len(values) for key, count in Counter(np.round(values, 9).tolist()).items()}


def assert_same_distribution(sampled, exact):
    """Every value's share within 5 standard errors of its exact probability."""
    seen = frequencies(sampled)
    assert set(seen) <= set(exact)
    for value, share in exact.items():
        error = np.sqrt(share * (1 - share) / len(sampled))
        assert abs(seen.get(value, 0) - share) < 5 * error + 1e-9


def ratio(totals):
    return (totals[:, 0] / totals[:, 1])[np.newaxis, :]


def test_clustered_bootstrap_has_the_enumerated_distribution():
    # Four items with 1, 2, 1 and 3 judgments: all 4^4 resamples of whole items, each equally likely.
    rows = np.array([[1, 1], [0, 2], [0, 1], [2, 3]], dtype=float)
    sums = [rows[list(chosen)].sum(axis=0) for chosen in itertools.product(range(4), repeat=4)]
    exact = frequencies(np.array([hits / n for hits, n in sums]))
    items = np.repeat(["a", "b", "c", "d"], [1, 2, 1, 3])
    hits = np.array([1, 0, 0, 0, 1, 1, 0], dtype=float)
    table = ItemTable.of(items, np.column_stack([hits, np.ones(7)]))
    sampled = bootstrap(table, ratio, resamples=RESAMPLES, rng=np.random.default_rng(1))[0]
    assert_same_distribution(sampled, exact)


def test_drawing_items_one_by_one_has_the_same_distribution():
    # With 70 different items of which every one is its own kind, items are drawn one by one.
    rng = np.random.default_rng(2)
    values = rng.random(70)
    table = ItemTable.of(np.arange(70), np.column_stack([values, np.ones(70)]))
    assert len(table.counts) == 70
    sampled = bootstrap(table, ratio, resamples=RESAMPLES, rng=np.random.default_rng(3))[0]
    # The bootstrap mean has the sample's mean and variance s²/n (Efron and Tibshirani, 1993, equation 5.12).
    spread = values.std() / np.sqrt(70)
    assert sampled.mean() == pytest.approx(values.mean(), abs=5 * spread / np.sqrt(RESAMPLES))
    assert sampled.std() == pytest.approx(spread, rel=0.03)


def test_counts_of_cells_have_the_distribution_of_a_loop_over_items():
    # The protocol's own loop: items drawn with replacement, pairwise minus direct agreement.
    cells_of_items = [(0, 0, 0), (0, 1, 0), (1, 1, 0), (2, 0, 2), (1, 0, 0)]
    sums = []
    for chosen in itertools.product(cells_of_items, repeat=5):
        sums.append(sum((h == p) - (h == d) for h, d, p in chosen) / 5)
    cells = Contingency.of(np.array(cells_of_items), None, 3)
    sampled = bootstrap(
        cells.table, lambda t: paired_statistics(t, cells), resamples=RESAMPLES, rng=np.random.default_rng(4)
    )
    assert_same_distribution(sampled[2], frequencies(np.array(sums)))


@settings(max_examples=25)
@given(st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=2, max_size=6), st.integers(0, 2**32))
def test_paired_statistics_equal_a_loop_over_the_drawn_items(rows, seed):
    cells = Contingency.of(np.array(rows), None, 3)
    weights = np.random.default_rng(seed).multinomial(len(rows), cells.table.counts / len(rows), size=3)
    got = paired_statistics(weights.astype(float), cells)
    for sample, values in zip(weights, got.T, strict=True):
        drawn = [tuple(cell) for cell, count in zip(cells.cells, sample, strict=True) for _ in range(count)]
        direct = sum(h == d for h, d, _ in drawn) / len(drawn)
        pairwise = sum(h == p for h, _, p in drawn) / len(drawn)
        kappas = [naive_kappa([(row[0], row[k]) for row in drawn]) for k in (1, 2)]
        kappas = [np.nan if kappa is None else kappa for kappa in kappas]
        expected = [direct, pairwise, pairwise - direct, *kappas, kappas[1] - kappas[0]]
        assert values == pytest.approx(expected, nan_ok=True, abs=1e-12)


def test_chunks_do_not_change_a_multinomial_bootstrap(monkeypatch):
    table = ItemTable.of(np.arange(50), np.column_stack([np.arange(50) % 2, np.ones(50)]).astype(float))
    whole = bootstrap(table, ratio, resamples=1000, rng=np.random.default_rng(5))
    monkeypatch.setattr(resampling, "CHUNK", 64)
    assert np.array_equal(bootstrap(table, ratio, resamples=1000, rng=np.random.default_rng(5)), whole)


def test_a_cluster_is_never_split():
    # Each item has one success and one failure: whatever is drawn, the rate is 1/2.
    items, hits = np.repeat(np.arange(30), 2), np.tile([0.0, 1.0], 30)
    table = ItemTable.of(items, np.column_stack([hits, np.ones(60)]))
    assert set(bootstrap(table, ratio, resamples=500, rng=np.random.default_rng(6))[0]) == {0.5}


def test_large_clustered_contingency_keeps_its_counts(monkeypatch):
    rng = np.random.default_rng(7)
    codes, items = rng.integers(0, 3, (400, 2)), np.repeat(np.arange(100), 4)
    dense = Contingency.of(codes, items, 3)
    monkeypatch.setattr(resampling, "DENSE", 10)
    thin = Contingency.of(codes, items, 3)
    assert np.array_equal(dense.table.totals, thin.table.totals)
    assert dense.table.n_items == thin.table.n_items == 100


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=300), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_interval_is_the_protocols_order_statistic(values, level):
    tail = (1 - level) / 2
    ordered = sorted(values)
    expected = [ordered[round((len(values) - 1) * p)] for p in (tail, 1 - tail)]
    assert list(percentile_interval(np.array(values), level)[:2]) == expected


def test_undefined_resamples_are_counted_and_too_many_give_no_interval():
    values = np.arange(100.0)
    values[:5] = np.nan
    low, high, note = percentile_interval(values, 0.9)
    # 95 values, 5 to 99: places round(94 * 0.05) = 5 and round(94 * 0.95) = 89 of them.
    assert (low, high, note) == (10.0, 94.0, "5 of 100 resamples undefined and left out")
    values[5] = np.nan
    low, high, note = percentile_interval(values, 0.9)
    assert np.isnan([low, high]).all()
    assert note == "no interval: 6 of 100 resamples undefined"


def test_random_numbers_depend_on_seed_and_names_only():
    draws = [generator(*key).random() for key in ((1, "a", "b"), (1, "a", "b"), (2, "a", "b"), (1, "ab", ""))]
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3
    # Fixed, so that a run on another machine or Python gives the same intervals.
    assert generator(240719, "cohen_kappa", "judge").integers(0, 10**6, 3).tolist() == [52839, 666817, 398324]
    assert 0 <= generator(2**63 - 1, "x").random() < 1


def test_seeded_loop_and_ours_give_close_intervals():
    # 200 items; the loop is the protocol's own rule with Python's generator.
    source = random.Random(1)
    rows = [
        tuple(source.choices(range(3), weights=w)[0] for w in ((5, 3, 2), (4, 4, 2), (6, 2, 2))) for _ in range(200)
    ]
    gains = [(h == p) - (h == d) for h, d, p in rows]
    loop = sorted(sum(source.choices(gains, k=200)) / 200 for _ in range(3000))
    cells = Contingency.of(np.array(rows), None, 3)
    ours = bootstrap(cells.table, lambda t: paired_statistics(t, cells), resamples=10_000, rng=generator(1, "x"))[2]
    low, high, _ = percentile_interval(ours, 0.95)
    # Order statistics of 3,000 and 10,000 resamples: standard error of a bound about 0.002, steps of 1/200.
    assert low == pytest.approx(loop[round(2999 * 0.025)], abs=0.0101)
    assert high == pytest.approx(loop[round(2999 * 0.975)], abs=0.0101)
