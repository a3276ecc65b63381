"""From verdicts to preferences: what a judge's scores or letters say about systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import TIE, check_columns

__all__ = [
    "ABSTAIN",
    "conservative",
    "normalize",
    "preference_from_letters",
    "preference_from_totals",
    "weighted_total",
]

ABSTAIN = "ABSTAIN"
TOLERANCE = 1e-9  # 4.2 − 3.95 is 0.25000000000000044 in binary; scores are far coarser than this
PAIR = ["item_id", "system_x", "system_y"]


def weighted_total(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Weighted mean of criterion scores: Σ wₖ sₖ / Σ wₖ over the criteria k of ``weights``.

    Returns NaN if a criterion has no score; 0 is never put in its place.

    Raises
    ------
    ValueError
        If a weight is negative or not finite, or all are zero.

    Examples
    --------
    >>> weighted_total({"correctness": 5, "clarity": 2}, {"correctness": 2, "clarity": 1})
    4.0
    """
    bad = [name for name, weight in weights.items() if not (np.isfinite(weight) and weight >= 0)]
    if bad or not sum(weights.values()) > 0:
        raise ValueError(f"weights {dict(weights)}: each must be 0 or more, and one above 0")
    values = [scores.get(name) for name in weights]
    if any(value is None or not np.isfinite(value) for value in values):
        return float("nan")
    return float(sum(w * float(scores[k]) for k, w in weights.items()) / sum(weights.values()))


def preference_from_totals(
    total_x: pd.Series | Any, total_y: pd.Series | Any, system_x: Any, system_y: Any, margin: float
) -> pd.Series:
    """Preference from two direct totals: x if total_x − total_y > margin, y if < −margin, else ``TIE``.

    A difference equal to the margin is a tie. Differences within 1e-9 of the margin count as equal to it, because
    decimal totals such as 4.2 and 3.95 have no exact binary form. NaN in either total gives NaN.

    Parameters
    ----------
    total_x, total_y : array-like of shape (n,)
        Weighted totals of the two answers.
    system_x, system_y : array-like of shape (n,) or str
        Names of the systems that wrote them.
    margin : float
        Tie margin in units of the total, 0 or more.

    Returns
    -------
    Series of shape (n,)
        A system's name, ``TIE``, or NaN.

    Raises
    ------
    ValueError
        If ``margin`` is negative or not a number.
    """
    if not margin >= 0:
        raise ValueError(f"margin is {margin}; allowed is 0 and more")
    index = total_x.index if isinstance(total_x, pd.Series) else None
    difference = np.atleast_1d(np.asarray(total_x, dtype=float) - np.asarray(total_y, dtype=float))
    result = np.full(len(difference), TIE, dtype=object)
    for wins, system in ((difference > margin + TOLERANCE, system_x), (difference < -margin - TOLERANCE, system_y)):
        names = np.broadcast_to(np.asarray(system, dtype=object), difference.shape)
        result[wins] = names[wins]
    result[np.isnan(difference)] = np.nan
    return pd.Series(result, index=index, dtype=object)


def preference_from_letters(verdict: pd.Series, first: pd.Series, second: pd.Series) -> pd.Series:
    """Preference from a letter by place: ``A`` is the system shown first, ``B`` the second, ``TIE`` a tie.

    Raises
    ------
    ValueError
        If a verdict is none of ``A``, ``B``, ``TIE`` and not missing.
    """
    letters = np.asarray(verdict, dtype=object)
    missing = pd.isna(letters)
    known = np.isin(letters.astype(str), ["A", "B", TIE]) | missing
    if not known.all():
        offender = letters[~known][0]
        raise ValueError(
            f"{int((~known).sum())} of {len(letters)} pairwise verdicts are not A, B or TIE; first {offender!r}"
        )
    result = np.full(len(letters), np.nan, dtype=object)
    for letter, names in (("A", first), ("B", second)):
        result[letters == letter] = np.asarray(names, dtype=object)[letters == letter]
    result[letters == TIE] = TIE
    return pd.Series(result, index=verdict.index, dtype=object)


def normalize(
    verdicts: pd.DataFrame, reference: pd.DataFrame, comparisons: pd.DataFrame, *, margin: float
) -> pd.DataFrame:
    """Bring all verdicts to one row per judge, item and pair of systems, as preferences by system.

    Parameters
    ----------
    verdicts : DataFrame
        One row per planned call: judge, strategy, pass, item_id, system (direct), system_x, system_y, first, second,
        verdict (pairwise), total (direct), status. Only rows of status ``verdict`` give a preference.
    reference : DataFrame
        One row per item and pair: item_id, system_x, system_y, human, human_score_x, human_score_y.
    comparisons : DataFrame
        One row per item and pair of systems to be compared; other items of ``verdicts`` are not used.
    margin : float
        Tie margin of the direct totals.

    Returns
    -------
    DataFrame
        judge, item_id, category, system_x, system_y, human, direct, pair_original, pair_swapped (a system, ``TIE`` or
        NaN), original_first, words_x, words_y, total_x, total_y, human_score_x, human_score_y, planned_direct,
        planned_original, planned_swapped (was the call planned for this judge).

    Raises
    ------
    ValueError
        If a key (judge, strategy, pass, item, pair or system) occurs twice, a letter or a shown system is unknown,
        or a swapped pass does not reverse the original one.
    """
    needed = ["judge", "strategy", "pass", "item_id", "status"]
    check_columns(verdicts, needed, "verdicts")
    check_columns(comparisons, [*PAIR, "first"], "comparisons")
    check_columns(reference, [*PAIR, "human"], "reference")
    _refuse_duplicates(comparisons, PAIR, "comparisons")
    _refuse_duplicates(reference, PAIR, "reference")
    judges = pd.DataFrame({"judge": pd.unique(verdicts["judge"])}, dtype=object)
    base = judges.merge(comparisons.astype({"item_id": object}), how="cross")
    human = reference.reindex(columns=[*PAIR, "human", "human_score_x", "human_score_y"])
    table = base.merge(human, on=PAIR, how="left", validate="many_to_one")
    table = _with_direct(table, verdicts[verdicts["strategy"] == "direct"], margin)
    for name in ("original", "swapped"):
        calls = verdicts[(verdicts["strategy"] == "pairwise") & (verdicts["pass"] == name)]
        table = _with_pairwise(table, calls, name)
    table["original_first"] = _original_first(table)
    columns = ["judge", "item_id", "category", "system_x", "system_y", "human", "direct", "pair_original"]
    columns += ["pair_swapped", "original_first", "words_x", "words_y", "total_x", "total_y", "human_score_x"]
    columns += ["human_score_y", "planned_direct", "planned_original", "planned_swapped"]
    return table.reindex(columns=columns)


def _refuse_duplicates(table: pd.DataFrame, key: list[str], what: str) -> None:
    twice = table.duplicated(key, keep="first").to_numpy()
    if twice.any():
        offender = ", ".join(f"{name} {table[name].to_numpy()[twice][0]}" for name in key)
        raise ValueError(f"{what}: {int(twice.sum())} of {len(table)} rows repeat a key; first {offender}")


def _with_direct(table: pd.DataFrame, calls: pd.DataFrame, margin: float) -> pd.DataFrame:
    calls = calls.reindex(columns=["judge", "strategy", "pass", "item_id", "system", "total", "status"])
    _refuse_duplicates(calls, ["judge", "strategy", "pass", "item_id", "system"], "verdicts")
    usable = (calls["status"] == "verdict").to_numpy()
    totals = np.where(usable, pd.to_numeric(calls["total"]).to_numpy(dtype=float), np.nan)
    scored = calls[["judge", "item_id", "system"]].assign(total=totals, planned=True)
    for side in ("x", "y"):
        names = {"system": f"system_{side}", "total": f"total_{side}", "planned": f"planned_{side}"}
        one = scored.rename(columns=names)
        table = table.merge(one, on=["judge", "item_id", f"system_{side}"], how="left", validate="many_to_one")
    table["planned_direct"] = (table.pop("planned_x").notna() | table.pop("planned_y").notna()).to_numpy(dtype=bool)
    table["direct"] = preference_from_totals(
        table["total_x"].astype(float), table["total_y"].astype(float), table["system_x"], table["system_y"], margin
    )
    return table


def _with_pairwise(table: pd.DataFrame, calls: pd.DataFrame, name: str) -> pd.DataFrame:
    calls = calls.reindex(columns=["judge", "strategy", "pass", *PAIR, "first", "second", "verdict", "status"])
    _refuse_duplicates(calls, ["judge", "strategy", "pass", *PAIR], "verdicts")
    _check_presentation(calls)
    usable = (calls["status"] == "verdict").to_numpy()
    letters = pd.Series(np.where(usable, calls["verdict"].astype(object), np.nan), index=calls.index, dtype=object)
    preferred = preference_from_letters(letters, calls["first"], calls["second"])
    judged = calls[["judge", *PAIR]].copy()
    judged[f"pair_{name}"] = preferred
    judged[f"first_{name}"] = calls["first"]
    judged[f"planned_{name}"] = True
    table = table.merge(judged, on=["judge", *PAIR], how="left", validate="many_to_one")
    table[f"planned_{name}"] = table[f"planned_{name}"].notna().to_numpy(dtype=bool)
    return table


def _check_presentation(calls: pd.DataFrame) -> None:
    """The two systems shown must be the two of the pair."""
    columns = (calls[name].astype(object) for name in ("first", "second", "system_x", "system_y"))
    first, second, x, y = (column.to_numpy() for column in columns)
    wrong = ~(((first == x) & (second == y)) | ((first == y) & (second == x)))
    if wrong.any():
        item = calls["item_id"].to_numpy()[wrong][0]
        raise ValueError(
            f"verdicts: {int(wrong.sum())} of {len(calls)} pairwise rows show other systems than their pair's; "
            f"first item {item}: {first[wrong][0]}, {second[wrong][0]}"
        )


def _original_first(table: pd.DataFrame) -> pd.Series:
    """The system shown first in the original pass, as it was judged; as planned where it was not judged."""
    shown, swapped = table["first_original"].astype(object), table["first_swapped"].astype(object)
    same = (shown == swapped).to_numpy(dtype=bool) & shown.notna().to_numpy()
    if same.any():
        where = table[same].iloc[0]
        raise ValueError(
            f"verdicts: {int(same.sum())} swapped presentations do not reverse the original one; "
            f"first judge {where['judge']}, item {where['item_id']}"
        )
    return shown.where(shown.notna(), table["first"].astype(object))


def conservative(normalized: pd.DataFrame) -> pd.DataFrame:
    """Add the column ``aggregated``: one preference from the two passes, by the conservative rule.

    The same system twice gives it, ``TIE`` twice gives ``TIE``, anything else ``ABSTAIN``; NaN if either pass has no
    usable verdict.
    """
    original = normalized["pair_original"].to_numpy(dtype=object)
    swapped = normalized["pair_swapped"].to_numpy(dtype=object)
    missing = pd.isna(original) | pd.isna(swapped)
    result = np.where(original == swapped, original, ABSTAIN).astype(object)
    result[missing] = np.nan
    return normalized.assign(aggregated=pd.Series(result, index=normalized.index, dtype=object))
