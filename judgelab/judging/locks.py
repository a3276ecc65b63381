"""Who may write: one process a run, and within it one kernel a judge at a time.

The locks are ``flock`` on files in the run folder; they end with the process that holds them, however it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import IO

from judgelab.errors import RunError
from judgelab.project import shown

__all__ = ["HELD", "hold_judge", "hold_run"]

HELD = "JUDGELAB_LOCK_HELD"  # the run folder that the pipeline has locked for the kernels which it starts
LOOK_EVERY = 0.2


@contextlib.contextmanager
def hold_run(folder: Path) -> Iterator[None]:
    """Hold a run folder: nobody else may judge in it. Kernels of one pipeline share what the pipeline holds.

    Raises
    ------
    RunError
        If another process holds it, or it cannot be written. Nothing was touched.
    """
    if os.environ.get(HELD) == str(folder.resolve()):
        yield
        return
    with _opened(folder, ".lock") as handle:
        if not _locked(handle):
            raise RunError(f"{shown(folder)} is in use by another judgelab run; nothing was touched")
        yield


@contextlib.asynccontextmanager
async def hold_judge(folder: Path, judge: str) -> AsyncIterator[None]:
    """Hold one judge of a run: its limits count for all kernels together, so only one of them asks it at a time."""
    with _opened(folder, f".lock-{judge}") as handle:
        while not _locked(handle):
            await asyncio.sleep(LOOK_EVERY)
        yield


def _opened(folder: Path, name: str) -> IO[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / name).open("a", encoding="utf-8")
    except OSError as error:
        raise RunError(f"cannot write {shown(folder)}: {error.strerror}") from None


def _locked(handle: IO[str]) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
