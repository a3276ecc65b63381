"""Panels of judges on many candidates: the verdicts on a pair of answers become one by a threshold of agreement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.coding import TIE, excluded_note
from judgelab.measure.estimates import Place, Settings, mean_row, rate_row, table_row
from judgelab.measure.matches import Matches
from judgelab.measure.polls import NOBODY, THRESHOLDS, TIED, Polls, X, Y, judges_of, threshold_name, threshold_names
from judgelab.measure.resampling import Floats, ItemTable
from judgelab.measure.rows import frame, joined

__all__ = [
    "THRESHOLDS",
    "consensus",
    "consensus_by_group",
    "consensus_table",
    "single_judges",
    "spread_over_groups",
    "threshold_name",
]

NAN = float("nan")


def consensus(matches: pd.DataFrame, threshold: float | None, *, judge: str = "panel") -> pd.DataFrame:
    """The verdicts on each item and pair of systems as one verdict, again a matches table.

    With vₓ and v_y the votes for the two systems, and u the usable verdicts, ties among them, the panel prefers

    * x, if vₓ / u ≥ threshold and vₓ / u > 1/2; y likewise;
    * otherwise nobody: ``TIE``. A tie is a vote for nobody, and one is enough against a threshold of 1;
    * NaN if u = 0. A verdict that is not usable does not count and is reported.

    Parameters
    ----------
    matches : DataFrame
        One row a verdict, of any judge and presentation: ``item_id``, ``system_x``, ``system_y``, ``preference``
        (one of the two, ``TIE``, or missing: not usable); read if there: ``category``, ``reason``, ``words_x``,
        ``words_y``. (b, a) is the same pair as (a, b). See :class:`Polls`.
    threshold : float or None
        Above 0, at most 1; None for no threshold: every verdict counts for itself.
    judge : str
        Name of the panel.

    Returns
    -------
    DataFrame
        One row an item and pair, in order of appearance: ``judge``, ``item_id``, ``category``, ``pass`` and ``first``
        (none: all presentations together), ``system_x``, ``system_y``, ``preference``, ``reason``, ``words_x``,
        ``words_y``; then ``votes_x``, ``votes_y``, ``votes_tie``, ``unusable`` (counts) and ``share`` (of the
        leading side among the usable verdicts, 0 to 1; NaN without any). Without a threshold: the rows of
        ``matches`` as they are, under the panel's name, with the same last columns.

    Raises
    ------
    ValueError
        See :meth:`Polls.of` and :func:`threshold_name`.

    Notes
    -----
    Source: "(Towards) Scalable Reliable Automated Evaluation with Large Language Models", section 4.3: every judge
    sees both presentations of every pair.

    Examples
    --------
    >>> table = pd.DataFrame({"item_id": 1, "system_x": "a", "system_y": "b", "preference": ["a"] * 3 + ["TIE"]})
    >>> [consensus(table, threshold)["preference"].tolist() for threshold in (1.0, 0.75, None)]
    [['TIE'], ['a'], ['a', 'a', 'a', 'TIE']]
    """
    threshold_name(threshold)
    if threshold is None:
        Matches.of(matches)
        x, y, given = (matches[name].to_numpy(dtype=object) for name in ("system_x", "system_y", "preference"))
        says = np.column_stack([given == x, given == y, given == TIE, pd.isna(given)]).astype(np.int64)
        votes = dict(zip(("votes_x", "votes_y", "votes_tie", "unusable"), says.T, strict=True))
        lead = np.where(says[:, 3] == 1, NAN, says[:, 0] + says[:, 1])
        return matches.assign(judge=judge, **votes, share=lead).reset_index(drop=True)
    polls = Polls.of(matches)
    result, counts, head = polls.result(threshold), polls.counts, polls.head
    x, y = (head[name].to_numpy(dtype=object) for name in ("system_x", "system_y"))
    preference = np.select([result == X, result == Y, result == TIED], [x, y, np.full(len(x), TIE, dtype=object)], NAN)
    usable = counts[:, X:].sum(axis=1)
    share = np.full(len(head), NAN)
    np.divide(counts[:, [X, Y]].max(axis=1, initial=0), usable, out=share, where=usable > 0)
    return pd.DataFrame(
        {
            "judge": np.full(len(head), judge, dtype=object),
            **{name: head[name] for name in ("item_id", "category")},
            "pass": "",
            "system_x": x,
            "system_y": y,
            "first": np.full(len(head), NAN, dtype=object),
            "preference": preference.astype(object),
            "reason": _reasons(matches, polls, result == NOBODY),
            **{name: head[name] for name in ("words_x", "words_y")},
            "votes_x": counts[:, X],
            "votes_y": counts[:, Y],
            "votes_tie": counts[:, TIED],
            "unusable": counts[:, NOBODY],
            "share": share,
        }
    )


def _reasons(matches: pd.DataFrame, polls: Polls, silent: NDArray[np.bool_]) -> NDArray[Any]:
    """Why a poll has no result, with how often each reason was given; empty for the others."""
    reasons = np.full(len(silent), "", dtype=object)
    of = silent[polls.poll]
    given = matches["reason"].fillna("").astype(str).to_numpy()[of] if "reason" in matches else ""
    told = pd.DataFrame({"poll": polls.poll[of], "reason": given}).value_counts().reset_index()
    told = told[told["reason"] != ""].sort_values(["count", "reason"], ascending=[False, True])
    texts: dict[int, list[str]] = {}
    for poll, reason, count in zip(told["poll"], told["reason"], told["count"], strict=True):
        texts.setdefault(int(poll), []).append(f"{count} {reason}")
    for poll in np.flatnonzero(silent):
        why = ", ".join(texts.get(int(poll), []))
        reasons[poll] = f"no usable verdict of {polls.counts[poll, NOBODY]}" + (f": {why}" if why else "")
    return reasons


def consensus_table(
    matches: pd.DataFrame,
    *,
    thresholds: Sequence[float | None] = THRESHOLDS,
    ci_level: float,
    resamples: int,
    seed: int,
    judge: str = "panel",
) -> pd.DataFrame:
    """How much a panel decides at each threshold, and how much of its judges' opinion that overrules.

    =================  ================================================================================================
    measure            numerator / denominator
    =================  ================================================================================================
    draw_rate          draws / pairs with a result
    decisive_rate      pairs decided for one system / pairs with a result
    coverage           pairs with a result / pairs planned (all in the table)
    minority_rate      usable verdicts that differ from the panel's, ties among them / usable verdicts on decided pairs
    =================  ================================================================================================

    A pair is one of two systems on one item; without a threshold each verdict stands for a pair of its own, and has
    no minority.

    Parameters
    ----------
    matches : DataFrame
        See :func:`consensus`.
    thresholds : sequence of float or None
        See :func:`consensus`; each named once.
    ci_level, resamples, seed
        See :class:`judgelab.measure.estimates.Settings`.
    judge : str
        Name of the panel.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` in slices ``threshold=<t>`` (see :func:`threshold_name`), each
        in [0, 1]; bootstrap over items, or Wilson's interval where every item has one pair; the minority rate's ends
        at what the threshold allows. Without a result undefined.

    Raises
    ------
    ValueError
        See :func:`consensus`; or if a threshold is given twice.

    Notes
    -----
    Source: as :func:`consensus`. A stricter threshold decides no more pairs, and has no larger minority rate.
    """
    settings = Settings(ci_level, resamples, seed)
    names = threshold_names(thresholds)
    polls = Polls.of(matches)

    def made() -> Iterator[dict[str, Any]]:
        for threshold, name in zip(thresholds, names, strict=True):
            place = Place(judge, "pairwise", "both", f"threshold={name}")
            result = polls.side if threshold is None else polls.result(threshold)
            items = polls.item[polls.poll] if threshold is None else polls.item
            silent = result == NOBODY
            what = "verdicts" if threshold is None else "pairs"
            note = excluded_note(len(result), what, without_a_usable_verdict=int(silent.sum()))
            for measure, yes in (("draw_rate", result == TIED), ("decisive_rate", (result == X) | (result == Y))):
                values = np.where(silent, NAN, yes.astype(np.float64))
                yield rate_row(measure, place, items, values, settings=settings, note=note)
            yield rate_row("coverage", place, items, (~silent).astype(np.float64), settings=settings)
            if threshold is None:
                reason = "undefined: without a threshold no verdict is overruled"
                yield place.row("minority_rate", NAN, n_used=0, n_excluded=len(np.unique(items)), note=reason)
                continue
            panel = result[polls.poll]
            counts = ((panel == X) | (panel == Y)) & (polls.side != NOBODY)
            values = np.where(counts, (polls.side != panel).astype(np.float64), NAN)
            line = rate_row("minority_rate", place, polls.item[polls.poll], values, settings=settings)
            yield line | {"ci_high": _at_most(1 - max(threshold, 0.5), line["ci_high"], line["estimate"])}

    return frame(made())


def _at_most(limit: float, high: float, estimate: float) -> float:
    """An upper bound that the threshold itself does not rule out: a minority is no more than what it leaves over."""
    return high if np.isnan(high) else max(estimate, min(high, limit))


def consensus_by_group(
    matches: pd.DataFrame, *, group: str, thresholds: Sequence[float | None] = THRESHOLDS
) -> pd.DataFrame:
    """Draws of a panel in each group of pairs.

    Parameters
    ----------
    matches : DataFrame
        See :func:`consensus`.
    group : str
        A column, such as ``category`` or ``item_id``; every row has a value. Pairs are formed inside a group.
    thresholds : sequence of float or None
        See :func:`consensus_table`.

    Returns
    -------
    DataFrame
        One row a group and threshold, in order of appearance: ``group``, ``threshold`` (:func:`threshold_name`),
        ``pairs`` (planned; verdicts for ``none``), ``draws``, ``draw_rate`` (draws / pairs with a result, NaN without
        any) and ``no_verdict`` (pairs without a result).

    Raises
    ------
    ValueError
        See :meth:`Polls.of` and :func:`consensus_table`.
    """
    names = threshold_names(thresholds)
    polls = Polls.of(matches, group=group)
    size = len(polls.groups) if len(matches) else 0
    parts = []
    for number, (threshold, name) in enumerate(zip(thresholds, names, strict=True)):
        result = polls.side if threshold is None else polls.result(threshold)
        of = polls.group[polls.poll] if threshold is None else polls.group
        pairs, draws, silent = (
            np.bincount(of[chosen], minlength=size)
            for chosen in (np.full(len(of), True), result == TIED, result == NOBODY)
        )
        rate = np.full(size, NAN)
        np.divide(draws, pairs - silent, out=rate, where=pairs > silent)
        counted = {"pairs": pairs, "draws": draws, "draw_rate": rate, "no_verdict": silent}
        named = {"group": np.array(polls.groups[:size], dtype=object), "threshold": name, "order": number}
        parts.append(pd.DataFrame(named | counted, index=range(size)))
    if not parts:
        return pd.DataFrame(columns=["group", "threshold", "pairs", "draws", "draw_rate", "no_verdict"])
    table = pd.concat(parts).reset_index().sort_values(["index", "order"], ignore_index=True)
    return table.drop(columns=["index", "order"])


def spread_over_groups(
    matches: pd.DataFrame,
    *,
    group: str,
    thresholds: Sequence[float | None] = THRESHOLDS,
    ci_level: float,
    resamples: int,
    seed: int,
    judge: str = "panel",
) -> pd.DataFrame:
    """Mean and standard deviation over groups of a panel's rate of draws, every group counting the same.

    Parameters
    ----------
    matches, group, thresholds
        See :func:`consensus_by_group`.
    ci_level, resamples, seed, judge
        See :func:`consensus_table`.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` in slices ``threshold=<t>``: ``draw_rate_mean`` in [0, 1] and
        ``draw_rate_sd`` (n − 1 in its denominator; undefined for one group). Groups are what is resampled and what
        ``n_used`` counts: the interval is for other groups like these, and a few groups say little about them.
        ``n_excluded`` counts the groups without a result.

    Raises
    ------
    ValueError
        See :func:`consensus_by_group`.
    """
    settings = Settings(ci_level, resamples, seed)
    table = consensus_by_group(matches, group=group, thresholds=thresholds)
    method = settings.method.replace("over items", "over groups")

    def made() -> Iterator[dict[str, Any]]:
        for name in threshold_names(thresholds):
            place = Place(judge, "pairwise", "both", f"threshold={name}")
            rates = table.loc[table["threshold"] == name, "draw_rate"].to_numpy(dtype=np.float64)
            known = rates[~np.isnan(rates)]
            note = excluded_note(len(rates), "groups", without_a_result=len(rates) - len(known))
            mean = mean_row("draw_rate_mean", place, np.arange(len(rates)), rates, settings=settings, note=note)
            yield mean | {"method": mean["method"] and method}
            centred = known - known.mean() if len(known) else known  # before squares are subtracted from one another
            sums = ItemTable.of(np.arange(len(known)), np.column_stack([np.ones(len(known)), centred, centred**2]))
            common: dict[str, Any] = {"ci_level": ci_level, "n_used": len(known), "n_excluded": len(rates) - len(known)}
            if len(known) < 2:
                reason = joined(f"undefined: {len(known)} groups, 2 are needed", note)
                yield place.row("draw_rate_sd", NAN, note=reason, **common)
                continue
            line = table_row(
                "draw_rate_sd", place, sums, _deviation, settings=settings, note=note, undefined="one group", **common
            )
            yield line | {"method": method}

    return frame(made())


def _deviation(totals: Floats) -> Floats:
    """Standard deviation from n, Σ d and Σ d², shape (1, b)."""
    n, total, squares = totals.T
    variance = np.full(len(n), NAN)
    np.divide(squares - total * total / np.maximum(n, 1), n - 1, out=variance, where=n > 1)
    return np.sqrt(np.where(variance < 1e-14, 0.0, variance))[np.newaxis, :]


def single_judges(matches: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The verdicts of each judge alone, all presentations, by its name, in the order of the names.

    Raises
    ------
    ValueError
        See :func:`judgelab.measure.polls.judges_of`.
    """
    judges = judges_of(matches)
    return {str(name): matches[judges == name] for name in sorted(set(judges))}
