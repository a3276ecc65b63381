"""Sentences on the ceiling, categories, corrections and early stopping say what their rows say, in every branch."""

import pandas as pd
import pytest

from judgelab.measure.rows import frame, row
from judgelab.report.agreement_tables import by_slice, defined
from judgelab.report.categories import category_sentences
from judgelab.report.ceiling import ceiling_sentences, replacement_sentences
from judgelab.report.corrections import correction_sentences
from judgelab.report.monitoring import stopping_sentences
from judgelab.report.words import p_text, slice_text

NAN = float("nan")
PAIRWISE = {"judge": "j", "strategy": "pairwise", "pass_": "original"}


def rate(measure, wins, n, low, high, **more):
    values = {"interval": (low, high), "ci_level": 0.95, "numerator": wins, "denominator": n, "n_used": n} | more
    return row(measure, wins / n, **values)


def people(wins=80, n=100):
    return rate("leave_one_out_agreement", wins, n, 0.7, 0.9)


@pytest.mark.parametrize(
    ("estimate", "low", "high", "n", "told"),
    [
        (-0.2, -0.3, -0.1, 100, "0.200 below what a reviewer does"),
        (-0.2, -0.3, -0.1, 100, "worse than a reviewer"),
        (0.1, 0.05, 0.2, 100, "0.100 above what a reviewer does"),
        (0.1, 0.05, 0.2, 100, "better than a reviewer"),
        (0.01, -0.1, 0.1, 100, "no difference is shown"),
        (-0.2, -0.3, -0.1, 20, "fewer than the 50 items"),
        (-0.2, NAN, NAN, 100, "undecided"),
    ],
)
def test_the_gap_to_a_reviewer(estimate, low, high, n, told):
    gap = row("human_gap", estimate, interval=(low, high), ci_level=0.95, n_used=n, **PAIRWISE)
    said = ceiling_sentences(frame([people(), gap]), judge="j", minimum_items=50)
    assert "80/100 = 0.800" in said[0]
    assert told in said[1]
    assert f"n = {n}" in said[1]


def test_without_others_there_is_no_ceiling():
    alone = row("leave_one_out_agreement", NAN, n_used=0, note="undefined: 1 reviewer: there are no others")
    assert "1 reviewer: there are no others" in ceiling_sentences(frame([alone]), judge="j")[0]
    gap = row("human_gap", NAN, n_used=0, note="undefined: no unit", **PAIRWISE)
    assert "no unit" in ceiling_sentences(frame([people(), gap]), judge="j")[1]


@pytest.mark.parametrize(("won", "verdict"), [(2, "it may replace"), (1, "it may not replace")])
def test_replacing_a_reviewer(won, verdict):
    rows = [
        rate("winning_rate", won, 3, NAN, NAN, n_used=100, **PAIRWISE),
        row("average_advantage_probability", 0.8, interval=(0.7, 0.9), ci_level=0.95, n_used=100, **PAIRWISE),
    ]
    (said,) = replacement_sentences(frame(rows), judge="j", epsilon=0.2)
    assert f"{won} of 3 reviewers" in said
    assert verdict in said
    assert "0.800" in said


def test_a_test_that_was_not_possible_says_why():
    missing = row("winning_rate", NAN, n_used=27, note="undefined: 2 reviewers, 3 are needed", **PAIRWISE)
    assert "2 reviewers, 3 are needed" in replacement_sentences(frame([missing]), judge="j", epsilon=0.2)[0]
    assert "was not made" in replacement_sentences(frame([]), judge="j", epsilon=0.2)[0]


@pytest.mark.parametrize(
    ("p_values", "told"),
    [
        ((0.01, 0.4), "billing differ from the others after Holm's correction; the clearest is billing (p = 0.010"),
        ((0.0001, 0.4), "(p < 0.001"),
        ((0.3, 0.4), "none differs from the others after Holm's correction; the clearest is billing (p = 0.300"),
        ((NAN, NAN), "no category can be tested"),
    ],
)
def test_categories(p_values, told):
    rows = []
    for name, p in zip(("billing", "login"), p_values, strict=True):
        where = {"slice_": f"category={name}", "n_used": 20, **PAIRWISE}
        rows.append(row("exact_agreement_gap", -0.2, interval=(-0.4, -0.1), ci_level=0.95, **where))
        rows.append(row("exact_agreement_gap_p_holm", p, note="undefined: none" if p != p else "", **where))
    assert told in category_sentences(frame(rows), judge="j")[0]
    assert "fewer than two categories" in category_sentences(frame([]), judge="j")[0]


def corrected(n_judged, note="", gain=1.5):
    where = {"slice_": "system=ALPHA", **PAIRWISE}
    return frame(
        [
            rate("win_rate_judge", n_judged // 2, n_judged, 0.45, 0.55, **where),
            rate("win_rate_labelled", 60, 100, 0.5, 0.69, **where),
            row("win_rate_rogan_gladen", 0.61, interval=(0.5, 0.7), ci_level=0.95, n_used=n_judged, note=note, **where),
            row("correction_gain_rogan_gladen", gain, n_used=100, **where),
            row("win_rate_ppi", NAN, n_used=n_judged, note="undefined: 3 labels", **where),
        ]
    )


def test_corrections_say_what_they_are_worth():
    (said,) = correction_sentences(corrected(1000), judge="j")
    assert "by the judge 500/1000 = 0.500" in said
    assert "by people 60/100 = 0.600" in said
    assert "0.610 (95 % interval [0.500, 0.700], n = 1000 items), 1.50 times the precision of labels alone" in said
    assert "PPI++) undefined (n = 1000 items: 3 labels)" in said
    (said,) = correction_sentences(corrected(1000, "wider than labels alone: use the labelled rate"), judge="j")
    assert "use the labels alone" in said


def test_where_everything_is_labelled_nothing_is_corrected():
    (said,) = correction_sentences(corrected(100), judge="j")
    assert "every judged item is labelled (n = 100 items)" in said
    assert "nothing to correct" in correction_sentences(frame([]), judge="j")[0]


def looks(*bounds):
    return frame(
        rate("exact_agreement_anytime", 8 * n // 10, n, low, high, slice_=f"first={n}", **PAIRWISE)
        for n, low, high in bounds
    )


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        (((10, 0.4, 1.0), (50, 0.6, 0.9)), "could not have been stopped early"),
        (((10, 0.75, 1.0), (50, 0.76, 0.9)), "above the threshold 0.700 from the look at n = 10 items on"),
        (((10, 0.4, 0.65), (50, 0.4, 0.6)), "below the threshold 0.700 from the look at n = 10 items on"),
        (((10, 0.4, 1.0), (50, 0.76, 0.9)), "at the last look only"),
    ],
)
def test_stopping_early(bounds, told):
    decisive = [
        rate("decisive_win_rate", 18, 26, 0.5, 0.83, slice_="system=ALPHA", **PAIRWISE),
        rate("decisive_win_p", 1, 1000, NAN, NAN, n_used=26, slice_="system=ALPHA", **PAIRWISE),
    ]
    said = stopping_sentences(looks(*bounds), frame(decisive), judge="j", minimum_agreement=0.7)
    assert told in said[0]
    assert "ALPHA is preferred in 18 of 26 preferences that are no tie" in said[1]
    assert "nothing was judged" in stopping_sentences(frame([]), frame([]), judge="j", minimum_agreement=0.7)[0]


def test_slices_side_by_side_and_undefined_rows():
    where = {"slice_": "category=billing", **PAIRWISE}
    rows = frame(
        [rate("exact_agreement", 3, 4, 0.3, 0.95, **where), row("exact_agreement_gap_p", 0.2, n_used=4, **where)]
    )
    (line,) = by_slice(rows).to_dict("records")
    assert line["slice"] == "billing"
    assert line["exact_agreement"].startswith("3/4 = 0.750")
    assert line["exact_agreement_gap_p"] == "p = 0.200"
    assert list(by_slice(rows.head(0)).columns) == ["judge", "pass", "slice"]
    undefined = frame([row("x", NAN, n_used=0, note="undefined: a"), row("y", NAN, n_used=0, note="undefined: b")])
    assert defined(undefined)["measure"].tolist() == ["x"]
    assert defined(pd.concat([undefined, rows]))["measure"].tolist() == ["exact_agreement", "exact_agreement_gap_p"]


def test_words():
    assert p_text(0.0002) == "p < 0.001"
    assert p_text(0.04) == "p = 0.040"
    assert slice_text("accept>=4") == "accepted from 4"
