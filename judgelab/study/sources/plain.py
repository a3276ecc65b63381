"""The plain format: judgments of any tool in a table of one verdict a row, as CSV or as JSON lines.

=====================  ================================================================================================
column                 what it holds
=====================  ================================================================================================
item_id                the task that was judged; needed
system_x, system_y     the two systems; needed (model_a and model_b mean the same)
preference             the name of one of the two, or ``system_x``, ``system_y``, ``model_a``, ``model_b``; or TIE (tie,
                       draw); empty where the judge gave none. Needed, but in rows of scores (``winner`` means the same)
judge                  who judged; may be missing where one judge did
by                     ``judge`` (also where it is empty) or ``person``: a person's row is a human label
first                  the name of the system that was shown first; empty where it is not known (``shown_first``)
pass, repeat           ``original`` or ``swapped``; 0, 1, 2 ... of the same question asked again
reason                 why there is no preference
score_x, score_y       what the judge, or the person, gave each answer on its own
category               of the item
task                   the text of the task
reference_context      what the judge was given beside it
answer_x, answer_y     the two answers
=====================  ================================================================================================

With ``task``, ``answer_x`` and ``answer_y`` of all systems for every item it becomes a full study, without a study of
matches. Other columns are not read, and told.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

from judgelab.study.protocol import TIE
from judgelab.study.sources.foreign_entries import Entry, short
from judgelab.study.sources.full_study import item_id_problem
from judgelab.study.sources.match_imports import ITSELF, Gathered, gather, import_matches, word_count
from judgelab.study.sources.plain_study import full_study_of, why_no_full_study
from judgelab.study.sources.published import number

__all__ = ["import_plain"]

PATTERNS = ("*.csv", "*.jsonl", "*.json")
ALIASES = {"model_a": "system_x", "model_b": "system_y", "winner": "preference", "shown_first": "first"}
COLUMNS = frozenset(
    {"item_id", "system_x", "system_y", "preference", "judge", "by", "first", "pass", "repeat", "reason", "category"}
    | {"score_x", "score_y", "task", "reference_context", "answer_x", "answer_y"}
)
TEXTS = ("task", "reference_context", "answer_x", "answer_y")
SIDES = {"system_x": 0, "model_a": 0, "system_y": 1, "model_b": 1}
TIES = ("tie", "draw")
SILENT = "no preference in the file"
SCORED = "scores without a preference, which no match is made of"


def import_plain(path: Path, run: str) -> tuple[Path, list[str]]:
    """Write ``outputs/<run>/source`` and, if it is missing, ``params/<run>.yaml``, of a table of verdicts.

    A full study where the file holds the task and the answers of all systems for every item, else a study of matches.

    Parameters
    ----------
    path
        A CSV file, a file of JSON lines, or a list of objects; or a folder of files ``*.csv`` (without any:
        ``*.jsonl``, ``*.json``).
    run
        The name of the run to make.

    Returns
    -------
    tuple
        The path of the parameters, and notes: what was read, what was left out, and what was written.

    Raises
    ------
    DataError
        As :func:`judgelab.study.sources.match_imports.gather`; and of a full study, if two rows have other texts of
        one item, or a score is no whole number.
    """
    unread: Counter[str] = Counter()
    gathered = gather(path, PATTERNS, lambda entry: _row(entry, unread), unit=("verdict", "verdicts"))
    notes = [f"columns not read: {', '.join(unread)}"] if unread else []
    why = why_no_full_study(gathered.rows)
    if not why:
        return full_study_of(gathered, path, run, notes)
    matches = [row for row in gathered.rows if not row["only_scores"]]
    left_out = gathered.left_out + Counter({SCORED: len(gathered.rows) - len(matches)})
    kept = Gathered(matches, +left_out, gathered.files)
    return import_matches(kept, run, kind="plain", title="Judgments made elsewhere", missing=why, told=notes)


def _row(entry: Entry, unread: Counter[str]) -> list[dict[str, Any]] | str:
    """One verdict, checked."""
    given = _named(entry)
    unread.update({str(key) for key in given} - COLUMNS)
    plain = Entry(given, entry.path, entry.number)
    item_id = plain.text("item_id", needed=True)
    problem = item_id_problem(item_id)
    if problem:
        raise ValueError(f"item_id {problem}")
    pair = plain.systems("system_x", "system_y")
    row: dict[str, Any] = {"item_id": item_id, "system_x": pair[0], "system_y": pair[1], "entry": entry}
    row |= {key: plain.text(key) for key in ("judge", "category", "pass", "reason")}
    if row["pass"] not in ("", "original", "swapped"):
        raise ValueError(f"pass is {row['pass']!r:.60}; allowed are original, swapped and nothing")
    row["by"] = _by(given.get("by"))
    row["first"] = _first(given.get("first"), pair)
    row["given_repeat"] = _repeat(given.get("repeat"))
    row["scores"] = tuple(_score(given.get(key), key) for key in ("score_x", "score_y"))
    scored = any(score is not None for score in row["scores"])
    if "preference" not in given and not scored:
        raise ValueError("no preference (empty where there is none)")
    row["preference"] = _preference(given.get("preference"), pair)
    # a person's scores stand beside a label; a judge's are verdicts of their own
    row["only_scores"] = scored and row["preference"] is None and not row["reason"]
    if row["preference"] is None and not row["reason"]:
        row["reason"] = SILENT
    elif row["preference"] is not None:
        row["reason"] = row["reason"] if row["preference"] == TIE else ""
    for key in TEXTS:
        value = given.get(key)
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{key} is {short(value)}; allowed is text")
        row[key] = value or ""
    row["words_x"], row["words_y"] = (word_count(row[key]) if row[key] else None for key in ("answer_x", "answer_y"))
    return ITSELF if pair[0] == pair[1] else [row]


def _named(entry: Entry) -> dict[str, Any]:
    """The values by the names of our columns."""
    given: dict[str, Any] = {}
    for key, value in entry.values.items():
        name = ALIASES.get(key, key)
        if name in given:
            raise ValueError(f"{name} stands there under two names; one of them is needed")
        given[name] = value
    return given


def _by(value: Any) -> str:
    if value in (None, "", "judge"):
        return "judge"
    if value != "person":
        raise ValueError(f"by is {short(value)}; allowed are judge and person")
    return "person"


def _first(value: Any, pair: tuple[str, str]) -> str | None:
    if value in (None, ""):
        return None
    if value in pair:
        return str(value)
    if isinstance(value, str) and value in SIDES:
        return pair[SIDES[value]]
    raise ValueError(f"first is {short(value)}; allowed are {pair[0]}, {pair[1]} and nothing")


def _preference(value: Any, pair: tuple[str, str]) -> str | None:
    if value in (None, ""):
        return None
    if value in pair:
        return str(value)
    if isinstance(value, str) and value.casefold() in TIES:
        return TIE
    if isinstance(value, str) and value in SIDES:
        return pair[SIDES[value]]
    raise ValueError(f"preference is {short(value)}; allowed are {pair[0]}, {pair[1]}, {TIE} and nothing")


def _repeat(value: Any) -> int:
    text = "0" if value in (None, "") else str(value)
    if isinstance(value, bool) or not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise ValueError(f"repeat is {short(value)}; allowed are whole numbers from 0")
    return int(text)


def _score(value: Any, key: str) -> float | None:
    if value is None or value == "":
        return None
    score = value
    with contextlib.suppress(ValueError):
        score = float(value) if isinstance(value, str) else value
    if not number(score):
        raise ValueError(f"{key} is {short(value)}; allowed are numbers")
    return float(score)
