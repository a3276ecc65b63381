"""What a run has found out: the ledger's calls as one table of verdicts, and the protocol's evidence files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.judging.entries import KEY_COLUMNS, key_digest
from judgelab.judging.judges.logprobs import expected_score, winner_margin
from judgelab.judging.ledger import Ledger
from judgelab.judging.listwise import listwise_plans
from judgelab.judging.passes import PASSES, PassPlan, PlannedCall, in_order, planned_calls
from judgelab.judging.probes import probe_plans
from judgelab.judging.repairs import plain_logprobs, repair_plans
from judgelab.judging.replies import contract_for
from judgelab.judging.transformations import words_added
from judgelab.judging.wording import PLAIN
from judgelab.judging.work import passes_of
from judgelab.study.protocol import Study
from judgelab.study.run import Run
from judgelab.study.tables import write_jsonl

__all__ = ["export_records", "repair_verdicts", "settled_calls", "verdicts", "verdicts_of", "write_evidence"]

# what the ledger says of a call, in the table's order
_SHOWN = (
    *("attempts", "latency_seconds", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "cost"),
    *("model", "frame_sha256", "reply"),
)
_STORED = ("status", "reason", "verdict", *_SHOWN)
_NOT_EVIDENCE = {"status", "reason", "reply", "latency_seconds", "cost", "tokens_cached", "tokens_reasoning", "order"}


def verdicts(run: Run, *, reasoning: bool = False, margins: bool = False) -> pd.DataFrame:
    """One row per planned call of every judge, with its verdict or the reason why there is none.

    Columns: ``judge``, ``strategy``, ``pass``, ``item_id``, ``category``, ``system_x``, ``system_y``, ``system``
    (direct: the scored one), ``first`` and ``second`` (pairwise: the system shown first and second), ``verdict``
    (``A``, ``B``, ``TIE``), ``confidence``, ``total`` (direct: weighted total on the protocol's scale),
    ``score_<criterion>``, ``critical_error``, ``reason_codes``, ``order`` (place in the seeded order of the pass, in
    which the calls are asked), ``status`` (``verdict``, ``unusable``, ``failed``,
    ``missing``), ``reason``, ``attempts``, ``latency_seconds``, ``tokens_in``, ``tokens_out``, ``tokens_cached``,
    ``tokens_reasoning``, ``cost`` (of all attempts, in the currency of the judge's prices), ``model``,
    ``frame_sha256``, ``reply``; with ``reasoning=True`` also ``reasoning``, what the model thought before its answer;
    with ``margins=True`` also ``logprob_margin``, by how much the winner's token is likelier than the next one
    (log-probability; missing where the endpoint gave no alternatives).
    """
    extra = ("reasoning",) * reasoning + ("logprobs",) * margins
    rows = [row for _, row in _found(run, passes_of(run.study, PASSES), extra)]
    table = _typed(rows)
    if margins:
        table["logprob_margin"] = [
            winner_margin(json.loads(text)) if isinstance(text, str) else float("nan") for text in table.pop("logprobs")
        ]
    order = ["judge", "strategy", "pass", "item_id", "system_x", "system_y", "system", "first"]
    table["_judge"] = table["judge"].map({judge.name: place for place, judge in enumerate(run.study.judges)})
    return table.sort_values(["_judge", *order[1:]], kind="stable").drop(columns="_judge").reset_index(drop=True)


def verdicts_of(run: Run, plans: Sequence[PassPlan]) -> pd.DataFrame:
    """One row per planned call of some passes, such as those of probes and repairs, in the order of the plans.

    The columns of :func:`verdicts`, and ``repeat``, ``split``, ``probe``, ``manipulated`` (the system whose answer the
    probe changed, or empty), ``words_added`` to it, ``logprobs`` (JSON text, where the endpoint gave any), and what
    they say of direct scores: ``expected_total`` and ``outside_mass`` (mean over the criteria), see
    :func:`judgelab.judging.judges.logprobs.expected_score`. ``pass`` is the ledger's, as ``padding/original``.
    """
    answers = {item.item_id: item.answers for item in run.each_item()}
    rows = []
    for planned, row in _found(run, plans, ("logprobs",)):
        call = planned.call
        before, after = (texts.get(call.manipulated, "") for texts in (answers[call.item.item_id], call.item.answers))
        more = {"repeat": call.repeat, "split": call.item.split, "probe": call.probe, "manipulated": call.manipulated}
        expected, outside = _expected(run.study, row)
        more |= {"expected_total": expected, "outside_mass": outside}
        rows.append(row | more | {"words_added": words_added(before, after)})
    return _typed(rows)


def repair_verdicts(run: Run) -> pd.DataFrame:
    """The calls of all repairs, see :func:`verdicts_of`.

    Plain direct calls whose endpoint gave log-probabilities stand as those of the repair that reads them.
    """
    found = [verdicts_of(run, repair_plans(run)), *_plain_logprob_verdicts(run)]
    asked = [table for table in found if len(table)]
    return pd.concat(asked, ignore_index=True) if asked else found[0]


def _plain_logprob_verdicts(run: Run) -> Iterator[pd.DataFrame]:
    """Plain direct calls with log-probabilities, as those of each repair that reads them."""
    for repair, plans in plain_logprobs(run.study).items():
        yield verdicts_of(run, plans).assign(**{"pass": f"{repair}/direct"})


def _expected(study: Study, row: dict[str, Any]) -> tuple[float, float]:
    """Weighted mean of the expected scores of a direct call, and the mean mass outside the scale."""
    scale, text = study.direct_scale, row.get("logprobs")
    if row["strategy"] != "direct" or row["status"] != "verdict" or not text or scale.minimum < 0 or scale.maximum > 9:
        return float("nan"), float("nan")
    kept = json.loads(text)
    found = {name: expected_score(kept, name, scale.minimum, scale.maximum) for name in scale.weights}
    total = sum(scale.weights[name] * score for name, (score, _) in found.items()) / sum(scale.weights.values())
    return total, sum(outside for _, outside in found.values()) / len(found)


def _found(run: Run, plans: Sequence[PassPlan], extra: tuple[str, ...]) -> Iterator[tuple[PlannedCall, dict[str, Any]]]:
    """Every planned call of some passes, with its row."""
    for planned, found, order in settled_calls(run, plans, extra):
        yield planned, _row(run, planned, found, order, extra)


def settled_calls(
    run: Run, plans: Sequence[PassPlan], extra: tuple[str, ...] = ()
) -> Iterator[tuple[PlannedCall, dict[str, Any] | None, int]]:
    """Every planned call of some passes, what the ledger says of it (None: not asked), and its place in the pass.

    What the ledger says are its columns ``status``, ``reason``, ``verdict`` (JSON text), ``attempts``, tokens, cost,
    ``model``, ``reply`` and those of ``extra``.
    """
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        calls = ledger.calls()
    done = dict(zip(_keys(calls), _records(calls[[*_STORED, *extra]]), strict=True))
    items = run.items()
    for plan in plans:
        asked = [call for item in items if item.split == plan.split for call in plan.calls(item)]
        for order, planned in enumerate(planned_calls(run.study, plan.judge, in_order(run.study, asked))):
            yield planned, done.get(planned.key.digest()), order


def _typed(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Rows as a table whose counts are whole numbers."""
    table = pd.DataFrame(rows, columns=None if rows else ["judge", "strategy", "pass", "item_id", "status"])
    for column in ("attempts", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning"):
        table[column] = table.get(column, pd.Series(dtype=object)).astype("Int64")
    table["cost"] = table.get("cost", pd.Series(dtype=object)).astype("float64")
    return table


def write_evidence(run: Run, table: pd.DataFrame, folder: Path | None = None) -> None:
    """Write what was answered, a file a pass, and ``invalid_outputs.jsonl``: every attempt without a verdict.

    They go to the run's folder, or to another.
    """
    folder = folder or run.folder
    for pass_name, file in (
        ("direct", "direct_scores.jsonl"),
        ("pairwise_original", "pairwise_original.jsonl"),
        ("pairwise_swapped", "pairwise_swapped.jsonl"),
    ):
        strategy, pass_ = PASSES[pass_name]
        usable = table[(table["strategy"] == strategy) & (table["pass"] == pass_) & (table["status"] == "verdict")]
        write_jsonl((_evidence(record) for record in _records(usable)), folder / file)
    with Ledger(run.path("ledger.sqlite"), read_only=True) as ledger:
        attempts = ledger.attempts()
    bad = attempts[attempts["outcome"] != "verdict"]
    names = [
        "judge",
        "item_id",
        "strategy",
        "pass",
        "presentation",
        "number",
        "outcome",
        "reason",
        "detail",
        "reply",
    ]
    invalid = ({name: _plain(record[name]) for name in names} for record in _records(bad[names]))
    write_jsonl(
        ({**record, "presentation": json.loads(record["presentation"])} for record in invalid),
        folder / "invalid_outputs.jsonl",
    )


def export_records(run: Run, judge_name: str) -> list[dict[str, Any]]:
    """A judge's calls as records that a judge of kind ``recorded`` can read, probes, repairs and rankings too."""
    own = [plan for plan in (*probe_plans(run), *repair_plans(run)) if plan.judge.name == judge_name]
    table, more = verdicts(run), [verdicts_of(run, own), *_plain_logprob_verdicts(run)]
    shapes = {(plan.strategy, plan.pass_): plan.shape for plan in own}
    records = []
    rows = (row for each in (table, *more) for row in _records(each) if row["judge"] == judge_name)
    for row in rows:
        contract = contract_for(run.study, row["strategy"], wording=shapes.get((row["strategy"], row["pass"]), PLAIN))
        direct = row["strategy"] == "direct"
        place = {"system": row["system"]} if direct else {"first": row["first"], "second": row["second"]}
        record = {
            "record": judge_name,
            "item_id": row["item_id"],
            "strategy": row["strategy"],
            "pass": row["pass"],
            **place,
            **{name: _plain(row[name]) for name in ("reply", "model", "tokens_in", "tokens_out")},
        }
        if row.get("repeat"):
            record["repeat"] = int(row["repeat"])
        if isinstance(row.get("logprobs"), str):
            record["logprobs"] = json.loads(row["logprobs"])
        if contract.read(record["reply"]).reason != _plain(row["reason"]):
            # what the raw reply does not say, because its source had read it already
            record |= _parsed(row) if row["status"] == "verdict" else {"reason": row["reason"]}
        records.append(record)
    return [*records, *_listwise_records(run, judge_name)]


def _listwise_records(run: Run, judge_name: str) -> Iterator[dict[str, Any]]:
    """The listwise calls of a judge as records; those that were not made are left out."""
    plans = [plan for plan in listwise_plans(run.study) if plan.judge.name == judge_name]
    contract = contract_for(run.study, "listwise")
    for planned, found, _ in settled_calls(run, plans):
        if found is None or found["status"] == "failed":
            continue
        call, reason = planned.call, _plain(found["reason"])
        record = {
            "record": judge_name,
            "item_id": call.item.item_id,
            "strategy": "listwise",
            "pass": call.pass_,
            "shown": list(call.presentation),
            **{name: _plain(found[name]) for name in ("reply", "model")},
        }
        counts = {name: _plain(found[name]) for name in ("tokens_in", "tokens_out")}
        record |= {name: None if value is None else int(value) for name, value in counts.items()}
        if contract.read(record["reply"]).reason != reason:  # its source had read it already
            record |= {"verdict": json.loads(found["verdict"])} if found["status"] == "verdict" else {"reason": reason}
        yield record


def _parsed(row: dict[str, Any]) -> dict[str, Any]:
    """The verdict of a call without a raw reply, as a record holds it."""
    if row["strategy"] == "pairwise":
        return {"verdict": row["verdict"]}
    scores = {name.removeprefix("score_"): _plain(value) for name, value in row.items() if name.startswith("score_")}
    return {"verdict": {"scores": {name: int(value) for name, value in scores.items() if value is not None}}}


def _keys(calls: pd.DataFrame) -> list[bytes]:
    return [key_digest(tuple(values)) for values in calls[list(KEY_COLUMNS)].itertuples(index=False)]


def _row(
    run: Run, planned: PlannedCall, found: dict[str, Any] | None, order: int, extra: tuple[str, ...]
) -> dict[str, Any]:
    """One planned call with what the ledger says of it."""
    call, study = planned.call, run.study
    direct = call.strategy == "direct"
    pair = (
        study.system_names
        if len(study.system_names) == 2 or direct
        else tuple(name for name in study.system_names if name in call.presentation)
    )
    row: dict[str, Any] = {
        "judge": planned.key.judge,
        "strategy": call.strategy,
        "pass": call.pass_,
        "item_id": call.item.item_id,
        "category": call.item.category,
        "system_x": pair[0] if len(pair) == 2 else None,
        "system_y": pair[1] if len(pair) == 2 else None,
        "system": call.presentation[0] if direct else None,
        "first": None if direct else call.presentation[0],
        "second": None if direct else call.presentation[1],
    }
    known = _plain(found["verdict"]) if found else None
    verdict = json.loads(known) if known else {}
    weights = study.direct_scale.weights
    row |= {
        "verdict": verdict.get("winner"),
        "confidence": verdict.get("confidence"),
        "total": _total(verdict, weights),
    }
    row |= {f"score_{name}": verdict.get(name) for name in weights}
    row |= {
        "critical_error": verdict.get("critical_error"),
        "reason_codes": json.dumps(verdict.get("reason_codes") or []),
        "order": order,
    }
    names = (*_SHOWN, *extra)
    if found is None:
        return row | {"status": "missing", "reason": "not_judged"} | dict.fromkeys(names)
    return row | {name: _plain(found[name]) for name in ("status", "reason", *names)}


def _total(verdict: dict[str, Any], weights: dict[str, float]) -> float | None:
    """Weighted mean of the criterion scores."""
    if not all(isinstance(verdict.get(name), int) for name in weights):
        return None
    return sum(weights[name] * verdict[name] for name in weights) / sum(weights.values())


def _evidence(row: dict[str, Any]) -> dict[str, Any]:
    """One line of an evidence file: no empty fields."""
    plain = {name: _plain(value) for name, value in row.items() if name not in _NOT_EVIDENCE}
    plain["reason_codes"] = json.loads(plain["reason_codes"])
    for name in plain:
        if name.startswith("score_") and plain[name] is not None:
            plain[name] = int(plain[name])  # a float only because a pairwise row has none
    return {name: value for name, value in plain.items() if value is not None}


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in record.items()} for record in table.to_dict("records")]


def _plain(value: Any) -> Any:
    """A pandas value as JSON can hold it."""
    if value is None or value is pd.NA or (isinstance(value, float) and value != value):
        return None
    return value.item() if hasattr(value, "item") else value
