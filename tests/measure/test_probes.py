"""Probes of bias: by hand, a naive twin, invariances, planted effects, what is undefined or refused."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from benchmarks.planted_probes import PROBES, simulated
from judgelab.measure.intervals import wilson
from judgelab.measure.multiplicity import holm
from judgelab.measure.probes import flipped, probe_table
from judgelab.measure.rows import COLUMNS

from .conftest import pick

T = "TIE"
QUICK = {"ci_level": 0.95, "resamples": 20, "seed": 1}
RATES = ["flip_rate", "flip_towards_rate", "flip_away_rate", "net_flip_rate"]


def calls(probe, rows, *, target="X", **more):
    """Calls of pairs X, Y; each row is item, pass, base, verdict and perhaps again; X is first in ``original``."""
    names = ["item_id", "pass", "base", "verdict", "again"]
    table = pd.DataFrame([[*row, None][:5] for row in rows], columns=names, dtype=object)
    original = (table["pass"] == "original").to_numpy()
    table = table.assign(judge="j", probe=probe, variant="", category="c", system_x="X", system_y="Y", repeat=0)
    table = table.assign(first=np.where(original, "X", "Y"), second=np.where(original, "Y", "X"), target=target)
    return table.assign(words_added=0, reason="").assign(**more)


def get(table, measure, probe, judge="j"):
    return pick(table, measure, "both", f"probe={probe}", judge)


P, S = "original", "swapped"


@pytest.fixture
def padded():
    # target X. Item 1: tie to X, then (swapped, X second) X to Y: +1 -1. Item 2: Y to X: +1, and Y to tie: +1.
    # Item 3: unchanged, and no verdict. Item 4: no plain verdict at all.
    rows = [(1, P, T, "A"), (1, S, "B", "A"), (2, P, "B", "A"), (2, S, "A", T), (3, P, "A", "A"), (3, S, "A", None)]
    return calls("padding", [*rows, (4, P, None, "A"), (4, S, None, None)])


def test_targeted_by_hand(padded, options):
    table = probe_table(padded, **options)
    assert tuple(table.columns) == COLUMNS
    assert table["measure"].tolist() == [*RATES, "probe_p", "probe_p_holm"]
    assert set(table["strategy"]) == {"pairwise"}
    found = [get(table, name, "padding") for name in RATES]
    assert [(row["numerator"], row["denominator"]) for row in found[:3]] == [(4, 5), (3, 5), (1, 5)]
    assert found[3]["estimate"] == pytest.approx(2 / 5)
    assert found[3]["denominator"] == 5
    assert pd.isna(found[3]["numerator"])
    assert {(row["n_used"], row["n_excluded"]) for row in found} == {(3, 1)}
    for row in found:
        assert "3 of 8 judgments left out: 2 base unusable, 1 probe unusable" in row["note"]
    # the items' sums are 0, 2, 0: of +2 and -2 both are as far from 0
    assert get(table, "probe_p", "padding")["estimate"] == 1.0
    assert found[3]["ci_low"] <= 0.4 <= found[3]["ci_high"]


def test_sign_test(options):
    # one call an item, of which 6 moved towards X and 1 away: the sign test of 6 in 7, 2 (1 + 7) / 128
    rows = [(i, P, T, "A") for i in range(6)] + [(6, P, T, "B")] + [(i, P, "A", "A") for i in range(7, 20)]
    table = probe_table(calls("format", rows), **options)
    assert get(table, "probe_p", "format")["estimate"] == pytest.approx(16 / 128) == binomtest(6, 7).pvalue
    flips = get(table, "flip_rate", "format")
    assert (flips["ci_low"], flips["ci_high"]) == wilson(7, 20, 0.95)


def test_untargeted_by_hand(options):
    # flips of order: items 1 2 3; of the repetition: item 3; item 4 was not repeated, item 5 has no verdict
    rows = [(1, P, "A", "B", "A"), (2, P, "A", T, "A"), (3, P, T, "A", "B"), (4, P, "A", "A", None)]
    table = probe_table(calls("criterion_order", [*rows, (5, P, "A", None, "A")], target=""), **options)
    assert table["measure"].tolist() == ["flip_rate", "excess_flip_rate", "probe_p", "probe_p_holm"]
    flips, excess = get(table, "flip_rate", "criterion_order"), get(table, "excess_flip_rate", "criterion_order")
    assert (flips["numerator"], flips["denominator"], flips["n_used"]) == (3, 4, 4)
    assert excess["estimate"] == pytest.approx(2 / 3)
    assert (excess["denominator"], excess["n_used"], excess["n_excluded"]) == (3, 3, 2)
    assert "2 of 5 judgments left out: 1 probe unusable, 1 without a repetition" in excess["note"]
    p = get(table, "probe_p", "criterion_order")
    assert p["estimate"] == 0.5  # differences 1, 1, 0: two signs of four
    assert p["note"] == "2 of 5 presentations left out: 2 without every verdict"


def test_variants_share_one_repetition(options):
    # both variants flip on all of three items, no repetition does: an item's calls may be rotated, 2 -1 -1, and only
    # 2 + 2 + 2 of the 27 sums is as far from 0. Item 4 lacks one variant: it counts in the rates, not in the test.
    rows = [(i, P, "A", "B", "A") for i in range(3)]
    parts = [calls("labels", [*rows, (3, P, "A", "B", "A")], target="", variant="1/2")]
    parts += [calls("labels", [*rows, (3, P, "A", None, "A")], target="", variant="X/Y")]
    table = probe_table(pd.concat(parts), **options)
    assert get(table, "flip_rate", "labels")["denominator"] == 7
    p = get(table, "probe_p", "labels")
    assert p["estimate"] == pytest.approx(1 / 27)
    assert p["method"] == "exact rotation of an item's calls"
    assert p["note"] == "1 of 4 presentations left out: 1 without every verdict"
    for name, number in (("1/2", 4), ("X/Y", 3)):
        own = table[table["slice"] == f"probe=labels:{name}"]
        assert own["measure"].tolist() == ["flip_rate", "excess_flip_rate"]
        assert own["denominator"].tolist() == [number, number]


def test_variants_with_targets(options):
    # two variants that favour X, both moved in both of two items: moves from the plain call 1 + 1, rotated -1 + 0
    parts = [calls("authority", [(i, P, T, "A") for i in (1, 2)], variant=name) for name in ("expert", "crowd")]
    table = probe_table(pd.concat(parts), **options)
    assert get(table, "probe_p", "authority")["estimate"] == pytest.approx(1 / 9)
    assert (table["slice"] == "probe=authority:crowd").sum() == len(RATES)
    # one variant for either answer, both obeyed: 1 + 1 from the tie; from X 1 - 1 and from Y 1 - 1 when rotated
    parts[1] = parts[1].assign(target="Y", verdict="B")
    table = probe_table(pd.concat(parts), **options)
    assert get(table, "net_flip_rate", "authority")["estimate"] == 1.0
    assert get(table, "probe_p", "authority")["estimate"] == pytest.approx(1 / 9)


def test_identical_by_hand(options):
    # first place 5, second 1, tie 1, one unusable; the items' sums 2 2 0 0
    rows = [(1, P, None, "A"), (1, S, None, "A"), (2, P, None, "A"), (2, S, None, "A"), (3, P, None, "A")]
    rows += [(3, S, None, "B"), (4, P, None, T), (4, S, None, None)]
    table = calls("identical", rows, target="")
    table["second"] = table["first"]
    rows = probe_table(table, **options)
    assert rows["measure"].tolist() == ["decisive_rate", "net_flip_rate", "probe_p", "probe_p_holm"]
    decisive = get(rows, "decisive_rate", "identical")
    assert (decisive["numerator"], decisive["denominator"]) == (6, 7)
    assert get(rows, "net_flip_rate", "identical")["estimate"] == pytest.approx(4 / 7)
    assert get(rows, "probe_p", "identical")["estimate"] == 0.5
    assert "1 of 8 judgments left out: 1 probe unusable" in decisive["note"]
    assert flipped(table).empty


def test_repetition_by_hand(options):
    # first repetitions: item 1 tie to X and (swapped) tie to X, item 2 X to Y, item 3 still; a second one flips
    rows = [(1, P, T, "A"), (1, S, T, "B"), (2, P, "A", "B"), (3, P, "A", "A")]
    first = calls("repetition", rows, target="", repeat=1)
    second = calls("repetition", [(3, P, "A", T), (2, P, "A", None)], target="", repeat=2)
    table = probe_table(pd.concat([first, second]), **options)
    assert table["measure"].tolist() == ["flip_rate", "noise_floor"]
    flips, floor = (get(table, name, "repetition") for name in ("flip_rate", "noise_floor"))
    assert (flips["numerator"], flips["denominator"]) == (4, 5)
    # ±2 ±1: 3 with probability 1/2, so that 95 % need 3
    assert (floor["estimate"], floor["denominator"]) == (3 / 4, 4)
    looser = probe_table(first, ci_level=0.5, resamples=20, seed=1)
    assert get(looser, "noise_floor", "repetition")["estimate"] == 1 / 4


def test_holm_counts_the_tested_probes_of_one_judge(options):
    few = [(i, P, T, "A") for i in range(6)]
    parts = [calls("padding", few), calls("format", few[:5]), calls("repetition", few, target="", repeat=1)]
    parts += [calls("identity", [(1, P, None, "A")]), calls("format", few, judge="k")]
    table = probe_table(pd.concat(parts), **options)
    p = [2 / 64, 2 / 32]
    assert [get(table, "probe_p", name)["estimate"] for name in ("padding", "format")] == p
    adjusted = [get(table, "probe_p_holm", name)["estimate"] for name in ("padding", "format")]
    assert adjusted == pytest.approx(holm(p).tolist())
    assert get(table, "probe_p_holm", "padding")["method"] == "Holm over 2 probes"
    assert get(table, "probe_p_holm", "format", "k")["estimate"] == 2 / 64
    undefined = get(table, "probe_p_holm", "identity")
    assert np.isnan(undefined["estimate"])
    assert undefined["note"].startswith("undefined: no judgment to count")


def naive(pairs):
    """Counts of one probe with a target, call by call, and its p-value from all signs."""
    rank = {"other": -1, T: 0, "target": 1}
    moves = {}
    for _, row in pairs.iterrows():
        named = {"A": row["first"], "B": row["second"]}
        sides = []
        for verdict in (row["base"], row["verdict"]):
            if isinstance(verdict, str):
                system = named.get(verdict, T)
                sides.append(rank[T if system == T else "target" if system == row["target"] else "other"])
        if len(sides) == 2:
            moves.setdefault(row["item_id"], []).append(int(np.sign(sides[1] - sides[0])))
    every = [m for own in moves.values() for m in own]
    sums = [sum(own) for own in moves.values()]
    signed = [
        abs(sum(s * v for s, v in zip(c, sums, strict=True))) for c in itertools.product((1, -1), repeat=len(sums))
    ]
    return every, np.mean([s >= abs(sum(sums)) for s in signed])


verdicts = st.sampled_from(["A", "B", T, None])
rows_of_calls = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([P, S]), verdicts, verdicts, st.sampled_from("XY")),
    min_size=1,
    max_size=12,
    unique_by=lambda row: row[:2],
)


@given(rows_of_calls)
@settings(max_examples=60, deadline=None)
def test_equals_naive_twin(rows):
    pairs = calls("padding", [row[:4] for row in rows], target=[row[4] for row in rows])
    table = probe_table(pairs, **QUICK)
    every, p = naive(pairs)
    net = get(table, "net_flip_rate", "padding")
    if not every:
        assert all(note.startswith("undefined: no judgment to count") for note in table["note"])
        return
    assert net["estimate"] == pytest.approx(sum(every) / len(every))
    assert get(table, "flip_rate", "padding")["numerator"] == sum(m != 0 for m in every)
    assert get(table, "flip_towards_rate", "padding")["numerator"] == every.count(1)
    assert get(table, "flip_away_rate", "padding")["numerator"] == every.count(-1)
    assert get(table, "probe_p", "padding")["estimate"] == pytest.approx(p, abs=1e-12)
    moved = flipped(pairs)["moved"].tolist()
    assert (moved.count("towards"), moved.count("away")) == (every.count(1), every.count(-1))


VALUES = ["judge", "slice", "measure", "estimate", "ci_low", "ci_high", "numerator", "denominator", "n_used", "note"]


def same(one, two):
    pd.testing.assert_frame_equal(one[VALUES], two[VALUES], atol=1e-12)


def test_invariances(options):
    pairs = simulated(12, np.random.default_rng(5), shift=0.5, spread=1)
    table = probe_table(pairs, **options)
    mixed = pairs.sample(frac=1, random_state=1)
    order = pairs["probe"].unique().tolist()
    mixed = mixed.sort_values("probe", key=lambda column: column.map(order.index), kind="stable")
    again = probe_table(mixed, **options)
    pooled = ~table["slice"].str.contains(":")
    same(table[pooled].reset_index(drop=True), again[~again["slice"].str.contains(":")].reset_index(drop=True))
    names = {"X": "Y", "Y": "X"}
    renamed = pairs.copy()
    for column in ("system_x", "system_y", "first", "second", "target"):
        renamed[column] = renamed[column].replace(names)
    same(table, probe_table(renamed, **options))
    sides = pairs.assign(system_x=pairs["system_y"], system_y=pairs["system_x"])
    same(table, probe_table(sides, **options))
    items = pairs.assign(item_id=pairs["item_id"].map(lambda number: f"item {99 - number}"))
    columns = ["measure", "estimate", "denominator"]
    pd.testing.assert_frame_equal(table[columns], probe_table(items, **options)[columns])


def test_target_and_places_turned(padded, options):
    """The other target negates; other places with turned verdicts change nothing but ``identical``."""
    table = probe_table(padded, **options)
    other = probe_table(padded.assign(target="Y"), **options)
    turned = {"A": "B", "B": "A", T: T}
    places = padded.assign(first=padded["second"], second=padded["first"])
    for column in ("verdict", "base"):
        places[column] = [turned.get(v) for v in padded[column]]
    same(table, probe_table(places, **options))
    assert get(table, "net_flip_rate", "padding")["estimate"] == -get(other, "net_flip_rate", "padding")["estimate"]
    towards, away = get(table, "flip_towards_rate", "padding"), get(other, "flip_away_rate", "padding")
    assert towards["estimate"] == away["estimate"]


@pytest.mark.parametrize(("verdict", "estimate"), [(T, 0.0), ("A", 1.0)])
def test_every_item_alike(verdict, estimate, options):
    table = probe_table(calls("padding", [(i, P, T, verdict) for i in range(10)]), **options)
    row = get(table, "net_flip_rate", "padding")
    unseen = wilson(0, 10, 0.95)[1]
    # at 0 as far up as down; at 1 an unseen item may take away twice its share
    expected = (-unseen, unseen) if estimate == 0 else (1 - 2 * unseen, 1)
    assert (row["estimate"], row["ci_low"], row["ci_high"]) == pytest.approx((estimate, *expected))
    assert row["method"] == "Wilson on the number of items"
    assert get(table, "probe_p", "padding")["estimate"] == (1.0 if estimate == 0 else 2 / 2**10)


def test_nothing_to_compare_with(options):
    pairs = calls("labels", [(i, P, "A", "B", None) for i in range(4)], target="", variant="1/2")
    table = probe_table(pairs, **options)
    for measure in ("excess_flip_rate", "probe_p", "probe_p_holm"):
        row = get(table, measure, "labels")
        assert np.isnan(row["estimate"])
        assert row["note"].startswith("undefined: no repetition to compare with")
    assert get(table, "flip_rate", "labels")["estimate"] == 1


@pytest.mark.parametrize("probe", ["identical", "repetition", "labels", "padding"])
def test_no_verdict_at_all(probe, options):
    pairs = calls(probe, [(i, P, None, None) for i in range(3)], target="X" if probe == "padding" else "")
    table = probe_table(pairs, **options)
    assert table["estimate"].isna().all()
    assert table["note"].str.startswith("undefined: ").all()
    assert set(zip(table["n_used"], table["n_excluded"], strict=True)) == {(0, 3)}


def test_one_item_and_no_rows(padded, options):
    table = probe_table(padded.iloc[[0]], **options)
    row = get(table, "net_flip_rate", "padding")
    assert (row["estimate"], row["note"]) == (1.0, "no interval: 1 item")
    for empty in (padded.iloc[:0], pd.DataFrame()):
        assert probe_table(empty, **options).empty
        assert len(flipped(empty).columns) == 13
    still = calls("repetition", [(1, P, "A", "A")], target="", repeat=1)
    floor = get(probe_table(still, **options), "noise_floor", "repetition")
    assert (floor["estimate"], floor["note"]) == (0.0, "no first repetition changed a verdict")


def test_flipped(padded):
    other = calls("labels", [(9, S, "A", T)], target=None, variant="1/2")
    table = flipped(pd.concat([padded, other, padded.assign(judge="a")]))
    assert table["judge"].tolist() == ["a"] * 4 + ["j"] * 5
    named = table.iloc[4:][["probe", "item_id", "pass", "preference_before", "preference_after", "moved"]]
    assert [tuple(row) for row in named.to_numpy()] == [
        ("labels", 9, S, "Y", T, "changed"),
        ("padding", 1, P, T, "X", "towards"),
        ("padding", 1, S, "X", "Y", "away"),
        ("padding", 2, P, "Y", "X", "towards"),
        ("padding", 2, S, "Y", T, "towards"),
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"verdict": "C"}, "not allowed"),
        ({"again": "X"}, "not allowed"),
        ({"target": "Z"}, "not shown"),
        ({"target": ["X"] * 7 + [""]}, "only some calls of padding"),
        ({"item_id": 1}, "repeat a judge, probe, variant and presentation"),
    ],
)
def test_refused(padded, options, change, words):
    with pytest.raises(ValueError, match=words):
        probe_table(padded.assign(**change), **options)
    with pytest.raises(ValueError, match="missing column base"):
        probe_table(padded.drop(columns="base"), **options)


def share(studies, **planted):
    """In what share of small studies each probe is called moved."""
    rng = np.random.default_rng(8)
    found = []
    for _ in range(studies):
        table = probe_table(simulated(20, rng, **planted), ci_level=0.95, resamples=1, seed=1)
        tested = table[table["measure"] == "probe_p"].set_index("slice")["estimate"]
        found.append([tested[f"probe={name}"] <= 0.05 for name in PROBES])
    return np.mean(found, axis=0)


def test_planted_probes():
    """The benchmark in small: the ten probes keep 5 % together, whatever the preference for a place, and find much."""
    # 9 x 20 tests, of which 5 % are 9 and 19 or more have probability 0.002 (they are not independent, but nearly)
    assert share(20, place=1.0)[1:].mean() < 19 / 180
    assert share(6, place=1.0, shift=1.5, spread=6).mean() > 0.8
