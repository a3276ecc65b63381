"""Strict readers, atomic writers."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgelab.errors import DataError, JudgelabError, RunError
from judgelab.study.tables import (
    csv_text,
    jsonl_text,
    read_csv,
    read_lines,
    read_table,
    read_text,
    write_csv,
    write_jsonl,
    write_text,
)


def test_bom_and_crlf_are_accepted(project):
    path = project.root / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfname,score\r\nx,1\r\ny,2\r\n")
    file = read_csv(path)
    assert file.columns == ("name", "score")
    assert file.rows == ((2, {"name": "x", "score": "1"}), (3, {"name": "y", "score": "2"}))


def test_lines_are_numbered_as_in_the_file(project):
    path = project.root / "t.jsonl"
    # U+2028 ends a line for str.splitlines, but not in a JSON-lines file
    path.write_bytes("a\r\n\n \nb\u2028b\n".encode())
    assert read_lines(path) == [(1, "a"), (4, "b\u2028b")]


def test_rows_are_numbered_by_the_line_they_start_in(project):
    path = project.root / "t.csv"
    path.write_text('a,b\n"two\nlines",1\nx,2\n')
    assert [line for line, _ in read_csv(path).rows] == [2, 4]


def test_latin1_is_refused_with_byte_and_line(project):
    path = project.root / "t.csv"
    path.write_bytes("name\nplain\ncafé\n".encode("latin-1"))
    # "name\nplain\ncaf" has 14 bytes, so the é is byte 14, in line 3
    with pytest.raises(DataError, match=r"t\.csv: not UTF-8: byte 0xe9 at position 14 in line 3"):
        read_text(path)


def test_utf16_is_refused(project):
    path = project.root / "t.csv"
    path.write_bytes("name\n".encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16"):
        read_text(path)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"  \r\n"])
def test_empty_file_is_refused(project, content):
    path = project.root / "t.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"t\.csv: the file is empty"):
        read_csv(path)


def test_missing_file_and_folder_are_refused(project):
    with pytest.raises(DataError, match=r"nothing\.csv: no such file"):
        read_csv(project.root / "nothing.csv")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_csv(project.root)


def test_missing_import_says_how_to_make_it(project):
    with pytest.raises(DataError, match=r"make it with `judgelab import FORMAT FOLDER --run llmbar-natural`"):
        read_text(project.outputs / "llmbar-natural" / "source" / "items.jsonl")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3\n4,5,6\n", r"2 of 3 rows do not have the 2 fields of the header; first line 3 with 1"),
        ("a,a\n1,2\n", r"columns named more than once: 'a'"),
        ("a,\n1,2\n", r"line 1 must name every column"),
        ('a,b\n1,"2\n', r"not valid CSV in line 2"),
        ('a,b\n1,"2"x\n', r"not valid CSV in line 2"),
    ],
)
def test_broken_csv_is_refused(project, content, message):
    path = project.root / "t.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_csv(path)


@given(st.binary(max_size=200) | st.text(alphabet='a,"\n\r\x00é', max_size=60).map(str.encode))
def test_reading_random_bytes_gives_rows_or_a_data_error(content):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGELAB_ROOT", folder)
        path = Path(folder) / "t.csv"
        path.write_bytes(content)
        with contextlib.suppress(DataError):
            file = read_csv(path)
            assert all(tuple(row) == file.columns for _, row in file.rows)


def test_csv_text_has_twelve_digits_lf_and_empty_cells():
    frame = pd.DataFrame({"a": [1 / 3, np.nan], "b": [0.1 + 0.2, "x"], "n": pd.array([1, None], dtype="Int64")})
    assert csv_text(frame) == "a,b,n\n0.333333333333,0.3,1\n,x,\n"


def test_jsonl_text_keeps_other_scripts_and_refuses_nan():
    assert jsonl_text([{"b": "ü", "a": 1}]) == '{"b": "ü", "a": 1}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        jsonl_text([{"a": float("nan")}])


def test_table_comes_back_with_names_as_text_and_counts_as_integers(project):
    path = project.root / "t.csv"
    frame = pd.DataFrame(
        {
            "item_id": ["007", "NA"],
            "human": ["TIE", None],
            "estimate": [0.5, np.nan],
            "n_used": pd.array([3, None], dtype="Int64"),
            "note": ["", ""],
        }
    )
    write_csv(frame, path)
    back = read_table(path)
    assert back["item_id"].tolist() == ["007", "NA"]
    assert back["human"].isna().tolist() == [False, True]
    assert back["n_used"].dtype == "Int64"
    assert back["note"].tolist() == ["", ""]
    assert np.isnan(back["estimate"][1])


def test_missing_table_says_so(project):
    with pytest.raises(RunError, match=r"outputs/r/tables/agreement\.csv is missing: run the stage"):
        read_table(project.outputs / "r" / "tables" / "agreement.csv")


def test_writing_replaces_the_whole_file_and_leaves_nothing_else(project):
    path = project.root / "new" / "t.txt"
    write_text("first, and longer", path)
    write_text("second", path)
    assert path.read_text() == "second"
    assert [entry.name for entry in path.parent.iterdir()] == ["t.txt"]


def test_half_a_surrogate_pair_is_written_as_its_escape(project):
    path = project.root / "t.jsonl"
    write_jsonl([{"reply": "\ud83d!"}], path)
    assert path.read_bytes() == b'{"reply": "\\ud83d!"}\n'
    assert json.loads(path.read_text()) == {"reply": "\ud83d!"}


def test_files_follow_the_umask(project):
    before = os.umask(0o027)
    try:
        write_text("text", project.root / "t.txt")
    finally:
        os.umask(before)
    assert (project.root / "t.txt").stat().st_mode & 0o777 == 0o640


FULL_DISK = """
import resource, sys
from pathlib import Path
from judgelab.errors import RunError
from judgelab.study.tables import write_text
path = Path(sys.argv[1])
write_text("old", path)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_text("x" * 5000, path)
except RunError as error:
    print(error)
"""


def test_a_full_disk_keeps_what_was_there(project):
    """A limit on the size of files fails in write(2), as a full disk does."""
    path = project.outputs / "r" / "tables" / "t.csv"
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout.startswith("cannot write outputs/r/tables/t.csv: File too large; ")
    assert "what was there before is kept" in done.stdout
    assert path.read_text() == "old"
    assert [entry.name for entry in path.parent.iterdir()] == ["t.csv"]


def test_no_space_left_is_told_in_the_systems_words(project, monkeypatch):
    def full(handle: int) -> None:
        # /dev/full refuses every byte with ENOSPC
        with Path("/dev/full").open("wb", buffering=0) as file:
            file.write(b"x")

    monkeypatch.setattr("judgelab.study.tables.os.fsync", full)
    with pytest.raises(RunError, match=r"cannot write outputs/r/t\.csv: No space left on device; "):
        write_text("text", project.outputs / "r" / "t.csv")
    assert list((project.outputs / "r").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_run_error(project):
    (project.root / "file").write_text("")
    with pytest.raises(JudgelabError, match=r"cannot write file/t\.csv: "):
        write_text("text", project.root / "file" / "t.csv")
