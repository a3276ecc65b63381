"""The standing leaderboard: a match log that grows over runs, and what of it may be ranked together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab.judging.match_log import Added, MatchLog, comparable, mixing_notes
from judgelab.judging.match_run import MatchRun
from judgelab.judging.ranking_data import RankingData
from judgelab.project import outputs_folder, shown

__all__ = ["Standing", "log_path", "update_standing"]

MATCH_LOG = "matches.sqlite"


@dataclass(frozen=True)
class Standing:
    """A match log after a run has added its matches.

    Attributes
    ----------
    path
        The file, as it is shown to people.
    added
        How many matches the run added, and how many were there already.
    versions
        One row a version of protocol and items, see :meth:`judgelab.judging.match_log.MatchLog.versions`; no times.
    counts
        One row a system: matches, undecided, judges, items, versions.
    matches
        The matches that may be ranked together with this run's: of the same items and the same rubric, by the judges
        of the run's panel.
    notes
        What is mixed in ``matches``, and what was left out of them.
    """

    path: str
    added: Added
    versions: pd.DataFrame
    counts: pd.DataFrame
    matches: pd.DataFrame
    notes: tuple[str, ...]

    def told(self) -> list[str]:
        """What the log holds, and what of it is ranked together, in sentences: the same however often a run adds."""
        added = self.added  # how many of them are new differs between the first run and the next: it is not told
        own = added.added + added.already + added.replaced
        few = "version" if len(self.versions) == 1 else "versions"
        return [
            f"{self.path} holds {int(self.versions['matches'].sum())} matches of {len(self.versions)} {few} of "
            f"protocol and items, {own} of them by this run; {len(self.matches)} of the panel's are ranked together "
            "here.",
            *(note if note.endswith(".") else f"{note}." for note in self.notes),
        ]


def log_path(data: RankingData) -> Path:
    """The match log of the leaderboard that the protocol names, else the run's own."""
    name = data.rules.leaderboard
    return data.run.path(MATCH_LOG) if name is None else outputs_folder() / "leaderboards" / f"{name}.sqlite"


def update_standing(data: RankingData) -> Standing:
    """Add the matches of a run to its leaderboard's log, and read back what may be ranked together.

    Adding them again changes nothing. Matches on other items, or by another rubric, are never taken together with this
    run's; those of another protocol on the same items and rubric are, and the notes say so.

    Raises
    ------
    LedgerError
        If the log holds another preference for one of the matches, or cannot be written.
    """
    path, version = log_path(data), _version(data)
    with MatchLog(path) as log:
        added = log.add(
            data.every,
            run=data.run.name,
            systems=sorted({*data.every["system_x"], *data.every["system_y"]}),
            source="import" if isinstance(data.run, MatchRun) else "run",
            **version,
        )
        versions, counts = log.versions(), log.counts()
        every = log.matches(mix=True)
    groups = comparable(every)
    same, together = (
        (table["items_sha256"] == version["items_sha256"]) & (table["rubric_version"] == version["rubric_version"])
        for table in (every, groups)
    )
    chosen = every[same & every["judge"].isin(data.panel)].reset_index(drop=True)
    apart = groups[~together]
    notes = list(mixing_notes(chosen)) if len(chosen) else []
    if len(apart):
        other = "1 other version" if len(apart) == 1 else f"{len(apart)} other versions"
        notes.append(
            f"{int(apart['matches'].sum())} matches of {other} are left out: they are on other items or by another "
            "rubric"
        )
    return Standing(
        path=shown(path),
        added=added,
        versions=versions.drop(columns=["first_seen", "last_added"]),
        counts=counts,
        matches=chosen.drop(columns="added_at"),
        notes=tuple(notes),
    )


def _version(data: RankingData) -> dict[str, Any]:
    """What the log calls the version of protocol and items that the matches are of."""
    study, frozen = data.study, data.run.frozen
    return {
        "study_id": study.study_id,
        "protocol_sha256": study.sha256,
        "items_sha256": frozen.get("items_sha256") or frozen.get("matches_sha256") or "",
        "rubric_version": getattr(study, "rubric_version", "not stated"),
        "prompt_version": getattr(study, "judge_prompt_version", "not stated"),
    }
