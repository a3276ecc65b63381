"""Planted truth: do the intervals hold it as often as they say?"""

import numpy as np
import pytest

from benchmarks.coverage import simulate, verdict
from benchmarks.coverage_cases import FAMILIES
from benchmarks.coverage_studies import Scenario
from benchmarks.planted import EFFECTS, alarms
from judgelab.measure.estimates import Place, Settings, rate_row
from judgelab.measure.paired import paired_statistics
from judgelab.measure.resampling import Contingency, bootstrap, percentile_interval

STUDIES, ITEMS, RESAMPLES = 300, 200, 1000


def test_interval_of_the_agreement_difference_covers():
    # Human labels 50/30/20; direct repeats them with 0.6, pairwise with 0.7, else any label: the true agreements are
    # 0.6 + 0.4 / 3 and 0.7 + 0.3 / 3, so that pairwise minus direct is 0.2 / 3.
    truth = 0.2 / 3
    rng = np.random.default_rng(11)
    human = rng.choice(3, (STUDIES, ITEMS), p=[0.5, 0.3, 0.2])
    judged = [np.where(rng.random(human.shape) < p, human, rng.integers(0, 3, human.shape)) for p in (0.6, 0.7)]
    held = 0
    for study in range(STUDIES):
        codes = np.column_stack([human[study], judged[0][study], judged[1][study]])
        cells = Contingency.of(codes, None, 3)
        values = bootstrap(
            cells.table, lambda t, cells=cells: paired_statistics(t, cells), resamples=RESAMPLES, rng=rng
        )
        low, high, _ = percentile_interval(values[2], 0.95)
        held += low <= truth <= high
    assert 0.92 <= held / STUDIES <= 0.98


@pytest.mark.parametrize("pairs", [1, 3])
def test_interval_of_the_clustered_first_position_rate_covers(pairs):
    # A share of items is judged by place (always the first answer, rate 1), the others by content (rate 1/2): per
    # item the 2 * pairs judgments hang together. Truth: 0.3 * 1 + 0.7 * 0.5 = 0.65.
    truth = 0.65
    rng = np.random.default_rng(12)
    settings = Settings(0.95, RESAMPLES, 1)
    items = np.repeat(np.arange(ITEMS), 2 * pairs)
    held = 0
    for _ in range(STUDIES):
        by_place = np.repeat(rng.random(ITEMS) < 0.3, 2 * pairs)
        values = np.where(by_place, 1.0, np.tile([1.0, 0.0], ITEMS * pairs))
        line = rate_row("first_position_rate", Place(), items, values, settings=settings, force_bootstrap=True)
        held += line["ci_low"] <= truth <= line["ci_high"]
    assert 0.92 <= held / STUDIES <= 0.98


def share_held(family, scenario, studies):
    table = simulate(family, scenario, studies).set_index("measure")
    return table["covered"], table["warned"]


@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_kind_of_interval_covers_where_it_does_not_warn(family):
    # 40 studies of 100 items: 0.95 - 4.5 standard errors. The whole table is made by `python -m benchmarks coverage`.
    covered, warned = share_held(family, Scenario(2, 0.5, False, 100), 40)
    assert covered[warned < 0.5].min() >= 0.79
    assert (warned < 0.5).sum() >= 2


def test_few_disagreements_are_warned_of():
    # 30 items of which 0.05 and 0.1 are wrong: some 4 items on which the two strategies differ
    covered, warned = share_held("agreement", Scenario(3, 0.95, False, 30), 100)
    for measure in ("cohen_kappa", "cohen_kappa_difference", "exact_agreement_difference"):
        assert warned[measure] >= 0.9
    # Wilson's interval needs no warning
    assert covered["exact_agreement"] >= 0.87
    assert warned["exact_agreement"] == 0


def test_verdict_of_a_cell():
    assert verdict(0.95, 1.0) == "held"
    assert verdict(0.98, 0.0) == "wide"
    assert verdict(0.925, 0.0, slack=0.006) == "edge"
    assert [verdict(0.9, warned) for warned in (0.6, 0.4)] == ["short", "unwarned"]


@pytest.mark.parametrize("name", list(EFFECTS))
def test_planted_effects_are_found_at_the_stated_power(name):
    # Allowed: 3.5 standard errors of a share at most below the power; of fair judges 5 % are expected.
    effect, studies = EFFECTS[name], 12 if name == "leniency" else 30
    assert alarms(name, 100, effect.strength, studies) >= effect.power(100, effect.strength) - 1.75 / studies**0.5
    assert alarms(name, 100, 0.0, studies) <= 0.17
