"""Agreement beyond chance, by other ideas of chance than Cohen's: AC1, PABAK, weighted kappa, Fleiss' kappa."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judgelab.measure.estimates import Place, Settings, rate_row, table_row
from judgelab.measure.resampling import Contingency, Floats, Ints, ItemTable
from judgelab.measure.rows import joined

__all__ = ["ac1_from_totals", "chance_rows", "dominance", "fleiss_from_totals", "fleiss_row", "weighted_kappa_rows"]

NAN = float("nan")
DOMINANT = 0.75  # share of one label from which kappa is said to be unstable
WEIGHTS = {"linear": 1, "quadratic": 2}


def chance_rows(
    place: Place, items: NDArray[Any], first: Ints, second: Ints, *, settings: Settings, note: str = ""
) -> Iterator[dict[str, Any]]:
    """Gwet's AC1 and PABAK of two arrays of label codes; rows with a negative code are left out.

    With pₒ the share of equal labels, q labels in use and πₖ the mean share of label k over the two raters::

        AC1   = (pₒ − pₑ) / (1 − pₑ),  pₑ = Σₖ πₖ (1 − πₖ) / (q − 1)
        PABAK = (q pₒ − 1) / (q − 1)

    Both stay near pₒ where one label dominates, where kappa drops; neither is "the" agreement beyond chance.

    Returns
    -------
    iterator of dict
        ``gwet_ac1`` (bootstrap over items) and ``pabak`` (the interval of the exact agreement, transformed), both at
        most 1. q is the number of labels that either rater used and stands in ``method``; resamples keep it. NaN
        where both raters used one and the same label: with q = 1 chance and agreement cannot be told apart.

    Notes
    -----
    Sources: Gwet, "Computing inter-rater reliability and its variance in the presence of high agreement", 2008;
    Byrt, Bishop and Carlin, "Bias, prevalence and kappa", 1993, for two labels, and Brennan and
    Prediger, "Coefficient kappa", 1981, for more. Checked against the package ``agreement`` and against the figures
    of the R package irrCAC.

    Examples
    --------
    Ten items, nine alike, one label on 18 of 20 places: pₑ = 2 · 0.9 · 0.1 = 0.18, where kappa is 0.62.

    >>> first, second = np.array([0] * 8 + [0, 1]), np.array([0] * 8 + [1, 1])
    >>> rows = chance_rows(Place(), np.arange(10), first, second, settings=Settings(0.95, 100, 1))
    >>> {row["measure"]: round(row["estimate"], 4) for row in rows}
    {'gwet_ac1': 0.8658, 'pabak': 0.8}
    """
    valid = (first >= 0) & (second >= 0)
    q = len(np.unique(np.concatenate([first[valid], second[valid]])))
    n_items = len(np.unique(items[valid]))
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = len(np.unique(items)) - n_items
    method = f"{q} label{'s' * (q != 1)} in use"
    if q < 2:
        reason = "both raters used one and the same label" if q else "no item with two valid labels"
        told = joined(f"undefined: {reason}", note)
        for name in ("gwet_ac1", "pabak"):
            yield place.row(name, NAN, method=method, note=told, **common)
        return
    cells = _cells(items, first, second, valid)
    yield table_row(
        "gwet_ac1",
        place,
        cells.table,
        partial(ac1_from_totals, first=cells.cells[:, 0], second=cells.cells[:, 1], q=q),
        settings=settings,
        note=note,
        undefined="no judgment",
        method=method,
        **common,
    )
    matches = np.where(valid, (first == second).astype(float), NAN)
    exact = rate_row("exact_agreement", place, items, matches, settings=settings)
    low, high = ((q * exact[bound] - 1) / (q - 1) for bound in ("ci_low", "ci_high"))
    told = joined(exact["note"], note)
    method = joined(method, f"exact agreement's interval, {exact['method']}")
    estimate = (q * exact["estimate"] - 1) / (q - 1)
    yield place.row("pabak", estimate, interval=(low, high), method=method, note=told, **common)


def _cells(items: NDArray[Any], first: Ints, second: Ints, valid: NDArray[np.bool_]) -> Contingency:
    """The contingency of the valid labels, coded 0, 1, ... in the order of their codes."""
    pairs = np.column_stack([first[valid], second[valid]])
    kept, codes = np.unique(pairs, return_inverse=True)
    return Contingency.of(codes.reshape(pairs.shape).astype(np.int64), items[valid], len(kept))


def ac1_from_totals(totals: Floats, *, first: Ints, second: Ints, q: int) -> Floats:
    """AC1 from counts of contingency cells, shape (1, b); see :func:`chance_rows`.

    Parameters
    ----------
    totals : array of shape (b, C)
        Counts of the C cells in each of b samples.
    first, second : arrays of shape (C,)
        Label codes of the two raters in each cell.
    q : int
        Number of labels, 2 or more: then pₑ is at most 1/q, and AC1 is defined for every sample.

    Examples
    --------
    8 of 10 alike, two labels of equal frequency: (0.8 − 0.5) / 0.5.

    >>> cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> totals = np.array([[4.0, 1.0, 1.0, 4.0]])
    >>> ac1_from_totals(totals, first=cells[:, 0], second=cells[:, 1], q=2).round(3).tolist()
    [[0.6]]
    """
    identity = np.eye(int(max(first.max(), second.max())) + 1)
    n = totals.sum(axis=1)
    observed = totals @ (first == second).astype(np.float64) / n
    shares = (totals @ (identity[first] + identity[second])) / (2 * n[:, np.newaxis])
    expected = (shares * (1 - shares)).sum(axis=1) / (q - 1)
    return ((observed - expected) / (1 - expected))[np.newaxis, :]


def weighted_kappa_rows(
    measure: str,
    place: Place,
    items: NDArray[Any],
    first: Ints,
    second: Ints,
    *,
    order: Sequence[str],
    settings: Settings,
    note: str = "",
) -> Iterator[dict[str, Any]]:
    """Cohen's kappa with linear and quadratic weights; codes 0 .. k − 1 stand in the order of ``order``.

    κ = 1 − Σ vᵢⱼ oᵢⱼ / Σ vᵢⱼ eᵢⱼ, with vᵢⱼ = (|i − j| / (k − 1))^w, w = 1 or 2, o the observed shares and e the
    products of the raters' own. A tie for a win is half, or a quarter, of the fault that the other win is.

    Returns
    -------
    iterator of dict
        ``<measure>_linear`` and ``<measure>_quadratic``, −1 to 1, bootstrap over items. NaN where both raters used
        one and the same label; 0 by the formula, and said so, where only one of them is constant. All k labels count,
        whether they were used or not.

    Raises
    ------
    ValueError
        If a code is not the place of a label in ``order``.

    Notes
    -----
    Source: Cohen, "Weighted kappa", 1968, equation 8; linear weights: Cicchetti and Allison, 1971; quadratic: Fleiss
    and Cohen, 1973. Checked against ``sklearn.metrics.cohen_kappa_score`` with all labels named.
    """
    valid, k = (first >= 0) & (second >= 0), len(order)
    beyond = np.flatnonzero(valid & ((first >= k) | (second >= k)))
    if len(beyond):
        raise ValueError(
            f"{measure}: {len(beyond)} of {int(valid.sum())} judgments have a code beyond the {k} labels of the order; "
            f"first in place {beyond[0]}"
        )
    n_items = len(np.unique(items[valid]))
    used = [np.unique(codes[valid]) for codes in (first, second)]
    alone = min(map(len, used)) == 1 and len(np.union1d(*used)) > 1
    reason = "one rater used one label only, kappa is 0 by its formula" if alone else ""
    note = joined(reason, note)
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = len(np.unique(items)) - n_items
    for name, power in WEIGHTS.items():
        method = f"{name} weights over {', '.join(order)}"
        if not valid.any():
            told = joined("undefined: no item with two valid labels", note)
            yield place.row(f"{measure}_{name}", NAN, method=method, note=told, **common)
            continue
        pairs = np.column_stack([first[valid], second[valid]])
        cells = Contingency.of(pairs, items[valid], k)
        yield table_row(
            f"{measure}_{name}",
            place,
            cells.table,
            partial(_weighted_kappa, cells=cells.cells, k=k, power=power),
            settings=settings,
            note=note,
            undefined="both raters used one and the same label",
            method=method,
            **common,
        )


def _weighted_kappa(totals: Floats, *, cells: Ints, k: int, power: int) -> Floats:
    apart = np.abs(np.arange(k)[:, np.newaxis] - np.arange(k)[np.newaxis, :]) / max(k - 1, 1)
    weights = apart**power
    identity = np.eye(k)
    rows, columns = totals @ identity[cells[:, 0]], totals @ identity[cells[:, 1]]
    expected = ((rows @ weights) * columns).sum(axis=1)
    observed = totals.sum(axis=1) * (totals @ weights[cells[:, 0], cells[:, 1]])
    kappa = np.full(len(totals), NAN)
    np.divide(observed, expected, out=kappa, where=expected > 0)
    return (1 - kappa)[np.newaxis, :]


def dominance(first: Ints, second: Ints) -> str:
    """A note where one label holds 75 % or more of a rater's labels; empty where none does, or kappa is undefined."""
    valid = (first >= 0) & (second >= 0)
    given = np.stack([first[valid], second[valid]])
    if len(np.unique(given)) < 2:
        return ""
    largest = max(float(np.bincount(codes).max()) / given.shape[1] for codes in given)
    return f"kappa is unstable: one label holds {largest:.0%} of a rater's, see gwet_ac1" if largest >= DOMINANT else ""


def fleiss_row(place: Place, items: Ints, units: Ints, codes: Ints, *, settings: Settings) -> dict[str, Any]:
    """Fleiss' kappa of any raters, over the units with the commonest number of labels (two or more).

    With n units of m labels each, nᵤₖ of them k::

        κ = (P̄ − P̄ₑ) / (1 − P̄ₑ),  P̄ = Σᵤ (Σₖ nᵤₖ² − m) / (n m (m − 1)),  P̄ₑ = Σₖ pₖ²,  pₖ = Σᵤ nᵤₖ / (n m)

    Units with another number of labels are left out and counted: Fleiss' kappa is not defined for them, alpha is. Of
    two numbers that are equally common, the smaller is taken.

    Parameters
    ----------
    items, units, codes : arrays of shape (n,)
        Item, unit (0, 1, ...) and code (0, 1, ...) of each label; a unit belongs to one item, and items are
        resampled whole.

    Returns
    -------
    dict
        ``fleiss_kappa``, at most 1; m stands in ``method``. NaN where every label is the same or no unit has two.

    Notes
    -----
    Source: Fleiss, "Measuring nominal scale agreement among many raters", 1971, equations 3 to 6. Checked against
    ``statsmodels.stats.inter_rater.fleiss_kappa``.
    """
    width = int(codes.max()) + 1 if len(codes) else 1
    n_units = int(units.max()) + 1 if len(units) else 0
    counts = np.bincount(units * width + codes, minlength=n_units * width).reshape(n_units, width)
    sizes = counts.sum(axis=1)
    several = sizes[sizes >= 2]
    m = int(np.bincount(several).argmax()) if len(several) else 0
    used = sizes == m if m else np.zeros(n_units, dtype=bool)
    item_of_unit = np.zeros(n_units, dtype=np.int64)
    item_of_unit[units] = items
    n_items = len(np.unique(item_of_unit[used]))
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = len(np.unique(items)) - n_items
    left = int((~used).sum())
    note = f"{left} of {n_units} units left out: another number of labels" if left and m else ""
    method = f"{m} labels a unit"
    if not m:
        return place.row("fleiss_kappa", NAN, method="", note="undefined: no unit with two labels", **common)
    return table_row(
        "fleiss_kappa",
        place,
        ItemTable.of(item_of_unit[used], _fleiss_features(counts[used].astype(np.float64))),
        fleiss_from_totals,
        settings=settings,
        note=note,
        undefined="every label is the same",
        method=method,
        **common,
    )


def _fleiss_features(counts: Floats) -> Floats:
    """nᵤₖ of each label, the unit's own agreement, and 1."""
    m = counts.sum(axis=1)
    agreement = ((counts**2).sum(axis=1) - m) / (m * (m - 1))
    return np.column_stack([counts, agreement, np.ones(len(counts))])


def fleiss_from_totals(totals: Floats) -> Floats:
    """Fleiss' kappa from summed features of the units, shape (1, b); NaN where only one label occurs."""
    frequencies, agreement, n = totals[:, :-2], totals[:, -2], totals[:, -1]
    labels = frequencies.sum(axis=1)
    squares = (frequencies**2).sum(axis=1)
    kappa = np.full(len(totals), NAN)
    expected = squares / labels**2
    np.divide(agreement / n - expected, 1 - expected, out=kappa, where=squares < labels**2)
    return kappa[np.newaxis, :]
