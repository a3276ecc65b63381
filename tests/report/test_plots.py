"""Plots draw what they are given, say what is undefined, and compute nothing."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from judgelab.measure import rows
from judgelab.report import plots
from judgelab.report.heatmaps import MAX_JUDGES


@pytest.fixture(autouse=True)
def _figures_are_closed():
    plots.style()
    yield
    plt.close("all")


def drawn(figure):
    """Every dot of a figure by (panel, value)."""
    figure.canvas.draw()
    found = []
    for panel in figure.axes:
        for line in panel.get_lines():
            if line.get_linestyle() == "None":
                found += [float(x) for x in line.get_xdata()]
    return sorted(found)


def words(figure):
    texts = [text.get_text() for panel in figure.axes for text in panel.texts]
    labels = [label.get_text() for panel in figure.axes for label in panel.get_yticklabels()]
    heads = [panel.get_title(loc="left") for panel in figure.axes]
    return texts + labels + heads + [text.get_text() for text in figure.texts] + [figure.get_suptitle()]


def overall(table, measure):
    own = table[(table["measure"] == measure) & (table["slice"] == "all")]
    return sorted(own["estimate"].dropna())


@pytest.mark.parametrize("measure", ["exact_agreement", "cohen_kappa"])
def test_agreement_draws_every_estimate_and_no_other(agreement, measure):
    figure = plots.agreement_plot(agreement, measure=measure, controls=["longest"])
    np.testing.assert_allclose(drawn(figure), overall(agreement, measure))


def test_agreement_intervals_are_the_tables(agreement):
    figure = plots.agreement_plot(agreement)
    segments = [s[:, 0] for lines in figure.axes[0].collections for s in lines.get_segments()]
    own = agreement[(agreement["measure"] == "exact_agreement") & (agreement["slice"] == "all")].dropna(
        subset=["estimate"]
    )
    np.testing.assert_allclose(sorted(map(tuple, segments)), sorted(zip(own["ci_low"], own["ci_high"], strict=True)))


def test_an_undefined_judge_is_said_in_words(agreement):
    figure = plots.agreement_plot(agreement)
    assert "undefined: no valid pair" in words(figure)
    assert "0/0" in words(figure)
    assert 0.0 not in drawn(figure)


def test_judges_are_sorted_with_controls_last_and_grey(agreement):
    figure = plots.agreement_plot(agreement, controls=["longest"])
    ticks = figure.axes[0].get_yticklabels()
    assert [tick.get_text() for tick in ticks] == ["glm", "small", "constant", "longest"]
    assert [tick.get_color() for tick in ticks].count("#8a8a8a") == 1
    assert "control judge (no model)" in [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_n_and_provenance_are_on_the_figure(agreement):
    figure = plots.agreement_plot(agreement.assign(provenance="simulated"))
    assert "21/25" in words(figure)
    assert any("Human labels in this study are simulated" in text for text in words(figure))
    plain = plots.agreement_plot(agreement)
    assert not any("simulated" in text for text in words(plain))


def test_passes_can_be_chosen(agreement):
    figure = plots.agreement_plot(agreement, passes=["direct"])
    np.testing.assert_allclose(drawn(figure), [9 / 25, 12 / 25, 17 / 25])


def test_categories_have_a_panel_a_judge(agreement):
    figure = plots.category_plot(agreement, judges=["glm", "small"])
    own = agreement[agreement["slice"].str.startswith("category=") & agreement["judge"].isin(["glm", "small"])]
    np.testing.assert_allclose(drawn(figure), sorted(own["estimate"]))
    assert {"glm", "small", "account", "billing"} <= set(words(figure))


def test_category_position(position):
    figure = plots.category_position_plot(position)
    own = position[position["slice"].str.startswith("category=") & (position["measure"] == "swap_consistency")]
    np.testing.assert_allclose(drawn(figure), sorted(own["estimate"]))
    half = plots.category_position_plot(position, measure="first_position_rate", judges=["glm"])
    assert any(list(line.get_xdata()) == [0.5, 0.5] for line in half.axes[0].get_lines())


def test_first_position_has_the_line_of_no_preference(position):
    figure = plots.first_position_plot(position)
    np.testing.assert_allclose(drawn(figure), overall(position, "first_position_rate"))
    assert any(list(line.get_xdata()) == [0.5, 0.5] for line in figure.axes[0].get_lines())


def cells(panel):
    return [int(text.get_text()) for text in panel.texts]


def test_confusion_shows_the_counts(confusion):
    figure = plots.confusion_heatmaps(confusion, judges=["glm"], labels=["ALPHA", "BETA", "TIE"])
    assert len(figure.axes) == 2
    assert cells(figure.axes[0]) == [10, 0, 1, 2, 9, 0, 0, 0, 3]
    assert "n = 25" in figure.axes[0].get_title(loc="left")


def test_abstentions_get_a_column_of_their_own(confusion):
    more = confusion[confusion["judge"] == "glm"].assign(strategy="pairwise", **{"pass": "aggregated"}).iloc[:5]
    more = pd.concat([more, more.iloc[:1].assign(judged="ABSTAIN", count=4)])
    figure = plots.confusion_heatmaps(more, passes=["aggregated"])
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["ALPHA", "BETA", "TIE", "ABSTAIN"]
    assert sum(cells(figure.axes[0])) == 29


def test_swap_counts_unusable_pairs_apart(swap):
    unusable = pd.DataFrame([("glm", "UNUSABLE", "ALPHA", 2), ("small", "UNUSABLE", "TIE", 0)], columns=swap.columns)
    figure = plots.swap_heatmap(pd.concat([swap, unusable]), labels=["ALPHA", "BETA", "TIE"])
    assert "n = 25, 2 unusable" not in figure.axes[1].get_title(loc="left")
    assert cells(figure.axes[1]) == [11, 3, 0, 0, 8, 2, 0, 0, 1]
    assert sum(cells(figure.axes[0])) == 27
    assert "glm (n = 25" in figure.axes[0].get_title(loc="left")


def test_a_judge_without_a_valid_pair_is_said_in_words(swap):
    empty = swap.assign(count=0)
    figure = plots.swap_heatmap(empty)
    assert words(figure).count("n = 0: no valid pair") == 2


def test_more_judges_than_fit_are_said(swap):
    many = pd.concat([swap[swap["judge"] == "glm"].assign(judge=f"judge{k}") for k in range(MAX_JUDGES + 2)])
    figure = plots.swap_heatmap(many)
    assert "(first 6 of 8 judges)" in figure.get_suptitle()
    assert "judge7 (n = 25)" in words(plots.swap_heatmap(many, judges=["judge7"]))


def test_label_frequencies_are_the_shares(frequencies):
    figure = plots.label_frequency_plot(frequencies, labels=["ALPHA", "BETA", "TIE"])
    widths = sorted(round(patch.get_width(), 9) for patch in figure.axes[0].patches if patch.get_width() > 0)
    once = frequencies[(frequencies["source"] != "human") | (frequencies["judge"] == "glm")]
    np.testing.assert_allclose(widths, sorted(once["share"][once["share"] > 0].round(9)))
    differing = frequencies.copy()
    differing.loc[(differing["judge"] == "small") & (differing["label"] == "TIE"), "count"] = 2
    assert {"glm: human", "small: human"} <= set(words(plots.label_frequency_plot(differing)))
    assert words(figure).count("n = 25") == 5, "people once, and two passes of each of two judges"
    none = plots.label_frequency_plot(frequencies.assign(count=0, denominator=0, share=math.nan))
    assert "no valid label" in words(none)


def test_reviewers_alone_and_with_a_judge(reviewers):
    figure = plots.reviewer_plot(reviewers)
    np.testing.assert_allclose(drawn(figure), [0.61, 0.78, 0.88])
    assert {"r01 and r02", "all reviewers", "all reviewers + glm"} <= set(words(figure))


def test_score_bars_count_the_answers(verdicts):
    figure = plots.score_distributions(verdicts, scale=(1, 5))
    heights = [patch.get_height() for patch in figure.axes[0].patches if patch.get_height() > 0]
    assert sorted(heights) == [1, 1, 1, 1, 4]
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert legend == ["ALPHA (n = 0 of 4)", "BETA (n = 0 of 4)"]
    assert "no usable score" in words(figure)


def test_many_distinct_scores_keep_their_number(verdicts):
    direct = verdicts[(verdicts["judge"] == "glm") & (verdicts["strategy"] == "direct")]
    scores = [1 + 4 * k / 79 for k in range(80)]
    many = pd.concat([direct] * 10, ignore_index=True).assign(total=scores)
    figure = plots.score_distributions(many, scale=(1, 5))
    assert sum(patch.get_height() for patch in figure.axes[0].patches) == 80


EMPTY = rows.frame([])


@pytest.mark.parametrize(
    "figure",
    [
        lambda: plots.agreement_plot(EMPTY),
        lambda: plots.category_plot(EMPTY),
        lambda: plots.category_position_plot(EMPTY, measure="first_position_rate"),
        lambda: plots.first_position_plot(EMPTY),
        lambda: plots.reviewer_plot(EMPTY),
        lambda: plots.confusion_heatmaps(
            pd.DataFrame(columns=["judge", "strategy", "pass", "human", "judged", "count"])
        ),
        lambda: plots.swap_heatmap(pd.DataFrame(columns=["judge", "original", "swapped", "count"])),
        lambda: plots.label_frequency_plot(
            pd.DataFrame(columns=["judge", "source", "label", "count", "denominator", "share"])
        ),
        lambda: plots.score_distributions(
            pd.DataFrame(columns=["judge", "strategy", "pass", "system", "total", "status"])
        ),
    ],
)
def test_nothing_to_show_is_said(figure):
    made = figure()
    assert "nothing to show" in made.get_suptitle()
    assert drawn(made) == []


def test_one_judge_with_one_pass(agreement):
    figure = plots.agreement_plot(agreement[(agreement["judge"] == "glm") & (agreement["pass"] == "direct")])
    assert drawn(figure) == [17 / 25]
    assert figure.axes[0].get_legend() is None


def test_every_word_is_at_least_nine_points_and_every_figure_fits(agreement, position, confusion, swap, frequencies):
    figures = [
        plots.agreement_plot(agreement), plots.category_plot(agreement), plots.first_position_plot(position),
        plots.confusion_heatmaps(confusion), plots.swap_heatmap(swap), plots.label_frequency_plot(frequencies),
    ]  # fmt: skip
    for figure in figures:
        assert 8 <= figure.get_size_inches()[0] <= 11
        assert min(text.get_fontsize() for text in figure.findobj(plt.Text) if text.get_text()) >= 9


def test_names_with_dollars_are_no_formulas(agreement):
    named = agreement.assign(judge=agreement["judge"].replace("glm", "a$_x$b"))
    figure = plots.agreement_plot(named)
    figure.canvas.draw()
    assert "a$_x$b" in words(figure)
    assert not figure.axes[0].get_yticklabels()[0].get_parse_math()


def test_show_gives_a_picture_with_its_text_and_nothing_else(agreement, monkeypatch):
    shown = []
    monkeypatch.setattr("judgelab.report.style.display", lambda *args, **values: shown.append((args, values)))
    figure = plots.agreement_plot(agreement)
    assert plots.show(figure, alt="Agreement by judge") is None
    ((args, values),) = shown
    assert args == (figure,)
    assert values["metadata"] == {"image/png": {"alt": "Agreement by judge"}}
    assert not plt.fignum_exists(figure.number)
    with pytest.raises(ValueError, match="alt"):
        plots.show(figure, alt=" ")
