"""Files of matches: what is exported is read again, and bad lines are told all at once."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from judgelab.errors import DataError
from judgelab.judging.match_files import export_matches, read_matches
from judgelab.judging.match_log import Added, MatchLog

from .match_tables import P2, match, table, version


@pytest.fixture
def path(project):
    return project / "outputs" / "board" / "matches.sqlite"


@pytest.fixture
def log(path):
    with MatchLog(path) as opened:
        yield opened


@pytest.mark.parametrize("name", ["matches.csv", "matches.JSONL"])
def test_what_is_exported_is_read_and_added_elsewhere(log, path, name):
    odd = {"item_id": '=1+1, "x"\nü', "category": "007", "reason": "a\nb", "words_x": None}
    log.add(table(match(**odd), match(first=None, judge="k", preference="TIE"),
                  match(item_id="i2", preference=None, reason="timeout")), **version())  # fmt: skip
    log.add(table(match(system_x="=cmd|x", first="=cmd|x", preference="=cmd|x")),
            **version(P2, systems=("=cmd|x", "BETA")))  # fmt: skip
    file = path.with_name(name)
    assert export_matches(log, file) == 4
    read = read_matches(file)
    before = log.matches(mix=True)
    pd.testing.assert_frame_equal(read[list(before)], before)
    with MatchLog(path.with_name("other.sqlite")) as other:
        for (protocol, items), part in read.groupby(["protocol_sha256", "items_sha256"]):
            systems = sorted({*part["system_x"], *part["system_y"]})
            other.add(part, **version(protocol, items, systems=systems, source="import"))
        after = other.matches(mix=True)
    pd.testing.assert_frame_equal(after.drop(columns="source"), before.drop(columns="source"))


def test_carriage_returns_become_line_feeds_in_csv(log, path):
    log.add(table(match(reason="a\r\nb\rc")), **version())
    export_matches(log, path.with_suffix(".csv"))
    assert read_matches(path.with_suffix(".csv"))["reason"].tolist() == ["a\nb\nc"]


def test_an_export_needs_a_known_kind_of_file(log, path):
    for call in (lambda: export_matches(log, path.with_suffix(".xlsx")), lambda: read_matches(path)):
        with pytest.raises(DataError, match=r"end in \.csv or \.jsonl"):
            call()


def written(path, lines):
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_plain_matches_from_elsewhere(log, path):
    file = written(path.with_name("elsewhere.csv"), [
        "system_x,system_y,winner,added_at,colour", "ALPHA,BETA,ALPHA,2024-05-01T12:00:00+02:00,red",
        "ALPHA,BETA,Tie,,", "BETA,GAMMA,DRAW,2024-05-01T12:00:00Z,", "ALPHA,BETA,BETA,,", ""])  # fmt: skip
    read = read_matches(file)
    assert read["preference"].tolist() == ["ALPHA", "TIE", "TIE", "BETA"]
    assert read["repeat"].tolist() == [0, 1, 0, 2]
    assert read["added_at"].fillna("").tolist() == ["2024-05-01T10:00:00+00:00", "", "2024-05-01T12:00:00+00:00", ""]
    assert read.attrs["unused"] == ("colour",)
    assert log.add(read, **version(source="import")) == Added(4, 0)
    assert log.add(read_matches(file), **version(source="import")) == Added(0, 4)
    assert log.matches()["added_at"].iloc[0] == "2024-05-01T10:00:00+00:00"
    assert log.matches()["source"].unique().tolist() == ["import"]
    records = [json.dumps({"system_x": "ALPHA", "system_y": "BETA", "preference": "BETA", "item_id": 7, "words_x": 3})]
    lines = read_matches(written(path.with_name("elsewhere.jsonl"), ["", *records]))
    assert lines[["item_id", "preference", "words_x"]].to_numpy().tolist() == [["7", "BETA", 3.0]]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (["A,B,x", "A,B,A", "A,B,model_a"],
         "2 of 3 lines prefer neither of their two systems nor TIE; first 'x' in line 2"),
        (["A,B,A", "", "A,A,A"], "1 of 2 lines compare a system with itself; first 'A' in line 4"),
        (["A,B,A", ",B,B"], "1 of 2 lines leave system_x without a name; first line 3"),
        (["A,B,"], "1 of 1 lines have neither a preference nor a reason why; first line 2"),
        (["A,B,A", "A,B"], "1 of 2 rows do not have the 3 fields of the header; first line 3 with 2"),
        ([], "0 matches"),
    ],
)  # fmt: skip
def test_bad_lines_of_a_csv_file(path, lines, told):
    with pytest.raises(DataError) as caught:
        read_matches(written(path.with_name("bad.csv"), ["system_x,system_y,winner", *lines]))
    assert told in str(caught.value)
    assert "bad.csv: " in str(caught.value)


def test_bad_lines_of_a_file_in_which_everything_is_wrong(path):
    header = "system_x,system_y,preference,item_id,judge,words_x"
    file = written(path.with_name("bad.csv"), [header, "A,B,C,i,j,1", "A,A,A,i,j,-1", "A,B,A,i,j,1"])
    with pytest.raises(DataError, match=r"3 kinds of problem; nothing was taken") as caught:
        read_matches(file)
    assert "first 'A' in line 3" in str(caught.value)
    twice = written(file, [header, "A,B,A,i,j,1", "B,A,A,i,j,1", "A,B,A,i2,j,1"])
    with pytest.raises(DataError, match=r"1 of 3 matches are there before; .* in line 3 and in line 2"):
        read_matches(twice)
    for wrong, told in [
        (["winner,preference,system_x,system_y", "A,A,A,B"], "columns preference and winner; one of them"),
        (["system_x,winner", "A,A"], "missing column system_y"),
    ]:
        with pytest.raises(DataError, match=told):
            read_matches(written(file, wrong))


def test_bad_lines_of_a_jsonl_file(path):
    good = '{"system_x": "A", "system_y": "B", "preference": "A"}'
    broken = [good, "{", "[1]", '{"a": 1, "a": 2}', '{"words_x": NaN}']
    with pytest.raises(DataError, match=r"4 of 5 lines are no JSON objects; first '\{' in line 2"):
        read_matches(written(path.with_name("bad.jsonl"), broken))
    other = [good, good.replace('"A"}', "true}"), good.replace('"A"}', 'null, "reason": "timeout"}')]
    with pytest.raises(DataError, match=r"1 of 3 lines prefer neither .* first 'True' in line 2"):
        read_matches(written(path.with_name("bad.jsonl"), other))
