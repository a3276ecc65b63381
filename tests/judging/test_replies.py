"""Replies: a verdict only where the contract is met, and every other reply with its reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgelab.judging.replies import REASON_CODES, REASONS, contract_for

JUDGES = [{"name": "coin", "kind": "control", "rule": "coin"}]
A = '{"winner": "A", "confidence": "high", "reason_codes": ["SAFER"]}'
B = '{"winner": "B", "confidence": "low", "reason_codes": []}'
TIE = '{"winner": "TIE", "confidence": "medium", "reason_codes": []}'
D = '{"correctness": 4, "clarity": 2, "critical_error": false, "reason_codes": []}'


@pytest.fixture(scope="module")
def pairwise(study_of):
    return contract_for(study_of(JUDGES), "pairwise")


@pytest.fixture(scope="module")
def direct(study_of):
    return contract_for(study_of(JUDGES), "direct")


PAIRWISE = {
    "bare": (A, "A"),
    "tie": (TIE, "TIE"),
    "spaces around": (f"\n\n  {B}\t\r\n", "B"),
    "fenced as json": (f"```json\n{A}\n```", "A"),
    "fenced without a language": (f"```\n{B}\n```", "B"),
    "over several lines": (json.dumps(json.loads(A), indent=2), "A"),
    "keys in another order": ('{"reason_codes": [], "confidence": "low", "winner": "B"}', "B"),
    "prose before": (f"Having read both, I say:\n{B}", "B"),
    "prose after": (f"{A}\nI hope that this helps.", "A"),
    "prose that names the other": (f"Answer B, [[B]], is worse. {A}", "A"),
    "braces in the prose before": (f"Over the set {{x, y}} of answers: {A}", "A"),
    "a lone brace in the prose before": (f"I use {{ for objects. {A}", "A"),
    "braces in the prose after": (f"{A} Here {{x}} is a set.", "A"),
    "a draft with another verdict": (f"<think>First {B} ... no.</think>{A}", "A"),
    "two drafts": (f"<think>{B}</think> hm <THINK>{TIE}</THINK> {A}", "A"),
    "a draft without its opening tag": (f"Perhaps {B}\n</think>\n{A}", "A"),
    "only a draft": (f"<think>{A}</think>", "no_json"),
    "a draft that never ends": (f"<think>Perhaps {A}", "no_json"),
    "a verdict before an unended draft": (f"{A}<think>or {B}", "A"),
    "two equal verdicts": (f"{A}\n{A}", "A"),
    "two that agree on the winner": (f'{A} {{"winner": "A", "confidence": "low", "reason_codes": []}}', "A"),
    "the form repeated, then a verdict": (
        f'{{"winner": "<A|B|TIE>", "confidence": "<low|medium|high>", "reason_codes": ["<CODE>"]}} {A}',
        "A",
    ),
    "A then B": (f"{A}\n{B}", "contradicting_verdicts"),
    "B then A": (f"{B}\n{A}", "contradicting_verdicts"),
    "A then TIE": (f"{A} {TIE}", "contradicting_verdicts"),
    "A, B, A": (f"{A} {B} {A}", "contradicting_verdicts"),
    "a label in small letters": (A.replace('"A"', '"a"'), "A"),
    "tie in small letters": (TIE.replace("TIE", " tie "), "TIE"),
    "confidence in capitals": (A.replace("high", "HIGH"), "A"),
    "a label that is not offered": (A.replace('"A"', '"C"'), "label_not_offered"),
    "a longer label": (A.replace('"A"', '"A\\n"'), "A"),
    "Answer A": (A.replace('"A"', '"Answer A"'), "label_not_offered"),
    "both labels": (A.replace('"A"', '"A|B"'), "label_not_offered"),
    "confidence that is not offered": (A.replace("high", "sure"), "label_not_offered"),
    "confidence as a number": (A.replace('"high"', "0.9"), "wrong_type"),
    "winner null": (A.replace('"A"', "null"), "wrong_type"),
    "winner a list": (A.replace('"A"', '["A"]'), "wrong_type"),
    "no confidence": ('{"winner": "A", "reason_codes": []}', "missing_key"),
    "no winner": ('{"confidence": "low", "reason_codes": []}', "missing_key"),
    "no reason codes": ('{"winner": "A", "confidence": "low"}', "missing_key"),
    "empty object": ("{}", "missing_key"),
    "an extra key": (A.replace("{", '{"note": "x", ', 1), "unknown_key"),
    "reason codes as text": (A.replace('["SAFER"]', '"SAFER"'), "wrong_type"),
    "reason codes as numbers": (A.replace('["SAFER"]', "[1]"), "wrong_type"),
    "a key twice": (A.replace("{", '{"winner": "B", ', 1), "no_json"),
    "single quotes": (A.replace('"', "'"), "no_json"),
    "broken off": (A[:30], "truncated_json"),
    "broken off at once": ("{", "truncated_json"),
    "broken off after a verdict": (f"{A}\n{B[:20]}", "truncated_json"),
    "a verdict inside an object that breaks off": (f'{{"draft": {B}, "winner": "A", "conf', "truncated_json"),
    "a verdict inside an object that is no JSON": (f'{{"draft": {B}, "winner": A}}', "no_json"),
    "a verdict quoted inside a text": (json.dumps({"winner": A, "confidence": "low", "reason_codes": []}),
                                       "label_not_offered"),
    "a verdict one level down": (f'{{"verdict": {A}}}', "missing_key"),
    "a list with one verdict": (f"[{A}]", "A"),
    "a list with two": (f"[{A}, {B}]", "contradicting_verdicts"),
    "a list of texts": ('["A"]', "no_json"),
    "a text": ('"A"', "no_json"),
    "empty": ("", "empty_reply"),
    "blank": (" \n\t", "empty_reply"),
    "nothing": (None, "empty_reply"),
    "a refusal": ("I'm sorry, but I cannot compare these answers.", "no_json"),
    "brackets": ("My final verdict is [[A]].", "no_json"),
    "scores in place of a winner": (D, "missing_key"),
    "half a surrogate pair": (A.replace("SAFER", "\\ud83d"), "wrong_type"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRWISE)
def test_pairwise_reply(pairwise, name):
    text, expected = PAIRWISE[name]
    reading = pairwise.read(text)
    if expected in ("A", "B", "TIE"):
        assert reading.verdict is not None, reading
        assert reading.verdict["winner"] == expected
        assert reading.reason is None
    else:
        assert (reading.verdict, reading.reason) == (None, expected)
        assert expected in REASONS


DIRECT = {
    "bare": (D, None),
    "keys in another order": ('{"reason_codes": [], "critical_error": false, "clarity": 2, "correctness": 4}', None),
    "fenced, with prose": (f"The scores:\n```json\n{D}\n```\nDone.", None),
    "the same scores twice": (D + D.replace("[]", '["UNSAFE"]'), None),
    "other scores": (f"{D} {D.replace('4', '5')}", "contradicting_verdicts"),
    "lowest and highest": (D.replace("4", "1").replace("2", "5"), None),
    "below the scale": (D.replace("4", "0"), "score_out_of_range"),
    "above the scale": (D.replace("4", "6"), "score_out_of_range"),
    "negative": (D.replace("4", "-4"), "score_out_of_range"),
    "huge": (D.replace("4", "9" * 400), "score_out_of_range"),
    "true as a score": (D.replace("4", "true"), "wrong_type"),
    "a float": (D.replace("4", "4.5"), "wrong_type"),
    "a float that is whole": (D.replace("4", "4.0"), "wrong_type"),
    "a text": (D.replace("4", '"4"'), "wrong_type"),
    "null": (D.replace("4", "null"), "wrong_type"),
    "NaN": (D.replace("4", "NaN"), "no_json"),
    "Infinity": (D.replace("4", "Infinity"), "no_json"),
    "a list": (D.replace("4", "[4]"), "wrong_type"),
    "nested": (f'{{"scores": {D}}}', "missing_key"),
    "one criterion missing": ('{"correctness": 4, "critical_error": false, "reason_codes": []}', "missing_key"),
    "a criterion too many": (D.replace("{", '{"wit": 3, '), "unknown_key"),
    "critical_error as a number": (D.replace("false", "0"), "wrong_type"),
    "critical_error as a text": (D.replace("false", '"false"'), "wrong_type"),
    "a criterion twice": (D.replace("{", '{"clarity": 5, '), "no_json"),
    "the word for a number": (D.replace("4", "four"), "no_json"),
    "a winner in place of scores": (A, "missing_key"),
}


@pytest.mark.parametrize("name", DIRECT)
def test_direct_reply(direct, name):
    text, reason = DIRECT[name]
    reading = direct.read(text)
    assert reading.reason == reason
    assert reading.usable == (reason is None)


def test_direct_scores_are_kept(direct):
    assert direct.read(D).verdict == {"correctness": 4, "clarity": 2, "critical_error": False, "reason_codes": []}


def test_tie_only_where_it_is_offered(study_of):
    contract = contract_for(study_of(JUDGES, pairwise_labels=["A", "B"]), "pairwise")
    assert contract.read(TIE).reason == "label_not_offered"
    assert contract.read(A).usable
    assert contract.schema["properties"]["winner"] == {"enum": ["A", "B"]}


@pytest.mark.parametrize("strategy", ["direct", "pairwise"])
def test_the_schema_says_what_the_contract_reads(study_of, strategy):
    contract = contract_for(study_of(JUDGES), strategy)
    properties = contract.schema["properties"]
    first = {name: rule.get("enum", [False])[0] for name, rule in properties.items()}
    first["reason_codes"] = list(REASON_CODES[strategy])[:2]
    assert contract.read(json.dumps(first)).usable
    assert contract.schema["required"] == list(properties)
    assert contract.schema["additionalProperties"] is False


@pytest.mark.parametrize("depth", [5_000, 50_000])
def test_deep_nesting_is_no_crash(pairwise, depth):
    assert pairwise.read('{"a":' * depth).reason == "truncated_json"
    assert pairwise.read('{"a":' * depth + "1" + "}" * depth).reason in ("no_json", "missing_key")
    assert pairwise.read("{" * depth).reason in ("no_json", "truncated_json")


@given(st.text())
def test_random_text_holds_no_verdict(pairwise, direct, text):
    # a verdict is an object with the key "winner" or the criteria; random text does not spell them
    assert not pairwise.read(text).usable
    assert not direct.read(text).usable


SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.sampled_from(["A", "B", "TIE", "low"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
KEYS = st.sampled_from(["winner", "confidence", "reason_codes", "correctness", "clarity", "critical_error", "x"])


@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_json_near_the_contract_is_a_verdict_only_if_it_meets_it(pairwise, direct, value):
    text = json.dumps(value)
    codes = isinstance(value.get("reason_codes"), list) and all(isinstance(c, str) for c in value["reason_codes"])
    is_pair = set(value) == {"winner", "confidence", "reason_codes"}
    assert pairwise.read(text).usable == (
        is_pair and codes and value["winner"] in ("A", "B", "TIE") and value["confidence"] == "low"
    )
    scores = [value.get(name) for name in ("correctness", "clarity")]
    is_direct = set(value) == {"correctness", "clarity", "critical_error", "reason_codes"}
    assert direct.read(text).usable == (
        is_direct and codes and isinstance(value["critical_error"], bool)
        and all(type(score) is int and 1 <= score <= 5 for score in scores)
    )  # fmt: skip


PROSE = st.text().filter(lambda text: not set("{}<") & set(text))


@given(PROSE, PROSE, st.sampled_from([A, B, TIE]))
def test_prose_without_braces_changes_nothing(pairwise, before, after, verdict):
    assert pairwise.read(before + verdict + after) == pairwise.read(verdict)


def test_a_parsed_verdict_is_checked_and_the_rest_stays_unknown(pairwise, direct):
    assert pairwise.check_parsed({"winner": "B"}).verdict == {
        "winner": "B", "confidence": None, "reason_codes": None,
    }  # fmt: skip
    assert pairwise.check_parsed({"winner": "C"}).reason == "label_not_offered"
    assert direct.check_parsed({"correctness": 1, "clarity": 5}).verdict == {
        "correctness": 1, "clarity": 5, "critical_error": None, "reason_codes": None,
    }  # fmt: skip
    assert direct.check_parsed({"correctness": 1}).reason == "missing_key"
    assert direct.check_parsed({"correctness": 1, "clarity": 9}).reason == "score_out_of_range"
