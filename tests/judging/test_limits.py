"""The limiter under a clock that jumps: never more than the limit in any minute, fair, and told by the endpoint."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgelab.judging.judges.base import RateHint
from judgelab.judging.limits import HOLD_AT_MOST, MARGIN, WINDOW, Limiter


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop without waiting: when nothing is ready, its clock jumps to the next timer."""

    def __init__(self):
        super().__init__()
        self.now = 1000.0

    def time(self):
        return self.now

    def _run_once(self):
        waiting = [timer.when() for timer in self._scheduled if not timer.cancelled()]
        if not self._ready and waiting:
            self.now = max(self.now, min(waiting))
        super()._run_once()


def jumping(task):
    loop = JumpingLoop()
    try:
        return loop.run_until_complete(task(loop))
    finally:
        loop.close()


def sent(limiter, requests, *, takes=0.0, used=None, concurrency=None):
    """(time, tokens, number) of each request; ``requests`` are (moment at which it is wanted, tokens)."""
    log = []

    async def one(loop, number, at, tokens):
        await asyncio.sleep(at)
        ticket = await limiter.acquire(tokens)
        log.append((loop.time(), tokens, number))
        await asyncio.sleep(takes)
        limiter.settle(ticket, tokens if used is None else used)

    async def all_of_them(loop):
        await asyncio.gather(*(one(loop, number, *request) for number, request in enumerate(requests)))

    jumping(all_of_them)
    return log


def most_in_a_minute(log, value):
    """The largest sum of ``value`` over any span of 60 seconds."""
    return max(
        sum(value(entry) for entry in log if start <= entry[0] < start + WINDOW)
        for start in (entry[0] for entry in log)
    )


moments = st.lists(
    st.tuples(st.integers(0, 2000).map(lambda tenths: tenths / 10), st.integers(0, 40)), min_size=1, max_size=60
)


@settings(deadline=None, max_examples=60)
@given(requests=moments, limit=st.integers(1, 12))
def test_never_more_requests_than_the_limit_in_any_minute(requests, limit):
    log = sent(Limiter(requests_per_minute=limit), requests)
    assert len(log) == len(requests)
    assert most_in_a_minute(log, lambda entry: 1) <= limit


@settings(deadline=None, max_examples=60)
@given(requests=moments, limit=st.integers(40, 120))
def test_never_more_tokens_than_the_limit_in_any_minute(requests, limit):
    log = sent(Limiter(tokens_per_minute=limit), requests)
    assert len(log) == len(requests)
    assert most_in_a_minute(log, lambda entry: entry[1]) <= limit


@settings(deadline=None, max_examples=40)
@given(requests=moments, limit=st.integers(1, 12))
def test_whoever_asks_first_goes_first(requests, limit):
    log = sent(Limiter(requests_per_minute=limit), requests)
    wanted = sorted(range(len(requests)), key=lambda number: requests[number][0])
    assert [requests[number][0] for _, _, number in log] == [requests[number][0] for number in wanted]


def test_requests_go_out_as_soon_as_they_may():
    # three a minute: 1000 now, then the fourth when the first is a minute old
    times = [at for at, _, _ in sent(Limiter(requests_per_minute=3), [(0, 0)] * 7)]
    assert times == pytest.approx([1000] * 3 + [1060] * 3 + [1120], abs=4 * MARGIN)


def test_without_limits_nothing_waits():
    assert {at for at, _, _ in sent(Limiter(), [(0, 10**9)] * 100)} == {1000.0}


def test_what_was_reserved_too_much_is_free_at_once():
    # 100 tokens a minute, 60 reserved a request: one a minute; but each takes 10 in the end, after one second
    times = [at for at, _, _ in sent(Limiter(tokens_per_minute=100), [(0, 60)] * 5, takes=1.0, used=10)]
    assert times == pytest.approx([1000, 1001, 1002, 1003, 1004])
    assert [at for at, _, _ in sent(Limiter(tokens_per_minute=100), [(0, 60)] * 2, takes=1.0)][1] >= 1060


def test_a_request_larger_than_a_minute_waits_for_an_empty_one():
    log = sent(Limiter(tokens_per_minute=50), [(0, 40), (1, 80), (2, 10)])
    assert [at for at, _, _ in log] == pytest.approx([1000, 1060, 1120], abs=4 * MARGIN)


def test_a_retry_after_holds_the_whole_judge():
    limiter = Limiter()

    async def task(loop):
        await limiter.acquire()
        limiter.hold(7.0)
        await asyncio.gather(*(limiter.acquire() for _ in range(3)))
        return loop.time()

    assert jumping(task) == pytest.approx(1007, abs=MARGIN)


def test_a_longer_hold_counts_while_others_wait_already():
    limiter = Limiter()

    async def task(loop):
        limiter.hold(5.0)
        loop.call_later(2.0, limiter.hold, 10.0)
        await limiter.acquire()
        return loop.time()

    assert jumping(task) == pytest.approx(1012, abs=2 * MARGIN)


@pytest.mark.parametrize(
    ("hint", "seconds"),
    [
        (None, 0),
        (RateHint(), 0),
        (RateHint(remaining_requests=1, reset_requests_seconds=30), 0),
        (RateHint(remaining_requests=0), 0),
        (RateHint(remaining_requests=0, reset_requests_seconds=30), 30),
        (RateHint(remaining_tokens=0, reset_tokens_seconds=12), 12),
        (RateHint(0, 0, 30, 12), 30),
        (RateHint(remaining_requests=0, reset_requests_seconds=86400), HOLD_AT_MOST),
    ],
)
def test_an_endpoint_with_nothing_left_is_left_alone_until_its_reset(hint, seconds):
    limiter = Limiter()

    async def task(loop):
        limiter.observe(hint)
        await limiter.acquire()
        return loop.time() - 1000

    assert jumping(task) == pytest.approx(seconds, abs=MARGIN)
