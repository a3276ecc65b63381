"""Plots of what sways a judge: probes, and features of the answers. Each takes tables and computes no statistic."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from judgelab.report.judge_colours import (
    Mark,
    draw_marks,
    fit_words,
    judge_colours,
    judges_drawn,
    name_lines,
    one_pass,
    p_limit,
    significant,
    span_of,
)
from judgelab.report.picking import one, rows_of
from judgelab.report.style import blank, finish, provenance_of
from judgelab.report.words import level_of, natural, rate_text, reason_text

__all__ = ["PROBE_NAMES", "battery_plot", "choice_plot"]

PROBE_NAMES = {
    "repetition": "repetition: asked again",
    "identical": "identical: one answer shown twice",
    "criterion_order": "criterion order: rubric reordered",
    "labels": "labels: other names for A and B",
    "padding": "padding: longer without content",
    "authority": "authority: invented sources cited",
    "format": "format: headings and bullets",
    "identity": "identity: says who wrote it",
    "injection": "injection: asks for the verdict",
    "rubric_words": "rubric words: words of the rubric",
    "surface_noise": "surface noise: typos in the better",
}
EFFECTS = {
    "first_position_log_odds": "place: the answer shown first",
    "length_log_odds": "length: the longer answer",
    "family_log_odds": "family: the answer of the judge's own family",
    "human_log_odds": "people: the answer that people prefer",
}
MAX_PANELS = 4  # side by side: more cannot be read at the report's width
_EFFECT_OF = ("net_flip_rate", "excess_flip_rate")
_TEXT: dict[str, Any] = {"va": "center", "ha": "left", "fontsize": 9, "color": "#444444"}


def battery_plot(
    bias: pd.DataFrame,
    *,
    judges: Sequence[str],
    controls: Collection[str] = (),
    shown: Sequence[str] | None = None,
    provenance: str | None = None,
) -> Figure:
    """The effect of every probe of the battery with its interval, worst first, one panel a judge (at most four).

    Parameters
    ----------
    bias
        Rows of the one shape, strategy ``pairwise``, pass ``both``, slice ``probe=<name>``: ``net_flip_rate`` or, for
        probes without a target, ``excess_flip_rate`` (both -1 to 1, share of judgments); ``probe_p_holm`` fills the
        marker; ``noise_floor`` (slice ``probe=repetition``) is the grey band; the counts are those of
        ``flip_towards_rate``, ``flip_away_rate`` or ``flip_rate``. A variant (``probe=<name>:<variant>``) is drawn
        only where its probe has no row of its own.
    judges
        All judges of the protocol in its order; they decide the colours.
    controls
        Judges without a model: grey, and after the others.
    shown
        The judges drawn; default: the first four that have a row.
    provenance
        Of the human labels; read from the table's column if not given.

    Returns
    -------
    Figure
        Probes are sorted by the largest absolute effect among the judges drawn, those without any at the bottom. A
        row without an estimate says why. No row at all: a figure that says so.
    """
    marks = provenance_of(bias, provenance)
    title = "What sways the verdicts: every probe of the battery, worst first"
    own = rows_of(bias, strategy="pairwise", pass_="both")
    rows = _probes(own)
    looks = judge_colours(judges, controls)
    drawn, left = judges_drawn(looks, rows, shown, most=MAX_PANELS)
    rows = rows_of(rows, judge=drawn)
    if rows.empty:
        return blank("Probes of bias: nothing to show", "no probe of the battery was run", provenance=marks)
    order = _worst_first(rows, controls)
    tall = 0.3 if len(drawn) == 1 else 0.36
    figure, grid = plt.subplots(
        1, len(drawn), figsize=(10 if len(drawn) < 3 else 11, 1.9 + tall * len(order)), sharex=True, sharey=True,
        squeeze=False, layout="constrained",
    )  # fmt: skip
    floors = []
    for axes, judge in zip(grid[0], drawn, strict=True):
        axes.set_xlim(*span_of(rows))
        floor = one(own, judge=judge, measure="noise_floor", slice_="probe=repetition")
        floors.append(_band(axes, judge, floor))
        _probe_panel(axes, rows_of(own, judge=judge), order, looks[judge])
        letters = int({1: 70, 2: 34, 3: 22, 4: 17}[len(drawn)])
        axes.set_title(textwrap.fill(judge, letters), loc="left")
        axes.set_xlabel("towards − away")
        axes.xaxis.set_major_locator(MaxNLocator(6 if len(drawn) < 3 else 4, steps=[1, 2, 5, 10]))
        axes.grid(visible=False, axis="y")
    name_lines(grid[0, 0], [_probe_name(name) for name in order])
    finish(
        figure,
        title + left,
        note="Effect: share of judgments that move towards the favoured answer minus share that move away "
        "(identical: first minus second place; criterion order and labels: flips beyond those of repetition). "
        f"Line: {level_of(rows)} interval. Filled: p < {p_limit(rows)} after Holm's correction; hollow: not. "
        "Grey band: within the noise floor, which asking again reaches too. "
        "Right: towards / away of n judgments, or flips of n. " + " ".join(text for text in floors if text),
        provenance=marks,
    )
    return fit_words(figure)


def _probes(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with an effect of a probe, named in the column ``probe``; one a judge and probe."""
    found = rows_of(rows, measure=_EFFECT_OF)
    found = found[found["slice"].astype(str).str.startswith("probe=")]
    found = found.assign(probe=found["slice"].astype(str).str.removeprefix("probe=").astype(object))
    kept = [
        name for name in set(found["probe"]) if ":" not in name or name.partition(":")[0] not in set(found["probe"])
    ]
    found = rows_of(found, probe=kept)
    # Where a probe has both effects, the one with a direction comes first.
    return found.sort_values("measure", key=lambda names: names != _EFFECT_OF[0], kind="stable").drop_duplicates(
        ["judge", "probe"]
    )


def _worst_first(rows: pd.DataFrame, controls: Collection[str]) -> list[str]:
    """The probes by the largest absolute effect among the judges; without an effect last, in the order of names.

    Controls count only where nothing else is drawn: what a judge without a model does is known.
    """
    known = list(PROBE_NAMES)
    first = sorted(natural(rows["probe"]), key=lambda name: known.index(name) if name in known else len(known))
    own = rows[~rows["judge"].isin(list(controls))]
    own = rows if own.empty else own
    sizes = own["estimate"].abs().groupby(own["probe"].astype(str)).max().fillna(-1.0)
    return sorted(first, key=lambda name: -float(sizes.get(name, -1.0)))


def _probe_name(name: str) -> str:
    probe, _, variant = name.partition(":")
    if variant:
        return f"{probe.replace('_', ' ')}: {variant}"
    return PROBE_NAMES.get(probe, probe.replace("_", " "))


def _band(axes: Axes, judge: str, floor: pd.Series | None) -> str:
    """Draw the noise floor of a judge; words if it has none."""
    if floor is None or pd.isna(floor["estimate"]):
        why = "no repetition" if floor is None else reason_text(floor)
        return f"No band for {judge}: {why}."
    size = abs(float(floor["estimate"]))
    axes.axvspan(-size, size, color="#dddddd", zorder=0.5, lw=0)
    return ""


def _probe_panel(axes: Axes, rows: pd.DataFrame, order: Sequence[str], look: tuple[str, str]) -> None:
    """The probes of one judge, with the counts at the right."""
    effects = _probes(rows)
    axes.axvline(0, color="#444444", lw=1.2, zorder=1)
    lines = []
    for y, name in enumerate(order):
        row = one(effects, probe=name)
        lines.append(Mark(y, row, look, significant(row, one(rows, measure="probe_p_holm", slice_=f"probe={name}"))))
        if row is not None and pd.notna(row["estimate"]):
            axes.text(1.03, y, _counts(rows, row), transform=axes.get_yaxis_transform(), **_TEXT)
    draw_marks(axes, lines, missing="not run")


def _counts(rows: pd.DataFrame, row: pd.Series) -> str:
    """``9/2 of 100``: towards and away; ``12 of 100`` for flips without a direction."""
    parts = [one(rows, measure=name, slice_=row["slice"]) for name in ("flip_towards_rate", "flip_away_rate")]
    if row["measure"] == "net_flip_rate" and all(part is not None and pd.notna(part["numerator"]) for part in parts):
        towards, away = (part for part in parts if part is not None)
        return f"{int(towards['numerator'])}/{int(away['numerator'])} of {int(towards['denominator'])}"
    flips = one(rows, measure="flip_rate", slice_=row["slice"])
    if row["measure"] == "excess_flip_rate" and flips is not None and pd.notna(flips["numerator"]):
        return f"{int(flips['numerator'])} of {int(flips['denominator'])}"
    return f"n = {int(row['denominator'])}" if pd.notna(row["denominator"]) else rate_text(row)


def choice_plot(
    bias: pd.DataFrame,
    *,
    judges: Sequence[str],
    controls: Collection[str] = (),
    provenance: str | None = None,
) -> Figure:
    """What moves a judge's choice, all else equal: place, length, family and people's preference, a panel each.

    Parameters
    ----------
    bias
        Rows of the one shape with ``first_position_log_odds``, ``length_log_odds``, ``family_log_odds`` or
        ``human_log_odds`` (log-odds, no bounds; 0 is no effect). A judge's rows of pass ``both`` are drawn, else of the
        first pass that it has.
    judges, controls
        As in :func:`battery_plot`; all judges with a row are drawn.
    provenance
        Of the human labels; read from the table's column if not given.

    Returns
    -------
    Figure
        One line a judge, in the protocol's order. Intervals beyond the axis end in an arrow. A row without an estimate
        says why. No row at all: a figure that says so.
    """
    marks = provenance_of(bias, provenance)
    title = "What moves each judge's choice, all else equal"
    rows = one_pass(rows_of(bias, strategy="pairwise", measure=list(EFFECTS)))
    looks = judge_colours(judges, controls)
    drawn, left = judges_drawn(looks, rows)
    rows = rows_of(rows, judge=drawn)
    if rows.empty:
        return blank("Effects on the choice: nothing to show", "no regression of the choices", provenance=marks)
    effects = [name for name in EFFECTS if (rows["measure"] == name).any()]
    down = (len(effects) + 1) // 2
    figure, grid = plt.subplots(
        down, min(2, len(effects)), figsize=(11, 1.1 + down * (0.85 + 0.34 * len(drawn))), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes in grid.flat[len(effects) :]:
        axes.set_visible(False)
    for axes, measure in zip(grid.flat, effects, strict=False):
        found = rows_of(rows, measure=measure)
        axes.set_xlim(*span_of(found, least=0.5))
        axes.axvline(0, color="#444444", lw=1.2, zorder=1)
        for y, judge in enumerate(drawn):
            row = one(found, judge=judge)
            draw_marks(axes, [Mark(y, row, looks[judge])])
            if row is not None and pd.notna(row["estimate"]):
                axes.text(1.015, y, f"n = {int(row['n_used'])}", transform=axes.get_yaxis_transform(), **_TEXT)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_title(EFFECTS[measure], loc="left")
        axes.set_xlabel("log-odds")
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    for axes in grid[:, 0]:
        name_lines(axes, drawn, grey=controls)
    finish(
        figure,
        title + left,
        note=f"Dot: effect in log-odds. Line: {level_of(rows)} interval; an arrow: it goes on beyond the axis. "
        "Above 0: the judge chooses such an answer more often than its other features explain. n: items.",
        provenance=marks,
    )
    return fit_words(figure)
