"""The calls of a battery of probes as arrays, with what cannot be counted refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from judgelab.measure.coding import TIE, check_columns, encode, excluded_note
from judgelab.measure.resampling import Floats, Ints

__all__ = ["PRESENTATION", "ProbeCalls", "checked_calls", "score", "towards_target"]

NAN = float("nan")
SCALE = ("B", TIE, "A")  # verdicts from the second place to the first: scores -1, 0, 1
PRESENTATION = ("item_id", "system_x", "system_y", "pass", "repeat", "first", "second")
COLUMNS = ("judge", "probe", "variant", *PRESENTATION, "category", "target", "verdict", "base", "again")


@dataclass(frozen=True)
class ProbeCalls:
    """The n calls of one judge and probe.

    Attributes
    ----------
    items, presentations, variants : arrays of shape (n,)
        Numbers from 0: the item, what was shown in which order, and the place in ``names``.
    names : tuple of str
        The variants.
    towards : array of shape (n,)
        1 if the target is shown first, -1 if second, 0 if there is none.
    x_first : array of shape (n,)
        1 if ``system_x`` is shown first, else -1.
    repeat : array of shape (n,)
        Number of the repetition, 0 for none.
    base, verdict, again : arrays of shape (n,)
        See :func:`score`.
    """

    items: Ints
    presentations: Ints
    variants: Ints
    names: tuple[str, ...]
    towards: Floats
    x_first: Floats
    repeat: Ints
    base: Floats
    verdict: Floats
    again: Floats

    def note(self, *, again: bool = False) -> str:
        """Which judgments were left out for want of a verdict; with ``again`` for want of a repetition too."""
        base, probe = np.isnan(self.base), np.isnan(self.verdict)
        counts = {"base_unusable": int(base.sum()), "probe_unusable": int((probe & ~base).sum())}
        if again:
            counts["without_a_repetition"] = int((np.isnan(self.again) & ~probe & ~base).sum())
        return excluded_note(len(base), "judgments", **counts)

    def of(self, variant: int) -> ProbeCalls:
        """The calls of the variant with this number; the items keep theirs."""
        own = self.variants == variant
        arrays = {name: value[own] for name, value in vars(self).items() if name != "names"}
        return ProbeCalls(names=self.names, **arrays)

    @classmethod
    def from_rows(cls, rows: pd.DataFrame) -> ProbeCalls:
        """The calls of one judge and probe, at least one, from :func:`checked_calls`."""
        presentations = rows.groupby(list(PRESENTATION), sort=False, dropna=False).ngroup()
        variants, names = pd.factorize(rows["variant"])
        return cls(
            items=np.asarray(pd.factorize(rows["item_id"])[0], dtype=np.int64),
            presentations=np.asarray(presentations, dtype=np.int64),
            variants=np.asarray(variants, dtype=np.int64),
            names=tuple(str(name) for name in names),
            towards=towards_target(rows),
            x_first=np.where(rows["first"] == rows["system_x"], 1, -1).astype(np.float64),
            repeat=rows["repeat"].to_numpy(dtype=np.int64),
            base=score(rows, "base"),
            verdict=score(rows, "verdict"),
            again=score(rows, "again"),
        )


def checked_calls(pairs: pd.DataFrame) -> pd.DataFrame:
    """The table with rows numbered from 0 and no missing variant or target, refused if it cannot be counted.

    Parameters
    ----------
    pairs : DataFrame
        See :func:`judgelab.measure.probes.probe_table`; it is not changed. Without rows it needs no columns.

    Raises
    ------
    ValueError
        If a column is missing, a verdict is not allowed, a judge, probe, variant and presentation occurs twice, a
        target is not shown, or only some calls of a probe have a target.
    """
    if pairs.empty:
        return pairs.reindex(columns=list(COLUMNS)).astype(object)
    check_columns(pairs, COLUMNS, "pairs")
    table = pairs.reset_index(drop=True).copy()
    for column in ("variant", "target"):
        table[column] = table[column].astype(object).where(table[column].notna(), "")
    for column in ("verdict", "base", "again"):
        encode(table[column], SCALE, f"pairs, {column}")
    twice = table.duplicated(["judge", "probe", "variant", *PRESENTATION])
    if twice.any():
        where = table[twice].iloc[0]
        raise ValueError(
            f"pairs: {int(twice.sum())} of {len(table)} calls repeat a judge, probe, variant and presentation; first "
            f"judge {where['judge']}, probe {where['probe']}, item {where['item_id']}, pass {where['pass']}"
        )
    targeted = table["target"] != ""
    hidden = targeted & (table["target"] != table["first"]) & (table["target"] != table["second"])
    if hidden.any():
        where = table[hidden].iloc[0]
        raise ValueError(f"pairs: target {where['target']!r} of item {where['item_id']} is not shown in its call")
    mixed = [str(name) for name, own in targeted.groupby(table["probe"], sort=False) if own.any() and not own.all()]
    if mixed:
        raise ValueError(f"pairs: only some calls of {', '.join(mixed)} have a target")
    return table


def score(table: pd.DataFrame, column: str) -> Floats:
    """The verdicts of a column on the scale second place, tie, first place: -1, 0, 1, NaN where missing.

    Raises
    ------
    ValueError
        If a verdict is not ``A``, ``B``, ``TIE`` or missing.
    """
    codes = encode(table[column], SCALE, column)
    return np.where(codes < 0, NAN, codes - 1.0)


def towards_target(table: pd.DataFrame) -> Floats:
    """1 if the target is shown first, -1 if second, 0 if there is none: what turns a score into one for the target."""
    first, none = table["target"] == table["first"], table["target"] == ""
    return np.select([none.to_numpy(), first.to_numpy()], [0.0, 1.0], -1.0)
