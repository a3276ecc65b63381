"""Sentences on what stands beside a ranking: panels, terms held, pairs, judges, disputes, listwise calls, calls."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import pandas as pd

from judgelab.measure.comparability import named
from judgelab.report.effects import meaning
from judgelab.report.leaderboard import text_of
from judgelab.report.picking import judges_of, one, rows_of
from judgelab.report.ranking_sentences import points, value_text
from judgelab.report.sentences import Sentences, estimate_text
from judgelab.report.words import interval_text, listed, number_text, p_text, percent, plural, reason_text

__all__ = [
    "consensus_sentences", "controlled_sentences", "disputed_sentences", "head_to_head_sentences", "judges_sentences",
    "listwise_sentences", "spending_sentences",
]  # fmt: skip

AHEAD = ("x ahead", "y ahead")
SCHEDULES = {
    "round_robin": "every pair in turn", "balanced_sparse": "a balanced part of the pairs",
    "adaptive": "adaptive", "merge_sort": "merge sort",
}  # fmt: skip


def consensus_sentences(rows: pd.DataFrame) -> Sentences:
    """How much a panel decides at each threshold.

    Parameters
    ----------
    rows
        Rows of :func:`judgelab.measure.consensus.consensus_table`.

    Returns
    -------
    Sentences
        One for each judge or panel and threshold, in the order of the rows: draws among the pairs with a result, and
        coverage, the pairs with a result among those planned; without a threshold every verdict is a pair of its own.
        Thresholds of the same counts share one sentence. They decide the same pairs, and their intervals differ by
        nothing but the draws of the bootstrap: told are those of the first.
    """
    found: list[str] = []
    for judge in judges_of(rows):
        alike: dict[tuple[object, ...], tuple[list[str], list[str]]] = {}
        for slice_ in rows.loc[rows["judge"] == judge, "slice"].unique():
            own = rows_of(rows, judge=judge, slice_=slice_)
            both = [one(own, measure=name) for name in ("draw_rate", "coverage")]
            name = str(slice_).removeprefix("threshold=")
            told = ["not measured" if row is None else estimate_text(row) for row in both]
            key = name == "none", *(re.sub(r"interval \[.*?\]", "", text) for text in told)
            alike.setdefault(key, ([], told))[0].append(name)
        for names, (draws, coverage) in alike.values():
            at = "without a threshold (each verdict is a match)" if "none" in names else f"threshold {listed(names)}"
            found.append(f"{judge}, {at}: draws {draws}; pairs with a result {coverage}.")
    return Sentences(found or ["No threshold of agreement was looked at (n = 0 items)."])


def controlled_sentences(plain: pd.DataFrame, controlled: pd.DataFrame) -> Sentences:
    """What the first place and length are worth, and which systems move when they are held.

    Parameters
    ----------
    plain, controlled
        Rows of :func:`judgelab.measure.strength_table.strength_table`, without and with these terms.

    Returns
    -------
    Sentences
        One for each term in the model: log odds with interval, "found" if the whole interval lies on one side of 0;
        then which systems move by more than half the width of their plain interval, and which change their rank.
    """
    terms = (
        ("First place: log odds", "first_position_effect", 1.0, "the answer shown first",
         "the first place is favoured", "the second place is favoured"),
        ("Length: log odds per natural logarithm of the ratio of words", "covariate_effect", math.log(2),
         "an answer twice as long", "the longer answer is favoured", "the shorter answer is favoured"),
    )  # fmt: skip
    held = rows_of(controlled, slice_=("all", "covariate=length"))
    found = []
    for what, measure, step, who, above, below in terms:
        row = one(held, measure=measure)
        if row is None:
            continue
        value = float(row["estimate"])
        odds = "" if math.isnan(value) else number_text(math.exp(min(value * step, 700.0)), 2)
        odds = odds and f"; between equals the odds of {who} are {odds} to 1"
        told = meaning(row, None, above=above, below=below, what="effect", unit=" in log odds")
        found.append(f"{what} {value_text(row, 'match', 'matches', signed=True)}{odds}; {told}.")
    if not found:
        return Sentences(["Neither the first place nor length was held (n = 0 matches): nothing is known of them."])
    return Sentences([*found, _moved(plain, controlled)])


def _moved(plain: pd.DataFrame, controlled: pd.DataFrame) -> str:
    """Which systems move."""
    tables = [rows_of(rows, measure="strength_elo").set_index("slice") for rows in (plain, controlled)]
    both = tables[0].join(tables[1]["estimate"].rename("held"), how="inner").dropna(subset=["estimate", "held"])
    if len(both) < 2:
        return f"Fewer than two systems have both strengths (n = {plural(len(both), 'system')}): too little data."
    half, shift = (both["ci_high"] - both["ci_low"]) / 2, both["held"] - both["estimate"]
    ranks = [both[name].round(9).rank(ascending=False) for name in ("estimate", "held")]
    names = both.index.str.removeprefix("system=")
    lines = list(zip(names, shift, half, *ranks, strict=True))
    far = [
        f"{name} ({points(by, True)}, half width {points(width)})" for name, by, width, *_ in lines if abs(by) > width
    ]
    turned = [f"{name} ({before:g} to {after:g})" for name, _, _, before, after in lines if before != after]
    without = int(half.isna().sum())
    more = f"; {without} have no interval to hold that against" if without else ""
    return (
        f"With that held, {len(far)} of {len(both)} systems move by more than half the width of their interval in Elo "
        f"points{': ' * bool(far)}{named(far)}{more}; {len(turned)} change their rank"
        f"{': ' * bool(turned)}{named(turned)}."
    )


def head_to_head_sentences(table: pd.DataFrame) -> Sentences:
    """How many pairs of systems are decided by the binomial test, or, of two systems, what it says.

    Parameters
    ----------
    table
        From :func:`judgelab.measure.head_to_head.head_to_head_table`.

    Returns
    -------
    Sentences
        One for each judge: of one pair counts, win share, p and ties; of several pairs in how many a system is ahead,
        is to be treated as tied, or there is too little data (p corrected by Holm over the pairs).
    """
    found = []
    for judge, own in table.groupby("judge", sort=False):
        if len(own) == 1:
            found.append(f"{judge}: {_one_pair(own.iloc[0])}.")
            continue
        ahead, tied, few = (
            int(own["conclusion"].isin(names).sum()) for names in (AHEAD, ["treat as tied"], ["too little data"])
        )
        items = [int(own["items"].min()), int(own["items"].max())]
        n = f"n = {items[0]} items each" if items[0] == items[1] else f"n = {items[0]} to {items[1]} items each"
        found.append(
            f"{judge}: of {len(own)} pairs of systems ({n}; exact binomial test, Holm over the pairs) one is ahead in "
            f"{ahead}, {tied} are to be treated as tied, which does not show that they are equal, and {few} have too "
            "little data."
        )
    return Sentences(found or ["No two systems met (n = 0 items): too little data."])


def _one_pair(row: pd.Series) -> str:
    x, y = str(row["system_x"]), str(row["system_y"])
    n = f"n = {plural(row['items'], 'item')}"
    counted = f"{x} won {int(row['wins_x'])}, {y} won {int(row['wins_y'])}, {int(row['ties'])} tied ({n})"
    if row["items"]:
        counted += f", tie rate {int(row['ties'])}/{int(row['items'])} = {number_text(row['ties'] / row['items'])}"
    if pd.isna(row["win_share"]):
        return f"{counted}; no item decides between the two: too little data"
    bounds = interval_text(row)
    told = "no interval" if bounds == "none" else f"interval {bounds}"
    counted += (
        f"; {x} won {number_text(float(row['win_share']))} of the decided items ({told}, {p_text(float(row['p']))})"
    )
    if row["conclusion"] in AHEAD:
        return f"{counted}: {x if row['conclusion'] == 'x ahead' else y} is ahead: supported"
    if row["conclusion"] == "too little data":
        return f"{counted}: too little data"
    needed = "" if pd.isna(row["needed"]) else f"; about {plural(row['needed'], 'item')} would show a share like this"
    return f"{counted}: to be treated as tied, which does not show that they are equal{needed}: undecided"


def judges_sentences(correlations: pd.DataFrame) -> Sentences:
    """How alike judges rank the systems.

    Parameters
    ----------
    correlations
        See :func:`judgelab.measure.judge_rankings.judge_rankings`: judge_a, judge_b, spearman, ci_low, ci_high,
        kendall, systems (in both rankings).

    Returns
    -------
    Sentences
        The pairs of judges that are least and most alike; how many pairs have no correlation.
    """
    if correlations.empty:
        return Sentences(["There are no two judges whose rankings could be compared (n = 0 pairs)."])
    known = correlations.dropna(subset=["spearman"]).sort_values("spearman", kind="stable")
    pairs = plural(len(correlations), "pair")
    if known.empty:
        return Sentences([f"Judges: none of {pairs} has a rank correlation: too little data."])
    told = [
        f"{row['judge_a']} and {row['judge_b']} (Spearman {number_text(float(row['spearman']))}{_between(row)}, "
        f"Kendall {number_text(float(row['kendall']))}, n = {plural(row['systems'], 'system')})"
        for _, row in known.iloc[[0, -1]].iterrows()
    ]
    left = len(correlations) - len(known)
    more = f"; {left} of {pairs} have no correlation" if left else ""
    if len(known) == 1:
        return Sentences([f"Judges: the rankings of {told[0]} are compared{more}."])
    return Sentences([f"Judges: of {pairs} least alike rank {told[0]}, most alike {told[1]}{more}."])


def _between(row: pd.Series) -> str:
    """The interval of a correlation, or nothing where there is none."""
    return ", without an interval" if math.isnan(row["ci_low"]) else f" {interval_text(row)}"


def disputed_sentences(pairs: pd.DataFrame, items: pd.DataFrame, outliers: pd.DataFrame) -> Sentences:
    """What people should look at: how much is disputed, where most, and which systems stand far from the rest.

    Parameters
    ----------
    pairs, items, outliers
        From :func:`judgelab.measure.disputes.disputed_pairs`, ``disputed_items`` and ``outliers``.

    Returns
    -------
    Sentences
        The share of pairs of answers on which verdicts differ; the item with the most; the outliers.
    """
    several, disputed = (int(items[name].sum()) if len(items) else 0 for name in ("denominator", "numerator"))
    if not several:
        found = ["Disputes: no pair of answers has two usable verdicts (n = 0 pairs): too little data."]
    else:
        rate = f"{disputed}/{several} = {number_text(disputed / several)}"
        found = [
            f"Verdicts differ on {rate} of the pairs of answers with two or more (n = {plural(len(items), 'item')})."
        ]
    if disputed:
        most = items.sort_values("numerator", ascending=False, kind="stable").iloc[0]
        split = sum(bool(text_of(names)) for names in pairs["judges_split"]) if len(pairs) else 0
        found.append(
            f"Most are on item {most['item_id']} ({int(most['numerator'])} of {int(most['denominator'])} pairs); on "
            f"{split} of {plural(len(pairs), 'disputed pair')} a judge differs from itself."
        )
    rated = int(outliers["z"].notna().sum()) if len(outliers) else 0
    if not rated:
        return Sentences([*found, "Outliers: no group has four rated systems that differ (n = 0): too little data."])
    far = outliers[outliers["outlier"].astype(bool)]
    told = [
        f"{row['system']} in {row['group']} ({row['direction']}, z = {points(row['z'], True)})"
        for _, row in far.iterrows()
    ]
    left = len(outliers) - rated
    more = f"; {left} could not be looked at" if left else ""
    return Sentences(
        [
            *found,
            f"Far from the rest of their group: {len(far)} of {rated} ratings{': ' * bool(told)}{named(told)}{more}.",
        ]
    )


def listwise_sentences(rows: pd.DataFrame) -> Sentences:
    """Whether rankings in one call agree with pairwise verdicts, with each other, and with the order shown.

    Parameters
    ----------
    rows
        Rows of :func:`judgelab.measure.listwise.listwise_table`.

    Returns
    -------
    Sentences
        Up to three for each judge; of the order shown an effect is found, not found, undecided, or lacks data.
    """
    found = [sentence for judge in judges_of(rows) for sentence in _listwise(judge, rows_of(rows, judge=judge))]
    return Sentences(found or ["No answers were ranked in one call (n = 0 calls)."])


def _listwise(judge: str, own: pd.DataFrame) -> Iterator[str]:
    def told(measure: str) -> str:
        row = one(own, measure=measure)
        return "not measured" if row is None else estimate_text(row)

    yield (
        f"{judge}, all answers in one call: unusable calls {told('unusable_rate')}; pairs placed as by its pairwise "
        f"verdicts {told('listwise_agreement')}; Kendall of the ranking and that by pairwise wins "
        f"{told('listwise_kendall')}."
    )
    yield (
        f"{judge}, the same answers in another order: Kendall of the two rankings {told('order_consistency')}, the "
        f"same first {told('same_winner_rate')}."
    )
    effect, p, best = (
        one(own, measure=name) for name in ("order_effect_kendall", "order_effect_p", "first_place_rate")
    )
    says = meaning(effect, p, what="effect of the order", above="what is shown earlier is ranked higher",
                   below="what is shown later is ranked higher")  # fmt: skip
    if p is not None and pd.isna(p["estimate"]) and effect is not None and pd.notna(effect["estimate"]):
        says = f"{reason_text(p).split(';')[0]}: undecided"
    elif p is not None and pd.notna(p["estimate"]):
        says = f"{p_text(float(p['estimate']))}; {says}"
    chance = re.match(r"[\d.]+ expected", "" if best is None else str(best["method"]))
    expected = f", {chance.group()} by chance" if chance else ""
    yield (
        f"{judge}, the order shown: Kendall of it and the ranking {told('order_effect_kendall')}; {says}. Ranked best "
        f"is what was shown first in {told('first_place_rate')}{expected}."
    )


def spending_sentences(rows: pd.DataFrame, *, target: float = 0.95) -> Sentences:
    """How many calls each schedule needs for nearly the ranking from all matches.

    Parameters
    ----------
    rows
        Rows of :func:`judgelab.measure.spending.spending`.
    target
        The mean rank correlation that was to be reached, as it was given there.

    Returns
    -------
    Sentences
        One for each schedule, the cheapest first, those that do not reach it last; and what this does not say.
    """
    calls = rows_of(rows, measure="calls_to_reach").sort_values("estimate", kind="stable")
    if calls.empty:
        return Sentences(["Calls: no schedule was tried (n = 0 repeats)."])
    if calls["estimate"].isna().all() and not calls["n_used"].any():
        return Sentences(
            [f"Calls: no schedule can be judged (n = 0 repeats): {reason_text(calls.iloc[0])}: too little data."]
        )
    found = []
    for _, row in calls.iterrows():
        schedule = str(row["slice"]).removeprefix("schedule=")
        name = f"Calls, {SCHEDULES.get(schedule, schedule.replace('_', ' '))}"
        share = one(rows, measure="share_to_reach", slice_=row["slice"])
        if pd.isna(row["estimate"]):
            found.append(f"{name}: {reason_text(row)} (n = {plural(row['n_used'], 'repeat')}): not supported.")
            continue
        of = ""
        if share is not None and pd.notna(share["denominator"]):
            of = f" of {int(share['denominator'])} ({percent(float(share['estimate']))})"
        bounds, note = [number_text(float(row[end]), 0) for end in ("ci_low", "ci_high")], text_of(row["note"])
        known = math.isfinite(float(row["ci_low"])) and math.isfinite(float(row["ci_high"]))
        told = f"{percent(float(row['ci_level']))} interval [{', '.join(bounds)}]" if known else "no interval"
        found.append(
            f"{name}: {int(row['estimate'])} calls{of} reach a mean rank correlation of {target:g} with the ranking "
            f"from all matches ({told}, n = {plural(row['n_used'], 'repeat')}){'; ' * bool(note)}{note}."
        )
    found.append("The ranking from all matches contains these: this says how soon it is reached, not how right it is.")
    return Sentences(found)
