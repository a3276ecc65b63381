"""The plot of agreement under the policies for unusable replies. It takes the table and computes no statistic."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from judgelab.report.dots import dots_height, dots_legend, draw_dots, slots_of
from judgelab.report.heatmaps import capped
from judgelab.report.picking import judges_of, rows_of
from judgelab.report.style import blank, finish, provenance_of, series_of
from judgelab.report.words import AXIS, level_of

__all__ = ["policy_plot"]

SHOWN = {  # the worst case is as_wrong and not drawn twice
    "exact_agreement_unusable_dropped": "dropped (protocol)",
    "exact_agreement_unusable_as_wrong": "as wrong (at worst)",
    "exact_agreement_unusable_as_tie": "as tie",
    "exact_agreement_unusable_best_case": "at best",
}


def policy_plot(
    policies: pd.DataFrame, *, judges: Sequence[str] | None = None, provenance: str | None = None
) -> Figure:
    """Exact agreement under each policy with its interval, one panel a judge (at most six).

    Parameters
    ----------
    policies
        Rows of ``measure.policies.policy_table``.
    judges
        The judges drawn, in this order; default: the first six of the table.
    provenance
        Of the human labels; read from the table's column if not given.
    """
    marks = provenance_of(policies, provenance)
    rows = rows_of(policies, measure=list(SHOWN), slice_="all")
    rows = rows.assign(policy=rows["measure"].map(SHOWN))
    chosen, left = capped(judges, judges_of(rows))
    rows = rows_of(rows, judge=chosen)
    if rows.empty:
        return blank("Policies for unusable replies: nothing to show", "no row for a policy", provenance=marks)
    found = {name: rows_of(rows, judge=name) for name in chosen}
    panels = {
        name: slots_of(own, groups=list(SHOWN.values()), column="policy", series=series_of(own))
        for name, own in found.items()
        if len(own)
    }
    heights = [dots_height(slots) + 0.4 for slots in panels.values()]
    figure, grid = plt.subplots(
        len(panels), 1, figsize=(10, 1.4 + sum(heights)), height_ratios=heights, sharex=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axes, (name, slots) in zip(grid[:, 0], panels.items(), strict=True):
        draw_dots(axes, slots)
        axes.set_title(name, loc="right")
        axes.set_xlim(-0.02, 1.02)
    dots_legend(grid[0, 0], next(iter(panels.values())))
    grid[-1, 0].set_xlabel(AXIS["exact_agreement"].replace("items", "judgments"))
    return finish(
        figure,
        "Exact agreement with the human reference, by policy for unusable replies" + left,
        note=f"Dot: estimate. Line: {level_of(rows)} interval. Right: what it is counted from. Where nothing "
        "is unusable, the policies agree.",
        provenance=marks,
    )
