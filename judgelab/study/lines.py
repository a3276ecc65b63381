"""One line of an items file: either all that an item needs, or the reason why it has not got it."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from judgelab.study.blindness import apply_masks
from judgelab.study.protocol import Study
from judgelab.study.tables import read_raw_lines

__all__ = ["REASONS", "Accepted", "Excluded", "read_entries"]

# Every reason for leaving a line out, and what it means.
REASONS: dict[str, str] = {
    "not_utf8": "the line is not UTF-8 text",
    "broken_json": "the line is not valid JSON",
    "not_an_object": "the line is valid JSON, but not an object with keys",
    "missing_id": "there is no item id",
    "duplicate_id": "another line has the same item id",
    "wrong_type": "a field has another type than text",
    "other_task_version": "the item belongs to another version of the task",
    "missing_task": "there is no task",
    "unknown_system": "an answer belongs to a system that the protocol does not name",
    "missing_answer": "a system has no answer",
    "empty_answer": "a system's answer is empty",
    "answer_too_long": "an answer is longer than items.max_answer_characters",
}
UNCATEGORISED = "uncategorised"
SHOWN_CHARACTERS = 60
Result = TypeVar("Result")


@dataclass(frozen=True)
class Excluded:
    """A line that is left out: its number in the file, its item id if it can be read, reason and detail."""

    line: int
    item_id: str | None
    reason: str
    detail: str


@dataclass(frozen=True)
class Accepted:
    """What a usable line says; ``answers`` are in the protocol's order of systems and masked."""

    item_id: str
    task: str
    reference_context: str
    category: str
    answers: dict[str, str]
    metadata: dict[str, Any]
    masked: dict[str, int] = field(default_factory=dict)


class _UnusableError(Exception):
    """Raised inside this module when a line cannot be used."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


def read_entries(path: Path, study: Study) -> tuple[list[Accepted], list[Excluded], int]:
    """Read every line of an items file: what can be used, what cannot, and how many lines there are.

    Blank lines do not count. All lines of one id are left out if they differ, since nobody can say which is
    meant; of equal ones the first is kept.

    Raises
    ------
    DataError
        If the file is missing, empty or UTF-16.
    """
    lines = read_raw_lines(path)
    objects = {number: _attempt(_object, line) for number, line in lines}
    wanted = {number: _attempt(_wanted, found, study) for number, found in objects.items()}
    ambiguous = _duplicates(lines, {number: name for number, name in wanted.items() if isinstance(name, str)})
    accepted: list[Accepted] = []
    excluded: list[Excluded] = []
    for number, line in lines:
        entry: Accepted | _UnusableError = (
            ambiguous[number] if number in ambiguous else _attempt(_entry, objects[number], study)
        )
        if isinstance(entry, Accepted):
            accepted.append(entry)
        else:
            name = _attempt(_identifier, objects[number], study)
            item_id = name if isinstance(name, str) else _readable_id(line, study)
            excluded.append(Excluded(number, item_id, entry.reason, entry.detail))
    return accepted, excluded, len(lines)


def _attempt(step: Callable[..., Result], found: Any, *more: Study) -> Result | _UnusableError:
    """The result of a step, or why there is none; a problem that an earlier step had is passed on."""
    if isinstance(found, _UnusableError):
        return found
    try:
        return step(found, *more)
    except _UnusableError as problem:
        return problem


def _entry(record: dict[str, Any], study: Study) -> Accepted:
    item_id = _wanted(record, study)
    task = _text(record, "task")
    if task is None or not task.strip():
        raise _UnusableError("missing_task", "no task" if task is None else "the task is empty")
    context, category = _text(record, "reference_context"), _text(record, "category")
    answers, masked = _answers(record, study)
    return Accepted(
        item_id=item_id,
        task=task,
        reference_context=context or "",
        category=category if category and category.strip() else UNCATEGORISED,
        answers=answers,
        metadata=_metadata(record, study),
        masked=masked,
    )


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise _UnusableError("not_utf8", f"byte 0x{byte:02x} at position {error.start} of the line") from None


def _object(line: bytes) -> dict[str, Any]:
    """The JSON object of a line, refusing what JSON does not have or leaves open."""
    try:
        record = json.loads(_decoded(line), object_pairs_hook=_without_repeats, parse_constant=_no_constant)
        # a lone half of a surrogate pair ("\ud83d") is valid JSON, and cannot be written as UTF-8
        json.dumps(record, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise _UnusableError("broken_json", "nested too deeply") from None
    except UnicodeEncodeError:
        raise _UnusableError("broken_json", "half a surrogate pair, which is no character") from None
    except ValueError as error:
        raise _UnusableError("broken_json", str(error)) from None
    if not isinstance(record, dict):
        raise _UnusableError("not_an_object", f"{type(record).__name__}, an object is needed")
    return record


def _without_repeats(items: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(key for key, _ in items)
    repeated = [key for key, count in counts.items() if count > 1]
    if repeated:
        raise ValueError(f"key {repeated[0]!r} stands there {counts[repeated[0]]} times")
    return dict(items)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _identifier(record: dict[str, Any], study: Study) -> str:
    value = record.get(study.item_id_field)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if value is None or value == "":
        raise _UnusableError("missing_id", f"no {study.item_id_field}")
    if not isinstance(value, str):
        raise _UnusableError("wrong_type", f"{study.item_id_field} is {_short(value)}, text is needed")
    if value != value.strip() or not value.isprintable():
        raise _UnusableError("wrong_type", f"{study.item_id_field} {_short(value)} is not a plain name")
    return value


def _wanted(record: dict[str, Any], study: Study) -> str:
    """The id of an item of the study's task version: older versions in the same file are no duplicates."""
    item_id, version = _identifier(record, study), study.items.task_version
    if version is not None and record.get("task_version") != version:
        raise _UnusableError("other_task_version", f"{_short(record.get('task_version'))}, not {version!r}")
    return item_id


def _text(record: dict[str, Any], key: str) -> str | None:
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise _UnusableError("wrong_type", f"{key} is {_short(value)}, text is needed")
    return value


def _answers(record: dict[str, Any], study: Study) -> tuple[dict[str, str], dict[str, int]]:
    """The answer of each system, masked, and the counts of the masks."""
    given = _by_system(record, study)
    answers: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for system in study.system_names:
        answer, masked = apply_masks(_answer(given.get(system), system), study.blindness.mask)
        _usable_answer(answer, system, study.items.max_answer_characters)
        answers[system] = answer
        counts.update(masked)
    return answers, dict(counts)


def _by_system(record: dict[str, Any], study: Study) -> dict[str, Any]:
    """Answers by system, from either layout."""
    flat = {system: record[key] for system in study.system_names if (key := _flat_key(system)) in record}
    if "answers" not in record:
        return flat
    answers = record["answers"]
    if flat or not isinstance(answers, dict):
        what = f"both answers and {_flat_key(next(iter(flat)))}" if flat else f"answers is {_short(answers)}"
        raise _UnusableError("wrong_type", f"{what}; one object of answers by system is needed")
    unknown = [name for name in answers if name not in study.systems]
    if unknown:
        raise _UnusableError("unknown_system", f"{_short(unknown[0])}; known: {', '.join(study.system_names)}")
    return answers


def _answer(value: Any, system: str) -> str:
    if value is None:
        raise _UnusableError("missing_answer", f"no {_flat_key(system)}, nor answers.{system}")
    if not isinstance(value, str):
        raise _UnusableError("wrong_type", f"{system}'s answer is {_short(value)}, text is needed")
    return value


def _usable_answer(answer: str, system: str, limit: int) -> None:
    if not answer.strip():
        raise _UnusableError("empty_answer", f"{system}'s answer has no words")
    if len(answer) > limit:
        detail = f"{system}'s answer has {len(answer)} characters, the limit is {limit}"
        raise _UnusableError("answer_too_long", detail)


def _metadata(record: dict[str, Any], study: Study) -> dict[str, Any]:
    """All other keys, but not the file's word counts: words are counted here."""
    own = {study.item_id_field, "task", "reference_context", "category", "answers"}
    for system in study.system_names:
        own |= {_flat_key(system), f"{system.lower()}_length_words"}
    return {key: value for key, value in record.items() if key not in own}


def _readable_id(line: bytes, study: Study) -> str | None:
    """The item id in a broken line, so that its human labels can be told from those of strange items."""
    pattern = rf'"{re.escape(study.item_id_field)}"\s*:\s*"([^"\\]+)"'
    found = re.search(pattern, line.decode("utf-8", errors="ignore"))
    return found.group(1) if found and found.group(1).isprintable() else None


def _duplicates(lines: Sequence[tuple[int, bytes]], ids: Mapping[int, str]) -> dict[int, _UnusableError]:
    """Line numbers to leave out because another line has the same id."""
    by_id: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for number, line in lines:
        if number in ids:
            by_id[ids[number]].append((number, line))
    left_out: dict[int, _UnusableError] = {}
    for item_id, same in by_id.items():
        equal = len({line for _, line in same}) == 1
        numbers = ", ".join(str(number) for number, _ in same)
        detail = f"{item_id!r} stands in the {'equal' if equal else 'differing'} lines {numbers}"
        for number, _ in same[1:] if equal else same:
            left_out[number] = _UnusableError("duplicate_id", detail)
    return left_out


def _flat_key(system: str) -> str:
    return f"answer_{system.lower()}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
