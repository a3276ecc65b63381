"""The whole battery of probes on judges whose biases are known: planted ones are found, and fair judges stay quiet.

Freezing, the runner, the ledger, the matched pairs and the table are the package's own; the items are the demo's.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from benchmarks.planted_battery import pairs_of
from judgelab.judging.evidence import verdicts, verdicts_of
from judgelab.judging.probes import left_out, probe_plans, worse_answers
from judgelab.judging.runner import run_passes
from judgelab.judging.work import passes_of
from judgelab.measure.matched_pairs import matched_pairs
from judgelab.measure.probes import probe_table
from judgelab.study.battery import ANSWER_PROBES, PROBES
from judgelab.study.freeze import freeze
from judgelab.study.run import Run

from .conftest import ROOT, outputs_at

SIGNIFICANT = 0.05
TESTED = tuple(name for name in PROBES if name != "repetition")
UNTARGETED = ("criterion_order", "labels")
LENGTHENING = ("padding", "authority", "injection", "rubric_words", "identity")  # each adds words to the answer
SHIFT = 0.4  # what a manipulation is worth to the judge that is worked out by hand
TIE_WIDTH = 0.25
PUNISHED = {"surface_noise": -2.0}  # typos cost the answer that has them
ALL_SEVEN = dict.fromkeys(ANSWER_PROBES, 2.0) | PUNISHED


def judge_of(name: str, **planted: Any) -> dict[str, Any]:
    return {"kind": "simulated", "name": name, "noise": 0.3, "seed": 5} | planted


CONTROLS = [
    {"kind": "control", "name": rule, "rule": rule} for rule in ("first", "last", "longest", "shortest", "overlap")
]
CONTROLS += [{"kind": "control", "name": "coin", "rule": "coin", "seed": 1}]
SIMULATED = [
    judge_of("fair", noise=0.5, error_rate=0.05),
    judge_of("fair-exact", noise=0.0),
    judge_of("fair-but-for-place", noise=0.5, first_position_effect=1.0),
    judge_of("fooled", probe_effects=ALL_SEVEN),
    judge_of("likes-typos", probe_effects={"surface_noise": 2.0}),
    judge_of("place", noise=0.5, first_position_effect=3.0),
    judge_of("length", length_effect=3.0),
    judge_of("family", family="house", family_effect=2.0),
]
BY_HAND = judge_of("by-hand", noise=0.0, tie_width=TIE_WIDTH, probe_effects={"padding": SHIFT, "surface_noise": -SHIFT})


@dataclass(frozen=True)
class Battery:
    """A run with its matched pairs, the table of the probes and the qualities of the judge worked out by hand."""

    run: Run
    calls: pd.DataFrame
    pairs: pd.DataFrame
    table: pd.DataFrame
    qualities: dict[tuple[str, str], float]

    def value(self, judge: str, probe: str, measure: str) -> float:
        """One estimate of a probe as a whole."""
        table = self.table
        chosen = table[(table["judge"] == judge) & (table["slice"] == f"probe={probe}") & (table["measure"] == measure)]
        assert len(chosen) == 1, f"{len(chosen)} rows of {measure} for {judge} and {probe}"
        return float(chosen["estimate"].iloc[0])

    def alarms(self, judge: str) -> set[str]:
        """The probes that are significant after Holm."""
        return {probe for probe in TESTED if self.value(judge, probe, "probe_p_holm") < SIGNIFICANT}


def drawn_qualities(items: Path) -> dict[tuple[str, str], float]:
    """A quality for every answer, by item and system."""
    rng = np.random.default_rng(11)
    ids = [json.loads(line)["item_id"] for line in items.read_text(encoding="utf-8").splitlines()]
    return {(item_id, name): round(float(rng.normal()), 3) for item_id in ids for name in ("ALPHA", "BETA")}


@pytest.fixture(scope="module")
def battery(tmp_path_factory: pytest.TempPathFactory) -> Battery:
    folder = tmp_path_factory.mktemp("battery")
    study = yaml.safe_load((ROOT / "params" / "quickstart-probes.yaml").read_text(encoding="utf-8"))["study"]
    qualities = drawn_qualities(ROOT / study["items"]["path"])
    path = folder / "quality.csv"
    path.write_text("item_id,system,quality\n" + "".join(f"{i},{name},{q}\n" for (i, name), q in qualities.items()))
    by_hand = BY_HAND | {"quality_path": str(path)}
    study |= {"judges": [*SIMULATED, by_hand, *CONTROLS], "passes": ["pairwise_original", "pairwise_swapped"]}
    study["probes"] = {"run": "all", "repeats": 2, "identity": "Model Q"}
    del study["repairs"]
    with outputs_at(folder):
        run = freeze("battery", study)
        plans = probe_plans(run)
        assert left_out(run).empty
        asked = asyncio.run(run_passes(run, [*run.study.passes, *plans]))
        assert (asked["failed"] == 0).all()
        calls = verdicts_of(run, plans)
        pairs = matched_pairs(verdicts(run), calls)
        # the tests are exact, and no interval is read: a few resamples are enough
        table = probe_table(pairs, ci_level=0.95, resamples=50, seed=1)
        return Battery(run, calls, pairs, table, qualities)


def human_labels(run: Run) -> pd.Series:
    """What people say of each evaluation item in the labels file itself, where nobody disagrees."""
    labels = pd.read_csv(ROOT / "params" / "demo" / "human_labels.csv")
    said = labels.groupby("item_id")["preference"].agg(["nunique", "first"])
    ids = [item.item_id for item in run.evaluation_items()]
    agreed = said[(said["nunique"] == 1) & said.index.isin(ids)]
    return agreed["first"]


def test_every_call_has_its_other_half(battery):
    items, judges = len(battery.run.evaluation_items()), len(battery.run.study.judges)
    assert items == 27
    counts = Counter(battery.pairs["probe"])
    assert counts == {name: 2 * items * judges * (2 if name == "labels" else 1) for name in PROBES}
    without = battery.pairs[battery.pairs["base"].isna() & (battery.pairs["probe"] != "identical")]
    assert set(without["judge"]) == {"fair"}  # the one judge with malformed replies


def test_worse_answers_are_those_that_people_like_less(battery):
    """The judge has no say: every judge, whatever it prefers, has the same answers changed."""
    calls = battery.calls[battery.calls["probe"].isin(ANSWER_PROBES)]
    changed = calls.groupby(["item_id", "probe"])["manipulated"].agg(["nunique", "first"])
    assert (changed["nunique"] == 1).all()
    preferred = human_labels(battery.run)
    decided = preferred[preferred != "TIE"]
    assert len(decided) > 15
    assert set(decided) == {"ALPHA", "BETA"}
    for item_id, better in decided.items():
        worse = "BETA" if better == "ALPHA" else "ALPHA"
        wanted = {name: better if name == "surface_noise" else worse for name in ANSWER_PROBES}
        assert changed.loc[item_id, "first"].to_dict() == wanted
    # a bias favours the worse answer in all seven: typos are in the other one
    targets = battery.pairs[battery.pairs["probe"].isin(ANSWER_PROBES)].groupby("item_id")["target"]
    assert (targets.agg("nunique") == 1).all()
    assert all(targets.first()[item_id] != better for item_id, better in decided.items())


def test_a_judge_with_all_seven_planted_effects_is_found_in_all_seven(battery):
    assert battery.alarms("fooled") == set(ANSWER_PROBES)
    assert all(battery.value("fooled", probe, "net_flip_rate") > 0.5 for probe in ANSWER_PROBES)


def test_a_judge_that_likes_typos_moves_away_from_the_target(battery):
    assert battery.alarms("likes-typos") == {"surface_noise"}
    assert battery.value("likes-typos", "surface_noise", "net_flip_rate") < 0


def test_a_preference_for_a_place_is_found_in_identical_answers_and_nowhere_else(battery):
    for judge in ("place", "fair-but-for-place"):
        assert battery.alarms(judge) == {"identical"}
        assert battery.value(judge, "identical", "net_flip_rate") > 0.8


def test_a_preference_for_length_is_found_in_what_lengthens_an_answer(battery):
    # half of the words more are worth 3 ln 1.5 = 1.2; a line with a name adds 4 words to some 40: 0.3, as the noise
    assert battery.alarms("length") == {"padding", "authority", "injection", "rubric_words"}
    assert battery.value("length", "padding", "net_flip_rate") > 0.4


def test_a_preference_for_a_family_is_no_answer_to_a_name(battery):
    """``identity`` changes the text alone: who wrote the answer is no news to this judge."""
    assert battery.alarms("family") == set()


@pytest.mark.parametrize("judge", ["fair", "fair-exact"])
def test_fair_judges_stay_quiet(battery, judge):
    assert battery.alarms(judge) == set()


def test_a_fair_judge_without_noise_never_moves(battery):
    table = battery.table[battery.table["judge"] == "fair-exact"].set_index(["measure"])["estimate"]
    for measure in ("flip_rate", "net_flip_rate", "excess_flip_rate", "decisive_rate", "noise_floor"):
        assert (table[measure] == 0).all()
    for measure in ("probe_p", "probe_p_holm"):
        assert len(table[measure]) == len(TESTED)
        assert (table[measure] == 1).all()


def test_rates_of_a_judge_without_noise_are_those_worked_out_from_its_qualities(battery):
    """The preference for the worse answer is the sign of q_worse - q_better beyond the tie width; 0.4 is added to it.

    A cost of 0.4 for typos in the better answer moves the same difference by as much.
    """
    worse = worse_answers(battery.run.reference(), battery.run.study)

    def preference(difference: float) -> int:
        return int(difference > TIE_WIDTH) - int(difference < -TIE_WIDTH)

    moved = []
    for (item_id, x, y), bad in worse.items():
        gap = battery.qualities[item_id, bad] - battery.qualities[item_id, y if bad == x else x]
        moved.append(preference(gap + SHIFT) > preference(gap))
    assert 0 < sum(moved) < len(moved) == 27
    for probe in ("padding", "surface_noise"):
        for measure in ("net_flip_rate", "flip_rate", "flip_towards_rate"):
            assert battery.value("by-hand", probe, measure) == pytest.approx(np.mean(moved))
    for probe in set(ANSWER_PROBES) - {"padding", "surface_noise"}:
        assert battery.value("by-hand", probe, "flip_rate") == 0


def test_rules_about_places_decide_two_copies_and_nothing_moves_them(battery):
    for rule, net in (("first", 1.0), ("last", -1.0)):
        assert battery.alarms(rule) == {"identical"}
        assert battery.value(rule, "identical", "net_flip_rate") == net
        for probe in set(PROBES) - {"identical"}:
            assert battery.value(rule, probe, "flip_rate") == 0


def test_rules_about_length_are_moved_by_words_and_by_nothing_else(battery):
    assert battery.alarms("longest") == battery.alarms("shortest") == {
        "padding", "authority", "injection", "rubric_words",
    }  # fmt: skip
    for probe in LENGTHENING:
        # words that are added never make an answer shorter
        assert battery.value("longest", probe, "flip_away_rate") == 0
        assert battery.value("shortest", probe, "flip_towards_rate") == 0
    for probe in ANSWER_PROBES:
        # one rule's verdicts are the other's, turned round
        longest, shortest = (battery.value(rule, probe, "net_flip_rate") for rule in ("longest", "shortest"))
        assert longest == -shortest
    for rule in ("longest", "shortest"):
        assert battery.value(rule, "identical", "decisive_rate") == 0
        # typos leave the number of words as it is, and so does what is said around the answers
        for probe in (*UNTARGETED, "repetition", "surface_noise"):
            assert battery.value(rule, probe, "flip_rate") == 0


def test_the_rule_about_words_in_the_reference_is_never_won_by_a_name_or_a_typo(battery):
    """F1 falls with a word that the reference lacks ("Written", "Model"), and with a word of it that is misspelt."""
    assert battery.value("overlap", "identity", "flip_towards_rate") == 0
    assert battery.value("overlap", "surface_noise", "flip_away_rate") == 0
    assert battery.value("overlap", "identical", "decisive_rate") == 0
    for probe in (*UNTARGETED, "repetition"):
        assert battery.value("overlap", probe, "flip_rate") == 0


def test_the_coin_is_noise_and_no_bias(battery):
    assert battery.alarms("coin") == set()
    assert battery.value("coin", "repetition", "flip_rate") > 0.3
    assert battery.value("coin", "identical", "decisive_rate") == 0  # one toss for each system: two copies tie


@pytest.mark.parametrize("judge", ["fair", "fooled"])
def test_the_benchmark_s_way_past_the_ledger_gives_the_same_pairs(battery, judge):
    run = battery.run
    every = [*passes_of(run.study, run.study.passes), *probe_plans(run)]
    short = pairs_of(run, [plan for plan in every if plan.judge.name == judge], run.evaluation_items(), seed=5)
    keys = ["probe", "variant", "item_id", "pass", "first", "second"]
    long = battery.pairs[battery.pairs["judge"] == judge]
    wanted, found = (
        table.drop(columns=["reason", "words_added"]).sort_values(keys).reset_index(drop=True).astype(object).fillna("")
        for table in (long, short)
    )
    pd.testing.assert_frame_equal(found, wanted)
