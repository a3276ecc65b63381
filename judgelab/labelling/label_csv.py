"""Labels that stand in a CSV file of the protocol's layout, on their way into the journals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgelab.labelling.annotators import reviewer_names
from judgelab.labelling.intake import Given, Read
from judgelab.labelling.sending import labelling_of
from judgelab.labelling.tasks import Key, Kind, LabelTask, items_to_label, labelling_order
from judgelab.study.labels import read_label_file
from judgelab.study.protocol import TIE
from judgelab.study.run import Run

__all__ = ["read_label_csv"]


def read_label_csv(run: Run, path: Path, renames: Mapping[str, str]) -> Read[Given]:
    """The rows of a file of human labels (either layout), adjudicated ones apart.

    The file holds systems, no sides: the journal gets those on which the reviewer would have seen them. A score of the
    file is one for the whole answer: where the protocol has several criteria it cannot be divided, and is left out
    and noted.

    Raises
    ------
    DataError
        As :func:`judgelab.study.labels.read_label_file`, and if reviewers make no names.
    """
    labelling = labelling_of(run, "importing labels")
    items = run.items()
    file = read_label_file(path, run.study, known=[item.item_id for item in items])
    labelled = {item.item_id for item in items_to_label(run.study, items)}
    inside = file.labels[file.labels["item_id"].isin(labelled)]
    rows: list[dict[Any, Any]] = inside.to_dict("records")
    names = reviewer_names({str(row["reviewer_id"]): () for row in rows}, renames, file.where)
    read = Read[Given](notes=list(file.notes), total=len(file.labels))
    if len(inside) < len(file.labels):
        outside = len(file.labels) - len(inside)
        read.notes.append(f"{file.where}: {outside} labels are of development items, left out")
    orders: dict[str, dict[Key, LabelTask]] = {}
    for name in set(names.values()):
        order = labelling_order(
            *(run.study, items, name), training=labelling.training, repeats_share=labelling.repeats_share
        )
        orders[name] = {task.key: task for task in order}
    single, undivided = list(run.study.direct_scale.weights), 0
    for row in rows:
        where, reviewer, pair = (
            f"line {row['line']}",
            names[str(row["reviewer_id"])],
            (row["system_x"], row["system_y"]),
        )
        if row["repeat"] > 2:
            read.wrong(where, f"repeat {row['repeat']}; in a journal a pair comes twice at most")
            continue
        kind: Kind = "repeat" if row["repeat"] == 2 else "label"
        planned = orders[reviewer]
        further = LabelTask(row["item_id"], pair, pair, kind, len(planned) + len(read.given) + 1)
        task = planned.get(further.key, further)
        choice = "tie" if row["preference"] == TIE else ("left", "right")[task.shown.index(row["preference"])]
        by_system = {name: row[score] for name, score in zip(pair, ("score_x", "score_y"), strict=True)}
        known = {name: value for name, value in by_system.items() if not math.isnan(value)}
        scores = {("left", "right")[task.shown.index(name)]: {single[0]: value} for name, value in known.items()}
        if known and len(single) > 1:
            undivided, scores = undivided + 1, {}
        read.given.append(Given(where, reviewer, task, choice, scores=scores, adjudicated=bool(row["is_adjudicated"])))
    if undivided:
        read.notes.append(
            f"{file.where}: scores of {undivided} labels are of whole answers, and the protocol has {len(single)} "
            "criteria: left out"
        )
    return read
