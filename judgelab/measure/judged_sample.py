"""A large judged set, part of it labelled by people: what every correction of a judge's rate starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from judgelab.measure.resampling import Floats, Ints

__all__ = ["Corrected", "JudgedSample", "design_effect", "simulate"]

Flags = NDArray[np.bool_]


class Corrected(NamedTuple):
    """A corrected rate with its interval; NaN with the reason in ``note`` where it is undefined.

    ``variance`` is the estimate's, as the interval uses it; ``weight`` is the share λ of the judge's evidence that
    :func:`~judgelab.measure.prediction_powered.prediction_powered` uses (NaN elsewhere); ``basis`` says in words what
    the correction rests on.
    """

    estimate: float
    low: float
    high: float
    variance: float
    weight: float
    basis: str
    note: str


@dataclass(frozen=True)
class JudgedSample:
    """Units that a judge has judged; some of them, drawn at random, have a human label too.

    Attributes
    ----------
    human : array of shape (n,)
        1 or 0 by people, NaN where there is no label.
    judge : array of shape (n,)
        The judge's decision, in [0, 1], never NaN.
    items : array of shape (n,)
        Item of each unit; an item's units hang together.
    """

    human: Floats
    judge: Floats
    items: Ints

    @classmethod
    def of(cls, human: Any, judge: Any, items: Any = None) -> JudgedSample:
        """Check the arrays; ``items`` None means an item a unit.

        Raises
        ------
        ValueError
            If lengths differ, a human label is none of 0, 1, NaN, or a judge's decision lies outside [0, 1].
        """
        people, decided = np.asarray(human, dtype=float), np.asarray(judge, dtype=float)
        groups = np.arange(len(people)) if items is None else np.unique(np.asarray(items), return_inverse=True)[1]
        if not len(people) == len(decided) == len(groups):
            raise ValueError(
                f"{len(people)} human labels, {len(decided)} decisions, {len(groups)} items; allowed is one length"
            )
        for what, values, wrong, allowed in (
            ("human labels", people, ~(np.isnan(people) | (people == 0) | (people == 1)), "0, 1 and NaN"),
            ("decisions of the judge", decided, ~((decided >= 0) & (decided <= 1)), "0 to 1"),
        ):
            if wrong.any():
                first = values[wrong][0]
                raise ValueError(
                    f"{int(wrong.sum())} of {len(values)} {what} are not allowed, first {first:g}; allowed is {allowed}"
                )
        return cls(people, decided, groups.astype(np.int64))

    @property
    def labelled(self) -> Flags:
        """Units with a human label."""
        return ~np.isnan(self.human)

    @property
    def n_labelled_items(self) -> int:
        """Items with a label."""
        return len(np.unique(self.items[self.labelled]))


def design_effect(influence: Floats, items: Ints) -> float:
    """How many times larger a variance is because the units of an item hang together, at least 1.

    With ψᵢ the influence of unit i on the estimate, Σ_c (Σ_{i ∈ c} ψᵢ)² over items c, divided by Σᵢ ψᵢ²; exactly 1
    where each item has one unit. Source: Kish, "Survey sampling", 1965.
    """
    if len(np.unique(items)) == len(items):
        return 1.0
    independent = float((influence**2).sum())
    together = float((np.bincount(items, influence) ** 2).sum())
    return max(1.0, together / independent) if independent > 0 else 1.0


def simulate(
    *,
    n_labelled: int,
    n_judged: int,
    rate: float,
    sensitivity: float,
    specificity: float,
    pairs: int,
    together: float,
    rng: np.random.Generator,
) -> JudgedSample:
    """One study whose truth is planted: people say 1 at ``rate``, the judge errs as told.

    Parameters
    ----------
    n_labelled, n_judged : int
        Labelled items and all judged items.
    rate : float
        Truth that a correction should find.
    sensitivity, specificity : float
        How often the judge says 1 where people do, and 0 where people do.
    pairs : int
        Units an item.
    together : float
        Share of items whose units all are as their first one.
    rng : numpy.random.Generator
        Random numbers.
    """
    if not 0 <= n_labelled <= n_judged:
        raise ValueError(f"{n_labelled} labelled of {n_judged} judged items; allowed is 0 to all of them")
    shape = (n_judged, pairs)
    human = rng.random(shape) < rate
    judge = np.where(human, rng.random(shape) < sensitivity, rng.random(shape) >= specificity)
    same = rng.random(n_judged) < together
    human[same], judge[same] = human[same][:, :1], judge[same][:, :1]
    labels = human.astype(float)
    labels[n_labelled:] = np.nan
    return JudgedSample.of(labels.ravel(), judge.ravel(), np.repeat(np.arange(n_judged), pairs))
