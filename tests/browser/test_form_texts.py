"""The labelling form in a real JupyterLab and texts of every kind: markup, 200 kB, right to left; and names for all."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .bench import HOSTILE, PAIR, SCALE, press, says

SIZES = [(1280, 800), (1920, 1080)]


@pytest.fixture
def page(form_page) -> Page:
    """One page for all tests of the form."""
    return form_page


@pytest.mark.parametrize("markdown", [False, True])
def test_markup_in_any_text_does_nothing(show, page, told, markdown):
    labels = [{"label": 1, "text": HOSTILE, "note": HOSTILE, "scores": HOSTILE}]
    item = {"task": HOSTILE, "context": HOSTILE, "answers": [HOSTILE, f"# {HOSTILE}\n\n|{HOSTILE}|b|\n|-|-|\n|1|2|"]}
    form = show(item, start=True, message=HOSTILE, labels=labels, rule=HOSTILE, mode="adjudication")
    expect(form.get_by_role("button", name="Go on as <img src=x onerror=window.hit=1>")).to_be_visible()
    form.get_by_label("Your name").fill("<script>window.hit=1</script>")
    press(page, "Enter")
    expect(form.get_by_role("region", name="Answer A")).to_contain_text("<script>window.hit=1</script>")
    if markdown:
        press(page, "a", "r")
        expect(form.get_by_role("region", name="Answer A").locator("strong")).to_have_text("bold")
        expect(form.get_by_role("region", name="Answer B").locator("table")).to_be_visible()
        expect(form.get_by_role("radio", name="A is better")).to_be_checked()
    press(page, "n")
    page.keyboard.type(HOSTILE)
    press(page, "Escape", "b", "Enter")
    says(form, "Saved: B is better.")
    page.wait_for_timeout(200)
    assert told("decide")[0]["note"] == HOSTILE
    assert page.evaluate("window.hit") is None
    assert form.locator("img, script, iframe, a, svg, link, style").count() == 0
    assert form.evaluate("e => [...e.querySelectorAll('.jl-rendered *')].every(n => n.attributes.length === 0)")


WIDE = {
    "long": "A line of text without end. " * 7_500,
    "one word": "x" * 200_000,
    "right to left": "שלום עולם, זו תשובה ארוכה למדי. " * 60 + "\nلوحة المفاتيح 123 (abc)",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈🇩🇪" * 400,
    "code": "def f():\n\tif x:\n\t\treturn " + "y" * 300 + "\n" + "\t" * 60 + "deep",
}


@pytest.mark.parametrize("markdown", [False, True])
def test_no_text_breaks_the_layout(show, page, markdown):
    names = [("long", "one word"), ("right to left", "emoji"), ("code", "long")]
    items = [{"task": WIDE[a][:9_000], "context": WIDE[b][:9_000], "answers": [WIDE[a], WIDE[b]]} for a, b in names]
    items[2]["answers"][1] = "|" + "wide|" * 60 + "\n|" + "-|" * 60 + "\n\n```\n" + "z" * 500 + "\n```\n"
    form = show(*items, scale=SCALE)
    if markdown:
        press(page, "r")
        expect(form.get_by_role("button", name="Markdown")).to_have_attribute("aria-pressed", "true")
    for place in range(3):
        for width, height in SIZES:
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(100)
            form.evaluate("e => e.scrollIntoView({block: 'end'})")
            box = form.bounding_box()
            assert box is not None
            assert box["height"] < height - 100
            for node in (form, form.locator(".jl-body"), form.locator(".jl-texts"), form.locator(".jl-side-column")):
                assert node.evaluate("e => e.scrollWidth <= e.clientWidth"), (place, width)
            assert form.locator(".jl-text").evaluate_all("all => all.every(e => e.scrollWidth <= e.clientWidth)"), width
            for answer in form.locator(".jl-answer").all():
                assert answer.bounding_box()["height"] > 120
            inside = form.get_by_role("button", name="Save").bounding_box()
            assert inside["y"] + inside["height"] <= box["y"] + box["height"]
            assert inside["x"] + inside["width"] <= box["x"] + box["width"]
        press(page, "c")
        page.keyboard.type("long")
        press(page, "Control+Enter")
        says(form, "Saved")
        if place < 2:
            press(page, "Enter")
            says(form, "Choose")
    if not markdown:
        assert form.get_by_role("region", name="Answer A").text_content() == WIDE["code"]
        assert form.get_by_role("region", name="Answer A").evaluate("e => getComputedStyle(e).tabSize") == "4"


def test_right_to_left_text_starts_on_the_right(show):
    form = show({**PAIR, "answers": [WIDE["right to left"], "left"]})
    left = "e => { const r = document.createRange(); r.selectNodeContents(e); const b = e.getBoundingClientRect();"
    left += " return [...r.getClientRects()].at(-1).right > b.left + 0.7 * b.width; }"
    assert form.get_by_role("region", name="Answer A").evaluate(left)
    assert not form.get_by_role("region", name="Answer B").evaluate(left)


def test_every_control_has_a_name_and_the_page_order_is_that_of_the_work(show, page):
    form = show({**PAIR, "context": "Some."}, PAIR, scale=SCALE)
    press(page, "c")
    snapshot = form.aria_snapshot()
    for line in snapshot.splitlines():
        role = re.match(
            r"\s*- '?(button|radio|checkbox|textbox|combobox|region|radiogroup|group|progressbar)\b(.*)", line
        )
        if role:
            assert re.match(r' "[^"]+"', role[2]), line
    order = [
        "Task",
        "Context",
        "Answer A",
        "Answer B",
        "Your decision",
        "Rubric",
        "correctness, answer A",
        "Note",
        "Save",
    ]
    places = [snapshot.index(f'"{name}') for name in order]
    assert places == sorted(places)
    names = ["Answer A", "Answer B", "Task", "Context", "Rubric"]
    for name in names:
        assert form.get_by_role("region", name=name).get_attribute("tabindex") == "0"
    press(page, "Escape", "?")
    expect(form.get_by_role("region", name="Keys")).to_be_visible()
    press(page, "Escape")
    expect(form.get_by_role("region", name="Keys")).to_be_hidden()
