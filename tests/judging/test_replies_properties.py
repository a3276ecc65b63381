"""Replies under random text, random edits and random bytes; and the parser's work, counted in characters."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgelab.judging.replies import contract_for
from judgelab.judging.reply_text import find_forms, find_objects, own_part

JUDGES = [{"name": "coin", "kind": "control", "rule": "coin"}]
VERDICTS = {
    label: json.dumps({"winner": label, "confidence": "high", "reason_codes": ["SAFER"]}) for label in ("A", "B", "TIE")
}
SCORES = '{"correctness": 4, "clarity": 2, "critical_error": false, "reason_codes": []}'
LABELS = st.sampled_from(list(VERDICTS))


@pytest.fixture(scope="module")
def contracts(study_of):
    study = study_of(JUDGES)
    return {
        "pairwise": contract_for(study, "pairwise"),
        "text": contract_for(study, "pairwise", "text"),
        "direct": contract_for(study, "direct"),
    }


def winner(reading):
    return reading.verdict["winner"] if reading.usable else None


# Prose as the property of the protocol has it: any characters but braces and what opens or closes a draft.
PROSE = st.text().filter(lambda text: not set("{}｛｝<[◁") & set(text))


@given(PROSE, PROSE, LABELS)
def test_prose_changes_nothing(contracts, before, after, label):
    for name in ("pairwise", "text"):
        assert contracts[name].read(before + VERDICTS[label] + after) == contracts[name].read(VERDICTS[label])
    assert contracts["direct"].read(before + SCORES + after) == contracts["direct"].read(SCORES)


# Prose that tries: all the marks a verdict is made of, ends of drafts and fences, but no label.
PIECES = [
    *"{}｛｝[]\"'“”’:,\\`\n 4", "> ", "```json\n", "<think>", "</think>", "<<<0a1b2c3d", "0a1b2c3d>>>", '{"winner": ',
    "winner", '"confidence": "low"', '"reason_codes": []', "{}", "null", "Winner: ", "[[", "Answer one says: ",
    "I cannot", '{"x": 1}', "\\u0041",
]  # fmt: skip
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@given(HOSTILE, HOSTILE, LABELS)
def test_hostile_prose_never_gives_another_verdict(contracts, before, after, label):
    reply = before + VERDICTS[label] + after
    for name in ("pairwise", "text"):
        for answers in ((), (after, before), (reply, VERDICTS["A"])):
            assert winner(contracts[name].read(reply, answers=answers)) in (label, None)


@given(st.text())
def test_random_text_gives_no_verdict(contracts, text):
    # a verdict is an object with the key "winner" or the criteria; random text does not spell them
    assert not contracts["pairwise"].read(text).usable
    assert not contracts["direct"].read(text).usable


@given(st.binary(max_size=400), st.sampled_from(["utf-8", "latin-1", "utf-16-le"]))
def test_random_bytes_give_no_verdict(contracts, data, encoding):
    text = data.decode(encoding, errors="replace")
    assert not any(contracts[name].read(text).usable for name in ("pairwise", "direct"))  # "[[a]]" is five bytes


@given(
    st.sampled_from([*VERDICTS.values(), SCORES]), st.integers(0, 99), st.integers(0, 3), st.text(max_size=2), st.data()
)
def test_one_edit_gives_no_unrelated_verdict(contracts, reply, place, length, put, data):
    place %= len(reply)
    edited = reply[:place] + put + reply[place + length :]
    strategy = "direct" if reply == SCORES else "pairwise"
    reading = contracts[strategy].read(edited)
    if reading.usable:  # the same, or what was put in says so literally
        given_values = json.loads(reply).items()
        changed = {name: reading.verdict[name] for name, value in given_values if reading.verdict[name] != value}
        changed.pop("reason_codes", None)
        assert all(str(value).lower() in put.lower() for value in changed.values())


@given(st.integers(0, 200), st.sampled_from([*VERDICTS.values(), SCORES]))
def test_a_reply_that_breaks_off_gives_no_verdict(contracts, length, reply):
    cut = reply[: length % len(reply)]
    contract = contracts["direct" if reply == SCORES else "pairwise"]
    assert contract.read(cut).reason == ("truncated_json" if cut else "empty_reply")


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.sampled_from(["A", "B", "TIE", "low"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
KEYS = st.sampled_from(["winner", "confidence", "reason_codes", "correctness", "clarity", "critical_error", "x"])


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_json_near_the_contract_is_a_verdict_only_if_it_meets_it(contracts, value):
    text = json.dumps(value)
    codes = isinstance(value.get("reason_codes"), list) and all(isinstance(c, str) for c in value["reason_codes"])
    is_pair = set(value) == {"winner", "confidence", "reason_codes"}
    assert contracts["pairwise"].read(text).usable == (
        is_pair and codes and value["winner"] in ("A", "B", "TIE") and value["confidence"] == "low"
    )
    scores = [value.get(name) for name in ("correctness", "clarity")]
    is_direct = set(value) == {"correctness", "clarity", "critical_error", "reason_codes"}
    assert contracts["direct"].read(text).usable == (
        is_direct and codes and isinstance(value["critical_error"], bool)
        and all(type(score) is int and 1 <= score <= 5 for score in scores)
    )  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.booleans(), st.sampled_from([None, 2]))
def test_all_of_json_is_read_as_json_reads_it(value, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    (found,) = find_objects(text).objects
    assert (found.value, found.start, found.end) == (json.loads(text), 0, len(text))


UNITS = [
    "{", "}", '{"', '{"a":', '{"a"}', "{}", '{"a":[', "{ ", "{'", "{'\\' ", '{"\\"', '{"a":"', "“", "{“", "｛「", "'\\",
    "{'a': 1, ", '{"a": {"b": ', "\n", " ", "<think>", "</think>", "Winner: ", "the ", "[[", "* ", "<<<0a1b2c3d ",
    '{"winner": "A", "confidence": "low", "reason_codes": []}',
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_work_grows_with_the_length_and_no_faster(unit):
    text = (unit * 1_000_000)[: 1_000_000 if len(unit) == 1 else 60_000]
    scan = find_objects(text, *own_part(text))
    assert scan.examined <= 3 * len(text)
    assert sum(form.end - form.start for form in find_forms(text, 0, len(text), scan.objects)) <= len(text)


@pytest.mark.parametrize("unit", ['{"a":', "{", '{"a"}', "<think>{", '{"winner": "A"} '])
def test_the_parser_takes_each_token_once(monkeypatch, unit):
    """Tokens taken for n and for 2 n units: twice as many, not four times."""
    from judgelab.judging import reply_text

    class Counting:
        taken = 0

        def match(self, *place):
            Counting.taken += 1
            return tokens.match(*place)

    tokens = reply_text._TOKEN
    monkeypatch.setattr(reply_text, "_TOKEN", Counting())
    counts = []
    for number in (2_000, 4_000):
        Counting.taken = 0
        find_objects(unit * number)
        counts.append(Counting.taken)
    assert counts[1] <= 2 * counts[0] + 10


@pytest.mark.parametrize("count", [99, 100, 101, 3_000])
def test_many_verdicts_are_settled_as_few_are(contracts, count):
    contract, a, b = contracts["pairwise"], VERDICTS["A"], VERDICTS["B"]
    answers = (f"copy {a} now", "two")
    assert winner(contract.read(a * count, answers=answers)) == "A"
    assert contract.read(b + a * count, answers=answers).reason == "contradicting_verdicts"
    assert contract.read(f'Answer A says "{a}". ' * count, answers=answers).reason == "quotes_candidate"


@pytest.mark.parametrize("depth", [19, 5_000, 50_000])
def test_deep_nesting_is_no_crash(contracts, depth):
    pairwise = contracts["pairwise"]
    assert pairwise.read('{"a":' * depth).reason == "truncated_json"
    assert pairwise.read('{"a":' * depth + "1" + "}" * depth).reason == ("missing_key" if depth < 20 else "no_json")
    assert pairwise.read("{" * depth).reason == "truncated_json"
    assert pairwise.read('{"a":' * depth + "1" + "}" * depth + VERDICTS["B"]).usable
