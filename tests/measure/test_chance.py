"""Agreement beyond chance: published tables, definitions, second libraries, invariances, degenerate input."""

import warnings
from collections import Counter

import numpy as np
import pytest
from agreement import gwets_gamma
from hypothesis import assume, given
from hypothesis import settings as profile
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from judgelab.measure.chance import chance_rows, dominance, fleiss_row, weighted_kappa_rows
from judgelab.measure.estimates import Place, Settings, kappa_row
from judgelab.measure.resampling import Contingency, rater_kappa

ONCE = Settings(0.95, 1, 7)  # where only estimates are looked at
MANY = Settings(0.95, 2000, 7)
THOUSAND = profile(max_examples=1000)

label_pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)

# Gwet's table cont3x3abstractors of the R package irrCAC: two abstractors, 100 abstracts.
ABSTRACTORS = np.array([[13, 0, 0], [0, 20, 7], [0, 4, 56]])
# Hout, Duncan and Sobel 1987, in the R package vcd as SexualFun: 91 couples, four ordered answers.
COUPLES = np.array([[7, 7, 2, 3], [2, 8, 3, 7], [1, 5, 4, 9], [2, 8, 9, 14]])
# Fleiss 1971, in the form of Wikipedia's worked example: 10 subjects, 14 raters, 5 categories.
FLEISS = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)


def codes_of(table):
    """Two arrays of codes from a table of counts."""
    k = len(table)
    flat = np.repeat(np.arange(k * k), table.ravel())
    return flat // k, flat % k


def both(pairs):
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def chance(first, second, items=None, settings=ONCE, **options):
    items = np.arange(len(first)) if items is None else items
    return {row["measure"]: row for row in chance_rows(Place(), items, first, second, settings=settings, **options)}


def weighted(first, second, k, items=None, settings=ONCE):
    items = np.arange(len(first)) if items is None else items
    order = [str(code) for code in range(k)]
    rows = weighted_kappa_rows("cohen_kappa", Place(), items, first, second, order=order, settings=settings)
    return {row["measure"]: row for row in rows}


def fleiss(counts, items=None, settings=ONCE):
    """The row for counts of labels (units, labels)."""
    units, codes = np.nonzero(counts)
    times = counts[units, codes]
    units, codes = np.repeat(units, times), np.repeat(codes, times)
    return fleiss_row(Place(), units if items is None else items[units], units, codes, settings=settings)


def naive_ac1(pairs):
    """AC1 straight from its definition; None with one label."""
    shares = Counter(label for pair in pairs for label in pair)
    if len(shares) < 2:
        return None
    observed = sum(a == b for a, b in pairs) / len(pairs)
    means = [count / (2 * len(pairs)) for count in shares.values()]
    expected = sum(p * (1 - p) for p in means) / (len(shares) - 1)
    return (observed - expected) / (1 - expected)


def naive_weighted(pairs, k, power):
    """One minus mean distance over the mean distance of every first label with every second; None if that is 0."""
    distances = [[(abs(i - j) / (k - 1)) ** power for j in range(k)] for i in range(k)]
    observed = sum(distances[a][b] for a, b in pairs) / len(pairs)
    expected = sum(distances[a][b] for a, _ in pairs for _, b in pairs) / len(pairs) ** 2
    return 1 - observed / expected if expected else None


# Published values


def test_irrcac_prints_our_numbers():
    # Vignette of irrCAC: kappa 0.7964094, AC1 0.84933, Brennan-Prediger 0.835 (PABAK for q labels)
    first, second = codes_of(ABSTRACTORS)
    rows = chance(first, second)
    assert round(rows["gwet_ac1"]["estimate"], 5) == 0.84933
    assert round(rows["pabak"]["estimate"], 3) == 0.835
    kappa = kappa_row("k", Place(), np.arange(100), first, second, n_labels=3, settings=ONCE)["estimate"]
    assert round(kappa, 7) == 0.7964094


def test_vcd_prints_our_linear_kappa():
    # vcd prints 0.1293 unweighted and 0.2374 with equal spacing; quadratic: scikit-learn, below
    first, second = codes_of(COUPLES)
    rows = weighted(first, second, 4)
    assert round(rows["cohen_kappa_linear"]["estimate"], 4) == 0.2374
    expected = cohen_kappa_score(first, second, weights="quadratic")
    assert rows["cohen_kappa_quadratic"]["estimate"] == pytest.approx(expected, abs=1e-12)


def test_fleiss_worked_example():
    row = fleiss(FLEISS)
    assert round(row["estimate"], 3) == 0.210
    assert row["method"].startswith("14 labels a unit")


def test_by_hand():
    # 4 of 5 alike; labels 0, 1: mean shares 0.7 and 0.3, pe = 2 x 0.21; PABAK = 2 x 0.8 - 1
    rows = chance(np.array([0, 0, 0, 1, 0]), np.array([0, 0, 0, 1, 1]))
    assert rows["gwet_ac1"]["estimate"] == pytest.approx((0.8 - 0.42) / 0.58, abs=1e-15)
    assert rows["pabak"]["estimate"] == pytest.approx(0.6, abs=1e-15)
    assert rows["gwet_ac1"]["method"].startswith("2 labels in use")
    # x x TIE y against x TIE y y
    rows = weighted(np.array([0, 0, 1, 2]), np.array([0, 1, 2, 2]), 3)
    # observed 0, 1/2, 1/2, 0: mean 1/4, of squares 1/8; expected 2(0 + 1/2 + 2) + (1/2 + 0 + 1) + (1 + 1/2) = 8 of 16,
    # of squares 2(1/4 + 2) + (1/4 + 1/2) + (1 + 1/4) = 6.5 of 16
    assert rows["cohen_kappa_linear"]["estimate"] == pytest.approx(1 - (1 / 4) / (8 / 16), abs=1e-15)
    assert rows["cohen_kappa_quadratic"]["estimate"] == pytest.approx(1 - (1 / 8) / (6.5 / 16), abs=1e-15)
    # Fleiss: AA, AB, BB: mean agreement 2/3, shares 1/2 each
    row = fleiss(np.array([[2, 0], [1, 1], [0, 2]]))
    assert row["estimate"] == pytest.approx((2 / 3 - 1 / 2) / (1 / 2), abs=1e-15)


# Second libraries, on a thousand random tables


@THOUSAND
@given(label_pairs)
def test_ac1_and_pabak_equal_the_package_agreement(pairs):
    first, second = both(pairs)
    used = np.unique(pairs)
    assume(len(used) > 1)
    answers = np.stack([(first[:, np.newaxis] == used), (second[:, np.newaxis] == used)]).sum(axis=0)
    rows = chance(first, second)
    assert rows["gwet_ac1"]["estimate"] == pytest.approx(gwets_gamma(answers), abs=1e-12)
    exact, q = (first == second).mean(), len(used)
    assert rows["pabak"]["estimate"] == pytest.approx((exact - 1 / q) / (1 - 1 / q), abs=1e-12)


@THOUSAND
@given(label_pairs)
def test_kappas_equal_scikit_learn(pairs):
    first, second = both(pairs)
    rows = weighted(first, second, 4)
    cells = Contingency.of(np.column_stack([first, second]), None, 4)
    plain = rater_kappa(cells.table.totals, cells.cells[:, 0], cells.cells[:, 1], 4)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns where kappa is undefined
        theirs = [
            cohen_kappa_score(first, second, labels=[0, 1, 2, 3], weights=weights)
            for weights in (None, "linear", "quadratic")
        ]
    ours = [plain, *(rows[f"cohen_kappa_{name}"]["estimate"] for name in ("linear", "quadratic"))]
    assert ours == pytest.approx(theirs, nan_ok=True, abs=1e-12)


@THOUSAND
@given(st.integers(2, 5).flatmap(lambda m: st.lists(st.tuples(*[st.integers(0, 2)] * m), min_size=1, max_size=20)))
def test_fleiss_equals_statsmodels(ratings):
    assume(len(np.unique(ratings)) > 1)
    counts = aggregate_raters(np.array(ratings))[0]
    assert fleiss(counts)["estimate"] == pytest.approx(fleiss_kappa(counts), abs=1e-12)


# Definitions


@given(label_pairs)
def test_ac1_equals_its_definition(pairs):
    ours, expected = chance(*both(pairs))["gwet_ac1"]["estimate"], naive_ac1(pairs)
    assert np.isnan(ours) if expected is None else ours == pytest.approx(expected, abs=1e-12)


@given(label_pairs)
def test_weighted_kappa_equals_its_definition(pairs):
    rows = weighted(*both(pairs), 4)
    for name, power in (("linear", 1), ("quadratic", 2)):
        ours, expected = rows[f"cohen_kappa_{name}"]["estimate"], naive_weighted(pairs, 4, power)
        assert np.isnan(ours) if expected is None else ours == pytest.approx(expected, abs=1e-12)


def test_interval_is_that_of_a_plain_loop():
    rng = np.random.default_rng(5)
    first = rng.integers(0, 3, 120)
    second = np.where(rng.random(120) < 0.6, first, rng.integers(0, 3, 120))
    pairs = np.column_stack([first, second])
    loop = [naive_ac1(pairs[rng.integers(0, 120, 120)].tolist()) for _ in range(1500)]
    row = chance(first, second, settings=MANY)["gwet_ac1"]
    # Monte Carlo error of a 2.5 % quantile of 1500 values, standard error 0.06: about 0.004
    assert [row["ci_low"], row["ci_high"]] == pytest.approx(np.quantile(loop, [0.025, 0.975]).tolist(), abs=0.015)


def test_pabak_has_the_exact_agreements_interval():
    # Wilson of 16 in 20 is 0.5840 to 0.9193 (statsmodels); times 2 minus 1
    first = np.array([0, 1] * 10)
    second = np.concatenate([first[:16], 1 - first[16:]])
    row = chance(first, second)["pabak"]
    assert [row["ci_low"], row["ci_high"]] == pytest.approx([2 * 0.583985 - 1, 2 * 0.919330 - 1], abs=1e-4)
    assert row["method"] == "2 labels in use; exact agreement's interval, Wilson"


# Invariances


@given(label_pairs, st.permutations([0, 1, 2, 3]))
def test_names_of_labels_and_order_of_raters_do_not_matter(pairs, names):
    first, second = both(pairs)
    renamed = np.array(names)[first], np.array(names)[second]
    one = chance(first, second)
    for other in (chance(*renamed), chance(second, first)):
        for name in ("gwet_ac1", "pabak"):
            assert other[name]["estimate"] == pytest.approx(one[name]["estimate"], nan_ok=True, abs=1e-12)


@given(label_pairs)
def test_an_order_read_backwards_is_the_same(pairs):
    first, second = both(pairs)
    one = weighted(first, second, 4)
    for other in (weighted(3 - first, 3 - second, 4), weighted(second, first, 4)):
        for name, row in one.items():
            assert other[name]["estimate"] == pytest.approx(row["estimate"], nan_ok=True, abs=1e-12)


@given(label_pairs)
def test_with_two_labels_every_weight_is_the_same(pairs):
    first, second = both(pairs) // 2
    rows = weighted(first, second, 2)
    plain = kappa_row("k", Place(), np.arange(len(first)), first, second, n_labels=2, settings=ONCE)["estimate"]
    for row in rows.values():
        assert row["estimate"] == pytest.approx(plain, nan_ok=True, abs=1e-12)


def test_missing_labels_are_left_out_and_counted():
    first, second = np.array([0, 1, -1, 0, 1, -2]), np.array([0, 1, 1, -1, 0, 0])
    for measure, row in (chance(first, second) | weighted(first, second, 2)).items():
        assert (row["n_used"], row["n_excluded"]) == (3, 3), measure
    assert chance(first, second)["pabak"]["estimate"] == pytest.approx(1 / 3)


def test_judgments_of_one_item_stay_together():
    # 20 items of ten equal judgments are 20 judgments, not 200.
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 2, 20), rng.integers(0, 2, 20)
    alone = chance(first, second, settings=MANY)["gwet_ac1"]
    tenfold = chance(np.repeat(first, 10), np.repeat(second, 10), np.repeat(np.arange(20), 10), MANY)
    assert tenfold["gwet_ac1"]["estimate"] == pytest.approx(alone["estimate"], abs=1e-12)
    assert tenfold["gwet_ac1"]["ci_low"] == pytest.approx(alone["ci_low"], abs=0.1)
    assert "bootstrap" in tenfold["pabak"]["method"]
    assert tenfold["pabak"]["n_used"] == 20


# Degenerate input


def test_one_and_the_same_label_is_undefined():
    same = np.zeros(5, dtype=np.int64)
    for row in (*chance(same, same, note="n").values(), *weighted(same, same, 3).values()):
        assert np.isnan(row["estimate"])
        assert np.isnan(row["ci_low"])
        assert row["note"].startswith("undefined: both raters used one and the same label")
    assert chance(same, same, note="n")["pabak"]["note"].endswith("; n")
    assert fleiss(np.array([[3, 0], [3, 0]]))["note"] == "undefined: every label is the same"


@pytest.mark.parametrize("n", [0, 3])
def test_nothing_to_compare_is_undefined(n):
    none = np.full(n, -1, dtype=np.int64)
    for row in (*chance(none, none).values(), *weighted(none, none, 3).values()):
        assert np.isnan(row["estimate"])
        assert row["note"] == "undefined: no item with two valid labels"
        assert (row["n_used"], row["n_excluded"]) == (0, n)


def test_one_item_has_no_interval():
    for row in chance(np.array([0]), np.array([1])).values():
        assert row["estimate"] == -1
    assert "no interval: 1 item" in chance(np.array([0]), np.array([1]))["gwet_ac1"]["note"]


def test_perfect_agreement_of_several_labels_is_one_without_a_bootstrap_interval():
    codes = np.arange(12) % 3
    rows = chance(codes, codes, settings=MANY)
    assert rows["gwet_ac1"]["estimate"] == rows["pabak"]["estimate"] == 1
    assert np.isnan(rows["gwet_ac1"]["ci_low"])
    assert "every resample gives the same value" in rows["gwet_ac1"]["note"]
    assert rows["pabak"]["ci_low"] < 0.8  # Wilson's bound on 12 of 12


def test_one_constant_rater_is_said_to_give_zero():
    for second in ([0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 2, 0]):
        for row in weighted(np.full(4, 2), np.array(second), 3).values():
            assert row["estimate"] == pytest.approx(0, abs=1e-15)
            assert row["note"].count("one rater used one label only, kappa is 0 by its formula") == 1


def test_a_code_beyond_the_order_is_refused():
    with pytest.raises(
        ValueError, match="1 of 3 judgments have a code beyond the 3 labels of the order; first in place 2"
    ):
        weighted(np.array([0, 1, 3]), np.array([0, 1, 2]), 3)


def test_fleiss_leaves_out_other_numbers_of_labels():
    counts = np.array([[2, 0], [1, 1], [0, 2], [3, 0], [0, 1]])
    row = fleiss(counts)
    assert row["estimate"] == fleiss(counts[:3])["estimate"]
    assert (row["n_used"], row["n_excluded"]) == (3, 2)
    assert row["note"].endswith("2 of 5 units left out: another number of labels")
    # As common: the smaller number
    assert fleiss(np.array([[2, 0], [0, 3], [1, 1], [2, 1]]))["method"].startswith("2 labels a unit")


def test_fleiss_without_two_labels_a_unit_is_undefined():
    for counts in (np.array([[1, 0], [0, 1]]), np.zeros((0, 2), dtype=np.int64)):
        row = fleiss(counts)
        assert np.isnan(row["estimate"])
        assert row["note"] == "undefined: no unit with two labels"


def test_fleiss_resamples_items_whole():
    counts = np.array([[2, 0], [1, 1], [0, 2], [2, 0], [0, 2], [1, 1], [2, 0], [0, 2]] * 3)
    alone = fleiss(counts, settings=MANY)
    tenfold = fleiss(np.repeat(counts, 10, axis=0), items=np.repeat(np.arange(24), 10), settings=MANY)
    assert tenfold["n_used"] == 24
    assert tenfold["ci_low"] == pytest.approx(alone["ci_low"], abs=0.1)


# The warning of an unstable kappa


def test_a_dominant_label_is_named_by_its_share():
    # 9 of 12 is 75 %, 8 of 12 is not
    mixed = np.array([0, 1] * 6)
    assert dominance(np.array([0] * 9 + [1] * 3), mixed) == (
        "kappa is unstable: one label holds 75% of a rater's, see gwet_ac1"
    )
    assert dominance(mixed, np.array([1] * 11 + [0])).startswith("kappa is unstable: one label holds 92%")
    assert dominance(np.array([0] * 8 + [1] * 4), mixed) == ""


def test_missing_labels_do_not_dominate_and_undefined_kappa_is_not_unstable():
    assert dominance(np.array([-1] * 9 + [0, 1]), np.array([0] * 9 + [0, 1])) == ""
    assert dominance(np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)) == ""
    assert dominance(np.array([-1]), np.array([0])) == ""
    assert dominance(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)) == ""
