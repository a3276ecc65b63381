"""Cutting open calls into batches: as many as the provider takes at once, and as the judge's caps hold."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import IO

from judgelab.judging.asking import Terms
from judgelab.judging.batch_ledger import Batch
from judgelab.judging.budget import Amount
from judgelab.judging.judges.base import Call
from judgelab.judging.judges.batches.base import BatchLimits, BatchProvider, spool
from judgelab.judging.passes import planned_call
from judgelab.judging.work import Work
from judgelab.study.protocol import Study

__all__ = ["Chunk", "cut_chunk"]


@dataclass(frozen=True)
class Chunk:
    """A batch with its requests as ``lines`` (``size`` bytes, a temporary file), and an upper estimate of them all.

    ``too_much`` is the estimate of the call that did not fit into the caps any more, if that is where it was cut.
    """

    batch: Batch
    lines: IO[bytes]
    size: int
    amount: Amount
    too_much: Amount | None


def cut_chunk(
    study: Study,
    part: Work,
    calls: Iterable[tuple[bytes, Call]],
    provider: BatchProvider,
    terms: Terms,
    limits: BatchLimits,
) -> Chunk:
    """The first of these calls (each with the digest of its key), as many as fit.

    A request that is larger than a whole batch may be goes into a batch of its own; the provider will say so.
    """
    judge, strategy, pass_ = part.place
    batch = Batch(secrets.token_hex(6), judge, part.config_sha256, strategy, pass_, (), 0, 0.0, time.time())
    lines, size, total, too_much = spool(), 0, Amount(), None
    taken: list[bytes] = []
    for digest, call in calls:
        prompt = planned_call(study, judge, part.config_sha256, call).prompt
        line = provider.request(batch.custom_id(digest), call, prompt)
        more = terms.budget.amount(*terms.expected(prompt))
        with_it = Amount(total.calls + 1, total.tokens + more.tokens, total.cost + more.cost)
        if taken and (len(taken) == limits.requests or size + len(line) > limits.size):
            break
        if not terms.budget.fits(with_it):
            too_much = more
            break
        lines.write(line)
        taken.append(digest)
        size, total = size + len(line), with_it
    batch = replace(batch, calls=tuple(taken), tokens=total.tokens, cost=total.cost)
    return Chunk(batch, lines, size, total, too_much)
