"""The embedded model, live: as a judge through the notebooks of stages 03 and 04, and as a writer of answers."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from judgelab.judging.generation import generate, write_candidates
from judgelab.pipeline import prepared
from judgelab.study.candidates import draft_run
from judgelab.study.freeze import freeze

from .conftest import ROOT, command, outputs_at, succeeded

pytestmark = [pytest.mark.model, pytest.mark.slow]
PARAMS = ROOT / "params/quickstart.yaml"
CHANGES = ("items.limit=1", "split.development_share=0")  # one item: seconds a call
OPTIONS = [word for change in CHANGES for word in ("--set", change)]


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outputs with the embedded model's replies on one item."""
    outputs = tmp_path_factory.mktemp("quickstart")
    with outputs_at(outputs):
        freeze(*prepared(PARAMS, CHANGES))
    succeeded(command(outputs, "run", PARAMS, *OPTIONS, "--from", "03", "--to", "04"))
    return outputs


def rows(outputs: Path, query: str, run: str = "quickstart") -> list[tuple[Any, ...]]:
    database = sqlite3.connect(outputs / run / "ledger.sqlite")
    found = database.execute(query).fetchall()
    database.close()
    return found


def test_a_real_llm_is_asked(quickstart):
    calls = rows(
        quickstart,
        "SELECT strategy, pass, model, tokens_in, tokens_out, status FROM calls WHERE judge = 'smollm2-135m'",
    )
    assert sorted(row[:2] for row in calls) == [
        ("direct", "direct"), ("direct", "direct"), ("pairwise", "original"), ("pairwise", "swapped"),
    ]  # fmt: skip
    for _, _, model, tokens_in, tokens_out, status in calls:
        assert model.startswith("SmolLM2-135M-Instruct")
        assert model.endswith(".gguf")
        assert tokens_in > 100  # the rubric, the task and two answers
        assert 0 < tokens_out <= 160
        assert status in ("verdict", "unusable")


def test_a_second_run_does_not_ask_again(quickstart):
    query = "SELECT call_id, number, finished_at FROM attempts ORDER BY 1, 2"
    attempts = rows(quickstart, query)
    assert len(attempts) >= 7 * 4  # seven judges, four calls; the model may have needed a second attempt
    succeeded(command(quickstart, "run", PARAMS, *OPTIONS, "--from", "03", "--to", "04"))
    assert rows(quickstart, query) == attempts


def test_a_real_llm_writes_two_answers(tmp_path):
    hot = "{kind: embedded, temperature: 0.9, max_tokens: 24, seed: 1}"
    systems = f"{{ALPHA: {{}}, BETA: {{}}, warm: {{generated: {{model: {hot}, completions: 2}}}}}}"
    changes = ("items.limit=1", f"systems={systems}")
    asked = "SELECT pass, repeat, presentation, model, tokens_out, status FROM calls WHERE strategy = 'generation'"
    with outputs_at(tmp_path):
        name, study = prepared(ROOT / "params/candidates.yaml", changes)
        draft = draft_run(name, study)
        first = asyncio.run(generate(draft))
        write_candidates(draft)
        ledger = rows(tmp_path, f"{asked} ORDER BY repeat", name)
        again = asyncio.run(generate(draft))
        assert rows(tmp_path, f"{asked} ORDER BY repeat", name) == ledger
        run = freeze(name, study)
    assert first[["asked", "verdicts"]].to_numpy().tolist() == [[2, 2]]
    assert again[["already", "asked"]].to_numpy().tolist() == [[2, 0]]
    assert [row[:3] for row in ledger] == [("generation", 0, '["warm.1"]'), ("generation", 1, '["warm.2"]')]
    for *_, model, tokens_out, status in ledger:
        assert model.startswith("SmolLM2-135M-Instruct")
        assert 0 < tokens_out <= 24
        assert status == "verdict"
    (item,) = run.items()
    assert list(item.answers) == ["ALPHA", "BETA", "warm.1", "warm.2"]
    assert item.answers["warm.1"] != item.answers["warm.2"]
    assert min(len(answer.split()) for answer in item.answers.values()) > 1
