"""Win rates of systems against each other and against all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from evalica import Winner, indexing, matrices
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.consensus import consensus
from judgelab.measure.rows import COLUMNS
from judgelab.measure.win_matrix import win_matrix, win_rates

OPTIONS: dict[str, Any] = {"ci_level": 0.95, "resamples": 200, "seed": 7}
QUICK: dict[str, Any] = {"ci_level": 0.9, "resamples": 20, "seed": 1}
COUNTS = ["wins", "losses", "ties", "matches", "undecided"]


def matches(*rows: tuple[Any, str, str, Any]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["item_id", "system_x", "system_y", "preference"])
    return table.astype({"preference": object}).replace({"preference": {None: np.nan}})


@st.composite
def tournaments(draw: Any) -> pd.DataFrame:
    rows = []
    for _ in range(draw(st.integers(0, 25))):
        x, y = draw(st.permutations("abcd"))[:2]
        rows.append((draw(st.integers(1, 6)), x, y, draw(st.sampled_from([x, x, y, "TIE", None]))))
    return matches(*rows)


def counted(table: pd.DataFrame, system: str, opponent: str | None = None) -> list[int]:
    """Wins, losses, ties, matches, undecided, row by row."""
    wins = losses = ties = undecided = 0
    for line in table.to_dict("records"):
        pair = {line["system_x"], line["system_y"]}
        if system not in pair or (opponent is not None and opponent not in pair):
            continue
        preference = line["preference"]
        wins += preference == system
        ties += preference == "TIE"
        undecided += not isinstance(preference, str)
        losses += isinstance(preference, str) and preference not in (system, "TIE")
    return [wins, losses, ties, wins + losses + ties, undecided]


@given(tournaments())
@settings(max_examples=25, deadline=None)
def test_matrix_naive_twin(table: pd.DataFrame) -> None:
    made = win_matrix(table, **QUICK)
    systems = set(table["system_x"]) | set(table["system_y"])
    pairs = [(line["system"], line["opponent"]) for line in made.to_dict("records")]
    assert sorted(pairs) == sorted((a, b) for a in systems for b in systems if a != b)
    assert made["win_rate"].isna().equals(made["note"].str.startswith("undefined: "))
    by_pair = made.set_index(["system", "opponent"])
    for (a, b), line in by_pair.iterrows():
        wins, losses, ties, total, undecided = counted(table, a, b)
        assert line[COUNTS].tolist() == [wins, losses, ties, total, undecided]
        mirror = by_pair.loc[(b, a)]
        if total:
            assert line["win_rate"] == pytest.approx((wins + ties / 2) / total)
            assert line["win_rate"] + mirror["win_rate"] == pytest.approx(1)
        if not np.isnan(line["ci_low"]):
            assert -1e-12 <= line["ci_low"] <= line["win_rate"] + 1e-12
            assert line["ci_low"] + mirror["ci_high"] == pytest.approx(1)


@given(tournaments())
@settings(max_examples=30, deadline=None)
def test_rates_naive_twin(table: pd.DataFrame) -> None:
    made = win_rates(table, **QUICK)
    assert list(made.columns) == list(COLUMNS)
    for line in made.to_dict("records"):
        wins, _, ties, total, undecided = counted(table, str(line["slice"]).removeprefix("system="))
        assert line["denominator"] == total
        numerator = wins + ties / 2 if line["measure"] == "win_rate" else ties
        if total:
            assert line["estimate"] == pytest.approx(numerator / total)
            assert pd.isna(line["numerator"]) == (numerator % 1 > 0)
        else:
            assert line["note"].startswith("undefined: ")
        if numerator % 1 == 0:
            assert line["numerator"] == numerator
        assert ("without preference" in line["note"]) == (undecided > 0)
    rates = made.loc[made["measure"] == "win_rate", "estimate"]
    assert rates.dropna().is_monotonic_decreasing
    assert rates.isna().is_monotonic_increasing  # undefined last


@given(tournaments(), st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_order_and_orientation_do_not_matter(table: pd.DataFrame, random: Any) -> None:
    order = list(range(len(table)))
    random.shuffle(order)
    turned = table.rename(columns={"system_x": "system_y", "system_y": "system_x"})
    for function in (win_matrix, win_rates):
        made = function(table, **QUICK)
        for other in (table.iloc[order], turned):
            again = function(other, **QUICK)
            numbers = ["estimate", "ci_low"] if function is win_rates else ["win_rate", "ci_low"]
            assert np.allclose(made[numbers], again[numbers], equal_nan=True)
            assert made.drop(columns=[*numbers, "ci_high"]).equals(again.drop(columns=[*numbers, "ci_high"]))


def test_by_hand() -> None:
    table = matches(
        (1, "a", "b", "a"), (2, "a", "b", "a"), (3, "b", "a", "b"), (4, "b", "a", "a"),
        (1, "b", "c", "TIE"), (2, "c", "b", "c"), (3, "b", "c", None),
        (1, "c", "d", None),
    )  # fmt: skip
    made = win_matrix(table, **OPTIONS)
    # over all: a 3 of 4; c 1.5 of 2; b 1.5 of 6; d none. a and c have the same rate: by name
    assert made["system"].drop_duplicates().tolist() == ["a", "c", "b", "d"]
    assert made.loc[made["system"] == "b", "opponent"].tolist() == ["a", "c", "d"]
    lines = made.set_index(["system", "opponent"])
    a = lines.loc[("a", "b")]
    assert a[[*COUNTS, "win_rate"]].tolist() == [3, 1, 0, 4, 0, 0.75]
    assert a[["ci_low", "ci_high"]].tolist() == pytest.approx(proportion_confint(3, 4, 0.05, "wilson"))
    assert a[["method", "items"]].tolist() == ["Wilson", 4]
    c = lines.loc[("c", "b")]
    assert c[[*COUNTS, "win_rate"]].tolist() == [1, 0, 1, 2, 1, 0.75]
    assert "bootstrap over items" in c["method"]
    assert lines.loc[("c", "d"), "note"] == "undefined: none of their 1 matches was decided"
    assert lines.loc[("a", "d"), "note"] == "undefined: the two never met"
    rates = win_rates(table, **OPTIONS).set_index(["slice", "measure"])
    assert rates.loc[("system=b", "win_rate"), "estimate"] == 0.25
    assert "(1 wins + 1 ties / 2) / 6 matches" in rates.loc[("system=b", "win_rate"), "method"]
    assert rates.loc[("system=b", "tie_rate"), ["numerator", "denominator"]].tolist() == [1, 6]
    assert rates.loc[("system=d", "win_rate"), "note"].startswith("undefined: ")


def test_several_matches_an_item_are_resampled_together() -> None:
    # ten judges of one mind on each of 20 items say as much as one
    rng = np.random.default_rng(2)
    one = matches(*[(item, "a", "b", "ab"[rng.integers(2)]) for item in range(20)])
    ten = pd.concat([one] * 10)
    wide = {"ci_level": 0.95, "resamples": 4000, "seed": 1}
    alone, many = (win_matrix(table, **wide).iloc[0] for table in (one, ten))
    assert alone["win_rate"] == many["win_rate"]
    assert many["ci_high"] - many["ci_low"] == pytest.approx(alone["ci_high"] - alone["ci_low"], rel=0.2)
    total = win_rates(ten, **wide).iloc[0]
    assert total["ci_high"] - total["ci_low"] == pytest.approx(alone["ci_high"] - alone["ci_low"], rel=0.2)


def test_against_evalica() -> None:
    rng = np.random.default_rng(4)
    rows = []
    for number in range(300):
        x, y = rng.choice(list("abcd"), 2, replace=False)
        rows.append((number, str(x), str(y), [str(x), str(y), "TIE"][rng.integers(3)]))
    table = matches(*rows)
    winners = [
        Winner.Draw if line.preference == "TIE" else Winner.X if line.preference == line.system_x else Winner.Y
        for line in table.itertuples()
    ]
    xs, ys, index = indexing(table["system_x"], table["system_y"])
    expected = matrices(xs, ys, winners, index)
    lines = win_matrix(table, **QUICK).set_index(["system", "opponent"])
    assert len(lines) == 12
    for row, a in enumerate(index):
        for column, b in enumerate(index):
            if a != b:
                assert lines.loc[(a, b), "wins"] == expected.win_matrix[row, column]
                assert lines.loc[(a, b), "losses"] == expected.win_matrix[column, row]
                assert lines.loc[(a, b), "ties"] == expected.tie_matrix[row, column]


def test_undefeated_winless_and_ties_only() -> None:
    table = matches((1, "a", "b", "a"), (2, "a", "b", "a"), (1, "c", "d", "TIE"), (2, "c", "d", "TIE"))
    made = win_rates(table, **OPTIONS).set_index(["slice", "measure"])["estimate"]
    assert made.xs("win_rate", level=1).to_dict() == {
        "system=a": 1.0, "system=c": 0.5, "system=d": 0.5, "system=b": 0.0
    }  # fmt: skip
    assert made["system=c", "tie_rate"] == 1.0
    bounds = win_matrix(table, **OPTIONS).set_index(["system", "opponent"])
    assert bounds.loc[("a", "b"), "ci_high"] == 1.0 == 1 - bounds.loc[("b", "a"), "ci_low"]


def test_no_match_one_match_all_missing() -> None:
    empty = matches()
    assert len(win_matrix(empty, **OPTIONS)) == len(win_rates(empty, **OPTIONS)) == 0
    one = win_matrix(matches((1, "a", "b", "b")), **OPTIONS)
    assert one[["system", "opponent", "win_rate"]].values.tolist() == [["b", "a", 1.0], ["a", "b", 0.0]]
    missing = matches((1, "a", "b", None), (1, "b", "c", None))
    assert win_matrix(missing, **OPTIONS)["win_rate"].isna().all()
    rows = win_rates(missing, **OPTIONS)
    assert rows["estimate"].isna().all()
    assert rows["slice"].drop_duplicates().tolist() == ["system=a", "system=b", "system=c"]


def test_of_a_panel() -> None:
    votes = matches(*[(item, "a", "b", vote) for item in range(3) for vote in ("a", "a", "b")])
    assert win_matrix(consensus(votes, 0.5), **OPTIONS)["wins"].tolist() == [3, 0]
    assert win_matrix(consensus(votes, 1.0), **OPTIONS)["ties"].tolist() == [3, 3]
    assert win_matrix(consensus(votes, None), **OPTIONS)["wins"].tolist() == [6, 3]
    assert set(win_rates(votes, judge="k", **OPTIONS)["judge"]) == {"k"}
    with pytest.raises(ValueError, match="missing column item_id"):
        win_matrix(votes.drop(columns="item_id"), **OPTIONS)
    with pytest.raises(ValueError, match="ci_level is 2"):
        win_rates(votes, ci_level=2, resamples=10, seed=1)
