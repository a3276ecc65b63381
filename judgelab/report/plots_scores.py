"""Plots of direct scores and of the people who made the reference. Each computes no statistic but counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from judgelab.report.dots import Slot, dots_height, draw_dots, slots_of
from judgelab.report.heatmaps import capped
from judgelab.report.picking import judges_of, rows_of
from judgelab.report.style import Series, blank, finish, provenance_of
from judgelab.report.words import level_of, natural, slice_text

__all__ = ["reviewer_plot", "score_distributions"]

MAX_BARS = 25  # distinct values up to which each gets a bar of its own


def score_distributions(
    verdicts: pd.DataFrame,
    *,
    column: str = "total",
    judges: Sequence[str] | None = None,
    scale: tuple[float, float] | None = None,
    provenance: str | None = None,
) -> Figure:
    """How often each judge gave each score, one panel a judge (at most six), one colour a system.

    Parameters
    ----------
    verdicts
        One row a call (see ``judging.verdicts``); those of strategy "direct" with a score are counted.
    column
        ``total`` (the weighted total) or ``score_<criterion>``.
    judges
        The judges drawn, in this order; default: the first six with direct calls.
    scale
        Lowest and highest score of the rubric, in points: the range of the axis. Default: what occurs.
    provenance
        Of the human labels; read from the table's column if not given.
    """
    what = "weighted total" if column == "total" else column.removeprefix("score_").replace("_", " ")
    marks = provenance_of(verdicts, provenance)
    direct = rows_of(verdicts, strategy="direct")
    chosen, left = capped(judges, judges_of(direct))
    rows = rows_of(direct, judge=chosen)
    if rows.empty:
        return blank(f"Direct scores ({what}): nothing to show", "no direct call was planned", provenance=marks)
    across = min(2, len(chosen))
    down = math.ceil(len(chosen) / across)
    figure, grid = plt.subplots(
        down, across, figsize=(9 if across == 1 else 11, 1.0 + 2.5 * down), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    systems = natural(rows["system"].dropna())
    colours = dict(zip(systems, sns.color_palette("colorblind", max(1, len(systems))).as_hex(), strict=True))
    span = scale or _span(rows[column])
    for axes, judge in zip(grid.flat, chosen, strict=False):
        _score_panel(axes, rows_of(rows, judge=judge), column, colours, span)
        axes.set_title(judge, loc="left")
        axes.set_xlabel(f"{what} (points)")
        axes.set_ylabel("answers")
    for axes in grid.flat[len(chosen) :]:
        axes.set_axis_off()
    return finish(
        figure,
        f"Direct scores of each judge, by system: {what}" + left,
        note="Bar: number of answers with that score. n: answers with a usable score, of all that were planned.",
        provenance=marks,
    )


def _score_panel(
    axes: Axes, rows: pd.DataFrame, column: str, colours: dict[str, str], span: tuple[float, float]
) -> None:
    """Bars side by side, one colour a system, or a sentence if the judge gave no score."""
    values = {system: rows_of(rows, system=system)[column].astype(float) for system in colours}
    valid = {system: np.round(own.dropna().to_numpy(), 6) for system, own in values.items()}
    places, width = _bins(np.concatenate(list(valid.values())), span)
    tallest, keys = 1, []
    for index, (system, scores) in enumerate(valid.items()):
        counts = _counts(scores, places)
        tallest = max(tallest, int(counts.max(initial=0)))
        shift = (index - (len(valid) - 1) / 2) * width / len(valid)
        axes.bar(
            places + shift, counts, width=width / len(valid), color=colours[system], edgecolor="white", lw=0.5,
        )  # fmt: skip
        keys.append(plt.Rectangle((0, 0), 1, 1, color=colours[system],
                                  label=f"{system} (n = {len(scores)} of {len(values[system])})"))  # fmt: skip
    margin = max(width, 0.04 * (span[1] - span[0]))
    axes.set_xlim(span[0] - margin, span[1] + margin)
    axes.set_ylim(0, tallest * 1.4)  # room for the legend
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.grid(visible=False, axis="x")
    axes.legend(
        handles=keys, loc="upper left", frameon=False, ncols=2 if len(valid) < 4 else 3, handlelength=1, columnspacing=1
    )
    if not any(len(scores) for scores in valid.values()):
        axes.text(0.5, 0.5, "no usable score", transform=axes.transAxes, ha="center", style="italic", color="#555555")


def _bins(scores: np.ndarray, span: tuple[float, float]) -> tuple[np.ndarray, float]:
    """Places of the bars and their width, in points: each distinct score, or steps of a twentieth of the scale."""
    places = np.unique(scores)
    if len(places) > MAX_BARS:
        step = (span[1] - span[0]) / 20
        return np.linspace(span[0], span[1], 21), 0.9 * step
    gaps = np.diff(places)
    return places, 0.85 * min(0.5, float(gaps.min())) if len(gaps) else 0.4


def _counts(scores: np.ndarray, places: np.ndarray) -> np.ndarray:
    """How many scores are nearest to each place."""
    if not len(places) or not len(scores):
        return np.zeros(len(places), dtype=int)
    nearest = np.abs(scores[:, None] - places[None, :]).argmin(axis=1)
    return np.bincount(nearest, minlength=len(places))


def _span(values: pd.Series) -> tuple[float, float]:
    known = values.astype(float).dropna()
    if known.empty:
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def reviewer_plot(reviewers: pd.DataFrame, *, provenance: str | None = None) -> Figure:
    """Agreement among the initial reviewers: each pair, all together, and with each judge as one more rater.

    Parameters
    ----------
    reviewers
        Rows of the one shape with agreement and Krippendorff's alpha. ``slice`` names the pair of reviewers
        (``reviewers=r01,r02``) or is "all"; ``judge`` is the judge that was added as a rater ("" for people alone).
    provenance
        Of the human labels; read from the table's column if not given.
    """
    marks = provenance_of(reviewers, provenance)
    known = reviewers[reviewers["measure"].isin([measure for measure, _ in _PANELS])]
    panels = [(measure, words) for measure, words in _PANELS if (known["measure"] == measure).any()]
    if not panels:
        return blank(
            "Agreement among reviewers: nothing to show",
            "fewer than two reviewers, or none labelled the same item",
            provenance=marks,
        )
    laid = [_reviewer_slots(rows_of(known, measure=measure)) for measure, _ in panels]
    heights = [dots_height(slots) + 0.35 for slots in laid]
    figure, grid = plt.subplots(
        len(panels), 1, figsize=(10, 0.9 + sum(heights)), height_ratios=heights, squeeze=False, layout="constrained"
    )
    for axes, (measure, words), slots in zip(grid[:, 0], panels, laid, strict=True):
        draw_dots(axes, slots)
        rows = rows_of(known, measure=measure)
        axes.set_xlabel(words)
        lowest = np.nanmin([0.0, *rows["estimate"], *rows["ci_low"]])
        axes.set_xlim(max(-1.0, lowest) - 0.02, 1.02)
        if lowest < 0 or measure != "exact_agreement":
            axes.axvline(0, color="#777777", lw=1, ls="--", zorder=1)
    return finish(
        figure,
        "How far the reviewers agree before adjudication",
        note=f"Dot: estimate. Line: {level_of(known)} interval. Right: what it is counted from.",
        provenance=marks,
    )


_PANELS = (
    ("exact_agreement", "exact agreement (share of items that both labelled)"),
    ("cohen_kappa", "Cohen's kappa of the pair (1 = perfect, 0 = chance)"),
    ("krippendorff_alpha", "Krippendorff's alpha, nominal (1 = perfect, 0 = chance)"),
)


def _reviewer_slots(rows: pd.DataFrame) -> list[Slot]:
    """One line a row, named by the raters that it is of."""
    people = Series("", "", "reviewers", sns.color_palette("colorblind").as_hex()[0], "o")
    names = [f"{_raters(row)} + {row['judge']}" if row["judge"] else _raters(row) for _, row in rows.iterrows()]
    table = rows.assign(raters=names, strategy="", **{"pass": ""})
    return slots_of(table, groups=natural(names), column="raters", series=[people])


def _raters(row: pd.Series) -> str:
    name = slice_text(row["slice"])
    return "all reviewers" if name == "all" else name
