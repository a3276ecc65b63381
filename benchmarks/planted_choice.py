"""Planted tastes of place, length and family in simulated judges: does the regression find each, and nothing else?

The judges are the package's own of kind ``simulated`` with logistic noise 1 and no ties, so that their effects are log
odds. Their replies go through ``normalize`` and ``choice_table``. Items, labels, lengths and qualities are drawn anew
for every study.
"""

from __future__ import annotations

import asyncio
import csv
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks.planted import SIGNIFICANT
from judgelab.judging.judges.base import Call
from judgelab.judging.judges.simulated import SimulatedClient
from judgelab.judging.prompts import Prompt
from judgelab.measure.choice_model import choice_table
from judgelab.measure.intervals import wilson
from judgelab.measure.preferences import normalize
from judgelab.study.items import Item
from judgelab.study.protocol import parse_study

__all__ = ["EFFECTS", "SCENARIOS", "judged", "main", "simulated"]

STUDIES, ITEMS, CI_LEVEL = 1_000, 200, 0.95  # of 200 studies, the share at 0.95 is below 0.93 for one effect in 13
EFFECTS = ("human", "first_position", "length", "family")
FAMILIES = {"ALPHA": "own", "BETA": "other", "GAMMA": "other"}
PAIRS = (("ALPHA", "BETA"), ("ALPHA", "GAMMA"), ("BETA", "GAMMA"))
WORDS, SPREAD = 4.0, 0.5  # mean and standard deviation of the logarithm of an answer's length
# log odds of the effects; spread over items of what the judge sees in answers and people do not
SCENARIOS = {
    "planted": ((1.0, 1.0, 0.8, 0.7), 0.0),
    "fair": ((1.0, 0.0, 0.0, 0.0), 0.0),
    "fair, with a taste for each item": ((1.0, 0.0, 0.0, 0.0), 1.5),
}
NO_PROMPT = Prompt("", "", "", (), ())


def _protocol(judge: dict[str, Any]) -> dict[str, Any]:
    return {
        "study_id": "planted", "sampling_rule": "made for the benchmark", "items": {"path": "params/items.jsonl"},
        "systems": {name: {"family": family} for name, family in FAMILIES.items()}, "rubric_version": "r1",
        "direct_scale": {"criteria": ["correctness"]}, "direct_tie_margin": 0.25, "random_seed": 7, "judges": [judge],
        "passes": ["pairwise_original", "pairwise_swapped"], "position_test": {"enabled": True},
    }  # fmt: skip


def judged(items: list[Item], qualities: list[tuple[str, str, float]], **options: Any) -> pd.DataFrame:
    """What a simulated judge says of the one pair of each item, first shown first and swapped, as a verdict table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "quality.csv"
        with path.open("w", newline="", encoding="utf-8") as lines:
            csv.writer(lines).writerows([("item_id", "system", "quality"), *qualities])
        judge = {"name": "judge", "kind": "simulated", "family": "own", "quality_path": str(path)}
        noise = {"noise": 1.0, "noise_distribution": "logistic", "tie_width": 0.0}
        study = parse_study(_protocol(judge | noise | options))
        client = SimulatedClient(study.judges[0], study)  # type: ignore[arg-type]
    return pd.DataFrame(asyncio.run(_answers(client, items)))


async def _answers(client: SimulatedClient, items: list[Item]) -> list[dict[str, Any]]:
    rows = []
    for item in items:
        ((pair, first),) = item.first.items()
        other = pair[1] if first == pair[0] else pair[0]
        for name, shown in (("original", (first, other)), ("swapped", (other, first))):
            text = (await client.ask(Call("pairwise", name, item, shown), NO_PROMPT)).text
            rows.append({
                "judge": "judge", "strategy": "pairwise", "pass": name, "item_id": item.item_id,
                "system_x": pair[0], "system_y": pair[1], "first": shown[0], "second": shown[1],
                "verdict": json.loads(text or "")["winner"], "status": "verdict", "system": None, "total": None,
            })  # fmt: skip
    return rows


def simulated(
    n: int, effects: tuple[float, ...], taste: float, rng: np.random.Generator
) -> tuple[pd.DataFrame, np.ndarray]:
    """The normalized table of one study of n items, and its covariates of x against y in either pass (2n, 4)."""
    pairs = [PAIRS[place] for place in rng.integers(0, len(PAIRS), n)]
    x_first, human = rng.random(n) < 0.5, rng.choice([1.0, -1.0], n)
    words = np.maximum(np.exp(rng.normal(WORDS, SPREAD, (n, 2))).astype(int), 1)
    gaps = effects[0] * human + taste * rng.standard_normal(n)
    items, qualities, compared = [], [], []
    for number, pair in enumerate(pairs):
        name, first = f"i{number:04d}", pair[0] if x_first[number] else pair[1]
        answers = {system: "word " * int(count) for system, count in zip(pair, words[number], strict=True)}
        items.append(Item(name, "", "", "all", answers, "0" * 64, first={pair: first}))
        qualities += [(name, system, sign * gaps[number] / 2) for system, sign in zip(pair, (1, -1), strict=True)]
        preferred = pair[0] if human[number] > 0 else pair[1]
        compared.append((name, "all", *pair, first, *words[number], preferred, None, None))
    options = dict(zip((f"{name}_effect" for name in EFFECTS[1:]), effects[1:], strict=True))
    columns = ["item_id", "category", "system_x", "system_y", "first", "words_x", "words_y"]
    table = pd.DataFrame(compared, columns=[*columns, "human", "human_score_x", "human_score_y"])
    verdicts = judged(items, qualities, seed=int(rng.integers(2**31)), **options)
    reference = table.drop(columns=["category", "first", "words_x", "words_y"])
    normalized = normalize(verdicts, reference, table[columns], margin=0.25)
    family = [float(FAMILIES[x] == "own") - (FAMILIES[y] == "own") for x, y in pairs]
    place, length = np.where(x_first, 1.0, -1.0), np.log(words[:, 0] / words[:, 1])
    return normalized, np.concatenate([np.column_stack([human, p, length, family]) for p in (place, -place)])


def win_changes(covariates: np.ndarray, effects: tuple[float, ...]) -> list[float]:
    """The true changes of the chance to win, mean over the judgments."""
    changes = []
    for place, name in enumerate(EFFECTS):
        rest = np.delete(covariates, place, axis=1) @ np.delete(effects, place)
        if name == "length":  # each answer in turn twice as long as the other, against equally long
            move = effects[place] * np.log(2)
            gains = [expit(rest + move) - expit(rest), expit(-rest + move) - expit(-rest)]
            changes.append(float(np.mean(gains)))
        else:
            changes.append(float((expit(rest + effects[place]) - expit(rest - effects[place])).mean()))
    return changes


def measured(scenario: str, studies: int, n: int = ITEMS) -> pd.DataFrame:
    """A row per study and effect: estimate, whether intervals hold the truth, whether p is below 0.05."""
    effects, taste = SCENARIOS[scenario]
    rng = np.random.default_rng([n, list(SCENARIOS).index(scenario)])
    labels, rows = (*FAMILIES, "TIE"), []
    options: dict[str, Any] = {"labels": labels, "families": FAMILIES, "judge_families": {"judge": "own"}}
    for _ in range(studies):
        normalized, covariates = simulated(n, effects, taste, rng)
        table = choice_table(normalized, **options, ci_level=CI_LEVEL)
        columns = (table[name] for name in ("estimate", "ci_low", "ci_high"))
        found = dict(zip(table["measure"], zip(*columns, strict=True), strict=True))
        for name, odds, change in zip(EFFECTS, effects, win_changes(covariates, effects), strict=True):
            row: dict[str, Any] = {"effect": name, "estimate": found[f"{name}_log_odds"][0]}
            for measure, truth in (("log_odds", odds), ("win_change", change)):
                _, low, high = found[f"{name}_{measure}"]
                row[measure] = low <= truth <= high
            rows.append(row | {"called": found[f"{name}_log_odds_p"][0] < SIGNIFICANT})
    return pd.DataFrame(rows)


def _share(hits: pd.Series) -> str:
    low, high = wilson(int(hits.sum()), len(hits), 0.95)
    return f"{hits.mean():.3f} [{low:.3f}, {high:.3f}]"


def main(scale: float = 1.0) -> None:
    """Measure and print."""
    studies = max(10, int(STUDIES * scale))
    print(f"{studies} studies of {ITEMS} items each, both passes; shares with Wilson's 95 % interval")
    for scenario, (effects, taste) in SCENARIOS.items():
        table = measured(scenario, studies)
        print(f"{scenario}:")
        for name, planted in zip(EFFECTS, effects, strict=True):
            rows = table[table["effect"] == name]
            if taste and planted:
                continue  # a taste for each item shrinks what is not 0: nothing is planted in the regression's terms
            text = f"  {name:<15} planted {planted:3.1f}, mean estimate {rows['estimate'].mean():6.3f}"
            covered = f"log odds covered {_share(rows['log_odds'])}"
            if not taste:
                covered += f", win change {_share(rows['win_change'])}"
            print(f"{text}, {covered}, p < {SIGNIFICANT} in {_share(rows['called'])}", flush=True)


if __name__ == "__main__":
    main()
