"""All that a ranking reads, of a run that was judged here and of matches from elsewhere; and experts' ranks."""

from __future__ import annotations

import asyncio

import pandas as pd
import pytest
import yaml

from judgelab.errors import DataError, DriftError, ProtocolError, RunError
from judgelab.judging.match_run import MatchRun
from judgelab.judging.matches import RANKING_COLUMNS, matches_of
from judgelab.judging.ranking_data import RANK_COLUMNS, ask_listwise, open_ranking, read_expert_ranks
from judgelab.judging.runner import run_passes
from judgelab.study.freeze import close_labels
from judgelab.study.labels import COLUMNS
from judgelab.study.run import Run

COIN = {"name": "coin", "kind": "control", "rule": "coin"}
SIM = {"name": "sim", "kind": "simulated", "error_rate": 0.4}
OTHER = {"name": "other", "kind": "simulated", "seed": 5}
THREE = ("ALPHA", "BETA", "GAMMA")
PAIRS = ("pairwise_original", "pairwise_swapped")
HEADER = "judge,item_id,category,system_x,system_y,preference,reason"
LINES = (
    "k,i1,c,ALPHA,BETA,ALPHA,", "k,i2,c,ALPHA,BETA,TIE,", "j,i1,c,ALPHA,GAMMA,,timeout", "j,i2,d,BETA,GAMMA,GAMMA,",
    "j,i3,d,BETA,GAMMA,,timeout", "j,i4,d,BETA,ALPHA,,refusal",
)  # fmt: skip


def protocol(**ranking):
    return {"study_id": "elsewhere", "matches": "params/matches.csv", "random_seed": 7, "ranking": ranking}


@pytest.fixture
def elsewhere(project):
    """Open the ranking of six matches by two judges."""
    (project / "params" / "matches.csv").write_text("\n".join([HEADER, *LINES]))
    return lambda name="elsewhere", **ranking: open_ranking(name, protocol(**ranking))


@pytest.fixture
def here(make_run, raw_item):
    """Freeze and judge a run of three systems."""

    def make(asked=(SIM, COIN, OTHER), items=3, name="small", **ranking):
        rows = [
            raw_item(number, answers={each: f"{each.lower()} {number}" for each in THREE}) for number in range(items)
        ]
        run = make_run([*asked], rows, name=name, systems={each: {} for each in THREE}, ranking=ranking)
        asyncio.run(run_passes(run, PAIRS))
        return run

    return make


# opening


def test_ranks_that_reviewers_gave_in_the_study(make_run, raw_item):
    """Closed with the labels, they are the experts' ranks."""
    rows = [raw_item(0, answers={each: each.lower() for each in THREE})]
    run = make_run(
        [COIN],
        rows,
        systems={each: {} for each in THREE},
        human_labels={"provenance": "simulated"},
        human_review={"labelling": {"mode": "ranking"}},
    )
    asyncio.run(run_passes(run, PAIRS))
    open_ = open_ranking(run.name)
    assert (len(open_.ranks), open_.expert_provenance) == (0, "none")
    item_id = run.items()[0].item_id
    nan = float("nan")
    labels = pd.DataFrame(
        [(item_id, "anna", "ALPHA", other, "ALPHA", nan, nan, False) for other in ("BETA", "GAMMA")], columns=COLUMNS
    )
    ranks = pd.DataFrame({"item_id": item_id, "reviewer_id": "anna", "system": THREE, "rank": [1, 2, 2]})
    close_labels(run, labels, ranks)
    closed = open_ranking(run.name)
    assert closed.ranks["rank"].tolist() == [1, 2, 2]
    assert closed.expert_provenance == "simulated"


def test_a_run_that_was_judged_here(here):
    run = here()
    data = open_ranking("small")
    assert isinstance(data.run, Run)
    assert (data.study, data.rules) == (run.study, run.study.ranking)
    assert (data.panel, data.controls, data.judges) == (("sim", "other"), ("coin",), ("sim", "coin", "other"))
    assert data.every.equals(matches_of(run))
    assert data.matches.equals(matches_of(run, ["sim", "other"]))
    assert data.for_spot_check().equals(data.matches)
    assert (data.presentations, data.expert_provenance, len(data.ranks)) == (2, "none", 0)
    assert list(data.ranks) == RANK_COLUMNS
    counts = data.counts().set_index("judge")
    assert counts["on the panel"].tolist() == ["yes", "", "yes"]
    assert counts[["matches", "systems", "items"]].drop_duplicates().to_numpy().tolist() == [[18, 3, 3]]
    assert (counts["decided"] + counts["ties"] + counts["unusable"]).tolist() == [18, 18, 18]
    assert counts.loc["sim", "reasons"] == f"no_json: {counts.loc['sim', 'unusable']}"
    for study in (run.study, run.study.model_dump(mode="json"), {}):
        assert open_ranking("small", study).every.equals(data.every)


def test_the_panel_is_who_the_protocol_names(here):
    here(judges=["coin", "sim"])
    assert open_ranking("small").panel == ("coin", "sim")
    here([COIN], name="controls")
    assert open_ranking("controls").panel == ("coin",)  # there is nobody else


def test_matches_from_elsewhere(elsewhere, project):
    data = elsewhere()
    assert isinstance(data.run, MatchRun)
    assert (data.panel, data.controls, data.judges, data.presentations) == (("k", "j"), (), ("k", "j"), 1)
    assert len(data.matches) == len(data.every) == 6
    assert len(data.for_spot_check()) == 0
    assert data.counts().to_numpy().tolist() == [
        ["k", "yes", 2, 2, 2, 1, 1, 0, ""], ["j", "yes", 4, 3, 4, 1, 0, 3, "timeout: 2, refusal: 1"],
    ]  # fmt: skip
    assert (project / "outputs" / "elsewhere" / "protocol.yaml").is_file()  # frozen on the way
    assert open_ranking("elsewhere").every.equals(data.every)
    assert elsewhere("one", judges=["j"]).matches["judge"].unique().tolist() == ["j"]


def test_a_parameter_file_is_enough(elsewhere, project):
    (project / "params" / "named.yaml").write_text(yaml.safe_dump({"run": "named", "study": protocol(tied=9.0)}))
    assert open_ranking("named", {}).rules.tied == 9.0


def test_a_panel_of_strangers(elsewhere):
    told = r"^ranking\.judges: no match of people, who in params/matches\.csv; its judges are k, j$"
    with pytest.raises(DataError, match=told):
        elsewhere(judges=["who", "j", "people"])


def test_another_protocol_and_no_run(elsewhere, here, project):
    elsewhere()
    with pytest.raises(DriftError, match="outputs/elsewhere was frozen with another protocol"):
        elsewhere(tied=9.0)
    here()
    with pytest.raises(DriftError, match="outputs/small was frozen with another protocol; 1 key differs: random_seed"):
        open_ranking("small", open_ranking("small").study.model_copy(update={"random_seed": 8}))
    with pytest.raises(RunError, match="outputs/none is not frozen yet"):
        open_ranking("none")
    with pytest.raises(ProtocolError, match=r"1 problem in the protocol\n  ranking\.tied: "):
        elsewhere("new", tied=-1)


def test_listwise_calls_are_asked_once(here):
    here(listwise={"orders": 2})
    data = open_ranking("small")
    table = asyncio.run(ask_listwise(data))
    assert table[["judge", "order"]].drop_duplicates().to_numpy().tolist() == [
        [judge, order] for judge in ("other", "sim") for order in ("order-1", "order-2")
    ]
    assert asyncio.run(ask_listwise(data)).equals(table)
    assert table["ranking"].notna().any()


def test_nobody_asks_where_nothing_is_to_be_asked(here, elsewhere):
    here()
    for data in (open_ranking("small"), elsewhere()):
        table = asyncio.run(ask_listwise(data))
        assert (len(table), list(table)) == (0, RANKING_COLUMNS)


# experts' ranks

EXPERTS = "item_id,reviewer_id,system,rank"


@pytest.fixture
def experts(project):
    """Write a file of ranks; the protocol's words for it."""

    def write(*lines, header=EXPERTS, **changes):
        (project / "params" / "ranks.csv").write_text("\n".join([header, *lines]))
        return {"path": "params/ranks.csv"} | changes

    return write


def test_ranks_with_ties_and_several_reviewers(experts, elsewhere, here):
    lines = ["i1,r1,ALPHA,1", "i1,r1,BETA,1", "i1,r1,GAMMA,3", "i1,r2,GAMMA,1.5", "i2,r1,GAMMA,1e0"]
    given = experts(*lines, provenance="simulated")
    data = elsewhere(expert_ranks=given)
    assert data.ranks.to_numpy().tolist() == [
        ["i1", "r1", "ALPHA", 1.0], ["i1", "r1", "BETA", 1.0], ["i1", "r1", "GAMMA", 3.0],
        ["i1", "r2", "GAMMA", 1.5], ["i2", "r1", "GAMMA", 1.0],
    ]  # fmt: skip
    assert (list(data.ranks), data.expert_provenance) == (RANK_COLUMNS, "simulated")
    assert data.run.inputs == ["params/matches.csv", "params/ranks.csv"]
    here(expert_ranks=given)
    data = open_ranking("small")
    assert len(data.ranks) == 5
    assert "params/ranks.csv" in data.run.inputs


@pytest.mark.parametrize(
    ("header", "missing"),
    [("item_id,system,rank", "reviewer_id"), ("item,reviewer_id,system,place", "item_id, rank"), ("a", None)],
)
def test_a_missing_column(experts, header, missing):
    experts(",".join(["1"] * (header.count(",") + 1)), header=header)
    told = f"no column {missing or 'item_id, reviewer_id, system, rank'}; needed are item_id, reviewer_id, system, rank"
    with pytest.raises(DataError, match=rf"^params/ranks\.csv: {told}$"):
        read_expert_ranks("params/ranks.csv", set(THREE))


@pytest.mark.parametrize("rank", ["", "first", "0", "-1", "0.5", "nan", "inf", "1e999", "1,5"])
def test_a_bad_rank(experts, rank):
    experts("i1,r1,ALPHA,1", f'i1,r1,BETA,"{rank}"')
    with pytest.raises(DataError, match=rf"1 of 2 ranks cannot be used: line 3: rank '{rank}' is no number from 1$"):
        read_expert_ranks("params/ranks.csv", set(THREE))


def test_unknown_systems_and_ranks_that_stand_twice_are_told_by_line(experts, elsewhere):
    given = experts("i1,r1,ALPHA,1", "i1,r1,OMEGA,2", "i1,r1,ALPHA,2", "i1,r2,alpha,x")
    with pytest.raises(DataError) as error:
        elsewhere(expert_ranks=given)
    assert str(error.value) == (
        "params/ranks.csv: 3 of 4 ranks cannot be used: line 3: system 'OMEGA' is none of ALPHA, BETA, GAMMA; "
        "line 4: ranked in line 2 already: i1, r1, ALPHA; line 5: rank 'x' is no number from 1"
    )


def test_of_many_problems_the_first_five_are_told(experts):
    experts(*[f"i{number},r1,OMEGA,1" for number in range(8)])
    with pytest.raises(DataError, match=r"8 of 8 ranks cannot be used: line 2: .*; line 6: [^;]*; and 3 more$"):
        read_expert_ranks("params/ranks.csv", set(THREE))


def test_no_file_of_ranks(elsewhere):
    with pytest.raises(DataError, match=r"params/none\.csv: no such file"):
        elsewhere(expert_ranks={"path": "params/none.csv"})
