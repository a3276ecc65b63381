"""What a run will ask, before anything is sent: calls, tokens, cost and time for each judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.judging.judges.base import Call
from judgelab.judging.ledger import Ledger
from judgelab.judging.passes import PASSES, calls_of, planned_calls
from judgelab.judging.work import open_calls
from judgelab.study.configuration import asks_a_model, describe
from judgelab.study.items import Item, read_items
from judgelab.study.protocol import Study
from judgelab.study.run import Run

__all__ = ["ASSUMED_LATENCY", "cost_table", "duration", "plan_table"]

CHARACTERS_PER_TOKEN = 4  # English prose under common tokenisers; an estimate, and named so in the table
REPLY_TOKENS = 80
ASSUMED_LATENCY = 2.0  # seconds a call, of a judge that has not been asked yet


def cost_table(run: Run) -> pd.DataFrame:
    """One row per judge: calls, estimated tokens (characters / 4), and cost by the protocol's prices.

    Judges that ask no model cost nothing. Retries are not counted.
    """
    rows = []
    for judge in run.study.judges:
        calls = _calls(run.study, run.evaluation_items(), judge)
        asked = calls if asks_a_model(judge) else []
        sent, received = _tokens(run.study, judge, asked)
        rows.append(
            {
                "judge": judge.name,
                "what it is": describe(judge),
                "calls": len(calls),
                "calls to a model": len(asked),
                "tokens in (est.)": sent,
                "tokens out (est.)": received,
                "cost (est.)": f"{judge.prices.cost(sent, None, received):.2f} {judge.prices.currency}",
            }
        )
    return pd.DataFrame(rows)


def plan_table(study: Study, ledger_path: Path | None = None, *, latency: float | None = None) -> pd.DataFrame:
    """What is still to be asked of each judge, from the protocol and its items alone: no run need be frozen.

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
        One row per judge: ``judge``, ``what`` it is, ``calls`` (planned), ``left`` to ask, ``tokens_in`` (characters
        / 4) and ``tokens_out`` (80 a call) of what is left, ``cost`` of it (NaN without prices), ``currency``,
        ``spent`` so far (NaN without prices), ``seconds`` (see :func:`duration`), ``latency_seconds`` and
        ``latency_from`` (measured, given or assumed), ``stops`` (the caps that the plan would reach). Retries are
        not counted.
    """
    items = tuple(item for item in read_items(study).items if item.split == "evaluation")
    if ledger_path is None or not ledger_path.exists():
        return pd.DataFrame([_row(study, items, judge, None, latency) for judge in study.judges])
    with Ledger(ledger_path, read_only=True) as ledger:
        return pd.DataFrame([_row(study, items, judge, ledger, latency) for judge in study.judges])


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


def _row(
    study: Study, items: Sequence[Item], judge: Any, ledger: Ledger | None, latency: float | None
) -> dict[str, Any]:
    left = [call for calls in _passes(study, items, judge) for call in open_calls(study, judge, calls, ledger)]
    asked = left if asks_a_model(judge) else []
    sent, received = _tokens(study, judge, asked)
    row: dict[str, Any] = {
        "judge": judge.name,
        "what": describe(judge),
        "calls": len(_calls(study, items, judge)),
        "left": len(left),
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
    if not asks_a_model(judge):
        return row
    taken = _latency(judge.name, ledger, latency)
    spent = None if ledger is None else ledger.spent(judge.name)
    if judge.prices.known:
        row["cost"] = judge.prices.cost(sent, None, received)
        row["spent"] = 0.0 if spent is None else spent.cost
    row |= {"latency_seconds": taken.seconds, "latency_from": taken.source}
    row["seconds"] = duration(len(asked), sent + received, judge.limits, taken.seconds) if asked else 0.0
    before = (0, 0, 0.0) if spent is None else (spent.calls, spent.tokens, spent.cost)
    needed = (len(asked), sent + received, judge.prices.cost(sent, None, received))
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


def _passes(study: Study, items: Sequence[Item], judge: Any) -> list[list[Call]]:
    return [calls_of(study, items, judge, name) for name in PASSES if name in study.passes_of(judge)]


def _calls(study: Study, items: Sequence[Item], judge: Any) -> list[Call]:
    return [call for calls in _passes(study, items, judge) for call in calls]


def _tokens(study: Study, judge: Any, calls: Iterable[Call]) -> tuple[int, int]:
    """Estimated tokens in and out."""
    lengths = [len(each.prompt.system) + len(each.prompt.user) for each in planned_calls(study, judge, calls)]
    return sum(lengths) // CHARACTERS_PER_TOKEN, len(lengths) * REPLY_TOKENS
