"""The ledger as Parquet, CSV or the protocol's JSON lines, and verdicts that were made elsewhere into the ledger."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.errors import DataError, RunError
from judgelab.judging.asking import entry
from judgelab.judging.entries import IMPORTED, Attempt, Entry
from judgelab.judging.evidence import verdicts, write_evidence
from judgelab.judging.judges.base import Reply
from judgelab.judging.judges.recorded import Key, as_contract, record_key
from judgelab.judging.ledger import Ledger
from judgelab.judging.listwise import listwise_plans
from judgelab.judging.locks import hold_run
from judgelab.judging.passes import PASSES, PlannedCall, config_sha256, planned_calls
from judgelab.judging.probes import probe_plans
from judgelab.judging.repairs import repair_plans
from judgelab.judging.replies import Reading, contract_for
from judgelab.judging.work import passes_of
from judgelab.project import shown
from judgelab.study.run import Run
from judgelab.study.tables import csv_text, read_lines, write_bytes, write_text

__all__ = ["export_ledger", "import_verdicts"]

SHOWN_PROBLEMS = 5


def export_ledger(run: Run, to: Path) -> list[Path]:
    """Write what the ledger holds: ``.parquet`` or ``.csv`` with every call, or a folder with the evidence files.

    Returns
    -------
    list of pathlib.Path
        The files written.

    Raises
    ------
    RunError
        If the name has another ending, or the file cannot be written.
    """
    if to.suffix in (".parquet", ".csv"):
        with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
            calls = ledger.calls()
        if to.suffix == ".csv":
            write_text(csv_text(calls), to)
        else:
            write_bytes(_parquet(calls), to)
        return [to]
    if to.suffix:
        raise RunError(
            f"--export {to.name}: the ending {to.suffix} is not known; allowed are .parquet, .csv, or a folder "
            "for the protocol's JSON-lines files"
        )
    write_evidence(run, verdicts(run), to)
    names = ("direct_scores", "pairwise_original", "pairwise_swapped", "invalid_outputs")
    return [to / f"{name}.jsonl" for name in names]


def import_verdicts(run: Run, path: Path, judge_name: str) -> int:
    """Write verdicts that were made elsewhere into the ledger, as calls of one judge of the protocol.

    A line is a record as a judge of kind ``recorded`` reads it: item_id, strategy, pass, system or first and second,
    and a reply, a verdict or a reason. Replies are read by the judge's own contract.

    Returns
    -------
    int
        How many calls were written.

    Raises
    ------
    DataError
        If any line is not a record, is of a call that the protocol does not plan, repeats another line, or is of a
        call that is finished already. Nothing is written then.
    RunError
        If the protocol has no such judge, or another process is judging in this run.
    """
    judge = next((each for each in run.study.judges if each.name == judge_name), None)
    if judge is None:
        names = ", ".join(each.name for each in run.study.judges)
        raise RunError(f"run {run.name} has no judge {judge_name!r}; its judges are {names}")
    with hold_run(run.folder):
        found = _checked(run, judge, path)
        with Ledger(run.path("ledger.sqlite")) as ledger:
            ledger.see_judge(judge_name, config_sha256(judge))
            ledger.record_all(_entry(run, judge, each, record) for each, record in found)
    return len(found)


def _checked(run: Run, judge: Any, path: Path) -> list[tuple[PlannedCall, dict[str, Any]]]:
    """The records with the calls that they are of, if every line is in order."""
    ledger_path, finished = run.path("ledger.sqlite"), set[tuple[Any, ...]]()
    planned = {_key_of(each): each for each in _planned(run, judge)}
    if ledger_path.exists():
        with Ledger(ledger_path, read_only=True) as ledger:
            for config in {each.key.config_sha256 for each in planned.values()}:  # a repair may change the decoding
                finished |= ledger.finished(judge.name, config)
    found, problems = _records(path, judge.name, planned, finished)
    if problems:
        more = f"; and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
        raise DataError(
            f"{shown(path)}: {len(problems)} of {len(problems) + len(found)} records cannot be imported, so "
            f"none was: {'; '.join(problems[:SHOWN_PROBLEMS])}{more}"
        )
    if not found:
        raise DataError(f"{shown(path)}: no record of judge {judge.name!r}")
    return found


def _planned(run: Run, judge: Any) -> Iterator[PlannedCall]:
    items = run.items()
    plans = [*passes_of(run.study, PASSES), *probe_plans(run), *repair_plans(run), *listwise_plans(run.study)]
    for plan in plans:
        if plan.judge.name == judge.name:
            calls = [call for item in items if item.split == plan.split for call in plan.calls(item)]
            yield from planned_calls(run.study, plan.judge, calls)


def _key_of(planned: PlannedCall) -> Key:
    call = planned.call
    return call.item.item_id, call.strategy, call.pass_, call.presentation, call.repeat


def _records(
    path: Path, judge: str, planned: dict[Key, PlannedCall], finished: set[tuple[Any, ...]]
) -> tuple[list[tuple[PlannedCall, dict[str, Any]]], list[str]]:
    """The records of one judge with the calls that they are of, and what is wrong with the others."""
    found, problems, lines = [], [], dict[Key, int]()
    for line, text in read_lines(path):
        try:
            record = _object(text)
            if record.get("record", judge) != judge:
                continue
            key = record_key(record)
            if key in lines:
                raise ValueError(f"repeats the call of line {lines[key]}")
            lines[key] = line
            if key not in planned:
                raise ValueError(f"is of a call that the protocol does not plan: {_told(key)}")
            if planned[key].key.values() in finished:
                raise ValueError(f"is of a call that is finished already and is kept: {_told(key)}")
            found.append((planned[key], record))
        except ValueError as error:
            problems.append(f"line {line} {error}")
    return found, problems


def _object(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise ValueError("is not a JSON object")
    return record


def _told(key: Key) -> str:
    item_id, strategy, pass_, presentation, repeat = key
    where = strategy if strategy == "direct" else f"{strategy} {pass_}"
    again = f", repeat {repeat}" if repeat else ""
    return f"item {item_id}, {where}, {' then '.join(presentation)}{again}"


def _entry(run: Run, judge: Any, planned: PlannedCall, record: dict[str, Any]) -> Entry:
    """A record as the ledger's entry, read as the runner would read it."""
    wording = planned.call.wording
    contract = contract_for(run.study, planned.call.strategy, getattr(judge, "reply_format", "json"), wording.shape)
    names = ("model", "fingerprint", "finish_reason", "tokens_in", "tokens_out", "logprobs")
    reply = Reply(text=record.get("reply"), **{name: record.get(name) for name in names})
    verdict = as_contract(record.get("verdict"))
    if record.get("reason") is not None:
        reading = Reading(None, record["reason"])
    elif verdict is not None:
        reading = contract.check_parsed(verdict)
    else:
        reading = contract.read(reply.text, answers=planned.prompt.answers)
    outcome = "verdict" if reading.usable else "malformed"
    tried = Attempt(outcome, IMPORTED, reply.text, reading.reason, reading.detail or None)
    status = "verdict" if reading.usable else "unusable"
    return entry(planned, status, [tried], reply=reply, reading=reading)


def _parquet(calls: pd.DataFrame) -> bytes:
    """Every column with one type, so that a file without a single cost still has a column of numbers."""
    whole = ("repeat", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "attempts")
    numbers = ("cost", "latency_seconds")
    types = {name: "Int64" if name in whole else "float64" if name in numbers else "str" for name in calls.columns}
    content = io.BytesIO()
    calls.astype(types).to_parquet(content, index=False)
    return content.getvalue()
