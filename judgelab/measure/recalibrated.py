"""Scores as probabilities on evaluation items: as the judge gave them, and as recalibrated on development items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.classification import binary_rows
from judgelab.measure.estimates import Place, Settings
from judgelab.measure.reliability_curve import calibration_rows, reliability_curve
from judgelab.measure.resampling import Floats
from judgelab.measure.rows import frame

__all__ = ["curve_table", "recalibration_table"]

READINGS = {"raw": "probability", "isotonic": "recalibrated"}
TOLERANCE = 1e-9  # weighted totals such as 4.2 have no exact binary form


def curve_table(answers: pd.DataFrame, *, ci_level: float, bins: int = 10) -> pd.DataFrame:
    """The reliability curve of every judge, raw and recalibrated.

    Parameters
    ----------
    answers : DataFrame
        See :class:`judgelab.measure.repair_decisions.Repaired`.
    ci_level : float
        Coverage of the intervals.
    bins : int
        Number of bins of equal width.

    Returns
    -------
    DataFrame
        judge, reading (``raw``, ``isotonic``), then the columns of
        :func:`judgelab.measure.reliability_curve.reliability_curve`.
    """
    parts = []
    for judge, group in answers.groupby("judge", sort=False):
        items = group["item_id"].to_numpy()
        for reading, column in READINGS.items():
            probabilities, accepted = (group[name].to_numpy(dtype=np.float64) for name in (column, "accepted"))
            curve = reliability_curve(probabilities, accepted, items, bins=bins, ci_level=ci_level)
            curve.insert(0, "reading", reading)
            curve.insert(0, "judge", str(judge))
            parts.append(curve)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(_CURVE))


_CURVE = (
    *("judge", "reading", "bin", "low", "high", "mean_probability", "accepted", "n", "rate", "ci_low", "ci_high"),
    "note",
)


def recalibration_table(
    answers: pd.DataFrame, choices: pd.DataFrame, *, ci_level: float, resamples: int, seed: int, bins: int = 10
) -> pd.DataFrame:
    """What recalibration and a chosen threshold do on evaluation answers.

    Parameters
    ----------
    answers, choices : DataFrame
        See :class:`judgelab.measure.repair_decisions.Repaired`.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.
    bins : int
        Number of bins of the calibration error.

    Returns
    -------
    DataFrame
        For each judge the rows of :func:`~judgelab.measure.reliability_curve.calibration_rows` (slices
        ``reading=raw`` and ``reading=isotonic``) and of :func:`~judgelab.measure.classification.binary_rows` at the
        protocol's threshold and at the one chosen on development items (slices ``threshold=protocol`` and
        ``threshold=chosen``).
    """
    settings = Settings(ci_level, resamples, seed)
    lines: list[dict[str, Any]] = []
    for judge, group in answers.groupby("judge", sort=False):
        items = pd.factorize(group["item_id"])[0].astype(np.int64)
        accepted = group["accepted"].to_numpy(dtype=np.float64)
        for reading, column in READINGS.items():
            place = Place(str(judge), "direct", "direct", f"reading={reading}")
            values = group[column].to_numpy(dtype=np.float64)
            lines += calibration_rows(place, items, values, accepted, bins=bins, settings=settings)
        chosen = choices[(choices["judge"] == judge) & (choices["what"] == "acceptance threshold")]
        totals = group["total"].to_numpy(dtype=np.float64)
        for _, choice in chosen.iterrows():
            lines += _at_thresholds(str(judge), items, totals, accepted, choice, settings)
    return frame(lines)


def _at_thresholds(
    judge: str, items: Any, totals: Floats, accepted: Floats, choice: pd.Series, settings: Settings
) -> Iterator[dict[str, Any]]:
    """TPR, TNR and the rest at the protocol's threshold and at the chosen one."""
    for name, cut in (("protocol", float(choice["default"])), ("chosen", float(choice["value"]))):
        judged = np.where(np.isnan(totals), np.nan, (totals >= cut - TOLERANCE).astype(float))
        place = Place(judge, "direct", "direct", f"threshold={name}")
        yield from binary_rows(place, items, accepted, judged, settings=settings, note=f"accepts from {cut:g}")
