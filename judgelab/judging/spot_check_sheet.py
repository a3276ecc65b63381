"""The spot check's files: a blind sheet with the texts for a person, the key to it, and the sheet that comes back."""

from __future__ import annotations

import pandas as pd

from judgelab.errors import DataError
from judgelab.judging.ranking_data import RankingData
from judgelab.project import resolve, shown
from judgelab.study.protocol import TIE
from judgelab.study.run import Run
from judgelab.study.tables import read_csv, write_csv

__all__ = ["CHOICES", "read_spot_check", "write_spot_check"]

SHEET = "spot_check.csv"
KEY = "spot_check_key"
CHOICES = ("first", "second", "tie")
COLUMNS = ["check_id", "task", "reference_context", "answer_first", "answer_second", "choice", "note"]


def write_spot_check(data: RankingData, sheet: pd.DataFrame, key: pd.DataFrame) -> pd.DataFrame:
    """Write ``spot_check.csv``, a row a verdict with its two answers and an empty ``choice``; and the key.

    The sheet holds neither judge nor verdict nor system. The key goes to ``tables/spot_check_key.csv``: it is not for
    the person who judges.

    Parameters
    ----------
    data
        The run and its matches.
    sheet, key
        See :func:`judgelab.measure.spot_check.spot_check_sample`.

    Returns
    -------
    pandas.DataFrame
        The sheet with its texts; without rows for matches that were judged elsewhere, whose answers are not here.
    """
    if not isinstance(data.run, Run):
        return pd.DataFrame(columns=COLUMNS)
    items = {item.item_id: item for item in data.run.each_evaluation_item()}
    rows = [
        {
            "check_id": row["check_id"],
            "task": items[row["item_id"]].task,
            "reference_context": items[row["item_id"]].reference_context,
            "answer_first": items[row["item_id"]].answers[row["shown_first"]],
            "answer_second": items[row["item_id"]].answers[row["shown_second"]],
            "choice": "",
            "note": "",
        }
        for row in sheet.to_dict("records")
    ]
    filled = pd.DataFrame(rows, columns=COLUMNS)
    write_csv(filled, data.run.path(SHEET))
    data.run.save_table(key, KEY)
    return filled


def read_spot_check(data: RankingData, sheet: pd.DataFrame) -> pd.DataFrame | None:
    """What people chose, by system: check_id, preference (a system, ``TIE``, or missing); None without a filled sheet.

    The protocol may name the sheet before it is there, as it must: a frozen protocol cannot be changed later.

    Raises
    ------
    DataError
        If a choice is none of first, second, tie; a check is not of this sheet, or stands there twice. Every line is
        told.
    """
    named = data.rules.spot_check.labels
    if named is None:
        return None
    path = resolve(named)
    if not path.exists():
        return None
    file = read_csv(path)
    missing = [name for name in ("check_id", "choice") if name not in file.columns]
    if missing:
        raise DataError(f"{shown(path)}: no column {', '.join(missing)}; needed are check_id and choice")
    places = sheet.set_index("check_id")[["shown_first", "shown_second"]]
    rows, problems = [], []
    seen: dict[str, int] = {}
    for line, row in file.rows:
        name, choice = row["check_id"], row["choice"].strip().lower()
        if name not in places.index:
            problems.append(f"line {line}: {name!r} is no check of this sheet")
        elif choice and choice not in CHOICES:
            problems.append(f"line {line}: choice {row['choice']!r}; allowed are {', '.join(CHOICES)}, or empty")
        elif name in seen:
            problems.append(f"line {line}: {name!r} stands in line {seen[name]} already")
        else:
            seen[name] = line
            shown_as = dict(zip(CHOICES, (*places.loc[name], TIE), strict=True))
            rows.append({"check_id": name, "preference": shown_as.get(choice)})
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise DataError(
            f"{shown(path)}: {len(problems)} of {len(file.rows)} lines cannot be used: {'; '.join(problems[:5])}{more}"
        )
    return pd.DataFrame(rows, columns=["check_id", "preference"])
