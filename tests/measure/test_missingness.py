"""Unusable calls."""

import numpy as np
import pandas as pd
import pytest

from judgelab.measure.intervals import wilson
from judgelab.measure.missingness import unusable_table

from .conftest import pick


def calls():
    direct = pd.DataFrame(
        {
            "strategy": "direct",
            "pass": "direct",
            "item_id": ["1", "1", "2", "2", "3", "3"],
            "category": ["c", "c", "c", "c", "d", "d"],
            "system": ["X", "Y"] * 3,
            "status": ["verdict", "unusable", "verdict", "failed", "missing", "unusable"],
            "reason": [None, "not_json", None, "timeout", None, "not_json"],
        }
    )
    pairwise = pd.DataFrame(
        {
            "strategy": "pairwise",
            "pass": "original",
            "item_id": ["1", "2", "3"],
            "category": ["c", "c", "d"],
            "first": ["X", "Y", "X"],
            "status": ["verdict", "unusable", "verdict"],
            "reason": [None, "no_winner", None],
        }
    )
    return pd.concat([direct, pairwise], ignore_index=True).assign(judge="j")


def test_by_hand():
    table = unusable_table(calls(), ci_level=0.95)
    expected = {
        ("direct", "all"): (4, 6),
        ("direct", "system=X"): (1, 3),
        ("direct", "system=Y"): (3, 3),
        ("direct", "category=c"): (2, 4),
        ("direct", "category=d"): (2, 2),
        ("direct", "reason=missing"): (1, 6),
        ("direct", "reason=not_json"): (2, 6),
        ("direct", "reason=timeout"): (1, 6),
        ("original", "all"): (1, 3),
        ("original", "system=X"): (0, 2),
        ("original", "system=Y"): (1, 1),
        ("original", "category=c"): (1, 2),
        ("original", "category=d"): (0, 1),
        ("original", "reason=no_winner"): (1, 3),
    }
    got = {(r["pass"], r["slice"]): (r["numerator"], r["denominator"]) for r in table.to_dict("records")}
    assert got == expected


def test_several_calls_of_an_item_are_not_counted_as_independent():
    table = unusable_table(calls(), ci_level=0.95)
    line = pick(table, "unusable_rate", "direct")
    assert (line["ci_low"], line["ci_high"]) == wilson(4 / 6 * 3, 3, 0.95)
    assert line["method"] == "Wilson on the number of items (several calls an item)"
    line = pick(table, "unusable_rate", "direct", "system=X")
    assert (line["ci_low"], line["ci_high"]) == wilson(1, 3, 0.95)
    assert line["method"] == "Wilson"


def test_reasons_add_up():
    table = unusable_table(calls(), ci_level=0.95)
    for pass_ in ("direct", "original"):
        reasons = table[(table["pass"] == pass_) & table["slice"].str.startswith("reason=")]
        assert reasons["numerator"].sum() == pick(table, "unusable_rate", pass_)["numerator"]


def test_no_calls_give_no_rows():
    assert len(unusable_table(calls().iloc[:0], ci_level=0.95)) == 0


@pytest.mark.parametrize("status", ["ok", np.nan])
def test_unknown_status_is_refused(status):
    broken = calls()
    broken.loc[0, "status"] = status
    with pytest.raises(ValueError, match="unknown status"):
        unusable_table(broken, ci_level=0.95)
