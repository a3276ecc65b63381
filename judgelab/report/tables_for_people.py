"""Rows of the one shape as small tables that people read: text, three digits, never without the denominator."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from judgelab.report.picking import one
from judgelab.report.sentences import Sentences
from judgelab.report.words import interval_text, number_text, reason_text, slice_text

__all__ = ["cell", "dashed", "headline", "result_table", "table_or"]

KEYS = ("judge", "strategy", "pass", "slice", "measure")


def table_or(table: pd.DataFrame, otherwise: str) -> pd.DataFrame | Sentences:
    """A table, or a sentence in the place of one without rows."""
    return table if len(table) else Sentences([otherwise])


def dashed(table: pd.DataFrame) -> pd.DataFrame:
    """The same table with a dash for every value that is missing, as on the leaderboard.

    >>> dashed(pd.DataFrame({"system": ["a", "b"], "win_rate": [0.5, None]}))["win_rate"].tolist()
    [0.5, '-']
    """
    missing = [str(name) for name in table if table[name].isna().any()]
    return table.assign(**{name: table[name].astype(object).where(table[name].notna(), "-") for name in missing})


def headline(rows: pd.DataFrame, *, keys: Sequence[str] | None = None, limit: int | None = None) -> pd.DataFrame:
    """Rows as text: the estimate with what it is counted from, its interval, and its n.

    Parameters
    ----------
    rows
        Rows of the one shape.
    keys
        Columns kept before the numbers; default: those of judge, strategy, pass, slice and measure that vary or
        say something, and always the measure.
    limit
        The most rows shown; the last row then says how many are left out.

    Returns
    -------
    pandas.DataFrame
        The keys, then ``estimate`` (``21/25 = 0.840``, or ``undefined (0/0): reason``), ``interval`` with its level in
        the column's name (``95 % interval``: ``[0.653, 0.936]``) and ``n``; all text, index 1, 2, ...
    """
    kept = list(keys) if keys is not None else _telling(rows)
    shown = rows if limit is None else rows.head(limit)
    table = shown[kept].astype(object).reset_index(drop=True)
    if "slice" in table:
        table["slice"] = [slice_text(name) for name in table["slice"]]
    table["estimate"] = [_estimate(row) for _, row in shown.iterrows()]
    table[_interval_name(rows)] = [interval_text(row) for _, row in shown.iterrows()]
    table["n"] = [_n(row) for _, row in shown.iterrows()]
    if len(shown) < len(rows):
        more = dict.fromkeys(table.columns, "") | {table.columns[0]: f"… {len(rows) - len(shown)} more rows"}
        table = pd.concat([table, pd.DataFrame([more])], ignore_index=True)
    table.index = pd.RangeIndex(1, len(table) + 1)
    return table


def result_table(
    agreement: pd.DataFrame,
    position: pd.DataFrame,
    unusable: pd.DataFrame,
    *,
    judge: str,
    pass_: str = "original",
) -> pd.DataFrame:
    """The protocol's result table of one judge: what was measured, for direct scoring and for pairwise comparison.

    Parameters
    ----------
    agreement, position, unusable
        Rows of the one shape.
    judge
        The judge.
    pass_
        The pairwise pass that stands for the strategy's agreement: ``original`` (the protocol's), ``swapped`` or
        ``aggregated``.

    Returns
    -------
    pandas.DataFrame
        Index: valid items, exact human agreement, Cohen's kappa, tie rate, invalid-output rate (pairwise: of the
        original pass; the swapped pass has a line of its own), swap consistency.
        Columns: ``direct`` and ``pairwise``, text with numerator, denominator and interval.
    """
    table = pd.DataFrame(index=pd.Index(_LINES, name=judge), columns=["direct", "pairwise"], dtype=object)
    for strategy, own in (("direct", "direct"), ("pairwise", pass_)):
        where = {"judge": judge, "strategy": strategy, "slice_": "all"}
        exact = one(agreement, measure="exact_agreement", pass_=own, **where)
        cells = [
            _valid(exact),
            cell(exact),
            cell(one(agreement, measure="cohen_kappa", pass_=own, **where)),
            cell(one(agreement, measure="tie_rate", pass_=own, **where)),
            *_unusable_cells(unusable, judge, strategy),
            "not the primary test" if strategy == "direct" else cell(_swap_row(position, judge)),
        ]
        table[strategy] = cells
    return table


_LINES = [
    "Valid items",
    "Exact human agreement",
    "Cohen's kappa",
    "Tie rate",
    "Invalid-output rate",
    "Invalid-output rate, swapped pass",
    "Swap consistency",
]


def cell(row: pd.Series | None, *, between: str = ", ") -> str:
    """One value with its interval and denominator in one cell: ``21/25 = 0.840, 95 % [0.653, 0.936]``."""
    if row is None:
        return "not measured"
    text = _estimate(row)
    if pd.isna(row["estimate"]):
        return text
    level = f"{100 * float(row['ci_level']):.3g} % " if math.isfinite(float(row["ci_level"])) else ""
    bounds = interval_text(row)
    n = "" if pd.notna(row["denominator"]) else f", n = {int(row['n_used'])}"
    return f"{text}{between}{'no interval' if bounds == 'none' else level + bounds}{n}"


def _estimate(row: pd.Series) -> str:
    rate = pd.notna(row["numerator"]) and pd.notna(row["denominator"])
    counted = f"{int(row['numerator'])}/{int(row['denominator'])}" if rate else ""
    if pd.isna(row["estimate"]):
        return f"undefined ({counted or 'n = ' + str(int(row['n_used']))}): {reason_text(row)}"
    number = number_text(float(row["estimate"]))
    return f"{counted} = {number}" if counted else number


def _n(row: pd.Series) -> str:
    left = row["n_excluded"]
    return f"{int(row['n_used'])}" + (f" ({int(left)} left out)" if pd.notna(left) and int(left) else "")


def _valid(row: pd.Series | None) -> str:
    if row is None:
        return "not measured"
    left = 0 if pd.isna(row["n_excluded"]) else int(row["n_excluded"])
    return f"{int(row['n_used'])} of {int(row['n_used']) + left}"


def _unusable_cells(unusable: pd.DataFrame, judge: str, strategy: str) -> tuple[str, str]:
    """The rate of the strategy's first pass, and of its swapped pass if it has one."""
    where = {"judge": judge, "strategy": strategy, "measure": "unusable_rate", "slice_": "all"}
    if strategy == "direct":
        return cell(one(unusable, pass_="direct", **where)), "no swapped pass"
    return cell(one(unusable, pass_="original", **where)), cell(one(unusable, pass_="swapped", **where))


def _swap_row(position: pd.DataFrame, judge: str) -> pd.Series | None:
    return one(position, judge=judge, measure="swap_consistency", slice_="all")


def _interval_name(rows: pd.DataFrame) -> str:
    levels = sorted(set(rows["ci_level"].dropna()))
    return f"{100 * levels[0]:.3g} % interval" if len(levels) == 1 else "interval"


def _telling(rows: pd.DataFrame) -> list[str]:
    """Keys that vary, or that have one value which says something; the slice "all" alone says nothing."""
    kept = []
    for key in KEYS:
        values = set(rows[key].astype(str))
        if key == "measure" or len(values) > 1 or (values - {"", "all"}):
            kept.append(key)
    return kept
