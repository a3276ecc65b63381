"""Closing the labels of a run from a session: what it means is said first, then it is done."""

from __future__ import annotations

from judgelab.errors import LabelError
from judgelab.labelling.gathered import gathered_labels
from judgelab.labelling.messages import first_lines
from judgelab.study.freeze import close_labels, open_run
from judgelab.study.protocol import Study
from judgelab.study.run import Run

__all__ = ["closed_by", "thanks"]


def closed_by(run: Run, *, confirmed: bool) -> str:
    """Close the labels of a run, in a study whose reviewers rank also their ranks; or say what that means.

    Parameters
    ----------
    run : Run
        The frozen run.
    confirmed : bool
        False: nothing is closed; what would be closed, and what is unfinished, is told.

    Returns
    -------
    str
        What was closed, or what would be.

    Raises
    ------
    LabelError
        If there is no label, or the labels are closed already.
    RunError, DataError
        As :func:`judgelab.study.freeze.close_labels`.
    """
    if not open_run(run.name).labels_open:
        raise LabelError("The labels of this study are closed already.")
    gathered = gathered_labels(run)
    initial = gathered.labels[~gathered.labels["is_adjudicated"] & gathered.labels["repeat"].eq(1)]
    if initial.empty:
        raise LabelError("There is no label yet: nothing can be closed.")
    counts = {
        "reviewers": initial["reviewer_id"].nunique(),
        "initial labels": len(initial),
        "adjudicated labels": int(gathered.labels["is_adjudicated"].sum()),
        "repeats": int(gathered.labels["repeat"].gt(1).sum()),
    }
    what = ", ".join(f"{name}: {count}" for name, count in counts.items())
    if confirmed:
        close_labels(run, gathered.labels, gathered.ranks)
        return f"Closed with {what}."
    unfinished = [f"Unfinished: {note}." for note in gathered.unfinished]
    told = [
        f"This closes the labels of the study with {what}. Nothing can be added or changed after that.",
        *unfinished,
    ]
    return "\n".join([*told, *gathered.notes, *first_lines(gathered.problems)])


def thanks(study: Study) -> str:
    """What a reviewer is told who has decided everything: also who goes on, where somebody adjudicates."""
    adjudicates = study.human_review.adjudicate_disagreement
    after = " Where labels differ, somebody else decides further down in this notebook." if adjudicates else ""
    return f"Everything is decided: thank you.{after}"
