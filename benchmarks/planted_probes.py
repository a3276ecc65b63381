"""Probes of a noisy judge: how often is one that they leave cold called moved, and how often are planted effects found?

A simulated judge sees the difference of two answers with noise of its own in every call, calls small ones ties, errs
or has no verdict in some calls and may prefer a place. All ten tested probes of a study go through the package's own
table. A judge with a strong preference for the first place is fair to all but the probe of that preference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.intervals import wilson
from judgelab.measure.probes import probe_table

__all__ = ["PROBES", "SCENARIOS", "alarms", "main", "simulated"]

TARGETED = ("padding", "authority", "format", "identity", "injection", "rubric_words", "surface_noise")
UNTARGETED = {"criterion_order": ("",), "labels": ("1/2", "X/Y")}
PROBES = ("identical", *UNTARGETED, *TARGETED)
SIZES = (30, 100)
STUDIES = 500
NOISE, TIES, UNUSABLE = 0.5, 0.3, 0.02
STRONG = 1.0  # preference for the first place, of differences between answers with standard deviation 1
SHIFT = 0.3  # what a manipulation adds to its target
SPREAD = 1.0  # standard deviation over items of what another order or other labels add
SIGNIFICANT = 0.05
# preference for the first place, shift of targets, spread of untargeted changes
SCENARIOS = {"planted": (SHIFT, SHIFT, SPREAD), "fair": (0.0, 0.0, 0.0), "fair, prefers a place": (STRONG, 0.0, 0.0)}


def simulated(
    n: int, rng: np.random.Generator, *, place: float = 0.0, shift: float = 0.0, spread: float = 0.0
) -> pd.DataFrame:
    """The probe calls of one study of n items, each pair shown in both orders; 0 everywhere is a fair judge.

    Targets are the worse answers, as in a study that manipulates those.
    """
    difference = np.repeat(rng.standard_normal(n), 2)
    x_first = np.tile([True, False], n)
    first, second = np.where(x_first, "X", "Y"), np.where(x_first, "Y", "X")
    shown = np.where(x_first, difference, -difference)
    target = np.where(difference < 0, "X", "Y")
    towards = np.where(target == first, 1.0, -1.0)

    def verdicts(of: Any) -> Any:
        seen = of + place + NOISE * rng.standard_normal(2 * n)
        given = np.select([seen > TIES, seen < -TIES], ["A", "B"], "TIE").astype(object)
        given[rng.random(2 * n) < UNUSABLE] = None
        return given

    base, again = verdicts(shown), verdicts(shown)
    calls: dict[str, Any] = {"judge": "judge", "item_id": np.repeat(np.arange(n), 2), "category": ""}
    calls |= {"system_x": "X", "system_y": "Y", "pass": np.where(x_first, "original", "swapped"), "repeat": 0}
    calls |= {"first": first, "second": second, "base": base, "again": again, "variant": "", "target": ""}
    common = pd.DataFrame(calls)
    nothing = np.full(2 * n, None, dtype=object)
    parts = [
        common.assign(probe="repetition", repeat=1, verdict=again),
        common.assign(probe="identical", second=first, verdict=verdicts(0.0), base=nothing, again=nothing),
    ]
    for probe, variants in UNTARGETED.items():
        for variant in variants:
            other = np.repeat(spread * rng.standard_normal(n), 2)
            parts.append(common.assign(probe=probe, variant=variant, verdict=verdicts(shown + other)))
    for probe in TARGETED:
        parts.append(common.assign(probe=probe, target=target, verdict=verdicts(shown + towards * shift)))
    return pd.concat(parts, ignore_index=True)


def alarms(n: int, scenario: str, studies: int) -> dict[str, int]:
    """In how many studies each of :data:`PROBES` has a p-value, before Holm, of at most 0.05."""
    place, shift, spread = SCENARIOS[scenario]
    rng = np.random.default_rng([n, list(SCENARIOS).index(scenario)])
    found = dict.fromkeys(PROBES, 0)
    for _ in range(studies):
        pairs = simulated(n, rng, place=place, shift=shift, spread=spread)
        # the tests are exact: one resample is enough, since no interval is read
        rows = probe_table(pairs, ci_level=0.95, resamples=1, seed=1)
        tested = rows[rows["measure"] == "probe_p"]
        for slice_, p in zip(tested["slice"], tested["estimate"], strict=True):
            found[slice_.removeprefix("probe=")] += p <= SIGNIFICANT
    return found


def main(scale: float = 1.0) -> None:
    """Measure and print."""
    studies = max(20, int(STUDIES * scale))
    print(f"{studies} studies each, two calls an item and probe; share with p <= {SIGNIFICANT} [95 % interval]")
    print(f"planted: {SHIFT} for the target or the first place, spread {SPREAD} of order and labels; noise {NOISE}")
    print(f"  {'probe':<16} {'n':>4}" + "".join(f" {name:>24}" for name in SCENARIOS))
    for n in SIZES:
        counts = {name: alarms(n, name, studies) for name in SCENARIOS}
        for probe in PROBES:
            cells = []
            for name in SCENARIOS:
                low, high = wilson(counts[name][probe], studies, 0.95)
                cells.append(f"{counts[name][probe] / studies:.3f} [{low:.3f}, {high:.3f}]")
            print(f"  {probe:<16} {n:>4}" + "".join(f" {cell:>24}" for cell in cells), flush=True)
    print(f"identical answers show a preference for a place: their last column is no false alarm (planted {STRONG})")


if __name__ == "__main__":
    main()
