"""Sentences on policies: every branch, from tables that the statistic itself made."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from judgelab.measure.policies import policy_table
from judgelab.report import plots
from judgelab.report.policies import policy_sentences

A, B, T = LABELS = ("ALPHA", "BETA", "TIE")


def table_of(human, direct=None, original=None):
    given = {"direct": direct, "pair_original": original, "pair_swapped": None}
    frame = pd.DataFrame({"judge": "j", "item_id": range(len(human)), "human": pd.Series(human, dtype=object)})
    frame["system_x"], frame["system_y"], frame["original_first"] = A, B, A
    for name, values in given.items():
        frame[name] = pd.Series(values if values is not None else [None] * len(human), dtype=object)
        frame[f"planned_{name.removeprefix('pair_')}"] = values is not None
    return policy_table(frame, labels=LABELS, ci_level=0.95, resamples=50, seed=1)


def told(table, minimum=0.7, items=1):
    return list(policy_sentences(table, judge="j", minimum_agreement=minimum, minimum_items=items))


def test_nothing_missing():
    assert told(table_of([A] * 40, [A] * 40)) == [
        "j, direct: all 40 judgments with a human label have a verdict, so that no policy for unusable replies "
        "matters: exact agreement is 40/40 = 1.000 (95 % interval [0.912, 1.000], n = 40 items)."
    ]


def test_the_same_under_every_policy():
    (sentence,) = told(table_of([A] * 99 + [T], [A] * 98 + [None] * 2))
    assert sentence == (
        "j, direct: 2 of 100 judgments are unusable; with them dropped exact agreement is 98/98 = 1.000 "
        "(95 % interval [0.962, 1.000], n = 98 items), 98/100 = 0.980 as wrong and 99/100 = 0.990 as tie, and from "
        "98/100 = 0.980 to 100/100 = 1.000 whatever they would have been; the conclusion about the threshold "
        "(at least 0.700) does not depend on the policy: supported."
    )


def test_it_depends_on_the_policy():
    (sentence,) = told(table_of([A] * 100, [A] * 60 + [None] * 40))
    assert sentence.endswith(
        "the conclusion about the threshold (at least 0.700) depends on the policy: supported if dropped and at best; "
        "not supported as wrong, as tie and at worst."
    )


def test_too_few_items_once_dropped():
    (sentence,) = told(table_of([A] * 60, [A] * 45 + [None] * 15), items=50)
    assert "too little data if dropped; undecided as wrong, as tie and at worst; supported at best" in sentence


def test_nothing_usable_and_nothing_labelled():
    (sentence,) = told(table_of([A, B], [None, None]))
    assert "with them dropped exact agreement is undefined (n = 0 items: no judgment to count; " in sentence
    assert told(table_of([None, None], [A, None])) == [
        "j, direct: no judgment has a human label (n = 0 items): too little data."
    ]


def test_another_judge_was_not_measured():
    (sentence,) = policy_sentences(table_of([A], [A]), judge="k", minimum_agreement=0.7)
    assert sentence == "k: agreement was not measured (n = 0 items): too little data."


SAME = "is the same with unusable replies dropped, as wrong or as tie: direct"
WHICH = {
    "whatever is missing": ([A] * 9 + [None], [B] * 10, f"{SAME}; no verdicts in their place could have changed that"),
    "but for the ends": ([A] * 5 + [B] * 3 + [None] * 2, [A] * 4 + [B] * 5 + [None],
                         f"{SAME}; verdicts in their place could have changed that"),
    "by the policy": ([A] * 4 + [B] * 1 + [None] * 5, [A] * 6 + [B] * 4,
                      "depends on the policy: direct if dropped, pairwise as wrong and pairwise as tie"),
    "unknown": ([None] * 10, [A] * 10, "cannot be said, for one of them has no usable verdict"),
}  # fmt: skip


@pytest.mark.parametrize("name", WHICH)
def test_which_strategy_is_better(name):
    direct, original, expected = WHICH[name]
    sentences = told(table_of([A] * 10, direct, original))
    assert sentences[-1] == f"j: which strategy has the higher estimate {expected}."
    assert len(sentences) == 3


def drawn(figure):
    return sorted(
        float(x)
        for axes in figure.axes
        for line in axes.get_lines()
        if line.get_linestyle() == "None"
        for x in line.get_xdata()
    )


def test_the_plot_draws_every_policy_once():
    table = table_of([A] * 10, [A] * 6 + [B, None, None, None], [A] * 9 + [None])
    figure = plots.policy_plot(table)
    own = table[table["measure"] != "exact_agreement_unusable_worst_case"]
    np.testing.assert_allclose(drawn(figure), sorted(own["estimate"]))
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["dropped (protocol)", "as wrong (at worst)", "as tie", "at best"]
    plt.close(figure)


def test_the_plot_says_what_is_undefined_and_what_is_not_there():
    figure = plots.policy_plot(table_of([A, B], [None, None]))
    assert any("no judgment to count" in text.get_text() for text in figure.axes[0].texts)
    empty = plots.policy_plot(table_of([A], [A]).iloc[:0])
    assert "nothing to show" in empty.get_suptitle()
    plt.close("all")
