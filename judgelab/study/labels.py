"""The file of human labels, read strictly: every problem in it is found before any is reported."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.errors import DataError
from judgelab.project import shown
from judgelab.study.protocol import TIE, HumanLabels, Study
from judgelab.study.tables import CsvFile, read_csv

__all__ = ["COLUMNS", "LabelFile", "read_label_file"]

COLUMNS = [
    *("item_id", "reviewer_id", "system_x", "system_y", "preference", "score_x", "score_y", "is_adjudicated"),
]
TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
NAN = float("nan")


@dataclass(frozen=True)
class LabelFile:
    """Labels with ``line`` and ``repeat`` beside :data:`COLUMNS`, and what was ignored.

    ``repeat`` is 1 for the label that counts, 2, 3, ... where the reviewer labelled the same again.
    """

    labels: pd.DataFrame
    notes: tuple[str, ...]
    where: str


@dataclass
class _Problems:
    """Offenders by kind of problem, in the order of the file."""

    found: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, kind: str, value: object, line: int) -> None:
        self.found[kind].append(f"{_short(value)} in line {line}")

    def raise_if_any(self, where: str, total: int) -> None:
        told = [
            f"{len(offenders)} of {total} rows {kind}; first {offenders[0]}" for kind, offenders in self.found.items()
        ]
        if len(told) == 1:
            raise DataError(f"{where}: {told[0]}")
        if told:
            raise DataError("\n  ".join([f"{where}: {len(told)} kinds of problem", *told]))


@dataclass(frozen=True)
class _Layout:
    """Which column holds what; ``score_x`` is empty in a file without scores."""

    item: str
    score_x: str
    score_y: str
    long: bool
    used: tuple[str, ...]


def read_label_file(
    path: Path, study: Study, *, known: Collection[str] | None = None, unreadable: int = 0
) -> LabelFile:
    """Read a file of human labels in either layout (see :func:`judgelab.study.humans.read_labels`).

    Parameters
    ----------
    path
        The file.
    study
        The protocol, for its systems and scores.
    known
        Every item id that a label may have; None: any.
    unreadable
        How many items have an id that cannot be read: so many strange ids are let pass.

    Raises
    ------
    DataError
        If a column is missing or any row is wrong.
    """
    where = shown(path)
    file = read_csv(path)
    layout = _layout(file.columns, study, where)
    source = study.human_labels or HumanLabels(path=str(path))
    problems = _Problems()
    rows = [_row(line, row, layout, study, source, problems) for line, row in file.rows]
    _repeats(rows, problems)
    strange = [] if known is None else [row for row in rows if row["item_id"] not in known]
    if len({row["item_id"] for row in strange}) > unreadable:
        for row in strange:
            problems.add("label an item that is not in the items", row["item_id"], row["line"])
    problems.raise_if_any(where, len(rows))
    if not rows:
        raise DataError(f"{where}: there is a header, but no label")
    return LabelFile(_frame(rows), _notes(file, layout, where), where)


def _layout(columns: Sequence[str], study: Study, where: str) -> _Layout:
    """Tell the layout by its columns, or say which are missing."""
    item = study.item_id_field if study.item_id_field in columns else "item_id"
    long = "system_x" in columns or "system_y" in columns or len(study.systems) > 2
    x, y = (name.lower() for name in study.system_names[:2])
    scores = ("score_x", "score_y") if long else (f"{x}_score", f"{y}_score")
    needed = (item, "reviewer_id", *(("system_x", "system_y") if long else ()), "preference")
    needed += () if long else ("is_adjudicated",)
    given = [name for name in scores if name in columns]
    needed += scores if given else ()
    missing = [name for name in needed if name not in columns]
    if missing:
        raise DataError(
            f"{where}: {len(missing)} of {len(needed)} needed columns are missing: {', '.join(missing)}; "
            f"the file has {', '.join(columns)}"
        )
    used = (*needed, "is_adjudicated", "provenance", "repeat")
    return _Layout(item, *(scores if given else ("", "")), long=long, used=used)


def _row(
    line: int, row: dict[str, str], layout: _Layout, study: Study, source: HumanLabels, problems: _Problems
) -> dict[str, Any]:
    """One label with its pair in protocol order; what is wrong with it goes to ``problems``."""
    names = study.system_names
    given = (row["system_x"], row["system_y"]) if layout.long else (names[0], names[1])
    for name in (layout.item, "reviewer_id"):
        if not row[name].strip():
            problems.add(f"have no {name}", row[name], line)
    x, y = _pair(given, names, line, problems)
    score = _score_reader(source, line, problems)
    scores = [score(row[name]) if name else NAN for name in (layout.score_x, layout.score_y)]
    _check_provenance(row, source, line, problems)
    return {
        "line": line,
        "item_id": row[layout.item],
        "reviewer_id": row["reviewer_id"],
        "system_x": x,
        "system_y": y,
        "preference": _preference(row["preference"], given, names, line, problems),
        "score_x": scores[0] if (x, y) == given else scores[1],
        "score_y": scores[1] if (x, y) == given else scores[0],
        "is_adjudicated": _truth(row, line, problems),
        "repeat": _repeat(row, line, problems),
    }


def _pair(given: tuple[str, str], names: Sequence[str], line: int, problems: _Problems) -> tuple[str, str]:
    unknown = [name for name in given if name not in names]
    if unknown:
        problems.add(f"name a system outside {', '.join(names)}", unknown[0], line)
    elif given[0] == given[1]:
        problems.add("compare a system with itself", given[0], line)
    elif names.index(given[0]) > names.index(given[1]):
        return given[1], given[0]
    return given


def _preference(value: str, given: tuple[str, str], names: Sequence[str], line: int, problems: _Problems) -> str:
    if value not in (*names, TIE):
        problems.add(f"have a preference outside {', '.join((*names, TIE))}", value, line)
    elif value not in (*given, TIE):
        problems.add("prefer a system that is not of the row's pair", value, line)
    return value


def _score_reader(source: HumanLabels, line: int, problems: _Problems) -> Callable[[str], float]:
    low, high = source.score_minimum, source.score_maximum

    def score(text: str) -> float:
        if not text.strip():
            return NAN
        try:
            value = float(text)
        except ValueError:
            problems.add("have a score that is not a number", text, line)
            return NAN
        if math.isnan(value):
            problems.add("have a score that is not a number", text, line)
        elif not low <= value <= high:
            problems.add(f"have a score outside {low:g} to {high:g}", text, line)
        return value

    return score


def _truth(row: dict[str, str], line: int, problems: _Problems) -> bool:
    value = row.get("is_adjudicated", "false")
    if value not in TRUTH:
        problems.add("have an is_adjudicated other than true and false", value, line)
    return TRUTH.get(value, False)


def _repeat(row: dict[str, str], line: int, problems: _Problems) -> int:
    """1 for the first label; 2, 3, ... where the same reviewer labels the same again, blind to the first."""
    text = row.get("repeat", "1").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) >= 1):
        problems.add("have a repeat that is not a whole number from 1", text, line)
        return 1
    if int(text) > 1 and TRUTH.get(row.get("is_adjudicated", "false"), False):
        problems.add("are adjudicated and a repeat", text, line)
    return int(text)


def _check_provenance(row: dict[str, str], source: HumanLabels, line: int, problems: _Problems) -> None:
    value = row.get("provenance", source.provenance)
    if value != source.provenance:
        kind = f"have another provenance than the protocol's human_labels.provenance {source.provenance!r}"
        problems.add(kind, value, line)


def _repeats(rows: Sequence[dict[str, Any]], problems: _Problems) -> None:
    """One label a reviewer, item, pair and repeat, the first one among them; one adjudicated label an item and pair."""
    seen: set[tuple[Any, ...]] = set()
    adjudicated: set[tuple[Any, ...]] = set()
    for row in rows:
        pair = (row["item_id"], row["system_x"], row["system_y"])
        key = (*pair, row["reviewer_id"], row["is_adjudicated"], row["repeat"])
        if key in seen:
            problems.add("repeat a label of the same item, pair and reviewer", row["item_id"], row["line"])
        elif row["is_adjudicated"] and pair in adjudicated:
            problems.add("are a second adjudicated label of an item and pair", row["item_id"], row["line"])
        seen.add(key)
        if row["is_adjudicated"]:
            adjudicated.add(pair)
    for row in rows:
        first = (row["item_id"], row["system_x"], row["system_y"], row["reviewer_id"], row["is_adjudicated"], 1)
        if row["repeat"] > 1 and first not in seen:
            problems.add("repeat a label that has no repeat 1", row["item_id"], row["line"])


def _frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["line", *COLUMNS, "repeat"])
    names = ("item_id", "reviewer_id", "system_x", "system_y", "preference")
    types: dict[str, Any] = dict.fromkeys(names, "str")
    return frame.astype(types | {"score_x": "float64", "score_y": "float64", "is_adjudicated": "bool"})


def _notes(file: CsvFile, layout: _Layout, where: str) -> tuple[str, ...]:
    unused = [name for name in file.columns if name not in layout.used]
    return (f"{where}: columns that are not used: {', '.join(unused)}",) if unused else ()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
