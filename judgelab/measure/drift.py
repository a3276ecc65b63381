"""Does the scale drift along the order of calls? Scores and the taste for the first place, early against late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import fisher_exact

from judgelab.measure.association import Points, why_undefined
from judgelab.measure.coding import TIE, check_columns, encode, excluded_note
from judgelab.measure.differences import newcombe_separate
from judgelab.measure.estimates import Place, Settings, table_row
from judgelab.measure.resampling import CHUNK, Floats, Ints, ItemTable
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import Flags

__all__ = ["MINIMUM_CALLS", "drift_table"]

NAN = float("nan")
MINIMUM_CALLS = 6  # with fewer, a single verdict makes or unmakes a trend
ROUNDING = 1e-9
COLUMNS = ("judge", "strategy", "pass", "item_id", "system", "verdict", "total", "status", "order")
SCORE_MEASURES = ("score_drift", "score_drift_p", "score_drift_spearman")


def drift_table(verdicts: pd.DataFrame, *, ci_level: float, resamples: int, seed: int) -> pd.DataFrame:
    """Trends of a judge's verdicts along the order in which its calls were asked.

    The order is drawn without looking at the items, so early and late items differ by chance only: what changes with
    the order beyond chance is the instrument (a model that was replaced, a server that remembers, a person who tires).

    ====================  ========================================================================================
    measure               what it is
    ====================  ========================================================================================
    score_drift           direct: least-squares slope of the totals, in points of the scale over the whole pass
                          (order scaled to 0..1); each system has a level of its own
    score_drift_p         the permutation test of no trend
    score_drift_spearman  Spearman's correlation of the order with the totals minus their system's mean, −1 to 1
    first_position_drift  pairwise, each pass: share of verdicts for the answer shown first, among those that are no
                          tie, in the last third of the calls minus in the first third, −1 to 1
    first_position_drift  Fisher's exact test, two-sided
      _p
    ====================  ========================================================================================

    Parameters
    ----------
    verdicts : DataFrame
        One row per planned call: judge, strategy, pass, item_id, system (direct), verdict (pairwise: A, B, TIE),
        total (direct), status, order (integer from 0, each once within judge, strategy and pass).
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples and of permutations, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`; ``n_used`` counts items. Intervals of ``score_drift`` and
        ``score_drift_spearman``: bootstrap over whole items. Of ``first_position_drift``: Newcombe's for separate
        items where an item has one verdict, else the bootstrap. Undefined with fewer than six calls that count
        (:data:`MINIMUM_CALLS`); scores also where every answer of a system got the same total, the place also where
        one of the thirds has no verdict that counts.

    Raises
    ------
    ValueError
        If a column is missing, an order is no whole number from 0 or occurs twice in a pass, an answer is scored twice
        in a pass, or a verdict is none of A, B, TIE.

    Notes
    -----
    The slope is that of ordinary least squares on the order and one indicator a system (Frisch and Waugh, 1933: both
    sides minus their system's mean), so it does not matter if one system happened to come late. Checked against
    ``statsmodels``.

    ``score_drift_p`` rests on the random order, not on a distribution of scores: were there no drift, every item could
    as well have stood at another item's places. So items swap their places (all calls of an item together, among items
    scored for the same systems), and p = (1 + permutations with a slope as far from 0) / (1 + permutations): Phipson
    and Smyth, 2010. Swapping whole items holds whether calls are shuffled one by one or item by item. Fisher's test is
    the same argument for the counts of the two thirds, which is why it is given for several pairs an item, too: it
    supposes that calls were shuffled one by one, as ``judgelab`` does.

    With 20 items of two systems and no drift, the slope's 95 % interval covered 0 in 91 % of 2,000 simulated passes
    and the test had p ≤ 0.05 in 5.4 %: with few items, go by the test.

    A trend within the run says nothing of a change before it. Calls that are asked at the same time have the order in
    which they were planned. Missing verdicts are left out; if they crowd at one end, read ``unusable_rate`` first.

    Examples
    --------
    Six items, one system, totals that rise from 1 to 6 in the order of the calls: 5 points over the pass.

    >>> rising = pd.DataFrame({"item_id": range(6), "order": range(6), "total": [1.0, 2, 3, 4, 5, 6]})
    >>> rising = rising.assign(judge="j", strategy="direct", system="S", verdict=None, status="verdict")
    >>> table = drift_table(rising.assign(**{"pass": "direct"}), ci_level=0.95, resamples=99, seed=1)
    >>> table[["measure", "estimate"]].iloc[[0, 2]].round(6).values.tolist()
    [['score_drift', 5.0], ['score_drift_spearman', 1.0]]
    """
    check_columns(verdicts, COLUMNS, "verdicts")
    settings = Settings(ci_level, resamples, seed)
    lines: list[dict[str, Any]] = []
    for (judge, strategy, pass_), calls in verdicts.groupby(["judge", "strategy", "pass"], sort=False):
        place = Place(str(judge), str(strategy), str(pass_))
        order = _order(calls, place)
        calls, order = calls.iloc[np.argsort(order)], np.sort(order)  # the rows' own order must not matter
        lines += (_score_rows if strategy == "direct" else _position_rows)(place, calls, order, settings)
    return frame(lines)


def _order(calls: pd.DataFrame, place: Place) -> Floats:
    """The places of the calls, whole numbers from 0, each once."""
    order = pd.to_numeric(calls["order"]).to_numpy(dtype=np.float64, na_value=NAN)
    if not (np.isfinite(order) & (order >= 0) & (order == np.floor(order))).all():
        raise ValueError(f"verdicts, judge {place.judge}, pass {place.pass_}: order must be a whole number from 0")
    if len(np.unique(order)) < len(order):
        raise ValueError(f"verdicts, judge {place.judge}, pass {place.pass_}: an order occurs twice")
    return np.asarray(order)


@dataclass(frozen=True)
class _Scored:
    """Usable direct calls in their order: codes of item and system, the time in 0..1, total minus system's mean."""

    items: Ints
    systems: Ints
    time: Floats
    total: Floats

    @classmethod
    def of(cls, calls: pd.DataFrame, order: Floats) -> _Scored:
        """Calls with a total, centred by system."""
        totals = pd.to_numeric(calls["total"]).to_numpy(dtype=np.float64, na_value=NAN)
        usable = (calls["status"] == "verdict").to_numpy(dtype=bool) & ~np.isnan(totals)
        items, systems = (
            pd.factorize(calls[name].astype(object)[usable], use_na_sentinel=False)[0].astype(np.int64)
            for name in ("item_id", "system")
        )
        time = (order / max(float(order.max()), 1.0))[usable]
        # rounded, so that equal scores of two systems stay equal after their means are taken off
        return cls(items, systems, time, np.round(_centred(totals[usable], systems), 12))

    def why_undefined(self) -> str:
        """Why there is no trend; empty if there is one."""
        if len(self.total) < MINIMUM_CALLS:
            return f"{len(self.total)} calls with a total, {MINIMUM_CALLS} are needed"
        constant = np.abs(self.total).max() <= ROUNDING
        return "every answer of a system got the same total" if constant else ""

    def table(self) -> ItemTable:
        """By item and system: number, sums of time and total, of time squared, of time · total."""
        base = np.column_stack(
            [np.ones(len(self.time)), self.time, self.total, self.time * self.time, self.time * self.total]
        )
        own = np.eye(int(self.systems.max()) + 1)[self.systems]
        features = own[:, :, np.newaxis] * base[:, np.newaxis, :]
        return ItemTable.of(self.items, features.reshape(len(base), -1))


def _centred(values: Floats, groups: Ints) -> Floats:
    """Values minus the mean of their group."""
    if len(values) == 0:
        return values
    means = np.bincount(groups, values) / np.maximum(np.bincount(groups), 1)
    return np.asarray(values - means[groups])


def _slope(totals: Floats) -> Floats:
    """Within-system least-squares slope from the sums of :meth:`_Scored.table`; NaN where time does not vary."""
    n, t, y, tt, ty = np.moveaxis(totals.reshape(len(totals), -1, 5), 2, 0)
    n = np.maximum(n, 1.0)
    spread, product = (tt - t * t / n).sum(axis=1), (ty - t * y / n).sum(axis=1)
    slope = np.full(len(totals), NAN)
    np.divide(product, spread, out=slope, where=spread > 1e-12)
    return slope[np.newaxis, :]


def _score_rows(place: Place, calls: pd.DataFrame, order: Floats, settings: Settings) -> Iterator[dict[str, Any]]:
    if calls.duplicated(["item_id", "system"]).any():
        raise ValueError(f"verdicts, judge {place.judge}, pass {place.pass_}: an answer is scored twice")
    scored = _Scored.of(calls, order)
    n_items = len(np.unique(scored.items))
    note = excluded_note(len(calls), "calls", without_a_total=len(calls) - len(scored.total))
    common: dict[str, Any] = {"n_used": n_items, "n_excluded": calls["item_id"].nunique(dropna=False) - n_items}
    level: dict[str, Any] = {"ci_level": settings.ci_level}
    reason = scored.why_undefined()
    if reason:
        for measure in SCORE_MEASURES:
            extra = {} if measure.endswith("_p") else level
            yield place.row(measure, NAN, note=joined(f"undefined: {reason}", note), **common, **extra)
        return
    slope, p, rank = SCORE_MEASURES
    yield table_row(
        slope,
        place,
        scored.table(),
        _slope,
        settings=settings,
        note=note,
        undefined="the order does not vary",
        method="least squares, points of the scale over the whole pass, a level for each system",
        **common,
        **level,
    )
    yield _permutation_row(p, place, scored, settings, note, common)
    reason = why_undefined(scored.time, scored.total, "calls")
    if reason:
        yield place.row(rank, NAN, note=joined(f"undefined: {reason}", note), **common, **level)
        return
    line = Points(scored.items, scored.time, scored.total).row("spearman", place, settings, note, {**common, **level})
    yield line | {"measure": rank}


def _permutation_row(
    measure: str, place: Place, scored: _Scored, settings: Settings, note: str, common: dict[str, int]
) -> dict[str, Any]:
    """Test of no trend: items swap their places among those scored for the same systems."""
    shape = (int(scored.items.max()) + 1, int(scored.systems.max()) + 1)
    time, total, given = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
    cells = scored.items, scored.systems
    time[cells], total[cells], given[cells] = _centred(scored.time, scored.systems), scored.total, True
    kinds = np.unique(given, axis=0, return_inverse=True)[1].ravel()
    alike = [members for kind in range(int(kinds.max()) + 1) if len(members := np.flatnonzero(kinds == kind)) > 1]
    if not alike:
        reason = "undefined: no two items are scored for the same systems"
        return place.row(measure, NAN, note=joined(reason, note), **common)
    # Items of a kind have the same systems, so the spread of time is the same in every permutation: the slope's
    # numerator decides. Items that are alone in their kind keep their places.
    single = ~np.isin(np.arange(shape[0]), np.concatenate(alike))
    products = np.full(settings.resamples, float((time * total)[single].sum()))
    rng = place.rng(measure, settings)
    for members in alike:
        step = max(1, CHUNK // (len(members) * shape[1]))
        for start in range(0, settings.resamples, step):
            part = products[start : start + step]
            drawn = rng.permuted(np.tile(members, (len(part), 1)), axis=1)
            part += np.einsum("bks,ks->b", time[drawn], total[members])
    observed = abs(float((time * total).sum()))
    as_far = int((np.abs(products) >= observed - ROUNDING * max(1.0, observed)).sum())
    p = (1 + as_far) / (1 + settings.resamples)
    method = f"permutation test, two-sided: items swap places, {settings.resamples} permutations, seed {settings.seed}"
    return place.row(measure, p, method=method, note=note, **common)


def _position_rows(place: Place, calls: pd.DataFrame, order: Floats, settings: Settings) -> Iterator[dict[str, Any]]:
    usable = calls["verdict"].astype(object).where(calls["status"] == "verdict")
    letters = encode(usable, ["A", "B", TIE], f"verdicts, judge {place.judge}, pass {place.pass_}")
    planned = float(order.max()) + 1
    early, late = 3 * order < planned, 3 * order >= 2 * planned
    outer = early | late
    counts = outer & ((letters == 0) | (letters == 1))
    items = pd.factorize(calls["item_id"], use_na_sentinel=False)[0].astype(np.int64)
    note = excluded_note(
        int(outer.sum()),
        "calls of the first and the last third",
        without_usable_verdict=int((outer & (letters < 0)).sum()),
        tied=int((outer & (letters == 2)).sum()),
    )
    n_items = len(np.unique(items[counts]))
    common = {"n_used": n_items, "n_excluded": len(np.unique(items[outer])) - n_items}
    yield from _third_rows(place, items[counts], letters[counts] == 0, late[counts], note, settings, common)


def _third_rows(
    place: Place, items: Ints, first: Flags, late: Flags, note: str, settings: Settings, common: dict[str, int]
) -> Iterator[dict[str, Any]]:
    """The difference of the two thirds and its test, from verdicts that are no tie."""
    measure: str = "first_position_drift"
    level: dict[str, Any] = {"ci_level": settings.ci_level}
    trials = int(late.sum()), int((~late).sum())
    wins = int((first & late).sum()), int((first & ~late).sum())
    if sum(trials) < MINIMUM_CALLS or 0 in trials:
        why = f"{sum(trials)} verdicts without a tie in the first and the last third, {MINIMUM_CALLS} are needed"
        if sum(trials) >= MINIMUM_CALLS:
            why = f"no verdict without a tie in the {'last' if trials[0] == 0 else 'first'} third"
        reason = joined(f"undefined: {why}", note)
        yield place.row(measure, NAN, note=reason, **common, **level)
        yield place.row(f"{measure}_p", NAN, note=reason, **common)
        return
    method = f"last third {wins[0]} of {trials[0]} minus first third {wins[1]} of {trials[1]}"
    if common["n_used"] == len(items):
        bounds = newcombe_separate(wins, trials, settings.ci_level)
        estimate = wins[0] / trials[0] - wins[1] / trials[1]
        method = joined(method, "Newcombe's score interval")
        yield place.row(measure, estimate, interval=bounds, method=method, note=note, **common, **level)
    else:
        features = np.column_stack([first & late, late, first & ~late, ~late]).astype(np.float64)
        table = ItemTable.of(items, features)
        made = {**common, **level}
        yield table_row(measure, place, table, _gap, settings=settings, note=note, undefined="", method=method, **made)
    p = fisher_exact([[wins[0], trials[0] - wins[0]], [wins[1], trials[1] - wins[1]]]).pvalue
    method = "Fisher's exact test, two-sided"
    yield place.row(f"{measure}_p", min(float(p), 1.0), method=method, note=note, **common)


def _gap(totals: Floats) -> Floats:
    """Late minus early share; NaN where a resample has no verdict in a third."""
    rates = np.full((2, len(totals)), NAN)
    for rate, wins, trials in zip(rates, totals.T[::2], totals.T[1::2], strict=True):
        np.divide(wins, trials, out=rate, where=trials > 0)
    return (rates[0] - rates[1])[np.newaxis, :]
