"""The one chart of this room that is drawn again and again: dots with intervals, one line a row of the table."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from judgelab.report.style import GREY, INK, Series
from judgelab.report.system_lines import names_of
from judgelab.report.words import rate_text, reason_text

__all__ = ["GAP", "Slot", "dots_height", "dots_legend", "draw_dots", "slots_of"]

GAP = 0.7  # between two groups, in rows


@dataclass(frozen=True)
class Slot:
    """One line of the chart: its place, its group, how it was asked, and its row of the table."""

    y: float
    group: str
    series: Series
    row: pd.Series


def slots_of(
    table: pd.DataFrame, *, groups: Sequence[str], column: str = "judge", series: Sequence[Series]
) -> list[Slot]:
    """Lay the rows of a table out from top to bottom, group by group, one line for each way of asking."""
    slots, y = [], 0.0
    for group in groups:
        own = table[table[column].astype(str) == group]
        for way in series:
            rows = own[(own["strategy"] == way.strategy) & (own["pass"] == way.pass_)]
            for _, row in rows.iterrows():
                slots.append(Slot(y, group, way, row))
                y += 1
        if len(own):
            y += GAP
    return slots


def dots_height(slots: Sequence[Slot]) -> float:
    """Inches that the lines need."""
    return 0.5 + 0.24 * (1 + max((slot.y for slot in slots), default=0.0))


def draw_dots(axes: Axes, slots: Sequence[Slot], *, grey: Collection[str] = (), counts: bool = True) -> None:
    """Draw the lines: a dot at the estimate, its interval, and at the right what it is counted from.

    A row without an estimate is said in words and has no dot.
    """
    for way in dict.fromkeys(slot.series for slot in slots):
        mine = [slot for slot in slots if slot.series is way and pd.notna(slot.row["estimate"])]
        for muted in (False, True):
            part = [slot for slot in mine if (slot.group in grey) is muted]
            if part:
                _marks(axes, part, way, GREY if muted else way.colour, label=way.name)
    across = axes.get_yaxis_transform()
    for slot in slots:
        if pd.isna(slot.row["estimate"]):
            why = textwrap.shorten(reason_text(slot.row), 70, placeholder=" …")
            axes.text(0.012, slot.y, f"undefined: {why}", transform=across, **_WORDS, style="italic", color="#555555",
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})  # fmt: skip
        if counts:
            axes.text(1.012, slot.y, rate_text(slot.row), transform=across, **_WORDS, color="#444444")
    _group_names(axes, slots, grey)


_WORDS: dict[str, Any] = {"va": "center_baseline", "ha": "left", "fontsize": 9}


def _marks(axes: Axes, slots: Sequence[Slot], way: Series, colour: str, *, label: str) -> None:
    bounded = [slot for slot in slots if pd.notna(slot.row["ci_low"]) and pd.notna(slot.row["ci_high"])]
    axes.hlines(
        [slot.y for slot in bounded],
        [float(slot.row["ci_low"]) for slot in bounded],
        [float(slot.row["ci_high"]) for slot in bounded],
        colors=colour, linewidth=2, alpha=0.75, zorder=2,
    )  # fmt: skip
    axes.plot(
        [float(slot.row["estimate"]) for slot in slots],
        [slot.y for slot in slots],
        linestyle="", marker=way.marker, markersize=7, color=colour,
        markeredgecolor="white", markeredgewidth=0.8, label=label, zorder=3,
    )  # fmt: skip


def _group_names(axes: Axes, slots: Sequence[Slot], grey: Collection[str]) -> None:
    """Name each group at the middle of its lines; shade every second group."""
    groups = list(dict.fromkeys(slot.group for slot in slots))
    middles = []
    for index, group in enumerate(groups):
        lines = [slot.y for slot in slots if slot.group == group]
        middles.append((lines[0] + lines[-1]) / 2)
        if index % 2 == 0:
            axes.axhspan(lines[0] - 0.5 - GAP / 2, lines[-1] + 0.5 + GAP / 2, color="#f6f6f6", zorder=0, lw=0)
    axes.set_yticks(middles, names_of(groups, 34))
    for tick, group in zip(axes.get_yticklabels(), groups, strict=True):
        tick.set_color(GREY if group in grey else INK)
    axes.set_ylim(max((slot.y for slot in slots), default=0.0) + 0.5 + GAP / 2, -0.5 - GAP / 2)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def dots_legend(axes: Axes, slots: Sequence[Slot], *, grey: Collection[str] = ()) -> None:
    """A legend above the axes, where there is more than one way of asking or a control judge."""
    ways = list(dict.fromkeys(slot.series for slot in slots))
    keys = [
        Line2D([], [], linestyle="-", linewidth=2, marker=way.marker, color=way.colour, label=way.name,
               markersize=7, markeredgecolor="white")
        for way in ways
    ]  # fmt: skip
    if any(slot.group in grey for slot in slots):
        keys.append(Line2D([], [], linestyle="-", linewidth=2, marker="o", color=GREY, label="control judge (no model)",
                           markersize=7, markeredgecolor="white"))  # fmt: skip
    if len(keys) > 1:
        axes.legend(
            handles=keys, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=min(len(keys), 4), frameon=False,
            borderaxespad=0.2, handletextpad=0.5, columnspacing=1.4,
        )  # fmt: skip
