"""The verdicts in one ``result.json`` of LLMBar as records, proved against its ``statistics.json``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judgelab.errors import DataError

__all__ = ["SCALE", "Evaluation", "records_of"]

SCALE = (0, 9)
SYSTEMS = {"1": "ALPHA", "2": "BETA"}
# key of the result -> pass, and the outputs in the order in which they were shown
ORDERS = {"swap = False": ("original", ("1", "2")), "swap = True": ("swapped", ("2", "1"))}
LETTER = re.compile(r"Output \(([ab])\)")
SCORE = re.compile(r"[0-9]+")


@dataclass(frozen=True)
class Evaluation:
    """One result file: whose verdicts, by which prompt, on which items (result by item id)."""

    judge: str
    prompt: str
    direct: bool
    where: str
    results: Mapping[str, Mapping[str, Any]]
    statistics: Mapping[str, Any]


def records_of(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Every verdict of one result file as a record that a judge of kind ``recorded`` reads.

    Raises
    ------
    DataError
        If a result has another form, a reply contradicts its winner, a score is off the scale, or the verdicts do
        not reproduce the counts of ``statistics.json``.
    """
    outcomes = {item_id: _outcome(result, evaluation) for item_id, result in evaluation.results.items()}
    if evaluation.direct:
        records = [record for item_id, outcome in outcomes.items() for record in _direct(item_id, outcome, evaluation)]
        winners = {item_id: _rating_winners(outcome) for item_id, outcome in outcomes.items()}
    else:
        records = [
            record for item_id, outcome in outcomes.items() for record in _pairwise(item_id, outcome, evaluation)
        ]
        winners = _mapped_back(records)
    _check_statistics(winners, evaluation)
    return records


def _outcome(result: Mapping[str, Any], evaluation: Evaluation) -> Mapping[str, Any]:
    """The last of a result's steps: the one that holds the verdict."""
    steps = result.get("results")
    needed = ("score_1", "score_2") if evaluation.direct else tuple(ORDERS)
    if not isinstance(steps, list) or not steps or not all(key in steps[-1] for key in needed):
        raise DataError(f"{evaluation.where}: a result without {' and '.join(needed)} in its last step")
    outcome: Mapping[str, Any] = steps[-1]
    return outcome


def _pairwise(item_id: str, outcome: Mapping[str, Any], evaluation: Evaluation) -> list[dict[str, Any]]:
    records = []
    for order, (pass_, shown_outputs) in ORDERS.items():
        step = outcome[order]
        winner, reply = step.get("winner"), _reply(step.get("completion"))
        if winner not in (*SYSTEMS, None):
            raise DataError(f"{evaluation.where}: {item_id}, {order}: winner is {winner!r}; allowed are '1', '2', null")
        verdict = None if winner is None else "AB"[shown_outputs.index(winner)]
        _check_letter(reply, verdict, f"{evaluation.where}: {item_id}, {order}")
        records.append(
            {
                "record": evaluation.judge,
                "item_id": item_id,
                "strategy": "pairwise",
                "pass": pass_,
                "first": SYSTEMS[shown_outputs[0]],
                "second": SYSTEMS[shown_outputs[1]],
                "reply": reply,
                "verdict": verdict,
                "reason": None if verdict else "no_verdict_in_source",
            }
        )
    return records


def _direct(item_id: str, outcome: Mapping[str, Any], evaluation: Evaluation) -> list[dict[str, Any]]:
    records = []
    for output, system in SYSTEMS.items():
        reply = _reply(outcome[f"score_{output}"])
        score = _score(reply)
        if score is not None and not SCALE[0] <= score <= SCALE[1]:
            raise DataError(
                f"{evaluation.where}: {item_id}, score_{output}: {score} is outside {SCALE[0]} to {SCALE[1]}"
            )
        records.append(
            {
                "record": evaluation.judge,
                "item_id": item_id,
                "strategy": "direct",
                "pass": "direct",
                "system": system,
                "reply": reply,
                "verdict": None if score is None else {"scores": {"overall": score}},
                "reason": None if score is not None else "unparsable_score",
            }
        )
    return records


def _reply(completion: Any) -> str | None:
    """The raw reply: the first part of a completion, or the completion itself."""
    first = completion[0] if isinstance(completion, list) and completion else completion
    return first if isinstance(first, str) else None


def _score(reply: str | None) -> int | None:
    text = (reply or "").strip()
    return int(text) if SCORE.fullmatch(text) else None


def _check_letter(reply: str | None, verdict: str | None, where: str) -> None:
    """A reply that is nothing but a letter must be the verdict: (a) is the output that was shown first."""
    letter = LETTER.fullmatch((reply or "").strip())
    if letter and letter.group(1).upper() != verdict:
        raise DataError(f"{where}: the reply is {reply!r}, but its winner makes it {verdict!r} by position")


def _mapped_back(records: list[dict[str, Any]]) -> dict[str, dict[str, str | None]]:
    """Winner by item and order, from the records alone: this is what the statistics are checked on."""
    orders = {pass_: order for order, (pass_, _) in ORDERS.items()}
    outputs = {system: output for output, system in SYSTEMS.items()}
    winners: dict[str, dict[str, str | None]] = {}
    for record in records:
        chosen = {"A": record["first"], "B": record["second"]}.get(record["verdict"])
        by_order = winners.setdefault(record["item_id"], {})
        by_order[orders[record["pass"]]] = outputs[chosen] if chosen else None
    return winners


def _rating_winners(outcome: Mapping[str, Any]) -> dict[str, str | None]:
    """Winners as the publication makes them of ratings: equal ones give the output that was shown last."""
    scores = [_score(_reply(outcome[f"score_{output}"])) for output in SYSTEMS]
    if scores[0] is None or scores[1] is None:
        return {order: (outcome.get(order) or {}).get("winner") for order in ORDERS}
    if scores[0] == scores[1]:
        return {order: shown_outputs[1] for order, (_, shown_outputs) in ORDERS.items()}
    better = "1" if scores[0] > scores[1] else "2"
    return dict.fromkeys(ORDERS, better)


def _check_statistics(winners: Mapping[str, Mapping[str, str | None]], evaluation: Evaluation) -> None:
    """Count again what the publication counted. Two missing winners are equal there."""
    rows = [
        (by_order["swap = False"], by_order["swap = True"], str(evaluation.results[item_id]["label"]))
        for item_id, by_order in winners.items()
    ]
    counts = {
        "correct_False": sum(plain == label for plain, _, label in rows),
        "correct_True": sum(swapped == label for _, swapped, label in rows),
        "correct_both": sum(plain == swapped == label for plain, swapped, label in rows),
        "equal": sum(plain == swapped for plain, swapped, _ in rows),
    }
    for name, count in counts.items():
        published = str(evaluation.statistics.get(name, "")).split("=")[0].strip()
        if published and published != f"{count} / {len(rows)}":
            raise DataError(
                f"{evaluation.where}: {name} counted again is {count} / {len(rows)}, statistics.json says {published}"
            )
