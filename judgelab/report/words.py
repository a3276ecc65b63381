"""Words and numbers as people read them: names of measures, counts, rates, levels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

__all__ = [
    "AXIS", "NAMES", "interval_text", "level_of", "listed", "natural", "number_text", "p_text", "percent", "plural",
    "rate_text", "reason_text", "slice_text",
]  # fmt: skip

AXIS = {
    "exact_agreement": "exact agreement with the reference (share of items)",
    "cohen_kappa": "Cohen's kappa with the reference (1 = perfect, 0 = chance)",
    "swap_consistency": "swap consistency (share of pairs)",
    "reversal_rate": "reversal rate (share of pairs without a tie)",
    "first_position_rate": "first-position rate (share of verdicts without a tie)",
    "tie_rate": "tie rate (share of valid verdicts)",
    "coverage": "coverage (share of pairs that the conservative rule decides)",
    "unusable_rate": "unusable rate (share of planned calls)",
}
NAMES = {
    "exact_agreement": "Exact agreement with the human reference",
    "cohen_kappa": "Cohen's kappa with the human reference",
    "swap_consistency": "Swap consistency",
    "reversal_rate": "Reversal rate",
    "first_position_rate": "First-position rate",
    "tie_rate": "Tie rate",
    "coverage": "Coverage of the conservative rule",
    "unusable_rate": "Unusable calls",
}


def natural(values: Iterable[Any]) -> list[str]:
    """Distinct values as text in the order in which they come."""
    return list(dict.fromkeys(str(value) for value in values))


def plural(count: float, one: str, many: str | None = None) -> str:
    """``1 item``, ``2 items``."""
    number = int(count)
    return f"{number} {one if number == 1 else many or one + 's'}"


def rate_text(row: Mapping[str, Any] | pd.Series) -> str:
    """``21/25`` for a rate, ``n = 25`` for anything else."""
    numerator, denominator = row.get("numerator"), row.get("denominator")
    if pd.notna(numerator) and pd.notna(denominator):
        return f"{int(numerator)}/{int(denominator)}"
    return f"n = {int(row['n_used'])}"


def percent(level: float) -> str:
    """A level as ``95 %``."""
    return f"{100 * level:.3g} %" if math.isfinite(level) else "stated"


def level_of(table: pd.DataFrame) -> str:
    """The interval level of a table for a caption."""
    levels = sorted(set(table["ci_level"].dropna())) if "ci_level" in table else []
    return percent(levels[0]) if len(levels) == 1 else "stated"


def number_text(value: float, digits: int = 3) -> str:
    """A number with three digits after the point, never as ``-0.000``."""
    if not math.isfinite(value):
        return "undefined"
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def p_text(value: float) -> str:
    """A p-value as ``p = 0.031``, or ``p < 0.001``."""
    return "p < 0.001" if value < 0.001 else f"p = {number_text(value)}"


def interval_text(row: Mapping[str, Any] | pd.Series) -> str:
    """An interval as ``[0.653, 0.936]``, or that there is none."""
    low, high = float(row["ci_low"]), float(row["ci_high"])
    if not (math.isfinite(low) and math.isfinite(high)):
        return "none"
    return f"[{number_text(low)}, {number_text(high)}]"


def listed(parts: Iterable[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    words = list(parts)
    return " and ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} and {words[-1]}"


def reason_text(row: Mapping[str, Any] | pd.Series) -> str:
    """Why a value is undefined, from its note."""
    return str(row["note"]).removeprefix("undefined:").strip() or "no reason given"


def slice_text(name: str) -> str:
    """A slice as people say it: ``category=billing`` is "billing", ``reviewers=r01,r02`` is "r01 and r02"."""
    if str(name).startswith("accept>="):
        return f"accepted from {str(name).removeprefix('accept>=')}"
    kind, _, value = str(name).partition("=")
    if not value:
        return "all" if kind in ("all", "") else kind
    return " and ".join(value.split(",")) if kind == "reviewers" else value
