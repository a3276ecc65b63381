"""One file over HTTP into a ``.part`` file that a later try goes on with.

A body that breaks off leaves what came; the next request asks for the rest (``Range``). Whether the bytes are the right
ones is not judged here: the caller has their SHA-256.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from judgelab.errors import RunError
from judgelab.project import shown

__all__ = ["MissingError", "Patience", "client_of", "download", "size_of"]

AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
LONGEST_WAIT = 30.0
TRIES_IN_ALL = 10  # times the tries without progress: a server that sends a byte a time must end, too
PART_OF = re.compile(r"bytes (\d+)-\d+/(?:\d+|\*)")
WHOLE_OF = re.compile(r"bytes \*/(\d+)")


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server: ``attempts`` in a row without one new byte, and seconds for each step."""

    attempts: int = 5
    first_wait: float = 0.5
    connect: float = 10.0
    read: float = 30.0


class MissingError(RunError):
    """The server does not have the file (404 or 410)."""


class _AgainError(Exception):
    """This try failed and another may not; ``wait``: seconds that the server asks for."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


def client_of(patience: Patience) -> httpx.Client:
    """A client that follows redirects and asks for bodies as they are: a compressed one has no byte ranges of ours."""
    return httpx.Client(
        follow_redirects=True,
        max_redirects=5,
        timeout=httpx.Timeout(patience.read, connect=patience.connect),
        headers={"Accept-Encoding": "identity", "User-Agent": "judgelab"},
    )


def download(
    client: httpx.Client, url: str, part: Path, *, limit: int, patience: Patience, expected: int | None = None
) -> None:
    """Get ``url`` whole into ``part``, going on after the bytes that it holds.

    Parameters
    ----------
    client
        As :func:`client_of` makes it.
    url
        What to get.
    part
        Where the bytes go. It is kept when this fails, so that a later call goes on.
    limit
        The most bytes that the file may have.
    patience
        How often and how long to try.
    expected
        The bytes that the file has, if they are known: a body that ends by the end of the connection may be cut.

    Raises
    ------
    MissingError
        If the server does not have it.
    RunError
        If it refuses, sends more than ``limit``, redirects in circles, fails or is silent too often, or ``part``
        cannot be written.
    """
    fruitless = 0
    for tries in range(1, patience.attempts * TRIES_IN_ALL + 1):
        before = size_of(part)
        try:
            _try(client, url, part, limit, expected)
        except _AgainError as error:
            fruitless = 0 if size_of(part) > before else fruitless + 1
            if fruitless >= patience.attempts or tries == patience.attempts * TRIES_IN_ALL:
                raise RunError(
                    f"{_plain(url)}: {error}; given up after {tries} tries with {size_of(part):,} bytes; "
                    "the same command goes on from there"
                ) from None
            time.sleep(min(max(error.wait, patience.first_wait * 2**fruitless), LONGEST_WAIT))
        except httpx.TooManyRedirects:
            raise RunError(f"{_plain(url)}: redirects more than {client.max_redirects} times") from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise RunError(f"{_plain(url)}: not an address that can be asked: {error}") from None
        except OSError as error:
            raise RunError(f"cannot write {shown(part)}: {error.strerror or error}") from None
        else:
            return


def size_of(part: Path) -> int:
    """Bytes that are there already."""
    return part.stat().st_size if part.is_file() else 0


def _try(client: httpx.Client, url: str, part: Path, limit: int, expected: int | None) -> None:
    """One request; returns when the body has come whole."""
    have = size_of(part)
    headers = {"Range": f"bytes={have}-"} if have else {}
    try:
        with client.stream("GET", url, headers=headers) as response:
            if response.status_code == 416 and have:
                whole = WHOLE_OF.fullmatch(response.headers.get("Content-Range", ""))
                if whole and int(whole.group(1)) == have:
                    return  # all of it had come before
                part.unlink()
                raise _AgainError(f"has no bytes from {have} on")
            _check_status(response, url)
            if response.status_code == 206 and not _goes_on(response, have):
                part.unlink(missing_ok=True)
                raise _AgainError(f"sent another range than the bytes from {have} on")
            size = _write(response, url, part, have if response.status_code == 206 else 0, limit)
            if expected is not None and size < expected and not _says_its_end(response):
                raise _AgainError(f"ended after {size:,} of {expected:,} bytes")
    except (httpx.UnsupportedProtocol, httpx.TooManyRedirects):
        raise
    except httpx.ConnectTimeout:
        raise _AgainError("no connection in time") from None
    except httpx.TimeoutException:
        raise _AgainError("silent for too long") from None
    except httpx.RequestError as error:
        raise _AgainError(f"the connection failed ({type(error).__name__}: {error})") from None


def _check_status(response: httpx.Response, url: str) -> None:
    status = response.status_code
    if status in (200, 206):
        return
    if status in AGAIN:
        raise _AgainError(f"answers with status {status}", _seconds(response.headers.get("Retry-After", "")))
    if status in (404, 410):
        raise MissingError(f"{_plain(url)}: the server does not have it (status {status})")
    raise RunError(f"{_plain(url)}: answers with status {status}; 200 or 206 is needed")


def _goes_on(response: httpx.Response, have: int) -> bool:
    """Whether a partial answer begins where our bytes end, in the bytes of the file itself."""
    begins = PART_OF.fullmatch(response.headers.get("Content-Range", ""))
    return have > 0 and begins is not None and int(begins.group(1)) == have and _as_it_is(response)


def _as_it_is(response: httpx.Response) -> bool:
    return response.headers.get("Content-Encoding", "identity") in ("", "identity")


def _write(response: httpx.Response, url: str, part: Path, start: int, limit: int) -> int:
    """Append the body at ``start``, no further than the limit; the size that the part has then."""
    part.parent.mkdir(parents=True, exist_ok=True)
    size = start
    with part.open("ab" if start else "wb") as file:
        for piece in response.iter_raw() if _as_it_is(response) else response.iter_bytes():
            size += len(piece)
            if size > limit:
                break
            file.write(piece)
    if size > limit:
        part.unlink()
        raise RunError(f"{_plain(url)}: sends more than the {limit:,} bytes that the file may have; nothing is kept")
    return size


def _says_its_end(response: httpx.Response) -> bool:
    """Whether httpx could know that the body is whole."""
    return "Content-Length" in response.headers or "Transfer-Encoding" in response.headers


def _seconds(text: str) -> float:
    """Seconds of a ``Retry-After``; a date is not waited for."""
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _plain(url: str) -> str:
    """An address for a message: without a user's name and password."""
    return re.sub(r"(?<=://)[^/@]*@", "", url)
