"""Listwise judging: one call puts all answers of an item in order, in several seeded orders of presentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from judgelab.judging.judges.base import Call
from judgelab.judging.judges.recorded import records_of
from judgelab.judging.passes import PassPlan, is_recorded
from judgelab.study.items import Item
from judgelab.study.protocol import Study
from judgelab.study.randomisation import call_order

__all__ = ["listwise_plans", "presented"]


def listwise_plans(study: Study) -> list[PassPlan]:
    """The listwise passes of a protocol, judge by judge: one for each order of presentation; none if it names none.

    The first order of an item is drawn with the protocol's seed. The second turns each half of it around, the third the
    whole, and the fourth exchanges the halves, so that nobody stays first or last throughout; then a new one is drawn.
    """
    asked = study.ranking.listwise
    if asked is None:
        return []
    named = asked.judges
    judges = [judge for judge in study.judges if (judge.name in named if named else judge.kind != "control")]
    plans = [
        PassPlan(judge, f"listwise/order-{order}", "listwise", f"order-{order}", _calls(study, judge, order))
        for judge in judges
        for order in range(1, asked.orders + 1)
    ]
    return [plan for plan in plans if is_recorded(plan)]


def presented(study: Study, item: Item, order: int) -> tuple[str, ...]:
    """The systems of an item in one of its orders, from 1."""
    draw, step = divmod(order - 1, 4)
    again = (draw,) if draw else ()
    drawn = call_order(study.random_seed, [("listwise", item.item_id, name, *again) for name in study.system_names])
    systems = tuple(str(key[2]) for key in drawn)
    half = (len(systems) + 1) // 2
    left, right = systems[:half], systems[half:]
    return (systems, left[::-1] + right[::-1], systems[::-1], systems[len(right) :] + systems[: len(right)])[step]


def _calls(study: Study, judge: Any, order: int) -> Callable[[Item], list[Call]]:
    """What names the call about an item; a recorded judge was shown what its record says."""
    pass_ = f"order-{order}"
    recorded = {}
    if judge.kind == "recorded":
        recorded = {
            item_id: shown
            for item_id, strategy, recorded_pass, shown, _ in records_of(judge)
            # what shows other systems is no record of this call
            if (strategy, recorded_pass, sorted(shown)) == ("listwise", pass_, sorted(study.system_names))
        }

    def calls(item: Item) -> list[Call]:
        shown = recorded.get(item.item_id, presented(study, item, order))
        return [Call("listwise", pass_, item, shown)]

    return calls
