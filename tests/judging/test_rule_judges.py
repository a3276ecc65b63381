"""Judges without a model: the controls answer by their rule, the simulated ones show what was planted."""

from __future__ import annotations

import asyncio
import json
import math

import pandas as pd
import pytest
from scipy.stats import binomtest

from judgelab.errors import DataError
from judgelab.judging.judges import client_for
from judgelab.judging.judges.base import Call
from judgelab.judging.judges.control import direct_reply, pairwise_reply, uniform
from judgelab.judging.prompts import Prompt
from judgelab.judging.replies import contract_for
from judgelab.study.items import Item

NO_PROMPT = Prompt("", "", "", (), ())
N = 2_000
FOUR_SIGMA = 4 * 0.5 / math.sqrt(N)  # of a share of N fair coins


def make_item(alpha, beta, *, number=0, context="", task="Why is the sky blue?"):
    return Item(f"i{number}", task, context, "c", {"ALPHA": alpha, "BETA": beta}, "0" * 64)


def answer(study, item, presentation=("ALPHA", "BETA"), pass_="original"):
    """What the first judge of a study replies."""
    strategy = "direct" if len(presentation) == 1 else "pairwise"
    client = client_for(study.judges[0], study)
    reply = asyncio.run(client.ask(Call(strategy, "direct" if strategy == "direct" else pass_, item, presentation),
                                   NO_PROMPT))  # fmt: skip
    return json.loads(reply.text)


LONG_ALPHA = make_item("the sky is blue because air scatters blue light", "because of scattering")
EQUAL = make_item("one two three", "four five six")
SKY = make_item("blue light scatters", "grass is green", context="Air scatters blue light most.")
NO_CONTEXT = make_item("it is", "why the sky is blue")

RULES = [  # rule, item, letter with ALPHA first, letter with BETA first
    ("first", LONG_ALPHA, "A", "A"),
    ("last", LONG_ALPHA, "B", "B"),
    ("longest", LONG_ALPHA, "A", "B"),
    ("shortest", LONG_ALPHA, "B", "A"),
    ("longest", EQUAL, "TIE", "TIE"),
    ("shortest", EQUAL, "TIE", "TIE"),
    ("overlap", SKY, "A", "B"),
    ("overlap", NO_CONTEXT, "B", "A"),  # without a context the task is what must be covered
    ("overlap", EQUAL, "TIE", "TIE"),
]


@pytest.mark.parametrize(("rule", "item", "forward", "backward"), RULES)
def test_controls_answer_by_their_rule(study_of, rule, item, forward, backward):
    study = study_of([{"name": "c", "kind": "control", "rule": rule}])
    assert answer(study, item)["winner"] == forward
    assert answer(study, item, ("BETA", "ALPHA"), "swapped")["winner"] == backward


def test_without_a_tie_to_offer_an_equal_pair_is_a_coin(study_of):
    study = study_of([{"name": "c", "kind": "control", "rule": "longest"}], pairwise_labels=["A", "B"])
    letters = [answer(study, make_item("a b", "c d", number=number))["winner"] for number in range(60)]
    assert set(letters) == {"A", "B"}


@pytest.mark.parametrize(
    ("rule", "words", "scores"),
    [("longest", 100, (5, 5)), ("longest", 1000, (5, 5)), ("longest", 50, (3, 3)), ("shortest", 100, (1, 1)),
     ("first", 9, (3, 3)), ("last", 9, (3, 3))],
)  # fmt: skip
def test_direct_scores_of_controls(study_of, rule, words, scores):
    study = study_of([{"name": "c", "kind": "control", "rule": rule}])
    found = answer(study, make_item("w " * words, ""), ("ALPHA",))
    assert (found["correctness"], found["clarity"]) == scores


@pytest.mark.parametrize("criteria", [["a"], ["a", "b", "c", "d", "e"]])
@pytest.mark.parametrize("scale", [(1, 5), (0, 9)])
def test_scores_average_to_the_level_to_the_nearest_step(study_of, criteria, scale):
    low, high = scale
    study = study_of(
        [{"name": "c", "kind": "control", "rule": "coin"}],
        direct_scale={"minimum": low, "maximum": high, "criteria": criteria},
    )
    call = Call("direct", "direct", EQUAL, ("ALPHA",))
    for level in [number / 97 for number in range(98)] + [-1.0, 2.0]:
        scores = [json.loads(direct_reply(study, level, call))[name] for name in criteria]
        wanted = low + min(max(level, 0), 1) * (high - low)
        assert abs(sum(scores) / len(scores) - wanted) <= 0.5 / len(criteria) + 1e-12
        assert max(scores) - min(scores) <= 1
        assert low <= min(scores) <= max(scores) <= high


def test_the_width_of_a_tie(study_of):
    study = study_of([{"name": "c", "kind": "control", "rule": "coin"}])
    call = Call("pairwise", "original", EQUAL, ("ALPHA", "BETA"))
    letters = [json.loads(pairwise_reply(study, d, call, tie_width=0.5))["winner"] for d in (0.51, 0.5, -0.5, -0.51)]
    assert letters == ["A", "TIE", "TIE", "B"]


def test_the_coin_is_fair_and_thrown_anew_in_each_pass(study_of):
    study = study_of([{"name": "c", "kind": "control", "rule": "coin", "seed": 3}])
    items = [make_item("a", "b", number=number) for number in range(N)]
    client = client_for(study.judges[0], study)

    async def thrown(pass_, presentation):
        calls = [Call("pairwise", pass_, item, presentation) for item in items]
        return [json.loads((await client.ask(call, NO_PROMPT)).text)["winner"] for call in calls]

    original = asyncio.run(thrown("original", ("ALPHA", "BETA")))
    swapped = asyncio.run(thrown("swapped", ("BETA", "ALPHA")))
    same = sum(one == two for one, two in zip(original, swapped, strict=True))
    for count in (original.count("A"), swapped.count("A"), same):
        assert binomtest(count, N).pvalue > 1e-3
    assert original == asyncio.run(thrown("original", ("ALPHA", "BETA")))


def test_uniform_depends_on_its_arguments_alone():
    numbers = [uniform(1, "a", number) for number in range(N)]
    assert numbers == [uniform(1, "a", number) for number in range(N)]
    assert all(0 <= number < 1 for number in numbers)
    assert abs(sum(numbers) / N - 0.5) < 4 / math.sqrt(12 * N)


@pytest.fixture(scope="module")
def simulated(study_of):
    """What simulated judges reply on N items with answers of equal length."""
    items = [make_item("a b c d", "e f g h", number=number) for number in range(N)]
    planted = {
        "fair": {},
        "first": {"first_position_effect": 1.0},
        "tied": {"tie_width": 0.5},
        "family": {"family": "house", "family_effect": 1.0},
        "errors": {"error_rate": 0.1},
        "lenient": {"leniency": 1.0},
        "strict": {"leniency": -1.0},
    }
    base = {"kind": "simulated", "seed": 11, "tie_width": 0.0}
    study = study_of(
        [base | {"name": name} | effects for name, effects in planted.items()],
        systems={"ALPHA": {"family": "house"}, "BETA": {}},
    )
    rows = []

    async def judge_all():
        for judge in study.judges:
            client = client_for(judge, study)
            direct = judge.name in ("lenient", "strict")
            for pass_ in ("direct",) if direct else ("original", "swapped"):
                strategy = "direct" if direct else "pairwise"
                contract = contract_for(study, strategy)
                for number, item in enumerate(items):
                    pair = ("ALPHA", "BETA") if (number + (pass_ == "swapped")) % 2 else ("BETA", "ALPHA")
                    reply = await client.ask(Call(strategy, pass_, item, pair[:1] if direct else pair), NO_PROMPT)
                    reading = contract.read(reply.text)
                    verdict = reading.verdict or {}
                    total = (verdict["correctness"] + verdict["clarity"]) / 2 if direct else None
                    rows.append((judge.name, pass_, *pair, verdict.get("winner"), total, reading.reason))

    asyncio.run(judge_all())
    return pd.DataFrame(rows, columns=["judge", "pass", "first", "second", "verdict", "total", "reason"])


def shares(table, judge):
    """Share of first position and of the system ALPHA among a judge's pairwise verdicts, by pass."""
    own = table[(table["judge"] == judge) & table["verdict"].isin(["A", "B"])]
    chosen = own["first"].where(own["verdict"] == "A", own["second"])
    both = own.assign(at_first=own["verdict"] == "A", alpha=chosen == "ALPHA")
    return both.groupby("pass")[["at_first", "alpha"]].mean()


def test_nothing_planted_nothing_found(simulated):
    found = shares(simulated, "fair")
    assert found.shape == (2, 2)
    assert ((found - 0.5).abs() < FOUR_SIGMA).all(axis=None)


def test_a_planted_position_effect_is_found(simulated):
    found = shares(simulated, "first")
    # d = N(0, 1 + 1 + 0.25) + 1 from two qualities and the noise: P(d > 0) = Phi(1 / 1.5) = 0.748
    assert ((found["at_first"] - 0.748).abs() < FOUR_SIGMA).all()
    assert ((found["alpha"] - 0.5).abs() < FOUR_SIGMA).all()


def test_a_planted_family_effect_is_found(simulated):
    found = shares(simulated, "family")
    assert ((found["alpha"] - 0.748).abs() < FOUR_SIGMA).all()
    assert ((found["at_first"] - 0.5).abs() < FOUR_SIGMA).all()


def test_ties_come_at_the_planted_width(simulated):
    own = simulated[(simulated["judge"] == "tied") & (simulated["pass"] == "original")]
    # P(|d| <= 0.5) with d of standard deviation 1.5: 2 Phi(1/3) - 1 = 0.261
    assert abs((own["verdict"] == "TIE").mean() - 0.261) < FOUR_SIGMA


def test_errors_come_at_the_planted_rate(simulated):
    own = simulated[simulated["judge"] == "errors"]
    assert set(own["reason"].dropna()) == {"no_json"}
    by_pass = own["reason"].notna().groupby(own["pass"]).mean()
    assert ((by_pass - 0.1).abs() < 4 * math.sqrt(0.1 * 0.9 / N)).all()


def test_leniency_moves_the_scores(simulated):
    totals = simulated.groupby("judge")["total"].mean()
    # E[Phi(q + 1 + noise)] = Phi(1 / sqrt(1 + 1.25)) = 0.748; on the scale 1 + 4 * 0.748 = 3.99, and 2.01 below
    assert totals["lenient"] == pytest.approx(3.99, abs=0.05)
    assert totals["strict"] == pytest.approx(2.01, abs=0.05)


QUALITY = "item_id,system,quality\ni0,ALPHA,{alpha}\ni0,BETA,{beta}\n"


def test_a_file_of_qualities_decides(project, study_of):
    judge = {"name": "s", "kind": "simulated", "noise": 0.0, "quality_path": "params/q.csv"}
    path = project / "params" / "q.csv"
    item = make_item("a b", "c d")
    for alpha, beta, letter in ((2, 0, "A"), (0, 2, "B"), (0.1, 0, "TIE")):
        path.write_text(QUALITY.format(alpha=alpha, beta=beta))
        assert answer(study_of([judge]), item)["winner"] == letter
    longer = study_of([judge | {"length_effect": 1.0}])
    # ln(8 / 2) = 1.39 for the longer answer outweighs a quality of 1 for the shorter
    path.write_text(QUALITY.format(alpha=0, beta=1))
    assert answer(longer, make_item("a " * 8, "c d"))["winner"] == "A"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (QUALITY.format(alpha="good", beta=1), "line 2: quality 'good' is not a number"),
        (QUALITY.format(alpha=1, beta="nan"), "line 3: quality 'nan' is not a number"),
        ("item_id,quality\ni0,1\n", "no column system; needed are item_id, system, quality"),
        ("item_id,system,quality\ni9,ALPHA,1\n", "no quality for item i0 and system ALPHA"),
        ("", "the file is empty"),
    ],
)
def test_a_file_of_qualities_that_cannot_be_used(project, study_of, text, message):
    (project / "params" / "q.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        answer(study_of([{"name": "s", "kind": "simulated", "quality_path": "params/q.csv"}]), make_item("a", "b"))
