"""The results of a batch as the ledger's entries: read by the same contract as live replies, matched by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO

from judgelab.errors import JudgeError
from judgelab.judging.asking import NOTHING, Terms, Usage, entry, read_reply
from judgelab.judging.batch_ledger import Batch
from judgelab.judging.budget import Amount
from judgelab.judging.entries import Attempt, Entry
from judgelab.judging.judges.base import Call, RefusedError, Reply, TransientError
from judgelab.judging.judges.batches.base import BatchProvider, Result
from judgelab.judging.passes import PlannedCall, planned_call
from judgelab.judging.replies import Contract, Reading
from judgelab.study.protocol import Study

__all__ = ["BatchResults"]


@dataclass
class BatchResults:
    """Reads the results of one batch.

    ``open`` holds the calls that wait for a result, by digest; ``malformed`` and ``failures`` how many malformed
    replies and passing failures each of them has had, and both are counted on. After all of ``entries`` was taken:
    ``settled`` are the calls that need not be sent again (in this run), ``finished`` how many of them have a verdict
    or an unusable reason, ``taken`` what all of them took, ``odd`` the lines that were ignored, by kind, and
    ``fatal`` an error that says that this judge cannot be asked.
    """

    study: Study
    provider: BatchProvider
    contract: Contract
    terms: Terms
    batch: Batch
    batch_id: str
    open: dict[bytes, Call]
    malformed: dict[bytes, int]
    failures: Counter[bytes]
    settled: set[bytes] = field(default_factory=set)
    finished: int = 0
    taken: Amount = field(default_factory=Amount)
    odd: Counter[str] = field(default_factory=Counter)
    fatal: JudgeError | None = None

    def entries(self, lines: IO[bytes]) -> Iterator[Entry]:
        """An entry for every call of the batch that waits for one. A call without a line has failed for now."""
        members, seen = set(self.batch.calls), set[bytes]()
        for result in self.provider.parsed(lines):
            digest = None if result is None else self.batch.digest(result.custom_id)
            if result is None or digest is None or digest not in members:
                self.odd["lines that are no result of this batch"] += 1
            elif digest in seen:
                self.odd["second results of one call"] += 1
            else:
                seen.add(digest)
                yield from self._entry(digest, result)
        for digest in self.batch.calls:
            if digest not in seen:
                lost = "the batch ended without a result for this request"
                yield from self._entry(digest, Result(self.batch.custom_id(digest), failure=lost))

    def _entry(self, digest: bytes, result: Result) -> Iterator[Entry]:
        call = self.open.get(digest)
        if call is None:
            self.odd["results of calls that are finished or not planned any more"] += 1
            return
        planned = planned_call(self.study, self.batch.judge, self.batch.config_sha256, call)
        expected, usage, reply = self.terms.expected(planned.prompt), NOTHING, None
        try:
            reply = self.provider.read(call, result)
        except RefusedError as error:
            reply, reading, outcome = error.reply, Reading(None, error.reason, error.detail), "refused"
            usage = NOTHING if reply is None else self.terms.of_reply(reply, expected)
        except TransientError as error:
            reading, outcome = Reading(None, error.reason, error.detail), "transient"
        except JudgeError as error:  # this call is as open as it was; the others are kept
            self.fatal = self.fatal or error
            return
        else:
            usage = self.terms.of_reply(reply, expected)
            self.terms.learn(planned.prompt, reply)
            reading = read_reply(reply, self.contract, planned.prompt)
            outcome = "verdict" if reading.usable else "malformed"
        yield self._counted(digest, planned, outcome, usage, reply, reading)

    def _counted(
        self, digest: bytes, planned: PlannedCall, outcome: str, usage: Usage, reply: Reply | None, reading: Reading
    ) -> Entry:
        """The entry of a call, with what follows from it: settled, or to be sent again."""
        status = self._status(digest, outcome)
        more = self.terms.amount(usage)
        self.taken = Amount(self.taken.calls + more.calls, self.taken.tokens + more.tokens, self.taken.cost + more.cost)
        tried = Attempt(
            outcome=outcome,
            finished_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            reply=None if reply is None or outcome == "refused" else reply.text,
            reason=reading.reason,
            detail=reading.detail or None,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            cost=usage.cost,
            estimated=usage.estimated,
        )
        return entry(
            planned,
            status,
            [tried],
            reply=reply,
            reading=reading,
            currency=self.terms.prices.currency,
            batch_id=self.batch_id,
        )

    def _status(self, digest: bytes, outcome: str) -> str:
        """The call's status; a malformed reply that the protocol's retries allow to ask again is a failure so far."""
        retries = self.study.retries
        if outcome == "transient":
            self.failures[digest] += 1
            if self.failures[digest] > retries.transient_error:
                self.settled.add(digest)
            return "failed"
        if outcome == "malformed":
            self.malformed[digest] = self.malformed.get(digest, 0) + 1
            if self.malformed[digest] <= retries.malformed_output:
                return "failed"
        self.settled.add(digest)
        self.finished += 1
        return "verdict" if outcome == "verdict" else "unusable"
