"""What a protocol may say of the ranking: every refusal with its words, the panel, and the options of the measures."""

from __future__ import annotations

import inspect
from typing import get_type_hints

import pytest

from judgelab.errors import ProtocolError
from judgelab.judging.listwise import listwise_plans
from judgelab.judging.plan import plan_table
from judgelab.measure import leaderboard as measured
from judgelab.measure.against_experts import group_ratings
from judgelab.study.protocol import parse_study
from judgelab.study.ranking import Ranking

JUDGES = [
    {"name": "coin", "kind": "control", "rule": "coin"},
    {"name": "calm", "kind": "simulated", "seed": 1},
    {"name": "keen", "kind": "simulated", "seed": 2},
]
THREE = {"ALPHA": {}, "BETA": {}, "GAMMA": {}}


def study_of(project, ranking, **changes):
    return project.study(**{"judges": JUDGES, "systems": THREE, "ranking": ranking} | changes)


def problems(project, ranking, **changes):
    with pytest.raises(ProtocolError) as caught:
        study_of(project, ranking, **changes)
    return str(caught.value)


@pytest.mark.parametrize(
    ("ranking", "told"),
    [
        ({"thresholds": [0.5, 1.0]}, "ranking.thresholds: must fall, each once: for example [1.0, 0.9, 0.75, 0.5]"),
        ({"thresholds": [0.9, 0.9]}, "ranking.thresholds: must fall, each once"),
        ({"thresholds": [1.0, 0.49]}, "ranking.thresholds.1: 0.49 is not allowed: "),
        ({"thresholds": [1.1]}, "ranking.thresholds.0: 1.1 is not allowed: "),
        ({"thresholds": 0.9}, "ranking.thresholds: 0.9 is not allowed: "),
        ({"threshold": 0.4}, "ranking.threshold: 0.4 is not allowed: "),
        ({"threshold": float("nan")}, "ranking.threshold: nan is not allowed: "),
        ({"tied": 150}, "ranking: tied (150) must be below strong (150)"),
        ({"tied": 60.5, "strong": 60}, "ranking: tied (60.5) must be below strong (60)"),
        ({"strong": 50}, "ranking: tied (50) must be below strong (50)"),
        ({"tied": 0}, "ranking.tied: 0 is not allowed: "),
        ({"tied": float("inf")}, "ranking.tied: inf is not allowed: "),
        ({"minimum_matches": 0}, "ranking.minimum_matches: 0 is not allowed: "),
        ({"judges": ["calm", "oracle", "elf"]},
         "ranking.judges: no judge named elf, oracle; the judges are coin, calm, keen"),
        ({"judges": []}, "ranking.judges: name each judge once, and at least one"),
        ({"judges": ["calm", "calm"]}, "ranking.judges: name each judge once, and at least one"),
        ({"listwise": {"judges": ["oracle"]}}, "ranking.listwise.judges: no judge named oracle; the judges are coin"),
        ({"listwise": {"judges": []}}, "ranking.listwise.judges: name each judge once, and at least one"),
        ({"listwise": {"orders": 0}}, "ranking.listwise.orders: 0 is not allowed: "),
        ({"listwise": {"orders": 21}}, "ranking.listwise.orders: 21 is not allowed: "),
        ({"leaderboard": "../home"}, "ranking.leaderboard: '../home' is not allowed: "),
        ({"leaderboard": ""}, "ranking.leaderboard: '' is not allowed: "),
        ({"leaderboard": ".hidden"}, "ranking.leaderboard: '.hidden' is not allowed: "),
        ({"leaderboard": "two words"}, "ranking.leaderboard: 'two words' is not allowed: "),
        ({"leaderboard": "a\n"}, "ranking.leaderboard: 'a\\n' is not allowed: "),
        ({"leaderboard": "x" * 81}, "is not allowed: "),
        ({"elo": {"k": 0}}, "ranking.elo.k: 0 is not allowed: "),
        ({"elo": {"permutations": 0}}, "ranking.elo.permutations: 0 is not allowed: "),
        ({"elo": {"scale": -1}}, "ranking.elo.scale: -1 is not allowed: "),
        ({"elo": {"stat": 1}}, "ranking.elo.stat: unknown key; did you mean start?; allowed are start, k, scale"),
        ({"bradley_terry": {"ties": "win"}}, "ranking.bradley_terry.ties: 'win' is not allowed: "),
        ({"bradley_terry": {"controlled_for": ["mood"]}}, "ranking.bradley_terry.controlled_for.0: 'mood' is not"),
        ({"bradley_terry": {"when_undefined": "guess"}}, "ranking.bradley_terry.when_undefined: 'guess' is not"),
        ({"bradley_terry": {"prior_sd": 0}}, "ranking.bradley_terry.prior_sd: 0 is not allowed: "),
        ({"group_by": "system"}, "ranking.group_by: 'system' is not allowed: "),
        ({"expert_ranks": {}}, "ranking.expert_ranks.path: is missing"),
        ({"expert_ranks": {"path": "x.csv", "provenance": "oracle"}}, "provenance: 'oracle' is not allowed: "),
        ({"spot_check": {"size": 0}}, "ranking.spot_check.size: 0 is not allowed: "),
        ({"spot_check": {"threshold": 1}}, "ranking.spot_check.threshold: 1 is not allowed: "),
        ({"schedule_repeats": 1001}, "ranking.schedule_repeats: 1001 is not allowed: "),
        ({"threshhold": 0.9}, "ranking.threshhold: unknown key; did you mean threshold?"),
    ],
)  # fmt: skip
def test_what_is_refused_and_how(project, ranking, told):
    assert told in problems(project, ranking)


def test_listwise_needs_three_systems_and_letters_for_all(project):
    two = {"ALPHA": {}, "BETA": {}}
    told = "ranking.listwise needs 3 to 26 systems; the study has 2"
    assert told in problems(project, {"listwise": {}}, systems=two)
    many = {f"S{number}": {} for number in range(27)}
    assert "3 to 26 systems; the study has 27" in problems(project, {"listwise": {}}, systems=many)
    assert study_of(project, {"listwise": {}}, systems=dict(list(many.items())[:26])).ranking.listwise.orders == 3
    model = {"kind": "chat", "model": "m", "base_url": "https://host/v1", "temperature": 1}
    drawn = {"ALPHA": {}, "warm": {"generated": {"model": model, "completions": 2}}}
    assert len(study_of(project, {"listwise": {}}, systems=drawn).systems) == 3  # completions count


def test_the_panel_is_all_but_the_controls(project):
    study = study_of(project, {})
    assert study.ranking.panel(study.judges) == ("calm", "keen")
    assert study_of(project, {"judges": ["keen", "coin"]}).ranking.panel(study.judges) == ("keen", "coin")
    assert Ranking().panel(study.judges[:1]) == ("coin",)  # where there is nobody else
    assert Ranking().panel(()) == ()


def test_thresholds_end_with_every_verdict_on_its_own():
    assert Ranking().every_threshold == (1.0, 0.9, 0.75, 0.5, None)
    assert Ranking(thresholds=(0.6,)).every_threshold == (0.6, None)
    assert Ranking(thresholds=()).every_threshold == (None,)


def test_options_are_those_of_the_leaderboard(project):
    values = {
        "threshold": 0.75, "elo": {"start": 1500, "k": 16, "scale": 200, "permutations": 7},
        "bradley_terry": {"ties": "davidson", "when_undefined": "name", "prior_sd": 1.5},
        "tied": 20, "strong": 90, "minimum_matches": 4,
    }  # fmt: skip
    ranking = study_of(project, values).ranking
    assert ranking.options == {
        "threshold": 0.75, "start": 1500, "k": 16, "scale": 200, "permutations": 7, "ties": "davidson",
        "undefined": "name", "prior_sd": 1.5, "tied": 20, "strong": 90, "minimum_matches": 4,
    }  # fmt: skip
    assert ranking.elo_options == {"permutations": 7, "initial": 1500, "k": 16, "scale": 200}
    assert {*ranking.options} <= {*get_type_hints(measured.LeaderboardOptions)}
    assert {*ranking.elo_options} <= {*inspect.signature(group_ratings).parameters}


def test_a_ranking_that_says_nothing_new_is_not_dumped(project):
    assert "ranking" not in study_of(project, {}).model_dump(mode="json")
    assert "ranking" not in study_of(project, {"tied": 50, "elo": {"k": 32}}).model_dump(mode="json")
    study = study_of(project, {"judges": ["calm"], "listwise": {"judges": ["keen"]}, "leaderboard": "a.b-c_1"})
    assert parse_study(study.model_dump(mode="json")) == study
    assert study.sha256 != study_of(project, {}).sha256


def test_the_plan_counts_listwise_calls(project):
    answers = {name: f"{name.lower()} says so." for name in THREE}
    rows = [{"item_id": f"i{number}", "task": "Why?", "answers": answers} for number in range(4)]
    project.write_items(rows)
    study = study_of(project, {"listwise": {"orders": 2}}, human_labels=None)
    assert [(plan.judge.name, plan.pass_) for plan in listwise_plans(study)] == [
        (judge, order) for judge in ("calm", "keen") for order in ("order-1", "order-2")
    ]
    table = plan_table(study).set_index("judge")["listwise_calls"]
    assert table.to_dict() == {"coin": 0, "calm": 8, "keen": 8}
    named = study_of(project, {"listwise": {"judges": ["coin"]}}, human_labels=None)
    assert plan_table(named).set_index("judge")["listwise_calls"].to_dict() == {"coin": 12, "calm": 0, "keen": 0}
    assert plan_table(study_of(project, {}, human_labels=None))["listwise_calls"].sum() == 0
