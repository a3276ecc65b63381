"""Prometheus: three scores that GPT-4 gave to the same answer, for 320 answers of each of two sets.

Layout of the publication (Kim et al. 2024, "Prometheus: Inducing Fine-grained Evaluation Capability in Language
Models", ICLR; repository prometheus-eval/prometheus-eval, ``eval/benchmark/data``), with the texts removed: a list of
answers with ``idx`` (the question), ``response_source`` (the system), ``category`` and ``gpt4_score``, a list of scores
from 1 to 5.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from judgelab.study.sources.published import folder_of, json_list, number, refuse, refuse_twice

__all__ = ["read_prometheus"]

FILES = {"mt_bench": "mt_bench_eval.scores.json", "vicuna": "vicuna_eval.scores.json"}
LOWEST, HIGHEST = 1, 5
COLUMNS = ["dataset", "item_id", "system", "unit", "category", "repeat", "value"]


def read_prometheus(folder: Path) -> pd.DataFrame:
    """Read repeated scores by one judge.

    Parameters
    ----------
    folder
        Where ``mt_bench_eval.scores.json`` and ``vicuna_eval.scores.json`` are.

    Returns
    -------
    DataFrame
        One row a score: dataset (``mt_bench``, ``vicuna``), item_id (the question), system (who answered), unit (the
        answer that was scored: ``<item_id>/<system>``, unique within its set), category, repeat (from 1), value.

    Raises
    ------
    DataError
        If a file is missing or of another form, an answer occurs twice, answers have different numbers of scores, or a
        score is not a whole number from 1 to 5.
    """
    folder_of(folder, *FILES.values())
    rows = []
    for dataset, name in FILES.items():
        path = folder / name
        answers = json_list(path, {"idx": int, "response_source": str, "category": str, "gpt4_score": list})
        numbered = list(enumerate(answers, start=1))
        refuse_twice(path, ((n, (one["idx"], one["response_source"])) for n, one in numbered), "answers")
        repeats = len(answers[0]["gpt4_score"])
        uneven = [(n, one["gpt4_score"]) for n, one in numbered if not len(one["gpt4_score"]) == repeats > 0]
        refuse(path, uneven, len(answers), f"have not the {max(repeats, 1)} scores of the first")
        scores = [(n, score) for n, one in numbered for score in one["gpt4_score"]]
        off = [(n, score) for n, score in scores if not number(score) or score not in range(LOWEST, HIGHEST + 1)]
        refuse(path, off, len(scores), f"scores are not whole numbers from {LOWEST} to {HIGHEST}")
        rows += [
            (
                dataset,
                f"{one['idx']:03d}",
                one["response_source"],
                f"{one['idx']:03d}/{one['response_source']}",
                one["category"],
                repeat,
                float(score),
            )
            for one in answers
            for repeat, score in enumerate(one["gpt4_score"], start=1)
        ]
    return pd.DataFrame(rows, columns=COLUMNS)
