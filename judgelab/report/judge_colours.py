"""How a judge looks in every plot: its colour and its marker, and its estimates as dots with intervals or in words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from judgelab.report.picking import judges_of
from judgelab.report.style import GREY, INK
from judgelab.report.system_lines import names_of
from judgelab.report.words import natural, reason_text

__all__ = [
    "MAX_LINES", "Mark", "draw_marks", "fit_words", "judge_colours", "judges_drawn", "mark_key", "name_lines",
    "one_pass", "p_limit", "significant", "span_of",
]  # fmt: skip

MAX_LINES = 12  # judges of a figure with one line a judge

_COLOURS = [sns.color_palette("colorblind").as_hex()[place] for place in (0, 1, 2, 3, 4, 5, 9, 6)]
_LARGER = {"P": 1.3, "X": 1.3, "^": 1.15, "v": 1.15, "p": 1.15}  # so that thin ones are seen as well as the others
_MARKERS = ("o", "s", "D", "^", "v", "P", "X", "p")
_PASSES = ("both", "direct", "aggregated", "original", "swapped")
_REASON = "reason"  # mark of the texts that are broken to fit once the panels have their sizes
_LETTERS = 12.5  # an inch, at 9 pt


def judge_colours(judges: Sequence[str], controls: Collection[str] = ()) -> dict[str, tuple[str, str]]:
    """The colour and the marker of each judge, the same in every plot that is given the protocol's judges.

    Parameters
    ----------
    judges
        All judges of the protocol in its order, not only those of one plot: a judge's place decides its look. A name
        that comes twice counts once.
    controls
        Judges without a model, whether or not they are among ``judges``; they are grey and take no colour.

    Returns
    -------
    dict
        For each judge (models first, then controls) its colour (``#rrggbb``) and its marker. Eight colours of the
        colour-blind-safe palette of seaborn (without its grey and its yellow, which is pale on white); from the ninth
        judge on they come again with other markers, so that 64 judges differ. No judge: an empty dict.

    Examples
    --------
    >>> judge_colours(["glm", "longest", "small"], controls=["longest"])
    {'glm': ('#0173b2', 'o'), 'small': ('#de8f05', 's'), 'longest': ('#8a8a8a', 'o')}
    """
    models = [name for name in natural(judges) if name not in controls]
    without = [name for name in natural([*judges, *controls]) if name in controls]
    size = len(_COLOURS)
    looks = {
        name: (_COLOURS[place % size], _MARKERS[(place + place // size) % len(_MARKERS)])
        for place, name in enumerate(models)
    }
    return looks | {name: (GREY, _MARKERS[place % len(_MARKERS)]) for place, name in enumerate(without)}


@dataclass(frozen=True)
class Mark:
    """One estimate of a judge: its line of the chart, its row of the table, its look, and whether it is filled.

    ``row`` is None where the table has no such row; ``size`` is the marker's, in points.
    """

    y: float
    row: pd.Series | None
    look: tuple[str, str]
    filled: bool = True
    size: float = 7.0


def draw_marks(axes: Axes, marks: Sequence[Mark], *, missing: str = "not measured") -> None:
    """Draw estimates as dots with their intervals; what has no estimate says why in words.

    A bound beyond the axis is drawn as an arrow, so set the limits first; call :func:`fit_words` when the figure is
    laid out. A row that the table does not have is said as ``missing``.
    """
    low, high = axes.get_xlim()
    for mark in marks:
        colour, marker = mark.look
        if mark.row is None or pd.isna(mark.row["estimate"]):
            why = missing if mark.row is None else f"undefined: {reason_text(mark.row)}"
            text = axes.text(
                0.012, mark.y, why, transform=axes.get_yaxis_transform(), va="center", ha="left", fontsize=9,
                style="italic", color="#555555", linespacing=1.05, zorder=4, gid=_REASON,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0},
            )  # fmt: skip
            text.set_in_layout(False)  # long words must not make the panel narrow
            continue
        left, right = float(mark.row["ci_low"]), float(mark.row["ci_high"])
        if math.isfinite(left) and math.isfinite(right):
            axes.hlines(mark.y, max(left, low), min(right, high), colors=colour, linewidth=2, alpha=0.75, zorder=2)
            inside = 0.015 * (high - low)
            for beyond, place, arrow in ((left < low, low + inside, "<"), (right > high, high - inside, ">")):
                if beyond:
                    axes.plot(place, mark.y, marker=arrow, linestyle="-", markersize=6, color=colour)
        axes.plot(
            float(mark.row["estimate"]), mark.y, linestyle="", marker=marker, color=colour,
            markersize=mark.size * _LARGER.get(marker, 1.0),
            markerfacecolor=colour if mark.filled else "white", markeredgecolor="white" if mark.filled else colour,
            markeredgewidth=0.8 if mark.filled else 1.5, zorder=3,
        )  # fmt: skip


def fit_words(figure: Figure, *, lines: int = 2) -> Figure:
    """Break the reasons that :func:`draw_marks` wrote so that they fit their panels; returns the figure.

    Of a reason that takes more than ``lines`` lines, the word "undefined" is left out, then what follows the first
    semicolon (how many were left out); what is still too long ends with an ellipsis.
    """
    for axes in figure.axes:
        inches = axes.get_position().width * figure.get_size_inches()[0]
        letters = max(8, int(inches * _LETTERS))
        for text in axes.texts:
            if text.get_gid() == _REASON:
                _fit(text, letters, lines)
    return figure


def _fit(text: Text, letters: int, lines: int) -> None:
    """One reason in at most so many lines of so many letters."""
    whole = text.get_text()
    bare = whole.removeprefix("undefined: ")
    shorter = [whole, bare, bare.partition("; ")[0]]
    fitting = next((words for words in shorter if len(textwrap.wrap(words, letters)) <= lines), shorter[-1])
    text.set_text("\n".join(textwrap.wrap(fitting, letters, max_lines=lines, placeholder=" …")))


def mark_key(look: tuple[str, str], label: str, *, filled: bool = True) -> Line2D:
    """An entry of a legend that looks as :func:`draw_marks` draws."""
    colour, marker = look
    return Line2D(
        [], [], linestyle="-", linewidth=2, color=colour, marker=marker, label=label,
        markersize=7 * _LARGER.get(marker, 1.0),
        markerfacecolor=colour if filled else "white", markeredgecolor="white" if filled else colour,
        markeredgewidth=0.8 if filled else 1.5,
    )  # fmt: skip


def significant(row: pd.Series | None, p_row: pd.Series | None) -> bool:
    """Whether a p-value of the table is below 1 − the level of the estimate's interval; False if there is none."""
    if row is None or p_row is None or pd.isna(p_row["estimate"]) or pd.isna(row["ci_level"]):
        return False
    return bool(float(p_row["estimate"]) < 1 - float(row["ci_level"]))


def p_limit(rows: pd.DataFrame) -> str:
    """The p-value below which a marker is filled, for a caption: "0.05" for intervals of 95 %."""
    levels = sorted(set(rows["ci_level"].dropna()))
    return f"{1 - levels[0]:.2g}" if len(levels) == 1 else "1 minus the level"


def span_of(rows: pd.DataFrame, *, zero: bool = True, least: float = 0.1) -> tuple[float, float]:
    """Limits of an axis that holds estimates and intervals, with a margin.

    Intervals that are far wider than the estimates lie apart are cut (:func:`draw_marks` draws an arrow there).
    ``zero`` keeps 0 in sight; ``least`` is the least width.
    """
    estimates = [*rows["estimate"].dropna(), *([0.0] if zero else [])] or [0.0]
    low, high = min(estimates), max(estimates)
    reach = 1.25 * max(high - low, least)
    bounds = [*rows["ci_low"].dropna(), *rows["ci_high"].dropna(), low - least / 2, high + least / 2]
    left, right = max(min(bounds), low - reach), min(max(bounds), high + reach)
    margin = 0.06 * (right - left)
    return left - margin, right + margin


def judges_drawn(
    looks: Iterable[str], rows: pd.DataFrame, shown: Sequence[str] | None = None, *, most: int = MAX_LINES
) -> tuple[list[str], str]:
    """The judges to draw, and words for the title if some are left out.

    ``looks`` is what :func:`judge_colours` returned: models in the protocol's order, then controls. Judges without a
    row and those that are not in ``shown`` (if it is given) are not drawn.
    """
    present, known = set(judges_of(rows)), list(looks)
    wanted = [name for name in (known if shown is None else shown) if name in present and name in known]
    return wanted[:most], f" (first {most} of {len(wanted)} judges)" if len(wanted) > most else ""


def one_pass(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each judge and measure the rows of one pass: both, else direct, aggregated, original or swapped."""
    ranks = [_PASSES.index(name) if name in _PASSES else len(_PASSES) for name in rows["pass"]]
    best = pd.Series(ranks, index=rows.index, dtype=int).groupby([rows["judge"], rows["measure"]]).transform("min")
    return rows[best == ranks]


def name_lines(axes: Axes, names: Sequence[str], *, grey: Collection[str] = ()) -> None:
    """Name the lines 0, 1, ... of a chart at its left, the first on top, those of ``grey`` in grey."""
    axes.set_yticks(range(len(names)), names_of(names, 34))
    for name, tick in zip(names, axes.get_yticklabels(), strict=True):
        tick.set_color(GREY if name in grey else INK)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
