"""A category against the rest: by hand, against second libraries and a loop, invariances, degenerate input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from scipy.stats import hypergeom
from statsmodels.stats.proportion import confint_proportions_2indep

from judgelab.measure.agreement import agreement_table
from judgelab.measure.estimates import Place, Settings
from judgelab.measure.slices import gap_rows
from judgelab.measure.views import View

from .conftest import ALPHA_BETA, make_normalized, pick

A, B, _ = ALPHA_BETA
NAN = float("nan")
ONCE = Settings(0.95, 1, 7)
GAP, P, HOLM = "exact_agreement_gap", "exact_agreement_gap_p", "exact_agreement_gap_p_holm"


def view_of(matches, category, items=None):
    right = np.asarray(matches, dtype=float)
    n = len(right)
    judged = np.where(np.isnan(right), -1, np.where(right == 1, 0, 1)).astype(np.int64)
    items = np.arange(n) if items is None else np.asarray(items)
    names = np.array([*category, None], dtype=object)[:-1]
    return View(Place("j", "direct", "direct"), items, names, np.zeros(n, dtype=np.int64), judged)


def gaps(matches, category, items=None, settings=ONCE):
    view = view_of(matches, category, items)
    rows = list(gap_rows(view, np.asarray(matches, dtype=float), settings))
    return {(row["slice"].removeprefix("category="), row["measure"]): row for row in rows}


def naive_fisher(right, total):
    """Chance of a table at most as likely as this one, margins given."""
    successes, n = sum(right), sum(total)
    law = hypergeom(n, successes, total[0])
    each = [law.pmf(k) for k in range(max(0, successes - total[1]), min(total[0], successes) + 1)]
    return sum(p for p in each if p <= law.pmf(right[0]) * (1 + 1e-7))


def test_by_hand():
    # Fisher's tea: 3 of 4 in c, 1 of 4 in d; p = 34/70 = 0.4857. Two categories: Holm doubles it.
    rows = gaps([1, 1, 1, 0, 1, 0, 0, 0], "ccccdddd")
    assert rows["c", GAP]["estimate"] == 0.5
    assert rows["d", GAP]["estimate"] == -0.5
    assert rows["c", GAP]["note"] == "3/4 in it, 1/4 in the others"
    assert rows["c", P]["estimate"] == pytest.approx(34 / 70, abs=1e-12)
    assert rows["c", HOLM]["estimate"] == pytest.approx(68 / 70, abs=1e-12)
    assert rows["c", HOLM]["method"] == "Fisher's exact test, two-sided, Holm over 2 categories"
    assert {row["n_used"] for row in rows.values()} == {8}


def test_interval_is_newcombes():
    rows = gaps([1] * 56 + [0] * 14 + [1] * 48 + [0] * 32, ["c"] * 70 + ["d"] * 80)
    line = rows["c", GAP]
    # Newcombe 1998, example (a), method 10: 0.0524 to 0.3339
    assert (round(line["ci_low"], 4), round(line["ci_high"], 4)) == (0.0524, 0.3339)
    theirs = confint_proportions_2indep(56, 70, 48, 80, method="newcomb", compare="diff")
    assert (line["ci_low"], line["ci_high"]) == pytest.approx(theirs, abs=1e-12)
    assert "Newcombe" in line["method"]


outcomes = st.lists(st.tuples(st.sampled_from([0.0, 1.0, NAN]), st.sampled_from("cde")), min_size=2, max_size=30)


@profile(max_examples=60)
@given(outcomes)
def test_equals_a_loop_over_categories(given_):
    matches, category = zip(*given_, strict=True)
    rows = gaps(matches, category)
    names = sorted(set(category))
    assert {name for name, _ in rows} == (set(names) if len(names) > 1 else set())
    counted = [(m, c) for m, c in given_ if m == m]
    p_values = {}
    for name in names if rows else []:
        inside, outside = ([m for m, c in counted if (c == name) is here] for here in (True, False))
        if not inside or not outside:
            assert np.isnan([rows[name, measure]["estimate"] for measure in (GAP, P, HOLM)]).all()
            continue
        expected = sum(inside) / len(inside) - sum(outside) / len(outside)
        assert rows[name, GAP]["estimate"] == pytest.approx(expected, abs=1e-12)
        right, total = (int(sum(inside)), int(sum(outside))), (len(inside), len(outside))
        p_values[name] = rows[name, P]["estimate"]
        assert p_values[name] == pytest.approx(naive_fisher(right, total), abs=1e-9)
    floor = 0.0
    for rank, name in enumerate(sorted(p_values, key=p_values.get)):
        floor = max(floor, min(1.0, p_values[name] * (len(p_values) - rank)))
        assert rows[name, HOLM]["estimate"] == pytest.approx(floor, abs=1e-12)


@profile(max_examples=50)
@given(outcomes, st.randoms())
def test_order_and_names_change_nothing(given_, random):
    matches, category = zip(*given_, strict=True)
    shuffled = list(given_)
    random.shuffle(shuffled)
    one = gaps(matches, category)
    two = gaps([m for m, _ in shuffled], [c.upper() for _, c in shuffled])
    assert {key: row["estimate"] for key, row in one.items()} == pytest.approx(
        {(name.lower(), measure): row["estimate"] for (name, measure), row in two.items()}, nan_ok=True
    )


def test_categories_need_not_be_text_and_items_without_one_are_among_the_others():
    rows = gaps([1, 1, 0, 0, 1, 0], [1, 1, 2, 2, None, None])
    assert rows["1", GAP]["note"] == "2/2 in it, 1/4 in the others"
    assert rows["2", GAP]["note"] == "0/2 in it, 3/4 in the others"
    assert {name for name, _ in rows} == {"1", "2"}


def test_no_or_one_category_has_no_rows():
    assert gaps([1, 0], [None, None]) == gaps([1, 0, 1], ["c", "c", None]) == gaps([], []) == {}


def test_all_right_is_a_gap_of_zero_with_an_interval():
    rows = gaps([1] * 20, "cd" * 10)
    line = rows["c", GAP]
    assert line["estimate"] == 0
    assert line["ci_low"] < -0.2 < 0.2 < line["ci_high"]
    assert rows["c", P]["estimate"] == rows["c", HOLM]["estimate"] == 1


def test_a_category_without_a_judgment_is_undefined_and_not_corrected_for():
    rows = gaps([1, 0, 1, 1, 0, NAN], "cccddx")
    assert rows["x", GAP]["note"] == "undefined: no judgment in the category"
    assert rows["x", P]["note"] == rows["x", HOLM]["note"] == "undefined: no judgment to compare"
    assert rows["c", HOLM]["method"].endswith("Holm over 2 categories")
    only = gaps([1, 0, NAN], "ccx")
    assert only["c", GAP]["note"] == "undefined: no judgment outside the category"
    nothing = gaps([NAN, NAN], "cd")
    assert all(np.isnan(row["estimate"]) and row["note"].startswith("undefined: ") for row in nothing.values())


def test_several_judgments_of_an_item_have_a_bootstrap_and_no_test():
    rng = np.random.default_rng(2)
    right, items = rng.integers(0, 2, 20), np.repeat(np.arange(20), 10)
    rows = gaps(np.repeat(right, 10), np.repeat(list("cd") * 10, 10), items, Settings(0.95, 2000, 7))
    alone = gaps(right, "cd" * 10)
    line = rows["c", GAP]
    assert line["estimate"] == pytest.approx(alone["c", GAP]["estimate"], abs=1e-12)
    # that of 20 items, not of 200 judgments
    assert line["ci_high"] - line["ci_low"] > 0.7 * (alone["c", GAP]["ci_high"] - alone["c", GAP]["ci_low"])
    assert "bootstrap over items" in line["method"]
    assert rows["c", P]["note"] == rows["c", HOLM]["note"] == "undefined: items have several judgments"


def test_rows_join_the_agreement_table(options):
    n = 40
    study = make_normalized([A] * n, [A, B] * 20, [A] * n, [A] * n, category=["c"] * 10 + ["d"] * 30)
    table = agreement_table(study, labels=ALPHA_BETA, **options)
    line = pick(table, GAP, "direct", "category=c")
    assert (line["estimate"], line["n_used"]) == (0.0, n)
    shares = [pick(table, "exact_agreement", "direct", f"category={name}")["estimate"] for name in "cd"]
    assert line["estimate"] == shares[0] - shares[1]
    assert set(table.loc[table["measure"] == HOLM, "pass"]) == {"direct", "original", "swapped", "aggregated"}


def test_a_fair_judge_raises_few_alarms_after_holm():
    # 400 fair judges, 60 items in five categories: some category has p_holm < 0.05 in at most 5 % of them; exact
    # tests are conservative. Without Holm more than twice as often.
    rng = np.random.default_rng(9)
    category = np.repeat(list("abcde"), 12)
    alarms = np.zeros(2)
    for _ in range(400):
        rows = gaps((rng.random(60) < 0.7).astype(float), category)
        alarms += [min(rows[name, measure]["estimate"] for name in "abcde") < 0.05 for measure in (P, HOLM)]
    assert alarms[1] / 400 <= 0.05
    assert alarms[0] > 2 * alarms[1]
