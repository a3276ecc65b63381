"""Label sheets: a spreadsheet a reviewer, for people without Python, and its way back.

Each sheet has the tasks that its reviewer has not decided yet, in the reviewer's own order; planned repeats are among
them, training is not. A workbook cannot hold a text of more than 32,767 characters in a cell: an item that has one is
not cut, but the workbook is refused, and the CSV form offered in its place. Excel splits CSV files by the rules of its
country; workbooks are the better form for it. Sheets on which answers are put in order are in
:mod:`judgelab.labelling.rank_sheets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from judgelab.labelling.intake import Given, Read, read_score
from judgelab.labelling.journal import read_journals
from judgelab.labelling.records import Rules
from judgelab.labelling.sending import (
    TEXTS,
    Sent,
    choice_of,
    criteria,
    rubric_lines,
    tasks_of,
    words_of,
)
from judgelab.labelling.sheet_files import (
    Returned,
    SheetKind,
    check_names,
    matched_rows,
    shortened,
    write_sheets,
)
from judgelab.labelling.sheet_layout import Layout
from judgelab.labelling.tasks import Key, LabelTask
from judgelab.project import shown
from judgelab.study.run import Run

__all__ = ["SheetKind", "export_sheets", "read_sheet"]

SIDES = {"A": "left", "B": "right"}


def export_sheets(run: Run, to: Path, kind: SheetKind, reviewers: Sequence[str]) -> list[Path]:
    """Write a sheet for each reviewer: ``labels-<run>-<reviewer>.xlsx``, or ``.csv`` with its instructions beside.

    Parameters
    ----------
    run
        The run, its labels open.
    to
        A folder; for one reviewer also a file that ends as its form does.
    kind
        ``xlsx`` or ``sheet-csv``.
    reviewers
        Their names, one or more.

    Raises
    ------
    LabelError
        If nobody is named or somebody twice, there is nothing left to label, a file is there already (it may hold
        labels), or a workbook cannot hold a text, naming the items. Nothing was written then.
    """
    check_names(reviewers)
    done = _decided(run)
    lists = {
        name: [sent for sent in tasks_of(run, name) if sent.task.key not in done.get(name, ())] for name in reviewers
    }
    return write_sheets(run, to, kind, lists, _layout(run), rubric_lines(run))


def read_sheet(run: Run, path: Path, kind: SheetKind) -> Read[Given]:
    """Check a sheet that came back line by line. Rows and columns may have another order; nothing else may be changed.

    Problems are those of :func:`judgelab.labelling.sheet_files.matched_rows`, labels in other words, and scores that
    are no number or out of range. A row without a label is not labelled yet. Columns that are not of the sheet are
    ignored and noted.

    Raises
    ------
    DataError
        If the file cannot be read as a sheet at all.
    """
    layout, done, read = _layout(run), _decided(run), Read[Given]()

    def lists(reviewer: str) -> list[Sent[LabelTask]]:
        return tasks_of(run, reviewer)

    def decided(reviewer: str, sent: Sent[LabelTask]) -> bool:
        return sent.task.key in done.get(reviewer, ())

    reviewer, rows = matched_rows(path, kind, layout, lists, decided, read)
    for each in rows:
        _decision(run, each, reviewer, layout, read)
    _counted(shown(path), reviewer, rows, layout, read)
    return read


def _layout(run: Run) -> Layout:
    return Layout(TEXTS, words_of(run.study), tuple(_scores(run)), Rules.of(run.study).scale)


def _scores(run: Run) -> dict[str, tuple[str, str]]:
    """Side and criterion of each column of scores."""
    return {f"score_{letter}_{name}": (side, name) for letter, side in SIDES.items() for name in criteria(run)}


def _decided(run: Run) -> dict[str, set[Key]]:
    """What each reviewer's journal has a decision on."""
    files = read_journals(run.path("labelling"), study=run.study)
    return {file.reviewer: set(file.standing.initial()) for file in files}


def _decision(run: Run, returned: Returned[LabelTask], reviewer: str, layout: Layout, read: Read[Given]) -> None:
    """Add what was decided in a row, or what is wrong with it. Without a label: nothing."""
    where, row, sent = returned
    label = row["label"].strip()
    choice = choice_of(label) if label else ""
    if label and choice is None:
        read.wrong(where, f"label {shortened(label)}; allowed are {', '.join(layout.words)}, or empty")
    scores: dict[str, dict[str, float]] = {}
    for column, (side, criterion) in _scores(run).items():
        value, problem = read_score(row[column.lower()], run)
        if problem:
            read.wrong(where, f"{column} {problem}")
        elif value is not None:
            scores.setdefault(side, {})[criterion] = value
    if choice:
        reason, note = row["reason"].strip(), row["note"].strip()
        read.given.append(Given(where, reviewer, sent.task, choice, reason, note, scores))


def _counted(where: str, reviewer: str, rows: Sequence[Returned[LabelTask]], layout: Layout, read: Read[Given]) -> None:
    """Notes on what is no problem: rows without a label, labels without every score."""
    empty = [each.row for each in rows if not each.row["label"].strip()]
    filled = sum(any(row[name.lower()].strip() for name in layout.open[1:]) for row in empty)
    half = sum(sum(map(len, each.scores.values())) < len(layout.numbers) for each in read.given)
    text = f"{where}: {len(read.given)} of {len(rows)} rows of {reviewer} are labelled"
    if empty:
        text += f"; {len(empty)} are not labelled yet" + (f" ({filled} have a score, reason or note)" if filled else "")
    if half:
        text += f"; {half} labels are without all or some scores"
    read.notes.append(text)
