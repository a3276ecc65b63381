"""Probes of bias: does a verdict move when something is changed that should not matter?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.carriers import carriers
from judgelab.measure.coding import TIE, excluded_note
from judgelab.measure.estimates import ROUNDING, Place, Settings, interval_of, rate_row
from judgelab.measure.intervals import wilson
from judgelab.measure.multiplicity import holm
from judgelab.measure.probe_calls import PRESENTATION, ProbeCalls, checked_calls, score, towards_target
from judgelab.measure.resampling import Floats, Ints, ItemTable, bootstrap
from judgelab.measure.rows import frame, joined
from judgelab.measure.sign_flip import exchange_p, sign_flip_p, sign_flip_quantile

__all__ = ["flipped", "probe_table"]

NAN = float("nan")
IDENTICAL, REPETITION = "identical", "repetition"
NOTHING = "undefined: no judgment to count"
NO_REPETITION = "undefined: no repetition to compare with"
FLIPPED = ["judge", "probe", "variant", "item_id", "category", "pass", "repeat", "first", "second", "target"]


def probe_table(pairs: pd.DataFrame, *, ci_level: float, resamples: int, seed: int) -> pd.DataFrame:
    """What each probe does to every judge's pairwise verdicts.

    A verdict is 1, 0 or -1 for target, tie and other answer; it moved towards the target if this went up, away if it
    went down, by one step or two. Judgments count that have both verdicts, the plain one and the probe's.

    =======================================  =====================================================================
    measure (probes)                         what it is
    =======================================  =====================================================================
    flip_rate (all but identical)            judgments whose preference changed / judgments; of ``repetition`` all
                                             repetitions against the plain call
    flip_towards_rate, flip_away_rate        judgments that moved so / judgments
      (with a target)
    net_flip_rate (with a target, identical)  (towards - away) / judgments, in [-1, 1]; of ``identical`` (for the first
                                             place - for the second) / usable judgments
    excess_flip_rate (without a target)      flip_rate minus the flip rate of the first repetition, over judgments
                                             with all three verdicts
    decisive_rate (identical)                verdicts that are no tie / usable judgments
    probe_p (all but repetition)             p-value of "the probe does nothing", two-sided, exact over items
    probe_p_holm (all but repetition)        the same over the judge's probes together, by Holm
    noise_floor (repetition)                 largest net_flip_rate that repetition alone reaches in a share
                                             ``ci_level`` of studies like this one
    =======================================  =====================================================================

    Parameters
    ----------
    pairs : DataFrame
        One row a probe call: judge, probe, variant, item_id, category, system_x, system_y, pass, repeat (0; of
        ``repetition`` 1, 2, ...), first and second (the systems shown there), target (the system that the probe
        favours; empty or missing where it favours none), verdict, base (that of the plain call in the same
        presentation), again (that of its first repetition): each ``A``, ``B``, ``TIE`` or missing.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`, by judge and probe in order of appearance; strategy
        ``pairwise``, pass ``both``, slice ``probe=<name>``, and for the rates of a probe with several variants
        ``probe=<name>:<variant>`` too. Empty for an empty table.

    Raises
    ------
    ValueError
        If a column is missing, a verdict is not allowed, a target is not shown, only some calls of a probe have a
        target, or a judge, probe, variant and presentation occurs twice.

    Notes
    -----
    probe_p is :func:`~judgelab.measure.sign_flip.sign_flip_p` of the items' sums of moves (without a target: of
    flips minus flips of the repetition; ``identical``: of verdicts for the first place minus the second), 1 if nothing
    moved. It assumes no model of the judge: if the manipulation does nothing, the plain and the manipulated call are
    exchangeable. The target must therefore not have been chosen by looking at the judge's plain verdicts: a verdict
    that was picked for being extreme comes back by itself. Several variants share one plain call, or one repetition,
    which counts in the difference of each; the roles of all calls of an item are rotated then
    (:func:`~judgelab.measure.sign_flip.exchange_p`), over presentations in which none lacks a verdict.

    Intervals of net_flip_rate and excess_flip_rate: bootstrap over whole items of the ratio. Where every item has the
    same rate r, it is r - u (r + 1) to r + u (1 - r), u being Wilson's upper bound of 0 of n items: ±u where nothing
    moved. noise_floor is a quantile of the sums under :func:`~judgelab.measure.sign_flip.sign_flip_quantile` of
    the items' moves from plain call to first repetition, over the number of judgments.

    Examples
    --------
    Of two items one moved from a tie to the target.

    >>> pairs = pd.DataFrame({"judge": "j", "probe": "padding", "variant": "", "item_id": [1, 2], "category": "c",
    ...     "system_x": "X", "system_y": "Y", "pass": "original", "repeat": 0, "first": "X", "second": "Y",
    ...     "target": "X", "verdict": ["A", "B"], "base": ["TIE", "B"], "again": None})
    >>> table = probe_table(pairs, ci_level=0.95, resamples=100, seed=1)
    >>> table.set_index("measure")["estimate"].to_dict()["net_flip_rate"]
    0.5
    """
    settings = Settings(ci_level, resamples, seed)
    table = checked_calls(pairs)
    lines: list[dict[str, Any]] = []
    for judge, own in table.groupby("judge", sort=False):
        of_judge: list[dict[str, Any]] = []
        for probe, rows in own.groupby("probe", sort=False):
            of_judge += _probe_rows(str(probe), str(judge), ProbeCalls.from_rows(rows), settings)
        lines += _with_holm(of_judge)
    return frame(lines)


def flipped(pairs: pd.DataFrame) -> pd.DataFrame:
    """Every judgment whose preference changed against the plain call, for people to look at.

    Parameters
    ----------
    pairs : DataFrame
        As for :func:`probe_table`. Calls without both verdicts are left out, so those of ``identical`` are.

    Returns
    -------
    DataFrame
        judge, probe, variant, item_id, category, pass, repeat, first, second, target, preference_before and
        preference_after (a system or ``TIE``), moved (``towards`` or ``away`` from the target, ``changed`` without
        one), by judge, probe and item.

    Raises
    ------
    ValueError
        As :func:`probe_table`.
    """
    table = checked_calls(pairs)
    before, after = score(table, "base"), score(table, "verdict")
    change = np.sign(after - before)
    towards = change * towards_target(table)
    shown = [table[name].to_numpy(dtype=object) for name in ("first", "second")]
    table["preference_before"], table["preference_after"] = (
        np.select([side > 0, side < 0], shown, TIE) for side in (before, after)
    )
    table["moved"] = np.select([towards > 0, towards < 0], ["towards", "away"], "changed").astype(object)
    picked = table[np.nan_to_num(change) != 0]
    ordered = picked.sort_values(["judge", "probe", "item_id", "variant", *PRESENTATION[1:]], kind="stable")
    return ordered.reset_index(drop=True)[[*FLIPPED, "preference_before", "preference_after", "moved"]]


def _probe_rows(probe: str, judge: str, calls: ProbeCalls, settings: Settings) -> Iterator[dict[str, Any]]:
    place = Place(judge, "pairwise", "both", f"probe={probe}")
    if probe == IDENTICAL:
        yield from _identical(calls, place, settings)
        return
    if probe == REPETITION:
        yield from _repetition(calls, place, settings)
        return
    targeted = bool(calls.towards.any())
    yield from _rates(calls, place, settings, targeted=targeted)
    yield _test(calls, place, targeted=targeted)
    if len(calls.names) > 1:
        for code, name in enumerate(calls.names):
            part = Place(judge, "pairwise", "both", f"probe={probe}:{name}")
            yield from _rates(calls.of(code), part, settings, targeted=targeted)


def _rates(calls: ProbeCalls, place: Place, settings: Settings, *, targeted: bool) -> Iterator[dict[str, Any]]:
    """Flip rates of one probe or variant."""
    change, note = np.sign(calls.verdict - calls.base), calls.note()
    flips = np.abs(change)
    yield rate_row("flip_rate", place, calls.items, flips, settings=settings, note=note)
    if targeted:
        moves = calls.towards * change
        for measure, sign in (("flip_towards_rate", 1), ("flip_away_rate", -1)):
            values = np.where(np.isnan(moves), NAN, moves == sign)
            yield rate_row(measure, place, calls.items, values, settings=settings, note=note)
        yield _signed_rate("net_flip_rate", place, calls.items, moves, settings, note, NOTHING)
    else:
        excess = flips - np.abs(np.sign(calls.again - calls.base))
        undefined = NO_REPETITION if np.isnan(calls.again).all() else NOTHING
        note = calls.note(again=undefined == NOTHING)
        yield _signed_rate("excess_flip_rate", place, calls.items, excess, settings, note, undefined)


def _identical(calls: ProbeCalls, place: Place, settings: Settings) -> Iterator[dict[str, Any]]:
    """Verdicts on two copies of one answer, of which neither is better."""
    given = ~np.isnan(calls.verdict)
    note = excluded_note(len(given), "judgments", probe_unusable=int((~given).sum()))
    yield rate_row("decisive_rate", place, calls.items, np.abs(calls.verdict), settings=settings, note=note)
    yield _signed_rate("net_flip_rate", place, calls.items, calls.verdict, settings, note, NOTHING)
    sums = np.bincount(calls.items[given], calls.verdict[given])
    common = _used(calls.items, given)
    if not given.any():
        yield place.row("probe_p", NAN, note=joined(NOTHING, note), **common)
        return
    yield place.row("probe_p", sign_flip_p(sums), method="exact sign flips over items", note=note, **common)


def _repetition(calls: ProbeCalls, place: Place, settings: Settings) -> Iterator[dict[str, Any]]:
    """What a judge does when nothing is changed."""
    change = np.sign(calls.verdict - calls.base)
    yield rate_row("flip_rate", place, calls.items, np.abs(change), settings=settings, note=calls.note())
    first = calls.repeat == 1
    moves = np.where(first, calls.x_first * change, NAN)
    given = ~np.isnan(moves)
    left_out = excluded_note(int(first.sum()), "judgments", without_both_verdicts=int((first & ~given).sum()))
    common = _used(calls.items, given)
    if not given.any():
        yield place.row("noise_floor", NAN, note=joined("undefined: no first repetition to count", left_out), **common)
        return
    sums = np.bincount(calls.items[given], moves[given])
    still = "" if moves[given].any() else "no first repetition changed a verdict"
    yield place.row(
        "noise_floor",
        sign_flip_quantile(sums, settings.ci_level) / int(given.sum()),
        denominator=int(given.sum()),
        method=f"{settings.ci_level:g} quantile of exact sign flips over items",
        note=joined(still, left_out),
        **common,
    )


def _signed_rate(
    measure: str, place: Place, items: Ints, values: Floats, settings: Settings, note: str, undefined: str
) -> dict[str, Any]:
    """Sum of values in [-1, 1] over the number of those that count (not NaN), bootstrap over items."""
    given = ~np.isnan(values)
    n_judgments = int(given.sum())
    common = _used(items, given) | {"ci_level": settings.ci_level, "denominator": n_judgments}
    if n_judgments == 0:
        return place.row(measure, NAN, note=joined(undefined, note), **common)
    estimate = float(values[given].sum()) / n_judgments + 0.0  # no -0
    table = ItemTable.of(items[given], np.column_stack([values[given], np.ones(n_judgments)]))
    sampled = bootstrap(table, _ratio, resamples=settings.resamples, rng=place.rng(measure, settings))[0]
    alike = np.ptp(table.rows[:, 0] / table.rows[:, 1]) <= ROUNDING
    if alike and table.n_items > 1:
        unseen = wilson(0, table.n_items, settings.ci_level)[1]
        bounds = estimate - unseen * (1 + estimate), estimate + unseen * (1 - estimate)
        reason = "nothing moved" if not values[given].any() else "every item has the same rate"
        note = joined(f"{reason}; interval from the share of items that may differ unseen", note)
        method = "Wilson on the number of items"
        return place.row(measure, estimate, interval=bounds, method=method, note=note, **common)
    carrying = float(carriers(table, _ratio)[0])
    made = interval_of(sampled, estimate, table.n_items, "difference", settings, carrying=carrying)
    made["note"] = joined(made["note"], note)
    return place.row(measure, estimate, **made, **common)


def _ratio(totals: Floats) -> Floats:
    return (totals[:, 0] / totals[:, 1])[np.newaxis, :]


def _used(items: Ints, given: Any) -> dict[str, Any]:
    """How many items have a judgment that counts, and how many have none."""
    n_used = len(np.unique(items[given]))
    return {"n_used": n_used, "n_excluded": len(np.unique(items)) - n_used}


def _test(calls: ProbeCalls, place: Place, *, targeted: bool) -> dict[str, Any]:
    """The exact test over items, over presentations in which the plain call and all variants have a verdict."""
    flips = np.abs(np.sign(calls.verdict - calls.base)), np.abs(np.sign(calls.again - calls.base))
    values, reference = (calls.verdict, calls.base) if targeted else flips
    size, n_variants = int(calls.presentations.max()) + 1, len(calls.names)
    arms = np.full((size, 1 + n_variants), NAN)
    arms[calls.presentations, 0] = reference
    arms[calls.presentations, 1 + calls.variants] = values
    towards = np.ones((size, n_variants))
    if targeted:
        towards[calls.presentations, calls.variants] = calls.towards
    items = np.zeros(size, dtype=np.int64)
    items[calls.presentations] = calls.items
    whole = ~np.isnan(arms).any(axis=1)
    note = excluded_note(size, "presentations", without_every_verdict=int((~whole).sum()))
    common = _used(items, whole)
    if not whole.any():
        missing = not targeted and np.isnan(calls.again).all()
        return place.row("probe_p", NAN, note=joined(NO_REPETITION if missing else NOTHING, note), **common)
    p = exchange_p(_rotated(arms[whole], towards[whole], items[whole]))
    method = "exact sign flips over items" if n_variants == 1 else "exact rotation of an item's calls"
    return place.row("probe_p", p, method=method, note=note, **common)


def _rotated(arms: Floats, towards: Floats, items: Ints) -> Floats:
    """Each item's sum of moves from the first arm to the others, under every rotation of the arms, (items, arms)."""
    k = arms.shape[1]
    sums = []
    for shift in range(k):
        turned = np.roll(arms, -shift, axis=1)
        moves = (towards * np.sign(turned[:, 1:] - turned[:, :1])).sum(axis=1)
        sums.append(np.bincount(items, moves))
    return np.column_stack(sums)


def _with_holm(lines: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of a judge, each p-value followed by that which Holm makes of it among them."""
    adjusted = holm([line["estimate"] for line in lines if line["measure"] == "probe_p"])
    number, tested = int((~np.isnan(adjusted)).sum()), iter(adjusted)
    for line in lines:
        yield line
        if line["measure"] == "probe_p":
            p = float(next(tested))
            yield line | {"measure": "probe_p_holm", "estimate": p, "method": f"Holm over {number} probes"}
