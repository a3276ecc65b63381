"""Sentences on how a judge uses labels and scores, each made from rows: leniency, ties, contradictions."""

from __future__ import annotations

import pandas as pd

from judgelab.report.effects import WAYS, effect_text, meaning, passes_told
from judgelab.report.picking import one, rows_of
from judgelab.report.sentences import Sentences, compare, estimate_text
from judgelab.report.words import number_text, plural, slice_text

__all__ = ["contradiction_sentences", "label_use_sentences", "leniency_sentences"]

CONTRADICTIONS = {
    "verdict_reason_contradiction_rate": "verdicts at odds with the reason codes given for them",
    "critical_error_accepted_rate": "accepted answers among those in which it reports a critical error",
    "top_score_with_fault_rate": "highest scores among the answers in which it names a fault",
    "no_fault_low_score_rate": "scores below acceptance among the answers that it calls correct without a fault",
}


def leniency_sentences(bias: pd.DataFrame, *, judge: str, threshold: float | None, minimum_items: int = 1) -> Sentences:
    """Whether a judge accepts nearly everything, praises more than people, and how much of the scale it uses.

    Parameters
    ----------
    bias
        Rows of ``measure.leniency.leniency_table``.
    judge
        The judge.
    threshold
        Score from which an answer is accepted; None if the protocol names none.
    minimum_items
        The fewest items on which something is concluded.

    Returns
    -------
    Sentences
        On acceptance: lenient is who accepts most of what people accept (whole interval above 0.5) and rejects less
        than half of what they reject (whole interval below 0.5). On the highest score, the spread and the mean.
    """
    own = rows_of(bias, judge=judge, pass_="direct")
    all_, found = rows_of(own, slice_="all"), []
    names = ["accept"] if threshold is None else [f"accept>={threshold:g}", f"accept>={threshold:g}, by preference"]
    rates = rows_of(own, slice_=names)
    accepted, rejected = (one(rates, measure=f"true_{kind}_rate") for kind in ("positive", "negative"))
    if accepted is not None and rejected is not None:
        by_preference = " (people's preferences stand in for acceptance)" if "by pref" in accepted["slice"] else ""
        where = "" if threshold is None else f" from {threshold:g} on"
        found.append(
            f"{judge}, acceptance{where}{by_preference}: of the answers that people accept it accepts "
            f"{estimate_text(accepted)}, of those that people reject it rejects {estimate_text(rejected)}; "
            f"{_lenient(accepted, rejected, minimum_items)}."
        )
    top, people = (one(all_, measure=f"{who}top_score_rate") for who in ("", "human_"))
    if top is not None and people is not None:
        found.append(
            f"{judge}: it gives the highest score to {estimate_text(top)} of the answers that it scored; people, where "
            f"both scored, to {estimate_text(people)}; the difference is not tested."
        )
    used = one(all_, measure="score_range_used")
    if (row := one(all_, measure="score_compression")) is not None:
        told = meaning(
            row, None, minimum_items=minimum_items, null=1.0,
            above="it spreads its scores more than people", below="it spreads its scores less than people",
            what="difference in spread",
        )  # fmt: skip
        share = "" if used is None or pd.isna(used["estimate"]) else f", which use {number_text(used['estimate'])} of "
        of = f"its scores{share}{'the scale' if share else ''}"
        found.append(f"{judge}: the spread of {of}, as a multiple of people's is {estimate_text(row)}; {told}.")
    if (row := one(all_, measure="mean_score_gap")) is not None:
        told = meaning(
            row, None, minimum_items=minimum_items, what="difference in points",
            above="it gives more points than people", below="it gives fewer points than people",
        )  # fmt: skip
        found.append(f"{judge}: its scores minus people's are {effect_text(row)} points on average; {told}.")
    return Sentences(found or [f"{judge}: no answer was scored (n = 0 items), so that leniency is not known."])


def label_use_sentences(bias: pd.DataFrame, *, judge: str, minimum_items: int = 1) -> Sentences:
    """How often a judge says tie next to people, and whether one system wins almost all.

    Parameters
    ----------
    bias
        Rows of ``measure.label_use.label_use_table``.
    judge
        The judge.
    minimum_items
        The fewest items on which something is concluded.

    Returns
    -------
    Sentences
        For direct scores and for the comparisons one on ties and one on the system that the judge prefers most, with
        the caution on kappa where one system has almost all of people's preferences.
    """
    own, found = rows_of(bias, judge=judge), []
    for pass_ in passes_told(own, "tie_rate_gap"):
        rows = rows_of(own, pass_=pass_)
        tie, people, gap, p = (
            one(rows, measure=name, slice_="all")
            for name in ("tie_rate", "human_tie_rate", "tie_rate_gap", "tie_rate_gap_p")
        )
        if tie is not None and people is not None and gap is not None:
            told = meaning(
                gap, p, minimum_items=minimum_items, what="difference",
                above="it says tie more often than people", below="it says tie less often than people",
            )  # fmt: skip
            found.append(
                f"{judge}, {WAYS[pass_]}: it says tie in {estimate_text(tie)}, people in {estimate_text(people)}; "
                f"the difference is {effect_text(gap, p)}; {told}."
            )
        most, theirs = (one(rows, measure=f"{who}_preferred_share") for who in ("most", "human"))
        if most is not None and theirs is not None:
            which = "" if most["slice"] == "all" else f" ({slice_text(most['slice'])})"
            careful = (
                "; one system has almost all of people's preferences, so that kappa says little: read AC1 or PABAK"
                if "prevalence:" in str(theirs["note"])
                else ""
            )
            found.append(
                f"{judge}, {WAYS[pass_]}: the system that it prefers most often{which} has {estimate_text(most)} of "
                f"its preferences and {estimate_text(theirs)} of people's{careful}."
            )
    return Sentences(found or [f"{judge}: its use of labels was not measured (n = 0 items): too little data."])


def contradiction_sentences(bias: pd.DataFrame, *, judge: str, minimum_items: int = 1) -> Sentences:
    """How often a judge's verdicts are at odds with the reason codes or critical errors that came with them.

    Parameters
    ----------
    bias
        Rows of ``measure.contradictions.contradiction_table``.
    judge
        The judge.
    minimum_items
        The fewest items on which it is said how often.

    Returns
    -------
    Sentences
        For each pass one on how many verdicts give reason codes, and one for each kind of contradiction.
    """
    own, found = rows_of(bias, judge=judge, slice_="all"), []
    for pass_ in dict.fromkeys(rows_of(own, measure="reason_code_rate")["pass"]):
        rows, way = rows_of(own, pass_=pass_), WAYS.get(pass_, pass_)
        given = one(rows, measure="reason_code_rate")
        assert given is not None
        found.append(f"{judge}, {way}: usable verdicts with a known reason code are {estimate_text(given)}.")
        for measure, what in CONTRADICTIONS.items():
            if (row := one(rows, measure=measure)) is not None:
                found.append(f"{judge}, {way}: {what} are {estimate_text(row)}; {_at_odds(row, minimum_items)}.")
    return Sentences(found or [f"{judge}: no verdict with reasons was read (n = 0 items): too little data."])


def _lenient(accepted: pd.Series, rejected: pd.Series, minimum_items: int) -> str:
    """What both rates together say."""
    if accepted.isna()["estimate"] or rejected.isna()["estimate"]:
        return "without both rates leniency is not known"
    if (n := min(int(accepted["n_used"]), int(rejected["n_used"]))) < minimum_items:
        return f"with n = {plural(n, 'item')} of the {minimum_items} that the protocol requires: too little data"
    sides = compare(accepted, low=0.5), compare(rejected, low=0.5)
    told = {
        ("supported", "not supported"): "it accepts most of either (0.5 is outside both intervals): lenient",
        ("not supported", "supported"): "it rejects most of either (0.5 is outside both intervals): severe",
        ("supported", "supported"): "both intervals lie above 0.5: it does not accept nearly everything",
        ("not supported", "not supported"): "both intervals lie below 0.5: it is wrong on most of either",
    }
    return told.get((sides[0], sides[1]), "an interval reaches across 0.5 or is not known: undecided")


def _at_odds(row: pd.Series, minimum_items: int) -> str:
    """What a rate of contradictions says; there is no threshold for it."""
    if pd.isna(row["estimate"]):
        return "nothing is known of them"
    if int(row["n_used"]) < minimum_items:
        return f"fewer than the {minimum_items} items that the protocol requires: too little data to say how often"
    if int(row["numerator"]) > 0:
        return f"{plural(row['numerator'], 'case')} for people to look at: which of the two is wrong is not shown"
    return f"none was found, up to {number_text(float(row['ci_high']))} of all remain compatible"
