"""Does a judge favour the longer answer, a family of systems, or a place, beyond what people do on the same items?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest, fisher_exact

from judgelab.measure.coding import TIE, check_columns, encode, excluded_note
from judgelab.measure.differences import newcombe_paired, newcombe_separate
from judgelab.measure.estimates import Place, Settings, rate_row, table_row
from judgelab.measure.resampling import Floats, Ints, ItemTable
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import Flags, JudgeCodes, View, each_judge

__all__ = ["bias_rows", "bias_table"]

NAN = float("nan")
NOTHING = "undefined: no judgment to count"
SEVERAL = "undefined: an item has several judgments, which are not independent; read the interval"


def bias_table(
    normalized: pd.DataFrame,
    *,
    labels: Sequence[str],
    families: Mapping[str, Sequence[str]] | None = None,
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """How much more often than people every judge prefers the longer answer, or the answer of a family of systems.

    Each judgment compares a *favoured* answer (the longer one, or the family's) with another. Only judgments count
    for which the person and the judge both prefer one of the two, and one of the answers is favoured (not equally
    long; exactly one system of the family).

    ====================================  ================================================================
    measure                               what it is
    ====================================  ================================================================
    longer_rate, human_longer_rate        favoured answer preferred / judgments that count, by the judge
                                          and, on the same items, by people
    length_gap, length_gap_p              longer_rate − human_longer_rate; exact McNemar test
    length_error_gap, length_error_gap_p  share wrong where people prefer the other answer, minus share
                                          wrong where they prefer the favoured one; Fisher's exact test
    family_rate, human_family_rate,       the same with the family's answer; slice ``family=<f>``
    family_gap, family_gap_p,
    family_error_gap, family_error_gap_p
    first_position_p (both)               pairs decided by place, the first one in both presentations or the
                                          second in both: exact sign test of as many of either
    ====================================  ================================================================

    Above 0: the judge favours such answers more than people do. A p-value is two-sided.

    The two gaps answer different questions. The *gap* is what a reader of the judge's preferences sees; it also moves
    with plain noise: if people prefer the longer answer on 70 of 100 items and a judge errs on every fifth item
    whatever its length, it prefers the longer one on 0.7 · 0.8 + 0.3 · 0.2 = 62, a gap of −0.08 without any taste
    for length. The *error gap* is 0 for such a judge (0.2 − 0.2) and above 0 only if it errs in favour of length.
    Whether a judge is biased is read from the error gap.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`; ``words_x`` and ``words_y`` are the answers' lengths.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    families : mapping of str to sequence of str, optional
        Systems of each family, by the family's name, for instance those of the judge's own maker.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` for each judge and pass (direct, original, swapped, both,
        aggregated). Rates as in :func:`judgelab.measure.estimates.rate_row`. Intervals of gaps: Newcombe's score
        intervals where each item has one judgment, else the bootstrap over whole items; there p-values are undefined.

    Raises
    ------
    ValueError
        If a preference is not one of ``labels``, a column is missing, or a family is empty, holds a system that is
        not in ``labels``, or holds all systems.

    Notes
    -----
    Sources: for length, Dubois et al., "Length-controlled AlpacaEval", 2024; for families, Panickssery, Bowman and
    Feng, "LLM evaluators recognize and favor their own generations", 2024. Comparing errors at each human label is the
    equalized-odds criterion of Hardt, Price and Srebro, 2016, definition 2.1. Tests: McNemar, 1947 (exact binomial);
    Fisher, 1935. Leniency in scores is ``mean_difference`` of :func:`judgelab.measure.scores.score_table`.
    """
    check_columns(normalized, ["words_x", "words_y"], "normalized")
    settings = Settings(ci_level, resamples, seed)
    named = _checked(families or {}, labels)
    tie = list(labels).index(TIE) if TIE in labels else len(labels)
    lines: list[dict[str, Any]] = []
    groups = (group for _, group in normalized.groupby("judge", sort=False))
    for codes, group in zip(each_judge(normalized, labels), groups, strict=True):
        x, y = (encode(group[name], labels, f"normalized, column {name}") for name in ("system_x", "system_y"))
        for view, favoured in _seen(codes, _longer(group, x, y)):
            lines += bias_rows("length", "longer", view, favoured, tie, "equally_long_or_of_unknown_length", settings)
        for name, members in named.items():
            for view, favoured in _seen(codes, _of_family(members, x, y)):
                part = view.where(np.ones(len(view.items), dtype=bool), f"family={name}")
                lines += bias_rows(
                    "family", "family", part, favoured, tie, "without_exactly_one_of_the_family", settings
                )
        if codes.planned_both.any():
            lines.append(_place_p(codes, tie))
    return frame(lines)


def _place_p(codes: JudgeCodes, tie: int) -> dict[str, Any]:
    """Test of the pairs on which the judge chose the same place twice, that is, another system each time."""
    both = codes.planned_both
    items, original, swapped = codes.items[both], codes.original[both], codes.swapped[both]
    decisive = (original >= 0) & (swapped >= 0) & (original != tie) & (swapped != tie)
    reversed_ = decisive & (original != swapped)
    place = Place(codes.judge, "pairwise", "both")
    note = excluded_note(len(items), "pairs", **{"without_two_non-tie_verdicts": int((~decisive).sum())})
    n_items = len(np.unique(items[decisive]))
    common = {"n_used": n_items, "n_excluded": len(np.unique(items)) - n_items}
    if n_items < int(decisive.sum()):
        return place.row("first_position_p", NAN, note=joined(SEVERAL, note), **common)
    if not reversed_.any():
        reason = "undefined: no pair is decided by place" if decisive.any() else NOTHING
        return place.row("first_position_p", NAN, note=joined(reason, note), **common)
    first, n = int((reversed_ & (original == codes.original_first[both])).sum()), int(reversed_.sum())
    method = f"exact sign test, two-sided: the first place in {first} of {n} pairs decided by place"
    return place.row("first_position_p", float(binomtest(first, n).pvalue), method=method, note=note, **common)


def _checked(families: Mapping[str, Sequence[str]], labels: Sequence[str]) -> dict[str, list[int]]:
    """Label codes of each family's systems."""
    systems = [label for label in labels if label != TIE]
    for name, members in families.items():
        unknown = [member for member in members if member not in systems]
        if unknown:
            raise ValueError(
                f"family {name}: {len(unknown)} of {len(members)} systems are unknown, first {unknown[0]!r}; "
                f"allowed are {', '.join(systems)}"
            )
        if not 0 < len(set(members)) < len(systems):
            raise ValueError(f"family {name} has {len(set(members))} of {len(systems)} systems; allowed is a part")
    return {name: [list(labels).index(member) for member in members] for name, members in families.items()}


def _longer(group: pd.DataFrame, x: Ints, y: Ints) -> Ints:
    """Code of the longer answer's system; −1 where both are equally long or a length is missing."""
    words_x, words_y = (pd.to_numeric(group[f"words_{side}"]).to_numpy(dtype=np.float64) for side in "xy")
    longer = np.where(words_x > words_y, x, np.where(words_y > words_x, y, -1))
    return longer.astype(np.int64)


def _of_family(members: Sequence[int], x: Ints, y: Ints) -> Ints:
    """Code of the family's system where exactly one of the two is in it, else −1."""
    first, second = np.isin(x, members), np.isin(y, members)
    return np.where(first & ~second, x, np.where(second & ~first, y, -1)).astype(np.int64)


def _seen(codes: JudgeCodes, favoured: Ints) -> Iterator[tuple[View, Ints]]:
    """Every pass with the favoured answers of its judgments."""
    for view in codes.views():
        name = view.place.pass_
        if name in codes.planned:
            yield view, favoured[codes.planned[name]]
        else:
            yield view, np.tile(favoured[codes.planned_both], 2 if name == "both" else 1)


@dataclass(frozen=True)
class _Sides:
    """Whether the person and the judge prefer the favoured answer, in the judgments that count."""

    items: Ints
    human: Flags
    judged: Flags

    @property
    def single(self) -> bool:
        """Whether each item has one judgment."""
        return len(np.unique(self.items)) == len(self.items)

    @property
    def cells(self) -> list[int]:
        """Judgments for the favoured answer by judge and person, by the judge, by the person, by neither."""
        pairs = ((True, True), (True, False), (False, True), (False, False))
        return [int(((self.judged == j) & (self.human == h)).sum()) for j, h in pairs]


def bias_rows(
    stem: str, rate: str, view: View, favoured: Ints, tie: int, unfit: str, settings: Settings
) -> Iterator[dict[str, Any]]:
    """The rows of one view: how often judge and people take the favoured answer, and both gaps with their tests.

    Parameters
    ----------
    stem, rate : str
        Beginning of the names of the gaps (``length``) and of the rates (``longer``).
    favoured : array of shape (n,)
        Code of the answer that the bias would favour, negative where there is none.
    tie : int
        Code of a tie; judgments with one are left out and counted.
    unfit : str
        Why a judgment has no favoured answer, as a word for the note.
    """
    decided = view.valid & (view.human != tie) & (view.judged != tie)
    counts = decided & (favoured >= 0)
    note = excluded_note(
        len(counts),
        "judgments",
        without_two_preferences=int((~decided).sum()),
        **{unfit: int((decided & ~counts).sum())},
    )
    for measure, side in ((f"{rate}_rate", view.judged), (f"human_{rate}_rate", view.human)):
        values = np.where(counts, (side == favoured).astype(float), NAN)
        yield rate_row(measure, view.place, view.items, values, settings=settings, note=note)
    sides = _Sides(view.items[counts], (view.human == favoured)[counts], (view.judged == favoured)[counts])
    n_items = len(np.unique(sides.items))
    common = {"n_used": n_items, "n_excluded": len(np.unique(view.items)) - n_items}
    yield _gap_row(f"{stem}_gap", view.place, sides, note, settings, common)
    yield _gap_p(f"{stem}_gap_p", view.place, sides, note, common)
    yield _error_gap_row(f"{stem}_error_gap", view.place, sides, note, settings, common)
    yield _error_gap_p(f"{stem}_error_gap_p", view.place, sides, note, common)


def _gap_row(
    measure: str, place: Place, sides: _Sides, note: str, settings: Settings, common: dict[str, int]
) -> dict[str, Any]:
    what = "judge minus people on the same items"
    level = {"ci_level": settings.ci_level}
    if len(sides.items) == 0:
        return place.row(measure, NAN, note=joined(NOTHING, note), **common, **level)
    if sides.single:
        both, judge, people, neither = sides.cells
        bounds = newcombe_paired(both, judge, people, neither, settings.ci_level)
        method = f"{what}, Newcombe's paired score interval"
        estimate = (judge - people) / len(sides.items)
        return place.row(measure, estimate, interval=bounds, method=method, note=note, **common, **level)
    difference = sides.judged.astype(float) - sides.human
    table = ItemTable.of(sides.items, np.column_stack([difference, np.ones(len(difference))]))
    return table_row(
        measure, place, table, _mean, settings=settings, note=note, undefined="", method=what, **common, **level
    )


def _mean(totals: Floats) -> Floats:
    return (totals[:, 0] / totals[:, 1])[np.newaxis, :]


def _gap_p(measure: str, place: Place, sides: _Sides, note: str, common: dict[str, int]) -> dict[str, Any]:
    if not sides.single:
        return place.row(measure, NAN, note=joined(SEVERAL, note), **common)
    _, judge, people, _ = sides.cells
    if len(sides.items) == 0:
        return place.row(measure, NAN, note=joined(NOTHING, note), **common)
    if judge + people == 0:
        reason = "undefined: no item on which one of the two prefers such an answer and the other does not"
        return place.row(measure, NAN, note=joined(reason, note), **common)
    p = float(binomtest(judge, judge + people).pvalue)
    method = f"exact McNemar test, two-sided: {judge} of {judge + people} discordant items"
    return place.row(measure, p, method=method, note=note, **common)


def _error_gap_row(
    measure: str, place: Place, sides: _Sides, note: str, settings: Settings, common: dict[str, int]
) -> dict[str, Any]:
    what = "share wrong where people prefer the other answer, minus where they prefer such an answer"
    level = {"ci_level": settings.ci_level}
    reason = _one_sided(sides)
    if reason:
        return place.row(measure, NAN, note=joined(reason, note), **common, **level)
    both, judge, people, neither = sides.cells
    if sides.single:
        counts, trials = (judge, people), (judge + neither, people + both)
        bounds = newcombe_separate(counts, trials, settings.ci_level)
        method = f"{what}, {judge} of {trials[0]} and {people} of {trials[1]}, Newcombe's score interval"
        estimate = counts[0] / trials[0] - counts[1] / trials[1]
        return place.row(measure, estimate, interval=bounds, method=method, note=note, **common, **level)
    wrong = sides.judged != sides.human
    features = np.column_stack([wrong & ~sides.human, ~sides.human, wrong & sides.human, sides.human])
    table = ItemTable.of(sides.items, features.astype(np.float64))
    return table_row(
        measure, place, table, _two_rates, settings=settings, note=note, undefined="", method=what, **common, **level
    )


def _two_rates(totals: Floats) -> Floats:
    rates = []
    for successes, trials in (totals.T[:2], totals.T[2:]):
        rate = np.full(len(totals), NAN)
        np.divide(successes, trials, out=rate, where=trials > 0)
        rates.append(rate)
    return (rates[0] - rates[1])[np.newaxis, :]


def _one_sided(sides: _Sides) -> str:
    if len(sides.items) == 0:
        return NOTHING
    if sides.human.all() or not sides.human.any():
        return f"undefined: people {'always' if sides.human.all() else 'never'} prefer such an answer"
    return ""


def _error_gap_p(measure: str, place: Place, sides: _Sides, note: str, common: dict[str, int]) -> dict[str, Any]:
    reason = _one_sided(sides) or ("" if sides.single else SEVERAL)
    if reason:
        return place.row(measure, NAN, note=joined(reason, note), **common)
    both, judge, people, neither = sides.cells
    p = float(fisher_exact([[judge, neither], [people, both]]).pvalue)
    return place.row(measure, min(p, 1.0), method="Fisher's exact test, two-sided", note=note, **common)
