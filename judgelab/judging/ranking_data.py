"""All that stage 09 ranks from, of a run that was judged here or of matches that were judged elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.errors import DataError
from judgelab.judging.listwise import listwise_plans
from judgelab.judging.match_run import MatchRun, freeze_matches, match_study_of
from judgelab.judging.matches import listwise_rankings, matches_of
from judgelab.judging.runner import run_passes
from judgelab.project import resolve, shown
from judgelab.study.freeze import open_run
from judgelab.study.match_study import MatchStudy
from judgelab.study.protocol import TIE, Study
from judgelab.study.ranking import Ranking
from judgelab.study.run import Run
from judgelab.study.tables import read_csv

__all__ = ["RANK_COLUMNS", "RankingData", "ask_listwise", "open_ranking", "read_expert_ranks"]

RANK_COLUMNS = ["item_id", "reviewer_id", "system", "rank"]


@dataclass(frozen=True)
class RankingData:
    """A run with its matches.

    Attributes
    ----------
    run
        The run: its folder, tables and figures.
    every
        The matches of every judge; see :func:`judgelab.judging.matches.matches_of`.
    panel
        Names of the judges that rank together.
    controls
        Names of the judges without a model.
    ranks
        The experts' ranks, a row an item, reviewer and system; no rows where the protocol names none.
    """

    run: Run | MatchRun
    every: pd.DataFrame
    panel: tuple[str, ...]
    controls: tuple[str, ...]
    ranks: pd.DataFrame

    @property
    def study(self) -> Study | MatchStudy:
        """The frozen protocol."""
        return self.run.study

    @property
    def rules(self) -> Ranking:
        """What the protocol says of the ranking."""
        return self.run.study.ranking

    @property
    def matches(self) -> pd.DataFrame:
        """The matches of the panel."""
        return self.every[self.every["judge"].isin(self.panel)].reset_index(drop=True)

    @property
    def judges(self) -> tuple[str, ...]:
        """Every judge that has matches, in the order of the protocol or of the file."""
        return tuple(str(name) for name in self.every["judge"].unique())

    @property
    def expert_provenance(self) -> str:
        """Where the experts' ranks come from; ``none`` without any."""
        experts = self.rules.expert_ranks
        return experts.provenance if experts else "none" if self.ranks.empty else self.run.provenance

    def told(self) -> list[str]:
        """What must be known before the ranking is read: a panel of one, and judges of a system's own family."""
        named = "".join(f", {name}" for name in self.panel if name)  # a file of matches need not say who judged
        alone = f"The panel is one judge{named}: nobody contradicts it."
        notes = [alone] if len(self.panel) < 2 else []
        if not isinstance(self.study, Study):
            return notes
        own: dict[str, list[str]] = {}
        for name, system in self.study.systems.items():
            if system.family:
                own.setdefault(system.family, []).append(name)
        notes += [
            f"{judge.name} judges systems of its own family, {judge.family} ({', '.join(own[judge.family])}): it may "
            "favour them, see stage 07."
            for judge in self.study.judges
            if judge.name in self.panel and judge.family in own
        ]
        return notes or [f"The panel has {len(self.panel)} judges, none of a system's own family."]

    def for_spot_check(self) -> pd.DataFrame:
        """The panel's verdicts whose answers people could judge again: none of matches that were judged elsewhere."""
        return self.matches if isinstance(self.run, Run) else self.matches.iloc[:0]

    def counts(self) -> pd.DataFrame:
        """One row a judge: whether it is on the panel, its matches, those with a preference, ties, and those without.

        Columns: judge, on the panel, matches, systems, items, decided, ties, unusable, reasons.
        """
        rows = []
        for judge, own in self.every.groupby("judge", sort=False):
            missing = own["preference"].isna()
            reasons = own.loc[missing, "reason"].value_counts()
            rows.append(
                {
                    "judge": judge,
                    "on the panel": "yes" if judge in self.panel else "",
                    "matches": len(own),
                    "systems": len({*own["system_x"], *own["system_y"]}),
                    "items": own["item_id"].nunique(),
                    "decided": int((~missing & (own["preference"] != TIE)).sum()),
                    "ties": int((own["preference"] == TIE).sum()),
                    "unusable": int(missing.sum()),
                    "reasons": ", ".join(f"{reason}: {count}" for reason, count in reasons.items()),
                }
            )
        return pd.DataFrame(rows)

    @property
    def presentations(self) -> int:
        """How many calls one judge's comparison of a pair took: 2 where both presentations were judged."""
        return max(self.every["pass"].nunique(), 1) if len(self.every) else 1


def open_ranking(name: str, study: Mapping[str, Any] | Study | None = None) -> RankingData:
    """Open a frozen run for its ranking. A study of matches is frozen here: it has no other stage.

    Raises
    ------
    RunError, DriftError, DataError
        If the run is not frozen, another protocol is given, or a file cannot be used.
    """
    values = study.model_dump(mode="json") if isinstance(study, Study) else (study or {})
    elsewhere = match_study_of(name, values)
    if elsewhere is not None:
        matched = freeze_matches(name, elsewhere)
        every = matched.matches()
        judges = tuple(str(judge) for judge in every["judge"].unique())
        panel = elsewhere.ranking.judges or judges
        strangers = sorted(set(panel) - set(judges))
        if strangers:
            raise DataError(
                f"ranking.judges: no match of {', '.join(strangers)} in {shown(resolve(elsewhere.matches))}; "
                f"its judges are {', '.join(judges)}"
            )
        return RankingData(matched, every, panel, (), _ranks(matched, every))
    run = open_run(name, study)
    every = matches_of(run)
    return RankingData(run, every, run.study.ranking.panel(run.study.judges), run.study.controls, _ranks(run, every))


async def ask_listwise(data: RankingData) -> pd.DataFrame:
    """Ask for the listwise rankings of the protocol that the ledger does not hold; a row a call.

    Returns
    -------
    pandas.DataFrame
        See :func:`judgelab.judging.matches.listwise_rankings`; no rows where the protocol asks for none.
    """
    if not isinstance(data.run, Run):
        return pd.DataFrame(columns=["judge", "item_id", "category", "order", "presented", "ranking", "reason"])
    plans = listwise_plans(data.run.study)
    if plans:
        await run_passes(data.run, plans)
    return listwise_rankings(data.run)


def _ranks(run: Run | MatchRun, matches: pd.DataFrame) -> pd.DataFrame:
    """Experts' ranks of the file that the protocol names, or those that reviewers gave in the study."""
    named = run.study.ranking.expert_ranks
    path = named.path if named else run.expert_ranks() if isinstance(run, Run) else None
    if path is None:
        return pd.DataFrame(columns=RANK_COLUMNS)
    return read_expert_ranks(path, {*matches["system_x"], *matches["system_y"]})


def read_expert_ranks(path: str | Path, systems: set[str]) -> pd.DataFrame:
    """Read experts' ranks: columns item_id, reviewer_id, system, rank (1 is best, ties share a rank).

    Raises
    ------
    DataError
        Naming the line, if a column is missing, a rank is no number above 0, a system is none of the study's, or a
        reviewer ranks one system of an item twice.
    """
    file = read_csv(resolve(path))
    where = shown(resolve(path))
    missing = [name for name in RANK_COLUMNS if name not in file.columns]
    if missing:
        raise DataError(f"{where}: no column {', '.join(missing)}; needed are {', '.join(RANK_COLUMNS)}")
    rows, problems, seen = [], [], dict[tuple[str, ...], int]()
    for line, row in file.rows:
        key = (row["item_id"], row["reviewer_id"], row["system"])
        rank = _number(row["rank"])
        if rank is None:
            problems.append(f"line {line}: rank {row['rank']!r} is no number from 1")
        elif row["system"] not in systems:
            problems.append(f"line {line}: system {row['system']!r} is none of {', '.join(sorted(systems))}")
        elif key in seen:
            problems.append(f"line {line}: ranked in line {seen[key]} already: {', '.join(key)}")
        else:
            seen[key] = line
            rows.append((*key, rank))
    if problems:
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        raise DataError(
            f"{where}: {len(problems)} of {len(file.rows)} ranks cannot be used: {'; '.join(problems[:5])}{more}"
        )
    return pd.DataFrame(rows, columns=RANK_COLUMNS)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 1 <= value < float("inf") else None
