"""What a protocol fixes of the measuring: intervals, planning, and the thresholds of the decision."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from judgelab.study.terms import Frozen

__all__ = ["DecisionThresholds", "Measures", "Share"]

Share = Annotated[float, Field(ge=0, le=1)]


class Measures(Frozen):
    """How things are measured: intervals, the level of alpha, what "large enough" means, and who may be replaced.

    ``power`` and ``wanted_half_width`` are for planning: the chance of seeing the meaningful difference, and half the
    width of an agreement's interval that would do. ``replacement_epsilon`` is what a judge may do worse than a
    reviewer, since it costs less (alternative annotator test), ``false_discovery_rate`` what that test allows.
    """

    added: ClassVar[tuple[str, ...]] = ("power", "wanted_half_width", "replacement_epsilon", "false_discovery_rate")

    ci_level: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    resamples: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    alpha_level: Literal["nominal"] = "nominal"
    power: Annotated[float, Field(gt=0, lt=1)] = 0.8
    wanted_half_width: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    replacement_epsilon: Annotated[float, Field(ge=0, lt=1)] = 0.2
    false_discovery_rate: Annotated[float, Field(gt=0, lt=1)] = 0.05


class DecisionThresholds(Frozen):
    """What the evidence must show before a judge may be used. Every value is fixed before judging."""

    intended_use: Literal["relative_ranking", "absolute_scores", "both"] = "relative_ranking"
    minimum_items: Annotated[int, Field(ge=1)] = 50
    minimum_agreement: Share = 0.7
    minimum_kappa: Annotated[float, Field(ge=-1, le=1)] = 0.4
    minimum_reviewer_agreement: Share = 0.7
    minimum_swap_consistency: Share = 0.8
    maximum_first_position_deviation: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    maximum_unusable_rate: Share = 0.05
    minimum_coverage: Share = 0.7
    meaningful_difference: Share = 0.05
