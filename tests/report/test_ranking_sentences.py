"""Sentences on a ranking: every outcome of who is ahead, the gaps, who cannot be ranked, and Elo beside strengths."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from judgelab.measure.leaderboard import leaderboard
from judgelab.measure.rows import frame, row
from judgelab.report.ranking_sentences import elo_sentences, points, ranking_sentences, value_text

NAN = math.nan
HOSTILE = '<img src=x onerror="alert(1)">'
COLUMNS = ["item_id", "system_x", "system_y", "preference"]
RECORD = "20 won, 8 tied, 6 lost, win rate 0.706, 95 % interval [0.600, 0.800]"


def line(system, rank, low, high, letters, **more):
    """One row of a leaderboard; without a rank there is no strength."""
    strength = 1500 - 100 * rank
    return {
        "system": system, "rank": rank, "rank_low": low, "rank_high": high, "letters": letters,
        "strength_elo": strength, "strength_low": strength - 40, "strength_high": strength + 40, "elo": strength,
        "elo_spread": 3.0, "win_rate": 24 / 34, "win_low": 0.6, "win_high": 0.8, "wins": 20, "losses": 6, "ties": 8,
        "matches": 34, "undecided": 0, "items": 34, "few": False, "note": "",
    } | more  # fmt: skip


def gap(above, below, value, low, high, *, band="moderate", note=""):
    where = {"judge": "panel", "strategy": "pairwise", "pass_": "both", "slice_": f"gap={above}|{below}", "n_used": 51}
    note = note or ("" if value == value else "undefined: no chain of matches joins the two; 1 of 52 matches left out")
    return row("elo_gap", value, interval=(low, high), ci_level=0.95, note=note, **where) | {"band": band}


def said(lines, gaps=(), *, minimum=10, judges=("j", "k")):
    table = frame([]).assign(band="") if not gaps else pd.DataFrame(list(gaps))
    made = ranking_sentences(pd.DataFrame(lines), table, minimum_matches=minimum, ci_level=0.95, judges=judges)
    assert "nan" not in repr(made).lower().replace("unanimous", "")
    return made


SURE = (line("a", 1.0, 1.0, 1.0, "a"), line("b", 2.0, 2.0, 3.0, "b"), line("c", 3.0, 2.0, 3.0, "b"))
UNSURE = (line("a", 1.0, 1.0, 2.0, "a"), line("b", 2.0, 1.0, 3.0, "ab"), line("c", 3.0, 2.0, 3.0, "b"))


def test_surely_ahead():
    made = said(SURE)
    assert list(made) == [
        f"a is surely ahead of the 2 others (95 %): {RECORD} (n = 51 matches by j and k): supported.",
        "Told apart (95 %, all pairs together): 2 of the 2 others surely below the first, a; "
        "1 of the 2 others surely above the last, c.",
        "Every system has at least 10 matches (the fewest: 34).",
        "The strengths are of the matches alone: no prior was needed.",
    ]  # 34 + 34 + 34 matches, each counted twice: 51
    assert "of b (95 %)" in said([SURE[0], line("b", 2.0, 2.0, 2.0, "b")])[0]
    assert len(said([SURE[0], line("b", 2.0, 2.0, 2.0, "b")])) == 3  # of two, telling apart is who is ahead


def test_undecided_names_all_that_can_be_the_best():
    made = said(UNSURE)
    assert made[0] == (
        "2 of 3 systems can be the best (95 %, all together): a, b; a has the highest strength: "
        f"{RECORD} (n = 51 matches by j and k): undecided."
    )
    assert "1 of the 2 others surely below the first, a" in made[1]
    grey = said([UNSURE[0], UNSURE[1] | {"matches": 4}, UNSURE[2]])
    assert "(of these with fewer than 10 matches: b)" in grey[0]
    none = said([UNSURE[0] | {"letters": "ab"}, *UNSURE[1:]])
    assert "none of the 2 others surely below the first, a" in none[1]
    shared = said([line("a", 1.5, 1.0, 2.0, "a"), line("b", 1.5, 1.0, 2.0, "a")])
    assert "a, b share the highest strength (n = 34" in shared[0]
    assert shared[0].endswith("undecided.")


def test_too_little_data_of_the_first():
    made = said([SURE[0] | {"matches": 9}, *SURE[1:]])
    assert "a has 9 matches of the 10 required" in made[0]
    assert made[0].endswith("too little data.")
    assert made[2] == "Fewer than 10 matches, so that nothing is concluded: a (9): too little data."


@pytest.mark.parametrize(
    ("preferences", "first"),
    [
        ([], "Nobody is ranked: no match was decided by j and k (n = 0 matches): too little data."),
        ([NAN] * 2, "Nobody is ranked: no match was decided by j and k (n = 0 matches, 2 matches without a verdict): "
         "too little data."),
        (["a"], "a won the only match (n = 1 match by j and k): too little data."),
        (["TIE"], "Every match is a tie (n = 1 match by j and k): nobody is ahead."),
        (["TIE"] * 5, "Every match is a tie (n = 5 matches by j and k): nobody is ahead."),
    ],
)  # fmt: skip
def test_hardly_a_match(preferences, first):
    rows = [(i, "a", "b", given) for i, given in enumerate(preferences)]
    made = leaderboard(pd.DataFrame(rows, columns=COLUMNS).assign(judge="j"), ci_level=0.95, resamples=100, seed=1,
                       permutations=5)  # fmt: skip
    told = ranking_sentences(made.table, made.gaps, minimum_matches=10, ci_level=0.95, judges=["j", "k"])
    assert told[0] == first
    assert not any("supported" in sentence for sentence in told)
    assert "nan" not in (repr(told) + repr(elo_sentences(made.table, made.gaps))).lower()
    assert not any("gap" in sentence for sentence in told) or preferences == ["a"]


def test_fewer_than_two_strengths():
    none = {"note": "undefined: undefeated in its 34 matches: its strength has no upper bound"}
    outside = line("b", NAN, NAN, NAN, "", **none)
    assert said([line("a", 1.0, 1.0, 1.0, "a"), outside])[0].startswith(
        "Nobody is ahead, because only a has a strength"
    )
    made = said([outside, line("c", NAN, NAN, NAN, "", note="undefined: winless in its 34 matches: x")])
    assert made[0] == "Nobody is ahead, because no system has a strength (n = 34 matches by j and k): too little data."
    assert "Undefeated, so that the matches alone give no upper bound: b (34 matches)." in made
    assert "Winless, so that the matches alone give no lower bound: c (34 matches)." in made
    assert "strengths are" not in repr(made)


def test_systems_outside_and_the_prior():
    notes = {
        "d": "undefined: no match",
        "e": "undefined: no chain of matches joins it with f to the systems that have strengths",
        "g": "undefined: no chain of wins leads from it to the others and back",
        "h": "undefined: with i undefeated by all the others",
    }
    outside = [line(name, NAN, NAN, NAN, "", note=note) for name, note in notes.items()]
    outside[0] |= {"matches": 0, "wins": 0, "ties": 0, "losses": 0, "undecided": 4}
    made = said([*SURE, *outside])
    assert "; 4 systems without a strength may stand anywhere (n = 102" in made[0]
    assert "Without a match that was decided: d; nothing is known of them: too little data." in made
    assert "Not joined to the others by matches, so that they cannot be compared: e (34 matches)." in made
    assert "Joined to the others by wins in one direction only: g (34 matches)." in made
    assert "Without a strength of their own: h (with i undefeated by all the others)." in made
    assert "no prior was needed, of 3 of 7 systems; the others may stand anywhere." in repr(made)
    assert made[-1] == "Without a verdict and left out: 2 of 104 matches."
    prior = said([SURE[0] | {"note": "undefeated in its 34 matches: x; strength by a prior"}, *SURE[1:]])
    assert "The strengths are of the matches and of a normal prior: without it some have no bound." in prior
    assert prior[0].endswith(": supported.")  # all met


def test_the_prior_proves_nothing_of_systems_that_no_match_joins():
    lines = [each | {"note": "strength by a prior"} for each in SURE]
    made = said(lines, [gap("a", "b", 90.0, 50.0, 130.0), gap("b", "c", NAN, NAN, NAN)])
    assert made[0].endswith(": undecided.")
    assert "the prior alone places them" in made[0]
    assert "from b to c undefined: no chain of matches joins the two." in made[1]
    assert "the prior alone places them" in made[2]


def test_strengths_without_intervals():
    wide = [line(name, i, 1.0, 3.0, "a", strength_low=NAN, strength_high=NAN) for i, name in enumerate("abc", start=1)]
    assert said(wide)[-1] == "Strengths without an interval: 3 of 3, and no system is told apart from another."
    one = [SURE[0] | {"strength_low": NAN}, *SURE[1:]]
    assert said(one)[-1] == "Strengths without an interval: 1 of 3."


def test_gaps_at_the_top():
    gaps = [
        gap("a", "b", 229.4, 145.0, 321.0, band="strong"), gap("b", "c", 20.0, -10.0, 50.0, band="tied"),
        gap("c", "d", 90.0, NAN, NAN, note="no interval"), gap("d", "e", 1.0, 0.5, 2.0),
    ]  # fmt: skip
    made = said(SURE, gaps)[1]
    assert made == (
        "The first 3 of 4 gaps from the top, in Elo points: from a to b 229 (95 % interval [145, 321], n = 51 "
        "matches), strong, supported; from b to c 20 (95 % interval [-10, 50], n = 51 matches), tied, undecided, the "
        "interval holds 0; from c to d 90 (no interval, n = 51 matches), moderate, undecided, no interval."
    )
    assert "undecided, for it is the same in every resample" in said(SURE, [gap("a", "b", 9.0, 9.0, 9.0)])[1]
    assert said(SURE, [gap("a", "b", 9.0, 8.0, 9.0)])[1].startswith("The gap, in Elo points: from a to b 9")
    few = said([SURE[0], SURE[1] | {"matches": 3}, SURE[2]], [gap("a", "b", 9.0, 8.0, 9.0)])[1]
    assert few.endswith("fewer than 10 matches, too little data.")


def test_a_table_that_was_read_from_a_file():
    missing = [each | {"note": NAN} for each in SURE]
    assert said(missing, [gap("a", "b", 9.0, 8.0, 9.0) | {"note": NAN}]) == said(SURE, [gap("a", "b", 9.0, 8.0, 9.0)])


def test_names_with_bars_and_hostile_names():
    names = ("x|y", HOSTILE)
    lines = [SURE[0] | {"system": names[0]}, line(names[1], 2.0, 2.0, 2.0, "b")]
    gaps = [gap(*names, 20.0, 10.0, 30.0)]
    made = said(lines, gaps) + elo_sentences(pd.DataFrame(lines), pd.DataFrame(gaps))
    assert f"from x|y to {HOSTILE} 20" in made[1]
    assert f"(x|y over {HOSTILE})" in made[-2]
    assert "<img" not in made._repr_html_()


@pytest.mark.parametrize(("judges", "text"), [((), "51 matches)"), (["j"], "matches by j)"), ("abcd", "by 4 judges)")])
def test_whose_verdicts(judges, text):
    assert text in said(SURE, judges=judges)[0]


def test_elo_and_the_order_of_matches():
    gaps = pd.DataFrame([gap("a", "b", 100.0, 1.0, 2.0), gap("b", "c", 5.0, 1.0, 2.0)])
    lines = [dict(each) for each in SURE]
    lines[1]["elo_spread"] = 4.0
    order, alike = elo_sentences(pd.DataFrame(lines), gaps)
    assert order == (
        "Order of the matches: it moves a rating by up to 4.0 points (standard deviation over orders, b); the smallest "
        "gap between neighbours is 5.0 (b over c); gaps smaller than the spreads of their two systems together: 1 of "
        "2, which a single order may turn round (b over c)."
    )  # 4 + 3 > 5
    assert alike == (
        "Elo and Bradley and Terry's model rank alike: neighbours that stand the other way round: 0 of 2; both have a "
        "first."
    )
    lines[0]["elo"] = lines[1]["elo"] - 1
    assert elo_sentences(pd.DataFrame(lines), gaps)[1] == (
        "Elo and Bradley and Terry's model rank differently: neighbours that stand the other way round: 1 of 2 (a and "
        "b); by strength a is first, by Elo b is first."
    )
    far = gaps[gaps["estimate"] > 50]
    assert elo_sentences(pd.DataFrame(SURE), far)[0].endswith("together: 0 of 1.")
    flat = [each | {"elo_spread": 0.0} for each in SURE]
    assert elo_sentences(pd.DataFrame(flat), gaps)[0].endswith("no order differs from another.")
    one = [each | {"elo_spread": NAN} for each in SURE]
    assert "with one order its effect is not known" in elo_sentences(pd.DataFrame(one), gaps)[0]


def test_a_shared_first_place_is_nobodys_alone():
    gaps = pd.DataFrame([gap("a", "b", 0.0, -1.0, 2.0), gap("b", "c", 50.0, 1.0, 2.0)])
    lines = [line("a", 1.5, 1.0, 2.0, "a"), line("b", 1.5, 1.0, 2.0, "a"), line("c", 3.0, 3.0, 3.0, "b")]
    both = elo_sentences(pd.DataFrame(lines), gaps)[1]
    assert both.endswith("0 of 2; by strength a, b share the first place, by Elo a, b share the first place.")
    lines[1]["strength_elo"] += 1e-5  # the rank is what counts: equal strengths differ by rounding
    lines[1]["elo"] += 1
    shared = elo_sentences(pd.DataFrame(lines), gaps)[1]
    assert shared.endswith("; by strength a, b share the first place, by Elo b is first.")
    alone = [line("a", 1.0, 1.0, 2.0, "a"), line("b", 2.0, 1.0, 2.0, "a", elo=1400.0)]
    assert elo_sentences(pd.DataFrame(alone), gaps)[1].endswith(
        "; by strength a is first, by Elo a, b share the first place."
    )


def test_elo_of_nobody():
    assert "n = 1 system" in elo_sentences(pd.DataFrame(SURE[:1]), frame([]))[0]
    assert "n = 0 systems): too little data" in elo_sentences(pd.DataFrame({"system": []}), frame([]))[0]


def test_real_rankings():
    rng, names = np.random.default_rng(3), list("abcdef")
    rows = [
        (item, x, y, x if rng.random() < 1 / (1 + math.exp(-0.3 if x > "a" else -4.0)) else y)
        for item, (x, y) in itertools.product(range(30), itertools.combinations(names, 2))
    ]
    made = leaderboard(pd.DataFrame(rows, columns=COLUMNS).assign(judge="j"), ci_level=0.95, resamples=200, seed=1,
                       permutations=20)  # fmt: skip
    told = ranking_sentences(made.table, made.gaps, minimum_matches=10, ci_level=0.95, judges=["j"])
    assert told[0].startswith("a is surely ahead of the 5 others (95 %): ")
    assert "n = 450 matches by j" in told[0]
    assert told[2].startswith("Told apart (95 %, all pairs together): 5 of the 5 others surely below the first, a; ")
    assert len(elo_sentences(made.table, made.gaps)) == 2


def test_values():
    made = row("m", 0.25, interval=(-0.1, 0.5), ci_level=0.9, n_used=1)
    assert (
        value_text(pd.Series(made), "match", "matches", signed=True)
        == "+0.250 (90 % interval [-0.100, 0.500], n = 1 match)"
    )
    undefined = row("m", NAN, n_used=2, note="undefined: why")
    assert value_text(pd.Series(undefined), "group") == "undefined (n = 2 groups: why)"
    assert value_text(pd.Series(row("m", 3.0, n_used=2)), "group", digits=0) == "3 (no interval, n = 2 groups)"
    assert [points(0.04, True), points(-0.04), points(2.0, True), points(2.0)] == ["0.0", "0.0", "+2.0", "2.0"]
