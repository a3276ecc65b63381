"""Judges of kind recorded, and what makes a judge's configuration another one."""

from __future__ import annotations

import asyncio
import json

import pytest

from judgelab.errors import DataError
from judgelab.judging.evidence import verdicts
from judgelab.judging.passes import config_sha256
from judgelab.judging.runner import run_passes

A = '{"winner": "A", "confidence": "high", "reason_codes": []}'
D = '{"correctness": 4, "clarity": 2, "critical_error": false, "reason_codes": []}'
PASSES = ("direct", "pairwise_original", "pairwise_swapped")


def pair(item_id="i00000", pass_="original", first="ALPHA", second="BETA", **values):
    return {"record": "old", "item_id": item_id, "strategy": "pairwise", "pass": pass_, "first": first,
            "second": second} | values  # fmt: skip


def single(system="ALPHA", **values):
    return {"item_id": "i00000", "strategy": "direct", "pass": "direct", "system": system} | values


def judged(make_run, judge, **changes):
    run = make_run([judge], items=1, **changes)
    asyncio.run(run_passes(run, PASSES))
    return verdicts(run)


def one(table, pass_="original"):
    return table[table["pass"] == pass_].iloc[0]


@pytest.mark.parametrize(
    ("values", "verdict", "reason"),
    [
        ({"reply": f"I say: {A}"}, "A", None),
        ({"reply": "I say A."}, None, "no_json"),
        ({"reply": None}, None, "empty_reply"),
        ({"verdict": "B"}, "B", None),
        ({"verdict": "TIE", "reply": "Output (c)"}, "TIE", None),
        ({"verdict": "C"}, None, "label_not_offered"),
        ({"verdict": None, "reply": "Hm", "reason": "no_verdict_in_source"}, None, "no_verdict_in_source"),
        ({"reason": "content_filter"}, None, "content_filter"),
    ],
)
def test_a_record_is_read_or_its_verdict_checked(make_run, write_records, values, verdict, reason):
    row = one(judged(make_run, write_records([pair(**values)])))
    assert row["status"] == ("unusable" if reason else "verdict")
    assert [None if value != value else value for value in (row["verdict"], row["reason"])] == [verdict, reason]
    assert row["attempts"] == 1


def test_a_label_that_the_protocol_does_not_offer(make_run, write_records):
    table = judged(make_run, write_records([pair(verdict="TIE")]), pairwise_labels=["A", "B"])
    assert one(table)["reason"] == "label_not_offered"


@pytest.mark.parametrize(
    ("values", "total", "reason"),
    [
        ({"reply": D}, 3.0, None),
        ({"verdict": {"scores": {"correctness": 5, "clarity": 2}}}, 3.5, None),
        ({"verdict": {"scores": {"correctness": 5}}}, None, "missing_key"),
        ({"verdict": {"scores": {"correctness": 5, "clarity": 9}}}, None, "score_out_of_range"),
        ({"verdict": {"scores": {"correctness": 5, "clarity": True}}}, None, "score_not_a_number"),
    ],
)
def test_scores(make_run, write_records, values, total, reason):
    table = judged(make_run, write_records([single(**values)]))
    row = table[table["system"] == "ALPHA"].iloc[0]
    assert [None if value != value else value for value in (row["total"], row["reason"])] == [total, reason]


def test_calls_that_are_not_in_the_record_are_unusable(make_run, write_records):
    table = judged(make_run, write_records([pair(verdict="A"), pair(item_id="another", verdict="A")]))
    assert table.loc[table["status"] == "unusable", ["pass", "reason"]].to_numpy().tolist() == [
        ["direct", "not_recorded"], ["direct", "not_recorded"], ["swapped", "not_recorded"],
    ]  # fmt: skip


@pytest.mark.parametrize("first", ["ALPHA", "BETA"])
def test_the_records_own_presentation_is_used(make_run, write_records, first):
    second = "BETA" if first == "ALPHA" else "ALPHA"
    records = [
        pair(first=first, second=second, verdict="A"),
        pair(pass_="swapped", first=second, second=first, verdict="B"),
    ]
    table = judged(make_run, write_records(records))
    assert one(table)[["first", "second", "verdict"]].tolist() == [first, second, "A"]
    assert one(table, "swapped")[["first", "second", "verdict"]].tolist() == [second, first, "B"]


def test_one_file_may_hold_several_judges(make_run, write_records):
    judge = write_records([pair(record="x", verdict="A"), pair(record="y", verdict="B")], record="y")
    assert one(judged(make_run, judge))["verdict"] == "B"


def test_numbers_as_item_ids(make_run, write_records, raw_item):
    judge = write_records([pair(item_id=7, verdict="A")])
    run = make_run([judge], items=[raw_item(0, item_id=7)])
    asyncio.run(run_passes(run, PASSES))
    assert one(verdicts(run))["verdict"] == "A"


BROKEN = {
    "line 2 is not a JSON object": [pair(verdict="A"), '{"item_id": '],
    "line 1 is not a JSON object": ["[1, 2]"],
    "line 2 does not go with line 1: pass original of item 'i00000' with 'BETA' first": [
        pair(verdict="A"),
        pair(first="BETA", second="ALPHA", verdict="B"),
    ],
    "line 2 does not go with line 1: pass swapped of item 'i00000' with 'ALPHA' first": [
        pair(verdict="A"),
        pair(pass_="swapped", verdict="B"),
    ],
    "line 3 repeats a call": [pair(verdict="A"), pair("i2", verdict="A"), pair(verdict="B")],
    "line 1 has no 'item_id'": [
        {"strategy": "pairwise", "pass": "original", "first": "A", "second": "B", "verdict": "A"}
    ],
    "line 1 has no 'strategy'": [{"item_id": "i", "verdict": "A"}],
    "line 1 has no 'second'": [{"item_id": "i", "strategy": "pairwise", "pass": "original", "first": "A", "reply": ""}],
    "line 1 has no 'system'": [{"item_id": "i", "strategy": "direct", "pass": "direct", "reply": ""}],
    "line 1 has no 'reply', 'verdict' or 'reason'": [pair()],
    "line 1 has strategy 'pair'; needed is direct or pairwise": [pair(strategy="pair", verdict="A")],
    "line 1 has pass 'swap'; needed is original or swapped": [pair(pass_="swap", verdict="A")],
    "line 1 has first None; needed is text": [pair(first=None, verdict="A")],
    "line 1 has a reply that is not text": [pair(reply={"winner": "A"})],
    "line 1 has a verdict that is neither a label nor": [pair(verdict=1)],
    "line 1 has tokens_in that are not a whole number": [pair(verdict="A", tokens_in="many")],
    "no record of judge 'old'": [pair(record="new", verdict="A")],
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_record_that_cannot_be_used(make_run, write_records, message):
    judge = write_records(BROKEN[message])
    with pytest.raises(DataError) as error:
        judged(make_run, judge)
    assert str(error.value).startswith(f"params/old.jsonl: {message}")


def test_no_file_of_records(make_run, project):
    with pytest.raises(DataError, match=r"params/none\.jsonl"):
        judged(make_run, {"name": "old", "kind": "recorded", "path": "params/none.jsonl"})


CHAT = {"name": "c", "kind": "chat", "model": "m", "base_url": "https://api.example/v1"}


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"name": "other"}, True), ({"prices": {"input_per_million": 3}}, True), ({"concurrency": 2}, True),
        ({"api_key_env": "KEY"}, True), ({"family": "f"}, True), ({"passes": ["direct"]}, True),
        ({"temperature": 0.1}, False), ({"seed": 1}, False), ({"max_tokens": 99}, False), ({"model": "n"}, False),
        ({"base_url": "https://other.example/v1"}, False), ({"response_format": "none"}, False),
        ({"system_prompt": False}, False),
    ],
)  # fmt: skip
def test_what_makes_another_configuration(study_of, change, same):
    one, two = (study_of([judge]).judges[0] for judge in (CHAT, CHAT | change))
    assert (config_sha256(one) == config_sha256(two)) == same


def test_other_contents_of_a_file_are_another_configuration(study_of, write_records):
    judge = write_records([pair(verdict="A")])
    before = config_sha256(study_of([judge]).judges[0])
    assert before == config_sha256(study_of([judge]).judges[0])
    write_records([pair(verdict="B")])
    assert config_sha256(study_of([judge]).judges[0]) != before


def test_another_record_is_judged_anew_and_its_verdicts_are_shown(make_run, write_records):
    judge = write_records([pair(verdict="A")])
    run = make_run([judge], items=1)
    asyncio.run(run_passes(run, PASSES))
    write_records([json.dumps(pair(verdict="B", model="newer"))])
    asyncio.run(run_passes(run, PASSES))
    assert one(verdicts(run))[["verdict", "model"]].tolist() == ["B", "newer"]
