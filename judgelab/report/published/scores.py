"""Figures of scores: UniEval's correlations with people, JudgeBench's and Prometheus' reliabilities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.errors import DataError
from judgelab.measure.alpha import alpha_table
from judgelab.measure.correlation import correlation_table
from judgelab.measure.repeats import self_consistency_table
from judgelab.report.published.figure import Figure, row_value
from judgelab.study.sources.judgebench import read_judgebench
from judgelab.study.sources.prometheus import read_prometheus
from judgelab.study.sources.unieval import read_unieval
from judgelab.study.tables import read_text

__all__ = ["judgebench_figures", "prometheus_figures", "unieval_figures"]

ESTIMATES_ONLY: dict[str, Any] = {"ci_level": 0.95, "resamples": 1, "seed": 0}
# data set -> the words in the README before its table, and the level at which it correlates
TABLES = {"topical_chat": ("Turn Level Correlations", "data_set"), "sfhot": ("SFHOT:", "data_set")}
CELLS = re.compile(r"^\| *(\w+) *\| *([-\d.]+) *\| *([-\d.]+) *\| *([-\d.]+) *\|$")
CORRELATIONS = ("pearson", "spearman", "kendall")
ALPHAS = {
    "recipes": (".415127", ".432398", ".399142", ".398558", ".362716", ".435101"),
    "newsroom": (".284873", ".115121", "-.015808", ".064972"),
}
REPEATS = {"vicuna": ("62.2%", ".8075"), "mt_bench": ("44.1%", ".8510")}


def unieval_figures(folder: Path) -> Iterator[Figure]:
    """Pearson, Spearman and Kendall of UniEval with people, by dimension, against the tables of its README."""
    scores = read_unieval(folder)
    readme = read_text(folder / "reproduce" / "README.md")
    for dataset, own in scores.groupby("dataset", sort=False):
        words, level = TABLES[str(dataset)]
        ours = correlation_table(own, **ESTIMATES_ONLY)
        ours = ours[ours["level"] == level]
        for dimension, values in _printed(readme, words).items():
            for measure, printed in zip(CORRELATIONS, values, strict=True):
                row = row_value(ours, measure, slice_=f"dimension={dimension}")
                what = f"{dimension}: {measure.title()}, all answers pooled"
                n = int((own["dimension"] == dimension).sum())
                yield Figure(f"UniEval README, {dataset}", what, printed, float(row["estimate"]), n, digits=6)


def _printed(readme: str, words: str) -> dict[str, tuple[str, ...]]:
    """The first table after these words: values by dimension."""
    _, found, rest = readme.partition(words)
    rows: dict[str, tuple[str, ...]] = {}
    for line in rest.splitlines():
        cells = CELLS.match(line.strip())
        if cells:
            rows[cells[1]] = (cells[2], cells[3], cells[4])
        elif rows and not line.startswith("+"):
            break
    if not (found and rows):
        raise DataError(f"reproduce/README.md: no table of correlations after {words!r}")
    return rows


def judgebench_figures(folder: Path) -> Iterator[Figure]:
    """Krippendorff's alpha of the individual human ratings, ordinal level, by metric."""
    ratings = read_judgebench(folder).ratings
    (dataset,) = ratings["dataset"].unique()
    metrics = list(pd.unique(ratings["metric"]))
    for metric, printed in zip(metrics, ALPHAS[str(dataset)], strict=True):
        own = ratings[ratings["metric"] == metric].rename(columns={"position": "rater"})
        row = row_value(alpha_table(own, level="ordinal", **ESTIMATES_ONLY), "krippendorff_alpha")
        what = f"{metric}: Krippendorff's alpha, ordinal"
        yield Figure(f"JUDGE-BENCH, {dataset}", what, printed, float(row["estimate"]), int(row["n_used"]))


def prometheus_figures(folder: Path) -> Iterator[Figure]:
    """Repeatability of GPT-4's scores: three scores of each answer."""
    scores = read_prometheus(folder)
    for dataset, (equal, alpha) in REPEATS.items():
        own = scores[scores["dataset"] == dataset]
        table = self_consistency_table(own.assign(rater="gpt-4"), **ESTIMATES_ONLY)
        row = row_value(table, "all_equal")
        what = "GPT-4 gives one answer the same score three times"
        n = int(row["denominator"])
        yield Figure(f"Prometheus, {dataset}", what, equal, float(row["estimate"]), n)
        rated = own.rename(columns={"repeat": "rater"})
        value = row_value(alpha_table(rated, level="interval", **ESTIMATES_ONLY), "krippendorff_alpha")
        what = "Krippendorff's alpha of the three scores, interval"
        yield Figure(f"Prometheus, {dataset}", what, alpha, float(value["estimate"]), n)
