"""Tables of the ranking for people: gaps between neighbours, duels, disputed pairs, versions of a match log."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from judgelab.report.leaderboard import letters_of
from judgelab.report.words import interval_text, number_text, p_text, plural

__all__ = ["disputed_table", "duel_table", "gap_table", "versions_table"]

SHORT = 12  # characters of a SHA-256 that tell versions apart for people


def gap_table(gaps: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """One line a pair of neighbours: who stands above whom, the gap in points, the chance to win, and its band.

    Parameters
    ----------
    gaps
        ``Leaderboard.gaps``: rows of ``elo_gap`` and ``win_probability``, with the column ``band``.
    table
        ``Leaderboard.table``: which systems are told apart.

    Returns
    -------
    pandas.DataFrame
        Texts: above, below, gap [interval], chance to win [interval], band, and who is ahead: settled if the interval
        does not hold 0 and the two share no group of systems that are not told apart.
    """
    groups = {str(row["system"]): set(letters_of(row["letters"])) for row in _records(table)}
    chance = gaps[gaps["measure"] == "win_probability"].set_index("slice")
    lines = []
    for row in _records(gaps[gaps["measure"] == "elo_gap"]):
        above, _, below = str(row["slice"]).removeprefix("gap=").partition("|")
        won = chance.loc[row["slice"]]
        known = np.isfinite(row["ci_low"])
        lines.append(
            {
                "above": above,
                "below": below,
                "gap in Elo points": f"{row['estimate']:.0f} [{row['ci_low']:.0f}, {row['ci_high']:.0f}]"
                if known
                else number_text(row["estimate"], 0),
                "chance to win": f"{won['estimate']:.2f} [{won['ci_low']:.2f}, {won['ci_high']:.2f}]"
                if known
                else number_text(won["estimate"], 2),
                "band": row["band"],
                "who is ahead": "settled"
                if known and row["ci_low"] > 0 and not groups.get(above, set()) & groups.get(below, set())
                else "undecided",
            }
        )
    columns = ["above", "below", "gap in Elo points", "chance to win", "band", "who is ahead"]
    return pd.DataFrame(lines, columns=columns)


def duel_table(duels: pd.DataFrame) -> pd.DataFrame:
    """One line a pair of systems, the surest first: items won, lost and tied, the share, p, and the conclusion.

    A pair without a decisive item says so instead of a share, and has no p; such pairs stand last.

    Parameters
    ----------
    duels
        See :func:`judgelab.measure.head_to_head.head_to_head_table`.
    """
    lines = []
    for row in _records(duels.sort_values("p", kind="stable")):
        ahead = {"x ahead": f"{row['system_x']} ahead", "y ahead": f"{row['system_y']} ahead"}
        lines.append(
            {
                "system": row["system_x"],
                "against": row["system_y"],
                "won / tied / lost": f"{row['wins_x']} / {row['ties']} / {row['wins_y']}",
                "share of decisive": _share(row),
                "p": _p(row["p"]),
                "p (Holm)": _p(row["p_holm"]),
                "items needed": "" if pd.isna(row["needed"]) else f"{row['needed']:.0f}",
                "conclusion": ahead.get(row["conclusion"], row["conclusion"]),
            }
        )
    columns = ["system", "against", "won / tied / lost", "share of decisive", "p", "p (Holm)", "items needed"]
    return pd.DataFrame(lines, columns=[*columns, "conclusion"])


def disputed_table(pairs: pd.DataFrame) -> pd.DataFrame:
    """One line a disputed pair, the most disputed first, with who voted for which of the two.

    Parameters
    ----------
    pairs
        See :func:`judgelab.measure.disputes.disputed_pairs`.
    """
    votes = [
        f"{row['votes_x']} : {row['votes_y']}" + (f", {plural(row['votes_tie'], 'tie')}" if row["votes_tie"] else "")
        for row in pairs.to_dict("records")
    ]
    return pd.DataFrame(
        {
            "item": pairs["item_id"],
            "system": pairs["system_x"],
            "against": pairs["system_y"],
            "votes": pd.Series(votes, index=pairs.index, dtype=object),
            "for the first": pairs["judges_x"],
            "for the second": pairs["judges_y"],
            "differ from themselves": pairs["judges_split"],
            "disagreement": pairs["disagreement"].round(2),
        }
    ).reset_index(drop=True)


def versions_table(versions: pd.DataFrame) -> pd.DataFrame:
    """The versions of protocol and items in a match log, with the beginnings of their hashes.

    Parameters
    ----------
    versions
        See :attr:`judgelab.judging.standing.Standing.versions`.
    """
    return pd.DataFrame(
        {
            "study": versions["study_id"],
            "rubric": versions["rubric_version"],
            "protocol": versions["protocol_sha256"].str[:SHORT],
            "items": versions["items_sha256"].str[:SHORT],
            "matches": versions["matches"],
            "items with a match": versions["items"],
            "systems": versions["systems"].map(len),
            "judges": versions["judges"].map(len),
        }
    )


def _share(row: dict[str, Any]) -> str:
    """The share of the decisive items that the first won, with its interval."""
    if pd.isna(row["win_share"]):
        return "no decisive item"
    bounds = interval_text(row)
    return f"{number_text(row['win_share'], 2)} {'(no interval)' if bounds == 'none' else bounds}"


def _p(value: float) -> str:
    """A p under a heading that says so; empty where there is none."""
    return "" if pd.isna(value) else p_text(value).removeprefix("p ").removeprefix("= ")


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
