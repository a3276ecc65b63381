"""What every repair of a judge decides: one preference per pair, from the verdicts of its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.acceptance import acceptance_of, scored_by_people
from judgelab.measure.coding import check_columns
from judgelab.measure.preferences import conservative, preference_from_totals
from judgelab.measure.recalibration import as_probability, fit_isotonic
from judgelab.measure.repaired_judge import DECIDED, PAIR, RepairedJudge, majority_of, without_abstentions
from judgelab.measure.tuning import Choice, choose_margin, choose_threshold
from judgelab.measure.votes import MAJORITY

__all__ = ["Repaired", "repair_decisions"]

NAN = float("nan")
BASELINES = ("pairwise", "direct")
DEVELOPMENT = "development"  # the plain scores of development items stand as the calls of a repair of that name
NEEDED = ["judge", "strategy", "pass", "item_id", "status", "attempts", "tokens_in", "tokens_out", "cost"]
MORE = {"logprob_scores": ("expected_total", "outside_mass"), "self_consistency": ("repeat",)}
SPENT = ["judge", "repair", "calls", "requests", "tokens_in", "tokens_out", "cost", "currency", "tuning_calls", "pairs"]
CHOICE = ["judge", "repair", "what", "value", "default", "score", "default_score", "n", "rule", "note"]
ANSWERS = ["judge", "item_id", "system", "total", "accepted", "probability", "recalibrated"]
NOTES = ["judge", "repair", "note"]
BY_PREFERENCE = (
    "people gave no scores or the protocol has no threshold: an answer that they prefer in all its pairs counts as "
    "accepted"
)


@dataclass
class Repaired:
    """What came of all repairs.

    Attributes
    ----------
    decisions, costs
        What :func:`judgelab.measure.repairs.repair_table` takes. Repairs that ask in both strategies stand twice, the
        direct one as ``<repair>_direct``.
    choices
        Thresholds and margins chosen on development items: judge, repair, what, value, default, score, default_score,
        n, rule, note.
    answers
        Scored evaluation answers of the judges that are repaired: judge, item_id, system, total, accepted (by people:
        1, 0 or NaN), probability (the score read as one), recalibrated (fitted on development items; NaN where no
        recalibration was asked for or none could be learned).
    notes
        What a reader must know of single repairs: judge, repair, note.
    """

    decisions: pd.DataFrame
    costs: pd.DataFrame
    choices: pd.DataFrame
    answers: pd.DataFrame
    notes: pd.DataFrame


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

    =======================  ==========================================================================================
    kind                     decision
    =======================  ==========================================================================================
    verdict_only,            as the unrepaired judge's, from the calls of the repair
      reasoning_first,
      level_descriptions,
      few_shot,
      retrieved_examples
    logprob_scores           by the totals of expected scores; unusable without token probabilities
    self_consistency         more than half of all samples, unusable ones among them, else ``ABSTAIN``
    both_presentations       the same preference in both plain presentations, else ``ABSTAIN``
    panel                    ``majority``: more than half of the judges; ``votes``: so many; else ``ABSTAIN``;
                             ``mean``: by the mean totals, unusable if a judge has none
    recalibration            by the recalibrated totals, equal ones a tie
    tie_margin               by the totals, with the margin that was chosen
    =======================  ==========================================================================================

    Parameters
    ----------
    plain : DataFrame
        One row per plain call of every judge: see :func:`judgelab.measure.preferences.normalize`, and attempts,
        tokens_in, tokens_out, cost.
    repaired : DataFrame
        One row per call of a repair, pass ``<repair>/<pass>``; with repeat for self_consistency, expected_total (from
        token probabilities) and outside_mass for logprob_scores; the plain scores of development items have pass
        ``development/direct``. Without rows it needs no columns.
    comparisons, reference : DataFrame
        Of development and evaluation items: one row per item and pair, comparisons with split.
    repairs : sequence of mapping
        Name and kind of each repair, with its options: judges, rule and votes of a panel, strategies of examples.
    judges : mapping of str to str
        The judges that are repaired, and the currency of each. Judges of a panel that are not among them are taken to
        have the currency of the repaired one.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    margin, acceptance_threshold, scale
        The protocol's tie margin, threshold of acceptance, and ends of the scale.

    Returns
    -------
    Repaired
        A repair that a judge has no calls for has no rows. Calls and pairs are those that were planned, so that
        calls per decision do not depend on what failed; requests are all attempts. Tokens and cost are sums of what
        is known, NaN where nothing is, and NaN for a panel if nothing is known of one of its judges. Of two
        presentations only the one that decides is counted, of ``both_presentations`` both.

    Raises
    ------
    ValueError
        If a column is missing, a kind is unknown, two repairs would have one name, a call occurs twice, samples are
        not of the same pairs, or a total is off the scale.
    """
    check_columns(plain, NEEDED, "plain")
    check_columns(comparisons, ["split"], "comparisons")
    _check_repairs(repairs)
    if repaired.empty:
        repaired = pd.DataFrame(columns=NEEDED)
    else:
        more = {name for repair in repairs for name in MORE.get(repair["kind"], ())}
        check_columns(repaired, [*NEEDED, *sorted(more)], "repaired")
    found = []
    for name in judges:
        own = repaired[repaired["judge"] == name]
        judge = RepairedJudge(
            name, plain, own, comparisons, reference, labels, margin, acceptance_threshold, scale, judges
        )
        table = judge.normalized(judge.plain())
        _unrepaired(judge, table)
        for repair in repairs:
            _KINDS[repair["kind"]](judge, table, repair)
        found.append(judge)
    return Repaired(
        decisions=_stacked([part for judge in found for part in judge.decided], DECIDED),
        costs=pd.DataFrame([line for judge in found for line in judge.spent], columns=SPENT),
        choices=pd.DataFrame([line for judge in found for line in judge.choices], columns=CHOICE),
        answers=_stacked([part for judge in found for part in judge.answers], ANSWERS),
        notes=pd.DataFrame([line for judge in found for line in judge.notes], columns=NOTES),
    )


def _check_repairs(repairs: Sequence[Mapping[str, Any]]) -> None:
    """Refuse repairs of unknown kinds, and names that two of them would have."""
    unknown = [repair["kind"] for repair in repairs if repair["kind"] not in _KINDS]
    if unknown:
        raise ValueError(f"repairs: kind {unknown[0]!r} is unknown; allowed are {', '.join(_KINDS)}")
    names = [*BASELINES, DEVELOPMENT, *(repair["name"] for repair in repairs)]
    names += [f"{repair['name']}_direct" for repair in repairs if len(set(repair.get("strategies", ()))) > 1]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ValueError(f"repairs: {twice[0]!r} is the name of two repairs, or of the judge without one")


def _unrepaired(judge: RepairedJudge, table: pd.DataFrame) -> None:
    """What the judge decides without a repair, and its scored answers."""
    _add_asked(judge, "pairwise", "pairwise", table, judge.plain())
    _add_asked(judge, "direct", "direct", table, judge.plain())
    scored = table[table["planned_direct"]]
    if len(scored):
        answers = acceptance_of(scored, judge.threshold)
        probability = as_probability(answers["total"].to_numpy(dtype=np.float64), *judge.scale)
        made = answers.assign(judge=judge.name, probability=probability, recalibrated=NAN)
        judge.answers.append(made[ANSWERS])


def _add_asked(judge: RepairedJudge, name: str, baseline: str, table: pd.DataFrame, calls: pd.DataFrame) -> None:
    """Preferences in the original presentation, or by totals, of the pairs that were asked about that way."""
    asked = table[table["planned_direct" if baseline == "direct" else "planned_original"]]
    if asked.empty:
        return
    if baseline == "direct":
        judge.add(name, baseline, asked, asked["direct"])
    else:
        first, second = asked["pair_original"], asked["pair_swapped"]
        judge.add(name, baseline, asked, first, original=first, swapped=second)
    deciding = "direct" if baseline == "direct" else "original"
    judge.spend(name, calls[calls["pass"] == deciding], len(asked))


def _asked_again(judge: RepairedJudge, _table: pd.DataFrame, repair: Mapping[str, Any]) -> None:
    """Repairs that ask the same pairs in another way."""
    calls = judge.of(repair["name"])
    strategies = {*repair.get("strategies", ()), *calls["strategy"]}
    for baseline in BASELINES:
        part = calls[calls["strategy"] == baseline]
        name = f"{repair['name']}_direct" if baseline == "direct" and len(strategies) > 1 else repair["name"]
        if len(part):
            _add_asked(judge, name, baseline, judge.normalized(part), part)


def _expected(judge: RepairedJudge, _table: pd.DataFrame, repair: Mapping[str, Any]) -> None:
    """Direct scores as expected values over the tokens of the scale."""
    calls = judge.of(repair["name"])
    if calls.empty:
        return
    _add_asked(judge, repair["name"], "direct", judge.normalized(calls.assign(total=calls["expected_total"])), calls)
    known = calls["expected_total"].notna() & (calls["status"] == "verdict")
    outside = calls.loc[known, "outside_mass"].astype(float)
    text = f"{int(known.sum())} of {len(calls)} scores have token probabilities"
    if outside.notna().any():
        text += f"; probability outside the scale: mean {outside.mean():.4f}, largest {outside.max():.4f}"
    judge.note(repair["name"], text)


def _voted(judge: RepairedJudge, _table: pd.DataFrame, repair: Mapping[str, Any]) -> None:
    """The majority of several samples, in each presentation."""
    calls = judge.of(repair["name"])
    samples = [judge.normalized(part) for _, part in calls.groupby("repeat", sort=True)] if len(calls) else []
    if not samples:
        return
    base = samples[0]
    if not all(sample[PAIR].equals(base[PAIR]) for sample in samples):
        raise ValueError(f"repaired, {repair['name']}: not every sample has the same pairs")
    columns = {name: [sample[name] for sample in samples] for name in ("direct", "pair_original", "pair_swapped")}
    voted = base.assign(**{name: majority_of(votes, judge.labels) for name, votes in columns.items()})
    if (calls["strategy"] == "direct").all():
        _add_asked(judge, repair["name"], "direct", voted, calls)
        return
    asked = voted[voted["planned_original"]]
    _add_votes(judge, repair["name"], asked, asked["pair_original"], asked["pair_swapped"])
    judge.spend(repair["name"], calls[calls["pass"] == "original"], len(asked))


def _add_votes(judge: RepairedJudge, name: str, table: pd.DataFrame, first: pd.Series, second: pd.Series) -> None:
    """Majorities in the two presentations, of which the original one decides."""
    passes = {"original": without_abstentions(first), "swapped": without_abstentions(second)}
    judge.add(name, "pairwise", table, first, **passes)


def _both(judge: RepairedJudge, table: pd.DataFrame, repair: Mapping[str, Any]) -> None:
    """The conservative rule over both presentations."""
    asked = table[table["planned_original"] & table["planned_swapped"]]
    if len(asked):
        # The passes are those of the unrepaired judge: what the rule leaves undecided does not make them consistent.
        first, second = asked["pair_original"], asked["pair_swapped"]
        decision = conservative(asked)["aggregated"]
        judge.add(repair["name"], "pairwise", asked, decision, original=first, swapped=second)
        calls = judge.plain()
        judge.spend(repair["name"], calls[calls["pass"].isin(["original", "swapped"])], len(asked))


def _panel(judge: RepairedJudge, table: pd.DataFrame, repair: Mapping[str, Any]) -> None:
    """Several judges of the study together, on the pairs of the one that is repaired."""
    name, names = repair["name"], list(repair["judges"])
    by_mean = repair["rule"] == "mean"
    asked = table[table["planned_direct" if by_mean else "planned_original"]].reset_index(drop=True)
    if judge.name not in names or asked.empty:
        return
    members = [judge.on_pairs(member, asked) for member in names]
    if by_mean:
        totals = [[member[f"total_{side}"].to_numpy(dtype=np.float64) for member in members] for side in "xy"]
        x, y = (np.mean(side, axis=0) for side in totals)
        judge.add(name, "direct", asked, _preferred(asked, x, y, judge.margin))
    else:
        rule = MAJORITY if repair["rule"] == "majority" else f"{repair['votes']} of {len(members)}"
        passes = ("pair_original", "pair_swapped")
        votes = (majority_of([member[pass_] for member in members], judge.labels, rule) for pass_ in passes)
        _add_votes(judge, name, asked, *votes)
    calls = [judge.plain("direct" if by_mean else "original", judge=member) for member in names]
    judge.spend(name, pd.concat(calls), len(asked))
    silent = [member for member, own in zip(names, calls, strict=True) if own.empty]
    judge.note(name, f"judges of the panel that were not asked: {', '.join(silent)}" if silent else "")


def _recalibrated(judge: RepairedJudge, table: pd.DataFrame, repair: Mapping[str, Any]) -> None:
    """Scores recalibrated on development items, and the threshold chosen there."""
    scored, tuned = table[table["planned_direct"]], judge.of(DEVELOPMENT)
    if tuned.empty or scored.empty:
        return
    name, pairs = repair["name"], judge.normalized(tuned, "development")
    known = acceptance_of(pairs, judge.threshold)
    totals, accepted = (known[column].to_numpy(dtype=np.float64) for column in ("total", "accepted"))
    fitted = fit_isotonic(totals, accepted, known["item_id"].to_numpy())
    judge.note(name, fitted.note)
    judge.note(name, "" if judge.threshold is not None and scored_by_people(pairs) else BY_PREFERENCE)
    x, y = (fitted.predict(scored[f"total_{side}"].to_numpy(dtype=np.float64)) for side in "xy")
    judge.add(name, "direct", scored, _preferred(scored, x, y, 0.0))
    judge.spend(name, judge.plain("direct"), len(scored), tuning_calls=len(tuned))
    raw = [(part, part["total"].to_numpy(dtype=np.float64)) for part in judge.answers]
    judge.answers = [part.assign(recalibrated=fitted.predict(scores)) for part, scores in raw]
    if judge.threshold is not None:
        choice = choose_threshold(totals, accepted, default=judge.threshold)
        judge.choices.append(_chosen(judge, name, "acceptance threshold", choice, judge.threshold))


def _margin(judge: RepairedJudge, table: pd.DataFrame, repair: Mapping[str, Any]) -> None:
    """The tie margin of direct scores, chosen on development items."""
    scored, tuned = table[table["planned_direct"]], judge.of(DEVELOPMENT)
    if tuned.empty or scored.empty:
        return
    name, known = repair["name"], judge.normalized(tuned, "development")
    columns = (known[column].to_numpy() for column in ("total_x", "total_y", "human", "system_x", "system_y"))
    choice = choose_margin(*columns, default=judge.margin)
    judge.add(name, "direct", scored, _preferred(scored, scored["total_x"], scored["total_y"], choice.value))
    judge.spend(name, judge.plain("direct"), len(scored), tuning_calls=len(tuned))
    judge.choices.append(_chosen(judge, name, "tie margin", choice, judge.margin))


def _chosen(judge: RepairedJudge, repair: str, what: str, choice: Choice, default: float) -> dict[str, Any]:
    """A line of the choices."""
    return {"judge": judge.name, "repair": repair, "what": what, "default": default, **vars(choice)}


def _preferred(table: pd.DataFrame, x: Any, y: Any, margin: float) -> Any:
    """Preferences by the totals x and y of the pairs of a table."""
    return preference_from_totals(x, y, table["system_x"], table["system_y"], margin).to_numpy()


def _stacked(parts: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


_KINDS: dict[str, Callable[[RepairedJudge, pd.DataFrame, Mapping[str, Any]], None]] = {
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
