"""Run the benchmarks: ``python -m benchmarks [NAME ...] [--quick]``."""

from __future__ import annotations

import argparse

from benchmarks import (
    adaptive_schedule,
    alpha_bootstrap,
    bradley_terry,
    coverage,
    elo_permutations,
    judging_faults,
    judging_kills,
    judging_overhead,
    judging_reopen,
    paired_bootstrap,
    planted,
    planted_battery,
    planted_choice,
    planted_probes,
    planted_ranking,
)

BENCHMARKS = {
    "paired_bootstrap": paired_bootstrap,
    "alpha_bootstrap": alpha_bootstrap,
    "bradley_terry": bradley_terry,
    "elo_permutations": elo_permutations,
    "judging_overhead": judging_overhead,
    "judging_reopen": judging_reopen,
    "judging_faults": judging_faults,
    "judging_kills": judging_kills,
    "planted": planted,
    "planted_choice": planted_choice,
    "planted_probes": planted_probes,
    "planted_battery": planted_battery,
    "planted_ranking": planted_ranking,
    "adaptive_schedule": adaptive_schedule,
    "coverage": coverage,  # last: about 40 minutes on two cores; it writes docs/coverage.md
}
QUICK = 0.05


def main() -> None:
    """Run those that are named, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what the README quotes.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; all if none is given"
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:.0%} of the sizes: to see that they work")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    for name in options.names or BENCHMARKS:
        print(f"\n$ python -m benchmarks {name}{' --quick' if options.quick else ''}", flush=True)
        BENCHMARKS[name].main(QUICK if options.quick else 1.0)


if __name__ == "__main__":
    main()
