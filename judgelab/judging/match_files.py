"""Files of matches: a match log's matches written to CSV or JSON lines, and matches from anywhere read from them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from judgelab.errors import DataError
from judgelab.judging.match_log import MatchLog
from judgelab.judging.match_log_schema import VERSION, VERSION_COLUMNS
from judgelab.judging.match_rules import MATCH_KEY, checked_matches, without_keys
from judgelab.study.sources.published import at, parsed, refuse, refuse_twice
from judgelab.study.tables import read_csv, read_lines, write_csv, write_jsonl

__all__ = ["export_matches", "file_kind", "match_rows", "read_matches"]


def export_matches(log: MatchLog, path: Path) -> int:
    """Write every match of every version to a CSV or JSONL file, whole or not at all; how many these are.

    The columns are those of :meth:`~judgelab.judging.match_log.MatchLog.matches`, which :func:`read_matches` reads. As
    in all of judgelab's tables values stand as they are, so import the columns of a CSV as text where a spreadsheet
    would take ``=`` for a formula. A carriage return becomes a line feed in CSV.

    Raises DataError if the path ends neither in .csv nor in .jsonl, RunError if the file cannot be written.
    """
    kind = file_kind(path)
    table = log.matches(mix=True)
    if kind == ".csv":
        texts = [str(name) for name in table if table[name].dtype == "str"]
        changed = {name: table[name].str.replace(r"\r\n?", "\n", regex=True) for name in texts}
        write_csv(table.assign(**changed), path)
    else:
        plain = table.astype(object).where(table.notna(), None)
        write_jsonl(({str(key): value for key, value in row.items()} for row in plain.to_dict("records")), path)
    return len(table)


def read_matches(path: Path) -> pd.DataFrame:
    """Read matches that were made elsewhere, or that :func:`export_matches` wrote.

    Parameters
    ----------
    path
        CSV with a header, or JSON lines (one object a line). Needed: system_x, system_y, and preference or winner:
        the name of one of the two, or TIE (tie and draw in any case too); empty where there is none, with a reason why.
        Every other column of :meth:`~judgelab.judging.match_log.MatchLog.matches` may be there.

    Returns
    -------
    DataFrame
        As :func:`judgelab.judging.match_rules.checked_matches` returns it, in the order of the file, with added_at
        and the version's columns where the file has them. ``attrs["unused"]`` names the columns not read.

    Raises
    ------
    DataError
        If the file is missing, of another form, has no match, or any line is wrong, or is a match that is there
        before: every kind of problem is told, with how many lines, the first, and what is allowed. Nothing is read.
    """
    lines, table = match_rows(path)
    if not lines:
        raise DataError(f"{at(path)}: 0 matches")
    verdicts = [name for name in ("preference", "winner") if name in table]
    if len(verdicts) == 2:
        raise DataError(f"{at(path)}: columns preference and winner; one of them is needed")
    table = table.rename(columns={"winner": "preference"})
    clean = checked_matches(table, where=at(path), place="line", places=lines, filled=False)
    kept = [name for name in (*VERSION_COLUMNS, "run", "source") if name in table]
    for name in kept:
        clean[name] = table[name].fillna("").astype("str")
    key = clean[[*MATCH_KEY, *(name for name in VERSION if name in kept)]].fillna("")
    pair = key[["system_x", "system_y"]]
    key = key.assign(system_x=pair.min(axis=1), system_y=pair.max(axis=1))
    refuse_twice(path, zip(lines, key.itertuples(index=False, name=None), strict=True), "matches", place="line")
    clean.attrs["unused"] = tuple(name for name in table if name not in (*clean.columns, "weight"))
    return clean


def match_rows(path: Path) -> tuple[list[int], pd.DataFrame]:
    """The numbers of a file's lines and their values, None where there is none; a DataError if it cannot be read."""
    if file_kind(path) == ".csv":
        file = read_csv(path)
        rows = [{name: value or None for name, value in row.items()} for _, row in file.rows]
        return [line for line, _ in file.rows], pd.DataFrame(rows, columns=list(file.columns), dtype=object)
    rows, lines, wrong = [], [], []
    for line, text in read_lines(path):
        try:
            found = parsed(path, text)
        except DataError:
            found = None
        if not isinstance(found, dict):
            wrong.append((line, without_keys(text)[:40]))
            continue
        rows.append(found)
        lines.append(line)
    refuse(path, wrong, len(rows) + len(wrong), "lines are no JSON objects", place="line")
    return lines, pd.DataFrame(rows, dtype=object)


def file_kind(path: Path) -> str:
    """``.csv`` or ``.jsonl``; any other file is refused with a DataError."""
    if path.suffix.lower() not in (".csv", ".jsonl"):
        raise DataError(f"{at(path)}: matches are in files that end in .csv or .jsonl")
    return path.suffix.lower()
