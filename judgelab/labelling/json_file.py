"""JSON that another tool has written: read whole, or told what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from judgelab.errors import DataError
from judgelab.project import shown
from judgelab.study.tables import read_lines, read_text, write_text

__all__ = ["read_records", "text_of", "write_json"]


def read_records(path: Path, what: str) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a JSON list or of JSON lines, each with where it stands (``record 3``, or ``line 3``).

    Raises
    ------
    DataError
        If the file is missing, empty, not UTF-8, not JSON, or holds anything but objects; ``what`` says in the message
        which file is needed.
    """
    where = shown(path)
    try:
        values = json.loads(read_text(path))
        entries = [(f"record {place}", value) for place, value in enumerate(values, 1)] if _is_list(values) else None
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        entries = _lines(path, what, error)
    if entries is None:
        entries = [("line 1", values)]
    wrong = [place for place, value in entries if not isinstance(value, dict)]
    if wrong:
        raise DataError(f"{where}: {len(wrong)} of {len(entries)} are no objects, first {wrong[0]}; needed is {what}")
    return entries


def text_of(value: Any) -> str:
    """A text field as it is, a list of texts joined by line ends, and nothing for whatever else."""
    if isinstance(value, list):
        return "\n".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def write_json(value: Any, path: Path) -> Path:
    """Write JSON in ASCII: whatever a text holds stands as its escape. Returns the path."""
    write_text(json.dumps(value, ensure_ascii=True, indent=1, allow_nan=False) + "\n", path)
    return path


def _lines(path: Path, what: str, error: Exception) -> list[tuple[str, Any]]:
    entries = []
    for number, line in read_lines(path):
        try:
            entries.append((f"line {number}", json.loads(line)))
        except (ValueError, RecursionError):
            told = error if number == 1 else "it holds no JSON"
            raise DataError(f"{shown(path)}: not JSON, line {number}: {told}; needed is {what}") from None
    return entries


def _is_list(values: Any) -> bool:
    return isinstance(values, list)
