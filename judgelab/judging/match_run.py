"""A run of a study of matches: frozen like any run, with the matches in the place of items and a ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from judgelab.errors import DriftError, ProtocolError, RunError
from judgelab.judging.match_files import read_matches
from judgelab.project import outputs_folder, project_root, resolve, shown
from judgelab.study.freeze import PROTOCOL, open_run
from judgelab.study.match_study import MatchStudy, is_match_study, parse_match_study
from judgelab.study.protocol import check_run_name, read_params
from judgelab.study.run import Run
from judgelab.study.run_folder import RunFolder
from judgelab.study.tables import read_text, write_bytes, write_text

__all__ = ["MatchRun", "any_run", "freeze_matches", "match_study_of", "open_match_run"]

MATCHES = "matches"


@dataclass(frozen=True)
class MatchRun(RunFolder):
    """One run of a study of matches. Get it from :func:`freeze_matches` or :func:`open_match_run`.

    ``frozen`` holds the SHA-256 of the protocol and of the file of matches.
    """

    name: str
    study: MatchStudy
    folder: Path
    frozen: Mapping[str, str] = field(default_factory=dict)

    @property
    def provenance(self) -> str:
        """``elsewhere``: what was preferred was not asked here."""
        return "elsewhere"

    @property
    def inputs(self) -> list[str]:
        """The files that the protocol names, as it names them."""
        experts = [self.study.ranking.expert_ranks.path] if self.study.ranking.expert_ranks else []
        return [self.study.matches, *experts]

    def matches(self) -> pd.DataFrame:
        """The matches as they were frozen; see :func:`judgelab.judging.match_files.read_matches`.

        Raises
        ------
        DriftError
            If the file was changed after freezing.
        """
        path = self.path(_file_name(self.study))
        if not path.is_file() or _sha256(path.read_bytes()) != self.frozen["matches_sha256"]:
            raise DriftError(
                f"{shown(path)} is missing or was changed after freezing; put it back, or remove the folder "
                f"{shown(self.folder)} if its results may go"
            )
        return read_matches(path)


def match_study_of(name: str, study: Mapping[str, Any]) -> MatchStudy | None:
    """The protocol of matches that a notebook's two parameters name; None if they name any other study."""
    if study:
        return parse_match_study(study) if is_match_study(study) else None
    folder = outputs_folder() / name
    path = project_root() / "params" / f"{name}.yaml"
    if path.is_file():
        document = read_params(path)
        values = document.get("study")
        if values and is_match_study(values) and document.get("run", name) != name:
            raise ProtocolError(f"{shown(path)}: run is {document['run']!r}, the file is for the run {name!r}")
        return parse_match_study(values, where=shown(path)) if values and is_match_study(values) else None
    return open_match_run(name).study if _is_match_run(folder) else None


def freeze_matches(name: str, study: MatchStudy) -> MatchRun:
    """Write the protocol and the matches to ``outputs/<name>``. Freezing again with the same input changes nothing.

    Raises
    ------
    DataError
        If the matches cannot be used; each bad line is told.
    DriftError
        If the run was frozen with another protocol or other matches.
    """
    check_run_name(name, "run")
    source, folder = resolve(study.matches), outputs_folder() / name
    if not source.exists() and _is_match_run(folder):
        source = folder / _file_name(study)  # a frozen run needs its input no more
    read_matches(source)
    content = source.read_bytes()
    frozen = {"protocol_sha256": study.sha256, "matches_sha256": _sha256(content)}
    if (folder / PROTOCOL).is_file():
        if not _is_match_run(folder):
            raise DriftError(f"{shown(folder)} was frozen with a study that judges items; use another run name")
        before = open_match_run(name)
        others = {"protocol_sha256": "another protocol", "matches_sha256": "other matches"}
        different = [told for what, told in others.items() if before.frozen.get(what) != frozen[what]]
        if different:
            raise DriftError(
                f"{shown(folder)} was frozen with {' and '.join(different)}; use another run name, or remove the "
                f"folder {shown(folder)} if its results may go"
            )
        return before
    write_bytes(content, folder / _file_name(study))
    document = {"run": name, "study": study.model_dump(mode="json"), "frozen": frozen}
    write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110), folder / PROTOCOL)
    return MatchRun(name, study, folder, frozen)


def open_match_run(name: str) -> MatchRun:
    """Open a frozen run of matches.

    Raises
    ------
    RunError
        If there is none of this name.
    DriftError
        If its protocol was edited after freezing.
    """
    check_run_name(name, "run")
    folder = outputs_folder() / name
    if not _is_match_run(folder):
        raise RunError(f"{shown(folder)} is no frozen run of matches: run `judgelab run params/{name}.yaml`")
    document = yaml.safe_load(read_text(folder / PROTOCOL))
    study = parse_match_study(document["study"], where=shown(folder / PROTOCOL))
    frozen = dict(document.get("frozen") or {})
    if study.sha256 != frozen.get("protocol_sha256"):
        raise DriftError(f"{shown(folder / PROTOCOL)} was changed after freezing; put it back")
    return MatchRun(name, study, folder, frozen)


def any_run(name: str) -> Run | MatchRun:
    """Open a frozen run, whatever its study is of.

    Raises
    ------
    RunError, DriftError
        As :func:`judgelab.study.freeze.open_run` and :func:`open_match_run`.
    """
    check_run_name(name, "run")
    return open_match_run(name) if _is_match_run(outputs_folder() / name) else open_run(name)


def _is_match_run(folder: Path) -> bool:
    path = folder / PROTOCOL
    try:
        return path.is_file() and is_match_study(yaml.safe_load(read_text(path)).get("study"))
    except (yaml.YAMLError, AttributeError):
        return False


def _file_name(study: MatchStudy) -> str:
    return f"{MATCHES}{Path(study.matches).suffix or '.csv'}"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
