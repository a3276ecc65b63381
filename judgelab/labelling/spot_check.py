"""The spot check in the notebook: a person judges some of a judge's verdicts again, without knowing them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path

import pandas as pd

from judgelab.errors import LabelError
from judgelab.judging.ranking_data import RankingData
from judgelab.judging.spot_check_sheet import read_spot_check
from judgelab.labelling.journal_file import read_journals
from judgelab.labelling.pair_form import PairForm
from judgelab.labelling.tasks import LabelTask
from judgelab.study.items import Item, Pair
from judgelab.study.run import Run

__all__ = ["SpotCheckSession", "checked_again", "spot_check_labels"]

SHEET = ("check_id", "item_id", "shown_first", "shown_second")


class SpotCheckSession(PairForm):
    """One person's spot check; see :class:`judgelab.labelling.session.Session`. It does not end with the labels.

    Parameters
    ----------
    run : Run
        The frozen run.
    sheet : DataFrame
        check_id, item_id, shown_first, shown_second; see :func:`judgelab.measure.spot_check.spot_check_sample`. Its
        sides and its order tell nothing and are kept: the first answer is A.

    Raises
    ------
    LabelError
        If the sheet lacks a column, has a check twice, or names an item or a system that the run does not have.
    """

    mode = "spot_check"
    title = "Spot check"

    def __init__(self, run: Run, sheet: pd.DataFrame) -> None:
        super().__init__(run)
        self._checks = _checks(run, sheet)

    @property
    def folder(self) -> Path:
        """``outputs/<run>/labelling/spot_check``."""
        return _folder(self.run)

    def known(self) -> Collection[str]:
        """The ids of the checks."""
        return self._checks.keys()

    def why_closed(self) -> str:
        """A spot check is never closed: it says nothing of the human labels."""
        return ""

    def item(self, task: LabelTask) -> Item:
        """The item of a check."""
        return self.items[self._checks[task.item_id][0]]

    def order(self, reviewer: str) -> Sequence[LabelTask]:
        """The checks in the order of the sheet."""
        names = self.study.system_names
        return [
            LabelTask(check, _pair(places, names), places, "label", number)
            for number, (check, (_, places)) in enumerate(self._checks.items(), start=1)
        ]


def spot_check_labels(run: Run, sheet: pd.DataFrame) -> pd.DataFrame:
    """What people preferred in the spot check, as :func:`judgelab.judging.spot_check_sheet.read_spot_check` gives it.

    Parameters
    ----------
    run, sheet
        As for :class:`SpotCheckSession`.

    Returns
    -------
    DataFrame
        check_id, preference (a system, ``TIE``, or None where it could not be judged): one row for each check that
        was decided, in the order of the sheet. Of several people's decisions on one check the earliest that could be
        made counts. No rows without a journal.

    Raises
    ------
    LabelError
        As :class:`SpotCheckSession`, or if a journal cannot be read. Lines that cannot be used are left out.
    """
    checks = _checks(run, sheet)
    journals = read_journals(_folder(run), study=run.study, known=checks.keys())
    every = [record for journal in journals for record in journal.standing.initial().values()]
    of_sheet = [record for record in every if set(record.shown) == set(checks[record.item_id][1])]
    first: dict[str, str | None] = {}
    for record in sorted(of_sheet, key=lambda each: datetime.fromisoformat(each.at)):
        if first.get(record.item_id) is None:
            first[record.item_id] = record.preference
    rows = [(check, first[check]) for check in checks if check in first]
    return pd.DataFrame(rows, columns=["check_id", "preference"])


def checked_again(data: RankingData, sheet: pd.DataFrame) -> pd.DataFrame | None:
    """What people chose: in the sheet that the protocol names, where it has come back, else in the notebook.

    Parameters
    ----------
    data
        The run and its matches.
    sheet
        As for :class:`SpotCheckSession`.

    Returns
    -------
    DataFrame or None
        check_id, preference; None where nobody has judged a verdict again.

    Raises
    ------
    DataError, LabelError
        As :func:`judgelab.judging.spot_check_sheet.read_spot_check` and :func:`spot_check_labels`.
    """
    filled_in = read_spot_check(data, sheet)
    if filled_in is not None or not isinstance(data.run, Run):
        return filled_in
    labels = spot_check_labels(data.run, sheet)
    return None if labels.empty else labels


def _folder(run: Run) -> Path:
    return run.path("labelling", "spot_check")


def _checks(run: Run, sheet: pd.DataFrame) -> dict[str, tuple[str, Pair]]:
    """The item and the places (first, second) of each check, in the order of the sheet."""
    missing = [name for name in SHEET if name not in sheet]
    if missing:
        raise LabelError(f"the sheet of the spot check lacks {', '.join(missing)}; needed are {', '.join(SHEET)}")
    items = {item.item_id for item in run.items()}
    checks: dict[str, tuple[str, Pair]] = {}
    for check, item_id, left, right in sheet[list(SHEET)].astype(str).itertuples(index=False, name=None):
        if check in checks:
            raise LabelError(f"the sheet of the spot check has check {check!r} twice")
        if item_id not in items:
            raise LabelError(f"the sheet of the spot check, {check}: item {item_id!r} is not in run {run.name}")
        names = run.study.system_names
        if left == right or left not in names or right not in names:
            raise LabelError(
                f"the sheet of the spot check, {check}: {left!r} and {right!r} are no two of {', '.join(names)}"
            )
        checks[check] = (item_id, (left, right))
    return checks


def _pair(places: Pair, names: Sequence[str]) -> Pair:
    x, y = sorted(places, key=names.index)
    return x, y
