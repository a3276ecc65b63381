"""Preferences of foreign files as a study of matches: entries read and refused, matches and parameters written once.

What a format's importer leaves out is counted and told. An entry that is not as its format describes is an error: how
many, and the first five; then nothing is written.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from judgelab.errors import DataError
from judgelab.project import outputs_folder, project_root, shown
from judgelab.study.protocol import TIE, check_run_name
from judgelab.study.sources.foreign_entries import Entry, entries_of, files_of
from judgelab.study.sources.published import at
from judgelab.study.tables import csv_text, write_text

__all__ = [
    "ITSELF",
    "MATCHES",
    "Gathered",
    "counted",
    "gather",
    "import_matches",
    "left_out_notes",
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


def gather(
    path: Path,
    patterns: Sequence[str],
    matches_of: Callable[[Entry], list[dict[str, Any]] | str],
    *,
    unit: tuple[str, str] = ("match", "matches"),
) -> Gathered:
    """Read a file, or the files of a folder that fit ``patterns``: those of the first pattern that any file fits.

    Parameters
    ----------
    path, patterns
        The file or folder, and patterns of :meth:`pathlib.Path.glob`. Hidden files are none.
    matches_of
        The matches of one entry, or why it is left out. A ValueError is what is wrong with the entry.
    unit
        What the rows are called, one and several.

    Raises
    ------
    DataError
        If there is no file, one is not UTF-8 or empty, any entry is wrong (how many, the first five, nothing is
        taken), or no match is left. A copy of an entry with a ``tstamp`` is left out, for it is no second judgment.
    """
    gathered = Gathered([], Counter(), files_of(path, patterns))
    problems: list[str] = []
    total, seen = 0, set[bytes]()
    for file in gathered.files:
        for place, number, found in entries_of(file):
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
        raise DataError(f"{at(path)}: 0 {unit[1]} in {counted(total, 'entry', 'entries')}{'; ' if why else ''}{why}")
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
    there, what was written, and what other stages lack.
    """
    table = gathered.table()
    systems = len({*table["system_x"], *table["system_y"]})
    study = {
        "study_id": run,
        "title": f"{title}: {counted(systems, 'system')}",
        "question": f"Which of {systems} systems is preferred?",
        "matches": f"outputs/{run}/source/matches.csv",
        "sampling_rule": "as in the files that were imported",
        "random_seed": 20261130,
    }
    head = f"# Made by `judgelab import {kind} PATH --run {run}`, which writes outputs/{run}/source/matches.csv.\n"
    notes = [_read_note(table, systems, gathered.files), *_preference_notes(table)]
    notes += left_out_notes(gathered)
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
        Notes that come first; what other stages need and lack, as ``... are not in these files``.

    Returns the path of the parameters, and all notes. Raises ProtocolError if the run's name is none, RunError if a
    file cannot be written.
    """
    check_run_name(run, "--run")
    source = outputs_folder() / run / "source"
    write_text(csv_text(matches), source / "matches.csv")
    told = [*notes, f"written: matches.csv in {shown(source)}", f"{missing}: the stages that need them cannot run"]
    params = project_root() / "params" / f"{run}.yaml"
    if params.is_file():
        return params, [*told, f"{shown(params)} is there already and was left as it is"]
    document = yaml.safe_dump({"run": run, "study": dict(study)}, sort_keys=False, allow_unicode=True, width=110)
    write_text(f"{head}{document}", params)
    return params, [*told, f"written: {shown(params)}"]


def counted(number: int, one: str, many: str = "") -> str:
    """A number with the word for what is counted."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def left_out_notes(gathered: Gathered) -> list[str]:
    """What was left out of the files and why, a note a reason."""
    return [f"left out: {count} x {reason}" for reason, count in gathered.left_out.items()] or ["left out: nothing"]


def word_count(answer: Any) -> int | None:
    """How many words, between blanks, an answer has; None if it is no text."""
    return len(answer.split()) if isinstance(answer, str) else None


def _read_note(table: pd.DataFrame, systems: int, files: Sequence[Path]) -> str:
    judges = {judge for judge in table["judge"] if judge}
    by = counted(len(judges), "judge") if judges else "judges that are not named"
    items = counted(table["item_id"].nunique(), "item")
    matches = counted(len(table), "match", "matches")
    return f"read: {matches} of {counted(systems, 'system')} on {items} by {by}, from {counted(len(files), 'file')}"


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
    return f"both orders: there for {both} of {counted(len(orders), 'comparison')}"
