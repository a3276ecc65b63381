"""The rows of a label sheet that came back, as text with their lines, whichever program has saved it."""

from __future__ import annotations

import csv
import io
import re
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from openpyxl import load_workbook

from judgelab.errors import DataError
from judgelab.labelling.sheet_layout import LABELS
from judgelab.project import shown
from judgelab.study.tables import LONGEST_FIELD

__all__ = ["SheetRows", "read_csv_rows", "read_workbook_rows"]

KNOWN = "task_id"
DELIMITERS = ",;\t"
ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
MOST_EMPTY = 1000
ENCODING_NOTE = (
    "not UTF-8; read as Windows-1252, in which other characters are lost: save it as CSV UTF-8, or use a workbook"
)
UNREADABLE = (zipfile.BadZipFile, ParseError, KeyError, ValueError, TypeError, AttributeError, IndexError, EOFError)


@dataclass(frozen=True)
class SheetRows:
    """Rows by column name (in small letters), each with its line, the columns as they are named, and notes."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, dict[str, str]], ...]
    notes: tuple[str, ...] = ()


def read_workbook_rows(path: Path) -> SheetRows:
    """The sheet ``Labels`` of a workbook, or the first one that has a column ``task_id``.

    Formulas are not computed: they stand as they were typed. Rows without any text are left out.

    Raises
    ------
    DataError
        If the file is no workbook, or has no such sheet.
    """
    content = _content(path)
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise DataError(
            f"{shown(path)}: no XLSX workbook; save it as Excel workbook (.xlsx), or import it as sheet-csv"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of drawings and the like that the library does not keep
            book = load_workbook(io.BytesIO(content), read_only=True)
            sheets = sorted(book.worksheets, key=lambda sheet: sheet.title != LABELS)
            tables = [_trimmed(sheet) for sheet in sheets]
    except UNREADABLE as error:
        raise DataError(f"{shown(path)}: the workbook cannot be read: {type(error).__name__}: {error}") from None
    table = next((rows for rows in tables if rows and KNOWN in _names(rows[0][1])), None)
    if table is None:
        raise DataError(
            f"{shown(path)}: none of its {len(tables)} sheets has a column {KNOWN} in its first row that is not empty"
        )
    return _rows(table, path, ())


def read_csv_rows(path: Path) -> SheetRows:
    """A CSV file with commas, semicolons or tabs, in UTF-8, UTF-16 or (told in the notes) Windows-1252.

    Raises
    ------
    DataError
        If the file is missing or empty, is no CSV, or has no column ``task_id``.
    """
    content = _content(path)
    if content.startswith(b"PK\x03\x04"):
        raise DataError(f"{shown(path)}: this is a workbook, no CSV; import it with --format xlsx")
    text, notes = _decoded(content)
    first, _, rest = text.partition("\n")
    skipped = 0
    if re.fullmatch("sep=.", first.strip()):  # which Excel writes and hides
        text, skipped = rest, 1
        first = rest.partition("\n")[0]
    delimiter = max(DELIMITERS, key=first.count)
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    table: list[tuple[int, Sequence[str]]] = []
    start = 1
    try:
        for row in reader:
            if any(value.strip() for value in row):
                table.append((start + skipped, row))
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{shown(path)}: not valid CSV in line {reader.line_num + skipped}: {error}") from None
    if not table or KNOWN not in _names(table[0][1]):
        raise DataError(f"{shown(path)}: its first line has no column {KNOWN}")
    return _rows(table, path, notes)


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{shown(path)}: no such file") from None
    except OSError as error:
        raise DataError(f"{shown(path)}: cannot be read: {error.strerror or error}") from None
    if not content.strip():
        raise DataError(f"{shown(path)}: the file is empty")
    return content


def _decoded(content: bytes) -> tuple[str, tuple[str, ...]]:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace"), ()
    try:
        return content.decode("utf-8-sig"), ()
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace"), (ENCODING_NOTE,)


def _trimmed(sheet: Any) -> list[tuple[int, Sequence[str]]]:
    """The rows of a worksheet that hold anything; a long empty stretch ends it."""
    sheet.reset_dimensions()
    table: list[tuple[int, Sequence[str]]] = []
    empty = 0
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        row = [_text(value) for value in cells]
        if any(value.strip() for value in row):
            table.append((number, row))
            empty = 0
        else:
            empty += 1
            if empty > MOST_EMPTY:
                break
    return table


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), str(value))


def _names(row: Iterable[str]) -> list[str]:
    return [value.strip().lower() for value in row]


def _rows(table: Sequence[tuple[int, Sequence[str]]], path: Path, notes: tuple[str, ...]) -> SheetRows:
    header, names = table[0][1], _names(table[0][1])
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise DataError(f"{shown(path)}: columns named more than once: {', '.join(twice)}")
    rows = []
    for line, row in table[1:]:
        padded = [*row, *[""] * (len(names) - len(row))]
        rows.append((line, {name: value for name, value in zip(names, padded, strict=False) if name}))
    return SheetRows(tuple(name.strip() for name in header if name.strip()), tuple(rows), notes)
