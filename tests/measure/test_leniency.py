"""Acceptance against people's, top scores, and how much of the scale a judge uses."""

from __future__ import annotations

import asyncio
import json
import math
import statistics

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from judgelab.judging.evidence import verdicts
from judgelab.judging.runner import run_passes
from judgelab.measure.classification import acceptance_table
from judgelab.measure.length import length_table
from judgelab.measure.leniency import criteria_of, leniency_table
from judgelab.measure.preferences import normalize
from judgelab.measure.scores import score_table
from judgelab.study.freeze import freeze
from judgelab.study.protocol import load_params
from judgelab.study.sources.llmbar import import_llmbar

from .conftest import ALPHA_BETA, make_normalized, pick

A, B, T = ALPHA_BETA
SCALE = {"minimum": 1, "maximum": 5}
QUICK = {"ci_level": 0.95, "resamples": 5, "seed": 1, "acceptance_threshold": 4, **SCALE}
RATE_OF = {"true_positive_rate": True, "true_negative_rate": False}
RATES = tuple(RATE_OF)
TOTALS = (*RATES, "top_score_rate", "human_top_score_rate", "score_compression", "score_range_used", "mean_score_gap")
BY_CRITERION = (*RATES, "top_score_rate", "mean_score", "sd_score", "score_compression")


def scored(human_x, human_y, total_x, total_y, human=None, **options):
    """A judge's direct pass with the scores of both answers."""
    table = make_normalized(human or [None] * len(total_x), [T] * len(total_x), **options)
    return table.assign(human_score_x=human_x, human_score_y=human_y, total_x=total_x, total_y=total_y)


def random_study(n, seed, *, people=True):
    """Random totals in halves and, from people, means of whole numbers; a tenth of either is missing."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(2, 11, n) / 2 for _ in range(4)]
    for column in columns:
        column[rng.random(n) < 0.1] = np.nan
    if not people:
        columns[:2] = [np.full(n, np.nan)] * 2
    human = rng.choice(np.array([A, B, T, None], dtype=object), n)
    return scored(*columns, human=list(human))


def the_answers(table):
    """Naive: item, system, people's score, judge's total, and what people prefer in the answer's pair."""
    for row in table.to_dict("records"):
        for side in "xy":
            yield row["item_id"], row[f"system_{side}"], row[f"human_score_{side}"], row[f"total_{side}"], row["human"]


def criterion_table(table, name="clarity"):
    """A criterion whose scores are the totals."""
    rows = [("j", item, system, name, total) for item, system, _, total, _ in the_answers(table) if total == total]
    return pd.DataFrame(rows, columns=["judge", "item_id", "system", "criterion", "score"])


@pytest.fixture
def small():
    # people accept 5 4 4, of which the judge accepts two; they reject 3 1 2, of which it rejects 1 and has no 2
    return scored([5, 4, 4], [3, 1, 2], [5, 4, 3], [4, 2, np.nan])


def test_by_hand(small, options):
    table = leniency_table(small, acceptance_threshold=4, **SCALE, **options)
    assert table["measure"].tolist() == list(TOTALS)
    assert set(table["pass"]) == set(table["strategy"]) == {"direct"}
    rows = [pick(table, name, "direct", "accept>=4") for name in RATES]
    assert [(row["numerator"], row["denominator"]) for row in rows] == [(2, 3), (1, 2)]
    assert rows[0]["method"] == "judge accepts from 4; people too; Wilson"
    assert rows[0]["note"] == "over 5 answers; 1 of 6 answers left out: 1 without both scores"
    rows = [pick(table, name, "direct") for name in ("top_score_rate", "human_top_score_rate")]
    assert [(row["numerator"], row["denominator"]) for row in rows] == [(1, 5), (1, 5)]
    # judge 5 4 3 4 2, variance 1.04 with n; people 5 4 4 3 1, mean 3.4, squares 67 / 5 - 11.56 = 1.84
    assert pick(table, "score_compression", "direct")["estimate"] == pytest.approx(math.sqrt(1.04 / 1.84))
    used = pick(table, "score_range_used", "direct")
    assert (used["estimate"], used["method"][:11]) == ((5 - 2) / 4, "from 2 to 5")
    assert pick(table, "mean_score_gap", "direct")["estimate"] == pytest.approx(18 / 5 - 17 / 5)


def test_a_judge_that_agrees_with_everything(options):
    """The published pattern: nearly all good answers accepted, and nearly all bad ones too."""
    study = scored([5] * 20, [1] * 20, [5] * 19 + [3], [4] * 18 + [2] * 2)
    table = leniency_table(study, acceptance_threshold=4, **SCALE, **options)
    rows = [pick(table, name, "direct", "accept>=4") for name in RATES]
    assert [row["numerator"] / row["denominator"] for row in rows] == [19 / 20, 2 / 20]
    for row in rows:  # an item has one good and one bad answer: Wilson's interval
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(
            proportion_confint(row["numerator"], 20, method="wilson")
        )


def test_by_preference(options):
    study = scored(np.nan, np.nan, [5, 4, 5, 5], [3, 2, 5, 1], human=[A, B, T, None])  # good: 5 2, bad: 3 4
    table = leniency_table(study, acceptance_threshold=4, **SCALE, **options)
    rows = [pick(table, name, "direct", "accept>=4, by preference") for name in RATES]
    assert [(row["numerator"], row["denominator"]) for row in rows] == [(1, 2), (1, 2)]
    assert "the answer that they prefer in all its pairs" in rows[0]["method"]
    assert rows[0]["note"] == ("over 4 answers; 4 of 8 answers left out: 4 without a human preference or a score")
    for name in ("human_top_score_rate", "score_compression", "mean_score_gap"):
        assert pick(table, name, "direct")["note"].startswith("undefined: ")
    study.loc[0, "human_score_x"] = 5  # one human score, and preferences are left aside
    table = leniency_table(study, acceptance_threshold=4, **SCALE, **options)
    assert pick(table, "true_positive_rate", "direct", "accept>=4")["denominator"] == 1


def three_systems(preferences, totals):
    """One item with the pairs of P, Q and R, in this order: PQ, PR, QR."""
    pairs = [("P", "Q"), ("P", "R"), ("Q", "R")]
    table = make_normalized(preferences, [T] * 3, items=["i"] * 3)
    table["system_x"], table["system_y"] = zip(*pairs, strict=True)
    table["original_first"] = table["system_x"]
    table["total_x"], table["total_y"] = ([totals[pair[k]] for pair in pairs] for k in (0, 1))
    return table


@pytest.mark.parametrize(
    ("preferences", "accepted", "rejected"),
    [
        (["P", "P", "Q"], "P", "R"),  # Q has some of each
        (["P", "P", T], "P", ""),  # Q and R have a tie
        (["P", None, "Q"], "P", "R"),  # a pair without a label says nothing
        (["P", "R", "Q"], "", ""),  # a circle
        ([T, T, T], "", ""),
        (["P", None, None], "P", "Q"),
    ],
)
def test_an_answer_in_several_pairs(preferences, accepted, rejected, options):
    table = three_systems(preferences, {"P": 5, "Q": 3, "R": 2})
    rows = leniency_table(table, acceptance_threshold=4, **SCALE, **options)
    counts = [pick(rows, name, "direct", "accept>=4, by preference")["denominator"] for name in RATES]
    assert counts == [len(accepted), len(rejected)]
    assert pick(rows, "top_score_rate", "direct")["denominator"] == 3  # an answer counts once


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.booleans())
def test_naive_twin(seed, people):
    study = random_study(25, seed, people=people)
    table = leniency_table(study, criteria=criterion_table(study), **QUICK)
    slice_ = "accept>=4" if people else "accept>=4, by preference"
    hits: dict[bool, list[bool]] = {True: [], False: []}
    top, both = [], []
    for _, system, human, total, preferred in the_answers(study):
        if total != total:
            continue
        top.append(total == 5)
        if human == human:
            both.append((human, total))
        if people and human == human:
            hits[human >= 4].append((total >= 4) == (human >= 4))
        if not people and preferred in (A, B):
            hits[preferred == system].append((total >= 4) == (preferred == system))
    expected = {(where, name): hits[yes] for where in (slice_, "criterion=clarity") for name, yes in RATE_OF.items()}
    expected |= {(where, "top_score_rate"): top for where in ("all", "criterion=clarity")}
    expected["all", "human_top_score_rate"] = [human == 5 for human, _ in both]
    for (where, name), found in expected.items():
        row = pick(table, name, "direct", where)
        assert (row["numerator"], row["denominator"]) == (sum(found), len(found))
    given = [total for _, _, _, total, _ in the_answers(study) if total == total]
    assert pick(table, "score_range_used", "direct")["estimate"] == (max(given) - min(given)) / 4
    assert pick(table, "sd_score", "direct", "criterion=clarity")["estimate"] == pytest.approx(statistics.stdev(given))
    if people:
        ratio = statistics.stdev(total for _, total in both) / statistics.stdev(human for human, _ in both)
        for where in ("all", "criterion=clarity"):
            assert pick(table, "score_compression", "direct", where)["estimate"] == pytest.approx(ratio)
        gap = statistics.mean(total - human for human, total in both)
        assert pick(table, "mean_score_gap", "direct")["estimate"] == pytest.approx(gap, abs=1e-12)


def test_it_agrees_with_the_tables_that_say_the_same(options):
    study = random_study(60, 3)
    table = leniency_table(study, acceptance_threshold=3.5, **SCALE, **options)
    acceptance, scores = acceptance_table(study, threshold=3.5, **options), score_table(study, **options)
    columns = ["estimate", "ci_low", "ci_high", "numerator", "denominator", "n_used", "n_excluded", "note"]
    for name in RATES:
        ours, theirs = (pick(each, name, "direct", "accept>=3.5")[columns] for each in (table, acceptance))
        pd.testing.assert_series_equal(ours, theirs, check_names=False)
    ours, theirs = pick(table, "mean_score_gap", "direct"), pick(scores, "mean_difference", "direct")
    assert ours["estimate"] == pytest.approx(theirs["estimate"])


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.booleans())
def test_names_sides_and_order_do_not_matter(seed, people):
    study = random_study(20, seed, people=people)
    rows = leniency_table(study, criteria=criterion_table(study), **QUICK)
    renamed = study.replace({A: "P", B: "Q"})
    sides = {f"{name}_{a}": f"{name}_{b}" for name in ("system", "total", "human_score") for a, b in ("xy", "yx")}
    for other in (renamed, study.rename(columns=sides), study.sample(frac=1, random_state=seed)):
        found = leniency_table(other, criteria=criterion_table(other), **QUICK)
        pd.testing.assert_frame_equal(
            found.drop(columns=["ci_low", "ci_high"]), rows.drop(columns=["ci_low", "ci_high"])
        )


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_compression_is_that_of_the_spread_alone(seed):
    """Half the judge's spread and a shift: half the compression; a copy of people: 1."""
    study = random_study(25, seed)
    value = pick(leniency_table(study, **QUICK), "score_compression", "direct")["estimate"]
    half = study.assign(total_x=study["total_x"] / 2 + 1, total_y=study["total_y"] / 2 + 1)
    assert pick(leniency_table(half, **QUICK), "score_compression", "direct")["estimate"] == pytest.approx(value / 2)
    copy = study.assign(total_x=study["human_score_x"], total_y=study["human_score_y"])
    row = pick(leniency_table(copy, **QUICK), "score_compression", "direct")
    assert (row["estimate"], row["ci_low"]) == (pytest.approx(1), pytest.approx(np.nan, nan_ok=True))


def test_the_interval_of_the_compression_is_a_bootstrap_over_items():
    study = random_study(60, 8)
    row = pick(leniency_table(study, **{**QUICK, "resamples": 2000}), "score_compression", "direct")
    rng, n = np.random.default_rng(1), len(study)
    values = []
    for _ in range(2000):
        drawn = study.iloc[rng.integers(0, n, n)]
        human, judge = (drawn[[f"{name}_x", f"{name}_y"]].to_numpy().ravel() for name in ("human_score", "total"))
        known = ~np.isnan(human + judge)
        values.append(judge[known].std() / human[known].std())
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=0.02)


def test_criteria_are_judged_against_the_overall_score(small, options):
    columns = ["judge", "item_id", "system", "score"]
    rows = [("j", 0, A, 5), ("j", 0, B, 5), ("j", 1, A, 4), ("j", 2, B, 2)]
    rows += [("j", 99, A, 1), ("other", 0, A, 1)]  # not in the study
    criteria = pd.DataFrame(rows, columns=columns).assign(criterion="clarity")
    table = leniency_table(small, acceptance_threshold=4, criteria=criteria, **SCALE, **options)
    mine = table[table["slice"] == "criterion=clarity"]
    assert mine["measure"].tolist() == list(BY_CRITERION)
    found = mine.set_index("measure")
    # people 5 3 4 2: accepted 5 and 4, both from the judge; rejected 3 (judge 5) and 2 (judge 2)
    assert found.loc[list(RATES), "estimate"].tolist() == [1, 0.5]
    assert (found.loc["top_score_rate", "numerator"], found.loc["top_score_rate", "denominator"]) == (2, 4)
    assert found.loc["mean_score", "estimate"] == 4
    assert found.loc["sd_score", "estimate"] == pytest.approx(math.sqrt(6 / 3))
    assert found.loc["score_compression", "estimate"] == pytest.approx(math.sqrt(6 / 5))
    assert found.loc["mean_score", "note"].endswith("over 4 answers; 2 of 6 answers left out: 2 without a score")


def test_without_a_threshold(small, options):
    table = leniency_table(small, acceptance_threshold=None, criteria=criterion_table(small), **SCALE, **options)
    for name in RATES:
        assert pick(table, name, "direct", "accept")["note"] == "undefined: the protocol names no acceptance threshold"
    assert table.loc[table["slice"] == "criterion=clarity", "measure"].tolist() == list(BY_CRITERION[2:])


def test_hardly_any_answer(options):
    options |= {"acceptance_threshold": 4, **SCALE}
    nothing = make_normalized([A], None, [A])
    assert leniency_table(nothing, **options).empty
    assert leniency_table(nothing.head(0), **options).empty
    silent = leniency_table(scored([4.0], [4.0], [np.nan], [np.nan]), **options)
    assert silent["estimate"].isna().all()
    assert silent["note"].str.startswith("undefined: ").all()
    single = leniency_table(scored([4.0], [np.nan], [4.0], [np.nan]), **options)
    values = [pick(single, name, "direct")["estimate"] for name in TOTALS[2:]]
    assert values == pytest.approx([0, 0, np.nan, np.nan, 0], nan_ok=True)


def test_no_variation(options):
    options |= {"acceptance_threshold": 4, **SCALE}
    people = leniency_table(scored([4.1] * 3, [4.1] * 3, [1, 2, 3], [4, 5, 3]), **options)
    note = pick(people, "score_compression", "direct")["note"]
    assert note == "undefined: people's scores do not vary; over 6 answers"
    assert pick(people, "true_negative_rate", "direct", "accept>=4")["note"].startswith("undefined: ")
    judge = leniency_table(scored([1, 2, 3], [4, 5, 3], [4.1] * 3, [4.1] * 3), **options)
    row = pick(judge, "score_compression", "direct")
    assert (row["estimate"], "every resample gives the same value" in row["note"]) == (0, True)
    assert pick(judge, "score_range_used", "direct")["estimate"] == 0


@pytest.mark.parametrize(
    ("changed", "options_", "told"),
    [
        ({"total_x": 5.5}, {}, "totals: 3 of 6 scores are outside 1 to 5, first 5.5"),
        ({"human_score_x": np.inf}, {}, "3 human scores are infinite"),
        ({}, {"acceptance_threshold": np.nan}, "acceptance_threshold is nan"),
        ({}, {"maximum": 1}, "the scale is 1 to 1"),
        ({"human_score_x": np.nan, "human_score_y": np.nan, "human": "C"}, {}, "neither of the pair, first 'C'"),
    ],
)
def test_refused(small, changed, options_, told):
    with pytest.raises(ValueError, match=told):
        leniency_table(small.assign(**changed), **{**QUICK, **options_})


def test_refused_criteria(small):
    criteria = criterion_table(small)
    with pytest.raises(ValueError, match="two scores of one criterion"):
        leniency_table(small, criteria=pd.concat([criteria, criteria.head(1)]), **QUICK)
    with pytest.raises(ValueError, match="criteria, judge j, criterion=clarity: 5 of 6 scores are outside 1 to 5"):
        leniency_table(small, criteria=criteria.assign(score=9), **QUICK)


def test_criteria_of():
    common = {"judge": "j", "item_id": "i", "strategy": "direct", "status": "verdict"}
    calls = pd.DataFrame([
        {**common, "system": A, "score_truth": 4, "score_style": 2.5, "total": 3},
        {**common, "system": B, "score_truth": 5, "score_style": None},
        {**common, "system": A, "item_id": "k", "status": "failed", "score_truth": 1},
        {**common, "system": A, "item_id": "l", "strategy": "pairwise", "score_truth": 1},
    ])  # fmt: skip
    assert criteria_of(calls).to_dict("list") == {
        "judge": ["j"] * 3, "item_id": ["i"] * 3, "system": [A, B, A],
        "criterion": ["truth", "truth", "style"], "score": [4, 5, 2.5],
    }  # fmt: skip
    for empty in (criteria_of(calls.drop(columns=["score_truth", "score_style"])), criteria_of(calls.head(0))):
        assert list(empty) == ["judge", "item_id", "system", "criterion", "score"]
        assert empty.empty


@pytest.mark.data
def test_gpt_4_on_llmbar(shared, tmp_path, monkeypatch, options):
    """The verdicts of the imported study against a plain loop over LLMBar's own files."""
    monkeypatch.setenv("JUDGELAB_OUTPUTS", str(tmp_path))
    params, _ = import_llmbar(shared / "data/llmbar_natural", "llmbar-natural")
    run = freeze(*load_params(params))
    asyncio.run(run_passes(run, run.study.passes))
    calls = verdicts(run)
    study = normalize(calls, run.reference(), run.comparisons(), margin=run.study.direct_tie_margin)
    study, criteria = study[study["judge"] == "gpt-4"], criteria_of(calls)
    table = leniency_table(study, acceptance_threshold=5, minimum=0, maximum=9, criteria=criteria, **options)

    folder = shared / "data/llmbar_natural/LLMBar/Natural/evaluators/GPT-4"
    (rating,) = folder.glob("Rating*/result.json")
    good, bad = [], []
    for record in json.loads(rating.read_text(encoding="utf-8")):
        for place in (1, 2):
            accepted = int(record["results"][-1][f"score_{place}"][0]) >= 5
            (good if record["label"] == place else bad).append(accepted)
    for where in ("accept>=5, by preference", "criterion=overall"):
        rows = [pick(table, name, "direct", where, "gpt-4") for name in RATES]
        assert [(row["numerator"], row["denominator"]) for row in rows] == [(sum(good), 100), (100 - sum(bad), 100)]
        assert [row["estimate"] for row in rows] == [0.96, 0.56]
    lengths = length_table(study, labels=run.study.labels, **options)
    row = pick(lengths, "shorter_human_longer_judge", "original", judge="gpt-4")
    assert (row["numerator"], row["denominator"]) == (6, 42)  # as in the plain loop of test_length
