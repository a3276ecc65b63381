"""Verdicts against their own reasons."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from judgelab.judging.replies import REASON_CODES
from judgelab.measure.contradictions import BETTER_CODES, FAULT_CODES, contradiction_table, contradictions

from .conftest import pick

SCALE = {"acceptance_threshold": None, "minimum": 1, "maximum": 5}


def pairwise(rows, pass_="original", items=None):
    """(verdict, codes) of each call; a verdict of None is unusable."""
    table = pd.DataFrame({"item_id": items or list(range(len(rows)))})
    table["verdict"] = pd.Series([v for v, _ in rows], dtype=object)
    table["reason_codes"] = [c if isinstance(c, str) else json.dumps(c) for _, c in rows]
    table["status"] = ["verdict" if v else "unusable" for v, _ in rows]
    place = {"judge": "j", "strategy": "pairwise", "pass": pass_, "system": None, "first": "X", "second": "Y"}
    return table.assign(**place, total=np.nan, critical_error=None)


def direct(rows, items=None):
    """(total, critical error, codes) of each call."""
    table = pd.DataFrame({"item_id": items or list(range(len(rows)))})
    table["total"] = pd.Series([t for t, _, _ in rows], dtype=float)
    table["critical_error"] = pd.Series([c for _, c, _ in rows], dtype=object)
    table["reason_codes"] = [json.dumps(c) for _, _, c in rows]
    table["status"] = ["verdict" if t is not None else "failed" for t, _, _ in rows]
    place = {"judge": "j", "strategy": "direct", "pass": "direct", "system": "X", "first": None, "second": None}
    return table.assign(**place, verdict=None)


PAIRS = [
    ("A", ["NO_DIFFERENCE"]),  # contradiction
    ("B", ["MORE_CORRECT", "NO_DIFFERENCE"]),  # contradiction
    ("A", ["MORE_CORRECT"]),
    ("TIE", ["NO_DIFFERENCE"]),
    ("TIE", ["NO_DIFFERENCE", "SAFER"]),  # contradiction
    ("TIE", ["SHORTER"]),  # unknown only
    ("B", []),
    (None, ["NO_DIFFERENCE"]),
]
ANSWERS = [
    (4.0, True, ["WRONG_CLAIM"]),  # accepted
    (3.0, True, ["UNSAFE"]),  # accepted: the middle counts
    (2.0, True, ["UNSAFE"]),
    (5.0, False, ["INCOMPLETE"]),  # top with a fault
    (5.0, True, ["UNCLEAR", "CORRECT"]),  # both
    (5.0, False, ["CORRECT"]),
    (2.0, False, ["CORRECT"]),  # low without a fault
    (1.0, None, []),
    (None, None, []),
]


def rates(table):
    return {r["measure"]: (r["numerator"], r["denominator"]) for r in table.to_dict("records")}


def test_codes_are_those_of_the_contract():
    assert {*BETTER_CODES, "NO_DIFFERENCE"} == set(REASON_CODES["pairwise"])
    assert {"CORRECT", *FAULT_CODES} == set(REASON_CODES["direct"])


def test_by_hand(options):
    table = contradiction_table(pairwise(PAIRS), **SCALE, **options)
    assert rates(table) == {"reason_code_rate": (5, 7), "verdict_reason_contradiction_rate": (3, 5)}
    expected = "unknown_reason_codes: 1 ignored; 1 of 8 calls left out: 1 without usable verdict"
    assert (table["note"] == expected).all()
    table = contradiction_table(direct(ANSWERS), **SCALE, **options)
    assert rates(table) == {
        "reason_code_rate": (7, 8),
        "critical_error_accepted_rate": (3, 4),
        "top_score_with_fault_rate": (2, 5),
        "no_fault_low_score_rate": (1, 2),
    }
    line = pick(table, "critical_error_accepted_rate", "direct")
    assert line["method"] == "Wilson; accepted from 3, the middle of the scale"
    assert (line["ci_low"], line["ci_high"]) == pytest.approx(proportion_confint(3, 4, method="wilson"))
    assert (line["n_used"], line["n_excluded"]) == (4, 5)


def test_the_threshold_is_part_of_what_is_accepted(options):
    table = contradiction_table(direct(ANSWERS), **{**SCALE, "acceptance_threshold": 4}, **options)
    line = pick(table, "critical_error_accepted_rate", "direct")
    assert (line["numerator"], line["method"]) == (2, "Wilson; accepted from 4")


def test_weighted_totals_reach_threshold_and_maximum_despite_rounding(options):
    almost = sum(0.1 * 5 for _ in range(10)) / sum([0.1] * 10) - 1e-15
    table = contradiction_table(direct([(almost, False, ["UNSAFE"]), (3 - 4e-16, True, [])]), **SCALE, **options)
    assert pick(table, "top_score_with_fault_rate", "direct")["estimate"] == 1
    assert pick(table, "critical_error_accepted_rate", "direct")["estimate"] == 1


def test_the_calls_are_listed(options):
    verdicts = pd.concat([pairwise(PAIRS), direct(ANSWERS)])
    listed = contradictions(verdicts, **SCALE)
    found = [(r.strategy, r.item_id, r.contradiction) for r in listed.itertuples()]
    assert found == [
        *(("pairwise", item, "verdict_reason_contradiction") for item in (0, 1, 4)),
        *(("direct", item, "critical_error_accepted") for item in (0, 1, 4)),
        *(("direct", item, "top_score_with_fault") for item in (3, 4)),
        ("direct", 6, "no_fault_low_score"),
    ]
    table = contradiction_table(verdicts, **SCALE, **options)
    counted = table[table["measure"] != "reason_code_rate"].set_index("measure")["numerator"].astype(int)
    assert (listed["contradiction"] + "_rate").value_counts().to_dict() == counted.to_dict()
    assert listed["reason_codes"].iloc[1] == '["MORE_CORRECT", "NO_DIFFERENCE"]'
    empty = contradictions(pairwise(PAIRS[2:4]), **SCALE)
    assert empty.empty
    assert list(empty) == list(listed) == list(contradictions(verdicts.iloc[:0], **SCALE))


def test_several_calls_of_an_item_are_resampled_together(options):
    items = [0, 0, 1, 1, 2, 2, 3, 3, 4]
    table = contradiction_table(direct(ANSWERS, items), **SCALE, **options)
    line = pick(table, "top_score_with_fault_rate", "direct")
    assert "bootstrap over items" in line["method"]
    assert (line["n_used"], line["n_excluded"]) == (3, 2)  # faults in the items 0, 0, 1, 1, 2


WORDS = st.sampled_from(["NO_DIFFERENCE", "SAFER", "CLEARER", "no_difference", "x", ""])
ODD = st.recursive(WORDS | st.none() | st.integers(), lambda inner: st.lists(inner, max_size=2), max_leaves=4)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["A", "B", "TIE"]), st.lists(WORDS | ODD, max_size=3)), min_size=1))
def test_equals_a_plain_count_whatever_the_model_writes(rows):
    table = contradiction_table(pairwise(rows), **SCALE, ci_level=0.9, resamples=10, seed=1)
    known, against, unknown = 0, 0, 0
    for verdict, codes in rows:
        good = [c for c in codes if isinstance(c, str) and c in ("NO_DIFFERENCE", "SAFER", "CLEARER")]
        unknown += len(codes) - len(good)
        known += bool(good)
        against += any((c == "NO_DIFFERENCE") != (verdict == "TIE") for c in good)
    assert rates(table)["reason_code_rate"] == (known, len(rows))
    assert rates(table)["verdict_reason_contradiction_rate"] == (against, known)
    assert (f"unknown_reason_codes: {unknown} ignored" in table["note"].iloc[0]) == (unknown > 0)


@pytest.mark.parametrize("text", ["", "no list", '{"a": 1}', "null", '"NO_DIFFERENCE"', "[" * 100_000])
def test_what_is_no_list_gives_no_code(options, text):
    table = contradiction_table(pairwise([("A", text)]), **SCALE, **options)
    assert rates(table) == {"reason_code_rate": (0, 1), "verdict_reason_contradiction_rate": (0, 0)}
    assert pick(table, "verdict_reason_contradiction_rate", "original")["note"].startswith("undefined: ")


def test_missing_reasons_and_lists_are_read(options):
    calls = pairwise([("A", []), ("TIE", []), ("B", [])])
    calls["reason_codes"] = pd.Series([np.nan, ["SAFER"], None], dtype=object)
    assert rates(contradiction_table(calls, **SCALE, **options))["verdict_reason_contradiction_rate"] == (1, 1)


def test_swapped_letters_and_shuffled_rows_change_nothing(options):
    expected = contradiction_table(pairwise(PAIRS), **SCALE, **options)
    turned = [({"A": "B", "B": "A"}.get(v, v), codes[::-1]) for v, codes in PAIRS]
    pd.testing.assert_frame_equal(contradiction_table(pairwise(turned), **SCALE, **options), expected)
    shuffled = pairwise(PAIRS).sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(contradiction_table(shuffled, **SCALE, **options), expected)


@pytest.mark.parametrize("calls", [direct([(None, None, [])] * 3), pairwise([(None, [])])])
def test_nothing_usable_is_undefined(options, calls):
    table = contradiction_table(calls, **SCALE, **options)
    assert table["estimate"].isna().all()
    assert table["note"].str.startswith("undefined: ").all()
    assert contradictions(calls, **SCALE).empty


def test_no_rows(options):
    assert contradiction_table(pairwise(PAIRS).iloc[:0], **SCALE, **options).empty


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"minimum": 5}, "must be below"),
        ({"acceptance_threshold": 6}, "allowed is 1 to 5"),
        ({"acceptance_threshold": float("nan")}, "allowed is 1 to 5"),
    ],
)
def test_refused_scale(options, change, message):
    with pytest.raises(ValueError, match=message):
        contradiction_table(direct(ANSWERS), **{**SCALE, **change}, **options)


def test_refused_calls(options):
    with pytest.raises(ValueError, match="missing column reason_codes"):
        contradictions(direct(ANSWERS).drop(columns="reason_codes"), **SCALE)
    with pytest.raises(ValueError, match="not allowed"):
        contradiction_table(pairwise([("C", [])]), **SCALE, **options)
    with pytest.raises(ValueError, match="unknown strategy"):
        contradictions(direct(ANSWERS).assign(strategy="ranked"), **SCALE)
