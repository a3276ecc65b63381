"""The match log's file: its tables, opening, transactions; and the versions of what it holds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pandas as pd

from judgelab.errors import DataError, LedgerError
from judgelab.judging.ledger import _mode
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
_UNWRITABLE = "the match log cannot be written. Check the folder's permissions; what it holds is kept"
_DAMAGED = "the file is damaged or not a match log. It was not touched; move it away to start anew"
_ADVICE = {
    "full": "the disk is full. Free some space and add again; what the log holds is kept",
    "readonly": _UNWRITABLE, "unable to open": _UNWRITABLE, "not a database": _DAMAGED, "malformed": _DAMAGED,
    "locked": "another process is writing to this log. Wait for it, then add again",
}  # fmt: skip


class LogFile:
    """A match log's SQLite file, opened and checked. A context manager; nothing of a foreign file is touched.

    Unless ``read_only``, a file that is missing is made, with its folder. A LedgerError says if the file is missing
    (read only), damaged, another program's, of a later schema version, or cannot be written.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._where = shown(path)
        if read_only and not path.exists():
            raise LedgerError(f"{self._where}: no such match log; no match was added to it yet")
        with self._explained():
            if not read_only:
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise LedgerError(f"{self._where}: its folder cannot be written: {error.strerror}") from None
            uri = f"{path.resolve().as_uri()}?mode={_mode(path, read_only)}"
            self._db = sqlite3.connect(uri, uri=True, timeout=60, isolation_level=None)
            try:
                if read_only:
                    self._db.execute("PRAGMA query_only=ON")
                self._prepare(read_only)
                if not read_only:  # not before it is known to be ours: the mode is written into the file
                    self._db.execute("PRAGMA journal_mode=WAL")
                    self._db.execute("PRAGMA synchronous=NORMAL")
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._db.close()

    def _prepare(self, read_only: bool) -> None:
        """Create the tables in a new file; refuse another program's file or a later version."""
        tables = self._tables()
        if not tables and not read_only:
            with self._transaction():
                tables = self._tables()  # another process may have made them while this one waited
                if not tables:
                    for statement in _TABLES.split(";\n"):  # `executescript` would end the transaction
                        self._db.execute(statement)
                    self._db.execute("INSERT INTO meta VALUES ('schema_version', ?)", (str(SCHEMA_VERSION),))
                    return
        if not {"meta", "versions", "additions", "matches"} <= tables:
            raise LedgerError(f"{self._where}: this SQLite file is not a judgelab match log; it was not touched")
        row = self._db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
        found = "unknown" if row is None else str(row[0])
        if found != str(SCHEMA_VERSION):
            later = found.isdecimal() and int(found) > SCHEMA_VERSION
            advice = "; a later judgelab wrote it: update this one" if later else ""
            raise LedgerError(
                f"{self._where}: match log of schema version {found}; this judgelab reads version "
                f"{SCHEMA_VERSION}{advice}. It was not touched"
            )

    def _tables(self) -> set[str]:
        return {row[0] for row in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def _frame(self, query: str, values: Sequence[Any] = ()) -> pd.DataFrame:
        with self._explained():
            cursor = self._db.execute(query, values)
            names = [column[0] for column in cursor.description]
            return pd.DataFrame(cursor.fetchall(), columns=names, dtype=object)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")  # may fail too: a full disk is often noticed here
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's errors as messages for people."""
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            advice = next((advice for word, advice in _ADVICE.items() if word in text), "what the log holds is kept")
            raise LedgerError(f"{self._where}: {text}: {advice}") from None


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
