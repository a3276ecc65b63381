"""Labels as integer codes, with unknown labels refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["TIE", "check_columns", "encode", "excluded_note"]

TIE = "TIE"


def check_columns(table: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    """Refuse a table that lacks a column.

    Raises
    ------
    ValueError
        Naming the missing columns.
    """
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise ValueError(f"{what}: missing column {', '.join(missing)}")


def encode(values: pd.Series, labels: Sequence[str], what: str) -> NDArray[np.int64]:
    """Position of each value among ``labels``; −1 where the value is missing.

    Raises
    ------
    ValueError
        If a value is neither missing nor one of ``labels``.
    """
    codes = pd.Index(list(labels), dtype=object).get_indexer(pd.Index(values, dtype=object)).astype(np.int64)
    unknown = (codes < 0) & values.notna().to_numpy()
    if unknown.any():
        first = values.to_numpy()[unknown][0]
        raise ValueError(
            f"{what}: {int(unknown.sum())} of {len(values)} labels are not allowed, first {first!r}; "
            f"allowed are {', '.join(labels)}"
        )
    return codes


def excluded_note(total: int, unit: str, **reasons: int) -> str:
    """``3 of 100 items left out: 1 no reference, 2 no usable verdict``; empty if nothing was left out."""
    named = [f"{count} {reason.replace('_', ' ')}" for reason, count in reasons.items() if count]
    left_out = sum(reasons.values())
    return f"{left_out} of {total} {unit} left out: {', '.join(named)}" if named else ""
