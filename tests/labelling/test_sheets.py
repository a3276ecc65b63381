"""Label sheets: out as workbook or CSV, filled in by people and their programs, and back."""

from __future__ import annotations

import csv
import io
import warnings
import zipfile
from datetime import date
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook

from judgelab.errors import DataError, LabelError
from judgelab.labelling.exchange import export_labels, import_labels
from judgelab.labelling.journal import Journal, decisions_of, read_journals
from judgelab.labelling.sending import tasks_of
from judgelab.labelling.sheet_layout import cell_text, neutral, plain
from judgelab.study.freeze import freeze

NASTY = [
    *("=1+1", "+cmd", "-2", "@SUM(A1)", "'=2", "''", " =3", "\t=4", "＝5", "=HYPERLINK(A1;B1)", "#N/A", "TRUE", "007"),
    *(
        "line\nbreak",
        "carriage\r\nreturn\rend",
        "tab\tbed",
        "a,b;c",
        'say "no"',
        "שלום עולם",
        "😀👩‍💻",
        "1.0",
        "2024-05-06",
    ),
    *(
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "bell\x07 null\x00 escape\x1b delete\x7f",
        "_x0041_",
    ),
    *("_x005F_x0041_", " spaces around ", "]]>", "&amp;", "\ufeffmark", "sep=;", "naïve Zoë", "{=A1}", "x" * 3000),
]
TEXTS = st.one_of(
    st.sampled_from(NASTY), st.text(min_size=1, max_size=40), st.text("=+-@'\t\n;,\"_x005F", min_size=1, max_size=12)
)


def made(project, *, texts=None, items=6, **labelling):
    """A frozen run in which labels are open; ``texts`` become answers."""
    records = [project.item(number) for number in range(items)]
    for record, text in zip(records, texts or [], strict=False):
        record |= {"answer_alpha": f"{text} alpha", "answer_beta": text, "task": text, "reference_context": text}
    project.write_items(records)
    review = {"labelling": {"training": 2, "repeats_share": 0.5} | labelling}
    study = project.study(
        human_labels={"provenance": "human"}, human_review=review, split={"development_share": 0.3}, items=SOURCE
    )
    return freeze("small", study)


SOURCE = {"path": "params/small/items.jsonl", "max_answer_characters": 300_000, "max_excluded_share": 0.9}


@pytest.fixture
def run(project):
    return made(project)


@pytest.fixture
def scored(project):
    return made(project, criterion_scores=True)


def exported(run, folder, form="xlsx", reviewer="anna"):
    return export_labels(run, form, folder, reviewers=[reviewer])[0]


def filled(path, **columns):
    """Fill a sheet in: by column, a value a row or one for all. Returns the number of rows."""
    if path.suffix == ".csv":
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
        for name, values in columns.items():
            for number, row in enumerate(rows):
                row[name] = values[number % len(values)] if isinstance(values, list) else values
        write(path, rows)
        return len(rows)
    book = load_workbook(path)
    sheet = book["Labels"]
    names = [cell.value for cell in sheet[1]]
    for name, values in columns.items():
        for row in range(2, sheet.max_row + 1):
            value = values[(row - 2) % len(values)] if isinstance(values, list) else values
            sheet.cell(row, names.index(name) + 1).value = value
    book.save(path)
    return sheet.max_row - 1


def write(path, rows, *, delimiter=",", encoding="utf-8", header=None, before=""):
    text = io.StringIO()
    writer = csv.DictWriter(text, header or list(rows[0]), delimiter=delimiter, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes((before + text.getvalue()).encode(encoding))


def rows_of(path):
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))


def decided(run):
    """Every decision by reviewer, kind and item: a system, TIE, or nan."""
    table = decisions_of(read_journals(run.path("labelling"), study=run.study), run.study)
    return {(row.reviewer_id, row.kind, row.item_id): row.preference for row in table.itertuples()}


def journals(run):
    return sorted(path.name for path in run.path("labelling").glob("*.jsonl"))


@pytest.mark.parametrize("form", ["xlsx", "sheet-csv"])
def test_a_sheet_goes_out_and_comes_back(run, tmp_path, form):
    path = exported(run, tmp_path, form)
    tasks = tasks_of(run, "anna")
    assert {task.task.kind for task in tasks} == {"label", "repeat"}
    words = ["A", "b", " Tie ", "CANNOT JUDGE"]
    count = filled(path, label=words, reason=["", "", "", "both are in a language that I do not read"], note="=note")
    assert count == len(tasks)
    notes = import_labels(run, form, path)
    assert notes[-1] == f"anna: {count} decisions taken in"
    wanted = {}
    for task, word in zip(tasks, words * 9, strict=False):
        by_word = {"A": task.task.shown[0], "b": task.task.shown[1], " Tie ": "TIE"}
        wanted["anna", task.task.kind, task.task.item_id] = by_word.get(word)
    found = decided(run)
    assert {key: value if isinstance(value, str) else None for key, value in found.items()} == wanted
    (journal,) = read_journals(run.path("labelling"), study=run.study)
    assert {first.note for first in journal.standing.initial().values()} == {"=note"}
    assert {first.session for first in journal.standing.initial().values()} == {f"import of {path.name}"}
    assert import_labels(run, form, path)[-1] == f"anna: 0 decisions taken in, {count} were there already"


def test_a_workbook_for_people(scored, tmp_path):
    path = exported(scored, tmp_path)
    assert path.name == "labels-small-anna.xlsx"
    book = load_workbook(path)
    assert book.sheetnames == ["Instructions", "Labels"]
    told = "\n".join(str(row[0]) for row in book["Instructions"].iter_rows(values_only=True))
    for part in ("correctness", scored.study.tie_meaning, "CANNOT JUDGE", "1 to 5", "Send the whole file back"):
        assert part in told
    sheet = book["Labels"]
    names = [cell.value for cell in sheet[1]]
    assert names[7:] == ["label", "score_A_correctness", "score_B_correctness", "reason", "note", "check"]
    assert sheet.freeze_panes == "B2"
    assert sheet.protection.sheet
    assert not sheet.protection.password
    unlocked = {names[cell.column - 1] for cell in sheet[2] if not cell.protection.locked}
    assert unlocked == {"label", "score_A_correctness", "score_B_correctness", "reason", "note"}
    assert all(cell.alignment.wrap_text for cell in sheet[2])
    rules = {
        str(rule.sqref): (rule.type, rule.formula1, rule.formula2) for rule in sheet.data_validations.dataValidation
    }
    last = sheet.max_row
    assert rules[f"H2:H{last}"] == ("list", '"A,B,TIE,CANNOT JUDGE"', None)
    assert rules[f"I2:I{last}"] == ("decimal", "1", "5")
    every = path.read_bytes() + told.encode()
    assert b"ALPHA" not in every
    for name in zipfile.ZipFile(path).namelist():
        content = zipfile.ZipFile(path).read(name)
        assert b"ALPHA" not in content
        if name.endswith((".xml", ".rels")):
            ElementTree.fromstring(content)


def test_a_csv_sheet_has_its_instructions_beside(run, tmp_path):
    path, beside = export_labels(run, "sheet-csv", tmp_path / "new" / "anna.csv", reviewers=["anna"])
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert beside.name == "anna-instructions.txt"
    assert "CANNOT JUDGE" in beside.read_text(encoding="utf-8-sig")
    assert "ALPHA" not in path.read_text(encoding="utf-8") + beside.read_text(encoding="utf-8")


def test_reviewers_have_their_own_order_and_ids(run, tmp_path):
    ids = {}
    for name in ("anna", "ben"):
        ids[name] = [row["task_id"] for row in rows_of(exported(run, tmp_path, "sheet-csv", name))]
    assert not set(ids["anna"]) & set(ids["ben"])
    orders = [[task.task.item_id for task in tasks_of(run, name)] for name in ids]
    assert orders[0] != orders[1]


@pytest.mark.parametrize("form", ["xlsx", "sheet-csv"])
def test_no_text_becomes_a_formula(project, tmp_path, form):
    run = made(project, texts=NASTY, items=len(NASTY))
    path = exported(run, tmp_path, form)
    if form == "xlsx":
        for name in zipfile.ZipFile(path).namelist():
            if name.endswith(".xml"):
                ElementTree.fromstring(zipfile.ZipFile(path).read(name))
        sheet = load_workbook(path)["Labels"]
        for row in sheet.iter_rows():
            assert {cell.data_type for cell in row if cell.value is not None} == {"s"}
            assert all(cell.quotePrefix for cell in row if cell.value is not None)
        assert b"<f>" not in zipfile.ZipFile(path).read("xl/worksheets/sheet2.xml")
    else:
        for row in rows_of(path):
            assert not any(value.strip().startswith(tuple("=+-@＝＋－＠")) for value in row.values())
    count = filled(path, label="A")
    assert import_labels(run, form, path)[-1] == f"anna: {count} decisions taken in"


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, min_size=3, max_size=6))
def test_nasty_texts_come_back(fresh_project, tmp_path_factory, texts):
    with fresh_project() as project:
        records = [project.item(number) for number in range(len(texts))]
        for record, text in zip(records, texts, strict=True):
            record |= {"answer_alpha": f"{text}!", "task": f"?{text}", "reference_context": text}
        project.write_items(records)
        study = project.study(
            human_labels={"provenance": "human"}, human_review={"labelling": {"training": 0}}, items=SOURCE
        )
        run = freeze("small", study)
        folder = tmp_path_factory.mktemp("sheets")
        for form, reviewer in (("xlsx", "anna"), ("sheet-csv", "ben")):
            path = exported(run, folder, form, reviewer)
            count = filled(path, label=["A", "TIE"])
            assert import_labels(run, form, path)[-1] == f"{reviewer}: {count} decisions taken in"


@given(TEXTS)
def test_a_neutral_text_is_a_text_again(text):
    assert plain(neutral(text)) == text
    assert not neutral(text).lstrip().startswith(tuple("=+-@"))


def test_what_a_cell_cannot_hold_is_shown():
    assert cell_text("a\x00b\x1b\x7f\r\nc\rd\ud800\uffff") == "a␀b␛␡\nc\nd\ufffd\ufffd"


def test_a_text_longer_than_a_cell_is_refused_and_csv_offered(project, tmp_path):
    run = made(project, texts=["a", "b" * 40_000, "😀" * 17_000, "c", "d", "e" * 200_000])
    long = {task.task.item_id for task in tasks_of(run, "anna")} & {"i01", "i02", "i05"}
    with pytest.raises(LabelError) as caught:
        exported(run, tmp_path)
    assert f"more than 32,767 characters, which a workbook cannot hold: {', '.join(sorted(long))}" in str(caught.value)
    assert "--format sheet-csv" in str(caught.value)
    assert list(tmp_path.glob("*.xlsx")) == []
    path = exported(run, tmp_path, "sheet-csv")
    count = filled(path, label="B")
    assert import_labels(run, "sheet-csv", path)[-1] == f"anna: {count} decisions taken in"


def test_rows_and_columns_may_have_another_order_and_columns_be_added(run, tmp_path):
    path = exported(run, tmp_path, "sheet-csv")
    rows = [{"Mine": "x", **dict(reversed(row.items())), "label": "A"} for row in reversed(rows_of(path))]
    write(path, rows)
    notes = import_labels(run, "sheet-csv", path)
    assert "columns that are not of the sheet, ignored: Mine" in notes
    assert len(decided(run)) == len(rows)


@pytest.mark.parametrize(
    ("delimiter", "encoding", "before"),
    [
        (";", "utf-8-sig", ""),
        (";", "utf-8", "sep=;\r\n"),
        ("\t", "utf-16", ""),
        (";", "cp1252", ""),
        (",", "utf-8", ""),
    ],
)
def test_csv_as_programs_of_other_countries_write_it(project, tmp_path, delimiter, encoding, before):
    run = made(project, texts=["Zoë; naïve, «so» =1"])
    path = exported(run, tmp_path, "sheet-csv")
    rows = [row | {"label": "A", "note": "schön"} for row in rows_of(path)]
    write(path, rows, delimiter=delimiter, encoding=encoding, before=before)
    notes = import_labels(run, "sheet-csv", path)
    assert any("Windows-1252" in note for note in notes) == (encoding == "cp1252")
    (journal,) = read_journals(run.path("labelling"), study=run.study)
    assert {first.note for first in journal.standing.initial().values()} == {"schön"}


def test_characters_lost_in_an_encoding_are_told(project, tmp_path):
    run = made(project, texts=["שלום"] * 6)
    path = exported(run, tmp_path, "sheet-csv")
    text = path.read_text(encoding="utf-8-sig").encode("cp1252", errors="replace")
    path.write_bytes(text)
    with pytest.raises(DataError, match=r"task and context and answer_A and answer_B of task t-[0-9a-f]+ differs"):
        import_labels(run, "sheet-csv", path)


def test_every_wrong_row_is_told_and_nothing_imported(scored, tmp_path):
    path = exported(scored, tmp_path, "sheet-csv")
    other = rows_of(exported(scored, tmp_path, "sheet-csv", "ben"))[0]
    rows = [row | {"label": "A"} for row in rows_of(path)]
    first, gone = rows[0], rows.pop()
    rows[1] |= {"answer_A": "another answer", "label": "the first one is better"}
    rows[2] |= {"label": "cannot judge", "score_A_correctness": "9", "score_B_correctness": "good"}
    rows += [first, other | {"label": "B"}, first | {"task_id": "t-0000000000"}]
    write(path, rows)
    with pytest.raises(DataError) as caught:
        import_labels(scored, "sheet-csv", path)
    told = str(caught.value)
    count = len(rows)
    assert told.splitlines()[0].endswith(f"9 problems in {count} rows; nothing was imported:")
    for problem in (
        f"line 3: answer_A of task {rows[1]['task_id']} differs from what was sent; put it back as it was",
        "line 3: label 'the first one is better'; allowed are A, B, TIE, CANNOT JUDGE, or empty",
        "line 4: score_A_correctness '9' is out of range; allowed is 1 to 5, or empty",
        "line 4: score_B_correctness 'good' is not a number; allowed is 1 to 5, or empty",
        "line 4: cannot judge without a reason; say in reason why",
        f"line {count - 1}: task {first['task_id']} stands in line 2 already",
        f"line {count}: a row of the sheet of 'ben' in that of 'anna'",
        f"line {count + 1}: task_id 't-0000000000' is not of the sheet of anna",
        f"missing row: number {gone['number']}, task {gone['task_id']}",
    ):
        assert problem in told
    assert journals(scored) == []


def test_a_workbook_row_that_was_changed_is_told_with_its_line(scored, tmp_path):
    path = exported(scored, tmp_path)
    book = load_workbook(path)
    sheet = book["Labels"]
    sheet["E3"] = "another context"
    sheet["H4"] = "=1+1"
    sheet["I5"] = date(2024, 4, 5)
    sheet["M2"] = "c-changed"
    book.save(path)
    with pytest.raises(DataError) as caught:
        import_labels(scored, "xlsx", path)
    told = str(caught.value)
    assert "line 2: check 'c-changed' of task" in told
    assert "line 3: context of task" in told
    assert "line 4: label '=1+1'; allowed are" in told
    assert "line 5: score_A_correctness '2024-04-05T00:00:00' is not a number" in told
    assert journals(scored) == []


def test_missing_answers_are_no_problem(scored, tmp_path):
    path = exported(scored, tmp_path, "sheet-csv")
    rows = rows_of(path)
    rows[0] |= {"label": "A", "score_A_correctness": "4,5", "score_B_correctness": "2"}
    rows[1] |= {"label": "B", "score_A_correctness": "3"}
    rows[2] |= {"note": "later"}
    write(path, rows)
    notes = import_labels(scored, "sheet-csv", path)
    assert any(
        f"2 of {len(rows)} rows of anna are labelled; {len(rows) - 2} are not labelled yet (1 have a score, reason or "
        "note); 1 labels are without all or some scores" in note
        for note in notes
    )
    rows[2] |= {"label": "TIE"}
    write(path, rows)
    assert import_labels(scored, "sheet-csv", path)[-1] == "anna: 1 decisions taken in, 2 were there already"
    (journal,) = read_journals(scored.path("labelling"), study=scored.study)
    assert next(iter(journal.standing.initial().values())).scores == {
        "left": {"correctness": 4.5},
        "right": {"correctness": 2},
    }


def test_another_decision_than_the_journal_has_is_refused(scored, tmp_path):
    path = exported(scored, tmp_path, "sheet-csv")
    rows = [row | {"label": "A", "score_A_correctness": "4"} for row in rows_of(path)]
    write(path, rows)
    import_labels(scored, "sheet-csv", path)
    before = scored.path("labelling", "anna.jsonl").read_bytes()
    rows[1] |= {"label": "B"}
    rows[2] |= {"score_A_correctness": "5"}
    write(path, rows)
    with pytest.raises(DataError) as caught:
        import_labels(scored, "sheet-csv", path)
    told = str(caught.value)
    assert "2 problems" in told
    assert "line 3: anna has" in told
    assert "but the journal of anna has" in told
    assert "line 4: anna has other scores on item" in told
    assert scored.path("labelling", "anna.jsonl").read_bytes() == before


def test_only_what_is_left_goes_into_a_sheet(run, tmp_path):
    tasks = tasks_of(run, "anna")
    known = [item.item_id for item in run.items()]
    with Journal.open(run.path("labelling"), "anna", "notebook", study=run.study, known=known) as journal:
        journal.decide(tasks[0].task, "left", seconds=3)
    path = export_labels(run, "sheet-csv", tmp_path)[0]  # without names: who has begun
    assert [row["task_id"] for row in rows_of(path)] == [task.task_id for task in tasks[1:]]
    filled(path, label="B")
    assert import_labels(run, "sheet-csv", path)[-1] == f"anna: {len(tasks) - 1} decisions taken in"
    with pytest.raises(LabelError, match="anna has no task left to label in run small"):
        exported(run, tmp_path)


def test_a_session_under_the_same_name_keeps_the_import_out(run, tmp_path):
    path = exported(run, tmp_path, "sheet-csv")
    filled(path, label="A")
    with (
        Journal.open(run.path("labelling"), "anna", "notebook", study=run.study),
        pytest.raises(LabelError, match=r"session notebook .* is writing under the name 'anna'"),
    ):
        import_labels(run, "sheet-csv", path)
    assert decided(run) == {}
    import_labels(run, "sheet-csv", path)


def test_sheets_that_are_there_are_not_written_over(run, tmp_path):
    path = exported(run, tmp_path)
    before = path.read_bytes()
    with pytest.raises(LabelError, match=r"labels-small-anna.xlsx: there already, and may hold labels"):
        export_labels(run, "xlsx", tmp_path, reviewers=["ben", "anna"])
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.glob("*.xlsx")] == [path.name]


@pytest.mark.parametrize(
    ("reviewers", "told"),
    [
        ([], "a sheet is for one reviewer: name each once"),
        (["anna", "Anna"], "name each once"),
        (["../anna"], "allowed are up to 80 letters"),
    ],
)
def test_names_for_sheets(run, tmp_path, reviewers, told):
    with pytest.raises(LabelError, match=told):
        export_labels(run, "xlsx", tmp_path / "sheets", reviewers=reviewers)
    assert not (tmp_path / "sheets").exists()


@pytest.mark.parametrize(
    ("form", "content", "told"),
    [
        ("xlsx", b"no workbook", "no XLSX workbook"),
        ("xlsx", b"PK\x05\x06" + b"\x00" * 18, "the workbook cannot be read"),
        ("sheet-csv", b"", "the file is empty"),
        ("sheet-csv", b"PK\x03\x04 and so on", "this is a workbook, no CSV"),
        ("sheet-csv", b"a,b\r\n1,2\r\n", "its first line has no column task_id"),
        ("sheet-csv", b'task_id,b\r\n"1,2\r\n', "not valid CSV in line 2"),
        ("sheet-csv", b"task_id,label\r\nt-1,A\r\n", "columns that are missing: reviewer, task, context"),
        ("sheet-csv", b"task_id,task_id\r\nt-1,A\r\n", "columns named more than once: task_id"),
    ],
)
def test_files_that_are_no_sheets(run, tmp_path, form, content, told):
    path = tmp_path / "back"
    path.write_bytes(content)
    with pytest.raises(DataError, match=told):
        import_labels(run, form, path)
    with pytest.raises(DataError, match="no such file"):
        import_labels(run, form, tmp_path / "nowhere")


def test_a_sheet_without_rows_or_names(run, tmp_path):
    path = exported(run, tmp_path, "sheet-csv")
    header = path.read_text(encoding="utf-8").splitlines()[0]
    path.write_text(header + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="no row names a reviewer"):
        import_labels(run, "sheet-csv", path)


def test_a_workbook_whose_sheet_was_renamed_and_has_a_formula_as_note(run, tmp_path):
    path = exported(run, tmp_path)
    book = load_workbook(path)
    sheet = book["Labels"]
    sheet.title = "Mine"
    sheet["H2"], sheet["J2"] = "A", "=because"
    book.save(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        import_labels(run, "xlsx", path)
    (journal,) = read_journals(run.path("labelling"), study=run.study)
    assert [first.note for first in journal.standing.initial().values()] == ["=because"]


def test_a_csv_sheet_that_came_back_as_a_workbook(project, tmp_path):
    run = made(project, texts=["=1+1", "-2", "@x"], items=4)
    path = exported(run, tmp_path, "sheet-csv")
    rows = rows_of(path)
    book = load_workbook(exported(run, tmp_path, "xlsx"))
    sheet = book["Labels"]
    names = [cell.value for cell in sheet[1]]
    for number, row in enumerate(rows, start=2):
        for name, value in row.items():
            cell = sheet.cell(number, names.index(name) + 1)
            cell.value, cell.data_type = value, "s"
        sheet.cell(number, names.index("label") + 1).value = "B"
    book.save(tmp_path / "back.xlsx")
    assert import_labels(run, "xlsx", tmp_path / "back.xlsx")[-1] == f"anna: {len(rows)} decisions taken in"
