"""From the evidence to what a judge may be used for, by thresholds that the protocol fixed beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["EVIDENCE_COLUMNS", "RECOMMENDATION_COLUMNS", "Decision", "decide"]

NAN = float("nan")
EVIDENCE_COLUMNS = (
    "judge",
    "strategy",
    "pass",
    "criterion",
    "requirement",
    "measure",
    "estimate",
    "ci_low",
    "ci_high",
    "threshold",
    "n_used",
    "outcome",
    "note",
)
RECOMMENDATION_COLUMNS = (
    "judge",
    "recommendation",
    "because",
    "direct_supported",
    "pairwise_supported",
    "intended_use",
    "provenance",
)


@dataclass(frozen=True)
class Decision:
    """The evidence by requirement, and one recommendation a judge."""

    evidence: pd.DataFrame
    recommendations: pd.DataFrame


@dataclass(frozen=True)
class _Tables:
    agreement: pd.DataFrame
    position: pd.DataFrame
    unusable: pd.DataFrame
    reviewers: pd.DataFrame
    thresholds: Mapping[str, Any]
    controls: Sequence[str]


def decide(
    agreement: pd.DataFrame,
    position: pd.DataFrame,
    unusable: pd.DataFrame,
    reviewers: pd.DataFrame,
    *,
    thresholds: Mapping[str, Any],
    controls: Sequence[str],
    provenance: str,
) -> Decision:
    """Hold every judge against the protocol's requirements and recommend a use.

    Outcome of a requirement: ``met`` if the whole interval lies on the right side of the threshold (the threshold
    itself is right), ``not_met`` if the whole interval lies on the wrong side, ``undecided`` if it holds both or there
    is an estimate without an interval, ``no_data`` if there is no estimate. ``minimum_items`` is a count and
    ``beats_controls`` takes the best control's point estimate; their requirement says so. A threshold that demands
    nothing (a minimum share of 0, a maximum of 1, a kappa of −1, a deviation of 0.5) is met without data.

    ================================  ==================================================================
    requirement (of)                  evidence
    ================================  ==================================================================
    minimum_items (both)              items behind the strategy's exact agreement
    minimum_agreement (both)          exact_agreement: direct; pairwise in both passes, or in the
                                      original one where only that was planned
    minimum_kappa (both)              cohen_kappa, same pass
    maximum_unusable_rate (both)      unusable_rate; pairwise: the worse pass
    minimum_swap_consistency          swap_consistency (pairwise)
    maximum_first_position_deviation  first_position_rate within 0.5 ± threshold (pairwise, both passes)
    minimum_coverage                  coverage of the conservative rule (pairwise)
    minimum_reviewer_agreement        pooled agreement of reviewers' initial labels (study)
    beats_controls (both)             exact_agreement above the best control's, whatever its strategy
    ================================  ==================================================================

    A strategy is supported only if every requirement of it is met. Then, first row that applies:

    ==============================================  ================  =====================================
    state                                           intended use      recommendation
    ==============================================  ================  =====================================
    labels not of human provenance                  any               human_review
    nothing supported                               any               human_review
    only direct supported                           any               direct (totals rank answers, too)
    only pairwise supported                         relative_ranking  pairwise
    only pairwise supported                         absolute_scores,  human_review (pairwise gives no
                                                    both              scores)
    both supported                                  absolute_scores   direct
    both, direct meaningfully better                any               direct
    both, otherwise                                 relative_ranking  pairwise
    both, otherwise                                 both              hybrid
    ==============================================  ================  =====================================

    Direct is meaningfully better if the whole interval of pairwise minus direct agreement lies below
    −meaningful_difference; pairwise if it lies above.

    Parameters
    ----------
    agreement, position, unusable, reviewers : DataFrame
        Rows of agreement_table, position_table, unusable_table and reviewer_table.
    thresholds : mapping
        The protocol's decision thresholds by name.
    controls : sequence of str
        Judges that are controls: they are compared with, never recommended.
    provenance : str
        ``human``, ``simulated``, ``answer_key`` or ``none``: where the labels come from. Only ``human`` supports a use.

    Returns
    -------
    Decision
        ``evidence`` (:data:`EVIDENCE_COLUMNS`, one row per judge, strategy and requirement) and ``recommendations``
        (:data:`RECOMMENDATION_COLUMNS`; ``because`` lists the requirements that are not met).

    Raises
    ------
    KeyError
        If a threshold is missing.
    """
    tables = _Tables(agreement, position, unusable, reviewers, thresholds, controls)
    judges = [str(name) for name in pd.unique(pd.concat([agreement["judge"], unusable["judge"]])) if str(name)]
    judged = [name for name in judges if name not in set(controls)]
    evidence = pd.DataFrame(
        [line for judge in judged for line in _judge_evidence(tables, judge)], columns=list(EVIDENCE_COLUMNS)
    )
    for column in ("estimate", "ci_low", "ci_high", "threshold"):
        evidence[column] = evidence[column].astype(np.float64)
    evidence["n_used"] = evidence["n_used"].astype("Int64")
    lines = [_recommendation(tables, judge, evidence, provenance) for judge in judged]
    return Decision(evidence, pd.DataFrame(lines, columns=list(RECOMMENDATION_COLUMNS)))


def _pick(table: pd.DataFrame, measure: str, judge: str, pass_: str, slice_: str = "all") -> dict[str, Any] | None:
    """The one row of a measure in a pass; None if there is none."""
    same = (table["measure"] == measure) & (table["judge"] == judge) & (table["pass"] == pass_)
    found = table[same & (table["slice"] == slice_)]
    return None if found.empty else {str(key): value for key, value in found.iloc[0].items()}


def _pairwise_pass(tables: _Tables, judge: str) -> str:
    """Both presentations where they were planned, else the original one."""
    found = _pick(tables.agreement, "exact_agreement", judge, "both")
    return "both" if found else "original"


def _judge_evidence(tables: _Tables, judge: str) -> Iterator[dict[str, Any]]:
    for strategy, pass_ in (("direct", "direct"), ("pairwise", _pairwise_pass(tables, judge))):
        if _pick(tables.agreement, "exact_agreement", judge, pass_) is None:
            continue
        for line in _strategy_evidence(tables, judge, pass_):
            yield {"judge": judge, "strategy": strategy} | line


def _strategy_evidence(tables: _Tables, judge: str, pass_: str) -> Iterator[dict[str, Any]]:
    limits = tables.thresholds
    exact = _pick(tables.agreement, "exact_agreement", judge, pass_)
    yield _items_line(exact, int(limits["minimum_items"]), pass_)
    yield _minimum("minimum_agreement", exact, limits, "exact_agreement", pass_)
    kappa = _pick(tables.agreement, "cohen_kappa", judge, pass_)
    yield _minimum("minimum_kappa", kappa, limits, "cohen_kappa", pass_, nothing=-1.0)
    yield _unusable_line(tables, judge, pass_)
    if pass_ != "direct":
        swap = _pick(tables.position, "swap_consistency", judge, "both")
        yield _minimum("minimum_swap_consistency", swap, limits, "swap_consistency", "both")
        yield _position_line(tables, judge)
        coverage = _pick(tables.position, "coverage", judge, "aggregated")
        yield _minimum("minimum_coverage", coverage, limits, "coverage", "aggregated")
    people = _pick(tables.reviewers, "exact_agreement", "", "")
    yield _minimum("minimum_reviewer_agreement", people, limits, "exact_agreement", "")
    yield _controls_line(tables, exact, pass_)


def _line(
    criterion: str,
    requirement: str,
    found: dict[str, Any] | None,
    measure: str,
    pass_: str,
    threshold: float,
    outcome: str,
    note: str = "",
) -> dict[str, Any]:
    values = found or {"estimate": NAN, "ci_low": NAN, "ci_high": NAN, "n_used": 0, "note": "not measured"}
    return {
        "pass": pass_,
        "criterion": criterion,
        "requirement": requirement,
        "measure": measure,
        **{key: values[key] for key in ("estimate", "ci_low", "ci_high", "n_used")},
        "threshold": threshold,
        "outcome": outcome,
        "note": note or str(values["note"]),
    }


def _inside(found: dict[str, Any] | None, low: float, high: float) -> str:
    """Outcome of the requirement that a value lies in [low, high]."""
    if found is None or np.isnan(found["estimate"]):
        return "no_data"
    bounds = float(found["ci_low"]), float(found["ci_high"])
    if np.isnan(bounds).any():
        return "undecided"
    if low <= bounds[0] and bounds[1] <= high:
        return "met"
    return "not_met" if bounds[1] < low or bounds[0] > high else "undecided"


def _minimum(
    criterion: str,
    found: dict[str, Any] | None,
    limits: Mapping[str, Any],
    measure: str,
    pass_: str,
    *,
    nothing: float = 0.0,
) -> dict[str, Any]:
    limit = float(limits[criterion])
    of = "reviewers' " if criterion == "minimum_reviewer_agreement" else ""
    over = " over both passes" if pass_ == "both" and measure != "swap_consistency" else ""
    requirement = f"{of}{measure}{over}: whole interval at {limit:g} or above"
    if limit <= nothing:
        note = f"the threshold {limit:g} demands nothing"
        return _line(criterion, requirement, found, measure, pass_, limit, "met", note)
    return _line(criterion, requirement, found, measure, pass_, limit, _inside(found, limit, np.inf))


def _items_line(exact: dict[str, Any] | None, limit: int, pass_: str) -> dict[str, Any]:
    n_items = int(exact["n_used"]) if exact else 0
    count = {"estimate": n_items, "ci_low": NAN, "ci_high": NAN, "n_used": n_items, "note": ""}
    requirement = f"at least {limit} items with a reference and a usable verdict (a count, no interval)"
    outcome = "met" if n_items >= limit else "not_met"
    return _line("minimum_items", requirement, count, "n_used", pass_, limit, outcome)


def _unusable_line(tables: _Tables, judge: str, pass_: str) -> dict[str, Any]:
    limit = float(tables.thresholds["maximum_unusable_rate"])
    names = ("original", "swapped") if pass_ == "both" else (pass_,)
    rows = [row for name in names if (row := _pick(tables.unusable, "unusable_rate", judge, name))]
    # The worse pass: a judge that fails in one presentation fails.
    worst = max(rows, key=lambda row: (float(row["ci_high"]), float(row["estimate"]))) if rows else None
    requirement = f"unusable_rate: whole interval at {limit:g} or below" + ", worse pass" * (len(names) > 1)
    outcome = "met" if limit >= 1 else _inside(worst, -np.inf, limit)
    where = str(worst["pass"]) if worst else pass_
    return _line("maximum_unusable_rate", requirement, worst, "unusable_rate", where, limit, outcome)


def _position_line(tables: _Tables, judge: str) -> dict[str, Any]:
    limit = float(tables.thresholds["maximum_first_position_deviation"])
    found = _pick(tables.position, "first_position_rate", judge, "both")
    requirement = f"first_position_rate over both passes: whole interval within 0.5 ± {limit:g}"
    outcome = "met" if limit >= 0.5 else _inside(found, 0.5 - limit, 0.5 + limit)
    criterion = "maximum_first_position_deviation"
    return _line(criterion, requirement, found, "first_position_rate", "both", limit, outcome)


def _controls_line(tables: _Tables, exact: dict[str, Any] | None, pass_: str) -> dict[str, Any]:
    rows = [
        row
        for control in tables.controls
        for name in ("direct", _pairwise_pass(tables, control))
        if (row := _pick(tables.agreement, "exact_agreement", control, name)) and not np.isnan(row["estimate"])
    ]
    if not rows:
        requirement, note = "exact_agreement above the best control's", "no control judge was measured"
        return _line("beats_controls", requirement, exact, "exact_agreement", pass_, NAN, "no_data", note)
    best = max(rows, key=lambda row: float(row["estimate"]))
    limit = float(best["estimate"])
    over = " over both passes" if pass_ == "both" else ""
    name = f"{best['judge']} ({best['strategy']}{', both passes' if best['pass'] == 'both' else ''})"
    requirement = f"exact_agreement{over}: whole interval above the point estimate of the best control, {name}"
    outcome = _inside(exact, float(np.nextafter(limit, np.inf)), np.inf)
    return _line("beats_controls", requirement, exact, "exact_agreement", pass_, limit, outcome)


def _recommendation(tables: _Tables, judge: str, evidence: pd.DataFrame, provenance: str) -> dict[str, Any]:
    own = evidence[evidence["judge"] == judge]
    supported = {name: _supported(own, name) for name in ("direct", "pairwise")}
    use = str(tables.thresholds["intended_use"])
    wanted, because = _rule(tables, judge, supported, use)
    parts = [because, *_failures(own)]
    if provenance != "human":
        key = "the reference is an answer key, and no people's labels"
        text = {"simulated": "the labels are simulated", "answer_key": key, "none": "there are no human labels"}
        reason = text.get(provenance, f"the labels are of provenance {provenance}")
        wanted, parts = "human_review", [f"{reason}, which never supports a use", *_failures(own)]
    return {
        "judge": judge,
        "recommendation": wanted,
        "because": "; ".join(part for part in parts if part),
        "direct_supported": supported["direct"],
        "pairwise_supported": supported["pairwise"],
        "intended_use": use,
        "provenance": provenance,
    }


def _supported(own: pd.DataFrame, strategy: str) -> bool:
    outcomes = own.loc[own["strategy"] == strategy, "outcome"]
    return len(outcomes) > 0 and bool((outcomes == "met").all())


def _failures(own: pd.DataFrame) -> Iterator[str]:
    """``direct: minimum_kappa undecided (0.41 [0.22, 0.58], threshold 0.4)`` for each requirement that is not met."""
    for strategy, lines in own.groupby("strategy", sort=False):
        failed = [_failure(line) for line in lines.to_dict("records") if line["outcome"] != "met"]
        if failed:
            yield f"{strategy}: {', '.join(failed)}"


def _failure(line: dict[Any, Any]) -> str:
    text = f"{line['criterion']} {str(line['outcome']).replace('_', ' ')}"
    if np.isnan(line["estimate"]):
        return text
    interval = "" if np.isnan(line["ci_low"]) else f" [{line['ci_low']:.3g}, {line['ci_high']:.3g}]"
    threshold = "" if np.isnan(line["threshold"]) else f", threshold {line['threshold']:.3g}"
    return f"{text} ({line['estimate']:.3g}{interval}{threshold})"


def _rule(tables: _Tables, judge: str, supported: Mapping[str, bool], use: str) -> tuple[str, str]:
    """The recommendation and its reason, by the second table of :func:`decide`."""
    direct, pairwise = supported["direct"], supported["pairwise"]
    if not direct and not pairwise:
        return "human_review", "no strategy meets every requirement"
    if direct and not pairwise:
        return "direct", "direct meets every requirement, pairwise does not or was not run"
    if pairwise and not direct:
        if use == "relative_ranking":
            return "pairwise", "pairwise meets every requirement, direct does not or was not run"
        return "human_review", f"the intended use {use} needs scores, and only pairwise meets every requirement"
    better, text = _better(tables, judge)
    if use == "absolute_scores":
        return "direct", f"both strategies meet every requirement and the intended use needs scores; {text}"
    if better == "direct":
        return "direct", f"both strategies meet every requirement; {text}"
    chosen = "pairwise" if use == "relative_ranking" else "hybrid"
    return chosen, f"both strategies meet every requirement; {text}; intended use {use}"


def _better(tables: _Tables, judge: str) -> tuple[str, str]:
    """Which strategy agrees meaningfully better, and the difference in words."""
    found = _pick(tables.agreement, "exact_agreement_difference", judge, "original")
    limit = float(tables.thresholds["meaningful_difference"])
    if found is None or np.isnan(found["ci_low"]):
        return "", "their difference in agreement was not measured"
    low, high = float(found["ci_low"]), float(found["ci_high"])
    better = "pairwise" if low > limit else "direct" if high < -limit else ""
    shown = f"pairwise minus direct {found['estimate']:+.3f} [{low:+.3f}, {high:+.3f}]"
    if better:
        return better, f"{better} agrees meaningfully better ({shown}, beyond {limit:g})"
    return "", f"neither agrees meaningfully better ({shown}, meaningful is {limit:g})"
