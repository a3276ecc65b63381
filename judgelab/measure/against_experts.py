"""Rankings of a panel and of each of its judges against experts, at every consensus threshold."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from judgelab.measure.consensus import THRESHOLDS, consensus, threshold_name
from judgelab.measure.elo_orders import elo_by_group
from judgelab.measure.expert_ranks import correlation_rows, expert_correlations
from judgelab.measure.rows import frame

__all__ = ["against_experts", "group_ratings"]


def group_ratings(
    matches: pd.DataFrame,
    threshold: float | None,
    *,
    group: str,
    permutations: int = 1000,
    initial: float = 1000.0,
    k: float = 32.0,
    scale: float = 400.0,
    seed: int,
) -> pd.DataFrame:
    """Elo ratings within each group after the panel's consensus: group, system, rating, spread, matches.

    Parameters
    ----------
    matches : DataFrame
        The verdicts of one judge or of a panel; see :func:`judgelab.measure.consensus.consensus`.
    threshold : float or None
        Share of a pair's verdicts from which the panel agrees; None: every verdict is a match.
    group : str
        Column whose values are the groups: ``item_id`` or ``category``.
    permutations, initial, k, scale, seed
        Of Elo, see :func:`judgelab.measure.elo_orders.elo_by_group`.
    """
    settled = consensus(matches, threshold)
    rated = elo_by_group(
        settled, group=group, permutations=permutations, seed=seed, initial=initial, k=k, base=10.0, scale=scale
    )
    return rated.rename(columns={"elo": "rating", "elo_spread": "spread"})


def against_experts(
    panels: dict[str, pd.DataFrame],
    ranks: pd.DataFrame,
    *,
    group: str,
    thresholds: Sequence[float | None] = THRESHOLDS,
    permutations: int = 1000,
    initial: float = 1000.0,
    k: float = 32.0,
    scale: float = 400.0,
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Correlations of rankings with experts' ranks, for each panel or judge at each threshold.

    Within each group the systems are rated by Elo over permutations of the matches, and the ratings are correlated with
    the mean of the experts' ranks; means and spreads are over groups: the paper's Tables 1 (all judges) and 2 (one).

    Parameters
    ----------
    panels : dict of str to DataFrame
        Verdicts by the name of a panel or a judge.
    ranks : DataFrame
        group, reviewer_id, system, rank (1 best); see
        :func:`judgelab.measure.expert_ranks.expert_correlations`.
    group, thresholds, permutations, initial, k, scale
        See :func:`group_ratings`.
    ci_level, resamples, seed
        Coverage, resamples of whole groups, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :func:`judgelab.measure.expert_ranks.correlation_rows`, with the slice ``threshold=<t>``; one name's
        rows make a table by :func:`judgelab.measure.expert_table.correlation_table`. No rows without ranks.
    """
    parts = []
    for name, matches in panels.items():
        for threshold in thresholds if len(ranks) else ():
            ratings = group_ratings(
                matches,
                threshold,
                group=group,
                permutations=permutations,
                initial=initial,
                k=k,
                scale=scale,
                seed=seed,
            )
            found = expert_correlations(ratings[["group", "system", "rating"]], ranks)
            slice_ = f"threshold={threshold_name(threshold)}"
            parts.append(
                correlation_rows(found, slice_=slice_, ci_level=ci_level, resamples=resamples, seed=seed, judge=name)
            )
    return pd.concat(parts, ignore_index=True) if parts else frame([])
