"""A line of a journal of rankings, and that journal: what a person gave is normalised, what is read is not trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgelab.errors import LabelError
from judgelab.labelling.journal import Journal
from judgelab.labelling.rank_records import RankJournal, RankRules, normalised, read_rank_record
from judgelab.labelling.rank_tasks import RankTask, ranking_order
from judgelab.labelling.ranks import read_rank_journals
from judgelab.labelling.tasks import LabelTask
from judgelab.study.items import Item

THREE = ("red", "green", "blue")
SHOWN = ("blue", "red", "green")
GIVEN = st.integers(2, 26).flatmap(lambda n: st.lists(st.integers(1, n), min_size=n, max_size=n))


def task(number, kind="label", shown=SHOWN, item=None):
    return RankTask(item or f"i{number:02d}", shown, kind, number)


@pytest.fixture
def folder(project) -> Path:
    return project.outputs / "small" / "labelling" / "ranks"


@pytest.fixture
def study(project):
    return project.study(systems={name: {} for name in THREE})


def opened(folder, study, reviewer="r01", session="s1", **options):
    return RankJournal.open(folder, reviewer, session, study=study, **options)


def lines_of(folder):
    return [json.loads(line) for line in (folder / "r01.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]


def initial(journal):
    return {key[1]: first.ranks for key, first in journal.file.standing.initial().items()}


@given(GIVEN)
def test_ranks_become_competition_ranks(ranks):
    made = normalised(ranks)
    assert made == tuple(1 + sum(other < rank for other in ranks) for rank in ranks)
    assert normalised(made) == made
    n = range(len(ranks))
    assert all((ranks[a] < ranks[b]) == (made[a] < made[b]) for a in n for b in n)


@pytest.mark.parametrize(
    ("ranks", "made"),
    [([1, 3, 3], (1, 2, 2)), ([2, 2, 3, 1], (2, 2, 4, 1)), ([3, 3, 3], (1, 1, 1)), ([2, 3], (1, 2)), ([], ())],
)
def test_normalised_by_hand(ranks, made):
    assert normalised(ranks) == made


def test_a_decision_is_one_line_with_everything(folder, study):
    note = "tab\t, new\nline, שלום 😀 <script> \ud83d"
    with opened(folder, study) as journal:
        made = journal.decide(task(1), "ranked", seconds=12.5, ranks=[3, 1, 3], note=note)
        assert made.rank_of == {"blue": 2, "red": 1, "green": 2}
        assert made.task == task(1)
    (line,) = lines_of(folder)
    assert line.pop("at").endswith("+00:00")
    assert line == {
        "record": 1, "event": "decision", "reviewer": "r01", "session": "s1", "number": 1, "kind": "label",
        "item_id": "i01", "shown": list(SHOWN), "choice": "ranked", "reason": "", "ranks": [2, 1, 2], "note": note,
        "seconds": 12.5, "undo_of": None,
    }  # fmt: skip
    with opened(folder, study) as again:
        assert again.notes == again.file.problems == ()
        assert list(again.file.standing.initial().values()) == [made]


def test_undo_later_decisions_and_going_on(folder, study):
    items = [Item(f"i{number:02d}", "t", "", "c", {}, "") for number in range(6)]
    order = ranking_order(study, items, "r01", training=0, repeats_share=0.5)
    with opened(folder, study) as journal:
        assert journal.undo() is None
        journal.show(order[0])
        journal.decide(order[0], "ranked", seconds=1, ranks=[1, 2, 3])
        assert journal.undo().ranks == (1, 2, 3)
        assert journal.file.standing.stands(order[0].key) is None
        assert journal.next_task(order) == order[0]
        journal.decide(order[0], "ranked", seconds=1, ranks=[3, 2, 1])
        journal.show(order[1])
        journal.decide(order[0], "ranked", seconds=1, ranks=[1, 1, 1])
        assert initial(journal) == {order[0].item_id: (3, 2, 1)}
        assert journal.file.standing.stands(order[0].key).ranks == (1, 1, 1)
    with opened(folder, study, session="s2") as journal:
        assert journal.next_task(order) == order[1]
        assert initial(journal) == {order[0].item_id: (3, 2, 1)}
    assert [line["event"] for line in lines_of(folder)] == [
        *("shown", "decision", "undo", "decision", "shown", "decision"),
    ]


def test_cannot_judge_needs_a_reason_and_has_no_ranks(folder, study):
    with opened(folder, study) as journal:
        with pytest.raises(LabelError, match="cannot be recorded for r01: reason is empty"):
            journal.decide(task(1), "cannot_judge", seconds=1)
        with pytest.raises(LabelError, match="it must be empty unless choice is ranked"):
            journal.decide(task(1), "cannot_judge", seconds=1, reason="Latin", ranks=[1, 2, 3])
        assert journal.decide(task(1), "cannot_judge", seconds=1, reason="Latin").rank_of == {}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"choice": "left"}, "choice is 'left'; allowed are ranked, cannot_judge"),
        ({"ranks": []}, "ranks is empty; 3 whole numbers from 1 to 3 are needed"),
        ({"ranks": [1, 2]}, "there are 2 ranks; 3 are needed, one for each answer"),
        ({"ranks": [1, 2, 3, 3]}, "there are 4 ranks; 3 are needed"),
        ({"ranks": [1, 2, 4]}, "the rank in place 3 is 4; allowed are whole numbers from 1 to 3"),
        ({"ranks": [0, 1, 2]}, "the rank in place 1 is 0; allowed are whole numbers"),
        ({"ranks": [1, None, 2]}, "the rank in place 2 is None"),
        ({"ranks": [1, True, 2]}, "the rank in place 2 is True"),
        ({"ranks": [1, 1.5, 2]}, "the rank in place 2 is 1.5"),
        ({"ranks": "123"}, "ranks is '123'; 3 whole numbers from 1 to 3 are needed"),
        ({"seconds": float("nan")}, "seconds is nan; a number from 0 is needed"),
        ({"task": task(1, shown=("red", "green"))}, "shown is ('red', 'green'); each of red, green, blue is needed"),
        ({"task": task(1, shown=("red", "red", "blue"))}, "each of red, green, blue is needed once"),
        ({"task": task(1, item="i99")}, "item_id 'i99' is not an item of the study"),
    ],
)
def test_what_is_not_allowed_is_not_written(folder, study, changes, told):
    given = {"task": task(1), "choice": "ranked", "seconds": 1.0, "ranks": [1, 2, 3]} | changes
    if "shown" in told or "each of" in told:
        given["ranks"] = [1] * len(given["task"].shown)
    with opened(folder, study, known=["i01"]) as journal:
        with pytest.raises(LabelError, match="this cannot be recorded for r01") as caught:
            journal.decide(given.pop("task"), given.pop("choice"), **given)
        assert told in str(caught.value)
        assert (folder / "r01.jsonl").read_bytes() == b""
        assert journal.decide(task(1), "ranked", seconds=1, ranks=[1, 2, 3]).record == 1


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ranks": [1, 3, 3]}, "ranks is [1, 3, 3]; as competition ranks (1, 2, 2, 4) it would be 1, 2, 2"),
        ({"ranks": [1, 2, 2.0]}, "the rank in place 3 is 2.0; allowed are whole numbers from 1 to 3"),
        ({"ranks": {"red": 1}}, "ranks is {'red': 1}; 3 whole numbers"),
        ({"ranks": 1}, "ranks is 1; 3 whole numbers"),
        ({"ranks": None}, "ranks is empty"),
        ({"shown": ["red", "green", "pink"]}, "each of red, green, blue is needed once"),
        ({"shown": None}, "shown is None"),
        ({"shown": [1, 2, 3]}, "shown is [1, 2, 3]"),
        ({"choice": "cannot_judge", "reason": "x"}, "it must be empty unless choice is ranked"),
        ({"choice": "tie"}, "choice is 'tie'"),
        ({"event": "shown"}, "it must be empty unless choice is ranked"),
        ({"kind": "exam"}, "kind is 'exam'; allowed are training, label, repeat"),
        ({"reviewer": "r02"}, "reviewer is 'r02', but the journal is that of 'r01'"),
        ({"record": 1}, "record 1 is there already, in line 1"),
        ({"at": "yesterday"}, "at is 'yesterday'"),
    ],
)
def test_a_line_changed_by_hand_is_told_and_the_others_kept(folder, study, changes, told):
    with opened(folder, study) as journal:
        for number in (1, 2, 3):
            journal.decide(task(number), "ranked", seconds=1, ranks=[1, 2, 2])
    lines = lines_of(folder)
    lines[1] |= changes
    (folder / "r01.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    (file,) = read_rank_journals(folder, study=study)
    (problem,) = file.problems
    assert problem.startswith("outputs/small/labelling/ranks/r01.jsonl, line 2: ")
    assert told in problem
    assert problem.endswith("; the line is left out")
    assert [key[1] for key in file.standing.initial()] == ["i01", "i03"]


def test_a_journal_of_the_other_mode_is_told_line_by_line(project, folder, study):
    two = project.study()
    with Journal.open(folder, "r01", "s1", study=two) as journal:
        journal.decide(LabelTask("i01", ("ALPHA", "BETA"), ("BETA", "ALPHA"), "label", 1), "left", seconds=1)
    (file,) = read_rank_journals(folder, study=two)
    assert "choice is 'left'; allowed are ranked, cannot_judge" in file.problems[0]
    with opened(folder, two) as ranked:
        ranked.decide(RankTask("i02", ("BETA", "ALPHA"), "label", 1), "ranked", seconds=1, ranks=[1, 1])
        assert ranked.file.last_record == 2
    with Journal.open(folder, "r01", "s1", study=two) as journal:
        assert "choice is 'ranked'; allowed are left" in journal.file.problems[0]


@pytest.mark.parametrize("values", [None, [], "text", 7, {}])
def test_what_is_no_record_is_refused(study, values):
    with pytest.raises(ValueError, match=r"an object is needed|event is None"):
        read_rank_record(values, RankRules.of(study))


def test_twenty_six_answers_and_a_lock(project, folder):
    systems = [f"s{number:02d}" for number in range(26)]
    study = project.study(systems={name: {} for name in systems})
    with opened(folder, study) as journal:
        with pytest.raises(LabelError, match=r"session s1 \(this process, since .*is writing under the name 'r01'"):
            opened(folder, study, session="s2")
        made = journal.decide(task(1, shown=tuple(systems[::-1])), "ranked", seconds=1, ranks=list(range(1, 27)))
        assert made.rank_of["s25"] == 1


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.permutations(THREE), st.lists(st.integers(1, 3), min_size=3, max_size=3)), max_size=5))
def test_what_was_decided_is_read_back(fresh_project, decided):
    with fresh_project() as project:
        folder, study = project.outputs / "small" / "ranks", project.study(systems={name: {} for name in THREE})
        with opened(folder, study) as journal:
            for number, (shown, ranks) in enumerate(decided, start=1):
                journal.decide(task(number, shown=tuple(shown)), "ranked", seconds=number, ranks=ranks)
        (file,) = read_rank_journals(folder, study=study)
        assert file.problems == ()
        for (shown, ranks), first in zip(decided, file.standing.initial().values(), strict=True):
            given = dict(zip(shown, ranks, strict=True))
            assert first.rank_of == {name: 1 + sum(other < given[name] for other in ranks) for name in THREE}
