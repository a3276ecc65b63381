"""`judgelab labels`: progress, export, import, close."""

from __future__ import annotations

import csv
import io

import pytest
from typer.testing import CliRunner

from judgelab.cli_labels import labels
from judgelab.errors import DataError, RunError
from judgelab.study.freeze import freeze, open_run


@pytest.fixture
def run(project):
    project.write_items(4)
    review = {"labelling": {"training": 0, "repeats_share": 0.25}}
    return freeze("small", project.study(human_labels={"provenance": "human"}, human_review=review))


def told(*arguments):
    result = CliRunner().invoke(labels, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_from_sheets_to_closed_labels(run, tmp_path):
    assert told("progress", "small")[-1] == "labels of run small are open; nobody has labelled in it yet"
    lines = told(
        "export", "small", "--format", "sheet-csv", "--to", tmp_path, "--reviewer", "anna", "--reviewer", "ben"
    )
    assert len(lines) == 4
    for number, name in enumerate(("anna", "ben")):
        path = tmp_path / f"labels-small-{name}.csv"
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows([row | {"label": "A"} for row in rows[: 5 - number]] + rows[5 - number :])
        path.write_text(text.getvalue(), encoding="utf-8")
        lines = told("import", "small", path, "--format", "sheet-csv")
        assert lines[-1] == f"{name}: {5 - number} decisions taken in"
    lines = told("progress", "small")
    assert lines[0] == "labels of run small are open"
    assert lines[1].split() == ["reviewer", "category", "done", "cannot", "judge", "repeats", "median", "time"]
    assert lines[2].split() == ["anna", "all", "4", "of", "4", "0", "1", "of", "1", "-"]
    output = "\n".join(lines)
    assert "exact agreement: " in output
    assert "95% interval" in output
    assert "looking does not end a study" in output
    assert "to adjudicate: " in output
    (line,) = told("export", "small", "--format", "csv", "--to", tmp_path / "all.csv")
    assert line == "written: all.csv"
    lines = told("close", "small")
    assert lines[-1] == "to close them, add --yes"
    assert open_run("small").labels_open
    lines = told("close", "small", "--yes")
    assert lines[-1] == "written: outputs/small/human_labels.csv"
    assert not open_run("small").labels_open
    assert "labels of run small are closed" in told("progress", "small")
    assert (tmp_path / "all.csv").read_bytes() == open_run("small").path("human_labels.csv").read_bytes()


def test_new_names_for_people_of_a_file(run, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("item_id,reviewer_id,preference,is_adjudicated\ni00,a@b.org,ALPHA,false\n", encoding="utf-8")
    assert told("import", "small", path, "--format", "csv", "--reviewer", "a@b.org=anna") == [
        "anna: 1 decisions taken in"
    ]
    assert told("progress", "small")[2].split()[0] == "anna"


def test_mistakes_have_messages(run, tmp_path):
    with pytest.raises(RunError, match="outputs/none is not frozen yet"):
        told("progress", "none")
    with pytest.raises(DataError, match="no such file"):
        told("import", "small", tmp_path / "none.xlsx", "--format", "xlsx")
    result = CliRunner().invoke(labels, ["export", "small", "--to", str(tmp_path)])
    assert result.exit_code == 2
