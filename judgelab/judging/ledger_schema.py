"""The ledger's tables by schema version, and the way from an earlier version to this one."""

from __future__ import annotations

import sqlite3

from judgelab.judging.sqlite_file import create_tables, run_script

__all__ = ["SCHEMA_VERSION", "create", "migrate"]

SCHEMA_VERSION = 2

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
    reasoning TEXT, tokens_cached INTEGER, tokens_reasoning INTEGER, cost REAL, currency TEXT, logprobs TEXT,
    batch_id TEXT,
    UNIQUE (judge, item_id, strategy, pass, presentation, config_sha256, prompt_sha256, repeat)
);
CREATE TABLE attempts (
    call_id INTEGER NOT NULL REFERENCES calls (id), number INTEGER NOT NULL,
    outcome TEXT NOT NULL, reason TEXT, detail TEXT, reply TEXT, finished_at TEXT NOT NULL, latency_seconds REAL,
    tokens_in INTEGER, tokens_out INTEGER, cost REAL, estimated INTEGER NOT NULL DEFAULT 0,
    UNIQUE (call_id, number)
);
CREATE TABLE plan (judge TEXT, strategy TEXT, pass TEXT, calls INTEGER NOT NULL, complete_sha256 TEXT,
    PRIMARY KEY (judge, strategy, pass));
CREATE TABLE judges (judge TEXT NOT NULL, config_sha256 TEXT NOT NULL, capabilities TEXT, first_seen TEXT NOT NULL,
    PRIMARY KEY (judge, config_sha256));
CREATE TABLE batches (token TEXT PRIMARY KEY, judge TEXT NOT NULL, config_sha256 TEXT NOT NULL, strategy TEXT NOT NULL,
    pass TEXT NOT NULL, keys BLOB NOT NULL, calls INTEGER NOT NULL, done INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL, cost REAL NOT NULL, created REAL NOT NULL, ended_at TEXT, batch_id TEXT, note TEXT,
    status TEXT NOT NULL CHECK (status IN ('submitting', 'submitted', 'merged', 'void')));
CREATE INDEX calls_by_pass ON calls (judge, strategy, pass, status, config_sha256, cost);
"""

# Version 1 knew no usage of single attempts: a call's tokens go to its last attempt, which made the reply.
_FROM_1 = """
ALTER TABLE calls ADD COLUMN reasoning TEXT;
ALTER TABLE calls ADD COLUMN tokens_cached INTEGER;
ALTER TABLE calls ADD COLUMN tokens_reasoning INTEGER;
ALTER TABLE calls ADD COLUMN cost REAL;
ALTER TABLE calls ADD COLUMN currency TEXT;
ALTER TABLE calls ADD COLUMN logprobs TEXT;
ALTER TABLE calls ADD COLUMN batch_id TEXT;
ALTER TABLE attempts ADD COLUMN tokens_in INTEGER;
ALTER TABLE attempts ADD COLUMN tokens_out INTEGER;
ALTER TABLE attempts ADD COLUMN cost REAL;
ALTER TABLE attempts ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;
ALTER TABLE plan ADD COLUMN complete_sha256 TEXT;
CREATE TABLE judges (judge TEXT NOT NULL, config_sha256 TEXT NOT NULL, capabilities TEXT, first_seen TEXT NOT NULL,
    PRIMARY KEY (judge, config_sha256));
CREATE TABLE batches (token TEXT PRIMARY KEY, judge TEXT NOT NULL, config_sha256 TEXT NOT NULL, strategy TEXT NOT NULL,
    pass TEXT NOT NULL, keys BLOB NOT NULL, calls INTEGER NOT NULL, done INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL, cost REAL NOT NULL, created REAL NOT NULL, ended_at TEXT, batch_id TEXT, note TEXT,
    status TEXT NOT NULL CHECK (status IN ('submitting', 'submitted', 'merged', 'void')));
UPDATE attempts SET tokens_in = c.tokens_in, tokens_out = c.tokens_out FROM calls c
    WHERE c.id = attempts.call_id AND c.attempts = attempts.number;
INSERT INTO judges SELECT c.judge, c.config_sha256, NULL, coalesce(min(a.finished_at), '')
    FROM calls c LEFT JOIN attempts a ON a.call_id = c.id GROUP BY c.judge, c.config_sha256;
CREATE INDEX calls_by_pass ON calls (judge, strategy, pass, status, config_sha256, cost);
"""
_MIGRATIONS = {1: _FROM_1}


def create(database: sqlite3.Connection) -> None:
    """Make the tables of this version in a new file. The caller holds the transaction."""
    create_tables(database, _TABLES, SCHEMA_VERSION)


def migrate(database: sqlite3.Connection, version: int) -> None:
    """Bring the tables of an earlier version to this one. The caller holds the transaction.

    Another process may have done it while this one waited for that transaction: then there is nothing to do.
    """
    for step in range(version, SCHEMA_VERSION):
        run_script(database, _MIGRATIONS[step])
        database.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(step + 1),))
