"""UniEval: human and predicted scores of dialogue responses (Topical-Chat) and of data-to-text outputs (SFHOT).

Layout of the publication (Zhong et al. 2022, "Towards a Unified Multi-Dimensional Evaluator for Text Generation",
EMNLP; repository maszhongming/UniEval): ``reproduce/unieval_predict/<task>/<set>_result.json``, a list of outputs with
``scores`` (mean of the human scores, by dimension) and ``predict_scores`` (the evaluator's). ``reproduce/README.md``
prints the correlations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgelab.errors import DataError
from judgelab.study.sources.published import at, folder_of, json_list, number, refuse, refuse_twice
from judgelab.study.tables import read_text

__all__ = ["published_unieval", "read_unieval"]

RESULTS = "reproduce/unieval_predict"
README = "reproduce/README.md"
# set -> its file; whether its outputs name their systems; the line above its table in README.md, and the level there
FILES = {
    "topical_chat": (f"{RESULTS}/dialogue/topical_chat_result.json", True, "Turn Level Correlations", "turn"),
    "sfhot": (f"{RESULTS}/data2text/sfhot_result.json", False, "SFHOT:", "sample"),
}
COLUMNS = ["dataset", "dimension", "item_id", "answer", "system", "human", "judge"]
TABLE_ROW = re.compile(r"\|\s*(\w+)\s*\|\s*(-?[0-9.]+)\s*\|\s*(-?[0-9.]+)\s*\|\s*(-?[0-9.]+)\s*\|")


def read_unieval(folder: Path) -> pd.DataFrame:
    """Read mean human scores and the evaluator's scores of the same outputs.

    Parameters
    ----------
    folder
        The one that holds ``reproduce``.

    Returns
    -------
    DataFrame
        One row an output and dimension: dataset (``topical_chat``, ``sfhot``), dimension, item_id (the distinct
        sources of a set, numbered in the order of the file), answer (the output's place in the file, from 1: the
        unit that was scored), system (NaN in ``sfhot``, which does not name them), human, judge. All outputs of one
        ``source`` share its item_id.

    Raises
    ------
    DataError
        If a file is missing or of another form, an output lacks a dimension that others have, ``scores`` and
        ``predict_scores`` have other dimensions, a score is not a finite number, or a source has two outputs of one
        system.
    """
    folder_of(folder, *(name for name, *_ in FILES.values()))
    rows = [row for dataset in FILES for row in _scores(folder, dataset)]
    return pd.DataFrame(rows, columns=COLUMNS)


def published_unieval(folder: Path) -> pd.DataFrame:
    """The correlations that ``reproduce/README.md`` prints for the two sets.

    Parameters
    ----------
    folder
        The one that holds ``reproduce``.

    Returns
    -------
    DataFrame
        One row a set and dimension, in the printed order: dataset, level (as printed: all outputs pooled), dimension,
        pearson, spearman, kendall.

    Raises
    ------
    DataError
        If the file is missing or does not hold a table for each set.
    """
    path = folder_of(folder, README) / README
    lines = read_text(path).splitlines()
    rows = []
    for dataset, (_, _, heading, level) in FILES.items():
        found = _table(lines, heading)
        if not found:
            raise DataError(f"{at(path)}: no table of correlations below {heading!r}")
        rows += [(dataset, level, dimension, *map(float, values)) for dimension, *values in found]
    return pd.DataFrame(rows, columns=["dataset", "level", "dimension", "pearson", "spearman", "kendall"])


def _scores(folder: Path, dataset: str) -> list[tuple[Any, ...]]:
    """The rows of one set."""
    name, with_systems, *_ = FILES[dataset]
    path = folder / name
    systems = {"system_id": str} if with_systems else {}
    outputs = json_list(path, {"source": str, "scores": dict, "predict_scores": dict, **systems})
    _check(path, outputs)
    if with_systems:
        keys = ((n, (output["source"], output["system_id"])) for n, output in enumerate(outputs, start=1))
        _check_once(path, keys)
    numbers: dict[str, int] = {}
    for output in outputs:
        numbers.setdefault(output["source"], len(numbers) + 1)
    return [
        (
            dataset,
            dimension,
            f"{dataset}_{numbers[output['source']]:03d}",
            answer,
            output["system_id"] if with_systems else np.nan,
            float(human),
            float(output["predict_scores"][dimension]),
        )
        for answer, output in enumerate(outputs, start=1)
        for dimension, human in output["scores"].items()
    ]


def _check(path: Path, outputs: Sequence[dict[str, Any]]) -> None:
    """Every output has the dimensions of the first, in both kinds of scores, as finite numbers."""
    dimensions = set(outputs[0]["scores"])
    numbered = list(enumerate(outputs, start=1))
    for key in ("scores", "predict_scores"):
        other = [(n, sorted(output[key])) for n, output in numbered if set(output[key]) != dimensions]
        refuse(path, other, len(outputs), f"have {key} of other dimensions than {', '.join(sorted(dimensions))}")
        for dimension in sorted(dimensions):
            wrong = [(n, output[key][dimension]) for n, output in numbered if not number(output[key][dimension])]
            refuse(path, wrong, len(outputs), f"have no finite number in {key}, {dimension}")


def _check_once(path: Path, keys: Any) -> None:
    """A source has one output a system; the message holds no text of the source."""
    seen: dict[tuple[str, str], int] = {}
    numbered = [(n, seen.setdefault(key, n), key[1]) for n, key in keys]
    refuse_twice(path, ((n, f"the source of entry {first}, {system}") for n, first, system in numbered), "outputs")


def _table(lines: Sequence[str], heading: str) -> list[tuple[str, ...]]:
    """The rows of the first table below a heading."""
    start = next((place for place, line in enumerate(lines) if heading in line), len(lines))
    rows: list[tuple[str, ...]] = []
    for line in lines[start + 1 :]:
        found = TABLE_ROW.fullmatch(line.strip())
        if found:
            rows.append(found.groups())
        elif rows:
            break
    return rows
