"""What a user may get wrong: each gives a sentence that says what to do, status 2, and no traceback."""

from __future__ import annotations

import fcntl
import re
from pathlib import Path

import pytest
import yaml

from judgelab.study.freeze import freeze
from judgelab.study.protocol import load_params

from .conftest import ROOT, SECRET, SECRET_VARIABLE, ChatStudy, command, outputs_at

DEMO = ROOT / "params/demo.yaml"


def refused(outputs: Path, *arguments: object) -> str:
    """The message of a command that ends with status 2."""
    outcome = command(outputs, *arguments)
    assert outcome.code == 2, outcome.out + outcome.err
    assert "Traceback" not in outcome.out + outcome.err
    *_, message = re.split(r"^judgelab: ", outcome.err, flags=re.MULTILINE)  # a progress bar may stand before it
    assert message != outcome.err
    return message


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    """Outputs with the frozen demo."""
    with outputs_at(tmp_path):
        freeze(*load_params(DEMO))
    return tmp_path


def changed(tmp_path: Path, **values: object) -> Path:
    """The demo's parameters with other values in the protocol."""
    document = yaml.safe_load(DEMO.read_text(encoding="utf-8"))
    document["study"] |= values
    path = tmp_path / "changed.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def test_missing_params_file(tmp_path):
    assert "nothing.yaml: no such file" in refused(tmp_path, "run", tmp_path / "nothing.yaml")


def test_params_that_are_no_yaml(tmp_path):
    path = tmp_path / "broken.yaml"
    path.write_text("run: [", encoding="utf-8")
    assert "broken.yaml: not valid YAML" in refused(tmp_path, "run", path)


def test_unknown_key_with_the_one_that_was_meant(tmp_path):
    message = refused(tmp_path, "run", changed(tmp_path, radom_seed=3))
    assert "radom_seed: unknown key; did you mean random_seed?" in message
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("random_seed=soon", "random_seed: 'soon' is not allowed"),
        ("decision.minimum_items=0", "decision.minimum_items: 0 is not allowed"),
        ("measures.ci_level=95", "measures.ci_level: 95 is not allowed"),
        ("passes=[direct, sideways]", "passes.1: 'sideways' is not allowed"),
        ("decision.minimum_item=30", "did you mean minimum_items?"),
        ("random_seed", "the form is key=value"),
        ("random_seed.more=1", "'random_seed' is not a group of keys"),
        ("judges.99.name=x", "judges"),
        ("run=../elsewhere", "run is '../elsewhere'"),
    ],
)
def test_set_with_what_the_protocol_does_not_allow(tmp_path, change, expected):
    assert expected in refused(tmp_path, "run", DEMO, "--set", change)
    assert list(tmp_path.iterdir()) == []


def test_a_stage_that_does_not_exist(tmp_path):
    message = refused(tmp_path, "run", DEMO, "--from", "11")
    assert "no stage '11'; the stages are 00, 01, 02, 03, 04, 05, 06, 07, 08, 09, 10" in message


def test_stages_in_the_wrong_order(tmp_path):
    assert "--from 05 comes after --to 02" in refused(tmp_path, "run", DEMO, "--from", "05", "--to", "02")


def test_a_run_that_was_frozen_with_another_protocol(frozen):
    before = (frozen / "demo/protocol.yaml").read_bytes()
    message = refused(frozen, "run", DEMO, "--set", "direct_tie_margin=0.5", "--set", "decision.minimum_items=30")
    assert "outputs/demo was frozen with another protocol; 2 keys differ" in message
    assert "direct_tie_margin: frozen 0.25, given 0.5" in message
    assert "decision.minimum_items: frozen 50, given 30" in message
    assert (frozen / "demo/protocol.yaml").read_bytes() == before


def test_a_protocol_that_was_edited_after_freezing(frozen):
    path = frozen / "demo/protocol.yaml"
    path.write_text(path.read_text("utf-8").replace("minimum_agreement: 0.7", "minimum_agreement: 0.2"), "utf-8")
    assert "outputs/demo/protocol.yaml was changed after freezing" in refused(frozen, "run", DEMO, "--from", "05")


def test_a_late_stage_without_the_first(tmp_path):
    message = refused(tmp_path, "run", DEMO, "--from", "05")
    assert "outputs/demo is not frozen yet: run stage 01 first" in message
    assert not (tmp_path / "demo").exists()


@pytest.mark.slow
def test_a_late_stage_without_verdicts(frozen):
    message = refused(frozen, "run", DEMO, "--from", "05", "--to", "05")
    assert "stage 05 stopped: " in message
    assert "outputs/demo/ledger.sqlite: no such ledger; nothing has been judged in this run yet" in message


@pytest.mark.parametrize("verb", ["publish", "verify"])
def test_a_run_that_does_not_exist(tmp_path, verb):
    assert "outputs/nobody is not frozen yet" in refused(tmp_path, verb, "nobody")
    assert list(tmp_path.iterdir()) == []


def test_a_run_name_that_is_a_path(tmp_path):
    assert "run is '../demo'" in refused(tmp_path, "verify", "../demo")


def test_publish_before_anything_was_executed(frozen):
    assert "notebook" in refused(frozen, "publish", "demo")


def test_verify_of_an_unfinished_run(frozen):
    assert "outputs/demo/manifest.json: no manifest" in refused(frozen, "verify", "demo")


def test_export_of_a_judge_that_the_run_has_not(frozen):
    message = refused(frozen, "export", "demo", "--judge", "gpt", "--to", frozen / "out.jsonl")
    assert "run demo has no judge 'gpt'; its judges are smollm2-135m, always-first" in message


def test_unknown_import_format(tmp_path):
    message = refused(tmp_path, "import", "excel", tmp_path, "--run", "mine")
    allowed = "alpaca-eval, arena, judgebench, llmbar, llmfao, mt-bench, pandalm, plain"
    assert f"unknown format 'excel'; allowed are {allowed}" in message


def test_import_of_a_folder_without_the_data_set(tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    assert "dataset.json" in refused(tmp_path, "import", "llmbar", folder, "--run", "mine")
    assert not (tmp_path / "mine").exists()


def test_outputs_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    message = refused(file, "run", DEMO)
    assert "cannot write outputs/demo: " in message


def test_a_folder_of_the_run_that_cannot_be_written(frozen):
    """Root may write anywhere, so a file stands where a folder must be made."""
    (frozen / "demo/notebooks").write_text("", encoding="utf-8")
    assert "cannot write outputs/demo/notebooks" in refused(frozen, "run", DEMO, "--to", "01")


def test_another_process_on_the_same_run(frozen):
    with (frozen / "demo/.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "outputs/demo is in use by another judgelab run" in refused(frozen, "run", DEMO)
    assert not (frozen / "demo/notebooks").exists()


@pytest.mark.slow
def test_a_key_that_is_not_set(chat: ChatStudy, tmp_path, monkeypatch):
    monkeypatch.delenv(SECRET_VARIABLE, raising=False)
    chat.server.forget()
    chat.freeze(tmp_path)
    message = refused(tmp_path, "run", chat.params, "--from", "04", "--to", "04")
    assert f"judge served: the environment variable {SECRET_VARIABLE} is not set" in message
    assert chat.server.asked.total() == 0


@pytest.mark.slow
def test_a_key_goes_to_the_endpoint_and_into_no_file(quiet_chat: ChatStudy, unbroken):
    assert quiet_chat.server.authorizations == {f"Bearer {SECRET}"}
    files = [path for path in unbroken.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []


def test_a_tool_is_explained_by_its_help(tmp_path):
    outcome = command(tmp_path, "--help")
    assert outcome.code == 0
    for verb in ("run", "publish", "verify", "import", "export", "notebooks"):
        assert f"\n  {verb} " in outcome.out
    assert "params/quickstart.yaml" in outcome.out
