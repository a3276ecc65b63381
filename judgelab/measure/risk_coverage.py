"""Does a judge know when it is right? Its error rate on the verdicts it is most sure of, against how many they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from judgelab.measure.coding import excluded_note
from judgelab.measure.confidence import SIGNALS, confidence_signals
from judgelab.measure.estimates import Place, Settings, interval_of, table_row
from judgelab.measure.intervals import wilson
from judgelab.measure.resampling import CHUNK, DENSE, Floats, Ints, ItemTable, bootstrap
from judgelab.measure.rows import frame, joined

__all__ = ["CURVE", "SIGNALS", "confidence_signals", "risk_coverage", "risk_coverage_table"]

NAN = float("nan")
CURVE = (
    "signal",
    "threshold",
    "coverage",
    "n_decided",
    "numerator",
    "denominator",
    "agreement",
    "ci_low",
    "ci_high",
)
MAXIMUM_THRESHOLDS = 2_000  # of a curve whose intervals come from the bootstrap; with more it has none


def risk_coverage(
    confidence: Floats, right: Floats, items: NDArray[Any], *, place: Place, signal: str, settings: Settings
) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """Agreement among the verdicts of the highest confidence, at every threshold, and the area under the errors.

    Let t₁ > t₂ > ... > tₘ be the m distinct confidences of n verdicts. At threshold t_g the judge decides the N_g
    verdicts of confidence t_g or more, of which E_g are wrong; verdicts of one confidence cannot be told apart and
    are decided together. Coverage is c_g = N_g / n (c₀ = 0) and the error rate r_g = E_g / N_g::

        area_under_risk_coverage  A = Σ_g (c_g − c_{g−1}) r_g
        risk_coverage_gain        r_m − A

    The error rate is a step function of coverage: r_g holds from above c_{g−1} to c_g. Without equal confidences A is
    the mean error rate of the 1, 2, ..., n most confident verdicts.

    ========================  ==========  ==========================================================================
    measure                   range       what it says
    ========================  ==========  ==========================================================================
    area_under_risk_coverage  0 to 1      lower is better; it is the error rate if confidence says nothing
    risk_coverage_gain        −1 to 1     above 0: the judge errs less where it is sure; 0 if all are equally sure;
                                          below 0: it errs more where it is sure
    ========================  ==========  ==========================================================================

    Parameters
    ----------
    confidence : array of shape (n,)
        Higher is surer, on any scale; NaN where the judge has none. Only its order counts.
    right : array of shape (n,)
        1 where the verdict is the human label, 0 where not, NaN where there is no verdict or label.
    items : array of shape (n,)
        Item of each verdict; items are resampled whole.
    place : Place
        Where the rows stand; their slice is ``signal=<s>``, after the place's own if that is not ``all``.
    signal : str
        Name of the confidence.
    settings : Settings
        Coverage of intervals, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    curve : DataFrame
        signal, threshold (descending), coverage, n_decided, numerator (right), denominator (decided), agreement =
        1 − r_g, ci_low, ci_high: Wilson where every item has one verdict, else the bootstrap over whole items (none
        beyond 2,000 thresholds, or where more than 5 % of the resamples decide nothing). The intervals hold for each
        threshold, not for the curve. Empty without a verdict.
    rows : list of dict
        The two measures, bootstrap over whole items, with the verdicts that were left out in the note; NaN without a
        verdict that has both a confidence and a label.

    Raises
    ------
    ValueError
        If the arrays are not as long, a confidence is infinite, or ``right`` is none of 0, 1 and NaN.

    Notes
    -----
    Sources: Chow, "On optimum recognition error and reject tradeoff", 1970 (errors against rejections); El-Yaniv and
    Wiener, "On the foundations of noise-free selective classification", 2010 (risk-coverage curve); Geifman and
    El-Yaniv, "Selective classification for deep neural networks", 2017 (selection by a threshold).

    Examples
    --------
    Errors among the surest 1, 2 and 4 of 4: 0, 1, 2. The last two are equally sure.

    >>> curve, rows = risk_coverage(
    ...     np.array([0.9, 0.8, 0.5, 0.5]), np.array([1.0, 0.0, 1.0, 0.0]), np.arange(4),
    ...     place=Place("j"), signal="stated", settings=Settings(0.95, 100, 1),
    ... )
    >>> curve[["threshold", "coverage", "agreement"]].to_numpy().tolist()
    [[0.9, 0.25, 1.0], [0.8, 0.5, 0.5], [0.5, 1.0, 0.5]]
    >>> [row["estimate"] for row in rows]
    [0.375, 0.125]
    """
    sure, correct = (np.asarray(values, dtype=np.float64) for values in (confidence, right))
    _check(sure, correct, items)
    used = ~np.isnan(sure) & ~np.isnan(correct)
    slice_ = f"signal={signal}" if place.slice_ == "all" else f"{place.slice_}, signal={signal}"
    part = Place(place.judge, place.strategy, place.pass_, slice_)
    known = ~np.isnan(correct)
    reasons = {"without_verdict_or_reference": int((~known).sum()), "without_confidence": int((known & ~used).sum())}
    note = excluded_note(len(used), "verdicts", **reasons)
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": len(np.unique(items[used]))}
    common["n_excluded"] = len(np.unique(items)) - common["n_used"]
    measures = {"area_under_risk_coverage": _area, "risk_coverage_gain": _gain}
    if not used.any():
        told = joined("undefined: no verdict with a confidence and a label", note)
        return _curve([]), [part.row(name, NAN, note=told, **common) for name in measures]
    thresholds, group = np.unique(-sure[used], return_inverse=True)
    table = _by_group(items[used], group.ravel(), correct[used], len(thresholds))
    curve = _curve(_points(items[used], group.ravel(), correct[used], -thresholds, signal, part, table, settings))
    method = f"step function over {len(thresholds)} distinct confidences"
    note = joined("every verdict has the same confidence" if len(thresholds) == 1 else "", note)
    rows = [
        table_row(
            name, part, table, measure, settings=settings, note=note, undefined="no verdict", method=method, **common
        )
        for name, measure in measures.items()
    ]
    return curve, rows


def _check(confidence: Floats, right: Floats, items: NDArray[Any]) -> None:
    if not len(confidence) == len(right) == len(items):
        raise ValueError(f"{len(confidence)} confidences, {len(right)} outcomes, {len(items)} items: not as many")
    for values, wrong, what in (
        (confidence, np.isinf(confidence), "confidences are infinite"),
        (right, ~np.isnan(right) & (right != 0) & (right != 1), "outcomes are none of 0, 1 and NaN"),
    ):
        if wrong.any():
            raise ValueError(f"{int(wrong.sum())} of {len(values)} {what}, first {values[wrong][0]:g}")


def _by_group(items: NDArray[Any], group: Ints, right: Floats, m: int) -> ItemTable:
    """What each item adds to the wrong verdicts of the m confidences, then to all verdicts of each."""
    names, rows = np.unique(items, return_inverse=True)
    places = (np.tile(rows.ravel(), 2), np.concatenate([group, m + group]))
    counts = np.concatenate([1 - right, np.ones(len(right))])
    sums = sparse.csr_array(sparse.coo_array((counts, places), shape=(len(names), 2 * m)))
    if len(names) * 2 * m <= DENSE:
        return ItemTable.of(np.arange(len(names)), sums.toarray())
    return ItemTable(sums, np.ones(len(names), dtype=np.int64))


def _risks(totals: Floats) -> tuple[Floats, Floats]:
    """N_g and r_g at each threshold, shape (b, m); r_g is 0 where nothing is decided, which has no weight."""
    m = totals.shape[1] // 2
    wrong, decided = np.cumsum(totals[:, :m], axis=1), np.cumsum(totals[:, m:], axis=1)
    risk = np.zeros(wrong.shape)
    np.divide(wrong, decided, out=risk, where=decided > 0)
    return decided, risk


def _area(totals: Floats) -> Floats:
    """A, shape (1, b); NaN without a verdict."""
    decided, risk = _risks(totals)
    area = np.full(len(totals), NAN)
    weighted = (np.diff(decided, axis=1, prepend=0.0) * risk).sum(axis=1)
    np.divide(weighted, decided[:, -1], out=area, where=decided[:, -1] > 0)
    return area[np.newaxis, :]


def _gain(totals: Floats) -> Floats:
    return _risks(totals)[1][np.newaxis, :, -1] - _area(totals)


def _agreement(totals: Floats, *, chosen: slice) -> Floats:
    """1 − r_g at some thresholds, one a row; NaN where nothing is decided."""
    decided, risk = (each[:, chosen] for each in _risks(totals))
    return np.where(decided > 0, 1 - risk, NAN).T


def _points(
    items: NDArray[Any],
    group: Ints,
    right: Floats,
    thresholds: Floats,
    signal: str,
    place: Place,
    table: ItemTable,
    settings: Settings,
) -> Iterator[tuple[Any, ...]]:
    """The rows of the curve, from the highest threshold on."""
    m, n = len(thresholds), len(right)
    decided = np.cumsum(np.bincount(group, minlength=m))
    correct = np.cumsum(np.bincount(group, right, minlength=m))
    names, codes = np.unique(items, return_inverse=True)
    single = len(names) == n
    if not single and m <= MAXIMUM_THRESHOLDS:
        first = np.full(len(names), m)
        np.minimum.at(first, codes.ravel(), group)
        n_items = np.cumsum(np.bincount(first, minlength=m))
        sampled = _sampled_agreements(table, m, place, settings)
    for g, (count, hits) in enumerate(zip(decided.tolist(), correct.tolist(), strict=True)):
        low, high = NAN, NAN
        if single:
            low, high = wilson(hits, count, settings.ci_level)
        elif m <= MAXIMUM_THRESHOLDS:
            low, high = interval_of(next(sampled), hits / count, int(n_items[g]), "rate", settings)["interval"]
        yield signal, float(thresholds[g]), count / n, count, int(hits), count, hits / count, low, high


def _sampled_agreements(table: ItemTable, m: int, place: Place, settings: Settings) -> Iterator[Floats]:
    """Bootstrap values of the agreement at each threshold, all from the same resamples.

    They are drawn again for every few thresholds, so that memory does not grow with the resamples.
    """
    step = max(1, CHUNK // settings.resamples)
    for start in range(0, m, step):
        rng = place.rng("agreement", settings)
        few = partial(_agreement, chosen=slice(start, start + step))
        yield from bootstrap(table, few, resamples=settings.resamples, rng=rng)


def _curve(points: Any) -> pd.DataFrame:
    table = pd.DataFrame(list(points), columns=list(CURVE))
    for column in ("threshold", "coverage", "agreement", "ci_low", "ci_high"):
        table[column] = table[column].astype(np.float64)
    for column in ("n_decided", "numerator", "denominator"):
        table[column] = table[column].astype(np.int64)
    table["signal"] = table["signal"].astype(object)
    return table


def risk_coverage_table(
    verdicts: pd.DataFrame,
    normalized: pd.DataFrame,
    *,
    labels: Sequence[str],
    panel: Sequence[str] | None = None,
    ci_level: float,
    resamples: int,
    seed: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Risk and coverage of every judge's original pass under every signal of :func:`confidence_signals`.

    Returns
    -------
    curves : DataFrame
        judge, pass and the columns of the curve of :func:`risk_coverage`.
    rows : DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`: ``area_under_risk_coverage`` and ``risk_coverage_gain``, slices
        ``signal=<s>``. Judges stand in the order of their names, signals in that of :data:`SIGNALS`.

    Raises
    ------
    ValueError
        As :func:`confidence_signals` and :func:`risk_coverage`.

    Notes
    -----
    See :func:`risk_coverage` for formulas and sources. ``panel_spread`` and ``swap_stability`` cost further calls:
    their coverage counts judgments, not calls.
    """
    settings = Settings(ci_level, resamples, seed)
    signals = confidence_signals(verdicts, normalized, labels=labels, panel=panel)
    original = signals[signals["pass"] == "original"]
    curves: list[pd.DataFrame] = []
    lines: list[dict[str, Any]] = []
    for (judge, signal), group in original.groupby(["judge", "signal"], sort=False):
        sure, right = (group[name].to_numpy(np.float64) for name in ("confidence", "right"))
        items = pd.factorize(group["item_id"])[0].astype(np.int64)
        place = Place(str(judge), "pairwise", "original")
        curve, rows = risk_coverage(sure, right, items, place=place, signal=str(signal), settings=settings)
        curves.append(curve.assign(judge=str(judge), **{"pass": "original"}))
        lines += rows
    columns = ["judge", "pass", *CURVE]
    filled = [curve for curve in curves if len(curve)]
    together = pd.concat(filled, ignore_index=True) if filled else _curve([]).assign(judge="", **{"pass": ""})
    return together[columns], frame(lines)
