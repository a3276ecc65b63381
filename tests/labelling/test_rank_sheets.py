"""Sheets on which all answers of an item are put in order."""

from __future__ import annotations

import csv
import io

import pytest
from openpyxl import load_workbook

from judgelab.errors import DataError, LabelError
from judgelab.labelling.exchange import export_labels, import_labels
from judgelab.labelling.gathered import gathered_labels
from judgelab.labelling.progress_lines import progress_lines
from judgelab.labelling.rank_records import RankJournal
from judgelab.labelling.rank_tasks import ranking_order
from judgelab.labelling.ranks import ranks_of, read_rank_journals
from judgelab.study.freeze import close_labels, freeze


@pytest.fixture
def run(project):
    project.write_items([project.item(number, answer_gamma="=1+1") for number in range(4)])
    study = project.study(
        systems={"ALPHA": {}, "BETA": {}, "GAMMA": {}},
        human_labels={"provenance": "human"},
        human_review={"labelling": {"mode": "ranking", "training": 1, "repeats_share": 0.25}},
        split={"development_share": 0.0},
    )
    return freeze("small", study)


def order_of(run, reviewer="anna"):
    order = ranking_order(run.study, run.items(), reviewer, training=1, repeats_share=0.25)
    return [task for task in order if task.kind != "training"]


def journals(run):
    return read_rank_journals(run.path("labelling", "ranks"), study=run.study)


def rows_of(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))


def write(path, rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=";")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def test_a_workbook_of_ranks_goes_out_and_comes_back(run, tmp_path):
    (path,) = export_labels(run, "xlsx", tmp_path, reviewers=["anna"])
    book = load_workbook(path)
    sheet = book["Labels"]
    names = [cell.value for cell in sheet[1]]
    assert names[5:12] == ["answer_A", "answer_B", "answer_C", "label", "rank_A", "rank_B", "rank_C"]
    assert "ALPHA" not in str([list(row) for page in book for row in page.iter_rows(values_only=True)])
    rules = {
        str(rule.sqref): (rule.type, rule.formula1, rule.formula2) for rule in sheet.data_validations.dataValidation
    }
    assert rules[f"J2:J{sheet.max_row}"] == ("whole", "1", "3")
    ranked = {"ALPHA": 1, "BETA": 2, "GAMMA": 2}
    order = order_of(run)
    assert {task.kind for task in order} == {"label", "repeat"}
    for line, task in enumerate(order, start=2):
        for place, system in enumerate(task.shown):
            sheet.cell(line, 10 + place).value = ranked[system]
    book.save(path)
    notes = import_labels(run, "xlsx", path)
    assert notes[-1] == f"anna: {len(order)} rankings taken in"
    table = ranks_of(journals(run), run.study)
    assert {(row.system, row.rank) for row in table.itertuples()} == set(ranked.items())
    assert len(table) == 12
    assert import_labels(run, "xlsx", path)[-1] == f"anna: 0 rankings taken in, {len(order)} were there already"


def test_ties_and_gaps_missing_ranks_and_what_cannot_be_judged(run, tmp_path):
    path, beside = export_labels(run, "sheet-csv", tmp_path / "anna.csv", reviewers=["anna"])
    assert "a whole number from 1 (best) to 3" in beside.read_text(encoding="utf-8-sig")
    rows = rows_of(path)
    rows[0] |= {"rank_A": "1", "rank_B": "3,0", "rank_C": "3"}
    rows[1] |= {"label": "cannot judge", "reason": "in Welsh"}
    write(path, rows)
    notes = import_labels(run, "sheet-csv", path)
    assert notes[0] == f"anna.csv: 2 of {len(rows)} rows of anna are ranked; {len(rows) - 2} are not ranked yet"
    (journal,) = journals(run)
    first, second = journal.standing.initial().values()
    assert first.ranks == (1, 2, 2)
    assert (second.choice, second.reason) == ("cannot_judge", "in Welsh")
    rest = export_labels(run, "sheet-csv", tmp_path / "rest")[0]
    assert [row["task_id"] for row in rows_of(rest)] == [row["task_id"] for row in rows[2:]]


def test_every_wrong_row_is_told_and_nothing_imported(run, tmp_path):
    path = export_labels(run, "sheet-csv", tmp_path / "anna.csv", reviewers=["anna"])[0]
    rows = rows_of(path)
    rows[0] |= {"rank_A": "1", "rank_B": "4", "rank_C": "first"}
    rows[1] |= {"rank_A": "1", "rank_B": "2"}
    rows[2] |= {"rank_A": "1", "rank_B": "2", "rank_C": "3", "label": "CANNOT JUDGE"}
    rows[3] |= {"label": "A", "task": "another"}
    rows[4] |= {"label": "CANNOT JUDGE"}
    write(path, rows)
    with pytest.raises(DataError) as caught:
        import_labels(run, "sheet-csv", path)
    for problem in (
        "line 2: rank_B '4'; allowed is a whole number from 1 to 3",
        "line 2: rank_C 'first'; allowed is a whole number from 1 to 3",
        "line 3: 2 of 3 answers have a rank; all or none are needed",
        "line 4: CANNOT JUDGE and ranks at once; one is allowed",
        f"line 5: task of task {rows[3]['task_id']} differs from what was sent",
        "line 5: label 'A'; allowed is CANNOT JUDGE, or empty",
        "line 6: cannot judge without a reason",
    ):
        assert problem in str(caught.value)
    assert not run.path("labelling").exists()


def test_another_ranking_than_the_journal_has_is_refused(run, tmp_path):
    path = export_labels(run, "sheet-csv", tmp_path / "anna.csv", reviewers=["anna"])[0]
    rows = rows_of(path)
    rows[0] |= {"rank_A": "1", "rank_B": "2", "rank_C": "3"}
    write(path, rows)
    import_labels(run, "sheet-csv", path)
    rows[0] |= {"rank_A": "2", "rank_B": "1"}
    write(path, rows)
    with pytest.raises(DataError, match=r"line 2: anna has another ranking of item .* in the journal already"):
        import_labels(run, "sheet-csv", path)


def test_a_session_under_the_same_name_keeps_the_import_out(run, tmp_path):
    path = export_labels(run, "sheet-csv", tmp_path / "anna.csv", reviewers=["anna"])[0]
    write(path, [row | {"rank_A": "1", "rank_B": "2", "rank_C": "3"} for row in rows_of(path)])
    with (
        RankJournal.open(run.path("labelling", "ranks"), "anna", "notebook", study=run.study),
        pytest.raises(LabelError, match="is writing under the name 'anna'"),
    ):
        import_labels(run, "sheet-csv", path)
    assert import_labels(run, "sheet-csv", path)[-1] == f"anna: {len(order_of(run))} rankings taken in"
    with pytest.raises(LabelError, match="anna has no task left to label"):
        export_labels(run, "xlsx", tmp_path, reviewers=["anna"])


def test_names_are_needed_where_nobody_has_begun(run, tmp_path):
    with pytest.raises(LabelError, match="name each once, with --reviewer NAME"):
        export_labels(run, "xlsx", tmp_path)
    with pytest.raises(LabelError, match="a sheet names its reviewer itself"):
        import_labels(run, "xlsx", tmp_path / "x.xlsx", reviewers=["a=b"])


def test_progress_and_the_labels_and_ranks_as_csv(run, tmp_path):
    path = export_labels(run, "sheet-csv", tmp_path / "anna.csv", reviewers=["anna"])[0]
    write(path, [row | {"rank_A": "1", "rank_B": "2", "rank_C": "2"} for row in rows_of(path)])
    import_labels(run, "sheet-csv", path)
    lines = progress_lines(run)
    assert lines[2].split() == ["anna", "all", "4", "of", "4", "0", "1", "of", "1", "-"]
    files = export_labels(run, "csv", tmp_path / "out")
    assert [file.name for file in files] == ["human_labels.csv", "expert_ranks.csv"]
    ranks = rows_of(files[1])
    assert (len(ranks), {row["rank"] for row in ranks}) == (12, {"1", "2"})
    gathered = gathered_labels(run)
    closed = close_labels(run, gathered.labels, gathered.ranks)
    before = [file.read_bytes() for file in files]
    assert [file.read_bytes() for file in export_labels(closed, "csv", tmp_path / "out")] == before
