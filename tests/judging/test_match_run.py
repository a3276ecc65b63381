"""A study of matches that were judged elsewhere: its protocol, its frozen run, and what it is not mistaken for."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
import yaml

from judgelab import pipeline
from judgelab.errors import DataError, DriftError, LedgerError, ProtocolError, RunError
from judgelab.judging.match_files import read_matches
from judgelab.judging.match_log import MatchLog
from judgelab.judging.match_run import MatchRun, freeze_matches, match_study_of, open_match_run
from judgelab.report.manifest import check_manifest, write_manifest
from judgelab.study.freeze import open_run
from judgelab.study.match_study import MatchStudy, is_match_study, parse_match_study

COIN = {"name": "coin", "kind": "control", "rule": "coin"}
HEADER = "judge,item_id,system_x,system_y,preference"
LINES = ("j,i1,ALPHA,BETA,ALPHA", "j,i2,ALPHA,BETA,TIE", "k,i1,BETA,GAMMA,GAMMA")


def protocol(**changes):
    return {"study_id": "elsewhere", "matches": "params/matches.csv", "random_seed": 7} | changes


@pytest.fixture
def write(project):
    """Write the file of matches; each line a row."""

    def write(*lines, name="params/matches.csv", header=HEADER):
        (project / name).write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")

    write(*LINES)
    return write


def params(project, name="elsewhere", **changes):
    (project / "params" / f"{name}.yaml").write_text(yaml.safe_dump({"run": name, "study": protocol(**changes)}))


# the protocol


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"matchs": "x"}, "matchs: unknown key; did you mean matches?; allowed are study_id, title, "),
        ({"judges": [COIN]}, "judges: unknown key; "),
        ({"random_seed": -1}, "random_seed: -1 is not allowed: Input should be greater than or equal to 0"),
        ({"random_seed": "x"}, "random_seed: 'x' is not allowed: "),
        ({"study_id": "a b"}, "study_id: 'a b' is not allowed: "),
        ({"matches": None}, "matches: None is not allowed: "),
        ({"ranking": {"tied": 9, "strong": 3}}, "ranking: tied (9) must be below strong (3)"),
        ({"ranking": {"elo": {"k": 0}}}, "ranking.elo.k: 0 is not allowed: Input should be greater than 0"),
        ({"ranking": {"elo": {"kay": 4}}}, "ranking.elo.kay: unknown key; allowed are start, k, scale, "),
        ({"ranking": {"thresholds": [0.5, 0.9]}}, "ranking.thresholds: must fall, each once: for example"),
        ({"ranking": {"leaderboard": "../x"}}, "ranking.leaderboard: '../x' is not allowed: "),
        ({"measures": {"resamples": "many"}}, "measures.resamples: 'many' is not allowed: "),
    ],
)
def test_a_wrong_key_is_named_with_what_is_allowed(change, told):
    with pytest.raises(ProtocolError, match=re.escape(f"params/x.yaml: 1 problem in the protocol\n  {told}")):
        parse_match_study(protocol(**change), where="params/x.yaml")


def test_every_wrong_key_is_told():
    with pytest.raises(ProtocolError) as error:
        parse_match_study({"title": 3, "seed": 7})
    *lines, last = str(error.value).split("\n")
    assert lines == [
        "study: 5 problems in the protocol",
        "  study_id: is missing",
        "  title: 3 is not allowed: Input should be a valid string",
        "  matches: is missing",
        "  random_seed: is missing",
    ]
    assert last.startswith("  seed: unknown key; ")


def test_what_is_a_study_of_matches(study_of):
    assert is_match_study(protocol())
    assert not any(map(is_match_study, (None, [], "matches", {}, study_of([COIN]).model_dump())))


def test_equal_protocols_have_one_hash():
    study = parse_match_study(protocol())
    assert study.sha256 == parse_match_study(dict(reversed(protocol().items()))).sha256
    assert study.sha256 != parse_match_study(protocol(random_seed=8)).sha256
    assert study.intervals == {"ci_level": 0.95, "resamples": study.measures.resamples, "seed": 7}
    again = parse_match_study(study.model_dump(mode="json", exclude_defaults=True))
    assert (again, again.sha256) == (study, study.sha256)


# freezing


@pytest.mark.usefixtures("write")
def test_freezing_twice_changes_no_byte(project):
    study = parse_match_study(protocol())
    run = freeze_matches("elsewhere", study)
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.folder.rglob("*")}
    assert sorted(path.name for path in before) == ["matches.csv", "protocol.yaml"]
    content = (project / "params" / "matches.csv").read_bytes()
    assert run.frozen == {"protocol_sha256": study.sha256, "matches_sha256": hashlib.sha256(content).hexdigest()}
    again = freeze_matches("elsewhere", study)
    assert again == run == open_match_run("elsewhere")
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in run.folder.rglob("*")} == before
    assert run.matches().equals(read_matches(project / "params" / "matches.csv"))
    assert run.inputs == ["params/matches.csv"]
    assert (run.provenance, run.shows_provenance) == ("elsewhere", False)


def test_json_lines_keep_their_form(project):
    rows = [{"system_x": "a", "system_y": "b", "preference": "a"}, {"system_x": "a", "system_y": "b", "winner": "tie"}]
    (project / "params" / "m.jsonl").write_text(json.dumps(rows[0]) + "\n")
    run = freeze_matches("lines", parse_match_study(protocol(matches="params/m.jsonl")))
    assert run.path("matches.jsonl").is_file()
    assert run.matches()["preference"].tolist() == ["a"]


def test_experts_are_an_input():
    study = parse_match_study(protocol(ranking={"expert_ranks": {"path": "params/ranks.csv"}}))
    assert MatchRun("x", study, "x").inputs == ["params/matches.csv", "params/ranks.csv"]


def test_a_changed_file_is_drift(write):
    study = parse_match_study(protocol())
    run = freeze_matches("elsewhere", study)
    write(*LINES[:2])
    with pytest.raises(DriftError, match=r"^outputs/elsewhere was frozen with other matches; use another run name"):
        freeze_matches("elsewhere", study)
    assert len(run.matches()) == 3  # the frozen ones
    write(*LINES)
    freeze_matches("elsewhere", study)
    run.path("matches.csv").write_text("\n".join([HEADER, *LINES[:2]]))
    with pytest.raises(DriftError, match=r"outputs/elsewhere/matches\.csv is missing or was changed after freezing"):
        open_match_run("elsewhere").matches()
    run.path("matches.csv").unlink()
    with pytest.raises(DriftError, match="is missing or was changed"):
        run.matches()


@pytest.mark.usefixtures("write")
def test_a_frozen_run_needs_its_input_no_more(project):
    study = parse_match_study(protocol())
    run = freeze_matches("elsewhere", study)
    (project / "params" / "matches.csv").unlink()
    assert freeze_matches("elsewhere", study) == run
    with pytest.raises(DriftError, match="frozen with another protocol;"):
        freeze_matches("elsewhere", parse_match_study(protocol(random_seed=8)))
    run.path("matches.csv").write_text("\n".join([HEADER, LINES[0]]))
    with pytest.raises(DriftError, match="frozen with other matches;"):
        freeze_matches("elsewhere", study)


def test_another_protocol_is_drift(write):
    run = freeze_matches("elsewhere", parse_match_study(protocol()))
    other = parse_match_study(protocol(random_seed=8))
    with pytest.raises(DriftError, match="frozen with another protocol; use another run name, or remove the folder"):
        freeze_matches("elsewhere", other)
    write(*LINES[:2])
    with pytest.raises(DriftError, match="frozen with another protocol and other matches;"):
        freeze_matches("elsewhere", other)
    path = run.path("protocol.yaml")
    path.write_text(path.read_text().replace("random_seed: 7", "random_seed: 9"))
    with pytest.raises(DriftError, match=r"outputs/elsewhere/protocol\.yaml was changed after freezing; put it back"):
        open_match_run("elsewhere")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            ("j,i1,ALPHA,BETA,GAMMA",),
            "1 of 1 lines prefer neither of their two systems nor TIE; first 'GAMMA' in line 2",
        ),
        ((*LINES, "j,i4,ALPHA,ALPHA,TIE"), "1 of 4 lines compare a system with itself; first 'ALPHA' in line 5"),
        ((*LINES, LINES[0]), "line 5"),
        ((*LINES, "j,i4,ALPHA,BETA,"), "line 5"),
        ((*LINES, "j,i4,ALPHA"), "1 of 4 rows do not have the 5 fields of the header; first line 5 with 3"),
        ((), "0 matches"),
    ],
)
def test_bad_lines(write, project, lines, told):
    write(*lines)
    with pytest.raises(DataError, match=r"params/matches\.csv: ") as error:
        freeze_matches("elsewhere", parse_match_study(protocol()))
    assert told in str(error.value)
    assert not (project / "outputs" / "elsewhere").exists()


def test_no_file_and_no_name(project):
    with pytest.raises(DataError, match=r"params/matches\.csv: no such file"):
        freeze_matches("elsewhere", parse_match_study(protocol()))
    (project / "params" / "matches.txt").write_text(HEADER)
    with pytest.raises(DataError, match=r"\.csv or \.jsonl"):
        freeze_matches("elsewhere", parse_match_study(protocol(matches="params/matches.txt")))
    for call in (open_match_run, lambda name: freeze_matches(name, parse_match_study(protocol()))):
        with pytest.raises(ProtocolError, match=r"run is '\.\./x'"):
            call("../x")


# beside other runs


@pytest.mark.usefixtures("write")
def test_open_run_says_what_it_is():
    freeze_matches("elsewhere", parse_match_study(protocol()))
    told = r"run elsewhere holds matches that were judged elsewhere; only stages 06 and 09 can use them"
    with pytest.raises(RunError, match=told):
        open_run("elsewhere")


@pytest.mark.usefixtures("write")
def test_a_run_of_items_is_no_run_of_matches(make_run):
    run = make_run([COIN])
    with pytest.raises(RunError, match="outputs/small is no frozen run of matches"):
        open_match_run("small")
    with pytest.raises(DriftError, match="outputs/small was frozen with a study that judges items; use another run"):
        freeze_matches("small", parse_match_study(protocol()))
    assert open_run("small") == run
    with pytest.raises(RunError, match="outputs/none is no frozen run of matches"):
        open_match_run("none")


@pytest.mark.usefixtures("write")
def test_the_study_that_a_notebook_names(project, study_of):
    assert match_study_of("elsewhere", {}) is None
    assert match_study_of("elsewhere", study_of([COIN]).model_dump(mode="json")) is None
    study = parse_match_study(protocol())
    assert match_study_of("elsewhere", protocol()) == study
    freeze_matches("elsewhere", study)
    assert match_study_of("elsewhere", {}) == study
    params(project, random_seed=8)
    assert match_study_of("elsewhere", {}) == parse_match_study(protocol(random_seed=8))
    params(project, seed=8)
    with pytest.raises(ProtocolError, match=r"^params/elsewhere\.yaml: 1 problem in the protocol\n  seed: unknown"):
        match_study_of("elsewhere", {})
    (project / "params" / "elsewhere.yaml").write_text("run: elsewhere\n")
    assert match_study_of("elsewhere", {}) is None


def test_a_broken_protocol_is_no_run_of_matches(project):
    for text in ("[", "- a", "study: 3", "", "run: x"):
        path = project / "outputs" / "x" / "protocol.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text or "\n\n# nothing")
        with pytest.raises(RunError, match="outputs/x is no frozen run of matches"):
            open_match_run("x")


# the pipeline


@pytest.fixture
def steps(monkeypatch):
    """What the pipeline executes, without kernels: the stages with their parameters."""
    done = []
    monkeypatch.setattr(pipeline, "execute", lambda stage, name, study: done.append((stage.number, name, study)))
    monkeypatch.setattr(pipeline, "publish", lambda run: run.path("report", "index.html"))
    return done


@pytest.mark.usefixtures("write")
def test_of_one_order_only_the_ranking_is_run(project, steps):
    params(project, ranking={"tied": 9.0})
    path, said = project / "params" / "elsewhere.yaml", []
    index = pipeline.run_study(path, changes=["random_seed=8"], say=said.append)
    assert index == project / "outputs" / "elsewhere" / "report" / "index.html"
    ((number, name, study),) = steps
    assert (number, name) == ("09", "elsewhere")
    assert said == [
        "06  left out: the matches hold one order only (n = 0 of 3 comparisons in both orders)",
        "09  Who is best, by how much, and do experts agree?",
    ]
    with pytest.raises(RunError, match=r"stage 06 cannot be answered: the matches hold one order only \(n = 0 of 3"):
        pipeline.run_study(path, first="06", last="06", changes=["random_seed=8"], say=said.append)
    assert parse_match_study(study) == open_match_run("elsewhere").study
    assert (study["random_seed"], study["ranking"]) == (8, {"tied": 9.0})
    assert check_manifest(open_match_run("elsewhere")) == []
    with pytest.raises(DriftError, match="frozen with another protocol"):
        pipeline.run_study(path, say=said.append)
    pipeline.run_study(path, changes=["run=seven"], say=said.append)
    assert open_match_run("seven").study.random_seed == 7
    assert [step[:2] for step in steps] == [("09", "elsewhere"), ("09", "seven")]


@pytest.mark.usefixtures("write")
def test_mistakes_are_told_before_anything_is_run(project, steps):
    params(project, seed=3)
    with pytest.raises(ProtocolError, match=r"^params/elsewhere\.yaml: 1 problem in the protocol\n  seed: unknown key"):
        pipeline.run_study(project / "params" / "elsewhere.yaml")
    params(project, matches="params/none.csv")
    with pytest.raises(DataError, match=r"params/none\.csv: no such file"):
        pipeline.run_study(project / "params" / "elsewhere.yaml")
    assert steps == []


# the manifest


@pytest.mark.usefixtures("write")
def test_the_manifest_of_a_run_of_matches(project):
    run = freeze_matches("elsewhere", parse_match_study(protocol()))
    version = {"study_id": "s", "protocol_sha256": "p", "items_sha256": "i", "rubric_version": "r"}
    version |= {"prompt_version": "v", "systems": ("ALPHA", "BETA", "GAMMA"), "run": "elsewhere"}

    def add(matches, **changes):
        with MatchLog(run.path("matches.sqlite")) as log:
            return log.add(matches, **version | changes)

    add(run.matches())
    written = json.loads(write_manifest(run).read_text())
    assert sorted(written["outputs"]) == ["matches.csv", "matches.sqlite", "protocol.yaml"]
    content = (project / "params" / "matches.csv").read_bytes()
    assert written["inputs"] == {"params/matches.csv": hashlib.sha256(content).hexdigest()}
    assert (written["study_id"], written["human_labels"]) == ("elsewhere", "elsewhere")
    add(run.matches())  # the same ones: another time and another row of additions, nothing that the log says
    assert check_manifest(run) == []
    run.path("matches.sqlite").unlink()
    add(run.matches().iloc[::-1])  # made anew later, in another order
    assert check_manifest(run) == []
    add(run.matches().iloc[:1].assign(item_id="other"))
    assert check_manifest(run) == ["matches.sqlite: changed since the manifest was written"]


@pytest.mark.usefixtures("write")
def test_a_match_log_that_cannot_be_read_is_told():
    run = freeze_matches("elsewhere", parse_match_study(protocol()))
    run.path("matches.sqlite").write_bytes(b"no SQLite file at all, but long enough to be looked at" * 10)
    with pytest.raises(LedgerError, match=r"outputs/elsewhere/matches\.sqlite: "):
        write_manifest(run)


def test_tables_and_figures_of_a_run(project):
    import matplotlib.pyplot as plt
    import pandas as pd

    run = MatchRun("x", MatchStudy(**protocol()), project / "outputs" / "x")
    table = run.save_table(pd.DataFrame({"system": ["007"], "provenance": ["human"], "value": [0.1]}, index=[5]), "t")
    assert list(table.columns) == ["system", "value"]
    assert run.table("t")["system"].tolist() == ["007"]
    with pytest.raises(RunError, match=r"outputs/x/tables/none\.csv is missing: run the stage that writes it first"):
        run.table("none")
    contents = []
    for _ in range(2):
        figure, axes = plt.subplots()
        axes.plot([1, 2])
        run.save_figure(figure, "f")
        plt.close(figure)
        contents.append(run.path("figures", "f.png").read_bytes())
    assert contents[0] == contents[1]
