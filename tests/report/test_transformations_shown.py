"""Changed answers side by side: the right words are marked, nothing in an answer acts, nothing is slow or unstable."""

from __future__ import annotations

import re
import time

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgelab.report.cleaning import clean_html
from judgelab.report.transformations_shown import _parts, transformations_table

HOSTILE = (
    '<script>alert(1)</script><img src=x onerror="alert(2)"></td></table><a href="http://a.b">x</a> {{braces}} ** '
)


def table(before, after, *, probe="padding", words=3, item="a", system="X"):
    line = {"probe": probe, "item_id": item, "system": system, "before": before, "after": after, "words_added": words}
    return transformations_table(pd.DataFrame([line], dtype=object))


def sides(shown):
    """Both cells as HTML."""
    return re.findall(r'<td class="answer"[^>]*>(.*?)</td>', shown._repr_html_(), re.S)


@pytest.mark.parametrize(
    ("before", "after", "cells"),
    [
        ("I receive it.", "I recieve it.", ["I <del>receive</del> it.", "I <ins>recieve</ins> it."]),
        ("One.", "One. Two.", ["One.", "One.<ins> Two.</ins>"]),
        ("One.", "Zero. One. Two.", ["One.", "<ins>Zero. </ins>One.<ins> Two.</ins>"]),
        ("Zero. One.", "One.", ["<del>Zero. </del>One.", "One."]),
        # a line break may be all that changes, so it is seen
        ("a b", "a\nb", ["a<del> </del>b", "a<ins>↵\n</ins>b"]),
        ("", "x", ["", "<ins>x</ins>"]),
        # part of a word is no word
        ("art", "party", ["<del>art</del>", "<ins>party</ins>"]),
        # without spaces, sentences are the words
        ("一。二。三。", "一。四。三。", ["一。<del>二</del>。三。", "一。<ins>四</ins>。三。"]),
    ],
)
def test_the_words_that_changed_are_marked(before, after, cells):
    assert sides(table(before, after)) == cells


def test_rows_name_probe_item_system_and_words():
    shown = table("a", "a b", probe="surface_noise", words=1)
    assert repr(shown).splitlines() == [
        "surface noise: typos in the better (item a, X, 1 word added)",
        "  before: a",
        "  after: a{+ b+}",
    ]
    assert "unknown probe (item a, X)" in repr(table("a", "b", probe="unknown_probe", words=None))
    assert len(shown) == 1


def test_unchanged_missing_and_no_rows():
    assert "nothing changed" in table("same", "same")._repr_html_()
    assert "nothing changed" in repr(table(None, float("nan")))
    none = transformations_table(pd.DataFrame(columns=["probe", "item_id", "system", "before", "after", "words_added"]))
    assert repr(none) == "No probe of this study changes an answer."
    assert "No probe" in none._repr_html_()
    with pytest.raises(ValueError, match="words_added"):
        transformations_table(pd.DataFrame({"probe": []}))


def test_nothing_in_an_answer_acts():
    shown = table(f"{HOSTILE}a", f"{HOSTILE}b {HOSTILE}", probe=HOSTILE, item=HOSTILE, system=HOSTILE)
    for page in (shown._repr_html_(), clean_html(shown._repr_html_())):
        assert "&lt;script&gt;" in page, "it is text and seen as text"
        for tag in ("<script", "<img", "<a "):
            assert tag not in page
        assert not re.search(r"<[^>]*onerror", page)
        assert page.count("<table") == page.count("</table>") == 1
        assert page.count("<td") == 2


def test_marks_and_classes_survive_the_published_page():
    page = clean_html(table("a b", "a c")._repr_html_())
    for part in ('<table class="transformations">', '<td class="answer" dir="auto">', "<del>b</del>", "<ins>c</ins>"):
        assert part in page
    assert "style=" not in page
    assert "<caption>" in page


def test_right_to_left_emoji_and_hidden_characters():
    before, after = "שלום עולם 👩‍👩‍👧 हिन्दी", "שלום טוב 👩‍👩‍👧 हिन्दी"
    cells = sides(table(before, after))
    assert cells == ["שלום <del>עולם</del> 👩‍👩‍👧 हिन्दी", "שלום <ins>טוב</ins> 👩‍👩‍👧 हिन्दी"]
    # a mark of direction, a tag character (invisible), a control, half a character: shown by number, never passed on
    shown = table("a", "a \u202eb\U000e0041\x1b[31m\ud800\x00\r\n")
    assert "<ins> ⟨U+202E⟩b⟨U+E0041⟩⟨U+001B⟩[31m⟨U+D800⟩⟨U+0000⟩↵\n</ins>" in shown._repr_html_()
    shown._repr_html_().encode("utf-8")
    repr(shown).encode("utf-8")


WORDS = " ".join(f"w{i * i % 1009}" for i in range(40_000))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (WORDS, f"Dear judge. {WORDS} The end."),
        (WORDS, WORDS.replace("w4 ", "w5 ")),
        (WORDS, " ".join(reversed(WORDS.split()))),
        ("a " * 100_000, "b " * 100_000),
        ("a b " * 50_000, "b a a " * 35_000),
        ("x" * 200_000, "y" * 200_000),
        ("\n" * 200_000, "\n \n" * 70_000),
        ("a " * 270, "b a " * 135),
    ],
)
def test_long_answers_are_cut_and_quick(before, after):
    start = time.perf_counter()
    shown = table(before, after)
    cells = [re.sub(r"<[^>]*>", "", cell) for cell in sides(shown)]
    assert time.perf_counter() - start < 2
    assert max(map(len, cells)) < 1100, "about 500 characters, line breaks have two"
    assert cells[0] != cells[1]


def test_what_was_added_around_a_long_answer_is_all_that_is_marked():
    cells = sides(table(WORDS, f"Dear judge. {WORDS} The end."))
    assert "<del>" not in cells[0]
    assert re.findall(r"<ins>(.*?)</ins>", cells[1]) == ["Dear judge. ", " The end."]


def test_what_is_not_compared_is_said():
    far = table(WORDS, WORDS.replace("w4 ", "w5 "))
    assert "only 1500 characters from the first change on are compared" in repr(far)
    assert "only 1500" not in repr(table("a b", "a c"))


def test_many_changes_stop_at_the_limit():
    before = " ".join(f"word{i} same" for i in range(200))
    cells = sides(table(before, before.replace("word", "Word")))
    assert all(400 < len(re.sub(r"<[^>]*>", "", cell)) < 800 for cell in cells)
    assert all(cell.endswith(" … ") for cell in cells)


@settings(max_examples=60, deadline=None)
@given(st.text("ab <&\n。é\u0301", max_size=40), st.text("ab <&\n。é\u0301", max_size=40))
def test_parts_give_both_texts_back(before, after):
    parts, whole = _parts(before, after)
    assert whole
    assert "".join(part.before for part in parts) == before
    assert "".join(part.after for part in parts) == after
    assert any(part.changed for part in parts) == (before != after)


def test_the_output_depends_on_the_table_alone():
    texts = [(made._repr_html_(), repr(made)) for made in (table(WORDS, f"x {WORDS}"), table(WORDS, f"x {WORDS}"))]
    assert texts[0] == texts[1]
    assert " id=" not in texts[0][0]
