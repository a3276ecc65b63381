"""Tables of the ranking for people: every text by hand, values that there are not, empty tables, hostile names."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from judgelab.judging.match_log import MatchLog
from judgelab.measure.disputes import disputed_pairs
from judgelab.measure.head_to_head import head_to_head, head_to_head_table
from judgelab.measure.leaderboard import leaderboard
from judgelab.measure.rows import frame, row
from judgelab.report.ranking_tables import disputed_table, duel_table, gap_table, versions_table

NAN = math.nan
HOSTILE = '<img src=x onerror="alert(1)"></td><script>alert(2)</script>{{x}}'
SETTINGS = {"ci_level": 0.95, "resamples": 50, "seed": 1}


def harmless(table):
    """Whether a notebook shows the names of a table as text."""
    page = table.to_html()
    return "&lt;img" in page and "<img" not in page and "<script" not in page


def matches(preferences, *, a="a", b="b", judge="j"):
    """One match an item."""
    table = pd.DataFrame({"item_id": range(len(preferences)), "preference": pd.Series(preferences, dtype=object)})
    return table.assign(judge=judge, category="c", system_x=a, system_y=b)


def gap(above, below, points, chance, *, low=NAN, high=NAN, chances=(NAN, NAN), band="moderate"):
    """The two rows of one pair of neighbours."""
    where = {"judge": "panel", "strategy": "pairwise", "pass_": "both", "slice_": f"gap={above}|{below}", "n_used": 40}
    note = "" if points == points else "undefined: no chain of matches joins the two"
    made = frame([
        row("elo_gap", points, interval=(low, high), ci_level=0.95, note=note, **where),
        row("win_probability", chance, interval=chances, ci_level=0.95, note=note, **where),
    ])  # fmt: skip
    return made.assign(band=band)


APART = pd.DataFrame({"system": [*"abcde", HOSTILE], "letters": ["a", "b", "c", "de", "e", "f"]})


def test_gaps():
    told = gap_table(pd.concat([
        gap("a", "b", 120.4, 0.667, low=60.2, high=180.6, chances=(0.586, 0.739)),
        gap("b", "c", 12.0, 0.517, low=-20.0, high=44.0, chances=(0.471, 0.563), band="tied"),
        gap("c", "d", 70.0, 0.599, low=0.0, high=140.0, chances=(0.5, 0.691)),
        gap("d", "e", 60.0, 0.585, low=10.0, high=110.0, chances=(0.514, 0.653)),
    ]), APART)  # fmt: skip
    assert told.values.tolist() == [
        ["a", "b", "120 [60, 181]", "0.67 [0.59, 0.74]", "moderate", "settled"],
        ["b", "c", "12 [-20, 44]", "0.52 [0.47, 0.56]", "tied", "undecided"],
        ["c", "d", "70 [0, 140]", "0.60 [0.50, 0.69]", "moderate", "undecided"],  # the interval holds 0
        ["d", "e", "60 [10, 110]", "0.58 [0.51, 0.65]", "moderate", "undecided"],  # they share a letter
    ]
    assert told.columns.tolist() == [
        "above", "below", "gap in Elo points", "chance to win", "band", "who is ahead",
    ]  # fmt: skip


def test_gaps_without_an_interval_or_a_value():
    told = gap_table(pd.concat([gap("a", "b", 32.0, 0.546), gap("b", "c", NAN, NAN, band="")]), APART)
    assert told.values.tolist() == [
        ["a", "b", "32", "0.55", "moderate", "undecided"],
        ["b", "c", "undefined", "undefined", "", "undecided"],
    ]
    assert harmless(gap_table(gap(HOSTILE, "b", 1.0, 0.5), APART))


def test_gaps_of_real_rankings():
    real = leaderboard(matches(["a"] * 8 + ["b"] * 2), permutations=5, **SETTINGS)
    told = gap_table(real.gaps, real.table)
    assert told[["above", "below"]].values.tolist() == [["a", "b"]]
    empty = leaderboard(matches([]), permutations=5, **SETTINGS)
    none = gap_table(empty.gaps, empty.table)
    assert (len(none), none.columns.tolist()) == (0, told.columns.tolist())


def duels(*parts):
    return head_to_head_table(head_to_head(pd.concat(parts), judge="j", **SETTINGS))


def test_duels():
    told = duel_table(duels(
        matches(["a"] * 9 + ["b"] + ["TIE"] * 3),
        matches(["a", "c"] * 4, b="c"),
        matches(["c"] * 12, a="b", b="c"),
    ))  # fmt: skip
    # p of 12 to 0: 2 / 2^12; of 9 to 1: 22 / 1024; of 4 to 4: 1. Holm: times 3, 2 and 1
    assert told.drop(columns=["items needed", "share of decisive"]).values.tolist() == [
        ["b", "c", "0 / 0 / 12", "< 0.001", "0.001", "c ahead"],
        ["a", "b", "9 / 3 / 1", "0.021", "0.043", "a ahead"],
        ["a", "c", "4 / 0 / 4", "1.000", "1.000", "treat as tied"],
    ]
    assert told["share of decisive"].tolist()[1:] == ["0.90 [0.555, 0.997]", "0.50 [0.157, 0.843]"]
    assert told["items needed"].tolist()[2] == ""
    assert told["items needed"].str.fullmatch(r"\d*").all()


@pytest.mark.parametrize("preferences", [["TIE"] * 3, [NAN]])
def test_duels_without_a_decisive_item(preferences):
    table = duels(matches(preferences), matches(["a"] * 6, b="c"))
    told = duel_table(table)
    ties = preferences.count("TIE")
    assert told.values.tolist()[1] == [
        "a", "b", f"0 / {ties} / 0", "no decisive item", "", "", "", "too little data",
    ]  # fmt: skip
    assert told["against"].tolist() == ["c", "b"]
    assert "nan" not in told.to_string().lower()
    assert "undefined" not in told.to_string()


def test_duels_of_nobody_without_an_interval_and_of_hostile_names():
    table = duels(matches(["a"] * 6))
    none = duel_table(table.iloc[:0])
    assert (len(none), none.columns.tolist()) == (0, duel_table(table).columns.tolist())
    assert len(duel_table(duels(matches([])))) == 0
    assert duel_table(table.assign(ci_low=NAN))["share of decisive"].tolist() == ["1.00 (no interval)"]
    told = duel_table(duels(matches([HOSTILE] * 6, a=HOSTILE)))
    assert told["conclusion"].tolist() == [f"{HOSTILE} ahead"]
    assert harmless(told)


def test_disputed_pairs():
    votes = [("j", "a"), ("j", "b"), ("k", "a"), ("l", "TIE"), ("m", "TIE"), ("n", "a")]
    table = pd.concat([
        *(matches([vote], judge=judge) for judge, vote in votes),
        *(matches([NAN, vote], judge=judge).iloc[1:] for judge, vote in (("j", "a"), ("k", "TIE"))),
        *(matches([NAN, NAN, vote], judge=judge).iloc[2:] for judge, vote in (("j", "a"), ("k", "b"))),
    ])  # fmt: skip
    told = disputed_table(disputed_pairs(table))
    assert told.columns.tolist() == [
        "item", "system", "against", "votes", "for the first", "for the second", "differ from themselves",
        "disagreement",
    ]  # fmt: skip
    assert told.values.tolist() == [
        [0, "a", "b", "3 : 1, 2 ties", "k, n", "", "j", 0.5],
        [1, "a", "b", "1 : 0, 1 tie", "j", "", "", 0.5],
        [2, "a", "b", "1 : 1", "j", "k", "", 0.5],
    ]


def test_no_disputed_pair_and_hostile_names():
    calm = disputed_table(disputed_pairs(matches(["a", "b"])))
    assert len(calm) == len(disputed_table(disputed_pairs(matches([])))) == 0
    assert calm.columns.tolist()[0] == "item"
    parts = [matches([HOSTILE], a=HOSTILE, judge=HOSTILE), matches(["b"], a=HOSTILE, judge="k")]
    told = disputed_table(disputed_pairs(pd.concat(parts)))
    assert told["for the first"].tolist() == [HOSTILE]
    assert harmless(told)


def test_versions():
    versions = pd.DataFrame([
        {"study_id": "s", "rubric_version": "1", "prompt_version": "2", "protocol_sha256": "0123456789abcdef" * 4,
         "items_sha256": "f" * 64, "matches": 40, "items": 20, "systems": ("a", "b", "c"), "judges": ("j",)},
        {"study_id": HOSTILE, "rubric_version": "2", "prompt_version": "2", "protocol_sha256": "e" * 64,
         "items_sha256": "d" * 64, "matches": 0, "items": 0, "systems": ("a", "b"), "judges": ()},
    ])  # fmt: skip
    told = versions_table(versions)
    assert told.to_dict("records") == [
        {"study": "s", "rubric": "1", "protocol": "0123456789ab", "items": "f" * 12, "matches": 40,
         "items with a match": 20, "systems": 3, "judges": 1},
        {"study": HOSTILE, "rubric": "2", "protocol": "e" * 12, "items": "d" * 12, "matches": 0,
         "items with a match": 0, "systems": 2, "judges": 0},
    ]  # fmt: skip
    assert harmless(told)
    assert "{{x}}" in told.to_html()


def test_no_version(tmp_path):
    with MatchLog(tmp_path / "matches.sqlite") as log:
        none = versions_table(log.versions())
    assert len(none) == 0
    assert none.columns.tolist()[:4] == ["study", "rubric", "protocol", "items"]
