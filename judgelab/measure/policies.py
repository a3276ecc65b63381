"""What agreement becomes under other ways of counting the replies that gave no verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judgelab.measure.coding import TIE, excluded_note
from judgelab.measure.estimates import Settings, rate_row
from judgelab.measure.resampling import Floats
from judgelab.measure.rows import frame, joined
from judgelab.measure.views import View, each_judge

__all__ = ["POLICIES", "policy_table"]

NAN = float("nan")
PREFIX = "exact_agreement_unusable_"
POLICIES = ("dropped", "as_wrong", "as_tie", "worst_case", "best_case")
PASSES = ("direct", "original", "both")
COUNTED = {
    "as_wrong": "counted as wrong",
    "as_tie": "counted as TIE",
    "worst_case": "each counted as another label than the human one",
    "best_case": "each counted as the human label",
}


def policy_table(
    normalized: pd.DataFrame, *, labels: Sequence[str], ci_level: float, resamples: int, seed: int
) -> pd.DataFrame:
    """Exact agreement with the human reference under four policies for judgments without a usable verdict.

    With M matches among V judgments that have two valid labels, U judgments that have a human label but no usable
    verdict, and T of these U whose human label is ``TIE``:

    ==========================================  ===================  =============================================
    measure                                     estimate             policy
    ==========================================  ===================  =============================================
    exact_agreement_unusable_dropped            M / V                left out: the protocol's, ``exact_agreement``
    exact_agreement_unusable_as_wrong           M / (V + U)          a judge that says nothing is wrong
    exact_agreement_unusable_as_tie             (M + T) / (V + U)    a judge that says nothing says ``TIE``
    exact_agreement_unusable_worst_case         M / (V + U)          lower end of all that U verdicts could have given
    exact_agreement_unusable_best_case          (M + U) / (V + U)    upper end
    ==========================================  ===================  =============================================

    For this measure the worst case is as_wrong: no verdict can do worse than differ. Both are given, since they answer
    two questions. No way of filling in the missing verdicts gives an agreement outside the two ends.

    Parameters
    ----------
    normalized : DataFrame
        See :func:`judgelab.measure.preferences.normalize`. A planned judgment whose preference is missing counts as
        unusable, whether its call was unusable, failed or was never made. A direct preference is missing if either
        score is.
    labels : sequence of str
        Allowed preferences: the systems, then ``TIE``.
    ci_level, resamples, seed
        Coverage, number of bootstrap resamples, the protocol's seed.

    Returns
    -------
    DataFrame
        Rows of :data:`judgelab.measure.rows.COLUMNS`, slice ``all``, for direct/direct, pairwise/original and
        pairwise/both (the judgments of both passes) where they were planned. Wilson's interval where an item has one
        judgment, else the bootstrap over whole items; an interval covers sampling, the two ends cover what is missing.
        ``n_used`` and ``n_excluded`` count items. Undefined without a judgment to count.

    Raises
    ------
    ValueError
        If a preference is not one of ``labels`` or a column is missing.

    Notes
    -----
    Bounds without assumptions on what is missing: Horowitz and Manski, "Nonparametric analysis of randomized
    experiments with missing covariate and outcome data", 2000, section 2.

    Examples
    --------
    Human labels A, A, TIE, B and verdicts A, B, none, none: dropped 1/2, as wrong 1/4, as tie 2/4, ends 1/4 and 3/4.
    """
    settings = Settings(ci_level, resamples, seed)
    tie = list(labels).index(TIE) if TIE in labels else len(labels)
    lines: list[dict[str, Any]] = []
    for codes in each_judge(normalized, labels):
        for view in codes.views():
            if view.place.pass_ in PASSES:
                lines += _rows(view, tie, settings)
    return frame(lines)


def _rows(view: View, tie: int, settings: Settings) -> Iterator[dict[str, Any]]:
    for policy in POLICIES:
        # The same numbers under two names get the same resamples: the protocol's own, and as_wrong as worst case.
        drawn = {"dropped": "exact_agreement", "worst_case": f"{PREFIX}as_wrong"}.get(policy, PREFIX + policy)
        line = rate_row(
            drawn,
            view.place,
            view.items,
            _values(view, policy, tie),
            settings=settings,
            note=_note(view, policy),
            force_bootstrap=view.place.pass_ == "both",
        )
        yield {**line, "measure": PREFIX + policy}


def _values(view: View, policy: str, tie: int) -> Floats:
    """1 right, 0 wrong, NaN not counted."""
    labelled, unusable = view.human >= 0, view.judged < 0
    right = (view.human == view.judged).astype(float)
    filled = {
        "dropped": np.full(len(right), NAN),
        "as_tie": (view.human == tie).astype(float),
        "best_case": np.ones(len(right)),
    }.get(policy, np.zeros(len(right)))
    return np.where(labelled, np.where(unusable, filled, right), NAN)


def _note(view: View, policy: str) -> str:
    """How many judgments the policy decides, and what is left out for want of a human label."""
    if policy == "dropped":
        return view.note
    labelled = view.human >= 0
    unusable = int((labelled & (view.judged < 0)).sum())
    return joined(
        f"{unusable} unusable {COUNTED[policy]}" if unusable else "",
        excluded_note(len(labelled), "judgments", without_reference=int((~labelled).sum())),
    )
