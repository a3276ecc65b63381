"""What is left to do in a run: the plan compared with the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from judgelab.judging.entries import Entry
from judgelab.judging.judges.base import Call
from judgelab.judging.ledger import Ledger
from judgelab.judging.passes import PASSES, calls_of, config_sha256, plan_sha256, planned_calls
from judgelab.study.run import Run

__all__ = ["Work", "note_complete", "open_calls", "planned_work", "summary"]


@dataclass
class Work:
    """One pass of one judge: how many calls it has, those that must be asked, in their order, and how many were.

    ``settled`` counts the calls of ``todo`` that have since got a verdict or an unusable reason in the ledger.
    """

    judge: Any
    pass_name: str
    config_sha256: str
    planned: int
    todo: list[Call]
    settled: int = 0

    def count(self, entries: Iterable[Entry]) -> None:
        """Take notice of what was written into the ledger."""
        self.settled += sum(entry.status != "failed" for entry in entries)

    @property
    def strategy(self) -> str:
        """``direct`` or ``pairwise``."""
        return PASSES[self.pass_name][0]

    @property
    def place(self) -> tuple[str, str, str]:
        """Judge, strategy and pass, as the ledger names them."""
        return (self.judge.name, *PASSES[self.pass_name])


def planned_work(run: Run, passes: Sequence[str], ledger: Ledger) -> list[Work]:
    """Every pass of every judge that is among ``passes``, with what is left of it.

    Prompts are rendered and compared with the ledger's keys one at a time and not kept. A pass that was once found
    complete is not rendered again while protocol, items, judge and the code of the prompts are the same.

    Raises
    ------
    RunError
        If a swapped prompt differs from its original in more than the order of the answers. Nothing was asked.
    """
    return [
        _work(run, judge, pass_name, ledger)
        for judge in run.study.judges
        for pass_name in passes
        if pass_name in run.study.passes_of(judge)
    ]


def _work(run: Run, judge: Any, pass_name: str, ledger: Ledger) -> Work:
    config = config_sha256(judge)
    place = (judge.name, *PASSES[pass_name])
    complete, count = ledger.completed(*place)
    if complete == plan_sha256(run, judge, pass_name) and _settled(ledger, judge.name, config, pass_name) >= count:
        run.check_items()
        return Work(judge, pass_name, config, count, [])
    calls = calls_of(run.study, run.evaluation_items(), judge, pass_name)
    ledger.set_plan(*place, len(calls))
    return Work(judge, pass_name, config, len(calls), open_calls(run.study, judge, calls, ledger, check_swap=True))


def open_calls(
    study: Any, judge: Any, calls: Sequence[Call], ledger: Ledger | None, *, check_swap: bool = False
) -> list[Call]:
    """The calls that the ledger does not hold as finished."""
    if not calls:
        return []
    config = config_sha256(judge)
    place = (judge.name, config, calls[0].strategy, calls[0].pass_)
    finished = ledger.prompts_finished(*place) if ledger is not None else set()
    if not finished and not (check_swap and calls[0].pass_ == "swapped"):
        return list(calls)
    return [planned.call for planned in planned_calls(study, judge, calls) if planned.key.digest() not in finished]


def note_complete(run: Run, work: Work, ledger: Ledger) -> None:
    """Remember that every call of a pass is finished, so that opening the run again is cheap."""
    if work.settled < len(work.todo):
        return
    plan = plan_sha256(run, work.judge, work.pass_name)
    if ledger.completed(*work.place)[0] != plan:
        ledger.set_plan(*work.place, work.planned, complete_sha256=plan)


def summary(work: Work, ledger: Ledger) -> dict[str, Any]:
    """Counts for one judge and pass."""
    counts = ledger.pass_counts(work.judge.name, work.config_sha256, *PASSES[work.pass_name])
    return {
        "judge": work.judge.name,
        "pass": work.pass_name,
        "planned": work.planned,
        "already": work.planned - len(work.todo),
        "asked": len(work.todo),
        "verdicts": counts.get("verdict", 0),
        "unusable": counts.get("unusable", 0),
        "failed": counts.get("failed", 0),
    }


def _settled(ledger: Ledger, judge: str, config: str, pass_name: str) -> int:
    counts = ledger.pass_counts(judge, config, *PASSES[pass_name])
    return sum(count for status, count in counts.items() if status != "failed")
