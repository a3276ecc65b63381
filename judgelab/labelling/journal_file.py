"""A reviewer's journal as a file: who may write to it, its last line after a kill, and what can be read of it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Generic

from judgelab.errors import LabelError
from judgelab.labelling.records import LabelRecord, Rules
from judgelab.labelling.standing import Reader, RecordT, Standing
from judgelab.project import shown
from judgelab.study.protocol import Study

__all__ = [
    "JournalFile",
    "check_case",
    "lock_file",
    "mend_end",
    "read_folder",
    "read_journal",
    "read_journals",
    "sync_folder",
]

BOM = b"\xef\xbb\xbf"


@dataclass
class JournalFile(Generic[RecordT]):
    """What a journal holds: the reviewer, which decisions count, and the lines that could not be used, one by one."""

    reviewer: str
    path: Path
    standing: Standing[RecordT] = field(default_factory=Standing)
    problems: tuple[str, ...] = ()
    last_record: int = 0

    @property
    def where(self) -> str:
        """The path as it is shown to people."""
        return shown(self.path)


def read_journals(
    folder: Path, *, study: Study, known: Collection[str] | None = None
) -> list[JournalFile[LabelRecord]]:
    """Every reviewer's journal of pairs in a folder, by name, without a lock: reviewers may be writing.

    No journal where there is no folder.

    Raises
    ------
    LabelError
        If a journal cannot be read. Lines that cannot be used are told in ``problems``; the others are kept.
    """
    return read_folder(folder, Rules.of(study, known))


def read_folder(folder: Path, rules: Reader[RecordT]) -> list[JournalFile[RecordT]]:
    """As :func:`read_journals`, for records of any sort."""
    try:
        return [read_journal(path, path.stem, rules) for path in sorted(folder.glob("*.jsonl"))]
    except OSError as error:
        raise LabelError(f"cannot read {shown(folder)}: {error.strerror or error}") from None


def read_journal(path: Path, reviewer: str, rules: Reader[RecordT]) -> JournalFile[RecordT]:
    """What a file holds; nothing if it is not there. Lines that cannot be used are told, the others are kept."""
    file = JournalFile[RecordT](reviewer, path)
    problems: list[str] = []
    seen: dict[int, int] = {}
    content = path.read_bytes().removeprefix(BOM) if path.exists() else b""
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            record = _parsed(line, rules, file)
            if record.reviewer != reviewer:  # a copy of another's journal is no second opinion
                raise ValueError(f"reviewer is {record.reviewer!r}, but the journal is that of {reviewer!r}")
            if record.record in seen:
                raise ValueError(f"record {record.record} is there already, in line {seen[record.record]}")
            file.standing.add(record)
            seen[record.record] = number
        except ValueError as error:
            problems.append(f"{file.where}, line {number}: {error}; the line is left out")
    file.problems = tuple(problems)
    return file


def _parsed(line: bytes, rules: Reader[RecordT], file: JournalFile[RecordT]) -> RecordT:
    try:
        values = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except (ValueError, RecursionError):
        raise ValueError("not a whole JSON object") from None
    given = values.get("record") if isinstance(values, dict) else None
    if isinstance(given, int):  # of a wrong line, too: no record to come may have its number
        file.last_record = max(file.last_record, given)
    return rules.read(values)


def check_case(folder: Path, reviewer: str) -> None:
    """Refuse a name of which some file systems make the same file as of another reviewer's.

    Raises
    ------
    LabelError
        If there is a journal of a name that differs in upper and lower case only.
    """
    for path in folder.glob("*.jsonl"):
        if path.stem != reviewer and path.stem.lower() == reviewer.lower():
            raise LabelError(
                f"{shown(path)} is the journal of {path.stem!r}, which differs from {reviewer!r} in upper and lower "
                "case only; take that name, or another one"
            )


def lock_file(lock: Path, path: Path, session: str) -> tuple[int, list[str]]:
    """Lock a journal by a file beside it, which then names the session.

    Returns
    -------
    int, list of str
        The handle that holds the lock until it is closed; a note if the last session ended without closing.

    Raises
    ------
    LabelError
        If another session holds it.
    OSError
        If the file cannot be made or locked.
    """
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabelError(
                f"{shown(path)}: {_holder(handle) or 'another session'} is writing under the name {path.stem!r}; "
                "close it first (it may be another browser tab), or take another name. Nothing was touched"
            ) from None
        before = _holder(handle)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        content = json.dumps({"session": session, "process": os.getpid(), "since": now}).encode()
        os.pwrite(handle, content, 0)
        os.ftruncate(handle, len(content))
    except BaseException:
        os.close(handle)
        raise
    return handle, [f"{before} ended without closing; its decisions are kept"] if before else []


def _holder(handle: int) -> str:
    """Whom a lock file names; empty if nobody."""
    try:
        told = json.loads(os.pread(handle, 4096, 0))
        process = "this process" if told["process"] == os.getpid() else f"process {told['process']}"
        return f"session {told['session']} ({process}, since {told['since']})"
    except (ValueError, TypeError, KeyError):
        return ""


def mend_end(path: Path) -> list[str]:
    """Complete a last line that lacks its end only; set a half-written one aside, in a file beside the journal.

    The file is ``<reviewer>.jsonl.broken``; the note that is returned says so. Call it with the lock held.
    """
    content = path.read_bytes() if path.exists() else b""
    start = content.rfind(b"\n") + 1
    tail = content[start:]
    if not tail:
        return []
    try:
        json.loads(tail.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        aside = path.with_name(f"{path.name}.broken")
        _append_bytes(aside, tail + b"\n")  # before it leaves the journal
        sync_folder(path.parent)
        with path.open("r+b") as file:
            file.truncate(start)
            os.fsync(file.fileno())
        line = content.count(b"\n") + 1
        return [f"{shown(path)}, line {line} was half written ({len(tail)} bytes); it is kept in {shown(aside)}"]
    _append_bytes(path, b"\n")
    return []


def _append_bytes(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Make a new file's name last, too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
