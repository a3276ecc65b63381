"""A ranking by Elo with intervals: ratings over seeded orders of the matches, and the gaps between neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, NotRequired, TypedDict, Unpack

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components

from judgelab.measure.coding import excluded_note
from judgelab.measure.elo_options import EloOptions
from judgelab.measure.elo_orders import Resamples, check_permutations, play, play_orders
from judgelab.measure.estimates import Kind, Place, Settings, interval_of
from judgelab.measure.matches import Matches
from judgelab.measure.ranking import _apart
from judgelab.measure.resampling import Floats, Ints, percentile_interval
from judgelab.measure.rows import frame, joined

__all__ = ["EloDraws", "EloRanking", "RankingOptions", "band", "elo_draws", "elo_gaps", "elo_ranking", "elo_table"]

NAN = float("nan")
PER = 5  # random orders of a resample: the noise of one order is as large as that of the items
SAME = 1e-9  # points: gaps below differ from 0 by rounding


class RankingOptions(TypedDict):
    """Options of :func:`elo_draws`, and of all that start from it."""

    permutations: NotRequired[int]
    initial: NotRequired[float]
    k: NotRequired[float]
    base: NotRequired[float]
    scale: NotRequired[float]
    ci_level: float
    resamples: int
    seed: int
    judge: str


@dataclass(frozen=True)
class EloDraws:
    """Ratings over orders and over resamples: what the tables of a ranking are made from.

    Attributes
    ----------
    read : Matches
        The decided matches.
    orders : array of shape (permutations, systems)
        Ratings by order of all the matches.
    resampled : array of shape (resamples, systems)
        Mean ratings by resample of whole items over some random orders; NaN where a system was not drawn.
    n_items : int
        Items with a decided match.
    options, settings, judge
        What they were made with.
    """

    read: Matches
    orders: Floats
    resampled: Floats
    n_items: int
    options: EloOptions
    settings: Settings
    judge: str

    @property
    def ratings(self) -> Floats:
        """Mean rating of each system over the orders; NaN without a match."""
        return np.asarray(self.orders.mean(axis=0))

    @property
    def best_first(self) -> list[int]:
        """The systems by mean rating, those without a match last; equals (to 1e-9) in order of appearance."""
        return np.argsort(-self.ratings.round(9), kind="stable").tolist()

    @property
    def by_order(self) -> str:
        """What a row's method says of the orders."""
        return f"Elo, mean over {len(self.orders)} orders of the matches, {self.options.method}"

    @property
    def by_resample(self) -> str:
        """What a row's method says of the resamples."""
        return joined(
            self.by_order,
            f"{self.settings.method}, each the mean of {PER} random orders, a match drawn c times played c times",
        )

    def place(self, slice_: str) -> Place:
        """What a row of the ranking is of."""
        return Place(judge=self.judge, strategy="pairwise", pass_="both", slice_=slice_)


def elo_draws(
    matches: pd.DataFrame,
    *,
    permutations: int = 1000,
    initial: float = 1000.0,
    k: float = 32.0,
    base: float = 10.0,
    scale: float = 400.0,
    ci_level: float,
    resamples: int,
    seed: int,
    judge: str,
) -> EloDraws:
    """Ratings in seeded orders of the matches and in resamples of whole items, for the tables of a ranking.

    Parameters
    ----------
    matches : DataFrame
        See :func:`elo_orders`; with a column ``item_id`` all matches of an item are drawn together, otherwise (and
        where it is missing) each match is an item of its own.
    permutations, initial, k, base, scale
        See :func:`elo_orders`.
    ci_level, resamples, seed : float, int, int
        Coverage; number of resamples; seed of the orders and the resamples.
    judge : str
        Whose matches they are.

    Returns
    -------
    EloDraws
        A resample draws as many items as there are with a decided match, and plays their matches once for every time
        they were drawn; its rating is the mean over a few random orders, so that it holds the uncertainty of the items
        and little of that of an order, which the mean over many orders does not have.

    Raises
    ------
    ValueError
        See :func:`elo_orders`; if ``ci_level`` or ``resamples`` is out of range.
    """
    options, settings = EloOptions(initial, k, base, scale), Settings(ci_level, resamples, seed)
    check_permutations(permutations)
    read = Matches.of(matches)
    items = _items(matches)
    n_items = int(items.max()) + 1 if len(items) else 0
    orders = play_orders(read, permutations, seed, options)
    rng = Place(judge=judge, strategy="pairwise", pass_="both").rng("elo", settings)
    drawn = Resamples(read, items, n_items, rng, PER)
    resampled = np.full((resamples, len(read.systems)), NAN)
    if n_items:
        single = play(read, resamples * PER, options, drawn.orders)
        single[~np.concatenate(drawn.present)] = NAN
        resampled = single.reshape(resamples, PER, -1).mean(axis=1)
    return EloDraws(read, orders, resampled, n_items, options, settings, judge)


def _items(matches: pd.DataFrame) -> Ints:
    """Code of the item of each decided match, 0 .. items − 1."""
    decided = matches["preference"].notna().to_numpy(dtype=bool)
    if "item_id" not in matches:
        return np.arange(int(decided.sum()), dtype=np.int64)
    codes = pd.factorize(matches["item_id"].astype(object)[decided])[0].astype(np.int64)
    unnamed = codes < 0
    codes[unnamed] = codes.max(initial=-1) + 1 + np.arange(int(unnamed.sum()))
    return codes


def elo_table(matches: pd.DataFrame, **options: Unpack[RankingOptions]) -> pd.DataFrame:
    """Elo ratings over seeded orders of the matches, with intervals.

    Parameters
    ----------
    matches, options
        See :func:`elo_draws`.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`, three for each ``system=<s>``, each measure best first:
        ``elo``, the mean over the orders, whose interval holds the uncertainty of items and of one order (so
        that it is wider than that of the items alone, the more so the larger ``k``);
        ``elo_order_spread``, the standard deviation over the orders (undefined for one order); ``elo_by_order``, the
        same mean with the central ``ci_level`` of the orders' ratings: what the order alone does, no interval for
        other items. ``n_used`` counts the system's matches, ``n_excluded`` those without a preference. A system
        without a match is undefined.

    Raises
    ------
    ValueError
        See :func:`elo_draws`.

    Examples
    --------
    >>> table = pd.DataFrame({"system_x": ["a"] * 3, "system_y": ["b"] * 3, "preference": ["a", "a", "b"]})
    >>> found = elo_table(table, permutations=200, ci_level=0.95, resamples=200, seed=1, judge="j")
    >>> found["slice"].head(2).tolist(), found["measure"].unique().tolist()
    (['system=a', 'system=b'], ['elo', 'elo_order_spread', 'elo_by_order'])
    """
    return _table_of(elo_draws(matches, **options))


def _table_of(draws: EloDraws) -> pd.DataFrame:
    """The rows of :func:`elo_table`."""
    notes = _apart(draws.read)
    return frame(
        line
        for measure in ("elo", "elo_order_spread", "elo_by_order")
        for system in draws.best_first
        for line in _system_row(measure, system, draws, notes[system])
    )


def _system_row(measure: str, system: int, draws: EloDraws, note: str) -> Iterator[dict[str, Any]]:
    read, place = draws.read, draws.place(f"system={draws.read.systems[system]}")
    used, missing = int(read.played[system]), int(read.undecided[system])
    values, mean = draws.orders[:, system], float(draws.ratings[system])
    spread = float(values.std(ddof=1)) if len(values) > 1 else NAN
    made: dict[str, Any] = {"method": draws.by_order, "note": ""}
    level = {} if measure == "elo_order_spread" else {"ci_level": draws.settings.ci_level}
    if used and measure == "elo":
        made = interval_of(
            draws.resampled[:, system], mean, draws.n_items, "coefficient", draws.settings, draws.by_resample
        )
    elif used and measure == "elo_by_order":
        made["interval"] = percentile_interval(values, draws.settings.ci_level)[:2]
        made["method"] = joined(draws.by_order, "interval: central share of the orders")
    elif used and np.isnan(spread):
        note = joined("undefined: one order", note)
    left_out = excluded_note(used + missing, "matches", without_preference=missing)
    made["note"] = joined(note, made["note"], left_out)
    estimate = spread if measure == "elo_order_spread" else mean
    yield place.row(measure, estimate, n_used=used, n_excluded=missing, **level, **made)


class EloRanking(NamedTuple):
    """The two tables of a ranking, made from the same draws: see :func:`elo_table` and :func:`elo_gaps`."""

    table: pd.DataFrame
    gaps: pd.DataFrame


def elo_ranking(matches: pd.DataFrame, **options: Unpack[RankingOptions]) -> EloRanking:
    """:func:`elo_table` and :func:`elo_gaps` in one, at the price of one; options of :func:`elo_draws`."""
    draws = elo_draws(matches, **options)
    return EloRanking(_table_of(draws), _gaps_of(draws))


def elo_gaps(matches: pd.DataFrame, **options: Unpack[RankingOptions]) -> pd.DataFrame:
    """How far each system of the ranking is above the next one.

    Parameters
    ----------
    matches, options
        See :func:`elo_draws`.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`, for every two neighbours a above b of the ranking, from the
        top, with the slice ``gap=<a>|<b>``: ``elo_gap``, the difference of their mean ratings in points (0 and more),
        and ``win_probability``, what a expects to get against b, 1 / (1 + base^(−gap / scale)), in [1/2, 1]. Both
        intervals come from the difference within each resample of :func:`elo_table`; one that reaches below 0 (below
        1/2) does not settle which of the two is better. ``n_used`` and ``n_excluded`` count all matches of the
        ranking: every one of them can move any rating. Where no chain of matches joins the two, both are undefined.
        Systems without a match are left out; with fewer than two others there is no row.

    Raises
    ------
    ValueError
        See :func:`elo_draws`.

    Examples
    --------
    One match: the winner is 32 points ahead in every order.

    >>> table = pd.DataFrame({"system_x": ["a"], "system_y": ["b"], "preference": ["b"]})
    >>> gaps = elo_gaps(table, permutations=2, ci_level=0.95, resamples=2, seed=1, judge="j")
    >>> gaps["slice"].tolist(), gaps["measure"].tolist(), gaps["estimate"].round(3).tolist()
    (['gap=b|a', 'gap=b|a'], ['elo_gap', 'win_probability'], [32.0, 0.546])
    """
    return _gaps_of(elo_draws(matches, **options))


def _gaps_of(draws: EloDraws) -> pd.DataFrame:
    """The rows of :func:`elo_gaps`."""
    wins = draws.read.wins
    group = connected_components(wins + wins.T, directed=False)[1] if len(wins) else np.zeros(0)
    rated = [system for system in draws.best_first if draws.read.played[system]]
    return frame(line for a, b in pairwise(rated) for line in _gap_rows(a, b, draws, joins=group[a] == group[b]))


def _gap_rows(a: int, b: int, draws: EloDraws, *, joins: bool) -> Iterator[dict[str, Any]]:
    names, used, missing = draws.read.systems, len(draws.read.x), int(draws.read.undecided.sum()) // 2
    place = draws.place(f"gap={names[a]}|{names[b]}")
    left_out = excluded_note(used + missing, "matches", without_preference=missing)
    common: dict[str, Any] = {"n_used": used, "n_excluded": missing, "ci_level": draws.settings.ci_level}
    if not joins:
        note = joined("undefined: no chain of matches joins the two", left_out)
        for measure in ("elo_gap", "win_probability"):
            yield place.row(measure, NAN, method=draws.by_order, note=note, **common)
        return
    gap = max(0.0, float(draws.ratings[a] - draws.ratings[b]))  # equals may differ by the rounding of their sums
    values = draws.resampled[:, a] - draws.resampled[:, b]
    kind: Kind = "coefficient" if gap > SAME else "difference"  # a is ahead in every resample: how far is not known
    made = interval_of(values, gap, draws.n_items, kind, draws.settings, draws.by_resample)
    made["note"] = joined(made["note"], left_out)
    yield place.row("elo_gap", gap, **made, **common)
    low, high = made.pop("interval")  # the probability rises with the gap: its percentiles are those of the gap
    chance = draws.options.win_probability
    yield place.row("win_probability", chance(gap), interval=(chance(low), chance(high)), **made, **common)


def band(gap: float, *, tied: float = 50, strong: float = 150) -> str:
    """A rule of thumb for a difference of two Elo ratings.

    Parameters
    ----------
    gap : float
        Difference in points; its sign does not matter.
    tied, strong : float
        Bounds, 0 ≤ ``tied`` ≤ ``strong``. 50 points are a win probability of 0.571, 150 points one of 0.703.

    Returns
    -------
    str
        ``tied`` below the first bound, ``moderate`` from it up to and with the second, ``strong`` above,
        ``undefined`` for NaN. A band says how large a gap is, not how certain: for that see its interval.

    Raises
    ------
    ValueError
        If the bounds are out of range.

    Notes
    -----
    Source: "(Towards) Scalable Reliable Automated Evaluation with Large Language Models", section 4.4.

    Examples
    --------
    >>> [band(gap) for gap in (49.9, 50, 150, 150.1, float("nan"))]
    ['tied', 'moderate', 'moderate', 'strong', 'undefined']
    """
    if not 0 <= tied <= strong:
        raise ValueError(f"tied is {tied} and strong {strong}; allowed is 0 <= tied <= strong")
    if np.isnan(gap):
        return "undefined"
    return "tied" if abs(gap) < tied else "moderate" if abs(gap) <= strong else "strong"
