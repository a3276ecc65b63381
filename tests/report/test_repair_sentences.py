"""Sentences on repairs: what to buy, what is free, undecided, harmful, unknown; tuning; recalibration."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from judgelab.measure.repairs import buying_order
from judgelab.measure.rows import frame, row
from judgelab.report.repair_sentences import buying_sentences, recalibration_sentences, tuning_sentences

NAN = math.nan


def rows_of_repair(name, gain, low, high, p, *, calls=3.0, cost=NAN, tuning=0, coverage=1.0, whole=0.0, n=40, note=""):
    """What ``repair_table`` says of one repair, as far as sentences read it."""
    where = {"judge": "j", "strategy": "pairwise", "slice_": f"repair={name}", "n_used": n}
    note = note or ("" if math.isfinite(gain) else "undefined: no pair on which both can be compared")
    extra = calls - 1.0
    worth = 1000 * gain / extra if extra > 0 else NAN
    told = {"interval": (low, high), "ci_level": 0.95}
    return [
        row("exact_agreement_gain", gain, note=note, **told, **where),
        row("exact_agreement_gain_p_holm", p, note="" if math.isfinite(p) else "undefined: no pair tells", **where),
        row("right_rate_gain", whole, interval=(whole - 0.1, whole + 0.1), ci_level=0.95, **where),
        row("coverage", coverage, **where),
        row("calls_per_decision", calls, **where),
        row("cost_per_decision", cost, method="total over 40 pairs; USD", note="" if cost == cost else "undefined: no "
            "price", **where),
        row("tuning_calls", tuning, **where),
        row("gain_per_1000_calls", worth, note="" if math.isfinite(worth) else "undefined: free", **where),
    ]  # fmt: skip


def said(*repairs, minimum=10, left_out=None):
    where = {"judge": "j", "strategy": "pairwise", "slice_": "repair=pairwise", "n_used": 40}
    table = frame([row("calls_per_decision", 1.0, **where), *(line for part in repairs for line in part)])
    return buying_sentences(buying_order(table), table, judge="j", minimum_items=minimum, left_out=left_out)


GOOD = (0.2, 0.1, 0.3, 0.004)
UNSURE = (0.05, -0.1, 0.25, 0.4)


def test_what_to_buy_first_and_for_how_much():
    made = said(
        rows_of_repair("few_shot", *GOOD, cost=0.012, tuning=30),
        rows_of_repair("panel", 0.2, 0.1, 0.3, 0.004, calls=6.0),
    )
    assert list(made) == [
        "j: buy first few shot, exact agreement +0.200 (95 % interval [0.100, 0.300], n = 40 items, Holm p = 0.004) "
        "for 2.00 further calls per decision, 100.0 pairs won by 1000 further calls, 0.012 USD per decision in all, "
        "30 calls once for tuning; "
        "then panel, exact agreement +0.200 (95 % interval [0.100, 0.300], n = 40 items, Holm p = 0.004) "
        "for 5.00 further calls per decision, 40.0 pairs won by 1000 further calls, without a price."
    ]  # 1000 · 0.2 / 2 = 100 and 1000 · 0.2 / 5 = 40


def test_free_undecided_harmful_and_unknown():
    made = said(
        rows_of_repair("both_presentations", *GOOD, calls=1.0),
        rows_of_repair("panel", *UNSURE),
        rows_of_repair("reasoning_first", 0.01, -0.2, 0.4, NAN),
        rows_of_repair("verdict_only", -0.2, -0.3, -0.1, 0.01),
        rows_of_repair("few_shot", NAN, NAN, NAN, NAN),
    )
    assert made[0].startswith("j: free, to be taken: both presentations, exact agreement +0.200")
    assert "0.00 further calls per decision, without a price" in made[0]
    assert made[1].startswith("j: undecided, for the gain may be nothing: panel, exact agreement +0.050")
    assert (
        "reasoning first, exact agreement +0.010 (95 % interval [-0.200, 0.400], n = 40 items, no test: no pair tells)"
        in made[1]
    )
    assert made[1].endswith("a gain of up to 0.400 (reasoning first) remains compatible.")
    assert made[2].startswith("j: harmful, not to be taken: verdict only, exact agreement -0.200")
    assert made[3] == (
        "j: too little data to judge few shot, exact agreement undefined (n = 40 items: "
        "no pair on which both can be compared)."
    )
    assert len(made) == 4


def test_nothing_proven_is_said():
    made = said(rows_of_repair("panel", *UNSURE))
    assert made[0] == "j: no repair that costs further calls is proven to gain agreement with people."
    assert "Holm p = 0.400" in made[1]


def test_too_few_items_prove_nothing():
    made = said(rows_of_repair("panel", *GOOD, n=9))
    assert "no repair" in made[0]
    assert "too little data to judge panel, exact agreement +0.200" in made[1]
    assert "n = 9 items" in made[1]
    assert "fewer items than the protocol requires" in made[1]


def test_a_gain_by_deciding_less_is_told_as_such():
    made = said(rows_of_repair("both_presentations", *GOOD, coverage=0.7, whole=-0.05))
    assert (
        "but it decides 0.700 of the pairs, and on all of them the share of right "
        "decisions changes by -0.050 (95 % interval [-0.150, 0.050]" in made[0]
    )
    assert "but it decides" not in said(rows_of_repair("panel", *GOOD))[0]


def test_a_caution_and_unknown_calls():
    note = "the interval may cover less than its level: about 8 items carry the variance"
    made = said(rows_of_repair("panel", *GOOD, note=note))
    assert "caution: the interval may cover less than its level: about 8 items" in made[0]
    assert (
        "calls not known"
        in said([line for line in rows_of_repair("panel", *GOOD) if "calls" not in line["measure"]])[0]
    )


def test_no_repair_and_those_that_were_not_tried():
    left_out = pd.DataFrame({"judge": ["j", "k"], "repair": ["tie_margin", "panel"], "reason": ["no items", "z"]})
    made = said(left_out=left_out)
    assert list(made) == [
        "j: no repair was tried (n = 0 items).",
        "j: not tried, so that nothing is known of them (n = 0 items): tie margin (no items).",
    ]
    assert len(said(left_out=left_out.iloc[:0])) == 1
    empty = frame([])
    assert "no repair was tried" in buying_sentences(buying_order(empty), empty, judge="j")[0]


def choice(**more):
    line = {"judge": "j", "repair": "tie_margin", "what": "tie margin", "value": 0.5, "default": 0.25, "score": 0.8,
            "default_score": 0.7, "n": 30, "rule": "r", "note": ""}  # fmt: skip
    return pd.DataFrame([line | more])


def test_tuning():
    (made,) = tuning_sentences(choice(), judge="j")
    assert made == (
        "j, tie margin: the tie margin is 0.500 instead of the protocol's 0.250, chosen on n = 30 development pairs by "
        "exact agreement (0.800 against 0.700 of the protocol's, no interval: chosen for being the highest there, "
        "it is too good for other items)."
    )
    few = choice(what="threshold", value=0.25, n=1, note="chosen on 1 answers only, fewer than 20")
    (made,) = tuning_sentences(few, judge="j")
    assert (
        "the threshold stays at the protocol's 0.250, chosen on n = 1 development answer by balanced accuracy" in made
    )
    assert made.endswith("; chosen on 1 answers only, fewer than 20.")
    undefined = choice(value=0.25, score=NAN, default_score=NAN, n=0, note="undefined: no development pair has both")
    (made,) = tuning_sentences(undefined, judge="j")
    assert made.endswith("stays at the protocol's 0.250 (n = 0 development pairs): no development pair has both.")
    assert tuning_sentences(choice(note=NAN), judge="j")[0].endswith("other items).")
    assert "nothing was tuned" in tuning_sentences(choice(), judge="k")[0]


def score(measure, reading, value, low, high):
    note = "" if math.isfinite(value) else "undefined: no answer with a label"
    return row(measure, value, judge="j", strategy="direct", pass_="direct", slice_=f"reading={reading}",
               interval=(low, high), ci_level=0.95, n_used=40, note=note)  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "made", "says"),
    [
        ((0.3, 0.26, 0.34), (0.2, 0.15, 0.25), "the intervals do not meet: recalibration is better"),
        ((0.2, 0.15, 0.25), (0.3, 0.26, 0.34), "the intervals do not meet: recalibration is worse"),
        ((0.3, 0.25, 0.34), (0.2, 0.15, 0.25), "the intervals meet: undecided"),
        ((0.3, NAN, NAN), (0.2, 0.15, 0.25), "without both intervals: undecided"),
        ((0.3, 0.25, 0.34), (NAN, NAN, NAN), "the two cannot be compared: too little data"),
    ],
)
def test_recalibration(raw, made, says):
    rows = [score("brier_score", "raw", *raw), score("brier_score", "isotonic", *made)]
    (sentence,) = recalibration_sentences(frame(rows), judge="j")
    assert sentence.startswith("j, Brier score (lower is better): as the judge gave it")
    assert "after isotonic recalibration" in sentence
    assert says in sentence
    assert "n = 40 items" in sentence


def test_recalibration_of_one_reading_and_of_none():
    (sentence,) = recalibration_sentences(
        frame([score("expected_calibration_error", "raw", 0.1, 0.05, 0.2)]), judge="j"
    )
    assert sentence.startswith("j, expected calibration error")
    assert "after isotonic recalibration not measured (n = 0 items)" in sentence
    assert "too little data" in sentence
    assert "were not recalibrated (n = 0 items)" in recalibration_sentences(frame([]), judge="j")[0]
