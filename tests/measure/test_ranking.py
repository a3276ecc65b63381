"""Elo and Bradley-Terry: golden scores, a plain second computation, evalica, and rankings that do not exist."""

import evalica
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit

from judgelab.measure.ranking import Matches, bradley_terry, by_system, elo, groups, strengths
from judgelab.study.sources.llmfao import read_evalica, read_llmfao

COLUMNS = ["system_x", "system_y", "preference"]


def matches(*rows):
    return pd.DataFrame(list(rows), columns=COLUMNS)


def winners(table):
    names = {True: evalica.Winner.X, False: evalica.Winner.Y}
    return [
        evalica.Winner.Draw if p == "TIE" else names[p == x]
        for x, p in zip(table["system_x"], table["preference"], strict=True)
    ]


@st.composite
def tables(draw, systems=5, least=1, most=40):
    names = "abcdefgh"[:systems]
    pair = st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda p: p[0] != p[1])
    drawn = draw(st.lists(st.tuples(pair, st.sampled_from("xyt")), min_size=least, max_size=most))
    return matches(*((x, y, {"x": x, "y": y, "t": "TIE"}[w]) for (x, y), w in drawn))


def notes(table):
    return dict(zip(table["slice"].str.removeprefix("system="), table["note"], strict=True))


@pytest.mark.data
@pytest.mark.parametrize("source", ["food", "simple", "llmfao"])
@pytest.mark.parametrize(("name", "ranking"), [("elo", elo), ("bradley_terry", bradley_terry)])
def test_golden_scores(shared, source, name, ranking):
    # evalica's golden files: 16 digits, Elo from 1000 with K 4 in the order of the file, Bradley-Terry with sum 1.
    published = read_evalica(shared / "data" / "evalica")
    crowd = read_llmfao(shared / "data" / "llmfao").crowd
    table = {"food": published.food, "simple": published.simple, "llmfao": crowd}[source]
    golden = published.golden
    golden = golden[(golden["source"] == source) & (golden["algorithm"] == name)].set_index("system")["score"]
    ours = by_system(ranking(table))
    assert sorted(ours.index) == sorted(golden.index)
    assert ours.reindex(golden.index).to_numpy() == pytest.approx(golden.to_numpy(), rel=1e-13)


@pytest.mark.data
def test_rank_correlation_of_people_and_gpt4(shared):
    # ../shared/data/README.md: humans and GPT-4 0.730918, over 59 systems
    read = read_llmfao(shared / "data" / "llmfao")
    people, judge = by_system(bradley_terry(read.crowd)), by_system(bradley_terry(read.gpt4))
    assert len(people) == 59
    assert round(people.corr(judge, method="spearman"), 6) == 0.730918


def test_elo_by_hand():
    # a beats b at 1000 to 1000: +2. Then a (1002) ties with c (1000): e = 1 / (1 + 10^(-2/400)).
    table = matches(("a", "b", "a"), ("a", "c", "TIE"))
    lost = 4 * (1 / (1 + 10 ** (-2 / 400)) - 0.5)
    assert by_system(elo(table)).to_dict() == pytest.approx({"a": 1002 - lost, "c": 1000 + lost, "b": 998}, abs=1e-12)
    assert elo(table)["n_used"].tolist() == [2, 1, 1]


@given(tables(), st.floats(1, 64))
def test_elo_equals_evalica_and_keeps_its_mean(table, k):
    ours = by_system(elo(table, k=k))
    theirs = evalica.elo(table["system_x"].tolist(), table["system_y"].tolist(), winners(table), k=k).scores
    assert ours.to_dict() == pytest.approx(theirs.to_dict(), rel=1e-12)
    assert ours.mean() == pytest.approx(1000, rel=1e-12)


@given(tables())
def test_elo_of_sides_exchanged_is_the_same(table):
    exchanged = table.rename(columns={"system_x": "system_y", "system_y": "system_x"})
    assert by_system(elo(exchanged)).to_dict() == pytest.approx(by_system(elo(table)).to_dict(), rel=1e-13)


def test_elo_depends_on_the_order_and_does_not_overflow():
    table = matches(("a", "b", "a"), ("b", "c", "b"), ("c", "a", "c"))
    assert by_system(elo(table)).to_dict() != by_system(elo(table[::-1])).to_dict()
    huge = by_system(elo(matches(*[("a", "b", "a")] * 20, ("a", "b", "b")), k=1e6))
    assert np.isfinite(huge).all()


def test_a_weight_is_a_factor_of_k_and_a_number_of_matches():
    weighted = matches(("a", "b", "a"), ("a", "b", "b")).assign(weight=[3, 1])
    assert by_system(bradley_terry(weighted)).to_dict() == pytest.approx({"a": 0.75, "b": 0.25}, abs=1e-12)
    assert by_system(elo(weighted.head(1))).to_dict() == {"a": 1006.0, "b": 994.0}


@given(tables())
def test_strengths_balance_wins_and_expectations(table):
    # The score equations: every system has won exactly as many matches as its strengths let expect.
    ranking = bradley_terry(table)
    strength = by_system(ranking).dropna()
    read = Matches.of(table)
    codes = [read.systems.index(name) for name in strength.index]
    wins = read.wins[np.ix_(codes, codes)]
    p = strength.to_numpy()
    expected = ((wins + wins.T) * p[:, None] / (p[:, None] + p)).sum(axis=1)
    assert wins.sum(axis=1) == pytest.approx(expected, abs=1e-9)
    assert len(p) == 0 or p.sum() == pytest.approx(1, abs=1e-12)
    assert ((strength.to_numpy() > 0) & (strength.to_numpy() < 1)).all()


@given(tables(systems=4, least=12))
def test_bradley_terry_equals_evalica_run_to_convergence(table):
    ours = by_system(bradley_terry(table))
    assume(ours.notna().all())
    options = {"tolerance": 1e-13, "limit": 100_000}
    theirs = evalica.bradley_terry(
        table["system_x"].tolist(), table["system_y"].tolist(), winners(table), **options
    ).scores
    assert ours.to_dict() == pytest.approx((theirs / theirs.sum()).to_dict(), rel=1e-8)


@given(tables(), st.randoms(use_true_random=False))
def test_bradley_terry_knows_no_order_of_matches_and_no_side(table, random):
    order = list(range(len(table)))
    random.shuffle(order)
    other = table.iloc[order].rename(columns={"system_x": "system_y", "system_y": "system_x"})
    first, second = by_system(bradley_terry(table)), by_system(bradley_terry(other))
    assert first.to_dict() == pytest.approx(second.to_dict(), rel=1e-9, nan_ok=True)


@given(tables(systems=6, most=15))
def test_groups_are_those_of_a_plain_closure(table):
    read = Matches.of(table)
    reach = (read.wins > 0) | np.eye(len(read.systems), dtype=bool)
    for middle in range(len(reach)):
        reach |= reach[:, [middle]] & reach[[middle], :]
    same = reach & reach.T
    found = groups(read.wins)
    assert ((found[:, None] == found) == same).all()


def test_planted_strengths_come_back():
    # Expected wins as data: 100 matches a pair, won as the strengths say.
    true = np.array([0.5, 0.3, 0.15, 0.05])
    wins = 100 * true[:, None] / (true[:, None] + true)
    np.fill_diagonal(wins, 0)
    assert strengths(wins) == pytest.approx(true, rel=1e-12)


def test_far_apart_strengths():
    # 10^9 wins to one: odds of 10^9
    p = strengths(np.array([[0.0, 1e9], [1.0, 0.0]]))
    assert p[0] / p[1] == pytest.approx(1e9, rel=1e-6)
    chain = np.zeros((30, 30))
    for i in range(29):
        chain[i, i + 1], chain[i + 1, i] = 9, 1
    p = strengths(chain)
    assert p[:-1] / p[1:] == pytest.approx(np.full(29, 9.0), rel=1e-9)
    assert np.log(p) == pytest.approx(np.log(p[0]) - np.log(9) * np.arange(30), rel=1e-9)
    assert expit(np.log(9)) == pytest.approx(0.9)


def test_undefeated_and_winless_are_named_and_the_rest_is_ranked():
    table = matches(
        ("top", "a", "top"), ("a", "b", "a"), ("a", "b", "a"), ("a", "b", "b"), ("low", "b", "b"), ("top", "low", "top")
    )
    ranking = bradley_terry(table)
    assert by_system(ranking).to_dict() == pytest.approx(
        {"a": 2 / 3, "b": 1 / 3, "top": np.nan, "low": np.nan}, abs=1e-12, nan_ok=True
    )
    said = notes(ranking)
    assert said["top"] == "undefined: undefeated in its 2 matches: its strength has no upper bound"
    assert said["low"] == "undefined: winless in its 2 matches: its strength has no lower bound"
    assert said["a"] == "strengths of 2 of 4 systems; undefined for top, low"
    line = ranking[ranking["slice"] == "system=a"].iloc[0]
    assert (line["n_used"], line["n_excluded"]) == (3, 1)


def test_disconnected_groups():
    one = [("a", "b", "a"), ("a", "b", "b")]
    other = [("c", "d", "TIE")]
    ranking = bradley_terry(matches(*one, *other))
    assert ranking["estimate"].isna().all()  # two groups of one size: none is the main one
    assert notes(ranking)["a"] == "undefined: no chain of matches joins it with b to the others"
    bigger = bradley_terry(matches(*one, *other, ("d", "e", "TIE")))
    assert by_system(bigger)[["c", "d", "e"]].to_numpy() == pytest.approx(np.full(3, 1 / 3), abs=1e-12)
    assert notes(bigger)["a"] == "undefined: no chain of matches joins it with b to the systems that have strengths"
    apart = notes(elo(matches(*one, *other)))
    assert apart["a"] == "no chain of matches joins it to c, d: not comparable with them"


def test_a_group_that_never_lost_to_the_rest():
    inner = [("a", "b", "TIE"), ("b", "c", "TIE")]
    ranking = bradley_terry(matches(*inner, ("d", "e", "TIE"), ("d", "a", "d"), ("e", "b", "e"), ("f", "d", "d")))
    said = notes(ranking)
    assert said["d"] == "undefined: with e undefeated by all the others"
    assert said["f"].startswith("undefined: winless in its 1 match")
    assert by_system(ranking)["a"] == pytest.approx(1 / 3)


def test_one_undefeated_of_two_has_no_ranking():
    ranking = bradley_terry(matches(*[("a", "b", "a")] * 3))
    assert ranking["estimate"].isna().all()
    assert ranking["note"].str.startswith("undefined: ").all()


def test_ties_only_give_equal_strengths():
    table = matches(("a", "b", "TIE"), ("b", "c", "TIE"))
    assert by_system(bradley_terry(table)).to_numpy() == pytest.approx(np.full(3, 1 / 3), abs=1e-15)
    assert (by_system(elo(table)) == 1000).all()


def test_no_match_and_no_preference():
    empty = matches()
    assert len(elo(empty)) == len(bradley_terry(empty)) == 0
    table = matches(("a", "b", "a"), ("a", "b", "b"), ("a", "c", None))
    for ranking in (elo(table), bradley_terry(table)):
        assert notes(ranking)["c"] == "undefined: no match; 1 of 1 matches left out: 1 without preference"
        line = ranking[ranking["slice"] == "system=a"].iloc[0]
        assert (line["n_used"], line["n_excluded"]) == (2, 1)
    nothing = bradley_terry(matches(("a", "b", None)))
    assert nothing["note"].str.startswith("undefined: no match").all()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("a", "b", "c"), "1 of 2 rows prefer none of their two systems, TIE or nothing; first .*'c'"),
        (("a", "a", "a"), "1 of 2 rows let a system meet itself"),
        (("a", None, "a"), "1 of 2 rows leave a system without a name"),
        (("a", "TIE", "a"), "1 of 2 rows call a system TIE"),
    ],
)
def test_wrong_matches_are_refused(row, message):
    with pytest.raises(ValueError, match=message):
        bradley_terry(matches(("a", "b", "a"), row))


@pytest.mark.parametrize("weight", [0, -1, np.nan, np.inf])
def test_wrong_weights_are_refused(weight):
    with pytest.raises(ValueError, match="1 of 1 rows have a weight that is not a finite number above 0"):
        elo(matches(("a", "b", "a")).assign(weight=float(weight)))


def test_wrong_options_are_refused():
    for options in ({"k": 0}, {"scale": -1}, {"base": 1}, {"initial": np.nan}):
        with pytest.raises(ValueError, match="allowed is"):
            elo(matches(("a", "b", "a")), **options)
    with pytest.raises(ValueError, match="matches: missing column preference"):
        elo(matches().drop(columns="preference"))
