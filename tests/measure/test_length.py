"""Agreement by length, errors towards the longer and shorter answer, and the cases to read."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from judgelab.measure.bias import bias_table
from judgelab.measure.length import length_cases, length_table

from .conftest import ALPHA_BETA, llmbar_normalized, make_normalized, pick, random_normalized

A, B, T = ALPHA_BETA
QUICK = {"ci_level": 0.95, "resamples": 5, "seed": 1}
ERRORS = ("shorter_human_longer_judge", "longer_human_shorter_judge")
PASSES = ("direct", "original", "swapped", "both", "aggregated")


def with_words(table, x, y):
    return table.assign(words_x=x, words_y=y)


def random_study(n, seed):
    """Random verdicts; lengths of 0 to 8 words, some missing."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 9, (2, n)).astype(float)
    x[rng.random(n) < 0.1] = np.nan
    return with_words(random_normalized(n, seed), x, y)


@pytest.fixture
def small():
    #        similar: 12/10 and 10/8 (= 1.25)  different            unknown  equal
    human = [A, A, B, A, B, A, B, T, A, A]
    judged = [A, B, B, B, A, B, B, A, A, A]
    words_x = [12, 10, 8, 10, 30, 30, 10, 30, np.nan, 7]
    words_y = [10, 8, 10, 30, 10, 10, 30, 10, 10, 7]
    return with_words(make_normalized(human, None, judged), words_x, words_y)


def test_by_hand(small, options):
    table = length_table(small, labels=ALPHA_BETA, **options)
    agreement = {
        name: pick(table, "exact_agreement", "original", f"length={name}")
        for name in ("similar", "different", "unknown")
    }
    # similar: items 0 1 2 9, wrong on 1; different: 3 to 7, right on 6; unknown: 8
    counts = {name: (row["numerator"], row["denominator"]) for name, row in agreement.items()}
    assert counts == {"similar": (3, 4), "different": (1, 5), "unknown": (1, 1)}
    gap = pick(table, "exact_agreement_gap", "original", "length=similar")
    assert gap["estimate"] == pytest.approx(3 / 4 - 1 / 5)
    assert gap["method"].startswith("similar minus different, 3/4 and 1/5")
    assert (gap["n_used"], gap["n_excluded"]) == (9, 1)
    assert gap["note"] == "1 of 10 judgments left out: 1 of unknown length"
    # longer: 0 A, 1 A, 2 B, 3 B, 4 A, 5 A, 6 B; people take the shorter on 3 4, the judge then the longer on both;
    # people take the longer on 0 1 2 5 6, the judge then the shorter on 1 5
    rows = [pick(table, name, "original") for name in ERRORS]
    assert [(row["numerator"], row["denominator"]) for row in rows] == [(2, 2), (2, 5)]
    assert rows[0]["note"] == (
        "8 of 10 judgments left out: 1 without two preferences, 2 equally long or of unknown length, "
        "5 where people prefer the longer"
    )


def test_second_library(options):
    rng = np.random.default_rng(5)
    human, judged = rng.choice([A, B], (2, 200))
    x, y = rng.integers(10, 40, (2, 200))
    table = length_table(with_words(make_normalized(human, judged), x, y), labels=ALPHA_BETA, similar=1.5, **options)
    near = np.maximum(x, y) / np.minimum(x, y) <= 1.5
    right = human == judged
    counts = (right & near).sum(), near.sum(), (right & ~near).sum(), (~near).sum()
    row = pick(table, "exact_agreement_gap", "direct", "length=similar")
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(confint_proportions_2indep(*counts, method="newcomb"))
    row = pick(table, "exact_agreement", "direct", "length=different")
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(proportion_confint(*counts[2:], method="wilson"))


def judgments(table, pass_):
    """Naive: human, judged, words of human's choice and of the other, ratio; for every judgment of a pass."""
    for row in table.to_dict("records"):
        x, y = row["pair_original"], row["pair_swapped"]
        if pass_ == "aggregated":
            given = [x if x == y else None]
        else:
            given = {"direct": [row["direct"]], "original": [x], "swapped": [y], "both": [x, y]}[pass_]
        words = {row["system_x"]: row["words_x"], row["system_y"]: row["words_y"]}
        few, many = sorted(words.values())
        ratio = math.nan if math.isnan(sum(words.values())) else 1.0 if many == 0 else many / few if few else math.inf
        yield from ((row["human"], judged, words, ratio) for judged in given)


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_naive_twin(seed):
    study = random_study(40, seed)
    table = length_table(study, labels=ALPHA_BETA, **QUICK)
    for pass_ in PASSES:
        agreed: dict[str, list[bool]] = {"similar": [], "different": [], "unknown": []}
        errors: dict[str, list[bool]] = {name: [] for name in ERRORS}
        for human, judged, words, ratio in judgments(study, pass_):
            if pd.isna(human) or pd.isna(judged):
                continue
            name = "unknown" if math.isnan(ratio) else "similar" if ratio <= 1.25 else "different"
            agreed[name].append(human == judged)
            if T in (human, judged) or not ratio > 1:
                continue
            longer = max(words, key=lambda system: words[system])
            errors[ERRORS[human == longer]].append(human != judged)
        for name, found in agreed.items():
            if found or name != "unknown":
                row = pick(table, "exact_agreement", pass_, f"length={name}")
                assert (row["numerator"], row["denominator"]) == (sum(found), len(found))
        for name, found in errors.items():
            row = pick(table, name, pass_)
            assert (row["numerator"], row["denominator"]) == (sum(found), len(found))
        if agreed["similar"] and agreed["different"]:
            row = pick(table, "exact_agreement_gap", pass_, "length=similar")
            assert row["estimate"] == pytest.approx(np.mean(agreed["similar"]) - np.mean(agreed["different"]))


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_names_sides_and_order_do_not_matter(seed):
    study = random_study(40, seed)
    rows = length_table(study, labels=ALPHA_BETA, **QUICK)
    renamed = length_table(study.replace({A: "P", B: "Q"}), labels=("P", "Q", T), **QUICK)
    names = {"system_x": "system_y", "system_y": "system_x", "words_x": "words_y", "words_y": "words_x"}
    turned = study.rename(columns=names)
    pd.testing.assert_frame_equal(renamed, rows)
    pd.testing.assert_frame_equal(length_table(turned, labels=ALPHA_BETA, **QUICK), rows)
    mixed = study.sample(frac=1, random_state=seed)
    pd.testing.assert_frame_equal(length_table(mixed, labels=ALPHA_BETA, **QUICK), rows)
    pd.testing.assert_frame_equal(length_cases(mixed), length_cases(study))
    assert length_cases(turned)["item_id"].tolist() == length_cases(study)["item_id"].tolist()


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_their_difference_is_the_error_gap(seed):
    study = random_study(60, seed)
    table, bias = (each(study, labels=ALPHA_BETA, **QUICK) for each in (length_table, bias_table))
    for pass_ in PASSES:
        one, other = (pick(table, name, pass_)["estimate"] for name in ERRORS)
        assert pick(bias, "length_error_gap", pass_)["estimate"] == pytest.approx(one - other, nan_ok=True)


def test_items_with_several_pairs_are_resampled_whole(options):
    """Each item three times: the interval is that of the items, not of three times as many."""
    rng = np.random.default_rng(7)
    human, judged = rng.choice([A, B], (2, 60))
    x = np.where(rng.random(60) < 0.5, 10, 30)
    once = with_words(make_normalized(human, None, judged), x, 10)
    options = {**options, "resamples": 2000}
    single = length_table(once, labels=ALPHA_BETA, **options)
    thrice = length_table(pd.concat([once] * 3, ignore_index=True), labels=ALPHA_BETA, **options)
    one, many = (pick(each, "exact_agreement_gap", "original", "length=similar") for each in (single, thrice))
    assert many["estimate"] == pytest.approx(one["estimate"])
    assert (many["n_used"], one["n_used"]) == (60, 60)
    assert "bootstrap over items" in many["method"]
    assert many["ci_high"] - many["ci_low"] == pytest.approx(one["ci_high"] - one["ci_low"], rel=0.15)


def test_a_judge_of_length():
    """It takes the longer answer whatever people say."""
    human = [A, B, A, B]
    study = with_words(make_normalized(human, None, [A] * 4, [A] * 4), 30, 10)
    table = length_table(study, labels=ALPHA_BETA, **QUICK)
    assert [pick(table, name, "aggregated")["estimate"] for name in ERRORS] == [1, 0]
    assert length_cases(study)["item_id"].tolist() == [1, 3]


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_item(n, options):
    study = make_normalized([A, B][:n], None, [A, B][:n])
    table = length_table(study, labels=ALPHA_BETA, **options)
    assert len(table) == 5 * n
    assert length_cases(study).empty
    if n:
        assert pick(table, "exact_agreement", "original", "length=different")["denominator"] == 1
        gap = pick(table, "exact_agreement_gap", "original", "length=similar")
        assert gap["note"] == "undefined: no judgment of similar length"


def test_nothing_known(options):
    study = with_words(make_normalized([A, None, B], None, [None, A, None]), np.nan, np.nan)
    table = length_table(study, labels=ALPHA_BETA, **options)
    assert table["estimate"].isna().all()
    assert table["note"].str.startswith("undefined: ").all()
    assert set(table["slice"]) == {"length=similar", "length=different", "length=unknown", "all"}


@pytest.mark.parametrize(
    ("similar", "words", "told"),
    [(0.9, 1, "similar is 0.9"), (np.inf, 1, "similar is inf"), (2, -1, "words_x: 2 of 2 lengths are not allowed")],
)
def test_refused(similar, words, told, options):
    study = with_words(make_normalized([A, B], [A, B]), words, 1)
    with pytest.raises(ValueError, match=told):
        length_table(study, labels=ALPHA_BETA, similar=similar, **options)


def test_the_edge_counts_as_similar(options):
    study = with_words(make_normalized([A] * 4, [A] * 4), [11, 0, 0, 12], [10, 0, 1, 10])
    table = length_table(study, labels=ALPHA_BETA, similar=1.1, **options)
    near, far = (pick(table, "exact_agreement", "direct", f"length={name}") for name in ("similar", "different"))
    assert (near["denominator"], far["denominator"]) == (2, 2)


def test_cases():
    human = [A, B, A, A, T, A, B, None]
    original = [B, B, A, B, B, T, A, B]
    swapped = [B, A, B, B, B, A, None, B]
    words_x, words_y = [10, 30, 10, 0, 10, 10, 15, 10], [20, 10, 40, 5, 20, 20, 10, 20]
    direct = [T, A, A, B, B, B, B, B]
    study = with_words(make_normalized(human, direct, original, swapped, judge="j2"), words_x, words_y)
    both = pd.concat([study, study.head(1).assign(judge="j1")], ignore_index=True)
    cases = length_cases(both)
    # an empty shorter answer (3), 40/10 (2), 30/10 (1), 20/10 of j1 and j2 (0), 15/10 (6); 4 and 7 have no preference
    # of people, in 5 the judge never takes the longer one
    assert cases[["judge", "item_id"]].to_numpy().tolist() == [
        ["j2", 3], ["j2", 2], ["j2", 1], ["j1", 0], ["j2", 0], ["j2", 6],
    ]  # fmt: skip
    assert list(cases) == [
        *("judge", "item_id", "category", "system_x", "system_y", "words_x", "words_y", "human"),
        *("pair_original", "pair_swapped", "direct"),
    ]
    assert cases.loc[2, ["human", "pair_original", "pair_swapped", "direct"]].tolist() == [B, B, A, A]


@pytest.mark.data
def test_gpt_4_on_llmbar(shared, options):
    """Against a plain loop over LLMBar's own files."""
    folder = shared / "data/llmbar_natural/LLMBar/Natural/evaluators/GPT-4/Vanilla_NoRules"
    records = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    words = [[len(record[f"output_{k}"].split()) for k in (1, 2)] for record in records]
    study = llmbar_normalized(shared, "GPT-4")[0].assign(
        words_x=[pair[0] for pair in words], words_y=[pair[1] for pair in words]
    )
    table = length_table(study, labels=("S1", "S2", T), **options)
    for pass_, swap in (("original", "False"), ("swapped", "True")):
        near, far, short, long, cases = [], [], [], [], []
        for record, (one, two) in zip(records, words, strict=True):
            winner = int(record["results"][-1][f"swap = {swap}"]["winner"])
            right = winner == record["label"]
            (near if max(one, two) <= 1.25 * min(one, two) else far).append(right)
            if one != two:
                (long if record["label"] == (1 if one > two else 2) else short).append(not right)
                cases.append(not right and record["label"] == (1 if one < two else 2))
        for name, found in (("similar", near), ("different", far)):
            row = pick(table, "exact_agreement", pass_, f"length={name}", "GPT-4")
            assert (row["numerator"], row["denominator"]) == (sum(found), len(found))
        for name, found in zip(ERRORS, (short, long), strict=True):
            row = pick(table, name, pass_, judge="GPT-4")
            assert (row["numerator"], row["denominator"]) == (sum(found), len(found))
        assert (sum(short), len(short)) == {"original": (6, 42), "swapped": (4, 42)}[pass_]
    assert len(length_cases(study)) == 6
