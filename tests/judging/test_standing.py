"""The standing leaderboard's log: what a run adds, and what of it may be ranked together with the run's own matches."""

from __future__ import annotations

import asyncio

import pytest

from judgelab.errors import LedgerError
from judgelab.judging.match_log import Added, MatchLog
from judgelab.judging.ranking_data import open_ranking
from judgelab.judging.runner import run_passes
from judgelab.judging.standing import log_path, update_standing

COIN = {"name": "coin", "kind": "control", "rule": "coin"}
SIM = {"name": "sim", "kind": "simulated", "error_rate": 0.3}
PAIRS = ("pairwise_original", "pairwise_swapped")
BOARD = {"leaderboard": "board"}


@pytest.fixture
def ranked(make_run):
    """Freeze, judge and open a run of two systems: 8 matches a judge."""

    def make(name="small", items=4, judges=(SIM, COIN), **changes):
        asyncio.run(run_passes(make_run([*judges], items, name=name, **changes), PAIRS))
        return open_ranking(name)

    return make


def elsewhere(project, name, *lines, **changes):
    (project / "params" / f"{name}.csv").write_text("\n".join(["judge,item_id,system_x,system_y,preference", *lines]))
    study = {"study_id": name, "matches": f"params/{name}.csv", "random_seed": 7}
    return open_ranking(name, study | changes)


def test_a_run_has_a_log_of_its_own(ranked, project):
    data = ranked()
    assert log_path(data) == project / "outputs" / "small" / "matches.sqlite"
    found = update_standing(data)
    assert (found.path, found.added) == ("outputs/small/matches.sqlite", Added(16, 0))
    assert found.notes == ()
    assert set(found.matches["judge"]) == {"sim"}  # the panel; the log holds the controls too
    assert len(found.matches) == 8
    assert found.versions["matches"].tolist() == [16]
    assert found.versions["judges"].tolist() == [("coin", "sim")]
    assert found.counts["matches"].tolist() == [16, 16]
    assert not {"first_seen", "last_added", "added_at"} & {*found.versions, *found.matches, *found.counts}
    assert found.told() == [
        "outputs/small/matches.sqlite holds 16 matches of 1 version of protocol and items, 16 of them by this run; 8 "
        "of the panel's are ranked together here."
    ]


def test_what_is_ranked_is_what_was_judged(ranked):
    data = ranked()
    columns = ["judge", "item_id", "category", "pass", "system_x", "system_y", "first", "preference", "reason"]
    found = update_standing(data).matches
    assert found[columns].astype(str).to_numpy().tolist() == data.matches[columns].astype(str).to_numpy().tolist()
    row = found.iloc[0]
    assert [row["protocol_sha256"], row["items_sha256"]] == [data.study.sha256, data.run.frozen["items_sha256"]]
    assert [row["rubric_version"], row["prompt_version"]] == ["r1", data.study.judge_prompt_version]
    assert [row["run"], row["source"], row["study_id"]] == ["small", "run", "small"]


def test_adding_twice_changes_nothing(ranked):
    data = ranked()
    before = update_standing(data)
    again = update_standing(data)
    assert again.added == Added(0, 16)
    for name in ("versions", "counts", "matches"):
        assert getattr(again, name).equals(getattr(before, name))
    assert again.told() == before.told()


@pytest.mark.usefixtures("quick")
def test_a_verdict_may_come_later(make_run, server):
    server.script = lambda body, number: server.Answer("down", 500)
    run = make_run([server.judge()])
    for added in (Added(8, 0), Added(0, 0, replaced=8)):
        asyncio.run(run_passes(run, PAIRS))
        found = update_standing(open_ranking("small"))
        assert found.added == added
        assert found.matches["preference"].notna().all() == bool(added.replaced)
        server.script = lambda body, number: server.good(body)
    assert ", 8 of them by this run; 8 of the panel's are ranked together here." in found.told()[0]


def test_a_leaderboard_of_two_runs_on_the_same_items(ranked, project):
    """Another protocol, the same items and rubric: ranked together, and said."""
    first = ranked("one", ranking=BOARD)
    second = ranked("two", ranking=BOARD, title="another protocol")
    assert first.study.sha256 != second.study.sha256
    assert log_path(first) == log_path(second) == project / "outputs" / "leaderboards" / "board.sqlite"
    assert (len(update_standing(first).matches), update_standing(first).notes) == (8, ())
    found = update_standing(second)
    assert (found.added, len(found.matches), len(found.versions)) == (Added(16, 0), 16, 2)
    assert set(found.matches["run"]) == {"one", "two"}
    assert found.notes[0] == "16 matches of 2 versions are mixed (sets of items: 1, protocols: 2, rubrics: 1)."
    assert len(found.notes) == 3
    assert found.told()[0] == (
        "outputs/leaderboards/board.sqlite holds 32 matches of 2 versions of protocol and items, 16 of them by this "
        "run; 16 of the panel's are ranked together here."
    )
    assert found.told()[1:] == list(found.notes)
    assert all(line.endswith(".") and not line.endswith("..") for line in found.told())
    assert len(update_standing(first).matches) == 16


@pytest.mark.parametrize("changes", [{"items": 3}, {"rubric_version": "r2"}, {"items": 3, "rubric_version": "r2"}])
def test_other_items_or_another_rubric_are_left_out(ranked, changes):
    """Also where the protocol is the very same and only the file of items has changed."""
    first = update_standing(ranked("one", ranking=BOARD))
    data = ranked("two", ranking=BOARD, **changes)
    found = update_standing(data)
    assert set(found.matches["run"]) == {"two"}
    assert len(found.matches) == 2 * len(data.run.items())
    assert found.notes == ("16 matches of 1 other version are left out: they are on other items or by another rubric",)
    assert found.told()[-1] == f"{found.notes[0]}."
    again = update_standing(open_ranking("one"))
    assert again.matches.equals(first.matches)
    assert again.notes[0].startswith(f"{4 * len(data.run.items())} matches of 1 other version are left out")


def test_three_versions_of_which_two_go_together(ranked):
    for name, changes in (("one", {}), ("other", {"items": 2}), ("third", {"rubric_version": "r2"})):
        update_standing(ranked(name, ranking=BOARD, **changes))
    found = update_standing(ranked("two", ranking=BOARD, title="x"))
    assert set(found.matches["run"]) == {"one", "two"}
    assert found.notes[0].startswith("16 matches of 2 versions are mixed")
    assert found.notes[-1].startswith("24 matches of 2 other versions are left out")


def test_only_the_panels_matches_are_ranked(ranked):
    update_standing(ranked("one", ranking=BOARD, judges=(COIN, SIM, SIM | {"name": "third", "seed": 4})))
    found = update_standing(ranked("two", ranking=BOARD | {"judges": ["third"]}, judges=(SIM, SIM | {"name": "third"})))
    assert set(found.matches["judge"]) == {"third"}
    assert len(found.matches) == 16


def test_matches_from_elsewhere(project):
    data = elsewhere(project, "x", "j,i1,ALPHA,BETA,ALPHA", "j,i2,ALPHA,GAMMA,TIE")
    found = update_standing(data)
    assert (found.path, found.added, len(found.matches)) == ("outputs/x/matches.sqlite", Added(2, 0), 2)
    assert found.versions[["rubric_version", "prompt_version"]].to_numpy().tolist() == [["not stated"] * 2]
    assert found.versions["items_sha256"].tolist() == [data.run.frozen["matches_sha256"]]
    assert set(found.matches["source"]) == {"import"}
    assert update_standing(data).added == Added(0, 2)


def test_a_longer_file_is_another_version(project):
    lines = ("j,i1,ALPHA,BETA,ALPHA", "j,i2,ALPHA,GAMMA,TIE")
    update_standing(elsewhere(project, "x", *lines[:1], ranking=BOARD))
    found = update_standing(elsewhere(project, "y", *lines, ranking=BOARD))
    assert len(found.matches) == 2
    assert found.notes == ("1 matches of 1 other version are left out: they are on other items or by another rubric",)


def test_another_preference_is_refused(ranked):
    data = ranked()
    update_standing(data)
    turned = data.every.assign(preference="TIE", reason="")
    with pytest.raises(LedgerError, match=r"outputs/small/matches\.sqlite: \d+ of 16 matches are there with another"):
        update_standing(type(data)(data.run, turned, data.panel, data.controls, data.ranks))
    with MatchLog(log_path(data), read_only=True) as log:
        assert len(log.matches()) == 16
