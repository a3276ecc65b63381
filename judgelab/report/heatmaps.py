"""Tables of counts as heatmaps, and what fits on one figure."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from judgelab.report.words import natural

__all__ = ["MAX_JUDGES", "capped", "crossed", "heatmap", "tie_last"]

MAX_JUDGES = 6  # a figure: more cannot be read at the report's width
_NO_PREFERENCE = ("ABSTAIN", "UNUSABLE")


def heatmap(axes: Axes, counts: pd.DataFrame, *, title: str, down: str, across: str, apart: str = "") -> None:
    """One table of counts as a heatmap, with the cells of equal labels framed and the n in the title.

    The label ``apart`` is drawn, but is not part of n (an unusable verdict is no preference).
    """
    kept = counts.loc[counts.index != apart, counts.columns != apart]
    n, others = int(kept.to_numpy().sum()), int(counts.to_numpy().sum() - kept.to_numpy().sum())
    if n + others == 0:
        axes.set_axis_off()
        axes.set_title(title, loc="left")
        axes.text(0.5, 0.5, "n = 0: no valid pair", ha="center", va="center", style="italic", color="#555555")
        return
    sns.heatmap(
        counts, ax=axes, annot=True, fmt="d", cmap="Blues", cbar=False, square=True, linewidths=1, linecolor="white",
        vmin=0, vmax=max(1, int(counts.to_numpy().max())), annot_kws={"fontsize": 10},
    )  # fmt: skip
    for y, row in enumerate(counts.index):
        for x, column in enumerate(counts.columns):
            if row == column != apart:
                axes.add_patch(plt.Rectangle((x + 0.03, y + 0.03), 0.94, 0.94, fill=False, ec="#d55e00", lw=1.6))
    more = f", {others} unusable" if apart in counts.columns else ""
    axes.set_title(f"{title} (n = {n}{more})", loc="left")
    axes.set_xlabel(across)
    axes.set_ylabel(down)
    crowded = max(map(len, counts.columns)) * len(counts.columns) > 18
    axes.tick_params(axis="x", rotation=30 if crowded else 0, length=0)
    axes.tick_params(axis="y", rotation=0, length=0)


def crossed(rows: pd.DataFrame, down: str, across: str, order: Sequence[str]) -> pd.DataFrame:
    """A long table of counts as a matrix. A label that is not in ``order`` gets a place if it was counted."""
    lines, columns = ([*order, *_further(rows, name, order)] for name in (down, across))
    counts = pd.DataFrame(0, index=lines, columns=columns, dtype=int)
    for line, column, count in zip(rows[down], rows[across], rows["count"], strict=True):
        if count:
            counts.loc[str(line), str(column)] = int(count)
    return counts


def _further(rows: pd.DataFrame, name: str, order: Sequence[str]) -> list[str]:
    return [label for label in natural(rows[name][rows["count"] > 0]) if label not in order]


def tie_last(values: Sequence[str] | pd.Series) -> list[str]:
    """The labels that occur, ``TIE`` last; what is no preference (abstained, unusable) is left to the table."""
    return sorted((label for label in natural(values) if label not in _NO_PREFERENCE), key=lambda label: label == "TIE")


def capped(asked: Sequence[str] | None, present: Sequence[str]) -> tuple[list[str], str]:
    """The judges to draw, and words for the title if some are left out."""
    wanted = [judge for judge in (asked if asked is not None else present) if judge in present]
    left = f" (first {MAX_JUDGES} of {len(wanted)} judges)" if len(wanted) > MAX_JUDGES else ""
    return wanted[:MAX_JUDGES], left
