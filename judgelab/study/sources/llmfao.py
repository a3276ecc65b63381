"""LLMFAO: people, GPT-4 and GPT-3.5 on the same pairs of answers of 59 systems; and the small tables of Evalica.

Layouts of the publications (Ustalov 2023, repository dustalov/llmfao, data CC BY 4.0, original prompts and answers by
llmonitor.com; Ustalov 2025, "Reliable, Reproducible, and Really Fast Leaderboards with Evalica", COLING, repository
dustalov/evalica). A comparison names a prompt and the systems shown left and right; the same ``id`` is the same pair
in all three files. Evalica has golden rankings of LLMFAO's crowd and of two small tables, and two coding examples.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from judgelab.errors import DataError
from judgelab.study.sources.published import at, folder_of, json_lines, refuse, refuse_twice, rows_of
from judgelab.study.tables import CsvFile, read_text

__all__ = ["Evalica", "Llmfao", "read_evalica", "read_llmfao"]

TIE = "TIE"
WINNERS = ("left", "right", "tie")
MATCHES = ["rater", "item_id", "prompt", "system_x", "system_y", "preference"]
PAIRS = ["system_x", "system_y", "preference"]
# attribute -> its file, and the rater where the file names none
FILES = {
    "crowd": ("crowd-comparisons.csv", None),
    "gpt4": ("gpt4-crowd-comparisons.csv", "gpt-4"),
    "gpt3": ("gpt3-crowd-comparisons.csv", "gpt-3"),
}


@dataclass(frozen=True)
class Llmfao:
    """Three tables of matches with the same columns, in the order of the files (Elo depends on it).

    Attributes
    ----------
    crowd, gpt4, gpt3
        One row a comparison: rater (the worker's number, ``gpt-4`` or ``gpt-3``), item_id (the pair of answers: the
        same in all three tables), prompt (the short name of the task), system_x (shown left), system_y (shown
        right), preference (a system's name or TIE).
    """

    crowd: pd.DataFrame
    gpt4: pd.DataFrame
    gpt3: pd.DataFrame


@dataclass(frozen=True)
class Evalica:
    """Small tables with golden rankings, and two tables of codings.

    Attributes
    ----------
    food, simple
        One row a match, in the order of the file: system_x, system_y, preference (a system's name or TIE).
    golden
        One row a published score: source (``food``, ``simple``, ``llmfao``), algorithm, system, score.
    codings, gcl
        One row a coding: item_id (the column of the file, from 01), rater (its row, ``r1`` ...), value (a float in
        ``codings``, a word in ``gcl``). An empty field is a gap and has no row.
    """

    food: pd.DataFrame
    simple: pd.DataFrame
    golden: pd.DataFrame
    codings: pd.DataFrame
    gcl: pd.DataFrame


def read_llmfao(folder: Path) -> Llmfao:
    """Read the comparisons by people, GPT-4 and GPT-3.5.

    Parameters
    ----------
    folder
        Where the three files of comparisons, ``models.jsonl`` and ``prompts.jsonl`` are.

    Returns
    -------
    Llmfao
        Ties are kept.

    Raises
    ------
    DataError
        If a file is missing or of another form, a winner is not left, right or tie, a number of a system does not
        belong to the name beside it, a prompt is not known, a rater judged one pair twice, or one ``id`` is
        another pair elsewhere.
    """
    folder_of(folder, *(name for name, _ in FILES.values()), "models.jsonl", "prompts.jsonl")
    models = {str(one["id"]): one["name"] for one in json_lines(folder / "models.jsonl", {"id": int, "name": str})}
    prompts = {str(one["id"]): one["slug"] for one in json_lines(folder / "prompts.jsonl", {"id": int, "slug": str})}
    pairs: dict[str, tuple[str, ...]] = {}
    tables = {}
    for key, (name, rater) in FILES.items():
        path = folder / name
        raters = ("worker",) if rater is None else ()
        file = rows_of(path, "id", "prompt", "model_x", "model_y", *raters, "winner", "left", "right")
        _check_matches(path, file, models, prompts)
        _check_pairs(path, file, pairs)
        rows = [
            (rater or row["worker"], row["id"], prompts[row["prompt"]], row["left"], row["right"], _preference(row))
            for _, row in file.rows
        ]
        refuse_twice(
            path,
            ((line, row[:2]) for (line, _), row in zip(file.rows, rows, strict=True)),
            "pairs of rater and id",
            place="line",
        )
        tables[key] = pd.DataFrame(rows, columns=MATCHES)
    return Llmfao(**tables)


def read_evalica(folder: Path) -> Evalica:
    """Read the tables that Evalica is tested on.

    Parameters
    ----------
    folder
        Where ``food.csv``, ``simple.csv``, their golden rankings, ``llmfao-golden.csv``, ``codings.csv`` and
        ``gcl.csv`` are.

    Returns
    -------
    Evalica
        Golden scores are floats of the printed digits.

    Raises
    ------
    DataError
        If a file is missing or of another form, a winner is not left, right or tie, a score is not a finite number,
        a system has two scores of one algorithm, or the rows of codings are not of one length.
    """
    sources = ("food", "simple", "llmfao")
    names = ("food.csv", "simple.csv", *(f"{name}-golden.csv" for name in sources), "codings.csv", "gcl.csv")
    folder_of(folder, *names)
    codings = _codings(folder / "codings.csv")
    numbers = pd.to_numeric(codings["value"], errors="coerce")
    unread = [(int(place) + 1, codings["value"][place]) for place in np.flatnonzero(~np.isfinite(numbers))]
    refuse(folder / "codings.csv", unread, len(codings), "codings are not numbers", place="coding")
    return Evalica(
        food=_pairs(folder / "food.csv"),
        simple=_pairs(folder / "simple.csv"),
        golden=pd.concat([_golden(folder, name) for name in sources], ignore_index=True),
        codings=codings.assign(value=numbers.astype("float64")),
        gcl=_codings(folder / "gcl.csv"),
    )


def _check_matches(path: Path, file: CsvFile, models: dict[str, str], prompts: dict[str, str]) -> None:
    """Numbers and names of systems belong together; winners and prompts are known."""
    _check_winners(path, file)
    for number, name in (("model_x", "left"), ("model_y", "right")):
        wrong = [(line, row[name]) for line, row in file.rows if models.get(row[number]) != row[name]]
        refuse(path, wrong, len(file.rows), f"have a {name} that is not the system of {number}", place="line")
    strange = [(line, row["prompt"]) for line, row in file.rows if row["prompt"] not in prompts]
    refuse(path, strange, len(file.rows), "have a prompt that prompts.jsonl does not have", place="line")


def _check_winners(path: Path, file: CsvFile) -> None:
    wrong = [(line, row["winner"]) for line, row in file.rows if row["winner"] not in WINNERS]
    refuse(path, wrong, len(file.rows), f"have a winner outside {', '.join(WINNERS)}", place="line")
    alone = [(line, row["left"]) for line, row in file.rows if row["left"] == row["right"]]
    refuse(path, alone, len(file.rows), "compare a system with itself", place="line")
    nameless = [(line, row["left"]) for line, row in file.rows if not (row["left"].strip() and row["right"].strip())]
    refuse(path, nameless, len(file.rows), "leave a system without a name", place="line")


def _check_pairs(path: Path, file: CsvFile, pairs: dict[str, tuple[str, ...]]) -> None:
    """One id is one pair of answers, in every file; ``pairs`` has those of the files before and takes the new ones."""
    found = [(line, row["id"], (row["prompt"], row["left"], row["right"])) for line, row in file.rows]
    other = [(line, number) for line, number, pair in found if pairs.setdefault(number, pair) != pair]
    refuse(path, other, len(found), "have the id of another pair of answers", place="line")


def _preference(row: dict[str, str]) -> str:
    return TIE if row["winner"] == "tie" else row[row["winner"]]


def _pairs(path: Path) -> pd.DataFrame:
    file = rows_of(path, "left", "right", "winner")
    _check_winners(path, file)
    return pd.DataFrame([(row["left"], row["right"], _preference(row)) for _, row in file.rows], columns=PAIRS)


def _golden(folder: Path, source: str) -> pd.DataFrame:
    path = folder / f"{source}-golden.csv"
    file = rows_of(path, "algorithm", "item", "score")
    wrong = [(line, row["score"]) for line, row in file.rows if not _finite(row["score"])]
    refuse(path, wrong, len(file.rows), "have a score that is not a finite number", place="line")
    keys = ((line, (row["algorithm"], row["item"])) for line, row in file.rows)
    refuse_twice(path, keys, "pairs of algorithm and item", place="line")
    rows = [(source, row["algorithm"], row["item"], float(row["score"])) for _, row in file.rows]
    return pd.DataFrame(rows, columns=["source", "algorithm", "system", "score"])


def _codings(path: Path) -> pd.DataFrame:
    """A table without a header, a row a rater, as one row a coding."""
    try:
        rows = [row for row in csv.reader(io.StringIO(read_text(path), newline=""), strict=True) if row]
    except csv.Error as error:
        raise DataError(f"{at(path)}: not valid CSV: {error}") from None
    uneven = [(line, len(row)) for line, row in enumerate(rows, start=1) if len(row) != len(rows[0])]
    refuse(path, uneven, len(rows), f"rows do not have the {len(rows[0])} fields of the first", place="line")
    found = [
        (f"{item:02d}", f"r{rater}", value.strip())
        for rater, row in enumerate(rows, start=1)
        for item, value in enumerate(row, start=1)
        if value.strip()
    ]
    return pd.DataFrame(found, columns=["item_id", "rater", "value"])


def _finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
