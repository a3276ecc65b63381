"""The passes and what they leave behind: which calls are planned, the table of verdicts, the evidence files."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter

import pytest

from judgelab.errors import LedgerError, RunError
from judgelab.judging import passes
from judgelab.judging.evidence import export_records, verdicts, write_evidence
from judgelab.judging.passes import plan_pass
from judgelab.judging.plan import cost_table
from judgelab.judging.progress import LedgerWatch
from judgelab.judging.runner import run_passes

COIN = {"name": "coin", "kind": "control", "rule": "coin"}
FIRST = {"name": "first", "kind": "control", "rule": "first"}
NOISY = {"name": "noisy", "kind": "simulated", "error_rate": 0.3}
THREE = {"ALPHA": {}, "BETA": {}, "GAMMA": {}}
ALL = ("direct", "pairwise_original", "pairwise_swapped")
COLUMNS = [
    "judge", "strategy", "pass", "item_id", "category", "system_x", "system_y", "system", "first", "second", "verdict",
    "confidence", "total", "score_correctness", "score_clarity", "critical_error", "reason_codes", "order", "status",
    "reason", "attempts", "latency_seconds", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "cost",
    "model", "frame_sha256", "reply",
]  # fmt: skip


def three_answers(raw_item, count=4):
    return [raw_item(n, answers={"ALPHA": f"a {n}", "BETA": f"b {n}", "GAMMA": f"c {n}"}) for n in range(count)]


def run_all(run, names=ALL):
    return asyncio.run(run_passes(run, names))


def test_direct_calls_of_all_systems_are_mixed(make_run):
    run = make_run([COIN, FIRST], items=40)
    planned = plan_pass(run, run.study.judges[0], "direct")
    systems = [entry.call.presentation[0] for entry in planned]
    assert Counter(systems) == {"ALPHA": 40, "BETA": 40}
    changes = sum(one != two for one, two in itertools.pairwise(systems))
    assert 20 < changes < 60  # about half of 79; one system after the other would give 1, in turn 79
    assert systems == [entry.call.presentation[0] for entry in plan_pass(run, run.study.judges[1], "direct")]
    assert [e.call.item.item_id for e in planned] != sorted(e.call.item.item_id for e in planned)


def test_the_order_of_calls_follows_the_seed(make_run):
    one, two = (make_run([COIN], items=10, name=f"s{seed}", random_seed=seed) for seed in (1, 2))
    orders = [[e.call.item.item_id for e in plan_pass(run, run.study.judges[0], "direct")] for run in (one, two)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


@pytest.mark.parametrize("systems", [2, 3])
def test_the_swapped_pass_is_the_exact_reverse(make_run, raw_item, systems):
    items = three_answers(raw_item, 12) if systems == 3 else 12
    run = make_run([COIN], items=items, systems=dict(list(THREE.items())[:systems]))
    original, swapped = (
        {(e.call.item.item_id, frozenset(e.call.presentation)): e for e in plan_pass(run, run.study.judges[0], name)}
        for name in ALL[1:]
    )
    assert len(original) == 12 * {2: 1, 3: 3}[systems]
    assert set(original) == set(swapped)
    assert (
        len({entry.call.presentation for entry in original.values()}) == {2: 2, 3: 6}[systems]
    )  # a coin for each pair
    for key, entry in original.items():
        assert entry.call.presentation == swapped[key].call.presentation[::-1]
        assert entry.prompt.frame == swapped[key].prompt.frame
        assert entry.prompt.answers == swapped[key].prompt.answers[::-1]
        assert entry.key.prompt_sha256 != swapped[key].key.prompt_sha256


def test_a_swap_that_changes_more_stops_the_run_before_a_call(make_run, server, monkeypatch):
    run = make_run([server.judge()])
    real = passes.render

    def leaning(study, item, strategy, presentation, wording):
        prompt = real(study, item, strategy, presentation, wording)
        hint = " Note that this system is careful." if presentation[0] == "BETA" else ""
        return type(prompt)(prompt.system + hint, prompt.user, prompt.frame, prompt.answers, prompt.slots)

    monkeypatch.setattr(passes, "render", leaning)
    with pytest.raises(RunError, match="differs in more than the order"):
        run_all(run)
    assert server.bodies == []


def test_development_items_are_not_judged(make_run):
    run = make_run([COIN], items=10, split={"development_share": 0.4})
    assert len(plan_pass(run, run.study.judges[0], "pairwise_original")) == 6


@pytest.mark.parametrize("systems", [2, 3])
def test_one_row_a_planned_call(make_run, raw_item, systems):
    items = three_answers(raw_item) if systems == 3 else 4
    run = make_run([COIN, FIRST], items=items, systems=dict(list(THREE.items())[:systems]))
    run_all(run, ["direct"])
    table = verdicts(run)
    assert list(table.columns) == COLUMNS
    n_pairs = {2: 1, 3: 3}[systems]
    assert len(table) == 2 * 4 * (systems + 2 * n_pairs)
    assert not table.duplicated(["judge", "pass", "item_id", "system_x", "system_y", "system"]).any()
    assert table["judge"].drop_duplicates().tolist() == ["coin", "first"]  # the protocol's order
    status = table.groupby("strategy")["status"].unique()
    assert (list(status["direct"]), list(status["pairwise"])) == (["verdict"], ["missing"])
    assert set(table.loc[table["status"] == "missing", "reason"]) == {"not_judged"}
    pairwise = table[table["strategy"] == "pairwise"]
    order = list(THREE)
    assert all(order.index(x) < order.index(y) for x, y in zip(pairwise["system_x"], pairwise["system_y"], strict=True))
    assert all({row.first, row.second} == {row.system_x, row.system_y} for row in pairwise.itertuples())
    assert pairwise["system"].isna().all()
    direct = table[table["strategy"] == "direct"]
    assert direct["first"].isna().all()
    assert direct["system_x"].notna().all() == (systems == 2)


def test_the_total_is_weighted(make_run, write_records):
    scores = {"correctness": 5, "clarity": 2}
    judge = write_records(
        [
            {
                "item_id": "i00000",
                "strategy": "direct",
                "pass": "direct",
                "system": "ALPHA",
                "verdict": {"scores": scores},
            }
        ]
    )
    criteria = [{"name": "correctness", "weight": 3}, {"name": "clarity", "weight": 1}]
    run = make_run([judge], items=1, direct_scale={"criteria": criteria})
    run_all(run)
    row = verdicts(run).query("system == 'ALPHA'").iloc[0]
    assert row["total"] == (3 * 5 + 1 * 2) / 4
    assert (row["score_correctness"], row["score_clarity"]) == (5, 2)


def lines(run, name):
    return [json.loads(line) for line in run.path(name).read_text(encoding="utf-8").splitlines()]


def test_evidence_files(make_run):
    run = make_run([NOISY], items=20)
    run_all(run)
    table = verdicts(run)
    write_evidence(run, table)
    counts = table.groupby(["pass", "status"]).size()
    direct, original, swapped, invalid = (
        lines(run, f"{name}.jsonl")
        for name in ("direct_scores", "pairwise_original", "pairwise_swapped", "invalid_outputs")
    )
    assert (len(direct), len(original), len(swapped)) == tuple(
        counts[pass_, "verdict"] for pass_ in ("direct", "original", "swapped")
    )
    assert len(invalid) == (table["status"] == "unusable").sum() > 0
    assert {row["reason"] for row in invalid} == {"no_json"}
    assert {len(row["presentation"]) for row in invalid} == {1, 2}
    assert all(None not in row.values() for row in (*direct, *original, *swapped))
    assert all(isinstance(row[name], int) for row in direct for name in ("score_correctness", "score_clarity"))
    assert {row["verdict"] for row in original} <= {"A", "B", "TIE"}
    assert original[0]["reason_codes"] == []
    before = {path.name: path.read_bytes() for path in run.folder.glob("*.jsonl")}
    write_evidence(run, verdicts(run))
    assert before == {path.name: path.read_bytes() for path in run.folder.glob("*.jsonl")}


SAME = [
    "strategy",
    "pass",
    "item_id",
    "system",
    "first",
    "second",
    "verdict",
    "total",
    "score_clarity",
    "status",
    "reason",
]


def test_exported_records_give_equal_verdicts(make_run, write_records):
    run = make_run([NOISY], items=12)
    run_all(run)
    wanted = verdicts(run)
    assert wanted["status"].nunique() == 2
    again = make_run([write_records(export_records(run, "noisy"), name="noisy")], items=12, name="again")
    run_all(again)
    assert verdicts(again)[[*SAME, "confidence", "reply"]].equals(wanted[[*SAME, "confidence", "reply"]])


def test_exported_records_of_a_recorded_judge_give_equal_verdicts(make_run, write_records):
    place = {"item_id": "i00000", "strategy": "pairwise", "first": "BETA", "second": "ALPHA"}
    direct = {"item_id": "i00000", "strategy": "direct", "pass": "direct"}
    judge = write_records(
        [
            place | {"pass": "original", "verdict": "B", "reply": "Output (b)"},
            place
            | {"first": "ALPHA", "second": "BETA", "pass": "swapped", "reply": "x", "reason": "no_verdict_in_source"},
            direct | {"system": "ALPHA", "verdict": {"scores": {"correctness": 1, "clarity": 5}}},
        ]
    )
    run = make_run([judge], items=1)
    run_all(run)
    wanted = verdicts(run)
    assert wanted["status"].value_counts().to_dict() == {"verdict": 2, "unusable": 2}
    again = make_run([write_records(export_records(run, "old"), name="old", record="old")], items=1, name="again")
    run_all(again)
    assert verdicts(again)[SAME].equals(wanted[SAME])


def test_verdicts_before_anything_was_judged(make_run):
    with pytest.raises(LedgerError, match="nothing has been judged in this run yet"):
        verdicts(make_run([COIN]))


def test_calls_and_prices(make_run, server):
    prices = {"input_per_million": 1_000_000, "output_per_million": 500_000, "currency": "EUR"}
    judges = [server.judge(prices=prices), COIN, FIRST | {"passes": ["direct"]}]
    run = make_run(judges, items=5)
    table = cost_table(run).set_index("judge")
    assert table["calls"].to_dict() == {"served": 20, "coin": 20, "first": 10}
    assert table["calls to a model"].to_dict() == {"served": 20, "coin": 0, "first": 0}
    planned = [entry.prompt for name in ALL for entry in plan_pass(run, run.study.judges[0], name)]
    characters = sum(len(prompt.system) + len(prompt.user) for prompt in planned)
    tokens_in, tokens_out = characters // 4, 20 * 80
    assert table.loc["served", ["tokens in (est.)", "tokens out (est.)"]].tolist() == [tokens_in, tokens_out]
    # one EUR a token in, half a EUR a token out
    assert table.loc["served", "cost (est.)"] == f"{tokens_in + tokens_out / 2:.2f} EUR"
    assert table.loc["coin", "cost (est.)"] == "0.00 USD"
    assert server.bodies == []


def test_a_watch_shows_what_another_process_judges(make_run, server, capsys):
    server.script = lambda body, number: server.Answer(server.good(body).body, delay=0.05)
    run = make_run([server.judge(concurrency=1)], items=6)
    with LedgerWatch(run.path("ledger.sqlite"), ["served"], ["pairwise"], seconds=0.02):
        run_all(run, ["pairwise_original"])
    assert "judging (served): 100%" in capsys.readouterr().err
