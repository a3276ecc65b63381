"""Strengths of 100 systems from 1,000,000 matches with 1,000 resamples: against evalica and arena-rank, in one run.

All times are processor time on the same table of matches, ties counted as half a win, reading the table included.
Ours resamples whole items and, without item_id, matches, as the others do. Theirs are timed on a few resamples and
scaled to 1,000: a run of evalica's takes half an hour. arena-rank is used where it can be imported (it needs JAX)::

    python -m venv V; V/bin/pip install arena-rank evalica scikit-learn statsmodels PyYAML
    PYTHONPATH=. V/bin/python -m benchmarks.bradley_terry
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import evalica
import numpy as np
import pandas as pd

from benchmarks.paired_bootstrap import seconds
from judgelab.measure.paired_comparison import Strengths, fit_strengths
from judgelab.measure.ranking import bradley_terry, by_system
from judgelab.measure.resampling import Floats
from judgelab.measure.strength_table import strength_table

MATCHES, SYSTEMS, ITEMS, RESAMPLES, SEED, LEVEL = 1_000_000, 100, 5_000, 1_000, 240719, 0.95
FEW = 5  # resamples on which the others are timed
OPTIONS: dict[str, Any] = {"ci_level": LEVEL, "seed": SEED}


def table_of(n: int, n_items: int) -> pd.DataFrame:
    """Matches between systems whose log strengths are standard normal; every eighth or so is a tie."""
    rng = np.random.default_rng(SEED)
    level = rng.standard_normal(SYSTEMS)
    x = rng.integers(0, SYSTEMS, n)
    y = (x + rng.integers(1, SYSTEMS, n)) % SYSTEMS
    powers = np.exp((level[x] - level[y]) / 2)
    drawn = rng.random(n) * (powers + 1 / powers + 0.35)
    names = np.array([f"system {code:02}" for code in range(SYSTEMS)], dtype=object)
    preference = np.where(drawn < powers, names[x], np.where(drawn < powers + 1 / powers, names[y], "TIE"))
    items = rng.integers(0, n_items, n)
    return pd.DataFrame({"item_id": items, "system_x": names[x], "system_y": names[y], "preference": preference})


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time of one call, and what it gave."""
    start = time.process_time()
    found = action()
    return time.process_time() - start, found


def levels(scores: pd.Series, fit: Strengths) -> Floats:
    """Log strengths with mean 0, in the order of ours."""
    logs = np.log(scores.reindex(list(fit.systems)).to_numpy(dtype=float))
    return np.asarray(logs - logs.mean())


def winners(table: pd.DataFrame) -> list[Any]:
    """The outcomes as evalica's."""
    codes = np.where(table["preference"] == "TIE", 2, np.where(table["preference"] == table["system_x"], 0, 1))
    kinds = np.array([evalica.Winner.X, evalica.Winner.Y, evalica.Winner.Draw], dtype=object)
    return list(kinds[codes])


def evalica_bootstrap(table: pd.DataFrame, resamples: int) -> Any:
    """Its own bootstrap over matches, percentile intervals (its default, BCa, fits once more for each match)."""
    return evalica.bootstrap(
        evalica.bradley_terry,
        table["system_x"].tolist(),
        table["system_y"].tolist(),
        winners(table),
        n_resamples=resamples,
        bootstrap_method="percentile",
        random_state=SEED,
    )


def evalica_by_hand(table: pd.DataFrame, resamples: int) -> None:
    """The fastest way we know to use it: equal matches counted, the counts resampled and given as weights."""
    counted = table.groupby(["system_x", "system_y", "preference"], sort=False).size().reset_index(name="n")
    xs, ys, results = counted["system_x"].tolist(), counted["system_y"].tolist(), winners(counted)
    rng, n = np.random.default_rng(SEED), int(counted["n"].sum())
    for weights in rng.multinomial(n, counted["n"] / n, size=resamples):
        evalica.bradley_terry(xs, ys, results, weights=weights.astype(float).tolist())


def scaled(action: Callable[[int], Any]) -> float:
    """Seconds for all resamples, from runs with 2 and with a few more."""
    two, more = timed(lambda: action(2))[0], timed(lambda: action(2 + FEW))[0]
    return two + (RESAMPLES - 2) * (more - two) / FEW


def arena(table: pd.DataFrame, fit: Strengths) -> float | None:
    """arena-rank: difference of its strengths, printed, and seconds of its bootstrap; None where there is none."""
    try:
        data = importlib.import_module("arena_rank.utils.data_utils")
        models = importlib.import_module("arena_rank.models.bradley_terry")
    except ImportError as error:
        print(f"  arena-rank: not measured, it cannot be imported ({error})")
        return None
    renamed = table.rename(columns={"system_x": "model_a", "system_y": "model_b"})
    sides = np.where(table["preference"] == table["system_x"], "model_a", "model_b")
    renamed["winner"] = np.where(table["preference"] == "TIE", "tie", sides)
    data.PairDataset.from_pandas(renamed)  # compile what can be compiled once
    reading, pairs = timed(lambda: data.PairDataset.from_pandas(renamed))
    for name, options in (("as it comes", {}), ("run on (ftol 0, gtol 1e-12)", {"ftol": 0.0, "gtol": 1e-12})):
        model = models.BradleyTerry(n_competitors=SYSTEMS, **options).fit(pairs)
        logs = pd.Series(np.asarray(model.params["ratings"]), index=pairs.competitors).reindex(list(fit.systems))
        gap = float(np.abs(logs - logs.mean() - fit.level).max())
        print(f"  largest difference of log strengths to arena-rank, {name}: {gap:.1e}")
    rng, shares = np.random.default_rng(SEED), np.asarray(pairs.counts) / len(table)
    model = models.BradleyTerry(n_competitors=SYSTEMS)
    counts = [models.jnp.asarray(rng.multinomial(len(table), shares), dtype=float) for _ in range(1 + FEW)]
    models.fit_single_bootstrap_sample(counts[0], model, pairs)["ratings"].block_until_ready()

    def few() -> None:
        for count in counts[1:]:
            models.fit_single_bootstrap_sample(count, model, pairs)["ratings"].block_until_ready()

    each = timed(few)[0] / FEW
    print(f"  arena-rank: {reading:.2f} s to read, {each:.3f} s a resample (its own function; it compiles each time)")
    return reading + RESAMPLES * each


def main(scale: float = 1.0) -> None:
    """Measure and print. A small scale takes fewer matches and items."""
    table = table_of(int(MATCHES * scale), int(ITEMS * scale))
    alone = table.drop(columns="item_id")
    print(f"Bradley-Terry, {len(table)} matches, {SYSTEMS} systems, {RESAMPLES} resamples, ties half a win each")
    fit = fit_strengths(table, resamples=1, **OPTIONS)
    by_item = seconds(lambda: strength_table(table, judge="j", resamples=RESAMPLES, **OPTIONS), repeats=2)
    by_match = seconds(lambda: strength_table(alone, judge="j", resamples=RESAMPLES, **OPTIONS), repeats=2)
    print(f"  judgelab, from the table to rows: {by_item:.2f} s over items, {by_match:.2f} s over matches")
    options: dict[str, Any] = {"tolerance": 1e-13, "limit": 100_000}
    exact = evalica.bradley_terry(table["system_x"].tolist(), table["system_y"].tolist(), winners(table), **options)
    print(f"  largest difference to evalica: {np.abs(levels(exact.scores, fit) - fit.level).max():.1e}")
    before = levels(by_system(bradley_terry(table)), fit)
    print(f"  largest difference to ranking.bradley_terry: {np.abs(before - fit.level).max():.1e}")
    rivals = {
        "evalica.bootstrap": scaled(lambda resamples: evalica_bootstrap(alone, resamples)),
        "evalica on counted matches": scaled(lambda resamples: evalica_by_hand(alone, resamples)),
        "arena-rank": arena(alone, fit),
    }
    for name, other in rivals.items():
        if other is not None:
            ratios = f"{other / by_item:.0f} times ours over items, {other / by_match:.0f} times ours over matches"
            print(f"  {name}: {other:.1f} s (scaled from {FEW} resamples), {ratios}")


if __name__ == "__main__":
    main()
