"""Freezing a study, opening it again, and refusing everything that differs."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
import yaml

from judgelab.errors import DataError, DriftError, ProtocolError, RunError
from judgelab.study.freeze import check_drift, freeze, load_study, open_run


@pytest.fixture
def ready(project):
    """A project whose ten items and labels can be frozen."""
    project.write_items(10)
    project.label_all(10)
    return project


def bytes_of(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def write_params(project, run="small", **changes):
    path = project.root / "params" / f"{run}.yaml"
    path.write_text(yaml.safe_dump({"run": run, "study": project.values(**changes)}))
    return path


def test_freezing_writes_the_study_and_its_hashes(ready):
    run = freeze("small", ready.study())
    assert sorted(bytes_of(run.folder)) == ["excluded_items.csv", "human_labels.csv", "items.jsonl", "protocol.yaml"]
    document = yaml.safe_load(run.path("protocol.yaml").read_text())
    assert list(document) == ["run", "study", "frozen"]
    assert document["frozen"] == {
        "protocol_sha256": ready.study().sha256,
        "items_sha256": hashlib.sha256(run.path("items.jsonl").read_bytes()).hexdigest(),
        "human_labels_sha256": hashlib.sha256(run.path("human_labels.csv").read_bytes()).hexdigest(),
    }
    assert run.path("human_labels.csv").read_text().splitlines()[:2] == [
        "item_id,reviewer_id,alpha_score,beta_score,preference,is_adjudicated,provenance",
        "i00,r01,4,3.5,ALPHA,false,human",
    ]
    first = json.loads(run.path("items.jsonl").read_text().splitlines()[0])
    assert first["first"][0]["first"] in ("ALPHA", "BETA")


def test_freezing_twice_changes_no_byte(ready):
    before = bytes_of(freeze("small", ready.study()).folder)
    assert bytes_of(freeze("small", ready.study()).folder) == before
    assert bytes_of(freeze("small", ready.values()).folder) == before


def test_opening_brings_back_what_was_frozen(ready):
    frozen = freeze("small", ready.study(split={"development_share": 0.2}))
    opened = open_run("small")
    assert opened.study == frozen.study
    assert opened.frozen == frozen.frozen
    assert opened.items() == frozen.items()
    assert len(opened.items()) == 10
    assert len(opened.evaluation_items()) == len(opened.comparisons()) == 8
    assert len(opened.comparisons(split=None)) == 10
    assert len(opened.labels()) == 3 * 8
    assert len(opened.labels(split=None)) == 3 * 10
    assert opened.reference()["human"].tolist() == ["ALPHA"] * 8
    assert opened.excluded_items().empty


def test_opening_does_not_need_the_source_files(ready):
    freeze("small", ready.study())
    shutil.rmtree(ready.items_path.parent)
    assert len(open_run("small").labels()) == 30


def test_a_run_that_is_not_frozen(project):
    with pytest.raises(RunError, match=r"outputs/small is not frozen yet: run stage 01 first \(`judgelab run"):
        open_run("small")


def test_another_protocol_is_refused_with_its_keys(ready):
    freeze("small", ready.study())
    judges = [
        {"name": "coin", "kind": "control", "rule": "coin", "seed": 1},
        {"name": "new", "kind": "control", "rule": "last"},
    ]
    other = ready.values(direct_tie_margin=0.5, judges=judges, systems={"ALPHA": {"family": "f"}, "BETA": {}})
    with pytest.raises(DriftError) as caught:
        open_run("small", other)
    told = str(caught.value)
    assert told.startswith("outputs/small was frozen with another protocol; 4 keys differ: ")
    assert 'systems.ALPHA.family: frozen null, given "f"; ' in told
    assert "direct_tie_margin: frozen 0.25, given 0.5; " in told
    assert "judges.coin.seed: frozen 0, given 1; " in told
    assert 'judges.new: frozen nothing, given {"name": "new"' in told
    assert told.endswith("use another run name, or remove the folder outputs/small if its results may go")


def test_stage_01_refuses_another_protocol_too(ready):
    before = bytes_of(freeze("small", ready.study()).folder)
    other = ready.study(random_seed=8)
    with pytest.raises(DriftError, match="1 key differs: random_seed: frozen 7, given 8; "):
        freeze("small", other)
    with pytest.raises(DriftError, match="random_seed"):
        check_drift("small", other)
    assert bytes_of(ready.outputs / "small") == before


def test_check_drift_lets_an_unfrozen_run_pass(ready):
    assert check_drift("small", ready.study()) is None


def test_another_order_of_systems_is_another_protocol(ready):
    freeze("small", ready.study())
    with pytest.raises(DriftError, match=r"1 key differs: systems \(order\): frozen \[.ALPHA., .BETA.\]"):
        open_run("small", ready.values(systems={"BETA": {}, "ALPHA": {}}))


def test_changed_items_are_refused_with_their_ids(ready):
    freeze("small", ready.study())
    changed = [ready.item(number) for number in range(1, 11)]
    changed[3] = ready.item(4, task="Another question?")
    ready.write_items(changed)
    ready.write_labels(ready.labels_path.read_text().replace("i00", "i10"))
    with pytest.raises(DriftError) as caught:
        freeze("small", ready.study())
    assert (
        "outputs/small was frozen with other items; 3 of 11 items differ (1 changed, 1 added, 1 gone): i04, i10, i00;"
        in str(caught.value)
    )


def test_changed_labels_are_refused(ready):
    freeze("small", ready.study())
    ready.write_labels(ready.labels_path.read_text().replace("i07,r02,4.0,3.5,ALPHA", "i07,r02,4.0,3.5,TIE"))
    with pytest.raises(DriftError, match=r"other human labels; 1 of 10 items with labels differ \(1 changed.*: i07;"):
        freeze("small", ready.study())


def test_the_layout_of_the_source_is_no_drift(ready):
    freeze("small", ready.study())
    ready.items_path.write_bytes(b"\xef\xbb\xbf" + ready.items_path.read_bytes().replace(b"\n", b"\r\n"))
    assert len(freeze("small", ready.study()).items()) == 10


def test_a_protocol_edited_by_hand_is_refused(ready):
    path = freeze("small", ready.study()).path("protocol.yaml")
    path.write_text(path.read_text().replace("direct_tie_margin: 0.25", "direct_tie_margin: 0.5"))
    with pytest.raises(DriftError, match=r"outputs/small/protocol\.yaml was changed after freezing"):
        open_run("small")
    with pytest.raises(DriftError, match="was changed after freezing"):
        freeze("small", ready.study())


@pytest.mark.parametrize("text", ["{", "just text", "run: small\n", "study: {}\nfrozen: {protocol_sha256: x}\n"])
def test_a_damaged_protocol_is_refused(ready, text):
    freeze("small", ready.study()).path("protocol.yaml").write_text(text)
    with pytest.raises(DriftError, match=r"protocol\.yaml was changed after freezing"):
        open_run("small")


@pytest.mark.parametrize(("name", "read"), [("items.jsonl", "items"), ("human_labels.csv", "labels")])
def test_frozen_files_edited_by_hand_are_refused(ready, name, read):
    run = freeze("small", ready.study())
    run.path(name).write_text(run.path(name).read_text().replace("i03", "x03"))
    with pytest.raises(DriftError, match=rf"outputs/small/{name} was changed after freezing"):
        getattr(open_run("small"), read)()


def test_a_lost_file_is_written_again(ready):
    run = freeze("small", ready.study())
    before = run.path("items.jsonl").read_bytes()
    run.path("items.jsonl").unlink()
    with pytest.raises(RunError, match=r"outputs/small/items\.jsonl is missing: run stage 01 again"):
        open_run("small").items()
    assert freeze("small", ready.study()).path("items.jsonl").read_bytes() == before


def test_nothing_is_frozen_when_data_are_bad(ready):
    ready.write_labels("item_id\n")
    with pytest.raises(DataError):
        freeze("small", ready.study())
    assert not (ready.outputs / "small").exists()


def test_a_study_without_labels(project):
    project.write_items(4)
    run = freeze("small", project.study(human_labels=None))
    assert run.frozen["human_labels_sha256"] is None
    assert not run.path("human_labels.csv").exists()
    assert run.provenance == "none"
    assert run.labels().empty
    assert run.reference()["rule"].tolist() == ["unlabelled"] * 4


# -- the two parameters of a notebook ------------------------------------------------------------------------------


def test_an_empty_study_means_the_parameter_file(ready):
    write_params(ready)
    assert load_study("small", {}) == ready.study()
    freeze("small", load_study("small", {}))
    assert open_run("small", {}).study == ready.study()
    write_params(ready, random_seed=8)
    with pytest.raises(DriftError, match="random_seed"):
        open_run("small", {})


def test_an_empty_study_without_parameter_file_opens_what_is_frozen(ready):
    freeze("small", ready.study())
    assert open_run("small", {}).study == ready.study()
    with pytest.raises(ProtocolError, match=r"params/small\.yaml: no such file"):
        load_study("small", {})


def test_a_given_study_is_taken_before_the_file(ready):
    write_params(ready, random_seed=8)
    assert load_study("small", ready.values()).random_seed == 7


def test_a_parameter_file_of_another_run(ready):
    write_params(ready).rename(ready.root / "params" / "other.yaml")
    with pytest.raises(ProtocolError, match=r"params/other\.yaml: run is 'small', the file is for the run 'other'"):
        load_study("other", {})


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "ä", "x" * 81])
def test_run_names_stay_inside_outputs(ready, name):
    for use in (freeze, open_run):
        with pytest.raises(ProtocolError, match="allowed are up to 80 letters"):
            use(name, ready.study())


def test_an_unknown_key_is_named_with_its_neighbour(ready):
    with pytest.raises(ProtocolError, match=r"direct_tie_margn: unknown key; did you mean direct_tie_margin\?"):
        freeze("small", ready.values(direct_tie_margn=0.5))
    assert not ready.outputs.exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"run: x\nstudy: {a: 2024-13-45}\n", "not valid YAML"),
        (b"run: [\n", "not valid YAML"),
        (b"- 1\n", "a mapping with the keys run and study is needed"),
        (b"runs: x\n", "unknown key runs; allowed are run, study"),
        ("run: é\n".encode("latin-1"), "not UTF-8"),
        (b"", "a mapping with the keys run and study is needed"),
    ],
)
def test_a_broken_parameter_file(project, text, told):
    (project.root / "params" / "small.yaml").write_bytes(text)
    with pytest.raises(ProtocolError, match=rf"params/small\.yaml: {told}"):
        load_study("small", {})
