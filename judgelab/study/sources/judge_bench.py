"""JudgeBench: pairs of answers of which one is right by the answer key, and a judge's decisions in both orders.

Layout of the output files (Tan et al. 2024, "JudgeBench: A Benchmark for Evaluating LLM-Based Judges"; written by
``run_judge.py`` of the repository ScalerLab/JudgeBench): one object a line with pair_id, source, question,
response_model, response_A, response_B, label (``A>B`` or ``B>A``), judge_name (the prompt), and judgments: of the order
A, B, and (unless the judge was asked once) of the order B, A, each with ``decision`` by place and ``judgment``
(judge_model, response), or null where the call failed. JUDGE-BENCH, which ``judgebench.py`` reads, is another set.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from judgelab.errors import DataError
from judgelab.study.protocol import TIE
from judgelab.study.sources.foreign_entries import Entry
from judgelab.study.sources.full_study import (
    SYSTEMS,
    FullStudy,
    item_id_problem,
    pairwise_record,
    plain_names,
    write_full_study,
)
from judgelab.study.sources.match_imports import Gathered, counted, gather, left_out_notes
from judgelab.study.sources.published import at

__all__ = ["import_judge_bench"]

PATTERNS = ("outputs/*.jsonl", "*.jsonl")
LABELS = {"A>B": SYSTEMS[0], "B>A": SYSTEMS[1]}
# a decision without blanks and with one sign -> the letter of the place
DECISIONS = {"A>B": "A", "B<A": "A", "B>A": "B", "A<B": "B", "A=B": TIE, "B=A": TIE}
DECISION = re.compile(r"[AB<>=]*")  # all that a reply can be cut down to; what is no decision is unreadable
ORDERS = (("original", SYSTEMS), ("swapped", (SYSTEMS[1], SYSTEMS[0])))
MODEL = re.compile(r"judge_model=(.+?)(?:,|$)")
UNJUDGED = "a pair without judgments"
AGAIN = "a pair that the same judge judged before"
TEXTS = ("question", "response_A", "response_B")


def import_judge_bench(path: Path, run: str) -> tuple[Path, list[str]]:
    """Write ``outputs/<run>/source`` and, if it is missing, ``params/<run>.yaml``, of judged pairs.

    ``response_A`` becomes ALPHA's answer and ``response_B`` BETA's: both were written by one model. The reference is
    the label, which the answer key made; its provenance is ``answer_key``, and no person stands behind it. A judge is
    a model, together with its prompt (judge_name) where one model judged by several.

    Parameters
    ----------
    path
        A file, or a folder with files ``*.jsonl``, or with the folder ``outputs`` of such files: one a judge.
    run
        The name of the run to make.

    Returns
    -------
    tuple
        The path of the parameters, and notes: what was read, what was left out, and what was written.

    Raises
    ------
    DataError
        As :func:`judgelab.study.sources.match_imports.gather`, and if one pair_id has two texts or labels.
    """
    gathered = gather(path, PATTERNS, _judged, unit=("judged pair", "judged pairs"))
    items = _items(gathered, path)
    names = _judge_names(gathered)
    rows = _once(gathered, names)
    records = [record for name, row in rows for record in _records(name, row)]
    models = sorted({row["response_model"] for row in items.values() if row["response_model"]})
    study = FullStudy(
        kind="judgebench",
        title="JudgeBench: recorded judges against the answer key",
        question="Which judge prefers the answer that is right?",
        sampling_rule="The pairs in the files that were imported; none was left out for what was decided about it.",
        rubric="judgebench-correctness",
        description="The answer is right: its final result is that of the answer key, however it is written.",
        systems=SYSTEMS,
        items=[_item(row) for row in items.values()],
        records=records,
        judges={name: f"JudgeBench, prompt {row['judge_name']}" for name, row in rows},
        labels=[_label(row) for row in items.values()],
        provenance="answer_key",
        head=(
            "The reference is an answer key, and no people's labels: minimum_reviewer_agreement is 0.",
            "ALPHA is response_A and BETA response_B, two answers of one model.",
        ),
    )
    missing = Counter(record["reason"] for record in records if record["verdict"] is None)
    single = Counter(name for name, row in rows if len(row["judgments"]) == 1)
    of = f" of {', '.join(models)}" if models else ""
    notes = [
        f"read: {len(records)} verdicts of {counted(len(study.judges), 'judge')} on {counted(len(items), 'pair')} of "
        f"answers{of}, from {counted(len(gathered.files), 'file')}",
        *(f"no verdict: {count} of {len(records)} ({reason})" for reason, count in missing.items()),
        *(f"one order only: {counted(count, 'pair')} of {name}" for name, count in single.items()),
        *left_out_notes(gathered),
        "the reference is the answer key (provenance answer_key): agreement is with what is right, not with people",
        "ALPHA is response_A and BETA is response_B, both by one model: stage 09 ranks two places, not two systems",
    ]
    return write_full_study(study, run, notes)


def _judged(entry: Entry) -> list[dict[str, Any]] | str:
    """One line, checked."""
    values = entry.values
    pair_id = entry.text("pair_id", needed=True)
    problem = item_id_problem(pair_id)
    if problem:
        raise ValueError(f"pair_id {problem}")
    for key in TEXTS:
        if not isinstance(values.get(key), str) or not values[key].strip():
            raise ValueError(f"{key} is {values.get(key)!r:.60}; allowed is text")
    if values.get("label") not in LABELS:
        raise ValueError(f"label is {values.get('label')!r:.60}; allowed are {', '.join(LABELS)}")
    row = {key: values[key] for key in (*TEXTS, "label")} | {"pair_id": pair_id, "entry": entry}
    row |= {key: entry.text(key) for key in ("source", "response_model", "judge_name", "original_id")}
    judgments = values.get("judgments")
    if judgments is None or judgments == []:
        return UNJUDGED
    if not isinstance(judgments, list) or len(judgments) > len(ORDERS):
        raise ValueError("judgments is no list of one or two judgments (of the order A, B, and of the order B, A)")
    row["judgments"] = [_judgment(one, number) for number, one in enumerate(judgments, start=1)]
    model = next((one["model"] for one in row["judgments"] if one["model"]), "")
    named = MODEL.search(entry.path.stem)
    row["model"] = model or (named.group(1) if named else "")
    if not row["model"] and not row["judge_name"]:
        raise ValueError("neither judge_name nor judge_model says who judged")
    return [row]


def _judgment(given: Any, number: int) -> dict[str, Any]:
    """Letter by place, reason, reply and model of one judgment."""
    if given is None:
        return {"verdict": None, "reason": "call_failed", "reply": None, "model": ""}
    if not isinstance(given, dict) or "decision" not in given:
        raise ValueError(f"judgment {number} is no object with a decision")
    decision, said = given["decision"], given.get("judgment")
    said = said if isinstance(said, dict) else {}
    reply = said.get("response")
    model = Entry(said, Path(), 0).text("judge_model")
    found = {"reply": reply if isinstance(reply, str) else None, "model": model}
    if decision is None:
        return found | {"verdict": None, "reason": "no_verdict_in_source"}
    text = "".join(decision.split()) if isinstance(decision, str) else None
    if text is None or not DECISION.fullmatch(text):
        raise ValueError(f"decision {number} is {decision!r:.60}; allowed are {', '.join(DECISIONS)}, and null")
    letter = DECISIONS.get(re.sub(r"([<>=])\1+", r"\1", text))
    return found | {"verdict": letter, "reason": None if letter else "unreadable_decision"}


def _items(gathered: Gathered, path: Path) -> dict[str, dict[str, Any]]:
    """The pairs by their id; the same id with another text or label is refused."""
    items: dict[str, dict[str, Any]] = {}
    other = []
    for row in gathered.rows:
        known = items.setdefault(row["pair_id"], row)
        different = [key for key in (*TEXTS, "label") if known[key] != row[key]]
        if different:
            here, there = (f"{at(one['entry'].path)} {one['entry'].number}" for one in (row, known))
            other.append(f"{here}: {', '.join(different)} of {row['pair_id']} differs from {there}")
    if other:
        more = [f"and {len(other) - 5} more"] if len(other) > 5 else []
        head = f"{at(path)}: {len(other)} of {len(gathered.rows)} pairs are others than before; nothing was written"
        raise DataError("\n  ".join([head, *other[:5], *more]))
    return items


def _judge_names(gathered: Gathered) -> dict[tuple[str, str], str]:
    """The name of each model and prompt: the model's, with the prompt where it judged by several."""
    asked = dict.fromkeys((row["model"], row["judge_name"]) for row in gathered.rows)
    several = {model for model, count in Counter(model for model, _ in asked).items() if count > 1}
    raw = {
        key: (model if model and model not in several else f"{model}-{prompt}".strip("-"))
        for key, (model, prompt) in ((key, key) for key in asked)
    }
    plain = plain_names(raw.values(), taken=("always-first", "longest", "coin"))
    return {key: plain[name] for key, name in raw.items()}


def _once(gathered: Gathered, names: dict[tuple[str, str], str]) -> list[tuple[str, dict[str, Any]]]:
    """Each judge's first judgment of a pair; later ones are left out and counted."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for row in gathered.rows:
        name = names[row["model"], row["judge_name"]]
        if (name, row["pair_id"]) in seen:
            gathered.left_out[AGAIN] += 1
            continue
        seen.add((name, row["pair_id"]))
        kept.append((name, row))
    return kept


def _item(row: dict[str, Any]) -> dict[str, Any]:
    item = {
        "item_id": row["pair_id"],
        "category": row["source"],
        "task": row["question"],
        "reference_context": "",
        "answers": {SYSTEMS[0]: row["response_A"], SYSTEMS[1]: row["response_B"]},
    }
    return item | {key: row[key] for key in ("original_id", "response_model") if row[key]}


def _label(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "item_id": row["pair_id"],
        "reviewer_id": "answer_key",
        "system_x": SYSTEMS[0],
        "system_y": SYSTEMS[1],
        "preference": LABELS[row["label"]],
        "is_adjudicated": "true",  # a key is no reviewer, whose agreement with others could be measured
    }


def _records(name: str, row: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        pairwise_record(name, row["pair_id"], pass_, (shown[0], shown[1]), one["verdict"], one["reason"])
        | {"reply": one["reply"]}
        for (pass_, shown), one in zip(ORDERS, row["judgments"], strict=False)
    ]
