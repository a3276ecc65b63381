"""Writing the sheets of several reviewers, and matching the rows of one that came back with what was sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple

from judgelab.errors import LabelError
from judgelab.labelling.intake import Read
from judgelab.labelling.sending import Sent, TaskT, same_text
from judgelab.labelling.sheet_layout import CELL_LIMIT, Layout, cell_length, csv_bytes, plain, workbook_bytes
from judgelab.labelling.sheet_rows import SheetRows, read_csv_rows, read_workbook_rows
from judgelab.project import shown
from judgelab.study.run import Run
from judgelab.study.tables import write_bytes

__all__ = ["Returned", "SheetKind", "check_names", "matched_rows", "shortened", "write_sheets"]

SheetKind = Literal["xlsx", "sheet-csv"]
SHOWN = 5


class Returned(NamedTuple, Generic[TaskT]):
    """A row that came back: where it stands, what is in it, and the task that it is of."""

    where: str
    row: Mapping[str, str]
    sent: Sent[TaskT]


def check_names(reviewers: Sequence[str]) -> None:
    """Refuse no name, and one that is given twice.

    Raises
    ------
    LabelError
        If so.
    """
    folded = [name.lower() for name in reviewers]
    if not reviewers or len(set(folded)) < len(folded):
        raise LabelError("a sheet is for one reviewer: name each once, with --reviewer NAME")


def write_sheets(
    run: Run,
    to: Path,
    kind: SheetKind,
    lists: Mapping[str, Sequence[Sent[TaskT]]],
    layout: Layout,
    lines: Sequence[str],
) -> list[Path]:
    """Write a sheet for each reviewer, all or none.

    Parameters
    ----------
    run, to, kind
        See :func:`judgelab.labelling.sheets.export_sheets`.
    lists
        What is left to decide, by reviewer.
    layout
        The columns.
    lines
        What a reviewer is to know of the task, line by line.

    Raises
    ------
    LabelError
        If somebody has nothing left, a file is there already, or a workbook cannot hold a text.
    """
    files: dict[Path, bytes] = {}
    for name, tasks in lists.items():
        if not tasks:
            raise LabelError(f"{name} has no task left to label in run {run.name}: no sheet was written")
        path = _path(run, to, kind, name, len(lists))
        open_cells = [""] * len(layout.open)
        rows = [[str(sent.place), sent.task_id, name, *sent.texts.values(), *open_cells, sent.check] for sent in tasks]
        told = [f"Label sheet of {name}: {len(tasks)} tasks", "", *lines, "", *_how_to(layout)]
        if kind == "xlsx":
            _check_lengths(tasks)
            files[path] = workbook_bytes(layout, rows, told)
        else:
            beside = path.with_name(f"{path.stem}-instructions.txt")
            files |= {path: csv_bytes(layout, rows), beside: ("\n".join(told) + "\n").encode("utf-8-sig", "replace")}
    there = [shown(path) for path in files if path.exists()]
    if there:
        raise LabelError(
            f"{', '.join(there[:SHOWN])}: there already, and may hold labels; move it away, or name another place"
        )
    for path, content in files.items():
        write_bytes(content, path)
    return list(files)


def matched_rows(
    path: Path,
    kind: SheetKind,
    layout: Layout,
    lists: Callable[[str], Sequence[Sent[TaskT]]],
    decided: Callable[[str, Sent[TaskT]], bool],
    read: Read[Any],
) -> tuple[str, list[Returned[TaskT]]]:
    """Whose sheet it is, and its rows with their tasks; what is wrong goes to ``read``.

    Problems are missing columns, rows whose texts differ from what was sent, that stand there twice, are of another
    reviewer's sheet or of none, and rows that are missing, unless ``decided`` says that the reviewer has a decision.
    """
    rows = read_workbook_rows(path) if kind == "xlsx" else read_csv_rows(path)
    read.total = len(rows.rows)
    read.notes += [f"{shown(path)}: {note}" for note in rows.notes]
    _columns(rows, layout, read)
    if read.problems:
        return "", []
    names = Counter(row["reviewer"].strip() for _, row in rows.rows if row["reviewer"].strip())
    if not names:
        read.wrong("the sheet", "no row names a reviewer in the column reviewer")
        return "", []
    reviewer = names.most_common(1)[0][0]
    try:
        sent = {task.task_id: task for task in lists(reviewer)}
    except LabelError as error:
        read.wrong("column reviewer", str(error))
        return reviewer, []
    found: dict[str, Returned[TaskT]] = {}
    for line, row in rows.rows:
        where = f"line {line}"
        task = _task(where, row, sent, reviewer, read)
        if task is None:
            continue
        if task.task_id in found:
            read.wrong(where, f"task {task.task_id} stands in {found[task.task_id].where} already")
        else:
            found[task.task_id] = Returned(where, row, task)
    for name, task in sent.items():
        if name not in found and not decided(reviewer, task):
            read.wrong("missing row", f"number {task.place}, task {name}; an empty label is allowed, no row is not")
    return reviewer, list(found.values())


def shortened(text: str) -> str:
    """A text in quotation marks, long ones cut."""
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}…"


def _path(run: Run, to: Path, kind: SheetKind, name: str, count: int) -> Path:
    suffix = ".xlsx" if kind == "xlsx" else ".csv"
    if to.suffix.lower() != suffix or to.is_dir():
        return to / f"labels-{run.name}-{name}{suffix}"
    if count > 1:
        raise LabelError(f"--to {to.name}: a folder is needed for the sheets of {count} reviewers")
    return to


def _check_lengths(tasks: Sequence[Sent[TaskT]]) -> None:
    long = {sent.task.item_id for sent in tasks for text in sent.texts.values() if cell_length(text) > CELL_LIMIT}
    if long:
        named = ", ".join(sorted(long)[:SHOWN]) + (f" and {len(long) - SHOWN} more" if len(long) > SHOWN else "")
        raise LabelError(
            f"{len(long)} item{'s have' if len(long) > 1 else ' has'} a text of more than {CELL_LIMIT:,} characters, "
            f"which a workbook cannot hold: {named}; export with --format sheet-csv, or label in notebook 02"
        )


def _how_to(layout: Layout) -> list[str]:
    return [
        f"Fill in the columns {', '.join(layout.open)}; a reason is needed for CANNOT JUDGE only.",
        "Go from top to bottom, and do not look back.",
        "Change nothing else. Rows may be sorted; what is left empty counts as not labelled yet.",
        "Characters that cannot be printed stand as symbols, such as ␀.",
        "Do not show the sheet to others who label. Send the whole file back, saved under the same name and in the "
        "same form (XLSX, or CSV UTF-8).",
    ]


def _columns(rows: SheetRows, layout: Layout, read: Read[Any]) -> None:
    """Every column must be there; others are noted."""
    given = [name.lower() for name in rows.columns]
    missing = [name for name in layout.columns if name.lower() not in given and name != "number"]
    if missing:
        read.wrong("line 1", f"columns that are missing: {', '.join(missing)}; it has {', '.join(rows.columns)}")
    known = {name.lower() for name in layout.columns}
    extra = [name for name in rows.columns if name.lower() not in known]
    if extra:
        read.notes.append(f"columns that are not of the sheet, ignored: {', '.join(extra)}")


def _task(
    where: str, row: Mapping[str, str], sent: Mapping[str, Sent[TaskT]], reviewer: str, read: Read[Any]
) -> Sent[TaskT] | None:
    """The task of a row, if the row is one of the sheet; what was changed in it is told."""
    name, owner = row["task_id"].strip(), row["reviewer"].strip()
    if owner != reviewer:
        read.wrong(where, f"a row of the sheet of {owner!r} in that of {reviewer!r}")
        return None
    if name not in sent:
        read.wrong(where, f"task_id {name!r} is not of the sheet of {reviewer}")
        return None
    task = sent[name]
    changed = [column for column, text in task.texts.items() if not _is_sent(row[column.lower()], text)]
    if changed:
        read.wrong(where, f"{' and '.join(changed)} of task {name} differs from what was sent; put it back as it was")
    elif row["check"].strip() != task.check:
        read.wrong(where, f"check {row['check'].strip()!r} of task {name} was changed; it was {task.check}")
    return task


def _is_sent(text: str, sent: str) -> bool:
    """Whether a text is the one that was sent, with or without the apostrophe that keeps it from being computed."""
    return same_text(text, sent) or same_text(plain(text), sent)
