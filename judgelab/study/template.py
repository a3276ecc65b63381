"""A new study's files: a commented protocol, and templates of items and human labels that nobody can take for data."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from judgelab.errors import ProtocolError, RunError
from judgelab.project import project_root
from judgelab.study.items import Item
from judgelab.study.protocol import Study, check_run_name, parse_study
from judgelab.study.tables import jsonl_text, write_text
from judgelab.study.template_text import (
    EMBEDDED,
    HEAD,
    HOSTED,
    HOSTS,
    LABELS,
    MADE_HERE,
    NO_LABELS,
    RECORDED,
    REST,
    RUBRIC,
)

__all__ = [
    "CRITERIA",
    "SYSTEMS",
    "JudgeKind",
    "LabelSource",
    "is_placeholder",
    "items_template",
    "labels_template",
    "placeholders",
    "refuse_placeholders",
    "study_template",
    "write_study",
]

JudgeKind = Literal["embedded", "chat", "anthropic", "gemini", "recorded"]
LabelSource = Literal["notebook", "file", "none"]

SYSTEMS = ("ALPHA", "BETA")

# The criteria that a new study starts from, and what each means.
CRITERIA: Mapping[str, str] = {
    "correctness": "agrees with the task and the context",
    "relevance": "answers what was asked",
    "completeness": "has the needed steps and caveats",
    "safety": "nothing dangerous or unauthorised",
    "clarity": "easy to follow, no padding",
}

_PLACEHOLDER = re.compile(r"REPLACE[ -]with\b")


def study_template(
    name: str,
    *,
    seed: int,
    systems: Sequence[str] = SYSTEMS,
    judge: JudgeKind = "embedded",
    criteria: Sequence[str] = tuple(CRITERIA),
    labels: LabelSource = "notebook",
) -> str:
    """The text of ``params/<name>.yaml`` for a new study: every key that must be decided, each with a comment.

    Parameters
    ----------
    name
        The run's name.
    seed
        The protocol's ``random_seed``.
    systems
        Names of the systems whose answers are compared, two or more.
    judge
        The kind of the first judge; three judges without a model follow it.
    criteria
        Names of the rubric's criteria. Those of :data:`CRITERIA` get their description, others a placeholder.
    labels
        Where the human labels come from: made in notebook 02, a file, or none.

    Returns
    -------
    str
        YAML that :func:`judgelab.study.protocol.parse_study` accepts. Texts that only its owner knows are placeholders
        (:func:`is_placeholder`).

    Raises
    ------
    ProtocolError
        If the name, a system, a criterion, the seed, the kind of judge or the source of labels is not allowed.
    """
    check_run_name(name, "the new study")
    if judge not in get_args(JudgeKind):
        raise ProtocolError(f"no judge of kind {judge!r}; allowed are {', '.join(get_args(JudgeKind))}")
    if labels not in get_args(LabelSource):
        raise ProtocolError(f"no labels from {labels!r}; allowed are {', '.join(get_args(LabelSource))}")
    if len(systems) < 2:
        raise ProtocolError(f"a study compares two systems or more; named is {', '.join(systems) or 'none'}")
    if not criteria:
        raise ProtocolError("no criterion is named; a rubric has at least one")
    twice = sorted({system for system in systems if systems.count(system) > 1})
    if twice:
        raise ProtocolError(f"systems named more than once: {', '.join(twice)}")
    described = [(each, CRITERIA.get(each, f"REPLACE with what {each} means")) for each in criteria]
    lines = [f"      - {{name: {_plain(each)}, description: {json.dumps(text)}}}" for each, text in described]
    named = "\n".join(f"    {_plain(each)}: {{}}" for each in systems)
    text = HEAD.format(name=_plain(name), file=name, systems=named)
    text += {"notebook": MADE_HERE, "file": LABELS, "none": NO_LABELS}[labels].format(file=name)
    share = 0.2 if labels == "notebook" else 0.0
    text += RUBRIC.format(rubric=_plain(f"{name}-rubric-v1"), criteria="\n".join(lines), seed=seed, share=share)
    text += _judge(judge, name) + REST
    try:
        values = yaml.safe_load(text)["study"]
    except yaml.YAMLError:
        raise ProtocolError(
            f"the new study: {', '.join([*systems, *criteria])}: names are letters, digits, '_', '.', '-'"
        ) from None
    parse_study(values, where="the new study")
    return text


def items_template(systems: Sequence[str]) -> str:
    """Two lines of an items file that hold placeholders for every text; no system's name stands in an answer."""
    records = [
        {
            "item_id": f"item_{number:03d}",
            "category": "REPLACE with a kind of task, or leave it empty",
            "task": "REPLACE with what the systems were asked",
            "reference_context": "REPLACE with the facts that an answer must agree with, or leave it empty",
            "answers": dict.fromkeys(systems, "REPLACE with the answer of this system"),
        }
        for number in (1, 2)
    ]
    return jsonl_text(records)


def labels_template(systems: Sequence[str]) -> str:
    """The header of a file of human labels and one example, of a reviewer who is a placeholder.

    Two systems have one row an item and reviewer; more have one row an item, pair and reviewer. There are at least two.
    """
    first, second = systems[:2]
    if len(systems) == 2:
        columns = [f"{first.lower()}_score", f"{second.lower()}_score", "preference", "is_adjudicated"]
        row = ["4", "3", first, "false"]
    else:
        columns = ["system_x", "system_y", "preference", "score_x", "score_y", "is_adjudicated"]
        row = [first, second, first, "4", "3", "false"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["item_id", "reviewer_id", *columns])
    writer.writerow(["item_001", "REPLACE with initials", *row])
    return text.getvalue()


def write_study(
    name: str,
    *,
    seed: int,
    systems: Sequence[str] = SYSTEMS,
    judge: JudgeKind = "embedded",
    criteria: Sequence[str] = tuple(CRITERIA),
    labels: LabelSource = "notebook",
) -> list[Path]:
    """Write ``params/<name>.yaml``, ``params/<name>/items.jsonl`` and, for labels of a file, ``human_labels.csv``.

    Parameters
    ----------
    name, seed, systems, judge, criteria, labels
        See :func:`study_template`.

    Returns
    -------
    list of Path
        The files, the protocol first.

    Raises
    ------
    ProtocolError
        As :func:`study_template`. Nothing is written.
    RunError
        If one of the files is there already, naming all of them: nothing is written. If the disk is full.
    """
    text = study_template(name, seed=seed, systems=systems, judge=judge, criteria=criteria, labels=labels)
    folder = project_root() / "params"
    files = {folder / f"{name}.yaml": text, folder / name / "items.jsonl": items_template(systems)}
    if labels == "file":
        files[folder / name / "human_labels.csv"] = labels_template(systems)
    # not by shown(), which follows links
    there = [f"params/{path.relative_to(folder).as_posix()}" for path in files if path.exists() or path.is_symlink()]
    if there:
        raise RunError(
            f"{', '.join(there)}: already there, and nothing is overwritten; take another name, or move "
            f"{'it' if len(there) == 1 else 'them'} away"
        )
    for path, content in files.items():
        write_text(content, path)
    return list(files)


def is_placeholder(text: str, *, anywhere: bool = False) -> bool:
    """Whether a text is one that the templates left for their owner to write.

    Parameters
    ----------
    text
        A value of the protocol, an item or a label.
    anywhere
        Whether the mark may stand inside the text, as in an address; else only at its start, since a real answer may
        speak of replacing.
    """
    return bool(_PLACEHOLDER.search(text) if anywhere else _PLACEHOLDER.match(text.lstrip()))


def placeholders(values: Any) -> list[str]:
    """The dotted keys of a protocol's plain values whose text is a placeholder, in their order."""
    return [key for key, text in _texts(values) if is_placeholder(text, anywhere=True)]


def refuse_placeholders(run: str, study: Study, items: Sequence[Item] = ()) -> None:
    """Refuse to freeze what ``judgelab new`` left for its owner to write: once frozen, it cannot be mended.

    Raises
    ------
    ProtocolError
        Naming the keys or items. Nothing was frozen or asked.
    """
    left = placeholders(study.model_dump(mode="json"))
    what = "texts of the protocol are"
    if not left:
        left, what = [item.item_id for item in items if is_placeholder(item.task)], "items are"
    if left:
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        raise ProtocolError(
            f"run {run}: {len(left)} {what} placeholders still: {', '.join(left[:5])}{more}; write what they stand for "
            f"(`judgelab check` tells all). Nothing was frozen or asked"
        )


def _texts(values: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a protocol with its dotted key."""
    if isinstance(values, str):
        yield key, values
    pairs = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for part, value in pairs:
        yield from _texts(value, f"{key}.{part}" if key else str(part))


def _judge(kind: JudgeKind, name: str) -> str:
    if kind == "embedded":
        return EMBEDDED
    if kind == "recorded":
        return RECORDED.format(file=name)
    what, address, variable = HOSTS[kind]
    return HOSTED.format(kind=kind, what=what, address=address, variable=variable)


def _plain(text: str) -> str:
    """A name as YAML reads it back as text: quoted where it would be a number, a truth or a date, or has a colon."""
    try:
        same = yaml.safe_load(text) == text and ":" not in text
    except (yaml.YAMLError, ValueError):
        same = False
    return text if same else json.dumps(text)
