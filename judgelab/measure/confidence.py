"""Signals of how sure a judge is of each of its preferences: said, of its tokens, of the other judges, of the swap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from judgelab.measure.coding import check_columns
from judgelab.measure.resampling import Floats
from judgelab.measure.votes import KEY, Votes, refuse_names, votes_of

__all__ = ["SIGNALS", "STATED", "confidence_signals"]

NAN = float("nan")
SIGNALS = ("stated", "logprob_margin", "panel_spread", "swap_stability")
STATED = {"low": 1.0, "medium": 2.0, "high": 3.0}
LONG = ("judge", "pass", *KEY, "signal", "confidence", "right")


def confidence_signals(
    verdicts: pd.DataFrame, normalized: pd.DataFrame, *, labels: Sequence[str], panel: Sequence[str] | None = None
) -> pd.DataFrame:
    """How sure is a judge of each of its preferences, by every signal there is?

    ==============  =================================  ===============================================================
    signal          passes                             confidence
    ==============  =================================  ===============================================================
    stated          original, swapped                  the reply's own: low 1, medium 2, high 3
    logprob_margin  original, swapped                  as given, if ``verdicts`` has the column
    panel_spread    direct, original, swapped          share of the other judges of the panel with a usable verdict in
                                                       the same pass that give the same preference
    swap_stability  original, swapped                  1 if both passes give the same preference, 0 if not
    ==============  =================================  ===============================================================

    Parameters
    ----------
    verdicts : DataFrame
        One row per planned call: judge, strategy, pass, item_id, system_x, system_y, status, confidence (optional),
        logprob_margin (optional). Only pairwise rows of status ``verdict`` are read.
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`; the same verdicts as preferences.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    panel : sequence of str, optional
        Judges whose votes count for ``panel_spread``, for instance without the controls; all if not given. A judge
        never counts for itself.

    Returns
    -------
    DataFrame
        judge, pass, item_id, system_x, system_y, signal, confidence, right (1 the human label, 0 not, NaN without a
        usable verdict or a human label). One row per planned judgment and signal, with NaN for a confidence that is
        not known; none for a signal that a judge has nowhere in a pass.

    Raises
    ------
    ValueError
        If a column is missing, a stated confidence is unknown, a margin is infinite, a call occurs twice, a judge of
        ``panel`` is unknown or named twice, or as :func:`judgelab.measure.votes.votes_of`.
    """
    check_columns(verdicts, ["judge", "strategy", "pass", *KEY, "status"], "verdicts")
    check_columns(normalized, ["judge"], "normalized")
    members = [str(name) for name in pd.unique(normalized["judge"])] if panel is None else list(panel)
    refuse_names(members, [str(name) for name in pd.unique(normalized["judge"])])
    calls = verdicts[(verdicts["strategy"] == "pairwise") & (verdicts["status"] == "verdict")]
    given = {"stated": _stated(calls), "logprob_margin": _margins(calls)}
    passes = {name: votes_of(normalized, labels=labels, pass_=name) for name in ("direct", "original", "swapped")}
    parts: list[pd.DataFrame] = []
    for name, votes in passes.items():
        known = {"panel_spread": _spread(votes, members)}
        if name != "direct":
            here = (calls["pass"] == name).to_numpy()
            known |= {signal: _aligned(calls[here], values[here], votes) for signal, values in given.items()}
            other = passes["swapped" if name == "original" else "original"]
            known["swap_stability"] = _stability(votes, other)
        right = np.where((votes.codes >= 0) & (votes.human >= 0)[:, np.newaxis], votes.codes, NAN)
        right = np.where(np.isnan(right), NAN, right == votes.human[:, np.newaxis])
        for number, judge in enumerate(votes.judges):
            planned = votes.planned[:, number]
            for signal in SIGNALS:
                if signal in known and not np.isnan(known[signal][planned, number]).all():
                    values = {"confidence": known[signal][planned, number], "right": right[planned, number]}
                    part = votes.units[planned].assign(judge=judge, signal=signal, **values)
                    parts.append(part.assign(**{"pass": name}))
    if not parts:
        empty = pd.DataFrame(columns=list(LONG), dtype=object)
        return empty.astype({"confidence": np.float64, "right": np.float64})
    return pd.concat(parts, ignore_index=True)[list(LONG)]


def _stated(calls: pd.DataFrame) -> Floats:
    if "confidence" not in calls:
        return np.full(len(calls), NAN)
    words = calls["confidence"].astype(object)
    codes: Floats = np.asarray(words.map(STATED).to_numpy(dtype=np.float64))
    wrong = np.isnan(codes) & words.notna().to_numpy()
    if wrong.any():
        first = words.to_numpy()[wrong][0]
        raise ValueError(
            f"verdicts: {int(wrong.sum())} of {len(words)} stated confidences are unknown, first {first!r}; "
            f"allowed are {', '.join(STATED)}"
        )
    return codes


def _margins(calls: pd.DataFrame) -> Floats:
    if "logprob_margin" not in calls:
        return np.full(len(calls), NAN)
    values: Floats = np.asarray(pd.to_numeric(calls["logprob_margin"]).to_numpy(dtype=np.float64))
    infinite = np.isinf(values)
    if infinite.any():
        count, first = int(infinite.sum()), values[infinite][0]
        raise ValueError(f"verdicts: {count} of {len(values)} margins are infinite, first {first:g}")
    return values


def _aligned(calls: pd.DataFrame, values: Floats, votes: Votes) -> Floats:
    """Values of calls as units × judges of the votes; NaN where there is none."""
    table = calls[["judge", *KEY]].astype(object).assign(value=values)
    twice = table.duplicated(["judge", *KEY]).to_numpy()
    if twice.any():
        first = table[twice].iloc[0]
        raise ValueError(
            f"verdicts: {int(twice.sum())} of {len(table)} calls occur twice in a pass; "
            f"first judge {first['judge']}, item {first['item_id']}"
        )
    result = np.full(votes.codes.shape, NAN)
    for number, judge in enumerate(votes.judges):
        one = table.loc[(table["judge"].astype(str) == judge).to_numpy(dtype=bool), [*KEY, "value"]]
        result[:, number] = votes.units.merge(one, on=KEY, how="left")["value"].to_numpy(dtype=np.float64)
    return result


def _stability(votes: Votes, other: Votes) -> Floats:
    """1 where the other pass gives the same preference, 0 where another, NaN where either gives none."""
    parts = [other.units.assign(judge=judge) for judge in other.judges]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["judge", *KEY], dtype=object)
    there = _aligned(table, other.codes.T.ravel().astype(np.float64), votes)
    return np.where((votes.codes >= 0) & (there >= 0), there == votes.codes, NAN)


def _spread(votes: Votes, panel: Sequence[str]) -> Floats:
    """The share of the other panel judges' verdicts that are the judge's; NaN without one of both."""
    member = np.isin(np.array(votes.judges, dtype=object), np.array(panel, dtype=object))
    shares = np.full(votes.codes.shape, NAN)
    for number in range(len(votes.judges)):
        own, counts = votes.codes[:, number], member & (np.arange(len(member)) != number)
        others = votes.codes[:, counts]
        same = ((others == own[:, np.newaxis]) & (others >= 0)).sum(axis=1)
        known = (others >= 0).sum(axis=1)
        np.divide(same, known, out=shares[:, number], where=(known > 0) & (own >= 0))
    return shares
