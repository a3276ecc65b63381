"""A person at the notebook and its form: reads what is shown, and decides by mouse or by keyboard."""

from __future__ import annotations

import re
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

from .studies import ROOT, LabellingStudy

KEYS = {"left": "a", "right": "b", "tie": "t", "cannot_judge": "c"}
SIZES = [(1280, 800), (1920, 1080)]
NAMES = {"left": "A is better", "right": "B is better", "tie": "Tie", "cannot_judge": "Cannot judge"}


@dataclass
class Hands:
    """One form of a page. ``title`` is Labelling, Ranking, Adjudication or Spot check."""

    page: Page
    study: LabellingStudy
    title: str = "Labelling"

    @property
    def form(self) -> Locator:
        heading = self.page.get_by_role("heading", name=self.title, exact=True)
        return self.page.locator(".jl-form").filter(has=heading)

    def says(self, text: str) -> None:
        """Wait until the form's live region says something."""
        expect(self.form.get_by_role("status")).to_contain_text(text)

    def refuses(self, text: str) -> str:
        """Wait until the form tells a problem; all of it."""
        alert = self.form.get_by_role("alert")
        expect(alert).to_contain_text(text)
        return alert.inner_text()

    @property
    def place(self) -> str:
        """``Training 1 of 2`` or ``Item 3 of 13``."""
        return self.form.get_by_role("progressbar").get_attribute("aria-valuetext") or ""

    @property
    def item(self) -> str:
        """The item that is shown."""
        return self.study.item_of(self.form.get_by_role("region", name="Task").text_content() or "")

    def answer(self, letter: str) -> Locator:
        return self.form.get_by_role("region", name=f"Answer {letter}")

    @property
    def shown(self) -> list[str]:
        """The systems whose answers are shown, from A on, by what the answers say."""
        answers = self.form.locator(".jl-answer").all()
        return [self.study.system_of(answer.text_content() or "") for answer in answers]

    def side(self, preference: str) -> str:
        """The choice that prefers a system, or TIE."""
        return "tie" if preference == "TIE" else ("left", "right")[self.shown.index(preference)]

    def begins(self, name: str, *, again: bool = False, refused: bool = False) -> None:
        """Start under a name by the keyboard; ``again``: it has a journal, and the person says that it is theirs."""
        self.form.get_by_label("Your name").focus()
        self.presses("Control+a")
        self.page.keyboard.type(name)
        self.presses("Enter")
        if again:
            expect(self.form).to_contain_text("go on only if that is you")
            self.presses("Enter")
        if not refused:
            expect(self.form.get_by_role("button", name="Save")).to_be_in_viewport()  # it comes into view by itself

    def clicks(self, name: str) -> None:
        """Click one of the form's buttons."""
        self.form.get_by_role("button", name=name, exact=True).click()

    def picture(self, name: str) -> None:
        """Keep screenshots of the form at both widths, for people to look at."""
        folder = ROOT / "outputs" / "screenshots"
        folder.mkdir(parents=True, exist_ok=True)
        for width, height in (*SIZES[::-1],):
            self.page.set_viewport_size({"width": width, "height": height})
            for _ in range(3):  # the notebook moves until its outputs have found their height
                self.form.evaluate("e => e.scrollIntoView({block: 'end'})")
                self.page.wait_for_timeout(150)
            self.page.screenshot(path=folder / f"{name}_{width}x{height}.png")

    def chooses(self, choice: str) -> None:
        """Choose by mouse."""
        self.form.get_by_text(NAMES[choice], exact=True).click()

    def presses(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def waits_for(self, place: str, told: str = "Choose") -> None:
        """Wait until a task is before the person."""
        expect(self.form.get_by_role("progressbar")).to_have_attribute("aria-valuetext", place)
        self.says(told)


def active(page: Page) -> str:
    """What has the focus, by its label."""
    return page.evaluate("() => document.activeElement.getAttribute('aria-label') || document.activeElement.tagName")


def run_by_keyboard(page: Page) -> None:
    """Run all cells, go up to the cell in which people label, and into the form: no mouse."""
    page.keyboard.press("Control+Shift+C")
    page.keyboard.type("Run All Cells")
    expect(page.locator(".lm-CommandPalette-item.lm-mod-active")).to_contain_text("Run All Cells")
    page.keyboard.press("Enter")
    page.locator(".jl-form").nth(1).wait_for()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].every(e => /\\d/.test(e.textContent))"
    )
    page.keyboard.press("Escape")
    cell = page.locator(".jp-Cell.jp-mod-active")
    while not cell.get_by_role("heading", name="Labelling", exact=True).count():
        page.keyboard.press("ArrowUp")
    for _ in range(8):
        if active(page) == "Your name":
            break
        page.keyboard.press("Tab")
    assert active(page) == "Your name"


def run_cell(page: Page, source: str) -> str:
    """Run one cell again by the keyboard; what it says."""
    cell = page.locator(".jp-CodeCell", has=page.locator(".jp-InputArea-editor", has_text=source))
    before = cell.locator(".jp-InputPrompt").inner_text()
    cell.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(rf"(?!{re.escape(before)})\[\d+\]"))
    return re.sub(r"\s+", " ", " ".join(cell.locator(".jp-OutputArea-output").all_inner_texts()))


def restart(page: Page) -> None:
    """Restart the kernel of a notebook by the menu."""
    page.locator('.lm-MenuBar-itemLabel:text-is("Kernel")').click()
    page.locator('.lm-Menu-itemLabel:text-is("Restart Kernel…")').click()
    page.locator(".jp-Dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    expect(page.locator(".jp-Dialog")).to_have_count(0)
