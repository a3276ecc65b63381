"""Lines of a chart, one a system: which are drawn of a long list, how tall they are, and how they are named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from judgelab.report.style import GREY, INK

__all__ = [
    "HEADING", "MAX_SYSTEMS", "height_of", "lines_of", "name_of", "name_points", "name_systems", "names_of",
    "text_column",
]  # fmt: skip

MAX_SYSTEMS = 80  # lines of a figure: of more systems the first 60 and the last 20
HEADING: dict[str, Any] = {"fontsize": 9, "va": "bottom", "fontweight": "bold"}
"""How the heading of a column of text looks."""
_LAST = 20
_FEW_LINES = 12  # up to so many the lines are tall
_TEXT: dict[str, Any] = {"fontsize": 9, "va": "center_baseline", "color": "#444444"}


def lines_of(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The systems of a long list that are drawn, and words for the title if some are left out.

    Parameters
    ----------
    table
        One row a system, in the order of the lines; at most 80 are drawn, the first 60 and the last 20 of more.

    Returns
    -------
    lines : DataFrame
        The rows that are drawn, with their line ``y`` (0, 1, ...; one is left free where systems are left out).
    left : str
        "" or what is drawn.

    Examples
    --------
    >>> lines, left = lines_of(pd.DataFrame({"system": range(90)}))
    >>> lines["y"].tolist()[59:61], left
    ([59, 61], ' (first 60 and last 20)')
    """
    if len(table) <= MAX_SYSTEMS:
        return table.assign(y=range(len(table))), ""
    top = MAX_SYSTEMS - _LAST
    kept = pd.concat([table.iloc[:top], table.iloc[-_LAST:]])
    return kept.assign(y=[*range(top), *range(top + 1, MAX_SYSTEMS + 1)]), f" (first {top} and last {_LAST})"


def height_of(lines: pd.DataFrame) -> float:
    """Inches that the lines need: 0.4 each for a few, 0.155 each for the longest lists."""
    return float(len(lines) * (0.4 if len(lines) <= _FEW_LINES else min(0.3, max(0.155, 12.0 / len(lines)))))


def name_of(system: str, letters: int = 38) -> str:
    """A system's name, its middle left out if it is long: the ends are what tells versions apart.

    Examples
    --------
    >>> name_of("some-laboratory/instruct-model-70b-2024-05-01", 25)
    'some-laboratory…024-05-01'
    """
    if len(system) <= letters:
        return system
    tail = (letters - 1) * 2 // 5
    return f"{system[: letters - 1 - tail]}…{system[-tail:]}"


def names_of(systems: Iterable[object], letters: int = 38) -> list[str]:
    """The names of several systems as :func:`name_of` gives them, longer where two would look the same.

    Examples
    --------
    >>> names_of(["answer-a-of-the-model", "answer-b-of-the-model", "other"], 12)
    ['answer-a-…-model', 'answer-b-…-model', 'other']
    """
    names = [str(system) for system in systems]
    room = dict.fromkeys(names, letters)
    while True:
        shown = {name: name_of(name, room[name]) for name in names}
        alike = [name for name in names if list(shown.values()).count(shown[name]) > 1]
        if not alike:
            return [shown[name] for name in names]
        room |= {name: room[name] + 4 for name in alike}


def name_systems(axes: Axes, lines: pd.DataFrame, column: Sequence[str] = ()) -> None:
    """Name the lines at the left, best on top; every second is shaded. What is left out is said in its place.

    ``column`` is a heading and a text for each line, between name and axis.
    """
    axes.set_yticks(lines["y"].to_numpy(), names_of(lines["system"]))
    space = 4.0
    if column:
        text_column(axes, lines, column, left=True)
        space += 5.6 * max(map(len, column))
    axes.tick_params(axis="y", length=0, pad=space, labelsize=9)
    for tick, few in zip(axes.get_yticklabels(), lines.get("few", [False] * len(lines)), strict=True):
        tick.set_color(GREY if few else INK)
    bottom = int(lines["y"].max())
    for y in range(0, bottom + 1, 2):
        axes.axhspan(y - 0.5, y + 0.5, color="#f7f7f7", zorder=0, lw=0)
    if bottom >= len(lines):
        gap = next(y for y in range(bottom) if y not in set(lines["y"]))
        axes.axhspan(gap - 0.5, gap + 0.5, color="white", zorder=0.1, lw=0)
        axes.text(0.5, gap, "…  systems left out  …", transform=axes.get_yaxis_transform(), ha="center", **_TEXT)
    axes.set_ylim(bottom + 0.6, -0.6)
    axes.grid(visible=False, axis="y")


def text_column(axes: Axes, lines: pd.DataFrame, texts: Sequence[str], *, left: bool = False) -> None:
    """A heading and a text for each line beside the axes."""
    x, side = (-0.006, "right") if left else (1.008, "left")
    axes.text(x, 1.0, texts[0], transform=axes.transAxes, ha=side, **HEADING)
    for y, text in zip(lines["y"], texts[1:], strict=True):
        axes.text(x, y, text, transform=axes.get_yaxis_transform(), ha=side, **_TEXT)


def name_points(axes: Axes, x: Any, y: Any, names: Sequence[str]) -> None:
    """Names in a column at the right, in the order of their points and never over one another, with leaders."""
    low, high = axes.get_ylim()
    step = 0.045 * (high - low)
    order = np.argsort(y, kind="stable")
    places: list[float] = []
    for place in order:
        places.append(max(float(y[place]), places[-1] + step if places else low + step / 2))
    over = max(0.0, (places[-1] if places else low) - (high - step / 2))
    for rank in range(len(places) - 1, -1, -1):  # what was pushed beyond the top pushes the others down again
        ceiling = places[rank + 1] - step if rank + 1 < len(places) else high - step / 2
        places[rank] = min(places[rank], ceiling) if over else places[rank]
    for place, at in zip(order, places, strict=True):
        axes.annotate(
            names[place], (float(x[place]), float(y[place])), xytext=(1.03, at), textcoords=axes.get_yaxis_transform(),
            va="center", ha="left", fontsize=9, color="#444444",
            arrowprops={"arrowstyle": "-", "color": "#d9925f", "lw": 0.7, "relpos": (0, 0.5), "shrinkB": 3},
        )  # fmt: skip
