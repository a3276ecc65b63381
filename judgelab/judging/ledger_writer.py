"""Group commit: results that arrive within a few milliseconds are written in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from judgelab.errors import LedgerError
from judgelab.judging.entries import Entry
from judgelab.judging.ledger import Ledger

__all__ = ["LedgerWriter"]


class LedgerWriter:
    """Takes results and writes them a few milliseconds later, together.

    Parameters
    ----------
    ledger
        Where they go.
    written
        Called with the entries of each transaction once it is committed, and never before.
    seconds, most
        How long a result waits for others at most, and how many wait at most.
    """

    def __init__(
        self,
        ledger: Ledger,
        written: Callable[[Sequence[Entry]], None],
        *,
        seconds: float = 0.005,
        most: int = 200,
    ) -> None:
        self._ledger, self._written, self._seconds, self._most = ledger, written, seconds, most
        self._pending: list[Entry] = []
        self._timer: asyncio.TimerHandle | None = None
        self._error: LedgerError | None = None

    def put(self, entry: Entry) -> None:
        """Take one result.

        Raises
        ------
        LedgerError
            If an earlier one could not be written. No more is taken.
        """
        if self._error is not None:
            raise self._error
        self._pending.append(entry)
        if len(self._pending) >= self._most:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._flush_on_time)

    def flush(self) -> None:
        """Write what is waiting, now.

        Raises
        ------
        LedgerError
            If it, or an earlier result, cannot be written.
        """
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._error is not None:
            raise self._error
        if not self._pending:
            return
        entries, self._pending = self._pending, []
        try:
            self._ledger.record_all(entries)
        except LedgerError as error:
            self._error = error
            raise
        self._written(entries)

    def _flush_on_time(self) -> None:
        self._timer = None
        try:
            self.flush()
        except LedgerError:  # `put` or the last `flush` raises it, where somebody can hear it
            return
