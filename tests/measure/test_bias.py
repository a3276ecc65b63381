"""Preference for length and for a family beyond people's: by hand, invariances, planted effects, what is undefined."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, fisher_exact
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import confint_proportions_2indep

from judgelab.measure.bias import bias_table
from judgelab.measure.differences import newcombe_paired, newcombe_separate

from .conftest import ALPHA_BETA, make_normalized, pick, random_normalized

A, B, T = ALPHA_BETA
NAMES = ("longer_rate", "human_longer_rate", "length_gap", "length_gap_p", "length_error_gap", "length_error_gap_p")


def study(human, judged, longer, **options):
    """A judge's original pass; ``longer`` is the system with more words, None for equally long."""
    table = make_normalized(human, None, judged, **options)
    table["words_x"] = [20 if side == A else 10 for side in longer]
    table["words_y"] = [20 if side == B else 10 for side in longer]
    return table


@pytest.fixture
def small():
    # Items that count: 1 to 7, of which people prefer the longer one on 1 2 3, the judge on 1 2 4 5 6.
    human = [A, B, A, B, A, B, A, T, A, A, None]
    judged = [A, B, B, A, B, A, A, A, T, A, A]
    longer = [A, B, A, A, B, A, B, A, A, None, A]
    return study(human, judged, longer)


def test_by_hand(small, options):
    table = bias_table(small, labels=ALPHA_BETA, **options)
    assert table["measure"].tolist() == list(NAMES)
    rates = [pick(table, name, "original") for name in NAMES[:2]]
    assert [(row["numerator"], row["denominator"]) for row in rates] == [(5, 7), (3, 7)]
    gap = pick(table, "length_gap", "original")
    assert gap["estimate"] == pytest.approx(2 / 7)
    # both 1 2, judge only 4 5 6, people only 3, neither 7
    assert (gap["ci_low"], gap["ci_high"]) == newcombe_paired(2, 3, 1, 1, 0.95)
    assert (gap["n_used"], gap["n_excluded"]) == (7, 4)
    assert gap["note"] == ("4 of 11 judgments left out: 3 without two preferences, 1 equally long or of unknown length")
    assert pick(table, "length_gap_p", "original")["estimate"] == pytest.approx(2 * 5 / 16)  # 3 or more of 4, twice
    # wrong on 4 5 6 of the four where people prefer the shorter one, on 3 of the three others
    error = pick(table, "length_error_gap", "original")
    assert error["estimate"] == pytest.approx(3 / 4 - 1 / 3)
    assert (error["ci_low"], error["ci_high"]) == newcombe_separate((3, 1), (4, 3), 0.95)
    assert pick(table, "length_error_gap_p", "original")["estimate"] == pytest.approx(
        fisher_exact([[3, 1], [1, 2]]).pvalue
    )


def test_second_libraries(options):
    rng = np.random.default_rng(3)
    human, judged, longer = (rng.choice([A, B], 200) for _ in range(3))
    table = bias_table(study(human, judged, longer), labels=ALPHA_BETA, **options)
    people, judge = human == longer, judged == longer
    cells = [[(people & judge).sum(), (people & ~judge).sum()], [(~people & judge).sum(), (~people & ~judge).sum()]]
    assert pick(table, "length_gap_p", "original")["estimate"] == pytest.approx(mcnemar(cells, exact=True).pvalue)
    wrong = human != judged
    counts = (wrong & ~people).sum(), (~people).sum(), (wrong & people).sum(), people.sum()
    low, high = confint_proportions_2indep(*counts, method="newcomb")
    row = pick(table, "length_error_gap", "original")
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high), abs=1e-12)


def test_family(options):
    table = make_normalized([A, A, B, B], None, [A, B, A, A])
    labels = [*ALPHA_BETA[:2], "GAMMA", T]
    table.loc[3, ["system_x", "human", "pair_original", "original_first"]] = ["GAMMA", B, "GAMMA", B]
    rows = bias_table(table, labels=labels, families={"own": [A, "GAMMA"]}, **options)
    assert pick(rows, "family_rate", "original", "family=own")["estimate"] == 3 / 4
    assert pick(rows, "human_family_rate", "original", "family=own")["estimate"] == 2 / 4
    assert pick(rows, "family_error_gap", "original", "family=own")["estimate"] == 1 - 1 / 2
    other = bias_table(table, labels=labels, families={"both": [A, B]}, **options)
    row = pick(other, "family_rate", "original", "family=both")  # only item 4 has one system of it
    assert (row["numerator"], row["denominator"]) == (0, 1)
    assert "3 without exactly one of the family" in row["note"]


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_names_and_sides_do_not_matter(seed):
    options = {"ci_level": 0.95, "resamples": 5, "seed": 1}
    table = random_normalized(60, seed)
    rng = np.random.default_rng(seed)
    table["words_x"], table["words_y"] = rng.integers(1, 5, 60), rng.integers(1, 5, 60)
    renamed = table.replace({A: "P", B: "Q"})
    swapped = table.rename(columns={"system_x": "system_y", "system_y": "system_x"})
    swapped = swapped.rename(columns={"words_x": "words_y", "words_y": "words_x"})
    rows = bias_table(table, labels=ALPHA_BETA, **options)
    pd.testing.assert_frame_equal(bias_table(renamed, labels=("P", "Q", T), **options), rows)
    pd.testing.assert_frame_equal(bias_table(swapped, labels=ALPHA_BETA, **options), rows)
    for pass_ in ("direct", "original", "swapped", "aggregated"):
        human, judge = (pick(rows, name, pass_)["estimate"] for name in ("human_longer_rate", "longer_rate"))
        assert pick(rows, "length_gap", pass_)["estimate"] == pytest.approx(judge - human, nan_ok=True)


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_exchanging_long_and_short_turns_the_signs(seed):
    options = {"ci_level": 0.95, "resamples": 20, "seed": 1}
    rng = np.random.default_rng(seed)
    human, judged = rng.choice(ALPHA_BETA, (2, 30))
    longer = rng.choice([A, B], 30)
    shorter = np.where(longer == A, B, A)
    one, other = (bias_table(study(human, judged, side), labels=ALPHA_BETA, **options) for side in (longer, shorter))
    for name in ("length_gap", "length_error_gap"):
        a, b = pick(one, name, "original"), pick(other, name, "original")
        assert [a["estimate"], a["ci_low"], a["ci_high"]] == pytest.approx(
            [-b["estimate"], -b["ci_high"], -b["ci_low"]], abs=1e-12, nan_ok=True
        )
    for name in ("length_gap_p", "length_error_gap_p"):
        assert pick(one, name, "original")["estimate"] == pytest.approx(
            pick(other, name, "original")["estimate"], nan_ok=True
        )


def test_several_judgments_an_item_are_resampled_together(options):
    rng = np.random.default_rng(5)
    human, judged, longer = (rng.choice([A, B], 60) for _ in range(3))
    doubled = study(human, judged, longer, items=np.repeat(np.arange(30), 2))
    rows = bias_table(doubled, labels=ALPHA_BETA, **options)
    gap = pick(rows, "length_gap", "original")
    assert gap["method"].startswith("judge minus people on the same items; percentile bootstrap over items")
    assert gap["n_used"] == 30
    p = pick(rows, "length_gap_p", "original")
    assert np.isnan(p["estimate"])
    assert p["note"].startswith("undefined: an item has several judgments")
    wrong, people = human != judged, human == longer
    expected = wrong[~people].mean() - wrong[people].mean()
    assert pick(rows, "length_error_gap", "original")["estimate"] == pytest.approx(expected, abs=1e-12)


def test_both_passes_are_counted_together(options):
    table = make_normalized([A, B] * 20, None, [A, A] * 20, [A, B] * 20)
    table["words_x"], table["words_y"] = 20, 10
    rows = bias_table(table, labels=ALPHA_BETA, **options)
    row = pick(rows, "longer_rate", "both")
    assert (row["numerator"], row["denominator"], row["n_used"]) == (60, 80, 40)
    assert pick(rows, "length_gap", "both")["estimate"] == pytest.approx(0.25)
    assert pick(rows, "length_error_gap", "both")["estimate"] == pytest.approx(0.5)
    assert pick(rows, "longer_rate", "aggregated")["denominator"] == 20


def test_place(options):
    # decided by place: the first in both presentations in 1 2 3, the second in 4; 5 is no reversal, 6 holds a tie
    original, swapped = [A, A, B, B, A, T], [B, B, A, A, A, A]
    table = make_normalized([A] * 6, None, original, swapped, [A, A, B, A, A, A])
    row = pick(bias_table(table, labels=ALPHA_BETA, **options), "first_position_p", "both")
    assert row["estimate"] == pytest.approx(2 * 5 / 16)
    assert row["method"].endswith("the first place in 3 of 4 pairs decided by place")
    assert row["note"] == "1 of 6 pairs left out: 1 without two non-tie verdicts"
    assert row["n_used"] == 5
    for items, original_, reason in (
        ([0, 0, 1, 1, 2, 2], original, "an item has several judgments"),
        (range(6), swapped, "no pair is decided by place"),
        (range(6), [T] * 6, "no judgment to count"),
    ):
        table = make_normalized([A] * 6, None, original_, swapped, items=list(items))
        row = pick(bias_table(table, labels=ALPHA_BETA, **options), "first_position_p", "both")
        assert np.isnan(row["estimate"])
        assert reason in row["note"]


@pytest.mark.parametrize(
    ("human", "judged", "longer", "reasons"),
    [
        ([A], [T], [A], dict.fromkeys(NAMES, "no judgment to count")),
        ([A, B], [A, B], [None, None], dict.fromkeys(NAMES[:4], "no judgment to count")),
        ([A, A], [A, B], [A, A], {"length_error_gap": "always", "length_error_gap_p": "always"}),
        ([B, B], [A, B], [A, A], {"length_error_gap": "never", "length_error_gap_p": "never"}),
        ([A, B], [A, B], [A, A], {"length_gap_p": "no item on which one of the two prefers"}),
    ],
)
def test_undefined(options, human, judged, longer, reasons):
    rows = bias_table(study(human, judged, longer), labels=ALPHA_BETA, **options)
    for name, reason in reasons.items():
        row = pick(rows, name, "original")
        assert np.isnan(row["estimate"])
        assert row["note"].startswith("undefined: ")
        assert reason in row["note"]
    defined = rows[~rows["measure"].isin(reasons)]
    assert defined["estimate"].notna().all() or len(reasons) < len(NAMES)


def test_a_judge_without_difference_has_an_interval_with_a_width(options):
    rows = bias_table(study([A, B] * 15, [A, B] * 15, [A] * 30), labels=ALPHA_BETA, **options)
    for name in ("length_gap", "length_error_gap"):
        row = pick(rows, name, "original")
        assert row["estimate"] == 0
        assert row["ci_low"] < -0.02
        assert row["ci_high"] > 0.02


def test_misuse(options, small):
    with pytest.raises(ValueError, match=r"family f: 1 of 2 systems are unknown, first 'X'; allowed are ALPHA, BETA"):
        bias_table(small, labels=ALPHA_BETA, families={"f": [A, "X"]}, **options)
    for members in ([], [A, B]):
        with pytest.raises(ValueError, match=f"family f has {len(members)} of 2 systems; allowed is a part"):
            bias_table(small, labels=ALPHA_BETA, families={"f": members}, **options)
    with pytest.raises(ValueError, match="normalized: missing column words_x"):
        bias_table(small.drop(columns="words_x"), labels=ALPHA_BETA, **options)


def planted(rng, n, *, longer_better, error, pull):
    """A judge that errs on a share of items, and takes the longer answer on a share of all whatever people say."""
    longer = rng.choice([A, B], n)
    shorter = np.where(longer == A, B, A)
    human = np.where(rng.random(n) < longer_better, longer, shorter)
    wrong = rng.random(n) < error
    judged = np.where(wrong, np.where(human == A, B, A), human)
    return study(human, np.where(rng.random(n) < pull, longer, judged), longer)


@pytest.mark.parametrize("longer_better", [0.5, 0.7])
def test_a_fair_noisy_judge_raises_no_false_alarm(options, longer_better):
    # 200 studies of 100 items, error rate 0.2 whatever the length; the test is exact, so 5 % is an upper bound.
    rng = np.random.default_rng(21)
    alarms = 0
    for _ in range(200):
        table = planted(rng, 100, longer_better=longer_better, error=0.2, pull=0)
        alarms += (
            pick(bias_table(table, labels=ALPHA_BETA, **options), "length_error_gap_p", "original")["estimate"] <= 0.05
        )
    assert alarms <= 10


def test_a_planted_preference_for_length_is_found(options):
    # Takes the longer answer on 20 of 100 items whatever people say: wrong on 0.8 * 0.1 + 0.2 = 0.28 of the items
    # where the shorter is better and on 0.8 * 0.1 = 0.08 of the others. For rates of 0.28 and 0.08 in 2 * 100 items
    # the two-sided test at 5 % has power 0.93 (normal approximation 0.96, Fisher's is a little lower).
    rng = np.random.default_rng(22)
    found, covered = 0, 0
    for _ in range(100):
        table = planted(rng, 200, longer_better=0.5, error=0.1, pull=0.2)
        rows = bias_table(table, labels=ALPHA_BETA, **options)
        found += pick(rows, "length_error_gap_p", "original")["estimate"] <= 0.05
        row = pick(rows, "length_error_gap", "original")
        covered += row["ci_low"] <= 0.2 <= row["ci_high"]
    assert found >= 85
    assert covered >= 89


@given(st.lists(st.integers(0, 30), min_size=4, max_size=4).filter(lambda cells: sum(cells) > 0))
def test_paired_score_interval_is_a_proper_one(cells):
    both, first, second, neither = cells
    low, high = newcombe_paired(*cells, 0.95)
    estimate = (first - second) / sum(cells)
    assert -1 - 1e-12 <= low <= estimate <= high <= 1 + 1e-12
    assert newcombe_paired(both, second, first, neither, 0.95) == pytest.approx((-high, -low), abs=1e-12)
    assert newcombe_paired(neither, first, second, both, 0.95) == pytest.approx((low, high), abs=1e-12)
    if sum(cells) > 1:
        assert high > low


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_separate_score_interval_equals_statsmodels(n, m, data):
    k, j = data.draw(st.integers(0, n)), data.draw(st.integers(0, m))
    expected = confint_proportions_2indep(k, n, j, m, method="newcomb")
    assert newcombe_separate((k, j), (n, m), 0.95) == pytest.approx(expected, abs=1e-9)


def test_intervals_without_items_are_undefined():
    assert np.isnan(newcombe_paired(0, 0, 0, 0, 0.95)).all()
    assert np.isnan(newcombe_separate((0, 1), (0, 2), 0.95)).all()
    assert binomtest(3, 4).pvalue == pytest.approx(2 * 5 / 16)
