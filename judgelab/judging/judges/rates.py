"""What response headers say about waiting: ``Retry-After`` and the rate limits that are left."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from judgelab.judging.judges.base import RateHint

__all__ = ["rate_hint", "retry_after", "seconds_until"]

LONGEST_WAIT = 600.0  # a call that must wait longer fails for this run; the next run asks it again
_FAR = 86_400.0  # a reset further away than a day is no rate limit
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|µs|ns|h|m|s)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds to wait, at most ten minutes; None if the headers do not say, or say nonsense.

    ``Retry-After`` holds seconds or an HTTP date; ``retry-after-ms`` (OpenAI, Azure) is finer and goes before it. A
    date is compared with the response's own ``Date``, for the two clocks may differ.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return _within(milliseconds / 1000)
    value = headers.get("retry-after")
    if not value:
        return None
    seconds = _number(value)
    if seconds is not None:
        return _within(seconds)
    wanted = _http_date(value)
    if wanted is None:
        return None
    sent = _http_date(headers.get("date"))
    away = wanted - (sent if sent is not None else time.time() if now is None else now)
    return _within(away) if away <= _FAR else None


def rate_hint(headers: Iterable[tuple[bytes, bytes]], *, now: float | None = None) -> RateHint | None:
    """What is left of the limits, from the headers of OpenAI (Azure, Groq, Together) and of Anthropic.

    Parameters
    ----------
    headers
        Raw names and values; names in lower case.
    now
        Seconds since the epoch, for resets given as a date.
    """
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if b"ratelimit" in name}
    if not found:
        return None
    requests = _left(found, now, ("x-ratelimit-{}-requests", "anthropic-ratelimit-requests-{}", "x-ratelimit-{}"))
    tokens = [
        _left(found, now, (pattern,))
        for pattern in (
            "x-ratelimit-{}-tokens",
            "anthropic-ratelimit-tokens-{}",
            "anthropic-ratelimit-input-tokens-{}",
            "anthropic-ratelimit-output-tokens-{}",
        )
    ]
    # the scarcest counts: whichever runs out first stops the next call
    known = [(left, reset) for left, reset in tokens if left is not None]
    scarcest = min(known, key=lambda entry: entry[0]) if known else (None, None)
    hint = RateHint(requests[0], scarcest[0], requests[1], scarcest[1])
    return None if hint == RateHint() else hint


def seconds_until(value: str | None, *, now: float | None = None) -> float | None:
    """A reset as seconds from now: ``1s``, ``6m0s``, ``120ms``, plain seconds, seconds or milliseconds since the
    epoch, or an RFC 3339 time. None if it is none of these."""
    if not value:
        return None
    text = value.strip()
    current = time.time() if now is None else now
    number = _number(text)
    if number is not None:
        if number > 1e12:
            number /= 1000
        away = number - current if number > 1e9 else number
    elif _DURATION.sub("", text) == "":
        away = sum(float(amount) * _UNITS[unit] for amount, unit in _DURATION.findall(text))
    else:
        try:
            date = datetime.fromisoformat(text)
        except ValueError:
            return None
        away = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - current
    return max(0.0, away) if away <= _FAR else None


def _left(found: dict[str, str], now: float | None, patterns: tuple[str, ...]) -> tuple[int | None, float | None]:
    """Remaining and reset of the first pattern that is there."""
    for pattern in patterns:
        remaining = _number(found.get(pattern.format("remaining")))
        if remaining is not None:
            return int(remaining), seconds_until(found.get(pattern.format("reset")), now=now)
    return None, None


def _number(value: str | None) -> float | None:
    """A finite number that is not negative."""
    try:
        number = float(value) if value else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _http_date(value: str | None) -> float | None:
    try:
        return parsedate_to_datetime(value).timestamp() if value else None
    except (TypeError, ValueError, OverflowError):
        return None


def _within(seconds: float) -> float:
    return max(0.0, min(seconds, LONGEST_WAIT))
