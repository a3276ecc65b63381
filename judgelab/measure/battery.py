"""The whole bias battery in one table: what the verdicts that exist show, and what the probes show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from judgelab.measure.bias import bias_table
from judgelab.measure.choice_model import choice_table
from judgelab.measure.contradictions import contradiction_table
from judgelab.measure.drift import drift_table
from judgelab.measure.label_use import label_use_table
from judgelab.measure.length import length_table
from judgelab.measure.leniency import criteria_of, leniency_table
from judgelab.measure.probes import probe_table
from judgelab.measure.rows import COLUMNS

__all__ = ["SIMILAR", "battery_table"]

SIMILAR = 1.25  # the longer of two answers of similar length has at most so many times the words of the shorter


def battery_table(
    verdicts: pd.DataFrame,
    normalized: pd.DataFrame,
    pairs: pd.DataFrame,
    *,
    labels: Sequence[str],
    families: Mapping[str, Sequence[str]],
    system_families: Mapping[str, str | None],
    judge_families: Mapping[str, str | None],
    acceptance_threshold: float | None,
    scale: tuple[float, float],
    recorded: Sequence[str] = (),
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Every bias of every judge: probes first, then length, family, the regression, leniency, drift, ties, reasons.

    Parameters
    ----------
    verdicts : DataFrame
        One row per planned plain call, with ``order``.
    normalized : DataFrame
        The same verdicts as preferences, see :func:`judgelab.measure.preferences.normalize`.
    pairs : DataFrame
        The probes' calls, see :func:`judgelab.measure.matched_pairs.matched_pairs`; empty without probes.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    families : mapping of str to sequence of str
        The systems of each family that holds some of them, but not all.
    system_families, judge_families : mapping of str to str or None
        Family of each system and of each judge.
    acceptance_threshold : float or None
        Total from which an answer counts as accepted.
    scale : tuple of float
        Ends of the judge's scale.
    recorded : sequence of str
        Judges whose verdicts were made elsewhere: the order of their calls is not known, so nothing is said of drift.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        The rows of :func:`~judgelab.measure.probes.probe_table`, :func:`~judgelab.measure.bias.bias_table`,
        :func:`~judgelab.measure.choice_model.choice_table`, :func:`~judgelab.measure.length.length_table`,
        :func:`~judgelab.measure.leniency.leniency_table`, :func:`~judgelab.measure.drift.drift_table`,
        :func:`~judgelab.measure.label_use.label_use_table` and
        :func:`~judgelab.measure.contradictions.contradiction_table`, one below the other.
    """
    intervals: dict[str, Any] = {"ci_level": ci_level, "resamples": resamples, "seed": seed}
    minimum, maximum = scale
    bounds: dict[str, Any] = {"acceptance_threshold": acceptance_threshold, "minimum": minimum, "maximum": maximum}
    timed = verdicts[~verdicts["judge"].isin(list(recorded))]
    tables = [
        probe_table(pairs, **intervals),
        bias_table(normalized, labels=labels, families=families, **intervals),
        choice_table(
            normalized,
            labels=labels,
            families=system_families,
            judge_families=judge_families,
            ci_level=ci_level,
        ),
        length_table(normalized, labels=labels, similar=SIMILAR, **intervals),
        leniency_table(normalized, criteria=criteria_of(verdicts), **bounds, **intervals),
        drift_table(timed, **intervals),
        label_use_table(normalized, labels=labels, **intervals),
        contradiction_table(verdicts, **bounds, **intervals),
    ]
    return pd.concat([table for table in tables if len(table)], ignore_index=True)[list(COLUMNS)]
