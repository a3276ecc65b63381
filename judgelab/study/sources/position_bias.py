"""Position bias on MT-Bench: three judges, 2,400 pairs of answers, each shown in both orders.

Layout of the publication (Shi et al. 2024, "Judging the Judges: A Systematic Study of Position Bias in
LLM-as-a-Judge"; repository Slimshilin/Position-Bias-Analyzer): a row is one presentation, its ``key`` is
``question;system shown first;system shown second`` and its ``choice`` A (first), B (second), C (tie) or empty (the
reply held no choice). ``published.csv`` has what each judge's log printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from judgelab.errors import DataError
from judgelab.project import shown
from judgelab.study.sources.published import folder_of, refuse, refuse_twice, rows_of

__all__ = ["PositionBias", "read_position_bias"]

PREFIX = "MTBench_"
PUBLISHED = "published.csv"
CHOICES = {"A": "A", "B": "B", "C": "TIE", "": np.nan}
COUNTS = ("extracted", "consistent", "of")


@dataclass(frozen=True)
class PositionBias:
    """Verdicts by position, and the figures that the logs print.

    Attributes
    ----------
    verdicts
        One row a presentation, in the order of the files: judge, item_id (the question), first, second (the systems
        in the order shown), choice (A: the first, B: the second, TIE, or NaN where none could be read). Both
        orders of a pair are rows of the same judge.
    published
        One row a judge: judge, extracted (replies with a choice), consistent, of, rate_percent. The log counts
        rows, and a row whose partner has no choice counts as consistent.
    """

    verdicts: pd.DataFrame
    published: pd.DataFrame


def read_position_bias(folder: Path) -> PositionBias:
    """Read the choices of every judge in a folder.

    Parameters
    ----------
    folder
        Where ``MTBench_<judge>.csv``, one a judge, and ``published.csv`` are.

    Returns
    -------
    PositionBias
        Judges in the order of their names.

    Raises
    ------
    DataError
        If a file is missing or of another form, a key is not ``question;first;second`` with two systems, a key
        occurs twice, a presentation has no partner in the other order, a choice is not A, B, C or empty, or
        ``published.csv`` does not name the same judges.
    """
    folder_of(folder, PUBLISHED)
    paths = sorted(folder.glob(f"{PREFIX}*.csv"))
    if not paths:
        raise DataError(f"{shown(folder)}: no file {PREFIX}<judge>.csv in it")
    verdicts = [row for path in paths for row in _verdicts(path)]
    return PositionBias(
        pd.DataFrame(verdicts, columns=["judge", "item_id", "first", "second", "choice"]),
        _published(folder / PUBLISHED, [_judge(path.name) for path in paths]),
    )


def _verdicts(path: Path) -> list[tuple[object, ...]]:
    file = rows_of(path, "key", "choice")
    keys = [(line, tuple(row["key"].split(";"))) for line, row in file.rows]
    wrong = [(line, ";".join(key)) for line, key in keys if len(key) != 3 or not all(key) or key[1] == key[2]]
    refuse(path, wrong, len(keys), "have a key that is not question;first;second with two systems", place="line")
    refuse_twice(path, ((line, ";".join(key)) for line, key in keys), "keys", place="line")
    known = {key for _, key in keys}
    alone = [(line, ";".join(key)) for line, key in keys if (key[0], key[2], key[1]) not in known]
    refuse(path, alone, len(keys), "presentations have none in the other order", place="line")
    off = [(line, row["choice"]) for line, row in file.rows if row["choice"] not in CHOICES]
    refuse(path, off, len(file.rows), "have a choice outside A, B, C and empty", place="line")
    choices = [CHOICES[row["choice"]] for _, row in file.rows]
    return [(_judge(path.name), *key, choice) for (_, key), choice in zip(keys, choices, strict=True)]


def _published(path: Path, judges: list[str]) -> pd.DataFrame:
    file = rows_of(path, "file", *COUNTS, "rate_percent")
    rows = [row for _, row in file.rows]
    for name in COUNTS:
        wrong = [(line, row[name]) for line, row in file.rows if not (row[name].isascii() and row[name].isdigit())]
        refuse(path, wrong, len(rows), f"have a value of {name} that is not a count", place="line")
    rates = pd.to_numeric(pd.Series([row["rate_percent"] for row in rows]), errors="coerce")
    unread = [(file.rows[place][0], rows[place]["rate_percent"]) for place in np.flatnonzero(~np.isfinite(rates))]
    refuse(path, unread, len(rows), "have a rate_percent that is not a number", place="line")
    named = [_judge(row["file"]) for row in rows]
    refuse_twice(path, ((line, row["file"]) for line, row in file.rows), "files", place="line")
    if sorted(named) != judges:
        raise DataError(f"{shown(path)}: names the judges {', '.join(named)}; the folder has {', '.join(judges)}")
    table = pd.DataFrame({name: [int(row[name]) for row in rows] for name in COUNTS})
    return table.assign(rate_percent=rates).set_axis(pd.Index(named, name="judge")).reset_index()


def _judge(name: str) -> str:
    return name.removeprefix(PREFIX).removesuffix(".csv")
