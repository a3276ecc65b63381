"""A study of matches that were judged elsewhere: who met whom and who was preferred, without the answers.

Its parameter file has the keys ``run`` and ``study`` like any other; ``study`` names a file of ``matches`` in the place
of items and judges. Stage 09 can run on it, and where the file holds both orders, stage 06.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, ValidationError, model_validator

from judgelab.errors import ProtocolError
from judgelab.study.mistakes import explained
from judgelab.study.ranking import Ranking
from judgelab.study.terms import Frozen
from judgelab.study.thresholds import DecisionThresholds, Measures

__all__ = ["MatchStudy", "is_match_study", "parse_match_study"]


class MatchStudy(Frozen):
    """The protocol of a ranking from matches. ``matches`` is a CSV or JSON-lines file with one match a row.

    Columns ``system_x``, ``system_y``, ``preference`` (a system's name, ``TIE``, or empty), and where known ``judge``,
    ``item_id``, ``category``, ``first`` (the system shown first), ``reason``, ``words_x``, ``words_y``.
    """

    added: ClassVar[tuple[str, ...]] = ("decision",)

    study_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length=80)]
    title: str = ""
    question: str = ""
    matches: str
    sampling_rule: str = ""
    random_seed: Annotated[int, Field(ge=0, le=2**63 - 1)]
    measures: Measures = Measures()
    decision: DecisionThresholds = DecisionThresholds()
    ranking: Ranking = Ranking()

    @model_validator(mode="after")
    def _only_what_matches_have(self) -> Self:
        if self.ranking.listwise is not None:
            raise ValueError("ranking.listwise: matches that were judged elsewhere have no judge to ask")
        if self.ranking.spot_check.labels is not None:
            raise ValueError("ranking.spot_check.labels: the answers of these matches are not here to be judged again")
        named = self.ranking.judges
        if named is not None and (not named or len(set(named)) < len(named)):
            raise ValueError("ranking.judges: name each judge once, and at least one")
        return self

    @property
    def intervals(self) -> dict[str, Any]:
        """What every table of estimates needs to know of intervals: their level, the resamples, and the seed."""
        return {"ci_level": self.measures.ci_level, "resamples": self.measures.resamples, "seed": self.random_seed}

    @property
    def sha256(self) -> str:
        """Hash of the whole protocol; equal for equal values, whatever the file's layout."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


def is_match_study(values: Any) -> bool:
    """Whether a protocol, given as plain values, is one of matches."""
    return isinstance(values, Mapping) and "matches" in values


def parse_match_study(values: Mapping[str, Any], *, where: str = "study") -> MatchStudy:
    """Validate a protocol of matches given as plain values.

    Raises
    ------
    ProtocolError
        Naming each key that is wrong, its value, and what is allowed.
    """
    try:
        return MatchStudy.model_validate(dict(values))
    except ValidationError as error:
        raise ProtocolError(explained(error, where, MatchStudy)) from None
