"""Sentences on panels, terms that are held, pairs, judges, disputes, listwise calls and calls saved: every outcome."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from judgelab.measure.consensus import consensus_table
from judgelab.measure.disputes import disputed_items, disputed_pairs, outliers
from judgelab.measure.head_to_head import head_to_head, head_to_head_table
from judgelab.measure.listwise import listwise_table
from judgelab.measure.rows import frame, row
from judgelab.report.comparison_sentences import (
    consensus_sentences,
    controlled_sentences,
    disputed_sentences,
    head_to_head_sentences,
    judges_sentences,
    listwise_sentences,
    spending_sentences,
)

NAN = math.nan
HOSTILE = '<img src=x onerror="alert(1)">'
SETTINGS = {"ci_level": 0.95, "resamples": 100, "seed": 1}


def matches(preferences, *, a="a", b="b", judge="j"):
    """One match an item."""
    table = pd.DataFrame({"item_id": range(len(preferences)), "preference": pd.Series(preferences, dtype=object)})
    return table.assign(judge=judge, category="c", system_x=a, system_y=b)


def value(measure, estimate, low=NAN, high=NAN, *, slice_="all", n=40, note="", judge="panel", **more):
    note = note or ("" if estimate == estimate else "undefined: why")
    where = {"judge": judge, "strategy": "pairwise", "pass_": "both", "slice_": slice_, "n_used": n}
    return row(measure, estimate, interval=(low, high), ci_level=0.95, note=note, **where, **more)


def test_consensus():
    table = pd.concat([matches(["a"] * 4), matches(["a", "a", "TIE", NAN], judge="k")], ignore_index=True)
    made = consensus_sentences(consensus_table(table, thresholds=(1.0, None), **SETTINGS))
    assert [sentence.split(" (95")[0] for sentence in made] == [
        "panel, threshold 1: draws 1/4 = 0.250",
        "panel, without a threshold (each verdict is a match): draws 1/7 = 0.143",
    ]
    assert "; pairs with a result 4/4 = 1.000 (95 % interval" in made[0]
    assert "; pairs with a result 7/8 = 0.875 (95 % interval" in made[1]
    none = consensus_sentences(consensus_table(matches([NAN]), thresholds=(0.75,), **SETTINGS))
    assert none[0].startswith("panel, threshold 0.75: draws undefined (n = 0 items: ")
    assert "not measured" in consensus_sentences(frame([value("draw_rate", 0.5, slice_="threshold=1")]))[0]
    assert consensus_sentences(frame([]))[0] == "No threshold of agreement was looked at (n = 0 items)."


def test_thresholds_that_decide_alike_share_a_sentence():
    """Item 0 is 4 to 0, item 1 is 3 to 2 (0.6): a draw above 0.6, and from 1 to 0.75 nothing else changes."""
    table = pd.concat([matches(["a", "a" if k < 3 else "b"], judge=f"j{k}") for k in range(4)])
    table = pd.concat([table, matches(["a", "b"], judge="j4").iloc[1:]])
    levels = (1.0, 0.9, 0.75, 0.6, 0.5, None)
    made = consensus_sentences(consensus_table(table, thresholds=levels, **SETTINGS))
    assert [sentence.split(" (95")[0] for sentence in made] == [
        "panel, threshold 1, 0.9 and 0.75: draws 1/2 = 0.500",
        "panel, threshold 0.6 and 0.5: draws 0/2 = 0.000",
        "panel, without a threshold (each verdict is a match): draws 0/9 = 0.000",
    ]
    # of several pairs an item the intervals are bootstrapped, each threshold by draws of its own
    more = [matches(["a", "b", "a", "a", "b", "a"], b=b, judge=judge).replace({"preference": {"b": b}})
            for b in "bc" for judge in "jk"]  # fmt: skip
    rows = consensus_table(pd.concat(more), thresholds=(1.0, 0.75, 0.5), **SETTINGS)
    (one,) = consensus_sentences(rows)
    assert one.startswith("panel, threshold 1, 0.75 and 0.5: draws 0/12 = 0.000")
    # what is not known is alike where it is told alike, and judges stay apart
    silent = consensus_table(matches([NAN]), thresholds=(1.0, 0.5, None), **SETTINGS)
    assert [sentence.split(": draws")[0] for sentence in consensus_sentences(silent)] == [
        "panel, threshold 1 and 0.5",
        "panel, without a threshold (each verdict is a match)",
    ]
    other = consensus_sentences(pd.concat([rows, rows.assign(judge="other")], ignore_index=True))
    assert [sentence.split(",")[0] for sentence in other] == ["panel", "other"]
    # equal counts without a threshold are told apart all the same
    single = consensus_sentences(consensus_table(matches(["a", "b"]), thresholds=(0.5, None), **SETTINGS))
    assert len(single) == 2
    # the same draws of another coverage are not the same numbers
    parts = [value("draw_rate", 0.5, slice_=f"threshold={t}", numerator=1, denominator=2) for t in ("1", "0.5")]
    parts += [value("coverage", 0.5, slice_="threshold=1", numerator=2, denominator=4),
              value("coverage", 1.0, slice_="threshold=0.5", numerator=4, denominator=4)]  # fmt: skip
    assert len(consensus_sentences(frame(parts))) == 2


def strengths(**systems):
    return [value("strength_elo", *numbers, slice_=f"system={name}") for name, numbers in systems.items()]


def test_terms_that_are_held():
    plain = frame(strengths(a=(1100.0, 1080.0, 1120.0), b=(1000.0, 900.0, 1100.0), c=(900.0, NAN, NAN)))
    held = frame([
        *strengths(a=(1070.0, 1050.0, 1090.0), b=(1080.0, 980.0, 1180.0), c=(850.0, NAN, NAN)),
        value("first_position_effect", 0.5, 0.2, 0.8),
        value("covariate_effect", -1.0, -3.0, 1.0, slice_="covariate=length"),
    ])  # fmt: skip
    made = controlled_sentences(plain, held)
    assert made[0] == (
        "First place: log odds +0.500 (95 % interval [0.200, 0.800], n = 40 matches); between equals the odds of the "
        "answer shown first are 1.65 to 1; the first place is favoured (the whole interval lies above 0): found."
    )  # e^0.5 = 1.65
    assert "odds of an answer twice as long are 0.50 to 1; no effect shows" in made[1]  # e^(−ln 2)
    assert "up to 3.000 in log odds remains compatible" in made[1]
    # half widths 20 and 100: a moves by 30, b by 80
    assert made[2] == (
        "With that held, 1 of 3 systems move by more than half the width of their interval in Elo points: a (-30.0, "
        "half width 20.0); 1 have no interval to hold that against; 2 change their rank: a (1 to 2), b (2 to 1)."
    )
    still = controlled_sentences(plain, frame([*plain.to_dict("records"), value("first_position_effect", NAN)]))
    assert still[0].startswith(
        "First place: log odds undefined (n = 40 matches: why); there is no value: too little data"
    )
    assert "0 of 3 systems move" in still[1]
    assert still[1].endswith("; 0 change their rank.")


def test_terms_below_0_without_interval_and_none():
    effect = frame(
        [value("first_position_effect", -0.5, -0.8, -0.2), value("covariate_effect", 1.0, slice_="covariate=length")]
    )
    made = controlled_sentences(frame([]), effect)
    assert "the second place is favoured (the whole interval lies below 0): found" in made[0]
    assert "without an interval nothing is concluded: undecided" in made[1]
    assert made[2] == "Fewer than two systems have both strengths (n = 0 systems): too little data."
    assert (
        "Neither the first place nor length was held (n = 0 matches)" in controlled_sentences(frame([]), frame([]))[0]
    )


@pytest.mark.parametrize(
    ("preferences", "says"),
    [
        (["a"] * 9 + ["b"] + ["TIE"] * 10, "j: a won 9, b won 1, 10 tied (n = 20 items), tie rate 10/20 = 0.500; a won "
         "0.900 of the decided items (interval [0.555, 0.997], p = 0.021): a is ahead: supported."),
        (["b"] * 8, "p = 0.008): b is ahead: supported."),
        (["a"] * 6 + ["b"] * 4, "to be treated as tied, which does not show that they are equal; about "),
        (["a"] * 4 + ["b"] * 4, "which does not show that they are equal: undecided."),
        (["a"] * 5, "(interval [0.478, 1.000], p = 0.062): too little data."),
        (["TIE"] * 5, "tie rate 5/5 = 1.000; no item decides between the two: too little data."),
        ([NAN], "j: a won 0, b won 0, 0 tied (n = 0 items); no item decides between the two: too little data."),
    ],
)  # fmt: skip
def test_two_systems(preferences, says):
    table = head_to_head_table(head_to_head(matches(preferences), judge="j", **SETTINGS))
    (made,) = head_to_head_sentences(table)
    assert says in made
    assert "nan" not in made.lower()


def test_many_pairs():
    parts = [matches(["a"] * 9), matches(["a", "b"] * 5, b="c", a="a").replace({"preference": {"b": "c"}}),
             matches(["b"] * 2, a="b", b="c")]  # fmt: skip
    table = head_to_head_table(head_to_head(pd.concat(parts), judge="j", **SETTINGS))
    assert list(head_to_head_sentences(table)) == [
        "j: of 3 pairs of systems (n = 2 to 10 items each; exact binomial test, Holm over the pairs) one is ahead in "
        "1, 1 are to be treated as tied, which does not show that they are equal, and 1 have too little data."
    ]
    same = head_to_head_sentences(pd.concat([table.iloc[:1]] * 2))
    assert "of 2 pairs of systems (n = 9 items each" in same[0]
    assert head_to_head_sentences(table.iloc[:0])[0] == "No two systems met (n = 0 items): too little data."


def test_judges():
    columns = ["judge_a", "judge_b", "spearman", "ci_low", "ci_high", "kendall", "systems"]
    rows = [("j", "k", 0.5, -0.1, 0.8, 0.4, 6), ("j", "l", -0.25, NAN, NAN, -0.2, 6), ("k", "l", *[NAN] * 4, 1)]
    made = judges_sentences(pd.DataFrame(rows, columns=columns))
    assert list(made) == [
        "Judges: of 3 pairs least alike rank j and l (Spearman -0.250, without an interval, Kendall -0.200, n = 6 "
        "systems), most alike j and k (Spearman 0.500 [-0.100, 0.800], Kendall 0.400, n = 6 systems); 1 of 3 pairs "
        "have no correlation."
    ]
    assert "the rankings of j and k (Spearman 0.500" in judges_sentences(pd.DataFrame(rows[:1], columns=columns))[0]
    assert "none of 1 pair has" in judges_sentences(pd.DataFrame(rows[2:], columns=columns))[0]
    assert "n = 0 pairs" in judges_sentences(pd.DataFrame(columns=columns))[0]


def test_disputes():
    table = pd.concat([matches(["a", "b", "a"]), matches(["a", "a", "a"], judge="k"), matches(["b"], judge="k")])
    rated = pd.DataFrame({"group": "g", "system": [*"abcd", HOSTILE], "rating": [1.0, 2, 3, 4, 20]})
    made = disputed_sentences(disputed_pairs(table), disputed_items(table), outliers(rated))
    assert list(made) == [
        "Verdicts differ on 2/3 = 0.667 of the pairs of answers with two or more (n = 3 items).",
        "Most are on item 0 (1 of 1 pairs); on 1 of 2 disputed pairs a judge differs from itself.",
        f"Far from the rest of their group: 1 of 5 ratings: {HOSTILE} in g (strong, z = +11.5).",
    ]
    assert "<img" not in made._repr_html_()
    calm = pd.concat([matches(["a"]), matches(["a"], judge="k")])
    few = disputed_sentences(disputed_pairs(calm), disputed_items(calm), outliers(rated.iloc[:4]))
    assert list(few) == [
        "Verdicts differ on 0/1 = 0.000 of the pairs of answers with two or more (n = 1 item).",
        "Far from the rest of their group: 0 of 4 ratings.",
    ]
    once = matches(["a"])
    none = disputed_sentences(disputed_pairs(once), disputed_items(once), outliers(rated.iloc[:2]))
    assert [sentence.endswith("too little data.") for sentence in none] == [True, True]
    mixed = pd.concat([rated, rated.iloc[:2].assign(group="h")])
    assert disputed_sentences(disputed_pairs(once), disputed_items(once), outliers(mixed))[1].endswith(
        "; 2 could not be looked at."
    )


def calls(*rankings, presented=("a", "b", "c")):
    lines = [
        {"judge": "j", "item_id": item, "category": "c", "order": f"order-{turn}", "ranking": list(ranking) or None,
         "presented": list(presented if turn == 1 else presented[::-1])}
        for item, pair in enumerate(rankings) for turn, ranking in enumerate(pair, start=1)
    ]  # fmt: skip
    return pd.DataFrame(lines, columns=["judge", "item_id", "category", "order", "presented", "ranking"])


def test_listwise():
    pairwise = pd.concat([matches(["a"] * 8), matches(["a"] * 8, b="c"), matches(["b"] * 8, a="b", b="c")])
    made = listwise_sentences(listwise_table(calls(*[("abc", "cba")] * 7, ("bac", "bca")), pairwise, **SETTINGS))
    assert made[0].startswith("j, all answers in one call: unusable calls 0/16 = 0.000 (95 %")
    assert "pairs placed as by its pairwise verdicts 24/48 = 0.500 (95 %" in made[0]
    assert "Kendall of the two rankings -0.833" in made[1]  # seven of −1, one of 1/3
    assert "the same first 1/8 = 0.125" in made[1]
    assert (
        "p = 0.008; what is shown earlier is ranked higher (the whole interval lies above 0): found" in made[2]
    )  # 2 / 2⁸
    assert made[2].endswith("n = 8 items), 0.333 expected by chance.")
    later = listwise_sentences(listwise_table(calls(*[("cba", "abc")] * 7, ("bca", "bac")), pairwise, **SETTINGS))
    assert "what is shown later is ranked higher" in later[2]
    steady = listwise_sentences(listwise_table(calls(*[("abc", "abc")] * 8, ("", "bca")), pairwise, **SETTINGS))
    assert "unusable calls 1/18" in steady[0]
    assert "no effect of the order shows" in steady[2]


def test_listwise_without_much():
    assert "(n = 0 calls)" in listwise_sentences(frame([]))[0]
    one = listwise_sentences(listwise_table(calls(("abc",)), matches([]), **SETTINGS))
    assert "pairs placed as by its pairwise verdicts undefined (n = 0 items: " in one[0]
    assert "all calls had one order: undecided" in one[2]
    unusable = listwise_sentences(listwise_table(calls(("", "")), matches([]), **SETTINGS))
    assert "there is no value: too little data" in unusable[2]
    assert "nan" not in (repr(one) + repr(unusable)).lower()
    assert "not measured" in listwise_sentences(frame([value("unusable_rate", 0.5)]))[1]


def needed(schedule, calls_, low=NAN, high=NAN, *, full=200, n=20, note=""):
    where = {"slice_": f"schedule={schedule}", "n": n, "note": note}
    share = {"numerator": calls_, "denominator": full} if calls_ == calls_ else {}
    return [
        value("calls_to_reach", calls_, low, high, **where),
        value("share_to_reach", calls_ / full, low / full, high / full, **share, **where),
    ]


def test_spending():
    rows = frame([
        *needed("round_robin", 100.0, 80.0, 120.0), *needed("adaptive", 40.0, note="the smallest budget: fewer may do"),
        *needed("merge_sort", NAN, note="undefined: a mean of 0.9 is not reached at the budgets"),
    ])  # fmt: skip
    assert list(spending_sentences(rows, target=0.9)) == [
        "Calls, adaptive: 40 calls of 200 (20 %) reach a mean rank correlation of 0.9 with the ranking from all "
        "matches (no interval, n = 20 repeats); the smallest budget: fewer may do.",
        "Calls, every pair in turn: 100 calls of 200 (50 %) reach a mean rank correlation of 0.9 with the ranking from "
        "all matches (95 % interval [80, 120], n = 20 repeats).",
        "Calls, merge sort: a mean of 0.9 is not reached at the budgets (n = 20 repeats): not supported.",
        "The ranking from all matches contains these: this says how soon it is reached, not how right it is.",
    ]
    none = frame(needed("adaptive", NAN, n=0, note="undefined: no decided match"))
    assert spending_sentences(none)[0] == (
        "Calls: no schedule can be judged (n = 0 repeats): no decided match: too little data."
    )
    assert spending_sentences(frame([]))[0] == "Calls: no schedule was tried (n = 0 repeats)."
    assert "my own: 5 calls reach" in spending_sentences(rows_without_share())[0].replace(" of 200 (2.5 %)", "")


def rows_without_share():
    return frame(needed("my_own", 5.0)[:1])
