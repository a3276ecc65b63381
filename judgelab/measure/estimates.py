"""From judgments to one row with its interval: rates, kappas, means and differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from judgelab.measure.carriers import carriers, few_carriers
from judgelab.measure.intervals import wilson
from judgelab.measure.resampling import (
    Contingency,
    Floats,
    Ints,
    ItemTable,
    bootstrap,
    generator,
    percentile_interval,
    rater_kappa,
)
from judgelab.measure.rows import joined, row

__all__ = ["Kind", "Place", "Settings", "interval_of", "kappa_row", "mean_row", "rate_row", "table_row"]

NAN = float("nan")
ROUNDING = 1e-12  # values that differ by less differ by the rounding of their sums
Kind = Literal["rate", "coefficient", "difference"]


@dataclass(frozen=True)
class Settings:
    """How intervals are made: coverage, number of bootstrap resamples, the protocol's seed."""

    ci_level: float
    resamples: int
    seed: int

    def __post_init__(self) -> None:
        if not 0 < self.ci_level < 1:
            raise ValueError(f"ci_level is {self.ci_level}; allowed is above 0 and below 1")
        if self.resamples < 1:
            raise ValueError(f"resamples is {self.resamples}; allowed is 1 and more")

    @property
    def method(self) -> str:
        """What a row's method says of its bootstrap."""
        return f"percentile bootstrap over items, {self.resamples} resamples, seed {self.seed}"


@dataclass(frozen=True)
class Place:
    """What a row is of."""

    judge: str = ""
    strategy: str = ""
    pass_: str = ""
    slice_: str = "all"

    def rng(self, measure: str, settings: Settings) -> np.random.Generator:
        """The random numbers of one measure in this place."""
        return generator(settings.seed, measure, self.judge, self.strategy, self.pass_, self.slice_)

    def row(self, measure: str, estimate: float, **values: Any) -> dict[str, Any]:
        """A row of this place."""
        return row(
            measure, estimate, judge=self.judge, strategy=self.strategy, pass_=self.pass_, slice_=self.slice_, **values
        )


def interval_of(
    values: Floats,
    estimate: float,
    n_items: int,
    kind: Kind,
    settings: Settings,
    method: str = "",
    carrying: float = NAN,
) -> dict[str, Any]:
    """The interval of bootstrap values and what must be said about it: ``interval``, ``method``, ``note``.

    Resamples that are all equal say nothing about the uncertainty. A rate then gets an interval from Wilson's on the
    number of items (see :func:`_unvarying_rate`); a coefficient gets none; a difference keeps [d, d], with a note.
    ``carrying`` is the number of :func:`~judgelab.measure.carriers.carriers`: few of them give a warning.
    """
    method = method or settings.method
    if n_items < 2:
        return {"interval": (NAN, NAN), "method": method, "note": f"no interval: {n_items} item"}
    low, high, note = percentile_interval(values, settings.ci_level)
    if np.isnan(low) or float(np.nanmax(values) - np.nanmin(values)) > ROUNDING * max(1.0, abs(estimate)):
        warning = "" if np.isnan(low) else few_carriers(carrying)
        return {"interval": (low, high), "method": method, "note": joined(note, warning)}
    same = "every resample gives the same value"
    if kind == "rate":
        text = f"{same}; interval from the share of items that may differ unseen"
        bounds = _unvarying_rate(estimate, n_items, settings.ci_level)
        return {"interval": bounds, "method": "Wilson on the number of items", "note": joined(note, text)}
    if kind == "difference":
        text = "no item separates the two: the interval is a point"
        return {"interval": (low, high), "method": method, "note": joined(note, text)}
    return {"interval": (NAN, NAN), "method": method, "note": joined(note, f"no interval: {same}")}


def _unvarying_rate(rate: float, n_items: int, level: float) -> tuple[float, float]:
    """Interval of a rate that is the same in each of n items.

    Let u be Wilson's upper bound of the share of items that differ, of which none of n was seen. Such items can pull
    the rate down by no more than u · rate and up by no more than u · (1 − rate). At rates 0 and 1 this is Wilson's
    interval on the number of items; at 1/2 (every pair consistent, first-position rate over both passes) it is
    narrower than Wilson's, which would treat n equal items as n coin tosses.
    """
    unseen = wilson(0, n_items, level)[1]
    return rate - unseen * rate, rate + unseen * (1 - rate)


def rate_row(
    measure: str,
    place: Place,
    items: NDArray[Any],
    values: Floats,
    *,
    settings: Settings,
    note: str = "",
    force_bootstrap: bool = False,
) -> dict[str, Any]:
    """A rate: sum of ``values`` over the number of those that count.

    Wilson's interval where each item has one judgment; otherwise (or with ``force_bootstrap``) the bootstrap over
    whole items, in which the numerator and the denominator of an item stay together.

    Parameters
    ----------
    items : array of shape (n,)
        Item of each planned judgment.
    values : array of shape (n,)
        1 success, 0 failure, 1/2 allowed, NaN not in the denominator.
    """
    counts = ~np.isnan(values)
    used, n_judgments = items[counts], int(counts.sum())
    n_items = len(np.unique(used))
    n_excluded = len(np.unique(items)) - n_items
    common = {"ci_level": settings.ci_level, "n_used": n_items, "n_excluded": n_excluded, "denominator": n_judgments}
    total = float(values[counts].sum())
    whole = total == int(total) and not (values[counts] == 0.5).any()
    if n_judgments == 0:
        reason = joined("undefined: no judgment to count", note)
        return place.row(measure, NAN, numerator=0, method="", note=reason, **common)
    estimate = total / n_judgments
    numerator = total if whole else None
    if n_items == n_judgments and whole and not force_bootstrap:
        bounds = wilson(total, n_judgments, settings.ci_level)
        return place.row(measure, estimate, interval=bounds, numerator=numerator, method="Wilson", note=note, **common)
    table = ItemTable.of(used, np.column_stack([values[counts], np.ones(n_judgments)]))
    sampled = bootstrap(table, _ratio, resamples=settings.resamples, rng=place.rng(measure, settings))[0]
    made = interval_of(sampled, estimate, n_items, "rate", settings, carrying=float(carriers(table, _ratio)[0]))
    made["note"] = joined(made["note"], note)
    return place.row(measure, estimate, numerator=numerator, **made, **common)


def _ratio(totals: Floats) -> Floats:
    return (totals[:, 0] / totals[:, 1])[np.newaxis, :]


def mean_row(
    measure: str, place: Place, items: NDArray[Any], values: Floats, *, settings: Settings, note: str = ""
) -> dict[str, Any]:
    """Mean of ``values`` (n,), bootstrap over whole items; NaN values are left out."""
    counts = ~np.isnan(values)
    n_items = len(np.unique(items[counts]))
    common: dict[str, Any] = {
        "ci_level": settings.ci_level,
        "n_used": n_items,
        "n_excluded": len(np.unique(items)) - n_items,
    }
    if n_items == 0:
        return place.row(measure, NAN, note=joined("undefined: no value", note), **common)
    estimate = float(values[counts].mean())
    table = ItemTable.of(items[counts], np.column_stack([values[counts], np.ones(int(counts.sum()))]))
    sampled = bootstrap(table, _ratio, resamples=settings.resamples, rng=place.rng(measure, settings))[0]
    made = interval_of(sampled, estimate, n_items, "coefficient", settings, carrying=float(carriers(table, _ratio)[0]))
    made["note"] = joined(made["note"], note)
    return place.row(measure, estimate, **made, **common)


def kappa_row(
    measure: str,
    place: Place,
    items: NDArray[Any],
    first: Ints,
    second: Ints,
    *,
    n_labels: int,
    settings: Settings,
    note: str = "",
) -> dict[str, Any]:
    """Cohen's kappa (unweighted) of two arrays of label codes; rows with a negative code are left out.

    Undefined where both raters used one and the same label. Where only one of them is constant, kappa is 0 by its
    formula, which the note says.
    """
    valid = (first >= 0) & (second >= 0)
    n_items = len(np.unique(items[valid]))
    common: dict[str, Any] = {
        "ci_level": settings.ci_level,
        "n_used": n_items,
        "n_excluded": len(np.unique(items)) - n_items,
    }
    if not valid.any():
        reason = joined("undefined: no item with two valid labels", note)
        return place.row(measure, NAN, note=reason, **common)
    cells = Contingency.of(np.column_stack([first[valid], second[valid]]), items[valid], n_labels)
    constant = [len(np.unique(codes[valid])) == 1 for codes in (first, second)]

    def statistic(totals: Floats) -> Floats:
        return rater_kappa(totals, cells.cells[:, 0], cells.cells[:, 1], n_labels)[np.newaxis, :]

    one_label = any(constant) and len(np.unique(cells.cells)) > 1  # with one and the same label it is undefined
    reason = "one rater used one label only, kappa is 0 by its formula" if one_label else ""
    return table_row(
        measure,
        place,
        cells.table,
        statistic,
        settings=settings,
        note=joined(reason, note),
        undefined="both raters used one and the same label",
        **common,
    )


def table_row(
    measure: str,
    place: Place,
    table: ItemTable,
    statistic: Callable[[Floats], Floats],
    *,
    settings: Settings,
    note: str,
    undefined: str,
    method: str = "",
    **common: Any,
) -> dict[str, Any]:
    """A coefficient that is a function of sums over items, with its bootstrap interval."""
    estimate = float(statistic(table.totals)[0, 0])
    if np.isnan(estimate):
        note = note if undefined in note else joined(f"undefined: {undefined}", note)
        return place.row(measure, NAN, method=method, note=note, **common)
    sampled = bootstrap(table, statistic, resamples=settings.resamples, rng=place.rng(measure, settings))[0]
    carrying = float(carriers(table, statistic)[0])
    made = interval_of(sampled, estimate, table.n_items, "coefficient", settings, carrying=carrying)
    made["note"] = joined(made["note"], note)
    made["method"] = joined(method, made["method"])
    return place.row(measure, estimate, **made, **common)
