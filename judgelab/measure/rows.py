"""The one shape in which every statistic is returned.

A row says what a number is of (``judge``, ``strategy``, ``pass``, ``slice``), which ``measure`` it is, the
``estimate`` with its interval, ``numerator`` and ``denominator`` where it is a rate, how many items were used and
left out, by which ``method``, and in ``note`` why a value is undefined or when not to trust it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["COLUMNS", "frame", "joined", "row"]

COLUMNS = (
    "judge",
    "strategy",
    "pass",
    "slice",
    "measure",
    "estimate",
    "ci_low",
    "ci_high",
    "ci_level",
    "numerator",
    "denominator",
    "n_used",
    "n_excluded",
    "method",
    "note",
)

NAN = float("nan")


def row(
    measure: str,
    estimate: float,
    *,
    judge: str = "",
    strategy: str = "",
    pass_: str = "",
    slice_: str = "all",
    interval: tuple[float, float] = (NAN, NAN),
    ci_level: float = NAN,
    numerator: float | None = None,
    denominator: float | None = None,
    n_used: int,
    n_excluded: int = 0,
    method: str = "",
    note: str = "",
) -> dict[str, Any]:
    """One row of the shape :data:`COLUMNS`. An undefined estimate must say why.

    Raises
    ------
    ValueError
        If the estimate is not a number and ``note`` is empty.
    """
    if not math.isfinite(estimate) and not note:
        raise ValueError(f"{measure}: an undefined estimate needs a note that says why")
    return {
        "judge": judge,
        "strategy": strategy,
        "pass": pass_,
        "slice": slice_,
        "measure": measure,
        "estimate": float(estimate),
        "ci_low": float(interval[0]),
        "ci_high": float(interval[1]),
        "ci_level": float(ci_level),
        "numerator": numerator,
        "denominator": denominator,
        "n_used": int(n_used),
        "n_excluded": int(n_excluded),
        "method": method,
        "note": note,
    }


def joined(*parts: str) -> str:
    """The parts of a note or method that are not empty, separated by ``; ``."""
    return "; ".join(part for part in parts if part)


def frame(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a table with the columns :data:`COLUMNS`, counts as nullable integers, text never missing."""
    table = pd.DataFrame(list(rows), columns=list(COLUMNS))
    for column in ("estimate", "ci_low", "ci_high", "ci_level"):
        table[column] = table[column].astype(np.float64)
    for column in ("numerator", "denominator", "n_used", "n_excluded"):
        table[column] = table[column].astype("Int64")
    return table
