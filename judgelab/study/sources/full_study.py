"""Foreign verdicts with their answers as a whole study: items, labels and records, and a protocol that names them.

The importers of formats that hold answers stand on this. The protocol that is written does not depend on what the
verdicts say. It is checked before anything is written, so that nothing half-made is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from judgelab.project import outputs_folder, project_root, shown
from judgelab.study.protocol import check_run_name, parse_study
from judgelab.study.tables import csv_text, jsonl_text, write_text

__all__ = ["SYSTEMS", "FullStudy", "item_id_problem", "pairwise_record", "plain_names", "write_full_study"]

SYSTEMS = ("ALPHA", "BETA")  # names of places, where a file has two answers an item and not two systems
PASSES = {"direct": "direct", "original": "pairwise_original", "swapped": "pairwise_swapped"}
PANEL = 3  # the fewest judges of a panel
LONGEST = 100_000  # characters of an answer that a protocol allows without saying so
CONTROLS: list[dict[str, Any]] = [
    {"kind": "control", "name": "always-first", "rule": "first"},
    {"kind": "control", "name": "longest", "rule": "longest"},
    {"kind": "control", "name": "coin", "rule": "coin", "seed": 1},
]
LABEL_COLUMNS = ("item_id", "reviewer_id", "system_x", "system_y", "preference", "score_x", "score_y", "is_adjudicated")


@dataclass(frozen=True)
class FullStudy:
    """What a file with answers holds, in judgelab's layouts.

    Attributes
    ----------
    kind, title, question
        The format's name for `judgelab import`, what its verdicts are called, and the study's question.
    sampling_rule, rubric, description
        How the items came about, the rubric's version, and what its one criterion (``overall``) asks.
    systems
        Names of the systems, in the order of every pair.
    items, records
        As the protocol's files hold them: ``answers`` by system; one record a call of a judge of kind ``recorded``.
    judges
        Where the verdicts of each judge come from, by the judge's name; its passes are those of its records.
    labels, provenance, reviewers
        The labels in the long layout, where they come from (None without labels), and how many initial labels by
        different reviewers an item has.
    scale
        The least and the highest score.
    head
        Lines of the comment above the protocol.
    """

    kind: str
    title: str
    question: str
    sampling_rule: str
    rubric: str
    description: str
    systems: Sequence[str]
    items: Sequence[Mapping[str, Any]]
    records: Sequence[Mapping[str, Any]]
    judges: Mapping[str, str]
    labels: Sequence[Mapping[str, Any]] = ()
    provenance: str | None = None
    reviewers: int = 1
    scale: tuple[int, int] = (1, 5)
    head: Sequence[str] = field(default=())


def write_full_study(study: FullStudy, run: str, notes: Sequence[str]) -> tuple[Path, list[str]]:
    """Write ``outputs/<run>/source`` and, if it is missing, ``params/<run>.yaml``.

    Parameters
    ----------
    study
        What was read.
    run
        The name of the run to make.
    notes
        Notes that come first.

    Returns
    -------
    tuple
        The path of the parameters, and all notes.

    Raises
    ------
    ProtocolError
        If the run's name is none, or a name that was read cannot stand in a protocol. Nothing is written then.
    RunError
        If a file cannot be written.
    """
    check_run_name(run, "--run")
    values = _values(study, run)
    parse_study(values, where=f"params/{run}.yaml")
    source = outputs_folder() / run / "source"
    files = {"items.jsonl": jsonl_text(study.items)}
    if study.labels:
        columns = [*LABEL_COLUMNS, *(("repeat",) if any("repeat" in label for label in study.labels) else ())]
        files["human_labels.csv"] = csv_text(pd.DataFrame([dict(one) for one in study.labels], columns=columns))
    if study.records:
        files["records.jsonl"] = jsonl_text(study.records)
    for name, text in files.items():
        write_text(text, source / name)
    told = [*notes, f"written: {', '.join(files)} in {shown(source)}"]
    params = project_root() / "params" / f"{run}.yaml"
    if params.is_file():
        return params, [*told, f"{shown(params)} is there already and was left as it is"]
    made = f"Made by `judgelab import {study.kind} PATH --run {run}`, which writes the files in outputs/{run}/source."
    head = "".join(f"# {line}\n" for line in (made, *study.head))
    document = yaml.safe_dump({"run": run, "study": values}, sort_keys=False, allow_unicode=True, width=110)
    write_text(f"{head}{document}", params)
    return params, [*told, f"written: {shown(params)}"]


def pairwise_record(
    judge: str, item_id: str, pass_: str, shown_systems: tuple[str, str], verdict: str | None, reason: str | None
) -> dict[str, Any]:
    """One recorded comparison: ``verdict`` is a letter by place (A is the answer shown first) or TIE, or missing."""
    first, second = shown_systems
    return {
        "record": judge,
        "item_id": item_id,
        "strategy": "pairwise",
        "pass": pass_,
        "first": first,
        "second": second,
        "reply": None,
        "verdict": verdict,
        "reason": None if verdict else reason,
    }


def plain_names(names: Iterable[str], *, taken: Sequence[str] = ()) -> dict[str, str]:
    """A name that a protocol may hold for each name: other characters become ``-``, and no two become the same.

    Names that are ``taken``, in any case, are given to none.
    """
    found: dict[str, str] = {}
    used = {name.casefold() for name in taken}
    for name in dict.fromkeys(names):
        base = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-_.")[:70] or "unnamed"
        plain, number = base, 1
        while plain.casefold() in used:
            number += 1
            plain = f"{base}-{number}"
        used.add(plain.casefold())
        found[name] = plain
    return found


def item_id_problem(item_id: str) -> str:
    """Why a text cannot be the id of an item; empty if it can."""
    if item_id != item_id.strip() or not item_id.isprintable():
        return f"is {item_id!r:.60}; an item's id is one line of plain characters, without blanks around it"
    return ""


def _values(study: FullStudy, run: str) -> dict[str, Any]:
    """The protocol as plain values."""
    own = {
        judge: {PASSES[record["pass"]] for record in study.records if record["record"] == judge}
        for judge in study.judges
    }
    every = set().union(*own.values()) if own else {"pairwise_original", "pairwise_swapped"}
    passes = [
        name for name in PASSES.values() if name in every or (name == PASSES["original"] and PASSES["swapped"] in every)
    ]
    # the judges with most passes come first: theirs are the questions that can be answered
    ordered = sorted(study.judges, key=lambda name: (-len(own[name]), name))
    items: dict[str, Any] = {
        "path": f"outputs/{run}/source/items.jsonl",
        "on_invalid": "refuse",
        "max_excluded_share": 0.0,
    }
    longest = max((len(answer) for item in study.items for answer in item["answers"].values()), default=0)
    values: dict[str, Any] = {
        "study_id": run,
        "title": study.title,
        "question": study.question,
        "sampling_rule": study.sampling_rule,
        "items": items | ({"max_answer_characters": longest} if longest > LONGEST else {}),
        "systems": {name: {} for name in study.systems},
    }
    if study.labels:
        low, high = study.scale
        labels = {"path": f"outputs/{run}/source/human_labels.csv", "provenance": study.provenance}
        values["human_labels"] = labels | (
            {"score_minimum": low, "score_maximum": high} if study.scale != (1, 5) else {}
        )
        values["human_review"] = {"reviewers_per_item": max(study.reviewers, 1), "adjudicate_disagreement": False}
    values |= {
        "rubric_version": study.rubric,
        "direct_scale": {
            "minimum": study.scale[0],
            "maximum": study.scale[1],
            "criteria": [{"name": "overall", "description": study.description}],
        },
        "direct_tie_margin": 0.0,
        "random_seed": 20261130,
        "passes": passes,
        "position_test": {"enabled": PASSES["swapped"] in passes, "swap_every_pair": True},
        "judges": [
            _judge(name, study.judges[name], [one for one in passes if one in own[name]], run) for name in ordered
        ]
        + CONTROLS,
    }
    if study.reviewers < 2:
        values["decision"] = {"minimum_reviewer_agreement": 0.0}
    return values | {"repairs": {"run": _repairs(ordered, own)}}


def _judge(name: str, provenance: str, passes: list[str], run: str) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "recorded",
        "path": f"outputs/{run}/source/records.jsonl",
        "record": name,
        "provenance": provenance,
        "passes": passes,
    }


def _repairs(ordered: Sequence[str], own: Mapping[str, set[str]]) -> list[Any]:
    """The repairs that recorded verdicts allow: both presentations, and a panel of three or more judges."""
    swapped = [name for name in ordered if PASSES["swapped"] in own[name]]
    both: list[Any] = ["both_presentations"] if swapped else []
    return [*both, {"kind": "panel", "judges": swapped, "rule": "majority"}] if len(swapped) >= PANEL else both
