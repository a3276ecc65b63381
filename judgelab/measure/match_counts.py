"""Matches counted by cell: pair of systems, place and covariates; by outcome, and by item for the bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import sparse

from judgelab.measure.coding import check_columns
from judgelab.measure.matches import Matches
from judgelab.measure.resampling import DENSE, Floats, Ints, ItemTable
from judgelab.measure.views import Flags

__all__ = ["Cells", "MatchCounts"]

FIRST, LENGTH = "first_position", "length"


@dataclass(frozen=True)
class Cells:
    """Matches of the same pair, place and covariates, turned so that x is the system with the lower code.

    Attributes
    ----------
    x, y : arrays of int, shape (C,)
        The systems of each cell, x < y.
    terms : array of shape (C, T)
        Place of x (+1 first, −1 second, 0 unknown) if asked for, then the covariates.
    items : ItemTable
        What each kind of item contributes to the columns: matches that x won (C), that y won (C) and, if ties have
        columns of their own, ties (C).
    matches : int
        Number of matches counted (rows, not weights).
    played : array of int, shape (systems,)
        Matches of each system of the table that were counted.
    """

    x: Ints
    y: Ints
    terms: Floats
    items: ItemTable
    matches: int
    played: Ints


@dataclass(frozen=True)
class MatchCounts:
    """Matches that can be used, as arrays of length n, and how many cannot.

    Attributes
    ----------
    read : Matches
        The usable matches; without the ties where these are dropped.
    names : tuple of str
        Names of the terms: ``first_position`` first.
    terms : array of shape (n, T)
        Place of x and covariates of the pair, x against y.
    items : array of int, shape (n,)
        Code of the item of each match; a match without an item is one of its own.
    total : int
        Rows of the table.
    left_out : dict of str to int
        Rows that are not used, by reason.
    excluded : array of int, shape (systems,)
        Rows of each system that are not used.
    ties : bool
        Whether ties get columns of their own.
    """

    read: Matches
    names: tuple[str, ...]
    terms: Floats
    items: Ints
    total: int
    left_out: dict[str, int]
    excluded: Ints
    ties: bool

    @classmethod
    def of(cls, table: pd.DataFrame, *, ties: str, first_position: bool, covariates: Sequence[str]) -> MatchCounts:
        """Read a table of matches.

        Parameters
        ----------
        table : DataFrame
            ``system_x``, ``system_y``, ``preference``; optionally ``weight`` and ``item_id``; ``first`` with
            ``first_position``; ``words_x`` and ``words_y`` for the covariate ``length``; the other covariates.
        ties : {"half", "dropped", "davidson", "rao_kupper"}
            ``dropped`` leaves them out; the last two count them by themselves.
        first_position : bool
            Whether the place is a term.
        covariates : sequence of str
            ``length`` is ln(words_x / words_y), an empty answer counted as one word; any other name is that of a
            column of numbers that change their sign with x and y. A match without the number is left out.

        Raises
        ------
        ValueError
            If a column is missing, ``first`` names neither system, or see :meth:`Matches.of`.
        """
        read = Matches.of(table)
        wanted = [name for name in covariates if name != LENGTH]
        wanted += ["words_x", "words_y"] if LENGTH in covariates else []
        check_columns(table, [*wanted, *(["first"] if first_position else [])], "matches")
        decided = table["preference"].notna().to_numpy()
        columns = [_first(table)[decided]] if first_position else []
        columns += [_covariate(table, name)[decided] for name in covariates]
        terms = np.column_stack(columns) if columns else np.zeros((len(read.x), 0))
        items = _items(table)[decided]
        tied = (read.score == 0.5) & (ties == "dropped")
        measured = ~np.isnan(terms).any(axis=1)
        used = measured & ~tied
        size = len(read.systems)
        lost = np.bincount(np.concatenate([read.x[~used], read.y[~used]]), minlength=size)
        names = ((FIRST,) if first_position else ()) + tuple(covariates)
        left_out = {
            "without_preference": int((~decided).sum()),
            "ties": int(tied.sum()),
            f"without_{'_or_'.join(covariates)}": int((~measured & ~tied).sum()),
        }
        kept = replace(read, **{name: getattr(read, name)[used] for name in ("x", "y", "score", "weight")})
        own = ties in ("davidson", "rao_kupper")
        return cls(kept, names, terms[used], items[used], len(table), left_out, read.undecided + lost, own)

    def cells(self, keep: Flags) -> Cells:
        """Count the matches between the systems that are kept, which are numbered anew, 0, 1, ..."""
        inside = keep[self.read.x] & keep[self.read.y]
        number = np.cumsum(keep) - 1
        x, y = number[self.read.x[inside]], number[self.read.y[inside]]
        turned = np.where(x < y, 1.0, -1.0)
        score = np.where(x < y, self.read.score[inside], 1 - self.read.score[inside])
        low, high, size = np.minimum(x, y), np.maximum(x, y), int(keep.sum())
        columns = self.terms[inside] * turned[:, np.newaxis] + 0.0  # no negative zero, which would be another value
        code = low * size + high
        for column in columns.T:
            values, distinct = pd.factorize(column, sort=True)
            code = pd.factorize(code * len(distinct) + values, sort=True)[0]  # sorted by pair, then by the terms
        cell, codes = pd.factorize(code, sort=True)
        place = np.zeros(len(codes), dtype=np.int64)
        place[cell] = np.arange(len(cell))
        items = _item_table(cell, len(codes), score, self.read.weight[inside], self.items[inside], self.ties)
        met = np.concatenate([self.read.x[inside], self.read.y[inside]])
        played = np.bincount(met, minlength=len(keep))
        return Cells(low[place], high[place], columns[place], items, len(cell), played)


def _first(table: pd.DataFrame) -> Floats:
    """+1 where x was shown first, −1 where y was, 0 where it is not known."""
    first = table["first"].astype(object)
    is_x, is_y = ((first == table[name].astype(object)).to_numpy(dtype=bool) for name in ("system_x", "system_y"))
    known = first.notna().to_numpy()
    if (known & ~is_x & ~is_y).any():
        raise ValueError(f"matches: {int((known & ~is_x & ~is_y).sum())} rows show a system first that is not in them")
    return is_x.astype(np.float64) - is_y


def _covariate(table: pd.DataFrame, name: str) -> Floats:
    """A covariate of x against y, NaN where it is not known."""
    if name != LENGTH:
        return pd.to_numeric(table[name]).to_numpy(dtype=np.float64)
    words = [pd.to_numeric(table[f"words_{side}"]).to_numpy(dtype=np.float64) for side in "xy"]
    return np.asarray(np.subtract(*(np.log(np.maximum(count, 1)) for count in words)))


def _items(table: pd.DataFrame) -> Ints:
    """Codes of the items; each row without one gets its own."""
    if "item_id" not in table:
        return np.arange(len(table))
    codes, names = pd.factorize(table["item_id"])
    alone = codes < 0
    codes = codes.astype(np.int64)
    codes[alone] = len(names) + np.arange(int(alone.sum()))
    return codes


def _item_table(cell: Ints, n_cells: int, score: Floats, weight: Floats, items: Ints, ties: bool) -> ItemTable:
    """What each kind of item contributes to the columns won, lost and tied."""
    shares = [score * (score != 0.5), (1 - score) * (score != 0.5), 1.0 * (score == 0.5)]
    shares = shares if ties else [score, 1 - score]
    rows = np.unique(items, return_inverse=True)[1]
    counts = np.ones(int(rows.max()) + 1 if len(rows) else 0, dtype=np.int64)
    if len(counts) == len(cell):
        # One match an item: items of the same cell, outcome and weight are interchangeable.
        kind = (cell * 3 + (2 * score).astype(np.int64)) * len(counts) + np.unique(weight, return_inverse=True)[1]
        _, first, rows, counts = np.unique(kind, return_index=True, return_inverse=True, return_counts=True)
        cell, shares, weight, rows = cell[first], [share[first] for share in shares], weight[first], rows[first]
    parts = [(number * n_cells, share * weight) for number, share in enumerate(shares)]
    columns = np.concatenate([start + cell[share > 0] for start, share in parts])
    values = np.concatenate([share[share > 0] for _, share in parts])
    lines = np.concatenate([rows[share > 0] for _, share in parts])
    shape = (len(counts), len(shares) * n_cells)
    by_item = sparse.csr_array(sparse.coo_array((values, (lines, columns)), shape=shape))
    if 0 < shape[0] * shape[1] <= DENSE and counts.max() == 1:
        distinct, counts = np.unique(by_item.toarray(), axis=0, return_counts=True)
        return ItemTable(distinct, counts.astype(np.int64))
    return ItemTable(by_item, counts.astype(np.int64))
