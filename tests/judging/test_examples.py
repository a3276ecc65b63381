"""Examples in prompts: which are chosen, in which order, and that none gives the judged item away."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from judgelab.errors import DataError
from judgelab.judging.examples import Pool, TfidfSimilarity, example_pool, few_shot, question, retrieved
from judgelab.judging.leaks import alikeness
from judgelab.judging.wording import Example
from judgelab.study.battery import FewShot, RetrievedExamples
from judgelab.study.items import Item
from judgelab.study.protocol import Study

NAN = float("nan")
X, Y = "ALPHA", "BETA"
TOPICS = (  # noqa: SIM905
    "bread ferry lichen harbour violin glacier monsoon parliament saffron comet tractor sonnet kelp volcano quartz "
    "piano beetle tundra chess marble"
).split()
STORY = (
    "The ferry leaves the harbour at seven in the morning. Passengers queue along the eastern pier with bicycles. "
    "Nobody may board before the captain has rung the bell twice. Coffee is sold on the upper deck until noon. "
    "The crossing takes two hours when the wind is calm. Dogs travel free of charge if they are kept on a lead."
)


def item(number: int, split: str = "development", first: str = X, **changes: Any) -> Item:
    """An item about a topic of its own, whose texts share little with any other's."""
    topic = TOPICS[number % len(TOPICS)]
    values = {
        "item_id": f"i{number:03d}",
        "task": f"{topic.title()}, {topic}s and the {topic} trade: what matters?",
        "reference_context": "",
        "category": "all",
        "answers": {X: f"{topic} is {topic}-like, {topic} {number}", Y: f"No {topic}; {topic}ness, {number} {topic}"},
        "sha256": f"{number:064d}",
        "split": split,
        "first": {(X, Y): first},
    }
    return Item(**(values | changes))


def labels(rows: Sequence[tuple[str, str | float]], scores: dict[str, tuple[float, float]] | None = None) -> Any:
    """Reference labels of one pair."""
    scores = scores or {}
    return pd.DataFrame(
        [(item_id, X, Y, human, *scores.get(item_id, (NAN, NAN))) for item_id, human in rows],
        columns=["item_id", "system_x", "system_y", "human", "human_score_x", "human_score_y"],
    )


@pytest.fixture
def study(study_of: Callable[..., Study]) -> Study:
    """A protocol for two systems, scales 1 to 5."""
    return study_of([{"name": "r", "kind": "control", "rule": "longest"}])


@pytest.fixture
def pool_of(study: Study) -> Callable[..., Pool]:
    """Maker of a pool of comparisons."""

    def make(items: Sequence[Item], humans: Sequence[str | float]) -> Pool:
        named = [(each.item_id, human) for each, human in zip(items, humans, strict=True)]
        return example_pool(items, labels(named), study, "pairwise")

    return make


def ids(examples: Sequence[Example]) -> list[str]:
    return [example.item_id for example in examples]


JUDGED = item(19, "evaluation", item_id="judged")
SHOTS = FewShot(kind="few_shot", examples=3)


# --- the pool


def test_pair_is_shown_in_its_drawn_order_and_labelled_by_place(pool_of: Callable[..., Pool]) -> None:
    items = [item(0), item(1, first=Y), item(2, first=Y), item(3)]
    pool = pool_of(items, [X, X, "TIE", NAN])
    assert [(each.item_id, each.label) for each in pool.examples] == [("i000", "A"), ("i001", "B"), ("i002", "TIE")]
    assert pool.examples[0].answers == (items[0].answers[X], items[0].answers[Y])
    assert pool.examples[1].answers == (items[1].answers[Y], items[1].answers[X])
    assert pool.note == (
        "3 of 4 development items have a human label that the protocol allows; 3 examples (A: 1, B: 1, TIE: 1)"
    )


def test_evaluation_items_never_enter_the_pool(study: Study) -> None:
    items = [item(0), item(1, "evaluation"), item(2, "")]
    table = labels([(each.item_id, X) for each in items], {each.item_id: (4, 2) for each in items})
    for strategy in ("pairwise", "direct"):
        pool = example_pool(items, table, study, strategy)
        assert {each.item_id for each in (*pool.examples, *pool.items)} == {"i000"}


def test_ties_are_skipped_where_the_protocol_has_none(study: Study) -> None:
    without = study.model_copy(update={"pairwise_labels": ("A", "B")})
    pool = example_pool([item(0), item(1)], labels([("i000", "TIE"), ("i001", Y)]), without, "pairwise")
    assert ids(pool.examples) == ["i001"]


def test_scores_become_text(study: Study) -> None:
    scores = {"i000": (4.0, 3.5), "i001": (NAN, 11 / 3)}
    pool = example_pool([item(0), item(1)], labels([("i000", X), ("i001", NAN)], scores), study, "direct")
    assert [(each.item_id, each.label) for each in pool.examples] == [("i000", "4"), ("i000", "3.5"), ("i001", "3.67")]
    assert pool.examples[1].answers == (item(0).answers[Y],)
    assert pool.note == "2 of 2 development items have a human score; 3 examples (3.5: 1, 3.67: 1, 4: 1)"


def test_scores_on_another_scale_are_moved(study_of: Callable[..., Study]) -> None:
    people = {"path": "params/labels.csv", "provenance": "human", "score_minimum": 0, "score_maximum": 100}
    study = study_of([{"name": "r", "kind": "control", "rule": "longest"}], human_labels=people)
    pool = example_pool([item(0)], labels([("i000", X)], {"i000": (100, 50)}), study, "direct")
    assert [each.label for each in pool.examples] == ["5", "3"]
    assert pool.note.endswith("; people's scores, 0 to 100, are moved to 1 to 5")


def test_answer_scored_in_several_pairs_gets_the_mean(study_of: Callable[..., Study]) -> None:
    study = study_of([{"name": "r", "kind": "control", "rule": "longest"}], systems={X: {}, Y: {}, "GAMMA": {}})
    pairs = list(itertools.combinations((X, Y, "GAMMA"), 2))
    three = replace(item(0), answers={X: "a", Y: "b", "GAMMA": "c"}, first={pair: pair[0] for pair in pairs})
    table = pd.DataFrame(
        [("i000", *pair, pair[0], 4, 2 + number) for number, pair in enumerate(pairs)],
        columns=["item_id", "system_x", "system_y", "human", "human_score_x", "human_score_y"],
    )
    pool = example_pool([three], table, study, "direct")  # ALPHA 4, 4; BETA 2, 4; GAMMA 3, 4
    assert {each.answers: each.label for each in pool.examples} == {("a",): "4", ("b",): "3", ("c",): "3.5"}
    shown = few_shot(example_pool([three], table, study, "pairwise"), SHOTS)(JUDGED)
    assert len(shown) == 1  # an item has one example at most, though three pairs


@pytest.mark.parametrize("strategy", ["pairwise", "direct"])
def test_without_labels_there_are_no_examples(study: Study, strategy: Any) -> None:
    for items in ([], [item(0)]):
        pool = example_pool(items, labels([("i000", NAN)]), study, strategy)
        assert (pool.examples, pool.items) == ((), ())
        assert pool.note.endswith("; prompts have no examples")
        assert few_shot(pool, SHOTS)(JUDGED) == ()
        assert retrieved(pool, RetrievedExamples(kind="retrieved_examples"), TfidfSimilarity([]))(JUDGED) == ()


def test_unusable_references_are_named(study: Study) -> None:
    table = labels([("i000", X)])
    with pytest.raises(DataError, match=r"no column human$"):
        example_pool([item(0)], table.drop(columns="human"), study, "pairwise")
    with pytest.raises(DataError, match="no column human_score_x, human_score_y"):
        example_pool([item(0)], table.iloc[:, :4], study, "direct")
    with pytest.raises(DataError, match="GAMMA is neither ALPHA nor BETA nor TIE"):
        example_pool([item(0)], labels([("i000", "GAMMA")]), study, "pairwise")
    with pytest.raises(DataError, match="has 2 reference labels"):
        example_pool([item(0)], pd.concat([table, table]), study, "pairwise")
    with pytest.raises(DataError, match="no pair of this item"):
        example_pool([item(0)], table.rename(columns={"system_x": "system_y", "system_y": "system_x"}), study, "direct")


# --- few shot


def test_labels_stand_in_turn_as_evenly_as_there_are(pool_of: Callable[..., Pool]) -> None:
    pool = pool_of([item(number) for number in range(10)], [X] * 6 + [Y] * 3 + ["TIE"])
    for size, wanted in ((1, "A"), (2, "A B"), (3, "A B TIE"), (6, "A B TIE A B A"), (10, "A B TIE A B A B A A A")):
        shown = few_shot(pool, FewShot(kind="few_shot", examples=size))(JUDGED)
        assert [each.label for each in shown] == wanted.split()
        assert len(set(ids(shown))) == size
    assert len(few_shot(pool, FewShot(kind="few_shot", examples=20))(JUDGED)) == 10  # as many as there are


@pytest.mark.parametrize(
    ("size", "wanted"), [(1, "3"), (2, "1 5"), (3, "1 3 5"), (4, "1 2 4 5"), (5, "1 2 3 4 5"), (7, "1 1 2 3 3 4 5")]
)
def test_scores_are_spread_over_the_scale(study: Study, size: int, wanted: str) -> None:
    # two answers an item, scores 1 to 5; 4 places among 5 scores: ranks 0, 4/3, 8/3, 4, rounded 0, 1, 3, 4
    items = [item(number) for number in range(15)]
    scores = {each.item_id: (1 + number % 5, 1 + (number + 2) % 5) for number, each in enumerate(items)}
    pool = example_pool(items, labels([(name, X) for name in scores], scores), study, "direct")
    shown = few_shot(pool, FewShot(kind="few_shot", examples=size))(JUDGED)
    assert [each.label for each in shown] == wanted.split()
    assert len(set(ids(shown))) == size


def test_order_of_lines_and_of_systems_changes_nothing_and_the_seed_does(study: Study) -> None:
    items = [item(number) for number in range(20)]
    table = labels([(each.item_id, (X, Y)[number % 2]) for number, each in enumerate(items)])
    usual = few_shot(example_pool(items, table, study, "pairwise"), SHOTS)(JUDGED)
    turned = example_pool(items[::-1], table.sample(frac=1, random_state=1), study, "pairwise")
    assert few_shot(turned, SHOTS)(JUDGED) == usual
    seeds = [study.model_copy(update={"random_seed": seed}) for seed in range(8)]
    drawn = {tuple(ids(few_shot(example_pool(items, table, each, "pairwise"), SHOTS)(JUDGED))) for each in seeds}
    assert len(drawn) > 4


def test_only_the_place_of_a_leak_changes(pool_of: Callable[..., Pool]) -> None:
    items = [item(number) for number in range(18)]
    pool = pool_of(items, [X, Y, "TIE"] * 6)
    examples = few_shot(pool, FewShot(kind="few_shot", examples=6))
    usual = examples(JUDGED)
    assert examples(item(18, "evaluation", item_id="another")) == usual
    for place, leaked in enumerate(usual):
        twin = item(int(leaked.item_id[1:]), "evaluation", item_id="twin")
        shown = examples(twin)
        assert [one == other for one, other in zip(shown, usual, strict=True)] == [n != place for n in range(6)]
        assert shown[place].label == leaked.label


def test_leak_without_a_next_candidate_leaves_fewer(pool_of: Callable[..., Pool]) -> None:
    pool = pool_of([item(0), item(1)], [X, Y])
    assert ids(few_shot(pool, SHOTS)(item(0))) == ["i001"]  # a development item is no example for itself
    assert few_shot(pool_of([item(0)], [X]), SHOTS)(item(0, "evaluation", item_id="other")) == ()


@settings(max_examples=40, deadline=None)
@given(
    humans=st.lists(st.sampled_from([X, Y, "TIE"]), min_size=1, max_size=12),
    size=st.integers(1, 14),
    judged=st.integers(0, 11),
)
def test_labels_are_as_even_as_a_naive_twin_makes_them(humans: list[str], size: int, judged: int) -> None:
    items = tuple(item(number) for number in range(len(humans)))
    label = {X: "A", Y: "B", "TIE": "TIE"}
    found = tuple(
        Example(each.item_id, each.task, "", tuple(each.answers.values()), label[human])
        for each, human in zip(items, humans, strict=True)
    )
    pool = Pool(strategy="pairwise", examples=found, items=items, seed=1, note="")
    repair = FewShot.model_construct(kind="few_shot", name="x", examples=size, near_duplicate=0.8)
    shown = few_shot(pool, repair)(JUDGED)
    counts, supply = Counter(each.label for each in shown), Counter(each.label for each in found)
    assert len(shown) == min(size, len(found))
    for one, other in itertools.permutations(supply, 2):  # nowhere two more, unless the other is used up
        assert counts[one] - counts[other] <= 1 or counts[other] == supply[other]
    near = few_shot(pool, repair)(item(judged))
    assert len(near) == min(size, len(found) - (judged < len(found)))
    assert f"i{judged:03d}" not in ids(near)


# --- leaks


def leaks(secret: Item, judged: Item, pool_of: Callable[..., Pool]) -> bool:
    """Whether a development item is shown with a judged one, by either way of choosing."""
    others = [item(number) for number in range(3)]
    pool = pool_of([*others, secret], [X, Y, "TIE", X])
    all_of_them = FewShot(kind="few_shot", examples=20)
    near = RetrievedExamples(kind="retrieved_examples", examples=20)
    similarity = TfidfSimilarity([question(each) for each in pool.items])
    shown = [ids(few_shot(pool, all_of_them)(judged)), ids(retrieved(pool, near, similarity)(judged))]
    assert sorted(shown[0]) == sorted(shown[1])
    assert {each.item_id for each in others} <= set(shown[0])
    return secret.item_id in shown[0]


SENTENCES = STORY.split(". ")
COPIES = {
    "as it is": STORY,
    "case": STORY.upper(),
    "white space": STORY.replace(" ", "\u00a0\n\t"),
    "no white space": STORY.replace(" ", ""),
    "punctuation": STORY.replace(".", " -- ").replace("ferry", "«ferry»"),
    "accents and wide letters": STORY.replace("e", "é").replace("a", "ａ"),
    "zero-width characters": "\u200b".join(STORY),
    "two sentences change places": ". ".join([SENTENCES[3], *SENTENCES[1:3], SENTENCES[0], *SENTENCES[4:]]),
    "one sentence is another": ". ".join([*SENTENCES[:3], "Tea is not to be had", *SENTENCES[4:]]),
    "inside a longer text": f"{TOPICS[5] * 9}. As somebody wrote: {STORY} That is all. {TOPICS[6] * 9}.",
    "its first half": STORY[: len(STORY) // 2],
}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES.keys())
def test_copies_with_another_id_are_not_shown(pool_of: Callable[..., Pool], copy: str) -> None:
    assert alikeness(STORY, copy) >= 0.8
    assert alikeness(copy, STORY) == alikeness(STORY, copy)
    asked = item(10, "evaluation", item_id="judged", task=STORY)
    assert not leaks(item(4, task=copy), asked, pool_of)
    answered = item(10, "evaluation", item_id="judged", answers={X: "Something else.", Y: STORY})
    assert not leaks(item(4, answers={X: copy, Y: "Short."}), answered, pool_of)


def test_short_answer_of_a_judged_item_is_not_shown(pool_of: Callable[..., Pool]) -> None:
    judged = item(10, "evaluation", item_id="judged", answers={X: "1932", Y: "In May."})
    assert not leaks(item(4, answers={X: "it was", Y: "in may"}), judged, pool_of)
    assert leaks(item(4, answers={X: "1933", Y: "In May or June."}), judged, pool_of)
    symbols = item(10, "evaluation", item_id="judged", answers={X: "<-  +", Y: ""})
    assert not leaks(item(4, answers={X: "<- +", Y: "?"}), symbols, pool_of)
    assert leaks(item(4, answers={X: "", Y: "-> -"}), symbols, pool_of)  # nothing is like an empty answer


def test_threshold_is_the_protocols(pool_of: Callable[..., Pool]) -> None:
    pool = pool_of([item(4, task=COPIES["one sentence is another"])], [X])
    judged = item(10, "evaluation", item_id="judged", task=STORY)
    alike = alikeness(STORY, COPIES["one sentence is another"])
    for threshold, count in ((alike, 0), (np.nextafter(alike, 1), 1)):
        assert len(few_shot(pool, FewShot(kind="few_shot", near_duplicate=threshold))(judged)) == count


def test_instruction_over_several_contexts_is_told_apart_by_them(pool_of: Callable[..., Pool]) -> None:
    task = "Summarise the text below in one plain sentence."
    items = [item(n, task=task, reference_context=f"All about the {TOPICS[n]} of {TOPICS[n + 5]}.") for n in range(4)]
    pool = pool_of(items, [X, Y, "TIE", X])
    judged = item(10, "evaluation", item_id="judged", task=task, reference_context=STORY)
    assert len(few_shot(pool, SHOTS)(judged)) == 3
    copied = item(10, "evaluation", item_id="judged", task=task, reference_context="ALL ABOUT THE BREAD OF GLACIER!")
    examples = few_shot(pool, FewShot(kind="few_shot", examples=4))
    assert sorted(ids(examples(copied))) == ["i001", "i002", "i003"]
    # where the task stands once, nothing says that it is an instruction
    assert few_shot(pool_of(items[:1], [X]), SHOTS)(judged) == ()


def test_stock_answers_of_a_few_letters_are_no_copies(pool_of: Callable[..., Pool]) -> None:
    items = [item(number, answers={X: "Yes.", Y: "No."}) for number in range(3)]
    judged = item(10, "evaluation", item_id="judged", answers={X: "yes", Y: "no"})
    assert len(few_shot(pool_of(items, [X, Y, X]), SHOTS)(judged)) == 3
    assert few_shot(pool_of(items[:1], [X]), SHOTS)(judged) == ()
    long = "I am sorry, I cannot help with that."  # long enough to be an answer: left out wherever it stands
    items = [item(number, answers={X: long, Y: f"{TOPICS[number]}!"}) for number in range(3)]
    assert few_shot(pool_of(items, [X, Y, X]), SHOTS)(item(10, answers={X: long, Y: "no"})) == ()


def test_alikeness_by_hand() -> None:
    # "abcdef" has the runs abcde, bcdef; "abcdeg" abcde, bcdeg: Jaccard 1/3
    assert alikeness("abc def", "ABCDEG") == pytest.approx(1 / 3)
    # 20 letters have 16 runs; with the last letter changed they share 15
    assert alikeness("abcdefghijklmnopqrst", "abcdefghijklmnopqrs0") == 15 / 16
    assert alikeness("ab", "abc") == 0
    assert alikeness("", "") == alikeness("", "a") == 0
    assert alikeness("Straße", "STRASSE") == 1
    assert alikeness("\ud800", "\ud800") == 1  # half a surrogate pair


@settings(max_examples=60, deadline=None)
@given(text=st.text("abAB 1é.", max_size=60), other=st.text("abAB 1é.", max_size=60))
def test_alikeness_is_that_of_a_naive_twin(text: str, other: str) -> None:
    one, two = (each.lower().replace("é", "e").replace(" ", "").replace(".", "") for each in (text, other))
    if one and two:
        runs = [
            {each[place : place + 5] for place in range(max(len(each) - 4, 1))} if each else set()
            for each in (one, two)
        ]
        whole = min(map(len, runs)) if min(len(one), len(two)) >= 20 else len(runs[0] | runs[1])
        assert alikeness(text, other) == pytest.approx(len(runs[0] & runs[1]) / whole)


# --- retrieval


class Given:
    """Similarities that a test decides."""

    def __init__(self, values: dict[str, float]) -> None:
        self._values = values

    def between(self, text: str, texts: Sequence[str]) -> np.ndarray:
        return np.array([self._values[each] for each in texts])


def test_most_alike_is_last_and_ties_go_by_id(pool_of: Callable[..., Pool]) -> None:
    items = [item(number) for number in range(5)]
    near = dict(zip([question(each) for each in items], [0.2, 0.9, 0.5, 0.5 + 1e-12, -1.0], strict=True))
    pool = pool_of(items[::-1], [X, Y, "TIE", X, Y])
    for size, wanted in ((1, "1"), (2, "2 1"), (3, "3 2 1"), (9, "4 0 3 2 1")):
        repair = RetrievedExamples(kind="retrieved_examples", examples=size)
        assert ids(retrieved(pool, repair, Given(near))(JUDGED)) == [f"i00{number}" for number in wanted.split()]
    repair = RetrievedExamples(kind="retrieved_examples", examples=2)
    assert ids(retrieved(pool, repair, Given(near))(items[1])) == ["i003", "i002"]  # not itself, the next instead


def test_context_counts_for_retrieval(pool_of: Callable[..., Pool]) -> None:
    items = [item(number, reference_context=f"About {TOPICS[number + 10]}.") for number in range(3)]
    pool = pool_of(items, [X, Y, X])
    similarity = TfidfSimilarity([question(each) for each in pool.items])
    judged = item(19, "evaluation", reference_context=f"On the {TOPICS[11]} and other things")
    repair = RetrievedExamples(kind="retrieved_examples", examples=1)
    assert ids(retrieved(pool, repair, similarity)(judged)) == ["i001"]


def test_tfidf_is_fitted_on_the_given_texts_alone() -> None:
    texts = ["boil the egg", "fix the bike 4 times", "卵を茹でる"]
    similarity = TfidfSimilarity(texts)
    plain = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+").fit(texts[:2])
    other = ["an egg", "the bike"]
    by_hand = (plain.transform(other) @ plain.transform(["fix the egg"]).T).toarray().ravel()
    assert TfidfSimilarity(texts[:2]).between("fix the egg", other) == pytest.approx(by_hand)
    assert similarity.between("boil the egg", texts) == pytest.approx(similarity.between("Boil the egg!", texts))
    assert similarity.between("茹で卵", texts)[2] > 0.3  # words are not set apart: characters and their pairs count
    assert similarity.between("nothing known", texts).tolist() == [0, 0, 0]
    assert similarity.between("a", []).shape == (0,)
    assert TfidfSimilarity(["?!", ""]).between("?!", ["?!", ""]).tolist() == [0, 0]
