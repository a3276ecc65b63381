"""The form's Python side: messages go to the session, its views come back, and no error loses what was typed."""

from __future__ import annotations

import threading
from importlib.resources import files

import nbformat
import pytest
from IPython.core.formatters import DisplayFormatter

from judgelab.errors import LabelError
from judgelab.labelling import form as form_module
from judgelab.labelling.form import LabellingForm


class Counting:
    """A session that counts messages; what it is told to fail with, it raises once."""

    def __init__(self):
        self.messages, self.fail, self.closed = [], None, 0

    def view(self):
        return {"screen": "task", "token": f"t-{len(self.messages)}", "problem": ""}

    def handle(self, message):
        self.messages.append(message)
        if self.fail is not None:
            fail, self.fail = self.fail, None
            raise fail
        return self.view()

    def close(self):
        self.closed += 1


@pytest.fixture
def session():
    return Counting()


@pytest.fixture
def form(session):
    made = LabellingForm(session, fallback="Run this notebook <in JupyterLab> to label.")
    made.sent = []
    made.send = lambda content, buffers=None: made.sent.append(content)
    yield made
    made.close()


def receive(form, **message):
    form._handle_custom_msg(message, [])


def test_the_form_shows_the_sessions_view(form):
    assert form.view == {"screen": "task", "token": "t-0", "problem": ""}


def test_a_message_reaches_the_session_and_its_view_comes_back(form, session):
    receive(form, id="m1", action="decide", token="t-0", choice="left")
    assert session.messages == [{"action": "decide", "token": "t-0", "choice": "left"}]
    assert form.view["token"] == "t-1"
    assert form.view["answered"] == "m1"


def test_a_message_that_comes_twice_counts_once_and_is_answered_twice(form, session):
    for _ in range(2):
        receive(form, id="m1", action="decide", token="t-0")
    assert len(session.messages) == 1
    assert form.view["answered"] == "m1"
    assert form.sent == [{"answered": "m1"}]


def test_an_error_for_the_person_becomes_a_problem_of_the_view(form, session):
    session.fail = LabelError("r01.jsonl: the disk is full")
    receive(form, id="m1", action="decide", token="t-0")
    assert form.view["token"] == "t-1"
    assert form.view["problem"] == "r01.jsonl: the disk is full"
    receive(form, id="m2", action="decide", token="t-1")
    assert form.view["problem"] == ""


def test_an_unforeseen_error_is_told_in_a_line(form, session):
    session.fail = KeyError("x\ny" * 500)
    receive(form, id="m1", action="decide", token="t-0")
    problem = form.view["problem"]
    assert problem.startswith("This did not work: KeyError")
    assert problem.endswith("What you entered is still here; try again.")
    assert len(problem) < 500
    assert "\n" not in problem
    assert form.view["answered"] == "m1"


def test_if_the_session_cannot_tell_its_view_the_one_before_stays(form, session, monkeypatch):
    def broken():
        raise ValueError("no view")

    session.fail = OSError("gone")
    monkeypatch.setattr(session, "view", broken)
    receive(form, id="m1", action="next", token="t-0")
    assert form.view["screen"] == "task"
    assert "gone" in form.view["problem"]


@pytest.mark.parametrize("content", [None, "decide", [1], 7])
def test_what_is_no_message_is_passed_over(form, session, content):
    form._handle_custom_msg(content, [])
    assert session.messages == []


def test_messages_on_several_threads_are_taken_one_at_a_time(form, session):
    busy, most = [0], [0]

    def handle(message):
        busy[0] += 1
        most[0] = max(most[0], busy[0])
        threading.Event().wait(0.01)
        busy[0] -= 1
        return session.view()

    session.handle = handle
    threads = [threading.Thread(target=receive, args=(form,), kwargs={"id": str(n)}) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_closing_closes_the_session(session):
    form = LabellingForm(session, fallback="x")
    form.close()
    form.close()
    assert session.closed


def test_beside_the_widget_stands_a_sentence_for_readers_without_a_kernel(form):
    data, _ = form._repr_mimebundle_()
    assert data["text/plain"] == "Run this notebook <in JupyterLab> to label."
    assert data["text/html"] == "<p>Run this notebook &lt;in JupyterLab&gt; to label.</p>"
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == form.model_id
    shown, _ = DisplayFormatter().format(form)
    assert shown["text/plain"] == data["text/plain"]


def test_a_report_shows_the_sentence_alone(form):
    from judgelab.report.pages import _PRIORITY

    data, metadata = form._repr_mimebundle_()
    output = nbformat.v4.new_output("display_data", data=data, metadata=metadata)
    assert next(mime for mime in _PRIORITY if mime in output.data) == "text/html"


def test_the_scripts_and_the_styles_are_part_of_the_package():
    for name in (*form_module.SCRIPTS, "form.css"):
        assert files("judgelab.labelling").joinpath(name).is_file()


def test_html_enters_the_page_in_one_place():
    """From the field ``html``, which nh3 has cleaned; everything else is written as text."""
    script = "".join(files("judgelab.labelling").joinpath(name).read_text("utf-8") for name in form_module.SCRIPTS)
    assert script.count("innerHTML") == 1
    assert "node.innerHTML = given.html;" in script
    for way in ("outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser", "srcdoc"):
        assert way not in script
