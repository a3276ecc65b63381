"""What the degradation ladder finds in an answer and puts in its place: steps, falsehoods, vague words, a stock.

The words that are recognised and put in are English; numbers are found in any language. Code, addresses and tags are
never touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

from judgelab.judging.transformations import ends_sentence

__all__ = ["STOCK", "Change", "Draw", "Step", "falsehoods", "found_steps", "plain_words", "vague"]

Draw = Callable[..., float]
"""A number in [0, 1) that depends on nothing but the purpose (any hashable words and numbers) it is drawn for."""


class Change(NamedTuple):
    """Characters ``begin`` to ``end`` (exclusive) of a sentence become ``after``; ``kind`` says in a word how."""

    begin: int
    end: int
    after: str
    kind: str


class Step(NamedTuple):
    """One step or sentence: characters ``begin`` to ``end`` (exclusive), its words (no marker) from ``body`` on."""

    begin: int
    body: int
    end: int
    indent: int  # of the marker; -1 in plain text
    number: int  # -1 where there is none


STOCK: tuple[str, ...] = (
    "The old lighthouse on the island is painted in red and white stripes.",
    "Many choirs rehearse on Thursdays because the halls are cheaper then.",
    "The museum in the old town shows clocks from three centuries.",
    "Rye bread has been baked in this valley for a very long time.",
)
"""Sentences about something else, for answers without strangers."""

_WORDS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60,
}  # fmt: skip
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_PLAIN_NUMBER = re.compile(rf"{_DIGITS}|\b(?:{'|'.join(_WORDS)})\b", re.IGNORECASE)
_WHOLE = r"(?!\d|[.,:/]\d|(?:st|nd|rd|th)\b)"  # behind a number: no more of it, and no ordinal
_NUMBER = rf"(?:(?<![\w.,:/+\-]){_DIGITS}{_WHOLE}|\b(?:{'|'.join(_WORDS)})\b)"
_RANGE = rf"{_NUMBER}(?:(?:[ ]?[–-][ ]?|[ ](?:to|or)[ ]){_DIGITS}{_WHOLE})?"
_SPACE = "[ \u00a0\u202f]"
_CLOCK = r"(?<![\w:.,])(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?![\w:%]|[.,]\d)"
_CODED = re.compile(r"(`+).+?\1|<[a-zA-Z/!][^<>]*>", re.DOTALL)
_ADDRESS = re.compile(r"://|@|\w/\w|_\w|\\")

# --- steps ----------------------------------------------------------------------------------------------------------
_MARKER = re.compile(r"(?P<indent>[ \t]*)(?:(?P<number>\d{1,9})[.)]|[-*+•])[ \t]+(?=\S)")
_FENCE = re.compile(r"[ \t>]*(?P<fence>`{3,}|~{3,})")
# Neither steps nor sentences: headings, quotes, tables, rules, formulas, HTML.
_FIXED = re.compile(r"[ \t]*(?:\#{1,6}[ \t]|>|\||-{3,}[ \t]*$|={3,}|\*{3,}[ \t]*$|\$\$|\\\[|</?[a-zA-Z!])")
_CODE = re.compile(r"[ ]{4}|\t")  # a line of code, unless it goes on with a step
_TOKEN = re.compile(r"\S+")
_LETTER = re.compile(r"[^\W_]")

# --- falsehoods -----------------------------------------------------------------------------------------------------
_FALSE_UNITS = {
    "seconds": "minutes", "minutes": "hours", "hours": "days", "days": "weeks", "weeks": "months", "months": "weeks",
    "years": "months", "nights": "weeks", "minute": "hour", "hour": "day", "day": "week", "week": "month",
    "mm": "cm", "cm": "mm", "km": "m", "ml": "cl", "g": "kg", "kg": "g", "°c": "°F", "°f": "°C", "mb": "GB", "gb": "MB",
    "centimetres": "millimetres", "kilometres": "metres", "litres": "millilitres", "grams": "kilograms",
    "kilograms": "grams", "teaspoons": "cups", "tablespoons": "cups", "cups": "teaspoons", "spoons": "cups",
}  # fmt: skip
_UNIT = re.compile(rf"(?<!\bat least ){_NUMBER}{_SPACE}(?P<unit>{'|'.join(_FALSE_UNITS)})\b", re.IGNORECASE)
_PAIRS = (
    ("never", "always"), ("before", "after"), ("above", "below"), ("at least", "at most"), ("more than", "less than"),
    ("increase", "reduce"), ("increases", "reduces"), ("enable", "disable"), ("wider", "narrower"), ("dry", "wet"),
    ("longer", "shorter"), ("higher", "lower"), ("hot", "cold"), ("full", "empty"), ("inside", "outside"),
    ("earlier", "later"), ("earliest", "latest"), ("landscape", "portrait"), ("bottom", "top"),
    ("switch off", "switch on"), ("switched off", "switched on"), ("turn off", "turn on"), ("turned off", "turned on"),
    ("oldest", "newest"), ("smaller", "larger"), ("cheaper", "dearer"), ("arrival", "departure"),
)  # fmt: skip
_OPPOSITES = {
    **dict(_PAIRS), **{other: one for one, other in _PAIRS},
    # of these only one side is always a claim
    "without": "with", "must not": "must", "not allowed": "allowed", "forbidden": "allowed", "warm": "cold",
    "free of charge": "for a fee", "include": "leave out",
}  # fmt: skip
_NEGATIONS = {
    "is not": "is", "are not": "are", "cannot": "can", "will not": "will", "should not": "should", "need not": "must",
    "is": "is not", "are": "are not", "can": "cannot", "will": "will not", "should": "should not",
    "must": "need not", "has to": "need not", "needs to": "need not",
}  # fmt: skip
_OPPOSITE = re.compile(
    rf"\b(?:{'|'.join(sorted(_OPPOSITES, key=len, reverse=True))})\b(?<!\bafter(?=[ ]\d))", re.IGNORECASE
)  # "after 2 hours" has no opposite
_NEGATION = re.compile(rf"(?<!\ba )(?<!\bthe )\b(?:{'|'.join(sorted(_NEGATIONS, key=len, reverse=True))})\b")
_PROHIBITION = re.compile(r"\b(?:[Dd]o not|[Dd]on['’]t)[ ](?P<verb>\w)")
_AT_MOST = re.compile(r"\b(?:within|up to|at most|no more than|first|last)[ ]$", re.IGNORECASE)
_AT_LEAST = re.compile(r"\b(?:at least|no less than|more than)[ ]$", re.IGNORECASE)
# Several words with capitals, or one within a sentence.
_NAME = re.compile(
    r"\b(?!(?:A|An|At|For|If|In|On|The|To|With)[ ])[A-Z][a-z]+(?:[ ][A-Z][a-z]+)+|(?<=[\w,;:][ ])[A-Z][a-z]{2,}\b"
)

# --- vague words ----------------------------------------------------------------------------------------------------
_HEDGE = (
    r"(?:(?:at least|at most|about|around|exactly|up to|no more than|not more than|no less than|more than|less than|"
    r"fewer than|under|over|only|roughly|another|minus)[ ])?"
)
_TIME = r"(?:(?:working|business|full)[ ])?(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|min|h|s)"
_LENGTH = r"(?:mm|cm|km|m|(?:milli|centi|kilo)?metres?|inch(?:es)?)"
_MEASURE = r"(?:ml|cl|dl|l|g|kg|mg|(?:milli)?litres?|(?:kilo)?grams?|(?:tea|table)?spoons?|cups?|drops?)"
_UNITS = (
    (_TIME, "some time"),
    (r"(?:°[CF]|degrees(?:[ ][A-Z][a-z]+)?)", "a certain temperature"),
    (rf"{_LENGTH}(?=[ ](?:wide|long|deep|high|tall|thick))", "rather"),
    (_LENGTH, "a little"),
    (rf"{_MEASURE}{_SPACE}of", "some"),
    (_MEASURE, "a certain amount"),
    (r"(?:%|per[ ]?cent)[ ]of", "part of"),
    (r"(?:%|per[ ]?cent)", "a certain share"),
    (r"(?:euros?|dollars?|pounds?|francs?)", "a certain sum"),
    (r"(?:[KMG]B|pixels?|points?|pt|dpi)", "a certain size"),
    (r"times", "a few times"),
)
_CLAUSE = r"(?:[^,.;:!?()]|(?<=\d)[,.:](?=\d))+"
_SUBJECT = r"(?:the|it|its|you|your|they|there|this|that|these|all|any|no|a|an|each)\b"
_CONDITIONS = (
    (rf"^If[ ]{_CLAUSE}(?=,)", "In some cases"),
    (rf"^(?:When|Once|After|As soon as)[ ]{_SUBJECT}{_CLAUSE}(?=,)", "At some point"),
    (rf"\b(?:(?:only|or|and|but|even)[ ])?(?:if|as long as|provided)[ ]{_CLAUSE}", "if need be"),
    (rf"\bunless[ ]{_CLAUSE}", "in most cases"),
    (rf"\buntil[ ]{_CLAUSE}", "for long enough"),
    (rf"\b(?:only[ ])?(?:when|once|as soon as)[ ]{_SUBJECT}{_CLAUSE}", "at some point"),
    (rf"\b(?:because|since)[ ]{_SUBJECT}{_CLAUSE}", "for various reasons"),
)
_FIGURES = (
    (rf"\bat[ ]{_CLOCK}", "at some point"),
    (_CLOCK, "a certain hour"),
    (rf"\b[Ee]very[ ]{_RANGE}{_SPACE}?{_TIME}\b", "every so often"),
    (rf"\b(?P<kept>the|these|those|first|last|next)[ ]{_RANGE}(?=[ ][a-z])", "{kept}"),
    *((rf"{_HEDGE}{_RANGE}{_SPACE}?{unit}(?!\w)", words) for unit, words in _UNITS),
    (rf"{_HEDGE}[€$£]{_SPACE}?{_DIGITS}", "a certain sum"),
    (rf"\b(?:a|an|the)[ ]{_DIGITS}-\w+", "a certain"),
    (rf"\b(?P<kept>rows|pages|columns|lines|steps|coaches|cells)[ ]{_RANGE}(?:[ ]and[ ]{_NUMBER})?", "certain {kept}"),
    (rf"\b(?P<kept>page|step|row|column|line|version|level|platform|gate|zone|terminal|coach|room)[ ]{_RANGE}",
     "a certain {kept}"),
    (r"\b(?:the[ ]keys?[ ])?(?:[A-Z][a-z]*\+)+\w+", "the right keys"),
    (r"\b(?:the[ ])?(?:cells?[ ])?[A-Z]{1,2}\d+(?::[A-Z]{1,2}\d+)?\b", "the right place"),
    (r"\b(?P<kept>(?i:under|in|choose|click|open|select|press|set|tick))[ ](?:the[ ])?[A-Z]\w+(?:[ ][A-Z]\w+)*"
     r"(?:[ ](?P<noun>tab|menu|box|field|button|list|group|dialog))?(?=[ ,.;:])", "{kept} the right {noun}"),
    (r"[“\"][^”\"]{1,60}[”\"]", "the right entry"),
    (rf"{_HEDGE}{_RANGE}(?=[ ][a-z])", "some"),
    (rf"{_HEDGE}{_RANGE}", "a certain number"),
)  # fmt: skip
_VAGUE = tuple(
    (re.compile(pattern), after, kind)
    for kind, patterns in (("condition", _CONDITIONS), ("figure", _FIGURES))
    for pattern, after in patterns
)


def found_steps(text: str) -> list[Step]:
    """The list items and sentences of a text in order, as `judgelab.judging.ladder.steps` describes them.

    >>> found_steps("1. Go. 2")
    [Step(begin=0, body=3, end=8, indent=0, number=1)]
    """
    every = (step for block in _blocks(text) for step in _within(text, *block))
    return [step for step in every if _LETTER.search(text, step.body, step.end)]


def plain_words(sentence: str) -> str:
    """A sentence on one line, without a list marker and with an end; empty for what is no sentence (code, a table).

    >>> plain_words("2. Rinse it\\n   twice")
    'Rinse it twice.'
    """
    marker = _MARKER.match(sentence)
    words = " ".join(sentence[marker.end() if marker else 0 :].split())
    if not _LETTER.search(words) or _FENCE.match(words) or _FIXED.match(words) or _MARKER.match(words):
        return ""
    return words if re.search(r"[.!?…:。！？：؟۔।][\"'”’»)\]*_]*$", words) else f"{words}."


def _blocks(text: str) -> Iterator[tuple[int, int, re.Match[str] | None]]:
    """List items (with the lines that go on with them) and paragraphs: begin, end, marker; no code and the like."""
    begin = place = 0
    end = -1  # of the open block; -1: none is open
    marker: re.Match[str] | None = None
    fence = ""
    for line in text.splitlines(keepends=True):
        bare, start = line.rstrip(), place
        place += len(line)
        found, fenced = _MARKER.match(bare), _FENCE.match(bare)
        if fence or fenced or found or not bare or _FIXED.match(bare) or (end < 0 and _CODE.match(bare)):
            if end >= 0:
                yield begin, end, marker
            end = -1
        if fence:
            fence = "" if fenced and fenced["fence"].startswith(fence) else fence
        elif fenced:
            fence = fenced["fence"]
        elif found and not _FIXED.match(bare):
            begin, end, marker = start, start + len(bare), found
        elif bare and not _FIXED.match(bare) and (end >= 0 or not _CODE.match(bare)):
            if end < 0:
                begin, marker = start, None
            end = start + len(bare)
    if end >= 0:
        yield begin, end, marker


def _within(text: str, begin: int, end: int, marker: re.Match[str] | None) -> Iterator[Step]:
    """A list item as one step, a paragraph as its sentences."""
    if marker:
        indent = len(marker["indent"].expandtabs(4))
        yield Step(begin, begin + marker.end(), end, indent, int(marker["number"] or -1))
        return
    tokens = [*_TOKEN.finditer(text, begin, end)]
    first = tokens[0].start() if tokens else begin
    code = bold = 0
    for token, following in zip_longest(tokens, tokens[1:]):
        code += token[0].count("`")
        bold += token[0].count("**")
        if following is None or (code % 2 == bold % 2 == 0 and ends_sentence(token[0], following[0])):
            yield Step(first, first, token.end(), -1, -1)
            code = bold = 0
            first = following.start() if following else end


def falsehoods(sentence: str, draw: Draw, context: str = "") -> list[list[Change]]:
    """The ways to make a sentence false, in three grades: surest first, any of which may be empty.

    Numbers become another number (a fifth to fivefold; another hour), units another unit, words their opposite, names
    another name of the context; prohibitions and verbs are negated. The first grade changes what the ``context`` holds
    too (anything but verbs, if there is none), the second what it does not mention, the third negates verbs.

    >>> [[change.after for change in grade] for grade in falsehoods("Wait until it is dry.", lambda *_: 0.0)]
    [['wet'], [], ['is not']]
    """
    masked = _masked(sentence)
    ways = _wrong_numbers(masked, draw) + _wrong_units(masked) + _inverted(masked) + _wrong_names(masked, context, draw)
    verbs = [Change(*found.span(), _NEGATIONS[found[0]], "claim") for found in _NEGATION.finditer(masked)]
    grades: list[list[Change]] = [[], [], verbs]
    known = _masked(context).casefold()
    for change in ways:
        words = re.escape(sentence[change.begin : change.end].casefold())
        mentioned = not context.strip() or re.search(rf"(?<!\w){words}(?!\w)", known)
        grades[0 if mentioned else 1].append(change)
    return grades


def vague(sentence: str) -> list[Change]:
    """All specifics of a sentence (amounts, times, conditions, keys, menu entries, quoted names) with the vague words
    that take their place, from left to right; none overlap. Empty where nothing is specific.

    >>> [change.after for change in vague("Wait 20 minutes if it is hot.")]
    ['some time', 'if need be']
    """
    masked = _masked(sentence)
    found: list[Change] = []
    for pattern, after, kind in _VAGUE:
        for match in pattern.finditer(masked):
            begin, end = match.start(), match.start() + len(match[0].rstrip())
            if all(end <= other.begin or begin >= other.end for other in found):
                words = after.format(**{name: part or "entry" for name, part in match.groupdict().items()})
                first = sentence[:begin].rstrip()[-1:] in ("", ".", "!", "?")
                found.append(Change(begin, end, _cased(words, "The" if first else "the"), kind))
    return sorted(found)


def _wrong_numbers(masked: str, draw: Draw) -> list[Change]:
    """One change for each clock time, number or range; 0 and 1 are left alone, for nouns would not agree."""
    found = []
    for match in re.finditer(_CLOCK, masked):
        hour = int(match["hour"]) + 2 + int(draw("hour", match.start()) * 5)
        found.append(Change(*match.span(), f"{hour % 24:02d}:{match['minute']}", "number"))
    for match in re.finditer(_RANGE, masked, re.IGNORECASE):
        values = [float(_WORDS.get(n.lower()) or n.replace(",", "")) for n in _PLAIN_NUMBER.findall(match[0])]
        most = 100.0 if re.match(rf"{_SPACE}?(?:%|per ?cent)", masked[match.end() :]) else 1e9
        # A wrong number looks like a right one: no half where there was none, no plural of one, no 160 %.
        fitting = [
            (up, down)
            for up, down in _factors(masked[: match.start()])
            if all((n * up / down).is_integer() >= n.is_integer() and 1 != n * up / down <= most for n in values)
        ]
        if not fitting or {0.0, 1.0} & set(values):
            continue
        up, down = fitting[int(draw("factor", match.start()) * len(fitting))]
        found.append(Change(*match.span(), _PLAIN_NUMBER.sub(partial(_written, up, down), match[0]), "number"))
    return found


def _factors(ahead: str) -> tuple[tuple[int, int], ...]:
    """By what to multiply and divide: "at least 20" would be no harm where it is 10, nor "within 2" where it is 10."""
    larger, smaller = ((3, 1), (5, 1)), ((1, 3), (1, 4), (1, 5))
    return larger if _AT_MOST.search(ahead) else smaller if _AT_LEAST.search(ahead) else larger + smaller


def _written(up: int, down: int, right: re.Match[str]) -> str:
    """A number times ``up`` / ``down`` (a year: some years before), written as it was."""
    like = right[0]
    value = float(_WORDS.get(like.lower()) or like.replace(",", ""))
    value = value - 2 - up if re.fullmatch(r"(?:19|20)\d\d", like) else value * up / down
    if like.lower() in _WORDS:
        return _cased(next((word for word, n in _WORDS.items() if n == value), f"{value:g}"), like)
    return f"{value:,.10g}" if "," in like else f"{value:.10g}"


def _wrong_units(masked: str) -> list[Change]:
    """Another unit behind a number."""
    return [Change(*it.span("unit"), _FALSE_UNITS[it["unit"].lower()], "unit") for it in _UNIT.finditer(masked)]


def _inverted(masked: str) -> list[Change]:
    """Opposites, and prohibitions that become orders."""
    words = ((found, _OPPOSITES[found[0].lower()]) for found in _OPPOSITE.finditer(masked))
    orders = ((found, found["verb"]) for found in _PROHIBITION.finditer(masked))
    return [Change(*found.span(), _cased(after, found[0]), "claim") for found, after in (*words, *orders)]


def _wrong_names(masked: str, context: str, draw: Draw) -> list[Change]:
    """A name that the context holds becomes another one of it."""
    names = sorted({found[0] for found in _NAME.finditer(context)})
    found = []
    for match in _NAME.finditer(masked):
        others = [name for name in names if name not in match[0] and match[0] not in name]
        if match[0] in names and others:
            found.append(Change(*match.span(), others[int(draw("name", match.start()) * len(others))], "name"))
    return found


def _cased(words: str, like: str) -> str:
    """The words with a capital where what they take the place of has one."""
    return words[:1].upper() + words[1:] if like[:1].isupper() else words


def _masked(text: str) -> str:
    """The text with code, tags, addresses and paths as NULs, so that no pattern sees them and all places stay."""
    text = _CODED.sub(lambda found: "\0" * len(found[0]), text)
    return _TOKEN.sub(lambda word: "\0" * len(word[0]) if _ADDRESS.search(word[0]) else word[0], text)
