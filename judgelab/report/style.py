"""How figures look and how they are shown."""

from __future__ import annotations

import textwrap

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from IPython.display import display
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

__all__ = ["GREY", "INK", "SERIES", "Series", "blank", "finish", "provenance_of", "series_of", "show", "style"]

# The colour-blind-safe palette of seaborn, one colour and one marker for each way of asking: colour is never alone.
_COLOURS = sns.color_palette("colorblind").as_hex()
GREY = "#8a8a8a"
INK = "#1f1f1f"


class Series:
    """One way of asking: strategy and pass, with its name for people, its colour and its marker."""

    def __init__(self, strategy: str, pass_: str, name: str, colour: str, marker: str) -> None:
        self.strategy, self.pass_ = strategy, pass_
        self.name, self.colour, self.marker = name, colour, marker


SERIES: tuple[Series, ...] = (
    Series("direct", "direct", "direct", _COLOURS[0], "o"),
    Series("pairwise", "original", "pairwise, original", _COLOURS[1], "s"),
    Series("pairwise", "swapped", "pairwise, swapped", _COLOURS[2], "D"),
    Series("pairwise", "both", "pairwise, both passes", _COLOURS[4], "X"),
    Series("pairwise", "aggregated", "pairwise, aggregated", _COLOURS[3], "^"),
)


def style() -> None:
    """Set the house style: figures in fonts of 9 pt and more and colour-blind-safe colours, tables with whole texts."""
    pd.set_option("display.max_colwidth", None, "display.max_columns", None)
    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette="colorblind",
        rc={
            "font.family": "DejaVu Sans",  # comes with matplotlib, so that figures are the same everywhere
            "font.size": 10,
            "axes.titlesize": 10.5,
            "axes.titleweight": "bold",
            "axes.labelsize": 10,
            "xtick.labelsize": 9.5,
            "ytick.labelsize": 9.5,
            "legend.fontsize": 9.5,
            "figure.titlesize": 12.5,
            "figure.titleweight": "bold",
            "figure.dpi": 100,
            "savefig.dpi": 144,
            "grid.color": "#e4e4e4",
            "axes.edgecolor": "#b5b5b5",
            "text.color": INK,
            "axes.labelcolor": INK,
            # names of items, systems and categories are data: `$` in them must not start a formula
            "text.parse_math": False,
            "svg.hashsalt": "judgelab",
        },
    )


def show(figure: Figure, alt: str) -> None:
    """Show a figure as PNG with a text for those who cannot see it, and close it.

    Returns nothing, so that a cell that ends with it has the picture as its only output.

    Parameters
    ----------
    figure
        What a plot function returned.
    alt
        What the figure shows, in a sentence. Must not be empty.

    Raises
    ------
    ValueError
        If ``alt`` is empty.
    """
    if not alt.strip():
        raise ValueError("show: a figure needs a text that says what it shows (alt)")
    display(figure, include=["image/png"], metadata={"image/png": {"alt": alt}})
    plt.close(figure)


def series_of(table: pd.DataFrame) -> list[Series]:
    """The ways of asking that occur in a table with the columns ``strategy`` and ``pass``, in fixed order."""
    if table.empty:
        return []
    present = set(zip(table["strategy"], table["pass"], strict=True))
    return [series for series in SERIES if (series.strategy, series.pass_) in present]


def provenance_of(table: pd.DataFrame, given: str | None) -> str | None:
    """The provenance of the human labels: as given, else what the table's own column says."""
    if given is not None or "provenance" not in table or table.empty:
        return given
    return str(table["provenance"].iloc[0])


def finish(figure: Figure, title: str, *, note: str = "", provenance: str | None = None, top: float = 0.0) -> Figure:
    """Title above, reading aid below, and on labels that are not of people the words that say so."""
    height = figure.get_size_inches()[1]
    width = figure.get_size_inches()[0]
    lines = [_wrapped(note, 13.5 * width)] if note else []
    title = _wrapped(title, 8.5 * width)
    if provenance == "simulated":
        lines.append("Human labels in this study are simulated: this shows the method, not how people judge.")
    if provenance == "answer_key":
        lines.append("The reference in this study is an answer key, and no people's labels.")
    below = 0.12 + 0.2 * sum(line.count("\n") + 1 for line in lines)
    rows = title.count("\n") + 1
    # Room for the words is counted in inches, so that it does not shrink on flat figures.
    rect = (0, below / height, 1, 1 - (below + 0.12 + 0.24 * rows + top) / height)
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=rect, h_pad=0.09, w_pad=0.06))
    figure.suptitle(title, x=0.01, y=1 - 0.08 / height, ha="left", va="top")
    if lines:
        figure.text(0.01, 0.06 / height, "\n".join(lines), ha="left", va="bottom", fontsize=9, color="#555555")
    # The layout of square panels is right from its second pass on; fixed then, every later drawing is the same.
    for _ in range(2):
        figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def _wrapped(text: str, characters: float) -> str:
    """Each line of a text broken so that it fits the figure."""
    return "\n".join(textwrap.fill(line, int(characters)) for line in text.split("\n"))


def blank(title: str, why: str, *, provenance: str | None = None) -> Figure:
    """A figure without data that says so."""
    figure, axes = plt.subplots(figsize=(9, 1.6), layout="constrained")
    axes.set_axis_off()
    axes.text(0.5, 0.5, why, ha="center", va="center", transform=axes.transAxes, style="italic", color="#555555")
    return finish(figure, title, provenance=provenance)
