"""Planning as tables for people: what this study can see, and which labels are worth buying next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.intervals import wilson
from judgelab.measure.planning import (
    items_for_difference,
    items_for_width,
    power_of_minimum,
    smallest_difference,
    smallest_n_for_limit,
    smallest_truth_for_minimum,
)

__all__ = ["PLAN_COLUMNS", "labels_worth_buying", "plan_table"]

NAN = float("nan")
PLAN_COLUMNS = ("quantity", "value", "unit", "assumption", "note")
MINIMA = {
    "minimum_agreement": "agreement",
    "minimum_swap_consistency": "swap consistency",
    "minimum_coverage": "coverage",
}
SPARE = (0.05, 0.10)  # how far above its threshold the truth is assumed to be
STEPS = (25, 50, 100, 200)


def plan_table(
    *,
    n_items: int,
    n_labelled: int,
    thresholds: Mapping[str, Any],
    ci_level: float,
    power: float = 0.8,
    rate: float = 0.8,
    discordant: Sequence[float] = (0.1, 0.2, 0.3),
    width: float = 0.1,
) -> pd.DataFrame:
    """Is this enough data? What a study can see before anything is judged.

    Parameters
    ----------
    n_items : int
        Items to be judged, each with one pair.
    n_labelled : int
        Items of these with a human reference.
    thresholds : mapping
        The protocol's decision thresholds; of them ``minimum_agreement``, ``minimum_swap_consistency``,
        ``minimum_coverage``, ``maximum_unusable_rate`` and ``meaningful_difference`` are used where they are given.
    ci_level : float
        Coverage of the intervals; 1 − size of the tests.
    power : float
        The probability with which a difference is to be found.
    rate : float
        Agreement that is expected.
    discordant : sequence of float
        Shares of items on which exactly one strategy is right; not known before judging, hence several.
    width : float
        Wanted width of an interval, bound to bound.

    Returns
    -------
    DataFrame
        ``quantity``, ``value`` (NaN with the reason in ``note``), ``unit`` (share, items, calls), ``assumption``,
        ``note``: half width of an agreement's interval, items for the wanted width, smallest difference of direct and
        pairwise, items for the meaningful difference, chance to show each minimum if the truth is 0.05 or 0.10 above
        it, how good the judge must be for it, fewest calls to show the limit of unusable replies.

    Raises
    ------
    ValueError
        If a number is outside its range or more items are labelled than there are.
    """
    if not 0 <= n_labelled <= n_items:
        raise ValueError(f"{n_labelled} labelled of {n_items} items; allowed is 0 to all of them")
    lines = [*_width_lines(n_labelled, rate, width, ci_level)]
    for share in discordant:
        lines += _difference_lines(n_labelled, share, thresholds, ci_level, power)
    for name, what in MINIMA.items():
        if name in thresholds:
            # Swap consistency and coverage need no reference.
            n = n_labelled if name == "minimum_agreement" else n_items
            lines += _minimum_lines(what, n, float(thresholds[name]), ci_level, power)
    if 0 < float(thresholds.get("maximum_unusable_rate", 0)) < 1:
        lines.append(_limit_line(n_items, float(thresholds["maximum_unusable_rate"]), ci_level))
    return pd.DataFrame(lines, columns=list(PLAN_COLUMNS))


def _line(quantity: str, value: float, unit: str, assumption: str, note: str = "") -> dict[str, Any]:
    if np.isnan(value) and not note:
        raise ValueError(f"{quantity}: an undefined value needs a note that says why")
    return {"quantity": quantity, "value": float(value), "unit": unit, "assumption": assumption, "note": note}


def _half_width(n: int, rate: float, level: float) -> float:
    low, high = wilson(rate * n, n, level)
    return (high - low) / 2


def _width_lines(n: int, rate: float, width: float, level: float) -> Iterator[dict[str, Any]]:
    assumed = f"agreement {rate:g}, {n} labelled items, {level:.0%} interval"
    value, note = (_half_width(n, rate, level), "") if n else (NAN, "undefined: no labelled item")
    yield _line("half width of an agreement's interval", value, "share", assumed, note)
    needed = items_for_width(rate, width, level)
    note = "reached" if n >= needed else f"{needed - n} more labelled items are needed"
    assumed = f"agreement {rate:g}, {level:.0%} interval"
    yield _line(f"labelled items for an interval {width:g} wide", needed, "items", assumed, note)


def _difference_lines(
    n: int, share: float, thresholds: Mapping[str, Any], level: float, power: float
) -> Iterator[dict[str, Any]]:
    assumed = f"exactly one of the two is right on {share:.0%} of the items, power {power:g}, McNemar's exact test"
    value = smallest_difference(n, discordant=share, level=level, power=power) if n else NAN
    note = "" if not np.isnan(value) else f"undefined: {n} labelled items are too few to find any difference"
    yield _line("smallest difference between direct and pairwise that is found", value, "share", assumed, note)
    wanted = float(thresholds.get("meaningful_difference", 0))
    if not 0 < wanted <= share:
        return
    needed = items_for_difference(wanted, discordant=share, level=level, power=power)
    note = "reached" if n >= needed else f"{needed - n} more labelled items are needed"
    yield _line(f"labelled items to find the meaningful difference {wanted:g}", needed, "items", assumed, note)


def _minimum_lines(what: str, n: int, minimum: float, level: float, power: float) -> Iterator[dict[str, Any]]:
    if minimum <= 0:
        return
    unit, quantity = "share", f"chance to show that {what} is {minimum:g} or above"
    for spare in SPARE:
        truth = minimum + spare
        if truth <= 1 and n:
            assumed = f"its true value is {truth:g}, {n} items with one pair each"
            yield _line(quantity, power_of_minimum(n, truth, minimum, level), unit, assumed)
    truth = smallest_truth_for_minimum(n, minimum, level=level, power=power) if n else NAN
    note = ""
    if np.isnan(truth):
        known = minimum < 1
        fewest = f", {smallest_n_for_limit(1 - minimum, level)} items would do" if known else ""
        note = f"undefined: {n} items cannot show it{fewest}"
    assumed = f"{n} items with one pair each, power {power:g}"
    yield _line(f"true {what} needed to show {minimum:g} or above", truth, unit, assumed, note)


def _limit_line(n_items: int, limit: float, level: float) -> dict[str, Any]:
    needed = smallest_n_for_limit(limit, level)
    note = "reached" if n_items >= needed else f"{needed - n_items} more items are needed"
    quantity = f"fewest calls a pass to show an unusable rate of {limit:g} or less"
    return _line(quantity, needed, "calls", "no reply is unusable", note)


def labels_worth_buying(
    n_labelled: int,
    *,
    rate: float,
    discordant: float,
    level: float,
    power: float,
    steps: Sequence[int] = STEPS,
    worth: float = 0.01,
) -> pd.DataFrame:
    """What 25, 50, 100, 200 more labels would bring, and whether to stop.

    Parameters
    ----------
    n_labelled : int
        Labelled items now.
    rate, discordant : float
        Expected agreement; expected share of items on which exactly one strategy is right.
    level, power : float
        Coverage of the interval and 1 − size of the test; its power.
    steps : sequence of int
        Purchases to compare, each 1 or more.
    worth : float
        Least gain that is worth 100 labels: half width of the agreement's interval that they take away.

    Returns
    -------
    DataFrame
        One row a purchase, the first one none: ``labels_added``, ``labels``, ``half_width`` of the agreement's
        interval, ``smallest_difference`` that is found (NaN where none is), ``gain`` (half width taken away),
        ``gain_per_100``, ``advice``. NaN gains where there is no label yet.

    Raises
    ------
    ValueError
        If a number is outside its range.

    Notes
    -----
    The half width falls with 1/√n: the first hundred labels bring more than the next, which is why the gain is
    given per label and not for the whole purchase. Wilson's interval; see
    :func:`judgelab.measure.planning.smallest_difference`.
    """
    if n_labelled < 0 or not steps or min(steps) < 1:
        raise ValueError(f"{n_labelled} labels and purchases of {list(steps)}; allowed is 0 and more, and 1 and more")
    if not worth > 0:
        raise ValueError(f"worth is {worth}; allowed is above 0")
    lines = []
    now = _half_width(n_labelled, rate, level) if n_labelled else NAN
    for added in (0, *steps):
        n = n_labelled + added
        half = _half_width(n, rate, level) if n else NAN
        found = smallest_difference(n, discordant=discordant, level=level, power=power) if n else NAN
        gain = now - half if added else NAN
        per_100 = gain / added * 100 if added else NAN
        lines.append(
            {
                "labels_added": added,
                "labels": n,
                "half_width": half,
                "smallest_difference": found,
                "gain": gain,
                "gain_per_100": per_100,
                "advice": _advice(added, n_labelled, half, gain, per_100, worth),
            }
        )
    return pd.DataFrame(lines)


def _advice(added: int, n_now: int, half: float, gain: float, per_100: float, worth: float) -> str:
    if not added:
        return f"now: ± {half:.3f}" if n_now else "no label yet"
    if not n_now:
        return f"the first {added} labels: ± {half:.3f}"
    if per_100 >= worth:
        return f"worth it: {added} more labels take {gain:.3f} off the half width"
    return f"stop: {added} more labels take only {gain:.3f} off the half width, {per_100:.4f} per 100"
