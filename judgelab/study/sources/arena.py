"""Arena battles: people, or judges, choose between the answers of two systems that are shown side by side.

Layout of the published battles (Chiang et al. 2024, "Chatbot Arena: An Open Platform for Evaluating LLMs by Human
Preference", ICML; written by ``clean_battle_data.py`` of the repository lm-sys/FastChat): one object a line, or a list
of objects, with model_a, model_b, winner, and where known judge or judge_hash, question_id, turn, language, anony,
conversation_a and conversation_b (lists of ``{role, content}``). model_a stood left, which counts as first.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judgelab.study.protocol import TIE
from judgelab.study.sources.foreign_entries import Entry
from judgelab.study.sources.match_imports import ITSELF, Gathered, gather, import_matches, word_count

__all__ = ["import_arena"]

PATTERNS = ("*.jsonl", "*.json")
# a winner in small letters without blanks -> what is preferred, the reason of a tie
WINNERS = {
    "model_a": ("model_a", ""),
    "model_b": ("model_b", ""),
    "tie": (TIE, ""),
    **dict.fromkeys(("tie(bothbad)", "bothbad", "both_bad"), (TIE, "bothbad")),
    "tie(inconsistent)": (TIE, "inconsistent"),
}
CROWD = "crowd"
MOST_JUDGES = 50  # stage 09 compares every judge's ranking with every other's
ALLOWED = "model_a, model_b, tie, tie (bothbad), tie (inconsistent)"


def import_arena(path: Path, run: str) -> tuple[Path, list[str]]:
    """Write ``outputs/<run>/source/matches.csv`` and, if it is missing, ``params/<run>.yaml``, of arena battles.

    One match a battle: judge (or judge_hash), item_id (question_id, else the file and line), first (model_a), category
    (language), and the words of the assistant's texts up to the turn that was judged. Where one file judges several
    turns of a question, these are items of their own, ``<question_id>-turn2``. ``tie (bothbad)`` is a tie with the
    reason ``bothbad``. A judge with ``tie (inconsistent)`` was asked in both orders, of which the file holds one
    outcome: its ``first`` is missing. More than 50 judges are one judge, ``crowd``.

    Parameters
    ----------
    path
        A file, or a folder with files ``*.jsonl`` (without any: ``*.json``).
    run
        The name of the run to make.

    Returns
    -------
    tuple
        The path of the parameters, and notes: what was read, what was left out, and what was written.

    Raises
    ------
    DataError
        As :func:`judgelab.study.sources.match_imports.gather`.
    """
    gathered = gather(path, PATTERNS, _matches)
    notes = [*_split_turns(gathered), *_unknown_orders(gathered), *_crowd(gathered)]
    open_names = sum(row["anony"] is False for row in gathered.rows)
    if open_names:
        notes.append(f"not blind: in {open_names} of {len(gathered.rows)} battles the systems' names were shown")
    lengths = sum(row["words_x"] is not None and row["words_y"] is not None for row in gathered.rows)
    notes.append(f"words of both answers: known for {lengths} of {len(gathered.rows)} matches")
    return import_matches(
        gathered,
        run,
        kind="arena",
        title="Arena battles",
        missing="a rubric, and answers of the same systems to every item, are not in these files",
        told=notes,
    )


def _matches(entry: Entry) -> list[dict[str, Any]] | str:
    x, y = entry.systems("model_a", "model_b")
    winner = entry.values.get("winner")
    found = WINNERS.get("".join(winner.split()).casefold()) if isinstance(winner, str) else None
    if found is None:
        raise ValueError(f"winner is {winner!r:.60}; allowed are {ALLOWED}")
    turn = entry.values.get("turn")
    if turn is not None and (type(turn) is not int or turn < 0):
        raise ValueError(f"turn is {turn!r:.60}; allowed are whole numbers from 0")
    judge, _ = entry.judge("judge", "judge_hash")
    item_id = entry.text("question_id")
    category = entry.text("language")
    if x == y:
        return ITSELF
    return [
        {
            "judge": judge,
            "item_id": item_id or f"{entry.path.stem}-{entry.number}",
            "category": category,
            "system_x": x,
            "system_y": y,
            "first": x,
            "preference": {"model_a": x, "model_b": y}.get(found[0], TIE),
            "reason": found[1],
            "words_x": _words(entry.values.get("conversation_a"), turn),
            "words_y": _words(entry.values.get("conversation_b"), turn),
            "turn": turn if item_id else None,
            "anony": entry.values.get("anony"),
        }
    ]


def _words(conversation: Any, turn: int | None) -> int | None:
    """Words of the assistant's texts, of the first ``turn`` of them where that is known; None if any is no text."""
    if not isinstance(conversation, list) or not all(isinstance(message, dict) for message in conversation):
        return None
    answers = [message.get("content") for message in conversation if message.get("role") == "assistant"]
    counts = [word_count(answer) for answer in (answers[:turn] if turn else answers)]
    return None if not counts or None in counts else sum(count or 0 for count in counts)


def _split_turns(gathered: Gathered) -> list[str]:
    """Give later turns an item of their own, where any question was judged at several turns."""
    turns: dict[str, set[int]] = {}
    for row in gathered.rows:
        if row["turn"] is not None:
            turns.setdefault(row["item_id"], set()).add(row["turn"])
    several = sum(len(found) > 1 for found in turns.values())
    if not several:
        return []
    for row in gathered.rows:
        if (row["turn"] or 1) > 1:
            row["item_id"] += f"-turn{row['turn']}"
    return [f"{several} of {len(turns)} questions were judged at several turns: later turns are items of their own"]


def _unknown_orders(gathered: Gathered) -> list[str]:
    """Take the first place from judges whose outcome is one of both orders."""
    merged = {row["judge"] for row in gathered.rows if row["reason"] == "inconsistent"}
    rows = [row for row in gathered.rows if row["judge"] in merged]
    for row in rows:
        row["first"] = None
    if not rows:
        return []
    named = ", ".join(sorted(name or "a judge without a name" for name in merged))
    return [f"one outcome for both orders, so that neither is known: {len(rows)} matches of {named}"]


def _crowd(gathered: Gathered) -> list[str]:
    """Make one judge of more than can be compared with each other."""
    judges = {row["judge"] for row in gathered.rows}
    if len(judges) <= MOST_JUDGES:
        return []
    for row in gathered.rows:
        row["judge"] = CROWD
    return [f"{len(judges)} judges are one judge, {CROWD}: more than {MOST_JUDGES} are not ranked one by one"]
