"""Agreement with the human reference: by hand, against the protocol's script, and against published figures."""

import csv
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.agreement import (
    agreement_table,
    confusion_table,
    label_frequencies,
    paired_bootstrap,
    paired_table,
)
from judgelab.measure.paired import paired_contingency
from judgelab.measure.position import position_table
from judgelab.measure.rows import COLUMNS

from .conftest import ALPHA_BETA, llmbar_normalized, make_normalized, pick, random_normalized

A, B, T = ALPHA_BETA

#                    1  2  3  4  5  6     7     8
HUMAN = [A, A, B, T, A, B, None, A]
DIRECT = [A, T, B, A, A, None, A, B]
ORIGINAL = [A, A, B, T, B, B, A, None]
SWAPPED = [A, B, B, A, B, T, A, A]


@pytest.fixture
def study():
    return make_normalized(HUMAN, DIRECT, ORIGINAL, SWAPPED, category=["c", "c", "c", "c", "d", "d", "d", "d"])


def rate(line):
    return line["numerator"], line["denominator"]


def test_by_hand(study, options):
    table = agreement_table(study, labels=ALPHA_BETA, **options)
    # direct: valid 1 2 3 4 5 8, equal 1 3 5; original: valid 1 to 6, equal 1 2 3 4 6; swapped: valid 1-6 8, equal 1 3 8
    assert rate(pick(table, "exact_agreement", "direct")) == (3, 6)
    assert rate(pick(table, "exact_agreement", "original")) == (5, 6)
    assert rate(pick(table, "exact_agreement", "swapped")) == (3, 7)
    assert rate(pick(table, "exact_agreement", "both")) == (8, 13)
    # aggregated: the same twice on 1 3 5 7; of them 7 has no human label, 5 is wrong
    assert rate(pick(table, "exact_agreement", "aggregated")) == (2, 3)
    assert rate(pick(table, "exact_agreement", "direct", "category=d")) == (1, 2)
    assert rate(pick(table, "exact_agreement_unusable_as_wrong", "direct")) == (3, 7)
    assert rate(pick(table, "exact_agreement_unusable_as_wrong", "both")) == (8, 14)
    # direct: item 2 is the only tie against a system; item 4 (human tie, judge A) is wrong
    half = pick(table, "exact_agreement_ties_as_half", "direct")
    assert half["estimate"] == 3.5 / 6
    assert "3 equal, 1 ties of the judge as half" in half["note"]
    # original: the only tie, item 4, is the human's too, so it is right and not one half
    assert pick(table, "exact_agreement_ties_as_half", "original")["estimate"] == 5 / 6
    # right in both passes: 1 3; pairs with a human label and two verdicts: 1 to 6
    assert rate(pick(table, "both_passes_correct", "both")) == (2, 6)
    assert rate(pick(table, "both_passes_correct_unusable_as_wrong", "both")) == (2, 7)
    assert rate(pick(table, "tie_rate", "direct")) == (1, 7)
    assert rate(pick(table, "human_tie_rate", "", judge="")) == (1, 7)
    # all three valid: 1 2 3 4 5; direct right 1 3 5, original right 1 2 3 4
    difference = pick(table, "exact_agreement_difference", "original")
    assert difference["estimate"] == pytest.approx(1 / 5, abs=1e-15)
    assert difference["method"].startswith("pairwise minus direct, paired bootstrap over items")


def test_what_was_left_out_is_counted(study, options):
    table = agreement_table(study, labels=ALPHA_BETA, **options)
    line = pick(table, "exact_agreement", "direct")
    assert (line["n_used"], line["n_excluded"]) == (6, 2)
    assert line["note"] == "2 of 8 items left out: 1 without reference, 1 without usable verdict"
    # conservative rule: 2 4 6 change, 8 has one verdict, 7 no reference
    line = pick(table, "exact_agreement", "aggregated")
    assert (line["n_used"], line["n_excluded"]) == (3, 5)
    assert line["note"] == "5 of 8 items left out: 1 without reference, 1 without usable verdict, 3 abstained"


def test_kappa_equals_scikit_learn(options):
    study = random_normalized(150, 3)
    table = agreement_table(study, labels=ALPHA_BETA, **options)
    for pass_, column in (("direct", "direct"), ("original", "pair_original"), ("swapped", "pair_swapped")):
        valid = study[["human", column]].dropna()
        expected = cohen_kappa_score(valid["human"].tolist(), valid[column].tolist(), labels=list(ALPHA_BETA))
        assert pick(table, "cohen_kappa", pass_)["estimate"] == pytest.approx(expected, abs=1e-12)


def test_plain_rates_have_wilsons_interval(study, options):
    line = pick(agreement_table(study, labels=ALPHA_BETA, **options), "exact_agreement", "original")
    assert (line["ci_low"], line["ci_high"]) == pytest.approx(proportion_confint(5, 6, method="wilson"))
    assert line["method"] == "Wilson"


def test_methods_name_resamples_and_seed(study, options):
    table = agreement_table(study, labels=ALPHA_BETA, **options)
    booted = table[table["method"].str.contains("bootstrap")]
    assert len(booted) > 10
    assert booted["method"].str.contains("200 resamples, seed 240719", regex=False).all()
    assert tuple(table.columns) == COLUMNS


def test_only_planned_passes_have_rows(options):
    table = agreement_table(make_normalized(HUMAN, None, ORIGINAL), labels=ALPHA_BETA, **options)
    assert set(table["pass"]) == {"original", ""}
    assert not table["measure"].str.contains("difference|both").any()


def estimates(table):
    keys = ["judge", "strategy", "pass", "slice", "measure"]
    return table.sort_values(keys)[[*keys, "estimate", "numerator", "denominator"]].reset_index(drop=True)


def test_order_of_items_changes_nothing(options):
    study = random_normalized(60, 4, category=["c", "d"] * 30)
    shuffled = study.sample(frac=1, random_state=1)
    one, two = (agreement_table(s, labels=ALPHA_BETA, **options) for s in (study, shuffled))
    pd.testing.assert_frame_equal(estimates(one), estimates(two))
    # Intervals over contingency cells too: cells are sorted, so the same draws are made.
    pd.testing.assert_series_equal(
        one.loc[one["measure"] == "cohen_kappa", "ci_low"], two.loc[two["measure"] == "cohen_kappa", "ci_low"]
    )


def test_names_of_systems_change_nothing(options):
    study = random_normalized(60, 5)
    renamed = study.replace({"ALPHA": "zeta", "BETA": "eta"})
    one = agreement_table(study, labels=ALPHA_BETA, **options)
    two = agreement_table(renamed, labels=("zeta", "eta", "TIE"), **options)
    # A label's rows carry its name, which also seeds their resamples: their estimates are compared.
    two = two.assign(
        **{name: two[name].str.replace("zeta", "ALPHA").str.replace("eta", "BETA") for name in ("slice", "method")}
    )
    labels = one["slice"].str.startswith("label=")
    pd.testing.assert_frame_equal(one[~labels], two[~labels])
    pd.testing.assert_series_equal(one["estimate"], two["estimate"])


def test_exchanging_the_passes_exchanges_their_rows(options):
    study = random_normalized(60, 6)
    turned = study.rename(columns={"pair_original": "pair_swapped", "pair_swapped": "pair_original"})
    turned["original_first"] = np.where(study["original_first"] == A, B, A)
    one, two = (agreement_table(s, labels=ALPHA_BETA, **options) for s in (study, turned))
    for measure in ("exact_agreement", "cohen_kappa"):
        assert pick(one, measure, "original")["estimate"] == pick(two, measure, "swapped")["estimate"]
        assert pick(one, measure, "both")["estimate"] == pick(two, measure, "both")["estimate"]
        assert pick(one, measure, "aggregated")["estimate"] == pick(two, measure, "aggregated")["estimate"]


def test_another_judge_changes_no_interval(options):
    one = random_normalized(60, 7)
    both = pd.concat([random_normalized(60, 8, judge="k"), one], ignore_index=True)
    alone, among = (agreement_table(s, labels=ALPHA_BETA, **options) for s in (one, both))
    pd.testing.assert_frame_equal(
        alone[alone["judge"] == "j"].reset_index(drop=True), among[among["judge"] == "j"].reset_index(drop=True)
    )


def test_several_pairs_of_an_item_are_resampled_whole(options):
    # 20 items with 10 equal rows each: the interval must be that of 20 judgments, not of 200.
    right = np.arange(20) % 2 == 0
    human = [A] * 200
    direct = list(np.where(np.repeat(right, 10), A, B))
    study = make_normalized(human, direct, items=np.repeat(np.arange(20), 10))
    many = options | {"resamples": 4000}
    line = pick(agreement_table(study, labels=ALPHA_BETA, **many), "exact_agreement", "direct")
    assert (line["estimate"], line["n_used"], line["denominator"]) == (0.5, 20, 200)
    # Binomial(20, 1/2) / 20 has 2.5 % and 97.5 % quantiles 0.3 and 0.7 (P(X <= 5) = .0207, P(X <= 6) = .0577).
    assert (line["ci_low"], line["ci_high"]) == (0.3, 0.7)


def test_paired_rows_share_their_resamples(options):
    study = random_normalized(80, 9)
    table = paired_bootstrap(study, labels=ALPHA_BETA, **options)
    assert table["measure"].tolist() == [
        "exact_agreement",
        "exact_agreement",
        "exact_agreement_difference",
        "cohen_kappa",
        "cohen_kappa",
        "cohen_kappa_difference",
    ]
    assert table["pass"].tolist() == ["direct", "original", "original"] * 2
    assert len(set(table["n_used"])) == 1
    value = table["estimate"].to_numpy()
    assert value[2] == pytest.approx(value[1] - value[0])
    assert value[5] == pytest.approx(value[4] - value[3])
    whole = agreement_table(study, labels=ALPHA_BETA, **options)
    lines = whole[whole["measure"].str.contains("difference")].reset_index(drop=True)
    pd.testing.assert_frame_equal(lines, table.iloc[[2, 5]].reset_index(drop=True))
    both = paired_table(study, labels=ALPHA_BETA, **options)
    pd.testing.assert_frame_equal(both[~both["measure"].str.startswith("mcnemar")], table)


def test_paired_bootstrap_refuses_two_judges(options):
    study = pd.concat([random_normalized(9, 1), random_normalized(9, 1, judge="k")])
    with pytest.raises(ValueError, match="2 judges"):
        paired_bootstrap(study, labels=ALPHA_BETA, **options)
    with pytest.raises(ValueError, match="2 judges"):
        paired_contingency(study, labels=ALPHA_BETA)


def test_equal_strategies_give_a_point_and_say_so(options):
    study = make_normalized([A, B, T] * 9, [A, B, A] * 9, [A, B, A] * 9)
    line = pick(paired_bootstrap(study, labels=ALPHA_BETA, **options), "exact_agreement_difference", "original")
    assert (line["estimate"], line["ci_low"], line["ci_high"]) == (0, 0, 0)
    assert "no item separates the two" in line["note"]


def test_perfect_agreement_keeps_an_honest_interval(options):
    study = make_normalized([A, B, T] * 9, None, [A, B, T] * 9, [A, B, T] * 9)
    table = agreement_table(study, labels=ALPHA_BETA, **options)
    both = pick(table, "exact_agreement", "both")
    assert (both["ci_low"], both["ci_high"]) == pytest.approx(proportion_confint(27, 27, method="wilson"))
    assert both["method"] == "Wilson on the number of items"
    kappa = pick(table, "cohen_kappa", "original")
    assert kappa["estimate"] == 1
    assert np.isnan(kappa["ci_low"])
    assert "every resample gives the same value" in kappa["note"]


DEGENERATE = {
    "one item": make_normalized([A], [A], [A], [A]),
    "one label": make_normalized([A] * 5, [A] * 5, [A] * 5, [A] * 5),
    "ties only": make_normalized([T] * 5, [T] * 5, [T] * 5, [T] * 5),
    "all unusable": make_normalized([A, B, T], [None] * 3, [None] * 3, [None] * 3),
    "no reference": make_normalized([None] * 3, [A, B, T], [A, B, T], [B, A, T]),
    "no overlap": make_normalized([A, None, B, None], [None, A, None, B], [None, A, None, B], [None, A, None, B]),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_input_is_undefined_with_a_reason(name, options):
    study = DEGENERATE[name]
    for table in (
        agreement_table(study, labels=ALPHA_BETA, **options),
        paired_table(study, labels=ALPHA_BETA, **options),
        position_table(study, labels=ALPHA_BETA, **options),
    ):
        undefined = table[table["estimate"].isna()]
        assert undefined["note"].str.startswith("undefined: ").all()
        assert (table["ci_low"].isna() | (table["ci_low"] <= table["estimate"] + 1e-12)).all()
        assert table.loc[table["estimate"].notna() & table["ci_low"].isna(), "note"].str.contains("no interval").all()
    kappa = pick(agreement_table(study, labels=ALPHA_BETA, **options), "cohen_kappa", "direct")
    assert np.isnan(kappa["estimate"])


def test_empty_table_gives_no_rows(options):
    study = make_normalized([])
    assert len(agreement_table(study, labels=ALPHA_BETA, **options)) == 0
    assert len(paired_table(study, labels=ALPHA_BETA, **options)) == 0


def test_a_constant_judge_has_kappa_zero_and_a_note(options):
    study = make_normalized([A, B, A, B], [A] * 4)
    line = pick(agreement_table(study, labels=ALPHA_BETA, **options), "cohen_kappa", "direct")
    assert line["estimate"] == 0
    assert np.isnan(line["ci_low"])
    assert "one rater used one label only" in line["note"]


def test_every_kappa_warns_of_a_dominant_label_and_ac1_stands_beside_it(options):
    # 9 of 10 references are A. AC1 = (0.8 - pe) / (1 - pe): shares 0.8, 0.15, 0.05; pe = (0.16 + 0.1275 + 0.0475) / 2
    table = agreement_table(make_normalized([A] * 9 + [B], [A] * 7 + [B, T, B]), labels=ALPHA_BETA, **options)
    for measure in ("cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic"):
        note = pick(table, measure, "direct")["note"]
        assert "kappa is unstable: one label holds 90% of a rater's, see gwet_ac1" in note
    assert pick(table, "gwet_ac1", "direct")["estimate"] == pytest.approx((0.8 - 0.1675) / (1 - 0.1675), abs=1e-12)
    assert pick(table, "pabak", "direct")["estimate"] == pytest.approx((3 * 0.8 - 1) / 2, abs=1e-12)
    assert pick(table, "cohen_kappa_linear", "direct")["method"].startswith("linear weights over ALPHA, TIE, BETA")


@pytest.mark.parametrize("judged", [[A, B] * 5, [A, "GAMMA"] * 5])
def test_weighted_kappa_needs_two_systems_and_a_tie(judged, options):
    labels = ALPHA_BETA if B in judged else ("ALPHA", "BETA", "GAMMA", "TIE")
    table = agreement_table(make_normalized([A] * 5 + [B] * 5, judged), labels=labels, **options)
    assert not table["measure"].isin(["cohen_kappa_linear", "cohen_kappa_quadratic"]).any()
    assert table["measure"].eq("cohen_kappa").any()


def test_unknown_label_is_refused(options):
    study = make_normalized([A, "alpha "], [A, A])
    with pytest.raises(
        ValueError, match=r"1 of 2 labels are not allowed, first 'alpha '; allowed are ALPHA, BETA, TIE"
    ):
        agreement_table(study, labels=ALPHA_BETA, **options)


def test_confusion_counts(study):
    table = confusion_table(study, labels=ALPHA_BETA)
    direct = table[table["pass"] == "direct"].set_index(["human", "judged"])["count"]
    # items 1 2 3 4 5 8
    assert {key: n for key, n in direct.items() if n} == {(A, A): 2, (A, T): 1, (B, B): 1, (T, A): 1, (A, B): 1}
    assert len(direct) == 9
    aggregated = table[table["pass"] == "aggregated"].set_index(["human", "judged"])["count"]
    assert aggregated[(A, "ABSTAIN")] == 1
    assert aggregated.sum() == 6


def test_label_frequencies(study):
    table = label_frequencies(study, labels=ALPHA_BETA)
    human = table[table["source"] == "human"].set_index("label")
    assert human["count"].to_dict() == {A: 4, B: 2, T: 1}
    assert (human["denominator"] == 7).all()
    assert human.loc[A, "share"] == 4 / 7
    empty = label_frequencies(make_normalized([A], [None]), labels=ALPHA_BETA)
    assert empty.loc[empty["source"] == "direct", "share"].isna().all()


PUBLISHED = ["GPT-4", "PaLM2", "ChatGPT", "LLaMA2"]


@pytest.mark.data
@pytest.mark.parametrize("judge", PUBLISHED)
def test_llmbar_published_accuracy(judge, shared, options):
    study, published = llmbar_normalized(shared, judge)
    table = agreement_table(study, labels=("S1", "S2", "TIE"), **options)
    measure = "exact_agreement_unusable_as_wrong"
    for key, pass_ in (("correct_False", "original"), ("correct_True", "swapped")):
        line = pick(table, measure, pass_, judge=judge)
        assert published[key].startswith(f"{line['numerator']} / {line['denominator']} =")
    average = pick(table, measure, "both", judge=judge)["estimate"]
    assert f"{average:.1%}" == published["correct_average"]
    line = pick(table, "both_passes_correct_unusable_as_wrong", "both", judge=judge)
    assert published["correct_both"].startswith(f"{line['numerator']} / {line['denominator']} =")


@pytest.mark.data
def test_llmbar_published_direct_rating(shared, options):
    study, published = llmbar_normalized(shared, "GPT-4", "Rating")
    table = agreement_table(study, labels=("S1", "S2", "TIE"), **options)
    # 10 equal ratings: LLMBar names output 2 and then output 1 for them, so each counts one half in its average.
    half = pick(table, "exact_agreement_ties_as_half", "direct", judge="GPT-4")["estimate"]
    assert f"{half:.1%}" == published["correct_average"] == "92.0%"
    line = pick(table, "exact_agreement", "direct", judge="GPT-4")
    assert published["correct_both"].startswith(f"{line['numerator']} / {line['denominator']} =")


def run_reference(shared, study, folder):
    """The protocol's own script on the study; its printed lines."""
    columns = ["human", "direct", "pair_original", "pair_swapped", "original_first"]
    path = folder / "study.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["item_id", *columns])
        values = study[columns].astype(object)
        writer.writerows([i, *row] for i, row in enumerate(values.where(values.notna(), "").to_numpy()))
    script = [sys.executable, str(shared / "seeds/reference_analysis.py"), str(path)]
    return subprocess.run(script, capture_output=True, text=True, check=True).stdout


@pytest.mark.data
def test_the_protocols_own_script_prints_our_numbers(shared, tmp_path):
    # About 220 valid items: the difference moves in steps of 1/220, so that 0.01 is two steps of Monte Carlo noise.
    study = random_normalized(300, 10)
    printed = run_reference(shared, study, tmp_path)
    options = {"ci_level": 0.95, "resamples": 10_000, "seed": 240719}
    agreement = agreement_table(study, labels=ALPHA_BETA, **options)
    position = position_table(study, labels=ALPHA_BETA, **options)
    confusion = confusion_table(study, labels=ALPHA_BETA)
    for field, pass_ in (("direct", "direct"), ("pair_original", "original")):
        line = pick(agreement, "exact_agreement", pass_)
        counts = f"{line['numerator']} / {line['denominator']} = {line['estimate']:.4f}"
        assert f"{field} agreement {counts}\n" in printed
        kappa = pick(agreement, "cohen_kappa", pass_)["estimate"]
        assert f"{field} kappa {kappa:.4f}\n" in printed
        table = confusion[confusion["pass"] == pass_].pivot_table(
            index="human", columns="judged", values="count", sort=False
        )
        matrix = "\n".join(f"{h} {[int(n) for n in table.loc[h, list(ALPHA_BETA)]]}" for h in ALPHA_BETA)
        assert f"{field} confusion\n{matrix}\n" in printed
    for text, measure, pass_ in (
        ("swap consistency", "swap_consistency", "both"),
        ("original first-position selections", "first_position_rate", "original"),
    ):
        line = pick(position, measure, pass_)
        assert f"{text} {line['numerator']} / {line['denominator']} = {line['estimate']:.4f}\n" in printed
    low, high = map(float, re.search(r"interval \[(\S+), (\S+)\]", printed).groups())
    difference = pick(agreement, "exact_agreement_difference", "original")
    assert difference["ci_low"] == pytest.approx(low, abs=0.01)
    assert difference["ci_high"] == pytest.approx(high, abs=0.01)
