"""What each judge may be used for, in sentences."""

from __future__ import annotations

import pandas as pd

from judgelab.report.picking import rows_of
from judgelab.report.sentences import Sentences
from judgelab.report.words import listed, natural, plural

__all__ = ["recommendation_sentences"]


def recommendation_sentences(evidence: pd.DataFrame, recommendations: pd.DataFrame) -> Sentences:
    """What each judge may be used for, and on how many requirements that rests.

    Parameters
    ----------
    evidence
        One row per judge and requirement: ``judge, strategy, criterion, requirement, measure, estimate, ci_low,
        ci_high, threshold, n_used, outcome`` (met, not_met, undecided, no_data).
    recommendations
        One row a judge: ``judge, recommendation`` (direct, pairwise, hybrid, human_review), ``because``.
    """
    found = []
    for _, row in recommendations.iterrows():
        own = rows_of(evidence, judge=row["judge"])
        parts = [
            f"{row['judge']}: {_USES.get(str(row['recommendation']), str(row['recommendation']))}",
            *_reason_parts(str(row["because"])),
            *(_tally(own, strategy) for strategy in natural(own["strategy"])),
        ]
        found.append(". ".join(parts) + ("." if len(own) else ". No requirement was tested (n = 0 items)."))
    return Sentences(found or ["No judge was tried (n = 0 judges): human review decides every item."])


def _reason_parts(because: str) -> list[str]:
    """The reason without the list of failed requirements, which the evidence gives in words."""
    parts = [part for part in because.rstrip(". ").split("; ") if not part.startswith(("direct: ", "pairwise: "))]
    return [f"Reason: {'; '.join(parts)}"] if parts and parts[0] else []


def _tally(evidence: pd.DataFrame, strategy: str) -> str:
    """How the requirements of a strategy came out, with the number of items behind its agreement."""
    own = rows_of(evidence, strategy=strategy)
    waived = own["note"].astype(str).str.endswith("demands nothing") if "note" in own else own["outcome"] == "waived"
    without = [_words(name) for name in own["criterion"][waived]]
    own = own[~waived]
    met = int((own["outcome"] == "met").sum())
    text = f"{strategy.capitalize()} meets {met} of {plural(len(own), 'requirement')}"
    for outcome, words in _OUTCOMES:
        named = [_words(name) for name in own["criterion"][own["outcome"] == outcome]]
        if named:
            text += f"; {words}: {listed(named)}"
    if without:
        text += f"; waived by the protocol: {listed(without)}"
    judged = own[own["criterion"].isin(["minimum_items", "minimum_agreement"])]["n_used"].dropna()
    return f"{text} (n = {plural(judged.min() if len(judged) else 0, 'item')})"


def _words(criterion: str) -> str:
    """``minimum_swap_consistency`` as a person says it."""
    return str(criterion).split("_", 1)[-1].replace("_", " ")


_OUTCOMES = (("not_met", "not met"), ("undecided", "undecided"), ("no_data", "without data"))
_USES = {
    "direct": "direct scoring may be used within the scope of this study",
    "pairwise": "pairwise comparison in both orders may be used within the scope of this study",
    "hybrid": "a hybrid may be used within the scope of this study: direct scores for diagnosis, pairwise comparison "
    "in both orders to decide, people where the two orders disagree",
    "human_review": "it may not decide on its own, people review every item",
}
