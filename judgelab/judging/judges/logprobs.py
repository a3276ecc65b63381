"""Log-probabilities: of all tokens of an answer, those that decide are kept."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["deciding_tokens", "winner_margin"]


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


def _reading(token: str) -> str:
    return token.strip(" \t\r\n\"'").casefold()
