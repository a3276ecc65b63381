"""Panels of judges: thresholds, draws, what is overruled, groups, and who is left out."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgelab.measure.consensus import (
    THRESHOLDS,
    consensus,
    consensus_by_group,
    consensus_table,
    single_judges,
    spread_over_groups,
    threshold_name,
)
from judgelab.measure.ranking import bradley_terry
from judgelab.measure.rows import COLUMNS

OPTIONS: dict[str, Any] = {"ci_level": 0.95, "resamples": 200, "seed": 7}
KEPT = ["item_id", "system_x", "system_y", "preference", "votes_x", "votes_y", "votes_tie", "unusable", "share"]


def verdicts(*rows: tuple[Any, str, str, Any], **columns: Any) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["item_id", "system_x", "system_y", "preference"])
    table["preference"] = table["preference"].astype(object).where(table["preference"].notna(), np.nan)
    return table.assign(**columns)


def poll(a: int, b: int, tie: int = 0, missing: int = 0) -> pd.DataFrame:
    votes = ["a"] * a + ["b"] * b + ["TIE"] * tie + [None] * missing
    return verdicts(*[(1, "a", "b", vote) for vote in votes])


@st.composite
def panels(draw: Any) -> pd.DataFrame:
    rows = []
    for _ in range(draw(st.integers(0, 25))):
        x, y = draw(st.sampled_from([("a", "b"), ("b", "a"), ("a", "c"), ("c", "b"), ("b", "c")]))
        preference = draw(st.sampled_from([x, x, y, "TIE", None]))
        rows.append((draw(st.sampled_from(["i", "j", "k"])), x, y, preference))
    table = verdicts(*rows)
    table["judge"] = [draw(st.sampled_from(["k1", "k2"])) for _ in rows]
    return table.assign(reason=np.where(table["preference"].isna(), "garbled", ""))


def naive(table: pd.DataFrame, threshold: float) -> list[dict[str, Any]]:
    """The same, row by row, with fractions."""
    turned: dict[frozenset[str], tuple[str, str]] = {}
    polls: dict[tuple[Any, tuple[str, str]], list[Any]] = {}
    for line in table.to_dict("records"):
        pair = turned.setdefault(frozenset([line["system_x"], line["system_y"]]), (line["system_x"], line["system_y"]))
        polls.setdefault((line["item_id"], pair), []).append(line["preference"])
    made = []
    for (item, (x, y)), votes in polls.items():
        usable = [vote for vote in votes if isinstance(vote, str)]
        preference: Any = "TIE" if usable else None
        for system in (x, y):
            if usable:
                share = Fraction(usable.count(system), len(usable))
                if share >= Fraction(str(threshold)) and share > Fraction(1, 2):
                    preference = system
        made.append(
            {
                "item_id": item,
                "system_x": x,
                "system_y": y,
                "preference": preference,
                "votes_x": usable.count(x),
                "votes_y": usable.count(y),
                "votes_tie": usable.count("TIE"),
                "unusable": len(votes) - len(usable),
                "share": max(usable.count(x), usable.count(y)) / len(usable) if usable else None,
            }
        )
    return made


def plain(table: pd.DataFrame) -> list[dict[str, Any]]:
    records = table[KEPT].to_dict("records")
    return [{str(name): None if pd.isna(value) else value for name, value in line.items()} for line in records]


@pytest.mark.parametrize(
    ("votes", "threshold", "expected"),
    [
        ((9, 1), 0.9, "a"),  # 9 of 10 is 0.9
        ((1, 9), 0.9, "b"),
        ((8, 2), 0.9, "TIE"),
        ((1, 1), 0.5, "TIE"),  # half is not above half
        ((2, 0, 2), 0.5, "TIE"),  # ties are votes for nobody
        ((3, 0, 2), 0.5, "a"),
        ((3, 0, 1), 1.0, "TIE"),  # one tie is enough against unanimity
        ((3, 0, 1), 0.75, "a"),
        ((3, 0, 0, 5), 1.0, "a"),  # what is not usable does not count
        ((0, 0, 4), 0.5, "TIE"),
        ((11, 9), 0.55, "a"),  # 0.55 * 20 is 11.000000000000002
        ((7, 3), 0.7, "a"),
        ((2, 1), 2 / 3, "a"),
        ((2, 2), 0.3, "TIE"),  # below one half the majority rules
        ((1, 0), 1.0, "a"),
    ],
)
def test_thresholds_by_hand(votes: tuple[int, ...], threshold: float, expected: str) -> None:
    assert consensus(poll(*votes), threshold)["preference"].tolist() == [expected]


def test_without_a_usable_verdict() -> None:
    table = poll(0, 0, 0, 3).assign(reason=["timeout", "garbled", "timeout"])
    (line,) = consensus(table, 0.5).to_dict("records")
    assert pd.isna(line["preference"])
    assert pd.isna(line["share"])
    assert line["unusable"] == 3
    assert line["reason"] == "no usable verdict of 3: 2 timeout, 1 garbled"
    assert consensus(table.drop(columns="reason"), 0.5)["reason"].tolist() == ["no usable verdict of 3"]


@given(panels(), st.sampled_from([1.0, 0.9, 0.75, 2 / 3, 0.5, 0.25]))
@settings(max_examples=40, deadline=None)
def test_naive_twin(table: pd.DataFrame, threshold: float) -> None:
    made = consensus(table, threshold)
    assert plain(made) == naive(table, threshold)
    assert (made["reason"].ne("") == made["preference"].isna()).all()


@given(panels(), st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_order_orientation_and_names_do_not_matter(table: pd.DataFrame, random: Any) -> None:
    def outcomes(given_table: pd.DataFrame) -> set[tuple[Any, ...]]:
        made = consensus(given_table, 0.5)
        return {
            (line["item_id"], frozenset([line["system_x"], line["system_y"]]), line["preference"] or "none")
            for line in plain(made)
        }

    order = list(range(len(table)))
    random.shuffle(order)
    swapped = table.rename(columns={"system_x": "system_y", "system_y": "system_x"})
    assert outcomes(table) == outcomes(table.iloc[order]) == outcomes(swapped)
    names = {"a": "z", "b": "y", "c": "x", "TIE": "TIE"}
    renamed = table.assign(**{name: table[name].map(names) for name in ("system_x", "system_y", "preference")})
    expected = [names.get(line["preference"]) for line in plain(consensus(table, 0.5))]
    assert [line["preference"] for line in plain(consensus(renamed, 0.5))] == expected


def test_pair_the_other_way_round_and_words() -> None:
    table = verdicts(
        (1, "a", "b", "a"), (1, "b", "a", "b"), (1, "b", "a", "b"), (2, "b", "a", None),
        words_x=[np.nan, 20, 20, 7], words_y=[10, 5, 5, 8], category=["p", "p", "p", "q"],
    )  # fmt: skip
    made = consensus(table, 0.5, judge="three")
    assert made[["system_x", "system_y", "votes_x", "votes_y"]].values.tolist() == [["a", "b", 1, 2], ["a", "b", 0, 0]]
    assert made["preference"].iloc[0] == "b"
    # the words of a: unknown in the first verdict, so those of the second; of b: as in the first
    assert made[["words_x", "words_y", "category"]].values.tolist() == [[5.0, 10.0, "p"], [8.0, 7.0, "q"]]
    assert made["first"].isna().all()


def test_without_a_threshold_the_verdicts_stay() -> None:
    table = verdicts((1, "a", "b", "a"), (1, "b", "a", "a"), (1, "a", "b", "TIE"), (1, "a", "b", None), judge="k")
    made = consensus(table, None)
    assert made[table.columns.drop("judge")].equals(table.drop(columns="judge"))
    assert made["judge"].tolist() == ["panel"] * 4
    assert made[["votes_x", "votes_y", "votes_tie", "unusable"]].values.tolist() == np.eye(4, dtype=int).tolist()
    assert made["share"].tolist()[:3] == [1.0, 1.0, 0.0]
    assert np.isnan(made["share"].iloc[3])


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_result_is_a_matches_table(threshold: float | None) -> None:
    table = verdicts(*[(i, *pair, pair[i % 2]) for i in range(4) for pair in [("a", "b"), ("b", "c"), ("c", "a")]])
    made = consensus(table, threshold)
    assert len(bradley_terry(made)) == 3
    if threshold is not None:  # a consensus of a consensus changes nothing
        assert consensus(made, threshold)["preference"].equals(made["preference"])


def test_no_rows() -> None:
    empty = verdicts(judge=[])
    for threshold in THRESHOLDS:
        made = consensus(empty, threshold)
        assert len(made) == 0
        assert {"preference", "share", "votes_x"} <= set(made.columns)
    rows = consensus_table(empty, **OPTIONS)
    assert len(rows) == 20
    assert rows["estimate"].isna().all()
    assert rows["note"].str.startswith("undefined: ").all()
    assert spread_over_groups(empty, group="judge", **OPTIONS)["note"].str.startswith("undefined: ").all()
    assert single_judges(empty) == {}


def test_refused() -> None:
    table = poll(1, 1)
    for threshold in (0.0, 1.1, float("nan")):
        with pytest.raises(ValueError, match="allowed is above 0 and at most 1"):
            consensus(table, threshold)
    with pytest.raises(ValueError, match=r"given twice, first 0\.5"):
        consensus_table(table, thresholds=(0.5, 0.5), **OPTIONS)
    with pytest.raises(ValueError, match="missing column item_id"):
        consensus(table.drop(columns="item_id"), 0.5)
    with pytest.raises(ValueError, match="1 of 2 rows have no item_id"):
        consensus(table.assign(item_id=[1, np.nan]), 0.5)
    with pytest.raises(ValueError, match="prefer none of their two systems"):
        consensus(table.assign(preference="c"), None)
    with pytest.raises(ValueError, match="2 of 2 rows have no judge"):
        single_judges(table.assign(judge=np.nan))
    with pytest.raises(ValueError, match="missing column g"):
        consensus_by_group(table, group="g")
    assert [threshold_name(threshold) for threshold in (1, 2 / 3, None)] == ["1", "0.666667", "none"]


def value(rows: pd.DataFrame, measure: str, threshold: str) -> pd.Series:
    found = rows[(rows["measure"] == measure) & (rows["slice"] == f"threshold={threshold}")]
    assert len(found) == 1
    return found.iloc[0]


def test_table_by_hand() -> None:
    # item 1: a 3, b 1 of 4; item 2: a 2, tie 1 of 3, one unusable; item 3: none usable; item 4: a 1, b 1
    parts = {1: poll(3, 1), 2: poll(2, 0, 1, 1), 3: poll(0, 0, 0, 4), 4: poll(1, 1)}
    table = pd.concat([part.assign(item_id=item) for item, part in parts.items()])
    rows = consensus_table(table, thresholds=(1.0, 0.75, 0.5, None), **OPTIONS)
    assert list(rows.columns) == list(COLUMNS)
    assert set(rows["judge"]) == {"panel"}
    expected = {  # draws, results; decided; overruled, usable verdicts where decided
        "1": (3, 3, 0, None),
        "0.75": (2, 3, 1, (1, 4)),  # item 1: one of four overruled
        "0.5": (1, 3, 2, (2, 7)),  # and item 2: one of three
        "none": (1, 9, 8, None),
    }
    for threshold, (draws, results, decided, minority) in expected.items():
        for measure, numerator in (("draw_rate", draws), ("decisive_rate", decided)):
            line = value(rows, measure, threshold)
            assert (line["numerator"], line["denominator"]) == (numerator, results)
            assert line["ci_low"] <= line["estimate"] <= line["ci_high"]
        line = value(rows, "minority_rate", threshold)
        if minority:
            assert (line["numerator"], line["denominator"]) == minority
            assert not line["ci_high"] > 1 - float(threshold)  # NaN for one item
        else:
            assert np.isnan(line["estimate"])
            assert line["note"].startswith("undefined: ")
    five = pd.concat([poll(3, 0).assign(item_id=item) for item in range(5)])
    whole = value(consensus_table(five, **OPTIONS), "minority_rate", "1")  # unanimity overrules nobody, ever
    assert whole[["estimate", "ci_low", "ci_high"]].tolist() == [0, 0, 0]
    assert value(rows, "coverage", "0.5")[["numerator", "denominator"]].tolist() == [3, 4]
    assert value(rows, "coverage", "none")[["numerator", "denominator"]].tolist() == [9, 14]
    assert value(rows, "draw_rate", "0.5")["note"].startswith("1 of 4 pairs left out: 1 without a usable verdict")
    assert value(rows, "draw_rate", "0.5")[["n_used", "n_excluded", "method"]].tolist() == [3, 1, "Wilson"]


@given(panels())
@settings(max_examples=10, deadline=None)
def test_stricter_decides_no_more(table: pd.DataFrame) -> None:
    rows = consensus_table(table, thresholds=(0.5, 0.75, 0.9, 1.0), ci_level=0.9, resamples=20, seed=1)
    for measure, sign in (("draw_rate", 1), ("decisive_rate", -1), ("minority_rate", -1)):
        estimates = rows.loc[rows["measure"] == measure, "estimate"].dropna()
        assert (np.diff(estimates) * sign >= -1e-12).all()
    made = consensus(table, 0.75)
    decided = made["preference"].dropna()
    line = value(rows, "draw_rate", "0.75")
    assert (line["numerator"], line["denominator"]) == (int((decided == "TIE").sum()), len(decided))
    assert consensus_table(table, thresholds=(1.0,), ci_level=0.9, resamples=20, seed=1).equals(
        rows[rows["slice"] == "threshold=1"].reset_index(drop=True)
    )


def grouped() -> pd.DataFrame:
    """Draws: g 1 of 2, h 0 of 1, and k has no verdict."""
    parts = [
        poll(1, 1).assign(item_id=1, category="g"),
        poll(2, 0).assign(item_id=2, category="g"),
        poll(0, 3).assign(item_id=3, category="h"),
        poll(0, 0, 0, 1).assign(item_id=4, category="k"),
    ]
    return pd.concat(parts)


def test_groups_by_hand() -> None:
    table = consensus_by_group(grouped(), group="category", thresholds=(0.5, None))
    assert table.columns.tolist() == ["group", "threshold", "pairs", "draws", "draw_rate", "no_verdict"]
    assert table.fillna(-1).values.tolist() == [
        ["g", "0.5", 2, 1, 0.5, 0], ["g", "none", 4, 0, 0, 0],
        ["h", "0.5", 1, 0, 0, 0], ["h", "none", 3, 0, 0, 0],
        ["k", "0.5", 1, 0, -1, 1], ["k", "none", 1, 0, -1, 1],
    ]  # fmt: skip
    rows = spread_over_groups(grouped(), group="category", thresholds=(0.5,), **OPTIONS)
    mean, spread = value(rows, "draw_rate_mean", "0.5"), value(rows, "draw_rate_sd", "0.5")
    assert mean["estimate"] == 0.25
    assert spread["estimate"] == pytest.approx(np.std([0.5, 0], ddof=1))
    for line in (mean, spread):
        assert (line["n_used"], line["n_excluded"]) == (2, 1)
        assert "over groups" in line["method"]
        assert "1 without a result" in line["note"]
        assert line["ci_low"] <= line["estimate"] <= line["ci_high"]


def test_groups_that_share_items_form_pairs_of_their_own() -> None:
    table = poll(2, 2).assign(first=["a", "a", "b", "b"])
    made = consensus_by_group(table, group="first", thresholds=(0.5,))
    assert made[["group", "pairs", "draws"]].values.tolist() == [["a", 1, 0], ["b", 1, 0]]


def test_spread_of_one_group_and_of_equal_groups() -> None:
    one = spread_over_groups(poll(1, 1).assign(category="g"), group="category", thresholds=(0.5,), **OPTIONS)
    assert one["estimate"].fillna(-1).tolist() == [1.0, -1.0]
    assert one["note"].iloc[1].startswith("undefined: 1 groups, 2 are needed")
    three = pd.concat([poll(1, 1).assign(item_id=name) for name in "ghk"])
    equal = spread_over_groups(three, group="item_id", thresholds=(0.5,), **OPTIONS)
    assert equal["estimate"].tolist() == [1.0, 0.0]


def test_spread_against_pandas() -> None:
    rng = np.random.default_rng(3)
    table = verdicts(*[(int(i), "a", "b", rng.choice(["a", "b", "TIE"])) for i in rng.integers(0, 60, 400)])
    chosen: dict[str, Any] = {"group": "item_id", "thresholds": (0.5,)}
    rates = consensus_by_group(table, **chosen)["draw_rate"]
    rows = spread_over_groups(table, **chosen, **OPTIONS)
    assert rows["estimate"].tolist() == pytest.approx([rates.mean(), rates.std()])


def test_each_judge_alone() -> None:
    table = pd.concat([poll(1, 0).assign(judge="k"), poll(0, 2).assign(judge="c"), poll(0, 1, 1).assign(judge="m")])
    alone = single_judges(table)
    assert list(alone) == ["c", "k", "m"]
    assert [len(alone[name]) for name in alone] == [2, 1, 2]
    assert alone["c"]["judge"].tolist() == ["c", "c"]


def test_quick_enough() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 20, 100_000)
    names = np.array([f"s{number:02}" for number in range(20)], dtype=object)
    table = pd.DataFrame({"item_id": rng.integers(0, 100, len(x)), "system_x": names[x]})
    table["system_y"] = names[(x + rng.integers(1, 20, len(x))) % 20]
    table["preference"] = table["system_x"].where(rng.random(len(x)) < 0.7, "TIE")
    began = time.process_time()
    consensus(table, 0.75)
    assert time.process_time() - began < 1
