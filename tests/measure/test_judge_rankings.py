"""Rank correlations of judges' rankings: LLMFAO's, a plain second computation, and rankings that cannot be compared."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from judgelab.measure.judge_rankings import COLUMNS, judge_rankings
from judgelab.measure.ranking import bradley_terry, by_system
from judgelab.study.sources.llmfao import read_llmfao

NAN = float("nan")


def ranked_by(judge, order, wins=3, losses=1):
    """Matches of every two systems, the one that stands first in the order beats the other three times to one."""
    pairs = list(combinations(order, 2))
    rows = [(judge, a, b, says) for a, b in pairs for says in [a] * wins + [b] * losses]
    return pd.DataFrame(rows, columns=["judge", "system_x", "system_y", "preference"], dtype=object)


def compared(*tables, **options):
    return judge_rankings(pd.concat(tables, ignore_index=True), **({"ci_level": 0.95} | options))


def only(found):
    assert list(found) == COLUMNS
    assert len(found) == 1
    return found.iloc[0]


@pytest.mark.data
def test_people_and_the_two_judges_of_llmfao(shared):
    # ../shared/data/README.md: people and GPT-4 0.730918, over 59 systems
    read = read_llmfao(shared / "data" / "llmfao")
    named = {"people": read.crowd, "gpt-4": read.gpt4, "gpt-3": read.gpt3}
    table = pd.concat([part.assign(judge=name) for name, part in named.items()], ignore_index=True)
    found = judge_rankings(table, ci_level=0.95)
    assert found[["judge_a", "judge_b"]].values.tolist() == [
        ["people", "gpt-4"], ["people", "gpt-3"], ["gpt-4", "gpt-3"]
    ]  # fmt: skip
    assert round(found["spearman"][0], 6) == 0.730918
    assert found["systems"].tolist() == [59] * 3
    assert found["note"].tolist() == [""] * 3
    assert (found["ci_low"] < found["spearman"]).all()
    assert (found["spearman"] < found["ci_high"]).all()
    assert (found["kendall"] < found["spearman"]).all()


def test_orders_that_are_the_same_or_the_reverse():
    one, same, reverse = ranked_by("i", "abcd"), ranked_by("j", "abcd", 9, 2), ranked_by("k", "dcba")
    found = compared(one, same, reverse).set_index(["judge_a", "judge_b"])
    assert found["spearman"].tolist() == found["kendall"].tolist() == pytest.approx([1, -1, -1])
    assert found[["ci_low", "ci_high"]].isna().all(axis=None)
    assert set(found["note"]) == {"no interval: the two orders are the same or the reverse"}


def test_one_swap_of_neighbours_among_five_by_hand():
    # Σ d² = 2: ρ = 1 − 6 · 2 / 120 = 0.9; 9 of 10 pairs agree: τ = 0.8.
    # tanh(artanh 0.9 ± 1.959964 · √((1 + 0.405) / 2)) = tanh(1.472219 ± 1.642749)
    row = only(compared(ranked_by("i", "abcde"), ranked_by("j", "abced")))
    assert (row["spearman"], row["kendall"]) == pytest.approx((0.9, 0.8))
    assert (row["systems"], row["note"]) == (5, "")
    assert row["ci_low"] == pytest.approx(np.tanh(1.4722195 - 1.6427491), abs=1e-6)
    assert row["ci_high"] == pytest.approx(np.tanh(1.4722195 + 1.6427491), abs=1e-6)
    wider = only(compared(ranked_by("i", "abcde"), ranked_by("j", "abced"), ci_level=0.99))
    assert wider["ci_low"] < row["ci_low"]


def test_three_systems_have_no_interval_and_two_no_correlation():
    row = only(compared(ranked_by("i", "abc"), ranked_by("j", "acb")))
    assert (row["spearman"], row["note"]) == (0.5, "no interval: 3 systems")
    assert np.isnan(row["ci_low"])
    row = only(compared(ranked_by("i", "abcd"), ranked_by("j", "cdxy")))
    assert row["systems"] == 2
    assert row["note"] == "undefined: 2 systems ranked by both, 3 are needed"
    assert row[["spearman", "kendall", "ci_low", "ci_high"]].isna().all()


def test_systems_that_one_judge_did_not_rank_are_left_out():
    row = only(compared(ranked_by("i", "abcdxy"), ranked_by("j", "zabdc")))
    assert row["systems"] == 4
    assert row["spearman"] == pytest.approx(1 - 6 * 2 / 60)


def test_a_judge_that_ties_all_systems():
    ties = ranked_by("j", "abcd").assign(preference="TIE")
    row = only(compared(ranked_by("i", "abcd"), ties))
    assert row["note"] == "undefined: a judge ranks all systems alike"
    assert row[["spearman", "kendall", "ci_low", "ci_high"]].isna().all()


def test_equal_strengths_are_tied_whatever_the_fit_rounds():
    # Each has beaten the next and been beaten by it as often in all but the match with d: a, b, c are equal.
    middle = ranked_by("j", "abc", 7, 7)
    last = pd.DataFrame(
        [("j", s, "d", s) for s in "abc"] * 3 + [("j", s, "d", "d") for s in "abc"], columns=middle.columns
    )
    row = only(compared(ranked_by("i", "abcd"), middle, last))
    ours = spearmanr([1, 2, 3, 4], [1, 1, 1, 4]).statistic, kendalltau([1, 2, 3, 4], [1, 1, 1, 4]).statistic
    assert (row["spearman"], row["kendall"]) == pytest.approx(ours)


def test_an_undefeated_system():
    top = pd.DataFrame([("i", "top", "a", "top")], columns=["judge", "system_x", "system_y", "preference"])
    other = ranked_by("j", ["top", *"abcd"])
    prior = only(compared(ranked_by("i", "abcd"), top, other))
    assert (prior["systems"], prior["note"]) == (5, "i: strengths by a prior")
    assert 0 < prior["spearman"] < 1  # one win against the best does not make it the best
    named = only(compared(ranked_by("i", "abcd"), top, other, undefined="name"))
    assert (named["systems"], named["spearman"]) == (4, pytest.approx(1))
    assert "prior" not in named["note"]
    with pytest.raises(ValueError, match="no finite strengths: top undefeated"):
        compared(ranked_by("i", "abcd"), top, other, undefined="error")


def test_nothing_to_compare():
    assert list(judge_rankings(ranked_by("i", ""), ci_level=0.95)) == COLUMNS
    assert len(judge_rankings(ranked_by("i", ""), ci_level=0.95)) == 0
    assert len(compared(ranked_by("i", "abc"))) == 0  # one judge
    silent = ranked_by("j", "abcd").assign(preference=None)
    row = only(compared(ranked_by("i", "abcd"), silent))
    assert (row["systems"], row["note"]) == (0, "undefined: 0 systems ranked by both, 3 are needed")
    apart = pd.concat([ranked_by("j", "ab"), ranked_by("j", "cd")])
    row = only(compared(ranked_by("i", "abcd"), apart, undefined="name"))
    assert row["note"].startswith("undefined: 0 systems")


def test_judges_come_in_order_of_appearance_and_need_a_column():
    found = compared(ranked_by("z", "abcd"), ranked_by("a", "abcd"), ranked_by("m", "abcd"))
    assert found[["judge_a", "judge_b"]].values.tolist() == [["z", "a"], ["z", "m"], ["a", "m"]]
    with pytest.raises(ValueError, match="matches: missing column judge"):
        judge_rankings(ranked_by("i", "ab").drop(columns="judge"), ci_level=0.95)


@st.composite
def tables(draw):
    pair = st.permutations("abcde").map(lambda order: order[:2])
    rows = draw(st.lists(st.tuples(st.sampled_from("ij"), pair, st.sampled_from("xyt-")), min_size=20, max_size=60))
    told = [(judge, x, y, {"x": x, "y": y, "t": "TIE", "-": None}[says]) for judge, (x, y), says in rows]
    return pd.DataFrame(told, columns=["judge", "system_x", "system_y", "preference"], dtype=object)


@settings(max_examples=20)
@given(tables(), st.randoms(use_true_random=False))
def test_the_plain_computation_and_the_order_of_rows_and_names(table, random):
    found = judge_rankings(table, undefined="name", ci_level=0.9)
    strengths = {name: np.log(by_system(bradley_terry(part))).round(8) for name, part in table.groupby("judge")}
    if len(strengths) < 2:
        assert not len(found)
        return
    both = pd.concat(strengths, axis=1, join="inner").dropna()
    defined = len(both) > 2 and bool((np.ptp(both.to_numpy(), axis=0) > 0).all())
    wanted = [measure(both["i"], both["j"]).statistic for measure in (spearmanr, kendalltau) if defined]
    row = only(found)
    assert row["systems"] == len(both)
    assert [row["spearman"], row["kendall"]] == pytest.approx(wanted or [NAN, NAN], nan_ok=True)
    assert row["note"].startswith("undefined: ") == (not defined)
    order = list(range(len(table)))
    random.shuffle(order)
    new = dict(zip("abcde", "vxzyw", strict=True)) | {"TIE": "TIE", None: None}
    other = table.iloc[order].copy()
    for name in ("system_x", "system_y", "preference"):
        other[name] = other[name].map(new)
    again = only(judge_rankings(other, undefined="name", ci_level=0.9))
    numbers = ["spearman", "kendall", "ci_low", "ci_high", "systems"]
    assert again[numbers].astype(float).to_list() == pytest.approx(row[numbers].astype(float).to_list(), nan_ok=True)
