"""The systems of a protocol: generated, degraded or given; what is refused, and that old protocols keep their hash."""

from __future__ import annotations

import pytest

from judgelab.errors import ProtocolError
from judgelab.project import project_root
from judgelab.study.candidates import recipe
from judgelab.study.protocol import load_params, parse_study
from judgelab.study.systems import Generation, System

MODEL = {"kind": "chat", "model": "m-1", "base_url": "https://host.example/v1"}
WARM = {**MODEL, "temperature": 0.7}
# of the protocol of conftest.py, as judgelab gave it before systems could be made
OLD_SHA256 = "8ffc01bbec13a0af4bcd13fd84de207729af8c5cff3658673926a67942cd1045"
NEW_KEYS = ("ranking", "generated", "degraded", "completion")


def problems(project, systems):
    with pytest.raises(ProtocolError) as caught:
        project.study(systems=systems)
    return str(caught.value)


def generated(model=MODEL, **changes):
    return {"generated": {"model": model, **changes}}


def degraded(of, *edits):
    return {"degraded": {"of": of, "edits": list(edits) or ["blur"]}}


def keys_in(values):
    inner = values.values() if isinstance(values, dict) else values if isinstance(values, list | tuple) else ()
    return {*(values if isinstance(values, dict) else ()), *(key for each in inner for key in keys_in(each))}


def test_the_hash_of_a_protocol_without_the_new_keys_is_the_old_one(project):
    assert project.study().sha256 == OLD_SHA256
    assert not keys_in(project.study().model_dump(mode="json")) & {*NEW_KEYS}
    spelt_out = {"ALPHA": {"generated": None, "degraded": None, "completion": None}, "BETA": {}}
    assert project.study(systems=spelt_out, ranking={}).sha256 == OLD_SHA256


@pytest.mark.parametrize("name", ["demo", "quickstart", "llmbar-natural"])
def test_the_committed_protocols_have_none_of_the_new_keys(name, monkeypatch):
    monkeypatch.delenv("JUDGELAB_ROOT", raising=False)
    _, study = load_params(project_root() / "params" / f"{name}.yaml")
    assert not keys_in(study.model_dump(mode="json")) & {*NEW_KEYS}
    assert not study.makes_answers


def test_completions_become_systems(project):
    systems = {"ALPHA": {}, "warm": {"family": "f", **generated(WARM, completions=3)}, "BETA": {}}
    study = project.study(systems=systems)
    assert study.system_names == ("ALPHA", "warm.1", "warm.2", "warm.3", "BETA")
    assert [study.systems[name].completion for name in study.system_names] == [None, 1, 2, 3, None]
    assert {study.systems[f"warm.{draw}"].family for draw in (1, 2, 3)} == {"f"}
    assert study.makes_answers
    assert [name for name, system in study.systems.items() if system.made] == ["warm.1", "warm.2", "warm.3"]
    assert study.families == {"f": ["warm.1", "warm.2", "warm.3"]}


def test_a_dump_is_read_again_as_the_same_protocol(project):
    systems = {"ALPHA": {}, "warm": generated(WARM, completions=2), "low": degraded("warm.1", "blur", "drop_step")}
    study = project.study(systems=systems)
    dumped = study.model_dump(mode="json")
    again = parse_study(dumped)
    assert again == study
    assert again.sha256 == study.sha256
    assert again.model_dump(mode="json") == dumped
    assert recipe(again) == recipe(study)
    short = parse_study(study.model_dump(mode="json", exclude_defaults=True))  # as the pipeline hands it to notebooks
    assert short.sha256 == study.sha256


def test_one_completion_keeps_its_name(project):
    study = project.study(systems={"ALPHA": {}, "cold": generated(completions=1)})
    assert study.system_names == ("ALPHA", "cold")
    assert study.systems["cold"].completion is None


def test_a_model_that_writes_is_asked_for_plain_text_and_needs_no_name(project):
    study = project.study(systems={"ALPHA": {}, "cold": generated({**MODEL, "reply_format": "json"})})
    model = study.systems["cold"].generated.model
    assert (model.name, model.asked_format, model.temperature) == ("generator", "none", 0.0)


@pytest.mark.parametrize(
    ("systems", "told"),
    [
        (
            {"ALPHA": {}, "cold": generated(completions=2)},
            "completions: 2 of them at temperature 0 would be the same answer",
        ),
        (
            {"ALPHA": {}, "cold": generated(prompt="Answer: {reference_context}")},
            "generated: prompt: the placeholder {task} is missing; allowed are {task} and {reference_context}",
        ),
        ({"ALPHA": {}, "cold": generated(prompt="{ task }")}, "the placeholder {task} is missing"),
        ({"ALPHA": {}, "warm": generated(WARM, completions=0)}, "generated.completions: 0 is not allowed"),
        ({"ALPHA": {}, "warm": generated(WARM, completions=51)}, "generated.completions: 51 is not allowed"),
        ({"ALPHA": {}, "warm": generated(WARM, completions="many")}, "generated.completions: 'many' is not allowed"),
        ({"ALPHA": {}, "cold": generated(system_prompt="")}, "generated.system_prompt: "),
        ({"ALPHA": {}, "cold": generated(heat=1)}, "generated.heat: unknown key"),
        ({"ALPHA": {}, "cold": {"generated": {}}}, "generated.model: is missing"),
        ({"ALPHA": {}, "cold": generated({"kind": "control", "rule": "coin"})}, "generated.model: "),
        (
            {"ALPHA": {}, "both": {**generated(), **degraded("ALPHA")}},
            "a system is generated or degraded, not both",
        ),
        (
            {"ALPHA": {}, "given": {"completion": 1}},
            "completion numbers the draws of a generated system, from 1 to completions",
        ),
        (
            {"ALPHA": {}, "warm.3": {**generated(WARM, completions=2), "completion": 3}},
            "completion numbers the draws of a generated system, from 1 to completions",
        ),
        (
            {"ALPHA": {}, "warm": {**generated(WARM, completions=2), "completion": 1}},
            "systems: warm has completion 1; leave completion to judgelab",
        ),
        (
            {
                "warm.1": {**generated(WARM, completions=2), "completion": 1},
                "warm.2": {**generated({**WARM, "temperature": 1}, completions=2), "completion": 2},
            },
            "systems: the completions of warm are not generated in one way",
        ),
        (
            {"warm": generated(WARM, completions=2), "warm.2": {}},
            "warm.2 is a system of its own and one of the 2 completions of warm",
        ),
        (
            {"warm.1": {}, "warm": generated(WARM, completions=2)},
            "warm.1 is a system of its own and one of the 2 completions of warm",
        ),
        ({"ALPHA": {}, "low": degraded("GAMMA")}, "low is degraded from GAMMA, which is no system of the study"),
        (
            {"ALPHA": {}, "warm": generated(WARM, completions=2), "low": degraded("warm")},
            "low is degraded from warm, which is no system of the study",
        ),
        ({"ALPHA": {}, "low": degraded("low")}, "systems: low from low: degraded in a circle"),
        (
            {"ALPHA": {}, "a": degraded("b"), "b": degraded("c"), "c": degraded("a")},
            "systems: a from b from c from a: degraded in a circle",
        ),
        (
            {"ALPHA": {}, "low": degraded("ALPHA"), "bad": degraded("ALPHA")},
            "systems: low and bad are both degraded from ALPHA; make a ladder of them",
        ),
        ({"ALPHA": {}, "low": {"degraded": {"of": "ALPHA", "edits": []}}}, "degraded.edits: "),
        ({"ALPHA": {}, "low": degraded("ALPHA", "insult")}, "degraded.edits.0: 'insult' is not allowed: "),
        ({"ALPHA": {}, "low": {"degraded": {"edits": ["blur"]}}}, "degraded.of: is missing"),
    ],
)
def test_what_is_refused_and_how(project, systems, told):
    assert told in problems(project, systems)


def test_the_system_that_is_wrong_is_named(project):
    told = problems(project, {"ALPHA": {}, "cold": generated(completions=2)})
    assert "systems.cold.1.generated: completions: 2 of them" in told


def test_a_key_written_into_the_protocol_is_refused_and_not_repeated(project):
    key = "sk-a-key-that-must-never-be-seen-0123456789"
    told = problems(project, {"ALPHA": {}, "cold": generated({**MODEL, "headers": {"Authorization": f"Bearer {key}"}})})
    assert "systems.cold.generated.model" in told
    assert key not in told


def test_without_a_temperature_several_completions_may_be_asked_for(project):
    # reasoning models take none, and draw all the same
    study = project.study(systems={"ALPHA": {}, "deep": generated({**MODEL, "temperature": None}, completions=2)})
    assert study.system_names == ("ALPHA", "deep.1", "deep.2")


def test_a_ladder_may_stand_in_any_order_and_start_from_a_generated_system(project):
    systems = {"rung-2": degraded("rung-1"), "rung-1": degraded("cold", "add_error", "blur"), "cold": generated()}
    assert project.study(systems=systems).system_names == ("rung-2", "rung-1", "cold")


def asked(prompt, task, context=""):
    return Generation.model_validate({"model": MODEL, "prompt": prompt}).asked(task, context)


@pytest.mark.parametrize(
    ("prompt", "task", "context", "wanted"),
    [
        ("Q: {task}", "Why?", "", "Q: Why?"),
        ("{task}\n\n{reference_context}", "Why?", "", "Why?"),
        ("{reference_context}|{task}", "Why?", "Because.", "Because.|Why?"),
        ("{task} {task}", "Why?", "", "Why? Why?"),
        # braces stay text, in the prompt and in what is put into it
        ('{"q": "{task}"} {x} {{', "f'{a}' {} %s {0}", "", '{"q": "f\'{a}\' {} %s {0}"} {x} {{'),
        ("{task}\n{reference_context}", "Print {reference_context} and {task}", "{task}",
         "Print {reference_context} and {task}\n{task}"),
        ("{task}", "{{task}}\\n{% raw %}\x00", "", "{{task}}\\n{% raw %}\x00"),
    ],
)  # fmt: skip
def test_the_prompt_is_filled_once_and_its_texts_stay_text(prompt, task, context, wanted):
    assert asked(prompt, task, context) == wanted


def test_the_recipe_covers_all_that_the_answers_depend_on_and_nothing_else(project):
    def digest(made=None, low=("blur",), seed=7, **changes):
        systems = {"ALPHA": {}, "cold": made or generated(), "low": degraded("ALPHA", *low)}
        return recipe(project.study(systems=systems, random_seed=seed, **changes))

    same = [
        digest(direct_tie_margin=1),
        digest(generated({**MODEL, "limits": {"max_calls": 3}})),
        digest(generated({**MODEL, "prices": {"input_per_million": 1}})),
        digest(generated({**MODEL, "api_key_env": "KEY"})),
    ]
    other = [
        digest(seed=8),
        digest(low=["drop_step"]),
        digest(low=["blur", "drop_step"]),
        digest(generated({**MODEL, "model": "m-2"})),
        digest(generated(WARM)),
        digest(generated(prompt="{task}")),
        digest(generated(system_prompt="Be brief.")),
    ]
    assert set(same) == {digest()}
    assert len({digest(), *other}) == 1 + len(other)


def test_a_system_says_whether_stage_00_makes_it():
    assert not System().made
    assert System.model_validate(generated()).made
    assert System.model_validate(degraded("x")).made
