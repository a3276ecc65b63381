"""What goes wrong at the provider of the tests, and what must come of it: pure functions of seed, prompt and count."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "DUPLICATES",
    "FATAL",
    "HARMLESS",
    "MALFORMED",
    "OFTEN",
    "REFUSED",
    "TRANSIENT",
    "Faults",
    "call_key",
    "settled",
    "verdict_for",
]

# What must come of one request, by fault. Transient: the same call is sent again. Malformed: it is sent again as often
# as the protocol allows for replies. Refused: unusable at once. Fatal: the judge stops.
TRANSIENT = (
    "429", "429_retry_after", "500", "503", "slow_first_byte", "slow_body", "reset", "reset_in_body", "cut_json",
    "html", "latin1", "no_choices", "closed",
)  # fmt: skip
MALFORMED = ("prose", "stopped_early")
REFUSED = {
    "too_long": "context_too_long",
    "filtered": "content_filter",
    "withheld": "content_filter",
}
HARMLESS = ("wrong_charset", "close_after", "rate_headers")
FATAL = ("401", "403", "404")
DUPLICATES = ("duplicate", "late_duplicate")  # these disturb the next request on the connection, not their own
OFTEN = (*TRANSIENT, *MALFORMED, *REFUSED, *HARMLESS)  # what does not end a run


@dataclass(frozen=True)
class Faults:
    """What goes wrong: one of ``kinds`` for a ``share`` of the requests; only in the first ``times`` of each call."""

    kinds: tuple[str, ...] = ()
    share: float = 1.0
    seed: int = 0
    times: int | None = None

    def of(self, key: str, number: int) -> str | None:
        """The fault of the ``number``-th request (from 0) for the call with this key."""
        if not self.kinds or (self.times is not None and number >= self.times):
            return None
        drawn = hashlib.sha256(f"{self.seed}|{key}|{number}".encode()).digest()
        if int.from_bytes(drawn[:8]) >= self.share * 2.0**64:
            return None
        return self.kinds[int.from_bytes(drawn[8:12]) % len(self.kinds)]


def settled(faults: Sequence[str | None], *, malformed: int = 1, transient: int = 2) -> tuple[str, str | None, int]:
    """What one run makes of a call that meets these faults one after another, under a policy of retries.

    Returns
    -------
    tuple
        The status (``verdict``, ``unusable``, ``failed``), the fault that decided, and the number of requests.
    """
    count = {"malformed": 0, "transient": 0}
    for number, fault in enumerate(faults, start=1):
        if fault is None or fault in HARMLESS:
            return "verdict", None, number
        if fault in REFUSED:
            return "unusable", fault, number
        kind = "malformed" if fault in MALFORMED else "transient"
        count[kind] += 1
        if count["malformed"] > malformed:
            return "unusable", fault, number
        if count["transient"] > transient:
            return "failed", fault, number
    raise ValueError(f"{len(faults)} requests settle nothing")


_FENCE = re.compile(r"<<<\s*([0-9A-Za-z_-]{6,})")
_CRITERION = re.compile(r"^- ([a-z][a-z0-9_]*)", re.MULTILINE)
_SCALE = re.compile(r"integer from (-?\d+) to (-?\d+)")
_shapes: dict[str, tuple[list[str], list[int]]] = {}


def call_key(user: str) -> str:
    """Hash of a prompt's text without its fence words."""
    text = user[max(user.find("TASK\n"), 0) :]
    for word in {*_FENCE.findall(text)}:
        text = text.replace(word, "")
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def verdict_for(system: str, key: str) -> dict[str, Any]:
    """The verdict on the prompt with this key; the system text says which strategy, labels, criteria and scale."""
    digest = bytes.fromhex(key)
    if system not in _shapes:
        scale = _SCALE.search(system)
        if scale is None:
            _shapes[system] = ([], [])
        else:
            _shapes[system] = (_CRITERION.findall(system), list(range(int(scale[1]), int(scale[2]) + 1)))
    criteria, scores = _shapes[system]
    if scores:
        given = {name: scores[digest[place] % len(scores)] for place, name in enumerate(criteria)}
        return {**given, "critical_error": digest[30] < 16, "reason_codes": []}
    labels = ("A", "B", "TIE") if "TIE" in system else ("A", "B")
    winner = labels[2] if len(labels) == 3 and digest[0] < 40 else labels[digest[1] % 2]
    return {"winner": winner, "confidence": ("low", "medium", "high")[digest[2] % 3], "reason_codes": []}
