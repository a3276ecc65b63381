"""LLMFAO as a study of matches: 59 systems ranked by people, by GPT-4 and by GPT-3.5, on the same pairs of answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.study.sources.llmfao import read_llmfao
from judgelab.study.sources.match_imports import write_match_study

__all__ = ["import_llmfao"]

RATERS = {"crowd": "people", "gpt4": "gpt-4", "gpt3": "gpt-3.5"}


def import_llmfao(folder: Path, run: str) -> tuple[Path, list[str]]:
    """Write ``outputs/<run>/source/matches.csv`` and, if it is missing, ``params/<run>.yaml``.

    The crowd's workers are one judge, ``people``. The rows keep the order of the files: Elo in the order of the matches
    depends on it. The answers are not part of the published comparisons, so that most stages cannot run.

    Returns
    -------
    tuple
        The path of the parameters, and notes: what was read, and what was written.

    Raises
    ------
    DataError
        As :func:`judgelab.study.sources.llmfao.read_llmfao`.
    """
    data = read_llmfao(folder)
    tables, notes = [], []
    for key, judge in RATERS.items():
        read: pd.DataFrame = getattr(data, key)
        tables.append(
            pd.DataFrame(
                {
                    "judge": judge,
                    "item_id": read["item_id"],
                    "category": read["prompt"],
                    "system_x": read["system_x"],
                    "system_y": read["system_y"],
                    "first": read["system_x"],  # shown left
                    "repeat": read.groupby("item_id").cumcount(),  # votes on one pair of answers
                    "preference": read["preference"],
                }
            )
        )
        raters = f" of {len(set(read['rater']))} workers" if key == "crowd" else ""
        notes.append(f"{judge}: {len(read)} matches{raters} on {read['item_id'].nunique()} pairs of answers")
    return write_match_study(
        pd.concat(tables, ignore_index=True),
        run,
        study=_study(run),
        head="# LLMFAO (CC BY 4.0): votes of people and of two judges, made elsewhere.\n",
        notes=notes,
        missing="the answers themselves are not in these files",
    )


def _study(run: str) -> dict[str, Any]:
    return {
        "study_id": "llmfao",
        "title": "LLMFAO: 59 systems, ranked by people",
        "question": "Which of 59 systems do people prefer, and do two LLM judges rank them alike?",
        "matches": f"outputs/{run}/source/matches.csv",
        "sampling_rule": "as published: crowd votes on 13 prompts, pairs chosen by the publication's own schedule",
        "random_seed": 20261130,
        "measures": {"resamples": 1000},
        "ranking": {"judges": ["people"], "elo": {"k": 4.0}, "group_by": "category", "schedule_repeats": 5},
    }
