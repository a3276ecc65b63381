"""Published pages are whole, open offline, show text as text, and are the same each time."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import nbformat
import pandas as pd
import pytest
from nbformat import v4

from judgelab.errors import DataError, RunError
from judgelab.measure import rows
from judgelab.report.cleaning import clean_html, is_local_link, markdown_to_html
from judgelab.report.normalise import normalise, normalise_file
from judgelab.report.publish import publish, publish_run
from judgelab.study.human_review import HumanReview

HOSTILE = "<script>alert(1)</script> {{ 7*7 }} {% x %} **bold** & <img src=x onerror=alert(2)>"
PNG = base64.b64encode(b"\x89PNG not really").decode()


class Page(HTMLParser):
    """What a browser would act on: tags with attributes, in order."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def output(kind, **data):
    return v4.new_output("display_data", data=data, metadata={kind: {"alt": "Agreement <b>by judge"}} if kind else {})


def notebook(title):
    cells = [
        v4.new_markdown_cell(f"# {title}\n\nText with [a link](https://example.org/x), [another](06_b.html), α."),
        v4.new_code_cell('run = "demo"', metadata={"tags": ["parameters"]}, execution_count=1),
        v4.new_code_cell('run = "mine"', metadata={"tags": ["injected-parameters"]}, execution_count=2),
        v4.new_code_cell(
            f"print({HOSTILE!r})",
            execution_count=3,
            outputs=[
                v4.new_output("stream", name="stdout", text=HOSTILE + "\x1b[31mred\x1b[0m"),
                v4.new_output("stream", name="stderr", text="a warning"),
                output("image/png", **{"image/png": PNG, "text/plain": "<Figure>"}),
                output("", **{"text/html": f"<table><tr><td>cell</td></tr></table>{HOSTILE}<style>p{{}}</style>"}),
                output("", **{"text/markdown": "# not a heading"}),
                output("", **{"application/javascript": "alert(3)"}),
                v4.new_output("execute_result", data={"text/plain": HOSTILE}, execution_count=3),
            ],
        ),
    ]
    return v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "x"}})


@pytest.fixture
def run_folder(tmp_path):
    folder = tmp_path / "demo"
    (folder / "notebooks").mkdir(parents=True)
    for name in ("05_agreement", "06_b", "01_freeze"):
        nbformat.write(notebook(name), folder / "notebooks" / f"{name}.ipynb")
    (folder / "tables").mkdir()
    (folder / "tables" / "agreement.csv").write_text("judge\n")
    (folder / "protocol.yaml").write_text("run: demo\n")
    return folder


def published(folder, **more):
    values = {
        "title": f"Study {HOSTILE}", "question": f"Which? {HOSTILE}", "provenance": "simulated",
        "questions": {"01_freeze": "What is evaluated?", "05_agreement": "Which agrees?"},
        "facts": {"Run": HOSTILE}, "headline": [f"glm, n = 25: {HOSTILE}"],
        "tables": {"Caption": pd.DataFrame({"estimate": ["21/25 = 0.840", HOSTILE]})},
    }  # fmt: skip
    index = publish(folder, **(values | more))
    return {path.name: path.read_text(encoding="utf-8") for path in index.parent.iterdir()}


def test_every_notebook_has_a_page_and_the_start_page_links_them(run_folder):
    pages = published(run_folder)
    assert set(pages) == {"index.html", "01_freeze.html", "05_agreement.html", "06_b.html"}
    links = [attributes.get("href") for attributes in Page(pages["index.html"]).all("a")]
    assert links == [
        "01_freeze.html", "../notebooks/01_freeze.ipynb", "05_agreement.html", "../notebooks/05_agreement.ipynb",
        "06_b.html", "../notebooks/06_b.ipynb", "../protocol.yaml", "../tables/agreement.csv",
    ]  # fmt: skip
    for link in links:
        assert (run_folder / "report" / link).resolve().is_file(), link


def test_stages_follow_each_other(run_folder):
    page = Page(published(run_folder)["05_agreement.html"])
    links = [(attributes["href"], attributes.get("rel")) for attributes in page.all("a")][:3]
    assert links == [("index.html", None), ("01_freeze.html", "prev"), ("06_b.html", "next")]


def test_nothing_is_fetched_and_nothing_runs(run_folder):
    for name, text in published(run_folder).items():
        page = Page(text)
        assert not page.all("script"), name
        assert not page.all("link"), name
        assert not page.all("iframe"), name
        assert "@import" not in text
        assert not re.search(r"url\(", text)
        for tag, attributes in page.tags:
            assert not any(key.startswith("on") for key in attributes), (name, tag)
            for key in ("src", "href"):
                address = attributes.get(key, "")
                assert not re.match(r"\s*(https?:|//|javascript:)", address), (name, address)


def test_hostile_text_is_shown_as_text(run_folder):
    pages = published(run_folder)
    assert HOSTILE in Page(pages["index.html"]).words
    assert Page(pages["index.html"]).words.count(HOSTILE) >= 5  # title, question, fact, sentence, table
    stage = Page(pages["05_agreement.html"])
    assert stage.words.count(HOSTILE) >= 3  # stdout, text result, banner-free title
    assert "# not a heading" in stage.words
    assert len(stage.all("h1")) == 1
    assert "alert(3)" not in stage.words


def test_pictures_have_their_text_and_their_data(run_folder):
    (picture,) = [a for a in Page(published(run_folder)["05_agreement.html"]).all("img") if "alt" in a]
    assert picture["alt"] == "Agreement <b>by judge"
    assert picture["src"] == f"data:image/png;base64,{PNG}"


def test_a_section_tagged_fold_is_folded_up_to_the_next_heading(run_folder):
    sections = [("# Title", []), ("## The answer", []), ("## More <b>of it</b>\n\nIts words.", ["fold"])]
    sections += [("### Still in it", []), ("## After it", []), ("## Last", ["fold"]), ("Next: the end", [])]
    cells = [v4.new_markdown_cell(source, metadata={"tags": tags}) for source, tags in sections]
    whole = v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "x"}})
    nbformat.write(normalise(whole), run_folder / "notebooks" / "05_agreement.ipynb")
    text = published(run_folder)["05_agreement.html"]
    body = re.sub(r"\s+", " ", re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL))
    assert re.findall(r'<details class="fold">|</details>|Its words|Still in it|After it|Next: the end', body) == [
        '<details class="fold">', "Its words", "Still in it", "</details>", "After it",
        '<details class="fold">', "</details>", "Next: the end",
    ]  # fmt: skip
    assert "<summary><h2>More &lt;b&gt;of it&lt;/b&gt;</h2></summary>" in body


def test_jupyterlab_opens_a_section_tagged_fold_folded():
    made = normalise(v4.new_notebook(cells=[v4.new_markdown_cell("## More", metadata={"tags": ["fold"], "x": 1})]))
    assert made.cells[0].metadata == {"jp-MarkdownHeadingCollapsed": True, "tags": ["fold"]}


def test_code_is_folded_and_parameters_are_named(run_folder):
    text = published(run_folder)["05_agreement.html"]
    names = re.findall(r"<summary>(.*?)</summary>", text)
    assert names == ["Parameters", "Parameters of this run", "Code"]
    assert "In [" not in text
    assert "Out[" not in text
    assert not any("open" in attributes for attributes in Page(text).all("details"))


def test_links_to_elsewhere_are_read_and_not_followed(run_folder):
    page = Page(published(run_folder)["05_agreement.html"])
    assert "a link (https://example.org/x)" in page.words
    assert "06_b.html" in [attributes.get("href") for attributes in page.all("a")]


def test_provenance_is_on_every_page(run_folder):
    for name, text in published(run_folder).items():
        assert "Human labels in this study are simulated" in text, name
    assert all("simulated" not in text for text in published(run_folder, provenance="human").values())


def test_publishing_twice_gives_the_same_bytes(run_folder):
    once = published(run_folder)
    assert published(run_folder) == once


def test_a_stage_that_stopped_is_marked(run_folder):
    broken = notebook("06_b")
    broken.cells[-1].outputs = [v4.new_output("error", ename="DataError", evalue=HOSTILE, traceback=["secret path"])]
    nbformat.write(broken, run_folder / "notebooks" / "06_b.ipynb")
    pages = published(run_folder)
    assert pages["index.html"].count("Stopped with an error.") == 1
    assert f"DataError: {HOSTILE}" in Page(pages["06_b.html"]).words
    assert "secret path" not in pages["06_b.html"]


def test_pages_of_notebooks_that_are_gone_go(run_folder):
    published(run_folder)
    (run_folder / "notebooks" / "06_b.ipynb").unlink()
    assert "06_b.html" not in published(run_folder)


def test_a_run_without_a_decision_says_so(run_folder):
    text = published(run_folder, headline=[], tables={}, announced=["manifest.json"])["index.html"]
    assert "nothing is concluded" in text
    assert "../manifest.json" in text


def test_a_run_publishes_what_its_own_tables_say(run_folder, agreement, position, decision):
    judge = SimpleNamespace(name="glm", kind="recorded")
    study = SimpleNamespace(
        title="", study_id="support-v1", question="Which?", judges=(judge,), system_names=("ALPHA", "BETA"),
        sampling_rule="every tenth", rubric_version="r1", sha256="ab" * 32,
    )  # fmt: skip
    tables = {"agreement": agreement, "position": position, "decision": decision[0], "recommendations": decision[1]}
    for name in tables:
        (run_folder / "tables" / f"{name}.csv").write_text("x\n")
    run = SimpleNamespace(
        name="demo", study=study, folder=run_folder, provenance="human", table=tables.get,
        path=run_folder.joinpath, items=lambda: (1, 2, 3), evaluation_items=lambda: (1,),
    )  # fmt: skip
    index = publish_run(run, {"05_agreement": "Which agrees?"})
    words = " ".join(Page(index.read_text(encoding="utf-8")).words.replace("\u00a0", " ").split())
    assert "glm: pairwise comparison in both orders may be used" in words
    assert "21/25 = 0.840 95 % [0.680, 0.980]" in words
    assert "1 item judged, 2 kept for development" in words
    assert "manifest.json" in words
    assert "Reviewers agree" not in words
    labels = pd.DataFrame({"reviewer_id": ["r1", "r2", "adj"], "is_adjudicated": [False, False, True]})
    run.labels, study.labels, study.human_review = lambda: labels, ("ALPHA", "BETA", "TIE"), HumanReview()
    people = rows.row("exact_agreement", 0.0, numerator=0, denominator=1, n_used=1, ci_level=0.95, interval=(0.0, 0.8))
    tables |= {"reference": pd.DataFrame({"human": ["BETA"]}), "reviewers": rows.frame([people])}
    for name in tables:
        (run_folder / "tables" / f"{name}.csv").write_text("x\n")
    words = " ".join(Page(publish_run(run, {}).read_text(encoding="utf-8")).words.replace("\u00a0", " ").split())
    assert "2 initial labels of 2 reviewers, 1 adjudicated" in words
    assert "ALPHA 0, BETA 1, TIE 0, none 0, of 1" in words
    assert "0/1 = 0.000" in words
    for name in tables:
        (run_folder / "tables" / f"{name}.csv").unlink()
    assert "nothing is concluded" in publish_run(run, {}).read_text(encoding="utf-8")


def test_no_notebook_and_a_broken_notebook_are_clear_errors(tmp_path, run_folder):
    with pytest.raises(RunError, match="no executed notebook"):
        publish(tmp_path / "empty", title="x")
    (run_folder / "notebooks" / "05_agreement.ipynb").write_text("{ not json")
    with pytest.raises(RunError, match=r"notebooks/05_agreement.ipynb cannot be read"):
        publish(run_folder, title="x")


@pytest.mark.parametrize(
    "address",
    ["https://a.b", "http://a.b", "//a.b/c", "javascript:alert(1)", "java\tscript:alert(1)", "data:text/html,x",
     "&#106;avascript:alert(1)", "%6aavascript:x", "\\\\a.b", "/etc/passwd", "file:///x", "http://[bad"],
)  # fmt: skip
def test_addresses_outside_the_report(address):
    assert not is_local_link(address)


@pytest.mark.parametrize("address", ["05_agreement.html", "../tables/a.csv", "#c003", "a.html#x", ""])
def test_addresses_inside_the_report(address):
    assert is_local_link(address)


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>x</script>", "<SCRIPT src=http://a.b>", "<script>unfinished", "<img src=http://a.b/x.png>",
        "<img src=x onerror=y>", "<a href='javascript:x'>t</a>", "<iframe src=x></iframe>", "<svg onload=x></svg>",
        "<style>@import 'x'</style>", "<p style='background:url(http://a.b)'>t</p>", "<form action=x><input></form>",
        "<meta http-equiv=refresh content=0>", "<base href=//a.b>", "<scr<script>x</script>ipt>alert(1)</script>",
        "<link rel=stylesheet href=//a.b>", "<img src='data:text/html;base64,AAAA'>",
    ],
)  # fmt: skip
@pytest.mark.parametrize("clean", [clean_html, markdown_to_html])
def test_cleaned_html_does_nothing(hostile, clean):
    page = Page(clean(f"<p>before</p>\n\n{hostile}\n\n<p>after</p>"))
    assert not {"script", "iframe", "svg", "style", "form", "meta", "base", "link"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert not {"style", "action"} & set(attributes)
        assert not any(key.startswith("on") for key in attributes)
        assert not attributes.get("src")
        assert not attributes.get("href")


def test_tables_survive_cleaning():
    table = pd.DataFrame({"a": ["<b>x</b>"]}, index=[1])._repr_html_()
    page = Page(clean_html(table))
    assert page.all("table")[0]["class"] == "dataframe"
    assert "<b>x</b>" in page.words
    assert "vertical-align" not in page.words, "pandas' own style sheet must not appear as text"


def test_normalising_is_idempotent_and_hides_what_differs_by_chance():
    raw = notebook("05_agreement")
    raw.metadata["papermill"] = {"start_time": "2026-01-01"}
    raw.metadata["widgets"] = {"x": 1}
    raw.cells[1].metadata["execution"] = {"iopub.status.busy": "2026-01-01"}
    raw.cells[3].execution_count = 17
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "a"}, "text/plain": "HBox(...)"}
    raw.cells[3].outputs.insert(0, v4.new_output("display_data", data=widget))
    form = widget | {"text/plain": "People label here.", "text/html": "<p>People label here.</p>"}
    raw.cells[2].outputs.append(v4.new_output("display_data", data=form))
    raw.cells[3].outputs.insert(2, v4.new_output("stream", name="stdout", text=" more"))
    once = normalise(raw)
    assert normalise(once) == once
    nbformat.validate(once)
    assert [cell.id for cell in once.cells] == ["c000", "c001", "c002", "c003"]
    assert [cell.execution_count for cell in once.cells[1:]] == [1, 2, 3]
    assert once.cells[3].outputs[-1].execution_count == 3
    assert once.cells[1].metadata == {"tags": ["parameters"]}
    assert set(once.metadata) == {"kernelspec", "language_info"}
    assert once.cells[3].outputs[0].text.endswith("more"), "the widget is gone, the stream is one"
    assert once.cells[3].outputs[2].metadata["image/png"]["alt"] == "Agreement <b>by judge"
    sentence = once.cells[2].outputs[-1].data
    assert set(sentence) == {"text/plain", "text/html"}, "a form's sentence stays, its widget goes"
    assert "papermill" not in str(once)


def test_a_cell_that_was_not_executed_gets_no_count():
    raw = v4.new_notebook(cells=[v4.new_code_cell("1"), v4.new_code_cell("2", execution_count=9)])
    assert [cell.execution_count for cell in normalise(raw).cells] == [None, 1]


def test_normalising_a_file(tmp_path):
    path = tmp_path / "a.ipynb"
    nbformat.write(notebook("a"), path)
    assert normalise_file(path) is True
    text = path.read_text(encoding="utf-8")
    assert text.endswith("}\n")
    assert '\n "cells": [\n  {\n' in text
    assert normalise_file(path) is False
    assert path.read_text(encoding="utf-8") == text


def test_a_file_that_is_no_notebook_is_a_clear_error(tmp_path):
    with pytest.raises(DataError, match="no such notebook"):
        normalise_file(tmp_path / "none.ipynb")
    (tmp_path / "bad.ipynb").write_text("[]")
    with pytest.raises(DataError, match="not a notebook"):
        normalise_file(tmp_path / "bad.ipynb")
