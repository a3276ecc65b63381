"""The intervals whose coverage is measured: the rows of a study, each with its truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, pearsonr, spearmanr

from benchmarks.coverage_studies import Scenario, Scores, contingency_of, preferences, scores, truth_cells, truth_scores
from judgelab.measure.alpha import alpha_from_totals, alpha_row, unit_features
from judgelab.measure.association import association_rows
from judgelab.measure.bias import bias_rows
from judgelab.measure.ceiling import ceiling_table
from judgelab.measure.chance import ac1_from_totals, chance_rows, fleiss_row, weighted_kappa_rows
from judgelab.measure.classification import label_rows
from judgelab.measure.correlation import correlation_rows
from judgelab.measure.estimates import Place, Settings, kappa_row, rate_row
from judgelab.measure.icc import icc_from_totals, icc_rows
from judgelab.measure.paired import paired_rows, paired_statistics
from judgelab.measure.prediction_powered import prediction_powered
from judgelab.measure.resampling import Floats
from judgelab.measure.rogan_gladen import rogan_gladen
from judgelab.measure.slices import gap_rows

__all__ = ["FAMILIES", "SLOW", "WITHOUT_LABELS", "Case"]

Case = tuple[str, dict[str, Any], float]  # the measure, its row, the truth
PLACE = Place("j", "pairwise", "original")
LABELLED = 3  # one of so many judged items has a human label in the corrected rates
RATERS = (1, 2, 3)  # columns of the cells that act as raters of alpha


def agreement(scenario: Scenario, settings: Settings, rng: np.random.Generator) -> Iterator[Case]:
    """Rates, kappas and their differences."""
    codes, truth = preferences(scenario, rng), _preference_truth(scenario)
    width, items = scenario.n_labels, codes.items
    right = (codes.human == codes.original).astype(float)
    same = (codes.original == codes.swapped).astype(float)
    yield "exact_agreement", rate_row("exact_agreement", PLACE, items, right, settings=settings), scenario.level
    yield "swap_consistency", rate_row("swap_consistency", PLACE, items, same, settings=settings), truth["same"]
    kappa = kappa_row("cohen_kappa", PLACE, items, codes.human, codes.original, n_labels=width, settings=settings)
    yield "cohen_kappa", kappa, truth["cohen_kappa"]
    for line in paired_rows(codes, width, settings):
        if line["measure"].endswith("_difference"):
            yield line["measure"], line, truth[line["measure"]]
    units = np.tile(np.arange(len(items)), len(RATERS))
    values = np.concatenate([codes.direct, codes.original, codes.swapped])
    owners = np.tile(items, len(RATERS))
    line = alpha_row("alpha", PLACE, owners, units, pd.Series(values), "nominal", len(RATERS), settings)
    yield "krippendorff_alpha (nominal)", line, truth["alpha"]
    yield "fleiss_kappa", fleiss_row(PLACE, owners, units, values, settings=settings), truth["alpha"]
    yield "first_position_rate", _first_position(scenario, settings, rng), scenario.level


@cache
def _preference_truth(scenario: Scenario) -> dict[str, float]:
    cells, chance = truth_cells(scenario)
    paired, totals = contingency_of(cells[:, :3], chance, scenario.n_labels)
    both = paired_statistics(totals, paired)[:, 0]
    # alpha of many units from the share of each: n - 1 and n are the same in the limit
    units = np.repeat(np.arange(len(cells)), len(RATERS)).astype(np.int64)
    features = unit_features(units, cells[:, list(RATERS)].ravel(), scenario.n_labels)[1]
    sums: Floats = (chance[:, np.newaxis] * features).sum(axis=0, keepdims=True) * 1e12
    return {
        "same": float(chance[cells[:, 2] == cells[:, 3]].sum()),
        "exact_agreement_difference": float(both[2]),
        "cohen_kappa": float(both[4]),
        "cohen_kappa_difference": float(both[5]),
        "alpha": float(alpha_from_totals(sums)[0]),
    }


def beside_kappa(scenario: Scenario, settings: Settings, rng: np.random.Generator) -> Iterator[Case]:
    """Coefficients beside kappa, rates of one label against the others, and a category against the rest."""
    codes, truth = preferences(scenario, rng), _beside_truth(scenario)
    names = [f"L{code}" for code in range(scenario.n_labels)]
    both = (PLACE, codes.items, codes.human, codes.original)
    lines = list(chance_rows(*both, settings=settings))
    if scenario.n_labels == 3:
        lines += weighted_kappa_rows("cohen_kappa", *both, order=names, settings=settings)
    rates = label_rows(*both, labels=names, settings=settings)
    lines += [line for line in rates if line["slice"] in ("all", "label=L0")]
    view = codes.view("original")
    lines += list(gap_rows(view, (view.human == view.judged).astype(float), settings))[:1]
    for line in lines:
        yield line["measure"], line, truth[line["measure"]]


@cache
def _beside_truth(scenario: Scenario) -> dict[str, float]:
    cells, chance = truth_cells(scenario)
    q = scenario.n_labels
    table = np.zeros((q, q))
    np.add.at(table, (cells[:, 0], cells[:, 2]), chance)
    people, judge, right = table.sum(axis=1), table.sum(axis=0), np.diag(table)
    distance = np.abs(np.subtract.outer(np.arange(q), np.arange(q))) / (q - 1)
    weighted = [1 - (distance**w * table).sum() / (distance**w * np.outer(people, judge)).sum() for w in (1, 2)]
    f1 = 2 * right / (people + judge)
    return {
        "gwet_ac1": float(ac1_from_totals(chance[np.newaxis, :], first=cells[:, 0], second=cells[:, 2], q=q)[0, 0]),
        "pabak": float((q * right.sum() - 1) / (q - 1)),
        "cohen_kappa_linear": float(weighted[0]),
        "cohen_kappa_quadratic": float(weighted[1]),
        "true_positive_rate": float(right[0] / people[0]),
        "true_negative_rate": float(1 - (judge[0] - right[0]) / (1 - people[0])),
        "precision": float(right[0] / judge[0]),
        "f1": float(f1[0]),
        "macro_precision": float((right / judge).mean()),
        "macro_recall": float((right / people).mean()),
        "macro_f1": float(f1.mean()),
        "exact_agreement_gap": 0.0,
    }


def _first_position(scenario: Scenario, settings: Settings, rng: np.random.Generator) -> dict[str, Any]:
    """Both passes; on some items the judge takes the place, on the others always the same system (rate 1/2)."""
    by_place = rng.random(scenario.n_items) < 2 * scenario.level - 1
    each = 3 if scenario.clustered else 1
    items = np.repeat(np.arange(scenario.n_items), 2 * each)
    consistent = rng.random(scenario.n_items) < 0.8
    pairs = np.tile([1.0, 0.0], scenario.n_items * each)
    loose = (rng.random(len(items)) < 0.5).astype(float)
    values = np.where(by_place[items], 1.0, np.where(consistent[items], pairs, loose))
    return rate_row("first_position_rate", PLACE, items, values, settings=settings, force_bootstrap=True)


def people(scenario: Scenario, settings: Settings, rng: np.random.Generator) -> Iterator[Case]:
    """A reviewer against the others, a judge against the same, and the gap between the two (pooled over reviewers)."""
    codes, truth = preferences(scenario, rng), _people_truth(scenario)
    n, names = len(codes.items), np.array([f"L{code}" for code in range(scenario.n_labels)], dtype=object)
    units = pd.DataFrame({"item_id": codes.items, "system_x": "L0", "system_y": "L1"})
    if scenario.clustered:  # three pairs of systems an item
        units["system_y"] = np.tile(["L1", "M", "N"], scenario.n_items)
    given = {"r1": codes.original, "r2": codes.swapped, "r3": codes.human}
    reviews = [units.assign(reviewer_id=name, preference=names[of], is_adjudicated=False) for name, of in given.items()]
    judged = units.assign(judge="j", human=names[codes.human], direct=names[codes.direct], original_first="L0")
    judged = judged.assign(pair_original=np.nan, pair_swapped=np.nan, planned_direct=True)
    judged = judged.assign(planned_original=np.zeros(n, dtype=bool), planned_swapped=np.zeros(n, dtype=bool))
    options = {"ci_level": settings.ci_level, "resamples": settings.resamples, "seed": settings.seed}
    allowed = [*names, "M", "N"] if scenario.clustered else list(names)
    rows = ceiling_table(pd.concat(reviews, ignore_index=True), judged, labels_allowed=allowed, **options)
    for line in rows[rows["slice"] == "all"].to_dict("records"):
        if line["measure"] in truth:
            yield line["measure"], line, truth[line["measure"]]


@cache
def _people_truth(scenario: Scenario) -> dict[str, float]:
    """Pooled over the reviewers (original, swapped, human): the two others agree, and who agrees with them."""
    cells, chance = truth_cells(scenario)
    counted, own, judge = 0.0, 0.0, 0.0
    for reviewer, *others in ((2, 3, 0), (3, 0, 2), (0, 2, 3)):
        agreed = cells[:, others[0]] == cells[:, others[1]]
        counted += chance[agreed].sum()
        own += chance[agreed & (cells[:, reviewer] == cells[:, others[0]])].sum()
        judge += chance[agreed & (cells[:, 1] == cells[:, others[0]])].sum()
    gap = float(judge - own) / counted
    return {"leave_one_out_agreement": own / counted, "agreement_with_the_others": judge / counted, "human_gap": gap}


def gaps(scenario: Scenario, settings: Settings, rng: np.random.Generator) -> Iterator[Case]:
    """Gaps of bias between judge and people, for a judge that is right as often whatever the length."""
    codes = preferences(scenario, rng)
    longer = np.where(rng.random(len(codes.items)) < 0.6, codes.human, 1 - codes.human)
    tie = 2
    truth = _gap_truth(scenario)
    view = codes.view("original")
    for line in bias_rows("length", "longer", view, longer, tie, "unfit", settings):
        if line["measure"] in truth:
            yield line["measure"], line, truth[line["measure"]]


@cache
def _gap_truth(scenario: Scenario) -> dict[str, float]:
    """People prefer the longer answer on 0.6 of the items; with ties left out the judge is right with a chance r."""
    cells, chance = truth_cells(scenario)
    decided = (cells[:, 0] < 2) & (cells[:, 2] < 2)
    r = float(chance[decided & (cells[:, 0] == cells[:, 2])].sum() / chance[decided].sum())
    return {"length_gap": 0.6 * r + 0.4 * (1 - r) - 0.6, "length_error_gap": 0.0}


def corrected(scenario: Scenario, settings: Settings, rng: np.random.Generator) -> Iterator[Case]:
    """A win rate from a judge that is right on 0.8 of the pairs; n items have a label and twice as many have none."""
    each = 3 if scenario.clustered else 1
    n_items = scenario.n_items * LABELLED
    items = np.repeat(np.arange(n_items), each)
    shift = 0.15 if scenario.level == 0.5 else 0.04
    easy = np.where(rng.random(n_items) < 0.5, shift, -shift)[items] if scenario.clustered else 0.0
    human = (rng.random(len(items)) < scenario.level + easy).astype(float)
    judge = np.where(rng.random(len(items)) < 0.8, human, 1 - human)
    labelled = items % LABELLED == 0
    given = np.where(labelled, human, np.nan)
    for name, function in (("rogan_gladen", rogan_gladen), ("ppi", prediction_powered)):
        found = function(given, judge, items, level=settings.ci_level)
        row = {"estimate": found.estimate, "ci_low": found.low, "ci_high": found.high, "note": found.note}
        yield f"win_rate_{name}", row, scenario.level
    row = rate_row("win_rate_labelled", PLACE, items[labelled], human[labelled], settings=settings)
    yield "win_rate_labelled", row, scenario.level


def scored(scenario: Scenario, settings: Settings, rng: np.random.Generator) -> Iterator[Case]:
    """Correlations, differences, alpha and ICC of scores."""
    study, truth = scores(scenario, rng), _score_truth(scenario.level)
    answers = pd.DataFrame({"item_id": study.items, "human": study.human, "judge": study.judge})
    _, line = next(iter(correlation_rows(PLACE, answers, settings=settings)))
    yield "pearson", line, truth["pearson"]
    for line in association_rows(PLACE, study.items, study.human, study.judge, settings=settings):
        yield line["measure"], line, truth[line["measure"]]
    for line in icc_rows(PLACE, study.items, np.column_stack([study.human, study.judge]), settings=settings):
        yield line["measure"], line, truth[line["measure"]]
    units = np.tile(np.arange(len(study.items)), 2)
    values = pd.Series(np.concatenate([study.human, study.second]))
    for level in ("ordinal", "interval"):
        row = alpha_row(f"alpha_{level}", PLACE, np.tile(study.items, 2), units, values, level, 2, settings)
        yield f"krippendorff_alpha ({level})", row, truth[level]


@cache
def _score_truth(level: float) -> dict[str, float]:
    many: Scores = truth_scores(level)
    gap = many.judge - many.human
    ratings = np.column_stack([many.human, many.judge])
    sums = np.concatenate([[len(ratings), (ratings.sum(axis=1) ** 2).sum(), (ratings**2).sum()], ratings.sum(axis=0)])
    iccs = icc_from_totals(sums[np.newaxis, :], 2)[:, 0]
    units, items = np.tile(np.arange(len(gap)), 2), np.tile(many.items, 2)
    values = pd.Series(np.concatenate([many.human, many.second]))
    once = Settings(0.95, 1, 0)
    alphas = {
        name: alpha_row(name, PLACE, items, units, values, name, 2, once)["estimate"]
        for name in ("ordinal", "interval")
    }
    return {
        "spearman": float(spearmanr(many.human, many.judge).statistic),
        "kendall": float(kendalltau(many.human, many.judge).statistic),
        "pearson": float(pearsonr(many.human, many.judge).statistic),
        "mean_difference": float(gap.mean()),
        "mean_absolute_difference": float(np.abs(gap).mean()),
        **dict(zip(("icc_2_1", "icc_2_k", "icc_3_1"), map(float, iccs), strict=True)),
        **alphas,
    }


FAMILIES: dict[str, Callable[[Scenario, Settings, np.random.Generator], Iterator[Case]]] = {
    "agreement": agreement,
    "beside_kappa": beside_kappa,
    "gaps": gaps,
    "people": people,
    "corrected": corrected,
    "scored": scored,
}
WITHOUT_LABELS = ("corrected", "scored")  # the number of labels does not matter
SLOW = {"people": 4}  # families with so many times fewer studies
