"""The key to the training items: what was expected of each, and why. A CSV file that a person writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from judgelab.errors import DataError
from judgelab.project import resolve, shown
from judgelab.study.items import Item, Pair
from judgelab.study.protocol import TIE, Study
from judgelab.study.tables import read_csv

__all__ = ["Expected", "TrainingKey", "read_training_key"]

COLUMNS = ("item_id", "preference", "explanation")
SYSTEMS = ("system_x", "system_y")
SHOWN = 5


class Expected(NamedTuple):
    """The expected preference (a system or ``TIE``) of one training task, and why; the explanation may be empty."""

    preference: str
    explanation: str


TrainingKey = Mapping[tuple[str, Pair], Expected]


def read_training_key(study: Study, items: Sequence[Item]) -> TrainingKey:
    """Read ``human_review.labelling.training_key``.

    Its columns are item_id, preference, explanation and, in a study of more than two systems, system_x and system_y,
    in either order. Other columns are ignored.

    Parameters
    ----------
    study : Study
        The protocol.
    items : sequence of Item
        Items of both splits.

    Returns
    -------
    mapping
        What is expected, by item and pair of systems (in the protocol's order). Empty where the protocol names no key.

    Raises
    ------
    DataError
        If the file cannot be read, a column is missing, or a line is wrong: its item is none of the development split
        (only those are trained on), its systems are no pair of the study, its preference is not allowed for the pair,
        or it stands there twice. How many lines are wrong and the first five of them are told.
    """
    labelling = study.human_review.labelling
    if labelling is None or labelling.training_key is None:
        return {}
    path = resolve(labelling.training_key)
    file = read_csv(path)
    long = len(study.systems) > 2 or any(name in file.columns for name in SYSTEMS)
    needed = (*COLUMNS, *(SYSTEMS if long else ()))
    missing = [name for name in needed if name not in file.columns]
    if missing:
        raise DataError(
            f"{shown(path)}: {len(missing)} of {len(needed)} needed columns are missing: {', '.join(missing)}; "
            f"the file has {', '.join(file.columns)}"
        )
    splits = {item.item_id: item.split for item in items}
    key: dict[tuple[str, Pair], Expected] = {}
    lines: dict[tuple[str, Pair], int] = {}
    problems: list[str] = []
    for line, row in file.rows:
        try:
            place = (row["item_id"], _pair(row, study, long=long))
            _check_item(row["item_id"], splits)
            _check_preference(row["preference"], place[1], study)
            if place in lines:
                raise ValueError(f"item {place[0]!r} with this pair stands in line {lines[place]} already")
        except ValueError as error:
            problems.append(f"line {line}: {error}")
            continue
        lines[place] = line
        key[place] = Expected(row["preference"], row["explanation"])
    if problems:
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise DataError(
            f"{shown(path)}: {len(problems)} of {len(file.rows)} lines cannot be used: "
            f"{'; '.join(problems[:SHOWN])}{more}"
        )
    return key


def _pair(row: Mapping[str, str], study: Study, *, long: bool) -> Pair:
    """The systems of a row in the protocol's order."""
    names = study.system_names
    if not long:
        return names[0], names[1]
    x, y = row["system_x"], row["system_y"]
    for name in (x, y):
        if name not in names:
            raise ValueError(f"{name!r} is no system of this study; allowed are {', '.join(names)}")
    if x == y:
        raise ValueError(f"system {x!r} stands against itself")
    return (x, y) if names.index(x) < names.index(y) else (y, x)


def _check_item(item_id: str, splits: Mapping[str, str]) -> None:
    split = splits.get(item_id)
    if split is None:
        raise ValueError(f"{_brief(item_id)} is no item of this study")
    if split != "development":
        raise ValueError(f"item {_brief(item_id)} is an {split} item; reviewers train on development items only")


def _check_preference(preference: str, pair: Pair, study: Study) -> None:
    allowed = (*pair, TIE) if TIE in study.pairwise_labels else pair
    if preference not in allowed:
        raise ValueError(f"preference is {_brief(preference)}; allowed are {', '.join(allowed)}")


def _brief(value: str) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
