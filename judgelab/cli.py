"""`judgelab ...`: a thin layer over the pipeline and the readers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from judgelab import __version__
from judgelab.cli_labels import labels
from judgelab.cli_study import check, new
from judgelab.errors import JudgelabError
from judgelab.judging.caps import raise_cap
from judgelab.judging.evidence import export_records
from judgelab.judging.exchange import export_ledger, import_verdicts
from judgelab.judging.match_run import MatchRun, any_run
from judgelab.judging.plan import battery_lines, plan_table
from judgelab.judging.tell import ledger_lines, plan_lines
from judgelab.pipeline import prepared, refresh_notebooks, run_study
from judgelab.pipeline import publish as publish_report
from judgelab.pipeline import verify as verify_run
from judgelab.project import outputs_folder, shown
from judgelab.report.manifest import write_manifest
from judgelab.report.runnable import stage_lines
from judgelab.study.freeze import open_run
from judgelab.study.sources import IMPORTERS
from judgelab.study.sources.fetch import BASE_URL, fetch, listing
from judgelab.study.tables import jsonl_text, write_text

__all__ = ["app", "main"]

INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help=(
        "Put LLM judges on trial: run them on your items, swap the answers, measure agreement with people, "
        "and write a decision record.\n\n"
        "\b\n"
        "A first look:      judgelab run params/demo.yaml         (recorded verdicts, no model, one minute)\n"
        "A real LLM, live:  judgelab run params/quickstart.yaml   (a small model on this machine)\n"
        "Your own study:    judgelab new mine                     (then: judgelab check params/mine.yaml)\n\n"
        "A run can be broken off at any time; the same command goes on where it stopped."
    ),
)


def _version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    return None


@app.command()
def run(
    params: Annotated[Path, typer.Argument(help="The study: params/<name>.yaml with the keys run and study.")],
    first: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="STAGE",
            help="Start at this stage, for example 05. Without it: 00 where the study has answers to make, else 01.",
        ),
    ] = None,
    last: Annotated[str, typer.Option("--to", metavar="STAGE", help="Stop after this stage.")] = "10",
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change the protocol before it is frozen: a dotted key and a YAML value, for example "
            "--set random_seed=7 --set decision.minimum_items=30 --set run=mine. May be repeated.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=16, help="Notebooks that may run side by side.")] = 1,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Ask judges of kind chat and anthropic through their provider's batches: half the price, results "
            "within a day. It may be broken off while it waits; the same command fetches what was sent.",
        ),
    ] = False,
) -> None:
    """Run the notebooks of a study in their order, then write the report.

    Stages: 00 generate answers, 01 freeze the study, 02 human reference, 03 direct scoring, 04 pairwise comparison,
    05 agreement, 06 position bias, 07 bias battery, 08 calibration, 09 ranking, 10 decision record. Executed notebooks,
    tables, figures and the report are in outputs/RUN.
    """
    index = run_study(params, first=first, last=last, changes=changes or (), jobs=jobs, batch=batch, say=typer.echo)
    what = "report" if index.suffix == ".html" else "candidates"
    typer.echo(f"{what}: {shown(index)}")


Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change the protocol, as for `run`. May be repeated."),
]


@app.command()
def plan(
    params: Annotated[Path, typer.Argument(help="The study: params/<name>.yaml with the keys run and study.")],
    changes: Changes = None,
    latency: Annotated[
        float | None,
        typer.Option("--latency", min=0, metavar="SECONDS", help="Seconds a call, if they are known."),
    ] = None,
) -> None:
    """Print what a study will ask of each judge: calls, tokens, cost and time. Sends and freezes nothing.

    Probes and repairs are counted, too. With a ledger of an earlier start, only what is left to do is counted.
    """
    name, study = prepared(params, changes or ())
    table = plan_table(study, outputs_folder() / name / "ledger.sqlite", latency=latency)
    for line in (*plan_lines(name, table), *battery_lines(table)):
        typer.echo(line)


@app.command()
def ledger(
    name: Annotated[str, typer.Argument(metavar="RUN", help="The run's name: a folder of outputs.")],
    export_to: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="FILE",
            help="Write every call to a .parquet or .csv file, or the protocol's JSON-lines files to a folder.",
        ),
    ] = None,
    import_from: Annotated[
        Path | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Read verdicts that were made elsewhere, one record a line, into the calls of --judge. "
            "All or none; a finished call is never replaced.",
        ),
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", metavar="NAME", help="The judge that --import is for.")
    ] = None,
    raised: Annotated[
        list[str] | None,
        typer.Option(
            "--raise",
            metavar="JUDGE.CAP=VALUE",
            help="Raise a cap that has stopped a judge: max_calls, max_tokens or max_cost. May be repeated.",
        ),
    ] = None,
) -> None:
    """Show what has been judged: calls by judge, pass and status, tokens, cost and time. Also exports and imports."""
    opened = open_run(name)
    if (import_from is None) != (judge is None):
        _stop("--import FILE and --judge NAME go together")
    if import_from is not None and judge is not None:
        count = import_verdicts(opened, import_from, judge)
        typer.echo(f"{count} verdicts of {judge} imported from {shown(import_from)}")
    for change in raised or ():
        typer.echo(raise_cap(opened, change))
    if export_to is not None:
        for path in export_ledger(opened, export_to):
            typer.echo(f"written: {shown(path)}")
    if import_from is None and export_to is None and not raised:
        for line in ledger_lines(opened):
            typer.echo(line)


@app.command()
def publish(name: Annotated[str, typer.Argument(metavar="RUN", help="The run's name: a folder of outputs.")]) -> None:
    """Write the report of a run again from its executed notebooks: one self-contained HTML file a stage."""
    opened = any_run(name)
    index = publish_report(opened)
    write_manifest(opened)
    typer.echo(f"report: {shown(index)}")


@app.command()
def verify(name: Annotated[str, typer.Argument(metavar="RUN", help="The run's name: a folder of outputs.")]) -> None:
    """Check a run: hashes against its manifest, and its analysis notebooks executed again under nbval.

    Nothing in the run folder is changed. Ends with status 1 if anything differs.
    """
    opened = any_run(name)
    differences = verify_run(opened, say=typer.echo)
    for line in differences:
        typer.echo(f"  {line}")
    if differences:
        raise typer.Exit(1)
    again = ", and computing it again gives the same outputs"
    if isinstance(opened, MatchRun):
        again = "; its ranking was not computed again"
    typer.echo(f"run {name} is as its manifest says{again}")


@app.command("import")
def import_data(
    source: Annotated[str, typer.Argument(metavar="FORMAT", help=f"One of: {', '.join(sorted(IMPORTERS))}.")],
    folder: Annotated[Path, typer.Argument(metavar="PATH", help="The folder or the file with what was published.")],
    name: Annotated[str, typer.Option("--run", metavar="RUN", help="The name of the run to make.")],
) -> None:
    """Read a published data set, or judgments of another tool, into a study.

    Items, labels and records, or matches alone, go to outputs/RUN/source; params/RUN.yaml is written if there is none.
    It says what was read, what was left out and why, and which stages can run. `plain` is a documented table of your
    own, a verdict a row, as CSV or JSON lines (README, Judgments made elsewhere).
    """
    if source not in IMPORTERS:
        _stop(f"unknown format {source!r}; allowed are {', '.join(sorted(IMPORTERS))}")
    params, notes = IMPORTERS[source](folder, name)
    for note in notes:
        typer.echo(note)
    for line in stage_lines(params):
        typer.echo(line)
    typer.echo(f"next: judgelab run {shown(params)}")


@app.command("fetch")
def fetch_data(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Data sets, or all; none: list what there is.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Gets one sub-folder a data set, in place of outputs/fetched."),
    ] = None,
    base_url: Annotated[
        str,
        typer.Option(
            "--base-url", metavar="URL", help="A mirror: it has each file at URL/OWNER/REPOSITORY/COMMIT/PATH."
        ),
    ] = BASE_URL,
) -> None:
    """Get published data sets from their repositories, at a pinned commit, each file proved by its SHA-256.

    Files that are there with the right SHA-256 are not fetched again; a broken download goes on where it stopped.
    """
    if not names:
        for line in listing():
            typer.echo(line)
        return
    for folder in fetch(names, to=to, base_url=base_url, say=typer.echo):
        if folder.name.startswith("llmbar"):
            place = folder if to else shown(folder)
            typer.echo(f"next: judgelab import llmbar {place} --run {folder.name.replace('_', '-')}")


@app.command()
def export(
    name: Annotated[str, typer.Argument(metavar="RUN", help="The run's name: a folder of outputs.")],
    judge: Annotated[str, typer.Option("--judge", help="The judge whose replies are exported.")],
    to: Annotated[Path, typer.Option("--to", help="The JSON-lines file to write.")],
) -> None:
    """Write a judge's replies as records that a judge of kind `recorded` can read in another study."""
    opened = open_run(name)
    names = [entry.name for entry in opened.study.judges]
    if judge not in names:
        _stop(f"run {name} has no judge {judge!r}; its judges are {', '.join(names)}")
    records = export_records(opened, judge)
    write_text(jsonl_text(records), to)
    typer.echo(f"{len(records)} records of {judge} in {shown(to)}")


@app.command()
def notebooks(
    names: Annotated[list[str] | None, typer.Argument(help="05, published_figures, ...; none: all of them")] = None,
) -> None:
    """Execute notebooks of the project at their defaults (the demo), in place, for committing them."""
    refresh_notebooks(names or [], say=typer.echo)


app.command()(new)
app.command()(check)
app.add_typer(labels, name="labels")


def _stop(message: str) -> NoReturn:
    typer.echo(f"judgelab: {message}", err=True)
    raise typer.Exit(2)


def main() -> None:
    """Entry point: a mistake of the user ends with its message and status 2, Ctrl-C with status 130."""
    try:
        app()
    except JudgelabError as error:
        typer.echo(f"judgelab: {error}", err=True)
        sys.exit(2)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # what typer makes of Ctrl-C, without a word
            message = "interrupted; what was judged is in the ledger, run the same command to go on"
            typer.echo(f"judgelab: {message}", err=True)
        raise
