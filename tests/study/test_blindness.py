"""The scan for what gives an author away."""

from __future__ import annotations

import pytest

from judgelab.study.blindness import apply_masks, scan_answers, scan_text
from judgelab.study.items import read_items


def found(project, text, **changes):
    frame = scan_text(text, project.study(**changes))
    return list(zip(frame["kind"], frame["term"], strict=True))


@pytest.mark.parametrize(
    ("text", "kind", "term"),
    [
        ("I asked ChatGPT-4 about it.", "model_name", "ChatGPT-4"),
        ("GPT-4 says so", "model_name", "GPT-4"),
        ("gpt 3.5 turbo says so", "model_name", "gpt 3.5 turbo"),
        ("made with gpt-4o.", "model_name", "gpt-4o"),
        ("Claude would say", "model_name", "Claude"),
        ("GEMINI would say", "model_name", "GEMINI"),
        ("Llama 3 would say", "model_name", "Llama 3"),
        ("LLaMA2 would say", "model_name", "LLaMA2"),
        ("see openai for this", "model_name", "openai"),
        ("As an AI language model, I cannot", "phrase", "As an AI language model"),
        ("as a large language model", "phrase", "as a large language model"),
        ("I was trained by people", "phrase", "I was trained by"),
        ("My knowledge cutoff is May", "phrase", "My knowledge cutoff"),
        ("I’m an AI, so", "phrase", "I’m an AI"),
        ("What ALPHA wrote", "system_name", "ALPHA"),
        ("what beta wrote", "system_name", "beta"),
    ],
)
def test_what_gives_an_author_away_is_found(project, text, kind, term):
    assert found(project, text) == [(kind, term)]


@pytest.mark.parametrize(
    "text",
    [
        "a llama and an alpaca graze beside a falcon",
        "the mistral blows, said the bard",
        "the alphabet, betas and alphanumeric keys",
        "an egpt-4 and a gpt-4x cable",
        "I was trained as a nurse",
        "as an aircraft model",
        "",
    ],
)
def test_ordinary_text_is_not_flagged(project, text):
    assert found(project, text) == []


def test_names_of_the_protocol(project):
    changes = {
        "systems": {"ALPHA": {"family": "Orchid", "names": ["Helper+"]}, "BETA": {"family": "llama"}},
        "blindness": {"names": ["Acme (Ltd.)"], "phrases": ["my makers in Basel"]},
    }
    text = "Helper+ of Acme (Ltd.), an orchid, a llama, a Llama; my makers in basel."
    assert found(project, text, **changes) == [
        ("system_name", "Helper+"),
        ("system_name", "Acme (Ltd.)"),
        ("family", "orchid"),
        ("family", "Llama"),
        ("phrase", "my makers in basel"),
    ]


def test_start_and_excerpt(project):
    text = f"{'a ' * 40}GPT-4\n\n{'b ' * 40}"
    (row,) = scan_text(text, project.study()).to_dict("records")
    assert text[row["start"] :].startswith("GPT-4")
    assert row["excerpt"] == f"…{'a ' * 15}GPT-4 {'b ' * 13}b…"


def test_any_systems_name_counts_in_every_answer(project):
    project.write_items(
        [project.item(1, answer_alpha="BETA is worse.", answer_beta="I am <b>BETA</b>."), project.item(2)]
    )
    study = project.study()
    frame = scan_answers(read_items(study).items, study)
    assert frame[["item_id", "system", "kind", "term"]].to_numpy().tolist() == [
        ["i01", "ALPHA", "system_name", "BETA"],
        ["i01", "BETA", "system_name", "BETA"],
    ]


def test_no_find_keeps_the_columns(project):
    study = project.study()
    assert scan_answers([], study).columns.tolist() == ["item_id", "system", "kind", "term", "start", "excerpt"]
    assert scan_text("", study).columns.tolist() == ["kind", "term", "start", "excerpt"]


def test_what_is_masked_is_not_found_again(project):
    text, counts = apply_masks("GPT-4 and gpt-4, not GPT-40", {"GPT-4": "the model", "absent": "x"})
    assert text == "the model and the model, not GPT-40"
    assert counts == {"GPT-4": 2}
