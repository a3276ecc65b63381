"""The human labels of a study before its first run: who labelled what, and what has no reference yet."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from judgelab.errors import DataError
from judgelab.judging.findings import Finding, counted, findings_of, some
from judgelab.project import resolve, shown
from judgelab.study.human_review import Labelling
from judgelab.study.humans import LabelSet, read_labels, reference, reviewers
from judgelab.study.items import ItemSet, comparisons, pairs
from judgelab.study.labels import read_label_file
from judgelab.study.protocol import Study
from judgelab.study.template import is_placeholder
from judgelab.study.training_key import read_training_key

__all__ = ["label_findings"]

MEND = "correct these rows; columns and values are in README, Bring your own study"


def label_findings(study: Study, items: ItemSet | None) -> Generator[Finding, None, LabelSet | None]:
    """What the file of human labels lacks; the labels, if they can be used.

    Parameters
    ----------
    study
        The protocol.
    items
        The items of the study; None where they cannot be used, and labels cannot be held against them.
    """
    source = study.human_labels
    if source is None:
        yield Finding(
            "advice",
            "human labels: the study has none, so nothing will say how far a judge agrees with people",
            "name a file under human_labels before the first run, if there is to be one",
        )
        return None
    if source.path is None:
        yield from _made_in_the_study(study, items)
        return None
    path = resolve(source.path)
    try:
        file = read_label_file(path, study)
    except DataError as error:
        yield from findings_of(error, path=path, absent="write it as CSV; see README, Bring your own study", mend=MEND)
        return None
    left = [str(line) for line in file.labels.loc[file.labels["reviewer_id"].map(is_placeholder), "line"]]
    if left:
        yield Finding(
            "missing",
            f"{shown(path)}: placeholders in {len(left)} of {len(file.labels)} labels; first line {left[0]}",
            "write your reviewers' labels in their place",
        )
        return None
    if items is None:
        yield Finding("ok", f"{shown(path)}: {len(file.labels)} labels, not yet held against the items")
        return None
    try:
        found = read_labels(study, items)
    except DataError as error:
        yield from findings_of(error, mend=MEND)
        return None
    names = reviewers(found.labels)
    told = f"{shown(path)}: {len(found.labels)} labels of {counted(len(names), 'reviewer')} ({some(names)})"
    if source.provenance == "human":
        yield Finding("ok", f"{told}, given by people")
    else:
        mend = "take labels of people before anything is decided with them; every table says where they come from"
        yield Finding("advice", f"{told}, {source.provenance}", mend)
    yield from _coverage(study, items, found)
    for note in found.notes:
        if not note.endswith("have no label"):  # coverage says it better
            yield Finding("advice", note, "nothing, if that is as it should be")
    return found


def _made_in_the_study(study: Study, items: ItemSet | None) -> Iterator[Finding]:
    """Labels that are made after freezing: what reviewers will train on, and how much there is to label."""
    labelling = study.human_review.labelling or Labelling()
    if items is None:
        return
    development = [item.item_id for item in items.items if item.split == "development"]
    if len(development) < labelling.training:
        yield Finding(
            "advice",
            f"human labels: reviewers train on {len(development)} of the {labelling.training} items that "
            "human_review.labelling.training wants, because the development split has no more",
            "set split.development_share, or lower training, before the first run",
        )
    if labelling.training_key is not None:
        try:
            key = read_training_key(study, items.items)
        except DataError as error:
            absent = "write it as CSV: item_id, preference, explanation"
            yield from findings_of(
                error, path=resolve(labelling.training_key), absent=absent, mend="correct these rows"
            )
        else:
            yield Finding(
                "ok", f"{shown(resolve(labelling.training_key))}: what is expected of {len(key)} training tasks"
            )
    number = len(items.items) - len(development)
    what = "rankings" if labelling.mode == "ranking" else "labels"
    tasks = number if labelling.mode == "ranking" else number * len(pairs(study.system_names))
    yield Finding(
        "ok",
        f"human labels: made in the study, after it is frozen: {tasks} {what} of each reviewer, and "
        f"{labelling.repeats_share:.0%} of them again",
    )


def _coverage(study: Study, items: ItemSet, found: LabelSet) -> Iterator[Finding]:
    """How many pairs have enough reviewers, and a reference."""
    rule = study.human_labels.reference_rule if study.human_labels else ()
    table = reference(found.labels, comparisons(items.items, study), rule)
    wanted, total = study.human_review.reviewers_per_item, len(table)
    what = "items" if len(study.systems) == 2 else "pairs of answers"
    few = table.loc[table["n_initial"] < wanted, "item_id"]
    if len(few):
        yield Finding(
            "advice",
            f"human labels: {len(few)} of {total} {what} have fewer than {counted(wanted, 'reviewer')} "
            f"(human_review.reviewers_per_item): {some(few)}",
            "let them be labelled, or lower human_review.reviewers_per_item before the first run",
        )
    else:
        yield Finding("ok", f"human labels: each of {total} {what} has {counted(wanted, 'reviewer')} or more")
    having = int(table["human"].notna().sum())
    open_ = table.loc[table["rule"] == "unresolved", "item_id"]
    if len(open_):
        yield Finding(
            "advice",
            f"human labels: on {len(open_)} of {total} {what} the reviewers differ and nothing decides: {some(open_)}",
            "adjudicate: one more label each, with is_adjudicated true",
        )
    if not having:
        mend = "let the items be labelled; a label's item_id is that of its item"
        yield Finding("missing", f"human labels: none of {total} {what} has a reference", mend)
    elif having < total:
        mend = "label or adjudicate the others: what has no reference is not in the agreement"
        yield Finding("advice", f"human labels: {having} of {total} {what} have a reference", mend)
    else:
        yield Finding("ok", f"human labels: each of {total} {what} has a reference")
