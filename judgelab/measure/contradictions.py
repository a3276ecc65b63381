"""Verdicts at odds with the reasons that the judge itself gave for them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import TIE, check_columns, encode, excluded_note
from judgelab.measure.estimates import Place, Settings, rate_row
from judgelab.measure.resampling import Floats
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import Flags

__all__ = ["BETTER_CODES", "FAULT_CODES", "contradiction_table", "contradictions"]

NAN = float("nan")
TOLERANCE = 1e-9  # weighted totals such as (2 · 5 + 5) / 3 have no exact binary form
BETTER_CODES = ("MORE_CORRECT", "MORE_RELEVANT", "MORE_COMPLETE", "SAFER", "CLEARER")
FAULT_CODES = ("WRONG_CLAIM", "OFF_TOPIC", "INCOMPLETE", "UNSAFE", "UNVERIFIED", "UNCLEAR")
EQUAL, FAULTLESS = "NO_DIFFERENCE", "CORRECT"
KNOWN = {"direct": frozenset({FAULTLESS, *FAULT_CODES}), "pairwise": frozenset({EQUAL, *BETTER_CODES})}
NEEDED = ("judge", "strategy", "pass", "item_id", "verdict", "total", "critical_error", "reason_codes", "status")
SHOWN = ("judge", "strategy", "pass", "item_id", "system", "first", "second")
LISTED = (*SHOWN, "verdict", "total", "critical_error", "reason_codes", "contradiction")


@dataclass(frozen=True)
class _Scale:
    """The scale of totals and from where on an answer is accepted."""

    minimum: float
    maximum: float
    given: float | None

    def __post_init__(self) -> None:
        if not self.minimum < self.maximum:
            raise ValueError(f"minimum is {self.minimum}, maximum {self.maximum}; the first must be below the second")
        if not self.minimum <= self.threshold <= self.maximum:
            limits = f"{self.minimum} to {self.maximum}"
            raise ValueError(f"acceptance_threshold is {self.given}; allowed is {limits}")

    @property
    def threshold(self) -> float:
        """The least accepted total."""
        return (self.minimum + self.maximum) / 2 if self.given is None else float(self.given)

    @property
    def method(self) -> str:
        """What is accepted, in words."""
        return f"accepted from {self.threshold:g}" + (", the middle of the scale" if self.given is None else "")


def contradiction_table(
    verdicts: pd.DataFrame,
    *,
    acceptance_threshold: float | None,
    minimum: float,
    maximum: float,
    ci_level: float,
    resamples: int,
    seed: int,
) -> pd.DataFrame:
    """How often a verdict contradicts the reason codes, or the critical error, that came with it.

    ==================================  =========================================================================
    measure                             what it is
    ==================================  =========================================================================
    reason_code_rate                    verdicts with at least one known reason code / usable verdicts
    verdict_reason_contradiction_rate   pairwise: a winner with NO_DIFFERENCE among its codes, or a tie with one of
                                        :data:`BETTER_CODES` / verdicts with at least one known code
    critical_error_accepted_rate        direct: total of at least the threshold / verdicts that report a critical
                                        error
    top_score_with_fault_rate           direct: the highest total / verdicts with one of :data:`FAULT_CODES`
    no_fault_low_score_rate             direct: total below the threshold / verdicts with the code CORRECT and no
                                        fault
    ==================================  =========================================================================

    Parameters
    ----------
    verdicts : DataFrame
        One row per planned call: judge, strategy, pass, item_id, verdict (pairwise: A, B, TIE), total (direct),
        critical_error, reason_codes (text of a JSON list, or a list), status. Only calls of status ``verdict`` count.
    acceptance_threshold : float or None
        Least total with which an answer is accepted, in points of the scale; None: the middle of the scale.
    minimum, maximum : float
        Ends of the scale of totals.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS` for each judge, strategy and pass; ``n_used`` counts items.
        Wilson's interval where each item has one verdict, else the bootstrap over whole items. Undefined where no
        verdict is in the denominator. Codes outside the strategy's list, which are any text a model may write, are
        ignored; the note counts them as ``unknown_reason_codes``. Codes must match letter by letter.

    Raises
    ------
    ValueError
        If a column is missing, a verdict is none of A, B, TIE, the scale is empty, or the threshold lies outside.

    Notes
    -----
    A contradiction shows that verdict and reasons were not derived from each other; it does not show which is wrong.
    A tie with MORE_CORRECT can be a trade-off that the codes cannot express, and WRONG_CLAIM next to the highest total
    a fault that no criterion asks for: :func:`contradictions` lists the calls for people to look at. A rate over few
    verdicts with codes says little of those without, so read ``reason_code_rate`` with it.
    """
    scale = _Scale(minimum, maximum, acceptance_threshold)
    settings = Settings(ci_level, resamples, seed)
    lines: list[dict[str, Any]] = []
    for place, calls in _passes(verdicts):
        usable = _usable(calls)
        codes = [_codes(value) for value in calls["reason_codes"]]
        known = KNOWN[place.strategy]
        unknown = sum(code not in known for given, ok in zip(codes, usable, strict=True) if ok for code in given)
        note = joined(
            f"unknown_reason_codes: {unknown} ignored" if unknown else "",
            excluded_note(len(calls), "calls", without_usable_verdict=int((~usable).sum())),
        )
        items = pd.factorize(calls["item_id"], use_na_sentinel=False)[0]
        given_any = {"reason_code": np.where(usable, _having(codes, known).astype(float), NAN)}
        for name, found in {**given_any, **_findings(place, calls, scale)}.items():
            line = rate_row(f"{name}_rate", place, items, found, settings=settings, note=note)
            accepting = name in ("critical_error_accepted", "no_fault_low_score")
            lines.append(line | {"method": joined(line["method"], scale.method if accepting else "")})
    return frame(lines)


def contradictions(
    verdicts: pd.DataFrame, *, acceptance_threshold: float | None, minimum: float, maximum: float
) -> pd.DataFrame:
    """The calls that :func:`contradiction_table` counts, for people to look at.

    Parameters
    ----------
    verdicts, acceptance_threshold, minimum, maximum
        As for :func:`contradiction_table`.

    Returns
    -------
    DataFrame
        A row for each contradiction, in the order of ``verdicts`` within judge, strategy and pass: judge, strategy,
        pass, item_id, system (direct), first, second (pairwise), verdict, total, critical_error, reason_codes (as
        given, text of a model: escape before it is shown), contradiction (verdict_reason_contradiction,
        critical_error_accepted, top_score_with_fault, no_fault_low_score). A call with two contradictions has two
        rows. Empty, with the same columns, if there is none.

    Raises
    ------
    ValueError
        As for :func:`contradiction_table`.
    """
    scale = _Scale(minimum, maximum, acceptance_threshold)
    parts = []
    for place, calls in _passes(verdicts):
        for name, found in _findings(place, calls, scale).items():
            parts.append(calls[found == 1].assign(contradiction=name))
    columns = list(LISTED)
    if not parts:
        return pd.DataFrame({name: pd.Series(dtype=object) for name in columns})
    kept = [part.reindex(columns=columns).astype(object) for part in parts]
    return pd.concat(kept, ignore_index=True)


def _passes(verdicts: pd.DataFrame) -> Iterator[tuple[Place, pd.DataFrame]]:
    """The calls of each judge, strategy and pass."""
    check_columns(verdicts, NEEDED, "verdicts")
    for (judge, strategy, pass_), calls in verdicts.groupby(["judge", "strategy", "pass"], sort=False):
        if strategy not in KNOWN:
            raise ValueError(f"verdicts: unknown strategy {strategy!r}; allowed are {', '.join(KNOWN)}")
        yield Place(str(judge), str(strategy), str(pass_)), calls


def _usable(calls: pd.DataFrame) -> Flags:
    """Which calls have a verdict."""
    return np.asarray((calls["status"] == "verdict").to_numpy(dtype=bool, na_value=False))


def _codes(value: Any) -> list[Any]:
    """The entries of a list of reason codes; text that is no JSON list is one entry, and unknown."""
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return [None]
        value = [] if read is None else read if isinstance(read, list) else [None]
    # what is not text cannot be a code, and might not be hashable
    return [code if isinstance(code, str) else None for code in value] if isinstance(value, list) else []


def _having(codes: list[list[Any]], wanted: Collection[str]) -> Flags:
    """Which calls give at least one of the wanted codes."""
    return np.array([any(code in wanted for code in given) for given in codes], dtype=bool)


def _findings(place: Place, calls: pd.DataFrame, scale: _Scale) -> dict[str, Floats]:
    """Each contradiction of a strategy: 1 where a call has it, 0 where it has not, NaN outside the denominator."""
    usable = _usable(calls)
    codes = [_codes(value) for value in calls["reason_codes"]]
    if place.strategy == "pairwise":
        what = f"verdicts, judge {place.judge}, pass {place.pass_}"
        letters = encode(calls["verdict"].astype(object).where(usable), ["A", "B", TIE], what)
        counts = (letters >= 0) & _having(codes, KNOWN["pairwise"])
        against = np.where(letters == 2, _having(codes, BETTER_CODES), _having(codes, (EQUAL,)))
        return {"verdict_reason_contradiction": np.where(counts, against.astype(float), NAN)}
    total = pd.to_numeric(calls["total"]).to_numpy(dtype=np.float64, na_value=NAN)
    usable = usable & ~np.isnan(total)
    critical = np.array(
        [isinstance(v, bool | np.bool_ | int | float) and v == 1 for v in calls["critical_error"]], bool
    )
    accepted = total >= scale.threshold - TOLERANCE
    fault = _having(codes, FAULT_CODES)
    found = {
        "critical_error_accepted": (critical, accepted),
        "top_score_with_fault": (fault, total >= scale.maximum - TOLERANCE),
        "no_fault_low_score": (_having(codes, (FAULTLESS,)) & ~fault, ~accepted),
    }
    return {name: np.where(usable & counts, hit.astype(float), NAN) for name, (counts, hit) in found.items()}
