"""Correlations of rankings with experts' ranks as a table in the shape of the paper's Tables 1 and 2."""

from __future__ import annotations

import pandas as pd

__all__ = ["correlation_table"]


def correlation_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Correlations with the experts by threshold, in the shape of the paper's Tables 1 and 2.

    Parameters
    ----------
    rows : DataFrame
        Rows of :func:`judgelab.measure.expert_ranks.correlation_rows`, of one judge or panel; slices
        ``threshold=<t>`` and ``threshold=none``.

    Returns
    -------
    DataFrame
        One line a slice, the highest threshold first, then ``No T.``, then other slices by name. Texts: threshold;
        Spearman and Kendall (``0.830 ± 0.190``: mean and standard deviation over groups); p (Spearman / Kendall), the
        means; groups (``8``, or ``8 of 10`` if two have no correlation); ranked per group (``5 to 6``).

    Raises
    ------
    ValueError
        If the rows are of several judges or repeat a measure.
    """
    if len(set(rows["judge"])) > 1 or rows.duplicated(["slice", "measure"]).any():
        raise ValueError("rows: a table is made of the rows of one judge or panel, each measure once a slice")
    parts = rows.groupby("slice", sort=False)
    lines = sorted((_line(str(slice_), part.set_index("measure")) for slice_, part in parts), key=_place)
    columns = ["threshold", "Spearman", "Kendall", "p (Spearman / Kendall)", "groups", "ranked per group"]
    return pd.DataFrame.from_records(lines, columns=columns)


def _line(slice_: str, part: pd.DataFrame) -> tuple[str, ...]:
    """One line of :func:`correlation_table`."""
    value = part["estimate"]
    used, excluded = (int(part[name].to_dict()["spearman_mean"]) for name in ("n_used", "n_excluded"))
    name = "No T." if slice_ == "threshold=none" else slice_.removeprefix("threshold=")
    groups = f"{used} of {used + excluded}" if excluded else str(used)
    if not used:
        return name, "undefined", "undefined", "undefined", groups, ""
    spread = [f" ± {value[f'{each}_sd']:.3f}" if used > 1 else "" for each in ("spearman", "kendall")]
    low, high = (int(value[each]) for each in ("ranked_min", "ranked_max"))
    return (
        name,
        f"{value['spearman_mean']:.3f}{spread[0]}",
        f"{value['kendall_mean']:.3f}{spread[1]}",
        f"{value['spearman_p_mean']:.3f} / {value['kendall_p_mean']:.3f}",
        groups,
        str(low) if low == high else f"{low} to {high}",
    )


def _place(line: tuple[str, ...]) -> tuple[int, float, str]:
    """Thresholds downwards, no threshold, the rest."""
    try:
        return 0, -float(line[0]), ""
    except ValueError:
        return (1, 0.0, "") if line[0] == "No T." else (2, 0.0, line[0])
