"""Plots of rankings: who leads and how surely, who beats whom. Each takes tables and computes no statistic."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from judgelab.report.judge_colours import Mark, draw_marks, fit_words, mark_key, span_of
from judgelab.report.style import GREY, INK, blank, finish, provenance_of
from judgelab.report.system_lines import HEADING, height_of, lines_of, name_points, name_systems, names_of, text_column
from judgelab.report.words import natural, percent, plural, reason_text

__all__ = ["rank_plot", "rank_set_plot", "ratings_scatter", "win_heatmap"]

_BRACKETS = 12  # systems up to which tied groups are drawn as bars
_NUMBERED = 6  # systems up to which a heatmap names its columns; beyond, it numbers them
_LABELLED = 6  # systems that the scatter names
_PALETTE = sns.color_palette("colorblind").as_hex()
_STRENGTH, _ELO = (_PALETTE[0], "o"), (_PALETTE[9], "D")
_FEW, _FEW_ELO = (GREY, "o"), ("#c2c2c2", "D")
_PRIOR = "strength by a prior"
_COLUMNS = {"strength": ("strength_elo", "strength_low", "strength_high"), "elo": ("elo", "elo_low", "elo_high")}

Floats = NDArray[np.float64]


def rank_plot(
    table: pd.DataFrame, *, ci_level: float = 0.95, minimum_matches: int = 10, provenance: str | None = None
) -> Figure:
    """The ranking: strength of every system with its interval, its ranks, its matches and who is tied; best on top.

    Parameters
    ----------
    table
        :attr:`judgelab.measure.leaderboard.Leaderboard.table`: ``system``, ``rank``, ``rank_low``, ``rank_high``,
        ``letters``, ``strength_elo``, ``strength_low``, ``strength_high``, ``elo``, ``elo_low``, ``elo_high`` (Elo
        points), ``matches``, ``few``, ``note``.
    ci_level
        Coverage of its intervals, in (0, 1), for the caption.
    minimum_matches
        Matches below which a system is ``few``, for the legend.
    provenance
        Of the human labels; read from the table's column if not given.

    Returns
    -------
    Figure
        Dot: Bradley-Terry strength; the lighter diamond below it: Elo, mean over the orders of the matches. Systems
        with few matches are grey and hollow; those without a strength stand last and say why. Up to 12 systems, a bar
        at the right joins those that are not told apart. Of more than 80 systems the first 60 and the last 20 are
        drawn. Intervals far wider than the estimates lie apart end in an arrow. No system: a figure that says so.
    """
    marks = provenance_of(table, provenance)
    if table.empty:
        return blank("Ranking: nothing to show", "no system has a match", provenance=marks)
    lines, left = lines_of(table.sort_values("rank", kind="stable", na_position="last"))
    figure, axes = plt.subplots(figsize=(11, 2.0 + height_of(lines)), layout="constrained")
    parts = {name: _as_rows(lines, *columns) for name, columns in _COLUMNS.items()}
    axes.set_xlim(*span_of(pd.concat(parts.values()), zero=False, least=50))
    crowd = len(lines) > _BRACKETS
    pairs = zip(parts["strength"].iterrows(), parts["elo"].iterrows(), strict=True)
    for y, few, ((_, strength), (_, elo)) in zip(lines["y"], lines["few"], pairs, strict=True):
        if pd.notna(elo["estimate"]):
            look = _FEW_ELO if few else _ELO
            draw_marks(axes, [Mark(y + 0.27, elo, look, not few, 4.5 if crowd else 5.5)])
        known = strength if pd.notna(strength["estimate"]) else None
        mark = Mark(y, known, _FEW if few else _STRENGTH, not few, 5.5 if crowd else 7.5)
        draw_marks(axes, [mark], missing=f"no strength: {reason_text(strength)}")
    name_systems(axes, lines, ["ranks", *map(_ranks, lines["rank_low"], lines["rank_high"])])
    text_column(axes, lines, ["matches", *(f"{int(count):,}" for count in lines["matches"])])
    bars = not crowd and len(lines) > 1 and _group_bars(axes, lines)
    axes.set_xlabel("Elo points")
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    keys = [mark_key(_STRENGTH, "Bradley-Terry strength"), mark_key(_ELO, "Elo, mean over orders of the matches")]
    keys += [mark_key(_FEW, f"fewer than {minimum_matches} matches", filled=False)] if lines["few"].any() else []
    under_title = 1 - 0.36 / figure.get_size_inches()[1]
    figure.legend(handles=keys, loc="upper left", bbox_to_anchor=(0.0, under_title), ncols=3, frameon=False)
    finish(
        figure,
        f"Ranking of {plural(len(table), 'system')}: strength with {percent(ci_level)} interval{left}",
        note="Ranks: those that the data allow, for all systems at once. "
        + ("Joined by a bar at the right: not told apart. " if bars else "")
        + _prior_note(table),
        provenance=marks,
        top=0.36,
    )
    return fit_words(figure)


def _as_rows(lines: pd.DataFrame, estimate: str, low: str, high: str) -> pd.DataFrame:
    """Columns of the leaderboard under the names that the package's dots are drawn from."""
    rows = lines[[estimate, low, high]].set_axis(["estimate", "ci_low", "ci_high"], axis=1).astype(float)
    return rows.assign(note=_text(lines, "note"))


def _text(lines: pd.DataFrame, column: str) -> list[str]:
    """A column of words, "" where it has none."""
    return [str(text) if pd.notna(text) else "" for text in lines[column]] if column in lines else [""] * len(lines)


def _ranks(low: float, high: float) -> str:
    """A rank set in words."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "–"
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


def _prior_note(table: pd.DataFrame) -> str:
    """What the notes of the systems with a strength say, in short."""
    rated = table[table["strength_elo"].notna()]
    notes = dict(zip(names_of(rated["system"]), _text(rated, "note"), strict=True))
    own = [
        f"{name}: {note.removesuffix(_PRIOR).rstrip('; ')}." for name, note in notes.items() if note not in ("", _PRIOR)
    ]
    told = own[:3] + ([f"{len(own) - 3} more such notes are in the table."] if len(own) > 3 else [])
    if any(_PRIOR in note for note in notes.values()):
        told.insert(0, "A prior keeps the strengths finite.")
    return " ".join(told)


def _group_bars(axes: Axes, lines: pd.DataFrame) -> bool:
    """Join systems that share a letter by a bar at the right of the matches, a knot at each; whether there are any."""
    texts = _text(lines, "letters")
    letters = dict.fromkeys("".join(texts))
    offset = 18 + 5.6 * len("matches")
    for place, letter in enumerate(letters):
        own = [y for y, text in zip(lines["y"], texts, strict=True) if letter in text]
        shift = ScaledTranslation((offset + 11 * place) / 72, 0, axes.figure.dpi_scale_trans)
        axes.plot(
            [1.008] * len(own), own, transform=axes.get_yaxis_transform() + shift, clip_on=False, color="#4d4d4d",
            lw=3, marker="o", markersize=7, solid_capstyle="round", label=f"group {letter}",
        )  # fmt: skip
    if letters:
        shift = ScaledTranslation((offset - 4) / 72, 0, axes.figure.dpi_scale_trans)
        axes.text(1.008, 1.0, "tied", transform=axes.transAxes + shift, ha="left", **HEADING)
    return bool(letters)


def rank_set_plot(table: pd.DataFrame, *, provenance: str | None = None) -> Figure:
    """The ranks that each system may have: a bar from the best to the worst, a dot at its rank; best on top.

    Parameters
    ----------
    table
        As in :func:`rank_plot`; ``system``, ``rank``, ``rank_low``, ``rank_high`` are needed.
    provenance
        As there.

    Returns
    -------
    Figure
        Systems without a rank stand last and say why. Of more than 80 systems the first 60 and the last 20 are drawn.
        No system: a figure that says so.
    """
    marks = provenance_of(table, provenance)
    if table.empty:
        return blank("Rank sets: nothing to show", "no system has a match", provenance=marks)
    lines, left = lines_of(table.sort_values("rank", kind="stable", na_position="last"))
    rows = _as_rows(lines, "rank", "rank_low", "rank_high")
    few = lines["few"].astype(bool).to_numpy() if "few" in lines else np.zeros(len(lines), dtype=bool)
    figure, axes = plt.subplots(figsize=(10, 1.4 + height_of(lines)), layout="constrained")
    shaded = (rows["ci_low"].notna() & rows["ci_high"].notna()).to_numpy()
    low, high = (rows[name].to_numpy()[shaded] for name in ("ci_low", "ci_high"))
    axes.barh(lines["y"].to_numpy()[shaded], high - low + 0.7, left=low - 0.35, height=0.46, lw=0, zorder=2,
              color=np.where(few, "#d6d6d6", "#a9cbe4")[shaded])  # fmt: skip
    size = max(len(table), 2)
    axes.set_xlim(0.4 - 0.008 * size, 1.008 * size + 0.6)
    dots = rows.assign(ci_low=np.nan, ci_high=np.nan)  # the bar is the interval
    for y, is_few, (_, row) in zip(lines["y"], few, dots.iterrows(), strict=True):
        known = row if pd.notna(row["estimate"]) else None
        mark = Mark(y, known, _FEW if is_few else _STRENGTH, not is_few, 6.0)
        draw_marks(axes, [mark], missing=f"no rank: {reason_text(row)}")
    name_systems(axes, lines)
    text_column(axes, lines, ["ranks", *map(_ranks, lines["rank_low"], lines["rank_high"])])
    axes.set_xlabel("rank (1 = best)")
    ticks = MaxNLocator(12, integer=True).tick_values(1, size)
    axes.set_xticks(sorted({1, *(int(tick) for tick in ticks if 1 < tick <= size)}))
    finish(
        figure,
        f"Which ranks the data allow: {plural(len(table), 'system')}{left}",
        note="Bar: ranks that the data allow, for all systems at once. Dot: rank by strength. "
        + ("Grey and hollow: few matches." if few.any() else ""),
        provenance=marks,
    )
    return fit_words(figure)


def win_heatmap(
    matrix: pd.DataFrame, *, systems: Sequence[str] | None = None, most: int = 30, provenance: str | None = None
) -> Figure:
    """Who beats whom: the share of its matches that each row wins against each column, best on top and at the left.

    Parameters
    ----------
    matrix
        From :func:`judgelab.measure.win_matrix.win_matrix`: ``system``, ``opponent``, ``win_rate`` (0 to 1, NaN for
        two without a decided match), ``matches``.
    systems
        Those to draw, in this order; default: all, in the order of the matrix.
    most
        How many at most, at least 2; of more, the first and the last.
    provenance
        Of the human labels; read from the table's column if not given.

    Returns
    -------
    Figure
        Up to 12 systems each cell says its rate and its matches. No pair: a figure that says so.
    """
    marks = provenance_of(matrix, provenance)
    present = natural(matrix["system"]) if "system" in matrix else []
    names = present if systems is None else [name for name in natural(systems) if name in present]
    left, total = "", len(names)
    if total > most:
        names = [*names[: most - most // 2], *names[total - most // 2 :]]
        ends = ("best", "worst") if systems is None else ("first", "last")
        left = f" ({ends[0]} {most - most // 2} and {ends[1]} {most // 2} of {total} systems)"
    if len(names) < 2:
        return blank("Who beats whom: nothing to show", "no two systems that could meet", provenance=marks)
    size = len(names)
    rates, counts = _cells(matrix, names)
    side = min(1.2 * size, 9.1 - 0.078 * max(map(len, names_of(names))), 7.0)
    wide = 11.0 if size > _NUMBERED else min(11.0, max(6.5, side + 4.0))
    figure, axes = plt.subplots(figsize=(wide, max(side, 2.4) + 1.7), layout="constrained")
    image = axes.imshow(np.ma.masked_invalid(rates), cmap="RdBu", vmin=0, vmax=1)
    axes.set_facecolor("#ececec")
    axes.patch.set(hatch="////", edgecolor="#bdbdbd", lw=0)
    for place in range(size):
        axes.add_patch(plt.Rectangle((place - 0.5, place - 0.5), 1, 1, facecolor="white", edgecolor="none"))
    if size <= _BRACKETS:
        for i, j in np.argwhere(~np.isnan(rates)):
            dark = np.dot(image.to_rgba(rates[i, j])[:3], (0.299, 0.587, 0.114)) < 0.5
            axes.text(j, i, f"{round(100 * rates[i, j], 6):.0f} %\nof {counts[i, j]:.0f}", ha="center", va="center",
                      fontsize=9, linespacing=1.05, color="white" if dark else INK)  # fmt: skip
    if left:
        for draw in (axes.axhline, axes.axvline):
            draw(most - most // 2 - 0.5, color=INK, lw=1.2)
    _name_cells(axes, names)
    bar = figure.colorbar(image, ax=axes, shrink=0.8, aspect=24, ticks=[0, 0.25, 0.5, 0.75, 1])
    bar.ax.set_yticklabels(["0 %", "25 %", "50 %", "75 %", "100 %"])
    bar.set_label("matches that the row wins, a tie half")
    bar.outline.set_visible(False)
    if bool((np.isnan(rates) & ~np.eye(size, dtype=bool)).any()):
        key = Patch(facecolor="#ececec", edgecolor="#bdbdbd", hatch="////", lw=0, label="no decided match")
        axes.legend(handles=[key], loc="lower left", bbox_to_anchor=(0, 1.0), frameon=False, borderaxespad=0.2)
    met = [int(count) for count in counts[counts > 0]] or [0]
    played = f"{min(met)} to {max(met)} matches" if min(met) < max(met) else plural(max(met), "match", "matches")
    return finish(
        figure,
        f"Who beats whom{left}",
        note="Blue: the row beats the column more often than not; red: less often."
        + (" In the cell: share of the matches of the two." if size <= _BRACKETS else "")
        + (f" Two that met have {played}." if max(met) else ""),
        provenance=marks,
    )


def _cells(matrix: pd.DataFrame, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Rates and matches of each row against each column, NaN where the table has no such pair."""
    place = {name: number for number, name in enumerate(names)}
    rates, counts = np.full((2, len(names), len(names)), np.nan)
    for one, other, rate, count in matrix[["system", "opponent", "win_rate", "matches"]].itertuples(index=False):
        if str(one) in place and str(other) in place:
            cell = place[str(one)], place[str(other)]
            rates[cell], counts[cell] = rate, count
    return rates, counts


def _name_cells(axes: Axes, names: Sequence[str]) -> None:
    """Name rows and columns, with lines between; many systems are numbered, and the columns have the numbers alone."""
    places, shown = range(len(names)), names_of(names)
    if len(names) <= _NUMBERED:
        letters = 13 if len(names) > 2 else 19
        axes.set_yticks(places, shown)
        axes.set_xticks(places, ["\n".join(textwrap.wrap(name, letters)) for name in names_of(names, 2 * letters)])
    else:
        axes.set_yticks(places, [f"{name}  {place + 1}" for place, name in enumerate(shown)])
        axes.set_xticks(places, [str(place + 1) for place in places])
    axes.tick_params(length=0, labelsize=9)
    axes.set_ylabel("this system ...")
    axes.set_xlabel("... against this one")
    for place in places[1:]:
        for draw in (axes.axhline, axes.axvline):
            draw(place - 0.5, color="white", lw=1.0, zorder=1.5)
    axes.grid(visible=False)
    for edge in axes.spines.values():
        edge.set_visible(False)


def ratings_scatter(table: pd.DataFrame, *, ci_level: float = 0.95, provenance: str | None = None) -> Figure:
    """Elo against Bradley-Terry strength, a point a system, both with intervals; those that differ most are named.

    Parameters
    ----------
    table, ci_level, provenance
        As in :func:`rank_plot`. A system without one of the two ratings is not drawn, and counted in the caption.

    Returns
    -------
    Figure
        On the diagonal both ratings are the same. No system with both: a figure that says so.
    """
    marks = provenance_of(table, provenance)
    both = table[table["strength_elo"].notna() & table["elo"].notna()] if "elo" in table else table.iloc[:0]
    if both.empty:
        return blank("Elo and Bradley-Terry: nothing to show", "no system has both ratings", provenance=marks)
    parts = {name: _as_rows(both, *columns) for name, columns in _COLUMNS.items()}
    limits = span_of(pd.concat(parts.values()), zero=False, least=50)
    figure, axes = plt.subplots(figsize=(9.5, 7), layout="constrained")
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    axes.plot(limits, limits, color="#999999", lw=1.2, ls="--", zorder=1)
    x, y = (parts[name]["estimate"].to_numpy() for name in ("strength", "elo"))
    few = both["few"].astype(bool).to_numpy()
    axes.hlines(y, parts["strength"]["ci_low"], parts["strength"]["ci_high"], colors="#b9cfe0", lw=0.9, zorder=1.5)
    axes.vlines(x, parts["elo"]["ci_low"], parts["elo"]["ci_high"], colors="#b9cfe0", lw=0.9, zorder=1.5)
    names = names_of(both["system"], 30)
    apart = np.argsort(-np.abs(x - y), kind="stable")[:_LABELLED]
    colours = np.where(np.isin(np.arange(len(x)), apart), _PALETTE[3], _STRENGTH[0])
    axes.scatter(x, y, s=34, facecolor=np.where(few, "white", colours), zorder=3, lw=1.0,
                 edgecolor=np.where(few, colours, "white"))  # fmt: skip
    name_points(axes, x[apart], y[apart], [names[place] for place in apart])
    axes.set_xlabel("Bradley-Terry strength, Elo points")
    axes.set_ylabel("Elo, mean over orders of the matches, Elo points")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    missing = len(table) - len(both)
    return finish(
        figure,
        f"Elo against Bradley-Terry: {plural(len(both), 'system')}",
        note=f"Lines: {percent(ci_level)} intervals. Dashed: both ratings the same. "
        + ("Orange and named: those that differ most." if len(apart) < len(both) else "All are named.")
        + (" Hollow: few matches." if few.any() else "")
        + (f" Not drawn: {plural(missing, 'system')} without a rating." if missing else ""),
        provenance=marks,
    )
