"""A progress bar with rate and time left, in notebooks and in terminals. Only judges that ask a model show one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tqdm import tqdm as tqdm_terminal
from tqdm.auto import tqdm

from judgelab.errors import LedgerError
from judgelab.judging.ledger import Ledger

__all__ = ["LedgerWatch", "Progress"]


class Progress:
    """Counts calls as they are settled. ``done`` calls were finished by an earlier run."""

    def __init__(self, title: str, total: int, done: int) -> None:
        self._title, self._total, self._done = title, total, done
        self._counts: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._bar = tqdm(
            total=self._total,
            initial=self._done,
            desc=self._title,
            unit="call",
            dynamic_ncols=True,
            smoothing=0.1,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def step(self, status: str) -> None:
        """One more call is settled, as ``verdict``, ``unusable`` or ``failed``."""
        self._counts[status] += 1
        bad = {name: count for name, count in sorted(self._counts.items()) if name != "verdict"}
        if bad:
            self._bar.set_postfix(bad, refresh=False)
        self._bar.update()


class LedgerWatch:
    """Shows in a terminal how far a run is that judges in another process: it reads the ledger twice a second.

    ``judges`` are the ones worth watching (those that ask a model); the bar appears with the first call to make.
    """

    def __init__(self, ledger: Path, judges: Sequence[str], strategies: Sequence[str], *, seconds: float = 0.5) -> None:
        self._path, self._judges, self._strategies, self._seconds = ledger, set(judges), set(strategies), seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        if self._judges and self._strategies:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _watch(self) -> None:
        bar = None
        while not self._stop.is_set():
            planned, done = self._counts()
            if bar is None and planned > done:
                title = f"judging ({', '.join(sorted(self._judges))})"
                bar = tqdm_terminal(total=planned, initial=done, desc=title, unit="call", dynamic_ncols=True)
            if bar is not None:
                bar.total = planned
                bar.update(done - bar.n)
            self._stop.wait(self._seconds)
        if bar is not None:
            planned, done = self._counts()
            bar.update(done - bar.n)
            bar.close()

    def _counts(self) -> tuple[int, int]:
        """Planned and settled calls of the watched judges and strategies."""
        if not self._path.exists():
            return 0, 0
        try:
            with Ledger(self._path, read_only=True) as ledger:
                table = ledger.progress()
        except LedgerError:  # the ledger is being made; the next look will find it
            return 0, 0
        own = table[table["judge"].isin(self._judges) & table["strategy"].isin(self._strategies)]
        return int(own["planned"].sum()), int(own["done"].sum())
