"""Argilla: records with the settings of their dataset, and its exported records.

The layout is that of Argilla 2.x. Records are what ``dataset.records.from_json`` reads, the settings what
``Settings.from_json`` does. Read back are three forms: ``records.to_json`` (responses by question, each with value and
user_id; it does not say which were submitted), ``to_list(flatten=True)`` and ``to_datasets().to_json`` as a list or as
lines (``label.responses``, ``label.responses.users``, ``label.responses.status``), and the server's own records (a list
of responses with user_id, status and values).

All annotators see the same record. Its order and sides are drawn by the protocol's seed, apart from the judges; the
files name no system, and the import draws again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judgelab.labelling.annotators import reviewer_names
from judgelab.labelling.intake import Given, Read, read_score
from judgelab.labelling.json_file import read_records, text_of, write_json
from judgelab.labelling.records import Rules
from judgelab.labelling.sending import (
    TEXTS,
    Sent,
    choice_of,
    common_tasks,
    criteria,
    rubric_lines,
    same_text,
    words_of,
)
from judgelab.labelling.tasks import LabelTask
from judgelab.project import shown
from judgelab.study.run import Run

__all__ = ["export_argilla", "read_argilla"]

FIELDS = {name.lower(): name for name in TEXTS}  # Argilla's names are in small letters
SIDES = {"a": "left", "b": "right"}
MOST_RATED = 10  # Argilla's ratings go from 0 to 10
NEEDED = "records that Argilla 2.x exported as JSON"
NO_STATUS = (
    "responses have no status, so that drafts count as well; export with records.to_list(flatten=True) to have it"
)


def export_argilla(run: Run, path: Path) -> list[Path]:
    """Write the records, and beside them the settings as ``<name>.settings.json``. Returns both paths.

    Raises
    ------
    LabelError
        If the run's labels are not made by comparing pairs.
    """
    records = [
        {
            "id": sent.task_id,
            "fields": {field: sent.texts[name] for field, name in FIELDS.items()},
            "metadata": {"check": sent.check},
            "suggestions": {},
            "responses": {},
            "vectors": {},
        }
        for sent in common_tasks(run)
    ]
    return [write_json(records, path), write_json(_settings(run), path.with_name(f"{path.stem}.settings.json"))]


def read_argilla(run: Run, path: Path, renames: Mapping[str, str]) -> Read[Given]:
    """The submitted responses of an export, by user: the names of :func:`judgelab.labelling.annotators.reviewer_names`.

    Drafts and discarded responses are left out and noted. Problems are records that are not of this run, stand there
    twice or have changed texts, labels in other words, and scores that are no number or out of range.

    Raises
    ------
    DataError
        If the file is no such export, or its users make no names.
    """
    records = read_records(path, NEEDED)
    sent = {task.task_id: task for task in common_tasks(run)}
    read = Read[Given](total=len(records))
    found: list[tuple[str, Sent[LabelTask], str, str | None, dict[str, Any]]] = []
    seen: dict[str, str] = {}
    for place, record in records:
        task = _task(place, record, sent, read)
        if task is not None and seen.setdefault(task.task_id, place) != place:
            read.wrong(place, f"record {task.task_id} stands in {seen[task.task_id]} already")
        elif task is not None:
            found += [(place, task, *response) for response in _responses(place, record, read)]
    people = dict.fromkeys((user for _, _, user, _, _ in found), ())
    names = reviewer_names(people, renames, shown(path)) if not read.problems else dict.fromkeys(people, "")
    left_out = Counter[str]()
    for place, task, user, status, values in found:
        if status in ("draft", "discarded"):
            left_out[f"are {'drafts' if status == 'draft' else status}"] += 1
        elif text_of(values.get("label")).strip():
            _decision(run, f"{place}, user {user}", task, values, names[user], read)
        else:
            left_out["are without a label"] += 1
    read.notes += [f"{shown(path)}: {count} responses {why}, left out" for why, count in left_out.items()]
    if any(status is None for _, _, _, status, _ in found):
        read.notes.append(f"{shown(path)}: {NO_STATUS}")
    return read


def _settings(run: Run) -> dict[str, Any]:
    low, high = Rules.of(run.study).scale
    rated = float(low).is_integer() and float(high).is_integer() and low >= 0 and high <= MOST_RATED
    values = [{"value": value} for value in range(int(low), int(high) + 1)] if rated else []
    rating = {"type": "rating", "options": values} if rated else {"type": "text", "use_markdown": False}
    label = {
        "type": "label_selection",
        "options": [{"value": _value(word), "text": word, "description": None} for word in words_of(run.study)],
        "visible_options": None,
    }
    text = {"type": "text", "use_markdown": False}
    questions = [_question("label", "Which answer is better?", label, required=True)]
    for letter in SIDES:
        for name in criteria(run):
            title = f"Answer {letter.upper()}, {name}: {low:g} to {high:g}"
            questions.append(_question(f"score_{letter}_{name}", title, rating))
    questions += [_question("reason", "Why it cannot be judged", text), _question("note", "Note", text)]
    fields = [
        {"name": field, "title": name.replace("_", " "), "required": field != "context", "settings": dict(text)}
        for field, name in FIELDS.items()
    ]
    return {
        "guidelines": "\n".join(rubric_lines(run)),
        "questions": questions,
        "fields": fields,
        "vectors": [],
        "metadata": [],
        "allow_extra_metadata": True,
    }


def _question(name: str, title: str, settings: Mapping[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "title": title, "description": None, "required": required, "settings": dict(settings)}


def _value(word: str) -> str:
    return word.replace(" ", "_")


def _task(
    place: str, record: Mapping[str, Any], sent: Mapping[str, Sent[LabelTask]], read: Read[Given]
) -> Sent[LabelTask] | None:
    """The task of a record; what was changed in it is told. The server names our id ``external_id``."""
    name = next((record[key] for key in ("external_id", "id") if str(record.get(key)) in sent), None)
    if name is None:
        read.wrong(place, f"id is {record.get('external_id', record.get('id'))!r}, no record of this run")
        return None
    task = sent[name]
    fields = record.get("fields", record)  # flattened, the fields stand beside the id
    fields = fields if isinstance(fields, dict) else {}
    changed = [field for field, text in FIELDS.items() if not same_text(text_of(fields.get(field)), task.texts[text])]
    if changed:
        read.wrong(place, f"{' and '.join(changed)} of record {name} differs from what was sent")
    return task


def _responses(
    place: str, record: Mapping[str, Any], read: Read[Given]
) -> Iterator[tuple[str, str | None, dict[str, Any]]]:
    """User, status (None: not said) and values by question, of each user who responded to a record."""
    users: dict[str, tuple[str | None, dict[str, Any]]] = {}
    for user, status, question, value in _answers(place, record, read):
        before = users.setdefault(user, (status, {}))
        if question in before[1] and before[1][question] != value:
            read.wrong(place, f"user {user} has two responses to {question}")
        before[1][question] = value
    for user, (status, values) in users.items():
        yield user, status, values


def _answers(place: str, record: Mapping[str, Any], read: Read[Given]) -> Iterator[tuple[str, str | None, str, Any]]:
    """User, status, question and value of each answer, whichever of the three forms the record has."""
    responses = record.get("responses")
    if isinstance(responses, list):
        for each in responses:
            values = each.get("values") if isinstance(each, dict) else None
            if not isinstance(each, dict) or not isinstance(values, dict | None):
                read.wrong(place, "a response without values")
                continue
            for question, value in (values or {}).items():
                answer = value.get("value") if isinstance(value, dict) else value
                yield str(each.get("user_id")), _status(each.get("status")), question, answer
    elif isinstance(responses, dict):
        for question, given in responses.items():
            for each in given if isinstance(given, list) else []:
                if not isinstance(each, dict) or "value" not in each:
                    read.wrong(place, f"a response to {question} without a value")
                else:
                    yield str(each.get("user_id")), _status(each.get("status")), question, each["value"]
    else:
        yield from _flat(place, record, read)


def _flat(place: str, record: Mapping[str, Any], read: Read[Given]) -> Iterator[tuple[str, str | None, str, Any]]:
    for key in record:
        question = key.removesuffix(".responses")
        if question == key:
            continue
        columns = [record.get(key), record.get(f"{key}.users"), record.get(f"{key}.status")]
        values, users, statuses = (column if isinstance(column, list) else [] for column in columns)
        if len(values) != len(users):
            read.wrong(place, f"{len(values)} responses to {question}, but {len(users)} users")
            continue
        for number, (value, user) in enumerate(zip(values, users, strict=True)):
            yield str(user), _status(statuses[number] if number < len(statuses) else None), question, value


def _status(value: Any) -> str | None:
    return str(value) if value else None


def _decision(
    run: Run, where: str, sent: Sent[LabelTask], values: Mapping[str, Any], reviewer: str, read: Read[Given]
) -> None:
    choice = choice_of(text_of(values["label"]))
    if choice is None:
        read.wrong(where, f"label {values['label']!r}; allowed are {', '.join(map(_value, words_of(run.study)))}")
        return
    scores: dict[str, dict[str, float]] = {}
    for letter, side in SIDES.items():
        for name in criteria(run):
            value = values.get(f"score_{letter}_{name}")
            score, problem = read_score("" if value is None else str(value), run)
            if problem:
                read.wrong(where, f"score_{letter}_{name} {problem}")
            elif score is not None:
                scores.setdefault(side, {})[name] = score
    reason, note = (text_of(values.get(name)).strip() for name in ("reason", "note"))
    read.given.append(Given(where, reviewer, sent.task, choice, reason, note, scores))
