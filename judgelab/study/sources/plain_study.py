"""Rows of the plain format with their texts as a full study: items, labels, and recorded verdicts in both orders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgelab.errors import DataError
from judgelab.study.protocol import TIE
from judgelab.study.sources.full_study import FullStudy, pairwise_record, plain_names, write_full_study
from judgelab.study.sources.match_imports import SHOWN, Gathered, counted, left_out_notes
from judgelab.study.sources.published import at

__all__ = ["full_study_of", "why_no_full_study"]

TEXTS = ("task", "reference_context", "category")
CONTROLS = ("always-first", "longest", "coin")
SCALES = ((1, 5), (0, 10), (0, 100))
UNKNOWN_ORDER = "a verdict whose order shown is not known, which no pass can hold"
AGAIN = "a verdict of a judge, pair and order that were there before (a full study asks once)"
SCORED_AGAIN = "a judge's score of an answer that it had scored before"
NO_LABEL = "a person's row without a preference"
NOBODY = "judge"


def why_no_full_study(rows: Sequence[Mapping[str, Any]]) -> str:
    """Why rows make no full study, as what is not in the files; empty if they make one."""
    if not any(row["task"] or row["answer_x"] or row["answer_y"] for row in rows):
        return "tasks and answers are not in these files"
    systems = {row[key] for row in rows for key in ("system_x", "system_y")}
    having: dict[str, set[str]] = {row["item_id"]: set() for row in rows}
    tasks = {row["item_id"] for row in rows if row["task"].strip()}
    for row in rows:
        having[row["item_id"]] |= {row[f"system_{side}"] for side in "xy" if row[f"answer_{side}"].strip()}
    whole = sum(item in tasks and answers == systems for item, answers in having.items())
    if whole < len(having):
        return (
            f"a full study needs the task and the answers of all {counted(len(systems), 'system')} for every item; for "
            f"{len(having) - whole} of {counted(len(having), 'item')} they are not in these files"
        )
    if not any(row["by"] == "person" or row["first"] or row["scores"] != (None, None) for row in rows):
        return "the order in which the answers were shown, which a full study needs, is not in these files"
    return ""


def full_study_of(gathered: Gathered, path: Path, run: str, told: Sequence[str]) -> tuple[Path, list[str]]:
    """Write rows with their texts as a full study; see :func:`judgelab.study.sources.plain.import_plain`.

    Raises
    ------
    DataError
        If two rows have other texts of one item, or a judge's score is no whole number or not from 0 to 100.
    """
    rows = gathered.rows
    systems = plain_names((row[key] for row in rows for key in ("system_x", "system_y")), taken=(TIE,))
    people = [row for row in rows if row["by"] == "person"]
    asked = [row for row in rows if row["by"] == "judge"]
    judges = plain_names((row["judge"] or NOBODY for row in asked), taken=CONTROLS)
    items = _items(rows, systems, path)
    scale = _scale(rows, asked, path)
    records = [*_direct(asked, systems, judges, gathered), *_pairwise(asked, systems, judges, gathered)]
    labels = _labels(people, systems, gathered)
    initial = [label for label in labels if label["repeat"] == 1]
    reviewers = Counter((label["item_id"], frozenset((label["system_x"], label["system_y"]))) for label in initial)
    if all(label["repeat"] == 1 for label in labels):
        labels = [{key: value for key, value in label.items() if key != "repeat"} for label in labels]
    used = {record["record"] for record in records}
    study = FullStudy(
        kind="plain",
        title=f"Judgments made elsewhere: {counted(len(systems), 'system')}",
        question="Which judge, and which strategy, reproduces the decisions of people?",
        sampling_rule="as in the files that were imported",
        rubric="elsewhere",
        description="As the judges were told where the verdicts were made: write it here.",
        systems=tuple(systems.values()),
        items=items,
        records=records,
        judges={plain: f"imported, {name}" for name, plain in judges.items() if plain in used},
        labels=labels,
        provenance="human" if labels else None,
        reviewers=min(reviewers.values(), default=1),
        scale=scale,
        head=("rubric_version and the description of the criterion say nothing yet of how the verdicts were made.",),
    )
    missing = Counter(record["reason"] for record in records if record["verdict"] is None)
    scored = sum(record["strategy"] == "direct" for record in records)
    low, high = scale
    renamed = {**systems, **judges}
    notes = [
        f"read: {counted(len(records), 'verdict')} of {counted(len(study.judges), 'judge')} and "
        f"{counted(len(labels), 'label')} of {counted(len({row['judge'] for row in people}), 'person', 'people')} on "
        f"{counted(len(items), 'item')} and {counted(len(systems), 'system')}, from "
        f"{counted(len(gathered.files), 'file')}",
        *(f"no verdict: {count} of {len(records)} ({reason})" for reason, count in missing.items()),
        *([f"scores: {scored} of single answers, taken to be on a scale from {low} to {high}"] if scored else []),
        *(f"called {plain} here: {name!r}" for name, plain in renamed.items() if name != plain),
        *left_out_notes(gathered),
        *told,
    ]
    return write_full_study(study, run, notes)


def _items(rows: Sequence[Mapping[str, Any]], systems: Mapping[str, str], path: Path) -> list[dict[str, Any]]:
    """The items, with one text of each kind; other texts of the same are refused."""
    texts: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    other = []
    for row in rows:
        answers = {f"answer of {row[f'system_{side}']}": row[f"answer_{side}"] for side in "xy"}
        for what, text in ({key: row[key] for key in TEXTS} | answers).items():
            if not text:
                continue
            known, there = texts.setdefault((row["item_id"], what), (text, row))
            if known != text:
                here, before = (f"{at(one['entry'].path)} line {one['entry'].number}" for one in (row, there))
                other.append(f"{here}: the {what} on {row['item_id']} differs from that in {before}")
    _refuse(other, len(rows), "rows have other texts than rows before", path)

    def text_of(item_id: str, what: str) -> str:
        return texts.get((item_id, what), ("", {}))[0]

    return [
        {
            "item_id": item_id,
            **{key: text_of(item_id, key) for key in ("category", "task", "reference_context")},
            "answers": {plain: text_of(item_id, f"answer of {name}") for name, plain in systems.items()},
        }
        for item_id in dict.fromkeys(row["item_id"] for row in rows)
    ]


def _scale(rows: Sequence[Mapping[str, Any]], asked: Sequence[Mapping[str, Any]], path: Path) -> tuple[int, int]:
    """The smallest usual scale that holds every score; a judge's scores are whole numbers."""
    wrong = [
        f"{at(row['entry'].path)} line {row['entry'].number}: score_{side} is {score:g}"
        for row in asked
        for side, score in zip("xy", row["scores"], strict=True)
        if score is not None and not score.is_integer()
    ]
    _refuse(wrong, len(rows), "rows have a judge's score that is no whole number", path)
    scores = [score for row in rows for score in row["scores"] if score is not None]
    low, high = min(scores, default=1.0), max(scores, default=5.0)
    for scale in SCALES:
        if scale[0] <= low and high <= scale[1]:
            return scale
    raise DataError(f"{at(path)}: scores go from {low:g} to {high:g}; allowed are 0 to 100; nothing was written")


def _refuse(wrong: Sequence[str], total: int, what: str, path: Path) -> None:
    if wrong:
        more = [f"and {len(wrong) - SHOWN} more"] if len(wrong) > SHOWN else []
        head = f"{at(path)}: {len(wrong)} of {total} {what}; nothing was written"
        raise DataError("\n  ".join([head, *wrong[:SHOWN], *more]))


def _direct(
    asked: Sequence[Mapping[str, Any]], systems: Mapping[str, str], judges: Mapping[str, str], gathered: Gathered
) -> list[dict[str, Any]]:
    """One record a judge and scored answer; the same score again, in the row of another pair, is the same."""
    records: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in asked:
        for side, score in zip("xy", row["scores"], strict=True):
            if score is None:
                continue
            judge, system = judges[row["judge"] or NOBODY], systems[row[f"system_{side}"]]
            record = {
                "record": judge,
                "item_id": row["item_id"],
                "strategy": "direct",
                "pass": "direct",
                "system": system,
                "reply": None,
                "verdict": {"scores": {"overall": int(score)}},
                "reason": None,
            }
            if records.setdefault((judge, row["item_id"], system), record) != record:
                gathered.left_out[SCORED_AGAIN] += 1
    return list(records.values())


def _pairwise(
    asked: Sequence[Mapping[str, Any]], systems: Mapping[str, str], judges: Mapping[str, str], gathered: Gathered
) -> list[dict[str, Any]]:
    """One record a judge, pair and order: the order that the file calls original, or has first, is the original."""
    orders: dict[tuple[str, str, frozenset[str]], dict[str, Mapping[str, Any]]] = {}
    for row in sorted(asked, key=lambda row: row["given_repeat"]):
        if row["only_scores"]:
            continue
        if row["first"] is None:
            gathered.left_out[UNKNOWN_ORDER] += 1
            continue
        key = (judges[row["judge"] or NOBODY], row["item_id"], frozenset((row["system_x"], row["system_y"])))
        if orders.setdefault(key, {}).setdefault(row["first"], row) is not row:
            gathered.left_out[AGAIN] += 1
    records = []
    for (judge, item_id, _), by_first in orders.items():
        ordered = sorted(by_first.values(), key=lambda row: row["pass"] == "swapped")
        for pass_, row in zip(("original", "swapped"), ordered, strict=False):
            x, y = row["system_x"], row["system_y"]
            first, second = (x, y) if row["first"] == x else (y, x)
            letter = {first: "A", second: "B", TIE: TIE}.get(row["preference"])
            places = (systems[first], systems[second])
            records.append(pairwise_record(judge, item_id, pass_, places, letter, row["reason"]))
    return records


def _labels(
    people: Sequence[Mapping[str, Any]], systems: Mapping[str, str], gathered: Gathered
) -> list[dict[str, Any]]:
    """People's rows as labels; one who labelled the same again is told by ``repeat``."""
    seen: Counter[tuple[str, str, frozenset[str]]] = Counter()
    labels = []
    for row in people:
        if row["preference"] is None:
            gathered.left_out[NO_LABEL] += 1
            continue
        key = (row["item_id"], row["judge"], frozenset((row["system_x"], row["system_y"])))
        seen[key] += 1
        labels.append(
            {
                "item_id": row["item_id"],
                "reviewer_id": row["judge"] or "person",
                "system_x": systems[row["system_x"]],
                "system_y": systems[row["system_y"]],
                "preference": systems.get(row["preference"], TIE),
                "score_x": row["scores"][0],
                "score_y": row["scores"][1],
                "is_adjudicated": "false",
                "repeat": seen[key],
            }
        )
    return labels
