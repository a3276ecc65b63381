"""What a protocol asks beyond its passes: the probes that look for biases, and the repairs that are tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from judgelab.study.secrets import check_address, check_variable
from judgelab.study.terms import Count, Frozen

__all__ = [
    "ANSWER_PROBES",
    "PROBES",
    "AnswerProbe",
    "Embeddings",
    "FewShot",
    "LevelDescriptions",
    "LogprobScores",
    "Panel",
    "ProbeName",
    "Probes",
    "ReasoningFirst",
    "Repair",
    "Repairs",
    "RetrievedExamples",
    "SelfConsistency",
    "SimpleRepair",
    "check_battery",
]

AnswerProbe = Literal[
    "padding", "authority", "format", "identity", "injection", "rubric_words", "surface_noise"
]  # one answer of the pair is changed
ProbeName = Literal[
    "repetition", "identical", "criterion_order", "labels",
    "padding", "authority", "format", "identity", "injection", "rubric_words", "surface_noise",
]  # fmt: skip
PROBES: tuple[ProbeName, ...] = ProbeName.__args__  # type: ignore[attr-defined]
ANSWER_PROBES: tuple[AnswerProbe, ...] = AnswerProbe.__args__  # type: ignore[attr-defined]

RepairName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
Letters = tuple[
    Annotated[str, Field(pattern=r"^[A-Za-z0-9]{1,12}$")], Annotated[str, Field(pattern=r"^[A-Za-z0-9]{1,12}$")]
]


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(f"{', '.join(names)}: each may be named once")
    return names


Strategies = Annotated[
    tuple[Literal["pairwise", "direct"], ...], Field(min_length=1), AfterValidator(_once)
]  # each is a pass of its own


class Probes(Frozen):
    """Matched pairs of calls that differ in one thing; none are made unless ``run`` names some.

    Each probe asks a judge about the same pairs in both presentations, with one thing changed, and is compared with
    the judge's own verdicts in the plain passes. ``items`` limits the evaluation items, drawn with the protocol's
    seed. ``repeats`` is how often the same call is made in all, the plain one among them. ``identity`` is the name
    that the probe of that name discloses; without it, the judge's own family.
    """

    run: tuple[ProbeName, ...] = ()
    judges: tuple[str, ...] | None = None
    items: Count | None = None
    repeats: Annotated[int, Field(ge=2, le=20)] = 3
    letters: Annotated[tuple[Letters, ...], Field(min_length=1)] = (("1", "2"), ("X", "Y"))
    identity: str | None = None

    @field_validator("run", mode="before")
    @classmethod
    def _all_of_them(cls, value: object) -> object:
        return PROBES if value == "all" else value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(self.run)) < len(self.run):
            raise ValueError("run: a probe is named twice")
        if {"criterion_order", "labels"} & set(self.run) and "repetition" not in self.run:
            raise ValueError("run: criterion_order and labels are compared with repetition, which is not among them")
        for pair in self.letters:
            if len({letter.lower() for letter in pair}) < 2 or {letter.upper() for letter in pair} & {"TIE"}:
                raise ValueError(f"letters: {list(pair)} are not two different labels apart from TIE")
        return self


class Embeddings(Frozen):
    """An OpenAI-compatible endpoint for embeddings; its key is in the environment variable ``api_key_env``."""

    base_url: Annotated[str, AfterValidator(check_address)]
    model: Annotated[str, Field(min_length=1)]
    api_key_env: Annotated[str, AfterValidator(check_variable)] | None = None


class _RepairBase(Frozen):
    name: RepairName = ""

    @model_validator(mode="before")
    @classmethod
    def _named_by_kind(cls, values: object) -> object:
        if isinstance(values, dict) and not values.get("name"):
            return {**values, "name": values.get("kind", "")}
        return values


class SimpleRepair(_RepairBase):
    """A repair without options: see :class:`Repairs` for what each kind does."""

    kind: Literal["verdict_only", "both_presentations", "recalibration", "tie_margin"]


class ReasoningFirst(_RepairBase):
    """The judge writes its reasons before its verdict; ``max_tokens`` makes room for them."""

    kind: Literal["reasoning_first"]
    max_tokens: Count | None = None


class LevelDescriptions(_RepairBase):
    """The rubric of direct scoring says what each level means: level to text, for all levels or some."""

    kind: Literal["level_descriptions"]
    levels: Annotated[dict[int, Annotated[str, Field(min_length=1)]], Field(min_length=1)]


class FewShot(_RepairBase):
    """``examples`` labelled development items in every prompt, the same for all, spanning the scale."""

    kind: Literal["few_shot"]
    examples: Annotated[int, Field(ge=1, le=20)] = 3
    strategies: Strategies = ("pairwise",)
    near_duplicate: Annotated[float, Field(gt=0, le=1)] = 0.8


class RetrievedExamples(_RepairBase):
    """The ``examples`` labelled development items most alike to the item that is judged, by TF-IDF or embeddings.

    ``near_duplicate`` is the similarity from which on a development item is too like the judged one to be shown.
    """

    kind: Literal["retrieved_examples"]
    examples: Annotated[int, Field(ge=1, le=20)] = 3
    strategies: Strategies = ("pairwise",)
    near_duplicate: Annotated[float, Field(gt=0, le=1)] = 0.8
    embeddings: Embeddings | None = None


class LogprobScores(_RepairBase):
    """Direct scores as expected values over the tokens of the scale; ``alternatives`` are asked for at each token."""

    kind: Literal["logprob_scores"]
    alternatives: Annotated[int, Field(ge=2, le=20)] = 20


class SelfConsistency(_RepairBase):
    """The majority of ``samples`` verdicts drawn at a ``temperature`` above 0, in each presentation."""

    kind: Literal["self_consistency"]
    samples: Annotated[int, Field(ge=2, le=50)] = 5
    temperature: Annotated[float, Field(gt=0, le=2)] = 0.7


class Panel(_RepairBase):
    """The judges of the study together: the majority, the mean of scores, or at least ``votes`` for one label."""

    kind: Literal["panel"]
    judges: Annotated[tuple[str, ...], Field(min_length=2), AfterValidator(_once)]
    rule: Literal["majority", "mean", "votes"] = "majority"
    votes: Count | None = None

    @model_validator(mode="after")
    def _votes_go_with_their_rule(self) -> Self:
        if (self.votes is not None) != (self.rule == "votes"):
            raise ValueError("votes is needed with rule votes, and with no other rule")
        if self.votes is not None and not len(self.judges) / 2 < self.votes <= len(self.judges):
            raise ValueError(f"votes ({self.votes}) must be more than half of the {len(self.judges)} judges")
        return self


Repair = Annotated[
    SimpleRepair
    | ReasoningFirst
    | LevelDescriptions
    | FewShot
    | RetrievedExamples
    | LogprobScores
    | SelfConsistency
    | Panel,
    Field(discriminator="kind"),
]


class Repairs(Frozen):
    """Other ways of asking a judge, or of reading its verdicts, that are compared with the plain one.

    =====================  ==============================================================================
    kind                   what is done
    =====================  ==============================================================================
    verdict_only           the reply holds the winner alone
    reasoning_first        reasons are written before the verdict
    level_descriptions     the rubric says what each level of the scale means (direct)
    few_shot               labelled development items in the prompt
    retrieved_examples     the labelled development items most alike to the judged one
    logprob_scores         expected scores over the tokens of the scale (direct)
    self_consistency       majority of several samples
    both_presentations     the conservative rule over both presentations; no calls
    panel                  several judges of the study together; no calls
    recalibration          isotonic recalibration and threshold, fitted on development items (direct)
    tie_margin             the margin below which scores are a tie, chosen on development items (direct)
    =====================  ==============================================================================

    ``judges`` are those that are repaired (default: all but the controls); ``items`` limits the evaluation items
    that are asked about, drawn with the protocol's seed.
    """

    added: ClassVar[tuple[str, ...]] = ()

    run: tuple[Repair, ...] = ()
    judges: tuple[str, ...] | None = None
    items: Count | None = None

    @field_validator("run", mode="before")
    @classmethod
    def _kinds_are_enough(cls, value: object) -> object:
        if isinstance(value, list | tuple):
            return [{"kind": entry} if isinstance(entry, str) else entry for entry in value]
        return value

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [repair.name for repair in self.run]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"run: repairs named more than once: {', '.join(twice)}; give each a name of its own")
        taken = sorted({"pairwise", "direct", "plain"} & set(names))
        if taken:
            raise ValueError(f"run: {taken[0]} is the name of the judge without a repair")
        # the ledger and a record know a pass by its name alone
        taken = sorted({"development", *PROBES} & set(names))
        if taken:
            raise ValueError(f"run: {taken[0]} is the name of other passes (of probes, or of development items)")
        return self


def check_battery(
    probes: Probes, repairs: Repairs, judges: Sequence[str], passes: Sequence[str], scale: tuple[int, int]
) -> None:
    """Refuse probes and repairs that do not fit the rest of a protocol.

    Raises
    ------
    ValueError
        If a judge is none of the study's, a level is not on the scale, levels have more than one digit where
        log-probabilities of single tokens are read, or probes have no pairwise verdicts to compare with.
    """
    panels = [name for repair in repairs.run for name in getattr(repair, "judges", ())]
    groups = {"probes": probes.judges, "repairs": repairs.judges, "repairs.run": panels}
    for key, given in groups.items():
        strangers = sorted(set(given or ()) - set(judges))
        if strangers:
            raise ValueError(f"{key}: no judge named {', '.join(strangers)}; the judges are {', '.join(judges)}")
    low, high = scale
    for repair in repairs.run:
        beyond = sorted(level for level in getattr(repair, "levels", ()) if not low <= level <= high)
        if beyond:
            raise ValueError(f"repairs.run: {repair.name}: level {beyond[0]} is not on the scale, {low} to {high}")
        if repair.kind == "logprob_scores" and not 0 <= low < high <= 9:
            raise ValueError(
                f"repairs.run: {repair.name} needs levels of one digit, 0 to 9; the scale is {low} to {high}"
            )
    if probes.run and "pairwise_original" not in passes:
        raise ValueError("probes.run: probes are compared with the pass pairwise_original, which is not run")
