"""Sheets on which all answers of an item are put in order, and their way into the journals of rankings.

As :mod:`judgelab.labelling.sheets`, with a column of ranks for each answer: 1 is best, equal ranks are ties.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

from judgelab.errors import LabelError
from judgelab.labelling.intake import Read, raise_if_any, same_but_case
from judgelab.labelling.journal_file import JournalFile
from judgelab.labelling.rank_records import RankJournal, RankRecord, normalised
from judgelab.labelling.rank_tasks import RankTask, ranking_order
from judgelab.labelling.ranks import read_rank_journals
from judgelab.labelling.sending import Sent, choice_of, sent_out, text_columns
from judgelab.labelling.sheet_files import (
    Returned,
    SheetKind,
    check_names,
    matched_rows,
    shortened,
    write_sheets,
)
from judgelab.labelling.sheet_layout import Layout
from judgelab.labelling.tasks import Key
from judgelab.project import shown
from judgelab.study.run import Run

__all__ = ["Ranked", "export_rank_sheets", "import_rank_sheet"]


@dataclass(frozen=True)
class Ranked:
    """One row of a sheet: ranks in the sequence in which the answers were shown; none where it cannot be judged."""

    where: str
    reviewer: str
    task: RankTask
    ranks: tuple[int, ...]
    reason: str
    note: str

    @property
    def rank_of(self) -> dict[str, int]:
        """The rank of each system, as a journal keeps it; empty where it cannot be judged."""
        return dict(zip(self.task.shown, normalised(self.ranks), strict=True)) if self.ranks else {}


def export_rank_sheets(run: Run, to: Path, kind: SheetKind, reviewers: Sequence[str]) -> list[Path]:
    """As :func:`judgelab.labelling.sheets.export_sheets`, for a run whose answers are put in order; without names, for
    everybody who has begun.

    Raises
    ------
    LabelError
        As there.
    """
    done = {file.reviewer: set(file.standing.initial()) for file in _journals(run)}
    names = reviewers or list(done)
    check_names(names)
    lists = {name: [sent for sent in _tasks(run, name) if sent.task.key not in done.get(name, ())] for name in names}
    return write_sheets(run, to, kind, lists, _layout(run), _lines(run))


def import_rank_sheet(run: Run, path: Path, kind: SheetKind) -> list[str]:
    """Check a sheet that came back line by line, and add its rankings to the reviewer's journal: all or none.

    Problems are those of :func:`judgelab.labelling.sheet_files.matched_rows`, ranks that are no whole number from 1 to
    the number of answers, rows with some ranks only, with ranks and CANNOT JUDGE, with another word as label, with
    CANNOT JUDGE and no reason, and a ranking that differs from what the journal has already.

    Returns
    -------
    list of str
        How many rankings were taken in, and what was left out.

    Raises
    ------
    DataError
        Telling every problem with its line.
    LabelError
        If the journal is in use.
    """
    files, layout, read = _journals(run), _layout(run), Read[Ranked]()
    done: dict[str, set[Key]] = {file.reviewer: set(file.standing.initial()) for file in files}

    def lists(reviewer: str) -> list[Sent[RankTask]]:
        return _tasks(run, reviewer)

    def decided(reviewer: str, sent: Sent[RankTask]) -> bool:
        return sent.task.key in done.get(reviewer, ())

    reviewer, rows = matched_rows(path, kind, layout, lists, decided, read)
    for each in rows:
        _ranking(each, reviewer, layout, read)
    raise_if_any([*read.problems, *same_but_case(files, {reviewer}), *_conflicts(files, read.given)], read, path)
    return [*read.notes, *_write(run, reviewer, path, read, len(rows))]


def _journals(run: Run) -> list[JournalFile[RankRecord]]:
    return read_rank_journals(run.path("labelling", "ranks"), study=run.study)


def _tasks(run: Run, reviewer: str) -> list[Sent[RankTask]]:
    labelling = run.study.human_review.labelling
    if labelling is None:
        raise LabelError(f"labels of run {run.name} are not made in the study")
    order = ranking_order(
        run.study, run.items(), reviewer, training=labelling.training, repeats_share=labelling.repeats_share
    )
    return sent_out(run, reviewer, [task for task in order if task.kind != "training"])


def _layout(run: Run) -> Layout:
    n = len(run.study.systems)
    ranks = tuple(f"rank_{letter}" for letter in ascii_uppercase[:n])
    return Layout(text_columns(n), ("CANNOT JUDGE",), ranks, (1, n), whole=True)


def _lines(run: Run) -> list[str]:
    n = len(run.study.systems)
    named = [f"{each.name}: {each.description}".removesuffix(": ") for each in run.study.direct_scale.criteria]
    return [
        f"Read the task, its context where there is one, and all {n} answers. Put the answers in order.",
        "Decide by these criteria alone:",
        *(f"  - {line}" for line in named),
        f"Ranks: a whole number from 1 (best) to {n} for each answer; answers that are equally good get the same rank.",
        "Label: leave it empty, or CANNOT JUDGE where it cannot be decided; say why in reason, and give no ranks.",
        "The order of the answers was drawn by lot. Decide alone, and do not ask others.",
    ]


def _ranking(returned: Returned[RankTask], reviewer: str, layout: Layout, read: Read[Ranked]) -> None:
    """Add the ranking of a row, or what is wrong with it. Without a label and ranks: nothing."""
    where, row, sent = returned
    label, n = row["label"].strip(), len(layout.numbers)
    given = {column: row[column.lower()].strip() for column in layout.numbers if row[column.lower()].strip()}
    wrong = [column for column, text in given.items() if _rank(text) not in range(1, n + 1)]
    for column in wrong:
        read.wrong(where, f"{column} {shortened(given[column])}; allowed is a whole number from 1 to {n}")
    reason, note = row["reason"].strip(), row["note"].strip()
    if label and choice_of(label) != "cannot_judge":
        read.wrong(where, f"label {shortened(label)}; allowed is CANNOT JUDGE, or empty")
    elif label and given:
        read.wrong(where, "CANNOT JUDGE and ranks at once; one is allowed")
    elif label and not reason:
        read.wrong(where, "cannot judge without a reason; say in reason why")
    elif given and len(given) < n:
        read.wrong(where, f"{len(given)} of {n} answers have a rank; all or none are needed")
    elif (given or label) and not wrong:
        ranks = tuple(_rank(text) for text in given.values())
        read.given.append(Ranked(where, reviewer, sent.task, ranks, reason, note))


def _rank(text: str) -> int:
    """A rank as people and spreadsheets write it (2, 2.0, 2,0); 0 for anything else."""
    whole, _, rest = text.replace(",", ".").partition(".")
    usable = whole.isascii() and whole.isdigit() and len(whole) <= 3 and not rest.strip("0")
    return int(whole) if usable else 0


def _conflicts(files: Sequence[JournalFile[RankRecord]], given: Sequence[Ranked]) -> list[str]:
    own = {file.reviewer: file.standing.initial() for file in files}
    problems = []
    for each in given:
        record = own.get(each.reviewer, {}).get(each.task.key)
        if record is not None and record.rank_of != each.rank_of:
            problems.append(
                f"{each.where}: {each.reviewer} has another ranking of item {each.task.item_id} in the journal "
                "already; a decision is never changed"
            )
    return problems


def _write(run: Run, reviewer: str, path: Path, read: Read[Ranked], count: int) -> list[str]:
    left = count - len(read.given)
    told = f"{shown(path)}: {len(read.given)} of {count} rows of {reviewer} are ranked"
    notes = [told + (f"; {left} are not ranked yet" if left else "")]
    before = {file.reviewer: file.standing for file in _journals(run)}
    new = [each for each in read.given if reviewer not in before or not before[reviewer].is_decided(each.task.key)]
    there, added = len(read.given) - len(new), 0
    with contextlib.ExitStack() as stack:
        if new:
            journal = stack.enter_context(
                RankJournal.open(
                    run.path("labelling", "ranks"),
                    reviewer,
                    f"import of {path.name}",
                    study=run.study,
                    known=[item.item_id for item in run.items()],
                )
            )
            notes += journal.notes
            raise_if_any(_conflicts([journal.file], new), read, path)
            for each in new:
                if journal.file.standing.is_decided(each.task.key):
                    there += 1
                    continue
                choice = "ranked" if each.ranks else "cannot_judge"
                journal.decide(each.task, choice, seconds=0, reason=each.reason, ranks=each.ranks, note=each.note)
                added += 1
    return [*notes, f"{reviewer}: {added} rankings taken in" + (f", {there} were there already" if there else "")]
