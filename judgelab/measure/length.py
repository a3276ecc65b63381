"""Is a judge worse where the lengths of the two answers differ, and which shorter answers does it get wrong?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import TIE, check_columns, encode, excluded_note
from judgelab.measure.differences import newcombe_separate
from judgelab.measure.estimates import Settings, rate_row, table_row
from judgelab.measure.resampling import Floats, Ints, ItemTable
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import Flags, JudgeCodes, View, each_judge

__all__ = ["length_cases", "length_table"]

NAN = float("nan")
TOLERANCE = 1e-9  # 1.1 · 10 is 11.000000000000002 in binary
GAP = "exact_agreement_gap"
CASE_COLUMNS = (
    *("judge", "item_id", "category", "system_x", "system_y", "words_x", "words_y", "human"),
    *("pair_original", "pair_swapped", "direct"),
)
ORDER = ("judge", "item_id", "system_x", "system_y")  # of cases with one and the same ratio


def length_table(
    normalized: pd.DataFrame,
    *,
    labels: Sequence[str],
    similar: float = 1.25,
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Agreement with people by how much the two lengths differ, and the errors towards the longer and shorter answer.

    A pair is *similar* if its longer answer has at most ``similar`` times the words of its shorter one, otherwise
    *different*; its length is *unknown* if the number of words of either answer is missing. Two empty answers are
    similar, an empty one and another are different.

    =============================  ============================================  ===============================
    measure                        what it is                                    undefined if
    =============================  ============================================  ===============================
    exact_agreement                equal labels / judgments with two valid       the slice has no judgment with
                                   labels; slices ``length=similar``,            two valid labels
                                   ``length=different`` and, where there are
                                   such pairs, ``length=unknown``
    exact_agreement_gap            similar minus different, slice                either has none
                                   ``length=similar``; above 0: the judge is
                                   worse where lengths differ
    shorter_human_longer_judge     judge prefers the longer answer / people      people never prefer the
                                   prefer the shorter and the judge either       shorter one
    longer_human_shorter_judge     judge prefers the shorter answer / people     people never prefer the
                                   prefer the longer and the judge either        longer one
    =============================  ============================================  ===============================

    Rates and gap lie between 0 and 1 and between −1 and 1. The last two count only answers of different length and
    leave out ties, whoever gives them; the first of them minus the second is ``length_error_gap`` of
    :func:`judgelab.measure.bias.bias_table`, in which a judge of plain noise has 0.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`; ``words_x`` and ``words_y`` are the answers' lengths.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    similar : float
        Largest ratio of the longer to the shorter length that counts as similar; 1 and more, finite.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` for each judge and pass (direct, original, swapped, both,
        aggregated). Rates as in :func:`judgelab.measure.estimates.rate_row`. Interval of the gap: Newcombe's score
        interval for separate items where each item has one judgment, else the bootstrap over whole items.

    Raises
    ------
    ValueError
        If ``similar`` is out of range, a length is negative or infinite, a preference is not one of ``labels``, or a
        column is missing.

    Notes
    -----
    A judge that takes the longer answer agrees with people by luck where people do so too, so a gap alone shows no
    taste for length: pairs of similar length may also be harder. Read it beside the two error rates. Sources: Dubois
    et al., "Length-controlled AlpacaEval", 2024; Zheng et al., "Judging LLM-as-a-judge with MT-Bench and Chatbot
    Arena", 2023, section 3.3 (verbosity); Newcombe, 1998, method 10.
    """
    if not (np.isfinite(similar) and similar >= 1):
        raise ValueError(f"similar is {similar}; allowed is a finite number of 1 and more")
    check_columns(normalized, ["words_x", "words_y"], "normalized")
    settings = Settings(ci_level, resamples, seed)
    tie = list(labels).index(TIE) if TIE in labels else len(labels)
    lines: list[dict[str, Any]] = []
    groups = (group for _, group in normalized.groupby("judge", sort=False))
    for codes, group in zip(each_judge(normalized, labels), groups, strict=True):
        lengths = _Lengths.of(group, labels, similar)
        for view in codes.views():
            seen = lengths.seen(codes, view)
            lines += _agreement_rows(view, seen, settings)
            lines += _error_rows(view, seen, tie, settings)
    return frame(lines)


@dataclass(frozen=True)
class _Lengths:
    """By pair or judgment: is the length known, is it similar, which system is longer and which shorter (−1 none)."""

    known: Flags
    similar: Flags
    longer: Ints
    shorter: Ints

    @classmethod
    def of(cls, group: pd.DataFrame, labels: Sequence[str], similar: float) -> _Lengths:
        x, y = (encode(group[name], labels, f"normalized, column {name}") for name in ("system_x", "system_y"))
        words_x, words_y = _words(group)
        known = ~np.isnan(words_x) & ~np.isnan(words_y)
        more, less = np.fmax(words_x, words_y), np.fmin(words_x, words_y)
        longer = np.where(words_x > words_y, x, np.where(words_y > words_x, y, -1)).astype(np.int64)
        shorter = np.where(words_x > words_y, y, np.where(words_y > words_x, x, -1)).astype(np.int64)
        return cls(known, known & (more <= similar * less + TOLERANCE), longer, shorter)

    def seen(self, codes: JudgeCodes, view: View) -> _Lengths:
        """Those of the judgments of a pass."""
        name = view.place.pass_
        chosen = np.flatnonzero(codes.planned.get(name, codes.planned_both))
        places = np.tile(chosen, 2 if name == "both" else 1)
        return _Lengths(self.known[places], self.similar[places], self.longer[places], self.shorter[places])


def _words(table: pd.DataFrame) -> tuple[Floats, Floats]:
    """The lengths of both answers, NaN where missing."""
    both = []
    for name in ("words_x", "words_y"):
        words = pd.to_numeric(table[name]).to_numpy(dtype=np.float64, na_value=NAN)
        wrong = np.flatnonzero((words < 0) | np.isinf(words))
        if len(wrong):
            raise ValueError(
                f"normalized, column {name}: {len(wrong)} of {len(words)} lengths are not allowed, "
                f"first {words[wrong[0]]:g}; allowed is 0 and more"
            )
        both.append(words)
    return both[0], both[1]


def _agreement_rows(view: View, lengths: _Lengths, settings: Settings) -> Iterator[dict[str, Any]]:
    """Agreement in each slice, and the gap between two of them."""
    matches = np.where(view.valid, (view.human == view.judged).astype(float), NAN)
    slices = {"similar": lengths.similar, "different": lengths.known & ~lengths.similar, "unknown": ~lengths.known}
    for name, chosen in slices.items():
        if chosen.any() or name != "unknown":
            part = view.where(chosen, f"length={name}")
            yield rate_row(
                "exact_agreement", part.place, part.items, matches[chosen], settings=settings, note=part.note
            )
    yield _gap_row(view, matches, slices["similar"], slices["different"], settings)


def _gap_row(view: View, matches: Floats, similar: Flags, different: Flags, settings: Settings) -> dict[str, Any]:
    """Agreement where lengths are similar minus agreement where they differ."""
    counted = ~np.isnan(matches) & (similar | different)
    near, far = counted & similar, counted & different
    right = int(matches[near].sum()), int(matches[far].sum())
    total = int(near.sum()), int(far.sum())
    n_items = len(np.unique(view.items[counted]))
    common: dict[str, Any] = {"ci_level": settings.ci_level, "n_used": n_items}
    common["n_excluded"] = len(np.unique(view.items)) - n_items
    place = view.where(similar, "length=similar").place
    left_out = excluded_note(
        len(counted),
        "judgments",
        without_two_valid_labels=int((~view.valid).sum()),
        of_unknown_length=int((view.valid & ~counted).sum()),
    )
    if 0 in total:
        side = "similar" if total[0] == 0 else "different"
        return place.row(GAP, NAN, note=joined(f"undefined: no judgment of {side} length", left_out), **common)
    method = f"similar minus different, {right[0]}/{total[0]} and {right[1]}/{total[1]}"
    if n_items == sum(total):
        estimate = right[0] / total[0] - right[1] / total[1]
        bounds = newcombe_separate(right, total, settings.ci_level)
        method = f"{method}, Newcombe's score interval"
        return place.row(GAP, estimate, interval=bounds, method=method, note=left_out, **common)
    features = np.column_stack([near & (matches == 1), near, far & (matches == 1), far])[counted].astype(np.float64)
    table = ItemTable.of(view.items[counted], features)
    return table_row(
        GAP, place, table, _gap_of, settings=settings, note=left_out, undefined="", method=method, **common
    )


def _gap_of(totals: Floats) -> Floats:
    """Rate of the first two columns minus rate of the last two, NaN where either has no judgment."""
    rates = np.full((2, len(totals)), NAN)
    np.divide(totals[:, 0::2].T, totals[:, 1::2].T, out=rates, where=totals[:, 1::2].T > 0)
    return (rates[0] - rates[1])[np.newaxis, :]


def _error_rows(view: View, lengths: _Lengths, tie: int, settings: Settings) -> Iterator[dict[str, Any]]:
    """How often the judge takes the longer answer where people took the shorter, and the mirror of it."""
    decided = view.valid & (view.human != tie) & (view.judged != tie)
    unequal = decided & (lengths.longer >= 0)
    for measure, theirs, other, word in (
        ("shorter_human_longer_judge", lengths.shorter, lengths.longer, "longer"),
        ("longer_human_shorter_judge", lengths.longer, lengths.shorter, "shorter"),
    ):
        counts = unequal & (view.human == theirs)
        values = np.where(counts, (view.judged == other).astype(float), NAN)
        note = excluded_note(
            len(counts),
            "judgments",
            without_two_preferences=int((~decided).sum()),
            equally_long_or_of_unknown_length=int((decided & ~unequal).sum()),
            **{f"where_people_prefer_the_{word}": int((unequal & ~counts).sum())},
        )
        yield rate_row(measure, view.place, view.items, values, settings=settings, note=note)


def length_cases(normalized: pd.DataFrame) -> pd.DataFrame:
    """The judgments to read: people preferred the shorter answer, and the judge the longer one.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`.

    Returns
    -------
    DataFrame
        judge, item_id, category, system_x, system_y, words_x, words_y, human, pair_original, pair_swapped, direct:
        a row for each pair on which people preferred the shorter answer and the judge, in either pairwise pass, the
        longer one. The largest ratio of the lengths comes first (an empty answer before all others), equal ratios in
        the order of judge, item and pair. No rows if there is no such pair; ``category`` and ``direct`` are as in
        ``normalized``, missing where it has none.

    Raises
    ------
    ValueError
        If a length is negative or infinite, or a column is missing.

    Notes
    -----
    What stands here is either a taste for length or a person's label to look at again; only reading tells.

    Examples
    --------
    >>> table = pd.DataFrame({
    ...     "judge": "j", "item_id": ["a", "b", "c"], "system_x": "X", "system_y": "Y", "human": ["X", "X", "Y"],
    ...     "pair_original": "Y", "pair_swapped": ["X", "Y", "Y"], "words_x": [10, 5, 5], "words_y": 20,
    ... })
    >>> length_cases(table)["item_id"].tolist()
    ['b', 'a']
    """
    needed = [name for name in CASE_COLUMNS if name not in ("category", "direct")]
    check_columns(normalized, needed, "normalized")
    words_x, words_y = _words(normalized)
    longer = np.where(words_x > words_y, normalized["system_x"], normalized["system_y"])
    shorter = np.where(words_x > words_y, normalized["system_y"], normalized["system_x"])
    took = [(normalized[name].astype(object) == longer).to_numpy(dtype=bool) for name in CASE_COLUMNS[8:10]]
    unequal = (words_x < words_y) | (words_x > words_y)
    chosen = unequal & (normalized["human"].astype(object) == shorter).to_numpy(dtype=bool) & (took[0] | took[1])
    cases = normalized[chosen].reindex(columns=list(CASE_COLUMNS))
    more, less = (pick(words_x, words_y)[chosen] for pick in (np.fmax, np.fmin))
    ratio = np.divide(more, less, out=np.full(len(more), np.inf), where=less > 0)
    names = [cases[name].astype(str).to_numpy() for name in reversed(ORDER)]
    return cases.iloc[np.lexsort([*names, -ratio])].reset_index(drop=True)
