"""A session: one person at one form. It shows a view, takes a message, and gives the next view.

A session holds no widget: what it shows and what it is told are plain dictionaries. Whatever a person does, or a page
that is no longer current sends, ends in a view whose ``problem`` says what is wrong; nothing is recorded then.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from weakref import WeakValueDictionary

from judgelab.errors import JudgelabError, LabelError
from judgelab.labelling.journal import TaskT
from judgelab.labelling.markdown import rendered
from judgelab.labelling.messages import asked_again, drafted, first_lines, seconds_of, whole_text
from judgelab.labelling.session_mode import CANNOT_JUDGE, LookedAt, SessionMode
from judgelab.labelling.tasks import check_reviewer
from judgelab.study.run import Run

__all__ = ["CANNOT_JUDGE", "LETTERS", "LookedAt", "Screen", "Session", "View"]

Screen = Literal["start", "task", "saved", "feedback", "done", "closed", "stopped"]
View = dict[str, Any]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
STALE = "This page was not the current one (another tab, or a double click), and nothing was changed: look again."
OPEN: WeakValueDictionary[Path, Session[Any]] = WeakValueDictionary()  # of this process, by journal


class Session(SessionMode[TaskT]):
    """One person's session, whatever is decided in it; each mode says what in the methods of :class:`SessionMode`.

    Close a session with :meth:`close`; opening the same journal in another session of this process takes it over.
    ``name`` tells this session from others in the journal.
    """

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.name, self._count = secrets.token_hex(3), 0
        self._screen: Screen = "start"
        self._place, self._earlier = 0, False
        self._asked = self._reviewer = ""
        self._markdown = False
        self._message = self._problem = ""
        self._draft: dict[str, Any] | None = None
        self._html: dict[str, str | None] = {}
        self._inode: tuple[int, int] | None = None
        self._ended = ""

    @property
    def token(self) -> str:
        """What a message must carry to be one about the view that is shown."""
        return f"{self.name}-{self._count}"

    def handle(self, message: Mapping[str, Any]) -> View:
        """Take one message and give the next view.

        Actions are start (reviewer, confirmed), decide, next, undo, back, forward, markdown (value), stop and
        close_labels (confirmed). All but start carry the token of the view that they answer; with another token
        nothing is changed. A name that has a journal already must be started twice, or confirmed.
        """
        self._message = self._problem = ""
        try:
            self._take(message if isinstance(message, Mapping) else {})
        except (JudgelabError, OSError) as error:
            self._problem = str(error)
            self._end_if_replaced()
        except BaseException:  # an interrupt in the middle of a write: the next start sees what is there
            self._end("This session was interrupted. What was decided is kept: start again.")
            raise
        self._count += 1
        return self.view()

    def close(self) -> None:
        """Release the journal. Closing twice does nothing."""
        if self.journal is not None:
            OPEN.pop(self.journal.path, None)
            self.journal.close()
        self.journal = None

    def view(self) -> View:
        """What is to be shown now, as JSON can hold it."""
        closed = self._why_closed()
        if closed and self._screen != "closed":
            self._leave("closed")
        elif not closed and self._screen == "closed":
            self._screen = "start"
        task = self._task()
        ended = self._ended if self._screen == "stopped" else ""
        thanks = self.thanks() if self._screen == "done" and not self._message else ""
        decided = [place for place, each in enumerate(self.tasks) if self._is_decided(each)] if self.journal else []
        return {
            "screen": self._screen,
            "mode": self.mode,
            "token": self.token,
            "title": self.title,
            "message": "\n".join(filter(None, [closed, ended, self._message, thanks])),
            "problem": self._problem,
            "reviewer": self._reviewer or self._asked,
            "reviewers": self.reviewers() if self._screen in ("start", "stopped") else [],
            "confirm": self._screen == "start" and bool(self._asked),
            "progress": {
                "done": len(decided),
                "total": len(self.tasks),
                "text": self.progress_text(self._place) if task else f"{len(decided)} of {len(self.tasks)} decided",
            },
            "texts": self._texts(task),
            "markdown": self._markdown,
            "rubric": [
                {"name": each.name, "description": each.description} for each in self.study.direct_scale.criteria
            ],
            "tie_meaning": self.study.tie_meaning,
            "scale": None if (scale := self.scale()) is None else {"minimum": scale[0], "maximum": scale[1]},
            "choices": self.choices(),
            "decision": self._draft or self.decided(task),
            "earlier": self._earlier and task is not None,
            "can": self._can(decided),
            "labels": [],
            "rule": "",
            "feedback": self.feedback(task) if task and self._screen == "feedback" else None,
        } | (self.extra(task) if task else {})

    def reviewers(self) -> list[str]:
        """Everybody who has a journal, by name."""
        return sorted(path.stem for path in self.folder.glob("*.jsonl"))

    def decided(self, task: TaskT | None) -> dict[str, Any] | None:
        """The last decision on a task that was not undone."""
        if task is None or self.journal is None:
            return None
        record = self.journal.file.standing.stands(task.key)
        if record is None:
            return None
        decision = self.decision(record)
        return {name: whole_text(value) if isinstance(value, str) else value for name, value in decision.items()}

    @property
    def screen(self) -> Screen:
        """The screen that is shown."""
        return self._screen

    def _take(self, message: Mapping[str, Any]) -> None:
        action = message.get("action")
        if self._why_closed():
            return
        if action == "start":
            self._start(message)
            return
        if self.journal is None:
            raise LabelError("No session is open: say who you are, and start.")
        if message.get("token") != self.token:
            raise LabelError(STALE)
        actions: dict[Any, Callable[[Mapping[str, Any]], None]] = {
            "decide": self._decide,
            "next": lambda _: self._next(),
            "undo": lambda _: self._undo(),
            "back": lambda _: self._back(),
            "forward": lambda _: self._forward(),
            "markdown": self._show_markdown,
            "stop": lambda _: self._stop(),
            "close_labels": self._close_labels,
        }
        if not isinstance(action, str) or action not in actions:
            raise LabelError(f"{str(action)[:40]!r} is no action; allowed are start, {', '.join(actions)}")
        actions[action](message)

    def _start(self, message: Mapping[str, Any]) -> None:
        given = message.get("reviewer")
        reviewer = given.strip() if isinstance(given, str) else ""
        if not reviewer:
            raise LabelError("Say who you are: a name or a code, always the same one.")
        check_reviewer(reviewer)
        if self.journal is not None:  # a page that was loaded before the session had started
            if self.journal.reviewer != reviewer:
                raise LabelError(f"The session of {self.journal.reviewer} is open here: stop it first.")
            return
        path = self.folder / f"{reviewer}.jsonl"
        if path.exists() and self._asked != reviewer and message.get("confirmed") is not True:
            self._message = asked_again(reviewer, *self.look(reviewer))
            self._screen, self._asked = "start", reviewer
            return
        tasks = self.order(reviewer)
        if path in OPEN:
            OPEN[path]._end("This session ended: it was opened again elsewhere in this notebook. Start to go on here.")
        self.journal = self.open_journal(reviewer)
        OPEN[path], self.tasks = self, tasks
        self._reviewer, self._asked, self._inode = reviewer, "", _inode(path)
        try:
            told = [self.welcome(reviewer), *self.journal.notes, *first_lines(self.journal.file.problems)]
            self._go(self._frontier())
        except (JudgelabError, OSError):
            self._leave("start")
            raise
        self._message = "\n".join(line for line in told if line)

    def _decide(self, message: Mapping[str, Any]) -> None:
        task = self._task()
        if task is None or self._screen != "task":
            raise LabelError("This is decided already: undo it first, or go on.")
        self._draft = drafted(message, {choice["value"] for choice in self.choices()})
        self.record(task, message, seconds_of(message))
        self._draft = None
        self._screen = "saved" if self.feedback(task) is None else "feedback"

    def _next(self) -> None:
        if self._screen not in ("saved", "feedback"):
            raise LabelError("There is nothing to go on from: decide first.")
        self._go(self._frontier())

    def _undo(self) -> None:
        if self._screen not in ("saved", "feedback") or self.journal is None:
            raise LabelError("There is nothing to undo: only what was saved last can be undone, before the next item.")
        before = self.decided(self._task())
        self.journal.undo()
        self._screen, self._draft = "task", before

    def _back(self) -> None:
        before = [place for place in range(self._place) if self._is_decided(self.tasks[place])]
        if not before:
            raise LabelError("There is no decided item before this one.")
        self._go(before[-1])

    def _forward(self) -> None:
        if self._screen in ("saved", "feedback") and not self._earlier:
            self._next()
            return
        after = self._after()
        if after is None:
            raise LabelError("There is no decided item after this one: decide first.")
        self._go(after)

    def _show_markdown(self, message: Mapping[str, Any]) -> None:
        self._markdown = message.get("value") is True

    def _stop(self) -> None:
        self._message = f"Stopped. What {self._reviewer} decided is kept; the same name goes on where it stopped."
        self._leave("start")

    def _close_labels(self, message: Mapping[str, Any]) -> None:
        self._message = self.close_labels(message.get("confirmed") is True)

    def _go(self, place: int) -> None:
        """Put another task before the person, which makes the decision on the one before it the initial one."""
        task = self.tasks[place] if place < len(self.tasks) else None
        if task is not None and self.journal is not None:
            self.journal.show(task)
        self._place, self._draft = place, None
        self._html.clear()
        self._screen = "done" if task is None else "task"
        self._earlier = task is not None and self._is_decided(task)

    def _frontier(self) -> int:
        """The place of the first undecided task; behind the last where there is none."""
        places = (place for place, task in enumerate(self.tasks) if not self._is_decided(task))
        return next(places, len(self.tasks))

    def _after(self) -> int | None:
        """The next place that may be gone to: of a decided task, or of the first undecided one."""
        frontier = self._frontier()
        places = range(self._place + 1, len(self.tasks) + 1)
        return next(
            (p for p in places if p == frontier or (p < len(self.tasks) and self._is_decided(self.tasks[p]))), None
        )

    def _is_decided(self, task: TaskT) -> bool:
        return self.journal is not None and self.journal.file.standing.is_decided(task.key)

    def _task(self) -> TaskT | None:
        """The task that is before the person."""
        return self.tasks[self._place] if self._screen in ("task", "saved", "feedback") else None

    def _can(self, decided: Sequence[int]) -> dict[str, bool]:
        saved = self._screen in ("saved", "feedback")
        here = saved or self._screen in ("task", "done")
        return {
            "undo": saved,
            "back": here and bool(decided) and decided[0] < self._place,
            "forward": saved or (self._screen == "task" and self._after() is not None),
            "close_labels": self.may_close(),
        }

    def _texts(self, task: TaskT | None) -> dict[str, Any]:
        if task is None:
            return {"task": self._text(""), "context": None, "answers": []}
        asked, context, answers = self.texts(task)
        return {
            "task": self._text(asked),
            "context": self._text(context) if context else None,
            "answers": [
                {"letter": letter, "content": self._text(text)} for letter, text in zip(LETTERS, answers, strict=False)
            ],
        }

    def _text(self, text: str) -> dict[str, str | None]:
        """A text as it is and, while Markdown is wanted, as HTML that was cleaned."""
        if self._markdown and text not in self._html:
            self._html[text] = rendered(text)
        return {"text": text, "html": self._html.get(text) if self._markdown else None}

    def _why_closed(self) -> str:
        try:
            return self.why_closed()
        except (JudgelabError, OSError) as error:  # the run's folder was removed, its protocol edited
            return str(error)

    def _leave(self, screen: Screen) -> None:
        """Close the journal and forget who was here."""
        self.close()
        self._screen, self._reviewer, self._asked, self.tasks, self._draft = screen, "", "", (), None
        self._place, self._earlier = 0, False

    def _end(self, why: str) -> None:
        self._ended = why
        self._leave("stopped")

    def _end_if_replaced(self) -> None:
        """What is written to a journal that was moved away would be lost: this session cannot go on."""
        if self.journal is not None and _inode(self.journal.path) != self._inode:
            self._end(self._problem)
            self._problem = ""


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
