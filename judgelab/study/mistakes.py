"""Mistakes in a parameter file, said so that they can be mended: which key, which value, what is allowed."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic import BaseModel, ValidationError

from judgelab.study.secrets import looks_like_a_key

__all__ = ["explained"]


def explained(error: ValidationError, where: str, model: type[BaseModel]) -> str:
    """Each key that is wrong, its value and what is allowed, a line each.

    Parameters
    ----------
    error
        What pydantic says.
    where
        The file, for people.
    model
        What was validated: its keys are those that are allowed.
    """
    problems = error.errors()
    places = [problem["loc"] for problem in problems]
    # a list whose entry is wrong is reported as too short as well: the entry says it better
    problems = [
        problem
        for problem in problems
        if not any(
            len(place) > len(problem["loc"]) and place[: len(problem["loc"])] == problem["loc"] for place in places
        )
    ]
    lines = [f"{where}: {len(problems)} problem{'s' * (len(problems) != 1)} in the protocol"]
    for problem in problems[:20]:
        key = ".".join(str(part) for part in problem["loc"]) or "study"
        lines.append(f"  {key}: {_reason(problem, model)}")
    if len(problems) > 20:
        lines.append(f"  and {len(problems) - 20} more")
    return "\n".join(lines)


def _reason(problem: Any, model: type[BaseModel]) -> str:
    kind, given = problem["type"], problem.get("input")
    if kind == "extra_forbidden":
        known = _known_keys(problem["loc"], model)
        near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        allowed = f"; allowed are {', '.join(known)}" if known else ""
        return f"unknown key{hint}{allowed}"
    if kind == "missing":
        return "is missing"
    message = str(problem["msg"]).removeprefix("Value error, ")
    if kind == "value_error":
        return message
    if isinstance(given, dict | list | tuple) or (isinstance(given, str) and looks_like_a_key(given)):
        return message  # a group may hold a key that was written in the wrong place, and messages end up in logs
    text = repr(given)
    return f"{text if len(text) <= 80 else text[:77] + '...'} is not allowed: {message}"


def _known_keys(location: tuple[Any, ...], model: Any) -> list[str]:
    """The keys that stand where an unknown one was given."""
    for part in location[:-1]:
        field = getattr(model, "model_fields", {}).get(part)
        if field is None:
            return []
        annotation = field.annotation
        nested = [a for a in getattr(annotation, "__args__", ()) if isinstance(a, type) and issubclass(a, BaseModel)]
        model = nested[0] if nested else annotation
    return list(getattr(model, "model_fields", {}))
