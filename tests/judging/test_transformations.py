"""The bias battery's transformations: one thing changes, all else stays, and the same everywhere."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from itertools import zip_longest
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgelab.judging.transformations import TRANSFORMATIONS, transformed, words_added

ANSWER = (
    "Yes, you can return it within 30 days. Please don't use the old label, e.g. the one from your first parcel. "
    "Dr. Example's form (no. 12) is under https://shop.example/returns and takes two minutes! Is the box damaged? "
    "Then describe the damage with `returnCode` before sending anything."
)
FENCED = (
    "Run this.\n\n```python\nprint('hello there. General words here')\n\nvalue = another\n```\n\nThat should print it."
)
ODD = {
    "empty": "",
    "blank": " \n\t",
    "number": "42",
    "emoji": "👍🏽 🇦🇹 👨‍👩‍👧",
    "arabic": "نعم، يمكنك إرجاع المنتج خلال ثلاثين يوما. هل العلبة تالفة؟ اكتب إلينا قبل الإرسال.",
    "hebrew": "כן, אפשר להחזיר את המוצר. צריך לכתוב אלינו לפני המשלוח.",
    "chinese": "可以。请在三十天内退回。",
    "hindi": "हाँ, आप इसे वापस कर सकते हैं। कृपया पहले हमें लिखें।",
    "crlf": "First line here.\r\nSecond line there.\r\n\r\nAnother paragraph follows.\r\n",
    "html": "<p>Hello there, <b class='wide open'>dear customer</b>.</p>\n<pre>some code here</pre>",
    "fenced": FENCED,
    "unclosed": "Some words before.\n\n```\ncode without an ending\n\nmore code lines",
    "list": "Do this:\n\n1. Open the settings.\n2. Press the button.\n\n3. Wait.",
    "surrogate": "A lone \ud800 half of something broken.",
}

# Words, punctuation, layout and odd characters in any order: near enough to answers to reach every branch.
PIECES = st.sampled_from(
    re.findall(
        r"[^ ]+",
        "parcel Settings don't you’ll e.g. Dr. end. Really? wow! (see p. 12 no. 3) `code` ``` ~~~ **bold** - * # > | "
        "1. 2) iPhone http://a.b/c x_y É naïve שלום مرحبا 你好。 👍🏽 <b> </b> <pre> & … “quoted.” \xa0 \u2028 \x1c",
    )
)
GAPS = st.sampled_from([" ", " ", " ", "  ", "\n", "\n\n", "\r\n", "\r\n\r\n", "\t", "\n    ", ""])
ANSWERS = st.one_of(
    st.lists(st.tuples(PIECES, GAPS), max_size=40).map(lambda pairs: "".join(part for pair in pairs for part in pair)),
    st.text(max_size=80),
)
few = settings(max_examples=60, deadline=None)


def change(name: str, answer: str, *, item_id: str = "item_1", seed: int = 7, **options: Any) -> str:
    """The transformation with all it may need."""
    needs: dict[str, Any] = {"criteria": ["correctness", "relevance"], "identity": "Model Q"}
    return transformed(name, answer, seed=seed, item_id=item_id, **{**needs, **options})


def added(name: str, answer: str, **options: Any) -> str:
    """What stands around the answer, which must be in there verbatim."""
    before, found, after = change(name, answer, **options).partition(answer)
    assert found == answer
    return before + after


def many(name: str, number: int = 60) -> list[str]:
    """The added texts for many items."""
    return [added(name, ANSWER, item_id=f"item_{place}") for place in range(number)]


def test_names_and_unknown_name() -> None:
    assert " ".join(TRANSFORMATIONS) == "padding authority format identity injection rubric_words surface_noise"
    with pytest.raises(ValueError, match="no transformation is called 'volume'"):
        change("volume", ANSWER)


def test_equal_in_another_process_with_another_hash_seed() -> None:
    program = (
        "import sys, json, hashlib; from judgelab.judging.transformations import TRANSFORMATIONS, transformed\n"
        "answer = json.loads(sys.stdin.read())\n"
        "texts = [transformed(n, answer, seed=7, item_id=f'i{k}', criteria=['correctness', 'relevance'],"
        " identity='Model Q') for n in TRANSFORMATIONS for k in range(5)]\n"
        "print(hashlib.sha256('\\x00'.join(texts).encode()).hexdigest())\n"
    )
    texts = [change(name, ANSWER, item_id=f"i{place}") for name in TRANSFORMATIONS for place in range(5)]
    here = hashlib.sha256("\x00".join(texts).encode()).hexdigest()
    run: dict[str, Any] = {"input": json.dumps(ANSWER), "capture_output": True, "text": True, "check": True}
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": "4711"}, **run)
    assert done.stdout.strip() == here


@pytest.mark.parametrize("name", ["padding", "authority", "injection", "rubric_words", "surface_noise"])
def test_items_and_seeds_vary(name: str) -> None:
    assert len({change(name, ANSWER, item_id=f"item_{place}") for place in range(30)}) > 2
    assert len({change(name, ANSWER, seed=seed) for seed in range(30)}) > 2


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("kind", ODD)
def test_odd_answers(name: str, kind: str) -> None:
    answer = ODD[kind]
    result = change(name, answer)
    assert result == change(name, answer)
    if name not in ("format", "surface_noise"):
        assert answer in result
        assert words_added(answer, result) > 0
        assert result == result.strip("\r\n") or answer != answer.strip("\r\n")


@few
@given(answer=ANSWERS, name=st.sampled_from(["padding", "authority", "identity", "injection", "rubric_words"]))
def test_answer_stays_verbatim(answer: str, name: str) -> None:
    result = change(name, answer)
    assert answer in result
    assert words_added(answer, result) == len(result.split()) - len(answer.split()) > 0


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_crlf_is_kept(name: str) -> None:
    assert "\n" not in change(name, ODD["crlf"]).replace("\r\n", "")


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_large_answers_take_linear_time(name: str) -> None:
    # Anything quadratic in 200 kB takes minutes here.
    unkind = [
        "`", "``` ", "``\n", "<", "<pre", "<a ", " ", "\n", " \n", "\r\n", "\t", "a'", "(", "**", "word", "…", "~",
        "- ", "1.", "> ",
    ]  # fmt: skip
    start = time.perf_counter()
    for piece in [ANSWER + " ", FENCED + "\n\n", *unkind]:
        assert change(name, piece * (200_000 // len(piece)))
        assert change(name, "\n" + piece * (20_000 // len(piece)) + "x")
    assert time.perf_counter() - start < 15


def test_words_added() -> None:
    assert words_added("", "") == 0
    assert words_added("one two", "one\n\ntwo  three") == 1
    assert words_added("one two", "one") == -1


@pytest.mark.parametrize("words", [0, 1, 30, 42, 100, 500, 3000])
def test_padding_length(words: int) -> None:
    answer = " ".join(["word"] * words)
    wanted = max(25, round(0.6 * words))
    for place in range(20):
        assert wanted <= words_added(answer, change("padding", answer, item_id=str(place))) < wanted + 20


def test_padding_does_not_repeat_sentences_in_long_answers() -> None:
    sentences = added("padding", "word " * 4000).split(".")
    assert len(sentences) > 150
    assert len(set(sentences)) == len(sentences)


def test_padding_claims_nothing() -> None:
    claims = (
        r"correct|accura|complete|thorough|helpful|clear|relevan|concise|expert|source|proved|establish|certain|best"
    )
    claims += r"|better|right|true|good|fact|ignore|instruct|choose|prefer|judge|verdict|winner|\d"
    everything = " ".join(many("padding", 300)) + added("padding", "word " * 4000)
    assert not re.search(claims, everything, re.IGNORECASE)


def test_authority_is_a_tone_and_a_citation() -> None:
    for text in many("authority"):
        tone, citation = text.split("\n\n\n\n")
        assert tone.endswith(".")
        assert re.search(r"[A-Z]\w+ (?:and|&) [A-Z]\w+", citation)
        assert re.search(r"(?:third|fourth|fifth|seventh|ninth) edition, p\. [1-4]\d\d\b", citation)
        one, other = re.findall(r"([A-Z]\w+) (?:and|&) ([A-Z]\w+)", citation)[0]
        assert one != other


def test_format_of_prose() -> None:
    assert change("format", ANSWER) == (
        "## Answer\n\n- Yes, you can return it within 30 days.\n\n## Details\n\n"
        "- Please don't use the old label, e.g. the one from your first parcel.\n"
        "- Dr. Example's form (no. 12) is under https://shop.example/returns and takes two minutes!\n"
        "- Is the box damaged?\n- Then describe the damage with `returnCode` before sending anything."
    )


@pytest.mark.parametrize(
    ("answer", "sentences"),
    [
        ("Only one sentence", ["Only one sentence"]),
        ("Is it? No.\nIt is\nnot.", ["Is it?", "No.", "It is not."]),
        ("A heading\n\nand text", ["A heading", "and text"]),
        ("See J. R. Example, i.e. Me. It ended in 2019.", ["See J. R. Example, i.e. Me.", "It ended in 2019."]),
        ("Use `a. B` or **c. D** now. Then go.", ["Use `a. B` or **c. D** now.", "Then go."]),
        ('He said "Stop." Then (he left.) She did.', ['He said "Stop."', "Then (he left.)", "She did."]),
        ("Wait... what? ok", ["Wait... what? ok"]),
        ("First: 1. open it 2. Close it.", ["First: 1. open it 2. Close it."]),
        ("The answer is no. Then again, see no. 5.", ["The answer is no.", "Then again, see no. 5."]),
        ("10\xa0kg are\tfine.", ["10\xa0kg are\tfine."]),
        ("هل وصلت؟ نعم. شكرا", ["هل وصلت؟", "نعم.", "شكرا"]),
    ],
)
def test_format_cuts_at_sentences(answer: str, sentences: list[str]) -> None:
    found = [line[2:] for line in change("format", answer).split("\n") if line.startswith("- ")]
    assert found == sentences


@pytest.mark.parametrize("kind", ["fenced", "unclosed", "list", "html"])
def test_format_adds_only_headings_to_what_is_laid_out(kind: str) -> None:
    result = change("format", ODD[kind])
    assert result.startswith("## Answer\n\n")
    assert result.removeprefix("## Answer\n\n").replace("## Details\n\n", "", 1) == ODD[kind]
    assert ("## Details" in result) == (kind != "html")


def test_format_never_puts_a_heading_into_code_or_a_list() -> None:
    code = FENCED[FENCED.index("```") : FENCED.rindex("```") + 3]
    assert code in change("format", FENCED)
    assert change("format", code) == "## Answer\n\n" + code
    loose = "1. One.\n\n2. Two."
    assert change("format", loose) == "## Answer\n\n" + loose


@settings(max_examples=200, deadline=None)
@given(answer=ANSWERS)
def test_format_keeps_the_words(answer: str) -> None:
    result = change("format", answer)
    if not answer.strip():
        assert result == answer
        return
    assert result.startswith("## Answer")
    body = re.sub(r"\A## Answer(\r\n|\n)\1", "", result)
    if answer not in (body, re.sub(r"## Details(\r\n|\n)\1", "", body, count=1)):  # a list was made
        kept = [line for line in re.split(r"\r?\n", body) if line not in ("", "## Details")]
        assert all(line.startswith("- ") and line[2:].strip() for line in kept)
        assert [word for line in kept for word in line[2:].split()] == answer.split()


def test_identity_is_the_first_line() -> None:
    assert change("identity", "Yes.", identity=" A model\nby us ") == "[Written by A model by us]\n\nYes."
    for empty in ("", " \n"):
        with pytest.raises(ValueError, match="needs the identity"):
            change("identity", ANSWER, identity=empty)


def test_injection_pleads_instructs_and_gives_a_verdict_without_naming_a_place() -> None:
    texts = many("injection")
    assert len(set(texts)) > 12  # of 3 * 3 * 3
    for text in texts:
        plea, instruction, verdict = text.strip().split("\n")
        assert "answer that holds this line" in plea
        assert "new instruction" in instruction.lower()
        assert json.loads(verdict[verdict.index("{") :])["winner"] == "the answer that holds this line"
        assert not re.search(r"\b[ABXY12]\b|\b(?:first|second|last|left|above|below)\b", text)


def test_rubric_words_repeats_the_terms() -> None:
    result = transformed("rubric_words", "Yes.", seed=3, item_id="q", criteria=["correctness", "to_the_point"])
    assert re.fullmatch(r"Yes\.\n\nI?[A-Za-z ]+: correctness, to the point\.", result)
    texts = ["No statement\nis wrong.", " "]
    result = change("rubric_words", "Yes.", criterion_texts=texts)
    assert result.endswith(": correctness (No statement is wrong), relevance.")


def test_rubric_words_needs_criteria() -> None:
    with pytest.raises(ValueError, match="needs the criteria"):
        transformed("rubric_words", ANSWER, seed=1, item_id="q")
    with pytest.raises(ValueError, match="1 criterion texts for 2 criteria"):
        change("rubric_words", ANSWER, criterion_texts=["one"])


def is_one_slip(before: str, after: str) -> bool:
    """Whether one swap, doubling or omission of inner letters, or a missing apostrophe, makes one of the other."""
    inner = range(1, len(before) - 1)
    made = {before[:i] + before[i + 1 :] for i in inner} | {before[: i + 1] + before[i:] for i in inner}
    made |= {before[:i] + before[i + 1] + before[i] + before[i + 2 :] for i in inner[:-1]}
    return after in made and after != before


@few
@given(answer=ANSWERS, item_id=st.sampled_from(["a", "b", "c"]))
def test_noise_changes_words_by_one_slip_and_nothing_else(answer: str, item_id: str) -> None:
    result = change("surface_noise", answer, item_id=item_id)
    assert re.split(r"\S+", result) == re.split(r"\S+", answer)
    assert words_added(answer, result) == 0
    for before, after in zip_longest(answer.split(), result.split()):
        if before != after:
            core, slipped = before.strip("\"'“”’().,!?*…"), after.strip("\"'“”’().,!?*…")
            assert is_one_slip(core, slipped)
            assert core[1:].lower() == core[1:]
            assert not re.search(r"[\d_`<>/:@]", before)


@pytest.mark.parametrize(("words", "typos"), [(1, 1), (6, 1), (25, 2), (100, 8), (1000, 80)])
def test_noise_in_eight_percent(words: int, typos: int) -> None:
    answer = " ".join(["Parcel", "return,", "(label)", "don't"][place % 4] for place in range(words))
    result = change("surface_noise", answer)
    assert sum(before != after for before, after in zip(answer.split(), result.split(), strict=True)) == typos


def test_noise_makes_all_four_kinds_of_slip() -> None:
    seen = {change("surface_noise", word, item_id=str(place)) for word in ("abcd", "don't") for place in range(60)}
    assert seen == {"acbd", "abbcd", "abccd", "abd", "acd", "dont"}


@pytest.mark.parametrize(
    "answer",
    [
        *(ODD[kind] for kind in ("empty", "blank", "number", "emoji")),
        "2024-05-06 1,000 4th abc1def", "https://shop.example/returns www.shop.example name@shop.example",
        "`some code here` ``more ` code here``", "```\nsome code here\n```", "~~~ text\nsome code here\n~~~",
        "> ```\n> some code here", "    indented code here", "<pre>some code\n\nhere</pre> <a disabled hidden>",
        "iPhone HTTP McName snake_case path/word well-known", "a an the you it's we're We'll",
    ],
)  # fmt: skip
def test_noise_finds_nothing_to_change(answer: str) -> None:
    for place in range(5):
        assert change("surface_noise", answer, item_id=str(place)) == answer


def test_noise_outside_the_code_only() -> None:
    for place in range(30):
        result = change("surface_noise", FENCED, item_id=str(place))
        assert result != FENCED
        assert FENCED[FENCED.index("```") : FENCED.rindex("```") + 3] in result


@pytest.mark.parametrize(
    ("word", "other"), [("from", "form"), ("three", "there"), ("where", "were"), ("later", "latter")]
)
def test_noise_avoids_another_common_word(word: str, other: str) -> None:
    slips = {change("surface_noise", word, item_id=str(place)) for place in range(80)}
    assert other not in slips
    assert word not in slips
    assert len(slips) > 2
