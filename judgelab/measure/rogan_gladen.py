"""The rate behind a judge's rate, from how often the judge is right on each side."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import norm

from judgelab.measure.judged_sample import Corrected, JudgedSample, design_effect
from judgelab.measure.resampling import Floats
from judgelab.measure.rows import joined

__all__ = ["rogan_gladen"]

NAN = float("nan")
PSEUDO = 0.5  # added to each of the four labelled cells, in the variance only


def rogan_gladen(human: Any, judge: Any, items: Any = None, *, level: float) -> Corrected:
    """The share of units of which people would say 1, from a judge's decisions and a labelled part of them.

    With p the judge's rate over all judged units, TPR = P(judge 1 | human 1) and TNR = P(judge 0 | human 0) over the
    labelled ones::

        θ = (p + TNR − 1) / (TPR + TNR − 1)

    The interval holds every θ in [0, 1] for which g(θ) = p − θ TPR − (1 − θ)(1 − TNR), whose mean is 0 at the truth,
    is no more than z standard errors from 0 (Fieller's construction). The variance of g takes both samples in, and
    that the labelled units are among the judged ones: unit i has the influence ::

        ψᵢ = (fᵢ − p)/N − θ [human 1] (fᵢ − TPR)/n₁ − (1 − θ) [human 0] (fᵢ − FPR)/n₀

    Half a unit is added to each of the four labelled cells in the variance, so that a judge without a seen error is
    not taken for one without errors; where items have several units, the variance is multiplied by its
    :func:`~judgelab.measure.judged_sample.design_effect`.

    Parameters
    ----------
    human : array-like of shape (n,)
        1 or 0 by people, NaN where a unit has no label.
    judge : array-like of shape (n,)
        1 or 0 by the judge.
    items : array-like of shape (n,), optional
        Item of each unit; None: an item a unit.
    level : float
        Coverage.

    Returns
    -------
    Corrected
        Estimate in [0, 1] (the note says where it was cut to that range), and what it rests on. NaN with the reason
        with fewer than two labelled items, where nobody labelled a 1 or a 0, or TPR + TNR is 1 or less. Where
        TPR + TNR − 1 cannot be told from 0, the interval is [0, 1].

    Raises
    ------
    ValueError
        If a label or decision is not allowed.

    Notes
    -----
    TPR and TNR must be the same in the labelled and the unlabelled part; the shares of 1 may differ. Sources: Rogan
    and Gladen, "Estimating prevalence from the results of a screening test", 1978; Fieller, "Some
    problems in interval estimation", 1954; that intervals from p alone cover too little: Lang and Reiczigel,
    "Confidence limits for prevalence of disease adjusted for estimated sensitivity and specificity", 2014; for
    judges: Lee et al., "How to correctly report LLM-as-a-judge evaluations", 2025. Where every unit is labelled, the
    estimate is the labelled rate. Checked by simulation and against a plain implementation.

    Examples
    --------
    Ten labelled ones (8 right) and ten labelled zeros (all right); of 100 units without a label the judge calls 28 a
    one, so that p = 36/120 and θ = 0.3 / 0.8.

    >>> human = [1] * 10 + [0] * 10 + [float("nan")] * 100
    >>> judge = [1] * 8 + [0] * 12 + [1] * 28 + [0] * 72
    >>> found = rogan_gladen(human, judge, level=0.95)
    >>> round(found.estimate, 4), found.basis
    (0.375, 'TPR 8/10, TNR 10/10')
    """
    sample = JudgedSample.of(human, judge, items)
    if not np.isin(sample.judge, (0.0, 1.0)).all():
        wrong = sample.judge[~np.isin(sample.judge, (0.0, 1.0))]
        raise ValueError(f"{len(wrong)} of {len(sample.judge)} decisions are not 0 or 1, first {wrong[0]:g}")
    ones, zeros = sample.human == 1, sample.human == 0
    n_one, n_zero = int(ones.sum()), int(zeros.sum())
    hits, false_alarms = float(sample.judge[ones].sum()), float(sample.judge[zeros].sum())
    basis = f"TPR {hits:.0f}/{n_one}, TNR {n_zero - false_alarms:.0f}/{n_zero}"
    if sample.n_labelled_items < 2:
        return _undefined(f"{sample.n_labelled_items} labelled item, needed are 2", basis)
    if not n_one or not n_zero:
        missing = "positive" if not n_one else "negative"
        return _undefined(f"no labelled {missing}, the judge's rate there is unknown", basis)
    rate, fpr = float(sample.judge.mean()), false_alarms / n_zero
    informed = hits * n_zero - false_alarms * n_one  # (TPR − FPR) n₁ n₀ in whole numbers
    youden = informed / (n_one * n_zero)
    if informed <= 0:
        return _undefined(f"TPR + TNR − 1 is {youden:.3g}: the judge is no better than chance", basis)
    estimate = (rate - fpr) / youden
    parts = _influence(sample, rate, hits / n_one, fpr, (n_one, n_zero))
    inside = min(max(estimate, 0.0), 1.0)
    effect = design_effect(parts[0] - inside * parts[1], sample.items)
    variance = effect * _variance(sample, rate, (n_one, n_zero), (hits, false_alarms))
    low, high, why = _fieller(rate - fpr, youden, variance, float(norm.ppf((1 + level) / 2)))
    cut = f"cut to [0, 1] from {estimate:.3g}" if estimate != inside else ""
    spread = float(variance @ [1, -inside, inside**2]) / youden**2
    return Corrected(inside, low, high, spread, NAN, basis, joined(cut, why))


def _undefined(reason: str, basis: str) -> Corrected:
    return Corrected(NAN, NAN, NAN, NAN, NAN, basis, f"undefined: {reason}")


def _influence(
    sample: JudgedSample, rate: float, tpr: float, fpr: float, sizes: tuple[float, float]
) -> tuple[Floats, Floats]:
    """The two parts u, w of each unit's influence ψ = u − θ w."""
    on_ones = np.where(sample.human == 1, sample.judge - tpr, 0.0) / sizes[0]
    on_zeros = np.where(sample.human == 0, sample.judge - fpr, 0.0) / sizes[1]
    return (sample.judge - rate) / len(sample.judge) - on_zeros, on_ones - on_zeros


def _variance(sample: JudgedSample, rate: float, sizes: tuple[int, int], ones_by_judge: tuple[float, float]) -> Floats:
    """Σ u², 2 Σ u w, Σ w² with ψ = u − θ w, of independent units, half a unit added to each labelled cell."""
    n = len(sample.judge)
    n_one, n_zero = (size + 2 * PSEUDO for size in sizes)
    hits, alarms = (count + PSEUDO for count in ones_by_judge)
    tpr, fpr = hits / n_one, alarms / n_zero
    unlabelled = sample.judge[~sample.labelled]
    # One row a cell: how many units, human label, judge's decision.
    counts = np.array([hits, n_one - hits, alarms, n_zero - alarms])
    decided = np.array([1.0, 0.0, 1.0, 0.0])
    on_ones = np.array([(1 - tpr) / n_one, -tpr / n_one, 0.0, 0.0])
    on_zeros = np.array([0.0, 0.0, (1 - fpr) / n_zero, -fpr / n_zero])
    u, w = (decided - rate) / n - on_zeros, on_ones - on_zeros
    alone = float((((unlabelled - rate) / n) ** 2).sum())
    return np.array([(counts * u * u).sum() + alone, 2 * (counts * u * w).sum(), (counts * w * w).sum()])


def _fieller(above: float, youden: float, variance: Floats, z: float) -> tuple[float, float, str]:
    """The θ in [0, 1] with (above − θ youden)² ≤ z² (v₀ − v₁ θ + v₂ θ²)."""
    square = youden**2 - z * z * variance[2]
    linear = -2 * above * youden + z * z * variance[1]
    constant = above**2 - z * z * variance[0]
    if square <= 0:
        return 0.0, 1.0, "TPR + TNR − 1 cannot be told from 0: the interval is everything"
    root = math.sqrt(max(linear**2 - 4 * square * constant, 0.0))
    low, high = (-linear - root) / (2 * square), (-linear + root) / (2 * square)
    if high < 0 or low > 1:
        return NAN, NAN, "no interval: the judge's rate contradicts its labelled part, it lies outside [0, 1]"
    return max(low, 0.0), min(high, 1.0), ""
