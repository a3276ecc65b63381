"""The labelling form in a real JupyterLab, with a scripted session behind it: keys, clicks, tabs, and a bad kernel."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from .bench import HOSTILE, PAIR, SCALE, enter, press, says

IMPATIENT = "LabellingForm = type('F', (LabellingForm,), {'_esm': LabellingForm._esm.replace('10_000', '600')})\n"


@pytest.fixture
def page(form_page) -> Page:
    """One page for all tests of the form."""
    return form_page


def test_three_items_by_keyboard_alone(show, page, told):
    form = show(PAIR, PAIR, {**PAIR, "task": "And now?"})
    press(page, "a")
    says(form, "Chosen: A is better. Enter: save.")
    press(page, "Enter")
    says(form, "Saved: A is better. Enter: next.")
    press(page, "u")
    says(form, "Chosen: A is better.")
    press(page, "t", "Enter")
    says(form, "Saved: Tie.")
    press(page, "Enter")
    says(form, "Choose")
    press(page, "c")
    expect(form.get_by_label("Why it cannot be judged")).to_be_focused()
    page.keyboard.type("a b t: no language I read")
    press(page, "Escape", "n")
    page.keyboard.type("first line")
    press(page, "Enter")
    page.keyboard.type("second line")
    press(page, "Control+Enter")
    says(form, "Saved: Cannot judge.")
    press(page, "ArrowRight")
    expect(form.get_by_role("region", name="Task")).to_have_text("And now?")
    press(page, "ArrowLeft")
    expect(form.get_by_label("Note")).to_have_value("first line\nsecond line")
    press(page, "ArrowRight")
    expect(form.get_by_role("region", name="Task")).to_have_text("And now?")
    press(page, "b", "Enter")
    says(form, "Saved: B is better.")
    press(page, "Enter")
    expect(form.get_by_role("button", name="Close the labels …")).to_be_visible()

    decided = told("decide")
    assert [each["choice"] for each in decided] == ["left", "tie", "cannot_judge", "right"]
    assert decided[2]["reason"] == "a b t: no language I read"
    assert decided[2]["note"] == "first line\nsecond line"
    assert all(0 < each["seconds"] < 60 for each in decided)
    assert decided[1]["seconds"] > decided[0]["seconds"]  # after undo the time goes on


def test_no_key_reaches_jupyterlab(show, page):
    show(PAIR, PAIR)
    cells = page.locator(".jp-Cell")
    expect(cells).to_have_count(1)
    press(
        page,
        *"abdd",
        *"xzmy",
        "Escape",
        "Shift+Enter",
        "Alt+Enter",
        *"jkcvii00",
        "Escape",
        "n",
        *"abdd",
        "Escape",
        "Delete",
    )
    page.wait_for_timeout(300)
    expect(cells).to_have_count(1)
    expect(page.locator(".jp-CodeCell")).to_have_count(1)
    expect(page.locator(".jp-Dialog")).to_have_count(0)


def test_with_the_mouse_a_double_click_saves_once(show, page, told):
    form = show(PAIR, PAIR)
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("alert")).to_contain_text("Choose first")
    form.get_by_text("B is better", exact=True).click()
    form.get_by_label("Note").fill("by mouse")
    form.get_by_role("button", name="Save").dblclick()
    says(form, "Saved: B is better.")
    form.get_by_role("button", name="Next").dblclick()
    expect(form.get_by_role("progressbar")).to_have_attribute("aria-valuetext", "Item 2 of 2")
    says(form, "Choose")
    expect(form.get_by_label("Note")).to_have_value("")
    assert [each["action"] for each in told()] == ["decide", "next"]
    assert told("decide")[0]["note"] == "by mouse"


def test_a_key_that_is_held_down_acts_once(show, page, told):
    form = show(PAIR, PAIR)
    press(page, "a")
    for _ in range(15):
        page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    says(form, "Saved: A is better.")
    page.wait_for_timeout(300)
    assert [each["action"] for each in told()] == ["decide"]


def test_scores_by_keys(show, page, told):
    form = show(PAIR, scale=SCALE)
    press(page, "a", *"451")
    says(form, "Chosen: A is better. Scores missing: 3.")
    press(page, "Enter")
    expect(form.get_by_role("alert")).to_contain_text("3 of 6 scores are missing")
    press(page, *"9")
    expect(form.get_by_role("alert")).to_contain_text("Allowed are 1 to 5.")
    press(page, *"234", "ArrowDown", "5", "Enter")
    says(form, "Saved: A is better.")
    assert told("decide")[-1]["scores"] == {
        "left": {"correctness": 5, "completeness": 1, "clarity": 3},
        "right": {"correctness": 5, "completeness": 2, "clarity": 4},
    }
    group = form.get_by_role("radiogroup", name="clarity, answer A, 1 to 5")
    expect(group.get_by_role("radio", name="3")).to_be_checked()


def test_ranking_by_keys(show, page, told):
    form = show({"task": "Order them.", "answers": ["one", "two", "three"]}, mode="ranking")
    press(page, "2", "1")
    expect(form.locator(".jl-order")).to_have_text("Order: B, then A. Without a rank: C.")
    press(page, "ArrowUp", "ArrowUp")
    expect(form.get_by_label("Rank of answer A")).to_be_focused()
    press(page, "1", "ArrowDown", "3")
    expect(form.locator(".jl-order")).to_have_text("Order: A = B, then C.")
    press(page, "Enter")
    says(form, "Saved: Order: A = B, then C. Enter: next.")
    assert told("decide")[0]["ranks"] == [1, 1, 3]


def test_adjudication_shows_labels_notes_and_the_rule(show, page, told):
    labels = [
        {"label": 1, "text": "A is better", "note": HOSTILE, "scores": "A: 4, B: 3"},
        {"label": 2, "text": "Tie", "note": "", "scores": ""},
    ]
    form = show(PAIR, mode="adjudication", labels=labels, rule="The policy comes first.")
    shown = form.get_by_role("region", name="Initial labels, rule and rubric")
    for text in (
        "Label 1: A is better",
        "A: 4, B: 3",
        HOSTILE,
        "Label 2: Tie",
        "The policy comes first.",
        "correctness",
    ):
        expect(shown).to_contain_text(text)
    press(page, "b", "Enter")
    says(form, "Saved: B is better.")
    assert told("decide")[0]["choice"] == "right"
    assert page.evaluate("window.hit") is None


def test_training_feedback_is_told(show, page):
    form = show(
        PAIR, feedback={"agrees": False, "expected": "B is better", "explanation": "It is not."}, mode="spot_check"
    )
    press(page, "a", "Enter")
    expect(form.get_by_text("Expected: B is better")).to_be_visible()
    says(form, "Saved: A is better.")


def test_time_out_of_sight_does_not_count(show, page, told):
    hide = "state => { Object.defineProperty(document, 'visibilityState', {value: state, configurable: true});"
    hide += " document.dispatchEvent(new Event('visibilitychange')); }"
    form = show(PAIR)
    page.evaluate(hide, "hidden")
    page.wait_for_timeout(2_000)
    page.evaluate(hide, "visible")
    press(page, "a", "Enter")
    says(form, "Saved")
    assert 0 < told("decide")[0]["seconds"] < 1.9


def test_two_tabs_and_a_reload(lab, show, page, told):
    form = show(PAIR, PAIR, delay=1.0)
    page.locator('.lm-MenuBar-itemLabel:text-is("File")').click()
    page.locator('.lm-Menu-itemLabel:text-is("Save Notebook")').click()
    expect(page.locator(".jp-mod-dirty")).to_have_count(0)
    saved = json.loads((lab.root / "form" / "form.ipynb").read_text())
    assert saved["cells"][0]["outputs"][0]["data"]["text/html"] == ["<p>Run the notebook to label.</p>"]
    with page.context.new_page() as second:
        lab.open(second, "form/form.ipynb", run=False, workspace="second")
        other = second.locator(".jl-form")
        other.get_by_role("heading", name="Labelling").click()
        press(second, "b", "n")
        second.keyboard.type("mine")
        enter(page)
        press(page, "a", "Enter")
        press(second, "Control+Enter")
        says(form, "Saved: A is better.")
        expect(other.get_by_role("alert")).to_contain_text("This page was not the current one")
        says(other, "Saved: A is better.")
        press(second, "u")
        says(other, "Chosen: B is better.")  # what was typed here is still here
        expect(other.get_by_label("Note")).to_have_value("mine")
        says(form, "Chosen: A is better.")
    page.reload()
    lab.idle(page)
    says(form, "Chosen: A is better.")
    assert [(each["action"], each.get("choice")) for each in told()] == [
        ("decide", "left"),
        ("decide", "right"),
        ("undo", None),
    ]


def test_a_silent_kernel_is_told_and_sending_again_counts_once(show, page, told):
    form = show(PAIR, PAIR, before=IMPATIENT, delay=1.5)
    press(page, "a", "n")
    page.keyboard.type("kept")
    press(page, "Control+Enter")
    expect(form.get_by_role("alert")).to_contain_text("The kernel does not answer. What you entered is still here")
    expect(form.get_by_label("Note")).to_have_value("kept")
    press(page, "Enter")
    says(form, "Saved: A is better.")
    expect(form.get_by_role("alert")).to_be_hidden()
    page.wait_for_timeout(300)
    assert len(told("decide")) == 1


def test_an_unforeseen_error_keeps_what_was_typed(show, page, told):
    form = show(PAIR, fail="boom")
    press(page, "t", "n")
    page.keyboard.type("kept")
    press(page, "Control+Enter")
    expect(form.get_by_role("alert")).to_contain_text(
        "This did not work: RuntimeError: boom. What you entered is still here"
    )
    expect(form.get_by_label("Note")).to_have_value("kept")
    press(page, "Enter")
    says(form, "Saved: Tie.")
    assert [each["note"] for each in told("decide")] == ["kept", "kept"]


def test_what_was_typed_outlives_a_kernel_that_dies_in_the_middle_of_a_click(lab, show, page):
    form = show(PAIR, before=IMPATIENT, fail="die")
    press(page, "b", "n")
    page.keyboard.type("kept")
    form.get_by_role("button", name="Save").click()
    expect(form.get_by_role("alert")).to_contain_text("The kernel does not answer")
    expect(form.get_by_label("Note")).to_have_value("kept")
    page.locator(".jp-Dialog button").first.click()
    lab.idle(page)
    lab.run_all(page)
    says(form, "Chosen: B is better.")
    expect(form.get_by_label("Note")).to_have_value("kept")


def test_closing_the_labels_is_asked_twice(show, page, told):
    form = show(PAIR)
    press(page, "a", "Enter")
    says(form, "Saved")
    press(page, "Enter")
    form.get_by_role("button", name="Close the labels …").click()
    expect(form.get_by_text("After this no label of the study can be added or changed")).to_be_visible()
    expect(form.get_by_text("Unfinished: nothing.")).to_be_visible()
    expect(form.get_by_role("button", name="Not yet")).to_be_focused()
    press(page, "Escape")
    expect(form.get_by_role("button", name="Close the labels …")).to_be_focused()
    press(page, "Enter")
    form.get_by_role("button", name="Close the labels", exact=True).click()
    expect(form.get_by_text("The labels are closed.")).to_be_visible()
    assert [message.get("confirmed", False) for message in told("close_labels")] == [False, False, True]


def test_what_was_begun_on_an_item_is_not_there_when_it_comes_again(show, page):
    """A planted repeat has the texts of its first showing: only its place in the list is another."""
    form = show(PAIR, PAIR)
    press(page, "a", "Enter")
    says(form, "Saved")
    press(page, "Enter")
    expect(form.get_by_text("Item 2 of 2")).to_be_visible()
    press(page, "ArrowLeft")
    expect(form.get_by_text("Item 1 of 2")).to_be_visible()
    press(page, "b")
    expect(form.get_by_role("radio", name="B is better")).to_be_checked()
    press(page, "ArrowRight")
    expect(form.get_by_text("Item 2 of 2")).to_be_visible()
    for radio in form.get_by_role("radio").all():
        expect(radio).not_to_be_checked()
