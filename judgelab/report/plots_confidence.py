"""The plot of agreement against the share of verdicts kept. It takes the curves and computes no statistic."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from judgelab.report.heatmaps import capped
from judgelab.report.picking import judges_of, rows_of
from judgelab.report.style import blank, finish, provenance_of
from judgelab.report.words import natural

__all__ = ["risk_coverage_plot"]

SIGNALS = {
    "stated": "stated confidence",
    "logprob_margin": "log-probability margin",
    "panel_spread": "other judges agree",
    "swap_stability": "survives the swap",
}
MARKERS = dict(zip(SIGNALS, "osD^", strict=True))
TITLE = "Agreement among the verdicts that a judge is sure of"


def risk_coverage_plot(
    curves: pd.DataFrame, *, judges: Sequence[str] | None = None, provenance: str | None = None
) -> Figure:
    """Exact agreement of the verdicts kept against the share kept, one panel a judge, one line a signal.

    Parameters
    ----------
    curves
        Curves of ``measure.risk_coverage.risk_coverage_table``.
    judges
        The judges drawn, in this order; default: the first six of the table.
    provenance
        Of the human labels; read from the table's column if not given.
    """
    marks = provenance_of(curves, provenance)
    chosen, left = capped(judges, judges_of(curves))
    rows = rows_of(curves, judge=chosen)
    shown = [name for name in chosen if name in set(rows["judge"])]
    if not shown:
        return blank(f"{TITLE}: nothing to show", "no verdict with a confidence and a label", provenance=marks)
    across = min(3, len(shown))
    down = -(-len(shown) // across)
    figure, grid = plt.subplots(
        down, across, figsize=(10, 1.0 + 3.1 * down), sharex=True, sharey=True, squeeze=False, layout="constrained"
    )
    palette = dict(zip(SIGNALS, sns.color_palette("colorblind", len(SIGNALS)).as_hex(), strict=True))
    for axes, name in zip(grid.flat, shown, strict=False):
        _panel(axes, rows_of(rows, judge=name), palette)
        axes.set_title(name, loc="left")
    for axes in list(grid.flat)[len(shown) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("exact agreement of those kept")
    for axes in grid[-1, :]:
        axes.set_xlabel("share of verdicts kept")
    return finish(
        figure,
        TITLE + left,
        note="Bars: interval at the protocol's level. The right end is all verdicts; a signal that tells right from "
        "wrong rises to the left.",
        provenance=marks,
    )


def _panel(axes: Axes, rows: pd.DataFrame, palette: dict[str, str]) -> None:
    """The lines of one judge, a little apart so that equal points are seen."""
    for signal in natural(rows["signal"]):
        own = rows_of(rows, signal=signal).sort_values("coverage")
        below, above = own["agreement"] - own["ci_low"], own["ci_high"] - own["agreement"]
        axes.errorbar(
            own["coverage"], own["agreement"], yerr=[below.clip(lower=0), above.clip(lower=0)],
            marker=MARKERS.get(signal, "o"), color=palette.get(signal, "#555555"), lw=1.6, elinewidth=1, capsize=2,
            label=SIGNALS.get(signal, signal),
        )  # fmt: skip
    axes.set_xlim(-0.02, 1.04)
    axes.set_ylim(-0.02, 1.04)
    axes.legend(loc="lower left", frameon=False, fontsize=9)
