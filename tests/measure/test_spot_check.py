"""The blind sample and its agreement: allocation by hand, blindness, stability, planted agreement, degenerate input."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgelab.measure.intervals import wilson
from judgelab.measure.spot_check import _allotted, spot_check_agreement, spot_check_sample

from .conftest import pick


def verdicts(n_items=50, judges=("j", "k"), seed=0, missing=0.1):
    """Both presentations of one pair an item by every judge."""
    rng = np.random.default_rng(seed)
    lines = [
        (judge, f"i{item}", f"c{item % 3}", call, "A", "B", rng.choice(["A", "B", "TIE"], p=[0.6, 0.3, 0.1]))
        for judge in judges
        for item in range(n_items)
        for call in ("original", "swapped")
    ]
    columns = ["judge", "item_id", "category", "pass", "system_x", "system_y", "preference"]
    table = pd.DataFrame(lines, columns=columns).astype({"preference": object})
    table.loc[rng.random(len(table)) < missing, "preference"] = np.nan
    return table


def check(rows, slice_="all", judge="panel"):
    return pick(rows, "spot_check_agreement", "", slice_, judge)


def labelled(key, agreeing):
    """Labels of which the first ``agreeing`` equal the judge's."""
    wrong = np.where(key["preference"] == "A", "B", "A")
    same = np.arange(len(key)) < agreeing
    return pd.DataFrame({"check_id": key["check_id"], "preference": np.where(same, key["preference"], wrong)})


@pytest.mark.parametrize(
    ("counts", "size", "expected"),
    [
        ([80, 20], 5, [4, 1]),
        ([50, 30, 20], 10, [5, 3, 2]),
        (
            [6, 3, 1],
            4,
            [2, 1, 1],
        ),  # shares 2.4 1.2 0.4: the remainder 0.4 of the first comes first, then the rule of one
        ([45, 35, 20], 7, [3, 3, 1]),  # shares 3.15 2.45 1.4: 0.45 is the largest remainder
        ([97, 1, 1, 1], 5, [2, 1, 1, 1]),
        ([2, 1], 3, [2, 1]),
        ([5, 4, 3], 2, [1, 1, 0]),  # more strata than checks: no stratum is owed one
    ],
)
def test_allocation(counts, size, expected):
    assert _allotted(np.array(counts), size).tolist() == expected


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_allocation_holds_its_promises(counts, size):
    counts = np.array(counts)
    size = min(size, int(counts.sum()))
    given_ = _allotted(counts, size)
    assert given_.sum() == size
    assert (given_ <= counts).all()
    assert (given_ >= (len(counts) <= size)).all()
    quota = size * counts / counts.sum()
    if (quota >= 1).all():
        assert (np.abs(given_ - quota) < 1).all()


def test_sheet_is_blind_and_key_fits():
    table = verdicts()
    sheet, key = spot_check_sample(table, seed=3)
    assert list(sheet.columns) == ["check_id", "item_id", "shown_first", "shown_second"]
    assert len(sheet) == len(key) == 25
    assert sheet["check_id"].is_unique
    assert sheet["check_id"].tolist() == sorted(key["check_id"])
    assert sheet["check_id"].str.fullmatch("[0-9a-f]{12}").all()
    merged = key.merge(sheet, on="check_id", suffixes=("", "_shown"))
    assert (merged["item_id"] == merged["item_id_shown"]).all()
    found = key.merge(table, on=["judge", "item_id", "pass"], suffixes=("", "_given"))
    assert (found["preference"] == found["preference_given"]).all()
    assert (found["category"] == found["category_given"]).all()
    assert key["preference"].notna().all()
    # the places are mixed, and go with neither the verdict nor the judge's presentation
    assert {tuple(sorted(line)) for line in sheet[["shown_first", "shown_second"]].to_numpy()} == {("A", "B")}
    many = spot_check_sample(verdicts(400), size=1000, seed=3)
    first = (many.sheet["shown_first"] == "A").to_numpy()
    assert 0.45 < first.mean() < 0.55
    for column, value in (("preference", "A"), ("pass", "original"), ("judge", "j")):
        assert abs(first[many.key[column] == value].mean() - first.mean()) < 0.06


def test_strata():
    table = verdicts()
    _, key = spot_check_sample(table, seed=3)
    usable = table.dropna(subset=["preference"])
    strata = ["judge", "category", "preference"]
    assert set(key.groupby(strata).groups) == set(usable.groupby(strata).groups)  # 18, each has its one
    _, key = spot_check_sample(table, size=30, seed=3, strata=["preference"])
    quota = 30 * usable["preference"].value_counts() / len(usable)
    assert ((key["preference"].value_counts() - quota).abs() < 1).all()
    plain = spot_check_sample(table, size=30, seed=3, strata=[])
    assert len(plain.key) == 30
    without = table.assign(category=np.nan)
    assert len(spot_check_sample(without, seed=3).key) == 25


def test_answers_are_looked_at_once_where_possible():
    """Four verdicts on each of 50 items: 25 checks are 25 items; with 5 items and 12 checks each has two or three."""
    key = spot_check_sample(verdicts(missing=0), seed=5, strata=["judge"]).key
    assert key["item_id"].is_unique
    key = spot_check_sample(verdicts(5, missing=0), size=5, seed=5, strata=[]).key
    assert key["item_id"].is_unique
    key = spot_check_sample(verdicts(5, missing=0), size=12, seed=5, strata=[]).key
    assert key["item_id"].nunique() == 5


def test_same_seed_same_sample_whatever_the_order():
    table = verdicts()
    one = spot_check_sample(table, seed=3)
    shuffled = table.sample(frac=1, random_state=1)
    turned = shuffled.rename(columns={"system_x": "system_y", "system_y": "system_x"})
    for other in (shuffled, turned):
        again = spot_check_sample(other, seed=3)
        pd.testing.assert_frame_equal(one.sheet, again.sheet)
        columns = ["check_id", "judge", "item_id", "pass", "preference"]
        pd.testing.assert_frame_equal(one.key[columns], again.key[columns])
    assert set(spot_check_sample(table, seed=4).key["check_id"]).isdisjoint(one.key["check_id"])


def test_ids_stay_with_their_verdict():
    """Another table with the same seed: a check_id that is in both is of the same call, shown in the same places."""
    one = spot_check_sample(verdicts(), size=200, seed=3)
    other = spot_check_sample(verdicts(60, seed=9), size=200, seed=3)
    common = one.key.merge(other.key, on="check_id")
    assert len(common) > 50
    for name in ("judge", "item_id", "pass"):
        assert (common[f"{name}_x"] == common[f"{name}_y"]).all()
    places = one.sheet.merge(other.sheet, on="check_id")
    assert (places["shown_first_x"] == places["shown_first_y"]).all()


def test_every_verdict_has_its_chance():
    """Plain sampling of 5 of 10 verdicts: each is drawn in about half of the seeds."""
    table = verdicts(10, judges=("j",), missing=0)
    table = table[table["pass"] == "original"]
    drawn = pd.concat([spot_check_sample(table, size=5, seed=seed, strata=[]).key for seed in range(100)])
    counts = drawn["item_id"].value_counts()
    assert len(counts) == 10
    assert counts.between(30, 70).all()  # 50 expected, standard deviation 5


def test_agreement_by_hand():
    _, key = spot_check_sample(verdicts(), seed=3)
    rows = spot_check_agreement(key, labelled(key, 20), ci_level=0.95, judge="panel")
    line = check(rows)
    assert (line["numerator"], line["denominator"], line["n_excluded"]) == (20, 25, 0)
    assert (line["ci_low"], line["ci_high"]) == pytest.approx(wilson(20, 25, 0.95))
    assert (line["ci_low"], line["ci_high"]) == pytest.approx((0.6087, 0.9114), abs=1e-4)
    assert line["method"] == "Wilson"
    assert line["note"] == "the interval lies around 0.8: 25 verdicts cannot tell"
    for agreeing, where in ((23, "around"), (24, "above"), (17, "around"), (15, "below"), (0, "below")):
        rows = spot_check_agreement(key, labelled(key, agreeing), ci_level=0.95, judge="panel")
        assert f"lies {where} 0.8" in check(rows)["note"], agreeing
    strict = spot_check_agreement(key, labelled(key, 24), threshold=0.9, ci_level=0.95, judge="panel")
    assert "around 0.9" in check(strict)["note"]


def test_parts_add_up():
    _, key = spot_check_sample(verdicts(), seed=3)
    rows = spot_check_agreement(key, labelled(key, 17), ci_level=0.95, judge="panel")
    assert set(rows["judge"]) == {"panel", "j", "k"}
    for part in (
        rows[rows["judge"] != "panel"],
        rows[rows["slice"].str.startswith("category=")],
        rows[rows["slice"].str.startswith("preference=")],
    ):
        assert len(part) >= 2
        assert part["numerator"].sum() == 17
        assert part["denominator"].sum() == 25


def test_missing_labels_are_counted():
    _, key = spot_check_sample(verdicts(judges=("j",)), seed=3)
    labels = labelled(key, 25).iloc[:-5]
    labels.loc[labels.index[0], "preference"] = np.nan
    line = check(spot_check_agreement(key, labels.sample(frac=1, random_state=1), ci_level=0.95, judge="j"), judge="j")
    assert (line["numerator"], line["denominator"], line["n_excluded"]) == (19, 19, 6)
    assert line["note"].endswith("6 of 25 verdicts left out: 6 without a label")


def test_ties_agree_with_ties_only():
    key = spot_check_sample(verdicts(seed=2), size=200, seed=3).key
    labels = key[["check_id"]].assign(preference="TIE")
    line = check(spot_check_agreement(key, labels, ci_level=0.95, judge="panel"))
    assert line["numerator"] == (key["preference"] == "TIE").sum()


def test_degenerate():
    table = verdicts()
    for given_ in (table.iloc[:0], table.assign(preference=np.nan).astype({"preference": object})):
        sheet, key = spot_check_sample(given_, seed=1)
        assert len(sheet) == len(key) == 0
        rows = spot_check_agreement(key, labelled(key, 0), ci_level=0.95, judge="j")
        line = check(rows, judge="j")
        assert np.isnan(line["estimate"])
        assert line["note"].startswith("undefined: ")
    assert len(spot_check_sample(verdicts(3, missing=0), seed=1).key) == 12  # all there are
    one = spot_check_sample(table.dropna().iloc[:1], seed=1)
    line = check(spot_check_agreement(one.key, labelled(one.key, 1), ci_level=0.95, judge="j"), judge="j")
    assert (line["estimate"], line["note"]) == (1, "the interval lies around 0.8: 1 verdict cannot tell")
    nobody = one.key[["check_id"]].assign(preference=None)
    line = check(spot_check_agreement(one.key, nobody, ci_level=0.95, judge="j"), judge="j")
    assert np.isnan(line["estimate"])


def test_refused():
    table = verdicts()
    with pytest.raises(ValueError, match="size is 0"):
        spot_check_sample(table, size=0, seed=1)
    with pytest.raises(ValueError, match="missing column pass"):
        spot_check_sample(table.drop(columns="pass"), seed=1)
    with pytest.raises(ValueError, match="missing column level"):
        spot_check_sample(table, seed=1, strata=["level"])
    with pytest.raises(ValueError, match="repeat a judge, item, pair and pass"):
        spot_check_sample(pd.concat([table, table]), seed=1)
    with pytest.raises(ValueError, match="column judge: 200 of 200 are missing"):
        spot_check_sample(table.assign(judge=np.nan), seed=1)
    key = spot_check_sample(table, seed=1).key
    labels = labelled(key, 20)
    options = {"ci_level": 0.95, "judge": "j"}
    with pytest.raises(ValueError, match="is there twice"):
        spot_check_agreement(key, pd.concat([labels, labels]), **options)
    with pytest.raises(ValueError, match="1 of 25 check_ids are not in the key"):
        spot_check_agreement(key.iloc[1:], labels, **options)
    with pytest.raises(ValueError, match="has 'C', allowed are A, B, TIE or nothing"):
        spot_check_agreement(key, labels.assign(preference="C"), **options)
    with pytest.raises(ValueError, match="threshold"):
        spot_check_agreement(key, labels, threshold=1, **options)
    with pytest.raises(ValueError, match="missing column preference"):
        spot_check_agreement(key, labels[["check_id"]], **options)
