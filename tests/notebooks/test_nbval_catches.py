"""nbval, as `make nbval` calls it, passes a committed notebook and fails the same with one other digit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from judgelab.study.freeze import freeze
from judgelab.study.protocol import load_params

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
NAME = "02_human_reference.ipynb"  # it needs stage 01 only


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outputs with the demo as stage 01 leaves it."""
    folder = tmp_path_factory.mktemp("outputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGELAB_ROOT", str(ROOT))
        patch.setenv("JUDGELAB_OUTPUTS", str(folder))
        freeze(*load_params(ROOT / "params/demo.yaml"))
    return folder


def nbval(folder: Path, outputs: Path) -> subprocess.CompletedProcess[str]:
    """The command of the Makefile, on another folder."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    called = re.search(r"-m pytest (.*--nbval .*) notebooks \$\(WITHOUT\)$", makefile, re.MULTILINE)
    assert called
    options = called[1].replace("tests/nbval_sanitize.cfg", str(ROOT / "tests/nbval_sanitize.cfg")).split()
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-c", os.devnull, "--rootdir", str(folder), str(folder)],
        capture_output=True, text=True,
        env={**os.environ, "JUDGELAB_ROOT": str(ROOT), "JUDGELAB_OUTPUTS": str(outputs)},
    )  # fmt: skip


def test_a_committed_notebook_passes(outputs, tmp_path):
    notebook = nbformat.read(ROOT / "notebooks" / NAME, as_version=4)
    nbformat.write(notebook, tmp_path / NAME)
    done = nbval(tmp_path, outputs)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    count = sum(cell.cell_type == "code" for cell in notebook.cells)
    assert f"{count} passed" in done.stdout


def test_one_other_digit_in_one_output_fails(outputs, tmp_path):
    notebook = nbformat.read(ROOT / "notebooks" / NAME, as_version=4)
    html = [
        output.data
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "<td>" in output.get("data", {}).get("text/html", "")
    ]
    assert html, "no executed table"
    changed = re.sub(
        r"(<td>[^<]*?)(\d)(?=[^\d<]*</td>)",
        lambda found: found[1] + str((int(found[2]) + 1) % 10),
        html[0]["text/html"],
        count=1,
    )
    assert sum(a != b for a, b in zip(changed, html[0]["text/html"], strict=True)) == 1
    html[0]["text/html"] = changed
    nbformat.write(notebook, tmp_path / NAME)
    done = nbval(tmp_path, outputs)
    assert done.returncode == 1
    assert "1 failed" in done.stdout
    assert "text/html" in done.stdout
