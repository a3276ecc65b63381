"""Planted strengths of six systems, two or all of them equal, in simulated verdicts: do intervals and ranks hold them?

Every pair of systems meets on every item in both presentations. The judge's log odds are the difference of the two
strengths, the effect of the first place, and, in one scenario, what the two answers to the item are better or worse
than their systems; its noise is logistic. Then the leaderboard's model, which knows neither place nor answers, has the
strengths for its truth that balance wins and expectations in an endless study; the model that holds the place has the
planted ones.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks.planted_choice import _share
from judgelab.measure.controlled import FIRST, controlled_strengths
from judgelab.measure.leaderboard import leaderboard
from judgelab.measure.resampling import Floats, percentile_interval
from judgelab.measure.strengths import strengths

__all__ = ["LEVELS", "SCENARIOS", "judged", "limits", "main", "measured"]

STUDIES, CI_LEVEL, RESAMPLES = 300, 0.95, 300
LEVELS = {"A": 1.0, "B": 0.5, "C": 0.0, "D": 0.0, "E": -0.5, "F": -1.0}
PLACE = 0.5  # log odds of the first place
# items; standard deviation of the answers of a system around its strength; factor of the strengths
SCENARIOS = {
    "60 items": (60, 0.0, 1.0),
    "60 items, answers vary": (60, 1.0, 1.0),
    "60 items, answers vary, all systems equal": (60, 1.0, 0.0),
    "10 items, answers vary": (10, 1.0, 1.0),
}
PAIRS = list(combinations(LEVELS, 2))
POINTS = 400 / np.log(10)


def judged(items: int, spread: float, levels: dict[str, float], rng: np.random.Generator) -> pd.DataFrame:
    """The verdicts of one study."""
    quality = np.array(list(levels.values())) + spread * rng.standard_normal((items, len(LEVELS)))
    item, pair, place = (grid.ravel() for grid in np.meshgrid(range(items), range(len(PAIRS)), (1, -1), indexing="ij"))
    x, y = (np.array([list(LEVELS).index(names[side]) for names in PAIRS])[pair] for side in (0, 1))
    won = quality[item, x] - quality[item, y] + PLACE * place + rng.logistic(size=len(item)) > 0
    names = np.array(list(LEVELS), dtype=object)
    return pd.DataFrame({
        "judge": "judge", "item_id": item, "system_x": names[x], "system_y": names[y],
        "first": np.where(place > 0, names[x], names[y]), "preference": np.where(won, names[x], names[y]),
    })  # fmt: skip


def limits(spread: float, levels: dict[str, float]) -> Floats:
    """Log strengths, mean 0, that the model of the leaderboard has in a study without end."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    noise = np.sqrt(2) * spread * nodes
    gaps = np.subtract.outer(*[np.array(list(levels.values()))] * 2)[:, :, np.newaxis] + noise
    chances = (expit(gaps + PLACE) + expit(gaps - PLACE)) @ (weights / weights.sum()) / 2
    np.fill_diagonal(chances, 0)
    level = np.log(strengths(chances))
    return np.asarray(level - level.mean())


def measured(scenario: str, studies: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row per study and pair, and a row per study."""
    items, spread, factor = SCENARIOS[scenario]
    levels = {name: factor * level for name, level in LEVELS.items()}
    rng = np.random.default_rng([items, round(10 * spread), round(10 * factor)])
    limit = dict(zip(levels, limits(spread, levels), strict=True))
    above = {name: sum(level > own for level in levels.values()) for name, own in levels.items()}
    below = {name: sum(level < own for level in levels.values()) for name, own in levels.items()}
    options: dict[str, Any] = {"ci_level": CI_LEVEL, "resamples": RESAMPLES}
    pairs, whole = [], []
    for study in range(studies):
        table = judged(items, spread, levels, rng)
        made = leaderboard(table, **options, seed=study, permutations=1)
        ranked, place = made.table.set_index("system"), {name: at for at, name in enumerate(made.fit.systems)}
        low, high = (ranked[f"rank_{end}"].to_dict() for end in ("low", "high"))
        row = {"sets": all(low[s] <= 1 + above[s] and high[s] >= len(LEVELS) - below[s] for s in LEVELS)}
        if not spread:
            held = controlled_strengths(table, terms=(FIRST,), **options, seed=study)
            effect = held[held["measure"] == "first_position_effect"].iloc[0]
            row["place"] = effect["ci_low"] <= PLACE <= effect["ci_high"]
            ends = held[held["measure"] == "log_strength"].set_index("slice")
            row["held"] = np.mean([
                ends["ci_low"][f"system={s}"] <= true <= ends["ci_high"][f"system={s}"]
                for s, true in levels.items()
            ])  # fmt: skip
        whole.append(row)
        for x, y in PAIRS:
            draws = POINTS * (made.fit.draws[:, place[x]] - made.fit.draws[:, place[y]])
            least, most, _ = percentile_interval(draws, CI_LEVEL)
            true = POINTS * (limit[x] - limit[y])
            apart = not set(ranked["letters"][x]) & set(ranked["letters"][y])
            wrong = apart and levels[x] != levels[y] and (ranked["rank"][x] < ranked["rank"][y]) != (true > 0)
            error = ranked["strength_elo"][x] - ranked["strength_elo"][y] - true
            pairs.append((x, y, levels[x] == levels[y], least <= true <= most, error, most - least, apart, wrong))
    columns = ["x", "y", "equal", "covered", "error", "width", "apart", "wrong"]
    return pd.DataFrame(pairs, columns=columns), pd.DataFrame(whole)


def main(scale: float = 1.0) -> None:
    """Measure and print."""
    studies = max(10, int(STUDIES * scale))
    planted = ", ".join(f"{name} {level:g}" for name, level in LEVELS.items())
    print(
        f"{studies} studies a scenario, every pair in both presentations; log strengths {planted}; first place {PLACE}"
    )
    print(f"intervals and rank sets at {CI_LEVEL:g}; shares of studies with Wilson's 95 % interval")
    for scenario in SCENARIOS:
        pairs, whole = measured(scenario, studies)
        number = np.arange(len(pairs)) // len(PAIRS)
        by_pair = pairs.groupby(["x", "y"])["covered"].mean()
        told = pairs[~pairs["equal"]].groupby(["x", "y"])["apart"].mean()
        false = (pairs["apart"] & pairs["equal"]).groupby(number).any()
        wrong = pairs["wrong"].groupby(number).any()
        print(f"{scenario}:", flush=True)
        print(f"  differences of strength_elo covered   {pairs['covered'].mean():.3f}, by pair {by_pair.min():.3f} to "
              f"{by_pair.max():.3f}; mean error {pairs['error'].mean():.1f}, mean width {pairs['width'].mean():.0f} "
              "points")  # fmt: skip
        print(f"  all rank sets at once hold all ranks  {_share(whole['sets'])}")
        print(f"  any equal systems told apart          {_share(false)}")
        if len(told):
            print(f"  an order of unequals contradicted     {_share(wrong)}")
            print(f"  unequals told apart                   by pair {told.min():.3f} to {told.max():.3f}")
        if "place" in whole:
            print(f"  place held: effect covered            {_share(whole['place'])}; planted strengths covered "
                  f"{whole['held'].mean():.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
