"""Panels: correlated errors and decisions by hand, against naive twins, other libraries, and planted truth."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import matthews_corrcoef, recall_score
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.estimates import Place, Settings
from judgelab.measure.panels import (
    accept_panel,
    accept_panel_rows,
    error_correlation_table,
    panel_decisions,
    panel_rules,
    panel_table,
)
from judgelab.measure.rows import COLUMNS
from judgelab.measure.votes import votes_of

from .conftest import ALPHA_BETA, make_normalized

A, B, T = ALPHA_BETA
OPTIONS = {"ci_level": 0.95, "resamples": 100, "seed": 7}

#          1  2  3  4  5  6  7  8
HUMAN = [A, A, A, B, B, T, None, A]  # fmt: skip
FIRST = [A, A, B, B, A, T, A, None]  # right 1 2 4 6, wrong 3 5
SECOND = [A, B, B, B, B, T, A, A]  # right 1 4 5 6 8, wrong 2 3
THIRD = [A, A, T, A, A, B, B, B]  # right 1 2, wrong 3 4 5 6 8


def panel_of(human, items=None, **judges):
    tables = [
        make_normalized(human, None, given, judge=name, items=items, systems=(A, B)) for name, given in judges.items()
    ]
    return pd.concat(tables, ignore_index=True)


def errors_of(normalized, **options):
    return error_correlation_table(normalized, labels=ALPHA_BETA, **OPTIONS | options)


def panel(normalized, judges=("a", "b", "c"), **options):
    return panel_table(normalized, labels=ALPHA_BETA, judges=judges, **OPTIONS | options)


def line(table, measure, slice_="all"):
    found = table[(table["measure"] == measure) & (table["slice"] == slice_)]
    assert len(found) == 1, f"{len(found)} rows of {measure}, {slice_}"
    return found.iloc[0]


def rate(table, measure, slice_):
    found = line(table, measure, slice_)
    return found["numerator"], found["denominator"]


@pytest.fixture(scope="module")
def study():
    return panel_of(HUMAN, a=FIRST, b=SECOND, c=THIRD)


def random_panel(n, seed, k=3, missing=0.1, accuracy=0.6, per_item=1):
    rng = np.random.default_rng(seed)
    human = rng.choice(ALPHA_BETA, n).astype(object)
    given = {}
    for number in range(k):
        labels = np.where(rng.random(n) < accuracy, human, rng.choice(ALPHA_BETA, n)).astype(object)
        labels[rng.random(n) < missing] = None
        given["abcdefghij"[number]] = list(labels)
    human[rng.random(n) < missing] = None
    items = [f"i{number // per_item:04d}" for number in range(n)]
    table = panel_of(list(human), items, **given)
    if per_item > 1:
        pairs = np.tile(np.arange(n) % per_item, k)
        table["system_x"] = [(A, B)[pair] for pair in pairs]
        table["system_y"] = [(B, A)[pair] for pair in pairs]
    return table


# errors


def test_error_correlation_by_hand(study):
    table = errors_of(study)
    assert tuple(table.columns) == COLUMNS
    assert table["slice"].tolist() == ["judges=a,b", "judges=a,c", "judges=b,c", "all", "all"]
    assert (table[["judge", "strategy", "pass"]] == ["", "pairwise", "original"]).all(axis=None)
    # a and b on 1 to 6: errors 001010 and 011000: (6·1 − 2·2) / √(2·4·2·4) = 2/8
    assert line(table, "error_correlation", "judges=a,b")["estimate"] == pytest.approx(0.25, abs=1e-15)
    # a and c on 1 to 6: 001010 and 001111: (6·2 − 2·4) / √(2·4·4·2) = 1/2
    assert line(table, "error_correlation", "judges=a,c")["estimate"] == pytest.approx(0.5, abs=1e-15)
    # b and c on 1 to 6 and 8: 0110000 and 0011111: (7·1 − 2·5) / √(2·5·5·2) = −3/10
    assert line(table, "error_correlation", "judges=b,c")["estimate"] == pytest.approx(-0.3, abs=1e-15)
    mean = line(table, "mean_error_correlation")
    assert mean["estimate"] == pytest.approx((0.25 + 0.5 - 0.3) / 3, abs=1e-15)
    assert (mean["n_used"], mean["n_excluded"]) == (7, 1)
    # all three on 1 to 6; b and c: 011000 and 001111: (6·1 − 2·4) / 8 = −1/4, so ρ = 1/6 and 3 / (1 + 2/6)
    effective = line(table, "effective_judges")
    assert effective["estimate"] == pytest.approx(2.25, abs=1e-12)
    assert (effective["n_used"], effective["n_excluded"]) == (6, 2)
    assert "2 of 8 units left out: 1 without reference, 1 without 3 verdicts" in effective["note"]


def test_error_correlation_is_that_of_numpy_and_scikit_learn():
    table = random_panel(150, 3)
    wide = table.pivot_table(index="item_id", columns="judge", values="pair_original", aggfunc="first")
    human = table.drop_duplicates("item_id").set_index("item_id")["human"]
    got = errors_of(table)
    found = []
    for one, two in combinations("abc", 2):
        known = wide[one].notna() & wide[two].notna() & human.reindex(wide.index).notna()
        errors = [(wide[name] != human.reindex(wide.index))[known].astype(int) for name in (one, two)]
        found.append(line(got, "error_correlation", f"judges={one},{two}")["estimate"])
        assert found[-1] == pytest.approx(np.corrcoef(*errors)[0, 1], abs=1e-12)
        assert found[-1] == pytest.approx(matthews_corrcoef(*errors), abs=1e-12)
    assert line(got, "mean_error_correlation")["estimate"] == pytest.approx(np.mean(found), abs=1e-12)


label = st.sampled_from([A, B, T, None])


@profile(max_examples=25, deadline=None)
@given(st.lists(st.tuples(label, label, label, label), min_size=1, max_size=12))
def test_error_correlation_against_a_naive_twin(rows):
    human, *given_ = (list(column) for column in zip(*rows, strict=True))
    table = errors_of(panel_of(human, **dict(zip("abc", given_, strict=True))), resamples=5)

    def phi(units, i, j):
        pairs = [
            (row[i + 1] != row[0], row[j + 1] != row[0])
            for row in units
            if None not in (row[0], row[i + 1], row[j + 1])
        ]
        if len({x for x, _ in pairs}) < 2 or len({y for _, y in pairs}) < 2:
            return math.nan
        return float(np.corrcoef(np.array(pairs, dtype=float).T)[0, 1])

    phis = [phi(rows, i, j) for i, j in combinations(range(3), 2)]
    for (i, j), expected in zip(combinations(range(3), 2), phis, strict=True):
        got = line(table, "error_correlation", f"judges={'abc'[i]},{'abc'[j]}")
        assert got["estimate"] == pytest.approx(expected, abs=1e-9, nan_ok=True)
        assert math.isnan(got["estimate"]) == got["note"].startswith("undefined: ")
    defined = [value for value in phis if not math.isnan(value)]
    expected = sum(defined) / len(defined) if defined else math.nan
    assert line(table, "mean_error_correlation")["estimate"] == pytest.approx(expected, abs=1e-9, nan_ok=True)
    whole = [row for row in rows if None not in row]
    defined = [value for i, j in combinations(range(3), 2) if not math.isnan(value := phi(whole, i, j))]
    effect = 1 + 2 * sum(defined) / len(defined) if defined else math.nan
    expected = 3 / effect if effect > 1e-9 else math.nan
    assert line(table, "effective_judges")["estimate"] == pytest.approx(expected, rel=1e-6, nan_ok=True)


def test_independent_judges_count_fully_and_copies_as_one():
    rng = np.random.default_rng(5)
    human = [A] * 4000
    own = {name: list(np.where(rng.random(4000) < 0.7, A, B)) for name in "abcde"}
    table = errors_of(panel_of(human, **own))
    found = line(table, "effective_judges")
    assert found["estimate"] == pytest.approx(5, abs=0.25)
    assert found["ci_low"] < 5 < found["ci_high"]
    assert line(table, "mean_error_correlation")["estimate"] == pytest.approx(0, abs=0.02)
    copies = errors_of(panel_of(human, **dict.fromkeys("abcde", own["a"])))
    assert line(copies, "effective_judges")["estimate"] == pytest.approx(1, abs=1e-12)
    assert line(copies, "mean_error_correlation")["estimate"] == pytest.approx(1, abs=1e-12)


def test_effective_judges_is_the_variance_ratio_of_judges_that_err_equally():
    # A common cause: with probability √ρ a judge's error is the shared one, so that every φ is ρ = 0.36.
    rng = np.random.default_rng(6)
    shared = rng.random(6000) < 0.4
    errors = {c: np.where(rng.random(6000) < 0.6, shared, rng.random(6000) < 0.4) for c in "abcd"}
    table = errors_of(panel_of([A] * 6000, **{c: list(np.where(e, B, A)) for c, e in errors.items()}))
    assert line(table, "mean_error_correlation")["estimate"] == pytest.approx(0.36, abs=0.03)
    number = line(table, "effective_judges")["estimate"]
    assert number == pytest.approx(4 / (1 + 3 * 0.36), abs=0.12)
    matrix = np.array(list(errors.values()), dtype=float)
    assert number == pytest.approx(matrix.var(axis=1).mean() / matrix.mean(axis=0).var(), rel=0.01)


def test_errors_that_exclude_one_another():
    table = errors_of(panel_of([A] * 4, a=[A, A, B, B], b=[B, B, A, A]))
    assert line(table, "error_correlation", "judges=a,b")["estimate"] == -1
    found = line(table, "effective_judges")
    assert math.isnan(found["estimate"])
    assert found["note"].startswith("undefined: 1 + (k − 1) ρ is not above 0")


@pytest.mark.parametrize(
    ("judges", "reason"),
    [
        ({"a": [A, B, A]}, "fewer than two judges"),
        ({"a": [B, B, B], "b": [A, B, A]}, "a judge never or always errs"),
        ({"a": [A, A, A], "b": [A, B, A]}, "a judge never or always errs"),
        ({"a": [A, None, None], "b": [None, B, A]}, "no unit with 2 verdicts and a label"),
    ],
)
def test_undefined_correlations_say_why(judges, reason):
    table = errors_of(panel_of([A, A, A], **judges))
    for measure in ("mean_error_correlation", "effective_judges"):
        found = line(table, measure)
        assert math.isnan(found["estimate"])
        assert found["note"].startswith(f"undefined: {reason}")


def test_a_pair_without_a_correlation_is_left_out_of_the_mean_and_told():
    table = errors_of(panel_of([A] * 6, a=[A, B] * 3, b=[A, B, A, B, B, A], c=[A] * 6))
    pair = line(table, "error_correlation", "judges=a,b")["estimate"]
    mean = line(table, "mean_error_correlation")
    assert mean["estimate"] == pair
    assert "2 of 3 pairs left out: a judge never or always errs" in mean["note"]


# decisions


def naive_decision(votes, rule, veto, n):
    counts = {label: sum(vote == label for vote in votes) for label in range(3)}
    if not any(counts.values()):
        return -1
    if rule == "minority veto":
        best = [label for label, count in counts.items() if count == max(counts.values())]
        if len(best) != 1:
            return -2
        opposite = {0: counts[1], 1: counts[0], 2: 0}[best[0]]
        return best[0] if opposite < veto else -2
    needed = math.floor(n / 2) + 1 if rule == "majority" else int(rule.split()[0])
    return next((label for label, count in counts.items() if count >= needed), -2)


@profile(max_examples=60, deadline=None)
@given(st.data())
def test_decisions_against_a_naive_twin(data):
    k = data.draw(st.integers(1, 6))
    votes = data.draw(arrays(np.int64, (data.draw(st.integers(1, 8)), k), elements=st.integers(-1, 2)))
    veto = data.draw(st.integers(1, 3))
    for rule in panel_rules(k):
        got = panel_decisions(votes, rule, labels=ALPHA_BETA, veto=veto)
        assert got.tolist() == [naive_decision(row, rule, veto, k) for row in votes.tolist()]
        order = data.draw(st.permutations(range(k)))
        assert (panel_decisions(votes[:, order], rule, labels=ALPHA_BETA, veto=veto) == got).all()
        # the other system first: no decision depends on the order of the labels
        turned = panel_decisions(np.array([1, 0, 2, -1])[votes], rule, labels=(B, A, T), veto=veto)
        assert (turned == np.array([1, 0, 2, -2, -1])[got]).all()


@profile(max_examples=60, deadline=None)
@given(st.data())
def test_acceptance_against_a_naive_twin(data):
    k = data.draw(st.integers(1, 5))
    votes = data.draw(arrays(float, (6, k), elements=st.sampled_from([0.0, 1.0, math.nan])))
    for rule in ("majority", "minority veto", *(f"{m} of {k}" for m in range(1, k + 1))):
        got = accept_panel(votes, rule, veto=2)
        for row, decision in zip(votes.tolist(), got.tolist(), strict=True):
            yes, no = row.count(1.0), row.count(0.0)
            expected = {"majority": 1.0 if 2 * yes > k else 0.0 if 2 * no > k else math.nan}.get(rule)
            if expected is None:
                expected = float(no < 2) if rule == "minority veto" else float(yes >= int(rule[0]))
            assert decision == pytest.approx(expected if yes + no else math.nan, nan_ok=True)


def test_rules():
    assert panel_rules(1) == panel_rules(2) == ("majority", "minority veto")
    assert panel_rules(3) == ("majority", "3 of 3", "minority veto")
    votes = np.array([[0, 0, 1], [0, 1, 2], [0, 0, 0]])
    majority, two = (panel_decisions(votes, rule, labels=ALPHA_BETA) for rule in ("majority", "2 of 3"))
    assert majority.tolist() == two.tolist() == [0, -2, 0]


def test_panel_by_hand(study):
    table = panel(study)
    assert tuple(table.columns) == COLUMNS
    assert (table[["judge", "strategy", "pass"]] == ["panel", "pairwise", "original"]).all(axis=None)
    # votes: 1 AAA  2 ABA  3 BBT  4 BBA  5 ABA  6 TTB  7 AAB (no label)  8 -AB
    # majority: A A B B A T A -, against A A A B B T . A
    assert rate(table, "exact_agreement", "rule=majority") == (4, 6)
    assert rate(table, "coverage", "rule=majority") == (7, 7)
    assert rate(table, "exact_agreement", "rule=3 of 3") == (1, 1)
    assert rate(table, "coverage", "rule=3 of 3") == (1, 7)
    # veto: 1 A, 3 B (a tie is no veto), 6 T
    assert rate(table, "exact_agreement", "rule=minority veto") == (2, 3)
    assert rate(table, "coverage", "rule=minority veto") == (3, 7)
    assert rate(table, "true_positive_rate", "rule=majority, label=ALPHA") == (2, 3)
    assert rate(table, "true_negative_rate", "rule=majority, label=ALPHA") == (2, 3)
    assert rate(table, "true_positive_rate", "rule=majority, label=TIE") == (1, 1)
    # on 1 to 6, where all can be compared, a and b are right in 4, c in 2; b alone is right in 8 too
    assert rate(table, "exact_agreement", "rule=single, judge=a") == (4, 6)
    assert rate(table, "exact_agreement", "rule=single, judge=b") == (5, 7)
    assert not table["slice"].str.contains("judge=c").any()
    found = line(table, "exact_agreement", "rule=majority")
    assert "2 of 8 units left out: 1 without reference, 1 undecided" in found["note"]
    assert "without a usable verdict, no vote: a 1 of 8 units" in found["note"]
    assert "shared by 2" in line(table, "coverage", "rule=single, judge=a")["note"]
    assert (found["n_used"], found["n_excluded"]) == (6, 2)
    low, high = proportion_confint(4, 6, method="wilson")
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((low, high), abs=1e-12)


def test_a_higher_veto_decides_more(study):
    two = panel(study, veto=2)
    # with a veto of two: every plurality, 1 2 3 4 5 6 7, and not 8, where A and B have one vote each
    assert rate(two, "coverage", "rule=minority veto") == (7, 7)
    assert line(two, "coverage", "rule=minority veto")["note"].startswith("1 of 8 units left out")
    assert "vetoed by 2" in line(two, "coverage", "rule=minority veto")["note"]


def test_rates_are_scikit_learns_recalls():
    table = random_panel(200, 9, missing=0)
    got = panel(table)
    votes = votes_of(table, labels=ALPHA_BETA)
    decided = panel_decisions(votes.codes, "majority", labels=ALPHA_BETA)
    for number, name in enumerate(ALPHA_BETA):
        people, said = (each[decided >= 0] == number for each in (votes.human, decided))
        expected = recall_score(people, said), recall_score(~people, ~said)
        measures = ("true_positive_rate", "true_negative_rate")
        found = [line(got, measure, f"rule=majority, label={name}")["estimate"] for measure in measures]
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("per_item", [1, 2])
def test_names_and_order_change_nothing(per_item):
    table = random_panel(60, 10, per_item=per_item)
    shuffled = table.sample(frac=1, random_state=1)
    renamed = shuffled.replace({A: "zeta", B: "eta"})
    for make in (errors_of, panel):
        pd.testing.assert_frame_equal(make(table), make(shuffled))
    names = ("zeta", "eta", T)
    one, two = errors_of(table), error_correlation_table(renamed, labels=names, **OPTIONS)
    pd.testing.assert_frame_equal(one, two)
    one, two = panel(table), panel_table(renamed, labels=names, judges=("c", "a", "b"), **OPTIONS)
    two["slice"] = two["slice"].replace({"zeta": A, r"\beta\b": B}, regex=True)
    pd.testing.assert_frame_equal(one.drop(columns=["ci_low", "ci_high"]), two.drop(columns=["ci_low", "ci_high"]))


def test_several_pairs_of_an_item_are_resampled_together():
    table = panel(random_panel(60, 11, per_item=2))
    found = line(table, "exact_agreement", "rule=majority")
    assert found["method"].startswith("percentile bootstrap over items")
    assert found["n_used"] <= 30


def test_a_panel_of_one_is_its_judge(study):
    table = panel(study, judges=["b"])
    assert set(table["slice"].str.split(",").str[0]) == {"rule=majority", "rule=minority veto", "rule=single"}
    for rule in ("majority", "minority veto", "single, judge=b"):
        assert rate(table, "exact_agreement", f"rule={rule}") == (5, 7)


def test_no_label_no_verdict_no_judge():
    table = panel(panel_of([None, None], a=[A, B], b=[A, A], c=[A, A]))
    found = table[table["measure"] != "coverage"]
    assert found["estimate"].isna().all()
    assert found["note"].str.startswith("undefined: ").all()
    assert rate(table, "coverage", "rule=majority") == (2, 2)
    assert line(table, "exact_agreement", "rule=single")["n_excluded"] == 2
    silent = panel(panel_of([A, A], a=[None] * 2, b=[None] * 2, c=[None] * 2))
    assert silent["estimate"].isna().all()
    wrong = panel(panel_of([A, A], a=[B, B], b=[B, B], c=[B, B]))
    assert rate(wrong, "exact_agreement", "rule=3 of 3") == (0, 2)
    assert rate(wrong, "true_positive_rate", "rule=3 of 3, label=ALPHA") == (0, 2)
    assert line(wrong, "true_positive_rate", "rule=3 of 3, label=BETA")["note"].startswith("undefined: ")
    unplanned = panel_of([A, A], a=[A, B], b=[A, A], c=[A, A])
    for make in (errors_of, panel):
        assert len(make(unplanned, pass_="direct")) == 0
    assert len(errors_of(make_normalized([]))) == 0


def test_a_judge_without_planned_calls_is_named(study):
    both = pd.concat([study, make_normalized(HUMAN, HUMAN, judge="d")], ignore_index=True)
    table = panel(both, judges=["a", "b", "c", "d"])
    assert "no calls planned in this pass: d" in line(table, "exact_agreement", "rule=majority")["note"]
    assert rate(table, "exact_agreement", "rule=3 of 3") == (1, 1)
    assert "no calls planned in this pass: d" in line(errors_of(both), "effective_judges")["note"]


def test_an_abstention_is_no_vote():
    parts = [make_normalized([A, A, B], None, [A, A, B], [A, B, B], judge=name) for name in "ab"]
    table = pd.concat(parts, ignore_index=True)
    assert votes_of(table, labels=ALPHA_BETA, pass_="aggregated").codes.tolist() == [[0, 0], [-1, -1], [1, 1]]
    assert rate(panel(table, judges=["a", "b"], pass_="aggregated"), "coverage", "rule=majority") == (2, 2)


def test_acceptance_rows():
    settings = Settings(0.95, 100, 1)
    votes = np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1], [1, 0, np.nan], [1, 1, 1]])
    human = np.array([1, 1, 0, 0, 0])
    rows = accept_panel_rows(Place("panel"), np.arange(5), human, votes, settings=settings)
    got = {(row["slice"], row["measure"]): (row["numerator"], row["denominator"]) for row in rows}
    assert got["rule=majority", "true_positive_rate"] == (2, 2)
    assert got["rule=majority", "true_negative_rate"] == (1, 2)  # 3 right, 5 wrong, 4 undecided
    assert got["rule=majority", "coverage"] == (4, 4)
    assert got["rule=minority veto", "true_positive_rate"] == (1, 2)
    assert got["rule=minority veto", "true_negative_rate"] == (2, 3)
    assert got["rule=3 of 3", "exact_agreement"] == (3, 5)
    with pytest.raises(ValueError, match="5 items, 4 human decisions, 5 rows of votes"):
        list(accept_panel_rows(Place(), np.arange(5), human[:4], votes, settings=settings))


def test_misuse(study):
    with pytest.raises(ValueError, match="1 of 2 judges unknown, first 'x'"):
        panel(study, judges=["a", "x"])
    with pytest.raises(ValueError, match="1 of 2 judges named twice, first 'a'"):
        panel(study, judges=["a", "a"])
    with pytest.raises(ValueError, match="pass is 'both'"):
        errors_of(study, pass_="both")
    with pytest.raises(ValueError, match="1 of 25 rows repeat a judge and unit; first judge a, item 0"):
        errors_of(pd.concat([study, study.head(1)], ignore_index=True))
    other = study.copy()
    other.loc[8, "human"] = B
    with pytest.raises(ValueError, match=r"1 of 24 rows have another human label .* first judge b, item 0"):
        errors_of(other)
    with pytest.raises(ValueError, match="missing column judge"):
        errors_of(study.drop(columns="judge"))
    votes = np.zeros((2, 4), dtype=np.int64)
    for rule in ("2 of 4", "5 of 4", "3 of 5", "unanimity"):
        with pytest.raises(ValueError, match="rule is"):
            panel_decisions(votes, rule, labels=ALPHA_BETA)
    with pytest.raises(ValueError, match="veto is 0"):
        panel_decisions(votes, "majority", labels=ALPHA_BETA, veto=0)
    with pytest.raises(ValueError, match="8 of 8 votes are no code of a label, first 3"):
        panel_decisions(votes + 3, "majority", labels=ALPHA_BETA)
    with pytest.raises(ValueError, match="8 of 8 votes are none of 0, 1 and NaN, first 2"):
        accept_panel(votes + 2.0, "majority")
