"""JUDGE-BENCH: every person's score of every answer, and what twelve LLMs reached on the same answers.

Layout of the publication (Bavaresco et al. 2025, "LLMs instead of Human Judges? A Large Scale Empirical Study across
20 NLP Evaluation Tasks", ACL; repository dmg-illc/JUDGE-BENCH): one file of annotations a set, with
``instances[].annotations[<metric>].individual_human_scores``, and one of results by LLM and metric. The place of a
score in its list is no rater: lists have different lengths, and nothing says who gave a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgelab.errors import DataError
from judgelab.project import shown
from judgelab.study.sources.published import at, folder_of, json_object, number, objects, refuse, refuse_twice

__all__ = ["JudgeBench", "read_judgebench"]

# set -> annotations, results
FILES = {
    "recipes": ("meta_evaluation_recipes.json", "results_regular_recipe-crowd-sourcing-data.json"),
    "newsroom": ("newsroom.json", "results_regular_newsroom.json"),
}
CORRELATIONS = ("pearson", "spearman", "kendall")
ROUNDED = 0.005 + 1e-9


@dataclass(frozen=True)
class JudgeBench:
    """Individual human scores, and the published results of LLMs.

    Attributes
    ----------
    ratings
        One row a score: dataset (``recipes`` or ``newsroom``), metric, item_id, position (the place in the list, from
        1; no rater), value. A null in a list is a gap and has no row.
    results
        One row an LLM and metric: dataset, judge, metric, pearson, spearman, kendall (with the mean human score),
        krippendorff_alpha (of the people, ordinal), total_responses, valid_responses. Undefined figures are NaN.
    """

    ratings: pd.DataFrame
    results: pd.DataFrame


def read_judgebench(folder: Path) -> JudgeBench:
    """Read one set of JUDGE-BENCH: the recipes or the news summaries.

    Parameters
    ----------
    folder
        Where ``meta_evaluation_recipes.json`` or ``newsroom.json`` is, with its file of results.

    Returns
    -------
    JudgeBench
        Instances, metrics and scores in the order of the file.

    Raises
    ------
    DataError
        If the folder holds none or both of the sets, a file is missing or of another form, an id occurs twice, an
        instance lacks a metric, a score is off the scale that the file gives, or the printed mean is not that of the
        scores.
    """
    found = [name for name, (annotations, _) in FILES.items() if (folder / annotations).is_file()]
    if len(found) > 1:
        raise DataError(f"{shown(folder)}: holds {len(found)} sets, {' and '.join(found)}; give each its folder")
    dataset = found[0] if found else "recipes"
    if not found and folder.is_dir():
        names = " or ".join(annotations for annotations, _ in FILES.values())
        raise DataError(f"{shown(folder)}: neither {names} in it; `judgelab fetch` gets them")
    annotations, results = FILES[dataset]
    folder_of(folder, annotations, results)
    return JudgeBench(_ratings(folder / annotations, dataset), _results(folder / results, dataset))


def _ratings(path: Path, dataset: str) -> pd.DataFrame:
    document = json_object(path, {"annotations": list, "instances": list})
    metrics = objects(path, document["annotations"], {"metric": str, "worst": (int, float), "best": (int, float)})
    scales = {metric["metric"]: sorted((metric["worst"], metric["best"])) for metric in metrics}
    instances = objects(path, document["instances"], {"id": (int, str), "annotations": dict})
    if not scales or not instances:
        raise DataError(
            f"{at(path)}: {len(scales)} metrics and {len(instances)} instances; at least 1 of each is needed"
        )
    numbered = list(enumerate(instances, start=1))
    refuse_twice(path, ((n, str(instance["id"])) for n, instance in numbered), "ids")
    other = [(n, sorted(one["annotations"])) for n, one in numbered if set(one["annotations"]) != set(scales)]
    refuse(path, other, len(instances), f"instances have other metrics than {', '.join(scales)}")
    for metric, (low, high) in scales.items():
        _check_scores(path, metric, [one["annotations"][metric] for one in instances], low, high)
    rows = [
        (dataset, metric, str(instance["id"]), position, float(value))
        for metric in scales
        for instance in instances
        for position, value in enumerate(instance["annotations"][metric]["individual_human_scores"], start=1)
        if value is not None
    ]
    return pd.DataFrame(rows, columns=["dataset", "metric", "item_id", "position", "value"])


def _check_scores(path: Path, metric: str, values: list[Any], low: float, high: float) -> None:
    """Scores are on the scale, and their mean is the printed one."""
    total = len(values)
    found = objects(path, values, {"individual_human_scores": list, "mean_human": (int, float)})
    scores = [[score for score in one["individual_human_scores"] if score is not None] for one in found]
    off = [
        (n, score)
        for n, given in enumerate(scores, start=1)
        for score in given
        if not number(score) or not low <= score <= high
    ]
    refuse(path, off, sum(map(len, scores)), f"scores of {metric} are not on its scale from {low} to {high}")
    silent = [(n, given) for n, given in enumerate(scores, start=1) if not given]
    refuse(path, silent, total, f"instances have no score of {metric}")
    printed = [one["mean_human"] for one in found]
    counted = [sum(given) / len(given) for given in scores]
    pairs = enumerate(zip(printed, counted, strict=True), start=1)
    wrong = [(n, mean) for n, (mean, again) in pairs if not abs(mean - again) <= ROUNDED]
    refuse(path, wrong, total, f"instances have a mean_human of {metric} that is not the mean of its scores")


def _results(path: Path, dataset: str) -> pd.DataFrame:
    """Published results; the judge's name is without the settings in brackets that all of them share."""
    document = json_object(path, {}, nan=True)
    rows = []
    for place, (name, metrics) in enumerate(document.items(), start=1):
        refuse(path, [] if isinstance(metrics, dict) else [(place, name)], len(document), "are no objects")
        for metric, found in metrics.items():
            figures = _figures(path, f"{name}, {metric}", found)
            rows.append((dataset, name.split(" (")[0], metric, *figures))
    columns = ["dataset", "judge", "metric", *CORRELATIONS, "krippendorff_alpha", "total_responses", "valid_responses"]
    table = pd.DataFrame(rows, columns=columns)
    keys = zip(table["judge"], table["metric"], strict=True)
    refuse_twice(path, enumerate(keys, start=1), "pairs of judge and metric", place="result")
    return table


def _figures(path: Path, where: str, found: Any) -> list[float | int]:
    correlations = found.get("corr_coeff") if isinstance(found, Mapping) else None
    if not isinstance(correlations, Mapping):
        raise DataError(f"{at(path)}: {where}: no corr_coeff")
    values: list[Any] = [correlations.get(name) for name in CORRELATIONS] + [found.get("krippendorff_alpha")]
    counts: list[Any] = [found.get("total_responses"), found.get("valid_responses")]
    if not all(isinstance(value, (int, float)) for value in values) or not all(isinstance(one, int) for one in counts):
        raise DataError(f"{at(path)}: {where}: a correlation, the alpha or a count of responses is not a number")
    return [*(float(value) if np.isfinite(value) else np.nan for value in values), *counts]
