"""The journal of a reviewer: nothing is lost, nothing is changed, one session writes at a time."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgelab.errors import LabelError
from judgelab.labelling.journal import DECISIONS, Journal, decisions_of, labels_of, read_journals
from judgelab.labelling.tasks import LabelTask, labelling_order, planned_table
from judgelab.measure.labelling_progress import agreement_so_far, progress_table, to_adjudicate
from judgelab.study.humans import labels_for_file
from judgelab.study.items import Item
from judgelab.study.labels import COLUMNS, read_label_file
from judgelab.study.tables import write_csv

AB, BA = ("ALPHA", "BETA"), ("BETA", "ALPHA")
CHILD = """
import json, os, signal, sys
from pathlib import Path
from judgelab.errors import LabelError
from judgelab.labelling import journal as written
from judgelab.labelling.journal import Journal
from judgelab.labelling.tasks import LabelTask
from judgelab.study.protocol import parse_study

folder, what, values = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])

def say(text):
    print(text, flush=True)

try:
    journal = Journal.open(folder, "r01", what, study=parse_study(values))
except LabelError as error:
    say(f"refused: {error}")
    sys.exit(0)
say("open")
if what == "hold":
    sys.stdin.read()
    sys.exit(0)
for number in range(1, 100_000):
    if what == "torn" and number == 4:
        write = os.write
        def half(handle, line):
            write(handle, line[: len(line) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        written.os.write = half
    task = LabelTask(f"i{number:05d}", ("ALPHA", "BETA"), ("BETA", "ALPHA"), "label", number)
    journal.decide(task, "left", seconds=1.0, note="\\u05e9\\U0001f600 <script>")
    say(number)
"""


def task(number, kind="label", shown=BA, item=None):
    return LabelTask(item or f"i{number:02d}", AB, shown, kind, number)


@pytest.fixture
def folder(project) -> Path:
    return project.outputs / "small" / "labelling"


@pytest.fixture
def study(project):
    return project.study()


@pytest.fixture
def start(project, folder):
    """Start a real process that labels under the name r01."""
    started = []

    def run(what):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(folder), what, json.dumps(project.values())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(child)
        return child

    yield run
    for child in started:
        child.kill()
        child.communicate()


def opened(folder, study, reviewer="r01", session="s1", **options):
    return Journal.open(folder, reviewer, session, study=study, **options)


def lines_of(folder, name="r01.jsonl"):
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").split("\n")[:-1]]


def initial(journal):
    file = journal.file if isinstance(journal, Journal) else journal
    return {key[1]: first.choice for key, first in file.standing.initial().items()}


def test_a_decision_is_one_line_with_everything(folder, study):
    note = 'tab\t, "quote", new\nline, שלום 😀 <img src=x onerror=alert(1)>\u2028 and half a pair \ud83d'
    scores = {"left": {"correctness": 4}, "right": {"correctness": 2}}
    with opened(folder, study) as journal:
        journal.decide(task(1), "left", seconds=12.5, scores=scores, note=note)
        assert (folder / "r01.jsonl").read_bytes().count(b"\n") == 1
    (line,) = lines_of(folder)
    at = line.pop("at")
    assert pd.Timestamp(at).utcoffset() == pd.Timedelta(0)
    assert line == {
        "record": 1, "event": "decision", "reviewer": "r01", "session": "s1", "number": 1, "kind": "label",
        "item_id": "i01", "system_x": "ALPHA", "system_y": "BETA", "shown": ["BETA", "ALPHA"], "choice": "left",
        "reason": "", "scores": scores, "note": note, "seconds": 12.5, "undo_of": None,
    }  # fmt: skip
    with opened(folder, study) as again:
        assert again.notes == again.file.problems == ()
        (first,) = again.file.standing.initial().values()
        assert first.note == note
        assert first.preference == "BETA"


def test_a_decision_is_synced_before_it_returns(folder, study, monkeypatch):
    done = []
    write, fsync = os.write, os.fsync
    with opened(folder, study) as journal:
        monkeypatch.setattr(os, "write", lambda *given: done.append("write") or write(*given))
        monkeypatch.setattr(os, "fsync", lambda handle: done.append("fsync") or fsync(handle))
        journal.decide(task(1), "tie", seconds=1)
        assert done == ["write", "fsync"]
        journal.undo()
        assert done == ["write", "fsync"] * 2


def test_one_goes_on_where_one_stopped(folder, study):
    items = [Item(f"i{number:02d}", "t", "", "c", {}, "") for number in range(6)]
    order = labelling_order(study, items, "r01", training=0, repeats_share=0.5)
    with opened(folder, study) as journal:
        assert journal.next_task(order) == order[0]
        for each in order[:4]:
            journal.decide(each, "left", seconds=1)
    with opened(folder, study, session="s2") as journal:
        assert journal.next_task(order) == order[4]
        # a list that was drawn anew (other repeats, other numbers) goes on with what is not decided in it
        other = [replace(each, number=each.number + 5) for each in order[2:]]
        assert journal.next_task(other) == other[2]
        for each in order[4:]:
            journal.decide(each, "right", seconds=1)
        assert journal.next_task(order) is None
    assert {line["session"] for line in lines_of(folder)} == {"s1", "s2"}


def test_undo_before_the_next_item_is_shown(folder, study):
    with opened(folder, study) as journal:
        assert journal.undo() is None
        journal.show(task(1))
        journal.decide(task(1), "left", seconds=1)
        undone = journal.undo()
        assert undone.item_id == "i01"
        assert journal.next_task([task(1), task(2)]) == task(1)
        assert journal.undo() is None
        journal.decide(task(1), "right", seconds=1)
        assert initial(journal) == {"i01": "right"}
    assert [line["event"] for line in lines_of(folder)] == ["shown", "decision", "undo", "decision"]
    assert [line["undo_of"] for line in lines_of(folder)] == [None, None, 2, None]
    with opened(folder, study) as journal:
        assert initial(journal) == {"i01": "right"}


def test_undo_after_the_next_item_was_shown_leaves_the_initial_decision(folder, study):
    with opened(folder, study) as journal:
        journal.decide(task(1), "left", seconds=1)
        journal.show(task(2))
        journal.undo()
        assert journal.next_task([task(1), task(2)]) == task(2)
        journal.decide(task(1), "right", seconds=1)
        journal.decide(task(1), "tie", seconds=1)
        assert initial(journal) == {"i01": "left"}
        assert [each.choice for each in journal.file.standing.later(task(1).key)] == ["right", "tie"]
    table = decisions_of(read_journals(folder, study=study), study)
    assert table[["item_id", "choice", "later"]].to_numpy().tolist() == [["i01", "left", 2]]


def test_without_show_the_next_decision_shows_that_another_item_was_there(folder, study):
    with opened(folder, study) as journal:
        journal.decide(task(1), "left", seconds=1)
        journal.decide(task(1), "right", seconds=1)  # decided twice: the first counts, unless it is undone
        assert initial(journal) == {"i01": "left"}
        journal.decide(task(2), "tie", seconds=1)
        assert journal.undo().item_id == "i02"
        assert journal.undo().choice == "right"
        assert journal.undo().choice == "left"
        assert initial(journal) == {"i01": "left"}


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["decide", "decide", "show", "undo"]), st.integers(1, 3)), max_size=25))
def test_the_initial_decision_whatever_a_reviewer_does(fresh_project, steps):
    """Against the definition: the first decision in the first showing in which one was left standing."""
    with fresh_project() as project:
        folder, study = project.outputs / "small" / "labelling", project.study()
        expected, showing, current, standing = {}, [], None, []
        with opened(folder, study) as journal:
            for place, (step, number) in enumerate(steps):
                if step == "undo":
                    undone = journal.undo()
                    assert (undone.seconds if undone else None) == (standing.pop() if standing else None)
                    showing = [each for each in showing if not undone or each != undone.seconds]
                    continue
                if number != current:
                    expected.setdefault(current, showing[0]) if showing else None
                    current, showing = number, []
                if step == "show":
                    journal.show(task(number))
                    continue
                journal.decide(task(number), "left", seconds=place)
                showing.append(place)
                standing.append(place)
            expected.setdefault(current, showing[0]) if showing else None
            live = {key[1]: first.seconds for key, first in journal.file.standing.initial().items()}
        assert live == {f"i{number:02d}": place for number, place in expected.items()}
        (again,) = read_journals(folder, study=study)
        assert again.standing.initial() == journal.file.standing.initial()
        assert {first.seconds for first in again.standing.initial().values()} == set(expected.values())
        assert all(again.standing.is_decided(key) for key in again.standing.initial())


def test_cannot_judge_needs_a_reason_and_is_no_label(folder, study):
    with opened(folder, study) as journal:
        with pytest.raises(LabelError, match="cannot be recorded for r01: reason is empty"):
            journal.decide(task(1), "cannot_judge", seconds=1, reason=" ")
        journal.decide(task(1), "cannot_judge", seconds=1, reason="Latin")
        journal.decide(task(2), "tie", seconds=1)
        journal.decide(task(3, "repeat", item="i01"), "left", seconds=1)
        decisions = decisions_of([journal.file], study)
        labels = labels_of([journal.file], study)
    assert list(decisions.columns) == DECISIONS
    assert decisions["preference"].isna().tolist() == [True, False, False]
    assert decisions["reason"].tolist() == ["Latin", "", ""]
    assert labels["item_id"].tolist() == ["i02"]  # a repeat of what has no label repeats nothing


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"choice": "A"}, "choice is 'A'; allowed are left, right, tie, cannot_judge"),
        ({"seconds": -1.0}, "seconds is -1.0; a number from 0 is needed"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"scores": {"left": {"correctness": 6}}}, "scores, left, correctness is 6; allowed is 1 to 5"),
        ({"scores": {"left": {"charm": 4}}}, "allowed are scores for correctness"),
        ({"scores": {"A": {"correctness": 4}}}, "are needed under left and right"),
        ({"scores": {"left": {"correctness": True}}}, "correctness is True; allowed is 1 to 5"),
        ({"task": task(1, shown=("ALPHA", "GAMMA"))}, "it must hold ALPHA and BETA"),
        ({"task": task(1, item="i99")}, "item_id 'i99' is not an item of the study"),
        ({"task": task(0)}, "number is 0; a whole number from 1 is needed"),
    ],
)
def test_what_is_not_allowed_is_not_written(folder, study, changes, told):
    given = {"task": task(1), "choice": "left", "seconds": 1.0} | changes
    with opened(folder, study, known=["i01", "i00"]) as journal:
        with pytest.raises(LabelError, match="this cannot be recorded for r01") as caught:
            journal.decide(given.pop("task"), given.pop("choice"), **given)
        assert told in str(caught.value)
        assert (folder / "r01.jsonl").read_bytes() == b""
        assert journal.decide(task(1), "left", seconds=1).record == 1


def test_labels_of_two_reviewers_make_a_label_file(project, folder, study):
    scores = {"left": {"correctness": 5}, "right": {"correctness": 2}}
    for reviewer, shown in (("r02", AB), ("r01", BA)):
        with opened(folder, study, reviewer) as journal:
            journal.decide(task(1, "training", shown, "d01"), "left", seconds=1)
            journal.decide(task(2, shown=shown), "left", seconds=1, scores=scores)
            journal.decide(task(3, shown=shown), "tie", seconds=1)
            journal.decide(task(4, shown=shown), "right", seconds=1, scores={"left": {"correctness": 3}})
            journal.decide(task(5, "repeat", AB, "i02"), "right", seconds=1)
    labels = labels_of(read_journals(folder, study=study), study)
    assert list(labels.columns) == [*COLUMNS, "repeat"]
    told = labels[["reviewer_id", "item_id", "preference", "score_x", "score_y", "repeat"]]
    assert told.fillna(0).to_numpy().tolist() == [
        ["r01", "i02", "BETA", 2, 5, 1], ["r01", "i03", "TIE", 0, 0, 1], ["r01", "i04", "ALPHA", 0, 3, 1],
        ["r01", "i02", "BETA", 0, 0, 2],
        ["r02", "i02", "ALPHA", 5, 2, 1], ["r02", "i03", "TIE", 0, 0, 1], ["r02", "i04", "BETA", 3, 0, 1],
        ["r02", "i02", "BETA", 0, 0, 2],
    ]  # fmt: skip
    write_csv(labels_for_file(labels, study), project.labels_path)
    back = read_label_file(project.labels_path, study).labels
    pd.testing.assert_frame_equal(back[[*COLUMNS, "repeat"]], labels)


def test_journals_go_into_the_views_of_progress_and_adjudication(folder, study):
    items = [Item(f"i{number:02d}", "t", "", "even" if number % 2 == 0 else "odd", {}, "") for number in range(6)]
    orders = {name: labelling_order(study, items, name, training=0, repeats_share=0.5) for name in ("r01", "r02")}
    for reviewer, order in orders.items():
        with opened(folder, study, reviewer, known=[item.item_id for item in items]) as journal:
            for each in order[: 9 if reviewer == "r01" else 3]:
                side = "left" if each.shown[0] == "ALPHA" else "right"  # both prefer ALPHA, but for the item i00
                note = f"{each.item_id} by {len(order)}"
                choice = "tie" if (each.item_id, reviewer) == ("i00", "r01") else side
                journal.decide(each, choice, seconds=each.number, note=note)
    decisions = decisions_of(read_journals(folder, study=study), study)
    progress = progress_table(decisions, planned_table(orders, items)).set_index(["reviewer_id", "category"])
    assert progress.loc[("r01", "all"), ["planned", "done", "repeats_planned", "repeats_done"]].tolist() == [6, 6, 3, 3]
    assert progress.loc[("r02", "all"), ["planned", "done", "repeats_planned", "repeats_done"]].tolist() == [6, 3, 3, 0]
    agreement = agreement_so_far(decisions, labels_allowed=study.labels, ci_level=0.95, resamples=50, seed=1)
    differ = [each.item_id for each in orders["r02"][:3] if each.item_id == "i00"]
    assert agreement.loc[0, ["numerator", "denominator"]].tolist() == [3 - len(differ), 3]
    assert to_adjudicate(decisions)["item_id"].unique().tolist() == differ
    assert differ == ["i00"]


def test_scores_are_weighted_and_need_every_criterion(project, folder):
    criteria = [{"name": "correctness", "weight": 3}, {"name": "style", "weight": 1}]
    study = project.study(direct_scale={"criteria": criteria})
    with opened(folder, study) as journal:
        scores = {"left": {"correctness": 5, "style": 1}, "right": {"correctness": 5}}
        journal.decide(task(1), "left", seconds=1, scores=scores)
        labels = labels_of([journal.file], study)
    assert labels["score_y"].tolist() == [4.0]  # (3 · 5 + 1) / 4; BETA stood left
    assert labels["score_x"].isna().all()


def test_no_journal_and_no_folder(folder, study):
    assert read_journals(folder, study=study) == []
    for table in (decisions_of([], study), labels_of([], study)):
        assert table.empty
    assert list(labels_of([], study).columns) == [*COLUMNS, "repeat"]
    with opened(folder, study) as journal:
        assert decisions_of([journal.file], study).empty
        with pytest.raises(LabelError, match=r"two journals are of reviewer r01; the second is outputs/small/"):
            decisions_of([journal.file, journal.file], study)


# A journal that somebody has edited by hand


def decided(folder, study, count=4):
    with opened(folder, study) as journal:
        for number in range(1, count + 1):
            journal.decide(task(number), "left", seconds=1)
    return (folder / "r01.jsonl").read_text(encoding="utf-8").splitlines()


def changed(line, **changes):
    return json.dumps(json.loads(line) | changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"item_id": "x9"}, "item_id 'x9' is not an item of the study"),
        ({"choice": "ALPHA"}, "choice is 'ALPHA'; allowed are left, right, tie, cannot_judge"),
        ({"choice": None}, "choice is None"),
        ({"record": 1}, "record 1 is there already, in line 1"),
        ({"record": "2"}, "record is '2'; a whole number from 1 is needed"),
        ({"number": True}, "number is True"),
        ({"event": "delete"}, "event is 'delete'; allowed are decision, undo, shown"),
        ({"event": "undo", "undo_of": 9}, "undo_of is 9; no decision of that record stands before it"),
        ({"reviewer": "r02"}, "reviewer is 'r02', but the journal is that of 'r01'"),
        ({"kind": "extra"}, "kind is 'extra'; allowed are training, label, repeat"),
        ({"system_x": "BETA", "system_y": "ALPHA"}, "system_x 'BETA' must stand before system_y 'ALPHA'"),
        ({"shown": "ALPHA"}, "shown is 'ALPHA'; the left and the right system are needed"),
        ({"shown": [["ALPHA"], {}]}, "the left and the right system are needed"),
        ({"scores": [4, 2]}, "scores is [4, 2]; scores by criterion are needed"),
        ({"scores": {"left": 4}}, "scores, left, is 4; allowed are scores for correctness"),
        ({"seconds": "fast"}, "seconds is 'fast'"),
        ({"seconds": 10**400}, "a number from 0 is needed"),
        ({"at": "yesterday"}, "at is 'yesterday'; a time such as 2024-07-19T09:30:00+00:00 is needed"),
        ({"at": "2024-07-19T09:30:00"}, "at is '2024-07-19T09:30:00'"),
        ({"note": 7}, "note is 7; a text is needed"),
        ({"session": " "}, "session is empty"),
    ],
)
def test_a_line_changed_by_hand_is_told_and_the_others_kept(folder, study, changes, told):
    lines = decided(folder, study)
    lines[1] = changed(lines[1], **changes)
    text = "\n".join(lines) + "\n"
    (folder / "r01.jsonl").write_text(text, encoding="utf-8")
    with opened(folder, study, known=["i01", "i02", "i03", "i04"]) as journal:
        (problem,) = journal.file.problems
        assert problem.startswith("outputs/small/labelling/r01.jsonl, line 2: ")
        assert told in problem
        assert problem.endswith("; the line is left out")
        assert initial(journal) == {"i01": "left", "i03": "left", "i04": "left"}
        journal.decide(task(2), "tie", seconds=1)
        assert initial(journal)["i02"] == "tie"
    assert (folder / "r01.jsonl").read_text(encoding="utf-8").startswith(text)


def test_every_wrong_line_is_told(folder, study):
    lines = decided(folder, study, 3)
    broken = [lines[0].encode(), b"", b"{", b'"text"', b"\xff\xfe", b"[" * 100_000, lines[1].encode(), b"NaN"]
    (folder / "r01.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([*broken, lines[2].encode()]))
    (file,) = read_journals(folder, study=study)
    assert [problem.split(": ")[0].split("line ")[1] for problem in file.problems] == ["3", "4", "5", "6", "8"]
    assert "holds str, an object is needed" in file.problems[1]
    assert "not UTF-8" in file.problems[2]
    assert initial(file) == {"i01": "left", "i02": "left", "i03": "left"}


def test_a_copied_journal_is_no_second_reviewer(folder, study):
    decided(folder, study, 2)
    (folder / "r01 (copy).jsonl").write_bytes((folder / "r01.jsonl").read_bytes())
    copy, own = read_journals(folder, study=study)
    assert len(copy.problems) == 2
    assert decisions_of([copy, own], study)["reviewer_id"].tolist() == ["r01", "r01"]


def test_a_last_line_without_its_end_is_completed(folder, study):
    lines = decided(folder, study, 2)
    (folder / "r01.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (file,) = read_journals(folder, study=study)
    assert file.problems == ()
    with opened(folder, study) as journal:
        assert journal.notes == ()
        journal.decide(task(3), "tie", seconds=1)
    assert [line["record"] for line in lines_of(folder)] == [1, 2, 3]
    assert not (folder / "r01.jsonl.broken").exists()


def test_a_file_that_was_replaced_while_a_session_writes(folder, study):
    with opened(folder, study) as journal:
        journal.decide(task(1), "left", seconds=1)
        copy = folder / "copy"
        copy.write_bytes((folder / "r01.jsonl").read_bytes())
        copy.replace(folder / "r01.jsonl")
        with pytest.raises(LabelError, match=r"r01\.jsonl was replaced or removed while session s1 was writing"):
            journal.decide(task(2), "left", seconds=1)
        (folder / "r01.jsonl").rename(folder / "aside")
        with pytest.raises(LabelError, match="was replaced or removed"):
            journal.decide(task(2), "left", seconds=1)
        (folder / "aside").rename(folder / "r01.jsonl")
    with opened(folder, study, session="s2") as journal:
        journal.decide(task(2), "left", seconds=1)
        assert initial(journal) == {"i01": "left", "i02": "left"}


# Kills, full disks, two at once


def test_a_process_killed_in_the_middle_of_a_write(folder, study, start):
    child = start("torn")
    out, _ = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGKILL
    assert out.split() == ["open", "1", "2", "3"]
    content = (folder / "r01.jsonl").read_bytes()
    tail = content[content.rindex(b"\n") + 1 :]
    assert tail
    # without a lock, the half line is told and stays
    (file,) = read_journals(folder, study=study)
    assert ["line 4: not a whole JSON object" in problem for problem in file.problems] == [True]
    with opened(folder, study) as journal:
        taken, mended = journal.notes
        assert f"session torn (process {child.pid}, since 20" in taken
        assert "ended without closing; its decisions are kept" in taken
        assert (
            f"outputs/small/labelling/r01.jsonl, line 4 was half written ({len(tail)} bytes); it is kept in" in mended
        )
        assert journal.next_task([task(n, item=f"i{n:05d}") for n in range(1, 9)]).number == 4
        journal.decide(task(4, item="i00004"), "tie", seconds=1)
    assert (folder / "r01.jsonl.broken").read_bytes() == tail + b"\n"
    assert [line["choice"] for line in lines_of(folder)] == ["left"] * 3 + ["tie"]
    with opened(folder, study) as journal:
        assert journal.notes == journal.file.problems == ()
    # a second half line is kept beside the first
    with (folder / "r01.jsonl").open("ab") as file:
        file.write(b'{"record": 5, \x00')
    opened(folder, study).close()
    assert (folder / "r01.jsonl.broken").read_bytes() == tail + b'\n{"record": 5, \x00\n'


def test_what_was_acknowledged_survives_a_kill_at_any_moment(folder, study, start):
    child = start("often")
    told = [child.stdout.readline() for _ in range(40)]
    child.kill()
    told += child.stdout.readlines()
    acknowledged = int(told[-1])
    assert acknowledged >= 39
    with opened(folder, study) as journal:
        kept = [first.number for first in journal.file.standing.initial().values()]
        assert journal.file.problems == ()
    assert kept in (list(range(1, acknowledged + 1)), list(range(1, acknowledged + 2)))


def test_two_processes_cannot_write_under_one_name(folder, study, start):
    child = start("hold")
    assert child.stdout.readline() == "open\n"
    with pytest.raises(LabelError) as caught:
        opened(folder, study)
    told = str(caught.value)
    assert told.startswith(f"outputs/small/labelling/r01.jsonl: session hold (process {child.pid}, since 20")
    assert "is writing under the name 'r01'; close it first" in told
    with opened(folder, study, "r02"):
        pass  # another name is free
    child.kill()
    child.wait()
    with opened(folder, study) as journal:  # the lock ended with its process
        assert "session hold" in journal.notes[0]


def test_of_two_processes_that_begin_at_once_one_wins(start):
    children = [start("hold") for _ in range(2)]
    told = sorted(child.stdout.readline()[:7] for child in children)
    assert told == ["open\n", "refused"]


def test_two_tabs_of_one_kernel(folder, study):
    with opened(folder, study, session="tab 1") as journal:
        with pytest.raises(LabelError, match=r"session tab 1 \(this process, since"):
            opened(folder, study, session="tab 2")
        journal.decide(task(1), "left", seconds=1)
    with opened(folder, study, session="tab 2") as journal:
        assert journal.notes == ()
        assert initial(journal) == {"i01": "left"}
    journal.close()
    with pytest.raises(LabelError, match=r"this session \(tab 2\) is closed"):
        journal.decide(task(2), "left", seconds=1)
    forgotten = opened(folder, study)
    del forgotten  # as a cell that is run again does
    opened(folder, study).close()


def test_a_full_disk_takes_no_half_a_line(folder, study):
    with opened(folder, study) as journal:
        journal.decide(task(1), "left", seconds=1)
        size = (folder / "r01.jsonl").stat().st_size
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, before[1]))  # the next write ends after 100 bytes
        try:
            with pytest.raises(LabelError, match=r"cannot write outputs/small/labelling/r01\.jsonl: .*not recorded"):
                journal.decide(task(2), "left", seconds=1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert (folder / "r01.jsonl").stat().st_size == size
        assert journal.next_task([task(1), task(2)]) == task(2)
        journal.decide(task(2), "right", seconds=1)
    assert [line["choice"] for line in lines_of(folder)] == ["left", "right"]


def test_an_interrupt_in_a_write_closes_the_session(folder, study, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    journal = opened(folder, study)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.decide(task(1), "left", seconds=1)
    with pytest.raises(LabelError, match="open the journal again"):
        journal.decide(task(1), "right", seconds=1)
    with opened(folder, study) as again:
        assert initial(again) == {"i01": "left"}


def test_a_folder_that_cannot_be_made(folder, study):
    folder.parent.mkdir(parents=True)
    folder.write_text("a file", encoding="utf-8")
    with pytest.raises(LabelError, match=r"cannot open outputs/small/labelling/r01\.jsonl: .*nothing was lost"):
        opened(folder, study)


def test_names_that_are_one_file_elsewhere(folder, study):
    opened(folder, study, "Ann").close()
    with pytest.raises(LabelError, match="journal of 'Ann', which differs from 'ann' in upper and lower case only"):
        opened(folder, study, "ann")
    with pytest.raises(LabelError, match="a session needs a name"):
        opened(folder, study, "Ann", session=" ")
    with pytest.raises(LabelError, match="allowed are up to 80 letters"):
        opened(folder, study, "../Ann")


def test_two_thousand_decisions(folder, study):
    order = [task(number, item=f"i{number:04d}") for number in range(1, 2001)]
    with opened(folder, study) as journal:
        for each in order:
            journal.decide(each, ("left", "right", "tie")[each.number % 3], seconds=each.number)
        assert journal.next_task(order) is None
    with opened(folder, study) as journal:
        assert journal.next_task(order) is None
        labels = labels_of([journal.file], study)
    assert labels["item_id"].tolist() == [each.item_id for each in order]
    assert labels["preference"].value_counts().to_dict() == {"ALPHA": 667, "TIE": 667, "BETA": 666}
