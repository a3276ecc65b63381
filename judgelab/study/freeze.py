"""Freezing a run and its labels, and refusing to carry it on with another protocol, other items or other labels."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from judgelab.errors import DataError, DriftError, ProtocolError, RunError
from judgelab.project import outputs_folder, project_root, shown
from judgelab.study.candidates import items_of
from judgelab.study.humans import labels_for_file, read_labels
from judgelab.study.items import ItemSet, items_to_records
from judgelab.study.labels import read_label_file
from judgelab.study.match_study import is_match_study
from judgelab.study.protocol import Study, check_run_name, load_params, parse_study
from judgelab.study.run import EXPERT_RANKS, ITEMS, LABELS, Run
from judgelab.study.tables import csv_text, jsonl_text, read_csv, read_lines, read_text, write_text
from judgelab.study.template import refuse_placeholders

__all__ = ["Run", "check_drift", "close_labels", "freeze", "load_study", "open_run"]

PROTOCOL = "protocol.yaml"
EXCLUDED = "excluded_items.csv"
SHOWN_KEYS = 10
SHOWN_IDS = 5
ORDER = " (order)"
ABSENT = object()


def load_study(run: str, study: Mapping[str, Any] | Study | None = None) -> Study:
    """The protocol that a notebook's two parameters name: ``study`` if it says anything, else ``params/<run>.yaml``.

    Raises
    ------
    ProtocolError
        If the protocol is not valid, or the file is for another run.
    """
    if isinstance(study, Study):
        return study
    if study:
        return parse_study(dict(study))
    check_run_name(run, "run")
    path = _params_path(run)
    named, found = load_params(path)
    if named != run:
        raise ProtocolError(f"{shown(path)}: run is {named!r}, the file is for the run {run!r}")
    return found


def freeze(name: str, study: Study | Mapping[str, Any]) -> Run:
    """Stage 01: check everything that must not change, and write it to ``outputs/<name>``.

    Writes ``items.jsonl`` (as they will be judged, with split and presentation), ``excluded_items.csv``,
    ``human_labels.csv``, and last ``protocol.yaml`` with the SHA-256 of all of them: a run without that file is not
    frozen. Freezing again with the same input changes no byte.

    Raises
    ------
    ProtocolError, DataError
        If the protocol, the items or the labels cannot be used.
    DriftError
        If the run was frozen with anything else; naming the keys, items or labels that differ.
    RunError
        If the folder cannot be written.
    """
    check_run_name(name, "run")
    study = study if isinstance(study, Study) else parse_study(dict(study))
    folder = outputs_folder() / name
    before = _frozen_run(name) if (folder / PROTOCOL).is_file() else None
    if before is not None:
        _same_protocol(before, study)
    refuse_placeholders(name, study)
    files = _files(name, study)
    frozen = {
        "protocol_sha256": study.sha256,
        "items_sha256": _sha256(files[ITEMS]),
        "human_labels_sha256": _sha256(files[LABELS]) if LABELS in files else None,
    }
    if before is not None:
        frozen |= _closed(before)
        _same_data(before, frozen, files)
    files[PROTOCOL] = _document(name, study, frozen)
    for file, text in files.items():
        _write_if_new(text, folder / file)
    return Run(name, study, folder, frozen)


def close_labels(run: Run, labels: pd.DataFrame, ranks: pd.DataFrame | None = None) -> Run:
    """End the labelling of a run: its labels are written and frozen, and can be measured with from now on.

    Writes ``human_labels.csv``, in a study whose reviewers rank also ``expert_ranks.csv``, and last ``protocol.yaml``
    with their SHA-256.

    Parameters
    ----------
    run
        A run whose labels are made in the study.
    labels
        Single labels in the columns of :data:`judgelab.study.labels.COLUMNS`, and ``repeat`` where there are such.
    ranks
        item_id, reviewer_id, system, rank (1 is best).

    Raises
    ------
    RunError
        If the labels of the run are not made in it, are closed already, or there are none. Nothing is written.
    DataError
        If a label is not allowed; as for a file of labels. The run is as it was.
    """
    now = _frozen_run(run.name)
    where = shown(run.folder)
    if now.study.human_review.labelling is None:
        raise RunError(f"{where}: its labels are not made in the study (human_review.labelling is empty)")
    if not now.labels_open:
        raise RunError(f"{where}: the labels are closed already; label in a run of another name to have others")
    if labels.empty:
        raise RunError(f"{where}: there is no label to close")
    text = csv_text(labels_for_file(labels, now.study))
    frozen = {**now.frozen, "human_labels_sha256": _sha256(text)}
    write_text(text, run.path(LABELS))
    try:
        read_label_file(run.path(LABELS), now.study, known={item.item_id for item in now.each_item()})
    except DataError:
        run.path(LABELS).unlink()
        raise
    if ranks is not None:
        frozen["expert_ranks_sha256"] = _sha256(csv_text(ranks))
        write_text(csv_text(ranks), run.path(EXPERT_RANKS))
    write_text(_document(now.name, now.study, frozen), run.path(PROTOCOL))
    return Run(now.name, now.study, now.folder, frozen)


def open_run(name: str, study: Study | Mapping[str, Any] | None = None) -> Run:
    """Open a frozen run in a later stage.

    Parameters
    ----------
    name
        The run's name.
    study
        The protocol that the stage was given, to be compared with the frozen one. Empty, as a notebook's
        parameter may be: the file ``params/<name>.yaml`` is compared if there is one. None: nothing is compared.

    Raises
    ------
    RunError
        If the run is not frozen yet; saying how to freeze it.
    DriftError
        If the given protocol differs from the frozen one, or the frozen one was edited by hand.
    """
    check_run_name(name, "run")
    if not (outputs_folder() / name / PROTOCOL).is_file():
        raise RunError(
            f"outputs/{name} is not frozen yet: run stage 01 first (`judgelab run params/{name}.yaml --to 01`, "
            "or the notebook notebooks/01_freeze_study.ipynb)"
        )
    run = _frozen_run(name)
    if study or (study is not None and _params_path(name).is_file()):
        _same_protocol(run, load_study(name, study))
    return run


def check_drift(name: str, study: Study) -> None:
    """Refuse, before anything is run, a protocol that differs from the one that a run was frozen with.

    Raises
    ------
    DriftError
        As :func:`open_run`. A run that is not frozen yet has nothing to differ from.
    """
    if (outputs_folder() / name / PROTOCOL).is_file():
        _same_protocol(_frozen_run(name), study)


def _files(name: str, study: Study) -> dict[str, str]:
    """The text of every file that freezing writes, beside the protocol itself."""
    items = items_of(name, study)
    refuse_placeholders(name, study, items.items)
    files = {ITEMS: jsonl_text(items_to_records(items.items)), EXCLUDED: csv_text(items.excluded)}
    if study.human_labels is not None and study.human_labels.path is not None:
        files[LABELS] = _labels_text(study, items)
    return files


def _closed(run: Run) -> dict[str, str | None]:
    """What closing the labels has frozen, which freezing the same study again must not open."""
    if run.study.human_review.labelling is None:
        return {}
    return {key: run.frozen[key] for key in ("human_labels_sha256", "expert_ranks_sha256") if key in run.frozen}


def _labels_text(study: Study, items: ItemSet) -> str:
    return csv_text(labels_for_file(read_labels(study, items).labels, study))


def _frozen_run(name: str) -> Run:
    """The run as its ``protocol.yaml`` says, if nobody has changed that file."""
    folder = outputs_folder() / name
    path = folder / PROTOCOL
    where = shown(path)
    try:
        document = yaml.safe_load(read_text(path))
        values, frozen = document["study"], dict(document["frozen"])
        if is_match_study(values):
            told = f"run {name} holds matches that were judged elsewhere; only stages 06 and 09 can use them"
            raise RunError(f"{where}: {told}")
        wanted = frozen["protocol_sha256"]
    except (yaml.YAMLError, KeyError, TypeError, ValueError):
        raise _edited(where, folder) from None
    try:
        study = parse_study(values, where=where)
    except ProtocolError as error:
        raise DriftError(f"{_edited(where, folder)}\n{error}") from None
    if study.sha256 != wanted:
        raise _edited(where, folder)
    return Run(name, study, folder, frozen)


def _edited(where: str, folder: Path) -> DriftError:
    return DriftError(
        f"{where} was changed after freezing (its SHA-256 does not fit the protocol in it), or was frozen by another "
        f"version of judgelab; put it back, or remove the folder {shown(folder)} if its results may go"
    )


def _same_protocol(run: Run, study: Study) -> None:
    """Refuse another protocol than the frozen one, naming each key that differs."""
    if run.study.sha256 == study.sha256:
        return
    differences = list(_differences(_comparable(run.study), _comparable(study)))
    told = [f"{key}: frozen {_value(old)}, given {_value(new)}" for key, old, new in differences[:SHOWN_KEYS]]
    if len(differences) > SHOWN_KEYS:
        told.append(f"and {len(differences) - SHOWN_KEYS} more")
    count = f"{len(differences)} key{'s differ' if len(differences) != 1 else ' differs'}"
    raise DriftError(
        f"{shown(run.folder)} was frozen with another protocol; {count}: {'; '.join(told)}; {_way_out(run)}"
    )


def _comparable(study: Study) -> dict[str, Any]:
    """The protocol as nested mappings; lists of named things by name, with their order beside them."""
    values: dict[str, Any] = study.model_dump(mode="json")
    values[f"systems{ORDER}"] = list(values["systems"])
    masks = values["blindness"]["mask"]
    values["blindness"] |= {"mask": {json.dumps(word): new for word, new in masks.items()}, f"mask{ORDER}": list(masks)}
    for holder, key in ((values, "judges"), (values["direct_scale"], "criteria")):
        named = {entry["name"]: entry for entry in holder[key]}
        holder[key], holder[f"{key}{ORDER}"] = named, list(named)
    return values


def _differences(old: Any, new: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Dotted key, old value and new value wherever two nested mappings differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            dotted = f"{key}.{name}" if key else name
            before, after = old.get(name, ABSENT), new.get(name, ABSENT)
            # an added or removed judge is told once, as itself and not also as another order
            if not (name.endswith(ORDER) and sorted(before) != sorted(after)):
                yield from _differences(before, after, dotted)
    elif old != new:
        yield key, old, new


def _value(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _same_data(run: Run, frozen: Mapping[str, str | None], files: Mapping[str, str]) -> None:
    """Refuse other items or labels than the frozen ones."""
    if run.frozen.get("items_sha256") != frozen["items_sha256"]:
        raise DriftError(f"{shown(run.folder)} was frozen with other items; {_items_told(run, files)}; {_way_out(run)}")
    if run.frozen.get("human_labels_sha256") != frozen["human_labels_sha256"]:
        raise DriftError(
            f"{shown(run.folder)} was frozen with other human labels; {_labels_told(run, files)}; {_way_out(run)}"
        )


def _items_told(run: Run, files: Mapping[str, str]) -> str:
    path = run.path(ITEMS)
    old = {} if not path.is_file() else _lines_by_id([line for _, line in read_lines(path)])
    new = _lines_by_id(files[ITEMS].rstrip("\n").split("\n"))
    return _told(old, new, "items")


def _lines_by_id(lines: Sequence[str]) -> dict[str, str]:
    return {str(json.loads(line)["item_id"]): line for line in lines}


def _labels_told(run: Run, files: Mapping[str, str]) -> str:
    path = run.path(LABELS)
    old = [] if not path.is_file() else [row for _, row in read_csv(path).rows]
    new = list(csv.DictReader(io.StringIO(files.get(LABELS, ""))))
    return _told(_rows_by_item(old), _rows_by_item(new), "items with labels")


def _rows_by_item(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    by_item: dict[str, str] = {}
    for row in rows:
        by_item[row["item_id"]] = by_item.get(row["item_id"], "") + json.dumps(row)
    return by_item


def _told(old: Mapping[str, str], new: Mapping[str, str], what: str) -> str:
    """How many of how many differ, in which way, and the first of them."""
    changed = [name for name in old if name in new and old[name] != new[name]]
    added, gone = [name for name in new if name not in old], [name for name in old if name not in new]
    names = [*changed, *added, *gone]
    more = f" and {len(names) - SHOWN_IDS} more" if len(names) > SHOWN_IDS else ""
    return (
        f"{len(names)} of {len({*old, *new})} {what} differ ({len(changed)} changed, {len(added)} added, "
        f"{len(gone)} gone): {', '.join(names[:SHOWN_IDS])}{more}"
    )


def _way_out(run: Run) -> str:
    return f"use another run name, or remove the folder {shown(run.folder)} if its results may go"


def _params_path(run: str) -> Path:
    return project_root() / "params" / f"{run}.yaml"


def _document(name: str, study: Study, frozen: Mapping[str, str | None]) -> str:
    return _yaml({"run": name, "study": study.model_dump(mode="json"), "frozen": dict(frozen)})


def _yaml(document: Mapping[str, Any]) -> str:
    return str(yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True, width=110))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _write_if_new(text: str, path: Path) -> None:
    """Leave a file that already says the same untouched, its time of change too."""
    if not path.is_file() or path.read_bytes() != text.encode("utf-8"):
        write_text(text, path)
