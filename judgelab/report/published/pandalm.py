"""PandaLM's figures: three annotators, majority labels, two judges with accuracy and macro scores, wins by pair."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.agreement import agreement_table
from judgelab.measure.policies import policy_table
from judgelab.measure.reliability import reviewer_table
from judgelab.report.published.figure import Figure, row_value
from judgelab.study.humans import reference
from judgelab.study.protocol import TIE
from judgelab.study.sources.pandalm import read_pandalm

__all__ = ["pandalm_figures"]

SIDES = ("1", "2")
LABELS = (*SIDES, TIE)
ESTIMATES_ONLY: dict[str, Any] = {"ci_level": 0.95, "resamples": 1, "seed": 0}
PAIR = ["item_id", "system_x", "system_y"]
README = "PandaLM README at 7f7ee7e"
KAPPAS = {("annotator1", "annotator2"): "0.85", ("annotator1", "annotator3"): "0.88",
          ("annotator2", "annotator3"): "0.86"}  # fmt: skip
MAJORITY = {TIE: "105", "1": "422", "2": "472"}
MACRO = ("macro_precision", "macro_recall", "macro_f1")
JUDGES = {
    "gpt-3.5-turbo": ("71.07%", "58.79%", "57.36%", "57.55%"),
    "pandalm-7b": ("66.77%", "57.38%", "57.50%", "57.43%"),
}
GARBAGE = "the 25 replies without a verdict count as ties there (policy as_tie)"
# Printed as (wins, losses, ties) of the row's system against the column's.
COLUMNS = ("bloom-7b", "cerebras-gpt-6.7B", "opt-7b", "pythia-6.9b")
ROWS = ("llama-7b", "bloom-7b", "cerebras-gpt-6.7B", "opt-7b")
WINS = {
    "people": (
        "(72,28,11) (80,24,6) (71,24,11) (58,27,9) (59,30,11) (43,35,11) (49,47,11) (33,49,9) (27,53,11) (32,53,15)"
    ),
    "gpt-3.5-turbo": (
        "(69,32,10) (80,24,6) (70,29,7) (60,28,6) (67,29,4) (46,38,5) (52,48,7) (38,45,8) (28,57,6) (43,53,4)"
    ),
    "pandalm-7b": (
        "(57,37,17) (75,26,9) (60,33,13) (46,41,7) (57,31,12) (46,36,7) (51,41,15) (37,45,9) (33,52,6) (40,48,12)"
    ),
}
SWAPPED = "wins and losses are swapped in the printed cell"


def pandalm_figures(folder: Path) -> Iterator[Figure]:
    """Agreement of the annotators, the majority labels, both judges, and every printed cell of wins by pair."""
    data = read_pandalm(folder)
    labels = _by_side(data.labels).assign(is_adjudicated=False, score_x=np.nan, score_y=np.nan)
    comparisons = labels[PAIR].drop_duplicates().reset_index(drop=True)
    majority = reference(labels, comparisons, ["majority"])
    reviewers = reviewer_table(labels, labels_allowed=LABELS, **ESTIMATES_ONLY)
    n = len(comparisons)
    for (one, two), published in KAPPAS.items():
        kappa = row_value(reviewers, "cohen_kappa", slice_=f"reviewers={one},{two}")
        yield Figure(README, f"Cohen's kappa, {one} and {two}", published, float(kappa["estimate"]), n)
    for measure, name in (("fleiss_kappa", "Fleiss' kappa"), ("krippendorff_alpha", "Krippendorff's alpha, nominal")):
        value = float(row_value(reviewers, measure, slice_="all")["estimate"])
        yield Figure("PandaLM, computed by two libraries", f"{name} of the three annotators", "0.8642", value, n)
    for label, published in MAJORITY.items():
        name = "tie" if label == TIE else f"response {label}"
        yield Figure(README, f"majority labels: {name}", published, int((majority["human"] == label).sum()), n)
    verdicts = _by_side(data.verdicts)
    for judge, figures in JUDGES.items():
        yield from _judge_figures(judge, figures, verdicts[verdicts["judge"] == judge], majority)
    names = data.labels.drop_duplicates(PAIR)[PAIR]
    yield from _wins("people", names, majority["human"])
    for judge in JUDGES:
        given = names.merge(verdicts[verdicts["judge"] == judge][["item_id", "preference"]], on="item_id")
        yield from _wins(judge, names, given["preference"].fillna(TIE), GARBAGE if judge != "pandalm-7b" else "")


def _by_side(table: pd.DataFrame) -> pd.DataFrame:
    """Preferences as response 1, response 2 or TIE: the publication's labels, whichever systems wrote them."""
    side = np.select(
        [
            table["preference"] == table["system_x"],
            table["preference"] == table["system_y"],
            table["preference"] == TIE,
        ],
        [SIDES[0], SIDES[1], TIE],
        default="",
    )
    coded = pd.Series(side, index=table.index, dtype=object).where(table["preference"].notna(), np.nan)
    return table.assign(preference=coded, system_x=SIDES[0], system_y=SIDES[1])


def _judge_figures(
    judge: str, published: tuple[str, ...], verdicts: pd.DataFrame, majority: pd.DataFrame
) -> Iterator[Figure]:
    table = _normalized(judge, verdicts, majority)
    silent = int(table["pair_original"].isna().sum())
    policies = policy_table(table, labels=LABELS, **ESTIMATES_ONLY)
    as_tie = row_value(policies, "exact_agreement_unusable_as_tie", pass_="original", slice_="all")
    remark = GARBAGE if silent else ""
    yield Figure(README, f"{judge}: accuracy", published[0], float(as_tie["estimate"]), len(table), remark=remark)
    filled = table.assign(pair_original=table["pair_original"].fillna(TIE))
    macro = agreement_table(filled, labels=LABELS, **ESTIMATES_ONLY)
    for measure, printed in zip(MACRO, published[1:], strict=True):
        value = float(row_value(macro, measure, pass_="original", slice_="all")["estimate"])
        name = measure.replace("_", " ")
        yield Figure(README, f"{judge}: {name}", printed, value, len(table), remark=remark)
    if silent:
        source = "PandaLM, the other two conventions"
        for policy, name, printed in (("as_wrong", "as wrong", "69.77%"), ("dropped", "dropped", "71.56%")):
            row = row_value(policies, f"exact_agreement_unusable_{policy}", pass_="original", slice_="all")
            what = f"{judge}: accuracy, replies without a verdict {name}"
            yield Figure(source, what, printed, float(row["estimate"]), int(row["denominator"]))


def _normalized(judge: str, verdicts: pd.DataFrame, majority: pd.DataFrame) -> pd.DataFrame:
    """One judge, one order: the verdicts beside the majority label."""
    table = majority[[*PAIR, "human"]].merge(verdicts[["item_id", "preference"]], on="item_id", how="left")
    table = table.rename(columns={"preference": "pair_original"})
    return table.assign(
        judge=judge, direct=np.nan, pair_swapped=np.nan, original_first=SIDES[0], category=np.nan,
        planned_direct=False, planned_original=True, planned_swapped=False,
    )  # fmt: skip


def _wins(who: str, names: pd.DataFrame, sides: pd.Series, remark: str = "") -> Iterator[Figure]:
    """The printed cells of one table, in its order: the upper triangle, row by row."""
    cells = iter(re.findall(r"\(\d+,\d+,\d+\)", WINS[who]))
    pairs = [(row, column) for place, row in enumerate(ROWS) for column in COLUMNS[place:]]
    for (row, column), printed in zip(pairs, cells, strict=True):
        forward = ((names["system_x"] == row) & (names["system_y"] == column)).to_numpy()
        backward = ((names["system_x"] == column) & (names["system_y"] == row)).to_numpy()
        label = sides.to_numpy(dtype=object)
        wins = int(((label == "1") & forward).sum() + ((label == "2") & backward).sum())
        losses = int(((label == "2") & forward).sum() + ((label == "1") & backward).sum())
        ties = int(((label == TIE) & (forward | backward)).sum())
        ours = f"({wins},{losses},{ties})"
        swapped = SWAPPED if ours != printed and ours == _turned(printed) else ""
        what = f"{who}: wins, losses, ties of {row} against {column}"
        yield Figure(README, what, printed, ours, wins + losses + ties, remark=swapped or remark)


def _turned(printed: str) -> str:
    wins, losses, ties = printed.strip("()").split(",")
    return f"({losses},{wins},{ties})"
