"""Does a judge do worse in some category? Each against the rest, with Holm's correction over the categories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import fisher_exact

from judgelab.measure.differences import newcombe_separate
from judgelab.measure.estimates import Settings, table_row
from judgelab.measure.multiplicity import holm
from judgelab.measure.resampling import Floats, ItemTable
from judgelab.measure.views import View

__all__ = ["gap_rows"]

NAN = float("nan")
GAP = "exact_agreement_gap"


def gap_rows(view: View, matches: Floats, settings: Settings) -> Iterator[dict[str, Any]]:
    """For each category, exact agreement in it minus agreement in all the others, and whether that is more than chance.

    The gap lies between −1 and 1; below 0 the judge does worse in the category. Judgments without a category are
    among the others.

    Parameters
    ----------
    view : View
        The judgments of one judge and pass; none or one category gives no row.
    matches : array of shape (n,)
        1 right, 0 wrong, NaN not counted.

    Returns
    -------
    iterator of dict
        Slices ``category=<c>``: ``exact_agreement_gap`` with its interval (Newcombe's for independent samples; the
        bootstrap where an item has several judgments), ``exact_agreement_gap_p`` (Fisher's exact test, two-sided; not
        given where an item has several judgments) and ``exact_agreement_gap_p_holm`` (adjusted over the categories of
        this judge and pass for which there is a test; their number stands in ``method``).

    Notes
    -----
    With many categories one of them looks bad by chance: only the adjusted p-value says more than that. With two,
    both are the same test, and the adjusted p-value is twice what it need be. Sources: Newcombe, "Interval estimation
    for the difference between independent proportions", 1998, method 10; Fisher, *The Design of Experiments*, 1935,
    chapter 2; Holm, "A simple sequentially rejective multiple test procedure", 1979. Checked against scipy and
    statsmodels.
    """
    parts = list(view.by_category())
    names = pd.unique(pd.Series(view.category, dtype=object).dropna())
    counted = ~np.isnan(matches)
    if len(parts) < 2:
        return
    alone = len(np.unique(view.items[counted])) == int(counted.sum())
    n_used = len(np.unique(view.items[counted]))
    common: dict[str, Any] = {"n_used": n_used, "n_excluded": len(np.unique(view.items)) - n_used}
    p_values = []
    for part, name in zip(parts, names, strict=True):
        inside = (view.category == name) & counted
        outside = counted & ~inside
        right = (int(matches[inside].sum()), int(matches[outside].sum()))
        total = (int(inside.sum()), int(outside.sum()))
        yield _gap_row(view, part, matches, inside, outside, right, total, alone, settings)
        table = [[right[k], total[k] - right[k]] for k in range(2)]
        p_values.append(float(fisher_exact(table).pvalue) if alone and min(total) > 0 else NAN)
    adjusted = holm(p_values)
    tests = int(np.isfinite(p_values).sum())
    reason = f"undefined: {'no judgment to compare' if alone else 'items have several judgments'}"
    for part, p, corrected in zip(parts, p_values, adjusted, strict=True):
        common["note"] = "" if np.isfinite(p) else reason
        yield part.place.row(f"{GAP}_p", p, method="Fisher's exact test, two-sided", **common)
        method = f"Fisher's exact test, two-sided, Holm over {tests} categories"
        yield part.place.row(f"{GAP}_p_holm", float(corrected), method=method, **common)


def _gap_row(
    view: View,
    part: View,
    matches: Floats,
    inside: Any,
    outside: Any,
    right: tuple[int, int],
    total: tuple[int, int],
    alone: bool,
    settings: Settings,
) -> dict[str, Any]:
    used = inside | outside
    n_items = len(np.unique(view.items[used]))
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = len(np.unique(view.items)) - n_items
    if min(total) == 0:
        side = "in the category" if total[0] == 0 else "outside the category"
        return part.place.row(GAP, NAN, note=f"undefined: no judgment {side}", **common)
    counts = f"{right[0]}/{total[0]} in it, {right[1]}/{total[1]} in the others"
    if alone:
        interval = newcombe_separate(right, total, settings.ci_level)
        estimate = right[0] / total[0] - right[1] / total[1]
        method = "in the category minus in the others, Newcombe's hybrid score interval"
        return part.place.row(GAP, estimate, interval=interval, method=method, note=counts, **common)
    features = np.column_stack([np.where(inside, matches, 0), inside, np.where(outside, matches, 0), outside])
    return table_row(
        GAP,
        part.place,
        ItemTable.of(view.items[used], features[used].astype(np.float64)),
        _gap_of,
        settings=settings,
        note=counts,
        undefined="no judgment to compare",
        method="in the category minus in the others",
        **common,
    )


def _gap_of(totals: Floats) -> Floats:
    shares = []
    for k in (0, 2):
        share = np.full(len(totals), NAN)
        np.divide(totals[:, k], totals[:, k + 1], out=share, where=totals[:, k + 1] > 0)
        shares.append(share)
    return (shares[0] - shares[1])[np.newaxis, :]
