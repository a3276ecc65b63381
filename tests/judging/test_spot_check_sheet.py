"""The spot check's sheet: blind, filled in by a person, and read back as preferences between systems."""

from __future__ import annotations

import asyncio
import csv

import pandas as pd
import pytest

from judgelab.errors import DataError
from judgelab.judging.ranking_data import open_ranking
from judgelab.judging.runner import run_passes
from judgelab.judging.spot_check_sheet import CHOICES, COLUMNS, KEY, read_spot_check, write_spot_check
from judgelab.measure.spot_check import spot_check_agreement, spot_check_sample

SIM = {"name": "sim", "kind": "simulated", "error_rate": 0.2}
COIN = {"name": "coin", "kind": "control", "rule": "coin"}
SYSTEMS = ("ALPHA", "BETA", "GAMMA")
PAIRS = ("pairwise_original", "pairwise_swapped")
FILLED = "params/filled.csv"


@pytest.fixture
def checked(make_run, raw_item):
    """Judge a run of three systems and draw a spot check: data, the sheet with its texts, the drawn sheet, its key."""

    def make(name="small", size=8):
        answers = {system: f'says "{place}",\nover two lines' for place, system in enumerate(SYSTEMS)}
        rows = [raw_item(number, answers=answers) for number in range(4)]
        spot_check = {"size": size, "labels": FILLED}
        systems = {system: {} for system in SYSTEMS}
        run = make_run([SIM, COIN], rows, name=name, systems=systems, ranking={"spot_check": spot_check})
        asyncio.run(run_passes(run, PAIRS))
        data = open_ranking(name)
        drawn = spot_check_sample(data.for_spot_check(), size=size, seed=7)
        return data, write_spot_check(data, *drawn), *drawn

    return make


@pytest.fixture
def fill(project):
    """Write a filled sheet: lines of check_id and choice."""

    def fill(rows, header="check_id,choice"):
        (project / FILLED).write_text("\n".join([header, *(",".join(row) for row in rows)]), encoding="utf-8")

    return fill


def test_the_sheet_is_blind(checked):
    data, filled, sheet, key = checked()
    assert list(filled.columns) == COLUMNS
    assert len(filled) == len(key) == 8
    assert not {"judge", "verdict", "preference", "item_id", "pass", "system_x", "first"} & set(filled.columns)
    text = data.run.path("spot_check.csv").read_text()
    assert not any(name in text for name in (*SYSTEMS, "sim", "original", "swapped", "i0000"))
    assert filled["check_id"].is_unique
    assert set(filled["choice"]) == set(filled["note"]) == {""}
    assert filled["check_id"].tolist() == sheet["check_id"].tolist() == key["check_id"].tolist()
    assert set(key["judge"]) == {"sim"}  # the panel's


def test_the_texts_are_those_of_the_places(checked):
    data, filled, sheet, key = checked()
    items = {item.item_id: item for item in data.run.items()}
    for row, place in zip(filled.to_dict("records"), sheet.to_dict("records"), strict=True):
        item = items[place["item_id"]]
        assert [row["task"], row["reference_context"]] == [item.task, item.reference_context]
        assert row["answer_first"] == item.answers[place["shown_first"]]
        assert row["answer_second"] == item.answers[place["shown_second"]]
    pairs = {tuple(sorted(pair)) for pair in key[["system_x", "system_y"]].to_numpy()}
    assert len(pairs) > 1
    with data.run.path("spot_check.csv").open(newline="") as file:
        assert list(csv.DictReader(file)) == filled.to_dict("records")
    assert data.run.table(KEY)["check_id"].tolist() == key["check_id"].tolist()


def test_what_comes_back_is_read_by_system(checked, fill):
    """The written file with its choices filled in, in another order and another case, some left empty."""
    data, filled, sheet, key = checked()
    given = dict(zip(filled["check_id"], ["first", " Second ", "TIE", "", "tie", "FIRST", "second", " "], strict=True))
    fill([(f'"{name}"', choice) for name, choice in reversed(given.items())])
    found = read_spot_check(data, sheet).set_index("check_id")["preference"]
    places = sheet.set_index("check_id")
    for name, choice in given.items():
        wanted = {"first": places.loc[name, "shown_first"], "second": places.loc[name, "shown_second"], "tie": "TIE"}
        assert found[name] == wanted[choice.strip().lower()] if choice.strip() else pd.isna(found[name])
    labels = read_spot_check(data, sheet)
    rows = spot_check_agreement(key, labels, threshold=0.8, ci_level=0.95, judge="panel")
    assert rows["denominator"].max() <= 8


def test_the_written_sheet_is_a_sheet_that_may_come_back(checked, project):
    data, filled, sheet, _ = checked()
    filled.assign(choice="first").to_csv(project / FILLED, index=False)
    found = read_spot_check(data, sheet)
    assert found["preference"].tolist() == sheet["shown_first"].tolist()
    (project / FILLED).write_bytes(data.run.path("spot_check.csv").read_bytes())  # nobody has filled it in
    assert read_spot_check(data, sheet)["preference"].isna().all()


def test_a_judge_that_is_repeated_agrees_with_itself(checked, fill):
    data, _, sheet, key = checked()
    places = sheet.set_index("check_id")
    rows = []
    for row in key.itertuples():
        shown = [*places.loc[row.check_id, ["shown_first", "shown_second"]], "TIE"]
        rows.append((row.check_id, CHOICES[shown.index(row.preference)]))
    fill(rows)
    found = read_spot_check(data, sheet).merge(key, on="check_id", suffixes=("", "_judge"))
    assert (found["preference"] == found["preference_judge"]).all()


def test_a_sheet_that_is_not_back_yet(checked, make_run):
    """A protocol names its sheet before it is there: a frozen one cannot be changed when it comes."""
    data, _, sheet, _ = checked()
    assert read_spot_check(data, sheet) is None
    run = make_run([COIN], name="none")
    asyncio.run(run_passes(run, PAIRS))
    assert read_spot_check(open_ranking("none"), sheet) is None


def test_wrong_lines_are_all_told(checked, fill):
    data, filled, sheet, _ = checked()
    one, two, three = filled["check_id"][:3]
    fill([(one, "first"), (two, "better"), ("nobody", "tie"), (one, "second"), (three, "A"), (three, "tie")])
    with pytest.raises(DataError) as error:
        read_spot_check(data, sheet)
    assert str(error.value) == (
        "params/filled.csv: 4 of 6 lines cannot be used: "
        "line 3: choice 'better'; allowed are first, second, tie, or empty; "
        "line 4: 'nobody' is no check of this sheet; "
        f"line 5: '{one}' stands in line 2 already; "
        "line 6: choice 'A'; allowed are first, second, tie, or empty"
    )


def test_of_many_wrong_lines_five_are_told(checked, fill):
    data, _, sheet, _ = checked()
    fill([(f"x{number}", "first") for number in range(9)])
    with pytest.raises(DataError, match=r"9 of 9 lines cannot be used: line 2: .*line 6: .*; and 4 more$"):
        read_spot_check(data, sheet)


@pytest.mark.parametrize(
    ("header", "missing"), [("check_id,answer", "choice"), ("id,choice", "check_id"), ("a,b", "check_id, choice")]
)
def test_a_missing_column(checked, fill, header, missing):
    data, _, sheet, _ = checked()
    fill([("x", "first")], header=header)
    with pytest.raises(DataError, match=rf"^params/filled\.csv: no column {missing}; needed are check_id and choice$"):
        read_spot_check(data, sheet)


def test_matches_from_elsewhere_have_no_answers_to_show(project):
    (project / "params" / "m.csv").write_text("judge,item_id,system_x,system_y,preference\nj,i1,ALPHA,BETA,ALPHA\n")
    data = open_ranking("x", {"study_id": "x", "matches": "params/m.csv", "random_seed": 7})
    drawn = spot_check_sample(data.for_spot_check(), size=8, seed=7)
    sheet = write_spot_check(data, *drawn)
    assert (len(sheet), list(sheet.columns)) == (0, COLUMNS)
    assert not data.run.path("spot_check.csv").exists()
    assert read_spot_check(data, drawn.sheet) is None


def test_no_verdict_no_row(checked):
    data, _, sheet, key = checked()
    empty = write_spot_check(data, sheet.iloc[:0], key.iloc[:0])
    assert (len(empty), list(empty.columns)) == (0, COLUMNS)
    assert data.run.path("spot_check.csv").read_text() == ",".join(COLUMNS) + "\n"
