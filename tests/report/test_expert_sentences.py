"""Sentences on experts' ranks and on the spot check: every outcome, and what few ranked systems cannot say."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from judgelab.measure.expert_ranks import correlation_rows, expert_correlations
from judgelab.measure.rows import frame, row
from judgelab.measure.spot_check import spot_check_agreement
from judgelab.report.expert_sentences import expert_sentences, spot_check_sentences

NAN = math.nan


def correlations(threshold, mean, low, high, *, p=0.004, n=8, sizes=(5.0, 6.0), sd=0.19):
    where = {"judge": "x", "strategy": "pairwise", "pass_": "both", "slice_": f"threshold={threshold}", "n_used": n}
    told = {"interval": (low, high), "ci_level": 0.95, "note": "" if mean == mean else "undefined: no group to count"}

    def plain(measure, value):
        return row(measure, value, note="" if value == value else "undefined: why", **where)

    return [
        row("spearman_mean", mean, **told, **where), plain("spearman_sd", sd),
        row("kendall_mean", mean, **told, **where), plain("kendall_sd", sd), plain("spearman_p_combined", p),
        plain("ranked_min", sizes[0]),
        plain("ranked_max", sizes[1]),
    ]  # fmt: skip


GOOD = (0.83, 0.7, 0.95)


def said(provenance="human", **tables):
    made = expert_sentences({name: frame(rows) for name, rows in tables.items()}, provenance=provenance)
    assert "nan" not in repr(made).lower()
    return made


def test_the_best_threshold():
    made = said(
        panel=[*correlations("1", 0.5, 0.2, 0.8), *correlations("0.75", *GOOD), *correlations("none", NAN, NAN, NAN)]
    )
    assert made[0] == (
        "panel, threshold 0.75, the best of 3 thresholds on these groups and so too good for others: Spearman 0.830 "
        "(95 % interval [0.700, 0.950], n = 8 groups) ± 0.190 over groups; Kendall 0.830 (95 % interval [0.700, "
        "0.950], n = 8 groups) ± 0.190 over groups, 5 to 6 systems ranked in each; combined p = 0.004; it ranks as the "
        "experts do, more than by chance (the whole interval lies above 0): found."
    )
    # 2 of 5! orders
    assert made[1] == (
        "Groups of fewer than 6 ranked systems allow little: of 5 even a perfect order has p = 0.017 (2 of 120 "
        "orders), so that only all groups together can show a relation."
    )
    assert len(made) == 2


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (correlations("none", *GOOD, sizes=(7.0, 7.0)), "panel, without a threshold: Spearman 0.830"),
        (correlations("none", *GOOD, sizes=(7.0, 7.0)), "7 systems ranked in each"),
        (correlations("1", 0.1, -0.2, 0.4, p=0.4), "no relation with the experts' ranks shows (the interval holds 0)"),
        (correlations("1", -0.5, -0.8, -0.2), "it ranks against the experts (the whole interval lies below 0): found"),
        (correlations("1", *GOOD, p=0.2), "the interval lies above 0, but the test says p = 0.200: undecided"),
        (correlations("1", 1.0, NAN, NAN, n=1, sd=NAN), "without an interval nothing is concluded: undecided"),
        (correlations("1", *GOOD, p=NAN), "no test: why"),
        (correlations("1", NAN, NAN, NAN, n=0, p=NAN, sizes=(NAN, NAN), sd=NAN),
         "panel: its correlation with experts is undefined (n = 0 groups: no group to count): too little data."),
    ],
)  # fmt: skip
def test_outcomes(rows, says):
    assert says in said(panel=rows)[0]


def test_large_groups_need_no_caution():
    assert len(said(panel=correlations("1", *GOOD, sizes=(6.0, 9.0)))) == 1


@pytest.mark.parametrize(
    ("single", "says"),
    [
        ((0.4, 0.2, 0.6), "2 of 2 are below the panel; the intervals do not meet: the panel is better."),
        ((0.99, 0.97, 1.0), "1 of 2 are below the panel; the intervals do not meet: the panel is worse."),
        ((0.8, 0.6, 0.9), "2 of 2 are below the panel; the intervals meet: undecided."),
        ((0.8, NAN, NAN), "without both intervals: undecided."),
    ],
)
def test_the_panel_beside_single_judges(single, says):
    made = said(panel=correlations("1", *GOOD), j=correlations("1", 0.1, 0.0, 0.2), k=correlations("1", *single))
    assert made[3].startswith("panel beside single judges, by mean Spearman: 0.830 [0.700, 0.950] against ")
    assert made[3].endswith(says)
    assert "of the best one, k;" in made[3]


def test_who_counts_as_a_single_judge():
    rows = frame(correlations("1", *GOOD))
    tables = {"everyone": rows, "without j": rows, "j": rows, "empty": frame([])}
    made = expert_sentences(tables, provenance="human", panel="everyone", judges=["j"])
    assert "everyone beside single judges" in repr(made)
    assert "of the best one, j; 0 of 1" in repr(made)
    assert "empty: it was not compared with experts (n = 0 groups): too little data." in made
    assert "beside single judges" not in repr(said(j=correlations("1", *GOOD)))
    undefined = correlations("1", NAN, NAN, NAN, n=0)
    assert "beside single judges" not in repr(said(panel=undefined, j=correlations("1", *GOOD)))


def test_where_the_ranks_come_from_and_no_experts():
    assert said("simulated", panel=correlations("1", *GOOD))[0].startswith("The experts' ranks are simulated")
    assert "no person has ranked them" in said("known_by_construction", panel=correlations("1", *GOOD))[0]
    for tables in ({}, {"panel": []}):
        assert list(said("none", **tables)) == [
            "There are no experts' ranks (n = 0 groups): how far a ranking agrees with them is not known."
        ]


def test_a_hostile_name():
    name = '<img src=x onerror="alert(1)">'
    assert "<img" not in said(**{name: correlations("1", *GOOD)})._repr_html_()


def test_measured_rows():
    systems = list("ABCDE")
    ranks = pd.DataFrame([(g, "r", s, i + 1) for g in range(6) for i, s in enumerate(systems)],
                         columns=["group", "reviewer_id", "system", "rank"])  # fmt: skip
    ratings = ranks.assign(rating=-ranks["rank"])[["group", "system", "rating"]]
    rows = correlation_rows(expert_correlations(ratings, ranks), slice_="threshold=0.75", ci_level=0.95, resamples=50,
                            seed=1, judge="panel")  # fmt: skip
    assert "Spearman 1.000" in expert_sentences({"panel": rows}, provenance="human")[0]
    assert "5 systems ranked in each; combined p < 0.001" in expert_sentences({"panel": rows}, provenance="human")[0]


def checks(right, n, judge="j"):
    """A key of n verdicts and labels that agree with the first ``right``; a label of None is missing."""
    names = [f"{judge}{i}" for i in range(n)]
    key = pd.DataFrame({"check_id": names, "item_id": range(n), "preference": "A", "judge": judge, "category": "c"})
    key = key.assign(system_x="A", system_y="B", **{"pass": "original"})
    given = [NAN] * n if right is None else ["A"] * right + ["B"] * (n - right)
    return key, pd.DataFrame({"check_id": names, "preference": pd.Series(given, dtype=object)})


@pytest.mark.parametrize(
    ("right", "says"),
    [
        (25, "agrees with 25/25 = 1.000 (95 % interval [0.867, 1.000], n = 25 verdicts); the interval lies above the "
         "threshold of 0.8: supported."),
        (20, "the interval lies around the threshold of 0.8: undecided."),
        (5, "the interval lies below the threshold of 0.8: not supported."),
        (None, "Spot check of 25 verdicts: the agreement is undefined (n = 0 verdicts: "),
    ],
)  # fmt: skip
def test_spot_check(right, says):
    rows = spot_check_agreement(*checks(right, 25), ci_level=0.95, judge="j")
    made = spot_check_sentences(rows, size=25, threshold=0.8)
    assert says in made[0]
    assert len(made) == 1
    assert made[0].endswith("too little data.") == (right is None)


def test_spot_check_of_several_judges_and_before_anybody_judged():
    both = [pd.concat(parts) for parts in zip(checks(5, 10), checks(9, 10, "k"), strict=True)]
    made = spot_check_sentences(spot_check_agreement(*both, ci_level=0.95, judge="panel"), size=25, threshold=0.8)
    assert made[0].startswith(
        "Spot check: a person who judged 20 of 25 verdicts again, blind, agrees with 14/20 = 0.700"
    )
    assert made[1].startswith("Spot check by judge, lowest first: j 5/10 = 0.500 (95 %")
    assert "), k 9/10 = 0.900" in made[1]
    for rows in (None, frame([])):
        assert spot_check_sentences(rows, size=25, threshold=0.8, sheet="runs/x/sheet.csv")[0] == (
            "Spot check: no person has judged any of the 25 verdicts again (n = 0 verdicts); the blind sheet is "
            "runs/x/sheet.csv: too little data."
        )
