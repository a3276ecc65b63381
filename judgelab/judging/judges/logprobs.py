"""Log-probabilities: of all tokens of an answer, those that decide are kept."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["deciding_tokens", "expected_score", "winner_margin"]


def deciding_tokens(tokens: list[dict[str, Any]], keys: tuple[str, ...]) -> list[dict[str, Any]] | None:
    """Of all tokens of an answer, those that decide: the first token of each key's last value, with its ``key``."""
    text = "".join(entry["token"] for entry in tokens)
    found = []
    for key in keys:
        places = [match.end() for match in re.finditer(rf"{re.escape(key)}\W+(?=\w)", text, re.IGNORECASE)]
        if places:
            found.append({"key": key, **_token_at(tokens, places[-1])})
    return found or None


def _token_at(tokens: list[dict[str, Any]], place: int) -> dict[str, Any]:
    end = 0
    for entry in tokens:
        end += len(entry["token"])
        if end > place:
            return entry
    return tokens[-1]


def winner_margin(kept: Sequence[dict[str, Any]]) -> float:
    """By how much the winner's token is likelier than the likeliest one that reads otherwise, in log-probability.

    Below 0 where a less likely token was drawn. Tokens that differ only in space, quotation marks or case read the
    same. NaN without a winner or an alternative.

    Parameters
    ----------
    kept
        What :func:`deciding_tokens` kept of an answer.

    Examples
    --------
    >>> top = [{"token": "A", "logprob": -0.25}, {"token": " a", "logprob": -2.0}, {"token": "B", "logprob": -2.25}]
    >>> winner_margin([{"key": "winner", "token": "A", "logprob": -0.25, "top": top}])
    2.0
    """
    winners = [entry for entry in kept if entry.get("key") == "winner"]
    if not winners:
        return float("nan")
    chosen, others = winners[-1], winners[-1].get("top") or ()
    rivals = [each["logprob"] for each in others if _reading(each["token"]) != _reading(chosen["token"])]
    values = [value for value in (chosen["logprob"], *rivals) if value is not None]
    if len(values) <= len(rivals) or len(values) < 2 or not all(map(math.isfinite, values)):
        return float("nan")
    return float(values[0] - max(values[1:]))


def expected_score(kept: Sequence[dict[str, Any]], key: str, minimum: int, maximum: int) -> tuple[float, float]:
    """A criterion's score as the expected value over the scale, and the probability outside the scale.

    With p(s) the probability of the token that reads as s: Σ s p(s) / Σ p(s) over the scale, and 1 − Σ p(s), which
    holds both other tokens and alternatives that the endpoint did not name.

    Parameters
    ----------
    kept
        What :func:`deciding_tokens` kept of an answer.
    key
        The criterion.
    minimum, maximum
        The scale. Its levels must be single tokens: from 0 to 9.

    Returns
    -------
    tuple of float
        Expected score, and the mass outside; NaN for both without the token or its alternatives, and the score NaN
        where no level of the scale is among them.

    Raises
    ------
    ValueError
        If a level has more than one digit.

    Notes
    -----
    Source: Liu et al., "G-Eval: NLG evaluation using GPT-4 with better human alignment", 2023, equation 1.

    Examples
    --------
    >>> top = [{"token": "4", "logprob": math.log(0.6)}, {"token": " 5", "logprob": math.log(0.3)}]
    >>> kept = [{"key": "clarity", "token": "4", "logprob": math.log(0.6), "top": top}]
    >>> [round(value, 3) for value in expected_score(kept, "clarity", 1, 5)]
    [4.333, 0.1]
    """
    if minimum < 0 or maximum > 9:
        raise ValueError(f"scale {minimum} to {maximum}: a level of more than one digit has no probability of its own")
    found = [entry for entry in kept if entry.get("key") == key and entry.get("top")]
    if not found:
        return math.nan, math.nan
    mass: dict[str, float] = {}
    for each in found[-1]["top"]:
        if each["logprob"] is not None:
            mass[_reading(each["token"])] = mass.get(_reading(each["token"]), 0.0) + math.exp(each["logprob"])
    levels = {level: mass.get(str(level), 0.0) for level in range(minimum, maximum + 1)}
    inside = sum(levels.values())
    if inside <= 0:
        return math.nan, 1.0
    return sum(level * p for level, p in levels.items()) / inside, max(1 - inside, 0.0)


def _reading(token: str) -> str:
    return token.strip(" \t\r\n\"'").casefold()
