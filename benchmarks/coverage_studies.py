"""Studies with a known truth, for the coverage of intervals: preferences, and scores."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from judgelab.measure.resampling import Contingency, Floats, Ints, ItemTable
from judgelab.measure.views import JudgeCodes

__all__ = ["Scenario", "Scores", "preferences", "scores", "truth_cells", "truth_scores"]

PRIOR = {2: (0.5, 0.5), 3: (0.45, 0.35, 0.2)}
PAIRS = 3  # judgments an item in the clustered scenarios
BEHIND = 0.05  # direct is right this much less often than pairwise
# share of items, and how often a judge is right there: the mean is the level
MIXED = {0.5: ((0.5, 0.25), (0.5, 0.75)), 0.95: ((0.2, 0.8), (0.8, 0.9875))}
PLAIN = {0.5: ((1.0, 0.5),), 0.95: ((1.0, 0.95),)}
SCALE = np.arange(1, 6)
MANY = 300_000


@dataclass(frozen=True)
class Scenario:
    """How many labels, how often judges are right (0.5 or 0.95), and whether items hold three judgments."""

    n_labels: int
    level: float
    clustered: bool
    n_items: int

    @property
    def kinds(self) -> tuple[tuple[float, float], ...]:
        """Kinds of items: their share, and how often a judge is right there."""
        return (MIXED if self.clustered else PLAIN)[self.level]


def preferences(scenario: Scenario, rng: np.random.Generator) -> JudgeCodes:
    """A judge whose three passes are right, independently given the item, or else choose any other label."""
    each = PAIRS if scenario.clustered else 1
    shares, levels = zip(*scenario.kinds, strict=True)
    kind = rng.choice(len(shares), scenario.n_items, p=shares)
    items = np.repeat(np.arange(scenario.n_items), each)
    n, width = len(items), scenario.n_labels
    right = np.array(levels)[kind][items]
    human = rng.choice(width, n, p=PRIOR[width])

    def judged(accuracy: Floats) -> Ints:
        other = (human + rng.integers(1, width, n)) % width
        return np.where(rng.random(n) < accuracy, human, other).astype(np.int64)

    direct, original, swapped = judged(right - BEHIND), judged(right), judged(right)
    first = rng.integers(0, 2, n)
    planned = np.ones(n, dtype=bool)
    return JudgeCodes(
        judge="j",
        items=items,
        category=np.where(items % 10 < 3, "a", "b").astype(object),
        human=human,
        direct=direct,
        original=original,
        swapped=swapped,
        aggregated=np.where(original == swapped, original, -2),
        original_first=first,
        other=1 - first,
        system_y=np.ones(n, dtype=np.int64),
        planned=dict.fromkeys(("direct", "original", "swapped"), planned),
    )


@cache
def truth_cells(scenario: Scenario) -> tuple[Ints, Floats]:
    """Every combination of human, direct, original and swapped, and its probability."""
    width = scenario.n_labels
    cells = np.array(list(itertools.product(range(width), repeat=4)))
    chance = np.zeros(len(cells))
    for share, right in scenario.kinds:
        product = np.full(len(cells), share)
        for column, accuracy in ((1, right - BEHIND), (2, right), (3, right)):
            hit = cells[:, column] == cells[:, 0]
            product *= np.where(hit, accuracy, (1 - accuracy) / (width - 1))
        chance += product
    return cells, chance * np.array(PRIOR[width])[cells[:, 0]]


def contingency_of(cells: Ints, chance: Floats, n_labels: int) -> tuple[Contingency, Floats]:
    """The cells as a contingency, and their probabilities as totals of one sample."""
    table = ItemTable(None, np.ones(len(cells), dtype=np.int64))
    return Contingency(cells, n_labels, table), chance[np.newaxis, :]


@dataclass(frozen=True)
class Scores:
    """Scores from 1 to 5 of the same answers."""

    items: Ints
    human: Floats
    judge: Floats
    second: Floats


def scores(scenario: Scenario, rng: np.random.Generator) -> Scores:
    """People's, a judge's and a second reviewer's scores with a correlation of about the level, before rounding."""
    each = PAIRS if scenario.clustered else 1
    items = np.repeat(np.arange(scenario.n_items), each)
    own = rng.standard_normal(len(items))
    quality = own
    if scenario.clustered:
        quality = (rng.standard_normal(scenario.n_items)[items] + own) / np.sqrt(2)
    noise = np.sqrt(1 / scenario.level - 1)

    def rated(lenient: float) -> NDArray[np.float64]:
        seen = quality + noise * rng.standard_normal(len(items))
        return np.clip(np.round(3 + seen / np.sqrt(1 + noise**2) + lenient), SCALE[0], SCALE[-1]).astype(np.float64)

    return Scores(items, rated(0.0), rated(0.3), rated(0.1))


@cache
def truth_scores(level: float) -> Scores:
    """So many answers that their estimates pass for the truth. Clusters change no distribution of one answer."""
    return scores(Scenario(2, level, False, MANY), np.random.default_rng(240719))
