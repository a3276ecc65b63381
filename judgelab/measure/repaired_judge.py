"""One judge and its repairs: its calls by repair, the preferences that they give, and what is collected of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import encode
from judgelab.measure.preferences import ABSTAIN, normalize
from judgelab.measure.resampling import Ints
from judgelab.measure.votes import MAJORITY, panel_decisions

__all__ = ["DECIDED", "PAIR", "RepairedJudge", "majority_of", "without_abstentions"]

NAN = float("nan")
PAIR = ["item_id", "system_x", "system_y"]
KEPT = [*PAIR, "category", "human", "original_first", "words_x", "words_y"]
DECIDED = ["judge", "repair", "baseline", *KEPT, "decision", "original", "swapped"]
PLANNED = ["planned_direct", "planned_original", "planned_swapped"]


@dataclass
class RepairedJudge:
    """A judge's calls, plain and repaired, what the protocol says of reading them, and what was made of them so far.

    Attributes
    ----------
    name
        The judge.
    everyone
        The plain calls of all judges, for panels.
    repaired
        This judge's calls of repairs, pass ``<repair>/<pass>``.
    comparisons, reference, labels, margin, threshold, scale
        See :func:`judgelab.measure.repair_decisions.repair_decisions`.
    currencies
        Currency of each judge that is repaired.
    decided, spent, choices, answers, notes
        Parts and lines of the tables of :class:`judgelab.measure.repair_decisions.Repaired`.
    """

    name: str
    everyone: pd.DataFrame
    repaired: pd.DataFrame
    comparisons: pd.DataFrame
    reference: pd.DataFrame
    labels: Sequence[str]
    margin: float
    threshold: float | None
    scale: tuple[float, float]
    currencies: Mapping[str, str]
    decided: list[pd.DataFrame] = field(default_factory=list)
    spent: list[dict[str, Any]] = field(default_factory=list)
    choices: list[dict[str, Any]] = field(default_factory=list)
    answers: list[pd.DataFrame] = field(default_factory=list)
    notes: list[dict[str, Any]] = field(default_factory=list)

    def plain(self, pass_: str | None = None, *, judge: str | None = None) -> pd.DataFrame:
        """Plain calls of this judge or another one, of all passes or one."""
        calls = self.everyone[self.everyone["judge"] == (judge or self.name)]
        return calls if pass_ is None else calls[calls["pass"] == pass_]

    def of(self, repair: str) -> pd.DataFrame:
        """The calls of a repair, with the plain name of their pass."""
        own = np.array([str(name).rpartition("/")[0] == repair for name in self.repaired["pass"]], dtype=bool)
        calls = self.repaired[own]
        return calls.assign(**{"pass": [str(name).rpartition("/")[2] for name in calls["pass"]]})

    def normalized(self, calls: pd.DataFrame, split: str = "evaluation") -> pd.DataFrame:
        """Calls of one judge, asked in one way, as preferences: a row for each pair that was asked about."""
        pairs = self.comparisons[self.comparisons["split"] == split]
        table = normalize(calls, self.reference, pairs, margin=self.margin)
        return table[table[PLANNED].any(axis=1)].reset_index(drop=True)

    def on_pairs(self, judge: str, table: pd.DataFrame) -> pd.DataFrame:
        """The plain preferences of another judge on the pairs of a table, in its order; NaN where it was not asked."""
        return table[PAIR].merge(self.normalized(self.plain(judge=judge)), on=PAIR, how="left")

    def add(
        self, repair: str, baseline: str, table: pd.DataFrame, decision: Any, *, original: Any = NAN, swapped: Any = NAN
    ) -> None:
        """What a repair decides on the pairs of a table, and its preferences in the two passes."""
        given = {"decision": decision, "original": original, "swapped": swapped}
        values = {name: _objects(each, len(table)) for name, each in given.items()}
        rows = table[KEPT].assign(judge=self.name, repair=repair, baseline=baseline, **values)
        self.decided.append(rows[DECIDED].reset_index(drop=True))

    def spend(self, repair: str, calls: pd.DataFrame, pairs: int, *, tuning_calls: int = 0) -> None:
        """What the decisions on so many pairs took; a sum over judges is NaN if one of them does not know its part."""
        parts = [part for _, part in calls.groupby("judge", sort=False)]
        totals = {
            name: sum((_known_sum(part[name]) for part in parts), start=0.0 if parts else NAN)
            for name in ("tokens_in", "tokens_out", "cost")
        }
        currencies = {self.currencies[name] for name in pd.unique(calls["judge"]) if name in self.currencies}
        if len(currencies) > 1 and np.isfinite(totals["cost"]):
            totals["cost"] = NAN
            self.note(repair, f"costs in several currencies have no sum: {', '.join(sorted(currencies))}")
        requests = _known_sum(calls["attempts"])
        self.spent.append(
            {
                "judge": self.name,
                "repair": repair,
                "calls": len(calls),
                "requests": 0 if np.isnan(requests) else round(requests),
                **totals,
                "currency": self.currencies[self.name],
                "tuning_calls": tuning_calls,
                "pairs": pairs,
            }
        )

    def note(self, repair: str, text: str) -> None:
        """Something that a reader must know of a repair; nothing if the text is empty."""
        if text:
            self.notes.append({"judge": self.name, "repair": repair, "note": text})


def majority_of(votes: Sequence[pd.Series], labels: Sequence[str], rule: str = MAJORITY) -> pd.Series:
    """What several preferences for each pair decide together.

    Parameters
    ----------
    votes : sequence of k Series of shape (n,)
        A label, or NaN where there is no usable verdict: no vote, but it counts among the k.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    rule : str
        ``majority`` (more than k / 2) or ``m of k``, see :func:`judgelab.measure.votes.panel_decisions`.

    Returns
    -------
    Series of shape (n,)
        A label, ``ABSTAIN`` where none has enough votes, NaN where there is no vote at all.

    Raises
    ------
    ValueError
        If a vote is no label, or the rule is unknown.

    Examples
    --------
    >>> votes = [pd.Series(["A", "A", NAN]), pd.Series(["A", "B", NAN])]
    >>> majority_of(votes, ("A", "B", "TIE")).tolist()
    ['A', 'ABSTAIN', nan]
    """
    codes: Ints = np.column_stack([encode(vote, labels, "votes") for vote in votes])
    made = panel_decisions(codes, rule, labels=labels)
    # Codes below 0 count from the end: −1 is no vote, −2 an abstention.
    names = np.array([*labels, ABSTAIN, NAN], dtype=object)
    return pd.Series(names[made], dtype=object)


def without_abstentions(votes: pd.Series) -> pd.Series:
    """Preferences with NaN for ``ABSTAIN``, which is none.

    >>> without_abstentions(pd.Series(["A", "ABSTAIN"], dtype=object)).tolist()
    ['A', nan]
    """
    return votes.where(votes != ABSTAIN, NAN)


def _objects(values: Any, n: int) -> Any:
    """A value for every row, or one value for all, as Python objects: an all-missing column stays one of labels."""
    return np.full(n, values, dtype=object) if np.isscalar(values) else np.asarray(values, dtype=object)


def _known_sum(values: pd.Series) -> float:
    """Sum of what is known; NaN if nothing is."""
    known = values.dropna()
    return float(known.astype(float).sum()) if len(known) else NAN
