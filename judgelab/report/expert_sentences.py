"""Sentences on people beside a ranking: experts' ranks, and verdicts that a person judged again, blind."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import pandas as pd

from judgelab.measure.comparability import named
from judgelab.report.effects import meaning
from judgelab.report.picking import one, rows_of
from judgelab.report.ranking_sentences import value_text
from judgelab.report.sentences import Sentences, compare, estimate_text
from judgelab.report.words import interval_text, number_text, p_text, plural, reason_text

__all__ = ["expert_sentences", "spot_check_sentences"]

SMALL = 6  # ranked systems below which a group says little
PROVENANCES = {
    "simulated": "The experts' ranks are simulated: this shows the method, not how far a ranking agrees with people.",
    "known_by_construction": "The ranks are known from how the answers were made; no person has ranked them.",
}
SIDES = {"supported": "above", "not supported": "below", "undecided": "around"}


def expert_sentences(
    tables: Mapping[str, pd.DataFrame],
    *,
    provenance: str,
    panel: str = "panel",
    judges: Collection[str] | None = None,
) -> Sentences:
    """How far rankings agree with experts' ranks: at the best threshold, of the panel and of single judges.

    Parameters
    ----------
    tables
        By the name of a judge or panel, rows of :func:`judgelab.measure.expert_ranks.correlation_rows` in slices
        ``threshold=<t>``; empty where there are no experts.
    provenance
        ``human``, ``simulated``, ``known_by_construction``, or ``none``.
    panel
        The name of the panel among ``tables``.
    judges
        Names of the single judges that it is compared with; default: all the others.

    Returns
    -------
    Sentences
        Where the ranks come from, if not from people. For each table the threshold with the highest mean of Spearman's
        correlation, found, not found, undecided or too little data. Then the panel beside the best single judge, better
        or worse only if the two intervals have no value in common. Last what small groups cannot say.
    """
    best = {name: _best(rows) for name, rows in tables.items()}
    if not any(_row(rows, "spearman_mean") is not None for rows in best.values()):
        return Sentences(
            ["There are no experts' ranks (n = 0 groups): how far a ranking agrees with them is not known."]
        )
    found = [PROVENANCES[provenance]] if provenance in PROVENANCES else []
    found += [_with_experts(name, best[name], rows) for name, rows in tables.items()]
    others = {name: rows for name, rows in best.items() if name != panel and (judges is None or name in judges)}
    found += _panel(panel, best.get(panel), others)
    return Sentences([*found, *_small(best.values())])


def _best(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the threshold with the highest mean correlation; of the first one where there is none."""
    means = rows_of(rows, measure="spearman_mean")
    if means.empty:
        return means
    known = means.dropna(subset=["estimate"])
    chosen = 0 if known.empty else int(known["estimate"].argmax())
    return rows_of(rows, slice_=(means if known.empty else known)["slice"].iloc[chosen])


def _row(rows: pd.DataFrame, measure: str) -> pd.Series | None:
    return one(rows, measure=measure)


def _estimate(rows: pd.DataFrame, measure: str) -> float:
    row = _row(rows, measure)
    return math.nan if row is None else float(row["estimate"])


def _at(rows: pd.DataFrame) -> str:
    """The threshold of some rows as people say it."""
    name = str(rows["slice"].iloc[0]).removeprefix("threshold=")
    return "without a threshold" if name == "none" else "all" if name == "all" else f"threshold {name}"


def _with_experts(name: str, best: pd.DataFrame, rows: pd.DataFrame) -> str:
    """One judge or panel."""
    mean = _row(best, "spearman_mean")
    if mean is None:
        return f"{name}: it was not compared with experts (n = 0 groups): too little data."
    if pd.isna(mean["estimate"]):
        return f"{name}: its correlation with experts is {value_text(mean, 'group')}: too little data."
    tried = rows_of(rows, measure="spearman_mean")["slice"].nunique()
    chosen = f", the best of {tried} thresholds on these groups and so too good for others" if tried > 1 else ""
    kinds = [f"{kind} {value_text(row, 'group')}{_spread(best, kind)}" for kind in ("Spearman", "Kendall")
             if (row := _row(best, f"{kind.lower()}_mean")) is not None]  # fmt: skip
    low, high = (_estimate(best, f"ranked_{end}") for end in ("min", "max"))
    ranked = "" if math.isnan(low) else f", {low:g} to {high:g} systems ranked in each" if low < high else (
        f", {low:g} systems ranked in each"
    )  # fmt: skip
    p = _row(best, "spearman_p_combined")
    test = "no test"
    if p is not None:
        test = f"no test: {reason_text(p)}" if pd.isna(p["estimate"]) else f"combined {p_text(float(p['estimate']))}"
    told = meaning(
        mean, p, above="it ranks as the experts do, more than by chance", below="it ranks against the experts",
        what="relation with the experts' ranks",
    )  # fmt: skip
    return f"{name}, {_at(best)}{chosen}: {'; '.join(kinds)}{ranked}; {test}; {told}."


def _spread(best: pd.DataFrame, kind: str) -> str:
    deviation = _estimate(best, f"{kind.lower()}_sd")
    return "" if math.isnan(deviation) else f" ± {number_text(deviation)} over groups"


def _panel(panel: str, own: pd.DataFrame | None, others: Mapping[str, pd.DataFrame]) -> list[str]:
    """The panel beside the single judges."""
    known = {name: value for name, rows in others.items() if not math.isnan(value := _estimate(rows, "spearman_mean"))}
    if own is None or not known:
        return []
    mean = _row(own, "spearman_mean")
    if mean is None or pd.isna(mean["estimate"]):
        return []
    name = max(known, key=known.__getitem__)
    row = _row(others[name], "spearman_mean")
    assert row is not None
    below = sum(value < float(mean["estimate"]) for value in known.values())
    return [
        f"{panel} beside single judges, by mean Spearman: {number_text(float(mean['estimate']))} {interval_text(mean)} "
        f"against {number_text(known[name])} {interval_text(row)} of the best one, {name}; {below} of {len(known)} are "
        f"below the {panel}; {_apart(mean, row)}."
    ]


def _apart(mean: pd.Series, row: pd.Series) -> str:
    """Whether two intervals have no value in common."""
    if "none" in (interval_text(mean), interval_text(row)):
        return "without both intervals: undecided"
    if float(mean["ci_low"]) > float(row["ci_high"]):
        return "the intervals do not meet: the panel is better"
    if float(mean["ci_high"]) < float(row["ci_low"]):
        return "the intervals do not meet: the panel is worse"
    return "the intervals meet: undecided"


def _small(tables: Collection[pd.DataFrame]) -> list[str]:
    """What groups of few systems cannot say."""
    sizes = [int(size) for rows in tables if not math.isnan(size := _estimate(rows, "ranked_min"))]
    if not sizes or min(sizes) >= SMALL:
        return []
    size = min(sizes)
    least = 2 / math.factorial(size)
    return [
        f"Groups of fewer than {SMALL} ranked systems allow little: of {size} even a perfect order has "
        f"{p_text(least)} (2 of {math.factorial(size)} orders), so that only all groups together can show a relation."
    ]


def spot_check_sentences(
    rows: pd.DataFrame | None, *, size: int, threshold: float, sheet: str = "in the run's folder"
) -> Sentences:
    """Whether a person who judged some verdicts again, blind, agrees with them.

    Parameters
    ----------
    rows
        Rows of :func:`judgelab.measure.spot_check.spot_check_agreement`; None before a person has judged.
    size
        How many verdicts were drawn.
    threshold
        Agreement that is asked for, as a rule of thumb.
    sheet
        Where the blind sheet lies.

    Returns
    -------
    Sentences
        That it is not done yet, and where the sheet is; or the agreement, "supported", "not supported" or "undecided"
        if its interval lies above, below or around the threshold; then that of single judges, lowest first.
    """
    if rows is None or rows.empty:
        return Sentences(
            [f"Spot check: no person has judged any of the {plural(size, 'verdict')} again (n = 0 verdicts); the blind "
             f"sheet is {sheet}: too little data."]
        )  # fmt: skip
    whole = rows.iloc[0]
    outcome, told = compare(whole, low=threshold), estimate_text(whole, "verdict")
    if outcome == "too little data":
        return Sentences([f"Spot check of {plural(size, 'verdict')}: the agreement is {told}: too little data."])
    found = [
        f"Spot check: a person who judged {int(whole['n_used'])} of {plural(size, 'verdict')} again, blind, agrees "
        f"with {told}; the interval lies {SIDES[outcome]} the threshold of {threshold:g}: "
        f"{outcome}."
    ]
    own = rows_of(rows.iloc[1:], slice_="all").dropna(subset=["estimate"]).sort_values("estimate", kind="stable")
    if len(own):
        told = named([f"{row['judge']} {estimate_text(row, 'verdict')}" for _, row in own.iterrows()])
        found.append(f"Spot check by judge, lowest first: {told}.")
    return Sentences(found)
