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

    Parameters
    ----------
    plain : DataFrame
        One row per plain call: judge, strategy, pass (``original``, ``swapped``), item_id, first, second, verdict,
        status. Only pairwise rows are read.
    probed : DataFrame
        One row per probe call: the same columns, with pass ``<probe>/<pass>`` or ``<probe>:<variant>/<pass>``, and
        category, system_x, system_y, probe, manipulated (system whose answer was changed, or empty), repeat,
        words_added, reason.

    Returns
    -------
    DataFrame
        judge, probe, variant, item_id, category, system_x, system_y, pass, repeat, first, second, target (the system
        whose answer a bias would favour, or empty), verdict (``A``, ``B``, ``TIE``, NaN without a usable one), base
        (the plain verdict in the same presentation), again (the first repetition's, NaN where there is none),
        words_added, reason. Rows keep their order.

    Raises
    ------
    ValueError
        If a column is missing, or a plain call occurs twice.
    """
    check_columns(plain, ["judge", "strategy", "pass", "item_id", "first", "second", "verdict", "status"], "plain")
    needed = ["judge", "pass", "item_id", "category", "system_x", "system_y", "first", "second", "verdict", "status"]
    check_columns(probed, [*needed, "probe", "manipulated", "repeat", "words_added", "reason"], "probed")
    if probed.empty:
        return pd.DataFrame(columns=list(COLUMNS))
    label = probed["pass"].str.rpartition("/")
    table = probed.assign(
        **{"variant": label[0].str.partition(":")[2].str.replace("-", "/"), "pass": label[2]},
        verdict=_usable(probed),
        target=_target(probed),
        reason=probed["reason"].fillna(""),
    )
    pairwise = plain[plain["strategy"] == "pairwise"]
    first = table[(table["probe"] == "repetition") & (table["repeat"] == 1)]
    table = table.merge(_verdicts(pairwise.assign(verdict=_usable(pairwise)), "base"), on=PLACE, how="left")
    table = table.merge(_verdicts(first, "again"), on=PLACE, how="left")
    return table[list(COLUMNS)]


def _usable(calls: pd.DataFrame) -> pd.Series:
    """The verdicts of calls that have one."""
    return calls["verdict"].astype(object).where(calls["status"] == "verdict", float("nan"))


def _target(probed: pd.DataFrame) -> pd.Series:
    """The system that a bias would favour: the one whose answer was changed, or the other one."""
    changed = probed["manipulated"].astype(object)
    other = probed["first"].astype(object).where(probed["first"] != changed, probed["second"].astype(object))
    return changed.where(~probed["probe"].isin(AVOIDED) | (changed == ""), other)


def _verdicts(calls: pd.DataFrame, name: str) -> pd.DataFrame:
    """The verdicts of calls by their place, each occurring once."""
    twice = calls.duplicated(PLACE).to_numpy()
    if twice.any():
        raise ValueError(f"{int(twice.sum())} of {len(calls)} calls of one presentation occur twice")
    return calls[[*PLACE, "verdict"]].rename(columns={"verdict": name})
