"""Readers of published data sets: the published files where they are, and small files that are wrong in one way."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from judgelab.errors import DataError
from judgelab.study.sources import (
    published_unieval,
    read_evalica,
    read_judgebench,
    read_llmfao,
    read_pandalm,
    read_position_bias,
    read_prometheus,
    read_unieval,
)
from judgelab.study.sources.published import json_list

# Published files


@pytest.fixture(scope="module")
def data(shared):
    return shared / "data"


@pytest.mark.data
def test_pandalm_has_three_labels_an_item_and_two_judges(data):
    found = read_pandalm(data / "pandalm")
    assert list(found.labels) == ["item_id", "category", "system_x", "system_y", "reviewer_id", "preference"]
    assert found.labels.groupby("item_id").size().eq(3).all()
    assert found.labels["item_id"].nunique() == 999
    assert set(found.labels["reviewer_id"]) == {"annotator1", "annotator2", "annotator3"}
    assert found.verdicts.groupby("judge").size().to_dict() == {"gpt-3.5-turbo": 999, "pandalm-7b": 999}
    # README of the data: 25 "garbage" replies by GPT-3.5
    unusable = found.verdicts[found.verdicts["preference"].isna()]
    assert Counter(unusable["judge"]) == {"gpt-3.5-turbo": 25}
    assert set(unusable["status"]) == {"unusable"}
    assert set(unusable["raw"]) == {"garbage"}


@pytest.mark.data
def test_pandalm_names_the_systems_as_the_published_table_counts_them(data):
    """Wins, losses and ties of every pair, as README.7f7ee7e.md prints them of the majority labels."""
    labels = read_pandalm(data / "pandalm").labels
    counts = labels.groupby(["item_id", "system_x", "system_y"])["preference"].value_counts().rename("n").reset_index()
    majority = counts[counts["n"] >= 2]
    assert len(majority) == 999
    wins = Counter(zip(majority["system_x"], majority["system_y"], majority["preference"], strict=True))
    text = (data / "pandalm" / "README.7f7ee7e.md").read_text(encoding="utf-8")
    lines = text[text.index("| Human-annotated") :].split("\n")[:6]
    header, *rows = [[cell.strip(" *_") for cell in line.strip("|").split("|")] for line in lines]
    names = {system.lower(): system for system in set(labels["system_x"]) | set(labels["system_y"])}
    wrong = []
    compared = 0
    for row in rows[1:]:
        for column, cell in zip(header[1:], row[1:], strict=True):
            printed = re.fullmatch(r"\((\d+),(\d+),(\d+)\)", cell)
            if not printed:
                continue
            one, other = names[row[0].lower()], names[column.lower()]
            pair = (one, other) if (one, other, one) in wins else (other, one)
            compared += 1
            if [wins[(*pair, who)] for who in (one, other, "TIE")] != [int(number) for number in printed.groups()]:
                wrong.append((one, other))
    assert compared == 10
    # one printed cell has wins and losses swapped (../shared/data/README.md, trap 5)
    assert wrong == [("bloom-7b", "pythia-6.9b")]


@pytest.mark.data
def test_llmfao_keeps_the_order_the_ties_and_the_pairs(data):
    found = read_llmfao(data / "llmfao")
    columns = ["rater", "item_id", "prompt", "system_x", "system_y", "preference"]
    assert [list(table) for table in (found.crowd, found.gpt4, found.gpt3)] == [columns] * 3
    assert [len(table) for table in (found.crowd, found.gpt4, found.gpt3)] == [8931, 2139, 2139]
    assert found.crowd["rater"].nunique() == 124
    assert len(set(found.crowd["system_x"]) | set(found.crowd["system_y"])) == 59
    with (data / "llmfao" / "crowd-comparisons.csv").open(encoding="utf-8", newline="") as file:
        plain = list(csv.DictReader(file))
    assert found.crowd["system_x"].tolist() == [row["left"] for row in plain]
    winners = [row["left"] if row["winner"] == "left" else row["right"] for row in plain]
    expected = ["TIE" if row["winner"] == "tie" else name for row, name in zip(plain, winners, strict=True)]
    assert found.crowd["preference"].tolist() == expected
    keys = ["item_id", "prompt", "system_x", "system_y"]
    pairs = found.crowd[keys].drop_duplicates(ignore_index=True)
    assert len(pairs) == 2139
    assert len(pairs.merge(found.gpt4[keys]).merge(found.gpt3[keys])) == 2139


@pytest.mark.data
def test_evalica_has_matches_golden_scores_and_codings(data):
    found = read_evalica(data / "evalica")
    assert [len(found.food), len(found.simple)] == [30, 16]
    assert found.food.iloc[0].tolist() == ["Pizza", "Sushi", "Pizza"]
    assert found.simple["preference"].tolist()[0] == "TIE"
    golden = found.golden.groupby(["source", "algorithm"]).size()
    assert set(golden.index.get_level_values("algorithm")) >= {"elo", "bradley_terry"}
    assert golden.xs("llmfao").eq(59).all()
    exact = found.golden.query("source == 'food' and algorithm == 'elo' and system == 'Tacos'")["score"].item()
    assert exact == 1013.3587771887543  # as printed in food-golden.csv
    # codings.csv: 4 rows of 12, of which 7 fields are empty
    assert len(found.codings) == 41
    assert found.codings.query("item_id == '12'")[["rater", "value"]].values.tolist() == [["r2", 3.0]]
    assert Counter(found.gcl["value"]) == {"NN": 8, "VBP": 7}  # counted by hand


@pytest.mark.data
def test_position_bias_counts_as_the_logs_do(data):
    found = read_position_bias(data / "position_bias_mtbench")
    for row in found.published.itertuples():
        one = found.verdicts[found.verdicts["judge"] == row.judge]
        assert len(one) == 4800
        choices = {(v.item_id, v.first, v.second): v.choice for v in one.itertuples() if isinstance(v.choice, str)}
        assert len(choices) == row.extracted == row.of
        opposite = {"A": "B", "B": "A", "TIE": "TIE"}
        partners = [
            (choice, choices.get((item, second, first), opposite[choice]))
            for (item, first, second), choice in choices.items()
        ]
        # trap 2 of the data's README: a row whose partner has no choice counts as consistent
        assert sum(other == opposite[choice] for choice, other in partners) == row.consistent


@pytest.mark.data
def test_unieval_gives_the_published_correlations(data):
    scores, published = read_unieval(data / "unieval"), published_unieval(data / "unieval")
    assert len(scores) == 360 * 6 + 875 * 3
    assert len(published) == 9
    chat = scores[scores["dataset"] == "topical_chat"]
    assert chat.groupby(["item_id", "dimension"]).size().eq(6).all()
    assert chat["item_id"].nunique() == 60
    assert scores.loc[scores["dataset"] == "sfhot", "system"].isna().all()
    for row in published.itertuples():
        one = scores[(scores["dataset"] == row.dataset) & (scores["dimension"] == row.dimension)]
        for method in ("pearson", "spearman", "kendall"):
            assert round(one["human"].corr(one["judge"], method=method), 6) == getattr(row, method)


@pytest.mark.data
def test_judgebench_has_every_score_of_every_person(data):
    recipes = read_judgebench(data / "judgebench_illc_recipes")
    newsroom = read_judgebench(data / "judgebench_illc_newsroom")
    assert [len(recipes.ratings), len(newsroom.ratings)] == [6336, 420 * 4 * 3]
    sizes = recipes.ratings.groupby(["metric", "item_id"]).size()
    assert [sizes.min(), sizes.max()] == [15, 88]
    assert newsroom.ratings.groupby(["metric", "item_id"]).size().eq(3).all()
    # the ordinal alphas of ../shared/data/README.md, from the files of results
    alphas = recipes.results.drop_duplicates("metric")["krippendorff_alpha"].round(6).tolist()
    assert alphas == [0.415127, 0.432398, 0.399142, 0.398558, 0.362716, 0.435101]
    alphas = newsroom.results.drop_duplicates("metric")["krippendorff_alpha"].round(6).tolist()
    assert alphas == [0.284873, 0.115121, -0.015808, 0.064972]
    assert newsroom.results["judge"].nunique() == 12


@pytest.mark.data
def test_prometheus_has_three_scores_an_answer(data):
    scores = read_prometheus(data / "prometheus_gpt4_repeats")
    answers = scores.groupby(["dataset", "unit"])["value"]
    assert answers.size().eq(3).all()
    same = answers.nunique().eq(1).groupby("dataset").mean()
    assert answers.size().groupby("dataset").size().to_dict() == {"mt_bench": 320, "vicuna": 320}
    # ../shared/data/README.md: all equal 62.2 % / 44.1 %, to the printed digit
    assert {name: round(100 * rate, 1) for name, rate in same.items()} == {"vicuna": 62.2, "mt_bench": 44.1}


# Small files, and what is wrong with them

PANDALM = [
    {"idx": 7, "motivation_app": "Mail", "cmp_key": "a_b", "annotator1": 1, "annotator2": 2, "annotator3": 0},
    {"idx": 3, "motivation_app": "Mail", "cmp_key": "a_c", "annotator1": 0, "annotator2": 2, "annotator3": 2},
]
GPT = [{"idx": 3, "gpt_result": "garbage"}, {"idx": 7, "gpt_result": "Tie"}]
SEVEN_B = [{"idx": 7, "pandalm_result": "1"}, {"idx": 3, "pandalm_result": 2}]
CROWD = "id,prompt,model_x,model_y,worker,winner,left,right\n0,8,1,2,58,tie,Ada,Bea\n0,8,1,2,83,left,Ada,Bea\n"
LLM = "id,prompt,model_x,model_y,winner,left,right\n0,8,1,2,right,Ada,Bea\n"
MATCHES = "left,right,winner\nAda,Bea,left\nBea,Cleo,tie\n"
GOLDEN = "algorithm,item,score\nelo,Ada,1004.5\nelo,Bea,998\n"
KEYS = "key,choice\r\n81;x;y,A\r\n81;y;x,C\r\n82;x;y,\r\n82;y;x,B\r\n"
PUBLISHED = "file,extracted,consistent,of,rate_percent\nMTBench_m.csv,3,1,3,33.33\n"
SCORES = [{"idx": 1, "response_source": "s", "category": "math", "gpt4_score": [5, 4, 5]}]
RECIPES = {
    "annotations": [{"metric": "fluency", "worst": 1, "best": 6}],
    "instances": [
        {"id": "soup", "annotations": {"fluency": {"mean_human": 2.67, "individual_human_scores": [1, 1, 6, None]}}}
    ],
}
RESULTS = {
    "M-1 (SP: None)": {
        "fluency": {
            "corr_coeff": {"pearson": 0.5, "spearman": 0.25, "kendall": float("nan")},
            "krippendorff_alpha": 0.125,
            "kappa_score": float("nan"),
            "total_responses": 1,
            "valid_responses": 1,
        }
    }
}
OUTPUT = {"source": "hi", "system_id": "s", "scores": {"overall": 2}, "predict_scores": {"overall": 0.5}}
CHAT = [OUTPUT, {**OUTPUT, "system_id": "t", "scores": {"overall": 3}}]
FOLDERS = {
    "pandalm": {
        "testset-v1.json": PANDALM,
        "gpt-3.5-turbo-testset-v1.json": GPT,
        "pandalm-7b-testset-v1.json": SEVEN_B,
    },
    "llmfao": {
        "crowd-comparisons.csv": CROWD,
        "gpt4-crowd-comparisons.csv": LLM,
        "gpt3-crowd-comparisons.csv": LLM,
        "models.jsonl": '{"id": 1, "name": "Ada"}\n{"id": 2, "name": "Bea"}\n',
        "prompts.jsonl": '{"id": 8, "slug": "k8s"}\n',
    },
    "evalica": {
        "food.csv": MATCHES,
        "simple.csv": MATCHES,
        **{f"{name}-golden.csv": GOLDEN for name in ("food", "simple", "llmfao")},
        "codings.csv": "1,2,\n1,,3\n",
        "gcl.csv": "NN,NN\n,VB\n",
    },
    "position_bias": {"MTBench_m.csv": KEYS, "published.csv": PUBLISHED},
    "prometheus": {"mt_bench_eval.scores.json": SCORES, "vicuna_eval.scores.json": SCORES},
    "judgebench": {
        "meta_evaluation_recipes.json": RECIPES,
        "results_regular_recipe-crowd-sourcing-data.json": RESULTS,
    },
    "unieval": {
        "reproduce/unieval_predict/dialogue/topical_chat_result.json": CHAT,
        "reproduce/unieval_predict/data2text/sfhot_result.json": CHAT,
    },
}
READERS = {
    "pandalm": read_pandalm,
    "llmfao": read_llmfao,
    "evalica": read_evalica,
    "position_bias": read_position_bias,
    "prometheus": read_prometheus,
    "judgebench": read_judgebench,
    "unieval": read_unieval,
}


def written(root: Path, name: str, **changes: object) -> Path:
    """A folder with the small files; ``changes`` replaces a file, by its name."""
    folder = root / name
    for file, content in {**FOLDERS[name], **changes}.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8", newline="")
    return folder


@pytest.fixture
def root(project):
    return project.root


def test_small_pandalm(root):
    found = read_pandalm(written(root, "pandalm"))
    assert found.labels["preference"].tolist() == ["a", "b", "TIE", "TIE", "c", "c"]
    assert found.labels["item_id"].tolist() == ["007"] * 3 + ["003"] * 3
    # joined by idx, not by place
    assert found.verdicts["raw"].tolist() == ["Tie", "garbage", "1", "2"]
    assert found.verdicts["preference"].fillna("-").tolist() == ["TIE", "-", "a", "c"]


def test_small_llmfao_and_evalica(root):
    matches = read_llmfao(written(root, "llmfao"))
    assert matches.crowd.values.tolist() == [
        ["58", "0", "k8s", "Ada", "Bea", "TIE"],
        ["83", "0", "k8s", "Ada", "Bea", "Ada"],
    ]
    assert matches.gpt4.values.tolist() == [["gpt-4", "0", "k8s", "Ada", "Bea", "Bea"]]
    tables = read_evalica(written(root, "evalica"))
    assert tables.food["preference"].tolist() == ["Ada", "TIE"]
    assert tables.codings.values.tolist() == [
        ["01", "r1", 1.0],
        ["02", "r1", 2.0],
        ["01", "r2", 1.0],
        ["03", "r2", 3.0],
    ]
    assert tables.gcl["value"].tolist() == ["NN", "NN", "VB"]


def test_small_position_bias_and_prometheus(root):
    found = read_position_bias(written(root, "position_bias"))
    assert found.verdicts["choice"].fillna("-").tolist() == ["A", "TIE", "-", "B"]
    assert found.verdicts.iloc[1].tolist() == ["m", "81", "y", "x", "TIE"]
    assert found.published.values.tolist() == [["m", 3, 1, 3, 33.33]]
    scores = read_prometheus(written(root, "prometheus"))
    assert scores["value"].tolist() == [5, 4, 5] * 2
    assert scores.iloc[1].tolist() == ["mt_bench", "001", "s", "001/s", "math", 2, 4.0]


def test_small_judgebench_and_unieval(root):
    found = read_judgebench(written(root, "judgebench"))
    assert found.ratings.values.tolist() == [
        ["recipes", "fluency", "soup", n, v] for n, v in ((1, 1.0), (2, 1.0), (3, 6.0))
    ]
    (row,) = found.results.to_dict("records")
    assert row["judge"] == "M-1"
    assert pd.isna(row["kendall"])
    scores = read_unieval(written(root, "unieval"))
    assert scores.iloc[1].tolist() == ["topical_chat", "overall", "topical_chat_001", 2, "t", 3.0, 0.5]


def changed(values, place, **changes):
    """A list of records with one of them changed; None takes a key out."""
    record = {key: value for key, value in {**values[place], **changes}.items() if value is not None}
    return [*values[:place], record, *values[place + 1 :]]


MTBENCH = "MTBench_m.csv"
TESTSET, GPT_FILE, CROWD_FILE = "testset-v1.json", "gpt-3.5-turbo-testset-v1.json", "crowd-comparisons.csv"
VICUNA, RECIPE_FILE = "vicuna_eval.scores.json", "meta_evaluation_recipes.json"
CHAT_FILE = "reproduce/unieval_predict/dialogue/topical_chat_result.json"
SOUP = RECIPES["instances"][0]


def recipes(**fluency):
    scores = {**SOUP["annotations"]["fluency"], **fluency}
    return {**RECIPES, "instances": [{**SOUP, "annotations": {"fluency": scores}}]}


@pytest.mark.parametrize(
    ("name", "file", "content", "message"),
    [
        ("pandalm", TESTSET, "", "the file is empty"),
        ("pandalm", TESTSET, "[", "testset-v1.json: not valid JSON"),
        ("pandalm", TESTSET, {"idx": 1}, "a list of objects is needed, it is an object"),
        ("pandalm", TESTSET, [], "it is an empty list"),
        ("pandalm", TESTSET, [1, *PANDALM], "1 of 3 are no objects; first 1 in entry 1"),
        ("pandalm", TESTSET, '[{"idx": 1, "idx": 2}]', "one object has 'idx' more than once"),
        ("pandalm", TESTSET, changed(PANDALM, 1, annotator2=None), "1 of 2 have no key 'annotator2'"),
        (
            "pandalm",
            TESTSET,
            changed(PANDALM, 1, annotator2=True),
            "'annotator2' that is not a whole number; first True",
        ),
        (
            "pandalm",
            TESTSET,
            changed(PANDALM, 1, annotator2=3),
            "1 of 2 have a label of annotator2 outside 0, 1, 2; first 3",
        ),
        ("pandalm", TESTSET, changed(PANDALM, 1, cmp_key="a_a"), "does not name two systems as x_y; first 'a_a'"),
        ("pandalm", TESTSET, changed(PANDALM, 1, cmp_key="a_b_c"), "first 'a_b_c' in entry 2"),
        (
            "pandalm",
            TESTSET,
            changed(PANDALM, 1, idx=7),
            "1 of 2 values of idx are there before; first 7 in entry 2 and",
        ),
        (
            "pandalm",
            GPT_FILE,
            changed(GPT, 0, gpt_result="A"),
            "1 of 2 have a gpt_result outside 1, 2, 0, Tie, garbage",
        ),
        ("pandalm", GPT_FILE, GPT[:1], "testset-v1.json: 1 of 2 have no verdict in .*first 7 in entry 1"),
        ("pandalm", GPT_FILE, changed(GPT, 0, idx=9), "1 of 2 have an idx that testset-v1.json does not have; first 9"),
        (
            "llmfao",
            CROWD_FILE,
            CROWD.replace("tie", "draw"),
            "1 of 2 have a winner outside left, right, tie; first 'draw' in line 2",
        ),
        (
            "llmfao",
            CROWD_FILE,
            CROWD.replace("83", "58"),
            r"1 of 2 pairs of rater and id .*first \('58', '0'\) in line 3",
        ),
        (
            "llmfao",
            CROWD_FILE,
            CROWD.replace("left,Ada", "left,Eve"),
            "1 of 2 have a left that is not the system of model_x; first 'Eve' in line 3",
        ),
        (
            "llmfao",
            CROWD_FILE,
            CROWD.replace("0,8", "0,9"),
            "2 of 2 have a prompt that prompts.jsonl does not have; first '9'",
        ),
        ("llmfao", CROWD_FILE, CROWD.replace("worker", "who"), "columns without worker and with unknown who"),
        ("llmfao", CROWD_FILE, CROWD.split("\n")[0], "0 rows below the header"),
        (
            "llmfao",
            "gpt3-crowd-comparisons.csv",
            LLM.replace("1,2,right,Ada,Bea", "2,1,right,Bea,Ada"),
            "gpt3-crowd-comparisons.csv: 1 of 1 have the id of another pair",
        ),
        ("llmfao", "models.jsonl", '{"id": 1}\n', "1 of 1 have no key 'name'; first .* in line 1"),
        ("llmfao", "models.jsonl", '{"id": 1, "name": "Ada"}\n{"id"\n', "line 2: not valid JSON"),
        (
            "evalica",
            "food.csv",
            MATCHES.replace("Cleo", "Bea"),
            "1 of 2 compare a system with itself; first 'Bea' in line 3",
        ),
        ("evalica", "food.csv", MATCHES.replace("Cleo", ""), "1 of 2 leave a system without a name"),
        (
            "evalica",
            "food-golden.csv",
            GOLDEN.replace("998", "nan"),
            "1 of 2 have a score that is not a finite number; first 'nan' in line 3",
        ),
        (
            "evalica",
            "food-golden.csv",
            GOLDEN.replace("Bea", "Ada"),
            "1 of 2 pairs of algorithm and item are there before",
        ),
        ("evalica", "codings.csv", "1,2\n1\n", "1 of 2 rows do not have the 2 fields of the first; first 1 in line 2"),
        ("evalica", "codings.csv", "1,x\n1,2\n", "1 of 4 codings are not numbers; first 'x' in coding 2"),
        (
            "position_bias",
            MTBENCH,
            KEYS.replace(",B", ",D"),
            "1 of 4 have a choice outside A, B, C and empty; first 'D' in line 5",
        ),
        (
            "position_bias",
            MTBENCH,
            KEYS.replace("82;y;x", "83;y;x"),
            "2 of 4 presentations have none in the other order; first '82;x;y' in line 4",
        ),
        ("position_bias", MTBENCH, KEYS.replace("82;y;x", "82;x;y"), "1 of 4 keys are there before"),
        (
            "position_bias",
            MTBENCH,
            KEYS.replace("82;y;x", "82;y"),
            "1 of 4 have a key that is not question;first;second",
        ),
        ("position_bias", "published.csv", PUBLISHED.replace("_m", "_n"), "names the judges n; the folder has m"),
        (
            "position_bias",
            "published.csv",
            PUBLISHED.replace("33.33", "?"),
            "1 of 1 have a rate_percent that is not a number; first '\\?'",
        ),
        (
            "position_bias",
            "published.csv",
            PUBLISHED.replace(",3,1", ",3.0,1"),
            "value of extracted that is not a count; first '3.0'",
        ),
        (
            "prometheus",
            VICUNA,
            changed(SCORES, 0, gpt4_score=[5, 6, 5]),
            "1 of 3 scores are not whole numbers from 1 to 5; first 6 in entry 1",
        ),
        ("prometheus", VICUNA, changed(SCORES, 0, gpt4_score=[5, 4.5, 5]), "first 4.5 in entry 1"),
        ("prometheus", VICUNA, changed(SCORES, 0, gpt4_score=[5, True, 5]), "first True in entry 1"),
        ("prometheus", VICUNA, changed(SCORES, 0, gpt4_score=[]), "1 of 1 have not the 1 scores of the first"),
        (
            "prometheus",
            VICUNA,
            [*SCORES, {**SCORES[0], "idx": 2, "gpt4_score": [1]}],
            r"1 of 2 have not the 3 scores of the first; first \[1\]",
        ),
        ("prometheus", VICUNA, SCORES * 2, "1 of 2 answers are there before"),
        (
            "judgebench",
            RECIPE_FILE,
            recipes(mean_human=2.5),
            "1 of 1 instances have a mean_human of fluency that is not the mean of its scores; first 2.5",
        ),
        (
            "judgebench",
            RECIPE_FILE,
            recipes(individual_human_scores=[7]),
            "1 of 1 scores of fluency are not on its scale from 1 to 6; first 7",
        ),
        ("judgebench", RECIPE_FILE, recipes(individual_human_scores=["1"]), "first '1' in entry 1"),
        (
            "judgebench",
            RECIPE_FILE,
            recipes(individual_human_scores=[None]),
            "1 of 1 instances have no score of fluency",
        ),
        ("judgebench", RECIPE_FILE, json.dumps(RECIPES).replace("2.67", "NaN"), "NaN is no number of JSON"),
        (
            "judgebench",
            RECIPE_FILE,
            {**RECIPES, "instances": [SOUP, SOUP]},
            "1 of 2 ids are there before; first 'soup'",
        ),
        (
            "judgebench",
            RECIPE_FILE,
            {**RECIPES, "instances": [{**SOUP, "annotations": {}}]},
            "instances have other metrics than fluency",
        ),
        ("judgebench", RECIPE_FILE, {**RECIPES, "instances": []}, "1 metrics and 0 instances"),
        (
            "judgebench",
            "results_regular_recipe-crowd-sourcing-data.json",
            {"m": {"fluency": {}}},
            "m, fluency: no corr_coeff",
        ),
        (
            "unieval",
            CHAT_FILE,
            [OUTPUT, OUTPUT],
            "1 of 2 outputs are there before; first 'the source of entry 1, s' in entry 2",
        ),
        (
            "unieval",
            CHAT_FILE,
            changed(CHAT, 1, scores={"style": 1}),
            "1 of 2 have scores of other dimensions than overall",
        ),
        (
            "unieval",
            CHAT_FILE,
            changed(CHAT, 1, predict_scores={"overall": "x"}),
            "no finite number in predict_scores, overall; first 'x' in entry 2",
        ),
        ("unieval", CHAT_FILE, json.dumps(CHAT).replace("0.5", "Infinity"), "Infinity is no number of JSON"),
        (
            "unieval",
            CHAT_FILE,
            json.dumps(CHAT).replace("0.5", "1e999"),
            "2 of 2 have no finite number in predict_scores, overall; first inf",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_file_place_and_count(root, name, file, content, message):
    folder = written(root, name, **{file: content})
    with pytest.raises(DataError, match=message) as caught:
        READERS[name](folder)
    assert Path(file).name in str(caught.value) or Path(TESTSET).name in str(caught.value)


@pytest.mark.parametrize("name", sorted(READERS))
def test_missing_folders_and_files_are_named_with_the_way_to_get_them(root, name):
    with pytest.raises(DataError, match="no such folder; `judgelab fetch` gets"):
        READERS[name](root / "nowhere")
    folder = written(root, name)
    gone = next(iter(FOLDERS[name]))
    (folder / gone).unlink()
    with pytest.raises(DataError, match=r"1 of \d files are missing: |no file MTBench_<judge>.csv|neither .* in it"):
        READERS[name](folder)


def test_two_sets_of_judgebench_in_one_folder_are_refused(root):
    folder = written(root, "judgebench", **{"newsroom.json": RECIPES})
    with pytest.raises(DataError, match="holds 2 sets, recipes and newsroom"):
        read_judgebench(folder)


def test_published_correlations_need_their_tables(root):
    folder = written(root, "unieval", **{"reproduce/README.md": "SFHOT:\nno table\n"})
    with pytest.raises(DataError, match=r"README.md: no table of correlations below 'Turn Level Correlations'"):
        published_unieval(folder)


def test_a_table_of_correlations_is_read_to_the_printed_digit(root):
    table = "+--+\n| Dimensions | Pearson | Spearman | Kendall |\n+--+\n| overall | 0.69961 | -0.5 | 0.487272 |\n+--+\n"
    text = f"** Turn Level Correlations **\n{table}\nSFHOT:\n{table}\n| later | 1.0 | 1.0 | 1.0 |\n"
    folder = written(root, "unieval", **{"reproduce/README.md": text})
    found = published_unieval(folder)
    assert found.values.tolist() == [
        ["topical_chat", "turn", "overall", 0.69961, -0.5, 0.487272],
        ["sfhot", "sample", "overall", 0.69961, -0.5, 0.487272],
    ]


def test_a_place_outside_the_project_is_named_by_its_folder(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(written(root, "prometheus"), folder / "sets")
    (folder / "sets" / VICUNA).write_text("[]")
    with pytest.raises(DataError, match=r"^sets/vicuna_eval.scores.json: "):
        read_prometheus(folder / "sets")


def test_latin_1_is_refused_with_byte_and_line(root):
    path = root / "latin.json"
    path.write_bytes(b'[\n{"idx": "\xe9"}]')
    with pytest.raises(DataError, match=r"not UTF-8: byte 0xe9 .*in line 2"):
        json_list(path, {"idx": str})
