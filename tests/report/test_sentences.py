"""Sentences made from rows: every branch, with its n, its interval and its threshold."""

from __future__ import annotations

import math
import re

import pandas as pd
import pytest

from judgelab.measure import rows
from judgelab.report import narrative, seven
from judgelab.report.sentences import Answers, Sentences, compare
from judgelab.report.words import interval_text, number_text, plural
from judgelab.study.protocol import DecisionThresholds

NAN = math.nan
HOSTILE = "<script>alert(1)</script> **bold** [x](http://a.b) {braces} $m$"


def table(measure, estimate, low, high, n, *, k=None, of=None, note="", **where):
    where = {"judge": "glm", "strategy": "pairwise", "pass_": "original"} | where
    return rows.frame(
        [rows.row(measure, estimate, interval=(low, high), ci_level=0.95, numerator=k, denominator=of, n_used=n,
                  note=note or ("" if math.isfinite(estimate) else "undefined: no item"), **where)]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "n", "minimum", "outcome"),
    [
        (0.70, 0.90, 25, 10, "supported"),  # the bound itself is inside
        (0.50, 0.69, 25, 10, "not supported"),
        (0.60, 0.90, 25, 10, "undecided"),
        (NAN, NAN, 25, 10, "undecided"),
        (0.80, 0.90, 9, 10, "too little data"),
        (0.80, 0.90, 0, 0, "too little data"),
    ],
)
def test_a_row_is_compared_by_its_whole_interval(low, high, n, minimum, outcome):
    row = table("exact_agreement", 0.8, low, high, n).iloc[0]
    assert compare(row, low=0.7, minimum_n=minimum) == outcome


def test_no_row_and_no_estimate_are_too_little_data():
    assert compare(None, low=0.7) == "too little data"
    assert compare(table("exact_agreement", NAN, NAN, NAN, 25).iloc[0], low=0.7) == "too little data"


def test_two_sided_bounds():
    row = table("first_position_rate", 0.9, 0.7, 0.97, 25).iloc[0]
    assert compare(row, low=0.4, high=0.6) == "not supported"
    assert compare(row, low=0.4, high=0.8) == "undecided"


@pytest.mark.parametrize(
    ("low", "high", "n", "says"),
    [
        (0.71, 0.94, 25, "the whole interval meets the threshold (at least 0.700): supported"),
        (0.20, 0.60, 25, "the whole interval misses the threshold (at least 0.700): not supported"),
        (0.60, 0.94, 25, "the interval reaches across the threshold (at least 0.700): undecided"),
        (NAN, NAN, 25, "without an interval it cannot be held against the threshold (at least 0.700): undecided"),
        (0.71, 0.94, 9, "with n = 9 items of the 10 that the protocol requires, nothing is concluded"),
        (0.71, 0.94, 1, "with n = 1 item of the 10"),
    ],
)
def test_agreement_says_each_outcome(low, high, n, says):
    made = narrative.agreement_sentences(
        table("exact_agreement", 0.84, low, high, n, k=21, of=25), judge="glm", minimum_agreement=0.7, minimum_items=10
    )
    assert len(made) == 1
    assert "glm, pairwise, original: exact agreement with the reference is 21/25 = 0.840" in made[0]
    assert says in made[0]
    assert f"n = {n} item" in made[0]


def test_an_undefined_agreement_gives_its_reason_and_no_number():
    made = narrative.agreement_sentences(
        table("exact_agreement", NAN, NAN, NAN, 0, k=0, of=0, note="undefined: every call failed"),
        judge="glm", minimum_agreement=0.7,
    )  # fmt: skip
    assert "undefined (n = 0 items: every call failed)" in made[0]
    assert "too little data" in made[0]
    assert "0.000" not in made[0]


def test_a_judge_without_rows_is_said_to_be_unmeasured(agreement):
    made = narrative.agreement_sentences(agreement, judge="nobody", minimum_agreement=0.7)
    assert list(made) == ["nobody: agreement was not measured (n = 0 items): too little data."]


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (0.06, 0.30, "pairwise agrees better, by an amount that matters (the difference that matters is 0.050)"),
        (-0.30, -0.06, "direct agrees better, by an amount that matters"),
        (0.01, 0.30, "pairwise agrees better, but whether by an amount that matters"),
        (-0.30, -0.01, "direct agrees better, but whether by an amount that matters"),
        (-0.04, 0.05, "within the difference that matters (0.050): about equal"),
        (-0.10, 0.20, "the interval holds 0 and reaches beyond the difference that matters (0.050): undecided"),
        (NAN, NAN, "without an interval neither is called better"),
    ],
)
def test_the_difference_of_the_strategies(low, high, says):
    frame = table("exact_agreement_difference", 0.1, low, high, 25)
    made = narrative.difference_sentence(frame, judge="glm", meaningful_difference=0.05, minimum_items=10)
    assert says in made[0]
    assert "n = 25 items" in made[0]


def test_no_difference_without_items():
    few = table("exact_agreement_difference", 0.1, 0.06, 0.2, 9)
    made = narrative.difference_sentence(few, judge="glm", meaningful_difference=0.05, minimum_items=10)
    assert "n = 9 items of the 10 that the protocol requires, neither is called better: too little data" in made[0]
    none = table("exact_agreement_difference", NAN, NAN, NAN, 0)
    assert "too little data" in narrative.difference_sentence(none, judge="glm", meaningful_difference=0.05)[0]
    assert "n = 0 items in common" in narrative.difference_sentence(few, judge="x", meaningful_difference=0.05)[0]


def position_of(position, judge, **more):
    limits = {"minimum_swap_consistency": 0.8, "maximum_first_position_deviation": 0.1, "minimum_coverage": 0.7}
    return narrative.position_sentences(position, judge=judge, minimum_items=10, **(limits | more))


def test_position_of_a_judge_that_always_takes_the_first(position):
    made = " ".join(position_of(position, "small"))
    assert "swap consistency is 3/25 = 0.120" in made
    assert "misses the threshold (at least 0.800): not supported" in made
    assert "the first place is preferred (the interval lies above 0.5)" in made
    assert "misses the threshold (between 0.400 and 0.600): not supported" in made
    assert "the conservative rule (same preference twice, else abstain) decides 3/25 = 0.120" in made


def test_position_of_a_judge_without_preference_for_a_place(position):
    made = " ".join(position_of(position, "longest"))
    assert "no preference for a place shows over all items" in made
    assert "meets the threshold (between 0.400 and 0.600): supported" in made


def test_position_of_one_order_cannot_be_answered():
    frame = table("first_position_rate", 0.1, 0.02, 0.3, 25, k=2, of=25)
    made = list(position_of(frame, "glm"))
    assert made == [
        "glm: whether its decisions survive the swap cannot be answered: n = 0 of 25 items judged in both orders.",
        "glm: in the one order that there is, it picked the answer shown first in 2/25 = 0.100 (95 % interval "
        "[0.020, 0.300], n = 25 items); better answers in that place would look the same.",
    ]


def test_position_without_pairs(position):
    assert "n = 0 pairs" in position_of(position, "nobody")[0]
    undefined = table("first_position_rate", NAN, NAN, NAN, 0, pass_="both")
    assert "undefined (n = 0 items" in position_of(undefined, "glm")[0]


def test_reviewers(reviewers):
    made = narrative.reviewer_sentences(reviewers, minimum_reviewer_agreement=0.7)
    assert "Reviewers r01 and r02 gave the same preference in 22/25 = 0.880" in made[0]
    assert "meets the threshold (at least 0.700): supported" in made[0]
    assert made[1].startswith("Krippendorff's alpha of all reviewers (nominal) is 0.780")
    assert len(made) == 2, "a judge as one more rater is no reviewer"


def test_one_reviewer_is_too_little_data(reviewers):
    made = narrative.reviewer_sentences(reviewers.iloc[:0], minimum_reviewer_agreement=0.7)
    assert "n = 0 items" in made[0]
    assert "at least 0.700" in made[0]


def test_missing_counts_in_singular_and_plural():
    reference = pd.DataFrame({"human": ["ALPHA", None], "rule": ["majority", "unresolved"]})
    excluded = pd.DataFrame({"reason": ["broken_json"]})
    assert list(narrative.missing_sentences(reference, excluded)) == [
        "1 of 2 comparisons has a reference (1 majority and 1 unresolved).",
        "1 of 2 without a reference takes no part in any agreement.",
        "1 line of the items file was left out at reading: 1 broken json.",
    ]
    full = pd.DataFrame({"human": ["ALPHA"] * 3, "rule": ["majority"] * 3})
    assert list(narrative.missing_sentences(full, excluded.iloc[:0])) == [
        "3 of 3 comparisons have a reference (3 majority).",
        "0 lines of the items file were left out at reading.",
    ]
    assert list(narrative.missing_sentences(full.iloc[:0])) == ["0 of 0 comparisons have a reference."]


def test_unusable_with_its_reasons(unusable):
    reason = table("unusable_rate", 0.48, 0.3, 0.67, 25, k=12, of=25, judge="small", slice_="reason=not_json")
    both = pd.concat([unusable, reason])
    made = narrative.unusable_sentences(both, judge="small", maximum_unusable_rate=0.05)
    assert len(made) == 1
    assert "small, pairwise, original: calls without a usable verdict are 12/25 = 0.480" in made[0]
    assert "n = 25 calls" in made[0]
    assert "(reasons: 12 not json)" in made[0]
    assert "misses the threshold (at most 0.050): not supported" in made[0]
    undecided = narrative.unusable_sentences(both, judge="glm", maximum_unusable_rate=0.05)
    assert all("undecided" in sentence for sentence in undecided)
    met = narrative.unusable_sentences(both, judge="glm", maximum_unusable_rate=0.2)
    assert all("meets the threshold (at most 0.200): supported" in sentence for sentence in met)
    assert "n = 0 calls" in narrative.unusable_sentences(both, judge="nobody", maximum_unusable_rate=0.05)[0]


def test_recommendations_count_their_requirements(decision):
    made = narrative.recommendation_sentences(*decision)
    assert made[0] == (
        "glm: pairwise comparison in both orders may be used within the scope of this study. "
        "Reason: pairwise meets every requirement. "
        "Direct meets 0 of 1 requirement; undecided: agreement (n = 25 items). "
        "Pairwise meets 1 of 1 requirement (n = 25 items)."
    )
    assert made[1] == (
        "small: it may not decide on its own, people review every item. Reason: nothing is supported. "
        "Pairwise meets 0 of 1 requirement; not met: agreement (n = 25 items). "
        "Direct meets 0 of 1 requirement; without data: agreement (n = 0 items)."
    )
    none = narrative.recommendation_sentences(decision[0].iloc[:0], decision[1].iloc[:0])
    assert "n = 0 judges" in none[0]


def test_a_threshold_that_demands_nothing_is_told_and_not_counted(decision):
    evidence, recommendations = decision
    waived = (
        evidence[evidence["judge"] == "glm"]
        .tail(1)
        .assign(criterion="minimum_reviewer_agreement", n_used=0, outcome="met", note="the threshold 0 demands nothing")
    )
    made = narrative.recommendation_sentences(pd.concat([evidence.assign(note=""), waived]), recommendations)
    assert "1 of 1 requirement; waived by the protocol: reviewer agreement (n = 25 items)" in made[0]


@pytest.mark.parametrize("use", ["direct", "pairwise", "hybrid", "human_review"])
def test_every_recommendation_has_its_words(use, decision):
    recommendation = pd.DataFrame([("glm", use, "")], columns=["judge", "recommendation", "because"])
    made = narrative.recommendation_sentences(decision[0], recommendation)[0]
    assert "_" not in made
    assert "Reason" not in made


def test_failed_requirements_are_not_said_twice(decision):
    because = "the labels are simulated, which never supports a use; direct: minimum_kappa not met (0.1); pairwise: x"
    recommendation = pd.DataFrame([("x", "human_review", because)], columns=["judge", "recommendation", "because"])
    made = narrative.recommendation_sentences(decision[0], recommendation)[0]
    assert "Reason: the labels are simulated, which never supports a use. No requirement was tested (n = 0" in made


def answers(normalized, agreement, position, unusable, decision, judge="glm", **limits):
    evidence, recommendations = decision
    return seven.seven_answers(
        judge=judge, agreement=agreement, position=position, unusable=unusable, normalized=normalized,
        evidence=evidence, recommendations=recommendations, decision=DecisionThresholds(minimum_items=10, **limits),
    )  # fmt: skip


def test_seven_questions_have_seven_answers(normalized, agreement, position, unusable, decision):
    made = answers(normalized, agreement, position, unusable, decision)
    assert len(made) == 7
    assert "pairwise minus direct exact agreement is 0.160" in made[0][1][0]
    assert "runs from 0.060 to 0.260 and does not hold 0 (n = 25 items, 0 left out)" in made[1][1][0]
    assert "swap consistency is 20/25" in made[2][1][0]
    assert "1 disagreement in 6 items, too few to read a pattern into" in made[3][1][0]
    assert "relative ranking" in made[5][1][0]
    assert made[5][1][1] == "Requirements of direct scoring that glm meets: 0 of 1 (n = 25 items)."
    assert made[6][1][-1].startswith("People decide the 5 pairs (of n = 25) on which glm changes its preference")


@pytest.mark.parametrize(
    ("use", "words"), [("absolute_scores", "pairwise preferences alone cannot"), ("both", "its own requirements")]
)
def test_the_intended_use_is_named(use, words, normalized, agreement, position, unusable, decision):
    made = answers(normalized, agreement, position, unusable, decision, intended_use=use)
    assert words in made[5][1][0]


def test_a_judge_without_any_row_gets_seven_weak_answers(normalized, agreement, position, unusable, decision):
    made = answers(normalized, agreement, position, unusable, decision, judge="nobody")
    assert len(made) == 7
    assert all("n = 0" in " ".join(sentences) for _, sentences in made)


def test_disagreements_are_counted_by_group(normalized):
    groups = seven.disagreement_groups(normalized, judge="glm", source="pair_original")
    found = {(row["aspect"], row["group"]): (row["disagreements"], row["n"]) for _, row in groups.iterrows()}
    assert found["label of people", "tie"] == (1, 2)
    assert found["label of people", "a winner"] == (1, 4)
    assert found["category", "billing"] == (2, 4)
    assert found["length", "people prefer the shorter answer"] == (1, 3)  # i2, i3, i4; wrong on i4
    assert found["system that people prefer", "BETA"] == (1, 2)


def test_a_group_stands_out_only_with_enough_disagreements(normalized):
    many = pd.concat([normalized] * 3, ignore_index=True)  # 6 disagreements in 18 items, all in billing
    evidence = pd.DataFrame(columns=["judge", "strategy", "criterion", "measure", "outcome", "n_used"])
    nothing = (evidence, pd.DataFrame(columns=["judge", "recommendation", "because"]))
    made = answers(many, rows.frame([]), rows.frame([]), rows.frame([]), nothing)
    category = [sentence for sentence in made[3][1] if "by category" in sentence]
    assert any("account 0/6 and billing 6/12; billing stands out" in sentence for sentence in category)
    assert "above its share of the n items by 0.2 or more: counts to look into, not a test" in made[3][1][-1]


def test_hostile_text_is_shown_as_text():
    shown = Sentences([HOSTILE])._repr_html_() + Answers([(HOSTILE, [HOSTILE, HOSTILE])])._repr_html_()
    assert "<script" not in shown
    assert shown.count("&lt;script&gt;alert(1)&lt;/script&gt; **bold** [x](http://a.b) {braces} $m$") == 4
    assert "<a" not in shown


def test_one_sentence_is_a_paragraph_and_more_are_a_list():
    assert Sentences(["One."])._repr_html_() == '<p class="sentence">One.</p>'
    assert Sentences(["One.", "Two."])._repr_html_().count("<li>") == 2
    assert repr(Sentences(["One."]) + Sentences(["Two."])) == "One.\nTwo."


def test_provenance_is_a_box_unless_people_made_the_labels():
    simulated = narrative.provenance_banner("simulated")
    assert simulated.text.startswith("Human labels in this study are simulated")
    assert "border:2px" in simulated._repr_html_()
    human = narrative.provenance_banner("human")
    assert human.text == "Human labels: human."
    assert "border" not in human._repr_html_()
    assert "no human labels" in narrative.provenance_banner("none").text
    assert "<b>" not in narrative.provenance_banner("<b>")._repr_html_()


def test_no_sentence_without_n(agreement, position, unusable, reviewers, normalized, decision):
    made = [s for _, part in answers(normalized, agreement, position, unusable, decision) for s in part]
    made += narrative.reviewer_sentences(reviewers, minimum_reviewer_agreement=0.7)
    without = [s for s in made if not re.search(r"n = \d|\d+ of \d+|in \d+ item", s)]
    fixed = ("It describes the sampling", "The protocol states")
    assert [s for s in without if not s.startswith(fixed)] == []


def test_numbers_and_plurals():
    assert plural(1, "pass", "passes") == "1 pass"
    assert plural(0, "item") == "0 items"
    assert number_text(-0.0001) == "0.000"
    assert number_text(NAN) == "undefined"
    assert interval_text({"ci_low": 0.6534, "ci_high": 0.9361}) == "[0.653, 0.936]"
    assert interval_text({"ci_low": NAN, "ci_high": 0.9}) == "none"
