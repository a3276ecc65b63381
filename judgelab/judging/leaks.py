"""What tells that a development item, shown as an example, would give a judged item away.

Two items are alike if their tasks, or any two of their answers, are near-duplicates by :func:`alikeness`: shared runs
of letters and digits, which case, white space, punctuation, accents and the order of sentences hardly touch. Cosines
of TF-IDF or embeddings rank examples; they do not decide about leaks, for how high they are depends on the model.
"""

from __future__ import annotations

import functools
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judgelab.study.items import Item

__all__ = ["LeakWatch", "alikeness"]

RUN = 5  # letters and digits in a run
SHORT = 20  # letters and digits from which a text is long enough to be recognised inside another


def alikeness(text: str, other: str) -> float:
    """How much of the shorter of two texts is in the other, 0 to 1.

    Of both texts the letters and digits are kept, without case and accents, and cut into overlapping runs of five
    (the normalisation of the contamination check in OpenAI's GPT-4 report, 2023, appendix C). The result is the share
    of the shorter text's different runs that the other has; texts with fewer than 20 letters and digits, which stand
    inside others by chance, are compared by Jaccard's index. Each character that is changed costs up to five runs; a
    sentence in another place costs eight, wherever it goes.

    Returns
    -------
    float
        1 for texts that differ in case, white space, punctuation or accents alone. 0 if one of them is empty. A text
        with no letter or digit is compared by its other characters.

    Examples
    --------
    >>> alikeness("It's 4 o'clock.", "ITS 4 OCLOCK")
    1.0
    >>> alikeness("The bridge was opened in 1932.", "As told: the bridge was opened in 1932, so it is old.")
    1.0
    >>> alikeness("yes", "yes indeed")
    0.0
    """
    return _alikeness(_Text.of(text), _Text.of(other))


class LeakWatch:
    """Tells which development items would give a judged item away.

    Parameters
    ----------
    items
        The development items that can be shown.
    threshold
        The :func:`alikeness`, above 0 and at most 1, from which two texts are near-duplicates.

    Two things that many items share are no sign of a copy. A task that stands over several contexts among ``items`` is
    an instruction: items with it are alike only if their contexts are, too. An answer of fewer than 20 letters and
    digits that several tasks or contexts have ("Yes") is not looked at.
    """

    def __init__(self, items: Sequence[Item], threshold: float) -> None:
        self._threshold = threshold
        self._marks = {item.item_id: _Marks.of(item) for item in items}
        contexts: dict[str, set[str]] = defaultdict(set)
        questions: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for marks in self._marks.values():
            task, context = marks.task.letters, marks.context.letters
            if context:
                contexts[task].add(context)
            for answer in marks.answers:
                questions[answer.letters].add((task, context))
        self._instructions = {task for task, over in contexts.items() if len(over) > 1}
        self._stock = {answer for answer, to in questions.items() if len(to) > 1 and len(answer) < SHORT}

    def over(self, item: Item) -> Callable[[str], bool]:
        """Whether the development item of an id must not be shown with ``item``: it is the item, or is like it."""
        judged = _Marks.of(item)
        instructed = judged.task.letters in self._instructions
        answers = [answer for answer in judged.answers if answer.letters not in self._stock]

        @functools.cache
        def barred(item_id: str) -> bool:
            marks = self._marks[item_id]
            asked = self._alike(judged.task, marks.task)
            if asked and instructed and marks.context.letters:
                asked = self._alike(judged.context, marks.context)
            answered = any(self._alike(answer, other) for answer in answers for other in marks.answers)
            return item_id == item.item_id or asked or answered

        return barred

    def _alike(self, text: _Text, other: _Text) -> bool:
        return _alikeness(text, other) >= self._threshold


@dataclass(frozen=True)
class _Text:
    """A text's letters and digits, and the sorted hashes of its different runs."""

    letters: str
    runs: NDArray[np.uint64]

    @classmethod
    def of(cls, text: str) -> _Text:
        """The marks of a text."""
        folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
        letters = "".join(filter(str.isalnum, folded)) or "".join(folded.split())
        codes = np.frombuffer(letters.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
        length = min(RUN, codes.size)
        runs = np.zeros(codes.size - length + 1 if length else 0, dtype=np.uint64)
        for place in range(length):  # a polynomial modulo 2**64
            runs = runs * np.uint64(0x9E3779B97F4A7C15) + codes[place : place + runs.size]
        return cls(letters, np.unique(runs))


def _alikeness(text: _Text, other: _Text) -> float:
    """See :func:`alikeness`."""
    if not text.letters or not other.letters:
        return 0.0
    if text.letters == other.letters:
        return 1.0
    shared = np.intersect1d(text.runs, other.runs, assume_unique=True).size
    embeddable = min(len(text.letters), len(other.letters)) >= SHORT
    least = min(text.runs.size, other.runs.size)
    return float(shared / (least if embeddable else text.runs.size + other.runs.size - shared))


@dataclass(frozen=True)
class _Marks:
    """What an item is recognised by."""

    task: _Text
    context: _Text
    answers: tuple[_Text, ...]

    @classmethod
    def of(cls, item: Item) -> _Marks:
        """The marks of an item."""
        return cls(_Text.of(item.task), _Text.of(item.reference_context), tuple(map(_Text.of, item.answers.values())))
