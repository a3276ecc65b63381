"""Items: both layouts, every reason for leaving a line out, and what a run freezes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgelab.errors import DataError, JudgelabError
from judgelab.study.items import comparisons, items_from_records, items_to_records, pairs, read_items
from judgelab.study.lines import REASONS
from judgelab.study.protocol import parse_study

THREE = {"red": {}, "GREEN": {}, "blue": {}}


def reasons(project, lines, **items):
    """line -> reason of a file with the given lines beside enough good ones."""
    good = [json.dumps(project.item(number)) for number in range(50, 50 + 9 * len(lines))]
    project.write_lines([*lines, *good])
    found = read_items(project.study(items={"path": "params/small/items.jsonl", **items}))
    assert len(found.items) + len(found.excluded) == found.n_lines == 10 * len(lines)
    return dict(zip(found.excluded["line"], found.excluded["reason"], strict=True))


def test_two_system_layout(project):
    project.write_items([project.item(1, alpha_length_words=999, generator="g1")])
    (item,) = read_items(project.study()).items
    assert item.answers == {"ALPHA": "Yes, 1 times.", "BETA": "No, and 1 is not a number that I would try again."}
    assert item.words == {"ALPHA": 3, "BETA": 12}
    assert item.metadata == {"generator": "g1"}
    assert item.category == "odd"
    assert item.split == "evaluation"
    assert item.first[("ALPHA", "BETA")] in ("ALPHA", "BETA")


def test_any_number_of_systems(project):
    answers = {"blue": "b b b", "red": "r", "GREEN": "g g"}
    project.write_items([{"item_id": "x", "task": "t", "answers": answers}])
    study = project.study(systems=THREE)
    (item,) = read_items(study).items
    assert list(item.answers) == ["red", "GREEN", "blue"]
    assert item.category == "uncategorised"
    assert item.reference_context == ""
    frame = comparisons([item], study)
    assert frame[["system_x", "system_y", "words_x", "words_y"]].to_numpy().tolist() == [
        ["red", "GREEN", 1, 2],
        ["red", "blue", 1, 3],
        ["GREEN", "blue", 2, 3],
    ]
    assert all(
        first in (x, y) for first, x, y in zip(frame["first"], frame["system_x"], frame["system_y"], strict=True)
    )


def test_pairs_are_in_protocol_order():
    assert pairs(["b", "a", "c"]) == [("b", "a"), ("b", "c"), ("a", "c")]


def test_bom_and_crlf(project):
    lines = [json.dumps(project.item(number)).encode() for number in (1, 2)]
    project.items_path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines) + b"\r\n")
    assert [item.item_id for item in read_items(project.study()).items] == ["i01", "i02"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"item_id": None}, "missing_id"),
        ({"item_id": ""}, "missing_id"),
        ({"item_id": ["x"]}, "wrong_type"),
        ({"item_id": " x"}, "wrong_type"),
        ({"item_id": True}, "wrong_type"),
        ({"task": None}, "missing_task"),
        ({"task": " \n"}, "missing_task"),
        ({"task": 3}, "wrong_type"),
        ({"reference_context": ["a"]}, "wrong_type"),
        ({"category": 4}, "wrong_type"),
        ({"answer_beta": None}, "missing_answer"),
        ({"answer_beta": "\t"}, "empty_answer"),
        ({"answer_beta": 5}, "wrong_type"),
        ({"answers": {"ALPHA": "a", "BETA": "b"}}, "wrong_type"),
    ],
)
def test_a_line_is_left_out_with_its_reason(project, change, reason):
    assert reasons(project, [json.dumps(project.item(1, **change))]) == {1: reason}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"item_id": "x", "task": "t"', "broken_json"),
        ('{"item_id": "x", "item_id": "y"}', "broken_json"),
        ('{"item_id": NaN}', "broken_json"),
        ('{"item_id": "x", "task": "\\ud83d"}', "broken_json"),
        ("[" * 100_000, "broken_json"),
        ("9" * 5000, "broken_json"),
        ("[1, 2]", "not_an_object"),
        ('"text"', "not_an_object"),
        ("null", "not_an_object"),
        ('{"item_id": "x", "task": "t", "answers": {"ALPHA": "a", "GAMMA": "c"}}', "unknown_system"),
        ('{"item_id": "x", "task": "t", "answers": {"ALPHA": "a"}}', "missing_answer"),
        ('{"item_id": "x", "task": "t", "answers": ["a", "b"]}', "wrong_type"),
        ('{"item_id": "café"}'.encode("latin-1"), "not_utf8"),
    ],
)
def test_a_broken_line_is_left_out_with_its_reason(project, line, reason):
    assert reasons(project, [line]) == {1: reason}


def test_every_reason_is_explained(project):
    assert all(name.islower() and text for name, text in REASONS.items())
    assert reasons(project, ["{"])[1] in REASONS


def test_items_of_another_task_version(project):
    old, new = project.item(1, task_version="v1"), project.item(1, task_version="v2", task="A newer question?")
    project.write_items([old, new, project.item(2)])
    found = read_items(project.study(items={"path": "params/small/items.jsonl", "task_version": "v2",
                                            "max_excluded_share": 0.9}))  # fmt: skip
    # the two versions of i01 are no duplicates: one of them is not of this study
    assert [item.task for item in found.items] == ["A newer question?"]
    assert found.excluded["detail"].tolist() == ["'v1', not 'v2'", "None, not 'v2'"]


def test_differing_lines_of_one_id_are_all_left_out(project):
    a, b = project.item(1), project.item(1, task="Another question?")
    assert reasons(project, [json.dumps(a), json.dumps(b)]) == {1: "duplicate_id", 2: "duplicate_id"}


def test_of_equal_lines_the_first_is_kept(project):
    line = json.dumps(project.item(1))
    assert reasons(project, [line, line, line]) == {2: "duplicate_id", 3: "duplicate_id"}


def test_a_broken_line_does_not_spoil_the_good_one_of_its_id(project):
    line = json.dumps(project.item(1))
    assert reasons(project, [line[:-20], line]) == {1: "broken_json"}


def test_a_huge_answer_is_left_out_with_count_and_limit(project):
    project.write_items([project.item(1, answer_alpha="x" * 1_000_000), *map(project.item, range(2, 9))])
    (row,) = read_items(project.study()).excluded.to_dict("records")
    assert row == {
        "line": 1,
        "item_id": "i01",
        "reason": "answer_too_long",
        "detail": "ALPHA's answer has 1000000 characters, the limit is 100000",
    }


def test_ten_percent_of_broken_lines_are_left_out_and_counted(project):
    lines = [json.dumps(project.item(number)) for number in range(100)]
    for number in range(0, 100, 10):
        lines[number] = lines[number][:30]
    project.write_lines(lines)
    found = read_items(project.study())
    assert len(found.items) == 90
    assert found.excluded["line"].tolist() == list(range(1, 101, 10))
    assert set(found.excluded["reason"]) == {"broken_json"}
    # the id stands before the break, and can be told
    assert found.excluded["item_id"].tolist() == [f"i{number:02d}" for number in range(0, 100, 10)]


def test_refuse_lists_counts_by_reason_and_first_line(project):
    project.write_lines([json.dumps(project.item(0)), "{", "[]", "{"])
    with pytest.raises(DataError) as caught:
        read_items(project.study(items={"path": "params/small/items.jsonl", "on_invalid": "refuse"}))
    told = str(caught.value)
    assert told.startswith("params/small/items.jsonl: 3 of 4 lines cannot be used (broken_json: 2, first in line 2: ")
    assert "; not_an_object: 1, first in line 3: list, an object is needed)" in told
    assert "items.on_invalid is refuse" in told


def test_too_large_a_share_is_refused(project):
    project.write_lines([*(json.dumps(project.item(number)) for number in range(7)), "{", "{"])
    with pytest.raises(DataError, match=r"2 of 9 lines cannot be used .*items\.max_excluded_share allows 20%"):
        read_items(project.study())


def test_no_item_left(project):
    project.write_lines(["{"])
    with pytest.raises(DataError, match="no item is left"):
        read_items(project.study(items={"path": "params/small/items.jsonl", "max_excluded_share": 1.0}))


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_an_empty_file_is_refused(project, content):
    project.items_path.write_bytes(content)
    with pytest.raises(DataError, match=r"params/small/items\.jsonl: the file is empty"):
        read_items(project.study())


def test_a_latin1_file_is_refused_when_most_lines_have_its_letters(project):
    project.write_lines(
        [json.dumps(project.item(n, task="café?"), ensure_ascii=False).encode("latin-1") for n in range(9)]
    )
    with pytest.raises(DataError, match=r"9 of 9 lines cannot be used \(not_utf8: 9, first in line 1: byte 0xe9"):
        read_items(project.study())


def test_another_name_for_the_item_id(project):
    record = {key: value for key, value in project.item(1).items() if key != "item_id"} | {"ticket": 17}
    project.write_items([record])
    (item,) = read_items(project.study(item_id_field="ticket")).items
    assert item.item_id == "17"


def test_limit_takes_a_seeded_sample(project):
    project.write_items(40)
    source = {"path": "params/small/items.jsonl", "limit": 10}
    found = read_items(project.study(items=source))
    again = read_items(project.study(items=source))
    other = read_items(project.study(items=source, random_seed=8))
    ids = [item.item_id for item in found.items]
    assert len(ids) == 10
    assert ids == sorted(ids) == [item.item_id for item in again.items]
    assert ids != [item.item_id for item in other.items]
    assert sorted([*ids, *found.not_sampled]) == [f"i{number:02d}" for number in range(40)]


def test_presentation_and_hash_do_not_depend_on_other_items_or_judges(project):
    project.write_items(12)
    judges = [{"name": "last", "kind": "control", "rule": "last"}]
    alone = {item.item_id: item for item in read_items(project.study()).items}
    project.write_items([project.item(number) for number in (11, 3, 5)])
    for item in read_items(project.study(judges=judges)).items:
        assert item.first == alone[item.item_id].first
        assert item.sha256 == alone[item.item_id].sha256


@pytest.mark.parametrize("key", ["item_id", "task", "reference_context", "answer_alpha", "answer_beta"])
def test_the_hash_covers_all_that_is_judged(project, key):
    project.write_items([project.item(1), project.item(2)])
    before = read_items(project.study()).items[0].sha256
    project.write_items([project.item(1, **{key: "changed"}), project.item(2)])
    assert read_items(project.study()).items[0].sha256 != before


def test_masks_are_applied_to_answers_only_and_counted(project):
    project.write_items([project.item(1, task="Who is Orca?", answer_alpha="ORCA here: orca, not orcas.")])
    found = read_items(project.study(blindness={"mask": {"Orca": "[the \\1 product]"}}))
    (item,) = found.items
    assert item.answers["ALPHA"] == "[the \\1 product] here: [the \\1 product], not orcas."
    assert item.task == "Who is Orca?"
    assert found.masked == {"Orca": 2}


def test_development_items(project):
    project.write_items(20)
    items = read_items(project.study(split={"development_share": 0.2})).items
    by_category = {name: [item.split for item in items if item.category == name] for name in ("even", "odd")}
    assert {name: splits.count("development") for name, splits in by_category.items()} == {"even": 2, "odd": 2}


def test_records_bring_the_same_items_back(project):
    project.write_items([{"item_id": "x", "task": "t", "answers": {"red": "r", "GREEN": "g", "blue": "b"}, "n": [1]}])
    items = read_items(project.study(systems=THREE)).items
    assert items_from_records(json.loads(json.dumps(items_to_records(items)))) == items


def test_the_demos_items_are_all_usable(monkeypatch, tmp_path):
    """The committed study: 32 items, none left out."""
    root = Path(__file__).parents[2]
    monkeypatch.setenv("JUDGELAB_ROOT", str(root))
    monkeypatch.setenv("JUDGELAB_OUTPUTS", str(tmp_path))
    found = read_items(_study_of("params/demo/items.jsonl"))
    assert (len(found.items), len(found.excluded)) == (32, 0)


@given(st.lists(st.binary(max_size=80) | st.text(max_size=40).map(str.encode), max_size=6).map(b"\n".join))
def test_reading_random_bytes_gives_items_or_an_error_of_ours(content):
    """No such bytes make an item, so every file of them must be refused, in our words."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGELAB_ROOT", folder)
        patch.setenv("JUDGELAB_OUTPUTS", folder)
        Path(folder, "items.jsonl").write_bytes(content)
        with pytest.raises(JudgelabError, match=r"items\.jsonl: "):
            read_items(_study_of("items.jsonl"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=60)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"item_id": st.text(max_size=2) | JSON, "task": st.text(max_size=3) | JSON},
            optional={"answer_alpha": st.text(max_size=3), "answer_beta": JSON, "answers": JSON, "category": JSON},
        ),
        min_size=1,
        max_size=6,
    )
)
def test_every_line_becomes_an_item_or_an_exclusion(records):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUDGELAB_ROOT", folder)
        patch.setenv("JUDGELAB_OUTPUTS", folder)
        good = {"item_id": "good one", "task": "t", "answer_alpha": "a", "answer_beta": "b"}
        lines = [json.dumps(record) for record in [*records, good]]
        Path(folder, "items.jsonl").write_text("\n".join(lines))
        found = read_items(_study_of("items.jsonl"))
        assert len(found.items) + len(found.excluded) == len(lines)
        assert found.excluded["reason"].isin(list(REASONS)).all()
        assert len({item.item_id for item in found.items}) == len(found.items)
        json.dumps(items_to_records(found.items), ensure_ascii=False, allow_nan=False).encode()


def _study_of(path):
    return parse_study(
        {
            "study_id": "s",
            "sampling_rule": "r",
            "items": {"path": path, "max_excluded_share": 1.0},
            "systems": {"ALPHA": {}, "BETA": {}},
            "rubric_version": "1",
            "direct_scale": {"criteria": ["c"]},
            "direct_tie_margin": 0,
            "random_seed": 1,
            "judges": [{"name": "coin", "kind": "control", "rule": "coin"}],
        }
    )
