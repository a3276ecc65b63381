"""Rankings by ratings against experts' ranks, group by group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, rankdata, spearmanr

from judgelab.measure.association import MINIMUM_ANSWERS, why_undefined
from judgelab.measure.coding import check_columns, excluded_note
from judgelab.measure.estimates import Place, Settings, mean_row
from judgelab.measure.resampling import Floats, Ints
from judgelab.measure.rows import frame, joined

__all__ = ["MEAN_RANK", "checked", "common", "correlation_rows", "expert_correlations", "over_groups", "reviewers"]

NAN = float("nan")
MEAN_RANK = "mean rank"  # the reviewer that stands for all reviewers of a group
EXACT = 7  # systems up to which all orders are looked at: 5,040
SUPPORT = 200_000  # values that an exact distribution may have before equal ones are merged
ORDERS = 9_999  # random orders where the exact distribution is too large
ROUNDING = 1e-9  # means of correlations that differ by less are equal
COLUMNS = (
    "group", "reviewer_id", "n_ranked", "spearman", "kendall", "p_spearman", "p_kendall",
    "p_method", "expert_ranks", "rating_ranks", "reason",
)  # fmt: skip


def expert_correlations(ratings: pd.DataFrame, ranks: pd.DataFrame) -> pd.DataFrame:
    """Spearman's ρ and Kendall's τ_b of ratings and experts' ranks, for each group of candidates.

    Parameters
    ----------
    ratings : DataFrame
        group, system, rating (higher is better; missing where a system could not be rated), one row a system of a
        group. Groups without ranks are not looked at.
    ranks : DataFrame
        group, reviewer_id, system, rank (1 best, ties allowed; missing: not ranked). Only their order counts.

    Returns
    -------
    DataFrame
        One row a group and reviewer, in order of appearance in ``ranks``; after several reviewers of a group one more,
        ``mean rank``: the mean of the reviewers' ranks among the systems that all of them ranked (a reviewer without
        any rank does not count). Columns: group;
        reviewer_id; n_ranked (systems with a rating and a rank); spearman and kendall in [−1, 1], positive where
        ratings follow the experts; p_spearman and p_kendall, two-sided; p_method; expert_ranks and rating_ranks (the
        ranks that were compared, 1 best, ties share their mean rank, best for the experts first); reason (why the
        numbers are NaN: fewer than three systems, or all alike on one side).

    Raises
    ------
    ValueError
        If a column is missing, a system stands twice in a group (with one reviewer), a number is infinite or no
        number, a name is missing, or a reviewer is called ``mean rank``.

    Notes
    -----
    Source: "(Towards) Scalable Reliable Automated Evaluation with LLMs", section 6.2. Up to seven systems p is exact:
    the share of all orders whose |ρ| (|τ_b|) is as large or larger, ties kept. Beyond, it is scipy's: for ρ the t
    approximation, for τ_b exact without ties and normal with ties. (With five systems scipy's t approximation gives
    p = 0.037 at ρ = 0.9, where 10 of the 120 orders, 0.083, are as far from 0.)

    Examples
    --------
    One swap of neighbours among five: Σ d² = 2, ρ = 1 − 6 · 2 / 120; 9 of 10 pairs agree, τ = 0.8.

    >>> ratings = pd.DataFrame({"group": "g", "system": list("ABCDE"), "rating": [5, 4, 3, 1, 2]})
    >>> ranks = pd.DataFrame({"group": "g", "reviewer_id": "r", "system": list("ABCDE"), "rank": [1, 2, 3, 4, 5]})
    >>> made = expert_correlations(ratings, ranks).iloc[0]
    >>> [round(float(made[name]), 3) for name in ("spearman", "kendall", "p_spearman", "p_kendall")]
    [0.9, 0.8, 0.083, 0.083]
    >>> made["expert_ranks"], made["rating_ranks"]
    ('1 2 3 4 5', '1 2 3 5 4')
    """
    rated = checked(ratings, ["group", "system"], "rating", "ratings")
    ranked = checked(ranks, ["group", "reviewer_id", "system"], "rank", "ranks")
    values = {group: part.set_index("system")["rating"] for group, part in rated.groupby("group", sort=False)}
    lines = []
    for group, part in ranked.groupby("group", sort=False):
        scores = values.get(group, pd.Series(dtype=np.float64))
        for reviewer, given in reviewers(part).items():
            both = pd.concat([given.rename("rank"), scores.rename("rating")], axis=1, join="inner").dropna()
            better = -both["rating"].to_numpy(dtype=np.float64)
            lines.append({"group": group, "reviewer_id": reviewer} | _compared(both["rank"].to_numpy(), better))
    return pd.DataFrame(lines, columns=list(COLUMNS))


def checked(table: pd.DataFrame, names: Sequence[str], value: str, what: str) -> pd.DataFrame:
    """The table with its value as finite numbers or NaN."""
    check_columns(table, [*names, value], what)
    numbers = pd.to_numeric(table[value], errors="coerce").to_numpy(dtype=np.float64)
    wrong = np.isinf(numbers) | (np.isnan(numbers) & table[value].notna().to_numpy())
    for bad, why in (
        (table[list(names)].isna().any(axis=1).to_numpy(), "lack a name"),
        (table.duplicated(list(names)).to_numpy(), f"repeat a {' and '.join(names)}"),
        (wrong, f"have a {value} that is no finite number"),
        (np.asarray(table[names[1]] == MEAN_RANK) & ("reviewer_id" in names), f"call a reviewer {MEAN_RANK!r}"),
    ):
        if bad.any():
            first = ", ".join(f"{name} {table[name].to_numpy()[bad][0]!r}" for name in (*names, value))
            raise ValueError(f"{what}: {int(bad.sum())} of {len(table)} rows {why}; first {first}")
    return table[list(names)].assign(**{value: numbers})


def reviewers(part: pd.DataFrame) -> dict[str, pd.Series]:
    """Each reviewer's ranks of one group by system, and with several reviewers their mean rank."""
    made = {
        str(name): own.dropna(subset="rank").set_index("system")["rank"]
        for name, own in part.groupby("reviewer_id", sort=False)
    }
    return made | ({MEAN_RANK: common(made).mean(axis=1)} if len(made) > 1 else {})


def common(reviewers: dict[str, pd.Series]) -> pd.DataFrame:
    """Ranks among the systems that all reviewers ranked, 1 best; a rank of five is not compared with one of two."""
    given = {name: own for name, own in reviewers.items() if len(own)} or reviewers
    return pd.concat(given, axis=1, join="inner").rank()


def _compared(experts: Floats, ratings: Floats) -> dict[str, Any]:
    """Both correlations of two lists of numbers, lower is better; see :func:`expert_correlations`."""
    made: dict[str, Any] = dict.fromkeys(COLUMNS[3:7], NAN)
    reason = why_undefined(experts, ratings, "systems")
    x, y = _ranks(experts), _ranks(ratings)
    order = np.lexsort((y, x))  # a function of the ranks alone, whatever the names and the order of rows
    x, y = x[order], y[order]
    made |= {"n_ranked": len(x), "p_method": "", "expert_ranks": _text(x), "rating_ranks": _text(y), "reason": reason}
    if reason:
        return made
    a, b = _centred(x), _centred(y)
    above, below = (np.sign(side[:, np.newaxis] - side).astype(np.int64) for side in (x, y))
    made["spearman"] = float(a @ b / np.sqrt(float(a @ a) * float(b @ b)))
    made["kendall"] = float((above * below).sum() / np.sqrt(float((above**2).sum()) * float((below**2).sum())))
    if len(x) <= EXACT:
        orders = _orders(len(x))
        made["p_spearman"] = _share(b[orders] @ a)
        moved = below[orders[:, :, np.newaxis], orders[:, np.newaxis, :]]
        made["p_kendall"] = _share((above * moved).sum(axis=(1, 2)))
        return made | {"p_method": f"exact, {len(orders)} orders"}
    tied = len(np.unique(x)) < len(x) or len(np.unique(y)) < len(y)
    made["p_spearman"] = float(spearmanr(x, y).pvalue)
    made["p_kendall"] = float(kendalltau(x, y, method="asymptotic" if tied else "exact").pvalue)
    return made | {"p_method": f"scipy: Spearman t approximation, Kendall {'normal' if tied else 'exact'}"}


def _ranks(values: Floats) -> Floats:
    """Ranks, 1 for the lowest, ties share their mean rank; equal numbers may differ by rounding."""
    scale = np.abs(values).max(initial=0.0) or 1.0
    return np.asarray(rankdata(np.round(values / scale, 12)), dtype=np.float64)


def _centred(ranks: Floats) -> Ints:
    """Twice the ranks minus their mean: whole numbers, so that equal correlations are recognised as equal."""
    return np.rint(2 * ranks - (len(ranks) + 1)).astype(np.int64)


@cache
def _orders(size: int) -> Ints:
    """All orders of so many places, that which was seen first."""
    return np.array(list(permutations(range(size))), dtype=np.int64)


def _share(sums: Ints) -> float:
    """Share of the sums that are as far from 0 as the first, two-sided p-value."""
    return float((np.abs(sums) >= abs(sums[0])).mean())


def _text(ranks: Floats) -> str:
    return " ".join(f"{rank:.10g}" for rank in ranks)


def _read(text: str) -> Ints:
    """The centred ranks of a text that :func:`_text` made."""
    return _centred(np.array(text.split(), dtype=np.float64))


def correlation_rows(
    by_group: pd.DataFrame, *, slice_: str, ci_level: float, resamples: int, seed: int, judge: str
) -> pd.DataFrame:
    """Correlations with the experts over all groups.

    ========================================  =========================================================================
    measure                                   what it is
    ========================================  =========================================================================
    ``spearman_mean``, ``kendall_mean``       mean over groups, percentile bootstrap over groups
    ``spearman_sd``, ``kendall_sd``           standard deviation over groups (n − 1), the ± of the published tables
    ``spearman_p_mean``, ``kendall_p_mean``   mean of the groups' p-values, as published. It is no p-value: it stays
                                              near 0.5 without any relation however many groups there are, and has a
                                              lower bound that the size of the groups sets
    ``spearman_p_combined``                   two-sided p of ``spearman_mean``, had the experts put each group in a
                                              random order
    ``ranked_min``, ``ranked_max``            fewest and most systems with a rating and a rank in a group
    ========================================  =========================================================================

    Parameters
    ----------
    by_group : DataFrame
        From :func:`expert_correlations`. Of a group with several reviewers the row ``mean rank`` is used.
    slice_ : str
        What the ratings are of, for instance ``threshold=0.75``.
    ci_level, resamples, seed, judge
        Coverage, number of bootstrap resamples, the protocol's seed, name of the judge or panel.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`; ``n_used`` and ``n_excluded`` count groups. Without a group that
        has a correlation all are NaN; a standard deviation needs two groups.

    Raises
    ------
    ValueError
        If a column is missing.

    Notes
    -----
    Source of means and deviations: "(Towards) Scalable Reliable Automated Evaluation with LLMs", Tables 1 and 2. The
    combined p is a permutation test within blocks: the distribution of the sum of the groups' ρ under independent
    random orders (ties kept) is made by adding one group after the other, if no group has more than seven systems and
    it has few enough values; else by 9,999 random orders, p = (b + 1) / (m + 1).

    Examples
    --------
    Two groups of three with ρ = 1: 2 · (1/6)² of the orders have the same mean or its negative.

    >>> ratings = pd.DataFrame({"group": list("ggghhh"), "system": list("ABCABC"), "rating": [3, 2, 1, 3, 2, 1]})
    >>> ranks = ratings.assign(reviewer_id="r", rank=[1, 2, 3, 1, 2, 3])
    >>> by_group = expert_correlations(ratings, ranks)
    >>> rows = correlation_rows(by_group, slice_="all", ci_level=0.95, resamples=100, seed=1, judge="panel")
    >>> rows.set_index("measure").loc[["spearman_mean", "spearman_p_mean", "spearman_p_combined"], "estimate"].tolist()
    [1.0, 0.3333333333333333, 0.05555555555555555]
    """
    check_columns(by_group, COLUMNS, "by_group")
    settings = Settings(ci_level, resamples, seed)
    place = Place(judge=judge, strategy="pairwise", pass_="both", slice_=slice_)
    several = by_group["group"].isin(by_group.loc[by_group["reviewer_id"] == MEAN_RANK, "group"])
    used = by_group[~several | (by_group["reviewer_id"] == MEAN_RANK)]
    return frame(_summary(place, used, settings))


def _summary(place: Place, by_group: pd.DataFrame, settings: Settings) -> Iterator[dict[str, Any]]:
    """The rows of :func:`correlation_rows`; one row of ``by_group`` a group."""
    groups = np.arange(len(by_group))
    defined = by_group["spearman"].notna().to_numpy()
    few = int((~defined & (by_group["n_ranked"] < MINIMUM_ANSWERS).to_numpy()).sum())
    alike = int((~defined).sum()) - few
    told = excluded_note(len(groups), "groups", with_fewer_than_3_ranked=few, ranked_all_alike=alike)
    n = int(defined.sum())
    common = {"ci_level": settings.ci_level, "n_used": n, "n_excluded": len(groups) - n}

    def plain(measure: str, value: float, method: str = "", undefined: str = "no group to count") -> dict[str, Any]:
        note = joined(f"undefined: {undefined}" if np.isnan(value) else "", told)
        return place.row(measure, value, method=method, note=note, **common)

    for name in ("spearman", "kendall"):
        values = by_group[name].to_numpy(dtype=np.float64)
        yield over_groups(mean_row(f"{name}_mean", place, groups, values, settings=settings), told)
        deviation = float(values[defined].std(ddof=1)) if n > 1 else NAN
        yield plain(f"{name}_sd", deviation, "standard deviation over groups, n − 1", "fewer than two groups")
    for name in ("spearman", "kendall"):
        values = by_group[f"p_{name}"].to_numpy(dtype=np.float64)
        methods = "; ".join(sorted(set(by_group.loc[defined, "p_method"])))
        line = over_groups(mean_row(f"{name}_p_mean", place, groups, values, settings=settings), told)
        yield line | {"method": joined(line["method"], methods)}
    counted = by_group[defined]
    rng = place.rng("spearman_p_combined", settings)
    yield plain("spearman_p_combined", *(_combined(counted, rng) if n else (NAN,)))
    sizes = counted["n_ranked"].to_numpy(dtype=np.float64)
    yield plain("ranked_min", float(sizes.min()) if n else NAN)
    yield plain("ranked_max", float(sizes.max()) if n else NAN)


def over_groups(line: dict[str, Any], told: str) -> dict[str, Any]:
    """A mean over groups that says so: what :func:`mean_row` resampled are groups."""
    note = line["note"].replace("item", "group").replace("no value", "no group to count")
    return line | {"method": line["method"].replace("over items", "over groups"), "note": joined(note, told)}


def _combined(by_group: pd.DataFrame, rng: np.random.Generator) -> tuple[float, str]:
    """Two-sided p of the mean ρ under independent random orders in each group, and how it was computed."""
    texts = sorted(zip(by_group["expert_ranks"], by_group["rating_ranks"], strict=True), key=lambda t: (len(t[0]), t))
    sides = [(_read(experts), _read(ratings)) for experts, ratings in texts]
    lengths = [float(np.sqrt(float(a @ a) * float(b @ b))) for a, b in sides]
    least = abs(sum(float(a @ b) / length for (a, b), length in zip(sides, lengths, strict=True))) - ROUNDING
    exact = _exact(sides, lengths, least)
    if not np.isnan(exact):
        return exact, "exact, all orders of each group"
    sums = np.zeros(ORDERS)
    for (a, b), length in zip(sides, lengths, strict=True):
        sums += rng.permuted(np.tile(b, (ORDERS, 1)), axis=1) @ a / length
    return float(((np.abs(sums) >= least).sum() + 1) / (ORDERS + 1)), f"{ORDERS} random orders of each group"


def _exact(sides: list[tuple[Ints, Ints]], lengths: list[float], least: float) -> float:
    """Chance that |Σ ρ| is at least so large, one group added after the other; NaN if that is too much work."""
    values: Floats = np.zeros(1)
    chances: Floats = np.ones(1)
    for (a, b), length in zip(sides, lengths, strict=True):
        if len(b) > EXACT:
            return NAN
        own, counts = np.unique(b[_orders(len(b))] @ a, return_counts=True)
        if len(values) * len(own) > SUPPORT:
            return NAN
        sums = np.add.outer(values, own / length).ravel()
        order = np.argsort(sums, kind="stable")
        new = np.concatenate([[True], np.diff(sums[order]) > ROUNDING])  # equal sums differ by rounding
        parts = np.outer(chances, counts / counts.sum()).ravel()[order]
        values, chances = sums[order][new], np.bincount(np.cumsum(new) - 1, parts).astype(np.float64)
    return min(1.0, float(chances[np.abs(values) >= least].sum()))
