"""The key to the training items."""

from __future__ import annotations

import re

import pytest

from judgelab.errors import DataError
from judgelab.study.items import Item
from judgelab.study.training_key import Expected, read_training_key

AB = ("ALPHA", "BETA")
ITEMS = [Item(f"d{n}", "t", "", "c", {}, "", split="development") for n in range(9)] + [
    Item("e0", "t", "", "c", {}, "")
]


@pytest.fixture
def key(project):
    """Write a key and read it."""

    def read(text, **changes):
        (project.root / "params" / "small" / "key.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
        labelling = {"training_key": "params/small/key.csv"}
        study = {"human_labels": {"provenance": "human"}, "human_review": {"labelling": labelling}, **changes}
        return read_training_key(project.study(**study), ITEMS)

    return read


def test_a_key_of_two_systems(key):
    text = '\ufeffitem_id,preference,explanation,by\r\nd0,ALPHA,"It says, ""yes"".\nTwice.",x\r\nd1,TIE,,\r\n'
    assert key(text) == {
        ("d0", AB): Expected("ALPHA", 'It says, "yes".\nTwice.'),
        ("d1", AB): Expected("TIE", ""),
    }


def test_a_key_of_three_systems_names_the_pair_in_either_order(key):
    text = "item_id,system_x,system_y,preference,explanation\nd0,GAMMA,ALPHA,GAMMA,why\nd0,ALPHA,BETA,TIE,\n"
    systems = {"systems": {"ALPHA": {}, "BETA": {}, "GAMMA": {}}}
    assert key(text, **systems) == {
        ("d0", ("ALPHA", "GAMMA")): Expected("GAMMA", "why"),
        ("d0", AB): Expected("TIE", ""),
    }
    with pytest.raises(DataError, match=re.escape("2 of 5 needed columns are missing: system_x, system_y")):
        key("item_id,preference,explanation\nd0,ALPHA,\n", **systems)
    wrong = ["d1,ALPHA,ALPHA,ALPHA,", "d1,ALPHA,OTHER,ALPHA,", "d1,ALPHA,GAMMA,BETA,", "d0,BETA,ALPHA,BETA,"]
    with pytest.raises(DataError) as told:
        key("\n".join([text.strip(), *wrong]), **systems)
    assert str(told.value).split(": ", 1)[1] == (
        "4 of 6 lines cannot be used: line 4: system 'ALPHA' stands against itself; "
        "line 5: 'OTHER' is no system of this study; allowed are ALPHA, BETA, GAMMA; "
        "line 6: preference is 'BETA'; allowed are ALPHA, GAMMA, TIE; "
        "line 7: item 'd0' with this pair stands in line 3 already"
    )


def test_every_bad_line_is_told(key):
    rows = ["none,ALPHA,", "e0,ALPHA,", "d0,alpha,", "d1,,", "d2,BETA,", "d2,BETA,", ",ALPHA,", "d3,tie,"]
    with pytest.raises(DataError) as told:
        key("\n".join(["item_id,preference,explanation", *rows]))
    assert str(told.value) == (
        "params/small/key.csv: 7 of 8 lines cannot be used: line 2: 'none' is no item of this study; "
        "line 3: item 'e0' is an evaluation item; reviewers train on development items only; "
        "line 4: preference is 'alpha'; allowed are ALPHA, BETA, TIE; "
        "line 5: preference is ''; allowed are ALPHA, BETA, TIE; "
        "line 7: item 'd2' with this pair stands in line 6 already; and 2 more"
    )


def test_a_tie_that_nobody_can_choose_is_none(key):
    with pytest.raises(DataError, match=r"preference is 'TIE'; allowed are ALPHA, BETA$"):
        key("item_id,preference,explanation\nd0,TIE,\n", pairwise_labels=["A", "B"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file is empty"),
        ("item_id,preference\nd0,ALPHA\n", "1 of 3 needed columns are missing: explanation"),
        ("item_id,preference,explanation\nd0,ALPHA\n", "1 of 1 rows do not have the 3 fields"),
        (b"item_id,preference,explanation\nd0,ALPHA,caf\xe9\n", "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read(key, text, told):
    with pytest.raises(DataError, match=told):
        key(text)


def test_no_key_and_an_empty_key_expect_nothing(key, project):
    assert key("item_id,preference,explanation\n") == {}
    assert read_training_key(project.study(), ITEMS) == {}
    study = {"human_labels": {"provenance": "human"}, "human_review": {"labelling": {}}}
    assert read_training_key(project.study(**study), ITEMS) == {}
    absent = {**study, "human_review": {"labelling": {"training_key": "params/none.csv"}}}
    with pytest.raises(DataError, match="no such file"):
        read_training_key(project.study(**absent), ITEMS)
