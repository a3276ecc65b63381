"""A person re-judges a few of a judge's verdicts blind: which ones, and how often the two agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.coding import TIE, check_columns, excluded_note
from judgelab.measure.estimates import Place, Settings, rate_row
from judgelab.measure.matches import Matches
from judgelab.measure.resampling import Ints, generator
from judgelab.measure.rows import frame, joined

__all__ = ["SpotCheck", "spot_check_agreement", "spot_check_sample"]

NAN = float("nan")
SHEET = ["check_id", "item_id", "shown_first", "shown_second"]
KEY = ["check_id", "judge", "item_id", "category", "pass", "system_x", "system_y", "preference"]
SEPARATE = ("category", "preference")


class SpotCheck(NamedTuple):
    """A blind sheet and the key to it.

    Attributes
    ----------
    sheet : DataFrame
        check_id, item_id, shown_first, shown_second: which answers to show, and in which places. Neither judge nor
        verdict; whoever renders the texts also leaves out the systems' names.
    key : DataFrame
        check_id, judge, item_id, category, pass, system_x, system_y, preference. Not for the person who judges.
    """

    sheet: pd.DataFrame
    key: pd.DataFrame


def spot_check_sample(
    verdicts: pd.DataFrame,
    *,
    size: int = 25,
    seed: int,
    strata: Sequence[str] = ("judge", "category", "preference"),
) -> SpotCheck:
    """Draw usable verdicts for a person to judge again without knowing them.

    Strata are allotted their share of ``size`` by largest remainders (equal ones by chance). If there are no more
    strata than ``size``, each gets one verdict at least, taken from the stratum that is most above its share: rare
    kinds of verdicts are then looked at a little more often than they occur. Within a stratum verdicts are drawn at
    random, those on the same two answers (other judges, the other presentation) only when there are no others.

    Parameters
    ----------
    verdicts : DataFrame
        A matches table: judge, item_id, pass, system_x, system_y, preference, and the columns of ``strata``.
        Verdicts without a preference are not drawn.
    size : int
        Verdicts to draw, 1 or more; 20 to 30 are usual. All are taken where there are fewer.
    seed : int
        The protocol's seed.
    strata : sequence of str
        Columns of ``verdicts``; empty for a plain random sample. A missing value is a stratum of its own.

    Returns
    -------
    SpotCheck
        ``sheet`` and ``key``, both sorted by check_id, an order that tells nothing. check_id and the places depend on
        the seed and on which call it was (not on what the verdict was, and not on the other rows), so that labels never
        attach to another verdict. They say nothing by themselves; who has seed and table can work them out.

    Raises
    ------
    ValueError
        If a column is missing, ``size`` is below 1, a row is no match (see
        :class:`judgelab.measure.matches.Matches`), a judge, item or pass is missing, or a judge has two verdicts on one
        pair of one item in one pass.

    Notes
    -----
    Stratified sampling with proportional allocation: Cochran, *Sampling Techniques*, 1977, chapter 5.

    Examples
    --------
    Of 80 preferences for A and 20 for B, five are drawn in proportion: 4 and 1.

    >>> table = pd.DataFrame({"judge": "j", "item_id": range(100), "pass": "original", "system_x": "A"})
    >>> table = table.assign(system_y="B", preference=["A"] * 80 + ["B"] * 20)
    >>> spot_check_sample(table, size=5, seed=1, strata=["preference"]).key["preference"].value_counts().to_dict()
    {'A': 4, 'B': 1}
    """
    check_columns(verdicts, [*(name for name in KEY[1:] if name != "category"), *strata], "verdicts")
    if size < 1:
        raise ValueError(f"size is {size}; allowed is 1 and more")
    Matches.of(verdicts)  # refuses what is no match
    for name in ("judge", "item_id", "pass"):
        if verdicts[name].isna().any():
            count = int(verdicts[name].isna().sum())
            raise ValueError(f"verdicts, column {name}: {count} of {len(verdicts)} are missing")
    usable = verdicts[verdicts["preference"].notna()].reset_index(drop=True)
    names = np.sort(usable[["system_x", "system_y"]].to_numpy(dtype=str), axis=1)
    calls = pd.DataFrame({"judge": usable["judge"].astype(str), "item": usable["item_id"].astype(str)})
    calls = calls.assign(a=names[:, 0], b=names[:, 1], call=usable["pass"].astype(str))
    if calls.duplicated().any():
        where = calls[calls.duplicated()].iloc[0]
        raise ValueError(
            f"verdicts: {int(calls.duplicated().sum())} of {len(calls)} repeat a judge, item, pair and pass; first "
            f"judge {where['judge']}, item {where['item']}, pair {where['a']} {where['b']}, pass {where['call']}"
        )
    calls = calls.sort_values(list(calls.columns))  # so that the order of the rows does not matter
    chosen = calls.loc[_drawn(usable.loc[calls.index], calls, list(strata), min(size, len(calls)), seed)]
    lines = [_check(seed, [str(part) for part in call]) for call in chosen.to_numpy(dtype=object)]
    places = pd.DataFrame(lines, columns=["check_id", "shown_first", "shown_second"], index=chosen.index)
    key = usable.loc[chosen.index].reindex(columns=KEY[1:]).assign(check_id=places["check_id"])
    sheet = places.assign(item_id=key["item_id"])
    in_order = [table.sort_values("check_id").reset_index(drop=True) for table in (sheet[SHEET], key[KEY])]
    return SpotCheck(*in_order)


def _check(seed: int, call: list[str]) -> tuple[str, str, str]:
    """The id of one call, and its two systems in the places in which a person sees them."""
    rng = generator(seed, "spot_check", *call)
    identity, turned = rng.bytes(6).hex(), int(rng.integers(2))
    pair = call[2:4]
    return identity, pair[turned], pair[1 - turned]


def _drawn(usable: pd.DataFrame, calls: pd.DataFrame, strata: list[str], size: int, seed: int) -> list[Any]:
    """Index of the verdicts that are drawn."""
    if size == 0:
        return []
    rng = generator(seed, "spot_check_sample")
    shuffled = calls.index.to_numpy()[rng.permutation(len(calls))]
    table = usable.loc[shuffled]
    by: Any = strata or np.zeros(len(table))
    codes = table.groupby(by, sort=False, dropna=False, observed=True).ngroup().to_numpy(dtype=np.int64)
    questions = pd.factorize(pd.MultiIndex.from_frame(calls.loc[shuffled, ["item", "a", "b"]]))[0]
    seen: set[int] = set()
    drawn: list[Any] = []
    for stratum, count in enumerate(_allotted(np.bincount(codes).astype(np.int64), size)):
        members = np.flatnonzero(codes == stratum)
        fresh: list[int] = []
        again: list[int] = []
        for place in members:
            if len(fresh) == count:
                break
            known = questions[place] in seen
            (again if known else fresh).append(int(place))
            seen.add(int(questions[place]))
        drawn += [shuffled[place] for place in (fresh + again)[:count]]
    return drawn


def _allotted(counts: Ints, size: int) -> Ints:
    """How many of ``size`` each stratum gets; ``counts`` (in random order) sum to at least ``size``."""
    quota = size * counts / counts.sum()
    given = np.floor(quota + 1e-9).astype(np.int64)
    largest = np.argsort(-np.round(quota - given, 9), kind="stable")
    given[largest[: size - int(given.sum())]] += 1
    if len(counts) <= size:
        for empty in np.flatnonzero(given == 0):
            most = int(np.argmax(np.where(given > 1, given - quota, -np.inf)))
            given[most] -= 1
            given[empty] = 1
    return given


def spot_check_agreement(
    key: pd.DataFrame, labels: pd.DataFrame, *, threshold: float = 0.8, ci_level: float, judge: str
) -> pd.DataFrame:
    """How often a person who judged blind preferred what the judge had preferred.

    Parameters
    ----------
    key : DataFrame
        The key of :func:`spot_check_sample`.
    labels : DataFrame
        check_id, preference (one of the two systems, ``TIE``, or missing: not judged). Checks may be absent.
    threshold : float
        What the agreement is compared with in the note, above 0 and below 1. 0.8 is a rule of thumb, no law.
    ci_level : float
        Coverage.
    judge : str
        Name of the first rows: a judge, or ``panel`` where the key has several, each of which then has a row, too.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`, strategy ``pairwise``, measure ``spot_check_agreement``: equal
        preferences / verdicts checked; a tie equals a tie only. Slices ``all``, ``category=<c>`` and
        ``preference=<p>`` (what the judge preferred), the latter two where there are several. n_used counts verdicts.
        Wilson's interval; the note says whether it lies above, below or around the threshold. NaN without a label.

    Raises
    ------
    ValueError
        If a column is missing, ``threshold`` is out of range, a check_id is unknown or labelled twice, or a label is
        neither of the two systems nor ``TIE``.

    Notes
    -----
    The interval is about all verdicts from which the sample came, of which each check is one; that is why verdicts
    are counted and not items. With 25 verdicts it is 0.3 wide: 20 of 25 (0.80) go with an agreement from 0.61 to
    0.91, and at least 24 of 25 must agree for it to lie above 0.8. So small a sample tells a broken judge from one
    that works, no more. The person's own errors count as the judge's.

    Examples
    --------
    >>> key = pd.DataFrame({"check_id": ["a", "b"], "item_id": [1, 2], "preference": ["A", "TIE"]})
    >>> key = key.assign(judge="j", category="c", system_x="A", system_y="B").assign(**{"pass": "original"})
    >>> labels = pd.DataFrame({"check_id": ["b", "a"], "preference": ["B", "A"]})
    >>> rows = spot_check_agreement(key, labels, ci_level=0.95, judge="j")
    >>> rows["estimate"].tolist(), rows["slice"].tolist()
    ([0.5, 1.0, 0.0], ['all', 'preference=A', 'preference=TIE'])
    """
    check_columns(key, KEY, "key")
    check_columns(labels, ["check_id", "preference"], "labels")
    if not 0 < threshold < 1:
        raise ValueError(f"threshold is {threshold}; allowed is above 0 and below 1")
    given = _labels(key, labels)
    same = np.where(pd.isna(given), NAN, np.asarray(given == key["preference"].to_numpy(dtype=object), dtype=float))
    settings = Settings(ci_level, 1, 0)  # nothing is resampled
    lines = []
    for place, chosen in _places(key, judge):
        values = same[chosen]
        note = excluded_note(len(values), "verdicts", without_a_label=int(np.isnan(values).sum()))
        line = rate_row("spot_check_agreement", place, np.arange(len(values)), values, settings=settings)
        lines.append(line | {"note": joined(line["note"], _against(line, threshold), note)})
    return frame(lines)


def _labels(key: pd.DataFrame, labels: pd.DataFrame) -> NDArray[Any]:
    """The label of each row of the key; missing where there is none."""
    for table, what in ((key, "key"), (labels, "labels")):
        twice = table["check_id"].duplicated()
        if twice.any():
            raise ValueError(f"{what}: check_id {table['check_id'][twice].iloc[0]!r} is there twice")
    unknown = labels.loc[~labels["check_id"].isin(key["check_id"]), "check_id"]
    if len(unknown):
        raise ValueError(
            f"labels: {len(unknown)} of {len(labels)} check_ids are not in the key; first {unknown.iloc[0]!r}"
        )
    by_id = labels.set_index("check_id")["preference"].astype(object)
    given = by_id.reindex(key["check_id"]).to_numpy(dtype=object)
    wrong = ~pd.isna(given) & (given != TIE)
    for name in ("system_x", "system_y"):
        wrong &= np.asarray(given != key[name].to_numpy(dtype=object), dtype=bool)
    if wrong.any():
        where = int(np.flatnonzero(wrong)[0])
        line = key.iloc[where]
        raise ValueError(
            f"labels: {int(wrong.sum())} of {len(labels)} are not allowed; check_id {line['check_id']!r} has "
            f"{given[where]!r}, allowed are {line['system_x']}, {line['system_y']}, {TIE} or nothing"
        )
    return given


def _places(key: pd.DataFrame, judge: str) -> Iterator[tuple[Place, NDArray[np.bool_]]]:
    """What there is a row of: everything, each of several judges, categories and preferences."""
    yield Place(judge, "pairwise"), np.ones(len(key), dtype=bool)
    judges = pd.unique(key["judge"])
    if len(judges) > 1:
        for name in judges:
            yield Place(str(name), "pairwise"), (key["judge"] == name).to_numpy(dtype=bool)
    for column in SEPARATE:
        values = pd.unique(key[column].dropna())
        if len(values) > 1:
            for value in values:
                place = Place(judge, "pairwise", slice_=f"{column}={value}")
                yield place, (key[column] == value).to_numpy(dtype=bool)


def _against(line: dict[str, Any], threshold: float) -> str:
    """Where the interval of a row lies."""
    low, high, checked = line["ci_low"], line["ci_high"], line["denominator"]
    if not checked:
        return ""
    unit = "verdict" if checked == 1 else "verdicts"
    if low > threshold:
        return f"the interval lies above {threshold:g}"
    if high < threshold:
        return f"the interval lies below {threshold:g}"
    return f"the interval lies around {threshold:g}: {checked} {unit} cannot tell"
