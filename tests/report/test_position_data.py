"""Stage 06 on matches that were judged elsewhere: the orders told apart, and the same measures as of a run."""

from __future__ import annotations

import asyncio
import itertools
import json

import pandas as pd
import pytest

from judgelab.judging.runner import run_passes
from judgelab.measure.position import position_table, swap_table
from judgelab.report.narrative import position_sentences, provenance_banner
from judgelab.report.position_data import PositionData, in_both_orders, normalized_matches, open_position
from judgelab.study.freeze import freeze


def matches(*rows):
    columns = ["item_id", "system_x", "system_y", "first", "preference", "pass", "repeat", "judge"]
    filled = [(*row, *("", 0, "warden")[len(row) - 5 :]) for row in rows]
    return pd.DataFrame(filled, columns=columns, dtype=object).assign(category="", words_x=3.0, words_y=1.0)


def test_orders_are_told_apart_by_pass_or_by_the_file():
    table = normalized_matches(
        matches(
            ("q1", "oak", "elm", "oak", "oak", "swapped"),
            ("q1", "elm", "oak", "elm", "TIE", "original"),
            ("q2", "oak", "elm", "elm", "elm"),
            ("q2", "oak", "elm", "oak", "oak"),
            ("q3", "oak", "elm", "elm", None),
            ("q4", "oak", "elm", None, "oak"),
        )
    )
    known = table.set_index("item_id")
    assert known["original_first"].fillna("-").tolist() == ["elm", "elm", "elm", "-"]
    assert known["pair_original"].fillna("-").tolist() == ["TIE", "elm", "-", "-"]
    assert known["pair_swapped"].fillna("-").tolist() == ["oak", "oak", "-", "-"]
    assert known["planned_original"].tolist() == [True, True, True, False]
    assert known["planned_swapped"].tolist() == [True, True, False, False]
    assert known[["words_x", "words_y"]].drop_duplicates().to_numpy().tolist() == [[3.0, 1.0]]


def test_the_first_of_repeats_counts_and_a_pair_has_one_order():
    table = normalized_matches(
        matches(
            ("q1", "oak", "elm", "oak", "elm", "", 1),
            ("q1", "oak", "elm", "oak", "oak", "", 0),
            ("q1", "elm", "oak", "elm", "elm", "", 0),
        )
    )
    assert table[["system_x", "system_y", "pair_original", "pair_swapped"]].to_numpy().tolist() == [
        ["oak", "elm", "oak", "elm"]
    ]
    assert in_both_orders(matches(("q1", "oak", "elm", "oak", "oak"), ("q2", "oak", "elm", "oak", "oak"))) == (0, 2)
    assert in_both_orders(matches()) == (0, 0)


def test_the_measures_of_a_file_with_both_orders(project):
    path = project.root / "matches.csv"
    rows = [
        f"q{n},oak,elm,{first},{won}"
        for n in range(4)
        for first, won in (("oak", "oak"), ("elm", "elm" if n else "oak"))
    ]
    path.write_text("item_id,system_x,system_y,first,preference\n" + "\n".join(rows) + "\n")
    data = open_position("away", {"study_id": "away", "matches": str(path), "random_seed": 1})
    assert (data.judges, data.labels, data.controls, data.run.provenance) == (
        [""],
        ("oak", "elm", "TIE"),
        (),
        "elsewhere",
    )
    assert data.agreement.empty
    table = position_table(data.normalized, labels=data.labels, **data.study.intervals)
    own = table[(table["pass"] == "both") & (table["slice"] == "all")].set_index("measure")
    assert own.loc["swap_consistency", ["numerator", "denominator"]].tolist() == [1, 4]
    assert own.loc["reversal_rate", ["numerator", "denominator"]].tolist() == [3, 4]
    assert own.loc["first_position_rate", ["numerator", "denominator"]].tolist() == [7, 8]
    assert data.study.decision.minimum_swap_consistency == 0.8


def test_many_systems_stand_by_their_side_of_the_pair(project):
    names = [f"tree{number}" for number in range(10)]
    rows = [("q", x, y, first, x) for x, y in itertools.pairwise(names) for first in (x, y)]
    path = project.root / "matches.csv"
    path.write_text("item_id,system_x,system_y,first,preference\n" + "\n".join(",".join(row) for row in rows) + "\n")
    data = open_position("away", {"study_id": "away", "matches": str(path), "random_seed": 1})
    crossed, labels = data.crossed()
    assert labels == ("system_x", "system_y", "TIE")
    counts = swap_table(crossed, labels=labels)
    assert counts[counts["count"] > 0].to_numpy().tolist() == [["", "system_x", "system_x", 9]]


@pytest.fixture
def run(project):
    project.write_items(4)
    project.label_all(4)
    return freeze("small", project.study())


def test_a_run_is_opened_as_before(run):
    asyncio.run(run_passes(run, ["direct", "pairwise_original", "pairwise_swapped"]))
    data = open_position("small")
    assert isinstance(data, PositionData)
    assert (data.judges, data.controls, data.labels) == (["coin"], ("coin",), ("ALPHA", "BETA", "TIE"))
    assert data.crossed() == (data.normalized, data.labels)
    assert len(data.normalized) == len(run.comparisons())


def test_a_record_of_one_order_is_not_shown_twice_in_it_and_stage_06_says_so(project):
    project.write_items(12)
    project.label_all(12)
    common = {"record": "old", "strategy": "pairwise", "pass": "original", "first": "ALPHA", "second": "BETA"}
    lines = [json.dumps({**common, "item_id": f"i{number:02d}", "verdict": "A"}) for number in range(12)]
    (project.root / "old.jsonl").write_text("\n".join(lines) + "\n")
    old = {"name": "old", "kind": "recorded", "path": str(project.root / "old.jsonl")}
    run = freeze("small", project.study(judges=[old]))
    asyncio.run(run_passes(run, ["pairwise_original", "pairwise_swapped"]))
    data = open_position("small")  # a swapped pass that showed the same order again would be refused
    assert data.normalized["pair_swapped"].isna().all()
    table = position_table(data.normalized, labels=data.labels, ci_level=0.95, resamples=100, seed=1)
    limits = {"minimum_swap_consistency": 0.8, "maximum_first_position_deviation": 0.1}
    assert position_sentences(table, judge="old", **limits)[0] == (
        "old: whether its decisions survive the swap cannot be answered: n = 0 of 12 items judged in both orders."
    )


def test_an_answer_key_is_said_to_be_no_people(project):
    assert provenance_banner("answer_key").warning
    values = project.values(human_labels={"path": "params/small/human_labels.csv", "provenance": "answer_key"})
    assert project.study(**values).human_labels.provenance == "answer_key"
