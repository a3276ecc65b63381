"""Draws: seeded, independent of other items, of the promised sizes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from judgelab.study.randomisation import call_order, first_system, sample, split_items

SEEDS = st.integers(0, 2**63 - 1)
CATEGORIES = st.dictionaries(st.text(max_size=5), st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=60)
SHARES = st.integers(0, 99).map(lambda hundredths: hundredths / 100)


@given(SEEDS, CATEGORIES, SHARES)
def test_split_has_the_promised_sizes(seed, categories, share):
    split = split_items(seed, categories, share)
    exact = Fraction(str(share))
    n = len(categories)
    assert list(split) == list(categories)
    development = [item for item, part in split.items() if part == "development"]
    assert len(development) == min(int(n * exact + Fraction(1, 2)), n - 1)
    drawn = Counter(categories[item] for item in development)
    for category, size in Counter(categories.values()).items():
        assert abs(drawn[category] - size * exact) < 1


def test_split_by_largest_remainders_by_hand():
    # 5 a, 3 b, 2 c at 0.25: quotas 1.25, 0.75, 0.5; round(2.5 up) = 3 items; floors 1, 0, 0; the two left
    # go to the remainders .75 (b) and .5 (c)
    categories = {f"{name}{number}": name for name, size in (("a", 5), ("b", 3), ("c", 2)) for number in range(size)}
    split = split_items(1, categories, 0.25)
    drawn = Counter(item[0] for item, part in split.items() if part == "development")
    assert drawn == {"a": 1, "b": 1, "c": 1}


def test_a_share_is_the_decimal_that_was_written():
    # 0.29 * 50 is 14.5, which rounds up to 15; the binary number nearest to 0.29 is below it and would give 14
    split = split_items(0, {str(number): "a" for number in range(50)}, 0.29)
    assert Counter(split.values())["development"] == 15


@given(SEEDS, st.text(), st.text(), st.text())
def test_first_system_does_not_depend_on_which_is_named_first(seed, item, x, y):
    assert first_system(seed, item, x, y) == first_system(seed, item, y, x)
    assert first_system(seed, item, x, y) in (x, y)


def test_first_system_is_fixed_for_all_time():
    """A change here would reverse presentations of frozen studies."""
    drawn = "".join(first_system(240719, f"support_{number:04d}", "A", "B") for number in range(1, 17))
    assert drawn == "ABBABAAAAAABABBA"


def test_first_system_is_a_fair_coin():
    # 2,000 fair coins: standard deviation 22.4, so 900 to 1100 is beyond four of them
    heads = sum(first_system(seed, str(item), "A", "B") == "A" for seed in range(20) for item in range(100))
    assert 900 < heads < 1100


@given(SEEDS, st.lists(st.text(max_size=4), unique=True, max_size=30), st.integers(1, 40))
def test_sample_is_a_subset_in_order(seed, names, size):
    chosen = sample(seed, names, size)
    assert len(chosen) == min(size, len(names))
    assert chosen == [name for name in names if name in set(chosen)]
    assert set(sample(seed, names[::-1], size)) == set(chosen)


def test_sample_without_size_is_everything():
    assert sample(1, ["b", "a"], None) == ["b", "a"]


@given(SEEDS, st.lists(st.tuples(st.text(max_size=4), st.integers(0, 9)), unique=True, max_size=30))
def test_call_order_is_a_permutation_that_ignores_the_given_order(seed, keys):
    ordered = call_order(seed, keys)
    assert sorted(ordered) == sorted(keys)
    assert call_order(seed, sorted(keys)) == ordered


def test_call_order_differs_by_seed():
    keys = list(range(50))
    assert call_order(1, keys) != call_order(2, keys)
    assert call_order(1, keys) != keys
