"""The manifest of a run: inputs, outputs and their hashes, package versions. The same inputs give the same bytes."""

from __future__ import annotations

import hashlib
import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from judgelab import __version__
from judgelab.errors import RunError
from judgelab.judging.ledger import Ledger
from judgelab.judging.match_log import MatchLog
from judgelab.judging.match_run import MatchRun
from judgelab.project import resolve, shown
from judgelab.study.run import Run
from judgelab.study.tables import write_text

__all__ = ["check_manifest", "write_manifest"]

PACKAGES = (
    "httpx", "jupyterlab", "krippendorff", "matplotlib", "nbval", "numpy", "pandas", "papermill", "pingouin",
    "pydantic", "scikit-learn", "scipy", "seaborn", "statsmodels", "xllamacpp",
)  # fmt: skip

# A ledger's bytes hold times and page layout; what counts is what it says.
_LEDGER = [
    "judge", "item_id", "strategy", "pass", "presentation", "config_sha256", "prompt_sha256", "repeat",
    "status", "verdict", "reason", "reply",
]  # fmt: skip


def write_manifest(run: Run | MatchRun) -> Path:
    """Write ``manifest.json`` for all that the run folder holds."""
    study = run.study
    document = {
        "run": run.name,
        "study_id": study.study_id,
        "protocol_sha256": study.sha256,
        "human_labels": run.provenance,
        "inputs": {path: _input_hash(path) for path in run.inputs},
        "outputs": _hashes(run.folder),
        "python": platform.python_version(),
        "packages": {"judgelab": __version__, **_versions()},
    }
    path = run.path("manifest.json")
    write_text(json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n", path)
    return path


def check_manifest(run: Run | MatchRun) -> list[str]:
    """What differs between the manifest and the run folder: one line a file, none if all is as it was.

    Raises
    ------
    RunError
        If the run has no readable manifest.
    """
    path = run.path("manifest.json")
    try:
        recorded: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))["outputs"]
    except FileNotFoundError:
        raise RunError(f"{shown(path)}: no manifest; `judgelab run` writes it at its end") from None
    except (ValueError, KeyError, TypeError):
        raise RunError(f"{shown(path)}: not a manifest of judgelab") from None
    found = _hashes(run.folder)
    lines = [
        f"{name}: changed since the manifest was written"
        for name in recorded
        if found.get(name, recorded[name]) != recorded[name]
    ]
    lines += [f"{name}: listed in the manifest, but missing" for name in recorded if name not in found]
    lines += [f"{name}: not listed in the manifest" for name in found if name not in recorded]
    return sorted(lines)


def _hashes(folder: Path) -> dict[str, str]:
    """SHA-256 by path for every file of a run, but for its manifest and what SQLite and locks leave beside."""
    hashes = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if (
            not path.is_file()
            or name == "manifest.json"
            or path.name.startswith((".", "ledger.sqlite-", "matches.sqlite-"))
            or ".ipynb_checkpoints" in name
        ):
            continue
        hashes[name] = _CONTENT.get(name, _file_hash)(path)
    return hashes


def _file_hash(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _ledger_hash(path: Path) -> str:
    """Hash of the ledger's calls, whatever the order and time of their arrival."""
    with Ledger(path, read_only=True) as ledger:
        calls = ledger.calls()[_LEDGER]
    digest = hashlib.sha256()
    for row in calls.astype(object).where(calls.notna(), None).itertuples(index=False):
        digest.update(json.dumps(tuple(row)).encode())
    return digest.hexdigest()


def _match_log_hash(path: Path) -> str:
    """Hash of the matches, whenever they were added."""
    with MatchLog(path, read_only=True) as log:
        matches = log.matches(mix=True).drop(columns="added_at")
    rows = sorted(
        json.dumps([None if pd.isna(value) else value for value in row], default=str)
        for row in matches.itertuples(index=False, name=None)
    )
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


_CONTENT = {"ledger.sqlite": _ledger_hash, "matches.sqlite": _match_log_hash}


def _input_hash(path: str) -> str | None:
    file = resolve(path)
    return _file_hash(file) if file.is_file() else None


def _versions() -> dict[str, Any]:
    versions: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return versions
