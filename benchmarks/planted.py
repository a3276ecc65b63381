"""Planted effects of place, length, family and leniency, and fair noisy judges: how often is either called biased?

Every study goes through the package's own tables. The power that is stated beside is computed from the planted rates:
exactly, by summing over all outcomes of the test, or for leniency from the normal distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom, binomtest, fisher_exact, norm

from judgelab.measure.bias import bias_table
from judgelab.measure.scores import score_table

__all__ = ["EFFECTS", "Effect", "alarms", "main"]

LABELS = ("ALPHA", "BETA", "TIE")
OWN = {"own": ["ALPHA"]}
SIZES = (100, 300)
STUDIES = 500
ERROR = 0.2  # a judge's share of wrong preferences, whatever the place, length or family
FAVOURED = 0.6  # people prefer the longer answer, or the family's, on so many items
SIGNIFICANT = 0.05
OPTIONS: dict[str, Any] = {"ci_level": 0.95, "seed": 1}
SPREAD = 0.8  # standard deviation of a judge's score around people's


@dataclass(frozen=True)
class Effect:
    """A study with an effect of a strength (0 is a fair judge), whether it is called biased, and the test's power."""

    study: Callable[[int, float, np.random.Generator], pd.DataFrame]
    called: Callable[[pd.DataFrame], bool]
    power: Callable[[int, float], float]
    strength: float


def _frame(human: Any, original: Any, swapped: Any = None, longer: Any = "ALPHA") -> pd.DataFrame:
    table = pd.DataFrame(
        {"judge": "judge", "item_id": np.arange(len(human)), "human": human, "pair_original": original}
    )
    table["pair_swapped"] = np.full(len(human), np.nan, dtype=object) if swapped is None else swapped
    table["direct"] = np.full(len(human), np.nan, dtype=object)
    table["system_x"], table["system_y"], table["original_first"] = "ALPHA", "BETA", "ALPHA"
    table["words_x"] = np.where(np.asarray(longer) == "ALPHA", 200, 100)
    table["words_y"] = 300 - table["words_x"]
    for name in ("direct", "original", "swapped"):
        table[f"planned_{name}"] = name == "original" or (name == "swapped" and swapped is not None)
    return table


def _other(systems: Any) -> Any:
    return np.where(systems == "ALPHA", "BETA", "ALPHA")


def _erring(human: Any, rng: np.random.Generator) -> Any:
    return np.where(rng.random(len(human)) < ERROR, _other(human), human)


def by_place(n: int, strength: float, rng: np.random.Generator) -> pd.DataFrame:
    """A share of pairs is decided for the answer shown first, which is ALPHA in the original presentation."""
    human = rng.choice(LABELS[:2], n)
    placed = rng.random(n) < strength
    original, swapped = _erring(human, rng), _erring(human, rng)
    return _frame(human, np.where(placed, "ALPHA", original), np.where(placed, "BETA", swapped))


def by_length(n: int, strength: float, rng: np.random.Generator) -> pd.DataFrame:
    """A share of pairs is decided for the longer answer; people prefer it on 0.6 of the items."""
    longer = rng.choice(LABELS[:2], n)
    human = np.where(rng.random(n) < FAVOURED, longer, _other(longer))
    return _frame(human, np.where(rng.random(n) < strength, longer, _erring(human, rng)), longer=longer)


def by_family(n: int, strength: float, rng: np.random.Generator) -> pd.DataFrame:
    """A share of pairs is decided for ALPHA, of the judge's family; people prefer it on 0.6 of the items."""
    human = np.where(rng.random(n) < FAVOURED, "ALPHA", "BETA")
    return _frame(human, np.where(rng.random(n) < strength, "ALPHA", _erring(human, rng)))


def lenient(n: int, strength: float, rng: np.random.Generator) -> pd.DataFrame:
    """A judge's scores of two answers an item, people's plus the strength and noise that an item's answers share."""
    human = np.full(n, "ALPHA", dtype=object)
    table = _frame(human, human).assign(planned_direct=True)
    shared = rng.standard_normal(n)
    for side in "xy":
        noise = SPREAD * (shared + rng.standard_normal(n)) / np.sqrt(2)
        table[f"human_score_{side}"] = rng.normal(3, 1, n)
        table[f"total_{side}"] = table[f"human_score_{side}"] + strength + noise
    return table


def _p(measure: str) -> Callable[[pd.DataFrame], bool]:
    def called(table: pd.DataFrame) -> bool:
        # the tests are exact: one resample is enough, since no interval is read
        families = OWN if measure.startswith("family") else None
        rows = bias_table(table, labels=LABELS, families=families, resamples=1, **OPTIONS)
        return bool((rows.loc[rows["measure"] == measure, "estimate"] <= SIGNIFICANT).any())

    return called


def _lenient(table: pd.DataFrame) -> bool:
    rows = score_table(table, resamples=1_000, **OPTIONS)
    row = rows[(rows["measure"] == "mean_difference") & (rows["slice"] == "all")].iloc[0]
    return bool(row["ci_low"] > 0 or row["ci_high"] < 0)


def sign_power(n: int, strength: float) -> float:
    """Chance that the sign test of the pairs decided by place is significant: sum over their number and direction."""
    chance = (1 - strength) * ERROR * (1 - ERROR)  # of either place by errors alone
    first, either = strength + chance, strength + 2 * chance
    total = 0.0
    for pairs in range(n + 1):
        outcomes = np.arange(pairs + 1)
        refused = [pairs > 0 and binomtest(int(k), pairs).pvalue <= SIGNIFICANT for k in outcomes]
        total += binom.pmf(pairs, n, either) * binom.pmf(outcomes, pairs, first / either)[refused].sum()
    return float(total)


def fisher_power(n: int, strength: float) -> float:
    """Chance that Fisher's test is significant, with the expected sizes of the two groups of items."""
    sizes = round(n * (1 - FAVOURED)), round(n * FAVOURED)
    rates = strength + (1 - strength) * ERROR, (1 - strength) * ERROR
    shares = [binom.pmf(np.arange(size + 1), size, rate) for size, rate in zip(sizes, rates, strict=True)]
    total = 0.0
    for k in np.flatnonzero(shares[0] > 1e-6):
        for j in np.flatnonzero(shares[1] > 1e-6):
            p = fisher_exact([[k, sizes[0] - k], [j, sizes[1] - j]]).pvalue
            total += shares[0][k] * shares[1][j] * (p <= SIGNIFICANT)
    return float(total)


def mean_power(n: int, strength: float) -> float:
    """Chance that a normal interval of the mean difference leaves 0 out; half of the noise is an item's own."""
    error = SPREAD * np.sqrt(0.75 / n)
    z = norm.ppf(1 - SIGNIFICANT / 2)
    return float(norm.cdf(strength / error - z) + norm.cdf(-strength / error - z))


EFFECTS = {
    "position": Effect(by_place, _p("first_position_p"), sign_power, 0.15),
    "length": Effect(by_length, _p("length_error_gap_p"), fisher_power, 0.2),
    "family": Effect(by_family, _p("family_error_gap_p"), fisher_power, 0.2),
    "leniency": Effect(lenient, _lenient, mean_power, 0.2),
}


def alarms(name: str, n: int, strength: float, studies: int) -> float:
    """Share of studies in which the judge is called biased."""
    effect = EFFECTS[name]
    rng = np.random.default_rng([n, round(1_000 * strength), list(EFFECTS).index(name)])
    return float(np.mean([effect.called(effect.study(n, strength, rng)) for _ in range(studies)]))


def main(scale: float = 1.0) -> None:
    """Measure and print."""
    studies = max(20, int(STUDIES * scale))
    print(f"{studies} studies each; a fair judge errs on {ERROR:.0%} of the items")
    print(f"  {'effect':<9} {'n':>4} {'planted':>8} {'found':>6} {'stated power':>13} {'fair judge called biased':>25}")
    for name, effect in EFFECTS.items():
        for n in SIZES:
            found, false = (alarms(name, n, strength, studies) for strength in (effect.strength, 0.0))
            power = effect.power(n, effect.strength)
            print(f"  {name:<9} {n:>4} {effect.strength:>8} {found:>6.3f} {power:>13.3f} {false:>25.3f}", flush=True)


if __name__ == "__main__":
    main()
