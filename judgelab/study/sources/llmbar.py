"""LLMBar: tasks with two answers, a human label, and the verdicts of several LLMs in both orders.

Layout of the publication (Zeng et al. 2024, "Evaluating Large Language Models at Evaluating Instruction
Following", ICLR; repository princeton-nlp/LLMBar): ``LLMBar/Natural`` and ``LLMBar/Adversarial/<set>``, each with
``dataset.json`` (input, output_1, output_2, label 1 or 2) and ``evaluators/<judge>/<prompt>/result.json``.
``output_1`` becomes ALPHA's answer and ``output_2`` BETA's; the presentation is that of the publication.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from judgelab.errors import DataError
from judgelab.project import outputs_folder, project_root, shown
from judgelab.study.protocol import check_run_name
from judgelab.study.sources.llmbar_verdicts import SCALE, Evaluation, records_of
from judgelab.study.tables import csv_text, jsonl_text, read_text, write_text

__all__ = ["SYSTEMS", "Imported", "evaluations", "import_llmbar", "read_llmbar"]

SYSTEMS = ("ALPHA", "BETA")
DEPTHS = ("dataset.json", *("/".join(["*"] * depth) + "/dataset.json" for depth in range(1, 5)))
PRIMARY = ("Vanilla_NoRules", "Vanilla")
MEMBERS = 3  # the fewest judges of a panel
ACCEPTED = 5  # the first score in the upper half of the scale from 0 to 9; LLMBar names no threshold
PASSES = ("direct", "pairwise_original", "pairwise_swapped")

CONTROLS: list[dict[str, Any]] = [
    {"kind": "control", "name": "always-first", "rule": "first"},
    {"kind": "control", "name": "longest", "rule": "longest"},
    {"kind": "control", "name": "coin", "rule": "coin", "seed": 1},
]


@dataclass(frozen=True)
class Imported:
    """What a folder of LLMBar holds, in judgelab's layouts, and notes on what was found."""

    items: list[dict[str, Any]]
    labels: list[dict[str, Any]]
    records: list[dict[str, Any]]
    params: dict[str, Any]
    notes: list[str]


@dataclass(frozen=True)
class _Set:
    """One set: its folder, its name in small letters, and its entries with their item ids."""

    folder: Path
    name: str
    entries: dict[str, dict[str, Any]]


def read_llmbar(folder: Path, run: str) -> Imported:
    """Read every set below ``folder`` (the publication's root, ``LLMBar``, or one set).

    Parameters
    ----------
    folder
        Where the published files are.
    run
        The name of the run to make, for the paths in its protocol.

    Returns
    -------
    Imported
        Records keep the raw replies. A verdict's letter is by position: with ``swap = False`` output_1 stood
        first, with ``swap = True`` output_2. ``Rating`` prompts give direct scores; their winners are not used,
        since equal ratings have opposite winners there.

    Raises
    ------
    DataError
        If no set is found, an entry has another form, or the verdicts do not reproduce ``statistics.json``.
    """
    check_run_name(run, "--run")
    sets = [_read_set(path) for path in _datasets(folder)]
    records: list[dict[str, Any]] = []
    judges: dict[str, dict[str, Any]] = {}
    notes = [f"{len(one.entries)} items of {one.name}" for one in sets]
    primary = _primary_prompts(sets)
    for one in sets:
        for path in _results(one):
            evaluation = _evaluation(one, path, primary)
            found = records_of(evaluation)
            records += found
            _add_judge(judges, evaluation, run)
            notes.append(_note(evaluation, one.name, found))
    if not records:
        raise DataError(f"{shown(folder)}: no evaluators/<judge>/<prompt>/result.json in {len(sets)} sets")
    # the judges with most passes come first: theirs are the questions that can be answered
    ordered = sorted(judges.values(), key=lambda judge: (-len(judge["passes"]), judge["name"]))
    items = [_item(item_id, entry, one.name) for one in sets for item_id, entry in one.entries.items()]
    labels = [_label(item_id, entry) for one in sets for item_id, entry in one.entries.items()]
    return Imported(items, labels, records, _params(run, sets, ordered), notes)


def evaluations(folder: Path) -> Iterator[tuple[str, Evaluation]]:
    """Every result file below ``folder`` with the name of its set, Natural before Adversarial.

    Raises
    ------
    DataError
        As :func:`read_llmbar`.
    """
    sets = [_read_set(path) for path in _datasets(folder)]
    primary = _primary_prompts(sets)
    for one in sets:
        for path in _results(one):
            yield one.name, _evaluation(one, path, primary)


def import_llmbar(folder: Path, run: str) -> tuple[Path, list[str]]:
    """Write ``outputs/<run>/source`` and, if it is missing, ``params/<run>.yaml``.

    Returns
    -------
    tuple
        The path of the parameters, and notes: what was read, and what was written.

    Raises
    ------
    DataError
        As :func:`read_llmbar`.
    RunError
        If a file cannot be written.
    """
    imported = read_llmbar(folder, run)
    source = outputs_folder() / run / "source"
    write_text(jsonl_text(imported.items), source / "items.jsonl")
    write_text(csv_text(pd.DataFrame(imported.labels)), source / "human_labels.csv")
    write_text(jsonl_text(imported.records), source / "records.jsonl")
    params = project_root() / "params" / f"{run}.yaml"
    written = f"written: items.jsonl, human_labels.csv and records.jsonl in {shown(source)}"
    if params.is_file():
        return params, [*imported.notes, written, f"{shown(params)} is there already and was left as it is"]
    write_text(_params_text(imported.params, run), params)
    return params, [*imported.notes, written, f"written: {shown(params)}"]


def _datasets(folder: Path) -> list[Path]:
    """The sets' files, Natural before Adversarial."""
    if not folder.is_dir():
        raise DataError(f"{folder.name}: no such folder")
    root = folder.resolve()
    found = sorted({path for pattern in DEPTHS for path in root.glob(pattern)})
    natural = [path for path in found if path.parent.name == "Natural"]
    adversarial = [path for path in found if path.parent.parent.name == "Adversarial"]
    if not natural and not adversarial:
        raise DataError(
            f"{folder.name}: no LLMBar/Natural/dataset.json and no LLMBar/Adversarial/<set>/dataset.json in it"
        )
    return natural + adversarial


def _read_set(path: Path) -> _Set:
    name = path.parent.name.lower()
    entries = _json_list(path)
    for place, entry in enumerate(entries):
        wrong = [key for key in ("input", "output_1", "output_2") if not isinstance(entry.get(key), str)]
        if wrong or entry.get("label") not in (1, 2):
            what = f"{wrong[0]} is not text" if wrong else f"label is {entry.get('label')!r}, allowed are 1 and 2"
            raise DataError(f"{_where(path)}: entry {place + 1} of {len(entries)}: {what}")
    return _Set(path.parent, name, {f"{name}_{place:03d}": entry for place, entry in enumerate(entries, start=1)})


def _json_list(path: Path) -> list[dict[str, Any]]:
    values = _json(path)
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise DataError(f"{_where(path)}: a list of objects is needed")
    return values


def _statistics(path: Path) -> dict[str, Any]:
    values = _json(path) if path.is_file() else {}
    if not isinstance(values, dict):
        raise DataError(f"{_where(path)}: an object is needed")
    return values


def _json(path: Path) -> Any:
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{_where(path)}: not valid JSON: {error}") from None


def _results(one: _Set) -> list[Path]:
    return sorted(one.folder.glob("evaluators/*/*/result.json"), key=lambda path: (_judge(path), _prompt(path)))


def _judge(path: Path) -> str:
    return path.parent.parent.name.lower()


def _prompt(path: Path) -> str:
    return path.parent.name


def _primary_prompts(sets: Sequence[_Set]) -> set[tuple[str, str]]:
    """Judge and prompt whose verdicts go by the judge's own name: one pairwise and one direct prompt a judge."""
    prompts: dict[str, set[str]] = {}
    for one in sets:
        for path in _results(one):
            prompts.setdefault(_judge(path), set()).add(_prompt(path))
    primary = set()
    for judge, names in prompts.items():
        pairwise = [name for name in PRIMARY if name in names]
        direct = sorted(name for name in names if name.startswith("Rating"))
        primary |= {(judge, name) for name in (*pairwise[:1], *direct[:1])}
    return primary


def _evaluation(one: _Set, path: Path, primary: set[tuple[str, str]]) -> Evaluation:
    """One result file, checked to be about the entries of its set."""
    judge, prompt = _judge(path), _prompt(path)
    results, entries = _json_list(path), list(one.entries.values())
    keys = ("input", "output_1", "output_2", "label")
    same = [all(result.get(key) == entry[key] for key in keys) for result, entry in zip(results, entries, strict=False)]
    if len(results) != len(entries) or not all(same):
        first = same.index(False) + 1 if False in same else min(len(results), len(entries)) + 1
        raise DataError(
            f"{_where(path)}: {len(results)} results for {len(entries)} entries of dataset.json; the first that "
            f"does not fit is number {first}"
        )
    return Evaluation(
        judge=judge if (judge, prompt) in primary else f"{judge}-{prompt.lower().replace('_', '-')}",
        prompt=f"evaluators/{path.parent.parent.name}/{prompt}",
        direct=prompt.startswith("Rating"),
        where=_where(path),
        results=dict(zip(one.entries, results, strict=True)),
        statistics=_statistics(path.with_name("statistics.json")),
    )


def _item(item_id: str, entry: Mapping[str, Any], category: str) -> dict[str, Any]:
    return {
        "item_id": item_id,
        "category": category,
        "task": entry["input"],
        "reference_context": "",
        "answer_alpha": entry["output_1"],
        "answer_beta": entry["output_2"],
    }


def _label(item_id: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "item_id": item_id,
        "reviewer_id": "llmbar",
        "preference": SYSTEMS[entry["label"] - 1],
        "is_adjudicated": "false",
        "provenance": "human",
    }


def _add_judge(judges: dict[str, dict[str, Any]], evaluation: Evaluation, run: str) -> None:
    """The judge's entry of the protocol, with the passes of all its prompts."""
    new: dict[str, Any] = {
        "name": evaluation.judge,
        "kind": "recorded",
        "path": f"outputs/{run}/source/records.jsonl",
        "record": evaluation.judge,
        "provenance": "LLMBar",
        "passes": [],
    }
    entry = judges.setdefault(evaluation.judge, new)
    if evaluation.prompt not in entry["provenance"]:
        entry["provenance"] += f", {evaluation.prompt}"
    own = {"direct"} if evaluation.direct else {"pairwise_original", "pairwise_swapped"}
    entry["passes"] = [name for name in PASSES if name in own | set(entry["passes"])]


def _note(evaluation: Evaluation, name: str, found: Sequence[Mapping[str, Any]]) -> str:
    missing = Counter(record["item_id"] for record in found if record["verdict"] is None)
    both = 0 if evaluation.direct else sum(count == 2 for count in missing.values())
    # positional agreement is higher there than here by these
    told = f", {both} items in both orders, which statistics.json counts as equal" if both else ""
    return (
        f"{len(found)} verdicts of {evaluation.judge} on {name} ({evaluation.prompt}; "
        f"{missing.total()} without a verdict in the source{told})"
    )


def _params(run: str, sets: Sequence[_Set], judges: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The protocol of an import: nothing in it depends on what the verdicts say."""
    kind = "adversarial" if all(one.name != "natural" for one in sets) else "natural"
    names = ", ".join(one.name for one in sets)
    passes = [name for name in PASSES if any(name in judge["passes"] for judge in judges)]
    total = sum(len(one.entries) for one in sets)
    study = {
        "study_id": run,
        "title": f"LLMBar, {kind} instructions: recorded judges against human labels",
        "question": "Which strategy and which judge reproduces the human decision on instruction following?",
        "sampling_rule": f"All {total} published items of LLMBar ({names}); none was left out or added.",
        "items": {"path": f"outputs/{run}/source/items.jsonl", "on_invalid": "refuse", "max_excluded_share": 0.0},
        "systems": {name: {} for name in SYSTEMS},
        "human_labels": {"path": f"outputs/{run}/source/human_labels.csv", "provenance": "human"},
        "human_review": {"reviewers_per_item": 1, "adjudicate_disagreement": False},
        "rubric_version": "llmbar-instruction-following",
        "direct_scale": {
            "minimum": SCALE[0],
            "maximum": SCALE[1],
            "acceptance_threshold": ACCEPTED,
            "criteria": [_criterion()],
        },
        "direct_tie_margin": 0.0,
        "pairwise_labels": ["A", "B"],
        "random_seed": 20240719,
        "split": {"development_share": 0.0},
        "passes": passes,
        "position_test": {"enabled": "pairwise_swapped" in passes, "swap_every_pair": True},
        "judges": [{**judge, "passes": list(judge["passes"])} for judge in judges] + CONTROLS,
        # LLMBar publishes one label an item, agreed by its authors: there are no two reviewers to compare.
        "decision": {"minimum_reviewer_agreement": 0.0},
        "repairs": {"run": _repairs(judges)},
    }
    return {"run": run, "study": study}


def _repairs(judges: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The repairs that recorded verdicts allow: both presentations, and a panel of the LLMs with one prompt each."""
    swapped = [str(judge["name"]) for judge in judges if "pairwise_swapped" in judge["passes"]]
    panel = [name for name in swapped if not any(name.startswith(f"{other}-") for other in swapped)]
    both: list[Any] = ["both_presentations"] if swapped else []
    return [*both, {"kind": "panel", "judges": panel, "rule": "majority"}] if len(panel) >= MEMBERS else both


def _criterion() -> dict[str, str]:
    return {
        "name": "overall",
        "description": "The answer does what the instruction asks, exactly and completely, and nothing else counts.",
    }


def _params_text(params: Mapping[str, Any], run: str) -> str:
    head = f"# Made by `judgelab import llmbar FOLDER --run {run}`, which writes the files in outputs/{run}/source.\n"
    head += "# minimum_reviewer_agreement is 0: LLMBar publishes one label an item, agreed by its authors.\n"
    return head + str(yaml.safe_dump(dict(params), sort_keys=False, allow_unicode=True, width=110))


def _where(path: Path) -> str:
    """A file of the publication, by the part of its path that the publication has."""
    parts = path.parts
    inside = next((at for at, part in enumerate(parts) if part in ("Natural", "Adversarial")), len(parts) - 1)
    return "/".join(parts[inside:])
