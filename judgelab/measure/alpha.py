"""Krippendorff's alpha at every level of measurement, resampled over whole items."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.alpha_levels import LEVELS, Level, alpha_from_totals, prepare, unit_features
from judgelab.measure.coding import check_columns, excluded_note
from judgelab.measure.estimates import Place, Settings, table_row
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import frame, joined

__all__ = ["LEVELS", "Level", "alpha_from_totals", "alpha_row", "alpha_table", "unit_features"]

NAN = float("nan")
MAXIMUM_VALUES = 2_000  # at the ratio level every resample compares every two distinct values


def alpha_table(
    ratings: pd.DataFrame,
    *,
    level: Level,
    ci_level: float,
    resamples: int,
    seed: int,
    measure: str = "krippendorff_alpha",
) -> pd.DataFrame:
    """Krippendorff's alpha of any number of raters with gaps, at one level of measurement.

    α = 1 − Dₒ / Dₑ. With δ²(c, k) the squared distance of two values, nᵤ(c) the times unit u was given c, mᵤ its
    ratings (units with one are left out), n(c) = Σᵤ nᵤ(c) and n = Σ n(c)::

        Dₒ = (1/n) Σᵤ Σ_{i≠j} δ²(vᵢ, vⱼ) / (mᵤ − 1)          Dₑ = Σ_{c,k} n(c) n(k) δ²(c, k) / (n (n − 1))

    ========  =======================================================================
    level     δ²(c, k)
    ========  =======================================================================
    nominal   1 if c ≠ k
    ordinal   (N(k) − N(c))², N(c) the mid-rank of value c among all pairable ratings
    interval  (c − k)²
    ratio     ((c − k) / (c + k))², 0 if both are 0; no value below 0
    ========  =======================================================================

    Parameters
    ----------
    ratings : DataFrame
        One row a rating: item_id, rater, value, optionally ``unit`` (what is rated; default: the item). A missing
        value is a gap. Values are numbers, at the nominal level anything.
    level : {"nominal", "ordinal", "interval", "ratio"}
        How far two values are apart.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.
    measure : str
        The row's name.

    Returns
    -------
    DataFrame
        One row of :data:`judgelab.measure.rows.COLUMNS`, at most 1, 0 for agreement by chance, below 0 for less.
        ``n_used`` counts items with a unit that has two ratings. NaN with the reason where no unit has two ratings
        or every pairable rating is the same. No interval at the ratio level for more than 2,000 distinct values.

    Raises
    ------
    ValueError
        If a column is missing, a rater rates a unit twice, the level is unknown, a value is infinite or no number
        where one is needed, or below 0 at the ratio level.

    Notes
    -----
    Source: Krippendorff, "Computing Krippendorff's alpha-reliability", 2011, sections C to E. Estimates equal
    ``krippendorff.alpha`` and ``evalica.alpha``. The interval resamples items with all their ratings; resampling the
    coincidences instead, as some programs do, covers less than it says.

    Examples
    --------
    Two raters, four items, one disagreement: n = 8, n(a) = 5, n(b) = 3, so that α = 1 − 7 · 2 / (64 − 34).

    >>> ratings = pd.DataFrame({"item_id": [1, 2, 3, 4] * 2, "rater": list("xxxxyyyy"), "value": list("aabbaaab")})
    >>> options = {"ci_level": 0.95, "resamples": 100, "seed": 1}
    >>> round(float(alpha_table(ratings, level="nominal", **options)["estimate"].iloc[0]), 6)
    0.533333
    """
    if level not in LEVELS:
        raise ValueError(f"level is {level!r}; allowed are {', '.join(LEVELS)}")
    settings = Settings(ci_level, resamples, seed)
    check_columns(ratings, ["item_id", "rater", "value"], "ratings")
    given = ratings[ratings["value"].notna()]
    keys = ["item_id", "unit"] if "unit" in given else ["item_id"]
    _check_keys(given, [*keys, "rater"])
    units: Ints = np.asarray(given.groupby(keys, sort=False).ngroup(), dtype=np.int64)
    items: Ints = np.asarray(pd.factorize(given["item_id"])[0], dtype=np.int64)
    n_raters = int(given["rater"].nunique())
    return frame([alpha_row(measure, Place(), items, units, given["value"], level, n_raters, settings)])


def _check_keys(given: pd.DataFrame, keys: list[str]) -> None:
    """Every rating names its item, unit and rater, and no rater rates a unit twice."""
    unnamed = given[keys].isna().to_numpy()
    if unnamed.any():
        first = keys[int(unnamed.any(axis=0).argmax())]
        raise ValueError(
            f"ratings: {int(unnamed.any(axis=1).sum())} of {len(given)} ratings do not name their "
            f"{', '.join(keys)}; first without {first} in row {int(unnamed.any(axis=1).argmax())}"
        )
    twice = given.duplicated(keys).to_numpy()
    if twice.any():
        where = given[keys].astype(object)[twice].iloc[0]  # a row of its own types: an id stays a whole number
        unit = f", unit {where['unit']}" if "unit" in keys else ""
        raise ValueError(
            f"ratings: {int(twice.sum())} of {len(given)} ratings repeat a rater and unit; "
            f"first item {where['item_id']}{unit}, rater {where['rater']}"
        )


def alpha_row(
    measure: str,
    place: Place,
    items: Ints,
    units: Ints,
    values: pd.Series,
    level: Level,
    n_raters: int,
    settings: Settings,
) -> dict[str, Any]:
    """Alpha of ratings given as arrays of shape (n,): item, unit (coded 0, 1, ...) and value, none missing.

    The parameters and what is undefined: see :func:`alpha_table`.
    """
    codes, scale = _scale(values, level)
    sizes = np.bincount(units) if len(units) else np.zeros(0, dtype=np.int64)
    pairable = sizes[units] >= 2
    n_used, n_items = len(np.unique(items[pairable])), len(np.unique(items))
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_used, "n_excluded": n_items - n_used}
    method = f"{level} level"
    left_out = excluded_note(n_items, "items", with_one_rating=n_items - n_used)
    if not pairable.any():
        reason = f"undefined: {n_raters} rater{'s' * (n_raters != 1)}, no unit with two ratings"
        return place.row(measure, NAN, method=method, note=reason, **common)
    codes = codes[pairable]
    kept = np.unique(codes)
    codes = np.searchsorted(kept, codes).astype(np.int64)
    own: Ints = np.asarray(np.unique(units[pairable], return_inverse=True)[1], dtype=np.int64)
    item_of_unit = np.zeros(int(own.max()) + 1, dtype=np.int64)
    item_of_unit[own] = items[pairable]
    table, statistic = prepare(item_of_unit, own, codes, scale[kept], level)
    if level == "ratio" and len(kept) > MAXIMUM_VALUES:
        estimate = float(statistic(table.totals)[0, 0])
        reason = joined(f"no interval: more than {MAXIMUM_VALUES} distinct values", left_out)
        return place.row(measure, estimate, method=method, note=reason, **common)
    return table_row(
        measure,
        place,
        table,
        statistic,
        settings=settings,
        note=left_out,
        undefined="every label is the same" if level == "nominal" else "every rating is the same",
        method=method,
        **common,
    )


def _scale(values: pd.Series, level: Level) -> tuple[Ints, Floats]:
    """Codes of the values, and the distinct values in ascending order (their codes at the nominal level)."""
    if level == "nominal":
        codes, names = pd.factorize(values)
        # By name, so that the order of the rows changes no interval.
        order = sorted(range(len(names)), key=lambda place: (type(names[place]).__name__, names[place]))
        return np.argsort(order)[codes].astype(np.int64), np.arange(len(names), dtype=np.float64)
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)
    wrong = ~np.isfinite(numbers) | ((numbers < 0) if level == "ratio" else False)
    if wrong.any():
        allowed = "a finite number" + (" of 0 or more" if level == "ratio" else "")
        raise ValueError(
            f"ratings: {int(wrong.sum())} of {len(numbers)} values are not {allowed}, which the {level} level needs; "
            f"first {values.to_numpy(dtype=object)[wrong][0]!r}"
        )
    scale, codes = np.unique(numbers, return_inverse=True)
    return codes.astype(np.int64), scale
