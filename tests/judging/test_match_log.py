"""The match log: a match once and for all, and versions never mixed unasked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from judgelab.errors import DataError, LedgerError
from judgelab.judging.match_log import Added, MatchLog, comparable, mixing_notes
from judgelab.judging.match_rules import NO_REASON, without_keys
from judgelab.study.sources.llmfao import read_llmfao

from .match_tables import I1, I2, KEY, P1, P2, match, table, version


@pytest.fixture
def path(project):
    return project / "outputs" / "board" / "matches.sqlite"


@pytest.fixture
def log(path):
    with MatchLog(path) as opened:
        yield opened


# adding


def test_a_match_comes_back_as_it_was_given(log, path):
    assert log.add(table(), **version()) == Added(1, 0)
    row = log.matches().iloc[0].to_dict()
    assert {name: row[name] for name in match()} == match()
    assert (row["protocol_sha256"], row["items_sha256"], row["study_id"]) == (P1, I1, "study")
    assert (row["rubric_version"], row["prompt_version"], row["run"], row["source"]) == (
        "r1", "judge-v1", "run-1", "run"
    )  # fmt: skip
    assert pd.Timestamp(row["added_at"]).utcoffset() == pd.Timedelta(0)
    with MatchLog(path, read_only=True) as reader:
        pd.testing.assert_frame_equal(reader.matches(), log.matches())


def test_adding_again_changes_nothing(log):
    several = table(match(), match(item_id="i2"), match(item_id="i3", preference=None, reason="timeout"))
    assert log.add(several, **version()) == Added(3, 0)
    before = log.matches()
    assert log.add(several, **version(run="run-2")) == Added(0, 3)
    swapped = table(match(system_x="BETA", system_y="ALPHA"))  # the pair is unordered
    assert log.add(swapped, **version()) == Added(0, 1)
    assert log.add(table(match(), match()), **version()) == Added(0, 2)
    pd.testing.assert_frame_equal(log.matches(), before)
    told = log._db.execute("SELECT run, added, replaced, already FROM additions").fetchall()
    assert told == [("run-1", 3, 0, 0), ("run-2", 0, 0, 3), ("run-1", 0, 0, 1), ("run-1", 0, 0, 2)]


@pytest.mark.parametrize(
    "change",
    [
        {"judge": "k"}, {"config_sha256": "d"}, {"item_id": "i2"}, {"system_y": "GAMMA"}, {"first": "BETA"},
        {"first": None}, {"pass": "swapped"}, {"repeat": 1},
    ],
)  # fmt: skip
def test_each_part_of_the_key_counts(log, change):
    log.add(table(), **version())
    assert log.add(table(match(**change)), **version()) == Added(1, 0)


@pytest.mark.parametrize("hashes", [(P2, I1), (P1, I2), ("", I1)])
def test_the_same_match_of_another_version_is_another(log, hashes):
    log.add(table(), **version())
    assert log.add(table(match(preference="BETA")), **version(*hashes)) == Added(1, 0)


def test_another_preference_is_refused_and_nothing_is_written(log):
    log.add(table(match(), match(item_id="i2")), **version())
    before = log.matches()
    later = table(match(item_id="new"), match(preference="TIE"), match(item_id="i2", preference="BETA"))
    with pytest.raises(LedgerError, match=r"2 of 3 matches are there with another preference; first item 'i1', ALPHA "
                       r"and BETA, judge 'j', .*: ALPHA is there, TIE was given\. Nothing was written"):  # fmt: skip
        log.add(later, **version())
    within = table(match(item_id="i9"), match(item_id="i9", preference="BETA"))
    with pytest.raises(LedgerError, match="1 of 2 matches"):
        log.add(within, **version(P2))
    pd.testing.assert_frame_equal(log.matches(), before)
    assert len(log.versions()) == 1
    assert log._db.execute("SELECT count(*) FROM additions").fetchone() == (1,)


def test_an_undecided_match_is_replaced_by_a_verdict_and_never_the_reverse(log):
    failed = match(preference=np.nan, reason="timeout")
    log.add(table(failed, match(item_id="i2")), **version())
    assert log.add(table(failed), **version()) == Added(0, 1)
    assert log.add(table(match(reason="clearer")), **version(run="run-2")) == Added(0, 0, replaced=1)
    assert log.add(table(failed), **version(run="run-3")) == Added(0, 1)
    found = log.matches()
    assert found[["item_id", "preference", "reason", "run"]].to_numpy().tolist() == [
        ["i1", "ALPHA", "clearer", "run-2"], ["i2", "ALPHA", "", "run-1"]
    ]  # fmt: skip
    with pytest.raises(LedgerError, match="another preference"):
        log.add(table(match(preference="BETA")), **version())


def test_undecided_matches_always_have_a_reason(log):
    log.add(table(match(preference=None), match(item_id="i2", preference=None, reason=["a", "b"])), **version())
    found = log.matches()
    assert found["reason"].tolist() == [NO_REASON, '["a", "b"]']
    assert found["preference"].isna().all()


def test_matches_without_item_or_judge_are_numbered_among_their_likes(log):
    anonymous = pd.DataFrame({"system_x": ["ALPHA", "BETA", "ALPHA"], "system_y": ["BETA", "ALPHA", "GAMMA"]})
    anonymous["preference"] = ["ALPHA", "BETA", "TIE"]
    assert log.add(anonymous, **version()) == Added(3, 0)
    assert log.matches()["repeat"].tolist() == [0, 1, 0]
    grown = pd.concat([anonymous, anonymous.tail(1)], ignore_index=True)
    assert log.add(grown, **version()) == Added(1, 3)


def test_a_version_is_what_it_was(log):
    log.add(table(), **version())
    log.add(table(match(item_id="i2")), **version(systems=("GAMMA", "ALPHA", "BETA", "DELTA")))
    assert log.versions()["systems"].tolist() == [("ALPHA", "BETA", "GAMMA", "DELTA")]
    with pytest.raises(LedgerError, match="is there with rubric_version 'r1', not 'r2'; nothing was written"):
        log.add(table(match(item_id="i3")), **version(rubric_version="r2"))


# what is no match


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"system_x": " "}, "leave system_x without a name"),
        ({"system_y": None}, "leave system_y without a name"),
        ({"system_x": "BETA"}, "compare a system with itself; first 'BETA' in row 2"),
        ({"system_x": "BETA "}, "blanks around the name of system_x"),
        ({"system_x": "Tie"}, "call system_x tie or draw"),
        ({"system_x": "OTHER"}, "have in system_x none of ALPHA, BETA, GAMMA; first 'OTHER' in row 2"),
        ({"preference": "alpha"}, "prefer neither of their two systems nor TIE; first 'alpha' in row 2"),
        ({"preference": "GAMMA"}, "prefer neither of their two systems nor TIE"),
        ({"first": "GAMMA"}, "show first what is neither of their two systems"),
        ({"pass": "third"}, "have a pass outside original, swapped and none; first 'third'"),
        ({"words_x": -1}, "do not have a number of words from 0 in words_x; first -1"),
        ({"words_y": "many"}, "do not have a number of words from 0 in words_y"),
        ({"words_y": float("inf")}, "in words_y; first inf"),
        ({"repeat": 0.5}, "do not have a whole number from 0 in repeat"),
        ({"judge": f"by {KEY}"}, "have in judge what looks like a key"),
        ({"weight": 2}, "have a weight other than 1"),
        ({"added_at": "yesterday"}, "do not have a time by ISO 8601 with a time zone"),
    ],
)
def test_a_row_that_is_no_match_is_refused(log, change, told):
    rows = table(match(weight=1), match(**{"item_id": "i2", "weight": 1} | change))
    with pytest.raises(DataError, match="1 of 2 rows ") as caught:
        log.add(rows, **version())
    assert told in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(log.matches()) == 0


def test_every_kind_of_problem_is_told_at_once(log):
    bad = table(match(preference="x"), match(item_id="i2", first="x"), match(item_id="i3", preference="x"))
    with pytest.raises(DataError, match=r"2 kinds of problem; nothing was taken\n.*2 of 3 .*\n.*1 of 3 "):
        log.add(bad, **version())
    with pytest.raises(DataError, match="missing column system_y"):
        log.add(table().drop(columns="system_y"), **version())
    with pytest.raises(DataError, match="source 'x' is none of run, import"):
        log.add(table(), **version(source="x"))


def test_keys_do_not_enter(log, path):
    with pytest.raises(DataError, match="run looks like a key") as caught:
        log.add(table(), **version(run=KEY))
    assert KEY not in str(caught.value)
    log.add(table(match(reason=f"Basic, but ({KEY})", category="Basic maths", secret=KEY)), **version())
    found = log.matches().iloc[0]
    assert (found["reason"], found["category"]) == ("Basic, but ([a key, left out])", "Basic maths")
    log.__exit__()
    assert KEY.encode() not in path.read_bytes()
    assert without_keys("a risk-free answer") == "a risk-free answer"


# reading


def test_versions_are_never_mixed_unasked(log):
    log.add(table(match(), match(item_id="i2")), **version())
    assert len(log.matches()) == 2
    log.add(table(match(judge="k")), **version(P2, study_id="later"))
    with pytest.raises(
        LedgerError, match=r"outputs/board/matches\.sqlite: these 3 matches are of 2 versions"
    ) as caught:
        log.matches()
    day = log.matches(mix=True)["added_at"].iloc[0][:10]
    for part in (P1[:8], P2[:8], I1[:8], "study study", "study later", day, "mix=True", f"version=('{P1[:8]}', '"):
        assert part in str(caught.value)
    assert P1 not in str(caught.value)
    assert len(log.matches(mix=True)) == 3
    assert log.matches(version=(P1[:8], I1[:8]))["item_id"].tolist() == ["i1", "i2"]
    assert log.matches(version=(P2, I1))["study_id"].tolist() == ["later"]
    assert log.matches(judges=["k"])["protocol_sha256"].tolist() == [P2]  # of one version: nothing is mixed
    with pytest.raises(LedgerError, match="2 versions begin with"):
        log.matches(version=("", I1))
    with pytest.raises(LedgerError, match=r"no version begins with \('9', '9'\); there is \(protocol, items\): \(1a1a"):
        log.matches(version=("9", "9"))


def test_only_some_judges_and_systems(log):
    last = match(system_x="GAMMA", first="BETA", preference="TIE")
    log.add(table(match(), match(judge="k"), match(system_y="GAMMA"), last), **version())
    assert log.matches(judges=["k"])["judge"].tolist() == ["k"]
    assert len(log.matches(systems=["ALPHA", "BETA"])) == 2
    for nothing in ({"systems": ["ALPHA"]}, {"judges": []}, {"judges": ["nobody"]}):
        assert len(log.matches(**nothing)) == 0


def test_versions_and_counts(log):
    log.add(table(match(), match(judge="k", item_id="i2", preference=None, reason="timeout")), **version())
    log.add(table(match(system_y="GAMMA")), **version(P2, I2, rubric_version="r2"))
    versions = log.versions()
    assert versions[["matches", "items", "judges", "rubric_version"]].to_numpy().tolist() == [
        [2, 2, ("j", "k"), "r1"], [1, 1, ("j",), "r2"]
    ]  # fmt: skip
    assert (versions["first_seen"] <= versions["last_added"]).all()
    assert log.counts().to_numpy().tolist() == [
        ["ALPHA", 3, 1, 2, 2, 2], ["BETA", 2, 1, 2, 2, 1], ["GAMMA", 1, 0, 1, 1, 1]
    ]  # fmt: skip


def test_a_log_without_matches(log):
    matches = log.matches()
    assert len(matches) == len(log.versions()) == len(log.counts()) == 0
    assert mixing_notes(matches) == ()
    assert len(comparable(matches)) == 0
    none = table().head(0)
    assert log.add(none, **version()) == Added(0, 0)
    assert log.versions()[["matches", "items", "judges"]].to_numpy().tolist() == [[0, 0, ()]]
    log.add(table(), **version())
    full = log.matches()
    assert (full.dtypes == matches.dtypes).all()
    assert mixing_notes(full) == ()


def test_what_is_mixed_is_told(log):
    log.add(table(match(), match(item_id="i2")), **version())
    log.add(table(match(), match(system_y="GAMMA")), **version(P2, I1))
    log.add(table(match()), **version(P2, I2, rubric_version="r2"))
    log.add(table(match(system_x="NEW", system_y="NEWER", first="NEW", preference="NEW")),
            **version("5e" * 32, I2, rubric_version="r2", systems=("NEW", "NEWER")))  # fmt: skip
    matches = log.matches(mix=True)
    notes = mixing_notes(matches)
    assert notes[0] == "6 matches of 4 versions are mixed (sets of items: 2, protocols: 3, rubrics: 2)."
    assert "protocol 1a1a1a1a with items 3c3c3c3c (study study, rubric r1, 2 matches, added 2" in notes[1]
    assert notes[1].endswith("2 of 2 systems and 1 of 2 items are in other versions too.")
    assert notes[2].endswith("2 of 3 systems and 1 of 1 items are in other versions too.")
    assert "0 of 2 systems" in notes[4]
    assert notes[4].endswith("No match joins its systems to the others: their strengths cannot be compared.")
    assert "two different texts" in notes[5]
    assert "different rubrics" in notes[6]
    assert mixing_notes(matches.sample(frac=1, random_state=1))[0] == notes[0]
    groups = comparable(matches)
    assert groups[["group", "items_sha256", "rubric_version", "protocol_sha256", "matches"]].to_numpy().tolist() == [
        [1, I1, "r1", P1, 2], [1, I1, "r1", P2, 2], [2, I2, "r2", P2, 1], [2, I2, "r2", "5e" * 32, 1]
    ]  # fmt: skip
    with pytest.raises(DataError, match="missing column protocol_sha256"):
        mixing_notes(matches.drop(columns="protocol_sha256"))


# people


def test_the_people_of_llmfao(log, shared):
    crowd = read_llmfao(shared / "data" / "llmfao").crowd.rename(columns={"rater": "judge", "prompt": "category"})
    board = version(systems=sorted({*crowd["system_x"], *crowd["system_y"]}), source="import")
    first = crowd.assign(first=crowd["system_x"])
    assert log.add(first.head(5000), **board) == Added(5000, 0)
    assert log.add(first, **board) == Added(len(crowd) - 5000, 5000)
    stored = log.matches()
    for name in ("judge", "item_id", "category", "system_x", "system_y", "preference"):
        assert stored[name].tolist() == crowd[name].tolist()
    assert len(log.counts()) == 59
    assert log.versions()[["matches", "items"]].to_numpy().tolist() == [[len(crowd), crowd["item_id"].nunique()]]
