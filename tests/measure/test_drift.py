"""Trends along the order of calls."""

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact, spearmanr
from statsmodels.stats.proportion import confint_proportions_2indep

from judgelab.measure.drift import drift_table

from .conftest import pick


def direct(totals, order=None, items=None, systems=None, judge="j"):
    n = len(totals)
    table = pd.DataFrame({"item_id": range(n) if items is None else items, "order": range(n)})
    table["system"] = "S" if systems is None else systems
    if order is not None:
        table["order"] = order
    table["total"] = pd.Series(list(totals), dtype=float)
    table["status"] = np.where(table["total"].isna(), "unusable", "verdict")
    return table.assign(judge=judge, strategy="direct", verdict=None, **{"pass": "direct"})


def pairwise(letters, order=None, items=None, pass_="original", judge="j"):
    n = len(letters)
    table = pd.DataFrame({"item_id": range(n) if items is None else items, "order": range(n)})
    if order is not None:
        table["order"] = order
    table["verdict"] = pd.Series(list(letters), dtype=object)
    table["status"] = np.where(table["verdict"].isna(), "unusable", "verdict")
    return table.assign(judge=judge, strategy="pairwise", system=None, total=np.nan, **{"pass": pass_})


def two_systems(n, slope, seed, missing=0.0, noise=0.5):
    """n items, two systems at different levels, calls in random order, a trend over the pass."""
    rng = np.random.default_rng(seed)
    items, systems = np.repeat(np.arange(n), 2), np.tile(["X", "Y"], n)
    order = rng.permutation(2 * n)
    item = rng.normal(0, 0.5, n)[items]
    totals = 3 + (systems == "Y") * 0.8 + item + slope * order / (2 * n - 1) + rng.normal(0, noise, 2 * n)
    totals[rng.random(2 * n) < missing] = np.nan
    return direct(totals, order, items, systems)


def test_slope_by_hand(options):
    # t = 0, .2, .4, .6, .8, 1; t̄ = .5; Σ(t − t̄)² = .25 + .09 + .01 + .01 + .09 + .25 = .7
    # y = 1 1 2 2 3 3; Σ(t − t̄) y = −.5 − .3 − .2 + .2 + .9 + 1.5 = 1.6; slope 16/7
    table = drift_table(direct([1, 1, 2, 2, 3, 3]), **options)
    line = pick(table, "score_drift", "direct")
    assert line["estimate"] == pytest.approx(16 / 7)
    assert line["ci_low"] <= 16 / 7 <= line["ci_high"]
    assert (line["n_used"], line["n_excluded"]) == (6, 0)


def test_p_by_hand(options):
    # 1 1 1 2 2 2 in order: of 20 splits only it and its mirror image are as steep, p = 2/20
    options["resamples"] = 4_000
    line = pick(drift_table(direct([1, 1, 1, 2, 2, 2]), **options), "score_drift_p", "direct")
    assert line["estimate"] == pytest.approx(0.1, abs=0.02)  # four standard errors of 4,000 draws


def test_slope_equals_statsmodels_with_a_level_for_each_system(options):
    calls = two_systems(40, 1.0, 3, missing=0.1)
    used = calls.dropna(subset=["total"]).assign(time=lambda t: t["order"] / 79)
    expected = smf.ols("total ~ time + C(system)", used).fit().params["time"]
    table = drift_table(calls, **options)
    assert pick(table, "score_drift", "direct")["estimate"] == pytest.approx(expected, abs=1e-10)
    residual = used["total"] - used.groupby("system")["total"].transform("mean")
    expected = spearmanr(used["time"], residual).statistic
    assert pick(table, "score_drift_spearman", "direct")["estimate"] == pytest.approx(expected, abs=1e-10)
    assert "without a total" in pick(table, "score_drift", "direct")["note"]


def test_a_system_that_comes_late_is_no_drift(options):
    # all of X, then all of Y, which is two points better: no trend within either
    calls = direct([2, 3, 3, 2, 4, 5, 5, 4], systems=["X"] * 4 + ["Y"] * 4, items=[0, 1, 2, 3] * 2)
    assert pick(drift_table(calls, **options), "score_drift", "direct")["estimate"] == pytest.approx(0)


def naive_p(calls, resamples=None):
    """Every swap of items with the same systems, one by one."""
    used = calls.dropna(subset=["total"])
    levels = used.groupby("system")["total"].mean()
    cells = {(r.item_id, r.system): (r.order, r.total - levels[r.system]) for r in used.itertuples()}
    systems = {item: tuple(sorted(s for i, s in cells if i == item)) for item in used["item_id"].unique()}
    kinds = [[i for i in systems if systems[i] == kind] for kind in sorted(set(systems.values()))]

    def slope(giver):
        pairs = [(s, cells[giver[i], s][0], y) for (i, s), (_, y) in cells.items()]
        frame = pd.DataFrame(pairs, columns=["s", "t", "y"])
        centred = frame["t"] - frame.groupby("s")["t"].transform("mean")
        return float((centred * frame["y"]).sum() / (centred**2).sum())

    slopes = []
    for choice in itertools.product(*(itertools.permutations(kind) for kind in kinds)):
        giver = {i: g for kind, drawn in zip(kinds, choice, strict=True) for i, g in zip(kind, drawn, strict=True)}
        slopes.append(abs(slope(giver)))
    return float(np.mean(np.array(slopes) >= slopes[0] - 1e-9))


@pytest.mark.parametrize("seed", [1, 2])
def test_p_equals_every_permutation_of_items(options, seed):
    calls = two_systems(5, 1.0, seed)
    calls.loc[calls.index[3], ["total", "status"]] = [np.nan, "unusable"]  # item 1 alone has no score of Y
    options["resamples"] = 2_000
    line = pick(drift_table(calls, **options), "score_drift_p", "direct")
    assert line["estimate"] == pytest.approx(naive_p(calls), abs=0.05)


def test_a_drift_is_found_and_a_constant_scale_stays_quiet(options):
    options["resamples"] = 99
    found = {0.0: [], 1.0: []}
    covered = 0
    for slope, seed in itertools.product(found, range(60)):
        table = drift_table(two_systems(60, slope, seed), **options)
        found[slope].append(pick(table, "score_drift_p", "direct")["estimate"] <= 0.05)
        line = pick(table, "score_drift", "direct")
        covered += line["ci_low"] <= slope <= line["ci_high"]
    # At 5 % of 60 more than 8 false alarms have a chance of 0.3 %. The slope of 1 is 1 / (0.71 / √(120 / 12)) = 4.5
    # standard errors.
    assert sum(found[0.0]) <= 8
    assert sum(found[1.0]) >= 55
    assert covered >= 0.86 * 120


def test_a_drift_of_the_place_is_found_and_a_constant_taste_stays_quiet(options):
    options["resamples"] = 20
    for late, least, most in ((0.6, 0, 5), (0.95, 30, 30)):
        alarms = 0
        for seed in range(30):
            rng = np.random.default_rng(seed)
            chance = np.linspace(1.2 - late, late, 300) if late > 0.6 else 0.6
            table = drift_table(pairwise(np.where(rng.random(300) < chance, "A", "B")), **options)
            alarms += pick(table, "first_position_drift_p", "original")["estimate"] <= 0.05
        assert least <= alarms <= most


def test_place_by_hand(options):
    # 12 calls: the first third is 0..3 (A B A tie), the last 8..11 (A A A A)
    line = pick(drift_table(pairwise([*"ABA", "TIE", *"BBBBAAAA"]), **options), *PLACE)
    assert line["estimate"] == pytest.approx(1 - 2 / 3)
    assert line["method"].startswith("last third 4 of 4 minus first third 2 of 3")
    assert line["note"] == "1 of 8 calls of the first and the last third left out: 1 tied"
    expected = confint_proportions_2indep(4, 4, 2, 3, method="newcomb", compare="diff")
    assert (line["ci_low"], line["ci_high"]) == pytest.approx(expected)
    assert (line["n_used"], line["n_excluded"]) == (7, 1)


PLACE = ("first_position_drift", "original")


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["A", "B", "TIE", None]), min_size=1, max_size=40), st.integers(1, 2))
def test_place_equals_a_plain_count(letters, per_item):
    table = drift_table(
        pairwise(letters, items=[k // per_item for k in range(len(letters))]), ci_level=0.9, resamples=20, seed=1
    )
    n = len(letters)
    late = [v for k, v in enumerate(letters) if k / n >= 2 / 3 - 1e-12 and v in ("A", "B")]
    early = [v for k, v in enumerate(letters) if k / n < 1 / 3 - 1e-12 and v in ("A", "B")]
    line, p = pick(table, *PLACE), pick(table, "first_position_drift_p", "original")
    if not late or not early or len(late) + len(early) < 6:
        assert line["note"].startswith("undefined: ")
        assert p["note"].startswith("undefined: ")
        return
    counts = [[part.count("A"), part.count("B")] for part in (late, early)]
    assert line["estimate"] == pytest.approx(late.count("A") / len(late) - early.count("A") / len(early))
    assert p["estimate"] == pytest.approx(fisher_exact(counts).pvalue)


def test_several_pairs_an_item_are_resampled_together(options):
    calls = pairwise(list("ABBABAABAABAAABAAA"), items=np.tile(np.arange(6), 3))
    table = drift_table(calls, **options)
    assert "bootstrap over items" in pick(table, *PLACE)["method"]
    assert np.isfinite(pick(table, "first_position_drift_p", "original")["estimate"])


def test_neither_rows_nor_names_matter(options):
    calls = pd.concat([two_systems(12, 0.5, 7, missing=0.1), pairwise(list("ABBAABBABAAB"))])
    expected = drift_table(calls, **options)
    shuffled = pd.concat([part.sample(frac=1, random_state=4) for _, part in calls.groupby("strategy")])
    pd.testing.assert_frame_equal(drift_table(shuffled, **options), expected)
    renamed = calls.assign(system=calls["system"].map({"X": "beta", "Y": "alpha"}), item_id=calls["item_id"] * -3)
    pd.testing.assert_frame_equal(drift_table(renamed, **options), expected)


def test_the_scale_may_be_shifted_and_turned_round(options):
    calls = two_systems(15, 0.5, 8)
    one = drift_table(calls, **options)
    other = drift_table(calls.assign(total=10 - calls["total"]), **options)
    assert pick(other, "score_drift", "direct")["estimate"] == pytest.approx(
        -pick(one, "score_drift", "direct")["estimate"]
    )
    measure = "score_drift_p"
    assert pick(other, measure, "direct")["estimate"] == pick(one, measure, "direct")["estimate"]


@pytest.mark.parametrize(
    ("totals", "items", "systems", "reason"),
    [
        ([1, 2, 3, 4, 5], None, None, "5 calls with a total, 6 are needed"),
        ([np.nan] * 8, None, None, "0 calls with a total, 6 are needed"),
        ([3] * 8, None, None, "every answer of a system got the same total"),
        ([1, 2] * 4, [0, 0, 1, 1, 2, 2, 3, 3], ["X", "Y"] * 4, "every answer of a system got the same total"),
    ],
)
def test_undefined_scores(options, totals, items, systems, reason):
    table = drift_table(direct(totals, items=items, systems=systems), **options)
    assert len(table) == 3
    assert table["estimate"].isna().all()
    assert table["note"].str.startswith(f"undefined: {reason}").all()


def test_no_two_items_alike_have_no_test(options):
    calls = direct([1, 2, 3, 1, 2, 5], items=[0, 0, 0, 1, 1, 2], systems=["X", "Y", "Z", "X", "Y", "X"])
    line = pick(drift_table(calls, **options), "score_drift_p", "direct")
    assert line["note"].startswith("undefined: no two items are scored for the same systems")


def test_a_third_without_a_preference(options):
    table = drift_table(pairwise(["TIE"] * 6 + list("AABBAB") + ["A", "B"] * 3), **options)
    assert pick(table, *PLACE)["note"].startswith("undefined: no verdict without a tie in the first third")


def test_no_rows(options):
    assert drift_table(direct([1.0]).iloc[:0], **options).empty


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": [0, 0, 1, 2, 3, 4]}, "occurs twice"),
        ({"order": [0, -1, 1, 2, 3, 4]}, "whole number"),
        ({"order": [0, 0.5, 1, 2, 3, 4]}, "whole number"),
        ({"order": [0, np.nan, 1, 2, 3, 4]}, "whole number"),
        ({"item_id": [0, 0, 1, 2, 3, 4]}, "scored twice"),
    ],
)
def test_refused_calls(options, change, message):
    with pytest.raises(ValueError, match=message):
        drift_table(direct([1, 2, 3, 1, 2, 3]).assign(**change), **options)


def test_refused_letter_and_column(options):
    with pytest.raises(ValueError, match="not allowed"):
        drift_table(pairwise(list("ABC")), **options)
    with pytest.raises(ValueError, match="missing column order"):
        drift_table(pairwise(list("AB")).drop(columns="order"), **options)
