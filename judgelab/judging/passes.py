"""The passes: which calls a judge must be asked, in which presentation and in which order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

from judgelab.errors import DataError
from judgelab.judging.judges.base import Call
from judgelab.judging.judges.recorded import records_of
from judgelab.judging.ledger import CallKey
from judgelab.judging.prompts import Prompt, check_swap, render
from judgelab.project import resolve, shown
from judgelab.study.items import Item
from judgelab.study.randomisation import call_order
from judgelab.study.run import Run

__all__ = ["PASSES", "PlannedCall", "config_sha256", "plan_pass"]

# name in the protocol -> strategy and pass in every table
PASSES = {
    "direct": ("direct", "direct"),
    "pairwise_original": ("pairwise", "original"),
    "pairwise_swapped": ("pairwise", "swapped"),
}


@dataclass(frozen=True)
class PlannedCall:
    """A call with its prompt and its key in the ledger."""

    call: Call
    prompt: Prompt
    key: CallKey


def plan_pass(run: Run, judge: Any, pass_name: str) -> list[PlannedCall]:
    """All calls of one judge in one pass, in the order in which they are asked.

    Direct calls of all systems are mixed in one seeded random order, so that no system is scored first throughout.
    Before a swapped pass the prompts of both presentations are compared byte by byte.

    Parameters
    ----------
    run
        A frozen run.
    judge
        One of the protocol's judges.
    pass_name
        ``direct``, ``pairwise_original`` or ``pairwise_swapped``.
    """
    strategy, pass_ = PASSES[pass_name]
    study = run.study
    items = run.evaluation_items()
    by_id = {item.item_id: item for item in items}
    recorded = _recorded_presentations(judge, strategy, pass_) if judge.kind == "recorded" else None
    keys = _presentations(items, study.system_names, pass_name, recorded)
    config = config_sha256(judge)
    planned = []
    for item_id, presentation in call_order(study.random_seed, keys):
        item = by_id[item_id]
        prompt = render(study, item, strategy, presentation)
        if pass_name == "pairwise_swapped":
            check_swap(render(study, item, strategy, presentation[::-1]), prompt, item_id)
        key = CallKey(judge.name, item_id, strategy, pass_, presentation, config, prompt.sha256)
        planned.append(PlannedCall(Call(strategy, pass_, item, presentation), prompt, key))
    return planned


def config_sha256(judge: Any) -> str:
    """Hash of a judge's configuration and of the file it reads, if any: other contents are another judge."""
    file = {
        "recorded": getattr(judge, "path", None),
        "simulated": getattr(judge, "quality_path", None),
        "embedded": None if getattr(judge, "model", None) == "smollm2" else getattr(judge, "model", None),
    }.get(judge.kind)
    if file is None:
        return str(judge.sha256)
    path = resolve(file)
    if not path.is_file():
        if judge.kind == "embedded":
            return str(judge.sha256)  # asking it will say that the file is missing
        raise DataError(f"judge {judge.name}: no such file {shown(path)}")
    stamp = path.stat()
    content = _file_sha256(path, stamp.st_mtime_ns, stamp.st_size)
    return hashlib.sha256(f"{judge.sha256}|{content}".encode()).hexdigest()


@lru_cache(maxsize=64)
def _file_sha256(path: Path, _changed: int, _size: int) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _presentations(
    items: Sequence[Item],
    systems: tuple[str, ...],
    pass_name: str,
    recorded: dict[tuple[str, frozenset[str]], tuple[str, ...]] | None,
) -> list[tuple[str, tuple[str, ...]]]:
    """(item, presentation) of every call: as recorded where a record has it, else by the seeded order."""
    keys: list[tuple[str, tuple[str, ...]]] = []
    for item in items:
        if pass_name == "direct":
            keys += [(item.item_id, (system,)) for system in systems]
            continue
        for x, y in combinations(systems, 2):
            presentation = (x, y) if item.first[x, y] == x else (y, x)
            if pass_name == "pairwise_swapped":
                presentation = presentation[::-1]
            if recorded is not None:
                presentation = recorded.get((item.item_id, frozenset((x, y))), presentation)  # type: ignore[assignment]
            keys.append((item.item_id, presentation))
    return keys


def _recorded_presentations(judge: Any, strategy: str, pass_: str) -> dict[tuple[str, frozenset[str]], tuple[str, ...]]:
    return {
        (item_id, frozenset(presentation)): presentation
        for item_id, recorded_strategy, recorded_pass, presentation in records_of(judge)
        if (recorded_strategy, recorded_pass) == (strategy, pass_)
    }
