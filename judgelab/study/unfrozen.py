"""A study's items and reference labels before they are frozen, for whoever plans and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import pandas as pd

from judgelab.errors import RunError
from judgelab.study import humans, labels
from judgelab.study.candidates import planned_items
from judgelab.study.items import Item, ItemSet, comparisons
from judgelab.study.protocol import Study

__all__ = ["StudyData", "UnfrozenStudy"]


class StudyData(Protocol):
    """What passes are planned from: a :class:`judgelab.study.run.Run`, or an :class:`UnfrozenStudy`."""

    @property
    def study(self) -> Study:
        """The protocol."""
        ...

    def items(self) -> tuple[Item, ...]:
        """Every item, for development and evaluation."""
        ...

    def each_item(self) -> Iterator[Item]:
        """The items of :meth:`items`, one by one."""
        ...

    def each_evaluation_item(self) -> Iterator[Item]:
        """The items that are judged, one by one."""
        ...

    def reference(self, split: str | None = "evaluation") -> pd.DataFrame:
        """One reference label for each item of a split (None: of both) and pair; see ``humans.reference``."""
        ...

    def path(self, *parts: str) -> Path:
        """A path inside the run's folder."""
        ...


@dataclass(frozen=True)
class UnfrozenStudy:
    """A study as its files are now, with the methods of :class:`StudyData`: freezing it now gives the same items,
    splits, presentations and reference labels. Files are read when they are first asked for, and once. With the run's
    ``name``, the answers that stage 00 has made are among them; for those that it has not made there are stand-ins.

    Raises
    ------
    DataError
        From any method, if the items or (for :meth:`reference`) the labels cannot be used.
    """

    study: Study
    name: str | None = None

    @cached_property
    def _set(self) -> ItemSet:
        return planned_items(self.name, self.study)

    @cached_property
    def _labels(self) -> pd.DataFrame:
        if self.study.human_labels is None:
            return pd.DataFrame(columns=labels.COLUMNS).astype({"is_adjudicated": "bool"})
        return humans.read_labels(self.study, self._set).labels

    def items(self) -> tuple[Item, ...]:
        """Every item, for development and evaluation."""
        return self._set.items

    def each_item(self) -> Iterator[Item]:
        """The items of :meth:`items`, one by one."""
        return iter(self._set.items)

    def each_evaluation_item(self) -> Iterator[Item]:
        """The items that are judged, one by one; all of them in a study without a development share."""
        return (item for item in self._set.items if item.split == "evaluation")

    def reference(self, split: str | None = "evaluation") -> pd.DataFrame:
        """One reference label for each item and pair, by the protocol's rule; without labels, none has one."""
        rule = self.study.human_labels.reference_rule if self.study.human_labels else ()
        chosen = [item for item in self._set.items if split in (None, item.split)]
        return humans.reference(self._labels, comparisons(chosen, self.study), rule)

    def path(self, *parts: str) -> Path:
        """There is none.

        Raises
        ------
        RunError
            Always.
        """
        raise RunError(f"study {self.study.study_id} is not frozen: it has no folder for {'/'.join(parts)}")
