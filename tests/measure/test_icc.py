"""Intraclass correlation: Shrout and Fleiss, pingouin, analysis of variance by loops, and what has none."""

import warnings

import numpy as np
import pandas as pd
import pingouin
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from judgelab.measure.estimates import Place, Settings
from judgelab.measure.icc import icc_from_totals, icc_rows

# Shrout and Fleiss, 1979, table 2: four judges rate six targets.
SHROUT_FLEISS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float
)
# Same source, table 4.
PUBLISHED = {"icc_2_1": 0.29, "icc_2_k": 0.62, "icc_3_1": 0.71}
PINGOUIN = {"icc_2_1": "ICC(A,1)", "icc_2_k": "ICC(A,k)", "icc_3_1": "ICC(C,1)"}
NAMES = tuple(PUBLISHED)


def rows_of(scores, items=None, resamples=100):
    items = np.arange(len(scores)) if items is None else items
    lines = list(icc_rows(Place(), items, scores, settings=Settings(0.95, resamples, 1)))
    assert [line["measure"] for line in lines] == list(NAMES)
    return {line["measure"]: line for line in lines}


def pingouins(scores):
    target, rater = np.indices(scores.shape)
    table = pd.DataFrame({"t": target.ravel(), "r": rater.ravel(), "s": scores.ravel()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its F tests divide by zero where raters agree
        found = pingouin.intraclass_corr(table, "t", "r", "s").set_index("Type")["ICC"]
    return {name: float(found[theirs]) for name, theirs in PINGOUIN.items()}


def test_the_published_example():
    lines, theirs = rows_of(SHROUT_FLEISS), pingouins(SHROUT_FLEISS)
    for name, value in PUBLISHED.items():
        assert round(lines[name]["estimate"], 2) == value
        assert lines[name]["estimate"] == pytest.approx(theirs[name], abs=1e-12)
        assert lines[name]["ci_low"] < lines[name]["estimate"] < lines[name]["ci_high"]
        assert lines[name]["n_used"] == 6
        assert "percentile bootstrap over items" in lines[name]["method"]


matrices = st.integers(2, 4).flatmap(
    lambda k: st.lists(st.lists(st.integers(1, 5).map(float), min_size=k, max_size=k), min_size=3, max_size=12)
)


@given(matrices)
@settings(max_examples=1000)
def test_every_estimate_equals_pingouin(table):
    scores = np.array(table)
    # Where a denominator is zero up to rounding the ratio of the mean squares is noise in any program.
    residuals = scores - scores.mean(axis=1, keepdims=True) - scores.mean(axis=0) + scores.mean()
    assume(np.abs(residuals).max() > 1e-9)
    lines, theirs = rows_of(scores, resamples=1), pingouins(scores)
    for name in NAMES:
        if not np.isnan(lines[name]["estimate"]):
            assert lines[name]["estimate"] == pytest.approx(theirs[name], abs=1e-6, rel=1e-6)


def by_loops(scores):
    """Table 4's formulas from the mean squares, each as its definition says."""
    n, k = scores.shape
    grand = scores.mean()
    msr = k * sum((scores[i].mean() - grand) ** 2 for i in range(n)) / (n - 1)
    msc = n * sum((scores[:, j].mean() - grand) ** 2 for j in range(k)) / (k - 1)
    mse = sum(
        (scores[i, j] - scores[i].mean() - scores[:, j].mean() + grand) ** 2 for i in range(n) for j in range(k)
    ) / ((n - 1) * (k - 1))
    return [
        (msr - mse) / (msr + (k - 1) * mse + k * (msc - mse) / n),
        (msr - mse) / (msr + (msc - mse) / n),
        (msr - mse) / (msr + (k - 1) * mse),
    ]


def test_resampled_values_equal_loops_over_the_drawn_answers():
    rng = np.random.default_rng(2)
    scores = rng.integers(1, 6, (10, 3)).astype(float)
    for _ in range(20):
        drawn = scores[rng.integers(0, 10, 10)]
        totals = np.array([[10, (drawn.sum(axis=1) ** 2).sum(), (drawn**2).sum(), *drawn.sum(axis=0)]])
        assert icc_from_totals(totals, 3)[:, 0] == pytest.approx(by_loops(drawn), abs=1e-9)


def test_what_changes_and_what_does_not():
    rng = np.random.default_rng(4)
    scores = rng.integers(1, 6, (40, 1)) + rng.integers(0, 2, (40, 3)).astype(float)
    base = rows_of(scores, resamples=2_000)
    for change in (lambda x: x[:, ::-1], lambda x: 1e5 + 3 * x):
        changed = rows_of(change(scores), resamples=2_000)
        for name in NAMES:
            assert changed[name]["estimate"] == pytest.approx(base[name]["estimate"], abs=1e-8)
            for column in ("ci_low", "ci_high"):  # other random numbers, the same distribution
                assert changed[name][column] == pytest.approx(base[name][column], abs=0.02)
    lenient = rows_of(scores + np.array([0.0, 0.0, 2.0]))
    assert lenient["icc_3_1"]["estimate"] == pytest.approx(base["icc_3_1"]["estimate"])
    assert lenient["icc_2_1"]["estimate"] < base["icc_2_1"]["estimate"]


def test_answers_of_one_item_stay_together():
    rng = np.random.default_rng(8)
    scores = np.repeat(rng.integers(1, 6, (20, 1)) + rng.integers(0, 2, (20, 2)).astype(float), 4, axis=0)
    apart, together = rows_of(scores, resamples=400), rows_of(scores, np.repeat(np.arange(20), 4), resamples=400)
    assert together["icc_2_1"]["n_used"] == 20
    assert together["icc_2_1"]["estimate"] == apart["icc_2_1"]["estimate"]
    # Four equal answers an item carry the information of one: twice the width.
    widths = [lines["icc_2_1"]["ci_high"] - lines["icc_2_1"]["ci_low"] for lines in (together, apart)]
    assert 1.6 < widths[0] / widths[1] < 2.5


def test_answers_without_all_scores_are_left_out_and_counted():
    gaps = np.vstack([SHROUT_FLEISS, [1, np.nan, 2, 3], [np.nan] * 4])
    line, whole = rows_of(gaps)["icc_2_1"], rows_of(SHROUT_FLEISS)["icc_2_1"]
    assert line["estimate"] == pytest.approx(whole["estimate"], abs=1e-12)
    assert (line["n_used"], line["n_excluded"]) == (6, 2)
    assert "2 of 8 answers left out: 2 without all scores" in line["note"]


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        (np.full((5, 2), 3.0), "every score is the same"),
        (np.full((5, 2), 0.1 + 0.2), "every score is the same"),
        (np.arange(5.0)[:, np.newaxis], "1 rater and 5 answers with all scores, 2 of each are needed"),
        (np.array([[1.0, 2.0]]), "2 raters and 1 answer with all scores"),
        (np.full((4, 2), np.nan), "2 raters and 0 answers with all scores"),
        (np.zeros((0, 3)), "3 raters and 0 answers with all scores"),
        (np.array([[1.0, 2.0], [np.nan, 2.0]]), "2 raters and 1 answer with all scores"),
    ],
)
def test_without_variation_or_raters_it_is_undefined(scores, reason):
    for line in rows_of(scores).values():
        assert np.isnan(line["estimate"])
        assert np.isnan(line["ci_low"])
        assert line["note"].startswith(f"undefined: {reason}")


def test_perfect_agreement_and_only_leniency():
    same = np.repeat(np.arange(1.0, 6.0)[:, np.newaxis], 2, axis=1)
    for line in rows_of(same).values():
        assert line["estimate"] == pytest.approx(1, abs=1e-12)
        assert "no interval: every resample gives the same value" in line["note"]
    shifted = rows_of(same + np.array([0.0, 1.0]))
    assert shifted["icc_3_1"]["estimate"] == pytest.approx(1, abs=1e-12)
    # MSR = 5, MSE = 0, MSC = 2.5: 5 / (5 + 2 * 2.5 / 5) and 5 / (5 + 2.5 / 5).
    assert shifted["icc_2_1"]["estimate"] == pytest.approx(5 / 6)
    assert shifted["icc_2_k"]["estimate"] == pytest.approx(5 / 5.5)


def test_raters_that_differ_by_a_constant_only_have_no_consistency():
    # Each rater gives one score to every answer: MSR = MSE = 0.
    lines = rows_of(np.tile([1.0, 2.0], (6, 1)))
    assert lines["icc_3_1"]["note"].startswith("undefined: the mean squares leave nothing to divide by")
    assert lines["icc_2_1"]["estimate"] == 0


def test_two_items_give_an_estimate_with_little_to_say():
    lines = rows_of(np.array([[1.0, 2.0], [4.0, 4.0]]))
    # MSR = 6.25, MSC = 0.25, MSE = 0.25: 6 / (6.25 + 0.25 + 0).
    assert lines["icc_2_1"]["estimate"] == pytest.approx(6 / 6.5)


def test_infinite_scores_are_refused():
    with pytest.raises(ValueError, match="1 of 10 scores are infinite"):
        rows_of(np.array([[1.0, 2.0]] * 4 + [[np.inf, 2.0]]))


def test_the_interval_holds_the_true_value():
    rng = np.random.default_rng(12)
    covered = 0
    for _ in range(150):
        scores = rng.normal(0, 1, (100, 1)) + rng.normal(0, 1, (100, 3))  # ICC(2,1) = ICC(3,1) = 1 / 2
        line = rows_of(scores, resamples=300)["icc_2_1"]
        covered += line["ci_low"] <= 0.5 <= line["ci_high"]
    # Binomial(150, 0.95): 134 or fewer has probability 0.005.
    assert covered >= 135
