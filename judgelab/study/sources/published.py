"""Reading published files: their JSON and CSV, refused with file, place and count where they are not as described.

The readers of published data sets stand on these. None repairs a value: what a reader was not told to expect is
an error that names the file, how many of how many entries are wrong, what is allowed, and the first that is wrong.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgelab.errors import DataError
from judgelab.project import shown
from judgelab.study.tables import CsvFile, read_csv, read_lines, read_text

__all__ = [
    "at",
    "folder_of",
    "json_lines",
    "json_list",
    "json_object",
    "number",
    "objects",
    "parsed",
    "refuse",
    "refuse_twice",
    "rows_of",
]

Needed = Mapping[str, type | tuple[type, ...]]  # key -> the type, or types, of its value


def folder_of(folder: Path, *files: str) -> Path:
    """The folder itself, if it has all of ``files``.

    Raises
    ------
    DataError
        If the folder or a file is missing; naming how many of how many files and all that are missing.
    """
    if not folder.is_dir():
        raise DataError(f"{shown(folder)}: no such folder; `judgelab fetch` gets the published data sets")
    missing = [name for name in files if not (folder / name).is_file()]
    if missing:
        raise DataError(
            f"{shown(folder)}: {len(missing)} of {len(files)} files are missing: {', '.join(missing)}; "
            "`judgelab fetch` gets the published data sets"
        )
    return folder


def at(path: Path) -> str:
    """A file's place in messages: below the project as the project has it, elsewhere with its folder's name."""
    name = shown(path)
    return f"{path.resolve().parent.name}/{name}" if name == path.name else name


def refuse(path: Path, wrong: Sequence[tuple[int, Any]], total: int, what: str, *, place: str = "entry") -> None:
    """Raise if anything is ``wrong``: its place (from 1) and its value.

    Raises
    ------
    DataError
        ``<file>: <n> of <total> <what>; first <value> in <place> <number>``.
    """
    if wrong:
        number_, value = wrong[0]
        raise DataError(f"{at(path)}: {len(wrong)} of {total} {what}; first {value!r} in {place} {number_}")


def refuse_twice(path: Path, keys: Iterable[tuple[int, Hashable]], what: str, *, place: str = "entry") -> None:
    """Raise if a key occurs twice: ``keys`` has the place and the key of every entry.

    Raises
    ------
    DataError
        Naming how many entries repeat an earlier one, and the first of them with the place it repeats.
    """
    first: dict[Hashable, int] = {}
    again: list[tuple[int, Hashable]] = []
    total = 0
    for number_, key in keys:
        total += 1
        if first.setdefault(key, number_) != number_:
            again.append((number_, key))
    if again:
        number_, key = again[0]
        raise DataError(
            f"{at(path)}: {len(again)} of {total} {what} are there before; first {key!r} in {place} {number_} and "
            f"in {place} {first[key]}"
        )


def json_list(path: Path, needed: Needed) -> list[dict[str, Any]]:
    """A JSON file that is a list of objects, each with the keys ``needed`` of the given types.

    Raises
    ------
    DataError
        If the file is missing, not UTF-8, not JSON, empty, no list of objects, has NaN, Infinity or one key twice in
        an object, or an object lacks a key or has it of another type (``bool`` is no ``int``).
    """
    values = _json(path)
    if not isinstance(values, list) or not values:
        raise DataError(f"{at(path)}: a list of objects is needed, it is {_kind(values)}")
    return objects(path, values, needed)


def json_object(path: Path, needed: Needed, *, nan: bool = False) -> dict[str, Any]:
    """As :func:`json_list`, for a file that is one object; ``nan``: whether NaN may stand in it."""
    value = _json(path, nan=nan)
    return objects(path, [value], needed)[0]


def json_lines(path: Path, needed: Needed) -> list[dict[str, Any]]:
    """As :func:`json_list`, for a file with one object a line; blank lines are none."""
    values = [parsed(path, text, line=line) for line, text in read_lines(path)]
    return objects(path, values, needed, place="line")


def objects(path: Path, values: Sequence[Any], needed: Needed, *, place: str = "entry") -> list[dict[str, Any]]:
    """``values`` as objects with the keys and types of :func:`json_list`."""
    numbered = list(enumerate(values, start=1))
    refuse(path, [(n, v) for n, v in numbered if not isinstance(v, dict)], len(values), "are no objects", place=place)
    for key, types in needed.items():
        missing = [(n, sorted(value)[:6]) for n, value in numbered if key not in value]
        refuse(path, missing, len(values), f"have no key {key!r}", place=place)
        wrong = [(n, value[key]) for n, value in numbered if not _is(value[key], types)]
        refuse(path, wrong, len(values), f"have a {key!r} that is not {_names(types)}", place=place)
    return list(values)


def parsed(path: Path, text: str, *, line: int | None = None, nan: bool = False) -> Any:
    """The value of a file's JSON text, or of one line of it; ``nan``: whether NaN may stand in it.

    Raises
    ------
    DataError
        If the text is not JSON, has NaN or Infinity, or one key twice in an object; naming the file and the line.
    """
    try:
        return json.loads(text, parse_constant=None if nan else _no_constant, object_pairs_hook=_no_key_twice)
    except (ValueError, RecursionError) as error:
        where = "" if line is None else f" line {line}:"  # only now: to name the place takes longer than to read
        raise DataError(f"{at(path)}:{where} not valid JSON: {error}") from None


def number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return _is(value, (int, float)) and math.isfinite(value)


def rows_of(path: Path, *columns: str) -> CsvFile:
    """A CSV file with exactly these columns, in any order, and at least one row.

    Raises
    ------
    DataError
        As :func:`judgelab.study.tables.read_csv`, and if a column is missing or not known, or there is no row.
    """
    file = read_csv(path)
    missing = [name for name in columns if name not in file.columns]
    extra = [name for name in file.columns if name not in columns]
    if missing or extra:
        wrong = [f"without {', '.join(missing)}"] if missing else []
        wrong += [f"with unknown {', '.join(extra)}"] if extra else []
        raise DataError(f"{at(path)}: columns {' and '.join(wrong)}; needed are {', '.join(columns)}")
    if not file.rows:
        raise DataError(f"{at(path)}: 0 rows below the header")
    return file


def _json(path: Path, *, nan: bool = False) -> Any:
    return parsed(path, read_text(path), nan=nan)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise ValueError(f"one object has {', '.join(map(repr, twice))} more than once")
    return found


def _is(value: Any, types: type | tuple[type, ...]) -> bool:
    allowed = types if isinstance(types, tuple) else (types,)
    return type(value) in allowed or (not isinstance(value, bool) and isinstance(value, types))


def _names(types: type | tuple[type, ...]) -> str:
    words: Mapping[type, str] = {
        str: "text",
        int: "a whole number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    allowed = types if isinstance(types, tuple) else (types,)
    return " or ".join(words.get(one, one.__name__) for one in allowed)


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "an empty list"
    return {dict: "an object", str: "text", type(None): "null", bool: "true or false"}.get(type(value), "a number")
