"""How far a judge's preferences equal the human reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.chance import chance_rows, dominance, weighted_kappa_rows
from judgelab.measure.classification import label_rows
from judgelab.measure.coding import TIE, excluded_note
from judgelab.measure.estimates import Place, Settings, kappa_row, rate_row
from judgelab.measure.paired import mcnemar_rows, paired_bootstrap, paired_rows, paired_table
from judgelab.measure.preferences import ABSTAIN
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import frame, joined
from judgelab.measure.slices import gap_rows
from judgelab.measure.views import ABSTAINED, JudgeCodes, View, each_judge

__all__ = ["agreement_table", "confusion_table", "label_frequencies", "paired_bootstrap", "paired_table"]

NAN = float("nan")
PASSES = ("direct", "original", "swapped")


def agreement_table(
    normalized: pd.DataFrame, *, labels: Sequence[str], ci_level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Agreement of every judge with the human reference, in every pass that was planned for it.

    ========================================  ============================================================
    measure                                   what it is
    ========================================  ============================================================
    exact_agreement                           equal labels / judgments with two valid labels; slices
                                              ``all`` and ``category=<c>``
    exact_agreement_unusable_as_wrong         equal labels / planned judgments with a human label
    exact_agreement_ties_as_half              as exact_agreement, but a judge's ``TIE`` against a human
                                              system counts 1/2 (LLMBar's convention for equal ratings)
    cohen_kappa                               unweighted, over ``labels``
    both_passes_correct                       pairs right in both presentations / pairs with a human label
                                              and two valid verdicts
    both_passes_correct_unusable_as_wrong     ... / planned pairs with a human label
    tie_rate                                  ``TIE`` / usable verdicts, with or without a human label
    human_tie_rate                            ``TIE`` / items with a reference (one row, ``judge`` empty)
    gwet_ac1, pabak                           see :func:`judgelab.measure.chance.chance_rows`
    cohen_kappa_linear, _quadratic            over the order x, TIE, y; two systems, and somebody said ``TIE``
    true_positive_rate, true_negative_rate,   each label against the others, slice ``label=<l>``; direct, original,
    precision, f1                             swapped; see :mod:`judgelab.measure.classification`
    macro_precision, macro_recall, macro_f1   means over the labels; direct, original, swapped
    exact_agreement_gap, _gap_p, _gap_p_holm  a category minus the others, slice ``category=<c>``; see
                                              :func:`judgelab.measure.slices.gap_rows`
    exact_agreement_difference,               pairwise original minus direct, on items where the human and
    cohen_kappa_difference                    both strategies are valid; above 0: pairwise agrees better
    mcnemar_discordant_share, mcnemar_p       see :func:`judgelab.measure.paired.mcnemar_rows`
    ========================================  ============================================================

    Strategy and pass are direct/direct, pairwise/original, /swapped, /both (the judgments of both passes; numerator
    and denominator count judgments), /aggregated (the conservative rule; abstentions are left out and counted).

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`. Rates with one judgment an item have Wilson's interval,
        everything else the bootstrap over whole items, as ``method`` says. ``n_used`` and ``n_excluded`` count
        items; ``note`` says why judgments were left out.

    Raises
    ------
    ValueError
        If a preference is not one of ``labels`` or a column is missing.

    Notes
    -----
    Kappa: Cohen, 1960, equation 1. Checked against scikit-learn, the protocol's own script, and LLMBar's published
    ``statistics.json``.
    """
    settings = Settings(ci_level, resamples, seed)
    tie = _tie_code(labels)
    lines: list[dict[str, Any]] = []
    for codes in each_judge(normalized, labels):
        for view in codes.views():
            lines += _view_rows(view, len(labels), tie, settings)
            lines += _beyond_chance(view, labels, settings)
            if view.place.pass_ in PASSES:
                lines += label_rows(
                    view.place, view.items, view.human, view.judged, labels=labels, settings=settings, note=view.note
                )
            if view.place.pass_ != "both":
                lines += gap_rows(view, _matches(view), settings)
        if codes.planned_both.any():
            lines += _both_correct_rows(codes, settings)
        if codes.planned["direct"].any() and codes.planned["original"].any():
            lines += [line for line in paired_rows(codes, len(labels), settings) if "difference" in line["measure"]]
            lines += mcnemar_rows(codes, settings)
    lines += _human_tie_rate(normalized, settings)
    return frame(lines)


def _tie_code(labels: Sequence[str]) -> int:
    return list(labels).index(TIE) if TIE in labels else len(labels)


def _view_rows(view: View, n_labels: int, tie: int, settings: Settings) -> Iterator[dict[str, Any]]:
    both = view.place.pass_ == "both"
    for part in (view, *view.by_category()):
        yield rate_row(
            "exact_agreement",
            part.place,
            part.items,
            _matches(part),
            settings=settings,
            note=part.note,
            force_bootstrap=both,
        )
    if view.place.pass_ != "aggregated":
        yield _unusable_as_wrong(view, settings, both)
        yield _ties_as_half(view, tie, settings)
        ties = np.where(view.judged >= 0, (view.judged == tie).astype(float), NAN)
        note = excluded_note(len(ties), "judgments", without_usable_verdict=int((view.judged < 0).sum()))
        yield rate_row("tie_rate", view.place, view.items, ties, settings=settings, note=note, force_bootstrap=both)
    yield kappa_row(
        "cohen_kappa",
        view.place,
        view.items,
        view.human,
        view.judged,
        n_labels=n_labels,
        settings=settings,
        note=joined(dominance(view.human, view.judged), view.note),
    )


def _beyond_chance(view: View, labels: Sequence[str], settings: Settings) -> Iterator[dict[str, Any]]:
    """AC1 and PABAK; weighted kappa where the labels have an order: one system, a tie, the other system."""
    yield from chance_rows(view.place, view.items, view.human, view.judged, settings=settings, note=view.note)
    if len(labels) == 3 and labels[2] == TIE and ((view.human == 2) | (view.judged == 2)).any():
        ordered = [np.select([codes == 1, codes == 2], [2, 1], codes) for codes in (view.human, view.judged)]
        order = (labels[0], TIE, labels[1])
        note = joined(dominance(view.human, view.judged), view.note)
        yield from weighted_kappa_rows(
            "cohen_kappa", view.place, view.items, *ordered, order=order, settings=settings, note=note
        )


def _matches(view: View) -> Floats:
    """1 right, 0 wrong, NaN without two valid labels."""
    return np.where(view.valid, (view.human == view.judged).astype(float), NAN)


def _unusable_as_wrong(view: View, settings: Settings, both: bool) -> dict[str, Any]:
    labelled = view.human >= 0
    right = np.where(labelled, (view.human == view.judged).astype(float), NAN)
    unusable = int((labelled & (view.judged < 0)).sum())
    note = joined(
        f"{unusable} unusable counted as wrong" if unusable else "",
        excluded_note(len(labelled), "judgments", without_reference=int((~labelled).sum())),
    )
    return rate_row(
        "exact_agreement_unusable_as_wrong",
        view.place,
        view.items,
        right,
        settings=settings,
        note=note,
        force_bootstrap=both,
    )


def _ties_as_half(view: View, tie: int, settings: Settings) -> dict[str, Any]:
    values = _matches(view)
    half = view.valid & (view.judged == tie) & (view.human != tie)
    values[half] = 0.5
    note = joined(f"{int((values == 1).sum())} equal, {int(half.sum())} ties of the judge as half", view.note)
    return rate_row(
        "exact_agreement_ties_as_half",
        view.place,
        view.items,
        values,
        settings=settings,
        note=note,
        force_bootstrap=True,
    )


def _both_correct_rows(codes: JudgeCodes, settings: Settings) -> Iterator[dict[str, Any]]:
    chosen = codes.planned_both & (codes.human >= 0)
    human, original, swapped = codes.human[chosen], codes.original[chosen], codes.swapped[chosen]
    right = ((original == human) & (swapped == human)).astype(float)
    usable = (original >= 0) & (swapped >= 0)
    place = Place(codes.judge, "pairwise", "both")
    items = codes.items[chosen]
    unlabelled = int((codes.planned_both & (codes.human < 0)).sum())
    n_planned = int(codes.planned_both.sum())
    unusable = int((~usable).sum())
    note = excluded_note(n_planned, "pairs", without_reference=unlabelled, without_two_usable_verdicts=unusable)
    # Items without a reference are planned too: they are given as pairs that count for nothing.
    missing = codes.items[codes.planned_both & (codes.human < 0)]
    items, blank = np.concatenate([items, missing]), np.full(len(missing), NAN)
    values = np.concatenate([np.where(usable, right, NAN), blank])
    yield rate_row("both_passes_correct", place, items, values, settings=settings, note=note)
    note = joined(
        f"{unusable} pairs with an unusable verdict counted as wrong" if unusable else "",
        excluded_note(n_planned, "pairs", without_reference=unlabelled),
    )
    values = np.concatenate([right, blank])
    yield rate_row("both_passes_correct_unusable_as_wrong", place, items, values, settings=settings, note=note)


def _human_tie_rate(normalized: pd.DataFrame, settings: Settings) -> list[dict[str, Any]]:
    """Once for the study: the reference is the same for every judge."""
    if normalized.empty:
        return []
    once = normalized.drop_duplicates(["item_id", "system_x", "system_y"])
    human = once["human"].astype(object)
    ties = np.where(human.notna(), (human == TIE).to_numpy(dtype=float), NAN)
    note = excluded_note(len(ties), "items", without_reference=int(human.isna().sum()))
    items = pd.factorize(once["item_id"])[0]
    return [rate_row("human_tie_rate", Place(), items, ties, settings=settings, note=note)]


def confusion_table(normalized: pd.DataFrame, *, labels: Sequence[str]) -> pd.DataFrame:
    """Counts of human label against the judge's, over items where both are valid; every combination has a row.

    Returns
    -------
    DataFrame
        judge, strategy, pass (direct, original, swapped, aggregated), human, judged, count. ``judged`` of pass
        aggregated also takes ``ABSTAIN``.
    """
    lines: list[tuple[Any, ...]] = []
    for codes in each_judge(normalized, labels):
        for view in codes.views():
            if view.place.pass_ == "both":
                continue
            where = (codes.judge, view.place.strategy, view.place.pass_)
            abstains = view.place.pass_ == "aggregated"
            counts = _cross(view, len(labels), abstains)
            names = [*labels, ABSTAIN] if abstains else list(labels)
            lines += [(*where, h, j, counts[a, b]) for a, h in enumerate(labels) for b, j in enumerate(names)]
    return pd.DataFrame(lines, columns=["judge", "strategy", "pass", "human", "judged", "count"])


def _cross(view: View, n_labels: int, abstains: bool) -> Ints:
    judged = np.where(view.judged == ABSTAINED, n_labels, view.judged)
    valid = (view.human >= 0) & (judged >= 0)
    width = n_labels + abstains
    flat = view.human[valid] * width + judged[valid]
    return np.bincount(flat, minlength=n_labels * width).reshape(n_labels, width)


def label_frequencies(normalized: pd.DataFrame, *, labels: Sequence[str]) -> pd.DataFrame:
    """How often each label was given, by the human reference and in each planned pass.

    Returns
    -------
    DataFrame
        judge, source (human, direct, original, swapped), label, count, denominator (valid labels of that source),
        share (NaN where the denominator is 0).
    """
    lines: list[tuple[Any, ...]] = []
    for codes in each_judge(normalized, labels):
        anything = np.logical_or.reduce([codes.planned[name] for name in PASSES])
        sources = {"human": codes.human[anything]}
        sources |= {name: getattr(codes, name)[codes.planned[name]] for name in PASSES if codes.planned[name].any()}
        for source, given in sources.items():
            counts = np.bincount(given[given >= 0], minlength=len(labels))
            total = int(counts.sum())
            lines += [
                (codes.judge, source, label, int(count), total, count / total if total else NAN)
                for label, count in zip(labels, counts, strict=True)
            ]
    return pd.DataFrame(lines, columns=["judge", "source", "label", "count", "denominator", "share"])
