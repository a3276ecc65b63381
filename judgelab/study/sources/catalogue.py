"""The catalogue of published data sets: where each file is, at which commit, and the SHA-256 of what we read.

``catalogue.json`` has one entry a set. A file is named as it is read here (``local``) and as its repository has it
(``remote``: one path, or several that are reduced to one file). ``sha256`` and ``bytes`` are those of the local file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from judgelab.errors import DataError

__all__ = ["CataloguedFile", "DataSet", "read_catalogue"]

CATALOGUE = Path(__file__).with_name("catalogue.json")
SHA256 = re.compile(r"[0-9a-f]{64}")
COMMIT = re.compile(r"[0-9a-f]{7,40}")
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class CataloguedFile:
    """One file of a set.

    Attributes
    ----------
    local
        Its path in the set's folder.
    remote
        The path, or paths, in the repository.
    commit
        The commit at which they are taken.
    sha256, size
        Of the local file; ``size`` in bytes.
    reduction
        How the local file is made of the remote ones (a name of ``reductions.REDUCTIONS``); None: it is the same bytes.
    optional
        Whether the set can be read without it.
    """

    local: str
    remote: tuple[str, ...]
    commit: str
    sha256: str
    size: int
    reduction: str | None = None
    optional: bool = False


@dataclass(frozen=True)
class DataSet:
    """One published data set: its files, its licence and how it is cited."""

    name: str
    title: str
    repository: str
    commit: str
    licence: str
    citation: str
    files: tuple[CataloguedFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all its local files."""
        return sum(file.size for file in self.files)


def read_catalogue(path: Path = CATALOGUE) -> dict[str, DataSet]:
    """Every data set that `judgelab fetch` knows, by name.

    Raises
    ------
    DataError
        If an entry lacks something, names a path outside its folder, or has what is no commit or SHA-256.
    """
    entries: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return {name: _data_set(name, entry) for name, entry in entries.items()}


def _data_set(name: str, entry: Mapping[str, Any]) -> DataSet:
    try:
        found = DataSet(
            name=name,
            **{key: entry[key] for key in ("title", "repository", "commit", "licence", "citation")},
            files=tuple(_file(one, entry["commit"]) for one in entry["files"]),
        )
    except KeyError as error:
        raise DataError(f"{CATALOGUE.name}: {name} has no {error}") from None
    wrong = [] if REPOSITORY.fullmatch(found.repository) else [found.repository]
    paths = [one for file in found.files for one in (file.local, *file.remote)]
    wrong += [one for one in paths if PurePosixPath(one).is_absolute() or ".." in PurePosixPath(one).parts]
    wrong += [file.sha256 for file in found.files if not SHA256.fullmatch(file.sha256)]
    wrong += [file.commit for file in found.files if not COMMIT.fullmatch(file.commit)]
    locals_ = [file.local for file in found.files]
    wrong += sorted({local for local in locals_ if locals_.count(local) > 1})
    if wrong:
        raise DataError(f"{CATALOGUE.name}: {name}: {len(wrong)} values cannot be used; first {wrong[0]!r}")
    return found


def _file(entry: Mapping[str, Any], commit: str) -> CataloguedFile:
    remote = entry["remote"]
    return CataloguedFile(
        local=entry["local"],
        remote=(remote,) if isinstance(remote, str) else tuple(remote),
        commit=entry.get("commit", commit),
        sha256=entry["sha256"],
        size=entry["bytes"],
        reduction=entry.get("reduction"),
        optional=entry.get("optional", False),
    )
