"""The degradation ladder: from one good answer, versions each worse than the last by recorded, deterministic edits.

The true order of the versions is known, because each lacks, falsifies or replaces something that the one above it
holds, and nothing that an earlier edit spoilt is mended: a test of rankings. All choices are drawn by a hash of the
seed, the item's id, the rung and the kind of edit, never by a random state.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import NamedTuple, TypeVar

from judgelab.judging.judges.control import uniform
from judgelab.judging.ladder_edits import STOCK, Draw, Step, falsehoods, found_steps, plain_words, vague

__all__ = ["EDITS", "CannotDegrade", "Edited", "degrade", "ladder", "steps"]

EDITS: tuple[str, ...] = ("drop_step", "add_error", "blur", "off_topic", "scramble", "truncate")
"""The kinds of edits that `degrade` knows."""

_T = TypeVar("_T")
_ATTEMPTS = 24  # a ladder whose lower rungs find nothing left to spoil is drawn anew this often
# What carries an edit that may not be lost: to drop or replace it would mend the answer.
_LASTING = frozenset({"add_error", "off_topic", "truncate"})


class CannotDegrade(ValueError):  # noqa: N818
    """The edit cannot be applied to this answer; the message says why in plain words."""


@dataclass(frozen=True)
class Edited:
    """An answer after one edit, and the record of it.

    ``place`` is the number (from 1) of the step or sentence of the old text where the edit begins, as `steps` counts
    them; ``begin`` is the character of the old text where ``before``, the changed span, stood; ``after`` is what
    stands there now. ``what`` says it in a few words. Numbers of later steps that moved up belong to the span.
    """

    text: str
    kind: str
    place: int
    before: str
    after: str
    begin: int
    what: str

    def applied_to(self, old: str) -> str:
        """The recorded edit made in ``old``; for the text that was edited this is ``text``. Raises ValueError where
        ``before`` does not stand at ``begin``."""
        if old[self.begin : self.begin + len(self.before)] != self.before:
            raise ValueError(f"the text does not hold {self.before!r} at character {self.begin}")
        return old[: self.begin] + self.after + old[self.begin + len(self.before) :]


class _Answer(NamedTuple):
    """An answer, its steps, and what earlier edits have done to each of them."""

    text: str
    steps: tuple[Step, ...]
    done: tuple[frozenset[str], ...]
    scrambled: bool

    def words(self, place: int) -> str:
        """The words of a step without its marker."""
        return self.text[self.steps[place].body : self.steps[place].end]

    def open_to(self, *allowed: str) -> list[list[int]]:
        """The places that no edit has touched, and those touched by edits of the allowed kinds alone."""
        places = range(len(self.steps))
        fresh = [place for place in places if not self.done[place]]
        return [fresh, [place for place in places if self.done[place] and self.done[place] <= set(allowed)]]

    def movable(self, least: int, reason: str) -> list[int]:
        """The places from ``least`` on that may go: untouched ones, else blurred ones; never a lead ("Do this:")."""
        for places in self.open_to("blur"):
            found = [place for place in places if place >= least and not self.is_lead(place)]
            if found and len(self.steps) > 1:
                return found
        raise CannotDegrade("the answer is one step or sentence" if len(self.steps) == 1 else reason)

    def is_lead(self, place: int) -> bool:
        """Whether a step only announces what follows."""
        return self.words(place).rstrip("*_ ").endswith((":", "："))

    def edited(self, kind: str, place: int, begin: int, end: int, after: str, what: str) -> Edited:
        """The answer with ``after`` in place of the characters from ``begin`` to ``end``."""
        text = self.text[:begin] + after + self.text[end:]
        return Edited(text, kind, place + 1, self.text[begin:end], after, begin, what)


def steps(answer: str) -> list[str]:
    """The steps (list items, without their markers) and sentences of an answer, in order: the places of edits.

    Code blocks, headings, quotes, tables, HTML and lines without a letter or digit are none. Sentences are cut at white
    space only.

    >>> steps("Do this:\\n1. Open it. Wait.\\n2. Close it.\\nThat is all. Bye.")
    ['Do this:', 'Open it. Wait.', 'Close it.\\nThat is all. Bye.']
    """
    return [answer[step.body : step.end] for step in found_steps(answer)]


def degrade(
    answer: str, kind: str, *, seed: int, item_id: str, rung: int, strangers: Sequence[str] = (), context: str = ""
) -> Edited:
    """The answer made worse by one edit of a kind in `EDITS`, with the record of the edit.

    * ``drop_step``: a step or sentence is left out, never the first, so that the answer is never empty; steps and
      sentences with specifics first. Later numbers of the list move up.
    * ``add_error``: a number, unit, name or claim becomes a false one; first of all one that the ``context`` holds.
    * ``blur``: numbers, conditions and names of one sentence become vague words.
    * ``off_topic``: a step or sentence makes way for one of the ``strangers`` (sentences of other items' answers),
      or of a small stock where there are none; never the only one.
    * ``scramble``: the steps of the longest list, or the sentences, change places; their numbers stay in order.
    * ``truncate``: the answer ends within a sentence of its second half.

    Equal arguments give equal results in every process. Words put in are English. Raises CannotDegrade where the answer
    has nothing for the kind (empty: always; one sentence: unless add_error, blur or truncate), ValueError for others.

    >>> degrade("Wait for 20 minutes.", "blur", seed=1, item_id="q1", rung=1).text
    'Wait for some time.'
    """
    return _degrade(_parsed(answer, {}, False), kind, (seed, item_id, rung, kind), strangers, context)


def ladder(
    answer: str, kinds: Sequence[str | Sequence[str]], *, seed: int, item_id: str, strangers: Sequence[str] = (),
    context: str = "",
) -> list[tuple[Edited, ...]]:  # fmt: skip
    """The rungs below an answer: rung i (from 1) applies ``kinds[i - 1]``, one edit or several, to the last text.

    Returns for each rung its edits in order; the rung's text is that of the last of them. Sentences that no edit has
    touched are spoilt first. A sentence with an error, about something else or cut off is never dropped, replaced or
    edited again, so that nothing is mended (a later ``truncate`` may cut it away, if nothing stands behind it); a
    blurred one may be dropped, falsified or replaced; a second ``scramble`` is refused. If the choices of upper rungs
    leave nothing for a lower one, other choices are tried (24 draws). Deterministic like `degrade`; the same options.

    Raises CannotDegrade (rung, kind, reason) if no draw succeeds, ValueError for an unknown kind or an empty rung.

    >>> rungs = ladder("Wait 20 minutes. Rinse it with 2 litres.", ["blur", "add_error"], seed=1, item_id="q1")
    >>> [rung[-1].text for rung in rungs]
    ['Wait 20 minutes. Rinse it with a certain amount.', 'Wait 20 hours. Rinse it with a certain amount.']
    """
    wanted = [(kind,) if isinstance(kind, str) else tuple(kind) for kind in kinds]
    if not all(wanted):
        raise ValueError("a rung without an edit would not be worse than the one above it")
    for attempt in range(_ATTEMPTS - 1):
        with suppress(CannotDegrade):
            return _one_ladder(answer, wanted, (seed, item_id, attempt), strangers, context)
    return _one_ladder(answer, wanted, (seed, item_id, _ATTEMPTS - 1), strangers, context)


def _one_ladder(
    answer: str, wanted: Sequence[Sequence[str]], key: tuple[int, str, int], strangers: Sequence[str], context: str
) -> list[tuple[Edited, ...]]:
    """The ladder of one draw."""
    seed, item_id, attempt = key
    # The words of every edited sentence with all that was done to them: an edit moves places, but not these words.
    done: dict[str, frozenset[str]] = {}
    rungs: list[tuple[Edited, ...]] = []
    scrambled = False
    for rung, kinds in enumerate(wanted, start=1):
        chain: list[Edited] = []
        for turn, kind in enumerate(kinds):
            old = _parsed(answer, done, scrambled)
            # The first draw of a rung's first edit is that of `degrade`.
            again = (attempt, turn) if attempt or turn else ()
            edited = _degrade(old, kind, (seed, item_id, rung, kind, *again), strangers, context)
            chain.append(edited)
            answer = edited.text
            if kind == "scramble":
                scrambled = True
            elif kind != "drop_step":
                step = [step for step in found_steps(answer) if step.begin <= edited.begin][-1]
                done[answer[step.body : step.end]] = old.done[edited.place - 1] | {kind}
        rungs.append(tuple(chain))
    return rungs


def _degrade(old: _Answer, kind: str, key: tuple[int | str, ...], strangers: Sequence[str], context: str) -> Edited:
    """One edit that respects what was done before."""

    def draw(*purpose: object) -> float:
        return uniform(*key, *purpose)

    make: dict[str, Callable[[], Edited]] = {
        "drop_step": lambda: _drop(old, draw),
        "add_error": lambda: _falsify(old, draw, context),
        "blur": lambda: _blur(old, draw),
        "off_topic": lambda: _stray(old, draw, strangers),
        "scramble": lambda: _scramble(old, draw),
        "truncate": lambda: _truncate(old, draw),
    }
    if kind not in make:
        raise ValueError(f"no edit is called {kind!r}; there are {', '.join(EDITS)}")
    try:
        if old.steps:
            return make[kind]()
        raise CannotDegrade("the answer has no step and no sentence")
    except CannotDegrade as error:
        raise CannotDegrade(f"rung {key[2]}, {kind}: {error}") from None


def _parsed(text: str, done: Mapping[str, frozenset[str]], scrambled: bool) -> _Answer:
    """The answer with its steps, and which of them carry earlier edits.

    A step carries an edit if it holds the edited words or is part of them: an edit may change where sentences end.
    """
    found = tuple(found_steps(text))
    words = [text[step.body : step.end] for step in found]
    marks = ((kinds for old, kinds in done.items() if old in each or each in old) for each in words)
    return _Answer(text, found, tuple(frozenset[str]().union(*every) for every in marks), scrambled)


def _chosen(options: Sequence[_T], draw: Draw, purpose: str = "place") -> _T:
    """One of the options, by hash."""
    return options[int(draw(purpose) * len(options))]


def _drop(old: _Answer, draw: Draw) -> Edited:
    """A step is left out; what holds specifics or stands in a list is needed more surely than a kind word."""
    places = old.movable(1, "no step is left that may go")
    place = _chosen([p for p in places if old.steps[p].indent >= 0 or vague(old.words(p))] or places, draw)
    begin, end = old.steps[place].begin, old.steps[place].end
    ahead = old.text[old.steps[place - 1].end : begin]
    behind = old.text[end : old.steps[place + 1].begin] if place + 1 < len(old.steps) else None
    # Of the gaps beside it the smaller one goes with it, so that paragraphs and lists stay apart.
    if behind is not None and not behind.strip() and (ahead.strip() or len(behind) <= len(ahead)):
        end += len(behind)
    elif not ahead.strip():
        begin -= len(ahead)
    after, last = "", end
    for step, number in _moved_up(old, place):
        after += old.text[last : step.begin] + old.text[step.begin : step.body].replace(
            f"{step.number}", f"{number}", 1
        )
        last = step.body
    return old.edited("drop_step", place, begin, last, after, f"left out: {old.words(place)}")


def _moved_up(old: _Answer, place: int) -> Iterator[tuple[Step, int]]:
    """The later steps of the same list that take the number before theirs."""
    number, indent = old.steps[place].number, old.steps[place].indent
    for step in old.steps[place + 1 :]:
        if step.indent > indent >= 0:
            continue  # a list within a step
        if number < 0 or step.indent < indent or step.number != number + 1:
            return
        yield step, number
        number += 1


def _falsify(old: _Answer, draw: Draw, context: str) -> Edited:
    """Something in a step becomes false: as surely as can be, in an untouched step if there is one."""
    for places in old.open_to("blur"):
        ways = [(place, falsehoods(old.words(place), partial(draw, place), context)) for place in places]
        for grade in range(3):
            able = [(place, grades[grade]) for place, grades in ways if grades[grade]]
            if able:
                place, changes = _chosen(able, draw)
                change, body = _chosen(changes, draw, "change"), old.steps[place].body
                begin, end = body + change.begin, body + change.end
                what = f"false {change.kind}: {old.text[begin:end]} → {change.after}"
                return old.edited("add_error", place, begin, end, change.after, what)
    raise CannotDegrade("no number, unit, name or claim is left to falsify")


def _blur(old: _Answer, draw: Draw) -> Edited:
    """The specifics of a step become vague words; steps with two and more figures first, conditions alone last."""
    ways = [(place, changes) for place in old.open_to()[0] if (changes := vague(old.words(place)))]
    if not ways:
        raise CannotDegrade("no number, name or condition is left to blur")
    weights = [min(2, sum(change.kind == "figure" for change in changes)) for _, changes in ways]
    place, changes = _chosen([way for way, weight in zip(ways, weights, strict=True) if weight == max(weights)], draw)
    words, body = old.words(place), old.steps[place].body
    after, last = "", changes[0].begin
    for change in changes:
        after += words[last : change.begin] + change.after
        last = change.end
    what = f"blurred: {words[changes[0].begin : last]} → {after}"
    return old.edited("blur", place, body + changes[0].begin, body + last, after, what)


def _stray(old: _Answer, draw: Draw, strangers: Sequence[str]) -> Edited:
    """Something else in place of a step."""
    places = old.movable(0, "no step is left to replace")
    own = {plain_words(words) for words in steps(old.text)}
    others = [words for words in dict.fromkeys(map(plain_words, strangers)) if words and words not in own]
    others = others or [words for words in STOCK if words not in own]
    if not others:
        raise CannotDegrade("there is no sentence about something else")
    place, stranger = _chosen(places, draw), _chosen(others, draw, "stranger")
    what = f"about something else: {old.words(place)} → {stranger}"
    return old.edited("off_topic", place, old.steps[place].body, old.steps[place].end, stranger, what)


def _scramble(old: _Answer, draw: Draw) -> Edited:
    """The steps of the longest list or of all the plain text change places; markers and gaps stay."""
    if old.scrambled:
        raise CannotDegrade("the order is wrong already")
    groups: dict[int, list[int]] = {}
    for place, step in enumerate(old.steps):
        if not old.is_lead(place):
            groups.setdefault(step.indent, []).append(place)
    # Steps of a list before sentences around it; a sentence cut off stays the last.
    group = max(groups.items(), key=lambda pair: (pair[0] >= 0 and len(pair[1]) > 1, len(pair[1])), default=(0, []))[1]
    group = [place for place in group if "truncate" not in old.done[place]]
    words = [old.words(place) for place in group]
    if len(set(words)) < 2:
        raise CannotDegrade("there are no two steps or sentences to change places")
    order = _wrong_order(words, draw)
    after, last = "", old.steps[group[0]].body
    for place, moved in zip(group, order, strict=True):
        after += old.text[last : old.steps[place].body] + words[moved]
        last = old.steps[place].end
    what = "put in the order " + " ".join(str(group[moved] + 1) for moved in order)
    return old.edited("scramble", group[0], old.steps[group[0]].body, last, after, what)


def _wrong_order(words: Sequence[str], draw: Draw) -> list[int]:
    """An order in which another step comes first and at least half of the pairs are turned round."""
    for turn in range(20):
        order = sorted(range(len(words)), key=lambda place: draw("order", turn, place))
        turned = sum(one > other for one, other in combinations(order, 2))
        if order[0] and turned * 4 >= len(words) * (len(words) - 1) and words[order[0]] != words[0]:
            return order
    first = next(place for place, each in enumerate(words) if each != words[0])
    return [first, *(place for place in reversed(range(len(words))) if place != first)]


def _truncate(old: _Answer, draw: Draw) -> Edited:
    """Cut off between two words; behind all lasting edits if there is room for it."""
    able = [place for place in range(len(old.steps)) if len(old.words(place).split()) >= 4]
    if not able:
        raise CannotDegrade("no sentence is long enough to be cut off in its middle")
    spoilt = max((place for place, kinds in enumerate(old.done) if kinds & _LASTING), default=-1)
    place = _chosen([at for at in able if at > spoilt and at >= len(old.steps) // 2] or able[-1:], draw)
    tokens = [*re.finditer(r"\S+", old.words(place))]
    least, most = max(1, len(tokens) // 3), max(2, len(tokens) * 2 // 3)
    kept = least + int(draw("words") * (most - least + 1))
    token = tokens[min(kept, len(tokens) - 1) - 1]
    cut = old.steps[place].body + token.start() + len(token[0].rstrip(".,;:!?…") or token[0])
    what = f"cut off behind: {old.text[old.steps[place].body : cut]}"
    return old.edited("truncate", place, cut, len(old.text), "", what)
