"""Reading and writing files: strict about what comes in, atomic about what goes out.

Readers refuse with the byte, the line and the column; they never guess an encoding. Writers go through a
temporary file beside the target, so that a full disk or a killed process leaves the old file as it was.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_object_dtype

from judgelab.errors import DataError, RunError
from judgelab.project import outputs_folder, shown

__all__ = [
    "CsvFile",
    "csv_text",
    "jsonl_text",
    "read_csv",
    "read_lines",
    "read_raw_lines",
    "read_table",
    "read_text",
    "write_bytes",
    "write_csv",
    "write_jsonl",
    "write_text",
]

BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
FLOAT_FORMAT = "%.12g"
LONGEST_FIELD = 16_000_000

# Columns of our own tables that hold names: "007" must come back as text, "" as no text.
NAMES = frozenset(
    {"aggregated", "category", "direct", "first", "human", "item_id", "judged", "label", "original"}
    | {"original_first", "pair_original", "pair_swapped", "preference", "reviewer_id", "rule", "second"}
    | {"source", "split", "swapped", "system", "system_x", "system_y", "term", "verdict"}
)
TEXTS = frozenset({"judge", "method", "note", "pass", "provenance", "slice", "strategy"})
COUNTS = frozenset({"denominator", "n_excluded", "n_used", "numerator"})


@dataclass(frozen=True)
class CsvFile:
    """A CSV file as text: its columns, and each row with the number of the line it starts in."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, dict[str, str]], ...]


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, without a byte order mark.

    Raises
    ------
    DataError
        If the file is missing, cannot be read, is empty, or is not UTF-8 (naming byte and line).
    """
    content = _content(path)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{shown(path)}: not UTF-8: byte 0x{content[error.start]:02x} at position {error.start} "
            f"in line {line} (Latin-1 or Windows-1252, perhaps); save the file as UTF-8"
        ) from None


def read_lines(path: Path) -> list[tuple[int, str]]:
    """The lines of a UTF-8 file that are not blank, each with its number in the file (from 1); LF or CRLF."""
    lines = enumerate(read_text(path).split("\n"), start=1)
    return [(number, line.removesuffix("\r")) for number, line in lines if line.strip()]


def read_raw_lines(path: Path) -> list[tuple[int, bytes]]:
    """As :func:`read_lines`, without decoding: for files in which single lines may be of a wrong encoding."""
    lines = enumerate(_content(path).split(b"\n"), start=1)
    return [(number, line.removesuffix(b"\r")) for number, line in lines if line.strip()]


def read_csv(path: Path) -> CsvFile:
    """Read a comma-separated UTF-8 file whose first line names the columns; every value stays text.

    Raises
    ------
    DataError
        If there is no header, a column is named twice or not at all, a row has another number of fields than
        the header, or the quoting is broken; naming the first line and how many rows of how many.
    """
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        columns = _columns(next(reader, []), path)
        rows = _numbered(reader)
    except csv.Error as error:
        raise DataError(f"{shown(path)}: not valid CSV in line {reader.line_num}: {error}") from None
    uneven = [(line, len(row)) for line, row in rows if len(row) != len(columns)]
    if uneven:
        line, width = uneven[0]
        raise DataError(
            f"{shown(path)}: {len(uneven)} of {len(rows)} rows do not have the {len(columns)} fields of the "
            f"header; first line {line} with {width}"
        )
    return CsvFile(columns, tuple((line, dict(zip(columns, row, strict=True))) for line, row in rows))


def read_table(path: Path) -> pd.DataFrame:
    """Read a table that :func:`write_csv` wrote. Names stay text; empty cells are NaN, in notes ``""``.

    Raises
    ------
    RunError
        If the table is not there.
    """
    if not path.is_file():
        raise RunError(f"{shown(path)} is missing: run the stage that writes it first")
    header = read_csv(path).columns
    types: dict[str, Any] = {name: "str" for name in header if name in NAMES | TEXTS}
    types |= {name: "Int64" for name in header if name in COUNTS}
    try:
        table = pd.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])
    except ValueError as error:
        raise DataError(f"{shown(path)}: {error}") from None
    for name in TEXTS & set(header):
        table[name] = table[name].fillna("")
    return table


def csv_text(frame: pd.DataFrame) -> str:
    """A frame as CSV text: floats with 12 significant digits, LF, no index, missing values empty."""
    plain = frame.copy()
    for name in plain.columns:
        if is_object_dtype(plain[name].dtype):
            plain[name] = plain[name].map(_cell)
    return str(plain.to_csv(index=False, float_format=FLOAT_FORMAT, lineterminator="\n"))


def jsonl_text(records: Iterable[Mapping[str, Any]]) -> str:
    """Records as JSON lines, keys in the given order, other scripts than Latin unescaped."""
    return "".join(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records)


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as :func:`csv_text`, atomically (see :func:`write_bytes`)."""
    write_text(csv_text(frame), path)


def write_jsonl(records: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write records as JSON lines, atomically (see :func:`write_bytes`)."""
    write_text(jsonl_text(records), path)


def write_text(text: str, path: Path) -> None:
    """Write text as UTF-8 with the line ends it has, atomically (see :func:`write_bytes`).

    Half a surrogate pair, which a model's reply may hold and UTF-8 may not, is written as its escape.
    """
    write_bytes(text.encode("utf-8", errors="backslashreplace"), path)


def write_bytes(content: bytes, path: Path) -> None:
    """Write a file so that it is there whole or not at all.

    Raises
    ------
    RunError
        If the disk is full or the folder cannot be written. What the file held before is kept.
    """
    # a name of its own for each writer; made by open() and not by mkstemp, so that the umask holds
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise RunError(
            f"cannot write {shown(path)}: {error.strerror or error}; make room or give write access, then "
            "run this again; what was there before is kept"
        ) from None


def _content(path: Path) -> bytes:
    """The bytes of a file that is there and not empty, without a byte order mark."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{shown(path)}: no such file{_import_hint(path)}") from None
    except OSError as error:
        raise DataError(f"{shown(path)}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DataError(f"{path.name!r}: cannot be a file's name: {error}") from None
    if content.startswith(UTF16_BOMS):
        raise DataError(f"{shown(path)}: not UTF-8: line 1 begins as UTF-16 does (byte 0); save it as UTF-8")
    content = content.removeprefix(BOM)
    if not content.strip():
        raise DataError(f"{shown(path)}: the file is empty")
    return content


def _import_hint(path: Path) -> str:
    """How to make a file of ``outputs/<run>/source`` that is not there."""
    inside = path.resolve()
    if not inside.is_relative_to(outputs_folder()):
        return ""
    parts = inside.relative_to(outputs_folder()).parts
    if len(parts) < 3 or parts[1] != "source":
        return ""
    return f"; make it with `judgelab import FORMAT FOLDER --run {parts[0]}` (formats: judgelab import --help)"


def _columns(header: list[str], path: Path) -> tuple[str, ...]:
    """The header, if each column has a name of its own."""
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise DataError(f"{shown(path)}: columns named more than once: {', '.join(map(repr, twice))}")
    if not header or not all(name.strip() for name in header):
        raise DataError(f"{shown(path)}: line 1 must name every column; it reads {header!r}")
    return tuple(header)


def _numbered(reader: Any) -> list[tuple[int, list[str]]]:
    """Each row with the line it starts in; a quoted field may run over several lines."""
    rows, start = [], reader.line_num + 1
    for row in reader:
        if row:
            rows.append((start, row))
        start = reader.line_num + 1
    return rows


def _cell(value: Any) -> Any:
    """A float in a column of mixed values, formatted as in a column of floats."""
    return FLOAT_FORMAT % value if isinstance(value, float) and value == value else value
