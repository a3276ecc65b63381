"""All that reviewers and adjudicators decided so far, gathered from their journals: for a look, and for closing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from judgelab.errors import LabelError
from judgelab.labelling.adjudicated import adjudicated
from judgelab.labelling.decisions import decision_frame, decisions_of, labels_among
from judgelab.labelling.journal_file import JournalFile, read_journals
from judgelab.labelling.rank_tasks import planned_rankings, ranking_order
from judgelab.labelling.ranks import pair_decisions_of_ranks, rank_decisions_of, ranks_of, read_rank_journals
from judgelab.labelling.tasks import check_reviewer, items_to_label, labelling_order, planned_table
from judgelab.measure.labelling_progress import to_adjudicate
from judgelab.study.labels import COLUMNS
from judgelab.study.run import Run

__all__ = ["Gathered", "gathered_labels", "labels_so_far"]

TASK = ["reviewer_id", "item_id", "system_x", "system_y", "kind"]
PAIR = ["item_id", "system_x", "system_y"]


class Gathered(NamedTuple):
    """What the journals of a run hold.

    Attributes
    ----------
    labels : DataFrame
        Initial and adjudicated labels as :func:`judgelab.study.freeze.close_labels` takes them: the columns of
        :data:`judgelab.study.labels.COLUMNS` and ``repeat``, in the order of the items. In a study whose reviewers
        rank: the labels that their ranks imply.
    ranks : DataFrame or None
        item_id, reviewer_id, system, rank in the order of the items; None in a study whose reviewers label pairs.
    decisions : DataFrame
        Every initial decision, training too, one row a task, in the columns of
        :data:`judgelab.labelling.decisions.DECISIONS`. Goes with ``planned`` into
        :func:`judgelab.measure.labelling_progress.progress_table`.
    pair_decisions : DataFrame
        The same, one row a pair, of items that are labelled and no training: for adjudication.
    evaluated : frozenset of str
        The evaluation items, of which alone agreement is measured: see :meth:`of_evaluation`.
    planned : DataFrame
        What each reviewer with a journal is to decide; see :func:`judgelab.labelling.tasks.planned_table`.
    open_pairs : DataFrame
        item_id, system_x, system_y of the pairs whose initial labels differ and that are not adjudicated; no rows in a
        study that does not adjudicate.
    notes : tuple of str
        What was decided twice or left out.
    unfinished : tuple of str
        What is still to be done before the labels are what the protocol wants.
    problems : tuple of str
        Lines of journals that cannot be used, and files whose name is no reviewer's.
    """

    labels: pd.DataFrame
    ranks: pd.DataFrame | None
    decisions: pd.DataFrame
    pair_decisions: pd.DataFrame
    evaluated: frozenset[str]
    planned: pd.DataFrame
    open_pairs: pd.DataFrame
    notes: tuple[str, ...]
    unfinished: tuple[str, ...]
    problems: tuple[str, ...]

    def of_evaluation(self) -> pd.DataFrame:
        """The rows of ``pair_decisions`` of evaluation items: for agreement so far."""
        chosen = self.pair_decisions["item_id"].isin(self.evaluated)
        return self.pair_decisions[chosen].reset_index(drop=True)


class _Initial(NamedTuple):
    """What reviewers decided and were to decide, in either mode."""

    decisions: pd.DataFrame
    by_pair: pd.DataFrame
    planned: pd.DataFrame
    ranks: pd.DataFrame | None
    problems: list[str]


def gathered_labels(run: Run) -> Gathered:
    """Read every journal of a run in which labels are made; reviewers may be writing meanwhile.

    Raises
    ------
    LabelError
        If labels are not made in this run, or a journal cannot be read. Lines that cannot be used are told in
        ``problems``, the others are kept.
    """
    wanted = run.study.human_review.labelling
    if wanted is None:
        raise LabelError(f"the labels of run {run.name} are not made in the study (human_review.labelling is empty)")
    initial = _rankings(run) if wanted.mode == "ranking" else _pairs(run)
    place = {item.item_id: number for number, item in enumerate(run.items())}
    evaluated = {item.item_id for item in run.evaluation_items()}
    labelled = {item.item_id for item in items_to_label(run.study, run.items())}
    given = labels_among(initial.by_pair)
    inside = given["item_id"].isin(labelled)
    by_pair = initial.by_pair[initial.by_pair["item_id"].isin(labelled)].reset_index(drop=True)
    decided = adjudicated(run)
    labels = pd.concat([given[inside], decided.labels.assign(repeat=1)], ignore_index=True)
    outside = int((~inside).sum())
    left_out = [f"{outside} of {len(given)} labels are of development items, and left out"] if outside else []
    open_pairs = _open_pairs(by_pair, decided.labels, run)
    return Gathered(
        labels=_in_order(labels, place),
        ranks=None if initial.ranks is None else _by_item(initial.ranks, place, evaluated),
        decisions=initial.decisions,
        pair_decisions=by_pair,
        evaluated=frozenset(evaluated),
        planned=initial.planned,
        open_pairs=open_pairs,
        notes=(*decided.notes, *left_out),
        unfinished=tuple(_unfinished(initial, open_pairs, run)),
        problems=(*initial.problems, *decided.problems),
    )


def _pairs(run: Run) -> _Initial:
    items, options = run.items(), _options(run)
    known = {item.item_id for item in items}
    journals, problems = _named(read_journals(run.path("labelling"), study=run.study, known=known))
    decisions = decisions_of(journals, run.study)
    orders = {each.reviewer: labelling_order(run.study, items, each.reviewer, **options) for each in journals}
    return _Initial(decisions, decisions, planned_table(orders, items), None, problems)


def _rankings(run: Run) -> _Initial:
    items, options = run.items(), _options(run)
    known = {item.item_id for item in items}
    every = read_rank_journals(run.path("labelling", "ranks"), study=run.study, known=known)
    journals, problems = _named(every)
    orders = {each.reviewer: ranking_order(run.study, items, each.reviewer, **options) for each in journals}
    return _Initial(
        rank_decisions_of(journals),
        pair_decisions_of_ranks(journals, run.study),
        planned_rankings(orders, items),
        ranks_of(journals, run.study),
        problems,
    )


def _options(run: Run) -> dict[str, Any]:
    wanted = run.study.human_review.labelling
    return {"training": wanted.training, "repeats_share": wanted.repeats_share} if wanted else {}


def _named(every: Sequence[JournalFile[Any]]) -> tuple[list[JournalFile[Any]], list[str]]:
    """The journals under a reviewer's name, and the problems of all: a copied file may be named anyhow."""
    journals, problems = [], []
    for journal in every:
        try:
            check_reviewer(journal.reviewer)
        except LabelError as error:
            problems.append(f"{journal.where}: {error}; the file is left out")
        else:
            journals.append(journal)
            problems += journal.problems
    return journals, problems


def _in_order(labels: pd.DataFrame, place: Mapping[str, int]) -> pd.DataFrame:
    """In the order of the items; within an item by pair, initial before adjudicated, reviewer and repeat."""
    sorted_by = ["place", "system_x", "system_y", "is_adjudicated", "reviewer_id", "repeat"]
    ordered = labels.assign(place=labels["item_id"].map(place)).sort_values(sorted_by, kind="stable")
    types = {"is_adjudicated": "bool", "repeat": "int64"}
    return ordered[[*COLUMNS, "repeat"]].reset_index(drop=True).astype(types)


def _by_item(ranks: pd.DataFrame, place: Mapping[str, int], evaluated: set[str]) -> pd.DataFrame:
    kept = ranks[ranks["item_id"].isin(evaluated)]
    ordered = kept.assign(place=kept["item_id"].map(place)).sort_values(["place", "reviewer_id"], kind="stable")
    return ordered[ranks.columns].reset_index(drop=True)


def _open_pairs(by_pair: pd.DataFrame, decided: pd.DataFrame, run: Run) -> pd.DataFrame:
    if not run.study.human_review.adjudicate_disagreement:
        return by_pair.loc[[], PAIR].reset_index(drop=True)
    every = pd.concat([by_pair, decided.assign(kind="label", repeat=1)], ignore_index=True)
    return to_adjudicate(every.astype({"is_adjudicated": "bool"}))[PAIR].drop_duplicates(ignore_index=True)


def _unfinished(initial: _Initial, open_pairs: pd.DataFrame, run: Run) -> list[str]:
    told = []
    wanted, there = run.study.human_review.reviewers_per_item, initial.planned["reviewer_id"].nunique()
    if there < wanted:
        told.append(f"{there} of {wanted} reviewers have begun")
    planned = initial.planned.loc[initial.planned["kind"] != "training", TASK]  # a sheet holds no training
    both = planned.merge(initial.decisions[TASK], on=TASK, how="left", indicator="on")
    for name, rows in both.groupby("reviewer_id"):
        left = int((rows["on"] == "left_only").sum())
        if left:
            told.append(f"{name} has {left} of {len(rows)} tasks left")
    if len(open_pairs):
        told.append(f"pairs of answers whose initial labels differ and that are not adjudicated: {len(open_pairs)}")
    return told


def labels_so_far(run: Run) -> Gathered:
    """As :func:`gathered_labels`; of a study whose labels come from a file, ``open_pairs`` alone has rows.

    Raises
    ------
    LabelError
        If a journal cannot be read.
    """
    if run.study.human_review.labelling is not None:
        return gathered_labels(run)
    none = decision_frame([])
    labels = none.loc[:, [*COLUMNS, "repeat"]]
    differ = to_adjudicate(run.labels())[PAIR].drop_duplicates(ignore_index=True)
    return Gathered(labels, None, none, none, frozenset(), planned_table({}, ()), differ, (), (), ())
