"""Stage 00: the answers that a study has made, by models through the runner and the ledger, or by recorded edits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from judgelab.judging.evidence import settled_calls
from judgelab.judging.judges.base import Call
from judgelab.judging.ladder import CannotDegrade, Edited, ladder, steps
from judgelab.judging.passes import PassPlan
from judgelab.judging.runner import run_passes
from judgelab.study.candidates import CANDIDATES, DraftRun, recipe, sealed, task_record
from judgelab.study.items import Item
from judgelab.study.protocol import Study
from judgelab.study.tables import write_jsonl

__all__ = ["edits_table", "generate", "generation_plans", "origins_table", "write_candidates"]

GENERATION = "generation"
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
Made = dict[tuple[str, str], dict[str, Any]]  # by item id and system


def generation_plans(study: Study) -> list[PassPlan]:
    """One pass for each model that writes answers: a call for each item, and for each of its completions.

    The ledger calls the model ``system:<name>``, a name that no judge can have.
    """
    families: dict[str, list[str]] = {}
    for name, system in study.systems.items():
        if system.generated is not None:
            base = name.rpartition(".")[0] if system.completion is not None else name
            families.setdefault(base, []).append(name)
    plans = []
    for base, names in families.items():
        made = study.systems[names[0]].generated
        assert made is not None
        model = made.model.model_copy(update={"name": f"system:{base}"})
        plans.append(PassPlan(model, GENERATION, GENERATION, GENERATION, _calls(study, names)))
    return plans


def _calls(study: Study, names: list[str]) -> Callable[[Item], list[Call]]:
    def calls(item: Item) -> list[Call]:
        return [
            Call(GENERATION, GENERATION, item, (name,), (study.systems[name].completion or 1) - 1) for name in names
        ]

    return calls


async def generate(run: DraftRun) -> pd.DataFrame:
    """Ask every model of the protocol for its answers; a call that the ledger holds is not made again.

    Returns
    -------
    pandas.DataFrame
        See :func:`judgelab.judging.runner.run_passes`; no rows where nothing is generated.

    Raises
    ------
    JudgeError
        If a model could not be asked at all, or has reached a cap. What was written is in the ledger.
    """
    return await run_passes(run, generation_plans(run.study))


def write_candidates(run: DraftRun) -> pd.DataFrame:
    """Write every item with all its answers to ``candidates.jsonl``: given, generated and degraded ones.

    An answer that could not be made is missing there, so that stage 01 leaves its item out and says so.

    Returns
    -------
    pandas.DataFrame
        One row per item and system: item_id, category, system, origin (``given``, ``generated``, ``degraded``), words
        (NaN without an answer), reason (why there is none), model, finish_reason, tokens_out, edits (how many), answer.
    """
    study, digest = run.study, recipe(run.study)
    rows: list[dict[str, Any]] = []
    records = []
    for item, answers, about in _completed(run):
        rows += [_row(study, item, name, answers.get(name), about[name]) for name in study.systems]
        every = {name: answers[name] for name in study.systems if name in answers}
        made = {name: told for name, told in about.items() if told}
        records.append(sealed(task_record(study, item) | {"answers": every, "made": made}, digest))
    if study.makes_answers:
        write_jsonl(records, run.path(CANDIDATES))
    return pd.DataFrame(rows)


def _completed(run: DraftRun) -> Iterator[tuple[Item, dict[str, str], dict[str, dict[str, Any]]]]:
    """Every item with its answers by system, and what is told of each system: how it was made, or why it was not."""
    study, made = run.study, _generated(run)
    sentences = {
        item.item_id: [sentence for text in item.answers.values() for sentence in steps(text)]
        for item in (run.items() if any(system.degraded for system in study.systems.values()) else ())
    }
    for item in run.items():
        answers = dict(item.answers)
        about = {name: dict(made.get((item.item_id, name), {})) for name in study.systems}
        answers |= {name: each.pop("answer") for name, each in about.items() if "answer" in each}
        strangers = [sentence for other, own in sentences.items() if other != item.item_id for sentence in own]
        for name, told in _degraded(study, item, answers, strangers):
            about[name] = told
            if "answer" in told:
                answers[name] = told.pop("answer")
        yield item, answers, about


def _row(study: Study, item: Item, name: str, answer: str | None, told: Mapping[str, Any]) -> dict[str, Any]:
    system = study.systems[name]
    origin = GENERATION if system.generated else "degraded" if system.degraded else "given"
    return {
        "item_id": item.item_id,
        "category": item.category,
        "system": name,
        "origin": "generated" if origin == GENERATION else origin,
        "words": float("nan") if answer is None else len(answer.split()),
        "reason": told.get("reason", "" if answer is not None else "not_judged"),
        "model": told.get("model", ""),
        "finish_reason": told.get("finish_reason", ""),
        "tokens_out": told.get("tokens_out", float("nan")),
        "edits": len(told.get("edits", ())),
        "answer": answer,
    }


def _generated(run: DraftRun) -> Made:
    """What the ledger says of each answer that a model wrote, or why there is none."""
    plans = generation_plans(run.study)
    if not plans:
        return {}
    made: Made = {}
    for planned, found, _ in settled_calls(run, plans, ("finish_reason",)):
        found = found or {}
        told: dict[str, Any] = {
            "prompt_sha256": planned.key.prompt_sha256,
            "config_sha256": planned.key.config_sha256,
            "completion": planned.call.repeat + 1,
        }
        told |= {
            name: value
            for name in ("model", "finish_reason", "tokens_in", "tokens_out")
            if (value := found.get(name)) is not None and value == value
        }
        told = {name: int(value) if name.startswith("tokens") else value for name, value in told.items()}
        if isinstance(found.get("verdict"), str):
            # half a surrogate pair, which a reply may hold, is no character and could not be written as UTF-8
            told["answer"] = _HALF_A_PAIR.sub("\ufffd", json.loads(found["verdict"])["answer"])
        else:
            told["reason"] = found.get("reason") or "not_judged"
        made[planned.call.item.item_id, planned.call.presentation[0]] = told
    return made


def _degraded(
    study: Study, item: Item, answers: Mapping[str, str], strangers: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each degraded system's answer with the record of its edits, or why it could not be made."""
    for root, names in _ladders(study):
        if root not in answers:
            for name in names:
                yield name, {"reason": "missing_answer", "detail": f"{root} has no answer to degrade"}
            continue
        kinds = [degraded.edits for name in names if (degraded := study.systems[name].degraded)]
        try:
            rungs = ladder(
                answers[root],
                kinds,
                seed=study.random_seed,
                item_id=item.item_id,
                strangers=strangers,
                context=item.reference_context,
            )
        except CannotDegrade as error:
            for name in names:
                yield name, {"reason": "cannot_degrade", "detail": str(error)}
            continue
        for above, name, edits in zip([root, *names], names, rungs, strict=False):
            yield name, {"answer": edits[-1].text, "of": above, "edits": [_edit(each) for each in edits]}


def _edit(edit: Edited) -> dict[str, Any]:
    return {"kind": edit.kind, "place": edit.place, "before": edit.before, "after": edit.after}


def _ladders(study: Study) -> Iterator[tuple[str, list[str]]]:
    """Each ladder of a study: the system at its top, and those below it from the best to the worst."""
    below = {system.degraded.of: name for name, system in study.systems.items() if system.degraded}
    for root in study.systems:
        if study.systems[root].degraded is None and root in below:
            names = [below[root]]
            while names[-1] in below:
                names.append(below[names[-1]])
            yield root, names


def origins_table(study: Study, candidates: pd.DataFrame) -> pd.DataFrame:
    """One row a system: how its answers were made, how many there are, and how long.

    Parameters
    ----------
    study
        The protocol.
    candidates
        See :func:`write_candidates`.
    """
    rows = []
    for name, own in candidates.groupby("system", sort=False):
        system = study.systems[str(name)]
        words = own["words"].dropna()
        rows.append(
            {
                "system": name,
                "family": system.family or "",
                "how it was made": _how(system),
                "answers": int(own["answer"].notna().sum()),
                "items": len(own),
                "median words": words.median() if len(words) else float("nan"),
                "words": f"{words.min():.0f} to {words.max():.0f}" if len(words) else "",
                "cut off": int((own["finish_reason"] == "length").sum()),
            }
        )
    return pd.DataFrame(rows)


def _how(system: Any) -> str:
    if system.degraded is not None:
        return f"{system.degraded.of} with {', '.join(system.degraded.edits)}"
    if system.generated is None:
        return "given in the file of items"
    model = system.generated.model
    heat = "" if model.temperature is None else f", temperature {model.temperature:g}"
    draw = f", draw {system.completion}" if system.completion else ""
    return f"{model.kind}: {model.model}{heat}{draw}"


def edits_table(run: DraftRun) -> pd.DataFrame:
    """Every edit of every degraded answer: item_id, system, kind, place, before, after; in the order of the ladder."""
    order = [name for _, names in _ladders(run.study) for name in names]
    rows = [
        {"item_id": item.item_id, "system": name, **edit}
        for item, _, about in _completed(run)
        for name in order
        for edit in about[name].get("edits", ())
    ]
    return pd.DataFrame(rows, columns=["item_id", "system", "kind", "place", "before", "after"])
