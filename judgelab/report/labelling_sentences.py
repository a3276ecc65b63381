"""How far labelling has come, in sentences: each reviewer, their agreement so far, and what is left to adjudicate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from judgelab.labelling.gathered import Gathered
from judgelab.measure.labelling_progress import PEEKING
from judgelab.report.sentences import Sentences, estimate_text
from judgelab.report.words import plural
from judgelab.study.run import Run

__all__ = ["adjudication_sentences", "agreement_so_far_sentences", "labelling_sentences", "progress_sentences"]

PAIR = ["item_id", "system_x", "system_y"]
NAMED = {"exact_agreement": "exact agreement", "krippendorff_alpha": "Krippendorff's alpha"}


def labelling_sentences(so_far: Gathered, progress: pd.DataFrame, agreement: pd.DataFrame, run: Run) -> Sentences:
    """All that is to be said of labelling in the study: progress, agreement so far, adjudication, and what is unclear.

    Parameters
    ----------
    so_far
        From :func:`judgelab.labelling.gathered.labels_so_far`.
    progress, agreement
        See :func:`progress_sentences` and :func:`agreement_so_far_sentences`.
    run
        The run. Where its labels are not made in the study, one sentence says so; where they are closed, the agreement
        is left to the measures that follow.
    """
    study = run.study
    if study.human_review.labelling is None:
        return Sentences(["Nobody labels in this notebook (0 reviewers)."])
    minimum, adjudicates = study.decision.minimum_reviewer_agreement, study.human_review.adjudicate_disagreement
    parts = [
        progress_sentences(progress),
        agreement_so_far_sentences(agreement, minimum=minimum) if run.labels_open else Sentences(),
        adjudication_sentences(so_far.labels, so_far.open_pairs, adjudicates=adjudicates),
        Sentences(f"{told[0].upper()}{told[1:]}." for told in so_far.notes),
        Sentences(f"{told}." for told in so_far.problems),
    ]
    return Sentences.joined(parts)


def progress_sentences(progress: pd.DataFrame) -> Sentences:
    """A sentence a reviewer: how much of the plan is decided, what could not be judged, and how long one takes.

    Parameters
    ----------
    progress
        From :func:`judgelab.measure.labelling_progress.progress_table`. Training is not in it.
    """
    whole = progress[progress["category"] == "all"]
    if whole.empty:
        return Sentences(["Nobody has labelled yet (0 reviewers)."])
    return Sentences(_reviewer(row) for row in whole.to_dict("records"))


def _reviewer(row: Mapping[Any, Any]) -> str:
    said = f"{row['reviewer_id']}: {row['done']} of {row['planned']} decided"
    said += f", {row['cannot_judge']} of them as cannot judge" if row["cannot_judge"] else ""
    again = row["repeats_planned"]
    said += f"; {row['repeats_done']} of {again} decided a second time" if again else ""
    median = row["median_seconds"]
    return f"{said}." if pd.isna(median) else f"{said}; half of those with a time took {math.ceil(median)} s or less."


def agreement_so_far_sentences(agreement: pd.DataFrame, *, minimum: float) -> Sentences:
    """Agreement of the reviewers so far, and that looking at it is no reason to stop.

    Parameters
    ----------
    agreement
        From :func:`judgelab.measure.labelling_progress.agreement_so_far`.
    minimum
        The protocol's ``decision.minimum_reviewer_agreement``, 0 to 1.
    """
    chosen = agreement[agreement["measure"].isin(list(NAMED))].drop_duplicates("measure")
    chosen = chosen.assign(note=[note.removesuffix(PEEKING).rstrip("; ") for note in chosen["note"]])
    told = [f"So far, {NAMED[row['measure']]} is {estimate_text(row)}." for _, row in chosen.iterrows()]
    warning = (
        f"Looking does not end a study: the number of labels is the protocol's. Who stops when the number pleases has "
        f"an interval that does not hold; stage 02 holds the final one against {minimum:g}."
    )
    return Sentences([*told, warning])


def adjudication_sentences(labels: pd.DataFrame, open_pairs: pd.DataFrame, *, adjudicates: bool) -> Sentences:
    """How many pairs have labels that differ, and how many of them are adjudicated.

    Parameters
    ----------
    labels
        Single labels: item_id, system_x, system_y, reviewer_id, preference, is_adjudicated, repeat.
    open_pairs
        From :func:`judgelab.measure.labelling_progress.to_adjudicate`.
    adjudicates
        The protocol's ``human_review.adjudicate_disagreement``.
    """
    return Sentences(_adjudication(labels, open_pairs, adjudicates))


def _adjudication(labels: pd.DataFrame, open_pairs: pd.DataFrame, adjudicates: bool) -> Iterator[str]:
    initial = labels[~labels["is_adjudicated"].astype(bool) & (labels["repeat"] == 1)]
    groups = initial.groupby(PAIR)["preference"]
    several = int(groups.size().gt(1).sum())
    differ = int(groups.nunique().gt(1).sum())
    left = len(open_pairs[PAIR].drop_duplicates())
    yield f"{differ} of {plural(several, 'comparison')} that two or more reviewers labelled have labels that differ."
    if not adjudicates:
        yield "The protocol adjudicates nothing: its reference rule alone decides."
    elif differ:
        yield f"{differ - left} of {differ} {'are' if differ != 1 else 'is'} adjudicated, {left} to go."
