"""Disputed pairs and items, and systems whose ratings stand apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import median_abs_deviation

from judgelab.measure.disputes import disputed_items, disputed_pairs, outliers

NAN = float("nan")


def verdicts(*rows: tuple[str, Any, str, str, Any]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["judge", "item_id", "system_x", "system_y", "preference"])
    return table.astype({"preference": object}).replace({"preference": {None: np.nan}})


@st.composite
def panels(draw: Any) -> pd.DataFrame:
    rows = []
    for _ in range(draw(st.integers(0, 30))):
        x, y = draw(st.sampled_from([("a", "b"), ("b", "a"), ("a", "c"), ("b", "c")]))
        preference = draw(st.sampled_from([x, x, y, "TIE", None]))
        rows.append((draw(st.sampled_from("klm")), draw(st.sampled_from("ij")), x, y, preference))
    return verdicts(*rows)


def naive(table: pd.DataFrame) -> dict[tuple[str, frozenset[str]], dict[str, Any]]:
    """Votes and judges of every item and pair, by what was said."""
    found: dict[tuple[str, frozenset[str]], dict[str, Any]] = {}
    for line in table.to_dict("records"):
        key = (line["item_id"], frozenset([line["system_x"], line["system_y"]]))
        poll = found.setdefault(key, {"votes": [], "judges": {}})
        if isinstance(line["preference"], str):
            poll["votes"].append(line["preference"])
            poll["judges"].setdefault(line["judge"], set()).add(line["preference"])
    return found


@given(panels())
@settings(max_examples=30, deadline=None)
def test_pairs_naive_twin(table: pd.DataFrame) -> None:
    made = {
        (line["item_id"], frozenset([line["system_x"], line["system_y"]])): line
        for line in disputed_pairs(table).to_dict("records")
    }
    expected = {key: poll for key, poll in naive(table).items() if len(set(poll["votes"])) > 1}
    assert set(made) == set(expected)
    for key, poll in expected.items():
        line, votes = made[key], poll["votes"]
        for side, said in (("x", line["system_x"]), ("y", line["system_y"]), ("tie", "TIE")):
            assert line[f"votes_{side}"] == votes.count(said)
            alone = sorted(judge for judge, all_said in poll["judges"].items() if all_said == {said})
            assert line[f"judges_{side}"] == ", ".join(alone)
        split = sorted(judge for judge, all_said in poll["judges"].items() if len(all_said) > 1)
        assert line["judges_split"] == ", ".join(split)
        most = max(votes.count(said) for said in set(votes))
        assert line["disagreement"] == pytest.approx(1 - most / len(votes))


@given(panels())
@settings(max_examples=30, deadline=None)
def test_items_naive_twin(table: pd.DataFrame) -> None:
    made = disputed_items(table)
    polls = naive(table)
    assert set(made["item_id"]) == {item for item, _ in polls}
    for line in made.to_dict("records"):
        votes = [poll["votes"] for (item, _), poll in polls.items() if item == line["item_id"]]
        several = [said for said in votes if len(said) > 1]
        assert line["denominator"] == len(several)
        assert line["left_out"] == len(votes) - len(several)
        assert line["numerator"] == sum(len(set(said)) > 1 for said in several)
        if several:
            assert line["disputed_rate"] == line["numerator"] / line["denominator"]
        else:
            assert np.isnan(line["disputed_rate"])
            assert line["reason"].startswith("undefined: ")
    # every disputed pair is counted
    assert made["numerator"].sum() == len(disputed_pairs(table))


def test_by_hand() -> None:
    table = verdicts(
        ("k", 1, "a", "b", "a"), ("k", 1, "b", "a", "b"),  # k changes its mind with the presentation
        ("l", 1, "a", "b", "a"), ("l", 1, "b", "a", "a"),
        ("m", 1, "a", "b", "TIE"), ("m", 1, "b", "a", None),
        ("n", 1, "a", "b", None),
        ("k", 2, "a", "b", "b"), ("l", 2, "a", "b", "a"),
        ("k", 3, "a", "b", "b"), ("l", 3, "a", "b", "b"),  # of one mind
        ("k", 4, "a", "b", None),
    ).assign(category="p")  # fmt: skip
    pairs = disputed_pairs(table)
    assert pairs.columns.tolist() == [
        "item_id", "category", "system_x", "system_y", "votes_x", "votes_y", "votes_tie", "unusable",
        "judges_x", "judges_y", "judges_tie", "judges_split", "disagreement",
    ]  # fmt: skip
    assert pairs.values.tolist() == [
        [2, "p", "a", "b", 1, 1, 0, 0, "l", "k", "", "", 0.5],
        [1, "p", "a", "b", 3, 1, 1, 2, "l", "", "m", "k", pytest.approx(0.4)],
    ]
    items = disputed_items(table)
    assert items.drop(columns="reason").fillna(-1).values.tolist() == [
        [1, "p", 1.0, 1, 1, 0], [2, "p", 1.0, 1, 1, 0], [3, "p", 0.0, 0, 1, 0], [4, "p", -1.0, 0, 0, 1],
    ]  # fmt: skip


@given(panels(), st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_order_of_rows_does_not_matter(table: pd.DataFrame, random: Any) -> None:
    order = list(range(len(table)))
    random.shuffle(order)
    shuffled = table.iloc[order]
    columns = ["item_id", "unusable", "judges_tie", "judges_split", "disagreement"]

    def told(given_table: pd.DataFrame) -> list[Any]:
        made = disputed_pairs(given_table)
        pairs = [frozenset(pair) for pair in made[["system_x", "system_y"]].values.tolist()]
        return sorted(zip(made[columns].values.tolist(), map(sorted, pairs), strict=True))

    assert told(table) == told(shuffled)
    assert disputed_items(table).equals(disputed_items(shuffled))


def test_nothing_to_dispute() -> None:
    empty = verdicts()
    assert len(disputed_pairs(empty)) == len(disputed_items(empty)) == 0
    ties = verdicts(("k", 1, "a", "b", "TIE"), ("l", 1, "a", "b", "TIE"))
    assert len(disputed_pairs(ties)) == 0
    assert disputed_items(ties)["disputed_rate"].tolist() == [0.0]
    with pytest.raises(ValueError, match="missing column judge"):
        disputed_pairs(ties.drop(columns="judge"))
    with pytest.raises(ValueError, match="rows have no judge"):
        disputed_pairs(ties.assign(judge=np.nan))


def ratings(*values: float, group: str = "g") -> pd.DataFrame:
    return pd.DataFrame({"group": group, "system": [f"s{number}" for number in range(len(values))], "rating": values})


def test_outliers_of_iglewicz_and_hoaglin_by_hand() -> None:
    # median 5, absolute deviations 4 1 1 0 0 1 15, sorted 0 0 1 1 1 4 15, their median 1
    made = outliers(ratings(1, 4, 6, 5, 5, 4, 20)).set_index("system")
    assert made.loc["s6", "z"] == pytest.approx(0.6745 * 15)
    assert made.loc["s0", "z"] == pytest.approx(0.6745 * -4)
    assert made.index[made["outlier"]].tolist() == ["s6"]
    assert made.loc["s6", "direction"] == "strong"
    assert set(made["method"]) == {"median absolute deviation"}
    assert outliers(ratings(-1, -4, -6, -5, -5, -4, -20))["direction"].tolist() == ["weak"] + [""] * 6
    assert outliers(ratings(1, 4, 6, 5, 5, 4, 20), cut=2.5)["direction"].tolist()[:3] == ["strong", "weak", ""]


def test_mean_absolute_deviation_where_the_median_is_0() -> None:
    # median 2, deviations 0 0 0 0 3: their median 0, their mean 0.6; z = 3 / (1.253314 * 0.6) = 3.9894
    made = outliers(ratings(2, 2, 2, 2, 5))
    assert made.iloc[0][["system", "outlier", "direction"]].tolist() == ["s4", True, "strong"]
    assert made["z"].tolist() == pytest.approx([3 / (1.253314 * 0.6), 0, 0, 0, 0])
    assert set(made["method"]) == {"mean absolute deviation, the median is 0"}


def test_least_keeps_out_what_is_near_the_median() -> None:
    # median 6.99995; deviations 0.00015 0.00005 0.00005 0.00025 0.06005 0.09995, the middle 0.00015 and 0.00025
    close = ratings(6.9998, 7.0, 6.9999, 7.0002, 7.06, 6.9)
    made = outliers(close)
    assert made["system"].tolist()[:2] == ["s5", "s4"]
    assert made["z"].tolist()[:2] == pytest.approx([0.6745 * -0.09995 / 0.0002, 0.6745 * 0.06005 / 0.0002])  # 202.5
    assert made["outlier"].sum() == 2
    weak = outliers(close, least=0.08)
    assert weak[["system", "outlier", "direction"]].values.tolist()[:2] == [["s5", True, "weak"], ["s4", False, ""]]
    assert weak.drop(columns=["outlier", "direction"]).equals(made.drop(columns=["outlier", "direction"]))
    assert not outliers(close, least=1)["outlier"].any()
    assert outliers(close, least=0.0).equals(made)
    # at least means: 1.0 - 0.9 is 0.09999999999999998
    below = ratings(0.9, 1.0, 1.0, 1.0, 1.0, 1.0)
    assert outliers(below, least=0.1)["direction"].tolist()[0] == "weak"
    assert not outliers(below, least=0.11)["outlier"].any()
    # a gap alone is not enough
    assert not outliers(ratings(1, 20, 40, 60, 80), least=5)["outlier"].any()


def test_undefined_outliers() -> None:
    for table, reason in (
        (ratings(1, 2, 30), "undefined: 3 rated systems in the group, 4 are needed"),
        (ratings(0.1, 0.1, 0.1, 0.1), "undefined: all ratings of the group are equal"),
        (ratings(0.3, 0.1 + 0.2, 0.3, 0.1 + 0.2, 0.3), "undefined: all ratings of the group are equal"),
    ):
        made = outliers(table)
        assert made["z"].isna().all()
        assert set(made["reason"]) == {reason}
        assert not made["outlier"].any()
        assert set(made["direction"]) == {""}
    missing = outliers(ratings(1, 2, 3, 4, NAN))
    assert missing["reason"].tolist() == ["", "", "", "", "undefined: no rating"]
    assert missing["system"].iloc[-1] == "s4"
    assert outliers(ratings(1, 2, 3, NAN))["z"].isna().all()
    assert len(outliers(ratings())) == 0


def test_groups_apart_and_in_order() -> None:
    table = pd.concat([ratings(1, 2, 3, 4, 20, group="g"), ratings(101, 102, 103, 104, 120, group="f"), ratings(9)])
    table.iloc[-1, :2] = ["h", "s0"]
    made = outliers(table)
    assert made[["group", "system"]].values.tolist()[:2] == [["f", "s4"], ["g", "s4"]]
    assert made[["group", "system"]].values.tolist()[-1] == ["h", "s0"]
    assert made.equals(outliers(table.sample(frac=1, random_state=1)))


@given(st.lists(st.integers(-50, 50), min_size=4, max_size=15), st.integers(-9, 9), st.integers(1, 9))
@settings(max_examples=25, deadline=None)
def test_scipy_and_invariance(values: list[int], shift: int, scale: int) -> None:
    given_ratings = np.array(values, dtype=float)
    made = outliers(ratings(*given_ratings)).sort_values("system", key=lambda names: names.str[1:].astype(int))
    deviation = median_abs_deviation(given_ratings)
    if deviation > 0:
        assert made["z"].tolist() == pytest.approx(
            list(0.6745 * (given_ratings - np.median(given_ratings)) / deviation)
        )
    moved = outliers(ratings(*(given_ratings * scale + shift))).sort_values(
        "system", key=lambda names: names.str[1:].astype(int)
    )
    assert np.allclose(made["z"], moved["z"], equal_nan=True)
    turned = outliers(ratings(*-given_ratings)).sort_values("system", key=lambda names: names.str[1:].astype(int))
    assert np.allclose(made["z"], -turned["z"], equal_nan=True)


def test_refused_ratings() -> None:
    with pytest.raises(ValueError, match="missing column rating"):
        outliers(ratings(1).drop(columns="rating"))
    with pytest.raises(ValueError, match="1 of 2 rows have an infinite rating"):
        outliers(ratings(1, np.inf))
    with pytest.raises(ValueError, match="1 of 2 rows repeat a group and system"):
        outliers(ratings(1, 2).assign(system="s"))
    with pytest.raises(ValueError, match="2 of 2 rows have no group or system"):
        outliers(ratings(1, 2).assign(group=np.nan))
    for cut in (0.0, NAN):
        with pytest.raises(ValueError, match="allowed is above 0"):
            outliers(ratings(1, 2), cut=cut)
    for least in (-0.1, NAN, np.inf):
        with pytest.raises(ValueError, match="allowed is 0 and more"):
            outliers(ratings(1, 2), least=least)
