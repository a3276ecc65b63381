"""The candidate answers that stage 00 makes: the tasks before they have answers, and the file that stage 01 freezes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.errors import DataError, RunError
from judgelab.project import outputs_folder, resolve, shown
from judgelab.study.items import Item, ItemSet, presented, read_items
from judgelab.study.protocol import Blindness, Split, Study, check_run_name
from judgelab.study.run import Run
from judgelab.study.tables import read_lines

__all__ = [
    "CANDIDATES",
    "DraftRun",
    "draft_run",
    "items_of",
    "planned_items",
    "recipe",
    "sealed",
    "task_record",
    "tasks_of",
]

CANDIDATES = "candidates.jsonl"
OWN = ("made", "recipe_sha256", "record_sha256")  # keys that stage 00 adds to a task
SHOWN_IDS = 5
CHARACTERS_PER_TOKEN = 4  # as a plan reckons


@dataclass(frozen=True)
class DraftRun(Run):
    """A run before it is frozen: the tasks with the answers that the file of items brings, and no others.

    It writes to the same folder and the same ledger as the run that it becomes.
    """

    tasks: ItemSet = field(default_factory=lambda: ItemSet((), pd.DataFrame(), 0))

    def items(self) -> tuple[Item, ...]:
        """Every task, with the answers that it has."""
        return self.tasks.items

    def each_item(self) -> Iterator[Item]:
        """The tasks, one by one."""
        return iter(self.tasks.items)

    def check_items(self) -> None:
        """Nothing is frozen yet that could have changed."""


def draft_run(name: str, study: Study) -> DraftRun:
    """The run in which stage 00 makes the answers of a study.

    Raises
    ------
    ProtocolError, DataError
        If the run's name or the file of items cannot be used.
    """
    check_run_name(name, "run")
    content = resolve(study.items.path)
    tasks = tasks_of(study)
    digest = hashlib.sha256(content.read_bytes()).hexdigest()
    return DraftRun(name, study, outputs_folder() / name, {"items_sha256": digest}, tasks=tasks)


def tasks_of(study: Study) -> ItemSet:
    """The items of a study with the answers that its file brings; all of them in one split.

    Raises
    ------
    DataError
        If the file cannot be used, or holds answers of a system whose answers stage 00 makes.
    """
    given = {name: system for name, system in study.systems.items() if not system.made}
    # masks are for what is judged: stage 01 lays them over every answer
    bare = {"systems": given, "split": Split(), "blindness": Blindness()}
    found = read_items(study.model_copy(update=bare))
    for name in study.systems:
        key = f"answer_{name.lower()}"
        holding = sum(key in item.metadata for item in found.items) if name not in given else 0
        if holding:
            raise DataError(
                f"{shown(resolve(study.items.path))}: {holding} items hold {key}, but stage 00 makes the answers of "
                f"{name}; take them out of the file, or let {name} be neither generated nor degraded"
            )
    return replace(found, items=tuple(replace(item, split="evaluation") for item in found.items))


def items_of(name: str, study: Study) -> ItemSet:
    """The items of a study with all their answers: those of its file, and those that stage 00 made for the run.

    What was left out of the file of items is left out here, too, and told with what has no answer.

    Raises
    ------
    RunError
        If stage 00 has not made the answers yet, or made them by another protocol or for other tasks, or if somebody
        has changed them since.
    DataError
        If the items cannot be used.
    """
    if not study.makes_answers:
        return read_items(study)
    tasks = tasks_of(study)
    path = _made(name, study, tasks)
    found = read_items(study, path)
    excluded = pd.concat([tasks.excluded, found.excluded], ignore_index=True)
    if len(excluded) > study.items.max_excluded_share * tasks.n_lines:
        counts = ", ".join(
            f"{reason}: {count}" for reason, count in excluded["reason"].value_counts(sort=False).items()
        )
        raise DataError(
            f"{shown(path)}: {len(excluded)} of {tasks.n_lines} lines of the file of items cannot be used or lack "
            f"an answer ({counts}); items.max_excluded_share allows {study.items.max_excluded_share:.0%}"
        )
    return replace(found, excluded=excluded, n_lines=tasks.n_lines, not_sampled=tasks.not_sampled)


def planned_items(name: str | None, study: Study) -> ItemSet:
    """The items for a plan: as :func:`items_of`, with stand-ins of the greatest length where no answer is made yet."""
    if name is not None and study.makes_answers:
        try:
            return items_of(name, study)
        except RunError:
            pass
    if not study.makes_answers:
        return read_items(study)
    tasks = tasks_of(study)
    return replace(tasks, items=presented(study, [_with_stand_ins(study, item) for item in tasks.items]))


def _with_stand_ins(study: Study, item: Item) -> Item:
    answers = dict(item.answers)
    for name in study.systems:
        origin = name
        while (worse := study.systems[origin].degraded) is not None:
            origin = worse.of  # its version is about as long
        made = study.systems[origin].generated
        if name not in answers:
            size = len(answers[origin]) if made is None else CHARACTERS_PER_TOKEN * made.model.max_tokens
            answers[name] = "word " * max(size // 5, 1)
    return replace(item, answers={name: answers[name] for name in study.system_names})


def _made(name: str, study: Study, tasks: ItemSet) -> Path:
    """The file of stage 00, if it holds the answers of this protocol to these tasks, as stage 00 wrote them."""
    path = outputs_folder() / name / CANDIDATES
    again = f"run stage 00 first (`judgelab run params/{name}.yaml --from 00 --to 00`)"
    if not path.is_file():
        raise RunError(f"{shown(path)} is missing: this study makes answers of its own; {again}")
    wanted, records = recipe(study), dict[str, dict[str, Any]]()
    for line, text in read_lines(path):
        try:
            record = json.loads(text)
            made, seal = record["recipe_sha256"], record.pop("record_sha256")
            records[record[study.item_id_field]] = record
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RunError(f"{shown(path)}: line {line} was not written by stage 00; {again}") from None
        if made != wanted:
            raise RunError(f"{shown(path)}: the answers were made by another protocol than this one; {again}")
        if seal != _sha256(record):
            raise RunError(f"{shown(path)}: line {line} was changed after stage 00 wrote it; {again}")
    asked = {item.item_id: task_record(study, item) for item in tasks.items}
    other = [key for key in {**asked, **records} if not _same_task(asked.get(key), records.get(key))]
    if other:
        more = f" and {len(other) - SHOWN_IDS} more" if len(other) > SHOWN_IDS else ""
        raise RunError(
            f"{shown(path)}: the answers were made for other tasks than {shown(resolve(study.items.path))} holds now "
            f"(items that differ: {', '.join(other[:SHOWN_IDS])}{more}); {again}"
        )
    return path


def _same_task(task: Mapping[str, Any] | None, record: Mapping[str, Any] | None) -> bool:
    """Whether a record of stage 00 is of a task as the file of items holds it now."""
    if task is None or record is None:
        return False
    known = {key: value for key, value in task.items() if key not in ("answers", *OWN)}
    same = {key: record[key] for key in known if key in record} == known
    return same and bool(task["answers"].items() <= record["answers"].items())


def task_record(study: Study, item: Item) -> dict[str, Any]:
    """An item with the answers that it has, as a line of an items file."""
    return {
        study.item_id_field: item.item_id,
        "task": item.task,
        "reference_context": item.reference_context,
        "category": item.category,
        "answers": dict(item.answers),
        **item.metadata,
    }


def sealed(record: Mapping[str, Any], recipe_sha256: str) -> dict[str, Any]:
    """A line of ``candidates.jsonl``: with the :func:`recipe` of its answers, and a hash by which changes are seen."""
    told = {key: value for key, value in record.items() if key != "record_sha256"} | {"recipe_sha256": recipe_sha256}
    return {**told, "record_sha256": _sha256(told)}


def _sha256(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def recipe(study: Study) -> str:
    """Hash of all that the made answers depend on: the systems that are made and how, and the seed."""
    made: Mapping[str, Any] = {
        name: {
            "degraded": system.model_dump(mode="json").get("degraded"),
            "generated": _asked(system),
            "completion": system.completion,
        }
        for name, system in study.systems.items()
        if system.made
    }
    return _sha256([study.random_seed, made])


def _asked(system: Any) -> Any:
    """What can change a generated answer: the model without its limits and prices, and the prompts."""
    made = system.generated
    return made and [made.model.sha256, made.prompt, made.system_prompt]
