"""The protocol: everything that must not change during a run, as pydantic models.

A file ``params/<name>.yaml`` has two keys, ``run`` and ``study``; the second is a :class:`Study`. Field names
follow the published protocol "LLM Judge Under Test: Direct Scoring vs Pairwise Comparison".
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from judgelab.errors import ProtocolError
from judgelab.project import shown
from judgelab.study.battery import Probes, Repairs, check_battery
from judgelab.study.configuration import Judge
from judgelab.study.human_review import HumanLabels, HumanReview, check_review
from judgelab.study.mistakes import explained
from judgelab.study.ranking import Ranking, check_ranking
from judgelab.study.systems import System, check_systems, expanded
from judgelab.study.terms import Frozen
from judgelab.study.thresholds import DecisionThresholds, Measures, Share

__all__ = [
    "MOST_RANKED",
    "TIE",
    "Blindness",
    "Criterion",
    "DecisionThresholds",
    "DirectScale",
    "HumanLabels",
    "HumanReview",
    "ItemsSource",
    "Measures",
    "PositionTest",
    "Split",
    "Study",
    "System",
    "check_run_name",
    "load_params",
    "parse_study",
    "read_params",
]

TIE = "TIE"
MOST_RANKED = 26  # answers that a person puts in order at once: one a letter

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$", max_length=80)]
Pass = Literal["direct", "pairwise_original", "pairwise_swapped"]


class Strict(BaseModel):
    """A frozen model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=False)


class ItemsSource(Strict):
    """The file of items and what happens to the lines that cannot be used."""

    path: str
    task_version: str | None = None
    on_invalid: Literal["exclude", "refuse"] = "exclude"
    max_excluded_share: Share = 0.2
    max_answer_characters: Annotated[int, Field(ge=1)] = 100_000
    limit: Annotated[int, Field(ge=1)] | None = None


class Split(Strict):
    """Seeded split into development and evaluation items, within each category."""

    development_share: Annotated[float, Field(ge=0, lt=1)] = 0.0
    stratify_by: Literal["category"] = "category"


class Criterion(Strict):
    """One criterion of the rubric. Weights need not sum to 1: the weighted total divides by their sum."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=40)]
    description: str = ""
    weight: Annotated[float, Field(gt=0)] = 1.0


class DirectScale(Frozen):
    """The scale of direct scoring: integers from ``minimum`` to ``maximum``, one a criterion."""

    added: ClassVar[tuple[str, ...]] = ("acceptance_threshold",)

    minimum: int = 1
    maximum: int = 5
    criteria: Annotated[tuple[Criterion, ...], Field(min_length=1)]
    acceptance_threshold: float | None = None  # weighted total from which an answer counts as accepted

    @field_validator("criteria", mode="before")
    @classmethod
    def _names_are_enough(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [{"name": entry} if isinstance(entry, str) else entry for entry in value]
        return value

    @model_validator(mode="after")
    def _scale_is_a_scale(self) -> Self:
        if self.maximum <= self.minimum:
            raise ValueError(f"maximum ({self.maximum}) must be above minimum ({self.minimum})")
        names = [criterion.name for criterion in self.criteria]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"criteria named more than once: {', '.join(twice)}")
        reserved = sorted({"critical_error", "reason_codes"} & set(names))
        if reserved:
            raise ValueError(f"criteria with a reserved name: {', '.join(reserved)}")
        threshold = self.acceptance_threshold
        if threshold is not None and not self.minimum < threshold <= self.maximum:
            raise ValueError(f"acceptance_threshold ({threshold:g}) must be above minimum and at most maximum")
        return self

    @property
    def weights(self) -> dict[str, float]:
        """Weight by criterion name, in the rubric's order."""
        return {criterion.name: criterion.weight for criterion in self.criteria}


class Retries(Strict):
    """How often a call is sent again with the same input."""

    malformed_output: Annotated[int, Field(ge=0, le=10)] = 1
    transient_error: Annotated[int, Field(ge=0, le=20)] = 2


class PositionTest(Strict):
    """Whether each pair is judged again with its two answers exchanged."""

    enabled: bool = True
    swap_every_pair: bool = True


class Blindness(Strict):
    """What the blindness scan looks for beside the systems' names, and what is masked before judging."""

    names: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    mask: dict[str, str] = Field(default_factory=dict)


class Study(Frozen):
    """The whole protocol of one study."""

    added: ClassVar[tuple[str, ...]] = ("probes", "repairs", "ranking")

    study_id: Name
    title: str = ""
    question: str = ""
    sampling_rule: str
    item_id_field: Annotated[str, Field(min_length=1)] = "item_id"
    items: ItemsSource
    systems: Annotated[dict[Name, System], Field(min_length=2)]
    human_labels: HumanLabels | None = None
    human_review: HumanReview = HumanReview()
    rubric_version: Annotated[str, Field(min_length=1)]
    judge_prompt_version: Literal["judge-v1"] = "judge-v1"
    direct_scale: DirectScale
    direct_tie_margin: Annotated[float, Field(ge=0)]
    pairwise_labels: tuple[str, ...] = ("A", "B", "TIE")
    tie_meaning: Annotated[str, Field(min_length=1)] = "neither answer is meaningfully better under the rubric"
    missing_policy: Literal["exclude_from_agreement_and_report"] = "exclude_from_agreement_and_report"
    random_seed: Annotated[int, Field(ge=0, le=2**63 - 1)]
    split: Split = Split()
    passes: Annotated[tuple[Pass, ...], Field(min_length=1)] = (
        "direct",
        "pairwise_original",
        "pairwise_swapped",
    )
    position_test: PositionTest = PositionTest()
    retries: Retries = Retries()
    timeout_seconds: Annotated[float, Field(gt=0)] = 120.0
    judges: Annotated[tuple[Judge, ...], Field(min_length=1)]
    blindness: Blindness = Blindness()
    measures: Measures = Measures()
    decision: DecisionThresholds = DecisionThresholds()
    probes: Probes = Probes()
    repairs: Repairs = Repairs()
    ranking: Ranking = Ranking()

    @field_validator("systems", mode="before")
    @classmethod
    def _completions_are_systems(cls, given: Any) -> Any:
        return expanded(given)

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if TIE in self.systems:
            raise ValueError("systems: a system cannot be named TIE")
        folded = [name.lower() for name in self.systems]
        if len(set(folded)) < len(folded):
            raise ValueError("systems: two names differ only in upper and lower case")
        if self.pairwise_labels not in (("A", "B", "TIE"), ("A", "B")):
            given = list(self.pairwise_labels)
            raise ValueError(f"pairwise_labels: {given} is not allowed; allowed are [A, B, TIE] and [A, B]")
        names = [judge.name for judge in self.judges]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"judges named more than once: {', '.join(twice)}")
        if self.position_test.enabled != ("pairwise_swapped" in self.passes):
            raise ValueError("position_test.enabled and the pass pairwise_swapped must go together")
        if "pairwise_swapped" in self.passes and "pairwise_original" not in self.passes:
            raise ValueError("passes: pairwise_swapped needs pairwise_original")
        scale = (self.direct_scale.minimum, self.direct_scale.maximum)
        check_battery(self.probes, self.repairs, names, self.passes, scale)
        check_systems(self.systems)
        check_ranking(self.ranking, names, self.system_names)
        check_review(self.human_labels, self.human_review)
        labelling = self.human_review.labelling
        if labelling is not None and labelling.mode == "ranking":
            if self.ranking.expert_ranks is not None:
                raise ValueError("ranking.expert_ranks and human_review.labelling with mode ranking exclude each other")
            if len(self.systems) > MOST_RANKED:
                count = len(self.systems)
                raise ValueError(f"human_review.labelling.mode ranking: {count} systems; {MOST_RANKED} are the most")
        return self

    @property
    def system_names(self) -> tuple[str, ...]:
        """The systems in the protocol's order."""
        return tuple(self.systems)

    @property
    def makes_answers(self) -> bool:
        """Whether stage 00 has answers to make: of a system that is generated or degraded."""
        return any(system.made for system in self.systems.values())

    @property
    def labels(self) -> tuple[str, ...]:
        """The allowed preferences: every system, then TIE."""
        return (*self.systems, TIE)

    @property
    def intervals(self) -> dict[str, Any]:
        """What every table of estimates needs to know of intervals: their level, the resamples, and the seed."""
        return {
            "ci_level": self.measures.ci_level,
            "resamples": self.measures.resamples,
            "seed": self.random_seed,
        }

    @property
    def families(self) -> dict[str, list[str]]:
        """The systems of each family that holds some of them, but not all."""
        named = sorted({system.family for system in self.systems.values() if system.family})
        members = {family: [name for name in self.systems if self.systems[name].family == family] for family in named}
        return {family: names for family, names in members.items() if len(names) < len(self.systems)}

    @property
    def controls(self) -> tuple[str, ...]:
        """Names of the judges without a model."""
        return tuple(judge.name for judge in self.judges if judge.kind == "control")

    @property
    def sha256(self) -> str:
        """Hash of the whole protocol; equal for equal values, whatever the file's layout.

        The order of systems counts (it is the order of every pair), and so does the order of masks.
        """
        values = self.model_dump(mode="json")
        values["systems"] = list(values["systems"].items())
        values["blindness"]["mask"] = list(values["blindness"]["mask"].items())
        text = json.dumps(values, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def passes_of(self, judge: Judge) -> tuple[Pass, ...]:
        """The passes that one judge runs: the study's, or the fewer that the judge names."""
        return tuple(name for name in self.passes if judge.passes is None or name in judge.passes)


def parse_study(values: dict[str, Any], *, where: str = "study") -> Study:
    """Validate a protocol given as plain values.

    Raises
    ------
    ProtocolError
        Naming each key that is wrong, its value, and what is allowed.
    """
    if not isinstance(values, dict):
        raise ProtocolError(f"{where}: the key study holds {type(values).__name__}, a mapping is needed")
    try:
        return Study.model_validate(values)
    except ValidationError as error:
        raise ProtocolError(explained(error, where, Study)) from None


def load_params(path: Path) -> tuple[str, Study]:
    """Read ``params/<name>.yaml``: the run's name and its protocol.

    Raises
    ------
    ProtocolError
        If the file is missing, is not UTF-8 YAML, or holds anything but a valid ``run`` and ``study``.
    """
    document = read_params(path)
    run = document.get("run", path.stem)
    check_run_name(run, shown(path))
    return run, parse_study(document.get("study") or {}, where=shown(path))


def read_params(path: Path) -> dict[str, Any]:
    """The keys ``run`` and ``study`` of a parameter file, not validated yet."""
    where = shown(path)
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ProtocolError(f"{where}: no such file") from None
    except OSError as error:
        raise ProtocolError(f"{where}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ProtocolError(f"{where}: not UTF-8 (byte {error.start}); save the file as UTF-8") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # a date such as 2024-13-45 is a ValueError of its own, not one of YAML's
        raise ProtocolError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document, dict):
        raise ProtocolError(f"{where}: a mapping with the keys run and study is needed")
    unknown = sorted(str(key) for key in set(document) - {"run", "study"})
    if unknown:
        raise ProtocolError(f"{where}: unknown key {', '.join(unknown)}; allowed are run, study")
    return document


def check_run_name(run: Any, where: str) -> None:
    """A run's name is a folder's name: letters, digits, ``_ . -``, and no way out of ``outputs``."""
    allowed = isinstance(run, str) and 0 < len(run) <= 80 and run[0].isalnum()
    if not allowed or not all(char.isalnum() or char in "_.-" for char in run) or not run.isascii():
        raise ProtocolError(
            f"{where}: run is {run!r}; allowed are up to 80 letters, digits, '_', '.', '-', "
            "starting with a letter or digit"
        )
