"""Policies for unusable replies: by hand, against a naive twin, under what must change nothing, and at the ends."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.agreement import agreement_table
from judgelab.measure.policies import POLICIES, policy_table
from judgelab.measure.rows import COLUMNS

from .conftest import ALPHA_BETA, make_normalized, pick, random_normalized

A, B, T = ALPHA_BETA
PREFIX = "exact_agreement_unusable_"

#            1     2  3  4  5     6     7     8
HUMAN = [A, A, B, T, T, B, None, A]  # fmt: skip
DIRECT = [A, T, B, A, None, None, A, B]  # right 1 3, wrong 2 4 8, unusable 5 (human TIE) and 6
ORIGINAL = [A, A, B, T, T, B, A, None]  # right 1 to 6, unusable 8
SWAPPED = [None, A, A, T, B, None, None, A]  # right 2 4 8, wrong 3 5, unusable 1 6


def table_of(normalized, **options):
    return policy_table(normalized, labels=ALPHA_BETA, **{"ci_level": 0.95, "resamples": 200, "seed": 7} | options)


def counts(table, pass_, judge="j"):
    return {
        name: (row["numerator"], row["denominator"])
        for name in POLICIES
        for row in [pick(table, PREFIX + name, pass_, judge=judge)]
    }


@pytest.fixture(scope="module")
def table():
    return table_of(make_normalized(HUMAN, DIRECT, ORIGINAL, SWAPPED))


def test_by_hand(table):
    names = ("dropped", "as_wrong", "as_tie", "worst_case", "best_case")
    expected = {
        "direct": ((2, 5), (2, 7), (3, 7), (2, 7), (4, 7)),
        "original": ((6, 6), (6, 7), (6, 7), (6, 7), (7, 7)),
        "both": ((9, 11), (9, 14), (9, 14), (9, 14), (12, 14)),
    }
    for pass_, values in expected.items():
        assert counts(table, pass_) == dict(zip(names, values, strict=True))
    assert len(table) == 15
    assert tuple(table.columns) == COLUMNS
    assert set(table["slice"]) == {"all"}


def test_the_notes_say_what_was_counted_how(table):
    notes = {name: pick(table, PREFIX + name, "direct")["note"] for name in POLICIES}
    assert notes == {
        "dropped": "3 of 8 items left out: 1 without reference, 2 without usable verdict",
        "as_wrong": "2 unusable counted as wrong; 1 of 8 judgments left out: 1 without reference",
        "as_tie": "2 unusable counted as TIE; 1 of 8 judgments left out: 1 without reference",
        "worst_case": "2 unusable each counted as another label than the human one; "
        "1 of 8 judgments left out: 1 without reference",
        "best_case": "2 unusable each counted as the human label; 1 of 8 judgments left out: 1 without reference",
    }


def test_intervals_are_wilsons_where_an_item_has_one_judgment(table):
    for name in POLICIES:
        row = pick(table, PREFIX + name, "direct")
        expected = proportion_confint(int(row["numerator"]), int(row["denominator"]), 0.05, method="wilson")
        assert row["method"] == "Wilson"
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(expected)
        assert pick(table, PREFIX + name, "both")["method"].startswith("percentile bootstrap over items, 200")


def test_equal_to_the_rows_of_the_agreement_table():
    normalized = random_normalized(120, seed=3, missing=0.2)
    options = {"labels": ALPHA_BETA, "ci_level": 0.9, "resamples": 300, "seed": 11}
    agreement, policies = agreement_table(normalized, **options), policy_table(normalized, **options)
    for pass_ in ("direct", "original", "both"):
        for ours, theirs in (("dropped", "exact_agreement"), ("as_wrong", "exact_agreement_unusable_as_wrong")):
            one, other = (pick(t, m, pass_) for t, m in ((policies, PREFIX + ours), (agreement, theirs)))
            pd.testing.assert_series_equal(one.drop("measure"), other.drop("measure"), check_names=False)


LABEL = st.sampled_from([*ALPHA_BETA, None])
ROWS = st.lists(st.tuples(LABEL, LABEL, LABEL, LABEL), min_size=1, max_size=12)


@settings(max_examples=25)
@given(ROWS)
def test_naive_twin(rows):
    human, direct, original, swapped = (list(column) for column in zip(*rows, strict=True))
    table = table_of(make_normalized(human, direct, original, swapped), resamples=5)
    judged = {"direct": direct, "original": original, "both": original + swapped}
    for pass_, given_ in judged.items():
        pairs = [(h, j) for h, j in zip(human * 2, given_, strict=False) if h is not None]
        filled = {
            "dropped": [(h, j) for h, j in pairs if j is not None],
            "as_wrong": [(h, j or "other") for h, j in pairs],
            "as_tie": [(h, j or T) for h, j in pairs],
            "best_case": [(h, j or h) for h, j in pairs],
        }
        filled["worst_case"] = filled["as_wrong"]
        expected = {name: (sum(h == j for h, j in filled[name]), len(filled[name])) for name in POLICIES}
        assert counts(table, pass_) == expected


@settings(max_examples=25)
@given(ROWS, st.lists(st.sampled_from(ALPHA_BETA), min_size=24, max_size=24))
def test_whatever_the_missing_verdicts_were_the_agreement_lies_between_the_ends(rows, guesses):
    human, direct, *_ = (list(column) for column in zip(*rows, strict=True))
    if all(label is None for label in human):
        return
    table = table_of(make_normalized(human, direct), resamples=5)
    completed = [guess if label is None else label for label, guess in zip(direct, guesses, strict=False)]
    full = pick(table_of(make_normalized(human, completed)), f"{PREFIX}dropped", "direct")["estimate"]
    low, high = (pick(table, PREFIX + name, "direct")["estimate"] for name in ("worst_case", "best_case"))
    assert low <= full <= high
    assert low <= pick(table, f"{PREFIX}as_tie", "direct")["estimate"] <= high


def test_order_and_names_of_systems_change_nothing():
    normalized = make_normalized(HUMAN, DIRECT, ORIGINAL, SWAPPED, items=[f"i{n}" for n in range(8)])
    shuffled = normalized.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(table_of(normalized), table_of(shuffled))
    renamed = normalized.replace({A: B, B: A})
    values = ["measure", "pass", "numerator", "denominator", "ci_low", "ci_high"]
    pd.testing.assert_frame_equal(table_of(normalized)[values], table_of(renamed)[values])


def test_another_judge_changes_no_interval():
    one = random_normalized(40, seed=1)
    both = pd.concat([random_normalized(40, seed=2, judge="k"), one], ignore_index=True)
    alone, beside = table_of(one), table_of(both)
    pd.testing.assert_frame_equal(alone, beside[beside["judge"] == "j"].reset_index(drop=True))


def test_nothing_missing_gives_one_number():
    table = table_of(random_normalized(50, seed=4, missing=0.0))
    for pass_ in ("direct", "original", "both"):
        assert table[table["pass"] == pass_]["estimate"].drop_duplicates().size == 1
    assert not table["note"].str.contains("unusable").any()


def test_nothing_usable():
    table = table_of(make_normalized([A, B, T], [None, None, None]))
    assert counts(table, "direct") == {
        "dropped": (0, 0), "as_wrong": (0, 3), "as_tie": (1, 3), "worst_case": (0, 3), "best_case": (3, 3),
    }  # fmt: skip
    row = pick(table, f"{PREFIX}dropped", "direct")
    assert np.isnan(row["estimate"])
    assert row["note"].startswith("undefined: no judgment to count; 3 of 3 items left out: 3 without usable verdict")


def test_no_human_label_is_undefined_under_every_policy():
    table = table_of(make_normalized([None, None], [A, None]))
    assert table["estimate"].isna().all()
    assert table["note"].str.startswith("undefined: no judgment to count").all()


def test_an_unplanned_pass_has_no_rows_and_one_pass_no_row_for_both():
    assert set(table_of(make_normalized([A, B], [A, None]))["pass"]) == {"direct"}
    assert set(table_of(make_normalized([A, B], None, [A, None]))["pass"]) == {"original"}
    assert table_of(make_normalized([], [])).empty


def test_unknown_labels_are_refused():
    with pytest.raises(ValueError, match="labels are not allowed, first 'GAMMA'"):
        table_of(make_normalized([A], ["GAMMA"]))
