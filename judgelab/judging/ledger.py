"""The ledger: every call of a run in one SQLite file, written as the replies arrive.

Key of a call: item, strategy, pass, presentation, judge, judge configuration, prompt and repeat. A call is
*finished* when it has a verdict or is unusable for a reason that asking again would not cure; a *failed* call
(transient errors only) is kept for the record and asked again by the next run. Every attempt is kept.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pandas as pd

from judgelab.errors import LedgerError
from judgelab.project import shown

__all__ = ["Attempt", "CallKey", "Entry", "Ledger"]

SCHEMA_VERSION = 1

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    judge TEXT NOT NULL, item_id TEXT NOT NULL, strategy TEXT NOT NULL, pass TEXT NOT NULL,
    presentation TEXT NOT NULL, config_sha256 TEXT NOT NULL, prompt_sha256 TEXT NOT NULL, repeat INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('verdict', 'unusable', 'failed')),
    verdict TEXT, reason TEXT, detail TEXT, reply TEXT,
    frame_sha256 TEXT, model TEXT, fingerprint TEXT, finish_reason TEXT,
    tokens_in INTEGER, tokens_out INTEGER, latency_seconds REAL, attempts INTEGER NOT NULL,
    UNIQUE (judge, item_id, strategy, pass, presentation, config_sha256, prompt_sha256, repeat)
);
CREATE TABLE attempts (
    call_id INTEGER NOT NULL REFERENCES calls (id), number INTEGER NOT NULL,
    outcome TEXT NOT NULL, reason TEXT, detail TEXT, reply TEXT, finished_at TEXT NOT NULL, latency_seconds REAL,
    UNIQUE (call_id, number)
);
CREATE TABLE plan (judge TEXT, strategy TEXT, pass TEXT, calls INTEGER NOT NULL, PRIMARY KEY (judge, strategy, pass));
"""

_KEY = ("judge", "item_id", "strategy", "pass", "presentation", "config_sha256", "prompt_sha256", "repeat")
_RESULT = (
    "status",
    "verdict",
    "reason",
    "detail",
    "reply",
    "frame_sha256",
    "model",
    "fingerprint",
    "finish_reason",
    "tokens_in",
    "tokens_out",
    "latency_seconds",
    "attempts",
)


@dataclass(frozen=True)
class CallKey:
    """What makes a call the same call."""

    judge: str
    item_id: str
    strategy: str
    pass_: str
    presentation: tuple[str, ...]
    config_sha256: str
    prompt_sha256: str
    repeat: int = 0

    def values(self) -> tuple[Any, ...]:
        """The key in the order of the ledger's columns."""
        return (
            self.judge,
            self.item_id,
            self.strategy,
            self.pass_,
            json.dumps(self.presentation, ensure_ascii=False),
            self.config_sha256,
            self.prompt_sha256,
            self.repeat,
        )


@dataclass(frozen=True)
class Attempt:
    """One time that a judge was asked: ``verdict``, ``malformed``, ``transient`` or ``refused``."""

    outcome: str
    finished_at: str
    reply: str | None = None
    reason: str | None = None
    detail: str | None = None
    latency_seconds: float | None = None


@dataclass(frozen=True)
class Entry:
    """What came of a call."""

    key: CallKey
    status: str
    verdict: dict[str, Any] | None = None
    reason: str | None = None
    detail: str | None = None
    reply: str | None = None
    frame_sha256: str | None = None
    model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    latency_seconds: float | None = None
    attempts: tuple[Attempt, ...] = field(default=())

    def values(self) -> tuple[Any, ...]:
        """The result in the order of the ledger's columns."""
        verdict = None if self.verdict is None else json.dumps(self.verdict, ensure_ascii=False)
        plain = [getattr(self, name) for name in _RESULT[2:-1]]
        return (self.status, verdict, *plain, len(self.attempts))


class Ledger:
    """The calls of one run. Use as a context manager."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._where = shown(path)
        if read_only and not path.exists():
            raise LedgerError(f"{self._where}: no such ledger; nothing has been judged in this run yet")
        with self._explained():
            uri = f"{path.resolve().as_uri()}?mode={_mode(path, read_only)}"
            self._db = sqlite3.connect(uri, uri=True, timeout=60, isolation_level=None, check_same_thread=False)
            try:
                self._db.row_factory = sqlite3.Row
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

    def record(self, entry: Entry) -> None:
        """Write one result with its attempts, in one transaction. A finished call is never overwritten."""
        self.record_all([entry])

    def record_all(self, entries: Iterable[Entry]) -> None:
        """Write many results in one transaction."""
        columns = ", ".join((*_KEY, *_RESULT))
        marks = ", ".join("?" * (len(_KEY) + len(_RESULT)))
        updates = ", ".join(f"{name} = excluded.{name}" for name in _RESULT[:-1])
        statement = (
            f"INSERT INTO calls ({columns}) VALUES ({marks}) "
            f"ON CONFLICT DO UPDATE SET {updates}, attempts = calls.attempts + excluded.attempts "
            "WHERE calls.status = 'failed' RETURNING id, attempts"
        )
        with self._explained(), self._transaction():
            for entry in entries:
                values = _storable((*entry.key.values(), *entry.values()))
                written = self._db.execute(statement, values).fetchone()
                if written is None:
                    raise LedgerError(f"{self._where}: call {entry.key.values()} is finished already and is kept")
                before = written["attempts"] - len(entry.attempts)
                self._db.executemany(
                    "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        (
                            written["id"],
                            before + number,
                            *_storable((a.outcome, a.reason, a.detail, a.reply, a.finished_at, a.latency_seconds)),
                        )
                        for number, a in enumerate(entry.attempts, start=1)
                    ],
                )

    def finished(self, judge: str, config_sha256: str) -> set[tuple[Any, ...]]:
        """Keys of one judge's calls that need not be asked again."""
        with self._explained():
            rows = self._db.execute(
                f"SELECT {', '.join(_KEY)} FROM calls WHERE judge = ? AND config_sha256 = ? AND status <> 'failed'",
                (judge, config_sha256),
            )
            return {tuple(row) for row in rows}

    def set_plan(self, judge: str, strategy: str, pass_: str, calls: int) -> None:
        """Note how many calls a pass of a judge holds, for whoever watches the run."""
        with self._explained():
            self._db.execute("INSERT OR REPLACE INTO plan VALUES (?, ?, ?, ?)", (judge, strategy, pass_, calls))

    def progress(self) -> pd.DataFrame:
        """Planned and finished calls by judge, strategy and pass."""
        query = (
            "SELECT p.judge, p.strategy, p.pass, p.calls AS planned, "
            "(SELECT count(*) FROM calls c WHERE c.judge = p.judge AND c.strategy = p.strategy AND c.pass = p.pass "
            "AND c.status <> 'failed') "
            "AS done FROM plan p"
        )
        return self._frame(query)

    def calls(self) -> pd.DataFrame:
        """All calls, one a row."""
        return self._frame(f"SELECT {', '.join((*_KEY, *_RESULT))} FROM calls ORDER BY {', '.join(_KEY)}")

    def attempts(self) -> pd.DataFrame:
        """All attempts, one a row, with the key of their call."""
        keys = ", ".join(f"c.{name}" for name in _KEY)
        return self._frame(
            f"SELECT {keys}, a.number, a.outcome, a.reason, a.detail, a.reply, a.latency_seconds "
            f"FROM attempts a JOIN calls c ON c.id = a.call_id ORDER BY {keys}, a.number"
        )

    def _frame(self, query: str) -> pd.DataFrame:
        with self._explained():
            cursor = self._db.execute(query)
            names = [column[0] for column in cursor.description]
            return pd.DataFrame([tuple(row) for row in cursor], columns=names)

    def _prepare(self, read_only: bool) -> None:
        """Create the tables in a new file; refuse a file of another program or of a later version."""
        tables = self._tables()
        if not tables and not read_only:
            with self._transaction():
                tables = self._tables()  # another process may have made them while this one waited
                if not tables:
                    for statement in _TABLES.split(";\n"):
                        self._db.execute(statement)
                    self._db.execute("INSERT INTO meta VALUES ('schema_version', ?)", (str(SCHEMA_VERSION),))
                    return
        if not {"meta", "calls", "attempts", "plan"} <= tables:
            raise LedgerError(f"{self._where}: this SQLite file is not a judgelab ledger; it was not touched")
        version = self._db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
        if version is None or version[0] != str(SCHEMA_VERSION):
            found = None if version is None else version[0]
            raise LedgerError(
                f"{self._where}: ledger of schema version {found}; this judgelab reads version {SCHEMA_VERSION}"
            )

    def _tables(self) -> set[str]:
        return {row[0] for row in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}

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
            if "full" in text:
                advice = "the disk is full. Free some space and run again; what was judged before is kept"
            elif "readonly" in text or "unable to open" in text:
                advice = "the ledger cannot be written. Check the folder's permissions; what was judged is kept"
            elif "not a database" in text or "malformed" in text:
                advice = "the file is damaged or not a ledger. It was not touched; move it away to start anew"
            elif "locked" in text:
                advice = "another process is writing to this run. Wait for it, then run again"
            else:
                advice = "what was judged before is kept"
            raise LedgerError(f"{self._where}: {text}: {advice}") from None


def _storable(values: Iterable[Any]) -> tuple[Any, ...]:
    r"""Values with half a surrogate pair, which a reply's JSON may hold and UTF-8 cannot, spelled as ``\ud83d``."""
    return tuple(
        value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value for value in values
    )


def _mode(path: Path, read_only: bool) -> str:
    """How SQLite opens the file. A reader that may write leaves no files beside it when it closes."""
    if not read_only:
        return "rwc"
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return "rw"
    return "ro" if path.with_name(f"{path.name}-wal").exists() else "ro&immutable=1"
