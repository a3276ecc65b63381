"""MT-Bench: judgments of pairs of answers, each asked in both orders.

Layout of FastChat's ``model_judgment`` files (Zheng et al. 2023, "Judging LLM-as-a-Judge with MT-Bench and Chatbot
Arena", NeurIPS; ``fastchat/llm_judge/common.py`` of the repository lm-sys/FastChat): one object a line with
question_id, model_1, model_2, g1_winner, g2_winner, judge (``[judge, prompt]``), g1_judgment, g2_judgment, turn,
tstamp. In g1 the answer of model_1 stood first, in g2 that of model_2; both winners name model_1 or model_2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judgelab.study.protocol import TIE
from judgelab.study.sources.foreign_entries import Entry
from judgelab.study.sources.match_imports import ITSELF, Gathered, gather, import_matches

__all__ = ["import_mt_bench"]

PATTERNS = ("model_judgment/*.jsonl", "*.jsonl")
WINNERS = ("model_1", "model_2", "tie", "error")
SINGLE = "score of a single answer, which prefers nothing"
SCORES = "pair of single scores (m1_score, m2_score), which no judge compared"
FAILED = "$ERROR$"  # the reply that FastChat writes where a call failed


def import_mt_bench(path: Path, run: str) -> tuple[Path, list[str]]:
    """Write ``outputs/<run>/source/matches.csv`` and, if it is missing, ``params/<run>.yaml``, of pairwise judgments.

    Two matches a line: pass ``original`` (g1, model_1 first) and ``swapped`` (g2, model_2 first). A second turn is an
    item of its own, ``<question_id>-turn2``. ``error`` is no preference, with the reason. The judge is the model;
    where one judged the same pair by several prompts, the prompt is part of its name. Lines with scores of single
    answers are left out and counted.

    Parameters
    ----------
    path
        A file, or a folder with files ``*.jsonl``, or with the folder ``model_judgment`` of such files.
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
    return import_matches(
        gathered,
        run,
        kind="mt-bench",
        title="MT-Bench judgments",
        missing="answers as fields of their own, and people's labels, are not in these files",
        told=_prompts(gathered),
    )


def _matches(entry: Entry) -> list[dict[str, Any]] | str:
    values = entry.values
    if "g1_winner" not in values and {"model", "score"} <= set(values):
        return SINGLE
    x, y = entry.systems("model_1", "model_2")
    for key in ("g1_winner", "g2_winner"):
        if values.get(key) not in WINNERS:
            raise ValueError(f"{key} is {values.get(key)!r:.60}; allowed are {', '.join(WINNERS)}")
    turn = values.get("turn", 1)
    if type(turn) is not int or turn < 1:
        raise ValueError(f"turn is {turn!r:.60}; allowed are whole numbers from 1")
    question = entry.text("question_id", needed=True)
    judge, prompt = entry.judge("judge")
    category = entry.text("category")
    if x == y:
        return ITSELF
    if "m1_score" in values:
        return SCORES
    common = {
        "judge": judge,
        "item_id": question if turn == 1 else f"{question}-turn{turn}",
        "category": category,
        "system_x": x,
        "system_y": y,
        "prompt": prompt,
    }
    return [
        common | {"pass": "original", "first": x} | _outcome(values, "g1", x, y),
        common | {"pass": "swapped", "first": y} | _outcome(values, "g2", x, y),
    ]


def _outcome(values: Any, game: str, x: str, y: str) -> dict[str, Any]:
    """What one presentation preferred, or why nothing."""
    winner = values[f"{game}_winner"]
    if winner != "error":
        return {"preference": {"model_1": x, "model_2": y}.get(winner, TIE), "reason": ""}
    reply = values.get(f"{game}_judgment")
    if not isinstance(reply, str):
        return {"preference": None, "reason": "error"}
    return {"preference": None, "reason": "call failed" if reply.strip() == FAILED else "no verdict in the reply"}


def _prompts(gathered: Gathered) -> list[str]:
    """The prompts of each judge, told; part of its name where it judged one pair by several."""
    used: dict[tuple[str, str, frozenset[str]], set[str]] = {}
    for row in gathered.rows:
        pair = frozenset((row["system_x"], row["system_y"]))
        used.setdefault((row["judge"], row["item_id"], pair), set()).add(row["prompt"])
    several = {judge for (judge, _, _), prompts in used.items() if len(prompts) > 1}
    prompts: dict[str, set[str]] = {}
    for row in gathered.rows:
        if row["prompt"]:
            prompts.setdefault(row["judge"], set()).add(row["prompt"])
        if row["judge"] in several:
            row["judge"] = f"{row['judge']} {row['prompt']}".strip()
    return [
        f"prompts of {judge}: {', '.join(sorted(names))}" + ("; each is a judge of its own" if judge in several else "")
        for judge, names in prompts.items()
    ]
