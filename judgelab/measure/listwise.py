"""Listwise judging: a ranking of all answers in one call, against pairwise preferences and against itself."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import TIE, check_columns, excluded_note
from judgelab.measure.estimates import Place, Settings, mean_row, rate_row
from judgelab.measure.head_to_head import folded
from judgelab.measure.resampling import Floats
from judgelab.measure.rows import frame, joined
from judgelab.measure.sign_flip import sign_flip_p

__all__ = ["listwise_matches", "listwise_scores", "listwise_table"]

NAN = float("nan")
COLUMNS = ["judge", "item_id", "category", "order", "presented", "ranking"]
MATCHES = ["judge", "item_id", "category", "pass", "system_x", "system_y", "first", "preference", "reason"]
Pairs = dict[tuple[str, str], str]


@dataclass(frozen=True)
class _Call:
    """One listwise call; the ranking is empty if it was unusable."""

    judge: str
    item: Any
    category: Any
    order: str
    presented: tuple[str, ...]
    ranking: tuple[str, ...]
    reason: str

    def places(self, names: tuple[str, ...]) -> Floats:
        """Place of each of ``names`` in the ranking, 0 the best."""
        return np.array([self.ranking.index(name) for name in names], dtype=np.float64)

    def tau(self, names: tuple[str, ...]) -> float:
        """Kendall's τ of the ranking and another order of the same systems."""
        return _tau(np.arange(len(names), dtype=np.float64), self.places(names))


Items = dict[Any, list[_Call]]


def _read(rankings: pd.DataFrame) -> list[_Call]:
    """The calls of a table; see :func:`listwise_table` for what is refused."""
    check_columns(rankings, COLUMNS, "rankings")
    calls = []
    for line in rankings.to_dict("records"):
        where = f"rankings, judge {line['judge']}, item {line['item_id']}, order {line['order']}"
        if any(pd.isna(line[name]) for name in ("judge", "item_id", "order")):
            raise ValueError(f"{where}: a judge, item or order is missing")
        presented, ranking = (_names(line[name], f"{where}: {name}") for name in ("presented", "ranking"))
        if presented is None or len(presented) < 2 or len(set(presented)) < len(presented) or TIE in presented:
            raise ValueError(f"{where}: presented is {presented}; allowed are two or more different systems, not {TIE}")
        if ranking is not None and (len(ranking) != len(presented) or set(ranking) != set(presented)):
            raise ValueError(f"{where}: ranking {list(ranking)} does not have each of {list(presented)} once")
        reason = line.get("reason", "")
        told = "" if ranking is not None or pd.isna(reason) else str(reason)
        names = (str(line["judge"]), line["item_id"], line["category"], str(line["order"]))
        calls.append(_Call(*names, presented, ranking or (), told))
    seen = {(call.judge, call.item, call.order) for call in calls}
    if len(seen) < len(calls):
        raise ValueError(f"rankings: {len(calls) - len(seen)} of {len(calls)} rows repeat a judge, item and order")
    return calls


def _names(value: Any, what: str) -> tuple[str, ...] | None:
    """A list of systems; None where it is missing."""
    if isinstance(value, list | tuple | np.ndarray):
        return tuple(str(name) for name in value)
    if pd.isna(value):
        return None
    raise ValueError(f"{what} is {value!r}; allowed is a list of systems or nothing")


def listwise_matches(rankings: pd.DataFrame) -> pd.DataFrame:
    """Every pair of every ranking as a match that the better placed system won.

    The k(k − 1)/2 matches of a call are one judgment and never contradict each other: only items may be resampled.

    Parameters
    ----------
    rankings : DataFrame
        See :func:`listwise_table`.

    Returns
    -------
    DataFrame
        A matches table: judge, item_id, category, pass (the order's name), system_x, system_y (by name), first (the
        one shown earlier), preference (NaN for every pair of an unusable call), reason, words_x, words_y (NaN: not
        known here). In the table's order; no row without rows.

    Raises
    ------
    ValueError
        As :func:`listwise_table`.

    Examples
    --------
    >>> call = {"judge": "j", "item_id": 1, "category": "c", "order": "order-1"}
    >>> table = pd.DataFrame([call | {"presented": ["C", "A", "B"], "ranking": ["A", "B", "C"]}])
    >>> columns = ["system_x", "system_y", "first", "preference"]
    >>> listwise_matches(table)[columns].to_numpy().tolist()
    [['A', 'B', 'A', 'A'], ['A', 'C', 'C', 'A'], ['B', 'C', 'C', 'B']]
    """
    lines = []
    for call in _read(rankings):
        for x, y in itertools.combinations(sorted(call.presented), 2):
            better = min(x, y, key=call.ranking.index) if call.ranking else NAN
            first = min(x, y, key=call.presented.index)
            lines.append((call.judge, call.item, call.category, call.order, x, y, first, better, call.reason))
    table = pd.DataFrame(lines, columns=MATCHES).assign(words_x=NAN, words_y=NAN)
    return table.astype({"preference": object})


def listwise_scores(rankings: pd.DataFrame, *, overall: bool = False) -> pd.DataFrame:
    """Borda scores of the systems, averaged over the orders of an item.

    A system's score in a ranking of k is the share of the others that it is placed above, (k − place)/(k − 1) with
    places from 1: 1 the best, 0 the worst, so that lists of different lengths compare.

    Parameters
    ----------
    rankings : DataFrame
        See :func:`listwise_table`. Judges are averaged too: give the rows of one for its own scores.
    overall : bool
        One score per system, the mean of its scores of items, instead of one per item.

    Returns
    -------
    DataFrame
        group (item_id, or ``all``), system, rating (0 to 1; NaN without a usable ranking). Groups in the table's
        order.

    Raises
    ------
    ValueError
        As :func:`listwise_table`.

    Notes
    -----
    Source: Borda, "Mémoire sur les élections au scrutin", 1781.

    Examples
    --------
    >>> call = {"judge": "j", "item_id": 1, "category": "c", "presented": ["A", "B", "C"]}
    >>> calls = [call | {"order": "1", "ranking": ["A", "B", "C"]}, call | {"order": "2", "ranking": ["B", "A", "C"]}]
    >>> listwise_scores(pd.DataFrame(calls)).to_numpy().tolist()
    [[1, 'A', 0.75], [1, 'B', 0.75], [1, 'C', 0.0]]
    """
    lines: list[tuple[Any, str, float]] = []
    for call in _read(rankings):
        names = tuple(sorted(call.presented))
        scores = 1 - call.places(names) / (len(names) - 1) if call.ranking else np.full(len(names), NAN)
        lines += [(call.item, name, float(score)) for name, score in zip(names, scores, strict=True)]
    table = pd.DataFrame(lines, columns=["group", "system", "rating"]).astype({"rating": float})
    found = table.groupby(["group", "system"], sort=False)["rating"].mean().reset_index()
    if not overall:
        return found
    return found.groupby("system")["rating"].mean().reset_index().assign(group="all")[list(found.columns)]


def listwise_table(
    rankings: pd.DataFrame, pairwise: pd.DataFrame, *, ci_level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Do a judge's rankings agree with its pairwise preferences, with each other, and with the order shown?

    ====================  ====================================================================================
    measure               what it is
    ====================  ====================================================================================
    unusable_rate         calls without a ranking / calls
    listwise_agreement    pairs of a call placed as the judge's pairwise preference (both presentations made one by
                          :func:`~judgelab.measure.head_to_head.folded`) / such pairs without those tied there
    listwise_kendall      τ_b of the ranking and the order by pairwise wins (a tie half a win), mean over calls. Left
                          out and counted: items on which a pair has no pairwise result, or with equal wins for all
    order_effect_kendall  τ of the order shown and the ranking, mean over usable calls: 1 as shown, 0 expected
    order_effect_p        sign-flip test that it is 0, an item's calls together
    order_consistency     τ of two rankings of one item that differ in the order shown, mean over pairs of calls
    same_winner_rate      pairs of such calls with the same best system / pairs of calls
    first_place_rate      calls that rank best what was shown first / usable calls; the method has the 1/k expected
    last_place_rate       calls that rank best what was shown last / usable calls
    ====================  ====================================================================================

    Parameters
    ----------
    rankings : DataFrame
        One row per listwise call: judge, item_id, category, order (name of the order in which answers were shown),
        presented (list of systems in that order), ranking (list of the same systems, best first, or missing if
        unusable), optionally reason (why unusable).
    pairwise : DataFrame
        A matches table with judge: of each judge, its pairwise verdicts on the same answers. May be without rows.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` per judge of ``rankings``, strategy ``listwise``, pass ``""``.
        Intervals: bootstrap over whole items; of the rates Wilson's where each item has one judgment. NaN with the
        reason where there is nothing to compare. No rows without rankings.

    Raises
    ------
    ValueError
        If a column, judge, item or order is missing; ``presented`` is not two or more different systems; a ranking
        is not one of these; a judge has two calls on an item with one order; or ``pairwise`` is no matches table.

    Notes
    -----
    Each call is compared by itself: one call is what is bought. Agreement with pairwise verdicts is no accuracy.

    ``order_effect_kendall`` and the rates of places need orders that were drawn at random or balanced. Its test needs
    only that an order was as likely as its reverse: reversing the orders of an item changes the sign of its sum if
    rankings do not depend on them, however noisy they are. An effect that favours the middle, or both ends alike,
    leaves τ at 0: see the rates of places, and ``order_consistency``.

    Sources: Kendall, "The treatment of ties in ranking problems", 1945; the test: Fisher, 1935, see
    :func:`judgelab.measure.sign_flip.sign_flip_p`; the effect in rankings by language models: Tang et al., "Found
    in the middle: permutation self-consistency improves listwise ranking in large language models", 2024.
    """
    settings = Settings(ci_level, resamples, seed)
    check_columns(pairwise, ["judge", "item_id", "system_x", "system_y", "preference"], "pairwise")
    calls = _read(rankings)
    preferences: dict[tuple[str, Any], Pairs] = {}
    for line in folded(pairwise, by=("judge", "item_id")).dropna(subset=["preference"]).to_dict("records"):
        x, y = sorted(str(line[name]) for name in ("system_x", "system_y"))
        preferences.setdefault((str(line["judge"]), line["item_id"]), {})[x, y] = str(line["preference"])
    by_judge = {name: [call for call in calls if call.judge == name] for name in dict.fromkeys(c.judge for c in calls)}
    made = (_judge_rows(Place(judge, "listwise"), own, preferences, settings) for judge, own in by_judge.items())
    return frame(itertools.chain.from_iterable(made))


def _judge_rows(
    place: Place, calls: list[_Call], preferences: dict[tuple[str, Any], Pairs], settings: Settings
) -> Iterator[dict[str, Any]]:
    """All rows of one judge."""
    planned: Items = {}
    for call in calls:
        planned.setdefault(call.item, []).append(call)
    missing = {item: [float(not call.ranking) for call in each] for item, each in planned.items()}
    yield rate_row("unusable_rate", place, *_spread(missing), settings=settings)
    usable = {item: [call for call in each if call.ranking] for item, each in planned.items()}
    note = excluded_note(len(calls), "calls", unusable=len(calls) - sum(map(len, usable.values())))
    found = {item: preferences.get((place.judge, item), {}) for item in usable}
    yield _agreement(place, usable, found, settings, note)
    yield _kendall(place, usable, found, settings, note)
    yield from _order_effect(place, usable, settings, note)
    yield from _consistency(place, usable, settings)


def _spread(values: dict[Any, list[float]]) -> tuple[Any, Floats]:
    """Item and number of each value; NaN for an item without one, so that it is counted as left out."""
    pairs = [(code, value) for code, each in enumerate(values.values()) for value in (each or [NAN])]
    return np.array([code for code, _ in pairs]), np.array([value for _, value in pairs], dtype=np.float64)


def _told(line: dict[str, Any], what: str) -> dict[str, Any]:
    """A row whose method also says what was averaged, or what is expected."""
    return line | {"method": joined(what, line["method"])}


def _tau(first: Floats, second: Floats) -> float:
    """Kendall's τ_b of two rankings of a few systems, as scipy's; NaN where one is all ties."""
    upper = np.triu_indices(len(first), 1)
    a, b = (np.sign(each[:, np.newaxis] - each)[upper] for each in (first, second))
    room = (a**2).sum() * (b**2).sum()
    return float((a * b).sum() / math.sqrt(room)) if room else NAN


def _agreement(place: Place, usable: Items, found: dict[Any, Pairs], settings: Settings, note: str) -> dict[str, Any]:
    """Pairs of each call against the folded pairwise preference."""
    values: dict[Any, list[float]] = {}
    pairs, tied, absent = 0, 0, 0
    for item, calls in usable.items():
        ranked = [pair for call in calls for pair in itertools.combinations(call.ranking, 2)]  # the better one first
        results = [found[item].get((min(pair), max(pair))) for pair in ranked]
        pairs, tied, absent = pairs + len(ranked), tied + results.count(TIE), absent + results.count(None)
        both = zip(ranked, results, strict=True)
        values[item] = [float(result == pair[0]) for pair, result in both if result not in (TIE, None)]
    told = excluded_note(pairs, "pairs", tied_pairwise=tied, without_a_pairwise_result=absent)
    return rate_row("listwise_agreement", place, *_spread(values), settings=settings, note=joined(told, note))


def _kendall(place: Place, usable: Items, found: dict[Any, Pairs], settings: Settings, note: str) -> dict[str, Any]:
    """Rankings against the order by pairwise wins."""
    values: dict[Any, list[float]] = {}
    left_out = {"without_a_ranking": 0, "without_a_pairwise_result_of_each_pair": 0, "with_equal_wins": 0}
    for item, calls in usable.items():
        taus = []
        for call in calls:
            names = tuple(sorted(call.presented))
            results = {pair: found[item].get(pair) for pair in itertools.combinations(names, 2)}
            if None not in results.values():
                halves = Counter(name for pair, r in results.items() for name in ((r, r) if r != TIE else pair))
                wins = [halves[name] for name in names]
                taus.append(_tau(-call.places(names), np.array(wins, dtype=np.float64)))
        values[item] = [tau for tau in taus if not math.isnan(tau)]
        left_out["without_a_ranking"] += not calls
        left_out["without_a_pairwise_result_of_each_pair"] += bool(calls) and not taus
        left_out["with_equal_wins"] += bool(taus) and not values[item]
    told = joined(excluded_note(len(usable), "items", **left_out), note)
    return _told(mean_row("listwise_kendall", place, *_spread(values), settings=settings, note=told), "τ_b")


def _order_effect(place: Place, usable: Items, settings: Settings, note: str) -> Iterator[dict[str, Any]]:
    """The order shown against the ranking: mean τ, its test on whole numbers, and what was ranked best."""
    calls = [call for each in usable.values() for call in each]
    one_order = len({call.presented for call in calls}) == 1
    if one_order:
        note = joined("all calls had one order: its effect cannot be told from the systems' quality", note)
    taus = {item: [call.tau(call.presented) for call in each] for item, each in usable.items()}
    yield _told(mean_row("order_effect_kendall", place, *_spread(taus), settings=settings, note=note), "0 expected")
    scale = math.lcm(*(math.comb(len(call.presented), 2) for call in calls))
    sums = [round(sum(each) * scale) for each in taus.values() if each]
    p, reason = NAN, "undefined: all calls had one order" if one_order else "undefined: no usable call"
    if sums and not one_order:
        p, reason = sign_flip_p(sums), ""
    method = "exact sign-flip test, the calls of an item together"
    counts = {"n_used": len(sums), "n_excluded": len(usable) - len(sums)}
    yield place.row("order_effect_p", p, method=method, note=reason, **counts)
    expected = f"{np.mean([1 / len(call.presented) for call in calls]):.3g} expected" if calls else ""
    for measure, shown in (("first_place_rate", 0), ("last_place_rate", -1)):
        best = {
            item: [float(call.presented[shown] == call.ranking[0]) for call in each] for item, each in usable.items()
        }
        yield _told(rate_row(measure, place, *_spread(best), settings=settings, note=note), expected)


def _consistency(place: Place, usable: Items, settings: Settings) -> Iterator[dict[str, Any]]:
    """Two rankings of one item that were asked for in different orders."""
    taus: dict[Any, list[float]] = {}
    winners: dict[Any, list[float]] = {}
    for item, calls in usable.items():
        pairs = [(a, b) for a, b in itertools.combinations(calls, 2) if a.presented != b.presented]
        pairs = [(a, b) for a, b in pairs if set(a.presented) == set(b.presented)]
        taus[item] = [a.tau(b.ranking) for a, b in pairs]
        winners[item] = [float(a.ranking[0] == b.ranking[0]) for a, b in pairs]
    note = excluded_note(len(usable), "items", without_two_usable_orders=sum(not each for each in taus.values()))
    yield _told(mean_row("order_consistency", place, *_spread(taus), settings=settings, note=note), "τ")
    yield rate_row("same_winner_rate", place, *_spread(winners), settings=settings, note=note)
