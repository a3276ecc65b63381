"""The items: what is judged. Every line of the file becomes an item or an exclusion with its reason."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.errors import DataError
from judgelab.project import resolve, shown
from judgelab.study.lines import Accepted, Excluded, read_entries
from judgelab.study.protocol import Study
from judgelab.study.randomisation import first_system, sample, split_items

__all__ = [
    "Item",
    "ItemSet",
    "comparisons",
    "item_from_record",
    "items_from_records",
    "items_to_records",
    "pairs",
    "presented",
    "read_items",
]

COMPARISON_COLUMNS = ["item_id", "category", "split", "system_x", "system_y", "first", "words_x", "words_y"]
Pair = tuple[str, str]


@dataclass(frozen=True)
class Item:
    """One task with its context and its answers: the unit that is sampled.

    ``answers`` and ``words`` (counts of whitespace-separated words) are in the protocol's order of systems;
    ``first`` names the system that the original pass shows first, by pair of systems in that order;
    ``sha256`` is over the canonical JSON of id, task, context and answers, as they are judged (after masks).
    """

    item_id: str
    task: str
    reference_context: str
    category: str
    answers: dict[str, str]
    sha256: str
    split: str = "evaluation"
    first: dict[Pair, str] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ItemSet:
    """The items of a study, and all that was left out.

    ``excluded`` has the columns line, item_id (NaN where it cannot be read), reason, detail. ``not_sampled``
    are the ids of usable items that ``items.limit`` left out. ``masked`` counts the replacements of each mask.
    """

    items: tuple[Item, ...]
    excluded: pd.DataFrame
    n_lines: int
    not_sampled: tuple[str, ...] = ()
    masked: dict[str, int] = field(default_factory=dict)


def read_items(study: Study, path: Path | None = None) -> ItemSet:
    """Read, check, sample, split and present the items of a study.

    Parameters
    ----------
    study
        The protocol.
    path
        Another file than the protocol's: the one in which stage 00 has put the answers that it made.

    Raises
    ------
    DataError
        If the file cannot be read; if lines are unusable and the protocol says refuse, or more than
        ``items.max_excluded_share`` of them are; if no item is left.
    """
    path = resolve(study.items.path) if path is None else path
    accepted, excluded, n_lines = read_entries(path, study)
    _enough(accepted, excluded, n_lines, study, path)
    kept = set(sample(study.random_seed, [entry.item_id for entry in accepted], study.items.limit))
    masked: Counter[str] = Counter()
    for entry in accepted:
        if entry.item_id in kept:
            masked.update(entry.masked)
    return ItemSet(
        items=presented(study, [_item(entry) for entry in accepted if entry.item_id in kept]),
        excluded=_excluded_frame(excluded),
        n_lines=n_lines,
        not_sampled=tuple(entry.item_id for entry in accepted if entry.item_id not in kept),
        masked=dict(masked),
    )


def pairs(systems: Iterable[str]) -> list[Pair]:
    """Every pair of systems, in the protocol's order."""
    return list(itertools.combinations(systems, 2))


def comparisons(items: Sequence[Item], study: Study) -> pd.DataFrame:
    """One row for each item and pair of systems.

    Returns
    -------
    DataFrame
        item_id, category, split, system_x, system_y (protocol order), first (the system shown first in the
        original pass), words_x, words_y.
    """
    rows = [
        (item.item_id, item.category, item.split, x, y, item.first[x, y], item.words[x], item.words[y])
        for item in items
        for x, y in pairs(study.system_names)
    ]
    return pd.DataFrame(rows, columns=COMPARISON_COLUMNS)


def items_to_records(items: Iterable[Item]) -> list[dict[str, Any]]:
    """Items as JSON objects, in the form in which a run freezes them."""
    return [
        {
            "item_id": item.item_id,
            "category": item.category,
            "split": item.split,
            "sha256": item.sha256,
            "task": item.task,
            "reference_context": item.reference_context,
            "answers": item.answers,
            "words": item.words,
            "first": [{"system_x": x, "system_y": y, "first": first} for (x, y), first in item.first.items()],
            "metadata": item.metadata,
        }
        for item in items
    ]


def items_from_records(records: Iterable[Mapping[str, Any]]) -> tuple[Item, ...]:
    """The reverse of :func:`items_to_records`."""
    return tuple(item_from_record(record) for record in records)


def item_from_record(record: Mapping[str, Any]) -> Item:
    """One item as a run has frozen it."""
    return Item(**{**record, "first": _first(record["first"])})


def _first(entries: Iterable[Mapping[str, str]]) -> dict[Pair, str]:
    return {(entry["system_x"], entry["system_y"]): entry["first"] for entry in entries}


def _item(entry: Accepted) -> Item:
    hashed: dict[str, Any] = {
        "item_id": entry.item_id,
        "task": entry.task,
        "reference_context": entry.reference_context,
        "answers": entry.answers,
    }
    canonical = json.dumps(hashed, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return Item(
        **hashed,
        category=entry.category,
        sha256=hashlib.sha256(canonical.encode()).hexdigest(),
        metadata=entry.metadata,
    )


def presented(study: Study, items: Sequence[Item]) -> tuple[Item, ...]:
    """The items with their split, the first system of each pair, and as many words as their answers have."""
    seed, both = study.random_seed, pairs(study.system_names)
    splits = split_items(seed, {item.item_id: item.category for item in items}, study.split.development_share)
    return tuple(
        replace(
            item,
            split=splits[item.item_id],
            first={pair: first_system(seed, item.item_id, *pair) for pair in both},
            words={system: len(answer.split()) for system, answer in item.answers.items()},
        )
        for item in items
    )


def _enough(accepted: Sequence[Accepted], excluded: Sequence[Excluded], n_lines: int, study: Study, path: Path) -> None:
    """Stop where the protocol says that too many lines are unusable."""
    source, where = study.items, shown(path)
    share = len(excluded) / n_lines
    told = f"{where}: {len(excluded)} of {n_lines} lines cannot be used ({_by_reason(excluded)})"
    if excluded and source.on_invalid == "refuse":
        raise DataError(f"{told}; items.on_invalid is refuse: mend them, or set it to exclude")
    if share > source.max_excluded_share:
        raise DataError(f"{told}; items.max_excluded_share allows {source.max_excluded_share:.0%}")
    if not accepted:
        raise DataError(f"{told}; no item is left")


def _by_reason(excluded: Sequence[Excluded]) -> str:
    counts = Counter(row.reason for row in excluded)
    first = {row.reason: row for row in reversed(excluded)}
    return "; ".join(
        f"{reason}: {count}, first in line {first[reason].line}: {first[reason].detail}"
        for reason, count in counts.most_common()
    )


def _excluded_frame(excluded: Sequence[Excluded]) -> pd.DataFrame:
    rows = [(row.line, row.item_id, row.reason, row.detail) for row in excluded]
    frame = pd.DataFrame(rows, columns=["line", "item_id", "reason", "detail"])
    return frame.astype({"line": "int64", "item_id": "str", "reason": "str", "detail": "str"})
