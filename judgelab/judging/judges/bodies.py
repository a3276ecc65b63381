"""Bodies of requests and responses: to bytes and back, and the small readings that every dialect needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

__all__ = ["count", "decoded", "encoded", "error_inside", "merged", "text_or_none"]


def encoded(body: Mapping[str, Any]) -> bytes:
    """A body's bytes."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:  # half a surrogate pair in an item: escaped, it can be sent
        return json.dumps(body, separators=(",", ":"), allow_nan=False).encode()


def decoded(content: bytes) -> Any:
    """The body as JSON, which is UTF-8, 16 or 32 whatever charset the header names; None if it is no JSON."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def error_inside(body: Any) -> int | None:
    """The status of an error that came with status 200 (OpenRouter), if the body is one."""
    if not isinstance(body, dict) or body.get("choices") or not isinstance(body.get("error"), dict):
        return None
    code = body["error"].get("code")
    return code if isinstance(code, int) and 400 <= code < 600 else 502


def merged(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """``body`` with the fields of ``extra``; where both have a group of fields, the groups are merged."""
    for key, value in extra.items():
        inside = body.get(key)
        body[key] = merged(dict(inside), value) if isinstance(inside, dict) and isinstance(value, dict) else value
    return body


def text_or_none(value: Any) -> str | None:
    """A text as the endpoint reports it; anything else is nothing."""
    return value if isinstance(value, str) else None


def count(value: Any) -> int | None:
    """A count of tokens; anything else is nothing."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None
