"""`judgelab labels ...`: how far labelling is, labels out of a study and into it, and its end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgelab.labelling.closing import closed_by
from judgelab.labelling.exchange import FORMATS, export_labels, import_labels
from judgelab.labelling.progress_lines import progress_lines
from judgelab.project import shown
from judgelab.study.freeze import open_run

__all__ = ["close", "export_command", "import_command", "labels", "progress"]

labels = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Human labels that are made in a study: progress, export, import, close.",
)
Name = Annotated[str, typer.Argument(metavar="RUN", help="The run's name: a folder of outputs.")]
Form = Annotated[str, typer.Option("--format", metavar="FORMAT", help=f"One of: {', '.join(FORMATS)}.")]


@labels.command()
def progress(name: Name) -> None:
    """Print labels by reviewer and category, agreement so far, and what is left to adjudicate."""
    for line in progress_lines(open_run(name)):
        typer.echo(line)


@labels.command("export")
def export_command(
    name: Name,
    form: Form,
    to: Annotated[Path, typer.Option("--to", metavar="PATH", help="The file or the folder to write.")],
    reviewers: Annotated[
        list[str] | None,
        typer.Option(
            "--reviewer",
            metavar="NAME",
            help="For whom a sheet is written (xlsx, sheet-csv). May be repeated; without: all who have begun.",
        ),
    ] = None,
) -> None:
    """Write labels (csv), sheets to fill in (xlsx, sheet-csv), or tasks for Label Studio or Argilla."""
    for path in export_labels(open_run(name), form, to, reviewers=reviewers or ()):
        typer.echo(f"written: {shown(path)}")


@labels.command("import")
def import_command(
    name: Name,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The file that came back.")],
    form: Form,
    reviewers: Annotated[
        list[str] | None,
        typer.Option(
            "--reviewer",
            metavar="OLD=NEW",
            help="The reviewer's name for somebody of the file (csv, label-studio, argilla). May be repeated.",
        ),
    ] = None,
) -> None:
    """Read labels into the journals of their reviewers: the whole file, or nothing and every problem told."""
    for note in import_labels(open_run(name), form, path, reviewers=reviewers or ()):
        typer.echo(note)


@labels.command()
def close(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Close them; without it, what would be closed is told.")] = False,
) -> None:
    """Close the labels of a run: they are frozen, and the stages that need them can run. There is no way back."""
    typer.echo(closed_by(open_run(name), confirmed=yes))
    typer.echo(f"written: outputs/{name}/human_labels.csv" if yes else "to close them, add --yes")
