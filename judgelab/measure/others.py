"""Each reviewer against the others: who said what of each unit, and what the judge said of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.coding import encode
from judgelab.measure.estimates import Place
from judgelab.measure.reliability import initial_labels
from judgelab.measure.resampling import Ints
from judgelab.measure.views import each_judge

__all__ = ["LabelMatrix", "judge_codes", "majority_of_others"]

PAIR = ["item_id", "system_x", "system_y"]
JUDGED = ("direct", "original", "swapped")


@dataclass(frozen=True)
class LabelMatrix:
    """Initial labels as a matrix.

    Attributes
    ----------
    units : DataFrame
        item_id, system_x, system_y of each of the U units.
    items : array of shape (U,)
        Item of each unit.
    reviewers : tuple of str
        The R reviewers, in alphabetical order.
    codes : array of shape (U, R)
        Label codes, −1 where a reviewer gave none.
    """

    units: pd.DataFrame
    items: Ints
    reviewers: tuple[str, ...]
    codes: Ints

    @classmethod
    def of(cls, labels: pd.DataFrame, labels_allowed: Sequence[str]) -> LabelMatrix:
        """Read single labels; see :func:`judgelab.measure.reliability.reviewer_table` for their columns.

        Raises
        ------
        ValueError
            If a reviewer labels a unit twice, or a preference is not allowed.
        """
        initial = initial_labels(labels)
        given = encode(initial["preference"], labels_allowed, "labels, column preference")
        initial = initial.assign(code=given)[given >= 0]
        units = initial.drop_duplicates("unit").sort_values("unit")
        place = pd.Series(np.arange(len(units)), index=units["unit"])
        names = tuple(sorted(map(str, pd.unique(initial["reviewer_id"]))))
        codes = np.full((len(units), len(names)), -1, dtype=np.int64)
        column = pd.Index(names).get_indexer(pd.Index(initial["reviewer_id"].astype(str)))
        codes[place.reindex(initial["unit"]).to_numpy(), column] = initial["code"].to_numpy()
        items = np.asarray(pd.factorize(units["item_id"])[0], dtype=np.int64)
        return cls(units[PAIR].reset_index(drop=True), items, names, codes)


def majority_of_others(codes: Ints, reviewer: int, n_labels: int) -> Ints:
    """The label of more than half of the other reviewers of each unit; −1 where there is none.

    Parameters
    ----------
    codes : array of shape (U, R)
        Label codes, −1 for none.
    reviewer : int
        The one who is left out.
    """
    others = np.delete(codes, reviewer, axis=1)
    counts = np.stack([(others == label).sum(axis=1) for label in range(n_labels)], axis=1)
    leading = counts.argmax(axis=1)
    most = counts[np.arange(len(counts)), leading] if len(counts) else np.zeros(0, dtype=np.int64)
    return np.where(2 * most > counts.sum(axis=1), leading, -1).astype(np.int64)


def judge_codes(
    matrix: LabelMatrix, normalized: pd.DataFrame, labels: Sequence[str]
) -> Iterator[tuple[Place, Ints, NDArray[np.bool_]]]:
    """For each judge and planned pass: its label of each unit (−1 for none), and whether the unit was planned."""
    groups = {str(name): group for name, group in normalized.groupby("judge", sort=False)}
    for judge in each_judge(normalized, labels):
        for name in JUDGED:
            if not judge.planned[name].any():
                continue
            own = groups[judge.judge][PAIR].assign(code=getattr(judge, name), planned=judge.planned[name])
            found = matrix.units.merge(own, on=PAIR, how="left", validate="one_to_one")
            planned = found["planned"].eq(True).to_numpy()
            codes = np.where(planned, found["code"].fillna(-1), -1).astype(np.int64)
            yield Place(judge.judge, "direct" if name == "direct" else "pairwise", name), codes, planned
