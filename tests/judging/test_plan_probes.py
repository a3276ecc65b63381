"""`judgelab plan` with probes and repairs: as many calls as are then asked, and nothing is sent or frozen."""

from __future__ import annotations

import asyncio
import sys

import pytest
import yaml

from judgelab import cli
from judgelab.errors import DataError, JudgeError, RunError
from judgelab.judging import repairs
from judgelab.judging.examples import TfidfSimilarity
from judgelab.judging.ledger import Ledger
from judgelab.judging.passes import PASSES, planned_calls
from judgelab.judging.plan import battery_lines, cost_table, plan_table
from judgelab.judging.probes import probe_plans
from judgelab.judging.repairs import repair_plans
from judgelab.judging.runner import run_passes
from judgelab.judging.work import passes_of
from judgelab.study.protocol import parse_study
from judgelab.study.unfrozen import UnfrozenStudy

NOISY = {"name": "noisy", "kind": "simulated", "error_rate": 0.3, "family": "house"}
STEADY = {"name": "steady", "kind": "simulated", "error_rate": 0.1, "passes": ["direct"]}
COIN = {"name": "coin", "kind": "control", "rule": "coin"}
REPAIRS = [
    "verdict_only",
    {"kind": "reasoning_first", "max_tokens": 900},
    {"kind": "level_descriptions", "levels": {1: "bad", 5: "good"}},
    {"kind": "few_shot", "examples": 2, "strategies": ["pairwise", "direct"]},
    {"kind": "retrieved_examples", "examples": 2},
    {"kind": "self_consistency", "samples": 3},
    "logprob_scores",
    "both_presentations",
    "recalibration",
]
TWO = {"ALPHA": {}, "BETA": {}}
THREE = {"ALPHA": {}, "BETA": {}, "GAMMA": {}}
BATTERY = {
    "human_labels": {"path": "params/labels.csv"},
    "split": {"development_share": 0.3},
    "probes": {"run": "all"},
    "repairs": {"run": REPAIRS},
}
EMBEDDED = {
    "kind": "retrieved_examples",
    "examples": 2,
    "embeddings": {"base_url": "http://127.0.0.1:9/v1", "model": "none"},  # nobody listens there
}


@pytest.fixture
def battery(make_run, raw_item, project):
    """Freeze a run of a study with labels, probes and repairs; ALPHA is better than BETA, better than GAMMA."""

    def make(judges, systems=TWO, items=8, **changes):
        names = list(systems)
        answers = {"GAMMA": "no idea"}
        rows = [raw_item(number) for number in range(items)]
        for row in rows:
            row["answers"] = {name: row["answers"].get(name, answers.get(name)) for name in names}
        pairs = [(x, y) for place, x in enumerate(names) for y in names[place + 1 :]]
        header = "item_id,reviewer_id,system_x,system_y,preference,score_x,score_y,is_adjudicated"
        if len(names) == 2:
            header = "item_id,reviewer_id,alpha_score,beta_score,preference,is_adjudicated"
        lines = [header]
        for number, row in enumerate(rows):
            for x, y in pairs:
                wins, scores = (y if number % 3 == 0 else x), f"{1 + number % 5},{5 - number % 4}"
                pair = f",{x},{y},{wins},{scores}" if len(names) > 2 else f",{scores},{wins}"
                lines.append(f"{row['item_id']},ann{pair},false")
        (project / "params" / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return make_run(judges, rows, systems=systems, **(BATTERY | changes))

    return make


def every_plan(run):
    return [*passes_of(run.study, PASSES), *probe_plans(run), *repair_plans(run)]


def run_all(run, plans):
    """What was planned and asked, summed by judge."""
    told = asyncio.run(run_passes(run, plans))
    return told.groupby("judge")[["planned", "asked"]].sum()


def planned(run):
    return plan_table(run.study, run.path("ledger.sqlite")).set_index("judge")


@pytest.mark.parametrize(
    ("systems", "limits"),
    [(TWO, {}), (THREE, {}), (TWO, {"items": 3}), (THREE, {"items": 2})],
    ids=["two", "three", "two, some items", "three, some items"],
)
def test_as_many_calls_are_planned_as_are_asked(battery, systems, limits):
    changes = {"probes": {"run": "all", **limits}, "repairs": {"run": REPAIRS, **limits}}
    run = battery([NOISY, STEADY, COIN], systems, **changes)
    plans = every_plan(run)
    before = planned(run)
    half = run_all(run, plans[::2])
    after = planned(run)
    assert before["left"].equals(before["calls"])
    assert after["calls"].equals(before["calls"])
    assert (after["calls"] - after["left"]).to_dict() == half["asked"].reindex(after.index).to_dict()
    told = run_all(run, plans)
    assert told["planned"].reindex(before.index).tolist() == before["calls"].tolist()
    assert told["asked"].reindex(before.index).tolist() == after["left"].tolist()
    done = planned(run)
    assert done["left"].tolist() == [0, 0, 0]
    assert done["calls"].equals(before["calls"])


def test_calls_of_probes_and_repairs_by_hand(battery):
    run = battery([NOISY, STEADY, COIN], items=10, probes={"run": ["repetition", "identical", "labels"], "items": 4})
    table = planned(run)
    # 7 items for evaluation, of which 4 are probed: two repetitions and two alphabets in two presentations, and each
    # of two answers against itself
    assert table["probe_calls"].to_dict() == {"noisy": 4 * (2 * 2 + 2 * 2 + 2), "steady": 0, "coin": 40}
    # noisy: verdict_only, reasoning_first, retrieved_examples and self_consistency (3 samples) in two presentations,
    # few_shot in them and directly, level_descriptions directly; the scores of 3 development items for recalibration
    pairwise, direct = 7 * 2 * (1 + 1 + 1 + 3 + 1), 7 * 2 * 2
    # steady has no pairwise pass: verdict_only, reasoning_first, self_consistency, few_shot and levels directly
    assert table["repair_calls"].to_dict() == {
        "noisy": pairwise + direct + 3 * 2,
        "steady": 7 * 2 * (1 + 1 + 3 + 1 + 1) + 3 * 2,
        "coin": 0,
    }
    plain = table["calls"] - table["probe_calls"] - table["repair_calls"]
    assert plain.to_dict() == {"noisy": 7 * 4, "steady": 7 * 2, "coin": 7 * 4}


def test_without_probes_and_repairs_no_labels_are_read(make_run):
    study = make_run([NOISY], human_labels=None).study
    values = study.model_dump(mode="json") | {"human_labels": {"path": "params/nowhere.csv"}}
    table = plan_table(parse_study(values))
    assert table[["calls", "probe_calls", "repair_calls", "left"]].to_numpy().tolist() == [[16, 0, 0, 16]]
    assert list(battery_lines(table)) == []
    with pytest.raises(DataError, match=r"nowhere\.csv"):
        plan_table(parse_study(values | {"probes": {"run": ["padding"]}}))


def test_a_study_without_labels_is_probed_all_the_same(make_run):
    run = make_run([NOISY], probes={"run": "all"}, repairs={"run": ["verdict_only", "few_shot"]})
    table = planned(run)
    assert table.loc["noisy", "calls"] == sum(len(p.calls(item)) for p in every_plan(run) for item in run.items())
    assert table.loc["noisy", "repair_calls"] == 4 * 2  # there are no examples to be shown


def test_the_files_say_what_freezing_keeps(battery):
    run = battery([NOISY], THREE)
    data = UnfrozenStudy(run.study)
    assert data.items() == run.items()
    assert list(data.each_evaluation_item()) == list(run.each_evaluation_item())
    for split in ("evaluation", "development", None):
        assert data.reference(split).equals(run.reference(split))
    with pytest.raises(RunError, match="not frozen"):
        data.path("embeddings.jsonl")


def test_tokens_are_those_of_the_prompts_that_will_be_sent(battery, server):
    prices = {"input_per_million": 1_000_000, "output_per_million": 1_000_000, "currency": "EUR"}
    run = battery([server.judge(prices=prices, limits={"max_calls": 20, "concurrency": 1})])
    table = planned(run).loc["served"]
    calls = [
        (plan, each)
        for plan in every_plan(run)
        for item in run.items()
        if item.split == plan.split
        for each in planned_calls(run.study, plan.judge, plan.calls(item))
    ]
    first = [plan for plan, _ in calls if plan.pass_.startswith("reasoning_first/")]
    characters = sum(len(each.prompt.system) + len(each.prompt.user) for _, each in calls)
    received = (len(calls) - len(first)) * 80 + len(first) * 900
    assert table[["calls", "tokens_in", "tokens_out"]].tolist() == [len(calls), characters // 4, received]
    assert table["cost"] == pytest.approx(characters // 4 + received)
    assert table["stops"] == "max_calls 20"
    assert list(battery_lines(plan_table(run.study)))[-1].startswith("tokens out of calls that put reasons first")
    assert cost_table(run)["cost (est.)"].tolist() == [f"{characters // 4 + received:.2f} EUR"]
    assert server.bodies == []
    with pytest.raises(JudgeError, match="max_calls"):
        run_all(run, every_plan(run))
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        finished = len(ledger.calls().query("status != 'failed'"))
    assert finished == 20  # it was stopped within a pass
    assert planned(run).loc["served", "left"] == len(calls) - 20


def test_no_endpoint_for_embeddings_is_asked(battery, monkeypatch):
    def refuse(*_):
        raise AssertionError("an endpoint was asked")

    class Found(TfidfSimilarity):
        def __init__(self, *_):
            super().__init__(["What is 3 plus one?", "What is 5 plus one?"])

        def prepare(self, texts):
            pass

    changes = {"probes": {}, "repairs": {"run": [EMBEDDED, "verdict_only"]}}
    run = battery([NOISY], **changes)
    monkeypatch.setattr(repairs, "EmbeddingSimilarity", refuse)
    before, cost = planned(run).loc["noisy"], cost_table(run).set_index("judge").loc["noisy"]
    monkeypatch.setattr(repairs, "EmbeddingSimilarity", Found)
    plans = every_plan(run)
    half = run_all(run, [plan for plan in plans if plan.pass_ != "retrieved_examples/swapped"])
    monkeypatch.setattr(repairs, "EmbeddingSimilarity", refuse)
    after = planned(run).loc["noisy"]
    assert before["calls"] == cost["calls"] == after["calls"]
    assert before["left"] - half.loc["noisy", "asked"] == after["left"] == 6  # items for evaluation
    monkeypatch.setattr(repairs, "EmbeddingSimilarity", Found)
    assert run_all(run, plans).loc["noisy"].tolist() == [before["calls"], 6]
    monkeypatch.setattr(repairs, "EmbeddingSimilarity", refuse)
    assert planned(run).loc["noisy", "left"] == 0


def test_the_table_of_stage_01_counts_the_same(battery, make_run):
    run = battery([NOISY, COIN])
    table, wanted = cost_table(run).set_index("judge"), planned(run)
    names = {"calls": "calls", "of probes": "probe_calls", "of repairs": "repair_calls"}
    for column, same in names.items():
        assert table[column].to_dict() == wanted[same].to_dict()
    plain = cost_table(make_run([NOISY], name="plain"))
    assert list(plain)[:4] == ["judge", "what it is", "calls", "calls to a model"]
    assert plain.loc[0, "calls"] == 16


def test_the_command_names_probes_and_repairs(battery, project, monkeypatch, capsys):
    study = battery([NOISY, COIN], probes={"run": ["repetition"]}, repairs={"run": ["verdict_only"]}).study
    path = project / "params" / "mine.yaml"
    path.write_text(yaml.safe_dump({"run": "mine", "study": study.model_dump(mode="json")}), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["judgelab", "plan", str(path)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    out = capsys.readouterr().out
    assert ended.value.code == 0
    # 6 items: 4 plain calls, 2 presentations x 2 repetitions; and 2 presentations for noisy
    assert out.splitlines()[0] == f"plan of run mine: {6 * 10 + 6 * 8} of {6 * 10 + 6 * 8} calls are left to ask"
    assert "probes: 48 of the calls: noisy 24, coin 24" in out
    assert "repairs: 12 of the calls: noisy 12" in out
    assert not (project / "outputs" / "mine").exists()
