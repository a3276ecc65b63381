"""Preferences of foreign files as a study of matches: entries read and refused, matches and parameters written once.

A file has one object a line, or is one list of objects. What a format's importer leaves out is counted and told. An
entry that is not as its format describes is an error: how many, and the first five; then nothing is written.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from judgelab.errors import DataError
from judgelab.project import outputs_folder, project_root, shown
from judgelab.study.protocol import TIE, check_run_name
from judgelab.study.secrets import looks_like_a_key
from judgelab.study.sources.published import at, parsed
from judgelab.study.tables import csv_text, read_text, write_text

__all__ = [
    "ITSELF",
    "MATCHES",
    "Entry",
    "Gathered",
    "gather",
    "import_matches",
    "word_count",
    "write_match_study",
]

MATCHES = (
    *("judge", "item_id", "category", "pass", "repeat", "system_x", "system_y", "first", "preference", "reason"),
    *("words_x", "words_y"),
)
ITSELF = "a system compared with itself"
COPY = "the same entry again, to the time"
SHOWN = 5  # the bad entries that an error shows
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


@dataclass
class Gathered:
    """What the entries of all ``files`` became: matches, and how many entries were ``left_out`` for which reason.

    ``rows`` has a dict a match, in the order of the files. Of :data:`MATCHES`, what is not known is None or not there.
    """

    rows: list[dict[str, Any]]
    left_out: Counter[str]
    files: list[Path]

    def table(self) -> pd.DataFrame:
        """The matches with the columns :data:`MATCHES`; ``repeat`` numbers those of one key, as the files have them."""
        table = pd.DataFrame([{name: row.get(name) for name in MATCHES} for row in self.rows], dtype=object)
        seen, repeats = Counter[tuple[Any, ...]](), []
        for row in self.rows:
            pair = frozenset((row["system_x"], row["system_y"]))
            key = (row["judge"], row["item_id"], row.get("pass"), row["first"], pair)
            repeats.append(seen[key])
            seen[key] += 1
        table["repeat"] = repeats
        for name in ("words_x", "words_y"):
            table[name] = pd.to_numeric(table[name]).astype("Int64")  # as whole numbers in the file, gaps empty
        return table


def gather(path: Path, patterns: Sequence[str], matches_of: Callable[[Entry], list[dict[str, Any]] | str]) -> Gathered:
    """Read a file, or the files of a folder that fit ``patterns``: those of the first pattern that any file fits.

    Parameters
    ----------
    path, patterns
        The file or folder, and patterns of :meth:`pathlib.Path.glob`. Hidden files are none.
    matches_of
        The matches of one entry, or why it is left out. A ValueError is what is wrong with the entry.

    Raises
    ------
    DataError
        If there is no file, one is not UTF-8 or empty, any entry is wrong (how many, the first five, nothing is
        taken), or no match is left. A copy of an entry with a ``tstamp`` is left out, for it is no second judgment.
    """
    gathered = Gathered([], Counter(), _files(path, patterns))
    problems: list[str] = []
    total, seen = 0, set[bytes]()
    for file in gathered.files:
        for place, number, found in _entries(file):
            total += 1
            if not isinstance(found, dict):
                problems.append(f"{at(file)} {place} {number}: {found}")
                continue
            if "tstamp" in found:
                copy = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).digest()
                if copy in seen:
                    gathered.left_out[COPY] += 1
                    continue
                seen.add(copy)
            try:
                matches = matches_of(Entry(found, file, number))
            except ValueError as error:
                problems.append(f"{at(file)} {place} {number}: {error}")
                continue
            if isinstance(matches, str):
                gathered.left_out[matches] += 1
            else:
                gathered.rows += matches
    if problems:
        more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
        head = f"{at(path)}: {len(problems)} of {total} entries are not as the format has them; nothing was written"
        raise DataError("\n  ".join([head, *problems[:SHOWN], *more]))
    if not gathered.rows:
        why = "; ".join(f"left out: {count} x {reason}" for reason, count in gathered.left_out.items())
        raise DataError(f"{at(path)}: 0 matches in {_count(total, 'entry', 'entries')}{'; ' if why else ''}{why}")
    return gathered


def import_matches(
    gathered: Gathered, run: str, *, kind: str, title: str, missing: str, told: Sequence[str] = ()
) -> tuple[Path, list[str]]:
    """Write what was gathered as a study of matches, and say what it is.

    Parameters
    ----------
    kind, title
        The format's name for `judgelab import`, and what its matches are called.
    missing, told
        See :func:`write_match_study`; more notes of the format, after what was read and left out.

    Returns the path of the parameters, and notes: what was read, what was left out and why, whether both orders are
    there, what was written, and that only stage 09 can run.
    """
    table = gathered.table()
    systems = len({*table["system_x"], *table["system_y"]})
    study = {
        "study_id": run,
        "title": f"{title}: {_count(systems, 'system')}",
        "question": f"Which of {systems} systems is preferred?",
        "matches": f"outputs/{run}/source/matches.csv",
        "sampling_rule": "as in the files that were imported",
        "random_seed": 20261130,
    }
    head = f"# Made by `judgelab import {kind} PATH --run {run}`, which writes outputs/{run}/source/matches.csv.\n"
    notes = [_read_note(table, systems, gathered.files), *_preference_notes(table)]
    notes += [f"left out: {count} x {reason}" for reason, count in gathered.left_out.items()] or ["left out: nothing"]
    repeats = int((table["repeat"] > 0).sum())
    if repeats:
        notes.append(
            f"repeats: {repeats} of {len(table)} matches are of a judge, item, pair and order that were there before"
        )
    return write_match_study(
        table, run, study=study, head=head, notes=[*notes, _orders_note(table), *told], missing=missing
    )


def write_match_study(
    matches: pd.DataFrame, run: str, *, study: Mapping[str, Any], head: str, notes: Sequence[str], missing: str
) -> tuple[Path, list[str]]:
    """Write ``outputs/<run>/source/matches.csv`` and, if it is missing, ``params/<run>.yaml``.

    Parameters
    ----------
    matches
        A row a match, with columns that :func:`judgelab.judging.match_files.read_matches` reads.
    study, head
        The protocol (:class:`judgelab.study.match_study.MatchStudy`), and the comment above it.
    notes, missing
        Notes that come first; why only stage 09 can run, as ``... are not in these files``.

    Returns the path of the parameters, and all notes. Raises ProtocolError if the run's name is none, RunError if a
    file cannot be written.
    """
    check_run_name(run, "--run")
    source = outputs_folder() / run / "source"
    write_text(csv_text(matches), source / "matches.csv")
    told = [*notes, f"written: matches.csv in {shown(source)}", f"{missing}: only stage 09, the ranking, can run"]
    params = project_root() / "params" / f"{run}.yaml"
    if params.is_file():
        return params, [*told, f"{shown(params)} is there already and was left as it is"]
    document = yaml.safe_dump({"run": run, "study": dict(study)}, sort_keys=False, allow_unicode=True, width=110)
    write_text(f"{head}{document}", params)
    return params, [*told, f"written: {shown(params)}"]


def word_count(answer: Any) -> int | None:
    """How many words, between blanks, an answer has; None if it is no text."""
    return len(answer.split()) if isinstance(answer, str) else None


def _name_problem(value: Any) -> str:
    if value is None or value == "":
        return "is missing"
    if not isinstance(value, str):
        return f"is {_short(value)}; a name is text"
    if value.casefold() in ("tie", "draw"):
        return f"is {value!r}; no system can be called so"
    if value != value.strip():
        return f"is {_short(value)}; no blanks may stand around a name"
    return _text_problem(value)


def _plain(value: Any, key: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{key} is {_short(value)}; allowed are text and whole numbers")
    text = str(value)
    problem = _text_problem(text)
    if problem:
        raise ValueError(f"{key} {problem}")
    return text


def _text_problem(text: str) -> str:
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
        return f"is {_short(text)}; it must be one line without control characters"
    if any(looks_like_a_key(word) for word in _WORD.findall(text)):
        return "has what looks like a key, which no study must hold (not shown)"
    return ""


def _files(path: Path, patterns: Sequence[str]) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"{shown(path)}: no such file or folder")
    for pattern in patterns:
        found = sorted(one for one in path.glob(pattern) if one.is_file() and not one.name.startswith("."))
        if found:
            return found
    raise DataError(f"{shown(path)}: no file in it that fits {' or '.join(patterns)}")


def _entries(path: Path) -> Iterator[tuple[str, int, dict[str, Any] | str]]:
    """What an entry is called, its number, and the object, or why it is none."""
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


def _read_note(table: pd.DataFrame, systems: int, files: Sequence[Path]) -> str:
    judges = {judge for judge in table["judge"] if judge}
    by = _count(len(judges), "judge") if judges else "judges that are not named"
    items = _count(table["item_id"].nunique(), "item")
    matches = _count(len(table), "match", "matches")
    return f"read: {matches} of {_count(systems, 'system')} on {items} by {by}, from {_count(len(files), 'file')}"


def _preference_notes(table: pd.DataFrame) -> list[str]:
    notes = []
    for name, rows in (("ties", table["preference"] == TIE), ("no preference", table["preference"].isna())):
        reasons = table.loc[rows & table["reason"].fillna("").ne(""), "reason"].value_counts()
        why = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
        if rows.any():
            notes.append(f"{name}: {int(rows.sum())} of {len(table)} matches" + (f" ({why})" if why else ""))
    return notes


def _orders_note(table: pd.DataFrame) -> str:
    known = table[table["first"].notna()]
    if known.empty:
        return "the order in which answers were shown is not in these files: position bias cannot be measured"
    pair = known[["system_x", "system_y"]]
    keys = [known["judge"], known["item_id"], pair.min(axis=1).rename("a"), pair.max(axis=1).rename("b")]
    orders = known.groupby(keys)["first"].nunique()
    both = int((orders == 2).sum())
    if not both:
        return "one order only: position bias cannot be measured"
    return f"both orders: there for {both} of {_count(len(orders), 'comparison')}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
