"""The paired bootstrap against the protocol's own script, scipy's, and itself from 1,000 to 1,000,000 items.

Everything printed is processor time, measured in the same run on the same data. The script draws items one by one
and gives one interval, scipy too; ours gives six (both agreements, both kappas, both differences) from the same
resamples.
"""

from __future__ import annotations

import ast
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import bootstrap as scipy_bootstrap

from judgelab.measure.agreement import paired_bootstrap
from judgelab.measure.paired import paired_contingency, paired_statistics
from judgelab.measure.resampling import Contingency, bootstrap, generator, percentile_interval

LABELS = ("ALPHA", "BETA", "TIE")
RESAMPLES, SEED, LEVEL = 10_000, 240719, 0.95
SIZES = (1_000, 10_000, 100_000, 1_000_000)
SCRIPT = Path(__file__).resolve().parents[2] / "shared" / "seeds" / "reference_analysis.py"
Rows = list[dict[str, str]]


def study(n: int) -> pd.DataFrame:
    """A normalized table of one judge with n items, all labels valid."""
    rng = np.random.default_rng(n)
    human = rng.choice(LABELS, n, p=[0.5, 0.3, 0.2])
    table = pd.DataFrame({"judge": "judge", "item_id": np.arange(n), "human": human})
    for column, share in (("direct", 0.6), ("pair_original", 0.7), ("pair_swapped", 0.7)):
        table[column] = np.where(rng.random(n) < share, human, rng.choice(LABELS, n))
    table["system_x"], table["system_y"], table["original_first"] = "ALPHA", "BETA", "ALPHA"
    for name in ("direct", "original", "swapped"):
        table[f"planned_{name}"] = True
    return table


def script_bootstrap() -> tuple[str, Callable[..., list[float]]]:
    """The paired bootstrap of the protocol's script where it is at hand, else an equal loop."""
    if not SCRIPT.is_file():
        return "a plain loop (the reference script is not at hand)", _loop
    # The script reads a file when it is run: only its imports, constants and functions are taken.
    wanted = (ast.Import, ast.ImportFrom, ast.Assign, ast.FunctionDef)
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    body = [node for node in tree.body if isinstance(node, wanted)]
    body = [node for node in body if not isinstance(node, ast.Assign) or "LABELS" in ast.unparse(node.targets[0])]
    names: dict[str, Any] = {}
    exec(compile(ast.Module(body, []), SCRIPT.name, "exec"), names)
    function: Callable[..., list[float]] = names["paired_bootstrap"]
    return SCRIPT.name, function


def _loop(rows: Rows, iterations: int, seed: int) -> list[float]:
    source, n, values = random.Random(seed), len(rows), []
    for _ in range(iterations):
        sample = [rows[source.randrange(n)] for _ in range(n)]
        direct = sum(row["human"] == row["direct"] for row in sample) / n
        pairwise = sum(row["human"] == row["pair_original"] for row in sample) / n
        values.append(pairwise - direct)
    return sorted(values)


def scipy_interval(table: pd.DataFrame) -> tuple[float, float]:
    """The interval of the difference of the agreements by ``scipy.stats.bootstrap``, vectorised, 1,000 at a time."""
    right = [(table[name] == table["human"]).to_numpy(dtype=float) for name in ("direct", "pair_original")]

    def difference(direct: Any, pairwise: Any, axis: int) -> Any:
        return pairwise.mean(axis=axis) - direct.mean(axis=axis)

    found = scipy_bootstrap(
        right,
        difference,
        n_resamples=RESAMPLES,
        batch=1_000,
        vectorized=True,
        paired=True,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(SEED),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def six_intervals(cells: Contingency) -> list[tuple[float, float, str]]:
    """All six intervals from prepared counts."""
    rng = generator(SEED, "paired", "judge")
    values = bootstrap(cells.table, lambda totals: paired_statistics(totals, cells), resamples=RESAMPLES, rng=rng)
    return [percentile_interval(line, LEVEL) for line in values]


def seconds(action: Callable[[], Any], repeats: int = 7) -> float:
    """Least processor time of a warm call: what else runs on the machine only adds to it."""
    action()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def main(scale: float = 1.0) -> None:
    """Measure and print. A small scale leaves the larger sizes out."""
    table = study(1_000)
    rows: Rows = table[["human", "direct", "pair_original"]].to_dict("records")
    name, function = script_bootstrap()
    start = time.process_time()
    theirs = function(rows, RESAMPLES, SEED)
    slow = time.process_time() - start
    start = time.process_time()
    rival = scipy_interval(table)
    scipy_time = time.process_time() - start
    cells = paired_contingency(table, labels=LABELS)
    ours = six_intervals(cells)
    places = [round((RESAMPLES - 1) * p) for p in (0.025, 0.975)]
    print(f"paired bootstrap, {RESAMPLES} resamples, 1000 items")
    print(f"  {name}: {slow:.3f} s for one interval, [{theirs[places[0]]:.4f}, {theirs[places[1]]:.4f}]")
    print(f"  scipy.stats.bootstrap: {scipy_time:.3f} s for one interval, [{rival[0]:.4f}, {rival[1]:.4f}]")
    fast = seconds(lambda: six_intervals(cells))
    print(f"  judgelab, from counts: {fast:.4f} s for six, the same one is [{ours[2][0]:.4f}, {ours[2][1]:.4f}]")
    options = {"labels": LABELS, "ci_level": LEVEL, "resamples": RESAMPLES, "seed": SEED}
    framed = seconds(lambda: paired_bootstrap(table, **options))
    print(f"  judgelab, from the frame to rows: {framed:.4f} s")
    print(f"  ratio: {slow / fast:.0f} times faster from counts, {slow / framed:.0f} times from the frame")
    ratios = f"{scipy_time / fast:.0f} times faster from counts, {scipy_time / framed:.0f} times from the frame"
    print(f"  against scipy: {ratios}")
    print("judgelab by number of items (seconds: from counts; from the frame)")
    for size in SIZES if scale >= 1 else SIZES[:2]:
        table = study(size)
        cells = paired_contingency(table, labels=LABELS)
        counted = seconds(lambda cells=cells: six_intervals(cells))
        framed = seconds(lambda table=table: paired_bootstrap(table, **options), repeats=3)
        print(f"  {size:>9}: {counted:.4f}; {framed:.4f}")


if __name__ == "__main__":
    main()
