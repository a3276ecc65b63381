"""Rankings in one call: by hand, naive twins with scipy, a planted order effect and none, degenerate input."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from judgelab.measure.listwise import listwise_matches, listwise_scores, listwise_table
from judgelab.measure.matches import Matches
from judgelab.measure.rows import COLUMNS

from .conftest import pick

FAST = {"ci_level": 0.95, "resamples": 50, "seed": 1}


def rankings(calls, judge="j"):
    """Rows of (item, order, presented, ranking or None), systems as letters."""
    lines = []
    for item, order, shown, ranked in calls:
        result = (np.nan, "no list") if ranked is None else (list(ranked), "")
        lines.append((judge, item, "c", order, list(shown), *result))
    columns = ["judge", "item_id", "category", "order", "presented", "ranking", "reason"]
    return pd.DataFrame(lines, columns=columns).astype({"ranking": object})


def pairwise(rows, judge="j"):
    table = pd.DataFrame(rows, columns=["item_id", "system_x", "system_y", "preference"]).assign(judge=judge)
    return table.astype({"preference": object})


NONE = pairwise([])


def find(rows, measure, judge="j"):
    return pick(rows, measure, "", "all", judge)


def tau(first, second):
    names = sorted(first)
    return kendalltau([first.index(n) for n in names], [second.index(n) for n in names]).statistic


def simulated(n_items, effect, seed, k=4, orders=2, noise=1.0):
    """Quality by system, noise by call, and ``effect`` per place towards the front; the second order is the reverse."""
    rng = np.random.default_rng(seed)
    systems = np.array(list("ABCDEFGH")[:k])
    calls = []
    for item in range(n_items):
        shown = rng.permutation(systems)
        for order in range(orders):
            own = shown if order == 0 else shown[::-1] if order == 1 else rng.permutation(systems)
            value = np.array([-0.7 * np.flatnonzero(systems == s)[0] for s in own], dtype=float)
            value += rng.normal(0, noise, k) - effect * np.arange(k)
            calls.append((item, f"order-{order + 1}", own, own[np.argsort(-value)]))
    return rankings(calls)


random_calls = st.lists(
    st.tuples(st.integers(0, 3), st.permutations("ABCD"), st.one_of(st.none(), st.permutations("ABCD"))), max_size=10
).map(lambda calls: rankings([(item, f"o{n}", shown, ranked) for n, (item, shown, ranked) in enumerate(calls)]))
random_pairs = st.sampled_from(list(itertools.permutations("ABCD", 2)))
random_verdicts = st.sampled_from(["x", "x", "y", "TIE", None])
random_pairwise = st.lists(st.tuples(st.integers(0, 3), random_pairs, random_verdicts), max_size=50).map(
    lambda rows: pairwise([(i, *xy, {"x": xy[0], "y": xy[1], "TIE": "TIE", None: np.nan}[p]) for i, xy, p in rows])
)


def test_by_hand(options):
    table = rankings(
        [
            ("i1", "order-1", "ABC", "ABC"),  # as shown: 1
            ("i1", "order-2", "CBA", "ACB"),  # shown C B A, ranked A C B: C-B right, C-A and B-A wrong: -1/3
            ("i2", "order-1", "BCA", "BAC"),  # B-C and B-A right, C-A wrong: 1/3
            ("i2", "order-2", "ACB", None),
            ("i3", "order-1", "CAB", None),
            ("i3", "order-2", "BAC", None),
        ]
    )
    votes = pairwise(
        [
            *[("i1", "A", "B", "A"), ("i1", "B", "A", "A")],  # A
            *[("i1", "A", "C", "A"), ("i1", "C", "A", "C")],  # tie
            *[("i1", "B", "C", "C"), ("i1", "C", "B", "C"), ("i1", "C", "B", "TIE")],  # C: two of three
            *[("i2", "A", "B", "A"), ("i2", "B", "C", "B")],  # A, B; nothing of A and C
        ]
    )
    rows = listwise_table(table, votes, **options)
    assert tuple(rows.columns) == COLUMNS
    assert set(rows["strategy"]) == {"listwise"}
    unusable = find(rows, "unusable_rate")
    assert (unusable["numerator"], unusable["denominator"], unusable["n_used"]) == (3, 6, 3)
    # i1: ABC has A over B (right) and B over C (wrong); ACB has both right. i2: BAC has A over B wrong, B over C right.
    agreement = find(rows, "listwise_agreement")
    assert (agreement["numerator"], agreement["denominator"]) == (4, 6)
    assert (agreement["n_used"], agreement["n_excluded"]) == (2, 1)
    expected = "3 of 9 pairs left out: 2 tied pairwise, 1 without a pairwise result; 3 of 6 calls left out: 3 unusable"
    assert agreement["note"].endswith(expected)
    # i1: pairwise wins A 1.5, B 0, C 1.5. Against ABC: A-B right, B-C wrong, A-C tied: 0. Against ACB: 2 / sqrt(3 2).
    kendall = find(rows, "listwise_kendall")
    assert kendall["estimate"] == pytest.approx((0 + 2 / np.sqrt(6)) / 2)
    assert "2 of 3 items left out: 1 without a ranking, 1 without a pairwise result of each pair" in kendall["note"]
    assert kendall["method"].startswith("τ_b")
    # 1, -1/3 and 1/3; the items' sums are 2/3 and 1/3: of their four signs +- two are as far from 0
    effect, p = find(rows, "order_effect_kendall"), find(rows, "order_effect_p")
    assert effect["estimate"] == pytest.approx(1 / 3)
    assert p["estimate"] == pytest.approx(0.5)
    assert (p["n_used"], p["n_excluded"]) == (2, 1)
    # ABC and ACB: 1/3, with the same winner
    assert find(rows, "order_consistency")["estimate"] == pytest.approx(1 / 3)
    assert find(rows, "order_consistency")["note"].endswith("2 of 3 items left out: 2 without two usable orders")
    same = find(rows, "same_winner_rate")
    assert (same["numerator"], same["denominator"]) == (1, 1)
    first, last = find(rows, "first_place_rate"), find(rows, "last_place_rate")
    assert (first["numerator"], first["denominator"]) == (2, 3)  # ABC of ABC, BAC of BCA
    assert (last["numerator"], last["denominator"]) == (1, 3)  # ACB of CBA
    assert first["method"].startswith("0.333 expected")


@given(random_calls, random_pairwise)
@settings(max_examples=20, deadline=None)
def test_naive_twin(table, votes):
    rows = listwise_table(table, votes, **FAST)
    if len(table) == 0:
        assert len(rows) == 0
        return
    usable = [line for line in table.to_dict("records") if isinstance(line["ranking"], list)]

    def preference(item, x, y):
        given_ = votes[(votes["item_id"] == item)]
        own = [p for a, b, p in given_[["system_x", "system_y", "preference"]].to_numpy() if {a, b} == {x, y}]
        own = [p for p in own if not pd.isna(p)]
        return next((name for name in (x, y) if 2 * own.count(name) > len(own)), "TIE") if own else None

    agreeing = compared = 0
    kendalls, effects, consistent = [], [], []
    for line in usable:
        ranked, item = line["ranking"], line["item_id"]
        wins = dict.fromkeys(ranked, 0.0)
        whole = True
        for x, y in itertools.combinations(ranked, 2):
            found = preference(item, x, y)
            compared += found in (x, y)
            agreeing += found == x
            whole &= found is not None
            for name in (x, y):
                wins[name] += 0.5 if found == "TIE" else float(found == name)
        if whole and len(set(wins.values())) > 1:
            kendalls.append(kendalltau([-n for n in range(4)], [wins[name] for name in ranked]).statistic)
        effects.append(tau(line["presented"], ranked))
    for one, other in itertools.combinations(usable, 2):
        if one["item_id"] == other["item_id"] and one["presented"] != other["presented"]:
            consistent.append((tau(one["ranking"], other["ranking"]), one["ranking"][0] == other["ranking"][0]))
    expected = {
        "listwise_agreement": [agreeing / compared] if compared else [],
        "listwise_kendall": kendalls,
        "order_effect_kendall": effects,
        "order_consistency": [value for value, _ in consistent],
        "same_winner_rate": [value for _, value in consistent],
        "first_place_rate": [line["presented"][0] == line["ranking"][0] for line in usable],
        "last_place_rate": [line["presented"][-1] == line["ranking"][0] for line in usable],
        "unusable_rate": [1 - len(usable) / len(table)],
    }
    for measure, values in expected.items():
        line = find(rows, measure)
        if values:
            assert line["estimate"] == pytest.approx(np.mean(values), abs=1e-12), measure
        else:
            assert np.isnan(line["estimate"]), measure
            assert line["note"].startswith("undefined: "), measure


@given(random_calls)
@settings(max_examples=20, deadline=None)
def test_order_effect_p_by_enumeration(table):
    """All signs of the items' sums of τ; reversing what was shown turns every sign and leaves p."""
    usable = table[table["ranking"].map(lambda value: isinstance(value, list)).astype(bool)]
    orders = {tuple(shown) for shown in usable["presented"]}
    if len(orders) < 2:
        return
    sums = {}
    for line in usable.to_dict("records"):
        sums[line["item_id"]] = sums.get(line["item_id"], 0) + tau(line["presented"], line["ranking"])
    values = np.array(list(sums.values()))
    signed = [abs(np.dot(signs, values)) for signs in itertools.product((1, -1), repeat=len(values))]
    expected = np.mean(np.array(signed) >= abs(values.sum()) - 1e-9)
    rows = listwise_table(table, NONE, **FAST)
    assert find(rows, "order_effect_p")["estimate"] == pytest.approx(expected)
    reverse = listwise_table(table.assign(presented=table["presented"].map(lambda shown: shown[::-1])), NONE, **FAST)
    assert find(reverse, "order_effect_p")["estimate"] == pytest.approx(expected)
    turned = find(reverse, "order_effect_kendall")["estimate"]
    assert turned == pytest.approx(-find(rows, "order_effect_kendall")["estimate"])
    assert find(reverse, "first_place_rate")["estimate"] == find(rows, "last_place_rate")["estimate"]


@given(random_calls, random_pairwise, st.randoms())
@settings(max_examples=20, deadline=None)
def test_invariances(table, votes, random):
    def estimates(calls, matches):
        return listwise_table(calls, matches, **FAST)["estimate"].round(10).tolist()

    expected = estimates(table, votes)
    shuffled = table.loc[random.sample(list(table.index), len(table))]
    swapped = votes.rename(columns={"system_x": "system_y", "system_y": "system_x"})
    np.testing.assert_array_equal(estimates(shuffled, swapped), expected)
    names = {"A": "z", "B": "b", "C": "m", "D": "a"}
    renamed = table.copy()
    for column in ("presented", "ranking"):
        renamed[column] = [[names[s] for s in v] if isinstance(v, list) else v for v in table[column]]
    np.testing.assert_array_equal(estimates(renamed, votes.replace(names)), expected)


def test_planted_order_effect_is_found():
    rows = listwise_table(simulated(60, 1.0, 1), NONE, **FAST)
    assert find(rows, "order_effect_kendall")["ci_low"] > 0.1
    assert find(rows, "order_effect_p")["estimate"] < 0.001
    assert find(rows, "first_place_rate")["ci_low"] > 0.25
    quiet = listwise_table(simulated(60, 0.0, 1), NONE, **FAST)
    assert find(rows, "order_consistency")["estimate"] < find(quiet, "order_consistency")["estimate"] - 0.2
    back = listwise_table(simulated(60, -1.0, 1), NONE, **FAST)
    assert find(back, "order_effect_kendall")["ci_high"] < -0.1
    assert find(back, "last_place_rate")["ci_low"] > 0.25


def test_quiet_without_an_effect():
    """Items differ and rankings are noisy: p is below 0.1 in about a tenth of the studies, and small in few."""
    p = [
        find(listwise_table(simulated(12, 0.0, seed, k=3), NONE, ci_level=0.95, resamples=1, seed=1), "order_effect_p")
        for seed in range(80)
    ]
    values = np.array([line["estimate"] for line in p])
    assert np.mean(values < 0.1) <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 80)
    assert np.mean(values < 0.5) > 0.3


def test_a_judge_without_noise_has_no_effect():
    """One ranking whatever the order; orders and their reverse: every item's sum is exactly 0."""
    rows = listwise_table(simulated(10, 0.0, 2, noise=0), NONE, **FAST)
    assert find(rows, "order_effect_kendall")["estimate"] == pytest.approx(0, abs=1e-12)
    assert find(rows, "order_effect_p")["estimate"] == 1
    assert find(rows, "order_consistency")["estimate"] == 1
    assert find(rows, "same_winner_rate")["estimate"] == 1


def test_full_agreement_with_its_own_matches():
    """Pairwise verdicts made from the rankings of one order agree with that order wholly."""
    table = simulated(20, 0.3, 3, orders=1)
    rows = listwise_table(table, listwise_matches(table), **FAST)
    assert find(rows, "listwise_agreement")["estimate"] == 1
    assert find(rows, "listwise_kendall")["estimate"] == pytest.approx(1)
    reverse = table.assign(ranking=table["ranking"].map(lambda ranked: ranked[::-1]))
    rows = listwise_table(reverse, listwise_matches(table), **FAST)
    assert find(rows, "listwise_agreement")["estimate"] == 0
    assert find(rows, "listwise_kendall")["estimate"] == pytest.approx(-1)


def test_matches():
    table = rankings([("i", "order-1", "CAB", "ABC"), ("i", "order-2", "BA", None)])
    found = listwise_matches(table)
    columns = ["pass", "system_x", "system_y", "first", "preference", "reason"]
    assert found[columns].iloc[:3].to_numpy().tolist() == [
        ["order-1", "A", "B", "A", "A", ""],
        ["order-1", "A", "C", "C", "A", ""],
        ["order-1", "B", "C", "C", "B", ""],
    ]
    assert found[["pass", "first", "reason"]].iloc[3].tolist() == ["order-2", "B", "no list"]
    assert pd.isna(found["preference"].iloc[3])
    read = Matches.of(found)
    assert read.wins.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert read.undecided.tolist() == [1, 1, 0]
    assert len(Matches.of(listwise_matches(table.iloc[:0])).x) == 0


def test_scores():
    table = rankings(
        [
            ("i1", "1", "ABC", "ABC"),  # 1, 1/2, 0
            ("i1", "2", "CBA", "BAC"),  # 1/2, 1, 0
            ("i2", "1", "AC", "CA"),  # 0, -, 1
            ("i3", "1", "AB", None),
        ]
    )
    found = listwise_scores(table)
    assert list(found.columns) == ["group", "system", "rating"]
    scores = {(line["group"], line["system"]): line["rating"] for line in found.to_dict("records")}
    expected = {("i1", "A"): 0.75, ("i1", "B"): 0.75, ("i1", "C"): 0}
    expected |= {("i2", "A"): 0, ("i2", "C"): 1, ("i3", "A"): np.nan, ("i3", "B"): np.nan}
    assert scores == pytest.approx(expected, nan_ok=True)
    overall = listwise_scores(table, overall=True)
    assert overall.to_numpy().tolist() == [["all", "A", 0.375], ["all", "B", 0.75], ["all", "C", 0.5]]
    for flag in (False, True):
        assert len(listwise_scores(table.iloc[:0], overall=flag)) == 0


@given(random_calls)
@settings(max_examples=20, deadline=None)
def test_scores_are_shares_of_matches_won(table):
    """Borda: the share of its pairs that a system wins, over an item's calls."""
    matches = listwise_matches(table).dropna(subset=["preference"])
    for line in listwise_scores(table).to_dict("records"):
        of_item = matches[matches["item_id"] == line["group"]]
        own = of_item[(of_item["system_x"] == line["system"]) | (of_item["system_y"] == line["system"])]
        if len(own):
            assert line["rating"] == pytest.approx((own["preference"] == line["system"]).mean())
        else:
            assert np.isnan(line["rating"])


def test_judges_are_kept_apart():
    good, bad = simulated(10, 0, 1, noise=0), simulated(10, 0, 1, noise=0).assign(judge="k")
    bad["ranking"] = bad["ranking"].map(lambda ranked: ranked[::-1])
    votes = listwise_matches(good)
    rows = listwise_table(pd.concat([bad, good]), pd.concat([votes, votes.assign(judge="k")]), **FAST)
    assert list(dict.fromkeys(rows["judge"])) == ["k", "j"]
    assert find(rows, "listwise_agreement", "k")["estimate"] == 0
    assert find(rows, "listwise_agreement", "j")["estimate"] == 1
    alone = listwise_table(good, votes, **FAST)
    pd.testing.assert_frame_equal(alone, rows[rows["judge"] == "j"].reset_index(drop=True))
    other = listwise_table(good, votes.assign(judge="k"), **FAST)
    assert find(other, "listwise_agreement")["note"].startswith("undefined")


def test_degenerate():
    assert len(listwise_table(rankings([]), NONE, **FAST)) == 0
    assert len(listwise_matches(rankings([]))) == 0
    broken = listwise_table(rankings([("i", "o", "AB", None), ("k", "o", "BA", None)]), NONE, **FAST)
    assert find(broken, "unusable_rate")["estimate"] == 1
    rest = broken[broken["measure"] != "unusable_rate"]
    assert rest["estimate"].isna().all()
    assert rest["note"].str.startswith("undefined: ").all()
    one = listwise_table(rankings([("i", "o", "AB", "AB")]), pairwise([("i", "A", "B", "TIE")]), **FAST)
    assert find(one, "listwise_agreement")["note"].startswith("undefined")
    assert "1 of 1 items left out: 1 with equal wins" in find(one, "listwise_kendall")["note"]
    assert find(one, "order_effect_p")["note"] == "undefined: all calls had one order"
    assert find(one, "order_consistency")["note"].startswith("undefined")


def test_one_order_is_told():
    rows = listwise_table(rankings([(item, "o", "ABC", "ABC") for item in range(20)]), NONE, **FAST)
    assert np.isnan(find(rows, "order_effect_p")["estimate"])
    for measure in ("order_effect_kendall", "first_place_rate", "last_place_rate"):
        assert "all calls had one order" in find(rows, measure)["note"]


def test_a_cycle_has_no_order():
    """A over B over C over A: each won once."""
    votes = pairwise([("i", "A", "B", "A"), ("i", "B", "C", "B"), ("i", "A", "C", "C")])
    rows = listwise_table(rankings([("i", "o", "ABC", "ABC")]), votes, **FAST)
    assert "1 with equal wins" in find(rows, "listwise_kendall")["note"]
    assert find(rows, "listwise_agreement")["estimate"] == pytest.approx(2 / 3)


def test_lists_of_different_lengths():
    """The p-value takes τ and not pairs: sums 1 and -1 of three systems and of two are equally large."""
    table = rankings([("i", "o", "ABC", "ABC"), ("k", "o", "AB", "BA")])
    rows = listwise_table(table, NONE, **FAST)
    assert find(rows, "order_effect_kendall")["estimate"] == 0
    assert find(rows, "order_effect_p")["estimate"] == 1
    assert find(rows, "first_place_rate")["method"].startswith("0.417 expected")  # (1/3 + 1/2) / 2


@pytest.mark.parametrize(
    ("shown", "ranked", "message"),
    [
        (["A"], ["A"], "two or more different systems"),
        (["A", "A"], ["A", "A"], "two or more different systems"),
        (["A", "TIE"], ["A", "TIE"], "not TIE"),
        (np.nan, ["A", "B"], "two or more different systems"),
        (["A", "B"], ["A"], "does not have each of"),
        (["A", "B"], ["A", "C"], "does not have each of"),
        (["A", "B"], ["A", "A"], "does not have each of"),
        (["A", "B"], "A, B", "a list of systems or nothing"),
    ],
)
def test_refused(shown, ranked, message):
    table = rankings([("i", "o", "AB", "AB"), ("k", "o", "AB", "AB")])
    table = table.assign(presented=[["A", "B"], shown], ranking=[["A", "B"], ranked])
    for function in (listwise_matches, listwise_scores, lambda given_: listwise_table(given_, NONE, **FAST)):
        with pytest.raises(ValueError, match=message):
            function(table)


def test_refused_tables():
    table = rankings([("i", "o", "AB", "AB"), ("k", "o", "AB", "AB")])
    with pytest.raises(ValueError, match="repeat a judge, item and order"):
        listwise_matches(pd.concat([table, table]))
    with pytest.raises(ValueError, match="missing column presented"):
        listwise_matches(table.drop(columns="presented"))
    with pytest.raises(ValueError, match="a judge, item or order is missing"):
        listwise_matches(table.assign(judge=None))
    with pytest.raises(ValueError, match="missing column judge"):
        listwise_table(table, NONE.drop(columns="judge"), **FAST)
