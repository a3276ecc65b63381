"""The small tables and sentences that say what a study is."""

from __future__ import annotations

import pandas as pd
import pytest

from judgelab.measure.rows import frame, row
from judgelab.report import overview


def rows():
    """Two judges: one with both passes of two measures, one with an undefined value and a pass less."""
    made = [
        row("exact_agreement", 0.75, judge="a", pass_=pass_, interval=(0.5, 0.9), ci_level=0.95, numerator=3,
            denominator=4, n_used=4)
        for pass_ in ("direct", "original")
    ]  # fmt: skip
    made += [row("exact_agreement", float("nan"), judge="b", pass_="direct", n_used=0, note="no verdict at all")]
    return frame(made)


def test_side_by_side_has_a_judge_a_line_and_a_pass_a_column():
    table = overview.side_by_side(rows())
    assert list(table.columns) == ["judge", "direct", "original"]
    assert table.loc[0].tolist() == ["a", "3/4 = 0.750, 95 % [0.500, 0.900]", "3/4 = 0.750, 95 % [0.500, 0.900]"]
    assert "no verdict at all" in table.loc[1, "direct"]  # undefined, with its reason, and never 0
    assert table.loc[1, "original"] == "not planned"


def test_side_by_side_by_pass_has_a_line_for_each():
    table = overview.side_by_side(rows(), by="pass")
    assert table[["judge", "pass"]].to_numpy().tolist() == [["a", "direct"], ["a", "original"], ["b", "direct"]]
    assert list(table.columns) == ["judge", "pass", "exact_agreement"]


def test_score_summary_counts_what_was_planned_and_what_was_scored():
    direct = pd.DataFrame(
        {"judge": ["j"] * 4, "system": ["X", "X", "Y", "Y"], "total": [2.0, 4.0, 3.0, None]}, dtype=object
    )
    table = overview.score_summary(direct).set_index("system")
    assert table.loc["X", ["planned", "scored", "mean", "lowest", "highest"]].tolist() == [2, 2, 3.0, 2.0, 4.0]
    assert table.loc["X", "sd"] == pytest.approx(2**0.5)  # of 2 and 4, with n - 1
    assert table.loc["Y", ["planned", "scored", "mean"]].tolist() == [2, 1, 3.0]


def test_a_study_without_direct_scores_has_an_empty_summary():
    assert list(overview.score_summary(pd.DataFrame(columns=["judge", "system", "total"])))[:2] == ["judge", "system"]


def test_the_reference_table_counts_items_without_a_label():
    reference = pd.DataFrame({"rule": ["majority", "majority", "unresolved"], "human": ["X", "TIE", None]})
    table = overview.reference_table(reference)
    assert table.loc["unresolved", "(none)"] == 1
    assert table["all"].tolist() == [2, 1]


def test_the_verdict_table_counts_letters_and_unusable_replies():
    verdicts = pd.DataFrame(
        {"judge": ["b", "b", "a", "a"], "strategy": ["pairwise"] * 4, "pass": ["original"] * 4,
         "verdict": ["A", None, "B", "B"]}
    )  # fmt: skip
    table = overview.verdict_table(verdicts, ["A", "B", "TIE"])
    assert list(table.index) == [("b", "original"), ("a", "original")]  # judges in the protocol's order
    assert table.loc[("b", "original")].tolist() == [1, 0, 0, 1]
    assert table.loc[("a", "original")].tolist() == [0, 2, 0, 0]


def test_blindness_sentences_count_items_once():
    found = pd.DataFrame({"item_id": ["i1", "i1", "i2"], "term": ["GPT-4", "gpt-4", "Acme"]})
    assert "3 findings in 2 of 9 items (acme, gpt-4)" in overview.blindness_sentences(found, 9)[0]
    assert "no name or phrase" in overview.blindness_sentences(found.iloc[:0], 1)[0]
