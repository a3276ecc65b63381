"""Sentences as data: kept as plain text, escaped when shown; and the one rule that compares a row with a threshold."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import pandas as pd

from judgelab.report.formulas import without_formulas
from judgelab.report.words import interval_text, number_text, percent, plural, reason_text

__all__ = ["Answers", "Banner", "Outcome", "Sentences", "compare", "estimate_text", "unbroken", "verdict_text"]

Outcome = Literal["supported", "not supported", "undecided", "too little data"]


class Sentences(Sequence[str]):
    """A list of sentences. In a notebook one sentence is a paragraph and several are a list.

    The text is plain: whatever stands in it (a category's name, a reason, a judge's name) is escaped when it is
    shown and never read as HTML or Markdown.
    """

    def __init__(self, sentences: Iterable[str] = ()) -> None:
        self._sentences = tuple(str(sentence) for sentence in sentences)

    @classmethod
    def joined(cls, parts: Iterable[Iterable[str]]) -> Sentences:
        """The sentences of several parts as one list."""
        return cls(sentence for part in parts for sentence in part)

    def __getitem__(self, index: Any) -> Any:
        return self._sentences[index]

    def __len__(self) -> int:
        return len(self._sentences)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sentences)

    def __add__(self, other: Iterable[str]) -> Sentences:
        return Sentences((*self, *other))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sentences) and self._sentences == other._sentences

    def __hash__(self) -> int:
        return hash(self._sentences)

    def __repr__(self) -> str:
        return "\n".join(self._sentences)

    def _repr_html_(self) -> str:
        shown = [unbroken(html.escape(sentence)) for sentence in self]
        if len(shown) == 1:
            return without_formulas(f'<p class="sentence">{shown[0]}</p>')
        return without_formulas('<ul class="sentences">' + "".join(f"<li>{text}</li>" for text in shown) + "</ul>")


class Answers(Sequence[tuple[str, Sentences]]):
    """Questions with their answers, in order; shown as a numbered list."""

    def __init__(self, answers: Iterable[tuple[str, Iterable[str]]]) -> None:
        self._answers = tuple((question, Sentences(sentences)) for question, sentences in answers)

    def __getitem__(self, index: Any) -> Any:
        return self._answers[index]

    def __len__(self) -> int:
        return len(self._answers)

    def __repr__(self) -> str:
        parts = [
            "\n".join([f"{number}. {question}", *(f"   {sentence}" for sentence in sentences)])
            for number, (question, sentences) in enumerate(self, start=1)
        ]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        parts = [
            f"<li><strong>{html.escape(question)}</strong>{sentences._repr_html_()}</li>"
            for question, sentences in self
        ]
        return without_formulas(f'<ol class="answers">{"".join(parts)}</ol>')


class Banner:
    """A line about the study that must be seen; ``warning`` makes it a box."""

    def __init__(self, text: str, *, warning: bool) -> None:
        self.text, self.warning = text, warning

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        kind = "warning" if self.warning else "plain"
        # The box must be seen in JupyterLab too, where the report's style sheet is not: hence the inline style.
        look = ' style="border:2px solid #b45f06;background:#fff4e0;color:#1f1f1f;padding:0.6em 0.9em"'
        return f'<div class="banner {kind}" role="note"{look if self.warning else ""}>{html.escape(self.text)}</div>'


def unbroken(text: str) -> str:
    """``n = 25`` and ``95 %`` kept on one line."""
    return re.sub(r"\bn = (?=\d)", "n\u00a0=\u00a0", re.sub(r"(?<=\d) %", "\u00a0%", text))


def compare(
    row: pd.Series | Mapping[str, Any] | None, *, low: float = -math.inf, high: float = math.inf, minimum_n: int = 1
) -> Outcome:
    """Whether a row's interval lies within bounds.

    Parameters
    ----------
    row
        A row of the one shape, or None.
    low, high
        The bounds, both inclusive, in the unit of the estimate.
    minimum_n
        The smallest ``n_used`` (at least 1) on which anything is concluded.

    Returns
    -------
    Outcome
        "supported" if the whole interval lies within the bounds, "not supported" if all of it lies outside on
        one side, "undecided" if it reaches over a bound or is not known, "too little data" if the row is missing,
        has no estimate or fewer than ``minimum_n`` items.
    """
    if row is None or pd.isna(row["estimate"]) or int(row["n_used"]) < max(1, minimum_n):
        return "too little data"
    bottom, top = float(row["ci_low"]), float(row["ci_high"])
    if math.isnan(bottom) or math.isnan(top):
        return "undecided"
    if bottom >= low and top <= high:
        return "supported"
    return "not supported" if top < low or bottom > high else "undecided"


def estimate_text(row: pd.Series | Mapping[str, Any], unit: str = "item") -> str:
    """``21/25 = 0.840 (95 % interval [0.653, 0.936], n = 25 items)``, or why there is no value."""
    n = plural(row["n_used"], unit)
    if pd.isna(row["estimate"]):
        return f"undefined (n = {n}: {reason_text(row)})"
    rate = pd.notna(row["numerator"]) and pd.notna(row["denominator"])
    counted = f"{int(row['numerator'])}/{int(row['denominator'])} = " if rate else ""
    interval = interval_text(row)
    bounds = "no interval" if interval == "none" else f"{percent(float(row['ci_level']))} interval {interval}"
    return f"{counted}{number_text(float(row['estimate']))} ({bounds}, n = {n})"


def verdict_text(
    outcome: Outcome,
    row: pd.Series | Mapping[str, Any] | None,
    *,
    low: float | None = None,
    high: float | None = None,
    minimum_n: int = 1,
    unit: str = "item",
) -> str:
    """What the comparison of a row with its threshold means, as the second half of a sentence."""
    bound = _bound_text(low, high)
    n = 0 if row is None else int(row["n_used"])
    if outcome == "too little data":
        if row is None or n == 0 or pd.isna(row["estimate"]):
            return f"there is no value to hold against the threshold ({bound}), n = {n}: too little data"
        return (
            f"with n = {plural(n, unit)} of the {minimum_n} that the protocol requires, nothing is concluded about the "
            f"threshold ({bound}): too little data"
        )
    if outcome == "undecided":
        assert row is not None
        if interval_text(row) == "none":
            return f"without an interval it cannot be held against the threshold ({bound}): undecided"
        return f"the interval reaches across the threshold ({bound}): undecided"
    side = "meets" if outcome == "supported" else "misses"
    return f"the whole interval {side} the threshold ({bound}): {outcome}"


def _bound_text(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"between {number_text(low)} and {number_text(high)}"
    if low is not None:
        return f"at least {number_text(low)}"
    return f"at most {number_text(high if high is not None else math.nan)}"
