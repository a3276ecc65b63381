"""`judgelab new` and `judgelab check`: from no file at all to a study that can be run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from judgelab.judging.check import Finding, check_study
from judgelab.project import shown
from judgelab.study.template import CRITERIA, SYSTEMS, JudgeKind, LabelSource, write_study

__all__ = ["check", "new"]

KINDS: tuple[str, ...] = get_args(JudgeKind)
SOURCES: tuple[str, ...] = get_args(LabelSource)


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The study's name: it becomes params/NAME.yaml.")],
    systems: Annotated[
        list[str] | None,
        typer.Option("--system", metavar="SYSTEM", help="A system whose answers are compared. Twice or more."),
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", metavar="KIND", help=f"The judge on trial: {', '.join(KINDS)}.")
    ] = None,
    criteria: Annotated[
        list[str] | None,
        typer.Option("--criterion", metavar="CRITERION", help="A criterion of the rubric. May be repeated."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="SOURCE",
            help="Where human labels come from: notebook (people label in notebook 02), file (a CSV), or none.",
        ),
    ] = None,
    ask: Annotated[
        bool | None,
        typer.Option(
            "--ask/--no-ask",
            help="Ask for what no option says. Without either: asked on a terminal, unless an option is given.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the files of a new study: a commented protocol, and templates of its items and human labels.

    What is neither asked for nor given: systems ALPHA and BETA, a very small LLM on this machine as the judge, five
    criteria, and human labels that are made in notebook 02. Nothing is overwritten.
    """
    name = name.removesuffix(".yaml")
    if sys.stdin.isatty() and not (systems or judge or criteria or labels) if ask is None else ask:
        systems = systems or _asked_names("Which systems do you compare (with commas between)?", SYSTEMS, 2)
        judge = judge or typer.prompt(f"Which kind of judge ({', '.join(KINDS)})?", KINDS[0], value_proc=_one_of(KINDS))
        criteria = criteria or _asked_names("What makes an answer good (criteria, with commas)?", tuple(CRITERIA), 1)
        question = (
            f"Where do human labels come from ({', '.join(SOURCES)}: people label in notebook 02, a CSV, nowhere)?"
        )
        labels = labels or typer.prompt(question, SOURCES[0], value_proc=_one_of(SOURCES))
    files = write_study(
        name,
        seed=int(f"{date.today():%Y%m%d}"),
        systems=tuple(systems or SYSTEMS),
        judge=cast(JudgeKind, judge or KINDS[0]),
        criteria=tuple(criteria or CRITERIA),
        labels=cast(LabelSource, labels or SOURCES[0]),
    )
    for path in files:
        typer.echo(f"written: {shown(path)}")
    typer.echo(f"next: write your own in place of every REPLACE, then judgelab check {shown(files[0])}")


def check(
    params: Annotated[Path, typer.Argument(help="The study: params/<name>.yaml with the keys run and study.")],
) -> None:
    """Say in order what is missing before a study can be run. Sends and writes nothing.

    Ends with status 1 if anything is missing or wrong. Advice does not keep a study from being run.
    """
    findings = check_study(params)
    for finding in findings:
        for line in _lines(finding):
            typer.echo(line)
    blocking = [finding for finding in findings if finding.blocks]
    if not blocking:
        typer.echo(f"ready: judgelab run {params}")
        return
    many, wrong = len(blocking) > 1, any(finding.level == "wrong" for finding in blocking)
    what = "missing or wrong" if wrong else "missing"
    typer.echo(f"{len(blocking)} thing{'s are' if many else ' is'} {what}")
    raise typer.Exit(1)


def _lines(finding: Finding) -> list[str]:
    """A finding for a terminal: its level and what was found, and below it how to mend it."""
    first, *rest = finding.what.split("\n")
    more = [f"         {line}" for line in rest]
    return [f"{finding.level:<8} {first}", *more, *([f"         to do: {finding.mend}"] if finding.mend else [])]


def _asked_names(question: str, default: tuple[str, ...], least: int) -> list[str]:
    def names(text: str) -> list[str]:
        found = [part.strip() for part in text.split(",") if part.strip()]
        if len(found) < least:
            raise typer.BadParameter(f"{least} or more are needed")
        return found

    return cast(list[str], typer.prompt(question, ", ".join(default), value_proc=names))


def _one_of(allowed: tuple[str, ...]) -> Callable[[str], str]:
    def checked(text: str) -> str:
        if text.strip() not in allowed:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(allowed)}")
        return text.strip()

    return checked
