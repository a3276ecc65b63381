"""The protocol's ten checks before a result is interpreted, each with its evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import pandas as pd

from judgelab.report.picking import rows_of
from judgelab.report.words import listed, plural

__all__ = ["POINTS", "checklist"]

Status = Literal["pass", "attention", "fail", "not applicable"]
Finding = tuple[Status, str]
POINTS = (
    "Coverage", "Uniqueness", "Schema", "Identity mapping", "Swap integrity", "Blindness", "Human independence",
    "Missingness", "Reproducibility", "Manual audit",
)  # fmt: skip
KEY = ["judge", "strategy", "pass", "item_id", "system_x", "system_y", "system"]


def checklist(
    verdicts: pd.DataFrame,
    normalized: pd.DataFrame,
    unusable: pd.DataFrame,
    *,
    criteria: Sequence[str],
    scale: tuple[int, int],
    provenance: str,
    labels: pd.DataFrame | None = None,
    blindness: pd.DataFrame | None = None,
    recomputed: Mapping[str, bool] | None = None,
    audit: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Check the ten points on the data of a run.

    Parameters
    ----------
    verdicts
        One row a planned call (see ``judging.verdicts``); ``frame_sha256``, if there, is the hash of its prompt without
        the answers.
    normalized
        One row per judge, item and pair.
    unusable
        Rows of the one shape with the measure ``unusable_rate``.
    criteria, scale
        The rubric's criteria, and its lowest and highest score.
    provenance
        Of the human labels: human, simulated or none.
    labels
        One row a human label, with ``reviewer_id`` and ``is_adjudicated``; None if there are none.
    blindness
        What the blindness scan found, one row a place (``item_id, kind, term``); None if it did not run.
    recomputed
        Name of a table and whether computing it again from the stored data gave the same; None if not done.
    audit
        The sample for the manual audit (see ``report.audit``); None if none was drawn.

    Returns
    -------
    pandas.DataFrame
        Ten rows, in the protocol's order: ``point``, ``status`` (pass, attention, fail, not applicable), ``evidence``.
        What the data cannot show is "attention", never "pass".
    """
    findings = (
        _coverage(verdicts),
        _uniqueness(verdicts),
        _schema(verdicts, criteria, scale),
        _identity(verdicts, normalized),
        _swap(verdicts),
        _blindness(blindness),
        _independence(labels, provenance),
        _missingness(verdicts, unusable),
        _reproducibility(recomputed),
        _audit(audit),
    )
    rows = [(point, status, evidence) for point, (status, evidence) in zip(POINTS, findings, strict=True)]
    return pd.DataFrame(rows, columns=["point", "status", "evidence"], index=pd.RangeIndex(1, 11))


def _coverage(verdicts: pd.DataFrame) -> Finding:
    if verdicts.empty:
        return "fail", "0 calls were planned."
    missing = int((verdicts["status"] == "missing").sum())
    if missing:
        first = verdicts[verdicts["status"] == "missing"].iloc[0]
        return "fail", (
            f"{missing} of {plural(len(verdicts), 'planned call')} {_has(missing)} no record; first: {first['judge']}, "
            f"{first['pass']}, item {first['item_id']}."
        )
    passes = verdicts.groupby(["judge", "pass"]).ngroups
    return "pass", (
        f"Each of {plural(len(verdicts), 'planned call')} in {plural(passes, 'pass', 'passes')} of "
        f"{plural(verdicts['judge'].nunique(), 'judge')} has a record, usable or with the reason why not."
    )


def _uniqueness(verdicts: pd.DataFrame) -> Finding:
    key = [name for name in KEY if name in verdicts]
    twice = int(verdicts.duplicated(key).sum())
    if twice:
        return "fail", f"{twice} of {plural(len(verdicts), 'record')} repeat judge, strategy, pass, item and systems."
    return _tested(len(verdicts), "record", "{n}, no two of the same judge, strategy, pass, item and systems.")


def _schema(verdicts: pd.DataFrame, criteria: Sequence[str], scale: tuple[int, int]) -> Finding:
    accepted = rows_of(verdicts, status="verdict")
    pairwise, direct = rows_of(accepted, strategy="pairwise"), rows_of(accepted, strategy="direct")
    bad = int((~pairwise["verdict"].isin(["A", "B", "TIE"])).sum())
    low, high = scale
    columns = [f"score_{name}" for name in criteria if f"score_{name}" in direct]
    scores = direct[columns].apply(pd.to_numeric, errors="coerce") if columns else pd.DataFrame(index=direct.index)
    outside = int((~((scores >= low) & (scores <= high) & (scores % 1 == 0))).any(axis=1).sum())
    totals = pd.to_numeric(direct["total"], errors="coerce") if len(direct) else pd.Series(dtype=float)
    outside = max(outside, int((~totals.between(low, high)).sum()))
    if bad or outside:
        return "fail", (
            f"{bad} of {plural(len(pairwise), 'accepted label')} and {outside} of "
            f"{plural(len(direct), 'accepted score record')} are outside their domain."
        )
    return _tested(
        len(accepted), "accepted record", f"{{n}}: labels are A, B or TIE, scores whole numbers from {low} to {high}."
    )


def _identity(verdicts: pd.DataFrame, normalized: pd.DataFrame) -> Finding:
    """Map the letters back a second time, by another way than the package's own."""
    letters = rows_of(verdicts, strategy="pairwise", status="verdict")
    wrong = compared = 0
    for pass_ in ("original", "swapped"):
        own = rows_of(letters, pass_=pass_)
        system = own["first"].where(own["verdict"] == "A", own["second"]).where(own["verdict"] != "TIE", "TIE")
        mapped = own[["judge", "item_id", "system_x", "system_y"]].assign(again=system.astype(object))
        both = normalized.merge(mapped, on=["judge", "item_id", "system_x", "system_y"])
        compared += len(both)
        wrong += int((both["again"] != both[f"pair_{pass_}"]).sum())
    if wrong:
        letters_text = plural(compared, "letter")
        return "fail", f"{wrong} of {letters_text} {_was(wrong)} mapped to another system when mapped again."
    return _tested(
        compared, "letter", "{n} mapped back to systems a second time from the recorded order, with the same result."
    )


def _swap(verdicts: pd.DataFrame) -> Finding:
    pairwise = rows_of(verdicts, strategy="pairwise")
    key = ["judge", "item_id", "system_x", "system_y"]
    frames = {"frame_sha256": pairwise.get("frame_sha256")}  # hash of the prompt without the two answers
    shown = pairwise[[*key, "pass", "first", "second"]].assign(**frames)
    original, swapped = (rows_of(shown, pass_=name) for name in ("original", "swapped"))
    both = original.merge(swapped, on=key, suffixes=("_1", "_2"))
    if both.empty:
        return "not applicable", "0 pairs were planned in both orders."
    kept = int(((both["first_1"] != both["second_2"]) | (both["second_1"] != both["first_2"])).sum())
    if kept:
        return "fail", f"{kept} of {plural(len(both), 'pair')} {_was(kept)} not shown in exactly the reverse order."
    order = f"{plural(len(both), 'pair')} shown in exactly the reverse order"
    asked = both[both["frame_sha256_1"].notna() & both["frame_sha256_2"].notna()]
    if asked.empty:
        return "attention", f"{order}; no hash of a prompt is stored, so that 0 pairs of prompts could be compared."
    differing = int((asked["frame_sha256_1"] != asked["frame_sha256_2"]).sum())
    if differing:
        return "fail", f"{order}, but {differing} of {plural(len(asked), 'pair')} of prompts differ in more than that."
    return "pass", f"{order}; {plural(len(asked), 'pair')} of prompts are byte-identical but for the two answers."


def _blindness(found: pd.DataFrame | None) -> Finding:
    if found is None:
        return "attention", "The scan for names that give a system away was not run."
    if found.empty:
        return "pass", "The scan found 0 places that name a system, a family or a model."
    terms = listed(list(dict.fromkeys(str(term) for term in found["term"]))[:5])
    items = int(found["item_id"].nunique())
    places = plural(len(found), "place")
    return "attention", f"{places} in {plural(items, 'item')} may give a system away: {terms}. Read them."


def _independence(labels: pd.DataFrame | None, provenance: str) -> Finding:
    if provenance == "simulated":
        return "not applicable", "The labels are simulated: there was no reviewer who could have seen anything."
    if provenance == "answer_key":
        return "not applicable", "The reference is an answer key: there was no reviewer who could have seen anything."
    if labels is None or labels.empty:
        return "not applicable", "There are 0 human labels."
    initial = labels[~labels["is_adjudicated"].astype(bool)]
    return "attention", (
        f"{plural(len(initial), 'initial label')} by {plural(initial['reviewer_id'].nunique(), 'reviewer')} "
        f"{_is(len(initial))} kept apart from {plural(len(labels) - len(initial), 'adjudicated one')}. That reviewers "
        "saw neither each other's labels nor a judge's cannot be shown from data: who collected them must confirm it."
    )


def _missingness(verdicts: pd.DataFrame, unusable: pd.DataFrame) -> Finding:
    planned = set(verdicts[["judge", "strategy", "pass"]].itertuples(index=False, name=None))
    rows = rows_of(unusable, measure="unusable_rate")
    whole = rows_of(rows, slice_="all")
    absent = planned - set(whole[["judge", "strategy", "pass"]].itertuples(index=False, name=None))
    passes = plural(len(planned), "pass", "passes")
    if absent:
        return "fail", f"{len(absent)} of {passes} {_has(len(absent))} no unusable rate."
    counted, true = int(whole["numerator"].sum()), int((verdicts["status"] != "verdict").sum())
    if counted != true:
        return "fail", f"The tables count {plural(counted, 'unusable call')}, the records hold {true}."
    if not planned:
        return "not applicable", "0 calls were planned."
    sliced = int(rows["slice"].str.startswith("system=").sum())
    return ("pass" if sliced else "attention"), (
        f"{plural(true, 'unusable call')} of {len(verdicts)} {_is(true)} reported for {passes}, "
        f"with {plural(sliced, 'row')} by the answer's source."
    )


def _reproducibility(recomputed: Mapping[str, bool] | None) -> Finding:
    if not recomputed:
        return "attention", "No table was computed again from the stored data; `judgelab verify` does it."
    differ = [name for name, same in recomputed.items() if not same]
    if differ:
        return "fail", f"{len(differ)} of {plural(len(recomputed), 'table')} computed again differ: {listed(differ)}."
    again = plural(len(recomputed), "table")
    return "pass", f"{again} computed again from the stored data, equal: {listed(recomputed)}."


def _audit(audit: pd.DataFrame | None) -> Finding:
    if audit is None or audit.empty:
        return "attention", "0 cases were drawn for reading."
    kinds = listed(f"{count} {kind}" for kind, count in audit["kind"].value_counts(sort=False).items())
    return "attention", f"{plural(len(audit), 'case')} drawn for reading ({kinds}); a person must read them."


def _tested(count: int, what: str, sentence: str) -> Finding:
    """Passed, unless there was nothing to test."""
    if not count:
        return "not applicable", f"0 {what}s to test."
    return "pass", sentence.format(n=plural(count, what))


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
