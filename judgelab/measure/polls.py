"""The verdicts of many judges on pairs of answers, brought together by item and pair of systems."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.coding import TIE, check_columns
from judgelab.measure.matches import Matches
from judgelab.measure.resampling import Floats, Ints

__all__ = ["NOBODY", "THRESHOLDS", "TIED", "Polls", "X", "Y", "judges_of", "threshold_name", "threshold_names"]

NAN = float("nan")
THRESHOLDS: tuple[float | None, ...] = (1.0, 0.9, 0.75, 0.5, None)
NOBODY, X, Y, TIED = 0, 1, 2, 3
"""What a verdict or a panel says: nothing usable, the first system of the pair, the second, a tie."""
ROUNDING = 1e-9  # a share that misses the threshold by less misses it by rounding: 0.55 of 20 is 11


@dataclass(frozen=True)
class Polls:
    """The verdicts of a matches table, brought together by item and pair of systems.

    A pair given as (b, a) is the pair (a, b); x is the system that stood first where the pair first appears in the
    table, for all its items. Every row is one verdict; a column ``weight`` is not read.

    Attributes
    ----------
    head : DataFrame of p rows
        One row a poll, in order of appearance: ``item_id``, ``category``, ``system_x``, ``system_y``, ``words_x``,
        ``words_y``; NaN where the table does not say.
    item, pair, group : arrays of int, shape (p,)
        Codes of a poll's item, pair of systems, and group (all 0 without groups), in order of appearance.
    groups : tuple
        The groups.
    poll, side : arrays of int, shape (n,)
        Poll of each verdict, and what it says: :data:`NOBODY`, :data:`X`, :data:`Y` or :data:`TIED`.
    counts : array of int, shape (p, 4)
        Verdicts of each poll that say so.
    """

    head: pd.DataFrame
    item: Ints
    pair: Ints
    group: Ints
    groups: tuple[Hashable, ...]
    poll: Ints
    side: Ints
    counts: Ints

    @classmethod
    def of(cls, matches: pd.DataFrame, *, group: str | None = None) -> Polls:
        """Read a matches table; with ``group`` a poll lies within one value of that column.

        Raises
        ------
        ValueError
            See :meth:`judgelab.measure.matches.Matches.of`; or if ``item_id`` or the group is not a column, or a row
            has no item or group.
        """
        named = ["item_id"] if group is None else ["item_id", group]
        check_columns(matches, named, "matches")
        Matches.of(matches)
        for name in named:
            if matches[name].isna().any():
                raise ValueError(f"matches: {int(matches[name].isna().sum())} of {len(matches)} rows have no {name}")
        n = len(matches)
        given = {name: matches[name].to_numpy(dtype=object) for name in ("system_x", "system_y", "preference")}
        codes = pd.factorize(np.concatenate([given["system_x"], given["system_y"]]))[0].astype(np.int64)
        first, second = codes[:n], codes[n:]
        size = int(codes.max(initial=0)) + 1
        pair, _ = _codes(np.minimum(first, second) * size + np.maximum(first, second))
        item, items = _codes(matches["item_id"].to_numpy(dtype=object))
        inside, groups = (np.zeros(n, dtype=np.int64), ("",)) if group is None else _codes(matches[group].to_numpy())
        poll, _ = _codes((inside * max(len(items), 1) + item) * (int(pair.max(initial=0)) + 1) + pair)
        start = _starts(poll)
        turned = first != first[_starts(pair)][pair]
        score = np.select(
            [pd.isna(given["preference"]), given["preference"] == TIE, given["preference"] == given["system_x"]],
            [NOBODY, TIED, X],
            Y,
        )
        side = np.where(turned & ((score == X) | (score == Y)), X + Y - score, score).astype(np.int64)
        category = matches["category"].to_numpy(dtype=object)[start] if "category" in matches else NAN
        there = turned[start]
        head = pd.DataFrame({"item_id": matches["item_id"].to_numpy()[start], "category": category})
        for own, other in (("system_x", "system_y"), ("system_y", "system_x")):
            head[own] = np.where(there, given[other][start], given[own][start])
        for own, other in (("words_x", "words_y"), ("words_y", "words_x")):
            head[own] = _first_known(
                np.where(turned, _numbers(matches, other), _numbers(matches, own)), poll, len(start)
            )
        counts = np.bincount(poll * 4 + side, minlength=4 * len(start)).reshape(-1, 4)
        return cls(head, item[start], pair[start], inside[start], tuple(groups), poll, side, counts)

    def result(self, threshold: float) -> Ints:
        """What the panel says in each poll, shape (p,); see :func:`consensus`."""
        usable = self.counts[:, X:].sum(axis=1)
        enough = (self.counts >= ((threshold - ROUNDING) * usable)[:, np.newaxis]) & (
            2 * self.counts > usable[:, np.newaxis]
        )
        decided = np.where(enough[:, X], X, np.where(enough[:, Y], Y, TIED))
        return np.where(usable > 0, decided, NOBODY).astype(np.int64)


def _codes(values: NDArray[Any]) -> tuple[Ints, Any]:
    """Codes in order of appearance, and what they stand for."""
    codes, names = pd.factorize(values)
    return codes.astype(np.int64), names


def _starts(codes: Ints) -> Ints:
    """Where each code first appears."""
    return np.unique(codes, return_index=True)[1].astype(np.int64)


def _numbers(matches: pd.DataFrame, name: str) -> Floats:
    """A column of numbers; NaN where the table has none."""
    if name not in matches:
        return np.full(len(matches), NAN)
    return pd.to_numeric(matches[name]).to_numpy(dtype=np.float64, na_value=NAN)


def _first_known(values: Floats, poll: Ints, size: int) -> Floats:
    """The first value of each poll that is known."""
    found = np.full(size, NAN)
    known = np.flatnonzero(~np.isnan(values))[::-1]  # backwards: the first is written last
    found[poll[known]] = values[known]
    return found


def threshold_name(threshold: float | None) -> str:
    """How slices and tables name a threshold: ``0.75``, ``1``, ``none``.

    Raises
    ------
    ValueError
        If it is neither None nor above 0 and at most 1.

    Examples
    --------
    >>> [threshold_name(threshold) for threshold in THRESHOLDS]
    ['1', '0.9', '0.75', '0.5', 'none']
    """
    if threshold is None:
        return "none"
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold is {threshold}; allowed is above 0 and at most 1, or None")
    return f"{threshold:g}"


def threshold_names(thresholds: Sequence[float | None]) -> list[str]:
    """The names of several thresholds, each given once.

    Raises
    ------
    ValueError
        See :func:`threshold_name`; or if a threshold is given twice.
    """
    names = [threshold_name(threshold) for threshold in thresholds]
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if twice:
        raise ValueError(f"{len(twice)} of {len(names)} thresholds given twice, first {twice[0]}")
    return names


def judges_of(matches: pd.DataFrame) -> NDArray[Any]:
    """The judge of each row, as text, shape (n,).

    Raises
    ------
    ValueError
        If there is no column ``judge``, or a row has no judge.
    """
    check_columns(matches, ["judge"], "matches")
    if matches["judge"].isna().any():
        raise ValueError(f"matches: {int(matches['judge'].isna().sum())} of {len(matches)} rows have no judge")
    return matches["judge"].astype(str).to_numpy(dtype=object)
