"""A frozen run: its protocol, its items and labels as they were frozen, and the folder that it writes to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pandas as pd

from judgelab.errors import DriftError, RunError
from judgelab.project import shown
from judgelab.study import humans, labels
from judgelab.study.items import Item, comparisons, item_from_record
from judgelab.study.protocol import Study
from judgelab.study.run_folder import RunFolder
from judgelab.study.tables import read_table, write_csv

__all__ = ["EXPERT_RANKS", "ITEMS", "LABELS", "Run"]

ITEMS = "items.jsonl"
LABELS = "human_labels.csv"
EXPERT_RANKS = "expert_ranks.csv"
PAIR_COLUMNS = ["human", "direct", "pair_original", "pair_swapped", "original_first"]


@dataclass(frozen=True)
class Run(RunFolder):
    """One run of one study. Get it from :func:`judgelab.study.freeze.freeze` or ``open_run``.

    Attributes
    ----------
    name
        The folder's name in ``outputs``.
    study
        The frozen protocol.
    folder
        ``outputs/<name>``.
    frozen
        SHA-256 by what was frozen: protocol_sha256, items_sha256, human_labels_sha256 (None without labels); in a
        study whose reviewers rank, once its labels are closed, also expert_ranks_sha256.
    """

    name: str
    study: Study
    folder: Path
    frozen: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def shows_provenance(self) -> bool:
        """Whether there are human labels whose origin every table must say."""
        return self.study.human_labels is not None

    @property
    def provenance(self) -> str:
        """Where the human labels come from: ``human``, ``simulated``, ``open`` (being made), or ``none``."""
        if self.study.human_labels is None:
            return "none"
        return "open" if self.labels_open else self.study.human_labels.provenance

    @property
    def labels_open(self) -> bool:
        """Whether labels are made in the study and are not closed yet: there are none to measure with."""
        made = self.study.human_review.labelling is not None
        return made and self.frozen.get("human_labels_sha256") is None

    @property
    def inputs(self) -> list[str]:
        """The files that the protocol names, as it names them."""
        study = self.study
        recorded = {judge.path for judge in study.judges if judge.kind == "recorded"}
        experts = [study.ranking.expert_ranks.path] if study.ranking.expert_ranks else []
        sheet = [study.ranking.spot_check.labels] if study.ranking.spot_check.labels else []
        review = (study.human_labels, "path"), (study.human_review.labelling, "training_key")
        people = [path for part, name in review if (path := getattr(part, name, None)) is not None]
        return [study.items.path, *people, *experts, *sheet, *sorted(recorded)]

    def items(self) -> tuple[Item, ...]:
        """Every frozen item, for development and evaluation.

        Raises
        ------
        DriftError
            If ``items.jsonl`` was changed after freezing.
        """
        return self._frozen_items().every()

    def each_evaluation_item(self) -> Iterator[Item]:
        """The items of :meth:`evaluation_items`, read one by one: for a look at each of them that keeps few or none.

        Raises
        ------
        DriftError
            If ``items.jsonl`` was changed after freezing.
        """
        return (item for item in self.each_item() if item.split == "evaluation")

    def each_item(self) -> Iterator[Item]:
        """The items of :meth:`items`, read one by one: for a look at each of them that keeps few or none.

        Raises
        ------
        DriftError
            If ``items.jsonl`` was changed after freezing.
        """
        return iter(self._frozen_items())

    def check_items(self) -> None:
        """Check that the items are the frozen ones, without reading them.

        Raises
        ------
        DriftError
            If ``items.jsonl`` was changed after freezing.
        """
        self._unchanged(ITEMS, "items_sha256")

    def evaluation_items(self) -> tuple[Item, ...]:
        """The items that are judged; all of them in a study without a development share."""
        return tuple(item for item in self.items() if item.split == "evaluation")

    def item_frame(self) -> pd.DataFrame:
        """The evaluation items' texts: one row an item with item_id, category, task, reference_context, answers."""
        return pd.DataFrame(
            [
                {
                    "item_id": item.item_id,
                    "category": item.category,
                    "task": item.task,
                    "reference_context": item.reference_context,
                    "answers": item.answers,
                }
                for item in self.evaluation_items()
            ]
        )

    def excluded_items(self) -> pd.DataFrame:
        """The lines of the items file that were left out: line, item_id, reason, detail."""
        return read_table(self.path("excluded_items.csv"))

    def comparisons(self, split: str | None = "evaluation") -> pd.DataFrame:
        """One row for each item of a split (None: of both) and pair of systems; see ``items.comparisons``."""
        chosen = [item for item in self.items() if split in (None, item.split)]
        return comparisons(chosen, self.study)

    def labels(self, split: str | None = "evaluation") -> pd.DataFrame:
        """The single human labels of a split's items (None: of both); no rows in a study without labels.

        Raises
        ------
        DriftError
            If ``human_labels.csv`` was changed after freezing.
        """
        every = self._every_label(split)
        return every.loc[every["repeat"] == 1, labels.COLUMNS].reset_index(drop=True)

    def repeats(self, split: str | None = "evaluation") -> pd.DataFrame:
        """All labels of whatever a reviewer labelled more than once, the first among them: column ``repeat``.

        Raises
        ------
        DriftError
            If ``human_labels.csv`` was changed after freezing.
        """
        every = self._every_label(split)
        initial = every[~every["is_adjudicated"]]
        again = initial.groupby(["item_id", "system_x", "system_y", "reviewer_id"])["repeat"].transform("max") > 1
        return initial.loc[again, [*labels.COLUMNS, "repeat"]].reset_index(drop=True)

    def _every_label(self, split: str | None) -> pd.DataFrame:
        if self.study.human_labels is None or self.labels_open:
            empty = pd.DataFrame(columns=[*labels.COLUMNS, "repeat"])
            types = {"is_adjudicated": "bool", "score_x": "float64", "score_y": "float64", "repeat": "int64"}
            return empty.astype(types)
        file = labels.read_label_file(self._unchanged(LABELS, "human_labels_sha256"), self.study)
        chosen = [item.item_id for item in self.items() if split in (None, item.split)]
        return file.labels[file.labels["item_id"].isin(chosen)].reset_index(drop=True)

    def reference(self, split: str | None = "evaluation") -> pd.DataFrame:
        """One reference label for each item and pair, by the protocol's rule; see ``humans.reference``."""
        rule = self.study.human_labels.reference_rule if self.study.human_labels else ()
        return humans.reference(self.labels(split), self.comparisons(split), rule)

    def expert_ranks(self) -> Path | None:
        """The file of the ranks that reviewers gave in the study; None where they do not rank, or are not done.

        Raises
        ------
        DriftError
            If it was changed after the labels were closed.
        """
        key = "expert_ranks_sha256"
        return self._unchanged(EXPERT_RANKS, key) if self.frozen.get(key) else None

    def save_labels(self, frame: pd.DataFrame) -> None:
        """Write single labels as ``human_labels.csv``, each row with its provenance."""
        write_csv(humans.labels_for_file(frame, self.study), self.path(LABELS))

    def save_normalized(self, judge: str, normalized: pd.DataFrame) -> None:
        """Write the preferences of one judge as ``normalized_results/<judge>.csv``, sorted by item.

        Columns for two systems: item_id, human, direct, pair_original, pair_swapped, original_first,
        ``<x>_words``, ``<y>_words`` (systems in small letters); for more, system_x and system_y after item_id,
        and words_x, words_y. A missing preference is empty.
        """
        strangers = set(normalized["judge"]) - {judge} if "judge" in normalized else set()
        if strangers:
            raise RunError(f"rows of {', '.join(sorted(strangers))} among the preferences of {judge}")
        table = normalized.sort_values(["item_id", "system_x", "system_y"], kind="stable")
        if len(self.study.systems) == 2:
            words = {
                f"words_{place}": f"{name.lower()}_words" for place, name in zip("xy", self.study.systems, strict=True)
            }
            table = table.rename(columns=words)[["item_id", *PAIR_COLUMNS, *words.values()]]
        else:
            table = table[["item_id", "system_x", "system_y", *PAIR_COLUMNS, "words_x", "words_y"]]
        write_csv(table, self.path("normalized_results", f"{judge}.csv"))

    def _frozen_items(self) -> _FrozenItems:
        path = self._unchanged(ITEMS, "items_sha256")
        return _frozen_items(path, path.stat().st_mtime_ns)

    def _unchanged(self, name: str, key: str) -> Path:
        """The path of a frozen file, if its bytes are the frozen ones."""
        path = self.path(name)
        if not path.is_file():
            raise RunError(f"{shown(path)} is missing: run stage 01 again, it writes the same file")
        wanted = self.frozen.get(key)
        if wanted is not None and _file_sha256(path) != wanted:
            raise DriftError(
                f"{shown(path)} was changed after freezing (its SHA-256 is not the frozen one); put it back, "
                f"or remove the folder {shown(self.folder)} if its results may go"
            )
        return path


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class _FrozenItems:
    """The items of a file that a run wrote: all of them, kept in memory, or one after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: tuple[Item, ...] | None = None

    def every(self) -> tuple[Item, ...]:
        if self._kept is None:
            self._kept = tuple(self._read())
        return self._kept

    def __iter__(self) -> Iterator[Item]:
        return self._read() if self._kept is None else iter(self._kept)

    def _read(self) -> Iterator[Item]:
        with self._path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                yield item_from_record(json.loads(line))


@lru_cache(maxsize=4)
def _frozen_items(path: Path, _stamp: int) -> _FrozenItems:
    return _FrozenItems(path)
