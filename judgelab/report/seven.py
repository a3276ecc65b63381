"""The decision record's seven questions, answered from the tables."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from judgelab.report.narrative import (
    agreement_sentences,
    difference_sentence,
    position_sentences,
    recommendation_sentences,
    unusable_sentences,
)
from judgelab.report.picking import one, rows_of
from judgelab.report.sentences import Answers, Sentences, estimate_text
from judgelab.report.words import listed, percent, plural
from judgelab.study.protocol import TIE, DecisionThresholds

__all__ = ["STANDS_OUT", "disagreement_groups", "seven_answers"]

STANDS_OUT = 0.2  # share of the disagreements minus share of the items from which a group is pointed out
FEW = 5  # disagreements below which no pattern is read into them

QUESTIONS = (
    "Which strategy agrees more closely with the human reference, and by how much?",
    "How uncertain is that difference?",
    "How often does pairwise judgment change after the positions are swapped?",
    "Are disagreements concentrated in ties, long answers, particular categories or particular systems?",
    "What proportion of records is invalid or unstable?",
    "Does the intended use need absolute scores, relative ranking, or both?",
    "What human review is needed for high-impact or unstable cases?",
)


def seven_answers(
    *,
    judge: str,
    agreement: pd.DataFrame,
    position: pd.DataFrame,
    unusable: pd.DataFrame,
    normalized: pd.DataFrame,
    evidence: pd.DataFrame,
    recommendations: pd.DataFrame,
    decision: DecisionThresholds,
) -> Answers:
    """Answer the seven questions of the protocol's final decision for one judge, in sentences from the data.

    Parameters
    ----------
    judge
        The judge.
    agreement, position, unusable
        Rows of the one shape.
    normalized
        One row per judge, item and pair (see ``measure.preferences.normalize``).
    evidence, recommendations
        See :func:`judgelab.report.narrative.recommendation_sentences`.
    decision
        The protocol's thresholds.
    """
    swap = position_sentences(
        position,
        judge=judge,
        minimum_swap_consistency=decision.minimum_swap_consistency,
        maximum_first_position_deviation=decision.maximum_first_position_deviation,
        minimum_coverage=decision.minimum_coverage,
        minimum_items=decision.minimum_items,
    )
    answers = (
        difference_sentence(
            agreement,
            judge=judge,
            meaningful_difference=decision.meaningful_difference,
            minimum_items=decision.minimum_items,
        )
        + agreement_sentences(
            agreement,
            judge=judge,
            minimum_agreement=decision.minimum_agreement,
            minimum_items=decision.minimum_items,
            passes=("direct", "original"),
        ),
        _uncertainty(agreement, judge),
        swap,
        _concentration(normalized, judge),
        unusable_sentences(unusable, judge=judge, maximum_unusable_rate=decision.maximum_unusable_rate)
        + _unstable(position, judge),
        _intended_use(evidence, judge, decision),
        recommendation_sentences(rows_of(evidence, judge=judge), rows_of(recommendations, judge=judge))
        + _fallback(position, judge),
    )
    return Answers(zip(QUESTIONS, answers, strict=True))


def _uncertainty(agreement: pd.DataFrame, judge: str) -> Sentences:
    row = one(agreement, judge=judge, measure="exact_agreement_difference", slice_="all")
    if row is None or pd.isna(row["estimate"]):
        return Sentences([f"{judge}: there is no difference to be uncertain about (n = 0 items in common)."])
    if pd.isna(row["ci_low"]) or pd.isna(row["ci_high"]):
        return Sentences([f"{judge}: no interval could be computed for n = {plural(row['n_used'], 'item')}."])
    zero = "holds" if float(row["ci_low"]) <= 0 <= float(row["ci_high"]) else "does not hold"
    left = 0 if pd.isna(row["n_excluded"]) else int(row["n_excluded"])
    return Sentences(
        [
            f"{judge}: the {percent(float(row['ci_level']))} interval of the paired difference runs from "
            f"{row['ci_low']:.3f} to {row['ci_high']:.3f} and {zero} 0 (n = {plural(row['n_used'], 'item')}, "
            f"{left} left out).",
            "It describes the sampling of items alone, not the choice of reviewers, of the rubric or of the prompt.",
        ]
    )


def disagreement_groups(normalized: pd.DataFrame, *, judge: str, source: str) -> pd.DataFrame:
    """Count a judge's disagreements with the reference in groups of items.

    Parameters
    ----------
    normalized
        One row per judge, item and pair.
    judge
        The judge.
    source
        The column with its preference: ``direct``, ``pair_original`` or ``pair_swapped``.

    Returns
    -------
    pandas.DataFrame
        ``aspect, group, disagreements, n``: by human tie or not, by whether people preferred the longer answer, by
        category, and by the system that people preferred. Items without both labels are not counted.
    """
    own = rows_of(normalized, judge=judge)
    own = own[own["human"].notna() & own[source].notna()]
    wrong = own["human"] != own[source]
    aspects = {
        "label of people": own["human"].map(lambda label: "tie" if label == TIE else "a winner"),
        "length": pd.Series([_length(row) for _, row in own.iterrows()], index=own.index, dtype=object),
        "category": own["category"].astype(object),
        "system that people prefer": own["human"].where(own["human"] != TIE).astype(object),
    }
    found = []
    for aspect, groups in aspects.items():
        for group in sorted(map(str, groups.dropna().unique())):
            mine = groups.astype(str) == group
            found.append((aspect, group, int((wrong & mine).sum()), int(mine.sum())))
    return pd.DataFrame(found, columns=["aspect", "group", "disagreements", "n"])


def _length(row: pd.Series) -> str | None:
    """Whether people preferred the longer or the shorter answer; None for a tie or equal lengths."""
    if row["human"] == TIE or pd.isna(row["words_x"]) or pd.isna(row["words_y"]) or row["words_x"] == row["words_y"]:
        return None
    longer = row["system_x"] if row["words_x"] > row["words_y"] else row["system_y"]
    return "people prefer the longer answer" if row["human"] == longer else "people prefer the shorter answer"


def _concentration(normalized: pd.DataFrame, judge: str) -> Sentences:
    found: list[str] = []
    for source, name in (("direct", "direct"), ("pair_original", "pairwise, original")):
        groups = disagreement_groups(normalized, judge=judge, source=source)
        if not groups.empty:
            found += _aspect_sentences(groups, f"{judge}, {name}")
    if any("stand" in sentence for sentence in found):
        found.append(
            f"A group is said to stand out if its share of the disagreements is above its share of the n items by "
            f"{STANDS_OUT:.1f} or more: counts to look into, not a test."
        )
    return Sentences(found or [f"{judge}: no item has both a reference and a valid verdict (n = 0 items)."])


def _aspect_sentences(groups: pd.DataFrame, who: str) -> Iterator[str]:
    labels = rows_of(groups, aspect="label of people")
    total, items = int(labels["disagreements"].sum()), int(labels["n"].sum())
    if total == 0:
        yield f"{who}: no disagreement in {plural(items, 'item')}."
        return
    if total < FEW:
        yield f"{who}: {plural(total, 'disagreement')} in {plural(items, 'item')}, too few to read a pattern into."
        return
    for aspect, rows in groups.groupby("aspect", sort=False):
        of, among = int(rows["disagreements"].sum()), int(rows["n"].sum())
        counts = listed(f"{row['group']} {row['disagreements']}/{row['n']}" for _, row in rows.iterrows())
        excess = {row["group"]: row["disagreements"] / of - row["n"] / among for _, row in rows.iterrows() if of}
        out = [group for group, value in excess.items() if value >= STANDS_OUT]
        meaning = f"{listed(out)} {'stands' if len(out) == 1 else 'stand'} out" if out else "none stands out"
        if len(rows) < 2:
            meaning = "one group only, nothing to compare"
        yield (f"{who}, disagreements by {aspect} (n = {plural(among, 'item')}): {counts}; {meaning}.")


def _unstable(position: pd.DataFrame, judge: str) -> Sentences:
    row = one(position, judge=judge, measure="abstention_rate", slice_="all")
    if row is None:
        return Sentences()
    return Sentences([f"{judge}: unstable, that is another preference after the swap: {estimate_text(row)}."])


def _intended_use(evidence: pd.DataFrame, judge: str, decision: DecisionThresholds) -> Sentences:
    use = decision.intended_use
    direct = rows_of(evidence, judge=judge, strategy="direct")
    met = int((direct["outcome"] == "met").sum())
    items = rows_of(direct, measure=("exact_agreement", "n_used"))["n_used"].dropna()
    n = int(items.min()) if len(items) else 0
    tested = f"Requirements of direct scoring that {judge} meets: {met} of {len(direct)} (n = {plural(n, 'item')})."
    untested = f"Direct scoring of {judge} was not tested (n = 0 items)."
    return Sentences([_USES[use], tested if len(direct) else untested])


_USES = {
    "relative_ranking": "The protocol states relative ranking as the intended use: a preference between answers is "
    "enough, and agreement on preferences is no proof that a score threshold is calibrated.",
    "absolute_scores": "The protocol states absolute scores as the intended use: pairwise preferences alone cannot "
    "serve it, whatever their agreement.",
    "both": "The protocol states both absolute scores and relative ranking as the intended use: each strategy must "
    "meet its own requirements.",
}


def _fallback(position: pd.DataFrame, judge: str) -> Sentences:
    row = one(position, judge=judge, measure="coverage", slice_="all")
    if row is None or pd.isna(row["estimate"]) or pd.isna(row["numerator"]):
        none = f"No pair of {judge} was judged in both orders (n = 0 pairs): people decide every high-impact case."
        return Sentences([none])
    pairs, decided = int(row["denominator"]), int(row["numerator"])
    return Sentences(
        [
            f"People decide the {plural(pairs - decided, 'pair')} (of n = {pairs}) on which {judge} changes its "
            "preference after the swap, every pair with an unusable reply, and every high-impact case."
        ]
    )
