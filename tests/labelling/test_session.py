"""A session of labelling pairs: one person, one form, and whatever they do."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgelab.errors import DataError, LabelError
from judgelab.labelling.decisions import decisions_of
from judgelab.labelling.gathered import gathered_labels
from judgelab.labelling.journal_file import read_journals
from judgelab.labelling.pair_session import PairSession
from judgelab.study.freeze import close_labels, freeze

CHILD = """
import os, signal, sys
from judgelab.labelling.pair_session import PairSession
from judgelab.study.freeze import open_run

session = PairSession(open_run("small"))
view = session.handle({"action": "start", "reviewer": "anna"})
view = session.handle({"action": "decide", "token": view["token"], "choice": "left", "seconds": 1})
print(view["screen"], flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""


def frozen(project, items=4, *, development=0.0, changes=None, **labelling):
    """A frozen run whose labels are made in it; the rest are keys of human_review.labelling."""
    project.write_items(items)
    study = {
        "human_labels": {"provenance": "human"},
        "human_review": {"labelling": {"training": 0, "repeats_share": 0, **labelling}},
        "split": {"development_share": development},
    }
    return freeze("small", project.study(**study | (changes or {})))


def started(run, name="anna"):
    session = PairSession(run)
    say(session, "start", reviewer=name)
    return session


def say(session, action, **values):
    """Send one message with the current token."""
    token = {"token": session.token} if action != "start" else {}
    view = session.handle({"action": action, **token, **values})
    json.dumps(view, allow_nan=False).encode()
    return view


def decide(session, choice="left", **values):
    return say(session, "decide", **{"choice": choice, "seconds": 1.5, **values})


def events(run, name="anna"):
    lines = run.path("labelling", f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def initial(run, name="anna"):
    """Choice by number of the task."""
    journals = [each for each in read_journals(run.path("labelling"), study=run.study) if each.reviewer == name]
    table = decisions_of(journals, run.study)
    return dict(zip(table["number"], table["choice"], strict=True))


def test_from_the_start_to_the_end(project):
    run = frozen(project, 2)
    session = PairSession(run)
    view = session.view()
    assert (view["screen"], view["mode"], view["reviewers"], view["confirm"]) == ("start", "pairs", [], False)
    view = say(session, "start", reviewer=" anna ")
    assert (view["screen"], view["reviewer"], view["problem"], view["decision"]) == ("task", "anna", "", None)
    assert view["progress"] == {"done": 0, "total": 2, "text": "Item 1 of 2"}
    assert [choice["value"] for choice in view["choices"]] == ["left", "right", "tie", "cannot_judge"]
    assert view["can"] == {"undo": False, "back": False, "forward": False, "close_labels": False}
    assert view["rubric"] == [{"name": "correctness", "description": ""}]
    assert view["scale"] is None
    view = decide(session, "right", note="שלום 😀\ta\ud83d")
    assert (view["screen"], view["decision"]["choice"]) == ("saved", "right")
    assert view["decision"]["note"] == "שלום 😀\ta�"
    assert view["can"] == {"undo": True, "back": False, "forward": True, "close_labels": False}
    view = say(session, "next")
    assert (view["screen"], view["decision"], view["progress"]["text"]) == ("task", None, "Item 2 of 2")
    decide(session, "cannot_judge", reason="in a language that I cannot read")
    view = say(session, "next")
    assert (view["screen"], view["progress"]["done"]) == ("done", 2)
    assert view["can"] == {"undo": False, "back": True, "forward": False, "close_labels": False}
    assert view["message"].startswith("Everything is decided: thank you. Where labels differ, somebody else decides")
    assert [line["event"] for line in events(run)] == ["shown", "decision"] * 2
    session.close()
    session.close()


def test_answers_stand_as_the_reviewer_draws_them_and_nothing_tells_the_system(project):
    run = frozen(project, 6)
    session = started(run)
    for task in session.tasks:
        view = session.view()
        answers = [answer["content"]["text"] for answer in view["texts"]["answers"]]
        item = next(item for item in run.items() if item.item_id == task.item_id)
        assert answers == [item.answers[name] for name in task.shown]
        assert [answer["letter"] for answer in view["texts"]["answers"]] == ["A", "B"]
        assert view["texts"]["context"] is None
        told = json.dumps(view).upper()
        assert "ALPHA" not in told
        assert "BETA" not in told
        decide(session)
        say(session, "next")
    assert {task.shown for task in session.tasks} == {("ALPHA", "BETA"), ("BETA", "ALPHA")}


def test_a_repeat_looks_like_any_other_item(project):
    run = frozen(project, 6, repeats_share=0.5)
    session = started(run)
    views = []
    while session.screen != "done":
        views.append(session.view())
        decide(session)
        say(session, "next")
    kinds = [task.kind for task in session.tasks]
    assert kinds.count("repeat") == 3
    for place, view in enumerate(views):
        assert view["progress"] == {"done": place, "total": 9, "text": f"Item {place + 1} of 9"}
        assert view["decision"] is None
        assert not view["earlier"]
        assert "repeat" not in json.dumps(view)
    assert len({json.dumps([view["can"], view["title"], view["message"]]) for view in views[1:]}) == 1


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"choice": None}, "Nothing is chosen"),
        ({"choice": "ALPHA"}, "allowed are left, right, tie, cannot_judge"),
        ({"choice": ["left"]}, "allowed are left"),
        ({"choice": "cannot_judge"}, "why it cannot be judged"),
        ({"choice": "cannot_judge", "reason": " \n"}, "why it cannot be judged"),
        ({"seconds": -1}, "seconds is -1; a number from 0"),
        ({"seconds": float("nan")}, "seconds is nan"),
        ({"seconds": 1e12}, "seconds is 1000000000000.0"),
        ({"seconds": True}, "seconds is True"),
        ({"seconds": None}, "seconds is None"),
        ({"note": 5}, "note is 5; a text is needed"),
        ({"reason": []}, "reason is []; a text is needed"),
        ({"scores": {"left": {"correctness": 3}}}, "Scores are not asked for"),
    ],
)
def test_what_cannot_be_recorded_is_told_and_kept_in_the_form(project, message, told):
    run = frozen(project)
    session = started(run)
    view = decide(session, **{"note": "typed", **message})
    assert (view["screen"], view["progress"]["done"]) == ("task", 0)
    assert told in view["problem"]
    assert view["decision"]["note"] == ("typed" if message.get("note", "") == "" else "")
    assert [line["event"] for line in events(run)] == ["shown"]
    assert decide(session)["problem"] == ""
    assert initial(run) == {1: "left"}


def test_scores_are_wanted_where_the_protocol_asks_for_them(project):
    two = {"direct_scale": {"criteria": ["correctness", "tone"]}}
    run = frozen(project, criterion_scores=True, changes=two)
    session = started(run)
    assert session.view()["scale"] == {"minimum": 1, "maximum": 5}
    half = {"left": {"correctness": 4, "tone": 1}, "right": {"tone": 2}}
    view = decide(session, scores=half)
    assert view["problem"] == "1 of 4 scores are missing: B, correctness"
    assert view["decision"]["scores"] == half
    assert "4 of 4 scores are missing" in decide(session)["problem"]
    whole = {"left": {"correctness": 4, "tone": 1}, "right": {"correctness": 9, "tone": 2}}
    assert "right, correctness is 9; allowed is 1 to 5" in decide(session, scores=whole)["problem"]
    nan = {"left": {"correctness": float("nan"), "tone": 1}, "right": {"correctness": 1, "tone": 2}}
    assert "correctness is nan" in decide(session, scores=nan)["problem"]
    assert [line["event"] for line in events(run)] == ["shown"]
    whole["right"]["correctness"] = 5
    assert decide(session, scores=whole)["decision"]["scores"] == whole
    say(session, "next")
    assert decide(session, "cannot_judge", reason="why")["problem"] == ""


def test_without_ties_there_is_no_tie(project):
    run = frozen(project, changes={"pairwise_labels": ["A", "B"]})
    session = started(run)
    assert [choice["key"] for choice in session.view()["choices"]] == ["a", "b", "c"]
    assert "allowed are left, right, cannot_judge" in decide(session, "tie")["problem"]
    assert initial(run) == {}


def test_undo_brings_the_decision_back_into_the_form(project):
    run = frozen(project)
    session = started(run)
    assert "nothing to undo" in say(session, "undo")["problem"]
    decide(session, "left", note="because")
    assert "decided already" in decide(session, "right")["problem"]
    view = say(session, "undo")
    assert (view["screen"], view["decision"]["choice"], view["decision"]["note"]) == ("task", "left", "because")
    assert view["progress"]["done"] == 0
    assert initial(run) == {}
    decide(session, "right")
    say(session, "next")
    assert "nothing to undo" in say(session, "undo")["problem"]
    assert initial(run) == {1: "right"}


def test_later_decisions_stand_beside_the_initial_one(project):
    run = frozen(project, 4)
    session = started(run)
    for choice in ("left", "right"):
        decide(session, choice)
        say(session, "next")
    view = say(session, "back")
    assert (view["earlier"], view["decision"]["choice"], view["progress"]["text"]) == (True, "right", "Item 2 of 4")
    assert view["can"] == {"undo": False, "back": True, "forward": True, "close_labels": False}
    view = decide(session, "tie")
    assert (view["screen"], view["earlier"], view["decision"]["choice"]) == ("saved", True, "tie")
    view = say(session, "undo")
    assert (view["screen"], view["earlier"], view["decision"]["choice"]) == ("task", True, "tie")
    decide(session, "left")
    assert say(session, "back")["progress"]["text"] == "Item 1 of 4"
    assert "no decided item before" in say(session, "back")["problem"]
    assert say(session, "forward")["decision"]["choice"] == "left"
    view = say(session, "forward")
    assert (view["progress"]["text"], view["earlier"], view["decision"]) == ("Item 3 of 4", False, None)
    assert "decide first" in say(session, "forward")["problem"]
    assert "decide first" in say(session, "next")["problem"]
    assert initial(run) == {1: "left", 2: "right"}


def test_the_initial_decision_is_fixed_as_soon_as_another_item_is_shown(project):
    run = frozen(project)
    session = started(run)
    decide(session, "left")
    say(session, "next")
    decide(session, "right")
    say(session, "back")
    assert say(session, "forward")["earlier"]
    decide(session, "tie")
    say(session, "undo")
    assert initial(run) == {1: "left", 2: "right"}


def test_a_message_of_another_page_changes_nothing(project):
    run = frozen(project)
    session = started(run)
    old = session.token
    message = {"action": "decide", "token": old, "choice": "left", "seconds": 1}
    assert session.handle(message)["screen"] == "saved"
    for _ in range(2):  # the other tab, and a double click
        view = session.handle(message)
        assert (view["screen"], view["decision"]["choice"]) == ("saved", "left")
        assert "nothing was changed" in view["problem"]
    assert session.view()["token"] == view["token"] != old
    assert session.view()["problem"] == view["problem"]
    assert len(events(run)) == 2


@pytest.mark.parametrize("message", [None, {}, [], {"action": None}, {"action": []}, {"action": "eat"}, "start"])
def test_a_strange_message_is_told(project, message):
    session = PairSession(frozen(project))
    assert session.handle(message)["problem"]
    say(session, "start", reviewer="anna")
    given = message | {"token": session.token} if isinstance(message, dict) else message
    view = session.handle(given)
    assert view["problem"]
    assert view["screen"] == "task"


@pytest.mark.parametrize("name", ["", "  ", None, 7, "../up", "a b", "ä", "x" * 81, ".hidden"])
def test_a_name_that_cannot_be_one_is_told(project, name):
    run = frozen(project)
    view = say(PairSession(run), "start", reviewer=name)
    assert view["screen"] == "start"
    assert view["problem"]
    assert not run.path("labelling").exists()


def test_a_name_that_has_a_journal_must_be_said_twice(project):
    run = frozen(project)
    session = started(run)
    decide(session)
    say(session, "next")
    view = say(session, "stop")
    assert (view["screen"], view["reviewer"], view["reviewers"]) == ("start", "", ["anna"])
    assert "anna" in view["message"]
    view = say(session, "start", reviewer="anna")
    assert (view["screen"], view["confirm"], view["reviewer"], view["problem"]) == ("start", True, "anna", "")
    day = events(run)[1]["at"][:10]
    assert view["message"] == f"anna has 1 of 4 decisions, last on {day}: go on only if that is you."
    assert "differs from 'Anna'" in say(session, "start", reviewer="Anna")["problem"]
    assert say(session, "start", reviewer="anna")["progress"]["text"] == "Item 2 of 4"
    say(session, "stop")
    assert say(session, "start", reviewer="anna", confirmed=True)["screen"] == "task"
    assert "session of anna is open here" in say(session, "start", reviewer="ben")["problem"]
    assert say(session, "start", reviewer="anna")["problem"] == ""
    say(session, "stop")
    assert say(session, "start", reviewer="ben")["screen"] == "task"


def test_a_cell_that_is_run_again_takes_the_journal_over(project):
    run = frozen(project)
    first = started(run)
    decide(first)
    second = PairSession(run)
    say(second, "start", reviewer="anna")
    view = say(second, "start", reviewer="anna")
    assert (view["screen"], view["progress"]["done"]) == ("task", 1)
    view = first.view()
    assert view["screen"] == "stopped"
    assert "opened again elsewhere" in view["message"]
    view = decide(first)
    assert view["screen"] == "stopped"
    assert "No session is open" in view["problem"]
    view = say(first, "start", reviewer="anna", confirmed=True)
    assert view["screen"] == "task"
    assert second.view()["screen"] == "stopped"
    assert initial(run) == {1: "left"}


def test_a_session_that_cannot_start_leaves_the_other_one_alone(project):
    run = frozen(project)
    first, second = started(run), PairSession(run)
    second.order = lambda reviewer: (_ for _ in ()).throw(LabelError("no order"))
    view = say(second, "start", reviewer="anna", confirmed=True)
    assert (view["screen"], view["problem"], view["progress"]["total"]) == ("start", "no order", 0)
    assert decide(first)["screen"] == "saved"


def test_a_forgotten_session_frees_its_name(project):
    run = frozen(project)
    started(run)
    gc.collect()
    assert say(PairSession(run), "start", reviewer="anna", confirmed=True)["screen"] == "task"


def test_another_process_holds_the_name(project, tmp_path):
    run = frozen(project)
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, "holds"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "saved\n"
        session = PairSession(run)
        view = say(session, "start", reviewer="anna", confirmed=True)
        assert view["screen"] == "start"
        assert "is writing under the name 'anna'" in view["problem"]
        child.stdin.close()
        child.wait()
    assert say(session, "start", reviewer="anna", confirmed=True)["progress"]["done"] == 1


def test_a_killed_kernel_loses_nothing(project):
    run = frozen(project)
    child = subprocess.run([sys.executable, "-c", CHILD, "killed"], capture_output=True, text=True, check=False)
    assert child.returncode == -signal.SIGKILL
    with run.path("labelling", "anna.jsonl").open("ab") as file:
        file.write(b'{"record": 3, "event": "shown", "rev')  # a line that was being written
    session = PairSession(run)
    view = say(session, "start", reviewer="anna", confirmed=True)
    assert (view["screen"], view["progress"]["text"]) == ("task", "Item 2 of 4")
    assert "ended without closing" in view["message"]
    assert "half written" in view["message"]
    assert initial(run) == {1: "left"}


def test_a_journal_that_was_edited_by_hand_is_told(project):
    run = frozen(project)
    session = started(run)
    decide(session)
    session.close()
    path = run.path("labelling", "anna.jsonl")
    path.write_bytes(path.read_bytes() + b"what?\n" * 7)
    view = say(session, "start", reviewer="anna", confirmed=True)
    assert "7 lines of the journal cannot be used:\n" in view["message"]
    assert view["message"].endswith("and 2 more")
    assert view["progress"]["done"] == 1


def test_a_replaced_journal_ends_the_session(project):
    run = frozen(project)
    session = started(run)
    path = run.path("labelling", "anna.jsonl")
    path.rename(path.with_name("kept.txt"))
    view = decide(session)
    assert view["screen"] == "stopped"
    assert "was replaced or removed" in view["message"]
    assert say(session, "start", reviewer="anna", confirmed=True)["screen"] == "task"
    assert decide(session)["screen"] == "saved"


def test_on_a_full_disk_the_same_decision_can_be_sent_again(project, monkeypatch):
    run = frozen(project)
    session = started(run)
    fsync = os.fsync

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    view = decide(session, note="why")
    assert "No space left on device" in view["problem"]
    assert (view["screen"], view["decision"]["note"]) == ("task", "why")
    monkeypatch.setattr(os, "fsync", fsync)
    assert decide(session, note="why")["screen"] == "saved"
    monkeypatch.setattr(os, "fsync", full)
    assert "No space left on device" in say(session, "next")["problem"]
    assert session.view()["screen"] == "saved"
    monkeypatch.setattr(os, "fsync", fsync)
    assert say(session, "next")["screen"] == "task"
    assert initial(run) == {1: "left"}


def test_closed_labels_close_every_session(project):
    run = frozen(project, 1)
    other, session = started(run, "ben"), started(run)
    decide(session)
    say(session, "next")
    view = say(session, "close_labels")
    assert (view["screen"], view["problem"]) == ("done", "")
    assert "with reviewers: 1, initial labels: 1, adjudicated labels: 0, repeats: 0." in view["message"]
    assert "ben has 1 of 1 tasks left" in view["message"]
    view = say(session, "close_labels", confirmed=True)
    assert view["screen"] == "closed"
    assert view["message"].startswith("The labels of this study are closed: nothing can be added.")
    assert decide(other)["screen"] == "closed"
    assert say(other, "start", reviewer="ben")["screen"] == "closed"
    assert PairSession(run).view()["screen"] == "closed"
    assert [line["event"] for line in events(run, "ben")] == ["shown"]


def test_nothing_is_closed_without_a_label(project):
    run = frozen(project, 1)
    session = started(run)
    decide(session, "cannot_judge", reason="why")
    say(session, "next")
    assert "no label yet" in say(session, "close_labels", confirmed=True)["problem"]
    assert session.view()["screen"] == "done"


def test_labels_closed_elsewhere_in_the_middle_of_an_item(project):
    run = frozen(project, 2)
    session = started(run)
    decide(session)
    close_labels(run, gathered_labels(run).labels)
    view = say(session, "next")
    assert view["screen"] == "closed"
    assert view["texts"]["answers"] == []


def test_training_with_and_without_feedback(project):
    project.write_items(12)
    key = project.root / "params" / "small" / "key.csv"
    options = {"development": 0.25, "training": 3, "training_key": "params/small/key.csv"}
    run = frozen(project, 12, **{**options, "training_key": None})
    first, second, third = PairSession(run).order("anna")[:3]
    rows = [f'{first.item_id},{first.shown[0]},"Because, <b>it</b> is."', f"{second.item_id},TIE,"]
    key.write_text("\n".join(["item_id,preference,explanation", *rows]) + "\n")
    project.outputs.rename(project.root / "before")
    session = started(frozen(project, 12, **options))
    assert session.view()["progress"]["text"] == "Training 1 of 3"
    view = decide(session, "left")
    assert view["screen"] == "feedback"
    assert view["feedback"] == {"agrees": True, "expected": "A is better", "explanation": "Because, <b>it</b> is."}
    view = say(session, "undo")
    assert (view["screen"], view["feedback"]) == ("task", None)
    assert not decide(session, "cannot_judge", reason="why")["feedback"]["agrees"]
    say(session, "next")
    assert decide(session, "right")["feedback"] == {"agrees": False, "expected": "Tie", "explanation": ""}
    view = say(session, "forward")
    assert view["progress"]["text"] == "Training 3 of 3"
    assert decide(session)["screen"] == "saved"
    view = say(session, "next")
    assert view["progress"] == {"done": 3, "total": 12, "text": "Item 1 of 9"}
    assert decide(session)["feedback"] is None
    assert session.tasks[2] == third


def test_a_wrong_key_is_told_before_anybody_labels(project):
    (project.root / "params" / "small" / "key.csv").write_text("item_id,preference,explanation\nnone,ALPHA,\n")
    run = frozen(project, 4, training_key="params/small/key.csv")
    with pytest.raises(DataError, match="line 2: 'none' is no item of this study"):
        PairSession(run)


def test_only_a_study_whose_pairs_are_labelled_here_has_a_session(project):
    project.write_items(2)
    project.label_all(2)
    with pytest.raises(LabelError, match="are not made in the study"):
        PairSession(freeze("filed", project.study()))
    with pytest.raises(LabelError, match="are rankings"):
        PairSession(frozen(project, mode="ranking"))


def test_a_run_whose_folder_is_gone_tells_it(project):
    run = frozen(project)
    session = started(run)
    run.folder.rename(project.root / "moved")
    view = decide(session)
    assert view["screen"] == "closed"
    assert "protocol.yaml" in view["message"]


def test_texts_are_text_and_html_is_made_only_while_it_is_wanted(project):
    bad = "**bold** <img src=x onerror=alert(1)> <script>alert(1)</script>\tא"
    records = [project.item(0, answer_alpha=bad, reference_context="_given_")]
    project.write_items(records)
    study = {"human_labels": {"provenance": "human"}, "human_review": {"labelling": {"training": 0}}}
    session = started(freeze("small", project.study(**study)))
    view = session.view()
    texts = [view["texts"]["context"], *(answer["content"] for answer in view["texts"]["answers"])]
    assert [text["html"] for text in texts] == [None] * 3
    assert bad in [text["text"] for text in texts]
    view = say(session, "markdown", value=True)
    assert view["markdown"]
    assert view["texts"]["context"]["html"].strip() == "<p><em>given</em></p>"
    html = " ".join(answer["content"]["html"] for answer in view["texts"]["answers"])
    assert "<strong>bold</strong>" in html
    assert "<script" not in html
    assert "<img" not in html
    assert say(session, "markdown", value="yes")["texts"]["context"]["html"] is None


def test_a_view_of_very_long_answers_is_cheap(project):
    long = "**word** and `code`\n" * 10_000
    project.write_items([project.item(0, answer_alpha=long, answer_beta=long[::-1])])
    study = {
        "human_labels": {"provenance": "human"},
        "human_review": {"labelling": {"training": 0}},
        "items": {"path": "params/small/items.jsonl", "max_answer_characters": 300_000},
    }
    session = started(freeze("small", project.study(**study)))
    for markdown in (False, True):
        say(session, "markdown", value=markdown)
        begun = time.perf_counter()
        for _ in range(20):
            view = session.view()
        assert time.perf_counter() - begun < 1
    assert len(view["texts"]["answers"][0]["content"]["text"]) == 200_000


CHOICES = st.sampled_from(["left", "right", "tie", "cannot_judge", "", "ALPHA", None, 3])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
STEPS = st.one_of(
    st.tuples(st.just("decide"), CHOICES, st.sampled_from([0, 2.5, -1, float("nan"), None])),
    st.tuples(st.sampled_from(["decide", "next", "back", "forward", "decide"]), st.just("left"), st.just(1)),
    st.tuples(st.sampled_from(["next", "undo", "back", "forward", "stop", "start", "again", "stale"])),
    st.tuples(st.just("odd"), st.dictionaries(st.sampled_from(["action", "choice", "scores", "token"]), ANYTHING)),
    st.tuples(
        st.just("weird"),
        st.sampled_from(["decide", "markdown", "close_labels"]),
        st.dictionaries(st.sampled_from(["choice", "scores", "note", "seconds", "reason", "ranks"]), ANYTHING),
    ),
)


class Naive:
    """What should become of the initial decisions, without a journal."""

    def __init__(self, n: int) -> None:
        self.initial: dict[int, str] = {}
        self.n, self.at, self.saved, self.open = n, 0, False, ""

    def decided(self, place: int) -> bool:
        return place in self.initial or (place == self.at and self.open != "")

    def frontier(self) -> int:
        return next((place for place in range(self.n) if not self.decided(place)), self.n)

    def go(self, place: int) -> None:
        if self.open:
            self.initial[self.at] = self.open
        self.at, self.saved, self.open = place, False, ""

    def decide(self, choice: str) -> None:
        if self.saved or self.at == self.n:
            return
        self.open = "" if self.at in self.initial else choice
        self.saved = True

    def next(self) -> None:
        if self.saved:
            self.go(self.frontier())

    def undo(self) -> None:
        if self.saved:
            self.saved, self.open = False, ""

    def back(self) -> None:
        before = [place for place in range(self.at) if self.decided(place)]
        if before:
            self.go(before[-1])

    def forward(self) -> None:
        if self.saved and self.at not in self.initial:
            self.next()
            return
        after = [place for place in range(self.at + 1, self.n) if self.decided(place)]
        if self.frontier() > self.at:
            after.append(self.frontier())
        if after:
            self.go(min(after))

    def all(self) -> dict[int, str]:
        return self.initial | ({self.at: self.open} if self.open else {})


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=30))
def test_any_sequence_of_messages(fresh_project, steps):
    with fresh_project() as project:
        run = frozen(project, 3, repeats_share=0.34)
        session, naive = started(run), Naive(4)
        for what, *given_values in steps:
            here = session.journal is not None
            if what == "odd":
                view = session.handle({**given_values[0], "action": given_values[0].get("action", 5)})
            elif what == "weird":
                action, values = given_values
                if values.get("choice") in ("left", "right"):
                    continue
                view = say(session, action, **values)
            elif what == "stale":
                view = session.handle({"action": "decide", "token": "old", "choice": "left", "seconds": 1})
                assert view["problem"]
            elif what in ("start", "again"):
                if what == "again" and here:
                    session = PairSession(run)
                view = say(session, "start", reviewer="anna", confirmed=True)
                if what == "again" or not here:
                    naive.go(naive.frontier())
            elif what == "decide":
                choice, seconds = given_values
                view = say(session, "decide", choice=choice, seconds=seconds, reason="r")
                if here and choice in ("left", "right", "tie", "cannot_judge") and seconds in (0, 1, 2.5):
                    naive.decide(choice)
            else:
                view = say(session, what)
                if here and what != "stop":
                    getattr(naive, what)()
            json.dumps(view, allow_nan=False).encode()
            if session.journal is not None:
                place = "done" if naive.at == 4 else "saved" if naive.saved else "task"
                assert view["screen"] == place
                assert view["progress"]["done"] == len(naive.all())
        numbers = {place + 1: choice for place, choice in naive.all().items()}
        assert initial(run) == numbers
        session.close()
