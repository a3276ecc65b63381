"""What a probe does to an answer, for the eye: the text before and after side by side, with the changes marked.

Answers are untrusted. Everything of theirs is escaped, control characters are shown as text, and long answers are cut
down to the places that changed before they are compared, so that no answer can make the table slow or large.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import pandas as pd

from judgelab.report.formulas import without_formulas
from judgelab.report.plots_bias import PROBE_NAMES

__all__ = ["Transformations", "transformations_table"]

COLUMNS = ("probe", "item_id", "system", "before", "after", "words_added")
LIMIT = 500  # characters on each side, about
COMPARED = 1500  # characters that are compared word by word: three times of what is shown
PRECISE = 300_000  # pairs of words up to which every word is an anchor
AROUND = 60  # characters of unchanged text that are kept beside a change
CHANGED = 200  # characters of one change that are shown
GAP = " … "
# Words with the space behind them are cut at spaces, and at the full stops of scripts without spaces.
_WORDS = re.compile(r"\s+|[^\s。，、！？；：]+[。，、！？；：]*|[。，、！？；：]+")
_STOPS = frozenset("。，、！？；：")
_JOINERS = frozenset("\u200c\u200d")  # emoji and several scripts need them
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co"})  # controls, marks of direction, half characters, tags
_CELL = ' style="text-align:left;vertical-align:top;white-space:pre-wrap"'  # for JupyterLab; report.css says the same


@dataclass(frozen=True)
class _Part:
    """A run of text: ``before`` and ``after`` are equal where nothing changed; ``GAP`` stands for what is cut out."""

    before: str
    after: str

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True)
class _Row:
    """One probe as it is shown."""

    name: str
    where: str
    parts: tuple[_Part, ...]
    remark: str


class Transformations:
    """The rows of :func:`transformations_table`, shown as a table in a notebook and as text elsewhere."""

    def __init__(self, rows: Sequence[_Row]) -> None:
        self._rows = tuple(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        if not self._rows:
            return NOTHING
        blocks = []
        for row in self._rows:
            before = "".join(f"[-{part.before}-]" if part.changed else part.before for part in row.parts if part.before)
            after = "".join(f"{{+{part.after}+}}" if part.changed else part.after for part in row.parts if part.after)
            lines = [f"{row.name} ({row.where})", *([f"  {row.remark}"] if row.remark else [])]
            lines += [f"  {side}: {_one_line(text)}" for side, text in (("before", before), ("after", after))]
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks)

    def _repr_html_(self) -> str:
        if not self._rows:
            return f'<p class="sentence">{html.escape(NOTHING)}</p>'
        body = "".join(
            f'<tr><th scope="row"{_CELL}>{html.escape(row.name)}<br><small>{html.escape(row.where)}</small>'
            f"{f'<br><small>{html.escape(row.remark)}</small>' if row.remark else ''}</th>"
            f'<td class="answer" dir="auto"{_CELL}>{_marked(row.parts, "del")}</td>'
            f'<td class="answer" dir="auto"{_CELL}>{_marked(row.parts, "ins")}</td></tr>'
            for row in self._rows
        )
        head = '<th scope="col">probe</th><th scope="col">before</th><th scope="col">after</th>'
        caption = "<caption>Struck out: taken away. Underlined: added. …: left out here.</caption>"
        table = f'<table class="transformations">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        return without_formulas(table)


NOTHING = "No probe of this study changes an answer."


def transformations_table(shown: pd.DataFrame) -> Transformations:
    """The answers that probes changed, before and after, with the changes marked.

    Parameters
    ----------
    shown
        One row for each probe: probe, item_id, system, before, after (texts; missing is empty), words_added (a number
        or missing).

    Returns
    -------
    Transformations
        Rows in the order given. Changes are marked word by word with ``<del>`` and ``<ins>`` (as text: ``[-…-]`` and
        ``{+…+}``). Of long answers the surroundings of changes are shown, about 500 characters on each side; where
        more than 1500 characters lie between the first and the last change, what lies behind them is not compared,
        and the row says so. The output depends on the table alone. An empty table says that nothing is changed.

    Raises
    ------
    ValueError
        If a column is missing.

    Examples
    --------
    >>> transformations_table(pd.DataFrame({"probe": ["surface_noise"], "item_id": ["a"], "system": ["X"],
    ...     "before": ["I receive it."], "after": ["I recieve it."], "words_added": [0]}))
    surface noise: typos in the better (item a, X, 0 words added)
      before: I [-receive-] it.
      after: I {+recieve+} it.
    """
    missing = [name for name in COLUMNS if name not in shown.columns]
    if missing:
        raise ValueError(f"shown: columns are missing: {', '.join(missing)}; needed are {', '.join(COLUMNS)}")
    return Transformations([_row(line) for _, line in shown.iterrows()])


def _row(line: pd.Series) -> _Row:
    before, after = ("" if pd.isna(line[name]) else str(line[name]) for name in ("before", "after"))
    parts, whole = _parts(before, after)
    probe, added = str(line["probe"]), line["words_added"]
    words = "" if pd.isna(added) else f", {int(added)} {'word' if int(added) == 1 else 'words'} added"
    where = f"item {line['item_id']}, {line['system']}{words}"
    remark = "" if any(part.changed for part in parts) else "nothing changed"
    if not whole:
        remark = f"only {COMPARED} characters from the first change on are compared"
    name = PROBE_NAMES.get(probe, probe.replace("_", " "))
    return _Row(_plain(name), _plain(where), tuple(_shortened(parts)), remark)


def _parts(before: str, after: str) -> tuple[list[_Part], bool]:
    """Equal and changed runs of the whole texts in order, and whether all of both was compared."""
    start = _common_words(before, after)
    behind = _common_words(before[start:][::-1], after[start:][::-1])
    middle = [text[start : len(text) - behind] for text in (before, after)]
    parts, whole = _middle(*middle)
    tail = before[len(before) - behind :]
    found = [_Part(before[:start], before[:start]), *parts, _Part(tail, tail)]
    return [part for part in found if part.before or part.after], whole


def _common_words(one: str, other: str) -> int:
    """The length of the common beginning, without a word that is not wholly in it."""
    end, beyond = 0, min(len(one), len(other)) + 1
    while beyond - end > 1:
        half = (end + beyond) // 2
        end, beyond = (half, beyond) if one[end:half] == other[end:half] else (end, half)
    if end == len(one) == len(other):
        return end
    while end and not _ends_word(one[end - 1]):
        end -= 1
    return end


def _ends_word(char: str) -> bool:
    return char.isspace() or char in _STOPS


def _middle(before: str, after: str) -> tuple[list[_Part], bool]:
    """The runs between the first and the last change."""
    if not before or not after:
        return [_Part(before, after)], True
    for long, short, turned in ((after, before, False), (before, after, True)):
        place = long.find(short)  # text that was only added around it, whatever its length
        if place >= 0 and all(
            not text or _ends_word(text) for text in (long[:place][-1:], long[place + len(short) :][:1])
        ):
            around = long[:place], long[place + len(short) :]
            ends = [(text, "") if turned else ("", text) for text in around]
            return [_Part(*ends[0]), _Part(short, short), _Part(*ends[1])], True
    if max(len(before), len(after)) <= COMPARED:
        return _compared(before, after), True
    parts = _compared(before[:COMPARED], after[:COMPARED])
    if len(parts) > 1 and parts[-1].changed:
        parts = parts[:-1]  # what only one of the two windows reaches is no change
    return [*parts, _Part(GAP, GAP)], False


def _compared(before: str, after: str) -> list[_Part]:
    """The runs of two short texts, compared word by word."""
    old, new = (_WORDS.findall(text) for text in (before, after))
    # Of many words, those that are frequent (difflib: 1 % and more) are no anchors; the time would be cubic with them.
    found = SequenceMatcher(None, old, new, autojunk=len(old) * len(new) > PRECISE).get_opcodes()
    return _joined([_Part("".join(old[a:b]), "".join(new[c:d])) for _, a, b, c, d in found])


def _joined(parts: Sequence[_Part]) -> list[_Part]:
    """Changes with only a space between them are one change."""
    found: list[_Part] = []
    for part in parts:
        if len(found) > 1 and part.changed and not found[-1].changed and found[-1].before.isspace():
            space, last = found.pop(), found.pop()
            found.append(_Part(last.before + space.before + part.before, last.after + space.after + part.after))
        else:
            found.append(part)
    return found


def _shortened(parts: Sequence[_Part]) -> Iterator[_Part]:
    """The surroundings of the changes, as many as the limit lets in."""
    first = next((i for i, part in enumerate(parts) if part.changed), None)
    if first is None:
        text = "".join(part.before for part in parts)
        yield _same(text if len(text) <= LIMIT else text[: LIMIT // 2] + GAP + text[-LIMIT // 2 :])
        return
    lengths = [0, 0]
    for i, part in enumerate(parts):
        if part.changed:
            kept = _Part(_cut(part.before, CHANGED), _cut(part.after, CHANGED))
        else:
            ends = (AROUND if i else 0), (AROUND if i + 1 < len(parts) else 0)
            room = sum(ends) if len(parts) > 1 else LIMIT
            kept = _same(part.before if len(part.before) <= room + AROUND else _around(part.before, *ends))
        lengths = [lengths[0] + len(kept.before), lengths[1] + len(kept.after)]
        if i > first and max(lengths) > LIMIT:
            yield _same(GAP)
            return
        yield kept


def _around(text: str, begin: int, end: int) -> str:
    """The beginning and the end of a text."""
    return text[:begin] + GAP + (text[-end:] if end else "")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else _around(text, limit * 2 // 3, limit // 3)


def _same(text: str) -> _Part:
    return _Part(text, text)


def _plain(text: str) -> str:
    """Text that cannot act: controls and marks of direction are shown by their number, half characters replaced."""
    shown = []
    for char in text:
        if char in "\n\t" or char in _JOINERS or unicodedata.category(char) not in _HIDDEN:
            shown.append(char)
        elif char != "\r":
            shown.append(f"⟨U+{ord(char):04X}⟩")
    return "".join(shown)


def _one_line(text: str) -> str:
    return _plain(text).replace("\n", " ↵ ")


def _marked(parts: Sequence[_Part], tag: str) -> str:
    """One side as HTML; line breaks within a change are shown, for they may be all that it is."""
    shown = []
    for part in parts:
        text = part.before if tag == "del" else part.after
        if not text:
            continue
        plain = html.escape(_plain(text))
        shown.append(f"<{tag}>{plain.replace(chr(10), '↵' + chr(10))}</{tag}>" if part.changed else plain)
    return "".join(shown)
