"""Rows of a paired comparison."""

import numpy as np
import pandas as pd
import pytest

from judgelab.measure.paired_comparison import fit_strengths
from judgelab.measure.rows import COLUMNS
from judgelab.measure.strength_table import strength_table, strength_table_of

OPTIONS = {"ci_level": 0.9, "resamples": 200, "seed": 3}


def study(n=200, seed=0):
    rng = np.random.default_rng(seed)
    names = np.array(list("abc"), dtype=object)
    x = rng.integers(0, 3, n)
    y = (x + rng.integers(1, 3, n)) % 3
    preference = np.where(rng.random(n) < 0.2, "TIE", np.where(rng.random(n) < 0.4 + 0.2 * (x < y), names[x], names[y]))
    table = pd.DataFrame({"system_x": names[x], "system_y": names[y], "preference": preference})
    table["first"] = np.where(rng.random(n) < 0.5, names[x], names[y])
    table["words_x"], table["words_y"] = rng.integers(5, 50, (2, n))
    table["item_id"] = rng.integers(0, 50, n)
    return table


def test_rows_and_scales():
    terms = {"ties": "davidson", "first_position": True, "covariates": ["length"]}
    rows = strength_table(study(), judge="panel", **terms, **OPTIONS)
    assert tuple(rows.columns) == COLUMNS
    measures = ["log_strength", "log_strength_se", "strength_elo", "strength_share"]
    assert rows["measure"].tolist() == measures * 3 + ["first_position_effect", "tie_parameter", "covariate_effect"]
    assert rows["slice"].tolist()[-3:] == ["all", "all", "covariate=length"]
    assert set(rows["judge"]) == {"panel"}
    wide = rows.iloc[:12].set_index(["slice", "measure"])["estimate"].unstack()  # noqa: PD010
    level = wide["log_strength"]
    assert rows.loc[rows["measure"] == "log_strength", "estimate"].is_monotonic_decreasing
    assert wide["strength_elo"].to_numpy() == pytest.approx((1000 + 400 / np.log(10) * level).to_numpy())
    assert wide["strength_share"].to_numpy() == pytest.approx((np.exp(level) / np.exp(level).sum()).to_numpy())
    inside = rows[rows["measure"] != "log_strength_se"]
    assert ((inside["ci_low"] < inside["estimate"]) & (inside["estimate"] < inside["ci_high"])).all()
    # Elo is the log strength on another scale, and so is its interval.
    low = rows.set_index(["slice", "measure"])["ci_low"].unstack()  # noqa: PD010
    scaled = 1000 + 400 / np.log(10) * low["log_strength"]
    assert low["strength_elo"].dropna().to_numpy() == pytest.approx(scaled.dropna().to_numpy())
    assert int(rows.loc[rows["measure"] == "log_strength", "n_used"].sum()) == 2 * 200


def test_fit_at_hand_gives_the_same_rows():
    table = study(80)
    fit = fit_strengths(table, judge="j", **OPTIONS)
    again = strength_table_of(fit, judge="j", start=0.0, scale=100.0, base=2.0)
    rows = strength_table(table, judge="j", start=0.0, scale=100.0, base=2.0, **OPTIONS)
    pd.testing.assert_frame_equal(rows, again)
    # 100 points are odds of 2 to 1.
    elo = rows.loc[rows["measure"] == "strength_elo", "estimate"].to_numpy()
    level = rows.loc[rows["measure"] == "log_strength", "estimate"].to_numpy()
    assert 2 ** ((elo[0] - elo[1]) / 100) == pytest.approx(np.exp(level[0] - level[1]))


def test_every_row_of_a_penalised_fit_says_so():
    table = pd.DataFrame([("a", "b", "a"), ("a", "b", "b"), ("c", "a", "c")], columns=list(study().columns[:3]))
    rows = strength_table(table, judge="j", **OPTIONS)
    assert rows["note"].str.contains("c undefeated in its 1 match").all()
    assert rows["note"].str.contains("fitted with a normal prior of mean 0 and sd 2").all()
    assert rows["slice"].iloc[0] == "system=c"
    assert rows["method"].str.contains("normal prior of sd 2").all()
    named = strength_table(table, judge="j", undefined="name", **OPTIONS)
    last = named[named["slice"] == "system=c"]
    assert last.index.tolist() == [8, 9, 10, 11]
    assert last["estimate"].isna().all()
    assert last["note"].str.startswith("undefined: undefeated in its 1 match").all()
    assert last["n_excluded"].tolist() == [1] * 4
    shares = named.loc[named["measure"] == "strength_share", "estimate"]
    assert shares.sum() == pytest.approx(1)


def test_degenerate_tables():
    none = pd.DataFrame(columns=list(study().columns[:3]))
    assert len(strength_table(none, judge="j", **OPTIONS)) == 0
    one = pd.DataFrame([("a", "b", "a")], columns=none.columns)
    rows = strength_table(one, judge="j", **OPTIONS)
    assert rows["ci_low"].isna().all()
    assert rows.loc[rows["measure"] == "log_strength", "note"].str.contains("no interval").all()
    missing = pd.DataFrame([("a", "b", None)], columns=none.columns)
    rows = strength_table(missing, judge="j", ties="davidson", **OPTIONS)
    assert rows["estimate"].isna().all()
    assert rows["note"].str.startswith("undefined: no match").all()


@pytest.mark.parametrize(("options", "message"), [({"scale": 0}, "scale is 0"), ({"base": 1}, "base - 1 is 0")])
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        strength_table(study(20), judge="j", **options, **OPTIONS)
