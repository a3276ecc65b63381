"""Everything that is drawn by lot: the sample, the split, who stands first, the order of calls.

Each draw is a function of the protocol's seed and of the thing's own name, through SHA-256: it depends on no
judge, no other item, no Python version and no order of lines, so anybody can repeat it.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

__all__ = ["call_order", "first_system", "sample", "split_items"]

Key = TypeVar("Key")


def first_system(seed: int, item_id: str, system_x: str, system_y: str) -> str:
    """The system that stands first in the original pass of one pair: a fair coin of its own for each pair.

    Parameters
    ----------
    seed
        The protocol's ``random_seed``.
    item_id, system_x, system_y
        The pair. Which of the two systems is named first does not matter.

    Returns
    -------
    str
        ``system_x`` or ``system_y``. The swapped pass shows the other one first.
    """
    pair = sorted((system_x, system_y))
    return pair[_digest(seed, "first", item_id, *pair)[-1] & 1]


def sample(seed: int, item_ids: Sequence[str], size: int | None) -> list[str]:
    """A simple random sample without replacement, in the given order; all of them if there are not more."""
    if size is None or size >= len(item_ids):
        return list(item_ids)
    chosen = set(sorted(item_ids, key=lambda name: _digest(seed, "sample", name))[:size])
    return [name for name in item_ids if name in chosen]


def split_items(seed: int, categories: Mapping[str, str], development_share: float) -> dict[str, str]:
    """Draw the development items within each category; the rest is for evaluation.

    Parameters
    ----------
    seed
        The protocol's ``random_seed``.
    categories
        Category by item id, ``n`` items.
    development_share
        Wanted share of development items, 0 <= share < 1.

    Returns
    -------
    dict of str to str
        ``"development"`` or ``"evaluation"`` by item id, in the given order. ``round(n * share)`` items (half
        up, at most ``n - 1``) are for development; a category with ``m`` items gets ``m * share`` of them,
        rounded down or up by the method of largest remainders (Hamilton's method of apportionment).
    """
    members: dict[str, list[str]] = defaultdict(list)
    for item_id, category in categories.items():
        members[category].append(item_id)
    # the decimal that was written, not its binary neighbour: 0.1 of 30 items is 3 items
    quotas = _quotas({name: len(ids) for name, ids in members.items()}, Fraction(str(development_share)))
    development: set[str] = set()
    for name, ids in members.items():
        development.update(sorted(ids, key=lambda item_id: _digest(seed, "split", item_id))[: quotas[name]])
    return {item_id: "development" if item_id in development else "evaluation" for item_id in categories}


def call_order(seed: int, keys: Sequence[Key]) -> list[Key]:
    """A seeded shuffle of calls. Keys are strings, numbers, or tuples of them; equal keys side by side."""
    return sorted(keys, key=lambda key: _digest(seed, "call", key))


def _quotas(sizes: Mapping[str, int], share: Fraction) -> dict[str, int]:
    """Whole numbers of items a category, by largest remainders; equal remainders in the order of names."""
    total = sum(sizes.values())
    wanted = min(int(total * share + Fraction(1, 2)), max(total - 1, 0))
    quotas = {name: int(size * share) for name, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda name: (quotas[name] - sizes[name] * share, name))
    for name in by_remainder[: wanted - sum(quotas.values())]:
        quotas[name] += 1
    return quotas


def _digest(*parts: Any) -> bytes:
    """SHA-256 of the parts, kept apart from each other by JSON."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).digest()
