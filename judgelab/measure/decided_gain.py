"""Agreement on what each of two ways of judging decides: what a rule that abstains wins by deciding less."""

from __future__ import annotations

from typing import Any

import numpy as np

from judgelab.measure.carriers import carriers
from judgelab.measure.estimates import Place, Settings, interval_of
from judgelab.measure.resampling import Floats, Ints, ItemTable, bootstrap
from judgelab.measure.rows import joined
from judgelab.measure.views import Flags

__all__ = ["decided_gain_row"]


def decided_gain_row(
    measure: str,
    place: Place,
    items: Ints,
    right: tuple[Floats, Floats],
    decided: tuple[Flags, Flags],
    *,
    than: str,
    settings: Settings,
    note: str = "",
    reason: str = "",
) -> dict[str, Any]:
    """Share right of what the repaired judge decides minus share right of what its baseline decides.

    A gain on the pairs that both decide is 0 by construction for a rule that keeps the plain decision or abstains;
    this one is not. It says nothing of the pairs that are left undecided: read it with the coverage.

    Parameters
    ----------
    items : array of shape (n,)
        Item of each pair.
    right, decided : pairs of arrays of shape (n,)
        Success (1) or failure (0), and whether there is a decision on a labelled pair: of the repaired judge, and of
        its baseline.
    than, reason : str
        Name of the baseline; why there is nothing to compare, if that is known.

    Returns
    -------
    dict
        A row with the difference in [−1, 1] and its bootstrap interval over items, in which both shares of an item
        stay together. Undefined where either decides nothing.

    Examples
    --------
    Plainly 2 of 4 are right; the rule abstains from two pairs that were wrong.

    >>> plain, all_, two = np.array([1.0, 1, 0, 0]), np.ones(4, dtype=bool), np.array([True, True, False, False])
    >>> settings = Settings(0.95, 100, 1)
    >>> row = decided_gain_row("g", Place(), np.arange(4), (plain, plain), (two, all_), than="plain", settings=settings)
    >>> row["estimate"]
    0.5
    """
    n_items = len(np.unique(items[decided[0] | decided[1]]))
    common = {"n_used": n_items, "n_excluded": len(np.unique(items)) - n_items, "ci_level": settings.ci_level}
    if reason or not (decided[0].any() and decided[1].any()):
        why = reason or "undefined: one of the two decides no labelled pair"
        return place.row(measure, float("nan"), note=joined(why, note), **common)
    features = np.column_stack([part for one, made in zip(right, decided, strict=True) for part in (one * made, made)])
    table = ItemTable.of(items, features.astype(np.float64))
    estimate = float(_difference(table.totals)[0, 0])
    values = bootstrap(table, _difference, resamples=settings.resamples, rng=place.rng(measure, settings))[0]
    counts = [int(made.sum()) for made in decided]
    what = f"share right of {counts[0]} decided pairs minus share right of the {counts[1]} that {than} decides"
    few = float(carriers(table, _difference)[0])
    made = interval_of(values, estimate, n_items, "difference", settings, f"{what}, {settings.method}", few)
    made["note"] = joined(made["note"], note)
    return place.row(measure, estimate, **made, **common)


def _difference(totals: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return (totals[:, 0] / totals[:, 1] - totals[:, 2] / totals[:, 3])[np.newaxis, :]
