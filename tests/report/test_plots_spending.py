"""Plots of thresholds, calls and lengths: what the tables say, undefined values in words, no words over others."""

from __future__ import annotations

import itertools

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from judgelab.measure import rows
from judgelab.report import plots
from judgelab.report.judge_colours import judge_colours

NAN = float("nan")
THRESHOLDS = ("1", "0.9", "0.75", "0.5", "none")
LONG = "a-panel-with-a-name-of-forty-letters-ok!"


@pytest.fixture(autouse=True)
def _figures_are_closed():
    plots.style()
    yield
    plt.close("all")


def words(figure):
    texts = [text.get_text().replace("\n", " ") for panel in figure.axes for text in panel.texts]
    return [*texts, *(text.get_text().replace("\n", " ") for text in figure.texts), figure.get_suptitle()]


def legend_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def readable(figure):
    """No text over another or beyond the edge, none below 9 pt, and no figure wider than the page."""
    figure.canvas.draw()
    found = set(figure.findobj(plt.Text))
    for axis in (axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
            if not low <= tick.get_loc() <= high or not axis.axes.get_visible():
                found -= {tick.label1, tick.label2}
    shown = [text for text in found if text.get_text().strip() and text.get_visible()]
    boxes = [text.get_window_extent() for text in shown]
    for (a, one), (b, other) in itertools.combinations(zip(boxes, shown, strict=True), 2):
        clash = min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 2.5
        assert not clash, (one.get_text(), other.get_text())
    width, height = figure.canvas.get_width_height()
    assert all(b.x0 >= -1 and b.y0 >= -1 and b.x1 <= width + 1 and b.y1 <= height + 1 for b in boxes)
    assert 8 <= figure.get_size_inches()[0] <= 11
    assert figure.get_size_inches()[1] <= 15
    assert min(text.get_fontsize() for text in shown) >= 9


def decided(judge="panel", shift=0.0):
    """Rows as `consensus_table` gives them: 340 pairs, 1020 verdicts."""
    found = []
    for place, threshold in enumerate(THRESHOLDS):
        n = 1020 if threshold == "none" else 340
        at = {"judge": judge, "strategy": "pairwise", "pass_": "both", "slice_": f"threshold={threshold}",
              "ci_level": 0.95, "n_used": 40}  # fmt: skip
        for measure, rate in (("draw_rate", 0.9 - 0.2 * place + shift), ("coverage", 0.98), ("minority_rate", 0.1)):
            found.append(rows.row(measure, rate, interval=(rate - 0.05, min(1, rate + 0.05)), numerator=round(rate * n),
                                  denominator=n, **at))  # fmt: skip
    return found


def followed(judge="panel", value=0.6, note=""):
    """Rows as `correlation_rows` gives them."""
    return [rows.row("spearman_mean", value, interval=(value - 0.2, value + 0.2), ci_level=0.95, n_used=25, judge=judge,
                     slice_=f"threshold={threshold}", note=note) for threshold in THRESHOLDS[::-1]]  # fmt: skip


def line(panel, label):
    (found,) = [line for line in panel.get_lines() if line.get_label() == label]
    return found


def test_draws_and_coverage_by_threshold_strictest_first():
    figure = plots.consensus_plot(rows.frame(decided()))
    (panel,) = figure.axes
    np.testing.assert_allclose(line(panel, "panel, draw_rate").get_ydata(), [0.9, 0.7, 0.5, 0.3, 0.1])
    np.testing.assert_allclose(line(panel, "panel, coverage").get_ydata(), [0.98] * 5)
    ticks = [label.get_text().split("\n") for label in panel.get_xticklabels()]
    assert ticks == [[name, "340", "pairs"] for name in THRESHOLDS[:-1]] + [["none", "1,020", "verdicts"]]
    assert legend_of(figure) == ["draws", "coverage"]
    assert any("95 % intervals" in text for text in words(figure))
    readable(figure)


def test_experts_are_a_second_panel_with_one_line_a_judge():
    judges = ["panel", "glm", LONG]
    table = rows.frame([*followed("glm", 0.4), *followed(LONG, -0.3), *followed()])
    figure = plots.consensus_plot(rows.frame(decided()), table, judges=judges)
    first, second = figure.axes
    assert line(second, f"{LONG}, spearman_mean").get_ydata().tolist() == [-0.3] * 5
    assert [label.get_text().split("\n")[1:] for label in second.get_xticklabels()] == [["25", "groups"]] * 5
    assert second.get_ylim()[0] < -0.5 < 0 < 1 < second.get_ylim()[1]
    for judge in judges:
        own = line(second, f"{judge}, spearman_mean")
        assert to_hex(own.get_color()) == judge_colours(judges)[judge][0]
    assert line(first, "panel, draw_rate").get_color() == judge_colours(judges)["panel"][0]
    assert legend_of(figure) == [*judges, "draws", "coverage"]
    readable(figure)


def test_a_panel_without_a_value_says_why_and_seven_judges_are_counted():
    table = rows.frame(followed(value=NAN, note="undefined: no group to count"))
    figure = plots.consensus_plot(rows.frame(decided()), table)
    assert any("undefined: no group to count" in text for text in words(figure))
    readable(figure)
    many = plots.consensus_plot(rows.frame([row for k in range(7) for row in decided(f"judge{k}", 0.01 * k)]))
    assert "(first 6 of 7 judges)" in many.get_suptitle().replace("\n", " ")
    readable(many)
    alone = plots.consensus_plot(rows.frame([]), rows.frame(followed()))
    assert len(alone.axes) == 1
    assert not alone.legends
    readable(alone)


CALLS = (10, 20, 50, 100, 500, 1000)


def spent(judge="panel", *, note=""):
    """Rows as `spending` gives them: 1000 calls in all; only `adaptive` reaches 0.95, from 100 calls on."""
    found = []
    for schedule, values in (
        ("round_robin", [0.1, 0.2, 0.4, 0.6, 0.8, 0.9]),
        ("adaptive", [NAN, 0.5, 0.8, 0.96, 1, 1]),
    ):
        at = {"judge": judge, "ci_level": 0.95, "n_used": 20}
        for calls, value in zip(CALLS, values, strict=True):
            value = NAN if note else value
            why = note or "undefined: no two ranks" if np.isnan(value) else ""
            found.append(rows.row("rank_correlation", value, interval=(value - 0.3, min(1, value + 0.1)), note=why,
                                  slice_=f"schedule={schedule}:calls={calls}", **at))  # fmt: skip
        reach = 100.0 if schedule == "adaptive" and not note else NAN
        at |= {"slice_": f"schedule={schedule}", "note": note or "undefined: not reached" if np.isnan(reach) else ""}
        found.append(rows.row("calls_to_reach", reach, **at))
        found.append(rows.row("share_to_reach", reach / 1000, denominator=1000, **at))
    return found


def test_every_schedule_is_a_line_and_says_when_it_arrives():
    figure = plots.spending_plot(rows.frame(spent()))
    (panel,) = figure.axes
    adaptive = line(panel, "adaptive: 0.95 from 100 calls (10 %)")
    np.testing.assert_allclose(adaptive.get_xydata(), [(20, 0.5), (50, 0.8), (100, 0.96), (500, 1), (1000, 1)])
    robin = line(panel, "round robin: 0.95 not reached")
    np.testing.assert_allclose(robin.get_xdata(), CALLS)
    assert panel.get_xscale() == "log"
    assert [text.get_text() for text in panel.get_legend().get_texts()] == [robin.get_label(), adaptive.get_label()]
    assert any(list(other.get_ydata()) == [0.95, 0.95] and other.get_linestyle() == "--" for other in panel.get_lines())
    assert any(list(other.get_xdata()) == [1000, 1000] for other in panel.get_lines())
    edged = [other for other in panel.get_lines() if other.get_markeredgecolor() == "black"]
    assert [tuple(other.get_xydata()[0]) for other in edged] == [(100, 0.96)]
    assert "all 1,000 calls" in words(figure)
    assert "over 20 runs" in " ".join(words(figure))
    readable(figure)


def test_judges_are_panels_and_undefined_is_said():
    table = rows.frame([*spent(), *spent("glm"), *spent(LONG, note="undefined: no decided match")])
    figure = plots.spending_plot(table, target=0.9)
    assert [panel.get_title(loc="left") for panel in figure.axes if panel.get_visible()] == ["panel", "glm", LONG]
    assert words(figure).count("undefined: no decided match") == 1
    assert len({panel.get_ylim() for panel in figure.axes if panel.get_visible()}) == 1
    readable(figure)
    five = plots.spending_plot(rows.frame([row for k in range(5) for row in spent(f"judge{k}")]))
    assert "(first 4 of 5 judges)" in five.get_suptitle().replace("\n", " ")
    readable(five)


def answers(items, systems, *, seed=1):
    rng = np.random.default_rng(seed)
    found = [(f"i{item}", f"laboratory/system-{k:03d}-instruct-v0.3", round(rng.lognormal(4 + 0.01 * k, 0.4)))
             for item in range(items) for k in range(systems)]  # fmt: skip
    return pd.DataFrame(found, columns=["item_id", "system", "words"]).astype({"words": float})


def test_every_answer_is_a_dot_and_the_median_is_said():
    table = pd.DataFrame(
        {"item_id": [1, 2, 3, 1, 2, 1], "system": list("aaabbc"), "words": [10, 30, 80, 200, NAN, NAN]}
    )
    halves = pd.DataFrame({"item_id": [1, 2] * 2, "system": list("aabb"), "words": [80, 81, 2000, 2001.0]})
    assert {"80.5; n = 2", "2,000.5; n = 2"} <= set(words(plots.answer_length_plot(halves)))
    figure = plots.answer_length_plot(table)
    panel = figure.axes[0]
    assert [label.get_text() for label in panel.get_yticklabels()] == ["b", "a", "c"]
    dots = np.concatenate([part.get_offsets() for part in panel.collections if len(getattr(part, "get_sizes", list)())])
    assert sorted(dots[:, 0]) == [10, 30, 80, 200]
    assert set(np.round(dots[:, 1])) == {0, 1}
    said = words(figure)
    for text in ("200; n = 1; 1 missing", "30; n = 3", "–; 1 missing", "no answer"):
        assert text in said
    assert figure.get_suptitle() == "How long the answers are: 3 systems, 3 items"
    readable(figure)


@pytest.mark.parametrize(("items", "systems"), [(1, 1), (1, 6), (500, 2), (4, 59), (2, 150)])
def test_lengths_of_any_number_of_answers_are_readable(items, systems):
    figure = plots.answer_length_plot(answers(items, systems))
    assert figure.axes[0].get_xscale() == "linear"
    assert ("first 60 and last 20" in figure.get_suptitle()) is (systems > 80)
    readable(figure)


def test_one_endless_answer_does_not_hide_the_others():
    table = answers(20, 3)
    table.loc[0, "words"], table.loc[1, "words"] = 20000, 0
    figure = plots.answer_length_plot(table)
    panel = figure.axes[0]
    assert panel.get_xscale() == "symlog"
    assert panel.get_xlim()[0] < 0 < 20000 < panel.get_xlim()[1]
    readable(figure)


def test_nothing_to_show_is_said():
    empty = rows.frame([])
    assert "nothing to show" in plots.consensus_plot(empty).get_suptitle()
    assert "nothing to show" in plots.consensus_plot(empty, empty).get_suptitle()
    assert "nothing to show" in plots.spending_plot(empty).get_suptitle()
    assert "nothing to show" in plots.spending_plot(rows.frame(decided())).get_suptitle()
    assert "nothing to show" in plots.answer_length_plot(answers(0, 3)).get_suptitle()
    nobody = plots.answer_length_plot(answers(2, 3).assign(words=NAN))
    assert words(nobody).count("no answer") == 3
    readable(nobody)


def test_tables_are_left_as_they_were_and_their_order_does_not_matter():
    tables = rows.frame(decided()), rows.frame(spent()), answers(5, 3)
    before = [table.copy(deep=True) for table in tables]
    drawn = (plots.consensus_plot, plots.spending_plot, plots.answer_length_plot)
    first = [plot(table) for plot, table in zip(drawn, tables, strict=True)]
    for table, kept in zip(tables, before, strict=True):
        pd.testing.assert_frame_equal(table, kept)
    mixed = [plot(table.sample(frac=1, random_state=1)) for plot, table in zip(drawn, tables, strict=True)]
    for one, other in zip(first, mixed, strict=True):
        lines = [sorted((str(line.get_label()), line.get_xydata().tolist()) for line in figure.axes[0].get_lines()
                        if not str(line.get_label()).startswith("_")) for figure in (one, other)]  # fmt: skip
        if one is not first[0]:
            assert lines[0] == lines[1]
        assert sorted(words(one)) == sorted(words(other))
