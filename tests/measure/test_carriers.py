"""How many items carry a statistic's variance, and what a row says of few."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgelab.measure.carriers import ENOUGH, carriers, few_carriers
from judgelab.measure.estimates import Place, Settings, kappa_row, mean_row, rate_row
from judgelab.measure.resampling import Contingency, ItemTable, rater_kappa

SETTINGS = Settings(0.95, 200, 1)


def mean(totals):
    return (totals[:, 0] / totals[:, 1])[np.newaxis, :]


def of_values(values):
    values = np.asarray(values, dtype=float)
    return ItemTable.of(np.arange(len(values)), np.column_stack([values, np.ones(len(values))]))


def naive(values, statistic):
    """Leave every item out in turn."""
    values = np.asarray(values)
    without = np.array([statistic(np.delete(values, i, axis=0)) for i in range(len(values))])
    changes = without - without.mean()
    return (changes**2).sum() ** 2 / (changes**4).sum()


def test_by_hand():
    # Rate k of n: d is proportional to n - k for the k and to -k for the others, so that
    # m = n k (n - k) / ((n - k)^3 + k^3) * n; for k = n / 2 this is n.
    assert carriers(of_values([1] * 10 + [0] * 10), mean)[0] == pytest.approx(20)
    n, k = 100, 3
    expected = n * k * (n - k) / ((n - k) ** 3 + k**3) * n
    assert carriers(of_values([1] * k + [0] * (n - k)), mean)[0] == pytest.approx(expected)
    # A difference with values -1, 0, 1: as many as are not 0, if they are balanced
    assert carriers(of_values([1] * 4 + [-1] * 4 + [0] * 992), mean)[0] == pytest.approx(8)


@given(st.lists(st.integers(0, 5), min_size=3, max_size=30).filter(lambda values: len(set(values)) > 1))
def test_equals_leaving_out_one_by_one(values):
    assert carriers(of_values(values), mean)[0] == pytest.approx(naive(values, np.mean), rel=1e-6)


@given(st.integers(0, 10_000))
def test_equals_leaving_out_one_by_one_for_kappa(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 3, 40)
    second = np.where(rng.random(40) < 0.7, first, rng.integers(0, 3, 40))
    cells = Contingency.of(np.column_stack([first, second]), None, 3)

    def kappa(totals):
        return rater_kappa(totals, *cells.cells.T, 3)[np.newaxis, :]

    def kappa_of(rows):
        own = Contingency.of(rows, None, 3)
        return rater_kappa(own.table.totals, *own.cells.T, 3)[0]

    expected = naive(np.column_stack([first, second]), kappa_of)
    assert carriers(cells.table, kappa)[0] == pytest.approx(expected, rel=1e-6)


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=20), st.floats(0.5, 3), st.floats(-3, 3))
def test_unit_and_origin_do_not_matter(values, unit, origin):
    values = np.round(values, 2)
    one, other = (carriers(of_values(v), mean)[0] for v in (values, unit * values + origin))
    assert one == pytest.approx(other, rel=1e-4, nan_ok=True)


def test_undefined_without_one_item_counts_as_none():
    # kappa of (0, 0), (0, 0), (1, 1): without the third one both raters are constant
    cells = Contingency.of(np.array([[0, 0], [0, 0], [1, 1]]), None, 2)
    found = carriers(cells.table, lambda totals: rater_kappa(totals, *cells.cells.T, 2)[np.newaxis, :])
    assert found[0] == 0


def test_nothing_varies_or_one_item():
    assert np.isnan(carriers(of_values([1, 1, 1]), mean)[0])
    assert np.isnan(carriers(of_values([1]), mean)[0])
    assert few_carriers(np.nan) == few_carriers(ENOUGH) == ""


def test_rows_warn_of_few():
    warning = "the interval may cover less than its level: about 4 items carry the variance, see docs/coverage.md"
    items = np.arange(100)
    values = np.where(items < 4, 1.0, 0.0)
    row = rate_row("rate", Place(), items, values, settings=SETTINGS, force_bootstrap=True)
    assert row["note"] == warning
    assert mean_row("mean", Place(), items, values, settings=SETTINGS)["note"] == warning
    judged = np.where(items < 4, 1 - items % 2, items % 2)
    row = kappa_row("kappa", Place(), items, items % 2, judged, n_labels=2, settings=SETTINGS, note="n")
    assert row["note"] == f"{warning}; n"


def test_rows_do_not_warn_of_many_nor_of_closed_forms():
    items = np.arange(100)
    for values in (items % 2, items % 4 == 0):
        assert mean_row("mean", Place(), items, values.astype(float), settings=SETTINGS)["note"] == ""
    assert rate_row("rate", Place(), items, (items < 4).astype(float), settings=SETTINGS)["note"] == ""
