"""Which answers people accept: by their scores, or by their preferences where they gave no scores."""

from __future__ import annotations

import numpy as np
import pandas as pd

from judgelab.measure.answers import answers_of
from judgelab.measure.coding import TIE
from judgelab.measure.resampling import Floats

__all__ = ["acceptance_of", "preferred_answers", "scored_by_people"]

NAN = float("nan")
TOLERANCE = 1e-9  # weighted totals such as 4.2 have no exact binary form


def scored_by_people(normalized: pd.DataFrame) -> bool:
    """Whether people scored any answer.

    Parameters
    ----------
    normalized : DataFrame
        human_score_x, human_score_y, see :func:`judgelab.measure.preferences.normalize`.
    """
    return bool(normalized[["human_score_x", "human_score_y"]].notna().to_numpy().any())


def preferred_answers(pairs: pd.DataFrame, what: str = "normalized") -> Floats:
    """Acceptance of each answer by people's preferences, in the order of ``answers_of(pairs)``.

    That suits data such as LLMBar, where one of two answers is right and the other wrong; elsewhere a preferred answer
    need not be a good one.

    Parameters
    ----------
    pairs : DataFrame
        Rows of one judge, see :func:`judgelab.measure.preferences.normalize`.
    what : str
        What an error calls the table.

    Returns
    -------
    array of shape (n,)
        1 where an answer is preferred in all its labelled pairs, 0 where the other one is in all, NaN with a tie, some
        of each, or no label.

    Raises
    ------
    ValueError
        If a preference is neither for one of the pair nor a tie.

    Examples
    --------
    C wins both its pairs, A loses both; B wins one and loses one.

    >>> pairs = pd.DataFrame({"item_id": "i", "system_x": ["A", "A", "B"], "system_y": ["B", "C", "C"],
    ...                       "human": ["B", "C", "C"], "total_x": NAN, "total_y": NAN})
    >>> answers_of(pairs.assign(human_score_x=NAN, human_score_y=NAN))["system"].tolist()
    ['A', 'B', 'C']
    >>> preferred_answers(pairs).tolist()
    [0.0, nan, 1.0]
    """
    human = pairs["human"].astype(object)
    x, y, tie = ((human == other).to_numpy(dtype=bool) for other in (pairs["system_x"], pairs["system_y"], TIE))
    wrong = human.notna().to_numpy() & ~x & ~y & ~tie
    if wrong.any():
        told = f"{int(wrong.sum())} human preferences are for neither of the pair, first {human[wrong].iloc[0]!r}"
        raise ValueError(f"{what}: {told}")
    won = np.where(x, 1.0, np.where(y, -1.0, np.where(tie, 0.0, NAN)))  # by the first of the pair
    mean = answers_of(pairs.assign(human_score_x=won, human_score_y=-won))["human"].to_numpy(dtype=np.float64)
    return np.where(mean == 1, 1.0, np.where(mean == -1, 0.0, NAN))


def acceptance_of(pairs: pd.DataFrame, threshold: float | None) -> pd.DataFrame:
    """One row an answer of one judge: its total, and whether people accept it.

    Parameters
    ----------
    pairs : DataFrame
        Rows of one judge, see :func:`judgelab.measure.preferences.normalize`.
    threshold : float or None
        Mean human score from which an answer counts as accepted (within 1e-9). Where people scored no answer of the
        table, or there is no threshold, their preferences stand in, see :func:`preferred_answers`.

    Returns
    -------
    DataFrame
        item_id, system, total (the judge's, NaN without one), accepted (1, 0, NaN where people do not say), in the
        order of ``answers_of(pairs)``.

    Raises
    ------
    ValueError
        If the threshold is not finite, or a preference that is needed is for neither of its pair.

    Examples
    --------
    >>> pairs = pd.DataFrame({"item_id": ["i"], "system_x": ["A"], "system_y": ["B"], "human": ["B"], "total_x": [3.0],
    ...                       "total_y": [4.5], "human_score_x": [NAN], "human_score_y": [NAN]})
    >>> acceptance_of(pairs, 4)[["system", "total", "accepted"]].to_numpy().tolist()
    [['A', 3.0, 0.0], ['B', 4.5, 1.0]]
    """
    if threshold is not None and not np.isfinite(threshold):
        raise ValueError(f"threshold is {threshold}; allowed is a finite number or None")
    answers = answers_of(pairs)
    if threshold is not None and scored_by_people(pairs):
        scores = answers["human"].to_numpy(dtype=np.float64)
        accepted = np.where(np.isnan(scores), NAN, (scores >= threshold - TOLERANCE).astype(float))
    else:
        accepted = preferred_answers(pairs)
    return answers.rename(columns={"judge": "total"})[["item_id", "system", "total"]].assign(accepted=accepted)
