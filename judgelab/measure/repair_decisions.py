"""What every repair of a judge decides: one preference per pair, from the verdicts of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.acceptance import acceptance_of
from judgelab.measure.coding import check_columns, encode
from judgelab.measure.preferences import ABSTAIN, conservative, normalize, preference_from_totals
from judgelab.measure.recalibration import fit_isotonic
from judgelab.measure.resampling import Ints
from judgelab.measure.tuning import Choice, choose_margin, choose_threshold
from judgelab.measure.votes import panel_decisions

__all__ = ["Repaired", "repair_decisions"]

NAN = float("nan")
PAIR = ["item_id", "system_x", "system_y"]
KEPT = [*PAIR, "category", "human", "original_first", "words_x", "words_y"]
DECIDED = ["judge", "repair", "baseline", *KEPT, "decision", "original", "swapped"]
SPENT = ["judge", "repair", "calls", "requests", "tokens_in", "tokens_out", "cost", "currency", "tuning_calls", "pairs"]


@dataclass
class Repaired:
    """What came of all repairs.

    Attributes
    ----------
    decisions, costs
        What :func:`judgelab.measure.repairs.repair_table` takes.
    choices
        Thresholds and margins chosen on development items: judge, repair, what, value, default, score, default_score,
        n, rule, note.
    answers
        Scored evaluation answers: judge, item_id, system, total, accepted (by people: 1, 0 or NaN), probability (the
        score read as one), recalibrated (fitted on development items; NaN where no recalibration was asked for).
    notes
        What a reader must know of single repairs: judge, repair, note.
    """

    decisions: pd.DataFrame
    costs: pd.DataFrame
    choices: pd.DataFrame
    answers: pd.DataFrame
    notes: pd.DataFrame


@dataclass
class _Judge:
    """The verdicts of one judge, plain and repaired, and what the protocol says of reading them."""

    name: str
    plain: pd.DataFrame
    repaired: pd.DataFrame
    comparisons: pd.DataFrame
    reference: pd.DataFrame
    labels: Sequence[str]
    margin: float
    threshold: float | None
    scale: tuple[float, float]
    currency: str
    decided: list[pd.DataFrame] = field(default_factory=list)
    spent: list[dict[str, Any]] = field(default_factory=list)
    choices: list[dict[str, Any]] = field(default_factory=list)
    answers: list[pd.DataFrame] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)

    def normalized(self, calls: pd.DataFrame, split: str = "evaluation") -> pd.DataFrame:
        """Calls of one way of asking as preferences, for the pairs that were asked about."""
        pairs = self.comparisons[self.comparisons["split"] == split]
        table = normalize(calls, self.reference, pairs, margin=self.margin)
        planned = table[["planned_direct", "planned_original", "planned_swapped"]].any(axis=1)
        return table[planned].reset_index(drop=True)

    def of(self, repair: str, pass_: str | None = None) -> pd.DataFrame:
        """The calls of a repair, with the plain name of their pass."""
        label = self.repaired["pass"].str.rpartition("/")
        chosen = (label[0] == repair) & ((label[2] == pass_) if pass_ else True)
        return self.repaired[chosen].assign(**{"pass": label[2][chosen]})

    def add(
        self, repair: str, baseline: str, table: pd.DataFrame, decision: Any, *, original: Any = NAN, swapped: Any = NAN
    ) -> None:
        """What a repair decides on the pairs of a table."""
        rows = table[KEPT].assign(judge=self.name, repair=repair, baseline=baseline)
        self.decided.append(
            rows.assign(decision=_objects(decision, rows), original=_objects(original, rows),
                        swapped=_objects(swapped, rows))[DECIDED]
        )  # fmt: skip

    def spend(self, repair: str, calls: pd.DataFrame, pairs: int, tuning_calls: int = 0) -> None:
        """What the decisions of a repair took."""
        self.spent.append(
            {
                "judge": self.name,
                "repair": repair,
                "calls": len(calls),
                "requests": int(calls["attempts"].sum()),
                "tokens_in": int(calls["tokens_in"].sum()),
                "tokens_out": int(calls["tokens_out"].sum()),
                "cost": float(calls["cost"].sum(min_count=1)),
                "currency": self.currency,
                "tuning_calls": tuning_calls,
                "pairs": pairs,
            }
        )

    def note(self, repair: str, text: str) -> None:
        """Something that a reader must know of a repair."""
        if text:
            self.notes.append({"judge": self.name, "repair": repair, "note": text})


def repair_decisions(
    plain: pd.DataFrame,
    repaired: pd.DataFrame,
    *,
    comparisons: pd.DataFrame,
    reference: pd.DataFrame,
    repairs: Sequence[Mapping[str, Any]],
    judges: Mapping[str, str],
    labels: Sequence[str],
    margin: float,
    acceptance_threshold: float | None,
    scale: tuple[float, float],
) -> Repaired:
    """What the unrepaired judges and all their repairs decide on the evaluation items, and what that took.

    A decision of the unrepaired judge is its preference in the original presentation (``pairwise``, one call) or by
    its totals (``direct``). Nothing of an evaluation item's label is looked at: examples, thresholds, margins and
    recalibrations are those of development items.

    Parameters
    ----------
    plain : DataFrame
        One row per plain call of every judge: see :func:`judgelab.measure.preferences.normalize`, and attempts,
        tokens_in, tokens_out, cost.
    repaired : DataFrame
        One row per call of a repair, pass ``<repair>/<pass>``, with repeat, and expected_total (from token
        probabilities); the plain scores of development items have pass ``development/direct``.
    comparisons, reference : DataFrame
        Of development and evaluation items: one row per item and pair, with split.
    repairs : sequence of mapping
        Name and kind of each repair, with its options: examples, samples, judges, rule, votes, strategies.
    judges : mapping of str to str
        The judges that are repaired, and the currency of each.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    margin, acceptance_threshold, scale
        The protocol's tie margin, threshold of acceptance, and ends of the scale.

    Returns
    -------
    Repaired
        A repair that a judge has no calls for has no rows.
    """
    check_columns(plain, ["judge", "strategy", "pass", "attempts", "tokens_in", "tokens_out", "cost"], "plain")
    found = []
    for name, currency in judges.items():
        own = repaired[repaired["judge"] == name] if len(repaired) else _no_calls()
        judge = _Judge(
            name, plain[plain["judge"] == name], own, comparisons, reference, labels, margin, acceptance_threshold,
            scale, currency,
        )  # fmt: skip
        table = judge.normalized(judge.plain)
        _baselines(judge, table)
        for repair in repairs:
            _KINDS[repair["kind"]](judge, table, repair, plain)
        found.append(judge)
    return Repaired(
        decisions=_stacked([part for judge in found for part in judge.decided], DECIDED),
        costs=pd.DataFrame([line for judge in found for line in judge.spent], columns=SPENT),
        choices=pd.DataFrame([line for judge in found for line in judge.choices], columns=_CHOICE),
        answers=_stacked([part for judge in found for part in judge.answers], _ANSWERS),
        notes=pd.DataFrame([line for judge in found for line in judge.notes], columns=["judge", "repair", "note"]),
    )


_CHOICE = ["judge", "repair", "what", "value", "default", "score", "default_score", "n", "rule", "note"]
_ANSWERS = ["judge", "item_id", "system", "total", "accepted", "probability", "recalibrated"]


def _baselines(judge: _Judge, table: pd.DataFrame) -> None:
    asked = table[table["planned_original"]]
    if len(asked):
        both = {"original": asked["pair_original"], "swapped": asked["pair_swapped"]}
        judge.add("pairwise", "pairwise", asked, asked["pair_original"], **both)
        judge.spend("pairwise", judge.plain[judge.plain["pass"] == "original"], len(asked))
    scored = table[table["planned_direct"]]
    if len(scored):
        judge.add("direct", "direct", scored, scored["direct"])
        judge.spend("direct", judge.plain[judge.plain["pass"] == "direct"], len(scored))


def _asked_again(judge: _Judge, _table: pd.DataFrame, repair: Mapping[str, Any], _plain: pd.DataFrame) -> None:
    """Repairs that ask the same pairs in another way."""
    calls = judge.of(repair["name"])
    for baseline in ("pairwise", "direct"):
        part = calls[calls["strategy"] == baseline]
        if part.empty:
            continue
        made = judge.normalized(part)
        name = (
            repair["name"]
            if baseline == "pairwise" or not (calls["strategy"] == "pairwise").any()
            else (f"{repair['name']}_direct")
        )
        if baseline == "direct":
            judge.add(name, "direct", made, made["direct"])
            judge.spend(name, part, len(made))
            continue
        judge.add(name, "pairwise", made, made["pair_original"], original=made["pair_original"],
                  swapped=made["pair_swapped"])  # fmt: skip
        judge.spend(name, part[part["pass"] == "original"], int(made["planned_original"].sum()))


def _expected(judge: _Judge, _table: pd.DataFrame, repair: Mapping[str, Any], _plain: pd.DataFrame) -> None:
    """Direct scores as expected values over the tokens of the scale."""
    calls = judge.of(repair["name"])
    if calls.empty:
        return
    known = calls["expected_total"].notna()
    made = judge.normalized(calls.assign(total=calls["expected_total"]).where(known | (calls["status"] != "verdict")))
    judge.add(repair["name"], "direct", made, made["direct"])
    judge.spend(repair["name"], calls, len(made))
    outside = calls.loc[known, "outside_mass"]
    text = f"{int(known.sum())} of {len(calls)} scores have token probabilities"
    if len(outside):
        text += f"; probability outside the scale: mean {outside.mean():.4f}, largest {outside.max():.4f}"
    judge.note(repair["name"], text)


def _voted(judge: _Judge, _table: pd.DataFrame, repair: Mapping[str, Any], _plain: pd.DataFrame) -> None:
    """The majority of several samples, in each presentation."""
    calls = judge.of(repair["name"])
    if calls.empty:
        return
    samples = [judge.normalized(part) for _, part in calls.groupby("repeat", sort=True)]
    base = samples[0]
    if base["planned_original"].any():
        original, swapped = (
            _majority([sample[column] for sample in samples], judge.labels)
            for column in ("pair_original", "pair_swapped")
        )
        judge.add(repair["name"], "pairwise", base, original, original=_decided(original), swapped=_decided(swapped))
        judge.spend(repair["name"], calls[calls["pass"] == "original"], len(base))
    else:
        judge.add(repair["name"], "direct", base, _majority([sample["direct"] for sample in samples], judge.labels))
        judge.spend(repair["name"], calls, len(base))


def _both(judge: _Judge, table: pd.DataFrame, repair: Mapping[str, Any], _plain: pd.DataFrame) -> None:
    """The conservative rule over both presentations."""
    asked = table[table["planned_original"] & table["planned_swapped"]]
    if len(asked):
        judge.add(repair["name"], "pairwise", asked, conservative(asked)["aggregated"])
        judge.spend(repair["name"], judge.plain[judge.plain["strategy"] == "pairwise"], len(asked))


def _panel(judge: _Judge, table: pd.DataFrame, repair: Mapping[str, Any], plain: pd.DataFrame) -> None:
    """Several judges of the study together, on the pairs of the one that is repaired."""
    if judge.name not in repair["judges"]:
        return
    members = [_on_pairs(judge, plain[plain["judge"] == name], table) for name in repair["judges"]]
    calls = plain[plain["judge"].isin(repair["judges"])]
    if repair["rule"] == "mean":
        x, y = (np.mean([member[f"total_{side}"].to_numpy(dtype=float) for member in members], axis=0) for side in "xy")
        judge.add(
            repair["name"], "direct", table, preference_from_totals(x, y, table["system_x"], table["system_y"],
                                                                    judge.margin).to_numpy()
        )  # fmt: skip
        judge.spend(repair["name"], calls[calls["pass"] == "direct"], len(table))
        return
    rule = "majority" if repair["rule"] == "majority" else f"{repair['votes']} of {len(members)}"
    original, swapped = (
        _majority([member[column] for member in members], judge.labels, rule)
        for column in ("pair_original", "pair_swapped")
    )
    judge.add(repair["name"], "pairwise", table, original, original=_decided(original), swapped=_decided(swapped))
    judge.spend(repair["name"], calls[calls["pass"] == "original"], len(table))


def _recalibrated(judge: _Judge, table: pd.DataFrame, repair: Mapping[str, Any], _plain: pd.DataFrame) -> None:
    """Scores recalibrated on development items, and the threshold chosen there."""
    tuned = judge.of("development", "direct")
    scored = table[table["planned_direct"]]
    if tuned.empty or scored.empty:
        return
    known = acceptance_of(judge.normalized(tuned, "development"), judge.threshold)
    fitted = fit_isotonic(known["total"].to_numpy(), known["accepted"].to_numpy(), known["item_id"].to_numpy())
    judge.note(repair["name"], fitted.note)
    x, y = (fitted.predict(scored[f"total_{side}"].to_numpy(dtype=float)) for side in "xy")
    decision = preference_from_totals(x, y, scored["system_x"], scored["system_y"], 0.0).to_numpy()
    judge.add(repair["name"], "direct", scored, decision)
    judge.spend(repair["name"], judge.plain[judge.plain["pass"] == "direct"], len(scored), len(tuned))
    answers = acceptance_of(scored, judge.threshold)
    low, high = judge.scale
    totals = answers["total"].to_numpy(dtype=float)
    read = {"probability": (totals - low) / (high - low), "recalibrated": fitted.predict(totals)}
    judge.answers.append(answers.assign(judge=judge.name, **read)[_ANSWERS])
    if judge.threshold is not None:
        choice = choose_threshold(known["total"].to_numpy(), known["accepted"].to_numpy(), default=judge.threshold)
        _chosen(judge, repair, "acceptance threshold", choice, judge.threshold)


def _margin(judge: _Judge, table: pd.DataFrame, repair: Mapping[str, Any], _plain: pd.DataFrame) -> None:
    """The tie margin of direct scores, chosen on development items."""
    tuned = judge.of("development", "direct")
    scored = table[table["planned_direct"]]
    if tuned.empty or scored.empty:
        return
    known = judge.normalized(tuned, "development")
    columns = (known[name] for name in ("total_x", "total_y", "human", "system_x", "system_y"))
    choice = choose_margin(*(column.to_numpy() for column in columns), default=judge.margin)
    made = preference_from_totals(
        scored["total_x"], scored["total_y"], scored["system_x"], scored["system_y"], choice.value
    )
    judge.add(repair["name"], "direct", scored, made.to_numpy())
    judge.spend(repair["name"], judge.plain[judge.plain["pass"] == "direct"], len(scored), len(tuned))
    _chosen(judge, repair, "tie margin", choice, judge.margin)


def _chosen(judge: _Judge, repair: Mapping[str, Any], what: str, choice: Choice, default: float) -> None:
    judge.choices.append(
        {
            "judge": judge.name, "repair": repair["name"], "what": what, "value": choice.value, "default": default,
            "score": choice.score, "default_score": choice.default_score, "n": choice.n, "rule": choice.rule,
            "note": choice.note,
        }
    )  # fmt: skip


_KINDS: dict[str, Callable[[_Judge, pd.DataFrame, Mapping[str, Any], pd.DataFrame], None]] = {
    "verdict_only": _asked_again,
    "reasoning_first": _asked_again,
    "level_descriptions": _asked_again,
    "few_shot": _asked_again,
    "retrieved_examples": _asked_again,
    "logprob_scores": _expected,
    "self_consistency": _voted,
    "both_presentations": _both,
    "panel": _panel,
    "recalibration": _recalibrated,
    "tie_margin": _margin,
}


def _on_pairs(judge: _Judge, calls: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Another judge's preferences on the pairs of a table, in its order."""
    return table[PAIR].merge(judge.normalized(calls), on=PAIR, how="left")


def _majority(votes: Sequence[pd.Series], labels: Sequence[str], rule: str = "majority") -> pd.Series:
    """The label of a panel's rule for each pair: ABSTAIN without one, NaN where nobody has a usable verdict."""
    codes: Ints = np.column_stack([encode(vote, labels, "votes") for vote in votes])
    made = panel_decisions(codes, rule, labels=labels)
    names = np.array([*labels, ABSTAIN, NAN], dtype=object)
    return pd.Series(names[np.where(made >= 0, made, np.where(made == -2, len(labels), len(labels) + 1))], dtype=object)


def _decided(votes: pd.Series) -> pd.Series:
    """Preferences without abstentions, which are none."""
    return votes.where(votes != ABSTAIN, NAN)


def _objects(values: Any, rows: pd.DataFrame) -> Any:
    return np.full(len(rows), values, dtype=object) if np.isscalar(values) else np.asarray(values, dtype=object)


def _stacked(parts: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _no_calls() -> pd.DataFrame:
    return pd.DataFrame({"pass": pd.Series(dtype=str), "strategy": pd.Series(dtype=str)})
