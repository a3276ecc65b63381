"""Every committed notebook reads as a report, is executed, and is in its normal form."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest
from nbformat import NotebookNode

from judgelab.report.normalise import WIDGET, normalise
from judgelab.stages import APPLICATIONS, STAGES

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
PATHS = sorted(path for path in FOLDER.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)
FORBIDDEN = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.While, ast.AsyncFor, ast.Try, ast.TryStar
)  # fmt: skip
ADDRESS = re.compile(r"(?<![\w.<:/])/(?:home|root|work|tmp|usr|var|opt|private|Users|mnt)/|[A-Z]:\\\\|file://")


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def is_plot(cell: NotebookNode) -> bool:
    return any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))


def is_table(cell: NotebookNode) -> bool:
    return any("<table" in output.get("data", {}).get("text/html", "") for output in cell.get("outputs", []))


def named(path: Path) -> str:
    return path.relative_to(FOLDER).with_suffix("").as_posix()


@pytest.fixture(params=PATHS, ids=named)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def notebook(path: Path) -> NotebookNode:
    return read(path)


def test_the_stages_are_the_notebooks():
    numbered = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
    assert numbered == [stage.name for stage in STAGES]
    assert [stage.number for stage in STAGES] == [name[:2] for name in numbered]
    others = sorted(named(path) for path in PATHS if path.parent != FOLDER)
    assert others == sorted(application.name for application in APPLICATIONS)


def test_it_starts_with_its_question_and_what_it_reads_and_writes(path, notebook):
    first = notebook.cells[0]
    assert first.cell_type == "markdown"
    assert re.match(rf"# {path.stem[:2]} \S" if path.parent == FOLDER else r"# [A-Z]", first.source)
    titles = [
        line
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if re.match("# ", line)
    ]
    assert len(titles) == 1
    for word in ("**Question.**", "**Reads**", "**Writes**"):
        assert word in first.source


def test_its_question_is_the_one_of_the_stage(path, notebook):
    """The pipeline shows the question while it runs; it may be shorter than the notebook's."""
    (stage,) = [stage for stage in (*STAGES, *APPLICATIONS) if stage.name == named(path)]
    asked = re.search(r"\*\*Question\.\*\* (.+)", notebook.cells[0].source)
    assert asked
    assert asked[1].split(",")[0].rstrip("?").split()[:4] == stage.question.split(",")[0].rstrip("?").split()[:4]


def test_it_has_its_parameters(path, notebook):
    tagged = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    found = papermill.inspect_notebook(str(path))
    stage = {"run": ("str", '"demo"'), "study": ("dict", "{}")}
    wanted = stage if path.parent == FOLDER else {"data": ("str", '""')}
    assert {name: (value["inferred_type_name"], value["default"]) for name, value in found.items()} == wanted
    assert all(value["help"] for value in found.values())
    lines = [line.split("#")[0].rstrip() for line in tagged[0].source.splitlines()]
    assert lines == [f"{name}: {kind} = {default}" for name, (kind, default) in wanted.items()]


def test_its_code_is_short_and_leaves_logic_to_the_package(notebook):
    for cell in code_cells(notebook):
        assert 0 < len(cell.source.splitlines()) <= 20, cell.source
        assert not re.search(r"^\s*[%!]", cell.source, re.MULTILINE), cell.source
        tree = ast.parse(cell.source)  # `await` alone on a line parses too
        for node in ast.walk(tree):
            assert not isinstance(node, FORBIDDEN), ast.unparse(node)
            if isinstance(node, ast.For):  # a loop may show or save, no more
                assert len(ast.unparse(node).splitlines()) <= 4, ast.unparse(node)


def test_it_was_executed_in_order_without_errors(notebook):
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [output.ename for cell in cells for output in cell.outputs if output.output_type == "error"] == []
    assert any(cell.outputs for cell in cells)
    assert notebook.metadata.kernelspec.name == "python3"
    assert notebook.metadata.kernelspec.language == "python"


def test_nothing_is_left_out_of_the_comparison(notebook):
    """Neither a tag nor a widget hides an output from nbval."""
    for cell in code_cells(notebook):
        assert not [tag for tag in cell.metadata.get("tags", []) if "nbval" in tag or "raises" in tag]
        assert not [output for output in cell.outputs if WIDGET in output.get("data", {})]
        assert not [output for output in cell.outputs if output.output_type == "stream" and output.name == "stderr"]


def test_it_is_in_its_normal_form(path):
    text = path.read_text(encoding="utf-8")
    normal = nbformat.writes(normalise(nbformat.reads(text, as_version=4)), version=nbformat.NO_CONVERT, indent=1)
    assert text == normal.rstrip("\n") + "\n"


def test_a_picture_has_a_text_a_note_before_it_and_a_table_beside_it(notebook):
    cells = notebook.cells
    for place, cell in enumerate(cells):
        if not is_plot(cell):
            continue
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                alt = output.metadata.get("image/png", {}).get("alt", "")
                assert len(alt) > 20, f"cell {place}: alt text {alt!r}"
        before = [other for other in range(place) if is_plot(cells[other])]
        since = cells[(before[-1] + 1 if before else 0) : place]
        assert any(other.cell_type == "markdown" for other in since), f"cell {place}: two plots without a word between"
        near = [other for other in cells[max(0, place - 2) : place + 3] if other.cell_type == "code"]
        assert any(is_table(other) for other in near), f"cell {place}: no table beside the plot"


def test_it_ends_with_the_way_on(path, notebook):
    last = notebook.cells[-1]
    assert last.cell_type == "markdown"
    links = re.findall(r"\]\(([^)#\s]+)\)", last.source)
    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []
    names = [stage.name for stage in STAGES]
    following = names[names.index(path.stem) + 1 :] if path.stem in names else []
    if following:
        assert f"{following[0]}.ipynb" in links
    else:
        assert last.source.strip()


def test_its_links_lead_to_files(path, notebook):
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_its_outputs_name_no_place_on_a_machine(notebook):
    for cell in code_cells(notebook):
        for output in cell.outputs:
            texts = [output.get("text", ""), *[v for v in output.get("data", {}).values() if isinstance(v, str)]]
            for text in (text for text in texts if not text.startswith("iVBOR")):
                found = ADDRESS.search(text)
                assert found is None, text[max(0, found.start() - 40) : found.end() + 40]
                assert "object at 0x" not in text


def test_nbval_collects_every_code_cell_of_every_notebook(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "--collect-only", "-q",
         "--nbval-sanitize-with", str(ROOT / "tests/nbval_sanitize.cfg"), "-p", "no:cacheprovider", "notebooks"],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "JUDGELAB_OUTPUTS": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    collected = re.findall(r"^(notebooks/\S+?)::.*Cell (\d+)$", done.stdout, re.MULTILINE)
    by_name = {name.replace("::", "."): 0 for name, _ in collected}
    for name, _ in collected:
        by_name[name] += 1
    assert by_name == {path.relative_to(ROOT).as_posix(): len(code_cells(read(path))) for path in PATHS}
