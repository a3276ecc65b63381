"""How often the package's 95 % intervals hold the truth; the whole table goes to docs/coverage.md.

Studies with a known truth are drawn (``coverage_studies``), every row of ``coverage_cases`` is computed as in a real
study, and its interval is asked whether it holds the truth.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.coverage_cases import FAMILIES, SLOW, WITHOUT_LABELS
from benchmarks.coverage_studies import Scenario
from judgelab.measure.carriers import ENOUGH
from judgelab.measure.estimates import Settings

__all__ = ["ALLOWED", "cells", "main", "simulate", "verdict"]

LEVEL, RESAMPLES, STUDIES = 0.95, 1_000, 1_000
SIZES = (30, 100, 300, 1_000)
ALLOWED = (0.93, 0.97)
WARNING = "see docs/coverage.md"
DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "coverage.md"
PLACE = ["family", "n_labels", "level", "clustered", "n_items"]
KEY = ["family", "measure", "n_labels", "level", "clustered", "n_items"]
ROUNDING = 1e-12
VERDICTS = ("held", "short", "edge", "wide", "unwarned")
AGAIN = 4  # cells outside without a warning are drawn anew, with so many times the studies
PREAMBLE = """# Do the intervals cover?

Made by `python -m benchmarks coverage`: {studies} simulated studies a cell, {resamples} resamples, seeded. A cell is
the share of studies whose 95 % interval holds the truth; it is right to ± {error:.3f}. Allowed is {low} to {high}.
Cells outside of it that the report does not warn of were drawn anew with {again} studies, of which the figure is.

Of {cells} cells {held} are inside, {short} below with a warning in the report (**w**), {wide} above (**c**), {edge}
below by no more than two standard errors of the simulation (**~**), and {unwarned} below without a warning (**!**).

- **w** Few items carry the variance: a study of 100 items with 5 disagreements knows about disagreement what 5 items
  can tell, and the percentile bootstrap of 5 items is too short. The note of the row says how many they are: the
  number m = (Σ d²)² / Σ d⁴ over the changes d that leaving out one item makes (`judgelab.measure.carriers`). Below
  {enough:.0f} it warns. The percentage is the share of studies that were warned.
- **c** The interval is longer than it needs to be. Counts are whole numbers: with two or three expected
  disagreements no rule meets 95 % closely. Studies in which no item differs get an interval from the share of items
  that may differ unseen, or none.
- (n %) So many of the studies had an interval; in the others the estimate was undefined or had no interval, and the
  note says why. The coverage is that of the intervals given.

Two or three labels, judges right on 0.5 or 0.95 of the items (direct passes 0.05 less); one judgment an item, or three
that hang together (`clusters`: items are easy or hard, n counts items). For scores the number is the share of the
variance that is not noise. "People" have a quarter of the studies.
"""


def simulate(family: str, scenario: Scenario, studies: int, seed: int = 0) -> pd.DataFrame:
    """One row a measure: share of studies with an interval, of those that held the truth, and of warned ones."""
    rng = np.random.default_rng(zlib.crc32(f"{family} {scenario} {seed}".encode()))
    seen: dict[str, list[tuple[bool, bool, bool]]] = {}
    for _ in range(studies):
        settings = Settings(LEVEL, RESAMPLES, int(rng.integers(2**31)))
        for measure, line, truth in FAMILIES[family](scenario, settings, rng):
            given = not np.isnan(line["ci_low"])
            held = given and line["ci_low"] - ROUNDING <= truth <= line["ci_high"] + ROUNDING
            seen.setdefault(measure, []).append((given, held, not given or WARNING in line["note"]))
    place = (scenario.n_labels, scenario.level, scenario.clustered, scenario.n_items)
    rows = []
    for measure, found in seen.items():
        given, held, warned = np.array(found).mean(axis=0)
        rows.append((family, measure, *place, given, held / given if given else np.nan, warned))
    return pd.DataFrame(rows, columns=[*KEY, "given", "covered", "warned"])


def verdict(covered: float, warned: float, slack: float = 0.0) -> str:
    """``held``, ``short`` (too short, warned of), ``edge`` (by the slack or less), ``unwarned``, ``wide`` (or none)."""
    if ALLOWED[0] <= covered <= ALLOWED[1]:
        return "held"
    if covered > ALLOWED[1] or np.isnan(covered):
        return "wide"
    if warned >= 0.5:
        return "short"
    return "edge" if covered >= ALLOWED[0] - slack else "unwarned"


def cells(studies: int, sizes: tuple[int, ...] = SIZES) -> pd.DataFrame:
    """Every cell of the table."""
    jobs = []
    for n, family, labels, level, clustered in product(sizes[::-1], FAMILIES, (2, 3), (0.5, 0.95), (False, True)):
        if labels == 2 or family not in WITHOUT_LABELS:
            jobs.append((family, Scenario(labels, level, clustered, n), studies // SLOW.get(family, 1)))
    # one thread a process: BLAS threads of several processes would wait for one another
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor() as pool:
        table = _judged(pd.concat(pool.map(simulate, *zip(*jobs, strict=True)), ignore_index=True))
        doubtful = table[table["verdict"] == "unwarned"]
        again = [job for job in jobs if _key(job[0], job[1]) in set(map(tuple, doubtful[PLACE].to_numpy().tolist()))]
        if not again:
            return table
        more = [(family, scenario, AGAIN * number, 1) for family, scenario, number in again]
        anew = pd.concat(pool.map(simulate, *zip(*more, strict=True)), ignore_index=True)
    anew = _judged(anew, slack=2 * np.sqrt(LEVEL * (1 - LEVEL) / (AGAIN * studies)))
    fresh = doubtful[KEY].merge(anew, on=KEY)
    return (
        fresh.set_index(KEY)
        .combine_first(table.set_index(KEY))
        .reindex(pd.MultiIndex.from_frame(table[KEY]))
        .reset_index()
    )


def _key(family: str, scenario: Scenario) -> tuple[str, int, float, bool, int]:
    return family, scenario.n_labels, scenario.level, scenario.clustered, scenario.n_items


def _judged(table: pd.DataFrame, slack: float = 0.0) -> pd.DataFrame:
    return table.assign(verdict=[verdict(row.covered, row.warned, slack) for row in table.itertuples()])


def document(table: pd.DataFrame, studies: int) -> Iterator[str]:
    """The table as Markdown, a row a measure and scenario, a column a number of items."""
    counts = {name: int((table["verdict"] == name).sum()) for name in VERDICTS}
    error = 1.96 * np.sqrt(LEVEL * (1 - LEVEL) / studies)
    yield PREAMBLE.format(
        studies=studies, again=AGAIN * studies, resamples=RESAMPLES, error=error, low=ALLOWED[0], high=ALLOWED[1],
        cells=len(table), enough=ENOUGH, **counts,
    )  # fmt: skip
    sizes = sorted(table["n_items"].unique())
    head = "| measure | labels | near | clusters | " + " | ".join(f"n = {n}" for n in sizes) + " |"
    for family, part in table.groupby("family", sort=False):
        yield f"## {str(family).replace('_', ' ').capitalize()}\n"
        yield f"{str(FAMILIES[str(family)].__doc__).splitlines()[0]}\n"
        yield head
        yield "| --- " * (4 + len(sizes)) + "|"
        first = {name: place for place, name in enumerate(pd.unique(part["measure"]))}
        part = part.sort_values(["measure", *KEY[2:-1]], key=lambda c: c.map(first) if c.name == "measure" else c)
        order = part.groupby(KEY[1:-1], sort=False)
        for (measure, labels, level, clustered), cell in order:
            shown = {row.n_items: _shown(row) for row in cell.itertuples()}
            labels = "" if family in WITHOUT_LABELS else labels
            columns = [f"`{measure}`", labels, level, "yes" if clustered else "", *(shown.get(n, "") for n in sizes)]
            yield "| " + " | ".join(str(column) for column in columns) + " |"
        yield ""


def _shown(row: object) -> str:
    given, covered, warned = row.given, row.covered, row.warned  # type: ignore[attr-defined]
    mark = {"held": "", "short": f" **w** {warned:.0%}", "edge": " **~**", "unwarned": " **!**", "wide": " **c**"}
    if np.isnan(covered):
        return "none"
    few = f" ({given:.0%})" if given < 0.995 else ""
    return f"{covered:.3f}{few}{mark[row.verdict]}"  # type: ignore[attr-defined]


def main(scale: float = 1.0) -> None:
    """Measure, print the cells that are not inside, and at full size write the document."""
    studies = max(20, int(STUDIES * scale))
    table = cells(studies, SIZES if scale >= 1 else SIZES[:2])
    print(f"{studies} studies a cell: {table['verdict'].value_counts().to_dict()}")
    outside = table[table["verdict"] == "unwarned"]
    print(outside.drop(columns="verdict").round(3).to_string(index=False) if len(outside) else "all held or warned of")
    held = table[table["verdict"] == "held"]
    print(f"warned although held: {held['warned'].mean():.1%} of the studies of cells inside")
    if scale >= 1:
        DOCUMENT.write_text("\n".join(document(table, studies)).rstrip() + "\n", encoding="utf-8")
        print(f"written: {DOCUMENT}")


if __name__ == "__main__":
    main()
