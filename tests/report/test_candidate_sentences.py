"""Sentences on the answers that are ranked: counted, missing, cut off, identical, long and short."""

from __future__ import annotations

import math

import pandas as pd

from judgelab.report.candidate_sentences import candidate_sentences

NAN = math.nan
HOSTILE = '<img src=x onerror="alert(1)">'
NOBODY = pd.DataFrame(columns=["line", "item_id", "reason", "detail"])


def answer(item, system, text, *, origin="given", reason="", finish="", words=None):
    counted = NAN if text is None else len(text.split()) if words is None else words
    return {
        "item_id": item, "category": "c", "system": system, "origin": origin, "words": counted, "reason": reason,
        "model": "", "finish_reason": finish, "tokens_out": NAN, "edits": 0, "answer": text,
    }  # fmt: skip


def said(*answers, left_out=NOBODY):
    made = candidate_sentences(pd.DataFrame(list(answers)), left_out=left_out)
    assert "nan" not in repr(made).lower()
    return made


def test_counts_missing_cut_off_and_lengths():
    made = said(
        answer("1", "a", "one two three"), answer("2", "a", "one two three four five"),
        answer("1", "g", "x", origin="generated", finish="length"),
        answer("2", "g", "y z w", origin="generated", finish="stop"),
        answer("1", "h", "h", origin="generated"), answer("2", "h", None, origin="generated", reason="timeout"),
        answer("1", "d", "three two one", origin="degraded"),
        answer("2", "d", None, origin="degraded", reason="cannot_degrade"),
    )  # fmt: skip
    assert list(made) == [
        "Candidates: 6 of 8 answers wanted are there (2 items, 4 systems): 2 of 2 given, 3 of 4 generated and 1 of 2 "
        "degraded.",
        "Missing answers, 2 of 8: 1 timeout (h 1); 1 cannot degrade (d 1).",
        "Cut off at the limit of tokens: 1/3 = 0.333 of the generated answers; of 1 it is not known how they ended (g "
        "1); a judge may hold that against them.",
        "Identical answers within an item: on 0 of 2 items.",
        "Length: longest is a with a median of 4 words (n = 2 answers), shortest h with a median of 1 words (n = 1 "
        "answer).",
    ]


def test_nothing_is_missing_or_cut_off():
    made = said(*(answer("1", system, f"{system} x", origin="generated", finish="stop") for system in "ab"))
    assert made[0] == "Candidates: 2 of 2 answers wanted are there (1 item, 2 systems): 2 of 2 generated."
    assert made[1] == "Cut off at the limit of tokens: 0/2 = 0.000 of the generated answers."
    assert made[3] == "Length: b with a median of 2 words (n = 1 answer), as the 1 others."
    assert len(made) == 4


def test_identical_answers():
    same = [
        answer(item, system, text) for item in "123" for system, text in (("a", "yes"), ("b", " yes\n"), ("c", "no"))
    ]
    made = said(*same, answer("4", "a", "yes"), answer("4", "c", "no"))
    assert made[1] == (
        "Identical answers within an item: on 3 of 4 items, 6 answers (a and b on 3); a judge can only tie them or "
        "follow their place."
    )


def test_one_system_empty_and_no_answers():
    one = said(answer("1", "a", "x y"), answer("2", "a", ""))
    assert one[2:] == ("Length: a with a median of 1 words (n = 2 answers).", "Empty answers: 1 (a 1).")
    none = said(answer("1", "a", None))
    assert list(none) == [
        "Candidates: 0 of 1 answer wanted are there (1 item, 1 system): 0 of 1 given.",
        "Missing answers, 1 of 1: 1 no reason given (a 1).",
        "Identical answers within an item: on 0 of 0 items.",
    ]
    assert said()[0] == "There are no candidates (n = 0 answers): too little data."


def test_another_origin_and_many_systems():
    made = said(*(answer("1", f"s{i}", None, origin="borrowed", reason=NAN) for i in range(7)))
    assert "0 of 7 borrowed" in made[0]
    assert made[1].endswith("7 no reason given (s0 1, s1 1, s2 1, s3 1, s4 1 and 2 more).")


def test_items_left_out():
    rows = [(3, "x", "missing_answer", ""), (4, "", "missing_answer", ""), (9, HOSTILE, "", "d")]
    made = said(answer("1", "a", "x"), left_out=pd.DataFrame(rows, columns=NOBODY.columns))
    assert made[-1] == f"Items left out: 3: 2 missing answer (x, line 4); 1 no reason given ({HOSTILE})."
    assert candidate_sentences(pd.DataFrame(), left_out=pd.DataFrame(rows, columns=NOBODY.columns))[1] == made[-1]


def test_hostile_names_are_text():
    made = said(
        answer(HOSTILE, HOSTILE, HOSTILE, origin="generated", finish="length"), answer(HOSTILE, "b", HOSTILE),
        answer(HOSTILE, "c", None, reason=HOSTILE),
    )  # fmt: skip
    assert "<img" not in made._repr_html_()
    assert f"{HOSTILE} and b on 1" in repr(made)
