"""Every branch of the recommendation, from planted rows."""

import numpy as np
import pytest

from judgelab.measure.decision import EVIDENCE_COLUMNS, RECOMMENDATION_COLUMNS, decide
from judgelab.measure.rows import frame, row

THRESHOLDS = {
    "intended_use": "relative_ranking",
    "minimum_items": 50,
    "minimum_agreement": 0.7,
    "minimum_kappa": 0.4,
    "minimum_reviewer_agreement": 0.7,
    "minimum_swap_consistency": 0.8,
    "maximum_first_position_deviation": 0.1,
    "maximum_unusable_rate": 0.05,
    "minimum_coverage": 0.7,
    "meaningful_difference": 0.05,
}
GOOD = {
    "exact_agreement": (0.85, 0.8, 0.9),
    "cohen_kappa": (0.6, 0.5, 0.7),
    "unusable_rate": (0.0, 0.0, 0.03),
    "swap_consistency": (0.9, 0.85, 0.95),
    "first_position_rate": (0.5, 0.45, 0.55),
    "coverage": (0.9, 0.85, 0.95),
}
EVEN = (0.0, -0.04, 0.04)


def line(measure, value, n=100, judge="j", pass_="", strategy="", note=""):
    estimate, low, high = value
    note = note or ("undefined: planted" if np.isnan(estimate) else "")
    interval = (low, high)
    return row(measure, estimate, judge=judge, strategy=strategy, pass_=pass_, interval=interval, n_used=n, note=note)


def tables(direct=None, pairwise=None, difference=EVEN, reviewers=(0.9, 0.8, 0.95), control=(0.5, 0.4, 0.6), n=100):
    """Planted tables of judge j and of the control c; None: that strategy was not run."""
    agreement, position, unusable = [], [], []
    for strategy, pass_, values in (("direct", "direct", direct), ("pairwise", "both", pairwise)):
        if values is None:
            continue
        where = {"strategy": strategy, "pass_": pass_}
        agreement += [line(m, values[m], n, **where) for m in ("exact_agreement", "cohen_kappa")]
        for name in ("original", "swapped") if strategy == "pairwise" else ("direct",):
            unusable.append(line("unusable_rate", values["unusable_rate"], n, strategy=strategy, pass_=name))
        if strategy == "pairwise":
            position += [line(m, values[m], n, **where) for m in ("swap_consistency", "first_position_rate")]
            position.append(line("coverage", values["coverage"], n, strategy=strategy, pass_="aggregated"))
    if direct and pairwise:
        agreement.append(line("exact_agreement_difference", difference, n, strategy="pairwise", pass_="original"))
    if control:
        agreement.append(line("exact_agreement", control, n, judge="c", strategy="pairwise", pass_="both"))
    people = frame([line("exact_agreement", reviewers, judge="")])
    return frame(agreement), frame(position), frame(unusable), people


def decided(planted, provenance="human", controls=("c",), **changed):
    return decide(*planted, thresholds=THRESHOLDS | changed, controls=controls, provenance=provenance)


def advice(*arguments, **options):
    table = decided(*arguments, **options).recommendations
    assert table["judge"].tolist() == ["j"]
    return table.iloc[0]["recommendation"], table.iloc[0]["because"]


def worse(**changed):
    return GOOD | changed


BAD = worse(exact_agreement=(0.5, 0.4, 0.6))


@pytest.mark.parametrize(
    ("direct", "pairwise", "difference", "use", "expected"),
    [
        (BAD, BAD, EVEN, "relative_ranking", "human_review"),
        (GOOD, BAD, EVEN, "relative_ranking", "direct"),
        (GOOD, BAD, EVEN, "absolute_scores", "direct"),
        (GOOD, BAD, EVEN, "both", "direct"),
        (BAD, GOOD, EVEN, "relative_ranking", "pairwise"),
        (BAD, GOOD, EVEN, "absolute_scores", "human_review"),
        (BAD, GOOD, EVEN, "both", "human_review"),
        (GOOD, GOOD, EVEN, "relative_ranking", "pairwise"),
        (GOOD, GOOD, EVEN, "absolute_scores", "direct"),
        (GOOD, GOOD, EVEN, "both", "hybrid"),
        (GOOD, GOOD, (-0.1, -0.15, -0.06), "relative_ranking", "direct"),
        (GOOD, GOOD, (-0.1, -0.15, -0.04), "relative_ranking", "pairwise"),  # not beyond 0.05
        (GOOD, GOOD, (0.1, 0.06, 0.15), "absolute_scores", "direct"),
        (GOOD, GOOD, (-0.1, -0.15, -0.06), "both", "direct"),
        (GOOD, None, EVEN, "relative_ranking", "direct"),
        (None, GOOD, EVEN, "relative_ranking", "pairwise"),
    ],
)
def test_recommendation(direct, pairwise, difference, use, expected):
    assert advice(tables(direct, pairwise, difference), intended_use=use)[0] == expected


def test_simulated_labels_support_no_use_and_say_so():
    wanted, because = advice(tables(GOOD, GOOD), provenance="simulated")
    assert wanted == "human_review"
    assert because.startswith("the labels are simulated, which never supports a use")


@pytest.mark.parametrize(
    ("changed", "criterion", "outcome"),
    [
        ({"exact_agreement": (0.72, 0.65, 0.8)}, "minimum_agreement", "undecided"),
        ({"exact_agreement": (0.6, 0.55, 0.69)}, "minimum_agreement", "not_met"),
        ({"exact_agreement": (0.75, 0.7, 0.8)}, "minimum_agreement", "met"),
        ({"cohen_kappa": (np.nan, np.nan, np.nan)}, "minimum_kappa", "no_data"),
        ({"cohen_kappa": (1.0, np.nan, np.nan)}, "minimum_kappa", "undecided"),
        ({"unusable_rate": (0.04, 0.01, 0.08)}, "maximum_unusable_rate", "undecided"),
        ({"unusable_rate": (0.2, 0.1, 0.3)}, "maximum_unusable_rate", "not_met"),
        ({"swap_consistency": (0.5, 0.4, 0.6)}, "minimum_swap_consistency", "not_met"),
        ({"first_position_rate": (0.5, 0.39, 0.6)}, "maximum_first_position_deviation", "undecided"),
        ({"first_position_rate": (0.3, 0.2, 0.39)}, "maximum_first_position_deviation", "not_met"),
        ({"first_position_rate": (0.8, 0.7, 0.9)}, "maximum_first_position_deviation", "not_met"),
        ({"coverage": (0.7, 0.6, 0.8)}, "minimum_coverage", "undecided"),
    ],
)
def test_outcome_of_a_requirement(changed, criterion, outcome):
    found = decided(tables(None, worse(**changed)))
    lines = found.evidence.set_index("criterion")
    assert lines.loc[criterion, "outcome"] == outcome
    if outcome != "met":
        assert found.recommendations.iloc[0]["recommendation"] == "human_review"
        assert f"{criterion} {outcome.replace('_', ' ')}" in found.recommendations.iloc[0]["because"]


def test_too_few_items():
    assert advice(tables(None, GOOD, n=49))[0] == "human_review"
    assert "minimum_items not met (49, threshold 50)" in advice(tables(None, GOOD, n=49))[1]
    assert advice(tables(None, GOOD, n=50))[0] == "pairwise"


def test_reviewers_must_agree():
    assert "minimum_reviewer_agreement not met" in advice(tables(GOOD, reviewers=(0.5, 0.4, 0.6)))[1]
    nothing = tables(GOOD, reviewers=(np.nan, np.nan, np.nan))
    assert "minimum_reviewer_agreement no data" in advice(nothing)[1]
    assert advice(nothing, minimum_reviewer_agreement=0.0)[0] == "direct"


@pytest.mark.parametrize(
    ("control", "outcome"), [((0.79, 0.7, 0.9), "met"), ((0.8, 0.7, 0.9), "undecided"), ((0.95, 0.9, 1), "not_met")]
)
def test_controls_must_be_beaten(control, outcome):
    lines = decided(tables(GOOD, control=control)).evidence.set_index("criterion")
    assert lines.loc["beats_controls", "outcome"] == outcome
    assert "c (pairwise, both passes)" in lines.loc["beats_controls", "requirement"]


def test_without_controls_nothing_is_supported():
    wanted, because = advice(tables(GOOD, control=None), controls=())
    assert wanted == "human_review"
    assert "beats_controls no data" in because


def test_the_worse_pass_counts_for_unusable():
    agreement, position, unusable, people = tables(None, GOOD)
    unusable.loc[unusable["pass"] == "swapped", ["estimate", "ci_low", "ci_high"]] = [0.3, 0.2, 0.4]
    found = decided((agreement, position, unusable, people)).evidence.set_index("criterion")
    assert (found.loc["maximum_unusable_rate", "outcome"], found.loc["maximum_unusable_rate", "pass"]) == (
        "not_met",
        "swapped",
    )


def test_shape_and_emptiness():
    found = decided(tables(GOOD, GOOD))
    assert tuple(found.evidence.columns) == EVIDENCE_COLUMNS
    assert tuple(found.recommendations.columns) == RECOMMENDATION_COLUMNS
    assert "c" not in found.evidence["judge"].tolist()
    assert len(found.evidence) == 6 + 9
    empty = decide(*[frame([])] * 4, thresholds=THRESHOLDS, controls=(), provenance="none")
    assert len(empty.evidence) == len(empty.recommendations) == 0
