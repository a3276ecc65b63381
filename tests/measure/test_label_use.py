"""Prevalence of one system and use of ties."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.differences import newcombe_paired
from judgelab.measure.label_use import label_use_table

from .conftest import ALPHA_BETA, make_normalized, pick, random_normalized

A, B, T = ALPHA_BETA
CAUTION = "prevalence: one system wins almost all, kappa says little; read AC1 or PABAK"


def use(table, options, labels=ALPHA_BETA):
    return label_use_table(table, labels=labels, **options)


def rate(line):
    return line["numerator"], line["denominator"]


HUMAN = [A, A, B, T, A, B, T, None]
ORIGINAL = [A, A, A, A, T, B, T, A]


def test_by_hand(options):
    table = use(make_normalized(HUMAN, None, ORIGINAL), options)
    # seven judgments with both labels; the judge: A A A A tie B tie; people without ties: A A B A B
    line = pick(table, "most_preferred_share", "original", "system=ALPHA")
    assert rate(line) == (4, 5)
    assert (line["ci_low"], line["ci_high"]) == pytest.approx(proportion_confint(4, 5, method="wilson"))
    assert line["note"] == ("1 of 8 items left out: 1 without reference; 2 of 7 labelled judgments left out: 2 tied")
    assert rate(pick(table, "human_preferred_share", "original", "system=ALPHA")) == (3, 5)
    assert rate(pick(table, "tie_rate", "original")) == (2, 7)
    assert rate(pick(table, "human_tie_rate", "original")) == (2, 7)
    gap = pick(table, "tie_rate_gap", "original")  # both tie once, each alone once, neither four times
    assert gap["estimate"] == 0
    assert (gap["ci_low"], gap["ci_high"]) == newcombe_paired(1, 1, 1, 4, 0.95)
    assert (gap["n_used"], gap["n_excluded"]) == (7, 1)
    assert pick(table, "tie_rate_gap_p", "original")["estimate"] == 1


def test_the_gap_has_the_sign_of_the_judge(options):
    line = pick(use(make_normalized([A] * 6 + [T], [T] * 5 + [A] * 2), options), "tie_rate_gap", "direct")
    assert line["estimate"] == pytest.approx(5 / 7 - 1 / 7)
    line = pick(use(make_normalized([A] * 6 + [T], [T] * 5 + [A] * 2), options), "tie_rate_gap_p", "direct")
    assert line["estimate"] == pytest.approx(2 * (1 + 6) / 2**6)  # 5 of 6 discordant, 2 Σ C(6, i) / 2⁶, i = 0, 1


def test_the_test_equals_statsmodels(options):
    study = random_normalized(150, 5)
    both = study[["human", "direct"]].dropna()
    ties = pd.crosstab(both["direct"] == T, both["human"] == T)
    line = pick(use(study, options), "tie_rate_gap_p", "direct")
    assert line["estimate"] == pytest.approx(mcnemar(ties, exact=True).pvalue)


@pytest.mark.parametrize(("wins", "warned"), [(19, True), (18, False), (1, True), (2, False)])
def test_one_system_that_wins_almost_all_gives_a_warning(options, wins, warned):
    table = use(make_normalized([A] * wins + [B] * (20 - wins), [A] * 12 + [B] * 8), options)
    for measure in ("most_preferred_share", "human_preferred_share"):
        assert (CAUTION in pick(table, measure, "direct", "system=ALPHA")["note"]) == warned
    assert pick(table, "human_preferred_share", "direct", "system=ALPHA")["estimate"] == wins / 20


LABEL = st.sampled_from([A, B, T, None])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(LABEL, LABEL), min_size=1, max_size=25))
def test_equals_a_plain_count(rows):
    human, judged = zip(*rows, strict=True)
    table = label_use_table(make_normalized(human, judged), labels=ALPHA_BETA, ci_level=0.9, resamples=10, seed=1)
    valid = [(h, j) for h, j in rows if h and j]
    preferred = [j for _, j in valid if j != T]
    assert rate(pick(table, "tie_rate", "direct")) == (sum(j == T for _, j in valid), len(valid))
    assert rate(pick(table, "human_tie_rate", "direct")) == (sum(h == T for h, _ in valid), len(valid))
    share = table[table["measure"] == "most_preferred_share"].iloc[0]
    if not preferred:
        assert share["note"].startswith("undefined: the judge prefers no system")
        return
    favourite = A if preferred.count(A) >= preferred.count(B) else B
    assert share["slice"] == f"system={favourite}"
    assert rate(share) == (preferred.count(favourite), len(preferred))
    people = [h for h, _ in valid if h != T]
    other = pick(table, "human_preferred_share", "direct", f"system={favourite}")
    assert rate(other) == (people.count(favourite), len(people))


def three_systems():
    """Two items, three pairs each: Z wins both of its pairs in item 1, one of two in item 2."""
    pairs = [("X", "Y"), ("X", "Z"), ("Y", "Z")] * 2
    table = make_normalized(
        ["X", "Z", "Y", T, "X", "Z"][:6], None, ["X", "Z", "Z", "Y", T, "Z"], items=[1] * 3 + [2] * 3
    )
    table["human"] = ["X", "Z", "Y", T, "X", "Z"]
    table["system_x"], table["system_y"] = zip(*pairs, strict=True)
    return table.assign(original_first=table["system_x"])


def test_shares_of_three_systems_are_of_the_judgments_with_the_system(options):
    table = use(three_systems(), options, ("X", "Y", "Z", T))
    # preferences without a tie of pairs with Z: Z Z (item 1), Z (item 2; X against Z is a tie)
    line = pick(table, "most_preferred_share", "original", "system=Z")
    assert rate(line) == (3, 3)
    # people: Z Y (item 1), X Z (item 2)
    assert rate(pick(table, "human_preferred_share", "original", "system=Z")) == (2, 4)
    assert rate(pick(table, "tie_rate", "original")) == (1, 6)
    gap = pick(table, "tie_rate_gap", "original")
    assert gap["estimate"] == 0
    assert "bootstrap over items" in gap["method"]
    assert pick(table, "tie_rate_gap_p", "original")["note"].startswith("undefined: items have several judgments")


def test_both_passes_are_resampled_by_item(options):
    study = random_normalized(80, 9)
    table = use(study, options)
    assert set(table["pass"]) == {"direct", "original", "swapped", "both", "aggregated"}
    parts = [pick(table, "tie_rate", name) for name in ("original", "swapped")]
    line = pick(table, "tie_rate", "both")
    assert rate(line) == tuple(sum(part[name] for part in parts) for name in ("numerator", "denominator"))
    gap = pick(table, "tie_rate_gap", "both")
    assert gap["estimate"] == pytest.approx(line["estimate"] - pick(table, "human_tie_rate", "both")["estimate"])
    assert gap["ci_low"] < gap["estimate"] < gap["ci_high"]


def numbers(table):
    return table.drop(columns=["slice"])


def test_neither_rows_nor_sides_nor_names_matter(options):
    study = random_normalized(60, 2)
    expected = use(study, options)
    shuffled = study.sample(frac=1, random_state=1)
    exact = ~expected["method"].str.contains("bootstrap")
    pd.testing.assert_frame_equal(use(shuffled, options)[exact], expected[exact])
    turned = study.rename(columns={"system_x": "system_y", "system_y": "system_x"})
    pd.testing.assert_frame_equal(use(turned, options), expected)
    renamed = study.replace({A: "p", B: "q"})
    other = use(renamed, options, ("p", "q", T))
    pd.testing.assert_frame_equal(numbers(other)[exact], numbers(expected)[exact])


def test_a_judge_without_ties(options):
    table = use(make_normalized([A, B, T, T], [A, B, A, B]), options)
    assert pick(table, "tie_rate", "direct")["estimate"] == 0
    assert pick(table, "tie_rate_gap", "direct")["estimate"] == -0.5
    table = use(make_normalized([A, B], [A, B]), options)
    assert pick(table, "tie_rate_gap", "direct")["ci_high"] > 0  # no discordant judgment, still a width
    assert pick(table, "tie_rate_gap_p", "direct")["note"].startswith("undefined: no judgment on which one side alone")


@pytest.mark.parametrize(("human", "judged"), [([None] * 3, [A, B, T]), ([A, B, T], [None] * 3)])
def test_nothing_to_compare_is_undefined(options, human, judged):
    table = use(make_normalized(human, judged), options)
    assert len(table) == 6
    assert table["estimate"].isna().all()
    assert table["note"].str.startswith("undefined: ").all()


def test_one_item_and_no_rows(options):
    table = use(make_normalized([A], [T]), options)
    assert pick(table, "tie_rate_gap", "direct")["estimate"] == 1
    assert np.isnan(pick(table, "most_preferred_share", "direct")["estimate"])
    assert use(make_normalized([A], [T]).iloc[:0], options).empty


def test_refused(options):
    with pytest.raises(ValueError, match="not allowed"):
        use(make_normalized([A, "GAMMA"], [A, B]), options)
    with pytest.raises(ValueError, match="missing column"):
        use(make_normalized([A], [A]).drop(columns="system_x"), options)
