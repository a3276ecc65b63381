"""Decisions of repairs: every kind by hand, costs, tuning on development items only, degenerate input."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from judgelab.measure.repair_decisions import repair_decisions
from judgelab.measure.repaired_judge import majority_of
from judgelab.measure.repairs import buying_order, repair_table

NAN = float("nan")
A, B, C, T, X = "ALPHA", "BETA", "GAMMA", "TIE", "ABSTAIN"
ITEMS = ("e1", "e2", "e3", "e4")
DEVELOPMENT = ("d1", "d2", "d3")
LABELS = (A, B, T)


def call(judge, pass_, item, **more):
    """A call; every one takes 10 + 2 tokens, costs 0.5 and succeeds at once."""
    made = {"judge": judge, "pass": pass_, "item_id": item, "category": "c", "status": "verdict", "attempts": 1}
    made |= {"tokens_in": 10, "tokens_out": 2, "cost": 0.5, "repeat": 0, "expected_total": NAN, "outside_mass": NAN}
    return made | more


def compared(judge, pass_, preferences, *, items=ITEMS, pair=(A, B), **more):
    """Pairwise calls; the first of the pair stands first, in a swapped pass second. None is not usable."""
    first, second = pair[::-1] if pass_.endswith("swapped") else pair
    rows = []
    for item, preferred in zip(items, preferences, strict=True):
        letter = {first: "A", second: "B", T: T, None: None}[preferred]
        row = call(judge, pass_, item, strategy="pairwise", verdict=letter, first=first, second=second, **more)
        row |= {"system_x": pair[0], "system_y": pair[1], "status": "verdict" if letter else "unusable"}
        rows.append(row)
    return rows


def scored(judge, pass_, totals, *, items=ITEMS, systems=(A, B), **more):
    """Direct calls: a total for each system and item; None is not usable."""
    return [
        call(judge, pass_, item, strategy="direct", system=system, total=NAN if total is None else total)
        | {"status": "unusable" if total is None else "verdict"}
        | {name: value[row][column] if isinstance(value, list) else value for name, value in more.items()}
        for row, (item, own) in enumerate(zip(items, totals, strict=True))
        for column, (system, total) in enumerate(zip(systems, own, strict=True))
    ]


COLUMNS = [*call("j", "p", "i"), "strategy", "system", "system_x", "system_y", "first", "second", "verdict", "total"]


def table(*parts):
    rows = [row for part in parts for row in part]
    whole = pd.DataFrame(rows, columns=COLUMNS)
    counts = ["attempts", "tokens_in", "tokens_out"]
    texts = ["strategy", "system", "system_x", "system_y", "first", "second", "verdict"]
    return whole.astype({**dict.fromkeys(counts, "Int64"), **dict.fromkeys(texts, object), "cost": float})


def comparisons(systems=(A, B)):
    pairs = list(combinations(systems, 2))
    return pd.DataFrame(
        [
            {"item_id": item, "category": "c", "system_x": x, "system_y": y, "first": x, "words_x": 10, "words_y": 20}
            | {"split": "development" if item in DEVELOPMENT else "evaluation"}
            for item in (*DEVELOPMENT, *ITEMS)
            for x, y in pairs
        ]
    )


def people(human=(A, B, T, None), development=(A, B, T), scores=None, systems=(A, B)):
    """Human labels; ``scores`` maps an item to those of x and y."""
    made = comparisons(systems)[["item_id", "system_x", "system_y"]]
    labels = dict(zip((*DEVELOPMENT, *ITEMS), (*development, *human), strict=True))
    made["human"] = pd.Series([labels[item] for item in made["item_id"]], dtype=object)
    for place, side in enumerate("xy"):
        made[f"human_score_{side}"] = [(scores or {}).get(item, (NAN, NAN))[place] for item in made["item_id"]]
    return made


PLAIN = [
    compared("j", "original", [A, A, T, None]),
    compared("j", "swapped", [A, B, T, A]),
    scored("j", "direct", [(5, 3), (3, 3.2), (2, 4), (None, 4)]),
]


def repaired(*kinds, plain=PLAIN, calls=(), **options):
    """What comes of repairs, each a kind or a mapping."""
    asked = [{"kind": kind} if isinstance(kind, str) else kind for kind in kinds]
    given_ = {"comparisons": comparisons(), "reference": people(), "judges": {"j": "EUR"}, "labels": LABELS}
    given_ |= {"margin": 0.25, "acceptance_threshold": 4.0, "scale": (1.0, 5.0)}
    repairs = [{"name": repair["kind"], **repair} for repair in asked]
    return repair_decisions(table(*plain), table(*calls), repairs=repairs, **(given_ | options))


def decided(found, repair, judge="j", column="decision"):
    rows = found.decisions[(found.decisions["repair"] == repair) & (found.decisions["judge"] == judge)]
    return [None if pd.isna(value) else value for value in rows[column]]


def spent(found, repair, judge="j"):
    rows = found.costs[(found.costs["repair"] == repair) & (found.costs["judge"] == judge)]
    assert len(rows) == 1, f"{len(rows)} rows of costs of {repair}"
    return rows.iloc[0]


def told(found, repair, judge="j"):
    return found.notes[(found.notes["repair"] == repair) & (found.notes["judge"] == judge)]["note"].tolist()


def test_the_judge_without_a_repair():
    found = repaired()
    assert decided(found, "pairwise") == [A, A, T, None], "the original presentation decides"
    assert decided(found, "pairwise", column="original") == [A, A, T, None]
    assert decided(found, "pairwise", column="swapped") == [A, B, T, A]
    assert decided(found, "direct") == [A, T, B, None], "0.2 is within the margin; one total is missing"
    assert decided(found, "direct", column="original") == [None] * 4
    kept = found.decisions[found.decisions["repair"] == "direct"].iloc[0].to_dict()
    assert (kept["item_id"], kept["human"], kept["original_first"], kept["words_y"]) == ("e1", A, A, 20)
    pair, direct = spent(found, "pairwise"), spent(found, "direct")
    assert (pair["calls"], pair["requests"], pair["tokens_in"], pair["tokens_out"], pair["cost"]) == (4, 4, 40, 8, 2)
    assert (direct["calls"], direct["pairs"], direct["cost"], direct["tuning_calls"]) == (8, 4, 4.0, 0)
    assert (pair["pairs"], pair["currency"]) == (4, "EUR")


@pytest.mark.parametrize("kind", ["verdict_only", "reasoning_first", "few_shot", "retrieved_examples"])
def test_asked_in_another_way(kind):
    calls = [compared("j", f"{kind}/original", [B, B, A, T]), compared("j", f"{kind}/swapped", [B, T, None, A])]
    found = repaired(kind, calls=calls)
    assert decided(found, kind) == [B, B, A, T]
    assert decided(found, kind, column="swapped") == [B, T, None, A]
    assert set(found.decisions.loc[found.decisions["repair"] == kind, "baseline"]) == {"pairwise"}
    assert spent(found, kind)["calls"] == 4, "one call a decision: the swapped ones only show consistency"


def test_level_descriptions_are_scores():
    calls = [scored("j", "level_descriptions/direct", [(1, 5), (5, 1), (3, 3.25), (3, 3.26)])]
    found = repaired("level_descriptions", calls=calls)
    assert decided(found, "level_descriptions") == [B, A, T, B], "a difference of the margin is a tie"
    assert set(found.decisions.loc[found.decisions["repair"] == "level_descriptions", "baseline"]) == {"direct"}
    assert spent(found, "level_descriptions")["calls"] == 8


@pytest.mark.parametrize("strategies", [("pairwise", "direct"), ()])
def test_examples_in_both_strategies_are_two_repairs(strategies):
    calls = [
        compared("j", "few_shot/original", [B, B, B, None]),
        scored("j", "few_shot/direct", [(1, 5), (5, 1), (3, 3), (3, None)]),
    ]
    found = repaired({"kind": "few_shot", "strategies": strategies}, calls=calls)
    assert decided(found, "few_shot") == [B, B, B, None]
    assert decided(found, "few_shot", column="swapped") == [None] * 4
    assert decided(found, "few_shot_direct") == [B, A, T, None]
    assert (spent(found, "few_shot")["calls"], spent(found, "few_shot_direct")["calls"]) == (4, 8)


def test_a_judge_with_one_of_both_strategies_keeps_the_names():
    calls = [scored("j", "few_shot/direct", [(1, 5), (5, 1), (3, 3), (3, None)])]
    both = repaired({"kind": "few_shot", "strategies": ("pairwise", "direct")}, calls=calls)
    assert decided(both, "few_shot_direct") == [B, A, T, None]
    assert decided(both, "few_shot") == []
    alone = repaired({"kind": "few_shot", "strategies": ("direct",)}, calls=calls)
    assert decided(alone, "few_shot") == [B, A, T, None]


def test_expected_scores():
    expected = [(2.5, 3.5), (3.0, 3.1), (NAN, 4.0), (4.0, 3.0)]
    calls = scored(
        "j", "logprob_scores/direct", [(5, 1), (5, 1), (5, 1), (None, 1)], expected_total=[list(e) for e in expected],
        outside_mass=[[0.0, 0.1], [0.0, 0.3], [NAN, 0.0], [NAN, 0.0]],
    )  # fmt: skip
    found = repaired("logprob_scores", calls=[calls])
    # The scores themselves say ALPHA throughout. Of the last pair the reply could not be read, whatever its tokens.
    assert decided(found, "logprob_scores") == [B, T, None, None]
    # 8 calls, one without probabilities, one unusable; their mass outside: 0, 0.1, 0, 0.3, 0, 0.
    expected_note = "6 of 8 scores have token probabilities; probability outside the scale: mean 0.0667, largest 0.3000"
    assert told(found, "logprob_scores") == [expected_note]
    assert spent(found, "logprob_scores")["calls"] == 8
    assert (found.decisions["judge"] == "j").all()


def test_without_any_token_probabilities():
    found = repaired("logprob_scores", calls=[scored("j", "logprob_scores/direct", [(5, 1)] * 4)])
    assert decided(found, "logprob_scores") == [None] * 4
    assert told(found, "logprob_scores") == ["0 of 8 scores have token probabilities"]


def test_the_majority_of_samples():
    samples = [
        ([A, A, T, None], [B, A, T, None]),
        ([A, B, T, None], [B, B, None, None]),
        ([B, None, A, None], [A, T, None, A]),
    ]
    calls = [
        compared("j", f"self_consistency/{pass_}", preferences, repeat=repeat)
        for repeat, both in enumerate(samples)
        for pass_, preferences in zip(("original", "swapped"), both, strict=True)
    ]
    found = repaired("self_consistency", calls=calls)
    # Two of three; one, one and none; two ties of three; none usable.
    assert decided(found, "self_consistency") == [A, X, T, None]
    assert decided(found, "self_consistency", column="original") == [A, None, T, None]
    # One tie of three samples is no majority, though the only usable one.
    assert decided(found, "self_consistency", column="swapped") == [B, None, None, None]
    cost = spent(found, "self_consistency")
    assert (cost["calls"], cost["pairs"], cost["cost"]) == (12, 4, 6.0)


def test_the_majority_of_scored_samples():
    plain = [scored("j", "direct", [(5, 3)] * 4)]
    totals = [[(5, 3), (3, 5), (3, 3), (None, 3)], [(5, 3), (5, 3), (3, 3.2), (None, 3)]]
    calls = [scored("j", "self_consistency/direct", own, repeat=repeat) for repeat, own in enumerate(totals)]
    found = repaired("self_consistency", plain=plain, calls=calls)
    assert decided(found, "self_consistency") == [A, X, T, None]
    assert spent(found, "self_consistency")["calls"] == 16
    with pytest.raises(ValueError, match="self_consistency: not every sample has the same pairs"):
        repaired("self_consistency", plain=plain, calls=[calls[0], calls[1][:-2]])


@profile(max_examples=15, deadline=None)
@given(st.lists(st.lists(st.sampled_from([A, B, T, None]), min_size=4, max_size=4), min_size=1, max_size=5))
def test_majority_against_a_naive_twin(samples):
    expected = []
    for votes in zip(*samples, strict=True):
        most = [label for label in LABELS if votes.count(label) > len(samples) / 2]
        expected.append(most[0] if most else X if any(votes) else None)
    columns = [pd.Series([NAN if v is None else v for v in sample], dtype=object) for sample in samples]
    assert [None if pd.isna(v) else v for v in majority_of(columns, LABELS)] == expected
    calls = [compared("j", "self_consistency/original", sample, repeat=repeat) for repeat, sample in enumerate(samples)]
    assert decided(repaired("self_consistency", calls=calls), "self_consistency") == expected


def test_both_presentations():
    found = repaired("both_presentations")
    assert decided(found, "both_presentations") == [A, X, T, None]
    assert decided(found, "both_presentations", column="swapped") == [A, B, T, A], "those of the unrepaired judge"
    cost = spent(found, "both_presentations")
    assert (cost["calls"], cost["pairs"], cost["cost"]) == (8, 4, 4.0)
    alone = repaired("both_presentations", plain=PLAIN[:1])
    assert decided(alone, "both_presentations") == [], "no swapped pass"


MEMBERS = [
    *PLAIN,
    compared("k", "original", [A, B, A, None]),
    compared("k", "swapped", [B, B, T, None]),
    scored("k", "direct", [(2, 5), (5, 3), (4, 2), (3, 3)]),
    compared("l", "original", [B, B, B, None]),
    compared("l", "swapped", [B, A, None, None]),
    scored("l", "direct", [(3, 4), (1, 1), (1, 1), (3, 3)]),
]


def panel(rule, judges=("j", "k", "l"), **options):
    return {"kind": "panel", "judges": judges, "rule": rule, **options}


def test_a_panel_by_majority():
    found = repaired(panel("majority"), plain=MEMBERS)
    # j k l: A A B, A B B, T A B, none.
    assert decided(found, "panel") == [A, B, X, None]
    # A B B, B B A, T T and none, A alone of three.
    assert decided(found, "panel", column="swapped") == [B, B, T, None]
    assert decided(found, "panel", column="original") == [A, B, None, None]
    cost = spent(found, "panel")
    assert (cost["calls"], cost["tokens_in"], cost["cost"], cost["pairs"]) == (12, 120, 6.0, 4)
    assert told(found, "panel") == []


def test_a_panel_by_votes():
    found = repaired(panel("votes", votes=3), plain=MEMBERS)
    assert decided(found, "panel") == [X, X, X, None]
    assert decided(repaired(panel("votes", votes=2), plain=MEMBERS), "panel") == [A, B, X, None]


def test_a_panel_by_mean_scores():
    found = repaired(panel("mean"), plain=MEMBERS)
    # Means of x and y: 10/3 and 4; 3 and 2.4; 7/3 and 7/3; j has no total of the last.
    assert decided(found, "panel") == [B, A, T, None]
    assert set(found.decisions.loc[found.decisions["repair"] == "panel", "baseline"]) == {"direct"}
    assert (spent(found, "panel")["calls"], spent(found, "panel")["pairs"]) == (24, 4)


def test_a_panel_repairs_its_members_only():
    judges = {"j": "EUR", "k": "EUR", "l": "EUR"}
    found = repaired(panel("majority", ("j", "k")), plain=MEMBERS, judges=judges)
    assert decided(found, "panel") == decided(found, "panel", judge="k") == [A, X, X, None]
    assert decided(found, "panel", judge="l") == []
    assert spent(found, "panel", judge="k")["calls"] == 8


def test_a_panel_with_a_judge_that_was_not_asked():
    found = repaired(panel("majority", ("j", "k", "m")), plain=MEMBERS)
    assert decided(found, "panel") == [A, X, X, None], "two of three are still needed"
    assert told(found, "panel") == ["judges of the panel that were not asked: m"]
    assert decided(repaired(panel("mean", ("j", "m")), plain=MEMBERS), "panel") == [None] * 4
    nothing = repaired(panel("majority"), plain=[PLAIN[2], *MEMBERS[3:]])
    assert decided(nothing, "panel") == [], "a judge that does not compare has no baseline for it"


def test_costs_of_a_panel_need_all_of_them():
    unpriced = [[{**row, "cost": NAN} for row in part] for part in MEMBERS[3:6]]
    found = repaired(panel("majority"), plain=[*PLAIN, *unpriced, *MEMBERS[6:]])
    assert np.isnan(spent(found, "panel")["cost"])
    assert spent(found, "panel")["tokens_in"] == 120
    found = repaired(panel("majority"), plain=MEMBERS, judges={"j": "EUR", "k": "USD"})
    assert np.isnan(spent(found, "panel")["cost"])
    assert told(found, "panel") == ["costs in several currencies have no sum: EUR, USD"]


def test_costs_sum_what_is_known():
    calls = compared("j", "verdict_only/original", [A, B, None, None])
    calls[0] |= {"attempts": 3, "tokens_in": 30}
    calls[2] |= {"status": "missing", "attempts": None, "tokens_in": None, "tokens_out": None, "cost": NAN}
    cost = spent(repaired("verdict_only", calls=[calls]), "verdict_only")
    assert (cost["calls"], cost["requests"], cost["tokens_in"], cost["tokens_out"]) == (4, 5, 50, 6)
    assert cost["cost"] == 1.5
    nothing = [row | {"attempts": None, "tokens_in": None, "tokens_out": None, "cost": NAN} for row in calls]
    cost = spent(repaired("verdict_only", calls=[nothing]), "verdict_only")
    assert cost["requests"] == 0
    assert cost[["tokens_in", "tokens_out", "cost"]].isna().all()


TUNED = [scored("j", "development/direct", [(4, 2), (3, 3.5), (4, 3.75)], items=DEVELOPMENT)]
SCORES = {"d1": (5, 2), "d2": (2, 4), "d3": (4, 3), "e1": (5, 1), "e2": (4, 4)}


def test_recalibration_is_learned_on_development_items():
    reference = people(scores=SCORES)
    found = repaired("recalibration", calls=TUNED, reference=reference)
    # Development totals 4 2 3 3.5 4 3.75, accepted from 4 on: 1 0 0 1 1 0. In order 2 3 3.5 3.75 4 4: 0 0 1 0 1 1,
    # of which 1 0 is pooled: 0 0 1/2 1/2 1 1. Evaluation: 5 3, 3 3.2, 2 4, none 4.
    fitted = IsotonicRegression(out_of_bounds="clip").fit([2, 3, 3.5, 3.75, 4, 4], [0, 0, 1, 0, 1, 1])
    answers = found.answers.set_index(["item_id", "system"])
    expected = {("e1", A): 1.0, ("e1", B): 0.0, ("e2", A): 0.0, ("e2", B): 0.2, ("e3", A): 0.0, ("e3", B): 1.0}
    for key, value in expected.items():
        assert answers.loc[key, "recalibrated"] == pytest.approx(value)
        assert fitted.predict([answers.loc[key, "total"]])[0] == pytest.approx(value)
    assert np.isnan(answers.loc[("e4", A), "recalibrated"])
    assert decided(found, "recalibration") == [A, B, B, None], "0.2 after recalibration is no tie any more"
    assert answers["probability"].tolist()[:2] == [1.0, 0.5]
    assert answers.loc[("e1", A), "accepted"] == answers.loc[("e2", B), "accepted"] == 1
    choice = found.choices.iloc[0]
    assert (choice["what"], choice["default"], choice["n"]) == ("acceptance threshold", 4, 6)
    # From 3.5 on: all three accepted, 2 of 3 rejected; from 4 on: 2 of 3, all rejected. The protocol's stands.
    assert (choice["value"], choice["score"]) == (4, pytest.approx(5 / 6))
    cost = spent(found, "recalibration")
    assert (cost["calls"], cost["tuning_calls"], cost["pairs"]) == (8, 6, 4)
    assert told(found, "recalibration") == ["learned on 6 answers only, fewer than 20"]


@pytest.mark.parametrize(("threshold", "chosen"), [(None, 0), (4.0, 1)])
def test_recalibration_by_preference(threshold, chosen):
    found = repaired("recalibration", calls=TUNED, acceptance_threshold=threshold)
    # d1: ALPHA (4) accepted, BETA (2) not; d2: BETA (3.5), ALPHA (3); d3 a tie.
    assert len(found.choices) == chosen, "without a threshold in the protocol none is chosen"
    notes = told(found, "recalibration")
    assert notes[0].startswith("learned on 4 answers only, fewer than 20; 2 of 6 answers left out")
    assert notes[1].startswith("people gave no scores or the protocol has no threshold")
    assert decided(found, "recalibration") == [A, B, B, None]
    assert found.answers["accepted"].tolist()[:2] == [1.0, 0.0]


def test_the_margin_is_chosen_on_development_items():
    found = repaired("tie_margin", calls=TUNED)
    # Differences 2, −0.5, 0.25 of people's A, B, TIE: the protocol's 0.25 has all three.
    choice = found.choices.iloc[0]
    assert (choice["what"], choice["value"], choice["score"], choice["n"]) == ("tie margin", 0.25, 1.0, 3)
    assert decided(found, "tie_margin") == decided(found, "direct")
    # With people's A, TIE, TIE it is 0.5; then 2, 0.2 and 2 of the evaluation items are A, TIE and B still.
    found = repaired("tie_margin", calls=TUNED, reference=people(development=(A, T, T)))
    assert (found.choices.iloc[0]["value"], found.choices.iloc[0]["default"]) == (0.5, 0.25)
    found = repaired("tie_margin", calls=TUNED, reference=people(development=(T, T, T)))
    assert decided(found, "tie_margin") == [T, T, T, None]
    cost = spent(found, "tie_margin")
    assert (cost["calls"], cost["tuning_calls"]) == (8, 6)


TUNING = ("recalibration", "tie_margin")


@profile(max_examples=8, deadline=None)
@given(
    st.lists(st.sampled_from([A, B, T, None]), min_size=4, max_size=4),
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=4, max_size=4),
)
def test_labels_of_evaluation_items_change_no_decision(human, scores):
    own = {item: SCORES[item] for item in DEVELOPMENT}
    calls = [*TUNED, compared("j", "verdict_only/original", [A, B, T, None])]
    kinds = (*TUNING, "verdict_only", "both_presentations", panel("majority"))
    one, other = (
        repaired(*kinds, plain=MEMBERS, calls=calls, reference=people(labels, scores=own | more))
        for labels, more in (((None,) * 4, {}), (human, dict(zip(ITEMS, scores, strict=True))))
    )
    pd.testing.assert_frame_equal(one.choices, other.choices)
    pd.testing.assert_frame_equal(one.decisions.drop(columns="human"), other.decisions.drop(columns="human"))
    pd.testing.assert_frame_equal(one.costs, other.costs)
    pd.testing.assert_frame_equal(one.notes, other.notes)
    pd.testing.assert_frame_equal(one.answers.drop(columns="accepted"), other.answers.drop(columns="accepted"))


def test_tuning_without_development_items():
    found = repaired(*TUNING)
    assert all(decided(found, kind) == [] for kind in TUNING)
    assert found.choices.empty
    assert found.answers["recalibrated"].isna().all()
    unusable = [scored("j", "development/direct", [(None, None)] * 3, items=DEVELOPMENT)]
    found = repaired(*TUNING, calls=unusable)
    assert decided(found, "recalibration") == [None] * 4, "nothing was learned"
    assert decided(found, "tie_margin") == decided(found, "direct"), "the protocol's margin stands"
    assert found.choices["score"].isna().all()
    assert all(note.startswith("undefined: ") for note in found.choices["note"])
    assert told(found, "recalibration")[0].startswith("undefined: no answer with a score and a label")


def test_a_subset_of_items_counts_its_own_pairs():
    calls = [
        compared("j", "verdict_only/original", [B, A], items=("e2", "e4")),
        compared("j", "verdict_only/swapped", [B, A], items=("e2", "e4")),
        scored("j", "level_descriptions/direct", [(1, 2)], items=("e3",)),
        *(compared("j", "self_consistency/original", [A], items=("e1",), repeat=repeat) for repeat in range(3)),
    ]
    found = repaired("verdict_only", "level_descriptions", "self_consistency", calls=calls)
    rows = found.decisions[found.decisions["repair"] == "verdict_only"]
    assert rows["item_id"].tolist() == ["e2", "e4"]
    assert decided(found, "verdict_only") == [B, A]
    assert decided(found, "level_descriptions") == [B]
    pairs = [(spent(found, kind)["calls"], spent(found, kind)["pairs"]) for kind in found.costs["repair"][2:]]
    assert pairs == [(2, 2), (2, 1), (3, 1)]


def test_calls_of_which_none_is_usable():
    calls = [compared("j", f"verdict_only/{pass_}", [None] * 4) for pass_ in ("original", "swapped")]
    calls += [scored("j", "level_descriptions/direct", [(None, None)] * 4)]
    calls += [compared("j", "self_consistency/original", [None] * 4, repeat=repeat) for repeat in range(2)]
    kinds = ("verdict_only", "level_descriptions", "self_consistency")
    found = repaired(*kinds, calls=calls)
    for kind in kinds:
        assert decided(found, kind) == [None] * 4
        assert spent(found, kind)["pairs"] == 4
    for column in ("decision", "original", "swapped", "human"):
        assert found.decisions[column].dtype == object
    made = repair_table(found.decisions, found.costs, labels=LABELS, ci_level=0.95, resamples=20, seed=1)
    rates = made[(made["measure"] == "unusable_rate") & made["slice"].isin([f"repair={kind}" for kind in kinds])]
    assert rates["estimate"].tolist() == [1.0, 1.0, 1.0]
    assert set(buying_order(made)["verdict"]) == {"too little data"}


def test_everything_missing_and_nothing_labelled():
    plain = [[row | {"status": "missing", "cost": NAN, "attempts": None} for row in part] for part in PLAIN]
    reference = people((None,) * 4, (None,) * 3)
    kinds = ("both_presentations", panel("majority", ("j", "k")), *TUNING)
    found = repaired(*kinds, plain=plain, calls=TUNED, reference=reference)
    assert found.decisions["decision"].isna().all()
    assert found.decisions[["decision", "original", "swapped"]].dtypes.eq(object).all()
    assert found.answers[["total", "accepted", "probability", "recalibrated"]].dtypes.eq(float).all()
    repair_table(found.decisions, found.costs, labels=LABELS, ci_level=0.95, resamples=20, seed=1)


def test_without_repaired_calls():
    for none in (pd.DataFrame(), table()):
        found = repair_decisions(
            table(*PLAIN), none, comparisons=comparisons(), reference=people(), judges={"j": "EUR"}, labels=LABELS,
            repairs=[{"name": kind, "kind": kind} for kind in ("verdict_only", "self_consistency", "logprob_scores")],
            margin=0.25, acceptance_threshold=None, scale=(1, 5),
        )  # fmt: skip
        assert found.decisions["repair"].unique().tolist() == ["pairwise", "direct"]
        assert found.notes.empty
        assert found.costs["repair"].tolist() == ["pairwise", "direct"]


def test_a_judge_without_one_strategy_or_without_calls():
    kinds = ("both_presentations", panel("mean", ("j", "k")), *TUNING)
    pairwise = repaired(*kinds, plain=PLAIN[:2], calls=TUNED)
    assert pairwise.costs["repair"].tolist() == ["pairwise", "both_presentations"]
    assert pairwise.answers.empty
    direct = repaired(*kinds, plain=PLAIN[2:], calls=TUNED)
    assert direct.costs["repair"].tolist() == ["direct", "panel", "recalibration", "tie_margin"]
    nobody = repaired(*kinds, plain=PLAIN, judges={"m": "EUR"})
    assert nobody.decisions.empty
    assert nobody.costs.empty
    assert list(nobody.decisions.columns)[:3] == ["judge", "repair", "baseline"]
    assert repaired(*kinds, judges={}).answers.columns.tolist() == direct.answers.columns.tolist()


def test_three_systems():
    systems, pairs = (A, B, C), [(A, B), (A, C), (B, C)]
    wins = {(A, B): [A, B, T, None], (A, C): [C, C, A, A], (B, C): [B, C, T, T]}
    plain = [scored("j", "direct", [(5, 3, 1), (3, 3, 4), (2, 4, None), (1, 1, 1)], systems=systems)]
    plain += [compared("j", "original", wins[pair], pair=pair) for pair in pairs]
    calls = [compared("j", "verdict_only/original", wins[pair][::-1], pair=pair) for pair in pairs]
    calls += [scored("j", "development/direct", [(5, 3, 1)] * 3, items=DEVELOPMENT, systems=systems)]
    reference = people((None,) * 4, (None,) * 3, systems=systems)
    reference["human"] = reference["system_x"].astype(object)
    options = {"comparisons": comparisons(systems), "reference": reference, "labels": (A, B, C, T)}
    found = repaired("verdict_only", *TUNING, plain=plain, calls=calls, **options)
    # Item by item the pairs AB, AC, BC.
    assert decided(found, "pairwise") == [A, C, B, B, C, C, T, A, T, None, A, T]
    assert decided(found, "direct") == [A, A, B, T, C, C, B, None, None, T, T, T]
    assert decided(found, "verdict_only") == [None, A, T, T, A, T, B, C, C, A, C, B]
    direct = spent(found, "direct")
    assert (direct["calls"], direct["pairs"]) == (12, 12), "every answer is scored once for all its pairs"
    assert spent(found, "tie_margin")["tuning_calls"] == 9
    assert len(found.answers) == 12
    # By preference A is accepted, C is not, and B, which wins one and loses one, is neither.
    accepted = found.answers.set_index(["item_id", "system"])["accepted"]["e1"]
    assert (accepted[A], accepted[C]) == (1, 0)
    assert np.isnan(accepted[B])


def test_order_of_rows_does_not_matter():
    calls = table(*TUNED, compared("j", "verdict_only/original", [A, B, T, None]))
    repairs = [{"name": kind, "kind": kind} for kind in ("verdict_only", "both_presentations", *TUNING)]
    options = {"comparisons": comparisons(), "judges": {"j": "EUR"}, "labels": LABELS, "repairs": repairs}
    options |= {"margin": 0.25, "acceptance_threshold": 4.0, "scale": (1, 5)}
    one = repair_decisions(table(*PLAIN), calls, reference=people(scores=SCORES), **options)
    other = repair_decisions(table(*PLAIN)[::-1], calls[::-1], reference=people(scores=SCORES)[::-1], **options)
    for name in ("decisions", "costs", "choices", "answers", "notes"):
        pd.testing.assert_frame_equal(getattr(one, name), getattr(other, name))


def test_what_is_refused():
    with pytest.raises(ValueError, match="kind 'wishing' is unknown; allowed are verdict_only, reasoning_first"):
        repaired("wishing")
    twice = {"kind": "verdict_only", "name": "few_shot_direct"}
    with pytest.raises(ValueError, match="'few_shot_direct' is the name of two repairs"):
        repaired(twice, {"kind": "few_shot", "strategies": ("pairwise", "direct")})
    for name in ("development", "direct"):
        with pytest.raises(ValueError, match=f"'{name}' is the name of two repairs, or of the judge without one"):
            repaired({"kind": "verdict_only", "name": name})
    same = compared("j", "verdict_only/original", [A, A, A, A])
    with pytest.raises(ValueError, match="4 of 8 rows repeat a key"):
        repaired("verdict_only", calls=[same, same])
    with pytest.raises(ValueError, match="lie off the scale 1 to 5, first 6"):
        repaired(plain=[scored("j", "direct", [(6, 1)] * 4)])
    options = {"comparisons": comparisons(), "reference": people(), "judges": {"j": ""}, "labels": LABELS, "margin": 0}
    options |= {"repairs": [{"name": "s", "kind": "self_consistency"}], "acceptance_threshold": None, "scale": (1, 5)}
    with pytest.raises(ValueError, match="repaired: missing column repeat"):
        repair_decisions(table(*PLAIN), table(same).drop(columns="repeat"), **options)
    with pytest.raises(ValueError, match="plain: missing column cost"):
        repair_decisions(table(*PLAIN).drop(columns="cost"), table(), **options)


def test_the_tables_fit_the_statistics():
    calls = [*TUNED, compared("j", "verdict_only/original", [A, B, T, B])]
    found = repaired("verdict_only", "both_presentations", *TUNING, calls=calls)
    made = repair_table(found.decisions, found.costs, labels=LABELS, ci_level=0.95, resamples=20, seed=1)
    values = made.set_index(["slice", "measure"])["estimate"]
    # People say A, B, TIE of three items; pairwise A, A, TIE; the repair all three.
    assert values["repair=pairwise", "exact_agreement"] == pytest.approx(2 / 3)
    assert values["repair=verdict_only", "exact_agreement_gain"] == pytest.approx(1 / 3)
    assert values["repair=both_presentations", "coverage"] == 0.5
    assert values["repair=both_presentations", "calls_per_decision"] == 2
    assert values["repair=both_presentations", "swap_consistency_gain"] == 0
    assert values["repair=tie_margin", "tuning_calls"] == 6
