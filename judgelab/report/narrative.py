"""Sentences made from rows. Each names its n, its interval and the threshold, and says so when nothing is known.

A sentence never says more than its row: "supported" needs the whole interval on the right side of the threshold,
"not supported" the whole interval on the wrong side, anything between is "undecided", and fewer items than the
protocol requires are "too little data".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pandas as pd

from judgelab.report.picking import one, rows_of
from judgelab.report.recommendation import recommendation_sentences
from judgelab.report.sentences import Banner, Sentences, compare, estimate_text, verdict_text
from judgelab.report.style import SERIES
from judgelab.report.words import interval_text, listed, number_text, plural, slice_text

__all__ = [
    "agreement_sentences",
    "difference_sentence",
    "missing_sentences",
    "position_sentences",
    "provenance_banner",
    "recommendation_sentences",
    "reviewer_sentences",
    "unusable_sentences",
]


def agreement_sentences(
    agreement: pd.DataFrame,
    *,
    judge: str,
    minimum_agreement: float,
    minimum_items: int = 1,
    passes: Collection[str] | None = None,
) -> Sentences:
    """One sentence for each strategy and pass of a judge: its exact agreement against the protocol's threshold.

    Parameters
    ----------
    agreement
        Rows of the one shape with the measure ``exact_agreement``, slice "all".
    judge
        The judge.
    minimum_agreement
        The protocol's threshold, 0 to 1.
    minimum_items
        The fewest items on which something is concluded.
    passes
        The passes spoken of; default: all.
    """
    rows = rows_of(agreement, judge=judge, measure="exact_agreement", slice_="all")
    found = []
    for series in SERIES:
        row = one(rows, strategy=series.strategy, pass_=series.pass_)
        if row is None or (passes is not None and series.pass_ not in passes):
            continue
        outcome = compare(row, low=minimum_agreement, minimum_n=minimum_items)
        meaning = verdict_text(outcome, row, low=minimum_agreement, minimum_n=minimum_items)
        found.append(f"{judge}, {series.name}: exact agreement with the reference is {estimate_text(row)}; {meaning}.")
    return Sentences(found or [f"{judge}: agreement was not measured (n = 0 items): too little data."])


def difference_sentence(
    agreement: pd.DataFrame, *, judge: str, meaningful_difference: float, minimum_items: int = 1
) -> Sentences:
    """Whether direct scoring or pairwise comparison agrees better with the reference, on the same items.

    Parameters
    ----------
    agreement
        Rows with the measure ``exact_agreement_difference`` (pairwise minus direct, paired bootstrap).
    judge
        The judge.
    meaningful_difference
        The smallest difference that matters, 0 to 1.
    minimum_items
        The fewest items on which something is concluded.
    """
    row = one(agreement, judge=judge, measure="exact_agreement_difference", slice_="all")
    if row is None:
        text = "direct and pairwise were not both measured (n = 0 items in common): too little data to compare them"
        return Sentences([f"{judge}: {text}."])
    what = f"{judge}: pairwise minus direct exact agreement is {estimate_text(row)}"
    return Sentences([f"{what}; {_difference_meaning(row, meaningful_difference, minimum_items)}."])


def _difference_meaning(row: pd.Series, meaningful: float, minimum_items: int) -> str:
    if compare(row, minimum_n=minimum_items) == "too little data":
        if pd.isna(row["estimate"]):
            return "too little data to compare them"
        return (
            f"with n = {plural(row['n_used'], 'item')} of the {minimum_items} that the protocol requires, neither is "
            "called better: too little data"
        )
    bound = f"the difference that matters is {number_text(meaningful)}"
    if interval_text(row) == "none":
        return f"without an interval neither is called better ({bound}): undecided"
    low, high = float(row["ci_low"]), float(row["ci_high"])
    if low >= meaningful and low > 0:
        return f"pairwise agrees better, by an amount that matters ({bound}): pairwise supported"
    if high <= -meaningful and high < 0:
        return f"direct agrees better, by an amount that matters ({bound}): direct supported"
    if -meaningful <= low and high <= meaningful:
        return f"the whole interval is within the difference that matters ({number_text(meaningful)}): about equal"
    if low > 0:
        return f"pairwise agrees better, but whether by an amount that matters ({bound}) is undecided"
    if high < 0:
        return f"direct agrees better, but whether by an amount that matters ({bound}) is undecided"
    return f"the interval holds 0 and reaches beyond the difference that matters ({number_text(meaningful)}): undecided"


def position_sentences(
    position: pd.DataFrame,
    *,
    judge: str,
    minimum_swap_consistency: float,
    maximum_first_position_deviation: float,
    minimum_coverage: float | None = None,
    minimum_items: int = 1,
) -> Sentences:
    """What the swap does to a judge: consistency, reversals, preference for a place, and the coverage left.

    Parameters
    ----------
    position
        Rows of the one shape (see ``measure.position``).
    judge
        The judge.
    minimum_swap_consistency, minimum_coverage
        Thresholds, 0 to 1.
    maximum_first_position_deviation
        How far from 0.5 the first-position rate may lie, 0 to 0.5.
    minimum_items
        The fewest items on which something is concluded.

    Returns
    -------
    Sentences
        Where no item was judged in both orders, that the question cannot be answered: one order alone cannot tell a
        preference for a place from better answers in that place, so nothing is held against a threshold.
    """
    rows = rows_of(position, judge=judge, slice_="all")
    both = one(rows, measure="swap_consistency")
    if rows_of(rows, pass_="both").empty or (both is not None and both["denominator"] == 0):
        return Sentences(_one_order(rows, judge))
    found = []
    if (row := one(rows, measure="swap_consistency")) is not None:
        outcome = compare(row, low=minimum_swap_consistency, minimum_n=minimum_items)
        meaning = verdict_text(outcome, row, low=minimum_swap_consistency, minimum_n=minimum_items)
        found.append(f"{judge}: swap consistency is {estimate_text(row)}; {meaning}.")
    if (row := one(rows, measure="reversal_rate")) is not None:
        found.append(f"{judge}: reversals among pairs without a tie: {estimate_text(row)}.")
    found += [
        _first_position(row, judge, maximum_first_position_deviation, minimum_items)
        for row in _first_position_rows(rows)
    ]
    row = one(rows, measure="coverage")
    if row is not None and minimum_coverage is not None:
        outcome = compare(row, low=minimum_coverage, minimum_n=minimum_items)
        meaning = verdict_text(outcome, row, low=minimum_coverage, minimum_n=minimum_items)
        found.append(
            f"{judge}: the conservative rule (same preference twice, else abstain) decides {estimate_text(row)}; "
            f"{meaning}."
        )
    return Sentences(found)


def _one_order(rows: pd.DataFrame, judge: str) -> Iterator[str]:
    """That nothing is known of the swap, and what one order shows all the same."""
    row = next(_first_position_rows(rows), None)
    if row is None:
        yield f"{judge}: whether its decisions survive the swap cannot be answered: it compared n = 0 pairs of answers."
        return
    total = int(row["n_used"]) + int(row["n_excluded"])
    yield (
        f"{judge}: whether its decisions survive the swap cannot be answered: n = 0 of {plural(total, 'item')} judged "
        "in both orders."
    )
    if pd.notna(row["estimate"]):
        yield (
            f"{judge}: in the one order that there is, it picked the answer shown first in {estimate_text(row)}; "
            "better answers in that place would look the same."
        )


def _first_position_rows(rows: pd.DataFrame) -> Iterator[pd.Series]:
    """The rate over both passes; where only one pass ran, of that one."""
    for pass_ in ("both", "original", "swapped"):
        row = one(rows, measure="first_position_rate", pass_=pass_)
        if row is not None:
            yield row
            return


def _first_position(row: pd.Series, judge: str, deviation: float, minimum_items: int) -> str:
    low, high = 0.5 - deviation, 0.5 + deviation
    outcome = compare(row, low=low, high=high, minimum_n=minimum_items)
    meaning = verdict_text(outcome, row, low=low, high=high, minimum_n=minimum_items)
    over = "over both passes" if row["pass"] == "both" else f"in the {row['pass']} pass"
    return f"{judge}: it picked the answer shown first {over} in {estimate_text(row)}; {_place(row)}{meaning}."


def _place(row: pd.Series) -> str:
    if interval_text(row) == "none" or pd.isna(row["estimate"]):
        return ""
    if float(row["ci_low"]) > 0.5:
        return "the first place is preferred (the interval lies above 0.5); "
    if float(row["ci_high"]) < 0.5:
        return "the second place is preferred (the interval lies below 0.5); "
    return "no preference for a place shows over all items (the interval holds 0.5, opposite effects may cancel); "


def reviewer_sentences(
    reviewers: pd.DataFrame, *, minimum_reviewer_agreement: float, minimum_items: int = 1
) -> Sentences:
    """How far the initial reviewers agree, pair by pair, and over all with Krippendorff's alpha.

    Parameters
    ----------
    reviewers
        Rows of the one shape (see ``measure.reliability``); rows with a judge in them are left to other sentences.
    minimum_reviewer_agreement
        Threshold of the exact agreement, 0 to 1.
    minimum_items
        The fewest items on which something is concluded.
    """
    people = rows_of(reviewers, judge="")
    found = []
    for _, row in rows_of(people, measure="exact_agreement").iterrows():
        outcome = compare(row, low=minimum_reviewer_agreement, minimum_n=minimum_items)
        meaning = verdict_text(outcome, row, low=minimum_reviewer_agreement, minimum_n=minimum_items)
        who = "Pairs of reviewers" if row["slice"] == "all" else f"Reviewers {slice_text(row['slice'])}"
        found.append(f"{who} gave the same preference in {estimate_text(row)}; {meaning}.")
    for _, row in rows_of(people, measure="krippendorff_alpha").iterrows():
        who = "all reviewers" if row["slice"] == "all" else slice_text(row["slice"])
        found.append(f"Krippendorff's alpha of {who} (nominal) is {estimate_text(row)}.")
    return Sentences(
        found
        or [
            "Agreement among reviewers is not known: no two reviewers labelled the same item before adjudication "
            f"(n = 0 items; the threshold is at least {number_text(minimum_reviewer_agreement)}): too little data."
        ]
    )


def missing_sentences(reference: pd.DataFrame, excluded: pd.DataFrame | None = None) -> Sentences:
    """How many items have a reference, by which rule, and what was left out with which reason.

    Parameters
    ----------
    reference
        One row per item and pair with ``human`` and ``rule`` (see ``study.humans``).
    excluded
        Items left out at reading, with ``reason``; None if that is not known.
    """
    n, known = len(reference), int(reference["human"].notna().sum())
    initial = reference.get("n_initial", pd.Series(0, index=reference.index))
    alone = int(((reference["rule"] == "majority") & (initial == 1)).sum()) if n else 0
    rules = reference["rule"].value_counts().sort_index() if n else pd.Series(dtype=int)
    how = listed(f"{count} {rule}" for rule, count in rules.items())
    have = "has" if known == 1 else "have"
    found = [f"{known} of {plural(n, 'comparison')} {have} a reference{f' ({how})' if how else ''}."]
    if alone:
        rest = "rests" if alone == 1 else "rest"
        found.append(f"{alone} of these {known} {rest} on the label of one reviewer alone.")
    if left := n - known:
        takes = "takes" if left == 1 else "take"
        found.append(f"{left} of {n} without a reference {takes} no part in any agreement.")
    if excluded is not None:
        reasons = excluded["reason"].value_counts().sort_index() if len(excluded) else pd.Series(dtype=int)
        why = listed(f"{count} {str(reason).replace('_', ' ')}" for reason, count in reasons.items())
        lines = plural(len(excluded), "line")
        found.append(f"{lines} of the items file {_was(len(excluded))} left out at reading{f': {why}' if why else ''}.")
    return Sentences(found)


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def unusable_sentences(unusable: pd.DataFrame, *, judge: str, maximum_unusable_rate: float) -> Sentences:
    """One sentence for each pass of a judge: the calls without a usable verdict against the threshold.

    Parameters
    ----------
    unusable
        Rows of the one shape with the measure ``unusable_rate``, slice "all".
    judge
        The judge.
    maximum_unusable_rate
        Threshold, 0 to 1.
    """
    rows = rows_of(unusable, judge=judge, measure="unusable_rate", slice_="all")
    found = []
    for _, row in rows.iterrows():
        outcome = compare(row, high=maximum_unusable_rate)
        meaning = verdict_text(outcome, row, high=maximum_unusable_rate, unit="call")
        where = listed(dict.fromkeys(part for part in (row["strategy"], row["pass"]) if part)) or "all calls"
        where = where.replace(" and ", ", ")
        why = _reasons(unusable, row)
        found.append(
            f"{judge}, {where}: calls without a usable verdict are {estimate_text(row, 'call')}{why}; {meaning}."
        )
    return Sentences(found or [f"{judge}: no call was planned (n = 0 calls): too little data."])


def _reasons(unusable: pd.DataFrame, row: pd.Series) -> str:
    """The reasons of a pass with their counts, from the slices ``reason=<r>``."""
    same = rows_of(unusable, judge=row["judge"], strategy=row["strategy"], pass_=row["pass"], measure="unusable_rate")
    reasons = same[same["slice"].str.startswith("reason=")]
    counts = listed(f"{int(r['numerator'])} {slice_text(r['slice']).replace('_', ' ')}" for _, r in reasons.iterrows())
    return f" (reasons: {counts})" if counts else ""


def provenance_banner(provenance: str) -> Banner:
    """Where the human labels come from: a box if they are simulated, or not there yet, a plain line otherwise.

    Parameters
    ----------
    provenance
        ``human``, ``simulated``, ``open`` (people are labelling), ``none``, or ``elsewhere`` of a ranking from matches
        that were judged elsewhere.
    """
    if provenance == "open":
        return Banner(
            "People are still labelling: until the labels are closed, nothing in this study says how far a judge "
            "agrees with people. They label in notebook 02; then the stages from 02 on are run again.",
            warning=True,
        )
    if provenance == "elsewhere":
        return Banner("These matches were judged elsewhere: nobody was asked here.", warning=False)
    if provenance == "simulated":
        return Banner(
            "Human labels in this study are simulated. Every number that compares a judge with people shows how the "
            "method works, not how people judge.",
            warning=True,
        )
    if provenance == "answer_key":
        return Banner(
            "The reference of this study is an answer key, and no people's labels: a number that compares a judge with "
            "people or the human reference says how often the judge prefers the answer that is right by the key.",
            warning=True,
        )
    if provenance == "none":
        text = "This study has no human labels: nothing in it says how far a judge agrees with people."
        return Banner(text, warning=True)
    return Banner(f"Human labels: {provenance}.", warning=False)
