"""What is checked of the prompts: blindness, the swap, and who stands first."""

from __future__ import annotations

import pytest

from judgelab.errors import RunError
from judgelab.judging import prompt_checks

CONTROL = {"kind": "control", "name": "first", "rule": "first"}


def test_every_pair_of_prompts_is_compared(make_run):
    run = make_run([CONTROL], items=5)
    assert prompt_checks.compare_swaps(run) == (5, 0)


def test_a_prompt_that_changes_more_than_the_order_is_counted(make_run, monkeypatch):
    run = make_run([CONTROL], items=3)

    def differs(original, swapped, item_id):
        if item_id == run.items()[0].item_id:
            raise RunError("differs")

    monkeypatch.setattr(prompt_checks, "check_swap", differs)
    assert prompt_checks.compare_swaps(run) == (3, 1)


def test_the_second_pass_shows_first_what_the_first_showed_second(make_run):
    run = make_run([CONTROL], items=6)
    table = prompt_checks.pass_table(run).set_index("pass")
    one, two = (
        dict(part.split() for part in table.loc[name, "shown_first"].split(", "))
        for name in ("pairwise_original", "pairwise_swapped")
    )
    systems = run.study.system_names
    assert sum(map(int, one.values())) == 6
    assert [one[name] for name in systems] == [two[name] for name in reversed(systems)]


@pytest.mark.parametrize("where", ["answer", "prompt"])
def test_a_name_that_gives_an_author_away_is_found(make_run, monkeypatch, where):
    run = make_run([CONTROL], items=2)
    assert prompt_checks.scan_prompts(run).empty
    item = run.items()[0]
    told = "As an AI language model, I would say so."
    if where == "answer":
        item.answers[run.study.system_names[0]] = told
    else:
        monkeypatch.setattr(prompt_checks, "scan_answers", lambda items, study: _nothing(run))
        object.__setattr__(item, "task", told)
    found = prompt_checks.scan_prompts(run)
    assert set(found["where"]) == {where}
    assert set(found["item_id"]) == {item.item_id}


def _nothing(run):
    from judgelab.study.blindness import scan_answers

    return scan_answers([], run.study)
