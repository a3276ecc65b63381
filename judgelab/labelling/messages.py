"""What a form sends, before it is recorded, trusted in nothing; and a few sentences that it is answered with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from judgelab.errors import LabelError
from judgelab.labelling.records import brief, is_number

__all__ = [
    "LONGEST_SECONDS",
    "asked_again",
    "check_scores",
    "choice_of",
    "drafted",
    "first_lines",
    "seconds_of",
    "text_of",
    "whole_text",
]

LONGEST_SECONDS = 366 * 86_400
TEXTS = ("choice", "reason", "note")


def choice_of(message: Mapping[str, Any], allowed: Collection[str]) -> str:
    """The choice of a message.

    Raises
    ------
    LabelError
        If there is none, or it is not allowed here.
    """
    choice = message.get("choice")
    if choice in (None, ""):
        raise LabelError("Nothing is chosen yet.")
    if not isinstance(choice, str) or choice not in allowed:
        raise LabelError(f"choice is {brief(choice)}; allowed are {', '.join(allowed)}")
    return choice


def text_of(message: Mapping[str, Any], name: str) -> str:
    """A text of a message, as it was typed; empty where there is none.

    Raises
    ------
    LabelError
        If it is no text.
    """
    value = message.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise LabelError(f"{name} is {brief(value)}; a text is needed")
    return value


def seconds_of(message: Mapping[str, Any]) -> float:
    """The seconds that a decision took.

    Raises
    ------
    LabelError
        Unless it is a number from 0 to :data:`LONGEST_SECONDS`.
    """
    value = message.get("seconds")
    if not is_number(value) or not 0 <= value <= LONGEST_SECONDS:
        raise LabelError(f"seconds is {brief(value)}; a number from 0 to {LONGEST_SECONDS} is needed")
    return float(value)


def check_scores(scores: Any, sides: Mapping[str, str], criteria: Sequence[str]) -> None:
    """Refuse scores of which some are missing. Whether those that are there are allowed, the journal tells.

    Parameters
    ----------
    scores
        Scores by side and criterion.
    sides
        The letter that is shown, by side.
    criteria
        The criteria.

    Raises
    ------
    LabelError
        Saying which are missing, by the letters that are shown.
    """
    given = scores if isinstance(scores, Mapping) else {}
    missing = [
        f"{letter}, {name}"
        for side, letter in sides.items()
        for name in criteria
        if not isinstance(given.get(side), Mapping) or given[side].get(name) is None
    ]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        total = len(sides) * len(criteria)
        raise LabelError(f"{len(missing)} of {total} scores are missing: {'; '.join(missing[:5])}{more}")


def drafted(message: Mapping[str, Any], allowed: Collection[str]) -> dict[str, Any]:
    """What a refused message held, in the shape of a view's ``decision``, so that nobody types it again.

    A choice that is not allowed, and what has another type than it should, is left out.
    """
    texts = {name: whole_text(value) if isinstance(value := message.get(name), str) else "" for name in TEXTS}
    texts["choice"] = texts["choice"] if texts["choice"] in allowed else ""
    scores, ranks = message.get("scores"), message.get("ranks")
    kept = {
        str(side): {str(name): score for name, score in by_name.items() if is_number(score)}
        for side, by_name in (scores.items() if isinstance(scores, Mapping) else ())
        if isinstance(by_name, Mapping)
    }
    places = [rank if is_number(rank) else None for rank in ranks] if isinstance(ranks, list | tuple) else []
    return {**texts, "scores": kept, "ranks": places}


def whole_text(text: str) -> str:
    """A text that UTF-8 can hold: half a surrogate pair, which a model's answer may have, becomes U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def asked_again(reviewer: str, decided: int, total: int, last: str) -> str:
    """What a person is asked before going on under a name that has a journal; ``last`` is a day, or empty."""
    when = f", last on {last}" if last else ""
    return f"{reviewer} has {decided} of {total} decisions{when}: go on only if that is you."


def first_lines(problems: Sequence[str], most: int = 5) -> list[str]:
    """How many lines of a journal cannot be used, and the first of them; empty without any."""
    if not problems:
        return []
    more = [f"and {len(problems) - most} more"] if len(problems) > most else []
    lines = "lines" if len(problems) > 1 else "line"
    return [f"{len(problems)} {lines} of the journal cannot be used:", *problems[:most], *more]
