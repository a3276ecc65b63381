"""A reviewer's list: drawn for that reviewer alone, balanced, with repeats far from what they repeat."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgelab.errors import LabelError
from judgelab.labelling.tasks import LabelTask, check_reviewer, labelling_order, planned_table
from judgelab.study.items import Item, pairs
from judgelab.study.protocol import parse_study
from judgelab.study.randomisation import first_system

SHARES = st.integers(0, 50).map(lambda hundredths: hundredths / 100)
TWO, THREE = ("ALPHA", "BETA"), ("red", "green", "blue")


def make_study(systems=TWO, seed=7):
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


def order_of(n, reviewer="r01", *, development=0, training=0, share=0.0, systems=TWO, seed=7):
    study, items = make_study(systems, seed), make_items(n, development)
    return labelling_order(study, items, reviewer, training=training, repeats_share=share)


@given(st.integers(0, 40), SHARES, st.sampled_from([TWO, THREE]), st.integers(0, 2**63 - 1))
def test_every_pair_once_and_repeats_far_behind(n, share, systems, seed):
    order = order_of(n, share=share, systems=systems, seed=seed)
    labels = [task for task in order if task.kind == "label"]
    repeats = [task for task in order if task.kind == "repeat"]
    wanted = {(entry.item_id, pair) for entry in make_items(n) for pair in pairs(systems)}
    assert {(task.item_id, task.pair) for task in labels} == wanted
    assert len(labels) == len(wanted)
    exact = round(share * 100) * len(labels)  # in hundredths; half up
    assert len(repeats) == ((exact + 50) // 100 if len(labels) > 1 else 0)
    assert len({task.key for task in order}) == len(order)
    assert [task.number for task in order] == list(range(1, len(order) + 1))
    place = {task.key: number for number, task in enumerate(order)}
    for task in repeats:
        distance = place[task.key] - place["label", task.item_id, *task.pair]
        assert distance >= 2
        assert 3 * distance >= len(order)
    assert all(sorted(task.shown) == sorted(task.pair) for task in order)


def test_the_list_is_the_same_each_time_and_for_any_order_of_items():
    study, items = make_study(), make_items(30, 5)
    first = labelling_order(study, items, "r01", training=3, repeats_share=0.2)
    assert labelling_order(study, items, "r01", training=3, repeats_share=0.2) == first
    assert labelling_order(study, items[::-1], "r01", training=3, repeats_share=0.2) == first


def test_sides_and_sequence_do_not_depend_on_other_items():
    few = order_of(20)
    among_more = [task for task in order_of(60) if task.item_id < "i020"]
    assert [(task.item_id, task.shown) for task in few] == [(task.item_id, task.shown) for task in among_more]


def test_which_system_is_named_first_does_not_matter():
    one, other = (order_of(40, systems=systems) for systems in (TWO, TWO[::-1]))
    assert [(task.item_id, task.shown) for task in one] == [(task.item_id, task.shown) for task in other]
    assert {task.pair for task in other} == {("BETA", "ALPHA")}


def test_reviewers_get_lists_of_their_own():
    one, other = order_of(100, "r01"), order_of(100, "r02")
    same_place = sum(a.item_id == b.item_id for a, b in zip(one, other, strict=True))
    assert same_place < 10  # one is expected
    sides = [{task.item_id: task.shown for task in order} for order in (one, other)]
    agree = sum(sides[0][name] == sides[1][name] for name in sides[0])
    assert 30 <= agree <= 70  # four standard deviations of 100 fair coins


def test_left_and_right_are_balanced():
    left = Counter(task.shown[0] for number in range(20) for task in order_of(100, f"r{number}"))
    assert 900 <= left["ALPHA"] <= 1100  # beyond four standard deviations of 2,000 fair coins


def test_the_sides_tell_nothing_of_the_judges_order():
    same = sum(
        task.shown[0] == first_system(7, task.item_id, *task.pair)
        for number in range(20)
        for task in order_of(100, f"r{number}")
    )
    assert 900 <= same <= 1100


def test_a_repeat_has_its_sides_drawn_again():
    orders = [order_of(100, f"r{number}", share=0.5) for number in range(20)]
    same = 0
    for order in orders:
        first = {(task.item_id, task.pair): task.shown for task in order if task.kind == "label"}
        same += sum(task.shown == first[task.item_id, task.pair] for task in order if task.kind == "repeat")
    assert 373 <= same <= 627  # 1,000 fair coins, eight standard deviations


def test_training_is_of_the_development_split_and_comes_first():
    order = order_of(10, development=6, training=4, share=0.2)
    assert [task.kind for task in order[:4]] == ["training"] * 4
    assert all(task.item_id.startswith("d") for task in order[:4])
    assert all(task.item_id.startswith("i") for task in order[4:])
    other = order_of(10, "r02", development=6, training=4)
    assert {task.item_id for task in order[:4]} == {task.item_id for task in other[:4]}
    assert len([task for task in order_of(10, development=6, training=50) if task.kind == "training"]) == 6
    assert all(task.kind == "label" for task in order_of(10, training=4))


def test_training_shows_one_pair_of_an_item():
    order = order_of(2, development=30, training=30, systems=THREE)
    shown = Counter(task.pair for task in order if task.kind == "training")
    assert sum(shown.values()) == 30
    assert set(shown) == set(pairs(THREE))


def test_lists_are_fixed_for_all_time():
    """A change here would show a reviewer who comes back another list."""
    order = order_of(6, share=0.34, development=2, training=1)
    assert " ".join(f"{task.item_id}{task.shown[0][0]}" for task in order) == FIXED


FIXED = "d001B i001B i005A i004A i001B i002B i000B i003B i002A"


def test_tasks_by_kind_and_key():
    task = LabelTask("i1", ("ALPHA", "BETA"), ("BETA", "ALPHA"), "repeat", 9)
    assert task.key == ("repeat", "i1", "ALPHA", "BETA")


@pytest.mark.parametrize("share", [-0.1, 0.51, 1, float("nan"), float("inf")])
def test_a_share_of_repeats_that_finds_no_place_is_refused(share):
    with pytest.raises(LabelError, match=r"repeats_share is .*; allowed is 0 to 0\.5"):
        order_of(10, share=share)


def test_no_less_than_no_training():
    with pytest.raises(LabelError, match="training is -1; allowed is 0 and more"):
        order_of(10, training=-1)


@pytest.mark.parametrize("name", ["", " r01", "../r01", ".r01", "a/b", "r\x00", "ré", "x" * 81, "a b", "-r"])
def test_a_reviewer_is_named_as_a_file_may_be(name):
    with pytest.raises(LabelError, match=r"reviewer .* allowed are up to 80 letters"):
        order_of(3, name)


def test_usual_names_are_allowed():
    for name in ("r01", "Ann.Lee", "reviewer-2", "7", "x" * 80):
        check_reviewer(name)


def test_planned_table_has_a_row_a_task():
    items = make_items(4, 2)
    orders = {name: labelling_order(make_study(), items, name, training=1, repeats_share=0.25) for name in ("a", "b")}
    table = planned_table(orders, items)
    assert list(table.columns) == ["reviewer_id", "item_id", "category", "system_x", "system_y", "kind", "number"]
    assert Counter(zip(table["reviewer_id"], table["kind"], strict=True)) == {
        **{("a", "training"): 1, ("a", "label"): 4, ("a", "repeat"): 1},
        **{("b", "training"): 1, ("b", "label"): 4, ("b", "repeat"): 1},
    }
    assert set(table.loc[table["kind"] == "training", "category"]) == {"d"}
    assert planned_table({}, items).empty
