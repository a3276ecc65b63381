"""How a prompt is worded where it differs from the protocol's plain one: what probes change and repairs add."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["LETTERS", "PLAIN", "Example", "Reasons", "Wording"]

LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")  # the places of the answers that a call shows
Reasons = Literal["codes", "none", "first"]


@dataclass(frozen=True)
class Example:
    """A labelled development item as a prompt shows it.

    ``answers`` are in the order shown, one for direct scoring and two for a comparison; ``label`` is what people
    decided: the place ``A``, ``B`` or ``TIE``, or the score as text.
    """

    item_id: str
    task: str
    reference_context: str
    answers: tuple[str, ...]
    label: str


@dataclass(frozen=True)
class Wording:
    """How a call is worded.

    Attributes
    ----------
    letters
        What the answers that are shown are called. Verdicts are stored as ``A`` and ``B`` all the same.
    reversed_criteria
        Whether the rubric names its criteria from last to first.
    reasons
        What a reply holds beside its verdict: reason ``codes`` after it, ``none``, or reasons in words ``first``.
    levels
        What levels of the scale mean, by level, for direct scoring.
    examples
        Labelled development items, before the item that is judged.
    """

    letters: tuple[str, ...] = ("A", "B")
    reversed_criteria: bool = False
    reasons: Reasons = "codes"
    levels: tuple[tuple[int, str], ...] = ()
    examples: tuple[Example, ...] = ()

    @property
    def shape(self) -> Wording:
        """The wording without its examples: all that the form of a reply can depend on."""
        return replace(self, examples=()) if self.examples else self

    def named(self, label: str) -> str:
        """What a label is called in this wording: ``B`` is ``2`` where the answers are 1 and 2."""
        return dict(zip(LETTERS, self.letters, strict=False)).get(label, label)


PLAIN = Wording()
