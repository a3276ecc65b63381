"""Sentences on a judge's biases, each made from rows: length, family, place, drift.

An effect is found if its whole interval lies on one side of 0 and its test, where there is one, has p below one minus
the interval's level. If neither is so it does not show, which is no proof of its absence: the sentence says how large
an effect the interval leaves open. If the two disagree, or there is no interval, it is undecided.
"""

from __future__ import annotations

import pandas as pd

from judgelab.report.effects import WAYS, effect_text, meaning, passes_told
from judgelab.report.picking import one, rows_of
from judgelab.report.sentences import Sentences, estimate_text

__all__ = ["choice_sentences", "drift_sentences", "family_sentences", "length_sentences"]

OBSERVATIONAL = (
    "This is observational: which answer comes from which family was not drawn by lot, so whatever else "
    "distinguishes the family's answers (quality, style, length) can make such a gap without any favour for the family."
)
EFFECTS = {
    "first_position": ("place", "the answer shown first", "the other place"),
    "length": ("length", "the longer answer", "the shorter one"),
    "family": ("family (observational)", "the answer of its own family", "that of another family"),
    "human": ("people", "the answer that people prefer", "the one that people do not prefer"),
}
TIMES = {
    "first_position": "chance to win, shown first against second",
    "length": "chance to win, twice as long against equally long",
    "family": "chance to win, of its own family against the reverse",
    "human": "chance to win, preferred by people against not",
}


def length_sentences(bias: pd.DataFrame, *, judge: str, minimum_items: int = 1) -> Sentences:
    """Whether a judge favours the longer answer more than people do: rates, gap of the errors, and the regression.

    Parameters
    ----------
    bias
        Rows of the one shape (see ``measure.bias`` and ``measure.choice_model``).
    judge
        The judge.
    minimum_items
        The fewest items on which something is concluded.

    Returns
    -------
    Sentences
        One for direct scores, one for the comparisons (both passes if there are rows of them, else the one that was
        asked), one for the regression.
    """
    rows = rows_of(bias, judge=judge, slice_="all")
    found = [
        f"{judge}, {WAYS[pass_]}: of two answers of unequal length it prefers the longer in "
        f"{_rates(rows, pass_, 'longer')}; its error rate where people prefer the shorter minus that where they "
        f"prefer the longer is {_gap(rows, pass_, 'length', minimum_items, 'the longer answer', 'the shorter answer')}."
        for pass_ in passes_told(rows, "length_error_gap")
    ]
    found += [_effect(rows, judge, "length", minimum_items)] if _measured(rows, "length") else []
    return Sentences(found or [f"{judge}: a taste for length was not measured (n = 0 items): too little data."])


def choice_sentences(bias: pd.DataFrame, *, judge: str, minimum_items: int = 1) -> Sentences:
    """What moves a judge's choices by the regression, each effect with the others held: place, length, family, people.

    Parameters
    ----------
    bias
        Rows of ``measure.choice_model.choice_table``.
    judge
        The judge.
    minimum_items
        The fewest items on which something is concluded.

    Returns
    -------
    Sentences
        One for each effect with its log odds and its change of the chance to win, undefined ones with the reason.
    """
    rows = rows_of(bias, judge=judge, slice_="all")
    found = [_effect(rows, judge, effect, minimum_items) for effect in EFFECTS if _measured(rows, effect)]
    return Sentences(found or [f"{judge}: its choices were not modelled (n = 0 items): too little data."])


def family_sentences(bias: pd.DataFrame, *, judge: str, family: str | None, minimum_items: int = 1) -> Sentences:
    """Whether a judge errs in favour of a family of systems; always with the words that this is observational.

    Parameters
    ----------
    bias
        Rows of ``measure.bias.bias_table``, slices ``family=<name>``.
    judge
        The judge.
    family
        The family, for instance the judge's own; None if it has none.
    minimum_items
        The fewest items on which something is concluded.

    Returns
    -------
    Sentences
        One for direct scores, one for the comparisons; the last says why no cause is shown.
    """
    rows = rows_of(bias, judge=judge, slice_=f"family={family}")
    found = [
        f"{judge}, {WAYS[pass_]} (observational): of two answers of which one is of the family {family} it prefers "
        f"that one in {_rates(rows, pass_, 'family')}; its error rate where people prefer the other minus that where "
        f"they prefer it is {_gap(rows, pass_, 'family', minimum_items, f'the family {family}', 'the other systems')}."
        for pass_ in passes_told(rows, "family_error_gap")
    ]
    none = "it has no family" if family is None else f"the family {family} was not measured"
    return Sentences([*(found or [f"{judge}: {none} (n = 0 items): too little data."]), OBSERVATIONAL])


def drift_sentences(bias: pd.DataFrame, *, judge: str, minimum_items: int = 1) -> Sentences:
    """Whether a judge changes along the order of its calls: its scores, and its taste for the first place.

    Parameters
    ----------
    bias
        Rows of ``measure.drift.drift_table``.
    judge
        The judge.
    minimum_items
        The fewest items on which something is concluded.

    Returns
    -------
    Sentences
        One for direct scores, one for each pairwise pass.
    """
    own, found = rows_of(bias, judge=judge, slice_="all"), []
    words = {
        "score_drift": ("its scores change by", " points from the first to the last call", "they rise", "they fall"),
        "first_position_drift": (
            "the share of verdicts for the first place changes by",
            " from the first to the last third of the calls",
            "the first place is preferred more and more",
            "the first place is preferred less and less",
        ),
    }
    for measure, (what, over, up, down) in words.items():
        for _, row in rows_of(own, measure=measure).iterrows():
            p = one(own, measure=f"{measure}_p", pass_=row["pass"])
            told = meaning(row, p, minimum_items=minimum_items, above=up, below=down, what="drift")
            found.append(f"{judge}, {WAYS.get(row['pass'], row['pass'])}: {what} {effect_text(row, p)}{over}; {told}.")
    return Sentences(found or [f"{judge}: drift was not measured (n = 0 items): too little data."])


def _rates(rows: pd.DataFrame, pass_: str, what: str) -> str:
    """How often the judge and people take the favoured answer."""
    judged, people = (one(rows, pass_=pass_, measure=f"{who}{what}_rate") for who in ("", "human_"))
    told = ["not measured" if row is None else estimate_text(row) for row in (judged, people)]
    return f"{told[0]}, people on the same judgments in {told[1]}"


def _gap(rows: pd.DataFrame, pass_: str, what: str, minimum_items: int, above: str, below: str) -> str:
    """The gap of the errors and what it means."""
    gap, p = (one(rows, pass_=pass_, measure=f"{what}_error_gap{end}") for end in ("", "_p"))
    told = meaning(
        gap,
        p,
        minimum_items=minimum_items,
        above=f"it errs in favour of {above}",
        below=f"it errs in favour of {below}",
    )
    return f"{effect_text(gap, p)}; {told}"


def _measured(rows: pd.DataFrame, effect: str) -> bool:
    return one(rows, measure=f"{effect}_log_odds") is not None


def _effect(rows: pd.DataFrame, judge: str, effect: str, minimum_items: int) -> str:
    """One effect of the regression."""
    name, favoured, other = EFFECTS[effect]
    unit = " per natural logarithm of the ratio of words" if effect == "length" else ""
    row, p, change = (one(rows, measure=f"{effect}_{kind}") for kind in ("log_odds", "log_odds_p", "win_change"))
    told = meaning(
        row, p, minimum_items=minimum_items, what="effect", unit=" in log odds",
        above=f"with the other effects held it favours {favoured}",
        below=f"with the other effects held it favours {other}",
    )  # fmt: skip
    won = f"; {TIMES[effect]}: {effect_text(change)}" if change is not None and pd.notna(change["estimate"]) else ""
    return f"{judge}, {name}: log odds{unit} {effect_text(row, p)}{won}; {told}."
