"""The leaderboard: counts by a plain loop, rankings that do not exist, few items, names and order, LLMFAO's golden."""

from collections import Counter
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgelab.measure.leaderboard import leaderboard
from judgelab.measure.ranking import by_system, elo
from judgelab.study.sources.llmfao import read_evalica, read_llmfao

COLUMNS = [
    "system", "rank", "rank_low", "rank_high", "letters", "strength_elo", "strength_low", "strength_high", "elo",
    "elo_low", "elo_high", "elo_spread", "win_rate", "win_low", "win_high", "wins", "losses", "ties", "matches",
    "undecided", "items", "few", "note",
]  # fmt: skip
OPTIONS = {"ci_level": 0.95, "resamples": 200, "seed": 1, "permutations": 20}
UNDEFINED = ["penalise", "name", "error"]
NORMAL = "with the normal approximation for"


def verdicts(*rows, items=None):
    """Verdicts of one judge, a row (x, y, preference) each on an item of its own, or on the items given."""
    table = pd.DataFrame(list(rows), columns=["system_x", "system_y", "preference"], dtype=object)
    return table.assign(judge="j", item_id=list(range(len(rows))) if items is None else items)


def dominated(items, order="ab", repeats=1):
    """Every system beats those behind it on every item, in every repeat."""
    rows = [(i, a, b, a) for i in range(items) for a, b in combinations(order, 2) for _ in range(repeats)]
    return verdicts(*(row[1:] for row in rows), items=[row[0] for row in rows])


def ranked(table, **options):
    return leaderboard(table, **{**OPTIONS, **options})


def by(made, column):
    return dict(zip(made.table["system"], made.table[column], strict=True))


def methods(made):
    return made.rows.loc[made.rows["measure"] == "rank", "method"].iloc[0]


@st.composite
def tables(draw):
    rows = draw(st.lists(st.tuples(st.integers(0, 3), st.permutations("abcd"), st.sampled_from("xyt-")), max_size=30))
    told = ((x, y, {"x": x, "y": y, "t": "TIE", "-": None}[says]) for _, (x, y, *_), says in rows)
    return verdicts(*told, items=[item for item, *_ in rows])


def plain_counts(table, threshold):
    """What each system won, lost, tied and had undecided, and its items, match by match."""
    polls = {}
    for number, row in enumerate(table.itertuples()):
        pair = tuple(sorted((row.system_x, row.system_y)))
        key = (row.item_id, pair, number if threshold is None else 0)
        polls.setdefault(key, []).append(row.preference)
    lines = {name: {**dict.fromkeys(["wins", "losses", "ties", "undecided"], 0), "items": set()} for name in "abcd"}
    for (item, pair, _), said in polls.items():
        usable = [vote for vote in said if vote is not None]
        result = None
        if usable:
            (lead, votes), share = Counter(usable).most_common(1)[0], threshold or 0
            result = lead if votes > len(usable) / 2 and votes / len(usable) >= share - 1e-9 else "TIE"
        for own, other in (pair, pair[::-1]):
            what = {own: "wins", other: "losses", "TIE": "ties", None: "undecided"}[result]
            lines[own][what] += 1
            lines[own]["items"].add(item)
    return {name: line for name, line in lines.items() if line["items"]}


@settings(max_examples=30)
@given(tables(), st.sampled_from([None, 0.5, 0.75, 1.0]))
def test_columns_and_counts_are_those_of_a_plain_loop(table, threshold):
    made = ranked(table, threshold=threshold, resamples=20, permutations=3, minimum_matches=4)
    wanted = plain_counts(table, threshold)
    assert set(made.table["system"]) == set(wanted)
    assert list(made.table) == COLUMNS
    for row in made.table.itertuples():
        line = wanted[row.system]
        matches = line["wins"] + line["losses"] + line["ties"]
        assert (row.wins, row.losses, row.ties) == (line["wins"], line["losses"], line["ties"])
        assert (row.matches, row.undecided, row.items) == (matches, line["undecided"], len(line["items"]))
        assert row.few == (matches < 4)
        rate = (line["wins"] + line["ties"] / 2) / matches if matches else np.nan
        assert row.win_rate == pytest.approx(rate, nan_ok=True)
        assert np.isnan(row.rank) == np.isnan(row.strength_elo) == np.isnan(row.elo) == (matches == 0)
    if wanted:
        strengths, known = made.table["strength_elo"], made.table.dropna(subset="rank")
        assert strengths.round(6).is_monotonic_decreasing or strengths.isna().all() or len(known) < len(strengths)
        assert known["strength_elo"].round(6).is_monotonic_decreasing
        assert known["rank"].sum() == len(known) * (len(known) + 1) / 2
        assert (known["rank_low"] <= known["rank"]).all()
        assert (known["rank"] <= known["rank_high"]).all()


def test_rows_gaps_and_matches_belong_to_the_table():
    table = verdicts(*[("a", "b", "a")] * 6, *[("a", "b", "b")] * 2, ("b", "c", "b"), ("b", "c", "c"))
    made = ranked(table, judge="one", start=1500, scale=200, tied=35, strong=40)
    assert set(made.rows["judge"]) == set(made.gaps["judge"]) == set(made.matches["judge"]) == {"one"}
    # a : b are odds of 3 : 1, b : c of 1 : 1; 200 · log10 3 points apart, mean 1500
    gap = 200 * np.log10(3)
    assert by(made, "strength_elo") == pytest.approx(
        {"a": 1500 + 2 / 3 * gap, "b": 1500 - gap / 3, "c": 1500 - gap / 3}
    )
    assert by(made, "rank") == {"a": 1.0, "b": 2.5, "c": 2.5}
    for measure, column in (
        ("elo", "elo"),
        ("strength_elo", "strength_elo"),
        ("win_rate", "win_rate"),
        ("rank", "rank"),
    ):
        rows = made.rows[made.rows["measure"] == measure]
        assert by_system(rows).to_dict() == pytest.approx(by(made, column))
    bands = made.gaps[made.gaps["measure"] == "elo_gap"]
    named = np.select([bands["estimate"] < 35, bands["estimate"] <= 40], ["tied", "moderate"], "strong")
    assert bands["band"].tolist() == named.tolist()
    assert sorted(named) == ["strong", "tied"]
    assert set(made.gaps.loc[made.gaps["measure"] != "elo_gap", "band"]) == {""}
    assert made.fit.systems == ("a", "b", "c")


def test_a_threshold_makes_one_match_of_a_pair_and_item():
    table = verdicts(*[("a", "b", says) for says in ("a", "a", "a", "b")], items=[1] * 4)
    found = {t: by(ranked(table, threshold=t), "wins") | {"ties": ranked(table, threshold=t).table["ties"][0]}
             for t in (None, 0.75, 0.9, 1.0)}  # fmt: skip
    assert found[None] == {"a": 3, "b": 1, "ties": 0}
    assert found[0.75] == {"a": 1, "b": 0, "ties": 0}
    assert found[0.9] == found[1.0] == {"a": 0, "b": 0, "ties": 1}


@pytest.mark.parametrize("undefined", ["penalise", "name"])
def test_one_match(undefined):
    made = ranked(verdicts(("a", "b", "a")), undefined=undefined)
    said = by(made, "note")
    why = "undefeated in its 1 match: its strength has no upper bound"
    assert said["a"] == (f"{why}; strength by a prior" if undefined == "penalise" else f"undefined: {why}")
    assert said["b"].removeprefix("undefined: ").startswith("winless in its 1 match: its strength has no lower bound")
    assert by(made, "elo") == {"a": 1016.0, "b": 984.0}
    assert made.table[["strength_low", "strength_high", "elo_low", "elo_high"]].isna().all(axis=None)
    if undefined == "name":
        assert made.table[["rank", "rank_low", "rank_high", "strength_elo"]].isna().all(axis=None)
        assert by(made, "letters") == {"a": "", "b": ""}
    else:
        assert by(made, "letters") == {"a": "a", "b": "a"}  # a match settles nothing
        assert by(made, "rank_high") == {"a": 2.0, "b": 2.0}


@pytest.mark.parametrize("undefined", UNDEFINED)
def test_ties_only(undefined):
    made = ranked(verdicts(*[("a", "b", "TIE")] * 30), undefined=undefined)
    assert by(made, "strength_elo") == by(made, "elo") == {"a": 1000.0, "b": 1000.0}
    assert by(made, "rank") == {"a": 1.5, "b": 1.5}
    assert made.table[["rank_low", "rank_high", "letters"]].values.tolist() == [[1.0, 2.0, "a"]] * 2
    assert made.table[["wins", "losses", "ties", "note"]].values.tolist() == [[0, 0, 30, ""]] * 2
    notes = made.rows.set_index("measure")["note"]
    assert notes["log_strength"].tolist() == ["no interval: every resample gives the same value"] * 2
    assert made.gaps["note"].tolist() == ["no item separates the two: the interval is a point"] * 2


MIDDLE = [("a", "b", "a"), ("a", "b", "b")] * 4
UNBEATEN = [("top", "a", "top"), *MIDDLE, ("low", "b", "b"), ("top", "low", "top")]


def test_undefeated_and_winless():
    made = ranked(verdicts(*UNBEATEN), undefined="name")
    said = by(made, "note")
    assert said["top"] == "undefined: undefeated in its 2 matches: its strength has no upper bound"
    assert said["low"] == "undefined: winless in its 2 matches: its strength has no lower bound"
    assert made.table["system"].tolist()[:2] == ["a", "b"]
    assert by(made, "rank")["a"] == 1.5
    assert made.table.loc[2:, ["rank", "rank_low", "rank_high", "strength_elo"]].isna().all(axis=None)
    assert by(made, "win_rate")["top"] == 1.0  # a rate has a value; only the strength has none
    ranks = made.rows[made.rows["measure"] == "rank"]
    assert ranks["note"].iloc[0].endswith("rank among the 2 with an estimate; 2 without may stand anywhere")
    prior = ranked(verdicts(*UNBEATEN))
    assert prior.table["system"].tolist()[0] == "top"
    assert prior.table["system"].tolist()[-1] == "low"
    assert by(prior, "note")["a"] == "strength by a prior"
    assert by(prior, "note")["low"].endswith("its strength has no lower bound; strength by a prior")
    assert set(by(prior, "letters").values()) == {"a"}
    assert f"{NORMAL} top, low" in methods(prior)
    with pytest.raises(ValueError, match=r"no finite strengths: top undefeated in its 2 matches.*, low winless"):
        ranked(verdicts(*UNBEATEN), undefined="error")


def test_disconnected_groups():
    table = verdicts(*MIDDLE, *[("c", "d", "TIE"), ("d", "e", "TIE")] * 3)
    why = "no chain of matches joins it with b to the systems that have strengths"
    made = ranked(table, undefined="name")
    assert by(made, "note")["a"] == f"undefined: {why}"
    assert by(made, "rank") == pytest.approx({"c": 2, "d": 2, "e": 2, "a": np.nan, "b": np.nan}, nan_ok=True)
    prior = ranked(table)
    assert by(prior, "note") | {"b": ""} == {
        "a": f"{why}; strength by a prior", "b": "", **dict.fromkeys("cde", "strength by a prior")
    }  # fmt: skip
    assert set(by(prior, "letters").values()) == {"a"}
    apart = prior.gaps[prior.gaps["note"] == "undefined: no chain of matches joins the two"]
    assert apart["estimate"].isna().all()
    assert set(apart["band"]) == {"undefined", ""}
    with pytest.raises(ValueError, match="no chain of matches joins it"):
        ranked(table, undefined="error")


@pytest.mark.parametrize("undefined", ["penalise", "name"])
def test_a_system_without_a_match(undefined):
    made = ranked(verdicts(*MIDDLE, ("a", "c", None)), undefined=undefined)
    line = made.table.iloc[2]
    assert (line["system"], line["note"]) == ("c", "undefined: no match")
    assert line.drop(["system", "letters", "wins", "losses", "ties", "matches", "undecided", "items", "few", "note"]
                     ).isna().all()  # fmt: skip
    assert line[["wins", "losses", "ties", "matches", "undecided", "items"]].tolist() == [0, 0, 0, 0, 1, 1]
    assert line["letters"] == ""
    assert by(made, "note")["a"] == ""
    with pytest.raises(ValueError, match="no finite strengths: c no match"):
        ranked(verdicts(*MIDDLE, ("a", "c", None)), undefined="error")


@pytest.mark.parametrize("undefined", UNDEFINED)
def test_no_rows(undefined):
    made = ranked(verdicts(), undefined=undefined)
    assert [len(part) for part in (made.table, made.rows, made.gaps, made.matches)] == [0] * 4
    assert list(made.table) == COLUMNS  # a study without comparisons is shown as an empty board


@pytest.mark.parametrize("threshold", [None, 0.75])
def test_all_undecided(threshold):
    table = verdicts(("a", "b", None), ("b", "c", None))
    for undefined in ("penalise", "name"):
        made = ranked(table, undefined=undefined, threshold=threshold)
        assert made.table["note"].tolist() == ["undefined: no match"] * 3
        assert made.table[["rank", "strength_elo", "elo", "win_rate", "win_low"]].isna().all(axis=None)
        assert by(made, "undecided") == {"a": 1, "b": 2, "c": 1}
        assert made.rows.loc[made.rows["estimate"].isna(), "note"].str.startswith("undefined: ").all()
        assert not len(made.gaps)
    with pytest.raises(ValueError, match="no finite strengths: a no match, b no match, c no match"):
        ranked(table, undefined="error", threshold=threshold)


@pytest.mark.parametrize("resamples", [1, 2, 18])
def test_too_few_resamples_tell_nobody_apart(resamples):
    for table in (dominated(60), verdicts(*UNBEATEN), verdicts(*MIDDLE)):
        made = ranked(table, resamples=resamples)
        assert set(by(made, "letters").values()) == {"a"}


@pytest.mark.parametrize("order", ["ab", "abcd"])
@pytest.mark.parametrize("repeats", [1, 8])
def test_perfect_dominance_is_told_apart_with_many_items_only(order, repeats):
    # Eight verdicts on an item are no eight items: three items do not settle an order, however often they are judged.
    few, many = (ranked(dominated(items, order, repeats)) for items in (3, 60))
    assert f"{NORMAL} {', '.join(order)}, of which resampling says too little" in methods(few)
    assert set(by(few, "letters").values()) == {"a"}
    assert "".join(many.table["letters"]) == "".join(many.table["system"]) == order
    assert many.table["rank_low"].tolist() == many.table["rank_high"].tolist() == list(range(1, len(order) + 1))
    assert "undefeated in its" in many.table["note"].iloc[0]


def test_one_undefeated_system_is_not_told_apart_by_three_items():
    # b and c beat each other, so that the difference of a and b is not the same in every resample; yet what resampling
    # moves is b alone.
    tables = {
        items: verdicts(
            *[row for i in range(items) for row in (("a", "b", "a"), ("a", "c", "a"), ("b", "c", "bc"[i % 2]))],
            items=np.repeat(range(items), 3),
        )
        for items in (3, 60)
    }
    few, many = (ranked(table) for table in tables.values())
    assert f"{NORMAL} a, of which" in methods(few)
    assert set(by(few, "letters").values()) == {"a"}
    assert by(many, "letters") == {"a": "a", "b": "b", "c": "b"}


def equals(items, rng):
    """Two verdicts of equal systems on each pair and item, with a taste that the two share."""
    rows = []
    for item in range(items):
        for a, b in combinations("abcd", 2):
            taste = rng.normal()
            rows += [(item, a, b, a if taste + rng.logistic() > 0 else b) for _ in range(2)]
    return verdicts(*(row[1:] for row in rows), items=[row[0] for row in rows])


def test_equal_systems_are_seldom_told_apart_by_few_items():
    # Planned for 5 %: more than 6 of 40 has a chance of 0.3 %. The plain bootstrap told them apart in 31 %.
    rng = np.random.default_rng(5)
    apart = 0
    for _ in range(40):
        made = ranked(equals(5, rng), permutations=1, resamples=150)
        apart += not set.intersection(*map(set, made.table["letters"]))
    assert apart <= 6


ESTIMATES = [
    "rank",
    "strength_elo",
    "win_rate",
    "wins",
    "losses",
    "ties",
    "matches",
    "undecided",
    "items",
    "few",
    "note",
]


def sample(rng):
    rows, items = [], []
    for item in range(25):
        for (a, s), (b, t) in combinations(zip("abcd", (1.5, 0.5, -0.5, -1.5), strict=True), 2):
            rows.append((a, b, rng.choice([a if s - t + rng.logistic() > 0 else b, "TIE"], p=[0.9, 0.1])))
            items.append(item)
    return verdicts(*rows, items=items)


def test_order_of_rows_changes_no_estimate():
    table = sample(np.random.default_rng(1))
    one, other = (ranked(t, permutations=300) for t in (table, table.sample(frac=1, random_state=2)))
    left, right = (made.table.set_index("system") for made in (one, other))
    pd.testing.assert_frame_equal(left[ESTIMATES], right[ESTIMATES], rtol=1e-9)
    pd.testing.assert_frame_equal(
        left[["letters", "rank_low", "rank_high"]], right[["letters", "rank_low", "rank_high"]]
    )
    # Elo over random orders, and intervals over resamples: up to their random error
    error = np.hypot(left["elo_spread"], right["elo_spread"]) / np.sqrt(300)
    assert ((left["elo"] - right["elo"]).abs() < 5 * error).all()
    for name in ("strength_low", "strength_high"):
        assert left[name].to_numpy() == pytest.approx(right[name].to_numpy(), abs=30)


def test_new_names_are_all_that_changes():
    table = sample(np.random.default_rng(2))
    new = {"a": "zeta", "b": "y 1", "c": "x|x", "d": "W", "TIE": "TIE"}
    renamed = table.assign(**{name: table[name].map(new) for name in ("system_x", "system_y", "preference")})
    one, other = ranked(table).table, ranked(renamed).table
    assert one["system"].map(new).tolist() == other["system"].tolist()
    same = [name for name in COLUMNS if name not in ("system", "win_low", "win_high", "elo_low", "elo_high")]
    pd.testing.assert_frame_equal(one[same], other[same], rtol=1e-12)
    pd.testing.assert_frame_equal(one[["win_low", "win_high"]], other[["win_low", "win_high"]], atol=0.05)


def test_systems_may_be_numbers():
    made = ranked(verdicts((1, 2, 1), (1, 2, 2), (1, 2, 1)))
    assert made.table[["system", "items", "matches"]].values.tolist() == [["1", 3, 3], ["2", 3, 3]]


@pytest.mark.parametrize("options", [{"k": 0}, {"scale": 0}, {"permutations": 0}, {"prior_sd": 0}, {"undefined": "x"},
                                     {"ties": "x"}, {"threshold": 2}, {"tied": -1}, {"ci_level": 1}])  # fmt: skip
def test_wrong_options_are_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))}"):
        ranked(verdicts(*MIDDLE), **options)


@pytest.mark.data
def test_llmfao_is_the_golden_ranking(shared):
    # evalica's llmfao-golden.csv: Bradley-Terry with sum 1; Elo in the order of the file from 1000 with K 4
    crowd = read_llmfao(shared / "data" / "llmfao").crowd.assign(judge="people")
    golden = read_evalica(shared / "data" / "evalica").golden
    golden = golden[golden["source"] == "llmfao"]
    wanted = {name: part.set_index("system")["score"].sort_index() for name, part in golden.groupby("algorithm")}
    made = leaderboard(crowd, ci_level=0.95, resamples=20, seed=1, permutations=100, k=4.0)
    share = by_system(made.rows[made.rows["measure"] == "strength_share"]).sort_index()
    assert share.index.tolist() == wanted["bradley_terry"].index.tolist()
    assert share.to_numpy() == pytest.approx(wanted["bradley_terry"].to_numpy(), abs=1e-9)
    assert made.table["system"].iloc[0] == wanted["bradley_terry"].idxmax()
    in_file = by_system(elo(crowd, initial=1000.0, k=4.0)).sort_index()
    assert in_file.to_numpy() == pytest.approx(wanted["elo"].to_numpy(), abs=1e-9)
    # Random orders lie around the mean of all by their spread; that of the file, where prompts come one after the
    # other, a few times as far.
    table = made.table.set_index("system").sort_index()
    assert (table["note"] == "").all()
    shuffled = by_system(elo(crowd.sample(frac=1, random_state=1), initial=1000.0, k=4.0)).sort_index()
    for ratings, usual, furthest in ((in_file, 3, 8), (shuffled, 1.3, 4)):
        apart = ((ratings - table["elo"]) / table["elo_spread"]).to_numpy(dtype=np.float64)
        assert 0.5 < np.sqrt((apart**2).mean()) < usual
        assert np.abs(apart).max() < furthest


def test_a_unanimous_gap_has_no_interval_that_is_a_point():
    # The gap is the same in every resample of three items and would be in every one of 3,000: how far a is ahead is
    # not known to the point.
    gaps = ranked(dominated(3)).gaps
    assert gaps["note"].tolist() == ["no interval: every resample gives the same value"] * 2
    assert gaps[["ci_low", "ci_high"]].isna().all(axis=None)
    assert (gaps["estimate"] > 0.5).all()
