"""Judges of kind ``recorded``: verdicts that were made elsewhere, one JSON object a line.

A record holds ``item_id``, ``strategy``, ``pass`` (``direct``, ``original``, ``swapped``; of a probe or a repair
``padding/original``; of listwise calls ``order-1`` and so on), the presentation (``system``; ``first`` and ``second``;
or ``shown``, the systems of a listwise call in their order), ``repeat`` where it is not 0, and one of: the raw
``reply``, which is read by the same contract as any reply; the ``verdict`` as its source parsed it (``A``, ``B``,
``TIE``; ``{"scores": {...}}``; or ``{"ranking": [...]}`` by place); the ``reason`` why there is none. Where it holds
more, reason goes before verdict, and verdict before reply. The presentation is the record's.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from judgelab.errors import DataError
from judgelab.judging.judges.base import Call, JudgeClient, RefusedError, Reply
from judgelab.judging.prompts import Prompt
from judgelab.project import resolve, shown
from judgelab.study.configuration import RecordedJudge
from judgelab.study.protocol import Study
from judgelab.study.tables import read_lines

__all__ = ["Key", "RecordedClient", "as_contract", "record_key", "records_of"]

Key = tuple[str, str, str, tuple[str, ...], int]
Orders = dict[tuple[str, str, frozenset[str]], tuple[tuple[str, ...], int]]
PLACES = ("first", "second")


class RecordedClient(JudgeClient):
    """Looks the call up in the record."""

    def __init__(self, judge: RecordedJudge, study: Study) -> None:
        self._records = records_of(judge)

    async def ask(self, call: Call, prompt: Prompt) -> Reply:
        """The recorded reply. A call that the record does not hold is unusable."""
        record = self._records.get((call.item.item_id, call.strategy, call.pass_, call.presentation, call.repeat))
        if record is None:
            raise RefusedError("not_recorded", "the record holds no such call")
        return Reply(
            text=record.get("reply"),
            model=record.get("model"),
            fingerprint=record.get("fingerprint"),
            finish_reason=record.get("finish_reason"),
            tokens_in=record.get("tokens_in"),
            tokens_out=record.get("tokens_out"),
            verdict=as_contract(record.get("verdict")),
            reason=record.get("reason"),
            logprobs=record.get("logprobs"),
        )


def records_of(judge: RecordedJudge) -> dict[Key, dict[str, Any]]:
    """The judge's records by item, strategy, pass, presentation and repeat."""
    path = resolve(judge.path)
    stamp = path.stat().st_mtime_ns if path.exists() else 0
    return _read(path, judge.record or judge.name, stamp)


@lru_cache(maxsize=64)
def _read(path: Path, name: str, _stamp: int) -> dict[Key, dict[str, Any]]:
    records: dict[Key, dict[str, Any]] = {}
    orders: Orders = {}
    for line, text in read_lines(path):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise DataError(f"{shown(path)}: line {line} is not a JSON object")
        if record.get("record", name) != name:
            continue
        try:
            key = record_key(record)
        except ValueError as error:
            raise DataError(f"{shown(path)}: line {line} {error}") from None
        if key in records:
            raise DataError(f"{shown(path)}: line {line} repeats a call: {key}")
        _check_order(key, line, orders, shown(path))
        records[key] = record
    if not records:
        raise DataError(f"{shown(path)}: no record of judge {name!r}")
    return records


def _check_order(key: Key, line: int, orders: Orders, where: str) -> None:
    """Refuse a pairwise record that contradicts its pass: one pass shows a pair in one order, the other in its reverse.

    Raises
    ------
    DataError
        Naming both lines.
    """
    item_id, strategy, pass_, systems, _ = key
    if strategy != "pairwise":
        return
    label, _, name = pass_.rpartition("/")
    original = systems if name == "original" else systems[::-1]
    first, before = orders.setdefault((item_id, label, frozenset(systems)), (original, line))
    if first != original:
        raise DataError(
            f"{where}: line {line} does not go with line {before}: pass {name} of item {item_id!r} with {systems[0]!r} "
            "first; the pass original shows a pair in one order, the pass swapped in the other"
        )


def record_key(record: dict[str, Any]) -> Key:
    """The call that a record is of; what cannot be one is refused, or it would count as not recorded.

    Raises
    ------
    ValueError
        Naming the key that is missing or wrong.
    """
    if isinstance(record.get("item_id"), int):
        record["item_id"] = str(record["item_id"])  # as in the file of items
    strategy = _needed(record, "strategy", ("direct", "pairwise", "listwise"))
    pass_ = _needed(record, "pass")
    allowed = {"direct": ("direct",), "pairwise": ("original", "swapped")}.get(strategy, ())
    if allowed and pass_.rpartition("/")[2] not in allowed:
        raise ValueError(f"has pass {pass_!r}; needed is {' or '.join(allowed)}")
    if strategy == "listwise":
        systems = _shown_systems(record)
    else:
        systems = tuple(_needed(record, place) for place in (("system",) if allowed[0] == "direct" else PLACES))
    for name in ("reply", "reason", "model", "fingerprint", "finish_reason"):
        if not isinstance(record.get(name), str | None):
            raise ValueError(f"has a {name} that is not text")
    for name in ("tokens_in", "tokens_out"):
        if not isinstance(record.get(name), int | None):
            raise ValueError(f"has {name} that are not a whole number")
    repeat = record.get("repeat", 0)
    if type(repeat) is not int or repeat < 0:
        raise ValueError("has a repeat that is not a whole number from 0")
    if not isinstance(record.get("logprobs"), list | None):
        raise ValueError("has logprobs that are not a list")
    verdict = record.get("verdict")
    if verdict is not None and as_contract(verdict) is None:
        raise ValueError('has a verdict that is neither a label nor {"scores": {...}} nor {"ranking": [...]}')
    if all(record.get(name) is None for name in ("reply", "verdict", "reason")) and "reply" not in record:
        raise ValueError("has no 'reply', 'verdict' or 'reason'")
    return _needed(record, "item_id"), strategy, pass_, systems, repeat


def _shown_systems(record: dict[str, Any]) -> tuple[str, ...]:
    """The systems of a listwise call in the order in which they were shown."""
    given = record.get("shown")
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given) or len(set(given)) < len(given):
        raise ValueError("has no list 'shown' of the systems in the order shown, each once")
    return tuple(given)


def _needed(record: dict[str, Any], name: str, allowed: tuple[str, ...] = ()) -> str:
    """A key that must be there, as text."""
    if name not in record:
        raise ValueError(f"has no {name!r}")
    value = record[name]
    if not isinstance(value, str) or (allowed and value not in allowed):
        raise ValueError(f"has {name} {value!r}; needed is {' or '.join(allowed) or 'text'}")
    return value


def as_contract(verdict: Any) -> dict[str, Any] | None:
    """A verdict that its source has parsed, in the layout of our contracts."""
    if isinstance(verdict, str):
        return {"winner": verdict}
    if isinstance(verdict, dict) and isinstance(verdict.get("scores"), dict):
        return dict(verdict["scores"])
    if isinstance(verdict, dict) and isinstance(verdict.get("ranking"), list):
        return {"ranking": verdict["ranking"]}
    return None
