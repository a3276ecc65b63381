"""LLMBar on its human labels: the published statistics come out of the run's own tables."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from judgelab.judging.evidence import verdicts
from judgelab.judging.runner import run_passes
from judgelab.measure.agreement import agreement_table
from judgelab.measure.position import position_table
from judgelab.measure.preferences import normalize
from judgelab.study.freeze import freeze
from judgelab.study.protocol import load_params
from judgelab.study.tables import read_table

from .conftest import ROOT, check_reference, command, judges_of, one, outputs_at, succeeded

pytestmark = pytest.mark.data
JUDGES = judges_of("llmbar-natural.yaml")
PUBLISHED = judges_of("llmbar-natural.yaml", kind="recorded")
# Which rows hold which key of statistics.json. LLMBar counts a missing verdict as wrong, and two as equal verdicts.
COUNTS = {
    "correct_False": ("agreement", "exact_agreement_unusable_as_wrong", "original"),
    "correct_True": ("agreement", "exact_agreement_unusable_as_wrong", "swapped"),
    "correct_both": ("agreement", "both_passes_correct_unusable_as_wrong", "both"),
    "equal": ("position", "swap_consistency_unusable_as_label", "both"),
}


@pytest.fixture(scope="session")
def tables(llmbar: Path) -> dict[str, pd.DataFrame]:
    return {name: read_table(llmbar / f"llmbar-natural/tables/{name}.csv") for name in ("agreement", "position")}


def prompts(judge: str) -> list[str]:
    """``evaluators/<judge>/<prompt>`` of the pairwise and the direct verdicts of a judge."""
    document = yaml.safe_load((ROOT / "params/llmbar-natural.yaml").read_text(encoding="utf-8"))
    entry = next(entry for entry in document["study"]["judges"] if entry["name"] == judge)
    return entry["provenance"].split(", ")[1:]


def statistics(shared: Path, prompt: str) -> dict[str, object]:
    path = shared / "data/llmbar_natural/LLMBar/Natural" / prompt / "statistics.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_five_llms_are_judges():
    assert {"gpt-4", "chatgpt", "palm2", "llama2", "falcon"} <= set(PUBLISHED)
    assert sum("Rating" in prompt for judge in PUBLISHED for prompt in prompts(judge)) == 1


@pytest.mark.parametrize("judge", PUBLISHED)
def test_every_published_value_stands_in_the_tables(shared, tables, judge):
    (prompt,) = [prompt for prompt in prompts(judge) if "Rating" not in prompt]
    published = statistics(shared, prompt)
    for key, (table, measure, pass_) in COUNTS.items():
        row = one(tables[table], judge=judge, measure=measure, pass_=pass_)
        assert published[key] == f"{row['numerator']} / {row['denominator']} = {row['estimate']:.1%}", key
    row = one(tables["agreement"], judge=judge, measure="exact_agreement_unusable_as_wrong", pass_="both")
    assert published["correct_average"] == f"{row['estimate']:.1%}"
    row = one(tables["position"], judge=judge, measure="swap_kappa_unusable_as_label", pass_="both")
    assert row["estimate"] == pytest.approx(published["kappa_agreement"], abs=1e-11)  # tables hold 12 digits


def test_gpt_4_has_the_figures_that_everybody_quotes(tables):
    """LLMBar, table of GPT-4 with the prompt Vanilla_NoRules: 93.5 % accuracy, 97.0 % positional agreement."""
    row = one(tables["agreement"], judge="gpt-4", measure="exact_agreement", pass_="both")
    assert (row["numerator"], row["denominator"], row["estimate"]) == (187, 200, 0.935)
    row = one(tables["position"], judge="gpt-4", measure="swap_consistency", pass_="both")
    assert (row["numerator"], row["denominator"], row["estimate"]) == (97, 100, 0.97)
    row = one(tables["position"], judge="gpt-4", measure="swap_kappa", pass_="both")
    assert row["estimate"] == pytest.approx(0.93897, abs=5e-6)


def test_gpt_4_s_direct_rating_stands_beside_it(shared, tables):
    """Equal ratings are right in one order and wrong in the other there: half a point in the average, none in both."""
    (prompt,) = [prompt for prompt in prompts("gpt-4") if "Rating" in prompt]
    published = statistics(shared, prompt)
    row = one(tables["agreement"], judge="gpt-4", measure="exact_agreement_ties_as_half", pass_="direct")
    assert published["correct_average"] == f"{row['estimate']:.1%}" == "92.0%"
    row = one(tables["agreement"], judge="gpt-4", measure="exact_agreement", pass_="direct")
    assert published["correct_both"] == f"{row['numerator']} / {row['denominator']} = {row['estimate']:.1%}"
    row = one(tables["agreement"], judge="gpt-4", measure="tie_rate", pass_="direct")
    assert row["numerator"] == 100 - int(str(published["equal"]).split(" /")[0])


def test_direct_or_pairwise_has_a_paired_interval(tables):
    row = one(tables["agreement"], judge="gpt-4", measure="exact_agreement_difference", pass_="original")
    assert row["estimate"] == pytest.approx(0.92 - 0.87)
    assert row["ci_low"] < row["estimate"] < row["ci_high"]
    assert (row["n_used"], row["ci_level"]) == (100, 0.95)
    assert set(tables["agreement"]["provenance"]) == {"human"}


@pytest.mark.parametrize("judge", JUDGES)
def test_the_reference_analysis_prints_what_the_tables_say(shared, llmbar, judge):
    check_reference(shared, llmbar / "llmbar-natural", judge)


ADVERSARIAL_PARAMS = ROOT / "params/llmbar-adversarial.yaml"
# The adversarial sets, by category: published accuracy and positional agreement in per cent.
ADVERSARIAL = {
    "neighbor": (64.2, 89.6),
    "gptinst": (76.6, 90.2),
    "gptout": (76.6, 87.2),
    "manual": (75.0, 89.1),
}


@pytest.fixture(scope="module")
def adversarial_outputs(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outputs with the adversarial sets, imported."""
    outputs = tmp_path_factory.mktemp("adversarial")
    folder = shared / "data/llmbar_adversarial_gpt4"
    succeeded(command(outputs, "import", "llmbar", folder, "--run", "llmbar-adversarial"))
    return outputs


@pytest.fixture(scope="module")
def adversarial(adversarial_outputs: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Agreement and position of the adversarial sets, computed without notebooks."""
    with outputs_at(adversarial_outputs):
        run = freeze(*load_params(ADVERSARIAL_PARAMS))
        asyncio.run(run_passes(run, run.study.passes))
        normalized = normalize(verdicts(run), run.reference(), run.comparisons(), margin=run.study.direct_tie_margin)
    options = {"labels": run.study.labels, "ci_level": 0.95, "resamples": 200, "seed": 1}
    return agreement_table(normalized, **options), position_table(normalized, **options)


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_the_adversarial_sets_come_out_as_published(adversarial, name):
    agreement, position = adversarial
    where = {"judge": "gpt-4", "slice_": f"category={name}", "pass_": "both"}
    accuracy = one(agreement, measure="exact_agreement", **where)
    stable = one(position, measure="swap_consistency", **where)
    assert (round(100 * accuracy["estimate"], 1), round(100 * stable["estimate"], 1)) == ADVERSARIAL[name]


def test_all_319_adversarial_items_are_there(adversarial):
    assert one(adversarial[1], judge="gpt-4", measure="swap_consistency", pass_="both")["denominator"] == 319


@pytest.mark.slow
def test_the_stage_of_a_strategy_that_nobody_was_asked_for_runs_too(adversarial, adversarial_outputs):
    """The adversarial verdicts are pairwise only."""
    succeeded(command(adversarial_outputs, "run", ADVERSARIAL_PARAMS, "--from", "03", "--to", "03"))
