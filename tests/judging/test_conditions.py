"""The calls of probes and repairs as records: read by a recorded judge they give the tables that they came from."""

from __future__ import annotations

import asyncio
import json
import math

import pandas as pd
import pytest

from judgelab.errors import DataError
from judgelab.judging.evidence import export_records, repair_verdicts, verdicts, verdicts_of
from judgelab.judging.exchange import import_verdicts
from judgelab.judging.judges.recorded import records_of
from judgelab.judging.passes import is_recorded
from judgelab.judging.probes import left_out, probe_plans
from judgelab.judging.repairs import repair_plans, repairs_left_out
from judgelab.judging.runner import run_passes

THREE = {"ALPHA": {}, "BETA": {}, "GAMMA": {}}
ALL = ("direct", "pairwise_original", "pairwise_swapped")
TOPICS = ("bread", "ferry", "lichen", "harbour", "violin", "glacier", "monsoon", "parliament")
# a record holds no time, no count of attempts and no cost
NOT_RECORDED = ["attempts", "latency_seconds", "tokens_cached", "tokens_reasoning", "cost", "tokens_in", "tokens_out"]
PROBED = {"run": "all", "repeats": 3, "identity": "Model Q"}
KINDS = [
    "verdict_only",
    "reasoning_first",
    {"kind": "level_descriptions", "levels": {1: "nothing", 5: "all of it"}},
    {"kind": "few_shot", "strategies": ["pairwise", "direct"], "examples": 2},
    "retrieved_examples",
    {"kind": "self_consistency", "samples": 3},
    "recalibration",
    "tie_margin",
    "both_presentations",
]


@pytest.fixture
def conditions(make_run, raw_item, project):
    """Maker of runs over the same items and labels."""

    def make(judge, systems=2, kinds=KINDS, **changes):
        names = list(THREE)[:systems]
        items = []
        for number, topic in enumerate(TOPICS):
            answers = {name: f"Some {topic} as {name.lower()[0]} sees it, with more of it below." for name in names}
            items.append(
                raw_item(number, answers=answers, task=f"What of {topic}?", category="all", reference_context="")
            )
        pairs = [(x, y) for place, x in enumerate(names) for y in names[place + 1 :]]
        lines = [
            f"i{n:05d},r,{x},{y},{(x, y, 'TIE')[n % 3]},{(4, 2, 3)[n % 3]},{(2, 4, 3)[n % 3]},false\n"
            for n in range(len(TOPICS))
            for x, y in pairs
        ]
        header = "item_id,reviewer_id,system_x,system_y,preference,score_x,score_y,is_adjudicated\n"
        (project / "params" / "labels.csv").write_text(header + "".join(lines))
        values = {
            "human_labels": {"path": "params/labels.csv"},
            "split": {"development_share": 0.5},
            "systems": dict(list(THREE.items())[:systems]),
            "probes": PROBED,
            "repairs": {"run": kinds},
        }
        return make_run([judge], items=items, **(values | changes))

    return make


def tables(run):
    """All plain verdicts, those of the probes and those of the repairs, as far as a record can hold them."""
    asyncio.run(run_passes(run, [*ALL, *probe_plans(run), *repair_plans(run)]))
    found = (verdicts(run), verdicts_of(run, probe_plans(run)), repair_verdicts(run))
    return [table.drop(columns=NOT_RECORDED) for table in found]


def same(one, two):
    for wanted, found in zip(one, two, strict=True):
        assert len(wanted) > 0
        pd.testing.assert_frame_equal(found.astype(object), wanted.astype(object))


@pytest.mark.parametrize("systems", [2, 3])
def test_records_of_all_conditions_give_equal_tables(conditions, write_records, systems):
    sim = {"name": "sim", "kind": "simulated", "error_rate": 0.2, "noise": 1.0, "probe_effects": {"padding": 1.0}}
    run = conditions(sim, systems)
    wanted = tables(run)
    assert all(set(table["status"]) == {"verdict", "unusable"} for table in wanted)
    records = export_records(run, "sim")
    again = conditions(write_records(records, name="sim"), systems, name="again")
    assert [plan.pass_ for plan in probe_plans(again)] == [plan.pass_ for plan in probe_plans(run)]
    assert [plan.pass_ for plan in repair_plans(again)] == [plan.pass_ for plan in repair_plans(run)]
    same(wanted, tables(again))
    assert left_out(again).empty
    assert repairs_left_out(again).empty
    assert [drop(record) for record in export_records(again, "sim")] == [drop(record) for record in records]


def drop(record):
    return {key: value for key, value in record.items() if not key.startswith("tokens")}


def test_a_record_has_one_line_a_call(conditions):
    run = conditions({"name": "sim", "kind": "simulated"})
    wanted = tables(run)
    records = export_records(run, "sim")
    assert len(records) == sum(map(len, wanted))
    keys = [
        (r["item_id"], r["strategy"], r["pass"], r.get("system"), r.get("first"), r.get("second"), r.get("repeat", 0))
        for r in records
    ]
    assert len(set(keys)) == len(keys)
    assert {r.get("repeat") for r in records if r["pass"].startswith("repetition/")} == {1, 2}
    assert {r.get("repeat") for r in records if r["pass"].startswith("self_consistency/")} == {None, 1, 2}
    assert {r["pass"] for r in records} >= {"direct", "original", "labels:1-2/swapped", "development/direct"}
    assert not any("repeat" in r for r in records if r["pass"] in ("direct", "original", "swapped"))


def test_letters_are_read_again_from_the_raw_reply(conditions):
    run = conditions({"name": "sim", "kind": "simulated", "tie_width": 0})
    tables(run)
    found = [r for r in export_records(run, "sim") if r["pass"].startswith("labels:1-2/")]
    assert {json.loads(r["reply"])["winner"] for r in found} == {"1", "2"}
    assert not any("verdict" in r for r in found)  # the reply says it all


def test_verdicts_in_plain_text_are_kept_as_places(conditions, server, write_records):
    def script(body, number):
        text = body["messages"][-1]["content"]
        letter = next((name for name in "B2Y" if f"ANSWER {name}\n" in text), None)
        if letter is None:
            return server.good(body)
        return server.completion(f"Winner: {letter}")

    server.script = script
    run = conditions(server.judge(reply_format="text"), kinds=["verdict_only"])
    wanted = tables(run)
    assert set(wanted[1]["verdict"]) == {"B"}
    records = export_records(run, "served")
    assert {r["verdict"] for r in records if r["pass"].startswith("labels:X-Y/")} == {"B"}
    again = conditions(write_records(records, name="served"), kinds=["verdict_only"], name="again")
    same(wanted, tables(again))


def direct_reply(server, p):
    """A direct reply whose tokens give the score 4 the probability ``p``, and 5 the rest."""
    tokens = ['{"', "correctness", '":', " ", "4", ', "', "clarity", '":', " ", "4", ', "']
    tokens += ["critical_error", '": false, "reason_codes": []}']
    top = [{"token": "4", "logprob": math.log(p)}, {"token": "5", "logprob": math.log(1 - p)}]
    content = [{"token": t, "logprob": math.log(p), "top_logprobs": top if t == "4" else []} for t in tokens]
    message = {"role": "assistant", "content": "".join(tokens)}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": content}}
    return server.Answer({"model": "m", "choices": [choice]})


@pytest.mark.parametrize("plain", [False, True])
def test_log_probabilities_go_with_the_record(conditions, server, write_records, plain):
    """Whether they came with the plain calls or with those of the repair, the repaired scores are the same."""
    server.script = lambda body, number: direct_reply(server, 0.75) if body.get("logprobs") else server.good(body)
    judge = server.judge(capabilities={"logprobs": 2} if plain else {})
    only = {"kinds": ["logprob_scores"], "probes": {}}
    run = conditions(judge, **only)
    asyncio.run(run_passes(run, ["direct", *repair_plans(run)]))
    wanted = repair_verdicts(run)
    assert wanted["expected_total"].tolist() == pytest.approx([4.25] * 8)
    again = conditions(write_records(export_records(run, "served"), name="served"), name="again", **only)
    asyncio.run(run_passes(again, ["direct", *repair_plans(again)]))
    found = repair_verdicts(again)
    assert set(found["pass"]) == {"logprob_scores/direct"}
    columns = ["pass", "item_id", "system", "total", "expected_total", "outside_mass", "status"]
    pd.testing.assert_frame_equal(found[columns], wanted[columns])
    assert repairs_left_out(again).empty


def test_imported_conditions_are_the_exported_ones_and_are_kept(conditions, server, project):
    """Into the ledger of another run of the same protocol; a call that is finished, plain or repaired, is refused."""

    def script(body, number):
        if body.get("logprobs"):
            return direct_reply(server, 0.75)
        return server.completion(json.dumps({"winner": "B"})) if "confidence is" not in str(body) else server.good(body)

    server.script = script
    kinds = ["verdict_only", "logprob_scores", {"kind": "self_consistency", "samples": 2}]
    run = conditions(server.judge(), kinds=kinds, probes={"run": ["repetition", "padding"]})
    wanted = tables(run)
    records = export_records(run, "served")
    path = project / "params" / "out.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    again = conditions(server.judge(), kinds=kinds, probes={"run": ["repetition", "padding"]}, name="again")
    asked = len(server.bodies)
    assert import_verdicts(again, path, "served") == len(records)
    same(wanted, tables(again))
    assert len(server.bodies) == asked
    with pytest.raises(DataError, match=f"{len(records)} of {len(records)} records cannot be imported"):
        import_verdicts(again, path, "served")


def test_a_condition_that_a_record_lacks_is_left_out(conditions, write_records):
    run = conditions({"name": "sim", "kind": "simulated"}, kinds=["verdict_only", "few_shot", "tie_margin"])
    tables(run)
    kept = [
        r
        for r in export_records(run, "sim")
        if r["pass"].partition("/")[0] not in ("padding", "few_shot", "development")
    ]
    again = conditions(write_records(kept, name="sim"), kinds=["verdict_only", "few_shot", "tie_margin"], name="again")
    assert all(is_recorded(plan) for plan in (*probe_plans(again), *repair_plans(again)))
    assert left_out(again).to_numpy().tolist() == [["sim", "padding", "the record holds no such call"]]
    assert repairs_left_out(again).to_numpy().tolist() == [
        ["sim", "few_shot", "the record holds no such call"], ["sim", "tie_margin", "the record holds no such call"],
    ]  # fmt: skip


def test_a_call_that_was_not_made_is_exported_as_not_made(conditions, write_records):
    """A run that was stopped half-way: what is missing stays missing a verdict, and is no tie."""
    run = conditions({"name": "sim", "kind": "simulated"}, kinds=["verdict_only"])
    plans = probe_plans(run)
    asyncio.run(run_passes(run, [*ALL, *plans[:3]]))
    records = export_records(run, "sim")
    assert {r["reason"] for r in records if r["pass"].startswith("padding/")} == {"not_judged"}
    again = conditions(write_records(records, name="sim"), kinds=["verdict_only"], name="again")
    asyncio.run(run_passes(again, [*ALL, *probe_plans(again)]))
    table = verdicts_of(again, probe_plans(again))
    padded = table[table["probe"] == "padding"]
    assert set(padded["status"]) == {"unusable"}
    assert padded["verdict"].isna().all()


PLACE = {"item_id": "i00000", "strategy": "pairwise", "first": "ALPHA", "second": "BETA", "verdict": "A"}
BAD = {
    "has a repeat that is not a whole number from 0": {"pass": "original", "repeat": -1},
    "has a repeat that is not": {"pass": "original", "repeat": True},
    "has a repeat that": {"pass": "original", "repeat": "1"},
    "has logprobs that are not a list": {"pass": "original", "logprobs": {}},
    "has pass 'padding/direct'": {"pass": "padding/direct"},
    "has pass 'padding'": {"pass": "padding"},
    "has pass 'original/padding'": {"pass": "original/padding"},
}


@pytest.mark.parametrize("message", BAD)
def test_a_record_of_a_condition_that_cannot_be_used(study_of, write_records, message):
    study = study_of([write_records([PLACE | BAD[message]])])
    with pytest.raises(DataError, match=r"params/old\.jsonl: line 1 ") as error:
        records_of(study.judges[0])
    assert message in str(error.value)


def test_calls_that_differ_in_their_repeat_are_different_calls(study_of, write_records):
    again = [PLACE | {"pass": "repetition/original", "repeat": number} for number in (1, 2)]
    study = study_of([write_records([PLACE | {"pass": "original"}, *again])])
    assert {key[4] for key in records_of(study.judges[0])} == {0, 1, 2}
    study = study_of([write_records([*again, again[0]], name="twice")])
    with pytest.raises(DataError, match="line 3 repeats a call"):
        records_of(study.judges[0])


def test_the_plain_tables_know_nothing_of_conditions(conditions):
    """Probes and repairs are rows of their own: the plain verdicts are the same with and without them."""
    run = conditions({"name": "sim", "kind": "simulated"})
    with_them = tables(run)[0]
    bare = conditions({"name": "sim", "kind": "simulated"}, kinds=[], probes={}, name="bare")
    asyncio.run(run_passes(bare, list(ALL)))
    pd.testing.assert_frame_equal(verdicts(bare).drop(columns=NOT_RECORDED), with_them)
    assert set(with_them["pass"]) == {"direct", "original", "swapped"}
