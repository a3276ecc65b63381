"""Markdown of strangers: what is rendered, and that nothing of it runs, loads or leads anywhere."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgelab.labelling.markdown import LONGEST, TAGS, rendered

HOSTILE = [
    "<img src=x onerror=window.hit=1>",
    "<script>window.hit=1</script>",
    "<svg/onload=window.hit=1>",
    "<iframe src=javascript:window.hit=1></iframe>",
    "[a](javascript:window.hit=1)",
    "![a](x 'y\" onerror=\"window.hit=1')",
    '![a"onerror="window.hit=1](x)',
    "<javascript:window.hit=1>",
    "[a]: javascript:window.hit=1\n\n[a]",
    "```html\n<script>window.hit=1</script>\n```",
    '```"><script>window.hit=1</script>\nx\n```',
    "|a|\n|-|\n|<img src=x onerror=window.hit=1>|",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.hit=1>",
    "<!-- --!><img src=x onerror=window.hit=1> -->",
]


def tags_of(html: str) -> set[str]:
    return set(re.findall(r"<(/?[^>]*)>", html))


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_but_plain_tags_is_left_of_a_hostile_text(text):
    assert {tag.strip("/").strip() for tag in tags_of(rendered(text))} <= TAGS


@given(st.text(alphabet="<>/!-[]()`*_~|\"'=&:;x \n\t\\#1.", max_size=200))
def test_every_tag_is_of_the_list_and_has_no_attribute(text):
    assert {tag.strip("/").strip() for tag in tags_of(rendered(text))} <= TAGS


def test_markdown_is_rendered():
    html = rendered("# Head\n\n**bold** *slanted* ~~gone~~ `code`\n\n- one\n- two\n\n> said\n\n|a|b|\n|-|-|\n|1|2|")
    for part in ("<h1>Head</h1>", "<strong>bold</strong>", "<em>slanted</em>", "<del>gone</del>", "<code>code</code>"):
        assert part in html
    for part in ("<li>one</li>", "<blockquote>", "<td>1</td>"):
        assert part in html


def test_tabs_in_code_are_kept():
    assert "\tx = 1\n\t\ty" in rendered("```\n\tx = 1\n\t\ty\n```")


def test_html_of_the_text_is_shown_as_it_was_written():
    assert "&lt;img src=x onerror=window.hit=1&gt;" in rendered("see <img src=x onerror=window.hit=1> here")


def test_addresses_of_links_and_images_are_text():
    assert rendered("[here](https://example.org/?a=1&b=2)") == "<p>here (https://example.org/?a=1&amp;b=2)</p>\n"
    assert rendered("<https://example.org>") == "<p>https://example.org</p>\n"
    assert rendered("![a cat](https://example.org/cat.png)") == "<p>[image: a cat (https://example.org/cat.png)]</p>\n"


def test_an_empty_text_is_empty():
    assert rendered("") == ""


def test_a_text_that_is_too_long_stays_raw():
    assert rendered("a" * LONGEST) is not None
    assert rendered("a" * (LONGEST + 1)) is None


@pytest.mark.parametrize("piece", ["> ", "[", "*a ", "- ", "`", "![[]()", "**a_b", "<a ", "|", "\n", "~~a", "1. "])
def test_a_text_crowded_with_markers_is_rendered_or_left_raw_and_breaks_nothing(piece):
    html = rendered((piece * LONGEST)[:LONGEST])
    assert html is None or isinstance(html, str)
