"""What journals of rankings say, as tables: experts' ranks, and the preference on every pair that they imply.

Ranks are written as competition ranks (1, 2, 2, 4), as a person gives them. Stage 09 uses their order alone: it makes
mid-ranks (1, 2.5, 2.5, 4) of whatever numbers there are, so both ways of writing give the same correlations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from judgelab.labelling.decisions import REPEATS, decision_frame, each_of_one, labels_among
from judgelab.labelling.journal_file import JournalFile, read_folder
from judgelab.labelling.rank_records import RankRecord, RankRules
from judgelab.labelling.rank_tasks import NO_PAIR
from judgelab.study.items import Pair, pairs
from judgelab.study.protocol import TIE, Study

__all__ = [
    "RANKS",
    "implied",
    "pair_decisions_of_ranks",
    "pairs_of_ranks",
    "rank_decisions_of",
    "ranks_of",
    "read_rank_journals",
]

RANKS = ["item_id", "reviewer_id", "system", "rank"]
NAN = float("nan")


def read_rank_journals(
    folder: Path, *, study: Study, known: Collection[str] | None = None
) -> list[JournalFile[RankRecord]]:
    """Every reviewer's journal of rankings in a folder, as :func:`judgelab.labelling.journal_file.read_journals`.

    Raises
    ------
    LabelError
        If a journal cannot be read. Lines that cannot be used are told in ``problems``; the others are kept.
    """
    return read_folder(folder, RankRules.of(study, known))


def ranks_of(journals: Iterable[JournalFile[RankRecord]], study: Study) -> pd.DataFrame:
    """The initial ranks of several reviewers: a row an item, reviewer and system, as stage 09 reads experts' ranks.

    Parameters
    ----------
    journals
        One a reviewer.
    study
        The protocol, for the order of its systems.

    Returns
    -------
    DataFrame
        item_id, reviewer_id, system, rank (whole; 1 is best, ties share a rank). Each reviewer's items stand in the
        order in which they were decided, systems in the protocol's order. Training, repeats and what a reviewer could
        not judge are left out; no rows without anything else.

    Raises
    ------
    LabelError
        If two journals are of one reviewer.
    """
    rows = [
        (first.item_id, first.reviewer, system, first.rank_of[system])
        for first, _ in _initial(journals)
        if first.kind == "label" and first.ranks
        for system in study.system_names
    ]
    return pd.DataFrame(rows, columns=RANKS).astype(dict.fromkeys(RANKS[:3], "str") | {"rank": "int64"})


def implied(rank_of: Mapping[str, int], pair: Pair) -> str:
    """The preference on a pair that ranks imply: the system with the lower rank, ``TIE`` where they are equal."""
    x, y = pair
    if rank_of[x] == rank_of[y]:
        return TIE
    return x if rank_of[x] < rank_of[y] else y


def pairs_of_ranks(journals: Iterable[JournalFile[RankRecord]], study: Study) -> pd.DataFrame:
    """The initial labels on every pair of systems that rankings imply, as :func:`judgelab.labelling.journal.labels_of`.

    Returns
    -------
    DataFrame
        :data:`judgelab.study.labels.COLUMNS` and repeat (2 for a planted repeat, else 1): n (n − 1) / 2 rows a
        ranking of n systems, without scores. Training is left out, what a reviewer could not judge, and a repeat of
        such an item. An item's rows are not independent of each other: intervals must resample items.

    Raises
    ------
    LabelError
        If two journals are of one reviewer.
    """
    return labels_among(pair_decisions_of_ranks(journals, study))


def pair_decisions_of_ranks(journals: Iterable[JournalFile[RankRecord]], study: Study) -> pd.DataFrame:
    """The initial decisions on every pair, as :func:`judgelab.labelling.journal.decisions_of` has them.

    For agreement so far and adjudication, which look at pairs.

    Returns
    -------
    DataFrame
        One row a decision and pair of systems, with the columns :data:`judgelab.labelling.decisions.DECISIONS`.
        preference is NaN where the reviewer could not judge; choice is ``ranked`` or ``cannot_judge``. note, reason,
        seconds and later are those of the whole item, on each of its rows: do not add them up.

    Raises
    ------
    LabelError
        If two journals are of one reviewer.
    """
    return _decisions(journals, pairs(study.system_names))


def rank_decisions_of(journals: Iterable[JournalFile[RankRecord]]) -> pd.DataFrame:
    """The initial decisions, one row a ranked item: what reviewers' progress is counted by.

    Goes with :func:`judgelab.labelling.rank_tasks.planned_rankings` into
    :func:`judgelab.measure.labelling_progress.progress_table`: ranking one item is one task.

    Returns
    -------
    DataFrame
        The columns :data:`judgelab.labelling.decisions.DECISIONS`; system_x and system_y are empty, preference is NaN.

    Raises
    ------
    LabelError
        If two journals are of one reviewer.
    """
    return _decisions(journals, [NO_PAIR])


def _decisions(journals: Iterable[JournalFile[RankRecord]], of: Collection[Pair]) -> pd.DataFrame:
    return decision_frame(
        [
            (
                *(first.item_id, first.reviewer, *pair),
                *(implied(first.rank_of, pair) if first.ranks and pair != NO_PAIR else None, NAN, NAN, False),
                *(REPEATS[first.kind], first.kind, first.number, first.choice, first.reason, first.note),
                *(first.seconds, later),
            )
            for first, later in _initial(journals)
            for pair in of
        ]
    )


def _initial(journals: Iterable[JournalFile[RankRecord]]) -> Iterator[tuple[RankRecord, int]]:
    """Each initial decision, and how many came later on the same task."""
    for journal in each_of_one(journals):
        for key, first in journal.standing.initial().items():
            yield first, len(journal.standing.later(key))
