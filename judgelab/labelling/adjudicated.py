"""What adjudicators decided, as rows of a label file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from judgelab.labelling.decisions import decision_frame, decisions_of
from judgelab.labelling.journal_file import read_journals
from judgelab.labelling.records import LabelRecord
from judgelab.labelling.tasks import items_to_label
from judgelab.project import shown
from judgelab.study.labels import COLUMNS
from judgelab.study.run import Run

__all__ = ["Adjudicated", "adjudicated", "adjudicated_labels", "adjudication_folder"]

Question = tuple[str, str, str]


class Adjudicated(NamedTuple):
    """Adjudicated labels, and what must be known of the journals that they come from.

    Attributes
    ----------
    labels : DataFrame
        One row an item and pair, in the columns of a label file: reviewer_id is the adjudicator, is_adjudicated True.
    notes, problems : tuple of str
        What was decided twice; lines of journals that cannot be used.
    """

    labels: pd.DataFrame
    notes: tuple[str, ...]
    problems: tuple[str, ...]


def adjudication_folder(run: Run) -> Path:
    """Where adjudicators' journals are: ``outputs/<run>/labelling/adjudication``."""
    return run.path("labelling", "adjudication")


def adjudicated(run: Run) -> Adjudicated:
    """The initial decisions of all adjudicators, one for each item and pair.

    What an adjudicator could not judge is no label. Where several decided the same pair, the earliest decision counts;
    a note says so. No rows in a study that does not adjudicate.

    Raises
    ------
    LabelError
        If a journal cannot be read.
    """
    if not run.study.human_review.adjudicate_disagreement:
        return Adjudicated(decision_frame([])[COLUMNS], (), ())
    known = {item.item_id for item in items_to_label(run.study, run.items())}
    journals = read_journals(adjudication_folder(run), study=run.study, known=known)
    when: dict[tuple[str, Question], datetime] = {}
    for journal in journals:
        for record in journal.standing.initial().values():
            when[journal.reviewer, _question(record)] = datetime.fromisoformat(record.at)
    decisions = decisions_of(journals, run.study)
    given = decisions[decisions["kind"].eq("label") & decisions["preference"].notna()]
    names = given[["reviewer_id", "item_id", "system_x", "system_y"]].itertuples(index=False, name=None)
    given = given.assign(is_adjudicated=True, at=[when[name[0], name[1:]] for name in names])
    given = given.sort_values(["at", "reviewer_id"], kind="stable")
    again = given.duplicated(["item_id", "system_x", "system_y"])
    notes = [
        f"{shown(adjudication_folder(run))}: item {row['item_id']} ({row['system_x']}, {row['system_y']}) was "
        f"adjudicated again by {row['reviewer_id']}; the earliest decision counts"
        for row in given[again].to_dict("records")
    ]
    labels = given.loc[~again, COLUMNS].sort_values(["item_id", "system_x", "system_y"]).reset_index(drop=True)
    return Adjudicated(labels, tuple(notes), tuple(line for journal in journals for line in journal.problems))


def adjudicated_labels(run: Run) -> pd.DataFrame:
    """The labels of :func:`adjudicated`, in the columns of a label file."""
    return adjudicated(run).labels


def _question(record: LabelRecord) -> Question:
    return record.item_id, record.system_x, record.system_y
