"""From scores to the probability that people accept the answer, learned on development items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from judgelab.measure.coding import excluded_note
from judgelab.measure.preferences import TOLERANCE
from judgelab.measure.resampling import Floats
from judgelab.measure.rows import joined
from judgelab.measure.tuning import FEW, check_outcomes

__all__ = ["Recalibration", "as_probability", "fit_isotonic"]

NAN = float("nan")
DECIMALS = 9  # those of TOLERANCE: scores that differ by the rounding of their sums are one score


@dataclass(frozen=True)
class Recalibration:
    """A rising function from scores to probabilities, made by :func:`fit_isotonic`.

    Attributes
    ----------
    thresholds : tuple of float
        Scores x₁ < x₂ < ... between which the function is linear; empty if nothing was learned.
    values : tuple of float
        The probabilities at them, none below the one before, each 0 to 1.
    n_answers, n_items : int
        Development answers it was learned on, and their items.
    note : str
        Why there is none (from "undefined: " on), what is wrong with it, cautions; empty if nothing.
    """

    thresholds: tuple[float, ...]
    values: tuple[float, ...]
    n_answers: int
    n_items: int
    note: str = ""

    def predict(self, scores: Floats) -> Floats:
        """Probabilities that people accept, shape (n,).

        A score between two thresholds is interpolated, one beyond them gets the probability of the nearest. NaN stays
        NaN, and everything is NaN if nothing was learned.

        Raises
        ------
        ValueError
            If a score is infinite.
        """
        given = np.asarray(scores, dtype=np.float64)
        if np.isinf(given).any():
            raise ValueError(f"{int(np.isinf(given).sum())} of {given.size} scores are infinite")
        if not self.thresholds:
            return np.full(given.shape, NAN)
        found: Floats = np.asarray(np.interp(given, self.thresholds, self.values), dtype=np.float64)
        found[np.isnan(given)] = NAN
        return found


def fit_isotonic(scores: Floats, accepted: Floats, items: NDArray[Any]) -> Recalibration:
    """Learn from development answers how likely people accept an answer of a given score.

    Isotonic regression: of all functions f that do not fall with the score, the one of the least Σ (accepted − f)²
    over the answers, each counting once. Equal scores (within 1e-9) are pooled; runs of scores whose acceptance rates
    fall are merged into one rate, so a higher score never gets a lower probability, and different scores may get the
    same one: the order of answers can lose detail, never turn round.

    Parameters
    ----------
    scores : array of shape (n,)
        The judge's scores of development answers, any scale, higher is better; NaN where there is none.
    accepted : array of shape (n,)
        1 where people accept the answer, 0 where not, NaN where there is no label.
    items : array of shape (n,)
        Item of each answer; only counted.

    Returns
    -------
    Recalibration
        Made whatever the answers are; ``note`` says where it is of no use:

        =======================================  ===============================================================
        answers                                  what is learned
        =======================================  ===============================================================
        none with both a score and a label       nothing ("undefined: "): predictions are NaN
        one score only                           the acceptance rate, for every score
        acceptance does not rise with the score  the acceptance rate, for every score
        all accepted, or none                    1, or 0, for every score
        fewer than 20                            the function, with a caution
        =======================================  ===============================================================

    Raises
    ------
    ValueError
        If the arrays are not as long, a score is infinite, or ``accepted`` is none of 0, 1 and NaN.

    Notes
    -----
    Sources: Ayer et al., "An empirical distribution function for sampling with incomplete information", 1955 (pooling
    of adjacent violators); Zadrozny and Elkan, "Transforming classifier scores into accurate multiclass probability
    estimates", 2002 (as calibration). Made by ``sklearn.isotonic.IsotonicRegression``, checked against
    ``scipy.optimize.isotonic_regression``. It fits the development answers too well (its mean is their acceptance
    rate exactly, its ends are easily 0 and 1): scikit-learn advises against it well below 1,000 answers, so what it is
    worth must be measured on other items.

    Examples
    --------
    Of scores 2 and 3 the lower was accepted and the higher not: both get 1/2.

    >>> made = fit_isotonic(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 0.0, 1.0]), np.arange(4))
    >>> made.predict(np.array([0.0, 1.5, 2.0, 3.0, 9.0])).tolist()
    [0.0, 0.25, 0.5, 0.5, 1.0]
    >>> made.note
    'learned on 4 answers only, fewer than 20'
    """
    given, outcomes = (np.asarray(values, dtype=np.float64) for values in (scores, accepted))
    names = np.asarray(items)
    check_outcomes(given, outcomes, names)
    known = ~np.isnan(outcomes)
    used = known & ~np.isnan(given)
    reasons = {"without_label": int((~known).sum()), "without_score": int((known & ~used).sum())}
    left_out = excluded_note(len(used), "answers", **reasons)
    n, n_items = int(used.sum()), len(np.unique(names[used]))
    if not n:
        return Recalibration((), (), 0, 0, joined("undefined: no answer with a score and a label", left_out))
    x, y = np.round(given[used], DECIMALS), outcomes[used]
    fitted = IsotonicRegression(increasing=True, out_of_bounds="clip").fit(x, y)
    thresholds, values = (tuple(float(v) for v in each) for each in (fitted.X_thresholds_, fitted.y_thresholds_))
    few = f"learned on {n} answers only, fewer than {FEW}" if n < FEW else ""
    return Recalibration(thresholds, values, n, n_items, joined(_flat(x, y, values), few, left_out))


def _flat(scores: Floats, accepted: Floats, values: tuple[float, ...]) -> str:
    """Why every score gets the same probability; empty if it does not."""
    if (accepted == accepted[0]).all():
        share = "all answers were" if accepted[0] else "no answer was"
        return f"{share} accepted: every score gets probability {accepted[0]:g}"
    if (scores == scores[0]).all():
        return "all scores are equal: every score gets the acceptance rate"
    if values[-1] - values[0] < TOLERANCE:
        return "acceptance does not rise with the score: every score gets the acceptance rate"
    return ""


def as_probability(scores: Floats, minimum: float, maximum: float) -> Floats:
    """Scores read as probabilities without learning anything: (s − minimum) / (maximum − minimum).

    Parameters
    ----------
    scores : array of shape (n,)
        On the scale from ``minimum`` to ``maximum``; NaN stays NaN.
    minimum, maximum : float
        Ends of the scale.

    Returns
    -------
    array of shape (n,)
        0 to 1.

    Raises
    ------
    ValueError
        If ``maximum`` is not above ``minimum``, an end is not finite, or a score lies off the scale by more than 1e-9.

    Examples
    --------
    >>> as_probability(np.array([1.0, 2.0, 5.0]), 1, 5).tolist()
    [0.0, 0.25, 1.0]
    """
    if not (np.isfinite(minimum) and np.isfinite(maximum) and maximum > minimum):
        raise ValueError(f"scale is {minimum} to {maximum}; allowed is a finite minimum below a finite maximum")
    given = np.asarray(scores, dtype=np.float64)
    off = (given < minimum - TOLERANCE) | (given > maximum + TOLERANCE)
    if off.any():
        raise ValueError(
            f"{int(off.sum())} of {given.size} scores lie off the scale {minimum:g} to {maximum:g}, "
            f"first {given[off][0]:g}"
        )
    return np.clip((given - minimum) / (maximum - minimum), 0.0, 1.0)
