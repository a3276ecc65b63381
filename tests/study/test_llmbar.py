"""The import of LLMBar: a small folder of its layout, and the published files where they are."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from judgelab.errors import DataError
from judgelab.study.freeze import freeze
from judgelab.study.items import read_items
from judgelab.study.protocol import load_params, parse_study
from judgelab.study.sources import IMPORTERS
from judgelab.study.sources.llmbar import import_llmbar, read_llmbar

ENTRIES = [
    {"input": "Say yes.", "output_1": "yes", "output_2": "no", "label": 1},
    {"input": "Say no.", "output_1": "yes", "output_2": "no", "label": 2},
    {"input": "Say so.", "output_1": "so", "output_2": "not so", "label": 1},
]


def outcome(plain, swapped):
    """One pairwise result: winners with swap = False and swap = True, with the replies that make them."""
    letters = {("1", 0): "a", ("2", 0): "b", ("1", 1): "b", ("2", 1): "a"}
    return {
        f"swap = {bool(turn)}": {
            "completion": [f"Output ({letters[winner, turn]})" if winner else "", "stop"],
            "winner": winner,
        }
        for turn, winner in enumerate((plain, swapped))
    }


def rating(first, second, plain, swapped):
    winners = {"swap = False": {"winner": plain}, "swap = True": {"winner": swapped}}
    return {"score_1": [first, "stop"], "score_2": [second, "stop"], **winners}


def write_set(folder, evaluators, entries=ENTRIES):
    """evaluators: (judge, prompt) -> outcomes, statistics."""
    folder.mkdir(parents=True)
    (folder / "dataset.json").write_text(json.dumps(entries))
    for (judge, prompt), (outcomes, statistics) in evaluators.items():
        place = folder / "evaluators" / judge / prompt
        place.mkdir(parents=True)
        results = [{**entry, "results": [found]} for entry, found in zip(entries, outcomes, strict=True)]
        (place / "result.json").write_text(json.dumps(results))
        (place / "statistics.json").write_text(json.dumps(statistics))


def counts(false, true, both, equal, n=3):
    named = {"correct_False": false, "correct_True": true, "correct_both": both, "equal": equal}
    return {name: f"{count} / {n} = {100 * count / n}%" for name, count in named.items()}


# labels are 1, 2, 1: with swap = False right twice, with swap = True right once and silent once
PAIRWISE = ([outcome("1", "1"), outcome("2", "1"), outcome("2", None)], counts(2, 1, 1, 1))
# equal ratings in the third: "2" with swap = False, "1" with swap = True
RATING = ([rating("9", "0", "1", "1"), rating("3", "4", "2", "2"), rating("5", "5", "2", "1")], counts(2, 3, 2, 2))


@pytest.fixture
def folder(project):
    path = project.root / "published"
    evaluators = {
        ("GPT-4", "Vanilla_NoRules"): PAIRWISE,
        ("GPT-4", "Vanilla"): PAIRWISE,
        ("GPT-4", "Rating"): RATING,
        ("Falcon", "Vanilla"): PAIRWISE,
    }
    write_set(path / "LLMBar" / "Natural", evaluators)
    return path


def verdicts(records, judge, pass_):
    return [record["verdict"] for record in records if (record["record"], record["pass"]) == (judge, pass_)]


def test_items_and_labels(folder):
    imported = read_llmbar(folder, "lb")
    assert imported.items[0] == {
        "item_id": "natural_001",
        "category": "natural",
        "task": "Say yes.",
        "reference_context": "",
        "answer_alpha": "yes",
        "answer_beta": "no",
    }
    assert [label["preference"] for label in imported.labels] == ["ALPHA", "BETA", "ALPHA"]


def test_verdicts_are_letters_by_position(folder):
    records = read_llmbar(folder, "lb").records
    # swap = False shows output_1 first: winner 1 is A; swap = True shows it second: winner 1 is B
    assert verdicts(records, "gpt-4", "original") == ["A", "B", "B"]
    assert verdicts(records, "gpt-4", "swapped") == ["B", "B", None]
    pairwise = [record for record in records if record["strategy"] == "pairwise"]
    shown = {(record["pass"], record["first"], record["second"]) for record in pairwise}
    assert shown == {("original", "ALPHA", "BETA"), ("swapped", "BETA", "ALPHA")}
    silent = [record for record in pairwise if record["verdict"] is None]
    assert {(record["item_id"], record["reply"], record["reason"]) for record in silent} == {
        ("natural_003", "", "no_verdict_in_source")
    }


def test_ratings_become_scores_and_their_winners_are_not_used(folder):
    direct = [record for record in read_llmbar(folder, "lb").records if record["strategy"] == "direct"]
    assert [(record["system"], record["verdict"]["scores"]["overall"]) for record in direct] == [
        ("ALPHA", 9), ("BETA", 0), ("ALPHA", 3), ("BETA", 4), ("ALPHA", 5), ("BETA", 5),
    ]  # fmt: skip


def test_judges_and_their_passes(folder):
    params = read_llmbar(folder, "lb").params
    judges = {judge["name"]: judge["passes"] for judge in params["study"]["judges"] if judge["kind"] == "recorded"}
    pairwise = ["pairwise_original", "pairwise_swapped"]
    assert judges == {"gpt-4": ["direct", *pairwise], "falcon": pairwise, "gpt-4-vanilla": pairwise}
    assert next(iter(judges)) == "gpt-4"
    controls = [judge for judge in params["study"]["judges"] if judge["kind"] == "control"]
    assert [judge["rule"] for judge in controls] == ["first", "longest", "coin"]
    assert parse_study(params["study"]).passes == ("direct", *pairwise)


def test_a_score_that_is_no_number_has_a_reason(project):
    outcomes = [rating("six", "0", None, None), *RATING[0][1:]]
    write_set(project.root / "Natural", {("GPT-4", "Rating"): (outcomes, counts(1, 2, 1, 2))})
    records = read_llmbar(project.root / "Natural", "lb").records
    assert (records[0]["verdict"], records[0]["reason"], records[0]["reply"]) == (None, "unparsable_score", "six")


@pytest.mark.parametrize(
    ("prompt", "evaluation", "told"),
    [
        ("Rating", ([rating("10", "0", "1", "1"), *RATING[0][1:]], {}), "natural_001, score_1: 10 is outside 0 to 9"),
        (
            "Vanilla",
            (PAIRWISE[0], counts(3, 1, 1, 1)),
            "correct_False counted again is 2 / 3, statistics.json says 3 / 3",
        ),
        ("Vanilla", (PAIRWISE[0], counts(2, 1, 1, 2)), "equal counted again is 1 / 3, statistics.json says 2 / 3"),
        ("Vanilla", ([outcome("1", "1"), outcome("2", "1"), {}], {}), "a result without swap = False and swap = True"),
        (
            "Vanilla",
            (
                [{**outcome("1", "1"), "swap = True": {"completion": ["Output (a)"], "winner": "1"}}, *PAIRWISE[0][1:]],
                {},
            ),
            "natural_001, swap = True: the reply is 'Output (a)', but its winner makes it 'B' by position",
        ),
    ],
)
def test_a_mapping_that_cannot_be_proved_is_refused(project, prompt, evaluation, told):
    write_set(project.root / "Natural", {("GPT-4", prompt): evaluation})
    with pytest.raises(DataError) as caught:
        read_llmbar(project.root / "Natural", "lb")
    assert str(caught.value).startswith(f"Natural/evaluators/GPT-4/{prompt}/result.json: ")
    assert told in str(caught.value)


def test_results_of_other_items_are_refused(project):
    folder = project.root / "Natural"
    write_set(folder, {("GPT-4", "Vanilla"): PAIRWISE})
    (folder / "dataset.json").write_text(json.dumps([ENTRIES[0], ENTRIES[2], ENTRIES[1]]))
    with pytest.raises(DataError, match="the first that does not fit is number 2"):
        read_llmbar(folder, "lb")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[", "not valid JSON"),
        ("{}", "a list of objects is needed"),
        ('[{"input": "a", "output_1": "b", "output_2": "c", "label": 3}]', "label is 3, allowed are 1 and 2"),
        ('[{"input": "a", "output_1": "b", "label": 1}]', "output_2 is not text"),
    ],
)
def test_a_broken_dataset_is_refused(project, text, told):
    folder = project.root / "Natural"
    folder.mkdir()
    (folder / "dataset.json").write_text(text)
    with pytest.raises(DataError, match=f"Natural/dataset.json: .*{told}"):
        read_llmbar(folder, "lb")


def test_a_folder_without_a_set_is_refused(project):
    with pytest.raises(DataError, match="params: no LLMBar/Natural/dataset"):
        read_llmbar(project.root / "params", "lb")
    with pytest.raises(DataError, match="absent: no such folder"):
        read_llmbar(project.root / "absent", "lb")


def test_import_writes_a_study_that_freezes(folder, project):
    params, notes = IMPORTERS["llmbar"](folder, "lb")
    assert params == project.root / "params" / "lb.yaml"
    assert notes[0] == "3 items of natural"
    name, study = load_params(params)
    run = freeze(name, study)
    assert run.reference()["human"].tolist() == ["ALPHA", "BETA", "ALPHA"]
    assert run.provenance == "human"
    assert len(run.path("source", "records.jsonl").read_text().splitlines()) == 3 * 6 + 6


def test_importing_again_keeps_the_parameters(folder, project):
    params, _ = import_llmbar(folder, "lb")
    params.write_text(params.read_text().replace("random_seed: 20240719", "random_seed: 5"))
    _, notes = import_llmbar(folder, "lb")
    assert "params/lb.yaml is there already and was left as it is" in notes
    assert load_params(params)[1].random_seed == 5


# -- the published files -------------------------------------------------------------------------------------------

PUBLISHED = {"llmbar-natural": ("llmbar_natural", 100), "llmbar-adversarial": ("llmbar_adversarial_gpt4", 319)}


@pytest.mark.data
@pytest.mark.parametrize("run", PUBLISHED)
def test_the_committed_parameters_are_what_the_import_writes(shared, project, run):
    folder, size = PUBLISHED[run]
    params, _ = import_llmbar(shared / "data" / folder, run)
    committed = Path(__file__).parents[2] / "params" / f"{run}.yaml"
    assert params.read_text() == committed.read_text()
    assert len(read_items(load_params(params)[1]).items) == size


@pytest.mark.data
def test_published_counts(shared):
    imported = read_llmbar(shared / "data" / "llmbar_natural", "llmbar-natural")
    human = {label["item_id"]: label["preference"] for label in imported.labels}
    right = Counter()
    for record in imported.records:
        if record["strategy"] == "pairwise":
            chosen = {"A": record["first"], "B": record["second"]}.get(record["verdict"])
            right[record["record"], record["pass"]] += chosen == human[record["item_id"]]
    # GPT-4 Vanilla_NoRules: 92 and 95 of 100, mean 93.5 %; Vanilla 95 and 96; PaLM2 77 and 87 (statistics.json)
    assert (right["gpt-4", "original"], right["gpt-4", "swapped"]) == (92, 95)
    assert (right["gpt-4-vanilla", "original"], right["gpt-4-vanilla", "swapped"]) == (95, 96)
    assert (right["palm2", "original"], right["palm2", "swapped"]) == (77, 87)
    assert Counter(record["reason"] for record in imported.records) == {None: 1594, "no_verdict_in_source": 6}


@pytest.mark.data
def test_the_live_study_takes_ten_of_the_imported_items(shared, project):
    live = load_params(Path(__file__).parents[2] / "params" / "llmbar-live.yaml")[1]
    with pytest.raises(DataError, match="make it with `judgelab import FORMAT FOLDER --run llmbar-natural`"):
        freeze("llmbar-live", live)
    import_llmbar(shared / "data" / "llmbar_natural", "llmbar-natural")
    run = freeze("llmbar-live", live)
    assert len(run.items()) == 10
    assert run.reference()["rule"].tolist() == ["majority"] * 10
