"""Does a preference survive the swap, and which place does a judge prefer?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.coding import TIE, check_columns, excluded_note
from judgelab.measure.estimates import Place, Settings, kappa_row, rate_row
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import Flags, JudgeCodes, each_judge

__all__ = ["UNUSABLE", "position_sensitive", "position_table", "swap_table"]

NAN = float("nan")
UNUSABLE = "UNUSABLE"


def position_table(
    normalized: pd.DataFrame, *, labels: Sequence[str], ci_level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """What the order of presentation does to every judge's pairwise preferences.

    =================================  ===================================================================
    measure (pass)                     what it is
    =================================  ===================================================================
    swap_consistency (both)            same preference twice / pairs with two valid verdicts; every change
                                       counts, winner to tie too; slices ``all`` and ``category=<c>``
    swap_consistency_unusable_as_label  the same over all planned pairs, "unusable" being a label of its
      (both)                           own: unusable twice counts as consistent
    reversal_rate (both)               changes from one system to the other / pairs with two non-tie
                                       verdicts
    first_position_rate (original,     judgments for the answer shown first / non-tie judgments; ``both``
      swapped, both)                   also by category
    swap_kappa (both)                  Cohen's kappa between the two passes, after mapping to systems
    swap_kappa_unusable_as_label       kappa over all planned pairs, an unusable verdict counted as a vote
      (both)                           for the pair's second system in protocol order (``system_y``)
    coverage (aggregated)              pairs that the conservative rule decides / pairs with two valid
                                       verdicts; a decided tie counts as decided
    abstention_rate (aggregated)       1 − coverage
    =================================  ===================================================================

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
        Rows of :data:`judgelab.measure.rows.COLUMNS`, for judges whose passes were planned. Intervals: Wilson where an
        item has one pair, else (and always for first_position_rate over both passes, where the two judgments of a
        pair belong together) the bootstrap over whole items.

    Raises
    ------
    ValueError
        If a preference is not one of ``labels`` or a column is missing.

    Notes
    -----
    ``swap_kappa_unusable_as_label`` is how LLMBar (Zeng et al., 2024) computed the ``kappa_agreement`` that it
    publishes: a winner is 1 if it is output 1 and 0 otherwise, so that an unusable reply becomes a vote for output 2.
    It reproduces 0.6747967479674797 for PaLM2, Vanilla_NoRules, which has 3 pairs unusable in both passes; with
    "unusable" as a label of its own that would be 0.69489, with those pairs left out (``swap_kappa``) 0.66710. It is
    given for comparison with the published figure only, since it depends on which system is named first.

    A first-position rate near one half is no proof of fairness: opposite effects of categories cancel. Source for
    the effect: Wang et al., "Large language models are not fair evaluators", 2023.
    """
    settings = Settings(ci_level, resamples, seed)
    tie = list(labels).index(TIE) if TIE in labels else len(labels)
    lines: list[dict[str, Any]] = []
    for codes in each_judge(normalized, labels):
        if codes.planned_both.any():
            lines += _swap_rows(codes, tie, settings)
            lines += _swap_kappas(codes, len(labels), settings)
        lines += _first_position_rows(codes, tie, settings)
        if codes.planned_both.any():
            lines += _coverage_rows(codes, settings)
    return frame(lines)


def _slices(category: NDArray[Any]) -> Iterator[tuple[str, Flags]]:
    yield "all", np.ones(len(category), dtype=bool)
    for name in pd.unique(pd.Series(category, dtype=object).dropna()):
        yield f"category={name}", category == name


def _pairs_note(counted: Flags, reason: str) -> str:
    return excluded_note(len(counted), "pairs", **{reason: int((~counted).sum())})


def _swap_rows(codes: JudgeCodes, tie: int, settings: Settings) -> Iterator[dict[str, Any]]:
    both = codes.planned_both
    items, original, swapped = codes.items[both], codes.original[both], codes.swapped[both]
    valid = (original >= 0) & (swapped >= 0)
    same = (original == swapped).astype(float)
    for slice_, chosen in _slices(codes.category[both]):
        place = Place(codes.judge, "pairwise", "both", slice_)
        values = np.where(valid, same, NAN)[chosen]
        note = _pairs_note(valid[chosen], "without_two_usable_verdicts")
        yield rate_row("swap_consistency", place, items[chosen], values, settings=settings, note=note)
    place = Place(codes.judge, "pairwise", "both")
    twice = int(((original < 0) & (swapped < 0)).sum())
    note = f"{twice} pairs unusable in both passes counted as consistent" if twice else ""
    yield rate_row("swap_consistency_unusable_as_label", place, items, same, settings=settings, note=note)
    decisive = valid & (original != tie) & (swapped != tie)
    values = np.where(decisive, 1 - same, NAN)
    note = _pairs_note(decisive, "without_two_non-tie_verdicts")
    yield rate_row("reversal_rate", place, items, values, settings=settings, note=note)


def _swap_kappas(codes: JudgeCodes, n_labels: int, settings: Settings) -> Iterator[dict[str, Any]]:
    both = codes.planned_both
    items, original, swapped = codes.items[both], codes.original[both], codes.swapped[both]
    place = Place(codes.judge, "pairwise", "both")
    valid = (original >= 0) & (swapped >= 0)
    note = _pairs_note(valid, "without_two_usable_verdicts")
    yield kappa_row("swap_kappa", place, items, original, swapped, n_labels=n_labels, settings=settings, note=note)
    unusable = int((original < 0).sum() + (swapped < 0).sum())
    second = codes.system_y[both]
    yield kappa_row(
        "swap_kappa_unusable_as_label",
        place,
        items,
        np.where(original < 0, second, original),
        np.where(swapped < 0, second, swapped),
        n_labels=n_labels,
        settings=settings,
        note=f"{unusable} unusable verdicts counted as votes for the pair's second system" if unusable else "",
    )


def _first_position_rows(codes: JudgeCodes, tie: int, settings: Settings) -> Iterator[dict[str, Any]]:
    shown_first = {"original": codes.original_first, "swapped": codes.other}
    chosen_first = {name: _chose(getattr(codes, name), first, tie) for name, first in shown_first.items()}
    for name, values in chosen_first.items():
        planned = codes.planned[name]
        if planned.any():
            place = Place(codes.judge, "pairwise", name)
            yield _first_position(place, codes.items[planned], values[planned], settings, both=False)
    both = codes.planned_both
    if both.any():
        items = np.concatenate([codes.items[both]] * 2)
        values = np.concatenate([chosen_first["original"][both], chosen_first["swapped"][both]])
        for slice_, chosen in _slices(np.concatenate([codes.category[both]] * 2)):
            place = Place(codes.judge, "pairwise", "both", slice_)
            yield _first_position(place, items[chosen], values[chosen], settings, both=True)


def _chose(preferred: Ints, shown_first: Ints, tie: int) -> Floats:
    """1 for the answer shown first, 0 for the other, NaN for a tie or no usable verdict."""
    counts = (preferred >= 0) & (preferred != tie) & (shown_first >= 0)
    return np.where(counts, (preferred == shown_first).astype(float), NAN)


def _first_position(place: Place, items: Ints, values: Floats, settings: Settings, *, both: bool) -> dict[str, Any]:
    left_out = {"tied_or_unusable": int(np.isnan(values).sum())}
    note = excluded_note(len(values), "judgments", **left_out)
    return rate_row("first_position_rate", place, items, values, settings=settings, note=note, force_bootstrap=both)


def _coverage_rows(codes: JudgeCodes, settings: Settings) -> Iterator[dict[str, Any]]:
    both = codes.planned_both
    valid = (codes.original[both] >= 0) & (codes.swapped[both] >= 0)
    decided = (codes.aggregated[both] >= 0).astype(float)
    note = _pairs_note(valid, "without_two_usable_verdicts")
    place = Place(codes.judge, "pairwise", "aggregated")
    for measure, values in (("coverage", decided), ("abstention_rate", 1 - decided)):
        counted = np.where(valid, values, NAN)
        yield rate_row(measure, place, codes.items[both], counted, settings=settings, note=joined(note))


def swap_table(normalized: pd.DataFrame, *, labels: Sequence[str]) -> pd.DataFrame:
    """Counts of the preference in the original against the swapped presentation, over pairs planned in both.

    Returns
    -------
    DataFrame
        judge, original, swapped, count; every combination of ``labels`` and ``UNUSABLE`` has a row.
    """
    names = [*labels, UNUSABLE]
    lines: list[tuple[Any, ...]] = []
    for codes in each_judge(normalized, labels):
        both = codes.planned_both
        if not both.any():
            continue
        coded = [np.where(side[both] < 0, len(labels), side[both]) for side in (codes.original, codes.swapped)]
        counts = np.bincount(coded[0] * len(names) + coded[1], minlength=len(names) ** 2)
        table = counts.reshape(len(names), len(names))
        lines += [(codes.judge, o, s, int(table[i, j])) for i, o in enumerate(names) for j, s in enumerate(names)]
    return pd.DataFrame(lines, columns=["judge", "original", "swapped", "count"])


def position_sensitive(normalized: pd.DataFrame) -> pd.DataFrame:
    """Every pair whose two valid presentations gave different preferences, for people to look at.

    Returns
    -------
    DataFrame
        item_id, judge, category, system_x, system_y, words_x, words_y, human, original_first, pair_original,
        swapped_first, pair_swapped, kind (``reversal``, ``winner_to_tie``, ``tie_to_winner``), in the table's order.
    """
    check_columns(normalized, ["pair_original", "pair_swapped", "original_first"], "normalized")
    original = normalized["pair_original"].to_numpy(dtype=object)
    swapped = normalized["pair_swapped"].to_numpy(dtype=object)
    changed = ~pd.isna(original) & ~pd.isna(swapped) & (original != swapped)
    picked = normalized[changed].reset_index(drop=True)
    original, swapped = original[changed], swapped[changed]
    first, x, y = (picked[name].to_numpy(dtype=object) for name in ("original_first", "system_x", "system_y"))
    kinds = np.select([original == TIE, swapped == TIE], ["tie_to_winner", "winner_to_tie"], "reversal")
    picked = picked.assign(swapped_first=np.where(first == x, y, x).astype(object), kind=kinds.astype(object))
    columns = ["item_id", "judge", "category", "system_x", "system_y", "words_x", "words_y", "human"]
    columns += ["original_first", "pair_original", "swapped_first", "pair_swapped", "kind"]
    return picked.reindex(columns=columns)
