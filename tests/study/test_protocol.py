"""The protocol's models: what they accept, and how they say what is wrong."""

from __future__ import annotations

import pytest
import yaml

from judgelab.errors import ProtocolError
from judgelab.study.protocol import load_params, parse_study


def problems(project, **changes):
    with pytest.raises(ProtocolError) as caught:
        project.study(**changes)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"random_seeed": 1}, "random_seeed: unknown key; did you mean random_seed?"),
        ({"systems": {"ALPHA": {"famly": "x"}, "BETA": {}}}, "systems.ALPHA.famly: unknown key"),
        ({"direct_tie_margin": -1}, "direct_tie_margin: -1 is not allowed: "),
        ({"direct_tie_margin": "wide"}, "direct_tie_margin: 'wide' is not allowed: "),
        ({"direct_tie_margin": float("nan")}, "direct_tie_margin: nan is not allowed: "),
        ({"systems": {"ALPHA": {}}}, "systems: "),
        ({"systems": {"ALPHA": {}, "TIE": {}}}, "a system cannot be named TIE"),
        ({"systems": {"ALPHA": {}, "Alpha": {}}}, "two names differ only in upper and lower case"),
        (
            {"pairwise_labels": ["1", "2"]},
            "pairwise_labels: ['1', '2'] is not allowed; allowed are [A, B, TIE] and [A, B]",
        ),
        ({"direct_scale": {"criteria": ["a", "a"]}}, "criteria named more than once: a"),
        ({"direct_scale": {"criteria": ["critical_error"]}}, "criteria with a reserved name: critical_error"),
        ({"direct_scale": {"criteria": ["a"], "minimum": 5}}, "maximum (5) must be above minimum (5)"),
        ({"passes": ["direct", "pairwise_original"]}, "position_test.enabled and the pass pairwise_swapped must go"),
        ({"passes": ["pairwise_swapped"]}, "pairwise_swapped needs pairwise_original"),
        ({"judges": []}, "judges: "),
        ({"judges": [{"name": "x", "kind": "oracle"}]}, "judges.0: "),
        ({"judges": [{"name": "x", "kind": "control", "rule": "best"}]}, "'best' is not allowed"),
        ({"judges": [{"name": "../x", "kind": "control", "rule": "coin"}]}, "'../x' is not allowed"),
        ({"judges": [{"name": "x", "kind": "control", "rule": "coin"}] * 2}, "judges named more than once: x"),
    ],
)
def test_a_wrong_protocol_says_key_value_and_what_is_allowed(project, changes, told):
    assert told in problems(project, **changes)


def test_a_missing_key_is_named(project):
    values = project.values()
    del values["sampling_rule"], values["random_seed"]
    with pytest.raises(ProtocolError) as caught:
        parse_study(values, where="params/x.yaml")
    assert str(caught.value).splitlines() == [
        "params/x.yaml: 2 problems in the protocol",
        "  sampling_rule: is missing",
        "  random_seed: is missing",
    ]


def test_an_address_with_a_password_is_refused(project):
    judge = {"name": "x", "kind": "chat", "model": "m", "base_url": "https://me:secret@host/v1"}
    assert "base_url" in problems(project, judges=[judge])


def test_the_hash_is_of_the_values_and_not_of_the_layout(project):
    study = project.study()
    turned = dict(reversed(project.values().items()))
    assert parse_study(turned).sha256 == study.sha256
    assert parse_study(study.model_dump(mode="json")).sha256 == study.sha256
    assert project.study(random_seed=8).sha256 != study.sha256


def test_the_hash_covers_the_order_of_systems_and_masks(project):
    assert project.study(systems={"BETA": {}, "ALPHA": {}}).sha256 != project.study().sha256
    masks = [{"mask": {"a": "b", "b": "c"}}, {"mask": {"b": "c", "a": "b"}}]
    assert len({project.study(blindness=mask).sha256 for mask in masks}) == 2


def test_a_judge_may_run_fewer_passes(project):
    judge = {"name": "x", "kind": "control", "rule": "coin", "passes": ["direct"]}
    study = project.study(judges=[judge])
    assert study.passes_of(study.judges[0]) == ("direct",)


def test_what_cannot_change_a_reply_is_not_in_the_judges_hash(project):
    def digest(**changes):
        judge = {"name": "x", "kind": "chat", "model": "m", "base_url": "https://host/v1", **changes}
        return project.study(judges=[judge]).judges[0].sha256

    for same in ({"name": "y"}, {"concurrency": 2}, {"api_key_env": "KEY"}, {"prices": {"input_per_million": 3}}):
        assert digest(**same) == digest()
    for other in ({"model": "n"}, {"temperature": 1}, {"max_tokens": 5}, {"base_url": "https://other/v1"}):
        assert digest(**other) != digest()


def test_a_parameter_file_with_bom(project):
    path = project.root / "params" / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + yaml.safe_dump({"run": "x", "study": project.values()}).encode())
    assert load_params(path) == ("x", project.study())
