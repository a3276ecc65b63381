"""Scores of a judge against people's: levels, intraclass correlation, weighted kappas, and where none is."""

import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy.stats import pearsonr
from sklearn.metrics import cohen_kappa_score

from judgelab.measure.rows import COLUMNS
from judgelab.measure.scores import score_table

from .conftest import make_normalized, pick


def scored(human_x, human_y, total_x, total_y):
    study = make_normalized(["ALPHA"] * len(human_x), ["ALPHA"] * len(human_x))
    return study.assign(human_score_x=human_x, human_score_y=human_y, total_x=total_x, total_y=total_y)


def drawn(n=30, step=1.0):
    """Scores of a judge near people's, in steps."""
    rng = np.random.default_rng(9)
    human = rng.integers(1, 6, (2, n)).astype(float)
    return scored(*human, *np.clip(human + step * rng.integers(-1, 2, (2, n)), 1, 5))


def sides(study):
    human = study[["human_score_x", "human_score_y"]].to_numpy().ravel()
    return human, study[["total_x", "total_y"]].to_numpy().ravel()


def test_levels_stand_in_a_column_of_their_own(options):
    table = score_table(drawn(), **options)
    assert list(table.columns) == [*COLUMNS, "level"]
    by_level = table.groupby("level", sort=False)["measure"].agg(list)
    assert sorted(by_level["data_set"]) == ["kendall", "pearson", "spearman"]
    assert sorted(by_level["document"]) == sorted(by_level["system"]) == ["kendall", "pearson", "spearman"]
    assert {"mean_difference", "icc_2_1", "cohen_kappa_linear", "mean_score"} <= set(by_level[""])
    # Two answers an item, two systems: nothing to correlate within them, and it says so.
    notes = table[table["level"].isin(["document", "system"])]["note"]
    assert notes.str.startswith("undefined: ").all()


def test_second_libraries(options):
    study = drawn()
    table = score_table(study, **options)
    human, judge = sides(study)
    assert pick(table, "pearson", "direct")["estimate"] == pytest.approx(pearsonr(human, judge).statistic, abs=1e-12)
    long = pd.DataFrame(
        {"t": np.tile(np.arange(60), 2), "r": np.repeat([0, 1], 60), "s": np.concatenate([human, judge])}
    )
    theirs = pingouin.intraclass_corr(long, "t", "r", "s").set_index("Type")["ICC"]
    for ours, name in {"icc_2_1": "ICC(A,1)", "icc_2_k": "ICC(A,k)", "icc_3_1": "ICC(C,1)"}.items():
        line = pick(table, ours, "direct")
        assert line["estimate"] == pytest.approx(theirs[name], abs=1e-12)
        assert (line["n_used"], line["ci_level"]) == (30, 0.95)
    for weights in ("linear", "quadratic"):
        line = pick(table, f"cohen_kappa_{weights}", "direct")
        expected = cohen_kappa_score(human, judge, weights=weights, labels=[1, 2, 3, 4, 5])
        assert line["estimate"] == pytest.approx(expected, abs=1e-12)
        assert line["method"].startswith(f"{weights} weights over 1 to 5; ")


def test_weighted_kappa_only_on_whole_numbers(options):
    assert not score_table(drawn(step=0.5), **options)["measure"].str.startswith("cohen_kappa").any()
    far = scored([1.0, 2.0, 3.0], [4.0, 5.0, 1.0], [1.0, 2.0, 3.0], [4.0, 5.0, 1_000.0])
    assert not score_table(far, **options)["measure"].str.startswith("cohen_kappa").any()
    none = scored(*np.full((4, 3), np.nan))
    assert not score_table(none, **options)["measure"].str.startswith("cohen_kappa").any()


def test_kappa_does_not_depend_on_the_unused_ends_of_the_scale(options):
    low, high = drawn(), drawn()
    for name in ("human_score_x", "human_score_y", "total_x", "total_y"):
        high[name] += 95
    one, two = score_table(low, **options), score_table(high, **options)
    for weights in ("linear", "quadratic"):
        a, b = (pick(table, f"cohen_kappa_{weights}", "direct") for table in (one, two))
        assert (a["estimate"], a["ci_low"], a["ci_high"]) == (b["estimate"], b["ci_low"], b["ci_high"])


def test_equal_scores_are_undefined_everywhere(options):
    table = score_table(scored(*np.full((4, 5), 3.0)), **options)
    for measure in ("pearson", "icc_2_1", "icc_2_k", "icc_3_1", "cohen_kappa_linear", "cohen_kappa_quadratic"):
        line = pick(table, measure, "direct")
        assert np.isnan(line["estimate"])
        assert line["note"].startswith("undefined: ")


def test_lenient_judge_lowers_absolute_agreement_only(options):
    study = drawn()
    lenient = study.assign(total_x=study["total_x"] + 2, total_y=study["total_y"] + 2)
    one, two = score_table(study, **options), score_table(lenient, **options)
    for same in ("pearson", "icc_3_1"):
        assert pick(one, same, "direct")["estimate"] == pytest.approx(pick(two, same, "direct")["estimate"])
    assert pick(two, "icc_2_1", "direct")["estimate"] < pick(one, "icc_2_1", "direct")["estimate"]
    gap = [pick(table, "mean_difference", "direct")["estimate"] for table in (one, two)]
    assert gap[1] - gap[0] == pytest.approx(2)


def test_three_systems_have_every_level(options):
    study = drawn()
    rng = np.random.default_rng(5)
    scores = np.clip(3 + rng.integers(-2, 3, (2, 30)), 1, 5).astype(float)
    third = study.assign(system_y="GAMMA", human_score_y=scores[0], total_y=scores[1])
    table = score_table(pd.concat([study, third], ignore_index=True), **options)
    assert table[table["level"] == "system"]["estimate"].notna().all()
    within = table[(table["level"] == "document") & (table["measure"] == "spearman")].iloc[0]
    assert -1 <= within["estimate"] <= 1
    assert "items left out" in within["note"]
