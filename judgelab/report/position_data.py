"""What stage 06 reads: verdicts of a run in both presentations, or matches judged elsewhere in both orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from judgelab.errors import RunError
from judgelab.judging.evidence import verdicts
from judgelab.judging.match_run import MatchRun, freeze_matches, match_study_of
from judgelab.measure.coding import TIE
from judgelab.measure.preferences import normalize
from judgelab.study.freeze import open_run
from judgelab.study.match_study import MatchStudy
from judgelab.study.protocol import Study
from judgelab.study.run import Run

__all__ = ["PositionData", "in_both_orders", "normalized_matches", "open_position"]

NAMED = 8  # systems up to which the swap table has a row a system
PAIR = ["judge", "item_id", "system_x", "system_y"]
SIDES = ("system_x", "system_y")


@dataclass(frozen=True)
class PositionData:
    """The verdicts of a study, one row a judge, item and pair of systems (see ``measure.preferences.normalize``)."""

    run: Run | MatchRun
    normalized: pd.DataFrame

    @property
    def study(self) -> Study | MatchStudy:
        """The protocol."""
        return self.run.study

    @property
    def controls(self) -> tuple[str, ...]:
        """The judges without a model; none among matches."""
        return self.study.controls if isinstance(self.study, Study) else ()

    @property
    def judges(self) -> list[str]:
        """The judges on trial, in the order of the protocol or of the file; the controls where there is no other."""
        if isinstance(self.study, Study):
            return [judge.name for judge in self.study.judges if judge.name not in self.controls] or [*self.controls]
        return [str(name) for name in self.normalized["judge"].unique()]

    @property
    def labels(self) -> tuple[str, ...]:
        """The allowed preferences: every system, then TIE."""
        if isinstance(self.study, Study):
            return self.study.labels
        return (*_systems(self.normalized), TIE)

    @property
    def agreement(self) -> pd.DataFrame:
        """The table of stage 05; without rows where matches have no reference to agree with."""
        if isinstance(self.run, Run):
            return self.run.table("agreement")
        return pd.DataFrame(columns=["judge", "measure", "pass", "slice"])

    def crossed(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """The same rows and labels for a table of preferences before and after the swap.

        Matches of more than eight systems stand there by their side of the pair, or nobody could read the table.
        """
        if isinstance(self.study, Study) or len(self.labels) <= NAMED + 1:
            return self.normalized, self.labels
        table = self.normalized.copy()
        x, y = (table[name].to_numpy(dtype=object) for name in SIDES)
        for name in ("pair_original", "pair_swapped", "original_first"):
            said = table[name].to_numpy(dtype=object)
            table[name] = pd.Series(np.select([said == x, said == y], SIDES, said), index=table.index, dtype=object)
        return table.assign(system_x=SIDES[0], system_y=SIDES[1]), (*SIDES, TIE)


def open_position(name: str, study: Mapping[str, Any] | None = None) -> PositionData:
    """Open a run for its position test. A study of matches is frozen here, as stage 09 does.

    Raises
    ------
    RunError, DriftError, DataError
        If the run is not frozen, another protocol is given, or a file cannot be used.
    """
    elsewhere = match_study_of(name, study or {})
    if elsewhere is not None:
        matched = freeze_matches(name, elsewhere)
        return PositionData(matched, normalized_matches(matched.matches()))
    run = open_run(name, study)
    if not isinstance(run, Run):
        raise RunError(f"outputs/{name} is no run of a study")
    margin = run.study.direct_tie_margin
    return PositionData(run, normalize(verdicts(run), run.reference(), run.comparisons(), margin=margin))


def in_both_orders(matches: pd.DataFrame) -> tuple[int, int]:
    """How many comparisons (a judge, an item and a pair) there are in both orders, and how many in all."""
    table = normalized_matches(matches)
    return int((table["planned_original"] & table["planned_swapped"]).sum()), len(table)


def normalized_matches(matches: pd.DataFrame) -> pd.DataFrame:
    """Matches as one row a judge, item and pair of systems, with the preference in each order.

    The order of the pass ``original`` is the original one; without passes, that which the file has first. Of matches
    that repeat a judge, item, pair and order the first counts. A match whose order is not known counts in neither.

    Parameters
    ----------
    matches : DataFrame
        See :func:`judgelab.judging.match_files.read_matches`.

    Returns
    -------
    DataFrame
        As :func:`judgelab.measure.preferences.normalize` returns it, without a reference and without scores.
    """
    rank = {name: place for place, name in enumerate(_systems(matches))}
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    wanted = ["judge", "item_id", "category", "pass", "system_x", "system_y", "first", "preference"]
    for line in matches.sort_values("repeat", kind="stable")[[*wanted, "words_x", "words_y"]].to_dict("records"):
        turned = rank[line["system_x"]] > rank[line["system_y"]]
        x, y = (line["system_y"], line["system_x"]) if turned else (line["system_x"], line["system_y"])
        words = (line["words_y"], line["words_x"]) if turned else (line["words_x"], line["words_y"])
        new: dict[str, Any] = {"judge": line["judge"], "item_id": line["item_id"], "system_x": x, "system_y": y}
        new |= {"category": line["category"] or None, "words_x": words[0], "words_y": words[1], "orders": {}}
        row = rows.setdefault((line["judge"], line["item_id"], x, y), new)
        if isinstance(line["first"], str) and line["first"]:
            row["orders"].setdefault(line["first"], (line["pass"] == "swapped", line["preference"]))
    return pd.DataFrame([_in_orders(row) for row in rows.values()], columns=_COLUMNS).astype(
        {name: bool for name in _COLUMNS if name.startswith("planned_")}
    )


_COLUMNS = [
    *("judge", "item_id", "category", "system_x", "system_y", "human", "direct", "pair_original", "pair_swapped"),
    *("original_first", "words_x", "words_y", "planned_direct", "planned_original", "planned_swapped"),
]


def _in_orders(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its two orders told apart."""
    orders = row.pop("orders")
    ordered = sorted(orders, key=lambda first: orders[first][0])  # of one order alone it is the original
    preferred = [orders[first][1] if isinstance(orders[first][1], str) else np.nan for first in ordered]
    row |= dict(zip(("pair_original", "pair_swapped"), [*preferred, np.nan, np.nan], strict=False))
    row["original_first"] = ordered[0] if ordered else np.nan
    planned = {"planned_direct": False, "planned_original": len(ordered) > 0, "planned_swapped": len(ordered) > 1}
    return row | {"human": np.nan, "direct": np.nan} | planned


def _systems(table: pd.DataFrame) -> list[str]:
    """The systems in the order in which they come, those of the first side first."""
    return [str(name) for name in pd.unique(pd.concat([table["system_x"], table["system_y"]]).astype(object))]
