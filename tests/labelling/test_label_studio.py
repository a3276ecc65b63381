"""Label Studio: tasks and configuration out, its JSON export back."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgelab.errors import DataError, LabelError
from judgelab.labelling.exchange import export_labels, import_labels
from judgelab.labelling.journal import decisions_of, read_journals
from judgelab.labelling.sending import common_tasks
from judgelab.study.freeze import freeze

ANNA, BEN = {"id": 1, "email": "anna@example.org", "first_name": ""}, {"id": 2, "email": "ben@example.org"}


def made(project, *, records=4, **labelling):
    project.write_items(records)
    review = {"labelling": {"training": 0} | labelling}
    return freeze("small", project.study(human_labels={"provenance": "human"}, human_review=review))


@pytest.fixture
def run(project):
    return made(project)


@pytest.fixture
def tasks(run, tmp_path):
    """The exported tasks as Label Studio would export them again: with ids, and without annotations yet."""
    path, _ = export_labels(run, "label-studio", tmp_path)
    given = json.loads(path.read_text(encoding="utf-8"))
    return [task | {"id": 100 + number, "annotations": [], "predictions": []} for number, task in enumerate(given)]


def side(value):
    value = {"selected": value}
    return {"id": "x", "type": "pairwise", "from_name": "label", "to_name": "answer_A,answer_B", "value": value}


def word(value):
    return {"type": "choices", "from_name": "other", "to_name": "task", "value": {"choices": [value]}}


def number(name, value, sort="number"):
    return {"type": sort, "from_name": name, "to_name": "answer_A", "value": {sort: value}}


def text(name, *values):
    return {"type": "textarea", "from_name": name, "to_name": "task", "value": {"text": list(values)}}


def annotation(*results, by=ANNA, **values):
    return {"id": 9, "completed_by": by, "result": list(results), "was_cancelled": False, "lead_time": 4.25} | values


def back(tmp_path, tasks):
    path = tmp_path / "back.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


def decided(run):
    table = decisions_of(read_journals(run.path("labelling"), study=run.study), run.study)
    return {(row.reviewer_id, row.item_id): row for row in table.itertuples()}


def test_tasks_name_no_system_and_hide_no_text(run, tasks, tmp_path):
    common = common_tasks(run)
    assert [task["data"]["answer_A"] for task in tasks] == [sent.texts["answer_A"] for sent in common]
    items = {item.item_id: item for item in run.items()}
    for task, sent in zip(tasks, common, strict=True):
        assert task["data"]["answer_B"] == items[sent.task.item_id].answers[sent.task.shown[1]]
    for path in tmp_path.glob("label-studio*"):
        assert "ALPHA" not in path.read_text(encoding="ascii")
    assert {sent.task.shown for sent in common} <= {("ALPHA", "BETA"), ("BETA", "ALPHA")}
    assert [sent.task for sent in common_tasks(run)] == [sent.task for sent in common]


def test_the_configuration_is_that_of_the_pairwise_template(project, tmp_path):
    run = made(project, criterion_scores=True)
    tasks_path, config = export_labels(run, "label-studio", tmp_path / "deep" / "tasks.json")
    assert [tasks_path.name, config.name] == ["tasks.json", "tasks.config.xml"]
    view = ElementTree.fromstring(config.read_text(encoding="utf-8"))
    pairwise = view.find("Pairwise")
    assert pairwise is not None
    assert pairwise.get("toName") == "answer_A,answer_B"
    assert {tag.get("value") for tag in view.iter("Text")} == {
        *("$instructions", "$task", "$context", "$answer_A", "$answer_B"),
    }
    assert [tag.get("value") for tag in view.iter("Choice")] == ["TIE", "CANNOT JUDGE"]
    assert [(tag.get("name"), tag.get("min"), tag.get("max")) for tag in view.iter("Number")] == [
        ("score_A_correctness", "1", "5"),
        ("score_B_correctness", "1", "5"),
    ]
    names = {tag.get("name") for tag in view.iter() if tag.get("name")}
    for tag in view.iter():
        assert set((tag.get("toName") or "task").split(",")) <= names
    data = json.loads(tasks_path.read_text(encoding="utf-8"))[0]["data"]
    assert {tag.get("value").removeprefix("$") for tag in view.iter("Text")} <= data.keys()


def test_several_annotators_ties_and_skipped_tasks(run, tasks, tmp_path):
    tasks[0]["annotations"] = [annotation(side("left")), annotation(side("right"), by=BEN)]
    tasks[1]["annotations"] = [annotation(word("TIE")), annotation(by=BEN, was_cancelled=True)]
    tasks[2]["annotations"] = [annotation(word("CANNOT JUDGE"), text("reason", "in Welsh")), annotation(by=BEN)]
    tasks[3]["annotations"] = [annotation(side("left"), text("note", "one", "two"), by=2)]
    tasks[3]["annotations"][0]["completed_by"] = {"id": 2, "email": "ben@example.org"}
    notes = import_labels(run, "label-studio", back(tmp_path, tasks))
    assert notes[-2:] == ["anna: 3 decisions taken in", "ben: 2 decisions taken in"]
    assert any("1 annotations were skipped, left out" in note for note in notes)
    assert any("1 annotations are without a choice, left out" in note for note in notes)
    common = [sent.task for sent in common_tasks(run)]
    rows = decided(run)
    assert rows["anna", common[0].item_id].preference == common[0].shown[0]
    assert rows["ben", common[0].item_id].preference == common[0].shown[1]
    assert rows["anna", common[1].item_id].preference == "TIE"
    assert rows["anna", common[2].item_id].choice == "cannot_judge"
    assert rows["anna", common[2].item_id].reason == "in Welsh"
    assert rows["ben", common[3].item_id].note == "one\ntwo"
    assert rows["anna", common[0].item_id].seconds == 4.25
    assert import_labels(run, "label-studio", back(tmp_path, tasks))[-1] == (
        "ben: 0 decisions taken in, 2 were there already"
    )


def test_scores_are_kept_by_side(project, tmp_path):
    run = made(project, records=1, criterion_scores=True)
    path, _ = export_labels(run, "label-studio", tmp_path)
    (task,) = json.loads(path.read_text(encoding="utf-8"))
    scores = [number("score_A_correctness", 4), number("score_B_correctness", 2, "rating"), number("mine", 99)]
    task["annotations"] = [annotation(side("left"), *scores)]
    import_labels(run, "label-studio", back(tmp_path, [task]))
    (sent,) = common_tasks(run)
    (row,) = decided(run).values()
    by_system = dict(zip(sent.task.shown, (4, 2), strict=True))
    assert (row.score_x, row.score_y) == (by_system["ALPHA"], by_system["BETA"])
    task["annotations"] = [annotation(side("left"), number("score_A_correctness", 9))]
    with pytest.raises(DataError, match="record 1, annotation 1: score_A_correctness '9' is out of range"):
        import_labels(run, "label-studio", back(tmp_path, [task]))


def test_annotators_by_number_and_by_new_names(run, tasks, tmp_path):
    tasks[0]["annotations"] = [annotation(side("left"), by=7), annotation(side("left"), by=BEN)]
    path = back(tmp_path, tasks)
    with pytest.raises(DataError, match="carol is nobody in the file; it has 7, 2"):
        import_labels(run, "label-studio", path, reviewers=["carol=anna"])
    import_labels(run, "label-studio", path, reviewers=["7=anna", "ben@example.org=berta"])
    assert {reviewer for reviewer, _ in decided(run)} == {"anna", "berta"}
    with pytest.raises(LabelError, match="--reviewer 7: OLD=NEW is needed"):
        import_labels(run, "label-studio", path, reviewers=["7"])


def test_two_annotators_that_become_one_name_are_refused(run, tasks, tmp_path):
    other = {"id": 3, "email": "Anna@elsewhere.org"}
    tasks[0]["annotations"] = [annotation(side("left")), annotation(side("left"), by=other)]
    with pytest.raises(
        DataError,
        match=r"1, anna@example.org and 3, Anna@elsewhere.org would both become Anna; name one with --reviewer",
    ):
        import_labels(run, "label-studio", back(tmp_path, tasks))
    nameless = {"id": 4, "email": "שרה@example.org"}
    tasks[0]["annotations"] = [annotation(side("left"), by=nameless)]
    with pytest.raises(DataError, match="'4' makes no name for a reviewer; give one with --reviewer OLD=NEW"):
        import_labels(run, "label-studio", back(tmp_path, tasks))
    import_labels(run, "label-studio", back(tmp_path, tasks), reviewers=["4=sarah"])
    assert {reviewer for reviewer, _ in decided(run)} == {"sarah"}


def test_an_annotator_who_annotates_twice(run, tasks, tmp_path):
    tasks[0]["annotations"] = [annotation(side("left")), annotation(side("left"))]
    notes = import_labels(run, "label-studio", back(tmp_path, tasks))
    assert any("1 annotations say what another of the same annotator says" in note for note in notes)
    tasks[1]["annotations"] = [annotation(side("left")), annotation(side("right"))]
    with pytest.raises(DataError, match=r"record 2, annotation 2: anna decides the same as in record 2, annotation 1"):
        import_labels(run, "label-studio", back(tmp_path, tasks))


def test_every_wrong_annotation_is_told_and_nothing_imported(run, tasks, tmp_path):
    tasks[0]["annotations"] = [annotation(side("left"), word("TIE")), annotation(side("none"), by=BEN)]
    tasks[1]["data"]["answer_A"] = "another answer"
    tasks[1]["annotations"] = [annotation(word("better"))]
    tasks[2]["data"]["task_id"] = "t-foreign"
    tasks[3]["annotations"] = [annotation(side("left"), by=None), annotation(word("CANNOT JUDGE"))]
    with pytest.raises(DataError) as caught:
        import_labels(run, "label-studio", back(tmp_path, tasks))
    told = str(caught.value)
    assert "in 4 rows; nothing was imported" in told
    for problem in (
        "record 1, annotation 1: left and tie at once; one is allowed",
        "record 1, annotation 2: none; allowed are left, right, TIE, CANNOT JUDGE",
        f"record 2: answer_A of task {tasks[1]['data']['task_id']} differs from what was sent",
        "record 2, annotation 1: choice 'better'; allowed are",
        "record 3: data.task_id is 't-foreign', no task of this run",
        "record 4, annotation 1: completed_by names nobody",
        "record 4, annotation 2: cannot judge without a reason",
    ):
        assert problem in told
    assert not run.path("labelling").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "the file is empty"),
        ("{", "not JSON, line 1"),
        ("[1, 2]", "2 of 2 are no objects, first record 1"),
        ('[{"task_id": "t-1", "label": "left"}]', "no list of annotations; needed is the export JSON of Label Studio"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_files_that_are_no_export(run, tmp_path, content, told):
    path = tmp_path / "back.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        import_labels(run, "label-studio", path)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=4), data=st.data())
def test_nasty_texts_and_any_choice_come_back(fresh_project, texts, data):
    with fresh_project() as project:
        records = [project.item(place) for place in range(len(texts))]
        for record, each in zip(records, texts, strict=True):
            record |= {"answer_alpha": f"{each}!", "task": f"?{each}", "reference_context": each}
        project.write_items(records)
        review = {"labelling": {"training": 0}}
        run = freeze("small", project.study(human_labels={"provenance": "human"}, human_review=review))
        path, _ = export_labels(run, "label-studio", project.root)
        exported = json.loads(path.read_text(encoding="ascii"))
        results = st.sampled_from([side("left"), side("right"), word("TIE")])
        chosen = [data.draw(results) for _ in exported]
        for task, result in zip(exported, chosen, strict=True):
            task["annotations"] = [annotation(result)]
        path.write_text(json.dumps(exported, ensure_ascii=False), encoding="utf-8")
        assert import_labels(run, "label-studio", path)[-1] == f"anna: {len(exported)} decisions taken in"
        (journal,) = read_journals(run.path("labelling"), study=run.study)
        choices = [first.choice for first in journal.standing.initial().values()]
        assert choices == [result["value"].get("selected", "tie") for result in chosen]
