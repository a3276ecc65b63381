"""Are the errors of several judges their own, or do they err together?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import excluded_note
from judgelab.measure.estimates import Place, Settings, table_row
from judgelab.measure.resampling import Floats, ItemTable
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import Flags
from judgelab.measure.votes import Votes, votes_of

__all__ = ["error_correlation_table"]

NAN = float("nan")
CONSTANT = "a judge never or always errs"


def error_correlation_table(
    normalized: pd.DataFrame,
    *,
    labels: Sequence[str],
    pass_: str = "original",
    ci_level: float,
    resamples: int,
    seed: int,
    judges: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Do judges err on the same units? A panel of judges that do is no better than one of them.

    With eⱼ = 1 where judge j's label is not the human one and 0 where it is, over n units Nᵢⱼ = Σ eᵢ eⱼ, Nᵢ = Σ eᵢ::

        error_correlation       φᵢⱼ = (n Nᵢⱼ − Nᵢ Nⱼ) / √(Nᵢ (n − Nᵢ) Nⱼ (n − Nⱼ))
        mean_error_correlation  ρ = mean of φᵢⱼ over the pairs of judges i < j for which it is defined
        effective_judges        k / (1 + (k − 1) ρ)

    ======================  =========================  ===========  ================================================
    measure                 units                      range        undefined if
    ======================  =========================  ===========  ================================================
    error_correlation       both verdicts and a label  −1 to 1      either judge never or always errs there
    mean_error_correlation  as each pair's             −1 to 1      there is no pair, or none with a correlation
    effective_judges        all k verdicts and a       above 0      the same on these units, or 1 + (k − 1) ρ ≤ 0
                            label, ρ too
    ======================  =========================  ===========  ================================================

    Two judges that choose two different wrong labels both err: φ looks at errors, not at labels. ``effective_judges``
    is the number of judges with independent errors whose mean error would vary as much, if all err equally often; it
    is k at ρ = 0, 1 at ρ = 1, and above k where errors exclude one another.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    pass_ : str
        ``direct``, ``original``, ``swapped`` or ``aggregated``.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.
    judges : sequence of str, optional
        Names of the judges that count, for instance without the controls; all if not given.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` with an empty ``judge``: every two judges with planned calls
        (slice ``judges=a,b``, names sorted), then the two over all (slice ``all``); none if no judge has planned
        calls. Bootstrap over whole items, in which the pairs that are averaged stay those of the estimate.

    Raises
    ------
    ValueError
        As :func:`judgelab.measure.votes.votes_of`.

    Notes
    -----
    Source of φ: Yule, "On the methods of measuring association between two attributes", 1912; it is Pearson's
    correlation and Matthews' coefficient of the two errors, and is checked against ``numpy.corrcoef`` and
    ``sklearn.metrics.matthews_corrcoef``. The design effect 1 + (k − 1) ρ: Kish, *Survey Sampling*, 1965.
    """
    settings = Settings(ci_level, resamples, seed)
    votes = votes_of(normalized, labels=labels, judges=judges, pass_=pass_)
    return frame(_error_rows(votes, settings) if votes.judges else [])


def _error_rows(votes: Votes, settings: Settings) -> Iterator[dict[str, Any]]:
    pairs = list(combinations(range(len(votes.judges)), 2))
    labelled = votes.human >= 0
    errors = np.where((votes.codes >= 0) & labelled[:, np.newaxis], votes.codes != votes.human[:, np.newaxis], NAN)
    sums = [_pair_sums(errors[:, [i, j]]) for i, j in pairs]
    for (i, j), each in zip(pairs, sums, strict=True):
        used = each[:, 0] > 0
        place = votes.place(slice_=f"judges={votes.judges[i]},{votes.judges[j]}")
        yield _error_row("error_correlation", place, votes, used, each, 2, settings)
    every = np.hstack(sums) if sums else np.zeros((len(errors), 4))
    yield _error_row("mean_error_correlation", votes.place(), votes, every[:, ::4].max(axis=1) > 0, every, 2, settings)
    used, k = votes.complete & labelled, len(votes.judges)
    yield _error_row("effective_judges", votes.place(), votes, used, every, max(k, 2), settings)


def _error_row(
    measure: str, place: Place, votes: Votes, used: Flags, sums: Floats, needed: int, settings: Settings
) -> dict[str, Any]:
    """One measure from the pairs' sums over the units that count."""
    k, labelled = len(votes.judges), votes.human >= 0
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": len(np.unique(votes.items[used]))}
    common["n_excluded"] = len(np.unique(votes.items)) - common["n_used"]
    left_out = {
        "without_reference": int((~labelled).sum()),
        f"without_{needed}_verdicts": int((labelled & ~used).sum()),
    }
    note = joined(excluded_note(len(used), "units", **left_out), "" if place.slice_ != "all" else votes.absent_note)
    if k < 2 or not used.any():
        reason = f"no unit with {needed} verdicts and a label" if k >= 2 else "fewer than two judges"
        return place.row(measure, NAN, note=joined(f"undefined: {reason}", note), **common)
    table = ItemTable.of(votes.items[used], sums[used])
    defined = ~np.isnan(_correlations(table.totals)[0])
    method = f"{k} judges" if measure == "effective_judges" else ""
    if defined.any() and not defined.all():
        note = joined(f"{int((~defined).sum())} of {len(defined)} pairs left out: {CONSTANT}", note)
    return table_row(
        measure,
        place,
        table,
        partial(_effective_judges, k=k, chosen=defined)
        if measure == "effective_judges"
        else partial(_mean_correlation, chosen=defined),
        settings=settings,
        note=note,
        undefined="1 + (k − 1) ρ is not above 0" if defined.any() else CONSTANT,
        method=method,
        **common,
    )


def _pair_sums(errors: Floats) -> Floats:
    """Per unit of two judges: 1, the first's error, the second's, both; zeros where either has none."""
    counts = ~np.isnan(errors[:, 0]) & ~np.isnan(errors[:, 1])
    first, second = np.where(counts[:, np.newaxis], errors, 0.0).T
    return np.column_stack([counts.astype(np.float64), first, second, first * second])


def _correlations(totals: Floats) -> Floats:
    """φ of each pair, shape (b, pairs); NaN where a judge never or always errs."""
    n, first, second, both = (totals[:, column::4] for column in range(4))
    room = first * (n - first) * second * (n - second)
    phi = np.full(room.shape, NAN)
    np.divide(n * both - first * second, np.sqrt(room), out=phi, where=room > 0)
    return np.asarray(np.clip(phi, -1.0, 1.0))


def _mean_correlation(totals: Floats, *, chosen: Flags) -> Floats:
    phi = _correlations(totals)[:, chosen]
    return (phi.mean(axis=1) if chosen.any() else np.full(len(totals), NAN))[np.newaxis, :]


def _effective_judges(totals: Floats, *, k: int, chosen: Flags) -> Floats:
    effect = 1 + (k - 1) * _mean_correlation(totals, chosen=chosen)
    number = np.full(effect.shape, NAN)
    np.divide(k, effect, out=number, where=effect > 1e-12)
    return number
