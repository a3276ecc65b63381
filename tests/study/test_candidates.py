"""Answers that stage 00 makes, from the tasks to the frozen run: what is kept, left out, counted and refused."""

from __future__ import annotations

import json

import pytest

from judgelab.errors import DataError, DriftError, RunError
from judgelab.judging.generation import edits_table, origins_table, write_candidates
from judgelab.judging.ladder import ladder, steps
from judgelab.judging.plan import plan_table
from judgelab.study.candidates import draft_run, items_of, planned_items, recipe, tasks_of
from judgelab.study.freeze import freeze, open_run
from judgelab.study.unfrozen import UnfrozenStudy

CHAT = {"kind": "chat", "model": "m", "base_url": "http://127.0.0.1:9/v1", "max_tokens": 50}
LADDER = {
    "low": {"degraded": {"of": "mid", "edits": ["drop_step"]}},
    "top": {},
    "mid": {"degraded": {"of": "top", "edits": ["add_error"]}},
}
GENERATED = {"top": {}, "made": {"generated": {"model": CHAT}}}
COMMAND = r"run stage 00 first \(`judgelab run params/small.yaml --from 00 --to 00`\)"


def answer(number):
    return f"Wait {number + 2} minutes. Rinse the jar with {number + 3} litres. Then call Maria Keller on day {number}."


def task(number, **changes):
    record = {"item_id": f"i{number:02d}", "task": f"How is jar {number} cleaned?", "category": "jars"}
    return record | {"answers": {"top": answer(number)}} | changes


class Made:
    """A study with a degradation ladder, its tasks and its stage 00."""

    def __init__(self, project):
        self.project, self.path = project, project.outputs / "small" / "candidates.jsonl"

    def study(self, systems=LADDER, **changes):
        return self.project.study(systems=systems, human_labels=None, **changes)

    def stage_00(self, tasks=4, **changes):
        records = [task(number) for number in range(tasks)] if isinstance(tasks, int) else tasks
        self.project.write_items(records)
        study = self.study(**changes)
        return study, write_candidates(draft_run("small", study))

    def records(self):
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]

    def rewrite(self, change):
        records = self.records()
        for record in records:
            change(record)
        self.path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


@pytest.fixture
def made(project):
    return Made(project)


def bytes_of(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_a_ladder_is_made_and_frozen(made):
    study, table = made.stage_00()
    assert table["origin"].tolist() == ["degraded", "given", "degraded"] * 4
    assert table["edits"].tolist() == [1, 0, 1] * 4
    assert not table["answer"].isna().any()
    run = freeze("small", study)
    for number, item in enumerate(run.items()):
        rungs = ladder(
            answer(number), [("add_error",), ("drop_step",)], seed=7, item_id=item.item_id,
            strangers=[each for other in range(4) if other != number for each in steps(answer(other))],
        )  # fmt: skip
        mid, low = (rung[-1].text for rung in rungs)
        assert item.answers == {"low": low, "top": answer(number), "mid": mid}
        assert list(item.answers) == ["low", "top", "mid"]
        told = item.metadata["made"]["low"]
        assert (told["of"], [edit["kind"] for edit in told["edits"]]) == ("mid", ["drop_step"])
        assert low.split() != mid.split() != answer(number).split()
    assert run.excluded_items().empty
    assert len(run.comparisons()) == 4 * 3


def test_the_tables_of_stage_00(made):
    study, table = made.stage_00()
    origins = origins_table(study, table).set_index("system")
    assert origins["how it was made"].to_dict() == {
        "low": "mid with drop_step", "top": "given in the file of items", "mid": "top with add_error",
    }  # fmt: skip
    assert origins["answers"].tolist() == origins["items"].tolist() == [4, 4, 4]
    edits = edits_table(draft_run("small", study))
    assert edits["item_id"].tolist() == sorted(edits["item_id"])
    assert edits["system"].tolist() == ["mid", "low"] * 4  # down the ladder, whatever the protocol's order
    assert [record["made"]["mid"]["edits"] for record in made.records()] == [
        [edit] for edit in edits[edits["system"] == "mid"].drop(columns=["item_id", "system"]).to_dict("records")
    ]


def test_making_and_freezing_twice_gives_the_same_bytes(made):
    study, _ = made.stage_00()
    first = made.path.read_bytes()
    before = bytes_of(freeze("small", study).folder)
    _, again = made.stage_00()
    assert made.path.read_bytes() == first
    assert len(again) == 12
    freeze("small", study)
    after = bytes_of(made.path.parent)
    assert {name: after[name] for name in before if name != made.path.name} == {
        name: before[name] for name in before if name != made.path.name
    }


def test_freezing_before_stage_00_names_the_command(made):
    made.project.write_items([task(0)])
    with pytest.raises(RunError, match=rf"outputs/small/candidates.jsonl is missing: .*; {COMMAND}"):
        freeze("small", made.study())
    assert not made.path.parent.exists()


def test_an_answer_that_cannot_be_degraded_leaves_its_item_out(made):
    tasks = [*(task(number) for number in range(4)), task(4, answers={"top": "Yes."})]
    study, table = made.stage_00(tasks)
    missing = table[table["answer"].isna()]
    assert missing[["item_id", "system", "reason"]].to_numpy().tolist() == [
        ["i04", "low", "cannot_degrade"], ["i04", "mid", "cannot_degrade"],
    ]  # fmt: skip
    assert missing["words"].isna().all()
    assert made.records()[4]["made"]["mid"]["detail"].startswith("rung ")
    found = items_of("small", study)
    assert found.excluded[["line", "item_id", "reason"]].to_numpy().tolist() == [[5, "i04", "missing_answer"]]
    assert found.n_lines == 5
    run = freeze("small", study)
    assert [item.item_id for item in run.items()] == ["i00", "i01", "i02", "i03"]
    assert run.excluded_items()["reason"].tolist() == ["missing_answer"]
    with pytest.raises(DataError, match="max_excluded_share allows 10%"):
        items_of("small", made.study(items={"path": "params/small/items.jsonl", "max_excluded_share": 0.1}))


def test_excluded_lines_of_the_tasks_are_told_by_stage_01(made):
    tasks = [task(0), task(1, answers={}), task(2), task(3, task=" "), *(task(number) for number in range(4, 12))]
    study, table = made.stage_00(tasks)
    assert table["item_id"].nunique() == 10
    assert draft_run("small", study).tasks.excluded["reason"].tolist() == ["missing_answer", "missing_task"]
    run = freeze("small", study)
    assert run.excluded_items()[["line", "item_id", "reason"]].to_numpy().tolist() == [
        [2, "i01", "missing_answer"], [4, "i03", "missing_task"],
    ]  # fmt: skip
    assert items_of("small", study).n_lines == 12


def test_what_is_left_out_before_and_after_is_counted_together(made):
    half = {"path": "params/small/items.jsonl", "max_excluded_share": 0.3}
    tasks = [
        *(task(number) for number in range(6)),
        task(6, task=""),
        task(7, task=""),
        task(8, answers={"top": "No."}),
    ]
    study, _ = made.stage_00(tasks, items=half)  # 2 of 9, then 1 of 7
    with pytest.raises(DataError, match=r"3 of 9 lines .* \(missing_task: 2, missing_answer: 1\); .* allows 30%"):
        freeze("small", study)
    assert len(freeze("small", made.study(items=half | {"max_excluded_share": 0.4})).items()) == 6


def test_masks_are_laid_over_every_answer_at_freezing_and_counted_once(made):
    masks = {"blindness": {"mask": {"Maria Keller": "somebody"}}}
    study, table = made.stage_00(2, systems={"top": {}, "low": LADDER["mid"]}, **masks)
    assert table["answer"].str.count("Maria Keller").sum() >= 2  # degraded as they are, masked afterwards
    found = items_of("small", study)
    times = int(table["answer"].str.count("Maria Keller").sum())
    assert found.masked == {"Maria Keller": times}
    texts = [text for item in freeze("small", study).items() for text in item.answers.values()]
    assert sum(text.count("somebody") for text in texts) == times
    assert not any("Maria Keller" in text for text in texts)
    assert tasks_of(study).masked == {}


def test_another_id_field_and_the_task_version(made):
    def ticket(number, version, **changes):
        record = task(number, ticket=number, task_version=version, level=1.5, tags=["a"], **changes)
        del record["item_id"]
        return record

    source = {"path": "params/small/items.jsonl", "task_version": "v2"}
    tasks = [*(ticket(number, "v2") for number in range(5)), ticket(0, "v1", task="Old?")]
    study, _ = made.stage_00(tasks, item_id_field="ticket", items=source)
    assert [record["ticket"] for record in made.records()] == list("01234")
    items = freeze("small", study).items()
    assert [item.item_id for item in items] == list("01234")
    assert {item.metadata["task_version"] for item in items} == {"v2"}
    assert (items[0].metadata["level"], items[0].metadata["tags"]) == (1.5, ["a"])
    assert items_of("small", study).excluded["reason"].tolist() == ["other_task_version"]


def test_a_limit_is_drawn_once(made):
    limited = {"path": "params/small/items.jsonl", "limit": 3}
    study, table = made.stage_00(12, items=limited)
    drawn = list(dict.fromkeys(table["item_id"]))
    assert len(drawn) == 3
    found = items_of("small", study)
    assert [item.item_id for item in found.items] == drawn
    assert len(found.not_sampled) == 9
    assert not {*found.not_sampled} & {*drawn}
    # the same items as in a study that brings all its answers
    plain = made.project.study(systems={"top": {}, "x": {}}, human_labels=None, items=limited)
    made.project.write_items([task(number, answers={"top": "a", "x": "b"}) for number in range(12)])
    assert [item.item_id for item in items_of("small", plain).items] == drawn


def test_splits_are_those_of_the_judged_items(made):
    study, _ = made.stage_00(10, split={"development_share": 0.3})
    assert {item.split for item in tasks_of(study).items} == {"evaluation"}  # all are asked for
    run = freeze("small", study)
    assert sorted(item.split for item in run.items()) == ["development"] * 3 + ["evaluation"] * 7
    assert {item.item_id: item.split for item in planned_items("other", study).items} == {
        item.item_id: item.split for item in run.items()
    }


def test_answers_of_another_protocol_are_refused(made):
    made.stage_00()
    blurred = {**LADDER, "low": {"degraded": {"of": "mid", "edits": ["blur"]}}}
    with pytest.raises(RunError, match=rf"the answers were made by another protocol than this one; {COMMAND}"):
        freeze("small", made.study(blurred))
    with pytest.raises(RunError, match="another protocol"):
        freeze("small", made.study(random_seed=8))
    freeze("small", made.study(direct_tie_margin=1))  # what the answers do not depend on may change


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda record: record["answers"].update(low="Better."), "line 1 was changed after stage 00 wrote it"),
        (lambda record: record.update(task="Another?"), "line 1 was changed after stage 00 wrote it"),
        (lambda record: record.update(recipe_sha256="0" * 64), "the answers were made by another protocol"),
        (lambda record: record.pop("recipe_sha256"), "line 1 was not written by stage 00"),
        (lambda record: record.pop("record_sha256"), "line 1 was not written by stage 00"),
        (lambda record: record.pop("item_id"), "line 1 was not written by stage 00"),
    ],
)
def test_edited_candidates_are_refused(made, change, told):
    study, _ = made.stage_00()
    made.rewrite(change)
    with pytest.raises(RunError, match=rf"outputs/small/candidates.jsonl: {told}.*; {COMMAND}"):
        freeze("small", study)


@pytest.mark.parametrize("line", ["no JSON", "[1, 2]", '"text"', "null", "{}", "3"])
def test_a_line_that_stage_00_did_not_write_is_refused(made, line):
    study, _ = made.stage_00(2)
    made.path.write_text(made.path.read_text() + f"\n{line}\n")
    with pytest.raises(RunError, match="line 4 was not written by stage 00"):  # the third is blank
        items_of("small", study)


@pytest.mark.parametrize(
    ("tasks", "told"),
    [
        ([task(0), task(1, task="Why?"), task(2), task(3)], "i01"),
        ([task(number) for number in range(5)], "i04"),
        ([task(number) for number in range(3)], "i03"),
        ([task(0, answers={"top": answer(9)}), *(task(number) for number in range(1, 4))], "i00"),
        ([task(0, category="pots"), *(task(number) for number in range(1, 4))], "i00"),
        ([task(0, level=3), *(task(number) for number in range(1, 4))], "i00"),
        ([task(number, reference_context="New.") for number in range(4)], "i00, i01, i02, i03"),
    ],
)
def test_tasks_that_have_changed_since_stage_00_are_refused(made, tasks, told):
    study, _ = made.stage_00()
    made.project.write_items(tasks)
    words = r"the answers were made for other tasks than params/small/items.jsonl holds now"
    with pytest.raises(RunError, match=rf"{words} \(items that differ: {told}\); {COMMAND}"):
        freeze("small", study)
    made.stage_00(tasks)
    assert len(freeze("small", study).items()) == len(tasks)


def test_a_frozen_run_refuses_answers_that_were_made_again_from_other_tasks(made):
    study, _ = made.stage_00()
    freeze("small", study)
    made.stage_00([task(number, task="Why?") for number in range(4)])
    with pytest.raises(DriftError, match="was frozen with other items; 4 of 4 items differ"):
        freeze("small", study)


def test_a_task_file_with_answers_of_a_made_system(made):
    flat = [{"item_id": f"i{number}", "task": "Why?", "answer_top": "x", "answer_low": "y"} for number in range(3)]
    with pytest.raises(DataError, match="3 items hold answer_low, but stage 00 makes the answers of low; take them"):
        made.stage_00(flat)
    nested = [task(number, answers={"top": "x", "low": "y"}) for number in range(3)]
    with pytest.raises(DataError, match="unknown_system: 3, first in line 1: 'low'; known: top"):
        made.stage_00(nested)


def test_a_plan_uses_stand_ins_before_stage_00_and_the_answers_after_it(made):
    made.project.write_items([task(number) for number in range(4)])
    study = made.study(judges=[{"name": "paid", **CHAT}])
    ledger = made.project.outputs / "small" / "ledger.sqlite"
    before = planned_items("small", study)
    assert [list(item.answers) for item in before.items] == [["low", "top", "mid"]] * 4
    for number, item in enumerate(before.items):
        assert {name: len(text) // 10 for name, text in item.answers.items()} == dict.fromkeys(
            ("low", "top", "mid"), len(answer(number)) // 10
        )
    guessed = plan_table(study, ledger).loc[0]
    assert (guessed["calls"], guessed["left"]) == (4 * (3 + 3 + 3), 36)
    write_candidates(draft_run("small", study))
    after = planned_items("small", study)
    assert after.items == items_of("small", study).items == UnfrozenStudy(study, "small").items()
    assert after.items != before.items
    known = plan_table(study, ledger).loc[0]
    assert (known["calls"], known["left"]) == (36, 36)
    assert 0 < known["tokens_in"] <= guessed["tokens_in"]
    assert planned_items(None, study).items == before.items  # without a run's name nothing is looked for
    made.rewrite(lambda record: record["answers"].update(low="Better."))
    assert planned_items("small", study).items == before.items  # a plan refuses nothing
    assert freeze_order(before) == freeze_order(after)


def freeze_order(found):
    return [(item.item_id, item.split, item.first) for item in found.items]


def test_stand_ins_are_as_long_as_a_model_may_write(made):
    systems = {"made": GENERATED["made"], "low": {"degraded": {"of": "made", "edits": ["blur"]}}}
    made.project.write_items([task(0, answers={})])
    (item,) = planned_items("small", made.study(systems)).items
    assert [len(item.answers[name]) for name in ("made", "low")] == [200, 200]  # 50 tokens of 4 characters
    assert item.words == {"made": 40, "low": 40}


def test_a_study_that_brings_its_answers_writes_no_candidates(made):
    made.project.write_items(3)
    study = made.project.study(human_labels=None)
    table = write_candidates(draft_run("small", study))
    assert set(table["origin"]) == {"given"}
    assert not made.path.exists()
    assert [item.metadata for item in freeze("small", study).items()] == [{}] * 3
    assert open_run("small").items() == planned_items("small", study).items == items_of("small", study).items


def test_the_recipe_stands_in_every_line(made):
    study, _ = made.stage_00(3)
    assert {record["recipe_sha256"] for record in made.records()} == {recipe(study)}
    assert len({record["record_sha256"] for record in made.records()}) == 3


def test_a_draft_uses_the_folder_of_its_run_and_refuses_names_that_lead_out(made):
    made.project.write_items([task(0)])
    assert draft_run("small", made.study()).folder == made.path.parent
    with pytest.raises(Exception, match=r"run is '\.\./x'"):
        draft_run("../x", made.study())
