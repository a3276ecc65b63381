"""What people found who judged some verdicts again, or that nobody has done so yet."""

from __future__ import annotations

from typing import Any

import pandas as pd

from judgelab.measure.spot_check import spot_check_agreement
from judgelab.report.expert_sentences import spot_check_sentences
from judgelab.report.sentences import Sentences

__all__ = ["spot_check_result"]


def spot_check_result(key: pd.DataFrame, labels: pd.DataFrame | None, rule: Any, *, ci_level: float) -> Sentences:
    """The spot check in sentences.

    Parameters
    ----------
    key
        The key of the sheet, see :func:`judgelab.measure.spot_check.spot_check_sample`.
    labels
        What people chose, or None: the sheet has not come back.
    rule
        The protocol's ``ranking.spot_check``: size and threshold.
    ci_level
        Coverage of the interval.
    """
    if key.empty:
        return Sentences(
            [
                "Spot check: there is no verdict whose answers are here, so that none can be judged again "
                "(n = 0 verdicts): too little data."
            ]
        )
    rows = None
    if labels is not None:
        rows = spot_check_agreement(key, labels, threshold=rule.threshold, ci_level=ci_level, judge="panel")
    return spot_check_sentences(rows, size=len(key), threshold=rule.threshold, sheet="in spot_check.csv")
