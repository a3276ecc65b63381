"""The import of JudgeBench outputs: a small file of its layout, both orders, and what cannot be a judged pair."""

from __future__ import annotations

import asyncio
import json

import pytest

from judgelab.errors import DataError
from judgelab.judging.judges.recorded import records_of
from judgelab.judging.runner import run_passes
from judgelab.measure.position import position_table
from judgelab.report.position_data import open_position
from judgelab.report.runnable import stage_lines
from judgelab.study.freeze import freeze
from judgelab.study.protocol import load_params
from judgelab.study.sources import import_judge_bench

KEY = "sk-" + "abcdefghijklmnop"  # has the form of a provider's key
FILE = "dataset=judgebench,response_model=scribe,judge_name=arena_hard,judge_model=warden.jsonl"


def said(decision, model="warden"):
    return {"judgment": {"judge_model": model, "prompt": "...", "response": f"[[{decision}]]"}, "decision": decision}


def pair(number, label="A>B", decisions=("A>B", "B>A"), **changes):
    return {
        "pair_id": f"p{number}",
        "original_id": number,
        "source": "livebench-math",
        "question": f"What is {number} and {number}?",
        "response_model": "scribe",
        "response_A": f"It is {2 * number}.",
        "response_B": "It is 1, as everybody knows.",
        "label": label,
        "judge_name": "arena_hard",
        "judgments": [said(decision) for decision in decisions],
    } | changes


@pytest.fixture
def made(project):
    def make(lines, name=FILE, run="bench"):
        write(project.root / "given" / name, lines)
        return import_judge_bench(project.root / "given" / name, run)

    return make


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))


def records(project, run="bench"):
    text = (project.outputs / run / "source" / "records.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_a_file_becomes_a_study_with_both_orders(made, project):
    lines = [
        pair(1),
        pair(2, "B>A", ("A>>B", "A=B")),
        pair(3, decisions=("A>B", None)),
        pair(4, judgments=[None, said("B<A")]),
    ]
    params, notes = made(lines)
    run, study = load_params(params)
    assert (run, study.system_names, study.passes) == (
        "bench",
        ("ALPHA", "BETA"),
        ("pairwise_original", "pairwise_swapped"),
    )
    judge = study.judges[0]
    assert (judge.name, judge.passes) == ("warden", ("pairwise_original", "pairwise_swapped"))
    # the letter is by place: in the second order response_B stood first
    found = [(one["item_id"], one["pass"], one["first"], one["verdict"], one["reason"]) for one in records(project)]
    assert found == [
        ("p1", "original", "ALPHA", "A", None),
        ("p1", "swapped", "BETA", "B", None),
        ("p2", "original", "ALPHA", "A", None),
        ("p2", "swapped", "BETA", "TIE", None),
        ("p3", "original", "ALPHA", "A", None),
        ("p3", "swapped", "BETA", None, "no_verdict_in_source"),
        ("p4", "original", "ALPHA", None, "call_failed"),
        ("p4", "swapped", "BETA", "A", None),
    ]
    assert len(records_of(judge)) == 8
    assert notes == [
        "read: 8 verdicts of 1 judge on 4 pairs of answers of scribe, from 1 file",
        "no verdict: 1 of 8 (no_verdict_in_source)",
        "no verdict: 1 of 8 (call_failed)",
        "left out: nothing",
        "the reference is the answer key (provenance answer_key): agreement is with what is right, not with people",
        "ALPHA is response_A and BETA is response_B, both by one model: stage 09 ranks two places, not two systems",
        "written: items.jsonl, human_labels.csv, records.jsonl in outputs/bench/source",
        "written: params/bench.yaml",
    ]
    assert stage_lines(params) == [
        "stages that can run: 01, 04 to 10",
        "02 cannot be answered: the reference is an answer key: nobody labelled, so that no people agree or disagree",
        "03 cannot be answered: the file holds no scores of single answers",
    ]


def test_the_study_runs_and_the_reference_is_no_persons(made):
    params, _ = made([pair(1), pair(2, "B>A", ("A>B", "A>B")), pair(3, decisions=("A>B", "B>A"))])
    run = freeze(*load_params(params))
    assert run.provenance == "answer_key"
    assert run.reference()["human"].tolist() == ["ALPHA", "BETA", "ALPHA"]
    assert set(run.reference()["n_initial"]) == {0}
    asyncio.run(run_passes(run, ["pairwise_original", "pairwise_swapped"]))
    data = open_position("bench")
    table = position_table(data.normalized, labels=data.labels, ci_level=0.95, resamples=100, seed=1)
    own = table[(table["judge"] == "warden") & (table["slice"] == "all") & (table["pass"] == "both")]
    rows = own.set_index("measure")
    assert rows.loc["swap_consistency", ["numerator", "denominator"]].tolist() == [2, 3]
    assert rows.loc["reversal_rate", ["numerator", "denominator"]].tolist() == [1, 3]
    assert rows.loc["first_position_rate", ["numerator", "denominator"]].tolist() == [4, 6]


def test_judges_asked_once_have_one_order(made, project):
    reward = {"judgment": {"judge_model": "Some/Reward-1B", "scores": [0.5, -1.25]}, "decision": "A>B"}
    params, notes = made([pair(1, judge_name="reward_model", judgments=[reward])], name="once.jsonl")
    _, study = load_params(params)
    assert (study.passes, study.position_test.enabled) == (("pairwise_original",), False)
    assert study.judges[0].name == "Some-Reward-1B"
    assert records(project)[0]["reply"] is None
    assert "one order only: 1 pair of Some-Reward-1B" in notes
    told = "06 cannot be answered: the file holds one order only (n = 0 of 1 item judged in both orders)"
    assert told in stage_lines(params)


def test_a_folder_of_judges(project):
    folder = project.root / "bench"
    other = [pair(1, judgments=[said("B>A", "guard"), said("A>B", "guard")])]
    write(folder / "outputs" / "b.jsonl", [pair(1), pair(2)])
    write(folder / "outputs" / "a.jsonl", other)
    write(folder / "outputs" / "c.jsonl", [pair(1, judge_name="vanilla"), pair(2), pair(3, judgments=[])])
    write(folder / "data.jsonl", ["not read"])
    params, notes = import_judge_bench(folder, "many")
    _, study = load_params(params)
    assert [judge.name for judge in study.judges if judge.kind == "recorded"] == [
        "guard",
        "warden-arena_hard",
        "warden-vanilla",
    ]
    assert study.repairs.run[1].judges == ("guard", "warden-arena_hard", "warden-vanilla")
    assert "left out: 1 x a pair without judgments" in notes
    assert "left out: 1 x a pair that the same judge judged before" in notes
    again, notes = import_judge_bench(folder, "many")
    assert (again, notes[-1]) == (params, "params/many.yaml is there already and was left as it is")


def test_the_judge_may_stand_in_the_files_name(made):
    plain = [{"decision": "A>B"}, {"decision": "B>A"}]
    params, _ = made([pair(1, judgments=plain)])
    assert load_params(params)[1].judges[0].name == "warden"
    params, _ = made([pair(1, judgments=plain)], name="no-model.jsonl", run="two")
    assert load_params(params)[1].judges[0].name == "arena_hard"


def refused(made, project, lines, **more):
    with pytest.raises(DataError) as caught:
        made(lines, **more)
    assert not (project.outputs / "bench").exists()
    assert not (project.root / "params" / "bench.yaml").exists()
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"pair_id": None}, "no pair_id"),
        ({"pair_id": " p"}, "pair_id is ' p'; an item's id is one line of plain characters"),
        ({"pair_id": "p\n1"}, "pair_id is 'p\\n1'; it must be one line without control characters"),
        ({"question": ""}, "question is ''; allowed is text"),
        ({"response_B": None}, "response_B is None; allowed is text"),
        ({"label": "A=B"}, "label is 'A=B'; allowed are A>B, B>A"),
        ({"judgments": [1]}, "judgment 1 is no object with a decision"),
        ({"judgments": [said("A>B")] * 3}, "judgments is no list of one or two judgments"),
        ({"judgments": [said("better: A")]}, "decision 1 is 'better: A'; allowed are"),
        ({"judgments": [said(1)]}, "decision 1 is 1; allowed are"),
        ({"judge_name": ["x"]}, "judge_name is ['x']; allowed are text and whole numbers"),
    ],
)
def test_one_bad_field(made, project, change, told):
    message = refused(made, project, [pair(1), pair(2, **change)])
    assert "1 of 2 entries are not as the format has them; nothing was written" in message
    assert f"line 2: {told}" in message


def test_bad_lines_are_counted_and_the_first_five_shown(made, project):
    message = refused(made, project, [pair(1), *(pair(number, label="?") for number in range(2, 9)), "{"])
    told = message.split("\n  ")
    assert told[0].endswith(": 8 of 9 entries are not as the format has them; nothing was written")
    assert len(told) == 7
    assert told[-1] == "and 3 more"


def test_a_decision_cut_out_of_a_reply_badly_is_no_verdict(made, project):
    made([pair(1, decisions=("A", "A>B>A"))])
    assert [one["reason"] for one in records(project)] == ["unreadable_decision"] * 2


def test_one_id_with_two_texts_and_files_without_judgments(made, project):
    message = refused(made, project, [pair(1), pair(1, "B>A", judge_name="vanilla", response_A="It is 3.")])
    assert "1 of 2 pairs are others than before; nothing was written" in message
    assert "response_A, label of p1 differs from" in message
    data = [{key: value for key, value in pair(1).items() if key not in ("judge_name", "judgments")}]
    assert "0 judged pairs in 1 entry; left out: 1 x a pair without judgments" in refused(made, project, data)


def test_a_key_is_refused_and_not_shown(made, project):
    for change in ({"pair_id": KEY}, {"judge_name": KEY}, {"judgments": [said("A>B", KEY)]}):
        message = refused(made, project, [pair(1, **change)])
        assert "looks like a key" in message
        assert KEY not in message
