"""A reviewer's list of items to rank: one task an item, the answers in a sequence drawn for that reviewer."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgelab.errors import LabelError
from judgelab.labelling.rank_tasks import RankTask, planned_rankings, ranking_order
from judgelab.study.items import Item
from judgelab.study.protocol import MOST_RANKED, parse_study
from judgelab.study.randomisation import first_system

THREE = ("red", "green", "blue")
SHARES = st.integers(0, 50).map(lambda hundredths: hundredths / 100)


def make_study(systems=THREE, seed=7):
    return parse_study(
        {
            "study_id": "small",
            "sampling_rule": "every ticket of one week",
            "items": {"path": "params/small/items.jsonl"},
            "systems": {name: {} for name in systems},
            "rubric_version": "rubric-v1",
            "direct_scale": {"criteria": ["correctness"]},
            "direct_tie_margin": 0.25,
            "random_seed": seed,
            "judges": [{"name": "coin", "kind": "control", "rule": "coin"}],
        }
    )


def make_items(evaluation, development=0):
    every = [Item(f"i{number:03d}", "t", "", "c", {}, "") for number in range(evaluation)]
    return every + [Item(f"d{number:03d}", "t", "", "d", {}, "", "development") for number in range(development)]


def order_of(n, reviewer="r01", *, development=0, training=0, share=0.0, systems=THREE, seed=7):
    study, items = make_study(systems, seed), make_items(n, development)
    return ranking_order(study, items, reviewer, training=training, repeats_share=share)


@given(st.integers(0, 40), SHARES, st.sampled_from([2, 3, 5, 26]), st.integers(0, 2**63 - 1))
def test_every_item_once_and_repeats_far_behind(n, share, size, seed):
    systems = [f"s{number}" for number in range(size)]
    order = order_of(n, share=share, systems=systems, seed=seed)
    labels = [task for task in order if task.kind == "label"]
    repeats = [task for task in order if task.kind == "repeat"]
    assert sorted(task.item_id for task in labels) == [item.item_id for item in make_items(n)]
    assert len(repeats) == ((round(share * 100) * n + 50) // 100 if n > 1 else 0)
    assert len({task.key for task in order}) == len(order)
    assert [task.number for task in order] == list(range(1, len(order) + 1))
    place = {task.key: number for number, task in enumerate(order)}
    for task in repeats:
        distance = place[task.key] - place["label", *task.key[1:]]
        assert distance >= 2
        assert 3 * distance >= len(order)
    assert all(sorted(task.shown) == sorted(systems) for task in order)


def test_the_list_is_the_same_each_time_and_for_any_order_of_items_and_systems():
    first = order_of(30, development=5, training=3, share=0.2)
    assert order_of(30, development=5, training=3, share=0.2) == first
    assert order_of(30, development=5, training=3, share=0.2, systems=THREE[::-1]) == first
    items = make_items(30, 5)[::-1]
    assert ranking_order(make_study(), items, "r01", training=3, repeats_share=0.2) == first


def test_sequences_do_not_depend_on_other_items():
    among_more = [task for task in order_of(60) if task.item_id < "i020"]
    assert [(task.item_id, task.shown) for task in order_of(20)] == [(task.item_id, task.shown) for task in among_more]


def test_reviewers_and_repeats_have_sequences_of_their_own():
    one, other = ({task.item_id: task.shown for task in order_of(120, name)} for name in ("r01", "r02"))
    assert one.keys() == other.keys()
    assert 4 <= sum(one[name] == other[name] for name in one) <= 36  # a sixth is expected: 20, sd 4.1
    order = order_of(240, share=0.5)
    shown = {task.key: task.shown for task in order}
    same = sum(task.shown == shown["label", *task.key[1:]] for task in order if task.kind == "repeat")
    assert 4 <= same <= 36
    assert [task.item_id for task in order_of(40, "r01")] != [task.item_id for task in order_of(40, "r02")]


def test_every_sequence_is_as_likely_as_any_other():
    counts = Counter(task.shown for number in range(20) for task in order_of(60, f"r{number}"))
    assert set(counts) == set(itertools.permutations(THREE))
    assert all(140 <= count <= 260 for count in counts.values())  # 200 of 1,200, sd 12.9


def test_the_sequence_tells_nothing_of_the_judges_order():
    same = 0
    for task in [task for number in range(10) for task in order_of(60, f"r{number}")]:
        for pair in itertools.combinations(THREE, 2):
            first = first_system(7, task.item_id, *pair)
            same += first == min(pair, key=task.shown.index)
    assert 760 <= same <= 1040  # 1,800 coins, three and three of an item: sd at most 37


def test_training_is_of_the_development_split_and_the_same_for_all():
    order = order_of(10, development=6, training=4, share=0.2)
    assert [task.kind for task in order[:4]] == ["training"] * 4
    assert all(task.item_id.startswith("d") for task in order[:4])
    assert all(task.item_id.startswith("i") for task in order[4:])
    other = order_of(10, "r02", development=6, training=4)
    assert {task.item_id for task in order[:4]} == {task.item_id for task in other[:4]}
    assert sum(task.kind == "training" for task in order_of(10, development=6, training=50)) == 6


def test_lists_are_fixed_for_all_time():
    """A change here would show a reviewer who comes back another list."""
    order = order_of(6, share=0.34, development=2, training=1)
    assert " ".join(task.item_id + "".join(name[0] for name in task.shown) for task in order) == FIXED


FIXED = "d001bgr i002rgb i004rbg i001gbr i002brg i003rbg i000rgb i005rbg i003bgr"


def test_tasks_by_kind_and_item():
    assert RankTask("i1", THREE, "repeat", 9).key == ("repeat", "i1", "", "")


@pytest.mark.parametrize("share", [-0.1, 0.51, float("nan")])
def test_a_share_of_repeats_that_finds_no_place_is_refused(share):
    with pytest.raises(LabelError, match=r"repeats_share is .*; allowed is 0 to 0\.5"):
        order_of(10, share=share)


def test_no_less_than_no_training_and_no_strange_name():
    with pytest.raises(LabelError, match="training is -1; allowed is 0 and more"):
        order_of(10, training=-1)
    with pytest.raises(LabelError, match="allowed are up to 80 letters"):
        order_of(10, "../r01")


def test_no_more_answers_than_letters():
    systems = [f"s{number}" for number in range(MOST_RANKED + 1)]
    assert len(order_of(1, systems=systems[:-1])[0].shown) == 26
    with pytest.raises(LabelError, match="27 answers of an item to put in order; allowed are 2 to 26"):
        order_of(1, systems=systems)


def test_planned_rankings_have_a_row_a_task():
    items = make_items(4, 2)
    orders = {name: ranking_order(make_study(), items, name, training=1, repeats_share=0.25) for name in ("a", "b")}
    table = planned_rankings(orders, items)
    assert list(table.columns) == ["reviewer_id", "item_id", "category", "system_x", "system_y", "kind", "number"]
    assert Counter(zip(table["reviewer_id"], table["kind"], strict=True)) == {
        **{("a", "training"): 1, ("a", "label"): 4, ("a", "repeat"): 1},
        **{("b", "training"): 1, ("b", "label"): 4, ("b", "repeat"): 1},
    }
    assert set(table["system_x"]) == set(table["system_y"]) == {""}
    assert planned_rankings({}, items).empty
