"""LLMFAO as a study of matches: counts of the publication, repeats, parameters, and what is written twice."""

from __future__ import annotations

import hashlib

import pytest
import yaml

from judgelab.errors import DataError
from judgelab.judging.match_files import read_matches
from judgelab.judging.match_log import Added
from judgelab.judging.ranking_data import open_ranking
from judgelab.judging.standing import update_standing
from judgelab.study.match_study import is_match_study, parse_match_study
from judgelab.study.sources import IMPORTERS, import_llmfao, read_llmfao
from judgelab.study.tables import read_csv

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def folder(shared):
    return shared / "data" / "llmfao"


@pytest.fixture(scope="module")
def root(folder, tmp_path_factory):
    """A project into which LLMFAO was imported once."""
    path = tmp_path_factory.mktemp("llmfao")
    (path / "params").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGELAB_ROOT", str(path))
        patch.setenv("JUDGELAB_OUTPUTS", str(path / "outputs"))
        params, notes = import_llmfao(folder, "llmfao")
    return path, params, notes


@pytest.fixture
def imported(root, monkeypatch):
    """That project as the one that is open: its folder, its parameters and the notes."""
    monkeypatch.setenv("JUDGELAB_ROOT", str(root[0]))
    monkeypatch.setenv("JUDGELAB_OUTPUTS", str(root[0] / "outputs"))
    return root


@pytest.fixture(scope="module")
def matches(root):
    return read_matches(root[0] / "outputs" / "llmfao" / "source" / "matches.csv")


def test_every_row_is_read_back(matches, folder):
    data = read_llmfao(folder)
    assert len(matches) == len(data.crowd) + len(data.gpt4) + len(data.gpt3)
    for judge, read in (("people", data.crowd), ("gpt-4", data.gpt4), ("gpt-3.5", data.gpt3)):
        own = matches[matches["judge"] == judge].reset_index(drop=True)
        for name in ("item_id", "system_x", "system_y", "preference"):
            assert own[name].tolist() == read[name].tolist()  # in the order of the file
        assert own["category"].tolist() == read["prompt"].tolist()
        assert own["first"].tolist() == read["system_x"].tolist()
    assert matches["preference"].notna().all()
    assert matches.attrs["unused"] == ()


def test_the_counts_of_the_publication(matches):
    people = matches[matches["judge"] == "people"]
    assert len(people) == 8931
    assert len({*people["system_x"], *people["system_y"]}) == 59
    assert len({*matches["system_x"], *matches["system_y"]}) == 59
    assert matches["category"].nunique() == 13
    assert matches["judge"].unique().tolist() == ["people", "gpt-4", "gpt-3.5"]


def test_repeats_number_the_votes_on_one_pair_of_answers(matches):
    """Several workers voted on one pair; a judge's row is its own. With the repeat every row has a key of its own."""
    for judge, own in matches.groupby("judge"):
        for _, votes in own.groupby("item_id"):
            assert votes["repeat"].tolist() == list(range(len(votes)))
        assert (own["repeat"].max() > 0) == (judge == "people")
    assert not matches.duplicated(["judge", "item_id", "repeat"]).any()
    pairs = matches.groupby("item_id")[["system_x", "system_y", "category"]].nunique()
    assert (pairs == 1).all(axis=None)


def test_the_parameters_are_a_study_of_matches(imported):
    _, path, _ = imported
    document = yaml.safe_load(path.read_text())
    assert document["run"] == "llmfao"
    assert is_match_study(document["study"])
    study = parse_match_study(document["study"])
    assert (study.study_id, study.matches) == ("llmfao", "outputs/llmfao/source/matches.csv")
    assert (study.ranking.judges, study.ranking.elo.k, study.ranking.group_by) == (("people",), 4.0, "category")
    assert path.read_text().startswith("# LLMFAO (CC BY 4.0)")


def test_the_notes_say_what_was_read_and_written(imported):
    _, path, notes = imported
    assert path.name == "llmfao.yaml"
    assert notes[0].startswith("people: 8931 matches of ")
    assert notes[1].startswith("gpt-4: ")
    assert "workers" not in notes[1]
    assert notes[-3:] == [
        "written: matches.csv in outputs/llmfao/source",
        "the answers themselves are not in these files: the stages that need them cannot run",
        "written: params/llmfao.yaml",
    ]


def test_importing_again_leaves_the_parameters_alone(imported, folder):
    root, path, _ = imported
    source = root / "outputs" / "llmfao" / "source" / "matches.csv"
    before = hashlib.sha256(source.read_bytes()).hexdigest()
    written = path.read_bytes()
    path.write_bytes(written + b"# mine\n")
    try:
        again, notes = import_llmfao(folder, "llmfao")
        assert again.read_bytes() == written + b"# mine\n"
    finally:
        path.write_bytes(written)
    assert notes[-1] == "params/llmfao.yaml is there already and was left as it is"
    assert hashlib.sha256(source.read_bytes()).hexdigest() == before


def test_another_run_has_files_of_its_own(imported, folder):
    params, _ = IMPORTERS["llmfao"](folder, "again")
    assert yaml.safe_load(params.read_text())["study"]["matches"] == "outputs/again/source/matches.csv"
    paths = [imported[0] / "outputs" / run / "source" / "matches.csv" for run in ("llmfao", "again")]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_the_ranking_opens(imported, matches):
    data = open_ranking("llmfao", {})
    assert (data.judges, data.panel) == (("people", "gpt-4", "gpt-3.5"), ("people",))
    assert len(data.every) == len(matches)
    assert len(data.matches) == 8931
    assert data.presentations == 1
    counts = data.counts().set_index("judge")
    assert counts["systems"].tolist() == [59, 59, 59]
    assert counts["unusable"].tolist() == [0, 0, 0]
    assert (counts["decided"] + counts["ties"]).tolist() == counts["matches"].tolist()


def test_the_log_takes_every_vote_once(imported, matches):
    data = open_ranking("llmfao", {})
    found = update_standing(data)
    assert (found.added, len(found.matches)) == (Added(len(matches), 0), 8931)
    assert found.matches["preference"].tolist() == data.matches["preference"].tolist()  # in the order of the file
    assert update_standing(data).added == Added(0, len(matches))


def test_a_folder_without_the_files_writes_nothing(project, tmp_path):
    with pytest.raises(DataError):
        import_llmfao(tmp_path, "empty")
    assert not project.outputs.exists()
    assert not (project.root / "params" / "empty.yaml").exists()


def test_the_columns_that_are_written(imported):
    columns = read_csv(imported[0] / "outputs" / "llmfao" / "source" / "matches.csv").columns
    assert columns == ("judge", "item_id", "category", "system_x", "system_y", "first", "repeat", "preference")
