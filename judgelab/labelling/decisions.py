"""What journals say, as tables: every initial decision, and the labels among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from judgelab.errors import LabelError
from judgelab.labelling.journal_file import JournalFile
from judgelab.labelling.records import LabelRecord
from judgelab.labelling.standing import RecordT
from judgelab.study.labels import COLUMNS
from judgelab.study.protocol import Study

__all__ = ["DECISIONS", "REPEATS", "decision_frame", "decisions_of", "each_of_one", "labels_among", "labels_of"]

REPEATS = {"training": 1, "label": 1, "repeat": 2}
DECISIONS = [*COLUMNS, "repeat", "kind", "number", "choice", "reason", "note", "seconds", "later"]


def decisions_of(journals: Iterable[JournalFile[LabelRecord]], study: Study) -> pd.DataFrame:
    """The initial decisions of several reviewers, each reviewer's in the order in which they were made.

    Returns
    -------
    DataFrame
        One row a decision with the columns :data:`DECISIONS`. preference is NaN where the reviewer could not judge.
        score_x and score_y are weighted means over the criteria, NaN unless each has a score. repeat is 2 for a
        planted repeat, else 1. later counts the decisions on the same task after the initial one.

    Raises
    ------
    LabelError
        If two journals are of one reviewer.
    """
    weights = study.direct_scale.weights
    rows = []
    for journal in each_of_one(journals):
        for key, first in journal.standing.initial().items():
            rows.append(
                (
                    *(first.item_id, journal.reviewer, first.system_x, first.system_y, first.preference),
                    *(first.total(first.system_x, weights), first.total(first.system_y, weights), False),
                    *(REPEATS[first.kind], first.kind, first.number, first.choice, first.reason, first.note),
                    *(first.seconds, len(journal.standing.later(key))),
                )
            )
    return decision_frame(rows)


def each_of_one(journals: Iterable[JournalFile[RecordT]]) -> Iterator[JournalFile[RecordT]]:
    """The journals, one by one; LabelError if two are of one reviewer."""
    seen = set()
    for journal in journals:
        if journal.reviewer in seen:
            raise LabelError(f"two journals are of reviewer {journal.reviewer}; the second is {journal.where}")
        seen.add(journal.reviewer)
        yield journal


def decision_frame(rows: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    """Rows of values in the order of :data:`DECISIONS` as a table with its types, of no row, too."""
    frame = pd.DataFrame(rows, columns=DECISIONS)
    names = ("item_id", "reviewer_id", "system_x", "system_y", "preference", "kind", "choice", "reason", "note")
    numbers = dict.fromkeys(("repeat", "number", "later"), "int64")
    floats = dict.fromkeys(("score_x", "score_y", "seconds"), "float64")
    return frame.astype({**dict.fromkeys(names, "str"), **numbers, **floats, "is_adjudicated": "bool"})


def labels_of(journals: Iterable[JournalFile[LabelRecord]], study: Study) -> pd.DataFrame:
    """The initial labels of several reviewers, in the columns of a label file and ``repeat``.

    Training is left out, and what a reviewer could not judge (:func:`decisions_of` has both). So is a repeat whose
    first showing has no label: there is nothing that it repeats.

    Raises
    ------
    LabelError
        If two journals are of one reviewer.
    """
    return labels_among(decisions_of(journals, study))


def labels_among(decisions: pd.DataFrame) -> pd.DataFrame:
    """The labels of a table with the columns :data:`DECISIONS`; see :func:`labels_of`."""
    given = decisions[(decisions["kind"] != "training") & decisions["preference"].notna()]
    of = ["item_id", "system_x", "system_y", "reviewer_id"]
    has_first = given["repeat"].eq(1).groupby([given[name] for name in of]).transform("any").astype(bool)
    return given.loc[has_first, [*COLUMNS, "repeat"]].reset_index(drop=True)
