"""Plots of what the exchange of places does to a judge. Each takes tables and computes no statistic."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from judgelab.report.dots import dots_height, dots_legend, draw_dots, slots_of
from judgelab.report.heatmaps import capped, crossed, heatmap, tie_last
from judgelab.report.picking import judges_of, rows_of
from judgelab.report.plots_agreement import category_plot
from judgelab.report.style import blank, finish, provenance_of, series_of
from judgelab.report.words import AXIS, level_of

__all__ = ["category_position_plot", "first_position_plot", "swap_heatmap"]


def swap_heatmap(
    swap: pd.DataFrame,
    *,
    judges: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    provenance: str | None = None,
) -> Figure:
    """Counts of the preference before (rows) and after the swap (columns), one panel a judge (at most six).

    Parameters
    ----------
    swap
        Long table with ``judge, original, swapped, count``; a side may be ``UNUSABLE``.
    judges
        The judges drawn, in this order; default: the first six of the table.
    labels
        The order of the labels; default: as they come, ``TIE`` last.
    provenance
        Of the human labels; read from the table's column if not given.
    """
    marks = provenance_of(swap, provenance)
    chosen, left = capped(judges, judges_of(swap))
    rows = rows_of(swap, judge=chosen)
    if rows.empty:
        return blank("Preferences before and after the swap: nothing to show", "no swapped pair", provenance=marks)
    order = list(labels) if labels is not None else tie_last([*rows["original"], *rows["swapped"]])
    size = 0.62 + 0.42 * len(order)
    across = min(3, len(chosen))
    down = math.ceil(len(chosen) / across)
    width = min(11.0, max(8.0, across * (size + 1.6)))
    figure, grid = plt.subplots(
        down, across, figsize=(width, 0.9 + down * (size + 0.95)), squeeze=False, layout="constrained"
    )
    for axes, judge in zip(grid.flat, chosen, strict=False):
        counts = crossed(rows_of(rows, judge=judge), "original", "swapped", order)
        heatmap(axes, counts, title=judge, down="original pass", across="swapped pass",
                apart="UNUSABLE")  # fmt: skip
    for axes in grid.flat[len(chosen) :]:
        axes.set_axis_off()
    return finish(
        figure,
        "Preferences before and after the two answers change places" + left,
        note="Number of pairs in each cell, by system. Framed diagonal: the preference survived the swap. "
        "n: pairs with two valid verdicts.",
        provenance=marks,
    )


def first_position_plot(
    position: pd.DataFrame, *, controls: Collection[str] = (), provenance: str | None = None
) -> Figure:
    """How often each judge picks the answer shown first, per pass and over both, with the line of no preference.

    Parameters
    ----------
    position
        Rows of the one shape; those with the measure ``first_position_rate`` and ``slice`` "all" are drawn.
    controls
        Judges without a model, drawn in grey and below the others.
    provenance
        Of the human labels; read from the table's column if not given.
    """
    marks = provenance_of(position, provenance)
    rows = rows_of(position, measure="first_position_rate", slice_="all")
    series = series_of(rows)
    if not series:
        return blank("First-position rate: nothing to show", "no pairwise verdict", provenance=marks)
    judges = sorted(judges_of(rows), key=lambda judge: judge in controls)
    slots = slots_of(rows, groups=judges, series=series)
    figure, axes = plt.subplots(figsize=(10, 1.35 + dots_height(slots)), layout="constrained")
    draw_dots(axes, slots, grey=controls)
    axes.axvline(0.5, color="#444444", lw=1.2, ls="--", zorder=1)
    dots_legend(axes, slots, grey=controls)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel(AXIS["first_position_rate"])
    return finish(
        figure,
        "How often each judge picks the answer that it is shown first",
        note=f"Dashed line: no preference for a place (0.5). Line: {level_of(rows)} interval. "
        "Right: first answer picked / verdicts without a tie.\nAbove 0.5: prefers the first place. "
        "A rate near 0.5 does not prove fairness: opposite effects cancel.",
        provenance=marks,
    )


def category_position_plot(
    position: pd.DataFrame,
    *,
    measure: str = "swap_consistency",
    judges: Sequence[str] | None = None,
    provenance: str | None = None,
) -> Figure:
    """A measure of the position test by category, one panel a judge (at most six).

    Parameters
    ----------
    position
        Rows of the one shape; those whose ``slice`` is ``category=<c>`` are drawn.
    measure
        ``swap_consistency``, ``first_position_rate`` or another measure of the table.
    judges
        The judges drawn, in this order; default: the first six of the table.
    provenance
        Of the human labels; read from the table's column if not given.
    """
    figure = category_plot(position, measure=measure, judges=judges, provenance=provenance)
    if measure == "first_position_rate":
        for axes in figure.axes:
            if axes.axison:
                axes.axvline(0.5, color="#444444", lw=1.2, ls="--", zorder=1)
    return figure
