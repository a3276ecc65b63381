"""`judgelab plan` and `judgelab ledger`: what they print, export, import and refuse."""

from __future__ import annotations

import asyncio
import json
import sys

import pandas as pd
import pytest
import yaml

from judgelab import cli
from judgelab.errors import DataError, RunError
from judgelab.judging.caps import raise_cap
from judgelab.judging.evidence import export_records, verdicts
from judgelab.judging.exchange import export_ledger, import_verdicts
from judgelab.judging.ledger import Ledger
from judgelab.judging.passes import plan_pass
from judgelab.judging.plan import duration, plan_table
from judgelab.judging.runner import run_passes
from judgelab.judging.tell import duration_words
from judgelab.study.terms import Limits

COIN = {"name": "coin", "kind": "control", "rule": "coin"}
NOISY = {"name": "noisy", "kind": "simulated", "error_rate": 0.3}
PRICES = {"input_per_million": 10_000, "output_per_million": 50_000, "currency": "EUR"}
ALL = ("direct", "pairwise_original", "pairwise_swapped")


def run_all(run, names=ALL):
    return asyncio.run(run_passes(run, names))


def calls_of(run):
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        return ledger.calls()


@pytest.fixture
def command(monkeypatch, capsys):
    """`judgelab ...` in this process: its status, and what it printed."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["judgelab", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return run


@pytest.mark.parametrize(
    ("calls", "tokens", "limits", "seconds"),
    [
        (100, 0, {"concurrency": 8}, 13 * 2.0),  # 13 rounds of 8
        (1, 0, {"concurrency": 8}, 2.0),
        (100, 0, {"concurrency": 100, "requests_per_minute": 30}, 3 * 60 + 2.0),  # 30 at 0, 1, 2 and 10 at 3 minutes
        (60, 0, {"concurrency": 60, "requests_per_minute": 60}, 2.0),
        (10, 50_000, {"concurrency": 10, "tokens_per_minute": 10_000}, 4 * 60 + 2.0),
    ],
)
def test_how_long_calls_take(calls, tokens, limits, seconds):
    assert duration(calls, tokens, Limits(**limits), 2.0) == seconds


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (12_000, "3 h 20 min")]
)
def test_durations_in_words(seconds, words):
    assert duration_words(seconds) == words


def test_a_plan_by_hand(make_run, server):
    judge = server.judge(prices=PRICES, limits={"concurrency": 4, "max_calls": 10})
    run = make_run([judge, COIN], items=6, split={"development_share": 0.5})
    table = plan_table(run.study).set_index("judge")
    prompts = [each.prompt for name in ALL for each in plan_pass(run, run.study.judges[0], name)]
    tokens = sum(len(prompt.system) + len(prompt.user) for prompt in prompts) // 4
    assert len(prompts) == 12  # three of the six items: two direct calls and two pairwise ones each
    row = table.loc["served"]
    assert row[["calls", "left", "tokens_in", "tokens_out"]].tolist() == [12, 12, tokens, 12 * 80]
    assert row["cost"] == pytest.approx(tokens * 0.01 + 12 * 80 * 0.05)
    assert (row["spent"], row["latency_from"], row["seconds"]) == (0.0, "assumed", 3 * 2.0)
    assert row["stops"] == "max_calls 10"
    assert table.loc["coin", ["calls", "left", "tokens_in", "seconds"]].tolist() == [12, 12, 0, 0.0]
    assert server.bodies == []


def test_a_plan_counts_what_is_left(make_run, server):
    run = make_run([server.judge(prices=PRICES), COIN], items=5)
    run_all(run, ["pairwise_original"])
    table = plan_table(run.study, run.path("ledger.sqlite")).set_index("judge")
    assert table.loc["served", ["calls", "left"]].tolist() == [20, 15]
    assert table.loc["served", "spent"] == 5 * (100 * 0.01 + 20 * 0.05)
    assert table.loc["served", "latency_from"] == "measured"
    assert 0 < table.loc["served", "latency_seconds"] < 1
    given = plan_table(run.study, run.path("ledger.sqlite"), latency=3.0).set_index("judge").loc["served"]
    assert (given["latency_from"], given["seconds"]) == ("given", 6.0)  # 15 calls, 8 at a time
    run_all(run)
    done = plan_table(run.study, run.path("ledger.sqlite")).set_index("judge").loc["served"]
    assert done[["left", "tokens_in", "cost", "seconds"]].tolist() == [0, 0, 0.0, 0.0]


def test_the_command_plan_sends_and_freezes_nothing(make_run, server, project, command):
    run = make_run([server.judge(prices=PRICES, limits={"max_cost": 1.0})], items=3, name="other")
    study = run.study.model_dump(mode="json")
    (project / "params" / "mine.yaml").write_text(yaml.safe_dump({"run": "mine", "study": study}), encoding="utf-8")
    code, out, err = command("plan", project / "params" / "mine.yaml", "--latency", "4")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "plan of run mine: 12 of 12 calls are left to ask"
    assert lines[1].split()[:3] == ["judge", "calls", "left"]
    assert lines[2].startswith("served     12    12")
    assert lines[2].endswith("0.00 EUR   8 s")  # 12 calls, 8 at a time
    assert "characters / 4; tokens out: 80 a call" in out
    assert "served 4 s a call (given)" in out
    assert "caps: served will be stopped before it passes max_cost 1" in out
    assert server.bodies == []
    assert not (project / "outputs" / "mine").exists()
    code, _, err = command("plan", project / "params" / "mine.yaml", "--set", "judges.0.limits.max_cost=none at all")
    assert code == 2
    assert "max_cost" in err


def test_the_command_ledger_shows_counts(make_run, server, command):
    server.script = lambda body, number: (
        server.completion("Hm.") if "What is 1 " in json.dumps(body) else server.good(body)
    )
    run = make_run([server.judge(prices=PRICES), COIN], items=3)
    code, _, err = command("ledger", "small")
    assert code == 2
    assert "nothing has been judged in this run yet" in err
    run_all(run, ["pairwise_original"])
    code, out, _ = command("ledger", "small")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert out.startswith("ledger of run small: 6 calls, 7 requests\n")
    assert lines[2][:8] == ["coin", "pairwise", "original", "verdict", "3", "3", "-", "-"]
    assert lines[3][:10] == ["served", "pairwise", "original", "unusable", "1", "2", "200", "40", "4.00", "EUR"]
    assert lines[4][:10] == ["served", "pairwise", "original", "verdict", "2", "2", "200", "40", "4.00", "EUR"]
    assert not any(line[0] == "open:" for line in lines)


def test_open_calls_and_raised_caps_are_shown(make_run, server, command):
    run = make_run([server.judge(limits={"max_calls": 2})], items=3)
    with pytest.raises(Exception, match="max_calls"):
        run_all(run, ["pairwise_original"])
    code, out, _ = command("ledger", "small", "--raise", "served.max_calls=3")
    assert (code, out) == (0, "limits.max_calls of judge served raised from 2 to 3 for run small\n")
    code, out, _ = command("ledger", "small")
    assert "open: served pairwise original: 1 of 3 calls\n" in out
    assert "raised: served max_calls to 3\n" in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("served.max_calls=2", "a number above 2 is needed"),
        ("served.max_calls=many", "a number above 2 is needed"),
        ("served.max_calls=inf", "a number above 2 is needed"),
        ("served.max_cost=2", "there is no such cap"),
        ("served.max_call=2", "the form is JUDGE.CAP=VALUE with a judge of served and a cap of max_calls"),
        ("coin.max_calls=2", "with a judge of served and"),
        ("max_calls", "the form is"),
    ],
)
def test_caps_that_cannot_be_raised(make_run, server, change, message):
    run = make_run([server.judge(limits={"max_calls": 2}), COIN])
    with pytest.raises(RunError, match=message):
        raise_cap(run, change)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_every_call_is_exported(make_run, server, project, command, ending):
    run = make_run([server.judge(prices=PRICES), NOISY], items=4)
    run_all(run)
    target = project / f"calls.{ending}"
    code, out, err = command("ledger", "small", "--export", target)
    assert code == 0, err
    assert out == f"written: calls.{ending}\n"
    calls = calls_of(run)
    found = pd.read_parquet(target) if ending == "parquet" else pd.read_csv(target)
    assert list(found.columns) == list(calls.columns)
    for name in calls.columns:
        ours, theirs = (table[name].astype(object).where(table[name].notna(), None) for table in (calls, found))
        assert ours.tolist() == theirs.tolist(), name


def test_columns_of_a_parquet_file_keep_their_type_without_values(make_run, project):
    run = make_run([COIN], items=1)
    run_all(run)
    export_ledger(run, project / "calls.parquet")
    types = pd.read_parquet(project / "calls.parquet").dtypes.astype(str)
    assert types[["cost", "tokens_cached", "verdict", "batch_id"]].tolist() == ["float64", "Int64", "str", "str"]


def test_the_evidence_files_are_exported_to_a_folder(make_run, project):
    run = make_run([NOISY], items=6)
    run_all(run)
    paths = export_ledger(run, project / "there")
    assert [path.name for path in paths] == [
        "direct_scores.jsonl", "pairwise_original.jsonl", "pairwise_swapped.jsonl", "invalid_outputs.jsonl",
    ]  # fmt: skip
    table = verdicts(run)
    count = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths[:3])
    assert count == (table["status"] == "verdict").sum()
    assert not run.path("direct_scores.jsonl").exists()


def test_an_ending_that_is_not_known(make_run, project):
    run = make_run([COIN], items=1)
    with pytest.raises(RunError, match=r"the ending \.xlsx is not known; allowed are \.parquet, \.csv, or a folder"):
        export_ledger(run, project / "calls.xlsx")


SAME = ["strategy", "pass", "item_id", "system", "first", "second", "verdict", "total", "status", "reason", "reply"]


def write(project, records, name="made.jsonl"):
    path = project / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_what_was_exported_can_be_imported_into_another_run(make_run, server, project, command):
    run = make_run([NOISY], items=8)
    run_all(run)
    path = write(project, export_records(run, "noisy"))
    again = make_run([server.judge(), NOISY], items=8, name="again")
    changed = [json.loads(line) | {"record": "served"} for line in path.read_text().splitlines()]
    code, out, err = command("ledger", "again", "--import", write(project, changed), "--judge", "served")
    assert (code, out) == (0, "32 verdicts of served imported from made.jsonl\n"), err
    run_all(again)
    assert server.bodies == []  # every call of this judge is finished
    table = verdicts(again)
    assert table.loc[table["judge"] == "served", SAME].reset_index(drop=True).equals(verdicts(run)[SAME])
    with Ledger(again.path("ledger.sqlite"), read_only=True) as ledger:
        assert ledger.spent("served").calls == 0


def test_an_import_writes_all_or_nothing(make_run, project):
    run = make_run([NOISY, COIN], items=3)
    run_all(run, ["direct"])
    before = calls_of(run)
    place = {"record": "noisy", "strategy": "pairwise", "pass": "original"}
    planned = {each.key.item_id: each.call.presentation for each in plan_pass(run, run.study.judges[0], ALL[1])}
    good = [
        place | {"item_id": item, "first": shown[0], "second": shown[1], "verdict": "A"}
        for item, shown in planned.items()
    ]
    finished = {"strategy": "direct", "pass": "direct", "item_id": "i00000", "system": "ALPHA", "reply": "{}"}
    other_order = good[1] | {"first": good[1]["second"], "second": good[1]["first"]}
    bad = [
        *(good[0], good[0], good[0] | {"item_id": "i99999"}, other_order, finished, ["no"]),
        *(good[2] | {"pass": "third"}, {"record": "coin"}),
    ]
    with pytest.raises(DataError) as caught:
        import_verdicts(run, write(project, bad), "noisy")
    message = str(caught.value)
    assert message.startswith("made.jsonl: 6 of 7 records cannot be imported, so none was: line 2 repeats the call of ")
    assert "line 3 is of a call that the protocol does not plan: item i99999, pairwise original, " in message
    assert "line 4 is of a call that the protocol does not plan: " in message
    assert "line 5 is of a call that is finished already and is kept: item i00000, direct, ALPHA" in message
    assert "line 6 is not a JSON object; and 1 more" in message
    assert calls_of(run).equals(before)
    assert import_verdicts(run, write(project, good), "noisy") == 3
    with pytest.raises(DataError, match=r"3 of 3 records cannot be imported.*finished already"):
        import_verdicts(run, write(project, good), "noisy")


def test_replies_are_imported_as_the_judge_would_be_read(make_run, project):
    run = make_run([NOISY], items=1)
    (planned,) = plan_pass(run, run.study.judges[0], "pairwise_original")
    first, second = planned.call.presentation
    record = {"item_id": "i00000", "strategy": "pairwise", "pass": "original", "first": first, "second": second}
    import_verdicts(run, write(project, [record | {"reply": "The winner is clear."}]), "noisy")
    assert calls_of(run)[["status", "reason"]].to_numpy().tolist() == [["unusable", "no_json"]]


def test_imports_that_cannot_be(make_run, project, command):
    run = make_run([COIN], items=1)
    with pytest.raises(RunError, match="has no judge 'noisy'; its judges are coin"):
        import_verdicts(run, project / "none.jsonl", "noisy")
    with pytest.raises(DataError, match=r"none\.jsonl: no such file"):
        import_verdicts(run, project / "none.jsonl", "coin")
    with pytest.raises(DataError, match="no record of judge 'coin'"):
        import_verdicts(run, write(project, [{"record": "other"}]), "coin")
    assert not run.path("ledger.sqlite").exists()
    code, _, err = command("ledger", "small", "--import", "x.jsonl")
    assert (code, err) == (2, "judgelab: --import FILE and --judge NAME go together\n")
