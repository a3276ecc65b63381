"""Scores: rank correlations against scipy, differences by hand."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from judgelab.measure.association import Points, association_rows
from judgelab.measure.estimates import Place, Settings
from judgelab.measure.scores import score_table

from .conftest import make_normalized, pick

scores = st.integers(1, 5).map(float)


@given(st.lists(st.tuples(scores, scores), min_size=3, max_size=25), st.integers(0, 2**32))
def test_resampled_correlations_equal_scipy_on_the_drawn_answers(pairs, seed):
    first, second = np.array(pairs).T
    assume(np.ptp(first) and np.ptp(second))
    points = Points(np.arange(len(first)), first, second)
    rng = np.random.default_rng(seed)
    for drawn in (np.arange(len(first)), rng.integers(0, len(first), len(first))):
        weights = np.bincount(drawn, minlength=len(first)).astype(float)[np.newaxis, :]
        totals = np.asarray(weights @ points.table.rows)
        constant = np.ptp(first[drawn]) == 0 or np.ptp(second[drawn]) == 0
        for ours, theirs in ((points.spearman, spearmanr), (points.kendall, kendalltau)):
            got = ours(totals)[0, 0]
            expected = np.nan if constant else theirs(first[drawn], second[drawn]).statistic
            assert got == pytest.approx(expected, nan_ok=True, abs=1e-9)


def scored(human_x, human_y, total_x, total_y):
    study = make_normalized(["ALPHA"] * len(human_x), ["ALPHA"] * len(human_x))
    return study.assign(human_score_x=human_x, human_score_y=human_y, total_x=total_x, total_y=total_y)


def test_by_hand(options):
    study = scored([4.0, 3.0, 5.0], [2.0, 1.0, np.nan], [5.0, 3.0, 4.0], [3.0, 2.0, 4.0])
    table = score_table(study, **options)
    # Answers with both scores, judge - human: +1 0 -1 +1 +1; human 4 3 5 2 1, judge 5 3 4 3 2.
    assert pick(table, "mean_difference", "direct")["estimate"] == pytest.approx(2 / 5)
    assert pick(table, "mean_absolute_difference", "direct")["estimate"] == pytest.approx(4 / 5)
    # Of 10 pairs of answers one is discordant (4,5)-(5,4), one tied in judge (3,3)-(2,3): (8 - 1) / sqrt(10 * 9).
    assert pick(table, "kendall", "direct")["estimate"] == pytest.approx(7 / np.sqrt(90))
    line = pick(table, "spearman", "direct")
    assert line["estimate"] == pytest.approx(spearmanr([4, 3, 5, 2, 1], [5, 3, 4, 3, 2]).statistic)
    assert (line["n_used"], line["n_excluded"]) == (3, 0)
    assert line["note"].endswith("over 5 answers; 1 of 6 answers left out: 1 without both scores")
    assert pick(table, "mean_score", "direct", "system=ALPHA")["estimate"] == 4
    assert pick(table, "sd_score", "direct", "system=BETA")["estimate"] == 1


def test_intervals_hold_the_estimate_and_do_not_depend_on_units(options):
    rng = np.random.default_rng(1)
    human = rng.integers(1, 6, (2, 40)).astype(float)
    judge = np.clip(human + rng.integers(-1, 2, (2, 40)), 1, 5)
    one = score_table(scored(*human, *judge), **options)
    two = score_table(scored(*(10 * human), *(10 * judge)), **options)
    for measure in ("spearman", "kendall"):
        a, b = (pick(table, measure, "direct") for table in (one, two))
        assert a["ci_low"] < a["estimate"] < a["ci_high"]
        assert a["ci_low"] == pytest.approx(b["ci_low"])
    a, b = (pick(table, "mean_absolute_difference", "direct") for table in (one, two))
    assert 10 * a["ci_high"] == pytest.approx(b["ci_high"])


def test_an_answer_compared_several_times_is_one_point(options):
    study = scored([4.0, 3.0, 5.0], [2.0, 1.0, 2.0], [5.0, 3.0, 4.0], [3.0, 2.0, 4.0])
    again = study.assign(system_y="GAMMA")
    table = score_table(pd.concat([study, again]), **options)
    assert "over 9 answers" in pick(table, "spearman", "direct")["note"]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (([4.0], [2.0], [5.0], [3.0]), "2 answers with both scores, 3 are needed"),
        (([4.0] * 3, [4.0] * 3, [5.0, 4.0, 3.0], [3.0] * 3), "one side gives every answer the same score"),
        (([4.0, 3.0, 1.0], [2.0] * 3, [5.0] * 3, [5.0] * 3), "one side gives every answer the same score"),
        (([np.nan] * 3, [np.nan] * 3, [5.0] * 3, [5.0] * 3), "0 answers with both scores"),
    ],
)
def test_degenerate_scores_are_undefined_with_a_reason(values, reason, options):
    table = score_table(scored(*values), **options)
    for measure in ("spearman", "kendall"):
        line = pick(table, measure, "direct")
        assert np.isnan(line["estimate"])
        assert reason in line["note"]


def test_equal_scores_have_no_interval(options):
    table = score_table(scored([4.0, 3.0, 1.0], [2.0] * 3, [4.0, 3.0, 1.0], [2.0] * 3), **options)
    line = pick(table, "mean_difference", "direct")
    assert line["estimate"] == 0
    assert np.isnan(line["ci_low"])
    assert "no interval" in line["note"]


def test_without_direct_calls_there_are_no_rows(options):
    assert len(score_table(make_normalized(["ALPHA"], None, ["ALPHA"]), **options)) == 0
    assert len(score_table(make_normalized([]), **options)) == 0


def test_too_many_distinct_points_have_no_kendall_interval(monkeypatch):
    monkeypatch.setattr("judgelab.measure.association.MAXIMUM_POINTS", 3)
    first = np.arange(6.0)
    rows = list(association_rows(Place(), np.arange(6), first, first**2, settings=Settings(0.95, 100, 1)))
    kendall = next(row for row in rows if row["measure"] == "kendall")
    assert kendall["estimate"] == pytest.approx(1)
    assert "more than 3 distinct points" in kendall["note"]
