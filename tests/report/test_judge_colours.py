"""How a judge looks, and the small choices that every plot of judges shares."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from matplotlib.figure import Figure

from judgelab.measure import rows
from judgelab.report.dots import draw_dots, slots_of
from judgelab.report.judge_colours import (
    judge_colours,
    judges_drawn,
    name_lines,
    one_pass,
    p_limit,
    significant,
    span_of,
)
from judgelab.report.style import GREY, Series

NAN = float("nan")
EMPTY = rows.frame([])


def test_a_judge_has_its_place_in_the_protocol_as_its_look():
    looks = judge_colours(["glm", "longest", "small"], controls=["longest"])
    assert list(looks) == ["glm", "small", "longest"]
    assert looks["longest"][0] == GREY
    assert judge_colours(["glm", "small"])["small"] == looks["small"], "controls take no colour"
    assert judge_colours(["glm", "glm", "small"])["small"] == looks["small"]
    assert judge_colours([]) == {}
    assert judge_colours(["glm"], controls=["outside"])["outside"][0] == GREY


def test_many_judges_differ_by_marker_where_the_colour_comes_again():
    many = judge_colours([f"j{k}" for k in range(64)])
    assert len(set(many.values())) == 64
    assert len({colour for colour, _ in many.values()}) == 8
    assert many["j0"][0] == many["j8"][0]
    assert many["j0"][1] != many["j8"][1]
    assert GREY not in {colour for colour, _ in many.values()}


def test_significance_needs_a_p_value_and_a_level():
    row = pd.Series({"estimate": 0.2, "ci_level": 0.9})
    assert significant(row, pd.Series({"estimate": 0.09}))
    assert not significant(row, pd.Series({"estimate": 0.11}))
    assert not significant(row, pd.Series({"estimate": NAN}))
    assert not significant(row, None)
    assert not significant(None, row)
    assert not significant(pd.Series({"estimate": 0.2, "ci_level": NAN}), pd.Series({"estimate": 0.01}))


def test_limits_hold_zero_and_every_finite_estimate():
    low, high = span_of(pd.DataFrame({"estimate": [0.2, NAN], "ci_low": [0.1, NAN], "ci_high": [0.4, NAN]}))
    assert low < 0 < 0.4 < high
    nothing = span_of(EMPTY)
    assert -math.inf < nothing[0] < 0 < nothing[1] < math.inf


def test_one_pass_of_each_measure():
    table = rows.frame(
        [rows.row("longer_rate", 0.5, judge="glm", pass_=name, n_used=1) for name in ("swapped", "direct", "original")]
        + [rows.row("longer_rate", 0.5, judge="small", pass_=name, n_used=1) for name in ("original", "both")]
    )
    assert list(one_pass(table)["pass"]) == ["direct", "both"]
    assert one_pass(EMPTY).empty


def test_judges_come_in_the_protocols_order_and_those_left_out_are_counted():
    looks = judge_colours(["b", "a", "c"])
    table = pd.DataFrame({"judge": ["a", "c", "b", "stranger"]})
    assert judges_drawn(looks, table) == (["b", "a", "c"], "")
    assert judges_drawn(looks, table, ["c", "nobody", "stranger"]) == (["c"], "")
    assert judges_drawn(looks, table, most=2) == (["b", "a"], " (first 2 of 3 judges)")


def test_the_limit_of_p_goes_with_the_intervals():
    assert p_limit(pd.DataFrame({"ci_level": [0.95, NAN, 0.95]})) == "0.05"
    assert p_limit(pd.DataFrame({"ci_level": [0.9]})) == "0.1"
    assert p_limit(EMPTY) == "1 minus the level"


@pytest.mark.parametrize("chart", ["lines", "dots"])
def test_a_long_name_without_spaces_keeps_its_ends(chart):
    names = [f"some-laboratory/{'instruct-' * 4}{version}" for version in ("70b-2024", "80b-2024")]
    assert [len(name) for name in names] == [60, 60]
    axes = Figure().subplots()
    if chart == "lines":
        name_lines(axes, [*names, "glm"])
    else:
        series = Series("direct", "direct", "direct", GREY, "o")
        asked = {"strategy": "direct", "pass_": "direct", "n_used": 1, "note": ""}
        table = rows.frame([rows.row("rate", 0.5, judge=name, **asked) for name in (*names, "glm")])
        draw_dots(axes, slots_of(table, groups=[*names, "glm"], series=[series]))
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == ["some-laboratory/inst…ruct-70b-2024", "some-laboratory/inst…ruct-80b-2024", "glm"]
