"""Log-probabilities: of all tokens of an answer, those that decide are kept."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["deciding_tokens"]


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
