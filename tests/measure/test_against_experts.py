"""Panels against experts: perfect, reversed and divided panels, groups, thresholds, and the table for people."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from judgelab.measure.against_experts import against_experts, group_ratings
from judgelab.measure.consensus import THRESHOLDS, single_judges
from judgelab.measure.ranking import elo
from judgelab.measure.rows import COLUMNS
from judgelab.report.expert_tables import expert_tables

SYSTEMS = "ABCDE"
ITEMS = ("q1", "q2", "q3", "q4")
ORDERS = {"q1": "ABCDE", "q2": "EDCBA", "q3": "CAEBD", "q4": "BDAEC"}  # the experts' order in each item, best first
SLICES = ["threshold=1", "threshold=0.9", "threshold=0.75", "threshold=0.5", "threshold=none"]
OPTIONS = {"permutations": 30, "ci_level": 0.95, "resamples": 100, "seed": 1}


def verdicts(orders, *, judges=("j1", "j2", "j3")):
    """Each judge sees both presentations of all pairs and follows the orders."""
    rows = [
        (judge, item, "old" if item < "q3" else "new", presented, a, b, a if order.index(a) < order.index(b) else b)
        for judge in judges
        for item, order in orders.items()
        for a, b in combinations(SYSTEMS, 2)
        for presented in ("original", "swapped")
    ]
    return pd.DataFrame(rows, columns=["judge", "item_id", "category", "pass", "system_x", "system_y", "preference"])


def ranks_of(orders, reviewers=("r1",)):
    rows = [(group, who, s, place) for group, o in orders.items() for who in reviewers for place, s in enumerate(o, 1)]
    return pd.DataFrame(rows, columns=["group", "reviewer_id", "system", "rank"])


def measured(panels, ranks, **options):
    return against_experts(panels, ranks, **{"group": "item_id", **OPTIONS, **options})


def values(rows, measure, judge="panel"):
    return rows[(rows["judge"] == judge) & (rows["measure"] == measure)].set_index("slice")["estimate"]


@pytest.mark.parametrize(("orders", "rho"), [(ORDERS, 1), ({q: o[::-1] for q, o in ORDERS.items()}, -1)])
@pytest.mark.parametrize("reviewers", [("r1",), ("r1", "r2", "r3")])
def test_a_perfect_and_a_reversed_panel(orders, rho, reviewers):
    rows = measured({"panel": verdicts(orders)}, ranks_of(ORDERS, reviewers))
    assert list(rows) == list(COLUMNS)
    for measure in ("spearman", "kendall"):
        mean, sd = values(rows, f"{measure}_mean"), values(rows, f"{measure}_sd")
        assert mean.index.tolist() == SLICES
        assert mean.tolist() == pytest.approx([rho] * 5, abs=1e-15)
        assert sd.tolist() == [0.0] * 5
        assert values(rows, f"{measure}_p_mean").tolist() == pytest.approx([2 / 120] * 5)  # 2 of 5! orders
    assert values(rows, "spearman_p_combined").tolist() == pytest.approx([2 / 120**4] * 5)
    assert (values(rows, "ranked_min") == 5).all()
    assert (rows["n_used"] == 4).all()


def test_without_ranks_there_are_no_rows():
    for panels, ranks in (({"panel": verdicts(ORDERS)}, ranks_of({})), ({}, ranks_of(ORDERS))):
        rows = measured(panels, ranks)
        assert len(rows) == 0
        assert list(rows) == list(COLUMNS)
    assert len(measured({"panel": verdicts(ORDERS)}, ranks_of(ORDERS), thresholds=())) == 0


def test_a_divided_panel_has_a_ranking_where_two_of_three_suffice():
    # Two judges of three follow the experts, one reverses them: 2/3 of the verdicts. Above that all pairs are ties, and
    # ratings that are all alike have no correlation.
    turned = {item: order[::-1] for item, order in ORDERS.items()}
    panel = pd.concat([verdicts(ORDERS, judges=("j1", "j2")), verdicts(turned, judges=("j3",))], ignore_index=True)
    rows = measured({"panel": panel} | single_judges(panel), ranks_of(ORDERS))
    mean = values(rows, "spearman_mean")
    assert mean[SLICES[:3]].isna().all()
    assert mean[SLICES[3:]].tolist() == [1, 1]
    told = rows[(rows["judge"] == "panel") & (rows["slice"] == "threshold=1")]
    assert told["note"].str.startswith("undefined: ").all()
    assert told["note"].str.contains("4 of 4 groups left out: 4 ranked all alike", regex=False).all()
    for judge, rho in (("j1", 1), ("j2", 1), ("j3", -1)):
        assert values(rows, "spearman_mean", judge).tolist() == pytest.approx([rho] * 5)


def test_the_table_names_the_panel_and_then_each_judge():
    turned = {item: order[::-1] for item, order in ORDERS.items()}
    panel = pd.concat([verdicts(ORDERS, judges=("j1", "j2")), verdicts(turned, judges=("j3",))], ignore_index=True)
    rows = measured({"panel": panel} | single_judges(panel), ranks_of(ORDERS), thresholds=(0.5, None, 0.75))
    table = expert_tables(rows)
    assert table["judges"].tolist() == ["all on the panel", "", "", "j1", "", "", "j2", "", "", "j3", "", ""]
    assert table["threshold"].tolist() == ["0.75", "0.5", "No T."] * 4
    assert table["Spearman"].tolist()[:4] == ["undefined", *["1.000 ± 0.000"] * 3]
    assert table["Kendall"].tolist()[9:] == ["-1.000 ± 0.000"] * 3
    assert table["p (Spearman / Kendall)"].tolist()[1] == "0.017 / 0.017"
    assert table["groups"].tolist()[:2] == ["0 of 4", "4"]
    assert table["ranked per group"].tolist()[:2] == ["", "5"]
    assert list(expert_tables(rows[:0])) == list(table)
    assert len(expert_tables(rows[:0])) == 0


def test_groups_may_be_categories():
    # In each category one item says ABCDE: twice as many matches, the same order.
    orders = dict.fromkeys(ITEMS, "ABCDE") | {"q3": "EDCBA", "q4": "EDCBA"}
    ranks = ranks_of({"old": "ABCDE", "new": "EDCBA"})
    rows = measured({"panel": verdicts(orders)}, ranks, group="category")
    assert values(rows, "spearman_mean").tolist() == [1] * 5
    assert (rows["n_used"] == 2).all()
    by_item = measured({"panel": verdicts(orders)}, ranks_of(orders))
    assert (by_item["n_used"] == 4).all()


def test_groups_and_systems_without_ranks_or_matches_are_left_out():
    ranks = pd.concat([ranks_of({q: ORDERS[q] for q in ("q1", "q2")}), ranks_of({"q9": "ABCDE"})])
    panel = verdicts(ORDERS)
    panel = panel[~((panel["item_id"] == "q2") & ((panel["system_x"] == "A") | (panel["system_y"] == "A")))]
    rows = measured({"panel": panel}, ranks, thresholds=(0.75,))
    assert values(rows, "spearman_mean").tolist() == [1]
    assert (values(rows, "ranked_min").item(), values(rows, "ranked_max").item()) == (4, 5)
    assert rows[["n_used", "n_excluded"]].drop_duplicates().values.tolist() == [[2, 1]]
    assert rows["note"].str.contains("1 of 3 groups left out: 1 with fewer than 3 ranked", regex=False).all()


def test_two_systems_all_undecided_and_no_verdict():
    ranks = ranks_of(ORDERS)
    pair = verdicts(ORDERS)
    pair = pair[(pair["system_x"] == "A") & (pair["system_y"] == "B")]
    silent = verdicts(ORDERS).assign(preference=None)
    for panel in (pair, silent, pair[:0]):
        rows = measured({"panel": panel}, ranks)
        assert values(rows, "spearman_mean").isna().all()
        assert rows["note"].str.startswith("undefined: ").all()
        assert rows["note"].str.contains("4 with fewer than 3 ranked", regex=False).all()
        assert set(expert_tables(rows)["Spearman"]) == {"undefined"}


def test_ratings_of_a_group_by_hand():
    table = verdicts({"q1": "ABCDE"})
    table = table[(table["system_x"] == "A") & (table["system_y"] == "B")]
    # a consensus is one match: 1000 ± 16; no threshold: six in a row, the same in every order
    one = group_ratings(table, 0.75, group="item_id", permutations=5, seed=1)
    assert one.values.tolist() == [["q1", "A", 1016.0, 0.0, 1], ["q1", "B", 984.0, 0.0, 1]]
    assert list(one) == ["group", "system", "rating", "spread", "matches"]
    six = group_ratings(table, None, group="item_id", permutations=5, seed=1, initial=0, k=8, scale=200)
    wanted = elo(table, initial=0, k=8, scale=200)["estimate"].tolist()
    assert six["rating"].tolist() == pytest.approx(wanted)
    assert six["matches"].tolist() == [6, 6]


def test_order_of_rows_and_names_change_no_correlation():
    rng = np.random.default_rng(1)
    panel = verdicts(ORDERS)
    noisy = panel["preference"].mask(rng.random(len(panel)) < 0.3, panel["system_x"])
    panel, ranks = panel.assign(preference=noisy), ranks_of(ORDERS)
    new = dict(zip(SYSTEMS, ["e x", "d", "c|c", "b", "a"], strict=True))
    other = panel.assign(**{name: panel[name].map(new) for name in ("system_x", "system_y", "preference")})
    numbers = ["estimate", "ci_low", "ci_high"]
    options = {"thresholds": (0.5, 1.0), "permutations": 200}
    rows = measured({"panel": panel}, ranks, **options)
    renamed = measured({"panel": other}, ranks.assign(system=ranks["system"].map(new)), **options)
    pd.testing.assert_frame_equal(rows[numbers], renamed[numbers])
    mean = values(rows, "spearman_mean")
    assert (mean < 1).all()
    shuffled = measured(
        {"panel": panel.sample(frac=1, random_state=3)}, ranks.sample(frac=1, random_state=4), **options
    )
    assert values(shuffled, "spearman_mean").to_dict() == pytest.approx(mean.to_dict(), abs=0.06)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group": "nothing"}, "nothing"),
        ({"thresholds": (2.0,)}, "threshold"),
        ({"permutations": 0}, "permutations is 0"),
        ({"ci_level": 2}, "ci_level"),
    ],
)
def test_wrong_options_are_refused(changes, message):
    assert THRESHOLDS[-1] is None
    with pytest.raises(ValueError, match=message):
        measured({"panel": verdicts({"q1": "ABCDE"})}, ranks_of(ORDERS), **changes)
