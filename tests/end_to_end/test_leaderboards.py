"""Rankings of matches that were judged elsewhere: small studies where something is undefined, and LLMFAO.

Each study is written here, and runs with a real kernel. What has no value is said in words, and is never a 0 or a 1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from judgelab.study.tables import read_table

from .conftest import ROOT, Outcome, command, one, succeeded
from .test_ladder import text_on

HOSTILE = "<script>alert(1)</script>"
Match = tuple[str, str, str]  # system_x, system_y, preference


def won(x: str, y: str, wins: int, losses: int, ties: int = 0) -> list[Match]:
    """Matches of two systems."""
    return [*[(x, y, x)] * wins, *[(x, y, y)] * losses, *[(x, y, "TIE")] * ties]


STUDIES: dict[str, list[Match]] = {
    "undefeated": [*won("best", HOSTILE, 8, 0), *won("best", "weak", 8, 0), *won(HOSTILE, "weak", 5, 3)],
    "apart": [*won("east-1", "east-2", 5, 3), *won("west-1", "west-2", 6, 2)],
    "two": won("a", "b", 8, 4),
    "one": won("a", "b", 1, 0),
    "ties": [match for x, y in combinations("abc", 2) for match in won(x, y, 0, 0, 5)],
    "silent": [*won("a", "b", 5, 3), *[("a", "mute", ""), ("mute", "b", "")] * 8],
}


def written(folder: Path, name: str, matches: Sequence[Match], judge: str = "expert") -> Path:
    """The parameters of a study of these matches, two presentations of each pair in turn, an item each."""
    table = folder / f"{name}.csv"
    lines = [
        f"{judge},t{place:02d},{x},{y},{(x, y)[place % 2]},{preference},{'' if preference else 'refusal'}"
        for place, (x, y, preference) in enumerate(matches)
    ]
    header = "judge,item_id,system_x,system_y,first,preference,reason"
    table.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    study = {
        "study_id": name, "matches": str(table), "random_seed": 1, "measures": {"resamples": 200},
        "ranking": {"elo": {"permutations": 50}, "schedule_repeats": 2},
    }  # fmt: skip
    params = folder / f"{name}.yaml"
    params.write_text(yaml.safe_dump({"run": name, "study": study}), encoding="utf-8")
    return params


@dataclass(frozen=True)
class Ranked:
    """A run of matches, and how it ended."""

    name: str
    run: Path
    params: Path
    outcome: Outcome

    def table(self, name: str) -> pd.DataFrame:
        return read_table(self.run / f"tables/{name}.csv")

    @property
    def board(self) -> pd.DataFrame:
        return self.table("leaderboard").set_index("system")

    @property
    def page(self) -> str:
        """What the executed notebook's outputs say, spaces and line ends alike."""
        cells = json.loads((self.run / "notebooks/09_ranking.ipynb").read_text(encoding="utf-8"))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        assert [output for output in outputs if output["output_type"] == "error"] == []
        texts = [output.get("text", output.get("data", {}).get("text/plain", "")) for output in outputs]
        return re.sub(r"\s+", " ", " ".join("".join(text) for text in texts))


def ranked(folder: Path, name: str, **options: str) -> Ranked:
    """Write the study of this name and run it."""
    params = written(folder, name, STUDIES[name], **options)
    outcome = succeeded(command(folder / "outputs", "run", params))
    return Ranked(name, folder / "outputs" / name, params, outcome)


@pytest.fixture(scope="module")
def study(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ranked:
    """The run of the study that the test names; each is made once, for pytest puts its tests together."""
    return ranked(tmp_path_factory.mktemp(request.param), request.param)


def of(*names: str) -> Any:
    """The test is about these studies."""
    return pytest.mark.parametrize("study", names, indirect=True)


# Every study


@of(*STUDIES)
def test_a_run_ends_with_a_report_of_one_stage(study):
    lines = study.outcome.out.splitlines()
    assert [line[:2] for line in lines] == ["06", "09", "re"]
    assert lines[0].startswith("06  left out: the matches hold one order only (n = 0 of ")
    assert "nobody was asked here" in study.page
    assert not (study.run / "spot_check.csv").exists()  # the answers are not here
    assert "spot_check.csv" not in study.page
    assert "there is no verdict whose answers are here" in study.page
    assert [path.name for path in sorted((study.run / "report").glob("*.html"))] == ["09_ranking.html", "index.html"]
    assert study.board["matches"].sum() == 2 * sum(bool(preference) for *_, preference in STUDIES[study.name])


@of(*STUDIES)
def test_a_page_holds_no_script_and_no_nan_and_no_traceback(study):
    page = study.run / "report/09_ranking.html"
    assert "<script" not in page.read_text(encoding="utf-8").lower()
    text = text_on(page)
    assert re.findall(r".{0,60}\bnan\b.{0,20}", text, re.IGNORECASE) == []
    assert "Traceback" not in text + study.outcome.out + study.outcome.err


@of(*STUDIES)
def test_what_is_undefined_is_neither_0_nor_1(study):
    """In every table of estimates: no value without something to count, and no value where it is said to have none."""
    seen = 0
    for path in sorted((study.run / "tables").glob("*.csv")):
        table = read_table(path)
        if not {"estimate", "n_used", "note"} <= set(table):
            continue
        note = table["note"].fillna("").astype(str)
        assert table.loc[note.str.startswith("undefined"), ["estimate", "ci_low", "ci_high"]].isna().all(axis=None)
        assert note[table["estimate"].isna()].str.startswith("undefined").all(), path.name
        rates = table[table["denominator"] == 0]
        assert rates["estimate"].isna().all(), path.name
        assert table.loc[table["n_used"] == 0, "estimate"].isna().all(), path.name
        seen += 1
    assert seen > 8
    never = study.table("win_matrix").query("matches == 0")
    assert never[["win_rate", "ci_low", "ci_high"]].isna().all(axis=None)


# Each study by what is odd about it


@of("undefeated")
def test_an_undefeated_system_is_called_so_and_its_strength_is_by_a_prior(study):
    board = study.board
    assert board.index[0] == "best"
    assert board.loc["best", "note"].startswith("undefeated in its 16 matches: its strength has no upper bound")
    assert board["note"].str.contains("strength by a prior").all()
    assert "Undefeated, so that the matches alone give no upper bound: best (16 matches)." in study.page
    assert "A normal prior made the strengths finite" in study.page
    rate = one(study.table("ranking"), slice="system=best", measure="win_rate")
    assert (rate["estimate"], rate["ci_high"]) == (1, 1)
    assert 0.5 < rate["ci_low"] < 1  # all matches won is no proof that all will be


@of("undefeated")
def test_a_name_that_is_markup_stands_as_text(study):
    assert HOSTILE in study.board.index
    page = (study.run / "report/09_ranking.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


@of("apart")
def test_systems_that_never_met_are_not_compared(study):
    gaps = study.table("gaps").query("measure == 'elo_gap'").set_index("slice")
    across = [name for name in gaps.index if ("east" in name) and ("west" in name)]
    assert across
    assert gaps.loc[across, ["estimate", "ci_low", "ci_high"]].isna().all(axis=None)
    assert gaps.loc[across, "note"].str.startswith("undefined: no chain of matches joins the two").all()
    assert "no chain of matches joins the two" in study.page
    assert study.board["note"].str.contains("no chain of matches joins it with").all()
    assert "Not joined to the others by matches, so that they cannot be compared: " in study.page
    assert study.board["rank_low"].tolist() == [1] * 4  # nobody is told apart
    assert study.board["rank_high"].tolist() == [4] * 4
    never = study.table("win_matrix").query("matches == 0")
    assert len(never) == 8
    spent = study.table("spending")
    assert spent["estimate"].isna().all()
    assert spent["note"].str.contains("no chain of decided matches joins all the systems").all()


@of("two")
def test_two_systems_are_ranked_and_not_told_apart(study):
    board = study.board
    assert board.index.tolist() == ["a", "b"]
    assert board[["wins", "losses", "ties"]].to_numpy().tolist() == [[8, 4, 0], [4, 8, 0]]
    assert board["letters"].tolist() == ["a", "a"]
    # Bradley and Terry's log odds of two systems are those of the wins: 400 log10(8 / 4) points apart
    assert board["strength_elo"].diff().iloc[1] == pytest.approx(-120.4119983)
    assert "2 of 2 systems can be the best" in study.page
    assert "(n = 12 matches by expert): undecided." in study.page


@of("one")
def test_one_match_is_too_little_data(study):
    board = study.board
    assert "a won the only match (n = 1 match by expert): too little data." in study.page
    assert board[["strength_low", "strength_high", "elo_low", "elo_high"]].isna().all(axis=None)
    assert board["few"].all()
    assert re.search("Undefeated.*Winless", study.page)
    assert board["note"].str.match("(undefeated|winless) in its 1 match.*: its strength has no").all()
    assert "no system is told apart from another" in study.page


@of("ties")
def test_ties_alone_put_nobody_ahead(study):
    board = study.board
    assert "Every match is a tie (n = 15 matches by expert): nobody is ahead." in study.page
    assert board["rank"].tolist() == [2, 2, 2]
    assert board["strength_elo"].tolist() == pytest.approx([1000] * 3)
    assert board["win_rate"].tolist() == [0.5] * 3
    assert board["strength_low"].isna().all()  # all alike in every resample: no interval of width 0
    duels = study.table("head_to_head")
    assert duels.loc[duels["measure"].str.contains("_p"), "estimate"].isna().all()
    assert "all systems have equal ratings" in study.page


@of("silent")
def test_a_system_without_a_verdict_has_no_rank(study):
    mute = study.board.loc["mute"]
    assert study.board.index[-1] == "mute"
    values = ["rank", "rank_low", "rank_high", "strength_elo", "elo", "elo_spread", "win_rate", "win_low", "win_high"]
    assert mute[values].isna().all()
    assert (mute["matches"], mute["undecided"], mute["note"]) == (0, 16, "undefined: no match")
    assert "Without a match that was decided: mute; nothing is known of them: too little data." in study.page
    assert "Without a verdict and left out: 16 of 24 matches." in study.page
    assert "refusal: 16" in study.page


# Commands on a run of matches


@of("two")
def test_a_plan_says_that_nobody_is_asked(study):
    told = command(study.run.parent, "plan", study.params)
    assert told.code == 2
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert line.endswith("is a study of matches that were judged elsewhere: it asks nobody")


@of("two")
def test_the_same_study_again_changes_nothing_and_another_is_refused(study):
    again = command(study.run.parent, "run", study.params, "--set", "random_seed=2")
    assert again.code == 2
    (line,) = again.err.splitlines()
    assert "frozen with another protocol" in line
    late = command(study.run.parent, "run", study.params, "--from", "10")
    assert late.code == 2
    assert late.err.strip().endswith("is a study of matches: it has the stages 06 and 09 alone")


@of("two")
def test_a_run_is_published_and_verified(study):
    page = (study.run / "report/09_ranking.html").read_bytes()
    published = succeeded(command(study.run.parent, "publish", "two"))
    assert published.out == "report: outputs/two/report/index.html\n"
    assert (study.run / "report/09_ranking.html").read_bytes() == page
    told = succeeded(command(study.run.parent, "verify", "two")).out.splitlines()
    assert told == ["hashes: all equal", "run two is as its manifest says; its ranking was not computed again"]
    table = study.run / "tables/leaderboard.csv"
    content = table.read_bytes()
    try:
        table.write_bytes(content.replace(b"\nb,2,", b"\nb,1,"))
        changed = command(study.run.parent, "verify", "two")
    finally:
        table.write_bytes(content)
    assert changed.code == 1
    assert "tables/leaderboard.csv" in changed.out
    assert changed.err == ""


@pytest.mark.parametrize("name", ["plan", "verify", "publish"])
def test_a_command_on_no_run_is_one_plain_line(tmp_path, name):
    told = command(tmp_path, name, "nowhere")
    assert told.code == 2
    (line,) = told.err.splitlines()
    assert line.startswith("judgelab: ")


def test_a_bad_line_stops_the_run_before_anything_is_ranked(tmp_path):
    params = written(tmp_path, "bad", [("a", "b", "a"), ("a", "b", "nobody"), ("a", "b", "b")])
    told = command(tmp_path / "outputs", "run", params)
    assert told.code == 2  # as for every mistake in a file
    (line,) = told.err.splitlines()
    assert line.startswith("judgelab: ")
    assert "first 'nobody' in line 3" in line
    assert not list((tmp_path / "outputs").rglob("*.csv"))


def test_a_judge_without_a_name_is_not_spoken_of(tmp_path):
    """A file need not say who judged."""
    page = ranked(tmp_path, "one", judge="").page
    assert "a won the only match (n = 1 match): too little data." in page
    assert not re.search(r" by [).,:;]", page)
    assert "one judge, :" not in page


# LLMFAO


@pytest.fixture(scope="module")
def llmfao(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Ranked:
    """The published votes, imported and ranked by the project's own parameters."""
    outputs, params = tmp_path_factory.mktemp("llmfao"), ROOT / "params/llmfao.yaml"
    before = params.read_bytes()
    told = succeeded(command(outputs, "import", "llmfao", shared / "data/llmfao", "--run", "llmfao"))
    assert "params/llmfao.yaml is there already and was left as it is" in told.out
    assert params.read_bytes() == before
    return Ranked("llmfao", outputs / "llmfao", params, succeeded(command(outputs, "run", params)))


@pytest.mark.data
def test_llmfao_s_strengths_are_the_golden_ones(shared, llmfao):
    golden = pd.read_csv(shared / "data/evalica/llmfao-golden.csv").query("algorithm == 'bradley_terry'")
    wanted = golden.set_index("item")["score"].sort_index()
    rows = llmfao.table("ranking").query("measure == 'strength_share'")
    ours = rows.set_index(rows["slice"].str.removeprefix("system="))["estimate"].sort_index()
    assert ours.index.tolist() == wanted.index.tolist()
    assert ours.to_numpy() == pytest.approx(wanted.to_numpy(), abs=1e-9)


@pytest.mark.data
def test_llmfao_s_leaderboard_has_every_system_and_its_matches(llmfao):
    board = llmfao.board
    assert len(board) == 59
    assert board.index[0] == "GPT 4"
    assert board["matches"].sum() == 2 * 8931
    assert (board["note"].fillna("") == "").all()
    for system, row in board.iterrows():
        rate = f"({row['wins']} + {row['ties']}/2)/{row['matches']} = {row['win_rate']:.3f}"
        assert f"{system} " in llmfao.page
        assert re.search(rf"{re.escape(rate)} \[0\.\d\d, 0\.\d\d\] {row['matches']} ", llmfao.page), system


@pytest.mark.data
def test_llmfao_s_judges_rank_as_published(llmfao):
    alike = llmfao.table("judge_rankings").set_index(["judge_a", "judge_b"])["spearman"]
    assert alike["people", "gpt-4"] == pytest.approx(0.730918, abs=5e-7)
    assert len(alike) == 3
    assert "0.730918" in llmfao.page
