"""The demo from end to end: what it writes, that it is the same again, and that changes are noticed."""

from __future__ import annotations

import html.parser
import json
import re
import shutil
import sqlite3
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pandas as pd
import pytest

from judgelab import pipeline
from judgelab.report.manifest import write_manifest
from judgelab.study.freeze import open_run
from judgelab.study.protocol import load_params

from .conftest import ROOT, check_reference, command, judges_of, one, outputs_at, succeeded, tables_of

JUDGES = judges_of("demo.yaml")
STAGES = pipeline.STAGES[1:]  # the demo brings its answers: stage 00 has none to make
EVIDENCE = ("direct_scores.jsonl", "pairwise_original.jsonl", "pairwise_swapped.jsonl", "invalid_outputs.jsonl")


def ledger_rows(run: Path) -> tuple[int, int]:
    """Number of calls and of attempts."""
    database = sqlite3.connect(run / "ledger.sqlite")
    counts = [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("calls", "attempts")]
    database.close()
    return counts[0], counts[1]


@pytest.fixture
def copied(demo: Path, tmp_path: Path) -> Path:
    """Outputs with a copy of the demo, to be changed."""
    shutil.copytree(demo / "demo", tmp_path / "demo")
    return tmp_path


# What is written


@pytest.mark.parametrize(
    "name",
    ["protocol.yaml", "items.jsonl", "human_labels.csv", "ledger.sqlite", *EVIDENCE, "position_sensitive.csv",
     "tables/agreement.csv", "tables/position.csv", "tables/decision.csv", "report/index.html", "manifest.json",
     *[f"normalized_results/{judge}.csv" for judge in JUDGES],
     *[f"notebooks/{stage.name}.ipynb" for stage in STAGES],
     *[f"report/{stage.name}.html" for stage in STAGES]],
)  # fmt: skip
def test_the_design_s_files_exist(demo, name):
    path = demo / "demo" / name
    assert path.is_file()
    assert path.stat().st_size > 0 or name == "invalid_outputs.jsonl"  # every reply may be usable


def test_figures_and_tables_are_there(demo):
    assert len(list((demo / "demo/figures").glob("*.png"))) >= 6
    assert len(list((demo / "demo/tables").glob("*.csv"))) >= 10


def test_normalized_results_have_the_published_columns(demo):
    columns = "item_id,human,direct,pair_original,pair_swapped,original_first,alpha_words,beta_words"
    for judge in JUDGES:
        first, *rows = (demo / f"demo/normalized_results/{judge}.csv").read_text(encoding="utf-8").splitlines()
        assert first == columns
        assert len(rows) == 27  # 32 items, 5 of them for development


def test_every_table_says_that_its_labels_are_simulated(demo):
    for path in (demo / "demo/tables").glob("*.csv"):
        table = pd.read_csv(path)
        assert table.columns[-1] == "provenance", path.name
        assert set(table["provenance"]) <= {"simulated"}, path.name
    assert set(pd.read_csv(demo / "demo/human_labels.csv")["provenance"]) == {"simulated"}


def test_every_page_says_that_its_labels_are_simulated(demo):
    for page in (demo / "demo/report").glob("*.html"):
        assert "simulated" in page.read_text(encoding="utf-8"), page.name


# The published script


@pytest.mark.data
@pytest.mark.parametrize("judge", JUDGES)
def test_the_reference_analysis_prints_what_the_tables_say(shared, demo, judge):
    check_reference(shared, demo / "demo", judge)


def test_a_judge_that_looks_at_the_place_only_is_found_out(demo):
    """The control `always-first` answers A: all 54 winners stood first, and each of its 27 pairs is reversed."""
    position = pd.read_csv(demo / "demo/tables/position.csv")
    row = one(position, judge="always-first", measure="first_position_rate", pass_="both")
    assert (row["numerator"], row["denominator"]) == (54, 54)
    row = one(position, judge="always-first", measure="swap_consistency", pass_="both")
    assert (row["numerator"], row["denominator"]) == (0, 27)
    row = one(position, judge="longest", measure="swap_consistency", pass_="both")
    assert row["numerator"] == row["denominator"]


# The same again


def test_a_run_elsewhere_gives_the_same_manifest(demo, fresh):
    assert (fresh / "demo/manifest.json").read_bytes() == (demo / "demo/manifest.json").read_bytes()


def test_a_second_run_asks_nothing_and_changes_nothing(fresh):
    run = fresh / "demo"
    manifest, counts, tables = (run / "manifest.json").read_bytes(), ledger_rows(run), tables_of(run)
    plain = len(JUDGES) * 27 * 4  # two direct calls and two pairwise calls an item
    # of eleven probes 26 calls an item: 4 of repetition, 2 of identical answers, 4 with other letters, else 2; the
    # controls have no family, so they are not asked about identity; the repairs are of the recorded judge alone:
    # 10 development answers, and of an item 2 calls each, but 10 of self-consistency
    probes, repairs = 27 * 26 + (len(JUDGES) - 1) * 27 * 24, 10 + 27 * (6 * 2 + 10)
    assert counts[0] == plain + probes + repairs == 5950
    succeeded(command(fresh, "run", ROOT / "params/demo.yaml", "--from", "03", "--to", "04"))
    assert ledger_rows(run) == counts
    assert tables_of(run) == tables
    assert (run / "manifest.json").read_bytes() == manifest


def test_the_manifest_holds_hashes_and_versions_but_no_time_and_no_place(demo):
    text = (demo / "demo/manifest.json").read_text(encoding="utf-8")
    manifest = json.loads(text)
    assert manifest["protocol_sha256"] == load_params(ROOT / "params/demo.yaml")[1].sha256
    assert {"params/demo/items.jsonl", "params/demo/human_labels.csv", "params/demo/records.jsonl"} == set(
        manifest["inputs"]
    )
    assert all(re.fullmatch("[0-9a-f]{64}", value) for value in (manifest["inputs"] | manifest["outputs"]).values())
    assert manifest["packages"]["pandas"]
    assert not re.search(r"\d{4}-\d\d-\d\d[T ]|\d\d:\d\d:\d\d", text)
    assert str(demo) not in text
    assert str(ROOT) not in text


def test_publishing_again_gives_the_same_bytes(copied):
    pages = {page.name: page.read_bytes() for page in (copied / "demo/report").iterdir()}
    manifest = (copied / "demo/manifest.json").read_bytes()
    outcome = succeeded(command(copied, "publish", "demo"))
    assert "report: outputs/demo/report/index.html" in outcome.out
    assert {page.name: page.read_bytes() for page in (copied / "demo/report").iterdir()} == pages
    assert (copied / "demo/manifest.json").read_bytes() == manifest


# The report


class References(html.parser.HTMLParser):
    """Every address in a page: links, and what a browser would load by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "id" and value:
                self.ids.add(value)
            if value and name == "href" and tag == "a":
                self.links.append(value)
            elif value and name in ("href", "src", "srcset", "data", "poster", "action"):
                self.loaded.append(value)


def test_every_relative_link_of_the_report_leads_to_a_file(demo):
    report = demo / "demo/report"
    links = [(page, link) for page in report.glob("*.html") for link in References(page.read_text("utf-8")).links]
    relative = [(page, urlsplit(link)) for page, link in links if not urlsplit(link).scheme]
    assert {target.path for page, target in relative if page.name == "index.html"} >= {
        f"{stage.name}.html" for stage in STAGES
    }
    for page, target in relative:
        file = (page.parent / unquote(target.path)) if target.path else page
        assert file.resolve().is_relative_to(report.parent), (page.name, target.geturl())
        assert file.is_file(), (page.name, target.geturl())
        if target.fragment and file.suffix == ".html":
            assert unquote(target.fragment) in References(file.read_text("utf-8")).ids, (page.name, target.geturl())


def test_the_report_loads_nothing_from_elsewhere(demo):
    for page in (demo / "demo/report").glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert [link for link in References(text).loaded if not link.startswith(("data:", "#"))] == [], page.name
        assert not re.search(r"@import|url\(\s*['\"]?(?:https?:)?//", text), page.name
        assert "<script" not in text, page.name


def test_the_report_names_no_folder_of_this_machine(demo):
    for path in [*(demo / "demo/report").glob("*.html"), *(demo / "demo/notebooks").glob("*.ipynb")]:
        text = path.read_text(encoding="utf-8")
        assert str(ROOT) not in text, path.name
        assert str(demo) not in text, path.name


# verify


def test_verify_finds_nothing_to_say_about_an_untouched_run(demo):
    before = {path: path.stat().st_mtime_ns for path in (demo / "demo").rglob("*.csv")}
    outcome = command(demo, "verify", "demo")
    assert outcome.code == 0, outcome.out
    assert "hashes: all equal" in outcome.out
    assert re.findall(r"^(\d\d)  same outputs$", outcome.out, re.MULTILINE) == ["02", "05", "06", "09", "10"]
    assert {path: path.stat().st_mtime_ns for path in (demo / "demo").rglob("*.csv")} == before


def only(monkeypatch: pytest.MonkeyPatch, *numbers: str) -> None:
    """Let `verify` execute these notebooks alone; each takes seconds."""
    monkeypatch.setattr(pipeline, "STAGES", tuple(stage for stage in pipeline.STAGES if stage.number in numbers))


def change_a_digit(path: Path) -> None:
    """Another last digit of the first estimate of a table."""
    head, first, *rest = path.read_text(encoding="utf-8").split("\n")
    column = head.split(",").index("estimate")
    cells = first.split(",")
    cells[column] = cells[column][:-1] + ("1" if cells[column][-1] != "1" else "2")
    path.write_text("\n".join([head, ",".join(cells), *rest]), encoding="utf-8")


def change_a_verdict(path: Path, column: str) -> None:
    """Another reply, or another verdict, of one call of the pairwise original pass."""
    database = sqlite3.connect(path)
    chosen = "WHERE judge = 'longest' AND pass = 'original' AND verdict LIKE '%\"A\"%'"
    row = database.execute(f"SELECT id, {column} FROM calls {chosen} ORDER BY item_id").fetchone()
    assert row is not None
    database.execute(f"UPDATE calls SET {column} = ? WHERE id = ?", (str(row[1]).replace('"A"', '"B"') + " ", row[0]))
    database.commit()
    database.close()


def test_verify_names_a_table_with_another_digit(copied, monkeypatch):
    change_a_digit(copied / "demo/tables/agreement.csv")
    only(monkeypatch)
    outcome = command(copied, "verify", "demo")
    assert outcome.code == 1
    assert "tables/agreement.csv: changed since the manifest was written" in outcome.out
    assert "hashes: 1 of the files differ" in outcome.out


def test_verify_names_a_ledger_with_another_reply(copied, monkeypatch):
    change_a_verdict(copied / "demo/ledger.sqlite", "reply")
    only(monkeypatch)
    outcome = command(copied, "verify", "demo")
    assert outcome.code == 1
    assert "ledger.sqlite: changed since the manifest was written" in outcome.out
    assert "hashes: 1 of the files differ" in outcome.out


def test_verify_names_missing_and_added_files(copied, monkeypatch):
    (copied / "demo/figures/swap.png").unlink()
    (copied / "demo/tables/better.csv").write_text("a\n1\n", encoding="utf-8")
    only(monkeypatch)
    outcome = command(copied, "verify", "demo")
    assert outcome.code == 1
    assert "figures/swap.png: listed in the manifest, but missing" in outcome.out
    assert "tables/better.csv: not listed in the manifest" in outcome.out


@pytest.mark.slow
def test_verify_computes_again_and_so_finds_a_forged_manifest(copied, monkeypatch):
    """Another verdict with a manifest to match: the hashes agree, the numbers do not."""
    change_a_verdict(copied / "demo/ledger.sqlite", "verdict")
    with outputs_at(copied):
        write_manifest(open_run("demo"))
    only(monkeypatch, "05")
    outcome = command(copied, "verify", "demo")
    assert outcome.code == 1
    assert "hashes: all equal" in outcome.out
    assert "05  outputs differ" in outcome.out
    assert "tables/agreement.csv: computing it again gives other numbers" in outcome.out
