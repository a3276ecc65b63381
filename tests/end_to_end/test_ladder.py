"""The ladder from end to end: the order is known by construction, and the ranking finds it.

One run of all stages with real kernels. Which judges there are is read from the protocol: they may become more.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
import yaml

from judgelab.report.expert_tables import expert_tables
from judgelab.study.tables import read_table

from .conftest import ROOT, Outcome, command, judges_of, one, succeeded, tables_of

PARAMS = ROOT / "params/ladder.yaml"
STUDY = yaml.safe_load(PARAMS.read_text(encoding="utf-8"))["study"]
ORDER = [f"rung-{number}" for number in range(6)]
JUDGES = judges_of("ladder.yaml")
PLANTED = [*judges_of("ladder.yaml", kind="simulated"), *judges_of("ladder.yaml", kind="control")]  # never silent
ITEMS, PAIRS, PRESENTATIONS = 10, 15, 2
MATCHES = ITEMS * PAIRS * PRESENTATIONS  # of one judge
THRESHOLDS = ["1", "0.9", "0.75", "0.5", "No T."]
LISTS = ("spot_check.csv", "disputed_pairs.csv", "disputed_items.csv", "outliers.csv")
SHEET = ["check_id", "task", "reference_context", "answer_first", "answer_second", "choice", "note"]


@dataclass(frozen=True)
class Ladder:
    """A run of all stages, how it ended, and its tables and lists before anybody ran a stage again."""

    run: Path
    outcome: Outcome
    before: dict[str, bytes]

    def table(self, name: str) -> pd.DataFrame:
        return read_table(self.run / f"tables/{name}.csv")

    def rho(self, judge: str, threshold: str = "none") -> pd.Series:
        """The mean Spearman correlation of a judge or the panel with the order by construction."""
        return one(self.table("experts"), judge=judge, measure="spearman_mean", slice=f"threshold={threshold}")


def results_of(run: Path) -> dict[str, bytes]:
    """Name and bytes of every table and of every list for people."""
    return tables_of(run) | {name: (run / name).read_bytes() for name in LISTS}


def text_on(page: Path) -> str:
    """What a page says, without its markup, styles and embedded pictures."""
    without = re.sub(r"<(style|title)\b.*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"<[^>]*>", " ", without)


def stored_matches(run: Path) -> pd.DataFrame:
    """The match log, without when and by which addition a match came."""
    with closing(sqlite3.connect(run / "matches.sqlite")) as database:
        return pd.read_sql("SELECT * FROM matches ORDER BY id", database)


@pytest.fixture(scope="module")
def ladder(tmp_path_factory: pytest.TempPathFactory) -> Ladder:
    outputs = tmp_path_factory.mktemp("ladder")
    outcome = succeeded(command(outputs, "run", PARAMS, "--jobs", 2))
    return Ladder(outputs / "ladder", outcome, results_of(outputs / "ladder"))


@pytest.fixture(scope="module")
def made(ladder: Ladder) -> dict[str, dict[str, object]]:
    """The candidates of each item as stage 00 wrote them."""
    lines = (ladder.run / "candidates.jsonl").read_text(encoding="utf-8").splitlines()
    return {line["item_id"]: line for line in map(json.loads, lines)}


def degraded_from(name: str) -> Iterator[str]:
    """Kinds of the edits that made a version from the one above it, as the protocol says."""
    yield from STUDY["systems"][name].get("degraded", {}).get("edits", ())


# The run


def test_the_run_goes_from_00_to_10_and_ends_with_a_report(ladder):
    begun = [line.split()[0] for line in ladder.outcome.out.splitlines() if line[:2].isdigit()]
    assert begun == [f"{number:02d}" for number in range(11)]
    assert ladder.outcome.out.splitlines()[-1] == "report: outputs/ladder/report/index.html"
    index = (ladder.run / "report/index.html").read_text(encoding="utf-8")
    for name in ("00_generate_answers", "09_ranking"):
        assert f"{name}.html" in index
        assert (ladder.run / f"report/{name}.html").is_file()


@pytest.mark.parametrize("name", ["00_generate_answers", "09_ranking"])
def test_a_page_holds_no_script_no_nan_and_no_traceback(ladder, name):
    page = ladder.run / f"report/{name}.html"
    assert "<script" not in page.read_text(encoding="utf-8").lower()
    text = text_on(page)
    assert len(text) > 2000
    assert re.findall(r".{0,60}\bnan\b.{0,20}", text, re.IGNORECASE) == []
    assert "Traceback" not in text


# The candidates


def test_the_candidates_say_each_edit(made):
    assert len(made) == ITEMS
    for line in made.values():
        assert set(line["answers"]) == set(line["made"]) | {"rung-0"} == set(ORDER)
        for name in ORDER[1:]:
            assert line["made"][name]["of"] == ORDER[ORDER.index(name) - 1]
            assert [edit["kind"] for edit in line["made"][name]["edits"]] == list(degraded_from(name))


def test_every_edit_is_what_makes_a_version_from_the_one_above(made):
    for line in made.values():
        for above, name in pairwise(ORDER):
            (better, worse), edits = (line["answers"][above], line["answers"][name]), line["made"][name]["edits"]
            assert worse != better
            assert edits[0]["before"] in better
            assert edits[-1]["after"] in worse


def test_the_table_of_edits_is_that_of_the_candidates(ladder, made):
    columns = ["item_id", "system", "kind", "place", "before", "after"]
    wanted = [
        (item_id, name, *(edit[key] for key in columns[2:]))
        for item_id, line in made.items()
        for name in ORDER[1:]
        for edit in line["made"][name]["edits"]
    ]
    edits = pd.read_csv(ladder.run / "tables/edits.csv", keep_default_na=False)
    assert edits[columns].to_records(index=False).tolist() == wanted
    counts = ladder.table("candidates").groupby("system")["edits"].unique()
    assert {name: list(found) for name, found in counts.items()} == {n: [len([*degraded_from(n)])] for n in ORDER}


# The ranking


def test_the_leaderboard_has_the_true_order(ladder):
    board = ladder.table("leaderboard")
    assert board["system"].tolist() == ORDER
    assert board["rank"].tolist() == [1, 2, 3, 4, 5, 6]
    for name in ("strength_elo", "elo", "win_rate"):
        assert board[name].is_monotonic_decreasing
    panel = STUDY["ranking"]["judges"]
    assert board["matches"].tolist() == [MATCHES // ITEMS // PAIRS * ITEMS * 5 * len(panel)] * 6  # each meets five
    assert (board["rank_low"] <= board["rank"]).all()
    assert (board["rank"] <= board["rank_high"]).all()


def test_the_panel_finds_the_order_and_each_of_its_judges_as_far_as_it_can(ladder):
    assert ladder.rho("panel")["estimate"] > 0.9
    skilled, fair, poor = (ladder.rho(name)["estimate"] for name in STUDY["ranking"]["judges"])
    assert skilled > 0.9
    assert skilled >= fair > poor > 0.5
    for threshold in ("1", "0.9", "0.75", "0.5", "none"):
        assert ladder.rho("panel", threshold)["n_used"] == ITEMS


def test_length_finds_a_part_of_the_order_and_a_coin_none(ladder):
    longest, coin = ladder.rho("longest"), ladder.rho("coin")
    assert 0 < longest["ci_low"] < longest["estimate"] < ladder.rho("panel")["estimate"]
    assert -0.5 <= coin["estimate"] <= 0.5
    assert coin["ci_low"] < 0 < coin["ci_high"]


def test_the_tables_for_people_have_the_panel_first_and_five_lines_a_judge(ladder):
    told = expert_tables(ladder.table("experts"))
    assert [name for name in told["judges"] if name] == ["all on the panel", *JUDGES]
    assert told["judges"].iloc[::5].tolist() == ["all on the panel", *JUDGES]
    assert told["threshold"].tolist() == THRESHOLDS * (1 + len(JUDGES))
    named = told["judges"].where(told["judges"] != "").ffill()
    ours = told[named.isin(["all on the panel", *PLANTED])]  # a real model may leave a group without an order
    assert len(ours) == 5 * (1 + len(PLANTED))
    assert set(ours["groups"]) == {str(ITEMS)}
    assert set(ours["ranked per group"]) == {str(len(ORDER))}
    pattern = r"-?\d\.\d{3} ± \d\.\d{3}"
    assert ours["Spearman"].str.fullmatch(pattern).all()
    assert ours["Kendall"].str.fullmatch(pattern).all()


def test_the_page_says_that_the_order_is_known_and_that_no_person_ranked(ladder):
    text = text_on(ladder.run / "report/09_ranking.html")
    assert "The ranks are known from how the answers were made; no person has ranked them." in text
    assert "This study has no human labels" in text


# For people


def test_the_spot_check_is_blind(ladder):
    """Every cell is a text of the study, or empty: nothing is left that could tell a judge, a verdict or a system."""
    sheet = pd.read_csv(ladder.run / "spot_check.csv", dtype=str, keep_default_na=False)
    assert list(sheet) == SHEET
    assert len(sheet) == 25
    assert sheet["check_id"].is_unique
    assert sheet["check_id"].str.fullmatch("[0-9a-f]{12}").all()
    assert set(sheet["choice"]) == set(sheet["note"]) == {""}
    items = map(json.loads, (ladder.run / "items.jsonl").read_text(encoding="utf-8").splitlines())
    texts = {(item["task"], item["reference_context"]): set(item["answers"].values()) for item in items}
    for row in sheet.to_dict("records"):
        answers = texts[row["task"], row["reference_context"]]
        assert {row["answer_first"], row["answer_second"]} <= answers
        assert row["answer_first"] != row["answer_second"]
    content = (ladder.run / "spot_check.csv").read_text(encoding="utf-8")
    for name in [*ORDER, *JUDGES]:
        assert not re.search(rf"\b{name}\b", content), name


def test_the_key_to_the_spot_check_is_a_file_of_its_own(ladder):
    key = ladder.table("spot_check_key")
    sheet = pd.read_csv(ladder.run / "spot_check.csv", dtype=str)
    assert set(key["check_id"]) == set(sheet["check_id"])
    assert set(key["judge"]) <= set(STUDY["ranking"]["judges"])
    assert set(key["preference"]) <= {*ORDER, "TIE"}


@pytest.mark.parametrize(
    ("name", "columns"),
    [("disputed_pairs", ["item_id", "system_x", "system_y"]), ("disputed_items", ["item_id"]),
     ("outliers", ["group", "system"])],
)  # fmt: skip
def test_the_lists_for_people_name_what_there_is(ladder, name, columns):
    found = pd.read_csv(ladder.run / f"{name}.csv")
    assert set(columns) <= set(found)
    assert not found.duplicated(columns).any()
    if name == "outliers":  # six versions of one answer: none need stand far from the rest
        assert set(found["system"]) <= set(ORDER)
        return
    assert len(found) > 0
    assert found["item_id"].str.fullmatch(r"ladder-\d\d").all()


# The standing leaderboard


def test_the_log_holds_every_match_once(ladder):
    log = stored_matches(ladder.run)
    assert len(log) == MATCHES * len(JUDGES)
    assert log["judge"].value_counts().to_dict() == dict.fromkeys(JUDGES, MATCHES)
    pair = log[["system_x", "system_y"]]
    log = log.assign(low=pair.min(axis=1), high=pair.max(axis=1))
    assert not log.duplicated(["judge", "item_id", "low", "high", "first"]).any()
    assert set(log["run"]) == {"ladder"}
    assert ladder.table("standing").equals(ladder.table("leaderboard"))


def test_the_ranking_again_adds_no_match_and_gives_the_same_bytes(ladder):
    log = stored_matches(ladder.run)
    page = (ladder.run / "report/09_ranking.html").read_bytes()
    again = succeeded(command(ladder.run.parent, "run", PARAMS, "--from", "09", "--to", "09"))
    assert [line[:2] for line in again.out.splitlines()] == ["09", "re"]
    pd.testing.assert_frame_equal(stored_matches(ladder.run), log)
    after = results_of(ladder.run)
    assert set(after) == set(ladder.before)
    assert [name for name, content in after.items() if content != ladder.before[name]] == []
    assert (ladder.run / "report/09_ranking.html").read_bytes() == page
