"""McNemar's test of direct against pairwise: published value, definition, statsmodels, degenerate input."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.agreement import agreement_table
from judgelab.measure.estimates import Settings
from judgelab.measure.paired import mcnemar_rows, paired_table
from judgelab.measure.views import each_judge

from .conftest import ALPHA_BETA, make_normalized, pick, random_normalized

A, B, T = ALPHA_BETA
ONCE = Settings(0.95, 1, 7)


def study_of(both, pairwise, direct, neither, **options):
    """Items right by both, by pairwise alone, by direct alone, by neither."""
    kinds = [(A, A)] * both + [(B, A)] * pairwise + [(A, B)] * direct + [(B, T)] * neither
    return make_normalized([A] * len(kinds), [k[0] for k in kinds], [k[1] for k in kinds], **options)


def rows_of(study, settings=ONCE):
    (codes,) = each_judge(study, ALPHA_BETA)
    share, p = mcnemar_rows(codes, settings)
    assert (share["measure"], p["measure"]) == ("mcnemar_discordant_share", "mcnemar_p")
    return share, p


def test_fagerland_lydersen_and_laake():
    # "The McNemar test for binary matched-pairs data", 2013, table 1: 21 children, 1 and 7 discordant; the exact
    # conditional test gives 0.0703 = 2 (1 + 8) / 256.
    share, p = rows_of(study_of(1, 1, 7, 12))
    assert round(p["estimate"], 4) == 0.0703
    assert (share["numerator"], share["denominator"]) == (1, 8)
    assert (share["ci_low"], share["ci_high"]) == pytest.approx(proportion_confint(1, 8, method="wilson"))
    assert p["note"] == "1 of 8"
    assert p["method"] == "exact McNemar test, two-sided"
    assert np.isnan(p["ci_low"])


@profile(max_examples=60)
@given(st.integers(0, 4), st.integers(0, 12), st.integers(0, 12), st.integers(0, 4))
def test_p_equals_its_definition_and_statsmodels(both, pairwise, direct, neither):
    share, p = rows_of(study_of(both, pairwise, direct, neither + 1))
    n = pairwise + direct
    if n == 0:
        assert np.isnan([share["estimate"], p["estimate"]]).all()
        return
    tail = sum(comb(n, i) for i in range(min(pairwise, direct) + 1)) / 2**n
    assert p["estimate"] == pytest.approx(min(1.0, 2 * tail), abs=1e-12)
    theirs = mcnemar([[both, direct], [pairwise, neither + 1]], exact=True).pvalue
    assert p["estimate"] == pytest.approx(theirs, abs=1e-12)
    assert share["estimate"] == pairwise / n


@given(st.integers(0, 9), st.integers(1, 9))
def test_exchanging_the_strategies_turns_the_share_and_keeps_p(pairwise, direct):
    one, two = rows_of(study_of(2, pairwise, direct, 1)), rows_of(study_of(2, direct, pairwise, 1))
    assert one[0]["estimate"] == pytest.approx(1 - two[0]["estimate"])
    assert one[1]["estimate"] == two[1]["estimate"]


def test_items_without_all_three_labels_are_left_out_and_counted():
    human = [A, A, A, A, None, A]
    direct = [B, A, B, None, A, A]
    original = [A, B, A, A, B, None]
    share, p = rows_of(make_normalized(human, direct, original))
    # pairwise alone: 1 and 3; direct alone: 2
    assert (share["numerator"], share["denominator"]) == (2, 3)
    assert share["note"] == "3 of 6 items left out: 1 without reference, 2 without both verdicts"
    assert p["estimate"] == 1.0  # 2 (1 + 3) / 8


def test_nothing_discordant_is_undefined_and_not_one():
    for study in (study_of(3, 0, 0, 2), make_normalized([None, A], [A, None], [B, B])):
        share, p = rows_of(study)
        assert np.isnan(share["estimate"])
        assert share["note"].startswith("undefined: no judgment to count; no item on which exactly one is right")
        assert np.isnan(p["estimate"])
        assert p["note"] == "undefined: no item on which exactly one is right"


def test_several_pairs_of_an_item_have_a_bootstrap_and_no_test():
    study = study_of(2, 5, 3, 2, items=[i // 2 for i in range(12)])
    share, p = rows_of(study, Settings(0.95, 200, 7))
    assert share["estimate"] == 5 / 8
    assert "bootstrap" in share["method"]
    assert np.isnan(p["estimate"])
    assert p["note"] == "undefined: items have several pairs"


def test_rows_join_both_tables(options):
    study = random_normalized(80, 12)
    tables = [make(study, labels=ALPHA_BETA, **options) for make in (agreement_table, paired_table)]
    for measure in ("mcnemar_discordant_share", "mcnemar_p"):
        here, there = (pick(table, measure, "original") for table in tables)
        assert here["estimate"] == there["estimate"]
        assert here["strategy"] == "pairwise"
    alone = make_normalized([A, B], [A, A])
    assert not agreement_table(alone, labels=ALPHA_BETA, **options)["measure"].str.startswith("mcnemar").any()
