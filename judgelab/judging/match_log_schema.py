"""The match log's file: its tables and messages; and the versions of what it holds."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from judgelab.errors import DataError, LedgerError
from judgelab.judging.sqlite_file import Messages, SqliteFile, create_tables, version_of
from judgelab.project import shown

__all__ = ["SCHEMA_VERSION", "VERSION", "VERSION_COLUMNS", "LogFile", "by_version", "described", "short"]

SCHEMA_VERSION = 1
VERSION = ("protocol_sha256", "items_sha256")
VERSION_COLUMNS = (*VERSION, "study_id", "rubric_version", "prompt_version")

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE versions (
    id INTEGER PRIMARY KEY, protocol_sha256 TEXT NOT NULL, items_sha256 TEXT NOT NULL, study_id TEXT NOT NULL,
    rubric_version TEXT NOT NULL, prompt_version TEXT NOT NULL, systems TEXT NOT NULL, first_seen TEXT NOT NULL,
    UNIQUE (protocol_sha256, items_sha256)
);
CREATE TABLE additions (
    id INTEGER PRIMARY KEY, added_at TEXT NOT NULL, run TEXT NOT NULL, source TEXT NOT NULL,
    version INTEGER NOT NULL REFERENCES versions (id), added INTEGER NOT NULL, replaced INTEGER NOT NULL,
    already INTEGER NOT NULL
);
CREATE TABLE matches (
    id INTEGER PRIMARY KEY, version INTEGER NOT NULL REFERENCES versions (id),
    judge TEXT NOT NULL, config_sha256 TEXT NOT NULL, item_id TEXT NOT NULL, category TEXT NOT NULL,
    pass TEXT NOT NULL, repeat INTEGER NOT NULL, system_x TEXT NOT NULL, system_y TEXT NOT NULL,
    first TEXT NOT NULL, preference TEXT, reason TEXT NOT NULL, words_x REAL, words_y REAL,
    run TEXT NOT NULL, source TEXT NOT NULL CHECK (source IN ('run', 'import')), added_at TEXT NOT NULL,
    CHECK (system_x <> system_y), CHECK (first IN (system_x, system_y, '')),
    CHECK (preference IN (system_x, system_y, 'TIE') OR (preference IS NULL AND reason <> ''))
);
CREATE UNIQUE INDEX one_match ON matches (
    version, item_id, judge, config_sha256, min(system_x, system_y), max(system_x, system_y), first, pass, repeat
);
"""


class LogFile(SqliteFile):
    """A match log's SQLite file. A context manager.

    Unless ``read_only``, a file that is missing is made, with its folder. A LedgerError says if the file is missing
    (read only), damaged, another program's, of another schema version, or cannot be written.
    """

    _MESSAGES = Messages(
        missing="no such match log; no match was added to it yet",
        foreign="this SQLite file is not a judgelab match log; it was not touched",
        full="the disk is full. Free some space and add again; what the log holds is kept",
        unwritable="the match log cannot be written. Check the folder's permissions; what it holds is kept",
        damaged="the file is damaged or not a match log. It was not touched; move it away to start anew",
        locked="another process is writing to this log. Wait for it, then add again",
        other="what the log holds is kept",
    )
    _NEEDED = frozenset({"meta", "versions", "additions", "matches"})

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        if not read_only:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise LedgerError(f"{shown(path)}: its folder cannot be written: {error.strerror}") from None
        super().__init__(path, read_only=read_only)

    def _create(self) -> None:
        create_tables(self._db, _TABLES, SCHEMA_VERSION)

    def _accept(self, read_only: bool) -> None:
        """There is no earlier version to migrate; a later one is refused."""
        found = version_of(self._db) or "unknown"
        if found != str(SCHEMA_VERSION):
            later = found.isdecimal() and int(found) > SCHEMA_VERSION
            advice = "; a later judgelab wrote it: update this one" if later else ""
            raise LedgerError(
                f"{self._where}: match log of schema version {found}; this judgelab reads version "
                f"{SCHEMA_VERSION}{advice}. It was not touched"
            )


def by_version(matches: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """The versions in a table, (protocol_sha256, items_sha256), as they appear, with their matches.

    A DataError names missing columns.
    """
    needed = ("system_x", "system_y", "item_id", *VERSION, "study_id", "rubric_version")
    missing = [name for name in needed if name not in matches]
    if missing:
        raise DataError(f"matches: missing column {', '.join(missing)}")
    groups = matches.groupby(list(VERSION), sort=False, dropna=False)
    return [((str(key[0]), str(key[1])), part) for key, part in groups]


def described(part: pd.DataFrame) -> str:
    """One version's matches in a few words."""
    one = part.iloc[0]
    days = sorted({str(time)[:10] for time in part["added_at"]}) if "added_at" in part else []
    added = f", added {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    return (
        f"protocol {short(one['protocol_sha256'])} with items {short(one['items_sha256'])} (study {one['study_id']}, "
        f"rubric {one['rubric_version']}, {len(part)} matches{added})"
    )


def short(digest: str) -> str:
    """The beginning of a hash, as people are shown it."""
    return str(digest)[:8] or "unknown"
