"""Labelled development items as examples in prompts; :mod:`judgelab.judging.leaks` keeps out copies of judged items."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.errors import DataError
from judgelab.judging.leaks import LeakWatch
from judgelab.judging.wording import Example
from judgelab.study.battery import FewShot, RetrievedExamples
from judgelab.study.items import Item
from judgelab.study.protocol import TIE, Study
from judgelab.study.randomisation import call_order

__all__ = [
    "Examples",
    "Pool",
    "Similarity",
    "TfidfSimilarity",
    "example_pool",
    "few_shot",
    "question",
    "retrieved",
]

Examples = Callable[[Item], tuple[Example, ...]]  # the examples in the prompt about an item
Strategy = Literal["pairwise", "direct"]
LABELS = ("A", "B", TIE)
# a word; in scripts without spaces, a character: its pairs are what words are elsewhere
TOKEN = r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+"


class Similarity(Protocol):
    """How alike texts are, for :func:`retrieved`."""

    def between(self, text: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Cosine similarities of ``text`` to each of ``texts``, shape (n,), -1 to 1, higher is more alike."""
        ...


@dataclass(frozen=True)
class Pool:
    """The labelled development items of a study, made by :func:`example_pool`.

    Attributes
    ----------
    strategy : str
        ``"pairwise"`` or ``"direct"``.
    examples : tuple of Example
        Every candidate, by item id; an item can have several.
    items : tuple of Item
        The development items that the examples are from, by id.
    seed : int
        The protocol's seed, for draws by lot.
    note : str
        How many items and examples there are, by label; what was done to scores.
    """

    strategy: Strategy
    examples: tuple[Example, ...]
    items: tuple[Item, ...]
    seed: int
    note: str


class TfidfSimilarity:
    """Cosine similarity of TF-IDF vectors of words and pairs of words, fitted on development items alone.

    Parameters
    ----------
    texts
        The questions of the development items (see :func:`question`). Words that stand in none of them count for
        nothing; without any word all similarities are 0.

    Examples
    --------
    >>> TfidfSimilarity(["boil an egg", "fix a bike"]).between("an egg", ["boil an egg", "fix a bike"]).round(2)
    array([0.77, 0.  ])
    """

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer  # costs a second

        self._texts = tuple(texts)
        self._vectorizer: Any = TfidfVectorizer(ngram_range=(1, 2), token_pattern=TOKEN)
        try:
            self._fitted: Any = self._vectorizer.fit_transform(self._texts)
        except ValueError:  # an empty vocabulary
            self._fitted = None

    def between(self, text: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Similarities of ``text`` to each of ``texts``, shape (n,), 0 to 1."""
        if self._fitted is None or not texts:
            return np.zeros(len(texts))
        others = self._fitted if tuple(texts) == self._texts else self._vectorizer.transform(texts)
        cosines = others @ self._vectorizer.transform([text]).T
        return np.asarray(cosines.toarray(), dtype=np.float64).ravel()


def question(item: Item) -> str:
    """The text by which items are found: the task, and the context after an empty line."""
    return f"{item.task}\n\n{item.reference_context}".strip()


def example_pool(items: Sequence[Item], reference: pd.DataFrame, study: Study, strategy: Strategy) -> Pool:
    """Make the candidates for examples out of the labelled development items.

    Parameters
    ----------
    items
        Items of any split; none but those with the split ``"development"`` are used.
    reference
        One row per item and pair: item_id, system_x, system_y, human (a system, TIE, or NaN), and for direct scoring
        human_score_x and human_score_y (NaN where people did not score). Rows of other items are ignored.
    study
        The protocol, for its labels, scales and seed.
    strategy
        ``"pairwise"``: an example for each item and pair with a label, in the order in which the original pass shows
        it; ties only where the protocol allows them. ``"direct"``: one for each answer with a score, which is its
        mean over the pairs it is in, to two decimals, moved to the judge's scale if people scored on another one.

    Raises
    ------
    DataError
        If a column is missing, a label is none of the pair's, a pair is unknown or has two rows.
    """
    development = {item.item_id: item for item in items if item.split == "development"}
    rows = _rows(reference, development, strategy)
    found, note = _compared(rows, development, study) if strategy == "pairwise" else _scored(rows, development, study)
    used = {example.item_id for example in found}
    counts = Counter(example.label for example in found)
    labels = ", ".join(f"{label}: {counts[label]}" for label in sorted(counts, key=_rank))
    told = f"{len(used)} of {len(development)} development items have a human {_LABELLED[strategy]}"
    told += f"; {len(found)} examples ({labels})" if found else "; prompts have no examples"
    return Pool(
        strategy=strategy,
        examples=tuple(sorted(found, key=lambda example: example.item_id)),
        items=tuple(development[item_id] for item_id in sorted(used)),
        seed=study.random_seed,
        note=told + note,
    )


def few_shot(pool: Pool, repair: FewShot) -> Examples:
    """The same examples in the same order for every item, spanning the scale.

    Comparisons: labels A, B and TIE in turn, as evenly as the pool allows. Direct scores: from the lowest to the
    highest, at quantiles of the different scores there are. Which item stands for a label is drawn by the protocol's
    seed; no item stands twice.

    Returns
    -------
    Callable
        From an item to at most ``repair.examples`` examples; fewer, or none, where the pool has no more. An example
        that is the item or a near-duplicate of it (``repair.near_duplicate``) gives its place to the next candidate,
        of the same label or the nearest score if there is one; all others keep theirs.
    """
    queue, watch = _by_lot(pool), LeakWatch(pool.items, repair.near_duplicate)
    wanted = _wanted(pool, repair.examples)
    usual = _filled(wanted, queue, {}, lambda item_id: False)

    def examples(item: Item) -> tuple[Example, ...]:
        barred = watch.over(item)
        kept = {place: example for place, example in usual.items() if not barred(example.item_id)}
        filled = _filled(wanted, queue, kept, barred) if len(kept) < len(usual) else kept
        return tuple(filled[place] for place in sorted(filled))

    return examples


def retrieved(pool: Pool, repair: RetrievedExamples, similarity: Similarity) -> Examples:
    """The labelled development items whose questions are most alike to the judged item's.

    Returns
    -------
    Callable
        From an item to at most ``repair.examples`` examples, the most alike last; of equals, the smaller id counts
        as more alike. One example an item: which, is drawn by the protocol's seed. The item itself and its
        near-duplicates (``repair.near_duplicate``, by :func:`alikeness`) are left out.
    """
    drawn = {example.item_id: example for example in reversed(_by_lot(pool))}
    watch, texts = LeakWatch(pool.items, repair.near_duplicate), tuple(question(item) for item in pool.items)

    def examples(item: Item) -> tuple[Example, ...]:
        if not texts:
            return ()
        near = np.round(similarity.between(question(item), texts), 9)  # what differs by rounding is equal
        ranked = sorted(range(len(texts)), key=lambda number: (-near[number], pool.items[number].item_id))
        barred, chosen = watch.over(item), list[Example]()
        for number in ranked:
            if len(chosen) < repair.examples and not barred(pool.items[number].item_id):
                chosen.append(drawn[pool.items[number].item_id])
        return tuple(reversed(chosen))

    return examples


# --- the pool

_LABELLED = {"pairwise": "label that the protocol allows", "direct": "score"}
_Row = tuple[str, str, str, Any, Any, Any]


def _rows(reference: pd.DataFrame, development: Mapping[str, Item], strategy: Strategy) -> list[_Row]:
    """The reference of development items: id, pair, label, both scores; checked."""
    names = ["item_id", "system_x", "system_y", *(["human"] if strategy == "pairwise" else _SCORES)]
    missing = [name for name in names if name not in reference]
    if missing:
        raise DataError(f"examples: the reference labels have no column {', '.join(missing)}")
    table = reference[reference["item_id"].isin(list(development))].reindex(columns=[*names[:3], "human", *_SCORES])
    rows: list[_Row] = list(table.itertuples(index=False, name=None))
    for (item_id, x, y), count in Counter(row[:3] for row in rows).items():
        if count > 1 or (x, y) not in development[item_id].first:
            problem = f"has {count} reference labels" if count > 1 else "is no pair of this item"
            raise DataError(f"examples: item {item_id}, {x} and {y}: {problem}; one row per item and pair is needed")
    return rows


_SCORES = ["human_score_x", "human_score_y"]


def _compared(rows: Sequence[_Row], items: Mapping[str, Item], study: Study) -> tuple[list[Example], str]:
    """An example for each labelled pair."""
    found: list[Example] = []
    for item_id, x, y, human, *_ in rows:
        if not isinstance(human, str):  # nobody decided
            continue
        if human not in (x, y, TIE):
            raise DataError(f"examples: item {item_id}: the label {human} is neither {x} nor {y} nor {TIE}")
        item = items[item_id]
        first = item.first[x, y]
        shown = (first, y if first == x else x)
        label = TIE if human == TIE else "AB"[shown.index(human)]
        if label in study.pairwise_labels:
            found.append(_example(item, shown, label))
    return found, ""


def _scored(rows: Sequence[_Row], items: Mapping[str, Item], study: Study) -> tuple[list[Example], str]:
    """An example for each scored answer, on the judge's scale."""
    given: dict[tuple[str, str], list[float]] = defaultdict(list)
    for item_id, x, y, _, *scores in rows:
        for system, score in zip((x, y), scores, strict=True):
            if not pd.isna(score):
                given[item_id, system].append(float(score))
    scale, people = study.direct_scale, study.human_labels
    low, high = (people.score_minimum, people.score_maximum) if people else (scale.minimum, scale.maximum)
    same = (low, high) == (scale.minimum, scale.maximum) or high <= low
    found: list[Example] = []
    for (item_id, system), values in given.items():
        score = math.fsum(values) / len(values)
        if not same:
            score = scale.minimum + (score - low) / (high - low) * (scale.maximum - scale.minimum)
        found.append(_example(items[item_id], (system,), f"{round(score, 2) + 0.0:g}"))  # + 0.0: no "-0"
    if same or not found:
        return found, ""
    return found, f"; people's scores, {low:g} to {high:g}, are moved to {scale.minimum} to {scale.maximum}"


def _example(item: Item, shown: tuple[str, ...], label: str) -> Example:
    answers = tuple(item.answers[system] for system in shown)
    return Example(item.item_id, item.task, item.reference_context, answers, label)


# --- choosing


def _by_lot(pool: Pool) -> list[Example]:
    """All candidates in an order drawn by the seed, which no order of lines changes."""
    named = {("example", each.item_id, each.label, *each.answers): each for each in pool.examples}
    return [named[key] for key in call_order(pool.seed, list(named))]


def _wanted(pool: Pool, size: int) -> list[str]:
    """The label that each place is to have."""
    size = min(size, len(pool.items))
    room = Counter(label for _, label in {(each.item_id, each.label) for each in pool.examples})
    labels = sorted(room, key=_rank)
    if pool.strategy == "direct":
        last = len(labels) - 1
        if size == 1:
            return [labels[last // 2]]
        if size > last:
            return [labels[place * len(labels) // size] for place in range(size)]
        return [labels[int(place * last / (size - 1) + 0.5)] for place in range(size)]
    wanted: list[str] = []
    while len(wanted) < size:
        turn = [label for label in labels if room[label]][: size - len(wanted)]
        wanted += turn
        room.subtract(turn)
    return wanted


def _filled(
    wanted: Sequence[str], queue: Sequence[Example], kept: Mapping[int, Example], barred: Callable[[str], bool]
) -> dict[int, Example]:
    """Examples by place: ``kept``, and the best candidate for each other place; the rarest labels choose first."""
    chosen, used = dict(kept), {example.item_id for example in kept.values()}
    supply = Counter(example.label for example in queue)
    for place in sorted(range(len(wanted)), key=lambda place: (supply[wanted[place]], place)):
        if place not in chosen:
            for example in sorted(queue, key=lambda each: _away(wanted[place], each.label)):
                if example.item_id not in used and not barred(example.item_id):
                    chosen[place] = example
                    used.add(example.item_id)
                    break
    return chosen


def _rank(label: str) -> float:
    """A label's place in the order A, B, TIE, or the score that it is."""
    return LABELS.index(label) if label in LABELS else float(label)


def _away(wanted: str, label: str) -> float:
    """How far a label is from the wanted one: other labels are all as far, scores differ by their difference."""
    return float(wanted != label) if label in LABELS else abs(_rank(wanted) - _rank(label))
