"""Elo over orders of the matches: orders by hand, evalica, one order at a time, resamples, what is undefined."""

import math
from itertools import pairwise

import evalica
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judgelab.measure.elo_orders as module
from judgelab.measure.elo_gaps import band, elo_draws, elo_gaps, elo_ranking, elo_table
from judgelab.measure.elo_orders import elo_by_group, elo_orders, match_orders
from judgelab.measure.ranking import by_system, elo

COLUMNS = ["system_x", "system_y", "preference"]
OPTIONS = {"permutations": 60, "ci_level": 0.9, "resamples": 80, "seed": 7, "judge": "panel"}


def matches(*rows):
    return pd.DataFrame(list(rows), columns=COLUMNS)


def random_matches(n, systems=5, seed=1, missing=0.1, items=None):
    rng = np.random.default_rng(seed)
    x = rng.integers(systems, size=n)
    y = (x + rng.integers(1, systems, size=n)) % systems
    names = np.array(list("abcdefghij")[:systems], dtype=object)
    kind = rng.choice(4, n, p=[0.6, 0.2, 0.2 - missing / 2, missing / 2])
    preference = np.select([kind == 0, kind == 1, kind == 2], [names[np.minimum(x, y)], names[y], "TIE"], None)
    table = pd.DataFrame({"system_x": names[x], "system_y": names[y], "preference": preference})
    table["item_id"] = rng.integers(items or n, size=n)
    return table


def measure(table, name):
    return by_system(table[table["measure"] == name])


@st.composite
def tables(draw):
    names = "abcde"
    pair = st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda p: p[0] != p[1])
    drawn = draw(st.lists(st.tuples(pair, st.sampled_from("xytn")), min_size=0, max_size=30))
    return matches(*((x, y, {"x": x, "y": y, "t": "TIE", "n": None}[w]) for (x, y), w in drawn))


def in_order(table, order):
    """The decided matches in one order."""
    return table[table["preference"].notna()].iloc[order]


def test_two_orders_by_hand():
    # a beats b, b beats a, from 1000 with K 32. The first winner gets 16; the second, 32 points behind, gets
    # 32 / (1 + 10^(-32/400)) = 17.4704. So who wins last ends at 1001.4704 and the other at 998.5296.
    last = 32 / (1 + 10 ** (-32 / 400)) - 16
    table = matches(("a", "b", "a"), ("a", "b", "b"))
    orders = match_orders(2, permutations=40, seed=3)
    found = elo_orders(table, permutations=40, seed=3)
    sign = np.where(orders[:, 1] == 0, 1, -1)
    assert 0 < (sign == 1).sum() < 40
    assert found.systems == ("a", "b")
    assert found.ratings[:, 0] == pytest.approx(1000 + sign * last, abs=1e-10)
    assert found.ratings[:, 1] == pytest.approx(1000 - sign * last, abs=1e-10)
    assert found.played.tolist() == [2, 2]


@settings(max_examples=40, deadline=None)
@given(tables(), st.floats(1, 64), st.sampled_from([2.0, math.e, 10.0]), st.booleans())
def test_equals_one_order_at_a_time(table, k, base, weighted):
    if weighted:
        table["weight"] = 0.5 + np.arange(len(table)) % 4
    options = {"k": k, "base": base, "initial": 1200.0, "scale": 350.0}
    found = elo_orders(table, permutations=4, seed=5, **options)
    orders = match_orders(int(table["preference"].notna().sum()), permutations=4, seed=5)
    for order, ratings in zip(orders, found.ratings, strict=True):
        slow = by_system(elo(in_order(table, order), **options)).reindex(found.systems)
        np.testing.assert_allclose(ratings, slow.to_numpy(dtype=float), atol=1e-9, rtol=0)


def test_equals_evalica():
    table = random_matches(500, systems=8, missing=0.0)
    orders = match_orders(500, permutations=20, seed=2)
    found = elo_orders(table, permutations=20, seed=2, k=20)
    for order, ratings in zip(orders, found.ratings, strict=True):
        t = table.iloc[order]
        won = [
            evalica.Winner.Draw if p == "TIE" else evalica.Winner.X if p == x else evalica.Winner.Y
            for x, p in zip(t["system_x"], t["preference"], strict=True)
        ]
        theirs = evalica.elo(t["system_x"].tolist(), t["system_y"].tolist(), won, k=20).scores
        assert ratings == pytest.approx(theirs[list(found.systems)].to_numpy(), abs=1e-9)
    assert found.ratings.mean(axis=1) == pytest.approx(1000)


def test_orders_are_uniform_and_keep_their_beginning():
    orders = match_orders(3, permutations=6000, seed=1)
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    # six orders, 1000 of each expected; chi-square with 5 degrees of freedom is above 20.5 once in a thousand
    assert len(counts) == 6
    assert ((counts - 1000) ** 2 / 1000).sum() < 20.5
    assert (match_orders(3, permutations=50, seed=1) == orders[:50]).all()
    assert (match_orders(3, permutations=50, seed=2) != orders[:50]).any()


def test_chunks_change_nothing(monkeypatch):
    table = random_matches(90, items=30)
    whole, gaps = elo_ranking(table, **OPTIONS)
    for name, value in (("LANES", 7), ("STEPS", 5), ("KEYS", 100)):
        monkeypatch.setattr(module, name, value)
    again = elo_ranking(table, **OPTIONS)
    pd.testing.assert_frame_equal(whole, again.table)
    pd.testing.assert_frame_equal(gaps, again.gaps)
    pd.testing.assert_frame_equal(whole, elo_table(table, **OPTIONS))
    pd.testing.assert_frame_equal(gaps, elo_gaps(table, **OPTIONS))


def test_table_says_what_the_orders_do():
    table = random_matches(120, items=40)
    found = elo_table(table, **OPTIONS)
    orders = elo_orders(table, permutations=60, seed=7)
    names = list(orders.systems)
    assert measure(found, "elo")[names].to_numpy() == pytest.approx(orders.ratings.mean(axis=0))
    assert measure(found, "elo").is_monotonic_decreasing
    assert measure(found, "elo_order_spread")[names].to_numpy() == pytest.approx(orders.ratings.std(axis=0, ddof=1))
    alone = found[found["measure"] == "elo_by_order"].set_index("slice")
    both = found[found["measure"] == "elo"].set_index("slice")
    assert alone["estimate"].tolist() == both["estimate"].tolist()
    for at, name in enumerate(names):
        # order statistics round(59 p) of 60 ratings, p = 0.05 and 0.95: the places 3 and 56
        ordered = np.sort(orders.ratings[:, at])
        line = alone.loc[f"system={name}"]
        assert (line["ci_low"], line["ci_high"]) == (ordered[3], ordered[56])
    # items and order together vary more than the order alone
    assert (both["ci_high"] - both["ci_low"]).mean() > (alone["ci_high"] - alone["ci_low"]).mean()
    assert both["n_used"].sum() == 2 * table["preference"].notna().sum()
    assert both["n_excluded"].sum() == 2 * table["preference"].isna().sum()
    assert set(found["judge"]) == {"panel"}


def test_resamples_are_whole_items_played_as_often_as_drawn():
    # Each of two items has its own two systems, two wins each. A resample has item 1 twice (4 wins of a in a row),
    # once, or never (a undefined); the end of 2 and of 4 wins in a row from 1000 is computed one by one.
    def after(wins):
        ahead = 0.0
        for _ in range(wins):
            ahead += 32 * (1 - 1 / (1 + 10 ** (-2 * ahead / 400)))
        return 1000 + ahead

    table = matches(("a", "b", "a"), ("c", "d", "c"), ("b", "a", "a"), ("d", "c", "c"))
    table["item_id"] = [1, 2, 1, 2]
    draws = elo_draws(table, **OPTIONS)
    a, c = draws.resampled[:, 0], draws.resampled[:, 2]
    assert draws.n_items == 2
    kinds = {(round(after(4), 6), None), (round(after(2), 6), round(after(2), 6)), (None, round(after(4), 6))}
    seen = {tuple(None if np.isnan(v) else round(v, 6) for v in pair) for pair in zip(a, c, strict=True)}
    assert seen == kinds
    first = elo_table(table, **OPTIONS).iloc[0]
    assert np.isnan(first["ci_low"])
    assert "resamples undefined" in first["note"]
    assert "not comparable with them" in first["note"]


def test_one_match_an_item_without_item_id():
    table = random_matches(40, missing=0.0)
    table["item_id"] = np.arange(40)
    own = elo_table(table.drop(columns="item_id"), **OPTIONS)
    pd.testing.assert_frame_equal(own, elo_table(table, **OPTIONS))
    table["item_id"] = None
    pd.testing.assert_frame_equal(own, elo_table(table, **OPTIONS))


def test_gaps_fit_the_table():
    table = random_matches(150, items=50)
    found, gaps = elo_ranking(table, scale=300, base=8, **OPTIONS)
    ratings = measure(found, "elo")
    names = ratings.index.tolist()
    assert gaps["slice"].tolist() == [f"gap={a}|{b}" for a, b in pairwise(names) for _ in "12"]
    points = gaps[gaps["measure"] == "elo_gap"].reset_index(drop=True)
    chance = gaps[gaps["measure"] == "win_probability"].reset_index(drop=True)
    assert points["estimate"].to_numpy() == pytest.approx(-np.diff(ratings.to_numpy()))
    for column in ("estimate", "ci_low", "ci_high"):
        assert chance[column].to_numpy() == pytest.approx(1 / (1 + 8 ** (-points[column].to_numpy() / 300)))
    draws = elo_draws(table, scale=300, base=8, **OPTIONS)
    where = [draws.read.systems.index(name) for name in names[:2]]
    values = np.sort(draws.resampled[:, where[0]] - draws.resampled[:, where[1]])
    # places round(79 · 0.05) = 4 and round(79 · 0.95) = 75 of 80
    assert (points["ci_low"][0], points["ci_high"][0]) == (values[4], values[75])
    assert set(gaps["n_used"]) == {table["preference"].notna().sum()}


def test_sides_and_names_do_not_matter():
    table = random_matches(60, items=20)
    swapped = table.rename(columns={"system_x": "system_y", "system_y": "system_x"})
    renamed = table.replace({name: f"long {name}" for name in "abcde"})
    found = measure(elo_table(table, **OPTIONS), "elo")
    other = measure(elo_table(swapped, **OPTIONS), "elo")
    assert found.to_dict() == pytest.approx(other.to_dict())
    new = measure(elo_table(renamed, **OPTIONS), "elo")
    assert new.to_dict() == {f"long {name}": value for name, value in found.items()}


def test_rows_in_another_order_change_the_mean_only_by_chance():
    # Other matches meet in each order, so that the means differ by about sqrt(2 / permutations) spreads.
    table = random_matches(100)
    one = elo_orders(table, permutations=2000, seed=1)
    other = elo_orders(table.sample(frac=1, random_state=1), permutations=2000, seed=1)
    place = [other.systems.index(name) for name in one.systems]
    error = one.ratings.std(axis=0) * math.sqrt(2 / 2000)
    assert (np.abs(one.ratings.mean(axis=0) - other.ratings.mean(axis=0)[place]) < 4.5 * error).all()


def test_groups():
    table = random_matches(80, items=4)
    found = elo_by_group(table, group="item_id", permutations=30, seed=4, k=10)
    assert found["group"].drop_duplicates().tolist() == table["item_id"].drop_duplicates().tolist()
    for name, rows in table.groupby("item_id"):
        part = found[found["group"] == name].set_index("system")
        orders = elo_orders(rows, permutations=30, seed=4, k=10)
        systems = list(orders.systems)
        assert sorted(part.index) == sorted(systems)
        assert part["elo"][systems].to_numpy() == pytest.approx(orders.ratings.mean(axis=0), nan_ok=True)
        assert part["elo_spread"][systems].to_numpy() == pytest.approx(orders.ratings.std(axis=0, ddof=1), nan_ok=True)
        assert part["matches"][systems].tolist() == orders.played.tolist()
        assert part["elo"].dropna().is_monotonic_decreasing


def test_groups_with_nothing_decided():
    table = matches(("a", "b", None), ("a", "b", "b")).assign(category=["p", "q"])
    found = elo_by_group(table, group="category", permutations=1, seed=1)
    assert found["group"].tolist() == ["p", "p", "q", "q"]
    assert found["system"].tolist() == ["a", "b", "b", "a"]
    assert found["matches"].tolist() == [0, 0, 1, 1]
    assert found["elo"].isna().tolist() == [True, True, False, False]
    assert found["elo_spread"].isna().all()
    assert elo_by_group(table[:0], group="category", permutations=2, seed=1).empty
    with pytest.raises(ValueError, match="1 of 2 rows have no category"):
        elo_by_group(table.assign(category=["p", None]), group="category", seed=1)
    with pytest.raises(ValueError, match="missing column shape"):
        elo_by_group(table, group="shape", seed=1)


@pytest.mark.parametrize("rows", [[], [("a", "b", None)]])
def test_nothing_decided(rows):
    found, gaps = elo_ranking(matches(*rows), **OPTIONS)
    assert gaps.empty
    assert len(found) == 6 * len(rows)
    assert found["estimate"].isna().all()
    assert found["note"].str.startswith("undefined: no match").all()


def test_one_match_has_no_interval():
    found, gaps = elo_ranking(matches(("a", "b", "b")), **OPTIONS)
    assert measure(found, "elo").to_dict() == pytest.approx({"b": 1016, "a": 984})
    assert found["note"].iloc[0] == "no interval: 1 item"
    assert measure(found, "elo_order_spread").to_dict() == pytest.approx({"b": 0, "a": 0})
    assert gaps["estimate"].tolist() == pytest.approx([32, 1 / (1 + 10 ** (-32 / 400))])
    assert gaps["ci_low"].isna().all()


def test_ties_only_and_one_order():
    table = matches(*[("a", "b", "TIE"), ("b", "c", "TIE")] * 12)
    found, gaps = elo_ranking(table, **{**OPTIONS, "permutations": 1})
    assert set(found["estimate"].dropna()) == {1000.0}
    spread = found[found["measure"] == "elo_order_spread"]
    assert spread["note"].str.startswith("undefined: one order").all()
    assert gaps["estimate"].tolist() == [0, 0.5, 0, 0.5]
    assert gaps["note"].str.contains("the interval is a point").all()
    assert gaps["ci_low"].tolist() == [0, 0.5, 0, 0.5]


def test_apart_missing_and_undefeated():
    # a always wins against b, c against d; e has no verdict. The neighbours of the ranking belong to two groups.
    table = matches(*[("a", "b", "a"), ("c", "d", "c")] * 20, ("c", "d", "c"), ("e", "a", None))
    found, gaps = elo_ranking(table, **OPTIONS)
    notes = found[found["measure"] == "elo"].set_index("slice")["note"]
    assert "no chain of matches joins it to" in notes["system=a"]
    assert "1 of 21 matches left out: 1 without preference" in notes["system=a"]
    assert notes["system=e"].startswith("undefined: no match")
    assert gaps["slice"].drop_duplicates().tolist() == ["gap=c|a", "gap=a|b", "gap=b|d"]
    across = gaps["slice"].isin(["gap=c|a", "gap=b|d"])
    assert gaps["estimate"].isna().tolist() == across.tolist()
    assert gaps["note"][across].str.startswith("undefined: no chain of matches joins the two").all()
    assert set(gaps["n_excluded"]) == {1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"permutations": 0},
        {"k": 0.0},
        {"base": 1.0},
        {"scale": -1.0},
        {"initial": math.inf},
        {"ci_level": 1.0},
        {"resamples": 0},
    ],
)
def test_options_out_of_range(wrong):
    with pytest.raises(ValueError, match="allowed is"):
        elo_table(matches(("a", "b", "a")), **{**OPTIONS, **wrong})


def test_far_apart_ratings_do_not_overflow():
    table = matches(("a", "b", "a"), ("a", "b", "b"))
    table["weight"] = 1e6
    found = elo_orders(table, permutations=4, seed=1)
    orders = match_orders(2, permutations=4, seed=1)
    slow = [by_system(elo(in_order(table, order), k=32))[["a", "b"]].to_numpy() for order in orders]
    assert found.ratings == pytest.approx(np.array(slow), rel=1e-12)


def test_bands():
    assert [band(gap) for gap in (0, 49.99, -49.99, 50, -100, 150)] == ["tied"] * 3 + ["moderate"] * 3
    assert [band(gap) for gap in (150.01, -151, math.inf, math.nan)] == ["strong"] * 3 + ["undefined"]
    assert band(20, tied=10, strong=15) == "strong"
    with pytest.raises(ValueError, match="allowed is 0 <= tied <= strong"):
        band(1, tied=2, strong=1)
