"""LLMFAO's crowd: golden Elo and Bradley-Terry, judges' rankings against it, and Evalica's coding example."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from judgelab.measure.agreement import agreement_table
from judgelab.measure.alpha import alpha_table
from judgelab.measure.ranking import bradley_terry, by_system, elo
from judgelab.report.published.figure import Figure, row_value
from judgelab.study.protocol import TIE
from judgelab.study.sources.llmfao import Evalica, read_evalica, read_llmfao

__all__ = ["evalica_figures", "llmfao_figures"]

SIDES = ("left", "right")
ESTIMATES_ONLY: dict[str, Any] = {"ci_level": 0.95, "resamples": 1, "seed": 0}
GOLDEN = "llmfao-golden.csv"
RANKS = {("crowd", "gpt4"): "0.730918", ("crowd", "gpt3"): "0.716610", ("gpt4", "gpt3"): "0.717136"}
NAMES = {"crowd": "people", "gpt4": "GPT-4", "gpt3": "GPT-3.5"}
RECIPE = (
    "as printed: Pearson's correlation of whole-number ranks, in which two systems of GPT-3.5 that tie exactly both "
    "get the better rank; Spearman's correlation, which gives them their mean rank, is {spearman:.6f}"
)
PLURALITY = "the label of the most workers; pairs where two labels lead are left out"


def llmfao_figures(folder: Path) -> Iterator[Figure]:
    """Rankings of 59 systems by people and two judges, and GPT-4 against the crowd's label of each pair.

    The golden ratings lie in the data set ``evalica`` beside this one.
    """
    data = read_llmfao(folder)
    matches = {name: getattr(data, name) for name in NAMES}
    golden = read_evalica(folder.parent / "evalica").golden if (folder.parent / "evalica").is_dir() else None
    if golden is not None:
        own = golden[golden["source"] == "llmfao"].set_index("system")
        tables = {"elo": elo(matches["crowd"], initial=1000.0, k=4.0), "bradley_terry": bradley_terry(matches["crowd"])}
        for algorithm, (name, digits) in {"elo": ("Elo, start 1000, K 4", 9), "bradley_terry": (_BT, 9)}.items():
            ours, wanted = by_system(tables[algorithm]), own[own["algorithm"] == algorithm]["score"]
            yield from _golden_figures(f"{GOLDEN}, {algorithm}", name, ours, wanted, digits)
    strengths = {name: by_system(bradley_terry(table)) for name, table in matches.items()}
    for (one, other), printed in RANKS.items():
        pair = pd.concat([strengths[one], strengths[other]], axis=1, join="inner")
        ranks = pair.round(9).rank(ascending=False, method="min")  # what ties in truth may differ by rounding
        value = float(np.corrcoef(ranks.to_numpy(), rowvar=False)[0, 1])
        what = f"rank correlation of {NAMES[one]} and {NAMES[other]} (ranks by Bradley-Terry)"
        spearman = float(spearmanr(pair.iloc[:, 0], pair.iloc[:, 1]).statistic)
        remark = RECIPE.format(spearman=spearman) if "gpt3" in (one, other) else ""
        yield Figure("LLMFAO, computed from its votes", what, printed, value, len(pair), remark=remark)
    yield from _crowd_figures(matches["crowd"], matches["gpt4"])


_BT = "Bradley-Terry, ties half, sum 1"


def _golden_figures(source: str, name: str, ours: pd.Series, wanted: pd.Series, digits: int) -> Iterator[Figure]:
    """The first and the last system with their scores, and how many systems of all are equal to nine digits."""
    both = pd.concat([ours.rename("ours"), wanted.rename("wanted")], axis=1)
    same = int((both["ours"] - both["wanted"]).abs().lt(0.5 * 10.0**-digits).sum())
    what = f"{name}: systems equal to {digits} digits after the point"
    yield Figure(source, what, str(len(wanted)), same, len(both))
    ranked = wanted.sort_values()
    for system, score in (*ranked.tail(1).items(), *ranked.head(1).items()):
        yield Figure(source, f"{name}: {system}", repr(float(score)), float(ours.loc[str(system)]), len(both), digits)


def _crowd_figures(crowd: pd.DataFrame, judge: pd.DataFrame) -> Iterator[Figure]:
    label = _by_side(crowd).groupby(crowd["item_id"], sort=False).agg(_leading)
    verdicts = pd.Series(_by_side(judge).to_numpy(), index=judge["item_id"])
    pairs = pd.DataFrame({"human": label, "pair_original": verdicts}).dropna(subset=["human"])
    table = pairs.rename_axis("item_id").reset_index().assign(
        judge="gpt-4", system_x=SIDES[0], system_y=SIDES[1], direct=np.nan, pair_swapped=np.nan, category=np.nan,
        original_first=SIDES[0], planned_direct=False, planned_original=True, planned_swapped=False,
    )  # fmt: skip
    agreement = agreement_table(table, labels=(*SIDES, TIE), **ESTIMATES_ONLY)
    source = "LLMFAO, GPT-4 against the crowd"
    yield Figure(source, "pairs on which one label leads", "1831", len(table), len(table), remark=PLURALITY)
    for measure, printed in (("exact_agreement", ".446"), ("cohen_kappa", ".218")):
        row = row_value(agreement, measure, pass_="original", slice_="all")
        name = measure.replace("_", " ")
        yield Figure(source, name, printed, float(row["estimate"]), int(row["n_used"]), remark=PLURALITY)
    decided = table[(table["human"] != TIE) & (table["pair_original"] != TIE)]
    without = agreement_table(decided, labels=(*SIDES, TIE), **ESTIMATES_ONLY)
    row = row_value(without, "exact_agreement", pass_="original", slice_="all")
    yield Figure(source, "exact agreement without ties", ".746", float(row["estimate"]), len(decided))


def _by_side(matches: pd.DataFrame) -> pd.Series:
    sides = {True: SIDES[0], False: SIDES[1]}
    named = (matches["preference"] == matches["system_x"]).map(sides)
    return named.mask(matches["preference"] == TIE, TIE)


def _leading(labels: pd.Series) -> str | float:
    """The label given most often; NaN where two share the lead."""
    counts = labels.value_counts()
    return float("nan") if len(counts) > 1 and counts.iloc[0] == counts.iloc[1] else str(counts.index[0])


def evalica_figures(folder: Path) -> Iterator[Figure]:
    """Krippendorff's alpha of the canonical codings, and the golden rankings of two small tables."""
    data = read_evalica(folder)
    row = row_value(alpha_table(data.codings, level="nominal", **ESTIMATES_ONLY), "krippendorff_alpha")
    printed = repr(904 / 1216)
    yield Figure("Evalica, codings.csv", "Krippendorff's alpha, nominal: 904/1216", printed, float(row["estimate"]),
                 int(row["n_used"]), digits=9)  # fmt: skip
    for source in ("food", "simple"):
        yield from _small_figures(data, source)


def _small_figures(data: Evalica, source: str) -> Iterator[Figure]:
    golden = data.golden[data.golden["source"] == source].set_index("system")
    matches = getattr(data, source)
    for algorithm, ours in (("elo", by_system(elo(matches))), ("bradley_terry", by_system(bradley_terry(matches)))):
        wanted = golden[golden["algorithm"] == algorithm]["score"]
        if len(wanted):
            yield from _golden_figures(f"{source}-golden.csv, {algorithm}", algorithm, ours, wanted, 6)
