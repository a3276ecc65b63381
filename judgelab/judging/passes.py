"""The passes: which calls a judge must be asked, in which presentation and in which order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from itertools import combinations
from pathlib import Path
from typing import Any

from judgelab.errors import DataError
from judgelab.judging.entries import CallKey
from judgelab.judging.judges.base import Call
from judgelab.judging.judges.recorded import records_of
from judgelab.judging.prompts import Prompt, check_swap, render
from judgelab.judging.wording import PLAIN, Wording
from judgelab.project import resolve, shown
from judgelab.study.items import Item
from judgelab.study.protocol import Study
from judgelab.study.randomisation import call_order
from judgelab.study.run import Run

__all__ = [
    "PASSES",
    "PassPlan",
    "PlannedCall",
    "Prompts",
    "calls_by_item",
    "calls_of",
    "config_sha256",
    "in_order",
    "is_recorded",
    "plain_pass",
    "plan_pass",
    "plan_sha256",
    "planned_call",
    "planned_calls",
    "presentations",
    "recorded_presentations",
]

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


@dataclass(frozen=True)
class PassPlan:
    """One pass of one judge: what it is called, and which calls it makes about an item.

    Attributes
    ----------
    judge
        The judge as it is asked; a repair may change its decoding.
    name
        For people: ``pairwise_original``, or ``padding/original`` for a probe or a repair.
    strategy, pass_
        What the ledger and every table call it.
    calls
        The calls about one item: no other item need be known.
    shape
        How its prompts are worded, without examples: all that the form of a reply depends on.
    split
        The items that it is about, ``evaluation`` or ``development``.
    """

    judge: Any
    name: str
    strategy: str
    pass_: str
    calls: Callable[[Item], list[Call]]
    shape: Wording = PLAIN
    split: str = "evaluation"


def plain_pass(study: Study, judge: Any, pass_name: str) -> PassPlan:
    """A pass of the protocol: ``direct``, ``pairwise_original`` or ``pairwise_swapped``."""
    return PassPlan(judge, pass_name, *PASSES[pass_name], calls_by_item(study, judge, pass_name))


class Prompts:
    """The prompts of one item after another, each rendered once for all judges and passes and gone with its item."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._item: Item | None = None
        self._rendered: dict[tuple[str, tuple[str, ...], Wording], Prompt] = {}

    def of(self, item: Item, strategy: str, presentation: tuple[str, ...], wording: Wording = PLAIN) -> Prompt:
        """See :func:`judgelab.judging.prompts.render`."""
        if item is not self._item:
            self._item, self._rendered = item, {}
        asked = (strategy, presentation, wording)
        prompt = self._rendered.get(asked)
        if prompt is None:
            prompt = self._rendered[asked] = render(self._study, item, strategy, presentation, wording)
        return prompt


def plan_pass(run: Run, judge: Any, pass_name: str) -> list[PlannedCall]:
    """All calls of one judge in one pass with their prompts, in the order in which they are asked.

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
    return list(planned_calls(run.study, judge, calls_of(run.study, run.evaluation_items(), judge, pass_name)))


def calls_of(study: Study, items: Sequence[Item], judge: Any, pass_name: str) -> list[Call]:
    """The calls of one judge in one pass, in their order, without prompts: cheap to hold by the hundred thousand."""
    calls = calls_by_item(study, judge, pass_name)
    return in_order(study, [call for item in items for call in calls(item)])


def calls_by_item(study: Study, judge: Any, pass_name: str) -> Callable[[Item], list[Call]]:
    """What names one judge's calls of one pass about an item: no other item need be known."""
    strategy, pass_ = PASSES[pass_name]
    systems = study.system_names
    shown = recorded_presentations(judge, strategy, pass_)

    def calls(item: Item) -> list[Call]:
        return [
            Call(strategy, pass_, item, shown.get((item.item_id, frozenset(drawn)), drawn))
            for drawn in presentations(item, systems, pass_name)
        ]

    return calls


def in_order(study: Study, calls: Iterable[Call]) -> list[Call]:
    """Calls of one pass in the seeded order in which they are asked; which of two is first depends on no other."""
    by_key: dict[tuple[Any, ...], Call] = {}
    for call in calls:
        repeat = (call.repeat,) if call.repeat else ()
        by_key[call.item.item_id, call.presentation, *repeat] = call
    return [by_key[key] for key in call_order(study.random_seed, list(by_key))]


def planned_calls(study: Study, judge: Any, calls: Iterable[Call]) -> Iterator[PlannedCall]:
    """Each call with its prompt and key, one at a time; swapped ones after a comparison with their original."""
    config = config_sha256(judge)
    for call in calls:
        yield planned_call(study, judge.name, config, call)


def planned_call(study: Study, judge: str, config: str, call: Call, prompts: Prompts | None = None) -> PlannedCall:
    """One call with its prompt and its key. ``prompts`` may hold what was rendered of its item for other calls.

    Raises
    ------
    RunError
        If it is a swapped call whose prompt differs from the original's in more than the order of the answers.
    """
    prompts = Prompts(study) if prompts is None else prompts
    prompt = prompts.of(call.item, call.strategy, call.presentation, call.wording)
    if call.pass_.rpartition("/")[2] == "swapped":
        original = prompts.of(call.item, call.strategy, call.presentation[::-1], call.wording)
        check_swap(original, prompt, call.item.item_id)
    key = CallKey(
        judge, call.item.item_id, call.strategy, call.pass_, call.presentation, config, prompt.sha256, call.repeat
    )
    return PlannedCall(call, prompt, key)


def plan_sha256(run: Run, plan: PassPlan) -> str:
    """Identifies the calls of one pass without rendering them: protocol, items, judge, and the code of the prompts.

    Two plans of one hash hold the same calls with the same prompts; the reverse need not be so. Probes and repairs
    look at the human labels, too.
    """
    parts = [run.study.sha256, run.frozen.get("items_sha256"), config_sha256(plan.judge), plan.name, _code_sha256()]
    if plan.name not in PASSES:
        parts.append(run.frozen.get("human_labels_sha256"))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@lru_cache(maxsize=1)
def _code_sha256() -> str:
    """Hash of everything that a prompt is made by: the rooms `study` and `judging`, and the template engine."""
    package = Path(__file__).parents[1]
    files = sorted(file for room in ("study", "judging") for file in (package / room).rglob("*") if file.is_file())
    digest = hashlib.sha256(metadata.version("jinja2").encode())
    for file in files:
        if file.suffix in (".py", ".j2"):
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


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


def presentations(item: Item, systems: tuple[str, ...], pass_name: str) -> list[tuple[str, ...]]:
    """The presentations of an item in one pass: pairs in the order that was drawn for them, or reversed."""
    if pass_name == "direct":
        return [(system,) for system in systems]
    original = [(x, y) if item.first[x, y] == x else (y, x) for x, y in combinations(systems, 2)]
    return [shown[::-1] for shown in original] if pass_name == "pairwise_swapped" else list(original)


def is_recorded(plan: PassPlan) -> bool:
    """Whether a recorded judge's record holds any call of a pass; any other judge can always be asked."""
    if plan.judge.kind != "recorded":
        return True
    return any((key[1], key[2]) == (plan.strategy, plan.pass_) for key in records_of(plan.judge))


def recorded_presentations(judge: Any, strategy: str, pass_: str) -> dict[tuple[str, frozenset[str]], tuple[str, ...]]:
    """In which order a recorded judge was shown the answers of each item; empty for any other judge.

    Of an item that the record holds in the other pass alone it is the reverse: two passes never show one order twice.
    """
    if judge.kind != "recorded":
        return {}
    found: dict[tuple[str, frozenset[str]], tuple[str, ...]] = {}
    label, _, name = pass_.rpartition("/")
    other = {"original": "swapped", "swapped": "original"}.get(name)
    turned = f"{label}/{other}" if label else other
    for wanted, step in ((turned, -1), (pass_, 1)):
        found |= {
            (item_id, frozenset(presentation)): presentation[::step]
            for item_id, recorded_strategy, recorded_pass, presentation, _ in records_of(judge)
            if (recorded_strategy, recorded_pass) == (strategy, wanted)
        }
    return found
