"""What is missing before a study can be run for the first time, in order. Nothing is sent, and nothing is written."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from judgelab.errors import DataError, JudgelabError, ProtocolError
from judgelab.judging.check_judges import judge_findings
from judgelab.judging.check_labels import label_findings
from judgelab.judging.check_matches import expert_findings, match_findings
from judgelab.judging.findings import Finding, counted, findings_of, some
from judgelab.judging.plan import plan_table
from judgelab.project import outputs_folder, resolve, shown
from judgelab.study.blindness import scan_answers
from judgelab.study.candidates import CANDIDATES, items_of, planned_items
from judgelab.study.freeze import PROTOCOL, open_run
from judgelab.study.humans import LabelSet, labels_for_file
from judgelab.study.items import ItemSet, items_to_records
from judgelab.study.lines import REASONS, UNCATEGORISED, Accepted, Excluded, read_entries
from judgelab.study.match_study import is_match_study, parse_match_study
from judgelab.study.protocol import Study, check_run_name, parse_study, read_params
from judgelab.study.tables import csv_text, jsonl_text
from judgelab.study.template import is_placeholder, placeholders

__all__ = ["Finding", "check_study"]

README = "see README, Bring your own study"


def check_study(params: Path) -> list[Finding]:
    """Look at a study and all of its files as a first run would, and say in order what is missing.

    The order is that in which they are mended: the parameter file, its placeholders, items, human labels, judges,
    experts' ranks, what an earlier run has frozen, and last how many calls are planned. A study of matches has
    its matches in the place of items, labels and judges.

    Parameters
    ----------
    params
        ``params/<name>.yaml``.

    Returns
    -------
    list of Finding
        The study can be run if none of them :attr:`~judgelab.judging.findings.Finding.blocks`. A mistake in any file
        is a finding; no error is raised for it.
    """
    found: list[Finding] = []
    try:
        for finding in _study_findings(params):
            found.append(finding)
        if not any(finding.blocks for finding in found):
            found += _planned(params)
    except JudgelabError as error:
        found.append(Finding("wrong", str(error), "correct it, then check again"))
    except (OSError, ValueError) as error:  # a name with a NUL, or of 5,000 characters
        why = error.strerror if isinstance(error, OSError) else error
        found.append(
            Finding("wrong", f"a path in the protocol is no file's name: {why}", "correct it, then check again")
        )
    return found


def _study_findings(params: Path) -> Iterator[Finding]:
    where = shown(params)
    try:
        document = read_params(params)
    except ProtocolError as error:
        absent = "write one: `judgelab new NAME`"
        yield from findings_of(error, path=params, absent=absent, mend="correct the file; params/demo.yaml is complete")
        return
    name, values = document.get("run", params.stem), document.get("study") or {}
    problems: list[Finding] = []
    try:
        check_run_name(name, where)
    except ProtocolError as error:
        problems += findings_of(error, mend="correct the key run")
    try:
        study = (parse_match_study if is_match_study(values) else parse_study)(values, where=where)
    except ProtocolError as error:
        problems += findings_of(error, mend="correct this key; params/demo.yaml is a complete example")
    if problems:
        yield from problems
        yield Finding("advice", f"{where}: the files that it names are checked once it is valid")
        return
    yield Finding("ok", f"{where}: a valid protocol of run {name}")
    left = placeholders(values)
    if left:
        yield Finding(
            "missing", f"{where}: {counted(len(left), 'placeholder')}: {some(left)}", "write what they stand for"
        )
    if isinstance(study, Study):
        yield from _judged(name, study)
    else:
        yield from match_findings(name, study)


def _judged(name: str, study: Study) -> Iterator[Finding]:
    """A study that judges items."""
    items = yield from _items(name, study)
    labels = yield from label_findings(study, items)
    evaluated = None if items is None else [item.item_id for item in items.items if item.split == "evaluation"]
    yield from judge_findings(study, evaluated)
    yield from expert_findings(study.ranking, set(study.system_names))
    yield from _frozen(name, study, items, labels)


def _items(name: str, study: Study) -> Generator[Finding, None, ItemSet | None]:
    """The file of items; the items that are judged, if they can be."""
    path = resolve(study.items.path)
    given = {system: entry for system, entry in study.systems.items() if not entry.made}
    try:
        accepted, excluded, n_lines = read_entries(path, study.model_copy(update={"systems": given}))
    except DataError as error:
        absent = f"write it, one JSON object a line; {README}"
        yield from findings_of(error, path=path, absent=absent, mend="correct or save the file anew")
        return None
    usable = yield from _lines(study, accepted, excluded, n_lines)
    if not usable:
        return None
    try:
        items = planned_items(name, study)
    except JudgelabError as error:
        yield from findings_of(error, mend="correct the file of items or the systems of the protocol")
        return None
    yield from _answers(name, study, given)
    yield from _enough(study, items)
    finds = scan_answers(items.items, study)
    if len(finds):
        first, ids = finds.iloc[0], finds["item_id"].nunique()
        yield Finding(
            "advice",
            f"blindness: {counted(len(finds), 'place')} in {ids} of {len(items.items)} items may tell who wrote an "
            f"answer: the first in {first['item_id']}, {first['system']}: {first['excerpt']!r}",
            "look at all of them in stage 01; mask words under blindness.mask, or rewrite the answers",
        )
    else:
        yield Finding("ok", "blindness: no answer names a system, a family or a known model")
    return items


def _lines(
    study: Study, accepted: list[Accepted], excluded: list[Excluded], n_lines: int
) -> Generator[Finding, None, bool]:
    """How many lines can be used, why others cannot, and what is a placeholder; whether there is nothing to mend."""
    where, source = shown(resolve(study.items.path)), study.items
    refused = source.on_invalid == "refuse" and bool(excluded)
    stops = refused or not accepted or len(excluded) / n_lines > source.max_excluded_share
    rule = "items.on_invalid is refuse" if refused else f"items.max_excluded_share is {source.max_excluded_share:.0%}"
    yield Finding(
        "wrong" if stops else "ok",
        f"{where}: {len(accepted)} of {n_lines} lines can be used" + (f"; {rule}" if stops else ""),
        "mend the lines below" if stops else "",
    )
    by_reason: dict[str, list[Excluded]] = defaultdict(list)
    for row in excluded:
        by_reason[row.reason].append(row)
    for reason, rows in by_reason.items():
        yield Finding(
            "wrong" if stops else "advice",
            f"{where}: {len(rows)} of {n_lines} lines: {REASONS[reason]}; first line {rows[0].line}: {rows[0].detail}",
            f"mend {'them' if len(rows) > 1 else 'it'}" + ("" if stops else ", or leave them out of the study as now"),
        )
    left = [
        entry.item_id
        for entry in accepted
        if any(map(is_placeholder, (entry.task, entry.reference_context, entry.category, *entry.answers.values())))
    ]
    if left:
        yield Finding(
            "missing",
            f"{where}: placeholders in {len(left)} of {len(accepted)} items: {some(left)}",
            "write your own items in their place; context and category may be left empty",
        )
    return not (stops or left)


def _answers(name: str, study: Study, given: Any) -> Iterator[Finding]:
    """Whose answers are there, and whose are written by stage 00."""
    if given:
        yield Finding("ok", f"answers: every usable item has one of {', '.join(given)}")
    made = [system for system in study.systems if system not in given]
    if not made:
        return
    try:
        items_of(name, study)
        yield Finding("ok", f"answers: stage 00 has made those of {', '.join(made)}")
    except JudgelabError as error:
        there = (outputs_folder() / name / CANDIDATES).exists()
        yield Finding(
            "advice",
            f"answers: stage 00 makes those of {', '.join(made)}" + (f" anew: {error}" if there else " first"),
            "the run begins with it; with --to 00 it stops after it, so that you can read them",
        )


def _enough(study: Study, items: ItemSet) -> Iterator[Finding]:
    """The number of items and their categories."""
    evaluated = [item for item in items.items if item.split == "evaluation"]
    least, set_aside = study.decision.minimum_items, len(items.items) - len(evaluated)
    told = f"items: {len(evaluated)} to be judged" + (f", {set_aside} set aside for development" if set_aside else "")
    if len(evaluated) < least:
        mend = "add items, or read the results with care: stage 10 will say that there is not enough data"
        yield Finding("advice", f"{told}; decision.minimum_items is {least}", mend)
    else:
        yield Finding("ok", f"{told}, at least decision.minimum_items ({least})")
    counts = Counter(item.category for item in items.items)
    named = [f"{category} {count}" for category, count in counts.most_common()]
    if set(counts) == {UNCATEGORISED}:
        mend = "give each item a category, if there are kinds of tasks that may differ"
        yield Finding("advice", "categories: none is named, so no result can be told by kind of task", mend)
    else:
        yield Finding("ok", f"categories: {some(named)}")


def _frozen(name: str, study: Study, items: ItemSet | None, labels: LabelSet | None) -> Iterator[Finding]:
    """An earlier run of this name: whether it can be carried on."""
    folder = outputs_folder() / name
    if not (folder / PROTOCOL).is_file():
        return
    way_out = f"use another run name, or remove the folder {shown(folder)} if its results may go"
    try:
        run = open_run(name, study)
    except JudgelabError as error:
        yield Finding("wrong", str(error).removesuffix(f"; {way_out}"), way_out)
        return
    given = {
        "items": None if items is None else jsonl_text(items_to_records(items.items)),
        "human_labels": None if labels is None else csv_text(labels_for_file(labels.labels, study)),
    }
    changed = [
        key.replace("_", " ")
        for key, text in given.items()
        if text is not None and hashlib.sha256(text.encode()).hexdigest() != run.frozen.get(f"{key}_sha256")
    ]
    if changed:
        yield Finding("wrong", f"{shown(folder)} was frozen with other {' and other '.join(changed)}", way_out)
    else:
        yield Finding("ok", f"{shown(folder)} was frozen with this study: a run goes on where it stopped")


def _planned(params: Path) -> Iterator[Finding]:
    """What will be asked, of a study that can be run."""
    document = read_params(params)
    if is_match_study(document["study"]):
        return
    table = plan_table(parse_study(document["study"]))
    asked = table.loc[table["latency_from"] != "", "calls"].sum()
    yield Finding(
        "ok",
        f"calls: {table['calls'].sum():,} are planned, {asked:,} of them to a model; `judgelab plan` tells tokens, "
        "cost and time",
    )
