"""A study of matches, and experts' ranks of any study, before the first run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from judgelab.errors import DataError, JudgelabError
from judgelab.judging.findings import Finding, counted, findings_of, some
from judgelab.judging.match_files import read_matches
from judgelab.judging.match_run import MatchRun, any_run
from judgelab.judging.ranking_data import read_expert_ranks
from judgelab.project import outputs_folder, resolve, shown
from judgelab.study.freeze import PROTOCOL
from judgelab.study.match_study import MatchStudy
from judgelab.study.ranking import Ranking

__all__ = ["expert_findings", "match_findings"]


def match_findings(name: str, study: MatchStudy) -> Iterator[Finding]:
    """What a study of matches lacks: its file, the judges that it names, systems with few matches, experts' ranks."""
    path, before = resolve(study.matches), _frozen_run(name)
    if not path.exists() and isinstance(before, MatchRun):
        told = f"{shown(path)} is gone; {shown(before.folder)} holds the matches as they were frozen"
        yield Finding("advice", told, "nothing, while that folder stays")
        yield from _frozen(name, study, before, None)
        return
    try:
        matches = read_matches(path)
    except DataError as error:
        absent = "put the file there: one match a row, with system_x, system_y and preference, in CSV or JSON lines"
        yield from findings_of(error, path=path, absent=absent, mend="correct these lines; nothing is half-read")
        return
    judges = [str(judge) for judge in matches["judge"].unique() if judge] if "judge" in matches else []
    counts = pd.concat([matches["system_x"], matches["system_y"]]).value_counts()
    by = f" by {len(judges)} judges" if len(judges) > 1 else f" by {judges[0]}" if judges else ""
    yield Finding("ok", f"{shown(path)}: {len(matches)} matches of {counted(len(counts), 'system')}{by}")
    unused = matches.attrs.get("unused", ())
    if unused:
        yield Finding("advice", f"{shown(path)}: columns that are not used: {', '.join(unused)}")
    strangers = sorted(set(study.ranking.judges or ()) - set(judges))
    if strangers:
        told = f"ranking.judges: no match of {', '.join(strangers)} in {shown(path)}"
        yield Finding("wrong", told, f"name some of {', '.join(judges) or 'none, as no match names its judge'}")
    few = [str(system) for system, count in counts.items() if count < study.ranking.minimum_matches]
    if few:
        yield Finding(
            "advice",
            f"{len(few)} of {len(counts)} systems have fewer than {study.ranking.minimum_matches} matches "
            f"(ranking.minimum_matches): {some(few)}",
            "read their places with care: they are shown in grey",
        )
    yield from expert_findings(study.ranking, {str(system) for system in counts.index})
    yield from _frozen(name, study, before, path)


def expert_findings(ranking: Ranking, systems: set[str]) -> Iterator[Finding]:
    """Whether the file of experts' ranks, where the protocol names one, can be read."""
    if ranking.expert_ranks is None:
        return
    path = resolve(ranking.expert_ranks.path)
    try:
        ranks = read_expert_ranks(ranking.expert_ranks.path, systems)
    except DataError as error:
        absent = "put the file there: CSV with item_id, reviewer_id, system, rank (1 is best)"
        yield from findings_of(error, path=path, absent=absent, mend="correct these lines")
        return
    yield Finding(
        "ok",
        f"{shown(path)}: {len(ranks)} ranks of {counted(ranks['reviewer_id'].nunique(), 'expert')} on "
        f"{counted(ranks['item_id'].nunique(), 'group')} of answers, {ranking.expert_ranks.provenance}",
    )


def _frozen_run(name: str) -> object:
    """The frozen run of this name, an error that it gives, or None."""
    if not (outputs_folder() / name / PROTOCOL).is_file():
        return None
    try:
        return any_run(name)
    except JudgelabError as error:
        return error


def _frozen(name: str, study: MatchStudy, before: object, path: Path | None) -> Iterator[Finding]:
    if before is None:
        return
    folder = shown(outputs_folder() / name)
    way_out = f"use another run name, or remove the folder {folder} if its results may go"
    if not isinstance(before, MatchRun):
        told = (
            str(before) if isinstance(before, JudgelabError) else f"{folder} was frozen with a study that judges items"
        )
        yield Finding("wrong", told, way_out)
        return
    given = {"protocol": study.sha256}
    if path is not None:
        given["matches"] = hashlib.sha256(path.read_bytes()).hexdigest()
    changed = [key for key, value in given.items() if before.frozen.get(f"{key}_sha256") != value]
    if changed:
        yield Finding("wrong", f"{folder} was frozen with other {' and other '.join(changed)}", way_out)
    else:
        yield Finding("ok", f"{folder} was frozen with this study: the same command makes the same ranking again")
