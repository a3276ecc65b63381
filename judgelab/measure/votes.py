"""The votes of several judges side by side, and the rules by which they become one decision."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from judgelab.measure.coding import TIE, check_columns
from judgelab.measure.estimates import Place
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.views import ABSTAINED, Flags, each_judge

__all__ = [
    "KEY",
    "MAJORITY",
    "VETO",
    "Votes",
    "accept_panel",
    "panel_decisions",
    "panel_rules",
    "refuse_names",
    "votes_of",
]

NAN = float("nan")
PASSES = ("direct", "original", "swapped", "aggregated")
KEY = ["item_id", "system_x", "system_y"]
MAJORITY, VETO = "majority", "minority veto"


@dataclass(frozen=True)
class Votes:
    """The verdicts of several judges in one pass, one row a unit (item and pair of systems) planned for any of them.

    Judges stand in the order of their names and units in that of theirs, whatever the order of the table.

    Attributes
    ----------
    pass_ : str
        The pass.
    judges, absent : tuple of str
        The k judges with planned calls in this pass, and those asked for that have none.
    units : DataFrame of n rows
        item_id, system_x, system_y.
    items, human : arrays of shape (n,)
        Code of the item; code of the human label, −1 where there is none.
    codes : array of shape (n, k)
        Code of each judge's label; −1 where it has no usable verdict, was not asked, or abstained.
    planned : array of shape (n, k)
        Was the judge to be asked.
    """

    pass_: str
    judges: tuple[str, ...]
    absent: tuple[str, ...]
    units: pd.DataFrame
    items: Ints
    human: Ints
    codes: Ints
    planned: Flags

    @property
    def complete(self) -> Flags:
        """Units where every judge has a verdict."""
        return np.asarray((self.codes >= 0).all(axis=1))

    def place(self, judge: str = "", slice_: str = "all") -> Place:
        """Where rows of this pass stand."""
        return Place(judge, "direct" if self.pass_ == "direct" else "pairwise", self.pass_, slice_)

    @property
    def absent_note(self) -> str:
        """Which judges have no planned calls; empty if all have."""
        return f"no calls planned in this pass: {', '.join(self.absent)}" if self.absent else ""


def votes_of(
    normalized: pd.DataFrame, *, labels: Sequence[str], judges: Sequence[str] | None = None, pass_: str = "original"
) -> Votes:
    """Bring the judges' verdicts of one pass side by side.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    judges : sequence of str, optional
        Names of the judges that count; all if not given.
    pass_ : str
        ``direct``, ``original``, ``swapped`` or ``aggregated`` (the conservative rule over both).

    Raises
    ------
    ValueError
        If the pass is another, a judge is unknown or named twice, a preference is not one of ``labels``, a column is
        missing, a judge has a unit twice, or two judges have different human labels for a unit.
    """
    if pass_ not in PASSES:
        raise ValueError(f"pass is {pass_!r}; allowed are {', '.join(PASSES)}")
    check_columns(normalized, ["judge", *KEY], "normalized")
    known = [str(name) for name in pd.unique(normalized["judge"])]
    names = known if judges is None else list(judges)
    refuse_names(names, known)
    chosen = normalized[normalized["judge"].astype(str).isin(names)]
    parts: dict[str, pd.DataFrame] = {}
    for codes, (_, group) in zip(each_judge(chosen, labels), chosen.groupby("judge", sort=False), strict=True):
        planned = codes.planned_both if pass_ == "aggregated" else codes.planned[pass_]
        if planned.any():
            given = {"judge": codes.judge, "human": codes.human[planned], "code": getattr(codes, pass_)[planned]}
            parts[codes.judge] = group.loc[planned, KEY].astype(object).assign(**given)
    present = tuple(sorted(parts))
    absent = tuple(sorted(set(names) - set(present)))
    if not parts:
        none, table = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.int64)
        return Votes(pass_, (), absent, pd.DataFrame(columns=KEY, dtype=object), none, none, table, table > 0)
    long = pd.concat(parts.values(), ignore_index=True)
    long = long.sort_values(KEY, key=lambda column: column.astype(str), kind="stable", ignore_index=True)
    unit = long.groupby(KEY, sort=False).ngroup().to_numpy()
    first = np.unique(unit, return_index=True)[1]
    human, units = long["human"].to_numpy(np.int64), long.loc[first, KEY].reset_index(drop=True)
    for wrong, what in (
        (long.duplicated(["judge", *KEY]).to_numpy(), "repeat a judge and unit"),
        (human != human[first][unit], "have another human label than another judge's row of the unit"),
    ):
        if wrong.any():
            offender = long[wrong].iloc[0]
            raise ValueError(
                f"normalized: {int(wrong.sum())} of {len(long)} rows {what}; "
                f"first judge {offender['judge']}, item {offender['item_id']}"
            )
    column = np.searchsorted(np.array(present), long["judge"].to_numpy(dtype=str))
    votes = np.full((len(units), len(present)), -1, dtype=np.int64)
    asked = np.zeros(votes.shape, dtype=bool)
    votes[unit, column], asked[unit, column] = np.maximum(long["code"].to_numpy(np.int64), -1), True
    items = pd.factorize(units["item_id"])[0].astype(np.int64)
    return Votes(pass_, present, absent, units, items, human[first], votes, asked)


def refuse_names(names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse judges that are not known or are named twice.

    Raises
    ------
    ValueError
        With the number of such names and the first of them.
    """
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"{len(unknown)} of {len(names)} judges unknown, first {unknown[0]!r}; known are {', '.join(known)}"
        )
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if twice:
        raise ValueError(f"{len(twice)} of {len(names)} judges named twice, first {twice[0]!r}")


def panel_rules(n_judges: int) -> tuple[str, ...]:
    """The rules of a panel of n judges: ``majority``, ``k of n`` for each stricter k, ``minority veto``.

    Examples
    --------
    >>> panel_rules(5)
    ('majority', '4 of 5', '5 of 5', 'minority veto')
    """
    stricter = range(n_judges // 2 + 2, n_judges + 1)
    return (MAJORITY, *(f"{k} of {n_judges}" for k in stricter), VETO)


def _votes_needed(rule: str, n_judges: int, least: int) -> int:
    """The votes that decide by ``majority`` or ``k of n``."""
    if rule == MAJORITY:
        return n_judges // 2 + 1
    found = re.fullmatch(r"(\d+) of (\d+)", rule)
    if not found or int(found[2]) != n_judges or not least <= int(found[1]) <= n_judges:
        raise ValueError(
            f"rule is {rule!r}; allowed for {n_judges} judges are {MAJORITY}, {VETO} and "
            f"'k of {n_judges}' with k from {least} to {n_judges}"
        )
    return int(found[1])


def _check_veto(veto: int) -> None:
    if veto < 1:
        raise ValueError(f"veto is {veto}; allowed is 1 and more")


def panel_decisions(votes: Ints, rule: str, *, labels: Sequence[str], veto: int = 1) -> Ints:
    """What a panel prefers in each unit.

    With nₗ the votes for label l and k the number of judges, whether they voted or not:

    ===============  ==================================================================================================
    rule             decides for label l if
    ===============  ==================================================================================================
    majority         nₗ > k / 2
    m of k           nₗ ≥ m, for m above k / 2: no two labels can have so many
    minority veto    nₗ is larger than every other label's, and, if l is a system, fewer than ``veto`` judges prefer
                     another system; votes for ``TIE`` veto nothing, and ``TIE`` cannot be vetoed
    ===============  ==================================================================================================

    Otherwise the panel abstains. A missing verdict is no vote: it helps no label and vetoes none.

    Parameters
    ----------
    votes : array of shape (n, k)
        Codes of ``labels``, negative where a judge has no usable verdict.
    rule : str
        One of the above.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    veto : int
        Votes for the opposite that veto a system, 1 or more.

    Returns
    -------
    array of shape (n,)
        Code of the panel's label; −2 where it abstains, −1 where no judge has a verdict.

    Raises
    ------
    ValueError
        If the rule is unknown or could decide for two labels, ``veto`` is below 1, or a code is not one of a label.

    Notes
    -----
    A majority of judges: Verga et al., "Replacing judges with juries", 2024.

    Examples
    --------
    >>> votes = np.array([[0, 0, 1], [0, 0, 2], [0, 1, 2], [0, -1, -1]])
    >>> panel_decisions(votes, "majority", labels=("ALPHA", "BETA", "TIE")).tolist()
    [0, 0, -2, -2]
    >>> panel_decisions(votes, "minority veto", labels=("ALPHA", "BETA", "TIE")).tolist()
    [-2, 0, -2, 0]
    """
    _check_veto(veto)
    wrong = votes >= len(labels)
    if wrong.any():
        raise ValueError(f"{int(wrong.sum())} of {votes.size} votes are no code of a label, first {votes[wrong][0]}")
    counts = (votes[:, :, np.newaxis] == np.arange(len(labels))).sum(axis=1)
    most = counts.max(axis=1, initial=0)
    if rule == VETO:
        system = np.array([label != TIE for label in labels], dtype=bool)
        opposed = np.where(system, (counts * system).sum(axis=1, keepdims=True) - counts, 0)
        wins = (counts == most[:, np.newaxis]) & (opposed < veto)
        wins &= (counts == most[:, np.newaxis]).sum(axis=1, keepdims=True) == 1
    else:
        wins = counts >= _votes_needed(rule, votes.shape[1], votes.shape[1] // 2 + 1)
    decided = np.where(wins.any(axis=1), wins.argmax(axis=1) if len(labels) else 0, ABSTAINED)
    return np.where(most > 0, decided, -1).astype(np.int64)


def accept_panel(votes: Floats, rule: str, *, veto: int = 1) -> Floats:
    """Whether a panel accepts each answer, from votes to accept (1) or to reject it (0).

    ===============  ==================================================================================================
    rule             decision
    ===============  ==================================================================================================
    majority         accept if more than half of all k judges accept, reject if more than half reject, else neither
    m of k           accept if at least m judges accept, m from 1 to k, else reject
    minority veto    reject if at least ``veto`` judges reject, else accept
    ===============  ==================================================================================================

    A missing vote is no vote: ``m of k`` then rejects the more and ``minority veto`` accepts the more.

    Parameters
    ----------
    votes : array of shape (n, k)
        1 or true accept, 0 or false reject, NaN no usable verdict.
    rule : str
        One of the above.
    veto : int
        Rejections that reject, 1 or more.

    Returns
    -------
    array of shape (n,)
        1 accept, 0 reject, NaN where the majority decides neither or no judge has a verdict.

    Raises
    ------
    ValueError
        If the rule is unknown, ``veto`` is below 1, or a vote is none of 0, 1 and NaN.

    Notes
    -----
    Minority veto: Jain et al., "Beyond consensus: mitigating the agreeableness bias in LLM judge evaluations", 2025.

    Examples
    --------
    >>> votes = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 0, np.nan]])
    >>> [accept_panel(votes, rule).tolist() for rule in ("majority", "3 of 3", "minority veto")]
    [[1.0, 1.0, 0.0, nan], [0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    """
    _check_veto(veto)
    given = np.asarray(votes, dtype=np.float64)
    wrong = ~np.isnan(given) & (given != 0) & (given != 1)
    if wrong.any():
        raise ValueError(
            f"{int(wrong.sum())} of {given.size} votes are none of 0, 1 and NaN, first {given[wrong][0]:g}"
        )
    yes, no = (given == 1).sum(axis=1), (given == 0).sum(axis=1)
    if rule == VETO:
        decided = np.where(no >= veto, 0.0, 1.0)
    elif rule == MAJORITY:
        needed = given.shape[1] // 2 + 1
        decided = np.where(yes >= needed, 1.0, np.where(no >= needed, 0.0, NAN))
    else:
        decided = np.where(yes >= _votes_needed(rule, given.shape[1], 1), 1.0, 0.0)
    return np.where(yes + no > 0, decided, NAN)
