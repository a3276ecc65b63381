"""Cases for people to read: agreements, disagreements, ties, reversals, extreme scores, unusable replies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from judgelab.study.protocol import TIE

__all__ = ["KINDS", "audit_sample"]

KINDS = ("agreement", "disagreement", "tie", "reversal", "extreme score difference", "unusable reply")
COLUMNS = ["kind", "judge", "item_id", "pass", "human", "judged", "detail", "task", "answer_x", "answer_y"]
_CASE = [*COLUMNS[:7], "system_x", "system_y"]
EXCERPT = 100  # characters


def audit_sample(
    verdicts: pd.DataFrame, normalized: pd.DataFrame, items_frame: pd.DataFrame, *, n: int = 2, seed: int
) -> pd.DataFrame:
    """Draw up to ``n`` cases of each kind and judge, with excerpts of what was judged.

    Parameters
    ----------
    verdicts
        One row a planned call; those without a usable verdict are the unusable replies.
    normalized
        One row per judge, item and pair. The pairwise original preference stands for the judge, or the direct
        one if no pair was judged.
    items_frame
        One row an item: ``item_id``, ``task``, and one column ``answer_<system>`` a system or a column ``answers``
        with a mapping of system to answer.
    n
        The most cases of each kind and judge, at least 1.
    seed
        The protocol's seed: equal seeds draw equal cases, whatever the order of the rows.

    Returns
    -------
    pandas.DataFrame
        ``kind, judge, item_id, pass, human, judged, detail, task, answer_x, answer_y``; kinds in the order of
        :data:`KINDS`. The texts are cut to 100 characters and are plain text, which pandas escapes when it shows the
        table; whoever shows them in another way must escape them.

    Raises
    ------
    ValueError
        If ``n`` is below 1.
    """
    if n < 1:
        raise ValueError(f"audit_sample: n is {n}, at least 1 is needed")
    found = [*_preferences(normalized), *_extremes(normalized, n), *_unusable(verdicts)]
    cases = pd.DataFrame(found, columns=_CASE, dtype=object)
    drawn = [
        _draw(group, n, np.random.default_rng([seed, KINDS.index(str(kind)), index]))
        for (kind, _), index, group in _groups(cases)
    ]
    if not drawn:
        return pd.DataFrame(columns=COLUMNS)
    sample = pd.concat(drawn, ignore_index=True)
    return _with_excerpts(sample, items_frame)


def _groups(cases: pd.DataFrame) -> Iterator[tuple[tuple[str, str], int, pd.DataFrame]]:
    """Cases by kind and judge, kinds in their order and judges by name."""
    judges = sorted(map(str, cases["judge"].unique()))
    for kind in KINDS:
        for index, judge in enumerate(judges):
            own = cases[(cases["kind"] == kind) & (cases["judge"] == judge)]
            if len(own):
                yield (kind, judge), index, own


def _draw(group: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    ordered = group.sort_values(["item_id", "pass", "system_x", "system_y"], kind="stable")
    if len(ordered) <= n:
        return ordered
    return ordered.iloc[np.sort(rng.choice(len(ordered), size=n, replace=False))]


def _case(row: pd.Series, kind: str, pass_: str, judged: object, detail: str) -> tuple[object, ...]:
    return (kind, row["judge"], row["item_id"], pass_, row["human"], judged, detail, row["system_x"], row["system_y"])


def _preferences(normalized: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    for _, row in normalized.iterrows():
        original, swapped = row["pair_original"], row["pair_swapped"]
        pass_, judged = ("original", original) if pd.notna(original) else ("direct", row["direct"])
        if pd.notna(judged) and pd.notna(row["human"]):
            same = judged == row["human"]
            yield _case(row, "agreement" if same else "disagreement", pass_, judged, "")
        if judged == TIE:
            yield _case(row, "tie", pass_, judged, "")
        winners = pd.notna(original) and pd.notna(swapped) and TIE not in (original, swapped)
        if winners and original != swapped:
            yield _case(row, "reversal", "both", original, f"{original} first, {swapped} after the swap")


def _extremes(normalized: pd.DataFrame, n: int) -> Iterator[tuple[object, ...]]:
    """The largest differences of the direct totals of each judge: the extremes themselves, not a draw of them."""
    gap = (normalized["total_x"] - normalized["total_y"]).abs()
    known = normalized.assign(gap=gap)[gap.notna() & (gap > 0)]
    ranked = known.sort_values(["gap", "item_id"], ascending=[False, True], kind="stable")
    for _, own in ranked.groupby("judge", sort=True):
        for _, row in own.head(n).iterrows():
            detail = f"{row['system_x']} {row['total_x']:.2f}, {row['system_y']} {row['total_y']:.2f}"
            yield _case(row, "extreme score difference", "direct", row["direct"], detail)


def _unusable(verdicts: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    for _, row in verdicts[verdicts["status"] != "verdict"].iterrows():
        reason = row["reason"] if pd.notna(row["reason"]) else row["status"]
        direct = row["strategy"] == "direct"
        systems = (row["system"], "") if direct else (row["system_x"], row["system_y"])
        of = f", answer of {row['system']}" if direct else ""
        where = (row["judge"], row["item_id"], str(row["pass"]), "", "")
        yield ("unusable reply", *where, f"{reason}{of}", *systems)


def _with_excerpts(sample: pd.DataFrame, items_frame: pd.DataFrame) -> pd.DataFrame:
    items = {str(item["item_id"]): item for item in items_frame.to_dict("records")}
    found = sample.copy()
    found["task"] = [_excerpt(items.get(str(item), {}).get("task")) for item in sample["item_id"]]
    for side in ("x", "y"):
        pairs = zip(sample["item_id"], sample[f"system_{side}"], strict=True)
        found[f"answer_{side}"] = [_excerpt(_answer(items.get(str(item), {}), str(system))) for item, system in pairs]
    for column in ("judge", "item_id", "human", "judged", "detail"):
        found[column] = [_excerpt(value) for value in found[column]]
    found.index = pd.RangeIndex(1, len(found) + 1)
    return found[COLUMNS]


def _answer(item: dict[Any, Any], system: str) -> object:
    if isinstance(item.get("answers"), dict):
        return item["answers"].get(system)
    names = {str(name).lower(): name for name in item}
    return item.get(names.get(f"answer_{system}".lower()))


def _excerpt(text: object) -> str:
    """The beginning of a text on one line."""
    if text is None or (isinstance(text, float) and np.isnan(text)):
        return ""
    line = " ".join(str(text).split())
    return line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…"
