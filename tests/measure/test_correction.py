"""Corrected rates against plain twins, by symmetry, at their edges, and against planted truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from judgelab.measure.correction import correction_table, pass_rate_table
from judgelab.measure.intervals import wilson
from judgelab.measure.judged_sample import JudgedSample, design_effect, simulate
from judgelab.measure.prediction_powered import prediction_powered
from judgelab.measure.rogan_gladen import rogan_gladen

from .conftest import make_normalized, pick

NAN = float("nan")
LEVEL = 0.95
LABELS = ("ALPHA", "BETA", "TIE")


@st.composite
def samples(draw, least=4, most=40):
    n = draw(st.integers(least, most))
    human = draw(arrays(float, n, elements=st.sampled_from([0.0, 1.0, NAN])))
    judge = draw(arrays(float, n, elements=st.sampled_from([0.0, 1.0])))
    return human, judge


def same(first, second):
    return all(a == pytest.approx(b, abs=1e-9, nan_ok=True) for a, b in zip(first, second, strict=True))


# Rogan-Gladen


def naive_rogan_gladen(human, judge):
    """Straight from the definition; None where it is undefined."""
    ones = [f for y, f in zip(human, judge, strict=True) if y == 1]
    zeros = [f for y, f in zip(human, judge, strict=True) if y == 0]
    if not ones or not zeros or len(ones) + len(zeros) < 2:
        return None
    tpr, tnr = sum(ones) / len(ones), sum(f == 0 for f in zeros) / len(zeros)
    if tpr + tnr - 1 <= 1e-12:
        return None
    return min(1, max(0, (sum(judge) / len(judge) + tnr - 1) / (tpr + tnr - 1)))


@given(samples())
def test_rogan_gladen_equals_its_definition(sample):
    found, expected = rogan_gladen(*sample, level=LEVEL), naive_rogan_gladen(*sample)
    if expected is None:
        assert np.isnan(found.estimate)
        assert found.note.startswith("undefined: ")
    else:
        assert found.estimate == pytest.approx(expected, abs=1e-12)


def test_published_formula_by_hand():
    # A judge that says yes to 40 % with TPR 0.9 and TNR 0.8: (0.4 + 0.8 - 1) / (0.9 + 0.8 - 1) = 0.2 / 0.7. Labelled:
    # 9 of 10 ones and 2 of 10 zeros called one; 25 of 70 others, so that p = (9 + 2 + 25) / 90 = 0.4.
    human = [1] * 10 + [0] * 10 + [NAN] * 70
    judge = [1] * 9 + [0] + [1] * 2 + [0] * 8 + [1] * 25 + [0] * 45
    found = rogan_gladen(human, judge, level=LEVEL)
    assert found.estimate == pytest.approx(0.2 / 0.7, abs=1e-12)
    assert found.basis == "TPR 9/10, TNR 8/10"


@given(samples())
def test_rogan_gladen_of_the_other_label_is_the_mirror_image(sample):
    human, judge = sample
    one, other = rogan_gladen(human, judge, level=LEVEL), rogan_gladen(1 - human, 1 - judge, level=LEVEL)
    assert same((one.estimate, one.low, one.high), (1 - other.estimate, 1 - other.high, 1 - other.low))


@given(samples(), st.randoms(use_true_random=False))
def test_no_correction_depends_on_the_order_or_the_names_of_items(sample, source):
    human, judge = sample
    order = source.sample(range(len(human)), len(human))
    items = np.arange(len(human)) // 2
    for correct in (rogan_gladen, prediction_powered):
        one = correct(human, judge, items, level=LEVEL)
        other = correct(human[order], judge[order], [f"i{items[k]}" for k in order], level=LEVEL)
        assert same(one[:5], other[:5])


def test_fieller_bounds_are_where_the_distance_is_z_errors():
    # The variance from its definition, as a function of θ, with half a unit in each labelled cell.
    human = np.array([1.0] * 20 + [0.0] * 15 + [NAN] * 65)
    judge = np.array([1] * 16 + [0] * 4 + [1] * 3 + [0] * 12 + [1] * 30 + [0] * 35, dtype=float)
    found = rogan_gladen(human, judge, level=LEVEL)
    rate, tpr, fpr = judge.mean(), 16.5 / 21, 3.5 / 16
    units = [(1, 1, 16.5), (1, 0, 4.5), (0, 1, 3.5), (0, 0, 12.5), (None, 1, 30), (None, 0, 35)]
    for theta in (found.low, found.high):
        variance = 0.0
        for y, f, count in units:
            influence = (f - rate) / 100
            influence -= theta * (f - tpr) / 21 if y == 1 else (1 - theta) * (f - fpr) / 16 if y == 0 else 0
            variance += count * influence**2
        distance = rate - theta * 16 / 20 - (1 - theta) * 3 / 15
        assert abs(distance) == pytest.approx(1.959963984540054 * variance**0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("human", "judge", "reason"),
    [
        ([1, 1, NAN], [1, 0, 1], "no labelled negative"),
        ([0, 0, NAN], [1, 0, 1], "no labelled positive"),
        ([NAN, NAN], [1, 0], "0 labelled item"),
        ([1, NAN], [1, 0], "1 labelled item"),
        ([1, 1, 0, 0, NAN], [1, 0, 1, 0, 1], "TPR + TNR − 1 is 0: the judge is no better than chance"),
        ([1, 1, 0, NAN], [0, 0, 1, 1], "TPR + TNR − 1 is -1"),
        ([], [], "0 labelled item"),
    ],
)
def test_rogan_gladen_is_undefined_with_a_reason(human, judge, reason):
    found = rogan_gladen(human, judge, level=LEVEL)
    assert np.isnan(found.estimate)
    assert np.isnan(found.low)
    assert reason in found.note


def test_a_judge_hardly_better_than_chance_gives_the_whole_interval():
    human = [1] * 10 + [0] * 10 + [NAN] * 50
    found = rogan_gladen(human, [1] * 6 + [0] * 4 + [1] * 5 + [0] * 5 + [1] * 28 + [0] * 22, level=LEVEL)
    assert (found.low, found.high) == (0, 1)
    assert "cannot be told from 0" in found.note


def test_an_estimate_beyond_its_range_is_cut_and_says_so():
    # p = (8 + 1 + 60) / 80 = 0.8625, TPR 0.8, FPR 0.1: (0.8625 - 0.1) / 0.7 = 1.089.
    human = [1] * 10 + [0] * 10 + [NAN] * 60
    found = rogan_gladen(human, [1] * 8 + [0] * 2 + [1] + [0] * 9 + [1] * 60, level=LEVEL)
    assert found.estimate == 1
    assert "cut to [0, 1] from 1.09" in found.note


# PPI++


def naive_prediction_powered(human, judge):
    """λ and estimate in plain Python: cov divided by n, pooled variance by n + N − 1, as ppi_py's mean does."""
    pairs = [(y, f) for y, f in zip(human, judge, strict=True) if y == y]
    rest = [f for y, f in zip(human, judge, strict=True) if y != y]
    n, y_mean, f_mean = len(pairs), sum(y for y, _ in pairs) / len(pairs), sum(f for _, f in pairs) / len(pairs)
    if not rest:
        return 0.0, y_mean
    covariance = sum((y - y_mean) * (f - f_mean) for y, f in pairs) / n
    pooled = sum(judge) / len(judge)
    variance = sum((f - pooled) ** 2 for f in judge) / (len(judge) - 1)
    share = min(1, max(0, covariance / ((1 + n / len(rest)) * variance))) if variance > 1e-12 else 0.0
    return share, min(1, max(0, y_mean + share * (sum(rest) / len(rest) - f_mean)))


@given(samples())
def test_prediction_powered_equals_its_definition(sample):
    found = prediction_powered(*sample, level=LEVEL)
    if (~np.isnan(sample[0])).sum() < 2:
        assert found.note.startswith("undefined: ")
        return
    assert same((found.weight, found.estimate), naive_prediction_powered(*sample))
    assert found.low <= found.estimate <= found.high


@given(samples())
def test_prediction_powered_of_the_other_label_is_the_mirror_image(sample):
    human, judge = sample
    one, other = (prediction_powered(y, f, level=LEVEL) for y, f in ((human, judge), (1 - human, 1 - judge)))
    assert same((one.estimate, one.low, one.high), (1 - other.estimate, 1 - other.high, 1 - other.low))


@given(samples())
def test_without_weight_it_is_the_labelled_rate_on_nearly_that_many_labels(sample):
    labelled = sample[0][~np.isnan(sample[0])]
    if len(labelled) < 2:
        return
    found = prediction_powered(*sample, level=LEVEL, weight=0.0)
    n, rate = len(labelled), labelled.mean()
    smoothed = (labelled.sum() + 0.5) / (n + 1)
    assert found.estimate == rate
    assert found.variance == pytest.approx(smoothed * (1 - smoothed) / n, abs=1e-12)
    assert (found.low, found.high) == pytest.approx(wilson(rate * n, n, LEVEL), abs=1e-9)


def test_weight_is_the_tuned_one_where_the_variance_is_least():
    rng = np.random.default_rng(3)
    sample = simulate(
        n_labelled=300, n_judged=3000, rate=0.6, sensitivity=0.8, specificity=0.8, pairs=1, together=0, rng=rng
    )
    data = (sample.human, sample.judge, sample.items)
    tuned = prediction_powered(*data, level=LEVEL)
    around = [prediction_powered(*data, level=LEVEL, weight=tuned.weight + d).variance for d in (-0.1, 0.1)]
    assert tuned.variance < min(around)
    # TPR = TNR = 0.8: cov = 0.6 · 0.4 · 0.6, var f = 0.56 · 0.44, and n/N = 1/9.
    assert tuned.weight == pytest.approx(0.144 / (0.2464 * 10 / 9), abs=0.08)


def test_a_judge_that_says_one_thing_adds_nothing():
    found = prediction_powered([1, 1, 0, 0, NAN, NAN], [1] * 6, level=LEVEL)
    assert (found.weight, found.estimate) == (0, 0.5)
    assert "do not vary" in found.note


def test_a_judge_that_contradicts_people_gets_no_weight():
    found = prediction_powered([1, 1, 0, 0, NAN, NAN], [0, 0, 1, 1, 1, 1], level=LEVEL)
    assert (found.weight, found.estimate) == (0, 0.5)
    assert "correlation with people is -1.00" in found.note


@pytest.mark.parametrize(
    ("human", "judge", "items", "message"),
    [
        ([1, 2], [1, 0], None, "1 of 2 human labels are not allowed, first 2"),
        ([1, 0], [1, np.inf], None, "1 of 2 decisions of the judge are not allowed, first inf"),
        ([1, 0], [1, NAN], None, "1 of 2 decisions of the judge are not allowed, first nan"),
        ([1, 0], [1], None, "2 human labels, 1 decisions"),
        ([1, 0], [1, 0], [1], "2 human labels, 2 decisions, 1 items"),
    ],
)
def test_wrong_arrays_are_refused(human, judge, items, message):
    for correct in (rogan_gladen, prediction_powered):
        with pytest.raises(ValueError, match=message):
            correct(human, judge, items, level=LEVEL)


def test_half_decisions_are_for_prediction_powered_inference_only():
    human, judge = [1, 0, NAN], [1, 0.5, 0.5]
    # cov = 1/8, pooled variance 1/12, n/N = 2: λ = 1/2, θ = 1/2 + 1/2 (1/2 - 3/4).
    assert prediction_powered(human, judge, level=LEVEL).estimate == pytest.approx(0.375, abs=1e-12)
    with pytest.raises(ValueError, match=r"2 of 3 decisions are not 0 or 1, first 0\.5"):
        rogan_gladen(human, judge, level=LEVEL)
    with pytest.raises(ValueError, match="weight is 2"):
        prediction_powered(human, judge, level=LEVEL, weight=2)


# Clusters


def test_units_that_only_repeat_their_item_count_once():
    rng = np.random.default_rng(8)
    one = simulate(
        n_labelled=80, n_judged=800, rate=0.7, sensitivity=0.85, specificity=0.8, pairs=1, together=0, rng=rng
    )
    thrice = [np.repeat(values, 3) for values in (one.human, one.judge, one.items)]
    for correct in (rogan_gladen, prediction_powered):
        single, repeated = correct(one.human, one.judge, level=LEVEL), correct(*thrice, level=LEVEL)
        assert repeated.estimate == pytest.approx(single.estimate, abs=1e-3)
        assert repeated.high - repeated.low == pytest.approx(single.high - single.low, rel=0.04)
        naive = correct(*thrice[:2], level=LEVEL)
        assert naive.high - naive.low == pytest.approx((single.high - single.low) / 3**0.5, rel=0.06)


def test_few_items_of_the_rarer_label_are_noted_where_items_have_several_units():
    # 60 items of two equal units, 40 of them labelled; people say 0 on 14 and on 15 of these.
    for fewest, noted in ((14, True), (15, False)):
        human = np.repeat(np.append(np.repeat([0.0, 1.0], [fewest, 40 - fewest]), [NAN] * 20), 2)
        judge, items = np.where(np.isnan(human), 1.0, human), np.repeat(np.arange(60), 2)
        clustered = prediction_powered(human, judge, items, level=LEVEL)
        assert ("covers a little less" in clustered.note) == noted
        assert prediction_powered(human, judge, level=LEVEL).note == ""
        # t with 39 degrees of freedom 2.02269, z 1.95996; equal units make the variance twice as large.
        plain = prediction_powered(human, judge, level=LEVEL).variance
        single = prediction_powered(human, judge, items, level=LEVEL, weight=clustered.weight).variance
        other = prediction_powered(human, judge, level=LEVEL, weight=clustered.weight).variance
        assert single == pytest.approx(other * 2 * 40 / 39 * (2.02269 / 1.95996) ** 2, rel=1e-4)
        assert clustered.variance > plain


def test_design_effect():
    # Two items of two units: (1 + 1)² + (1 + 1)² over 4 · 1 = 2; opposite influences never make it less than 1.
    assert design_effect(np.ones(4), np.array([0, 0, 1, 1])) == 2
    assert design_effect(np.array([1.0, -1.0]), np.array([0, 0])) == 1
    assert design_effect(np.array([1.0, -3.0]), np.array([0, 1])) == 1
    assert design_effect(np.zeros(2), np.array([0, 0])) == 1


# Coverage


@pytest.mark.parametrize(
    ("rate", "n_labelled", "pairs"),
    [(0.5, 30, 1), (0.5, 100, 1), (0.95, 100, 1), (0.95, 30, 1), (0.7, 60, 3)],
)
def test_corrected_intervals_hold_the_truth(rate, n_labelled, pairs):
    # 1,000 studies: a coverage of 0.95 has a standard error of 0.007. Judge: TPR 0.9, TNR 0.8; with three pairs an
    # item, two items in five have three equal ones.
    rng = np.random.default_rng(20)
    held, defined = np.zeros(2), np.zeros(2)
    for _ in range(1000):
        sample = simulate(
            n_labelled=n_labelled,
            n_judged=10 * n_labelled,
            rate=rate,
            sensitivity=0.9,
            specificity=0.8,
            pairs=pairs,
            together=0.4 * (pairs > 1),
            rng=rng,
        )
        for place, correct in enumerate((rogan_gladen, prediction_powered)):
            found = correct(sample.human, sample.judge, sample.items, level=LEVEL)
            if not np.isnan(found.low):
                defined[place] += 1
                held[place] += found.low <= rate <= found.high
    assert (held / defined > 0.93).all(), held / defined
    assert (held / defined < 0.98).all(), held / defined
    assert defined[1] == 1000


def test_rates_that_ignore_the_judges_errors_miss_the_truth():
    # Why a correction at all: 0.9 · 0.95 + 0.2 · 0.05 = 0.865 is what the judge says where people say 0.95.
    sample = simulate(
        n_labelled=100,
        n_judged=2000,
        rate=0.95,
        sensitivity=0.9,
        specificity=0.8,
        pairs=1,
        together=0,
        rng=np.random.default_rng(4),
    )
    _, high = wilson(sample.judge.sum(), len(sample.judge), LEVEL)
    assert high < 0.95


def test_simulated_studies_are_as_planted():
    rng = np.random.default_rng(6)
    sample = simulate(
        n_labelled=20_000, n_judged=50_000, rate=0.3, sensitivity=0.9, specificity=0.7, pairs=2, together=0.5, rng=rng
    )
    ones = sample.human == 1
    assert sample.n_labelled_items == 20_000
    assert sample.human[sample.labelled].mean() == pytest.approx(0.3, abs=0.01)
    assert sample.judge[ones].mean() == pytest.approx(0.9, abs=0.01)
    assert 1 - sample.judge[sample.human == 0].mean() == pytest.approx(0.7, abs=0.01)
    with pytest.raises(ValueError, match="3 labelled of 2 judged items"):
        simulate(n_labelled=3, n_judged=2, rate=0.5, sensitivity=1, specificity=1, pairs=1, together=0, rng=rng)


# Tables


def study(n_labelled=40, n=200, seed=1, **options):
    """Human labels 60/30/10; the judge repeats them with 0.85, else any; the first items are labelled."""
    rng = np.random.default_rng(seed)
    human = rng.choice(LABELS, n, p=[0.6, 0.3, 0.1]).astype(object)
    judged = np.where(rng.random(n) < 0.85, human, rng.choice(LABELS, n)).astype(object)
    human[n_labelled:] = None
    return make_normalized(human, None, judged, **options)


def test_table_rows_are_the_core_functions_numbers(options):
    table = study()
    found = correction_table(table, labels=LABELS, **options)
    assert set(found["slice"]) == {"system=ALPHA", "system=BETA"}
    assert len(found) == 2 * 6
    human = np.where(table["human"].notna(), table["human"] == "ALPHA", NAN).astype(float)
    judge = (table["pair_original"] == "ALPHA").to_numpy(dtype=float)
    for name, correct in (("rogan_gladen", rogan_gladen), ("ppi", prediction_powered)):
        line, expected = pick(found, f"win_rate_{name}", "original", "system=ALPHA"), correct(human, judge, level=LEVEL)
        assert (line["estimate"], line["ci_low"], line["ci_high"]) == expected[:3]
        assert line["n_used"] == 200
        gain = pick(found, f"correction_gain_{name}", "original", "system=ALPHA")
        alone = prediction_powered(human, judge, level=LEVEL, weight=0.0)
        assert gain["estimate"] == alone.variance / expected.variance
        assert "40 labelled pairs do the work of" in gain["note"]
    raw = pick(found, "win_rate_judge", "original", "system=ALPHA")
    assert (raw["numerator"], raw["denominator"]) == (int(judge.sum()), 200)
    alone = pick(found, "win_rate_labelled", "original", "system=ALPHA")
    assert alone["estimate"] == pytest.approx(np.nanmean(human))
    assert (alone["ci_low"], alone["ci_high"]) == wilson(np.nansum(human), 40, LEVEL)
    assert alone["note"] == "40 of 200 judged pairs are labelled"


def test_a_good_judge_is_worth_labels(options):
    found = correction_table(study(n_labelled=100, n=2000), labels=LABELS, **options)
    alone, better = (pick(found, f"win_rate_{name}", "original", "system=ALPHA") for name in ("labelled", "ppi"))
    assert better["ci_high"] - better["ci_low"] < alone["ci_high"] - alone["ci_low"]
    assert pick(found, "correction_gain_ppi", "original", "system=ALPHA")["estimate"] > 1.5


def test_a_bad_judge_brings_a_warning(options):
    rng = np.random.default_rng(2)
    human = rng.choice(["ALPHA", "BETA"], 300).astype(object)
    judged = np.where(rng.random(300) < 0.2, human, rng.choice(["ALPHA", "BETA"], 300))
    human[60:] = None
    found = correction_table(make_normalized(human, None, judged), labels=LABELS, **options)
    line = pick(found, "win_rate_rogan_gladen", "original", "system=ALPHA")
    assert "wider than labels alone: use the labelled rate" in line["note"]
    gain = pick(found, "correction_gain_rogan_gladen", "original", "system=ALPHA")
    assert gain["estimate"] < 1
    assert "correction is worse than labels alone" in gain["note"]


def test_nothing_is_gained_where_all_are_labelled(options):
    found = correction_table(study(n_labelled=200), labels=LABELS, **options)
    alone = pick(found, "win_rate_labelled", "original", "system=ALPHA")
    for name in ("rogan_gladen", "ppi"):
        line = pick(found, f"win_rate_{name}", "original", "system=ALPHA")
        assert [line[k] for k in ("estimate", "ci_low", "ci_high")] == pytest.approx(
            [alone[k] for k in ("estimate", "ci_low", "ci_high")], abs=1e-12
        )
        assert "every judged unit is labelled: nothing is gained" in line["note"]
        assert pick(found, f"correction_gain_{name}", "original", "system=ALPHA")["estimate"] == 1


def test_tables_without_labels_or_verdicts_say_so(options):
    found = correction_table(study(n_labelled=0), labels=LABELS, **options)
    judge = found[found["measure"] == "win_rate_judge"]
    others = found[found["measure"] != "win_rate_judge"]
    assert judge["estimate"].notna().all()
    assert others["estimate"].isna().all()
    assert others["note"].str.startswith("undefined: ").all()
    nothing = make_normalized(["ALPHA"] * 3, None, [None] * 3)
    nothing["planned_original"] = True
    found = correction_table(nothing, labels=LABELS, **options)
    assert found["estimate"].isna().all()
    assert found["note"].str.contains("undefined: ").all()
    assert correction_table(nothing.iloc[:0], labels=LABELS, **options).empty


def test_one_labelled_item_of_several_pairs_is_one_item(options):
    table = make_normalized(
        ["ALPHA", "BETA", None, None], None, ["ALPHA", "BETA", "ALPHA", "BETA"], items=["a", "a", "b", "b"]
    )
    found = correction_table(table, labels=LABELS, **options)
    for name in ("win_rate_rogan_gladen", "win_rate_ppi", "correction_gain_ppi", "correction_gain_rogan_gladen"):
        assert pick(found, name, "original", "system=ALPHA")["note"].startswith("undefined: 1 labelled item")


def test_unusable_verdicts_are_left_out_and_counted(options):
    table = study()
    table.loc[[0, 199], "pair_original"] = np.nan
    found = correction_table(table, labels=LABELS, **options)
    raw = pick(found, "win_rate_judge", "original", "system=ALPHA")
    assert raw["note"] == "2 of 200 pairs left out: 2 without usable verdict"
    assert pick(found, "win_rate_labelled", "original", "system=ALPHA")["denominator"] == 39
    corrected = pick(found, "win_rate_ppi", "original", "system=ALPHA")
    assert (corrected["n_used"], corrected["n_excluded"]) == (198, 2)


def scored(n=60, n_labelled=30):
    rng = np.random.default_rng(5)
    table = make_normalized(["ALPHA"] * n, ["ALPHA"] * n)
    for side in "xy":
        truth = rng.integers(1, 6, n).astype(float)
        table[f"total_{side}"] = np.clip(truth + rng.integers(-1, 2, n), 1, 5)
        table[f"human_score_{side}"] = np.where(np.arange(n) < n_labelled, truth, NAN)
    return table


def test_pass_rates_by_system(options):
    table = scored()
    found = pass_rate_table(table, threshold=4, **options)
    line = pick(found, "pass_rate_judge", "direct", "system=BETA")
    assert line["numerator"] == int((table["total_y"] >= 4).sum())
    assert line["method"] == "pass: score 4 or more; Wilson"
    labelled = pick(found, "pass_rate_labelled", "direct", "system=BETA")
    assert (labelled["numerator"], labelled["denominator"]) == (int((table["human_score_y"] >= 4).sum()), 30)
    human = np.where(table["human_score_y"].notna(), table["human_score_y"] >= 4, NAN).astype(float)
    expected = rogan_gladen(human, (table["total_y"] >= 4).astype(float), level=LEVEL)
    assert pick(found, "pass_rate_rogan_gladen", "direct", "system=BETA")["estimate"] == expected.estimate


def test_a_total_that_is_the_threshold_but_for_rounding_passes(options):
    table = scored()
    table["total_x"] = 0.1 + 0.2  # 0.30000000000000004
    table["total_y"] = 0.7 - 0.4  # 0.29999999999999993
    found = pass_rate_table(table, threshold=0.3, **options)
    assert (found[found["measure"] == "pass_rate_judge"]["estimate"] == 1).all()


def test_answers_in_several_pairs_count_once(options):
    table = scored()
    twice = table.loc[table.index.repeat(2)].reset_index(drop=True)
    one, two = (pass_rate_table(t, threshold=4, **options) for t in (table, twice))
    assert one.equals(two)


def test_pass_rates_refuse_nonsense(options):
    with pytest.raises(ValueError, match="threshold is nan"):
        pass_rate_table(scored(), threshold=NAN, **options)
    table = scored()
    table.loc[3, "total_x"] = np.inf
    with pytest.raises(ValueError, match="1 of 60 judge scores are infinite"):
        pass_rate_table(table, threshold=4, **options)
    with pytest.raises(ValueError, match="missing column total_x"):
        pass_rate_table(table.drop(columns="total_x"), threshold=4, **options)


def test_items_of_a_sample_are_numbered():
    sample = JudgedSample.of([1, 0, NAN], [1, 1, 0], ["b", "b", "a"])
    assert sample.items.tolist() == [1, 1, 0]
    assert sample.n_labelled_items == 1
