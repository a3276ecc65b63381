"""A session of ranking, by its messages and views: what a reviewer sees, what is recorded, what is told."""

from __future__ import annotations

import json
import re

import pytest

from judgelab.errors import DataError, LabelError
from judgelab.judging.ranking_data import read_expert_ranks
from judgelab.labelling.gathered import gathered_labels
from judgelab.labelling.journal import Journal
from judgelab.labelling.rank_tasks import ranking_order
from judgelab.labelling.ranking_session import RankingSession
from judgelab.labelling.ranks import pairs_of_ranks, ranks_of, read_rank_journals
from judgelab.labelling.tasks import LabelTask
from judgelab.measure.labelling_progress import progress_table
from judgelab.study.freeze import freeze, open_run

THREE = ("red", "green", "blue")
MANY = tuple(f"s{number:02d}" for number in range(26))


def run_of(project, systems=THREE, items=6, *, labelling=None, **changes):
    project.write_items(
        [
            {
                "item_id": f"i{number:02d}",
                "category": "c",
                "task": f"Question {number}?",
                "reference_context": "see above" if number % 2 else "",
                "answers": {name: f"answer {name} {number} <b>x</b>" for name in systems},
            }
            for number in range(items)
        ]
    )
    values = {
        "systems": {name: {} for name in systems},
        "human_labels": {"provenance": "human"},
        "human_review": {"labelling": {"mode": "ranking", "training": 0, "repeats_share": 0} | (labelling or {})},
    }
    return freeze("small", project.study(**(values | changes)))


class Form:
    """A form that sends what a person does in it."""

    def __init__(self, run):
        self.session = RankingSession(run)
        self.view = self.session.view()

    def send(self, action, **more):
        message = {"action": action, "token": self.view["token"], **more}
        self.view = json.loads(json.dumps(self.session.handle(json.loads(json.dumps(message)))))
        return self.view

    def start(self, reviewer="r01"):
        return self.send("start", reviewer=reviewer, confirmed=True)

    def rank(self, ranks, **more):
        return self.send("decide", ranks=ranks, seconds=2.5, **({"choice": "", "reason": "", "note": ""} | more))

    def by_system(self, wanted):
        """Ranks in the places that are shown, by the colour that an answer names; a person sees the text only."""
        answers = [each["content"]["text"] for each in self.view["texts"]["answers"]]
        return [wanted[answer.split()[1]] for answer in answers]


@pytest.fixture
def form(project):
    made = Form(run_of(project))
    yield made
    made.session.close()


def journals(run):
    return read_rank_journals(run.path("labelling") / "ranks", study=run.study)


def test_a_task_shows_all_answers_and_nothing_of_the_systems(form):
    assert form.view["screen"] == "start"
    view = form.start()
    assert (view["screen"], view["mode"], view["title"]) == ("task", "ranking", "Ranking")
    assert [each["letter"] for each in view["texts"]["answers"]] == ["A", "B", "C"]
    first = form.session.tasks[0]
    number = int(first.item_id[1:])
    assert view["texts"]["task"] == {"text": f"Question {number}?", "html": None}
    assert [each["content"]["text"] for each in view["texts"]["answers"]] == [
        f"answer {name} {number} <b>x</b>" for name in first.shown
    ]
    assert view["choices"] == [{"value": "cannot_judge", "key": "c", "label": "Cannot judge"}]
    assert view["scale"] is None
    assert view["decision"] is None
    assert view["progress"] == {"done": 0, "total": 6, "text": "Item 1 of 6"}
    without_texts = json.dumps({name: value for name, value in view.items() if name != "texts"})
    assert not any(name in without_texts for name in THREE)


def test_ranks_are_saved_normalised_undone_and_saved_again(form):
    form.start()
    view = form.rank([3, 1, 3], note="close")
    assert (view["screen"], view["problem"]) == ("saved", "")
    assert view["decision"] == {"choice": "", "scores": {}, "reason": "", "note": "close", "ranks": [2, 1, 2]}
    view = form.send("undo")
    assert (view["screen"], view["decision"]["ranks"]) == ("task", [2, 1, 2])
    form.rank([1, 2, 3])
    view = form.send("next")
    assert (view["screen"], view["decision"], view["progress"]["done"]) == ("task", None, 1)
    view = form.send("back")
    assert (view["earlier"], view["decision"]["ranks"]) == (True, [1, 2, 3])
    form.rank([1, 1, 1])
    form.send("forward")
    (file,) = journals(form.session.run)
    (first,) = file.standing.initial().values()
    assert (first.ranks, first.seconds, first.number) == ((1, 2, 3), 2.5, 1)
    assert [later.ranks for later in file.standing.later(first.key)] == [(1, 1, 1)]


def test_cannot_judge(form):
    form.start()
    view = form.rank([], choice="cannot_judge", reason=" ")
    assert view["problem"] == "Say in the reason why it cannot be judged."
    view = form.rank([], choice="cannot_judge", reason="Latin")
    assert view["screen"] == "saved"
    assert view["decision"] == {
        "choice": "cannot_judge", "scores": {}, "reason": "Latin", "note": "", "ranks": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"ranks": []}, "3 of 3 answers have no rank yet: A, B, C."),
        ({"ranks": None}, "3 of 3 answers have no rank yet"),
        ({"ranks": "123"}, "3 of 3 answers have no rank yet"),
        ({"ranks": {"red": 1}}, "3 of 3 answers have no rank yet"),
        ({"ranks": [1, None, 2]}, "1 of 3 answers have no rank yet: B."),
        ({"ranks": [1, 2]}, "1 of 3 answers have no rank yet: C."),
        ({"ranks": [1, 2, 4]}, "The rank of C is 4; allowed are whole numbers from 1 to 3."),
        ({"ranks": [0, 1, 2]}, "The rank of A is 0; allowed"),
        ({"ranks": [1, "2", 3]}, "The rank of B is 2; allowed are whole numbers"),
        ({"ranks": [1, 2.5, 3]}, "The rank of B is 2.5"),
        ({"ranks": [True, 2, 3]}, "The rank of A is True"),
        ({"ranks": [1, 2, 3, 3]}, "There are 4 ranks; 3 are needed, one for each answer."),
        ({"choice": "left"}, "choice is 'left'; allowed are ranks without a choice, and cannot_judge"),
        ({"choice": 7}, "choice is 7; a text is needed"),
        ({"scores": {"left": {"correctness": 3}}}, "Scores are not asked for here."),
        ({"seconds": -1}, "seconds is -1"),
    ],
)
def test_what_a_person_can_do_wrong_is_told_and_not_recorded(form, more, told):
    form.start()
    given = {"ranks": [1, 2, 3], "choice": "", "seconds": 1.0, "note": "kept"} | more
    view = form.send("decide", **given)
    assert told in view["problem"]
    assert view["screen"] == "task"
    assert view["decision"]["note"] == "kept"
    assert not journals(form.session.run)[0].standing.decisions
    assert form.rank([1, 2, 3])["screen"] == "saved"


def test_a_stale_page_changes_nothing(form):
    stale = form.start()["token"]
    form.rank([1, 2, 3])
    view = form.send("decide", token=stale, ranks=[3, 2, 1], seconds=1)
    assert view["screen"] == "saved"
    assert "nothing was changed" in view["problem"]
    assert view["decision"]["ranks"] == [1, 2, 3]


def test_no_ties_where_the_protocol_has_none(project):
    form = Form(run_of(project, pairwise_labels=["A", "B"]))
    form.start()
    assert "A, C share a rank, and this study has no ties" in form.rank([1, 3, 1])["problem"]
    assert form.rank([1, 3, 2])["screen"] == "saved"
    form.session.close()


def test_resume_in_another_session_with_repeats(project):
    run = run_of(project, labelling={"repeats_share": 0.5})
    form = Form(run)
    form.start()
    wanted = {"label": {"red": 1, "green": 2, "blue": 3}, "repeat": {"red": 1, "green": 3, "blue": 3}}
    order = ranking_order(run.study, run.items(), "r01", training=0, repeats_share=0.5)
    for task in order[:4]:
        form.rank(form.by_system(wanted[task.kind]))
        form.send("next")
    form.send("stop")
    form = Form(run)
    assert form.view["reviewers"] == ["r01"]
    view = form.send("start", reviewer="r01")
    assert "r01 has 4 of 9 decisions" in view["message"]
    view = form.start()
    assert view["progress"] == {"done": 4, "total": 9, "text": "Item 5 of 9"}
    texts = set()
    for task in order[4:]:
        texts.add(form.view["progress"]["text"])
        form.rank(form.by_system(wanted[task.kind]))
        form.send("next")
    assert texts == {f"Item {number} of 9" for number in range(5, 10)}
    assert form.view["screen"] == "done"
    assert not form.view["can"]["close_labels"], "the adjudicator closes them"
    form.session.close()
    ranks, labels = ranks_of(journals(run), run.study), pairs_of_ranks(journals(run), run.study)
    assert ranks.groupby("system")["rank"].unique().map(list).to_dict() == {"red": [1], "green": [2], "blue": [3]}
    assert len(ranks) == 18
    assert labels["repeat"].value_counts().to_dict() == {1: 18, 2: 9}
    assert set(labels.loc[(labels["repeat"] == 2) & (labels["system_x"] == "green"), "preference"]) == {"TIE"}


def test_training_with_a_key(project):
    rows = "item_id,system_x,system_y,preference,explanation\n"
    study = {"split": {"development_share": 0.5}, "labelling": {"training": 2, "training_key": "params/small/key.csv"}}
    path = project.root / "params" / "small" / "key.csv"
    run = run_of(project, **study)
    item_ids = [item.item_id for item in run.items() if item.split == "development"]
    first, second = (
        task.item_id for task in ranking_order(run.study, run.items(), "r01", training=2, repeats_share=0)[:2]
    )
    rows += f"{first},red,green,red,Red is right.\n{first},blue,green,TIE,Both are wrong.\n"
    path.write_text(rows, encoding="utf-8")
    form = Form(run)
    assert len(item_ids) >= 2
    assert form.start()["progress"]["text"] == "Training 1 of 2"
    shown = form.session.tasks[0].shown
    letter = {name: "ABC"[shown.index(name)] for name in THREE}
    view = form.rank(form.by_system({"red": 1, "green": 2, "blue": 2}))
    assert view["screen"] == "feedback"
    tie = " equal to ".join(sorted((letter["green"], letter["blue"])))
    wanted = sorted([f"{letter['red']} before {letter['green']}", tie])
    assert view["feedback"] == {
        "agrees": True, "expected": "; ".join(wanted), "explanation": "Red is right.\nBoth are wrong.",
    }  # fmt: skip
    form.send("undo")
    assert form.rank(form.by_system({"red": 1, "green": 3, "blue": 2}))["feedback"]["agrees"] is False
    form.send("undo")
    assert form.rank([], choice="cannot_judge", reason="?")["feedback"]["agrees"] is False
    assert form.send("next")["progress"]["text"] == "Training 2 of 2"
    assert form.session.tasks[1].item_id == second
    assert form.rank([1, 2, 3])["screen"] == "saved"  # the key says nothing of this one
    assert form.send("next")["progress"]["text"].startswith("Item 1 of ")
    form.session.close()
    assert ranks_of(journals(run), run.study).empty
    path.write_text(rows + f"{first},red,pink,red,\n", encoding="utf-8")
    with pytest.raises(DataError, match="'pink' is no system of this study"):
        RankingSession(run)


@pytest.mark.parametrize("systems", [("red", "green"), MANY])
def test_two_and_twenty_six_answers(project, systems):
    form = Form(run_of(project, systems, items=2, split={"development_share": 0}))
    form.start()
    n = len(systems)
    assert "".join(each["letter"] for each in form.view["texts"]["answers"]) == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:n]
    form.rank(list(range(n, 0, -1)))
    assert form.view["decision"]["ranks"] == list(range(n, 0, -1))
    form.session.close()


def test_a_run_of_another_sort_is_refused(project):
    with pytest.raises(LabelError, match="the labels of run small are of pairs; answers are ranked with"):
        RankingSession(run_of(project, labelling={"mode": "pairs"}))
    run = freeze("other", project.study(systems={name: {} for name in THREE}, human_labels=None))
    with pytest.raises(LabelError, match="the labels of run other are not made in the study"):
        RankingSession(run)


def test_closing_writes_labels_and_ranks_that_stages_02_and_09_read(project):
    run = run_of(project, labelling={"repeats_share": 0.2})
    for reviewer, last in (("r01", 3), ("r02", 2)):  # they differ on green and blue, in every item
        form = Form(run)
        form.start(reviewer)
        while form.view["screen"] != "done":
            form.rank(form.by_system({"red": 1, "green": 2, "blue": last}))
            form.send("next")
        if reviewer == "r01":
            form.session.close()
    gathered = gathered_labels(run)
    progress = progress_table(gathered.decisions, gathered.planned)
    assert progress.loc[progress["category"] == "all", ["planned", "done", "repeats_done"]].to_numpy().tolist() == [
        [6, 6, 1], [6, 6, 1],
    ]  # fmt: skip
    assert gathered.open_pairs.to_numpy().tolist() == [[f"i{n:02d}", "green", "blue"] for n in range(6)]
    with Journal.open(run.path("labelling", "adjudication"), "ada", "s", study=run.study) as adjudicator:
        for number in range(6):
            task = LabelTask(f"i{number:02d}", ("green", "blue"), ("blue", "green"), "label", number + 1)
            adjudicator.decide(task, "right", seconds=1)
    view = form.send("close_labels")
    told = sorted(int(number) for number in re.findall(r"\d+", view["message"].split("\n")[0]))
    assert told == [2, 6, 6, 36]  # reviewers, adjudicated labels, repeats, initial labels
    assert open_run("small").labels_open
    other = Form(run)
    other.start("r03")
    view = form.send("close_labels", confirmed=True)
    assert (view["screen"], view["problem"]) == ("closed", "")
    view = other.rank([1, 2, 3])
    assert (view["screen"], other.session.journal) == ("closed", None)
    closed = open_run("small")
    back = read_expert_ranks(closed.expert_ranks(), set(THREE))
    assert back.groupby(["reviewer_id", "system"])["rank"].unique().map(list).to_dict() == {
        ("r01", "blue"): [3], ("r01", "green"): [2], ("r01", "red"): [1],
        ("r02", "blue"): [2], ("r02", "green"): [2], ("r02", "red"): [1],
    }  # fmt: skip
    made = closed.reference()
    assert made[["system_x", "system_y", "human", "rule"]].drop_duplicates().to_numpy().tolist() == [
        ["red", "green", "red", "majority"], ["red", "blue", "red", "majority"],
        ["green", "blue", "green", "adjudicated"],
    ]  # fmt: skip
    assert closed.repeats()["repeat"].tolist() == [1, 2] * 6
