"""Two systems against each other: by hand, a naive twin, the published rule of thumb, invariances, degenerate input."""

import collections

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from judgelab.measure.consensus import consensus
from judgelab.measure.head_to_head import POWER, folded, head_to_head, head_to_head_table
from judgelab.measure.planning import items_for_difference
from judgelab.measure.rows import COLUMNS

from .conftest import pick

SYSTEMS = ["A", "B", "C"]
FAST = {"ci_level": 0.95, "resamples": 50, "seed": 1, "judge": "panel"}


def matches(rows):
    return pd.DataFrame(rows, columns=["item_id", "system_x", "system_y", "preference"]).astype({"preference": object})


def decided(wins_a, wins_b, ties=0, a="A", b="B"):
    """One verdict an item."""
    results = [a] * wins_a + [b] * wins_b + ["TIE"] * ties
    return matches([(f"i{number}", a, b, result) for number, result in enumerate(results)])


def find(rows, measure, pair="A|B", judge="panel"):
    return pick(rows, measure, "both", f"pair={pair}", judge)


random_rows = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from([("A", "B"), ("B", "A"), ("B", "C"), ("C", "A")]),
        st.sampled_from(["x", "y", "TIE", None]),
    ),
    max_size=40,
).map(lambda rows: matches([(i, x, y, {"x": x, "y": y, "TIE": "TIE", None: np.nan}[p]) for i, (x, y), p in rows]))


def naive(table):
    """Pair (as a set) and item -> votes, by a loop."""
    votes = collections.defaultdict(list)
    for line in table.to_dict("records"):
        votes[frozenset((line["system_x"], line["system_y"])), line["item_id"]].append(line["preference"])
    return votes


def result_of(votes):
    usable = [v for v in votes if not pd.isna(v)]
    if not usable:
        return None
    (most, count), *_ = collections.Counter(usable).most_common()
    return most if count > len(usable) / 2 else "TIE"


def test_by_hand(options):
    table = matches(
        [
            *[("i1", "A", "B", "A"), ("i1", "A", "B", "A")],  # A twice
            *[("i2", "A", "B", "A"), ("i2", "B", "A", "B")],  # followed the place: tie
            *[("i3", "A", "B", "B"), ("i3", "A", "B", "TIE")],  # half is not more than half: tie
            *[("i4", "A", "B", "A"), ("i4", "A", "B", np.nan)],  # A
            *[("i5", "A", "B", np.nan), ("i5", "A", "B", np.nan)],  # nothing
            *[("i6", "A", "B", "A"), ("i6", "A", "B", "B"), ("i6", "A", "B", "A")],  # two judges of three
            *[("i7", "A", "B", "B"), ("i7", "B", "A", "B"), ("i7", "A", "B", "TIE")],  # B: two of three, none for A
            *[("i8", "A", "B", "A"), ("i8", "A", "B", "A"), ("i8", "A", "B", "B"), ("i8", "A", "B", "TIE")],  # tie
        ]
    )
    rows = head_to_head(table, **options, judge="panel")
    assert tuple(rows.columns) == COLUMNS
    assert set(rows["strategy"]) == {"pairwise"}
    share, ties, unusable = (find(rows, name) for name in ("win_share", "tie_rate", "unusable_rate"))
    assert (share["numerator"], share["denominator"], share["n_used"], share["n_excluded"]) == (3, 4, 4, 4)
    assert share["note"] == "4 of 8 items left out: 3 tied, 1 without a usable verdict"
    assert (ties["numerator"], ties["denominator"], ties["n_excluded"]) == (3, 7, 1)
    assert (unusable["numerator"], unusable["denominator"]) == (3, 20)
    assert "bootstrap over items" in unusable["method"]
    # P(0, 1, 3 or 4 heads of 4) = 10/16
    assert find(rows, "binomial_p")["estimate"] == pytest.approx(10 / 16)
    assert find(rows, "binomial_p_holm")["estimate"] == pytest.approx(10 / 16)
    assert "4 decisive items, 6 are the least" in find(rows, "head_to_head_lead")["note"]


def test_the_documents_rule():
    """55 against 45 of 100 is close to noise; 52 against 48 is no lead; a tie is counted apart."""
    rows = head_to_head(decided(55, 45), **FAST)
    assert find(rows, "binomial_p")["estimate"] == pytest.approx(0.3682, abs=1e-4)  # scipy.stats.binomtest(55, 100)
    assert head_to_head_table(rows)["conclusion"].tolist() == ["treat as tied"]
    for wins, losses, conclusion in ((52, 48, "treat as tied"), (60, 40, "treat as tied"), (61, 39, "x ahead")):
        line = head_to_head_table(head_to_head(decided(wins, losses, 30), **FAST)).iloc[0]
        assert line["conclusion"] == conclusion
        assert (line["wins_x"], line["wins_y"], line["ties"], line["items"]) == (wins, losses, 30, 130)


def test_too_little_data():
    """p = 2 / 2^n is below 0.05 from n = 6 on and below 0.01 from n = 8 on."""

    def concluded(wins, losses, **more):
        return head_to_head_table(head_to_head(decided(wins, losses), **FAST, **more))["conclusion"].tolist()

    assert [concluded(n, 0) for n in (1, 5, 6)] == [["too little data"], ["too little data"], ["x ahead"]]
    assert [concluded(0, n) for n in (5, 6)] == [["too little data"], ["y ahead"]]
    assert [concluded(n, 0, alpha=0.01) for n in (7, 8)] == [["too little data"], ["x ahead"]]
    assert concluded(3, 3) == ["treat as tied"]


@given(random_rows)
@settings(max_examples=30, deadline=None)
def test_naive_twin(table):
    votes = naive(table)
    found = folded(table)
    assert len(found) == len(votes)
    for line in found.to_dict("records"):
        own = votes[frozenset((line["system_x"], line["system_y"])), line["item_id"]]
        result = result_of(own)
        assert (None if pd.isna(line["preference"]) else line["preference"]) == result
        assert line["wins_x"] == own.count(line["system_x"])
        assert line["ties"] == own.count("TIE")
        assert line["wins_x"] + line["wins_y"] + line["ties"] + line["unusable"] == len(own)
    rows = head_to_head(table, **FAST)
    lines = head_to_head_table(rows)
    assert len(lines) == len({pair for pair, _ in votes})
    for line in lines.to_dict("records"):
        pair = frozenset((line["system_x"], line["system_y"]))
        results = [result_of(own) for (name, _), own in votes.items() if name == pair]
        wins, losses = (results.count(line[side]) for side in ("system_x", "system_y"))
        assert (line["wins_x"], line["wins_y"], line["ties"]) == (wins, losses, results.count("TIE"))
        if wins + losses:
            assert line["p"] == pytest.approx(binomtest(wins, wins + losses).pvalue)
            bounds = proportion_confint(wins, wins + losses, 0.05, "beta")
            assert (line["ci_low"], line["ci_high"]) == pytest.approx(bounds)
        else:
            assert np.isnan(line["p"])
            assert np.isnan(line["p_holm"])
    given_p = lines["p"].dropna()
    if len(given_p):
        assert lines["p_holm"].dropna().tolist() == pytest.approx(multipletests(given_p, method="holm")[1].tolist())


@given(random_rows)
@settings(max_examples=40, deadline=None)
def test_folded_is_consensus_at_one_half(table):
    def results(made, **names):
        found = {}
        for line in made.rename(columns=names).to_dict("records"):
            x, y = line["system_x"], line["system_y"]
            votes = {x: line["votes_x"], y: line["votes_y"], "TIE": line["votes_tie"], "none": line["unusable"]}
            result = None if pd.isna(line["preference"]) else line["preference"]
            found[line["item_id"], frozenset((x, y))] = (result, votes)
        return found

    own = results(folded(table), wins_x="votes_x", wins_y="votes_y", ties="votes_tie")
    assert own == results(consensus(table, 0.5))


@given(random_rows, st.randoms())
@settings(max_examples=20, deadline=None)
def test_invariances(table, random):
    def read(given, names=lambda name: name):
        result = {}
        for line in head_to_head_table(head_to_head(given, **FAST)).to_dict("records"):
            x, y = names(line["system_x"]), names(line["system_y"])
            turned = x > y
            wins = (line["wins_y"], line["wins_x"]) if turned else (line["wins_x"], line["wins_y"])
            rest = [line[name] for name in ("ties", "items", "p", "p_holm", "needed")]
            conclusion = line["conclusion"]
            if conclusion.endswith("ahead"):
                conclusion = x if conclusion == "x ahead" else y
            result[min(x, y), max(x, y)] = [*wins, *(round(float(value), 12) for value in rest), conclusion]
        return {pair: str(values) for pair, values in sorted(result.items())}

    expected = read(table)
    swapped = table.rename(columns={"system_x": "system_y", "system_y": "system_x"})
    shuffled = table.loc[random.sample(list(table.index), len(table))]
    renamed = table.replace({"A": "zeta", "B": "beta", "C": "alpha"})
    back = {"zeta": "A", "beta": "B", "alpha": "C"}
    assert read(swapped) == expected
    assert read(shuffled) == expected
    assert read(renamed, back.get) == expected


@given(st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=30, deadline=None)
def test_the_interval_never_contradicts_the_test(wins, losses):
    if wins + losses == 0:
        return
    rows = head_to_head(decided(wins, losses), **FAST)
    share, p = find(rows, "win_share"), find(rows, "binomial_p")["estimate"]
    assert (p < 0.05) == (share["ci_low"] > 0.5 or share["ci_high"] < 0.5)
    assert share["method"] == "Clopper-Pearson"


def test_holm_over_the_pairs():
    """p = 0.0215 (9 of 10) is a lead alone, and none beside two other pairs: 3 x 0.0215."""
    pairs = [decided(9, 1), decided(5, 5, b="C"), decided(5, 5, a="B", b="C")]
    rows = head_to_head(pd.concat(pairs), **FAST)
    assert find(rows, "binomial_p_holm")["estimate"] == pytest.approx(3 * 22 / 1024)
    assert "Holm over 3 pairs" in find(rows, "binomial_p_holm")["method"]
    assert find(rows, "head_to_head_lead")["estimate"] == 0
    assert find(head_to_head(pairs[0], **FAST), "head_to_head_lead")["estimate"] == 1


def test_holm_counts_only_pairs_that_can_be_tested():
    rows = head_to_head(pd.concat([decided(9, 1), decided(0, 0, 9, b="C")]), **FAST)
    assert find(rows, "binomial_p_holm")["estimate"] == pytest.approx(22 / 1024)


@pytest.mark.parametrize(("wins", "losses", "ties"), [(8, 2, 0), (3, 7, 4), (65, 35, 100), (6, 0, 0), (55, 45, 9)])
def test_items_needed_is_near_the_exact_number(wins, losses, ties):
    found = find(head_to_head(decided(wins, losses, ties), **FAST), "items_needed")["estimate"]
    decisive = (wins + losses) / (wins + losses + ties)
    difference = decisive * abs(wins - losses) / (wins + losses)
    exact = items_for_difference(difference, discordant=decisive, level=0.95, power=POWER)
    assert found == pytest.approx(exact, rel=0.1, abs=2)


def test_items_needed_by_hand():
    def needed(*counts, **more):
        return find(head_to_head(decided(*counts), **FAST, **more), "items_needed")

    # 65 %: n = ((1.95996 / 2 + 0.84162 sqrt(0.65 0.35)) / 0.15)^2 = 84.80,
    # times ((1 + sqrt(1 + 2 / (84.80 0.15))) / 2)^2 = 1.0772: 91.34
    assert needed(65, 35)["estimate"] == 92
    assert needed(35, 65)["estimate"] == 92
    assert needed(65, 35, 100)["estimate"] == 184  # half the items tied
    assert needed(65, 35, alpha=0.01)["estimate"] > 92
    assert needed(5, 5)["note"] == "undefined: the observed share is one half"
    assert needed(0, 0, 3)["note"] == "undefined: no decisive item"
    assert needed(1001, 999)["estimate"] == pytest.approx(7_850_000, rel=1e-3)


def test_level_under_no_difference():
    """Of 300 equal pairs of 40 items, 5 % and fewer have a lead (the exact test keeps its level)."""
    rng = np.random.default_rng(7)
    wins = rng.binomial(40, 0.5, size=300)
    leads = [binomtest(int(k), 40).pvalue < 0.05 for k in wins]
    tables = [head_to_head_table(head_to_head(decided(int(k), 40 - int(k)), **FAST)) for k in wins[:40]]
    assert [table["conclusion"].iloc[0].endswith("ahead") for table in tables] == leads[:40]
    assert np.mean(leads) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 300)


def test_two_verdicts_are_not_two_trials():
    """Doubling every verdict changes nothing but the number of verdicts."""
    once = decided(5, 0)
    twice = pd.concat([once, once])
    for table in (once, twice):
        assert find(head_to_head(table, **FAST), "binomial_p")["estimate"] == 2 / 32
    assert find(head_to_head(twice, **FAST), "unusable_rate")["denominator"] == 10


def test_degenerate():
    none = head_to_head(matches([]), **FAST)
    assert len(none) == 0
    assert len(head_to_head_table(none)) == 0
    assert folded(matches([])).empty
    ties = head_to_head(decided(0, 0, 4), **FAST)
    assert find(ties, "tie_rate")["estimate"] == 1
    assert find(ties, "win_share")["note"].startswith("undefined")
    assert head_to_head_table(ties)["conclusion"].tolist() == ["too little data"]
    missing = head_to_head(matches([("i", "A", "B", np.nan)]), **FAST)
    for measure in ("win_share", "tie_rate", "binomial_p", "binomial_p_holm", "items_needed", "head_to_head_lead"):
        line = find(missing, measure)
        assert np.isnan(line["estimate"])
        assert line["note"].startswith("undefined: ")
    assert find(missing, "unusable_rate")["estimate"] == 1
    table = head_to_head_table(missing).iloc[0]
    assert (table["wins_x"], table["wins_y"], table["items"], table["conclusion"]) == (0, 0, 0, "too little data")


def test_by_judge():
    table = pd.concat([decided(2, 1).assign(judge="j"), decided(0, 3).assign(judge="k")])
    assert len(folded(table)) == 3
    apart = folded(table, by=("judge", "item_id"))
    assert apart["judge"].tolist() == ["j"] * 3 + ["k"] * 3
    rows = pd.concat([head_to_head(part, **FAST | {"judge": name}) for name, part in table.groupby("judge")])
    assert head_to_head_table(rows)[["judge", "wins_x"]].to_numpy().tolist() == [["j", 2], ["k", 0]]


def test_refused():
    table = decided(2, 1)
    for alpha in (0, 0.8, 1, float("nan")):
        with pytest.raises(ValueError, match="alpha"):
            head_to_head(table, alpha=alpha, **FAST)
    with pytest.raises(ValueError, match="missing column item_id"):
        head_to_head(table.drop(columns="item_id"), **FAST)
    with pytest.raises(ValueError, match="column item_id: 1 of 3 are missing"):
        head_to_head(table.assign(item_id=["a", None, "b"]), **FAST)
    with pytest.raises(ValueError, match="meet itself"):
        head_to_head(table.assign(system_y="A"), **FAST)
    with pytest.raises(ValueError, match="two systems separated by one"):
        head_to_head_table(head_to_head(decided(1, 1, a="A|x"), **FAST))
    rows = head_to_head(table, **FAST)
    with pytest.raises(ValueError, match="no row of tie_rate"):
        head_to_head_table(rows[rows["measure"] != "tie_rate"])
