"""Label Studio: tasks with a labelling configuration, and its JSON export.

The layout is that of Label Studio 1.x: tasks as a JSON list of ``{"data": {...}}``; in the export each task has
``annotations``, each with ``completed_by`` (a number, or an object with id and email), ``was_cancelled``,
``lead_time`` and ``result``; a result has ``type`` (``pairwise``, ``choices``, ``number``, ``rating``, ``textarea``),
``from_name`` and ``value``. ``Pairwise`` knows two sides only: ties and what cannot be judged are choices beside it.

All annotators see the same task. Its order and sides are drawn by the protocol's seed, apart from the judges; the files
name no system, and the import draws again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

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
from judgelab.study.tables import write_text

__all__ = ["export_label_studio", "read_label_studio"]

SIDES = {"A": "left", "B": "right"}
NEEDED = "the export JSON of Label Studio (not JSON-MIN): a list of tasks with data and annotations"


def export_label_studio(run: Run, path: Path) -> list[Path]:
    """Write the tasks, and beside them the labelling configuration as ``<name>.config.xml``. Returns both paths.

    Raises
    ------
    LabelError
        If the run's labels are not made by comparing pairs.
    """
    instructions = "\n".join(rubric_lines(run))
    tasks = [
        {"data": {"task_id": sent.task_id, "check": sent.check, "instructions": instructions, **sent.texts}}
        for sent in common_tasks(run)
    ]
    config = path.with_name(f"{path.stem}.config.xml")
    write_json(tasks, path)
    write_text(_config(run), config)
    return [path, config]


def read_label_studio(run: Run, path: Path, renames: Mapping[str, str]) -> Read[Given]:
    """The annotations of an export, by annotator: the names of :func:`judgelab.labelling.annotators.reviewer_names`.

    Skipped annotations and such without a choice are left out and noted. Problems are tasks that are not of this run,
    changed texts, a side together with a choice, several annotations of one annotator that differ, and scores that are
    no number or out of range.

    Raises
    ------
    DataError
        If the file is no such export, or its annotators make no names.
    """
    records = read_records(path, NEEDED)
    sent = {task.task_id: task for task in common_tasks(run)}
    read = Read[Given](total=len(records))
    found: list[tuple[str, Sent[LabelTask], dict[str, Any], str]] = []
    people: dict[str, tuple[str, ...]] = {}
    for place, record in records:
        task = _task(place, record, sent, read)
        annotations = record.get("annotations")
        if not isinstance(annotations, list) or not all(isinstance(each, dict) for each in annotations):
            read.wrong(place, f"no list of annotations; needed is {NEEDED}")
            continue
        for number, each in enumerate(annotations, start=1):
            where = f"{place}, annotation {number}"
            ways = _ways(each.get("completed_by"))
            if not ways:
                read.wrong(where, "completed_by names nobody")
            elif task is not None:
                people[ways[0]] = ways[1:]
                found.append((where, task, each, ways[0]))
    names = reviewer_names(people, renames, shown(path)) if not read.problems else dict.fromkeys(people, "")
    left_out = Counter[str]()
    for where, task, each, person in found:
        _decision(run, where, task, each, names[person], read, left_out)
    _without_copies(read, left_out)
    read.notes += [f"{shown(path)}: {count} annotations {why}, left out" for why, count in left_out.items()]
    return read


def _config(run: Run) -> str:
    """The configuration: whatever is text of the study stands in the tasks, not in the markup."""
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, "Style").text = ".htx-text { white-space: pre-wrap; }"
    for name in ("instructions", "task", "context"):
        _text(view, name)
    ElementTree.SubElement(
        view, "Pairwise", name="label", toName="answer_A,answer_B", leftClass="answer_A", rightClass="answer_B"
    )
    both = ElementTree.SubElement(view, "View", style="display: grid; grid-template-columns: 1fr 1fr; column-gap: 1em")
    for letter in SIDES:
        side = ElementTree.SubElement(both, "View")
        ElementTree.SubElement(side, "Header", value=f"Answer {letter}")
        _text(side, f"answer_{letter}")
    others = [word for word in words_of(run.study) if word not in SIDES]
    ElementTree.SubElement(view, "Header", value=f"Click the better answer, or choose: {' or '.join(others)}")
    choices = ElementTree.SubElement(view, "Choices", name="other", toName="task", choice="single", showInline="true")
    for word in others:
        ElementTree.SubElement(choices, "Choice", value=word)
    low, high = Rules.of(run.study).scale
    for letter in SIDES:
        for name in criteria(run):
            ElementTree.SubElement(view, "Header", value=f"Answer {letter}, {name}: {low:g} to {high:g}", size="5")
            given = {"name": f"score_{letter}_{name}", "toName": f"answer_{letter}"}
            ElementTree.SubElement(view, "Number", given | {"min": f"{low:g}", "max": f"{high:g}"})
    for name, words in (("reason", "Why it cannot be judged"), ("note", "Note")):
        ElementTree.SubElement(view, "TextArea", name=name, toName="task", placeholder=words, maxSubmissions="1")
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def _text(parent: ElementTree.Element, name: str) -> None:
    ElementTree.SubElement(parent, "Text", name=name, value=f"${name}", valueType="text", selectionEnabled="false")


def _task(
    place: str, record: Mapping[str, Any], sent: Mapping[str, Sent[LabelTask]], read: Read[Given]
) -> Sent[LabelTask] | None:
    """The task of a record; what was changed in it is told."""
    data = record.get("data")
    name = data.get("task_id") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(name, str) or name not in sent:
        read.wrong(place, f"data.task_id is {name!r}, no task of this run")
        return None
    task = sent[name]
    changed = [text for text in TEXTS if not same_text(str(data.get(text, "")), task.texts[text])]
    if changed:
        read.wrong(place, f"{' and '.join(changed)} of task {name} differs from what was sent")
    return task


def _ways(person: Any) -> tuple[str, ...]:
    """How a file names a person, the unique way first: id and e-mail address, or what there is of them."""
    if isinstance(person, dict):
        ways = [str(person[key]).strip() for key in ("id", "email") if person.get(key) not in (None, "")]
        return tuple(dict.fromkeys(ways))
    if isinstance(person, int | str) and not isinstance(person, bool) and str(person).strip():
        return (str(person).strip(),)
    return ()


def _decision(
    run: Run,
    where: str,
    sent: Sent[LabelTask],
    annotation: Mapping[str, Any],
    reviewer: str,
    read: Read[Given],
    left_out: Counter[str],
) -> None:
    """Add what an annotation decides, or what is wrong with it."""
    if annotation.get("was_cancelled"):
        left_out["were skipped"] += 1
        return
    results = annotation.get("result")
    choices: list[str] = []
    texts = {"reason": "", "note": ""}
    scores: dict[str, dict[str, float]] = {}
    for result in results if isinstance(results, list) else []:
        value = result.get("value") if isinstance(result, dict) else None
        if not isinstance(value, dict):
            read.wrong(where, "a result without a value")
            continue
        name, sort = str(result.get("from_name", "")), result.get("type")
        if sort == "pairwise":
            choices.append(str(value.get("selected")))
        elif sort == "choices":
            words = value.get("choices")
            choices += [
                choice_of(str(word)) or f"choice {word!r}" for word in (words if isinstance(words, list) else ())
            ]
        elif sort == "textarea" and name in texts:
            texts[name] = text_of(value.get("text")).strip()
        elif sort in ("number", "rating"):
            _score(run, where, name, value.get(str(sort)), scores, read)
    if not choices:
        left_out["are without a choice"] += 1
    elif len(set(choices)) > 1:
        read.wrong(where, f"{' and '.join(choices)} at once; one is allowed")
    elif choices[0] not in ("left", "right", "tie", "cannot_judge"):
        read.wrong(where, f"{choices[0]}; allowed are left, right, {', '.join(words_of(run.study)[2:])}")
    else:
        read.given.append(
            Given(
                where,
                reviewer,
                sent.task,
                choices[0],
                reason=texts["reason"],
                note=texts["note"],
                scores=scores,
                seconds=_seconds(annotation.get("lead_time")),
            )
        )


def _seconds(value: Any) -> float:
    """How long an annotation took; 0 where that is not said."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value < 1e300 else 0.0


def _score(run: Run, where: str, name: str, value: Any, scores: dict[str, dict[str, float]], read: Read[Given]) -> None:
    _, letter, criterion = [*name.split("_", 2), "", ""][:3]
    if letter not in SIDES or criterion not in criteria(run):
        return  # a control that is not of this configuration
    score, problem = read_score(str(value), run)
    if problem:
        read.wrong(where, f"{name} {problem}")
    elif score is not None:
        scores.setdefault(SIDES[letter], {})[criterion] = score


def _without_copies(read: Read[Given], left_out: Counter[str]) -> None:
    """An annotator may have annotated a task twice: once is enough where both say the same."""
    first: dict[tuple[str, str], Given] = {}
    kept = []
    for each in read.given:
        before = first.setdefault((each.reviewer, each.task.item_id + repr(each.task.pair)), each)
        same = (each.choice, each.scores) == (before.choice, before.scores)
        if before is not each and same:
            left_out["say what another of the same annotator says"] += 1
        else:
            kept.append(each)
    read.given = kept
