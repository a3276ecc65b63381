"""The form in which a person labels, inside a notebook: it shows what a session says and tells it what was done.

All that counts happens in the session, which is plain Python; the form (``form.js`` and its parts) draws its view and
keeps what was typed until the session has taken it. One form serves every kind of session: pairs, ranking,
adjudication, spot check.
"""

from __future__ import annotations

import html
import threading
from pathlib import Path
from typing import Any, Protocol

import anywidget
import traitlets

from judgelab.errors import JudgelabError

__all__ = ["LabellingForm", "Session"]

SCRIPTS = ("form_base.js", "form_parts.js", "form_screens.js", "form.js")  # one module in four files
LONGEST_PROBLEM = 300  # characters of an unforeseen error that are shown


class Session(Protocol):
    """What a form needs of a session."""

    def view(self) -> dict[str, Any]:
        """What to show now, as values of JSON."""

    def handle(self, message: dict[str, Any]) -> dict[str, Any]:
        """Do what a person asked for; the view after it. A person's mistake is a ``problem`` of the view, no error."""

    def close(self) -> None:
        """Release what the session holds. Closing twice does nothing."""


class LabellingForm(anywidget.AnyWidget):
    """A form for one session. As the last value of a cell it is shown below the cell.

    Parameters
    ----------
    session : Session
        What is shown and what is done.
    fallback : str
        A sentence to stand in the form's place wherever no kernel runs: in an executed notebook, in a report.

    Attributes
    ----------
    view : dict
        What the form shows: the session's view, with the message that it answers. Set by the session's answers only.
    """

    _esm = "\n".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in SCRIPTS)
    _css = Path(__file__).with_name("form.css")

    view = traitlets.Dict().tag(sync=True)

    def __init__(self, session: Session, *, fallback: str) -> None:
        self._session, self._fallback = session, fallback
        self._one_at_a_time = threading.RLock()  # messages may come on a thread of their own, beside a running cell
        self._answered = ""
        super().__init__(view=session.view())
        self.on_msg(self._receive)

    def close(self) -> None:
        """Close the session, then the form. Closing twice does nothing."""
        with self._one_at_a_time:
            self._session.close()
            super().close()

    def _receive(self, _widget: Any, message: Any, _buffers: Any) -> None:
        """Answer one message. A message that comes a second time (sent again, because no answer came) counts once."""
        if not isinstance(message, dict):
            return
        with self._one_at_a_time:
            name = str(message.get("id", ""))
            if not name or name != self._answered:
                view = self._after({key: value for key, value in message.items() if key != "id"})
                self.view, self._answered = view | {"answered": name}, name
            else:
                self.send({"answered": name})

    def _after(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._session.handle(message)
        except JudgelabError as error:
            return self._with_problem(str(error))
        except Exception as error:  # whatever it is, what was typed stays in the form and may be sent again
            self.log.exception("labelling: a message was not handled")
            told = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST_PROBLEM]
            return self._with_problem(f"This did not work: {told}. What you entered is still here; try again.")

    def _with_problem(self, problem: str) -> dict[str, Any]:
        """The session's present view, or, if it cannot tell it, the view before, with a problem."""
        try:
            view = self._session.view()
        except Exception:
            view = dict(self.view)
        return view | {"problem": problem}

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The form for a running notebook; beside it the fallback, as text and as HTML, for every other reader."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        fallback = {"text/plain": self._fallback, "text/html": f"<p>{html.escape(self._fallback)}</p>"}
        return data | fallback, metadata
