"""The degradation ladder: each version worse than the last, and the record says how."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgelab.judging.ladder import EDITS, CannotDegrade, Edited, degrade, ladder, steps
from judgelab.judging.ladder_edits import STOCK, falsehoods, plain_words, vague

TASKS = Path(__file__).parents[2] / "params" / "ladder" / "tasks.jsonl"
ITEMS = [json.loads(line) for line in TASKS.read_text("utf-8").splitlines()]
RUNGS = ["drop_step", "add_error", "blur", "off_topic", ["drop_step", "add_error"]]  # of params/ladder.yaml
SEEDS = [20261130, *range(11)]  # that of params/ladder.yaml first

LIST = (
    "Do this:\n\n1. Boil 2 litres of water.\n2. Add 30 g of salt.\n\n```\n3. code 5\n```\n\n"
    "3. Wait for 10 minutes.\n   Stir it.\n4. Serve it before 18:30.\n\nIt keeps for 3 days if it is cool."
)
SENTENCES = (
    "Boil 2 litres of water.", "Add at least 30 g of salt.", "Wait for 10 minutes if it is hot.", "Never open the lid.",
    "Serve it before 18:30.", "Keep it below 5 °C.", "Choose Save in the File menu.", "Das dauert 20 Minuten.",
    "يستغرق 15 يوما.", "水を3分待つ。", "Use `pip install 3`.", "It is done 👍🏽.", "See https://a.example/12 first.",
)  # fmt: skip
LAYOUTS = {
    "numbers": lambda lines: "\n".join(f"{place}. {line}" for place, line in enumerate(lines, start=1)),
    "bullets": lambda lines: "\r\n".join(f"- {line}" for line in lines),
    "text": " ".join,
    "paragraphs": "\n\n".join,
    "led": lambda lines: "Do this:\n\n" + "\n".join(f"{place}) {line}" for place, line in enumerate(lines, start=3)),
}
WELL_FORMED = st.builds(
    lambda layout, lines: LAYOUTS[layout](lines),
    st.sampled_from(sorted(LAYOUTS)),
    st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=8, unique=True),
)
PIECES = st.sampled_from(
    re.findall(r"[^ ]+", "1. 2) 10. - * # > | ``` ~~~ `x` **b** <p> 3 5.5 1,500 2019 14:30 20% 3rd two if never "
               "before. is e.g. End. Go! \"Q\" A1 Ctrl+C Menu Open no. 7. שלום مرحبا 你好。 ٣ ² 👍🏽 \xa0 \x1c :")
)  # fmt: skip
GAPS = st.sampled_from([" ", " ", " ", "\n", "\n\n", "\r\n", "\t", "\n    ", ""])
ODD = st.one_of(
    st.lists(st.tuples(PIECES, GAPS), max_size=30).map(lambda pairs: "".join(part for pair in pairs for part in pair)),
    st.text(max_size=60),
)
KINDS = st.sampled_from(EDITS)
few = settings(max_examples=80, deadline=None)


def edit(answer: str, kind: str, seed: int = 7, **options: Any) -> Edited:
    """One edit with the arguments that rarely matter."""
    return degrade(answer, kind, **{"seed": seed, "item_id": "q1", "rung": 1, **options})


def of_seeds(answer: str, kind: str, **options: Any) -> set[str]:
    """The texts that 60 seeds make."""
    return {edit(answer, kind, seed, **options).text for seed in range(60)}


def others(item: dict[str, Any]) -> list[str]:
    """The sentences of the other items' answers."""
    return [words for other in ITEMS if other is not item for words in steps(other["answers"]["rung-0"])]


def versions(item: dict[str, Any], seed: int) -> list[tuple[Edited, ...]]:
    """The ladder of an item as a study makes it."""
    options: dict[str, Any] = {"strangers": others(item), "context": item["reference_context"]}
    return ladder(item["answers"]["rung-0"], RUNGS, seed=seed, item_id=item["item_id"], **options)


# --- single edits ---------------------------------------------------------------------------------------------------


def test_steps_are_items_and_sentences() -> None:
    assert steps(LIST) == [
        "Do this:", "Boil 2 litres of water.", "Add 30 g of salt.", "Wait for 10 minutes.\n   Stir it.",
        "Serve it before 18:30.", "It keeps for 3 days if it is cool.",
    ]  # fmt: skip
    marked = (
        "# Head\n\n> quote\n\n| a | b |\n\n    code\n\n---\n\n👍🏽\n\nOne. Two 2. three\nfour. **Five. Six.** Seven."
    )
    assert steps(marked) == ["One.", "Two 2. three\nfour.", "**Five. Six.**", "Seven."]
    assert steps("") == steps(" \n") == steps("```\nA. B.\n") == []


def test_dropped_step_leaves_no_gap_and_numbers_move_up() -> None:
    assert of_seeds("1. Aa.\n2. Bb.\n3. Cc.\n", "drop_step") == {"1. Aa.\n2. Cc.\n", "1. Aa.\n2. Bb.\n"}
    assert of_seeds("Aa. Bb.\n\nCc. Dd.", "drop_step") == {"Aa.\n\nCc. Dd.", "Aa. Bb.\n\nDd.", "Aa. Bb.\n\nCc."}
    assert of_seeds("Aa.\n\nBb.\n\nCc.", "drop_step") == {"Aa.\n\nCc.", "Aa.\n\nBb."}
    assert of_seeds("- Aa.\n  - Bb.\n- Cc.", "drop_step") == {"- Aa.\n- Cc.", "- Aa.\n  - Bb."}
    nested = of_seeds("8. Aa.\n9. Bb.\n   1. Cc.\n10. Dd.\n12. Ee.", "drop_step")
    assert "8. Aa.\n   1. Cc.\n9. Dd.\n12. Ee." in nested  # 12 is no successor of 10, and stays
    assert all("```\n3. code 5\n```" in text and text.startswith("Do this:") for text in of_seeds(LIST, "drop_step"))


def test_kind_words_are_dropped_last() -> None:
    assert of_seeds("Yes. Wait 3 days. I hope this helps.", "drop_step") == {"Yes. I hope this helps."}
    assert of_seeds("Yes. I hope this helps.", "drop_step") == {"Yes."}


@pytest.mark.parametrize(
    ("sentence", "surest"),
    [
        ("Wait 30 minutes.", {"90", "150", "10", "6", "hours"}),
        ("Within 10 days.", {"30", "50", "weeks"}),  # "within 2 days" would do no harm
        ("At least 10 days.", {"At most", "2"}),  # nor would "at least 30 days"
        ("It takes two to 4 hours.", {"six to 12", "ten to 20", "days"}),
        ("It costs 1,500 euros.", {"4,500", "7,500", "500", "375", "300"}),
        ("Add 1.5 litres.", {"4.5", "7.5", "0.5", "0.375", "0.3", "millilitres"}),
        ("Since 2019.", {"2014", "2012", "2016"}),
        ("Set 80 % there.", {"20", "16"}),
        ("Do not collect it.", {"C"}),
        ("Never leave before it is dry.", {"Always", "after", "wet"}),
        ("Lift it after 2 hours.", {"6", "10", "days"}),
        ("The 3rd of 1 in A4 with `9 x` at https://x.example/7/8 on v2.0 and 1:2.", set()),
        ("The tin can is.", set()),
    ],
)
def test_falsehoods(sentence: str, surest: set[str]) -> None:
    draws = (lambda *_, value=value: value for value in (0.0, 0.3, 0.5, 0.7, 0.99))
    assert {change.after for draw in draws for change in falsehoods(sentence, draw)[0]} == surest


def test_falsehoods_prefer_what_the_context_holds() -> None:
    first, second, third = falsehoods(
        "Open Save As in the File menu within 5 days; it is 7 km.",
        lambda *_: 0.0,
        "The File menu, the Edit menu. 5 days.",
    )
    assert {change.after for change in first} == {"Edit", "15", "weeks"}
    assert {change.after for change in second} == {"21", "m"}
    assert [change.after for change in third] == ["is not"]
    assert falsehoods("Start at 14:30.", lambda *_: 0.0)[0][0].after == "16:30"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Wait for 2 to 3 hours.", "Wait for some time."),
        ("Add about 250 ml of oil and 2 eggs.", "Add some oil and some eggs."),
        ("If it leaks, close it until 14:30.", "In some cases, close it for long enough."),
        ("Be there at 14:30, or once it rains.", "Be there at some point, or at some point."),
        ("Every 4 weeks, 3 cm deep, at 60 °C.", "Every so often, rather deep, at a certain temperature."),
        ("The first 10 rows are on page 3.", "The first rows are on a certain page."),
        ("Press Ctrl+Shift+F in the Page Layout tab.", "Press the right keys in the right tab."),
        ("Pay 20 euros or 5 % of it, at most 3 times.", "Pay a certain sum or part of it, a few times."),
        ("Type “Totals” in A1.", "Type the right entry in the right place."),
        ("Run `sleep 5` and read https://x.example/3.", "Run `sleep 5` and read https://x.example/3."),
    ],
)  # fmt: skip
def test_vague_words(before: str, after: str) -> None:
    text = before
    for change in reversed(vague(before)):
        text = text[: change.begin] + change.after + text[change.end :]
    assert text == after
    assert all(one.end <= other.begin for one, other in pairwise(vague(before)))


def test_blur_spoils_the_sentence_with_most_figures() -> None:
    assert of_seeds("Go if you can. Wait 3 days. Mix 2 g of salt and 3 g of oil.", "blur") == {
        "Go if you can. Wait 3 days. Mix some salt and some oil."
    }


def test_strangers_and_stock() -> None:
    strangers = ["2. Rinse it\n   well", "A.", "```", "| a |", " "]
    assert of_seeds("1. A.\n2. B.", "off_topic", strangers=strangers) == {
        "1. Rinse it well.\n2. B.", "1. A.\n2. Rinse it well."
    }  # fmt: skip
    assert {text.removesuffix(" Bb.").removeprefix("Aa. ") for text in of_seeds("Aa. Bb.", "off_topic")} == set(STOCK)
    assert plain_words("Only 8.") == "Only 8."
    assert plain_words("1. - nested") == ""


def test_scramble_moves_the_words_and_keeps_the_numbers() -> None:
    answer = "Do this:\n1. A.\n2. B.\n3. C.\nBye."
    for text in of_seeds("Do this:\n\n1. A.\n2. B.\n3. C.\n\nBye. Now.", "scramble"):
        found = re.fullmatch(r"Do this:\n\n1\. ([ABC])\.\n2\. ([ABC])\.\n3\. ([ABC])\.\n\nBye\. Now\.", text)
        assert found
        assert sorted(found.groups()) == ["A", "B", "C"]
        assert found[1] != "A"
    assert of_seeds("1. A.\n2. B.\n3. A.", "scramble") == {"1. B.\n2. A.\n3. A."}
    assert edit(answer, "scramble").what.startswith("put in the order ")


def test_truncate_cuts_in_the_middle_of_a_late_sentence() -> None:
    for text in of_seeds(LIST, "truncate"):
        assert LIST.startswith(text)
        assert text.startswith(LIST[: LIST.index("3. Wait for")])
        assert text[-1].isalnum()
    assert of_seeds("One two three four.", "truncate") == {"One", "One two"}


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        ("", EDITS),
        (" \n\t", EDITS),
        ("```\n1. Wait 3 days.\n```", EDITS),
        ("👍🏽", EDITS),
        ("Wait 3 days if you can.", ("drop_step", "off_topic", "scramble")),
        ("Hello there.", EDITS),
        ("1. Go.\n2. Go.", ("scramble", "blur", "add_error", "truncate")),
        ("可以。请在三十天内退回。", EDITS),
    ],
)
def test_what_cannot_be_degraded(answer: str, kinds: tuple[str, ...]) -> None:
    for kind in kinds:
        with pytest.raises(CannotDegrade, match=rf"^rung 1, {kind}: (?:the|there|no) "):
            edit(answer, kind)
        with pytest.raises(CannotDegrade, match=rf"^rung 1, {kind}: "):
            ladder(answer, [kind], seed=7, item_id="q1")


def test_unknown_kinds_and_empty_rungs() -> None:
    with pytest.raises(ValueError, match="no edit is called 'worsen'"):
        edit("A. B.", "worsen")
    with pytest.raises(ValueError, match="no edit is called 'worsen'"):
        ladder("A. B.", ["worsen"], seed=7, item_id="q1")
    with pytest.raises(ValueError, match="a rung without an edit"):
        ladder("A. B.", ["drop_step", []], seed=7, item_id="q1")
    assert ladder("A. B.", [], seed=7, item_id="q1") == []


# --- properties -----------------------------------------------------------------------------------------------------


@few
@given(answer=st.one_of(WELL_FORMED, ODD), kind=KINDS, seed=st.integers(0, 99), strangers=st.lists(ODD, max_size=3))
def test_every_edit_changes_the_answer_as_its_record_says(
    answer: str, kind: str, seed: int, strangers: list[str]
) -> None:
    try:
        edited = edit(answer, kind, seed, strangers=strangers)
    except CannotDegrade:
        return
    assert edited == edit(answer, kind, seed, strangers=strangers)
    assert edited.kind == kind
    assert edited.text != answer
    assert edited.text.strip()
    assert edited.applied_to(answer) == edited.text
    assert 1 <= edited.place <= len(steps(answer))
    if kind in ("drop_step", "truncate"):
        assert len(edited.text) < len(answer)
    if kind == "off_topic":
        assert edited.after in {*map(plain_words, strangers)} | set(STOCK)
    else:  # strangers have no way into the answer
        assert edited == edit(answer, kind, seed)


@few
@given(
    answer=WELL_FORMED,
    kinds=st.lists(st.one_of(KINDS, st.lists(KINDS, min_size=1, max_size=3)), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
def test_nothing_is_mended(answer: str, kinds: list[str | list[str]], seed: int) -> None:
    try:
        rungs = ladder(answer, kinds, seed=seed, item_id="q1")
    except CannotDegrade as reason:
        assert re.match(r"rung \d, \w+: ", str(reason))  # noqa: PT017
        return
    assert rungs == ladder(answer, kinds, seed=seed, item_id="q1")
    wanted = [[kind] if isinstance(kind, str) else kind for kind in kinds]
    assert [[edited.kind for edited in rung] for rung in rungs] == wanted
    edits = [edited for rung in rungs for edited in rung]
    texts = [answer, *(edited.text for edited in edits)]
    assert len(set(texts)) == len(texts)
    for old, edited in zip(texts, edits, strict=False):
        assert edited.applied_to(old) == edited.text
    assert sum(edited.kind == "scramble" for edited in edits) <= 1
    for place, edited in enumerate(edits):
        if edited.kind in ("add_error", "off_topic"):
            spoilt = steps(edited.text)[edited.place - 1]
            for later in edits[place + 1 :]:
                if later.kind == "truncate":
                    break  # what stands last may be cut away
                assert spoilt in later.text


def test_the_first_edit_of_a_rung_is_that_of_degrade() -> None:
    first, second = ladder(LIST, ["blur", ["add_error", "drop_step"]], seed=3, item_id="q9")
    assert first == (degrade(LIST, "blur", seed=3, item_id="q9", rung=1),)
    assert [edited.kind for edited in second] == ["add_error", "drop_step"]


def test_other_draws_are_tried_where_the_first_leaves_nothing() -> None:
    # One sentence only can be falsified: a draw that drops or replaces it is given up.
    answer = "1. Go on.\n2. Wait 3 days.\n3. Go back.\n4. Go home."
    for seed in range(20):
        rungs = ladder(answer, ["drop_step", "off_topic", "add_error"], seed=seed, item_id="q1")
        assert rungs[-1][0].kind == "add_error"
    with pytest.raises(CannotDegrade, match="add_error: no number"):
        ladder(answer, ["add_error", "add_error"], seed=1, item_id="q1")


def test_seed_item_and_rung_change_the_choices() -> None:
    for kind in EDITS:
        assert len(of_seeds(LIST, kind)) > 1
        assert len({edit(LIST, kind, item_id=f"q{place}").text for place in range(30)}) > 1
        assert len({edit(LIST, kind, rung=rung).text for rung in range(30)}) > 1


def test_the_same_in_every_process() -> None:
    code = (
        "import json, sys; from judgelab.judging.ladder import EDITS, ladder\n"
        "rungs = ladder(json.load(sys.stdin), EDITS, seed=5, item_id='q1'); print(json.dumps(rungs[-1][-1].text))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(LIST), capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )  # fmt: skip
    assert json.loads(run.stdout) == ladder(LIST, EDITS, seed=5, item_id="q1")[-1][-1].text


def test_a_record_fits_its_text_only() -> None:
    edited = edit("Wait 3 days. Go.", "blur")
    assert edited.applied_to("Wait 3 days. Go.") == "Wait some time. Go."
    with pytest.raises(ValueError, match="does not hold '3 days'"):
        edited.applied_to("Wait here.")


# --- the ten items --------------------------------------------------------------------------------------------------


def test_the_items_are_what_the_readme_says() -> None:
    assert [item["item_id"] for item in ITEMS] == [f"ladder-{place:02d}" for place in range(1, 11)]
    assert {item["category"] for item in ITEMS} == {"household", "office software", "travel"}
    for item in ITEMS:
        assert set(item) == {"item_id", "task", "reference_context", "category", "answers"}
        assert list(item["answers"]) == ["rung-0"]
        answer = item["answers"]["rung-0"]
        assert 60 <= len(answer.split()) <= 90
        assert len(steps(answer)) == 6
        assert 1 <= len(steps(item["task"])) <= 2
        assert 2 <= len(steps(item["reference_context"])) <= 4


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["item_id"])
def test_every_number_of_an_answer_is_in_its_context(item: dict[str, Any]) -> None:
    known = set(re.findall(r"\d[\d,:]*", item["reference_context"] + " " + item["task"]))
    answer = " ".join(steps(item["answers"]["rung-0"]))
    assert set(re.findall(r"(?<![A-Z])\d[\d,:]*(?<!,)", answer)) <= {number.rstrip(",:") for number in known}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item["item_id"])
def test_every_item_has_six_versions(item: dict[str, Any]) -> None:
    ladders = [versions(item, seed) for seed in SEEDS]
    assert len({rungs[-1][-1].text for rungs in ladders}) > len(SEEDS) // 2
    for rungs in ladders:
        texts = [item["answers"]["rung-0"], *(rung[-1].text for rung in rungs)]
        assert len(set(texts)) == 6
        assert [len(steps(text)) for text in texts] == [6, 5, 5, 5, 5, 4]
        edits = [edited for rung in rungs for edited in rung]
        # Each edit has a sentence of its own: nothing is spoilt twice, and all of it is still to be read at the end.
        spoilt = [steps(edited.text)[edited.place - 1] for edited in edits if edited.kind != "drop_step"]
        assert sorted(spoilt) == sorted(steps(texts[-1]))
        for edited in edits:
            if edited.kind == "add_error":  # what became false is in the context, so the context contradicts it
                right = edited.before if len(edited.before) > 1 or edited.before.isdigit() else edited.after
                assert re.search(rf"(?<!\w){re.escape(right)}", item["reference_context"], re.IGNORECASE), edited.what
