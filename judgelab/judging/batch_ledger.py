"""The batches of a run as its ledger knows them: what was handed to a provider, and what came of it.

A batch is written down before it is sent, with the calls that it holds. Whoever comes after a process that was killed
finds it here, and need not send it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from judgelab.judging.entries import KEY_COLUMNS, Entry, key_digest
from judgelab.judging.ledger import Ledger

__all__ = ["BATCHES", "Batch", "BatchLedger", "at_provider"]

BATCHES = "JUDGELAB_BATCH"  # notebooks have no parameter for it: how judges are asked is no part of a study
DIGEST = 16  # bytes


@dataclass(frozen=True)
class Batch:
    """One batch. ``token`` names it for us, ``batch_id`` for the provider (None until it has said so).

    ``status``: ``submitting`` (written down, perhaps sent), ``submitted`` (the provider has it), ``merged`` (its
    results are in the ledger) or ``void`` (nothing of it counts; ``note`` says why). ``tokens`` and ``cost`` are what
    was set aside for it.
    """

    token: str
    judge: str
    config_sha256: str
    strategy: str
    pass_: str
    calls: tuple[bytes, ...]
    tokens: int
    cost: float
    created: float
    batch_id: str | None = None
    status: str = "submitting"

    def custom_id(self, digest: bytes) -> str:
        """The name of one call in this batch: no other batch, of whatever run, has it."""
        return f"{self.token}-{digest.hex()}"

    def digest(self, custom_id: str) -> bytes | None:
        """The call that a custom id of this batch names; None for any other text."""
        token, _, text = custom_id.rpartition("-")
        try:
            return bytes.fromhex(text) if token == self.token else None
        except ValueError:
            return None


class BatchLedger:
    """The table ``batches`` of a ledger that is open for writing."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def open(self, judge: str) -> list[Batch]:
        """The batches of a judge that are not settled, the oldest first."""
        query = (
            "SELECT * FROM batches WHERE judge = ? AND status IN ('submitting', 'submitted') ORDER BY created, token"
        )
        with self._ledger._explained():
            return [_batch(row) for row in self._ledger._db.execute(query, (judge,))]

    def known_ids(self) -> set[str]:
        """What the provider calls the batches that are known here."""
        with self._ledger._explained():
            rows = self._ledger._db.execute("SELECT batch_id FROM batches WHERE batch_id IS NOT NULL")
            return {row[0] for row in rows}

    def add(self, batch: Batch) -> None:
        """Write a batch down, before it is sent."""
        values = (
            *(batch.token, batch.judge, batch.config_sha256, batch.strategy, batch.pass_, b"".join(batch.calls)),
            *(len(batch.calls), batch.tokens, batch.cost, batch.created, batch.batch_id, batch.status),
        )
        with self._ledger._explained(), self._ledger._transaction():
            self._ledger._db.execute(
                "INSERT INTO batches (token, judge, config_sha256, strategy, pass, keys, calls, tokens, cost, created, "
                "batch_id, status) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )

    def submitted(self, batch: Batch, batch_id: str) -> None:
        """The provider has it, under this id."""
        self._set(batch, "batch_id = ?, status = 'submitted'", batch_id)

    def counted(self, batch: Batch, done: int) -> None:
        """So many of its requests are settled at the provider."""
        self._set(batch, "done = ?", done)

    def void(self, batch: Batch, note: str) -> None:
        """Nothing of it counts: its calls are open again."""
        self._set(batch, "status = 'void', note = ?, batch_id = NULL", note)

    def merge(self, batch: Batch, entries: Iterable[Entry]) -> None:
        """Write its results, and that they are written, in one transaction: all of them once, or none."""
        with self._ledger._explained(), self._ledger._transaction():
            for entry in entries:
                self._ledger._insert(entry)
            self._ledger._db.execute(
                "UPDATE batches SET status = 'merged', done = calls, ended_at = ? WHERE token = ?",
                (datetime.now(UTC).isoformat(timespec="seconds"), batch.token),
            )

    def malformed(self, judge: str, config_sha256: str, strategy: str, pass_: str) -> dict[bytes, int]:
        """How many malformed replies each open call of a pass has had; none is left out."""
        keys = ", ".join(f"c.{name}" for name in KEY_COLUMNS)
        query = (
            f"SELECT {keys}, count(*) AS n FROM calls c JOIN attempts a ON a.call_id = c.id "
            "WHERE c.judge = ? AND c.config_sha256 = ? AND c.strategy = ? AND c.pass = ? AND c.status = 'failed' "
            "AND a.outcome = 'malformed' GROUP BY c.id"
        )
        with self._ledger._explained():
            rows = self._ledger._db.execute(query, (judge, config_sha256, strategy, pass_))
            return {key_digest(tuple(row)[:-1]): row["n"] for row in rows}

    def _set(self, batch: Batch, what: str, value: Any) -> None:
        with self._ledger._explained():
            self._ledger._db.execute(f"UPDATE batches SET {what} WHERE token = ?", (value, batch.token))


def at_provider(ledger: Ledger) -> pd.DataFrame:
    """The batches that are not settled, from a ledger of any version.

    Columns: ``judge``, ``strategy``, ``pass``, ``batch_id`` (None while it is being sent), ``calls``, and ``done``:
    how many of them the provider had settled when it was last looked at.
    """
    columns = ["judge", "strategy", "pass", "batch_id", "calls", "done"]
    if "batches" not in ledger._tables():
        return pd.DataFrame(columns=columns)
    query = f"SELECT {', '.join(columns)} FROM batches WHERE status IN ('submitting', 'submitted') ORDER BY created"
    return ledger._frame(query)


def _batch(row: Any) -> Batch:
    return Batch(
        token=row["token"],
        judge=row["judge"],
        config_sha256=row["config_sha256"],
        strategy=row["strategy"],
        pass_=row["pass"],
        calls=tuple(_cut(row["keys"])),
        tokens=row["tokens"],
        cost=row["cost"],
        created=row["created"],
        batch_id=row["batch_id"],
        status=row["status"],
    )


def _cut(keys: bytes) -> Iterator[bytes]:
    for start in range(0, len(keys), DIGEST):
        yield keys[start : start + DIGEST]
