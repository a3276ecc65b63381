"""How far reviewers have come, how far they agree so far, and what is left to adjudicate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from judgelab.measure.coding import TIE, check_columns
from judgelab.measure.reliability import reviewer_table
from judgelab.measure.rows import joined

__all__ = ["NOT_PLANNED", "PEEKING", "agreement_so_far", "progress_table", "to_adjudicate"]

NOT_PLANNED = "not planned"
PEEKING = "so far: looking does not end a study, the number of labels is the protocol's"
MEASURES = ("exact_agreement", "cohen_kappa", "krippendorff_alpha", "gwet_ac1")
TASK = ["reviewer_id", "item_id", "system_x", "system_y", "kind"]
PAIR = ["item_id", "system_x", "system_y"]
COUNTS = ["planned", "done", "cannot_judge", "repeats_planned", "repeats_done"]
TO_ADJUDICATE = [*PAIR, "label", "preference", "score_x", "score_y", "note"]


def progress_table(labels: pd.DataFrame, planned: pd.DataFrame) -> pd.DataFrame:
    """What each reviewer has decided of what was planned, by category.

    Parameters
    ----------
    labels : DataFrame
        One row an initial decision: reviewer_id, item_id, system_x, system_y, kind (``training``, ``label``,
        ``repeat``), choice (``cannot_judge`` or another), seconds. Training is not counted.
    planned : DataFrame
        One row a task: reviewer_id, item_id, system_x, system_y, kind, category.

    Returns
    -------
    DataFrame
        For each reviewer, by name: a row with category ``all``, then one a category, by name. planned, done (decided,
        with what could not be judged), cannot_judge (of those), median_seconds (of those with a time, which decisions
        of a sheet do not have, their 0 s mean that; NaN without any),
        repeats_planned, repeats_done. Only the last two count repeats. Decisions that were not planned stand in a
        category :data:`NOT_PLANNED`, and in ``all``. No rows without tasks and decisions.

    Raises
    ------
    ValueError
        If a column is missing, or a task is planned or decided twice.
    """
    check_columns(labels, [*TASK, "choice", "seconds"], "labels")
    check_columns(planned, [*TASK, "category"], "planned")
    for table, name in ((labels, "labels"), (planned, "planned")):
        twice = table.duplicated(TASK).to_numpy()
        if twice.any():
            where = table[twice].iloc[0]
            raise ValueError(
                f"{name}: {int(twice.sum())} of {len(table)} rows repeat a reviewer and task; first "
                f"reviewer {where['reviewer_id']}, item {where['item_id']}, {where['kind']}"
            )
    both = planned[[*TASK, "category"]].merge(
        labels[[*TASK, "choice", "seconds"]], on=TASK, how="outer", indicator="on"
    )
    both = both[both["kind"] != "training"]
    foreign = (both["on"] == "right_only").to_numpy()
    category = np.where(foreign, NOT_PLANNED, both["category"].astype(object).fillna("").to_numpy(dtype=object))
    is_label, is_done = (both["kind"] == "label").to_numpy(), (both["on"] != "left_only").to_numpy()
    seconds = both["seconds"].to_numpy(dtype=np.float64)
    counted = pd.DataFrame(
        {
            "reviewer_id": both["reviewer_id"].to_numpy(dtype=object),
            "category": category,
            "planned": is_label & ~foreign,
            "done": is_label & is_done,
            "cannot_judge": is_label & is_done & (both["choice"] == "cannot_judge").to_numpy(dtype=bool),
            "repeats_planned": ~is_label & ~foreign,
            "repeats_done": ~is_label & is_done,
            "seconds": np.where(is_label & is_done & (seconds > 0), seconds, np.nan),
        }
    )
    whole = _summed(counted.assign(category="all", place=0))
    parts = _summed(counted.assign(place=1))
    rows = pd.concat([whole, parts]).sort_values(["reviewer_id", "place", "category"], kind="stable")
    return rows.drop(columns="place").reset_index(drop=True)


def _summed(counted: pd.DataFrame) -> pd.DataFrame:
    groups = counted.groupby(["reviewer_id", "place", "category"], sort=True)
    sums = groups[COUNTS].sum().astype("int64")
    sums.insert(3, "median_seconds", groups["seconds"].median())
    return sums.reset_index()


def agreement_so_far(
    labels: pd.DataFrame, *, labels_allowed: Sequence[str], ci_level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Agreement of the reviewers' initial labels while they are still labelling.

    Parameters
    ----------
    labels : DataFrame
        item_id, reviewer_id, system_x, system_y, preference, is_adjudicated; ``kind`` and ``repeat`` where there are
        such. Training, repeats and missing preferences are left out.
    labels_allowed : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        The rows ``exact_agreement``, ``cohen_kappa``, ``krippendorff_alpha`` and ``gwet_ac1`` of
        :func:`judgelab.measure.reliability.reviewer_table`, each with :data:`PEEKING` in its note: who looks again
        and again, and stops when the number pleases, has no interval that holds. NaN with a reason without labels.

    Raises
    ------
    ValueError
        As :func:`judgelab.measure.reliability.reviewer_table`.
    """
    initial = _initial(labels)
    # Scores are left to stage 02: here are preferences only.
    initial = initial.drop(columns=["score_x", "score_y"], errors="ignore")
    table = reviewer_table(initial, labels_allowed=labels_allowed, ci_level=ci_level, resamples=resamples, seed=seed)
    table = table[table["measure"].isin(MEASURES)].reset_index(drop=True)
    table["note"] = [joined(note, PEEKING) for note in table["note"]]
    return table


def to_adjudicate(labels: pd.DataFrame) -> pd.DataFrame:
    """The items and pairs on which initial labels differ, with their labels and notes but without names.

    Parameters
    ----------
    labels : DataFrame
        item_id, reviewer_id, system_x, system_y, preference, is_adjudicated; ``note``, ``score_x``, ``score_y``,
        ``kind`` and ``repeat`` where there are such. Training, repeats and missing preferences are left out.

    Returns
    -------
    DataFrame
        One row an initial label: item_id, system_x, system_y, label (1, 2, ... within the pair), preference, score_x,
        score_y (NaN without), note (empty without). Sorted by item and pair, as text; within a pair by what was said
        (system_x, ``TIE``, system_y; then scores and note), never by who said it. Pairs that have an adjudicated
        label are done, and not here. Empty where nobody disagrees.

    Raises
    ------
    ValueError
        If a column is missing or a reviewer labels one item and pair twice.

    Examples
    --------
    >>> table = pd.DataFrame({"item_id": list("aabb"), "reviewer_id": ["s", "r"] * 2, "system_x": "A", "system_y": "B"})
    >>> table = table.assign(preference=["B", "A", "A", "A"], is_adjudicated=False, note=["why not", "", "", ""])
    >>> to_adjudicate(table)[["item_id", "label", "preference", "note"]].values.tolist()
    [['a', 1, 'A', ''], ['a', 2, 'B', 'why not']]
    """
    initial = _initial(labels)
    twice = initial.duplicated([*PAIR, "reviewer_id"]).to_numpy()
    if twice.any():
        where = initial[twice].iloc[0]
        raise ValueError(
            f"labels: {int(twice.sum())} of {len(initial)} initial labels repeat an item and reviewer; "
            f"first item {where['item_id']}, reviewer {where['reviewer_id']}"
        )
    adjudicated = labels[labels["is_adjudicated"].to_numpy(dtype=bool)]
    done = pd.MultiIndex.from_frame(initial[PAIR]).isin(pd.MultiIndex.from_frame(adjudicated[PAIR]))
    differ = initial.groupby(PAIR)["preference"].transform("nunique").gt(1).to_numpy(dtype=bool)
    chosen = initial[differ & ~done].copy()
    for name, empty in (("score_x", np.nan), ("score_y", np.nan), ("note", "")):
        chosen[name] = chosen[name].fillna(empty) if name in chosen else empty
    side = np.select([chosen["preference"] == chosen["system_x"], chosen["preference"] == TIE], [0, 1], default=2)
    order = [*PAIR, "side", "score_x", "score_y", "note"]
    chosen = chosen.assign(side=side).sort_values(order, kind="stable").reset_index(drop=True)
    chosen["label"] = chosen.groupby(PAIR).cumcount() + 1
    return chosen[TO_ADJUDICATE]


def _initial(labels: pd.DataFrame) -> pd.DataFrame:
    """The initial labels that count: no training, no repeat, nothing that could not be judged."""
    check_columns(labels, [*PAIR, "reviewer_id", "preference", "is_adjudicated"], "labels")
    counts = labels["preference"].notna() & ~labels["is_adjudicated"].astype(bool)
    if "kind" in labels:
        counts &= labels["kind"] == "label"
    if "repeat" in labels:
        counts &= labels["repeat"] == 1
    return labels[counts].reset_index(drop=True)
