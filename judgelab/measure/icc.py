"""Intraclass correlation: how far scores of the same answers are interchangeable, not only similarly ordered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgelab.measure.carriers import carriers
from judgelab.measure.coding import excluded_note
from judgelab.measure.estimates import Place, Settings, interval_of
from judgelab.measure.resampling import Floats, Ints, ItemTable, bootstrap
from judgelab.measure.rows import joined

__all__ = ["icc_from_totals", "icc_rows"]

NAN = float("nan")
ROUNDING = 1e-12
NAMES = {
    "icc_2_1": "ICC(2,1): one rater, absolute agreement",
    "icc_2_k": "ICC(2,k): mean of the raters, absolute agreement",
    "icc_3_1": "ICC(3,1): one rater, consistency",
}


def icc_rows(place: Place, items: Ints, scores: Floats, *, settings: Settings) -> Iterator[dict[str, Any]]:
    """Three intraclass correlations of k raters' scores, from a two-way analysis of variance.

    With n answers scored by all k raters and the mean squares of answers (MSR), raters (MSC) and error (MSE)::

        ICC(2,1) = (MSR − MSE) / (MSR + (k − 1) MSE + k (MSC − MSE) / n)
        ICC(2,k) = (MSR − MSE) / (MSR + (MSC − MSE) / n)
        ICC(3,1) = (MSR − MSE) / (MSR + (k − 1) MSE)

    ICC(2, ·) falls when one rater is more lenient than another, ICC(3,1) does not.

    Parameters
    ----------
    items : array of shape (n,)
        Item of each answer; items are resampled whole.
    scores : array of shape (n, k)
        NaN where a rater gave none; answers without all k scores are left out and counted.

    Returns
    -------
    iterator of dict
        Rows ``icc_2_1``, ``icc_2_k``, ``icc_3_1``: 1 is perfect, around 0 no more alike than scores of different
        answers, below 0 less (where raters contradict each other and answers hardly differ, the formulas leave −1 to
        1). NaN with the reason for fewer than two raters or answers, or scores that do not vary.

    Raises
    ------
    ValueError
        If a score is infinite.

    Notes
    -----
    Source: Shrout and Fleiss, "Intraclass correlations: uses in assessing rater reliability", 1979, table 4 and
    equations on p. 423. Estimates equal ``pingouin.intraclass_corr`` (there ICC(A,1), ICC(A,k), ICC(C,1)). The
    interval is a bootstrap over items and not the F distribution's, since answers of one item hang together.

    Examples
    --------
    Two answers, two raters: MSR = 6.25, MSC = MSE = 0.25, so that ICC(2,1) = 6 / (6.25 + 0.25).

    >>> scores = np.array([[1.0, 2.0], [4.0, 4.0]])
    >>> rows = icc_rows(Place(), np.arange(2), scores, settings=Settings(0.95, 100, 1))
    >>> round(next(rows)["estimate"], 6)
    0.923077
    """
    infinite = int(np.isinf(scores).sum())
    if infinite:
        raise ValueError(f"{infinite} of {scores.size} scores are infinite; first in answer {_first(np.isinf(scores))}")
    whole = ~np.isnan(scores).any(axis=1)
    n_items, k = len(np.unique(items[whole])), scores.shape[1]
    left_out = excluded_note(len(scores), "answers", without_all_scores=int((~whole).sum()))
    note = joined(f"over {int(whole.sum())} answers", left_out)
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = len(np.unique(items)) - n_items
    reason = _why_undefined(scores[whole], k)
    if reason:
        for name, method in NAMES.items():
            yield place.row(name, NAN, method=method, note=joined(f"undefined: {reason}", note), **common)
        return
    table = ItemTable.of(items[whole], _features(scores[whole]))
    estimates = icc_from_totals(table.totals, k)[:, 0]
    rng = place.rng("icc", settings)
    sampled = bootstrap(table, lambda totals: icc_from_totals(totals, k), resamples=settings.resamples, rng=rng)
    carried = carriers(table, lambda totals: icc_from_totals(totals, k))
    for (name, method), estimate, values, few in zip(NAMES.items(), estimates, sampled, carried, strict=True):
        if np.isnan(estimate):
            told = joined("undefined: the mean squares leave nothing to divide by", note)
            yield place.row(name, NAN, method=method, note=told, **common)
            continue
        made = interval_of(values, float(estimate), n_items, "coefficient", settings, carrying=float(few))
        made["note"], made["method"] = joined(made["note"], note), joined(method, made["method"])
        yield place.row(name, float(estimate), **made, **common)


def _first(flags: NDArray[np.bool_]) -> int:
    return int(flags.any(axis=1).argmax()) + 1


def _why_undefined(scores: Floats, k: int) -> str:
    if k < 2 or len(scores) < 2:
        raters, answers = f"{k} rater{'s' * (k != 1)}", f"{len(scores)} answer{'s' * (len(scores) != 1)}"
        return f"{raters} and {answers} with all scores, 2 of each are needed"
    return "every score is the same" if float(np.ptp(scores)) == 0 else ""


def _features(scores: Floats) -> Floats:
    """Per answer: 1, (Σⱼ xⱼ)², Σⱼ xⱼ², x₁ ... x_k; from the grand mean, which keeps the squares small."""
    centred = scores - scores.mean()
    ones = np.ones(len(scores))
    return np.column_stack([ones, centred.sum(axis=1) ** 2, (centred**2).sum(axis=1), centred])


def icc_from_totals(totals: Floats, k: int) -> Floats:
    """ICC(2,1), ICC(2,k), ICC(3,1) from sums over answers, vectorised.

    Parameters
    ----------
    totals : array of shape (b, 3 + k)
        Σ 1, Σ (Σⱼ xⱼ)², Σ Σⱼ xⱼ² and Σ xⱼ of each rater.
    k : int
        Raters.

    Returns
    -------
    array of shape (3, b)
        NaN for fewer than two answers, or where the denominator is 0.
    """
    n, row_squares, squares = totals[:, 0], totals[:, 1], totals[:, 2]
    raters = totals[:, 3:]
    undefined = np.full(len(n), NAN)
    several = n >= 2
    correction = np.divide(raters.sum(axis=1) ** 2, n * k, out=undefined.copy(), where=several)
    between = row_squares / k - correction
    columns = np.divide((raters**2).sum(axis=1), n, out=undefined.copy(), where=several) - correction
    error = np.maximum(squares - correction - between - columns, 0.0)
    msr = np.divide(between, n - 1, out=undefined.copy(), where=several)
    mse = np.divide(error, (n - 1) * (k - 1), out=undefined.copy(), where=several)
    msc = columns / (k - 1)
    below = [msr + (k - 1) * mse + k * (msc - mse) / n, msr + (msc - mse) / n, msr + (k - 1) * mse]
    scale = ROUNDING * np.where(several, squares, 1.0)
    return np.stack(
        [np.divide(msr - mse, each, out=undefined.copy(), where=several & (np.abs(each) > scale)) for each in below]
    )
