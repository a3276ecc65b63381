"""The human ceiling: by hand, against a loop over labels, invariances, degenerate input, and PandaLM."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from judgelab.measure.ceiling import ceiling_table
from judgelab.measure.others import majority_of_others
from judgelab.measure.reliability import reviewer_table
from judgelab.measure.rows import COLUMNS
from judgelab.study.sources import read_pandalm

from .conftest import ALPHA_BETA, make_normalized, pick

A, B, T = ALPHA_BETA
FEW = {"ci_level": 0.95, "resamples": 50, "seed": 3}


def make_labels(by_reviewer, items=None):
    """Labels of a two-system study: {reviewer: preferences, None for no label}."""
    rows = [
        {"item_id": item, "reviewer_id": name, "system_x": "ALPHA", "system_y": "BETA", "preference": value}
        for name, values in by_reviewer.items()
        for item, value in zip(items or range(len(values)), values, strict=True)
        if value is not None
    ]
    columns = ["item_id", "reviewer_id", "system_x", "system_y", "preference"]
    frame = pd.DataFrame(rows, columns=columns).assign(score_x=np.nan, score_y=np.nan, is_adjudicated=False)
    return frame.astype({"is_adjudicated": bool})


def table_of(labels, normalized, **options):
    return ceiling_table(labels, normalized, labels_allowed=ALPHA_BETA, **(FEW | options))


#      1  2  3  4  5
R1 = [A, A, A, B, T]
R2 = [A, T, B, B, B]
R3 = [A, T, A, A, B]
JUDGE = [A, A, B, B, None]


def counts(line):
    return line["numerator"], line["denominator"]


def test_by_hand():
    labels = make_labels({"r1": R1, "r2": R2, "r3": R3})
    table = table_of(labels, make_normalized([None] * 5, JUDGE))
    # The others of r1 say A, T, nothing (B, A), nothing (B, A), B; r1 says A, A, ., ., T: one of three.
    assert counts(pick(table, "leave_one_out_agreement", "", "reviewer=r1", judge="")) == (1, 3)
    # The others of r2: A, nothing (A, T), A, nothing (B, A), nothing (T, B); r2 says A, ., B, ., .: one of two.
    assert counts(pick(table, "leave_one_out_agreement", "", "reviewer=r2", judge="")) == (1, 2)
    # The others of r3: A, nothing (A, T), nothing (A, B), B, nothing (T, B); r3 says A, ., ., A, .: one of two.
    assert counts(pick(table, "leave_one_out_agreement", "", "reviewer=r3", judge="")) == (1, 2)
    pooled = pick(table, "leave_one_out_agreement", "", judge="")
    assert counts(pooled) == (3, 7)
    assert "8 of 15 labels left out: 8 without a majority of the others" in pooled["note"]
    # The judge says A, A, B, B and nothing: against the others of r1 A, T, (B: silent): 1 of 2; r2 A, A: 1 of 2;
    # r3 A, B: 2 of 2.
    assert counts(pick(table, "agreement_with_the_others", "direct", "reviewer=r1")) == (1, 2)
    assert counts(pick(table, "agreement_with_the_others", "direct", "reviewer=r2")) == (1, 2)
    assert counts(pick(table, "agreement_with_the_others", "direct", "reviewer=r3")) == (2, 2)
    assert counts(pick(table, "agreement_with_the_others", "direct")) == (4, 6)
    # On the same six labels the reviewers have 1 of 2, 1 of 2 and 1 of 2.
    assert pick(table, "human_gap", "direct")["estimate"] == pytest.approx(1 / 6, abs=1e-15)
    assert pick(table, "human_gap", "direct", "reviewer=r3")["estimate"] == 0.5
    assert "1 without usable verdict" in pick(table, "human_gap", "direct")["note"]
    assert tuple(table.columns) == COLUMNS


cells = st.sampled_from([A, B, T, None])
studies = st.lists(st.tuples(cells, cells, cells, cells, cells), min_size=1, max_size=12)


def naive(rows, reviewer, given):
    """Pairs (label of the others, label given) of the units that the reviewer labelled."""
    pairs = []
    for row, value in zip(rows, given, strict=True):
        others = [label for j, label in enumerate(row[:4]) if j != reviewer and label is not None]
        top = Counter(others).most_common(1)
        majority = top[0][0] if top and 2 * top[0][1] > len(others) else None
        if row[reviewer] is not None and majority is not None and value is not None:
            pairs.append((majority, value))
    return pairs


@profile(max_examples=25)
@given(studies)
def test_equals_a_loop_over_labels(rows):
    names = ["r1", "r2", "r3", "r4"]
    labels = make_labels({name: [row[j] for row in rows] for j, name in enumerate(names)})
    judge = [row[4] for row in rows]
    table = table_of(labels, make_normalized([None] * len(rows), judge), resamples=5)
    present = [j for j, name in enumerate(names) if name in set(labels["reviewer_id"])]
    pooled, with_judge = [], []
    for j in present:
        own, judged = naive(rows, j, [row[j] for row in rows]), naive(rows, j, judge)
        pooled, with_judge = pooled + own, with_judge + judged
        for pairs, measure, kappa, place in (
            (own, "leave_one_out_agreement", "leave_one_out_kappa", ("", f"reviewer={names[j]}", "")),
            (judged, "agreement_with_the_others", "kappa_with_the_others", ("direct", f"reviewer={names[j]}", "j")),
        ):
            line = pick(table, measure, place[0], place[1], judge=place[2])
            assert counts(line) == (sum(a == b for a, b in pairs), len(pairs))
            value = pick(table, kappa, place[0], place[1], judge=place[2])["estimate"]
            if pairs and len({label for pair in pairs for label in pair}) > 1:
                one, two = zip(*pairs, strict=True)
                assert value == pytest.approx(cohen_kappa_score(one, two, labels=list(ALPHA_BETA)), abs=1e-12)
            else:
                assert np.isnan(value)
    assert counts(pick(table, "leave_one_out_agreement", "", judge="")) == (sum(a == b for a, b in pooled), len(pooled))
    line = pick(table, "agreement_with_the_others", "direct")
    assert counts(line) == (sum(a == b for a, b in with_judge), len(with_judge))


def random_study(n, seed, accuracy=0.7):
    rng = np.random.default_rng(seed)
    truth = rng.choice(ALPHA_BETA, n)

    def noisy(share):
        return list(np.where(rng.random(n) < share, truth, rng.choice(ALPHA_BETA, n)))

    return make_labels({f"r{j}": noisy(0.8) for j in range(4)}), make_normalized(list(truth), noisy(accuracy))


def test_gaps_are_the_difference_of_the_two():
    labels, normalized = random_study(80, 1)
    table = table_of(labels, normalized)  # the judge has every verdict: the same units
    for slice_ in ("all", "reviewer=r0", "reviewer=r3"):
        for gap, judge, people in (
            ("human_gap", "agreement_with_the_others", "leave_one_out_agreement"),
            ("human_gap_kappa", "kappa_with_the_others", "leave_one_out_kappa"),
        ):
            with_judge, alone = pick(table, judge, "direct", slice_), pick(table, people, "", slice_, judge="")
            line = pick(table, gap, "direct", slice_)
            assert line["estimate"] == pytest.approx(with_judge["estimate"] - alone["estimate"], abs=1e-12)
            assert line["ci_low"] < line["estimate"] < line["ci_high"]


def test_a_judge_that_repeats_a_reviewer_has_no_gap_to_it():
    labels, normalized = random_study(40, 2)
    own = labels[labels["reviewer_id"] == "r1"].sort_values("item_id")["preference"]
    table = table_of(labels, normalized.assign(direct=own.to_numpy(dtype=object)))
    line = pick(table, "human_gap", "direct", "reviewer=r1")
    assert (line["estimate"], line["ci_low"], line["ci_high"]) == (0, 0, 0)
    assert "no item separates the two" in line["note"]


def test_order_and_names_change_nothing():
    labels, normalized = random_study(50, 3)
    expected = table_of(labels, normalized)
    shuffled = table_of(labels.sample(frac=1, random_state=1), normalized.sample(frac=1, random_state=2))
    keys = ["judge", "pass", "slice", "measure"]
    columns = [*keys, "estimate", "numerator", "denominator", "n_used"]
    pd.testing.assert_frame_equal(
        expected.sort_values(keys)[columns].reset_index(drop=True),
        shuffled.sort_values(keys)[columns].reset_index(drop=True),
    )
    swap = {A: B, B: A, T: T}
    turned = normalized.assign(direct=normalized["direct"].map(swap), human=normalized["human"].map(swap))
    swapped = table_of(labels.assign(preference=labels["preference"].map(swap)), turned)
    np.testing.assert_allclose(swapped["estimate"], expected["estimate"], atol=1e-12)


def test_two_reviewers_are_each_others_others(options):
    labels = make_labels({"r1": R1, "r2": R2})
    table = table_of(labels, make_normalized([None] * 5, JUDGE))
    among = reviewer_table(labels, labels_allowed=ALPHA_BETA, **options)
    expected = pick(among, "exact_agreement", "", judge="")["estimate"]
    for slice_ in ("all", "reviewer=r1", "reviewer=r2"):
        assert pick(table, "leave_one_out_agreement", "", slice_, judge="")["estimate"] == expected


def test_several_pairs_of_an_item_are_resampled_together():
    one = make_labels({"r1": [A, B] * 10, "r2": [A, A] * 10, "r3": [A, A] * 10})
    two = one.assign(system_y="GAMMA", preference=one["preference"].replace({"BETA": "GAMMA"}))
    labels = pd.concat([one, two], ignore_index=True)
    judge = pd.concat(
        [make_normalized([None] * 20, [A] * 20), make_normalized([None] * 20, [A] * 20, systems=("ALPHA", "GAMMA"))]
    )
    table = ceiling_table(
        labels, judge, labels_allowed=["ALPHA", "BETA", "GAMMA", "TIE"], **(FEW | {"resamples": 2000})
    )
    line = pick(table, "leave_one_out_agreement", "", "reviewer=r1", judge="")
    assert (line["numerator"], line["denominator"], line["n_used"]) == (20, 40, 20)
    # as wide as for 20 items, not 40 labels: 2 · 1.96 · √(0.25 / 20) = 0.438
    assert line["ci_high"] - line["ci_low"] == pytest.approx(0.438, abs=0.07)


@pytest.mark.parametrize(
    ("by_reviewer", "reason"), [({"r1": R1}, "1 reviewer: there are no others"), ({}, "0 reviewers")]
)
def test_without_two_reviewers_there_is_no_ceiling(by_reviewer, reason):
    table = table_of(make_labels(by_reviewer), make_normalized([None] * 5, JUDGE))
    assert table["estimate"].isna().all()
    assert table["note"].str.contains(reason).all()
    assert set(table["judge"]) == {"", "j"}


def test_no_overlap_and_no_verdict():
    labels = make_labels({"r1": [A, None], "r2": [None, B]})
    table = table_of(labels, make_normalized([None] * 2, [None, None]))
    assert table["estimate"].isna().all()
    assert table["note"].str.startswith("undefined:").all()


def test_one_label_has_no_kappa():
    table = table_of(make_labels({"r1": [A] * 9, "r2": [A] * 9, "r3": [A] * 9}), make_normalized([A] * 9, [A] * 9))
    assert pick(table, "leave_one_out_agreement", "", judge="")["estimate"] == 1
    for measure, pass_, judge in (
        ("leave_one_out_kappa", "", ""),
        ("kappa_with_the_others", "direct", "j"),
        ("human_gap_kappa", "direct", "j"),
    ):
        line = pick(table, measure, pass_, judge=judge)
        assert np.isnan(line["estimate"])
        assert "one and the same label" in line["note"]


def test_adjudicated_labels_are_not_read():
    labels = make_labels({"r1": R1, "r2": R2, "r3": R3})
    final = labels.head(3).assign(reviewer_id="adjudicator", is_adjudicated=True, preference=T)
    normalized = make_normalized([None] * 5, JUDGE)
    more = table_of(pd.concat([labels, final], ignore_index=True), normalized)
    pd.testing.assert_frame_equal(more, table_of(labels, normalized))


def test_input_that_cannot_be_used_is_refused():
    labels = make_labels({"r1": R1, "r2": R2})
    normalized = make_normalized([None] * 5, JUDGE)
    with pytest.raises(ValueError, match=r"1 of 11 initial labels repeat .*first item 0, reviewer r1"):
        table_of(pd.concat([labels, labels.head(1)], ignore_index=True), normalized)
    with pytest.raises(ValueError, match="1 of 10 labels are not allowed, first 'alpha'"):
        table_of(labels.assign(preference=["alpha", *labels["preference"][1:]]), normalized)


def test_majority_of_others_needs_more_than_half():
    codes = np.array([[0, 1, 1, 2], [0, 1, 1, 1], [2, -1, -1, 0], [2, -1, -1, -1], [0, 1, 2, -1]])
    # others of the first reviewer: 1 1 2 -> 1; 1 1 1 -> 1; 0 alone -> 0; nobody -> none; 1 2 -> none
    assert majority_of_others(codes, 0, 3).tolist() == [1, 1, 0, -1, -1]


def test_an_interval_of_the_gap_covers():
    # The judge is right in 0.7, reviewers in 0.8 of the labels (else a random label): 100 studies of 60 items.
    rng = np.random.default_rng(5)

    def drawn(n):
        truth = rng.integers(0, 3, n)

        def noisy(share):
            return np.where(rng.random(n) < share, truth, rng.integers(0, 3, n))

        return [noisy(0.8) for _ in range(3)], noisy(0.7)

    people, judge = drawn(400_000)
    gaps = []
    for j in range(3):
        one, two = (people[k] for k in range(3) if k != j)
        gaps.append((one == two, judge == one, people[j] == one))
    alike = np.concatenate([each[0] for each in gaps])
    right, own = (np.concatenate([each[k] for each in gaps])[alike] for k in (1, 2))
    truth = right.mean() - own.mean()
    covered = 0
    names = np.array(ALPHA_BETA, dtype=object)
    for _ in range(100):
        people, judge = drawn(60)
        labels = make_labels({f"r{j}": list(names[codes]) for j, codes in enumerate(people)})
        table = table_of(labels, make_normalized([None] * 60, list(names[judge])), resamples=200)
        line = pick(table, "human_gap", "direct")
        covered += line["ci_low"] <= truth <= line["ci_high"]
    assert covered >= 89  # 95 % of 100, less three standard errors


def test_pandalm(shared):
    # No published figure: counted with collections.Counter over the three annotators' labels.
    data = read_pandalm(shared / "data/pandalm")
    wide = data.labels.set_index(["item_id", "reviewer_id"])["preference"].unstack()  # noqa: PD010
    pairs = []
    for name in wide.columns:
        others = wide.drop(columns=name)
        same = others.iloc[:, 0] == others.iloc[:, 1]
        pairs += list(zip(others.loc[same].iloc[:, 0], wide.loc[same, name], strict=True))
    labels = data.labels.assign(is_adjudicated=False, score_x=np.nan, score_y=np.nan)
    systems = sorted({*labels["system_x"], *labels["system_y"]})
    nobody = make_normalized([], [])
    table = ceiling_table(labels, nobody, labels_allowed=[*systems, T], **FEW)
    line = pick(table, "leave_one_out_agreement", "", judge="")
    assert counts(line) == (sum(a == b for a, b in pairs), len(pairs)) == (2637, 2757)
