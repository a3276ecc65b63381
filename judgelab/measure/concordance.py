"""Kendall's W: how far the experts who ranked the same candidates agree among themselves."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judgelab.measure.association import MINIMUM_ANSWERS
from judgelab.measure.coding import excluded_note
from judgelab.measure.estimates import Place, Settings, mean_row
from judgelab.measure.expert_ranks import MEAN_RANK, checked, common, over_groups, reviewers
from judgelab.measure.resampling import Floats
from judgelab.measure.rows import frame

__all__ = ["reviewer_concordance"]

NAN = float("nan")


def reviewer_concordance(ranks: pd.DataFrame, *, ci_level: float, resamples: int, seed: int) -> pd.DataFrame:
    """Kendall's W: how far the reviewers of a group agree in their order of the candidates.

    With Rᵢ the sum of the m reviewers' ranks of system i of n, and t systems sharing a rank of a reviewer ::

        W = 12 Σᵢ (Rᵢ − R̄)² / (m² (n³ − n) − m Σ (t³ − t))

    Parameters
    ----------
    ranks : DataFrame
        As for :func:`judgelab.measure.expert_ranks.expert_correlations`; the systems that all reviewers of a group
        ranked are compared.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` without a judge: ``kendall_w`` per ``group=<g>`` in [0, 1]
        (``n_used`` counts systems), and ``kendall_w_mean`` over groups with its percentile bootstrap over groups. NaN
        with one reviewer, with fewer than three systems and where every reviewer ranks all alike.

    Raises
    ------
    ValueError
        As :func:`judgelab.measure.expert_ranks.expert_correlations`.

    Notes
    -----
    Source: Kendall and Babington Smith, "The problem of m rankings", 1939; ties: Kendall, 1945. Two reviewers without
    ties: W = (ρ + 1) / 2. Checked against ``scipy.stats.friedmanchisquare``, which is m (n − 1) W.
    """
    settings = Settings(ci_level, resamples, seed)
    lines, values = [], []
    for group, part in checked(ranks, ["group", "reviewer_id", "system"], "rank", "ranks").groupby("group", sort=False):
        table = common({name: given for name, given in reviewers(part).items() if name != MEAN_RANK})
        w, reason = _w(table.to_numpy(dtype=np.float64))
        values.append(w)
        lines.append(
            Place(slice_=f"group={group}").row(
                "kendall_w",
                w,
                n_used=len(table),
                n_excluded=part["system"].nunique() - len(table),
                method=f"{table.shape[1]} reviewers, ties corrected",
                note=f"undefined: {reason}" if reason else "",
            )
        )
    told = excluded_note(len(values), "groups", without_concordance=int(np.isnan(values).sum()))
    mean = mean_row("kendall_w_mean", Place(), np.arange(len(values)), np.array(values), settings=settings)
    return frame([*lines, over_groups(mean, told)])


def _w(ranks: Floats) -> tuple[float, str]:
    """Kendall's W of mid-ranks (systems, reviewers), or why there is none."""
    n, m = ranks.shape
    if m < 2:
        return NAN, f"{m} reviewer, 2 are needed"
    if n < MINIMUM_ANSWERS:
        return NAN, f"{n} systems ranked by all reviewers, {MINIMUM_ANSWERS} are needed"
    ties = sum(int((counts**3 - counts).sum()) for counts in (np.unique(own, return_counts=True)[1] for own in ranks.T))
    room = m**2 * (n**3 - n) - m * ties
    sums = ranks.sum(axis=1)
    if room == 0:
        return NAN, "every reviewer ranks all systems alike"
    return float(12 * ((sums - sums.mean()) ** 2).sum() / room), ""
