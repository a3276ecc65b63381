"""The regression of a judge's choices: against second computations, invariances, planted effects, what is undefined."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import t as student
from statsmodels.discrete.discrete_model import Logit

from judgelab.measure.choice_model import choice_table

from .conftest import make_normalized, pick

EFFECTS = ("human", "first_position", "length", "family")
OPTIONS = {"labels": ("A", "B", "C", "TIE"), "families": {"A": "own", "B": "other", "C": None}}
OPTIONS |= {"judge_families": {"j": "own"}, "ci_level": 0.95}
PLANTED = (1.0, 1.0, 0.8, 0.7)


def study(n, seed, effects=PLANTED, *, pairs=(("A", "B"), ("A", "C"), ("B", "C")), taste=0.0, one_pass=False):
    """A judge with these log odds; ``taste`` is the spread over items of what moves it in both passes alike."""
    rng = np.random.default_rng(seed)
    x, y = np.array(pairs, dtype=object)[rng.integers(0, len(pairs), n)].T
    human, first = (rng.choice([1.0, -1.0], n) for _ in range(2))
    words = np.exp(rng.normal(4, 0.5, (2, n))).astype(int) + 1
    family = (x == "A") * 1.0 - (y == "A")
    level = effects[0] * human + effects[2] * np.log(words[0] / words[1]) + effects[3] * family
    level += taste * rng.standard_normal(n)
    passes = [np.where(level + s * effects[1] * first + rng.logistic(size=n) > 0, x, y) for s in (1, -1)]
    table = make_normalized(
        np.where(human > 0, x, y), None, passes[0], None if one_pass else passes[1], np.where(first > 0, x, y)
    )
    return table.assign(system_x=x, system_y=y, words_x=words[0], words_y=words[1])


def covariates(table):
    """Covariates, whether x was preferred, and items of both passes, written out row by row."""
    rows = []
    for name in ("original", "swapped"):
        for _, row in table.iterrows():
            if row[f"pair_{name}"] not in (row["system_x"], row["system_y"]):
                continue
            x_first = (row["original_first"] == row["system_x"]) == (name == "original")
            values = [
                {row["system_x"]: 1, row["system_y"]: -1}.get(row["human"], 0),
                1 if x_first else -1,
                np.log(row["words_x"] / row["words_y"]),
                (row["system_x"] == "A") - (row["system_y"] == "A"),
            ]
            rows.append([*values, row[f"pair_{name}"] == row["system_x"], row["item_id"]])
    rows = np.array(rows, dtype=float)
    return rows[:, :4], rows[:, 4], rows[:, 5].astype(int)


def rows_of(table, measure, pass_="both"):
    return [pick(table, f"{name}_{measure}", pass_) for name in EFFECTS]


def estimates(table, measure, pass_="both"):
    return [row["estimate"] for row in rows_of(table, measure, pass_)]


def values(table):
    return table[["estimate", "ci_low", "ci_high"]].to_numpy()


def test_by_hand():
    # 40 pairs of equally long answers, no family, no labels, both passes: first against second place decides all.
    # The first answer wins 60 of 80 verdicts: log odds ln 3, chance 3/4 against 1/4.
    wins = [(True, True)] * 22 + [(True, False)] * 9 + [(False, True)] * 7 + [(False, False)] * 2
    original, swapped = (["A" if win[place] == (place == 0) else "B" for win in wins] for place in (0, 1))
    table = make_normalized([None] * 40, None, original, swapped, systems=("A", "B")).assign(words_y=10)
    found = choice_table(table, **{**OPTIONS, "judge_families": {}})
    row = pick(found, "first_position_log_odds", "both")
    assert row["estimate"] == pytest.approx(np.log(3))
    assert pick(found, "first_position_win_change", "both")["estimate"] == pytest.approx(1 / 2)
    # residuals of an item: 2/4 (both), -2/4 (one), -6/4 (none); curvature 80 · 3/16 = 15;
    # variance (22 · 1/4 + 16 · 1/4 + 2 · 9/4) / 15² · 40/39 · 79/79
    error = np.sqrt((38 / 4 + 18 / 4) / 15**2 * 40 / 39)
    reach = student.ppf(0.975, 39) * error
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((np.log(3) - reach, np.log(3) + reach))
    p = pick(found, "first_position_log_odds_p", "both")["estimate"]
    assert p == pytest.approx(2 * student.sf(np.log(3) / error, 39))
    # slope of σ(b) − σ(−b) at b = ln 3: 2 · 3/16
    change = pick(found, "first_position_win_change", "both")
    assert change["ci_high"] - change["estimate"] == pytest.approx(reach * 3 / 8)
    assert (row["n_used"], row["n_excluded"], row["ci_level"]) == (40, 0, 0.95)
    reasons = ("no judgment has a human label", "all pairs are equally long", "the judge's family is not known")
    for name, reason in zip(("human", "length", "family"), reasons, strict=True):
        for measure in ("log_odds", "log_odds_p", "win_change"):
            assert pick(found, f"{name}_{measure}", "both")["note"].startswith(f"undefined: {reason}")
    assert "80 without a label count as no preference" in row["note"]


@pytest.mark.parametrize("seed", range(3))
def test_second_library(seed):
    table = study(60, seed, taste=1.0)
    table.loc[:3, "pair_original"] = "TIE"
    table.loc[4:6, "pair_swapped"] = np.nan
    table.loc[7:20, "human"] = "TIE"
    design, response, items = covariates(table)
    theirs = Logit(response, design).fit(disp=0, cov_type="cluster", cov_kwds={"groups": items}, use_t=True)
    assert theirs.df_resid_inference == 59
    ours = choice_table(table, **OPTIONS)
    # Newton's steps end at 1e-8 from either side of a pair
    assert estimates(ours, "log_odds") == pytest.approx(theirs.params, abs=1e-7)
    bounds = [(row["ci_low"], row["ci_high"]) for row in rows_of(ours, "log_odds")]
    assert np.array(bounds) == pytest.approx(theirs.conf_int(), abs=1e-7)
    assert estimates(ours, "log_odds_p") == pytest.approx(theirs.pvalues, abs=1e-7)
    assert "7 of 120 judgments left out: 3 without usable verdict, 4 ties" in ours["note"].iloc[0]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_naive_twin(seed):
    table = study(50, seed, taste=1.0)
    design, response, items = covariates(table)
    found = choice_table(table, **OPTIONS)
    if found["estimate"].isna().any():
        return  # separated
    sign = np.where(response == 1, 1, -1)
    fit = minimize(lambda b: np.logaddexp(0, -sign * (design @ b)).sum(), np.zeros(4), method="BFGS", tol=1e-9)
    beta = fit.x
    assert estimates(found, "log_odds") == pytest.approx(beta, abs=1e-4)
    chance = expit(design @ beta)
    bread = np.linalg.inv(sum(p * (1 - p) * np.outer(z, z) for p, z in zip(chance, design, strict=True)))
    meat = np.zeros((4, 4))
    for item in set(items):
        score = ((response - chance)[:, None] * design)[items == item].sum(axis=0)
        meat += np.outer(score, score)
    covariance = 50 / 49 * (len(items) - 1) / (len(items) - 4) * bread @ meat @ bread

    def change(b, effect):
        """Every answer of every pair in turn."""
        gains = []
        for row, side in itertools.product(design, (1, -1)):
            high, low = row * side, row * side
            high[effect], low[effect] = (np.log(2), 0) if effect == 2 else (1, -1)
            gains.append(expit(high @ b) - expit(low @ b))
        return np.mean(gains)

    for effect, row in enumerate(rows_of(found, "win_change")):
        assert row["estimate"] == pytest.approx(change(beta, effect), abs=1e-4)
        steps = 1e-5 * np.eye(4)
        gradient = np.array([change(beta + step, effect) - change(beta - step, effect) for step in steps]) / 2e-5
        reach = student.ppf(0.975, 49) * np.sqrt(gradient @ covariance @ gradient)
        assert row["ci_high"] == pytest.approx(min(row["estimate"] + reach, 1), abs=1e-3)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_sides_names_and_order_do_not_matter(seed):
    table = study(50, seed)
    found = choice_table(table, **OPTIONS)
    rng = np.random.default_rng(seed)
    swapped = table.copy()
    turned = rng.random(50) < 0.5
    for stem in ("system", "words"):
        for side, other in (("x", "y"), ("y", "x")):
            swapped.loc[turned, f"{stem}_{side}"] = table.loc[turned, f"{stem}_{other}"]
    pd.testing.assert_frame_equal(choice_table(swapped, **OPTIONS), found)
    shuffled = choice_table(table.sample(frac=1, random_state=seed), **OPTIONS)
    assert values(shuffled) == pytest.approx(values(found), abs=1e-7, nan_ok=True)
    names = {"A": "Q", "B": "A", "C": "B"}
    labels = {**OPTIONS, "labels": ("Q", "A", "B", "TIE"), "families": {"Q": "own"}}
    renamed = choice_table(table.replace(names), **labels)
    assert values(renamed) == pytest.approx(values(found), abs=1e-7, nan_ok=True)


def test_shown_the_other_way_round_only_the_place_changes():
    table = study(50, 3)
    other = np.where(table["original_first"] == table["system_x"], table["system_y"], table["system_x"])
    found, turned = (choice_table(one, **OPTIONS) for one in (table, table.assign(original_first=other)))
    for measure in ("log_odds", "win_change"):
        expected = np.array([1, -1, 1, 1]) * estimates(found, measure)
        assert estimates(turned, measure) == pytest.approx(expected, abs=1e-7)


def test_several_judges_are_separate():
    one, two = study(60, 1), study(60, 2).assign(judge="k")
    families = {**OPTIONS, "judge_families": {"j": "own", "k": "own"}}
    both = choice_table(pd.concat([one, two]), **families)
    assert both["judge"].tolist() == ["j"] * 12 + ["k"] * 12
    pd.testing.assert_frame_equal(both.iloc[:12], choice_table(one, **families))
    assert choice_table(make_normalized(["A"], ["A"], systems=("A", "B")), **OPTIONS).empty  # direct only


def test_verdicts_of_an_item_are_not_independent():
    # A judge that repeats itself in the other presentation adds no information: errors stay, up to the factor of n.
    single = study(80, 4, one_pass=True)
    twice = pd.concat([single, single], ignore_index=True)
    one, two = (choice_table(table, **OPTIONS) for table in (single, twice))
    factor = np.sqrt((159 / 156) / (79 / 76))
    for a, b in zip(rows_of(one, "log_odds", "original"), rows_of(two, "log_odds", "original"), strict=True):
        assert b["estimate"] == pytest.approx(a["estimate"], abs=1e-7)
        assert b["ci_high"] - b["estimate"] == pytest.approx(factor * (a["ci_high"] - a["estimate"]))
        assert a["n_used"] == b["n_used"] == 80


def test_planted_effects_are_covered():
    # at a coverage of 0.95, fewer than 50 of 60 happen once in 6,000 times
    held = np.zeros(4)
    for seed in range(60):
        for place, row in enumerate(rows_of(choice_table(study(150, 100 + seed), **OPTIONS), "log_odds")):
            held[place] += row["ci_low"] <= PLANTED[place] <= row["ci_high"]
    assert (held >= 50).all()


def test_a_fair_judge_is_rarely_called_biased():
    # A taste for each item moves both passes. At 0.05, more than 10 of 60 happen once in 6,000 times.
    called = np.zeros(4)
    for seed in range(60):
        table = choice_table(study(100, 200 + seed, (1, 0, 0, 0), taste=1.5), **OPTIONS)
        called += np.array(estimates(table, "log_odds_p")) < 0.05
    assert (called[1:] <= 10).all()
    assert called[0] > 30


@pytest.mark.parametrize(("takes", "word"), [("first", "always"), ("second", "never")])
def test_a_judge_that_decides_by_place_alone(takes, word):
    table = study(30, 1)
    other = np.where(table["original_first"] == table["system_x"], table["system_y"], table["system_x"])
    orders = (table["original_first"], other) if takes == "first" else (other, table["original_first"])
    found = choice_table(table.assign(pair_original=orders[0], pair_swapped=orders[1]), **OPTIONS)
    assert found["estimate"].isna().all()
    assert len(found) == 12
    for note in found["note"]:
        assert note.startswith("undefined: no finite estimate, 60 of 60 verdicts follow from the covariates")
        assert f"the judge {word} takes the answer shown first (60 verdicts)" in note


def test_separation_by_several_covariates_is_found():
    # x wins exactly if 2 human + first > 0: neither decides alone, both together do
    table = study(40, 5, (200.0, 100.0, 0.0, 0.0))
    found = choice_table(table, **OPTIONS)
    assert found["estimate"].isna().all()
    assert found["note"].str.contains("separation").all()


def test_quasi_separation_leaves_the_other_effects():
    # The family's answer always wins. The verdicts without one tell of the other effects: the limit of likelihood.
    table = study(200, 6)
    own = (table["system_x"] == "A") | (table["system_y"] == "A")
    for name in ("original", "swapped"):
        table.loc[own, f"pair_{name}"] = "A"
    found = choice_table(table, **OPTIONS)
    rest = choice_table(table[~own], **OPTIONS)
    design, response, _ = covariates(table)
    sign = np.where(response == 1, 1, -1)  # and a trace of a ridge keeps the infinite effect finite
    loss = lambda b: np.logaddexp(0, -sign * (design @ b)).sum() + 1e-9 * b @ b  # noqa: E731
    limit = minimize(loss, np.zeros(4), method="BFGS", tol=1e-9).x
    assert estimates(found, "log_odds")[:3] == pytest.approx(limit[:3], abs=1e-3)
    assert estimates(found, "log_odds")[:3] == pytest.approx(estimates(rest, "log_odds")[:3], abs=1e-9)
    # no finite effect moves the chance to win where the family decides
    expected = (~own).mean() * np.array(estimates(rest, "win_change")[:3])
    assert estimates(found, "win_change")[:3] == pytest.approx(expected, abs=1e-9)
    row = pick(found, "family_log_odds", "both")
    assert row["note"].startswith(f"undefined: no finite estimate, {2 * own.sum()} of 400 verdicts follow from family")
    assert "always takes the answer of its own family" in row["note"]
    assert f"fitted without {2 * own.sum()} separated verdicts" in pick(found, "human_log_odds", "both")["note"]
    assert pick(found, "human_log_odds", "both")["n_used"] == (~own).sum()


def test_collinear_covariates_are_named_and_the_others_estimated():
    # People always prefer the family's answer of a two-system study: human and family are one covariate.
    table = study(60, 7, pairs=(("A", "B"),)).assign(human="A")
    found = choice_table(table, **OPTIONS)
    for name, other in (("human", "family"), ("family", "human")):
        row = pick(found, f"{name}_log_odds", "both")
        assert row["note"] == f"undefined: collinear with {other}, no telling their effects apart"
    without = choice_table(table, **{**OPTIONS, "judge_families": {"j": None}})
    for measure, name in itertools.product(("log_odds", "log_odds_p", "win_change"), ("first_position", "length")):
        pair = [pick(one, f"{name}_{measure}", "both") for one in (found, without)]
        assert pair[0]["estimate"] == pytest.approx(pair[1]["estimate"], abs=1e-12)


def test_what_cannot_be_told_apart_from_the_systems_is_said():
    found = choice_table(study(100, 8), **OPTIONS)
    text = "stands for everything that distinguishes"
    assert [text in row["note"] for row in rows_of(found, "log_odds")] == [False, False, False, True]
    # one pass, A always first
    table = study(100, 8, pairs=(("A", "B"),), one_pass=True).assign(original_first="A")
    found = choice_table(table, **{**OPTIONS, "judge_families": {}})
    row = pick(found, "first_position_log_odds", "original")
    assert "is the same whenever two systems meet" in row["note"]


def test_one_pass():
    table = study(100, 9)
    single = table.assign(planned_swapped=False, pair_swapped=np.nan)
    assert set(choice_table(single, **OPTIONS)["pass"]) == {"original"}
    single = table.assign(planned_original=False, pair_original=np.nan)
    found = choice_table(single, **OPTIONS)
    assert set(found["pass"]) == {"swapped"}
    design, response, _ = covariates(single)
    assert estimates(found, "log_odds", "swapped") == pytest.approx(
        Logit(response, design).fit(disp=0).params, abs=1e-6
    )
    # both planned for a part: that part
    part = table.assign(planned_swapped=table.index < 60)
    pd.testing.assert_frame_equal(choice_table(part, **OPTIONS), choice_table(table[:60], **OPTIONS))


def test_a_judge_that_no_order_moves_has_no_interval_of_place():
    table = study(100, 10)
    found = choice_table(table.assign(pair_swapped=table["pair_original"]), **OPTIONS)
    row = pick(found, "first_position_log_odds", "both")
    assert row["estimate"] == pytest.approx(0, abs=1e-9)
    assert np.isnan(row["ci_low"])
    assert row["note"] == "no interval: the verdicts of every item cancel out"
    assert pick(found, "first_position_log_odds_p", "both")["note"].startswith("undefined: the verdicts")
    assert not np.isnan(pick(found, "length_log_odds", "both")["ci_low"])


def test_lengths():
    table = study(100, 11)
    table.loc[:9, "words_x"] = np.nan
    found = choice_table(table, **OPTIONS)
    row = pick(found, "length_log_odds", "both")
    assert (row["n_used"], row["n_excluded"]) == (90, 10)
    assert "20 of 200 judgments left out: 20 without length" in row["note"]
    assert values(found) == pytest.approx(values(choice_table(table[10:], **OPTIONS)), nan_ok=True)
    unknown = choice_table(table.assign(words_x=np.nan), **OPTIONS)
    assert pick(unknown, "length_log_odds", "both")["note"] == "undefined: no answer has a known length"
    assert pick(unknown, "human_log_odds", "both")["n_used"] == 100
    empty, one = (table.assign(words_x=table["words_x"].where(table.index != 50, count)) for count in (0, 1))
    pd.testing.assert_frame_equal(choice_table(empty, **OPTIONS), choice_table(one, **OPTIONS))


def test_degenerate():
    table = study(60, 12)
    assert choice_table(table[:0], **OPTIONS).empty
    missing = table.assign(pair_original="TIE", pair_swapped=np.nan)
    found = choice_table(missing, **OPTIONS)
    assert found["estimate"].isna().all()
    assert found["note"].str.startswith("undefined: no verdict that is no tie; 120 of 120 judgments left out").all()
    assert found["n_used"].tolist() == [0] * 12
    for n in (1, 2, 3):
        found = choice_table(table[:n], **OPTIONS)
        assert len(found) == 12
        assert found["note"].ne("").all()
    few = choice_table(study(25, 12, (0.2, 0.2, 0.2, 0.2)), **OPTIONS)
    assert "few items: 25 for 4 coefficients, 10 each are advised" in pick(few, "length_log_odds", "both")["note"]
    stranger = choice_table(table, **{**OPTIONS, "judge_families": {"j": "nobody"}})
    assert pick(stranger, "family_log_odds", "both")["note"] == "undefined: no pair has one system of family nobody"


def test_no_more_items_than_coefficients():
    # two items that contradict themselves: nothing is separated, and two coefficients have no error
    table = make_normalized(["A", "B"], None, ["A", "A"], ["A", "A"], ["A", "A"], systems=("A", "B")).assign(words_y=10)
    found = choice_table(table, **{**OPTIONS, "judge_families": {}})
    row = pick(found, "human_log_odds", "both")
    assert row["estimate"] == pytest.approx(0, abs=1e-9)
    assert row["note"].startswith("no interval: 2 items for 2 coefficients")
    assert pick(found, "human_log_odds_p", "both")["note"].startswith("undefined: 2 items for 2 coefficients")


def test_refused():
    table = study(20, 13)
    with pytest.raises(ValueError, match="ci_level is 1; allowed"):
        choice_table(table, **{**OPTIONS, "ci_level": 1})
    with pytest.raises(ValueError, match="missing column words_x"):
        choice_table(table.drop(columns="words_x"), **OPTIONS)
    with pytest.raises(ValueError, match="not allowed"):
        choice_table(table, **{**OPTIONS, "labels": ("A", "TIE")})
