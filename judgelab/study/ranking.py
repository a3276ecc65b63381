"""The ranking of a study's systems: its panel, rating systems, experts, and what else stage 09 is told to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from judgelab.study.terms import Count, Frozen

__all__ = ["BradleyTerry", "Elo", "ExpertRanks", "Listwise", "Ranking", "SpotCheck", "check_ranking"]

Positive = Annotated[float, Field(gt=0)]
Threshold = Annotated[float, Field(ge=0.5, le=1)]


def _falling(values: tuple[float, ...]) -> tuple[float, ...]:
    if list(values) != sorted(set(values), reverse=True):
        raise ValueError("must fall, each once: for example [1.0, 0.9, 0.75, 0.5]")
    return values


class Elo(Frozen):
    """Elo ratings over seeded permutations of the matches, because one order is an accident."""

    start: float = 1000.0
    k: Positive = 32.0
    scale: Positive = 400.0
    permutations: Annotated[int, Field(ge=1, le=100_000)] = 1000


class BradleyTerry(Frozen):
    """Bradley and Terry's model: what a tie counts as, and what is done where the strengths do not exist.

    ``controlled_for`` are the terms of a second fit, beside the plain one: what the first place and length are worth.
    ``when_undefined``: ``penalise`` fits with a normal prior of mean 0 and standard deviation ``prior_sd`` on each log
    strength and says so, ``name`` rates the largest comparable group alone, ``error`` stops.
    """

    ties: Literal["half", "dropped", "davidson", "rao_kupper"] = "half"
    controlled_for: tuple[Literal["first_position", "length"], ...] = ("first_position", "length")
    when_undefined: Literal["penalise", "name", "error"] = "penalise"
    prior_sd: Positive = 2.0


class ExpertRanks(Frozen):
    """A CSV file of experts' ranks: ``item_id, reviewer_id, system, rank`` (1 is best, ties allowed).

    Where ``ranking.group_by`` is ``category``, the column ``item_id`` holds the category that was ranked.
    """

    path: str
    provenance: Literal["human", "simulated", "known_by_construction"] = "human"


class Listwise(Frozen):
    """One call ranks all answers of an item, in several seeded orders. ``judges``: default all but the controls."""

    orders: Annotated[int, Field(ge=1, le=20)] = 3
    judges: tuple[str, ...] | None = None


class SpotCheck(Frozen):
    """Verdicts for people to judge again, blind; document 003's rule of thumb is 20 to 30 and 80 % agreement.

    ``labels`` is the sheet that people have filled in: a CSV file with ``check_id`` and ``choice``.
    """

    size: Annotated[int, Field(ge=1, le=1000)] = 25
    threshold: Annotated[float, Field(gt=0, lt=1)] = 0.8
    labels: str | None = None


class Ranking(Frozen):
    """How stage 09 ranks the systems.

    ``judges`` form the panel (default: all but the controls). ``thresholds`` are the shares of verdicts from which the
    panel agrees; ``threshold`` is the one that the leaderboard uses, none for every verdict on its own. ``tied`` and
    ``strong`` are the Elo gaps below which neighbours are tied and above which they differ strongly. Systems with fewer
    than ``minimum_matches`` are shown in grey. ``leaderboard`` names a standing leaderboard that several runs feed.
    """

    added: ClassVar[tuple[str, ...]] = ()

    judges: tuple[str, ...] | None = None
    thresholds: Annotated[tuple[Threshold, ...], AfterValidator(_falling)] = (1.0, 0.9, 0.75, 0.5)
    threshold: Threshold | None = None
    elo: Elo = Elo()
    bradley_terry: BradleyTerry = BradleyTerry()
    group_by: Literal["item_id", "category"] = "item_id"
    tied: Positive = 50.0
    strong: Positive = 150.0
    minimum_matches: Count = 10
    expert_ranks: ExpertRanks | None = None
    listwise: Listwise | None = None
    spot_check: SpotCheck = SpotCheck()
    schedule_repeats: Annotated[int, Field(ge=1, le=1000)] = 20
    leaderboard: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)] | None = None

    @model_validator(mode="after")
    def _bands_in_order(self) -> Self:
        if self.tied >= self.strong:
            raise ValueError(f"tied ({self.tied:g}) must be below strong ({self.strong:g})")
        return self

    @property
    def options(self) -> dict[str, Any]:
        """What :func:`judgelab.measure.leaderboard.leaderboard` takes of them."""
        model = self.bradley_terry
        return {
            "threshold": self.threshold,
            **self.elo.model_dump(),
            "ties": model.ties,
            "undefined": model.when_undefined,
            "prior_sd": model.prior_sd,
            "tied": self.tied,
            "strong": self.strong,
            "minimum_matches": self.minimum_matches,
        }

    @property
    def elo_options(self) -> dict[str, Any]:
        """What :func:`judgelab.measure.against_experts.group_ratings` takes of the rating system."""
        elo = self.elo
        return {"permutations": elo.permutations, "initial": elo.start, "k": elo.k, "scale": elo.scale}

    @property
    def every_threshold(self) -> tuple[float | None, ...]:
        """The thresholds of the panel, falling, then none: every verdict on its own."""
        return (*self.thresholds, None)

    def panel(self, judges: Sequence[Any]) -> tuple[str, ...]:
        """Names of the judges on the panel, of all judges of the study; the controls, where there is nobody else."""
        if self.judges is not None:
            return self.judges
        asked = tuple(judge.name for judge in judges if judge.kind != "control")
        return asked or tuple(judge.name for judge in judges)


def check_ranking(ranking: Ranking, judges: Sequence[str], systems: Sequence[str]) -> None:
    """Refuse a ranking that does not fit the rest of a protocol.

    Raises
    ------
    ValueError
        If a judge is none of the study's, or a listwise call would rank fewer than three or more than 26 answers.
    """
    listwise = ranking.listwise
    groups = {"ranking.judges": ranking.judges, "ranking.listwise.judges": listwise.judges if listwise else None}
    for key, given in groups.items():
        strangers = sorted(set(given or ()) - set(judges))
        if strangers:
            raise ValueError(f"{key}: no judge named {', '.join(strangers)}; the judges are {', '.join(judges)}")
        if given is not None and (not given or len(set(given)) < len(given)):
            raise ValueError(f"{key}: name each judge once, and at least one")
    if listwise is not None and not 3 <= len(systems) <= 26:
        raise ValueError(f"ranking.listwise needs 3 to 26 systems; the study has {len(systems)}")
