"""Elo over 1,000 orders of 10,000 matches of 30 systems against a loop over ``evalica.elo``.

Everything printed is processor time, measured in the same run on the same matches; every side plays the same orders.
Evalica is called in three ways: on names, as a table has them; in the fastest form that its interface takes (numbers
of systems in arrays, an index made beforehand, winners as small integers); and past its interface, on the compiled
function alone, which is what only the arithmetic costs. Ours is timed from the table and draws its orders; evalica's
calls get the orders for nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import evalica
import numpy as np
import pandas as pd
from evalica import _brzo

from benchmarks.paired_bootstrap import seconds
from judgelab.measure.elo_orders import elo_orders, match_orders

PERMUTATIONS, MATCHES, SYSTEMS, SEED, TIES = 1_000, 10_000, 30, 240719, 0.2
OPTIONS: dict[str, Any] = {"initial": 1000.0, "k": 32.0, "base": 10.0, "scale": 400.0}
Player = Callable[[Any], Any]


def matches(n: int) -> pd.DataFrame:
    """n matches of systems whose strengths are spread over 400 points, one in five a tie."""
    rng = np.random.default_rng(SEED)
    x = rng.integers(SYSTEMS, size=n)
    y = (x + rng.integers(1, SYSTEMS, size=n)) % SYSTEMS
    names = np.array([f"system {number:02d}" for number in range(SYSTEMS)], dtype=object)
    strengths = rng.uniform(-200, 200, SYSTEMS)
    won = rng.random(n) < 1 / (1 + 10 ** ((strengths[y] - strengths[x]) / 400))
    preference = np.where(rng.random(n) < TIES, "TIE", np.where(won, names[x], names[y]))
    return pd.DataFrame({"system_x": names[x], "system_y": names[y], "preference": preference})


def players(table: pd.DataFrame) -> dict[str, Player]:
    """Evalica's three forms: each takes one order and gives the ratings."""
    names = list(pd.unique(table[["system_x", "system_y"]].to_numpy().ravel()))
    xs, ys = (table[column].to_numpy(dtype=object) for column in ("system_x", "system_y"))
    index = pd.RangeIndex(len(names))
    x, y = (pd.Index(names).get_indexer(column) for column in (xs, ys))
    won = np.where(table["preference"] == "TIE", 0, np.where(table["preference"] == table["system_x"], 1, 2))
    winners = np.array([evalica.Winner.Draw, evalica.Winner.X, evalica.Winner.Y], dtype=object)[won]
    codes = np.array([int(winner) for winner in winners], dtype=np.uint8)
    first, second, ones = x.astype(np.uint64), y.astype(np.uint64), np.ones(len(x))
    rest = {**OPTIONS, "total": len(names), "win_weight": 1.0, "tie_weight": 0.5}

    def named(order: Any) -> Any:
        return evalica.elo(xs[order].tolist(), ys[order].tolist(), winners[order].tolist(), **OPTIONS).scores[names]

    def numbered(order: Any) -> Any:
        return evalica.elo(x[order], y[order], codes[order], index=index, **OPTIONS).scores[index]

    def compiled(order: Any) -> Any:
        return _brzo.elo(xs=first[order], ys=second[order], winners=codes[order], weights=ones, **rest)

    return {"on names": named, "its fastest form": numbered, "its compiled function alone": compiled}


def main(scale: float = 1.0) -> None:
    """Measure and print. A small scale plays fewer orders."""
    permutations = max(10, int(PERMUTATIONS * scale))
    table = matches(MATCHES)
    orders = match_orders(MATCHES, permutations=permutations, seed=SEED)
    print(f"Elo, {permutations} orders of {MATCHES} matches of {SYSTEMS} systems")

    def ours() -> Any:
        return elo_orders(table, permutations=permutations, seed=SEED, **OPTIONS)

    fast = seconds(ours, repeats=5)
    drawing = seconds(lambda: match_orders(MATCHES, permutations=permutations, seed=SEED), repeats=5)
    print(f"  judgelab, from the table: {fast:.3f} s, of which {drawing:.3f} s to draw the orders")
    ratings = ours().ratings
    for name, player in players(table).items():
        start = time.process_time()
        theirs = np.array([player(order) for order in orders])
        slow = time.process_time() - start
        apart = float(np.abs(theirs - ratings).max())
        print(f"  evalica, {name}: {slow:.3f} s; ratio: {slow / fast:.1f}; largest difference {apart:.1e} points")
        if apart > 1e-9:
            raise SystemExit(f"ratings differ by {apart:.1e} points; allowed is 1e-9")


if __name__ == "__main__":
    main()
