"""What people should look at: pairs and items on which judges disagree, and systems rated far from their group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import check_columns
from judgelab.measure.polls import NOBODY, TIED, Polls, X, Y, judges_of
from judgelab.measure.resampling import Floats, Ints

__all__ = ["CUT", "disputed_items", "disputed_pairs", "outliers"]

NAN = float("nan")
CUT = 3.5  # Iglewicz and Hoaglin's
MINIMUM = 4  # ratings in a group: of three, two always lie as close to the median as the third lets them
ROUNDING = 1e-12  # ratings that differ by a smaller share of themselves differ by rounding
SPLIT = 4  # a judge whose own verdicts differ
TO_MAD, TO_MEAN = 0.6745, 1.253314  # of a normal distribution: MAD / sd, and sd / mean absolute deviation


def disputed_pairs(matches: pd.DataFrame) -> pd.DataFrame:
    """The items and pairs of systems on which judges, or the two presentations of one judge, disagree.

    Parameters
    ----------
    matches : DataFrame
        One row a verdict: ``judge``, ``item_id``, ``system_x``, ``system_y``, ``preference``; ``category`` if there.
        Further: :class:`judgelab.measure.polls.Polls`.

    Returns
    -------
    DataFrame
        One row an item and pair whose usable verdicts are not all the same: ``item_id``, ``category``, ``system_x``,
        ``system_y``; ``votes_x``, ``votes_y``, ``votes_tie``, ``unusable`` (counts of verdicts); ``judges_x``,
        ``judges_y``, ``judges_tie`` (who says nothing else) and ``judges_split`` (whose own verdicts differ), names
        in their order, separated by commas; ``disagreement``: 1 − the share of the commonest of the three answers
        among the usable verdicts, above 0 and at most 2/3. Most disputed first, then by item and pair, as text.

    Raises
    ------
    ValueError
        See :meth:`judgelab.measure.polls.Polls.of`; or if a row has no judge.

    Notes
    -----
    A judge without a usable verdict on a pair is named nowhere in its row.

    Examples
    --------
    >>> table = pd.DataFrame({"judge": list("kkl"), "item_id": 1, "system_x": "a", "system_y": "b"})
    >>> pairs = disputed_pairs(table.assign(preference=["a", "b", "a"]))
    >>> pairs[["votes_x", "votes_y", "judges_x", "judges_split"]].values.tolist()
    [[2, 1, 'l', 'k']]
    """
    judges = judges_of(matches)
    polls = Polls.of(matches)
    disagreement = _disagreement(polls.counts)
    disputed = disagreement > 0
    table = polls.head[["item_id", "category", "system_x", "system_y"]].copy()
    for name, side in (("votes_x", X), ("votes_y", Y), ("votes_tie", TIED), ("unusable", NOBODY)):
        table[name] = polls.counts[:, side]
    for name, told in zip(
        ("judges_x", "judges_y", "judges_tie", "judges_split"), _named(polls, judges, disputed), strict=True
    ):
        table[name] = told
    table["disagreement"] = disagreement
    return _in_order(table[disputed], "disagreement", ["item_id", "system_x", "system_y"])


def _disagreement(counts: Ints) -> Floats:
    """1 − share of the commonest answer among the usable verdicts of each poll; NaN without any."""
    usable = counts[:, X:].sum(axis=1)
    share = np.full(len(counts), NAN)
    np.divide(usable - counts[:, X:].max(axis=1, initial=0), usable, out=share, where=usable > 0)
    return share


def _named(polls: Polls, judges: Any, disputed: Any) -> list[list[str]]:
    """Names of the judges that say x, y, tie, and now this, now that, in each poll; empty where nothing is disputed."""
    names, who = np.unique(judges, return_inverse=True)
    chosen = disputed[polls.poll] & (polls.side != NOBODY)
    voters, place = np.unique(polls.poll[chosen] * max(len(names), 1) + who[chosen], return_inverse=True)
    least, most = np.full(len(voters), SPLIT), np.zeros(len(voters), dtype=np.int64)
    np.minimum.at(least, place, polls.side[chosen])
    np.maximum.at(most, place, polls.side[chosen])
    says = np.where(least == most, least, SPLIT)
    told: list[list[list[str]]] = [[[] for _ in polls.head.index] for _ in (X, Y, TIED, SPLIT)]
    for voter, side in zip(voters.tolist(), says.tolist(), strict=True):
        told[side - X][voter // len(names)].append(str(names[voter % len(names)]))
    return [[", ".join(judged) for judged in side] for side in told]


def _in_order(table: pd.DataFrame, measure: str, names: list[str]) -> pd.DataFrame:
    """Largest first, undefined last, equals by name as text."""
    by_name = table.sort_values(names, key=lambda column: column.astype(str), kind="stable")
    return by_name.sort_values(measure, ascending=False, kind="stable", ignore_index=True)


def disputed_items(matches: pd.DataFrame) -> pd.DataFrame:
    """How many pairs of systems are disputed on each item.

    Parameters
    ----------
    matches : DataFrame
        See :func:`disputed_pairs`; ``judge`` is not needed.

    Returns
    -------
    DataFrame
        One row an item: ``item_id``, ``category``; ``disputed_rate`` = ``numerator`` (pairs whose usable verdicts
        are not all the same) / ``denominator`` (pairs with two usable verdicts or more), NaN where there is none;
        ``left_out`` (pairs with fewer, which nobody can dispute); ``reason`` of NaN, else empty. Most disputed
        first, undefined last, equals by item as text.

    Raises
    ------
    ValueError
        See :meth:`judgelab.measure.polls.Polls.of`.
    """
    polls = Polls.of(matches)
    several = polls.counts[:, X:].sum(axis=1) > 1
    size = int(polls.item.max(initial=-1)) + 1
    start = np.unique(polls.item, return_index=True)[1]
    table = polls.head.loc[start, ["item_id", "category"]].reset_index(drop=True)
    disputed, counted, every = (
        np.bincount(polls.item[chosen], minlength=size)
        for chosen in (several & (_disagreement(polls.counts) > 0), several, np.full(len(several), True))
    )
    rate = np.full(size, NAN)
    np.divide(disputed, counted, out=rate, where=counted > 0)
    table["disputed_rate"] = rate
    table["numerator"], table["denominator"], table["left_out"] = disputed, counted, every - counted
    table["reason"] = np.where(counted > 0, "", "undefined: no pair with two usable verdicts")
    return _in_order(table, "disputed_rate", ["item_id"])


def outliers(ratings: pd.DataFrame, *, cut: float = CUT, least: float = 0.0) -> pd.DataFrame:
    """How far each system's rating stands from the rest of its group, by the modified z-score.

    With m the median of the group and MAD the median of the absolute deviations from it::

        z = 0.6745 (x − m) / MAD

    and, where more than half of the group have the same rating, so that MAD is 0, with the mean of the absolute
    deviations from m instead::

        z = (x − m) / (1.253314 MeanAD)

    Parameters
    ----------
    ratings : DataFrame
        One row a system and group: ``group``, ``system``, ``rating`` (higher is better; any scale; NaN is no rating).
    cut : float
        A system is an outlier if the absolute value of z is larger; above 0.
    least : float
        And if its rating stands at least so far from the median of the group, in the units of the ratings; 0 or more.
        It does not change z.

    Returns
    -------
    DataFrame
        ``group``, ``system``, ``rating``, ``median``, ``z``, ``outlier``, ``direction`` (``strong`` or ``weak`` of an
        outlier, else empty), ``method``, ``reason`` (of a z that is NaN: no rating, fewer than 4 rated systems, or
        all of them equal). Farthest first, undefined last, equals by group and system as text.

    Raises
    ------
    ValueError
        If a column is missing, a row has no group or system, a system is twice in a group, a rating is infinite,
        ``cut`` is not above 0, or ``least`` is below 0 or not finite.

    Notes
    -----
    Source: Iglewicz and Hoaglin, *How to Detect and Handle Outliers*, 1993, which gives the cut 3.5. One
    system apart from n − 1 equal ones has z = n / 1.253314: an outlier from n = 5 on, however small the gap is. Where
    most of a group are nearly equal, MAD is as small as the noise between them, and a z of hundreds may stand for a
    gap that means nothing; ``least`` keeps such systems out.

    Examples
    --------
    Median 3, deviations 2, 1, 0, 1, 17, their median 1: 0.6745 · 17 = 11.4665.

    >>> table = outliers(pd.DataFrame({"group": "g", "system": list("abcde"), "rating": [1.0, 2, 3, 4, 20]}))
    >>> table[["system", "z", "direction"]].head(1).values.tolist()
    [['e', 11.4665, 'strong']]

    Median 1.02, MAD 0.01: 0.6745 · 0.08 / 0.01 = 5.396, from a gap of 0.08.

    >>> close = pd.DataFrame({"group": "g", "system": list("abcde"), "rating": [1.0, 1.01, 1.02, 1.03, 1.1]})
    >>> [outliers(close, least=least)["outlier"].sum().item() for least in (0.0, 0.08, 0.09)]
    [1, 1, 0]
    """
    check_columns(ratings, ["group", "system", "rating"], "ratings")
    if not cut > 0:
        raise ValueError(f"cut is {cut}; allowed is above 0")
    if not 0 <= least < np.inf:
        raise ValueError(f"least is {least}; allowed is 0 and more, and finite")
    table = ratings[["group", "system", "rating"]].reset_index(drop=True)
    table["rating"] = pd.to_numeric(table["rating"]).astype(np.float64)
    for wrong, what in (
        (table[["group", "system"]].isna().any(axis=1), "have no group or system"),
        (table.duplicated(["group", "system"]), "repeat a group and system"),
        (np.isinf(table["rating"]), "have an infinite rating"),
    ):
        if wrong.any():
            offender = table[wrong].iloc[0].to_dict()
            raise ValueError(f"ratings: {int(wrong.sum())} of {len(table)} rows {what}, first {offender}")
    size = len(table)
    median, z = np.full(size, NAN), np.full(size, NAN)
    method, reason = np.full(size, "", dtype=object), np.full(size, "undefined: no rating", dtype=object)
    rated = table["rating"].notna()
    for rows in table[rated].groupby("group", sort=False).indices.values():
        places = np.flatnonzero(rated)[rows]
        values = table["rating"].to_numpy()[places]
        median[places] = np.median(values)
        z[places], method[places], reason[places] = _modified_z(values)
    values = table["rating"].to_numpy()
    rounding = ROUNDING * np.abs(values)  # 1.0 − 0.9 is a little less than 0.1
    far = (np.abs(z) > cut) & (np.abs(values - median) + rounding >= least)
    table["median"], table["z"], table["outlier"] = median, z, far
    table["direction"] = np.where(far, np.where(z > 0, "strong", "weak"), "").astype(object)
    table["method"], table["reason"] = method, reason
    distance = table.assign(distance=np.abs(z))
    return _in_order(distance, "distance", ["group", "system"]).drop(columns="distance")


def _modified_z(values: Floats) -> tuple[Any, str, str]:
    """z of each rating of a group, how it was computed, and why not."""
    if len(values) < MINIMUM:
        return NAN, "", f"undefined: {len(values)} rated systems in the group, {MINIMUM} are needed"
    deviations = values - np.median(values)
    rounding = ROUNDING * float(np.abs(values).max())
    middle, mean = float(np.median(np.abs(deviations))), float(np.abs(deviations).mean())
    if middle > rounding:
        return TO_MAD * deviations / middle, "median absolute deviation", ""
    if mean > rounding:
        return deviations / (TO_MEAN * mean), "mean absolute deviation, the median is 0", ""
    return NAN, "", "undefined: all ratings of the group are equal"
