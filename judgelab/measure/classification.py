"""A judge as a classifier of what people decided: TPR, TNR, precision, recall, F1, and their means over the labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.answers import answers_of, check_score_columns
from judgelab.measure.coding import excluded_note
from judgelab.measure.estimates import Place, Settings, rate_row, table_row
from judgelab.measure.resampling import Floats, Ints, ItemTable
from judgelab.measure.rows import frame, joined

__all__ = ["acceptance_table", "binary_rows", "label_rows"]

NAN = float("nan")
TOLERANCE = 1e-9  # weighted totals such as 4.2 have no exact binary form
MACRO = ("macro_precision", "macro_recall", "macro_f1")


def binary_rows(
    place: Place, items: NDArray[Any], human: NDArray[Any], judged: NDArray[Any], *, settings: Settings, note: str = ""
) -> Iterator[dict[str, Any]]:
    """Five measures of a yes-or-no decision against what people decided.

    ====================  =================================  ==============================
    measure               what it is                         undefined if
    ====================  =================================  ==============================
    true_positive_rate    judge's yes / people's yes         people never say yes
    true_negative_rate    judge's no / people's no           people never say no
    precision             people's yes / judge's yes         the judge never says yes
    f1                    2 TP / (2 TP + FP + FN)            nobody ever says yes
    balanced_accuracy     (TPR + TNR) / 2                    either rate is
    ====================  =================================  ==============================

    Recall is the true positive rate. All lie between 0 and 1, higher is better. TP are decisions with a yes of both,
    FP with a yes of the judge alone, FN with a yes of people alone.

    Parameters
    ----------
    items : array of shape (n,)
        Item of each decision; items are resampled whole.
    human, judged : arrays of shape (n,)
        True or 1 yes, False or 0 no, NaN neither; decisions without both are left out.

    Returns
    -------
    iterator of dict
        Rates have Wilson's interval where an item has one decision, else and for the last two the bootstrap. Undefined
        is NaN, never 0. ``n_excluded`` of a rate also counts items whose decisions are not in its denominator.

    Raises
    ------
    ValueError
        If a decision is neither yes, no nor NaN, or the arrays differ in length.

    Notes
    -----
    Source: van Rijsbergen, *Information Retrieval*, 1979, chapter 7, for precision, recall and F. Checked against
    scikit-learn.

    Examples
    --------
    People accept three of five answers, the judge accepts two of these and one of the others.

    >>> human, judged = np.array([1, 1, 1, 0, 0]), np.array([1, 1, 0, 1, 0])
    >>> rows = binary_rows(Place(), np.arange(5), human, judged, settings=Settings(0.95, 100, 1))
    >>> {row["measure"]: round(row["estimate"], 3) for row in rows}  # doctest: +NORMALIZE_WHITESPACE
    {'true_positive_rate': 0.667, 'true_negative_rate': 0.5, 'precision': 0.667, 'f1': 0.667,
     'balanced_accuracy': 0.583}
    """
    human, judged = (_decisions(each, len(items), name) for each, name in ((human, "human"), (judged, "judged")))
    valid = ~np.isnan(human) & ~np.isnan(judged)
    yes, no = valid & (human == 1), valid & (human == 0)
    given = valid & (judged == 1)
    for measure, chosen, values, empty in (
        ("true_positive_rate", yes, judged, "people never decide so"),
        ("true_negative_rate", no, 1 - judged, "people never decide otherwise"),
        ("precision", given, human, "the judge never decides so"),
    ):
        told = note if chosen.any() else joined(empty, note)
        yield rate_row(measure, place, items, np.where(chosen, values, NAN), settings=settings, note=told)
    n_items = len(np.unique(items[valid]))
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = len(np.unique(items)) - n_items
    hits, missed, false = yes & given, yes & ~given, no & given
    counts = np.column_stack([hits, missed, false, no & ~given]).astype(np.float64)
    for measure, statistic, empty in (
        ("f1", _f1_of, "nobody ever decides so"),
        ("balanced_accuracy", _balanced_of, "people never decide one of the two"),
    ):
        if not valid.any():
            told = joined("undefined: no decision of both", note)
            yield place.row(measure, NAN, note=told, **common)
            continue
        table = ItemTable.of(items[valid], counts[valid])
        yield table_row(measure, place, table, statistic, settings=settings, note=note, undefined=empty, **common)


def _decisions(values: NDArray[Any], n: int, name: str) -> Floats:
    """1, 0 and NaN; anything else is refused."""
    decisions = np.asarray(values, dtype=np.float64)
    if len(decisions) != n:
        raise ValueError(f"{name}: {len(decisions)} decisions for {n} items; one for each is needed")
    wrong = np.flatnonzero(~(np.isnan(decisions) | (decisions == 0) | (decisions == 1)))
    if len(wrong):
        raise ValueError(
            f"{name}: {len(wrong)} of {n} decisions are not allowed, "
            f"first {decisions[wrong[0]]:g} in place {wrong[0]}; allowed are 1, 0 and NaN"
        )
    return decisions


def _f1_of(totals: Floats) -> Floats:
    hits, missed, false, _ = totals.T
    return _divided(2 * hits, 2 * hits + missed + false)[np.newaxis, :]


def _balanced_of(totals: Floats) -> Floats:
    hits, missed, false, right = totals.T
    return ((_divided(hits, hits + missed) + _divided(right, right + false)) / 2)[np.newaxis, :]


def _divided(numerator: Floats, denominator: Floats) -> Floats:
    result = np.full(numerator.shape, NAN)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return result


def label_rows(
    place: Place,
    items: NDArray[Any],
    human: Ints,
    judged: Ints,
    *,
    labels: Sequence[str],
    settings: Settings,
    note: str = "",
) -> Iterator[dict[str, Any]]:
    """Each label against all the others (slice ``label=<l>``), then means over the labels that either of the two used.

    ``macro_precision``, ``macro_recall`` and ``macro_f1`` are plain means of the labels' values; the first is undefined
    if the judge never gave a label that people gave, the second if people never gave one that the judge gave.
    ``macro_recall`` is the balanced accuracy of several labels. With more than two systems the pairs that do not offer
    a label count among its negatives, as everywhere in one against the rest.

    Parameters
    ----------
    human, judged : arrays of shape (n,)
        Label codes; judgments with a negative one are left out.

    Notes
    -----
    ``macro_f1`` is the mean of the F1s, not the F1 of the means (Opitz and Burst, "Macro F1 and macro F1", 2019).
    Checked against scikit-learn and the figures that PandaLM's repository publishes.
    """
    valid = (human >= 0) & (judged >= 0)
    used = np.unique(np.concatenate([human[valid], judged[valid]]))
    for code in used:
        part = Place(place.judge, place.strategy, place.pass_, f"label={labels[code]}")
        values = [np.where(valid, each == code, NAN) for each in (human, judged)]
        rows = binary_rows(part, items, *values, settings=settings, note=note)
        yield from (row for row in rows if row["measure"] != "balanced_accuracy")
    n_items = len(np.unique(items[valid]))
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = len(np.unique(items)) - n_items
    if not valid.any():
        for measure in MACRO:
            yield place.row(measure, NAN, note=joined("undefined: no item with two valid labels", note), **common)
        return
    table = ItemTable.of(items[valid], _macro_features(human[valid], judged[valid], used))
    named = ", ".join(labels[code] for code in used)
    for number, measure in enumerate(MACRO):
        side = ("the judge never gave", "people never gave", "nobody gave")[number]
        yield table_row(
            measure,
            place,
            table,
            partial(_macro_of, n_labels=len(used), number=number),
            settings=settings,
            note=note,
            undefined=f"{side} one of the labels {named}",
            method=f"mean over {named}",
            **common,
        )


def _macro_features(human: Ints, judged: Ints, used: Ints) -> Floats:
    """Per judgment: equal to each label by both, by people, by the judge."""
    people, judge = (each[:, np.newaxis] == used[np.newaxis, :] for each in (human, judged))
    return np.hstack([people & judge, people, judge]).astype(np.float64)


def _macro_of(totals: Floats, *, n_labels: int, number: int) -> Floats:
    both, people, judge = (totals[:, k * n_labels : (k + 1) * n_labels] for k in range(3))
    below = (judge, people, (people + judge) / 2)[number]
    return _divided(both, below).mean(axis=1)[np.newaxis, :]


def acceptance_table(
    normalized: pd.DataFrame, *, threshold: float, ci_level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Would people accept what the judge accepts? Direct totals and mean human scores, both cut at one threshold.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`; judges without planned direct calls have no rows.
    threshold : float
        An answer is accepted if its score is at least this.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :func:`binary_rows` with strategy and pass ``direct`` and slice ``accept>=<threshold>``: a low true
        negative rate is a judge that lets bad answers through.

    Raises
    ------
    ValueError
        If the threshold or a score is infinite, or a column is missing.
    """
    if not np.isfinite(threshold):
        raise ValueError(f"threshold is {threshold}; allowed is a finite number")
    check_score_columns(normalized)
    settings = Settings(ci_level, resamples, seed)
    planned = normalized[normalized["planned_direct"].to_numpy(dtype=bool)]
    lines: list[dict[str, Any]] = []
    for judge, group in planned.groupby("judge", sort=False):
        answers = answers_of(group)
        items = pd.factorize(answers["item_id"])[0].astype(np.int64)
        _check_finite(answers, str(judge))
        human, judged = (_accepted(answers[name].to_numpy(dtype=np.float64), threshold) for name in ("human", "judge"))
        missing = int((np.isnan(human) | np.isnan(judged)).sum())
        note = joined(
            f"over {len(answers) - missing} answers",
            excluded_note(len(answers), "answers", without_both_scores=missing),
        )
        place = Place(str(judge), "direct", "direct", f"accept>={threshold:g}")
        lines += binary_rows(place, items, human, judged, settings=settings, note=note)
    return frame(lines)


def _check_finite(answers: pd.DataFrame, judge: str) -> None:
    for name in ("human", "judge"):
        infinite = answers[np.isinf(answers[name].to_numpy(dtype=np.float64))]
        if len(infinite):
            where = infinite.iloc[0]
            raise ValueError(
                f"normalized, judge {judge}: {len(infinite)} of {len(answers)} answers have an infinite {name} score; "
                f"first item {where['item_id']}, system {where['system']}"
            )


def _accepted(scores: Floats, threshold: float) -> Floats:
    return np.where(np.isnan(scores), NAN, (scores >= threshold - TOLERANCE).astype(float))
