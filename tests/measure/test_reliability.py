"""Reviewers' agreement: the canonical example, the package krippendorff, and a loop over resampled units."""

import itertools

import krippendorff
import numpy as np
import pandas as pd
import pingouin
import pytest
from agreement import gwets_gamma
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from judgelab.measure.alpha import alpha_from_totals, unit_features
from judgelab.measure.reliability import alpha_with_judge, reviewer_table

from .conftest import ALPHA_BETA, make_normalized, pick

A, B, T = ALPHA_BETA
LABELS = {"labels_allowed": ALPHA_BETA}

# Krippendorff, "Computing Krippendorff's alpha-reliability", 2011, section C: four observers, twelve units.
CANONICAL = """
1 2 3 3 2 1 4 1 2 . . .
1 2 3 3 2 2 4 1 2 5 . 3
. 3 3 3 2 3 4 2 2 5 1 .
1 2 3 3 2 4 4 1 2 5 1 .
"""


def canonical():
    rows = [line.split() for line in CANONICAL.strip().splitlines()]
    return np.array([[np.nan if value == "." else float(value) for value in row] for row in rows])


def features_of(ratings, n_labels):
    """Unit features of a matrix raters x units with values 0 .. n_labels - 1 and NaN."""
    units = np.broadcast_to(np.arange(ratings.shape[1]), ratings.shape)
    given_ = ~np.isnan(ratings)
    return unit_features(units[given_], ratings[given_].astype(int), n_labels)


def test_alpha_of_the_canonical_example():
    _, features = features_of(canonical() - 1, 5)
    assert alpha_from_totals(features.sum(axis=0, keepdims=True))[0] == pytest.approx(0.743, abs=5e-4)


@given(st.lists(st.lists(st.sampled_from([0, 1, 2, np.nan]), min_size=4, max_size=4), min_size=2, max_size=12))
def test_alpha_equals_the_package(units):
    ratings = np.array(units).T
    counted = ratings[:, (~np.isnan(ratings)).sum(axis=0) >= 2]
    assume(counted.size and len(np.unique(counted[~np.isnan(counted)])) > 1)
    _, features = features_of(ratings, 3)
    expected = krippendorff.alpha(ratings, level_of_measurement="nominal")
    assert alpha_from_totals(features.sum(axis=0, keepdims=True))[0] == pytest.approx(expected, abs=1e-12)


def test_resampled_alpha_equals_the_package_on_the_drawn_units():
    rng = np.random.default_rng(1)
    ratings = rng.integers(0, 3, (3, 20)).astype(float)
    ratings[rng.random(ratings.shape) < 0.15] = np.nan
    pairable, features = features_of(ratings, 3)
    for _ in range(20):
        drawn = rng.choice(len(pairable), len(pairable))
        expected = krippendorff.alpha(ratings[:, pairable[drawn]], level_of_measurement="nominal")
        assert alpha_from_totals(features[drawn].sum(axis=0, keepdims=True))[0] == pytest.approx(expected, abs=1e-12)


def make_labels(by_reviewer, **more):
    """Initial labels; None is no label."""
    rows = [
        {"item_id": i, "reviewer_id": name, "system_x": A, "system_y": B, "preference": label, "is_adjudicated": False}
        for name, given_ in by_reviewer.items()
        for i, label in enumerate(given_)
        if label is not None
    ]
    columns = ["item_id", "reviewer_id", "system_x", "system_y", "preference", "is_adjudicated"]
    return pd.DataFrame(rows, columns=columns).assign(score_x=np.nan, score_y=np.nan, **more)


THREE = {"r01": [A, A, B, T, A, B], "r02": [A, B, B, T, A, None], "r03": [A, A, B, B, None, None]}


def test_reviewers_by_hand(options):
    table = reviewer_table(make_labels(THREE), **LABELS, **options)
    pairs = {"r01,r02": (4, 5), "r01,r03": (3, 4), "r02,r03": (2, 4)}
    for names, expected in pairs.items():
        line = pick(table, "exact_agreement", "", f"reviewers={names}", judge="")
        assert (line["numerator"], line["denominator"]) == expected
        one, two = (list(THREE[name]) for name in names.split(","))
        both = [(a, b) for a, b in zip(one, two, strict=True) if a and b]
        kappa = cohen_kappa_score(*zip(*both, strict=True), labels=list(ALPHA_BETA))
        got = pick(table, "cohen_kappa", "", f"reviewers={names}", judge="")["estimate"]
        assert got == pytest.approx(kappa, abs=1e-12)
    pooled = pick(table, "exact_agreement", "", judge="")
    assert (pooled["numerator"], pooled["denominator"], pooled["n_used"], pooled["n_excluded"]) == (9, 13, 5, 1)
    assert "bootstrap over items" in pooled["method"]
    ties = pick(table, "tie_rate", "", judge="")
    assert (ties["numerator"], ties["denominator"]) == (2, 15)
    assert pick(table, "tie_rate", "", "reviewer=r03", judge="")["numerator"] == 0


def test_alpha_row_names_its_level_and_equals_the_package(options):
    table = reviewer_table(make_labels(THREE), **LABELS, **options)
    code = {A: 0, B: 1, T: 2, None: np.nan}
    ratings = [[code[label] for label in given_] for given_ in THREE.values()]
    line = pick(table, "krippendorff_alpha", "", judge="")
    assert line["estimate"] == pytest.approx(krippendorff.alpha(ratings, level_of_measurement="nominal"), abs=1e-12)
    assert line["method"].startswith("nominal level; percentile bootstrap over items")
    assert line["ci_low"] <= line["estimate"] <= line["ci_high"]


def test_adjudicated_labels_are_not_initial(options):
    labels = make_labels(THREE)
    adjudicated = make_labels({"adjudicator": [B] * 6}).assign(is_adjudicated=True)
    both = reviewer_table(pd.concat([labels, adjudicated]), **LABELS, **options)
    pd.testing.assert_frame_equal(both, reviewer_table(labels, **LABELS, **options))


def test_two_reviewers_have_wilsons_interval(options):
    table = reviewer_table(make_labels({"r01": [A, B, T], "r02": [A, B, A]}), **LABELS, **options)
    assert pick(table, "exact_agreement", "", judge="")["method"] == "Wilson"


def test_scores_of_two_reviewers(options):
    labels = make_labels({"r01": [A, B, T], "r02": [A, B, A]})
    labels["score_x"], labels["score_y"] = [5, 2, 3, 4, 2, 3], [1, 4, 3, 2, 5, 2]
    table = reviewer_table(labels, **LABELS, **options)
    # second minus first over the six answers: -1 0 0 1 1 -1
    assert pick(table, "mean_absolute_difference", "", "reviewers=r01,r02", judge="")["estimate"] == 4 / 6
    assert pick(table, "mean_difference", "", "reviewers=r01,r02", judge="")["estimate"] == 0
    line = pick(table, "spearman", "", "reviewers=r01,r02", judge="")
    assert (line["n_used"], line["note"].split(";")[-1].strip()) == (3, "over 6 answers")


def test_order_and_names_of_reviewers_change_no_pooled_number(options):
    one = reviewer_table(make_labels(THREE), **LABELS, **options)
    turned = dict(zip(("r03", "r02", "r01"), THREE.values(), strict=True))
    two = reviewer_table(make_labels(turned), **LABELS, **options)
    for measure in ("exact_agreement", "krippendorff_alpha", "tie_rate"):
        pd.testing.assert_series_equal(
            pick(one, measure, "", judge=""), pick(two, measure, "", judge=""), check_names=False
        )


def test_several_pairs_of_an_item_stay_together(options):
    labels = make_labels({"r01": [A, B, A, B], "r02": [A, B, B, A]})
    labels["item_id"] = [0, 0, 1, 1] * 2
    labels["system_y"] = [B, "C", B, "C"] * 2
    labels["preference"] = labels["preference"].replace({B: A})
    labels.loc[labels.index[6:], "preference"] = T
    line = pick(reviewer_table(labels, **LABELS, **options), "exact_agreement", "", judge="")
    # Two items, one agreeing twice and one never: resampled whole, the rate is 0, 1/2 or 1.
    assert (line["estimate"], line["n_used"], line["ci_low"], line["ci_high"]) == (0.5, 2, 0, 1)


@pytest.mark.parametrize(
    ("by_reviewer", "reason"),
    [
        ({}, "0 reviewers"),
        ({"r01": [A, B]}, "1 reviewer with initial labels"),
        ({"r01": [A, None], "r02": [None, B]}, "2 reviewers with initial labels, no item in common"),
    ],
)
def test_without_two_reviewers_agreement_is_undefined(by_reviewer, reason, options):
    table = reviewer_table(make_labels(by_reviewer), **LABELS, **options)
    for measure in ("exact_agreement", "krippendorff_alpha"):
        line = pick(table, measure, "", judge="")
        assert np.isnan(line["estimate"])
        assert reason in line["note"]
    assert not table["slice"].str.startswith("reviewers=").any()


def test_one_label_has_no_alpha_and_no_kappa(options):
    table = reviewer_table(make_labels({"r01": [A, A], "r02": [A, A]}), **LABELS, **options)
    assert np.isnan(pick(table, "krippendorff_alpha", "", judge="")["estimate"])
    assert np.isnan(pick(table, "cohen_kappa", "", "reviewers=r01,r02", judge="")["estimate"])
    assert pick(table, "exact_agreement", "", judge="")["estimate"] == 1


def test_input_that_cannot_be_used_is_refused(options):
    labels = make_labels({"r01": [A, B]})
    with pytest.raises(ValueError, match="1 of 3 initial labels repeat an item and reviewer; first item 0"):
        reviewer_table(pd.concat([labels, labels.iloc[:1]]), **LABELS, **options)
    with pytest.raises(ValueError, match="alpha_level is 'interval'"):
        reviewer_table(labels, **LABELS, alpha_level="interval", **options)
    with pytest.raises(ValueError, match="labels are not allowed"):
        reviewer_table(make_labels({"r01": ["alpha"]}), **LABELS, **options)


def test_alpha_with_a_judge_equals_the_package(options):
    judged = [A, B, B, T, B, A]
    study = make_normalized([A] * 6, judged, [A, None, B, T, A, A])
    table = alpha_with_judge(make_labels(THREE), study, **LABELS, **options)
    code = {A: 0, B: 1, T: 2, None: np.nan}
    # Item 6 has one initial label, and is left out on both sides.
    people = [[code[label] for label in given_[:5]] for given_ in THREE.values()]
    judge = [code[label] for label in judged[:5]]
    alone = krippendorff.alpha(people, level_of_measurement="nominal")
    joint = krippendorff.alpha([*people, judge], level_of_measurement="nominal")
    names = ("krippendorff_alpha", "krippendorff_alpha_reviewers", "krippendorff_alpha_difference")
    got = [pick(table, name, "direct")["estimate"] for name in names]
    assert got == pytest.approx([joint, alone, joint - alone], abs=1e-12)
    line = pick(table, "krippendorff_alpha", "original")
    assert (line["n_used"], line["n_excluded"]) == (4, 2)


def test_alpha_with_a_judge_without_overlap(options):
    study = make_normalized([A] * 6, [None] * 6)
    table = alpha_with_judge(make_labels(THREE), study, **LABELS, **options)
    assert len(table) == 3
    assert table["estimate"].isna().all()
    assert table["note"].str.startswith("undefined: ").all()


@pytest.mark.data
def test_pandalm_published_kappas(shared, options):
    import json

    path = next((shared / "data/pandalm").rglob("testset-v1.json"))
    records = json.loads(path.read_text(encoding="utf-8"))
    label = {0: T, 1: A, 2: B}
    by_reviewer = {f"r{k}": [label[int(r[f"annotator{k}"])] for r in records] for k in (1, 2, 3)}
    table = reviewer_table(make_labels(by_reviewer), **LABELS, **options)
    kappas = [
        pick(table, "cohen_kappa", "", f"reviewers=r{a},r{b}", judge="")["estimate"]
        for a, b in itertools.combinations((1, 2, 3), 2)
    ]
    # PandaLM's paper: Cohen's kappa 0.85, 0.88, 0.86; alpha 0.8642 by the data's README.
    assert sorted(round(kappa, 2) for kappa in kappas) == [0.85, 0.86, 0.88]
    assert pick(table, "krippendorff_alpha", "", judge="")["estimate"] == pytest.approx(0.8642, abs=5e-5)


def fleiss_1971():
    """Fleiss, 1971, table 1, as it stands in Wikipedia, "Fleiss' kappa": ten subjects, fourteen raters, five labels."""
    counts = """
    0 0 0 0 14
    0 2 6 4 2
    0 0 3 5 6
    0 3 9 2 0
    2 2 8 1 1
    7 7 0 0 0
    3 2 6 3 0
    2 5 3 2 2
    6 5 2 1 0
    0 2 2 3 7
    """
    rows = [[int(value) for value in line.split()] for line in counts.strip().splitlines()]
    return [[label for label, times in zip("abcde", row, strict=True) for _ in range(times)] for row in rows]


def test_fleiss_kappa_of_the_published_table():
    subjects = fleiss_1971()
    labels = make_labels({f"r{k:02}": [subject[k] for subject in subjects] for k in range(14)})
    table = reviewer_table(labels, labels_allowed=tuple("abcde"), ci_level=0.95, resamples=20, seed=1)
    line = pick(table, "fleiss_kappa", "", judge="")
    assert round(line["estimate"], 3) == 0.210
    assert line["method"].startswith("14 labels a unit")
    assert (line["n_used"], line["n_excluded"]) == (10, 0)


@given(st.lists(st.lists(st.sampled_from(ALPHA_BETA), min_size=3, max_size=3), min_size=2, max_size=12))
@hypothesis_settings(max_examples=25)
def test_fleiss_ac1_and_pabak_equal_other_packages(units):
    labels = make_labels({f"r{k}": [unit[k] for unit in units] for k in range(3)})
    table = reviewer_table(labels, **LABELS, ci_level=0.95, resamples=2, seed=1)
    codes = np.array([[ALPHA_BETA.index(label) for label in unit] for unit in units])
    if len(np.unique(codes)) > 1:
        counts = aggregate_raters(codes, n_cat=3)[0]
        ours = pick(table, "fleiss_kappa", "", judge="")["estimate"]
        assert ours == pytest.approx(fleiss_kappa(counts), abs=1e-12)
    for a, b in itertools.combinations(range(3), 2):
        one, two = codes[:, a], codes[:, b]
        used = np.unique(codes[:, [a, b]])
        where = {"judge": "", "slice_": f"reviewers=r{a},r{b}"}
        if len(used) > 1:
            units_by_label = np.array([[np.sum(unit[[a, b]] == k) for k in used] for unit in codes])
            ours = pick(table, "gwet_ac1", "", **where)["estimate"]
            assert ours == pytest.approx(gwets_gamma(units_by_label), abs=1e-9)
            observed, q = np.mean(one == two), len(used)
            assert pick(table, "pabak", "", **where)["estimate"] == pytest.approx((q * observed - 1) / (q - 1))


def test_fleiss_leaves_units_with_fewer_labels_out(options):
    # THREE: items 0 to 3 have three labels, item 4 two, item 5 two.
    line = pick(reviewer_table(make_labels(THREE), **LABELS, **options), "fleiss_kappa", "", judge="")
    assert (line["n_used"], line["n_excluded"]) == (4, 2)
    assert "2 of 6 units left out: another number of labels" in line["note"]
    codes = [[ALPHA_BETA.index(label) for label in unit] for unit in zip(*THREE.values(), strict=True) if all(unit)]
    assert line["estimate"] == pytest.approx(fleiss_kappa(aggregate_raters(np.array(codes), n_cat=3)[0]), abs=1e-12)


def with_scores(seed=3, n=15):
    rng = np.random.default_rng(seed)
    labels = make_labels({name: [A] * n for name in ("r01", "r02", "r03")})
    quality = np.tile(rng.integers(1, 5, n), 3)
    for side in "xy":
        labels[f"score_{side}"] = (quality + rng.integers(0, 2, 3 * n)).astype(float)
    labels.loc[[0, 20], "score_x"] = np.nan
    return labels


def test_alpha_and_icc_of_scores_equal_other_packages(options):
    labels = with_scores()
    table = reviewer_table(labels, **LABELS, **options)
    wide = {side: labels.pivot_table(index="item_id", columns="reviewer_id", values=f"score_{side}") for side in "xy"}
    answers = np.concatenate([wide["x"].to_numpy(), wide["y"].to_numpy()])
    for level in ("ordinal", "interval"):
        line = pick(table, f"krippendorff_alpha_scores_{level}", "", judge="")
        expected = krippendorff.alpha(answers.T, level_of_measurement=level)
        assert line["estimate"] == pytest.approx(expected, abs=1e-12)
        assert line["ci_low"] < line["estimate"] < line["ci_high"]
        assert line["n_used"] == 15
    whole = answers[~np.isnan(answers).any(axis=1)]
    target, rater = np.indices(whole.shape)
    long = pd.DataFrame({"t": target.ravel(), "r": rater.ravel(), "s": whole.ravel()})
    theirs = pingouin.intraclass_corr(long, "t", "r", "s").set_index("Type")["ICC"]
    for ours, name in {"icc_2_1": "ICC(A,1)", "icc_2_k": "ICC(A,k)", "icc_3_1": "ICC(C,1)"}.items():
        line = pick(table, ours, "", judge="")
        assert line["estimate"] == pytest.approx(theirs[name], abs=1e-12)
        assert "2 of 30 answers left out: 2 without all scores" in line["note"]


def test_an_answer_scored_in_several_pairs_counts_once(options):
    labels = with_scores()
    again = labels.assign(system_y="GAMMA", score_y=np.nan)
    one, two = (reviewer_table(part, **LABELS, **options) for part in (labels, pd.concat([labels, again])))
    for measure in ("krippendorff_alpha_scores_ordinal", "icc_2_1"):
        a, b = (pick(table, measure, "", judge="")["estimate"] for table in (one, two))
        assert a == pytest.approx(b, abs=1e-12)


def test_without_scores_of_two_reviewers_there_is_no_row(options):
    table = reviewer_table(make_labels(THREE), **LABELS, **options)
    assert not table["measure"].str.contains("scores|icc").any()


def test_degenerate_labels_have_no_fleiss_kappa(options):
    one_label = reviewer_table(make_labels({"r01": [A, A], "r02": [A, A]}), **LABELS, **options)
    alone = reviewer_table(make_labels({"r01": [A, B]}), **LABELS, **options)
    empty = reviewer_table(make_labels({}), **LABELS, **options)
    reasons = ("every label is the same", "no unit with two labels", "no unit with two labels")
    for table, reason in zip((one_label, alone, empty), reasons, strict=True):
        line = pick(table, "fleiss_kappa", "", judge="")
        assert np.isnan(line["estimate"])
        assert line["note"] == f"undefined: {reason}"


@pytest.mark.data
def test_pandalm_fleiss_equals_the_published_alpha(shared, options):
    from judgelab.study.sources.pandalm import read_pandalm

    labels = read_pandalm(shared / "data/pandalm").labels
    codes = labels.assign(same=np.where(labels["preference"] == labels["system_x"], A, B))
    codes["preference"] = np.where(labels["preference"] == T, T, codes["same"])
    codes = codes.assign(system_x=A, system_y=B, is_adjudicated=False)
    line = pick(reviewer_table(codes, **LABELS, **options), "fleiss_kappa", "", judge="")
    assert round(line["estimate"], 4) == 0.8642  # shared/data/README.md
    assert line["n_used"] == 999
