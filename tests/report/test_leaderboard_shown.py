"""The leaderboard for people: groups, few matches and systems without a strength are seen, and nothing in it acts."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pandas as pd
import pytest

from judgelab.measure.leaderboard import leaderboard
from judgelab.report.cleaning import clean_html
from judgelab.report.leaderboard import leaderboard_table, letters_of, shown_leaderboard, why_outside

NAN = math.nan
HOSTILE = '<img src=x onerror="alert(1)"></td></table><script>alert(2)</script>{{x}}'
OPTIONS = {"ci_level": 0.95, "resamples": 200, "seed": 1, "permutations": 20}


def line(system, rank, letters, **more):
    """One row of a leaderboard; without a rank there is no strength."""
    rated = rank == rank
    made = {
        "system": system, "rank": rank, "rank_low": rank, "rank_high": rank + 1, "letters": letters,
        "strength_elo": 1200.4 - 100 * rank, "strength_low": 1100 - 100 * rank, "strength_high": 1300 - 100 * rank,
        "elo": 1150.6 if rated else NAN, "elo_spread": 2.75 if rated else NAN, "win_rate": 0.75 if rated else NAN,
        "win_low": 0.6 if rated else NAN, "win_high": 0.85 if rated else NAN, "wins": 20, "losses": 6, "ties": 8,
        "matches": 34, "undecided": 0, "items": 34, "few": False, "note": "",
    }  # fmt: skip
    return made | more


def board(*lines):
    return pd.DataFrame(list(lines))


def matches(systems, n, *, seed=0):
    """Every pair on n items; the first named are the better ones."""
    rng = np.random.default_rng(seed)
    rows = []
    for item, (a, b) in itertools.product(range(n), itertools.combinations(systems, 2)):
        far = systems.index(b) - systems.index(a)
        rows.append((item, a, b, a if rng.random() < 1 / (1 + math.exp(-0.9 * far)) else b))
    return pd.DataFrame(rows, columns=["item_id", "system_x", "system_y", "preference"]).assign(judge="j")


def rows_of(shown):
    """The body's rows as HTML."""
    return re.findall(r"<tr.*?</tr>", shown._repr_html_().split("<tbody>")[1].split("</tbody>")[0], re.S)


def test_texts_of_one_system():
    told = leaderboard_table(board(line("a", 1.0, "ab", undecided=3), line("b", 2.5, "b", ties=0, wins=3, matches=4)))
    assert told.index.tolist() == [1, 2]
    assert told.iloc[0].tolist() == [
        "1", "1 to 2", "a", "ab", "1100 [1000, 1200]", "1151 ± 2.8", "(20 + 8/2)/34 = 0.750 [0.60, 0.85]",
        "34 (3 without a verdict)", "",
    ]  # fmt: skip
    assert told.iloc[1, 0] == "2.5"
    assert told.iloc[1, 6] == "3/4 = 0.750 [0.60, 0.85]"


def test_undefined_values_say_so_and_are_never_nan():
    none = line("b", NAN, "", matches=0, wins=0, ties=0, few=True, note="undefined: no match")
    bare = line("a", 1.0, "a", rank_high=1.0, strength_low=NAN, win_low=NAN, elo_spread=NAN, few=True,
                note="undefeated in its 3 matches: its strength has no upper bound; strength by a prior")  # fmt: skip
    told = leaderboard_table(board(bare, none))
    assert told.iloc[0].tolist()[4:] == [
        "1100 (no interval)", "1151", "(20 + 8/2)/34 = 0.750 (no interval)", "34",
        "undefeated in its 3 matches: its strength has no upper bound; strength by a prior; few matches",
    ]  # fmt: skip
    assert told.iloc[1].tolist() == ["-", "-", "b", "", "-", "-", "-", "0", "no match"]
    assert told.iloc[0, 1] == "1"
    shown = shown_leaderboard(board(bare, none), minimum_matches=10)
    assert "nan" not in (repr(shown) + shown._repr_html_()).lower()


def test_a_new_group_begins_where_no_letter_is_shared():
    shown = shown_leaderboard(
        board(
            line("a", 1.0, "a"), line("b", 2.0, "ab"), line("c", 3.0, "b"), line("d", 4.0, "c"),
            line("e", NAN, "", note="undefined: no match"), line("f", NAN, "", note="undefined: no match"),
        ),
        minimum_matches=10,
    )  # fmt: skip
    rows = rows_of(shown)
    assert ["new-group" in row for row in rows] == [False, False, False, True, True, False]
    assert [re.findall(r"group-\d", row) for row in rows] == [
        ["group-1"],
        ["group-1"],
        ["group-2"],
        ["group-3"],
        [],
        [],
    ]
    assert ["unrated" in row for row in rows] == [False] * 4 + [True] * 2
    assert "border-top:2px" in rows[3]
    assert "border-top:2px" not in rows[2]
    colours = [re.search(r"border-left:6px solid (\S+?)[;\"]", row).group(1) for row in rows]
    assert colours[0] == colours[1] != colours[2]
    assert colours[4] == "transparent"
    # each letter has its own place
    strips = [re.search("<samp>(.*?)</samp>", row).group(1).replace("\u00a0", "·") for row in rows[:4]]
    assert strips == ["a··", "ab·", "·b·", "··c"]
    assert "no strength: no match" in rows[4]


def test_letters_with_numbers_and_many_groups():
    assert letters_of("abA2Z10") == ["a", "b", "A2", "Z10"]
    names = [f"{letter}{number}" for number in range(2, 8) for letter in "abcdefghij"]
    shown = shown_leaderboard(board(*(line(f"s{i}", i + 1.0, name) for i, name in enumerate(names))), minimum_matches=1)
    assert "<samp>" not in shown._repr_html_()
    assert ">a2<" in shown._repr_html_()
    assert all("new-group" in row for row in rows_of(shown)[1:])


def test_few_matches_are_grey_with_the_count_and_the_words():
    shown = shown_leaderboard(board(line("a", 1.0, "a"), line("b", 2.0, "a", matches=9)), minimum_matches=10)
    first, second = rows_of(shown)
    assert 'class="few' not in first
    assert "opacity" not in first
    assert 'class="few group-1"' in second
    assert "opacity" in second
    assert "9<br><small>few matches: fewer than 10</small>" in second
    assert "Grey: 1 system with fewer than 10 matches." in shown._repr_html_()
    assert "few matches" in repr(shown)  # the column few of the table may be of another minimum
    assert "few matches" not in repr(
        shown_leaderboard(board(line("b", 2.0, "a", matches=9, few=True)), minimum_matches=9)
    )


@pytest.mark.parametrize("place", ["system", "note"])
def test_nothing_in_a_name_or_reason_acts(place):
    for rank in (1.0, NAN):
        table = board(line("ok", rank, "a" if rank == rank else "") | {place: f"undefined: {HOSTILE}"})
        shown = shown_leaderboard(table, minimum_matches=50, notes=[HOSTILE])
        page = shown._repr_html_()
        assert "<img" not in page
        assert "<script" not in page
        assert page.count("</table>") == 1
        assert "&lt;img src=x" in page
        assert "onerror" in clean_html(page)  # as text, for all to read
        assert "<img" not in clean_html(page)
        assert clean_html(page).count("<tr") == page.count("<tr")


def test_the_page_depends_on_the_table_alone():
    table = board(line("a", 1.0, "a"), line("b", 2.0, "ab"))
    one, two = (shown_leaderboard(table.copy(), minimum_matches=10)._repr_html_() for _ in range(2))
    assert one == two
    assert " id=" not in one


def test_what_stands_below():
    table = board(line("a", 1.0, "a", note="strength by a prior"), line("b", NAN, "", note="undefined: no match"))
    shown = shown_leaderboard(table, minimum_matches=1, provenance="simulated", notes=["first", "second"], ci_level=0.9)
    assert "90 % intervals stand in brackets" in shown.lines[0]
    said = "Ranks and groups hold for all pairs at once and allow for few items, so that they can be wider than single"
    assert f"{said} intervals suggest." in shown._repr_html_().split("<tfoot>")[1]
    assert shown.lines[1:] == (
        "A normal prior made the strengths finite; without it some have no bound.",
        "Systems without a strength may stand anywhere; ranks count the others.",
        "Simulated: this shows the method, not how good the systems are.",
        "first",
        "second",
    )
    assert all(text in repr(shown) for text in shown.lines)
    plain = shown_leaderboard(board(line("a", 1.0, "a")), minimum_matches=1, provenance="human")
    assert len(plain.lines) == 1
    assert len(plain) == 1
    known = shown_leaderboard(board(line("a", 1.0, "a")), minimum_matches=1, provenance="known_by_construction")
    assert "order of the systems is known" in known.lines[1]


def test_no_match_at_all():
    table = pd.DataFrame({"system": pd.Series(dtype=object)})
    assert leaderboard_table(table).empty
    assert leaderboard_table(table).columns[0] == "rank"
    shown = shown_leaderboard(table, minimum_matches=10, notes=["<b>"])
    assert repr(shown) == "No system is ranked: there is no match (n = 0 matches).\n<b>"
    assert "&lt;b&gt;" in shown._repr_html_()
    with pytest.raises(ValueError, match="table: missing column rank"):
        leaderboard_table(pd.DataFrame({"system": ["a"]}))


def test_why_outside():
    assert letters_of(NAN) == []
    assert why_outside("undefined: no match") == "no match"
    assert why_outside("strength by a prior") == why_outside("") == why_outside(NAN) == ""
    assert why_outside("winless in its 2 matches: its strength has no lower bound; strength by a prior").endswith(
        "bound"
    )


def test_real_tables_of_six_and_of_two_systems():
    played = matches(list("abcdef"), 30)
    extra = pd.DataFrame([("x", "n", "a", NAN), ("y", "w", "a", "w"), ("z", "w", "b", "w")],
                         columns=["item_id", "system_x", "system_y", "preference"]).assign(judge="j")  # fmt: skip
    for undefined in ("penalise", "name"):
        made = leaderboard(pd.concat([played, extra], ignore_index=True), undefined=undefined, **OPTIONS).table
        shown = shown_leaderboard(made, minimum_matches=10)
        assert len(rows_of(shown)) == 8
        assert "undefeated in its 2 matches" in shown._repr_html_()
        assert "no strength: no match" in shown._repr_html_()
        assert "nan" not in (repr(shown) + shown._repr_html_()).lower()
    two = leaderboard(matches(["a", "b"], 40), **OPTIONS).table
    assert leaderboard_table(two)["system"].tolist() == ["a", "b"]
    empty = leaderboard(played.iloc[:0], **OPTIONS).table
    assert "no match" in repr(shown_leaderboard(empty, minimum_matches=10))
