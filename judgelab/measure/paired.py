"""Direct against pairwise on the same items: two agreements, two kappas and their differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from judgelab.measure.carriers import carriers
from judgelab.measure.coding import excluded_note
from judgelab.measure.estimates import Kind, Place, Settings, interval_of, rate_row
from judgelab.measure.resampling import Contingency, Floats, bootstrap, generator, kappa_from_sums
from judgelab.measure.rows import frame, joined, row
from judgelab.measure.views import JudgeCodes, each_judge

__all__ = ["mcnemar_rows", "paired_bootstrap", "paired_contingency", "paired_rows", "paired_statistics", "paired_table"]

NAN = float("nan")
HUMAN, DIRECT, PAIRWISE = range(3)
DIFFERENCE = "pairwise minus direct"
ROWS: tuple[tuple[str, str, str, Kind], ...] = (
    ("exact_agreement", "direct", "direct", "rate"),
    ("exact_agreement", "pairwise", "original", "rate"),
    ("exact_agreement_difference", "pairwise", "original", "difference"),
    ("cohen_kappa", "direct", "direct", "coefficient"),
    ("cohen_kappa", "pairwise", "original", "coefficient"),
    ("cohen_kappa_difference", "pairwise", "original", "difference"),
)


def paired_contingency(normalized: pd.DataFrame, *, labels: Sequence[str]) -> Contingency:
    """Count the labels (human, direct, pairwise original) of one judge over the items where all three are valid.

    Raises
    ------
    ValueError
        If the table does not hold exactly one judge.
    """
    judges = list(each_judge(normalized, labels))
    if len(judges) != 1:
        raise ValueError(f"normalized: {len(judges)} judges; allowed is 1")
    return _contingency(judges[0], len(labels))


def _contingency(codes: JudgeCodes, n_labels: int) -> Contingency:
    labels = np.column_stack([codes.human, codes.direct, codes.original])
    valid = (labels >= 0).all(axis=1)
    return Contingency.of(labels[valid], codes.items[valid], n_labels)


def paired_statistics(totals: Floats, cells: Contingency) -> Floats:
    """Agreement direct, agreement pairwise, their difference, kappa direct, kappa pairwise, their difference.

    Parameters
    ----------
    totals : array of shape (b, C)
        Counts of the C cells in each of b samples.
    cells : Contingency
        Labels of the cells: human, direct, pairwise.

    Returns
    -------
    array of shape (6, b)
        A kappa is NaN where it is undefined, and so is its difference.
    """
    identity = np.eye(cells.n_labels)
    human, direct, pairwise = cells.cells.T
    matches = np.column_stack([human == direct, human == pairwise]).astype(np.float64)
    # One product gives both numbers of matches and the three raters' label frequencies.
    design = np.hstack([matches, identity[human], identity[direct], identity[pairwise]])
    sums = totals @ design
    n, width = totals.sum(axis=1), cells.n_labels
    frequencies = [sums[:, 2 + k * width : 2 + (k + 1) * width] for k in range(3)]
    agreements = [sums[:, k] / n for k in range(2)]
    expected = [(frequencies[HUMAN] * frequencies[judged]).sum(axis=1) for judged in (DIRECT, PAIRWISE)]
    kappas = [kappa_from_sums(n, sums[:, k], expected[k]) for k in range(2)]
    return np.stack(
        [*agreements, (sums[:, 1] - sums[:, 0]) / n, *kappas, kappas[1] - kappas[0]],
    )


def paired_bootstrap(
    normalized: pd.DataFrame, *, labels: Sequence[str], ci_level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Direct against pairwise agreement of one judge, all six intervals from the same resamples.

    Items on which the human reference, the direct and the original pairwise preference are all valid are resampled
    whole; each resample gives both agreements, both kappas, and pairwise minus direct of each.

    Parameters
    ----------
    normalized : DataFrame
        Rows of one judge, see :func:`judgelab.measure.preferences.normalize`.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    ci_level, resamples, seed
        Coverage, number of resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Six rows: ``exact_agreement`` and ``cohen_kappa`` of direct and of pairwise, each with its ``_difference``
        (strategy pairwise, pass original; above 0 means that pairwise agrees better). NaN with the reason where
        there is no jointly valid item, or a kappa is undefined.

    Notes
    -----
    Intervals are order statistics, see :func:`judgelab.measure.resampling.percentile_interval`. Where each item has
    one pair, resamples are drawn over the contingency cells, which is the same distribution. Source: Efron and
    Tibshirani, "An introduction to the bootstrap", 1993, chapter 8 (resampling the unit). Checked against the
    protocol's own script and a loop over items.
    """
    judges = list(each_judge(normalized, labels))
    if len(judges) > 1:
        raise ValueError(f"normalized: {len(judges)} judges; allowed is 1")
    settings = Settings(ci_level, resamples, seed)
    return frame(line for codes in judges for line in paired_rows(codes, len(labels), settings))


def paired_table(
    normalized: pd.DataFrame, *, labels: Sequence[str], ci_level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """:func:`paired_bootstrap` and :func:`mcnemar_rows` of every judge for which both strategies were planned."""
    settings = Settings(ci_level, resamples, seed)
    return frame(
        line
        for codes in each_judge(normalized, labels)
        if codes.planned["direct"].any() and codes.planned["original"].any()
        for line in (*paired_rows(codes, len(labels), settings), *mcnemar_rows(codes, settings))
    )


def paired_rows(codes: JudgeCodes, n_labels: int, settings: Settings) -> list[dict[str, Any]]:
    """The six rows of one judge."""
    cells = _contingency(codes, n_labels)
    planned = codes.planned["direct"] | codes.planned["original"]
    n_planned = len(np.unique(codes.items[planned]))
    n_items = cells.table.n_items
    common: dict[str, Any] = {"judge": codes.judge, "ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = max(n_planned - n_items, 0)
    left_out = _left_out(codes)
    if n_items == 0:
        note = joined("undefined: no item with a reference and both verdicts", left_out)
        return [row(measure, NAN, strategy=s, pass_=p, note=note, **common) for measure, s, p, _ in ROWS]
    estimates = paired_statistics(cells.table.totals, cells)[:, 0]
    sampled = bootstrap(
        cells.table,
        lambda totals: paired_statistics(totals, cells),
        resamples=settings.resamples,
        rng=generator(settings.seed, "paired", codes.judge),
    )
    carried = carriers(cells.table, lambda totals: paired_statistics(totals, cells))
    n_judgments = float(cells.table.totals.sum())
    method = f"paired bootstrap over items with a reference and both verdicts: {settings.method}"
    lines = []
    for (measure, strategy, pass_, kind), estimate, values, items in zip(
        ROWS, estimates, sampled, carried, strict=True
    ):
        sides = f"{DIFFERENCE}, {method}" if kind == "difference" else method
        made = _undefined_or(values, float(estimate), n_items, kind, settings, sides, float(items))
        made["note"] = joined(made["note"], left_out)
        counts = {"numerator": round(estimate * n_judgments), "denominator": n_judgments} if kind == "rate" else {}
        lines.append(row(measure, estimate, strategy=strategy, pass_=pass_, **made, **counts, **common))
    return lines


def mcnemar_rows(codes: JudgeCodes, settings: Settings) -> list[dict[str, Any]]:
    """Of the items on which exactly one strategy is right, the share on which that is the pairwise one, and its test.

    Returns
    -------
    list of dict
        ``mcnemar_discordant_share``: right by pairwise alone / right by one alone; above 1/2: pairwise agrees better.
        Wilson's interval where an item has one pair, else the bootstrap over items. ``mcnemar_p``: exact two-sided
        binomial test of 1/2. Undefined without a discordant item; the test also where an item has several pairs.

    Notes
    -----
    With b items right by pairwise alone and c by direct alone, n = b + c, the p-value is the chance of a split at
    least as uneven: min(1, 2 Σ C(n, i) / 2ⁿ, i from 0 to min(b, c)). Items right by both or by neither say nothing
    of the difference. Source: McNemar, "Note on the sampling error of the difference between correlated proportions
    or percentages", 1947, in its exact form. Checked against
    ``statsmodels.stats.contingency_tables.mcnemar(exact=True)``.
    """
    labels = np.column_stack([codes.human, codes.direct, codes.original])
    valid = (labels >= 0).all(axis=1)
    right = [labels[:, k] == labels[:, HUMAN] for k in (DIRECT, PAIRWISE)]
    discordant = valid & (right[0] != right[1])
    place = Place(codes.judge, "pairwise", "original")
    planned = codes.planned["direct"] | codes.planned["original"]
    values = np.where(discordant, right[1].astype(float), NAN)[planned]
    note = _left_out(codes) if discordant.any() else joined("no item on which exactly one is right", _left_out(codes))
    share = rate_row("mcnemar_discordant_share", place, codes.items[planned], values, settings=settings, note=note)
    n, wins = int(discordant.sum()), int((discordant & right[1]).sum())
    common = {"n_used": share["n_used"], "n_excluded": share["n_excluded"], "method": "exact McNemar test, two-sided"}
    several = len(np.unique(codes.items[valid])) < int(valid.sum())
    if n == 0 or several:
        reason = "items have several pairs" if n else "no item on which exactly one is right"
        return [share, place.row("mcnemar_p", NAN, note=f"undefined: {reason}", **common)]
    return [share, place.row("mcnemar_p", float(binomtest(wins, n, 0.5).pvalue), note=f"{wins} of {n}", **common)]


def _undefined_or(
    values: Floats, estimate: float, n_items: int, kind: Kind, settings: Settings, method: str, carrying: float
) -> dict[str, Any]:
    if np.isnan(estimate):
        note = "undefined: the human and the judge used one and the same label"
        return {"method": method, "note": note}
    return interval_of(values, estimate, n_items, kind, settings, method, carrying)


def _left_out(codes: JudgeCodes) -> str:
    planned = codes.planned["direct"] | codes.planned["original"]
    human, direct, original = (v[planned] < 0 for v in (codes.human, codes.direct, codes.original))
    return excluded_note(
        int(planned.sum()),
        "items" if len(np.unique(codes.items)) == len(codes.items) else "pairs",
        without_reference=int(human.sum()),
        without_both_verdicts=int((~human & (direct | original)).sum()),
    )
