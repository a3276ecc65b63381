"""May this judge replace a reviewer? The alternative annotator test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.answers import answers_of, check_score_columns
from judgelab.measure.coding import check_columns, excluded_note
from judgelab.measure.estimates import Place, Settings, rate_row, table_row
from judgelab.measure.multiplicity import benjamini_yekutieli
from judgelab.measure.noninferiority import advantage_test
from judgelab.measure.others import LabelMatrix, judge_codes
from judgelab.measure.reliability import initial_labels
from judgelab.measure.resampling import Floats, Ints, ItemTable
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import Flags

__all__ = ["alternative_annotator_scores", "alternative_annotator_table"]

NAN = float("nan")
MINIMUM_REVIEWERS = 3
MINIMUM_UNITS = 30
EQUAL = 1e-9  # squared distances of scores: decimal totals have no exact binary form
PASSED = 0.5  # winning rate from which the judge may replace a reviewer


def alternative_annotator_table(
    labels: pd.DataFrame,
    normalized: pd.DataFrame,
    *,
    labels_allowed: Sequence[str],
    epsilon: float,
    false_discovery_rate: float,
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Whether a judge represents the other reviewers at least as well as a reviewer does, less an allowance ε.

    For reviewer j and unit i, let S(f, i, j) be the share of the other reviewers of i whose label equals the judge's,
    and S(hⱼ, i, j) the share whose label equals j's. The judge is at least as good on i if S(f, i, j) ≥ S(hⱼ, i, j),
    the reviewer if S(hⱼ, i, j) ≥ S(f, i, j); ρᶠⱼ and ρʰⱼ are the shares of units on which that holds. Tested is

        H₀: ρᶠⱼ ≤ ρʰⱼ − ε

    for each reviewer, see :func:`judgelab.measure.noninferiority.advantage_test` (the paper's paired t test from 30
    items on), with the Benjamini-Yekutieli procedure over the reviewers. The winning rate ω is the share of the tested
    reviewers for whom H₀ is rejected; from 1/2 on the judge may replace a reviewer.

    ==============================  =====================================================================
    measure                         what it is
    ==============================  =====================================================================
    advantage_probability           ρᶠⱼ, slice ``reviewer=<r>``
    alternative_annotator_p         p of reviewer j's test, slice ``reviewer=<r>``
    winning_rate                    ω: reviewers with a rejected H₀ / reviewers who could be tested
    average_advantage_probability   mean of ρᶠⱼ over the reviewers
    ==============================  =====================================================================

    Parameters
    ----------
    labels, normalized, labels_allowed
        As in :func:`judgelab.measure.ceiling.ceiling_table`.
    epsilon : float
        What the judge may do worse because it costs less, 0 to below 1. The paper suggests 0.2 where reviewers are
        experts, 0.15 where they are skilled, 0.1 for crowd workers.
    false_discovery_rate : float
        Above 0 and below 1.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows for each judge and pass (direct, original, swapped). All but the advantage probabilities are undefined
        with fewer than three reviewers or 30 units; the average is with fewer than three reviewers.

    Raises
    ------
    ValueError
        If ``epsilon`` is out of range, or as :func:`~judgelab.measure.ceiling.ceiling_table`.

    Notes
    -----
    Source: Calderon, Reichart and Dror, "The Alternative Annotator Test for LLM-as-a-Judge: How to Statistically
    Justify Replacing Human Annotators with LLMs", 2025, section 3. The alignment is that for labels (equality); that
    for scores is in :func:`alternative_annotator_scores`. Checked against a loop over units written from the paper.
    """
    _check(epsilon)
    settings = Settings(ci_level, resamples, seed)
    matrix = LabelMatrix.of(labels, labels_allowed)
    lines: list[dict[str, Any]] = []
    for place, judged, planned in judge_codes(matrix, normalized, labels_allowed):
        compared = _Compared(
            matrix.reviewers, matrix.items, planned, matrix.codes >= 0, *_compare_labels(matrix.codes, judged)
        )
        lines += _rows(place, compared, epsilon, false_discovery_rate, settings)
    return frame(lines)


def alternative_annotator_scores(
    labels: pd.DataFrame,
    normalized: pd.DataFrame,
    *,
    epsilon: float,
    false_discovery_rate: float,
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """:func:`alternative_annotator_table` of direct scores: the better one is nearer to the others' scores.

    A unit is an answer, and S(f, i, j) = −√(mean over the other reviewers k of (f(i) − hₖ(i))²), f(i) the judge's total
    and hₖ(i) a reviewer's score of the answer, its mean over the pairs in which the answer stands.

    Parameters
    ----------
    labels : DataFrame
        Single human labels with score_x and score_y; without these columns there are no rows.
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`; judges without planned direct calls have no rows.
    epsilon, false_discovery_rate, ci_level, resamples, seed
        As in :func:`alternative_annotator_table`.

    Returns
    -------
    DataFrame
        The same measures with strategy and pass ``direct``, slices ``scores`` and ``scores,reviewer=<r>``.

    Raises
    ------
    ValueError
        If ``epsilon`` is out of range, a column is missing, a score is infinite, or a reviewer labels a unit twice.

    Notes
    -----
    Source as there, section 3 (negative root mean squared error). Distances that differ by less than 1e-9 are equal.
    """
    _check(epsilon)
    settings = Settings(ci_level, resamples, seed)
    check_score_columns(normalized)
    lines: list[dict[str, Any]] = []
    if not {"score_x", "score_y"} <= set(labels.columns):
        return frame(lines)
    units, names, values = _score_matrix(labels)
    items = np.asarray(pd.factorize(units["item_id"])[0], dtype=np.int64)
    direct = normalized[normalized["planned_direct"].to_numpy(dtype=bool)]
    for judge, group in direct.groupby("judge", sort=False):
        own = units.merge(answers_of(group).assign(planned=True), on=["item_id", "system"], how="left")
        judged, planned = own["judge"].to_numpy(dtype=np.float64), own["planned"].eq(True).to_numpy(dtype=bool)
        compared = _Compared(names, items, planned, ~np.isnan(values), *_compare_scores(values, judged))
        lines += _rows(
            Place(str(judge), "direct", "direct", "scores"), compared, epsilon, false_discovery_rate, settings
        )
    return frame(lines)


@dataclass(frozen=True)
class _Compared:
    """One judge against each of R reviewers on U units.

    ``given`` (U, R): did the reviewer label the unit; ``judge_wins`` (U, R): 1 where the judge does at least as well,
    0 where not; ``differences`` (U, R): 1 where the reviewer does better, −1 where the judge does, 0 where neither.
    NaN where the unit has no label of the reviewer, of another reviewer, or no verdict.
    """

    reviewers: tuple[str, ...]
    items: Ints
    planned: Flags
    given: Flags
    judge_wins: Floats
    differences: Floats


def _check(epsilon: float) -> None:
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon is {epsilon}; allowed is 0 to below 1")


def _score_matrix(labels: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...], Floats]:
    """Answers (item_id, system), reviewers, and each reviewer's score of each answer (U, R)."""
    initial = initial_labels(labels)
    check_columns(initial, ["system_x", "system_y", "score_x", "score_y"], "labels")
    sides = [
        initial[["item_id", "reviewer_id", f"system_{side}", f"score_{side}"]].set_axis(
            ["item_id", "reviewer_id", "system", "score"], axis=1
        )
        for side in "xy"
    ]
    long = pd.concat(sides, ignore_index=True)
    long["score"] = pd.to_numeric(long["score"]).astype(np.float64)
    infinite = np.isinf(long["score"].to_numpy())
    if infinite.any():
        where = long[infinite].iloc[0]
        raise ValueError(
            f"labels: {int(infinite.sum())} of {len(long)} scores are infinite; "
            f"first item {where['item_id']}, reviewer {where['reviewer_id']}"
        )
    wide = long.dropna(subset="score").pivot_table(
        index=["item_id", "system"], columns="reviewer_id", values="score", aggfunc="mean", sort=True
    )
    names = tuple(str(name) for name in wide.columns)
    return wide.index.to_frame(index=False).astype(object), names, wide.to_numpy(dtype=np.float64)


def _rows(
    place: Place, compared: _Compared, epsilon: float, rate: float, settings: Settings
) -> Iterator[dict[str, Any]]:
    items, wins, planned = compared.items, compared.judge_wins, compared.planned
    used = planned & np.isfinite(wins).any(axis=1)
    n_items = len(np.unique(items[used]))
    common: dict[str, Any] = {"n_used": n_items, "n_excluded": len(np.unique(items[planned])) - n_items}
    reason = _too_little(len(compared.reviewers), int(used.sum()))
    p_values = []
    for number, name in enumerate(compared.reviewers):
        slice_ = f"reviewer={name}" if place.slice_ == "all" else f"{place.slice_},reviewer={name}"
        part = Place(place.judge, place.strategy, place.pass_, slice_)
        mine = planned & compared.given[:, number]
        silent = int((mine & np.isnan(wins[:, number])).sum())
        note = excluded_note(int(mine.sum()), "units", without_verdict_or_others=silent)
        yield rate_row("advantage_probability", part, items[mine], wins[mine, number], settings=settings, note=note)
        line = _test_row(part, items[mine], compared.differences[mine, number], epsilon, reason, note)
        p_values.append(line["estimate"])
        yield line
    yield _winning_row(place, p_values, epsilon, rate, reason, common)
    few = reason if len(compared.reviewers) < MINIMUM_REVIEWERS else ""
    yield _average_row(place, items[planned], wins[planned], few, settings)


def _too_little(n_reviewers: int, n_units: int) -> str:
    """Why the test is not made; empty if it is."""
    if n_reviewers < MINIMUM_REVIEWERS:
        return f"{n_reviewers} reviewer{'s' * (n_reviewers != 1)}, {MINIMUM_REVIEWERS} are needed"
    return f"{n_units} units, {MINIMUM_UNITS} are needed" if n_units < MINIMUM_UNITS else ""


def _winning_row(
    place: Place, p_values: list[float], epsilon: float, rate: float, reason: str, common: dict[str, Any]
) -> dict[str, Any]:
    """Share of the tested reviewers for whom H₀ is rejected."""
    method = f"ε {epsilon:g}, Benjamini-Yekutieli at {rate:g}; {PASSED:g} and above: may replace a reviewer"
    won, tested = int(benjamini_yekutieli(p_values, rate).sum()), int(np.isfinite(p_values).sum())
    if not tested:
        note = f"undefined: {reason or 'no reviewer could be tested'}"
        return place.row("winning_rate", NAN, method=method, note=note, **common)
    note = f"{tested} of {len(p_values)} reviewers could be tested" if tested < len(p_values) else ""
    counts = {"numerator": won, "denominator": tested}
    return place.row("winning_rate", won / tested, method=method, note=note, **counts, **common)


def _average_row(place: Place, items: Ints, judge_wins: Floats, reason: str, settings: Settings) -> dict[str, Any]:
    known = np.isfinite(judge_wins)
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": len(np.unique(items[known.any(axis=1)]))}
    common["n_excluded"] = len(np.unique(items)) - common["n_used"]
    if reason or not known.any() or not known.any(axis=0).all():
        told = f"undefined: {reason or 'a reviewer has no unit in common with the judge and the others'}"
        return place.row("average_advantage_probability", NAN, note=told, **common)
    features = np.hstack([np.where(known, judge_wins, 0.0), known]).astype(np.float64)
    return table_row(
        "average_advantage_probability",
        place,
        ItemTable.of(items, features),
        _average_of,
        settings=settings,
        note="",
        undefined="a reviewer has no unit",
        **common,
    )


def _average_of(totals: Floats) -> Floats:
    """Mean over the reviewers of wins / units; NaN where a reviewer has no unit in a resample."""
    wins, units = np.hsplit(totals, 2)
    shares = np.full(wins.shape, NAN)
    np.divide(wins, units, out=shares, where=units > 0)
    return np.asarray(shares.mean(axis=1)[np.newaxis, :])


def _compare_labels(codes: Ints, judged: Ints) -> tuple[Floats, Floats]:
    """``judge_wins`` and ``differences`` of :class:`_Compared`, from label codes (U, R) and (U,)."""
    given = codes >= 0
    others = given.sum(axis=1, keepdims=True) - given
    judge_is = (codes == judged[:, np.newaxis]) & given
    same_judge = judge_is.sum(axis=1, keepdims=True) - judge_is
    same_own = ((codes[:, :, np.newaxis] == codes[:, np.newaxis, :]) & given[:, np.newaxis, :]).sum(axis=2) - 1
    known = given & (others > 0) & (judged >= 0)[:, np.newaxis]
    return _outcomes(np.sign(same_own - same_judge).astype(np.float64), known)


def _compare_scores(values: Floats, judged: Floats) -> tuple[Floats, Floats]:
    """``judge_wins`` and ``differences`` of :class:`_Compared`, from scores (U, R) and the judge's (U,)."""
    given = ~np.isnan(values)
    apart = np.zeros((2, *values.shape))  # summed squares to the other reviewers: the judge's, the reviewer's own
    for j in range(values.shape[1]):
        others = np.where(np.arange(values.shape[1]) == j, NAN, values)
        for number, own in enumerate((judged, values[:, j])):
            apart[number, :, j] = np.nansum((own[:, np.newaxis] - others) ** 2, axis=1)
    known = given & (given.sum(axis=1, keepdims=True) > 1) & ~np.isnan(judged)[:, np.newaxis]
    gained = np.where(np.abs(apart[0] - apart[1]) < EQUAL, 0.0, np.sign(apart[0] - apart[1]))
    return _outcomes(gained, known)


def _outcomes(reviewer_better: Floats, known: Flags) -> tuple[Floats, Floats]:
    differences = np.where(known, reviewer_better, NAN)
    return np.where(known, (reviewer_better <= 0).astype(np.float64), NAN), differences


def _test_row(place: Place, items: Ints, differences: Floats, epsilon: float, reason: str, note: str) -> dict[str, Any]:
    known = np.isfinite(differences)
    common: dict[str, Any] = {"n_used": len(np.unique(items[known]))}
    common["n_excluded"] = len(np.unique(items)) - common["n_used"]
    p, test, told = advantage_test(differences[known], items[known], epsilon)
    if reason or told:
        return place.row("alternative_annotator_p", NAN, note=joined(f"undefined: {reason or told}", note), **common)
    method = f"{test}, H₁: the reviewer's advantage is below {epsilon:g}"
    return place.row("alternative_annotator_p", p, method=method, note=note, **common)
