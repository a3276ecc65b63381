"""Krippendorff's alpha with its interval: judgelab against a loop over ``krippendorff.alpha`` and against evalica.

Everything printed is processor time on one processor, measured in the same run on the same ratings: 2,000 units x 5
raters, once with labels as of preferences (three, no gaps) and once with scores 1 to 5 of which a tenth is missing:
ours gets slower with the number of different units. "From counts" is the resampling with the interval, "from the
frame" is all of it, from one row a rating to a row of results.

The loop resamples units, as ours does. evalica resamples the disagreements of pairs of ratings instead, which is
another interval: how often each holds the true alpha is counted below, on studies whose units were drawn from a
known population.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import evalica
import krippendorff
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from judgelab.measure.alpha import LEVELS, Level, alpha_table
from judgelab.measure.alpha_levels import prepare
from judgelab.measure.resampling import bootstrap, generator, percentile_interval

UNITS, RATERS = 2_000, 5
CASES = {"3 values, no gaps": (3, 0.0), "5 values, 10 % missing": (5, 0.1)}
VALUES, MISSING = CASES["5 values, 10 % missing"]
RESAMPLES, SEED, CI_LEVEL = 1_000, 240719, 0.95
MANY = 100_000
STUDIES, STUDY_UNITS = 400, 100
Matrix = NDArray[np.float64]
Interval = tuple[float, float]


def study(n_units: int, rng: np.random.Generator, values: int = VALUES, missing: float = MISSING) -> Matrix:
    """Ratings 1, 2, ..., raters x units, around each unit's own quality; NaN where a rater gave none."""
    quality = rng.normal((1 + values) / 2, 1.0, n_units)
    ratings = np.clip(np.round(quality + rng.normal(0.0, 1.0, (RATERS, n_units))), 1, values)
    ratings[rng.random(ratings.shape) < missing] = np.nan
    return ratings


def as_rows(ratings: Matrix) -> pd.DataFrame:
    """One row a rating."""
    rater, unit = np.indices(ratings.shape)
    return pd.DataFrame({"item_id": unit.ravel(), "rater": rater.ravel(), "value": ratings.ravel()})


def ours(rows: pd.DataFrame, level: Level, resamples: int = RESAMPLES) -> Interval:
    """Estimate and interval by judgelab, from the frame to a row."""
    line = alpha_table(rows, level=level, ci_level=CI_LEVEL, resamples=resamples, seed=SEED).iloc[0]
    return float(line["ci_low"]), float(line["ci_high"])


def from_counts(ratings: Matrix, level: Level) -> Callable[[], Interval]:
    """Resampling and interval alone, from what the units with two ratings or more contribute."""
    ratings = ratings[:, (~np.isnan(ratings)).sum(axis=0) >= 2]
    units, raters = np.nonzero(~np.isnan(ratings.T))
    scale, codes = np.unique(ratings[raters, units], return_inverse=True)
    table, statistic = prepare(np.arange(ratings.shape[1]), units, codes, scale, level)

    def resampled() -> Interval:
        rng = generator(SEED, "krippendorff_alpha", "", "", "", "all")
        values = bootstrap(table, statistic, resamples=RESAMPLES, rng=rng)[0]
        return percentile_interval(values, CI_LEVEL)[:2]

    return resampled


def loop(ratings: Matrix, level: Level, resamples: int = RESAMPLES) -> Interval:
    """Units drawn one by one, and the package called for each sample."""
    rng, n = np.random.default_rng(SEED), ratings.shape[1]
    values = [
        float(krippendorff.alpha(ratings[:, rng.integers(0, n, n)], level_of_measurement=level))
        for _ in range(resamples)
    ]
    return percentile_interval(np.asarray(values), CI_LEVEL)[:2]


def rival(ratings: Matrix, level: Level, resamples: int = RESAMPLES) -> Interval:
    """evalica's interval, by its compiled solver."""
    found = evalica.alpha_bootstrap(
        pd.DataFrame(ratings), level, n_resamples=resamples, confidence_level=CI_LEVEL, random_state=SEED
    )
    return float(found.low), float(found.high)


def seconds(action: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Least processor time of a call, and what it returned."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        result = action()
        times.append(time.process_time() - start)
    return min(times), result


def compare(title: str, ratings: Matrix) -> None:
    """Times and intervals of the three at each level, and the ratios."""
    rows = as_rows(ratings)
    print(title)
    for level in LEVELS:
        slow, by_loop = seconds(lambda level=level: loop(ratings, level), 1)
        theirs, by_rival = seconds(lambda level=level: rival(ratings, level), 3)
        framed, mine = seconds(lambda level=level: ours(rows, level), 7)
        counted, same = seconds(from_counts(ratings, level), 7)
        print(f"  {level}")
        for name, took, (low, high) in (
            ("loop over krippendorff.alpha", slow, by_loop),
            ("evalica.alpha_bootstrap", theirs, by_rival),
            ("judgelab, from counts", counted, same),
            ("judgelab, from the frame", framed, mine),
        ):
            print(f"    {name:<29} {took:9.4f} s  [{low:.4f}, {high:.4f}]")
        for start, took in (("counts", counted), ("the frame", framed)):
            ratios = f"{slow / took:.0f} times the loop, {theirs / took:.0f} times evalica"
            print(f"    ratio from {start}: {ratios}")


def peak(rows: pd.DataFrame, level: Level, resamples: int) -> float:
    """Most memory held at once in a call, in MB."""
    tracemalloc.start()
    ours(rows, level, resamples)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 1e6


def covered(level: Level, studies: int) -> tuple[int, int]:
    """In how many small studies the interval holds the population's alpha: ours, evalica's."""
    rng = np.random.default_rng(SEED)
    truth = float(krippendorff.alpha(study(100_000, rng), level_of_measurement=level))
    counts = [0, 0]
    for _ in range(studies):
        ratings = study(STUDY_UNITS, rng)
        for place, (low, high) in enumerate((ours(as_rows(ratings), level), rival(ratings, level))):
            counts[place] += low <= truth <= high
    return counts[0], counts[1]


def main(scale: float = 1.0) -> None:
    """Measure and print. A small scale takes fewer units, resamples of the loop and studies."""
    n_units = max(100, round(UNITS * scale))
    with threadpool_limits(1):
        for case, (values, missing) in CASES.items():
            ratings = study(n_units, np.random.default_rng(SEED), values, missing)
            compare(f"{RESAMPLES} resamples, {n_units} units x {RATERS} raters, {case}", ratings)
    rows = as_rows(ratings)
    many = max(RESAMPLES * 10, round(MANY * scale))
    print(f"most memory held (MB): {RESAMPLES} resamples; {many} resamples")
    for level in LEVELS:
        print(f"  {level:<9} {peak(rows, level, RESAMPLES):6.1f}; {peak(rows, level, many):6.1f}")
    studies = max(20, round(STUDIES * scale))
    print(f"95 % intervals that hold the true alpha, of {studies} studies of {STUDY_UNITS} units x {RATERS} raters")
    for level in LEVELS:
        mine, theirs = covered(level, studies)
        print(f"  {level:<9} judgelab {mine / studies:.3f}, evalica {theirs / studies:.3f}")


if __name__ == "__main__":
    main()
