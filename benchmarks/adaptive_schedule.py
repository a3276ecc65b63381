"""How many calls a ranking of 30 systems needs: round robin in random order, balanced sparse, adaptive, merge sort.

Simulated judges: a system's quality is normal with sd 1; in either presentation the judge sees the difference of two
with logistic noise, fresh for every item, pair and presentation, and says TIE where what it sees is within a band. Two
presentations that do not name the same system are a TIE. Systems and answers are drawn anew for every study.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from judgelab.measure.coding import TIE
from judgelab.measure.comparisons import Comparison, Oracle
from judgelab.measure.resampling import percentile_interval
from judgelab.measure.schedule_runs import SCHEDULES, ratings_at
from judgelab.measure.spending import rank_correlation, reached

__all__ = ["CASES", "judged", "main", "measured"]

STUDIES, SYSTEMS, CALLS = 24, 30, 2  # calls of a comparison: both presentations
TARGET, CI_LEVEL, RESAMPLES = 0.95, 0.95, 2_000
BAND = 0.3  # half the width of the band of ties, in scales of the noise
# scale of the noise, items, and the comparisons up to which rankings are compared
CASES = ((0.15, 100, 1_000), (0.5, 100, 2_000), (1.5, 100, 6_000), (1.5, 10, 4_350))
SMALLEST, STEPS = 30, 80  # comparisons after which they first are, and how often in all
AIM = 1 / 3  # of the calls of the whole round robin


def judged(noise: float, n_items: int, seed: int) -> tuple[Oracle, np.ndarray, float]:
    """All answers, the true qualities, and how often a presentation's answer names the better system."""
    rng = np.random.default_rng([seed, n_items, round(1000 * noise)])
    quality = rng.standard_normal(SYSTEMS)
    names = [f"s{number:02d}" for number in range(SYSTEMS)]
    answers: dict[Comparison, str | None] = {}
    right = []
    for x, y in combinations(range(SYSTEMS), 2):
        gap = quality[x] - quality[y]
        seen = gap + noise * rng.logistic(size=(n_items, 2))
        said = np.where(np.abs(seen) <= BAND * noise, 0, np.sign(seen))
        right.append(said == np.sign(gap))
        for item, (one, other) in enumerate(said):
            won = TIE if one != other or one == 0 else names[x] if one > 0 else names[y]
            answers[Comparison(f"i{item}", names[x], names[y])] = won
    return Oracle(answers), quality, float(np.mean(right))


def measured(
    noise: float, n_items: int, largest: int, studies: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, float]]:
    """Correlations with the full ranking and with the truth, and calls spent, each (schedules, studies, steps)."""
    full = SYSTEMS * (SYSTEMS - 1) // 2 * n_items
    steps = np.unique(np.geomspace(SMALLEST, largest, STEPS).round().astype(int)).tolist()
    near, true, spent = np.full((3, len(SCHEDULES), studies, len(steps)), np.nan)
    rights, ceilings = [], []
    for study in range(studies):
        oracle, quality, right = judged(noise, n_items, study)
        reference = ratings_at(oracle, "round_robin", [full], seed=0)[0][0]
        rights.append(right)
        ceilings.append(rank_correlation(reference, quality))
        for row, schedule in enumerate(SCHEDULES):
            ratings, asked = ratings_at(oracle, schedule, steps, seed=study)
            near[row, study] = [rank_correlation(one, reference) for one in ratings]
            true[row, study] = [rank_correlation(one, quality) for one in ratings]
            spent[row, study] = CALLS * asked
    return near, true, spent, {"right": float(np.mean(rights)), "ceiling": float(np.mean(ceilings))}


def _needed(near: np.ndarray, spent: np.ndarray) -> np.ndarray:
    """Calls that each schedule needs: mean calls spent at the first step from which the mean stays at the target."""
    steps = np.arange(near.shape[2])
    with_end = np.append(steps, -1)
    calls = []
    for own, cost in zip(near.mean(axis=1), spent.mean(axis=1), strict=True):
        place = reached(own, steps.tolist(), TARGET)
        calls.append(float(cost[with_end[int(place)]]) if np.isfinite(place) else np.inf)
    return np.array(calls)


def _text(value: float, drawn: np.ndarray, form: str) -> str:
    low, high, _ = percentile_interval(drawn, CI_LEVEL)
    return f"{value:{form}} [{low:{form}}, {high:{form}}]"


def main(scale: float = 1.0) -> None:
    """Measure and print."""
    studies = max(2, int(STUDIES * scale))
    print(
        f"{SYSTEMS} systems, {studies} studies a case; calls for a mean Spearman of {TARGET} with the ranking from the"
    )
    print(f"whole round robin, [{CI_LEVEL:.0%} bootstrap over studies], {CALLS} calls a comparison")
    for noise, n_items, largest in CASES:
        full = CALLS * SYSTEMS * (SYSTEMS - 1) // 2 * n_items
        near, true, spent, about = measured(noise, n_items, largest, studies)
        needed = _needed(near, spent)
        rng = np.random.default_rng(1)
        drawn = np.array([
            _needed(near[:, chosen], spent[:, chosen]) for chosen in rng.integers(0, studies, (RESAMPLES, studies))
        ])  # fmt: skip
        print(
            f"noise {noise}, {n_items} items, {full} calls in all; an answer is right in {about['right']:.0%}, "
            f"the full ranking's correlation with the truth is {about['ceiling']:.3f}:"
        )
        for row, schedule in enumerate(SCHEDULES):
            if not np.isfinite(needed[row]):
                best = np.nanmax(near[row].mean(axis=0))
                print(
                    f"  {schedule:<15} does not reach it within {spent[row].mean(axis=0).max():.0f} calls: {best:.3f}"
                )
                continue
            at = int(np.argmax(spent[row].mean(axis=0) >= needed[row]))
            calls = _text(needed[row], drawn[:, row], "6.0f")
            ratio = _text(needed[row] / needed[0], drawn[:, row] / drawn[:, 0], ".2f")
            print(
                f"  {schedule:<15} {calls} calls, {needed[row] / full:6.2%} of all, {ratio} of random order; "
                f"correlation with the truth there {true[row, :, at].mean():.3f}",
                flush=True,
            )
        share = needed[SCHEDULES.index("adaptive")] / full
        print(f"  adaptive needs at most a third of all calls: {'yes' if share <= AIM else 'no'} ({share:.2%})")


if __name__ == "__main__":
    main()
