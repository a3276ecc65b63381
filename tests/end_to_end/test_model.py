"""The embedded model, live, through the notebooks of stages 03 and 04."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from .conftest import ROOT, command, succeeded

pytestmark = [pytest.mark.model, pytest.mark.slow]


def rows(outputs: Path, query: str) -> list[tuple]:
    database = sqlite3.connect(outputs / "quickstart/ledger.sqlite")
    found = database.execute(query).fetchall()
    database.close()
    return found


def test_a_real_llm_is_asked_once_and_never_again(tmp_path):
    few = ["--set", "items.limit=2", "--set", "split.development_share=0", "--jobs", 1]
    succeeded(command(tmp_path, "run", ROOT / "params/quickstart.yaml", *few, "--to", "04"))
    calls = rows(
        tmp_path,
        "SELECT strategy, pass, model, tokens_in, tokens_out, status FROM calls WHERE judge = 'smollm2-135m'",
    )
    assert sorted(row[:2] for row in calls) == sorted(
        2 * [("pairwise", "original"), ("pairwise", "swapped")] + 4 * [("direct", "direct")]
    )
    for _, _, model, tokens_in, tokens_out, status in calls:
        assert model.startswith("SmolLM2-135M-Instruct")
        assert model.endswith(".gguf")
        assert tokens_in > 100  # the rubric, the task and two answers
        assert 0 < tokens_out <= 2 * 160
        assert status in ("verdict", "unusable")
    attempts = rows(tmp_path, "SELECT call_id, number, finished_at FROM attempts ORDER BY 1, 2")
    assert len(attempts) >= len(calls)
    succeeded(command(tmp_path, "run", ROOT / "params/quickstart.yaml", *few, "--from", "04", "--to", "04"))
    assert rows(tmp_path, "SELECT call_id, number, finished_at FROM attempts ORDER BY 1, 2") == attempts
