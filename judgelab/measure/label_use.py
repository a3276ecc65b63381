"""How a judge spreads its labels, next to people: does one system win almost all, and how often is it a tie?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from judgelab.measure.coding import TIE, check_columns, encode, excluded_note
from judgelab.measure.differences import newcombe_paired
from judgelab.measure.estimates import Settings, rate_row, table_row
from judgelab.measure.resampling import Floats, Ints, ItemTable
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import Flags, JudgeCodes, View, each_judge

__all__ = ["PREVALENT", "label_use_table"]

NAN = float("nan")
PREVALENT = 0.9  # share of wins of one system above which kappa is not to be read alone
CAUTION = "prevalence: one system wins almost all, kappa says little; read AC1 or PABAK"
NOTHING = "undefined: no judgment with a human label and a usable verdict"
GAP = "judge minus people on the same judgments"


def label_use_table(
    normalized: pd.DataFrame, *, labels: Sequence[str], ci_level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Prevalence of one system and use of ties, of every judge in every pass and of people on the same judgments.

    ======================  ======================================================================================
    measure                 what it is
    ======================  ======================================================================================
    most_preferred_share    wins of the system that the judge prefers most often / the judge's preferences without a
                            tie in judgments in which that system takes part; slice ``system=<name>``
    human_preferred_share   the same system's wins by people / people's preferences without a tie, likewise
    tie_rate                ties of the judge / judgments
    human_tie_rate          ties of people / judgments
    tie_rate_gap            tie_rate minus human_tie_rate, −1 to 1
    tie_rate_gap_p          exact McNemar test of the gap, two-sided
    ======================  ======================================================================================

    All are over the judgments with a human label and a usable verdict. Each share leaves out the ties of its own side
    only. With two systems every judgment has both, and the largest share is at least 1/2.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``. Of equally preferred systems the first is taken.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` for each judge and pass (direct, original, swapped, both,
        aggregated). Where each item has one judgment: Wilson's interval of rates, Newcombe's paired one of the gap.
        Else the bootstrap over whole items, and the test is undefined. The interval of ``most_preferred_share`` is
        that of the named system's share; that it was chosen for being the largest is not in it. Without a preference
        of the judge both shares are undefined (slice ``all``).

        The note of both shares warns where one system has more than 0.9 (:data:`PREVALENT`) of people's preferences.

    Raises
    ------
    ValueError
        If a preference is not one of ``labels`` or a column is missing.

    Notes
    -----
    Where one label is nearly always right, chance agreement is high and kappa low whatever the judge does: Feinstein
    and Cicchetti, "High agreement but low kappa", 1990. Paired interval: Newcombe, 1998, method 10; test: McNemar,
    1947, as the exact binomial test of 1/2 on the judgments on which one side alone says tie.

    A judge that cannot tie (or is not offered it) has ``tie_rate`` 0; the gap is then people's rate.
    """
    check_columns(normalized, ["judge", "system_x", "system_y"], "normalized")
    settings = Settings(ci_level, resamples, seed)
    names = list(labels)
    tie = names.index(TIE) if TIE in names else len(names)
    lines: list[dict[str, Any]] = []
    groups = (group for _, group in normalized.groupby("judge", sort=False))
    for codes, group in zip(each_judge(normalized, labels), groups, strict=True):
        pairs = np.column_stack(
            [encode(group[name], labels, f"normalized, column {name}") for name in ("system_x", "system_y")]
        )
        for view in codes.views():
            lines += _share_rows(view, _pairs_of(codes, view, pairs), names, tie, settings)
            lines += _tie_rows(view, tie, settings)
    return frame(lines)


def _pairs_of(codes: JudgeCodes, view: View, pairs: Ints) -> Ints:
    """The two systems of each judgment of a view, shape (n, 2)."""
    name = view.place.pass_
    if name in codes.planned:
        return pairs[codes.planned[name]]
    chosen = pairs[codes.planned_both]
    return np.concatenate([chosen, chosen]) if name == "both" else chosen


def _share_rows(view: View, pairs: Ints, names: list[str], tie: int, settings: Settings) -> Iterator[dict[str, Any]]:
    """The judge's favourite and its share, and people's share of the same system."""
    judged, human = view.valid & (view.judged != tie), view.valid & (view.human != tie)
    measures = ("most_preferred_share", "human_preferred_share")
    caution = CAUTION if _prevalence(view.human[human]) > PREVALENT else ""
    note = joined(caution, view.note)
    if not judged.any():
        reason = joined("undefined: the judge prefers no system", note)
        n_items = len(np.unique(view.items))
        common = {"n_used": 0, "n_excluded": n_items, "ci_level": settings.ci_level, "note": reason}
        yield from (view.place.row(measure, NAN, **common) for measure in measures)
        return
    systems = [code for code in range(len(names)) if code != tie]
    wins = np.array([int((view.judged[judged] == code).sum()) for code in systems])
    parts = np.array([int((judged & (pairs == code).any(axis=1)).sum()) for code in systems])
    favourite = systems[int(np.argmax(wins / np.maximum(parts, 1)))]
    place = replace(view.place, slice_=f"system={names[favourite]}")
    takes_part = (pairs == favourite).any(axis=1)
    for measure, counts, side in zip(measures, (judged, human), (view.judged, view.human), strict=True):
        values = _values(counts & takes_part, side == favourite)
        left_out = excluded_note(
            int((view.valid & takes_part).sum()),
            "labelled judgments",
            tied=int((view.valid & takes_part & ~counts).sum()),
        )
        yield rate_row(measure, place, view.items, values, settings=settings, note=joined(note, left_out))


def _prevalence(preferred: Ints) -> float:
    """Largest share of one system among preferences; 0 if there is none."""
    return float(np.bincount(preferred).max() / len(preferred)) if len(preferred) else 0.0


def _values(counts: Flags, hit: Flags) -> Floats:
    """1, 0, or NaN where a judgment does not count."""
    return np.where(counts, hit.astype(float), NAN)


def _tie_rows(view: View, tie: int, settings: Settings) -> Iterator[dict[str, Any]]:
    """Both tie rates, their difference and its test."""
    valid, note = view.valid, view.note
    judge, people = view.judged == tie, view.human == tie
    for measure, side in (("tie_rate", judge), ("human_tie_rate", people)):
        yield rate_row(measure, view.place, view.items, _values(valid, side), settings=settings, note=note)
    items, judge, people = view.items[valid], judge[valid], people[valid]
    n_items = len(np.unique(items))
    common: dict[str, Any] = {"n_used": n_items, "n_excluded": len(np.unique(view.items)) - n_items}
    level: dict[str, Any] = {"ci_level": settings.ci_level}
    if n_items == 0:
        yield view.place.row("tie_rate_gap", NAN, note=joined(NOTHING, note), **common, **level)
        yield view.place.row("tie_rate_gap_p", NAN, note=joined(NOTHING, note), **common)
        return
    if n_items < len(items):
        gap = np.column_stack([judge.astype(float) - people, np.ones(len(items))])
        yield table_row(
            "tie_rate_gap",
            view.place,
            ItemTable.of(items, gap),
            _mean,
            settings=settings,
            note=note,
            undefined="",
            method=GAP,
            **common,
            **level,
        )
        reason = joined("undefined: items have several judgments", note)
        yield view.place.row("tie_rate_gap_p", NAN, note=reason, **common)
        return
    outcomes = ((True, True), (True, False), (False, True), (False, False))
    both, alone, missed, neither = (int(((judge == j) & (people == p)).sum()) for j, p in outcomes)
    bounds = newcombe_paired(both, alone, missed, neither, settings.ci_level)
    method = joined(GAP, "Newcombe's paired score interval")
    estimate = (alone - missed) / n_items
    yield view.place.row("tie_rate_gap", estimate, interval=bounds, method=method, note=note, **common, **level)
    if alone + missed == 0:
        reason = joined("undefined: no judgment on which one side alone says tie", note)
        yield view.place.row("tie_rate_gap_p", NAN, note=reason, **common)
        return
    method = f"exact McNemar test, two-sided: the judge alone says tie in {alone} of {alone + missed} discordant"
    p = float(binomtest(alone, alone + missed).pvalue)
    yield view.place.row("tie_rate_gap_p", p, method=method, note=note, **common)


def _mean(totals: Floats) -> Floats:
    return (totals[:, 0] / totals[:, 1])[np.newaxis, :]
