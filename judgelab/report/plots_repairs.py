"""Plots of repairs and of recalibrated probabilities. Each takes tables and computes no statistic."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from judgelab.report.heatmaps import MAX_JUDGES
from judgelab.report.judge_colours import (
    Mark,
    draw_marks,
    fit_words,
    judge_colours,
    judges_drawn,
    mark_key,
    name_lines,
    p_limit,
    significant,
    span_of,
)
from judgelab.report.picking import one, rows_of
from judgelab.report.style import blank, finish, provenance_of
from judgelab.report.words import level_of, natural

__all__ = ["reliability_plot", "repairs_plot"]

GAINS = {
    "exact_agreement_gain": ("agreement with people", "gain in exact agreement"),
    "swap_consistency_gain": ("swap consistency", "gain in swap consistency"),
    "bias_size_change": ("size of the bias", "change (below 0: less bias)"),
}
READINGS = {"raw": "as the judge gave it", "isotonic": "after isotonic recalibration"}
_REPAIR = "repair="


def repairs_plot(
    repairs: pd.DataFrame,
    *,
    judge: str,
    judges: Sequence[str] = (),
    controls: Collection[str] = (),
    provenance: str | None = None,
) -> Figure:
    """What each repair of a judge gains, best first: agreement, swap consistency, bias, and its calls a decision.

    Parameters
    ----------
    repairs
        Rows of the one shape, slice ``repair=<name>``: ``exact_agreement_gain``, ``swap_consistency_gain``,
        ``bias_size_change`` (differences, -1 to 1), ``<measure>_p_holm`` (fills the marker) and
        ``calls_per_decision``. Repairs without any of the three (the unrepaired judge) are not drawn.
    judge
        The judge that was repaired.
    judges
        All judges of the protocol in its order; they decide the colour. Default: the judge alone.
    controls
        Judges without a model, in grey.
    provenance
        Of the human labels; read from the table's column if not given.

    Returns
    -------
    Figure
        Repairs are sorted by the gain in agreement, those without one last. A row without an estimate says why. No
        row at all: a figure that says so.
    """
    marks = provenance_of(repairs, provenance)
    title = f"What each repair of {judge} gains, best first"
    own = rows_of(repairs, judge=judge)
    own = own[own["slice"].astype(str).str.startswith(_REPAIR)]
    rows = rows_of(own, measure=list(GAINS))
    if rows.empty:
        return blank("Repairs: nothing to show", "no repair of this judge was tried", provenance=marks)
    look = judge_colours(judges if judge in judges else [*judges, judge], controls)[judge]
    order = _best_first(rows)
    figure, grid = plt.subplots(
        1, 3, figsize=(11, 2.1 + 0.36 * len(order)), sharey=True, width_ratios=[1.25, 1, 1], squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes, (measure, (head, label)) in zip(grid[0], GAINS.items(), strict=True):
        found = rows_of(rows, measure=measure)
        axes.set_xlim(*span_of(found))
        axes.axvline(0, color="#444444", lw=1.2, zorder=1)
        draw_marks(axes, [_mark(own, y, name, measure, look) for y, name in enumerate(order)])
        axes.set_title(head, loc="left")
        axes.set_xlabel(label)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        axes.grid(visible=False, axis="y")
    name_lines(grid[0, 0], [name.removeprefix(_REPAIR).replace("_", " ") for name in order])
    _calls(grid[0, 2], own, order)
    finish(
        figure,
        title,
        note=f"Dot: repaired minus unrepaired judge, on the same items. Line: {level_of(rows)} interval. Filled: p < "
        f"{p_limit(rows)} after Holm's correction over the repairs; hollow: not, or no corrected test. Calls: judge "
        "calls that one decision takes, without those of tuning.",
        provenance=marks,
    )
    return fit_words(figure)


def _best_first(rows: pd.DataFrame) -> list[str]:
    """The slices by the gain in agreement; without one last, in the order of the table."""
    gains = {}
    for name in natural(rows["slice"]):
        row = one(rows, slice_=name, measure="exact_agreement_gain")
        gains[name] = -float("inf") if row is None or pd.isna(row["estimate"]) else float(row["estimate"])
    return sorted(gains, key=lambda name: -gains[name])


def _mark(own: pd.DataFrame, y: int, name: str, measure: str, look: tuple[str, str]) -> Mark:
    """One gain of one repair, filled if its corrected p-value says so."""
    row = one(own, slice_=name, measure=measure)
    p = one(own, slice_=name, measure=f"{measure}_p_holm")
    return Mark(y, row, look, significant(row, p))


def _calls(axes: Axes, own: pd.DataFrame, order: Sequence[str]) -> None:
    """Calls per decision as a column of text at the right."""
    across = axes.get_yaxis_transform()
    axes.text(1.03, 1.0, "calls", transform=axes.transAxes, fontsize=9, fontweight="bold", va="bottom", ha="left")
    for y, name in enumerate(order):
        row = one(own, slice_=name, measure="calls_per_decision")
        words = "–" if row is None or pd.isna(row["estimate"]) else f"{float(row['estimate']):.2g}"
        axes.text(1.03, y, words, transform=across, fontsize=9, va="center", ha="left", color="#444444")


def reliability_plot(
    curve: pd.DataFrame,
    *,
    judges: Sequence[str],
    controls: Collection[str] = (),
    shown: Sequence[str] | None = None,
    provenance: str | None = None,
) -> Figure:
    """Whether probabilities of acceptance are true: accepted share against stated probability, one panel a judge.

    Parameters
    ----------
    curve
        One row a judge, reading and bin: ``judge``, ``reading`` (``raw`` or ``isotonic``), ``bin``,
        ``mean_probability`` and ``rate`` (0 to 1), ``ci_low``, ``ci_high``, ``n`` (answers in the bin). Bins without
        answers are not drawn.
    judges
        All judges of the protocol in its order; they decide the colours.
    controls
        Judges without a model, in grey.
    shown
        The judges drawn; default: the first six with a row.
    provenance
        Of the human labels; read from the table's column if not given.

    Returns
    -------
    Figure
        On the diagonal, what a judge calls 70 % is accepted in 70 of 100 cases. A judge without a usable bin says
        so; no row at all: a figure that says so.
    """
    marks = provenance_of(curve, provenance)
    title = "Are the probabilities true? Accepted share by stated probability"
    looks = judge_colours(judges, controls)
    drawn, left = judges_drawn(looks, curve, shown, most=MAX_JUDGES)
    rows = rows_of(curve, judge=drawn)
    if rows.empty:
        return blank("Probabilities: nothing to show", "no probability of acceptance with a label", provenance=marks)
    rows = rows[rows["mean_probability"].notna() & rows["rate"].notna() & (rows["n"] > 0)]
    most = float(rows["n"].max()) if len(rows) else 1.0
    across = min(3, len(drawn))
    down = -(-len(drawn) // across)
    figure, grid = plt.subplots(
        down, across, figsize=(max(8.0, min(11.0, 3.6 * across)), 1.6 + 3.4 * down), sharex=True, sharey=True,
        squeeze=False, layout="constrained",
    )  # fmt: skip
    for axes, judge in zip(grid.flat, drawn, strict=False):
        _reliability_panel(axes, rows_of(rows, judge=judge), looks[judge], most)
        axes.set_title(judge, loc="left")
    for axes in grid.flat[len(drawn) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("share that people accept")
    for place, axes in enumerate(grid.flat[: len(drawn)]):
        if place + across >= len(drawn):
            axes.set_xlabel("probability of acceptance")
            axes.tick_params(labelbottom=True)
    readings = [name for name in READINGS if name in set(rows["reading"])]
    if readings:
        look = looks[drawn[0]]
        keys = [mark_key(look, READINGS[name], filled=name != "raw") for name in readings]
        below_title = 1 - 0.36 / figure.get_size_inches()[1]
        figure.legend(handles=keys, loc="upper left", bbox_to_anchor=(0.0, below_title), ncols=2, frameon=False)
    finish(
        figure,
        title + left,
        note=f"Point: the answers of one bin; its area grows with their number (largest: {int(most)}). Bar: interval "
        "at the protocol's level. Dashed: true probabilities. Below it, the judge promises more than people accept.",
        provenance=marks,
        top=0.32,
    )
    return figure


def _reliability_panel(axes: Axes, rows: pd.DataFrame, look: tuple[str, str], most: float) -> None:
    """The bins of one judge: hollow as it gave them, filled when recalibrated."""
    axes.plot([0, 1], [0, 1], color="#999999", lw=1.2, ls="--", zorder=1)
    axes.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), aspect="equal")
    if rows.empty:
        axes.text(0.5, 0.5, "no bin with answers", transform=axes.transAxes, ha="center", va="center", fontsize=9,
                  style="italic", color="#555555", bbox={"facecolor": "white", "edgecolor": "none"})  # fmt: skip
    colour, marker = look
    for reading in natural(rows["reading"]):
        own = rows_of(rows, reading=reading).sort_values("mean_probability")
        x, y, n = (own[name].to_numpy(dtype=float) for name in ("mean_probability", "rate", "n"))
        hollow = reading == "raw"
        axes.plot(x, y, color=colour, lw=1.1, ls=":" if hollow else "-", zorder=2)
        bounded = own[own["ci_low"].notna() & own["ci_high"].notna()]
        axes.vlines(
            bounded["mean_probability"], bounded["ci_low"].astype(float), bounded["ci_high"].astype(float),
            colors=colour, lw=1.6, alpha=0.6, linestyles="dashed" if hollow else "solid", zorder=2,
        )  # fmt: skip
        axes.scatter(x, y, s=20 + 130 * n / most, marker=marker, facecolor="white" if hollow else colour,
                     edgecolor=colour if hollow else "white", linewidth=1.4 if hollow else 0.8, zorder=3)  # fmt: skip
