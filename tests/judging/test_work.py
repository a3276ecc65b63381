"""What is left to do: found item by item, and the same as if plan and ledger were compared at once."""

from __future__ import annotations

import gc
import hashlib
import tracemalloc

import pytest

from judgelab.errors import DriftError, RunError
from judgelab.judging import passes
from judgelab.judging.entries import Attempt, Entry
from judgelab.judging.ledger import Ledger
from judgelab.judging.passes import plan_pass
from judgelab.judging.work import note_complete, open_calls, planned_work
from judgelab.study.freeze import open_run
from judgelab.study.items import Item

COIN = {"name": "coin", "kind": "control", "rule": "coin"}
FIRST = {"name": "first", "kind": "control", "rule": "first"}
THREE = {"ALPHA": {}, "BETA": {}, "GAMMA": {}}
ALL = ("direct", "pairwise_original", "pairwise_swapped")
ATTEMPT = Attempt("verdict", "2026-01-01T00:00:00.000+00:00")


def write(run, calls, status="verdict"):
    """Put planned calls into the ledger."""
    with Ledger(run.path("ledger.sqlite")) as ledger:
        ledger.record_all(Entry(call.key, status, attempts=(ATTEMPT,)) for call in calls)


def left(run):
    """Open calls by judge and pass, in their order, and the number of calls planned."""
    with Ledger(run.path("ledger.sqlite")) as ledger:
        return {(part.judge.name, part.pass_name): (part.todo, part.planned) for part in planned_work(run, ALL, ledger)}


def drawn(key, share):
    """Whether a call is among some that are drawn by its key."""
    return hashlib.sha256(repr(key).encode()).digest()[0] < 256 * share


@pytest.mark.parametrize("share", [0, 0.5, 0.98, 1])
def test_what_is_left_is_what_the_ledger_does_not_hold_in_the_order_of_the_plan(make_run, raw_item, share):
    answers = {"ALPHA": "one", "BETA": "two", "GAMMA": "three"}
    run = make_run(
        [COIN, FIRST], [raw_item(number, answers=answers) for number in range(30)], name="three", systems=THREE
    )
    plan = {
        (judge.name, name): plan_pass(run, judge, name) for judge in run.study.judges for name in ALL
    }  # all of it at once
    calls = [call for part in plan.values() for call in part]
    write(run, [call for call in calls if drawn(call.key, share)])
    write(run, [call for call in calls if not drawn(call.key, share) and drawn(call.key.digest(), 0.5)], "failed")
    wanted = {
        place: ([call.call for call in part if not drawn(call.key, share)], len(part)) for place, part in plan.items()
    }
    assert left(run) == wanted
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        for judge in run.study.judges:
            for name in ALL:
                todo = [call.call for call in plan[judge.name, name]]
                assert open_calls(run.study, judge, todo, ledger) == wanted[judge.name, name][0]


@pytest.mark.parametrize(
    ("change", "scores", "pairs"),
    [
        ({"random_seed": 8}, 8, 4),
        ({"direct_scale": {"criteria": ["correctness", "brevity"]}}, 8, 4),
        ({"tie_meaning": "both are of equal worth"}, 0, 4),  # no prompt of direct scoring speaks of ties
        ({"judges": [COIN | {"rule": "last"}]}, 8, 4),
    ],
    ids=["seed", "rubric", "tie", "judge"],
)
def test_what_another_protocol_has_finished_is_not_taken_for_this_ones(make_run, change, scores, pairs):
    run = make_run([COIN], name="one")
    write(run, [call for name in ALL for call in plan_pass(run, run.study.judges[0], name)])
    assert [len(todo) for todo, _ in left(run).values()] == [0, 0, 0]
    changed = make_run(**({"judges": [COIN], "name": "two"} | change))
    changed.path("ledger.sqlite").write_bytes(run.path("ledger.sqlite").read_bytes())
    assert [len(todo) for todo, _ in left(changed).values()] == [scores, pairs, pairs]


def test_one_changed_item_is_asked_again_and_no_other(make_run, raw_item):
    rows = [raw_item(number) for number in range(5)]
    run = make_run([COIN], rows, name="one")
    write(run, [call for name in ALL for call in plan_pass(run, run.study.judges[0], name)])
    rows[2] = raw_item(2, reference_context="The sum is three.")
    changed = make_run([COIN], rows, name="two")
    changed.path("ledger.sqlite").write_bytes(run.path("ledger.sqlite").read_bytes())
    found = [(call.pass_, call.item.item_id) for todo, _ in left(changed).values() for call in todo]
    two = "i00002"
    assert sorted(found) == [("direct", two), ("direct", two), ("original", two), ("swapped", two)]


def test_a_prompt_is_rendered_once_for_all_judges_and_passes(make_run, monkeypatch):
    run = make_run([COIN, FIRST], items=6)
    write(run, [call for judge in run.study.judges for name in ALL for call in plan_pass(run, judge, name)[:-1]])
    rendered, real = [], passes.render

    def counting(study, item, strategy, presentation, wording):
        rendered.append((item.item_id, presentation))
        return real(study, item, strategy, presentation, wording)

    monkeypatch.setattr(passes, "render", counting)
    assert sum(len(todo) for todo, _ in left(run).values()) == 6
    assert len(rendered) == len(set(rendered)) == 6 * 4  # two answers alone, two orders of the pair


def test_finished_calls_are_not_held_in_memory(make_run, raw_item):
    text = "word " * 10_000
    run = make_run([COIN], [raw_item(number, task=f"{number} {text}") for number in range(200)])
    write(run, [call for name in ALL for call in plan_pass(run, run.study.judges[0], name)][:-1])
    run = open_run(run.name, None)
    run.path("items.jsonl").touch()  # as in a new process: what was read before does not count
    gc.collect()
    before = {id(each) for each in gc.get_objects() if isinstance(each, Item)}
    tracemalloc.start()
    try:
        found = left(run)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(todo) for todo, _ in found.values()] == [0, 0, 1]
    assert sum(id(each) not in before for each in gc.get_objects() if isinstance(each, Item)) <= 1
    assert peak < 3_000_000 < 200 * len(text)  # bytes: some copies of one item's text, of ten million


def test_changed_items_are_refused_whether_a_pass_is_known_to_be_complete_or_not(make_run):
    run = make_run([COIN])
    write(run, [call for name in ALL for call in plan_pass(run, run.study.judges[0], name)])
    items = run.path("items.jsonl")
    frozen = items.read_text(encoding="utf-8")
    for complete in (False, True):
        items.write_text(frozen.replace("plus one", "plus two"), encoding="utf-8")
        with pytest.raises(DriftError, match="changed after freezing"):
            left(run)
        items.write_text(frozen, encoding="utf-8")
        if not complete:
            with Ledger(run.path("ledger.sqlite")) as ledger:
                for part in planned_work(run, ALL, ledger):
                    note_complete(run, part, ledger)


def test_every_swap_is_checked_before_anything_is_asked(make_run, monkeypatch):
    """Also where the ledger is empty, so that no prompt need be rendered for a comparison."""
    run = make_run([COIN])
    monkeypatch.setattr(passes, "check_swap", lambda original, swapped, item_id: refuse(item_id))

    def refuse(item_id):
        raise RunError(f"item {item_id}: the swapped prompt differs")

    with pytest.raises(RunError, match="the swapped prompt differs"):
        left(run)


def test_items_read_one_by_one_are_the_items(make_run):
    run = make_run([COIN], items=10, split={"development_share": 0.4})
    assert tuple(run.each_evaluation_item()) == run.evaluation_items()  # read before the others are in memory
    assert all(one is other for one, other in zip(run.each_evaluation_item(), run.evaluation_items(), strict=True))
