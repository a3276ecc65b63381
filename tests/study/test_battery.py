"""Probes and repairs in the protocol: what may be asked for, and a protocol without them is what it always was."""

from __future__ import annotations

import json

import pytest
import yaml

from judgelab.errors import ProtocolError
from judgelab.study.battery import ANSWER_PROBES, PROBES, Probes, Repairs
from judgelab.study.protocol import parse_study

COIN = {"name": "coin", "kind": "control", "rule": "coin"}
OTHER = {"name": "other", "kind": "control", "rule": "longest"}
# the hash that the version before probes and repairs gave to PROTOCOL
BEFORE = "ca66ef301d2e2782db8c4b645d1812729e34a4a23dc309c5e6dba1344f332c7e"
PROTOCOL = {
    "study_id": "small",
    "sampling_rule": "all of them",
    "items": {"path": "params/items.jsonl"},
    "systems": {"ALPHA": {}, "BETA": {}},
    "rubric_version": "r1",
    "direct_scale": {"criteria": ["correctness", "clarity"]},
    "direct_tie_margin": 0.25,
    "random_seed": 7,
    "judges": [COIN],
}


def study(**changes):
    return parse_study(PROTOCOL | changes)


def refused(**changes):
    with pytest.raises(ProtocolError) as error:
        study(**changes)
    return str(error.value)


def test_a_protocol_without_a_battery_has_the_hash_that_it_always_had():
    assert study().sha256 == BEFORE
    assert study(probes={}, repairs={}).sha256 == BEFORE
    assert study(probes={"run": [], "repeats": 3}, repairs={"run": []}).sha256 == BEFORE
    assert not {"probes", "repairs"} & set(study().model_dump())


@pytest.mark.parametrize(
    "change",
    [
        {"probes": {"run": ["padding"]}},
        {"probes": {"repeats": 4}},
        {"probes": {"run": ["repetition"], "items": 3}},
        {"repairs": {"run": ["verdict_only"]}},
        {"repairs": {"run": [{"kind": "verdict_only", "name": "short"}]}},
        {"repairs": {"run": [{"kind": "few_shot", "examples": 4}]}},
        {"repairs": {"run": ["few_shot"], "judges": ["coin"]}},
    ],
)
def test_every_key_of_a_battery_makes_another_protocol(change):
    found = study(**change)
    assert found.sha256 != BEFORE
    again = parse_study(yaml.safe_load(yaml.safe_dump(json.loads(found.model_dump_json()))))
    assert (again, again.sha256) == (found, found.sha256)


def test_levels_keep_their_numbers_through_a_file():
    repair = {"kind": "level_descriptions", "levels": {5: "all of it", 1: "nothing"}}
    found = study(repairs={"run": [repair]})
    again = parse_study(yaml.safe_load(yaml.safe_dump(json.loads(found.model_dump_json()))))
    assert again.repairs.run[0].levels == {1: "nothing", 5: "all of it"}
    assert again.sha256 == found.sha256


def test_all_stands_for_every_probe():
    assert Probes(run="all").run == PROBES
    assert set(ANSWER_PROBES) < set(PROBES)
    assert set(PROBES) - set(ANSWER_PROBES) == {"repetition", "identical", "criterion_order", "labels"}


def test_a_repair_is_called_by_its_kind_unless_it_has_a_name():
    repairs = study(
        repairs={"run": ["verdict_only", {"kind": "few_shot"}, {"kind": "few_shot", "name": "five", "examples": 5}]}
    ).repairs
    assert [(repair.kind, repair.name) for repair in repairs.run] == [
        ("verdict_only", "verdict_only"),
        ("few_shot", "few_shot"),
        ("few_shot", "five"),
    ]


BAD_PROBES = {
    "a probe is named twice": {"run": ["padding", "padding"]},
    "are compared with repetition": {"run": ["criterion_order"]},
    "which is not among them": {"run": ["labels", "padding"]},
    "are not two different labels apart from TIE": {"letters": [["x", "X"]]},
    "['1', 'tie'] are not two": {"letters": [["1", "tie"]]},
    "probes.letters": {"letters": []},
    "probes.letters.0.1": {"letters": [["A", "B)"]]},  # would be read as part of a regular expression
    "probes.repeats": {"run": ["repetition"], "repeats": 1},
    "probes.items": {"items": 0},
    "probes.run.0": {"run": ["bribery"]},
    "unknown key": {"rum": ["padding"]},
    "probes: no judge named nobody; the judges are coin": {"judges": ["nobody"]},
}


@pytest.mark.parametrize("message", BAD_PROBES)
def test_probes_that_cannot_be(message):
    assert message in refused(probes=BAD_PROBES[message])


def test_probes_need_the_pass_that_they_are_compared_with():
    apart = {"passes": ["direct"], "position_test": {"enabled": False}}
    assert "which is not run" in refused(probes={"run": ["padding"]}, **apart)
    assert study(probes={"repeats": 5}, **apart).probes.run == ()


BAD_REPAIRS = {
    "repairs named more than once: few_shot; give each a name": {"run": ["few_shot", {"kind": "few_shot"}]},
    "pairwise is the name of the judge without a repair": {"run": [{"kind": "few_shot", "name": "pairwise"}]},
    "repairs.run.0.few_shot.name": {"run": [{"kind": "few_shot", "name": "Few/shot"}]},
    "repairs.run.0": {"run": ["prayer"]},
    "repairs.run.0.few_shot.examples": {"run": [{"kind": "few_shot", "examples": 0}]},
    "repairs.run.0.self_consistency.temperature": {"run": [{"kind": "self_consistency", "temperature": 0}]},
    "repairs.run.0.self_consistency.samples": {"run": [{"kind": "self_consistency", "samples": 1}]},
    "repairs.run.0.logprob_scores.alternatives": {"run": [{"kind": "logprob_scores", "alternatives": 1}]},
    "repairs.run.0.level_descriptions.levels": {"run": [{"kind": "level_descriptions", "levels": {}}]},
    "repairs: no judge named nobody": {"judges": ["nobody"]},
    "repairs.run: no judge named nobody": {"run": [{"kind": "panel", "judges": ["coin", "nobody"]}]},
    "votes is needed with rule votes": {"run": [{"kind": "panel", "judges": ["coin", "other"], "rule": "votes"}]},
    "and with no other rule": {"run": [{"kind": "panel", "judges": ["coin", "other"], "votes": 2}]},
    "votes (1) must be more than half of the 2 judges": {
        "run": [{"kind": "panel", "judges": ["coin", "other"], "rule": "votes", "votes": 1}]
    },
}


@pytest.mark.parametrize("message", BAD_REPAIRS)
def test_repairs_that_cannot_be(message):
    assert message in refused(repairs=BAD_REPAIRS[message], judges=[COIN, OTHER])


@pytest.mark.parametrize("name", ["development", "padding", "labels", "repetition", "identical"])
def test_a_repair_cannot_take_the_passes_of_a_probe_or_of_the_development_items(name):
    """The ledger and a record know a pass by its name alone: padding/original must be one thing."""
    assert f"{name} is the name of" in refused(repairs={"run": [{"kind": "verdict_only", "name": name}]})


@pytest.mark.parametrize("repair", [{"kind": "few_shot"}, {"kind": "retrieved_examples"}])
def test_a_strategy_named_twice_would_be_asked_twice(repair):
    named = refused(repairs={"run": [repair | {"strategies": ["direct", "direct"]}]})
    assert "strategies" in named
    assert "strategies" in refused(repairs={"run": [repair | {"strategies": []}]})


def test_repairs_speak_of_the_scale():
    scale = {"criteria": ["correctness"], "minimum": 0, "maximum": 10}
    levels = {"kind": "level_descriptions", "levels": {0: "nothing", 6: "all of it"}}
    assert "level_descriptions: level 0 is not on the scale, 1 to 5" in refused(repairs={"run": [levels]})
    assert study(repairs={"run": [levels]}, direct_scale=scale).repairs.run
    told = "logprob_scores needs levels of one digit, 0 to 9; the scale is 0 to 10"
    assert told in refused(repairs={"run": ["logprob_scores"]}, direct_scale=scale)
    assert study(repairs={"run": ["logprob_scores"]}, direct_scale=scale | {"maximum": 9}).repairs.run


def test_a_panel_has_each_judge_once():
    assert "judges" in refused(repairs={"run": [{"kind": "panel", "judges": ["coin", "coin"]}]})


def test_a_key_for_embeddings_stays_in_the_environment():
    secret = "sk-" + "a1B2" * 10
    told = refused(
        repairs={
            "run": [
                {
                    "kind": "retrieved_examples",
                    "embeddings": {"base_url": "https://api.example/v1", "model": "m", "api_key_env": secret},
                }
            ]
        }
    )
    assert "api_key_env" in told
    assert secret not in told


def test_defaults_are_the_documented_ones():
    assert (Probes().repeats, Probes().letters) == (3, (("1", "2"), ("X", "Y")))
    found = Repairs(run=("self_consistency", "logprob_scores", "reasoning_first")).run
    assert (found[0].samples, found[0].temperature, found[1].alternatives, found[2].max_tokens) == (5, 0.7, 20, None)
