"""The figures of LLMBar's ``statistics.json``: accuracy, both-correct, positional agreement, kappa of the orders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.measure.agreement import agreement_table
from judgelab.measure.position import position_table
from judgelab.measure.preferences import normalize
from judgelab.report.published.figure import Figure, row_value
from judgelab.study.protocol import TIE
from judgelab.study.sources.llmbar import SYSTEMS, evaluations
from judgelab.study.sources.llmbar_verdicts import Evaluation, records_of

__all__ = ["llmbar_figures"]

LABELS = (*SYSTEMS, TIE)
ESTIMATES_ONLY: dict[str, Any] = {"ci_level": 0.95, "resamples": 1, "seed": 0}
RECODED = (
    'wrong by construction there: the winner "2" is recoded as 0 while the label 2 stays 2, so that most agreements '
    "count as disagreements; ours is Cohen's kappa of the same two columns"
)
RATING = "equal ratings: read as the publication reads them, as output 2 and then as output 1"
SILENT = "two unusable replies of a pair count as the same label there (rows *_unusable_as_label)"


def llmbar_figures(folder: Path) -> Iterator[Figure]:
    """Four figures of every evaluation below ``folder``, and once the three kappas that are no target.

    Parameters
    ----------
    folder
        The data set ``llmbar_natural`` or ``llmbar_adversarial_gpt4``.
    """
    for name, evaluation in evaluations(folder):
        yield from _figures(name, evaluation)


def _figures(name: str, evaluation: Evaluation) -> Iterator[Figure]:
    published = evaluation.statistics
    normalized = _normalized(evaluation)
    agreement = agreement_table(normalized, labels=LABELS, **ESTIMATES_ONLY)
    position = position_table(normalized, labels=LABELS, **ESTIMATES_ONLY)
    source = f"LLMBar {name}, {evaluation.prompt.removeprefix('evaluators/')}"
    remark = RATING if evaluation.direct else ""
    n = len(evaluation.results)
    average = row_value(agreement, "exact_agreement_unusable_as_wrong", pass_="both", slice_="all")
    yield Figure(source, "accuracy, mean of the two orders", published["correct_average"],
                 float(average["estimate"]), n, digits=1, remark=remark)  # fmt: skip
    both = row_value(agreement, "both_passes_correct_unusable_as_wrong", slice_="all")
    yield Figure(source, "right in both orders", _count(published["correct_both"]), _ratio(both), n, remark=remark)
    same = row_value(position, "swap_consistency_unusable_as_label", slice_="all")
    silent = SILENT if normalized[["pair_original", "pair_swapped"]].isna().any(axis=None) else ""
    yield Figure(source, "positional agreement", _count(published["equal"]), _ratio(same), n, remark=remark or silent)
    kappa = row_value(position, "swap_kappa_unusable_as_label", slice_="all")
    yield Figure(source, "kappa of the two orders", repr(published["kappa_agreement"]), float(kappa["estimate"]), n,
                 digits=9, remark=remark or silent)  # fmt: skip
    if name == "natural" and evaluation.prompt.endswith("GPT-4/Vanilla_NoRules"):
        yield from _recoded(source, published, agreement, n)


def _recoded(source: str, published: Any, agreement: pd.DataFrame, n: int) -> Iterator[Figure]:
    kappas = [
        float(row_value(agreement, "cohen_kappa", pass_=pass_, slice_="all")["estimate"])
        for pass_ in ("original", "swapped")
    ]
    for key, ours in zip(("False", "True", "average"), (*kappas, sum(kappas) / 2), strict=True):
        yield Figure(source, f"kappa_{key}: judge against the label", repr(published[f"kappa_{key}"]), ours, n,
                     digits=9, remark=RECODED)  # fmt: skip


def _normalized(evaluation: Evaluation) -> pd.DataFrame:
    """The evaluation's verdicts as preferences in both orders, the human label beside them."""
    records = records_of(evaluation)
    verdicts = pd.DataFrame(_as_pairwise(records) if evaluation.direct else records)
    verdicts = verdicts.assign(judge=evaluation.judge, system_x=SYSTEMS[0], system_y=SYSTEMS[1])
    verdicts["status"] = verdicts["verdict"].notna().map({True: "verdict", False: "unusable"})
    reference = pd.DataFrame(
        {
            "item_id": list(evaluation.results),
            "system_x": SYSTEMS[0],
            "system_y": SYSTEMS[1],
            "human": [SYSTEMS[int(result["label"]) - 1] for result in evaluation.results.values()],
        }
    )
    comparisons = reference.drop(columns="human").assign(first=SYSTEMS[0], category="", words_x=0, words_y=0)
    return normalize(verdicts, reference, comparisons, margin=0.0)


def _as_pairwise(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Ratings as letters in two orders, by the publication's rule: equal ratings name the output shown last."""
    by_item: dict[str, dict[str, Any]] = {}
    for record in records:
        verdict = record["verdict"]
        by_item.setdefault(record["item_id"], {})[record["system"]] = verdict["scores"]["overall"] if verdict else None
    made = []
    for item_id, scores in by_item.items():
        for pass_, (first, second) in (("original", SYSTEMS), ("swapped", SYSTEMS[::-1])):
            known = None not in scores.values()
            letter = ("A" if scores[first] > scores[second] else "B") if known else None
            shown = {"first": first, "second": second, "verdict": letter}
            made.append({"item_id": item_id, "strategy": "pairwise", "pass": pass_, **shown})
    return made


def _count(published: str) -> str:
    """``92 / 100`` of ``92 / 100 = 92.0%``."""
    return published.split("=")[0].strip()


def _ratio(row: pd.Series) -> str:
    return f"{int(row['numerator'])} / {int(row['denominator'])}"
