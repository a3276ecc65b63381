"""Does a rater repeat himself? The same unit rated again by the same reviewer or judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.alpha import LEVELS, Level, alpha_row
from judgelab.measure.coding import check_columns, excluded_note
from judgelab.measure.estimates import Place, Settings, rate_row
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import frame

__all__ = ["self_consistency_table"]

NAN = float("nan")
WITHIN = ("system_x", "system_y", "system", "unit")  # columns that tell what is rated within an item


def self_consistency_table(
    repeats: pd.DataFrame, *, ci_level: float, resamples: int, seed: int, level: Level = "nominal"
) -> pd.DataFrame:
    """How often a rater gives the same answer when asked the same again.

    What a rater does not repeat, nobody can agree with: this is the ceiling of every agreement with that rater.

    Parameters
    ----------
    repeats : DataFrame
        One row a rating: rater, item_id, repeat (1, 2, ...), value (a label or a score; missing: none). What is rated
        is the item, or within it what the columns ``system_x`` and ``system_y``, ``system`` or ``unit`` say, where
        there are such.
    level : {"nominal", "ordinal", "interval", "ratio"}
        Level of measurement of alpha.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        For each rater (slice ``rater=<r>``) and for all of them (slice ``all``, if there are several):

        - ``all_equal``: units whose ratings are all the same / units rated twice or more;
        - ``pairwise_consistency``: mean over units of the share of equal pairs of repeats;
        - ``krippendorff_alpha_repeats``: alpha with the repeats in the place of raters, at ``level``.

        Units rated once are left out and counted. NaN with the reason where nothing was rated twice.

    Raises
    ------
    ValueError
        If a column is missing, a rater has one repeat of a unit twice, or a score is not fit for the level.

    Notes
    -----
    Intervals: Wilson's for ``all_equal`` where an item has one unit, else the bootstrap over whole items. The alpha
    is Krippendorff's, 2011; for all raters together it compares a rater with himself only.

    Examples
    --------
    >>> table = pd.DataFrame({"rater": "r", "item_id": [1, 1, 2, 2], "repeat": [1, 2] * 2, "value": list("aaab")})
    >>> rows = self_consistency_table(table, ci_level=0.95, resamples=100, seed=1)
    >>> rows.loc[0, "measure"], float(rows.loc[0, "estimate"])
    ('all_equal', 0.5)
    """
    if level not in LEVELS:
        raise ValueError(f"level is {level!r}; allowed are {', '.join(LEVELS)}")
    settings = Settings(ci_level, resamples, seed)
    check_columns(repeats, ["rater", "item_id", "repeat", "value"], "repeats")
    given = repeats[repeats["value"].notna()].reset_index(drop=True)
    keys = ["rater", "item_id", *(name for name in WITHIN if name in given)]
    twice = given.duplicated([*keys, "repeat"]).to_numpy()
    if twice.any():
        where = given[twice].iloc[0]
        raise ValueError(
            f"repeats: {int(twice.sum())} of {len(given)} ratings repeat a rater, unit and repeat; "
            f"first rater {where['rater']}, item {where['item_id']}, repeat {where['repeat']}"
        )
    units = np.asarray(given.groupby(keys, sort=False).ngroup(), dtype=np.int64)
    items = np.asarray(pd.factorize(given["item_id"])[0], dtype=np.int64)
    names = [str(name) for name in pd.unique(given["rater"])]
    lines: list[dict[str, Any]] = []
    for name in names:
        own = (given["rater"].astype(str) == name).to_numpy()
        lines += _rows(Place(slice_=f"rater={name}"), items[own], units[own], given["value"][own], level, settings)
    if len(names) != 1:
        lines += _rows(Place(), items, units, given["value"], level, settings)
    return frame(lines)


def _rows(
    place: Place, items: Ints, units: Ints, values: pd.Series, level: Level, settings: Settings
) -> Iterator[dict[str, Any]]:
    units = np.asarray(np.unique(units, return_inverse=True)[1], dtype=np.int64)
    of_unit, equal, pairs = _by_unit(items, units, values)
    note = excluded_note(len(of_unit), "units", rated_once=int(np.isnan(equal).sum()))
    yield rate_row("all_equal", place, of_unit, equal, settings=settings, note=note)
    line = rate_row("pairwise_consistency", place, of_unit, pairs, settings=settings, note=note, force_bootstrap=True)
    yield line | {"numerator": None}  # a sum of shares is no count, even where it is whole
    line = alpha_row("krippendorff_alpha_repeats", place, items, units, values, level, 1, settings)
    if np.isnan(line["estimate"]) and "two ratings" in line["note"]:
        line["note"] = "undefined: nothing was rated twice"
    yield line


def _by_unit(items: Ints, units: Ints, values: pd.Series) -> tuple[Ints, Floats, Floats]:
    """Per unit: its item, whether all ratings are equal (NaN: one rating), and the share of equal pairs."""
    codes = np.asarray(pd.factorize(values)[0], dtype=np.int64)
    n_units, width = (int(each.max()) + 1 if len(each) else 0 for each in (units, codes))
    counts = np.bincount(units * width + codes, minlength=n_units * width).reshape(n_units, width).astype(np.float64)
    sizes = counts.sum(axis=1)
    of_unit = np.zeros(n_units, dtype=np.int64)
    of_unit[units] = items
    several = sizes >= 2
    equal = np.where(several, (counts > 0).sum(axis=1) == 1, NAN)
    pairs = np.full(n_units, NAN)
    np.divide((counts * (counts - 1)).sum(axis=1), sizes * (sizes - 1), out=pairs, where=several)
    return of_unit, equal, pairs
