"""Repairs against the unrepaired judge: values by hand, naive twins, invariances, statsmodels, degenerate input."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar

from judgelab.measure.bias import bias_table
from judgelab.measure.differences import newcombe_paired
from judgelab.measure.position import position_table
from judgelab.measure.repairs import buying_order, repair_table
from judgelab.measure.rows import COLUMNS

from .conftest import ALPHA_BETA
from .conftest import pick as pick_row

A, B, T = ALPHA_BETA
X = "ABSTAIN"
OPTIONS = {"labels": ALPHA_BETA, "ci_level": 0.95, "resamples": 200, "seed": 7}
COSTS = ["judge", "repair", "calls", "requests", "tokens_in", "tokens_out", "cost", "currency", "tuning_calls", "pairs"]


def part(repair, human, decision, original=None, swapped=None, **options):
    """Rows of one repair; ``first`` is the system shown first in the original pass."""
    n = len(human)
    table = pd.DataFrame({"judge": options.get("judge", "j"), "repair": repair, "item_id": range(n)})
    table["baseline"] = options.get("baseline", "direct" if repair == "direct" else "pairwise")
    table["category"], table["system_x"], table["system_y"] = "c", A, B
    sources = {"human": human, "decision": decision, "original": original, "swapped": swapped}
    for name, values in sources.items():
        table[name] = pd.Series(
            [np.nan if v is None else v for v in ([None] * n if values is None else values)], dtype=object
        )
    table["original_first"] = options.get("first", A)
    table["words_x"], table["words_y"] = options.get("words_x", 20), options.get("words_y", 10)
    if "items" in options:
        table["item_id"] = options["items"]
    return table


def costs(*lines):
    return pd.DataFrame([("j", *line) for line in lines], columns=COSTS)


def pick(table, measure, repair, pass_="", judge="j"):
    return pick_row(table, measure, pass_, f"repair={repair}", judge)


def random_study(seed, n=24, per_item=1):
    """A judge that prefers the first place, two repairs of it, and a direct baseline with a repair of its own."""
    rng = np.random.default_rng(seed)
    human = rng.choice([A, B, T, None], n, p=[0.4, 0.3, 0.2, 0.1])
    first = rng.choice([A, B], n)
    words = rng.integers(1, 4, (2, n)) * 10
    items = [f"i{k // per_item}" for k in range(n)]
    parts = []
    if per_item > 1:
        # Each pair of an item has systems of its own.
        systems = np.array([[A, B], [A, "GAMMA"], [B, "GAMMA"]], dtype=object)[np.arange(n) % per_item]
    for repair, base, skill in (
        ("pairwise", "pairwise", 0.5),
        ("rubric", "pairwise", 0.7),
        ("shuffle", "pairwise", 0.5),
        ("direct", "direct", 0.4),
        ("anchors", "direct", 0.6),
    ):
        noise = rng.choice([A, B, T, X, None], (3, n), p=[0.35, 0.25, 0.2, 0.1, 0.1])
        decision = np.where(rng.random(n) < skill, human, noise[0])
        passes = [[None if v == X else v for v in row] for row in noise[1:]]
        passes = passes if base == "pairwise" else [None, None]
        made = part(
            repair,
            human,
            decision,
            *passes,
            baseline=base,
            first=first,
            words_x=words[0],
            words_y=words[1],
            items=items,
        )
        if per_item > 1:
            made["system_x"], made["system_y"] = systems.T
            for name in ("human", "decision", "original", "swapped"):
                chosen = made[name].to_numpy(dtype=object)
                mapped = np.where(chosen == A, systems[:, 0], np.where(chosen == B, systems[:, 1], chosen))
                made[name] = pd.Series(mapped, dtype=object)
            made["original_first"] = np.where(first == A, systems[:, 0], systems[:, 1])
        parts.append(made)
    return pd.concat(parts, ignore_index=True)


RANDOM_COSTS = costs(
    ("pairwise", 48, 48, 4800, 480, 0.24, "USD", 0, 24),
    ("rubric", 72, 75, 9600, 720, 0.48, "USD", 10, 24),
    ("shuffle", 48, 48, 4800, 480, np.nan, None, 0, 24),
    ("direct", 24, 24, 2400, 240, 0.12, "USD", 0, 24),
)


@pytest.fixture(scope="module")
def by_hand():
    """Ten items. People: 8 times ALPHA, once BETA, once no label.

    pairwise is right on 0 to 3 and wrong on 4 to 7 (BETA) and on 8 (ALPHA).
    rubric is right on 0 to 6, abstains on 7, is unusable on 8 and on 9 (no label).
    """
    human = [A] * 8 + [B, None]
    pairwise = part("pairwise", human, [A] * 4 + [B] * 4 + [A, A], [A] * 9 + [B], [A] * 4 + [B] * 6)
    rubric = part("rubric", human, [A] * 7 + [X, None, None], [A] * 10, [A] * 7 + [B, None, T])
    spent = costs(
        ("pairwise", 10, 10, 1000, 100, 0.5, "USD", 0, 10), ("rubric", 30, 31, 3300, 330, np.nan, None, 12, 10)
    )
    return repair_table(pd.concat([pairwise, rubric]), spent, **OPTIONS)


def test_rates_by_hand(by_hand):
    for measure, repair, pass_, numerator, denominator in (
        ("exact_agreement", "pairwise", "", 4, 9),
        ("exact_agreement", "rubric", "", 7, 7),
        ("right_rate", "pairwise", "", 4, 9),
        ("right_rate", "rubric", "", 7, 9),  # 7 abstained and 8 unusable are not right
        ("coverage", "rubric", "", 7, 10),
        ("unusable_rate", "rubric", "", 2, 10),
        ("unusable_rate", "pairwise", "", 0, 10),
        ("swap_consistency", "pairwise", "both", 5, 10),  # 0 to 3 and 9
        ("swap_consistency", "rubric", "both", 7, 9),  # 8 has one pass
    ):
        line = pick(by_hand, measure, repair, pass_)
        assert (line["numerator"], line["denominator"]) == (numerator, denominator), measure
        assert line["ci_low"] <= line["estimate"] <= line["ci_high"]
    note = pick(by_hand, "exact_agreement", "rubric")["note"]
    assert note == "3 of 10 pairs left out: 1 without reference, 1 abstained, 1 unusable"


def test_gains_by_hand(by_hand):
    # Both decide 0 to 6: rubric alone is right on 4, 5, 6; p = 2 / 2³.
    gain = pick(by_hand, "exact_agreement_gain", "rubric")
    assert gain["estimate"] == pytest.approx(3 / 7)
    assert (gain["ci_low"], gain["ci_high"]) == newcombe_paired(4, 3, 0, 0, 0.95)
    assert gain["note"] == "3 of 10 pairs left out: 1 without reference, 2 not decided by both"
    assert "3 of 7 won, 0 lost" in gain["method"]
    assert pick(by_hand, "exact_agreement_gain_p", "rubric")["estimate"] == pytest.approx(0.25)
    # All nine labelled pairs: (7 − 4) / 9, the two last wrong in both.
    gain = pick(by_hand, "right_rate_gain", "rubric")
    assert gain["estimate"] == pytest.approx(3 / 9)
    assert (gain["ci_low"], gain["ci_high"]) == newcombe_paired(4, 3, 0, 2, 0.95)
    # Two verdicts in both on all but 8: rubric 7 of 9 consistent, pairwise 0 to 3 and 9; won 4, 5, 6, lost 9.
    gain = pick(by_hand, "swap_consistency_gain", "rubric", "both")
    assert gain["estimate"] == pytest.approx(2 / 9)
    assert pick(by_hand, "swap_consistency_gain_p", "rubric", "both")["estimate"] == pytest.approx(10 / 16)
    baseline = by_hand[by_hand["slice"] == "repair=pairwise"]["measure"]
    assert not baseline.str.contains("gain|change").any()


def test_what_each_decides_by_hand(by_hand):
    row = pick(by_hand, "decided_agreement_gain", "rubric")
    # rubric decides 0 to 6, all right: 7 of 7; pairwise decides the nine labelled pairs, 4 right
    assert row["estimate"] == pytest.approx(1 - 4 / 9)
    assert row["ci_low"] <= row["estimate"] <= row["ci_high"] <= 1
    assert row["n_used"] == 9
    assert row["method"].startswith("share right of 7 decided pairs minus share right of the 9 that pairwise decides")


@pytest.mark.parametrize("per_item", [1, 3])
def test_a_rule_that_only_abstains_gains_nothing_on_common_pairs_but_by_what_it_decides(per_item):
    study = random_study(5, n=60, per_item=per_item)
    plain = study[study["repair"] == "pairwise"]
    rule = plain.assign(repair="rule", decision=np.where(np.arange(len(plain)) % 3, plain["decision"], X))
    labels = (*ALPHA_BETA[:2], "GAMMA", T)
    made = repair_table(pd.concat([plain, rule]), costs(), **OPTIONS | {"labels": labels})
    assert pick(made, "exact_agreement_gain", "rule")["estimate"] == 0
    right = {}
    for name, table in (("plain", plain), ("rule", rule)):
        decided = table["human"].notna() & table["decision"].isin([A, B, T, "GAMMA"])
        right[name] = (table["decision"] == table["human"])[decided].mean()
    row = pick(made, "decided_agreement_gain", "rule")
    assert row["estimate"] == pytest.approx(right["rule"] - right["plain"])
    assert row["ci_low"] < row["estimate"] < row["ci_high"]


def test_costs_by_hand(by_hand):
    # 3 − 1 = 2 further calls a decision: 3 / 7 · 1000 / 2 pairs won by 1000 calls.
    line = pick(by_hand, "gain_per_1000_calls", "rubric")
    assert line["estimate"] == pytest.approx(1500 / 7)
    low, high = newcombe_paired(4, 3, 0, 0, 0.95)
    assert (line["ci_low"], line["ci_high"]) == pytest.approx((500 * low, 500 * high))
    assert pick(by_hand, "calls_per_decision", "rubric")["estimate"] == 3
    assert pick(by_hand, "tokens_per_decision", "rubric")["estimate"] == 363
    assert pick(by_hand, "tuning_calls", "rubric")["estimate"] == 12
    assert pick(by_hand, "cost_per_decision", "pairwise")["estimate"] == pytest.approx(0.05)
    assert "USD" in pick(by_hand, "cost_per_decision", "pairwise")["method"]
    assert pick(by_hand, "cost_per_decision", "rubric")["note"] == "undefined: no price"


def test_bias_by_hand(by_hand):
    # pairwise, ALPHA shown first in the original: first place 9 of 10, and BETA is first in the swapped pass: 6 of 10;
    # 15 / 20. ALPHA is longer: where people prefer BETA (8) wrong 1 of 1, where ALPHA wrong 4 of 8: gap 1/2 on one
    # item, with a wider interval. rubric: 10 of 10 in the original, BETA once (7) of 8 in the swapped: 11 / 18.
    size = pick(by_hand, "bias_size", "pairwise")
    assert size["estimate"] == pytest.approx(0.25)
    assert size["method"].startswith("|first_position_deviation +0.2500|")
    assert "length_error_gap" in size["method"]
    assert pick(by_hand, "bias_size", "rubric")["estimate"] == pytest.approx(11 / 18 - 0.5)
    change = pick(by_hand, "bias_size_change", "rubric")
    assert change["estimate"] == pytest.approx(11 / 18 - 0.75)
    assert change["ci_low"] < change["estimate"] < change["ci_high"]


def test_order_by_hand():
    # Of 40 items pairwise is right on 20; good wins 15 of the others, plain 15 without a further call, small 3, bad
    # loses 15 (p = 2 / 2¹⁵ each, times 4 at most); none differs nowhere; lost has no decision.
    human, base = [A] * 40, [A] * 20 + [B] * 20
    repairs = {
        "bad": [A] * 5 + [B] * 35,
        "none": base,
        "small": [A] * 23 + [B] * 17,
        "good": [A] * 35 + [B] * 5,
        "twice": [A] * 35 + [B] * 5,
        "plain": [A] * 35 + [B] * 5,
        "lost": [None] * 40,
    }
    table = pd.concat([part("pairwise", human, base), *(part(name, human, d) for name, d in repairs.items())])
    calls = {"pairwise": 40, "plain": 30, "good": 80, "twice": 160}
    spent = costs(*((name, calls.get(name, 80), 0, 1, 1, 1.0, "EUR", 0, 40) for name in ["pairwise", *repairs]))
    found = repair_table(table, spent, **OPTIONS)
    order = buying_order(found)
    assert list(zip(order["repair"], order["verdict"], strict=True)) == [
        ("plain", "free: take"),
        ("good", "buy"),
        ("twice", "buy"),
        ("small", "undecided"),
        ("none", "undecided"),
        ("bad", "harms"),
        ("lost", "too little data"),
    ]
    assert order["gain_per_1000_calls"][1] == pytest.approx(375)  # 15 / 40 · 1000 / 1 further call
    assert order["extra_calls_per_decision"].tolist()[:3] == [-0.25, 1, 3]
    # tests: bad, good, twice, plain 2⁻¹⁴ and small 2 / 8; none and lost are not tested
    assert order["p_holm"].tolist()[:4] == pytest.approx([5 / 2**14] * 3 + [0.25])
    assert order["p_holm"].isna().tolist() == [False, False, False, False, True, False, True]
    assert order["coverage"].tolist() == [1.0] * 6 + [0.0]
    free = pick(found, "gain_per_1000_calls", "plain")
    assert free["note"] == "undefined: free, no calls beyond the baseline's"
    assert pick(found, "exact_agreement_gain_p", "none")["note"].startswith("undefined: no pair on which exactly one")
    assert pick(found, "right_rate_gain", "lost")["estimate"] == -0.5  # unusable is not right
    assert buying_order(found.sample(frac=1, random_state=1)).equals(order)


def naive_gain(study, repair, measure):
    """Difference over common pairs, and item sums, by loops over dictionaries."""
    sides = {}
    for name in (repair, study[study["repair"] == repair]["baseline"].iloc[0]):
        rows = study[study["repair"] == name].to_dict("records")
        sides[name] = {(r["item_id"], frozenset((r["system_x"], r["system_y"]))): r for r in rows}
    mine, base = sides.values()
    sums, n = {}, 0
    for key, row in mine.items():
        other = base[key]
        decided = not any(pd.isna(r["decision"]) or r["decision"] == X for r in (row, other))
        if pd.isna(row["human"]) or (measure == "exact_agreement" and not decided):
            continue
        n += 1
        won = int(row["decision"] == row["human"]) - int(other["decision"] == row["human"])
        sums[key[0]] = sums.get(key[0], 0) + won
    return sums, n


@profile(max_examples=25)
@given(st.integers(0, 10**6), st.sampled_from([1, 3]), st.sampled_from(["exact_agreement", "right_rate"]))
def test_gains_equal_a_naive_twin(seed, per_item, measure):
    study = random_study(seed, 12, per_item)
    labels = (A, B, "GAMMA", T)
    table = repair_table(study, RANDOM_COSTS, **{**OPTIONS, "labels": labels, "resamples": 20})
    for repair in ("rubric", "anchors"):
        sums, n = naive_gain(study, repair, measure)
        gain, p = (pick(table, f"{measure}_gain{end}", repair) for end in ("", "_p"))
        if n == 0:
            assert np.isnan(gain["estimate"])
            continue
        assert gain["estimate"] == pytest.approx(sum(sums.values()) / n)
        assert gain["n_used"] == len(sums)
        flips = [abs(sum(s * v for s, v in zip(signs, sums.values(), strict=True))) for signs in signs_of(sums)]
        exact = np.mean([f >= abs(sum(sums.values())) for f in flips])
        if not np.isnan(p["estimate"]):
            assert p["estimate"] == pytest.approx(exact)
        else:
            assert not any(sums.values())


def signs_of(sums):
    return product((-1, 1), repeat=len(sums))


@profile(max_examples=20)
@given(st.integers(0, 5), st.integers(0, 9), st.integers(0, 9))
def test_p_equals_statsmodels(same, won, lost):
    human = [A] * (same + won + lost + 1)
    base = part("pairwise", human, [A] * same + [B] * won + [A] * lost + [B])
    mine = part("r", human, [A] * same + [A] * won + [B] * lost + [B])
    table = repair_table(pd.concat([base, mine]), costs(), **{**OPTIONS, "resamples": 5})
    p = pick(table, "exact_agreement_gain_p", "r")["estimate"]
    if won + lost == 0:
        assert np.isnan(p)
    else:
        assert p == pytest.approx(mcnemar([[same, won], [lost, 1]], exact=True).pvalue, abs=1e-12)


def normalized(study, repair):
    """The rows of a repair as bias_table and position_table read them; the decision stands for the direct one."""
    rows = study[study["repair"] == repair].reset_index(drop=True)
    decision = rows["decision"].where(rows["decision"] != X)
    renamed = {"direct": decision, "pair_original": rows["original"], "pair_swapped": rows["swapped"]}
    return rows.assign(**renamed, planned_direct=True, planned_original=True, planned_swapped=True)


@profile(max_examples=12)
@given(st.integers(0, 10**6))
def test_biases_equal_those_of_the_tables_of_bias(seed):
    study = random_study(seed)
    table = repair_table(study, RANDOM_COSTS, families={"j": [B]}, **OPTIONS)
    options = {**OPTIONS, "resamples": 50}
    sizes = {}
    for repair in ("pairwise", "rubric", "anchors"):
        biases = bias_table(normalized(study, repair), families={"f": [B]}, **options)
        gaps = biases[(biases["pass"] == "direct")].set_index("measure")["estimate"]
        rate = pick_row(position_table(normalized(study, repair), **options), "first_position_rate", "both")["estimate"]
        sizes[repair] = {
            "first_position_deviation": abs(rate - 0.5) if repair != "anchors" else np.nan,
            "length_error_gap": abs(gaps["length_error_gap"]),
            "family_error_gap": abs(gaps["family_error_gap"]),
        }
    method = pick(table, "bias_size", "pairwise")["method"]
    strengths = dict(text.rsplit(" ", 1) for text in method.split("half width: ")[1].split(", "))
    strongest = max(strengths, key=lambda name: float(strengths[name]))
    for repair, named in sizes.items():
        line = pick(table, "bias_size", repair)
        assert line["estimate"] == pytest.approx(named[strongest], nan_ok=True)
        assert np.isnan(line["estimate"]) or line["ci_low"] >= 0
    change = pick(table, "bias_size_change", "rubric")
    both = sizes["rubric"][strongest] - sizes["pairwise"][strongest]
    assert change["estimate"] == pytest.approx(both, nan_ok=True)


@pytest.mark.parametrize("left", [0.8, 0.66, 0.52])
def test_interval_of_the_bias_change_equals_a_loop_over_items(left):
    # The judge takes the first place in 80 % of its verdicts, the repair in a share ``left``.
    rng = np.random.default_rng(3)
    n, human = 80, [A] * 80

    def passes(rate):
        first = rng.random((2, n)) < rate
        return [A if f else B for f in first[0]], [B if f else A for f in first[1]]

    (o, s), (ro, rs) = passes(0.8), passes(left)
    study = pd.concat([part("pairwise", human, o, o, s), part("r", human, ro, ro, rs)])
    line = pick(repair_table(study, costs(), **{**OPTIONS, "resamples": 4000}), "bias_size_change", "r")
    counts = np.array([[(a == A) + (b == B) for a, b in zip(*p, strict=True)] for p in ((o, s), (ro, rs))])
    signed = counts[:, rng.integers(0, n, (4000, n))].mean(axis=2) / 2 - 0.5
    ends = [0.025, 0.975]
    low, high = np.quantile(np.abs(signed[1]) - np.abs(signed[0]), ends)
    may_be_0 = np.prod(np.quantile(signed[1], ends)) <= 0
    assert may_be_0 == (left == 0.52)
    if may_be_0:  # then the repaired bias also counts as 0
        low = min(low, np.quantile(-np.abs(signed[0]), 0.025))
    assert (line["ci_low"], line["ci_high"]) == pytest.approx((low, high), abs=0.012)


def test_nothing_depends_on_the_order_of_rows_names_or_sides():
    study = random_study(5)
    families = {"j": [B]}
    plain = repair_table(study, RANDOM_COSTS, families=families, **OPTIONS)
    keys = ["judge", "slice", "measure", "pass"]
    numbers = ["estimate", "ci_low", "ci_high", "n_used", "n_excluded", "numerator", "denominator"]

    def values(table):
        return table.set_index(keys)[numbers].sort_index()

    permuted = repair_table(study.sample(frac=1, random_state=2), RANDOM_COSTS[::-1], families=families, **OPTIONS)
    pd.testing.assert_frame_equal(values(permuted), values(plain))
    names = {A: "Z", B: "Y"}
    renamed = study.copy()
    for name in ("system_x", "system_y", "human", "decision", "original", "swapped", "original_first"):
        renamed[name] = study[name].map(lambda v: names.get(v, v)).astype(object)
    options = {**OPTIONS, "labels": ("Y", "Z", T)}
    pd.testing.assert_frame_equal(
        values(repair_table(renamed, RANDOM_COSTS, families={"j": ["Y"]}, **options)), values(plain)
    )
    sides = {"system_x": "system_y", "system_y": "system_x", "words_x": "words_y", "words_y": "words_x"}
    turned = study[study["repair"] == "rubric"].rename(columns=sides)
    mixed = pd.concat([study[study["repair"] != "rubric"], turned])
    pd.testing.assert_frame_equal(
        values(repair_table(mixed, RANDOM_COSTS, families=families, **OPTIONS)), values(plain)
    )
    other = pd.concat([study.assign(judge="k"), study])
    two = repair_table(other, RANDOM_COSTS, families=families, **OPTIONS)
    pd.testing.assert_frame_equal(values(two[two["judge"] == "j"]), values(plain))


def test_several_pairs_an_item():
    # Two items with three pairs each: all won in one, one lost in the other; sums 3 and −1: |±3 ± 1| ≥ 2 always.
    labels = (A, B, "GAMMA", T)
    human = [A, A, B] * 2
    study = [
        part("pairwise", human, [B, "GAMMA", "GAMMA", A, A, B], items=[0, 0, 0, 1, 1, 1]),
        part("r", human, [A, A, B, A, "GAMMA", B], items=[0, 0, 0, 1, 1, 1]),
    ]
    for table in study:
        table["system_x"], table["system_y"] = [A, A, B] * 2, [B, "GAMMA", "GAMMA"] * 2
    found = repair_table(pd.concat(study), costs(), **{**OPTIONS, "labels": labels})
    gain, p = pick(found, "exact_agreement_gain", "r"), pick(found, "exact_agreement_gain_p", "r")
    assert gain["estimate"] == pytest.approx(2 / 6)
    assert (gain["n_used"], gain["ci_low"], gain["ci_high"]) == (2, pytest.approx(-1 / 3), pytest.approx(1))
    assert "bootstrap" in gain["method"]
    assert (p["estimate"], p["method"]) == (1.0, "exact sign-flip test of the sums of 2 items, two-sided")


def undefined(table):
    missing = table[table["estimate"].isna()]
    assert missing["note"].str.startswith("undefined: ").all()
    return set(missing["measure"])


def test_degenerate_studies():
    empty = repair_table(random_study(1).iloc[:0], costs(), **OPTIONS)
    assert list(empty.columns) == list(COLUMNS)
    assert len(empty) == 0
    assert buying_order(empty).empty
    ties = [T] * 6
    table = repair_table(pd.concat([part("pairwise", ties, ties, ties, ties), part("r", ties, ties, ties, ties)]),
                         costs(), **OPTIONS)  # fmt: skip
    assert pick(table, "exact_agreement", "r")["estimate"] == 1
    assert pick(table, "exact_agreement_gain", "r")["estimate"] == 0
    assert pick(table, "bias_size", "r")["note"] == "undefined: no bias of pairwise has an interval"
    assert {"exact_agreement_gain_p", "right_rate_gain_p_holm", "bias_size_change", "calls_per_decision"} <= undefined(
        table
    )
    one = repair_table(pd.concat([part("pairwise", [A], [B], [B], [A]), part("r", [A], [A], [A], [A])]),
                       costs(), **OPTIONS)  # fmt: skip
    assert pick(one, "exact_agreement_gain", "r")["estimate"] == 1
    assert pick(one, "exact_agreement_gain_p", "r")["estimate"] == 1
    undefined(one)
    none = [None] * 5
    gone = repair_table(pd.concat([part("pairwise", [A] * 5, none), part("r", [A] * 5, none)]), costs(), **OPTIONS)
    assert pick(gone, "unusable_rate", "r")["estimate"] == 1
    assert {"exact_agreement", "exact_agreement_gain", "bias_size", "gain_per_1000_calls"} <= undefined(gone)
    assert buying_order(gone)["verdict"].tolist() == ["too little data"]
    nobody = repair_table(pd.concat([part("pairwise", none, [A] * 5), part("r", none, [A] * 5)]), costs(), **OPTIONS)
    assert {"exact_agreement", "right_rate", "right_rate_gain"} <= undefined(nobody)


def test_a_repair_without_its_baseline_or_with_other_pairs():
    alone = repair_table(part("r", [A, B], [A, A], baseline="direct"), costs(), **OPTIONS)
    note = "undefined: no decisions of the baseline direct"
    assert pick_row(alone, "exact_agreement_gain", "", "repair=r")["note"] == note
    assert set(alone["strategy"]) == {"direct"}
    base = part("pairwise", [A, A], [B, A])
    more = part("r", [A, A, B, None], [A, A, B, A])
    gain = pick(repair_table(pd.concat([base, more]), costs(), **OPTIONS), "exact_agreement_gain", "r")
    assert (gain["estimate"], gain["n_used"], gain["n_excluded"]) == (0.5, 2, 0)
    assert gain["note"] == "2 of 4 pairs left out: 2 not asked of the baseline"


def test_what_is_refused():
    study = random_study(1)
    other = A if study["human"][0] != A else B
    for broken, message in (
        (study.drop(columns="words_x"), "missing column words_x"),
        (study.assign(decision="GAMMA"), "labels are not allowed"),
        (pd.concat([study, study[:1]]), "more than one row"),
        (study.assign(human=[other, *study["human"][1:]]), "further human labels"),
        (study.assign(baseline="rubric"), "allowed is pairwise"),
    ):
        with pytest.raises(ValueError, match=message):
            repair_table(broken, RANDOM_COSTS, **OPTIONS)
    with pytest.raises(ValueError, match="allowed is one row each"):
        repair_table(study, pd.concat([RANDOM_COSTS, RANDOM_COSTS]), **OPTIONS)
    with pytest.raises(ValueError, match="unknown system"):
        repair_table(study, RANDOM_COSTS, families={"j": ["GAMMA"]}, **OPTIONS)
