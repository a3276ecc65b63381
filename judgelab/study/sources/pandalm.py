"""PandaLM: 999 tasks with the answers of two systems, the labels of three people, and two judges' verdicts.

Layout of the publication (Wang et al. 2024, "PandaLM: An Automatic Evaluation Benchmark for LLM Instruction Tuning
Optimization", ICLR; repository WeOpenML/PandaLM): ``testset-v1.json`` with ``idx``, ``cmp_key`` (the two systems),
``annotator1`` to ``annotator3`` (0 is a tie, 1 and 2 the answer that is better), and one file of verdicts a judge,
joined by ``idx``. Every pair was shown in one order only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgelab.study.sources.published import at, folder_of, json_list, refuse, refuse_twice

__all__ = ["PandaLM", "read_pandalm"]

TIE = "TIE"
ITEMS = "testset-v1.json"
REVIEWERS = ("annotator1", "annotator2", "annotator3")
# judge -> its file, the key of its verdicts
JUDGES = {
    "gpt-3.5-turbo": ("gpt-3.5-turbo-testset-v1.json", "gpt_result"),
    "pandalm-7b": ("pandalm-7b-testset-v1.json", "pandalm_result"),
}
# a verdict as it is printed in the files -> the answer it names; one file has 0 where the other has "Tie"
VERDICTS = {"1": 1, "2": 2, "0": 0, "Tie": 0}
UNUSABLE = "garbage"


@dataclass(frozen=True)
class PandaLM:
    """Labels and verdicts of the test set.

    Attributes
    ----------
    labels
        One row a label: item_id, category (the application that the task is for), system_x (whose answer stood
        first), system_y, reviewer_id (``annotator1`` ...), preference (a system's name or TIE).
    verdicts
        One row a verdict: judge, item_id, system_x, system_y, preference (a system's name, TIE, or NaN where the
        reply held none), status (``ok`` or ``unusable``), raw (as it stands in the file).
    """

    labels: pd.DataFrame
    verdicts: pd.DataFrame


def read_pandalm(folder: Path) -> PandaLM:
    """Read the labels of three people and the verdicts of two judges.

    Parameters
    ----------
    folder
        Where ``testset-v1.json``, ``gpt-3.5-turbo-testset-v1.json`` and ``pandalm-7b-testset-v1.json`` are.

    Returns
    -------
    PandaLM
        In the order of the files; preferences are names of systems, ``item_id`` is ``idx`` with three digits.

    Raises
    ------
    DataError
        If a file is missing or of another form, an ``idx`` occurs twice, ``cmp_key`` does not name two systems, a
        label is not 0, 1 or 2, a verdict is not 0, 1, 2, Tie or garbage, or a judge's items are not those of the
        test set.
    """
    folder_of(folder, ITEMS, *(name for name, _ in JUDGES.values()))
    entries = _entries(folder / ITEMS)
    labels = [
        (_item_id(entry), entry["motivation_app"], *_systems(entry), reviewer, _preference(entry, entry[reviewer]))
        for entry in entries
        for reviewer in REVIEWERS
    ]
    verdicts = [row for judge in JUDGES for row in _verdicts(folder, judge, entries)]
    pair = ["system_x", "system_y"]
    return PandaLM(
        pd.DataFrame(labels, columns=["item_id", "category", *pair, "reviewer_id", "preference"]),
        pd.DataFrame(verdicts, columns=["judge", "item_id", *pair, "preference", "status", "raw"]),
    )


def _entries(path: Path) -> list[dict[str, Any]]:
    """The entries of the test set, checked."""
    entries = json_list(path, {"idx": int, "cmp_key": str, "motivation_app": str, **dict.fromkeys(REVIEWERS, int)})
    numbered = list(enumerate(entries, start=1))
    refuse_twice(path, ((n, entry["idx"]) for n, entry in numbered), "values of idx")
    keys = [(n, entry["cmp_key"]) for n, entry in numbered]
    wrong = [
        (n, key) for n, key in keys if len(set(key.split("_"))) != 2 or key.count("_") != 1 or "" in key.split("_")
    ]
    refuse(path, wrong, len(entries), "have a cmp_key that does not name two systems as x_y")
    for reviewer in REVIEWERS:
        off = [(n, entry[reviewer]) for n, entry in numbered if entry[reviewer] not in (0, 1, 2)]
        refuse(path, off, len(entries), f"have a label of {reviewer} outside 0, 1, 2")
    return entries


def _verdicts(folder: Path, judge: str, entries: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """A judge's verdicts in the order of the test set."""
    name, key = JUDGES[judge]
    path = folder / name
    results = json_list(path, {"idx": int, key: (int, str)})
    numbered = list(enumerate(results, start=1))
    refuse_twice(path, ((n, result["idx"]) for n, result in numbered), "values of idx")
    known = {entry["idx"] for entry in entries}
    strange = [(n, result["idx"]) for n, result in numbered if result["idx"] not in known]
    refuse(path, strange, len(results), f"have an idx that {ITEMS} does not have")
    by_item = {result["idx"]: str(result[key]) for result in results}
    silent = [(n, entry["idx"]) for n, entry in enumerate(entries, start=1) if entry["idx"] not in by_item]
    refuse(folder / ITEMS, silent, len(entries), f"have no verdict in {at(path)}")
    off = [(n, result[key]) for n, result in numbered if str(result[key]) not in (*VERDICTS, UNUSABLE)]
    refuse(path, off, len(results), f"have a {key} outside {', '.join((*VERDICTS, UNUSABLE))}")
    rows = []
    for entry in entries:
        raw = by_item[entry["idx"]]
        usable = raw in VERDICTS
        preference = _preference(entry, VERDICTS[raw]) if usable else np.nan
        status = "ok" if usable else "unusable"
        rows.append((judge, _item_id(entry), *_systems(entry), preference, status, raw))
    return rows


def _item_id(entry: Mapping[str, Any]) -> str:
    return f"{entry['idx']:03d}"


def _systems(entry: Mapping[str, Any]) -> tuple[str, str]:
    first, second = entry["cmp_key"].split("_")
    return first, second


def _preference(entry: Mapping[str, Any], answer: int) -> str:
    """The system whose answer was named, or TIE."""
    return (TIE, *_systems(entry))[answer]
