"""The ledger: every call of a run in one SQLite file, written as the replies arrive.

Key of a call: item, strategy, pass, presentation, judge, judge configuration, prompt and repeat. A call is
*finished* when it has a verdict or is unusable for a reason that asking again would not cure; a *failed* call
(transient errors only) is kept for the record and asked again by the next run. Every attempt is kept.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.errors import LedgerError
from judgelab.judging.entries import IMPORTED, KEY_COLUMNS, Attempt, CallKey, Entry, Spent, key_digest
from judgelab.judging.ledger_schema import SCHEMA_VERSION, create, migrate
from judgelab.judging.sqlite_file import Messages, SqliteFile, version_of

__all__ = ["KEY_COLUMNS", "SCHEMA_VERSION", "Attempt", "CallKey", "Entry", "Ledger", "Spent"]

_KEY = KEY_COLUMNS
_RESULT = (
    *("status", "verdict", "reason", "detail", "reply", "reasoning", "frame_sha256"),
    *("model", "fingerprint", "finish_reason", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning"),
    *("cost", "currency", "logprobs", "batch_id", "latency_seconds", "attempts"),
)
_ATTEMPT = (
    *("call_id", "number", "outcome", "reason", "detail", "reply", "finished_at", "latency_seconds"),
    *("tokens_in", "tokens_out", "cost", "estimated"),
)


_INSERT_CALL = (
    f"INSERT INTO calls ({', '.join((*_KEY, *_RESULT))}) VALUES ({', '.join('?' * len(_KEY + _RESULT))}) "
    f"ON CONFLICT DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _RESULT[:-1] if name != 'cost')}, "
    "attempts = calls.attempts + excluded.attempts, "
    "cost = CASE WHEN calls.cost IS NULL THEN excluded.cost ELSE calls.cost + coalesce(excluded.cost, 0) END "
    "WHERE calls.status = 'failed' RETURNING id, attempts"
)
_INSERT_ATTEMPT = f"INSERT INTO attempts ({', '.join(_ATTEMPT)}) VALUES ({', '.join('?' * len(_ATTEMPT))})"


class Ledger(SqliteFile):
    """The calls of one run. Use as a context manager."""

    _MESSAGES = Messages(
        missing="no such ledger; nothing has been judged in this run yet",
        foreign="this SQLite file is not a judgelab ledger; it was not touched",
        full="the disk is full. Free some space and run again; what was judged before is kept",
        unwritable="the ledger cannot be written. Check the folder's permissions; what was judged is kept",
        damaged="the file is damaged or not a ledger. It was not touched; move it away to start anew",
        locked="another process is writing to this run. Wait for it, then run again",
        other="what was judged before is kept",
    )
    _NEEDED = frozenset({"meta", "calls", "attempts", "plan"})

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        super().__init__(path, read_only=read_only)
        self._db.row_factory = sqlite3.Row

    def record(self, entry: Entry) -> None:
        """Write one result with its attempts, in one transaction. A finished call is never overwritten."""
        self.record_all([entry])

    def record_all(self, entries: Iterable[Entry]) -> None:
        """Write many results in one transaction: all of them, or none."""
        with self._explained(), self._transaction():
            for entry in entries:
                self._insert(entry)

    def _insert(self, entry: Entry) -> None:
        values = _storable((*entry.key.values(), *entry.values()))
        written = self._db.execute(_INSERT_CALL, values).fetchone()
        if written is None:
            raise LedgerError(f"{self._where}: call {entry.key.values()} is finished already and is kept")
        call_id, before = written["id"], written["attempts"] - len(entry.attempts)
        self._db.executemany(
            _INSERT_ATTEMPT,
            [
                (
                    *_storable((call_id, before + number, a.outcome, a.reason, a.detail, a.reply, a.finished_at)),
                    *(a.latency_seconds, a.tokens_in, a.tokens_out, a.cost, int(a.estimated)),
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

    def prompts_finished(self, judge: str, config_sha256: str, strategy: str, pass_: str) -> set[bytes]:
        """The finished calls of one pass as :meth:`CallKey.digest`: small enough for a hundred thousand of them."""
        with self._explained():
            rows = self._db.execute(
                f"SELECT {', '.join(_KEY)} FROM calls "
                "WHERE judge = ? AND config_sha256 = ? AND strategy = ? AND pass = ? AND status <> 'failed'",
                (judge, config_sha256, strategy, pass_),
            )
            return {key_digest(row) for row in rows}

    def pass_counts(self, judge: str, config_sha256: str, strategy: str, pass_: str) -> dict[str, int]:
        """Calls of one pass of a judge's present configuration, by status."""
        with self._explained():
            rows = self._db.execute(
                "SELECT status, count(*) FROM calls WHERE judge = ? AND strategy = ? AND pass = ? "
                "AND config_sha256 = ? GROUP BY status",
                (judge, strategy, pass_, config_sha256),
            )
            return {row[0]: row[1] for row in rows}

    def set_plan(
        self, judge: str, strategy: str, pass_: str, calls: int, *, complete_sha256: str | None = None
    ) -> None:
        """Note how many calls a pass of a judge holds, for whoever watches the run.

        ``complete_sha256`` identifies a plan (protocol, items, prompts) of which every call is finished.
        """
        with self._explained():
            self._db.execute(
                "INSERT OR REPLACE INTO plan VALUES (?, ?, ?, ?, ?)", (judge, strategy, pass_, calls, complete_sha256)
            )

    def completed(self, judge: str, strategy: str, pass_: str) -> tuple[str | None, int]:
        """The plan of a pass that was found complete (None if none was), and its number of calls."""
        with self._explained():
            row = self._db.execute(
                "SELECT complete_sha256, calls FROM plan WHERE judge = ? AND strategy = ? AND pass = ?",
                (judge, strategy, pass_),
            ).fetchone()
        return (None, 0) if row is None else (row[0], row[1])

    def see_judge(self, judge: str, config_sha256: str, capabilities: dict[str, Any] | None = None) -> None:
        """Note a judge's configuration when it is first asked, and what it was found capable of."""
        text = None if capabilities is None else json.dumps(capabilities, sort_keys=True)
        with self._explained():
            self._db.execute(
                "INSERT INTO judges VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
                "SET capabilities = coalesce(excluded.capabilities, capabilities)",
                (judge, config_sha256, text, datetime.now(UTC).isoformat(timespec="seconds")),
            )

    def capabilities(self, judge: str, config_sha256: str) -> dict[str, Any] | None:
        """What a judge of this configuration was found capable of, if it has been asked."""
        with self._explained():
            row = self._db.execute(
                "SELECT capabilities FROM judges WHERE judge = ? AND config_sha256 = ?", (judge, config_sha256)
            ).fetchone()
        found: dict[str, Any] | None = json.loads(row[0]) if row is not None and row[0] is not None else None
        return found

    def judges(self) -> pd.DataFrame:
        """Every judge configuration that was asked: judge, config_sha256, capabilities (JSON), first_seen (UTC)."""
        if self._version < 2:
            return pd.DataFrame(columns=["judge", "config_sha256", "capabilities", "first_seen"])
        return self._frame("SELECT * FROM judges ORDER BY first_seen, judge, config_sha256")

    def raise_cap(self, judge: str, key: str, value: float) -> None:
        """Raise one cap of a judge (``max_calls``, ``max_tokens``, ``max_cost``) above the frozen protocol's."""
        with self._explained():
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (f"cap {judge} {key}", repr(float(value))))

    def caps(self, judge: str) -> dict[str, float]:
        """The caps of a judge that were raised since the protocol was frozen."""
        start = f"cap {judge} "
        with self._explained():
            rows = self._db.execute("SELECT key, value FROM meta WHERE substr(key, 1, ?) = ?", (len(start), start))
            return {row[0].removeprefix(start): float(row[1]) for row in rows}

    def spent(self, judge: str) -> Spent:
        """What one judge has used up so far, whatever its configuration was; failed attempts count too."""
        query = (
            "SELECT count(*), coalesce(sum(coalesce(a.tokens_in, 0) + coalesce(a.tokens_out, 0)), 0), "
            "coalesce(sum(a.cost), 0.0), coalesce(sum(CASE WHEN a.cost IS NULL THEN a.tokens_in END), 0), "
            "coalesce(sum(CASE WHEN a.cost IS NULL THEN a.tokens_out END), 0) "
            "FROM attempts a JOIN calls c ON c.id = a.call_id "
            f"WHERE c.judge = ? AND a.finished_at <> '{IMPORTED}'"
        )
        if self._version < 2:  # a reader of an earlier version, which kept no tokens of single attempts
            query = (
                "SELECT coalesce(sum(attempts), 0), "
                "coalesce(sum(coalesce(tokens_in, 0) + coalesce(tokens_out, 0)), 0), 0.0, "
                "coalesce(sum(tokens_in), 0), coalesce(sum(tokens_out), 0) FROM calls WHERE judge = ?"
            )
        with self._explained():
            return Spent(*self._db.execute(query, (judge,)).fetchone())

    def median_latency(self, judge: str) -> float | None:
        """Median seconds that a judge's calls took at their last attempt; None if it was never asked."""
        with self._explained():
            rows = self._db.execute(
                "SELECT latency_seconds FROM calls WHERE judge = ? AND latency_seconds IS NOT NULL", (judge,)
            ).fetchall()
        return statistics.median(row[0] for row in rows) if rows else None

    def progress(self) -> pd.DataFrame:
        """Planned and finished calls by judge, strategy and pass, and their cost so far (none without prices)."""
        cost = "cost" if self._version >= 2 else "NULL"
        query = (
            "SELECT p.judge, p.strategy, p.pass, p.calls AS planned, coalesce(c.done, 0) AS done, c.cost "
            "FROM plan p LEFT JOIN "
            f"(SELECT judge, strategy, pass, sum(status <> 'failed') AS done, sum({cost}) AS cost FROM calls "
            "GROUP BY judge, strategy, pass) c USING (judge, strategy, pass)"
        )
        return self._frame(query)

    def counts(self) -> pd.DataFrame:
        """One row per judge, strategy, pass and status.

        Columns: ``judge``, ``strategy``, ``pass``, ``status``, ``calls``, ``requests`` (attempts), ``tokens_in`` and
        ``tokens_out`` (of all attempts), ``cost`` (NaN where no price is known), ``currency``, and the median of
        ``latency_seconds`` of the calls' last attempts.
        """
        if self._version >= 2:
            used = (
                "(SELECT call_id, sum(tokens_in) AS tokens_in, sum(tokens_out) AS tokens_out FROM attempts GROUP BY 1)"
            )
            columns, join = "a.tokens_in, a.tokens_out, c.cost, c.currency", f"LEFT JOIN {used} a ON a.call_id = c.id"
        else:
            columns, join = "c.tokens_in, c.tokens_out, NULL AS cost, NULL AS currency", ""
        table = self._frame(
            f"SELECT c.judge, c.strategy, c.pass, c.status, c.attempts AS requests, c.latency_seconds, {columns} "
            f"FROM calls c {join}"
        ).astype(dict.fromkeys(("tokens_in", "tokens_out", "cost", "latency_seconds"), "float64"))
        groups = table.groupby(["judge", "strategy", "pass", "status"], sort=True)
        counted = groups.agg(
            calls=("requests", "size"),
            requests=("requests", "sum"),
            tokens_in=("tokens_in", "sum"),
            tokens_out=("tokens_out", "sum"),
            cost=("cost", lambda values: values.sum(min_count=1)),
            currency=("currency", "first"),
            latency_seconds=("latency_seconds", "median"),
        )
        return counted.astype({"tokens_in": "int64", "tokens_out": "int64"}).reset_index()

    def calls(self) -> pd.DataFrame:
        """All calls, one a row."""
        known = self._columns_of("calls")
        columns = ", ".join(name if name in known else f"NULL AS {name}" for name in (*_KEY, *_RESULT))
        return self._frame(f"SELECT {columns} FROM calls ORDER BY {', '.join(_KEY)}")

    def attempts(self) -> pd.DataFrame:
        """All attempts, one a row, with the key of their call."""
        known = self._columns_of("attempts")
        keys = ", ".join(f"c.{name}" for name in _KEY)
        names = [name for name in _ATTEMPT if name not in ("call_id", "finished_at")]
        columns = ", ".join(f"a.{name}" if name in known else f"NULL AS {name}" for name in names)
        return self._frame(
            f"SELECT {keys}, {columns} FROM attempts a JOIN calls c ON c.id = a.call_id ORDER BY {keys}, a.number"
        )

    def _create(self) -> None:
        create(self._db)
        self._version = SCHEMA_VERSION

    def _accept(self, read_only: bool) -> None:
        """A reader leaves an earlier version as it is; what that version did not hold is read as missing."""
        self._version = self._checked_version()
        if self._version < SCHEMA_VERSION and not read_only:
            with self._transaction():
                migrate(self._db, self._checked_version())
            self._version = SCHEMA_VERSION

    def _checked_version(self) -> int:
        found = version_of(self._db)
        if found is None or not found.isdecimal() or not 1 <= int(found) <= SCHEMA_VERSION:
            raise LedgerError(
                f"{self._where}: ledger of schema version {found}; this judgelab reads version {SCHEMA_VERSION}"
            )
        return int(found)

    def _columns_of(self, table: str) -> set[str]:
        with self._explained():
            return {row["name"] for row in self._db.execute(f"PRAGMA table_info({table})")}


def _storable(values: Iterable[Any]) -> tuple[Any, ...]:
    r"""Values with half a surrogate pair, which a reply's JSON may hold and UTF-8 cannot, spelled as ``\ud83d``."""
    return tuple(
        value.encode(errors="backslashreplace").decode() if isinstance(value, str) and not value.isascii() else value
        for value in values
    )
