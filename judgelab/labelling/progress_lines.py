"""How far labelling has come, as lines for a terminal."""

from __future__ import annotations

from typing import Any

import pandas as pd

from judgelab.labelling.gathered import gathered_labels
from judgelab.measure.labelling_progress import PEEKING, agreement_so_far, progress_table
from judgelab.study.run import Run

__all__ = ["progress_lines"]

HEADER = ("reviewer", "category", "done", "cannot judge", "repeats", "median time")
MEASURE_NAMES = {
    "exact_agreement": "exact agreement",
    "cohen_kappa": "Cohen's kappa",
    "krippendorff_alpha": "Krippendorff's alpha",
    "gwet_ac1": "Gwet's AC1",
}


def progress_lines(run: Run) -> list[str]:
    """Labels by reviewer and category, agreement so far with its interval, and how much is left to adjudicate.

    Where answers are put in order, a ranked item is one label, and agreement is that on every pair that ranks imply.
    Lines of journals that cannot be used are told first. Without any journal, one line says so.

    Raises
    ------
    LabelError
        If the run's labels are not made in the study, or a journal cannot be read.
    """
    study, gathered = run.study, gathered_labels(run)
    lines = list(gathered.problems)
    state = "open" if run.labels_open else "closed"
    if gathered.planned.empty:
        return [*lines, f"labels of run {run.name} are {state}; nobody has labelled in it yet"]
    table = progress_table(gathered.decisions, gathered.planned)
    lines += [f"labels of run {run.name} are {state}", *_columns([_row(row) for row in table.to_dict("records")])]
    agreement = agreement_so_far(gathered.of_evaluation(), labels_allowed=study.labels, **study.intervals)
    lines += [_agreement(row, study.intervals["ci_level"]) for row in agreement.to_dict("records")]
    return [*lines, PEEKING, f"to adjudicate: {len(gathered.open_pairs)}", *gathered.notes, *gathered.unfinished]


def _row(row: dict[Any, Any]) -> tuple[str, ...]:
    seconds = "-" if not row["median_seconds"] > 0 else f"{row['median_seconds']:.0f} s"
    done, repeats = f"{row['done']} of {row['planned']}", f"{row['repeats_done']} of {row['repeats_planned']}"
    return (row["reviewer_id"], row["category"], done, str(row["cannot_judge"]), repeats, seconds)


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[place]) for row in (HEADER, *rows)) for place in range(len(HEADER))]
    return [
        "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in (HEADER, *rows)
    ]


def _agreement(row: dict[Any, Any], level: float) -> str:
    name = MEASURE_NAMES.get(row["measure"], row["measure"])
    name += "" if row["slice"] == "all" else f" ({row['slice']})"
    if pd.isna(row["estimate"]):
        return f"{name}: not estimated ({row['note'].removesuffix(PEEKING).rstrip('; ')})"
    interval = "" if pd.isna(row["ci_low"]) else f", {level:.0%} interval {row['ci_low']:.2f} to {row['ci_high']:.2f}"
    return f"{name}: {row['estimate']:.2f}{interval}"
