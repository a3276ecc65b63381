"""Sentences on the answers that are ranked: how many there are of how many, and what is odd about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pandas as pd

from judgelab.measure.comparability import named
from judgelab.report.leaderboard import text_of
from judgelab.report.sentences import Sentences
from judgelab.report.words import listed, number_text, plural

__all__ = ["candidate_sentences"]

ORIGINS = ("given", "generated", "degraded")
CUT = "length"  # what a provider gives as finish_reason where the limit of tokens ended an answer


def candidate_sentences(candidates: pd.DataFrame, *, left_out: pd.DataFrame) -> Sentences:
    """How many answers were given and made, which are missing, cut off or identical, and how long they are.

    Parameters
    ----------
    candidates
        One row an item and system: item_id, category, system, origin (``given``, ``generated``, ``degraded``), words,
        reason (why there is no answer), model, finish_reason, tokens_out, edits, answer (missing: none).
    left_out
        Items of the file that could not be used: line, item_id, reason, detail. May be without rows.

    Returns
    -------
    Sentences
        Answers of those wanted, by origin; missing ones by reason and system; those cut off at the limit of tokens;
        identical answers of an item; median lengths; items left out by reason.
    """
    if candidates.empty:
        return Sentences(["There are no candidates (n = 0 answers): too little data.", *_left_out(left_out)])
    return Sentences(
        [
            _counts(candidates),
            *_missing(candidates),
            *_cut_off(candidates),
            _identical(candidates),
            *_lengths(candidates),
            *_left_out(left_out),
        ]
    )


def _counts(candidates: pd.DataFrame) -> str:
    """Answers of those wanted."""
    there, wanted = int(candidates["answer"].notna().sum()), len(candidates)
    size = f"{plural(candidates['item_id'].nunique(), 'item')}, {plural(candidates['system'].nunique(), 'system')}"
    told = []
    for origin in [*ORIGINS, *sorted(set(candidates["origin"].astype(str)) - set(ORIGINS))]:
        own = candidates[candidates["origin"] == origin]
        if len(own):
            told.append(f"{int(own['answer'].notna().sum())} of {len(own)} {origin}")
    return f"Candidates: {there} of {plural(wanted, 'answer')} wanted are there ({size}): {listed(told)}."


def _missing(candidates: pd.DataFrame) -> list[str]:
    """Missing answers by reason, each with the systems."""
    lost = candidates[candidates["answer"].isna()]
    if lost.empty:
        return []
    told = []
    for reason, own in lost.groupby(lost["reason"].map(_reason), sort=False):
        told.append(f"{len(own)} {reason} ({_by_system(own)})")
    return [f"Missing answers, {len(lost)} of {len(candidates)}: {'; '.join(told)}."]


def _reason(reason: object) -> str:
    """A reason as people say it."""
    return text_of(reason).replace("_", " ") or "no reason given"


def _by_system(own: pd.DataFrame) -> str:
    """``a 3, b 1``: rows of each system, most first."""
    counts = own["system"].astype(str).value_counts(sort=False).sort_values(ascending=False, kind="stable")
    return named([f"{name} {count}" for name, count in counts.items()])


def _cut_off(candidates: pd.DataFrame) -> list[str]:
    """Generated answers that ended at the limit of tokens."""
    made = candidates[(candidates["origin"] == "generated") & candidates["answer"].notna()]
    if made.empty:
        return []
    why = made["finish_reason"].map(text_of)
    unknown = int((why == "").sum())
    more = f"; of {unknown} it is not known how they ended" if unknown else ""
    cut = made[why == CUT]
    rate = f"{len(cut)}/{len(made)} = {number_text(len(cut) / len(made))}"
    if cut.empty:
        return [f"Cut off at the limit of tokens: {rate} of the generated answers{more}."]
    return [
        f"Cut off at the limit of tokens: {rate} of the generated answers{more} ({_by_system(cut)}); a judge may hold "
        "that against them."
    ]


def _identical(candidates: pd.DataFrame) -> str:
    """Answers of an item that are the same text, apart from space around it."""
    there = candidates[candidates["answer"].notna()]
    groups: dict[tuple[str, str], list[str]] = {}
    for item, system, answer in there[["item_id", "system", "answer"]].astype(str).itertuples(index=False):
        groups.setdefault((item, answer.strip()), []).append(system)
    same = {key: systems for key, systems in groups.items() if len(systems) > 1}
    total = plural(there["item_id"].nunique(), "item")
    if not same:
        return f"Identical answers within an item: on 0 of {total}."
    on = len({item for item, _ in same})
    who = named([f"{names} on {count}" for names, count in Counter(map(listed, same.values())).most_common()])
    return (
        f"Identical answers within an item: on {on} of {total}, {sum(map(len, same.values()))} answers ({who}); a "
        "judge can only tie them or follow their place."
    )


def _lengths(candidates: pd.DataFrame) -> Iterator[str]:
    """The systems with the longest and the shortest median answer, and empty answers."""
    words = pd.to_numeric(candidates["words"]).where(candidates["answer"].notna())
    known = words.groupby(candidates["system"].astype(str), sort=False).agg(["median", "count"]).dropna()
    if known.empty:
        return
    ranked = known.sort_values("median", kind="stable")
    told = [
        f"{name} with a median of {median:g} words (n = {plural(count, 'answer')})"
        for name, median, count in (list(ranked.itertuples(name=None))[place] for place in (-1, 0))
    ]
    if len(ranked) == 1 or ranked["median"].iloc[0] == ranked["median"].iloc[-1]:
        alike = "" if len(ranked) == 1 else f", as the {len(ranked) - 1} others"
        yield f"Length: {told[0]}{alike}."
    else:
        yield f"Length: longest is {told[0]}, shortest {told[1]}."
    empty = int((words == 0).sum())
    if empty:
        yield f"Empty answers: {empty} ({_by_system(candidates[words == 0])})."


def _left_out(left_out: pd.DataFrame) -> list[str]:
    """Items that could not be used."""
    if left_out.empty:
        return []
    told = []
    for reason, own in left_out.groupby(left_out["reason"].map(_reason), sort=False):
        where = [
            f"line {int(line)}" if pd.isna(item) or not str(item) else str(item)
            for line, item in zip(own["line"], own["item_id"], strict=True)
        ]
        told.append(f"{len(own)} {reason} ({named(where)})")
    return [f"Items left out: {len(left_out)}: {'; '.join(told)}."]
