"""AlpacaEval: an annotator's preferences between the outputs of two systems.

Layout of ``annotations.json`` (Li et al. 2023, "AlpacaEval: An Automatic Evaluator of Instruction-following Models",
repository tatsu-lab/alpaca_eval): a list of objects with instruction, generator_1, generator_2, output_1, output_2,
annotator and preference: 1 for output_1, 2 for output_2, 1.5 for a draw (0 in old files), any number between for a
weighted preference, null for none. The order shown is drawn at random, and undone before the file is written.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

from judgelab.study.protocol import TIE
from judgelab.study.sources.foreign_entries import Entry
from judgelab.study.sources.match_imports import ITSELF, gather, import_matches, word_count

__all__ = ["import_alpaca_eval"]

NAME = "annotations.json"
PATTERNS = (NAME, f"*/{NAME}", f"*/*/{NAME}")
MIDDLE = 1.5
SILENT = "no preference in the file"


def import_alpaca_eval(path: Path, run: str) -> tuple[Path, list[str]]:
    """Write ``outputs/<run>/source/matches.csv`` and, if it is missing, ``params/<run>.yaml``, of annotations.

    One match an annotation: judge (annotator), item_id (the first 12 digits of the SHA-256 of the instruction, with the
    input where there is one), category (dataset, where there is one), and the words of the outputs. A number between 1
    and 2 other than 1.5 is a preference for the nearer system. ``first`` is missing: the files do not hold it.

    Parameters
    ----------
    path
        A file, or a folder with ``annotations.json`` in it, one below it, or two below it (results/model/annotator).
    run
        The name of the run to make.

    Returns
    -------
    tuple
        The path of the parameters, and notes: what was read, what was left out, and what was written.

    Raises
    ------
    DataError
        As :func:`judgelab.study.sources.match_imports.gather`.
    """
    gathered = gather(path, PATTERNS, _matches)
    weighted = sum(row["weighted"] for row in gathered.rows)
    notes = []
    if weighted:
        notes.append(
            f"weighted: {weighted} of {len(gathered.rows)} preferences lie between 1 and 2; each is the nearer system"
        )
    lengths = sum(row["words_x"] is not None and row["words_y"] is not None for row in gathered.rows)
    notes.append(f"words of both answers: known for {lengths} of {len(gathered.rows)} matches")
    return import_matches(
        gathered,
        run,
        kind="alpaca-eval",
        title="AlpacaEval annotations",
        missing="people's labels, a rubric and the order shown are not in these files",
        told=notes,
    )


def _matches(entry: Entry) -> list[dict[str, Any]] | str:
    x, y = entry.systems("generator_1", "generator_2")
    instruction = entry.values.get("instruction")
    if not isinstance(instruction, str) or not instruction.strip():
        raise ValueError(f"instruction is {instruction!r:.60}; allowed is text")
    task_input = entry.values.get("input")
    task = f"{instruction}\n\n{task_input}" if isinstance(task_input, str) and task_input else instruction
    preference = _preference(entry.values, x, y)
    judge, _ = entry.judge("annotator")
    category = entry.text("dataset")
    if x == y:
        return ITSELF
    return [
        {
            "judge": judge,
            "item_id": hashlib.sha256(task.encode(errors="backslashreplace")).hexdigest()[:12],
            "category": category,
            "system_x": x,
            "system_y": y,
            "first": None,
            "preference": preference,
            "reason": SILENT if preference is None else "",
            "words_x": word_count(entry.values.get("output_1")),
            "words_y": word_count(entry.values.get("output_2")),
            "weighted": preference is not None and entry.values["preference"] not in (0, 1, MIDDLE, 2),
        }
    ]


def _preference(values: Any, x: str, y: str) -> str | None:
    if "preference" not in values:
        raise ValueError("no preference (null where there is none)")
    value = values["preference"]
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not (value == 0 or 1 <= value <= 2):
        raise ValueError(f"preference is {value!r:.60}; allowed are numbers from 1 to 2, 0 (an old draw) and null")
    if value in (0, MIDDLE):
        return TIE
    return x if value < MIDDLE else y
