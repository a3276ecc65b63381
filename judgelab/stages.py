"""The notebooks: the stages of the protocol in their order, and the applications beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from judgelab.errors import RunError
from judgelab.project import project_root

__all__ = ["APPLICATIONS", "STAGES", "WAVES", "Stage", "notebook_named", "stage_named"]


@dataclass(frozen=True)
class Stage:
    """One notebook of the protocol."""

    number: str
    name: str
    question: str
    strategies: tuple[str, ...] = ()  # the strategies in which this stage asks judges
    analysis: bool = False  # whether `verify` can run it again without asking a judge

    @property
    def notebook(self) -> Path:
        """The notebook's file in the project."""
        return project_root() / "notebooks" / f"{self.name}.ipynb"


# Stages of one wave need nothing of each other and may run side by side.
WAVES: tuple[tuple[Stage, ...], ...] = (
    (
        Stage(
            "00",
            "00_generate_answers",
            "Which candidate answers do we compare, and how were they made?",
            ("generation",),
        ),
    ),
    (Stage("01", "01_freeze_study", "What exactly is evaluated, and is it complete, blind and large enough?"),),
    (
        Stage("02", "02_human_reference", "Do people agree, and what is the reference?", analysis=True),
        Stage("03", "03_direct_scoring", "What scores does each judge give each answer on its own?", ("direct",)),
        Stage(
            "04", "04_pairwise_comparison", "Which answer does each judge prefer, in both presentations?", ("pairwise",)
        ),
    ),
    (Stage("05", "05_agreement", "Which strategy reproduces the human decision, and how sure are we?", analysis=True),),
    (Stage("06", "06_position_bias", "Does the decision survive the swap?", analysis=True),),
    (
        Stage(
            "07", "07_bias_battery", "What else moves the judge, and by how much against its own noise?", ("pairwise",)
        ),
    ),
    (Stage("08", "08_calibration", "What repairs the judge, and what is worth its price?", ("direct", "pairwise")),),
    (Stage("09", "09_ranking", "Who is best, by how much, and do experts agree?", ("listwise",)),),
    (Stage("10", "10_decision_record", "What may this judge be used for?", analysis=True),),
)
STAGES: tuple[Stage, ...] = tuple(stage for wave in WAVES for stage in wave)


# What a validated judge, or the lab itself, is used for: no stage of a study needs them, they read data of their own.
APPLICATIONS: tuple[Stage, ...] = (
    Stage("figures", "applications/published_figures", "Do the published figures come out, to the printed digit?"),
)


def notebook_named(text: str) -> Stage:
    """The stage or application with this number or name."""
    wanted = text.strip().removeprefix("notebooks/").removesuffix(".ipynb")
    found = [one for one in APPLICATIONS if wanted in (one.number, one.name, one.name.rpartition("/")[2])]
    return found[0] if found else stage_named(text)


def stage_named(text: str) -> Stage:
    """The stage with this number (``05``, ``5``) or name (``05_agreement``)."""
    wanted = text.strip().removesuffix(".ipynb")
    for stage in STAGES:
        if wanted in (stage.name, stage.number) or (wanted.isdecimal() and int(wanted) == int(stage.number)):
            return stage
    raise RunError(f"no stage {text!r}; the stages are {', '.join(stage.number for stage in STAGES)}")
