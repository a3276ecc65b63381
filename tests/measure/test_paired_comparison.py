"""The paired-comparison model: hand values, other libraries, plain twins, planted truth."""

import evalica
import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit

from judgelab.measure.paired_comparison import fit_strengths
from judgelab.measure.ranking import bradley_terry, by_system

OPTIONS = {"ci_level": 0.95, "resamples": 50, "seed": 1}
COLUMNS = ["system_x", "system_y", "preference"]
TIES = ("half", "dropped", "davidson", "rao_kupper")


def matches(*rows, columns=COLUMNS):
    return pd.DataFrame(list(rows), columns=columns)


def fit(table, **options):
    return fit_strengths(table, **{**OPTIONS, **options})


def drawn(n, *, systems=4, items=None, place=0.0, length=0.0, tie=0.5, seed=0):
    """Matches by Davidson's model with planted strengths, place and length."""
    rng = np.random.default_rng(seed)
    level = np.linspace(-0.8, 0.8, systems)
    x = rng.integers(0, systems, n)
    y = (x + rng.integers(1, systems, n)) % systems
    first, words = rng.integers(0, 2, n) * 2 - 1, rng.integers(40, 400, (n, 2))
    eta = level[x] - level[y] + place * first + length * np.log(words[:, 0] / words[:, 1])
    where = rng.random(n) * (np.exp(eta / 2) + np.exp(-eta / 2) + tie)
    names = np.array([f"s{code}" for code in range(systems)], dtype=object)
    won = np.where(where < np.exp(eta / 2), names[x], names[y])
    table = pd.DataFrame({"system_x": names[x], "system_y": names[y], "first": names[np.where(first > 0, x, y)]})
    table["preference"] = np.where(where < np.exp(eta / 2) + np.exp(-eta / 2), won, "TIE")
    table["words_x"], table["words_y"] = words.T
    table["item_id"] = rng.integers(0, items or n, n)
    return dict(zip(names, level, strict=True)), table


def by_name(found):
    return dict(zip(found.systems, found.level, strict=True))


@st.composite
def tables(draw, systems=4, most=30):
    names = "abcdef"[:systems]
    pair = st.tuples(st.sampled_from(names), st.sampled_from(names)).filter(lambda p: p[0] != p[1])
    rows = draw(st.lists(st.tuples(pair, st.sampled_from("xyt")), min_size=1, max_size=most))
    return matches(*((x, y, {"x": x, "y": y, "t": "TIE"}[w]) for (x, y), w in rows))


def test_two_systems_by_hand():
    # 6 wins, 2 ties, 2 losses. Half: 7 to 3; dropped: 6 to 2. Each level is half of the log odds. Information of the
    # difference: n p q = 10 · 0.7 · 0.3; the level's standard error is half of the difference's.
    table = matches(*[("a", "b", "a")] * 6, *[("a", "b", "TIE")] * 2, *[("a", "b", "b")] * 2)
    half, dropped = fit(table), fit(table, ties="dropped")
    assert half.level == pytest.approx([np.log(7 / 3) / 2, -np.log(7 / 3) / 2], abs=1e-12)
    assert half.covariance[0, 0] ** 0.5 == pytest.approx(0.5 / np.sqrt(10 * 0.7 * 0.3), rel=1e-9)
    assert half.covariance[0, 1] == pytest.approx(-half.covariance[0, 0], rel=1e-9)
    assert dropped.level[0] == pytest.approx(np.log(3) / 2, abs=1e-12)
    assert (dropped.n_used, dropped.n_excluded) == (8, 2)
    assert dropped.notes[-1:] == ("2 of 10 matches left out: 2 ties",)
    # Davidson is saturated: p_x / p_y = e^η = 3 and p_tie / √(p_x p_y) = ν = 2 / √12.
    davidson = fit(table, ties="davidson")
    assert davidson.level[0] - davidson.level[1] == pytest.approx(np.log(3), abs=1e-10)
    assert davidson.tie_parameter.estimate == pytest.approx(2 / np.sqrt(12), rel=1e-10)
    # Rao and Kupper, too: logit p_x = η − ln θ = logit 0.6, logit p_y = −η − ln θ = logit 0.2.
    rao = fit(table, ties="rao_kupper")
    up, down = np.log(0.6 / 0.4), np.log(0.2 / 0.8)
    assert rao.level[0] - rao.level[1] == pytest.approx((up - down) / 2, abs=1e-10)
    assert rao.tie_parameter.estimate == pytest.approx(np.exp(-(up + down) / 2), rel=1e-10)


def test_place_by_hand():
    # a first: 8 to 2; b first: a wins 5 of 10. η = d + γ and d − γ: d = ln 4 / 2, γ = ln 4 / 2.
    table = matches(
        *[("a", "b", "a", "a")] * 8, *[("a", "b", "b", "a")] * 2, *[("b", "a", "a", "b")] * 5,
        *[("b", "a", "b", "b")] * 5, columns=[*COLUMNS, "first"],
    )  # fmt: skip
    found = fit(table, first_position=True)
    assert found.level[0] - found.level[1] == pytest.approx(np.log(4) / 2, abs=1e-10)
    assert found.first_position.estimate == pytest.approx(np.log(4) / 2, abs=1e-10)
    unknown = pd.concat([table, matches(("a", "b", "a", None), columns=[*COLUMNS, "first"])])
    found = fit(unknown, first_position=True)
    assert found.n_used == 21
    assert found.notes[-1] == "1 of 21 matches without a known first do not enter its effect"


@settings(max_examples=25)
@given(tables())
def test_equals_bradley_terry_and_evalica(table):
    before = bradley_terry(table)
    assume(before["estimate"].notna().all())
    ours = by_name(fit(table, undefined="error", resamples=2))
    logs = np.log(by_system(before))
    assert ours == pytest.approx((logs - logs.mean()).to_dict(), abs=1e-9)
    kinds = {True: evalica.Winner.X, False: evalica.Winner.Y}
    outcomes = [
        evalica.Winner.Draw if p == "TIE" else kinds[p == x]
        for x, p in zip(table["system_x"], table["preference"], strict=True)
    ]
    columns = table["system_x"].tolist(), table["system_y"].tolist(), outcomes
    theirs = np.log(evalica.bradley_terry(*columns, tolerance=1e-14, limit=200_000).scores)
    assert ours == pytest.approx((theirs - theirs.mean()).to_dict(), abs=1e-6)


@settings(max_examples=12)
@given(tables(), st.sampled_from(TIES), st.randoms())
def test_does_not_depend_on_order_names_or_sides(table, ties, random):
    found = fit(table, ties=ties, resamples=2)
    turned = table.rename(columns={"system_x": "system_y", "system_y": "system_x"})
    shuffled = table.iloc[random.sample(range(len(table)), len(table))]
    renamed = table.replace({name: f"{name}'" for name in "abcd"})
    for other, ending in ((turned, ""), (shuffled, ""), (renamed, "'")):
        again = by_name(fit(other, ties=ties, resamples=2))
        expected = {name + ending: level for name, level in by_name(found).items()}
        assert again == pytest.approx(expected, abs=1e-7, nan_ok=True)
    assert np.nansum(found.level) == pytest.approx(0, abs=1e-9)


def test_strengths_that_lie_far_apart():
    # A million to one, twice: log strengths 2 ln 10^6 apart, found to the last digits.
    table = matches(("a", "b", "a"), ("a", "b", "b"), ("b", "c", "b"), ("b", "c", "c")).assign(weight=[1e6, 1, 1e6, 1])
    found = fit(table, undefined="error", resamples=2)
    assert found.level == pytest.approx([np.log(1e6), 0, -np.log(1e6)], abs=1e-9)
    assert not found.penalised


def test_weights_count_as_matches():
    table = matches(("a", "b", "a"), ("a", "b", "b"), ("b", "c", "TIE"), ("c", "a", "c"), ("b", "c", "b"))
    weight = [3, 1, 2, 2, 1]
    for ties in TIES:
        weighted = fit(table.assign(weight=weight), ties=ties)
        repeated = fit(table.loc[np.repeat(table.index, weight)], ties=ties)
        assert weighted.level == pytest.approx(repeated.level, abs=1e-9)
        assert weighted.covariance == pytest.approx(repeated.covariance, abs=1e-8)


@pytest.mark.parametrize("terms", [{}, {"first_position": True}, {"first_position": True, "covariates": ["length"]}])
def test_equals_statsmodels(terms):
    _, table = drawn(600, place=0.4, length=0.5, seed=3)
    found = fit(table, **terms, resamples=2)
    names = list(found.systems)
    # Ties as half a win: a binomial response of 1/2. Systems against the last, whose level is minus the others' sum.
    design = np.column_stack([(table["system_x"] == n) * 1.0 - (table["system_y"] == n) for n in names])
    design = design[:, :-1] - design[:, -1:]
    if "first_position" in terms:
        design = np.column_stack([design, np.where(table["first"] == table["system_x"], 1.0, -1.0)])
    if "covariates" in terms:
        design = np.column_stack([design, np.log(table["words_x"] / table["words_y"])])
    score = np.where(table["preference"] == "TIE", 0.5, table["preference"] == table["system_x"])
    theirs = sm.GLM(score, design, family=sm.families.Binomial()).fit(tol=1e-12)
    k = len(names) - 1
    assert found.level[:-1] == pytest.approx(theirs.params[:k], abs=1e-6)
    assert np.sqrt(np.diag(found.covariance))[:-1] == pytest.approx(theirs.bse[:k], abs=1e-6)
    effects = [found.first_position, *found.covariates.values()] if terms else []
    assert [effect.estimate for effect in effects] == pytest.approx(list(theirs.params[k:]), abs=1e-6)
    assert [effect.se for effect in effects] == pytest.approx(list(theirs.bse[k:]), abs=1e-6)


@pytest.mark.parametrize("ties", ["davidson", "rao_kupper"])
def test_ties_equal_a_plain_optimiser(ties):
    _, table = drawn(400, place=0.3, seed=5)
    found = fit(table, ties=ties, first_position=True, resamples=2)
    code = {name: place for place, name in enumerate(found.systems)}
    x, y = (table[f"system_{side}"].map(code).to_numpy() for side in "xy")
    first = np.where(table["first"] == table["system_x"], 1.0, -1.0)
    tied, won = (table["preference"] == "TIE").to_numpy(), (table["preference"] == table["system_x"]).to_numpy()

    def minus(values):
        level = np.append(values[:3], -values[:3].sum())
        eta, tie = level[x] - level[y] + values[3] * first, values[4]
        if ties == "davidson":
            powers = np.stack([np.exp(eta / 2), np.exp(-eta / 2), np.exp(tie) + 0 * eta])
            p_x, p_y, p_tie = powers / powers.sum(axis=0)
        else:
            p_x, p_y = expit(eta - np.exp(tie)), expit(-eta - np.exp(tie))
            p_tie = 1 - p_x - p_y
        return -np.log(np.where(tied, p_tie, np.where(won, p_x, p_y))).sum()

    best = minimize(minus, np.array([0, 0, 0, 0, -1.0]), method="BFGS", options={"gtol": 1e-7}).x
    assert found.level[:3] == pytest.approx(best[:3], abs=1e-5)
    assert found.first_position.estimate == pytest.approx(best[3], abs=1e-5)
    parameter = np.exp(best[4]) if ties == "davidson" else np.exp(np.exp(best[4]))
    assert found.tie_parameter.estimate == pytest.approx(parameter, abs=1e-5)

    def at(values):  # the log of the parameter itself, by which the standard error is checked
        return minus(np.append(values[:4], values[4] if ties == "davidson" else np.log(values[4])))

    point = np.append(best[:4], np.log(found.tie_parameter.estimate))
    steps = 1e-3 * np.eye(5)
    bends = [[(at(point + a + b) - at(point + a - b) - at(point - a + b) + at(point - a - b)) / 4e-6 for a in steps]
             for b in steps]  # fmt: skip
    errors = np.sqrt(np.diag(np.linalg.inv(bends)))
    assert np.sqrt(np.diag(found.covariance))[:3] == pytest.approx(errors[:3], rel=1e-4)
    assert found.first_position.se == pytest.approx(errors[3], rel=1e-4)
    assert found.tie_parameter.se == pytest.approx(errors[4] * found.tie_parameter.estimate, rel=1e-4)


@pytest.mark.parametrize("ties", ["davidson", "rao_kupper"])
def test_without_ties_all_are_bradley_terry(ties):
    _, table = drawn(300, tie=0.0, seed=2)
    plain, found = fit(table, ties="dropped"), fit(table, ties=ties)
    assert found.level == pytest.approx(plain.level, abs=1e-12)
    assert found.draws == pytest.approx(plain.draws, abs=1e-12)
    assert found.tie_parameter.estimate == (0.0 if ties == "davidson" else 1.0)
    assert found.tie_parameter.note == "no match is a tie: at its bound"


def test_resamples_equal_fits_of_repeated_items():
    # Each draw is the fit to some multiset of whole items; with two items there are three.
    rows = [("a", "b", "a"), ("a", "b", "b"), ("b", "c", "b"), ("b", "c", "c"), ("a", "c", "TIE")]
    one = matches(*rows).assign(item_id=1)
    two = matches(*rows, ("a", "b", "a"), ("c", "b", "c")).assign(item_id=2)
    for ties in TIES:
        found = fit(pd.concat([one, two]), ties=ties)
        samples = (pd.concat([one, one]), pd.concat([one, two]), pd.concat([two, two]))
        alone = [fit(sample, ties=ties, resamples=1).level for sample in samples]
        gaps = np.abs(found.draws[:, np.newaxis] - np.array(alone)).max(axis=2)
        assert (gaps.min(axis=1) < 1e-7).all()
        assert len(set(gaps.argmin(axis=1).tolist())) == 3
        assert found.n_items == 2


def test_one_match_an_item_with_or_without_ids():
    _, table = drawn(300, seed=4)
    unnamed = table.drop(columns="item_id")
    found = fit(unnamed, resamples=400)
    named = fit(unnamed.assign(item_id=np.arange(300)), resamples=400)
    assert found.draws == pytest.approx(named.draws)
    assert found.n_items == 300
    # Bootstrap and information agree; ties as half are treated as binomial, so that the latter is a little larger.
    ratio = found.draws.std(axis=0) / np.sqrt(np.diag(found.covariance))
    assert ((ratio > 0.8) & (ratio < 1.1)).all()


@pytest.mark.parametrize("ties", TIES)
def test_planted_place_is_found_and_does_not_move_the_strengths(ties):
    truth, table = drawn(4000, place=0.6, length=0.4, seed=7)
    found = fit(table, ties=ties, first_position=True, covariates=["length"])
    error = np.sqrt(np.diag(found.covariance))
    if ties in ("dropped", "davidson"):  # the models that the matches come from
        assert found.first_position.estimate == pytest.approx(0.6, abs=3 * found.first_position.se)
        assert found.covariates["length"].estimate == pytest.approx(0.4, abs=3 * found.covariates["length"].se)
        assert (np.abs(found.level - [truth[name] for name in found.systems]) < 3 * error).all()
    if ties == "davidson":
        assert found.tie_parameter.estimate == pytest.approx(0.5, abs=3 * found.tie_parameter.se)
    plain = fit(table, ties=ties)
    assert (np.abs(found.level - plain.level) < 0.15).all()


def test_bootstrap_interval_covers():
    # 40 studies of 60 items with 6 matches each: 38 are expected to cover; fewer than 33 have a chance below 1 in 200.
    covered = 0
    for seed in range(40):
        truth, table = drawn(360, items=60, tie=0.3, seed=100 + seed)
        found = fit(table, ties="davidson", resamples=99)
        place = found.systems.index("s3")
        low, high = np.quantile(found.draws[:, place], [0.025, 0.975])
        covered += low <= truth["s3"] <= high
    assert covered >= 33
