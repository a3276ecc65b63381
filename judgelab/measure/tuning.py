"""Settings chosen on development items by a rule that is stated beforehand: the cut of scores, the tie margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.coding import TIE, excluded_note
from judgelab.measure.preferences import TOLERANCE
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import joined

__all__ = ["FEW", "Choice", "check_outcomes", "choose_margin", "choose_threshold"]

NAN = float("nan")
FEW = 20  # with fewer answers or pairs one of them moves what is reached by 5 points or more
DECIMALS = 9  # those of TOLERANCE: 4.2 − 3.95 is the candidate 0.25
THRESHOLD_RULE = (
    "accept from the cut on; of the observed scores and the protocol's threshold the cut with the highest balanced "
    "accuracy on development answers, then the one nearest the protocol's threshold, then the higher"
)
MARGIN_RULE = (
    "a difference up to the margin is a tie; of 0, the observed absolute differences and the protocol's margin the one "
    "with the highest exact agreement with people on development pairs, then the one nearest the protocol's margin, "
    "then the smaller"
)


@dataclass(frozen=True)
class Choice:
    """A setting that was chosen on development items.

    Attributes
    ----------
    value : float
        The chosen setting; the protocol's where there was nothing to choose from.
    score : float
        What ``value`` reaches on the development items, 0 to 1. It is the highest of many on the very items it was
        chosen on, so it is too good; what the choice is worth shows on other items only. NaN if undefined.
    default_score : float
        What the protocol's setting reaches on the same items; never above ``score``.
    n : int
        Answers or pairs it was chosen on.
    rule : str
        How it was chosen.
    note : str
        Why nothing was chosen (from "undefined: " on where ``score`` is NaN), cautions, what was left out; or empty.
    """

    value: float
    score: float
    default_score: float
    n: int
    rule: str
    note: str = ""


def check_outcomes(values: Floats, outcomes: Floats, *others: Any, what: str = "scores") -> None:
    """Refuse values and 0/1 outcomes that do not belong together.

    Parameters
    ----------
    values, outcomes : array of shape (n,)
        NaN where missing.
    *others : array of shape (n,)
        Must be as long (the items).
    what : str
        What ``values`` are, for the message.

    Raises
    ------
    ValueError
        If the arrays are not as long, a value is infinite, or an outcome is none of 0, 1 and NaN.
    """
    lengths = [len(values), len(outcomes), *(len(other) for other in others)]
    if len(set(lengths)) > 1:
        raise ValueError(f"{what}, outcomes and items are not as many: {', '.join(map(str, lengths))}")
    for given, wrong, told in (
        (values, np.isinf(values), f"{what} are infinite"),
        (outcomes, ~np.isnan(outcomes) & (outcomes != 0) & (outcomes != 1), "outcomes are none of 0, 1 and NaN"),
    ):
        if wrong.any():
            raise ValueError(f"{int(wrong.sum())} of {len(given)} {told}, first {given[wrong][0]:g}")


def choose_threshold(scores: Floats, accepted: Floats, *, default: float) -> Choice:
    """From which score on should an answer be accepted? The cut that agrees best with people.

    With P answers that people accept, of which the cut accepts TP, and N that they do not, of which the cut rejects
    TN, balanced accuracy is (TP / P + TN / N) / 2: 1/2 for accepting everything, whatever the share of good answers.
    An answer is accepted if its score is the cut or more (within 1e-9, as everywhere).

    The candidates are the observed scores themselves, not the midpoints between them, because a cut is read as "accept
    from this score on"; and the protocol's threshold, which stands unless some cut does better than it.

    Parameters
    ----------
    scores : array of shape (n,)
        Scores of development answers, any scale, higher is better; NaN where there is none.
    accepted : array of shape (n,)
        1 where people accept the answer, 0 where not, NaN where there is no label.
    default : float
        The protocol's threshold.

    Returns
    -------
    Choice
        The default with the reason in ``note`` where people accept all or none of the answers (``score`` is NaN then),
        or every cut reaches the same.

    Raises
    ------
    ValueError
        If the arrays are not as long, a score or the default is not finite, or ``accepted`` is none of 0, 1 and NaN.

    Notes
    -----
    Balanced accuracy: Brodersen et al., "The balanced accuracy and its posterior distribution", 2010; checked against
    ``sklearn.metrics.balanced_accuracy_score``. Its best cut is that of Youden's J = 2 · balanced accuracy − 1
    (Youden, "Index for rating diagnostic tests", 1950).

    Examples
    --------
    People accept from 3 on; the protocol's 4 would reject one answer in two that they accept.

    >>> choice = choose_threshold(np.array([1.0, 2.0, 3.0, 5.0]), np.array([0.0, 0.0, 1.0, 1.0]), default=4)
    >>> choice.value, choice.score, choice.default_score
    (3.0, 1.0, 0.75)
    """
    given, outcomes = (np.asarray(values, dtype=np.float64) for values in (scores, accepted))
    if not np.isfinite(default):
        raise ValueError(f"default is {default}; allowed is a finite number")
    check_outcomes(given, outcomes)
    known = ~np.isnan(outcomes)
    used = known & ~np.isnan(given)
    reasons = {"without_label": int((~known).sum()), "without_score": int((known & ~used).sum())}
    left_out = excluded_note(len(used), "answers", **reasons)
    order = np.argsort(given[used], kind="stable")
    ascending, good = given[used][order], outcomes[used][order] == 1
    n, n_good = len(good), int(good.sum())
    if n_good in (0, n):
        why = f"people accept {'all' if n_good else 'none'} of {n}" if n else "no development answer has both"
        note = joined(f"undefined: {why}; the protocol's {default:g} stands", left_out)
        return Choice(float(default), NAN, NAN, n, THRESHOLD_RULE, note)
    cuts = np.unique([*np.round(ascending, DECIMALS), float(default)])
    rejected = np.searchsorted(ascending, cuts - TOLERANCE, side="left")
    good_rejected = _before(good)[rejected]
    # Over the common denominator 2 P N, in whole numbers: equal cuts are found equal.
    hits = (n_good - good_rejected) * (n - n_good) + (rejected - good_rejected) * n_good
    whole = 2 * n_good * (n - n_good)
    return _best(cuts, hits, whole, default, THRESHOLD_RULE, 1, (n, "answers", "cut"), left_out)


def choose_margin(total_x: Any, total_y: Any, human: Any, system_x: Any, system_y: Any, *, default: float) -> Choice:
    """How far apart must two totals be for a preference? The tie margin that agrees best with people.

    The margin m turns totals into a preference as :func:`judgelab.measure.preferences.preference_from_totals` does: x
    if total_x − total_y > m, y if < −m, else a tie. Exact agreement is the share of pairs where that is the human
    label. Candidates are 0, the observed absolute differences (below any of which nothing changes until the next) and
    the protocol's margin, which stands unless some margin does better than it.

    Parameters
    ----------
    total_x, total_y : array-like of shape (n,)
        Totals of the two answers of each development pair; NaN where there is none.
    human : array-like of shape (n,)
        A system's name, ``TIE``, or missing.
    system_x, system_y : array-like of shape (n,) or str
        Names of the systems.
    default : float
        The protocol's tie margin, 0 or more.

    Returns
    -------
    Choice
        The default with the reason in ``note`` where no pair has both totals and a label (``score`` is NaN then), or
        every margin reaches the same.

    Raises
    ------
    ValueError
        If the arrays are not as long, a total is infinite, the default negative or not finite, or a label neither a
        system of its pair nor ``TIE``.

    Examples
    --------
    People call a difference of 0.5 a tie, and one of 1 not.

    >>> choice = choose_margin([4.0, 4.5, 5.0], [4.0, 4.0, 4.0], ["TIE", "TIE", "A"], "A", "B", default=0.25)
    >>> choice.value, choice.score, round(choice.default_score, 4)
    (0.5, 1.0, 0.6667)
    """
    if not (np.isfinite(default) and default >= 0):
        raise ValueError(f"default is {default}; allowed is a finite number, 0 or more")
    totals = [np.asarray(total, dtype=np.float64) for total in (total_x, total_y)]
    if totals[0].shape != totals[1].shape:
        raise ValueError(f"{totals[0].size} totals of x, {totals[1].size} of y: not as many")
    infinite = np.isinf(totals[0]) | np.isinf(totals[1])
    if infinite.any():
        raise ValueError(f"{int(infinite.sum())} of {len(infinite)} pairs have an infinite total")
    difference = totals[0] - totals[1]
    label = _sides(human, system_x, system_y, len(difference))
    known = ~np.isnan(label)
    used = known & ~np.isnan(difference)
    reasons = {"without_label": int((~known).sum()), "without_both_totals": int((known & ~used).sum())}
    left_out = excluded_note(len(used), "pairs", **reasons)
    n = int(used.sum())
    if not n:
        note = joined(f"undefined: no development pair has both; the protocol's {default:g} stands", left_out)
        return Choice(float(default), NAN, NAN, 0, MARGIN_RULE, note)
    size = np.abs(difference[used])
    order = np.argsort(size, kind="stable")
    tied, right = (given[order] for given in (label[used] == 0, label[used] == np.sign(difference[used])))
    margins = np.unique([0.0, *np.round(size, DECIMALS), float(default)])
    within = np.searchsorted(size[order], margins + TOLERANCE, side="right")
    # Of the ties of the margin those that people call ties, of the others those on the people's side.
    hits = _before(tied)[within] + int(right.sum()) - _before(right)[within]
    return _best(margins, hits, n, default, MARGIN_RULE, -1, (n, "pairs", "margin"), left_out)


def _sides(human: Any, system_x: Any, system_y: Any, n: int) -> Floats:
    """The human label as 1 (system x), −1 (system y), 0 (tie) or NaN."""
    labels = np.asarray(human, dtype=object)
    x, y = (np.broadcast_to(np.asarray(system, dtype=object), (n,)) for system in (system_x, system_y))
    if labels.shape != (n,):
        raise ValueError(f"{n} pairs, {len(labels)} human labels: not as many")
    sides = np.full(n, NAN)
    for value, names in ((1.0, x), (-1.0, y), (0.0, np.full(n, TIE, dtype=object))):
        sides[np.asarray(labels == names, dtype=bool)] = value
    unknown: NDArray[np.bool_] = np.isnan(sides) & ~pd.isna(labels)
    if unknown.any():
        first = labels[unknown][0]
        raise ValueError(
            f"{int(unknown.sum())} of {n} human labels are neither a system of their pair nor {TIE}, first {first!r}"
        )
    return sides


def _before(flags: NDArray[np.bool_]) -> Ints:
    """How many of the first 0, 1, ..., n are true, shape (n + 1,)."""
    return np.concatenate([[0], np.cumsum(flags)]).astype(np.int64)


def _best(
    candidates: Floats,
    hits: Ints,
    whole: int,
    default: float,
    rule: str,
    direction: int,
    of: tuple[int, str, str],
    left_out: str,
) -> Choice:
    """The candidate of the most hits, by the ties of the rules: ``direction`` 1 takes the higher, −1 the smaller."""
    # Distances are rounded, for 0.25 − 0.2 and 0.3 − 0.25 differ in binary.
    distance = np.round(np.abs(candidates - default), DECIMALS)
    best = int(np.lexsort((-direction * candidates, candidates != default, distance, -hits))[0])
    reached, (n, unit, what) = hits / whole, of
    note = joined(
        f"nothing to choose from: every {what} reaches the same; the protocol's {default:g} stands"
        if (hits == hits[0]).all()
        else "",
        f"chosen on {n} {unit} only, fewer than {FEW}" if n < FEW else "",
        left_out,
    )
    own = float(reached[candidates == default][0])
    return Choice(float(candidates[best]), float(reached[best]), own, n, rule, note)
