"""Swap consistency, reversals, places and the conservative rule."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from judgelab.measure.position import position_sensitive, position_table, swap_table

from .conftest import ALPHA_BETA, llmbar_normalized, make_normalized, pick, random_normalized

A, B, T = ALPHA_BETA

ORIGINAL = [A, A, B, T, A, T, None, None]
SWAPPED = [A, B, B, T, T, A, A, None]
FIRST = [A, A, A, B, B, B, A, A]


@pytest.fixture
def study():
    return make_normalized([A] * 8, None, ORIGINAL, SWAPPED, FIRST, category=["c"] * 3 + ["d"] * 5)


def rate(line):
    return line["numerator"], line["denominator"]


def test_by_hand(study, options):
    table = position_table(study, labels=ALPHA_BETA, **options)
    assert rate(pick(table, "swap_consistency", "both")) == (3, 6)  # items 1 3 4 of 1 to 6
    assert rate(pick(table, "swap_consistency", "both", "category=c")) == (2, 3)
    assert rate(pick(table, "swap_consistency_unusable_as_label", "both")) == (4, 8)  # and 8, unusable twice
    assert rate(pick(table, "reversal_rate", "both")) == (1, 3)  # 2, of 1 2 3
    # original: non-tie 1 A/A 2 A/A 3 B/A 5 A/B: first chosen in 1 2
    assert rate(pick(table, "first_position_rate", "original")) == (2, 4)
    # swapped, shown first is the other: 1 A/B 2 B/B 3 B/B 6 A/A 7 A/B: first chosen in 2 3 6
    assert rate(pick(table, "first_position_rate", "swapped")) == (3, 5)
    assert rate(pick(table, "first_position_rate", "both")) == (5, 9)
    assert rate(pick(table, "first_position_rate", "both", "category=d")) == (1, 3)
    assert rate(pick(table, "coverage", "aggregated")) == (3, 6)
    assert rate(pick(table, "abstention_rate", "aggregated")) == (3, 6)
    line = pick(table, "swap_consistency", "both")
    assert (line["n_used"], line["n_excluded"]) == (6, 2)


def test_swap_kappa_equals_scikit_learn(options):
    study = random_normalized(200, 11)
    valid = study[["pair_original", "pair_swapped"]].dropna()
    expected = cohen_kappa_score(*(valid[c].tolist() for c in valid), labels=list(ALPHA_BETA))
    line = pick(position_table(study, labels=ALPHA_BETA, **options), "swap_kappa", "both")
    assert line["estimate"] == pytest.approx(expected, abs=1e-12)


def test_an_unusable_verdict_as_a_vote_for_the_second_system(study, options):
    line = pick(position_table(study, labels=ALPHA_BETA, **options), "swap_kappa_unusable_as_label", "both")
    expected = cohen_kappa_score([A, A, B, T, A, T, B, B], [A, B, B, T, T, A, A, B], labels=list(ALPHA_BETA))
    assert line["estimate"] == pytest.approx(expected, abs=1e-12)
    assert line["note"].endswith("3 unusable verdicts counted as votes for the pair's second system")


def test_always_the_first_place(options):
    first = [A, B] * 10
    study = make_normalized([A] * 20, None, first, [B, A] * 10, first)
    table = position_table(study, labels=ALPHA_BETA, **options)
    assert pick(table, "first_position_rate", "both")["estimate"] == 1
    assert pick(table, "swap_consistency", "both")["estimate"] == 0
    assert pick(table, "reversal_rate", "both")["estimate"] == 1
    assert pick(table, "coverage", "aggregated")["estimate"] == 0
    # Wilson for 20 of 20: 1 / (1 + z²/20) = 0.8389
    assert pick(table, "first_position_rate", "both")["ci_low"] == pytest.approx(0.8389, abs=5e-5)


def test_a_consistent_judge_has_a_rate_of_one_half_and_an_honest_interval(options):
    study = make_normalized([A] * 50, None, [A] * 50, [A] * 50, [A, B] * 25)
    line = pick(position_table(study, labels=ALPHA_BETA, **options), "first_position_rate", "both")
    # Wilson's upper bound of 0 of 50 inconsistent items is z²/(50 + z²) = 0.0714; each moves the rate by 1/2.
    assert line["estimate"] == 0.5
    assert (line["ci_low"], line["ci_high"]) == pytest.approx((0.5 - 0.0357, 0.5 + 0.0357), abs=5e-5)


def test_exchanging_the_passes(options):
    study = random_normalized(90, 12)
    turned = study.rename(columns={"pair_original": "pair_swapped", "pair_swapped": "pair_original"})
    turned["original_first"] = np.where(study["original_first"] == A, B, A)
    one, two = (position_table(s, labels=ALPHA_BETA, **options) for s in (study, turned))
    for measure, pass_, other in (
        ("swap_consistency", "both", "both"),
        ("swap_kappa", "both", "both"),
        ("reversal_rate", "both", "both"),
        ("first_position_rate", "both", "both"),
        ("first_position_rate", "original", "swapped"),
    ):
        assert pick(one, measure, pass_)["estimate"] == pytest.approx(pick(two, measure, other)["estimate"], abs=1e-15)


def test_names_and_order_change_nothing(options):
    study = random_normalized(90, 13)
    renamed = study.replace({"ALPHA": "zeta", "BETA": "eta"}).sample(frac=1, random_state=2)
    one = position_table(study, labels=ALPHA_BETA, **options)
    two = position_table(renamed, labels=("zeta", "eta", "TIE"), **options)
    pd.testing.assert_frame_equal(one, two)


def test_both_passes_are_not_independent(options):
    # Every pair consistent but one: binomial over 80 judgments would give ±0.11, whole items give at most ±0.04.
    original = [A] * 40
    swapped = [A] * 39 + [B]
    study = make_normalized([A] * 40, None, original, swapped, [A] * 40)
    line = pick(position_table(study, labels=ALPHA_BETA, **options), "first_position_rate", "both")
    assert line["estimate"] == 41 / 80
    assert 0.5 <= line["ci_low"] <= line["estimate"] < line["ci_high"] < 0.56
    assert line["method"].startswith("percentile bootstrap over items")


def test_swap_table_counts_unusable(study):
    counts = swap_table(study, labels=ALPHA_BETA).set_index(["original", "swapped"])["count"]
    assert len(counts) == 16
    got = {key: n for key, n in counts.items() if n}
    assert got == {
        (A, A): 1,
        (A, B): 1,
        (B, B): 1,
        (T, T): 1,
        (A, T): 1,
        (T, A): 1,
        ("UNUSABLE", A): 1,
        ("UNUSABLE", "UNUSABLE"): 1,
    }


def test_position_sensitive_pairs(study):
    table = position_sensitive(study)
    assert table["item_id"].tolist() == [1, 4, 5]
    assert table["kind"].tolist() == ["reversal", "winner_to_tie", "tie_to_winner"]
    assert table["swapped_first"].tolist() == [B, A, A]
    assert len(position_sensitive(make_normalized([A], None, [A], [A]))) == 0
    assert len(position_sensitive(make_normalized([]))) == 0


def test_only_planned_passes_have_rows(options):
    table = position_table(make_normalized([A, B], None, [A, A]), labels=ALPHA_BETA, **options)
    assert table[["measure", "pass"]].to_numpy().tolist() == [["first_position_rate", "original"]]
    assert len(swap_table(make_normalized([A, B], None, [A, A]), labels=ALPHA_BETA)) == 0


@pytest.mark.data
@pytest.mark.parametrize("judge", ["GPT-4", "PaLM2", "ChatGPT", "LLaMA2"])
def test_llmbar_published_positional_agreement(judge, shared, options):
    study, published = llmbar_normalized(shared, judge)
    table = position_table(study, labels=("S1", "S2", "TIE"), **options)
    line = pick(table, "swap_consistency_unusable_as_label", "both", judge=judge)
    assert published["equal"].startswith(f"{line['numerator']} / {line['denominator']} =")
    kappa = pick(table, "swap_kappa_unusable_as_label", "both", judge=judge)["estimate"]
    assert kappa == pytest.approx(published["kappa_agreement"], abs=1e-15)
    if judge != "PaLM2":  # the only one with unusable replies
        assert pick(table, "swap_kappa", "both", judge=judge)["estimate"] == kappa
