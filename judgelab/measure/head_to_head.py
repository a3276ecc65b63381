"""Two systems against each other, for every pair: wins, ties, the binomial test, and what may be concluded."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest, norm

from judgelab.measure.coding import TIE, check_columns, excluded_note
from judgelab.measure.estimates import Place, Settings, rate_row
from judgelab.measure.matches import Matches
from judgelab.measure.multiplicity import holm
from judgelab.measure.resampling import Floats
from judgelab.measure.rows import frame
from judgelab.measure.sequential import binomial_test_row

__all__ = ["POWER", "folded", "head_to_head", "head_to_head_table"]

NAN = float("nan")
POWER = 0.8
LEADS = {1.0: "x ahead", -1.0: "y ahead", 0.0: "treat as tied"}


def folded(matches: pd.DataFrame, *, by: Sequence[str] = ("item_id",)) -> pd.DataFrame:
    """All verdicts on one pair of answers folded to one: both presentations, and all judges unless ``by`` has them.

    Two verdicts on one item are not two independent trials, so that whatever counts items starts here. A system wins
    if more than half of the usable verdicts, ties among them, prefer it; else, if there is a usable verdict, the two
    tie: once each (a preference that followed the place), ties only, or a win beside a tie. A win beside an unusable
    verdict is a win. This equals :func:`judgelab.measure.consensus.consensus` at 0.5.

    Parameters
    ----------
    matches : DataFrame
        A matches table: ``by``, system_x, system_y, preference. Weights are not read.
    by : sequence of str
        What is kept apart, beside the pair.

    Returns
    -------
    DataFrame
        One row per value of ``by`` and pair that the table has: ``by``, system_x (of the two the one that appears
        first in the table, so that a pair is named one way throughout), system_y, wins_x, wins_y, ties, unusable
        (numbers of verdicts), preference (a system, ``TIE``, or NaN without a usable verdict). In order of
        appearance; no row without rows.

    Raises
    ------
    ValueError
        As :class:`judgelab.measure.matches.Matches`, and if a column of ``by`` is missing or has missing values.

    Examples
    --------
    >>> rows = [("i1", "A", "B", "A"), ("i1", "B", "A", "A"), ("i2", "A", "B", "A"), ("i2", "B", "A", "TIE")]
    >>> table = pd.DataFrame(rows, columns=["item_id", "system_x", "system_y", "preference"])
    >>> folded(table)[["item_id", "wins_x", "ties", "preference"]].to_numpy().tolist()
    [['i1', 2, 0, 'A'], ['i2', 1, 1, 'TIE']]
    """
    check_columns(matches, list(by), "matches")
    Matches.of(matches)  # refuses what is no match
    for name in by:
        if matches[name].isna().any():
            raise ValueError(f"matches, column {name}: {int(matches[name].isna().sum())} of {len(matches)} are missing")
    x, y, given = (matches[name].to_numpy(dtype=object) for name in ("system_x", "system_y", "preference"))
    preference = given.copy()
    preference[pd.isna(given)] = None
    order = pd.factorize(np.column_stack([x, y]).ravel())[0].reshape(-1, 2)
    turned = order[:, 0] > order[:, 1]
    first, second = np.where(turned, y, x), np.where(turned, x, y)
    keys = [*by, "system_x", "system_y"]
    counts = {
        "wins_x": preference == first,
        "wins_y": preference == second,
        "ties": preference == TIE,
        "unusable": pd.isna(given),
    }
    table = matches[list(by)].assign(system_x=first, system_y=second)
    table = table.assign(**{name: np.asarray(each, dtype=np.int64) for name, each in counts.items()})
    summed = table.groupby(keys, sort=False, observed=True)[list(counts)].sum().reset_index()
    usable = summed["wins_x"] + summed["wins_y"] + summed["ties"]
    result = np.full(len(summed), np.nan, dtype=object)
    result[(usable > 0).to_numpy()] = TIE
    for system, votes in (("system_x", "wins_x"), ("system_y", "wins_y")):
        result = np.where(2 * summed[votes] > usable, summed[system].to_numpy(dtype=object), result)
    return summed.assign(preference=pd.Series(result, index=summed.index, dtype=object))


def head_to_head(
    matches: pd.DataFrame, *, alpha: float = 0.05, ci_level: float, resamples: int, seed: int, judge: str
) -> pd.DataFrame:
    """Which system of each pair is preferred, by one result an item (:func:`folded`).

    ===================  =====================================================================================
    measure              what it is
    ===================  =====================================================================================
    win_share            items that system a wins / items that either wins. Clopper-Pearson's interval: at
                         ``ci_level`` = 1 − ``alpha`` it leaves out 1/2 where binomial_p is below ``alpha``
    tie_rate             tied items / items with a result; much of it says that other things may decide
    unusable_rate        verdicts that say nothing / verdicts
    binomial_p           exact two-sided test that win_share is 1/2. Undefined without a decisive item
    binomial_p_holm      the same after Holm over the pairs that could be tested
    items_needed         items (with as many ties as seen) with which a true share like the observed one would be
                         found with 80 % power, by one test at ``alpha``. Undefined at 1/2 and without
                         a decisive item
    head_to_head_lead    1 a is ahead, −1 b is (binomial_p_holm below ``alpha``), 0 neither is: treat as tied.
                         Undefined with fewer decisive items than p < ``alpha`` takes if all go one way
    ===================  =====================================================================================

    Parameters
    ----------
    matches : DataFrame
        A matches table: item_id, system_x, system_y, preference. Weights are not read.
    alpha : float
        Size of the test, above 0 and below 0.8, the power.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.
    judge : str
        Whose verdicts these are: a judge, or ``panel`` where the table has several, which are folded together.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`, strategy ``pairwise``, pass ``both``, slice ``pair=<a>|<b>``, a
        being the system that appears first in the table. tie_rate has Wilson's interval, unusable_rate the bootstrap
        over items where an item has several verdicts. No rows without matches.

    Raises
    ------
    ValueError
        As :func:`folded`; if an option is out of range.

    Notes
    -----
    No peeking: the test holds for a number of items that was fixed before judging. Whoever looks after each item and
    stops at the first p < 0.05 is wrong far more often than in 5 % of studies; there is no stopping rule here, see
    :mod:`judgelab.measure.sequential` for intervals that may be looked at. The items must be independent: paraphrases
    of one prompt are one item. ``items_needed`` takes the observed share for the true one; a share that led to a
    small p is as a rule too far from 1/2, and the number too small.

    Sources: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
    1934; Holm, 1979; ``items_needed``: Fleiss, Levin and Paik, *Statistical Methods for Rates and Proportions*, 2003,
    chapter 2, the number for one proportion with the continuity correction, divided by the share of decisive items;
    within a tenth of :func:`judgelab.measure.planning.items_for_difference`, which is exact and slow.

    Examples
    --------
    Six of six: p = 2 / 2⁶.

    >>> table = pd.DataFrame({"item_id": range(6), "system_x": "A", "system_y": "B", "preference": "A"})
    >>> rows = head_to_head(table, ci_level=0.95, resamples=100, seed=1, judge="j").set_index("measure")
    >>> rows.loc[["binomial_p", "items_needed", "head_to_head_lead"], "estimate"].tolist()
    [0.03125, 6.0, 1.0]
    """
    if not 0 < alpha < POWER:
        raise ValueError(f"alpha is {alpha}; allowed is above 0 and below {POWER:g}")
    settings = Settings(ci_level, resamples, seed)
    pairs = [
        _pair(Place(judge, "pairwise", "both", f"pair={a}|{b}"), part, settings)
        for (a, b), part in folded(matches).groupby(["system_x", "system_y"], sort=False)
    ]
    adjusted = holm([lines[-1]["estimate"] for lines in pairs])
    lines: list[dict[str, Any]] = []
    for own, p in zip(pairs, adjusted, strict=True):
        lines += [*own, *_conclusion(own, float(p), len(pairs), alpha)]
    return frame(lines)


def _pair(place: Place, part: pd.DataFrame, settings: Settings) -> list[dict[str, Any]]:
    """The rates of one pair and, last, its p-value."""
    items = pd.factorize(part["item_id"])[0].astype(np.int64)
    result = part["preference"]
    won, lost, tied = (
        (result == name).to_numpy(dtype=bool)
        for name in (part["system_x"], part["system_y"], pd.Series(TIE, part.index))
    )
    none = result.isna().to_numpy(dtype=bool)
    note = excluded_note(len(part), "items", tied=int(tied.sum()), without_a_usable_verdict=int(none.sum()))
    share = rate_row("win_share", place, items, np.where(won | lost, won, NAN), settings=settings, note=note)
    wins, decisive = int(won.sum()), int((won | lost).sum())
    if decisive:
        exact = binomtest(wins, decisive).proportion_ci(settings.ci_level, method="exact")
        share |= {"ci_low": float(exact.low), "ci_high": float(exact.high), "method": "Clopper-Pearson"}
    note = excluded_note(len(part), "items", without_a_usable_verdict=int(none.sum()))
    ties = rate_row("tie_rate", place, items, np.where(none, NAN, tied), settings=settings, note=note)
    unusable = rate_row("unusable_rate", place, *_verdicts(items, part), settings=settings)
    left_out = len(part) - decisive
    test = binomial_test_row("binomial_p", place, wins, decisive, null=0.5, n_excluded=left_out)
    return [share, ties, unusable, test]


def _verdicts(items: Any, part: pd.DataFrame) -> tuple[Any, Floats]:
    """Item of each verdict, and 1 where it is unusable, from their numbers."""
    unusable = part["unusable"].to_numpy(dtype=np.int64)
    usable = part[["wins_x", "wins_y", "ties"]].to_numpy(dtype=np.int64).sum(axis=1)
    values = np.concatenate([np.zeros(usable.sum()), np.ones(unusable.sum())])
    return np.concatenate([np.repeat(items, usable), np.repeat(items, unusable)]), values


def _conclusion(lines: list[dict[str, Any]], p_holm: float, pairs: int, alpha: float) -> Iterator[dict[str, Any]]:
    """The corrected p-value of a pair, the items that it needs, and which system is ahead."""
    share, ties, _, test = lines
    decisive = int(test["denominator"])
    yield test | {
        "measure": "binomial_p_holm",
        "estimate": p_holm,
        "method": f"{test['method']}; Holm over {pairs} pairs",
    }
    number, note = _needed(share["estimate"], decisive, int(ties["denominator"]), alpha)
    plain = {"numerator": None, "denominator": None}
    method = f"normal approximation with continuity correction, test at {alpha:g}, power {POWER:g}"
    yield test | plain | {"measure": "items_needed", "estimate": number, "method": method, "note": note}
    least = next(n for n in itertools.count(1) if 2.0 ** (1 - n) < alpha)
    lead, note = NAN, f"undefined: too little data: {decisive} decisive items, {least} are the least for p < {alpha:g}"
    if decisive >= least:
        lead, note = (0.0 if p_holm >= alpha else math.copysign(1.0, share["estimate"] - 0.5)), ""
    method = f"binomial_p_holm below {alpha:g}"
    yield test | plain | {"measure": "head_to_head_lead", "estimate": lead, "note": note, "method": method}


def _needed(share: float, decisive: int, items: int, alpha: float) -> tuple[float, str]:
    """Items with which a share like this one is told from 1/2, and why there is no such number."""
    if decisive == 0:
        return NAN, "undefined: no decisive item"
    if share == 0.5:
        return NAN, "undefined: the observed share is one half"
    z, power = (float(norm.ppf(p)) for p in (1 - alpha / 2, POWER))
    off = abs(share - 0.5)
    number = ((z / 2 + power * math.sqrt(share * (1 - share))) / off) ** 2
    number *= ((1 + math.sqrt(1 + 2 / (number * off))) / 2) ** 2  # the exact test is as a normal one with a correction
    return float(math.ceil(math.ceil(number) * items / decisive)), ""


def head_to_head_table(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of :func:`head_to_head`, one line a pair, for people to read.

    Parameters
    ----------
    rows : DataFrame
        Rows of :func:`head_to_head`, also of several judges; other measures are not looked at.

    Returns
    -------
    DataFrame
        judge, system_x, system_y, wins_x, wins_y, ties, items (with a result), win_share (of system_x), ci_low,
        ci_high, p, p_holm, needed (items, see there ``items_needed``), conclusion: ``x ahead``, ``y ahead``,
        ``treat as tied`` (on this set of items; not shown to be equal) or ``too little data`` (no decisive item, or
        fewer than the test needs if all go one way: 6 at 0.05). No row without rows.

    Raises
    ------
    ValueError
        If a column or a measure of a pair is missing, or a pair cannot be read because a name has a ``|``.

    Examples
    --------
    >>> table = pd.DataFrame({"item_id": range(5), "system_x": "A", "system_y": "B", "preference": "B"})
    >>> rows = head_to_head(table, ci_level=0.95, resamples=100, seed=1, judge="j")
    >>> head_to_head_table(rows)[["system_x", "wins_x", "wins_y", "p", "conclusion"]].to_numpy().tolist()
    [['A', 0, 5, 0.0625, 'too little data']]
    """
    check_columns(rows, ["judge", "slice", "measure", "estimate", "numerator", "denominator"], "rows")
    pairs = rows[rows["slice"].astype(str).str.startswith("pair=")]
    found = [
        _line(str(judge), str(name), part) for (judge, name), part in pairs.groupby(["judge", "slice"], sort=False)
    ]
    names = ["judge", "system_x", "system_y", "wins_x", "wins_y", "ties", "items", "win_share", "ci_low", "ci_high"]
    return pd.DataFrame(found, columns=[*names, "p", "p_holm", "needed", "conclusion"])


def _line(judge: str, slice_: str, part: pd.DataFrame) -> dict[str, Any]:
    """One pair of one judge."""
    systems = slice_.removeprefix("pair=").split("|")
    if len(systems) != 2:
        raise ValueError(f"rows, slice {slice_}: two systems separated by one | are needed")
    by = {line["measure"]: line for line in part.to_dict("records")}
    used = ("win_share", "tie_rate", "binomial_p", "binomial_p_holm", "items_needed", "head_to_head_lead")
    missing = [name for name in used if name not in by]
    if missing:
        raise ValueError(f"rows, slice {slice_}: no row of {', '.join(missing)}")
    share, ties = by["win_share"], by["tie_rate"]
    return {
        "judge": judge,
        "system_x": systems[0],
        "system_y": systems[1],
        "wins_x": int(share["numerator"]),
        "wins_y": int(share["denominator"]) - int(share["numerator"]),
        "ties": int(ties["numerator"]),
        "items": int(ties["denominator"]),
        "win_share": share["estimate"],
        "ci_low": share["ci_low"],
        "ci_high": share["ci_high"],
        "p": by["binomial_p"]["estimate"],
        "p_holm": by["binomial_p_holm"]["estimate"],
        "needed": by["items_needed"]["estimate"],
        "conclusion": LEADS.get(by["head_to_head_lead"]["estimate"], "too little data"),
    }
