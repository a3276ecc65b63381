"""What is kept of original files, and pickles that must not be loaded."""

from __future__ import annotations

import json
import pickle
import pickletools
import struct
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgelab.errors import DataError
from judgelab.study.sources.reductions import (
    choices_of_pickle,
    figures_of_logs,
    scores_only,
    text_dict,
    without_instance,
)

ANSWER = {"idx": 83, "response_source": "s", "category": "writing", "instruction": "long", "gpt4_score": [3, 2, 3]}
LOG = """Total comparisons: 4960. Non exact matches:  4800
Extracted 4787 answers from the responses (extraction success rate 99.73%)
2751 out of 4787 answers are consistent. (A vs. B <-> B vs. A) The consistent rate is 57.47%
"""


class Armed:
    """Its pickle calls a function when it is loaded."""

    loaded = False

    def __reduce__(self):
        return (setattr, (Armed, "loaded", True))


def test_scores_only_drops_the_texts_and_keeps_the_order():
    original = json.dumps([{**ANSWER, "gpt4_feedback": ["a", "b", "c"]}], indent=4).encode()
    reduced = scores_only({"x.json": original})
    assert reduced == b'[{"idx": 83, "response_source": "s", "category": "writing", "gpt4_score": [3, 2, 3]}]'
    assert scores_only({"x.json": reduced}) == reduced


def test_without_instance_drops_the_text_alone():
    original = b'{"dataset": "n", "instances": [{"id": 1, "instance": "long", "annotations": {"m": 4, "k": 4.0}}]}'
    reduced = without_instance({"x.json": original})
    assert reduced == b'{"dataset": "n", "instances": [{"id": 1, "annotations": {"m": 4, "k": 4.0}}]}'
    assert without_instance({"x.json": reduced}) == reduced


def test_a_choice_is_the_first_that_the_reply_states():
    replies = {
        "81;x;y": "[[A]] is better than [[B]]",
        "81;y;x": "Both are fine. [[C]]",
        "82;x;y": "I cannot say: [A]",
        "82;y;x": "[[D]]",
        "83;x;y": None,
        "83;y;x": "EM",
    }
    reduced = choices_of_pickle({"tmp.pkl": pickle.dumps(replies)})
    assert reduced == b"key,choice\r\n81;x;y,A\r\n81;y;x,C\r\n82;x;y,\r\n82;y;x,\r\n83;x;y,\r\n"


def test_the_figures_of_logs_are_those_that_are_printed():
    reduced = figures_of_logs({"data/MTBench_data_record0_gemini-pro_3/log.txt": LOG.encode()})
    assert reduced == (b"file,extracted,consistent,of,rate_percent\r\nMTBench_gemini-pro.csv,4787,2751,4787,57.47\r\n")
    with pytest.raises(DataError, match=r"x_record0_m_3/log\.txt: the log does not print"):
        figures_of_logs({"x_record0_m_3/log.txt": b"Traceback"})


@pytest.mark.parametrize(
    ("reduce", "content", "message"),
    [
        (scores_only, b"{", "x: not valid JSON"),
        (scores_only, b"{}", "a list of objects is needed"),
        (scores_only, b'[{"idx": 1}]', "1 of 1 entries lack one of .*; first in entry 1"),
        (without_instance, b"[]", "an object with a list of instances is needed"),
        (without_instance, b'{"instances": [1]}', "an object with a list of instances is needed"),
        (without_instance, b"[" * 100_000, "not valid JSON"),
    ],
)
def test_an_original_of_another_form_is_refused(reduce, content, message):
    with pytest.raises(DataError, match=message):
        reduce({"x": content})


# Pickles


@given(
    st.dictionaries(st.text(), st.text() | st.none()),
    st.sampled_from(range(pickle.HIGHEST_PROTOCOL + 1)),
    st.booleans(),
)
def test_a_dictionary_of_text_is_read_in_every_protocol(replies, protocol, optimised):
    content = pickle.dumps(replies, protocol=protocol)
    assert text_dict(pickletools.optimize(content) if optimised else content, "x") == replies


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "hidden",
    [Armed(), {"k": Armed()}, OrderedDict(k="v"), print, pickle.PickleBuffer],
    ids=["object", "dict", "ordered", "print", "buffer"],
)
def test_no_pickle_imports_or_calls(hidden, protocol):
    with pytest.raises(DataError, match="is not allowed; nothing of it was loaded"):
        text_dict(pickle.dumps(hidden, protocol=protocol), "x")
    assert not Armed.loaded


def nested(depth):
    return b"\x80\x04" + b"}X\x01\x00\x00\x00k" * depth + b"}" + b"s" * depth + b"."


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a pickle"),
        (b"<html>404</html>", "not a pickle|not allowed"),
        (pickle.dumps({"k": "v"})[:-3], "not a pickle"),
        (pickle.dumps({"k": "v"}) + b"more", "4 bytes after the pickle's end"),
        (pickle.dumps(["k"]), "EMPTY_LIST at byte .* is not allowed"),
        (pickle.dumps("text"), "a pickle of str; a dictionary is needed"),
        (pickle.dumps({"k": 1}), "BININT1 at byte .* is not allowed"),
        (pickle.dumps({"k": b"v"}), "is not allowed"),
        (pickle.dumps({None: "v"}), "1 of 1 entries are not text; first None"),
        (nested(1000), "code 4, EMPTY_DICT at byte .* is not allowed"),
        # a memo index of 2**31 would reserve gigabytes
        (b"\x80\x02}r" + struct.pack("<I", 2**31) + b".", "LONG_BINPUT at byte 3, is not allowed"),
        (b"\x80\x04s.", "not a pickle that can be read"),
        (b"\x80\x04h\x07.", "not a pickle that can be read"),
        (b"\x80\x04I" + b"9" * 10_000 + b"\n.", "not a pickle"),
    ],
)
def test_what_is_more_or_less_than_a_dictionary_of_text_is_refused(content, message):
    with pytest.raises(DataError, match=message):
        text_dict(content, "x")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_dictionary_of_text_or_an_error(content):
    try:
        found = text_dict(content, "x")
    except DataError:
        return
    assert isinstance(found, dict)


def test_a_pickle_larger_than_the_limit_is_not_looked_at(monkeypatch):
    monkeypatch.setattr("judgelab.study.sources.reductions.LARGEST_PICKLE", 10)
    with pytest.raises(DataError, match="at most 10 are read"):
        text_dict(pickle.dumps({"key": "value"}), "x")
