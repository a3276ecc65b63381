"""A run's verdicts as matches between systems, and recorded listwise calls on their way out, in, and back again."""

from __future__ import annotations

import asyncio
import json
from itertools import combinations

import pandas as pd
import pytest

from judgelab.errors import DataError
from judgelab.judging.evidence import export_records, verdicts
from judgelab.judging.exchange import import_verdicts
from judgelab.judging.listwise import listwise_plans, presented
from judgelab.judging.matches import COLUMNS, listwise_rankings, matches_of
from judgelab.judging.passes import plain_pass
from judgelab.judging.runner import run_passes
from judgelab.measure.listwise import listwise_table
from judgelab.measure.matches import Matches

COIN = {"name": "coin", "kind": "control", "rule": "coin"}
LONGEST = {"name": "longest", "kind": "control", "rule": "longest"}
FIRST = {"name": "first", "kind": "control", "rule": "first"}
NOISY = {"name": "noisy", "kind": "simulated", "error_rate": 0.4}
FOUR = ("ALPHA", "BETA", "GAMMA", "DELTA")
PAIRS = ("pairwise_original", "pairwise_swapped")

pytestmark = pytest.mark.usefixtures("quick")


def ask(run, passes=PAIRS):
    asyncio.run(run_passes(run, passes))
    return run


@pytest.fixture
def four(make_run, raw_item):
    """Freeze a run of four systems, whose answers have 1, 2, 3 and 4 words."""

    def make(judges, items=2, *, listwise=None, **changes):
        answers = {system: " ".join(["word"] * place) for place, system in enumerate(FOUR, start=1)}
        rows = [raw_item(number, answers=answers) for number in range(items)]
        ranking = {} if listwise is None else {"ranking": {"listwise": {"orders": listwise}}}
        return make_run(judges, rows, systems={name: {} for name in FOUR}, **ranking | changes)

    return make


# matches


def test_two_systems(make_run):
    """ALPHA's answer is the longer one: one rule prefers it wherever it stands, the other what stands first."""
    run = ask(make_run([LONGEST, FIRST], items=5))
    table = matches_of(run)
    assert list(table.columns) == COLUMNS
    assert len(table) == 2 * 2 * 5
    longest, first = (table[table["judge"] == name] for name in ("longest", "first"))
    assert set(longest["preference"]) == {"ALPHA"}
    assert set(zip(table["system_x"], table["system_y"], strict=True)) == {("ALPHA", "BETA")}
    assert first["preference"].tolist() == first["first"].tolist()
    turned = {name: own.set_index("item_id")["first"] for name, own in first.groupby("pass")}
    assert (turned["original"] != turned["swapped"]).all()
    assert set(turned["original"]) == {"ALPHA", "BETA"}
    assert set(table["reason"]) == {""}
    assert table["words_x"].tolist() == [7] * 20
    assert table["words_y"].tolist() == [1] * 20
    assert table.groupby("category")["item_id"].nunique().to_dict() == {"even": 3, "odd": 2}
    Matches.of(table)


def test_four_systems(four):
    table = matches_of(ask(four([LONGEST], items=3)))
    assert len(table) == 3 * 6 * 2
    words = {name: place for place, name in enumerate(FOUR, start=1)}
    pairs = table.groupby(["item_id", "pass"])[["system_x", "system_y"]].apply(lambda own: own.to_numpy().tolist())
    for found in pairs:
        assert sorted(map(tuple, found)) == sorted(combinations(FOUR, 2))  # in the protocol's order
    for row in table.itertuples():
        assert (row.words_x, row.words_y) == (words[row.system_x], words[row.system_y])
        assert row.preference == max((row.system_x, row.system_y), key=words.get)
        assert row.first in (row.system_x, row.system_y)
    Matches.of(table)


def pair(pass_, shown, **values):
    return {"item_id": "i00000", "strategy": "pairwise", "pass": pass_, "first": shown[0], "second": shown[1]} | values


@pytest.mark.parametrize(
    ("pass_", "shown", "verdict", "preference"),
    [
        ("original", ("ALPHA", "BETA"), "A", "ALPHA"), ("original", ("ALPHA", "BETA"), "B", "BETA"),
        ("original", ("BETA", "ALPHA"), "A", "BETA"), ("original", ("BETA", "ALPHA"), "B", "ALPHA"),
        ("swapped", ("BETA", "ALPHA"), "A", "BETA"), ("swapped", ("ALPHA", "BETA"), "B", "BETA"),
        ("original", ("BETA", "ALPHA"), "TIE", "TIE"), ("swapped", ("ALPHA", "BETA"), "TIE", "TIE"),
    ],
)  # fmt: skip
def test_a_place_is_the_system_that_stood_there(make_run, write_records, pass_, shown, verdict, preference):
    run = ask(make_run([write_records([pair(pass_, shown, verdict=verdict)])], items=1))
    row = matches_of(run).query("`pass` == @pass_").iloc[0]
    assert [row["first"], row["preference"], row["reason"]] == [shown[0], preference, ""]


def test_what_has_no_verdict_has_its_reason(make_run, write_records):
    both = ("ALPHA", "BETA")
    judge = write_records([pair("original", both, reply="Hm."), pair("swapped", both[::-1], reason="content_filter")])
    run = make_run([judge, COIN], items=2)
    ask(run, [plain_pass(run.study, run.study.judges[0], name) for name in PAIRS])
    table = matches_of(run)
    assert table["preference"].isna().all()
    assert table[["judge", "item_id", "pass", "reason"]].to_numpy().tolist() == [
        ["old", "i00000", "original", "no_json"], ["old", "i00001", "original", "not_recorded"],
        ["old", "i00000", "swapped", "content_filter"], ["old", "i00001", "swapped", "not_recorded"],
        *(["coin", f"i0000{number}", name, "not_judged"] for name in ("original", "swapped") for number in (0, 1)),
    ]  # fmt: skip


def test_of_some_judges(make_run):
    run = ask(make_run([NOISY, COIN, FIRST], items=6))
    every = matches_of(run)
    assert every["judge"].unique().tolist() == ["noisy", "coin", "first"]
    for names in (["coin"], ["first", "noisy"], ["coin", "nobody"], []):
        own = every[every["judge"].isin(names)].reset_index(drop=True)
        pd.testing.assert_frame_equal(matches_of(run, names), own)
    noisy = matches_of(run, ["noisy"])
    assert 0 < noisy["preference"].isna().sum() < len(noisy)
    assert (noisy["preference"].isna() == (noisy["reason"] == "no_json")).all()


def test_scores_are_no_matches(make_run):
    run = ask(make_run([COIN], passes=["direct"], position_test={"enabled": False}), ("direct",))
    assert len(verdicts(run))
    assert (len(matches_of(run)), list(matches_of(run))) == (0, COLUMNS)


# listwise rankings that were made elsewhere


def listed(item_id="i00000", pass_="order-1", shown=FOUR, **values):
    return {"item_id": item_id, "strategy": "listwise", "pass": pass_, "shown": list(shown)} | values


def ranked(run):
    asyncio.run(run_passes(run, listwise_plans(run.study)))
    return listwise_rankings(run)


def results(table):
    return table[["item_id", "order", "presented", "ranking", "reason"]].astype(str).to_numpy().tolist()


def test_what_is_exported_is_read_back_and_imported(four, write_records):
    """Simulated, exported, read by a recorded judge, exported again, imported as calls of a third run's judge."""
    run = four([NOISY], items=5, listwise=3)
    table = ranked(run)
    assert table["ranking"].isna().sum() == 6
    records = export_records(run, "noisy")
    assert len([record for record in records if record["strategy"] == "listwise"]) == 15
    assert records[-1].keys() == {
        "record", "item_id", "strategy", "pass", "shown", "reply", "model", "tokens_in", "tokens_out"
    }  # fmt: skip
    judge = write_records(records, record="noisy")
    back = four([judge], items=5, listwise=3, name="back")
    assert results(ranked(back)) == results(table)
    again = [record | {"record": "noisy"} for record in export_records(back, "old")]
    assert again == records
    third = four([NOISY], items=5, listwise=3, name="third")
    path = third.folder.parent / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records if record["strategy"] == "listwise"))
    assert import_verdicts(third, path, "noisy") == 15
    assert results(listwise_rankings(third)) == results(table)
    with pytest.raises(DataError, match="finished already and is kept: item i00000, listwise order-1, "):
        import_verdicts(third, path, "noisy")


@pytest.mark.parametrize(
    ("values", "ranking", "reason"),
    [
        ({"reply": '{"ranking": ["D", "C", "B", "A"]}'}, FOUR[::-1], ""),
        ({"verdict": {"ranking": ["B", "A", "C", "D"]}}, ("BETA", "ALPHA", "GAMMA", "DELTA"), ""),
        ({"verdict": {"ranking": ["b", "a", "c", "d"]}, "reply": "B, A, C, D"}, ("BETA", "ALPHA", *FOUR[2:]), ""),
        ({"verdict": {"ranking": ["B", "A", "C"]}}, None, "not_a_ranking"),
        ({"verdict": {"ranking": [1, 2, 3, 4]}}, None, "wrong_type"),
        ({"verdict": "A"}, None, "missing_key"),
        ({"verdict": {"scores": {"correctness": 1}}}, None, "missing_key"),
        ({"reply": "Hm.", "reason": "no_verdict_in_source"}, None, "no_verdict_in_source"),
        ({"reason": "content_filter"}, None, "content_filter"),
        ({"reply": None}, None, "empty_reply"),
    ],
)
def test_a_recorded_ranking_keeps_what_it_says(four, write_records, values, ranking, reason):
    """Also what only its source has read, over an export and back, and over an import."""
    judge = write_records([listed(**values)])
    run = four([judge], items=1, listwise=1)
    row = ranked(run).iloc[0]
    assert (row["presented"], row["reason"]) == (FOUR, reason)
    assert row["ranking"] == ranking if ranking else pd.isna(row["ranking"])
    (record,) = (record for record in export_records(run, "old") if record["strategy"] == "listwise")
    back = four([write_records([record], name="again", record="old")], items=1, listwise=1, name="back")
    assert results(ranked(back)) == results(listwise_rankings(run))
    third = four([NOISY], items=1, listwise=1, name="third")
    planned = presented(third.study, third.items()[0], 1)
    path = third.folder.parent / "records.jsonl"
    path.write_text(json.dumps(record | {"record": "noisy", "shown": list(planned)}))
    assert import_verdicts(third, path, "noisy") == 1
    assert listwise_rankings(third)["reason"].tolist() == [reason]


@pytest.mark.parametrize(
    "shown",
    [
        ("ALPHA", "BETA", "GAMMA"),
        ("ALPHA", "BETA", "GAMMA", "OMEGA"),
        (*FOUR, "OMEGA"),
        (),
    ],
)
def test_a_record_of_other_systems_is_no_record_of_the_call(four, write_records, shown):
    """As of a pair: what was recorded of other answers says nothing of these."""
    good = listed("i00001", verdict={"ranking": list("ABCD")})
    run = four([write_records([listed(shown=shown, verdict={"ranking": list("ABCD")}), good])], listwise=1)
    table = ranked(run)
    assert table["reason"].tolist() == ["not_recorded", ""]
    assert table["presented"].tolist() == [presented(run.study, run.items()[0], 1), FOUR]


def test_orders_that_were_not_recorded_are_not_asked(four, write_records):
    records = [listed(pass_="order-2", verdict={"ranking": list("ABCD")}), listed(pass_="other", reason="x")]
    run = four([write_records(records)], listwise=3)
    assert [plan.pass_ for plan in listwise_plans(run.study)] == ["order-2"]
    assert ranked(run)["reason"].tolist() == ["", "not_recorded"]


@pytest.mark.parametrize("shown", [None, "ALPHA", ["ALPHA", "ALPHA"], ["ALPHA", 1], {"A": "ALPHA"}])
def test_bad_lists_of_what_was_shown(four, write_records, shown):
    told = "line 2 has no list 'shown' of the systems in the order shown, each once"
    bad = listed("i00001", verdict={"ranking": list("ABCD")}) | {"shown": shown}
    records = [listed(verdict={"ranking": list("ABCD")}), bad]
    with pytest.raises(DataError, match=f"params/old.jsonl: {told}"):
        listwise_plans(four([write_records(records)], listwise=1).study)
    run = four([NOISY], listwise=1, name="other")
    records[0]["shown"] = list(presented(run.study, run.items()[0], 1))
    path = run.folder.parent / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    with pytest.raises(DataError, match=f"1 of 2 records cannot be imported, so none was: {told}"):
        import_verdicts(run, path, "noisy")


def test_an_import_of_another_order_is_not_planned(four):
    run = four([NOISY], items=1, listwise=1)
    shown = presented(run.study, run.items()[0], 1)
    path = run.folder.parent / "records.jsonl"
    path.write_text(json.dumps(listed(shown=shown[::-1], verdict={"ranking": list("ABCD")})))
    told = " then ".join(shown[::-1])
    with pytest.raises(DataError, match=f"does not plan: item i00000, listwise order-1, {told}"):
        import_verdicts(run, path, "noisy")


def test_rankings_and_matches_fit_the_measures(four):
    run = ask(four([NOISY], items=4, listwise=2))
    rows = listwise_table(ranked(run), matches_of(run), ci_level=0.95, resamples=50, seed=1)
    agreement = rows.set_index("measure").loc["listwise_agreement"]
    assert agreement["numerator"] <= agreement["denominator"] <= 8 * 6
