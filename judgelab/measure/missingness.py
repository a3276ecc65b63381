"""How many calls gave no usable verdict, where and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import check_columns
from judgelab.measure.estimates import Place
from judgelab.measure.intervals import wilson
from judgelab.measure.rows import frame

__all__ = ["unusable_table"]

STATUSES = ("verdict", "unusable", "failed", "missing")


def unusable_table(verdicts: pd.DataFrame, *, ci_level: float) -> pd.DataFrame:
    """Calls without a usable verdict / planned calls, by judge, strategy and pass.

    Parameters
    ----------
    verdicts : DataFrame
        One row per planned call: judge, strategy, pass, item_id, category, system (direct), first (pairwise), status
        (verdict, unusable, failed, missing), reason. Every status but ``verdict`` counts.
    ci_level : float
        Coverage of the intervals.

    Returns
    -------
    DataFrame
        ``unusable_rate`` with the slices ``all``, ``system=<s>`` (pairwise: the system shown first),
        ``category=<c>``, and ``reason=<r>`` (numerator: calls unusable for that reason, or the status where no reason
        is given; the slices add up to ``all``). ``n_used`` counts calls.

        Wilson's interval. Calls of one item are not independent: where an item has several calls in a slice, the
        interval is that of the same rate in as many trials as there are items, which is wider. ``method`` says so.

    Raises
    ------
    ValueError
        If a column is missing or a status is unknown.
    """
    check_columns(verdicts, ["judge", "strategy", "pass", "item_id", "status"], "verdicts")
    unknown = sorted(set(verdicts["status"].dropna()) - set(STATUSES)) or (["no value"] * verdicts["status"].hasnans)
    if unknown:
        raise ValueError(f"verdicts: unknown status {unknown[0]!r}; allowed are {', '.join(STATUSES)}")
    lines: list[dict[str, Any]] = []
    for (judge, strategy, pass_), calls in verdicts.groupby(["judge", "strategy", "pass"], sort=False):
        lines += _rows(str(judge), str(strategy), str(pass_), calls, ci_level)
    return frame(lines)


def _rows(judge: str, strategy: str, pass_: str, calls: pd.DataFrame, level: float) -> Iterator[dict[str, Any]]:
    unusable = (calls["status"] != "verdict").to_numpy()
    items = pd.factorize(calls["item_id"])[0]

    def made(slice_: str, chosen: Any, counted: Any) -> dict[str, Any]:
        return _row(Place(judge, strategy, pass_, slice_), items[chosen], counted[chosen], level)

    every = np.ones(len(calls), dtype=bool)
    yield made("all", every, unusable)
    for prefix, column in (("system", "system" if strategy == "direct" else "first"), ("category", "category")):
        values = calls[column].astype(object).to_numpy() if column in calls else np.full(len(calls), np.nan)
        for value in pd.unique(pd.Series(values, dtype=object).dropna()):
            yield made(f"{prefix}={value}", values == value, unusable)
    given = calls["reason"].astype(object) if "reason" in calls else pd.Series(np.nan, calls.index, dtype=object)
    reasons = given.where(given.notna(), calls["status"].astype(object)).to_numpy()
    for reason in sorted({str(value) for value in reasons[unusable]}):
        yield made(f"reason={reason}", every, unusable & (reasons == reason))


def _row(place: Place, items: Any, unusable: Any, level: float) -> dict[str, Any]:
    n_calls, n_unusable, n_items = len(unusable), int(unusable.sum()), len(np.unique(items))
    rate = n_unusable / n_calls
    single = n_items == n_calls
    bounds = wilson(n_unusable, n_calls, level) if single else wilson(min(rate, 1.0) * n_items, n_items, level)
    return place.row(
        "unusable_rate",
        rate,
        interval=bounds,
        ci_level=level,
        numerator=n_unusable,
        denominator=n_calls,
        n_used=n_calls,
        method="Wilson" if single else "Wilson on the number of items (several calls an item)",
    )
