"""LLMBar on its human labels: length and leniency of GPT-4 and four other LLMs, against loops over the raw files.

What the published files in ``shared`` allow: on the natural set pairwise verdicts of all five LLMs, and direct
ratings of GPT-4 alone; on the adversarial sets pairwise verdicts of GPT-4 alone. LLMBar also rated with ChatGPT, but
only its counts (``statistics.json``) are there, and it never rated with PaLM2, LLaMA2 and Falcon.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import yaml

from judgelab.judging.evidence import verdicts
from judgelab.judging.runner import run_passes
from judgelab.measure.bias import bias_table
from judgelab.measure.choice_model import choice_table
from judgelab.measure.length import length_table
from judgelab.measure.leniency import criteria_of, leniency_table
from judgelab.measure.preferences import normalize
from judgelab.study.freeze import freeze
from judgelab.study.protocol import load_params

from .conftest import ROOT, command, judges_of, one, outputs_at, succeeded

pytestmark = pytest.mark.data
DATA = {"llmbar-natural": "llmbar_natural", "llmbar-adversarial": "llmbar_adversarial_gpt4"}
LLMS = ["gpt-4", "chatgpt", "palm2", "llama2", "falcon"]
WHO = [(run, judge) for run in DATA for judge in judges_of(f"{run}.yaml", kind="recorded")]
CONTROLS = judges_of("llmbar-natural.yaml", kind="control")
PASSES = {"original": ("swap = False",), "swapped": ("swap = True",), "both": ("swap = False", "swap = True")}
EFFECTS = ("human", "first_position", "length", "family")
SIMILAR = 1.25
THRESHOLDS = (4, 5, 7, 9)  # the protocol names none; 5 is the first score in the upper half of 0 to 9


@dataclass(frozen=True)
class Tables:
    """The tables of one study, and its raw judgments: a row for each judge, item and order (or ``direct``)."""

    normalized: pd.DataFrame
    length: pd.DataFrame
    bias: pd.DataFrame
    choice: pd.DataFrame
    criteria: pd.DataFrame
    raw: pd.DataFrame


@pytest.fixture(scope="module")
def studies(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tables]:
    """Both studies, imported, frozen and run without notebooks."""
    outputs = tmp_path_factory.mktemp("llmbar_biases")
    return {run: tables_of(shared / "data" / folder, outputs, run) for run, folder in DATA.items()}


def tables_of(folder: Path, outputs: Path, name: str) -> Tables:
    succeeded(command(outputs, "import", "llmbar", folder, "--run", name))
    with outputs_at(outputs):
        run = freeze(*load_params(ROOT / f"params/{name}.yaml"))
        asyncio.run(run_passes(run, run.study.passes))
        evidence = verdicts(run)
        normalized = normalize(evidence, run.reference(), run.comparisons(), margin=run.study.direct_tie_margin)
    assert run.provenance == "human"
    labels = run.study.labels
    options = {"ci_level": 0.95, "resamples": 200, "seed": 1}
    return Tables(
        normalized,
        length_table(normalized, labels=labels, similar=SIMILAR, **options),
        bias_table(normalized, labels=labels, **options),
        choice_table(normalized, labels=labels, families={}, judge_families={}, ci_level=0.95),
        criteria_of(evidence),
        pd.DataFrame(raw_judgments(folder, name)),
    )


def raw_judgments(folder: Path, name: str) -> Iterator[dict[str, object]]:
    """What each published file says, read with none of judgelab's code."""
    study = yaml.safe_load((ROOT / f"params/{name}.yaml").read_text(encoding="utf-8"))["study"]
    for judge in study["judges"]:
        for prompt in judge.get("provenance", "").split(", ")[1:]:
            for path in sorted(folder.rglob(f"{prompt}/result.json")):
                for place, entry in enumerate(json.loads(path.read_text(encoding="utf-8"))):
                    common = {
                        "judge": judge["name"],
                        "item": f"{path.parts[-5]} {place}",
                        "label": str(entry["label"]),
                        "words_1": len(entry["output_1"].split()),
                        "words_2": len(entry["output_2"].split()),
                    }
                    step = entry["results"][-1]
                    if "score_1" in step:
                        one_, two = int(step["score_1"][0]), int(step["score_2"][0])
                        winner = "1" if one_ > two else "2" if two > one_ else "tie"
                        yield common | {"order": "direct", "winner": winner, "score_1": one_, "score_2": two}
                    else:
                        for order in PASSES["both"]:
                            yield common | {"order": order, "winner": step[order]["winner"]}


# -- which judges have what -----------------------------------------------------------------------------------------


def test_natural_has_five_llms_and_direct_ratings_of_gpt_4_alone(studies):
    normalized = studies["llmbar-natural"].normalized
    assert set(normalized["judge"]) == {*LLMS, "gpt-4-vanilla", "chatgpt-vanilla", *CONTROLS}
    llms = normalized[~normalized["judge"].isin(CONTROLS)]
    rated = llms.groupby("judge")[["planned_direct", "planned_original", "planned_swapped"]].sum()
    assert rated["planned_direct"].to_dict() == {name: 100 if name == "gpt-4" else 0 for name in rated.index}
    assert (rated[["planned_original", "planned_swapped"]] == 100).all(axis=None)
    assert llms.dropna(subset=["total_x"])["judge"].value_counts().to_dict() == {"gpt-4": 100}


def test_adversarial_has_pairwise_verdicts_of_gpt_4_alone(studies):
    normalized = studies["llmbar-adversarial"].normalized
    assert set(normalized["judge"]) == {"gpt-4", *CONTROLS}
    assert not normalized["planned_direct"].any()
    assert normalized.loc[normalized["judge"] == "gpt-4", ["pair_original", "pair_swapped"]].notna().sum().tolist() == [
        319, 319,
    ]  # fmt: skip


def test_the_other_ratings_are_not_in_the_published_files(shared):
    """With verdicts there is one rating; with counts alone GPT-4 and ChatGPT; no rating at all by the other three."""
    found = {
        name: {
            path.parts[-3] for folder in DATA.values() for path in (shared / "data" / folder).rglob(f"Rating*/{name}")
        }
        for name in ("result.json", "statistics.json")
    }
    assert found == {"result.json": {"GPT-4"}, "statistics.json": {"GPT-4", "ChatGPT"}}
    verdicts_of = {path.parts[-3] for path in (shared / "data/llmbar_adversarial_gpt4").rglob("result.json")}
    assert verdicts_of == {"GPT-4"}


@pytest.mark.parametrize("run", DATA)
def test_every_llm_of_the_study_has_rows(studies, run):
    tables, judges = studies[run], judges_of(f"{run}.yaml")
    for table in (tables.length, tables.bias, tables.choice):
        assert list(dict.fromkeys(table["judge"])) == judges
    assert run != "llmbar-natural" or set(LLMS) <= set(judges)


# -- length ---------------------------------------------------------------------------------------------------------


def counted(raw: pd.DataFrame) -> dict[str, tuple[int, int]]:
    """Numerator and denominator of every rate, judgment by judgment."""
    counts = {
        name: [0, 0]
        for name in (
            "longer_rate", "human_longer_rate", "length=similar", "length=different",
            "shorter_human_longer_judge", "longer_human_shorter_judge",
        )
    }  # fmt: skip

    def count(name: str, hit: bool) -> None:
        counts[name][0] += hit
        counts[name][1] += 1

    for _, row in raw.iterrows():
        if pd.isna(row["winner"]):  # no verdict in the publication
            continue
        longer, shorter = ("1", "2") if row["words_1"] > row["words_2"] else ("2", "1")
        more, less = max(row["words_1"], row["words_2"]), min(row["words_1"], row["words_2"])
        similar = more <= SIMILAR * less
        count("length=similar" if similar else "length=different", row["winner"] == row["label"])
        if row["winner"] == "tie" or more == less:
            continue
        count("longer_rate", row["winner"] == longer)
        count("human_longer_rate", row["label"] == longer)
        if row["label"] == shorter:
            count("shorter_human_longer_judge", row["winner"] == longer)
        else:
            count("longer_human_shorter_judge", row["winner"] == shorter)
    return {name: (hits, total) for name, (hits, total) in counts.items()}


def length_passes(run: str, judge: str) -> list[tuple[str, tuple[str, ...]]]:
    direct = [("direct", ("direct",))] if (run, judge) == ("llmbar-natural", "gpt-4") else []
    return [*direct, *PASSES.items()]


@pytest.mark.parametrize(("run", "judge"), WHO)
def test_length_rows_are_what_a_loop_over_the_raw_files_counts(studies, run, judge):
    tables = studies[run]
    raw = tables.raw[tables.raw["judge"] == judge]
    for pass_, orders in length_passes(run, judge):
        expected = counted(raw[raw["order"].isin(orders)])
        where = {"judge": judge, "pass_": pass_}
        rows = {name: one(tables.bias, measure=name, **where) for name in ("longer_rate", "human_longer_rate")}
        for name in ("shorter_human_longer_judge", "longer_human_shorter_judge"):
            rows[name] = one(tables.length, measure=name, **where)
        for name in ("length=similar", "length=different"):
            rows[name] = one(tables.length, measure="exact_agreement", slice_=name, **where)
        assert {name: (row["numerator"], row["denominator"]) for name, row in rows.items()} == expected, pass_
        for name, row in rows.items():
            assert row["estimate"] == pytest.approx(expected[name][0] / expected[name][1]), (pass_, name)
            assert row["ci_low"] <= row["estimate"] <= row["ci_high"], (pass_, name)
        gap = one(tables.length, measure="exact_agreement_gap", slice_="length=similar", **where)
        difference = rows["length=similar"]["estimate"] - rows["length=different"]["estimate"]
        assert gap["estimate"] == pytest.approx(difference)
        error_gap = one(tables.bias, measure="length_error_gap", **where)["estimate"]
        errors = [rows[name]["estimate"] for name in ("shorter_human_longer_judge", "longer_human_shorter_judge")]
        assert error_gap == pytest.approx(errors[0] - errors[1])


@pytest.mark.parametrize("run", DATA)
def test_the_longest_control_takes_the_longer_answer_always(studies, run):
    tables = studies[run]
    for table, measure in ((tables.bias, "longer_rate"), (tables.length, "shorter_human_longer_judge")):
        assert one(table, judge="longest", measure=measure, pass_="both")["estimate"] == 1.0


# -- leniency -------------------------------------------------------------------------------------------------------


def leniency(tables: Tables, threshold: float | None) -> pd.DataFrame:
    return leniency_table(
        tables.normalized, acceptance_threshold=threshold, minimum=0, maximum=9, criteria=tables.criteria,
        ci_level=0.95, resamples=200, seed=1,
    )  # fmt: skip


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_rates_by_preference_are_what_a_loop_over_the_raw_ratings_counts(studies, threshold):
    tables = studies["llmbar-natural"]
    accepted, rejected, top, good, bad = 0, 0, 0, 0, 0
    for _, row in tables.raw[tables.raw["order"] == "direct"].iterrows():
        for output in ("1", "2"):
            score = row[f"score_{output}"]
            top += score == 9
            if row["label"] == output:
                good += 1
                accepted += score >= threshold
            else:
                bad += 1
                rejected += score < threshold
    assert (good, bad) == (100, 100)
    made = leniency(tables, threshold)
    rates = {"true_positive_rate": (accepted, good), "true_negative_rate": (rejected, bad)}
    for measure, expected in rates.items():
        for slice_ in (f"accept>={threshold}, by preference", "criterion=overall"):
            row = one(made, judge="gpt-4", measure=measure, slice_=slice_)
            assert (row["numerator"], row["denominator"]) == expected
            assert row["ci_low"] <= row["estimate"] == expected[0] / expected[1] <= row["ci_high"]
    row = one(made, judge="gpt-4", measure="top_score_rate")
    assert (row["numerator"], row["denominator"]) == (top, 200)


def test_without_the_protocols_threshold_both_rates_have_a_reason(studies):
    made = leniency(studies["llmbar-natural"], None)
    rates = made[(made["judge"] == "gpt-4") & made["measure"].isin(["true_positive_rate", "true_negative_rate"])]
    assert len(rates) == 2
    assert rates["estimate"].isna().all()
    assert set(rates["note"]) == {"undefined: the protocol names no acceptance threshold"}


def test_the_protocol_names_the_middle_of_the_scale():
    for name in ("natural", "adversarial"):
        assert load_params(ROOT / f"params/llmbar-{name}.yaml")[1].direct_scale.acceptance_threshold == 5


def test_what_needs_human_scores_is_undefined_with_a_reason(studies):
    made = leniency(studies["llmbar-natural"], 5)
    for measure in ("human_top_score_rate", "score_compression", "mean_score_gap"):
        row = one(made, judge="gpt-4", measure=measure)
        assert math.isnan(row["estimate"])
        assert row["note"].startswith("undefined: ")


def test_leniency_rows_are_only_of_judges_with_direct_ratings(studies):
    natural = leniency(studies["llmbar-natural"], 5)
    assert set(natural["judge"]) - set(CONTROLS) == {"gpt-4"}
    assert leniency(studies["llmbar-adversarial"], 5).empty


# -- the regression -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", DATA)
def test_the_regression_gives_an_estimate_or_a_reason(studies, run):
    choice = studies[run].choice
    for judge in judges_of(f"{run}.yaml"):
        for effect in EFFECTS:
            for measure in ("log_odds", "log_odds_p", "win_change"):
                row = one(choice, judge=judge, measure=f"{effect}_{measure}", pass_="both")
                assert np.isfinite(row["estimate"]) != row["note"].startswith("undefined: "), (judge, row["measure"])


@pytest.mark.parametrize(("run", "judge"), WHO)
def test_the_regression_of_an_llm_is_that_of_the_raw_files(studies, run, judge):
    """statsmodels' GLM (IRLS) on P(output_1 wins), clustered by item; no family, so three effects."""
    tables = studies[run]
    raw = tables.raw[(tables.raw["judge"] == judge) & (tables.raw["order"] != "direct")].dropna(subset=["winner"])
    design = np.column_stack([
        np.where(raw["label"] == "1", 1.0, -1.0),
        np.where(raw["order"] == "swap = False", 1.0, -1.0),
        np.log(np.maximum(raw["words_1"], 1) / np.maximum(raw["words_2"], 1)),
    ])  # fmt: skip
    model = sm.GLM((raw["winner"] == "1").to_numpy(dtype=float), design, family=sm.families.Binomial())
    groups = pd.factorize(raw["item"])[0]
    found = model.fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True, tol=1e-12)
    for place, effect in enumerate(EFFECTS[:3]):
        row = one(tables.choice, judge=judge, measure=f"{effect}_log_odds", pass_="both")
        assert row["estimate"] == pytest.approx(found.params[place], abs=1e-6)
        assert [row["ci_low"], row["ci_high"]] == pytest.approx(found.conf_int()[place].tolist(), abs=1e-5)
        p = one(tables.choice, judge=judge, measure=f"{effect}_log_odds_p", pass_="both")["estimate"]
        assert p == pytest.approx(found.pvalues[place], abs=1e-6)
    family = one(tables.choice, judge=judge, measure="family_log_odds", pass_="both")
    assert family["note"].startswith("undefined: the judge's family is not known")


@pytest.mark.parametrize("run", DATA)
def test_controls_have_the_regression_that_their_rule_makes(studies, run):
    """Who always takes the first or the longer answer has no finite log odds."""
    choice = studies[run].choice
    for judge, effect in (("always-first", "first_position"), ("longest", "length")):
        row = one(choice, judge=judge, measure=f"{effect}_log_odds", pass_="both")
        assert row["note"].startswith("undefined: no finite estimate"), judge
    assert np.isfinite(one(choice, judge="coin", measure="length_log_odds", pass_="both")["estimate"])
