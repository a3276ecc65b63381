"""Acceptance of answers: values by hand, a naive twin, invariances, degenerate input."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from judgelab.measure.acceptance import acceptance_of, preferred_answers, scored_by_people
from judgelab.measure.answers import answers_of

NAN = float("nan")
A, B, C, T = "ALPHA", "BETA", "GAMMA", "TIE"
COLUMNS = ["item_id", "system_x", "system_y", "human", "total_x", "total_y", "human_score_x", "human_score_y"]


def pairs_of(*rows):
    """Rows of COLUMNS; those that a row leaves out are NaN."""
    table = pd.DataFrame([(*row, *[NAN] * (len(COLUMNS) - len(row))) for row in rows], columns=COLUMNS)
    return table.astype({"human": object})


def as_dict(table, column="accepted"):
    return {(row.item_id, row.system): getattr(row, column) for row in table.itertuples()}


def test_by_scores_from_the_threshold_on():
    table = pairs_of(("i", A, B, B, 5.0, 1.0, 4.0, 3.9), ("k", A, B, NAN, 2.0, NAN, NAN, 5.0))
    found = acceptance_of(table, 4)
    assert list(found.columns) == ["item_id", "system", "total", "accepted"]
    accepted, totals = as_dict(found), as_dict(found, "total")
    assert accepted["i", A] == 1
    assert accepted["i", B] == 0
    assert accepted["k", B] == 1
    assert np.isnan(accepted["k", A]), "people scored other answers, so an unscored one is not known"
    assert totals["i", A] == 5
    assert totals["i", B] == 1
    assert np.isnan(totals["k", B])


def test_a_score_that_binary_numbers_miss_reaches_the_threshold():
    # (2 · 4.2 + 4.2) / 3 is 4.199999999999999 or so: within 1e-9 of the threshold it is the threshold.
    table = pairs_of(("i", A, B, NAN, 1.0, 1.0, 4.2 - 4e-10, 4.2 - 4e-9))
    assert acceptance_of(table, 4.2)["accepted"].tolist() == [1.0, 0.0]


def test_three_systems_have_their_scores_averaged_over_the_pairs():
    # B stands in two pairs with 5 and 3: mean 4.
    table = pairs_of(
        ("i", A, B, NAN, 1.0, 2.0, 1.0, 5.0), ("i", B, C, NAN, 2.0, 3.0, 3.0, 3.0), ("i", A, C, NAN, 1.0, 3.0, 1.0, 3.0)
    )
    assert as_dict(acceptance_of(table, 4)) == {("i", A): 0.0, ("i", B): 1.0, ("i", C): 0.0}
    assert as_dict(acceptance_of(table, 4), "total") == {("i", A): 1.0, ("i", B): 2.0, ("i", C): 3.0}


@pytest.mark.parametrize("threshold", [None, 4])
def test_preferences_stand_in_where_people_gave_no_scores(threshold):
    table = pairs_of(("i", A, B, B, 3.0, 4.5), ("k", A, B, T, 3.0, 3.0), ("l", A, B, NAN, 1.0, 2.0))
    assert not scored_by_people(table)
    by = as_dict(acceptance_of(table, threshold))
    assert by["i", A] == 0
    assert by["i", B] == 1
    assert all(np.isnan(by[item, system]) for item in "kl" for system in (A, B)), "a tie and no label say nothing"


def test_without_a_threshold_scores_are_not_read():
    table = pairs_of(("i", A, B, A, 3.0, 4.5, 1.0, 5.0))
    assert scored_by_people(table)
    assert as_dict(acceptance_of(table, None)) == {("i", A): 1.0, ("i", B): 0.0}


def test_some_of_each_is_no_preference():
    table = pairs_of(("i", A, B, A), ("i", A, C, C), ("i", B, C, NAN))
    found = dict(zip(answers_of(table)["system"], preferred_answers(table), strict=True))
    assert np.isnan(found[A])
    assert found[B] == 0
    assert found[C] == 1


def test_foreign_preferences_are_refused():
    table = pairs_of(("i", A, B, C), ("k", A, B, A))
    with pytest.raises(ValueError, match=r"^mine: 1 human preferences are for neither of the pair, first 'GAMMA'$"):
        preferred_answers(table, "mine")
    with pytest.raises(ValueError, match=r"^normalized: 1 human preferences"):
        acceptance_of(table, None)
    with pytest.raises(ValueError, match="threshold is nan; allowed is a finite number or None"):
        acceptance_of(table, NAN)


@pytest.mark.parametrize("threshold", [None, 4.0])
def test_without_rows_and_with_all_missing(threshold):
    none = acceptance_of(pairs_of(), threshold)
    assert list(none.columns) == ["item_id", "system", "total", "accepted"]
    assert none.empty
    assert none["accepted"].dtype == float
    assert none["total"].dtype == float
    found = acceptance_of(pairs_of(("i", A, B)), threshold)
    assert found["accepted"].isna().all()
    assert found["accepted"].dtype == float
    assert found["total"].isna().all()
    assert found["total"].dtype == float


LABELS = st.sampled_from(["x", "y", T, None])


@profile(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ikl"), st.sampled_from([(A, B), (A, C), (B, C)]), LABELS), max_size=8))
def test_naive_twin_and_invariances(drawn):
    """An answer's outcomes, counted one by one; swapping x and y and permuting rows change nothing."""
    unique = {(item, pair): label for item, pair, label in drawn}
    rows = [
        (item, x, y, {"x": x, "y": y, T: T, None: NAN}[label], 1.0, 2.0) for (item, (x, y)), label in unique.items()
    ]
    expected = {}
    for item, x, y, human, *_ in rows:
        for system, other in ((x, y), (y, x)):
            won = {system: 1, other: 0, T: 0.5}.get(human)
            expected.setdefault((item, system), []).append(won)
    found = as_dict(acceptance_of(pairs_of(*rows), None))
    assert set(found) == set(expected)
    for key, outcomes in expected.items():
        known = [won for won in outcomes if won is not None]
        value = 1.0 if known and all(w == 1 for w in known) else 0.0 if known and all(w == 0 for w in known) else NAN
        np.testing.assert_equal(found[key], value)
    mirrored = [(item, y, x, human, two, one) for item, x, y, human, one, two in reversed(rows)]
    np.testing.assert_equal(as_dict(acceptance_of(pairs_of(*mirrored), None)), found)
