"""What can be checked of the prompts before and after judging: blindness, and that the swap changes nothing else."""

from __future__ import annotations

import pandas as pd

from judgelab.errors import RunError
from judgelab.judging.passes import plan_pass
from judgelab.judging.prompts import check_swap, render
from judgelab.study.blindness import scan_answers, scan_text
from judgelab.study.items import pairs
from judgelab.study.run import Run

__all__ = ["compare_swaps", "pass_table", "scan_prompts"]


def scan_prompts(run: Run) -> pd.DataFrame:
    """Words that give an author away, in the answers and in the text around them.

    Returns
    -------
    pandas.DataFrame
        One row a finding: ``where`` (answer, or prompt: the rubric, task and context around the answers),
        ``item_id``, ``system`` (of an answer), ``kind``, ``term``, ``start`` (character), ``excerpt``.
    """
    study = run.study
    answers = scan_answers(run.items(), study).assign(where="answer")
    found = [answers]
    for item in run.items():
        prompt = render(study, item, "pairwise", pairs(study.system_names)[0])
        frame = prompt.frame.replace("\x00", " ")
        found.append(scan_text(f"{prompt.system}\n{frame}", study).assign(where="prompt", item_id=item.item_id))
    table = pd.concat([part for part in found if len(part)] or [answers], ignore_index=True)
    return table.reindex(columns=["where", *[name for name in answers.columns if name != "where"]])


def compare_swaps(run: Run) -> tuple[int, int]:
    """Compare both prompts of every evaluation pair byte by byte: how many were compared, and how many differ."""
    compared = differ = 0
    for item in run.evaluation_items():
        for pair in pairs(run.study.system_names):
            first, second = (render(run.study, item, "pairwise", shown) for shown in (pair, pair[::-1]))
            compared += 1
            try:
                check_swap(first, second, item.item_id)
            except RunError:
                differ += 1
    return compared, differ


def pass_table(run: Run) -> pd.DataFrame:
    """The calls of the protocol: one row per judge and pass, with the place of the first system in pairs.

    ``shown_first`` counts, for pairwise passes, how often each system stands first.
    """
    rows = []
    for judge in run.study.judges:
        for name in run.study.passes_of(judge):
            planned = plan_pass(run, judge, name)
            first = pd.Series([entry.call.presentation[0] for entry in planned]).value_counts()
            counts = ", ".join(f"{system} {first.get(system, 0)}" for system in run.study.system_names)
            rows.append(
                {
                    "judge": judge.name,
                    "pass": name,
                    "calls": len(planned),
                    "shown_first": "" if name == "direct" else counts,
                }
            )
    return pd.DataFrame(rows)
