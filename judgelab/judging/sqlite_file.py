"""A SQLite file of this package: opened and checked, made or migrated in one transaction, its errors told to people."""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import pandas as pd
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from judgelab.errors import LedgerError
from judgelab.project import shown

__all__ = ["Messages", "SqliteFile", "create_tables", "run_script", "version_of"]

PATIENCE = 60  # seconds that another process is waited for


@dataclass(frozen=True)
class Messages:
    """What people are told about one kind of file; the file's name goes before, SQLite's own words too.

    Attributes
    ----------
    missing
        It is to be read, and is not there.
    foreign
        It is another program's SQLite file.
    full, unwritable, damaged, locked
        What to do about a full disk, a file or folder that cannot be written, one that is no SQLite file (any more),
        and another process that keeps writing to it.
    other
        What to know after any other error of SQLite.
    """

    missing: str
    foreign: str
    full: str
    unwritable: str
    damaged: str
    locked: str
    other: str

    def advice(self, error: sqlite3.Error) -> str:
        """What fits an error, by SQLite's text of it."""
        by_word = {
            "full": self.full,
            "readonly": self.unwritable,
            "unable to open": self.unwritable,
            "not a database": self.damaged,
            "malformed": self.damaged,
            "locked": self.locked,
        }
        return next((advice for word, advice in by_word.items() if word in str(error)), self.other)


class SqliteFile(ABC):
    """One SQLite file, opened and checked. A context manager; nothing of a foreign file is touched.

    Unless ``read_only``, a file that is missing is made (its folder must be there), and one of an earlier schema
    version is brought to this one. A LedgerError says if the file is missing (read only), damaged, another program's,
    of a version that is not known, locked for more than a minute, or cannot be written.
    """

    _MESSAGES: ClassVar[Messages]
    _NEEDED: ClassVar[frozenset[str]]  # the tables by which the file is known to be of this kind

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._where = shown(path)
        if read_only and not path.exists():
            raise LedgerError(f"{self._where}: {self._MESSAGES.missing}")
        with self._explained():
            uri = f"{path.resolve().as_uri()}?mode={_mode(path, read_only)}"
            self._db = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
            try:
                if read_only:
                    self._db.execute("PRAGMA query_only=ON")
                Retrying(
                    retry=retry_if_exception(_is_locked),
                    stop=stop_after_delay(PATIENCE),
                    wait=wait_random(0.01, 0.1),
                    reraise=True,
                )(self._begin, read_only)
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._db.close()

    @abstractmethod
    def _create(self) -> None:
        """Make the tables in a new file. The caller holds the transaction."""

    @abstractmethod
    def _accept(self, read_only: bool) -> None:
        """Check the schema version of a file that has the tables, and migrate an earlier one unless ``read_only``."""

    def _begin(self, read_only: bool) -> None:
        """Check the file and set its mode; safe to do again.

        SQLite does not wait, whatever its timeout, where another process changes the mode or removes the log.
        """
        self._prepare(read_only)
        if not read_only:  # not before it is known to be ours: the mode is written into the file
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")

    def _prepare(self, read_only: bool) -> None:
        """Create the tables in a new file; refuse another program's file or a version that is not known."""
        tables = self._tables()
        if not tables and not read_only:
            with self._transaction():
                tables = self._tables()  # another process may have made them while this one waited
                if not tables:
                    self._create()
                    return
        if not tables >= self._NEEDED:
            raise LedgerError(f"{self._where}: {self._MESSAGES.foreign}")
        self._accept(read_only)

    def _tables(self) -> set[str]:
        return {row[0] for row in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def _frame(self, query: str, values: Sequence[Any] = (), *, dtype: type | None = None) -> pd.DataFrame:
        """A query's rows as a table; without ``dtype`` pandas chooses the columns' types."""
        with self._explained():
            cursor = self._db.execute(query, values)
            names = [column[0] for column in cursor.description]
            return pd.DataFrame([tuple(row) for row in cursor], columns=names, dtype=dtype)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All of what is written in it, or nothing; it waits for another process's transaction."""
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
            raise LedgerError(f"{self._where}: {error}: {self._MESSAGES.advice(error)}") from None


def _is_locked(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def create_tables(database: sqlite3.Connection, script: str, version: int) -> None:
    """Make a new file's tables, ``meta`` among them, and note the schema version there.

    ``script`` is as in :func:`run_script`. The caller holds the transaction.
    """
    run_script(database, script)
    database.execute("INSERT INTO meta VALUES ('schema_version', ?)", (str(version),))


def run_script(database: sqlite3.Connection, script: str) -> None:
    """Statements, each ending with a semicolon and a line end, one by one: ``executescript`` ends a transaction."""
    for statement in script.split(";\n"):
        database.execute(statement)


def version_of(database: sqlite3.Connection) -> str | None:
    """The schema version that a file names."""
    row = database.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    return None if row is None else str(row[0])


def _mode(path: Path, read_only: bool) -> str:
    """How SQLite opens the file. A reader that may write leaves no ``-wal`` and ``-shm`` files when it closes."""
    if not read_only:
        return "rwc"
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return "rw"
    return "ro" if path.with_name(f"{path.name}-wal").exists() else "ro&immutable=1"
