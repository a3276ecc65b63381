"""A session that follows the form's contract with a list of items and no journal; it runs in the notebook's kernel.

Every message that it takes is appended to ``messages.jsonl`` beside the notebook, where a test reads it.
"""

import json
import os
import time
from pathlib import Path

from judgelab.labelling.markdown import rendered

CHOICES = [
    {"value": "left", "key": "a", "label": "A is better"},
    {"value": "right", "key": "b", "label": "B is better"},
    {"value": "tie", "key": "t", "label": "Tie"},
    {"value": "cannot_judge", "key": "c", "label": "Cannot judge"},
]
RUBRIC = [
    {"name": "correctness", "description": "What is said is true and answers the question that was asked."},
    {"name": "completeness", "description": "Nothing is missing that the person who asks would need."},
    {"name": "clarity", "description": "Understood at the first reading."},
]


class Scripted:
    """Items are dictionaries with task, answers and, if there is one, context."""

    def __init__(
        self, items, *, mode="pairs", scale=None, start=False, feedback=None, labels=None, rule="", message="", **bad
    ):
        self.items, self.mode, self.scale, self.feedback = items, mode, scale, feedback
        self.labels, self.rule, self.message = labels or [], rule, message
        self.screen, self.place, self.count = "start" if start else "task", 0, 0
        self.decisions, self.problem, self.markdown, self.reviewer = {}, "", False, "" if start else "anna"
        self.delay, self.fail, self.closed = bad.get("delay", 0), bad.get("fail"), False

    def view(self):
        item = self.items[min(self.place, len(self.items) - 1)]
        at_task = self.screen in ("task", "saved", "feedback")
        decision = self.decisions.get(self.place)
        return {
            "screen": self.screen,
            "mode": self.mode,
            "token": f"t-{self.count}",
            "title": "Labelling",
            "message": self.message,
            "problem": self.problem,
            "reviewer": self.reviewer,
            "reviewers": ["anna", "<img src=x onerror=window.hit=1>"] if self.screen == "start" else [],
            "progress": {
                "done": len(self.decisions),
                "total": len(self.items),
                "text": f"Item {self.place + 1} of {len(self.items)}",
            },
            "texts": self.texts(item) if at_task else None,
            "markdown": self.markdown,
            "rubric": RUBRIC,
            "tie_meaning": "neither answer would be preferred by a careful person",
            "scale": self.scale,
            "choices": CHOICES[3:] if self.mode == "ranking" else CHOICES,
            "decision": decision if at_task else None,
            "earlier": self.screen == "task" and decision is not None and self.place < len(self.decisions) - 1,
            "can": {
                "undo": self.screen in ("saved", "feedback"),
                "back": at_task and self.place > 0,
                "forward": self.screen == "task" and decision is not None,
                "close_labels": self.screen == "done",
            },
            "labels": self.labels,
            "rule": self.rule,
            "feedback": self.feedback if self.screen == "feedback" else None,
        }

    def texts(self, item):
        def text(value):
            return {"text": value, "html": rendered(value) if self.markdown else None}

        return {
            "task": text(item["task"]),
            "context": text(item["context"]) if item.get("context") else None,
            "answers": [
                {"letter": letter, "content": text(answer)}
                for letter, answer in zip("ABCDEF", item["answers"], strict=False)
            ],
        }

    def handle(self, message):
        with Path("messages.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")
        time.sleep(self.delay)
        fail, self.fail = self.fail, None
        if fail == "die":
            os._exit(1)
        if fail:
            raise RuntimeError(fail)
        self.problem = ""
        if message["action"] != "start" and message["token"] != f"t-{self.count}":
            self.problem = "This page was not the current one: look again."
        else:
            getattr(self, f"on_{message['action']}")(message)
        self.count += 1
        return self.view()

    def on_start(self, message):
        self.reviewer, self.screen = message["reviewer"], "task"

    def on_decide(self, message):
        wanted = self.scale and message["choice"] != "cannot_judge"
        given = sum(len(scores) for scores in message["scores"].values())
        if message["choice"] == "cannot_judge" and not message["reason"]:
            self.problem = "Say why it cannot be judged."
        elif wanted and given < 2 * len(RUBRIC):
            self.problem = f"{2 * len(RUBRIC) - given} of {2 * len(RUBRIC)} scores are missing"
        elif self.mode == "ranking" and not message["choice"] and None in message["ranks"]:
            self.problem = "1 of 4 ranks is missing"
        else:
            self.decisions[self.place] = {key: message[key] for key in ("choice", "scores", "reason", "note", "ranks")}
            self.screen = "feedback" if self.feedback else "saved"

    def on_next(self, message):
        self.place += 1
        self.screen = "task" if self.place < len(self.items) else "done"

    def on_undo(self, message):
        self.screen = "task"

    def on_back(self, message):
        self.place, self.screen = self.place - 1, "task"

    def on_forward(self, message):
        self.on_next(message)

    def on_markdown(self, message):
        self.markdown = message["value"]

    def on_stop(self, message):
        self.screen = "stopped"

    def on_close_labels(self, message):
        if not message.get("confirmed"):
            self.message = "This closes one label.\nUnfinished: nothing."
            return
        self.screen, self.message = "closed", "The labels are closed."

    def close(self):
        self.closed = True
