"""Tables of rankings: experts' ranks as stage 09 reads them, and the preferences that they imply."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgelab.errors import LabelError
from judgelab.judging.ranking_data import RANK_COLUMNS, read_expert_ranks
from judgelab.labelling.decisions import DECISIONS
from judgelab.labelling.journal import JournalFile
from judgelab.labelling.rank_records import RankJournal, RankRules, normalised
from judgelab.labelling.rank_tasks import planned_rankings, ranking_order
from judgelab.labelling.ranks import (
    implied,
    pair_decisions_of_ranks,
    pairs_of_ranks,
    rank_decisions_of,
    ranks_of,
    read_rank_journals,
)
from judgelab.measure.concordance import reviewer_concordance
from judgelab.measure.expert_ranks import expert_correlations
from judgelab.measure.labelling_progress import agreement_so_far, progress_table, to_adjudicate
from judgelab.study.humans import labels_for_file, reference
from judgelab.study.items import Item, pairs
from judgelab.study.labels import COLUMNS, read_label_file
from judgelab.study.protocol import TIE
from judgelab.study.tables import write_csv

SYSTEMS = ("red", "green", "blue", "grey")
RANKS = st.lists(st.integers(1, 4), min_size=4, max_size=4)


@pytest.fixture
def study(project):
    return project.study(systems={name: {} for name in SYSTEMS})


def journal_of(reviewer, decided, study):
    """A journal of (kind, item, rank by system or None for "cannot judge", note)."""
    file, rules = JournalFile(reviewer, Path(f"{reviewer}.jsonl")), RankRules.of(study)
    for number, (kind, item, rank_of, *note) in enumerate(decided, start=1):
        given = {
            **{"record": number, "event": "decision", "reviewer": reviewer, "session": "s", "number": number},
            **{"kind": kind, "item_id": item, "shown": list(rank_of or SYSTEMS), "note": "".join(note)},
            **{"choice": "ranked" if rank_of else "cannot_judge", "reason": "" if rank_of else "Latin"},
            **{"ranks": list(normalised(list(rank_of.values()))) if rank_of else [], "seconds": float(number)},
            **{"at": "2024-07-19T09:30:00+00:00"},
        }
        file.standing.add(rules.read(given))
    return file


def ranked(*ranks, shown=SYSTEMS):
    by_system = dict(zip(SYSTEMS, ranks, strict=True))
    return {name: by_system[name] for name in shown}


def some(study):
    first = [
        *(("training", "d1", ranked(1, 2, 3, 4)), ("label", "i1", ranked(1, 3, 3, 4), "two alike")),
        *(("label", "i2", None), ("label", "i3", ranked(4, 3, 2, 1)), ("repeat", "i1", ranked(1, 2, 3, 4))),
        ("repeat", "i2", ranked(1, 1, 1, 1)),
    ]
    second = [("label", "i3", ranked(4, 3, 2, 1, shown=SYSTEMS[::-1])), ("label", "i1", ranked(2, 1, 3, 4))]
    return [journal_of("r01", first, study), journal_of("r02", second, study)]


def test_ranks_as_stage_09_reads_them(project, study):
    table = ranks_of(some(study), study)
    assert list(table.columns) == RANK_COLUMNS
    assert table.to_numpy().tolist() == [
        *(["i1", "r01", "red", 1], ["i1", "r01", "green", 2], ["i1", "r01", "blue", 2], ["i1", "r01", "grey", 4]),
        *(["i3", "r01", "red", 4], ["i3", "r01", "green", 3], ["i3", "r01", "blue", 2], ["i3", "r01", "grey", 1]),
        *(["i3", "r02", "red", 4], ["i3", "r02", "green", 3], ["i3", "r02", "blue", 2], ["i3", "r02", "grey", 1]),
        *(["i1", "r02", "red", 2], ["i1", "r02", "green", 1], ["i1", "r02", "blue", 3], ["i1", "r02", "grey", 4]),
    ]
    path = project.root / "params" / "small" / "ranks.csv"
    write_csv(table, path)
    back = read_expert_ranks("params/small/ranks.csv", set(SYSTEMS))
    pd.testing.assert_frame_equal(back, table, check_dtype=False)


@settings(max_examples=25)
@given(st.lists(st.tuples(RANKS, RANKS), min_size=1, max_size=4), st.permutations(range(1, 5)))
def test_competition_ranks_and_mid_ranks_give_the_same_correlations(rankings, ratings):
    rows = [
        (f"i{number}", reviewer, system, rank)
        for number, both in enumerate(rankings)
        for reviewer, ranks in zip(("r01", "r02"), both, strict=True)
        for system, rank in zip(SYSTEMS, normalised(ranks), strict=True)
    ]
    table = pd.DataFrame(rows, columns=["group", "reviewer_id", "system", "rank"])
    middle = table.assign(rank=table.groupby(["group", "reviewer_id"])["rank"].rank())
    rated = pd.DataFrame(
        [
            (name, system, rating)
            for name in table["group"].unique()
            for system, rating in zip(SYSTEMS, ratings, strict=True)
        ],
        columns=["group", "system", "rating"],
    )
    pd.testing.assert_frame_equal(expert_correlations(rated, table), expert_correlations(rated, middle))
    options = {"ci_level": 0.95, "resamples": 20, "seed": 1}
    pd.testing.assert_frame_equal(reviewer_concordance(table, **options), reviewer_concordance(middle, **options))


def test_pairs_of_ranks_make_a_label_file(project, study):
    labels = pairs_of_ranks(some(study), study)
    assert list(labels.columns) == [*COLUMNS, "repeat"]
    own = labels[labels["reviewer_id"] == "r01"]
    assert own[["item_id", "system_x", "system_y", "preference", "repeat"]].to_numpy().tolist() == [
        ["i1", "red", "green", "red", 1], ["i1", "red", "blue", "red", 1], ["i1", "red", "grey", "red", 1],
        ["i1", "green", "blue", TIE, 1], ["i1", "green", "grey", "green", 1], ["i1", "blue", "grey", "blue", 1],
        *(["i3", *pair, pair[1], 1] for pair in pairs(SYSTEMS)),
        *(["i1", *pair, pair[0], 2] for pair in pairs(SYSTEMS)),
    ]  # fmt: skip
    assert labels[["score_x", "score_y"]].isna().all(axis=None)
    assert not labels["is_adjudicated"].any()
    write_csv(labels_for_file(labels, study), project.labels_path)
    back = read_label_file(project.labels_path, study).labels
    pd.testing.assert_frame_equal(back[[*COLUMNS, "repeat"]], labels)
    wanted = pd.DataFrame([("i3", *pair) for pair in pairs(SYSTEMS)], columns=["item_id", "system_x", "system_y"])
    assert reference(back, wanted, ["majority"])["human"].tolist() == [pair[1] for pair in pairs(SYSTEMS)]


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RANKS, st.permutations(SYSTEMS), st.permutations(SYSTEMS))
def test_what_ranks_imply(fresh_project, ranks, one, other):
    """Transitive, the same in whatever sequence the answers stood, and what a plain comparison of ranks says."""
    with fresh_project() as project:
        study = project.study(systems={name: {} for name in SYSTEMS})
    by_system = dict(zip(SYSTEMS, ranks, strict=True))
    tables = [
        pairs_of_ranks([journal_of("r01", [("label", "i1", ranked(*ranks, shown=shown))], study)], study)
        for shown in (one, other)
    ]
    pd.testing.assert_frame_equal(*tables)
    said = {(x, y): said for x, y, said in tables[0][["system_x", "system_y", "preference"]].to_numpy().tolist()}
    assert said == {
        (x, y): TIE if by_system[x] == by_system[y] else min((x, y), key=by_system.get)
        for x, y in itertools.combinations(SYSTEMS, 2)
    }

    def at_least_as_good(x, y):
        return said.get((x, y), said.get((y, x))) in (x, TIE)

    for x, y, z in itertools.permutations(SYSTEMS, 3):
        if at_least_as_good(x, y) and at_least_as_good(y, z):
            assert at_least_as_good(x, z)
            ties = [said.get(pair, said.get(pair[::-1])) == TIE for pair in ((x, y), (y, z), (x, z))]
            assert ties[2] == (ties[0] and ties[1])


def test_two_systems_are_one_pair(project):
    study = project.study()
    file = JournalFile("r01", Path("r01.jsonl"))
    assert pairs_of_ranks([file], study).empty
    assert implied({"ALPHA": 2, "BETA": 1}, ("ALPHA", "BETA")) == "BETA"


def test_decisions_have_notes_and_what_could_not_be_judged(study):
    decisions = pair_decisions_of_ranks(some(study), study)
    assert list(decisions.columns) == DECISIONS
    assert len(decisions) == 8 * 6
    cannot = decisions[decisions["choice"] == "cannot_judge"]
    assert cannot["preference"].isna().all()
    assert set(cannot["reason"]) == {"Latin"}
    assert set(decisions.loc[decisions["note"] != "", "item_id"]) == {"i1"}
    by_item = rank_decisions_of(some(study))
    assert list(by_item.columns) == DECISIONS
    assert by_item["item_id"].tolist() == ["d1", "i1", "i2", "i3", "i1", "i2", "i3", "i1"]
    assert set(by_item["system_x"]) == set(by_item["system_y"]) == {""}


def test_later_decisions_are_counted_and_change_nothing(study):
    file = journal_of("r01", [("label", "i1", ranked(1, 2, 3, 4)), ("label", "i2", ranked(1, 1, 1, 1))], study)
    rules = RankRules.of(study)
    (first, _) = file.standing.initial().values()
    again = {**vars(first), "record": 3, "ranks": [1, 1, 1, 1]}
    file.standing.add(rules.read(again))
    table = rank_decisions_of([file])
    assert table["later"].tolist() == [1, 0]
    assert ranks_of([file], study)["rank"].tolist() == [1, 2, 3, 4, 1, 1, 1, 1]


def test_rankings_go_into_the_views_of_progress_and_adjudication(project, study):
    folder = project.outputs / "small" / "labelling" / "ranks"
    items = [Item(f"i{number:02d}", "t", "", "even" if number % 2 == 0 else "odd", {}, "") for number in range(6)]
    orders = {name: ranking_order(study, items, name, training=0, repeats_share=0.5) for name in ("r01", "r02")}
    for reviewer, order in orders.items():
        with RankJournal.open(folder, reviewer, "s", study=study, known=[item.item_id for item in items]) as journal:
            for each in order[: 9 if reviewer == "r01" else 3]:
                ranks = [SYSTEMS.index(name) + 1 for name in each.shown]  # both agree, but for one pair of one item
                if (each.item_id, reviewer) == (orders["r02"][0].item_id, "r02"):
                    ranks = [2 if rank == 3 else rank for rank in ranks]
                journal.decide(each, "ranked", seconds=each.number, ranks=ranks, note=f"{each.item_id} by {reviewer}")
    journals = read_rank_journals(folder, study=study)
    progress = progress_table(rank_decisions_of(journals), planned_rankings(orders, items))
    counts = progress.set_index(["reviewer_id", "category"])[["planned", "done", "repeats_planned", "repeats_done"]]
    assert counts.loc[("r01", "all")].tolist() == [6, 6, 3, 3]
    assert counts.loc[("r02", "all")].tolist() == [6, 3, 3, 0]
    for decisions in (pair_decisions_of_ranks(journals, study), pairs_of_ranks(journals, study)):
        agreement = agreement_so_far(decisions, labels_allowed=study.labels, ci_level=0.95, resamples=50, seed=1)
        assert agreement.loc[0, ["numerator", "denominator"]].tolist() == [17, 18]
        differ = to_adjudicate(decisions)
        assert differ[["system_x", "system_y", "preference"]].to_numpy().tolist() == [
            ["green", "blue", "green"],
            ["green", "blue", TIE],
        ]
        assert set(differ["item_id"]) == {orders["r02"][0].item_id}
    with_notes = to_adjudicate(pair_decisions_of_ranks(journals, study))
    assert sorted(with_notes["note"]) == [f"{orders['r02'][0].item_id} by {name}" for name in ("r01", "r02")]


def test_no_journal_and_two_of_one_reviewer(project, study):
    assert read_rank_journals(project.outputs / "nowhere", study=study) == []
    for table in (ranks_of([], study), pairs_of_ranks([], study), rank_decisions_of([])):
        assert table.empty
    assert ranks_of([], study)["rank"].dtype == "int64"
    assert list(pairs_of_ranks([], study).columns) == [*COLUMNS, "repeat"]
    (first, _) = some(study)
    for make in (ranks_of, pairs_of_ranks, pair_decisions_of_ranks):
        with pytest.raises(LabelError, match="two journals are of reviewer r01"):
            make([first, first], study)
