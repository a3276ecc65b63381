"""The plan and the ledger as lines for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from judgelab.judging.batch_ledger import at_provider
from judgelab.judging.ledger import Ledger
from judgelab.judging.plan import CHARACTERS_PER_TOKEN, REPLY_TOKENS
from judgelab.study.run import Run

__all__ = ["duration_words", "ledger_lines", "plan_lines"]


def plan_lines(name: str, table: pd.DataFrame) -> Iterator[str]:
    """The table of :func:`judgelab.judging.plan.plan_table` in words and columns."""
    yield f"plan of run {name}: {table['left'].sum():,} of {table['calls'].sum():,} calls are left to ask"
    rows = [
        (
            *(row.judge, f"{row.calls:,}", f"{row.left:,}"),
            *(f"{count:,}" if row.latency_from else "-" for count in (row.tokens_in, row.tokens_out)),
            *(_money(row.cost, row.currency), _money(row.spent, row.currency)),
            duration_words(row.seconds) if row.latency_from else "-",
        )
        for row in _rows(table)
    ]
    yield from _columns(["judge", "calls", "left", "tokens in", "tokens out", "cost", "spent so far", "time"], rows)
    asked = table[table["latency_from"] != ""]
    if len(asked):
        yield (
            f"tokens in: estimated, characters / {CHARACTERS_PER_TOKEN}; tokens out: {REPLY_TOKENS} a call; "
            "cost by the protocol's prices; retries are not counted"
        )
        told = [f"{row.judge} {row.latency_seconds:.2g} s a call ({row.latency_from})" for row in _rows(asked)]
        yield f"time: by the judge's limits and its latency: {', '.join(told)}"
    for row in _rows(table[table["stops"] != ""]):
        yield f"caps: {row.judge} will be stopped before it passes {row.stops}"


def ledger_lines(run: Run) -> Iterator[str]:
    """What has been judged: counts by judge, pass and status, tokens, cost and latency."""
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        counts, planned, batches = ledger.counts(), ledger.progress(), at_provider(ledger)
        caps = {judge.name: ledger.caps(judge.name) for judge in run.study.judges}
    yield f"ledger of run {run.name}: {counts['calls'].sum():,} calls, {counts['requests'].sum():,} requests"
    rows = [
        (
            *(row.judge, row.strategy, row.pass_, row.status, f"{row.calls:,}", f"{row.requests:,}"),
            *(f"{count:,}" if row.tokens_in + row.tokens_out else "-" for count in (row.tokens_in, row.tokens_out)),
            _money(row.cost, row.currency),
            f"{row.latency_seconds:.3g} s" if row.latency_seconds >= 0.001 else "-",  # a rule takes no time
        )
        for row in _rows(counts)
    ]
    header = ["judge", "strategy", "pass", "status", "calls", "requests", "tokens in", "tokens out", "cost", "latency"]
    yield from _columns(header, rows, left=4)
    for row in _rows(planned):
        if row.planned > row.done:
            yield f"open: {row.judge} {row.strategy} {row.pass_}: {row.planned - row.done:,} of {row.planned:,} calls"
    for row in _rows(batches):
        name = row.batch_id or "a batch that was being sent"
        counts_there = f"{row.done:,} of {row.calls:,} calls done"
        yield f"at the provider: {row.judge} {row.strategy} {row.pass_}: {name}, {counts_there}"
    for judge, raised in caps.items():
        for key, value in sorted(raised.items()):
            yield f"raised: {judge} {key} to {value:g}"


def duration_words(seconds: float) -> str:
    """Seconds as people say them: ``45 s``, ``12 min``, ``3 h 20 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60:,} h {minutes % 60} min"


def _rows(table: pd.DataFrame) -> list[Any]:
    """Rows with a field a column; ``pass`` is a word of Python's."""
    return list(table.rename(columns={"pass": "pass_"}).itertuples())


def _money(value: float, currency: str | None) -> str:
    return "-" if math.isnan(value) else f"{value:,.2f} {currency}"


def _columns(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> Iterator[str]:
    """Lines of equal columns; the first ``left`` begin at their left edge, the numbers end at their right."""
    widths = [max(len(row[place]) for row in (header, *rows)) for place in range(len(header))]
    for row in (header, *rows):
        cells = [
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
