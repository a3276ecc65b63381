"""The match log's file survives what may happen: several processes, a kill, a full disk, and files of others."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from judgelab.errors import LedgerError
from judgelab.judging.ledger import Ledger
from judgelab.judging.match_log import Added, MatchLog
from judgelab.judging.match_log_schema import SCHEMA_VERSION

from .match_tables import P2, SYSTEMS, match, table, version


@pytest.fixture
def path(project):
    return project / "outputs" / "board" / "matches.sqlite"


@pytest.fixture
def log(path):
    with MatchLog(path) as opened:
        yield opened


ADD_MANY = """
import sys, pandas as pd
from pathlib import Path
from judgelab.judging.match_log import MatchLog
path, judge, rounds, size = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
for number in range(rounds):
    with MatchLog(path) as log:
        print("open", flush=True)
        if sys.argv[5] == "stop":
            seen = 0
            def look(statement):
                global seen
                seen += statement.startswith("INSERT INTO matches")
                if seen == size // 2:
                    print("middle", flush=True)
                    sys.stdin.read()
            log._db.execute("PRAGMA cache_size = 10")  # so that half of an addition is in the -wal file already
            log._db.set_trace_callback(look)
        items = [f"i{number}-{place}" for place in range(size)]
        matches = pd.DataFrame({"item_id": items, "judge": ["both", judge] * (size // 2), "system_x": "ALPHA",
                                "system_y": "BETA", "preference": "ALPHA"})
        log.add(matches, run=judge, study_id="s", protocol_sha256="p", items_sha256="i", rubric_version="r",
                prompt_version="v", systems=["ALPHA", "BETA"])
"""


def adding(path, judge, rounds, size, stop="go"):
    arguments = [sys.executable, "-c", ADD_MANY, str(path), judge, str(rounds), str(size), stop]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_processes_add_at_once(path):
    processes = [adding(path, judge, 8, 200) for judge in ("one", "two")]
    for process in processes:
        _, error = process.communicate(timeout=120)
        assert (process.returncode, error) == (0, "")
    with MatchLog(path, read_only=True) as log:
        judges = log.matches()["judge"].value_counts().to_dict()
    assert judges == {"both": 800, "one": 800, "two": 800}  # what both had is there once


def test_a_process_killed_while_it_adds_leaves_nothing_half_written(path):
    with MatchLog(path) as log:
        log.add(table(), **version())
        before = log.matches()
    with adding(path, "killed", 1, 2000, "stop") as process:
        assert process.stdout is not None
        assert [process.stdout.readline().strip() for _ in range(2)] == ["open", "middle"]
        with MatchLog(path, read_only=True) as log:  # a reader is not kept waiting, and sees what was there
            pd.testing.assert_frame_equal(log.matches(), before)
        assert path.with_name(f"{path.name}-wal").stat().st_size > 50_000
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    with MatchLog(path) as log:
        pd.testing.assert_frame_equal(log.matches(), before)
        assert len(log.versions()) == 1
        assert log.add(table(match(item_id="i2")), **version()) == Added(1, 0)
        assert log._db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_hundred_thousand_matches(log):
    size = 100_000
    drawn = np.random.default_rng(1).integers(0, 3, size)
    many = pd.DataFrame({"item_id": np.arange(size).astype(str), "judge": "j", "system_x": np.array(SYSTEMS)[drawn]})
    many["system_y"] = np.array(SYSTEMS)[(drawn + 1) % 3]
    many["preference"] = many["system_x"]
    assert log.add(many, **version()) == Added(size, 0)
    assert log.add(many.head(10), **version()) == Added(0, 10)
    assert log.matches()["item_id"].tolist() == many["item_id"].tolist()  # in the order in which they came
    assert log.counts()["matches"].sum() == 2 * size


def foreign(path):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE recipes (name TEXT)")
    db.close()


def ledger(path):
    with Ledger(path):
        pass


def text(path):
    path.write_text("system_x,system_y,winner\n" * 200)


def truncated(path):
    with MatchLog(path) as log:
        log.add(table(*(match(item_id=f"i{number}") for number in range(500))), **version())
    os.truncate(path, 5000)


def newer(path):
    with MatchLog(path) as log:
        log._db.execute("UPDATE meta SET value = '99'")


def nameless(path):
    with MatchLog(path) as log:
        log._db.execute("DELETE FROM meta")


BAD_FILES = {
    foreign: "not a judgelab match log; it was not touched",
    ledger: "not a judgelab match log; it was not touched",
    text: "damaged or not a match log",
    truncated: "damaged or not a match log",
    newer: f"schema version 99; this judgelab reads version {SCHEMA_VERSION}; a later judgelab wrote it: update",
    nameless: "schema version unknown",
}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("make", BAD_FILES, ids=lambda make: make.__name__)
def test_a_file_that_is_no_usable_log_is_left_as_it_is(path, make, read_only):
    path.parent.mkdir()
    make(path)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(LedgerError, match=BAD_FILES[make]) as caught, MatchLog(path, read_only=read_only) as log:
        log.matches()
    assert str(caught.value).startswith("outputs/board/matches.sqlite: ")
    assert "Traceback" not in str(caught.value)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_no_log_yet(path):
    with pytest.raises(LedgerError, match=r"outputs/board/matches\.sqlite: no such match log; no match was added"):
        MatchLog(path, read_only=True)
    assert not path.parent.exists()


def test_a_read_only_log_cannot_be_written(path):
    with MatchLog(path) as log:
        log.add(table(), **version())
    with MatchLog(path, read_only=True) as log:
        with pytest.raises(LedgerError, match=r"readonly.*Check the folder's permissions"):
            log.add(table(match(item_id="i2")), **version())
        assert len(log.matches()) == 1


def test_places_where_no_file_can_be(project, path):
    path.parent.write_text("a file, not a folder")
    with pytest.raises(LedgerError, match="its folder cannot be written: "):
        MatchLog(path)
    with pytest.raises(LedgerError, match="cannot be written"):
        MatchLog(project / "outputs")


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
    path.parent.mkdir()
    path.parent.chmod(0o500)
    request.getfixturevalue("nobody")
    with pytest.raises(LedgerError, match=r"cannot be written"):
        MatchLog(path)


def test_a_full_disk_and_a_waiting_process(log, path):
    log.add(table(), **version())
    pages = log._db.execute("PRAGMA page_count").fetchone()[0]
    log._db.execute(f"PRAGMA max_page_count = {pages}")
    many = table(*(match(item_id=f"i{number}") for number in range(2000)))
    with pytest.raises(LedgerError, match=r"the disk is full\. Free some space and add again"):
        log.add(many, **version(P2))
    assert len(log.matches(mix=True)) == len(log.versions()) == 1
    log._db.execute(f"PRAGMA max_page_count = {pages + 10_000}")
    log._db.execute("PRAGMA busy_timeout = 20")
    with MatchLog(path) as other:
        other._db.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process is writing to this log"):
            log.add(many, **version())
        other._db.execute("ROLLBACK")
    assert log.add(many, **version()) == Added(1999, 1)


def test_a_closed_log_says_so(path):
    with MatchLog(path) as log:
        pass
    with pytest.raises(LedgerError, match="closed database"):
        log.matches()
