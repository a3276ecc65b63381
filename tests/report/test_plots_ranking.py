"""Plots of rankings: what the table says, best on top, and readable for one system and for many."""

from __future__ import annotations

import itertools

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from judgelab.measure.leaderboard import leaderboard
from judgelab.measure.win_matrix import win_matrix
from judgelab.report import plots
from judgelab.report.style import GREY
from judgelab.report.system_lines import name_of, names_of

NAN = float("nan")
LONG = "silent-laboratory/a-model-with-a-name-of-many-letters-70b-instruct-v2"
HOW = {"ci_level": 0.95, "resamples": 100, "seed": 1}
TABLE_PLOTS = (plots.rank_plot, plots.rank_set_plot, plots.ratings_scatter)


@pytest.fixture(autouse=True)
def _figures_are_closed():
    plots.style()
    yield
    plt.close("all")


def simulated(names, strengths, items):
    """One match of every pair on every item, a sixth of them ties."""
    rng = np.random.default_rng(1)
    found = []
    for item, (a, b) in itertools.product(range(items), itertools.combinations(range(len(names)), 2)):
        wins = rng.random() < 1 / (1 + np.exp(strengths[b] - strengths[a]))
        preference = "TIE" if rng.random() < 1 / 6 else names[a] if wins else names[b]
        found.append(("j", f"i{item}", names[a], names[b], preference))
    return found


def seven():
    """Four systems that all met, one undefeated, one with four matches, and one without a decided match."""
    found = simulated(["alpha", "beta", "gamma", "delta"], [1.2, 0.8, 0.1, -0.6], 15)
    found += [("j", f"i{k}", "champion", other, "champion") for k in range(4) for other in ("alpha", "beta", "gamma")]
    found += [("j", f"i{k}", "newcomer", "delta", "newcomer" if k else "delta") for k in range(4)]
    found += [("j", "i1", LONG, "delta", NAN)]
    return pd.DataFrame(found, columns=["judge", "item_id", "system_x", "system_y", "preference"])


@pytest.fixture(scope="module")
def board():
    return leaderboard(seven(), permutations=50, **HOW).table


@pytest.fixture(scope="module")
def matrix():
    return win_matrix(seven(), **HOW)


def made(size, *, unrated=0):
    """A leaderboard of so many systems, the last ones without a strength."""
    level = np.linspace(1200, 800, size)
    rank = np.arange(1.0, size + 1)
    table = pd.DataFrame(
        {"system": [f"laboratory-{k % 9}/model-{k:03d}-instruct-8x22b" for k in range(size)], "rank": rank,
         "rank_low": np.maximum(1, rank - 3), "rank_high": np.minimum(size, rank + 3), "letters": "a",
         "strength_elo": level, "strength_low": level - 40, "strength_high": level + 40, "elo": 500 + level / 2,
         "elo_low": 480 + level / 2, "elo_high": 520 + level / 2, "matches": 1200, "few": False, "note": ""}
    )  # fmt: skip
    gone = table.index >= size - unrated
    numbers = table.columns.drop(["system", "letters", "matches", "few", "note"])
    table.loc[gone, numbers] = NAN
    return table.assign(note=np.where(gone, "undefined: no match", ""), few=gone, matches=np.where(gone, 0, 1200))


def words(figure):
    texts = [text.get_text().replace("\n", " ") for panel in figure.axes for text in panel.texts]
    return [*texts, *(text.get_text().replace("\n", " ") for text in figure.texts), figure.get_suptitle()]


def dots(panel, marker):
    found = []
    for line in panel.get_lines():
        if line.get_marker() == marker and line.get_linestyle() == "None":
            x, y = float(line.get_xdata()[0]), float(line.get_ydata()[0])
            found.append((x, y, to_hex(line.get_color()), to_hex(line.get_markerfacecolor())))
    return sorted(found, key=lambda dot: dot[1])


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
    boxes = [plt.Text.get_window_extent(text) for text in shown]  # of a leader's text without the leader
    for (a, one), (b, other) in itertools.combinations(zip(boxes, shown, strict=True), 2):
        clash = min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 2.5
        assert not clash, (one.get_text(), other.get_text())
    width, height = figure.canvas.get_width_height()
    assert all(b.x0 >= -1 and b.y0 >= -1 and b.x1 <= width + 1 and b.y1 <= height + 1 for b in boxes)
    assert figure.get_size_inches()[0] <= 11
    assert figure.get_size_inches()[1] <= 15
    assert min(text.get_fontsize() for text in shown) >= 9


def test_the_ranking_draws_both_ratings_best_on_top(board):
    figure = plots.rank_plot(board)
    panel = figure.axes[0]
    rated = board[board["strength_elo"].notna()]
    np.testing.assert_allclose([x for x, *_ in dots(panel, "o")], rated["strength_elo"])
    np.testing.assert_allclose([x for x, *_ in dots(panel, "D")], rated["elo"])
    names = [label.get_text() for label in panel.get_yticklabels()]
    assert names == [name_of(name) for name in board["system"]]
    assert panel.get_ylim()[0] > panel.get_ylim()[1]
    said = words(figure)
    assert "Ranking of 7 systems: strength with 95 % interval" in said
    for low, high in zip(rated["rank_low"], rated["rank_high"], strict=True):
        assert f"{low:.0f} to {high:.0f}" in said
    assert [text.get_text() for text in panel.texts if text.get_text().isdigit()] == [str(n) for n in board["matches"]]
    assert "no strength: no match" in said
    assert "champion: undefeated in its 12 matches" in " ".join(said)
    readable(figure)


def test_few_matches_are_hollow_and_grey_and_in_the_legend(board):
    figure = plots.rank_plot(board, minimum_matches=10)
    looks = {y: (colour, face) for _, y, colour, face in dots(figure.axes[0], "o")}
    place = board.index[board["system"] == "newcomer"][0]
    assert looks[place] == (GREY, "#ffffff")
    assert all(colour == face for y, (colour, face) in looks.items() if y != place)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["Bradley-Terry strength", "Elo, mean over orders of the matches", "fewer than 10 matches"]
    plenty = plots.rank_plot(board.assign(few=False))
    assert len(plenty.legends[0].get_texts()) == 2


def test_bars_join_the_systems_that_share_a_letter(board):
    bars = [line for line in plots.rank_plot(board).axes[0].get_lines() if line.get_label().startswith("group ")]
    assert len(bars) == len(set("".join(board["letters"])))
    for bar in bars:
        letter = bar.get_label()[-1]
        assert list(bar.get_ydata()) == list(board.index[board["letters"].str.contains(letter)])
    many = plots.rank_plot(made(13)).axes[0]
    assert not any(line.get_label().startswith("group ") for line in many.get_lines())


@pytest.mark.parametrize("size", [1, 2, 59])
def test_rankings_of_any_size_are_readable(size):
    table = made(size, unrated=2 if size > 10 else 0)
    for plot in TABLE_PLOTS:
        readable(plot(table))


@pytest.mark.parametrize("plot", [plots.rank_plot, plots.rank_set_plot])
def test_of_many_systems_the_first_and_the_last_are_drawn_and_it_is_said(plot):
    figure = plot(made(150, unrated=2))
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(names) == 80
    assert "model-059" in names[59]
    assert "model-130" in names[60]
    assert figure.get_suptitle().endswith("(first 60 and last 20)")
    assert any("systems left out" in text for text in words(figure))
    readable(figure)


def test_bars_span_the_ranks_that_the_data_allow(board):
    figure = plots.rank_set_plot(board)
    panel = figure.axes[0]
    bars = [(patch.get_x() + 0.35, patch.get_x() + patch.get_width() - 0.35, patch.get_y() + patch.get_height() / 2)
            for patch in panel.containers[0]]  # fmt: skip
    rated = board[board["rank"].notna()]
    np.testing.assert_allclose(bars, list(zip(rated["rank_low"], rated["rank_high"], rated.index, strict=True)))
    np.testing.assert_allclose([x for x, *_ in dots(panel, "o")], rated["rank"])
    assert "no rank: no match" in words(figure)
    assert panel.get_xticks()[0] == 1
    readable(figure)


def test_cells_say_their_rate_and_their_matches(matrix):
    figure = plots.win_heatmap(matrix)
    panel = figure.axes[0]
    names = list(dict.fromkeys(matrix["system"]))
    cells = {tuple(map(round, text.get_position())): text.get_text() for text in panel.texts}
    met = matrix[matrix["matches"] > 0]
    assert len(cells) == len(met)
    for row in met.itertuples():
        rate, count = cells[names.index(row.opponent), names.index(row.system)].split(" %\nof ")
        assert abs(float(rate) - 100 * row.win_rate) <= 0.51
        assert int(count) == row.matches
    image = panel.get_images()[0].get_array()
    assert int(image.mask.sum()) == 49 - len(met)
    assert panel.get_legend().get_texts()[0].get_text() == "no decided match"
    readable(figure)


@pytest.mark.parametrize(
    ("counts", "said"),
    [((12, 12), "have 12 matches."), ((12, 14), "have 12 to 14 matches."), ((1, 1), "have 1 match."), ((0, 0), None)],
)
def test_the_caption_says_how_many_matches_two_have(counts, said):
    pairs = [("a", "b", counts[0]), ("b", "a", counts[0]), ("a", "c", counts[1]), ("c", "a", counts[1])]
    table = pd.DataFrame(pairs, columns=["system", "opponent", "matches"])
    figure = plots.win_heatmap(table.assign(win_rate=table["matches"].gt(0).map({True: 0.5, False: NAN})))
    caption = " ".join(words(figure))
    assert "Two that met" not in caption if said is None else f"Two that met {said}" in caption
    readable(figure)


def test_a_heatmap_names_few_systems_and_numbers_many(matrix):
    two = plots.win_heatmap(matrix, systems=["gamma", "alpha", "nobody"])
    assert [label.get_text() for label in two.axes[0].get_xticklabels()] == ["gamma", "alpha"]
    assert two.axes[0].get_legend() is None
    readable(two)
    found = simulated([f"system {k}" for k in range(40)], np.linspace(1, -1, 40), 1)
    table = pd.DataFrame(found, columns=["judge", "item_id", "system_x", "system_y", "preference"])
    many = win_matrix(table, **HOW | {"resamples": 2})
    figure = plots.win_heatmap(many)
    assert figure.get_suptitle() == "Who beats whom (best 15 and worst 15 of 40 systems)"
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == [str(k) for k in range(1, 31)]
    order = list(dict.fromkeys(many["system"]))
    rows = [label.get_text().split("  ")[0] for label in figure.axes[0].get_yticklabels()]
    assert rows == order[:15] + order[25:]
    assert not figure.axes[0].texts
    readable(figure)
    assert "(first 2 and last 1 of 40 systems)" in plots.win_heatmap(many, systems=order[::-1], most=3).get_suptitle()


def test_the_scatter_names_those_that_differ_most(board):
    table = made(30)
    table.loc[3, "elo"] -= 300
    figure = plots.ratings_scatter(table.assign(few=table.index == 3))
    named = [text.get_text() for text in figure.axes[0].texts]
    assert len(named) == 6
    assert table["system"][3] in named, "30 letters would be the same for several, so that the names are longer"
    points = next(part.get_offsets() for part in figure.axes[0].collections if len(part.get_offsets()) == 30)
    np.testing.assert_allclose(points, table[["strength_elo", "elo"]])
    assert "Hollow: few matches." in " ".join(words(figure))
    readable(figure)
    some = plots.ratings_scatter(board)
    assert some.get_suptitle() == "Elo against Bradley-Terry: 6 systems"
    assert "Not drawn: 1 system without a rating." in " ".join(words(some))
    readable(some)


def test_nothing_to_show_is_said(matrix):
    empty = [made(3).iloc[:0], pd.DataFrame(columns=["system"])]
    for plot, table in itertools.product(TABLE_PLOTS, empty):
        assert "nothing to show" in plot(table).get_suptitle()
    assert "nothing to show" in plots.ratings_scatter(made(3, unrated=3)).get_suptitle()
    for table in (matrix.iloc[:0], pd.DataFrame()):
        assert "nothing to show" in plots.win_heatmap(table).get_suptitle()
    assert "nothing to show" in plots.win_heatmap(matrix, systems=["alpha"]).get_suptitle()


def test_a_table_read_from_a_file_has_no_words_where_they_were_empty():
    read = made(3).assign(note=NAN, letters=NAN)
    for plot in TABLE_PLOTS:
        readable(plot(read))


def test_systems_without_any_strength_are_named():
    for plot, said in ((plots.rank_plot, "no strength: no match"), (plots.rank_set_plot, "no rank: no match")):
        figure = plot(made(3, unrated=3))
        assert words(figure).count(said) == 3
        readable(figure)


def test_tables_are_left_as_they_were_and_their_order_does_not_matter(board, matrix):
    before = board.copy(deep=True), matrix.copy(deep=True)
    first = [plot(board) for plot in TABLE_PLOTS]
    plots.win_heatmap(matrix)
    pd.testing.assert_frame_equal(board, before[0])
    pd.testing.assert_frame_equal(matrix, before[1])
    mixed = [plot(board.sample(frac=1, random_state=1)) for plot in TABLE_PLOTS]
    for one, other in zip(first, mixed, strict=True):
        assert dots(one.axes[0], "o") == dots(other.axes[0], "o")
    simulated_labels = plots.rank_plot(board.assign(provenance="simulated"))
    assert any("simulated" in text for text in words(simulated_labels))


def test_a_long_name_keeps_both_ends():
    assert name_of(LONG) == "silent-laboratory/a-mod…0b-instruct-v2"
    assert len(name_of(LONG, 20)) == 20
    assert name_of("short") == "short"


def test_two_names_never_look_the_same():
    names = [f"a-laboratory/prompt-with-many-words-{k:02d}-for-one-and-the-same-model" for k in range(12)]
    assert len(set(names_of(names))) == 12
    figure = plots.rank_plot(made(12).assign(system=names))
    assert len({label.get_text() for label in figure.axes[0].get_yticklabels()}) == 12
    readable(figure)
