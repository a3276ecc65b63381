"""The human ceiling: how well a reviewer agrees with the other reviewers, and a judge with the very same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.carriers import carriers
from judgelab.measure.coding import excluded_note
from judgelab.measure.estimates import Place, Settings, interval_of, kappa_row, rate_row
from judgelab.measure.others import LabelMatrix, judge_codes, majority_of_others
from judgelab.measure.paired import paired_statistics
from judgelab.measure.resampling import Contingency, Floats, Ints, ItemTable, bootstrap
from judgelab.measure.rows import frame, joined

__all__ = ["ceiling_table"]

NAN = float("nan")
METHOD = "judge minus reviewer, on the same labels of the others"


def ceiling_table(
    labels: pd.DataFrame,
    normalized: pd.DataFrame,
    *,
    labels_allowed: Sequence[str],
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """A reviewer against the majority of the others (leave one out), and each judge against the very same labels.

    A judge's agreement with a reference says little alone: people do not agree perfectly either. Here the judge takes
    a reviewer's place. Each reviewer's initial label of a unit is compared with the label of more than half of the
    other reviewers (with two reviewers: the other's label), and so is the judge's.

    ==========================  ==============================================================================
    measure                     what it is
    ==========================  ==============================================================================
    leave_one_out_agreement     judge empty; slice ``reviewer=<r>``: the reviewer's label equals the others' /
                                units with both; slice ``all``: pooled over the reviewers
    leave_one_out_kappa         Cohen's kappa of the same two columns
    agreement_with_the_others   the judge's label equals the others' / the same units, if it has a verdict;
                                slices as above; pass direct, original, swapped
    kappa_with_the_others       Cohen's kappa of the same
    human_gap                   judge minus reviewer, share of units, on units where both are there; below 0 the
                                judge agrees less with people than a reviewer does
    human_gap_kappa             the same difference of the two kappas
    ==========================  ==============================================================================

    Parameters
    ----------
    labels : DataFrame
        Single human labels; see :func:`judgelab.measure.reliability.reviewer_table`. Adjudicated ones are not used.
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`.
    labels_allowed : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`. Wilson's interval where an item has one entry, else the
        bootstrap over whole items (the slice ``all``: an item has an entry for each of its reviewers). NaN with the
        reason for a single reviewer. Units without a majority of the others are left out and counted.

    Raises
    ------
    ValueError
        If a reviewer labels a unit twice, or a preference is not allowed.

    Notes
    -----
    With two reviewers the others are one person: the pooled agreement then is that of the two reviewers.
    """
    settings = Settings(ci_level, resamples, seed)
    matrix = LabelMatrix.of(labels, labels_allowed)
    n_labels, n_reviewers = len(labels_allowed), len(matrix.reviewers)
    others = [majority_of_others(matrix.codes, r, n_labels) for r in range(n_reviewers)]
    entries = _Entries.of(matrix, others)
    lines: list[dict[str, Any]] = []
    for slice_, chosen in entries.slices():
        place = Place(slice_=slice_)
        note = entries.note(chosen)
        lines += _agreement("leave_one_out", place, entries, entries.own, chosen, n_labels, settings, note)
    for place, codes, planned in judge_codes(matrix, normalized, labels_allowed):
        judged = codes[entries.unit]
        for slice_, chosen in entries.slices():
            here = chosen & planned[entries.unit]
            where = Place(place.judge, place.strategy, place.pass_, slice_)
            silent = int((here & (entries.others >= 0) & (judged < 0)).sum())
            note = joined(entries.note(here), excluded_note(int(here.sum()), "labels", without_usable_verdict=silent))
            lines += _agreement("with_the_others", where, entries, judged, here, n_labels, settings, note)
            lines.append(_gap_row(where, entries, judged, here, settings, note))
            lines.append(_kappa_gap_row(where, entries, judged, here, n_labels, settings, note))
    return frame(lines)


class _Entries:
    """One entry a reviewer's label of a unit: the reviewer, the unit, its item, the label, and the others' label."""

    def __init__(self, reviewers: tuple[str, ...], reviewer: Ints, unit: Ints, item: Ints, own: Ints, others: Ints):
        self.reviewers, self.reviewer, self.unit, self.item = reviewers, reviewer, unit, item
        self.own, self.others = own, others

    @classmethod
    def of(cls, matrix: LabelMatrix, others: list[Ints]) -> _Entries:
        reviewer, unit = np.nonzero(matrix.codes.T >= 0)
        of = np.stack(others) if others else np.zeros((0, len(matrix.items)), dtype=np.int64)
        return cls(
            matrix.reviewers, reviewer, unit, matrix.items[unit], matrix.codes[unit, reviewer], of[reviewer, unit]
        )

    def slices(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """All reviewers pooled, then each."""
        yield "all", np.ones(len(self.unit), dtype=bool)
        for number, name in enumerate(self.reviewers):
            yield f"reviewer={name}", self.reviewer == number

    def note(self, chosen: NDArray[np.bool_]) -> str:
        n = len(self.reviewers)
        if n < 2:
            return f"{n} reviewer{'s' * (n != 1)}: there are no others"
        left = int((chosen & (self.others < 0)).sum())
        return excluded_note(int(chosen.sum()), "labels", without_a_majority_of_the_others=left)


def _agreement(
    kind: str,
    place: Place,
    entries: _Entries,
    given: Ints,
    chosen: NDArray[np.bool_],
    n_labels: int,
    settings: Settings,
    note: str,
) -> Iterator[dict[str, Any]]:
    names = {
        "leave_one_out": ("leave_one_out_agreement", "leave_one_out_kappa"),
        "with_the_others": ("agreement_with_the_others", "kappa_with_the_others"),
    }[kind]
    items, first, second = entries.item[chosen], entries.others[chosen], given[chosen]
    valid = (first >= 0) & (second >= 0)
    yield rate_row(
        names[0], place, items, np.where(valid, (first == second).astype(float), NAN), settings=settings, note=note
    )
    yield kappa_row(names[1], place, items, first, second, n_labels=n_labels, settings=settings, note=note)


def _gap_row(
    place: Place, entries: _Entries, judged: Ints, chosen: NDArray[np.bool_], settings: Settings, note: str
) -> dict[str, Any]:
    valid = chosen & (entries.others >= 0) & (judged >= 0)
    n_items = len(np.unique(entries.item[valid]))
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = len(np.unique(entries.item[chosen])) - n_items
    if not valid.any():
        reason = joined("undefined: no unit with the others' label and the judge's verdict", note)
        return place.row("human_gap", NAN, method=METHOD, note=reason, **common)
    right = (judged[valid] == entries.others[valid]).astype(float)
    gained = right - (entries.own[valid] == entries.others[valid])
    table = ItemTable.of(entries.item[valid], np.column_stack([gained, np.ones(len(gained))]))
    sampled = bootstrap(table, _mean_of, resamples=settings.resamples, rng=place.rng("human_gap", settings))[0]
    estimate = float(gained.mean())
    carrying = float(carriers(table, _mean_of)[0]) if n_items > 1 else NAN
    made = interval_of(sampled, estimate, n_items, "difference", settings, carrying=carrying)
    made["note"], made["method"] = joined(made["note"], note), joined(METHOD, made["method"])
    return place.row("human_gap", estimate, **made, **common)


def _kappa_gap_row(
    place: Place,
    entries: _Entries,
    judged: Ints,
    chosen: NDArray[np.bool_],
    n_labels: int,
    settings: Settings,
    note: str,
) -> dict[str, Any]:
    """Kappa of the judge minus kappa of the reviewers, both with the others' labels and from the same resamples."""
    valid = chosen & (entries.others >= 0) & (judged >= 0)
    n_items = len(np.unique(entries.item[valid]))
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = len(np.unique(entries.item[chosen])) - n_items
    if not valid.any():
        reason = joined("undefined: no unit with the others' label and the judge's verdict", note)
        return place.row("human_gap_kappa", NAN, method=METHOD, note=reason, **common)
    codes = np.column_stack([entries.others, entries.own, judged])[valid]
    cells = Contingency.of(codes, entries.item[valid], n_labels)

    def statistic(totals: Floats) -> Floats:
        return paired_statistics(totals, cells)[5:]

    estimate = float(statistic(cells.table.totals)[0, 0])
    if np.isnan(estimate):
        reason = joined("undefined: the others and the reviewers or the judge used one and the same label", note)
        return place.row("human_gap_kappa", NAN, method=METHOD, note=reason, **common)
    rng = place.rng("human_gap_kappa", settings)
    sampled = bootstrap(cells.table, statistic, resamples=settings.resamples, rng=rng)[0]
    carrying = float(carriers(cells.table, statistic)[0]) if n_items > 1 else NAN
    made = interval_of(sampled, estimate, n_items, "difference", settings, carrying=carrying)
    made["note"], made["method"] = joined(made["note"], note), joined(METHOD, made["method"])
    return place.row("human_gap_kappa", estimate, **made, **common)


def _mean_of(totals: Floats) -> Floats:
    return (totals[:, 0] / totals[:, 1])[np.newaxis, :]
