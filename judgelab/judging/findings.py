"""One thing that a check of a study has found, and how the message of an error becomes such things."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["Finding", "Level", "counted", "findings_of", "some"]

SHOWN = 5
Level = Literal["missing", "wrong", "advice", "ok"]


@dataclass(frozen=True)
class Finding:
    """``what`` was found, and how to ``mend`` it (empty where nothing is to be done).

    ``missing`` and ``wrong`` stop a first run; ``advice`` does not, but its results suffer; ``ok`` is as it should be.
    """

    level: Level
    what: str
    mend: str = ""

    @property
    def blocks(self) -> bool:
        """Whether a run would stop at this."""
        return self.level in ("missing", "wrong")


def findings_of(
    error: Exception, *, mend: str, path: Path | None = None, absent: str = "", who: str = ""
) -> Iterator[Finding]:
    """The message of an error: one finding, or where it lists several problems, one for each.

    Parameters
    ----------
    error
        What a reader of a file or of a protocol raised.
    mend
        How its problems are mended.
    path, absent
        The file that was read. Where it is not there, this is what is missing, and it is mended by ``absent``, or as
        the error says.
    who
        What stands before each finding, such as ``judge x``.
    """
    before = f"{who}: " if who else ""
    if path is not None and not path.exists():
        what, made, how = str(error).partition("; make it with ")
        yield Finding("missing", before + what, f"make it with {how}" if made else absent or mend)
        return
    head, *lines = f"{before}{error}".split("\n")
    if not lines:
        yield Finding("wrong", head, mend)
    where = head.rpartition(": ")[0] or head
    for line in lines:
        yield Finding("wrong", f"{where}: {line.strip()}", "add this key" if line.endswith(": is missing") else mend)


def counted(number: int, what: str) -> str:
    """``1 item``, ``2 items``."""
    return f"{number} {what}{'s' * (number != 1)}"


def some(names: Iterable[object]) -> str:
    """The first five of them, each once, and how many more there are."""
    every = list(dict.fromkeys(map(str, names)))
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return f"{', '.join(every[:SHOWN])}{more}"
