"""Figures of scores: UniEval's correlations with people, JudgeBench's and Prometheus' reliabilities."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.measure.alpha import alpha_table
from judgelab.measure.correlation import correlation_table
from judgelab.measure.repeats import self_consistency_table
from judgelab.report.published.figure import Figure, row_value
from judgelab.study.sources.judgebench import read_judgebench
from judgelab.study.sources.prometheus import read_prometheus
from judgelab.study.sources.unieval import published_unieval, read_unieval

__all__ = ["judgebench_figures", "prometheus_figures", "unieval_figures"]

ESTIMATES_ONLY: dict[str, Any] = {"ci_level": 0.95, "resamples": 1, "seed": 0}
CORRELATIONS = ("pearson", "spearman", "kendall")
ALPHAS = {
    "recipes": (".415127", ".432398", ".399142", ".398558", ".362716", ".435101"),
    "newsroom": (".284873", ".115121", "-.015808", ".064972"),
}
REPEATS = {"vicuna": ("62.2%", ".8075"), "mt_bench": ("44.1%", ".8510")}


def unieval_figures(folder: Path) -> Iterator[Figure]:
    """Pearson, Spearman and Kendall of UniEval with people, by dimension, against the tables of its README."""
    scores = read_unieval(folder)
    for dataset, printed in published_unieval(folder).groupby("dataset", sort=False):
        own = scores[scores["dataset"] == dataset]
        ours = correlation_table(own, **ESTIMATES_ONLY)
        pooled = ours[ours["level"] == "data_set"]
        for row in printed.to_dict("records"):
            dimension = row["dimension"]
            n = int((own["dimension"] == dimension).sum())
            for measure in CORRELATIONS:
                value = row_value(pooled, measure, slice_=f"dimension={dimension}")["estimate"]
                what = f"{dimension}: {measure.title()}, all answers pooled"
                yield Figure(f"UniEval README, {dataset}", what, repr(float(row[measure])), float(value), n, digits=6)


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
