"""Plots of length and leniency: a judge's rates beside those of people. Each takes tables and computes no statistic."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from judgelab.report.judge_colours import (
    Mark,
    draw_marks,
    fit_words,
    judge_colours,
    judges_drawn,
    mark_key,
    name_lines,
    one_pass,
)
from judgelab.report.picking import one, rows_of
from judgelab.report.style import INK, blank, finish, provenance_of
from judgelab.report.words import level_of, listed, rate_text, slice_text

__all__ = ["length_plot", "leniency_plot"]

PEOPLE = (INK, "d")
RATES = ("longer_rate", "human_longer_rate")
LENGTHS = ("length=similar", "length=different")
ACCEPTS = ("true_positive_rate", "true_negative_rate")
MAX_NAMES = 10  # beside the square of the leniency plot
_APART = 0.17  # of two rows of one judge from the middle of its line


def length_plot(
    bias: pd.DataFrame,
    *,
    judges: Sequence[str],
    controls: Collection[str] = (),
    provenance: str | None = None,
) -> Figure:
    """How often each judge and people prefer the longer answer, and agreement where lengths are alike or not.

    Parameters
    ----------
    bias
        Rows of the one shape: left ``longer_rate`` and ``human_longer_rate`` (slice "all"), right ``exact_agreement``
        (slices ``length=similar`` and ``length=different``); all shares, 0 to 1. A judge's rows of pass ``both`` are
        drawn, else of ``direct`` (named in the figure), else of the first pass that it has.
    judges
        All judges of the protocol in its order; they decide the colours. The first twelve with a row are drawn.
    controls
        Judges without a model: grey, and below the others.
    provenance
        Of the human labels; read from the table's column if not given.

    Returns
    -------
    Figure
        A row without an estimate says why. No row at all: a figure that says so.
    """
    marks = provenance_of(bias, provenance)
    title = "The longer answer: how often it wins, and agreement by length"
    rates = one_pass(rows_of(bias, measure=RATES, slice_="all"))
    agreement = one_pass(rows_of(bias, measure="exact_agreement", slice_=LENGTHS))
    rows = pd.concat([rates, agreement])
    looks = judge_colours(judges, controls)
    drawn, left = judges_drawn(looks, rows)
    rows = rows_of(rows, judge=drawn)
    if rows.empty:
        return blank("Length: nothing to show", "no judgment of answers of different length", provenance=marks)
    figure, grid = plt.subplots(
        1, 2, figsize=(11, 2.3 + 0.46 * len(drawn)), sharey=True, squeeze=False, layout="constrained"
    )
    for axes in grid[0]:
        axes.set_xlim(-0.03, 1.03)
    for y, judge in enumerate(drawn):
        _dumbbell(grid[0, 0], y, rows_of(rates, judge=judge), looks[judge])
        parts = [one(agreement, judge=judge, slice_=name) for name in LENGTHS]
        _two_lines(grid[0, 1], y, parts, [(looks[judge], True), (looks[judge], False)])
    grid[0, 0].set_xlabel("share of judgments that prefer the longer answer")
    grid[0, 1].set_xlabel("exact agreement with the reference")
    name_lines(grid[0, 0], drawn, grey=controls)
    grid[0, 1].grid(visible=False, axis="y")
    first = looks[drawn[0]]
    _keys(grid[0, 0], [mark_key(first, "judge (its colour)"), mark_key(PEOPLE, "people")])
    _keys(grid[0, 1], [mark_key(first, "similar length"), mark_key(first, "different length", filled=False)])
    direct = [name for name in drawn if set(rows_of(rows, judge=name)["pass"]) == {"direct"}]
    finish(
        figure,
        title + left,
        note=f"Dot: estimate. Line: {level_of(rows)} interval. Right of a panel: what it is counted from. "
        "Left, a judge above people on the same pairs prefers length more than they do; noise pulls it towards 0.5."
        + (f" By direct scores, not pairwise: {listed(direct)}." if direct else ""),
        provenance=marks,
    )
    return fit_words(figure, lines=1)


def _dumbbell(axes: Axes, y: float, rows: pd.DataFrame, look: tuple[str, str]) -> None:
    """The judge above, people below, and a line between the two estimates."""
    parts = [one(rows, measure=name) for name in RATES]
    ends = [float(part["estimate"]) for part in parts if part is not None and pd.notna(part["estimate"])]
    if len(ends) == 2:
        axes.plot(ends, [y - _APART, y + _APART], color="#bbbbbb", lw=1.4, zorder=1)
    _two_lines(axes, y, parts, [(look, True), (PEOPLE, True)])


def _two_lines(
    axes: Axes, y: float, parts: Sequence[pd.Series | None], looks: Sequence[tuple[tuple[str, str], bool]]
) -> None:
    """Two rows of one judge, one above the other, with their counts at the right; said once if both are missing."""
    missing = ["" if part is None else str(part["note"]) for part in parts if part is None or pd.isna(part["estimate"])]
    if len(missing) == len(parts) and len(set(missing)) == 1:
        draw_marks(axes, [Mark(y, parts[0], looks[0][0])])
        return
    for row, (look, filled), at in zip(parts, looks, (y - _APART, y + _APART), strict=True):
        draw_marks(axes, [Mark(at, row, look, filled, size=6.5)])
        if row is not None and pd.notna(row["estimate"]):
            axes.text(1.015, at, rate_text(row), transform=axes.get_yaxis_transform(), va="center", ha="left",
                      fontsize=9, color="#444444")  # fmt: skip


def _keys(axes: Axes, keys: list[plt.Line2D]) -> None:
    axes.legend(handles=keys, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2, frameon=False, borderaxespad=0.2)


def leniency_plot(
    bias: pd.DataFrame,
    *,
    judges: Sequence[str],
    controls: Collection[str] = (),
    slice_: str | None = None,
    provenance: str | None = None,
) -> Figure:
    """Whether each judge accepts nearly everything: good answers accepted against bad answers rejected.

    Parameters
    ----------
    bias
        Rows of the one shape with ``true_positive_rate`` and ``true_negative_rate``, 0 to 1.
    judges
        All judges of the protocol in its order; they decide the colours. The first ten with a row are drawn.
    controls
        Judges without a model, in grey.
    slice_
        The slice drawn; default: the first named ``accept>=...``, else "all".
    provenance
        Of the human labels; read from the table's column if not given.

    Returns
    -------
    Figure
        A cross of two intervals for each judge, named at the right. A judge without both rates is named with the
        reason. No row at all: a figure that says so.
    """
    marks = provenance_of(bias, provenance)
    title = "Leniency: which answers each judge accepts and rejects"
    rows = rows_of(bias, measure=ACCEPTS)
    accepting = [name for name in rows["slice"].astype(str) if name.startswith("accept>=")]
    chosen = slice_ if slice_ is not None else next(iter(accepting), "all")
    rows = one_pass(rows_of(rows, slice_=chosen))
    looks = judge_colours(judges, controls)
    drawn, left = judges_drawn(looks, rows, most=MAX_NAMES)
    rows = rows_of(rows, judge=drawn)
    if rows.empty:
        return blank("Leniency: nothing to show", "no judge's scores were compared with a threshold", provenance=marks)
    figure, axes = plt.subplots(figsize=(9, 6.9), layout="constrained")
    axes.set(xlim=(-0.07, 1.07), ylim=(-0.07, 1.07), aspect="equal", anchor="W")
    axes.plot([0, 1], [1, 0], color="#999999", lw=1.2, ls="--", zorder=1)
    axes.set_xlabel("true negative rate (bad answers rejected)")
    axes.set_ylabel("true positive rate (good answers accepted)")
    _corners(axes)
    points = {}
    for judge in drawn:
        both = [one(rows, judge=judge, measure=name) for name in ACCEPTS]
        if all(row is not None and pd.notna(row["estimate"]) for row in both):
            up, over = (row for row in both if row is not None)
            points[judge] = _cross(axes, up, over, looks[judge])
    _names(axes, drawn, points, rows, looks)
    where = f" ({slice_text(chosen)})" if chosen != "all" else ""
    finish(
        figure,
        title + where + left,
        note=f"Cross: {level_of(rows)} intervals of both rates. Dashed: a judge that accepts at random, whatever the "
        "answer. In brackets: good answers accepted, bad answers rejected.",
        provenance=marks,
    )
    return figure


def _corners(axes: Axes) -> None:
    """What a judge in each corner does."""
    for x, y, words in ((0, 1, "accepts everything"), (1, 0, "rejects everything"), (1, 1, "always right")):
        across, up = ("left" if x == 0 else "right"), ("bottom" if y == 0 else "top")
        axes.text(0.02 if x == 0 else 0.98, 0.015 if y == 0 else 0.985, words, transform=axes.transAxes, ha=across,
                  va=up, fontsize=9.5, style="italic", color="#666666", zorder=1.5)  # fmt: skip
    axes.text(0.02, 0.015, "always wrong", transform=axes.transAxes, ha="left", va="bottom", fontsize=9.5,
              style="italic", color="#666666", zorder=1.5)  # fmt: skip


def _cross(axes: Axes, up: pd.Series, across: pd.Series, look: tuple[str, str]) -> tuple[float, float]:
    """Draw one judge; returns its place (true negative rate, true positive rate)."""
    colour, marker = look
    x, y = float(across["estimate"]), float(up["estimate"])
    if across[["ci_low", "ci_high"]].notna().all():
        axes.hlines(y, float(across["ci_low"]), float(across["ci_high"]), colors=colour, lw=2, alpha=0.7, zorder=2)
    if up[["ci_low", "ci_high"]].notna().all():
        axes.vlines(x, float(up["ci_low"]), float(up["ci_high"]), colors=colour, lw=2, alpha=0.7, zorder=2)
    axes.plot(x, y, linestyle="", marker=marker, markersize=9, color=colour, markeredgecolor="white",
              markeredgewidth=0.9, zorder=3)  # fmt: skip
    return x, y


def _names(
    axes: Axes,
    drawn: Sequence[str],
    points: Mapping[str, tuple[float, float]],
    rows: pd.DataFrame,
    looks: Mapping[str, tuple[str, str]],
) -> None:
    """Name the judges in a column at the right, each level with its cross as far as there is room, with a thin line."""
    lines = {judge: _naming(rows, judge, judge in points) for judge in drawn}
    # Judges with a point from top to bottom, those without below them; a line of text takes 0.038 of the axis.
    order = sorted(drawn, key=lambda judge: -points[judge][1] if judge in points else 2.0)
    heights = [0.038 * (1 + lines[judge].count("\n")) + 0.012 for judge in order]
    places: list[float] = []
    top = 1.06
    for place, (judge, height) in enumerate(zip(order, heights, strict=True)):
        wanted = points[judge][1] + height / 2 if judge in points else top
        lowest = sum(heights[place:]) - 0.06  # leaves room for those below
        upper = min(top, max(wanted, lowest))
        places.append(upper - height / 2)
        top = upper - height
    for judge, y in zip(order, places, strict=True):
        colour, marker = looks[judge]
        if judge in points:
            axes.annotate("", points[judge], xytext=(1.095, y), annotation_clip=False, zorder=1.2,
                          arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.9, "alpha": 0.6})  # fmt: skip
            axes.plot(1.105, y, marker=marker, color=colour, markersize=7, linestyle="-", clip_on=False, zorder=3)
        plain = judge in points
        axes.text(1.13, y, lines[judge], va="center", ha="left", fontsize=9, linespacing=1.05,
                  style="normal" if plain else "italic", color=INK if plain else "#555555")  # fmt: skip


def _naming(rows: pd.DataFrame, judge: str, has_point: bool) -> str:
    """The judge's name with its counts, or with why it has no point."""
    name = textwrap.shorten(judge, 34, placeholder="…") or judge[:33] + "…"
    found = [one(rows, judge=judge, measure=measure) for measure in ACCEPTS]
    if has_point:
        counts = ", ".join(rate_text(row) for row in found if row is not None)
        return f"{name}\n({counts})"
    reasons = [str(row["note"]) for row in found if row is not None and pd.isna(row["estimate"])] or ["not measured"]
    return f"{name}\n" + textwrap.fill(reasons[0], 36, max_lines=2, placeholder=" …")
