"""PandaLM as a study: tasks with two answers, the labels of three people, and the verdicts of the judges in the files.

The layout is that of :mod:`judgelab.study.sources.pandalm`: a list of objects with idx, motivation_app, cmp_key (the
two systems), instruction, input, response1, response2 and annotator1 to annotator3 (0 is a tie); and one list a judge,
joined by idx, with a key that ends in ``_result`` (1, 2, 0 or Tie; garbage where the reply held no verdict).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgelab.errors import DataError
from judgelab.study.protocol import TIE, check_run_name
from judgelab.study.sources.foreign_entries import Entry
from judgelab.study.sources.full_study import SYSTEMS, FullStudy, pairwise_record, plain_names, write_full_study
from judgelab.study.sources.match_imports import (
    Gathered,
    counted,
    gather,
    left_out_notes,
    word_count,
    write_match_study,
)
from judgelab.study.sources.published import at

__all__ = ["import_pandalm"]

PATTERNS = ("*.json", "*.jsonl")
ANNOTATOR = re.compile(r"annotator\d+")
RESULT = "_result"
TESTSET = re.compile(r"[-_]testset.*$")
# a verdict as it is printed in the files -> the letter of the place: response1 was shown first
VERDICTS = {"1": "A", "2": "B", "0": TIE, "tie": TIE}
UNUSABLE = "garbage"
NO_VERDICT = "no_verdict_in_source"
LABELS = (TIE, *SYSTEMS)
EMPTY = "an item with an empty task or answer"
EMPTIED = "a verdict on such an item"
STRANGER = "a verdict on an item that is not in the files"
BOTH = 2


def import_pandalm(path: Path, run: str) -> tuple[Path, list[str]]:
    """Write ``outputs/<run>/source`` and, if it is missing, ``params/<run>.yaml``; and of ``<run>-systems`` the same.

    An item has the answers of two of several systems, and a study needs those of all: so ``response1`` is ALPHA's and
    ``response2`` BETA's answer, and ``written_by`` of an item names the systems. ``<run>-systems`` is a study of
    matches in which judges and annotators rank the systems by name. The label of each annotator is one reviewer's.

    Parameters
    ----------
    path
        A file, or a folder with files ``*.json``: the items, and where there are any, verdicts.
    run
        The name of the run to make.

    Returns
    -------
    tuple
        The path of the parameters, and notes: what was read, what was left out, and what was written.

    Raises
    ------
    DataError
        As :func:`judgelab.study.sources.match_imports.gather`; if there are no items, an idx has two items or two
        verdicts of a judge, or items have other annotators than others.
    """
    other = f"{run}-systems"
    check_run_name(run, "--run")
    check_run_name(other, "--run")
    gathered = gather(path, PATTERNS, _read, unit=("item", "items"))
    found = [row for row in gathered.rows if "task" in row]
    items, verdicts = {row["item_id"]: row for row in found}, _verdicts(gathered, path)
    annotators = _check(path, found, gathered, items)
    known = [row for row in verdicts if row["item_id"] in items]
    usable = {item_id: row for item_id, row in items.items() if row["usable"]}
    if not usable:
        raise DataError(f"{at(path)}: 0 of {len(items)} items have a task and two answers; nothing was written")
    kept = [row for row in known if row["item_id"] in usable]
    left = {EMPTY: len(items) - len(usable), EMPTIED: len(known) - len(kept), STRANGER: len(verdicts) - len(known)}
    gathered.left_out.update({reason: count for reason, count in left.items() if count})
    names = plain_names((row["judge"] for row in known), taken=("always-first", "longest", "coin"))
    study = _study(annotators, usable, kept, names)
    params, told = write_full_study(study, run, _notes(gathered, study, len(annotators), usable))
    matches = Gathered(_matches(items, known, names), Counter(), gathered.files).table()
    if matches.empty:
        return params, told
    systems = len({*matches["system_x"], *matches["system_y"]})
    count = counted(len(matches), "match", "matches")
    _, more = write_match_study(
        matches,
        other,
        study={
            "study_id": other,
            "title": f"PandaLM: {counted(systems, 'system')} by name",
            "question": f"Which of {systems} systems is preferred?",
            "matches": f"outputs/{other}/source/matches.csv",
            "sampling_rule": "as in the files that were imported",
            "random_seed": 20261130,
        },
        head=f"# Made by `judgelab import pandalm PATH --run {run}`: the systems by name, by judges and annotators.\n",
        notes=[f"the systems by name are ranked in a study of their own, {other}: {count}"],
        missing="the answers of all systems to every item are not in these files",
    )
    return params, [*told, *more]


def _study(
    annotators: Sequence[str],
    usable: Mapping[str, dict[str, Any]],
    kept: Sequence[Mapping[str, Any]],
    names: Mapping[str, str],
) -> FullStudy:
    labels = [label for row in usable.values() for label in _labels(row)]
    judges = {names[row["judge"]]: f"PandaLM, {row['judge']}" for row in kept}
    return FullStudy(
        kind="pandalm",
        title=f"PandaLM: {counted(len(judges), 'recorded judge')} against {counted(len(annotators), 'annotator')}",
        question="Which judge reproduces the majority of people on instruction following?",
        sampling_rule="The items in the files that were imported; those with an empty task or answer were left out.",
        rubric="pandalm-annotation",
        description="The answer follows the instruction: correct, concise, and complete.",
        systems=SYSTEMS,
        items=[_item(row) for row in usable.values()],
        records=[_record(names[row["judge"]], row) for row in kept],
        judges=judges,
        labels=labels,
        provenance="human" if labels else None,
        reviewers=len(annotators),
        head=("ALPHA is response1, which every judge saw first, and BETA is response2; items say who wrote them.",),
    )


def _notes(gathered: Gathered, study: FullStudy, annotators: int, usable: Mapping[str, dict[str, Any]]) -> list[str]:
    silent = Counter(record["record"] for record in study.records if record["verdict"] is None)
    words = sum(row["was_bool"] for row in usable.values())
    return [
        f"read: {counted(len(study.records), 'verdict')} of {counted(len(study.judges), 'judge')} and "
        f"{counted(len(study.labels), 'label')} of {counted(annotators, 'annotator')} on "
        f"{counted(len(usable), 'item')}, from {counted(len(gathered.files), 'file')}",
        *(f"no verdict: {count} of {name} (garbage in the file)" for name, count in silent.items()),
        *([f"true and false in place of an answer: read as these words, in {counted(words, 'item')}"] if words else []),
        *left_out_notes(gathered),
        *(["one order only: response1 was always shown first"] if study.records else []),
        "ALPHA is response1 and BETA is response2 of whatever two systems an item has: stage 09 ranks two places here",
    ]


def _read(entry: Entry) -> list[dict[str, Any]] | str:
    """An item, or one judge's verdict, or both."""
    values = entry.values
    idx = values.get("idx")
    if type(idx) is not int or idx < 0:
        raise ValueError(f"idx is {idx!r:.60}; allowed are whole numbers from 0")
    item_id = f"{idx:03d}"
    rows = [_item_row(item_id, entry)] if "response1" in values or "annotator1" in values else []
    is_item = bool(rows)
    for key in (key for key in values if key.endswith(RESULT)):
        raw = values[key]
        text = str(raw).casefold() if isinstance(raw, int | str) and not isinstance(raw, bool) else ""
        if text not in (*VERDICTS, UNUSABLE):
            raise ValueError(f"{key} is {raw!r:.60}; allowed are 0, 1, 2, Tie and {UNUSABLE}")
        judge = key.removesuffix(RESULT) if is_item else TESTSET.sub("", entry.path.stem)
        named = {"the judge's name": judge}
        name = Entry(named, entry.path, entry.number).text(*named, needed=True)
        rows.append({"item_id": item_id, "judge": name, "verdict": VERDICTS.get(text)})
    if not rows:
        raise ValueError("neither an item (response1, response2) nor a verdict (a key that ends in _result)")
    return rows


def _item_row(item_id: str, entry: Entry) -> dict[str, Any]:
    values = entry.values
    pair = entry.text("cmp_key", needed=True).split("_")
    if len(pair) != BOTH or "" in pair or pair[0] == pair[1]:
        raise ValueError(f"cmp_key is {values['cmp_key']!r:.60}; allowed are the names of two systems as x_y")
    named = {"cmp_key, x": pair[0], "cmp_key, y": pair[1]}
    task = [_words(values, key) for key in ("instruction", "input")]
    answers = (_words(values, "response1", needed=True), _words(values, "response2", needed=True))
    labels = {key: values[key] for key in sorted(values) if ANNOTATOR.fullmatch(key)}
    for key, label in labels.items():
        if type(label) is not int or not 0 <= label < len(LABELS):
            raise ValueError(f"{key} is {label!r:.60}; allowed are 0 (a tie), 1 and 2")
    return {
        "item_id": item_id,
        "systems": Entry(named, entry.path, entry.number).systems(*named),
        "category": entry.text("motivation_app"),
        "task": "\n\n".join(text for text in task if text.strip()),
        "answers": answers,
        "usable": any(text.strip() for text in task) and all(text.strip() for text in answers),
        "was_bool": any(isinstance(values[key], bool) for key in ("response1", "response2")),
        "labels": labels,
    }


def _words(values: Mapping[str, Any], key: str, *, needed: bool = False) -> str:
    """A text; true and false, which some writer of the files has made of the answers True and False, are words."""
    value = values.get(key, None if needed else "")
    if isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"{key} is {value!r:.60}; allowed is text")
    return value


def _verdicts(gathered: Gathered, path: Path) -> list[dict[str, Any]]:
    """The verdicts, each judge's once an item."""
    verdicts = [row for row in gathered.rows if "judge" in row]
    keys = Counter((row["judge"], row["item_id"]) for row in verdicts)
    twice = [f"{item_id} by {judge}" for (judge, item_id), count in keys.items() if count > 1]
    if twice:
        raise DataError(
            f"{at(path)}: {len(twice)} of {len(keys)} items have two verdicts of one judge; first {twice[0]}; "
            "nothing was written"
        )
    return verdicts


def _check(
    path: Path, found: Sequence[dict[str, Any]], gathered: Gathered, items: Mapping[str, dict[str, Any]]
) -> tuple[str, ...]:
    """The annotators, which every item has; each idx has one item."""
    if not found:
        files = ", ".join(at(file) for file in gathered.files)
        raise DataError(f"{at(path)}: no item (response1, response2, cmp_key) in {files}; nothing was written")
    if len(items) < len(found):
        twice = [item_id for item_id, count in Counter(row["item_id"] for row in found).items() if count > 1]
        raise DataError(
            f"{at(path)}: {len(twice)} of {len(items)} values of idx have two items; first {twice[0]}; "
            "nothing was written"
        )
    annotators = tuple(found[0]["labels"])
    other = [row["item_id"] for row in found if tuple(row["labels"]) != annotators]
    if other:
        raise DataError(
            f"{at(path)}: {len(other)} of {len(found)} items have other annotators than "
            f"{', '.join(annotators) or 'none'}; first idx {other[0]}; nothing was written"
        )
    return annotators


def _item(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "item_id": row["item_id"],
        "category": row["category"],
        "task": row["task"],
        "reference_context": "",
        "answers": dict(zip(SYSTEMS, row["answers"], strict=True)),
        "written_by": dict(zip(SYSTEMS, row["systems"], strict=True)),
    }


def _labels(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "item_id": row["item_id"],
            "reviewer_id": annotator,
            "system_x": SYSTEMS[0],
            "system_y": SYSTEMS[1],
            "preference": LABELS[label],
            "is_adjudicated": "false",
        }
        for annotator, label in row["labels"].items()
    ]


def _record(judge: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return pairwise_record(judge, row["item_id"], "original", (SYSTEMS[0], SYSTEMS[1]), row["verdict"], NO_VERDICT)


def _matches(
    items: Mapping[str, Mapping[str, Any]], verdicts: Sequence[Mapping[str, Any]], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The verdicts and the labels as matches of the systems by name; response1 was shown first."""
    answers = {"A": 1, "B": 2, TIE: 0, None: None}
    said = [(names[row["judge"]], items[row["item_id"]], answers[row["verdict"]], "original") for row in verdicts]
    said += [(name, row, label, "") for row in items.values() for name, label in row["labels"].items()]
    return [
        {
            "judge": judge,
            "item_id": row["item_id"],
            "category": row["category"],
            "pass": pass_,
            "system_x": row["systems"][0],
            "system_y": row["systems"][1],
            "first": row["systems"][0] if pass_ else None,  # how the annotators were shown the answers is not known
            "preference": None if label is None else (TIE, *row["systems"])[label],
            "reason": NO_VERDICT if label is None else "",
            "words_x": word_count(row["answers"][0]),
            "words_y": word_count(row["answers"][1]),
        }
        for judge, row, label, pass_ in said
    ]
