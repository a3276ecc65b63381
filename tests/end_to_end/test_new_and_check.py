"""From no file to a frozen study by the command line alone: new, check, fill in, check, run."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from judgelab import cli
from judgelab.study.freeze import open_run
from judgelab.study.protocol import load_params

from .conftest import ROOT, Outcome, succeeded

SPELLED = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, with this project's notebooks: new files must not land in the repository."""
    (tmp_path / "params").mkdir()
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    monkeypatch.setenv("JUDGELAB_ROOT", str(tmp_path))
    monkeypatch.setenv("JUDGELAB_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judgelab(*arguments: str, typed: str = "") -> Outcome:
    """``judgelab ...`` in this process, with what somebody types."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["judgelab", *arguments])
        patch.setattr(sys, "stdin", io.StringIO(typed))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as ended:
            cli.main()
    assert "Traceback" not in out.getvalue() + err.getvalue()
    return Outcome(int(ended.value.code or 0), out.getvalue(), err.getvalue())


def fill_in(project: Path, number: int) -> None:
    """What the owner of the study writes: the texts of the protocol, items, and two reviewers' labels."""
    params = project / "params/mine.yaml"
    text = params.read_text(encoding="utf-8")
    params.write_text(re.sub(r"REPLACE with [a-z ]+", "Number words in a table", text), encoding="utf-8")
    items, labels = [], []
    for count in range(1, number + 1):
        answers = {"ALPHA": f"The number {count} is written {SPELLED[count]}.", "BETA": f"It is {SPELLED[count - 1]}."}
        kind = "odd" if count % 2 else "even"
        items.append({"item_id": f"n{count}", "category": kind, "task": f"Spell {count}.", "answers": answers})
        labels += [f"n{count},{who},5,1,ALPHA,false" for who in ("ada", "ben")]
    path = project / "params/mine/items.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    path = project / "params/mine/human_labels.csv"
    header = path.read_text(encoding="utf-8").splitlines()[0]
    path.write_text("\n".join([header, *labels]) + "\n", encoding="utf-8")


def without_a_model(project: Path) -> None:
    """The study with its controls alone."""
    params = project / "params/mine.yaml"
    lines = params.read_text(encoding="utf-8").splitlines(keepends=True)
    params.write_text("".join(line for line in lines if "kind: embedded" not in line), encoding="utf-8")


def test_from_nothing_to_a_frozen_study(project):
    made = succeeded(judgelab("new", "mine", "--labels", "file"))
    written = ["params/mine.yaml", "params/mine/items.jsonl", "params/mine/human_labels.csv"]
    assert made.out.splitlines()[:3] == [f"written: {name}" for name in written]
    assert "judgelab check params/mine.yaml" in made.out

    first = judgelab("check", "params/mine.yaml")
    assert first.code == 1
    assert re.findall(r"^missing +(.*)$", first.out, re.MULTILINE)[:3] == [
        "params/mine.yaml: 3 placeholders: title, question, sampling_rule",
        "params/mine/items.jsonl: placeholders in 2 of 2 items: item_001, item_002",
        "params/mine/human_labels.csv: placeholders in 1 of 1 labels; first line 2",
    ]
    assert re.search(r"\n\d things are missing\n$", first.out)
    assert not (project / "outputs").exists()

    fill_in(project, 12)
    without_a_model(project)
    ready = succeeded(judgelab("check", "params/mine.yaml"))
    assert ready.out.endswith("\nready: judgelab run params/mine.yaml\n")
    assert "advice   every judge is a control without a model" in ready.out
    assert "ok       human labels: each of 12 items has 2 reviewers or more" in ready.out
    assert not (project / "outputs").exists()

    succeeded(judgelab("run", "params/mine.yaml", "--to", "01"))
    assert (project / "outputs/mine/report/index.html").is_file()
    run = open_run("mine", load_params(project / "params/mine.yaml")[1])
    assert len(run.items()) == 12
    assert run.reference()["human"].tolist() == ["ALPHA"] * 12
    again = succeeded(judgelab("check", "params/mine.yaml"))
    assert "ok       outputs/mine was frozen with this study: a run goes on where it stopped" in again.out


@pytest.mark.model
def test_the_study_of_the_embedded_model_is_ready(project):
    succeeded(judgelab("new", "mine", "--no-ask", "--labels", "file"))
    fill_in(project, 12)
    ready = succeeded(judgelab("check", "params/mine.yaml"))
    assert re.search(r"^ok +judge smollm2-135m: embedded, .*\.gguf$", ready.out, re.MULTILINE)
    assert "calls: 192 are planned, 48 of them to a model" in ready.out
    assert not (project / "outputs").exists()


def test_one_thing_is_missing(project):
    succeeded(judgelab("new", "mine", "--labels", "file"))
    fill_in(project, 12)
    without_a_model(project)
    (project / "params/mine/human_labels.csv").unlink()
    told = judgelab("check", "params/mine.yaml")
    assert told.code == 1
    assert told.out.endswith("\n1 thing is missing\n")
    (project / "params/mine/human_labels.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert judgelab("check", "params/mine.yaml").out.endswith("\n1 thing is missing or wrong\n")


def test_questions_are_asked_and_wrong_answers_asked_again(project):
    typed = "ONE\nONE, TWO, THREE\nguru\nrecorded\ntone, clarity\nbooks\nnone\n"
    asked = succeeded(judgelab("new", "asked", "--ask", typed=typed))
    assert "2 or more are needed" in asked.out + asked.err
    assert "'guru' is none of embedded, chat, anthropic, gemini, recorded" in asked.out + asked.err
    study = load_params(project / "params/asked.yaml")[1]
    assert study.system_names == ("ONE", "TWO", "THREE")
    assert study.judges[0].kind == "recorded"
    assert list(study.direct_scale.weights) == ["tone", "clarity"]
    assert study.human_labels is None
    assert not (project / "params/asked/human_labels.csv").exists()


def test_what_an_option_says_is_not_asked(project):
    options = ("--system", "ONE", "--system", "TWO", "--judge", "gemini", "--criterion", "tone", "--labels", "none")
    succeeded(judgelab("new", "told", "--ask", *options))
    succeeded(judgelab("new", "silent.yaml", *options, typed="never read\n"))
    for name in ("told", "silent"):
        study = yaml.safe_load((project / f"params/{name}.yaml").read_text(encoding="utf-8"))["study"]
        assert list(study["systems"]) == ["ONE", "TWO"]
        assert (study["judges"][0]["kind"], study["human_labels"]) == ("gemini", None)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["../mine"], "run is '../mine'"),
        (["mine", "--judge", "guru"], "no judge of kind 'guru'; allowed are embedded, chat"),
        (["mine", "--labels", "guess"], "no labels from 'guess'; allowed are notebook, file, none"),
        (["mine", "--system", "ALPHA"], "a study compares two systems or more; named is ALPHA"),
        (["mine", "--system", "a b", "--system", "c"], "'a b' is not allowed"),
    ],
)
def test_a_mistake_is_told_and_nothing_is_written(project, arguments, told):
    outcome = judgelab("new", *arguments)
    assert outcome.code == 2
    assert told in outcome.err
    assert list((project / "params").iterdir()) == []


def test_nothing_is_overwritten(project):
    succeeded(judgelab("new", "mine", "--labels", "file"))
    before = {path: path.read_bytes() for path in (project / "params").rglob("*") if path.is_file()}
    outcome = judgelab("new", "mine", "--judge", "chat", "--labels", "file")
    assert outcome.code == 2
    assert "params/mine.yaml, params/mine/items.jsonl, params/mine/human_labels.csv: already there" in outcome.err
    assert {path: path.read_bytes() for path in (project / "params").rglob("*") if path.is_file()} == before
