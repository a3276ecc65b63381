"""Finding rows in a table of the one shape."""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = ["judges_of", "one", "rows_of"]


def rows_of(table: pd.DataFrame, **what: Any) -> pd.DataFrame:
    """The rows whose columns have the given values. ``pass_`` and ``slice_`` stand for ``pass`` and ``slice``.

    A tuple or list stands for any of its values.
    """
    chosen = table
    for name, value in what.items():
        column = chosen[name.removesuffix("_")]
        chosen = chosen[column.isin(value) if isinstance(value, tuple | list) else column == value]
    return chosen


def one(table: pd.DataFrame, **what: Any) -> pd.Series | None:
    """The first row with the given values, or None."""
    found = rows_of(table, **what)
    return None if found.empty else found.iloc[0]


def judges_of(*tables: pd.DataFrame) -> list[str]:
    """The judges of some tables, each once, in the order in which they come."""
    names = (str(name) for table in tables if not table.empty for name in table["judge"] if str(name))
    return list(dict.fromkeys(names))
