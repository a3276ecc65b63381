"""From scores and letters to preferences."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgelab.measure.preferences import (
    conservative,
    normalize,
    preference_from_letters,
    preference_from_totals,
    weighted_total,
)


def test_weighted_total_by_hand():
    # (2 * 5 + 1 * 2) / 3 = 4
    assert weighted_total({"a": 5, "b": 2, "unused": 1}, {"a": 2, "b": 1}) == 4.0


def test_a_missing_criterion_is_not_zero():
    assert np.isnan(weighted_total({"a": 5}, {"a": 1, "b": 1}))
    assert np.isnan(weighted_total({"a": 5, "b": float("nan")}, {"a": 1, "b": 1}))


@pytest.mark.parametrize("weights", [{}, {"a": 0}, {"a": -1}, {"a": float("nan")}])
def test_impossible_weights_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        weighted_total({"a": 1}, weights)


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        (4.2, 3.95, "TIE"),  # 4.2 - 3.95 > 0.25 in binary arithmetic, and equal in decimal
        (3.95, 4.2, "TIE"),
        (4.2, 3.9, "X"),
        (3.9, 4.2, "Y"),
        (4.0, 4.0, "TIE"),
        (np.nan, 4.0, np.nan),
        (4.0, np.nan, np.nan),
    ],
)
def test_tie_margin(x, y, expected):
    got = preference_from_totals(pd.Series([x]), pd.Series([y]), "X", "Y", 0.25).iloc[0]
    assert (pd.isna(got) and pd.isna(expected)) or got == expected


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 100))
def test_margin_is_decided_as_in_whole_hundredths(x, y, margin):
    expected = "X" if x - y > margin else "Y" if y - x > margin else "TIE"
    got = preference_from_totals(pd.Series([x / 100]), pd.Series([y / 100]), "X", "Y", margin / 100)
    assert got.iloc[0] == expected


@pytest.mark.parametrize("margin", [-0.1, float("nan")])
def test_impossible_margin_is_refused(margin):
    with pytest.raises(ValueError, match="margin"):
        preference_from_totals(pd.Series([1.0]), pd.Series([1.0]), "X", "Y", margin)


def test_letters_follow_the_presentation():
    got = preference_from_letters(
        pd.Series(["A", "B", "A", "TIE", None]),
        pd.Series(["X", "X", "Y", "Y", "X"]),
        pd.Series(["Y", "Y", "X", "X", "Y"]),
    )
    assert got.iloc[:4].tolist() == ["X", "Y", "Y", "TIE"]
    assert pd.isna(got.iloc[4])


def test_unknown_letter_is_refused():
    with pytest.raises(ValueError, match=r"1 of 2 pairwise verdicts are not A, B or TIE; first 'a '"):
        preference_from_letters(pd.Series(["A", "a "]), pd.Series(["X", "X"]), pd.Series(["Y", "Y"]))


def call(judge, strategy, pass_, item, **more):
    base = {"judge": judge, "strategy": strategy, "pass": pass_, "item_id": item, "status": "verdict"}
    return base | {"system_x": "X", "system_y": "Y"} | more


def study():
    comparisons = pd.DataFrame(
        {"item_id": ["i1", "i2"], "category": ["c", "d"], "system_x": "X", "system_y": "Y", "first": ["X", "Y"]}
    )
    reference = pd.DataFrame({"item_id": ["i1"], "system_x": "X", "system_y": "Y", "human": ["X"]})
    verdicts = [
        call("j", "direct", "direct", "i1", system="X", total=4.0),
        call("j", "direct", "direct", "i1", system="Y", total=3.0),
        call("j", "direct", "direct", "i2", system="X", total=4.0),
        call("j", "direct", "direct", "i2", system="Y", total=2.0, status="unusable"),
        call("j", "pairwise", "original", "i1", first="X", second="Y", verdict="A"),
        call("j", "pairwise", "swapped", "i1", first="Y", second="X", verdict="A"),
        call("j", "pairwise", "original", "i2", first="Y", second="X", verdict="B"),
        call("j", "pairwise", "swapped", "i2", first="X", second="Y", verdict=None, status="missing"),
        call("k", "pairwise", "original", "i1", first="X", second="Y", verdict="TIE"),
        call("k", "pairwise", "original", "development", first="X", second="Y", verdict="A"),
    ]
    return pd.DataFrame(verdicts), reference, comparisons


def test_normalize_one_row_a_judge_and_item():
    table = normalize(*study(), margin=0.25)
    assert table[["judge", "item_id"]].to_numpy().tolist() == [["j", "i1"], ["j", "i2"], ["k", "i1"], ["k", "i2"]]
    shown = table[["human", "direct", "pair_original", "pair_swapped"]].astype(object)
    assert shown.where(shown.notna(), None).to_numpy().tolist() == [
        ["X", "X", "X", "Y"],
        [None, None, "X", None],  # the unusable Y has a total in the ledger, and it is not used
        ["X", None, "TIE", None],
        [None, None, None, None],
    ]
    assert table["original_first"].tolist() == ["X", "Y", "X", "Y"]
    assert table["planned_direct"].tolist() == [True, True, False, False]
    assert table["planned_original"].tolist() == [True, True, True, False]
    assert table["planned_swapped"].tolist() == [True, True, False, False]
    assert table["category"].tolist() == ["c", "d", "c", "d"]
    assert np.isnan(table.loc[1, "total_y"])


@pytest.mark.parametrize("row", [0, 4])
def test_normalize_refuses_a_repeated_key(row):
    verdicts, reference, comparisons = study()
    doubled = pd.concat([verdicts, verdicts.iloc[[row]]])
    with pytest.raises(ValueError, match=r"verdicts: 1 of \d+ rows repeat a key; first judge j"):
        normalize(doubled, reference, comparisons, margin=0.25)


def test_normalize_refuses_a_repeated_reference_and_comparison():
    verdicts, reference, comparisons = study()
    with pytest.raises(ValueError, match="reference: 1 of 2 rows repeat a key"):
        normalize(verdicts, pd.concat([reference, reference]), comparisons, margin=0.25)
    with pytest.raises(ValueError, match="comparisons: 2 of 4 rows repeat a key"):
        normalize(verdicts, reference, pd.concat([comparisons, comparisons]), margin=0.25)


def test_normalize_refuses_a_swap_that_does_not_reverse():
    verdicts, reference, comparisons = study()
    verdicts.loc[5, ["first", "second"]] = ["X", "Y"]
    with pytest.raises(ValueError, match="1 swapped presentations do not reverse"):
        normalize(verdicts, reference, comparisons, margin=0.25)


def test_normalize_refuses_another_system_on_show():
    verdicts, reference, comparisons = study()
    verdicts.loc[4, "second"] = "Z"
    with pytest.raises(ValueError, match=r"1 of 4 pairwise rows show other systems .* item i1: X, Z"):
        normalize(verdicts, reference, comparisons, margin=0.25)


def test_normalize_takes_a_direct_score_to_every_pair_of_its_system():
    pairs = [("X", "Y"), ("X", "Z"), ("Y", "Z")]
    comparisons = pd.DataFrame(pairs, columns=["system_x", "system_y"]).assign(item_id="i", category="c", first="X")
    reference = comparisons[["item_id", "system_x", "system_y"]].assign(human="TIE")
    totals = {"X": 5.0, "Y": 3.0, "Z": 3.0}
    verdicts = pd.DataFrame([call("j", "direct", "direct", "i", system=s, total=t) for s, t in totals.items()])
    table = normalize(verdicts, reference, comparisons, margin=0.5)
    assert table["direct"].tolist() == ["X", "X", "TIE"]


def test_normalize_without_a_call_is_empty():
    verdicts, reference, comparisons = study()
    table = normalize(verdicts.iloc[:0], reference, comparisons, margin=0.25)
    assert len(table) == 0
    assert "planned_swapped" in table.columns


def test_conservative_rule():
    table = pd.DataFrame(
        {
            "pair_original": ["X", "TIE", "X", "X", "TIE", np.nan, "X", np.nan],
            "pair_swapped": ["X", "TIE", "Y", "TIE", "X", "X", np.nan, np.nan],
        }
    )
    got = conservative(table)["aggregated"]
    assert got.iloc[:5].tolist() == ["X", "TIE", "ABSTAIN", "ABSTAIN", "ABSTAIN"]
    assert got.iloc[5:].isna().all()
