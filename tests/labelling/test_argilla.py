"""Argilla: records and settings out, its exported records back in any of their forms."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgelab.errors import DataError
from judgelab.labelling.exchange import export_labels, import_labels
from judgelab.labelling.journal import decisions_of, read_journals
from judgelab.labelling.sending import common_tasks
from judgelab.study.freeze import freeze

ANNA, BEN = "3fa85f64-5717-4562-b3fc-2c963f66afa6", "9b2e8c1d-0000-4000-8000-00000000beef"
NAMES = [f"{ANNA}=anna", f"{BEN}=ben"]


def made(project, *, records=4, labels=None, **labelling):
    project.write_items(records)
    review = {"labelling": {"training": 0} | labelling}
    study = project.study(human_labels={"provenance": "human"} | (labels or {}), human_review=review)
    return freeze("small", study)


@pytest.fixture
def run(project):
    return made(project)


@pytest.fixture
def records(run, tmp_path):
    path, _ = export_labels(run, "argilla", tmp_path)
    return json.loads(path.read_text(encoding="utf-8"))


def nested(record, *responses):
    """As ``to_json`` writes it: values and users by question, without a status."""
    by_question = {}
    for user, _, values in responses:
        for name, value in values.items():
            by_question.setdefault(name, []).append({"value": value, "user_id": user})
    return record | {"responses": by_question, "_server_id": None}


def flat(record, *responses):
    """As ``to_list(flatten=True)`` and ``to_datasets`` write it."""
    row = {"id": record["id"], "_server_id": None, **record["fields"], **record["metadata"]}
    for user, status, values in responses:
        for name, value in values.items():
            for key, each in (("", value), (".users", user), (".status", status)):
                row.setdefault(f"{name}.responses{key}", []).append(each)
    return {"note.responses": None, **row, "label.suggestion": None}


def server(record, *responses):
    """As the server keeps it."""
    given = [
        {"user_id": user, "status": status, "values": {name: {"value": value} for name, value in values.items()}}
        for user, status, values in responses
    ]
    return {"id": "77", "external_id": record["id"], "fields": record["fields"], "responses": given}


FORMS = {"nested": nested, "flat": flat, "server": server}


def back(tmp_path, records, *, lines=False):
    path = tmp_path / "back.json"
    text = "\n".join(map(json.dumps, records)) if lines else json.dumps(records)
    path.write_text(text, encoding="utf-8")
    return path


def decided(run):
    table = decisions_of(read_journals(run.path("labelling"), study=run.study), run.study)
    return {(row.reviewer_id, row.item_id): row for row in table.itertuples()}


def test_records_and_settings(project, tmp_path):
    run = made(project, criterion_scores=True)
    path, beside = export_labels(run, "argilla", tmp_path / "mine.json")
    assert beside.name == "mine.settings.json"
    records = json.loads(path.read_text(encoding="ascii"))
    assert [record["fields"]["answer_a"] for record in records] == [
        sent.texts["answer_A"] for sent in common_tasks(run)
    ]
    assert set(records[0]) == {"id", "fields", "metadata", "suggestions", "responses", "vectors"}
    made_settings = json.loads(beside.read_text(encoding="ascii"))
    assert {field["name"] for field in made_settings["fields"]} == set(records[0]["fields"])
    assert not any(field["settings"]["use_markdown"] for field in made_settings["fields"])
    questions = {question["name"]: question for question in made_settings["questions"]}
    assert [option["value"] for option in questions["label"]["settings"]["options"]] == [
        *("A", "B", "TIE", "CANNOT_JUDGE"),
    ]
    assert list(questions) == ["label", "score_a_correctness", "score_b_correctness", "reason", "note"]
    assert questions["score_b_correctness"]["settings"] == {
        "type": "rating",
        "options": [{"value": value} for value in range(1, 6)],
    }
    assert [name for name, question in questions.items() if question["required"]] == ["label"]
    assert "correctness" in made_settings["guidelines"]
    assert "ALPHA" not in path.read_text(encoding="ascii") + beside.read_text(encoding="ascii")


def test_a_scale_that_argilla_cannot_rate_is_asked_as_text(project, tmp_path):
    labels = {"score_minimum": 0, "score_maximum": 100}
    run = made(project, records=1, labels=labels, criterion_scores=True)
    path, beside = export_labels(run, "argilla", tmp_path)
    questions = json.loads(beside.read_text(encoding="ascii"))["questions"]
    assert questions[1]["settings"]["type"] == "text"
    (record,) = json.loads(path.read_text(encoding="ascii"))
    values = {"label": "A", "score_a_correctness": "87.5", "score_b_correctness": " 12 "}
    import_labels(run, "argilla", back(tmp_path, [flat(record, (ANNA, "submitted", values))]))
    (row,) = decided(run).values()
    assert {row.score_x, row.score_y} == {87.5, 12}


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("lines", [False, True])
def test_responses_of_several_users_in_each_form(run, records, tmp_path, form, lines):
    make = FORMS[form]
    exported = [
        make(records[0], (ANNA, "submitted", {"label": "A", "note": "short"}), (BEN, "submitted", {"label": "B"})),
        make(records[1], (ANNA, "submitted", {"label": "TIE"})),
        make(records[2], (ANNA, "submitted", {"label": "CANNOT_JUDGE", "reason": "in Welsh"})),
        make(records[3]),
    ]
    notes = import_labels(run, "argilla", back(tmp_path, exported, lines=lines), reviewers=NAMES)
    assert notes[-2:] == ["anna: 3 decisions taken in", "ben: 1 decisions taken in"]
    assert any("responses have no status, so that drafts count as well" in note for note in notes) == (form == "nested")
    common, rows = [sent.task for sent in common_tasks(run)], decided(run)
    assert rows["anna", common[0].item_id].preference == common[0].shown[0]
    assert rows["anna", common[0].item_id].note == "short"
    assert rows["ben", common[0].item_id].preference == common[0].shown[1]
    assert rows["anna", common[1].item_id].preference == "TIE"
    assert rows["anna", common[2].item_id].reason == "in Welsh"


@pytest.mark.parametrize("form", ["flat", "server"])
def test_drafts_and_discarded_responses_are_left_out(run, records, tmp_path, form):
    make = FORMS[form]
    exported = [
        make(records[0], (ANNA, "draft", {"label": "A"}), (BEN, "submitted", {"label": "B"})),
        make(records[1], (ANNA, "discarded", {"label": "A"}), (BEN, "submitted", {"note": "no label"})),
    ]
    notes = import_labels(run, "argilla", back(tmp_path, exported), reviewers=NAMES)
    assert [key[0] for key in decided(run)] == ["ben"]
    told = "\n".join(notes)
    for count in ("1 responses are drafts", "1 responses are discarded", "1 responses are without a label"):
        assert count in told


def test_a_user_without_a_new_name_keeps_the_id(run, records, tmp_path):
    import_labels(run, "argilla", back(tmp_path, [nested(records[0], (ANNA, None, {"label": "A"}))]))
    assert [key[0] for key in decided(run)] == [ANNA]


def test_every_wrong_record_is_told_and_nothing_imported(project, tmp_path):
    run = made(project, criterion_scores=True)
    path, _ = export_labels(run, "argilla", tmp_path)
    records = json.loads(path.read_text(encoding="ascii"))
    exported = [
        flat(records[0], (ANNA, "submitted", {"label": "the first", "score_a_correctness": 7})),
        flat(records[1], (ANNA, "submitted", {"label": "CANNOT_JUDGE"})) | {"answer_b": "another"},
        flat(records[0], (ANNA, "submitted", {"label": "A"})),
        flat(records[2] | {"id": "foreign"}, (ANNA, "submitted", {"label": "A"})),
        flat(records[3]) | {"label.responses": ["A"], "label.responses.users": []},
        flat(records[2], (ANNA, "submitted", {"label": "A", "score_b_correctness": "many"})),
    ]
    with pytest.raises(DataError) as caught:
        import_labels(run, "argilla", back(tmp_path, exported), reviewers=NAMES[:1])
    told = str(caught.value)
    for problem in (
        f"record 1, user {ANNA}: label 'the first'; allowed are A, B, TIE, CANNOT_JUDGE",
        f"record 2: answer_b of record {records[1]['id']} differs from what was sent",
        f"record 2, user {ANNA}: cannot judge without a reason",
        f"record 3: record {records[0]['id']} stands in record 1 already",
        "record 4: id is 'foreign', no record of this run",
        "record 5: 1 responses to label, but 0 users",
        f"record 6, user {ANNA}: score_b_correctness 'many' is not a number",
    ):
        assert problem in told
    assert not run.path("labelling").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "the file is empty"),
        ("no", "not JSON, line 1"),
        ('{"id": "a"}\nno', "not JSON, line 2"),
        ('"text"', "1 of 1 are no objects, first line 1"),
        ('[{"fields": {}}]', "id is None, no record of this run"),
        ('[{"id": ["a"]}]', "no record of this run"),
    ],
)
def test_files_that_are_no_export(run, tmp_path, content, told):
    path = tmp_path / "back.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        import_labels(run, "argilla", path)


def test_odd_responses_are_told(run, records, tmp_path):
    exported = [
        records[0] | {"responses": {"label": [{"user_id": ANNA}]}},
        records[1] | {"responses": [7]},
        nested(records[2], (ANNA, None, {"label": "A"}), (ANNA, None, {"label": "B"})),
    ]
    with pytest.raises(DataError) as caught:
        import_labels(run, "argilla", back(tmp_path, exported))
    for problem in (
        "record 1: a response to label without a value",
        "record 2: a response without values",
        f"record 3: user {ANNA} has two responses to label",
    ):
        assert problem in str(caught.value)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=4), form=st.sampled_from(list(FORMS)))
def test_nasty_texts_come_back(fresh_project, texts, form):
    with fresh_project() as project:
        records = [project.item(place) for place in range(len(texts))]
        for record, each in zip(records, texts, strict=True):
            record |= {"answer_alpha": f"{each}!", "task": f"?{each}", "reference_context": each}
        project.write_items(records)
        review = {"labelling": {"training": 0}}
        run = freeze("small", project.study(human_labels={"provenance": "human"}, human_review=review))
        path, _ = export_labels(run, "argilla", project.root)
        exported = json.loads(path.read_text(encoding="ascii"))
        labelled = [FORMS[form](record, (ANNA, "submitted", {"label": "B", "note": "n"})) for record in exported]
        path.write_text(json.dumps(labelled, ensure_ascii=False), encoding="utf-8")
        notes = import_labels(run, "argilla", path, reviewers=NAMES[:1])
        assert notes[-1] == f"anna: {len(exported)} decisions taken in"
