"""Labels out of the study and into it, in every form: one function for each direction.

=============  ====================================================================================
csv            the labels themselves, in the protocol's layout of human_labels.csv (open ones as far as they go),
               and out of a study that ranks also the ranks, as expert_ranks.csv
xlsx           a workbook a reviewer, to be filled in (see :mod:`judgelab.labelling.sheets`)
sheet-csv      the same as CSV, for texts that a workbook cannot hold
label-studio   tasks and labelling configuration; its JSON export comes back
argilla        records and settings; its exported records come back
=============  ====================================================================================

Where all answers of an item are put in order at once (``human_review.labelling.mode: ranking``), sheets have a column
of ranks an answer (see :mod:`judgelab.labelling.rank_sheets`); the other forms go with comparing pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from judgelab.errors import LabelError
from judgelab.labelling.annotators import read_renames
from judgelab.labelling.argilla import export_argilla, read_argilla
from judgelab.labelling.gathered import gathered_labels
from judgelab.labelling.intake import take_in
from judgelab.labelling.journal import read_journals
from judgelab.labelling.label_csv import read_label_csv
from judgelab.labelling.label_studio import export_label_studio, read_label_studio
from judgelab.labelling.rank_sheets import export_rank_sheets, import_rank_sheet
from judgelab.labelling.sending import labelling_of
from judgelab.labelling.sheets import SheetKind, export_sheets, read_sheet
from judgelab.study.humans import labels_for_file
from judgelab.study.run import EXPERT_RANKS, LABELS, Run
from judgelab.study.tables import write_bytes, write_csv

__all__ = ["FORMATS", "Format", "export_labels", "import_labels"]

Format = Literal["csv", "xlsx", "sheet-csv", "label-studio", "argilla"]
SHEETS: dict[str, SheetKind] = {"xlsx": "xlsx", "sheet-csv": "sheet-csv"}
FORMATS: tuple[str, ...] = get_args(Format)
NAMES = {"csv": "human_labels.csv", "label-studio": "label-studio.json", "argilla": "argilla.json"}


def export_labels(run: Run, form: str, to: Path, *, reviewers: Sequence[str] = ()) -> list[Path]:
    """Write what a form needs, and return the paths.

    Parameters
    ----------
    run
        A frozen run.
    form
        One of :data:`FORMATS`.
    to
        A folder, or a file that ends as the form does; its folders are made.
    reviewers
        For whom sheets are written; without names, for everybody who has a journal. No other form takes names.

    Raises
    ------
    LabelError
        If the form is none, does not go with the run, or takes no names; for sheets also if the labels are closed, and
        as :func:`judgelab.labelling.sheets.export_sheets`.
    RunError
        If a file cannot be written.
    """
    _known(form)
    if form in SHEETS:
        ranks = _ranks(run)
        if not ranks:
            labelling_of(run, f"exporting {form}")
        if not run.labels_open:
            raise LabelError(f"the labels of run {run.name} are closed: there is nothing left to label in a sheet")
        if ranks:
            return export_rank_sheets(run, to, SHEETS[form], reviewers)
        named = reviewers or [file.reviewer for file in read_journals(run.path("labelling"), study=run.study)]
        return export_sheets(run, to, SHEETS[form], named)
    if reviewers:
        raise LabelError(f"export of {form} is for all reviewers at once: leave --reviewer out")
    path = _file(to, NAMES[form])
    if form == "csv":
        return _write_labels(run, path)
    labelling_of(run, f"exporting {form}")
    return export_label_studio(run, path) if form == "label-studio" else export_argilla(run, path)


def import_labels(run: Run, form: str, path: Path, *, reviewers: Sequence[str] = ()) -> list[str]:
    """Read a file that came back into the reviewers' journals: all of it, or nothing.

    Parameters
    ----------
    run
        The run, its labels open.
    form
        One of :data:`FORMATS`.
    path
        The file.
    reviewers
        New names for people of the file, each as ``OLD=NEW``; sheets take none.

    Returns
    -------
    list of str
        How many decisions of whom were taken in, and what was left out and why.

    Raises
    ------
    DataError
        Telling every problem of the file with its line.
    LabelError
        If the form is none or does not go with the run, the labels are closed, or a journal is in use.
    """
    _known(form)
    if form not in SHEETS or not _ranks(run):
        labelling_of(run, f"importing {form}")
    if not run.labels_open:
        raise LabelError(f"the labels of run {run.name} are closed: nothing more can be imported")
    renames = read_renames(reviewers)
    if form in SHEETS:
        if renames:
            raise LabelError("a sheet names its reviewer itself, and belongs to that name: leave --reviewer out")
        if _ranks(run):
            return import_rank_sheet(run, path, SHEETS[form])
        read = read_sheet(run, path, SHEETS[form])
    else:
        reader = {"csv": read_label_csv, "label-studio": read_label_studio, "argilla": read_argilla}[form]
        read = reader(run, path, renames)
    return take_in(run, read, path)


def _write_labels(run: Run, path: Path) -> list[Path]:
    """The labels as they were frozen, or, while they are open, as far as they are there; ranks beside them."""
    ranks = path.with_name(EXPERT_RANKS)
    if not run.labels_open:
        if run.study.human_labels is None:
            raise LabelError(f"run {run.name} has no human labels")
        run.labels(split=None)  # refuses a file that was changed
        given = run.expert_ranks()
        files = {path: run.path(LABELS)} | ({} if given is None else {ranks: given})
        for to, frozen in files.items():
            write_bytes(frozen.read_bytes(), to)
        return list(files)
    gathered = gathered_labels(run)
    write_csv(labels_for_file(gathered.labels, run.study), path)
    if gathered.ranks is None:
        return [path]
    write_csv(gathered.ranks, ranks)
    return [path, ranks]


def _ranks(run: Run) -> bool:
    """Whether the labels are made by putting all answers of an item in order."""
    labelling = run.study.human_review.labelling
    return labelling is not None and labelling.mode == "ranking"


def _known(form: str) -> None:
    if form not in FORMATS:
        raise LabelError(f"format {form!r} of labels; allowed are {', '.join(FORMATS)}")


def _file(to: Path, name: str) -> Path:
    return to if to.suffix.lower() == Path(name).suffix and not to.is_dir() else to / name
