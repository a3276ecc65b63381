"""Where human labels come from: a file that is there before freezing, or labelling in the study itself."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from judgelab.study.terms import Frozen

__all__ = ["HumanLabels", "HumanReview", "Labelling", "check_review"]

RULE = (
    "Read the task, the context and both answers again. Decide by the criteria alone; how many reviewers "
    "said what does not count. Say in the note which criterion decided."
)


class HumanLabels(Frozen):
    """The human labels, where they come from, and the rule that makes one reference of them.

    ``path`` is their CSV file; without it they are made in the study (see :class:`Labelling`). Labels of provenance
    ``answer_key`` say which answer is right by a key; no person has compared the two.
    """

    path: str | None = None
    provenance: Literal["human", "simulated", "answer_key"] = "human"
    reference_rule: tuple[Literal["adjudicated", "majority"], ...] = ("adjudicated", "majority")
    score_minimum: float = 1
    score_maximum: float = 5


class Labelling(Frozen):
    """Labels are made after freezing: in notebook 02, or in sheets that people fill in and send back.

    ``pairs``: each pair of answers is compared; ``ranking``: all answers of an item are put in order at once.
    ``training`` items of the development split come first and are no part of the evaluation; ``training_key``, a CSV
    file (item_id, preference, explanation; in a study of more than two systems also system_x, system_y), tells a
    reviewer after each of them what was expected. ``repeats_share`` of the evaluation tasks come twice, to measure
    the reviewer against himself. ``criterion_scores``: each answer also gets a score a criterion.
    ``label_development``: development items that are not trained on are labelled, too, for repairs that need labels.
    """

    added: ClassVar[tuple[str, ...]] = ("label_development",)

    mode: Literal["pairs", "ranking"] = "pairs"
    training: Annotated[int, Field(ge=0, le=50)] = 3
    training_key: str | None = None
    repeats_share: Annotated[float, Field(ge=0, le=0.5)] = 0.1
    criterion_scores: bool = False
    label_development: bool = False
    adjudication_rule: Annotated[str, Field(min_length=1)] = RULE


class HumanReview(Frozen):
    """How many independent reviewers each item has, whether their disagreements are adjudicated, and how they label."""

    added: ClassVar[tuple[str, ...]] = ("labelling",)

    reviewers_per_item: Annotated[int, Field(ge=1)] = 2
    adjudicate_disagreement: bool = True
    labelling: Labelling | None = None


def check_review(labels: HumanLabels | None, review: HumanReview) -> None:
    """Refuse labels that come from a file and from labelling, or from neither.

    Raises
    ------
    ValueError
        Naming the keys.
    """
    labelling = review.labelling
    if labelling is None:
        if labels is not None and labels.path is None:
            raise ValueError(
                "human_labels: name the file of the labels in path, or let them be made in the study with "
                "human_review.labelling"
            )
        return
    if labels is None:
        raise ValueError(
            "human_review.labelling makes human labels: it needs human_labels (provenance: human), without a path"
        )
    if labels.path is not None:
        raise ValueError(
            "human_labels.path and human_review.labelling exclude each other: labels come from a file that is there "
            "before freezing, or are made in the study"
        )
    if labelling.mode == "ranking" and labelling.criterion_scores:
        raise ValueError("human_review.labelling: criterion_scores goes with mode pairs, not with ranking")
