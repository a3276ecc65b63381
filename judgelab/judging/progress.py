"""A progress bar with rate and time left, in notebooks and in terminals. Only judges that ask a model show one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tqdm import tqdm as tqdm_terminal
from tqdm.auto import tqdm

from judgelab.errors import LedgerError
from judgelab.judging.batch_ledger import Batch, at_provider
from judgelab.judging.entries import Entry
from judgelab.judging.ledger import Ledger

__all__ = ["BatchProgress", "LedgerWatch", "Progress"]


class Progress:
    """Counts calls as they are settled. ``done`` calls were finished before; ``note`` says what was spent so far."""

    def __init__(self, title: str, total: int, done: int, note: Callable[[], str] = str) -> None:
        self._title, self._total, self._done, self._note = title, total, done, note
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

    def settled(self, entries: Sequence[Entry]) -> None:
        """These calls are in the ledger, as ``verdict``, ``unusable`` or ``failed``."""
        self._counts.update(entry.status for entry in entries)
        bad = [f"{name}={count}" for name, count in sorted(self._counts.items()) if name != "verdict"]
        note = ", ".join(part for part in (*bad, self._note()) if part)
        if note:
            self._bar.set_postfix_str(note, refresh=False)
        self._bar.update(len(entries))


class BatchProgress:
    """How many requests of all batches of a judge the provider has settled."""

    def __init__(self, judge: str, note: Callable[[], str]) -> None:
        self._title, self._note = f"{judge} in batches", note
        self._batches: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> None:
        self._bar = tqdm(total=0, desc=self._title, unit="call", dynamic_ncols=True)

    def __exit__(self, *exc: object) -> None:
        self._bar.close()

    def look(self, batch: Batch, done: int) -> None:
        """So many calls of this batch are settled."""
        self._batches[batch.token] = (done, len(batch.calls))
        self._refresh()

    def forget(self, batch: Batch) -> None:
        """This batch does not count."""
        self._batches.pop(batch.token, None)
        self._refresh()

    def _refresh(self) -> None:
        done, total = (sum(part) for part in zip((0, 0), *self._batches.values(), strict=True))
        waited_for = sum(done < total for done, total in self._batches.values())
        note = ", ".join(part for part in (f"{waited_for} at the provider", self._note()) if part)
        self._bar.total, self._bar.n = total, done
        self._bar.set_postfix_str(note, refresh=True)


class LedgerWatch:
    """Shows in a terminal how far a run is that judges in another process: it reads the ledger twice a second.

    ``judges`` are the ones worth watching (those that ask a model); the bar appears with the first call to make, and
    shows what they have cost so far and the caps on it.
    """

    def __init__(self, ledger: Path, judges: Sequence[Any], strategies: Sequence[str], *, seconds: float = 0.5) -> None:
        self._path, self._strategies, self._seconds = ledger, set(strategies), seconds
        self._judges = {judge if isinstance(judge, str) else judge.name: judge for judge in judges}
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
            planned, done, spent = self._look()
            if bar is None and planned > done:
                title = f"judging ({', '.join(sorted(self._judges))})"
                bar = tqdm_terminal(total=planned, initial=done, desc=title, unit="call", dynamic_ncols=True)
            if bar is not None:
                bar.total = planned
                bar.set_postfix_str(spent, refresh=False)
                bar.update(done - bar.n)
            self._stop.wait(self._seconds)
        if bar is not None:
            planned, done, spent = self._look()
            bar.set_postfix_str(spent, refresh=False)
            bar.update(done - bar.n)
            bar.close()

    def _look(self) -> tuple[int, int, str]:
        """Planned and settled calls of the watched judges and strategies, and what the judges have cost."""
        if not self._path.exists():
            return 0, 0, ""
        try:
            with Ledger(self._path, read_only=True) as ledger:
                table, batches = ledger.progress(), at_provider(ledger)
        except LedgerError:  # the ledger is being made; the next look will find it
            return 0, 0, ""
        table = table[table["judge"].isin(list(self._judges))]
        own = table[table["strategy"].isin(self._strategies)]
        costs = table.groupby("judge")["cost"].sum()  # of all strategies: a cap counts for the whole run
        told = [self._money(name, float(cost)) for name, cost in costs.items()]
        batches = batches[batches["judge"].isin(list(self._judges))]
        if len(batches):
            told.append(f"in {len(batches)} batches {batches['done'].sum()} of {batches['calls'].sum()} done")
        return int(own["planned"].sum()), int(own["done"].sum()), ", ".join(part for part in told if part)

    def _money(self, name: Any, cost: float) -> str:
        """Cost so far and its cap, for a judge with prices."""
        judge = self._judges[name]
        if isinstance(judge, str) or not judge.prices.known:
            return ""
        cap = judge.limits.max_cost
        of = "" if cap is None else f"/{cap:g}"
        whose = f"{name} " if len(self._judges) > 1 else ""
        return f"{whose}{cost:.4g}{of} {judge.prices.currency}"
