"""Dollar signs in texts are money, and stay what they are in JupyterLab."""

from __future__ import annotations

import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell

from judgelab.report import formulas
from judgelab.report.formulas import tables_as_text, without_formulas
from judgelab.report.sentences import Answers, Sentences
from judgelab.report.transformations_shown import transformations_table

OPENS = '<div class="mathjax_ignore">'


@pytest.mark.parametrize("text", ["$5 or $6", r"\(x\)", r"\[x\]", r"\begin{array}{c}", r"\ref{x}"])
def test_what_might_begin_a_formula_is_kept_from_the_typesetter(text):
    assert without_formulas(f"<p>{text}</p>") == f"{OPENS}<p>{text}</p></div>"
    assert Sentences([text])._repr_html_().startswith(OPENS)
    assert Sentences([text, "two"])._repr_html_().startswith(OPENS)
    assert Answers([(text, ["yes"])])._repr_html_().startswith(OPENS)


@pytest.mark.parametrize("text", ["", "5 or 6", r"C:\files\new", "(x)"])
def test_other_text_is_left_alone(text):
    assert without_formulas(text) == text


def test_answers_before_and_after_a_probe_are_no_formulas():
    row = {"probe": "padding", "item_id": "a", "system": "X", "before": "$5", "after": "$5 $6", "words_added": 1}
    assert transformations_table(pd.DataFrame([row]))._repr_html_().startswith(OPENS)


def test_a_kernel_shows_tables_without_formulas(monkeypatch):
    shell = InteractiveShell()
    monkeypatch.setattr(formulas, "get_ipython", lambda: shell)
    tables_as_text()
    tables_as_text()
    show = shell.display_formatter.format
    priced, plain = pd.DataFrame({"answer": ["$5 or $6"]}), pd.DataFrame({"answer": ["5 or 6"]})
    assert show(priced)[0]["text/html"] == f"{OPENS}{priced._repr_html_()}</div>"
    assert show(plain)[0]["text/html"] == plain._repr_html_()
    with pd.option_context("display.notebook_repr_html", False):
        assert "text/html" not in show(priced)[0]


def test_without_a_kernel_nothing_happens(monkeypatch):
    monkeypatch.setattr(formulas, "get_ipython", lambda: None)
    tables_as_text()
