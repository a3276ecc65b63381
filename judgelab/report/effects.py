"""Effects that are 0 where nothing is wrong: as text with a sign, and what their interval and test say."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from judgelab.report.words import interval_text, number_text, p_text, percent, plural, reason_text

__all__ = ["WAYS", "caution", "effect_text", "left_open", "meaning", "passes_told"]

WAYS = {
    "direct": "direct",
    "both": "pairwise, both passes",
    "original": "pairwise, original",
    "swapped": "pairwise, swapped",
}
"""Passes as people say them."""


def effect_text(row: pd.Series | None, p: pd.Series | None = None, *, p_name: str = "", more: str = "") -> str:
    """``+0.150 (95 % interval [0.020, 0.280], n = 40 items, p = 0.021)``, or why there is no value.

    Parameters
    ----------
    row
        The row of the effect; None if it was not measured.
    p
        The row of its test; left out where there is none. An undefined test is named with its reason.
    p_name
        Word before the p-value, for instance "Holm".
    more
        What stands behind the number of items.
    """
    if row is None:
        return "not measured (n = 0 items)"
    n = plural(row["n_used"], "item")
    value = float(row["estimate"])
    if math.isnan(value):
        return f"undefined (n = {n}: {reason_text(row)})"
    bounds = interval_text(row)
    told = ["no interval" if bounds == "none" else f"{percent(float(row['ci_level']))} interval {bounds}", f"n = {n}"]
    told += [more] if more else []
    if p is not None:
        before = f"{p_name} " if p_name else ""
        told.append(f"no test: {_first(p)}" if pd.isna(p["estimate"]) else before + p_text(float(p["estimate"])))
    return f"{_signed(value)} ({', '.join(told)})"


def meaning(
    row: pd.Series | None,
    p: pd.Series | None,
    *,
    above: str,
    below: str,
    minimum_items: int = 1,
    null: float = 0.0,
    what: str = "bias",
    unit: str = "",
) -> str:
    """What an effect's interval and test say, as the second half of a sentence.

    Parameters
    ----------
    row, p
        The rows of the effect and of its test; None if there is none.
    above, below
        What an effect above or below ``null`` means.
    minimum_items
        The fewest items on which something is concluded.
    null
        The value without an effect.
    what, unit
        What does not show if the interval holds ``null``; the unit of the effect.

    Returns
    -------
    str
        ``above`` or ``below`` with "found", if the whole interval lies on that side and p, where it is known, is below
        1 − level; that nothing shows, with the furthest bound, if neither is so; "undecided" if only one is so or
        there is no interval; "too little data" without an estimate or with fewer than ``minimum_items``. With the
        row's :func:`caution` at the end.
    """
    if row is None or pd.isna(row["estimate"]):
        return "there is no value: too little data"
    if (n := int(row["n_used"])) < max(1, minimum_items):
        return (
            f"with n = {plural(n, 'item')} of the {minimum_items} that the protocol requires, nothing is concluded: "
            "too little data"
        )
    if interval_text(row) == "none":
        return "without an interval nothing is concluded: undecided"
    low, high, level = float(row["ci_low"]), float(row["ci_high"]), float(row["ci_level"])
    outside = low > null or high < null
    tested = p is not None and pd.notna(p["estimate"])
    small = tested and p is not None and float(p["estimate"]) < _alpha(level)
    side = "above" if low > null else "below"
    at = "0" if null == 0 else number_text(null)
    if outside and (small or not tested):
        return f"{above if low > null else below} (the whole interval lies {side} {at}): found{caution(row)}"
    if outside or small:
        lies = f"lies {side}" if outside else "holds"
        says = p_text(float(p["estimate"])) if p is not None else ""
        return f"the interval {lies} {at}, but the test says {says}: undecided{caution(row)}"
    furthest = max(abs(low - null), abs(high - null))
    return (
        f"no {what} shows (the interval holds {at}), which is no proof that there is none: one of up to "
        f"{number_text(furthest)}{unit} remains compatible{caution(row)}"
    )


def left_open(row: pd.Series) -> float:
    """The size of the largest effect that a row's interval leaves open; NaN without an interval."""
    return max(abs(float(row["ci_low"])), abs(float(row["ci_high"])))


def caution(row: pd.Series | None) -> str:
    """What a note says against reading the row as it stands, as the end of a sentence; empty if nothing."""
    if row is None or pd.isna(row["estimate"]) or pd.isna(row["note"]):
        return ""
    parts = str(row["note"]).replace(", see docs/coverage.md", "").split("; ")
    told = [part for part in parts if "stands for" in part or "may cover less" in part]
    return f"; caution: {'; '.join(told)}" if told else ""


def passes_told(rows: pd.DataFrame, measure: str) -> list[str]:
    """The passes of a measure to speak of: direct, and of the pairwise ones both, or else the one that ran."""
    there = set(rows.loc[rows["measure"] == measure, "pass"])
    pairwise = [name for name in ("both", "original", "swapped") if name in there]
    return [*(["direct"] if "direct" in there else []), *pairwise[:1]]


def _first(row: Any) -> str:
    """The reason of an undefined row without what was left out."""
    return reason_text(row).split(";")[0]


def _signed(value: float) -> str:
    text = number_text(value)
    return f"+{text}" if value > 0 and float(text) != 0 else text


def _alpha(level: float) -> float:
    """1 − level without the rounding of binary numbers; 0.05 where no level is stated."""
    return round(1 - level, 12) if math.isfinite(level) else 0.05
