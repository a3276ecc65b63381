"""`judgelab fetch`: published data sets from their public repositories, at a pinned commit, proved by SHA-256.

The files lie as the readers want them. What is there and has its SHA-256 is not fetched again; what has another is
fetched, and replaced only by the right bytes. A broken download goes on where it stopped.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx

from judgelab.errors import DataError, RunError
from judgelab.project import outputs_folder, shown
from judgelab.study.sources.catalogue import CataloguedFile, DataSet, read_catalogue
from judgelab.study.sources.download import MissingError, Patience, client_of, download, size_of
from judgelab.study.sources.reductions import REDUCTIONS
from judgelab.study.tables import write_bytes, write_text

__all__ = ["BASE_URL", "EVERYTHING", "fetch", "listing", "sets_named"]

BASE_URL = "https://raw.githubusercontent.com"
EVERYTHING = "all"
LARGEST_ORIGINAL = 64_000_000


def sets_named(names: Sequence[str]) -> list[DataSet]:
    """The data sets of these names, each once; ``all``: every one of the catalogue.

    Raises
    ------
    DataError
        If a name is not in the catalogue.
    """
    catalogue = read_catalogue()
    unknown = [name for name in names if name not in catalogue and name != EVERYTHING]
    if unknown:
        raise DataError(
            f"{len(unknown)} of {len(names)} names are not in the catalogue; first {unknown[0]!r}; allowed are "
            f"{', '.join(catalogue)} and {EVERYTHING}"
        )
    wanted = list(catalogue) if EVERYTHING in names else list(dict.fromkeys(names))
    return [catalogue[name] for name in wanted]


def listing() -> Iterator[str]:
    """A line for every set that can be fetched: name, files, size, licence and title."""
    for one in read_catalogue().values():
        licence = one.licence.split(" (")[0].split(";")[0]
        yield f"{one.name}: {one.title}; {len(one.files)} files, {_megabytes(one.size)}; {licence}"


def fetch(
    names: Sequence[str],
    *,
    to: Path | None = None,
    base_url: str = BASE_URL,
    patience: Patience | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> list[Path]:
    """Get data sets, or check those that are there.

    Parameters
    ----------
    names
        Names of the catalogue, or ``all``.
    to
        The folder that gets one sub-folder a set; ``outputs/fetched`` if None.
    base_url
        The server: it has each file at ``<base_url>/<repository>/<commit>/<path>``.
    patience
        How often and how long to try.
    say
        Gets lines for the user: licence, citation, and what was done.

    Returns
    -------
    list
        The folder of each set, in the order of the names.

    Raises
    ------
    DataError
        If a name is not known, ``base_url`` is no address, or a server's bytes are not those of the catalogue: then
        the file that was there is kept.
    RunError
        If a file cannot be got or written. What has come is kept, and the same call goes on.
    """
    wanted = sets_named(names)
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise DataError(f"base URL {base_url!r}: an address as {BASE_URL} is needed, without query and fragment")
    root = outputs_folder() / "fetched" if to is None else to
    patience = patience or Patience()
    with client_of(patience) as client:
        return [_fetch_set(one, root / one.name, client, base_url.rstrip("/"), patience, say) for one in wanted]


def _fetch_set(
    one: DataSet, folder: Path, client: httpx.Client, base_url: str, patience: Patience, say: Callable[[str], None]
) -> Path:
    say(f"{one.name}: {one.title}")
    say(f"  licence: {one.licence}")
    say(f"  cite: {one.citation}")
    say(f"  from: {one.repository} at {one.commit}; {len(one.files)} files, {_megabytes(one.size)} kept")
    there, missing, replaced = 0, [], 0
    with _alone(folder):
        for before, file in enumerate(one.files):
            target = folder / file.local
            if _sha256(target) == file.sha256:
                there += 1
                continue
            other = target.exists()
            try:
                content = _right_content(one, file, target, client, base_url, patience)
            except MissingError as error:
                if not file.optional:
                    raise MissingError(f"{error}; {before} of {len(one.files)} files of {one.name} are there") from None
                missing.append(file.local)
                continue
            write_bytes(content, target)
            replaced += other
        write_text(_notice(one), folder / "NOTICE")
    got = len(one.files) - there - len(missing)
    at = folder if shown(folder) == folder.name else shown(folder)
    say(f"  {got} of {len(one.files)} files fetched, {there} were there already, each with its SHA-256: {at}")
    if replaced:
        say(f"  {replaced} of the fetched files were there with another SHA-256 and have been replaced")
    if missing:
        say(f"  {len(missing)} files that no reader needs are not on the server: {', '.join(missing)}")
    return folder


def _right_content(
    one: DataSet, file: CataloguedFile, target: Path, client: httpx.Client, base_url: str, patience: Patience
) -> bytes:
    """The bytes of the local file, with the SHA-256 of the catalogue; the ``.part`` files are gone then."""
    parts = [target.with_name(f".{target.name}.{place}.part") for place in range(len(file.remote))]
    urls = [f"{base_url}/{one.repository}/{file.commit}/{quote(path)}" for path in file.remote]
    limit = LARGEST_ORIGINAL if file.reduction else file.size
    resumed = any(size_of(part) for part in parts)
    for again in (False, True) if resumed else (True,):
        for url, part in zip(urls, parts, strict=True):
            if size_of(part) > limit:
                part.unlink()
            if file.reduction or size_of(part) < file.size:
                expected = None if file.reduction else file.size
                download(client, url, part, limit=limit, patience=patience, expected=expected)
        contents = [part.read_bytes() for part in parts]
        try:
            content = _checked(one, file, contents)
        except DataError:
            # what an earlier call left behind may have been the wrong beginning
            if again:
                raise
        else:
            return content
        finally:
            for part in parts:
                part.unlink(missing_ok=True)
    raise AssertionError("the last round returns or raises")


def _checked(one: DataSet, file: CataloguedFile, contents: Sequence[bytes]) -> bytes:
    """The local file's bytes: as they came, or reduced."""
    if file.reduction is None or _digest(contents[0]) == file.sha256:  # a mirror may hold the reduced file
        content = contents[0]
    else:
        content = REDUCTIONS[file.reduction](dict(zip(file.remote, contents, strict=True)))
    found = _digest(content)
    if found != file.sha256:
        what = f"{file.remote[0]} reduced to {file.local}" if file.reduction else file.remote[0]
        raise DataError(
            f"{one.name}: {what}: SHA-256 {found} ({len(content):,} bytes) is not that of the catalogue, {file.sha256} "
            f"({file.size:,} bytes); nothing was replaced"
        )
    return content


def _notice(one: DataSet) -> str:
    """The file that goes with the data: where it is from, its licence and how it is cited."""
    paths = [f"  {path}{_as_taken(one, file)}" for file in one.files for path in file.remote]
    reduced = [f"  {file.local}: {file.reduction}" for file in one.files if file.reduction]
    lines = [f"{one.title}", f"source: {one.repository}", f"commit: {one.commit}", f"licence: {one.licence}"]
    lines += [f"cite: {one.citation}", "paths:", *paths]
    lines += ["reduced (see judgelab/study/sources/reductions.py):", *reduced] if reduced else []
    return "\n".join(lines) + "\n"


def _as_taken(one: DataSet, file: CataloguedFile) -> str:
    return "" if file.commit == one.commit else f" (at {file.commit})"


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from fetching into the same folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise RunError(f"cannot make the folder {shown(folder)}: {error.strerror or error}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f"{shown(folder)}: another process is fetching into it; wait until it has ended") from None
        yield
    finally:
        os.close(handle)  # and with it the lock


def _sha256(path: Path) -> str:
    """Of a file that is there, else no SHA-256 at all."""
    try:
        return _digest(path.read_bytes()) if path.is_file() else ""
    except OSError as error:
        raise RunError(f"cannot read {shown(path)}: {error.strerror or error}") from None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
