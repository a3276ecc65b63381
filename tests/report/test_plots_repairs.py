"""Plots of repairs and of probabilities: what the tables say, best repair first, no words over one another."""

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
LONG = "a-judge-with-a-name-of-34-letters!"
JUDGES = ["glm", LONG, "small"]
EMPTY_CURVE = pd.DataFrame(
    columns=["judge", "reading", "bin", "mean_probability", "rate", "ci_low", "ci_high", "n"]
)  # fmt: skip


@pytest.fixture(autouse=True)
def _figures_are_closed():
    plots.style()
    yield
    plt.close("all")


def repair(name, gain, *, judge=LONG, p=0.5, note="", calls=2.0):
    """The rows that `repair_table` gives for one repair."""
    at = {"judge": judge, "strategy": "pairwise", "slice_": f"repair={name}", "ci_level": 0.95, "n_used": 40}
    found = [rows.row("calls_per_decision", calls, **at)]
    found += [
        rows.row("exact_agreement_gain", gain, interval=(gain - 0.1, gain + 0.1), note=note, **at),
        rows.row("exact_agreement_gain_p_holm", p, **at),
        rows.row("swap_consistency_gain", 0.05, interval=(0.0, 0.1), pass_="both", **at),
        rows.row("swap_consistency_gain_p", 0.001, pass_="both", **at),
        rows.row("bias_size_change", -0.03, interval=(-0.1, 0.04), **at),
    ]
    return found


def twelve():
    found = [rows.row("calls_per_decision", 1.0, judge=LONG, strategy="pairwise", slice_="repair=pairwise", n_used=40)]
    for place in range(11):
        found += repair(f"repair_named_in_thirty-four_char{place:02d}", 0.01 * place, p=0.01 if place > 8 else 0.4)
    return rows.frame(found + repair("none", NAN, note="undefined: no pair that both decide; 40 of 40 left out"))


def dots(panel):
    found = []
    for line in panel.get_lines():
        if line.get_linestyle() == "None":
            filled = to_hex(line.get_markerfacecolor()) == to_hex(line.get_color())
            found.append((float(line.get_xdata()[0]), float(line.get_ydata()[0]), to_hex(line.get_color()), filled))
    return sorted(found, key=lambda dot: dot[1])


def words(figure):
    texts = [text.get_text().replace("\n", " ") for panel in figure.axes for text in panel.texts]
    return [*texts, *(text.get_text().replace("\n", " ") for text in figure.texts), figure.get_suptitle()]


def readable(figure):
    """No text over another or beyond the edge, none below 9 pt, and no figure wider than the page."""
    figure.canvas.draw()
    found = set(figure.findobj(plt.Text))
    for axis in (axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():  # matplotlib keeps those beyond the limits, which are not drawn
            if not low <= tick.get_loc() <= high or not axis.axes.get_visible():
                found -= {tick.label1, tick.label2}
    shown = [text for text in found if text.get_text().strip() and text.get_visible()]
    boxes = [text.get_window_extent() for text in shown]
    for a, b in itertools.combinations(boxes, 2):
        assert min(a.x1, b.x1) - max(a.x0, b.x0) <= 1 or min(a.y1, b.y1) - max(a.y0, b.y0) <= 2
    width, height = figure.canvas.get_width_height()
    assert all(b.x0 >= -1 and b.y0 >= -1 and b.x1 <= width + 1 and b.y1 <= height + 1 for b in boxes)
    assert 8 <= figure.get_size_inches()[0] <= 11
    assert min(text.get_fontsize() for text in shown) >= 9


def test_repairs_are_sorted_by_gain_in_the_colour_of_the_judge():
    figure = plots.repairs_plot(twelve(), judge=LONG, judges=JUDGES)
    gains, consistency, bias = figure.axes
    np.testing.assert_allclose([x for x, *_ in dots(gains)], [0.01 * place for place in range(10, -1, -1)])
    np.testing.assert_allclose([x for x, *_ in dots(consistency)], [0.05] * 12)
    np.testing.assert_allclose([x for x, *_ in dots(bias)], [-0.03] * 12)
    assert {colour for _, _, colour, _ in dots(gains)} == {judge_colours(JUDGES)[LONG][0]}
    assert [label.get_text() for label in gains.get_yticklabels()][-1] == "none"
    assert any("no pair that both decide" in text for text in words(figure))
    readable(figure)


def test_only_a_corrected_p_value_fills_a_repair():
    figure = plots.repairs_plot(twelve(), judge=LONG, judges=JUDGES)
    assert [filled for *_, filled in dots(figure.axes[0])] == [True, True] + [False] * 9
    assert not any(filled for *_, filled in dots(figure.axes[1])), "swap consistency has no corrected test"
    assert "Filled: p < 0.05 after Holm's correction" in " ".join(words(figure))


def test_calls_are_a_column_and_the_unrepaired_judge_is_no_repair():
    table = rows.frame(
        [*repair("jury", 0.1, calls=12.0), *repair("swap", 0.2, calls=1.5),
         rows.row("calls_per_decision", 1.0, judge=LONG, slice_="repair=pairwise", n_used=4)]
    )  # fmt: skip
    figure = plots.repairs_plot(table, judge=LONG)
    assert [text.get_text() for text in figure.axes[2].texts] == ["calls", "1.5", "12"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["swap", "jury"]


def test_a_panel_without_rows_says_that_it_was_not_measured():
    table = rows.frame([row for row in repair("jury", 0.1) if row["measure"] == "exact_agreement_gain"])
    figure = plots.repairs_plot(table, judge=LONG)
    assert words(figure).count("not measured") == 2
    assert "–" in words(figure)


def curve(judges=JUDGES):
    found = []
    for judge in judges:
        for reading, shift in (("raw", -0.1), ("isotonic", 0.0)):
            for place in range(10):
                p = (place + 0.5) / 10
                rate = max(0.0, p + shift)
                found.append((judge, reading, place, p, rate, max(0, rate - 0.1), min(1, rate + 0.1), 5 * place))
    return pd.DataFrame(found, columns=EMPTY_CURVE.columns)


def test_reliability_draws_the_bins_with_answers():
    table = curve()
    figure = plots.reliability_plot(table, judges=JUDGES)
    for panel, judge in zip(figure.axes, JUDGES, strict=True):
        points = np.concatenate([part.get_offsets() for part in panel.collections if hasattr(part, "get_sizes")
                                 and len(part.get_sizes())])  # fmt: skip
        own = table[(table["judge"] == judge) & (table["n"] > 0)]
        np.testing.assert_allclose(
            sorted(map(tuple, points)), sorted(zip(own["mean_probability"], own["rate"], strict=True))
        )
        lines = {to_hex(line.get_color()) for line in panel.get_lines()}
        assert judge_colours(JUDGES)[judge][0] in lines
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["as the judge gave it", "after isotonic recalibration"]
    readable(figure)


def test_the_area_of_a_point_grows_with_its_answers():
    figure = plots.reliability_plot(curve(["glm"]), judges=JUDGES)
    for part in figure.axes[0].collections:
        if hasattr(part, "get_sizes") and len(part.get_sizes()):
            assert list(np.diff(part.get_sizes()) > 0) == [True] * 8
    assert "largest: 45" in " ".join(words(figure))


def test_a_judge_without_answers_says_so_and_more_than_six_are_counted():
    many = [f"judge{k}" for k in range(8)]
    table = curve(many)
    table.loc[table["judge"] == "judge1", ["mean_probability", "rate", "ci_low", "ci_high"]] = NAN
    figure = plots.reliability_plot(table, judges=many)
    assert "(first 6 of 8 judges)" in figure.get_suptitle()
    assert words(figure).count("no bin with answers") == 1
    readable(figure)
    none = plots.reliability_plot(table.assign(n=0), judges=many, shown=["judge7"])
    assert words(none).count("no bin with answers") == 1


def test_nothing_to_show_is_said():
    assert "nothing to show" in plots.repairs_plot(rows.frame([]), judge="glm").get_suptitle()
    assert "nothing to show" in plots.repairs_plot(twelve(), judge="glm", judges=JUDGES).get_suptitle()
    assert "nothing to show" in plots.reliability_plot(EMPTY_CURVE, judges=JUDGES).get_suptitle()


def test_tables_are_left_as_they_were_and_their_order_does_not_matter():
    table, points = twelve(), curve()
    before = table.copy(deep=True), points.copy(deep=True)
    first = plots.repairs_plot(table, judge=LONG, judges=JUDGES)
    plots.reliability_plot(points, judges=JUDGES)
    pd.testing.assert_frame_equal(table, before[0])
    pd.testing.assert_frame_equal(points, before[1])
    mixed = plots.repairs_plot(table.sample(frac=1, random_state=1), judge=LONG, judges=JUDGES)
    assert [dots(panel) for panel in first.axes] == [dots(panel) for panel in mixed.axes]
