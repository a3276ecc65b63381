"""Single answers: from pairs of answers to one row an answer, with both scores."""

from __future__ import annotations

import pandas as pd

from judgelab.measure.coding import check_columns

__all__ = ["answers_of", "check_score_columns"]


def check_score_columns(normalized: pd.DataFrame) -> None:
    """Refuse a normalized table without the columns of direct scores.

    Raises
    ------
    ValueError
        Naming the missing columns.
    """
    needed = ["judge", "item_id", "planned_direct"]
    needed += [f"{name}_{side}" for name in ("system", "total", "human_score") for side in "xy"]
    check_columns(normalized, needed, "normalized")


def answers_of(pairs: pd.DataFrame) -> pd.DataFrame:
    """One row an answer (item, system) of one judge's pairs: the mean human score and the judge's total.

    An answer stands in several pairs where there are more than two systems; its scores are averaged over them.

    Parameters
    ----------
    pairs : DataFrame
        Rows of one judge, see :func:`judgelab.measure.preferences.normalize`.

    Returns
    -------
    DataFrame
        item_id, system, human, judge; NaN where there is no score.
    """
    sides = []
    for side in "xy":
        names = {f"system_{side}": "system", f"human_score_{side}": "human", f"total_{side}": "judge"}
        one = pairs[["item_id", *names]].rename(columns=names)
        sides.append(one.assign(system=one["system"].astype(object)))
    stacked = pd.concat(sides, ignore_index=True)
    stacked[["human", "judge"]] = stacked[["human", "judge"]].apply(pd.to_numeric).astype(float)
    return stacked.groupby(["item_id", "system"], sort=False, as_index=False)[["human", "judge"]].mean()
