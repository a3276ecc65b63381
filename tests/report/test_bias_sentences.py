"""Sentences on biases say what their rows say: found, not found, undecided, too little data, undefined."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from judgelab.measure.rows import frame, row
from judgelab.report import bias_sentences as told
from judgelab.report import label_sentences as labels_told
from judgelab.report.effects import effect_text, meaning

NAN = math.nan
HOSTILE = "<b>j</b> {x}"


def effect(measure, estimate, low, high, n=40, *, note="", **where):
    where = {"judge": "j", "strategy": "pairwise", "pass_": "both"} | where
    undefined = "" if math.isfinite(estimate) else "undefined: no item"
    return row(measure, estimate, interval=(low, high), ci_level=0.95, n_used=n, note=note or undefined, **where)


def p_row(measure, p, n=40, *, note="undefined: no test is possible; 3 left out", **where):
    where = {"judge": "j", "strategy": "pairwise", "pass_": "both"} | where
    return row(measure, p, n_used=n, note="" if math.isfinite(p) else note, **where)


def rate(measure, k, of, low, high, n=40, **where):
    where = {"judge": "j", "strategy": "pairwise", "pass_": "both"} | where
    value = k / of if of else NAN
    note = where.pop("note", "" if of else "undefined: no judgment to count")
    made = {"interval": (low, high), "ci_level": 0.95, "numerator": k, "denominator": of, "n_used": n, "note": note}
    return row(measure, value, **made, **where)


BRANCHES = [
    (0.2, 0.1, 0.3, 40, 0.01, "ABOVE (the whole interval lies above 0): found"),
    (0.2, 0.1, 0.3, 40, NAN, "ABOVE (the whole interval lies above 0): found"),
    (-0.2, -0.3, -0.1, 40, 0.01, "BELOW (the whole interval lies below 0): found"),
    (0.1, -0.1, 0.3, 40, 0.4, "(the interval holds 0), which is no proof that there is none: one of up to 0.300"),
    (-0.1, -0.4, 0.3, 40, NAN, "one of up to 0.400"),
    (0.1, 0.01, 0.3, 40, 0.06, "the interval lies above 0, but the test says p = 0.060: undecided"),
    (0.1, -0.01, 0.3, 40, 0.03, "the interval holds 0, but the test says p = 0.030: undecided"),
    (0.1, 0.01, 0.3, 40, 0.05, "undecided"),  # p must be below 1 − 0.95
    (0.1, NAN, NAN, 40, 0.01, "without an interval nothing is concluded: undecided"),
    (0.2, 0.1, 0.3, 9, 0.01, "with n = 9 items of the 10 that the protocol requires, nothing is concluded: too little"),
    (NAN, NAN, NAN, 0, NAN, "there is no value: too little data"),
]


@pytest.mark.parametrize(("estimate", "low", "high", "n", "p", "says"), BRANCHES)
def test_every_branch_of_an_effect(estimate, low, high, n, p, says):
    table = frame([effect("x", estimate, low, high, n), p_row("x_p", p)])
    said = meaning(table.iloc[0], table.iloc[1], above="ABOVE", below="BELOW", minimum_items=10)
    assert says in said
    shown = effect_text(table.iloc[0], table.iloc[1])
    assert f"n = {n} item" in shown
    assert ("undefined (n = 0 items: no item)" in shown) == (n == 0)
    assert ("no test: no test is possible" in shown) == (math.isnan(p) and n > 0)


def test_an_effect_that_was_not_measured_and_one_that_rounds_to_nothing():
    assert effect_text(None) == "not measured (n = 0 items)"
    assert "too little data" in meaning(None, None, above="", below="")
    assert effect_text(frame([effect("x", 0.0001, -0.1, 0.1)]).iloc[0]).startswith("0.000 (")
    assert effect_text(frame([effect("x", -0.0001, -0.1, 0.1)]).iloc[0]).startswith("0.000 (")


def test_a_caution_in_the_note_is_told():
    careful = effect("x", 0.2, 0.1, 0.3, note="the interval may cover less than its level: about 8 items carry it; q")
    said = meaning(frame([careful]).iloc[0], None, above="ABOVE", below="")
    assert said.endswith("found; caution: the interval may cover less than its level: about 8 items carry it")


def length(gap=(0.2, 0.1, 0.3), p=NAN, **more):
    where = {"judge": "j", "pass_": "both"} | more
    return [
        rate("longer_rate", 30, 40, 0.6, 0.9, **where),
        rate("human_longer_rate", 20, 40, 0.35, 0.65, **where),
        effect("length_error_gap", *gap, **where),
        p_row("length_error_gap_p", p, **where),
    ]


def regression(name, b, p, change=(0.1, 0.05, 0.15), note=""):
    return [
        effect(f"{name}_log_odds", *b, note=note),
        p_row(f"{name}_log_odds_p", p),
        effect(f"{name}_win_change", *(change if math.isfinite(b[0]) else (NAN, NAN, NAN))),
    ]


def test_length_tells_rates_gap_and_regression():
    rows = [
        *length(pass_="original"),
        *length(),
        *length((0.05, -0.1, 0.2), 0.5, pass_="direct", strategy="direct"),
        *regression("length", (0.9, 0.3, 1.5), 0.004),
    ]
    made = told.length_sentences(frame(rows), judge="j")
    assert len(made) == 3, "both passes stand for the comparisons"
    assert made[0].startswith("j, direct: of two answers of unequal length it prefers the longer in 30/40 = 0.750")
    assert "people on the same judgments in 20/40 = 0.500" in made[0]
    assert "+0.050 (95 % interval [-0.100, 0.200], n = 40 items, p = 0.500); no bias shows" in made[0]
    assert "j, pairwise, both passes" in made[1]
    assert "it errs in favour of the longer answer (the whole interval lies above 0): found" in made[1]
    assert "ratio of words +0.900 (95 % interval [0.300, 1.500], n = 40 items, p = 0.004)" in made[2]
    assert "twice as long against equally long: +0.100" in made[2]
    shorter = told.length_sentences(frame(length((-0.2, -0.3, -0.1))), judge="j")[0]
    assert "in favour of the shorter answer" in shorter


def test_length_of_one_pass_and_of_nothing():
    assert "j, pairwise, swapped" in told.length_sentences(frame(length(pass_="swapped")), judge="j")[0]
    undefined = told.length_sentences(frame(length((NAN, NAN, NAN))), judge="j")[0]
    assert "undefined (n = 40 items: no item); there is no value: too little data" in undefined
    assert "n = 0 items" in told.length_sentences(frame([]), judge="j")[0]


@pytest.mark.parametrize(
    ("name", "sign", "says"),
    [
        ("first_position", 1, "j, place: log odds +0.900"),
        ("first_position", 1, "it favours the answer shown first"),
        ("first_position", -1, "it favours the other place"),
        ("length", -1, "it favours the shorter one"),
        ("family", 1, "j, family (observational): log odds +0.900"),
        ("family", 1, "it favours the answer of its own family"),
        ("family", -1, "it favours that of another family"),
        ("human", 1, "it favours the answer that people prefer"),
        ("human", -1, "it favours the one that people do not prefer"),
    ],
)
def test_choices(name, sign, says):
    b = (0.9, 0.3, 1.5) if sign > 0 else (-0.9, -1.5, -0.3)
    (said,) = told.choice_sentences(frame(regression(name, b, 0.004)), judge="j")
    assert says in said
    assert "p = 0.004" in said


def test_choices_undefined_not_shown_and_none():
    reason = "undefined: no finite estimate; the judge always takes the answer shown first (40 verdicts)"
    rows = [*regression("first_position", (NAN, NAN, NAN), NAN, note=reason), *regression("human", (0.1, -1, 1.2), 0.8)]
    made = told.choice_sentences(frame(rows), judge="j")
    assert "undefined (n = 40 items: no finite estimate; the judge always takes the answer shown first" in made[0]
    assert "chance to win" not in made[0]
    assert "no effect shows" in made[1]
    assert "one of up to 1.200 in log odds remains compatible" in made[1]
    caution = regression("family", (0.9, 0.3, 1.5), 0.01, note="stands for everything that distinguishes the systems")
    assert "caution: stands for everything" in told.choice_sentences(frame(caution), judge="j")[0]
    assert "not modelled (n = 0 items)" in told.choice_sentences(frame([]), judge="j")[0]


@pytest.mark.parametrize("case", ["found", "other", "unmeasured", "no family"])
def test_a_family_is_always_observational(case):
    where = {"slice_": "family=own", "judge": "j", "pass_": "both"}
    gap = (0.2, 0.1, 0.3) if case == "found" else (-0.2, -0.3, -0.1)
    rows = [
        rate("family_rate", 30, 40, 0.6, 0.9, **where),
        rate("human_family_rate", 20, 40, 0.35, 0.65, **where),
        effect("family_error_gap", *gap, **where),
        p_row("family_error_gap_p", 0.01, **where),
    ]
    family = {"unmeasured": "else", "no family": None}.get(case, "own")
    made = told.family_sentences(frame(rows), judge="j", family=family)
    says = {
        "found": "j, pairwise, both passes (observational): of two answers of which one is of the family own",
        "other": "it errs in favour of the other systems",
        "unmeasured": "the family else was not measured (n = 0 items)",
        "no family": "it has no family (n = 0 items)",
    }
    assert says[case] in made[0]
    assert "observational" in made[-1]
    assert "not drawn by lot" in made[-1]


def acceptance(positive, negative, n=40, **more):
    where = {"pass_": "direct", "strategy": "direct", "slice_": "accept>=4"} | more
    return [
        rate("true_positive_rate", *positive, n=n, **where),
        rate("true_negative_rate", *negative, n=n, **where),
    ]


HIGH, LOW, ACROSS = (38, 40, 0.83, 0.99), (4, 40, 0.03, 0.23), (20, 40, 0.35, 0.65)


@pytest.mark.parametrize(
    ("positive", "negative", "n", "says"),
    [
        (HIGH, LOW, 40, "it accepts most of either (0.5 is outside both intervals): lenient"),
        (LOW, HIGH, 40, "it rejects most of either (0.5 is outside both intervals): severe"),
        (HIGH, HIGH, 40, "both intervals lie above 0.5: it does not accept nearly everything"),
        (LOW, LOW, 40, "both intervals lie below 0.5: it is wrong on most of either"),
        (HIGH, ACROSS, 40, "an interval reaches across 0.5 or is not known: undecided"),
        (HIGH, (4, 40, NAN, NAN), 40, "undecided"),
        (HIGH, LOW, 9, "with n = 9 items of the 10 that the protocol requires: too little data"),
        (HIGH, (0, 0, NAN, NAN), 40, "without both rates leniency is not known"),
    ],
)
def test_leniency(positive, negative, n, says):
    (said,) = labels_told.leniency_sentences(
        frame(acceptance(positive, negative, n)), judge="j", threshold=4.0, minimum_items=10
    )
    assert says in said
    assert f"it accepts {positive[0]}/{positive[1]}" in said
    assert "acceptance from 4 on" in said


def test_leniency_without_threshold_by_preference_and_without_rows():
    where = {"judge": "j", "strategy": "direct", "pass_": "direct", "slice_": "accept", "n_used": 0}
    why = "undefined: the protocol names no acceptance threshold"
    rows = [row(f"true_{kind}_rate", NAN, note=why, **where) for kind in ("positive", "negative")]
    (said,) = labels_told.leniency_sentences(frame(rows), judge="j", threshold=None)
    assert "the protocol names no acceptance threshold" in said
    preferred = acceptance(HIGH, LOW, slice_="accept>=4, by preference")
    assert "preferences stand in" in labels_told.leniency_sentences(frame(preferred), judge="j", threshold=4)[0]
    assert "n = 0 items" in labels_told.leniency_sentences(frame([]), judge="j", threshold=4)[0]


def test_top_scores_spread_and_mean():
    where = {"pass_": "direct", "strategy": "direct"}
    rows = [
        rate("top_score_rate", 30, 40, 0.6, 0.86, **where),
        rate("human_top_score_rate", 10, 40, 0.14, 0.4, **where),
        effect("score_compression", 0.5, 0.4, 0.7, **where),
        effect("score_range_used", 0.25, NAN, NAN, **where),
        effect("mean_score_gap", 0.8, 0.5, 1.1, **where),
    ]
    top, spread, mean = labels_told.leniency_sentences(frame(rows), judge="j", threshold=4)
    assert "the highest score to 30/40 = 0.750" in top
    assert "people, where both scored, to 10/40 = 0.250" in top
    assert "the difference is not tested" in top
    assert "which use 0.250 of the scale, as a multiple of people's is 0.500" in spread
    assert "it spreads its scores less than people (the whole interval lies below 1.000): found" in spread
    assert "+0.800 (95 % interval [0.500, 1.100], n = 40 items) points" in mean
    assert "it gives more points than people" in mean
    wide = effect("score_compression", 1.1, 0.8, 1.4, **where)
    (said,) = labels_told.leniency_sentences(frame([wide]), judge="j", threshold=4)
    assert "no difference in spread shows (the interval holds 1.000)" in said
    assert "up to 0.400" in said


def test_drift():
    direct = {"pass_": "direct", "strategy": "direct"}
    rows = [
        effect("score_drift", 0.6, 0.2, 1.0, **direct),
        p_row("score_drift_p", 0.004, **direct),
        effect("first_position_drift", -0.3, -0.5, -0.1, pass_="original"),
        p_row("first_position_drift_p", 0.01, pass_="original"),
        effect("first_position_drift", 0.1, -0.2, 0.3, pass_="swapped"),
        p_row("first_position_drift_p", 0.6, pass_="swapped"),
    ]
    scores, original, swapped = told.drift_sentences(frame(rows), judge="j")
    assert "j, direct: its scores change by +0.600" in scores
    assert "they rise (the whole interval lies above 0): found" in scores
    assert "p = 0.010) from the first to the last third of the calls; the first place is preferred less" in original
    assert "no drift shows" in swapped
    assert "n = 0 items" in told.drift_sentences(frame([]), judge="j")[0]


def test_label_use():
    rows = [
        rate("tie_rate", 2, 40, 0.01, 0.17),
        rate("human_tie_rate", 12, 40, 0.18, 0.45),
        effect("tie_rate_gap", -0.25, -0.4, -0.1),
        p_row("tie_rate_gap_p", 0.002),
        rate("most_preferred_share", 38, 40, 0.8, 0.99, slice_="system=A"),
        rate("human_preferred_share", 37, 40, 0.8, 0.98, slice_="system=A", note="prevalence: kappa says little"),
    ]
    ties, share = labels_told.label_use_sentences(frame(rows), judge="j")
    assert "it says tie in 2/40 = 0.050" in ties
    assert "people in 12/40 = 0.300" in ties
    assert "it says tie less often than people (the whole interval lies below 0): found" in ties
    assert "the system that it prefers most often (A) has 38/40 = 0.950" in share
    assert "kappa says little: read AC1 or PABAK" in share
    calm = [rows[4], rate("human_preferred_share", 20, 40, 0.3, 0.6, slice_="system=A"), *rows[:3]]
    assert "kappa" not in labels_told.label_use_sentences(frame(calm), judge="j")[1]
    undefined = [rate(f"{who}_preferred_share", 0, 0, NAN, NAN) for who in ("most", "human")]
    said = labels_told.label_use_sentences(frame([rows[2], *undefined]), judge="j")[0]
    assert "most often has undefined (n = 40 items: no judgment to count)" in said
    assert "n = 0 items" in labels_told.label_use_sentences(frame([]), judge="j")[0]


@pytest.mark.parametrize(
    ("k", "of", "high", "n", "says"),
    [
        (3, 40, 0.2, 40, "3 cases for people to look at: which of the two is wrong is not shown"),
        (1, 40, 0.2, 40, "1 case for people"),
        (0, 40, 0.088, 40, "none was found, up to 0.088 of all remain compatible"),
        (3, 9, 0.7, 9, "fewer than the 10 items that the protocol requires: too little data to say how often"),
        (0, 0, NAN, 0, "undefined (n = 0 items: no judgment to count); nothing is known of them"),
    ],
)
def test_contradictions(k, of, high, n, says):
    low = 0.0 if of else NAN
    rows = [
        rate("reason_code_rate", 40, 40, 0.9, 1.0, pass_="original"),
        rate("verdict_reason_contradiction_rate", k, of, low, high, n=n, pass_="original"),
    ]
    given, found = labels_told.contradiction_sentences(frame(rows), judge="j", minimum_items=10)
    assert "usable verdicts with a known reason code are 40/40" in given
    assert says in found
    assert "n = 0 items" in labels_told.contradiction_sentences(frame([]), judge="j")[0]


def test_a_judge_name_is_text():
    made = told.length_sentences(frame(length(judge=HOSTILE)), judge=HOSTILE)
    assert made[0].startswith(HOSTILE)
    assert "&lt;b&gt;j&lt;/b&gt;" in made._repr_html_()


def test_another_judge_is_not_read():
    other = pd.concat([frame(length(judge="k")), frame(regression("length", (0.9, 0.3, 1.5), 0.004))])
    assert len(told.length_sentences(other, judge="j")) == 1
