"""Small studies for the tests of measure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

ALPHA_BETA = ("ALPHA", "BETA", "TIE")
Maker = Callable[..., pd.DataFrame]


def make_normalized(
    human: Sequence[Any],
    direct: Sequence[Any] | None = None,
    original: Sequence[Any] | None = None,
    swapped: Sequence[Any] | None = None,
    first: Sequence[Any] | None = None,
    *,
    judge: str = "j",
    items: Sequence[Any] | None = None,
    category: Sequence[Any] | None = None,
    systems: tuple[str, str] = ("ALPHA", "BETA"),
) -> pd.DataFrame:
    """A normalized table of one judge; a pass that is not given was not planned; None is no label."""
    n = len(human)
    table = pd.DataFrame({"judge": [judge] * n, "item_id": list(items) if items is not None else list(range(n))})
    table["category"] = pd.Series(list(category) if category is not None else [np.nan] * n, dtype=object)
    table["system_x"], table["system_y"] = systems
    sources = {"human": human, "direct": direct, "pair_original": original, "pair_swapped": swapped}
    for name, values in sources.items():
        given = list(values) if values is not None else [None] * n
        table[name] = pd.Series([np.nan if v is None else v for v in given], dtype=object)
    table["original_first"] = list(first) if first is not None else [systems[0]] * n
    table["words_x"], table["words_y"] = 10, 20
    for name in ("total_x", "total_y", "human_score_x", "human_score_y"):
        table[name] = np.nan
    planned = {"planned_direct": direct, "planned_original": original, "planned_swapped": swapped}
    for name, values in planned.items():
        table[name] = values is not None
    return table


def random_normalized(n: int, seed: int, missing: float = 0.1, **options: Any) -> pd.DataFrame:
    """A judge that repeats the human label more often than not, with some verdicts missing."""
    rng = np.random.default_rng(seed)
    human = rng.choice(ALPHA_BETA, n, p=[0.5, 0.3, 0.2]).astype(object)

    def noisy(accuracy: float) -> list[Any]:
        other = rng.choice(ALPHA_BETA, n)
        given = np.where(rng.random(n) < accuracy, human, other).astype(object)
        given[rng.random(n) < missing] = None
        return list(given)

    direct, original, swapped = noisy(0.5), noisy(0.7), noisy(0.6)
    human[rng.random(n) < missing] = None
    first = rng.choice(["ALPHA", "BETA"], n)
    return make_normalized(human, direct, original, swapped, first, **options)


def pick(table: pd.DataFrame, measure: str, pass_: str, slice_: str = "all", judge: str = "j") -> pd.Series:
    """The one row of a measure; of correlations that over all answers."""
    if "level" in table:
        table = table[table["level"].isin(["", "data_set"])]
    same = (table["measure"] == measure) & (table["pass"] == pass_) & (table["slice"] == slice_)
    found = table[same & (table["judge"] == judge)]
    assert len(found) == 1, f"{len(found)} rows of {measure}, {pass_}, {slice_}, {judge}"
    return found.iloc[0]


def llmbar_normalized(shared: Path, judge: str, prompt: str = "Vanilla_NoRules") -> tuple[pd.DataFrame, dict[str, Any]]:
    """One judge of LLMBar Natural as a normalized table, and its published statistics.json.

    Output 1 and 2 are the systems S1 and S2; swap = False shows output 1 first. Rating has no order: its verdicts of
    swap = False (2 on equal scores) and swap = True (1) give the direct preference, TIE where they differ.
    """
    folder = shared / "data/llmbar_natural/LLMBar/Natural/evaluators" / judge / prompt
    records = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    published = json.loads((folder / "statistics.json").read_text(encoding="utf-8"))
    name = {"1": "S1", "2": "S2"}
    human = [name[str(record["label"])] for record in records]
    sides = [
        [name.get(str(record["results"][-1][f"swap = {swap}"]["winner"])) for record in records]
        for swap in ("False", "True")
    ]
    if prompt.startswith("Rating"):
        direct = [a if a == b else "TIE" for a, b in zip(*sides, strict=True)]
        return make_normalized(human, direct, systems=("S1", "S2"), judge=judge), published
    return make_normalized(human, None, *sides, systems=("S1", "S2"), judge=judge), published


@pytest.fixture
def options() -> dict[str, Any]:
    """Options of every bootstrap: few resamples, since most tests look at estimates."""
    return {"ci_level": 0.95, "resamples": 200, "seed": 240719}
