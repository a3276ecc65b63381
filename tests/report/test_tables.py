"""Tables for people, the checklist and the audit sample."""

from __future__ import annotations

import pandas as pd
import pytest

from judgelab.measure import rows
from judgelab.report.audit import KINDS, audit_sample
from judgelab.report.checklist import POINTS, checklist
from judgelab.report.publish import headline_table
from judgelab.report.tables_for_people import headline, result_table


def test_headline_never_loses_the_denominator(agreement):
    shown = headline(agreement[(agreement["judge"] == "glm") & (agreement["slice"] == "all")])
    first = shown.iloc[0]
    assert first["estimate"] == "17/25 = 0.680"
    assert first["95 % interval"] == "[0.520, 0.820]"
    assert first["n"] == "25"
    assert "slice" not in shown
    assert list(shown.columns[:2]) == ["judge", "strategy"]


def test_headline_says_why_a_value_is_undefined(agreement):
    shown = headline(agreement[agreement["judge"] == "constant"], keys=["measure"])
    assert list(shown["estimate"]) == ["undefined (0/0): no valid pair", "undefined (n = 0): no jointly valid item"]
    assert list(shown["95 % interval"]) == ["none", "none"]


def test_headline_says_how_many_rows_are_left_out(agreement):
    shown = headline(agreement, limit=3)
    assert len(shown) == 4
    assert shown.iloc[3, 0] == f"… {len(agreement) - 3} more rows"


def test_headline_counts_what_was_left_out_of_n():
    row = rows.row("tie_rate", 0.5, numerator=1, denominator=2, n_used=2, n_excluded=3, slice_="category=billing")
    shown = headline(rows.frame([row]))
    assert shown.iloc[0].to_dict() == {
        "slice": "billing", "measure": "tie_rate", "estimate": "1/2 = 0.500", "interval": "none", "n": "2 (3 left out)",
    }  # fmt: skip


def test_headline_of_nothing_is_an_empty_table():
    assert len(headline(rows.frame([]))) == 0


def test_result_table_is_the_protocols(agreement, position, unusable):
    shown = result_table(agreement, position, unusable, judge="glm")
    assert list(shown.index) == [
        "Valid items", "Exact human agreement", "Cohen's kappa", "Tie rate", "Invalid-output rate",
        "Invalid-output rate, swapped pass", "Swap consistency",
    ]  # fmt: skip
    assert shown.loc["Valid items", "direct"] == "25 of 25"
    assert shown.loc["Exact human agreement", "pairwise"] == "21/25 = 0.840, 95 % [0.680, 0.980]"
    assert shown.loc["Cohen's kappa", "direct"] == "0.480, 95 % [0.280, 0.680], n = 25"
    assert shown.loc["Invalid-output rate", "direct"].startswith("0/50 = 0.000")
    assert shown.loc["Invalid-output rate", "pairwise"].startswith("1/25 = 0.040")
    assert shown.loc["Invalid-output rate, swapped pass", "pairwise"].startswith("0/25 = 0.000")
    assert shown.loc["Swap consistency", "direct"] == "not the primary test"
    assert shown.loc["Swap consistency", "pairwise"].startswith("20/25 = 0.800")


def test_result_table_of_an_unknown_judge_measures_nothing(agreement, position, unusable):
    shown = result_table(agreement, position, unusable, judge="nobody")
    assert set(shown["pairwise"]) == {"not measured"}


def test_headline_table_has_a_row_a_judge(agreement, position):
    shown = headline_table(agreement, position)
    assert list(shown["judge"]) == ["glm", "small", "longest", "constant"]
    assert shown.iloc[0]["pairwise agreement, original order"].startswith("21/25 = 0.840")
    assert shown.iloc[0]["first-position rate"].startswith("23/50 = 0.460")
    assert shown.iloc[3]["swap consistency"] == "not measured"
    assert headline_table(None, None).empty


LIMITS = {"criteria": ["correctness"], "scale": (1, 5), "provenance": "human"}


@pytest.fixture
def judged(verdicts):
    """Verdicts with a table of unusable calls and preferences that fit them."""
    groups = verdicts.groupby(["judge", "strategy", "pass"])
    counted = [
        rows.row("unusable_rate", float((own["status"] != "verdict").mean()), judge=judge, strategy=strategy,
                 pass_=pass_, slice_=slice_, numerator=int((own["status"] != "verdict").sum()), denominator=len(own),
                 n_used=len(own))
        for (judge, strategy, pass_), own in groups
        for slice_ in ("all", "system=ALPHA")
    ]  # fmt: skip
    preferences = pd.DataFrame(
        [{"judge": "glm", "item_id": f"i{k}", "system_x": "ALPHA", "system_y": "BETA", "pair_original": "ALPHA",
          "pair_swapped": "BETA"} for k in range(1, 5)]
    )  # fmt: skip
    return verdicts, preferences, rows.frame(counted)


def status(table, point):
    return table.set_index("point").loc[point, "status"]


def test_the_checklist_has_ten_points_with_evidence(judged):
    made = checklist(*judged, **LIMITS)
    assert tuple(made["point"]) == POINTS
    assert list(made.index) == list(range(1, 11))
    assert set(made["status"]) <= {"pass", "attention", "fail", "not applicable"}
    assert made["evidence"].str.contains(r"\d|not run|No table").all()
    for point in ("Coverage", "Uniqueness", "Schema", "Identity mapping", "Missingness"):
        assert status(made, point) == "pass", point


def test_what_the_data_cannot_show_is_never_a_pass(judged):
    made = checklist(*judged, **LIMITS)
    for point in ("Swap integrity", "Blindness", "Reproducibility", "Manual audit"):
        assert status(made, point) == "attention", point
    labels = pd.DataFrame({"reviewer_id": ["r01", "r02", "adj"], "is_adjudicated": [False, False, True]})
    assert status(checklist(*judged, **LIMITS, labels=labels), "Human independence") == "attention"
    simulated = checklist(*judged, **(LIMITS | {"provenance": "simulated"}), labels=labels)
    assert status(simulated, "Human independence") == "not applicable"


def test_a_missing_call_fails_coverage(judged):
    verdicts, normalized, unusable = judged
    verdicts.loc[2, "status"] = "missing"
    made = checklist(verdicts, normalized, unusable, **LIMITS)
    assert status(made, "Coverage") == "fail"
    assert made.loc[1, "evidence"].startswith(f"1 of {len(verdicts)} planned calls has no record; first: glm, direct")


def test_a_repeated_record_fails_uniqueness(judged):
    verdicts, normalized, unusable = judged
    made = checklist(pd.concat([verdicts, verdicts.iloc[:1]]), normalized, unusable, **LIMITS)
    assert status(made, "Uniqueness") == "fail"


@pytest.mark.parametrize(("column", "value"), [("verdict", "ALPHA"), ("total", 5.5)])
def test_a_value_outside_its_domain_fails_schema(judged, column, value):
    verdicts, normalized, unusable = judged
    strategy = "pairwise" if column == "verdict" else "direct"
    place = verdicts.index[(verdicts["strategy"] == strategy) & (verdicts["judge"] == "glm")][0]
    verdicts.loc[place, column] = value
    assert status(checklist(verdicts, normalized, unusable, **LIMITS), "Schema") == "fail"


def test_a_score_outside_the_scale_fails_schema(judged):
    verdicts, normalized, unusable = judged
    verdicts["score_correctness"] = 3
    assert status(checklist(verdicts, normalized, unusable, **LIMITS), "Schema") == "pass"
    verdicts.loc[0, "score_correctness"] = 6
    assert status(checklist(verdicts, normalized, unusable, **LIMITS), "Schema") == "fail"


def test_a_letter_mapped_to_the_wrong_system_fails(judged):
    verdicts, normalized, unusable = judged
    normalized.loc[0, "pair_swapped"] = "ALPHA"
    made = checklist(verdicts, normalized, unusable, **LIMITS)
    assert status(made, "Identity mapping") == "fail"
    assert made.loc[4, "evidence"].startswith("1 of 8 letters was mapped")


def test_swap_integrity_compares_order_and_prompts(judged):
    verdicts, normalized, unusable = judged
    hashed = verdicts.assign(frame_sha256="abc")
    assert status(checklist(hashed, normalized, unusable, **LIMITS), "Swap integrity") == "pass"
    swapped = hashed.index[hashed["pass"] == "swapped"][0]
    hashed.loc[swapped, "frame_sha256"] = "abd"
    assert status(checklist(hashed, normalized, unusable, **LIMITS), "Swap integrity") == "fail"
    verdicts.loc[swapped, ["first", "second"]] = ["ALPHA", "BETA"]
    assert status(checklist(verdicts, normalized, unusable, **LIMITS), "Swap integrity") == "fail"


def test_findings_of_the_scan_ask_for_attention(judged):
    found = pd.DataFrame({"item_id": ["i1", "i1"], "kind": ["model_name"] * 2, "term": ["Claude", "GPT-4"]})
    made = checklist(*judged, **LIMITS, blindness=found)
    assert made.loc[6, "evidence"].startswith("2 places in 1 item may give a system away: Claude and GPT-4.")
    assert status(checklist(*judged, **LIMITS, blindness=found.iloc[:0]), "Blindness") == "pass"


def test_missingness_is_checked_against_the_records(judged):
    verdicts, normalized, unusable = judged
    assert status(checklist(verdicts, normalized, unusable.iloc[2:], **LIMITS), "Missingness") == "fail"
    wrong = unusable.assign(numerator=0)
    assert (
        "count 0 unusable calls, the records hold 8"
        in checklist(verdicts, normalized, wrong, **LIMITS).loc[8, "evidence"]
    )


def test_reproducibility_names_the_tables_that_differ(judged):
    made = checklist(*judged, **LIMITS, recomputed={"agreement": True, "position": False})
    assert made.loc[9, "evidence"] == "1 of 2 tables computed again differ: position."
    assert status(checklist(*judged, **LIMITS, recomputed={"agreement": True}), "Reproducibility") == "pass"


def test_the_checklist_of_an_empty_run_passes_nothing(judged):
    verdicts, normalized, unusable = (table.iloc[:0] for table in judged)
    made = checklist(verdicts, normalized, unusable, **LIMITS)
    assert "pass" not in set(made["status"])


ITEMS = pd.DataFrame(
    {"item_id": [f"i{k}" for k in range(1, 7)], "task": ["<b>Task</b> & {x}"] * 6, "answer_alpha": ["a" * 500] * 6,
     "answer_beta": ["short\n<script>x</script>"] * 6}
)  # fmt: skip


def test_the_audit_draws_every_kind(verdicts, normalized):
    drawn = audit_sample(verdicts, normalized, ITEMS, n=2, seed=1)
    assert list(dict.fromkeys(drawn["kind"])) == list(KINDS)
    assert (drawn.groupby(["kind", "judge"]).size() <= 2).all()
    reversal = drawn[drawn["kind"] == "reversal"].iloc[0]
    assert (reversal["item_id"], reversal["detail"]) == ("i2", "ALPHA first, BETA after the swap")
    extreme = drawn[drawn["kind"] == "extreme score difference"].iloc[0]
    assert (extreme["item_id"], extreme["detail"]) == ("i1", "ALPHA 4.60, BETA 3.00")


def test_audit_excerpts_are_short_and_escaped_when_shown(verdicts, normalized):
    drawn = audit_sample(verdicts, normalized, ITEMS, n=1, seed=1)
    first = drawn.iloc[0]
    assert first["task"] == "<b>Task</b> & {x}"
    assert len(first["answer_x"]) == 100
    shown = drawn._repr_html_()
    assert "short &lt;script&gt;x&lt;/script&gt;" in shown
    assert "<script" not in shown


def test_the_audit_does_not_depend_on_the_order_of_rows(verdicts, normalized):
    once = audit_sample(verdicts, normalized, ITEMS, n=1, seed=7)
    shuffled = audit_sample(verdicts.sample(frac=1, random_state=0), normalized.iloc[::-1], ITEMS, n=1, seed=7)
    pd.testing.assert_frame_equal(once, shuffled)


def test_the_audit_reads_answers_by_system_name(verdicts, normalized):
    items = pd.DataFrame({"item_id": ["i1"], "task": ["t"], "answers": [{"ALPHA": "from alpha", "BETA": "from beta"}]})
    drawn = audit_sample(verdicts, normalized, items, n=6, seed=1)
    own = drawn[(drawn["item_id"] == "i1") & (drawn["kind"] == "agreement")].iloc[0]
    assert (own["answer_x"], own["answer_y"]) == ("from alpha", "from beta")


def test_the_audit_of_nothing_is_empty_and_n_is_checked(verdicts, normalized):
    empty = audit_sample(verdicts.iloc[:0], normalized.iloc[:0], ITEMS, n=1, seed=1)
    assert empty.empty
    assert "answer_x" in empty
    with pytest.raises(ValueError, match="at least 1"):
        audit_sample(verdicts, normalized, ITEMS, n=0, seed=1)
