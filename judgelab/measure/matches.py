"""Matches between two systems as arrays: what every ranking starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import TIE, check_columns, encode
from judgelab.measure.resampling import Floats, Ints

__all__ = ["Matches"]


@dataclass(frozen=True)
class Matches:
    """Decided matches as arrays, all of length n, in the order of the table.

    Attributes
    ----------
    systems : tuple of str
        The systems in order of appearance.
    x, y : arrays of int
        Which systems met.
    score : array of float
        What x got: 1 won, 1/2 tied, 0 lost.
    weight : array of float
        How many matches the row stands for.
    undecided : array of int, shape (systems,)
        Rows of each system that have no preference; they are not among the n.
    """

    systems: tuple[str, ...]
    x: Ints
    y: Ints
    score: Floats
    weight: Floats
    undecided: Ints

    @classmethod
    def of(cls, table: pd.DataFrame) -> Matches:
        """Read a table of matches; see :func:`judgelab.measure.ranking.elo` for its columns.

        Raises
        ------
        ValueError
            If a column is missing, a system has no name, meets itself or is called ``TIE``, a preference is neither
            one of the two nor ``TIE`` nor missing, or a weight is not a finite number above 0.
        """
        check_columns(table, ["system_x", "system_y", "preference"], "matches")
        x, y, preference = (table[name].astype(object) for name in ("system_x", "system_y", "preference"))
        weight = np.ones(len(table))
        if "weight" in table:
            weight = pd.to_numeric(table["weight"]).to_numpy(dtype=np.float64)
        _refuse(table, (x.isna() | y.isna()).to_numpy(dtype=bool), "leave a system without a name")
        _refuse(table, (x == y).to_numpy(dtype=bool), "let a system meet itself")
        _refuse(table, ((x == TIE) | (y == TIE)).to_numpy(dtype=bool), f"call a system {TIE}")
        known = (preference == x) | (preference == y) | (preference == TIE) | preference.isna()
        _refuse(table, ~known.to_numpy(dtype=bool), f"prefer none of their two systems, {TIE} or nothing")
        _refuse(table, ~(np.isfinite(weight) & (weight > 0)), "have a weight that is not a finite number above 0")
        names = list(pd.unique(pd.Series(np.column_stack([x, y]).ravel(), dtype=object)))
        first, second = encode(x, names, "matches"), encode(y, names, "matches")
        decided = preference.notna().to_numpy()
        score = np.where(preference == TIE, 0.5, (preference == x).astype(float))
        missing = np.concatenate([first[~decided], second[~decided]])
        return cls(
            systems=tuple(str(name) for name in names),
            x=first[decided],
            y=second[decided],
            score=score[decided],
            weight=weight[decided],
            undecided=np.bincount(missing, minlength=len(names)),
        )

    @property
    def wins(self) -> Floats:
        """Matrix of weighted wins of the row over the column, a tie half a win for each; shape (systems, systems)."""
        size = len(self.systems)
        won = np.zeros((size, size))
        np.add.at(won, (self.x, self.y), self.weight * self.score)
        np.add.at(won, (self.y, self.x), self.weight * (1 - self.score))
        return won

    @property
    def played(self) -> Ints:
        """Decided matches of each system (rows, not weights)."""
        return np.bincount(np.concatenate([self.x, self.y]), minlength=len(self.systems))


def _refuse(table: pd.DataFrame, wrong: Any, what: str) -> None:
    if wrong.any():
        line = table[wrong].iloc[0]
        given = ", ".join(f"{name} {line[name]!r}" for name in table.columns if name != "item_id")
        raise ValueError(f"matches: {int(wrong.sum())} of {len(table)} rows {what}; first {given}")
