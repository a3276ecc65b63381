"""Plots of what a panel decides, of what a ranking costs, and of how long the answers are. Each takes tables."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from judgelab.report.heatmaps import capped
from judgelab.report.judge_colours import judge_colours
from judgelab.report.picking import judges_of, one, rows_of
from judgelab.report.style import GREY, INK, SERIES, blank, finish, provenance_of
from judgelab.report.system_lines import height_of, lines_of, name_of, name_systems, text_column
from judgelab.report.words import level_of, natural, plural, reason_text

__all__ = ["answer_length_plot", "consensus_plot", "spending_plot"]

SCHEDULE_NAMES = {
    "round_robin": "round robin",
    "balanced_sparse": "balanced sparse",
    "adaptive": "adaptive",
    "merge_sort": "merge sort",
}
_THRESHOLD, _SCHEDULE = "threshold=", "schedule="
_MAX_PANELS = 4  # judges whose spending is drawn
_WIDE = 20.0  # a range of more than so many times the smallest (or the middle) needs a logarithmic axis
_GOLDEN = 0.6180339887  # steps that fill a strip evenly, the same in every drawing
_SAID: dict[str, Any] = {"fontsize": 9, "style": "italic", "color": "#555555", "ha": "center", "va": "center"}


def consensus_plot(
    rows: pd.DataFrame,
    correlations: pd.DataFrame | None = None,
    *,
    judges: Sequence[str] = (),
    controls: Collection[str] = (),
    provenance: str | None = None,
) -> Figure:
    """How much a panel decides at each threshold of agreement, and how well its rankings then follow experts.

    Parameters
    ----------
    rows
        From :func:`judgelab.measure.consensus.consensus_table`, of one panel or several: ``draw_rate`` and
        ``coverage`` (0 to 1) in slices ``threshold=<t>``.
    correlations
        From :func:`judgelab.measure.expert_ranks.correlation_rows`: ``spearman_mean`` (−1 to 1) in the same slices,
        of panels or single judges; a second panel. None: only the first.
    judges
        All panels and judges of the protocol in its order; they decide the colours. Default: those of the tables.
    controls
        Judges without a model, in grey.
    provenance
        Of the human labels; read from the correlations' or the rows' column if not given.

    Returns
    -------
    Figure
        The strictest threshold at the left, ``none`` last; below each the number of pairs planned (verdicts without a
        threshold) or of groups with a correlation. Six judges at most. A value that is undefined is not drawn; a panel
        without any says why. No row at all: a figure that says so.
    """
    tables = [_at(rows, ("draw_rate", "coverage")), _at(correlations, ("spearman_mean",))]
    marks = provenance_of(rows, provenance_of(correlations, provenance) if correlations is not None else provenance)
    present = judges_of(*tables)
    if not present:
        return blank("Thresholds of agreement: nothing to show", "no threshold was evaluated", provenance=marks)
    looks = judge_colours([*judges, *present], controls)
    drawn, left = capped(None, [name for name in looks if name in present])
    panels = [table for table in tables if len(table)]
    figure, grid = plt.subplots(1, len(panels), figsize=(11 if len(panels) > 1 else 8, 4.9), squeeze=False,
                                layout="constrained")  # fmt: skip
    for axes, table in zip(grid[0], panels, strict=True):
        own = rows_of(table, judge=drawn)
        _threshold_panel(axes, own, {name: looks[name] for name in drawn}, "pairs" if table is tables[0] else "groups")
        axes.set_title("draws and coverage" if table is tables[0] else "agreement with the experts' ranks", loc="left")
        if table is tables[0]:
            axes.set(ylim=(-0.04, 1.04), ylabel="share of pairs")
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
        else:
            axes.set_ylim(_lowest(own) - 0.06, 1.06)
            axes.set_ylabel("mean Spearman ρ with the experts")
            axes.axhline(0, color="#444444", lw=1.0, zorder=1)
    keys = [_key(looks[name], name) for name in drawn] if len(present) > 1 else []
    if len(tables[0]):
        plain = looks[drawn[0]] if len(drawn) == 1 else ("#444444", "o")
        keys += [_key(plain, "draws"), _key(plain, "coverage", hollow=True)]
    keys = keys if len(keys) > 1 else []
    width = figure.get_size_inches()[0]
    longest = max((len(str(key.get_label())) for key in keys), default=0)
    columns = max(1, min(4, int(12 * width / (6 + longest))))
    above = 0.26 * -(-len(keys) // columns) + 0.1
    figure.set_size_inches(width, 4.4 + above)
    under_title = 1 - 0.36 / (4.4 + above)
    if keys:
        figure.legend(handles=keys, loc="upper left", bbox_to_anchor=(0, under_title), ncols=columns, frameon=False)
    finish(
        figure,
        f"What the panel decides, by the share of agreement that it asks for{left}",
        note=f"Bars: {level_of(pd.concat(tables))} intervals. Draws: of the pairs with a result; coverage: pairs with "
        "a result, of all. none: every verdict counts for itself.",
        provenance=marks,
        top=above,
    )
    return figure


def _at(table: pd.DataFrame | None, measures: tuple[str, ...]) -> pd.DataFrame:
    """The rows of some measures at thresholds, with the threshold in a column."""
    if table is None or table.empty:
        return pd.DataFrame(columns=["judge", "measure", "estimate", "ci_low", "ci_high", "ci_level", "threshold"])
    found = rows_of(table, measure=measures)
    found = found[found["slice"].astype(str).str.startswith(_THRESHOLD)]
    return found.assign(threshold=found["slice"].astype(str).str.removeprefix(_THRESHOLD).astype(object))


def _strict_first(names: Sequence[str] | pd.Series) -> list[str]:
    """Thresholds from the strictest to none."""
    return sorted(natural(names), key=lambda name: float("inf") if name == "none" else -float(name))


def _lowest(rows: pd.DataFrame) -> float:
    """Where an axis of correlations begins: at 0, or at the lowest that is drawn."""
    return min([0.0, *rows["estimate"].dropna(), *rows["ci_low"].dropna()])


def _threshold_panel(axes: Axes, rows: pd.DataFrame, looks: dict[str, tuple[str, str]], unit: str) -> None:
    """One line a judge and measure over the thresholds."""
    order = _strict_first(rows["threshold"])
    held = set(zip(rows["judge"], rows["measure"], strict=True))
    series = [(judge, name) for name in natural(rows["measure"]) for judge in looks if (judge, name) in held]
    step = min(0.08, 0.5 / max(1, len(series)))
    for place, (judge, measure) in enumerate(series):
        own = rows_of(rows, judge=judge, measure=measure).dropna(subset="estimate")
        x = np.array([order.index(name) for name in own["threshold"]]) + step * (place - (len(series) - 1) / 2)
        by_x = np.argsort(x)
        y, low, high = (own[name].to_numpy(dtype=float)[by_x] for name in ("estimate", "ci_low", "ci_high"))
        colour, marker = looks[judge]
        hollow = measure == "coverage"
        axes.plot(x[by_x], y, marker=marker, color=colour, lw=1.4, ls="--" if hollow else "-", markersize=6.5,
                  markerfacecolor="white" if hollow else colour, markeredgecolor=colour if hollow else "white",
                  markeredgewidth=1.3 if hollow else 0.8, zorder=3, label=f"{judge}, {measure}")  # fmt: skip
        axes.vlines(x[by_x], low, high, colors=colour, lw=2, alpha=0.6, zorder=2)
    axes.set_xticks(range(len(order)), [_threshold_label(rows, name, unit) for name in order])
    axes.set_xlim(-0.5, len(order) - 0.5)
    axes.set_xlabel("share of the verdicts from which the panel agrees")
    axes.grid(visible=False, axis="x")
    if rows["estimate"].isna().all():
        why = reason_text(rows.iloc[0]) if len(rows) else "not measured"
        axes.text(0.5, 0.5, textwrap.fill(f"undefined: {why}", 40), transform=axes.transAxes, **_SAID)


def _threshold_label(rows: pd.DataFrame, threshold: str, unit: str) -> str:
    """A threshold and what it is counted over: ``0.75`` above ``340 pairs``."""
    own = rows_of(rows, threshold=threshold)
    counted = rows_of(own, measure="coverage")["denominator"] if unit == "pairs" else own["n_used"]
    counts = counted.dropna().astype(int)
    if counts.empty:
        return threshold
    span = f"{counts.min():,}" if counts.min() == counts.max() else f"{counts.min():,} to {counts.max():,}"
    return f"{threshold}\n{span}\n{'verdicts' if threshold == 'none' and unit == 'pairs' else unit}"


def _key(look: tuple[str, str], label: str, *, hollow: bool = False) -> Line2D:
    """An entry of a legend for a line with markers."""
    colour, marker = look
    return Line2D([], [], color=colour, marker=marker, ls="--" if hollow else "-", lw=1.4, label=name_of(label, 44),
                  markersize=6.5, markerfacecolor="white" if hollow else colour,
                  markeredgecolor=colour if hollow else "white")  # fmt: skip


def spending_plot(rows: pd.DataFrame, *, target: float = 0.95, provenance: str | None = None) -> Figure:
    """What a ranking from fewer calls is worth: its rank correlation with the whole ranking, by schedule.

    Parameters
    ----------
    rows
        From :func:`judgelab.measure.spending.spending`: ``rank_correlation`` (−1 to 1) in slices
        ``schedule=<s>:calls=<N>``; ``calls_to_reach`` and ``share_to_reach`` in slices ``schedule=<s>``. Of one judge
        or several; four are drawn, a panel each.
    target
        The mean rank correlation that was to be reached, as there.
    provenance
        Of the human labels; read from the table's column if not given.

    Returns
    -------
    Figure
        One line a schedule with the central interval of single runs as a shade; a black edge where the target is
        reached and stays so, and words for it in the legend. Calls are on a logarithmic axis where they differ by more
        than 20 times. A panel without any value says why; no row at all: a figure that says so.
    """
    marks = provenance_of(rows, provenance)
    found = rows_of(rows, measure="rank_correlation") if len(rows) else rows
    if found.empty:
        return blank("What fewer calls are worth: nothing to show", "no schedule was run", provenance=marks)
    found = found.assign(
        schedule=found["slice"].str.extract(r"^schedule=(.*):calls=", expand=False).astype(object),
        calls=found["slice"].str.extract(r":calls=(\d+)$", expand=False).astype(float),
    )
    present = judges_of(found) or [""]
    judges = present[:_MAX_PANELS]
    schedules = natural(found["schedule"])
    across, down = min(2, len(judges)), -(-len(judges) // 2)
    height = 0.9 + down * (3.6 + 0.2 * len(schedules))
    figure, grid = plt.subplots(down, across, figsize=(8.5 if across == 1 else 11, height), squeeze=False, sharey=True,
                                layout="constrained")  # fmt: skip
    looks = judge_colours([*SCHEDULE_NAMES, *schedules])  # a schedule looks the same whichever others are drawn
    for axes in grid.flat[len(judges) :]:
        axes.set_visible(False)
    for axes, judge in zip(grid.flat, judges, strict=False):
        own = rows_of(found, judge=judge)
        axes.set_ylim(_lowest(found) - 0.05, 1.05)
        _spending_panel(axes, own, rows_of(rows, judge=judge), looks, target)
        if len(present) > 1:
            axes.set_title(name_of(judge, 50), loc="left")
    for axes in grid[:, 0]:
        axes.set_ylabel("mean rank correlation with all calls")
    repeats = found["n_used"] + found["n_excluded"]
    left = f" (first {len(judges)} of {len(present)} judges)" if len(present) > len(judges) else ""
    return finish(
        figure,
        f"What fewer calls are worth: the ranking against the one from all calls{left}",
        note=f"Line: mean Spearman ρ over {plural(repeats.max(), 'run')}; shade: the central {level_of(found)} of "
        f"single runs. Dashed: {target:g}. Dotted: all calls (of a complete table: the full round robin), where ρ is "
        "1 by construction. Black edge: from there on the mean stays at the target. Merge sort is drawn at its budget; "
        "it may spend less.",
        provenance=marks,
    )


def _spending_panel(
    axes: Axes, rows: pd.DataFrame, all_rows: pd.DataFrame, looks: dict[str, tuple[str, str]], target: float
) -> None:
    """The schedules of one judge, with what each needs in the legend."""
    keys = []
    for schedule in natural(rows["schedule"]):
        own = rows_of(rows, schedule=schedule).dropna(subset="estimate").sort_values("calls")
        x, y, low, high = (own[name].to_numpy(dtype=float) for name in ("calls", "estimate", "ci_low", "ci_high"))
        colour, marker = looks[schedule]
        (line,) = axes.plot(x, y, color=colour, marker=marker, lw=1.7, markersize=5, markeredgecolor="white", zorder=3)
        axes.fill_between(x, low, high, color=colour, alpha=0.13, lw=0, zorder=1.5)
        reach = one(all_rows, slice_=f"{_SCHEDULE}{schedule}", measure="calls_to_reach")
        if reach is not None and pd.notna(reach["estimate"]):
            at = x == float(reach["estimate"])
            axes.plot(x[at], y[at], ls="", marker=marker, color=colour, markersize=8, markeredgecolor="black", zorder=4)
        name = SCHEDULE_NAMES.get(schedule, schedule.replace("_", " "))
        line.set_label(f"{name}: {_needs(all_rows, schedule, target)}")
        keys.append(line)
    axes.axhline(target, color="#444444", lw=1.1, ls="--", zorder=1)
    shares = rows_of(all_rows, measure="share_to_reach")["denominator"].dropna() if len(all_rows) else pd.Series()
    full = float(shares.max()) if len(shares) else float(rows["calls"].max())
    axes.axvline(full, color=GREY, lw=1.3, ls=":", zorder=1)
    axes.annotate(
        f"all {full:,.0f} calls", (full, 0.02), xycoords=axes.get_xaxis_transform(), xytext=(-4, 0),
        textcoords="offset points", rotation=90, ha="right", va="bottom", fontsize=9, color="#666666",
    )  # fmt: skip
    smallest = float(rows["calls"].min())
    if full > _WIDE * smallest:
        axes.set(xscale="log", xlim=(0.8 * smallest, 1.3 * full))
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda calls, _: f"{calls:,.0f}"))
    axes.set_xlabel("calls to the judge")
    if rows["estimate"].isna().all():
        why = textwrap.fill(f"undefined: {reason_text(rows.iloc[0])}", 46)
        axes.text(0.5, 0.5, why, transform=axes.transAxes, **_SAID)
    axes.legend(handles=keys, loc="upper left", bbox_to_anchor=(0.0, -0.17), frameon=False, borderaxespad=0.0)


def _needs(rows: pd.DataFrame, schedule: str, target: float) -> str:
    """``0.95 from 340 calls (12 %)``, or that it was not reached."""
    calls = one(rows, slice_=f"{_SCHEDULE}{schedule}", measure="calls_to_reach")
    share = one(rows, slice_=f"{_SCHEDULE}{schedule}", measure="share_to_reach")
    if calls is None or pd.isna(calls["estimate"]):
        return f"{target:g} not reached"
    part = f" ({100 * float(share['estimate']):.3g} %)" if share is not None and pd.notna(share["estimate"]) else ""
    return f"{target:g} from {float(calls['estimate']):,.0f} calls{part}"


def answer_length_plot(candidates: pd.DataFrame, *, provenance: str | None = None) -> Figure:
    """How long each system's answers are: a dot an answer, a line at the median; the longest answers on top.

    Parameters
    ----------
    candidates
        One row an answer: ``item_id``, ``system``, ``words`` (0 and more; NaN: no answer).
    provenance
        Of the human labels; read from the table's column if not given.

    Returns
    -------
    Figure
        At the right the median, the number of answers, and how many are missing. Words are on an axis that is
        logarithmic above 10 where an answer is more than 20 times as long as the middle one. Of more than 80 systems
        the first 60 and the last 20 are drawn. No row: a figure that says so.
    """
    marks = provenance_of(candidates, provenance)
    if candidates.empty:
        return blank("Lengths of the answers: nothing to show", "there is no answer", provenance=marks)
    grouped = candidates.assign(words=candidates["words"].astype(float)).groupby("system", sort=False)["words"]
    table = pd.DataFrame({"median": grouped.median(), "n": grouped.count(), "rows": grouped.size()}).reset_index()
    lines, left = lines_of(table.sort_values("median", ascending=False, kind="stable", na_position="last"))
    figure, axes = plt.subplots(figsize=(10, 1.5 + height_of(lines)), layout="constrained")
    values = {str(system): part.dropna().sort_values().to_numpy() for system, part in grouped}
    most = int(table["n"].max())
    size, alpha = (30, 0.9) if most <= 5 else (22, 0.55) if most <= 60 else (9, 0.25)
    for y, system, median in zip(lines["y"], lines["system"], lines["median"], strict=True):
        words = values[str(system)]
        across = (np.arange(len(words)) * _GOLDEN % 1 - 0.5) * 0.56 if len(words) > 1 else np.zeros(len(words))
        axes.scatter(words, y + across, s=size, color=SERIES[0].colour, lw=0, alpha=alpha, zorder=2.5)
        if np.isfinite(median):
            axes.vlines(median, y - 0.38, y + 0.38, colors=INK, lw=2.2, zorder=3 if most > 5 else 2)
        else:
            axes.text(0.5, y, "no answer", transform=axes.get_yaxis_transform(), **_SAID)
    longest = float(np.nanmax([0.0, *candidates["words"].astype(float)]))
    middle = float(np.nanmedian([1.0] if candidates["words"].isna().all() else candidates["words"].astype(float)))
    axes.set_xlim(-0.015 * max(longest, 1.0), 1.04 * max(longest, 1.0))
    if longest > _WIDE * max(middle, 1.0):
        axes.set_xscale("symlog", linthresh=10, subs=(2, 5))
        axes.set_xlim(-1, 1.5 * longest)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda words, _: f"{words:,.0f}"))
    name_systems(axes, lines)
    counts = [_counted(*row) for row in lines[["median", "n", "rows"]].itertuples(index=False)]
    text_column(axes, lines, ["median and n", *counts])
    axes.set_xlabel("words of an answer")
    return finish(
        figure,
        f"How long the answers are: {plural(len(table), 'system')}, "
        f"{plural(candidates['item_id'].nunique(), 'item')}{left}",
        note="Dot: one answer, spread so that dots do not hide one another. Line: median of the system.",
        provenance=marks,
    )


def _counted(median: float, n: float, rows: float) -> str:
    """``132; n = 40``, or ``80.5; n = 2``, with the missing answers where there are any."""
    missing = f"; {int(rows - n)} missing" if rows > n else ""
    return f"{f'{median:,.1f}'.removesuffix('.0')}; n = {int(n)}{missing}" if n else f"–{missing}"
