"""What a run will ask, before anything is sent: calls, tokens, cost and time for each judge.

Probes and repairs are counted with the plain passes. Where a repair shows the examples that an endpoint for embeddings
finds, the plan asks no endpoint: it takes as many development examples as ``few_shot`` would show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from judgelab.judging.generation import generation_plans
from judgelab.judging.ledger import Ledger
from judgelab.judging.listwise import listwise_plans
from judgelab.judging.passes import PASSES, PassPlan, Prompts, config_sha256, planned_call
from judgelab.judging.probes import probe_plans
from judgelab.judging.repairs import repair_plans
from judgelab.judging.work import passes_of
from judgelab.study.battery import FewShot, RetrievedExamples
from judgelab.study.configuration import asks_a_model, describe
from judgelab.study.items import Item
from judgelab.study.protocol import Study
from judgelab.study.run import Run
from judgelab.study.unfrozen import StudyData, UnfrozenStudy

__all__ = ["ASSUMED_LATENCY", "battery_lines", "cost_table", "duration", "plan_table"]

CHARACTERS_PER_TOKEN = 4  # English prose under common tokenisers; an estimate, and named so in the table
REPLY_TOKENS = 80
ASSUMED_LATENCY = 2.0  # seconds a call, of a judge that has not been asked yet
Part = Literal["plain", "probe", "repair", "listwise", "generation"]


def cost_table(run: Run) -> pd.DataFrame:
    """One row per judge: calls, estimated tokens (characters / 4), and cost by the protocol's prices.

    Judges that ask no model cost nothing. Retries are not counted. Where the protocol has probes or repairs, columns
    say how many of the calls are theirs.
    """
    study, rows = run.study, []
    counted = _counted(replace(run, study=_without_embeddings(study)), None)
    for judge in study.judges:
        own = counted[judge.name]
        model = asks_a_model(judge)
        sent, received = own.tokens() if model else (0, 0)
        row: dict[str, Any] = {"judge": judge.name, "what it is": describe(judge), "calls": own.calls()}
        if study.probes.run:
            row["of probes"] = own.calls("probe")
        if study.repairs.run:
            row["of repairs"] = own.calls("repair")
        if study.ranking.listwise:
            row["of listwise"] = own.calls("listwise")
        row |= {
            "calls to a model": own.calls() if model else 0,
            "tokens in (est.)": sent,
            "tokens out (est.)": received,
            "cost (est.)": f"{judge.prices.cost(sent, None, received):.2f} {judge.prices.currency}",
        }
        rows.append(row)
    return pd.DataFrame(rows)


def plan_table(study: Study, ledger_path: Path | None = None, *, latency: float | None = None) -> pd.DataFrame:
    """What is still to be asked of each judge, from the protocol and its files alone: no run need be frozen.

    Parameters
    ----------
    study
        The protocol.
    ledger_path
        The run's ledger, if it has one: what it holds as finished is not asked again.
    latency
        Seconds a call. None: the median of the judge's calls in the ledger, else ``ASSUMED_LATENCY``.

    Returns
    -------
    pandas.DataFrame
        One row per judge, models that write answers (``system:<name>``) first: ``judge``, ``what`` it is, ``calls``
        (planned, in plain passes, probes and repairs), ``probe_calls``, ``repair_calls``, ``listwise_calls`` (how many
        of ``calls`` are theirs), ``left`` to ask, ``tokens_in`` (characters / 4) and ``tokens_out`` of what is left (80
        a call; where a repair lets the judge reason first, and of answers, as many as may be written), ``cost`` of it
        (NaN without prices), ``currency``, ``spent`` so far (NaN without prices), ``seconds`` (see :func:`duration`),
        ``latency_seconds`` and ``latency_from`` (measured, given or assumed), ``stops`` (the caps that the plan would
        reach). Retries are not counted.

    Raises
    ------
    DataError
        If the items cannot be used, or the human labels where a probe or a repair needs them.
    """
    data = UnfrozenStudy(_without_embeddings(study), None if ledger_path is None else ledger_path.parent.name)
    if ledger_path is None or not ledger_path.exists():
        counted = _counted(data, None)
        return pd.DataFrame([_row(judge, counted[judge.name], None, latency) for judge in _asked(study)])
    with Ledger(ledger_path, read_only=True) as ledger:
        counted = _counted(data, ledger, estimated=_by_embeddings(study))
        return pd.DataFrame([_row(judge, counted[judge.name], ledger, latency) for judge in _asked(study)])


def _asked(study: Study) -> list[Any]:
    """Everybody who is asked: the models that write answers first, then the judges."""
    return [*(plan.judge for plan in generation_plans(study)), *study.judges]


def battery_lines(table: pd.DataFrame) -> Iterator[str]:
    """What probes and repairs add to :func:`plan_table`, in words for a terminal; nothing without any."""
    for column, what in (
        ("probe_calls", "probes"),
        ("repair_calls", "repairs"),
        ("listwise_calls", "listwise rankings"),
    ):
        having = table[table[column] > 0]
        if len(having):
            each = ", ".join(f"{judge} {count:,}" for judge, count in zip(having["judge"], having[column], strict=True))
            yield f"{what}: {having[column].sum():,} of the calls: {each}"
    if ((table["tokens_out"] > table["left"] * REPLY_TOKENS) & (table["latency_from"] != "")).any():
        yield "tokens out of calls that put reasons first or write answers: as many as may be written"


def duration(calls: int, tokens: int, limits: Any, latency: float) -> float:
    """Seconds that calls take: the longest of latency x calls / concurrency and what the limits a minute allow.

    The first minute's allowance is there at once: n calls at r a minute take (ceil(n / r) - 1) minutes of waiting.
    """
    waits = [latency * -(-calls // limits.concurrency)]
    for amount, rate in ((calls, limits.requests_per_minute), (tokens, limits.tokens_per_minute)):
        if rate is not None and calls:
            waits.append((-(-amount // rate) - 1) * 60.0 + latency)
    return max(waits)


@dataclass(frozen=True)
class _Latency:
    seconds: float
    source: str


@dataclass
class _Count:
    """One pass of one judge: its calls, those that are left, and the characters of the prompts of those."""

    plan: PassPlan
    part: Part
    config: str
    finished: set[bytes]
    estimated: bool  # the prompts are not those that will be sent: the ledger's cannot be told by them
    calls: int = 0
    left: int = 0
    characters: int = 0

    def add(self, study: Study, item: Item, prompts: Prompts) -> None:
        """Count the calls about one item."""
        if item.split != self.plan.split and self.part != "generation":
            return
        calls = self.plan.calls(item)
        self.calls += len(calls)
        if not asks_a_model(self.plan.judge) and not self.finished:
            self.left += len(calls)  # what costs nothing need not be rendered
            return
        for call in calls:
            planned = planned_call(study, self.plan.judge.name, self.config, call, prompts)
            if self.estimated or planned.key.digest() not in self.finished:
                self.left += 1
                self.characters += len(planned.prompt.system) + len(planned.prompt.user)

    def settle(self) -> None:
        """Where prompts are estimated: take off as many calls as are finished, of average length."""
        if self.estimated and self.calls:
            self.left = max(self.calls - len(self.finished), 0)
            self.characters = round(self.characters * self.left / self.calls)

    @property
    def reply_tokens(self) -> int:
        """Estimated tokens of all replies; of reasons in words, as many as this judge may write here."""
        first = self.plan.shape.reasons == "first" and asks_a_model(self.plan.judge)
        first |= self.part == "generation"
        return self.left * (self.plan.judge.max_tokens if first else REPLY_TOKENS)


@dataclass
class _Counts:
    """All passes of one judge."""

    passes: list[_Count] = field(default_factory=list)

    def calls(self, part: Part | None = None) -> int:
        """Planned calls, of one part of the protocol or of all."""
        return sum(each.calls for each in self.passes if part in (None, each.part))

    @property
    def left(self) -> int:
        return sum(each.left for each in self.passes)

    def tokens(self) -> tuple[int, int]:
        """Estimated tokens in and out of what is left."""
        characters = sum(each.characters for each in self.passes)
        return characters // CHARACTERS_PER_TOKEN, sum(each.reply_tokens for each in self.passes)


def _counted(data: StudyData, ledger: Ledger | None, estimated: frozenset[str] = frozenset()) -> dict[str, _Counts]:
    """The passes of each judge, by its name, counted item by item; ``estimated`` names repairs (see ``_Count``)."""
    study = data.study
    makers = generation_plans(study)
    counted = {judge.name: _Counts() for judge in (*study.judges, *(plan.judge for plan in makers))}
    parts: tuple[tuple[Part, list[PassPlan]], ...] = (
        ("plain", passes_of(study, PASSES)),
        ("probe", probe_plans(data)),
        ("repair", repair_plans(data)),
        ("listwise", listwise_plans(study)),
        ("generation", makers),
    )
    for part, plans in parts:
        for plan in plans:
            name, config = plan.judge.name, config_sha256(plan.judge)
            done = set() if ledger is None else ledger.prompts_finished(name, config, plan.strategy, plan.pass_)
            guessed = part == "repair" and plan.pass_.partition("/")[0] in estimated
            counted[name].passes.append(_Count(plan, part, config, done, guessed))
    every, prompts = [count for own in counted.values() for count in own.passes], Prompts(study)
    for item in data.each_item():
        for count in every:
            count.add(study, item, prompts)
    for count in every:
        count.settle()
    return counted


def _by_embeddings(study: Study) -> frozenset[str]:
    """The names of the repairs whose examples an endpoint for embeddings finds."""
    return frozenset(
        each.name for each in study.repairs.run if isinstance(each, RetrievedExamples) and each.embeddings is not None
    )


def _without_embeddings(study: Study) -> Study:
    """The protocol with ``few_shot`` in the place of repairs that ask an endpoint for embeddings."""
    run = tuple(
        FewShot(
            kind="few_shot", name=each.name, examples=each.examples, strategies=each.strategies,
            near_duplicate=each.near_duplicate,
        )
        if isinstance(each, RetrievedExamples) and each.embeddings is not None
        else each
        for each in study.repairs.run
    )  # fmt: skip
    return study.model_copy(update={"repairs": study.repairs.model_copy(update={"run": run})})


def _row(judge: Any, counted: _Counts, ledger: Ledger | None, latency: float | None) -> dict[str, Any]:
    model, left = asks_a_model(judge), counted.left
    sent, received = counted.tokens() if model else (0, 0)
    row: dict[str, Any] = {
        "judge": judge.name,
        "what": describe(judge),
        "calls": counted.calls(),
        "probe_calls": counted.calls("probe"),
        "repair_calls": counted.calls("repair"),
        "listwise_calls": counted.calls("listwise"),
        "left": left,
        "tokens_in": sent,
        "tokens_out": received,
        "cost": float("nan"),
        "currency": judge.prices.currency,
        "spent": float("nan"),
        "seconds": 0.0,
        "latency_seconds": float("nan"),
        "latency_from": "",
        "stops": "",
    }
    if not model:
        return row
    taken = _latency(judge.name, ledger, latency)
    spent = None if ledger is None else ledger.spent(judge.name)
    if judge.prices.known:
        row["cost"] = judge.prices.cost(sent, None, received)
        row["spent"] = 0.0 if spent is None else spent.cost
    row |= {"latency_seconds": taken.seconds, "latency_from": taken.source}
    row["seconds"] = duration(left, sent + received, judge.limits, taken.seconds) if left else 0.0
    before = (0, 0, 0.0) if spent is None else (spent.calls, spent.tokens, spent.cost)
    needed = (left, sent + received, judge.prices.cost(sent, None, received))
    caps = (judge.limits.max_calls, judge.limits.max_tokens, judge.limits.max_cost)
    raised = {} if ledger is None else ledger.caps(judge.name)
    row["stops"] = ", ".join(
        f"{key} {raised.get(key, cap):g}"
        for key, cap, had, more in zip(("max_calls", "max_tokens", "max_cost"), caps, before, needed, strict=True)
        if cap is not None and had + more > raised.get(key, cap)
    )
    return row


def _latency(judge: str, ledger: Ledger | None, given: float | None) -> _Latency:
    if given is not None:
        return _Latency(given, "given")
    measured = None if ledger is None else ledger.median_latency(judge)
    return _Latency(ASSUMED_LATENCY, "assumed") if measured is None else _Latency(measured, "measured")
