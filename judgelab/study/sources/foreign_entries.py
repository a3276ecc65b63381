"""Entries of foreign files: the objects of JSON lines, of a list, or the rows of CSV, and what may stand in them.

Names become names in a study, and studies are published: a name with a control character, or with what looks like a
key, is refused, and the key is not shown.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgelab.errors import DataError
from judgelab.project import shown
from judgelab.study.secrets import looks_like_a_key
from judgelab.study.sources.published import at, parsed
from judgelab.study.tables import read_csv, read_text

__all__ = ["Entry", "entries_of", "files_of", "short"]

_WORD = re.compile(r"[^\s\"'`=:,;()<>\[\]{}|]+")


@dataclass(frozen=True)
class Entry:
    """One object of a file: its values, the file, and its number there (from 1; the line's where it is one)."""

    values: Mapping[str, Any]
    path: Path
    number: int

    def text(self, *keys: str, needed: bool = False) -> str:
        """The first of ``keys`` that has a value, which is text or a whole number; ``""`` where none has.

        Raises
        ------
        ValueError
            If the value is neither, has a control character or what looks like a key, or is ``needed`` and missing.
        """
        key = next((key for key in keys if self.values.get(key) not in (None, "")), None)
        if key is None:
            if needed:
                raise ValueError(f"no {' or '.join(keys)}")
            return ""
        return _plain(self.values[key], key)

    def systems(self, key_x: str, key_y: str) -> tuple[str, str]:
        """The names of the two systems.

        Raises
        ------
        ValueError
            If one is missing, is no text, or is no name that a match may have.
        """
        for key in (key_x, key_y):
            problem = _name_problem(self.values.get(key))
            if problem:
                raise ValueError(f"{key} {problem}")
        return self.values[key_x], self.values[key_y]

    def judge(self, *keys: str) -> tuple[str, str]:
        """The judge and its prompt, of a text (without a prompt), or of a list ``[judge, prompt]``; ``""`` if missing.

        Raises
        ------
        ValueError
            As :meth:`text`.
        """
        key = next((key for key in keys if self.values.get(key) not in (None, "", [])), None)
        if key is None:
            return "", ""
        value = self.values[key]
        names = [_plain(one, key) for one in (value if isinstance(value, list) else [value])]
        return names[0], " ".join(names[1:])


def _name_problem(value: Any) -> str:
    if value is None or value == "":
        return "is missing"
    if not isinstance(value, str):
        return f"is {short(value)}; a name is text"
    if value.casefold() in ("tie", "draw"):
        return f"is {value!r}; no system can be called so"
    if value != value.strip():
        return f"is {short(value)}; no blanks may stand around a name"
    return _text_problem(value)


def _plain(value: Any, key: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{key} is {short(value)}; allowed are text and whole numbers")
    text = str(value)
    problem = _text_problem(text)
    if problem:
        raise ValueError(f"{key} {problem}")
    return text


def _text_problem(text: str) -> str:
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
        return f"is {short(text)}; it must be one line without control characters"
    if any(looks_like_a_key(word) for word in _WORD.findall(text)):
        return "has what looks like a key, which no study must hold (not shown)"
    return ""


def files_of(path: Path, patterns: Sequence[str]) -> list[Path]:
    """A file itself, or the files of a folder that fit the first of ``patterns`` that any fits; hidden files are none.

    Raises
    ------
    DataError
        If there is no such file or folder, or no file that fits.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"{shown(path)}: no such file or folder")
    for pattern in patterns:
        found = sorted(one for one in path.glob(pattern) if one.is_file() and not one.name.startswith("."))
        if found:
            return found
    raise DataError(f"{shown(path)}: no file in it that fits {' or '.join(patterns)}")


def entries_of(path: Path) -> Iterator[tuple[str, int, dict[str, Any] | str]]:
    """What an entry is called, its number, and the object (values of CSV are text), or why it is none.

    Raises
    ------
    DataError
        If the file cannot be read, or is no list of objects where it begins as one, or no CSV.
    """
    if path.suffix.lower() == ".csv":
        for line, row in read_csv(path).rows:
            yield "line", line, dict(row)
        return
    text = read_text(path)
    if text.lstrip().startswith("["):
        values = [("entry", number, value) for number, value in enumerate(parsed(path, text, nan=True), start=1)]
    else:
        lines = enumerate(text.split("\n"), start=1)
        values = [("line", number, _line(path, line)) for number, line in lines if line.strip()]
    for place, number, value in values:
        yield place, number, value if isinstance(value, dict | str) else "is no object"


def _line(path: Path, line: str) -> Any:
    try:
        value = parsed(path, line, nan=True)
    except DataError as error:
        return str(error).removeprefix(f"{at(path)}: ")
    return value if isinstance(value, dict) else None


def short(value: Any) -> str:
    """A value as a message shows it: at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
