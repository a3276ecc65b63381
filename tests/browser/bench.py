"""The form over a scripted session: items to show, and what a person at the keyboard does."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

PAIR = {"task": "Which answer is right?", "answers": ["Yes, it is.", "No, it is not."]}
SCALE = {"minimum": 1, "maximum": 5}
HOSTILE = "<img src=x onerror=window.hit=1> <script>window.hit=1</script> **bold**"


def enter(page: Page) -> Locator:
    """The form, after a click on its title: keys go to it from then on."""
    form = page.locator(".jl-form")
    form.get_by_role("heading", name="Labelling").click()
    return form


def says(form: Locator, text: str) -> None:
    """Wait until the form's live region says something."""
    expect(form.get_by_role("status")).to_contain_text(text)


def press(page: Page, *keys: str) -> None:
    for name in keys:
        page.keyboard.press(name)
