"""Does a judge accept nearly everything? Rates of acceptance against people's, and how much of the scale it uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.acceptance import preferred_answers, scored_by_people
from judgelab.measure.answers import answers_of, check_score_columns
from judgelab.measure.classification import binary_rows
from judgelab.measure.coding import check_columns, excluded_note
from judgelab.measure.estimates import Place, Settings, mean_row, rate_row, table_row
from judgelab.measure.resampling import Floats, Ints, ItemTable
from judgelab.measure.rows import frame, joined

__all__ = ["criteria_of", "leniency_table"]

NAN = float("nan")
TOLERANCE = 1e-9  # weighted totals such as 4.2 have no exact binary form
ROUNDING = 1e-12  # a variance that is this small beside the mean square is the rounding of sums
RATES = ("true_positive_rate", "true_negative_rate")
PREFIX = "score_"
CRITERIA = ("judge", "item_id", "system", "criterion", "score")
NO_THRESHOLD = "undefined: the protocol names no acceptance threshold"
BY_PREFERENCE = "people accept the answer that they prefer in all its pairs and reject the one that they never prefer"


def leniency_table(
    normalized: pd.DataFrame,
    *,
    acceptance_threshold: float | None,
    minimum: float,
    maximum: float,
    criteria: pd.DataFrame | None = None,
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """How every judge's direct scores accept, praise and spread, beside people's on the same answers.

    ==========================  ==============================================  ===================================
    measure                     what it is                                      undefined if
    ==========================  ==============================================  ===================================
    true_positive_rate          judge accepts / people accept                   people never accept; no threshold
    true_negative_rate          judge rejects / people reject                   people never reject; no threshold
    top_score_rate              totals equal to ``maximum`` / scored answers    no answer is scored
    human_top_score_rate        the same of people, where both scored           there is no such answer
    score_compression           SD of the judge's totals / SD of people's,      people's scores do not vary
                                where both scored; below 1: it spreads less
    score_range_used            (largest − smallest total) / length of scale    fewer than two scored answers
    mean_score_gap              mean (judge − people); above 0: lenient         no answer with both scores
    by ``criterion=<name>``     both rates (if there is a threshold), top_score_rate, mean_score, sd_score (n − 1) and
                                score_compression of the criterion's scores, against people's overall scores
    ==========================  ==============================================  ===================================

    A judge accepts an answer whose score is at least the threshold; so do people, wherever any answer of the table
    has a human score (slice ``accept>=<t>``). Without one, people's preferences stand in (slice ``accept>=<t>, by
    preference``): of the pairs that people labelled, an answer is accepted if it is preferred in all and rejected if
    the other one is in all; answers with a tie or with some of each are left out. That is meant for data such as
    LLMBar, where one of two answers is right and the other wrong; a preferred answer need not be a good one.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`; judges without planned direct calls have no rows.
    acceptance_threshold : float or None
        Score from which an answer is accepted; with None both rates are undefined.
    minimum, maximum : float
        Ends of the judge's scale.
    criteria : DataFrame, optional
        Scores by criterion, see :func:`criteria_of`; answers that are not in ``normalized`` are left aside.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` with strategy and pass ``direct``. Rates have Wilson's interval
        where an item has one answer in the denominator, else the bootstrap over whole items, as the other values;
        ``score_range_used`` and ``sd_score`` have none.

    Raises
    ------
    ValueError
        If threshold or scale is not finite, a judge's score is outside the scale, a human score infinite, a human
        preference none of the pair's, a criterion scored twice for an answer, or a column missing.

    Notes
    -----
    A judge that agrees with everything has a true positive rate near 1 and a true negative rate near 0; accuracy hides
    that where most answers are good (Jain et al., "Beyond consensus: mitigating the agreeableness bias in LLM judge
    evaluations", 2025). People's scores are compared as they are, so people must have used the judge's scale; a mean
    of several reviewers varies less, and is at the top less often, than one reviewer's score.

    Examples
    --------
    People give 1, 3, 3, 5, the judge 4, 4, 5, 5: half the range, and 1/√8 of the spread (SDs 1/2 and √2).

    >>> table = pd.DataFrame({
    ...     "judge": "j", "item_id": ["a", "b"], "human": "Y", "planned_direct": True, "system_x": "X",
    ...     "system_y": "Y", "human_score_x": [1, 3], "human_score_y": [3, 5], "total_x": [4, 5], "total_y": [4, 5],
    ... })
    >>> options = {"minimum": 1, "maximum": 5, "ci_level": 0.95, "resamples": 50, "seed": 1}
    >>> rows = leniency_table(table, acceptance_threshold=4, **options).set_index("measure")["estimate"]
    >>> rows.round(3).to_dict()  # doctest: +NORMALIZE_WHITESPACE
    {'true_positive_rate': 1.0, 'true_negative_rate': 0.0, 'top_score_rate': 0.5, 'human_top_score_rate': 0.25,
     'score_compression': 0.354, 'score_range_used': 0.25, 'mean_score_gap': 1.5}
    """
    if acceptance_threshold is not None and not np.isfinite(acceptance_threshold):
        raise ValueError(f"acceptance_threshold is {acceptance_threshold}; allowed is a finite number or None")
    if not (np.isfinite(minimum) and np.isfinite(maximum) and minimum < maximum):
        raise ValueError(f"the scale is {minimum:g} to {maximum:g}; the first must be below the second")
    check_score_columns(normalized)
    check_columns(normalized, ["human"], "normalized")
    by_preference = not scored_by_people(normalized)
    scale = _Scale(acceptance_threshold, by_preference, minimum, maximum, Settings(ci_level, resamples, seed))
    scores = pd.DataFrame(columns=list(CRITERIA)) if criteria is None else criteria
    check_columns(scores, CRITERIA, "criteria")
    if scores.duplicated(list(CRITERIA[:4])).any():
        raise ValueError("criteria: an answer has two scores of one criterion from one judge")
    planned = normalized[normalized["planned_direct"].to_numpy(dtype=bool)]
    lines: list[dict[str, Any]] = []
    for judge, group in planned.groupby("judge", sort=False):
        answers = _Answers.of(str(judge), group, scale)
        lines += _total_rows(answers, scale)
        for name, own in scores[scores["judge"] == judge].groupby("criterion", sort=False):
            lines += _criterion_rows(answers.scored(str(name), own), scale)
    return frame(lines)


def criteria_of(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Scores by criterion as a long table, from the columns ``score_<criterion>`` of the verdict table.

    Parameters
    ----------
    verdicts : DataFrame
        judge, strategy, item_id, system, status and the scores; only direct calls with a verdict count.

    Returns
    -------
    DataFrame
        judge, item_id, system, criterion, score: a row for each score that is not missing, criterion by criterion in
        the order of the columns. No rows if there is no such column.

    Raises
    ------
    ValueError
        If a column is missing or a score is no number.

    Examples
    --------
    >>> table = pd.DataFrame({"judge": "j", "strategy": "direct", "item_id": [1, 2], "system": "X",
    ...     "status": ["verdict", "failed"], "score_clarity": [4, None], "score_truth": [5, None]})
    >>> criteria_of(table)[["item_id", "criterion", "score"]].to_numpy().tolist()
    [[1, 'clarity', 4.0], [1, 'truth', 5.0]]
    """
    check_columns(verdicts, [*CRITERIA[:3], "strategy", "status"], "verdicts")
    usable = verdicts[(verdicts["strategy"] == "direct") & (verdicts["status"] == "verdict")]
    parts = [
        usable[list(CRITERIA[:3])].assign(
            criterion=name.removeprefix(PREFIX), score=pd.to_numeric(usable[name]).astype(float)
        )
        for name in map(str, verdicts.columns)
        if name.startswith(PREFIX)
    ]
    if not parts:
        return pd.DataFrame(columns=list(CRITERIA)).astype({"score": float})
    return pd.concat(parts, ignore_index=True).dropna(subset="score").reset_index(drop=True)


@dataclass(frozen=True)
class _Scale:
    """What every row needs to know: the threshold, whose acceptance, the ends of the scale, the intervals."""

    threshold: float | None
    by_preference: bool
    minimum: float
    maximum: float
    settings: Settings

    @property
    def slice_(self) -> str:
        """Name of the slice of what is accepted by totals."""
        by_whom = ", by preference" if self.by_preference else ""
        return "accept" if self.threshold is None else f"accept>={self.threshold:g}{by_whom}"

    def accepted(self, scores: Floats) -> Floats:
        """1 accepted, 0 rejected, NaN not scored; without a threshold nothing is accepted."""
        threshold = np.inf if self.threshold is None else self.threshold
        return np.where(np.isnan(scores), NAN, (scores >= threshold - TOLERANCE).astype(float))

    def at_top(self, scores: Floats) -> Floats:
        """1 at the maximum, 0 below, NaN not scored."""
        return np.where(np.isnan(scores), NAN, (np.abs(scores - self.maximum) <= TOLERANCE).astype(float))

    def check(self, scores: Floats, what: str) -> None:
        """Refuse scores that are not on the judge's scale."""
        wrong = np.flatnonzero((scores < self.minimum - TOLERANCE) | (scores > self.maximum + TOLERANCE))
        if len(wrong):
            scale = f"{self.minimum:g} to {self.maximum:g}, first {scores[wrong[0]]:g}"
            raise ValueError(f"{what}: {len(wrong)} of {len(scores)} scores are outside {scale}")


@dataclass(frozen=True)
class _Answers:
    """The answers that a judge was asked to score, one element each; ``judge`` its scores, NaN where there is none."""

    place: Place
    keys: pd.DataFrame
    items: Ints
    human: Floats
    accepted: Floats
    judge: Floats

    @classmethod
    def of(cls, judge: str, group: pd.DataFrame, scale: _Scale) -> _Answers:
        what, table = f"normalized, judge {judge}", answers_of(group)
        human, totals = (table[name].to_numpy(dtype=np.float64) for name in ("human", "judge"))
        if np.isinf(human).any():
            raise ValueError(f"{what}: {int(np.isinf(human).sum())} human scores are infinite")
        scale.check(totals, f"{what}, totals")
        accepted = preferred_answers(group, what) if scale.by_preference else scale.accepted(human)
        items = pd.factorize(table["item_id"])[0].astype(np.int64)
        return cls(Place(judge, "direct", "direct"), table[["item_id", "system"]], items, human, accepted, totals)

    def scored(self, criterion: str, own: pd.DataFrame) -> _Answers:
        """The same answers with the judge's scores of one criterion, ``own`` (item_id, system, score)."""
        place = Place(self.place.judge, "direct", "direct", f"criterion={criterion}")
        found = self.keys.merge(own[["item_id", "system", "score"]], on=["item_id", "system"], how="left")
        return replace(self, place=place, judge=found["score"].to_numpy(dtype=np.float64))

    @property
    def both(self) -> Floats:
        """1 where people and judge gave a score, else NaN: a factor."""
        return np.where(np.isnan(self.human) | np.isnan(self.judge), NAN, 1.0)

    def note(self, values: Floats, reason: str) -> str:
        """How many answers count, and why others do not."""
        missing = int(np.isnan(values).sum())
        counted = f"over {len(values) - missing} answers"
        return joined(counted, excluded_note(len(values), "answers", **{reason: missing}))


def _total_rows(answers: _Answers, scale: _Scale) -> Iterator[dict[str, Any]]:
    """The rows of a judge's totals."""
    place, items, settings = answers.place, answers.items, scale.settings
    yield from _acceptance_rows(answers, scale, scale.slice_)
    yield _top_row(answers, scale)
    people = scale.at_top(answers.human) * answers.both
    note = answers.note(people, "without_both_scores")
    yield rate_row("human_top_score_rate", place, items, people, settings=settings, note=note)
    yield _compression_row(answers, settings)
    yield _plain_row("score_range_used", answers, scale)
    gap = answers.judge - answers.human
    yield mean_row("mean_score_gap", place, items, gap, settings=settings, note=note)


def _criterion_rows(answers: _Answers, scale: _Scale) -> Iterator[dict[str, Any]]:
    """The rows of a judge's scores of one criterion."""
    place, scores = answers.place, answers.judge
    scale.check(scores, f"criteria, judge {place.judge}, {place.slice_}")
    if scale.threshold is not None:
        yield from _acceptance_rows(answers, scale, place.slice_)
    yield _top_row(answers, scale)
    note = answers.note(scores, "without_a_score")
    yield mean_row("mean_score", place, answers.items, scores, settings=scale.settings, note=note)
    yield _plain_row("sd_score", answers, scale)
    yield _compression_row(answers, scale.settings)


def _acceptance_rows(answers: _Answers, scale: _Scale, slice_: str) -> Iterator[dict[str, Any]]:
    """True positive and true negative rate of what the judge accepts."""
    place = Place(answers.place.judge, "direct", "direct", slice_)
    if scale.threshold is None:
        for measure in RATES:
            yield place.row(measure, NAN, n_used=0, n_excluded=len(np.unique(answers.items)), note=NO_THRESHOLD)
        return
    accepts = scale.accepted(answers.judge)
    reason = "without_a_human_preference_or_a_score" if scale.by_preference else "without_both_scores"
    note = answers.note(accepts + answers.accepted, reason)
    told = (f"judge accepts from {scale.threshold:g}", BY_PREFERENCE if scale.by_preference else "people too")
    rows = binary_rows(place, answers.items, answers.accepted, accepts, settings=scale.settings, note=note)
    for line in takewhile(lambda line: line["measure"] in RATES, rows):
        yield line | {"method": joined(*told, line["method"])}


def _top_row(answers: _Answers, scale: _Scale) -> dict[str, Any]:
    """Share of the judge's scores at the maximum."""
    top = scale.at_top(answers.judge)
    note = answers.note(top, "without_a_score")
    return rate_row("top_score_rate", answers.place, answers.items, top, settings=scale.settings, note=note)


def _compression_row(answers: _Answers, settings: Settings) -> dict[str, Any]:
    """SD of the judge over SD of people, on the answers that both scored."""
    valid = ~np.isnan(answers.both)
    items, note = answers.items[valid], answers.note(answers.both, "without_both_scores")
    n_items = len(np.unique(items))
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = len(np.unique(answers.items)) - n_items
    if not valid.any():
        note = joined("undefined: no answer with both scores", note)
        return answers.place.row("score_compression", NAN, note=note, **common)
    people, judge = (each[valid] - each[valid].mean() for each in (answers.human, answers.judge))
    table = ItemTable.of(items, np.column_stack([people, people**2, judge, judge**2, np.ones(len(people))]))
    undefined, made = "people's scores do not vary", {"settings": settings, "note": note, **common}
    return table_row("score_compression", answers.place, table, _spread_ratio, undefined=undefined, **made)


def _spread_ratio(totals: Floats) -> Floats:
    """SD of the judge over SD of people from sums of values and squares; NaN where people's scores are all equal."""
    means = totals[:, :4].T / totals[:, 4]
    squares, variances = means[1::2], means[1::2] - means[0::2] ** 2
    people, judge = np.where(variances > ROUNDING * np.maximum(squares, ROUNDING), variances, 0.0)
    ratio = np.full(len(totals), NAN)
    np.divide(judge, people, out=ratio, where=people > 0)
    return np.sqrt(ratio)[np.newaxis, :]


def _plain_row(measure: str, answers: _Answers, scale: _Scale) -> dict[str, Any]:
    """Spread of the judge's scores, which has no interval: their range as a share of the scale, or their SD."""
    known = ~np.isnan(answers.judge)
    scores, n_items = answers.judge[known], len(np.unique(answers.items[known]))
    common: dict[str, Any] = {"n_used": n_items, "n_excluded": len(np.unique(answers.items)) - n_items}
    note = answers.note(answers.judge, "without_a_score")
    if len(scores) < 2:
        common["note"] = joined(f"undefined: {len(scores)} answers, 2 are needed", note)
        return answers.place.row(measure, NAN, **common)
    spread, method = float(scores.std(ddof=1)), "sample standard deviation (n - 1), no interval"
    if measure == "score_range_used":
        spread = float(np.ptp(scores)) / (scale.maximum - scale.minimum)
        method = f"from {scores.min():g} to {scores.max():g}, no interval: the bootstrap fails for extremes"
    return answers.place.row(measure, spread, method=method, note=note, **common)
