"""The budget: no interleaving of requests passes a cap, and what an earlier run spent counts."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgelab.judging.budget import Amount, Budget, BudgetReached, TokenEstimate
from judgelab.judging.entries import Spent
from judgelab.study.terms import Limits, Prices

PRICES = Prices(input_per_million=2_000_000, output_per_million=4_000_000, currency="EUR")  # 2 and 4 EUR a token


def budget(before=None, **caps):
    return Budget("served", Limits(**caps), PRICES, before or Spent())


requests = st.lists(
    st.tuples(st.integers(1, 50), st.floats(0, 1), st.integers(0, 5)), min_size=1, max_size=40
)  # tokens reserved, the share of them that is taken, ticks that the request lasts


@settings(deadline=None, max_examples=150)
@given(
    requests=requests,
    workers=st.integers(1, 8),
    spent=st.integers(0, 60),
    key=st.sampled_from(["calls", "tokens", "cost"]),
    cap=st.integers(1, 200),
)
def test_no_interleaving_passes_the_cap(requests, workers, spent, key, cap):
    limits = Limits(**{f"max_{key}": cap})
    caps = Budget("served", limits, PRICES, Spent(calls=spent, tokens=spent, cost=float(spent)))
    most, stopped = [getattr(caps, key)], []

    async def worker(queue):
        for tokens, share, ticks in queue:
            wanted = Amount(1, tokens, 0.1 * tokens)
            try:
                reserved = await caps.reserve(wanted)
            except BudgetReached as error:
                stopped.append(error)
                return
            for _ in range(ticks):
                await asyncio.sleep(0)
            taken = int(tokens * share)
            caps.settle(reserved, Amount(1, taken, 0.1 * taken))
            most.append(getattr(caps, key))

    async def main():
        queue = iter(requests)
        await asyncio.wait_for(asyncio.gather(*(worker(queue) for _ in range(workers))), 10)

    asyncio.run(main())
    assert max(most) <= max(cap, spent) * (1 + 1e-9)
    if not stopped:
        assert len(most) == len(requests) + 1


@pytest.mark.parametrize(
    ("caps", "amount", "fits"),
    [
        ({"max_calls": 7}, Amount(1), 7),
        ({"max_tokens": 100}, Amount(1, 30), 3),
        ({"max_cost": 0.3}, Amount(1, 0, 0.1), 3),  # three times 0.1 is a little above 0.3 in floats
        ({}, Amount(1, 10**9, 1e9), 20),
    ],
)
def test_a_cap_is_reached_and_not_passed(caps, amount, fits):
    held = budget(**caps)

    async def main():
        for number in range(20):
            try:
                held.settle(await held.reserve(amount), amount)
            except BudgetReached:
                return number
        return 20

    assert asyncio.run(main()) == fits


def test_what_is_in_flight_is_waited_for_before_a_cap_stops_anything():
    held = budget(max_tokens=100)

    async def main():
        first = await held.reserve(Amount(1, 80))
        second = asyncio.create_task(held.reserve(Amount(1, 60)))
        await asyncio.sleep(0)
        assert not second.done()
        held.settle(first, Amount(1, 20))  # it took less: 20 + 60 fit
        await second

    asyncio.run(asyncio.wait_for(main(), 5))


def test_what_the_ledger_holds_counts():
    # 40 tokens in and 10 out that no price was known for: 40 x 2 + 10 x 4 = 120 EUR, and 30 EUR that was
    held = budget(Spent(calls=5, tokens=70, cost=30.0, unpriced_in=40, unpriced_out=10), max_cost=200)
    assert (held.calls, held.tokens, held.cost) == (5, 70, 150.0)
    with pytest.raises(BudgetReached) as caught:
        asyncio.run(held.reserve(Amount(1, 0, 51.0)))
    assert str(caught.value) == (
        "judge served: limits.max_cost is 200 EUR; spent so far 150 EUR, and the next request may take up to 51 EUR"
    )
    assert (caught.value.judge, caught.value.key) == ("served", "max_cost")


def test_a_raised_cap_holds_in_place_of_the_protocols():
    held = Budget("served", Limits(max_calls=5), PRICES, Spent(calls=5), {"max_calls": 6.0})
    asyncio.run(held.reserve(Amount(1)))
    assert held.show() == "5/6 requests, 0 EUR"


def test_what_is_spent_in_a_few_words():
    held = budget(Spent(calls=2, tokens=70, cost=1.23456), max_calls=9, max_tokens=1000, max_cost=5)
    assert held.show() == "2/9 requests, 70/1000 tokens, 1.235/5 EUR"
    assert Budget("served", Limits(), Prices(), Spent(calls=4)).show() == ""
    assert not Budget("served", Limits(), Prices(), Spent()).capped


def test_a_cache_that_costs_more_is_reserved_for():
    prices = Prices(input_per_million=1e6, output_per_million=0.0, cached_input_per_million=3e6)
    assert Budget("served", Limits(), prices, Spent()).amount(10, 5) == Amount(1, 15, 30.0)
    assert budget().amount(10, 5) == Amount(1, 15, 10 * 2 + 5 * 4)


def test_estimates_are_from_above_and_learn():
    estimate = TokenEstimate(100)
    assert estimate.of("a" * 300, "b" * 30) == (24 + 110, 100)
    assert estimate.of("語" * 30) == (24 + 45, 100)  # three bytes each, half a token a byte
    estimate.learn(("a" * 300, "b" * 30), 268, 120)  # twice what was thought
    assert estimate.of("a" * 300, "b" * 30) == (268, 120)
    estimate.learn(("a" * 300, "b" * 30), 10, 1)  # never down again
    assert estimate.of("a" * 300, "b" * 30) == (268, 120)
    estimate.learn(("a",), None, None)


def test_half_a_surrogate_pair_in_a_prompt_can_be_estimated():
    assert TokenEstimate(1).of("\ud83d")[0] > 24
