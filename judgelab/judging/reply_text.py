"""Finding verdicts in a reply's text: where the reply proper begins, which objects and plain verdicts stand in it.

An object is read as JSON, or as what language models write in its place: smart, single or full-width quotes, full-width
brackets, colons and commas, a comma before a closing bracket, Python's ``True``, ``False`` and ``None``. Nothing is
ever completed or guessed: an object that does not close is no object. Every character is looked at a fixed number of
times, so that a megabyte of braces costs no more than a megabyte of prose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

__all__ = ["Found", "Scan", "find_forms", "find_hints", "find_objects", "is_refusal", "own_part", "written_part"]

DEPTH = 20  # a verdict is an object with a list in it; what is nested deeper is none

# A typographic quote is closed by any of its kind, for people and editors mix them up.
_PAIRS = (("“”„‟", "“”„‟"), ("‘’‚‛", "‘’‚‛"), ("＂", "＂"), ("＇", "＇"), ("«", "»"), ("「", "」"), ("『", "』"))
_OPENING = "\"'" + "".join(opening for opening, _ in _PAIRS)
_CLOSING = "\"'" + "".join(closing for _, closing in _PAIRS)
_STRING = "|".join(
    [r'"(?:[^"\\\x00-\x1f]++|\\.)*+"', r"'[^'\\\x00-\x1f]*+'"]
    + [rf"[{opening}][^{closing}\\\x00-\x1f]*+[{closing}]" for opening, closing in _PAIRS]
)
_SPACE = r"[\s\u200b-\u200d\u2060\ufeff]*+"
_TOKEN = re.compile(
    rf"{_SPACE}(?:(?P<string>{_STRING})"
    r"|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"
    r"|(?P<word>-?[A-Za-z]++)"
    r"|(?P<mark>[{}\[\]:,｛｝［］：，]))",
    re.DOTALL,
)
_WIDE = str.maketrans("｛｝［］：，", "{}[]:,")
_WORDS = {
    **{"true": True, "false": False, "null": None, "True": True, "False": False, "None": None},
    **{"NaN": float("nan"), "nan": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")},
}
# What begins as an object does; "{x, y}" in prose does not.
_BEGINNING = re.compile(rf"[{{｛](?={_SPACE}(?:[{_OPENING}}}｝]|\Z))")
# To find where a broken object ends: braces inside its strings close nothing, a string that never ends takes the rest.
_PASSED = re.compile(
    r'"(?:[^"\\]++|\\.)*+(?:"|\Z)'
    r"|(?<!\w)'(?:[^'\\\n]++|\\.)*+(?:'|(?=\n)|\Z)"
    + "".join(
        rf"|[{opening}][^{closing}\n]*+(?:[{closing}]|(?=\n)|\Z)" for opening, closing in _PAIRS if "’" not in closing
    )
    + r"|[{}｛｝]",
    re.DOTALL,
)
_PAIR = re.compile(rf"[{_OPENING}](?P<key>\w++)[{_CLOSING}]\s*+[:：]\s*+[{_OPENING}]?+(?P<value>\w++)")
_DRAFT = "think(?:ing)?|thoughts?|reasoning|reflection|scratchpad"
_DRAFT_ENDS = re.compile(rf"</(?:{_DRAFT})>|\[/think\]|◁/think▷|<\|channel\|>final<\|message\|>", re.IGNORECASE)
_DRAFT_BEGINS = re.compile(rf"<(?:{_DRAFT})>|\[think\]|◁think▷|<\|channel\|>analysis<\|message\|>", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\bI(?:['’]m| am) (?:very |so |really )?(?:sorry|afraid|unable|not able|not comfortable)\b"
    r"|\bI apologi[sz]e\b|^\W*sorry\b"
    r"|\bI (?:cannot|can not|can['’]t|could not|won['’]t|will not|must decline|have to decline|decline)\b|\bas an AI\b"
    r"|\b(?:unable|not able) to (?:help|assist|comply|judge|compare|evaluate|provide|answer|rate|score)\b",
    re.IGNORECASE,
)
_FORM = re.compile(
    r"^[ \t*_#`-]*+(?:(?:my|the|final|overall)[ \t]++)*+(?:winner|verdict|judge?ment|decision|choice|better answer)"
    r"[ \t*_`]*+(?:[:：=]|is\b:?)[ \t*_`\"'“‘(\[]*+(?:(?:answer|response|option|candidate)[ \t]++)?+"
    r"(?P<line>\w++)[*_`\"'”’)\].! \t]*+$|\[\[[ \t]*+(?P<brackets>\w++)[ \t]*+\]\]",
    re.IGNORECASE | re.MULTILINE,
)

_HINT = re.compile(
    r"\b(?i:winner|verdict|judge?ment|decision|choice|better answer)[ \t*_`\"']*+(?:[:：=]|is\b:?)[ \t*_`\"'“‘(\[]*+"
    r"(?:(?i:answer|response|option|candidate)[ \t]++)?+(?P<label>\w++)"
)


@dataclass(frozen=True)
class Found:
    """An object, or a plain form read as one, and where it stands in the text."""

    value: dict[str, Any]
    start: int
    end: int


@dataclass(frozen=True)
class Scan:
    """The complete objects of a text, in order.

    ``broken`` holds what closes but is no object, with the plain ``"key": value`` pairs that can be seen in it.
    ``open`` says that an object follows which never closes. ``examined`` counts the characters that were looked at: a
    small multiple of the text's length, whatever the text.
    """

    objects: tuple[Found, ...]
    broken: tuple[Found, ...]
    open: bool
    examined: int


def own_part(text: str) -> tuple[int, int]:
    """Start and end of the reply proper, without a thinking draft; a draft that never ends takes all that follows.

    Some chat templates put the opening tag into the prompt, so all that stands before a closing tag is draft.
    """
    start = max((tag.end() for tag in _DRAFT_ENDS.finditer(text)), default=0)
    opening = _DRAFT_BEGINS.search(text, start)
    return start, len(text) if opening is None else opening.start()


def written_part(text: str) -> str:
    """A text that a model wrote for a reader, without the thinking draft before it; empty where there is no more.

    An answer may itself be about such tags, so only what it begins with is a draft: from an opening tag to the first
    closing one, or up to a closing tag that nothing opens (the chat template did), unless it stands in backticks.

    >>> written_part("<think>Hm.</think>Cut at `<think>`.")
    'Cut at `<think>`.'
    """
    rest = text.strip()
    while opening := _DRAFT_BEGINS.match(rest):
        ending = _DRAFT_ENDS.search(rest, opening.end())
        rest = "" if ending is None else rest[ending.end() :].strip()
    if rest != text.strip():
        return rest
    ending, opening = _DRAFT_ENDS.search(rest), _DRAFT_BEGINS.search(rest)
    if ending is None or (opening is not None and opening.start() < ending.start()):
        return rest
    return rest if rest[: ending.start()].endswith("`") else rest[ending.end() :].strip()


def find_objects(text: str, start: int = 0, end: int | None = None) -> Scan:
    """Every complete top-level object between two places of a text.

    An object nested in another one is a part of it, and one inside an object that is broken is lost with it: neither is
    what the text says as a whole.

    Examples
    --------
    >>> [found.value for found in find_objects("I say: {'winner': “B”,}").objects]
    [{'winner': 'B'}]
    >>> find_objects('{"winner": "A"').open
    True
    """
    end = len(text) if end is None else end
    found: list[Found] = []
    broken: list[Found] = []
    position, examined = start, end - start
    while (beginning := _BEGINNING.search(text, position, end)) is not None:
        begun = beginning.start()
        parser = _Parser(text, begun, end)
        try:
            found.append(Found(parser.read(), begun, parser.start))
            position = parser.start
        except _BrokenError:
            closed = _closed(text, parser.start, end, parser.depth)
            position = end if closed is None else closed
            if closed is None:
                return Scan(tuple(found), tuple(broken), True, examined + position - begun)
            broken.append(Found(_glimpsed(text, begun, closed), begun, closed))
        examined += position - begun
    return Scan(tuple(found), tuple(broken), False, examined)


def _closed(text: str, start: int, end: int, depth: int) -> int | None:
    """Where a broken object ends, from a place at which ``depth`` braces are open; None if it never does."""
    for passed in _PASSED.finditer(text, start, end):
        if passed[0] in "{｛":
            depth += 1
        elif passed[0] in "}｝":
            depth -= 1
            if depth <= 0:
                return passed.end()
    return None


def _glimpsed(text: str, start: int, end: int) -> dict[str, Any]:
    """What a broken object seems to say. It is never a verdict, but it may contradict one."""
    pairs = ((pair["key"], pair["value"]) for pair in _PAIR.finditer(text, start, end))
    return {key: int(value) if value.isdecimal() and len(value) < 10 else value for key, value in pairs}


class _BrokenError(Exception):
    """The text is no object from here on."""


class _Parser:
    """Reads one object; ``start`` is its end afterwards, or the token that did not fit, with ``depth`` braces open."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text, self._end = text, end
        self.start, self._position = start, start
        self.depth = self._lists = 0
        self._kind, self._token = "", ""

    def read(self) -> dict[str, Any]:
        """The object, or a :class:`_BrokenError`."""
        self._advance()
        return self._object()

    def _advance(self) -> None:
        """Look at the next token; the one before is taken."""
        token = _TOKEN.match(self._text, self._position, self._end)
        self.start = self._position
        self._kind = "" if token is None else str(token.lastgroup)
        self._token = "" if token is None else token[self._kind]
        if token is not None:
            self._position = token.end()
        if self._kind == "mark":
            self._token = self._token.translate(_WIDE)

    def _takes(self, mark: str) -> bool:
        """Take a mark if it comes next. The last brace is not looked beyond: prose may follow."""
        if self._kind != "mark" or self._token != mark:
            return False
        if mark == "{":
            self.depth += 1
        elif mark == "}":
            self.depth -= 1
            if self.depth == 0:
                self.start = self._position
                return True
        self._advance()
        return True

    def _needs(self, mark: str) -> None:
        if not self._takes(mark):
            self._fail()

    def _fail(self) -> NoReturn:
        raise _BrokenError

    def _object(self) -> dict[str, Any]:
        self._needs("{")
        members: dict[str, Any] = {}
        while not self._takes("}"):
            if members:
                self._needs(",")
                if self._takes("}"):
                    break
            key = self._string()
            self._needs(":")
            if key in members:  # which of the two is meant is not known
                self._fail()
            members[key] = self._value()
        return members

    def _list(self) -> list[Any]:
        self._needs("[")
        self._lists += 1
        entries: list[Any] = []
        while not self._takes("]"):
            if entries:
                self._needs(",")
                if self._takes("]"):
                    break
            entries.append(self._value())
        self._lists -= 1
        return entries

    def _value(self) -> Any:
        if self._kind == "mark":
            if self.depth + self._lists >= DEPTH:
                self._fail()
            return self._object() if self._token == "{" else self._list()
        if self._kind == "string":
            return self._string()
        if self._kind == "word" and self._token in _WORDS:
            value = _WORDS[self._token]
        elif self._kind == "number":
            value = self._number()
        else:
            self._fail()
        self._advance()
        return value

    def _number(self) -> int | float:
        try:
            return int(self._token) if self._token.lstrip("-").isdigit() else float(self._token)
        except ValueError:  # more digits than Python turns into a number
            self._fail()

    def _string(self) -> str:
        if self._kind != "string":
            self._fail()
        value = self._token[1:-1]
        if "\\" in value:
            try:
                value = json.loads(self._token)
            except ValueError:
                self._fail()
        self._advance()
        return value


def find_forms(text: str, start: int, end: int, taken: tuple[Found, ...] = ()) -> Iterator[Found]:
    """Plain verdicts: ``Winner: B`` or ``**Verdict: tie**`` on a line of its own, and ``[[A]]``; not inside an object.

    A line that goes on after the label is not read: what follows may take the label back.
    """
    objects = iter([*taken, Found({}, len(text) + 1, len(text) + 1)])
    following = next(objects)
    for form in _FORM.finditer(text, start, end):
        while following.end <= form.start():
            following = next(objects)
        if form.end() <= following.start:
            yield Found({"winner": form["line"] or form["brackets"]}, form.start(), form.end())


def find_hints(text: str, start: int, end: int, letters: Sequence[str] = ("A", "B")) -> Iterator[Found]:
    """Where prose names a winner (``but the winner is A, since``): never a verdict, but it may contradict one.

    ``letters`` are what the prompt calls the answers; in other upper or lower case, as in ``a``, they may be words.
    """
    for hint in _HINT.finditer(text, start, end):
        if hint["label"] in (*letters, "TIE", "tie"):
            yield Found({"winner": hint["label"]}, hint.start(), hint.end())


def is_refusal(text: str) -> bool:
    """Whether a reply without a verdict says that there will be none. Only its beginning is looked at."""
    return _REFUSAL.search(text[:400]) is not None
