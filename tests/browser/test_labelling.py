"""People label in notebook 02, in a real JupyterLab: two reviewers, an adjudicator, and what a kernel may do meanwhile.

What each person prefers is fixed beforehand by system. The sides are read from the answers that the page shows, so that
the expected files owe nothing to the code that drew the sides.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter

import pytest
from playwright.sync_api import Page, expect

from .conftest import Lab
from .hands import KEYS, NAMES, Hands, restart, run_by_keyboard, run_cell
from .studies import EXPLANATION, LabellingStudy, labelling_study

pytestmark = pytest.mark.slow


def prefers(place: int, reviewer: str) -> str:
    """What a reviewer prefers of the evaluation item at a place, 0 to 11; anna cannot judge the one at 4."""
    if reviewer == "ben" and place in DISPUTED:
        return DISPUTED[place][0]
    return ("ALPHA", "BETA", "TIE")[place % 3]


DISPUTED = {1: ("TIE", "ALPHA"), 6: ("BETA", "BETA"), 11: ("ALPHA", "TIE")}  # ben's label, and the adjudicated one
OTHER = {"ALPHA": "TIE", "TIE": "BETA", "BETA": "ALPHA"}  # what anna says the second time
REASON = "Both are in a dialect that I do not read."
SO_FAR = (
    "anna: 12 of 12 decided, 1 of them as cannot judge; 1 of 1 decided a second time",
    "ben: 12 of 12 decided; 1 of 1 decided a second time",
    "exact agreement is 8/11 = 0.727 (95 % interval [0.434, 0.903], n = 11 items)",
    "Looking does not end a study",
    "0 of 3 are adjudicated, 3 to go",
)
Row = tuple[str, str, str, str, int]  # item, reviewer, preference, is_adjudicated, repeat


def by_mouse(hands: Hands, preference: str) -> None:
    """Choose and save by mouse."""
    hands.chooses(hands.side(preference))
    hands.clicks("Save")
    hands.says("Saved")


def by_keyboard(hands: Hands, preference: str) -> None:
    """Choose, save and go on by the keyboard."""
    hands.presses({"left": "a", "right": "b", "tie": "t"}[hands.side(preference)], "Enter")
    hands.says("Saved")


@pytest.fixture(scope="module")
def desk(lab):
    """Two systems, 16 tickets of which 4 are for training: frozen, and executed to stage 02 without a person."""
    study = labelling_study(lab.root, "desk", training=2, repeats_share=0.1)
    told = study.stages(None, "02")
    assert "not closed yet" in told[-1]
    return study


def anna_labels(lab: Lab, page: Page, desk: LabellingStudy) -> list[Row]:
    """Anna labels by mouse: training, a slip that she undoes, a note, a reload, second thoughts, and a reason."""
    evaluated, rows = desk.split("evaluation"), []
    seen: Counter[str] = Counter()
    lab.open(page, desk.at())
    anna = Hands(page, desk)
    anna.form.get_by_label("Your name").fill("anna")
    anna.clicks("Start")
    for number, preference, told in ((1, "BETA", "Expected: {}"), (2, "ALPHA", "As expected: {}")):
        anna.waits_for(f"Training {number} of 2")
        assert anna.item in desk.split("development")
        by_mouse(anna, preference)
        expect(anna.form.get_by_text(told.format(NAMES[anna.side("ALPHA")]), exact=True)).to_be_visible()
        expect(anna.form.get_by_text(EXPLANATION)).to_be_visible()
        if number == 1:
            anna.picture("feedback")
        anna.clicks("Next")
    for number in range(1, 14):
        anna.waits_for(f"Item {number} of 13")
        item = anna.item
        place = evaluated.index(item)
        preference = prefers(place, "anna")
        if number == 2:
            by_mouse(anna, OTHER[preference])
            anna.clicks("Undo")
            anna.says("Chosen")
        if number == 3:
            anna.form.get_by_label("Note").fill("The second step\nis missing.")
            anna.chooses(anna.side(preference))
            anna.picture("labelling")
        if number == 7:  # the notebook was not saved: the form is a run of the cells away
            before = desk.journal("anna")
            page.reload()
            lab.idle(page)
            lab.run_all(page)
            anna.form.get_by_label("Your name").fill("anna")
            anna.clicks("Start")
            expect(anna.form).to_contain_text("anna has 8 of 15 decisions")
            anna.form.get_by_role("button", name="Go on as anna").click()
            anna.waits_for("Item 7 of 13")
            assert anna.item == item
            assert desk.journal("anna")[: len(before)] == before
        if number == 9:
            anna.clicks("Back")
            expect(anna.form).to_contain_text("kept beside the first one")
            by_mouse(anna, OTHER[prefers(evaluated.index(anna.item), "anna")])
            anna.clicks("Next")
            anna.waits_for("Item 9 of 13")
            assert anna.item == item
        if place == 4:
            anna.chooses("cannot_judge")
            anna.clicks("Save")
            anna.refuses("Say in the reason why it cannot be judged")
            anna.form.get_by_label("Why it cannot be judged").fill(REASON)
            anna.clicks("Save")
            anna.says("Saved: Cannot judge")
        else:
            seen[item] += 1
            preference = preference if seen[item] == 1 else OTHER[preference]
            by_mouse(anna, preference)
            rows.append((item, "anna", preference, "false", seen[item]))
        anna.clicks("Next")
    expect(anna.form.get_by_text("15 of 15 decided")).to_be_visible()
    assert sorted(seen.values()) == [1] * 10 + [2]
    notes = {record["note"] for record in desk.journal("anna") if record["event"] == "decision"}
    assert notes == {"", "The second step\nis missing."}
    return rows


def ben_labels(lab: Lab, tab: Page, desk: LabellingStudy) -> list[Row]:
    """Ben labels by keyboard alone, in another kernel, which dies once and is restarted once."""
    evaluated, rows = desk.split("evaluation"), []
    seen: Counter[str] = Counter()
    lab.open(tab, desk.at(desk.copy("ben")), run=False, workspace="ben")
    run_by_keyboard(tab)
    ben = Hands(tab, desk)
    journal = desk.run / "labelling" / "anna.jsonl"
    before = journal.read_bytes()
    ben.begins("anna", again=True, refused=True)  # whose session is open in the first kernel
    assert "another browser tab" in ben.refuses("is writing under the name 'anna'")
    assert journal.read_bytes() == before
    ben.begins("ben")
    for number in (1, 2):
        ben.waits_for(f"Training {number} of 2")
        by_keyboard(ben, "ALPHA")
        ben.presses("Enter")
    for number in range(1, 14):
        ben.waits_for(f"Item {number} of 13")
        item = ben.item
        preference = prefers(evaluated.index(item), "ben")
        seen[item] += 1
        rows.append((item, "ben", preference, "false", seen[item]))
        if number == 4:  # looks back and comes again
            ben.presses("ArrowLeft")
            expect(ben.form).to_contain_text("kept beside the first one")
            ben.presses("ArrowRight")
            ben.waits_for("Item 4 of 13")
        if number == 6:
            by_keyboard(ben, OTHER[preference])
            ben.presses("u")
            ben.says("Chosen")
        if number == 8:
            ben.presses("n")
            tab.keyboard.type("a b t: just a note")
            ben.presses("Escape")
        if number == 9:  # whether the key came before the restart, the journal knows
            ben.presses(KEYS[ben.side(preference)], "Enter")
            restart(tab)
            goes_on(lab, ben)
            if ben.place == "Item 10 of 13":
                continue
            assert ben.place == "Item 9 of 13"
        by_keyboard(ben, preference)
        if number == 5:  # the kernel dies behind what it has acknowledged
            kill(desk, "ben")
            tab.locator(".jp-Dialog button").first.click()
            goes_on(lab, ben)
            expect(ben.form).to_contain_text("ended without closing; its decisions are kept")
        else:
            ben.presses("Enter")
    expect(ben.form.get_by_text("15 of 15 decided")).to_be_visible()
    assert sorted(seen.values()) == [1] * 11 + [2]
    return rows


def cleo_adjudicates(page: Page, desk: LabellingStudy) -> list[Row]:
    """Cleo decides where the two differ, and nowhere else, by keyboard, and closes the labels."""
    evaluated, rows = desk.split("evaluation"), []
    cleo = Hands(page, desk, "Adjudication")
    cleo.begins("cleo")
    for number in range(1, 4):
        cleo.waits_for(f"Item {number} of 3")
        item = cleo.item
        place = evaluated.index(item)
        given = sorted(NAMES[cleo.side(prefers(place, who))] for who in ("anna", "ben"))
        shown = cleo.form.get_by_role("region", name="Initial labels, rule and rubric").inner_text()
        assert sorted(re.findall(r"Label \d: (.*)", shown)) == given
        assert not re.search("anna|ben", cleo.form.inner_text())
        if number == 1:
            cleo.picture("adjudication")
        by_keyboard(cleo, DISPUTED[place][1])
        rows.append((item, "cleo", DISPUTED[place][1], "true", 1))
        cleo.presses("Enter")
    assert {row[0] for row in rows} == {evaluated[place] for place in DISPUTED}
    cleo.clicks("Close the labels …")
    expect(cleo.form).to_contain_text("This closes the labels of the study with reviewers: 2, ")
    cleo.clicks("Close the labels")
    expect(cleo.form).to_contain_text("Closed with reviewers: 2, ")
    expect(cleo.form).to_contain_text("adjudicated labels: 3")
    return rows


def eve_checks(lab: Lab, page: Page, desk: LabellingStudy) -> None:
    """Eve judges five verdicts again, blind."""
    lab.open(page, desk.at(desk.spot_check()), workspace="spot")
    eve = Hands(page, desk, "Spot check")
    eve.begins("eve")
    for number in range(1, 6):
        eve.waits_for(f"Item {number} of 5")
        assert not re.search("longest|coin", eve.form.inner_text())
        by_keyboard(eve, "ALPHA")
        eve.presses("Enter")
    expect(eve.form.get_by_text("5 of 5 decided")).to_be_visible()
    decided = [record for record in desk.journal("spot_check/eve") if record["event"] == "decision"]
    assert [record["shown"][record["choice"] == "right"] for record in decided] == ["ALPHA"] * 5
    assert re.search(r"\d/5 = ", run_cell(page, "spot_check_result("))


def test_two_reviewers_and_an_adjudicator_label_a_study(lab, page, desk):
    evaluated = desk.split("evaluation")
    assert len(evaluated) == 12
    rows = anna_labels(lab, page, desk)
    with page.context.new_page() as tab:
        rows += ben_labels(lab, tab, desk)
        counts = run_cell(page, "labels_so_far(trial)").split()
        assert [counts[counts.index(name) :][1:5] for name in ("anna", "ben")] == [
            ["all", "12", "12", "1"],
            ["all", "12", "12", "0"],
        ]
        told = run_cell(page, "labelling_sentences(so_far")
        for sentence in SO_FAR:
            assert sentence in told
        rows += cleo_adjudicates(page, desk)
        tab.keyboard.press("ArrowLeft")
        expect(Hands(tab, desk).form).to_contain_text("The labels of this study are closed")
    rows.sort(key=lambda row: (evaluated.index(row[0]), row[3], row[1], row[4]))
    lines = [f"{item},{who},,,{preference},{late},human,{again}" for item, who, preference, late, again in rows]
    header = "item_id,reviewer_id,alpha_score,beta_score,preference,is_adjudicated,provenance,repeat"
    assert (desk.run / "human_labels.csv").read_text(encoding="utf-8").splitlines() == [header, *lines]
    assert [line[:2] for line in desk.stages("02", "05")] == ["02", "03", "04", "05"]
    agreement = [row for row in desk.rows("tables/agreement.csv") if row["measure"] == "exact_agreement"]
    used = {
        (row["judge"], row["pass"]): (row["n_used"], row["n_excluded"], row["provenance"])
        for row in agreement
        if row["slice"] == "all" and row["pass"] in ("direct", "original")
    }
    wanted = [(judge, name) for judge in ("longest", "coin") for name in ("direct", "original")]
    assert used == dict.fromkeys(wanted, ("12", "0", "human"))
    eve_checks(lab, page, desk)


RANKS = (
    {"ALPHA": 2, "BETA": 2, "GAMMA": 1},
    {"ALPHA": 3, "BETA": 1, "GAMMA": 2},
    {"ALPHA": 1, "BETA": 3, "GAMMA": 1},
)


def test_answers_of_three_systems_are_ranked_by_keyboard(lab, page):
    order = labelling_study(
        lab.root, "order", systems=3, items=3, reviewers=1, share=0, mode="ranking", training=0, repeats_share=0
    )
    order.freeze()
    lab.open(page, order.at(order.open_with_parameters()))
    dora = Hands(page, order, "Ranking")
    dora.begins("dora")
    for number in range(1, 4):
        dora.waits_for(f"Item {number} of 3", "Ranks missing: 3")
        ranks = RANKS[int(dora.item[1:]) - 1]
        dora.presses(*(str(ranks[system]) for system in dora.shown))
        dora.says("All ranked")
        if number == 1:
            dora.picture("ranking")
        dora.presses("Enter")
        dora.says("Saved: Order:")
        dora.presses("Enter")
    dora.clicks("Close the labels …")
    dora.clicks("Close the labels")
    expect(dora.form).to_contain_text("Closed with reviewers: 1, initial labels: 9")
    lines = [f"t0{at},dora,{system},{rank}" for at, ranks in enumerate(RANKS, 1) for system, rank in ranks.items()]
    written = (order.run / "expert_ranks.csv").read_text(encoding="utf-8").splitlines()
    assert written == ["item_id,reviewer_id,system,rank", *lines]
    names = ("item_id", "system_x", "system_y", "preference")
    assert [tuple(row[name] for name in names) for row in order.rows("human_labels.csv")] == [
        (f"t0{at}", x, y, "TIE" if ranks[x] == ranks[y] else min(x, y, key=lambda name: ranks[name]))
        for at, ranks in enumerate(RANKS, 1)
        for x, y in (("ALPHA", "BETA"), ("ALPHA", "GAMMA"), ("BETA", "GAMMA"))
    ]


def kill(study: LabellingStudy, reviewer: str) -> None:
    """Kill the kernel in which a person labels, whose process the lock beside the journal names."""
    lock = study.run / "labelling" / f".{reviewer}.lock"
    os.kill(json.loads(lock.read_text())["process"], signal.SIGKILL)


def goes_on(lab: Lab, hands: Hands) -> None:
    """Run the cells again in a new kernel, and go on under the same name."""
    old = hands.page.locator(".jl-form[data-old]")
    hands.page.locator(".jl-form").evaluate_all("forms => forms.forEach(form => (form.dataset.old = ''))")
    lab.idle(hands.page)
    lab.run_all(hands.page)
    expect(old).to_have_count(0)
    hands.begins("ben", again=True)
    expect(hands.form.get_by_role("progressbar")).to_be_visible()
