"""Correlations with experts as one table: the panel's part is shaped as the paper's Table 1, a judge's as Table 2."""

from __future__ import annotations

import pandas as pd

from judgelab.measure.expert_table import correlation_table
from judgelab.report.picking import judges_of

__all__ = ["expert_tables"]


def expert_tables(experts: pd.DataFrame) -> pd.DataFrame:
    """One line a panel or judge and threshold: Spearman and Kendall (mean ± sd over groups), p, groups, ranked a group.

    Parameters
    ----------
    experts
        Rows of :func:`judgelab.measure.against_experts.against_experts`.

    Returns
    -------
    pandas.DataFrame
        Texts. The panel first; the column ``judges`` names it, or the one judge, once for each part.
    """
    parts = []
    for name in judges_of(experts):
        part = correlation_table(experts[experts["judge"] == name])
        part.insert(0, "judges", [("all on the panel" if name == "panel" else name), *[""] * (len(part) - 1)])
        parts.append(part)
    if not parts:
        return pd.DataFrame(columns=["judges", *correlation_table(experts).columns])
    return pd.concat(parts, ignore_index=True)
