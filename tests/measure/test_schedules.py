"""Schedules: balance, each comparison once, merge sort of anything, the oracle of a table."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from judgelab.measure.schedules import (
    Adaptive,
    Comparison,
    balanced_sparse,
    majority,
    merge_sort,
    merge_sort_most,
    oracle_of,
    round_robin,
)

few = settings(max_examples=25, deadline=None)
sizes = st.integers(2, 9)


def names(n, letter="s"):
    return [f"{letter}{number}" for number in range(n)]


def counted(asked, systems, items):
    """Comparisons of each system and of each item."""
    met = dict.fromkeys([*systems, *items], 0)
    for item, x, y in asked:
        for name in (item, x, y):
            met[name] += 1
    return [met[name] for name in systems], [met[item] for item in items]


def every(systems, items):
    return {Comparison(item, x, y) for item in items for x, y in combinations(systems, 2)}


# --- lists made before any answer


@few
@given(n=sizes, n_items=st.integers(1, 6), seed=st.integers(0, 99))
def test_complete_designs_hold_each_comparison_once(n, n_items, seed):
    systems, items = names(n), names(n_items, "i")
    whole = round_robin(systems, items, seed=seed)
    sparse = balanced_sparse(systems, items, comparisons=10**6, seed=seed)
    for made in (whole, sparse):
        assert len(made) == len(set(made)) == n * (n - 1) // 2 * n_items
        assert set(made) == every(systems, items)


@few
@given(n=sizes, n_items=st.integers(1, 6), seed=st.integers(0, 99))
def test_every_start_of_the_sparse_design_is_balanced(n, n_items, seed):
    systems, items = names(n), names(n_items, "i")
    made = balanced_sparse(systems, items, comparisons=10**6, seed=seed)
    for size in range(len(made) + 1):
        by_system, by_item = counted(made[:size], systems, items)
        assert max(by_system) - min(by_system) <= 1
        assert max(by_item) - min(by_item) <= 1
        assert balanced_sparse(systems, items, comparisons=size, seed=seed) == made[:size]


@pytest.mark.parametrize("n", range(2, 14))
def test_the_sparse_design_joins_all_systems_as_soon_as_it_can_be(n):
    systems = names(n)
    for seed in range(5):
        made = balanced_sparse(systems, ["i", "j", "k"], comparisons=n - 1, seed=seed)
        joined = np.zeros((n, n))
        for _, x, y in made:
            joined[systems.index(x), systems.index(y)] = 1
        assert connected_components(joined, directed=False)[0] == 1  # n − 1 edges: a tree


@few
@given(n=sizes, seed=st.integers(0, 99))
def test_no_pair_meets_again_before_all_have_met(n, seed):
    pairs = n * (n - 1) // 2
    made = balanced_sparse(names(n), names(3, "i"), comparisons=pairs, seed=seed)
    assert len({(x, y) for _, x, y in made}) == pairs


def test_the_seed_decides():
    systems, items = names(7), names(4, "i")
    for make in (round_robin, lambda *of, seed: balanced_sparse(*of, pairs_per_item=5, seed=seed)):
        assert make(systems, items, seed=1) == make(systems, items, seed=1)
        assert make(systems, items, seed=1) != make(systems, items, seed=2)


def test_pairs_per_item_times_items():
    assert len(balanced_sparse(names(6), names(4, "i"), pairs_per_item=2.5, seed=1)) == 10


@pytest.mark.parametrize(
    ("systems", "items", "size"), [([], ["i"], 0), (["a"], ["i"], 0), (["a", "b"], [], 0), (["a", "b"], ["i"], 1)]
)
def test_small_designs(systems, items, size):
    assert len(round_robin(systems, items, seed=1)) == size
    assert len(balanced_sparse(systems, items, comparisons=5, seed=1)) == size
    assert len(Adaptive(systems, items, seed=1).ask()) == size


@pytest.mark.parametrize("given_", [{}, {"comparisons": 1, "pairs_per_item": 1}, {"comparisons": -1}])
def test_one_size_is_given(given_):
    with pytest.raises(ValueError, match="give one, 0 and more"):
        balanced_sparse(["a", "b"], ["i"], seed=1, **given_)


@pytest.mark.parametrize(
    ("systems", "items", "problem"),
    [("aba", "i", "'a' is named twice"), ("ab", "ii", "'i' is named twice"), (["a", "TIE"], "i", "called TIE")],
)
def test_names_are_checked(systems, items, problem):
    for make in (lambda *of: round_robin(*of, seed=1), lambda *of: Adaptive(*of, seed=1)):
        with pytest.raises(ValueError, match=problem):
            make(systems, items)


# --- merge sort


@few
@given(st.permutations(names(11)))
def test_merge_sort_sorts_with_a_perfect_comparator(systems):
    calls = []

    def compare(x, y):
        calls.append((x, y))
        return min(x, y, key=lambda name: int(name[1:]))

    assert merge_sort(systems, compare) == names(11)
    assert len(calls) <= merge_sort_most(11)
    assert len({frozenset(pair) for pair in calls}) == len(calls)


@few
@given(n=st.integers(0, 20), seed=st.integers(0, 999))
def test_merge_sort_ends_with_a_random_comparator(n, seed):
    rng, calls = np.random.default_rng(seed), []

    def compare(x, y):
        calls.append((x, y))
        return [x, y, "TIE", None][rng.integers(4)]

    assert sorted(merge_sort(names(n), compare)) == sorted(names(n))
    assert len(calls) <= merge_sort_most(n) <= n * int(np.ceil(np.log2(max(n, 1))))
    assert len({frozenset(pair) for pair in calls}) == len(calls)


def test_the_most_comparisons_are_needed_by_some_order():
    needed = []
    for seed in range(300):
        rank = dict(zip(names(5), np.random.default_rng(seed).permutation(5), strict=True))
        calls = []
        merge_sort(names(5), lambda x, y, rank=rank, calls=calls: calls.append(1) or min(x, y, key=rank.get))
        needed.append(len(calls))
    # runs of 1, 1, 1, 1, 1: two comparisons; 2 and 2: three; 4 and 1: four
    assert max(needed) == merge_sort_most(5) == 9


def test_ties_keep_the_order():
    assert merge_sort("dbca", lambda x, y: "TIE") == list("dbca")


@pytest.mark.parametrize(
    ("said", "votes", "result", "asked"),
    [
        ("aaaaa", 5, "a", 3),  # after three the other two cannot change it
        ("bbbbb", 4, "b", 3),
        ("aabbb", 5, "b", 5),
        (["TIE"] * 5, 5, "TIE", 5),
        (["TIE", None, "TIE", "TIE", "b"], 5, "b", 5),
        ("aabb", 4, "TIE", 4),
    ],
)
def test_majority(said, votes, result, asked):
    for pair in ("ab", "ba"):
        answers = list(said)
        drawn = []

        def answer(item, x, y, answers=answers, drawn=drawn):
            drawn.append(item)
            return answers.pop(0)

        assert majority(answer, "ab", names(7, "i"), votes=votes, seed=1)(*pair) == result
        assert len(set(drawn)) == len(drawn) == asked


def test_majority_asks_what_is_held():
    held = [Comparison("i", "b", "a")]
    compare = majority(lambda item, x, y: y, "abc", "ij", votes=3, seed=1, held=held)
    assert (compare("a", "b"), compare("b", "a"), compare("a", "c")) == ("b", "b", "TIE")
    with pytest.raises(ValueError, match="votes"):
        majority(lambda *_: None, "ab", "i", votes=0, seed=1)


# --- the oracle of a table


def table(*rows):
    return pd.DataFrame(list(rows), columns=["item_id", "system_x", "system_y", "preference"])


@pytest.mark.parametrize(
    ("votes", "result"),
    [
        ("a", "a"), ("aab", "a"), ("ab", "TIE"), (["TIE"], "TIE"), (["a", "TIE"], "TIE"), (["a", "a", "TIE"], "a"),
        (["TIE", "TIE", "a"], "TIE"), ([None], None), ([None, "b"], "b"),
    ],
)  # fmt: skip
def test_oracle_takes_the_majority_of_rows(votes, result):
    rows = [("i", *("ab" if number % 2 else "ba"), vote) for number, vote in enumerate(votes)]
    answer = oracle_of(table(*rows))
    assert answer("i", "a", "b") == answer("i", "b", "a") == result
    assert len(answer.comparisons) == 1


def test_oracle_weights_and_refuses():
    rows = table(("i", "a", "b", "a"), ("i", "a", "b", "b"))
    answer = oracle_of(rows.assign(weight=[1.0, 2.0]))
    assert answer("i", "a", "b") == "b"
    for asked in (("j", "a", "b"), ("i", "a", "c")):
        with pytest.raises(KeyError, match="cannot be asked"):
            answer(*asked)
    with pytest.raises(ValueError, match="item_id"):
        oracle_of(rows.drop(columns="item_id"))
    with pytest.raises(ValueError, match="no item_id"):
        oracle_of(rows.assign(item_id=[None, "i"]))


def test_oracle_of_nothing():
    empty = oracle_of(table())
    assert (empty.systems, empty.items, empty.comparisons) == ((), (), ())
