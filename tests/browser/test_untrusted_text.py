"""Texts of strangers wherever a study takes them: in a real browser nothing runs, loads or breaks the page."""

from __future__ import annotations

import functools
import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.sign import NotebookNotary
from playwright.sync_api import Locator, Page, Route, expect

from judgelab.judging.ranking_data import open_ranking
from judgelab.labelling.gathered import gathered_labels
from judgelab.labelling.pair_session import PairSession
from judgelab.labelling.spot_check import SpotCheckSession
from judgelab.measure.labelling_progress import to_adjudicate
from judgelab.measure.spot_check import spot_check_sample
from judgelab.pipeline import execute, publish, run_study
from judgelab.stages import stage_named
from judgelab.study.freeze import freeze, open_run
from judgelab.study.protocol import load_params

from .conftest import TOKEN, Lab
from .untrusted_study import ACTING, IMAGE, TEXTS, decide_all, items, label_file, protocol, records

ROOT = Path(__file__).resolve().parents[2]
# What of a text may have become an element: handlers, addresses, and code. An honest page has none of these.
FOUND = r"""() => {
  const told = window.hit === undefined ? [] : ["window.hit is set"];
  const acts = /^(on.*|src|srcset|srcdoc|href|xlink:href|action|formaction|data|poster|background|style)$/;
  for (const node of document.querySelectorAll("*")) {
    for (const { name, value } of node.attributes)
      if (acts.test(name) && (/\bhit=1|example\.invalid/.test(value) || (node.localName === "img" && value === "x")))
        told.push(node.outerHTML.slice(0, 200));
    const code = node.localName === "script" || node.localName === "style";
    if (code && node.textContent.includes("hit=1")) told.push(node.outerHTML.slice(0, 200));
  }
  return told;
}"""
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
SIZES = """all => all.map((node) => {
  const scrolls = ["auto", "scroll"].includes(getComputedStyle(node).overflowX);
  return [node.getBoundingClientRect().right, scrolls || node.scrollWidth <= node.clientWidth + 1];
})"""
OUTPUTS = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell .jp-OutputArea-output"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A project with the frozen run ``open``, in which two reviewers have decided everything."""
    root = tmp_path_factory.mktemp("untrusted")
    (root / "params").mkdir()
    (root / "notebooks").mkdir()
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        shutil.copy(notebook, root / "notebooks")
    for name, entries in {"items": items(), "records": list(records())}.items():
        text = "".join(json.dumps(entry) + "\n" for entry in entries)
        (root / f"params/{name}.jsonl").write_text(text, encoding="utf-8")
    (root / "params/labels.csv").write_text(label_file(), encoding="utf-8")
    labelling = {"training": 0, "repeats_share": 0.1, "adjudication_rule": ACTING[1]}
    made = {"human_labels": {"provenance": "human"}, "human_review": {"labelling": labelling}}
    filed = {"human_labels": {"path": "params/labels.csv"}, "title": IMAGE, "question": ACTING[1]}
    for name, changes in {"filed": filed, "open": made}.items():
        document = {"run": name, "study": protocol(name) | changes}
        (root / f"params/{name}.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGELAB_ROOT", str(root))
        patch.setenv("JUDGELAB_OUTPUTS", str(root / "outputs"))
        run = freeze(*load_params(root / "params/open.yaml"))
        for reviewer, choices in {"anna": ("left", "right", "tie"), "ben": ("right", "cannot_judge", "tie")}.items():
            decide_all(PairSession(run), reviewer, *choices)
        yield root


@pytest.fixture(scope="module", autouse=True)
def stages(project: Path) -> Iterator[subprocess.Popen[str]]:
    """The stages of the run ``filed``, whose labels come from a file, go on beside the first tests."""
    command = [sys.executable, "-c", "from judgelab.cli import main; main()", "run", str(project / "params/filed.yaml")]
    running = subprocess.Popen(
        [*command, "--to", "08", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    yield running
    if running.poll() is None:
        os.killpg(running.pid, signal.SIGTERM)
        running.communicate()


@pytest.fixture(scope="module")
def outputs(project: Path, stages: subprocess.Popen[str]) -> Path:
    """Two published runs: ``filed`` with all stages, and ``open``, whose labels are not closed, with the second one."""
    run = open_run("open")
    execute(stage_named("02"), "open", run.study.model_dump(mode="json", exclude_defaults=True))
    publish(run)
    told, _ = stages.communicate()
    assert stages.returncode == 0, told
    filed = open_run("filed")
    ranking = open_ranking("filed", {})
    size, seed = ranking.rules.spot_check.size, filed.study.intervals["seed"]
    sheet = spot_check_sample(ranking.for_spot_check(), size=size, seed=seed).sheet
    decide_all(SpotCheckSession(filed, sheet), "dora", "left", "tie")
    run_study(project / "params/filed.yaml", first="09", say=lambda line: None)
    return project / "outputs"


@pytest.fixture
def quiet(page: Page) -> Iterator[Page]:
    """The page of all tests, which must not open a dialog either."""
    told: list[str] = []

    def note(dialog) -> None:
        if dialog.type != "beforeunload":
            told.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    yield page
    assert told == []


def nothing_acted(page: Page) -> None:
    """In no frame did a text run or become an element."""
    for frame in page.frames:
        assert frame.evaluate(FOUND) == [], frame.url


SETUP = """
import os
os.environ |= {environment!r}
import pandas as pd
from judgelab.labelling.adjudication import AdjudicationSession
from judgelab.labelling.form import LabellingForm
from judgelab.labelling.pair_session import PairSession
from judgelab.labelling.spot_check import SpotCheckSession
from judgelab.study.freeze import open_run
run = open_run("open")
sheet = pd.DataFrame({sheet!r}, columns=["check_id", "item_id", "shown_first", "shown_second"])
"""
FORMS = ["PairSession(run)", "AdjudicationSession(run)", "SpotCheckSession(run, sheet)"]
REFERENCE = ".jl-reference"


@pytest.fixture
def forms(lab, quiet, project) -> list[Locator]:
    """The forms of labelling, adjudication and a spot check of the run ``open``, in one notebook."""
    environment = {name: os.environ[name] for name in ("JUDGELAB_ROOT", "JUDGELAB_OUTPUTS")}
    sheet = [(f"c{place}", item["item_id"], "BETA", "ALPHA") for place, item in enumerate(items()[:3])]
    shown = [f"LabellingForm({session}, fallback={IMAGE!r})" for session in FORMS]
    lab.open(quiet, lab.write("untrusted_forms", SETUP.format(environment=environment, sheet=sheet), *shown))
    expect(quiet.locator(".jl-form")).to_have_count(3)
    return quiet.locator(".jl-form").all()


def walk(page: Page, form: Locator, name: str, total: int) -> tuple[set[str], str]:
    """Decide every task with such a note, looking at it raw and rendered: the raw texts, and what stood beside them."""
    status, rendered = form.get_by_role("status"), form.get_by_role("button", name="Markdown")
    form.get_by_label("Your name").fill(name)
    page.keyboard.press("Enter")
    seen, beside, before = set(), "", "false"
    for place in range(total):
        expect(status).to_contain_text("Choose")
        expect(form.get_by_role("progressbar")).to_have_attribute("aria-valuenow", str(place))
        for state in (before, "true" if before == "false" else "false"):
            if state != before:
                page.keyboard.press("r")
            before = state
            expect(rendered).to_have_attribute("aria-pressed", state)
            texts = form.locator(".jl-text").all_text_contents()
            assert len(texts) == 4
            if state == "false":
                assert set(texts) <= set(TEXTS)
                seen |= set(texts)
            else:
                assert all(re.search("hit=1|example.invalid", text) for text in texts if text in ACTING)
            nothing_acted(page)
        beside += "\n".join(form.locator(REFERENCE).all_text_contents())
        form.get_by_label("Note").fill(TEXTS[place % len(TEXTS)])
        page.keyboard.press("Escape")
        page.keyboard.press("a")
        page.keyboard.press("Enter")
        expect(status).to_contain_text("Saved: A is better.")
        nothing_acted(page)
        page.keyboard.press("Enter")
    expect(form.locator(".jl-text")).to_have_count(0)
    return seen, beside


def test_no_form_acts_on_a_text(forms, quiet, project):
    labelling, adjudication, spot_check = forms
    run = open_run("open")
    total = len(PairSession(run).order("cleo"))
    seen, _ = walk(quiet, labelling, "cleo", total)
    assert seen == set(TEXTS)
    initial = to_adjudicate(gathered_labels(run).pair_decisions)
    seen, beside = walk(quiet, adjudication, "dora", initial["item_id"].nunique())
    assert ACTING[1] in beside  # the rule
    assert [note for note in initial["note"] if note not in beside] == []
    assert set(initial["note"]) & set(ACTING)
    seen, _ = walk(quiet, spot_check, "emil", 3)
    assert seen == set(TEXTS[:4])
    lines = run.path("labelling", "spot_check", "emil.jsonl").read_text(encoding="utf-8").splitlines()
    written = [json.loads(line) for line in lines]
    assert [record["note"] for record in written if record["event"] == "decision"] == TEXTS[:3]
    assert quiet.evaluate(TOO_WIDE) <= 1


def expected_in(notebook: nbformat.NotebookNode) -> set[str]:
    """The texts that an executed notebook's outputs hold, as they are or escaped."""
    bundles = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    held = "\n".join(str(bundle.get("text/html", "")) for bundle in bundles)
    return {text for text in ACTING if html.escape(text, quote=False) in held or html.escape(text) in held}


@pytest.fixture
def published(outputs, request) -> Iterator[str]:
    """The address of the outputs, opened as files or over HTTP."""
    if request.param == "file":
        yield outputs.as_uri()
        return

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(outputs))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("published", ["file", "http"], indirect=True)
def test_no_page_of_the_report_acts_on_a_text_or_is_wider_than_the_window(outputs, quiet, published):
    seen: set[str] = set()
    for run in ("filed", "open"):
        pages = sorted((outputs / run / "report").glob("*.html"))
        assert len(pages) == (11 if run == "filed" else 2)
        for path in pages:
            quiet.goto(f"{published}/{run}/report/{path.name}")
            quiet.evaluate("() => { for (const each of document.querySelectorAll('details')) each.open = true; }")
            shown = quiet.locator("body").inner_text()
            if path.name != "index.html":
                wanted = expected_in(nbformat.read(outputs / run / "notebooks" / f"{path.stem}.ipynb", as_version=4))
                assert {text for text in wanted if text not in shown} == set(), path.name
                seen |= wanted
            elif run == "filed":
                assert IMAGE in shown
                assert ACTING[1] in shown
            nothing_acted(quiet)
            assert quiet.evaluate(TOO_WIDE) <= 1, path.name
    assert seen == set(ACTING)


def put_into(lab: Lab, paths: dict[str, Path]) -> None:
    """Copies of notebooks in JupyterLab's folder, signed as if they had been executed there."""
    (lab.root / "untrusted").mkdir()
    notary = NotebookNotary(data_dir=str(lab.root.parent / "data"))
    for name, path in paths.items():
        notary.sign(nbformat.read(shutil.copy(path, lab.root / "untrusted" / name), as_version=4))
    notary.store.close()


def acting_notebook(folder: Path) -> Path:
    """A notebook with an output that does act: were it not trusted, the test below would see nothing anywhere."""
    output = nbformat.v4.new_output("display_data", data={"text/html": IMAGE})
    cell = nbformat.v4.new_code_cell("1", outputs=[output], execution_count=1)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "acting.ipynb")
    return folder / "acting.ipynb"


def without_a_kernel(route: Route) -> None:
    """Leave the request for a kernel without an answer: outputs are shown all the same, and sooner."""
    if route.request.method != "POST":
        route.continue_()


def test_no_output_in_jupyterlab_acts_on_a_text_or_is_wider_than_the_window(lab, quiet, outputs, tmp_path):
    made = {run: sorted((outputs / run / "notebooks").glob("*.ipynb")) for run in ("filed", "open")}
    assert [len(paths) for paths in made.values()] == [10, 1]
    paths = {f"{run}_{path.name}": path for run, each in made.items() for path in each}
    put_into(lab, paths | {"acting.ipynb": acting_notebook(tmp_path)})
    quiet.route("**/api/sessions*", without_a_kernel)
    quiet.goto(f"{lab.url}/lab/workspaces/untrusted/tree/untrusted?token={TOKEN}")
    seen: set[str] = set()
    for name, path in paths.items():
        open_trusted(quiet, name)
        notebook = nbformat.read(path, as_version=4)
        expect(quiet.locator(OUTPUTS)).to_have_count(sum(len(cell.get("outputs", [])) for cell in notebook.cells))
        quiet.wait_for_timeout(300)  # what happens behind the outputs, such as formulas
        shown = "\n".join(quiet.locator(OUTPUTS).all_inner_texts())
        wanted = expected_in(notebook)
        assert {text for text in wanted if text not in shown} == set(), name
        seen |= wanted
        nothing_acted(quiet)
        assert quiet.evaluate(TOO_WIDE) <= 1, name
        for right, scrolls in quiet.locator(OUTPUTS).evaluate_all(SIZES):
            assert right <= 1280 + 1, name
            assert scrolls, name
    assert seen == set(ACTING)
    open_trusted(quiet, "acting.ipynb")
    quiet.wait_for_function("() => window.hit === 1")
    assert quiet.evaluate(FOUND)


def open_trusted(page: Page, name: str) -> None:
    """Open one of the copies from the file browser; what was open before stays open behind it."""
    page.locator(".jp-DirListing-itemText", has_text=name).dblclick()
    expect(page.locator(".lm-DockPanel-tabBar .lm-mod-current .lm-TabBar-tabLabel")).to_have_text(name)
