"""Planning against full enumeration, a second library, brute force and the normal approximation."""

import math
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multinomial, norm
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.intervals import wilson
from judgelab.measure.plan_tables import PLAN_COLUMNS, labels_worth_buying, plan_table
from judgelab.measure.planning import (
    items_for_difference,
    items_for_width,
    paired_power,
    power_of_minimum,
    smallest_difference,
    smallest_n_for_limit,
    smallest_truth_for_minimum,
)

THRESHOLDS = {
    "minimum_agreement": 0.7,
    "minimum_swap_consistency": 0.8,
    "minimum_coverage": 0.7,
    "maximum_unusable_rate": 0.05,
    "meaningful_difference": 0.05,
    "minimum_kappa": 0.4,
}


@lru_cache
def rejected(better, worse):
    return mcnemar([[0, better], [worse, 0]], exact=True).pvalue <= 0.05


def enumerated_power(n, difference, discordant):
    """Sum over all tables (better, worse, both or neither) that statsmodels' exact test rejects."""
    chances = [(discordant + difference) / 2, (discordant - difference) / 2, 1 - discordant]
    return sum(
        multinomial.pmf([better, worse, n - better - worse], n, chances)
        for better in range(n + 1)
        for worse in range(n + 1 - better)
        if better + worse and rejected(better, worse)
    )


@pytest.mark.parametrize(
    ("n", "difference", "discordant"), [(12, 0.3, 0.5), (20, 0.0, 0.4), (25, -0.2, 0.3), (9, 1, 1)]
)
def test_power_equals_enumeration_with_statsmodels(n, difference, discordant):
    ours = paired_power(n, difference, discordant=discordant, level=0.95)
    assert ours == pytest.approx(enumerated_power(n, difference, discordant), abs=1e-9)


@given(st.integers(1, 2000), st.floats(0.01, 1), st.floats(0, 1))
@settings(max_examples=50)
def test_power_is_a_probability_symmetric_and_no_larger_than_the_size_at_no_difference(n, discordant, share):
    difference = share * discordant
    one = paired_power(n, difference, discordant=discordant, level=0.95)
    assert 0 <= one <= 1
    assert one == pytest.approx(paired_power(n, -difference, discordant=discordant, level=0.95), abs=1e-9)
    assert paired_power(n, 0.0, discordant=discordant, level=0.95) <= 0.05 + 1e-9


def test_power_equals_simulation():
    rng = np.random.default_rng(2)
    drawn = rng.multinomial(200, [0.15, 0.07, 0.78], 20_000)[:, :2]
    found = np.mean([rejected(int(better), int(worse)) for better, worse in drawn])
    # Standard error of 20,000 studies: below 0.0036.
    assert paired_power(200, 0.08, discordant=0.22, level=0.95) == pytest.approx(found, abs=0.012)


@pytest.mark.parametrize(("n", "discordant"), [(100, 0.2), (1000, 0.1), (10_000, 0.3)])
def test_smallest_difference_has_the_power_and_is_near_the_normal_approximation(n, discordant):
    found = smallest_difference(n, discordant=discordant, level=0.95, power=0.8)
    assert paired_power(n, found, discordant=discordant, level=0.95) == pytest.approx(0.8, abs=1e-6)
    d, z, more = found, norm.ppf(0.975), norm.ppf(0.8)
    for _ in range(50):
        d = (z * discordant**0.5 + more * math.sqrt(discordant - d * d)) / n**0.5
    assert d < found < d * (1 + 2 / (n * discordant) ** 0.5)


def test_smallest_difference_is_undefined_where_nothing_is_found():
    # Five discordant items can never give p <= 0.05: 2 / 2⁵ = 0.0625.
    assert math.isnan(smallest_difference(5, discordant=1.0, level=0.95, power=0.8))
    assert smallest_difference(6, discordant=1.0, level=0.95, power=0.8) == pytest.approx(
        2 * 0.8 ** (1 / 6) - 1, abs=1e-4
    )


def test_items_for_difference_is_enough_and_the_next_lower_number_is_not_for_good():
    n = items_for_difference(0.1, discordant=0.2, level=0.95, power=0.8)
    powers = [paired_power(k, 0.1, discordant=0.2, level=0.95) for k in range(n - 1, n + 40)]
    assert powers[0] < 0.8 <= min(powers[1:])
    # (1.96 √0.2 + 0.8416 √0.19)² / 0.01 = 154.6 by the normal approximation.
    assert 155 < n < 175


@given(st.floats(0, 1), st.floats(0.05, 0.9), st.sampled_from([0.9, 0.95, 0.99]))
def test_items_for_width_is_the_least_number(rate, width, level):
    n = items_for_width(rate, width, level)

    def wide(k):
        low, high = wilson(rate * k, k, level)
        return high - low

    assert wide(n) <= width
    assert n == 1 or wide(n - 1) > width


def test_fewest_calls_for_a_limit():
    # z² (1 - 0.05) / 0.05 = 3.8415 · 19 = 72.99.
    assert smallest_n_for_limit(0.05, 0.95) == 73
    for limit in (0.01, 0.05, 0.2):
        for failures in (0, 1, 5):
            n = smallest_n_for_limit(limit, 0.95, failures=failures)
            bounds = [proportion_confint(failures, k, method="wilson")[1] for k in (n - 1, n)]
            assert bounds[1] <= limit < bounds[0]


@given(st.integers(1, 60), st.floats(0, 1), st.floats(0, 1))
def test_power_of_a_minimum_equals_the_sum_over_all_outcomes(n, truth, minimum):
    expected = sum(
        math.comb(n, k) * truth**k * (1 - truth) ** (n - k) for k in range(n + 1) if wilson(k, n, 0.95)[0] >= minimum
    )
    assert power_of_minimum(n, truth, minimum, 0.95) == pytest.approx(expected, abs=1e-9)


def test_power_of_a_minimum_that_is_the_truth_is_the_error_that_is_allowed():
    assert power_of_minimum(1000, 0.7, 0.7, 0.95) == pytest.approx(0.025, abs=0.005)
    assert power_of_minimum(20, 0.3, 0.0, 0.95) == 1


def test_smallest_truth_has_the_power():
    truth = smallest_truth_for_minimum(150, 0.7, level=0.95, power=0.8)
    assert power_of_minimum(150, truth, 0.7, 0.95) == pytest.approx(0.8, abs=1e-6)
    assert math.isnan(smallest_truth_for_minimum(72, 0.95, level=0.95, power=0.8))
    assert not math.isnan(smallest_truth_for_minimum(73, 0.95, level=0.95, power=0.8))
    assert smallest_truth_for_minimum(10, 0.0, level=0.95, power=0.8) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_power(0, 0.1, discordant=0.2, level=0.95), "n is 0; allowed is 1"),
        (lambda: paired_power(10, 0.3, discordant=0.2, level=0.95), "difference is 0.3; allowed is -0.2 to 0.2"),
        (lambda: paired_power(10, 0.0, discordant=0.0, level=0.95), "discordant is 0"),
        (lambda: paired_power(10, 0.1, discordant=0.2, level=1.0), "level is 1"),
        (lambda: smallest_difference(10, discordant=0.2, level=0.95, power=0.05), "power is 0.05"),
        (lambda: items_for_difference(0.0, discordant=0.2, level=0.95, power=0.8), "difference is 0"),
        (lambda: items_for_width(1.1, 0.1, 0.95), "rate is 1.1"),
        (lambda: items_for_width(0.5, 0.0, 0.95), "width is 0"),
        (lambda: smallest_n_for_limit(0.0, 0.95), "limit is 0"),
        (lambda: smallest_n_for_limit(0.1, 0.95, failures=-1), "failures is -1"),
        (lambda: power_of_minimum(10, float("nan"), 0.5, 0.95), "truth is nan"),
        (lambda: labels_worth_buying(-1, rate=0.8, discordant=0.2, level=0.95, power=0.8), "-1 labels"),
        (lambda: labels_worth_buying(9, rate=0.8, discordant=0.2, level=0.95, power=0.8, worth=0), "worth is 0"),
        (lambda: plan_table(n_items=5, n_labelled=6, thresholds={}, ci_level=0.95), "6 labelled of 5 items"),
    ],
)
def test_numbers_outside_their_range_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def value(table, quantity, assumption=""):
    found = table[table["quantity"].str.contains(quantity) & table["assumption"].str.contains(assumption)]
    assert len(found) == 1
    return found.iloc[0]


def test_plan_table_holds_the_functions_numbers():
    table = plan_table(n_items=120, n_labelled=100, thresholds=THRESHOLDS, ci_level=0.95)
    assert list(table.columns) == list(PLAN_COLUMNS)
    low, high = wilson(80, 100, 0.95)
    assert value(table, "half width")["value"] == pytest.approx((high - low) / 2)
    needed = value(table, "interval 0.1 wide")
    assert (needed["value"], needed["note"]) == (245, "145 more labelled items are needed")
    found = value(table, "smallest difference", "20%")
    assert found["value"] == smallest_difference(100, discordant=0.2, level=0.95, power=0.8)
    shown = value(table, "chance to show that swap", "0.9,")
    assert shown["value"] == power_of_minimum(120, 0.9, 0.8, 0.95)
    calls = value(table, "fewest calls")
    assert (calls["value"], calls["unit"], calls["note"]) == (73, "calls", "reached")


def test_plan_table_of_few_or_no_labels_says_what_is_undefined():
    for n in (0, 5):
        table = plan_table(n_items=10, n_labelled=n, thresholds=THRESHOLDS, ci_level=0.95)
        undefined = table[table["value"].isna()]
        assert len(undefined)
        assert undefined["note"].str.startswith("undefined: ").all()
    assert "9 items would do" in value(table, "true agreement needed")["note"]
    assert value(table, "fewest calls")["note"] == "63 more items are needed"


def test_labels_worth_buying_gain_less_and_less_and_stop():
    options = {"rate": 0.8, "discordant": 0.2, "level": 0.95, "power": 0.8}
    early, late = (labels_worth_buying(n, **options) for n in (100, 1000))
    assert early["labels_added"].tolist() == [0, 25, 50, 100, 200]
    assert early["gain_per_100"].dropna().is_monotonic_decreasing
    assert early["smallest_difference"].is_monotonic_decreasing
    assert early["gain"].iloc[3] == pytest.approx(early["half_width"].iloc[0] - early["half_width"].iloc[3])
    assert early["advice"].iloc[1:].str.startswith("worth it").all()
    assert late["advice"].iloc[1:].str.startswith("stop: ").all()
    none = labels_worth_buying(0, **options)
    assert none["advice"].tolist()[:2] == ["no label yet", f"the first 25 labels: ± {none['half_width'].iloc[1]:.3f}"]
    assert none["gain"].isna().all()
