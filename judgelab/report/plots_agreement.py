"""Plots of agreement with the human reference. Each takes tables and computes no statistic."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from judgelab.report.dots import Slot, dots_height, dots_legend, draw_dots, slots_of
from judgelab.report.heatmaps import capped, crossed, heatmap, tie_last
from judgelab.report.picking import judges_of, rows_of
from judgelab.report.style import SERIES, Series, blank, finish, provenance_of, series_of
from judgelab.report.words import AXIS, NAMES, level_of, natural

__all__ = ["agreement_plot", "category_plot", "confusion_heatmaps", "label_frequency_plot"]

CATEGORY = "category="  # how a slice by category is named


def agreement_plot(
    agreement: pd.DataFrame,
    *,
    measure: str = "exact_agreement",
    passes: Collection[str] | None = None,
    controls: Collection[str] = (),
    provenance: str | None = None,
) -> Figure:
    """Agreement with its interval for each judge, strategy and pass, the best judge on top.

    Parameters
    ----------
    agreement
        Rows of the one shape; those with ``slice`` "all" and the given measure are drawn.
    measure
        ``exact_agreement`` or another measure of the table.
    passes
        The passes drawn (``direct``, ``original``, ``swapped``, ``both``, ``aggregated``); default: all.
    controls
        Judges without a model, drawn in grey and below the others.
    provenance
        Of the human labels; read from the table's column if not given.

    Returns
    -------
    Figure
        A row without an estimate is said in words, never drawn as 0.
    """
    name = NAMES.get(measure, measure)
    marks = provenance_of(agreement, provenance)
    rows = rows_of(agreement, measure=measure, slice_="all")
    rows = _in_passes(rows[rows["judge"] != ""], passes)
    series = series_of(rows)
    if not series:
        return blank(f"{name}: nothing to show", f"no row with the measure {measure}", provenance=marks)
    judges = _best_first(rows, controls)
    slots = slots_of(rows, groups=judges, series=series)
    figure, axes = plt.subplots(figsize=(10, 1.35 + dots_height(slots)), layout="constrained")
    draw_dots(axes, slots, grey=controls)
    dots_legend(axes, slots, grey=controls)
    _scale(axes, rows, measure)
    return finish(
        figure,
        f"{name}, by judge and strategy",
        note=f"Dot: estimate. Line: {level_of(rows)} interval. Right: what it is counted from. "
        "Judges are sorted by their best estimate.",
        provenance=marks,
    )


def category_plot(
    agreement: pd.DataFrame,
    *,
    measure: str = "exact_agreement",
    judges: Sequence[str] | None = None,
    passes: Collection[str] | None = None,
    provenance: str | None = None,
) -> Figure:
    """A measure by category with its interval, one panel a judge (at most six).

    Parameters
    ----------
    agreement
        Rows of the one shape; those whose ``slice`` is ``category=<c>`` are drawn.
    measure
        The measure drawn: ``exact_agreement``, ``swap_consistency``, ``first_position_rate``, ...
    judges
        The judges drawn, in this order; default: the first six of the table.
    passes
        The passes drawn; default: direct and original if the table has them, else all.
    provenance
        Of the human labels; read from the table's column if not given.
    """
    name = NAMES.get(measure, measure)
    marks = provenance_of(agreement, provenance)
    rows = rows_of(agreement, measure=measure)
    rows = rows[rows["slice"].str.startswith(CATEGORY) & (rows["judge"] != "")]
    usual = {"direct", "original"}
    rows = _in_passes(rows, passes if passes is not None or not usual & set(rows["pass"]) else usual)
    chosen, left = capped(judges, judges_of(rows))
    rows = rows_of(rows, judge=chosen)
    if rows.empty:
        return blank(f"{name} by category: nothing to show", "no row for a category", provenance=marks)
    panels = {judge: _by_category(rows_of(rows, judge=judge)) for judge in chosen}
    panels = {judge: slots for judge, slots in panels.items() if slots}
    heights = [dots_height(slots) + 0.25 for slots in panels.values()]
    figure, grid = plt.subplots(
        len(panels), 1, figsize=(10, 1.3 + sum(heights)), height_ratios=heights, sharex=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes, (judge, slots) in zip(grid[:, 0], panels.items(), strict=True):
        draw_dots(axes, slots)
        axes.set_title(judge, loc="left")
        _scale(axes, rows, measure)
        axes.set_xlabel(AXIS.get(measure, measure) if axes is grid[-1, 0] else "")
    _figure_legend(figure, series_of(rows))
    return finish(
        figure,
        f"{name}, by category" + left,
        note=f"Dot: estimate. Line: {level_of(rows)} interval. Right: what it is counted from. "
        "Few items in a category give a wide interval.",
        provenance=marks,
        top=0.3 if len(series_of(rows)) > 1 else 0.0,
    )


def confusion_heatmaps(
    confusion: pd.DataFrame,
    *,
    judges: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    passes: Collection[str] = ("direct", "original", "swapped"),
    provenance: str | None = None,
) -> Figure:
    """Counts of the human label (rows) against the judge's (columns), one panel a judge and pass.

    Parameters
    ----------
    confusion
        Long table with ``judge, strategy, pass, human, judged, count``.
    judges
        The judges drawn, in this order; default: the first six of the table.
    labels
        The order of the labels; default: as they come, ``TIE`` last.
    passes
        The passes drawn; ``aggregated`` (the conservative rule, with its abstentions) only if it is named.
    provenance
        Of the human labels; read from the table's column if not given.
    """
    marks = provenance_of(confusion, provenance)
    chosen, left = capped(judges, judges_of(confusion))
    rows = _in_passes(rows_of(confusion, judge=chosen), passes)
    series = series_of(rows)
    if rows.empty or not series:
        return blank("Human label against judge's label: nothing to show", "no jointly valid item", provenance=marks)
    order = list(labels) if labels is not None else tie_last([*rows["human"], *rows["judged"]])
    size = 0.62 + 0.42 * len(order)
    width = min(11.0, max(8.0, 1.5 + len(series) * (size + 0.9)))
    figure, grid = plt.subplots(
        len(chosen), len(series), figsize=(width, 0.9 + len(chosen) * (size + 1.2)), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for line, judge in zip(grid, chosen, strict=True):
        for axes, way in zip(line, series, strict=True):
            own = rows_of(rows, judge=judge, strategy=way.strategy, pass_=way.pass_)
            counts = crossed(own, "human", "judged", order)
            heatmap(axes, counts, title=f"{judge}\n{way.name}", down="human label", across="judge's label")
    return finish(
        figure,
        "Human label against judge's label" + left,
        note="Number of items in each cell; the framed diagonal is agreement. n: jointly valid items.",
        provenance=marks,
    )


def label_frequency_plot(
    frequencies: pd.DataFrame,
    *,
    judges: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    provenance: str | None = None,
) -> Figure:
    """Shares of the labels that people and each judge gave, as stacked bars with their counts.

    Parameters
    ----------
    frequencies
        Long table with ``judge, source (human|direct|original|swapped), label, count, denominator, share``.
    judges
        The judges drawn, in this order; default: the first six of the table.
    labels
        The order of the labels; default: as they come, ``TIE`` last.
    provenance
        Of the human labels; read from the table's column if not given.
    """
    marks = provenance_of(frequencies, provenance)
    chosen, left = capped(judges, judges_of(frequencies))
    rows = rows_of(frequencies, judge=chosen)
    if rows.empty:
        return blank("Label frequencies: nothing to show", "no valid label", provenance=marks)
    order = list(labels) if labels is not None else tie_last(rows["label"])
    lines = _frequency_lines(rows, chosen)
    places = _grouped_places([judge for judge, _ in lines])
    figure, axes = plt.subplots(figsize=(10, 1.7 + 0.34 * (places[-1] + 1)), layout="constrained")
    colours = dict(zip(order, _label_colours(order), strict=True))
    names = []
    for y, (judge, source) in zip(places, lines, strict=True):
        own = rows_of(rows, judge=judge or chosen[0], source=source)
        names.append(f"{judge}: {source}" if judge else "people")
        _stack(axes, y, own, order, colours)
    axes.set_yticks(places, names)
    axes.set_ylim(places[-1] + 0.7, -0.7)
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of that rater's valid labels")
    axes.grid(visible=False, axis="y")
    axes.legend(
        handles=[plt.Rectangle((0, 0), 1, 1, color=colours[label], label=label) for label in order],
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=min(len(order), 6), frameon=False, borderaxespad=0.2,
    )  # fmt: skip
    return finish(
        figure,
        "How often people and judges gave each label" + left,
        note="Number in the bar: labels. Right: all valid labels of that rater.",
        provenance=marks,
    )


def _frequency_lines(rows: pd.DataFrame, judges: Sequence[str]) -> list[tuple[str, str]]:
    """Judge and source of each bar; people come once, with an empty judge, if their labels are the same for all."""
    people = {tuple(rows_of(rows, judge=judge, source="human")["count"]) for judge in judges}
    once = len(people) == 1 and people != {()}
    lines = [("", "human")] if once else []
    for judge in judges:
        sources = natural(rows_of(rows, judge=judge)["source"])
        lines += [(judge, source) for source in sources if not (once and source == "human")]
    return lines


def _stack(axes: Axes, y: float, rows: pd.DataFrame, order: Sequence[str], colours: dict[str, str]) -> None:
    """One stacked bar with the count in each part that has room for it."""
    start, across = 0.0, axes.get_yaxis_transform()
    total = int(rows["denominator"].max()) if len(rows) else 0
    axes.text(1.012, y, f"n = {total}", transform=across, va="center_baseline", ha="left", fontsize=9, color="#444444")
    if total == 0:
        axes.text(0.012, y, "no valid label", transform=across, va="center_baseline", style="italic", fontsize=9)
    for label in order:
        for _, row in rows_of(rows, label=label).iterrows():
            if pd.isna(row["share"]):
                continue
            axes.barh(y, row["share"], left=start, height=0.78, color=colours[label], edgecolor="white", label=label)
            if row["share"] >= 0.04:
                axes.text(start + row["share"] / 2, y, str(int(row["count"])), ha="center", va="center_baseline",
                          fontsize=9, color=_ink_on(colours[label]))  # fmt: skip
            start += float(row["share"])


def _ink_on(colour: str) -> str:
    """Black or white, whichever can be read on a colour."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#111111" if 0.299 * red + 0.587 * green + 0.114 * blue > 130 else "#ffffff"


def _label_colours(order: Sequence[str]) -> list[str]:
    """Colours of systems from the palette; a tie is grey, as it sides with nobody."""
    palette = sns.color_palette("colorblind", max(1, len(order))).as_hex()
    return ["#b9b9b9" if label == "TIE" else palette[index] for index, label in enumerate(order)]


def _grouped_places(groups: Sequence[str]) -> list[float]:
    """Places of lines from top to bottom with a gap where the group changes."""
    places, y = [], 0.0
    for index, group in enumerate(groups):
        if index:
            y += 1.0 if groups[index - 1] == group else 1.5
        places.append(y)
    return places


def _by_category(rows: pd.DataFrame) -> list[Slot]:
    named = rows.assign(category=rows["slice"].str.removeprefix(CATEGORY))
    return slots_of(named, groups=sorted(natural(named["category"])), column="category", series=series_of(rows))


def _in_passes(rows: pd.DataFrame, passes: Collection[str] | None) -> pd.DataFrame:
    return rows if passes is None else rows[rows["pass"].isin(list(passes))]


def _best_first(rows: pd.DataFrame, controls: Collection[str]) -> list[str]:
    """Judges by their best estimate, those without one last; control judges below the others."""
    best = rows.groupby("judge", sort=False)["estimate"].max().fillna(-np.inf)
    return sorted(map(str, best.index), key=lambda judge: (judge in controls, -best[judge], judge))


def _scale(axes: Axes, rows: pd.DataFrame, measure: str) -> None:
    """A rate runs from 0 to 1; anything else as far as its estimates and bounds reach, with 0 in it."""
    if measure == "cohen_kappa" or measure.endswith("alpha"):
        lowest = np.nanmin([0.0, *rows["estimate"], *rows["ci_low"]])
        axes.set_xlim(max(-1.0, lowest) - 0.04, 1.04)
        axes.axvline(0, color="#777777", lw=1, ls="--", zorder=1)
    else:
        axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel(AXIS.get(measure, measure))


def _figure_legend(figure: Figure, series: Sequence[Series]) -> None:
    """A legend over all panels, under the title."""
    if len(series) < 2:
        return
    keys = [
        plt.Line2D([], [], linestyle="-", lw=2, marker=way.marker, color=way.colour, label=way.name, markersize=7)
        for way in SERIES
        if way in series
    ]
    height = figure.get_size_inches()[1]
    figure.legend(
        handles=keys, loc="upper left", bbox_to_anchor=(0.0, 1 - 0.32 / height), ncols=len(keys), frameon=False
    )
