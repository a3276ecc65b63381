"""Ledgers of schema version 1: migrated in one transaction when they are written to, and readable without."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading

import pytest

from judgelab.errors import LedgerError
from judgelab.judging import ledger as ledger_module
from judgelab.judging.entries import Attempt, CallKey, Entry, Spent
from judgelab.judging.ledger import Ledger

# the schema as version 1 wrote it
VERSION_1 = """
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
INSERT INTO meta VALUES ('schema_version', '1');
INSERT INTO calls VALUES (1, 'old', 'i1', 'pairwise', 'original', '["ALPHA", "BETA"]', 'c', 'p', 0, 'verdict',
    '{"winner": "A"}', NULL, NULL, '{}', 'f', 'm', 'fp', 'stop', 100, 20, 0.5, 2);
INSERT INTO calls VALUES (2, 'old', 'i2', 'pairwise', 'original', '["ALPHA", "BETA"]', 'c', 'q', 0, 'failed',
    NULL, 'timeout', 'no reply', NULL, 'f', NULL, NULL, NULL, NULL, NULL, 9.0, 1);
INSERT INTO attempts VALUES (1, 1, 'malformed', 'no_json', NULL, 'Hm', '2024-01-01T00:00:00+00:00', 0.4);
INSERT INTO attempts VALUES (1, 2, 'verdict', NULL, NULL, '{}', '2024-01-01T00:00:01+00:00', 0.5);
INSERT INTO attempts VALUES (2, 1, 'transient', 'timeout', 'no reply', NULL, '2024-01-01T00:00:02+00:00', 9.0);
INSERT INTO plan VALUES ('old', 'pairwise', 'original', 3);
"""
DONE = CallKey("old", "i1", "pairwise", "original", ("ALPHA", "BETA"), "c", "p")
OPEN = CallKey("old", "i2", "pairwise", "original", ("ALPHA", "BETA"), "c", "q")


@pytest.fixture
def path(project):
    path = project / "outputs" / "ledger.sqlite"
    database = sqlite3.connect(path)
    database.executescript(VERSION_1)
    database.close()
    return path


def columns(path, table):
    database = sqlite3.connect(path)
    try:
        version = database.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()[0]
        return version, {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    finally:
        database.close()


def shape(path):
    """Every table's columns, in any order."""
    database = sqlite3.connect(path)
    try:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: {row[1:4] for row in database.execute(f"PRAGMA table_info({name})")} for name in tables}
    finally:
        database.close()


def test_a_migrated_ledger_has_the_shape_of_a_new_one(path):
    with Ledger(path):
        pass
    with Ledger(path.with_name("new.sqlite")):
        pass
    assert shape(path) == shape(path.with_name("new.sqlite"))


def test_nothing_is_lost_and_the_run_goes_on(path):
    with Ledger(path) as ledger:
        assert ledger.finished("old", "c") == {DONE.values()}
        assert ledger.prompts_finished("old", "c", "pairwise", "original") == {DONE.digest()}
        calls, attempts = ledger.calls().set_index("item_id"), ledger.attempts()
        assert json.loads(calls.loc["i1", "verdict"]) == {"winner": "A"}
        assert calls.loc["i1", ["tokens_in", "tokens_out", "attempts", "reply"]].tolist() == [100, 20, 2, "{}"]
        assert calls["cost"].isna().all()
        assert attempts["tokens_in"].tolist()[1] == 100  # of the attempt that made the reply
        assert attempts["tokens_in"].isna().tolist() == [True, False, True]
        assert ledger.spent("old") == Spent(calls=3, tokens=120, cost=0.0, unpriced_in=100, unpriced_out=20)
        assert ledger.judges()[["judge", "config_sha256", "first_seen"]].to_numpy().tolist() == [
            ["old", "c", "2024-01-01T00:00:00+00:00"]
        ]
        assert ledger.completed("old", "pairwise", "original") == (None, 3)
        attempt = Attempt("verdict", "2024-01-02T00:00:00+00:00", tokens_in=7, tokens_out=3, cost=0.5)
        ledger.record(Entry(OPEN, "verdict", {"winner": "B"}, cost=0.5, currency="EUR", attempts=(attempt,)))
        with pytest.raises(LedgerError, match="finished already and is kept"):
            ledger.record(Entry(DONE, "verdict", {"winner": "B"}, attempts=(attempt,)))
        assert ledger.spent("old") == Spent(calls=4, tokens=130, cost=0.5, unpriced_in=100, unpriced_out=20)


def test_a_reader_sees_an_old_ledger_without_changing_it(path):
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with Ledger(path, read_only=True) as ledger:
        assert ledger.calls()[["item_id", "reasoning", "cost"]].astype(object).to_numpy().tolist() == [
            ["i1", None, None], ["i2", None, None],
        ]  # fmt: skip
        assert ledger.attempts()["tokens_in"].isna().all()
        assert ledger.progress()[["planned", "done"]].to_numpy().tolist() == [[3, 1]]
        assert ledger.counts()[["status", "calls", "requests", "tokens_in"]].to_numpy().tolist() == [
            ["failed", 1, 1, 0], ["verdict", 1, 2, 100],
        ]  # fmt: skip
        assert ledger.spent("old") == Spent(calls=3, tokens=120, cost=0.0, unpriced_in=100, unpriced_out=20)
        assert ledger.judges().empty
        assert ledger.median_latency("old") == 4.75
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert columns(path, "calls")[0] == "1"


def test_a_migration_that_breaks_off_leaves_version_1(path, monkeypatch):
    def full(database, version):
        database.execute("ALTER TABLE calls ADD COLUMN reasoning TEXT")
        database.execute("UPDATE meta SET value = '2' WHERE key = 'schema_version'")
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(ledger_module, "migrate", full)
        with pytest.raises(LedgerError, match=r"the disk is full.*what was judged before is kept"):
            Ledger(path)
    version, names = columns(path, "calls")
    assert version == "1"
    assert "reasoning" not in names
    with Ledger(path) as ledger:
        assert len(ledger.calls()) == 2
    assert columns(path, "calls")[0] == "2"


def test_many_may_migrate_at_once(path):
    problems, start = [], threading.Barrier(6)

    def open_one():
        start.wait()
        try:
            with Ledger(path) as ledger:
                assert len(ledger.calls()) == 2
        except LedgerError as error:
            problems.append(error)

    threads = [threading.Thread(target=open_one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert columns(path, "calls")[0] == "2"


@pytest.mark.parametrize("version", ["0", "3", "two", ""])
def test_other_versions_are_refused(path, version):
    database = sqlite3.connect(path)
    database.execute("UPDATE meta SET value = ?", (version,))
    database.commit()
    database.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=f"schema version {version}; this judgelab reads version 2"):
        Ledger(path)
    assert path.read_bytes() == before
