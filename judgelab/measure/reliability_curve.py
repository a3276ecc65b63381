"""Are probabilities of acceptance true? Their squared error and their gap to the acceptance rate, in all and by bin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.coding import excluded_note
from judgelab.measure.estimates import Place, Settings, mean_row, rate_row, table_row
from judgelab.measure.intervals import wilson
from judgelab.measure.resampling import Floats, Ints, ItemTable
from judgelab.measure.rows import joined
from judgelab.measure.tuning import check_outcomes

__all__ = ["CALIBRATION_MEASURES", "CURVE", "calibration_rows", "reliability_curve"]

NAN = float("nan")
CALIBRATION_MEASURES = (
    "brier_score",
    "brier_skill",
    "expected_calibration_error",
    "calibration_gap",
    "acceptance_rate",
)
CURVE = ("bin", "low", "high", "mean_probability", "accepted", "n", "rate", "ci_low", "ci_high", "note")
DECIMALS = 9  # 0.7 · 10 is 7.000000000000001 in binary: without rounding it would leave its bin


def calibration_rows(
    place: Place,
    items: NDArray[Any],
    probabilities: Floats,
    accepted: Floats,
    *,
    bins: int = 10,
    settings: Settings,
) -> Iterator[dict[str, Any]]:
    """How far probabilities of acceptance are from what people accepted.

    With pᵢ the probability of answer i of n, yᵢ = 1 where people accept it and 0 where not, and B the bins of equal
    width of :func:`reliability_curve`::

        brier_score                 Σ (pᵢ − yᵢ)² / n
        brier_skill                 1 − brier_score / (ȳ (1 − ȳ)),  ȳ = Σ yᵢ / n
        expected_calibration_error  Σ_B (n_B / n) |p̄_B − ȳ_B| = Σ_B |Σ_{i in B} (pᵢ − yᵢ)| / n
        calibration_gap             Σ (pᵢ − yᵢ) / n
        acceptance_rate             Σ yᵢ / n

    ==========================  ============  =======================================================================
    measure                     range         what it says
    ==========================  ============  =======================================================================
    brier_score                 0 to 1        lower is better; always saying 1/2 gives 1/4
    brier_skill                 −∞ to 1       above 0: better than saying the acceptance rate of these very answers
                                              for each of them; undefined where people accept all or none
    expected_calibration_error  0 to 1        lower is better; biased upward, see below
    calibration_gap             −1 to 1       above 0: the judge promises more than people accept
    acceptance_rate             0 to 1        what people accept, whatever the judge
    ==========================  ============  =======================================================================

    Parameters
    ----------
    place : Place
        What the rows are of.
    items : array of shape (n,)
        Item of each answer; items are resampled whole, the bins stay.
    probabilities : array of shape (n,)
        0 to 1; NaN where there is none.
    accepted : array of shape (n,)
        1, 0, or NaN where there is no label.
    bins : int
        Number of bins of the expected calibration error.
    settings : Settings
        Coverage of intervals, number of bootstrap resamples, the protocol's seed.

    Yields
    ------
    dict
        The rows of :data:`CALIBRATION_MEASURES`, all over the answers with both a probability and a label; NaN
        without one. ``acceptance_rate`` has Wilson's interval where each item has one answer.

    Raises
    ------
    ValueError
        If the arrays are not as long, a probability lies outside [0, 1], ``accepted`` is none of 0, 1 and NaN, or
        ``bins`` is below 1.

    Notes
    -----
    The expected calibration error takes absolute values of rates of few answers each, so it is above 0 even for true
    probabilities. Its note says about how much those would give if the answers were independent: with Σ_B the sum over
    answers of a bin, Σ_B √(2/π Σ_{i in B} pᵢ (1 − pᵢ)) / n, the mean absolute value of normal errors of that variance.
    The bootstrap adds the same bias once more, so the interval lies too high and that it lies above 0 says nothing.

    Sources: Brier, "Verification of forecasts expressed in terms of probability", 1950 (half of his score, which sums
    over both outcomes); Murphy, "Skill scores based on the mean square error and their relationships to the
    correlation coefficient", 1988; Naeini, Cooper and Hauskrecht, "Obtaining well calibrated probabilities using
    Bayesian binning", 2015 (equal width); its bias: Roelofs et al., "Mitigating bias in calibration error
    estimation", 2022. Checked against ``sklearn.metrics.brier_score_loss`` and
    ``sklearn.calibration.calibration_curve``.

    Examples
    --------
    >>> rows = calibration_rows(
    ...     Place("j"), np.arange(4), np.array([0.0, 0.5, 0.5, 1.0]), np.array([0.0, 0.0, 0.0, 1.0]),
    ...     settings=Settings(0.95, 100, 1),
    ... )
    >>> {row["measure"]: round(row["estimate"], 4) for row in rows}  # doctest: +NORMALIZE_WHITESPACE
    {'brier_score': 0.125, 'brier_skill': 0.3333, 'expected_calibration_error': 0.25, 'calibration_gap': 0.25,
     'acceptance_rate': 0.25}
    """
    p, y, names = _checked(probabilities, accepted, items, bins)
    known = ~np.isnan(y)
    used = known & ~np.isnan(p)
    reasons = {"without_label": int((~known).sum()), "without_probability": int((known & ~used).sum())}
    note = excluded_note(len(used), "answers", **reasons)
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": len(np.unique(names[used]))}
    common["n_excluded"] = len(np.unique(names)) - common["n_used"]
    if not used.any():
        for measure in CALIBRATION_MEASURES:
            counts = {"numerator": 0, "denominator": 0} if measure == "acceptance_rate" else {}
            told = joined("undefined: no answer with a probability and a label", note)
            yield place.row(measure, NAN, note=told, **counts, **common)
        return
    miss = np.where(used, p - y, NAN)
    yield mean_row("brier_score", place, names, miss**2, settings=settings, note=note)
    squares = np.column_stack([miss**2, y, np.ones(len(y))])[used]
    yield table_row(
        "brier_skill",
        place,
        ItemTable.of(names[used], squares),
        _skill,
        settings=settings,
        note=note,
        undefined="people accept all of the answers or none",
        **common,
    )
    where = _bin_of(p[used], bins)
    sums = np.where(where[:, np.newaxis] == np.arange(bins), miss[used, np.newaxis], 0.0)
    chance = _error_of_true_probabilities(p[used], where, bins)
    yield table_row(
        "expected_calibration_error",
        place,
        ItemTable.of(names[used], np.column_stack([sums, np.ones(len(sums))])),
        _expected_error,
        settings=settings,
        note=joined(f"biased upward, as is its interval: true probabilities would give about {chance:.3f}", note),
        undefined="no answer",
        method=f"{bins} bins of equal width",
        **common,
    )
    yield mean_row("calibration_gap", place, names, miss, settings=settings, note=note)
    yield rate_row("acceptance_rate", place, names, np.where(used, y, NAN), settings=settings, note=note)


def reliability_curve(
    probabilities: Floats, accepted: Floats, items: NDArray[Any], *, bins: int = 10, ci_level: float
) -> pd.DataFrame:
    """What people accepted of the answers that were given about the same probability.

    Bin b = 1, ..., B holds the probabilities above (b − 1) / B up to b / B, the first bin 0, too. Probabilities within
    1e-9 / B of a bound count as the bound. True probabilities have ``mean_probability`` near ``rate`` in every bin.

    Parameters
    ----------
    probabilities, accepted, items : array of shape (n,)
        As for :func:`calibration_rows`; answers without both are left out.
    bins : int
        Number B of bins of equal width.
    ci_level : float
        Coverage of the intervals.

    Returns
    -------
    DataFrame
        One row a bin, empty ones too: bin (from 1), low, high, mean_probability, accepted, n, rate = accepted / n,
        ci_low, ci_high, note. The interval is Wilson's where each item has one answer in the bin. Elsewhere it is
        Wilson's on n² / Σ mᵢ² answers, mᵢ being those of item i: the answers of an item taken as always agreeing, the
        most that clustering can take away (Kish's design effect at correlation 1); the note says so. An empty bin has
        NaN and a note.

    Raises
    ------
    ValueError
        As :func:`calibration_rows`, or if ``ci_level`` is not above 0 and below 1.

    Notes
    -----
    Sources: Murphy and Winkler, "Reliability of subjective probability forecasts of precipitation and temperature",
    1977; Kish, *Survey Sampling*, 1965. Checked against ``sklearn.calibration.calibration_curve``, which
    has the same bins without the empty ones.

    Examples
    --------
    >>> curve = reliability_curve(
    ...     np.array([0.1, 0.5, 0.9, 1.0]), np.array([0, 1, 1, 0]), np.arange(4), bins=2, ci_level=0.95
    ... )
    >>> curve[["low", "high", "mean_probability", "accepted", "n", "rate"]].to_numpy().round(3).tolist()
    [[0.0, 0.5, 0.3, 1.0, 2.0, 0.5], [0.5, 1.0, 0.95, 1.0, 2.0, 0.5]]
    """
    if not 0 < ci_level < 1:
        raise ValueError(f"ci_level is {ci_level}; allowed is above 0 and below 1")
    p, y, names = _checked(probabilities, accepted, items, bins)
    used = ~np.isnan(p) & ~np.isnan(y)
    p, y, names = p[used], y[used], names[used]
    where = _bin_of(p, bins)
    lines = []
    for number in range(bins):
        here = where == number
        bounds = (number + 1, number / bins, (number + 1) / bins)
        lines.append((*bounds, *_point(p[here], y[here], names[here], ci_level)))
    table = pd.DataFrame(lines, columns=list(CURVE))
    return table.astype({"note": object})


def _point(p: Floats, y: Floats, items: NDArray[Any], level: float) -> tuple[Any, ...]:
    """What stands in one bin: from mean_probability to note."""
    n = len(p)
    if not n:
        return NAN, 0, 0, NAN, NAN, NAN, "undefined: no answer"
    sizes = np.unique(items, return_counts=True)[1]
    rate = float(y.mean())
    effective = n if len(sizes) == n else n * n / float((sizes**2).sum())
    note = "" if len(sizes) == n else f"interval as of {effective:.1f} answers: {n} answers of {len(sizes)} items"
    bounds = wilson(int(y.sum()) if effective == n else rate * effective, effective, level)
    return float(p.mean()), int(y.sum()), n, rate, *bounds, note


def _checked(
    probabilities: Floats, accepted: Floats, items: NDArray[Any], bins: int
) -> tuple[Floats, Floats, NDArray[Any]]:
    """The three arrays, refused where they are not what they should be."""
    p, y = (np.asarray(values, dtype=np.float64) for values in (probabilities, accepted))
    names = np.asarray(items)
    check_outcomes(p, y, names, what="probabilities")
    off = (p < 0) | (p > 1)
    if off.any():
        raise ValueError(f"{int(off.sum())} of {len(p)} probabilities lie outside 0 to 1, first {p[off][0]:g}")
    if bins < 1:
        raise ValueError(f"bins is {bins}; allowed is 1 and more")
    return p, y, names


def _bin_of(p: Floats, bins: int) -> Ints:
    """Bin of each probability, from 0 on; a bound belongs to the bin below it."""
    return np.maximum(np.ceil(np.round(p * bins, DECIMALS)).astype(np.int64) - 1, 0)


def _skill(totals: Floats) -> Floats:
    """1 − Brier / (ȳ (1 − ȳ)) from sums of squares, accepted and answers; NaN where ȳ is 0 or 1."""
    squares, good, n = totals.T
    # Multiplied out: n Σ (p − y)² / (G (n − G)), whose denominator is a whole number and exactly 0 if it is.
    skill = np.full(len(totals), NAN)
    np.divide(n * squares, good * (n - good), out=skill, where=good * (n - good) > 0)
    return 1 - skill[np.newaxis, :]


def _expected_error(totals: Floats) -> Floats:
    """Σ_B |Σ (p − y)| / n from the sums of the bins and the number of answers."""
    return (np.abs(totals[:, :-1]).sum(axis=1) / totals[:, -1])[np.newaxis, :]


def _error_of_true_probabilities(p: Floats, where: Ints, bins: int) -> float:
    """About the expected calibration error if every p were true and the answers independent."""
    variance = np.bincount(where, p * (1 - p), minlength=bins)
    return float(np.sqrt(2 / np.pi * variance).sum() / len(p))
