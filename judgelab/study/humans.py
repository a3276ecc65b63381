"""The human side: single labels as people gave them, and the one reference that a rule makes of them."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from judgelab.errors import DataError
from judgelab.project import resolve
from judgelab.study.items import ItemSet
from judgelab.study.labels import COLUMNS, LabelFile, read_label_file
from judgelab.study.protocol import Study

__all__ = ["LabelSet", "labels_for_file", "read_labels", "reference", "reviewers"]

NAN = float("nan")
PAIR = ["item_id", "system_x", "system_y"]
REFERENCE_COLUMNS = [
    *("item_id", "system_x", "system_y", "human", "rule", "n_initial", "human_score_x", "human_score_y"),
]


class _Label(NamedTuple):
    preference: str
    score_x: float
    score_y: float
    is_adjudicated: bool


@dataclass(frozen=True)
class LabelSet:
    """The labels of the study's items; ``apart`` holds those of items that are left out; ``notes`` say so."""

    labels: pd.DataFrame
    notes: list[str]
    apart: pd.DataFrame


def read_labels(study: Study, items: ItemSet) -> LabelSet:
    """Read and check the human labels of a study.

    Two layouts are read: ``item_id, reviewer_id, <system>_score, ..., preference, is_adjudicated`` for two systems
    (names in small letters), and the long one ``item_id, reviewer_id, system_x, system_y, preference[, score_x,
    score_y, is_adjudicated]`` for any number; a pair may stand in either order there. In both, a column
    ``provenance`` may repeat what the protocol says, scores may be left out, and other columns are ignored and noted.
    A column ``repeat`` (1, 2, ...) tells labels that a reviewer gave again, blind, from those that count (1).

    Returns
    -------
    LabelSet
        ``labels`` has item_id, reviewer_id, system_x, system_y (protocol order), preference (a system or TIE),
        score_x, score_y (NaN where empty), is_adjudicated, where any label was repeated also repeat, and is sorted
        as the items are.

    Raises
    ------
    DataError
        If the study has no labels, columns are missing, or rows are wrong; every kind of problem is listed with
        how many rows of how many it has and its first line.
    """
    if study.human_labels is None or study.human_labels.path is None:
        raise DataError("the study has no human labels of a file: human_labels.path is empty in its protocol")
    path = resolve(study.human_labels.path)
    excluded = frozenset(items.excluded["item_id"].dropna())
    here = frozenset(item.item_id for item in items.items)
    known = here | excluded | set(items.not_sampled)
    unreadable = int(items.excluded["item_id"].isna().sum())
    file = read_label_file(path, study, known=known, unreadable=unreadable)
    apart = {
        "left out of the items": excluded - here,
        "not sampled": frozenset(items.not_sampled),
        "not in the items; lines of the items without a readable id may be those": set(file.labels["item_id"]) - known,
    }
    return _of_items(file, items, apart)


def labels_for_file(labels: pd.DataFrame, study: Study) -> pd.DataFrame:
    """Labels as a run keeps them in ``human_labels.csv``: the two-system layout where it fits, else the long one."""
    kept = labels.copy()
    kept["is_adjudicated"] = kept["is_adjudicated"].map({True: "true", False: "false"})
    kept["provenance"] = study.human_labels.provenance if study.human_labels else "none"
    if len(study.systems) > 2:
        return kept
    x, y = study.system_names
    kept = kept.rename(columns={"score_x": f"{x.lower()}_score", "score_y": f"{y.lower()}_score"})
    scores = [f"{x.lower()}_score", f"{y.lower()}_score"]
    columns = ["item_id", "reviewer_id", *scores, "preference", "is_adjudicated", "provenance"]
    return kept[[*columns, "repeat"] if "repeat" in kept else columns]


def reviewers(labels: pd.DataFrame) -> tuple[str, ...]:
    """Everybody who gave an initial label, in alphabetical order. Adjudicated labels do not make a reviewer."""
    return tuple(sorted(labels.loc[~labels["is_adjudicated"].astype(bool), "reviewer_id"].unique()))


def reference(labels: pd.DataFrame, comparisons: pd.DataFrame, rule: Sequence[str]) -> pd.DataFrame:
    """Make one reference label for each item and pair of systems.

    The first step of ``rule`` that gives a label decides: ``adjudicated`` gives the adjudicated label, ``majority``
    the label that more than half of the initial labels share (one reviewer alone is a majority of one).

    Parameters
    ----------
    labels
        Single labels, as in :class:`LabelSet`; the first of repeated labels counts (``repeat`` 1).
    comparisons
        One row for each item and pair (item_id, system_x, system_y).
    rule
        Steps among ``adjudicated`` and ``majority``, in the order in which they are tried.

    Returns
    -------
    DataFrame
        One row for each row of ``comparisons``: item_id, system_x, system_y, human (a system, TIE, or NaN), rule
        (adjudicated, majority, unresolved, unlabelled), n_initial (initial labels), human_score_x and human_score_y:
        the mean scores of the labels that made the reference (the adjudicated one; or the initial ones in the
        majority), NaN without any.
    """
    by_pair: dict[tuple[str, ...], list[_Label]] = defaultdict(list)
    if "repeat" in labels:
        labels = labels[labels["repeat"] == 1]
    for row in labels[[*PAIR, "preference", "score_x", "score_y", "is_adjudicated"]].itertuples(index=False, name=None):
        by_pair[row[:3]].append(_Label(*row[3:]))
    pairs = comparisons[PAIR].itertuples(index=False, name=None)
    rows = [(*pair, *_decided(by_pair.get(pair, []), rule)) for pair in pairs]
    frame = pd.DataFrame(rows, columns=REFERENCE_COLUMNS)
    return frame.astype({"human": "str", "rule": "str", "n_initial": "int64"})


def _decided(group: Sequence[_Label], rule: Iterable[str]) -> tuple[str | None, str, int, float, float]:
    """human, rule, n_initial and both mean scores of one item and pair."""
    initial = [label for label in group if not label.is_adjudicated]
    steps = {"adjudicated": [label for label in group if label.is_adjudicated], "majority": _majority(initial)}
    for step in rule:
        made = steps[step]
        if made:
            scores = (_mean([label.score_x for label in made]), _mean([label.score_y for label in made]))
            return made[0].preference, step, len(initial), *scores
    return None, "unresolved" if group else "unlabelled", len(initial), NAN, NAN


def _majority(initial: Sequence[_Label]) -> list[_Label]:
    """The initial labels that share the label of more than half; none if there is no such label."""
    counts = Counter(label.preference for label in initial)
    winners = [name for name, count in counts.items() if 2 * count > len(initial)]
    return [label for label in initial if label.preference in winners]


def _mean(scores: Sequence[float]) -> float:
    """The mean of the scores that are there; NaN without any."""
    given = [score for score in scores if not math.isnan(score)]
    return math.fsum(given) / len(given) if given else NAN


def _of_items(file: LabelFile, items: ItemSet, apart: Mapping[str, Collection[str]]) -> LabelSet:
    """Keep the labels of the study's items, in their order; the others stand apart and are noted."""
    frame, notes = file.labels, list(file.notes)
    here = {item.item_id: place for place, item in enumerate(items.items)}
    for why, ids in apart.items():
        count = int(frame["item_id"].isin(ids).sum())
        if count:
            notes.append(f"{file.where}: {count} of {len(frame)} labels are of items that are {why}; kept apart")
    unlabelled = len(here.keys() - set(frame["item_id"]))
    if unlabelled:
        notes.append(f"{file.where}: {unlabelled} of {len(here)} items have no label")
    place = frame["item_id"].map(here)
    inside = place.notna()
    kept = frame[inside].iloc[place[inside].argsort(kind="stable")]
    columns = [*COLUMNS, "repeat"] if (frame["repeat"] > 1).any() else COLUMNS
    return LabelSet(kept[columns].reset_index(drop=True), notes, frame.loc[~inside, columns].reset_index(drop=True))
