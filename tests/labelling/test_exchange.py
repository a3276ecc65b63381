"""Labels out and in by one function each way; the protocol's own CSV among the forms."""

from __future__ import annotations

import pytest

from judgelab.errors import DataError, DriftError, LabelError
from judgelab.labelling.exchange import FORMATS, export_labels, import_labels
from judgelab.labelling.gathered import gathered_labels
from judgelab.labelling.journal import Journal, read_journals
from judgelab.study.freeze import close_labels, freeze
from judgelab.study.labels import read_label_file

HEADER = "item_id,reviewer_id,alpha_score,beta_score,preference,is_adjudicated"
LONG = "item_id,reviewer_id,system_x,system_y,preference,is_adjudicated,repeat"


def made(project, *, items=4, labelling=None, **changes):
    project.write_items(items)
    review = {"labelling": {"training": 0} | (labelling or {})}
    return freeze("small", project.study(human_labels={"provenance": "human"}, human_review=review, **changes))


@pytest.fixture
def run(project):
    return made(project)


def file_of(tmp_path, *rows, header=HEADER):
    path = tmp_path / "labels.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def labels(run):
    table = gathered_labels(run).labels
    return {
        (row.item_id, row.reviewer_id, row.is_adjudicated, row.repeat): row.preference for row in table.itertuples()
    }


def test_the_protocols_csv_goes_in_and_out(run, tmp_path):
    path = file_of(
        tmp_path,
        *("i00,anna,4,2,ALPHA,false", "i00,ben,3,3,TIE,false", "i01,anna,,,BETA,false", "i01,ben,1,5,BETA,false"),
        "i00,cleo,,,ALPHA,true",
    )
    notes = import_labels(run, "csv", path)
    assert notes == [
        "anna: 2 decisions taken in",
        "ben: 2 decisions taken in",
        "cleo: 1 adjudicated labels taken in",
    ]
    assert labels(run) == {
        ("i00", "anna", False, 1): "ALPHA",
        ("i00", "ben", False, 1): "TIE",
        ("i00", "cleo", True, 1): "ALPHA",
        ("i01", "anna", False, 1): "BETA",
        ("i01", "ben", False, 1): "BETA",
    }
    assert [file.reviewer for file in read_journals(run.path("labelling", "adjudication"), study=run.study)] == ["cleo"]
    (out,) = export_labels(run, "csv", tmp_path / "out")
    assert out.name == "human_labels.csv"
    back = read_label_file(out, run.study).labels
    given = read_label_file(path, run.study).labels
    order = ["item_id", "reviewer_id"]
    columns = [name for name in given if name != "line"]
    assert back.sort_values(order)[columns].values.tolist()[0] == given.sort_values(order)[columns].values.tolist()[0]
    assert back["score_x"].fillna(-1).sum() == given["score_x"].fillna(-1).sum()
    assert import_labels(run, "csv", out)[0] == "anna: 0 decisions taken in, 2 were there already"


def test_repeats_and_pairs_of_more_systems(project, tmp_path):
    records = [project.item(number, answer_gamma="Perhaps.") for number in range(2)]
    run = made(project, items=records, systems={"ALPHA": {}, "BETA": {}, "GAMMA": {}})
    path = file_of(
        tmp_path,
        *("i00,anna,BETA,ALPHA,ALPHA,false,1", "i00,anna,ALPHA,BETA,BETA,false,2", "i01,anna,ALPHA,GAMMA,TIE,false,1"),
        header=LONG,
    )
    assert import_labels(run, "csv", path) == ["anna: 3 decisions taken in"]
    assert labels(run) == {
        ("i00", "anna", False, 1): "ALPHA",
        ("i00", "anna", False, 2): "BETA",
        ("i01", "anna", False, 1): "TIE",
    }
    path = file_of(tmp_path, "i00,anna,ALPHA,BETA,ALPHA,false,1", "i00,anna,ALPHA,BETA,BETA,false,3", header=LONG)
    with pytest.raises(DataError, match="line 3: repeat 3; in a journal a pair comes twice at most"):
        import_labels(run, "csv", path)


def test_what_differs_from_a_journal_is_told_by_line(run, tmp_path):
    import_labels(run, "csv", file_of(tmp_path, "i00,anna,4,2,ALPHA,false", "i00,cleo,,,ALPHA,true"))
    before = {path: path.read_bytes() for path in run.path("labelling").rglob("*.jsonl")}
    path = file_of(
        tmp_path,
        *("i00,anna,4,2,BETA,false", "i01,ben,,,ALPHA,false", "i00,dora,,,BETA,true"),
    )
    with pytest.raises(DataError) as caught:
        import_labels(run, "csv", path)
    told = str(caught.value)
    for problem in (
        "line 2: anna has BETA on item i00, but the journal of anna has ALPHA already; a decision is never changed",
        "line 4: dora has BETA on item i00, but the journal of cleo has ALPHA already",
    ):
        assert problem in told
    assert {path: path.read_bytes() for path in run.path("labelling").rglob("*.jsonl")} == before


def test_names_that_differ_in_case_only(run, tmp_path):
    import_labels(run, "csv", file_of(tmp_path, "i00,anna,,,ALPHA,false"))
    path = file_of(tmp_path, "i01,Anna,,,ALPHA,false")
    with pytest.raises(DataError, match="reviewer Anna: the journal of anna differs in upper and lower case only"):
        import_labels(run, "csv", path)
    assert import_labels(run, "csv", path, reviewers=["Anna=anna"]) == ["anna: 1 decisions taken in"]


def test_scores_of_whole_answers_cannot_be_divided(project, tmp_path):
    run = made(project, direct_scale={"criteria": ["correctness", "style"]})
    notes = import_labels(run, "csv", file_of(tmp_path, "i00,anna,4,2,ALPHA,false"))
    assert "scores of 1 labels are of whole answers, and the protocol has 2 criteria: left out" in notes[0]
    assert gathered_labels(run).labels["score_x"].isna().all()


def test_labels_of_development_items_are_left_out(project, tmp_path):
    run = made(project, items=8, split={"development_share": 0.5})
    rows = [f"{item.item_id},anna,,,ALPHA,false" for item in run.items()]
    notes = import_labels(run, "csv", file_of(tmp_path, *rows))
    assert "labels.csv: 4 labels are of development items, left out" in notes[0]
    assert notes[-1] == "anna: 4 decisions taken in"


def test_a_file_that_the_study_cannot_read_is_refused_as_ever(run, tmp_path):
    with pytest.raises(DataError, match="1 of 1 rows label an item that is not in the items; first 'x' in line 2"):
        import_labels(run, "csv", file_of(tmp_path, "x,anna,,,ALPHA,false"))
    assert not run.path("labelling").exists()


def test_a_tie_where_the_study_has_none(project, tmp_path):
    run = made(project, pairwise_labels=["A", "B"])
    with pytest.raises(DataError, match="line 2: a tie; the study allows A, B, CANNOT JUDGE"):
        import_labels(run, "csv", file_of(tmp_path, "i00,anna,,,TIE,false"))


def test_a_full_disk_can_be_followed_by_the_same_import(run, tmp_path, monkeypatch):
    path = file_of(tmp_path, *(f"i0{number},anna,,,ALPHA,false" for number in range(4)))
    decide, calls = Journal.decide, []

    def two(self, *given, **values):
        calls.append(given)
        if len(calls) > 2:
            raise LabelError("the disk is full")
        return decide(self, *given, **values)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "decide", two)
        with pytest.raises(LabelError, match="the disk is full"):
            import_labels(run, "csv", path)
    assert import_labels(run, "csv", path) == ["anna: 2 decisions taken in, 2 were there already"]


@pytest.mark.parametrize("form", FORMATS)
def test_closed_labels_take_nothing_more(run, tmp_path, form):
    import_labels(run, "csv", file_of(tmp_path, "i00,anna,4,2,ALPHA,false"))
    closed = close_labels(run, gathered_labels(run).labels)
    with pytest.raises(LabelError, match="the labels of run small are closed"):
        import_labels(closed, form, tmp_path / "labels.csv")
    if form in ("xlsx", "sheet-csv"):
        with pytest.raises(LabelError, match="the labels of run small are closed"):
            export_labels(closed, form, tmp_path / "out", reviewers=["anna"])
    if form == "csv":
        (out,) = export_labels(closed, form, tmp_path / "out" / "mine.csv")
        assert out.read_bytes() == closed.path("human_labels.csv").read_bytes()
        closed.path("human_labels.csv").write_text("changed", encoding="utf-8")
        with pytest.raises(DriftError, match="was changed after freezing"):
            export_labels(closed, form, tmp_path / "out" / "mine.csv")


@pytest.mark.parametrize("form", ["csv", "label-studio", "argilla"])
def test_studies_whose_labels_are_not_made_of_pairs(project, tmp_path, form):
    run = made(project, labelling={"mode": "ranking"})
    for act in (import_labels,) if form == "csv" else (export_labels, import_labels):
        with pytest.raises(
            LabelError, match=r"goes? with human_review.labelling.mode pairs; run small has mode ranking"
        ):
            act(run, form, tmp_path / "out")


def test_studies_whose_labels_come_from_a_file(project, tmp_path):
    project.write_items(3)
    project.label_all(3)
    run = freeze("filed", project.study())
    (out,) = export_labels(run, "csv", tmp_path / "out")
    assert out.read_bytes() == run.path("human_labels.csv").read_bytes()
    for act, form in ((import_labels, "csv"), (export_labels, "argilla"), (export_labels, "xlsx")):
        with pytest.raises(LabelError, match=r"its protocol has no human_review.labelling"):
            act(run, form, tmp_path / "out")


def test_unknown_formats_and_needless_names(run, tmp_path):
    for act in (export_labels, import_labels):
        with pytest.raises(LabelError, match="format 'ods' of labels; allowed are csv, xlsx, sheet-csv, label-studio"):
            act(run, "ods", tmp_path)
    with pytest.raises(LabelError, match="export of argilla is for all reviewers at once"):
        export_labels(run, "argilla", tmp_path, reviewers=["anna"])
    with pytest.raises(LabelError, match="a sheet names its reviewer itself"):
        import_labels(run, "xlsx", tmp_path / "x.xlsx", reviewers=["a=b"])
    for option in ("anna", "=anna", "anna=", "a=../b"):
        with pytest.raises(LabelError):
            import_labels(run, "csv", tmp_path / "x.csv", reviewers=[option])
    with pytest.raises(LabelError, match="a is renamed twice"):
        import_labels(run, "csv", tmp_path / "x.csv", reviewers=["a=b", "a=c"])
