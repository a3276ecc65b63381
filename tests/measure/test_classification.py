"""A judge as a classifier: by hand, against loops and scikit-learn, invariances, degenerate input, PandaLM."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score, precision_score, recall_score
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.agreement import agreement_table
from judgelab.measure.classification import acceptance_table, binary_rows, label_rows
from judgelab.measure.estimates import Place, Settings
from judgelab.measure.rows import COLUMNS
from judgelab.study.sources import read_pandalm

from .conftest import ALPHA_BETA, make_normalized, pick, random_normalized

A, B, T = ALPHA_BETA
ONCE = Settings(0.95, 1, 7)
NAN = float("nan")
RATES = ("true_positive_rate", "true_negative_rate", "precision", "f1", "balanced_accuracy")
MACRO = ("macro_precision", "macro_recall", "macro_f1")

decisions = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=25)
label_pairs = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=25)


def binary(human, judged, items=None, settings=ONCE, **options):
    items = np.arange(len(human)) if items is None else np.asarray(items)
    rows = binary_rows(Place(), items, np.asarray(human), np.asarray(judged), settings=settings, **options)
    return {row["measure"]: row for row in rows}


def by_label(human, judged, items=None, settings=ONCE):
    items = np.arange(len(human)) if items is None else np.asarray(items)
    both = (np.asarray(codes, dtype=np.int64) for codes in (human, judged))
    rows = label_rows(Place(), items, *both, labels=ALPHA_BETA, settings=settings)
    return {(row["slice"], row["measure"]): row for row in rows}


def over(numerator, denominator):
    return numerator / denominator if denominator else NAN


def naive(human, judged):
    """The five measures from counts of the four kinds of decisions."""
    pairs = list(zip(human, judged, strict=True))
    tp, fp, fn, tn = (pairs.count(kind) for kind in ((1, 1), (0, 1), (1, 0), (0, 0)))
    rates = over(tp, tp + fn), over(tn, tn + fp)
    return [*rates, over(tp, tp + fp), over(2 * tp, 2 * tp + fp + fn), sum(rates) / 2]


#            TP TP FN FP TN TN  no label, no verdict
PEOPLE = [1, 1, 1, 0, 0, 0, NAN, 1]
JUDGE = [1, 1, 0, 1, 0, 0, 1, NAN]


def test_by_hand():
    rows = binary(PEOPLE, JUDGE, note="n")
    counts = {name: (rows[name]["numerator"], rows[name]["denominator"]) for name in RATES[:3]}
    assert counts == {"true_positive_rate": (2, 3), "true_negative_rate": (2, 3), "precision": (2, 3)}
    assert rows["f1"]["estimate"] == pytest.approx(4 / 6, abs=1e-15)
    assert rows["balanced_accuracy"]["estimate"] == pytest.approx(2 / 3, abs=1e-15)
    assert (rows["f1"]["n_used"], rows["f1"]["n_excluded"]) == (6, 2)
    assert all(row["note"].endswith("n") for row in rows.values())


def test_rates_have_wilsons_interval():
    row = binary(PEOPLE, JUDGE)["precision"]
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(proportion_confint(2, 3, method="wilson"))
    assert row["method"] == "Wilson"


@given(decisions)
def test_equals_counting(pairs):
    human, judged = (np.array(side) for side in zip(*pairs, strict=True))
    ours = [row["estimate"] for row in binary(human, judged).values()]
    assert ours == pytest.approx(naive(human.tolist(), judged.tolist()), nan_ok=True, abs=1e-12)


@profile(max_examples=50)
@given(decisions)
def test_equals_scikit_learn(pairs):
    human, judged = (np.array(side, dtype=int) for side in zip(*pairs, strict=True))
    rows = {name: row["estimate"] for name, row in binary(human, judged).items()}
    options = {"zero_division": np.nan}
    theirs = {
        "true_positive_rate": recall_score(human, judged, **options),
        "true_negative_rate": recall_score(human, judged, pos_label=0, **options),
        "precision": precision_score(human, judged, **options),
        "f1": f1_score(human, judged, **options),
    }
    if len(set(human)) == 2:
        theirs["balanced_accuracy"] = balanced_accuracy_score(human, judged)
    assert {name: rows[name] for name in theirs} == pytest.approx(theirs, nan_ok=True, abs=1e-12)


@given(decisions)
def test_exchanging_yes_and_no_exchanges_the_two_rates(pairs):
    human, judged = (np.array(side) for side in zip(*pairs, strict=True))
    one, two = binary(human, judged), binary(~human, ~judged)
    for here, there in (RATES[:2], RATES[1::-1], RATES[4:] * 2):
        assert one[here]["estimate"] == pytest.approx(two[there]["estimate"], nan_ok=True, abs=1e-12)


@given(decisions)
def test_exchanging_people_and_judge_exchanges_precision_and_recall(pairs):
    human, judged = (np.array(side) for side in zip(*pairs, strict=True))
    one, two = binary(human, judged), binary(judged, human)
    assert one["precision"]["estimate"] == pytest.approx(two["true_positive_rate"]["estimate"], nan_ok=True)
    assert one["f1"]["estimate"] == pytest.approx(two["f1"]["estimate"], nan_ok=True)


def test_decisions_of_one_item_stay_together():
    rng = np.random.default_rng(3)
    human, judged = rng.integers(0, 2, 30), rng.integers(0, 2, 30)
    many = Settings(0.95, 2000, 7)
    alone = binary(human, judged, settings=many)
    tenfold = binary(np.repeat(human, 10), np.repeat(judged, 10), np.repeat(np.arange(30), 10), many)
    for name in RATES:
        assert tenfold[name]["estimate"] == pytest.approx(alone[name]["estimate"], abs=1e-12)
        assert tenfold[name]["ci_low"] == pytest.approx(alone[name]["ci_low"], abs=0.1)
        assert "bootstrap" in tenfold[name]["method"]


UNDEFINED = {
    "people never say yes": ([0, 0], [1, 0], {"true_positive_rate", "balanced_accuracy"}),
    "people never say no": ([1, 1], [1, 0], {"true_negative_rate", "balanced_accuracy"}),
    "the judge never says yes": ([1, 0], [0, 0], {"precision"}),
    "nobody ever says yes": ([0, 0], [0, 0], {"true_positive_rate", "precision", "f1", "balanced_accuracy"}),
    "nothing of both": ([1, NAN], [NAN, 0], set(RATES)),
    "empty": ([], [], set(RATES)),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_a_zero_denominator_is_undefined_with_a_reason(name):
    human, judged, undefined = UNDEFINED[name]
    rows = binary(human, judged)
    assert {measure for measure, row in rows.items() if np.isnan(row["estimate"])} == undefined
    assert all(rows[measure]["note"].startswith("undefined: ") for measure in undefined)


def test_no_decision_is_refused():
    with pytest.raises(ValueError, match=r"judged: 1 of 3 decisions are not allowed, first 0\.5 in place 1; allowed"):
        binary([1, 0, 1], [1, 0.5, NAN])
    with pytest.raises(ValueError, match="human: 2 decisions for 3 items"):
        binary([1, 0], [1, 0, 1], items=[0, 1, 2])


# One label against the others, and their means


def test_labels_by_hand():
    # A A A B B T against A A B B T T
    rows = by_label([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2])
    expected = {A: (2 / 3, 3 / 3, 2 / 2), B: (1 / 2, 3 / 4, 1 / 2), T: (1 / 1, 4 / 5, 1 / 2)}
    for label, values in expected.items():
        ours = [rows[f"label={label}", name]["estimate"] for name in RATES[:3]]
        assert ours == pytest.approx(list(values), abs=1e-15)
    assert rows["all", "macro_recall"]["estimate"] == pytest.approx((2 / 3 + 1 / 2 + 1) / 3, abs=1e-15)
    assert rows["all", "macro_precision"]["estimate"] == pytest.approx(2 / 3, abs=1e-15)
    # F1: 4/5, 2/4, 2/3
    assert rows["all", "macro_f1"]["estimate"] == pytest.approx((4 / 5 + 1 / 2 + 2 / 3) / 3, abs=1e-15)
    assert rows["all", "macro_f1"]["method"].startswith("mean over ALPHA, BETA, TIE")
    assert not any(measure == "balanced_accuracy" for _, measure in rows)


@profile(max_examples=50)
@given(label_pairs)
def test_macro_means_equal_scikit_learn(pairs):
    human, judged = zip(*pairs, strict=True)
    rows = by_label(human, judged)
    used = sorted({*human, *judged})
    assert {slice_ for slice_, _ in rows} == {"all", *(f"label={ALPHA_BETA[code]}" for code in used)}
    for name, score in zip(MACRO, (precision_score, recall_score, f1_score), strict=True):
        # scikit-learn would leave an undefined label out of the mean; here the mean is undefined
        each = score(human, judged, labels=used, average=None, zero_division=np.nan)
        assert rows["all", name]["estimate"] == pytest.approx(each.mean(), nan_ok=True, abs=1e-12)


def test_undefined_means_name_the_side():
    rows = by_label([0, 1, 1], [0, 0, 0])
    assert np.isnan(rows["all", "macro_precision"]["estimate"])
    assert rows["all", "macro_precision"]["note"] == ("undefined: the judge never gave one of the labels ALPHA, BETA")
    assert rows["all", "macro_recall"]["estimate"] == 1 / 2
    assert by_label([0, 0], [0, 1])["all", "macro_recall"]["note"].startswith("undefined: people never gave one of")


@pytest.mark.parametrize("n", [0, 2])
def test_no_valid_label_gives_undefined_means_only(n):
    rows = by_label([-1] * n, [0] * n)
    assert set(rows) == {("all", name) for name in MACRO}
    for row in rows.values():
        assert row["note"] == "undefined: no item with two valid labels"
        assert row["n_excluded"] == n


def test_rows_join_the_agreement_table(options):
    study = random_normalized(90, 11)
    table = agreement_table(study, labels=ALPHA_BETA, **options)
    for pass_, column in (("direct", "direct"), ("original", "pair_original"), ("swapped", "pair_swapped")):
        valid = study[["human", column]].dropna()
        human, judged = valid["human"].tolist(), valid[column].tolist()
        assert pick(table, "macro_f1", pass_)["estimate"] == pytest.approx(f1_score(human, judged, average="macro"))
        recall = recall_score(human, judged, labels=[B], average=None)[0]
        assert pick(table, "true_positive_rate", pass_, f"label={B}")["estimate"] == pytest.approx(recall)
    assert not table.loc[table["pass"].isin(["both", "aggregated"]), "measure"].str.startswith("macro").any()


# GPT-3.5's and PandaLM-7B's accuracy and macro scores in the README of WeOpenML/PandaLM; replies without a verdict
# count as ties there, and the labels are first answer, second answer, tie.
PANDALM = {"gpt-3.5-turbo": ("58.79%", "57.36%", "57.55%"), "pandalm-7b": ("57.38%", "57.50%", "57.43%")}


@pytest.mark.data
@pytest.mark.parametrize("judge", PANDALM)
def test_pandalms_published_macro_scores(shared, judge):
    data = read_pandalm(shared / "data/pandalm")
    keys = ["item_id", "system_x", "system_y"]

    def side(table):
        places = [table["preference"] == table[name] for name in ("system_x", "system_y")]
        return np.select(places, [0, 1], 2)

    people = data.labels.assign(code=side(data.labels)).groupby(keys)["code"].agg(lambda codes: codes.mode().iloc[0])
    given = data.verdicts[data.verdicts["judge"] == judge]
    given = given.assign(code=side(given)).set_index(keys)["code"].reindex(people.index)
    rows = by_label(people.to_numpy(), given.to_numpy())
    assert tuple(f"{rows['all', name]['estimate']:.2%}" for name in MACRO) == PANDALM[judge]


# Acceptance


def scored(total_x, total_y, human_x, human_y, **options):
    table = make_normalized([A] * len(total_x), [A] * len(total_x), **options)
    values = {"total_x": total_x, "total_y": total_y, "human_score_x": human_x, "human_score_y": human_y}
    return table.assign(**{name: np.array(column, dtype=float) for name, column in values.items()})


def test_acceptance_by_hand(options):
    # Answers at 4 and more: people 1 0 1, 1 0 .; judge 1 1 0, 1 0 1
    study = scored([4.0, 4.2, 3.0], [5, 1, 5], [4, 3.5, 5], [4.5, 2, NAN])
    table = acceptance_table(study, threshold=4, **options)
    assert tuple(table.columns) == COLUMNS
    assert set(table["slice"]) == {"accept>=4"}
    line = pick(table, "true_positive_rate", "direct", "accept>=4")
    assert (line["numerator"], line["denominator"]) == (2, 3)
    assert "over 5 answers; 1 of 6 answers left out: 1 without both scores" in line["note"]
    line = pick(table, "true_negative_rate", "direct", "accept>=4")
    assert (line["numerator"], line["denominator"]) == (1, 2)
    assert pick(table, "balanced_accuracy", "direct", "accept>=4")["estimate"] == pytest.approx((2 / 3 + 1 / 2) / 2)


def test_a_sum_that_rounding_left_below_the_threshold_is_accepted(options):
    study = scored([0.1 + 0.2, 0.3], [0, 0], [0.3, 0.1 * 3 - 1e-12], [0, 0])
    line = pick(acceptance_table(study, threshold=0.3, **options), "true_positive_rate", "direct", "accept>=0.3")
    assert (line["numerator"], line["denominator"]) == (2, 2)


def test_an_answer_in_several_pairs_counts_once(options):
    study = pd.concat([scored([5, 1], [1, 5], [5, 5], [1, 1]), scored([5, 1], [5, 5], [5, 5], [1, 1])])
    study["system_y"] = ["BETA", "BETA", "GAMMA", "GAMMA"]
    note = pick(acceptance_table(study, threshold=3, **options), "f1", "direct", "accept>=3")["note"]
    assert "over 6 answers" in note


def test_judges_without_direct_calls_have_no_rows(options):
    assert len(acceptance_table(make_normalized([A], None, [A]), threshold=3, **options)) == 0
    assert len(acceptance_table(make_normalized([]), threshold=3, **options)) == 0


def test_no_scores_are_undefined(options):
    table = acceptance_table(make_normalized([A], [A]), threshold=3, **options)
    assert table["estimate"].isna().all()
    assert table["note"].str.startswith("undefined: ").all()


def test_acceptance_refuses_what_is_not_finite(options):
    with pytest.raises(ValueError, match="threshold is nan; allowed is a finite number"):
        acceptance_table(scored([1], [1], [1], [1]), threshold=NAN, **options)
    study = scored([1, float("inf")], [1, 1], [1, 1], [1, 1])
    with pytest.raises(
        ValueError, match="judge j: 1 of 4 answers have an infinite judge score; first item 1, system A"
    ):
        acceptance_table(study, threshold=3, **options)
    with pytest.raises(ValueError, match="missing column total_y"):
        acceptance_table(study.drop(columns="total_y"), threshold=3, **options)
