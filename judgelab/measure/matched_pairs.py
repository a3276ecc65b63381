"""The matched pairs of the probes: every probe call beside the plain verdict in the same presentation."""

from __future__ import annotations

import pandas as pd

from judgelab.measure.coding import check_columns

__all__ = ["AVOIDED", "matched_pairs"]

AVOIDED = ("surface_noise",)  # the answer that was changed is the one that a bias would move away from
PLACE = ["judge", "item_id", "first", "second", "pass"]
COLUMNS = (
    *("judge", "probe", "variant", "item_id", "category", "system_x", "system_y", "pass", "repeat", "first"),
    *("second", "target", "verdict", "base", "again", "words_added", "reason"),
)


def matched_pairs(plain: pd.DataFrame, probed: pd.DataFrame) -> pd.DataFrame:
    """One row per probe call with the verdicts that it is compared with.

    A presentation is a judge, an item, the systems shown first and second, and the pass. A probe that shows other
    systems than the plain passes (``identical``: one answer twice) has no plain verdict to be compared with.

    Parameters
    ----------
    plain : DataFrame
        One row per plain call: judge, strategy, pass (``original``, ``swapped``), item_id, first, second, verdict,
        status. Only pairwise rows are read.
    probed : DataFrame
        One row per probe call: the same columns but strategy, with pass ``<probe>/<pass>`` or
        ``<probe>:<variant>/<pass>`` (the labels of a variant joined by ``-``), and category, system_x, system_y, probe,
        manipulated (system whose answer was changed, or empty), repeat (0, or 1, 2, ... in ``repetition``),
        words_added, reason. Without rows it needs no columns.

    Returns
    -------
    DataFrame
        judge, probe, variant, item_id, category, system_x, system_y, pass, repeat, first, second, target (the system
        whose answer a bias would favour, or empty: the changed one, in ``surface_noise`` the other one), verdict
        (``A``, ``B``, ``TIE``, NaN without a usable one), base (the plain verdict in the same presentation), again (the
        first repetition's; in its own row its own), both NaN where there is none, words_added, reason (empty with a
        verdict). Rows keep their order and are numbered from 0.

    Raises
    ------
    ValueError
        If a column is missing, or a presentation has two plain calls or two first repetitions.

    Examples
    --------
    >>> call = {"judge": "j", "item_id": "i", "first": "X", "second": "Y", "status": "verdict"}
    >>> plain = pd.DataFrame([{**call, "strategy": "pairwise", "pass": "original", "verdict": "A"}])
    >>> more = {"category": "c", "system_x": "X", "system_y": "Y", "repeat": 0, "words_added": 9, "reason": ""}
    >>> changed = {"probe": "padding", "pass": "padding/original", "manipulated": "Y", "verdict": "B"}
    >>> found = matched_pairs(plain, pd.DataFrame([call | more | changed]))
    >>> found[["probe", "pass", "target", "base", "verdict"]].to_numpy().tolist()
    [['padding', 'original', 'Y', 'A', 'B']]
    """
    check_columns(plain, ["judge", "strategy", "pass", "item_id", "first", "second", "verdict", "status"], "plain")
    if probed.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    needed = ["judge", "pass", "item_id", "category", "system_x", "system_y", "first", "second", "verdict", "status"]
    check_columns(probed, [*needed, "probe", "manipulated", "repeat", "words_added", "reason"], "probed")
    label = probed["pass"].str.rpartition("/")
    table = probed.assign(
        **{"variant": label[0].str.partition(":")[2].str.replace("-", "/"), "pass": label[2]},
        verdict=_usable(probed),
        target=_target(probed),
        reason=probed["reason"].astype(object).fillna(""),
    )
    pairwise = plain[plain["strategy"] == "pairwise"]
    once_more = table[(table["probe"] == "repetition") & (table["repeat"] == 1)]
    for calls, name in ((pairwise.assign(verdict=_usable(pairwise)), "base"), (once_more, "again")):
        table = table.merge(_verdicts(calls, name), on=PLACE, how="left")
    return table[list(COLUMNS)]


def _usable(calls: pd.DataFrame) -> pd.Series:
    """The verdicts of calls that have one."""
    return calls["verdict"].astype(object).where(calls["status"] == "verdict", float("nan"))


def _target(probed: pd.DataFrame) -> pd.Series:
    """The system that a bias would favour: the one whose answer was changed, or the other one."""
    changed = probed["manipulated"].astype(object).fillna("")
    other = probed["first"].astype(object).where(probed["first"] != changed, probed["second"].astype(object))
    return changed.where(~probed["probe"].isin(AVOIDED) | (changed == ""), other)


def _verdicts(calls: pd.DataFrame, name: str) -> pd.DataFrame:
    """The verdicts of calls by their presentation, each occurring once."""
    twice = calls.duplicated(PLACE).to_numpy()
    if twice.any():
        what, offender = {"base": "plain calls", "again": "first repetitions"}[name], calls[twice].iloc[0]
        where = f"judge {offender['judge']}, item {offender['item_id']}, pass {offender['pass']}"
        raise ValueError(f"{int(twice.sum())} of {len(calls)} {what} repeat a presentation; first {where}")
    return calls[[*PLACE, "verdict"]].astype(object).rename(columns={"verdict": name})
