"""The embedded model, live, through the notebooks of stages 03 and 04."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from judgelab.pipeline import prepared
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


def rows(outputs: Path, query: str) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(outputs / "quickstart/ledger.sqlite")
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
