"""What a judge's win rate or pass rate would be on human labels, beside what the labels say alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.answers import answers_of, check_score_columns
from judgelab.measure.coding import excluded_note
from judgelab.measure.estimates import Place, Settings, rate_row
from judgelab.measure.judged_sample import Corrected, JudgedSample
from judgelab.measure.prediction_powered import prediction_powered
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rogan_gladen import rogan_gladen
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import View, each_judge

__all__ = ["correction_rows", "correction_table", "pass_rate_table"]

NAN = float("nan")
PASSES = ("direct", "original")
TOLERANCE = 1e-9  # as in preferences: weighted totals such as 4.2 have no exact binary form
METHODS = {
    "rogan_gladen": "Rogan-Gladen, Fieller's interval with the uncertainty of both samples",
    "ppi": "PPI++ with tuned λ, Wilson's interval on effective labels",
}


def correction_table(
    normalized: pd.DataFrame, *, labels: Sequence[str], ci_level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """How often people would prefer each system, from a judge's verdicts on all pairs and labels of a part of them.

    The win rate of a system is the share of its judged pairs in which it is preferred; a tie is no win.

    ==============================  ======================================================================
    measure                         what it is
    ==============================  ======================================================================
    win_rate_judge                  the judge's own rate over all judged pairs, not corrected
    win_rate_labelled               people's rate over the labelled pairs, without the judge
    win_rate_rogan_gladen           the judge's rate corrected by its TPR and TNR on the labelled pairs, see
                                    :func:`~judgelab.measure.rogan_gladen.rogan_gladen`
    win_rate_ppi                    the labelled rate moved by the judge's verdicts on the others, see
                                    :func:`~judgelab.measure.prediction_powered.prediction_powered`
    correction_gain_rogan_gladen,   variance of the labelled rate / variance of the corrected one: above 1 the
      correction_gain_ppi           judge helps, below 1 it does harm; times the number of labelled pairs it is
                                    how many labels the estimate is worth (no interval)
    ==============================  ======================================================================

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples (uncorrected rates where an item has several pairs), the protocol's
        seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` per judge, pass (direct, original) and slice ``system=<s>``. All
        six are over the pairs with a usable verdict; ``n_used`` counts items, those with a label where labels are
        what is counted. The note of a corrected rate says where its interval is wider than the labels' alone, and
        where every judged pair is labelled, so that nothing can be gained.

    Raises
    ------
    ValueError
        If a preference is not one of ``labels`` or a column is missing.

    Notes
    -----
    Both corrections take the labelled pairs for a random sample of the judged ones (Rogan-Gladen only within the
    pairs that people prefer, and within those that they do not). Where the labelled pairs were chosen by what the
    judge said, no correction holds.
    """
    settings = Settings(ci_level, resamples, seed)
    lines: list[dict[str, Any]] = []
    for codes in each_judge(normalized, labels):
        second = codes.system_y
        first = np.where(codes.original_first == second, codes.other, codes.original_first)
        for name in PASSES:
            if not codes.planned[name].any():
                continue
            view, chosen = codes.view(name), codes.planned[name]
            for number, system in enumerate(labels):
                own = (first[chosen] == number) | (second[chosen] == number)
                if own.any():
                    lines += _win_rows(view.where(own, f"system={system}"), number, settings)
    return frame(lines)


def _win_rows(view: View, system: int, settings: Settings) -> Iterator[dict[str, Any]]:
    human = np.where(view.human >= 0, view.human == system, NAN)
    judge = np.where(view.judged >= 0, view.judged == system, NAN)
    return correction_rows("win_rate", view.place, view.items, human, judge, unit="pairs", settings=settings)


def pass_rate_table(
    normalized: pd.DataFrame, *, threshold: float, ci_level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """How many answers people would pass, from a judge's direct totals and human scores of a part of them.

    An answer passes if its score is ``threshold`` or more: the judge's total, the reviewers' mean score. The rows are
    those of :func:`correction_table`, named ``pass_rate_judge``, ``pass_rate_labelled``, ``pass_rate_rogan_gladen``,
    ``pass_rate_ppi``, ``correction_gain_rogan_gladen``, ``correction_gain_ppi``.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`; judges without planned direct calls have no rows.
    threshold : float
        On the scale of the scores. Scores within 1e-9 of it count as equal to it.
    ci_level, resamples, seed
        As in :func:`correction_table`.

    Returns
    -------
    DataFrame
        Rows with strategy and pass ``direct``, slice ``system=<s>``; the threshold is in ``method``.

    Raises
    ------
    ValueError
        If ``threshold`` is not finite, a score is infinite, or a column is missing.
    """
    if not np.isfinite(threshold):
        raise ValueError(f"threshold is {threshold}; allowed is a finite score")
    check_score_columns(normalized)
    settings = Settings(ci_level, resamples, seed)
    planned = normalized[normalized["planned_direct"].to_numpy(dtype=bool)]
    lines: list[dict[str, Any]] = []
    for judge, group in planned.groupby("judge", sort=False):
        answers = answers_of(group)
        for system, own in answers.groupby("system", sort=False):
            place = Place(str(judge), "direct", "direct", f"system={system}")
            items = pd.factorize(own["item_id"])[0].astype(np.int64)
            human, total = (_passes(own[name].to_numpy(), threshold, name) for name in ("human", "judge"))
            rule = f"pass: score {threshold:g} or more"
            rows = correction_rows(
                "pass_rate", place, items, human, total, unit="answers", settings=settings, method=rule
            )
            lines += rows
    return frame(lines)


def _passes(scores: Floats, threshold: float, what: str) -> Floats:
    infinite = np.isinf(scores)
    if infinite.any():
        raise ValueError(f"normalized: {int(infinite.sum())} of {len(scores)} {what} scores are infinite")
    return np.where(np.isnan(scores), NAN, scores >= threshold - TOLERANCE)


def correction_rows(
    rate: str,
    place: Place,
    items: Ints,
    human: Floats,
    judge: Floats,
    *,
    unit: str,
    settings: Settings,
    method: str = "",
) -> Iterator[dict[str, Any]]:
    """The six rows of one rate; arrays of shape (n,) with 1, 0 or NaN (no label, no usable verdict).

    ``rate`` begins the names of the measures, ``unit`` is the plural of what is counted, ``method`` stands before
    each row's own.
    """
    judged = ~np.isnan(judge)
    left_out = excluded_note(len(judge), unit, without_usable_verdict=int((~judged).sum()))
    labelled = judged & ~np.isnan(human)
    uncorrected = rate_row(f"{rate}_judge", place, items, judge, settings=settings, note=left_out)
    values = np.where(labelled, human, NAN)
    alone = rate_row(f"{rate}_labelled", place, items, values, settings=settings, note=_share(labelled, judged, unit))
    for line in (uncorrected, alone):
        line["method"] = joined(method, line["method"])
        yield line
    sample = JudgedSample.of(human[judged], judge[judged], items[judged])
    for name, correct in (("rogan_gladen", rogan_gladen), ("ppi", prediction_powered)):
        found = correct(sample.human, sample.judge, sample.items, level=settings.ci_level)
        counts = {"n_used": len(np.unique(items[judged])), "n_excluded": uncorrected["n_excluded"]}
        yield _corrected_row(
            f"{rate}_{name}", place, found, alone, sample, settings, joined(method, METHODS[name]), counts
        )
        yield _gain_row(f"correction_gain_{name}", place, found, sample, settings, method, unit)


def _share(labelled: np.ndarray, judged: np.ndarray, unit: str) -> str:
    return f"{int(labelled.sum())} of {int(judged.sum())} judged {unit} are labelled"


def _corrected_row(
    measure: str,
    place: Place,
    found: Corrected,
    alone: dict[str, Any],
    sample: JudgedSample,
    settings: Settings,
    method: str,
    counts: dict[str, int],
) -> dict[str, Any]:
    """The corrected rate; where every unit is labelled it is the labelled rate, with that rate's interval."""
    note = found.note
    if not np.isnan(found.estimate) and sample.labelled.all():
        found = _with_interval(found, alone)
        note = joined(note, "every judged unit is labelled: nothing is gained")
    elif found.high - found.low > alone["ci_high"] - alone["ci_low"]:
        note = joined(note, "wider than labels alone: use the labelled rate")
    return place.row(
        measure,
        found.estimate,
        interval=(found.low, found.high),
        ci_level=settings.ci_level,
        method=joined(method, found.basis),
        note=note,
        **counts,
    )


def _with_interval(found: Corrected, alone: dict[str, Any]) -> Corrected:
    """The corrected rate with the labelled rate's interval."""
    return found._replace(low=alone["ci_low"], high=alone["ci_high"])


def _gain_row(
    measure: str, place: Place, found: Corrected, sample: JudgedSample, settings: Settings, method: str, unit: str
) -> dict[str, Any]:
    n_labels, n_items = int(sample.labelled.sum()), sample.n_labelled_items
    common = {"n_used": n_items, "n_excluded": len(np.unique(sample.items)) - n_items}
    how = joined(method, "variance of the labelled rate / variance of the corrected rate")
    if np.isnan(found.estimate):
        return place.row(measure, NAN, method=how, note=found.note, **common)
    if sample.labelled.all():
        return place.row(measure, 1.0, method=how, note="every judged unit is labelled: nothing is gained", **common)
    labels_only = prediction_powered(sample.human, sample.judge, sample.items, level=settings.ci_level, weight=0.0)
    gain = labels_only.variance / found.variance
    worth = f"{n_labels} labelled {unit} do the work of {gain * n_labels:.0f}"
    harm = "correction is worse than labels alone" if gain < 1 else ""
    return place.row(measure, gain, method=how, note=joined(worth, harm), **common)
