"""The ledger: one entry a call, nothing finished is overwritten, and every damaged file has its message."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import sqlite3
import threading

import pytest

from judgelab.errors import LedgerError
from judgelab.judging.ledger import SCHEMA_VERSION, Attempt, CallKey, Entry, Ledger

KEY = CallKey("judge", "i1", "pairwise", "original", ("ALPHA", "BETA"), "config", "prompt")
VERDICT = {"winner": "A", "confidence": "high", "reason_codes": []}


def attempt(outcome="verdict", **values):
    return Attempt(outcome=outcome, finished_at="2024-01-01T00:00:00.000+00:00", **values)


def entry(status="verdict", *, attempts=1, key=KEY, **values):
    values.setdefault("verdict", VERDICT if status == "verdict" else None)
    outcome = {"verdict": "verdict", "unusable": "malformed", "failed": "transient"}[status]
    return Entry(key, status, attempts=tuple(attempt(outcome) for _ in range(attempts)), **values)


@pytest.fixture
def path(project):
    return project / "outputs" / "ledger.sqlite"


def test_a_call_comes_back_as_it_was_written(path):
    with Ledger(path) as ledger:
        ledger.record(
            Entry(
                KEY, "verdict", VERDICT, reply="{\x00}", model="m", tokens_in=7, tokens_out=2, latency_seconds=0.5,
                attempts=(attempt("malformed", reply="x", reason="no_json", detail="d"), attempt(reply="{}")),
            )
        )  # fmt: skip
    with Ledger(path, read_only=True) as ledger:
        calls, attempts = ledger.calls(), ledger.attempts()
        assert ledger.finished("judge", "config") == {KEY.values()}
        assert ledger.finished("judge", "other") == set()
    row = calls.iloc[0]
    assert json.loads(row["verdict"]) == VERDICT
    assert (row["reply"], row["model"], row["tokens_in"], row["attempts"]) == ("{\x00}", "m", 7, 2)
    assert attempts[["number", "outcome"]].to_numpy().tolist() == [[1, "malformed"], [2, "verdict"]]


@pytest.mark.parametrize(
    "change",
    [
        {"judge": "x"}, {"item_id": "x"}, {"strategy": "direct"}, {"pass_": "swapped"},
        {"presentation": ("BETA", "ALPHA")}, {"config_sha256": "x"}, {"prompt_sha256": "x"}, {"repeat": 1},
    ],
)  # fmt: skip
def test_each_part_of_the_key_counts(path, change):
    with Ledger(path) as ledger:
        ledger.record(entry())
        ledger.record(entry(key=dataclasses.replace(KEY, **change)))
        assert len(ledger.calls()) == 2


@pytest.mark.parametrize("status", ["verdict", "unusable"])
@pytest.mark.parametrize("later", ["verdict", "unusable", "failed"])
def test_a_finished_call_is_never_overwritten(path, status, later):
    with Ledger(path) as ledger:
        ledger.record(entry(status, reply="first"))
        with pytest.raises(LedgerError, match="finished already and is kept"):
            ledger.record(entry(later, reply="second"))
        assert ledger.calls()[["status", "reply", "attempts"]].to_numpy().tolist() == [[status, "first", 1]]
        assert len(ledger.attempts()) == 1


def test_a_failed_call_is_replaced_and_its_attempts_add_up(path):
    with Ledger(path) as ledger:
        ledger.record(entry("failed", attempts=3, reason="timeout"))
        assert ledger.finished("judge", "config") == set()
        ledger.record(entry("failed", attempts=3, reason="transient_error"))
    with Ledger(path) as ledger:
        ledger.record(entry("verdict", attempts=2))
        call = ledger.calls().iloc[0]
        assert (call["status"], call["attempts"], call["reason"]) == ("verdict", 8, None)
        attempts = ledger.attempts()
    assert attempts["number"].tolist() == list(range(1, 9))
    assert attempts["outcome"].tolist() == ["transient"] * 6 + ["verdict"] * 2


def test_many_results_are_written_together_or_not_at_all(path):
    with Ledger(path) as ledger:
        ledger.record(entry())
        others = [entry(key=dataclasses.replace(KEY, item_id=f"i{number}")) for number in (2, 3, 1, 4)]
        with pytest.raises(LedgerError):
            ledger.record_all(others)
        assert ledger.calls()["item_id"].tolist() == ["i1"]
        ledger.record_all(others[:2])
        assert ledger.calls()["item_id"].tolist() == ["i1", "i2", "i3"]


def test_half_a_surrogate_pair_in_a_reply_is_kept_visibly(path):
    with Ledger(path) as ledger:
        ledger.record(dataclasses.replace(entry(reply="a\ud83db"), attempts=(attempt(reply="a\ud83db"),)))
        assert ledger.calls()["reply"].tolist() == [r"a\ud83db"]
        assert ledger.attempts()["reply"].tolist() == [r"a\ud83db"]


def test_progress_counts_what_need_not_be_asked_again(path):
    with Ledger(path) as ledger:
        ledger.set_plan("judge", "pairwise", "original", 3)
        ledger.set_plan("judge", "pairwise", "original", 4)
        ledger.set_plan("judge", "direct", "direct", 8)
        ledger.record(entry())
        ledger.record(entry("unusable", key=dataclasses.replace(KEY, item_id="i2")))
        ledger.record(entry("failed", key=dataclasses.replace(KEY, item_id="i3")))
        progress = ledger.progress().set_index("strategy")
    assert progress.loc["pairwise", ["planned", "done"]].tolist() == [4, 2]
    assert progress.loc["direct", ["planned", "done"]].tolist() == [8, 0]


def test_two_ledgers_write_in_turn(path):
    with Ledger(path) as one, Ledger(path) as two:
        for number, ledger in enumerate((one, two, one, two)):
            ledger.record(entry(key=dataclasses.replace(KEY, item_id=f"i{number}")))
        assert len(one.calls()) == len(two.calls()) == 4
        with pytest.raises(LedgerError, match="finished already"):
            two.record(entry(key=dataclasses.replace(KEY, item_id="i0")))


def test_many_may_open_a_new_ledger_at_once(path):
    problems, start = [], threading.Barrier(8)

    def open_one(number):
        start.wait()
        try:
            with Ledger(path) as ledger:
                ledger.record(entry(key=dataclasses.replace(KEY, item_id=f"i{number}")))
        except LedgerError as error:
            problems.append(error)

    threads = [threading.Thread(target=open_one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with Ledger(path, read_only=True) as ledger:
        assert len(ledger.calls()) == 8


def test_tables_that_another_process_made_in_the_meantime(path, monkeypatch):
    with Ledger(path) as ledger:
        ledger.record(entry())
    real, looks = Ledger._tables, []

    def before_the_other(self):
        looks.append(self)
        return set() if len(looks) == 1 else real(self)

    monkeypatch.setattr(Ledger, "_tables", before_the_other)
    with Ledger(path) as ledger:
        assert len(ledger.calls()) == 1


def test_a_transaction_that_was_broken_off_leaves_nothing(path):
    with Ledger(path) as ledger:
        ledger.record(entry())

        def broken():
            yield entry(key=dataclasses.replace(KEY, item_id="i2"))
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ledger.record_all(broken())
        assert ledger.calls()["item_id"].tolist() == ["i1"]
        ledger.record(entry(key=dataclasses.replace(KEY, item_id="i3")))


def test_no_ledger_yet(path):
    with pytest.raises(LedgerError, match=r"outputs/ledger\.sqlite: no such ledger; nothing has been judged"):
        Ledger(path, read_only=True)
    assert not path.exists()


def foreign(path):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE recipes (name TEXT)")
    db.commit()
    db.close()


def text(path):
    path.write_text("item_id,verdict\n" * 200)


def truncated(path):
    with Ledger(path) as ledger:
        ledger.record_all(entry(key=dataclasses.replace(KEY, item_id=f"i{number}")) for number in range(200))
    os.truncate(path, 5000)


def newer(path):
    with Ledger(path):
        pass
    db = sqlite3.connect(path)
    db.execute("UPDATE meta SET value = '99'")
    db.commit()
    db.close()


BAD_FILES = {
    foreign: "not a judgelab ledger; it was not touched",
    text: "damaged or not a ledger",
    truncated: "damaged or not a ledger",
    newer: f"schema version 99; this judgelab reads version {SCHEMA_VERSION}",
}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("make", BAD_FILES, ids=lambda make: make.__name__)
def test_a_file_that_is_no_usable_ledger_is_left_as_it_is(path, make, read_only):
    make(path)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(LedgerError, match=BAD_FILES[make]) as caught, Ledger(path, read_only=read_only) as ledger:
        ledger.calls()
    assert "outputs/ledger.sqlite: " in str(caught.value)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_a_read_only_ledger_cannot_be_written(path):
    with Ledger(path) as ledger:
        ledger.record(entry())
    with Ledger(path, read_only=True) as ledger:
        with pytest.raises(LedgerError, match=r"readonly.*Check the folder's permissions"):
            ledger.record(entry(key=dataclasses.replace(KEY, item_id="i2")))
        assert len(ledger.calls()) == 1


def test_a_place_where_no_file_can_be(project, path):
    path.write_text("a file, not a folder")
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(path / "ledger.sqlite")
    with pytest.raises(LedgerError, match="cannot be written"):
        Ledger(project / "outputs")


@pytest.fixture
def nobody():
    """Root may write everywhere: be nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


def test_a_folder_without_write_permission(path, request):
    path.parent.chmod(0o500)
    request.getfixturevalue("nobody")
    with pytest.raises(LedgerError, match=r"cannot be written\. Check the folder's permissions"):
        Ledger(path)


def test_a_full_disk_keeps_what_was_judged(path):
    with Ledger(path) as ledger:
        ledger.record(entry())
        pages = ledger._db.execute("PRAGMA page_count").fetchone()[0]
        ledger._db.execute(f"PRAGMA max_page_count = {pages}")
        big = entry(key=dataclasses.replace(KEY, item_id="i2"), reply="x" * 100_000)
        with pytest.raises(LedgerError, match=r"outputs/ledger\.sqlite: .*the disk is full\. Free some space"):
            ledger.record(big)
        assert ledger.calls()["item_id"].tolist() == ["i1"]
        ledger._db.execute(f"PRAGMA max_page_count = {pages + 1000}")
        ledger.record(big)  # the same connection goes on once there is room
        assert ledger.calls()["item_id"].tolist() == ["i1", "i2"]


class FullAtCommit:
    """A connection whose disk turns out to be full when a transaction is to be kept."""

    def __init__(self, db):
        self.db, self.full = db, True

    def execute(self, statement, *values):
        if statement == "COMMIT" and self.full:
            self.full = False
            raise sqlite3.OperationalError("database or disk is full")
        return self.db.execute(statement, *values)

    def __getattr__(self, name):
        return getattr(self.db, name)


def test_a_disk_that_is_full_at_commit_leaves_no_open_transaction(path):
    with Ledger(path) as ledger:
        ledger._db = FullAtCommit(ledger._db)
        with pytest.raises(LedgerError, match="the disk is full"):
            ledger.record(entry())
        ledger.record(entry())
        assert len(ledger.calls()) == 1


def test_a_ledger_that_another_process_holds(path):
    with Ledger(path) as ledger, Ledger(path) as other:
        ledger._db.execute("PRAGMA busy_timeout = 20")
        other._db.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process is writing to this run"):
            ledger.record(entry())
        other._db.execute("ROLLBACK")
        ledger.record(entry())
