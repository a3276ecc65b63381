"""How a label sheet looks, as a workbook and as a CSV file. Answers are untrusted text: no cell becomes a formula.

In a workbook every text is a string cell that is marked as text. In CSV a text that a spreadsheet would compute
(it starts with ``= + - @`` or their wide forms, blank space before them or not) gets an apostrophe in front; a text
that has apostrophes there already gets one more, so that taking one off gives the text back.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

from openpyxl import Workbook
from openpyxl.cell.cell import Cell
from openpyxl.styles import Alignment, Font, PatternFill, Protection
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

__all__ = [
    "CELL_LIMIT",
    "INSTRUCTIONS",
    "LABELS",
    "Layout",
    "cell_length",
    "cell_text",
    "csv_bytes",
    "neutral",
    "plain",
    "workbook_bytes",
]

INSTRUCTIONS, LABELS = "Instructions", "Labels"
CELL_LIMIT = 32_767
WIDTHS = {"number": 8, "task_id": 15, "reviewer": 12, "task": 40, "context": 30, "label": 16, "check": 15}
WIDTHS |= {"reason": 30, "note": 30}
ANSWER_WIDTH, NUMBER_WIDTH = 60, 12
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
NO_XML = re.compile("[\ufffe\uffff\ud800-\udfff]")
ESCAPE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
COMPUTED = re.compile("'*\\s*[=+\\-@\t\r\uff1d\uff0b\uff0d\uff20]")


@dataclass(frozen=True)
class Layout:
    """The columns of a sheet and what may stand in them.

    Attributes
    ----------
    texts : sequence of str
        The columns of texts.
    words : sequence of str
        Allowed labels.
    numbers : sequence of str
        The columns of scores or ranks.
    scale : tuple of float
        The lowest and the highest number.
    whole : bool
        Whether numbers are whole.
    """

    texts: Sequence[str]
    words: Sequence[str]
    numbers: Sequence[str]
    scale: tuple[float, float]
    whole: bool = False

    @property
    def open(self) -> tuple[str, ...]:
        """The columns that a reviewer fills in."""
        return ("label", *self.numbers, "reason", "note")

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column."""
        return ("number", "task_id", "reviewer", *self.texts, *self.open, "check")


def cell_text(text: str) -> str:
    """A text as a cell can hold it: LF line ends, control characters as their symbols (``␀``), half pairs as ``�``."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    shown = HIDDEN.sub(lambda found: chr(0x2400 + ord(found[0])) if found[0] != "\x7f" else "\u2421", lines)
    return NO_XML.sub("\ufffd", shown)


def cell_length(text: str) -> int:
    """How long a workbook counts a text: in UTF-16 units, escapes included."""
    return len(_escaped(text).encode("utf-16-le")) // 2


def neutral(text: str) -> str:
    """A text that a spreadsheet does not compute when it reads it from CSV; :func:`plain` undoes it."""
    return f"'{text}" if COMPUTED.match(text) else text


def plain(text: str) -> str:
    """The text that :func:`neutral` made neutral."""
    return text[1:] if text.startswith("'") and COMPUTED.match(text) else text


def csv_bytes(layout: Layout, rows: Sequence[Sequence[str]]) -> bytes:
    """A sheet as CSV: UTF-8 with a byte order mark, by which spreadsheets know it; commas, CRLF, every field quoted."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(layout.columns)
    writer.writerows([[neutral(cell_text(value)) for value in row] for row in rows])
    return text.getvalue().encode("utf-8-sig")


def workbook_bytes(layout: Layout, rows: Sequence[Sequence[str]], instructions: Sequence[str]) -> bytes:
    """A sheet as a workbook: instructions first, then a row a task, of which only the open columns can be edited.

    The protection has no password: it keeps from accidents. No text may be longer than :data:`CELL_LIMIT`
    (:func:`cell_length`).
    """
    book = Workbook()
    first = book.worksheets[0]
    first.title = INSTRUCTIONS
    first.column_dimensions["A"].width = 110
    for number, line in enumerate(instructions, start=1):
        _write(first, number, 1, line, locked=True)
    first.protection.sheet = True
    sheet = book.create_sheet(LABELS)
    _fill(sheet, layout, rows)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def _fill(sheet: Worksheet, layout: Layout, rows: Sequence[Sequence[str]]) -> None:
    for place, name in enumerate(layout.columns, start=1):
        cell = _write(sheet, 1, place, name, locked=True)
        cell.font = Font(bold=True)
        cell.fill = PatternFill("solid", fgColor="FFF2CC" if name in layout.open else "E7E6E6")
        width = WIDTHS.get(name, NUMBER_WIDTH if name in layout.numbers else ANSWER_WIDTH)
        sheet.column_dimensions[get_column_letter(place)].width = width
    for number, row in enumerate(rows, start=2):
        for place, (name, value) in enumerate(zip(layout.columns, row, strict=True), start=1):
            number_format = "General" if name in layout.numbers else "@"
            _write(sheet, number, place, value, locked=name not in layout.open, number_format=number_format)
    sheet.freeze_panes = "B2"
    sheet.sheet_view.zoomScale = 90
    last = len(rows) + 1
    for name in ("label", *layout.numbers):
        _validate(sheet, layout, name, last)
    sheet.protection.sheet = True
    for allowed in ("formatColumns", "formatRows", "formatCells"):
        setattr(sheet.protection, allowed, False)  # False: not protected
    sheet.print_title_rows = "1:1"


def _write(sheet: Worksheet, row: int, column: int, text: str, *, locked: bool, number_format: str = "@") -> Cell:
    """A string, whatever it starts with: set as such after the library has guessed."""
    cell = cast(Cell, sheet.cell(row, column))
    if text:
        cell.value = _escaped(text)
        cell.data_type = "s"
    cell.quotePrefix = True
    cell.number_format = number_format
    cell.alignment = Alignment(wrap_text=True, vertical="top")
    cell.protection = Protection(locked=locked)
    return cell


def _validate(sheet: Worksheet, layout: Layout, name: str, last: int) -> None:
    low, high = layout.scale
    if name == "label":
        rule = DataValidation(type="list", formula1=f'"{",".join(layout.words)}"', allow_blank=True)
        rule.error = f"Allowed: {', '.join(layout.words)}"
    else:
        sort: Literal["whole", "decimal"] = "whole" if layout.whole else "decimal"
        rule = DataValidation(
            type=sort, operator="between", formula1=f"{low:g}", formula2=f"{high:g}", allow_blank=True
        )
        rule.error = f"Allowed: a {'whole ' if layout.whole else ''}number from {low:g} to {high:g}"
    rule.errorTitle, rule.showErrorMessage = name, True
    letter = get_column_letter(layout.columns.index(name) + 1)
    rule.add(f"{letter}2:{letter}{last}")
    sheet.add_data_validation(rule)


def _escaped(text: str) -> str:
    """``_x0041_`` would be read as ``A``: its underscore is written as an escape of its own."""
    return ESCAPE.sub("_x005F_", cell_text(text))
