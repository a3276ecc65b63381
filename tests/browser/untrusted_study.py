"""A study of texts by strangers: markup that acts wherever it may, and texts of unusual length and script."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

from judgelab.labelling.session import Session

IMAGE = '<img src=x onerror="window.hit=1">'
ACTING = [
    IMAGE,
    "<script>window.hit=1</script>",
    "</textarea><svg onload=window.hit=1>",
    "[x](javascript:window.hit=1) and ![](http://example.invalid/x.png)",
    r"$\href{javascript:window.hit=1}{x}$ for $5 and \(\require{window.hit=1}\)",
    "</td></table></pre></style><iframe src=javascript:parent.hit=1></iframe>",
]
WIDE = [
    "A line of text without end. " * 7_500,
    "w" * 5_000,
    "שלום עולם, זו תשובה ארוכה למדי. " * 60 + "\nلوحة المفاتيح 123 (abc)",
    "👩‍👩‍👧‍👦🏳️‍🌈🇩🇪" * 400,
    "def f():\n\tif x:\n\t\treturn " + "y" * 300 + "\n" + "\t" * 60 + "deep",
]
TEXTS = ACTING + WIDE


def protocol(name: str) -> dict:
    return {
        "study_id": name, "sampling_rule": "all", "rubric_version": "r1", "random_seed": 7, "direct_tie_margin": 0.25,
        "items": {"path": "params/items.jsonl", "max_answer_characters": 300_000},
        "systems": {"ALPHA": {"family": "house"}, "BETA": {}},
        "direct_scale": {"criteria": [{"name": "correctness", "description": IMAGE}]},
        "split": {"development_share": 0}, "measures": {"resamples": 100}, "probes": {"run": "all", "repeats": 2},
        "judges": [
            {"kind": "recorded", "name": "told", "path": "params/records.jsonl", "provenance": IMAGE},
            {"kind": "control", "name": "coin", "rule": "coin"},
            {"kind": "control", "name": "longest", "rule": "longest"},
        ],
    }  # fmt: skip


def items() -> list[dict]:
    """One item a text; the text stands in every field, the next one beside it."""
    found = []
    for number, text in enumerate(TEXTS):
        beside = TEXTS[(number + 1) % len(TEXTS)]
        found.append(
            {
                "item_id": IMAGE if number == 0 else f"i{number:02d}",
                "category": text if text in ACTING else WIDE[1] if number % 2 else "plain",
                "task": text,
                "reference_context": beside,
                "answer_alpha": text,
                "answer_beta": beside,
            }
        )
    return found


def records() -> Iterator[dict]:
    """What a judge replied: verdicts with such a text, such a text alone, and such a text as the reason for none."""
    for number, (item, text) in enumerate(zip(items(), TEXTS, strict=True)):
        acting = ACTING[number % len(ACTING)]
        told = {"reply": text} if number % 3 == 1 else {"reason": acting}
        verdict = {"correctness": 4, "critical_error": False, "reason_codes": [acting], "explanation": acting}
        common = {"item_id": item["item_id"], "model": acting}
        for system in ("ALPHA", "BETA"):
            said = {"reply": json.dumps(verdict)} if number % 3 == 0 else told
            yield {**common, "strategy": "direct", "pass": "direct", "system": system, **said}
        for pass_, (first, second) in {"original": ("ALPHA", "BETA"), "swapped": ("BETA", "ALPHA")}.items():
            said = {"reply": json.dumps({"winner": "A", "confidence": "high", "reason_codes": [acting]})}
            said = said if number % 3 == 0 else told
            yield {**common, "strategy": "pairwise", "pass": pass_, "first": first, "second": second, **said}


def label_file() -> str:
    """Two reviewers and an adjudicator with such names."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["item_id", "reviewer_id", "preference", "is_adjudicated", "note"])
    for number, item in enumerate(items()):
        for place, reviewer in enumerate((ACTING[0], ACTING[1], ACTING[2])):
            preference = ("ALPHA", "BETA", "TIE")[(number + place * (number % 3)) % 3]
            rows.writerow([item["item_id"], reviewer, preference, str(place == 2).lower(), ACTING[place]])
    return text.getvalue()


def decide_all(session: Session, name: str, *choices: str) -> None:
    """Decide every task with such a note and such a reason, and end the session."""
    view = session.handle({"action": "start", "reviewer": name})
    place = 0
    while view["screen"] == "task":
        said = {
            "choice": choices[place % len(choices)],
            "note": TEXTS[place % len(TEXTS)],
            "reason": IMAGE,
            "seconds": 1.0,
        }
        for message in ({"action": "decide", **said}, {"action": "next"}):
            view = session.handle({"token": view["token"], **message})
            assert view["problem"] == ""
        place += 1
    assert view["screen"] == "done"
    session.close()
