"""Plots of probes, effects, length and leniency: drawn as the tables say, each judge in its own colour."""

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
from judgelab.report.plots_bias import PROBE_NAMES

NAN = float("nan")
LONG = "a-judge-with-a-name-of-34-letters!"
JUDGES = ["glm", LONG, "small"]
EMPTY = rows.frame([])


@pytest.fixture(autouse=True)
def _figures_are_closed():
    plots.style()
    yield
    plt.close("all")


def value(measure, estimate, half=NAN, *, judge, strategy="pairwise", pass_="both", slice_="all", n=100, **more):
    """A row of the one shape with a symmetric interval."""
    return rows.row(
        measure, estimate, judge=judge, strategy=strategy, pass_=pass_, slice_=slice_, ci_level=0.95, n_used=n,
        interval=(estimate - half, estimate + half), **more,
    )  # fmt: skip


def probe(judge, name, estimate, *, towards=9, away=2, p=0.5, note=""):
    """The rows that `probe_table` gives for one probe."""
    at = {"judge": judge, "slice_": f"probe={name}"}
    targeted = name not in ("criterion_order", "labels", "identical")
    effect = "net_flip_rate" if targeted or name == "identical" else "excess_flip_rate"
    found = [value(effect, estimate, 0.05, denominator=90, note=note, **at), value("probe_p_holm", p, **at)]
    counts = {"flip_towards_rate": towards, "flip_away_rate": away} if targeted else {"flip_rate": towards + away}
    return found + [value(name, k / 90, numerator=k, denominator=90, **at) for name, k in counts.items()]


def battery(judges=JUDGES):
    """Eleven probes of each judge; padding is the worst of all, for the last judge alone."""
    found = []
    for judge in judges:
        found.append(value("noise_floor", 0.04, judge=judge, slice_="probe=repetition", denominator=90))
        for place, name in enumerate(name for name in PROBE_NAMES if name != "repetition"):
            found += probe(judge, name, 0.01 * place - 0.03, p=0.001 if name == "format" else 0.2)
    table = rows.frame(found)
    worst = (table["judge"] == judges[-1]) & (table["slice"] == "probe=padding") & (table["measure"] == "net_flip_rate")
    table.loc[worst, ["estimate", "ci_low", "ci_high"]] = [-0.6, -0.7, -0.5]
    return table


def dots(panel):
    """Value, line, colour and filled of every dot of a panel, from top to bottom."""
    found = []
    for line in panel.get_lines():
        if line.get_linestyle() == "None":
            filled = to_hex(line.get_markerfacecolor()) == to_hex(line.get_color())
            found.append((float(line.get_xdata()[0]), float(line.get_ydata()[0]), to_hex(line.get_color()), filled))
    return sorted(found, key=lambda dot: dot[1])


def words(figure):
    texts = [text.get_text().replace("\n", " ") for panel in figure.axes for text in panel.texts]
    heads = [panel.get_title(loc="left").replace("\n", " ") for panel in figure.axes]
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    return [
        *texts,
        *heads,
        *labels,
        *(text.get_text().replace("\n", " ") for text in figure.texts),
        figure.get_suptitle(),
    ]


def drawn_texts(figure):
    """Texts that are seen: not the labels of ticks beyond the limits, which matplotlib keeps."""
    found = set(figure.findobj(plt.Text))
    for axis in (axis for panel in figure.axes for axis in (panel.xaxis, panel.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if not low <= tick.get_loc() <= high or not axis.axes.get_visible():
                found -= {tick.label1, tick.label2}
    return [text for text in found if text.get_text().strip() and text.get_visible()]


def overlaps(figure):
    """Pairs of texts of a figure that lie over one another, and texts beyond its edge."""
    figure.canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent()) for text in drawn_texts(figure)]
    over = [
        (one, other) for (one, a), (other, b) in itertools.combinations(boxes, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 2
    ]  # fmt: skip
    width, height = figure.canvas.get_width_height()
    return over + [name for name, b in boxes if b.x0 < -1 or b.y0 < -1 or b.x1 > width + 1 or b.y1 > height + 1]


def readable(figure):
    assert overlaps(figure) == []
    assert 8 <= figure.get_size_inches()[0] <= 11
    assert min(text.get_fontsize() for text in figure.findobj(plt.Text) if text.get_text()) >= 9


def test_battery_draws_every_effect_and_no_other_worst_first():
    table = battery()
    figure = plots.battery_plot(table, judges=JUDGES)
    effects = table[table["measure"].isin(["net_flip_rate", "excess_flip_rate"])]
    for panel, judge in zip(figure.axes, JUDGES, strict=True):
        own = effects[effects["judge"] == judge]
        np.testing.assert_allclose(sorted(x for x, *_ in dots(panel)), sorted(own["estimate"]))
        assert {colour for _, _, colour, _ in dots(panel)} == {judge_colours(JUDGES)[judge][0]}
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names[0] == "padding: longer without content"
    # Next by size: 0.06 surface noise (tenth), 0.05 rubric words, 0.04 injection; -0.03 identical equals 0.03 identity,
    # and the battery's order decides.
    assert [name.partition(":")[0] for name in names[1:6]] == [
        "surface noise", "rubric words", "injection", "identical", "identity",
    ]  # fmt: skip
    assert dots(figure.axes[2])[0][0] == -0.6
    readable(figure)


def test_battery_fills_what_survives_holm_and_counts_at_the_right():
    figure = plots.battery_plot(battery(), judges=JUDGES)
    lines = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    filled = [lines[int(y)] for _, y, _, filled in dots(figure.axes[0]) if filled]
    assert filled == [PROBE_NAMES["format"]]
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("9/2 of 90") == 7, "probes with a target"
    assert texts.count("11 of 90") == 2, "criterion order and labels: flips"
    assert texts.count("n = 90") == 1, "identical"
    note = " ".join(words(figure))
    assert all(part in note for part in ("Filled: p < 0.05", "Grey band", "95 % interval"))


def test_the_noise_floor_is_a_band_and_its_absence_is_said():
    table = battery()
    gone = (table["judge"] == "small") & (table["measure"] == "noise_floor")
    table.loc[gone, "estimate"] = NAN
    table.loc[gone, "note"] = "undefined: no first repetition to count"
    figure = plots.battery_plot(table, judges=JUDGES, provenance="simulated")
    bands = [[patch.get_x() for patch in panel.patches if patch.get_width() == 0.08] for panel in figure.axes]
    assert bands == [[-0.04], [-0.04], []]
    assert "No band for small: no first repetition to count." in " ".join(words(figure))
    assert "simulated" in " ".join(words(figure))
    readable(figure)


def test_a_probe_without_estimate_says_why_and_comes_last():
    table = battery(["glm", "small"])
    gone = (table["slice"] == "probe=padding") & (table["measure"] == "net_flip_rate")
    table.loc[gone, ["estimate", "ci_low", "ci_high"]] = NAN
    table.loc[gone, "note"] = "undefined: no judgment to count; 90 of 90 judgments left out: probe_unusable 90"
    table = table[~((table["judge"] == "small") & (table["slice"] == "probe=identity"))]
    figure = plots.battery_plot(table, judges=["glm", "small"])
    assert figure.axes[0].get_yticklabels()[-1].get_text() == PROBE_NAMES["padding"]
    assert sum("no judgment to count" in text for text in words(figure)) == 2
    assert words(figure).count("not run") == 1
    assert len(dots(figure.axes[0])) == 9
    readable(figure)


def test_variants_stand_in_only_for_a_probe_without_rows_of_its_own():
    more = [value("excess_flip_rate", 0.9, 0.05, judge="glm", slice_=f"probe=labels:{v}") for v in ("1/2", "X/Y")]
    table = pd.concat([battery(["glm"]), rows.frame(more)], ignore_index=True)
    assert not any("X/Y" in text for text in words(plots.battery_plot(table, judges=["glm"])))
    alone = plots.battery_plot(rows.frame(more), judges=["glm"])
    assert {"labels: 1/2", "labels: X/Y"} <= set(words(alone))


def test_at_most_four_judges_and_they_keep_their_colours():
    names = [f"judge{k}" for k in range(6)]
    figure = plots.battery_plot(battery(names), judges=names, controls=["judge0"])
    assert "(first 4 of 6 judges)" in figure.get_suptitle()
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["judge1", "judge2", "judge3", "judge4"]
    readable(figure)
    last = plots.battery_plot(battery(names), judges=names, shown=["judge5"])
    assert dots(last.axes[0])[0][2] == judge_colours(names)["judge5"][0]


def test_the_table_of_the_measure_is_drawn():
    from judgelab.measure.probes import probe_table

    calls = pd.DataFrame(
        [
            {"judge": "glm", "probe": name, "variant": "", "item_id": item, "category": "c", "system_x": "X",
             "system_y": "Y", "pass": "original", "repeat": int(name == "repetition"), "first": "X", "second": "Y",
             "target": "X" if name == "padding" else "", "verdict": "AB"[item % 2], "base": "B", "again": "B"}
            for name in ("repetition", "padding", "labels") for item in range(6)
        ]
    )  # fmt: skip
    figure = plots.battery_plot(probe_table(calls, ci_level=0.95, resamples=50, seed=1), judges=["glm"])
    assert [x for x, *_ in dots(figure.axes[0])] == [0.5, 0.5], "three of six moved from B to A"
    assert {"3/0 of 6", "3 of 6"} <= set(words(figure))


def choice(judges=JUDGES):
    found = []
    for place, judge in enumerate(judges):
        for effect, size in (("first_position", 0.4), ("length", 0.2), ("human", 2.0)):
            found.append(value(f"{effect}_log_odds", size + 0.1 * place, 0.3, judge=judge))
        found.append(value("family_log_odds", NAN, judge=judge, note="undefined: family is 0 throughout; 3 left out"))
    return rows.frame(found)


def test_effects_of_the_regression_have_a_panel_each():
    figure = plots.choice_plot(choice(), judges=JUDGES)
    place, length, family, people = figure.axes
    np.testing.assert_allclose([x for x, *_ in dots(place)], [0.4, 0.5, 0.6])
    np.testing.assert_allclose([x for x, *_ in dots(length)], [0.2, 0.3, 0.4])
    np.testing.assert_allclose([x for x, *_ in dots(people)], [2.0, 2.1, 2.2])
    assert dots(family) == []
    assert sum("family is 0 throughout" in text for text in words(figure)) == 3
    assert all(any(list(line.get_xdata()) == [0, 0] for line in panel.get_lines()) for panel in figure.axes)
    assert [colour for _, _, colour, _ in dots(place)] == [colour for colour, _ in judge_colours(JUDGES).values()]
    readable(figure)


def test_an_interval_far_beyond_the_others_ends_in_arrows():
    table = choice()
    wide = (table["judge"] == "small") & (table["measure"] == "length_log_odds")
    table.loc[wide, ["ci_low", "ci_high"]] = [-50.0, 50.0]
    panel = plots.choice_plot(table, judges=JUDGES).axes[1]
    assert {line.get_marker() for line in panel.get_lines()} >= {"<", ">"}
    assert panel.get_xlim()[1] < 5


def length_rows(judge, strategy="pairwise", pass_="both"):
    at = {"judge": judge, "strategy": strategy, "pass_": pass_}
    return [
        value("longer_rate", 0.6, 0.1, numerator=60, denominator=100, **at),
        value("human_longer_rate", 0.5, 0.1, numerator=50, denominator=100, **at),
        value("exact_agreement", 0.8, 0.1, slice_="length=similar", numerator=40, denominator=50, **at),
        value("exact_agreement", 0.7, 0.1, slice_="length=different", numerator=35, denominator=50, **at),
    ]


def test_length_has_people_beside_each_judge_and_two_kinds_of_pairs():
    table = rows.frame([*length_rows("glm"), *length_rows("small", "direct", "direct")])
    figure = plots.length_plot(table, judges=JUDGES)
    left, right = figure.axes
    assert [x for x, *_ in dots(left)] == [0.6, 0.5, 0.6, 0.5]
    assert [(x, filled) for x, _, _, filled in dots(right)] == [(0.8, True), (0.7, False)] * 2
    assert {"60/100", "50/100", "40/50", "35/50"} <= set(words(figure))
    assert "By direct scores, not pairwise: small." in " ".join(words(figure))
    readable(figure)


def test_length_prefers_both_passes_and_says_a_reason_once():
    direct = [row | {"estimate": 0.1} for row in length_rows("glm", "direct", "direct")]
    table = rows.frame([*direct, *length_rows("glm")])
    assert [x for x, *_ in dots(plots.length_plot(table, judges=JUDGES).axes[0])] == [0.6, 0.5]
    undefined = rows.frame([row | {"estimate": NAN, "note": "undefined: no pair"} for row in length_rows("glm")])
    figure = plots.length_plot(undefined, judges=JUDGES)
    assert words(figure).count("undefined: no pair") == 2, "once a panel"
    only = plots.length_plot(rows.frame(length_rows("glm")[:2]), judges=JUDGES)
    assert "not measured" in words(only)


def lenient(judge, up, over, slice_="accept>=4"):
    at = {"judge": judge, "strategy": "direct", "pass_": "direct", "slice_": slice_, "denominator": 100}
    return [
        value("true_positive_rate", up, 0.05, numerator=round(100 * up), **at),
        value("true_negative_rate", over, 0.05, numerator=round(100 * over), **at),
    ]


def test_leniency_is_a_cross_in_the_unit_square():
    table = rows.frame([*lenient("glm", 0.9, 0.2), *lenient("small", 0.6, 0.7), *lenient("glm", 0.1, 0.1, "label=X")])
    figure = plots.leniency_plot(table, judges=JUDGES)
    panel = figure.axes[0]
    crosses = [(x, y) for x, y, *_ in dots(panel)]
    assert sorted(crosses) == [(0.2, 0.9), (0.7, 0.6)]
    assert {"accepts everything", "rejects everything", "glm (90/100, 20/100)"} <= set(words(figure))
    assert "accepted from 4" in figure.get_suptitle()
    segments = {tuple(map(tuple, s.round(9))) for lines in panel.collections for s in lines.get_segments()}
    assert segments >= {((0.15, 0.9), (0.25, 0.9)), ((0.2, 0.85), (0.2, 0.95))}


def test_leniency_names_do_not_overlap_where_judges_are_alike():
    names = [f"{LONG[:-2]}{k:02d}" for k in range(12)]
    table = rows.frame([row for name in names for row in lenient(name, 0.95, 0.1)])
    table.loc[table["judge"] == names[3], ["estimate"]] = NAN
    table.loc[table["judge"] == names[3], ["note"]] = "undefined: the protocol names no acceptance threshold"
    figure = plots.leniency_plot(table, judges=names, controls=names[1:2], provenance="simulated")
    assert any("no acceptance threshold" in text for text in words(figure))
    assert "(first 10 of 12 judges)" in figure.get_suptitle()
    readable(figure)


@pytest.mark.parametrize("plot", [plots.battery_plot, plots.choice_plot, plots.length_plot, plots.leniency_plot])
def test_nothing_to_show_is_said(plot):
    figure = plot(EMPTY, judges=JUDGES)
    assert "nothing to show" in figure.get_suptitle()
    assert all(dots(panel) == [] for panel in figure.axes)
    assert "nothing to show" in plot(battery(["stranger"]), judges=JUDGES).get_suptitle()


def test_tables_are_left_as_they_were():
    table = battery()
    before = table.copy(deep=True)
    plots.battery_plot(table, judges=JUDGES)
    pd.testing.assert_frame_equal(table, before)


def test_permuted_rows_give_the_same_figure():
    table = battery()
    mixed = table.sample(frac=1, random_state=3)
    one, other = (plots.battery_plot(each, judges=JUDGES) for each in (table, mixed))
    assert [dots(panel) for panel in one.axes] == [dots(panel) for panel in other.axes]
