"""What is left to do in a run: the plan compared with the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from judgelab.judging.entries import Entry
from judgelab.judging.judges.base import Call
from judgelab.judging.ledger import Ledger
from judgelab.judging.passes import (
    PassPlan,
    Prompts,
    config_sha256,
    in_order,
    plain_pass,
    plan_sha256,
    planned_call,
    planned_calls,
)
from judgelab.judging.replies import Contract, contract_for
from judgelab.study.protocol import Study
from judgelab.study.run import Run

__all__ = ["Work", "note_complete", "open_calls", "passes_of", "planned_work", "summary"]


@dataclass
class Work:
    """One pass of one judge: how many calls it has, those that must be asked, in their order, and how many were.

    ``settled`` counts the calls of ``todo`` that have since got a verdict or an unusable reason in the ledger.
    """

    plan: PassPlan
    config_sha256: str
    planned: int = 0
    todo: list[Call] = field(default_factory=list)
    settled: int = 0

    def count(self, entries: Iterable[Entry]) -> None:
        """Take notice of what was written into the ledger."""
        self.settled += sum(entry.status != "failed" for entry in entries)

    @property
    def judge(self) -> Any:
        """The judge as it is asked."""
        return self.plan.judge

    @property
    def pass_name(self) -> str:
        """The pass, for people."""
        return self.plan.name

    @property
    def strategy(self) -> str:
        """``direct`` or ``pairwise``."""
        return self.plan.strategy

    @property
    def place(self) -> tuple[str, str, str]:
        """Judge, strategy and pass, as the ledger names them."""
        return self.judge.name, self.plan.strategy, self.plan.pass_

    def contract(self, study: Study) -> Contract:
        """What a reply of this pass must hold."""
        reply_format: Literal["json", "text"] = getattr(self.judge, "reply_format", "json")
        return contract_for(study, self.strategy, reply_format, self.plan.shape)


def passes_of(study: Study, passes: Iterable[str]) -> list[PassPlan]:
    """Every pass of every judge that is among ``passes``."""
    return [
        plain_pass(study, judge, name) for judge in study.judges for name in passes if name in study.passes_of(judge)
    ]


def planned_work(run: Run, passes: Sequence[str | PassPlan], ledger: Ledger) -> list[Work]:
    """The passes with what is left of each; a name stands for that pass of every judge that has it.

    Items are read and their prompts rendered one at a time, and compared with the digests of the ledger's keys: in
    memory stays what has to be asked. A pass that was once found complete is not rendered again while protocol, items,
    judge and the code of the prompts are the same.

    Raises
    ------
    RunError
        If a swapped prompt differs from its original in more than the order of the answers. Nothing was asked.
    """
    named = [each for each in passes if isinstance(each, str)]
    plans = [*passes_of(run.study, named), *(each for each in passes if isinstance(each, PassPlan))]
    work = [Work(plan, config_sha256(plan.judge)) for plan in plans]
    unknown = [part for part in work if not _known_complete(run, part, ledger)]
    if unknown:
        _compare(run, unknown, ledger)
    else:
        run.check_items()
    return work


def _known_complete(run: Run, part: Work, ledger: Ledger) -> bool:
    """Whether an earlier run found every call of a pass finished, and they still are: then takes over their number."""
    complete, count = ledger.completed(*part.place)
    if complete != plan_sha256(run, part.plan) or _settled(ledger, part) < count:
        return False
    part.planned = count
    return True


def _compare(run: Run, work: Sequence[Work], ledger: Ledger) -> None:
    """Compare the calls of some passes with the ledger, all calls about an item before the next item is read."""
    study, prompts = run.study, Prompts(run.study)
    comparisons = [(part, _finished(ledger, part.place, part.config_sha256)) for part in work]
    for item in run.each_item():
        for part, finished in comparisons:
            if item.split != part.plan.split:
                continue
            calls = part.plan.calls(item)
            part.planned += len(calls)
            swapped = part.plan.pass_.rpartition("/")[2] == "swapped"
            if finished or swapped:  # a swap is checked before anything is asked
                plan = [planned_call(study, part.judge.name, part.config_sha256, call, prompts) for call in calls]
                calls = [planned.call for planned in plan if planned.key.digest() not in finished]
            part.todo += calls
    for part in work:
        part.todo = in_order(study, part.todo)
        ledger.set_plan(*part.place, part.planned)


def open_calls(study: Any, judge: Any, calls: Sequence[Call], ledger: Ledger | None) -> list[Call]:
    """Of some calls of one pass, those that the ledger does not hold as finished."""
    if not calls or ledger is None:
        return list(calls)
    finished = _finished(ledger, (judge.name, calls[0].strategy, calls[0].pass_), config_sha256(judge))
    if not finished:
        return list(calls)
    return [planned.call for planned in planned_calls(study, judge, calls) if planned.key.digest() not in finished]


def _finished(ledger: Ledger, place: tuple[str, str, str], config: str) -> set[bytes]:
    """The keys' digests of the finished calls of one pass."""
    judge, strategy, pass_ = place
    return ledger.prompts_finished(judge, config, strategy, pass_)


def note_complete(run: Run, work: Work, ledger: Ledger) -> None:
    """Remember that every call of a pass is finished, so that opening the run again is cheap."""
    if work.settled < len(work.todo):
        return
    plan = plan_sha256(run, work.plan)
    if ledger.completed(*work.place)[0] != plan:
        ledger.set_plan(*work.place, work.planned, complete_sha256=plan)


def summary(work: Work, ledger: Ledger) -> dict[str, Any]:
    """Counts for one judge and pass."""
    counts = ledger.pass_counts(work.judge.name, work.config_sha256, *work.place[1:])
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


def _settled(ledger: Ledger, part: Work) -> int:
    counts = ledger.pass_counts(part.judge.name, part.config_sha256, *part.place[1:])
    return sum(count for status, count in counts.items() if status != "failed")
