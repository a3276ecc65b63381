"""Strengths with the first place and length held: the same model with terms for both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import pandas as pd

from judgelab.measure.consensus import consensus
from judgelab.measure.leaderboard import LeaderboardOptions
from judgelab.measure.strength_table import strength_table

__all__ = ["controlled_strengths"]

FIRST = "first_position"
TERMS = (FIRST, "length")


def controlled_strengths(
    matches: pd.DataFrame,
    *,
    terms: Sequence[str] = TERMS,
    ci_level: float,
    resamples: int,
    seed: int,
    judge: str = "panel",
    **options: Unpack[LeaderboardOptions],
) -> pd.DataFrame:
    """Strengths that are held against the first place and the lengths of the answers.

    Every verdict is a match of its own here, whatever the panel's threshold: a consensus has no first place.

    Parameters
    ----------
    matches : DataFrame
        See :func:`judgelab.measure.leaderboard.leaderboard`; ``first`` for the place, ``words_x`` and ``words_y`` for
        the length. A term of which no match knows anything is left out.
    terms : sequence of str
        ``first_position`` and ``length``, or one of them.
    ci_level, resamples, seed, judge, options
        See :func:`judgelab.measure.leaderboard.leaderboard`.

    Returns
    -------
    DataFrame
        Rows of :func:`judgelab.measure.strength_table.strength_table`: the strengths by system, and the effects.

    Raises
    ------
    ValueError
        If a term is neither of the two, or as :func:`judgelab.measure.leaderboard.leaderboard`.
    """
    if unknown := [term for term in terms if term not in TERMS]:
        raise ValueError(f"terms: {', '.join(map(repr, unknown))}; allowed are {', '.join(TERMS)}")
    settled = consensus(matches, None, judge=judge)
    known = {
        FIRST: "first" in settled and settled["first"].notna().any(),
        "length": bool({"words_x", "words_y"} <= set(settled))
        and settled[["words_x", "words_y"]].notna().all(axis=1).any(),
    }
    held = [term for term in terms if known[term]]
    model: dict[str, Any] = {
        "ties": options.get("ties", "half"),
        "undefined": options.get("undefined", "penalise"),
        "prior_sd": options.get("prior_sd", 2.0),
        "start": options.get("start", 1000.0),
        "scale": options.get("scale", 400.0),
    }
    return strength_table(
        settled,
        judge=judge,
        first_position=FIRST in held,
        covariates=[term for term in held if term != FIRST],
        ci_level=ci_level,
        resamples=resamples,
        seed=seed,
        **model,
    )
