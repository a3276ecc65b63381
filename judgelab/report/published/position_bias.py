"""MT-Bench in both orders: consistent rows as printed by the publication's logs, and by pairs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.position import position_table
from judgelab.measure.preferences import preference_from_letters
from judgelab.report.published.figure import Figure, row_value
from judgelab.study.protocol import TIE
from judgelab.study.sources.position_bias import read_position_bias

__all__ = ["position_bias_figures"]

ESTIMATES_ONLY: dict[str, Any] = {"ci_level": 0.95, "resamples": 1, "seed": 0}
STRICT = {"gpt-4-0613": "0.8154", "gpt-3.5-turbo-1106": "0.6951", "gemini-pro": "0.5735"}
ROWS = "the log counts rows, and a row whose partner gave no verdict as consistent; by pairs see the row below"
LOG = "Position-Bias-Analyzer, log.txt"


def position_bias_figures(folder: Path) -> Iterator[Figure]:
    """Consistency of three judges over 2,400 pairs of answers, each shown in both orders."""
    data = read_position_bias(folder)
    for judge, printed in data.published.set_index("judge").iterrows():
        table = _normalized(str(judge), data.verdicts[data.verdicts["judge"] == judge])
        both = table["pair_original"].notna() & table["pair_swapped"].notna()
        same = both & (table["pair_original"] == table["pair_swapped"])
        alone = int((table["pair_original"].notna() ^ table["pair_swapped"].notna()).sum())
        verdicts = int(2 * both.sum()) + alone
        published = f"{int(printed['consistent'])} / {int(printed['of'])}"
        ours = f"{int(2 * same.sum()) + alone} / {verdicts}"
        yield Figure(LOG, f"{judge}: consistent rows", published, ours, verdicts, remark=ROWS if alone else "")
        position = position_table(table, labels=_labels(table), **ESTIMATES_ONLY)
        strict = row_value(position, "swap_consistency", slice_="all")
        yield Figure("the same logs, by pairs with two verdicts", f"{judge}: swap consistency", STRICT[str(judge)],
                     float(strict["estimate"]), int(strict["denominator"]))  # fmt: skip


def _labels(table: pd.DataFrame) -> list[str]:
    return [*sorted({*table["system_x"], *table["system_y"]}), TIE]


def _normalized(judge: str, rows: pd.DataFrame) -> pd.DataFrame:
    """One row a pair of answers; the order in which the alphabetically first stood first is called the original one."""
    preferred = preference_from_letters(rows["choice"], rows["first"], rows["second"])
    x, y = np.minimum(rows["first"], rows["second"]), np.maximum(rows["first"], rows["second"])
    rows = rows.assign(preference=preferred, system_x=x, system_y=y, original=rows["first"] == x)
    keys = ["item_id", "system_x", "system_y", "original"]
    pairs = rows.set_index(keys)["preference"].unstack("original")  # noqa: PD010 - a key twice must be an error
    table = pairs.rename(columns={True: "pair_original", False: "pair_swapped"}).reset_index()
    table = table[["item_id", "system_x", "system_y", "pair_original", "pair_swapped"]]
    return table.assign(
        judge=judge, human=np.nan, direct=np.nan, category=np.nan, original_first=table["system_x"],
        planned_direct=False, planned_original=True, planned_swapped=True,
    )  # fmt: skip
