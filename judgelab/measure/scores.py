"""Do a judge's scores order answers as people's do, and how far are they apart?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.answers import answers_of, check_score_columns
from judgelab.measure.association import association_rows
from judgelab.measure.chance import weighted_kappa_rows
from judgelab.measure.coding import excluded_note
from judgelab.measure.correlation import CORRELATIONS, correlation_rows
from judgelab.measure.estimates import Place, Settings, mean_row
from judgelab.measure.icc import icc_rows
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import frame, joined

__all__ = ["score_table"]

NAN = float("nan")
LONGEST_SCALE = 100  # steps between whole numbers up to which weighted kappas are given


def score_table(normalized: pd.DataFrame, *, ci_level: float, resamples: int, seed: int) -> pd.DataFrame:
    """Judges' direct totals against the reviewers' mean scores; one point an answer of an item.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`; judges without planned direct calls have no rows.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows with strategy and pass ``direct``:

        - ``spearman``, ``kendall`` (τ_b): rank correlation over answers of the whole study, −1 to 1; NaN with fewer
          than three answers or a constant side;
        - ``mean_absolute_difference``: mean |judge − human| in units of the scale;
        - ``mean_difference``: mean (judge − human); above 0 the judge is lenient;
        - ``pearson``, ``spearman``, ``kendall`` within items and between systems, see
          :func:`judgelab.measure.correlation.correlation_table`; column ``level`` says which (data_set, document,
          system; empty for what is no correlation);
        - ``icc_2_1``, ``icc_2_k``, ``icc_3_1`` of the two, see :func:`judgelab.measure.icc.icc_rows`;
        - ``cohen_kappa_linear``, ``cohen_kappa_quadratic`` where every score of both is a whole number, at most 100
          steps apart;
        - ``mean_score`` and ``sd_score`` (n − 1) of the judge's totals, by ``system=<s>``.

        Intervals: bootstrap over whole items; ``n_used`` counts items, the note the answers.

    Raises
    ------
    ValueError
        If a column is missing.

    Notes
    -----
    The two scales are compared as they are: a difference means something only if people and judge used one scale.
    Sources: Spearman, 1904; Kendall, 1945 (ties). Estimates are those of scipy.stats.
    """
    check_score_columns(normalized)
    settings = Settings(ci_level, resamples, seed)
    planned = normalized[normalized["planned_direct"].to_numpy(dtype=bool)]
    lines: list[dict[str, Any]] = []
    levels: dict[int, str] = {}
    for judge, group in planned.groupby("judge", sort=False):
        answers = answers_of(group)
        items = pd.factorize(answers["item_id"])[0].astype(np.int64)
        human, total = answers["human"].to_numpy(), answers["judge"].to_numpy()
        place = Place(str(judge), "direct", "direct")
        lines += association_rows(place, items, human, total, settings=settings)
        scored = answers.assign(item_id=items)
        for level, line in correlation_rows(place, scored, settings=settings):
            if level != "data_set" or line["measure"] == "pearson":
                lines.append(line)
                levels[len(lines) - 1] = level
        lines += icc_rows(place, items, np.column_stack([human, total]), settings=settings)
        lines += _weighted_kappas(place, items, human, total, settings)
        lines += _spread_rows(place, items, answers["system"].to_numpy(), total, settings)
    named = [
        levels.get(place, "data_set" if line["measure"] in CORRELATIONS else "") for place, line in enumerate(lines)
    ]
    return frame(lines).assign(level=named)


def _weighted_kappas(
    place: Place, items: Ints, human: Floats, total: Floats, settings: Settings
) -> Iterator[dict[str, Any]]:
    """Weighted kappas of whole numbers: distances are those of the scale, whether its ends were used or not."""
    valid = ~np.isnan(human) & ~np.isnan(total)
    given = np.concatenate([human[valid], total[valid]])
    if not len(given) or (given != np.round(given)).any():
        return
    low, high = int(given.min()), int(given.max())
    if high - low > LONGEST_SCALE:
        return
    codes = [np.where(valid, np.nan_to_num(each) - low, -1).astype(np.int64) for each in (human, total)]
    order = [str(value) for value in range(low, high + 1)]
    note = excluded_note(len(valid), "answers", without_both_scores=int((~valid).sum()))
    for line in weighted_kappa_rows("cohen_kappa", place, items, *codes, order=order, settings=settings, note=note):
        yield line | {"method": line["method"].replace(", ".join(order), f"{low} to {high}", 1)}


def _spread_rows(
    place: Place, items: Ints, systems: NDArray[Any], totals: Floats, settings: Settings
) -> Iterator[dict[str, Any]]:
    for system in pd.unique(pd.Series(systems, dtype=object)):
        chosen = systems == system
        values, of = totals[chosen], items[chosen]
        where = Place(place.judge, place.strategy, place.pass_, f"system={system}")
        note = excluded_note(len(values), "answers", without_usable_verdict=int(np.isnan(values).sum()))
        yield mean_row("mean_score", where, of, values, settings=settings, note=note)
        scored = values[~np.isnan(values)]
        common = {"n_used": len(scored), "n_excluded": len(values) - len(scored)}
        if len(scored) < 2:
            reason = joined(f"undefined: {len(scored)} answers, 2 are needed", note)
            yield where.row("sd_score", NAN, note=reason, **common)
        else:
            method = "sample standard deviation (n - 1), no interval"
            yield where.row("sd_score", float(scored.std(ddof=1)), method=method, note=note, **common)
