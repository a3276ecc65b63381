"""Sentences on corrected rates: what people would say of everything that the judge judged."""

from __future__ import annotations

import pandas as pd

from judgelab.report.picking import one, rows_of
from judgelab.report.sentences import Sentences, estimate_text
from judgelab.report.words import number_text, plural, reason_text, slice_text

__all__ = ["correction_sentences"]

METHODS = {"rogan_gladen": "corrected by TPR and TNR (Rogan-Gladen)", "ppi": "prediction-powered (PPI++)"}


def correction_sentences(corrections: pd.DataFrame, *, judge: str, rate: str = "win_rate") -> Sentences:
    """For each system the labelled rate and the corrected ones of the pairwise pass, and which of them to use.

    Parameters
    ----------
    corrections
        Rows of ``measure.correction.correction_table`` (or ``pass_rate_table``).
    judge
        The judge.
    rate
        ``win_rate`` or ``pass_rate``.
    """
    own = rows_of(corrections, judge=judge)
    pass_ = "original" if "original" in set(own["pass"]) else "direct"
    if (alone := _every_item_labelled(rows_of(own, pass_=pass_), rate)) is not None:
        return Sentences([f"{judge}: {alone}"])
    found = []
    for name in dict.fromkeys(own.loc[own["pass"] == pass_, "slice"]):
        rows = rows_of(own, pass_=pass_, slice_=name)
        found.append(_system_sentence(rows, judge, slice_text(name), rate))
    return Sentences(found or [f"{judge}: no rate was judged (n = 0 items), so there is nothing to correct."])


def _every_item_labelled(rows: pd.DataFrame, rate: str) -> str | None:
    """One sentence for all systems where there is nothing that a correction could add."""
    raw, labelled = (rows_of(rows, measure=f"{rate}_{kind}") for kind in ("judge", "labelled"))
    if raw.empty or labelled["estimate"].isna().any() or raw["n_used"].tolist() != labelled["n_used"].tolist():
        return None
    n = plural(int(raw["n_used"].max()), "item")
    return f"every judged item is labelled (n = {n}), so that the labels alone are the answer and nothing is corrected."


def _system_sentence(rows: pd.DataFrame, judge: str, system: str, rate: str) -> str:
    raw, labelled = (one(rows, measure=f"{rate}_{kind}") for kind in ("judge", "labelled"))
    what = "win rate" if rate == "win_rate" else "pass rate"
    if raw is None or labelled is None or pd.isna(labelled["estimate"]):
        why = "no label" if labelled is None else reason_text(labelled)
        return f"{judge}, {what} of {system}: not correctable (n = 0 items: {why})."
    told = f"{judge}, {what} of {system}: by the judge {estimate_text(raw)}, by people {estimate_text(labelled)}"
    if int(raw["n_used"]) == int(labelled["n_used"]):
        return f"{told}; every judged item is labelled, so the labels alone are the answer."
    return f"{told}; {'; '.join(_method_text(rows, rate, key) for key in METHODS)}."


def _method_text(rows: pd.DataFrame, rate: str, key: str) -> str:
    row, gain = one(rows, measure=f"{rate}_{key}"), one(rows, measure=f"correction_gain_{key}")
    if row is None or pd.isna(row["estimate"]):
        why = "not computed" if row is None else reason_text(row)
        return f"{METHODS[key]} undefined (n = {plural(0 if row is None else row['n_used'], 'item')}: {why})"
    worth = (
        "" if gain is None or pd.isna(gain["estimate"]) else f", {number_text(float(gain['estimate']), 2)} times the"
    )
    worth = f"{worth} precision of labels alone" if worth else ""
    harm = ": use the labels alone" if "wider than labels alone" in str(row["note"]) else ""
    return f"{METHODS[key]} {estimate_text(row)}{worth}{harm}"
