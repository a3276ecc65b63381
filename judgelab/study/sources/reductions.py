"""What is kept of an original file where a set's local file is smaller: texts are dropped, figures are not touched.

Each reduction takes the originals' bytes and gives the local file's bytes, always the same: its SHA-256 is in the
catalogue. None of them runs anything that an original holds. A pickle is looked through code by code before it is
loaded, and only text in one dictionary is let in: no code that imports, calls or builds an object.
"""

from __future__ import annotations

import csv
import io
import json
import pickle
import pickletools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from judgelab.errors import DataError

__all__ = ["REDUCTIONS", "choices_of_pickle", "figures_of_logs", "scores_only", "text_dict", "without_instance"]

SCORES = ("idx", "response_source", "category", "gpt4_score")
CHOICE = re.compile(r"\[\[([ABCD])\]\]")
CHOICES = ("A", "B", "C")
EXACT_MATCH = "EM"  # two equal answers, which no judge was asked about
LARGEST_PICKLE = 64_000_000
# A dictionary of text, in protocols 0 to 5: nothing here imports, calls or builds.
PICKLE_CODES = frozenset(
    {"PROTO", "FRAME", "MARK", "STOP", "NONE", "EMPTY_DICT", "DICT", "SETITEM", "SETITEMS", "MEMOIZE"}
    | {"PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET"}
    | {"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
)
EXTRACTED = re.compile(r"^Extracted (\d+) answers from the responses", re.MULTILINE)
CONSISTENT = re.compile(
    r"^(\d+) out of (\d+) answers are consistent\..* The consistent rate is ([\d.]+)%", re.MULTILINE
)
LOG = re.compile(r"_record0_(.+)_3/log\.txt")


def scores_only(originals: Mapping[str, bytes]) -> bytes:
    """Prometheus: of every answer its question's number, system, category and scores.

    Raises
    ------
    DataError
        If the original is not a list of objects with these keys.
    """
    name, content = _only(originals)
    entries = _json(name, content)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{name}: a list of objects is needed")
    lacking = [place for place, entry in enumerate(entries, start=1) if not set(SCORES) <= set(entry)]
    if lacking:
        raise DataError(
            f"{name}: {len(lacking)} of {len(entries)} entries lack one of {', '.join(SCORES)}; first in entry "
            f"{lacking[0]}"
        )
    return json.dumps([{key: entry[key] for key in SCORES} for entry in entries]).encode()


def without_instance(originals: Mapping[str, bytes]) -> bytes:
    """JUDGE-BENCH: all but the text that was judged.

    Raises
    ------
    DataError
        If the original is not an object with a list ``instances`` of objects.
    """
    name, content = _only(originals)
    document = _json(name, content)
    instances = document.get("instances") if isinstance(document, dict) else None
    if not isinstance(instances, list) or not all(isinstance(one, dict) for one in instances):
        raise DataError(f"{name}: an object with a list of instances is needed")
    kept = [{key: value for key, value in one.items() if key != "instance"} for one in instances]
    return json.dumps({**document, "instances": kept}).encode()


def choices_of_pickle(originals: Mapping[str, bytes]) -> bytes:
    """Position bias: of every reply the choice it states first, ``[[A]]``, ``[[B]]`` or ``[[C]]``; else empty.

    Raises
    ------
    DataError
        If the original is not a pickled dictionary of text (see :func:`text_dict`).
    """
    name, content = _only(originals)
    replies = text_dict(content, name)
    asked = {key: reply for key, reply in replies.items() if reply != EXACT_MATCH}
    return _csv([("key", "choice"), *((key, _choice(reply)) for key, reply in asked.items())])


def figures_of_logs(originals: Mapping[str, bytes]) -> bytes:
    """Position bias: the counts that each judge's log prints, in the order of the files.

    Raises
    ------
    DataError
        If a log does not print them.
    """
    rows: list[tuple[str, ...]] = [("file", "extracted", "consistent", "of", "rate_percent")]
    for name, content in originals.items():
        text = content.decode("utf-8", errors="replace")
        judge, extracted, consistent = LOG.search(name), EXTRACTED.search(text), CONSISTENT.search(text)
        if not judge or not extracted or not consistent:
            raise DataError(f"{name}: the log does not print how many answers were extracted and are consistent")
        rows.append((f"MTBench_{judge.group(1)}.csv", extracted.group(1), *consistent.groups()))
    return _csv(rows)


REDUCTIONS: dict[str, Callable[[Mapping[str, bytes]], bytes]] = {
    "scores_only": scores_only,
    "without_instance": without_instance,
    "choices_of_pickle": choices_of_pickle,
    "figures_of_logs": figures_of_logs,
}


def text_dict(content: bytes, name: str) -> dict[str, str | None]:
    """A pickled dictionary from text to text (or None), without ever importing or calling anything.

    The codes are looked through first: only those that make text and one dictionary are allowed, and a memo index may
    not be larger than the number of codes so far (it would reserve memory). Then the pickle is loaded with no globals.

    Raises
    ------
    DataError
        If it is larger than 64 MB, is no pickle, has another code, or is not a dictionary of text.
    """
    if len(content) > LARGEST_PICKLE:
        raise DataError(f"{name}: {len(content):,} bytes; at most {LARGEST_PICKLE:,} are read")
    _check_codes(content, name)
    try:
        found = _NoGlobals(io.BytesIO(content)).load()
    except Exception as error:  # a truncated or inconsistent pickle raises nearly anything
        raise DataError(f"{name}: not a pickle that can be read: {error}") from None
    if not isinstance(found, dict):
        raise DataError(f"{name}: a pickle of {type(found).__name__}; a dictionary is needed")
    odd = [key for key, value in found.items() if not isinstance(key, str) or not isinstance(value, (str, type(None)))]
    if odd:
        raise DataError(f"{name}: {len(odd)} of {len(found)} entries are not text; first {odd[0]!r}")
    return found


def _check_codes(content: bytes, name: str) -> None:
    """Look at every code of a pickle without carrying it out."""
    dictionaries = end = 0
    try:
        for count, (code, argument, place) in enumerate(pickletools.genops(content), start=1):
            dictionaries += code.name in ("EMPTY_DICT", "DICT")
            reserves = "PUT" in code.name and isinstance(argument, int) and argument > count
            if code.name not in PICKLE_CODES or dictionaries > 1 or reserves:
                raise DataError(
                    f"{name}: a pickle of more than one dictionary of text: code {count}, {code.name} at byte {place}, "
                    "is not allowed; nothing of it was loaded"
                )
            end = (place or 0) + 1
    except DataError:
        raise
    except Exception as error:  # genops raises what its readers of arguments raise
        raise DataError(f"{name}: not a pickle: {error}") from None
    if end != len(content):
        raise DataError(f"{name}: {len(content) - end:,} bytes after the pickle's end at byte {end}")


class _NoGlobals(pickle.Unpickler):
    """Loads no class and no function."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"{module}.{name} is asked for; nothing is imported")


def _choice(reply: str | None) -> str:
    found = CHOICE.search(reply or "")
    return found.group(1) if found and found.group(1) in CHOICES else ""


def _only(originals: Mapping[str, bytes]) -> tuple[str, bytes]:
    ((name, content),) = originals.items()
    return name, content


def _json(name: str, content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: not valid JSON: {error}") from None


def _csv(rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()
