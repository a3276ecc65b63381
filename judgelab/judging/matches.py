"""What every ranking starts from: a run's pairwise verdicts as matches between systems, and its listwise rankings."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pandas as pd

from judgelab.judging.evidence import settled_calls, verdicts
from judgelab.judging.listwise import listwise_plans
from judgelab.judging.wording import LETTERS
from judgelab.study.protocol import TIE
from judgelab.study.run import Run

__all__ = ["COLUMNS", "listwise_rankings", "matches_of"]

COLUMNS = [
    *("judge", "item_id", "category", "pass", "system_x", "system_y", "first", "preference", "reason"),
    *("words_x", "words_y"),
]
RANKING_COLUMNS = ["judge", "item_id", "category", "order", "presented", "ranking", "reason"]


def matches_of(run: Run, judges: Sequence[str] | None = None) -> pd.DataFrame:
    """One row per pairwise verdict that was planned, of some judges or of all.

    Columns: judge, item_id, category, pass (``original``, ``swapped``), system_x and system_y (in the protocol's
    order), first (the one that was shown first), preference (a system's name, ``TIE``, or NaN), reason (why there is no
    preference, or empty), words_x and words_y (of the two answers).
    """
    table = verdicts(run)
    table = table[(table["strategy"] == "pairwise") & (True if judges is None else table["judge"].isin(judges))]
    words = run.comparisons().set_index(["item_id", "system_x", "system_y"])[["words_x", "words_y"]]
    table = table.join(words, on=["item_id", "system_x", "system_y"])
    winner = np.select(
        [table["verdict"] == "A", table["verdict"] == "B", table["verdict"] == TIE],
        [table["first"].astype(object), table["second"].astype(object), TIE],
        default=np.nan,
    )
    table["preference"] = pd.Series(winner, index=table.index, dtype=object)
    table["reason"] = table["reason"].where(table["preference"].isna(), "").fillna("")
    return table[COLUMNS].reset_index(drop=True)


def listwise_rankings(run: Run) -> pd.DataFrame:
    """One row per listwise call.

    Columns: judge, item_id, category, order (``order-1``), presented (tuple of the systems as they were shown), ranking
    (tuple of systems, best first; NaN where there is none), reason (why there is none, or empty).
    """
    rows = []
    for planned, found, _ in settled_calls(run, listwise_plans(run.study)):
        call = planned.call
        text = found["verdict"] if found else None
        letters = json.loads(text)["ranking"] if isinstance(text, str) else None
        by_letter = dict(zip(LETTERS, call.presentation, strict=False))
        ranking = tuple(by_letter[letter] for letter in letters) if letters else float("nan")
        reason = "" if letters else (found["reason"] if found and isinstance(found["reason"], str) else "not_judged")
        place = (planned.key.judge, call.item.item_id, call.item.category, call.pass_, call.presentation)
        rows.append((*place, ranking, reason))
    table = pd.DataFrame(rows, columns=RANKING_COLUMNS)
    table["ranking"] = table["ranking"].astype(object)
    return table.sort_values(["judge", "item_id", "order"], kind="stable").reset_index(drop=True)
