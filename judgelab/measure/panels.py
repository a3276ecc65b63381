"""Several judges as one panel: what it decides by which rule, and how right it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.coding import excluded_note
from judgelab.measure.error_correlation import error_correlation_table
from judgelab.measure.estimates import Place, Settings, rate_row
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import frame, joined
from judgelab.measure.votes import VETO, Votes, accept_panel, panel_decisions, panel_rules, votes_of

__all__ = [
    "PANEL",
    "accept_panel",
    "accept_panel_rows",
    "error_correlation_table",
    "panel_decisions",
    "panel_rules",
    "panel_table",
]

NAN = float("nan")
PANEL = "panel"


def panel_table(
    normalized: pd.DataFrame,
    *,
    labels: Sequence[str],
    judges: Sequence[str],
    pass_: str = "original",
    ci_level: float,
    resamples: int,
    seed: int,
    veto: int = 1,
) -> pd.DataFrame:
    """How right a panel of judges is under each rule, and the best of its judges for comparison.

    ===================  =============================================================================  ================
    measure              what it is                                                                     slice
    ===================  =============================================================================  ================
    exact_agreement      decisions equal to the human label / decided units with a human label          rule=r
    coverage             decided units / units where every judge has a verdict (only such units count)  rule=r
    true_positive_rate   panel decides l / decided units that people labelled l                         rule=r, label=l
    true_negative_rate   panel does not decide l / decided units that people labelled otherwise         rule=r, label=l
    ===================  =============================================================================  ================

    All are rates from 0 to 1, undefined (NaN) without a unit in their denominator. Labels are those that people or a
    judge gave in this pass. Rules are ``majority``, the stricter ``k of n`` and ``minority veto``, see
    :func:`judgelab.measure.votes.panel_decisions`, and ``single``: the judge with the best agreement on the units where
    all have a verdict and people a label, in slices ``rule=single, judge=a``; each of them if several share the best.
    It is chosen by the labels that then measure it, which flatters it.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    judges : sequence of str
        The panel. A judge without planned calls in this pass is no member in it, which the note says; a member without
        a usable verdict has no vote, which the note counts.
    pass_ : str
        ``direct``, ``original``, ``swapped`` or ``aggregated``.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.
    veto : int
        Votes for the opposite that veto a system under ``minority veto``.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` with judge ``panel``; none if no judge has planned calls.
        Intervals: Wilson where an item has one unit, else the bootstrap over whole items.

    Raises
    ------
    ValueError
        As :func:`judgelab.measure.votes.votes_of`, or if ``veto`` is below 1.

    Notes
    -----
    Sources: Verga et al., "Replacing judges with juries", 2024 (majority); Jain et al., "Beyond consensus", 2025
    (minority veto, TPR and TNR of panels).
    """
    settings = Settings(ci_level, resamples, seed)
    votes = votes_of(normalized, labels=labels, judges=judges, pass_=pass_)
    lines: list[dict[str, Any]] = []
    for rule in panel_rules(len(votes.judges)) if votes.judges else ():
        decided = panel_decisions(votes.codes, rule, labels=labels, veto=veto)
        told = f"vetoed by {veto}" if rule == VETO else ""
        lines += _decision_rows(votes, decided, f"rule={rule}", labels, settings, joined(told, _missing(votes)))
    return frame([*lines, *(_single_rows(votes, labels, settings) if votes.judges else ())])


def _missing(votes: Votes) -> str:
    """The members that had no vote, and how often."""
    counts = (votes.codes < 0).sum(axis=0)
    named = [f"{judge} {count}" for judge, count in zip(votes.judges, counts, strict=True) if count]
    told = f"without a usable verdict, no vote: {', '.join(named)} of {len(votes.codes)} units" if named else ""
    return joined(told, votes.absent_note)


def _decision_rows(
    votes: Votes, decided: Ints, slice_: str, labels: Sequence[str], settings: Settings, note: str
) -> Iterator[dict[str, Any]]:
    human, place = votes.human, votes.place(PANEL, slice_)
    valid = (human >= 0) & (decided >= 0)
    reasons = {"without_reference": int((human < 0).sum()), "undecided": int(((human >= 0) & (decided < 0)).sum())}
    told = joined(excluded_note(len(valid), "units", **reasons), note)
    right = np.where(valid, decided == human, NAN)
    yield rate_row("exact_agreement", place, votes.items, right, settings=settings, note=told)
    reasons = {"without_all_verdicts": int((~votes.complete).sum())}
    covered = np.where(votes.complete, decided >= 0, NAN)
    left_out = joined(excluded_note(len(valid), "units", **reasons), note)
    yield rate_row("coverage", place, votes.items, covered, settings=settings, note=left_out)
    used = np.unique(np.concatenate([human, votes.codes.ravel()]))
    for code in used[used >= 0]:
        part = votes.place(PANEL, f"{slice_}, label={labels[code]}")
        people, panel = (np.where(valid, each == code, NAN) for each in (human, decided))
        yield from _rates(part, votes.items, people, panel, settings, told)


def _rates(
    place: Place, items: NDArray[Any], human: Floats, decided: Floats, settings: Settings, note: str
) -> Iterator[dict[str, Any]]:
    """TPR and TNR of yes (1) and no (0); NaN in either is left out."""
    for measure, said, values, empty in (
        ("true_positive_rate", human == 1, decided, "no decided unit that people label so"),
        ("true_negative_rate", human == 0, 1 - decided, "no decided unit that people label otherwise"),
    ):
        counted = np.where(said, values, NAN)
        told = joined(empty if np.isnan(counted).all() else "", note)
        yield rate_row(measure, place, items, counted, settings=settings, note=told)


def _single_rows(votes: Votes, labels: Sequence[str], settings: Settings) -> Iterator[dict[str, Any]]:
    """The best judge alone, chosen where all can be compared."""
    compared = votes.complete & (votes.human >= 0)
    if not compared.any():
        reason = joined("undefined: no unit where every judge has a verdict and people a label", _missing(votes))
        n_excluded = len(np.unique(votes.items))
        place = votes.place(PANEL, "rule=single")
        common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": 0}
        yield place.row("exact_agreement", NAN, **common, n_excluded=n_excluded, note=reason)
        return
    hits = (votes.codes[compared] == votes.human[compared, np.newaxis]).sum(axis=0)
    best = np.flatnonzero(hits == hits.max())
    for number in best:
        told = f"best of {len(hits)} judges on the {int(compared.sum())} units where all can be compared"
        shared = f"shared by {len(best)}" if len(best) > 1 else ""
        note = joined(told, shared, "chosen by the same labels, which flatters it", votes.absent_note)
        slice_ = f"rule=single, judge={votes.judges[number]}"
        yield from _decision_rows(votes, votes.codes[:, number], slice_, labels, settings, note)


def accept_panel_rows(
    place: Place,
    items: NDArray[Any],
    human: Floats,
    votes: Floats,
    *,
    settings: Settings,
    veto: int = 1,
    rules: Sequence[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """How right a panel's decisions to accept or to reject are, under each rule of :func:`accept_panel`.

    Parameters
    ----------
    place : Place
        Where the rows stand; their slice is ``rule=<r>``.
    items : array of shape (n,)
        Item of each answer; items are resampled whole.
    human : array of shape (n,)
        1 people accept, 0 they reject, NaN neither.
    votes : array of shape (n, k)
        1 accept, 0 reject, NaN no usable verdict.
    settings : Settings
        Coverage, number of bootstrap resamples, the protocol's seed.
    veto : int
        Rejections that reject under ``minority veto``.
    rules : sequence of str, optional
        Those of :func:`panel_rules` if not given.

    Returns
    -------
    iterator of dict
        For each rule ``exact_agreement`` and ``coverage`` as in :func:`panel_table`, ``true_positive_rate`` (panel
        accepts / decided answers that people accept) and ``true_negative_rate`` (panel rejects / decided answers that
        people reject); undefined without an answer in the denominator.

    Raises
    ------
    ValueError
        As :func:`accept_panel`, or if ``items`` or ``human`` has another length than ``votes``.
    """
    if not len(items) == len(human) == len(votes):
        raise ValueError(f"{len(items)} items, {len(human)} human decisions, {len(votes)} rows of votes: not as many")
    complete = np.asarray((~np.isnan(votes)).all(axis=1))
    absent = int(np.isnan(votes).sum())
    for rule in panel_rules(votes.shape[1]) if rules is None else rules:
        decided = accept_panel(votes, rule, veto=veto)
        part = Place(place.judge, place.strategy, place.pass_, f"rule={rule}")
        note = joined(f"vetoed by {veto}" if rule == VETO else "", f"{absent} votes missing" if absent else "")
        right = np.where(np.isnan(human) | np.isnan(decided), NAN, decided == human)
        yield rate_row("exact_agreement", part, items, right, settings=settings, note=note)
        covered = np.where(complete, ~np.isnan(decided), NAN)
        yield rate_row("coverage", part, items, covered, settings=settings, note=note)
        yield from _rates(part, items, human, decided, settings, note)
