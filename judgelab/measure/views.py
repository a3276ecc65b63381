"""The passes of one judge as arrays of label codes: what every agreement and position measure starts from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from judgelab.measure.coding import check_columns, encode, excluded_note
from judgelab.measure.estimates import Place
from judgelab.measure.preferences import ABSTAIN, conservative
from judgelab.measure.resampling import Ints

__all__ = ["JudgeCodes", "View", "each_judge"]

ABSTAINED = -2  # code of an abstention of the conservative rule; −1 is a verdict that is missing
PASSES = {"direct": "direct", "original": "pair_original", "swapped": "pair_swapped"}
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class View:
    """The planned judgments of one judge in one pass, all arrays of the same length.

    ``human`` and ``judged`` hold label codes, −1 where there is none, −2 for an abstention.
    """

    place: Place
    items: Ints
    category: NDArray[Any]
    human: Ints
    judged: Ints

    @property
    def valid(self) -> Flags:
        """Judgments with a human label and a decided verdict."""
        return (self.human >= 0) & (self.judged >= 0)

    @property
    def note(self) -> str:
        """How many planned judgments have no reference, no usable verdict, or abstain."""
        labelled = self.human >= 0
        unit = "judgments" if self.place.pass_ == "both" or len(np.unique(self.items)) < len(self.items) else "items"
        return excluded_note(
            len(self.items),
            unit,
            without_reference=int((~labelled).sum()),
            without_usable_verdict=int((labelled & (self.judged == -1)).sum()),
            abstained=int((labelled & (self.judged == ABSTAINED)).sum()),
        )

    def where(self, chosen: Flags, slice_: str) -> View:
        """The judgments of a slice."""
        place = Place(self.place.judge, self.place.strategy, self.place.pass_, slice_)
        return View(place, self.items[chosen], self.category[chosen], self.human[chosen], self.judged[chosen])

    def by_category(self) -> Iterator[View]:
        """One view a category, in order of appearance; none if no item has one."""
        for name in pd.unique(pd.Series(self.category, dtype=object).dropna()):
            yield self.where(self.category == name, f"category={name}")


@dataclass(frozen=True)
class JudgeCodes:
    """One judge's rows of the normalized table as label codes, one element per item and pair."""

    judge: str
    items: Ints
    category: NDArray[Any]
    human: Ints
    direct: Ints
    original: Ints
    swapped: Ints
    aggregated: Ints
    original_first: Ints
    other: Ints
    system_y: Ints
    planned: dict[str, Flags]

    @property
    def planned_both(self) -> Flags:
        """Pairs whose two presentations were planned."""
        return self.planned["original"] & self.planned["swapped"]

    def views(self) -> Iterator[View]:
        """The passes that were planned: direct, original, swapped, both, aggregated."""
        for name in PASSES:
            if self.planned[name].any():
                yield self.view(name)
        if self.planned_both.any():
            yield self.both()
            yield self.view("aggregated")

    def view(self, name: str) -> View:
        """One pass; ``aggregated`` is the conservative rule over both."""
        chosen = self.planned_both if name == "aggregated" else self.planned[name]
        place = Place(self.judge, "direct" if name == "direct" else "pairwise", name)
        judged: Ints = getattr(self, name)
        return View(place, self.items[chosen], self.category[chosen], self.human[chosen], judged[chosen])

    def both(self) -> View:
        """The judgments of both passes, one below the other: an item has two for each of its pairs."""
        parts = [
            self.view(name).where(self.planned_both[self.planned[name]], "all") for name in PASSES if name != "direct"
        ]
        stacked = [np.concatenate([getattr(part, field) for part in parts]) for field in ("items", "category")]
        human, judged = (np.concatenate([getattr(part, field) for part in parts]) for field in ("human", "judged"))
        return View(Place(self.judge, "pairwise", "both"), stacked[0], stacked[1], human, judged)


def each_judge(normalized: pd.DataFrame, labels: Sequence[str]) -> Iterator[JudgeCodes]:
    """Every judge of the normalized table, in order of appearance.

    Raises
    ------
    ValueError
        If a column is missing or a preference is not one of ``labels``.
    """
    needed = ["judge", "item_id", "human", *PASSES.values(), "original_first", "system_x", "system_y"]
    check_columns(normalized, [*needed, *(f"planned_{name}" for name in PASSES)], "normalized")
    for judge, group in normalized.groupby("judge", sort=False):
        yield _codes(str(judge), conservative(group), list(labels))


def _codes(judge: str, group: pd.DataFrame, labels: list[str]) -> JudgeCodes:
    def code(column: str, *more: str) -> Ints:
        return encode(group[column], [*labels, *more], f"normalized, judge {judge}, column {column}")

    aggregated = code("aggregated", ABSTAIN)
    aggregated[aggregated == len(labels)] = ABSTAINED
    first, x, y = code("original_first"), code("system_x"), code("system_y")
    category = group["category"] if "category" in group else pd.Series(np.nan, index=group.index)
    return JudgeCodes(
        judge=judge,
        items=pd.factorize(group["item_id"])[0].astype(np.int64),
        category=category.astype(object).to_numpy(),
        human=code("human"),
        direct=code("direct"),
        original=code("pair_original"),
        swapped=code("pair_swapped"),
        aggregated=aggregated,
        original_first=first,
        other=np.where(first < 0, -1, np.where(first == x, y, x)),
        system_y=y,
        planned={name: group[f"planned_{name}"].to_numpy(dtype=bool) for name in PASSES},
    )
